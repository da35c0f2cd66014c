/* SPDX-License-Identifier: BSD-3-Clause */

#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_cycles.h>

#include "link.h"

#define NB_MBUFS  16384
#define CACHE     256
#define NB_DESC   1024
#define BYE_BYTES 32
#define IDLE_MAX  (1u << 16) /* fruitless bursts between looks at the link */
#define UP_MS     10000

bool
link_idle(struct link *l)
{
	struct rte_eth_link status;

	if (++l->nb_idle % IDLE_MAX != 0)
		return true;
	return rte_eth_link_get_nowait(LINK_PORT, &status) == 0 &&
		status.link_status == RTE_ETH_LINK_UP;
}

bool
link_wait(const struct link *l, uint16_t wanted)
{
	struct rte_eth_link status = {0};
	uint64_t end = rte_rdtsc() + link_ticks(l, UP_MS);

	while (rte_rdtsc() < end) {
		if (rte_eth_link_get_nowait(LINK_PORT, &status) == 0 &&
		    status.link_status == wanted)
			return true;
		usleep(1000);
	}
	fprintf(stderr, "the link did not come up or down\n");
	return false;
}

void
link_say_bye(struct link *l)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(l->pool);

	if (m != NULL)
		rte_pktmbuf_append(m, BYE_BYTES);
	while (m != NULL && rte_eth_tx_burst(LINK_PORT, 0, &m, 1) == 0)
		if (!link_idle(l))
			break;
}

bool
link_is_bye(const struct rte_mbuf *m)
{
	return m->pkt_len == BYE_BYTES;
}

int
link_open(struct link *l, uint32_t frame)
{
	uint32_t room = RTE_ALIGN_CEIL(RTE_MAX(frame, 2048u), 64u) + RTE_PKTMBUF_HEADROOM;
	struct rte_eth_conf conf = {0};

	l->hz = rte_get_tsc_hz();
	l->pool = rte_pktmbuf_pool_create("bench", NB_MBUFS, CACHE, 0, (uint16_t)room,
					  SOCKET_ID_ANY);
	if (l->pool != NULL && rte_eth_dev_configure(LINK_PORT, 1, 1, &conf) == 0 &&
	    rte_eth_rx_queue_setup(LINK_PORT, 0, NB_DESC, SOCKET_ID_ANY, NULL, l->pool) == 0 &&
	    rte_eth_tx_queue_setup(LINK_PORT, 0, NB_DESC, SOCKET_ID_ANY, NULL) == 0 &&
	    rte_eth_dev_start(LINK_PORT) == 0)
		return 0;
	fprintf(stderr, "the port can't be started\n");
	return -1;
}

static void
close_there(void *arg)
{
	rte_eth_dev_stop(LINK_PORT);
	rte_eth_dev_close(LINK_PORT);
	sem_post(arg);
}

void
link_close(void)
{
	static sem_t closed;

	/* in the thread that releases what is the peer's when it goes, perhaps now */
	if (sem_init(&closed, 0, 0) != 0 || rte_eal_alarm_set(1, close_there, &closed) != 0)
		return;
	while (sem_wait(&closed) != 0)
		;
}
