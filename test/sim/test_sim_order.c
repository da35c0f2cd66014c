/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Order where it is guaranteed, independence where it is not, and exactly once under any faults
 * (RT-14, RT-15); wrap-around of numbers (RT-3).
 */

#include "pair.h"

#define NB  300
#define LEN 4000 /* bytes per send: three packets */

static void
tune_wrap(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->pdl.fixed_psn = true;
	conf->pdl.first_psn = 0xffffff00u + node;
}

/* Each send has its own bytes, and must arrive once, and in order if ordered. */
static void
numbered_sends(bool ordered)
{
	static bool seen[NB];
	uint32_t i, nb_posted = 0, nb_done = 0, nb_rcvd = 0;
	uint64_t end;

	memset(seen, 0, sizeof(seen));
	pair.param.ordered = ordered;
	pair_open((uint64_t)NB * LEN);
	for (i = 0; i < NB; i++)
		world_pattern(pair.a + i * LEN, LEN, i * 1000);
	for (i = 0; i < 200; i++)
		world_post_recv(pair.w, pair.qb, pair.b + i * LEN, LEN, i);
	end = pair.w->now_ns + PAIR_LIMIT;
	while (nb_done < NB || nb_rcvd < NB) {
		assert_true(pair.w->now_ns < end);
		while (nb_posted < NB) {
			struct san_ulp_wr wr;

			world_wr(&wr, RTSAN_WR_SEND, pair.a + nb_posted * LEN, LEN, 0, 0, nb_posted,
				 0);
			if (!world_try_post(pair.w, pair.qa, &wr))
				break;
			nb_posted++;
		}
		world_step(pair.w);
		while (san_ulp_cq_poll(pair.w->qp[pair.qa].send_cq, &pair.wc, 1)) {
			assert_int_equal(pair.wc.status, SAN_ST_OK);
			if (ordered)
				assert_int_equal(pair.wc.wr_id, nb_done);
			nb_done++;
		}
		while (san_ulp_cq_poll(pair.w->qp[pair.qb].recv_cq, &pair.wc, 1)) {
			uint8_t *buf = pair.b + pair.wc.wr_id * LEN;

			assert_int_equal(pair.wc.byte_len, LEN);
			/* its bytes say which send it is */
			i = ordered ? nb_rcvd : 0;
			for (; i < NB && !world_pattern_ok(buf, LEN, i * 1000); i++)
				assert_false(ordered);
			assert_true(i < NB);
			assert_false(seen[i]);
			seen[i] = true;
			nb_rcvd++;
			if (nb_rcvd + 200 <= NB)
				world_post_recv(pair.w, pair.qb, pair.b + (nb_rcvd + 199) * LEN,
						LEN, nb_rcvd + 199);
		}
	}
	/* nothing arrives twice */
	world_run_for(pair.w, SAN_NS_PER_S);
	assert_int_equal(san_ulp_cq_poll(pair.w->qp[pair.qb].recv_cq, &pair.wc, 1), 0);
	if (pair.conf.link.drop_ppm != 0)
		assert_true(san_core_pdl(pair.w->node[0].core)->stats.nb_rtx > 0);
	if (ordered && pair.conf.link.reorder_ppm != 0)
		assert_true(san_core_tl(pair.w->node[1].core)->cam.nb_inserts > 0); /* RT-19 */
	pair_close();
}

PAIR_CASE(sim_order__exactly_once_in_order)
{
	static const uint32_t drops[] = {0, 1000, 10000, 50000, 200000};

	for (unsigned int i = 0; i < RTE_DIM(drops); i++) {
		world_conf_bad_link(&pair.conf, 20 + i);
		pair.conf.link.drop_ppm = drops[i];
		numbered_sends(true);
		numbered_sends(false);
	}
}

PAIR_CASE(sim_order__numbers_wrap)
{
	world_conf_bad_link(&pair.conf, 31); /* RT-3 */
	pair.conf.tune = tune_wrap;
	numbered_sends(true);
	numbered_sends(false);
	world_conf_default(&pair.conf);
	pair.conf.tune = tune_wrap;
	numbered_sends(true);
}

/* Drops every packet of one RSN while *hold* is set. */
struct hold_rsn {
	uint32_t rsn;
	bool armed, hold;
};

static int
hold_one_rsn(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	struct hold_rsn *h = arg;
	struct san_wire_pkt pkt;

	if (from != 0 || !h->hold || !world_parse(m, &pkt) || pkt.op != SAN_OP_PUSH_UNSLCTD_DATA)
		return 1;
	if (!h->armed) {
		h->rsn = pkt.rsn;
		h->armed = true;
	}
	return pkt.rsn == h->rsn ? 0 : 1;
}

/* RT-15: the packets of one transaction are lost; no other one is delayed. */
PAIR_CASE(sim_order__unordered_waits_for_nothing)
{
	struct hold_rsn h = {.hold = true};
	uint64_t start;

	pair.param.ordered = false;
	pair_open(65536);
	pair_filter(hold_one_rsn, &h);
	start = pair.w->now_ns;
	for (uint32_t i = 0; i < 20; i++)
		pair_post(true, RTSAN_WR_PUSH, 0, 1000, i, 0);
	for (uint32_t i = 1; i < 20; i++) {
		assert_int_equal(pair_wait(true, false), SAN_ST_OK);
		assert_int_not_equal(pair.wc.wr_id, 0);
	}
	/* well below any timeout: a few round trips */
	assert_true(pair.w->now_ns - start < 200 * SAN_NS_PER_US);
	h.hold = false;
	pair_wait_for(true, false, SAN_ST_OK, 0);
}

/* RT-14: on an ordered connection nothing overtakes. */
PAIR_CASE(sim_order__ordered_waits)
{
	struct hold_rsn h = {.hold = true};

	pair_open(65536);
	pair_filter(hold_one_rsn, &h);
	memset(pair.a, 0x55, 65536);
	for (uint32_t i = 0; i < 20; i++)
		pair_post(true, RTSAN_WR_PUSH, i * 1000, 1000, i, 0);
	assert_false(world_wait(pair.w, pair.qa, false, &pair.wc, 2 * SAN_NS_PER_MS));
	assert_int_equal(pair.b[1000], 0); /* not placed either: placement is not relaxed here */
	h.hold = false;
	for (uint32_t i = 0; i < 20; i++)
		pair_wait_for(true, false, SAN_ST_OK, i);
}

/* RULE-3: relaxed placement places on arrival, and completes in order. */
PAIR_CASE(sim_order__relaxed_places_early)
{
	struct hold_rsn h = {.hold = true};

	pair.param.relaxed = true;
	pair_open(65536);
	pair_filter(hold_one_rsn, &h);
	memset(pair.a, 0x55, 65536);
	for (uint32_t i = 0; i < 20; i++)
		pair_post(true, RTSAN_WR_PUSH, i * 3000, 3000, i, 0);
	assert_false(world_wait(pair.w, pair.qa, false, &pair.wc, 2 * SAN_NS_PER_MS));
	assert_int_equal(pair.b[3000], 0x55);
	assert_int_equal(pair.b[0], 0);
	h.hold = false;
	for (uint32_t i = 0; i < 20; i++)
		pair_wait_for(true, false, SAN_ST_OK, i);
}
