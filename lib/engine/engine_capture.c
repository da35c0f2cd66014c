/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Every packet of the port into a pcapng file, as the port sees it: received ones
 * before impairment, sent ones behind it. For looking at a problem: it copies and
 * writes on the lcore, one lcore at a time. Copies come from a pool of their own, so
 * that capturing can't starve what it looks at; those that find it empty are counted.
 */

#define ALLOW_EXPERIMENTAL_API /* rte_pcapng is still marked so in DPDK 22.11 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_pcapng.h>
#include <rte_spinlock.h>

#include "engine_priv.h"

#define CAPTURE_POOL (4 * ENGINE_OUT_MAX)

struct san_engine_capture {
	rte_pcapng_t *file;
	rte_spinlock_t lock; /* of *file* */
	struct rte_mempool *pool;
	_Atomic uint64_t nb_missed;
};

void
san_engine_capture_pkts(struct san_engine *e, struct rte_mbuf **m, uint16_t n, bool tx)
{
	struct san_engine_capture *cap = e->port->capture;
	enum rte_pcapng_direction dir = tx ? RTE_PCAPNG_DIRECTION_OUT : RTE_PCAPNG_DIRECTION_IN;
	struct rte_mbuf *copies[ENGINE_OUT_MAX];
	uint64_t tsc = rte_rdtsc();
	uint16_t i, k = 0;

	for (i = 0; i < n; i++) {
		copies[k] = rte_pcapng_copy(e->port_id, e->id, m[i], cap->pool, UINT32_MAX, tsc,
					    dir);
		if (copies[k] != NULL)
			k++;
		else
			atomic_fetch_add(&cap->nb_missed, 1);
	}
	if (k == 0)
		return;
	rte_spinlock_lock(&cap->lock);
	rte_pcapng_write_packets(cap->file, copies, k);
	rte_spinlock_unlock(&cap->lock);
	/* whatever its comment says: DPDK 22.11 leaves them to the caller */
	rte_pktmbuf_free_bulk(copies, k);
}

static int
do_capturing(struct san_engine *e, void *arg)
{
	e->capturing = arg != NULL;
	return 0;
}

/* On return no engine uses another capture than *cap*; NULL: none. */
static void
tell_engines(struct san_engine_port *p, struct san_engine_capture *cap)
{
	uint32_t i;

	for (i = 0; i < p->nb_engines; i++)
		san_engine_call(p->engines[i], do_capturing, cap);
}

static void
stop(struct san_engine_port *p)
{
	struct san_engine_capture *cap = p->capture;

	if (cap == NULL)
		return;
	tell_engines(p, NULL);
	p->capture = NULL;
	rte_pcapng_close(cap->file);
	rte_mempool_free(cap->pool);
	free(cap);
}

static struct rte_mempool *
make_pool(const struct san_engine_port *p)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	uint32_t frame = p->mtu + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;

	snprintf(name, sizeof(name), "san_cap_%u", p->id);
	return rte_pktmbuf_pool_create(name, CAPTURE_POOL * RTE_MAX(p->nb_engines, 1u), 0, 0,
				       (uint16_t)rte_pcapng_mbuf_size(frame), SOCKET_ID_ANY);
}

static int
start(struct san_engine_port *p, const char *name)
{
	struct san_engine_capture *cap;
	int fd, rc = -ENOMEM;

	cap = calloc(1, sizeof(*cap));
	if (cap == NULL)
		return -ENOMEM;
	rte_spinlock_init(&cap->lock);
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0) {
		rc = -errno;
		goto no_file;
	}
	cap->pool = make_pool(p);
	if (cap->pool == NULL)
		goto no_pool;
	cap->file = rte_pcapng_fdopen(fd, NULL, NULL, "sanstack", NULL);
	if (cap->file == NULL)
		goto no_pcapng;
	p->capture = cap;
	tell_engines(p, cap);
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
san_engine_capture(struct san_engine_port *p, const char *file)
{
	stop(p);
	return file != NULL ? start(p, file) : 0;
}
