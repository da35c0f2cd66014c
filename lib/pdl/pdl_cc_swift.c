/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES: delay-based window (the default)
 *
 * Below the target delay the window grows by one packet per round trip. Above it, the window
 * shrinks in proportion to the excess, at most to half, at most once per round trip. A window below
 * one packet is paced (pdl_sched.c). Until the first sign of a limit the window doubles per round
 * trip: on a long path, growth by one packet would take seconds.
 *
 * Delay is filtered: the smallest sample of each round trip, and of the last three round trips the
 * smallest of those. A virtual machine that stalls delays all packets of one round trip, however
 * many they are. Congestion delays all samples of several round trips (RULE-12).
 *
 * A delay far longer than any switch can queue comes from a host that does not run for that long,
 * each time: for example two programs polling on one CPU. Then delay does not cut the window below
 * its initial value. Losses still cut it further, and timeouts down to one packet.
 *
 * Loss without delay comes from a bad link, a policer, or a switch with very small buffers. Sending
 * less does not improve a bad link, so a share of losses typical of such links is ignored. Above
 * this share the window shrinks a little per round trip.
 *
 * The target has a part for many flows on one link: it grows as the window shrinks, so that flows
 * with unequal windows converge. This part is base / 2 / sqrt(window), with the root rounded to a
 * power of two.
 *
 * Flows with unequal round trips share a link. Growth by one packet per round trip would give
 * each a share in inverse proportion to its round trip. On a long path a round trip therefore
 * counts for more than one (san_pdl_cc_set_path): the window grows by *gain* packets, and its
 * part of the target is that of window / gain. Gain is at most two. A filter of three round trips
 * sees an increasing share of the gaps of a queue as they become longer, and each cut is as late
 * as a round trip: with more gain, flows of 200 us and above take the shares of the others.
 */

#include <rte_common.h>

#include "pdl_cc.h"

#define ROUND_END priv[0] /* end of this round trip, when MIN_NOW is complete */
#define MIN_NOW   priv[1] /* smallest delay of this round trip, 0 = none */
#define MIN_1     priv[2] /* smallest delay of the last round trip */
#define MIN_2     priv[3] /* smallest delay of the round trip before */
#define LOSS      priv[4] /* share of packets lost recently, Q16 */

#define BETA       52429u           /* 0.8 in Q16: cut per relative excess */
#define KEEP_HALF  32768u           /* 0.5: the deepest cut */
#define KEEP_LOSS  57344u           /* 7/8: much loss without delay */
#define LOSS_SHIFT 8                /* log2 of the packets that the share averages over */
#define LOSS_NOISE (65536u / 10)    /* share up to which loss means a bad link, not congestion */
#define FLOOR_LOSS (4 * SAN_CC_ONE) /* below, the next loss would need a timeout */
#define LEVEL_MAX  (SAN_CC_LEVELS - 1)

/* The smaller of two delays, where 0 means none. */
static uint64_t
min_known(uint64_t a, uint64_t b)
{
	if (a == 0 || b == 0)
		return a | b;
	return RTE_MIN(a, b);
}

/* Filtered delay; 0 until three round trips have samples: no cut before. */
static uint64_t
swift_filtered_ns(const struct san_pdl_cc *cc)
{
	if (cc->MIN_NOW == 0 || cc->MIN_1 == 0 || cc->MIN_2 == 0)
		return 0;
	return RTE_MIN(cc->MIN_NOW, RTE_MIN(cc->MIN_1, cc->MIN_2));
}

static void
filter_add(struct san_pdl_cc *cc, const struct san_pdl_cc_sample *s)
{
	if (s->now_ns < cc->ROUND_END) {
		cc->MIN_NOW = min_known(cc->MIN_NOW, s->delay_ns);
		return;
	}
	cc->MIN_2 = cc->MIN_1;
	cc->MIN_1 = cc->MIN_NOW;
	cc->MIN_NOW = s->delay_ns;
	cc->ROUND_END = s->now_ns + s->rtt_ns;
}

static void
loss_add(struct san_pdl_cc *cc, const struct san_pdl_cc_sample *s)
{
	uint64_t n = s->nb_acked + s->nb_lost;

	if (n >= 1u << LOSS_SHIFT) /* rare: one ACK reports very many packets */
		cc->LOSS = ((uint64_t)s->nb_lost << 16) / n;
	else
		cc->LOSS += (((uint64_t)s->nb_lost << 16) >> LOSS_SHIFT) -
			((cc->LOSS * n) >> LOSS_SHIFT);
}

static uint64_t
target_of(const struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf)
{
	uint32_t pkts = cc->window / cc->gain;
	uint64_t extra = conf->target_ns;

	if (pkts != 0)
		extra = conf->target_ns / 2 >> ((31 - __builtin_clz(pkts)) / 2);
	return conf->target_ns + extra;
}

/* Move the level a quarter of the way to what the delay suggests. */
static void
swift_set_level(struct san_pdl_cc *cc, uint64_t delay, uint64_t target)
{
	uint32_t want = 0;

	if (delay > target)
		want = (uint32_t)((delay - target) * LEVEL_MAX / delay);
	if (want > cc->level)
		cc->level += (want - cc->level + 3) / 4;
	else
		cc->level -= (cc->level - want + 3) / 4;
}

static void
swift_on_ack(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf,
	     const struct san_pdl_cc_sample *s)
{
	uint64_t target = target_of(cc, conf);
	uint64_t delay, add;
	uint32_t cut;

	san_pdl_cc_host(cc, conf, s);
	loss_add(cc, s);
	if (s->delay_ns != 0)
		filter_add(cc, s);
	/*
	 * A whole round trip of late samples is a sign: some late samples are caused by the bursts
	 * of a doubling window.
	 */
	cc->limited |= cc->MIN_1 > target || s->nb_lost != 0 || s->nb_ce != 0 ||
		cc->host_window < cc->window;
	delay = swift_filtered_ns(cc);
	if (s->delay_ns != 0)
		swift_set_level(cc, delay, target);
	if (s->nb_ce != 0 && delay <= target) {
		/*
		 * A mark shows a queue before the round trips do. Below one packet per round trip a
		 * mark is a matter of chance: a cut would starve flows, so the window only stops
		 * growing.
		 */
		if (cc->window >= SAN_CC_ONE && san_pdl_cc_may_cut(cc, s->rtt_ns, s->now_ns))
			san_pdl_cc_cut(cc, conf, KEEP_LOSS, 0, s->now_ns);
	} else if (delay <= target) {
		/* A window that is not used cannot be shown to be right. */
		if (!s->limited)
			return;
		add = (uint64_t)s->nb_acked * SAN_CC_ONE;
		if (cc->window >= SAN_CC_ONE && cc->limited)
			add = add * cc->gain / cc->window;
		cc->window = (uint32_t)RTE_MIN(cc->window + add, (uint64_t)conf->window_max);
	} else if (s->delay_ns != 0 && san_pdl_cc_may_cut(cc, s->rtt_ns, s->now_ns)) {
		cut = (uint32_t)((((delay - target) << 16) / delay) * BETA >> 16);
		san_pdl_cc_cut(cc, conf, RTE_MAX(SAN_CC_ONE - cut, KEEP_HALF),
			       delay > SAN_CC_STALL * target ? conf->window_init : 0, s->now_ns);
	}
}

static void
swift_on_loss(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t rtt_ns,
	      uint64_t now_ns)
{
	bool late = swift_filtered_ns(cc) > target_of(cc, conf);

	cc->limited = true;
	if (!san_pdl_cc_may_cut(cc, rtt_ns, now_ns))
		return;
	if (late)
		san_pdl_cc_cut(cc, conf, KEEP_HALF, 0, now_ns);
	else if (cc->LOSS > LOSS_NOISE)
		san_pdl_cc_cut(cc, conf, KEEP_LOSS, FLOOR_LOSS, now_ns);
}

static void
swift_on_timeout(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t now_ns)
{
	/*
	 * Timeouts are further apart than round trips, so each may cut. The cut stops at one
	 * packet: a flow with nothing else in flight would be paced to a stop.
	 */
	san_pdl_cc_cut(cc, conf, KEEP_HALF, SAN_CC_ONE, now_ns);
	cc->level = RTE_MAX(cc->level, LEVEL_MAX / 2);
	cc->limited = true;
}

const struct san_pdl_cc_ops san_pdl_cc_swift = {
	.on_ack = swift_on_ack,
	.on_loss = swift_on_loss,
	.on_timeout = swift_on_timeout,
};
