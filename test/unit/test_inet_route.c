/* SPDX-License-Identifier: BSD-3-Clause */

/* Our addresses: announced, and defended when another host claims them. (RT-31, UDP-3) */

#include "test_inet.h"

static const uint8_t mac2[6] = {2, 0, 0, 0, 0, 9};

static void
start(bool announce, bool quiet)
{
	test_inet_conf();
	conf.nb_addrs = 3;
	assert_int_equal(san_inet_addr_parse("10.1.0.1/24", &conf.addrs[2]), 0);
	conf.announce = announce;
	conf.quiet = quiet;
	test_inet_start();
}

static void
setup(void)
{
	start(false, false);
}

/** *out* announces *ip* as ours. */
static void
check_arp(const char *text)
{
	struct san_ip ip = inet_ip(text);
	const uint8_t *arp = out.b + 14;

	assert_memory_equal(out.b, inet_all_mac, 6);
	assert_int_equal(inet_get16(out.b + 12), 0x0806);
	assert_int_equal(inet_get16(arp + 6), 1);
	assert_memory_equal(arp + 8, inet_our_mac, 6);
	assert_memory_equal(arp + 14, ip.b + 12, 4);
	assert_memory_equal(arp + 18, "\0\0\0\0\0\0", 6);
	assert_memory_equal(arp + 24, ip.b + 12, 4);
}

static void
check_nd(void)
{
	static const uint8_t mac[6] = {0x33, 0x33, 0, 0, 0, 1};

	assert_memory_equal(out.b, mac, 6);
	assert_int_equal(out.b[21], 255);
	assert_memory_equal(out.b + 22, inet_ip("fd00::1").b, 16);
	assert_memory_equal(out.b + 38, inet_ip("ff02::1").b, 16);
	assert_int_equal(out.b[54], 136);
	assert_int_equal(out.b[58], 0x20); /* override, not solicited */
	assert_memory_equal(out.b + 62, inet_ip("fd00::1").b, 16);
	assert_int_equal(inet_get16(out.b + 78), 0x0201);
	assert_memory_equal(out.b + 80, inet_our_mac, 6);
	assert_true(inet_is_sum_right_v6(&out));
}

/* Twice, two seconds apart. */
INET_CASE(own_announce_addr__at_start)
{
	uint64_t next_ns = 0;
	bool told;

	start(true, false);
	assert_no_tx();
	for (unsigned int i = 0; i < 2; i++) {
		next_ns = san_inet_tick(h.in, h.now_ns);
		assert_tx();
		check_arp("10.0.0.1");
		assert_tx();
		check_nd();
		assert_tx();
		check_arp("10.1.0.1");
		/* the group to which others send requests for our address (RFC 3810) */
		told = inet_host_tx(&h, &out);
		assert_int_equal(told, i == 0);
		if (told)
			assert_memory_equal(out.b + 62 + 12, inet_ip("ff02::1:ff00:1").b, 16);
		assert_no_tx();
		if (i == 1)
			break;
		assert_true(next_ns <= h.now_ns + SAN_NS_PER_S);
		assert_int_equal(san_inet_tick(h.in, next_ns), h.now_ns + 2 * SAN_NS_PER_S);
		assert_tx();
		assert_int_equal(out.b[62], 143);
		assert_no_tx();
		h.now_ns += 2 * SAN_NS_PER_S;
	}
	assert_int_equal(next_ns, SAN_TIME_NEVER);
}

INET_CASE(own_announce_addr__not_told_to)
{
	assert_int_equal(san_inet_tick(h.in, h.now_ns), SAN_TIME_NEVER);
	start(true, true);
	assert_int_equal(san_inet_tick(h.in, h.now_ns), SAN_TIME_NEVER);
	assert_no_tx();
}

/* Once in ten seconds. */
INET_CASE(conflict__is_defended)
{
	for (unsigned int i = 1; i <= 3; i++) {
		inet_make_arp(&f, 1 + i % 2, mac2, "10.1.0.1", "10.1.0.7");
		assert_rx(SAN_DROP_NONE);
		assert_int_equal(h.r.what, SAN_INET_NOTHING);
		assert_int_equal(inet_host_tx(&h, &out), i == 1);
	}
	check_arp("10.1.0.1");
	/* for each address separately */
	inet_make_arp(&f, 1, mac2, "10.0.0.1", "10.0.0.1");
	assert_answered();
	check_arp("10.0.0.1");
	assert_no_tx();
	inet_make_arp(&f, 1, mac2, "10.1.0.1", "10.1.0.7");
	h.now_ns += 10 * SAN_NS_PER_S - 1;
	inet_host_rx(&h, &f);
	assert_no_tx();
	h.now_ns += 1;
	inet_host_rx(&h, &f);
	assert_tx();
}

/* Our own packets that come back are no conflict, and neither is a probe. */
INET_CASE(conflict__is_none)
{
	inet_make_arp(&f, 1, inet_our_mac, "10.0.0.1", "10.0.0.1");
	assert_rx(SAN_DROP_NONE);
	inet_make_arp(&f, 1, mac2, "0.0.0.0", "10.0.0.1");
	assert_rx(SAN_DROP_NONE);
	inet_make_arp(&f, 1, mac2, "10.0.0.9", "10.0.0.9");
	assert_rx(SAN_DROP_NONE);
	while (inet_host_tx(&h, &out))
		assert_int_equal(inet_get16(out.b + 14 + 6), 2); /* an answer, no defence */
	inet_make_nd(&f, 136, "fd00::1", "ff02::1", "fd00::1", 0x20, 2, inet_our_mac);
	assert_rx(SAN_DROP_NONE);
	inet_make_nd(&f, 135, "::", "ff02::1:ff00:1", "fd00::1", 0, 0, NULL);
	assert_rx(SAN_DROP_NONE);
}

/* It is not defended. */
INET_CASE(conflict__v6)
{
	inet_make_nd(&f, 136, "fd00::1", "ff02::1", "fd00::1", 0x20, 2, mac2);
	assert_silent(SAN_DROP_NONE);
}

INET_CASE(conflict__quiet)
{
	h.in->conf.quiet = true;
	inet_make_arp(&f, 1, mac2, "10.0.0.1", "10.0.0.1");
	assert_silent(SAN_DROP_NONE);
}
