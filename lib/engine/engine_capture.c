/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Every packet of the port into a pcapng file, as the port sees it: received ones
 * before impairment, sent ones behind it. For looking at a problem: it copies and
 * writes on the lcore. Copies come from a pool of their own, so that capturing
 * can't starve what it looks at; those that find it empty are counted.
 */

#define ALLOW_EXPERIMENTAL_API /* rte_pcapng is still marked so in DPDK 22.11 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_pcapng.h>

#include "engine_priv.h"

#define CAPTURE_POOL (4 * ENGINE_OUT_MAX)

struct san_engine_capture {
	rte_pcapng_t *file;
	struct rte_mempool *pool;
	uint64_t nb_missed;
};

void
san_engine_capture_pkts(struct san_engine *e, struct rte_mbuf **m, uint16_t n, bool tx)
{
	struct san_engine_capture *cap = e->capture;
	enum rte_pcapng_direction dir = tx ? RTE_PCAPNG_DIRECTION_OUT : RTE_PCAPNG_DIRECTION_IN;
	struct rte_mbuf *copies[ENGINE_OUT_MAX];
	uint64_t tsc = rte_rdtsc();
	uint16_t i, k = 0;

	for (i = 0; i < n; i++) {
		copies[k] = rte_pcapng_copy(e->port_id, 0, m[i], cap->pool, UINT32_MAX, tsc, dir);
		if (copies[k] != NULL)
			k++;
		else
			cap->nb_missed++;
	}
	if (k == 0)
		return;
	rte_pcapng_write_packets(cap->file, copies, k);
	/* whatever its comment says: DPDK 22.11 leaves them to the caller */
	rte_pktmbuf_free_bulk(copies, k);
}

static void
stop(struct san_engine *e)
{
	struct san_engine_capture *cap = e->capture;

	if (cap == NULL)
		return;
	e->capturing = false;
	e->capture = NULL;
	rte_pcapng_close(cap->file);
	rte_mempool_free(cap->pool);
	free(cap);
}

static struct rte_mempool *
make_pool(const struct san_engine *e)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	uint32_t frame = e->port.mtu + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;

	snprintf(name, sizeof(name), "san_cap_%u", e->port_id);
	return rte_pktmbuf_pool_create(name, CAPTURE_POOL, 0, 0,
				       (uint16_t)rte_pcapng_mbuf_size(frame), SOCKET_ID_ANY);
}

static int
do_capture(struct san_engine *e, void *arg)
{
	const char *name = arg;
	struct san_engine_capture *cap;
	int fd, rc = -ENOMEM;

	stop(e);
	if (name == NULL)
		return 0;
	cap = calloc(1, sizeof(*cap));
	if (cap == NULL)
		return -ENOMEM;
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0) {
		rc = -errno;
		goto no_file;
	}
	cap->pool = make_pool(e);
	if (cap->pool == NULL)
		goto no_pool;
	cap->file = rte_pcapng_fdopen(fd, NULL, NULL, "sanstack", NULL);
	if (cap->file == NULL)
		goto no_pcapng;
	e->capture = cap;
	e->capturing = true;
	return 0;

no_pcapng:
	rte_mempool_free(cap->pool);
no_pool:
	close(fd);
no_file:
	free(cap);
	return rc;
}

int
san_engine_capture(struct san_engine *e, const char *file)
{
	return san_engine_call(e, do_capture, (void *)(uintptr_t)file);
}
