/* SPDX-License-Identifier: BSD-3-Clause */

/* What the link learns about groups: IGMP and MLD, both versions. (UDP-5) */

#include "test_inet.h"

#define IS    2
#define LEAVE 3
#define JOIN  4

static void
configure(void)
{
	test_inet_conf();
	conf.max_groups = 4;
	conf.prng_seed = 7;
}

static void
setup(void)
{
	configure();
	test_inet_start();
}

/** Let time pass. Returns the number of frames sent, the last one in *out*. */
static uint32_t
pass(uint64_t ns)
{
	uint64_t until_ns = h.now_ns + ns, next_ns;
	uint32_t n = 0;

	for (;;) {
		next_ns = san_inet_tick(h.in, h.now_ns);
		assert_true(next_ns > h.now_ns);
		while (inet_host_tx(&h, &out))
			n++;
		if (next_ns > until_ns)
			break;
		h.now_ns = next_ns;
	}
	h.now_ns = until_ns;
	return n;
}

static void
settle(void)
{
	pass(20 * SAN_NS_PER_S);
}

/** *out* is an IGMPv3 report, or one of version 2 if *record* is 0x16 or 0x17. */
static void
check_igmp(const char *group, uint8_t record)
{
	static const uint8_t v3[8] = {0x22, 0, 0, 0, 0, 0, 0, 1};
	bool is_v3 = record < 0x10;
	const char *dst = is_v3 ? "224.0.0.22" : record == 0x17 ? "224.0.0.2" :
								  group;
	const uint8_t *ip = out.b + 14, *igmp = ip + 24;
	struct san_ip d = inet_ip(dst), g = inet_ip(group);

	assert_int_equal(out.len, 38 + (is_v3 ? 16 : 8));
	assert_memory_equal(out.b, "\x01\x00\x5e", 3);
	assert_int_equal(out.b[3], d.b[13] & 0x7f);
	assert_memory_equal(out.b + 4, d.b + 14, 2);
	assert_int_equal(inet_get16(out.b + 12), 0x0800);
	assert_int_equal(ip[0], 0x46);
	assert_int_equal(inet_get16(ip + 2), out.len - 14);
	assert_int_equal(ip[8], 1);
	assert_int_equal(ip[9], 2);
	assert_int_equal(inet_sum(ip, 24, 0), 0);
	assert_memory_equal(ip + 12, inet_ip("10.0.0.1").b + 12, 4);
	assert_memory_equal(ip + 16, d.b + 12, 4);
	assert_memory_equal(ip + 20, "\x94\x04\x00\x00", 4);
	assert_int_equal(inet_sum(igmp, out.len - 38u, 0), 0);
	if (!is_v3) {
		assert_int_equal(igmp[0], record);
		assert_memory_equal(igmp + 4, g.b + 12, 4);
		return;
	}
	assert_int_equal(igmp[0], v3[0]);
	assert_memory_equal(igmp + 4, v3 + 4, 4);
	assert_int_equal(igmp[8], record);
	assert_int_equal(inet_get16(igmp + 10), 0);
	assert_memory_equal(igmp + 12, g.b + 12, 4);
}

/** *out* is an MLDv2 report, or one of version 1 if *record* is 131 or 132. */
static void
check_mld(const char *src, const char *group, uint8_t record)
{
	bool is_v2 = record < 100;
	const char *dst = is_v2 ? "ff02::16" : record == 132 ? "ff02::2" :
							       group;
	const uint8_t *ip = out.b + 14, *mld = ip + 48;
	struct san_ip d = inet_ip(dst), g = inet_ip(group);
	uint32_t sum = 58, n = is_v2 ? 28 : 24;

	assert_int_equal(out.len, 62 + n);
	assert_memory_equal(out.b, "\x33\x33", 2);
	assert_memory_equal(out.b + 2, d.b + 12, 4);
	assert_int_equal(inet_get16(ip + 4), 8 + n);
	assert_int_equal(ip[6], 0);
	assert_int_equal(ip[7], 1);
	assert_memory_equal(ip + 8, inet_ip(src).b, 16);
	assert_memory_equal(ip + 24, d.b, 16);
	assert_memory_equal(ip + 40, "\x3a\x00\x05\x02\x00\x00\x01\x00", 8);
	for (uint32_t i = 8; i < 40; i += 2)
		sum += inet_get16(ip + i);
	assert_int_equal(inet_sum(mld, n, sum + n), 0);
	assert_int_equal(mld[0], is_v2 ? 143 : record);
	if (is_v2) {
		assert_int_equal(inet_get16(mld + 6), 1);
		assert_int_equal(mld[8], record);
		assert_int_equal(mld[9], 0);
		assert_int_equal(inet_get16(mld + 10), 0);
	}
	assert_memory_equal(mld + (is_v2 ? 12 : 8), g.b, 16);
}

/* ---- queries and reports of others ---- */

/** *type* 0x11 or 0x16, with *n* bytes. */
static void
make_igmp(uint8_t type, const char *dst, const char *group, uint8_t code, uint16_t n)
{
	struct san_ip g = inet_ip(group);

	inet_make_echo_v4(&f, "10.0.0.254", dst, 0);
	f.b[14] = 0x46;
	f.b[22] = 1;
	f.b[23] = 2;
	f.len = 34;
	inet_put(&f, "\x94\x04\x00\x00", 4);
	inet_put8(&f, type);
	inet_put8(&f, code);
	inet_put16(&f, 0);
	inet_put(&f, g.b + 12, 4);
	for (uint16_t i = 8; i < n; i++)
		inet_put8(&f, 0);
	inet_set16(f.b + 16, (uint16_t)(f.len - 14));
	seal_ip(24);
	inet_set16(f.b + 40, inet_sum(f.b + 38, n, 0));
}

static void
make_mld(uint8_t type, const char *dst, const char *group, uint16_t code, uint16_t n)
{
	struct san_ip g = inet_ip(group);

	inet_put_v6(&f, "fe80::fe", dst, 1);
	inet_put8(&f, type);
	inet_put8(&f, 0);
	inet_put16(&f, 0);
	inet_put16(&f, code);
	inet_put16(&f, 0);
	inet_put(&f, g.b, 16);
	for (uint16_t i = 24; i < n; i++)
		inet_put8(&f, 0);
	inet_seal_v6(&f);
	/* sealed as plain ICMPv6; the header in front is not part of the sum */
	memmove(f.b + 62, f.b + 54, n);
	memcpy(f.b + 54, "\x3a\x00\x05\x02\x00\x00\x01\x00", 8);
	f.len += 8;
	f.b[20] = 0;
	inet_set16(f.b + 18, (uint16_t)(8 + n));
}

static void
query(bool v6, const char *group, uint16_t code, uint16_t n)
{
	if (v6)
		make_mld(130, strcmp(group, "::") == 0 ? "ff02::1" : group, group, code, n);
	else
		make_igmp(0x11, strcmp(group, "0.0.0.0") == 0 ? "224.0.0.1" : group, group,
			  (uint8_t)code, n);
	assert_silent(SAN_DROP_NONE);
}

/* ---- tests ---- */

/* At once, and again within a second; the same after the last one leaves. */
INET_CASE(join__is_told)
{
	assert_int_equal(join("239.129.2.3"), 0);
	assert_tx();
	check_igmp("239.129.2.3", JOIN);
	assert_int_equal(join("239.129.2.3"), 0);
	assert_no_tx();
	/* a query meanwhile is answered by the second report */
	query(false, "0.0.0.0", 100, 12);
	assert_int_equal(pass(SAN_NS_PER_S), 1);
	check_igmp("239.129.2.3", JOIN);
	assert_int_equal(pass(3600 * SAN_NS_PER_S), 0);
	assert_int_equal(leave("239.129.2.3"), 0);
	assert_no_tx();
	assert_int_equal(leave("239.129.2.3"), 0);
	assert_tx();
	check_igmp("239.129.2.3", LEAVE);
	assert_int_equal(pass(SAN_NS_PER_S), 1);
	check_igmp("239.129.2.3", LEAVE);
	assert_int_equal(pass(3600 * SAN_NS_PER_S), 0);
	assert_int_equal(san_inet_tick(h.in, h.now_ns), SAN_TIME_NEVER);
}

INET_CASE(join__is_told_v6)
{
	assert_int_equal(join("ff05::33"), 0);
	assert_tx();
	check_mld("::", "ff05::33", JOIN);
	assert_int_equal(pass(SAN_NS_PER_S), 1);
	check_mld("::", "ff05::33", JOIN);
	assert_int_equal(leave("ff05::33"), 0);
	assert_tx();
	check_mld("::", "ff05::33", LEAVE);
	assert_int_equal(pass(SAN_NS_PER_S), 1);
	assert_int_equal(pass(3600 * SAN_NS_PER_S), 0);
}

/* Routers accept only reports from a link-local address. */
INET_CASE(join__from_link_local)
{
	configure();
	assert_int_equal(san_inet_addr_parse("fe80::1/64", &conf.addrs[conf.nb_addrs++]), 0);
	test_inet_start();
	assert_int_equal(join("ff05::33"), 0);
	assert_tx();
	check_mld("fe80::1", "ff05::33", JOIN);
}

INET_CASE(join__not_told)
{
	static const char *const silent[] = {"224.0.0.1", "ff02::1", "ff01::33"};

	UNIT_EACH(r, silent) {
		assert_int_equal(join(*r), 0);
		assert_int_equal(pass(10 * SAN_NS_PER_S), 0);
	}
	query(false, "0.0.0.0", 10, 12);
	query(true, "::", 1000, 28);
	assert_int_equal(pass(10 * SAN_NS_PER_S), 0);
	for (unsigned int i = 0; i < RTE_DIM(silent); i++) {
		assert_int_equal(leave(silent[i]), 0);
		assert_int_equal(pass(10 * SAN_NS_PER_S), 0);
	}
	/* another instance or the kernel reports */
	configure();
	conf.quiet = true;
	test_inet_start();
	assert_int_equal(join("239.1.2.3"), 0);
	query(false, "0.0.0.0", 10, 12);
	assert_int_equal(pass(10 * SAN_NS_PER_S), 0);
}

/* Joined or left again before the previous change was reported twice. */
INET_CASE(join__again_at_once)
{
	join("239.1.2.3");
	leave("239.1.2.3");
	join("239.1.2.3");
	assert_tx();
	assert_tx();
	check_igmp("239.1.2.3", LEAVE);
	assert_tx();
	check_igmp("239.1.2.3", JOIN);
	assert_int_equal(pass(10 * SAN_NS_PER_S), 1);
	check_igmp("239.1.2.3", JOIN);
}

/* A group that was just left makes room for one that is joined. */
INET_CASE(join__bounded)
{
	for (unsigned int i = 1; i <= 4; i++)
		assert_int_equal(join(numbered("239.1.1.", i)), 0);
	assert_int_equal(join("239.1.1.5"), -ENOSPC);
	assert_int_equal(leave("239.1.1.2"), 0);
	assert_int_equal(join("239.1.1.5"), 0);
	assert_int_equal(join("239.1.1.2"), -ENOSPC);
}

INET_CASE(query__is_answered)
{
	uint32_t n, early = 0;

	join("239.1.2.3");
	join("239.1.2.4");
	join("ff05::33");
	settle();
	for (uint32_t i = 0; i < 20; i++) {
		query(false, "0.0.0.0", 100, 12);
		n = pass(5 * SAN_NS_PER_S);
		early += n;
		assert_int_equal(n + pass(5 * SAN_NS_PER_S), 2);
	}
	/* at random times */
	assert_true(early > 5 && early < 35);
	settle();
	query(false, "239.1.2.4", 10, 12);
	assert_int_equal(pass(SAN_NS_PER_S), 1);
	check_igmp("239.1.2.4", IS);
	make_igmp(0x11, "224.0.0.1", "239.1.2.9", 10, 12);
	assert_rx(SAN_DROP_NONE);
	assert_int_equal(pass(SAN_NS_PER_S), 0);
	query(true, "::", 10000, 28);
	assert_int_equal(pass(10 * SAN_NS_PER_S), 1);
	check_mld("::", "ff05::33", IS);
	query(true, "ff05::33", 1000, 28);
	assert_int_equal(pass(SAN_NS_PER_S), 1);
	check_mld("::", "ff05::33", IS);
	leave("239.1.2.3");
	settle();
	query(false, "0.0.0.0", 10, 12);
	assert_int_equal(pass(SAN_NS_PER_S), 1);
	check_igmp("239.1.2.4", IS);
}

/* Times above 12.7 s have mantissa and exponent: 0x8f is (16 + 15) << 3 tenths. */
INET_CASE(query__long_times)
{
	uint32_t late = 0;

	join("239.1.2.3");
	join("ff05::33");
	settle();
	for (uint32_t i = 0; i < 20; i++) {
		query(false, "0.0.0.0", 0x8f, 12);
		query(true, "::", 0x8001, 28); /* 32776 ms */
		pass(14 * SAN_NS_PER_S);
		late += pass(20 * SAN_NS_PER_S);
	}
	assert_true(late > 10 && late < 36);
}

/* While there is an older router, its version is used; then the newest again. */
INET_CASE(query__of_an_older_router)
{
	join("239.1.2.3");
	join("ff05::33");
	settle();
	query(false, "0.0.0.0", 10, 8);
	assert_int_equal(pass(SAN_NS_PER_S), 1);
	check_igmp("239.1.2.3", 0x16);
	leave("239.1.2.3");
	assert_tx();
	check_igmp("239.1.2.3", 0x17);
	query(true, "::", 1000, 24);
	pass(SAN_NS_PER_S);
	settle();
	query(true, "ff05::33", 1000, 24);
	assert_int_equal(pass(SAN_NS_PER_S), 1);
	check_mld("::", "ff05::33", 131);
	leave("ff05::33");
	assert_tx();
	check_mld("::", "ff05::33", 132);
	pass(260 * SAN_NS_PER_S);
	join("239.1.2.3");
	assert_tx();
	check_igmp("239.1.2.3", JOIN);
	join("ff05::33");
	assert_tx();
	check_mld("::", "ff05::33", JOIN);
}

/* An older router needs one member's answer; a newer one wants all. */
INET_CASE(group_report__of_another_member)
{
	join("239.1.2.3");
	join("ff05::33");
	settle();
	for (unsigned int i = 0; i < 2; i++) {
		query(false, "0.0.0.0", 100, i == 0 ? 12 : 8);
		make_igmp(0x16, "239.1.2.3", "239.1.2.3", 0, 8);
		assert_rx(SAN_DROP_NONE);
		assert_int_equal(pass(10 * SAN_NS_PER_S), i == 0 ? 1 : 0);
		query(true, "::", 10000, i == 0 ? 28 : 24);
		make_mld(131, "ff05::33", "ff05::33", 0, 24);
		assert_rx(SAN_DROP_NONE);
		assert_int_equal(pass(10 * SAN_NS_PER_S), i == 0 ? 1 : 0);
	}
}

static const struct {
	const char *what;
	bool v6;
	const char *group;
	uint16_t n;
	int at; /* -1: nothing is changed */
	uint8_t value;
	enum san_drop drop;
} bad_rows[] = {
	{"from beyond a router", false, "0.0.0.0", 12, 22, 2, SAN_DROP_INET_MALFORMED},
	{"length", false, "0.0.0.0", 9, -1, 0, SAN_DROP_INET_MALFORMED},
	{"checksum", false, "0.0.0.0", 12, 40, 0, SAN_DROP_INET_MALFORMED},
	{"no group", false, "10.0.0.1", 12, -1, 0, SAN_DROP_INET_MALFORMED},
	{"another group's", false, "239.1.2.9", 12, -1, 0, SAN_DROP_NOT_FOR_US},
	{"from beyond a router", true, "::", 28, 21, 2, SAN_DROP_INET_MALFORMED},
	{"length", true, "::", 25, -1, 0, SAN_DROP_INET_MALFORMED},
	{"too short", true, "::", 23, -1, 0, SAN_DROP_INET_MALFORMED},
	{"no group", true, "fd00::1", 28, -1, 0, SAN_DROP_INET_MALFORMED},
	{"IPv4's", true, "239.1.2.3", 28, -1, 0, SAN_DROP_INET_MALFORMED},
	{"all of IPv4", true, "0.0.0.0", 28, -1, 0, SAN_DROP_INET_MALFORMED},
	{"another group's", true, "ff05::34", 28, -1, 0, SAN_DROP_NOT_FOR_US},
	{"not from the link", true, "::", 28, 22, 0xfd, SAN_DROP_INET_MALFORMED},
};

INET_CASE(query__malformed)
{
	join("239.1.2.3");
	join("ff05::33");
	settle();
	UNIT_EACH(r, bad_rows) {
		struct san_ip g = inet_ip(r->group);
		const char *all = r->v6 ? "ff02::1" : "224.0.0.1";
		bool own = san_inet_is_group(&g) && san_wire_ip_is_v4(&g) != r->v6;
		const char *dst = own ? r->group : all;

		if (r->v6)
			make_mld(130, dst, r->group, 100, r->n);
		else
			make_igmp(0x11, dst, r->group, 1, r->n);
		if (r->at >= 0)
			f.b[r->at] = r->value;
		if (!r->v6 && r->at == 22)
			seal_ip(24);
		FAIL_IF(inet_host_rx(&h, &f) != r->drop, "%s, IPv%d", r->what, r->v6 ? 6 : 4);
		assert_int_equal(pass(10 * SAN_NS_PER_S), 0);
	}
	make_igmp(0x13, "224.0.0.1", "0.0.0.0", 1, 12); /* DVMRP */
	assert_rx(SAN_DROP_INET_UNWANTED);
	/* a switch without an address may query */
	make_igmp(0x11, "224.0.0.1", "0.0.0.0", 1, 12);
	memset(f.b + 26, 0, 4);
	seal_ip(24);
	assert_rx(SAN_DROP_NONE);
	assert_int_equal(pass(SAN_NS_PER_S), 1);
}

/* Groups may share a MAC address: it is listed once. */
INET_CASE(groups__each_mac_once)
{
	/* every host is in the first ones */
	static const struct rte_ether_addr want[] = {
		{{0x01, 0x00, 0x5e, 0x00, 0x00, 0x01}},
		{{0x33, 0x33, 0, 0, 0, 1}},
		{{0x33, 0x33, 0xff, 0, 0, 1}},
		{{0x01, 0x00, 0x5e, 0x01, 0x02, 0x03}},
		{{0x33, 0x33, 0, 0, 0, 0x33}},
	};
	struct rte_ether_addr macs[5];

	assert_int_equal(san_inet_group_all(h.in, macs, 5), 3);
	assert_int_equal(join("239.1.2.3"), 0);
	assert_int_equal(join("239.129.2.3"), 0);
	assert_int_equal(join("ff05::33"), 0);
	assert_int_equal(join("ff02::33"), 0);
	assert_int_equal(join("ff02::34"), -ENOSPC);
	assert_int_equal(san_inet_group_all(h.in, macs, 5), 5);
	assert_memory_equal(macs, want, sizeof(want));
	assert_int_equal(san_inet_group_all(h.in, macs, 4), 5);
	assert_int_equal(leave("239.1.2.3"), 0);
	assert_int_equal(san_inet_group_all(h.in, macs, 5), 5);
	assert_int_equal(leave("239.129.2.3"), 0);
	assert_int_equal(san_inet_group_all(h.in, macs, 5), 4);
}
