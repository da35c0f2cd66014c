/* SPDX-License-Identifier: BSD-3-Clause */

/* UDP: receivers, checks, destinations, and packets that wait for a neighbour. (UDP-3, UDP-5) */

#include "test_inet.h"

static uint8_t data[70000];

static void
setup(void)
{
	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 11 + i / 256);
	test_inet_conf();
	conf.max_neighbours = 8;
	conf.max_waiting = 7;
	conf.max_groups = 4;
	assert_int_equal(san_inet_addr_parse_route("10.0.0.254", &conf.routes[conf.nb_routes++]),
			 0);
	test_inet_start();
}

/** Make *who* a neighbour with the peer's MAC address. */
static void
know(const char *who)
{
	struct san_ip ip = inet_ip(who);

	if (san_wire_ip_is_v4(&ip))
		inet_make_arp(&f, 1, inet_peer_mac, who, "10.0.0.1");
	else
		inet_make_nd(&f, 135, who, "fd00::1", "fd00::1", 0, 1, inet_peer_mac);
	assert_rx(SAN_DROP_NONE);
	assert_int_equal(h.r.what, SAN_INET_LEARNED);
	drain();
}

static int
send_to(const char *dst, uint32_t n)
{
	struct san_inet_dgram d = {.sport = 1000, .dport = 2000, .tos = 0xb9};
	struct iovec iov = {.iov_base = data, .iov_len = n};

	d.dst = inet_ip(dst);
	return san_inet_udp_send(h.in, &d, &iov, 1, h.now_ns);
}

/** Send a datagram, which leaves at once. */
static void
send_out(const char *dst, uint32_t n)
{
	assert_int_equal(send_to(dst, n), 0);
	assert_tx();
}

/* ---- in ---- */

INET_CASE(rx__both_families)
{
	static const uint16_t sizes[] = {0, 1, 2, 17, 500, 1472};
	unsigned int v6;

	for (unsigned int i = 0; i < 2 * RTE_DIM(sizes); i++) {
		v6 = i & 1;
		inet_make_udp(&f, v6 ? "fd00::2" : "10.0.0.2", v6 ? "fd00::1" : "10.0.0.1",
			      sizes[i / 2]);
		assert_rx(SAN_DROP_NONE);
		assert_int_equal(h.r.what, SAN_INET_UDP);
		assert_memory_equal(&h.r.d.src, inet_ip(v6 ? "fd00::2" : "10.0.0.2").b, 16);
		assert_memory_equal(&h.r.d.dst, inet_ip(v6 ? "fd00::1" : "10.0.0.1").b, 16);
		assert_int_equal(h.r.d.sport, 1000);
		assert_int_equal(h.r.d.dport, 2000);
		assert_int_equal(h.r.d.hops, 33);
		assert_int_equal(h.r.d.tos, 3);
		assert_false(h.r.d.group);
		assert_int_equal(h.r.off, v6 ? 62 : 42);
		assert_int_equal(h.r.len, sizes[i / 2]);
		assert_memory_equal(h.payload, f.b + h.r.off, h.r.len);
	}
	assert_no_tx();
}

/* Ethernet padding is not data. */
INET_CASE(rx__padding)
{
	inet_make_udp(&f, "10.0.0.2", "10.0.0.1", 3);
	memset(f.b + f.len, 0xaa, 60u - f.len);
	f.len = 60;
	assert_rx(SAN_DROP_NONE);
	assert_int_equal(h.r.len, 3);
}

/* However it is segmented, even between the bytes of a summed word. */
INET_CASE(rx__in_pieces)
{
	struct rte_mbuf *m;

	inet_make_udp(&f, "fd00::2", "fd00::1", 101);
	for (uint16_t cut = 1; cut < f.len; cut++) {
		m = test_eal_exact(pool, f.b, cut);
		rte_pktmbuf_chain(m, test_eal_exact(pool, f.b + cut, f.len - cut));
		assert_int_equal(inet_host_rx_mbuf(&h, m), SAN_DROP_NONE);
		assert_int_equal(h.r.len, 101);
		assert_memory_equal(h.payload, f.b + 62, 101);
	}
}

static const struct {
	const char *src, *dst;
	enum san_drop drop;
	bool group, is_echo; /* a copy of what this host's kernel sends to a group */
} who_rows[] = {
	{"10.0.0.2", "10.0.0.9", SAN_DROP_NOT_FOR_US, false},
	{"10.0.0.2", "255.255.255.255", SAN_DROP_NONE, true},
	{"10.0.0.2", "10.0.0.255", SAN_DROP_NONE, true},
	{"10.0.0.2", "10.0.1.255", SAN_DROP_NOT_FOR_US, false},
	{"10.0.0.2", "224.0.0.1", SAN_DROP_NOT_FOR_US, false},
	{"10.0.0.2", "239.1.2.3", SAN_DROP_NONE, true},
	{"10.0.0.2", "239.1.2.4", SAN_DROP_NOT_FOR_US, false},
	{"192.168.0.1", "10.0.0.1", SAN_DROP_NONE, false},
	{"0.0.0.0", "10.0.0.1", SAN_DROP_INET_MALFORMED, false},
	{"127.0.0.1", "10.0.0.1", SAN_DROP_INET_MALFORMED, false},
	{"239.1.2.3", "10.0.0.1", SAN_DROP_INET_MALFORMED, false},
	{"255.255.255.255", "10.0.0.1", SAN_DROP_INET_MALFORMED, false},
	{"10.0.0.255", "10.0.0.1", SAN_DROP_INET_MALFORMED, false},
	{"10.0.0.1", "10.0.0.1", SAN_DROP_INET_MALFORMED, false}, /* with another MAC */
	{"fd00::1", "fd00::1", SAN_DROP_INET_MALFORMED, false},
	{"fd00::2", "fd00::9", SAN_DROP_NOT_FOR_US, false},
	{"fd00::2", "ff02::1", SAN_DROP_NOT_FOR_US, false},
	{"fd00::2", "ff02::1:ff00:1", SAN_DROP_NOT_FOR_US, false},
	{"fd00::2", "ff05::33", SAN_DROP_NONE, true},
	{"fd00::2", "ff05::34", SAN_DROP_NOT_FOR_US, false},
	{"10.0.0.1", "239.1.2.3", SAN_DROP_NOT_FOR_US, false, true},
	{"fe80::1", "ff05::33", SAN_DROP_NOT_FOR_US, false, true},
	{"::", "fd00::1", SAN_DROP_INET_MALFORMED, false},
	{"ff05::33", "fd00::1", SAN_DROP_INET_MALFORMED, false},
};

INET_CASE(rx__for_whom)
{
	assert_int_equal(join("239.1.2.3"), 0);
	assert_int_equal(join("ff05::33"), 0);
	drain();
	UNIT_EACH(r, who_rows) {
		inet_make_udp(&f, r->src, r->dst, 9);
		memmove(f.b + 6, r->is_echo ? h.in->conf.mac.addr_bytes : f.b + 6, 6);
		FAIL_IF(inet_host_rx(&h, &f) != r->drop, "%s to %s", r->src, r->dst);
		assert_int_equal(h.r.what, r->drop == 0 ? SAN_INET_UDP : SAN_INET_NOTHING);
		assert_int_equal(h.r.d.group, r->group);
	}
	/* a unicast address in a broadcast frame: as Linux, not as RFC 1122, 3.3.6 */
	inet_make_udp(&f, "10.0.0.2", "10.0.0.1", 9);
	memset(f.b, 0xff, 6);
	assert_rx(SAN_DROP_NONE);
	assert_int_equal(h.r.what, SAN_INET_UDP);
	inet_make_udp(&f, "fd00::2", "fd00::1", 9);
	f.b[0] = 0x33;
	assert_rx(SAN_DROP_NONE);
}

/* It must be left as often as it was joined. */
INET_CASE(join__counts)
{
	assert_int_equal(join("10.0.0.2"), -EINVAL);
	assert_int_equal(join("fd00::2"), -EINVAL);
	assert_int_equal(leave("239.1.2.3"), -ENOENT);
	assert_int_equal(join("239.1.2.3"), 0);
	assert_int_equal(join("239.1.2.3"), 0);
	assert_int_equal(leave("239.1.2.3"), 0);
	inet_make_udp(&f, "10.0.0.2", "239.1.2.3", 9);
	assert_rx(SAN_DROP_NONE);
	assert_int_equal(leave("239.1.2.3"), 0);
	assert_int_equal(leave("239.1.2.3"), -ENOENT);
	assert_rx(SAN_DROP_NOT_FOR_US);
}

static const struct {
	const char *what;
	bool v6;
	int at; /* in the UDP header */
	uint16_t value;
	enum san_drop drop;
} bad_rows[] = {
	{"no checksum", false, 6, 0, SAN_DROP_NONE},
	{"no checksum", true, 6, 0, SAN_DROP_INET_MALFORMED},
	{"checksum", false, 6, 0xeeee, SAN_DROP_INET_MALFORMED},
	{"checksum", true, 6, 0xeeee, SAN_DROP_INET_MALFORMED},
	{"content", false, 8, 0xeeee, SAN_DROP_INET_MALFORMED},
	{"content", true, 8, 0xeeee, SAN_DROP_INET_MALFORMED},
	{"port, not summed", false, 2, 77, SAN_DROP_INET_MALFORMED},
	{"too short", false, 4, 7, SAN_DROP_INET_MALFORMED},
	{"too short", true, 4, 7, SAN_DROP_INET_MALFORMED},
	{"too long", false, 4, 29, SAN_DROP_INET_MALFORMED},
	{"too long", true, 4, 29, SAN_DROP_INET_MALFORMED},
};

INET_CASE(rx__malformed)
{
	UNIT_EACH(r, bad_rows) {
		inet_make_udp(&f, r->v6 ? "fd00::2" : "10.0.0.2", r->v6 ? "fd00::1" : "10.0.0.1",
			      20);
		inet_set16(inet_udp_of(&f) + r->at, r->value);
		FAIL_IF(inet_host_rx(&h, &f) != r->drop, "%s, IPv%d", r->what, r->v6 ? 6 : 4);
	}
	/* the address is part of the sum, too */
	inet_make_udp(&f, "fd00::2", "fd00::1", 20);
	f.b[14 + 20] = 5;
	assert_rx(SAN_DROP_INET_MALFORMED);
}

/* IP may carry more than the UDP length. */
INET_CASE(rx__shorter_than_ip)
{
	uint8_t *ip = f.b + 14, *udp = ip + 20;

	inet_make_udp(&f, "10.0.0.2", "10.0.0.1", 20);
	inet_set16(udp + 4, 8 + 11);
	inet_set16(udp + 6, 0);
	inet_set16(udp + 6, inet_sum_udp(ip, udp, 8 + 11));
	assert_rx(SAN_DROP_NONE);
	assert_int_equal(h.r.len, 11);
}

INET_CASE(rx__cut_off)
{
	for (unsigned int i = 0; i < 2; i++) {
		inet_make_udp(&f, i ? "fd00::2" : "10.0.0.2", i ? "fd00::1" : "10.0.0.1", 20);
		for (uint16_t len = 0; len < (i ? 82 : 62); len++) {
			f.len = len;
			assert_rx(SAN_DROP_INET_MALFORMED);
		}
	}
	/* and with a length field that matches */
	inet_make_udp(&f, "10.0.0.2", "10.0.0.1", 20);
	for (uint16_t len = 20; len < 28; len++) {
		inet_set16(f.b + 16, len);
		seal_ip(20);
		assert_rx(SAN_DROP_INET_MALFORMED);
	}
	inet_make_udp(&f, "fd00::2", "fd00::1", 20);
	for (uint16_t len = 0; len < 8; len++) {
		inet_set16(f.b + 18, len);
		assert_rx(SAN_DROP_INET_MALFORMED);
	}
}

/** Insert *n* bytes behind the IP header; *next*: type of an extension header. */
static void
insert(const char *bytes, uint16_t n, uint8_t next)
{
	bool v6 = f.b[12] == 0x86;
	uint16_t at = v6 ? 54 : 34;

	memmove(f.b + at + n, f.b + at, f.len - at);
	memcpy(f.b + at, bytes, n);
	f.len += n;
	if (v6) {
		f.b[20] = next;
		inet_set16(f.b + 18, (uint16_t)(f.len - 54));
		return;
	}
	f.b[14] = (uint8_t)(0x45 + n / 4);
	inet_set16(f.b + 16, (uint16_t)(f.len - 14));
	inet_set16(f.b + 24, 0);
	inet_set16(f.b + 24, inet_sum(f.b + 14, 20u + n, 0));
}

static const struct {
	const char *what, *bytes;
	uint16_t n;
	uint8_t next; /* 0xff: IPv4 */
	enum san_drop drop;
} opt_rows[] = {
	{"nothing", "\x01\x01\x01\x00", 4, 0xff, SAN_DROP_NONE},
	{"router alert", "\x94\x04\x00\x00", 4, 0xff, SAN_DROP_NONE},
	{"behind the end", "\x00\xff\xff\xff", 4, 0xff, SAN_DROP_NONE},
	{"record route", "\x07\x07\x04\x00\x00\x00\x00\x00", 8, 0xff, SAN_DROP_NONE},
	{"loose source route", "\x83\x07\x08\x0a\x00\x00\x01\x00", 8, 0xff, SAN_DROP_INET_UNWANTED},
	{"strict source route", "\x01\x89\x03\x04", 4, 0xff, SAN_DROP_INET_UNWANTED},
	{"too long", "\x94\x05\x00\x00", 4, 0xff, SAN_DROP_INET_MALFORMED},
	{"too short", "\x94\x01\x00\x00", 4, 0xff, SAN_DROP_INET_MALFORMED},
	{"length cut off", "\x01\x01\x01\x94", 4, 0xff, SAN_DROP_INET_MALFORMED},
	{"hop by hop", "\x11\x00\x05\x02\x00\x00\x01\x00", 8, 0, SAN_DROP_NONE},
	{"destination", "\x11\x00\x01\x04\x00\x00\x00\x00", 8, 60, SAN_DROP_NONE},
	{"both", "\x3c\x00\x01\x04\x00\x00\x00\x00\x11\x00\x01\x04\x00\x00\x00\x00", 16, 0,
	 SAN_DROP_NONE},
	{"hop by hop, twice", "\x00\x00\x01\x04\x00\x00\x00\x00\x11\x00\x01\x04\x00\x00\x00\x00",
	 16, 0, SAN_DROP_INET_MALFORMED},
	{"unknown, to be skipped", "\x11\x00\x1e\x04\x00\x00\x00\x00", 8, 60, SAN_DROP_NONE},
	{"unknown, to be dropped", "\x11\x00\x5e\x04\x00\x00\x00\x00", 8, 60,
	 SAN_DROP_INET_UNWANTED},
	{"option too long", "\x11\x00\x01\x05\x00\x00\x00\x00", 8, 60, SAN_DROP_INET_MALFORMED},
	{"option cut off", "\x11\x00\x00\x00\x00\x00\x00\x01", 8, 60, SAN_DROP_INET_MALFORMED},
	{"header too long", "\x11\x10\x01\x04\x00\x00\x00\x00", 8, 60, SAN_DROP_INET_MALFORMED},
	{"routing", "\x11\x00\x00\x00\x00\x00\x00\x00", 8, 43, SAN_DROP_INET_UNWANTED},
	{"nothing follows", "\x3b\x00\x01\x04\x00\x00\x00\x00", 8, 60, SAN_DROP_INET_UNWANTED},
};

INET_CASE(rx__options)
{
	UNIT_EACH(r, opt_rows) {
		bool v4 = r->next == 0xff;

		inet_make_udp(&f, v4 ? "10.0.0.2" : "fd00::2", v4 ? "10.0.0.1" : "fd00::1", 20);
		insert(r->bytes, r->n, r->next);
		FAIL_IF(inet_host_rx(&h, &f) != r->drop, "%s", r->what);
		if (r->drop == SAN_DROP_NONE)
			assert_int_equal(h.r.off, (v4 ? 42 : 62) + r->n);
	}
}

/* Only a limited number of extension headers is parsed. */
INET_CASE(rx__many_headers)
{
	static const char long_one[33 * 8] = {17, 32};

	inet_make_udp(&f, "fd00::2", "fd00::1", 20);
	insert("\x11\x00\x01\x04\x00\x00\x00\x00", 8, 60);
	for (unsigned int i = 0; i < 2; i++)
		insert("\x3c\x00\x01\x04\x00\x00\x00\x00", 8, 60);
	assert_rx(SAN_DROP_NONE);
	insert("\x3c\x00\x01\x04\x00\x00\x00\x00", 8, 60);
	assert_rx(SAN_DROP_INET_UNWANTED);
	/* and only a limited length */
	inet_make_udp(&f, "fd00::2", "fd00::1", 20);
	insert(long_one, sizeof(long_one), 60);
	assert_rx(SAN_DROP_INET_UNWANTED);
}

/* ---- out ---- */

INET_CASE(send__v4)
{
	/* clang-format off */
	static const uint8_t want[] = {
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0xb9, 0, 33,
	};
	static const uint8_t ports[] = {1000 >> 8, 1000 & 0xff, 2000 >> 8, 2000 & 0xff, 0, 13};
	/* clang-format on */
	uint16_t id;

	know("10.0.0.2");
	send_out("10.0.0.2", 5);
	assert_int_equal(out.len, 14 + 33);
	assert_memory_equal(out.b, want, sizeof(want));
	assert_int_equal(inet_get16(out.b + 20), 0); /* not DF */
	assert_int_equal(out.b[22], 64);
	assert_int_equal(out.b[23], 17);
	assert_int_equal(inet_sum(out.b + 14, 20, 0), 0);
	assert_memory_equal(out.b + 26, inet_ip("10.0.0.1").b + 12, 4);
	assert_memory_equal(out.b + 30, inet_ip("10.0.0.2").b + 12, 4);
	assert_memory_equal(out.b + 34, ports, sizeof(ports));
	assert_int_equal(inet_sum_udp(out.b + 14, out.b + 34, 13), 0);
	assert_memory_equal(out.b + 42, data, 5);
	/* the next one has another identification */
	id = inet_get16(out.b + 18);
	send_out("10.0.0.2", 5);
	assert_int_not_equal(inet_get16(out.b + 18), id);
}

INET_CASE(send__v6)
{
	/* clang-format off */
	static const uint8_t want[] = {
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x6b, 0x90, 0, 0, 0, 13, 17, 64,
	};
	/* clang-format on */

	know("fd00::2");
	send_out("fd00::2", 5);
	assert_int_equal(out.len, 54 + 13);
	assert_memory_equal(out.b, want, sizeof(want));
	assert_memory_equal(out.b + 22, inet_ip("fd00::1").b, 16);
	assert_memory_equal(out.b + 38, inet_ip("fd00::2").b, 16);
	assert_int_equal(inet_sum_udp(out.b + 14, out.b + 54, 13), 0);
	assert_memory_equal(out.b + 62, data, 5);
}

/* A sent packet is valid when it is received. */
INET_CASE(send__to_ourselves)
{
	for (unsigned int i = 0; i <= 1472; i += 92) {
		send_out(i & 4 ? "10.0.0.1" : "fd00::1", RTE_MIN(i, 1452u));
		assert_int_equal(inet_host_rx(&h, &out), SAN_DROP_NONE);
		assert_int_equal(h.r.len, RTE_MIN(i, 1452u));
		assert_memory_equal(h.payload, data, h.r.len);
		assert_int_equal(h.r.d.tos, 0xb9);
	}
}

/* An own address may be the broadcast address of another prefix of ours. */
INET_CASE(send__to_ourselves_not_to_all)
{
	test_inet_conf();
	conf.nb_addrs = 3;
	assert_int_equal(san_inet_addr_parse_own("10.0.0.255/16", &conf.addrs[2]), 0);
	test_inet_start();
	send_out("10.0.0.255", 5);
	assert_memory_equal(out.b, inet_our_mac, sizeof(inet_our_mac));
}

static const struct {
	const char *dst;
	uint8_t mac[6];
	uint8_t hops;
} mac_rows[] = {
	{"255.255.255.255", {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 64},
	{"10.0.0.255", {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 64},
	{"224.0.0.1", {0x01, 0x00, 0x5e, 0, 0, 1}, 1},
	{"239.129.2.3", {0x01, 0x00, 0x5e, 0x01, 0x02, 0x03}, 1},
	{"ff02::1", {0x33, 0x33, 0, 0, 0, 1}, 1},
	{"ff05::1:2:3", {0x33, 0x33, 0, 2, 0, 3}, 1},
	{"10.0.0.1", {2, 0, 0, 0, 0, 1}, 64},
};

INET_CASE(send__to_many)
{
	UNIT_EACH(r, mac_rows) {
		send_out(r->dst, 50);
		assert_memory_equal(out.b, r->mac, 6);
		assert_int_equal(out.b[out.b[12] == 8 ? 22 : 21], r->hops);
		assert_no_tx();
	}
}

INET_CASE(send__as_told)
{
	struct san_inet_dgram d = {.sport = 7, .dport = 8, .hops = 9, .df = true};
	const struct iovec iov[3] = {{data, 3}, {NULL, 0}, {data + 3, 8}};

	know("10.0.0.2");
	d.src = inet_ip("10.0.0.1");
	d.dst = inet_ip("10.0.0.2");
	assert_int_equal(san_inet_udp_send(h.in, &d, iov, 3, h.now_ns), 0);
	assert_tx();
	assert_int_equal(inet_get16(out.b + 20), 0x4000);
	assert_int_equal(out.b[22], 9);
	assert_memory_equal(out.b + 42, data, 11);
	d.dst = inet_ip("239.1.1.1");
	assert_int_equal(san_inet_udp_send(h.in, &d, NULL, 0, h.now_ns), 0);
	assert_tx();
	assert_int_equal(out.b[22], 9);
	assert_int_equal(out.len, 42);
}

/* A sum of 0 would mean that there is none. */
INET_CASE(send__sum_of_zero)
{
	struct san_inet_dgram d = {.sport = 1, .dport = 2};
	uint8_t two[2] = {0, 0};
	struct iovec iov = {two, 2};

	know("fd00::2");
	d.dst = inet_ip("fd00::2");
	assert_int_equal(san_inet_udp_send(h.in, &d, &iov, 1, h.now_ns), 0);
	assert_tx();
	memcpy(two, out.b + 60, 2);
	assert_int_equal(san_inet_udp_send(h.in, &d, &iov, 1, h.now_ns), 0);
	assert_tx();
	assert_int_equal(inet_get16(out.b + 60), 0xffff);
	assert_int_equal(inet_host_rx(&h, &out), SAN_DROP_NOT_FOR_US);
}

INET_CASE(send__refused)
{
	static const char *const none[] = {"fd01::1", "127.0.0.1", "::1", "0.0.0.0", "::"};
	struct san_inet_dgram d = {.sport = 1, .dport = 2};
	const struct iovec huge = {data, SIZE_MAX};

	UNIT_EACH(r, none)
		FAIL_IF(send_to(*r, 5) != -ENETUNREACH, "to %s", *r);
	d.dst = inet_ip("10.0.0.2");
	d.src = inet_ip("10.0.0.3");
	assert_int_equal(san_inet_udp_send(h.in, &d, NULL, 0, h.now_ns), -EADDRNOTAVAIL);
	d.src = inet_ip("fd00::1");
	assert_int_equal(san_inet_udp_send(h.in, &d, NULL, 0, h.now_ns), -EADDRNOTAVAIL);
	assert_int_equal(send_to("10.0.0.2", 65508), -EMSGSIZE);
	assert_int_equal(send_to("fd00::2", 65528), -EMSGSIZE);
	d.src = inet_ip("10.0.0.1");
	assert_int_equal(san_inet_udp_send(h.in, &d, &huge, 1, h.now_ns), -EMSGSIZE);
	d.dst = inet_ip("127.0.0.1");
	assert_int_equal(san_inet_udp_send(h.in, &d, NULL, 0, h.now_ns), -ENETUNREACH);
	d.dst = inet_ip("10.0.0.2");
	d.df = true;
	assert_int_equal(san_inet_udp_send(h.in, &d, &(struct iovec){data, 1473}, 1, h.now_ns),
			 -EMSGSIZE);
	assert_no_tx();
}

INET_CASE(send__no_room)
{
	for (unsigned int i = 0; i < h.in->conf.max_out; i++)
		assert_int_equal(send_to("10.0.0.1", 5), 0);
	assert_int_equal(send_to("10.0.0.1", 5), -EAGAIN);
	assert_tx();
	assert_int_equal(send_to("10.0.0.1", 5), 0);
}

INET_CASE(send__no_mbuf)
{
	take_mbufs();
	assert_int_equal(send_to("10.0.0.1", 5), -ENOMEM);
	give_mbufs(UINT32_MAX);
	assert_int_equal(send_to("10.0.0.1", 5), 0);
}

/* Longer than an mbuf: a chain. */
INET_CASE(send__many_segments)
{
	san_inet_destroy(h.in);
	inet_host_conf(small_pool, &conf);
	inet_host_init(&h, small_pool, &conf);
	h.pool = pool;
	send_out("10.0.0.1", 1471);
	assert_int_equal(inet_host_rx(&h, &out), SAN_DROP_NONE);
	assert_int_equal(h.r.len, 1471);
	assert_memory_equal(h.payload, data, 1471);
	/* at last there are not enough of them */
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(send_to("10.0.0.1", 1471), 0);
	assert_int_equal(send_to("10.0.0.1", 1471), -ENOMEM);
}

/* ---- what waits ---- */

INET_CASE(wait__sent_with_the_answer)
{
	for (unsigned int i = 1; i <= 3; i++)
		assert_int_equal(send_to("10.0.0.2", i), 0);
	assert_tx();
	assert_memory_equal(out.b, inet_all_mac, 6);
	assert_no_tx();
	answer("10.0.0.2", inet_peer_mac);
	for (unsigned int i = 1; i <= 3; i++) {
		assert_tx();
		assert_memory_equal(out.b, inet_peer_mac, 6);
		assert_int_equal(out.len, 42 + i);
	}
	assert_no_tx();
	/* through the router, too */
	send_out("192.168.1.1", 9);
	assert_memory_equal(out.b + 38, inet_ip("10.0.0.254").b + 12, 4);
	answer("10.0.0.254", inet_peer_mac);
	assert_tx();
	assert_memory_equal(out.b + 30, inet_ip("192.168.1.1").b + 12, 4);
}

/* Half of the places are for one neighbour: the oldest packet is dropped. */
INET_CASE(wait__the_oldest_goes)
{
	for (unsigned int i = 1; i <= 5; i++)
		assert_int_equal(send_to("10.0.0.2", i), 0);
	assert_int_equal(san_inet_drops(h.in)[SAN_DROP_INET_NEIGH], 2);
	assert_tx();
	answer("10.0.0.2", inet_peer_mac);
	for (unsigned int i = 3; i <= 5; i++) {
		assert_tx();
		assert_int_equal(out.len, 42 + i);
	}
	assert_no_tx();
}

/* For all neighbours together the number of places is the limit. */
INET_CASE(wait__bounded)
{
	static const char *const who[] = {"10.0.0.2", "10.0.0.3", "10.0.0.4"};

	for (unsigned int i = 0; i < 7; i++)
		assert_int_equal(send_to(who[i / 3], 5), 0);
	assert_int_equal(send_to("10.0.0.4", 5), -EAGAIN);
	/* a neighbour that has waiting packets can still add its newest one */
	assert_int_equal(send_to("10.0.0.2", 5), 0);
	drain();
	answer("10.0.0.3", inet_peer_mac);
	drain();
	assert_int_equal(send_to("10.0.0.4", 5), 0);
	/* the rest is freed with the instance */
}

INET_CASE(wait__nobody_answers)
{
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(send_to("10.0.0.2", 5), 0);
	for (unsigned int i = 0; i < 6; i++) {
		h.now_ns += h.in->conf.retry_ns;
		san_inet_tick(h.in, h.now_ns);
		drain();
	}
	assert_int_equal(san_inet_drops(h.in)[SAN_DROP_INET_NEIGH], 2);
	assert_int_equal(send_to("10.0.0.2", 5), -EHOSTUNREACH);
	/* new requests after a while */
	h.now_ns += 2 * SAN_NS_PER_S;
	san_inet_tick(h.in, h.now_ns);
	send_out("10.0.0.2", 5);
	answer("10.0.0.2", inet_peer_mac);
	assert_tx();
}

/* When an entry is replaced, its waiting packets are dropped. */
INET_CASE(wait__evicted)
{
	assert_int_equal(send_to("10.0.0.2", 5), 0);
	for (unsigned int i = 10; i < 18; i++) {
		h.now_ns += 1000;
		assert_int_equal(resolves(numbered("10.0.0.", i)), -EAGAIN);
	}
	assert_int_equal(san_inet_drops(h.in)[SAN_DROP_INET_NEIGH], 1);
	drain();
	answer("10.0.0.2", inet_peer_mac);
	assert_no_tx();
}
