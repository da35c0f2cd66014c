/* SPDX-License-Identifier: BSD-3-Clause */

/* Echo replies of both families, neighbour discovery, and what is not answered. (RT-31, SYS-1) */

#include "test_inet.h"

#define SOLICIT   135
#define ADVERT    136
#define SLLA      1
#define TLLA      2
#define OUR_GROUP "ff02::1:ff00:1"
#define MALFORMED SAN_DROP_INET_MALFORMED

static void
setup(void)
{
	test_inet_conf();
	conf.max_neighbours = 8;
	test_inet_start();
}

static bool
knows(const char *text)
{
	bool known = resolves(text) == 0;

	drain();
	return known;
}

/* ---- IPv4 ---- */

INET_CASE(echo_v4__is_answered)
{
	static const uint16_t sizes[] = {0, 1, 2, 17, 56, 57, 1472};
	const uint8_t *ip = out.b + 14, *icmp = out.b + 34;

	UNIT_EACH(size, sizes) {
		inet_make_echo_v4(&f, "10.0.0.2", "10.0.0.1", *size);
		assert_answered();
		assert_int_equal(out.len, f.len);
		assert_memory_equal(out.b, inet_peer_mac, 6);
		assert_memory_equal(out.b + 6, inet_our_mac, 6);
		assert_memory_equal(ip + 12, inet_ip("10.0.0.1").b + 12, 4);
		assert_memory_equal(ip + 16, inet_ip("10.0.0.2").b + 12, 4);
		assert_int_equal(ip[1], 0); /* not ECN-capable */
		assert_int_equal(ip[8], 64);
		assert_int_equal(inet_get16(ip + 2), 28 + *size);
		assert_int_equal(inet_sum(ip, 20, 0), 0);
		assert_int_equal(icmp[0], 0);
		assert_int_equal(icmp[1], 0);
		assert_int_equal(inet_sum(icmp, 8u + *size, 0), 0);
		assert_memory_equal(icmp + 4, f.b + 38, 4u + *size);
	}
}

/* Ethernet padding is not part of the answer. */
INET_CASE(echo_v4__padding)
{
	inet_make_echo_v4(&f, "10.0.0.2", "10.0.0.1", 1);
	memset(f.b + f.len, 0xaa, 60u - f.len);
	f.len = 60;
	assert_answered();
	assert_int_equal(out.len, 43);
}

/* Longer than an mbuf: the answer is a chain. */
INET_CASE(echo_v4__many_segments)
{
	san_inet_destroy(h.in);
	inet_host_conf(small_pool, &conf);
	inet_host_init(&h, small_pool, &conf);
	h.pool = pool;
	inet_make_echo_v4(&f, "10.0.0.2", "10.0.0.1", 1001);
	assert_answered();
	assert_int_equal(out.len, f.len);
	assert_int_equal(inet_sum(out.b + 34, out.len - 34u, 0), 0);
	assert_memory_equal(out.b + 38, f.b + 38, f.len - 38u);
	/* IPv6 as well */
	inet_make_echo_v6(&f, "fd00::2", "fd00::1", 777);
	assert_answered();
	assert_true(inet_is_sum_right_v6(&out));
}

/* The kernel or another instance answers. */
INET_CASE(echo__quiet)
{
	h.in->conf.quiet = true;
	inet_make_echo_v4(&f, "10.0.0.2", "10.0.0.1", 8);
	assert_silent(SAN_DROP_NONE);
	inet_make_echo_v6(&f, "fd00::2", "fd00::1", 8);
	assert_silent(SAN_DROP_NONE);
}

/* An echo request to which the host does not react. */
struct echo_row {
	const char *what, *src, *dst;
	int at; /* -1: nothing is changed */
	uint8_t value;
	bool seal; /* restore the checksums */
	enum san_drop drop;
};

static const struct echo_row v4_rows[] = {
	{"another host", "10.0.0.2", "10.0.0.9", -1, 0, true, SAN_DROP_NOT_FOR_US},
	{"broadcast", "10.0.0.2", "10.0.0.255", -1, 0, true, SAN_DROP_NOT_FOR_US},
	{"multicast", "10.0.0.2", "224.0.0.1", -1, 0, true, SAN_DROP_NOT_FOR_US},
	{"from multicast", "224.0.0.1", "10.0.0.1", -1, 0, true, SAN_DROP_INET_MALFORMED},
	{"from broadcast", "255.255.255.255", "10.0.0.1", -1, 0, true, SAN_DROP_INET_MALFORMED},
	{"from nobody", "0.0.0.0", "10.0.0.1", -1, 0, true, SAN_DROP_INET_MALFORMED},
	{"from loopback", "127.0.0.1", "10.0.0.1", -1, 0, true, SAN_DROP_INET_MALFORMED},
	{"version", "10.0.0.2", "10.0.0.1", 14, 0x65, true, SAN_DROP_INET_MALFORMED},
	{"header length", "10.0.0.2", "10.0.0.1", 14, 0x44, true, SAN_DROP_INET_MALFORMED},
	{"options", "10.0.0.2", "10.0.0.1", 14, 0x46, true, SAN_DROP_INET_UNWANTED},
	{"more fragments", "10.0.0.2", "10.0.0.1", 20, 0x20, true, SAN_DROP_NONE},
	{"later fragment", "10.0.0.2", "10.0.0.1", 21, 9, true, SAN_DROP_NONE},
	{"TCP", "10.0.0.2", "10.0.0.1", 23, 6, true, SAN_DROP_INET_UNWANTED},
	{"echo reply", "10.0.0.2", "10.0.0.1", 34, 0, true, SAN_DROP_INET_UNWANTED},
	{"unreachable", "10.0.0.2", "10.0.0.1", 34, 3, true, SAN_DROP_INET_UNWANTED},
	{"code", "10.0.0.2", "10.0.0.1", 35, 1, true, SAN_DROP_INET_UNWANTED},
	{"IP checksum", "10.0.0.2", "10.0.0.1", 24, 0xee, false, SAN_DROP_INET_MALFORMED},
	{"ICMP checksum", "10.0.0.2", "10.0.0.1", 36, 0xee, false, SAN_DROP_INET_MALFORMED},
	{"content", "10.0.0.2", "10.0.0.1", 60, 0xee, false, SAN_DROP_INET_MALFORMED},
	{"another MAC", "10.0.0.2", "10.0.0.1", 4, 9, true, SAN_DROP_NOT_FOR_US},
	{"multicast MAC", "10.0.0.2", "10.0.0.1", 0, 3, true, SAN_DROP_INET_UNWANTED},
	{"type", "10.0.0.2", "10.0.0.1", 12, 0x81, true, SAN_DROP_INET_UNWANTED},
};

static void
not_answered(const struct echo_row *r, bool v6)
{
	(v6 ? inet_make_echo_v6 : inet_make_echo_v4)(&f, r->src, r->dst, 56);
	if (r->at >= 0)
		f.b[r->at] = r->value;
	if (r->seal)
		(v6 ? inet_seal_v6 : inet_seal_v4)(&f);
	FAIL_IF(inet_host_rx(&h, &f) != r->drop, "%s", r->what);
	FAIL_IF(inet_host_tx(&h, &out), "%s is answered", r->what);
}

INET_CASE(rx_v4__not_answered)
{
	UNIT_EACH(r, v4_rows)
		not_answered(r, false);
}

INET_CASE(rx_v4__cut_off)
{
	inet_make_echo_v4(&f, "10.0.0.2", "10.0.0.1", 20);
	for (uint16_t len = 0; len < 62; len++) {
		f.len = len;
		assert_silent(SAN_DROP_INET_MALFORMED);
	}
	/* the same with a length field that matches */
	for (uint16_t len = 34; len < 42; len++) {
		inet_make_echo_v4(&f, "10.0.0.2", "10.0.0.1", 20);
		f.len = len;
		inet_set16(f.b + 16, (uint16_t)(len - 14));
		seal_ip(20);
		assert_silent(SAN_DROP_INET_MALFORMED);
	}
	for (uint16_t len = 0; len < 20; len++) {
		inet_make_echo_v4(&f, "10.0.0.2", "10.0.0.1", 20);
		inet_set16(f.b + 16, len);
		assert_silent(SAN_DROP_INET_MALFORMED);
	}
}

INET_CASE(echo__no_mbuf)
{
	struct rte_mbuf *m;

	inet_make_echo_v4(&f, "10.0.0.2", "10.0.0.1", 56);
	m = test_eal_exact(pool, f.b, f.len);
	take_mbufs();
	assert_int_equal(inet_host_rx_mbuf(&h, m), SAN_DROP_NO_MBUF);
	give_mbufs(UINT32_MAX);
	assert_answered();
}

/* ---- IPv6 ---- */

INET_CASE(echo_v6__is_answered)
{
	static const uint16_t sizes[] = {0, 1, 2, 33, 56, 1452};

	UNIT_EACH(size, sizes) {
		inet_make_echo_v6(&f, "fd00::2", "fd00::1", *size);
		assert_answered();
		assert_int_equal(out.len, f.len);
		assert_memory_equal(out.b, inet_peer_mac, 6);
		assert_memory_equal(out.b + 6, inet_our_mac, 6);
		assert_memory_equal(out.b + 14 + 8, inet_ip("fd00::1").b, 16);
		assert_memory_equal(out.b + 14 + 24, inet_ip("fd00::2").b, 16);
		assert_int_equal(inet_get16(out.b + 14), 0x6000); /* not ECN-capable */
		assert_int_equal(out.b[14 + 7], 64);
		assert_int_equal(out.b[54], 129);
		assert_true(inet_is_sum_right_v6(&out));
		assert_memory_equal(out.b + 58, f.b + 58, 4u + *size);
	}
}

static const struct echo_row v6_rows[] = {
	{"another host", "fd00::2", "fd00::9", -1, 0, true, SAN_DROP_NOT_FOR_US},
	{"another group", "fd00::2", "ff02::1:ff00:2", -1, 0, true, SAN_DROP_NOT_FOR_US},
	{"all nodes", "fd00::2", "ff02::1", -1, 0, true, SAN_DROP_INET_UNWANTED},
	{"from multicast", "ff02::1", "fd00::1", -1, 0, true, SAN_DROP_INET_MALFORMED},
	{"from nobody", "::", "fd00::1", -1, 0, true, SAN_DROP_INET_MALFORMED},
	{"version", "fd00::2", "fd00::1", 14, 0x40, true, SAN_DROP_INET_MALFORMED},
	{"TCP", "fd00::2", "fd00::1", 20, 6, true, SAN_DROP_INET_UNWANTED},
	{"routing header", "fd00::2", "fd00::1", 20, 43, true, SAN_DROP_INET_UNWANTED},
	{"echo reply", "fd00::2", "fd00::1", 54, 129, true, SAN_DROP_INET_UNWANTED},
	{"router advertisement", "fd00::2", "fd00::1", 54, 134, true, SAN_DROP_INET_UNWANTED},
	{"redirect", "fd00::2", "fd00::1", 54, 137, true, SAN_DROP_INET_UNWANTED},
	{"code", "fd00::2", "fd00::1", 55, 1, true, SAN_DROP_INET_MALFORMED},
	{"checksum", "fd00::2", "fd00::1", 56, 0xee, false, SAN_DROP_INET_MALFORMED},
	{"address, not summed", "fd00::2", "fd00::1", 14 + 20, 5, false, SAN_DROP_INET_MALFORMED},
	{"another MAC", "fd00::2", "fd00::1", 4, 9, true, SAN_DROP_NOT_FOR_US},
};

INET_CASE(rx_v6__not_answered)
{
	UNIT_EACH(r, v6_rows)
		not_answered(r, true);
}

/* An IPv4-mapped IPv6 address would be taken for that IPv4 host. */
INET_CASE(rx_v6__mapped_address)
{
	struct san_ip v4 = inet_ip("10.0.0.2");

	inet_make_echo_v6(&f, "fd00::2", "fd00::1", 8);
	memcpy(f.b + 22, v4.b, 16);
	inet_seal_v6(&f);
	assert_silent(SAN_DROP_INET_MALFORMED);
	v4 = inet_ip("10.0.0.1");
	inet_make_echo_v6(&f, "fd00::2", "fd00::1", 8);
	memcpy(f.b + 38, v4.b, 16);
	inet_seal_v6(&f);
	assert_silent(SAN_DROP_INET_MALFORMED);
}

INET_CASE(rx_v6__cut_off)
{
	inet_make_echo_v6(&f, "fd00::2", "fd00::1", 20);
	for (uint16_t len = 0; len < 82; len++) {
		f.len = len;
		assert_silent(SAN_DROP_INET_MALFORMED);
	}
	for (uint16_t len = 0; len < 8; len++) {
		inet_make_echo_v6(&f, "fd00::2", "fd00::1", 20);
		inet_set16(f.b + 18, len);
		assert_silent(SAN_DROP_INET_MALFORMED);
	}
}

/* ---- neighbour discovery ---- */

INET_CASE(nd__solicit_is_sent)
{
	/* clang-format off */
	static const uint8_t want[] = {
		0x33, 0x33, 0xff, 0, 0x12, 0x34, 2, 0, 0, 0, 0, 1, 0x86, 0xdd,
		0x60, 0, 0, 0, 0, 32, 58, 255,
		0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0x12, 0x34,
		135, 0,
	};
	static const uint8_t tail[] = {
		0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34,
		1, 1, 2, 0, 0, 0, 0, 1,
	};
	/* clang-format on */

	assert_int_equal(resolves("fd00::1234"), -EAGAIN);
	assert_tx();
	assert_int_equal(out.len, sizeof(want) + 2 + sizeof(tail));
	assert_memory_equal(out.b, want, sizeof(want));
	assert_memory_equal(out.b + sizeof(want) + 2, tail, sizeof(tail));
	assert_true(inet_is_sum_right_v6(&out));
	/* the answer */
	inet_make_nd(&f, ADVERT, "fd00::1234", "fd00::1", "fd00::1234", 0x60, TLLA, inet_peer_mac);
	assert_silent(SAN_DROP_NONE);
	assert_memory_equal(h.learned.b, inet_ip("fd00::1234").b, 16);
	assert_memory_equal(&h.learned_mac, inet_peer_mac, 6);
	assert_at("fd00::1234", inet_peer_mac);
}

INET_CASE(nd__solicit_is_answered)
{
	/* clang-format off */
	static const uint8_t want[] = {
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd,
		0x60, 0, 0, 0, 0, 32, 58, 255,
		0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
		136, 0,
	};
	static const uint8_t tail[] = {
		0x60, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		2, 1, 2, 0, 0, 0, 0, 1,
	};
	/* clang-format on */
	static const char *const to[] = {OUR_GROUP, "fd00::1"};

	UNIT_EACH(r, to) {
		inet_make_nd(&f, SOLICIT, "fd00::2", *r, "fd00::1", 0, SLLA, inet_peer_mac);
		assert_answered();
		assert_int_equal(out.len, sizeof(want) + 2 + sizeof(tail));
		assert_memory_equal(out.b, want, sizeof(want));
		assert_memory_equal(out.b + sizeof(want) + 2, tail, sizeof(tail));
		assert_true(inet_is_sum_right_v6(&out));
	}
	/* the sender of the request is known from now on */
	assert_memory_equal(h.learned.b, inet_ip("fd00::2").b, 16);
	assert_true(knows("fd00::2"));
}

/* Another instance on the port answers for all. (SYS-1) */
INET_CASE(nd__quiet_learns_only)
{
	h.in->conf.quiet = true;
	inet_make_nd(&f, SOLICIT, "fd00::2", OUR_GROUP, "fd00::1", 0, SLLA, inet_peer_mac);
	assert_silent(SAN_DROP_NONE);
	assert_true(knows("fd00::2"));
	inet_make_nd(&f, SOLICIT, "::", OUR_GROUP, "fd00::1", 0, 0, NULL);
	assert_silent(SAN_DROP_NONE);
}

/* A host checks our address for duplicates: all hosts are told that it is in use. */
INET_CASE(nd__duplicate_address_detection)
{
	static const uint8_t all_mac[6] = {0x33, 0x33, 0, 0, 0, 1};
	static const struct san_ip none;

	inet_make_nd(&f, SOLICIT, "::", OUR_GROUP, "fd00::1", 0, 0, NULL);
	assert_answered();
	assert_memory_equal(out.b, all_mac, 6);
	assert_memory_equal(out.b + 38, inet_ip("ff02::1").b, 16);
	assert_int_equal(out.b[58], 0x20); /* override, not solicited */
	assert_int_equal(out.len, f.len);  /* not longer than an unauthenticated request (RT-36) */
	assert_true(inet_is_sum_right_v6(&out));
	assert_memory_equal(h.learned.b, none.b, 16);
	/* with an address it is invalid */
	inet_make_nd(&f, SOLICIT, "::", OUR_GROUP, "fd00::1", 0, SLLA, inet_peer_mac);
	assert_silent(SAN_DROP_INET_MALFORMED);
	inet_make_nd(&f, SOLICIT, "::", "fd00::1", "fd00::1", 0, 0, NULL);
	assert_silent(SAN_DROP_INET_MALFORMED);
}

/* A neighbour's MAC address changes only with the override flag (RFC 4861, 7.2.5). */
INET_CASE(nd__override)
{
	static const uint8_t mac2[6] = {2, 0, 0, 0, 0, 9};

	resolves("fd00::2");
	inet_host_tx(&h, &out);
	inet_make_nd(&f, ADVERT, "fd00::2", "fd00::1", "fd00::2", 0x40, TLLA, inet_peer_mac);
	assert_silent(SAN_DROP_NONE);
	inet_make_nd(&f, ADVERT, "fd00::2", "fd00::1", "fd00::2", 0x40, TLLA, mac2);
	assert_silent(SAN_DROP_NONE);
	assert_at("fd00::2", inet_peer_mac);
	inet_make_nd(&f, ADVERT, "fd00::2", "ff02::1", "fd00::2", 0x20, TLLA, mac2);
	assert_silent(SAN_DROP_NONE);
	assert_at("fd00::2", mac2);
}

/* The answer to a unicast request may omit the MAC address. */
INET_CASE(nd__refresh_without_option)
{
	inet_make_nd(&f, SOLICIT, "fd00::2", "fd00::1", "fd00::1", 0, SLLA, inet_peer_mac);
	inet_host_rx(&h, &f);
	assert_true(knows("fd00::2"));
	h.now_ns += 5 * SAN_NS_PER_S;
	san_inet_tick(h.in, h.now_ns);
	assert_tx();
	assert_memory_equal(out.b, inet_peer_mac, 6);
	assert_memory_equal(out.b + 38, inet_ip("fd00::2").b, 16);
	inet_make_nd(&f, ADVERT, "fd00::2", "fd00::1", "fd00::2", 0x40, 0, NULL);
	assert_silent(SAN_DROP_NONE);
	assert_int_equal(resolves("fd00::2"), 0);
	/* confirmed: no new request for a while */
	h.now_ns += 4 * SAN_NS_PER_S;
	san_inet_tick(h.in, h.now_ns);
	assert_no_tx();
}

/* Options of a router: its MAC address, an MTU, a prefix; of a redirect, the better MAC. */
static const uint8_t router_opts[] = {
	1, 1, 2, 0, 0, 0, 6, 6,                                         /* MAC address */
	5, 1, 0, 0, 0, 0, 5, 0,                                         /* MTU 1280 */
	3, 4, 64, 0xc0, 0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff, 0, 0, 0, 0, /* an on-link prefix, */
	0xfd, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};             /* fd09::/64 */
static const uint8_t redirect_opts[] = {2, 1, 2, 0, 0, 0, 6, 6};

/** A valid ND message of a router on the link. */
static void
make_router_msg(uint8_t type, const char *dst)
{
	const struct san_ip target = inet_ip("fd00::66"), to = inet_ip("fd77::9");

	inet_put_v6(&f, "fd00::fe", dst, 255);
	inet_put8(&f, type);
	inet_put8(&f, 0);
	inet_put16(&f, 0);
	if (type == 137) { /* redirect: reserved, target, destination */
		inet_put(&f, "\0\0\0", 4);
		inet_put(&f, target.b, 16);
		inet_put(&f, to.b, 16);
		inet_put(&f, redirect_opts, sizeof(redirect_opts));
	} else if (type == 134) { /* hops, flags, lifetime, reachable and retransmission time */
		inet_put(&f, "\x40\0\x07\x08\0\0\0\1\0\0\0", 12);
		inet_put(&f, router_opts, sizeof(router_opts));
	} else {
		inet_put(&f, "\0\0\0", 4);
		inet_put(&f, router_opts, 8);
	}
	inet_seal_v6(&f);
}

/*
 * The gateway is configured: advertisements and solicitations of routers, and redirects, even of
 * the gateway itself, change nothing. (RT-21, RT-31)
 */
INET_CASE(nd__routers_change_nothing)
{
	static const uint8_t types[] = {133, 134, 137};
	static const char *const dst[] = {"fd00::1", "ff02::1"};
	static struct inet_neigh neigh[1024];
	size_t size = h.in->conf.max_neighbours * sizeof(neigh[0]);
	struct san_inet *before = malloc(sizeof(*before));

	assert_non_null(before);
	assert_true(size <= sizeof(neigh));
	/* the router is a neighbour, and a host to which it redirects */
	inet_make_nd(&f, SOLICIT, "fd00::fe", "fd00::1", "fd00::1", 0, SLLA, inet_peer_mac);
	inet_host_rx(&h, &f);
	inet_make_nd(&f, SOLICIT, "fd00::66", "fd00::1", "fd00::1", 0, SLLA, inet_peer_mac);
	inet_host_rx(&h, &f);
	assert_int_equal(resolves("fd00::66"), 0);
	drain();
	UNIT_EACH(type, types) {
		UNIT_EACH(r, dst) {
			make_router_msg(*type, *r);
			memcpy(before, h.in, sizeof(*before));
			memcpy(neigh, h.in->neigh, size);
			assert_silent(SAN_DROP_INET_UNWANTED);
			assert_memory_equal(before, h.in, sizeof(*before));
			assert_memory_equal(neigh, h.in->neigh, size);
		}
	}
	free(before);
}

/* Neither answered nor believed. */
static const struct {
	const char *what;
	uint8_t type;
	const char *dst, *target;
	uint8_t flags, opt;
	int at;
	uint8_t value;
	enum san_drop drop;
} nd_rows[] = {
	{"from beyond a router", SOLICIT, OUR_GROUP, "fd00::1", 0, SLLA, 21, 254, MALFORMED},
	{"code", SOLICIT, OUR_GROUP, "fd00::1", 0, SLLA, 55, 1, MALFORMED},
	{"multicast target", SOLICIT, OUR_GROUP, "ff02::1", 0, SLLA, -1, 0, MALFORMED},
	{"another target", SOLICIT, OUR_GROUP, "fd00::9", 0, SLLA, -1, 0, SAN_DROP_INET_UNWANTED},
	{"option of length 0", SOLICIT, OUR_GROUP, "fd00::1", 0, SLLA, 79, 0, MALFORMED},
	{"option too long", SOLICIT, OUR_GROUP, "fd00::1", 0, SLLA, 79, 2, MALFORMED},
	{"multicast MAC", SOLICIT, OUR_GROUP, "fd00::1", 0, SLLA, 80, 3, MALFORMED},
	{"not asked for", ADVERT, "fd00::1", "fd00::2", 0x60, TLLA, -1, 0, SAN_DROP_NONE},
	{"solicited, to all", ADVERT, "ff02::1", "fd00::2", 0x60, TLLA, -1, 0, MALFORMED},
	{"our own address", ADVERT, "ff02::1", "fd00::1", 0x20, TLLA, -1, 0, SAN_DROP_NONE},
	{"no such neighbour", ADVERT, "fd00::1", "fd00::2", 0x40, 0, -1, 0, SAN_DROP_NONE},
};

INET_CASE(nd__not_believed)
{
	static const struct san_ip none;

	UNIT_EACH(r, nd_rows) {
		inet_make_nd(&f, r->type, "fd00::2", r->dst, r->target, r->flags, r->opt,
			     inet_peer_mac);
		if (r->at >= 0) {
			f.b[r->at] = r->value;
			inet_seal_v6(&f);
		}
		FAIL_IF(inet_host_rx(&h, &f) != r->drop, "%s", r->what);
		FAIL_IF(inet_host_tx(&h, &out), "%s is answered", r->what);
		assert_memory_equal(h.learned.b, none.b, 16);
		assert_int_equal(san_inet_tick(h.in, h.now_ns), SAN_TIME_NEVER);
	}
}

/* A host outside our prefixes is not a neighbour: it is answered, but not remembered. */
INET_CASE(nd__from_another_prefix)
{
	inet_make_nd(&f, SOLICIT, "fd77::2", "fd00::1", "fd00::1", 0, SLLA, inet_peer_mac);
	assert_answered();
	assert_int_equal(san_inet_tick(h.in, h.now_ns), SAN_TIME_NEVER);
}

INET_CASE(nd__long_options)
{
	/* unknown options are skipped */
	inet_make_nd(&f, SOLICIT, "fd00::2", OUR_GROUP, "fd00::1", 0, 14, inet_peer_mac);
	for (unsigned int i = 0; i < 2; i++) {
		inet_put8(&f, i == 0 ? 99 : SLLA);
		inet_put8(&f, 1);
		inet_put(&f, inet_peer_mac, 6);
	}
	inet_seal_v6(&f);
	assert_answered();
	assert_true(knows("fd00::2"));
	/* but only a limited number */
	for (unsigned int i = 0; i < 40; i++)
		inet_put(&f, "\x63\x01\0\0\0\0\0", 8);
	inet_seal_v6(&f);
	assert_silent(SAN_DROP_INET_MALFORMED);
}
