/* SPDX-License-Identifier: BSD-3-Clause */

/* Source ports that reach the queue of an lcore, computed like the port's hash. (SYS-1) */

#include "unit.h"

#include <errno.h>

#include <rte_byteorder.h>
#include <rte_thash.h>

#include "cm_net.h"
#include "inet.h"

/* The key and the hash values that the inventors publish. */
/* clang-format off */
static const uint8_t known_key[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};
/* clang-format on */

static const struct {
	const char *src, *dst;
	uint16_t src_port, dst_port;
	uint32_t hash;
} known[] = {
	{"66.9.149.187", "161.142.100.80", 2794, 1766, 0x51ccc178},
	{"199.92.111.2", "65.69.140.83", 14230, 4739, 0xc626b0ea},
	{"24.19.198.95", "12.22.207.184", 12898, 38024, 0x5c2b394a},
	{"3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766, 0x40207d3d},
	{"3ffe:501:8::260:97ff:fe40:efab", "ff02::1", 14230, 4739, 0xdde51bbf},
};

static struct san_cm_steer steer;

static struct san_ip
ip(const char *text)
{
	struct san_inet_addr a;

	assert_int_equal(san_inet_addr_parse(text, &a), 0);
	return a.ip;
}

static void
setup(void)
{
	memset(&steer, 0, sizeof(steer));
	memcpy(steer.key, known_key, sizeof(known_key));
	steer.v4 = steer.v6 = true;
	steer.table_size = 512;
	for (uint32_t i = 0; i < steer.table_size; i++)
		steer.table[i] = (uint16_t)i;
}

UNIT_FIXTURE(.setup = setup);

/* Another implementation of Toeplitz in software. */
static uint32_t
softrss(const struct san_ip *src, const struct san_ip *dst, uint16_t src_port, uint16_t dst_port)
{
	uint32_t off = san_wire_ip_is_v4(src) ? 12 : 0, len = 16 - off, words[9];
	_Alignas(uint32_t) uint8_t key[sizeof(steer.key)]; /* it is read in words */
	uint8_t b[36];

	memcpy(key, steer.key, sizeof(key));
	memcpy(b, src->b + off, len);
	memcpy(b + len, dst->b + off, len);
	b[2 * len] = (uint8_t)(src_port >> 8);
	b[2 * len + 1] = (uint8_t)src_port;
	b[2 * len + 2] = (uint8_t)(dst_port >> 8);
	b[2 * len + 3] = (uint8_t)dst_port;
	memcpy(words, b, 2 * len + 4);
	for (uint32_t i = 0; i < (2 * len + 4) / 4; i++)
		words[i] = rte_be_to_cpu_32(words[i]);
	return rte_softrss(words, (2 * len + 4) / 4, key);
}

/* What the other tests rely on. */
UNIT_CASE(softrss__known_hashes)
{
	struct san_ip src, dst;

	UNIT_EACH(r, known) {
		src = ip(r->src);
		dst = ip(r->dst);
		assert_int_equal(softrss(&src, &dst, r->src_port, r->dst_port), r->hash);
	}
}

/* Eight different ports, each of which the port's hash maps to the queue. */
UNIT_CASE(ports__bring_to_the_queue)
{
	uint16_t ports[SAN_WIRE_CM_PORTS];
	struct san_prng prng;
	struct san_ip src, dst;
	uint16_t queue;

	san_prng_seed(&prng, 5);
	for (uint32_t round = 0; round < 200; round++) {
		src = ip(round % 2 ? "fd00::1" : "10.0.0.1");
		dst = ip(round % 2 ? "fd00::2" : "10.0.0.2");
		for (uint32_t i = 12; i < 16; i++)
			src.b[i] = (uint8_t)san_prng_u64(&prng);
		for (uint32_t i = 0; i < sizeof(known_key); i++)
			steer.key[i] = (uint8_t)san_prng_u64(&prng);
		for (uint32_t i = 0; i < steer.table_size; i++)
			steer.table[i] = (uint16_t)san_prng_below(&prng, 5);
		queue = (uint16_t)(round % 5);
		assert_int_equal(san_cm_steer_udp_ports(&steer, queue, &src, &dst, 4791,
							(uint32_t)san_prng_u64(&prng) >> 1, ports),
				 SAN_WIRE_CM_PORTS);
		for (uint32_t i = 0; i < SAN_WIRE_CM_PORTS; i++) {
			assert_true(ports[i] >= 49152);
			assert_int_equal(steer.table[softrss(&src, &dst, ports[i], 4791) & 511],
					 queue);
			for (uint32_t k = 0; k < i; k++)
				assert_int_not_equal(ports[k], ports[i]);
		}
	}
}

UNIT_CASE(ports__none)
{
	const struct san_ip src = ip("10.0.0.1"), dst = ip("10.0.0.2");
	uint16_t ports[SAN_WIRE_CM_PORTS];

	assert_int_equal(san_cm_steer_udp_ports(&steer, 600, &src, &dst, 4791, 0, ports), 0);
	steer.v4 = false;
	assert_int_equal(san_cm_steer_udp_ports(&steer, 3, &src, &dst, 4791, 0, ports), 0);
}

/* The ports that are offered to the peer, and those that it uses. */
UNIT_CASE(offer__carries_them)
{
	struct rte_mempool *pool = test_eal_pool("steer", 128, 2048);
	const struct san_pdl_conn *c;
	static struct cm_net net;
	uint16_t slot[2];

	cm_net_init(&net, pool, 1, 4, false);
	net.h[1].cm_conf.steer = &steer;
	net.h[1].cm_conf.queue = 77;
	steer.table_size = 128;
	cm_net_start(&net, &net.h[1]);
	cm_net_listen(&net, 1);
	cm_net_open(&net, slot);
	c = &net.h[0].pdl->conns[slot[0]];
	assert_int_equal(c->nb_ports, SAN_WIRE_CM_PORTS);
	for (uint16_t i = 0; i < c->nb_ports; i++)
		assert_int_equal(softrss(&net.h[0].ip, &net.h[1].ip, c->ports[i], SAN_WIRE_PORT) &
					 127,
				 77);
	/* host 0 uses any port */
	assert_int_equal(net.h[1].pdl->conns[slot[1]].nb_ports, 2);
	steer.table_size = 100;
	assert_int_equal(san_cm_create(&net.h[1].cm_conf, net.h[1].pdl, &(struct san_cm *){NULL}),
			 -EINVAL);
	cm_net_fini(&net);
	rte_mempool_free(pool);
}
