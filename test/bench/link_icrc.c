/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The worked link's ICRC: as lib/wire made it when the targets were set, by ISA-L over
 * a frame whose variable bits are set and put back. It stays as it is: a baseline must
 * not get faster with what it is the baseline of. IPv4 frames in one segment.
 */

#include <string.h>

#include <isa-l.h>
#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include "link.h"
#include "wire_priv.h"

#define LRH_LEN  8 /* bytes of ones in front, where the Ethernet header ends */
#define MASK_LEN (LRH_LEN + sizeof(struct wire_front_v4) - sizeof(struct wire_eth))

static const uint8_t mask[MASK_LEN] = {
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	[LRH_LEN + 1] = 0xff,  /* DSCP, ECN */
	[LRH_LEN + 8] = 0xff,  /* TTL */
	[LRH_LEN + 10] = 0xff, /* header checksum */
	[LRH_LEN + 11] = 0xff,
	[LRH_LEN + 26] = 0xff, /* UDP checksum */
	[LRH_LEN + 27] = 0xff,
	[LRH_LEN + 32] = 0xff /* BTH resv8a */
};

#ifdef RTE_ARCH_X86
static __attribute__((target("avx"))) void
clear_upper(void)
{
	__builtin_ia32_vzeroupper();
}
#endif

/* Of the first *len* bytes of the frame. */
static uint32_t
icrc_of(struct rte_mbuf *m, uint32_t len)
{
	uint32_t off = sizeof(struct wire_eth) - LRH_LEN, crc;
	uint8_t *lrh = rte_pktmbuf_mtod_offset(m, uint8_t *, off);
	uint8_t saved[sizeof(mask)];

	memcpy(saved, lrh, sizeof(saved));
	for (uint32_t i = 0; i < sizeof(mask); i++)
		lrh[i] |= mask[i];
	crc = crc32_gzip_refl(0, lrh, len - off);
#ifdef RTE_ARCH_X86
	/* ISA-L leaves the upper halves of the registers in use: what follows would be slow */
	if (__builtin_cpu_supports("avx"))
		clear_upper();
#endif
	memcpy(lrh, saved, sizeof(saved));
	return crc;
}

void
link_seal(struct rte_mbuf *m)
{
	uint32_t len = rte_pktmbuf_pkt_len(m) - WIRE_ICRC_LEN;
	rte_le32_t icrc = rte_cpu_to_le_32(icrc_of(m, len));

	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, len), &icrc, sizeof(icrc));
}

bool
link_is_sealed(struct rte_mbuf *m)
{
	uint32_t len = rte_pktmbuf_pkt_len(m) - WIRE_ICRC_LEN;
	rte_le32_t icrc;

	memcpy(&icrc, rte_pktmbuf_mtod_offset(m, const uint8_t *, len), sizeof(icrc));
	return icrc_of(m, len) == rte_le_to_cpu_32(icrc);
}
