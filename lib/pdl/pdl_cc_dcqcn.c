/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Window from ECN: CE marks reported in ACKs, and CNPs. Alpha estimates the share of round trips
 * that are marked. A marked round trip cuts the window by alpha / 2. Round trips without a mark
 * first close half the distance to the window before the cut, then increase that goal, then
 * increase it faster. Delay is ignored: the algorithm is for switches that mark reliably.
 *
 * A CNP announces a mark that an ACK will report later. It is unauthenticated, so it cuts once, and
 * again only after an ACK has reported a mark: forged CNPs cause one cut.
 */

#include <rte_common.h>

#include "pdl_cc.h"

#define ALPHA     priv[0] /* Q16 */
#define GOAL      priv[1] /* window before the last cut, Q16 packets */
#define ROUND_END priv[2]
#define QUIET     priv[3] /* unmarked round trips since the last cut */
#define ON_CREDIT priv[4] /* a CNP cut, and no ACK has reported a mark since */

#define G_SHIFT    4 /* gain of alpha: 1/16 */
#define RECOVER    5 /* unmarked round trips that only recover */
#define HYPER      10
#define HYPER_PKTS 5

static void
dcqcn_init(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf)
{
	cc->ALPHA = SAN_CC_ONE;
	cc->GOAL = conf->window_init;
}

static void
dcqcn_set_level(struct san_pdl_cc *cc, bool marked)
{
	uint32_t want = marked ? (uint32_t)(cc->ALPHA * (SAN_CC_LEVELS - 1) / SAN_CC_ONE) : 0;

	if (want > cc->level)
		cc->level = want;
	else
		cc->level -= (cc->level - want + 3) / 4;
}

static void
dcqcn_on_mark(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t rtt_ns,
	      uint64_t now_ns)
{
	if (!san_pdl_cc_may_cut(cc, rtt_ns, now_ns))
		return;
	cc->GOAL = cc->window;
	san_pdl_cc_cut(cc, conf, (uint32_t)(SAN_CC_ONE - cc->ALPHA / 2), 0, now_ns);
	cc->ALPHA += (SAN_CC_ONE - cc->ALPHA) >> G_SHIFT;
	cc->QUIET = 0;
	cc->ROUND_END = now_ns + rtt_ns;
	dcqcn_set_level(cc, true);
}

static void
dcqcn_on_ack(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf,
	     const struct san_pdl_cc_sample *s)
{
	san_pdl_cc_host(cc, conf, s);
	if (s->nb_ce != 0) {
		cc->ON_CREDIT = false;
		dcqcn_on_mark(cc, conf, s->rtt_ns, s->now_ns);
	} else if (s->now_ns >= cc->ROUND_END) {
		cc->ROUND_END = s->now_ns + s->rtt_ns;
		cc->ALPHA -= cc->ALPHA >> G_SHIFT;
		dcqcn_set_level(cc, false);
		cc->QUIET++;
		if (cc->QUIET > RECOVER && s->limited)
			cc->GOAL += cc->QUIET > HYPER ? HYPER_PKTS * SAN_CC_ONE : SAN_CC_ONE;
		cc->GOAL = RTE_MIN(cc->GOAL, (uint64_t)conf->window_max);
		if (cc->GOAL > cc->window)
			cc->window += (uint32_t)((cc->GOAL - cc->window + 1) / 2);
	}
}

static void
dcqcn_on_cnp(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t rtt_ns,
	     uint64_t now_ns)
{
	if (cc->ON_CREDIT)
		return;
	cc->ON_CREDIT = true;
	dcqcn_on_mark(cc, conf, rtt_ns, now_ns);
}

static void
dcqcn_on_loss(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t rtt_ns,
	      uint64_t now_ns)
{
	if (!san_pdl_cc_may_cut(cc, rtt_ns, now_ns))
		return;
	cc->GOAL = cc->window;
	san_pdl_cc_cut(cc, conf, SAN_CC_ONE - SAN_CC_ONE / 8, 0, now_ns);
	cc->QUIET = 0;
}

static void
dcqcn_on_timeout(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t now_ns)
{
	cc->GOAL = cc->window;
	san_pdl_cc_cut(cc, conf, SAN_CC_ONE / 2, 0, now_ns);
	cc->QUIET = 0;
	cc->level = RTE_MAX(cc->level, (uint32_t)SAN_CC_LEVELS / 2);
}

const struct san_pdl_cc_ops san_pdl_cc_dcqcn = {
	.init = dcqcn_init,
	.on_ack = dcqcn_on_ack,
	.on_loss = dcqcn_on_loss,
	.on_timeout = dcqcn_on_timeout,
	.on_cnp = dcqcn_on_cnp,
};
