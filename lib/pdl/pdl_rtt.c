/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Round-trip time, timeouts, backoff (RT-7, RT-9, RT-25).
 *
 * An ACK echoes t1 (when our newest packet was sent, our clock) and t2 (when it
 * arrived, the peer's clock), and carries t3 (when it was sent itself). With t4
 * = now: fabric delay = (t4 - t1) - (t3 - t2). The round trip that timeouts
 * build on is that plus the ACK delay, but no more of it than coalescing
 * explains: an ACK that waited for a slow ULP says nothing about the network.
 *
 * A target delay is for fabrics, where the path itself takes little of it. On a
 * longer path, or a slow one, where a large packet alone takes longer to send,
 * every sample would be above the target and the window end at its minimum. So
 * the least delay of the last 10 to 20 s counts as the path's, for small packets
 * and large ones each their own, and what is above counts in proportion to it.
 * Where the path's part is below 4/5 of the target nothing changes: there flows
 * that join a standing queue, and take it for the path, gain nothing by it.
 */

#include "pdl_priv.h"

#define SRTT_SHIFT   3 /* new sample counts 1/8 */
#define VAR_SHIFT    2 /* and 1/4 in the variation */
#define BASE_NS      (10 * SAN_NS_PER_S)
#define NEAR(target) ((target) - (target) / 5) /* a path up to here is a short one */
#define QUEUE_SHARE  8                         /* queue of a long path: a part of its delay */
#define JITTER_SHIFT 4 /* a timeout is up to 1/16 longer, so that flows fall out of step */

static void
set_rto(struct san_pdl_rtt *r, const struct san_pdl_conf *conf, uint32_t level)
{
	uint64_t rto = RTE_MAX(conf->rto_min_ns, r->srtt_ns + 4 * r->var_ns);

	/* Up to twice as long at full congestion: the floor alone would hide it (RT-9). */
	rto += rto * level / SAN_CC_LEVELS;
	r->rto_ns = RTE_MIN(rto, conf->rto_max_ns);
}

void
san_pdl_rtt_init(struct san_pdl_rtt *r, const struct san_pdl_conf *conf)
{
	*r = (struct san_pdl_rtt){.rto_ns = conf->rto_init_ns};
}

void
san_pdl_rtt_sample(struct san_pdl_rtt *r, const struct san_pdl_conf *conf, uint64_t rtt_ns,
		   uint32_t level)
{
	if (r->srtt_ns == 0) {
		r->srtt_ns = rtt_ns;
		r->var_ns = rtt_ns / 2;
		r->min_ns = rtt_ns;
	} else {
		uint64_t off = rtt_ns > r->srtt_ns ? rtt_ns - r->srtt_ns : r->srtt_ns - rtt_ns;

		r->var_ns += (off >> VAR_SHIFT) - (r->var_ns >> VAR_SHIFT);
		r->srtt_ns += (rtt_ns >> SRTT_SHIFT) - (r->srtt_ns >> SRTT_SHIFT);
		r->min_ns = RTE_MIN(r->min_ns, rtt_ns);
	}
	r->srtt_ns = RTE_MAX(r->srtt_ns, 1u); /* 0 means none */
	set_rto(r, conf, level);
}

uint64_t
san_pdl_rtt_timeout(struct san_pdl *pdl, const struct san_pdl_conn *c, uint8_t retries)
{
	uint8_t doublings = RTE_MAX(retries, c->rtt.backoff);
	uint64_t t = c->rtt.rto_ns;

	while (doublings-- > 0 && t < pdl->conf.rto_max_ns)
		t *= 2;
	t = RTE_MIN(t, pdl->conf.rto_max_ns);
	return t + san_prng_below(&pdl->prng, (uint32_t)RTE_MIN(t >> JITTER_SHIFT, UINT32_MAX));
}

uint64_t
san_pdl_rtt_hole_ns(const struct san_pdl *pdl, const struct san_pdl_conn *c)
{
	if (c->rtt.srtt_ns == 0)
		return c->rtt.rto_ns / 2;
	return RTE_MIN(c->rtt.srtt_ns + 2 * c->rtt.var_ns + pdl->conf.ack_delay_ns, c->rtt.rto_ns);
}

uint64_t
san_pdl_rtt_tail_ns(const struct san_pdl *pdl, const struct san_pdl_conn *c)
{
	return RTE_MAX(2 * c->rtt.srtt_ns, pdl->conf.tlp_min_ns);
}

bool
san_pdl_rtt_echo(const struct san_pdl_conf *conf, struct san_pdl_conn *c, uint32_t tx_time,
		 const struct san_wire_ack *ack, uint64_t now_ns, uint64_t *rtt_ns,
		 uint64_t *delay_ns)
{
	uint32_t total = (uint32_t)now_ns - ack->echo_tx; /* t4 - t1 */
	uint32_t hold = tx_time - ack->echo_rx;           /* t3 - t2 */

	/* Each packet counts once: one late packet echoed twice is not a run. */
	if (ack->echo_tx == c->last_echo)
		return false;
	c->last_echo = ack->echo_tx;
	/* Older than 2 s or from the future: the clocks say nothing. */
	if (total > INT32_MAX || hold > INT32_MAX)
		return false;
	*delay_ns = hold < total ? total - hold : 1;
	*rtt_ns = *delay_ns + RTE_MIN((uint64_t)hold, 2 * conf->ack_delay_ns);
	return true;
}

uint32_t
san_pdl_rtt_stamp(const struct san_pdl_conn *c, uint16_t payload, uint64_t now_ns)
{
	return ((uint32_t)now_ns & ~1u) | (payload >= c->mtu / 2);
}

static uint32_t
min_known(uint32_t a, uint32_t b)
{
	return a == 0 || b == 0 ? a | b : RTE_MIN(a, b);
}

static uint32_t
base_add(struct san_pdl_rtt *r, uint32_t size, uint32_t delay_ns, uint64_t now_ns)
{
	uint32_t i;

	if (now_ns >= r->base_end_ns) {
		r->base_end_ns = now_ns + BASE_NS;
		for (i = 0; i < SAN_PDL_SIZES; i++) {
			r->base_old_ns[i] = r->base_ns[i];
			r->base_ns[i] = 0;
		}
	}
	r->base_ns[size] = min_known(r->base_ns[size], delay_ns);
	return min_known(r->base_ns[size], r->base_old_ns[size]);
}

uint64_t
san_pdl_rtt_weigh(const struct san_pdl_conf *conf, struct san_pdl_rtt *r, uint32_t echo_tx,
		  uint64_t delay_ns, uint64_t now_ns)
{
	uint64_t target = conf->cc_conf.target_ns, near = NEAR(target);
	uint32_t base = base_add(r, echo_tx & 1, (uint32_t)RTE_MIN(delay_ns, UINT32_MAX), now_ns);

	if (base <= near)
		return delay_ns;
	return near + (delay_ns - base) * (target - near) / RTE_MAX(target - near, base / QUEUE_SHARE);
}
