/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Every step from every state of a small window, at every place of its ring and where numbers wrap.
 * A state that the model cannot tell from another has one form: bits outside the window are 0. So
 * if each single step leads to the form of the next state, each sequence of steps does, however
 * long it is. Longer windows are tested by runs of each length. (RT-3 .. RT-6, RT-18)
 */

#include "prop.h"

#include <stdbool.h>

#include <rte_common.h>

#include "pdl_priv.h"
#include "san_seq.h"
#include "tl_priv.h"

#define SMALL 4 /* PSNs of the largest window whose states are all tested */
#define FAR   (UINT32_MAX / 2)

enum status {
	NEW,
	RECEIVED,
	ACKED,
	NB_STATUS,
};

/* A receive window as a plain array from its base on. */
struct model {
	uint32_t base, size;
	enum status s[SMALL];
	bool wide;
};

struct real {
	struct san_pdl_rxw w;
	struct san_pdl_rxwords words;
};

/* ---- forms ---- */

/* A bit, without the functions of the bitmap. */
static void
bit_put(struct san_bitmap *b, uint32_t seq)
{
	uint64_t *words = (uint64_t *)(uintptr_t)(b->v - 1);

	if ((b->v & 1) == 0)
		b->v |= 1ull << (32 + seq % 32);
	else
		words[seq % 1024 / 64] |= 1ull << seq % 64;
}

static void
form(const struct model *m, struct real *r)
{
	r->w = (struct san_pdl_rxw){.base = m->base, .high = m->base, .size = m->size};
	memset(r->words.rcvd, 0, sizeof(r->words.rcvd));
	memset(r->words.acked, 0, sizeof(r->words.acked));
	if (m->wide) {
		r->w.rcvd.v = (uintptr_t)r->words.rcvd | 1;
		r->w.acked.v = (uintptr_t)r->words.acked | 1;
	}
	for (uint32_t i = 0; i < m->size; i++) {
		if (m->s[i] == NEW)
			continue;
		r->w.high = m->base + i + 1;
		bit_put(&r->w.rcvd, m->base + i);
		if (m->s[i] == ACKED)
			bit_put(&r->w.acked, m->base + i);
	}
}

static void
check_form(const struct real *r, const struct model *m)
{
	static struct real want;

	form(m, &want);
	PROP_CHECK(r->w.base == want.w.base && r->w.high == want.w.high);
	PROP_CHECK((r->w.rcvd.v & 1) == m->wide && (r->w.acked.v & 1) == m->wide);
	if (!m->wide)
		PROP_CHECK(r->w.rcvd.v == want.w.rcvd.v && r->w.acked.v == want.w.acked.v);
	PROP_CHECK(memcmp(r->words.rcvd, want.words.rcvd, sizeof(want.words.rcvd)) == 0);
	PROP_CHECK(memcmp(r->words.acked, want.words.acked, sizeof(want.words.acked)) == 0);
}

/* ---- steps of the receive window ---- */

static void
model_slide(struct model *m)
{
	while (m->s[0] == ACKED) {
		memmove(m->s, m->s + 1, sizeof(m->s) - sizeof(m->s[0]));
		m->s[m->size - 1] = NEW;
		m->base++;
	}
}

static void
step_receive(struct real *r, struct model *m, uint32_t i)
{
	if (m->s[i] != NEW)
		return;
	san_pdl_win_rx_receive(&r->w, m->base + i);
	m->s[i] = RECEIVED;
}

static void
step_take(struct real *r, struct model *m, uint32_t i)
{
	if (m->s[i] != NEW)
		return;
	san_pdl_win_rx_take(&r->w, m->base + i);
	m->s[i] = ACKED;
	model_slide(m);
}

static void
step_ack(struct real *r, struct model *m, uint32_t i)
{
	san_pdl_win_rx_ack(&r->w, m->base + i);
	m->s[i] = ACKED;
	model_slide(m);
}

static void
step_ack_old(struct real *r, struct model *m, uint32_t i)
{
	san_pdl_win_rx_ack(&r->w, m->base - 1 - i);
	san_pdl_win_rx_ack(&r->w, m->base - FAR + i);
}

static void
step_revoke(struct real *r, struct model *m, uint32_t i)
{
	san_pdl_win_rx_revoke(&r->w, m->base + i);
	m->s[i] = m->s[i] == ACKED ? ACKED : NEW;
}

static void
step_revoke_old(struct real *r, struct model *m, uint32_t i)
{
	san_pdl_win_rx_revoke(&r->w, m->base - 1 - i);
}

static void
step_resize(struct real *r, struct model *m, uint32_t i)
{
	bool empty = r->w.high == r->w.base;

	if (i != 0)
		return;
	if (!m->wide)
		san_pdl_win_rx_widen(&r->w, &r->words);
	else
		PROP_CHECK(san_pdl_win_rx_narrow(&r->w) == (empty ? &r->words : NULL));
	m->wide = !m->wide || !empty;
}

static void
step_classify(struct real *r, struct model *m, uint32_t i)
{
	static const enum san_drop pos[] = {
		[NEW] = SAN_DROP_NONE,
		[RECEIVED] = SAN_DROP_DUPLICATE,
		[ACKED] = SAN_DROP_DUPLICATE,
	};

	PROP_CHECK(san_pdl_win_rx_classify(&r->w, m->base + i) == pos[m->s[i]]);
	PROP_CHECK(san_pdl_win_rx_classify(&r->w, m->base - 1 - i) == SAN_DROP_OLD);
	PROP_CHECK(san_pdl_win_rx_classify(&r->w, m->base - FAR - 1 + i) == SAN_DROP_OLD);
	PROP_CHECK(san_pdl_win_rx_classify(&r->w, m->base + m->size + i) == SAN_DROP_BEYOND);
	PROP_CHECK(san_pdl_win_rx_classify(&r->w, m->base + FAR - i) == SAN_DROP_BEYOND);
}

static void
rx_steps(const struct model *from)
{
	static void (*const steps[])(struct real * r, struct model * m, uint32_t i) = {
		step_receive, step_take, step_ack, step_ack_old, step_revoke,
		step_revoke_old, step_resize, step_classify};
	static struct real r;
	struct model m;

	for (uint32_t k = 0; k < RTE_DIM(steps); k++)
		for (uint32_t i = 0; i < from->size; i++) {
			m = *from;
			form(&m, &r);
			steps[k](&r, &m, i);
			check_form(&r, &m);
			san_pdl_win_rx_check(&r.w);
		}
}

/* All states of each small window at *base*. */
static void
rx_states(uint32_t base)
{
	struct model m = {.base = base};
	uint32_t nb, i, rest;

	for (m.size = SAN_WIN_MIN; m.size <= SMALL; m.size++) {
		for (nb = 2, i = 1; i < m.size; i++)
			nb *= NB_STATUS;
		for (uint32_t n = 0; n < 2 * nb; n++) {
			m.wide = (n & 1) != 0;
			m.s[0] = n / 2 % 2 == 0 ? NEW : RECEIVED; /* the base is not acknowledged */
			for (i = 1, rest = n / 4; i < m.size; i++, rest /= NB_STATUS)
				m.s[i] = (enum status)(rest % NB_STATUS);
			rx_steps(&m);
		}
	}
}

/* The base passes *n* acknowledged PSNs at once. */
static void
rx_run(uint32_t base, uint32_t n)
{
	static struct real r;
	struct model m = {.base = base, .size = SMALL, .wide = n >= SAN_BITMAP_NARROW};

	form(&m, &r);
	r.w.size = SAN_BITMAP_BITS;
	for (uint32_t i = 1; i <= n; i++) {
		bit_put(&r.w.rcvd, base + i);
		bit_put(&r.w.acked, base + i);
	}
	r.w.high = base + n + (n != 0);
	if (r.w.high == base)
		san_pdl_win_rx_take(&r.w, base);
	else
		san_pdl_win_rx_ack(&r.w, base);
	m.base = base + n + 1;
	check_form(&r, &m);
}

/* ---- the bitmap ---- */

static struct san_bitmap bitmap;
static uint64_t bitmap_words[SAN_BITMAP_WORDS];

static void
bitmap_form(bool wide)
{
	memset(bitmap_words, 0, sizeof(bitmap_words));
	bitmap.v = wide ? (uintptr_t)bitmap_words | 1 : 0;
}

static uint32_t
bitmap_count(void)
{
	uint32_t i, n = (uint32_t)__builtin_popcountll(bitmap.v >> 32);

	if ((bitmap.v & 1) == 0)
		return n;
	for (i = n = 0; i < SAN_BITMAP_WORDS; i++)
		n += (uint32_t)__builtin_popcountll(bitmap_words[i]);
	return n;
}

/* A single bit is found, set and cleared by each function where it is. */
static void
bitmap_bit(uint32_t seq, uint32_t i, bool wide)
{
	uint32_t max = wide ? SAN_BITMAP_BITS : SAN_BITMAP_NARROW;
	uint64_t word = i < RTE_MIN(max, 64u) ? 1ull << i : 0;

	bitmap_form(wide);
	bit_put(&bitmap, seq + i);
	PROP_CHECK(san_bitmap_test(&bitmap, seq + i) && bitmap_count() == 1);
	PROP_CHECK(san_bitmap_get64(&bitmap, seq) == word);
	PROP_CHECK(san_bitmap_first_one(&bitmap, seq, max) == i);
	PROP_CHECK(san_bitmap_first_one(&bitmap, seq, i) == i);
	PROP_CHECK(san_bitmap_leading_ones(&bitmap, seq + i, max) == 1);
	san_bitmap_clear_range(&bitmap, seq, i);
	PROP_CHECK(bitmap_count() == 1);
	san_bitmap_clear_range(&bitmap, seq, i + 1);
	PROP_CHECK(bitmap_count() == 0);
	san_bitmap_set(&bitmap, seq + i);
	PROP_CHECK(san_bitmap_test(&bitmap, seq + i) && bitmap_count() == 1);
	san_bitmap_clear(&bitmap, seq + i);
	PROP_CHECK(bitmap_count() == 0);
	if (word == 0)
		return;
	san_bitmap_or64(&bitmap, seq, word);
	PROP_CHECK(san_bitmap_test(&bitmap, seq + i) && bitmap_count() == 1);
	san_bitmap_andnot64(&bitmap, seq, word);
	PROP_CHECK(bitmap_count() == 0);
}

/* *n* bits from *seq* on. */
static void
bitmap_run(uint32_t seq, uint32_t n, bool wide)
{
	uint32_t max = wide ? SAN_BITMAP_BITS : SAN_BITMAP_NARROW;

	bitmap_form(wide);
	for (uint32_t i = 0; i < n; i++)
		bit_put(&bitmap, seq + i);
	PROP_CHECK(san_bitmap_leading_ones(&bitmap, seq, max) == n);
	PROP_CHECK(san_bitmap_first_one(&bitmap, seq + n, max - n) == max - n);
	if (n <= SAN_BITMAP_NARROW && !wide) {
		san_bitmap_widen(&bitmap, bitmap_words, seq);
		PROP_CHECK(san_bitmap_leading_ones(&bitmap, seq, SAN_BITMAP_BITS) == n);
	}
	PROP_CHECK(bitmap_count() == n);
	san_bitmap_clear_range(&bitmap, seq, n);
	PROP_CHECK(bitmap_count() == 0);
}

static void
bitmap_at(uint32_t seq)
{
	static const uint32_t ns[] = {62, 63, 64, 65, 127, 128, 129, 1021, 1022, 1023};

	for (uint32_t i = 0; i < SAN_BITMAP_NARROW; i++) {
		bitmap_bit(seq, i, false);
		bitmap_run(seq, i, false);
		bitmap_bit(seq, i, true);
		bitmap_run(seq, i, true);
	}
	for (uint32_t i = 0; i < RTE_DIM(ns); i++) {
		bitmap_bit(seq, ns[i], true);
		bitmap_run(seq, ns[i], true);
	}
}

/* ---- the transmit window ---- */

enum {
	TX_NONE,
	TX_RCVD,
	TX_LOST,
	TX_ACKED,
	TX_NB
};

/* *n* PSNs from *base* on are outstanding, with two bits of status each. */
static void
tx_state(uint32_t base, uint32_t n, uint32_t states, struct san_pdl_txblock *b)
{
	struct san_pdl_txw w = {.base = base, .next = base + n, .high = base, .size = 64};
	enum san_win win = SAN_WIN_DATA;
	uint32_t k, first = 0;

	while (first < n && (states >> 2 * first & 3) == TX_ACKED)
		first++;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t s = states >> 2 * i & 3;

		if (s == TX_RCVD)
			bit_put(&b->rcvd[win], base + i);
		if (s == TX_LOST)
			bit_put(&b->lost[win], base + i);
		if (s == TX_ACKED)
			bit_put(&b->acked[win], base + i);
	}
	for (uint32_t i = 0; i <= n; i++) {
		for (k = i; k < n && (states >> 2 * k & 3) != TX_NONE; k++)
			;
		PROP_CHECK(san_pdl_win_tx_unreported(&w, b, win, base + i) == base + k);
	}
	san_pdl_win_tx_slide(&w, b, win);
	PROP_CHECK(w.base == base + first && w.high == w.base && w.next == base + n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t s = i < first ? TX_NB : states >> 2 * i & 3;

		PROP_CHECK(san_bitmap_test(&b->acked[win], base + i) == (s == TX_ACKED));
		PROP_CHECK(san_bitmap_test(&b->rcvd[win], base + i) == (s == TX_RCVD));
		san_bitmap_clear(&b->acked[win], base + i);
		san_bitmap_clear(&b->rcvd[win], base + i);
		san_bitmap_clear(&b->lost[win], base + i);
	}
}

static void
tx_states(uint32_t base)
{
	static struct san_pdl_narrow narrow;
	static struct san_pdl_wide wide;

	san_pdl_win_narrow_init(&narrow);
	if (wide.b.mask[SAN_WIN_DATA] == 0)
		san_pdl_win_wide_init(&wide);
	for (uint32_t n = 0; n < SMALL; n++)
		for (uint32_t states = 0; states < 1u << 2 * n; states++) {
			tx_state(base, n, states, &narrow.b);
			tx_state(base, n, states, &wide.b);
		}
}

/* No two numbers of a window have one entry of its ring. */
static void
rings(uint32_t base)
{
	static bool used[SAN_TL_N_MAX + SAN_WIN_DATA_MAX];
	static struct san_pdl_wide wide;

	if (wide.b.mask[SAN_WIN_DATA] == 0)
		san_pdl_win_wide_init(&wide);
	memset(used, 0, sizeof(used));
	for (uint32_t i = 0; i < SAN_TL_N_MAX; i++) {
		PROP_CHECK(!used[SAN_TL_SLOT(base + i)]);
		used[SAN_TL_SLOT(base + i)] = true;
	}
	memset(used, 0, sizeof(used));
	for (uint32_t i = 0; i < SAN_WIN_DATA_MAX; i++) {
		struct san_pdl_entry *e = san_pdl_win_tx_entry(&wide.b, SAN_WIN_DATA, base + i);

		PROP_CHECK(!used[e - wide.data]);
		used[e - wide.data] = true;
	}
}

/* ---- serial numbers ---- */

/*
 * The order of two numbers depends on their difference only. Each difference of the upper eight
 * bits is tested, with lower bits at their bounds.
 */
static void
serial(uint32_t a)
{
	static const uint32_t low[] = {0, 1, 0x7fffff, 0xffffff};

	for (uint32_t high = 0; high < 256; high++)
		for (uint32_t i = 0; i < RTE_DIM(low); i++) {
			uint32_t d = high << 24 | low[i];
			bool ahead = d != 0 && d <= FAR;
			bool behind = d > FAR;

			if (d == FAR + 1) /* neither is before the other */
				continue;
			PROP_CHECK(san_seq_gt(a + d, a) == ahead && san_seq_lt(a, a + d) == ahead);
			PROP_CHECK(san_seq_lt(a + d, a) == behind);
			PROP_CHECK(san_seq_ge(a + d, a) == !behind);
			PROP_CHECK(san_seq_le(a + d, a) == !ahead);
			PROP_CHECK(san_seq_max(a, a + d) == (behind ? a : a + d));
			PROP_CHECK((uint32_t)san_seq_diff(a + d, a) == d);
		}
}

/* The places: each of the largest ring, over the wrap of 2^32 and over that of signed numbers. */
static void
run(uint64_t seed)
{
	static const uint32_t from[] = {0u - SAN_BITMAP_BITS - SMALL, FAR - 70};
	static const uint32_t nb[] = {SAN_BITMAP_BITS + 70, 140};

	for (uint32_t i = 0; i < RTE_DIM(from); i++)
		for (uint32_t k = 0; k < nb[i]; k++) {
			serial(from[i] + k);
			rx_states(from[i] + k);
			tx_states(from[i] + k);
			bitmap_at(from[i] + k);
			for (uint32_t n = 0; k % 64 == 0 && n < SAN_BITMAP_BITS; n++)
				rx_run(from[i] + k / 64 * 63, n);
			if (k % 64 == 0)
				rings(from[i] + k / 64 * 63);
		}
}

PROP_MAIN("every step from every state", run)
