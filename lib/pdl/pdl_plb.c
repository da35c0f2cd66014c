/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A path that stays bad is left for the next of the peer's source ports, so that
 * switches hash the connection elsewhere (RT-28; design, rules 12, 13). A round
 * trip is bad if it brought samples and no good one, or if a packet timed out
 * in it; several in a row change the path.
 */

#include "pdl_priv.h"

static void
change_path(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	c->bad_rtts = 0;
	if (c->nb_ports < 2)
		return;
	c->port_idx = (uint8_t)((c->port_idx + 1) % c->nb_ports);
	c->path.src_port = c->ports[c->port_idx];
	pdl->stats.nb_path_changes++;
}

static void
end_round(struct san_pdl *pdl, struct san_pdl_conn *c, bool bad, uint64_t now_ns)
{
	c->plb_round_ns = now_ns + c->rtt.srtt_ns;
	c->plb_sample = false;
	c->plb_good = false;
	if (!bad)
		c->bad_rtts = 0;
	else if (++c->bad_rtts >= pdl->conf.plb_bad_rtts)
		change_path(pdl, c);
}

void
san_pdl_plb_sample(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t delay_ns, bool ce_marked,
		   uint64_t now_ns)
{
	if (pdl->conf.plb_bad_rtts == 0)
		return;
	if (now_ns >= c->plb_round_ns && c->plb_sample)
		end_round(pdl, c, !c->plb_good, now_ns);
	c->plb_sample = true;
	c->plb_good |= !ce_marked && delay_ns <= 2 * pdl->conf.cc_conf.target_ns;
}

void
san_pdl_plb_timeout(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	if (pdl->conf.plb_bad_rtts == 0 || now_ns < c->plb_round_ns)
		return;
	end_round(pdl, c, true, now_ns);
}
