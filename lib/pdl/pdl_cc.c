/* SPDX-License-Identifier: BSD-3-Clause */

/* Congestion control: the list of algorithms, their common part, and the simplest one (RULE-12). */

#include <rte_common.h>

#include "pdl_cc.h"

#define HOST_FULL 750 /* per mille of the receiver's buffers: cut from here on */
#define HOST_LOW  500 /* grow up to here */
#define GAIN_MAX  (2 * SAN_CC_ONE)

const struct san_pdl_cc_ops *const san_pdl_cc_kinds[SAN_CC_MAX] = {
	[SAN_CC_SWIFT] = &san_pdl_cc_swift,
	[SAN_CC_DCQCN] = &san_pdl_cc_dcqcn,
	[SAN_CC_FIXED] = &san_pdl_cc_fixed,
};

const char *const san_pdl_cc_words[SAN_CC_MAX] = {
	[SAN_CC_SWIFT] = "swift",
	[SAN_CC_DCQCN] = "dcqcn",
	[SAN_CC_FIXED] = "fixed",
};

void
san_pdl_cc_init(struct san_pdl_cc *cc, const struct san_pdl_cc_ops *ops,
		const struct san_pdl_cc_conf *conf)
{
	*cc = (struct san_pdl_cc){
		.ops = ops,
		.window = conf->window_init,
		.host_window = conf->window_max,
	};
	san_pdl_cc_set_path(cc, conf, 0);
	if (ops->init != NULL)
		ops->init(cc, conf);
}

bool
san_pdl_cc_may_cut(const struct san_pdl_cc *cc, uint64_t rtt_ns, uint64_t now_ns)
{
	return cc->last_cut_ns == 0 || now_ns >= cc->last_cut_ns + rtt_ns;
}

/*
 * With its queue a round trip of the shortest path takes about twice the target. A longer path
 * counts as so many of them. Its least window is larger by this factor: the same rate for all.
 */
void
san_pdl_cc_set_path(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t path_ns)
{
	uint64_t trips = SAN_CC_ONE + path_ns * SAN_CC_ONE / (2 * conf->target_ns);
	uint64_t floor = RTE_MIN(conf->window_min * trips / SAN_CC_ONE, (uint64_t)SAN_CC_ONE);

	cc->gain = (uint32_t)RTE_MIN(trips, (uint64_t)GAIN_MAX);
	cc->floor = RTE_MAX((uint32_t)floor, conf->window_min);
}

void
san_pdl_cc_cut(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint32_t keep,
	       uint32_t floor, uint64_t now_ns)
{
	uint32_t window = (uint32_t)(((uint64_t)cc->window * keep) >> 16);

	floor = RTE_MAX(floor, RTE_MAX(cc->floor, conf->window_min));
	window = RTE_MAX(window, floor);
	cc->window = RTE_MIN(window, cc->window);
	cc->last_cut_ns = RTE_MAX(now_ns, 1u);
	cc->nb_cuts++;
}

void
san_pdl_cc_host(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf,
		const struct san_pdl_cc_sample *s)
{
	uint32_t in_use = RTE_MAX(cc->window, SAN_CC_ONE);
	uint32_t w = cc->host_window;

	if (s->rx_level >= HOST_FULL) {
		if (cc->host_cut_ns != 0 && s->now_ns < cc->host_cut_ns + s->rtt_ns)
			return;
		cc->host_cut_ns = RTE_MAX(s->now_ns, 1u);
		/*
		 * Cut from a value that limits, not from one far above. One packet keeps reports
		 * coming.
		 */
		w = RTE_MIN(w, in_use);
		cc->host_window = RTE_MAX(w / 2, SAN_CC_ONE);
	} else if (s->rx_level <= HOST_LOW && w < conf->window_max) {
		uint64_t grown = w + (uint64_t)s->nb_acked * SAN_CC_ONE / 4;

		cc->host_window = (uint32_t)RTE_MIN(grown, conf->window_max);
	}
}

/* ---- a constant window: for measurements, and for fabrics without congestion ---- */

static void
fixed_on_ack(struct san_pdl_cc *cc __rte_unused, const struct san_pdl_cc_conf *conf __rte_unused,
	     const struct san_pdl_cc_sample *s __rte_unused)
{
}

const struct san_pdl_cc_ops san_pdl_cc_fixed = {
	.on_ack = fixed_on_ack,
};
