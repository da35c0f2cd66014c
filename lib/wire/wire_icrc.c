/* SPDX-License-Identifier: BSD-3-Clause */

#include <isa-l.h>

#include "san_assert.h"
#include "wire_priv.h"

/*
 * The ICRC begins with eight bytes of ones in place of the InfiniBand LRH. Their
 * CRC is a constant; the unit test recomputes it.
 */
#define ICRC_AFTER_LRH 0x2144df1cu

/*
 * What a router may change counts as ones: from the IP header to the BTH, the
 * bits to set. Offsets count from the IP header.
 */
static const uint8_t mask_v4[sizeof(struct wire_front_v4) - sizeof(struct wire_eth)] = {
	[1] = 0xff,  /* DSCP, ECN */
	[8] = 0xff,  /* TTL */
	[10] = 0xff, /* header checksum */
	[11] = 0xff,
	[26] = 0xff, /* UDP checksum */
	[27] = 0xff,
	[32] = 0xff, /* BTH resv8a */
};

static const uint8_t mask_v6[sizeof(struct wire_front_v6) - sizeof(struct wire_eth)] = {
	[0] = 0x0f, /* traffic class, flow label */
	[1] = 0xff,
	[2] = 0xff,
	[3] = 0xff,
	[7] = 0xff,  /* hop limit */
	[46] = 0xff, /* UDP checksum */
	[47] = 0xff,
	[52] = 0xff, /* BTH resv8a */
};

/** CRC of ones, then of *len* bytes from the IP header on, masked; a word at a time. */
static inline uint32_t
crc_front(const uint8_t *ip, const uint8_t *mask, uint32_t len)
{
	uint32_t pseudo[sizeof(mask_v6) / sizeof(uint32_t)];
	uint32_t i, bits, word;

	static_assert(sizeof(mask_v4) % sizeof(word) == 0, "whole words");
	static_assert(sizeof(mask_v6) % sizeof(word) == 0, "whole words");
	for (i = 0; i < len / sizeof(word); i++) {
		memcpy(&word, ip + i * sizeof(word), sizeof(word));
		memcpy(&bits, mask + i * sizeof(word), sizeof(word));
		pseudo[i] = word | bits;
	}
	return crc32_gzip_refl(ICRC_AFTER_LRH, (const uint8_t *)pseudo, len);
}

uint32_t
san_wire_icrc(const struct rte_mbuf *m, bool v6, uint32_t len)
{
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t off = v6 ? sizeof(struct wire_front_v6) : sizeof(struct wire_front_v4);
	const uint8_t *ip = data + sizeof(struct wire_eth);
	uint32_t crc = v6 ? crc_front(ip, mask_v6, sizeof(mask_v6)) :
			    crc_front(ip, mask_v4, sizeof(mask_v4));
	uint32_t n = RTE_MIN((uint32_t)rte_pktmbuf_data_len(m), len);

	crc = crc32_gzip_refl(crc, data + off, n - off);
	for (len -= n; len > 0; len -= n) {
		m = m->next;
		n = RTE_MIN((uint32_t)rte_pktmbuf_data_len(m), len);
		crc = crc32_gzip_refl(crc, rte_pktmbuf_mtod(m, const uint8_t *), n);
	}
	return crc;
}

void
san_wire_seal(struct rte_mbuf *m)
{
	const struct wire_eth *eth = rte_pktmbuf_mtod(m, const struct wire_eth *);
	bool v6 = eth->type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6);
	struct rte_mbuf *last = rte_pktmbuf_lastseg(m);
	uint32_t crc = san_wire_icrc(m, v6, rte_pktmbuf_pkt_len(m) - WIRE_ICRC_LEN);
	rte_le32_t icrc = rte_cpu_to_le_32(crc);

	/* san_wire_build() appended it in one piece */
	SAN_ASSERT(rte_pktmbuf_data_len(last) >= WIRE_ICRC_LEN);
	memcpy(rte_pktmbuf_mtod_offset(last, uint8_t *,
				       rte_pktmbuf_data_len(last) - WIRE_ICRC_LEN),
	       &icrc, sizeof(icrc));
}
