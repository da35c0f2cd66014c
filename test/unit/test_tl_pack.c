/* SPDX-License-Identifier: BSD-3-Clause */

/* Packed packets (RT-34): what shares one, and what becomes of it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "san_seq.h"
#include "tl_pair.h"
#include "tl_priv.h"

#define NEVER   SAN_SOLICIT_NEVER
#define PACKED  SAN_OP_PUSH_PACKED
#define PUSH(n) assert_int_equal(pair_push(n, SAN_KIND_PUSH, NEVER, 100), 0)
#define SEND(n) assert_int_equal(pair_push(n, SAN_KIND_SEND, NEVER, 100), 0)

static int
open_link(bool ordered, bool relaxed)
{
	struct tl_link l = pair_link(ordered);

	l.relaxed = relaxed;
	l.pack = true;
	l.rnr_ms = 5;
	pair_open(&l, NULL);
	return 0;
}

static int
setup(void **state)
{
	(void)state;
	return open_link(true, false);
}

static int
setup_unordered(void **state)
{
	(void)state;
	return open_link(false, false);
}

static int
setup_relaxed(void **state)
{
	(void)state;
	return open_link(true, true);
}

static int
setup_many(void **state)
{
	struct tl_link l = pair_link(true);
	struct san_tl_conf tl;

	(void)state;
	l.pack = true;
	l.n = l.msg_limit = 128;
	l.mtu = 1400;
	san_tl_conf_default(&tl);
	pair_open(&l, &tl);
	return 0;
}

static int
setup_none(void **state)
{
	(void)state;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	pair_close();
	return 0;
}

/* A copy of packet *i*, to arrive later. */
static struct tl_pkt
keep(uint32_t i)
{
	struct tl_pkt k = pair.out[i];

	k.m = tl_host_copy(&pair.h[0], k.m);
	return k;
}

/* It arrives at the target. */
static enum san_drop
arrive(struct tl_pkt k)
{
	enum san_drop drop = tl_host_rx(&pair.h[1], &k, pair.now);

	san_tl_check(pair.h[1].tl);
	san_pdl_check(pair.h[1].pdl);
	return drop;
}

static enum san_drop
arrive_copy(const struct tl_pkt *k)
{
	struct tl_pkt copy = *k;

	copy.m = tl_host_copy(&pair.h[1], k->m);
	return arrive(copy);
}

/* The NACK that the target has to send arrives at the initiator. */
static void
xfer_nack(void)
{
	pair_tx(1);
	assert_int_equal(pair_rx(0, pair_find(SAN_OP_NACK, 0)), SAN_DROP_NONE);
}

static void
assert_all_done(uint32_t n, uint32_t length)
{
	uint32_t i;

	assert_int_equal(pair.f[1].nb_done, n);
	assert_int_equal(pair.f[0].nb_cmpl, n);
	for (i = 0; i < n; i++) {
		assert_int_equal(pair.f[1].done[i], pair_rsn(i));
		assert_int_equal(pair.f[0].cookie[i], i);
		assert_int_equal(pair.f[0].status[i], SAN_ST_OK);
		assert_true(pair_has_bytes(i, length));
	}
}

/* ---- what shares a packet ---- */

static void
san_tl_pack__posted_together(void **state)
{
	const struct san_tl_stats *tx = &pair.h[0].tl->stats, *rx = &pair.h[1].tl->stats;
	struct san_wire_pkt *p;
	uint32_t i;

	(void)state;
	pair.f[1].nb_recvs = 6;
	for (i = 0; i < 9; i++)
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
	assert_int_equal(pair.c[0]->nb_tx_bytes, p->payload_len);
	assert_int_equal(pair_tc(0)->nb_msgs, 9);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(pair.f[1].imm, 0xabcd0008);
	assert_int_equal(pair_tc(1)->rx_base, pair_rsn(9));
	pair_settle();
	assert_all_done(9, 50);
	assert_int_equal(pair_tc(0)->nb_msgs, 0);
	assert_true(tx->nb_packed_tx == 1 && tx->nb_pack_msgs_tx == 9);
	assert_true(rx->nb_packed_rx == 1 && rx->nb_pack_msgs_rx == 9 && rx->nb_served == 9);
}

static void
san_tl_pack__unordered(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 20; i++)
		PUSH(i);
	assert_int_equal(pair_tx(0), 3); /* 8 of 116 bytes in each of 1000 */
	assert_int_equal(pair_pkt(2)->length, 4);
	for (i = 3; i > 0; i--)
		assert_int_equal(pair_rx(1, i - 1), SAN_DROP_NONE);
	assert_int_equal(pair.f[1].nb_done, 20);
	assert_int_equal(pair.f[1].done[0], pair_rsn(16)); /* nothing waits (RT-15) */
	pair_settle();
	assert_int_equal(pair.f[0].nb_cmpl, 20);
	assert_int_equal(pair_tc(1)->rx_base, pair_rsn(20));
}

static void
san_tl_pack__one_goes_as_it_did(void **state)
{
	(void)state;
	PUSH(0);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_pkt(0)->op, SAN_OP_PUSH_UNSLCTD_DATA);
	PUSH(1); /* what is on its way gets no company */
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_pkt(0)->op, SAN_OP_PUSH_UNSLCTD_DATA);
	assert_int_equal(pair.h[0].tl->stats.nb_packed_tx, 0);
}

/* Consecutive RSNs only, whole and unsolicited ones only. */
static void
san_tl_pack__what_ends_a_run(void **state)
{
	(void)state;
	PUSH(0);
	PUSH(1);
	assert_int_equal(pair_pull(2, 10), 0);
	PUSH(3);
	PUSH(4);
	assert_int_equal(pair_push(5, SAN_KIND_PUSH, SAN_SOLICIT_ALWAYS, 10), 0);
	PUSH(6);
	PUSH(7);
	assert_int_equal(pair_push(8, SAN_KIND_PUSH, NEVER, 1500), 0);
	PUSH(9);
	PUSH(10);
	assert_int_equal(pair_add(11, 1), 0);
	PUSH(12);
	/* requests first; then what no grant holds up (rule 3) */
	assert_int_equal(pair_tx(0), 5);
	assert_int_equal(pair_pkt(pair_find(PACKED, 0))->rsn, pair_rsn(0));
	assert_int_equal(pair_pkt(pair_find(PACKED, 0))->length, 2);
	assert_int_equal(pair_pkt(pair_find(PACKED, 1))->rsn, pair_rsn(3));
	assert_int_equal(pair_pkt(pair_find(PACKED, 1))->length, 2);
	pair_rx(1, 0);
	pair_rx(1, 1);
	pair_rx(1, 2);
	pair_rx(1, 3);
	pair_rx(1, 4);
	pair_settle();
	assert_int_equal(pair.h[0].tl->stats.nb_packed_tx, 4); /* 6 and 7, 9 and 10 */
	assert_int_equal(pair.h[0].tl->stats.nb_pack_msgs_tx, 8);
	assert_int_equal(pair.f[0].nb_cmpl, 13);
}

/* Not even one that has to ask and did not get to it: the window of requests is full. */
static void
san_tl_pack__not_solicited(void **state)
{
	(void)state;
	pair.c[0]->tx[SAN_WIN_REQ].size = 2;
	assert_int_equal(pair_pull(0, 10), 0);
	assert_int_equal(pair_pull(1, 10), 0);
	assert_int_equal(pair_tx(0), 2);
	PUSH(2);
	PUSH(3);
	assert_int_equal(pair_push(4, SAN_KIND_PUSH, SAN_SOLICIT_ALWAYS, 10), 0);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_pkt(0)->op, PACKED);
	assert_int_equal(pair_pkt(0)->length, 2);
	pair_settle();
	assert_int_equal(pair.f[0].nb_cmpl, 5);
}

static void
san_tl_pack__fills_the_packet(void **state)
{
	(void)state;
	/* 16 + 472 and 16 + 496 are 1000 */
	assert_int_equal(pair_push(0, SAN_KIND_PUSH, NEVER, 469), 0);
	assert_int_equal(pair_push(1, SAN_KIND_PUSH, NEVER, 496), 0);
	/* one byte more is four */
	assert_int_equal(pair_push(2, SAN_KIND_PUSH, NEVER, 472), 0);
	assert_int_equal(pair_push(3, SAN_KIND_PUSH, NEVER, 497), 0);
	assert_int_equal(pair_tx(0), 3);
	assert_int_equal(pair_pkt(0)->payload_len, 1000);
	assert_int_equal(pair_pkt(1)->op, SAN_OP_PUSH_UNSLCTD_DATA);
	assert_int_equal(pair_pkt(2)->op, SAN_OP_PUSH_UNSLCTD_DATA);
	/* a header of its own may be what is too much */
	assert_int_equal(pair_push(4, SAN_KIND_PUSH, NEVER, 1000), 0);
	assert_int_equal(pair_push(5, SAN_KIND_PUSH, NEVER, 0), 0);
	assert_int_equal(pair_tx(0), 2);
	assert_int_equal(pair_pkt(0)->op, SAN_OP_PUSH_UNSLCTD_DATA);
}

static void
san_tl_pack__so_many_at_most(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < SAN_WIRE_PACK_MAX + 2; i++)
		assert_int_equal(pair_push(i % 60, SAN_KIND_PUSH, NEVER, 0), 0);
	assert_int_equal(pair_tx(0), 2);
	assert_int_equal(pair_pkt(0)->length, SAN_WIRE_PACK_MAX);
	assert_int_equal(pair_pkt(1)->length, 2);
	assert_int_equal(pair_pkt(1)->rsn, pair_rsn(SAN_WIRE_PACK_MAX));
}

/* PCB-3: what is not in the count does not go, in company neither. */
static void
san_tl_pack__message_limit(void **state)
{
	uint32_t i;

	(void)state;
	pair.c[0]->pcb.msg_limit = 3;
	for (i = 0; i < 5; i++)
		PUSH(i);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_pkt(0)->length, 3);
	assert_int_equal(pair_tc(0)->nb_msgs, 3);
	pair_settle();
	assert_all_done(5, 100);
}

static void
san_tl_pack__not_negotiated(void **state)
{
	uint32_t i;

	(void)state;
	pair_tc(0)->peer.pack = false;
	for (i = 0; i < 4; i++)
		PUSH(i);
	assert_int_equal(pair_tx(0), 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(pair_pkt(i)->op, SAN_OP_PUSH_UNSLCTD_DATA);
}

/* RT-17: again it is the same packet, whatever was posted meanwhile. */
static void
san_tl_pack_fill__again_the_same(void **state)
{
	struct tl_pkt first;

	(void)state;
	PUSH(0);
	PUSH(1);
	assert_int_equal(pair_tx(0), 1);
	first = keep(0);
	PUSH(2);
	pair_tx(0);
	do
		pair_wait(100 * SAN_NS_PER_US);
	while (pair_tx(0) == 0 || pair_find(PACKED, 0) == UINT32_MAX);
	assert_int_equal(pair_pkt(0)->psn, san_pkt(first.m)->w.psn);
	assert_int_equal(pair_pkt(0)->length, 2);
	assert_int_equal(pair_pkt(0)->payload_len, san_pkt(first.m)->w.payload_len);
	assert_memory_equal(rte_pktmbuf_mtod(pair.out[0].m, char *),
			    rte_pktmbuf_mtod(first.m, char *), pair_pkt(0)->payload_len);
	assert_int_equal(pair.h[0].tl->stats.nb_packed_tx, 1); /* counted once */
	rte_pktmbuf_free(first.m);
	pair_settle();
	assert_all_done(3, 100);
}

/* ---- target: ahead of its turn ---- */

static void
held_until_its_turn(void)
{
	struct san_pdl_rxw *w = &pair.c[1]->rx[SAN_WIN_DATA];
	uint32_t i, psn;

	for (i = 0; i < 20; i++)
		PUSH(i);
	assert_int_equal(pair_tx(0), 3);
	psn = pair_pkt(0)->psn;
	assert_int_equal(pair_rx(1, 2), SAN_DROP_NONE);
	assert_int_equal(pair_rx(1, 1), SAN_DROP_NONE);
	assert_int_equal(pair.h[1].tl->nb_held, 2); /* one mbuf each, whole */
	assert_int_equal(pair.f[1].nb_done, 0);
	assert_true(san_bitmap_test(&w->rcvd, psn + 1));
	assert_false(san_bitmap_test(&w->acked, psn + 1));
	assert_int_equal(pair_rx(1, 1), SAN_DROP_DUPLICATE);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(w->base, psn + 3);
	pair_settle();
	assert_all_done(20, 100);
}

static void
san_tl_rx_packed__held_until_its_turn(void **state)
{
	(void)state;
	held_until_its_turn();
}

static void
san_tl_rx_packed__held_if_relaxed_too(void **state)
{
	(void)state;
	held_until_its_turn();
}

/* Design, rule 8: no place to hold it; under its PSN it comes again. */
static void
san_tl_rx_packed__red(void **state)
{
	struct san_wire_pkt *p;
	uint32_t i;

	(void)state;
	pair.h[1].tl->conf.max_held = 0;
	for (i = 0; i < 10; i++)
		PUSH(i);
	assert_int_equal(pair_tx(0), 2);
	assert_int_equal(pair_rx(1, 1), SAN_DROP_RED);
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

/* A pull at the base that has to wait: it is the pull's RNR, and they stay together. */
static void
san_tl_rx_packed__behind_a_pull(void **state)
{
	struct san_tl_rxn *r;

	(void)state;
	assert_int_equal(pair_pull(0, 10), 0);
	PUSH(1);
	PUSH(2);
	assert_int_equal(pair_tx(0), 2);
	r = san_tl_rxn_new(pair.h[1].tl, pair_tc(1), pair_rsn(0));
	r->type = SAN_TL_PULL;
	assert_int_equal(pair_rx(1, 1), SAN_DROP_RNR);
	pair_tx(1);
	assert_int_equal(pair_pkt(0)->rsn, pair_rsn(0));
	assert_int_equal(pair_pkt(0)->flags, SAN_F_WIN_DATA);
	assert_int_equal(pair_pkt(0)->delay_us, 100);
	assert_int_equal(pair_rx(0, 0), SAN_DROP_NONE);
	san_tl_rxn_detach(pair.h[1].tl, pair_tc(1), r);
	san_tl_rxn_free(pair.h[1].tl, pair_tc(1), r);
	pair_settle();
	assert_int_equal(pair.f[0].nb_cmpl, 3);
	assert_int_equal(pair.h[0].tl->stats.nb_packed_tx, 2); /* withdrawn, and packed again */
}

/* ---- target: refused whole ---- */

/* A receive is missing: RNR(first, no delay, unpack), and nothing of it stays. */
static void
unpack_by_missing_receive(void)
{
	struct san_wire_pkt *p;
	uint32_t i, psn;

	pair.f[1].nb_recvs = 3;
	for (i = 0; i < 5; i++)
		SEND(i);
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
	/* at once: RESYNC under the old PSN, each message under one of its own */
	assert_int_equal(pair_tx(0), 6);
	assert_int_equal(pair_pkt(0)->op, SAN_OP_RESYNC);
	assert_int_equal(pair_pkt(0)->psn, psn);
	for (i = 1; i < 6; i++)
		assert_int_equal(pair_pkt(i)->op, SAN_OP_PUSH_UNSLCTD_DATA);
	for (i = 0; i < 6; i++)
		pair_rx(1, i);
	assert_int_equal(pair.f[1].nb_done, 3);
	/* alone, what finds no receive waits as ever */
	pair_tx(1);
	p = pair_pkt(pair_find(SAN_OP_NACK, 0));
	assert_int_equal(p->delay_us, 100);
	assert_int_equal(p->flags, SAN_F_WIN_DATA);
	for (i = 0; i < pair.nb_out; i++)
		pair_rx(0, i);
	assert_int_equal(pair_tx(0), 2); /* RESYNC */
	pair.f[1].nb_recvs = 2;
	pair_settle();
	assert_int_equal(pair.f[0].nb_cmpl, 5);
	assert_int_equal(pair.f[1].nb_done, 5);
	assert_int_equal(pair.f[1].nb_recvs, 0);
	/* they never shared a packet again */
	assert_int_equal(pair.h[0].tl->stats.nb_packed_tx, 1);
	assert_int_equal(pair.h[1].tl->stats.nb_unpack_tx, 1);
	assert_int_equal(pair.h[0].tl->stats.nb_unpack_rx, 1);
	assert_int_equal(pair.h[1].tl->stats.nb_packed_rx, 0);
}

static void
san_tl_unpack__missing_receive(void **state)
{
	(void)state;
	unpack_by_missing_receive();
}

static void
san_tl_unpack__missing_receive_unordered(void **state)
{
	(void)state;
	unpack_by_missing_receive();
}

/* RT-27: one is wrong: it has its error, and the others succeed. */
static void
unpack_by_bad_key(void)
{
	uint32_t i, nb_ok = 0;

	for (i = 0; i < 6; i++)
		PUSH(i);
	pair.f[1].bad = SAN_ST_BAD_KEY;
	pair.f[1].bad_rsn = pair_rsn(3);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RNR);
	assert_int_equal(pair.f[1].nb_abort, 3);
	pair_settle();
	assert_int_equal(pair.f[0].nb_cmpl, 6);
	for (i = 0; i < 6; i++) {
		bool bad = pair.f[0].cookie[i] == 3;

		assert_int_equal(pair.f[0].status[i], bad ? SAN_ST_BAD_KEY : SAN_ST_OK);
		nb_ok += !bad;
	}
	assert_int_equal(nb_ok, 5);
	assert_int_equal(pair.f[1].nb_done, 5);
	assert_int_equal(pair.h[1].tl->stats.nb_refused, 1);
}

static void
san_tl_unpack__bad_key(void **state)
{
	(void)state;
	unpack_by_bad_key();
}

static void
san_tl_unpack__bad_key_unordered(void **state)
{
	(void)state;
	unpack_by_bad_key();
}

/* Held, and refused when its turn comes. */
static void
san_tl_pack_replay__refused(void **state)
{
	struct tl_pkt first;
	uint32_t i, psn;

	(void)state;
	pair.f[1].nb_recvs = 5;
	PUSH(0);
	pair_tx(0);
	first = keep(0);
	for (i = 1; i < 7; i++)
		SEND(i);
	assert_int_equal(pair_tx(0), 1);
	psn = pair_pkt(0)->psn;
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	assert_int_equal(pair.h[1].tl->nb_held, 1);
	assert_int_equal(arrive(first), SAN_DROP_NONE);
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

/* Behind an RNR that is not theirs they are withdrawn, and share a packet again. */
static void
san_tl_unpack__not_by_another(void **state)
{
	uint32_t i;

	(void)state;
	SEND(0);
	assert_int_equal(pair_tx(0), 1);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RNR);
	for (i = 1; i < 5; i++)
		PUSH(i);
	pair_tx(0);
	assert_int_equal(pair_pkt(0)->op, PACKED);
	pair_rx(1, 0); /* of the old round */
	pair_settle();
	assert_int_equal(pair.h[1].tl->stats.nb_unpack_tx, 0);
	pair.f[1].nb_recvs = 1;
	pair_settle();
	assert_int_equal(pair.f[0].nb_cmpl, 5);
	assert_true(pair.h[0].tl->stats.nb_packed_tx > 1);
	assert_int_equal(pair.h[1].tl->stats.nb_packed_rx, 1);
}

/* Given up after it was refused: it alone. */
static void
san_tl_unpack__given_up(void **state)
{
	(void)state;
	pair.f[1].nb_recvs = 1;
	SEND(0);
	SEND(1);
	SEND(2);
	pair_tx(0);
	assert_int_equal(san_tl_abort(pair.h[0].tl, pair.slot[0], 1, pair.now), 0);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RNR);
	pair.f[1].nb_recvs = 2;
	pair_settle();
	assert_int_equal(pair.f[0].nb_cmpl, 3);
	assert_int_equal(pair.f[1].nb_done, 2);
	assert_int_equal(pair.f[1].nb_recvs, 0);
	assert_int_equal(pair.h[0].tl->stats.nb_aborts, 1);
}

/* ---- exactly once ---- */

/* The packet comes late, after its RNR, its messages alone, or all. */
static void
stale_copy(bool ordered)
{
	struct tl_pkt late;
	uint32_t i;

	for (i = 0; i < 4; i++)
		SEND(i);
	assert_int_equal(pair_tx(0), 1);
	late = keep(0);
	san_pkt(late.m)->w.psn += 100; /* else the window would know it */
	pair.c[1]->rx[SAN_WIN_DATA].size = 512;
	assert_int_equal(pair_rx(1, 0), SAN_DROP_RNR);
	pair.f[1].nb_recvs = 10;
	/* it could be taken now, but the initiator may know of the RNR */
	assert_int_equal(arrive_copy(&late), SAN_DROP_ROUND);
	pair_tx(1);
	assert_int_equal(pair_pkt(1)->flags, SAN_F_WIN_DATA | SAN_F_UNPACK);
	assert_int_equal(pair_pkt(1)->delay_us, 0);
	assert_int_equal(pair_pkt(1)->rsn, pair_rsn(0));
	assert_int_equal(pair_rx(0, 0), SAN_DROP_NONE);
	assert_int_equal(pair_rx(0, 1), SAN_DROP_NACK_STALE);
	assert_int_equal(pair_tx(0), 5);
	/* unordered: the first one had a delay, if of nothing */
	assert_int_equal(pair_pkt(1)->rsn, pair_rsn(ordered ? 0 : 1));
	assert_int_equal(pair_rx(1, 1), SAN_DROP_NONE);
	if (!ordered) { /* as long as the first is not over, its round tells */
		assert_int_equal(arrive_copy(&late), SAN_DROP_ROUND);
		assert_int_equal(pair_rx(1, 4), SAN_DROP_NONE);
	}
	assert_int_equal(arrive_copy(&late), SAN_DROP_FINISHED);
	for (i = 2; i < 5; i++)
		pair_rx(1, i);
	assert_int_equal(pair.f[1].nb_done, 4);
	assert_int_equal(pair.f[1].nb_recvs, 6);
	pair_settle();
	assert_int_equal(pair.f[0].nb_cmpl, 4);
	san_pkt(late.m)->w.psn++;
	assert_int_equal(arrive(late), SAN_DROP_FINISHED);
	assert_int_equal(pair.f[1].nb_done, 4);
}

static void
san_tl_rx_packed__stale(void **state)
{
	(void)state;
	stale_copy(true);
}

static void
san_tl_rx_packed__stale_unordered(void **state)
{
	(void)state;
	stale_copy(false);
}

/* The RNR is lost, then the RESYNC: both come again. */
static void
unpack_with_losses(void)
{
	uint32_t i;

	for (i = 0; i < 4; i++)
		SEND(i);
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
	for (i = 1; i < pair.nb_out; i++)
		pair_rx(1, i);
	assert_int_equal(pair.f[1].nb_done, 4);
	pair_settle();
	assert_int_equal(pair.f[0].nb_cmpl, 4);
	assert_int_equal(pair.f[1].nb_done, 4);
	assert_int_equal(pair.h[1].tl->stats.nb_unpack_tx, 1);
}

static void
san_tl_unpack__losses(void **state)
{
	(void)state;
	unpack_with_losses();
}

static void
san_tl_unpack__losses_unordered(void **state)
{
	(void)state;
	unpack_with_losses();
}

/* What was sent behind it is refused in its round, with the NACK that unpacks it. */
static void
san_tl_unpack__told_by_another(void **state)
{
	uint32_t i;

	(void)state;
	pair.f[1].nb_recvs = 4;
	for (i = 0; i < 5; i++)
		SEND(i);
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
	pair_settle();
	assert_int_equal(pair.f[0].nb_cmpl, 6);
	assert_int_equal(pair.f[1].nb_done, 6);
}

/* RT-32: an RSN that is out of range, or used twice. */
static void
rsns_that_are_not_new(bool ordered)
{
	struct tl_pkt k, abort;
	struct san_wire_pkt *p;
	uint32_t i;

	for (i = 0; i < 4; i++)
		PUSH(i);
	assert_int_equal(pair_tx(0), 1);
	k = keep(0);
	p = &san_pkt(k.m)->w;
	p->rsn = pair_rsn(0) + 61; /* 64 RSNs at once: the last would be one too many */
	assert_int_equal(arrive_copy(&k), SAN_DROP_RSN);
	p->rsn = pair_rsn(0);
	/* the third is over already */
	abort = keep(0);
	san_pkt(abort.m)->w.op = SAN_OP_RESYNC;
	san_pkt(abort.m)->w.flags = SAN_F_WIN_DATA;
	san_pkt(abort.m)->w.status = SAN_RESYNC_ABORT;
	san_pkt(abort.m)->w.psn += 1;
	san_pkt(abort.m)->w.rsn = pair_rsn(2);
	assert_int_equal(arrive(abort), SAN_DROP_NONE);
	assert_int_equal(arrive_copy(&k), SAN_DROP_RSN);
	assert_int_equal(pair.f[1].nb_push_req, 0);
	assert_int_equal(pair.f[1].nb_done, 0);
	if (ordered) { /* held, it is looked at when its turn comes */
		p->rsn = pair_rsn(1);
		p->psn += 2;
		assert_int_equal(arrive_copy(&k), SAN_DROP_NONE);
		assert_int_equal(arrive_copy(&k), SAN_DROP_DUPLICATE);
		p->psn += 1;
		assert_int_equal(arrive_copy(&k), SAN_DROP_RSN); /* and holds its place */
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

static void
san_tl_rx_packed__rsns_not_new(void **state)
{
	(void)state;
	rsns_that_are_not_new(true);
}

static void
san_tl_rx_packed__rsns_not_new_unordered(void **state)
{
	(void)state;
	rsns_that_are_not_new(false);
}

/* A peer that refuses a message of it by name says nothing that can be. */
static void
san_tl_rx_nack__of_a_packed_packet(void **state)
{
	struct san_wire_pkt *p;

	(void)state;
	PUSH(0);
	PUSH(1);
	pair_tx(0);
	assert_int_equal(pair_rx(1, 0), SAN_DROP_NONE);
	san_tl_nack(pair.h[1].tl, pair_tc(1), pair_pkt(0)->psn, pair_rsn(0), SAN_ST_BAD_KEY);
	pair_tx(1);
	p = pair_pkt(pair_find(SAN_OP_NACK, 0));
	p->data_ebsn = pair.c[0]->tx[SAN_WIN_DATA].base; /* before the ACK */
	assert_int_equal(pair_rx(0, 0), SAN_DROP_NACK_STALE);
	p->rsn = pair_rsn(1); /* RNR from the middle on: no target of ours says that */
	p->status = SAN_ST_RNR;
	p->round = 1;
	assert_int_equal(pair_rx(0, 0), SAN_DROP_NACK_STALE);
	pair_settle();
	assert_int_equal(pair.f[0].nb_cmpl, 2);
	assert_int_equal(pair.f[0].status[0], SAN_ST_OK);
}

/* ---- it changes nothing else ---- */

/* What the target saw and what the initiator was told. */
struct outcome {
	uint32_t nb_done, nb_cmpl, nb_pkts;
	uint32_t done[PAIR_LOG];
	uint64_t cookie[PAIR_LOG];
	uint8_t status[PAIR_LOG];
};

static void
run_workload(uint64_t seed, bool pack, struct outcome *o)
{
	struct tl_link l = pair_link(true);
	struct san_prng g;
	uint32_t i;

	san_prng_seed(&g, seed);
	l.pack = pack;
	pair_open(&l, NULL);
	pair.f[1].nb_recvs = 20;
	pair.f[1].bad = SAN_ST_BOUNDS;
	pair.f[1].bad_rsn = pair_rsn(san_prng_below(&g, 64));
	for (i = 0; i < 60; i++) {
		uint32_t what = san_prng_below(&g, 12), len = san_prng_below(&g, 300);
		int rc = what == 11 ? pair_pull(i, len) :
				      pair_push(i, (uint8_t)(what % 3),
						what == 10 ? SAN_SOLICIT_ALWAYS : NEVER, len);

		assert_int_equal(rc, 0);
		if (san_prng_below(&g, 8) == 0)
			pair_xfer(0);
	}
	for (i = 0; i < 100; i++) { /* as far as the receives reach */
		pair_xfer(0);
		pair_xfer(1);
		pair_wait(10 * SAN_NS_PER_US);
	}
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

/* RT-14: neither the order nor any completion. */
static void
packing__changes_no_outcome(void **state)
{
	struct outcome with, without;
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 30; seed++) {
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

int
main(void)
{
#define T(f)    cmocka_unit_test_setup_teardown(f, setup, teardown)
#define U(f, s) cmocka_unit_test_setup_teardown(f, s, teardown)
	const struct CMUnitTest tests[] = {
		T(san_tl_pack__posted_together),
		U(san_tl_pack__unordered, setup_unordered),
		T(san_tl_pack__one_goes_as_it_did),
		T(san_tl_pack__what_ends_a_run),
		T(san_tl_pack__not_solicited),
		T(san_tl_pack__fills_the_packet),
		U(san_tl_pack__so_many_at_most, setup_many),
		T(san_tl_pack__message_limit),
		T(san_tl_pack__not_negotiated),
		T(san_tl_pack_fill__again_the_same),
		T(san_tl_rx_packed__held_until_its_turn),
		U(san_tl_rx_packed__held_if_relaxed_too, setup_relaxed),
		T(san_tl_rx_packed__red),
		T(san_tl_rx_packed__behind_a_pull),
		T(san_tl_unpack__missing_receive),
		U(san_tl_unpack__missing_receive_unordered, setup_unordered),
		T(san_tl_unpack__bad_key),
		U(san_tl_unpack__bad_key_unordered, setup_unordered),
		T(san_tl_pack_replay__refused),
		T(san_tl_unpack__not_by_another),
		T(san_tl_unpack__given_up),
		T(san_tl_rx_packed__stale),
		U(san_tl_rx_packed__stale_unordered, setup_unordered),
		T(san_tl_unpack__losses),
		U(san_tl_unpack__losses_unordered, setup_unordered),
		T(san_tl_unpack__told_by_another),
		T(san_tl_rx_packed__rsns_not_new),
		U(san_tl_rx_packed__rsns_not_new_unordered, setup_unordered),
		T(san_tl_rx_nack__of_a_packed_packet),
		cmocka_unit_test_setup(packing__changes_no_outcome, setup_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
