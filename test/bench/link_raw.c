/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The raw link: ethdev bursts and nothing else, no look at the payload. No
 * transport on this link can be faster.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>

#include "link.h"
#include "sample.h"

#define BYE_ROUNDS 64 /* bursts between looks for it */

static uint16_t
frame_bytes(const struct link *l)
{
	return (uint16_t)atoi(l->argv[0]);
}

int
raw_tx(struct link *l)
{
	struct rte_mbuf *pkts[LINK_BURST], *m;
	uint16_t nb = 0, size = frame_bytes(l);
	uint16_t sent, i;

	for (uint32_t round = 0;; round++) {
		if (nb == 0 && rte_pktmbuf_alloc_bulk(l->pool, pkts, LINK_BURST) == 0)
			for (nb = LINK_BURST, i = 0; i < LINK_BURST; i++)
				rte_pktmbuf_append(pkts[i], size);
		sent = rte_eth_tx_burst(LINK_PORT, 0, pkts + LINK_BURST - nb, nb);
		nb -= sent;
		if (sent == 0 && !link_idle(l))
			return -1;
		if (round % BYE_ROUNDS == 0 && rte_eth_rx_burst(LINK_PORT, 0, &m, 1) == 1)
			return 0;
	}
}

int
raw_rx(struct link *l)
{
	uint64_t begin = 0, end = 0, count = 0, now, first = 0;
	double seconds = (double)l->duration / (double)l->hz;
	struct rte_mbuf *pkts[LINK_BURST];
	uint16_t nb;

	for (;;) {
		nb = rte_eth_rx_burst(LINK_PORT, 0, pkts, LINK_BURST);
		now = rte_rdtsc();
		if (nb == 0 && !link_idle(l))
			return -1;
		if (first == 0) {
			first = nb > 0 ? now : 0;
			begin = now + link_ticks(l, LINK_WARM_MS);
			end = begin + l->duration;
		}
		if (now >= end && first != 0)
			break;
		if (now >= begin)
			count += nb;
		rte_pktmbuf_free_bulk(pkts, nb);
	}
	link_say_bye(l);
	printf("{\"mpps\": %.4f, \"gbps\": %.4f}\n", (double)count / seconds / 1e6,
	       (double)count * frame_bytes(l) * 8 / seconds / 1e9);
	return 0;
}

int
raw_pong(struct link *l)
{
	struct rte_mbuf *m;

	for (;;) {
		while (rte_eth_rx_burst(LINK_PORT, 0, &m, 1) == 0)
			if (!link_idle(l))
				return -1;
		if (link_is_bye(m))
			return 0;
		while (rte_eth_tx_burst(LINK_PORT, 0, &m, 1) == 0)
			if (!link_idle(l))
				return -1;
	}
}

/* One frame there and back. */
static bool
ping(struct link *l)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(l->pool);

	if (m == NULL || rte_pktmbuf_append(m, frame_bytes(l)) == NULL)
		return false;
	while (rte_eth_tx_burst(LINK_PORT, 0, &m, 1) == 0)
		if (!link_idle(l))
			return false;
	while (rte_eth_rx_burst(LINK_PORT, 0, &m, 1) == 0)
		if (!link_idle(l))
			return false;
	rte_pktmbuf_free(m);
	return true;
}

int
raw_ping(struct link *l)
{
	uint64_t start = rte_rdtsc(), now;
	uint64_t begin = start + link_ticks(l, LINK_WARM_MS);
	uint64_t end = begin + l->duration;
	struct sample sample;

	if (sample_init(&sample) != 0)
		return -1;
	for (; start < end; start = now) {
		if (!ping(l))
			return -1;
		now = rte_rdtsc();
		if (start >= begin && !sample_add(&sample, now - start))
			break;
	}
	link_say_bye(l);
	return sample_report(&sample, (double)l->hz / 1e6,
			     (double)(start - begin) / (double)l->hz);
}
