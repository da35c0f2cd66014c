/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connections without traffic. connect: each is set up, ended and set up again at full rate. A
 * message is one such cycle, and its latency is the time of the set-up. idle: all are set up once
 * and stay, so that their memory can be measured.
 */

#include <inttypes.h>

#include <rte_cycles.h>

#include "mode.h"

static int
bare_open(struct client_conn *conn)
{
	return san_net_qp_open(conn->client->b, &conn->q, 1, 1, 0);
}

static int
bare_peer_open(struct peer *p)
{
	return san_net_qp_open(p->session->b, &p->q, 1, 1, 0);
}

/* ---- idle ---- */

static bool
idle_step(struct client_conn *conn, bool is_active)
{
	(void)conn;
	(void)is_active;
	return false;
}

static void
idle_end(struct peer *p)
{
	if (!p->q.is_up)
		san_server_peer_error(p, "the connection has ended");
}

const struct bench_mode mode_idle = {
	.name = "idle",
	.help = "connections that carry nothing",
	.id = MODE_IDLE,
	.size = 1,
	.depth = 1,
	.conns = 1,
	.open = bare_open,
	.step = idle_step,
	.peer_open = bare_peer_open,
	.end = idle_end,
};

/* ---- connect ---- */

static const char *
connect_check(const struct bench_conf *conf)
{
	return conf->count > 0 ? "--count: mode connect goes by time" : NULL;
}

/* Count the cycle at its start, so that the end of the traffic waits for it. */
static void
mode_connect_begun(struct client_conn *conn)
{
	conn->msgs++;
	conn->client->msgs++;
}

/* Disconnect a connection that is up, and connect one that has ended. */
static bool
connect_step(struct client_conn *conn, bool is_active)
{
	struct client *c = conn->client;

	if (c->state == CLIENT_END)
		return false;
	if (conn->q.is_up && !conn->is_leaving) {
		if (rtsan_disconnect(conn->q.qp) < 0)
			return false; /* the event is pending */
		conn->is_leaving = true;
		if (conn->msgs == 0)
			mode_connect_begun(conn); /* the first cycle began before the traffic */
		return true;
	}
	if (!is_active || !conn->q.is_over)
		return false;
	conn->begin = rte_rdtsc();
	if (san_client_conn_connect(conn) < 0)
		san_client_fail(c, "can't connect again: %s", rtsan_error());
	else
		mode_connect_begun(conn);
	return true;
}

static bool
connect_on_event(struct client_conn *conn, const struct rtsan_event *ev)
{
	struct client *c = conn->client;

	if (ev->type == RTSAN_EV_ESTABLISHED) {
		san_hist_add(&c->lat, san_bench_ns(c->b, rte_rdtsc() - conn->begin));
		return true;
	}
	if (ev->type != RTSAN_EV_DISCONNECTED || !conn->is_leaving)
		return false;
	conn->is_leaving = false;
	c->completed++;
	return true;
}

static bool
connect_peer_event(struct peer *p, const struct rtsan_event *ev)
{
	uint64_t request = p->request;

	if (ev->type != RTSAN_EV_DISCONNECTED)
		return ev->type == RTSAN_EV_ESTABLISHED;
	/*
	 * count disconnects: the event that it was up may never come if the client leaves at once
	 */
	p->msgs++;
	p->request = 0;
	if (request != 0)
		san_mode_connect_again(p, request);
	return true;
}

const char *
san_mode_connect_again(struct peer *p, uint64_t request)
{
	struct welcome w = {.magic = HELLO_MAGIC};
	struct rtsan_conn_param param;

	if (!p->q.is_over) {
		p->request = request; /* the event of its end is still pending */
		return NULL;
	}
	san_net_param(&p->session->b->conf, &param, &w, sizeof(w));
	p->q.is_over = false;
	/* an expired request fails, and the client repeats it */
	rtsan_accept(p->session->b->ctx, request, p->q.qp, &param);
	return NULL;
}

static bool
connect_peer_is_over(const struct peer *p)
{
	return p->msgs >= p->end_msgs;
}

static void
connect_end(struct peer *p)
{
	p->bytes = p->end_bytes;
	if (p->msgs != p->end_msgs)
		san_server_peer_error(p, "%" PRIu64 " connections of %" PRIu64, p->msgs,
				      p->end_msgs);
}

const struct bench_mode mode_connect = {
	.name = "connect",
	.help = "connections set up and ended, over and over",
	.id = MODE_CONNECT,
	.size = 1,
	.depth = 1,
	.conns = 64,
	.check = connect_check,
	.open = bare_open,
	.step = connect_step,
	.on_event = connect_on_event,
	.peer_open = bare_peer_open,
	.peer_event = connect_peer_event,
	.peer_is_over = connect_peer_is_over,
	.end = connect_end,
};
