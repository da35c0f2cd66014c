/* SPDX-License-Identifier: BSD-3-Clause */

/* Packed packets (RT-34): what shares one, and how it ends. */

#include "tl_pack.h"

UNIT_FIXTURE(.setup = setup_packed, .teardown = pair_close);

/* ---- what shares a packet ---- */

UNIT_CASE(san_tl_pack__posted_together)
{
	const struct san_tl_stats *tx = &pair.h[0].tl->stats, *rx = &pair.h[1].tl->stats;
	struct san_wire_pkt *p;

	pair.f[1].nb_recvs = 6;
	for (uint32_t i = 0; i < 9; i++)
		assert_int_equal(pair_push(i, (uint8_t)(i % 3), NEVER, 50 + i), 0);
	assert_int_equal(pair_tx(0), 1);
	p = pair_pkt(0);
	assert_int_equal(p->op, PACKED);
	assert_int_equal(p->rsn, pair_rsn(0));
	assert_int_equal(p->length, 9);
	assert_int_equal(p->flags, 0);
	/* three of each kind; data in whole words */
	assert_int_equal(p->payload_len, 3 * (16 + 4 + 20) + 3 * 52 + 4 * 56 + 2 * 60);
	assert_int_equal(pair.c[0]->tx[SAN_WIN_DATA].next - p->psn, 1);
	assert_int_equal(pair.c[0]->pcb.inflight, 1);
	assert_int_equal(san_pdl_win_tx_entry(pair.c[0]->txb, SAN_WIN_DATA, p->psn)->len,
			 p->payload_len);
	assert_int_equal(pair_tc(0)->nb_msgs, 9);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(pair.f[1].imm, 0xabcd0008);
	assert_int_equal(pair_tc(1)->rx_base, pair_rsn(9));
	pair_settle();
	assert_all_done(9, 50);
	assert_int_equal(pair_tc(0)->nb_msgs, 0);
	assert_true(tx->nb_packed_tx == 1 && tx->nb_packed_tx_messages == 9);
	assert_true(rx->nb_packed_rx == 1 && rx->nb_packed_rx_messages == 9 && rx->nb_served == 9);
}

UNIT_CASE_IN(san_tl_pack__unordered, setup_packed_unordered)
{
	pair_pushes(0, 20);
	assert_int_equal(pair_tx(0), 3); /* 8 of 116 bytes in each of 1000 */
	assert_int_equal(pair_pkt(2)->length, 4);
	for (uint32_t i = 3; i > 0; i--)
		assert_int_equal(pair_rx(1, i - 1), SAN_DROP_NONE);
	assert_int_equal(pair.f[1].nb_done, 20);
	assert_int_equal(pair.f[1].done[0], pair_rsn(16)); /* nothing waits (RT-15) */
	assert_settles(20);
	assert_int_equal(pair_tc(1)->rx_base, pair_rsn(20));
}

UNIT_CASE(san_tl_pack__one_goes_as_it_did)
{
	PUSH(0);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_pkt(0)->op, SAN_OP_PUSH_UNSLCTD_DATA);
	PUSH(1); /* nothing is added to a packet in flight */
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_pkt(0)->op, SAN_OP_PUSH_UNSLCTD_DATA);
	assert_int_equal(pair.h[0].tl->stats.nb_packed_tx, 0);
}

/* Only consecutive RSNs, complete and unsolicited ones. */
UNIT_CASE(san_tl_pack__what_ends_a_run)
{
	pair_pushes(0, 2);
	assert_int_equal(pair_pull(2, 10), 0);
	pair_pushes(3, 2);
	assert_int_equal(pair_push(5, SAN_KIND_PUSH, SAN_SOLICIT_ALWAYS, 10), 0);
	pair_pushes(6, 2);
	assert_int_equal(pair_push(8, SAN_KIND_PUSH, NEVER, 1500), 0);
	pair_pushes(9, 2);
	assert_int_equal(pair_add(11, 1), 0);
	PUSH(12);
	/* requests first; then what needs no grant (RULE-3) */
	assert_int_equal(pair_tx(0), 5);
	assert_int_equal(pair_pkt(pair_find(PACKED, 0))->rsn, pair_rsn(0));
	assert_int_equal(pair_pkt(pair_find(PACKED, 0))->length, 2);
	assert_int_equal(pair_pkt(pair_find(PACKED, 1))->rsn, pair_rsn(3));
	assert_int_equal(pair_pkt(pair_find(PACKED, 1))->length, 2);
	pair_rx_all(1);
	pair_settle();
	assert_int_equal(pair.h[0].tl->stats.nb_packed_tx, 4); /* 6 and 7, 9 and 10 */
	assert_int_equal(pair.h[0].tl->stats.nb_packed_tx_messages, 8);
	assert_int_equal(pair.f[0].nb_cmpl, 13);
}

/* Nor one that must request a grant and has not, because the request window is full. */
UNIT_CASE(san_tl_pack__not_solicited)
{
	pair.c[0]->tx[SAN_WIN_REQ].size = 2;
	assert_int_equal(pair_pull(0, 10), 0);
	assert_int_equal(pair_pull(1, 10), 0);
	assert_int_equal(pair_tx(0), 2);
	pair_pushes(2, 2);
	assert_int_equal(pair_push(4, SAN_KIND_PUSH, SAN_SOLICIT_ALWAYS, 10), 0);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_pkt(0)->op, PACKED);
	assert_int_equal(pair_pkt(0)->length, 2);
	assert_settles(5);
}

UNIT_CASE(san_tl_pack__fills_the_packet)
{
	/* 16 + 472 and 16 + 496 are 1000 */
	assert_int_equal(pair_push(0, SAN_KIND_PUSH, NEVER, 469), 0);
	assert_int_equal(pair_push(1, SAN_KIND_PUSH, NEVER, 496), 0);
	/* with one more byte there are four */
	assert_int_equal(pair_push(2, SAN_KIND_PUSH, NEVER, 472), 0);
	assert_int_equal(pair_push(3, SAN_KIND_PUSH, NEVER, 497), 0);
	assert_int_equal(pair_tx(0), 3);
	assert_int_equal(pair_pkt(0)->payload_len, 1000);
	assert_int_equal(pair_pkt(1)->op, SAN_OP_PUSH_UNSLCTD_DATA);
	assert_int_equal(pair_pkt(2)->op, SAN_OP_PUSH_UNSLCTD_DATA);
	/* its own header may exceed the limit */
	assert_int_equal(pair_push(4, SAN_KIND_PUSH, NEVER, 1000), 0);
	assert_int_equal(pair_push(5, SAN_KIND_PUSH, NEVER, 0), 0);
	assert_int_equal(pair_tx(0), 2);
	assert_int_equal(pair_pkt(0)->op, SAN_OP_PUSH_UNSLCTD_DATA);
}

UNIT_CASE_IN(san_tl_pack__so_many_at_most, setup_many)
{
	for (uint32_t i = 0; i < SAN_WIRE_PACK_MAX + 2; i++)
		assert_int_equal(pair_push(i % 60, SAN_KIND_PUSH, NEVER, 0), 0);
	assert_int_equal(pair_tx(0), 2);
	assert_int_equal(pair_pkt(0)->length, SAN_WIRE_PACK_MAX);
	assert_int_equal(pair_pkt(1)->length, 2);
	assert_int_equal(pair_pkt(1)->rsn, pair_rsn(SAN_WIRE_PACK_MAX));
}

/* PCB-3: a message beyond the limit is not sent, packed neither. */
UNIT_CASE(san_tl_pack__message_limit)
{
	pair.c[0]->pcb.msg_limit = 3;
	pair_pushes(0, 5);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_pkt(0)->length, 3);
	assert_int_equal(pair_tc(0)->nb_msgs, 3);
	pair_settle();
	assert_all_done(5, 100);
}

UNIT_CASE(san_tl_pack__not_negotiated)
{
	pair_tc(0)->peer.pack = false;
	pair_pushes(0, 4);
	assert_int_equal(pair_tx(0), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(pair_pkt(i)->op, SAN_OP_PUSH_UNSLCTD_DATA);
}

/* A peer that packs without agreement is refused. */
UNIT_CASE(san_tl_rx__packed_but_not_negotiated)
{
	pair_tc(1)->peer.pack = false;
	pair_pushes(0, 2);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_pkt(0)->op, PACKED);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_OPCODE);
	assert_int_equal(pair.f[1].nb_done, 0);
	assert_int_equal(pair_tc(1)->rx_base, pair_rsn(0));
	assert_int_equal(pair.h[1].tl->stats.nb_packed_rx, 0);
}

/* RT-17: a resent packet is the same, whatever was posted meanwhile. */
UNIT_CASE(san_tl_pack_fill__again_the_same)
{
	struct tl_pkt first;

	pair_pushes(0, 2);
	assert_int_equal(pair_tx(0), 1);
	first = keep(0);
	PUSH(2);
	pair_tx(0);
	do
		pair_wait(100 * SAN_NS_PER_US);
	while (pair_tx(0) == 0 || pair_find(PACKED, 0) == UINT32_MAX);
	assert_int_equal(pair_pkt(0)->psn, san_wire_pkt(first.m)->w.psn);
	assert_int_equal(pair_pkt(0)->length, 2);
	assert_int_equal(pair_pkt(0)->payload_len, san_wire_pkt(first.m)->w.payload_len);
	assert_memory_equal(rte_pktmbuf_mtod(pair.out[0].m, char *),
			    rte_pktmbuf_mtod(first.m, char *), pair_pkt(0)->payload_len);
	assert_int_equal(pair.h[0].tl->stats.nb_packed_tx, 1); /* counted once */
	rte_pktmbuf_free(first.m);
	pair_settle();
	assert_all_done(3, 100);
}

/* ---- target: ahead of its turn ---- */

UNIT_CASE(san_tl_pack_rx__held_until_its_turn)
{
	struct san_pdl_rxw *w = &pair.c[1]->rx[SAN_WIN_DATA];
	uint32_t psn;

	pair_pushes(0, 20);
	assert_int_equal(pair_tx(0), 3);
	psn = pair_pkt(0)->psn;
	assert_int_equal(pair_rx(1, 2), SAN_DROP_NONE);
	assert_int_equal(pair_rx(1, 1), SAN_DROP_NONE);
	assert_int_equal(pair.h[1].tl->nb_held, 2); /* one mbuf each, complete */
	assert_int_equal(pair.f[1].nb_done, 0);
	assert_true(san_bitmap_test(&w->rcvd, psn + 1));
	assert_false(san_bitmap_test(&w->acked, psn + 1));
	assert_int_equal(pair_rx(1, 1), SAN_DROP_DUPLICATE);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(w->base, psn + 3);
	pair_settle();
	assert_all_done(20, 100);
}

UNIT_CASE_AGAIN(san_tl_pack_rx__held_until_its_turn, _relaxed, setup_packed_relaxed)

/* RULE-8: no place to hold it; it is resent under its PSN. */
UNIT_CASE(san_tl_pack_rx__red)
{
	struct san_wire_pkt *p;

	pair.h[1].tl->conf.max_held = 0;
	pair_pushes(0, 10);
	assert_int_equal(pair_tx(0), 2);
	assert_int_equal(pair_rx(1, 1), SAN_DROP_RED_ZONE);
	pair_tx(1);
	p = pair_pkt(pair_find(SAN_OP_NACK, 0));
	assert_int_equal(p->status, SAN_ST_RESOURCE);
	assert_int_equal(p->flags, SAN_F_WIN_DATA);
	assert_int_equal(pair_rx(0, 0), SAN_DROP_NONE);
	assert_int_equal(pair.h[0].pdl->stats.nb_withdrawn, 0);
	pair_settle();
	assert_all_done(10, 100);
	assert_int_equal(pair.h[0].tl->stats.nb_packed_tx, 2);
}

/* A pull at the base has to wait: it is the pull's RNR, and the packet stays packed. */
UNIT_CASE(san_tl_pack_rx__behind_a_pull)
{
	struct san_tl_rxn *r;

	assert_int_equal(pair_pull(0, 10), 0);
	pair_pushes(1, 2);
	assert_int_equal(pair_tx(0), 2);
	r = san_tl_rxn_new(pair.h[1].tl, pair_tc(1), pair_rsn(0), false);
	r->type = SAN_TL_PULL;
	assert_int_equal(pair_rx(1, 1), SAN_DROP_RNR);
	pair_tx(1);
	assert_int_equal(pair_pkt(0)->rsn, pair_rsn(0));
	assert_int_equal(pair_pkt(0)->flags, SAN_F_WIN_DATA);
	assert_int_equal(pair_pkt(0)->delay_us, 100);
	assert_int_equal(pair_rx(0, 0), SAN_DROP_NONE);
	san_tl_rxn_free(pair.h[1].tl, pair_tc(1), r);
	assert_settles(3);
	assert_int_equal(pair.h[0].tl->stats.nb_packed_tx, 2); /* withdrawn, and packed again */
}

/* ---- no other change ---- */

/* What the target received and what the initiator was told. */
struct outcome {
	uint32_t nb_done, nb_cmpl, nb_pkts, done[PAIR_LOG];
	uint64_t cookie[PAIR_LOG];
	uint8_t status[PAIR_LOG];
};

static void
run_workload(uint64_t seed, bool pack, struct outcome *o)
{
	struct tl_link l = pair_link(true);
	struct san_prng g;

	san_prng_seed(&g, seed);
	l.pack = pack;
	pair_open(&l, NULL);
	pair.f[1].nb_recvs = 20;
	pair.f[1].bad = SAN_ST_ACCESS;
	pair.f[1].bad_rsn = pair_rsn(san_prng_below(&g, 64));
	for (uint32_t i = 0; i < 60; i++) {
		uint32_t what = san_prng_below(&g, 12), len = san_prng_below(&g, 300);
		int rc = what == 11 ? pair_pull(i, len) :
				      pair_push(i, (uint8_t)(what % 3),
						what == 10 ? SAN_SOLICIT_ALWAYS : NEVER, len);

		assert_int_equal(rc, 0);
		if (san_prng_below(&g, 8) == 0)
			pair_xfer(0);
	}
	for (uint32_t i = 0; i < 100; i++) /* as far as there are receives */
		pair_turn();
	pair.f[1].nb_recvs += 40;
	san_tl_on_recv_posted(pair.h[1].tl, pair.slot[1], pair.now);
	pair_settle();
	*o = (struct outcome){
		.nb_done = pair.f[1].nb_done,
		.nb_cmpl = pair.f[0].nb_cmpl,
		.nb_pkts = (uint32_t)pair.c[0]->nb_tx_pkts,
	};
	memcpy(o->done, pair.f[1].done, sizeof(o->done));
	memcpy(o->cookie, pair.f[0].cookie, sizeof(o->cookie));
	memcpy(o->status, pair.f[0].status, sizeof(o->status));
	pair_close();
}

/* RT-14: neither the order nor a completion changes. */
UNIT_CASE_ALONE(packing__changes_no_outcome)
{
	struct outcome with, without;

	for (uint64_t seed = 1; seed <= 30; seed++) {
		run_workload(seed, true, &with);
		run_workload(seed, false, &without);
		assert_int_equal(with.nb_cmpl, 60);
		assert_int_equal(with.nb_cmpl, without.nb_cmpl);
		assert_int_equal(with.nb_done, without.nb_done);
		assert_memory_equal(with.done, without.done, sizeof(with.done));
		assert_memory_equal(with.cookie, without.cookie, sizeof(with.cookie));
		assert_memory_equal(with.status, without.status, sizeof(with.status));
		assert_int_not_equal(with.nb_pkts, without.nb_pkts);
	}
}
