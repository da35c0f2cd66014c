/* SPDX-License-Identifier: BSD-3-Clause */

#include <isa-l.h>
#ifdef RTE_ARCH_X86
#include <immintrin.h>
#endif

#include "san_assert.h"
#include "wire_priv.h"

/*
 * The ICRC starts with eight bytes of ones in place of the InfiniBand LRH. Fields that a router may
 * change count as ones. The tables below have the bits to set, from eight bytes before the IP
 * header to the BTH: the end of the Ethernet header serves as LRH. Over IPv4 this is a whole number
 * of vector registers.
 */
#define LRH_LEN 8

#define V4_LEN (LRH_LEN + sizeof(struct wire_front_v4) - sizeof(struct wire_eth))
#define V6_LEN (LRH_LEN + sizeof(struct wire_front_v6) - sizeof(struct wire_eth))

/* Zeros before and after: registers of BLOCK bytes overlap both ends. */
#define BLOCK 16
static const uint8_t around_v4[BLOCK + RTE_ALIGN_CEIL(V4_LEN, BLOCK) + BLOCK] = {
	[BLOCK + 0 ... BLOCK + LRH_LEN - 1] = 0xff,
	[BLOCK + LRH_LEN + 1] = 0xff,                           /* DSCP, ECN */
	[BLOCK + LRH_LEN + 8] = 0xff,                           /* TTL */
	[BLOCK + LRH_LEN + 10 ... BLOCK + LRH_LEN + 11] = 0xff, /* header checksum */
	[BLOCK + LRH_LEN + 26 ... BLOCK + LRH_LEN + 27] = 0xff, /* UDP checksum */
	[BLOCK + LRH_LEN + 32] = 0xff                           /* BTH resv8a */
};

static const uint8_t around_v6[BLOCK + RTE_ALIGN_CEIL(V6_LEN, BLOCK) + BLOCK] = {
	[BLOCK + 0 ... BLOCK + LRH_LEN - 1] = 0xff,
	[BLOCK + LRH_LEN + 0] = 0x0f, /* traffic class, flow label */
	[BLOCK + LRH_LEN + 1 ... BLOCK + LRH_LEN + 3] = 0xff,
	[BLOCK + LRH_LEN + 7] = 0xff,                           /* hop limit */
	[BLOCK + LRH_LEN + 46 ... BLOCK + LRH_LEN + 47] = 0xff, /* UDP checksum */
	[BLOCK + LRH_LEN + 52] = 0xff                           /* BTH resv8a */
};

static const uint8_t *const mask_v4 = around_v4 + BLOCK;
static const uint8_t *const mask_v6 = around_v6 + BLOCK;

/* ---- short frames: in registers, without writing to the frame ---- */

#ifdef RTE_ARCH_X86
#define FRONT_MAX (BLOCK - 4) /* most bytes that the first block lacks */
#define CLMUL_MIN 68          /* five blocks: as many as have masks over IPv6 */
#define CLMUL_MAX 512         /* bytes; above, ISA-L uses wider registers */

/* x^n modulo the polynomial, as reflected operands: shifts a remainder by some bits. */
#define K_512_32 0x154442bd4 /* x^(512 + 32) */
#define K_512    0x1c6e41596 /* x^(512 - 32) */
#define K_128_32 0x1751997d0 /* x^(128 + 32) */
#define K_128    0x0ccaa009e /* x^(128 - 32) */
#define K_64     0x163cd6124 /* x^64 */
#define POLY     0x1db710641 /* the polynomial; MU: x^64 divided by it */
#define MU       0x1f7011641

#define CLMUL static inline __attribute__((target("avx,pclmul"), always_inline))

CLMUL __m128i
icrc_load(const uint8_t *at)
{
	return _mm_loadu_si128((const __m128i *)at);
}

/* Shift *x* by the bits of *k* and add *next*. */
CLMUL __m128i
icrc_fold(__m128i x, __m128i k, __m128i next)
{
	__m128i low = _mm_clmulepi64_si128(x, k, 0x00);

	return _mm_xor_si128(_mm_xor_si128(low, _mm_clmulepi64_si128(x, k, 0x11)), next);
}

CLMUL uint32_t
icrc_reduce(__m128i x)
{
	const __m128i k = _mm_set_epi64x(K_64, K_128);
	const __m128i p = _mm_set_epi64x(MU, POLY);
	const __m128i low = _mm_set_epi32(0, 0, 0, -1);
	__m128i t;

	x = _mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_srli_si128(x, 8));
	t = _mm_srli_si128(x, 4);
	x = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(x, low), k, 0x10), t);
	t = _mm_clmulepi64_si128(_mm_and_si128(x, low), p, 0x10);
	t = _mm_clmulepi64_si128(_mm_and_si128(t, low), p, 0x00);
	return ~(uint32_t)_mm_extract_epi32(_mm_xor_si128(x, t), 1);
}

/*
 * The frame is read in whole blocks. Bytes missing in the first block count as zeros, which do not
 * affect a CRC. They must be readable, but their values are masked out.
 */
static __attribute__((target("avx,pclmul"))) uint32_t
icrc_short(const uint8_t *lrh, uint32_t len, bool v6)
{
	static const uint8_t ones[2 * BLOCK] = {[BLOCK... 2 * BLOCK - 1] = 0xff};
	static const uint8_t first[2 * BLOCK] = {[BLOCK... BLOCK + 3] = 0xff};
	const __m128i k4 = _mm_set_epi64x(K_512, K_512_32), k1 = _mm_set_epi64x(K_128, K_128_32);
	uint32_t rest = (len - 1) % BLOCK + 1, i;
	const uint8_t *at = lrh + rest - BLOCK, *end = lrh + len;
	const uint8_t *mask = (v6 ? mask_v6 : mask_v4) + rest - BLOCK;
	__m128i x[4];

	SAN_ASSERT(len % 4 == 0 && len >= CLMUL_MIN && len <= CLMUL_MAX);
	x[0] = _mm_and_si128(icrc_load(at), icrc_load(ones + rest));
	x[0] = _mm_xor_si128(_mm_or_si128(x[0], icrc_load(mask)), icrc_load(first + rest));
	if (v6) {
		at += BLOCK;
		mask += BLOCK;
		x[0] = icrc_fold(x[0], k1, _mm_or_si128(icrc_load(at), icrc_load(mask)));
	}
	for (i = 1; i < 4; i++)
		x[i] = _mm_or_si128(icrc_load(at + BLOCK * i), icrc_load(mask + BLOCK * i));
	for (at += 4 * BLOCK; end - at >= 4 * BLOCK; at += 4 * BLOCK)
		for (i = 0; i < 4; i++)
			x[i] = icrc_fold(x[i], k4, icrc_load(at + BLOCK * i));
	x[1] = icrc_fold(x[0], k1, x[1]);
	x[2] = icrc_fold(x[1], k1, x[2]);
	x[3] = icrc_fold(x[2], k1, x[3]);
	for (; at != end; at += BLOCK)
		x[3] = icrc_fold(x[3], k1, icrc_load(at));
	return icrc_reduce(x[3]);
}

/** True for one segment of a length that icrc_short() handles, with memory before it. */
static inline bool
is_short(const struct rte_mbuf *m, uint32_t len, uint32_t off)
{
	return rte_pktmbuf_data_len(m) >= len && len - off - CLMUL_MIN <= CLMUL_MAX - CLMUL_MIN &&
		(len - off) % 4 == 0 && off + rte_pktmbuf_headroom(m) >= FRONT_MAX &&
		__builtin_cpu_supports("pclmul") && __builtin_cpu_supports("avx");
}
#endif

/* ---- all others: ISA-L ---- */

#ifdef RTE_ARCH_X86
static __attribute__((target("avx"))) void
clear_upper(void)
{
	__builtin_ia32_vzeroupper();
}
#endif

/*
 * ISA-L leaves the upper halves of the vector registers in use. The first SSE instruction that
 * follows, for example in memcpy(), is slow then: sealing 1408 bytes takes 230 ns if they are not
 * cleared after each CRC, and 60 ns if they are.
 */
static inline uint32_t
icrc_crc32(uint32_t crc, const uint8_t *data, uint32_t len)
{
	crc = crc32_gzip_refl(crc, data, len);
#ifdef RTE_ARCH_X86
	if (__builtin_cpu_supports("avx"))
		clear_upper();
#endif
	return crc;
}

/*
 * The frame itself becomes the pseudo packet and is restored. So a short frame needs one call, and
 * calls dominate the cost of a short CRC.
 */
static inline uint32_t
crc_first_seg(uint8_t *lrh, uint32_t len, const uint8_t *mask, uint32_t mask_len)
{
	uint8_t saved[V6_LEN];
	uint32_t crc, i;

	memcpy(saved, lrh, mask_len);
	for (i = 0; i < mask_len; i++)
		lrh[i] |= mask[i];
	crc = icrc_crc32(0, lrh, len);
	memcpy(lrh, saved, mask_len);
	return crc;
}

static __rte_noinline uint32_t
icrc_long(struct rte_mbuf *m, bool v6, uint32_t off, uint32_t len)
{
	uint8_t *lrh = rte_pktmbuf_mtod_offset(m, uint8_t *, off);
	uint32_t n = RTE_MIN((uint32_t)rte_pktmbuf_data_len(m), len);
	uint32_t crc = v6 ? crc_first_seg(lrh, n - off, mask_v6, V6_LEN) :
			    crc_first_seg(lrh, n - off, mask_v4, V4_LEN);

	for (len -= n; len > 0; len -= n) {
		m = m->next;
		n = RTE_MIN((uint32_t)rte_pktmbuf_data_len(m), len);
		crc = icrc_crc32(crc, rte_pktmbuf_mtod(m, const uint8_t *), n);
	}
	return crc;
}

uint32_t
san_wire_icrc(struct rte_mbuf *m, bool v6, uint32_t len)
{
	const uint32_t off = sizeof(struct wire_eth) - LRH_LEN;

#ifdef RTE_ARCH_X86
	if (is_short(m, len, off))
		return icrc_short(rte_pktmbuf_mtod_offset(m, const uint8_t *, off), len - off, v6);
#endif
	return icrc_long(m, v6, off, len);
}

void
san_wire_icrc_seal(struct rte_mbuf *m)
{
	const struct wire_eth *eth = rte_pktmbuf_mtod(m, const struct wire_eth *);
	bool v6 = eth->type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6);
	uint32_t len = m->data_len - WIRE_ICRC_LEN;
	rte_le32_t icrc = rte_cpu_to_le_32(san_wire_icrc(m, v6, len));

	SAN_ASSERT(m->nb_segs == 1 && m->data_len > WIRE_ICRC_LEN);
	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, len), &icrc, sizeof(icrc));
}
