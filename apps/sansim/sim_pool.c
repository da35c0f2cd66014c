/* SPDX-License-Identifier: BSD-3-Clause */

#include <sys/mman.h>

#include <rte_mbuf.h>

#include "sim_pool.h"
#include "wire.h"

#define BEYOND_MTU 64 /* for the Ethernet header */

static void
sim_pool_unmap_chunk(struct rte_mempool_memhdr *chunk, void *arg)
{
	(void)arg;
	munmap(chunk->addr, chunk->len);
}

/* Transparent huge pages were tried: no faster, and finding them can take seconds. */
static int
sim_pool_populate(struct rte_mempool *mp)
{
	struct rte_mempool_objsz sz;
	size_t len = (size_t)mp->size * rte_mempool_calc_obj_size(mp->elt_size, mp->flags, &sz);
	void *mem;
	int n;

	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -1;
	n = rte_mempool_populate_iova(mp, mem, RTE_BAD_IOVA, len, sim_pool_unmap_chunk, NULL);
	if (n <= 0)
		munmap(mem, len);
	return n == (int)mp->size ? 0 : -1;
}

struct rte_mempool *
san_sim_pool_create(const char *name, uint32_t nb_mbufs, uint32_t cache, uint16_t mtu)
{
	struct rte_pktmbuf_pool_private priv = {
		.mbuf_data_room_size = (uint16_t)(RTE_PKTMBUF_HEADROOM + mtu + BEYOND_MTU),
		.mbuf_priv_size = SAN_PKT_PRIV_SIZE,
	};
	uint32_t elt_size = sizeof(struct rte_mbuf) + SAN_PKT_PRIV_SIZE + priv.mbuf_data_room_size;
	struct rte_mempool *mp;

	mp = rte_mempool_create_empty(name, nb_mbufs, elt_size, cache, sizeof(priv), SOCKET_ID_ANY,
				      RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (mp == NULL)
		return NULL;
	rte_pktmbuf_pool_init(mp, &priv);
	if (sim_pool_populate(mp) != 0) {
		rte_mempool_free(mp);
		return NULL;
	}
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	return mp;
}
