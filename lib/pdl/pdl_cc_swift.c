/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES: delay-based window (the default)
 *
 * Below the target delay the window grows by one packet per round trip; above,
 * it shrinks in proportion to the excess, at most to half, at most once per
 * round trip. Below one packet it is paced (pdl_sched.c). Until something first
 * hints at a limit it doubles per round trip: on a long path one packet at a time
 * would take seconds.
 *
 * Delay is filtered first: per round trip the smallest sample, and of the last
 * three round trips the smallest of those. A virtual machine that stalls makes
 * one round trip's packets late, however many they are; congestion makes several
 * round trips late in all their samples (design, rule 12).
 *
 * Delay far beyond what any switch can queue comes from a host that does not
 * get to run for longer than that, every time: two programs polling on one
 * CPU. Then the window goes no lower than where it started; losses still take it
 * lower, timeouts to one packet.
 *
 * Loss without delay is a bad link, a policer, or a switch with hardly any
 * buffer. A bad link gets no better by sending less, so a share of losses that
 * such links have is let pass; above it the window shrinks a little per round trip.
 *
 * The target has a part for many flows on one link: it grows as the window
 * shrinks, so that flows with unequal windows meet. base / 2 / sqrt(window),
 * the root taken as a power of two.
 */

#include <stddef.h>

#include <rte_common.h>

#include "pdl_cc.h"

#define ROUND_END priv[0] /* when this round trip's minimum is complete */
#define MIN_NOW   priv[1] /* smallest delay of this round trip, 0 = none */
#define MIN_1     priv[2] /* of the last one */
#define MIN_2     priv[3] /* of the one before */
#define LOSS      priv[4] /* share of packets lost lately, Q16 */
#define LIMITED   priv[5] /* not 0: something hinted at a limit */

#define BETA       52429u           /* 0.8 in Q16: cut per relative excess */
#define KEEP_HALF  32768u           /* 0.5: the deepest cut */
#define KEEP_LOSS  57344u           /* 7/8: much loss, but no delay */
#define LOSS_SHIFT 8                /* the share is over about so many packets, as power of 2 */
#define LOSS_NOISE (65536u / 10)    /* up to here it is a bad link, not congestion */
#define FLOOR_LOSS (4 * SAN_CC_ONE) /* below that nobody sees the next loss early */
#define LEVEL_MAX  (SAN_CC_LEVELS - 1)

static void
swift_init(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf)
{
	*cc = (struct san_pdl_cc){
		.ops = &san_pdl_cc_swift,
		.window = conf->window_init,
		.host_window = conf->window_max,
	};
}

/* Smallest non-zero of the two; 0 if both are. */
static uint64_t
min_known(uint64_t a, uint64_t b)
{
	if (a == 0 || b == 0)
		return a | b;
	return RTE_MIN(a, b);
}

/* Filtered delay; 0 until three round trips have samples: nothing is cut before. */
static uint64_t
filtered(const struct san_pdl_cc *cc)
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

	if (n >= 1u << LOSS_SHIFT) /* rare: one report of everything */
		cc->LOSS = ((uint64_t)s->nb_lost << 16) / n;
	else
		cc->LOSS += (((uint64_t)s->nb_lost << 16) >> LOSS_SHIFT) -
			((cc->LOSS * n) >> LOSS_SHIFT);
}

static uint64_t
target_of(const struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf)
{
	uint32_t pkts = cc->window / SAN_CC_ONE;
	uint64_t extra = conf->target_ns;

	if (pkts != 0)
		extra = conf->target_ns / 2 >> ((31 - __builtin_clz(pkts)) / 2);
	return conf->target_ns + extra;
}

/* A quarter of the way to what the delay says; gone when the delay is. */
static void
set_level(struct san_pdl_cc *cc, uint64_t delay, uint64_t target)
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
grow(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint32_t nb_acked)
{
	uint64_t add = (uint64_t)nb_acked * SAN_CC_ONE;

	if (cc->window >= SAN_CC_ONE && cc->LIMITED)
		add = add * SAN_CC_ONE / cc->window;
	cc->window = (uint32_t)RTE_MIN(cc->window + add, (uint64_t)conf->window_max);
}

static void
shrink(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t delay, uint64_t target,
       uint64_t now_ns)
{
	uint64_t excess = ((delay - target) << 16) / delay;
	uint32_t cut = (uint32_t)(excess * BETA >> 16);
	uint32_t floor = delay > SAN_CC_STALL * target ? conf->window_init : 0;

	san_pdl_cc_cut(cc, conf, RTE_MAX(SAN_CC_ONE - cut, KEEP_HALF), floor, now_ns);
}

static void
swift_on_ack(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf,
	     const struct san_pdl_cc_sample *s)
{
	uint64_t target = target_of(cc, conf);
	uint64_t delay;

	san_pdl_cc_host(cc, conf, s);
	loss_add(cc, s);
	if (s->delay_ns != 0)
		filter_add(cc, s);
	/* a round trip late in all its samples: some are, by the bursts of a window that doubles */
	cc->LIMITED |= cc->MIN_1 > target || s->nb_lost != 0 || s->nb_ce != 0 ||
		cc->host_window < cc->window;
	delay = filtered(cc);
	if (s->delay_ns != 0)
		set_level(cc, delay, target);
	if (s->nb_ce != 0 && delay <= target) {
		/*
		 * The switch knows of a queue before the round trips show it. Below one packet
		 * per round trip a mark is luck: no cut, or flows starve, but no growth either.
		 */
		if (cc->window >= SAN_CC_ONE && san_pdl_cc_may_cut(cc, s->rtt_ns, s->now_ns))
			san_pdl_cc_cut(cc, conf, KEEP_LOSS, 0, s->now_ns);
	} else if (delay <= target) {
		/* What was not used can't be shown to be right. */
		if (s->limited)
			grow(cc, conf, s->nb_acked);
	} else if (s->delay_ns != 0 && san_pdl_cc_may_cut(cc, s->rtt_ns, s->now_ns)) {
		shrink(cc, conf, delay, target, s->now_ns);
	}
}

static void
swift_on_loss(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t rtt_ns,
	      uint64_t now_ns)
{
	bool late = filtered(cc) > target_of(cc, conf);

	cc->LIMITED = true;
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
	 * Timeouts are further apart than round trips: each may cut. Not below one
	 * packet: a flow that had nothing else under way would be paced to a stop.
	 */
	san_pdl_cc_cut(cc, conf, KEEP_HALF, SAN_CC_ONE, now_ns);
	cc->level = RTE_MAX(cc->level, (uint32_t)LEVEL_MAX / 2);
	cc->LIMITED = true;
}

const struct san_pdl_cc_ops san_pdl_cc_swift = {
	.name = "swift",
	.init = swift_init,
	.on_ack = swift_on_ack,
	.on_loss = swift_on_loss,
	.on_timeout = swift_on_timeout,
};
