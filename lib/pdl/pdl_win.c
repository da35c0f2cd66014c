/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Windows only: the position of a PSN and the sliding of the base. pdl_rtx.c and pdl_pcb.c apply
 * this to timers and limits.
 */

#include "pdl_priv.h"

/* ---- receive window ---- */

void
san_pdl_win_rx_init(struct san_pdl_rxw *w, uint32_t psn, uint32_t size)
{
	SAN_VERIFY(size >= SAN_WIN_MIN && size <= SAN_BITMAP_BITS);
	*w = (struct san_pdl_rxw){.base = psn, .high = psn, .size = size};
}

void
san_pdl_win_rx_widen(struct san_pdl_rxw *w, struct san_pdl_rxwords *words)
{
	san_bitmap_widen(&w->rcvd, words->rcvd, w->base);
	san_bitmap_widen(&w->acked, words->acked, w->base);
}

struct san_pdl_rxwords *
san_pdl_win_rx_close(struct san_pdl_rxw *w)
{
	san_bitmap_narrow(&w->acked);
	return container_of(san_bitmap_narrow(&w->rcvd), struct san_pdl_rxwords, rcvd[0]);
}

struct san_pdl_rxwords *
san_pdl_win_rx_narrow(struct san_pdl_rxw *w)
{
	bool needless = san_bitmap_is_wide(&w->rcvd) && w->high == w->base;

	return needless ? san_pdl_win_rx_close(w) : NULL;
}

enum san_drop
san_pdl_win_rx_classify(const struct san_pdl_rxw *w, uint32_t psn)
{
	int32_t ahead = san_seq_diff(psn, w->base);

	if (ahead < 0)
		return SAN_DROP_OLD;
	if ((uint32_t)ahead >= w->size)
		return SAN_DROP_BEYOND;
	return san_pdl_win_rx_reaches(w, psn) && san_bitmap_test(&w->rcvd, psn) ?
		SAN_DROP_DUPLICATE :
		SAN_DROP_NONE;
}

void
san_pdl_win_rx_receive(struct san_pdl_rxw *w, uint32_t psn)
{
	SAN_ASSERT(san_pdl_win_rx_classify(w, psn) == SAN_DROP_NONE &&
		   san_pdl_win_rx_reaches(w, psn));
	san_bitmap_set(&w->rcvd, psn);
	w->high = san_seq_max(w->high, psn + 1);
}

void
san_pdl_win_rx_ack(struct san_pdl_rxw *w, uint32_t psn)
{
	uint32_t n;

	if (san_seq_lt(psn, w->base))
		return;
	SAN_ASSERT(psn - w->base < w->size && san_pdl_win_rx_reaches(w, psn));
	san_bitmap_set(&w->rcvd, psn);
	san_bitmap_set(&w->acked, psn);
	w->high = san_seq_max(w->high, psn + 1);
	n = san_bitmap_leading_ones(&w->acked, w->base, w->high - w->base);
	san_bitmap_clear_range(&w->rcvd, w->base, n);
	san_bitmap_clear_range(&w->acked, w->base, n);
	w->base += n;
}

void
san_pdl_win_rx_take(struct san_pdl_rxw *w, uint32_t psn)
{
	SAN_ASSERT(san_pdl_win_rx_classify(w, psn) == SAN_DROP_NONE);
	if (likely(psn == w->base && psn == w->high)) {
		w->base++;
		w->high++;
	} else {
		san_pdl_win_rx_ack(w, psn);
	}
}

void
san_pdl_win_rx_revoke(struct san_pdl_rxw *w, uint32_t psn)
{
	/* Acknowledged is final (RULE-2). */
	if (!san_pdl_win_rx_reaches(w, psn) || san_bitmap_test(&w->acked, psn))
		return;
	san_bitmap_clear(&w->rcvd, psn);
	while (w->high != w->base && !san_bitmap_test(&w->rcvd, w->high - 1))
		w->high--;
}

static bool
is_clear(const struct san_bitmap *b, uint32_t psn, uint32_t n)
{
	return san_bitmap_first_one(b, psn, n) == n;
}

void
san_pdl_win_rx_check(const struct san_pdl_rxw *w)
{
	uint32_t used = w->high - w->base;
	uint32_t i;

	SAN_VERIFY(w->size >= SAN_WIN_MIN && w->size <= SAN_BITMAP_BITS);
	SAN_VERIFY(used <= w->size && used <= san_bitmap_bits(&w->rcvd));
	SAN_VERIFY(san_bitmap_is_wide(&w->rcvd) == san_bitmap_is_wide(&w->acked));
	/* The base is a PSN that is not acknowledged; the highest bit set is high - 1. */
	SAN_VERIFY(!san_bitmap_test(&w->acked, w->base));
	SAN_VERIFY(w->high == w->base || san_bitmap_test(&w->rcvd, w->high - 1));
	for (i = 0; i < used; i++)
		SAN_VERIFY(!san_bitmap_test(&w->acked, w->base + i) ||
			   san_bitmap_test(&w->rcvd, w->base + i));
	SAN_VERIFY(is_clear(&w->rcvd, w->high, san_bitmap_bits(&w->rcvd) - used) &&
		   is_clear(&w->acked, w->high, san_bitmap_bits(&w->acked) - used));
}

/* ---- transmit window ---- */

struct san_pdl_txblock *
san_pdl_win_narrow_init(struct san_pdl_narrow *n)
{
	n->b = (struct san_pdl_txblock){
		.e = {[SAN_WIN_REQ] = n->req, [SAN_WIN_DATA] = n->data},
		.mask[SAN_WIN_REQ] = RTE_DIM(n->req) - 1,
		.mask[SAN_WIN_DATA] = RTE_DIM(n->data) - 1,
	};
	return &n->b;
}

static void
point_bitmaps(struct san_pdl_wide *b, const struct san_pdl_txblock *from,
	      const struct san_pdl_txw w[SAN_WIN_MAX])
{
	uint32_t win;

	for (win = 0; win < SAN_WIN_MAX; win++) {
		uint64_t(*words)[SAN_BITMAP_WORDS] = &b->words[4 * win];

		b->b.acked[win] = from->acked[win];
		b->b.rcvd[win] = from->rcvd[win];
		b->b.lost[win] = from->lost[win];
		b->b.flight[win] = from->flight[win];
		san_bitmap_widen(&b->b.acked[win], words[0], w[win].base);
		san_bitmap_widen(&b->b.rcvd[win], words[1], w[win].base);
		san_bitmap_widen(&b->b.lost[win], words[2], w[win].base);
		san_bitmap_widen(&b->b.flight[win], words[3], w[win].base);
	}
}

void
san_pdl_win_wide_init(struct san_pdl_wide *b)
{
	static const struct san_pdl_txblock none;
	static const struct san_pdl_txw w[SAN_WIN_MAX];

	memset(b->words, 0, sizeof(b->words));
	point_bitmaps(b, &none, w);
	b->b.e[SAN_WIN_REQ] = b->req;
	b->b.e[SAN_WIN_DATA] = b->data;
	b->b.mask[SAN_WIN_REQ] = RTE_DIM(b->req) - 1;
	b->b.mask[SAN_WIN_DATA] = RTE_DIM(b->data) - 1;
}

void
san_pdl_win_wide_take(struct san_pdl_wide *to, const struct san_pdl_narrow *from,
		      const struct san_pdl_txw w[SAN_WIN_MAX])
{
	uint32_t win, psn;

	point_bitmaps(to, &from->b, w);
	for (win = 0; win < SAN_WIN_MAX; win++)
		for (psn = w[win].base; psn != w[win].next; psn++)
			*san_pdl_win_tx_entry(&to->b, win, psn) =
				from->b.e[win][psn & from->b.mask[win]];
}

void
san_pdl_win_tx_init(struct san_pdl_txw *w, uint32_t psn, uint32_t size)
{
	*w = (struct san_pdl_txw){.base = psn, .next = psn, .high = psn, .size = size};
}

void
san_pdl_win_tx_slide(struct san_pdl_txw *w, struct san_pdl_txblock *b, enum san_win win)
{
	uint32_t n = san_bitmap_leading_ones(&b->acked[win], w->base, w->next - w->base);

	san_bitmap_clear_range(&b->acked[win], w->base, n);
	san_bitmap_clear_range(&b->rcvd[win], w->base, n);
	w->base += n;
	w->high = san_seq_max(w->high, w->base);
}

uint32_t
san_pdl_win_tx_unreported(const struct san_pdl_txw *w, const struct san_pdl_txblock *b,
			  enum san_win win, uint32_t psn)
{
	while (san_seq_lt(psn, w->next)) {
		uint64_t known = san_bitmap_get64(&b->acked[win], psn) |
			san_bitmap_get64(&b->rcvd[win], psn) |
			san_bitmap_get64(&b->lost[win], psn);

		if (~known != 0) {
			psn += (uint32_t)__builtin_ctzll(~known);
			break;
		}
		psn += 64;
	}
	return san_seq_lt(psn, w->next) ? psn : w->next;
}

static void
check_entry(const struct san_pdl_txw *w, const struct san_pdl_txblock *b, enum san_win win,
	    uint32_t psn, uint32_t *nb_lost, uint32_t *nb_lost_free)
{
	const struct san_pdl_entry *e =
		san_pdl_win_tx_entry((struct san_pdl_txblock *)(uintptr_t)b, win, psn);
	bool acked = san_bitmap_test(&b->acked[win], psn);
	bool rcvd = san_bitmap_test(&b->rcvd[win], psn);
	bool lost = san_bitmap_test(&b->lost[win], psn);
	bool flight = san_bitmap_test(&b->flight[win], psn);
	bool is_free = !san_pdl_is_counted(e->op);

	SAN_VERIFY(e->psn == psn && e->win == win);
	SAN_VERIFY(!(lost && flight));
	SAN_VERIFY(!(acked && (lost || flight)));
	SAN_VERIFY(!(rcvd && flight));
	SAN_VERIFY(!(is_free && flight));
	SAN_VERIFY(!(acked || rcvd) || san_seq_lt(psn, w->high));
	*nb_lost += lost;
	*nb_lost_free += lost && is_free;
}

void
san_pdl_win_tx_check(const struct san_pdl_txw *w, const struct san_pdl_txblock *b, enum san_win win)
{
	uint32_t nb_lost = 0, nb_lost_free = 0, psn, rest;

	SAN_VERIFY(san_seq_le(w->base, w->high) && san_seq_le(w->high, w->next));
	if (b == NULL) {
		SAN_VERIFY(w->base == w->next && w->nb_lost == 0 && w->nb_lost_free == 0);
		return;
	}
	SAN_VERIFY(w->next - w->base <= b->mask[win] + 1);
	rest = san_bitmap_bits(&b->acked[win]) - (w->next - w->base);
	SAN_VERIFY(w->base == w->next || !san_bitmap_test(&b->acked[win], w->base));
	for (psn = w->base; psn != w->next; psn++)
		check_entry(w, b, win, psn, &nb_lost, &nb_lost_free);
	SAN_VERIFY(is_clear(&b->acked[win], w->next, rest) &&
		   is_clear(&b->rcvd[win], w->next, rest) &&
		   is_clear(&b->lost[win], w->next, rest) &&
		   is_clear(&b->flight[win], w->next, rest));
	SAN_VERIFY(nb_lost == w->nb_lost && nb_lost_free == w->nb_lost_free);
}
