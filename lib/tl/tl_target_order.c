/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The order of the target: which RSN is the base, what is finished, and how the base moves (RT-14,
 * RT-15, RT-19; RULE-15).
 */

#include "tl_priv.h"

static inline bool
fin_test(const struct san_tl_conn *tc, uint32_t rsn)
{
	return (tc->memo->fin[SAN_TL_SLOT(rsn) / 64] >> (rsn & 63)) & 1;
}

bool
san_tl_target_is_finished(const struct san_tl_conn *tc, uint32_t rsn)
{
	if (san_seq_lt(rsn, tc->rx_base))
		return true;
	return !tc->peer.ordered && rsn - tc->rx_base < SAN_TL_N_MAX && fin_test(tc, rsn);
}

struct san_tl_rxn *
san_tl_target_rxn_find(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn)
{
	if (rsn == tc->rx_base)
		return tc->cur;
	if (tc->nb_ahead == 0)
		return NULL;
	return san_tl_reorder_find(&tl->cam, san_tl_pdl_conn(tl, tc)->cid, SAN_CAM_REQUEST, rsn);
}

void
san_tl_target_rnr_over(struct san_tl *tl, struct san_tl_conn *tc)
{
	san_tl_odd_put(tl, tc, SAN_ODD_RNR, false);
	san_tl_admit_update(tl, tc);
}

/* The base is finished: move to the next RSN. */
static void
base_next(struct san_tl *tl, struct san_tl_conn *tc)
{
	struct san_pdl_conn *c = san_tl_pdl_conn(tl, tc);
	struct san_tl_rxn *r = NULL;

	SAN_ASSERT(tc->cur == NULL);
	tc->rx_base++;
	san_pdl_odd_put(&c->odd, SAN_ODD_HEAD, false);
	c->cmpl_out = tc->rx_base;
	if (tc->nb_ahead != 0)
		r = san_tl_reorder_take(&tl->cam, c->cid, SAN_CAM_REQUEST, tc->rx_base);
	if (r != NULL) {
		san_tl_rxn_set_ahead(tl, tc, r, false);
		san_tl_rxn_set_cur(tl, tc, r);
		/* Relaxed: these bytes were placed ahead of their turn. */
		if (tc->peer.ordered && r->solicited)
			san_tl_admit_charge_done(tl, &r->charge, r->received);
	}
	if (unlikely(c->odd & SAN_ODD_RNR))
		san_tl_target_rnr_over(tl, tc);
}

void
san_tl_target_fail_if_ends(struct san_tl *tl, const struct san_tl_conn *tc, uint8_t status)
{
	if (status != SAN_ST_OK && tc->peer.ends)
		san_tl_odd_put(tl, tc, SAN_ODD_FAILED, true);
}

void
san_tl_target_rsn_finish(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn, uint8_t code)
{
	tl->stats.nb_served++;
	san_tl_target_fail_if_ends(tl, tc, code);
	if (unlikely(tc->refused != NULL)) {
		san_tl_nack_refused_set(tc, rsn, code);
		san_tl_nack_refused_pass(tl, tc);
	}
	if (tc->peer.ordered) {
		SAN_ASSERT(rsn == tc->rx_base);
		base_next(tl, tc);
		return;
	}
	tc->memo->round[SAN_TL_SLOT(rsn)] = 0;
	tc->memo->fin[SAN_TL_SLOT(rsn) / 64] |= 1ULL << (rsn & 63);
	while (fin_test(tc, tc->rx_base)) {
		tc->memo->fin[SAN_TL_SLOT(tc->rx_base) / 64] &= ~(1ULL << (tc->rx_base & 63));
		base_next(tl, tc);
	}
}

void
san_tl_target_rsn_finish_all(struct san_tl *tl, struct san_tl_conn *tc, uint32_t rsn, uint32_t n)
{
	/* RSNs that were refused have no record: the base passes them at once */
	if (likely(tc->peer.ordered && tc->refused == NULL)) {
		tc->rx_base += n - 1;
		tl->stats.nb_served += n - 1;
		rsn += n - 1;
		n = 1;
	}
	for (; n > 0; n--)
		san_tl_target_rsn_finish(tl, tc, rsn++, SAN_ST_OK);
}

enum san_drop
san_tl_target_refuse_red(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
			 enum san_drop drop, uint64_t now_ns)
{
	const struct san_wire_pkt *p = &san_wire_pkt(m)->w;

	tl->stats.nb_red_zone++;
	if (san_tl_is_push_data(p->op))
		san_tl_nack_no_record(tl, &tl->conns[c->slot], p->psn, p->rsn, now_ns);
	else
		san_tl_nack_request(tl, &tl->conns[c->slot], p->psn, p->rsn);
	return san_tl_settle(tl, c, m, SAN_RX_REFUSED, drop, now_ns);
}
