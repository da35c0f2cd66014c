/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Both ends of a window against plain arrays (RT-3 .. RT-6, RT-18): packets in
 * any order, twice or never; some acknowledged late, some revoked; ACKs that are
 * lost, late, doubled, overtaken. PSNs start close to 2^32.
 */

#include "prop.h"

#include "model_window.h"
#include "pdl_pair.h"

#define NB_STEPS 2000
#define NB_ACKS  6 /* under way at once */

static struct pair pair;
static struct model_window m;
static struct model_ack acks[NB_ACKS];
static uint32_t nb_acks, serial;
static struct san_prng rnd;

static struct san_pdl_rxw *
rxw(void)
{
	return &pair.c[1]->rx[SAN_WIN_DATA];
}

static void
send_one(void)
{
	struct pair_pkt k;
	bool sent = pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, m.nb, &k);

	/* No more than the window; up to it, always. */
	PROP_CHECK(sent == (m.nb - model_window_base(m.known) < m.size));
	if (!sent)
		return;
	PROP_CHECK(k.p.psn == m.first_psn + m.nb);
	m.nb++;
}

/* Some PSN between long acknowledged and far beyond the window (RT-5). */
static void
arrive(void)
{
	struct san_pdl *pdl = pair.pdl[1];
	uint32_t base = model_window_base(m.acked);
	uint32_t i = base + san_prng_below(&rnd, m.size + 4);
	uint32_t back = san_prng_below(&rnd, 8) == 0 ? san_prng_below(&rnd, base + 1) : 0;
	enum san_drop want = SAN_DROP_NONE;

	i -= back;
	if (i < base)
		want = SAN_DROP_OLD;
	else if (i >= base + m.size)
		want = SAN_DROP_BEYOND;
	else if (m.received[i])
		want = SAN_DROP_DUPLICATE;
	PROP_CHECK(san_pdl_win_rx_classify(rxw(), m.first_psn + i) == want);
	if (want != SAN_DROP_NONE || i >= m.nb)
		return; /* never sent: lost */
	if (!san_pdl_win_rx_reaches(rxw(), m.first_psn + i)) {
		san_pdl_win_rx_widen(rxw(), san_pool_take(&pdl->free_rxwords));
		pdl->uses[0].nb_words++;
	}
	m.received[i] = true;
	if (san_prng_below(&rnd, 2) == 0) {
		san_pdl_win_rx_receive(rxw(), m.first_psn + i);
	} else {
		m.acked[i] = true;
		if (san_prng_below(&rnd, 2) == 0)
			san_pdl_win_rx_take(rxw(), m.first_psn + i);
		else
			san_pdl_win_rx_ack(rxw(), m.first_psn + i);
	}
}

/* A received packet of the window, acknowledged late or dropped after all. */
static void
settle(void)
{
	struct san_pdl_rxwords *words;
	uint32_t base = model_window_base(m.acked);
	uint32_t i = base + san_prng_below(&rnd, m.size);

	if (i >= MODEL_WINDOW_MAX || !m.received[i])
		return;
	if (san_prng_below(&rnd, 4) != 0) {
		m.acked[i] = true;
		san_pdl_win_rx_ack(rxw(), m.first_psn + i);
		words = san_pdl_win_rx_narrow(rxw());
		if (words != NULL) {
			san_pool_give(&pair.pdl[1]->free_rxwords, words);
			pair.pdl[1]->uses[0].nb_words--;
		}
		return;
	}
	san_pdl_win_rx_revoke(rxw(), m.first_psn + i);
	m.received[i] = m.acked[i]; /* acknowledged is final */
}

static void
say(void)
{
	uint32_t i = nb_acks < NB_ACKS ? nb_acks++ : san_prng_below(&rnd, NB_ACKS);

	model_window_say(&m, ++serial, &acks[i]);
}

static void
to_words(const struct model_ack *a, struct san_wire_ack *w)
{
	for (uint32_t i = a->base; i < m.nb; i++) {
		uint32_t bit = i - a->base;

		if (!a->received[i])
			continue;
		w->nb_data = (uint8_t)(bit / 64 + 1);
		w->data_rcvd[bit / 64] |= 1ULL << (bit % 64);
		if (a->acked[i])
			w->data_acked[bit / 64] |= 1ULL << (bit % 64);
	}
}

static void
hear(void)
{
	uint32_t i = san_prng_below(&rnd, NB_ACKS);
	uint32_t before, want = 0;
	struct pair_pkt k;

	if (i >= nb_acks)
		return;
	memset(&k, 0, sizeof(k));
	k.p.req_ebsn = pair.c[0]->tx[SAN_WIN_REQ].base;
	k.p.data_ebsn = m.first_psn + acks[i].base;
	k.ack.serial = acks[i].serial;
	k.ack.first_win = 2000;
	to_words(&acks[i], &k.ack);
	before = model_window_base(m.known);
	for (uint32_t j = before; j < m.nb; j++)
		want -= m.known[j];
	model_window_hear(&m, &acks[i]);
	for (uint32_t j = before; j < m.nb; j++)
		want += m.known[j];
	san_pdl_ack_apply(pair.pdl[0], pair.c[0], &k.p, &k.ack, pair.now);
	/* Released at once, holes allowed, and each only once (RT-6). */
	PROP_CHECK(pair.pdl[0]->nb_acked == want);
	for (uint32_t j = 0; j < want; j++)
		PROP_CHECK(m.known[pair.pdl[0]->acked[j].psn - m.first_psn]);
	pair.pdl[0]->nb_acked = 0;
	if (san_prng_below(&rnd, 3) != 0)
		acks[i] = acks[--nb_acks];
}

static void
compare(void)
{
	const struct san_pdl_txw *w = &pair.c[0]->tx[SAN_WIN_DATA];
	const struct san_pdl_txblock *b = pair.c[0]->txb;

	PROP_CHECK(rxw()->base - m.first_psn == model_window_base(m.acked));
	PROP_CHECK(rxw()->high - m.first_psn == model_window_high(&m));
	san_pdl_win_rx_check(rxw());
	for (uint32_t i = model_window_base(m.acked); i < m.nb; i++) {
		uint32_t psn = m.first_psn + i;

		if (!san_pdl_win_rx_reaches(rxw(), psn)) {
			PROP_CHECK(!m.received[i] && !m.acked[i]);
			continue;
		}
		PROP_CHECK(san_bitmap_test(&rxw()->rcvd, psn) == m.received[i]);
		PROP_CHECK(san_bitmap_test(&rxw()->acked, psn) == m.acked[i]);
	}
	PROP_CHECK(w->base - m.first_psn == model_window_base(m.known));
	PROP_CHECK(w->next - m.first_psn == m.nb);
	for (uint32_t i = w->base - m.first_psn; i < m.nb; i++) {
		uint32_t psn = m.first_psn + i;

		PROP_CHECK(san_bitmap_test(&b->acked[SAN_WIN_DATA], psn) == m.known[i]);
		PROP_CHECK(m.known[i] || san_bitmap_test(&b->rcvd[SAN_WIN_DATA], psn) == m.hint[i]);
		/* What is reported neither counts as in flight nor goes again. */
		if (m.known[i] || m.hint[i])
			PROP_CHECK(!san_bitmap_test(&b->flight[SAN_WIN_DATA], psn) &&
				   !san_bitmap_test(&b->lost[SAN_WIN_DATA], psn));
	}
}

static void
run(uint64_t seed)
{
	static const uint16_t sizes[] = {2, 3, 63, 64, 65, 200, 1024};
	struct san_pdl_conf conf = pair_conf();

	san_prng_seed(&rnd, seed);
	memset(&m, 0, sizeof(m));
	nb_acks = 0;
	serial = 0;
	m.size = sizes[san_prng_below(&rnd, RTE_DIM(sizes))];
	m.first_psn = 0u - san_prng_below(&rnd, 1500);
	conf.first_psn = m.first_psn;
	conf.cc = SAN_CC_FIXED;
	conf.cc_conf.window_max = 2000 * SAN_CC_ONE;
	conf.cc_conf.window_init = 2000 * SAN_CC_ONE;
	pair_open(&pair, &conf, 64, (uint16_t)m.size);
	pair.c[0]->pcb.first_win = 2000;
	for (uint32_t step = 0; step < NB_STEPS && m.nb < MODEL_WINDOW_MAX - 1; step++) {
		uint32_t what = san_prng_below(&rnd, 16);

		if (what < 6)
			send_one();
		else if (what < 12)
			arrive();
		else if (what < 13)
			settle();
		else if (what < 14)
			say();
		else
			hear();
		pair.now += 100;
		if (step % 8 == 0) {
			compare();
			san_pdl_check(pair.pdl[0]);
		}
	}
	pair_close(&pair);
}

PROP_MAIN("windows equal plain arrays", run)
