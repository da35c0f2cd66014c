/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bare link: what two processes reach with ethdev bursts alone, no protocol
 * and no look at the payload. The ceiling that bench.py compares with.
 *
 *   bench_link EAL... -- ROLE FRAME_BYTES MILLISECONDS
 *
 * Roles: "rx" counts what "tx" sends; "ping" times what "pong" returns. The
 * measuring side prints JSON (after "ready", as all do) and says goodbye by a
 * longer frame. It leaves the rings alone from then on: memif unmaps them from a
 * thread of its own when the peer goes, under the feet of a burst that is running.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_debug.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "sample.h"

#define PORT       0
#define BURST      32
#define NB_MBUFS   16384
#define CACHE      256
#define NB_DESC    1024
#define BYE_BYTES  4          /* longer than all others */
#define BYE_ROUNDS 64         /* bursts between looks for it */
#define IDLE_MAX   (1u << 16) /* fruitless bursts between looks at the link */
#define WARM_UP_MS 100
#define LINK_MS    10000

struct link {
	struct rte_mempool *pool;
	uint64_t hz;
	uint64_t duration; /* ticks */
	uint16_t size;
	uint32_t nb_idle;
};

/* Nothing was received or sent: false when that is because the peer is gone. */
static bool
link_idle(struct link *l)
{
	struct rte_eth_link status;

	if (++l->nb_idle % IDLE_MAX != 0)
		return true;
	return rte_eth_link_get_nowait(PORT, &status) == 0 && status.link_status == RTE_ETH_LINK_UP;
}

static bool
link_wait(const struct link *l, uint16_t wanted)
{
	struct rte_eth_link status = {0};
	uint64_t end = rte_rdtsc() + LINK_MS * l->hz / 1000;

	while (rte_rdtsc() < end) {
		if (rte_eth_link_get_nowait(PORT, &status) == 0 && status.link_status == wanted)
			return true;
		usleep(1000);
	}
	fprintf(stderr, "the link did not come up or down\n");
	return false;
}

static struct rte_mbuf *
frame_alloc(struct link *l, uint16_t size)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(l->pool);

	if (m != NULL)
		rte_pktmbuf_append(m, size);
	return m;
}

static void
link_say_bye(struct link *l)
{
	struct rte_mbuf *m = frame_alloc(l, l->size + BYE_BYTES);

	while (m != NULL && rte_eth_tx_burst(PORT, 0, &m, 1) == 0)
		if (!link_idle(l))
			break;
}

static bool
is_bye(const struct link *l, const struct rte_mbuf *m)
{
	return m->pkt_len == (uint32_t)l->size + BYE_BYTES;
}

static int
role_tx(struct link *l)
{
	struct rte_mbuf *pkts[BURST], *m;
	uint16_t nb = 0;
	uint16_t sent, i;
	uint32_t round;

	for (round = 0;; round++) {
		if (nb == 0 && rte_pktmbuf_alloc_bulk(l->pool, pkts, BURST) == 0)
			for (nb = BURST, i = 0; i < BURST; i++)
				rte_pktmbuf_append(pkts[i], l->size);
		sent = rte_eth_tx_burst(PORT, 0, pkts + BURST - nb, nb);
		nb -= sent;
		if (sent == 0 && !link_idle(l))
			return -1;
		if (round % BYE_ROUNDS == 0 && rte_eth_rx_burst(PORT, 0, &m, 1) == 1)
			return 0;
	}
}

static int
role_rx(struct link *l)
{
	struct rte_mbuf *pkts[BURST];
	uint64_t begin = 0, end = 0, count = 0;
	uint64_t now, first = 0;
	double seconds;
	uint16_t nb;

	for (;;) {
		nb = rte_eth_rx_burst(PORT, 0, pkts, BURST);
		now = rte_rdtsc();
		if (nb == 0 && !link_idle(l))
			return -1;
		if (first == 0) {
			first = nb > 0 ? now : 0;
			begin = now + WARM_UP_MS * l->hz / 1000;
			end = begin + l->duration;
		}
		if (now >= end && first != 0)
			break;
		if (now >= begin)
			count += nb;
		rte_pktmbuf_free_bulk(pkts, nb);
	}
	link_say_bye(l);
	seconds = (double)l->duration / (double)l->hz;
	printf("{\"count\": %" PRIu64 ", \"seconds\": %.3f, \"mpps\": %.3f, \"gbps\": %.3f}\n",
	       count, seconds, (double)count / seconds / 1e6,
	       (double)count * l->size * 8 / seconds / 1e9);
	return 0;
}

static int
role_pong(struct link *l)
{
	struct rte_mbuf *m;

	for (;;) {
		while (rte_eth_rx_burst(PORT, 0, &m, 1) == 0)
			if (!link_idle(l))
				return -1;
		if (is_bye(l, m))
			return 0;
		while (rte_eth_tx_burst(PORT, 0, &m, 1) == 0)
			if (!link_idle(l))
				return -1;
	}
}

/* One frame there and back. */
static bool
ping(struct link *l)
{
	struct rte_mbuf *m = frame_alloc(l, l->size);

	if (m == NULL)
		return false;
	while (rte_eth_tx_burst(PORT, 0, &m, 1) == 0)
		if (!link_idle(l))
			return false;
	while (rte_eth_rx_burst(PORT, 0, &m, 1) == 0)
		if (!link_idle(l))
			return false;
	rte_pktmbuf_free(m);
	return true;
}

static int
role_ping(struct link *l)
{
	uint64_t start = rte_rdtsc();
	uint64_t begin = start + WARM_UP_MS * l->hz / 1000;
	uint64_t end = begin + l->duration;
	struct sample sample;
	uint64_t now;

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

static const struct {
	const char *name;
	int (*run)(struct link *l);
	bool is_measuring;
} roles[] = {
	{"tx", role_tx, false},
	{"rx", role_rx, true},
	{"ping", role_ping, true},
	{"pong", role_pong, false},
};

static int
link_open(struct link *l)
{
	struct rte_eth_conf conf = {0};

	l->hz = rte_get_tsc_hz();
	l->pool = rte_pktmbuf_pool_create("bench", NB_MBUFS, CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
					  SOCKET_ID_ANY);
	if (l->pool == NULL || rte_eth_dev_configure(PORT, 1, 1, &conf) != 0 ||
	    rte_eth_rx_queue_setup(PORT, 0, NB_DESC, SOCKET_ID_ANY, NULL, l->pool) != 0 ||
	    rte_eth_tx_queue_setup(PORT, 0, NB_DESC, SOCKET_ID_ANY, NULL) != 0 ||
	    rte_eth_dev_start(PORT) != 0) {
		fprintf(stderr, "the port can't be started\n");
		return -1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	int nb_eal = rte_eal_init(argc, argv);
	struct link l = {0};
	int ret = -1;
	unsigned int i;

	if (nb_eal < 0 || argc - nb_eal != 4) {
		fprintf(stderr, "usage: bench_link EAL... -- tx|rx|ping|pong BYTES MILLISECONDS\n");
		return 2;
	}
	argv += nb_eal + 1;
	if (link_open(&l) != 0)
		return 1;
	puts("ready");
	fflush(stdout);
	l.size = (uint16_t)atoi(argv[1]);
	l.duration = (uint64_t)atoi(argv[2]) * l.hz / 1000;
	alarm(60); /* whatever happens, nothing stays behind */
	for (i = 0; i < RTE_DIM(roles); i++) {
		if (strcmp(argv[0], roles[i].name) != 0 || !link_wait(&l, RTE_ETH_LINK_UP))
			continue;
		ret = roles[i].run(&l);
		if (ret == 0 && roles[i].is_measuring)
			link_wait(&l, RTE_ETH_LINK_DOWN);
	}
	rte_eth_dev_stop(PORT);
	rte_eth_dev_close(PORT);
	rte_eal_cleanup();
	return ret == 0 ? 0 : 1;
}
