/* SPDX-License-Identifier: BSD-3-Clause */

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "sim_link.h"

#define BEYOND_MTU   64  /* room of a buffer for the Ethernet header */
#define HASHED_BYTES 96u /* length of the headers */

/*
 * ---- buffers ----
 *
 * They lie in memory of their own. DPDK's environment without hugepages would scatter them over
 * pages, and clear all of them on release.
 */

static void
sim_pkt_unmap_chunk(struct rte_mempool_memhdr *chunk, void *arg __rte_unused)
{
	munmap(chunk->addr, chunk->len);
}

/* Transparent huge pages were tried: no faster, and finding them can take seconds. */
static int
sim_pkt_populate(struct rte_mempool *mp)
{
	struct rte_mempool_objsz sz;
	size_t len = (size_t)mp->size * rte_mempool_calc_obj_size(mp->elt_size, mp->flags, &sz);
	void *mem;
	int n;

	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -1;
	n = rte_mempool_populate_iova(mp, mem, RTE_BAD_IOVA, len, sim_pkt_unmap_chunk, NULL);
	if (n <= 0)
		munmap(mem, len);
	return n == (int)mp->size ? 0 : -1;
}

struct rte_mempool *
san_sim_pkt_pool_create(const char *name, uint32_t nb_mbufs, uint32_t cache, uint16_t mtu)
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
	if (sim_pkt_populate(mp) != 0) {
		rte_mempool_free(mp);
		return NULL;
	}
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	return mp;
}

/* ---- content ---- */

static uint64_t
sim_pkt_mix_hash(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 29);
}

/* True for ECT(0) and ECT(1) without a CE mark. */
static bool
is_ect(uint8_t tos)
{
	uint8_t ecn = tos & RTE_IPV4_HDR_ECN_MASK;

	return ecn != 0 && ecn != RTE_IPV4_HDR_ECN_CE;
}

uint64_t
san_sim_pkt_flow(const struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const uint8_t *ip = (const uint8_t *)(eth + 1);
	bool v6 = eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6);
	size_t addr = v6 ? offsetof(struct rte_ipv6_hdr, src_addr) :
			   offsetof(struct rte_ipv4_hdr, src_addr);
	size_t udp = v6 ? sizeof(struct rte_ipv6_hdr) : sizeof(struct rte_ipv4_hdr);
	uint64_t h = 0;
	uint32_t word;

	/* a corrupted frame may be too short for its type */
	if (m->data_len < sizeof(*eth) + udp + sizeof(struct rte_udp_hdr))
		return 0;
	for (; addr < udp; addr += sizeof(word)) {
		memcpy(&word, &ip[addr], sizeof(word));
		h = sim_pkt_mix_hash(h, word);
	}
	return sim_pkt_mix_hash(h, (uint64_t)ip[udp] << 8 | ip[udp + 1]);
}

bool
san_sim_pkt_mark_ce(struct rte_mbuf *m)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	struct rte_ipv4_hdr *v4 = (void *)(eth + 1);
	struct rte_ipv6_hdr *v6 = (void *)(eth + 1);
	uint16_t was, is;
	uint32_t sum;

	if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) &&
	    is_ect(v4->type_of_service)) {
		/* the checksum changes incrementally: a wrong one stays wrong (RFC 1624) */
		memcpy(&was, v4, sizeof(was));
		v4->type_of_service |= RTE_IPV4_HDR_ECN_CE;
		memcpy(&is, v4, sizeof(is));
		sum = (uint16_t)~v4->hdr_checksum + (uint16_t)~was + is;
		sum = (sum & 0xffff) + (sum >> 16);
		v4->hdr_checksum = (uint16_t) ~(sum + (sum >> 16));
		return true;
	}
	if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6) &&
	    is_ect((uint8_t)(rte_be_to_cpu_32(v6->vtc_flow) >> RTE_IPV6_HDR_TC_SHIFT))) {
		v6->vtc_flow |= rte_cpu_to_be_32(RTE_IPV6_HDR_ECN_CE);
		return true;
	}
	return false;
}

void
san_sim_pkt_flip_bit(struct rte_mbuf *m, struct san_prng *prng)
{
	uint32_t bit = san_prng_below(prng, m->data_len * 8u);

	rte_pktmbuf_mtod(m, uint8_t *)[bit / 8] ^= (uint8_t)(1u << (bit % 8));
}

struct san_wire_path
san_sim_pkt_path(const struct rte_mbuf *m, const struct san_wire_pkt *p)
{
	return (struct san_wire_path){
		.src_mac = p->src_mac,
		.dst_mac = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *)->dst_addr,
		.src = p->src,
		.dst = p->dst,
		.src_port = p->src_port,
		.dst_port = SAN_WIRE_PORT,
	};
}

struct rte_mbuf *
san_sim_pkt_forge_cnp(struct rte_mbuf *m, struct rte_mempool *pool)
{
	struct san_wire_pkt seen, cnp = {.op = SAN_OP_CNP};
	struct san_wire_ack ack;
	struct san_wire_path path;
	struct rte_mbuf *forged;

	if (san_wire_parse(m, SAN_WIRE_PORT, &seen, &ack) != SAN_DROP_NONE ||
	    seen.op == SAN_OP_CM || seen.op == SAN_OP_CNP)
		return NULL;
	forged = rte_pktmbuf_alloc(pool);
	if (forged == NULL)
		return NULL;
	path = san_sim_pkt_path(m, &seen);
	cnp.pkey = seen.pkey;
	cnp.dcid = seen.dcid;
	san_wire_build(forged, &path, &cnp);
	san_wire_icrc_seal(forged);
	return forged;
}

bool
san_sim_pkt_goes_on(struct rte_mbuf *m)
{
	struct san_wire_pkt p;
	struct san_wire_ack ack;

	if (san_wire_parse(m, SAN_WIRE_PORT, &p, &ack) != SAN_DROP_NONE)
		return false;
	return p.op == SAN_OP_PUSH_SLCTD_DATA || p.op == SAN_OP_PULL_DATA ||
		(p.op == SAN_OP_PUSH_UNSLCTD_DATA && p.offset != 0);
}

uint64_t
san_sim_pkt_hash(uint64_t hash, uint64_t at_ns, uint32_t where, const struct rte_mbuf *m)
{
	const uint8_t *b = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t i, end = RTE_MIN(m->data_len, HASHED_BYTES);
	uint64_t v, h = sim_pkt_mix_hash(hash, at_ns);

	h = sim_pkt_mix_hash(h, (uint64_t)where << 32 | m->data_len);
	for (i = 0; i + sizeof(v) <= end; i += sizeof(v)) {
		memcpy(&v, &b[i], sizeof(v));
		h = sim_pkt_mix_hash(h, v);
	}
	if (m->data_len < sizeof(v))
		return h;
	memcpy(&v, &b[m->data_len - sizeof(v)], sizeof(v));
	return sim_pkt_mix_hash(h, v);
}
