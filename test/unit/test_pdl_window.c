/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "unit.h"
#include "pdl_priv.h"

/* ---- receive window: one numbered table per scenario, like a replay counter's ---- */

struct row {
	uint32_t psn;
	enum san_drop pos; /* position */
	bool ack;          /* if new: acknowledge it at once, otherwise only received */
	uint32_t base;     /* base afterwards */
};

static void
play(uint32_t first, uint32_t size, const struct row *rows, size_t n)
{
	struct san_pdl_rxw w;

	san_pdl_win_rx_init(&w, first, size);
	for (size_t i = 0; i < n; i++) {
		enum san_drop pos = san_pdl_win_rx_classify(&w, rows[i].psn);

		if (pos != rows[i].pos)
			fail_msg("row %zu: psn %u stands at %d", i, rows[i].psn, pos);
		if (pos == SAN_DROP_NONE && rows[i].ack)
			san_pdl_win_rx_ack(&w, rows[i].psn);
		else if (pos == SAN_DROP_NONE)
			san_pdl_win_rx_receive(&w, rows[i].psn);
		if (w.base != rows[i].base)
			fail_msg("row %zu: base %u", i, w.base);
		san_pdl_win_rx_check(&w);
	}
}

/* RT-4, RT-5: window of 8 from PSN 100. */
UNIT_CASE(san_pdl_win_rx_classify__rt5)
{
	static const struct row rows[] = {
		/*  0 */ {99, SAN_DROP_OLD, false, 100},
		/*  1 */ {108, SAN_DROP_BEYOND, false, 100},
		/*  2 */ {107, SAN_DROP_NONE, true, 100}, /* the last one inside */
		/*  3 */ {107, SAN_DROP_DUPLICATE, false, 100},
		/*  4 */ {100, SAN_DROP_NONE, true, 101},
		/*  5 */ {100, SAN_DROP_OLD, false, 101},
		/*  6 */ {108, SAN_DROP_NONE, false, 101}, /* the base has moved: inside now */
		/*  7 */ {109, SAN_DROP_BEYOND, false, 101},
		/*  8 */ {101, SAN_DROP_NONE, false, 101}, /* received is not acknowledged */
		/*  9 */ {101, SAN_DROP_DUPLICATE, false, 101},
		/* 10 */ {102, SAN_DROP_NONE, true, 101},
		/* 11 */ {103, SAN_DROP_NONE, true, 101},
		/* 12 */ {0x80000000, SAN_DROP_BEYOND, false, 101},
		/* 13 */ {0x90000000, SAN_DROP_OLD, false, 101}, /* over 2^31 ahead: behind */
	};

	play(100, 8, rows, RTE_DIM(rows));
}

/* RT-3: the same across 2^32. */
UNIT_CASE(san_pdl_win_rx_classify__wraps)
{
	static const struct row rows[] = {
		/*  0 */ {0xfffffffd, SAN_DROP_OLD, false, 0xfffffffe},
		/*  1 */ {2, SAN_DROP_BEYOND, false, 0xfffffffe},
		/*  2 */ {1, SAN_DROP_NONE, true, 0xfffffffe},
		/*  3 */ {0xffffffff, SAN_DROP_NONE, true, 0xfffffffe},
		/*  4 */ {0xfffffffe, SAN_DROP_NONE, true, 0},
		/*  5 */ {0xffffffff, SAN_DROP_OLD, false, 0},
		/*  6 */ {1, SAN_DROP_DUPLICATE, false, 0},
		/*  7 */ {0, SAN_DROP_NONE, true, 2},
		/*  8 */ {5, SAN_DROP_NONE, true, 2},
		/*  9 */ {6, SAN_DROP_BEYOND, false, 2},
	};

	play(0xfffffffe, 4, rows, RTE_DIM(rows));
}

/* The largest window: bits are reused turn after turn, and none is left set. */
UNIT_CASE(san_pdl_win_rx_ack__many_turns)
{
	struct san_pdl_rxw w;
	uint32_t psn = 0xfffff000;

	san_pdl_win_rx_init(&w, psn, SAN_WIN_DATA_MAX);
	for (uint32_t i = 0; i < 5 * SAN_WIN_DATA_MAX; i += 2, psn += 2) {
		/* swapped in pairs */
		assert_int_equal(san_pdl_win_rx_classify(&w, psn + 1), SAN_DROP_NONE);
		san_pdl_win_rx_ack(&w, psn + 1);
		assert_true(san_pdl_win_rx_has_gap(&w));
		san_pdl_win_rx_ack(&w, psn);
		assert_false(san_pdl_win_rx_has_gap(&w));
		assert_true(w.base == psn + 2);
	}
	san_pdl_win_rx_check(&w);
}

UNIT_CASE(san_pdl_win_rx_ack__again_or_old_is_harmless)
{
	struct san_pdl_rxw w;

	san_pdl_win_rx_init(&w, 10, 4);
	san_pdl_win_rx_ack(&w, 11);
	san_pdl_win_rx_ack(&w, 11);
	assert_true(w.base == 10);
	san_pdl_win_rx_ack(&w, 10);
	assert_true(w.base == 12);
	san_pdl_win_rx_ack(&w, 10);
	assert_true(w.base == 12 && w.high == 12);
	san_pdl_win_rx_check(&w);
}

/* RT-33: a received packet that was dropped is new again; acknowledged is final. */
UNIT_CASE(san_pdl_win_rx_revoke__received_only)
{
	struct san_pdl_rxw w;

	san_pdl_win_rx_init(&w, 0xffffffff, 8);
	san_pdl_win_rx_receive(&w, 1);
	san_pdl_win_rx_ack(&w, 3);
	san_pdl_win_rx_receive(&w, 4);
	assert_true(w.high == 5);
	san_pdl_win_rx_revoke(&w, 4);
	assert_true(w.high == 4);
	san_pdl_win_rx_revoke(&w, 3);
	assert_int_equal(san_pdl_win_rx_classify(&w, 3), SAN_DROP_DUPLICATE);
	san_pdl_win_rx_revoke(&w, 1);
	assert_int_equal(san_pdl_win_rx_classify(&w, 1), SAN_DROP_NONE);
	san_pdl_win_rx_revoke(&w, 0xfffffffe); /* far behind */
	assert_int_equal(san_pdl_win_rx_classify(&w, 0xfffffffe), SAN_DROP_OLD);
	san_pdl_win_rx_check(&w);
}

/* ---- transmit window ---- */

static struct san_pdl_wide wide;
#define block wide.b

UNIT_CASE(san_pdl_win_tx_room__up_to_the_peers_window)
{
	struct san_pdl_txw w;

	san_pdl_win_tx_init(&w, 0xfffffffe, 4);
	assert_int_equal(san_pdl_win_tx_room(&w), 4);
	w.next += 3;
	assert_int_equal(san_pdl_win_tx_outstanding(&w), 3);
	assert_int_equal(san_pdl_win_tx_room(&w), 1);
	w.size = 2; /* smaller than what is in flight: nothing is withdrawn */
	assert_int_equal(san_pdl_win_tx_room(&w), 0);
}

/* RT-6: slides only over leading acknowledged bits, and clears them. */
UNIT_CASE(san_pdl_win_tx_slide__leading_acknowledged)
{
	struct san_pdl_txw w;

	san_pdl_win_wide_init(&wide);
	san_pdl_win_tx_init(&w, 0xfffffffe, 8);
	w.next += 6;
	san_bitmap_set(&block.acked[SAN_WIN_REQ], 0xffffffff);
	san_bitmap_set(&block.rcvd[SAN_WIN_REQ], 0xfffffffe); /* received is not released */
	san_pdl_win_tx_slide(&w, &block, SAN_WIN_REQ);
	assert_true(w.base == 0xfffffffe);
	san_bitmap_set(&block.acked[SAN_WIN_REQ], 0xfffffffe);
	san_bitmap_set(&block.acked[SAN_WIN_REQ], 1);
	san_pdl_win_tx_slide(&w, &block, SAN_WIN_REQ);
	assert_true(w.base == 0);
	assert_false(san_bitmap_test(&block.acked[SAN_WIN_REQ], 0xfffffffe));
	assert_false(san_bitmap_test(&block.rcvd[SAN_WIN_REQ], 0xfffffffe));
	assert_true(san_bitmap_test(&block.acked[SAN_WIN_REQ], 1));
}

UNIT_CASE(san_pdl_win_tx_unreported__skips_what_is_known)
{
	struct san_pdl_txw w;
	uint32_t i;

	san_pdl_win_wide_init(&wide);
	san_pdl_win_tx_init(&w, 0xffffffc0, 300);
	w.next += 200;
	for (i = 0; i < 70; i++)
		san_bitmap_set(&block.acked[SAN_WIN_DATA], w.base + i);
	for (; i < 140; i++)
		san_bitmap_set(&block.rcvd[SAN_WIN_DATA], w.base + i);
	san_bitmap_set(&block.lost[SAN_WIN_DATA], w.base + i);
	assert_true(san_pdl_win_tx_unreported(&w, &block, SAN_WIN_DATA, w.base) == w.base + 141);
	assert_true(san_pdl_win_tx_unreported(&w, &block, SAN_WIN_DATA, w.base + 150) ==
		    w.base + 150);
	assert_true(san_pdl_win_tx_unreported(&w, &block, SAN_WIN_DATA, w.next) == w.next);
	for (; i < 200; i++)
		san_bitmap_set(&block.lost[SAN_WIN_DATA], w.base + i);
	assert_true(san_pdl_win_tx_unreported(&w, &block, SAN_WIN_DATA, w.base) == w.next);
}
