/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two hosts back to back over a link that drops, duplicates and reorders, in
 * virtual time: any mix of pushes, sends, pulls and atomics, solicited or not,
 * on ordered, relaxed and unordered connections at once, refused, not ready or
 * given up, with any sizes of windows and pools. Against model_tl.h: exactly
 * once, in order, the right bytes, everything completes with what became of it,
 * and nothing is left behind. (RT-3, RT-14 .. RT-20, RT-23, RT-26, RT-27, RT-30,
 * RT-32, RT-33, PCB-3)
 */

#include <signal.h>

#include "cable.h"
#include "tl_host.h"

#include "model_tl.h"
#include "san_time.h"

#define LIMIT_NS  (600 * SAN_NS_PER_S) /* virtual */
#define LIMIT_RUN 3000000              /* steps */
#define BURST     32

/* One run: what was drawn, and the state of it. */
static struct {
	struct cable cable;
	uint64_t now;
	struct tl_host h[2];
	struct model_host mh[2];
	struct model_dir dirs[2][MODEL_CONNS];
	struct tl_link link[MODEL_CONNS];
	uint32_t abort; /* per 1000 steps */
	bool slow_recvs;
	uint64_t start_ns, close_ns, next_recv_ns;
} w;

static struct rte_mempool *pool;
static struct rte_hash *cams[2]; /* one so small that it rejects */

static uint32_t
below(uint32_t n)
{
	return san_prng_below(&w.cable.net.prng, n);
}

static bool
chance(uint32_t per_1000)
{
	return below(1000) < per_1000;
}

/* ---- drawing a run ---- */

static void
draw_txn(struct model_dir *d, uint32_t id, uint32_t mix)
{
	struct model_txn *x = &d->txns[id];
	uint32_t what = mix < 4 ? mix : below(4);
	static const uint8_t codes[] = {SAN_ST_ACCESS, SAN_ST_LENGTH, SAN_ST_REVOKED};

	memset(x, 0, sizeof(*x));
	x->req.type = what < 2 ? SAN_TL_PUSH : what == 2 ? SAN_TL_PULL :
							   SAN_TL_ATOMIC;
	x->req.addr = (uint64_t)id << 32;
	x->req.key = (uint32_t)san_prng_u64(&w.cable.net.prng);
	x->req.cookie = id;
	if (x->req.type == SAN_TL_ATOMIC) {
		x->req.op = chance(500) ? SAN_ATOMIC_FETCH_ADD : SAN_ATOMIC_CMP_SWAP;
		x->operand = below(4);
		x->swap = below(4);
	} else {
		x->req.length = chance(600) ? below(600) : below(MODEL_LEN);
	}
	if (x->req.type == SAN_TL_PUSH) {
		x->req.kind = (uint8_t)below(SAN_KIND_SEND_IMM + 1);
		x->req.imm = (uint32_t)san_prng_u64(&w.cable.net.prng);
		x->req.solicit = (uint8_t)below(SAN_KIND_SEND_IMM + 1);
	}
	if (chance(60))
		x->fate = (uint8_t)(1 + below(3));
	if (x->fate == FATE_REFUSE_DONE && x->req.type != SAN_TL_PUSH)
		x->fate = FATE_REFUSE_REQ;
	if (x->fate == FATE_REVOKE && (x->req.type == SAN_TL_ATOMIC || x->req.length == 0))
		x->fate = FATE_OK;
	x->code = codes[below(RTE_DIM(codes))];
	if (chance(40))
		x->nb_not_ready = (uint8_t)(1 + below(3));
}

static void
draw_dir(struct model_dir *d, const struct tl_link *l)
{
	uint32_t mix = below(12), nb_need = 0;

	memset(d, 0, offsetof(struct model_dir, txns));
	d->ordered = l->ordered;
	d->relaxed = l->relaxed;
	d->last_done = -1;
	d->last_begun = -1;
	d->nb = below(MODEL_TXNS);
	for (uint32_t id = 0; id < d->nb; id++) {
		draw_txn(d, id, mix);
		nb_need += model_needs_recv(&d->txns[id]);
	}
	d->nb_recvs_to_post = nb_need;
}

static void
draw_link(struct tl_link *l)
{
	l->ordered = chance(600);
	l->relaxed = l->ordered && chance(300);
	l->req_win = (uint16_t)(2 + (chance(300) ? 0 : below(62)));
	l->data_win = (uint16_t)(2 + (chance(300) ? 0 : below(126)));
	l->msg_limit = (uint16_t)(1 + below(chance(300) ? 3 : 64));
	l->n = (uint16_t)(1 + below(chance(300) ? 4 : 256));
	l->mtu = (uint16_t)(4 * (64 + below(192)));
	l->rnr_ms = (uint16_t)(chance(300) ? below(5) : 60000);
	l->first_rsn = 0xffffffff - below(40);
	l->pack = chance(750);
}

static void
draw_cable(void)
{
	const struct sim_link_fault fault = {
		.loss_ppm = chance(300) ? 0 : below(chance(500) ? SIM_PPM / 50 : SIM_PPM / 5),
		.dup_ppm = chance(300) ? 0 : below(SIM_PPM / 10),
		.dup_ns = below(200000),
		.reorder_ppm = chance(300) ? 0 : below(SIM_PPM / 3),
		.reorder_ns = 200000,
		.corrupt_ppm = chance(700) ? 0 : below(SIM_PPM / 50),
	};

	cable_set_fault(&w.cable, &fault);
	w.cable.conf.rate_mbps = chance(700) ? 0 : 1000 + below(100000);
	w.cable.conf.mark_bytes = 10000;
}

static void
draw_hosts(void)
{
	struct san_pdl_conf pdl;
	struct san_tl_conf tl;

	for (int i = 0; i < 2; i++) {
		tl_host_conf(&pdl, &tl);
		pdl.max_retries = 250;
		pdl.prng_seed = san_prng_u64(&w.cable.net.prng);
		pdl.first_psn = 0xffffffff - below(100);
		pdl.cc = chance(500) ? SAN_CC_FIXED : SAN_CC_SWIFT;
		tl.max_txns = 2 + below(chance(300) ? 4 : 300);
		tl.max_rxns = below(chance(500) ? 20 : 300);
		tl.max_held = 1 + below(chance(300) ? 4 : 300);
		tl.max_held_conn = 1 + below(tl.max_held);
		tl.budget_bytes = 1000 + below(chance(500) ? 3000 : 100000);
		tl.path_bytes = chance(500) ? 1 << 20 : below(20000);
		tl.expired_bytes = below(50000);
		tl.grant_bytes = 500 + below(8000);
		tl.solicit_len = below(10000);
		tl.policy = (uint8_t)below(2);
		tl.rnr_delay_us = below(300);
		tl.cam = cams[chance(200)];
		tl.ulp = &w.mh[i];
		tl_host_create(&w.h[i], (uint8_t)i, &pdl, &tl, pool, w.now);
	}
}

static void
draw_run(uint64_t seed)
{
	struct tl_host *h[2] = {&w.h[0], &w.h[1]};
	uint32_t nb = 0;
	uint16_t slot[2];

	cable_init(&w.cable, pool, seed);
	w.now = 1 + below(1000000);
	draw_cable();
	w.abort = chance(700) ? 0 : below(20);
	w.slow_recvs = chance(400);
	w.close_ns = chance(850) ? SAN_TIME_NEVER : w.now + below(20) * SAN_NS_PER_MS;
	w.next_recv_ns = w.now;
	draw_hosts();
	nb = 1 + below(MODEL_CONNS);
	for (uint32_t i = 0; i < nb; i++) {
		draw_link(&w.link[i]);
		tl_host_connect(h, &w.link[i], slot, w.now);
		w.h[0].pdl->conns[slot[0]].path.dst_port = SAN_WIRE_PORT;
		w.h[1].pdl->conns[slot[1]].path.dst_port = SAN_WIRE_PORT;
		draw_dir(&w.dirs[0][i], &w.link[i]);
		draw_dir(&w.dirs[1][i], &w.link[i]);
		w.dirs[0][i].first_rsn = w.link[i].first_rsn;
		w.dirs[1][i].first_rsn = w.link[i].first_rsn + 1;
		w.mh[0].slot[i] = slot[0];
		w.mh[1].slot[i] = slot[1];
		w.mh[0].out[i] = w.mh[1].in[i] = &w.dirs[0][i];
		w.mh[1].out[i] = w.mh[0].in[i] = &w.dirs[1][i];
		w.mh[0].room[i] = w.mh[1].room[i] = true;
	}
	w.mh[0].nb_conns = w.mh[1].nb_conns = nb;
}

/* ---- the link ---- */

/* Each packet's way is a little longer or shorter. */
static void
send(uint32_t from, struct tl_pkt *k)
{
	const struct san_wire_pkt *p = &san_wire_pkt(k->m)->w;

	if (p->op == SAN_OP_ACK)
		san_wire_build_ack(k->m, k->path, p, &k->ack);
	else
		san_wire_build(k->m, k->path, p);
	san_wire_icrc_seal(k->m);
	cable_send(&w.cable, 1 - (int)from, k->m, 5000 + below(2000), w.now);
}

static void
deliver(void)
{
	enum san_drop drop;
	struct tl_pkt k;
	int to;

	while ((k.m = cable_arrival(&w.cable, &to, w.now)) != NULL) {
		drop = san_wire_parse(k.m, SAN_WIRE_PORT, &san_wire_pkt(k.m)->w, &k.ack);
		PROP_CHECK(drop == SAN_DROP_NONE || w.cable.to[to].fault.corrupt_ppm != 0);
		if (drop != SAN_DROP_NONE) {
			rte_pktmbuf_free(k.m);
			continue;
		}
		tl_host_rx(&w.h[to], &k, w.now);
		san_tl_check(w.h[to].tl);
	}
}

/* ---- the programs on top ---- */

static void
submit(uint32_t side, uint32_t i)
{
	struct model_host *mh = &w.mh[side];
	struct model_dir *d = mh->out[i];
	int rc;

	while (mh->room[i] && d->next < d->nb) {
		d->txns[d->next].submitted = true;
		rc = san_tl_initiator_submit(w.h[side].tl, mh->slot[i], &d->txns[d->next].req,
					     w.now);
		if (rc != 0) {
			PROP_CHECK(rc == -EAGAIN);
			d->txns[d->next].submitted = false;
			mh->room[i] = false;
			return;
		}
		d->next++;
		if (chance(100))
			return;
	}
}

static void
post_recvs(uint32_t side, uint32_t i)
{
	struct model_host *mh = &w.mh[side];
	struct model_dir *d = mh->in[i];
	uint32_t n = w.slow_recvs ? RTE_MIN(d->nb_recvs_to_post, below(3)) : d->nb_recvs_to_post;

	if (n == 0)
		return;
	d->nb_recvs += n;
	d->nb_recvs_to_post -= n;
	san_tl_on_recv_posted(w.h[side].tl, mh->slot[i], w.now);
}

static void
give_up(uint32_t side, uint32_t i)
{
	struct model_host *mh = &w.mh[side];
	struct model_dir *d = mh->out[i];
	uint32_t id;

	if (d->next == 0)
		return;
	id = below(d->next);
	if (d->txns[id].completed)
		return;
	if (tl_host_abort(&w.h[side], mh->slot[i], id) == 0)
		d->txns[id].aborted = true;
}

static void
programs(void)
{
	bool recvs = w.now >= w.next_recv_ns;

	if (recvs)
		w.next_recv_ns = w.now + (w.slow_recvs ? below(1000) * SAN_NS_PER_US : 0);
	for (uint32_t side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < w.mh[side].nb_conns; i++) {
			submit(side, i);
			if (recvs)
				post_recvs(side, i);
			if (chance(w.abort))
				give_up(side, i);
		}
	}
}

/* ---- running ---- */

static bool
all_done(void)
{
	for (uint32_t side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < w.mh[side].nb_conns; i++) {
			const struct model_dir *d = w.mh[side].out[i];

			if (d->nb_completed != d->nb ||
			    !san_tl_is_drained(w.h[side].tl, w.mh[side].slot[i]))
				return false;
		}
	}
	return true;
}

static uint64_t
next_time(void)
{
	uint64_t next = cable_next_ns(&w.cable);

	for (uint32_t i = 0; i < 2; i++)
		next = san_time_min(next, tl_host_deadline_ns(&w.h[i]));
	for (uint32_t side = 0; side < 2; side++)
		for (uint32_t i = 0; i < w.mh[side].nb_conns; i++) {
			const struct model_dir *d = w.mh[side].out[i];

			if (w.mh[side].in[i]->nb_recvs_to_post != 0)
				next = san_time_min(next, w.next_recv_ns);
			if (w.mh[side].room[i] && d->next < d->nb)
				next = 0;
		}
	PROP_CHECK(next != SAN_TIME_NEVER || all_done());
	return next > w.now ? next : w.now + 500;
}

/* Nobody waits for a receive that is there. */
static void
check_receives(uint32_t side)
{
	struct model_host *mh = &w.mh[side];

	for (uint32_t i = 0; i < mh->nb_conns; i++) {
		const struct model_dir *d = mh->in[i];

		if (w.h[side].tl->conns[mh->slot[i]].grant_wait)
			PROP_CHECK(d->nb_recvs <= d->nb_set_aside);
	}
}

static void
step(void)
{
	struct tl_pkt out[BURST];
	uint32_t n;

	deliver();
	for (uint32_t i = 0; i < 2; i++) {
		PROP_CHECK(tl_host_tick(&w.h[i], w.now));
		san_tl_check(w.h[i].tl);
		check_receives(i);
	}
	programs();
	for (uint32_t i = 0; i < 2; i++) {
		n = tl_host_tx(&w.h[i], out, BURST, w.now);
		for (uint32_t k = 0; k < n; k++)
			send(i, &out[k]);
		san_tl_check(w.h[i].tl);
		if (chance(50)) /* it has a property test of its own, and takes its time */
			san_pdl_check(w.h[i].pdl);
	}
}

/* Everything is over: each request has its status, and only what must did happen. */
static void
judge(bool closed)
{
	for (uint32_t side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < w.mh[side].nb_conns; i++) {
			const struct model_dir *d = w.mh[side].out[i];

			PROP_CHECK(d->nb_completed == d->next);
			PROP_CHECK(d->nb_set_aside == 0 && d->nb_taken == 0);
			for (uint32_t id = 0; id < d->next && !closed; id++) {
				const struct model_txn *x = &d->txns[id];

				PROP_CHECK(x->completed && !x->begun);
				if (x->fate != FATE_OK && x->status == SAN_ST_OK)
					PROP_CHECK(x->aborted);
				if (x->status == SAN_ST_RNR)
					PROP_CHECK(w.now - w.start_ns >=
						   w.link[i].rnr_ms * SAN_NS_PER_MS);
			}
		}
	}
}

static void
nothing_left(void)
{
	cable_fini(&w.cable);
	for (uint32_t side = 0; side < 2; side++) {
		struct san_tl *tl = w.h[side].tl;
		struct san_pdl *pdl = w.h[side].pdl;

		for (uint32_t i = 0; i < w.mh[side].nb_conns; i++) {
			san_tl_conn_close(tl, w.mh[side].slot[i], MODEL_CLOSED, w.now);
			san_pdl_conn_del(pdl, &pdl->conns[w.mh[side].slot[i]]);
			san_pdl_slot_give(pdl, w.mh[side].slot[i]);
			san_tl_check(tl);
		}
		san_tl_death_flush(&w.h[side].death);
		PROP_CHECK(tl->free_txns.nb == tl->conf.max_txns);
		PROP_CHECK(tl->free_rxns.nb == tl->conf.max_rxns);
		PROP_CHECK(tl->cam.nb_used == 0 && tl->nb_held == 0);
		PROP_CHECK(tl->budget_used == 0 && tl->expired_used == 0 && tl->nb_admit == 0);
		PROP_CHECK(TAILQ_EMPTY(&tl->charges[0]) && TAILQ_EMPTY(&tl->charges[1]));
		PROP_CHECK(TAILQ_EMPTY(&tl->want_record) && TAILQ_EMPTY(&tl->want_budget));
	}
	PROP_CHECK(rte_hash_count(cams[0]) == 0 && rte_hash_count(cams[1]) == 0);
	PROP_CHECK(rte_mempool_full(pool));
}

/* An invariant of the code under test is broken: the seed is needed then, too. */
static void
on_abort(int sig)
{
	printf("not ok 1 - aborted\n# repeat with --seed %llu\n", (unsigned long long)prop_seed);
	fflush(stdout);
	_Exit(1);
}

static void
run(uint64_t seed)
{
	uint32_t n = 0;
	bool closed;

	if (pool == NULL) {
		pool = tl_host_pool(8191);
		cams[0] = san_tl_reorder_create_table("prop_tl", 4096, SOCKET_ID_ANY);
		cams[1] = san_tl_reorder_create_table("prop_tl_small", 8, SOCKET_ID_ANY);
		PROP_CHECK(cams[0] != NULL && cams[1] != NULL);
		signal(SIGABRT, on_abort);
	}
	draw_run(seed);
	w.start_ns = w.now;
	while (!all_done() && w.now < w.close_ns) {
		step();
		w.now = next_time();
		PROP_CHECK(w.now < w.start_ns + LIMIT_NS);
		PROP_CHECK(++n < LIMIT_RUN);
	}
	closed = !all_done();
	nothing_left();
	judge(closed);
	tl_host_destroy(&w.h[0]);
	tl_host_destroy(&w.h[1]);
}

PROP_MAIN("transactions equal the model", run)
