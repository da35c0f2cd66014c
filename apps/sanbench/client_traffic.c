/* SPDX-License-Identifier: BSD-3-Clause */

/* Messages from posting to completion, until the time or the count is reached. */

#include <rte_branch_prediction.h>

#include "bench.h"

#define POST_BURST  32           /* default number of messages per call */
#define END_ROUNDS  16           /* steps between checks of time and count */
#define CLIENT_WORK (CTL_TX / 2) /* PLACED messages in flight */

/* ---- completions ---- */

void
san_client_traffic_on_wc(struct bench_qp *q, const struct rtsan_wc *wc)
{
	struct client_conn *conn = (struct client_conn *)q;
	struct client *c = conn->client;
	uint64_t *stamp = &q->stamp[san_net_slot(&c->hello, wc->wr_id)], ns;
	const char *wrong = NULL;

	if (wc->status != RTSAN_WC_SUCCESS) {
		san_client_fail(c, "connection %u, message %" PRIu64 ": %s: %s", q->hello.index,
				wc->wr_id, rtsan_status_name(wc->status),
				rtsan_status_text(wc->status));
		return;
	}
	if (c->mode->complete != NULL)
		wrong = c->mode->complete(conn, wc->wr_id, wc);
	if (wrong != NULL)
		san_client_fail(c, "connection %u, message %" PRIu64 ": %s", q->hello.index,
				wc->wr_id, wrong);
	ns = san_bench_ns(c->b, c->b->now - *stamp);
	san_hist_add(&c->lat, ns);
	if (c->conf.live)
		san_hist_add(&c->lat_second, ns);
	*stamp = 0;
	c->completed++;
	while (q->did.done < q->did.msgs && q->stamp[san_net_slot(&c->hello, q->did.done)] == 0)
		q->did.done++;
}

/* ---- messages ---- */

/* Messages that may be posted now. */
static uint64_t
traffic_room(const struct client_conn *conn)
{
	const struct client *c = conn->client;
	const struct bench_did *did = &conn->q.did;
	uint64_t n = RTE_MIN(conn->limit - did->msgs, c->hello.depth - (did->msgs - did->done));

	return c->has_placed ? RTE_MIN(n, c->hello.slots - (did->msgs - conn->credit)) : n;
}

static void
traffic_fill(struct client_conn *conn, uint64_t i, struct rtsan_send_wr *wr, struct rtsan_sge *sge)
{
	*sge = (struct rtsan_sge){
		.addr = san_net_slot_at(&conn->q, i),
		.length = san_content_size(&conn->q.hello, i),
		.lkey = conn->client->lkey,
	};
	*wr = (struct rtsan_send_wr){
		.wr_id = i,
		.flags = RTSAN_WR_SIGNALED,
		.nb_sge = 1,
		.sge = sge,
		.remote_addr = conn->peer.addr,
		.rkey = conn->peer.rkey,
	};
	conn->client->mode->fill(conn, i, wr);
}

/* Post up to *max* messages with one call, filling prepared requests once. Returns the number. */
static uint32_t
traffic_pump(struct client_conn *conn, uint64_t max)
{
	struct client *c = conn->client;
	struct rtsan_send_wr own_wrs[BENCH_BATCH_MAX], *wr = own_wrs;
	struct rtsan_sge own_sges[BENCH_BATCH_MAX], *sge = own_sges;
	uint64_t next = conn->q.did.msgs;
	uint32_t slot = san_net_slot(&c->hello, next);
	int i, done;

	if (conn->wrs != NULL) {
		max = RTE_MIN(max, c->hello.slots - (uint64_t)slot);
		wr = &conn->wrs[slot];
		sge = &conn->sges[slot];
	}
	if (conn->wrs == NULL || unlikely(next < c->hello.slots))
		for (i = 0; (uint64_t)i < max; i++)
			traffic_fill(conn, next + (uint64_t)i, &wr[i], &sge[i]);
	c->b->now = rte_rdtsc();
	done = rtsan_post_send(conn->q.qp, wr, (int)max);
	if (done < 0 && done != -ENOTCONN)
		san_client_fail(c, "posting failed: %s", rtsan_error());
	for (i = 0; i < done; i++) {
		conn->q.stamp[san_net_slot(&c->hello, conn->q.did.msgs++)] = c->b->now;
		conn->q.did.bytes += sge[i].length;
		c->bytes += sge[i].length;
		c->msgs++;
	}
	return done > 0 ? (uint32_t)done : 0;
}

/* Post what fits on each connection, or whole batches if a batch size is set. */
static bool
pump_all(struct client *c)
{
	uint64_t n, batch, last = c->msgs;
	struct client_conn *conn;
	uint32_t i;

	for (i = 0; i < c->hello.nb_conns && !c->is_failed; i++) {
		conn = &c->conns[i];
		n = traffic_room(conn);
		/* the last batch may be smaller */
		batch = RTE_MIN(c->hello.batch, conn->limit - conn->q.did.msgs);
		if (c->hello.batch == 0)
			n = RTE_MIN(n, (uint64_t)POST_BURST);
		else
			n = n < batch ? 0 : batch;
		if (n > 0)
			traffic_pump(conn, n);
	}
	return c->msgs != last;
}

/* Give each connection a turn, as far as the common depth permits. */
static bool
pump_turns(struct client *c)
{
	struct client_conn *conn;
	uint64_t n, last = c->msgs;

	while (c->msgs - c->completed + c->conf.turns <= c->conf.hello.depth && !c->is_failed) {
		conn = &c->conns[c->turn];
		n = traffic_room(conn);
		if (n < c->conf.turns && n < conn->limit - conn->q.did.msgs)
			break; /* its previous turn is not complete */
		n = n < c->conf.turns ? n : c->conf.turns;
		if (n > 0 && traffic_pump(conn, n) != n)
			break;
		c->turn = c->turn + 1 < c->hello.nb_conns ? c->turn + 1 : 0;
		if (n == 0 && c->turn == 0)
			break; /* all messages are posted */
	}
	return c->msgs != last;
}

/* ---- telling the server ---- */

/* Send PLACED for every quarter of the slots, or at once if a connection waits for slots. */
static bool
report_placed(struct client *c)
{
	struct ctl_msg msg = {.type = CTL_PLACED};
	bool has_worked = false;
	uint32_t i;

	for (i = 0; i < c->hello.nb_conns && c->has_placed && !c->is_failed; i++) {
		struct client_conn *conn = &c->conns[i];
		uint64_t nb = conn->q.did.done - conn->reported;

		msg.index = conn->q.hello.index;
		msg.a = conn->q.did.done; /* the server may check those before */
		if (nb == 0 || c->ctl.nb_tx >= CLIENT_WORK ||
		    (nb < (c->hello.slots + 3u) / 4 && traffic_room(conn) != 0) ||
		    san_net_ctl_send(&c->ctl, &msg, NULL) < 0)
			continue;
		conn->reported = msg.a;
		has_worked = true;
	}
	return has_worked;
}

/* ---- steps ---- */

/* True if the time is over, or with a count if all messages are posted. */
static bool
is_all_made(const struct client *c)
{
	uint32_t i;

	if (c->conf.count == 0)
		return c->conf.duration_ms != 0 &&
			rte_rdtsc() - c->begin >= san_bench_ticks_of_ms(c->b, c->conf.duration_ms);
	for (i = 0; i < c->hello.nb_conns; i++)
		if (c->conns[i].q.did.msgs < c->conns[i].limit)
			return false;
	return true;
}

bool
san_client_traffic_step_mode(struct client *c, bool is_active)
{
	bool has_worked = false;
	uint32_t i;

	if (c->mode->step == NULL)
		return false;
	c->msgs = c->bytes = c->completed = 0;
	for (i = 0; i < c->hello.nb_conns; i++) {
		struct client_conn *conn = &c->conns[i];
		const struct bench_did *did = &conn->q.did;

		if (!c->is_failed)
			has_worked |= c->mode->step(&conn->q,
						    is_active ? conn->limit - did->msgs : 0);
		if (did->error != NULL)
			san_client_fail(c, "connection %u: %s", i, did->error);
		c->msgs += did->msgs;
		c->bytes += did->bytes;
		c->completed += did->done;
	}
	return has_worked;
}

bool
san_client_traffic_step(struct client *c)
{
	bool has_worked;
	uint32_t i;

	if (c->mode->open != NULL)
		has_worked = san_client_traffic_step_mode(c, true);
	else
		has_worked = c->conf.turns > 0 ? pump_turns(c) : pump_all(c);
	has_worked |= report_placed(c);
	if (c->is_failed || c->rounds++ % END_ROUNDS != 0 ||
	    !(c->is_stopped || is_all_made(c)))
		return has_worked;
	for (i = 0; i < c->hello.nb_conns; i++)
		c->conns[i].limit = c->conns[i].q.did.msgs;
	san_client_enter(c, CLIENT_DRAIN);
	return true;
}

static bool
traffic_is_drained(const struct client *c)
{
	const struct client_conn *conn;
	uint64_t posted;
	uint32_t i;

	if (c->completed < c->msgs)
		return false;
	for (i = 0; i < c->hello.nb_conns; i++) {
		conn = &c->conns[i];
		posted = conn->q.did.msgs;
		if (c->has_placed && (conn->q.did.done < posted || conn->credit < posted))
			return false;
		if (c->mode->is_over != NULL && !c->mode->is_over(&conn->q))
			return false;
	}
	return true;
}

bool
san_client_traffic_drain(struct client *c)
{
	bool has_worked = san_client_traffic_step_mode(c, false);

	has_worked |= report_placed(c);
	if (!traffic_is_drained(c) || c->is_failed)
		return has_worked;
	c->end = rte_rdtsc();
	san_client_enter(c, CLIENT_END);
	return true;
}
