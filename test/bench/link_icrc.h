/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LINK_ICRC_H
#define LINK_ICRC_H

/**
 * @file
 * The worked link's ICRC: as lib/wire made it when the targets were set, by ISA-L over a frame whose
 * variable bits are set and put back. It stays as it is: a baseline must not get faster with what it
 * is the baseline of. IPv4 frames in one segment.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <isa-l.h>
#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include "wire_priv.h"

#define LINK_LRH 8 /* bytes of ones in front, where the Ethernet header ends */

static const uint8_t link_mask[LINK_LRH + sizeof(struct wire_front_v4) - sizeof(struct wire_eth)] = {
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	[LINK_LRH + 1] = 0xff,  /* DSCP, ECN */
	[LINK_LRH + 8] = 0xff,  /* TTL */
	[LINK_LRH + 10] = 0xff, /* header checksum */
	[LINK_LRH + 11] = 0xff,
	[LINK_LRH + 26] = 0xff, /* UDP checksum */
	[LINK_LRH + 27] = 0xff,
	[LINK_LRH + 32] = 0xff /* BTH resv8a */
};

#ifdef RTE_ARCH_X86
static __attribute__((target("avx"))) void
link_clear_upper(void)
{
	__builtin_ia32_vzeroupper();
}
#endif

/** Of the first *len* bytes of the frame. */
static inline uint32_t
link_icrc(struct rte_mbuf *m, uint32_t len)
{
	uint32_t off = sizeof(struct wire_eth) - LINK_LRH, crc, i;
	uint8_t *lrh = rte_pktmbuf_mtod_offset(m, uint8_t *, off);
	uint8_t saved[sizeof(link_mask)];

	memcpy(saved, lrh, sizeof(saved));
	for (i = 0; i < sizeof(link_mask); i++)
		lrh[i] |= link_mask[i];
	crc = crc32_gzip_refl(0, lrh, len - off);
#ifdef RTE_ARCH_X86
	/* ISA-L leaves the upper halves of the registers in use: what follows would be slow */
	if (__builtin_cpu_supports("avx"))
		link_clear_upper();
#endif
	memcpy(lrh, saved, sizeof(saved));
	return crc;
}

static inline void
link_seal(struct rte_mbuf *m)
{
	uint32_t len = rte_pktmbuf_pkt_len(m) - WIRE_ICRC_LEN;
	rte_le32_t icrc = rte_cpu_to_le_32(link_icrc(m, len));

	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, len), &icrc, sizeof(icrc));
}

static inline bool
link_is_sealed(struct rte_mbuf *m)
{
	uint32_t len = rte_pktmbuf_pkt_len(m) - WIRE_ICRC_LEN;
	rte_le32_t icrc;

	memcpy(&icrc, rte_pktmbuf_mtod_offset(m, const uint8_t *, len), sizeof(icrc));
	return link_icrc(m, len) == rte_le_to_cpu_32(icrc);
}

#endif /* LINK_ICRC_H */
