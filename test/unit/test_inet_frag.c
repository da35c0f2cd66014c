/* SPDX-License-Identifier: BSD-3-Clause */

/* Fragmentation of sent datagrams. (UDP-3) */

#define TEST_INET_MBUFS 511
#include "test_inet.h"

#define NB_FRAMES 160

static struct inet_frame frags[NB_FRAMES];
static uint32_t nb_frags;
static uint8_t data[65536];

static void
setup(void)
{
	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 11 + i / 256);
	test_inet_conf();
	conf.max_waiting = 50;
	test_inet_start();
	nb_frags = 0;
}

static uint32_t
take_sent(void)
{
	for (nb_frags = 0; inet_host_tx(&h, &out); nb_frags++) {
		assert_true(nb_frags < NB_FRAMES);
		frags[nb_frags] = out;
	}
	return nb_frags;
}

static int
send_to(const char *dst, uint32_t n, bool df)
{
	struct san_inet_dgram d = {.sport = 1000, .dport = 2000, .df = df};
	struct iovec iov = {data, n};

	d.dst = inet_ip(dst);
	return san_inet_udp_send(h.in, &d, &iov, 1, h.now_ns);
}

/** The fragments carry *len* bytes of a datagram, in order. */
static void
check(bool v6, uint32_t len)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < nb_frags; i++) {
		const uint8_t *ip = frags[i].b + 14;
		uint32_t n = frags[i].len - (v6 ? 62u : 34u);
		bool more = i + 1 < nb_frags;

		assert_true(frags[i].len <= 14 + h.in->conf.mtu);
		if (v6) {
			assert_int_equal(inet_get16(ip + 4), frags[i].len - 54);
			assert_int_equal(ip[6], 44);
			assert_int_equal(ip[40], 17);
			assert_int_equal(inet_get16(ip + 42), at | more);
			assert_memory_equal(ip + 44, frags[0].b + 58, 4);
		} else {
			assert_int_equal(inet_get16(ip + 2), frags[i].len - 14);
			assert_memory_equal(ip + 4, frags[0].b + 18, 2);
			assert_int_equal(inet_get16(ip + 6), (more ? 0x2000u : 0) | at / 8);
			assert_int_equal(inet_sum(ip, 20, 0), 0);
		}
		assert_true(!more || n % 8 == 0);
		at += n;
	}
	assert_int_equal(at, len + 8);
}

INET_CASE(inet_frag_split_pkt__both_families)
{
	static const uint32_t sizes[] = {1473, 2000, 2953, 2952, 4000, 11000, 65507};

	UNIT_EACH(size, sizes) {
		assert_int_equal(send_to("10.0.0.1", *size, false), 0);
		assert_int_equal(take_sent(), (*size + 8 + 1479) / 1480);
		check(false, *size);
		assert_int_equal(send_to("fd00::1", *size, false), 0);
		assert_int_equal(take_sent(), (*size + 8 + 1447) / 1448);
		check(true, *size);
	}
	/* each datagram has its own identification */
	send_to("10.0.0.1", 2000, false);
	send_to("10.0.0.1", 2000, false);
	assert_int_equal(take_sent(), 4);
	assert_memory_not_equal(frags[0].b + 18, frags[2].b + 18, 2);
	send_to("fd00::1", 2000, false);
	send_to("fd00::1", 2000, false);
	assert_int_equal(take_sent(), 4);
	assert_memory_not_equal(frags[0].b + 58, frags[2].b + 58, 4);
}

INET_CASE(inet_frag_split_pkt__not_if_it_fits)
{
	assert_int_equal(send_to("10.0.0.1", 1472, false), 0);
	assert_int_equal(take_sent(), 1);
	assert_int_equal(inet_get16(frags[0].b + 20), 0);
	assert_int_equal(send_to("fd00::1", 1452, false), 0);
	assert_int_equal(take_sent(), 1);
	assert_int_equal(frags[0].b[20], 17);
	assert_int_equal(send_to("10.0.0.1", 1473, true), -EMSGSIZE);
	assert_int_equal(send_to("fd00::1", 1453, true), -EMSGSIZE);
	assert_int_equal(take_sent(), 0);
}

/* The longest datagram over the narrowest path has the maximum number of fragments. */
INET_CASE(inet_frag_split_pkt__the_most)
{
	const struct san_inet_result r = {
		.what = SAN_INET_ERROR,
		.err = EMSGSIZE,
		.mtu = 552,
		.d = {.dst = inet_ip("10.0.0.1")},
	};

	san_inet_path_narrow(h.in, &r, h.now_ns);
	assert_int_equal(send_to("10.0.0.1", 65507, false), 0);
	assert_int_equal(take_sent(), 125);
	check(false, 65507);
}

/* All fragments of a datagram, or none. */
INET_CASE(inet_frag_split_pkt__no_room)
{
	for (unsigned int i = 0; i < 126; i++)
		assert_int_equal(send_to("10.0.0.1", 1, false), 0);
	assert_int_equal(send_to("10.0.0.1", 4000, false), -EAGAIN);
	assert_int_equal(send_to("10.0.0.1", 2000, false), 0);
	assert_int_equal(take_sent(), 128);
}

INET_CASE(inet_frag_split_pkt__no_mbuf)
{
	take_mbufs();
	/* two mbufs for the whole, three for its fragments: not enough for all */
	for (unsigned int i = 0; i < 5; i++) {
		assert_int_equal(send_to("10.0.0.1", 4000, false), -ENOMEM);
		give_mbufs(1);
	}
	give_mbufs(UINT32_MAX);
	assert_int_equal(take_sent(), 0);
	assert_int_equal(send_to("10.0.0.1", 4000, false), 0);
}

/* Fragments wait together, and are sent together. */
INET_CASE(inet_frag_split_pkt__waits)
{
	const uint32_t nb = 50 / 2; /* of conf.max_waiting */

	assert_int_equal(send_to("10.0.0.2", 4000, false), 0);
	assert_int_equal(send_to("10.0.0.2", 65507, false), 0);
	assert_int_equal(send_to("10.0.0.2", 4000, false), -EAGAIN);
	assert_int_equal(take_sent(), 1);
	answer("10.0.0.2", inet_peer_mac);
	assert_int_equal(take_sent(), 3 + 45);
	assert_memory_equal(frags[47].b, inet_peer_mac, 6);
	/* the oldest datagram is dropped as a whole */
	assert_int_equal(send_to("10.0.0.3", 4000, false), 0);
	for (uint32_t i = 0; i < nb; i++)
		assert_int_equal(send_to("10.0.0.3", i, false), 0);
	assert_int_equal(san_inet_drops(h.in)[SAN_DROP_INET_NEIGH], 1);
	take_sent();
	answer("10.0.0.3", inet_peer_mac);
	assert_int_equal(take_sent(), nb);
}

/* ---- echo ---- */

/** Make *x* the fragment at *at* and seal its IP header; *more* fragments follow. */
static void
move(struct inet_frame *x, uint32_t at, bool more)
{
	inet_set16(x->b + 20, (uint16_t)(at / 8 | (more ? 0x2000 : 0)));
	inet_set16(x->b + 16, (uint16_t)(x->len - 14));
	inet_set16(x->b + 24, 0);
	inet_set16(x->b + 24, inet_sum(x->b + 14, 20, 0));
}

/** Packets of the kernel's ping -s 4000. */
static void
make_long_echo(struct inet_frame parts[3])
{
	uint32_t i, at, n;

	for (i = 0, at = 0; i < 3; i++, at += n) {
		n = RTE_MIN(4008 - at, 1480u);
		inet_make_echo_v4(&parts[i], "10.0.0.2", "10.0.0.1", 0);
		parts[i].len = 34;
		inet_put(&parts[i], data + at, (uint16_t)n);
		if (i == 0)
			memcpy(parts[0].b + 34, "\x08\x00\x00\x00\x12\x34\x00\x07", 8);
		memcpy(h.payload + at, parts[i].b + 34, n);
		move(&parts[i], at, i < 2);
	}
	/* checksum over all of them */
	inet_set16(parts[0].b + 36, inet_sum(h.payload, 4008, 0));
}

INET_CASE(echo__long)
{
	struct inet_frame parts[3];

	make_long_echo(parts);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(inet_host_rx(&h, &parts[i]), SAN_DROP_NONE);
	assert_int_equal(take_sent(), 3);
	check(false, 4000);
	assert_int_equal(frags[0].b[34], 0);
	for (uint32_t i = 0; i < 3; i++)
		memcpy(h.payload + i * 1480, frags[i].b + 34, frags[i].len - 34u);
	assert_int_equal(inet_sum(h.payload, 4008, 0), 0);
	assert_memory_equal(h.payload + 8, data + 8, 4000);
}

/* All of the answer, or nothing. */
INET_CASE(echo__long_no_room)
{
	struct inet_frame parts[3];
	struct rte_mbuf *m;

	make_long_echo(parts);
	for (uint32_t i = 0; i < 126; i++)
		assert_int_equal(send_to("10.0.0.1", 1, false), 0);
	inet_host_rx(&h, &parts[0]);
	inet_host_rx(&h, &parts[1]);
	assert_int_equal(inet_host_rx(&h, &parts[2]), SAN_DROP_TX_FULL);
	assert_int_equal(take_sent(), 126);
	/* enough mbufs for a copy of the request, which takes two, but not for its fragments */
	inet_host_rx(&h, &parts[0]);
	inet_host_rx(&h, &parts[1]);
	m = test_eal_exact(pool, parts[2].b, parts[2].len);
	take_mbufs();
	give_mbufs(4);
	assert_int_equal(inet_host_rx_mbuf(&h, m), SAN_DROP_NO_MBUF);
	give_mbufs(UINT32_MAX);
	assert_int_equal(take_sent(), 0);
}

/* The identifications that a receiver sees tell it nothing about packets to other hosts. */
INET_CASE(san_inet_ip_id__of_each)
{
	struct san_ip one = inet_ip("10.0.0.1"), other = inet_ip("10.0.0.2");
	uint32_t id[2];

	for (uint32_t i = 0; i < 2; i++) {
		id[i] = san_inet_ip_id(h.in, &one);
		san_inet_ip_id(h.in, &other);
	}
	assert_int_equal(id[0] + 1, id[1]);
	assert_int_not_equal(san_inet_ip_id(h.in, &other), id[1] + 1);
}
