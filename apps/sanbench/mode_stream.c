/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Streams: bytes instead of messages. The server receives in the manner of --receive, so that each
 * mode of the adaptive protocol occurs. Either end may send, or one requests and the other answers
 * (--way). (AFC-1, AFC-11, SYS-3)
 */

#include <inttypes.h>

#include "mode.h"
#include "flow.h"

bool
san_mode_stream_fits(const struct hello *h)
{
	return h->way < FLOW_WAYS && h->manner < FLOW_MANNERS && h->order == RTSAN_ORDERED &&
		h->depth <= 1024;
}

static const char *
stream_check(const struct bench_conf *conf)
{
	if (conf->order != RTSAN_ORDERED)
		return "--order: streams are ordered";
	return conf->depth > 1024 ? "--depth: at most 1024 sends" : NULL;
}

/* ---- client ---- */

static void
mode_stream_conn_on_wc(struct bench_qp *q, const struct rtsan_wc *wc)
{
	san_flow_on_wc(((struct client_conn *)q)->flow, wc);
}

static int
conn_open_stream(struct client_conn *conn)
{
	struct client *c = conn->client;
	struct hello h = c->hello;

	h.index = conn->index;
	conn->q.on_wc = mode_stream_conn_on_wc;
	return san_flow_open(c->b, &conn->q, &h, false, &c->conf.stream, &c->lat, &conn->flow);
}

static void
conn_close_stream(struct client_conn *conn)
{
	san_flow_close(conn->flow);
}

/*
 * The connection ends when both ends have sent everything. Completions may come after this event.
 */
static bool
conn_on_event(struct client_conn *conn, const struct rtsan_event *ev)
{
	return ev->type == RTSAN_EV_DISCONNECTED && ev->reason == RTSAN_R_NONE &&
		san_flow_state(conn->flow)->is_shut;
}

static bool
mode_stream_conn_step(struct client_conn *conn, bool is_active)
{
	struct client *c = conn->client;
	const struct flow_state *state = san_flow_state(conn->flow);
	uint64_t max = is_active && conn->limit > conn->next ? conn->limit - conn->next : 0;
	bool worked = san_flow_step(conn->flow, max);

	if (state->error != NULL)
		san_client_fail(c, "connection %u: %s", conn->index, state->error);
	c->msgs += state->msgs - conn->next;
	c->bytes += state->bytes - conn->bytes;
	conn->next = conn->msgs = state->msgs;
	conn->bytes = state->bytes;
	c->completed += state->done - conn->lowest;
	conn->lowest = state->done;
	return worked;
}

/* ---- server ---- */

static void
mode_stream_peer_on_wc(struct bench_qp *q, const struct rtsan_wc *wc)
{
	san_flow_on_wc(((struct peer *)q)->flow, wc);
}

static int
peer_open_stream(struct peer *p)
{
	struct session *s = p->session;

	p->q.on_wc = mode_stream_peer_on_wc;
	return san_flow_open(s->b, &p->q, &p->hello, true, &s->b->conf.stream, &s->lat, &p->flow) <
			0 ?
		-1 :
		0;
}

static void
peer_close_stream(struct peer *p)
{
	san_flow_close(p->flow);
}

static bool
peer_step_stream(struct peer *p)
{
	bool worked = san_flow_step(p->flow, UINT64_MAX);

	if (san_flow_state(p->flow)->error != NULL)
		san_server_peer_error(p, "%s", san_flow_state(p->flow)->error);
	return worked;
}

static bool
mode_stream_peer_on_event(struct peer *p, const struct rtsan_event *ev)
{
	return ev->type == RTSAN_EV_DISCONNECTED && ev->reason == RTSAN_R_NONE &&
		san_flow_state(p->flow)->is_shut;
}

static bool
peer_is_over_stream(const struct peer *p)
{
	return san_flow_is_over(p->flow);
}

static void
peer_end_stream(struct peer *p)
{
	const struct flow_state *state = san_flow_state(p->flow);

	p->msgs = p->end_msgs;
	p->bytes = state->received;
	if (state->received != p->end_bytes)
		san_server_peer_error(p, "%" PRIu64 " bytes of %" PRIu64, state->received,
				      p->end_bytes);
}

const struct bench_mode mode_stream = {
	.name = "stream",
	.help = "a stream of bytes, which the server receives as --receive says",
	.id = MODE_STREAM,
	.size = 65536,
	.depth = 4,
	.conns = 1,
	.check = stream_check,
	.open = conn_open_stream,
	.step = mode_stream_conn_step,
	.on_event = conn_on_event,
	.close = conn_close_stream,
	.peer_open = peer_open_stream,
	.peer_step = peer_step_stream,
	.peer_event = mode_stream_peer_on_event,
	.peer_is_over = peer_is_over_stream,
	.peer_close = peer_close_stream,
	.end = peer_end_stream,
};
