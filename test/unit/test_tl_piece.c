/* SPDX-License-Identifier: BSD-3-Clause */

/* Packets that arrive in pieces: taken once, when complete, and bounded before. (RT-37) */

#include "tl_pack.h"

#define LEN       900
#define THIRD     (LEN / 3)
#define PUSHES(n) pair_requests(SAN_KIND_PUSH, NEVER, LEN, 0, n)

UNIT_FIXTURE(.setup = setup_packed, .teardown = pair_close);

/* *len* bytes at *from* of packet *i* of pair.out arrive at *side*. */
static enum san_drop
rx_piece(int side, uint32_t i, uint16_t from, uint16_t len)
{
	struct tl_pkt k = pair.out[i];
	struct san_wire_pkt *p;

	k.m = tl_host_copy(&pair.h[side], k.m);
	p = &san_wire_pkt(k.m)->w;
	p->flags |= SAN_F_PIECE;
	p->whole_len = p->payload_len;
	p->piece_off = from;
	rte_pktmbuf_trim(k.m, p->payload_len - from - len);
	rte_pktmbuf_adj(k.m, from);
	p->payload_len = len;
	return pair_arrive(side, k);
}

static enum san_drop
rx_third(uint32_t i, uint32_t third)
{
	return rx_piece(1, i, (uint16_t)(third * THIRD), THIRD);
}

/* In any order and duplicated: nothing is done before all is there, and then once. */
UNIT_CASE(piece__any_order_once)
{
	static const uint8_t orders[][3] = {
		{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	for (uint32_t i = 0; i < RTE_DIM(orders); i++) {
		pair_push(i, SAN_KIND_PUSH, SAN_SOLICIT_NEVER, LEN);
		assert_int_equal(pair_tx(0), 1);
		assert_int_equal(rx_third(0, orders[i][0]), SAN_DROP_NONE);
		assert_int_equal(rx_third(0, orders[i][0]), SAN_DROP_DUPLICATE);
		assert_int_equal(rx_third(0, orders[i][1]), SAN_DROP_NONE);
		assert_int_equal(pair.h[1].tl->nb_held, 2);
		assert_true(pair.f[1].nb_push_req == i && pair.f[1].nb_done == i);
		assert_int_equal(rx_third(0, orders[i][2]), SAN_DROP_NONE);
		assert_int_equal(pair.h[1].tl->nb_held, 0);
		assert_int_equal(pair.f[1].nb_done, i + 1);
		assert_true(pair_has_bytes(i, LEN));
		assert_int_equal(rx_third(0, 1), SAN_DROP_OLD);
		assert_int_equal(pair_rx(1, 0), SAN_DROP_OLD);
		assert_settles(i + 1);
	}
}

UNIT_CASE_AGAIN(piece__any_order_once, _unordered, setup_packed_unordered)

/* The path has changed again: pieces of another size are useless. */
UNIT_CASE(piece__cut_elsewhere)
{
	PUSHES(1);
	pair_tx(0);
	rx_piece(1, 0, 0, 400);
	rx_piece(1, 0, 400, 400);
	rx_third(0, 0);
	rx_third(0, 1);
	assert_int_equal(pair.h[1].tl->nb_held, 2);
	assert_int_equal(pair.f[1].nb_push_req, 0);
	rx_third(0, 2);
	assert_true(pair_has_bytes(0, LEN));
	assert_int_equal(pair.f[1].nb_done, 1);
	assert_int_equal(pair.h[1].tl->drops[SAN_DROP_HELD], 2);
	pair_settle();
}

/* The whole packet arrives: its pieces are dropped by later ones, or after a time. */
UNIT_CASE(piece__whole_after_all)
{
	PUSHES(2);
	assert_int_equal(pair_tx(0), 2);
	rx_third(0, 0);
	pair_rx(1, 0);
	assert_int_equal(pair.f[1].nb_done, 1);
	assert_int_equal(pair.h[1].tl->nb_held, 1);
	rx_third(1, 0);
	assert_int_equal(pair.h[1].tl->nb_held, 1);
	rx_third(1, 1);
	rx_third(1, 2);
	assert_int_equal(pair.f[1].nb_done, 2);
	assert_int_equal(pair.h[1].tl->nb_held, 0);
	pair_settle();
}

/* RT-35: a few for each connection, those of the lowest PSNs, and for a limited time. */
UNIT_CASE(piece__bounded)
{
	struct san_tl *tl = pair.h[1].tl;

	PUSHES(40);
	assert_int_equal(pair_tx(0), 32);
	for (uint32_t i = 1; i < 32; i++)
		assert_int_equal(rx_third(i, 0), SAN_DROP_NONE);
	assert_int_equal(rx_third(31, 1), SAN_DROP_NONE);
	assert_int_equal(tl->nb_held, 32);
	assert_int_equal(rx_third(31, 2), SAN_DROP_RED_ZONE);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(rx_third(0, i), SAN_DROP_NONE);
	assert_true(pair_has_bytes(0, LEN));
	assert_int_equal(tl->drops[SAN_DROP_HELD], 3); /* each made room for one of PSN 0 */
	assert_int_equal(*san_tl_host_held(tl, pair_tc(1)), tl->nb_held);
	pair_drop_all();
	for (uint32_t i = 0; i < 300; i++)
		pair_tick((pair.now += SAN_NS_PER_MS, 1));
	assert_int_equal(tl->nb_held, 0);
	pair_settle();
	assert_int_equal(pair.f[1].nb_done, 40);
}

/* As many as may be held; one connection at a time completes the packet at its base. */
UNIT_CASE(piece__red)
{
	struct san_tl *tl = pair.h[1].tl;
	struct san_tl_conn *other = &tl->conns[TL_HOST_CONNS - 1];

	tl->conf.max_held_conn = 1;
	PUSHES(2);
	assert_int_equal(pair_tx(0), 2);
	assert_int_equal(rx_third(1, 0), SAN_DROP_NONE);
	assert_int_equal(rx_third(1, 1), SAN_DROP_RED_ZONE);
	assert_int_equal(tl->nb_held, 1);
	tl->joiner = other;
	tl->join_ns = pair.now + 1;
	assert_int_equal(rx_third(0, 0), SAN_DROP_RED_ZONE);
	pair.now++;
	assert_int_equal(rx_third(0, 0), SAN_DROP_NONE);
	assert_ptr_equal(tl->joiner, pair_tc(1));
	assert_int_equal(rx_third(0, 1), SAN_DROP_NONE);
	assert_int_equal(tl->nb_held, 3);
	assert_int_equal(rx_third(0, 2), SAN_DROP_NONE);
	assert_true(tl->nb_held == 1 && tl->joiner == NULL);
	assert_int_equal(pair.f[1].nb_done, 1);
	pair_settle();
	assert_int_equal(pair.f[1].nb_done, 2);
}

/* The connection that may hold more loses that with its place. */
UNIT_CASE(piece__joiner_too_slow)
{
	pair.h[1].tl->conf.max_held = 0;
	PUSHES(1);
	pair_tx(0);
	assert_int_equal(rx_third(0, 0), SAN_DROP_NONE);
	assert_int_equal(rx_third(0, 1), SAN_DROP_NONE);
	san_tl_piece_drop(pair.h[1].tl, pair_tc(1), true, SAN_DROP_HELD);
	assert_true(pair.h[1].tl->nb_held == 0 && pair.h[1].tl->joiner == NULL);
	pair_settle();
	assert_int_equal(pair.f[1].nb_done, 1);
}

UNIT_CASE(piece__of_a_packed_packet)
{
	uint32_t len;

	pair_pushes(0, 3);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_pkt(0)->op, SAN_OP_PUSH_PACKED);
	len = pair_pkt(0)->payload_len;
	assert_int_equal(rx_piece(1, 0, 100, (uint16_t)(len - 100)), SAN_DROP_NONE);
	assert_int_equal(pair.f[1].nb_push_req, 0);
	assert_int_equal(rx_piece(1, 0, 0, 100), SAN_DROP_NONE);
	assert_int_equal(pair.f[1].nb_done, 3);
	/* one with invalid contents is refused, and was never requested */
	pair_pushes(3, 2);
	assert_int_equal(pair_tx(0), 1);
	rte_pktmbuf_mtod(pair.out[0].m, uint8_t *)[0] = 7;
	len = pair_pkt(0)->payload_len;
	assert_int_equal(rx_piece(1, 0, 100, (uint16_t)(len - 100)), SAN_DROP_NONE);
	assert_int_equal(rx_piece(1, 0, 0, 100), SAN_DROP_FIELD);
	assert_int_equal(pair.f[1].nb_push_req, 3);
	pair_settle();
	assert_int_equal(pair.f[1].nb_done, 5);
}

UNIT_CASE_AGAIN(piece__of_a_packed_packet, _unordered, setup_packed_unordered)

UNIT_CASE(piece__of_pull_data)
{
	uint32_t i;

	pair_pull(0, LEN);
	pair_xfer(0);
	pair_tx(1);
	i = pair_find(SAN_OP_PULL_DATA, 0);
	rx_piece(0, i, 0, 500);
	assert_int_equal(pair.f[0].nb_cmpl, 0);
	rx_piece(0, i, 500, 400);
	assert_int_equal(pair.f[0].nb_cmpl, 1);
	assert_int_equal(pair.f[0].nb_pull_bytes, LEN);
	pair_settle();
}

/* RT-23: the PSN was withdrawn meanwhile; its pieces are never completed. */
UNIT_CASE(piece__withdrawn)
{
	PUSHES(1);
	pair_tx(0);
	rx_third(0, 0);
	rx_third(0, 2);
	san_pdl_rtx_cancel(pair.h[0].pdl, pair.c[0], pair_rsn(0), false, SAN_RESYNC_ABORT);
	pair_tx(0);
	assert_int_equal(pair_pkt(0)->op, SAN_OP_RESYNC);
	pair_rx(1, 0);
	for (uint32_t i = 0; i < 300; i++)
		pair_tick((pair.now += SAN_NS_PER_MS, 1));
	assert_int_equal(pair.h[1].tl->nb_held, 0);
	assert_int_equal(pair.f[1].nb_push_req, 0);
}
