/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two instances over a link that loses, duplicates and reorders, in virtual
 * time, against a plain list (RT-2 .. RT-8, RT-17, RT-18, RT-20, RT-22, RT-33,
 * PCB-2): everything sent is acknowledged to its sender exactly once, whatever
 * the target holds, refuses, drops again or makes withdraw; afterwards nothing
 * is in flight, no block is taken, and nobody waits. Every eighth run goes back N:
 * then, moreover, each window is taken in order.
 */

#include "prop.h"

#include "cable.h"
#include "model_rtx.h"
#include "pdl_pair.h"
#include "unit/test_eal.h"

#define NB_FLIGHT 4095
#define END_NS    (60 * SAN_NS_PER_S)

static struct pair pair;
static struct model_rtx model[2][SAN_WIN_MAX]; /* [sender] */
static struct cable cable;
static struct rte_mempool *pool;
static struct san_prng rnd;
static uint32_t to_send[2];
static uint32_t refuse, hold, drop_held, withdraw; /* per mille */
static uint32_t next_rsn[2];

static bool
chance(uint32_t per_mille)
{
	return san_prng_below(&rnd, 1000) < per_mille;
}

/* ---- link ---- */

/* A packet's bytes are those of the structure. Each one's way is a little longer or shorter. */
static void
launch(int to, const struct pair_pkt *k)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	PROP_CHECK(m != NULL);
	memcpy(rte_pktmbuf_append(m, sizeof(*k)), k, sizeof(*k));
	cable_send(&cable, to, m, 5000 + san_prng_below(&rnd, 2000), pair.now);
}

static bool
next_arrival(struct pair_pkt *k, int *to)
{
	struct rte_mbuf *m = cable_arrival(&cable, to, pair.now);

	if (m == NULL)
		return false;
	memcpy(k, rte_pktmbuf_mtod(m, const void *), sizeof(*k));
	rte_pktmbuf_free(m);
	return true;
}

/* ---- receiving ---- */

/* The sender hears of each item once, and only after the receiver acknowledged it. */
static void
take_retired(int side)
{
	struct san_pdl *pdl = pair.pdl[side];

	for (uint32_t i = 0; i < pdl->nb_acked; i++) {
		const struct san_pdl_entry *e = &pdl->acked[i];
		struct model_rtx_item *it = model_rtx_item(&model[side][e->win], e->psn);

		PROP_CHECK(it != NULL && it->acked && it->nb_done == 0);
		PROP_CHECK(e->rsn == it->rsn);
		PROP_CHECK(e->op == (it->withdrawn ? SAN_OP_RESYNC : it->op));
		it->nb_done++;
	}
	pdl->nb_acked = 0;
}

static enum san_verdict
decide(const struct san_wire_pkt *p)
{
	if (p->op == SAN_OP_RESYNC)
		return SAN_RX_ACKED;
	if (chance(refuse))
		return SAN_RX_REFUSED;
	/* Only what can be reported received is held: the data window. */
	if (san_pdl_rx_win_of(p->op, p->flags) == SAN_WIN_DATA && chance(hold))
		return SAN_RX_RECEIVED;
	return SAN_RX_ACKED;
}

static void
arrive(int to, const struct pair_pkt *k)
{
	enum san_win win = san_pdl_rx_win_of(k->p.op, k->p.flags);
	enum san_verdict verdict = decide(&k->p);
	enum san_drop drop = pair_recv(&pair, to, k, verdict);
	struct model_rtx_item *it;

	take_retired(to);
	if (win == SAN_WIN_MAX) {
		PROP_CHECK(drop == SAN_DROP_NONE);
		return;
	}
	it = model_rtx_item(&model[1 - to][win], k->p.psn);
	PROP_CHECK(it != NULL && it->rsn == k->p.rsn);
	/* RT-5: the receiver takes what it has not got */
	PROP_CHECK((drop == SAN_DROP_NONE) == (!it->acked && !it->held));
	PROP_CHECK(drop == SAN_DROP_NONE || drop == SAN_DROP_OLD || drop == SAN_DROP_DUPLICATE);
	if (drop != SAN_DROP_NONE || verdict == SAN_RX_REFUSED)
		return;
	it->held = verdict == SAN_RX_RECEIVED;
	it->acked = verdict == SAN_RX_ACKED;
}

/* The target's ULP: places or drops what is held. */
static void
settle_held(int side)
{
	struct model_rtx *m = &model[1 - side][SAN_WIN_DATA];

	for (uint32_t i = 0; i < m->nb; i++) {
		if (!m->item[i].held || !chance(50))
			continue;
		m->item[i].held = false;
		if (chance(drop_held)) {
			san_pdl_rx_revoke(pair.pdl[side], pair.c[side], m->first_psn + i);
		} else {
			m->item[i].acked = true;
			san_pdl_rx_ack(pair.pdl[side], pair.c[side], m->first_psn + i, pair.now);
		}
	}
}

/* RNR: the target drops what it holds from an RSN on, the initiator withdraws it. */
static void
withdraw_some(int side)
{
	struct model_rtx *m = &model[side][SAN_WIN_DATA];
	uint32_t rsn = next_rsn[side] - san_prng_below(&rnd, 8);
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->nb; i++) {
		struct model_rtx_item *it = &m->item[i];

		if (san_seq_lt(it->rsn, rsn) || it->nb_done != 0 || it->withdrawn ||
		    (it->op != SAN_OP_PUSH_SLCTD_DATA && it->op != SAN_OP_PUSH_UNSLCTD_DATA &&
		     it->op != SAN_OP_PUSH_PACKED))
			continue;
		it->withdrawn = true;
		n++;
		if (it->held) {
			it->held = false;
			san_pdl_rx_revoke(pair.pdl[1 - side], pair.c[1 - side], m->first_psn + i);
		}
	}
	PROP_CHECK(san_pdl_rtx_cancel(pair.pdl[side], pair.c[side], rsn, true,
				      SAN_RESYNC_FILL) == n);
}

/* ---- sending ---- */

static void
send_new(int side, const struct san_pdl_room *had, uint32_t *nb_visit)
{
	static const uint8_t ops[] = {
		SAN_OP_PUSH_SLCTD_REQ, SAN_OP_PULL_REQ, SAN_OP_ATOMIC_REQ, SAN_OP_PUSH_GRNT,
		SAN_OP_PUSH_SLCTD_DATA, SAN_OP_PUSH_UNSLCTD_DATA, SAN_OP_PUSH_PACKED,
		SAN_OP_PULL_DATA};
	struct san_pdl_room room = *had;

	while (to_send[side] > 0 && *nb_visit < pair.pdl[side]->conf.quantum) {
		struct san_pdl_entry e = {.op = ops[san_prng_below(&rnd, RTE_DIM(ops))]};
		enum san_win win = san_pdl_rx_win_of(e.op, 0);
		uint16_t *left = win == SAN_WIN_REQ ? &room.nb_req : &room.nb_data;
		struct pair_pkt k;

		if (*left == 0 || (san_pdl_is_counted(e.op) && room.nb_credit == 0))
			return;
		--*left;
		room.nb_credit -= san_pdl_is_counted(e.op);
		e.rsn = next_rsn[side]++;
		san_pdl_tx_assign(pair.pdl[side], pair.c[side], &e, pair.now);
		model_rtx_sent(&model[side][win], e.op, e.rsn);
		PROP_CHECK(model_rtx_item(&model[side][win], e.psn)->rsn == e.rsn);
		pair_build(&pair, side, &e, &k);
		launch(1 - side, &k);
		to_send[side]--;
		++*nb_visit;
	}
}

static void
visit(int side)
{
	struct san_pdl *pdl = pair.pdl[side];
	struct san_pdl_conn *c = san_pdl_sched_next(pdl);
	struct san_pdl_entry *e;
	struct san_pdl_room room;
	struct pair_pkt k;
	uint32_t n = 0;

	if (c == NULL)
		return;
	PROP_CHECK(c == pair.c[side]);
	while (n < pdl->conf.quantum && (e = san_pdl_tx_again(pdl, c, pair.now)) != NULL) {
		pair_build(&pair, side, e, &k);
		launch(1 - side, &k);
		n++;
	}
	san_pdl_tx_room(pdl, c, pair.now, &room);
	send_new(side, &room, &n);
	/* PCB-2: what is under way is never more than the virtual window. */
	PROP_CHECK(c->pcb.inflight <= (uint32_t)c->pcb.first_win - 1);
	san_pdl_sched_end(pdl, c, n >= pdl->conf.quantum);
}

static void
transmit(int side)
{
	struct pair_pkt k;

	for (uint32_t n = 0; n < 3; n++)
		visit(side);
	for (uint32_t n = 0; pair_owed(&pair, side, &k); n++) {
		PROP_CHECK(n < 2); /* at most an ACK and a PROBE */
		launch(1 - side, &k);
	}
}

/* ---- run ---- */

static bool
all_done(void)
{
	for (uint32_t side = 0; side < 2; side++) {
		if (to_send[side] != 0)
			return false;
		for (uint32_t win = 0; win < SAN_WIN_MAX; win++) {
			for (uint32_t i = 0; i < model[side][win].nb; i++) {
				if (model[side][win].item[i].nb_done == 0)
					return false;
			}
		}
	}
	return true;
}

static void
setup_cable(void)
{
	const struct sim_link_fault fault = {
		.loss_ppm = san_prng_below(&rnd, 4) * 66000,
		.dup_ppm = san_prng_below(&rnd, 3) * 50000,
		.dup_ns = san_prng_below(&rnd, 100000),
		.reorder_ppm = san_prng_below(&rnd, 3) * 100000,
		.reorder_ns = 100000,
	};

	if (pool == NULL)
		pool = test_eal_pool("prop_rtx", NB_FLIGHT, sizeof(struct pair_pkt));
	cable_init(&cable, pool, san_prng_u64(&rnd));
	cable_set_fault(&cable, &fault);
}

static void
setup(uint64_t seed)
{
	struct san_pdl_conf conf = pair_conf();
	static const uint16_t windows[] = {2, 3, 16, 64, 256};

	san_prng_seed(&rnd, seed);
	setup_cable();
	refuse = san_prng_below(&rnd, 3) * 60;
	hold = san_prng_below(&rnd, 3) * 200;
	drop_held = san_prng_below(&rnd, 3) * 150;
	withdraw = san_prng_below(&rnd, 3) * 10;
	conf.first_psn = 0u - san_prng_below(&rnd, 300);
	conf.max_retries = 30;
	conf.budget_pkts = chance(300) ? 1 + san_prng_below(&rnd, 20) : 65536;
	conf.cc = (uint8_t)(seed % SAN_CC_MAX);
	pair_open(&pair, &conf, windows[san_prng_below(&rnd, 5)], windows[san_prng_below(&rnd, 5)]);
	memset(model, 0, sizeof(model));
	for (uint32_t side = 0; side < 2; side++) {
		to_send[side] = san_prng_below(&rnd, 300);
		next_rsn[side] = 0u - san_prng_below(&rnd, 100);
		for (uint32_t win = 0; win < SAN_WIN_MAX; win++)
			model[side][win].first_psn = conf.first_psn;
		san_pdl_sched_kick(pair.pdl[side], pair.c[side]);
	}
}

static void
check_bases(void)
{
	san_pdl_check(pair.pdl[0]);
	san_pdl_check(pair.pdl[1]);
	for (uint32_t side = 0; side < 2; side++) {
		for (uint32_t win = 0; win < SAN_WIN_MAX; win++)
			PROP_CHECK(pair.c[1 - side]->rx[win].base ==
				   model_rtx_base(&model[side][win]));
	}
}

static void
step(uint64_t start_ns)
{
	uint64_t next = cable_next_ns(&cable);
	struct pair_pkt k;
	int to;

	for (int side = 0; side < 2; side++) {
		if (san_pdl_sched_has_work(pair.pdl[side]))
			next = pair.now + 200;
		next = san_time_min(next, san_wheel_deadline_ns(&pair.pdl[side]->wheel));
	}
	/* Held packets are the ULP's business: it comes by now and then. */
	next = san_time_min(next, pair.now + 50000);
	pair_pass(&pair, next > pair.now ? next - pair.now : 1);
	while (next_arrival(&k, &to))
		arrive(to, &k);
	for (int side = 0; side < 2; side++) {
		settle_held(side);
		if (chance(withdraw))
			withdraw_some(side);
		transmit(side);
		PROP_CHECK(!pair.c[side]->failed);
	}
	check_bases();
	PROP_CHECK(pair.now - start_ns < END_NS);
}

static void
run(uint64_t seed)
{
	uint64_t start_ns, done_ns;

	setup(seed);
	start_ns = pair.now;
	while (!all_done())
		step(start_ns);
	/* Then it falls silent: what is still owed goes, and nothing more. */
	done_ns = pair.now;
	while (pair.now < done_ns + 10 * SAN_NS_PER_MS)
		step(start_ns);
	for (uint32_t side = 0; side < 2; side++) {
		struct san_pdl *pdl = pair.pdl[side];

		PROP_CHECK(pdl->inflight == 0 && pdl->nb_tokens == 0 && pdl->nb_active == 0);
		PROP_CHECK(pdl->free_wide.nb == pdl->free_wide.max);
		PROP_CHECK(!san_pdl_sched_has_work(pdl) && cable_next_ns(&cable) == SAN_TIME_NEVER);
		PROP_CHECK(pdl->drops[SAN_DROP_ACK_BEYOND] == 0);
	}
	pair_close(&pair);
	cable_fini(&cable);
}

PROP_MAIN("everything is acknowledged exactly once", run)
