/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A connection leaves a bad path: it changes to the next of the peer's source ports, so that
 * switches hash it elsewhere (RT-28; RULE-12, RULE-13). Three signs of a bad path:
 *
 * Lasting congestion. A round trip is bad if it brought samples and no good one. Several bad ones
 * in a row change the path. Each change doubles the number needed for the next, and good round
 * trips reduce it again: if all paths are full, changing them makes it worse for all flows.
 *
 * A timeout, and no ACK for an RTO: nothing came back although the tail was probed several times.
 *
 * Two duplicates, each after an ACK of ours, and nothing new: the peer does not receive our ACKs.
 * Our path may be broken, and a sender of ACKs has no timeouts to detect it.
 */

#include "pdl_priv.h"

#define WAIT_MAX 1024 /* bad round trips */
#define COPIES   2

static void
change_path(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	c->bad_rtts = 0;
	c->nb_copies = 0;
	if (c->nb_ports < 2)
		return;
	c->port_idx = (uint8_t)((c->port_idx + 1) % c->nb_ports);
	c->path.src_port = c->ports[c->port_idx];
	pdl->stats.nb_path_changes++;
}

static void
end_round(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	bool good = c->plb_good;

	c->plb_round_ns = now_ns + c->rtt.srtt_ns;
	c->plb_sample = false;
	c->plb_good = false;
	if (good) {
		c->bad_rtts = 0;
		c->plb_wait -= c->plb_wait > 0;
	} else if (++c->bad_rtts >= pdl->conf.plb_bad_rtts + c->plb_wait) {
		c->plb_wait = (uint16_t)RTE_MIN(2u * c->bad_rtts, WAIT_MAX);
		change_path(pdl, c);
	}
}

void
san_pdl_plb_sample(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t delay_ns, bool ce_marked,
		   uint64_t now_ns)
{
	if (pdl->conf.plb_bad_rtts == 0)
		return;
	if (now_ns >= c->plb_round_ns && c->plb_sample)
		end_round(pdl, c, now_ns);
	c->plb_sample = true;
	c->plb_good |= !ce_marked && delay_ns <= 2 * pdl->conf.cc_conf.target_ns;
}

void
san_pdl_plb_timeout(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	if (pdl->conf.plb_bad_rtts != 0 && now_ns >= c->last_ack_ns + c->rtt.rto_ns)
		change_path(pdl, c);
}

void
san_pdl_plb_copy(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	/* Duplicates that arrived before our answer to the first one mean nothing. */
	if (pdl->conf.plb_bad_rtts == 0 || c->copy_serial == c->ack.serial)
		return;
	c->copy_serial = c->ack.serial;
	if (++c->nb_copies >= COPIES)
		change_path(pdl, c);
}
