/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * Every packet draws the same number of random values, whatever happens to it, so that the rate of
 * one fault does not change the sequence of another.
 *
 * Corruption skips the Ethernet header and frames that are not IP: on a real link the frame check
 * sequence detects those errors before the port delivers the frame. Errors in IP and above must be
 * found by the ICRC (RT-3).
 */

#include <rte_ether.h>
#include <rte_ip.h>

#include "engine_priv.h"

#define REORDER_MIN_NS  (20 * SAN_NS_PER_US) /* long enough for a burst to overtake */
#define REORDER_SPAN_NS (80 * SAN_NS_PER_US)
#define IPV6_ECN_SHIFT  4 /* in the second byte of the header */

int
san_engine_impair_init(struct san_engine_impair *im, uint32_t max_held)
{
	uint32_t i;

	memset(im, 0, sizeof(*im));
	im->places = calloc(max_held, sizeof(*im->places));
	if (im->places == NULL)
		return -ENOMEM;
	TAILQ_INIT(&im->held);
	TAILQ_INIT(&im->free);
	for (i = 0; i < max_held; i++)
		TAILQ_INSERT_TAIL(&im->free, &im->places[i], link);
	return 0;
}

void
san_engine_impair_fini(struct san_engine_impair *im)
{
	struct san_engine_impair_held *h;

	TAILQ_FOREACH(h, &im->held, link)
		rte_pktmbuf_free(h->m);
	free(im->places);
	memset(im, 0, sizeof(*im));
}

int
san_engine_impair_set(struct san_engine_impair *im, const struct san_engine_impair_conf *conf)
{
	if (conf == NULL) {
		im->on = false;
		return 0;
	}
	if (conf->drop > SAN_IMPAIR_ALWAYS || conf->duplicate > SAN_IMPAIR_ALWAYS ||
	    conf->reorder > SAN_IMPAIR_ALWAYS || conf->corrupt > SAN_IMPAIR_ALWAYS ||
	    conf->ecn > SAN_IMPAIR_ALWAYS)
		return -EINVAL;
	im->conf = *conf;
	san_prng_seed(&im->prng, conf->seed);
	im->on = (conf->drop | conf->duplicate | conf->reorder | conf->corrupt | conf->ecn |
		  conf->delay_ns) != 0;
	return 0;
}

/* ---- delayed packets ---- */

static void
impair_hold_pkt(struct san_engine_impair *im, struct rte_mbuf *m, uint64_t release_ns)
{
	struct san_engine_impair_held *h = TAILQ_FIRST(&im->free), *before;

	if (h == NULL) {
		im->stats.nb_overflow++;
		rte_pktmbuf_free(m);
		return;
	}
	TAILQ_REMOVE(&im->free, h, link);
	h->release_ns = release_ns;
	h->m = m;
	/* from the end: only reordered packets are due after packets that come later */
	before = TAILQ_LAST(&im->held, san_engine_impair_line);
	while (before != NULL && before->release_ns > release_ns)
		before = TAILQ_PREV(before, san_engine_impair_line, link);
	if (before != NULL)
		TAILQ_INSERT_AFTER(&im->held, before, h, link);
	else
		TAILQ_INSERT_HEAD(&im->held, h, link);
}

/* ---- the faults ---- */

static rte_be16_t
ether_type(const struct rte_mbuf *m)
{
	if (m->data_len < sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr))
		return 0;
	return rte_pktmbuf_mtod(m, const struct rte_ether_hdr *)->ether_type;
}

static bool
is_ip(const struct rte_mbuf *m)
{
	rte_be16_t type = ether_type(m);

	return type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) ||
		type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6);
}

static struct rte_mbuf *
impair_corrupt_pkt(struct san_engine_impair *im, struct rte_mbuf *m, uint64_t where)
{
	struct rte_mbuf *copy, *seg;
	uint32_t bit, byte;

	if (!is_ip(m))
		return m;
	copy = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX); /* *m* may share memory */
	if (copy == NULL)
		return m;
	rte_pktmbuf_free(m);
	bit = (uint32_t)(where % (8 * (copy->pkt_len - sizeof(struct rte_ether_hdr))));
	byte = (uint32_t)sizeof(struct rte_ether_hdr) + bit / 8;
	for (seg = copy; byte >= seg->data_len; seg = seg->next)
		byte -= seg->data_len;
	*rte_pktmbuf_mtod_offset(seg, uint8_t *, byte) ^= (uint8_t)(1u << bit % 8);
	im->stats.nb_corrupted++;
	return copy;
}

/* Set Congestion Experienced, if the sender has declared ECN support. */
static void
impair_mark_pkt(struct san_engine_impair *im, struct rte_mbuf *m)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, sizeof(struct rte_ether_hdr));

	if (ether_type(m) == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)) {
		struct rte_ipv4_hdr *v4 = (struct rte_ipv4_hdr *)ip;

		if ((v4->type_of_service & RTE_IPV4_HDR_ECN_MASK) == 0)
			return;
		v4->type_of_service |= RTE_IPV4_HDR_ECN_CE;
		v4->hdr_checksum = 0;
		v4->hdr_checksum = rte_ipv4_cksum(v4);
	} else if (is_ip(m)) {
		if ((ip[1] & RTE_IPV4_HDR_ECN_MASK << IPV6_ECN_SHIFT) == 0)
			return;
		ip[1] |= RTE_IPV4_HDR_ECN_CE << IPV6_ECN_SHIFT;
	} else {
		return;
	}
	im->stats.nb_marked++;
}

static bool
impair_happens(struct san_prng *g, uint64_t probability)
{
	return (san_prng_u64(g) >> 32) < probability;
}

static void
impair_one(struct san_engine_impair *im, struct rte_mbuf *m, uint64_t now_ns)
{
	const struct san_engine_impair_conf *conf = &im->conf;
	bool drop = impair_happens(&im->prng, conf->drop);
	bool duplicate = impair_happens(&im->prng, conf->duplicate);
	bool reorder = impair_happens(&im->prng, conf->reorder);
	bool broken = impair_happens(&im->prng, conf->corrupt);
	bool marked = impair_happens(&im->prng, conf->ecn);
	uint64_t late_ns = REORDER_MIN_NS + san_prng_below(&im->prng, REORDER_SPAN_NS);
	uint64_t where = san_prng_u64(&im->prng);
	uint64_t release_ns = now_ns + conf->delay_ns;
	struct rte_mbuf *copy;

	if (drop) {
		im->stats.nb_dropped++;
		rte_pktmbuf_free(m);
		return;
	}
	copy = duplicate ? rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX) : NULL;
	if (marked)
		impair_mark_pkt(im, m);
	if (broken)
		m = impair_corrupt_pkt(im, m, where);
	if (reorder)
		im->stats.nb_reordered++;
	impair_hold_pkt(im, m, reorder ? release_ns + late_ns : release_ns);
	if (copy != NULL) {
		im->stats.nb_duplicated++;
		impair_hold_pkt(im, copy, release_ns);
	}
}

uint16_t
san_engine_impair_run(struct san_engine_impair *im, struct rte_mbuf **in, uint16_t n,
		      struct rte_mbuf **out, uint16_t max, uint64_t now_ns)
{
	struct san_engine_impair_held *h;
	uint16_t i, k = 0;

	for (i = 0; i < n; i++) {
		if (im->on)
			impair_one(im, in[i], now_ns);
		else
			impair_hold_pkt(im, in[i], now_ns);
	}
	while (k < max && san_engine_impair_deadline_ns(im) <= now_ns) {
		h = TAILQ_FIRST(&im->held);
		TAILQ_REMOVE(&im->held, h, link);
		TAILQ_INSERT_HEAD(&im->free, h, link);
		out[k++] = h->m;
	}
	return k;
}

uint64_t
san_engine_impair_deadline_ns(const struct san_engine_impair *im)
{
	return TAILQ_EMPTY(&im->held) ? SAN_TIME_NEVER : TAILQ_FIRST(&im->held)->release_ns;
}
