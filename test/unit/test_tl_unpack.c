/* SPDX-License-Identifier: BSD-3-Clause */

/* Packed packets (RT-34): refused as a whole, and each message exactly once. */

#include "tl_pack.h"

UNIT_FIXTURE(.setup = setup_packed, .teardown = pair_close);

/* ---- target: refused as a whole ---- */

/* A receive is missing: RNR(first, no delay, unpack), and no effect remains. */
UNIT_CASE(san_tl_pack_unpack__missing_receive)
{
	struct san_wire_pkt *p;
	uint32_t psn;

	pair.f[1].nb_recvs = 3;
	pair_sends(0, 5);
	assert_int_equal(pair_tx(0), 1);
	psn = pair_pkt(0)->psn;
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RNR);
	assert_int_equal(pair.f[1].nb_recvs, 3);
	assert_int_equal(pair.f[1].nb_abort, 3);
	assert_true(pair.f[1].nb_place == 0 && pair.f[1].nb_done == 0);
	pair_tx(1);
	p = pair_pkt(pair_find(SAN_OP_NACK, 0));
	assert_int_equal(p->status, SAN_ST_RNR);
	assert_int_equal(p->flags, SAN_F_WIN_DATA | SAN_F_UNPACK);
	assert_int_equal(p->delay_us, 0);
	assert_int_equal(p->rsn, pair_rsn(0));
	assert_int_equal(p->nack_psn, psn);
	assert_int_equal(pair_rx(0, 0), SAN_DROP_NONE);
	/* at once: RESYNC under the old PSN, each message under its own */
	assert_int_equal(pair_tx(0), 6);
	assert_int_equal(pair_pkt(0)->op, SAN_OP_RESYNC);
	assert_int_equal(pair_pkt(0)->psn, psn);
	for (uint32_t i = 1; i < 6; i++)
		assert_int_equal(pair_pkt(i)->op, SAN_OP_PUSH_UNSLCTD_DATA);
	for (uint32_t i = 0; i < 6; i++)
		pair_rx(1, i);
	assert_int_equal(pair.f[1].nb_done, 3);
	/* unpacked, a message without a receive waits as usual */
	pair_tx(1);
	p = pair_pkt(pair_find(SAN_OP_NACK, 0));
	assert_int_equal(p->delay_us, 100);
	assert_int_equal(p->flags, SAN_F_WIN_DATA);
	pair_rx_all(0);
	assert_int_equal(pair_tx(0), 2); /* RESYNC */
	pair.f[1].nb_recvs = 2;
	assert_settles(5);
	assert_int_equal(pair.f[1].nb_done, 5);
	assert_int_equal(pair.f[1].nb_recvs, 0);
	/* they are not packed again */
	assert_int_equal(pair.h[0].tl->stats.nb_packed_tx, 1);
	assert_int_equal(pair.h[1].tl->stats.nb_unpack_tx, 1);
	assert_int_equal(pair.h[0].tl->stats.nb_unpack_rx, 1);
	assert_int_equal(pair.h[1].tl->stats.nb_packed_rx, 0);
}

UNIT_CASE_AGAIN(san_tl_pack_unpack__missing_receive, _unordered, setup_packed_unordered)

/* RT-27: one is invalid: it fails, and the others succeed. */
UNIT_CASE(san_tl_pack_unpack__bad_key)
{
	uint32_t nb_ok = 0;

	pair_pushes(0, 6);
	pair.f[1].bad = SAN_ST_ACCESS;
	pair.f[1].bad_rsn = pair_rsn(3);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RNR);
	assert_int_equal(pair.f[1].nb_abort, 3);
	assert_settles(6);
	for (uint32_t i = 0; i < 6; i++) {
		bool bad = pair.f[0].cookie[i] == 3;

		assert_int_equal(pair.f[0].status[i], bad ? SAN_ST_ACCESS : SAN_ST_OK);
		nb_ok += !bad;
	}
	assert_int_equal(nb_ok, 5);
	assert_int_equal(pair.f[1].nb_done, 5);
	assert_int_equal(pair.h[1].tl->stats.nb_refused, 1);
}

UNIT_CASE_AGAIN(san_tl_pack_unpack__bad_key, _unordered, setup_packed_unordered)

/* Held, and refused when its turn comes. */
UNIT_CASE(san_tl_pack_replay__refused)
{
	struct tl_pkt first;
	uint32_t psn;

	pair.f[1].nb_recvs = 5;
	PUSH(0);
	pair_tx(0);
	first = keep(0);
	pair_sends(1, 6);
	assert_int_equal(pair_tx(0), 1);
	psn = pair_pkt(0)->psn;
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(pair.h[1].tl->nb_held, 1);
	assert_int_equal(pair_arrive(1, first), SAN_DROP_NONE);
	assert_int_equal(pair.h[1].tl->nb_held, 0);
	assert_int_equal(pair.h[1].tl->drops[SAN_DROP_RNR], 1);
	assert_int_equal(pair.h[1].tl->stats.nb_unpack_tx, 1);
	assert_false(san_bitmap_test(&pair.c[1]->rx[SAN_WIN_DATA].rcvd, psn));
	assert_int_equal(pair.f[1].nb_recvs, 5);
	assert_int_equal(pair.f[1].nb_done, 1);
	pair.f[1].nb_recvs = 6;
	pair_settle();
	assert_all_done(7, 100);
}

/* After another message's RNR they are withdrawn, and packed again. */
UNIT_CASE(san_tl_pack_unpack__not_by_another)
{
	SEND(0);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RNR);
	pair_pushes(1, 4);
	pair_tx(0);
	assert_int_equal(pair_pkt(0)->op, PACKED);
	pair_rx(1, 0); /* of the old round */
	pair_settle();
	assert_int_equal(pair.h[1].tl->stats.nb_unpack_tx, 0);
	pair.f[1].nb_recvs = 1;
	assert_settles(5);
	assert_true(pair.h[0].tl->stats.nb_packed_tx > 1);
	assert_int_equal(pair.h[1].tl->stats.nb_packed_rx, 1);
}

/* Cancelled after the refusal: only that message. */
UNIT_CASE(san_tl_pack_unpack__given_up)
{
	pair.f[1].nb_recvs = 1;
	pair_sends(0, 3);
	pair_tx(0);
	assert_int_equal(tl_host_abort(&pair.h[0], pair.slot[0], 1), 0);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RNR);
	pair.f[1].nb_recvs = 2;
	assert_settles(3);
	assert_int_equal(pair.f[1].nb_done, 2);
	assert_int_equal(pair.f[1].nb_recvs, 0);
	assert_int_equal(pair.h[0].tl->stats.nb_aborts, 1);
}

/* ---- exactly once ---- */

/* The packet arrives late, after its RNR, or after its messages. */
UNIT_CASE(san_tl_pack_rx__stale)
{
	bool ordered = pair_tc(1)->peer.ordered;
	struct tl_pkt late;

	pair_sends(0, 4);
	assert_int_equal(pair_tx(0), 1);
	late = keep(0);
	san_wire_pkt(late.m)->w.psn += 100; /* otherwise the window would recognise it */
	pair.c[1]->rx[SAN_WIN_DATA].size = 512;
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RNR);
	pair.f[1].nb_recvs = 10;
	/* it could be accepted now, but the initiator may know of the RNR */
	assert_int_equal(arrive_copy(&late), SAN_DROP_ROUND);
	pair_tx(1);
	assert_int_equal(pair_pkt(1)->flags, SAN_F_WIN_DATA | SAN_F_UNPACK);
	assert_int_equal(pair_pkt(1)->delay_us, 0);
	assert_int_equal(pair_pkt(1)->rsn, pair_rsn(0));
	assert_int_equal(pair_rx(0, 0), SAN_DROP_NONE);
	assert_int_equal(pair_rx(0, 1), SAN_DROP_NACK_STALE);
	assert_int_equal(pair_tx(0), 5);
	/* unordered: the first one had a delay of zero */
	assert_int_equal(pair_pkt(1)->rsn, pair_rsn(ordered ? 0 : 1));
	assert_int_equal(pair_rx(1, 1), SAN_DROP_NONE);
	if (!ordered) { /* until the first one ends, its round shows it */
		assert_int_equal(arrive_copy(&late), SAN_DROP_ROUND);
		assert_int_equal(pair_rx(1, 4), SAN_DROP_NONE);
	}
	assert_int_equal(arrive_copy(&late), SAN_DROP_FINISHED);
	for (uint32_t i = 2; i < 5; i++)
		pair_rx(1, i);
	assert_int_equal(pair.f[1].nb_done, 4);
	assert_int_equal(pair.f[1].nb_recvs, 6);
	assert_settles(4);
	san_wire_pkt(late.m)->w.psn++;
	assert_int_equal(pair_arrive(1, late), SAN_DROP_FINISHED);
	assert_int_equal(pair.f[1].nb_done, 4);
}

UNIT_CASE_AGAIN(san_tl_pack_rx__stale, _unordered, setup_packed_unordered)

/* The RNR is lost, then the RESYNC: both are resent. */
UNIT_CASE(san_tl_pack_unpack__losses)
{
	pair_sends(0, 4);
	pair_tx(0);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RNR);
	pair.f[1].nb_recvs = 4;
	pair_tx(1); /* lost */
	do
		pair_wait(100 * SAN_NS_PER_US);
	while (pair_tx(0) == 0);
	assert_int_equal(pair_pkt(0)->op, PACKED);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_ROUND);
	xfer_nack();
	pair_tx(0);
	assert_int_equal(pair_pkt(0)->op, SAN_OP_RESYNC);
	for (uint32_t i = 1; i < pair.nb_out; i++)
		pair_rx(1, i);
	assert_int_equal(pair.f[1].nb_done, 4);
	assert_settles(4);
	assert_int_equal(pair.f[1].nb_done, 4);
	assert_int_equal(pair.h[1].tl->stats.nb_unpack_tx, 1);
}

UNIT_CASE_AGAIN(san_tl_pack_unpack__losses, _unordered, setup_packed_unordered)

/* Later packets are refused for their round, with the NACK that unpacks it. */
UNIT_CASE(san_tl_pack_unpack__told_by_another)
{
	pair.f[1].nb_recvs = 4;
	pair_sends(0, 5);
	pair_tx(0);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RNR);
	pair_tx(1); /* lost */
	PUSH(5);
	pair_tx(0);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_ROUND);
	xfer_nack();
	pair_tx(0);
	assert_int_equal(pair_find(PACKED, 0), UINT32_MAX);
	assert_int_equal(pair.h[0].tl->stats.nb_unpack_rx, 1);
	pair.f[1].nb_recvs++;
	assert_settles(6);
	assert_int_equal(pair.f[1].nb_done, 6);
}

/* RT-32: an RSN that is out of range, or used twice. */
UNIT_CASE(san_tl_pack_rx__rsns_not_new)
{
	bool ordered = pair_tc(1)->peer.ordered;
	struct tl_pkt k, abort;
	struct san_wire_pkt *p;

	pair_pushes(0, 4);
	assert_int_equal(pair_tx(0), 1);
	k = keep(0);
	p = &san_wire_pkt(k.m)->w;
	p->rsn = pair_rsn(0) + 61; /* 64 RSNs at once: the last one would exceed the range */
	assert_int_equal(arrive_copy(&k), SAN_DROP_RSN);
	p->rsn = pair_rsn(0);
	/* the third has ended already */
	abort = keep(0);
	san_wire_pkt(abort.m)->w.op = SAN_OP_RESYNC;
	san_wire_pkt(abort.m)->w.flags = SAN_F_WIN_DATA;
	san_wire_pkt(abort.m)->w.status = SAN_RESYNC_ABORT;
	san_wire_pkt(abort.m)->w.psn += 1;
	san_wire_pkt(abort.m)->w.rsn = pair_rsn(2);
	assert_int_equal(pair_arrive(1, abort), SAN_DROP_NONE);
	assert_int_equal(arrive_copy(&k), SAN_DROP_RSN);
	assert_int_equal(pair.f[1].nb_push_req, 0);
	assert_int_equal(pair.f[1].nb_done, 0);
	if (ordered) { /* held, it is checked when its turn comes */
		p->rsn = pair_rsn(1);
		p->psn += 2;
		assert_int_equal(arrive_copy(&k), SAN_DROP_NONE);
		assert_int_equal(arrive_copy(&k), SAN_DROP_DUPLICATE);
		p->psn += 1;
		assert_int_equal(arrive_copy(&k), SAN_DROP_RSN); /* and keeps its place */
		p->op = SAN_OP_PUSH_UNSLCTD_DATA;
		p->flags = SAN_F_LAST;
		p->length = p->payload_len;
		assert_int_equal(arrive_copy(&k), SAN_DROP_RANGE);
		p->rsn = pair_rsn(0);
		assert_int_equal(arrive_copy(&k), SAN_DROP_NONE);
		assert_int_equal(pair.f[1].nb_done, 1);
		assert_int_equal(pair.h[1].tl->drops[SAN_DROP_RSN], 1);
		assert_int_equal(pair.h[1].tl->nb_held, 0);
	}
	rte_pktmbuf_free(k.m);
}

UNIT_CASE_AGAIN(san_tl_pack_rx__rsns_not_new, _unordered, setup_packed_unordered)

/* A NACK that names a message inside it is invalid. */
UNIT_CASE(san_tl_nack_rx__of_a_packed_packet)
{
	struct san_wire_pkt *p;

	pair_pushes(0, 2);
	pair_tx(0);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	san_tl_nack(pair.h[1].tl, pair_tc(1), pair_pkt(0)->psn, pair_rsn(0), SAN_ST_ACCESS);
	pair_tx(1);
	p = pair_pkt(pair_find(SAN_OP_NACK, 0));
	p->data_ebsn = pair.c[0]->tx[SAN_WIN_DATA].base; /* before the ACK */
	assert_int_equal(pair_rx(0, 0), SAN_DROP_NACK_STALE);
	p->rsn = pair_rsn(1); /* RNR from the middle on: no target sends that */
	p->status = SAN_ST_RNR;
	p->round = 1;
	assert_int_equal(pair_rx(0, 0), SAN_DROP_NACK_STALE);
	assert_settles(2);
	assert_int_equal(pair.f[0].status[0], SAN_ST_OK);
}
