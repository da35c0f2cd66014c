/* SPDX-License-Identifier: BSD-3-Clause */

#include "unit.h"
#include "pdl_pair.h"

#define NB_CONNS 10000
#define PER_CONN 5 /* packets that each connection sends */

/* ---- many senders without peers: the test makes the ACKs ---- */

static struct san_pdl *pdl;
static uint64_t now;
static uint16_t left[NB_CONNS]; /* packets not yet sent, by slot */
static uint32_t visit_of_first[NB_CONNS];

static void
open_many(uint32_t nb, uint32_t budget)
{
	struct san_pdl_conf conf = pair_conf();
	struct san_pdl_peer peer = {
		.dcid = 5,
		.dtag = 6,
		.mtu = 1024,
		.tx_req_win = 16,
		.tx_data_win = 64,
		.first_win = 33,
	};

	now = 1000;
	san_prng_seed(&pair_secret, 1);
	conf.max_conns = nb;
	conf.budget_pkts = budget;
	conf.cc = SAN_CC_FIXED;
	assert_int_equal(san_pdl_create(&conf, now, &pdl), 0);
	for (uint32_t i = 0; i < nb; i++) {
		struct san_pdl_conn *c;

		assert_int_equal(san_pdl_conn_add(pdl, &c), 0);
		san_pdl_conn_open(pdl, c, &peer, 16, 64, now);
		left[c->slot] = PER_CONN;
	}
}

static void
destroy(void)
{
	san_pdl_check(pdl);
	san_pdl_destroy(pdl);
}

UNIT_FIXTURE(.teardown = destroy);

/* Acknowledge all packets in flight of *c*. */
static void
ack_all(struct san_pdl_conn *c)
{
	struct san_wire_pkt p = {
		.req_ebsn = c->tx[SAN_WIN_REQ].next,
		.data_ebsn = c->tx[SAN_WIN_DATA].next,
	};

	san_pdl_ack_apply(pdl, c, &p, NULL, now);
	pdl->nb_acked = 0;
}

/* One visit as the core does it; returns packets sent. */
static uint32_t
visit(struct san_pdl_conn *c)
{
	struct san_pdl_room room;
	uint32_t n = 0;

	while (san_pdl_tx_again(pdl, c, now) != NULL)
		n++;
	san_pdl_tx_room(pdl, c, now, &room);
	while (left[c->slot] > 0 && room.nb_credit > 0 && room.nb_data > 0) {
		struct san_pdl_entry e = {.op = SAN_OP_PUSH_UNSLCTD_DATA};

		san_pdl_tx_assign(pdl, c, &e, now);
		assert_true(pdl->inflight <= pdl->conf.budget_pkts);
		room.nb_credit--;
		room.nb_data--;
		left[c->slot]--;
		n++;
	}
	san_pdl_sched_end(pdl, c, false);
	return n;
}

static void
fire(uint64_t until)
{
	struct san_timer *t;

	while (now < until) {
		now = san_time_min(until, san_wheel_deadline_ns(&pdl->wheel));
		while ((t = san_wheel_poll(&pdl->wheel, now)) != NULL) {
			struct san_pdl_conn *c = container_of(t, struct san_pdl_conn, timer);

			san_pdl_rtx_on_timer(pdl, c, now);
			san_pdl_conn_arm(pdl, c);
		}
	}
}

/* PCB-1, PCB-2: virtual window = max(1, min(first window - 1, share)). */
UNIT_CASE(san_pdl_pcb_vwin__formula)
{
	static const struct {
		uint16_t first_win;
		uint32_t share, vwin;
	} rows[] = {
		{33, 1000, 32},
		{33, 32, 32},
		{33, 31, 31},
		{33, 1, 1},
		{2, 1000, 1},
		{3, 1, 1},
	};

	open_many(1, 1000);
	UNIT_EACH(r, rows) {
		pdl->conns[0].pcb.first_win = r->first_win;
		pdl->share = r->share;
		assert_int_equal(san_pdl_pcb_vwin(pdl, &pdl->conns[0]), r->vwin);
	}
}

/* The share is recomputed as connections become active and idle. */
UNIT_CASE(san_pdl_pcb_begin__shares_among_the_active)
{
	struct san_pdl_room room;

	open_many(10, 20);
	assert_int_equal(pdl->share, 20);
	for (uint32_t i = 0; i < 4; i++) {
		left[i] = 1;
		assert_int_equal(visit(&pdl->conns[i]), 1);
	}
	assert_int_equal(pdl->nb_active, 4);
	assert_int_equal(pdl->share, 5);
	/* the room of an idle one is its share with itself counted */
	san_pdl_tx_room(pdl, &pdl->conns[4], now, &room);
	assert_int_equal(room.nb_credit, 4);
	san_pdl_sched_end(pdl, &pdl->conns[4], false);
	assert_int_equal(pdl->share, 5);
	for (uint32_t i = 0; i < 3; i++) {
		pdl->conns[i].limited = false;
		ack_all(&pdl->conns[i]);
	}
	assert_int_equal(pdl->nb_active, 1);
	assert_int_equal(pdl->share, 20);
}

/* A report that makes room wakes a connection that had packets left; others are idle at once. */
UNIT_CASE(san_pdl_pcb_rest__visit_only_if_limited)
{
	struct san_pdl_conn *c;

	open_many(1, 1000);
	c = &pdl->conns[0];
	for (int limited = 0; limited < 2; limited++) {
		left[0] = 1;
		assert_int_equal(visit(c), 1);
		assert_int_equal(pdl->nb_active, 1);
		c->limited = limited;
		ack_all(c);
		assert_ptr_equal(san_pdl_sched_next(pdl), limited ? c : NULL);
		assert_int_equal(pdl->nb_active, limited);
		assert_null(c->txb);
	}
	assert_int_equal(visit(c), 0);
	assert_int_equal(pdl->nb_active, 0);
}

/* PCB-2: both windows count together, and after a cut nothing new is sent until there is room. */
UNIT_CASE(san_pdl_tx_room__never_above_the_virtual_window)
{
	struct san_pdl_entry req = {.op = SAN_OP_PULL_REQ}, grant = {.op = SAN_OP_PUSH_GRNT};
	struct san_pdl_conn *c;
	struct san_pdl_room room;

	open_many(1, 1000);
	c = &pdl->conns[0];
	c->pcb.first_win = 4;
	left[0] = 2;
	assert_int_equal(visit(c), 2);
	san_pdl_tx_room(pdl, c, now, &room);
	assert_int_equal(room.nb_credit, 1);
	san_pdl_tx_assign(pdl, c, &req, now);
	san_pdl_tx_room(pdl, c, now, &room);
	assert_int_equal(room.nb_credit, 0);
	assert_true(room.nb_req > 0 && room.nb_data > 0);
	/* a grant does not count, and needs no credit (RULE-7) */
	san_pdl_tx_assign(pdl, c, &grant, now);
	assert_int_equal(c->pcb.inflight, 3);
	c->pcb.first_win = 2;
	left[0] = 1;
	assert_int_equal(visit(c), 0);
	san_pdl_check(pdl);
	ack_all(c);
	assert_int_equal(c->pcb.inflight, 0);
	assert_int_equal(visit(c), 1);
}

/* PCB-4: one active connection has the whole first window, as without limits. */
UNIT_CASE(san_pdl_tx_room__one_active)
{
	struct san_pdl_room room;

	open_many(NB_CONNS, 65536);
	left[7] = 100;
	assert_int_equal(visit(&pdl->conns[7]), 32);
	assert_int_equal(pdl->nb_active, 1);
	ack_all(&pdl->conns[7]);
	san_pdl_tx_room(pdl, &pdl->conns[7], now, &room);
	assert_int_equal(room.nb_credit, 32);
	san_pdl_sched_end(pdl, &pdl->conns[7], false);
}

/*
 * PCB-4: 10,000 active connections, a budget of 100 packets: the sum stays below it at every step,
 * all get to send, and none has a second turn before all had the first.
 */
UNIT_CASE(san_pdl_pcb_wake__ten_thousand_active)
{
	uint32_t total = 0, visits = 0, first_turns = 0;
	struct san_pdl_conn *c, *out[128];
	uint32_t nb_out = 0;

	open_many(NB_CONNS, 100);
	memset(visit_of_first, 0, sizeof(visit_of_first));
	for (uint32_t i = 0; i < NB_CONNS; i++)
		san_pdl_sched_kick(pdl, &pdl->conns[i]);
	while (total < NB_CONNS * PER_CONN) {
		uint32_t n;

		c = san_pdl_sched_next(pdl);
		if (c == NULL) {
			/* from here on only ACKs make progress: oldest first */
			assert_true(nb_out > 0);
			c = out[0];
			memmove(out, out + 1, --nb_out * sizeof(struct san_pdl_conn *));
			now += 100;
			ack_all(c);
			continue;
		}
		visits++;
		n = visit(c);
		if (n == 0)
			continue;
		total += n;
		if (visit_of_first[c->slot] == 0) {
			visit_of_first[c->slot] = visits;
			first_turns++;
		} else {
			/* a second turn only after all first ones: the queue is fair */
			assert_int_equal(first_turns, NB_CONNS);
		}
		assert_true(nb_out < RTE_DIM(out));
		out[nb_out++] = c;
		if (visits % 20000 == 0)
			san_pdl_check(pdl);
	}
	/* bounded: a visit or two per packet, not a search */
	assert_true(visits < 4 * NB_CONNS * PER_CONN);
	assert_true(pdl->stats.nb_budget_waits >= NB_CONNS);
}

/* A token passes on when its holder makes no progress for an RTO, or has nothing to send. */
UNIT_CASE(san_pdl_pcb_wake__silent_or_idle_holder)
{
	struct san_pdl_conn *c;

	open_many(3, 1);
	left[1] = 0; /* requests a turn, and has nothing to send when it comes */
	assert_int_equal(visit(&pdl->conns[0]), 1);
	assert_int_equal(visit(&pdl->conns[1]), 0);
	assert_int_equal(visit(&pdl->conns[2]), 0);
	assert_true(pdl->conns[1].in_wait);
	assert_true(pdl->conns[2].in_wait);
	assert_null(san_pdl_sched_next(pdl));
	fire(now + 2 * pdl->conf.rto_init_ns);
	/* 0 timed out and wants to resend, but 1 and 2 have waited longer */
	while ((c = san_pdl_sched_next(pdl)) != NULL && c != &pdl->conns[2])
		assert_int_equal(visit(c), 0);
	assert_ptr_equal(c, &pdl->conns[2]);
	assert_int_equal(visit(c), 1);
	assert_true(pdl->conns[0].in_wait);
	san_pdl_check(pdl);
	ack_all(&pdl->conns[2]);
	while ((c = san_pdl_sched_next(pdl)) != NULL && c != &pdl->conns[0])
		visit(c);
	assert_ptr_equal(c, &pdl->conns[0]);
	assert_int_equal(visit(c), 1); /* its resend */
	assert_int_equal(c->nb_rtx, 1);
}

/* A connection that fails returns its budget, its token and its place (RT-24). */
UNIT_CASE(san_pdl_pcb_fini__returns_everything)
{
	open_many(3, 1);
	visit(&pdl->conns[0]);
	visit(&pdl->conns[1]);
	visit(&pdl->conns[2]);
	pair_del(pdl, &pdl->conns[0]);
	san_pdl_check(pdl);
	assert_true(pdl->conns[1].token);
	pair_del(pdl, &pdl->conns[1]);
	san_pdl_check(pdl);
	assert_true(pdl->conns[2].token);
	assert_ptr_equal(san_pdl_sched_next(pdl), &pdl->conns[2]);
	assert_int_equal(visit(&pdl->conns[2]), 1);
	pair_del(pdl, &pdl->conns[2]);
	assert_int_equal(pdl->inflight + pdl->nb_tokens + pdl->nb_active, 0);
}

/* Outstanding packets move to a block of the pool when one is free again. */
UNIT_CASE_ALONE(san_pdl_pcb_take_block__moves_what_is_outstanding)
{
	struct san_pdl_conf conf = pair_conf();
	const struct san_pdl_entry *e;
	struct pair_pkt k[3];
	struct pair pair;

	pair_open(&pair, &conf, 16, 64);
	pair.pdl[0]->free_wide.nb = 0;
	assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k[0]));
	assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 2, &k[1]));
	assert_false(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 3, &k[2]));
	assert_false(san_pdl_is_wide(pair.c[0]));
	pair_recv(&pair, 1, &k[1], SAN_RX_RECEIVED);
	assert_true(pair_report(&pair, 1));
	pair.pdl[0]->free_wide.nb = pair.pdl[0]->free_wide.max;
	assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 3, &k[2]));
	assert_true(san_pdl_is_wide(pair.c[0]));
	san_pdl_check(pair.pdl[0]);
	assert_true(san_bitmap_test(&pair.c[0]->txb->rcvd[SAN_WIN_DATA], k[1].p.psn));
	assert_true(san_bitmap_test(&pair.c[0]->txb->flight[SAN_WIN_DATA], k[0].p.psn));
	e = san_pdl_win_tx_entry(pair.c[0]->txb, SAN_WIN_DATA, k[1].p.psn);
	assert_true(e->psn == k[1].p.psn && e->rsn == 2);
	pair_recv(&pair, 1, &k[0], SAN_RX_ACKED);
	pair_recv(&pair, 1, &k[2], SAN_RX_ACKED);
	san_pdl_rx_ack(pair.pdl[1], pair.c[1], k[1].p.psn, pair.now);
	assert_true(pair_report(&pair, 1));
	assert_int_equal(pair.pdl[0]->nb_acked, 3);
	assert_int_equal(pair.pdl[0]->free_wide.nb, pair.pdl[0]->free_wide.max);
	pair_close(&pair);
}
