/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connections without traffic. connect: each is set up, ended and set up again at full rate. A
 * message is one such cycle, and its latency is the time of the set-up. idle: all are set up once
 * and stay, so that their memory can be measured.
 */

#include <inttypes.h>

#include <rte_cycles.h>

#include "bench.h"

static int
bare_open(struct bench_qp *q)
{
	return san_net_qp_open(q->b, q, 1, 1, 0);
}

static void
idle_end(struct peer *p, struct ctl_report *report)
{
	(void)report;
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
	.end = idle_end,
};

/*
 * Disconnect a connection of the client that is up, and connect one that has ended. A cycle counts
 * from its start, so that the end of the traffic waits for it.
 */
static bool
connect_step(struct bench_qp *q, uint64_t max)
{
	struct client_conn *conn = (struct client_conn *)q;

	if (q->is_server || conn->client->state == CLIENT_END)
		return false;
	if (q->is_up && !conn->is_leaving) {
		if (rtsan_disconnect(q->qp) < 0)
			return false; /* the event is pending */
		conn->is_leaving = true;
		if (q->did.msgs == 0)
			q->did.msgs++; /* the first cycle began before the traffic */
		return true;
	}
	if (max == 0 || !q->is_over)
		return false;
	conn->begin = rte_rdtsc();
	if (san_client_conn_connect(conn) < 0)
		san_client_fail(conn->client, "can't connect again: %s", rtsan_error());
	else
		q->did.msgs++;
	return true;
}

static bool
connect_on_event(struct bench_qp *q, const struct rtsan_event *ev)
{
	struct client_conn *conn = (struct client_conn *)q;

	if (ev->type == RTSAN_EV_ESTABLISHED) {
		san_hist_add(q->lat, san_bench_ns(q->b, rte_rdtsc() - conn->begin));
		return true;
	}
	if (ev->type != RTSAN_EV_DISCONNECTED || !conn->is_leaving)
		return false;
	conn->is_leaving = false;
	q->did.done++;
	return true;
}

static bool
connect_peer_event(struct bench_qp *q, const struct rtsan_event *ev)
{
	struct peer *p = (struct peer *)q;
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
	san_net_param(&p->q.b->conf, &param, &w, sizeof(w));
	p->q.is_over = false;
	/* an expired request fails, and the client repeats it */
	rtsan_accept(p->q.b->ctx, request, p->q.qp, &param);
	return NULL;
}

static bool
connect_is_over(const struct bench_qp *q)
{
	const struct peer *p = (const struct peer *)q;

	return !q->is_server || p->msgs >= p->end_msgs;
}

static void
connect_end(struct peer *p, struct ctl_report *report)
{
	(void)report;
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
	.open = bare_open,
	.step = connect_step,
	.on_event = connect_on_event,
	.peer_event = connect_peer_event,
	.is_over = connect_is_over,
	.end = connect_end,
};
