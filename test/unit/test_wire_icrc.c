/* SPDX-License-Identifier: BSD-3-Clause */

/* The ICRC of packets of another implementation, and compared with a bitwise model. */

#include "test_wire.h"
#include "wire_priv.h"

UNIT_FIXTURE(.teardown = teardown);

/*
 * Sent by the Soft-RoCE driver of Linux 6.1 and captured on the wire: a SEND of 15 bytes, one with
 * immediate, 17 bytes and three of padding, and an acknowledgement over IPv6. The last four bytes
 * are the ICRC.
 */
static const uint8_t rxe_v4[] = {
	0x52, 0x54, 0x00, 0x77, 0x00, 0x02, 0x52, 0x54, 0x00, 0x77, 0x00, 0x01,
	0x08, 0x00, 0x45, 0x00, 0x00, 0x38, 0xf0, 0x85, 0x40, 0x00, 0x40, 0x11,
	0x35, 0x93, 0x0a, 0x4d, 0x00, 0x01, 0x0a, 0x4d, 0x00, 0x02, 0xd7, 0xb8,
	0x12, 0xb7, 0x00, 0x24, 0x00, 0x00, 0x04, 0x00, 0xff, 0xff, 0x00, 0x00,
	0x00, 0x11, 0x80, 0xb4, 0x7d, 0x7a, 0x53, 0x68, 0x65, 0x6c, 0x6c, 0x6f,
	0x2c, 0x20, 0x72, 0x78, 0x65, 0x00, 0x24, 0x5a, 0x9c, 0xf0};

static const uint8_t rxe_v4_pad[] = {
	0x52, 0x54, 0x00, 0x77, 0x00, 0x02, 0x52, 0x54, 0x00, 0x77, 0x00, 0x01,
	0x08, 0x00, 0x45, 0x00, 0x00, 0x40, 0xf0, 0x87, 0x40, 0x00, 0x40, 0x11,
	0x35, 0x89, 0x0a, 0x4d, 0x00, 0x01, 0x0a, 0x4d, 0x00, 0x02, 0xd7, 0xb8,
	0x12, 0xb7, 0x00, 0x2c, 0x00, 0x00, 0x05, 0x30, 0xff, 0xff, 0x00, 0x00,
	0x00, 0x11, 0x80, 0xb4, 0x7d, 0x7c, 0xa1, 0xb2, 0xc3, 0xd4, 0x53, 0x68,
	0x65, 0x6c, 0x6c, 0x6f, 0x2c, 0x20, 0x72, 0x78, 0x65, 0x00, 0x54, 0x00,
	0x00, 0x00, 0xa0, 0x56, 0xf6, 0xba};

static const uint8_t rxe_v6[] = {
	0x52, 0x54, 0x00, 0x77, 0x00, 0x01, 0x52, 0x54, 0x00, 0x77, 0x00, 0x02,
	0x86, 0xdd, 0x60, 0x00, 0x00, 0x00, 0x00, 0x1c, 0x11, 0x40, 0xfe, 0x80,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x50, 0x54, 0x00, 0xff, 0xfe, 0x77,
	0x00, 0x02, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x50, 0x54,
	0x00, 0xff, 0xfe, 0x77, 0x00, 0x01, 0xc1, 0x21, 0x12, 0xb7, 0x00, 0x1c,
	0x00, 0x00, 0x11, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0x43,
	0xb0, 0x63, 0x1f, 0x00, 0x00, 0x01, 0x6b, 0xbc, 0xeb, 0x73};

struct witness {
	const char *name;
	const uint8_t *bytes;
	uint16_t len;
	bool v6;
};

static const struct witness witnesses[] = {
	{"v4", rxe_v4, sizeof(rxe_v4), false},
	{"v4 padded", rxe_v4_pad, sizeof(rxe_v4_pad), false},
	{"v6", rxe_v6, sizeof(rxe_v6), true},
};

static uint32_t
icrc_of(const struct witness *w)
{
	uint32_t icrc;

	memcpy(&icrc, w->bytes + w->len - 4, sizeof(icrc));
	return rte_le_to_cpu_32(icrc);
}

/** Whether bit *bit* of byte *at* may change in the network, so that the ICRC must ignore it. */
static bool
is_variant(bool v6, uint32_t at, uint32_t bit)
{
	uint32_t bth = v6 ? 74 - 12 : 54 - 12;

	if (at < 14 || at == bth + 4) /* Ethernet, resv8a */
		return true;
	if (at == bth - 2 || at == bth - 1) /* UDP checksum */
		return true;
	if (!v6) /* type of service, TTL, header checksum */
		return at == 14 + 1 || at == 14 + 8 || at == 14 + 10 || at == 14 + 11;
	/* traffic class and flow label, hop limit */
	return (at == 14 && bit < 4) || (at > 14 && at <= 17) || at == 14 + 7;
}

/** The definition, bit by bit. */
static uint32_t
model_icrc(const uint8_t *frame, uint32_t len, bool v6)
{
	uint32_t crc = 0xffffffff;
	uint32_t b;

	for (uint32_t i = 0; i < 8 + len - 14; i++) {
		for (uint32_t bit = 0; bit < 8; bit++) {
			b = 1;
			if (i >= 8 && !is_variant(v6, i - 8 + 14, bit))
				b = frame[i - 8 + 14] >> bit & 1;
			crc = crc >> 1 ^ (((crc ^ b) & 1) ? 0xedb88320 : 0);
		}
	}
	return ~crc;
}

UNIT_CASE(icrc__known_answers)
{
	struct rte_mbuf *m;

	UNIT_EACH(w, witnesses) {
		unit_row(w->name);
		m = test_eal_exact(test_pool(), w->bytes, w->len);
		assert_int_equal(model_icrc(w->bytes, w->len - 4u, w->v6), icrc_of(w));
		assert_int_equal(san_wire_icrc(m, w->v6, w->len - 4u), icrc_of(w));
		rte_pktmbuf_free(m);
	}
}

UNIT_CASE(icrc__split_anywhere_behind_the_headers)
{
	struct rte_mbuf *m, *seg;

	for (uint16_t at = sizeof(struct wire_front_v4); at < sizeof(rxe_v4_pad); at++) {
		m = test_eal_exact(test_pool(), rxe_v4_pad, at);
		seg = test_eal_exact(test_pool(), rxe_v4_pad + at, 1);
		assert_int_equal(rte_pktmbuf_chain(m, seg), 0);
		seg = test_eal_exact(test_pool(), rxe_v4_pad + at + 1,
				     (uint16_t)(sizeof(rxe_v4_pad) - at - 1));
		assert_int_equal(rte_pktmbuf_chain(m, seg), 0);
		assert_int_equal(san_wire_icrc(m, false, sizeof(rxe_v4_pad) - 4),
				 icrc_of(&witnesses[1]));
		rte_pktmbuf_free(m);
	}
}

/* Every bit counts except those that routers change. */
UNIT_CASE(icrc__every_bit)
{
	uint8_t frame[128];
	struct rte_mbuf *m;
	bool same;

	UNIT_EACH(w, witnesses) {
		unit_row(w->name);
		for (uint32_t at = 0; at < w->len - 4u; at++) {
			for (uint32_t bit = 0; bit < 8; bit++) {
				memcpy(frame, w->bytes, w->len);
				frame[at] ^= (uint8_t)(1u << bit);
				m = test_eal_exact(test_pool(), frame, w->len);
				same = san_wire_icrc(m, w->v6, w->len - 4u) == icrc_of(w);
				/* is_variant() counts bits within the byte from the low end,
				 * and the version is the high nibble
				 */
				assert_int_equal(same, is_variant(w->v6, at, bit));
				rte_pktmbuf_free(m);
			}
		}
	}
}

UNIT_CASE(icrc__random_against_model)
{
	static uint8_t frame[1600];
	uint64_t seed = 20240607;
	struct san_prng g;
	struct rte_mbuf *m;
	uint32_t len;
	bool v6;

	san_prng_seed(&g, seed);
	for (uint32_t run = 0; run < 500; run++) {
		v6 = run & 1;
		len = (v6 ? 74 : 54) + san_prng_below(&g, 1500);
		for (uint32_t i = 0; i < len; i++)
			frame[i] = (uint8_t)san_prng_u64(&g);
		m = test_eal_exact(test_pool(), frame, (uint16_t)len);
		if (san_wire_icrc(m, v6, len) != model_icrc(frame, len, v6)) {
			print_error("seed %lu run %u len %u\n", (unsigned long)seed, run, len);
			fail();
		}
		rte_pktmbuf_free(m);
	}
}

UNIT_CASE(seal__known_answers)
{
	struct rte_mbuf *m;

	UNIT_EACH(w, witnesses) {
		unit_row(w->name);
		m = test_eal_exact(test_pool(), w->bytes, w->len);
		memset(rte_pktmbuf_mtod_offset(m, char *, w->len - 4), 0x77, 4);
		san_wire_icrc_seal(m);
		assert_memory_equal(rte_pktmbuf_mtod(m, char *), w->bytes, w->len);
		rte_pktmbuf_free(m);
	}
}

/* A packet of another implementation is intact, and not ours only by its opcode. */
UNIT_CASE(parse__rxe_is_well_formed)
{
	struct rte_mbuf *m;

	UNIT_EACH(r, witnesses) {
		m = test_eal_exact(test_pool(), r->bytes, r->len);
		assert_int_equal(parse(m), SAN_DROP_OPCODE);
		rte_pktmbuf_free(m);
	}
}
