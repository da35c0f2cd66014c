/* SPDX-License-Identifier: BSD-3-Clause */

/* A constant window: for measurements, and for fabrics without congestion. */

#include <stddef.h>

#include <rte_common.h>

#include "pdl_cc.h"

static void
fixed_init(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf)
{
	*cc = (struct san_pdl_cc){
		.ops = &san_pdl_cc_fixed,
		.window = conf->window_init,
		.host_window = conf->window_max,
	};
}

static void
fixed_on_ack(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf,
	     const struct san_pdl_cc_sample *s)
{
	RTE_SET_USED(cc);
	RTE_SET_USED(conf);
	RTE_SET_USED(s);
}

static void
fixed_on_loss(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t rtt_ns,
	      uint64_t now_ns)
{
	RTE_SET_USED(cc);
	RTE_SET_USED(conf);
	RTE_SET_USED(rtt_ns);
	RTE_SET_USED(now_ns);
}

static void
fixed_on_timeout(struct san_pdl_cc *cc, const struct san_pdl_cc_conf *conf, uint64_t now_ns)
{
	RTE_SET_USED(cc);
	RTE_SET_USED(conf);
	RTE_SET_USED(now_ns);
}

const struct san_pdl_cc_ops san_pdl_cc_fixed = {
	.init = fixed_init,
	.on_ack = fixed_on_ack,
	.on_loss = fixed_on_loss,
	.on_timeout = fixed_on_timeout,
};
