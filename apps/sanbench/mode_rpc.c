/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests and answers; with --both in both directions. */

#include <inttypes.h>

#include <rte_cycles.h>

#include "mode.h"
#include "rpc.h"

#define RPC_SIZE_MIN  8 /* a message has at least its number */
#define RPC_DEPTH_MAX 1024

bool
san_mode_rpc_fits(const struct hello *h)
{
	return h->size_min == h->size_max && h->size_max >= RPC_SIZE_MIN &&
		h->size_max <= RTSAN_INLINE_MAX && h->depth <= RPC_DEPTH_MAX;
}

static const char *
rpc_check(const struct bench_conf *conf)
{
	const struct hello h = {
		.size_min = conf->size_min,
		.size_max = conf->size_max,
	};

	if (!san_mode_rpc_fits(&h))
		return "--size: requests have one size of 8 to 64 bytes";
	return conf->depth > RPC_DEPTH_MAX ? "--depth: at most 1024 requests" : NULL;
}

/* ---- client ---- */

static void
mode_rpc_conn_on_wc(struct bench_qp *q, const struct rtsan_wc *wc)
{
	san_rpc_on_wc(((struct client_conn *)q)->rpc, wc);
}

static int
conn_open_rpc(struct client_conn *conn)
{
	struct client *c = conn->client;
	struct hello h = c->hello;

	h.index = conn->index;
	conn->q.on_wc = mode_rpc_conn_on_wc;
	return san_rpc_open(c->b, &conn->q, &h, false, c->conf.batch, &c->lat, &conn->rpc);
}

static void
conn_close_rpc(struct client_conn *conn)
{
	san_rpc_close(conn->rpc);
}

static bool
mode_rpc_conn_step(struct client_conn *conn, bool is_active)
{
	struct client *c = conn->client;
	const struct rpc_state *state = san_rpc_state(conn->rpc);
	uint64_t before = conn->served + conn->next;

	san_rpc_step(conn->rpc, is_active ? conn->limit - conn->next : 0);
	if (state->error != NULL)
		san_client_fail(c, "connection %u: %s", conn->index, state->error);
	c->msgs += state->asked - conn->next;
	c->bytes += (state->asked - conn->next) * c->hello.size_max;
	c->completed += state->answered - conn->lowest;
	conn->next = conn->msgs = state->asked;
	conn->lowest = state->answered;
	conn->bytes = conn->msgs * c->hello.size_max;
	conn->served = state->served;
	return conn->served + conn->next != before;
}

/* ---- server ---- */

static void
peer_on_rpc(struct bench_qp *q, const struct rtsan_wc *wc)
{
	san_rpc_on_wc(((struct peer *)q)->rpc, wc);
}

static int
peer_open_rpc(struct peer *p)
{
	struct session *s = p->session;

	p->q.on_wc = peer_on_rpc;
	return san_rpc_open(s->b, &p->q, &p->hello, true, s->hello.batch, &s->lat, &p->rpc) < 0 ?
		-1 :
		0;
}

static void
peer_close_rpc(struct peer *p)
{
	san_rpc_close(p->rpc);
}

/* The server sends requests after it has received the first one, until the client stops. */
static bool
peer_step_rpc(struct peer *p)
{
	const struct rpc_state *state = san_rpc_state(p->rpc);
	uint64_t before = state->asked + state->served;
	bool asks = (p->hello.flags & HELLO_BOTH) != 0 && state->served > 0 && !p->is_ended;

	if (!p->q.is_up)
		return false;
	if (asks && p->begin == 0)
		p->begin = rte_rdtsc();
	san_rpc_step(p->rpc, asks ? UINT64_MAX : 0);
	if (state->error != NULL)
		san_server_peer_error(p, "%s", state->error);
	return state->asked + state->served != before;
}

static bool
peer_is_over_rpc(const struct peer *p)
{
	const struct rpc_state *state = san_rpc_state(p->rpc);

	return state->answered == state->asked;
}

static void
peer_end_rpc(struct peer *p)
{
	const struct rpc_state *state = san_rpc_state(p->rpc);
	struct ctl_report *report = &p->session->report;
	uint64_t ns = san_bench_ns(p->q.b, rte_rdtsc() - p->begin);

	p->msgs = state->served;
	if (state->served != p->end_msgs)
		san_server_peer_error(p, "%" PRIu64 " requests of %" PRIu64, state->served,
				      p->end_msgs);
	if (state->answered != state->asked)
		san_server_peer_error(p, "%" PRIu64 " requests of ours were not answered",
				      state->asked - state->answered);
	report->calls += state->answered;
	if (p->begin != 0 && ns > report->calls_ns)
		report->calls_ns = ns;
}

const struct bench_mode mode_rpc = {
	.name = "rpc",
	.help = "requests that the server answers, with sends",
	.id = MODE_RPC,
	.size = 32,
	.depth = 64,
	.conns = 1,
	.check = rpc_check,
	.open = conn_open_rpc,
	.step = mode_rpc_conn_step,
	.close = conn_close_rpc,
	.peer_open = peer_open_rpc,
	.peer_step = peer_step_rpc,
	.peer_is_over = peer_is_over_rpc,
	.peer_close = peer_close_rpc,
	.end = peer_end_rpc,
};
