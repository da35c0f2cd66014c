/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Round-trip time, timeouts, backoff (RT-7, RT-9, RT-25).
 *
 * An ACK echoes t1 (when our newest packet was sent, our clock) and t2 (when it arrived, the peer's
 * clock), and carries t3 (when the ACK was sent). With t4 = now, the fabric delay is (t4 - t1) -
 * (t3 - t2). The round trip used for timeouts adds the ACK delay, but no more of it than coalescing
 * explains: an ACK that waited for a slow ULP says nothing about the network.
 *
 * A target delay assumes a fabric whose path delay is small. On a longer path every sample would
 * exceed it, and the window would fall to its minimum. So the delay of the path without a queue is
 * subtracted, but for the three tenths of the target that the shortest paths take. Flows of all
 * paths then accept nearly the same queue; if the others' is much shorter, they are at their
 * minimum (RT-9). With less, many flows that measured a queue on a short path differ. The handshake
 * measures it, and a faster packet lowers it. No later sample raises it: flows that join a standing
 * queue would count the queue as path and build another one on top. A path that became longer,
 * however, brings the window to its minimum and keeps it there. After a second at the minimum, the
 * smallest delay of that second becomes the delay of the path.
 *
 * A packet also takes time to be transmitted at each hop. This time is no queue either; it matters
 * only on a slow link.
 */

#include "pdl_priv.h"

#define SRTT_SHIFT    3                 /* weight of a new sample: 1/8 */
#define VAR_SHIFT     2                 /* and 1/4 in the variation */
#define FORGET_SHIFT  30                /* a timeout falls within about a second (2^30 ns) */
#define HOPS          4                 /* each transmits the whole packet again */
#define OVERHEAD      256               /* bytes: headers, and the ACK on its way back */
#define NEAR(target)  ((target)*3 / 10) /* part of the target for the path */
#define REST_NS       SAN_NS_PER_S
#define HANDSHAKE_MAX 10 /* limit, in initial timeouts */
#define JITTER_SHIFT  4  /* a timeout is up to 1/16 longer, so that flows desynchronise */

void
san_pdl_rtt_sample(struct san_pdl_rtt *r, const struct san_pdl_conf *conf, uint64_t rtt_ns,
		   uint32_t level, uint32_t since_ns)
{
	bool is_first = r->srtt_ns == 0;
	uint64_t rto, fall;

	if (is_first) {
		r->srtt_ns = rtt_ns;
		r->var_ns = rtt_ns / 2;
	} else {
		uint64_t off = rtt_ns > r->srtt_ns ? rtt_ns - r->srtt_ns : r->srtt_ns - rtt_ns;

		r->var_ns += (off >> VAR_SHIFT) - (r->var_ns >> VAR_SHIFT);
		r->srtt_ns += (rtt_ns >> SRTT_SHIFT) - (r->srtt_ns >> SRTT_SHIFT);
	}
	r->srtt_ns = RTE_MAX(r->srtt_ns, 1u); /* 0 means none */
	/* A steady long path has no variation, so the minimum RTO is added to the round trip. */
	rto = r->srtt_ns + RTE_MAX(conf->rto_min_ns, 4 * r->var_ns);
	/*
	 * Up to twice as long at full congestion: the minimum alone would hide congestion (RT-9).
	 */
	rto += rto * level / SAN_CC_LEVELS;
	rto = RTE_MIN(rto, conf->rto_max_ns);
	/*
	 * There may be hundreds of samples in a round trip, so the variation forgets the stall of a
	 * machine before the next one. The timeout does not: it falls by time, not by sample.
	 */
	if (rto < r->rto_ns && !is_first && since_ns < 1u << FORGET_SHIFT) {
		fall = ((r->rto_ns - rto) >> 10) * since_ns >> (FORGET_SHIFT - 10);
		rto = r->rto_ns - fall - 1; /* it falls to the end */
	}
	r->rto_ns = rto;
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
san_pdl_rtt_answer_ns(const struct san_pdl *pdl, const struct san_pdl_conn *c)
{
	if (c->rtt.srtt_ns == 0)
		return c->rtt.rto_ns / 2;
	return RTE_MIN(c->rtt.srtt_ns + 2 * c->rtt.var_ns + pdl->conf.ack_delay_ns, c->rtt.rto_ns);
}

uint64_t
san_pdl_rtt_gap_ns(const struct san_pdl *pdl, const struct san_pdl_conn *c)
{
	uint64_t answer_ns = san_pdl_rtt_answer_ns(pdl, c);

	/* Gaps are reported at once, so the ACK delay is left out, unless that proved too short. */
	if (c->rtt.nb_reorder_wait != 0 || c->rtt.srtt_ns == 0)
		return answer_ns;
	return RTE_MIN(c->rtt.srtt_ns + 2 * c->rtt.var_ns, answer_ns);
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

	/* Each packet counts once: one late packet echoed twice is not several in a row. */
	if (ack->echo_tx == c->last_echo)
		return false;
	c->last_echo = ack->echo_tx;
	/* Older than 2 s or from the future: the clocks are useless. */
	if (total > INT32_MAX || hold > INT32_MAX)
		return false;
	*delay_ns = hold < total ? total - hold : 1;
	*rtt_ns = *delay_ns + RTE_MIN((uint64_t)hold, 2 * conf->ack_delay_ns);
	return true;
}

/* It rarely changes, so what congestion control derives from it costs no packet anything. */
static void
rtt_set_base(const struct san_pdl_conf *conf, struct san_pdl_conn *c, uint64_t base_ns)
{
	c->rtt.base_ns = base_ns;
	san_pdl_cc_set_path(&c->cc, &conf->cc_conf, base_ns);
}

void
san_pdl_rtt_base(const struct san_pdl_conf *conf, struct san_pdl_conn *c, uint64_t delay_ns)
{
	if (c->rtt.base_ns == 0 || delay_ns < c->rtt.base_ns)
		rtt_set_base(conf, c, RTE_MAX(delay_ns, 1u));
}

void
san_pdl_rtt_path(const struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t rtt_ns)
{
	san_pdl_rtt_base(&pdl->conf, c, rtt_ns);
	/* A longer time is not the path: the other side did not run. */
	if (rtt_ns <= HANDSHAKE_MAX * pdl->conf.rto_init_ns)
		san_pdl_rtt_sample(&c->rtt, &pdl->conf, rtt_ns, 0, UINT32_MAX);
}

static uint64_t
beyond_path(const struct san_pdl_conf *conf, const struct san_pdl_conn *c, uint64_t delay_ns)
{
	uint64_t near = NEAR(conf->cc_conf.target_ns);
	uint64_t bits = 8000ULL * HOPS * (c->mtu + OVERHEAD);
	uint64_t send_ns = conf->link_mbps == 0 ? 0 : bits / conf->link_mbps;
	uint64_t path = send_ns + RTE_MAX(c->rtt.base_ns, near) - near;

	return delay_ns > path ? delay_ns - path : 1;
}

/*
 * The window is at its minimum or the delay beyond the path is that of a stall: if this lasts, the
 * path has become longer. *seen_ns* is the delay beyond the path.
 */
static void
watch_rest(const struct san_pdl_conf *conf, struct san_pdl_conn *c, uint64_t delay_ns,
	   uint64_t seen_ns, uint64_t now_ns)
{
	const struct san_pdl_cc_conf *cc = &conf->cc_conf;
	uint32_t floor = RTE_MAX(c->cc.floor, cc->window_min);
	struct san_pdl_rtt *r = &c->rtt;

	if (c->cc.window > floor && seen_ns <= SAN_CC_STALL * cc->target_ns) {
		r->rest_ns = 0;
	} else if (r->rest_ns == 0) {
		r->rest_ns = now_ns;
		r->rest_min_ns = delay_ns;
	} else {
		r->rest_min_ns = RTE_MIN(r->rest_min_ns, delay_ns);
		if (now_ns < r->rest_ns + REST_NS)
			return;
		rtt_set_base(conf, c, r->rest_min_ns);
		r->rest_ns = 0;
	}
}

uint64_t
san_pdl_rtt_weigh(const struct san_pdl_conf *conf, struct san_pdl_conn *c, uint64_t delay_ns,
		  uint64_t now_ns)
{
	watch_rest(conf, c, delay_ns, beyond_path(conf, c, delay_ns), now_ns);
	return beyond_path(conf, c, delay_ns);
}
