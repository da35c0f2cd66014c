/* SPDX-License-Identifier: BSD-3-Clause */

/* Neighbours: our addresses, next hops, ARP, ageing, a table of bounded size. (RT-31, SYS-1) */

#include "test_inet.h"

#define ARP_TARGET 38 /* offset in a frame */

static void
add_route(const char *text)
{
	assert_int_equal(san_inet_addr_parse_route(text, &conf.routes[conf.nb_routes++]), 0);
}

static void
setup(void)
{
	test_inet_conf();
	conf.max_neighbours = 8;
	add_route("10.0.0.254");
	test_inet_start();
}

/** 10.0.0.2 is a neighbour that we have asked for. */
static void
learn(void)
{
	resolves("10.0.0.2");
	answer("10.0.0.2", inet_peer_mac);
	drain();
}

/** Let time pass and handle what is due. */
static void
pass(uint64_t ns)
{
	uint64_t until_ns = h.now_ns + ns, next_ns;

	for (;;) {
		next_ns = san_inet_tick(h.in, h.now_ns);
		assert_true(next_ns > h.now_ns);
		if (next_ns > until_ns)
			break;
		h.now_ns = next_ns;
	}
	h.now_ns = until_ns;
}

INET_CASE(create__configuration)
{
	struct san_inet_conf good;
	struct san_inet *in;

	test_inet_conf();
	good = conf;
#define BAD(change)                                                     \
	do {                                                            \
		conf = good;                                            \
		change;                                                 \
		assert_int_equal(san_inet_create(&conf, &in), -EINVAL); \
	} while (0)
	BAD(conf.nb_addrs = 9);
	BAD(conf.max_neighbours = 0);
	BAD(conf.reachable_ns = 0);
	BAD(conf.retry_ns = 0);
	BAD(conf.pool = NULL);
	BAD(conf.mtu = 575);
	BAD(conf.max_out = 64);
	BAD(conf.max_out = 200);
	BAD(conf.max_groups = 0);
	BAD(conf.addrs[0].ip = inet_ip("224.0.0.1"));
	BAD(conf.addrs[0].ip = inet_ip("127.0.0.1"));
	BAD(conf.addrs[0].ip = inet_ip("::1"));
	BAD(conf.addrs[1].ip = inet_ip("::"));
	BAD(conf.addrs[1].ip = inet_ip("ff02::1"));
	BAD(conf.addrs[1].prefix_len = 129);
#undef BAD
	san_inet_destroy(NULL);
}

INET_CASE(is_local__ours_only)
{
	struct san_ip ip = inet_ip("10.0.0.1");

	assert_true(san_inet_route_is_local(h.in, &ip));
	ip = inet_ip("fd00::1");
	assert_true(san_inet_route_is_local(h.in, &ip));
	ip = inet_ip("10.0.0.2");
	assert_false(san_inet_route_is_local(h.in, &ip));
	ip = inet_ip("0.0.0.0");
	assert_false(san_inet_route_is_local(h.in, &ip));
}

static const struct {
	const char *peer, *src;
} sources[] = {
	{"10.0.0.9", "10.0.0.1"},
	{"10.0.1.200", "10.0.1.1"},
	{"10.0.1.131", "10.0.1.130"}, /* two prefixes contain it: the longer one */
	{"10.9.9.9", "10.9.0.1"},
	{"8.8.8.8", "10.0.0.1"}, /* none: the first address of its family */
	{"fd00::77", "fd00::1"},
	{"fd01::1", "fd00::1"},
};

INET_CASE(source__longest_prefix)
{
	struct san_ip peer, src, want;

	test_inet_conf();
	add_route("10.0.0.254");
	add_route("fd00::fe");
	conf.nb_addrs = 5;
	conf.addrs[4] = conf.addrs[1];
	assert_int_equal(san_inet_addr_parse("10.0.1.1/24", &conf.addrs[1]), 0);
	assert_int_equal(san_inet_addr_parse("10.0.1.130/29", &conf.addrs[2]), 0);
	assert_int_equal(san_inet_addr_parse("10.9.0.1/16", &conf.addrs[3]), 0);
	test_inet_start();
	UNIT_EACH(r, sources) {
		peer = inet_ip(r->peer);
		want = inet_ip(r->src);
		assert_int_equal(san_inet_route_source(h.in, &peer, &src), 0);
		assert_memory_equal(src.b, want.b, 16);
	}
}

INET_CASE(source__other_family)
{
	struct san_ip peer = inet_ip("fd00::2"), src;

	test_inet_conf();
	conf.nb_addrs = 1;
	test_inet_start();
	assert_int_equal(san_inet_route_source(h.in, &peer, &src), -EADDRNOTAVAIL);
	assert_int_equal(resolves("fd00::2"), -EHOSTUNREACH);
}

/* Reported at once, not after a minute without an answer. */
INET_CASE(source__no_route)
{
	struct san_ip far = inet_ip("192.168.5.5"), own, src;

	test_inet_conf();
	test_inet_start();
	assert_int_equal(san_inet_route_source(h.in, &far, &src), -ENETUNREACH);
	/* an address without a prefix contains only itself */
	own = conf.addrs[0].ip;
	assert_int_equal(san_inet_route_source(h.in, &own, &src), 0);
}

static const struct {
	const char *peer, *hop, *src;
} routed[] = {
	{"10.0.0.7", "10.0.0.7", "10.0.0.1"},     /* on the link */
	{"10.9.8.7", "10.0.1.254", "10.0.1.1"},   /* the longer prefix, its link's address */
	{"10.9.1.1", "10.0.0.253", "10.0.0.1"},   /* the shorter one */
	{"192.168.1.1", "10.0.0.254", "10.0.0.1"} /* everything else */
};

/* A router is on one of our links; of several routes the one with the longest prefix is used. */
INET_CASE(source__by_routes)
{
	struct san_ip peer, hop, src, want;

	test_inet_conf();
	conf.nb_addrs = 2;
	assert_int_equal(san_inet_addr_parse("10.0.0.1/24", &conf.addrs[0]), 0);
	assert_int_equal(san_inet_addr_parse("10.0.1.1/24", &conf.addrs[1]), 0);
	add_route("10.9.0.0/16,10.0.0.253");
	add_route("10.0.0.254");
	add_route("10.9.8.0/24,10.0.1.254");
	test_inet_start();
	UNIT_EACH(r, routed) {
		peer = inet_ip(r->peer);
		want = inet_ip(r->src);
		assert_int_equal(san_inet_route_source(h.in, &peer, &src), 0);
		assert_memory_equal(src.b, want.b, 16);
		assert_int_equal(resolves(r->peer), -EAGAIN);
		assert_tx();
		hop = inet_ip(r->hop);
		assert_memory_equal(&out.b[ARP_TARGET], &hop.b[12], 4);
	}
	want = inet_ip("10.0.1.9");
	assert_true(san_inet_route_is_on_link(&conf, &want));
	want = inet_ip("10.9.1.9");
	assert_false(san_inet_route_is_on_link(&conf, &want));
}

INET_CASE(parse_route__refused)
{
	static const char *const wrong[] = {"", ",", "10.0.0.0/16,", ",10.0.0.1", "10.0.0.1/24",
					    "10.1.0.0/16,10.0.0.1/24", "10.1.0.0/16,fd00::1",
					    "fd01::/64,10.0.0.1", "10.1.0.0/33,10.0.0.1",
					    "10.1.0.0/16,10.0.0.1,10.0.0.2"};
	struct san_inet_route r;

	for (unsigned int i = 0; i < RTE_DIM(wrong); i++)
		FAIL_IF(san_inet_addr_parse_route(wrong[i], &r) != -EINVAL, "\"%s\"", wrong[i]);
	assert_int_equal(san_inet_addr_parse_route("fd01::/64,fd00::1", &r), 0);
	assert_int_equal(r.to.prefix_len, 64);
	assert_int_equal(san_inet_addr_parse_route("fd00::1", &r), 0);
	assert_int_equal(r.to.prefix_len, 0);
}

/* Several instances on one port: one answers, all learn. (SYS-1) */
INET_CASE(quiet__learns_and_asks_only)
{
	test_inet_conf();
	conf.quiet = true;
	test_inet_start();
	inet_make_arp(&f, 1, inet_peer_mac, "10.0.0.2", "10.0.0.1");
	assert_rx(SAN_DROP_NONE);
	assert_int_equal(drain(), 0);
	assert_int_equal(resolves("10.0.0.2"), 0);
	assert_int_equal(resolves("10.0.0.3"), -EAGAIN);
	assert_int_equal(drain(), 1);
}

/* ---- asking ---- */

INET_CASE(resolve__asks_and_learns)
{
	/* clang-format off */
	static const uint8_t want[] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6,
		0, 1, 8, 0, 6, 4, 0, 1,
		2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
	};
	/* clang-format on */

	assert_int_equal(resolves("10.0.0.2"), -EAGAIN);
	assert_int_equal(resolves("10.0.0.2"), -EAGAIN);
	assert_tx();
	assert_int_equal(out.len, sizeof(want));
	assert_memory_equal(out.b, want, sizeof(want));
	assert_int_equal(drain(), 0);
	answer("10.0.0.2", inet_peer_mac);
	assert_true(h.r.was_pending);
	assert_memory_equal(h.learned.b, inet_ip("10.0.0.2").b, 16);
	assert_memory_equal(&h.learned_mac, inet_peer_mac, 6);
	assert_at("10.0.0.2", inet_peer_mac);
	assert_int_equal(drain(), 0);
}

INET_CASE(resolve__ourselves)
{
	assert_at("10.0.0.1", inet_our_mac);
	assert_int_equal(drain(), 0);
}

INET_CASE(resolve__through_the_gateway)
{
	assert_int_equal(resolves("192.168.5.5"), -EAGAIN);
	assert_tx();
	assert_memory_equal(out.b + 38, inet_ip("10.0.0.254").b + 12, 4);
	answer("10.0.0.254", inet_peer_mac);
	assert_at("192.168.5.5", inet_peer_mac);
	assert_int_equal(resolves("8.8.8.8"), 0);
	/* there is no default route for IPv6 */
	assert_int_equal(resolves("fd01::1"), -EHOSTUNREACH);
	assert_int_equal(drain(), 0);
}

INET_CASE(resolve__no_such_host)
{
	static const char *const never[] = {"224.0.0.1", "255.255.255.255", "0.0.0.0",
					    "127.0.0.1", "ff02::1", "::", "::1"};

	UNIT_EACH(r, never)
		assert_int_equal(resolves(*r), -EHOSTUNREACH);
	assert_int_equal(drain(), 0);
}

/* Five retries, then unreachable for a while, then new requests. */
INET_CASE(resolve__nobody_answers)
{
	assert_int_equal(resolves("10.0.0.2"), -EAGAIN);
	assert_int_equal(drain(), 1);
	pass(1200 * MS - 1);
	assert_int_equal(resolves("10.0.0.2"), -EAGAIN);
	assert_int_equal(drain(), 5);
	pass(1);
	assert_int_equal(resolves("10.0.0.2"), -EHOSTUNREACH);
	assert_int_equal(drain(), 0);
	/* an answer at last */
	answer("10.0.0.2", inet_peer_mac);
	assert_int_equal(resolves("10.0.0.2"), 0);
	assert_int_equal(resolves("10.0.0.3"), -EAGAIN);
	pass(1300 * MS);
	assert_int_equal(resolves("10.0.0.3"), -EHOSTUNREACH);
	pass(1200 * MS);
	assert_int_equal(resolves("10.0.0.3"), -EAGAIN);
	assert_true(drain() > 0);
}

/* ---- ageing ---- */

INET_CASE(age__used_is_refreshed)
{
	learn();
	for (unsigned int i = 0; i < 5; i++) {
		assert_int_equal(resolves("10.0.0.2"), 0);
		pass(5 * SAN_NS_PER_S);
		assert_tx();
		/* unicast: no other host is disturbed */
		assert_memory_equal(out.b, inet_peer_mac, 6);
		assert_int_equal(drain(), 0);
		/* valid meanwhile */
		assert_int_equal(resolves("10.0.0.2"), 0);
		answer("10.0.0.2", inet_peer_mac);
	}
	assert_int_equal(resolves("10.0.0.2"), 0);
}

/* However often a neighbour is to be verified, it gets one request, at once. (RT-38) */
INET_CASE(verify__one_request)
{
	const struct rte_ether_addr moved = {{2, 0, 0, 0, 9, 9}};
	const struct san_ip ip = inet_ip("10.0.0.2");
	struct rte_ether_addr mac;

	learn();
	/* it has just confirmed its address */
	assert_int_equal(san_inet_route_resolve(h.in, &ip, true, h.now_ns, &mac), 0);
	assert_int_equal(drain(), 0);
	pass(200 * MS);
	assert_int_equal(san_inet_route_resolve(h.in, &ip, true, h.now_ns, &mac), 0);
	assert_int_equal(san_inet_route_resolve(h.in, &ip, true, h.now_ns, &mac), 0);
	assert_memory_equal(&mac, inet_peer_mac, sizeof(mac));
	assert_int_equal(drain(), 1);
	answer("10.0.0.2", moved.addr_bytes);
	assert_int_equal(san_inet_route_resolve(h.in, &ip, true, h.now_ns, &mac), 0);
	assert_memory_equal(&mac, &moved, sizeof(mac));
	assert_int_equal(drain(), 0);
}

INET_CASE(age__unused_is_forgotten)
{
	learn();
	pass(64 * SAN_NS_PER_S);
	assert_int_equal(drain(), 0);
	assert_true(san_inet_tick(h.in, h.now_ns) != SAN_TIME_NEVER);
	pass(SAN_NS_PER_S);
	assert_int_equal(drain(), 0);
	assert_int_equal(san_inet_tick(h.in, h.now_ns), SAN_TIME_NEVER);
	assert_int_equal(resolves("10.0.0.2"), -EAGAIN);
}

/* It does not answer: after a unicast request a broadcast, then it is removed. */
INET_CASE(age__gone)
{
	learn();
	resolves("10.0.0.2");
	drain();
	pass(5 * SAN_NS_PER_S);
	assert_tx();
	assert_memory_equal(out.b, inet_peer_mac, 6);
	pass(200 * MS);
	assert_tx();
	assert_memory_equal(out.b, inet_all_mac, 6);
	pass(10 * SAN_NS_PER_S);
	assert_int_equal(drain(), 4);
	assert_int_equal(resolves("10.0.0.2"), -EAGAIN);
}

/* It has a new MAC address: learnt from the answer to the broadcast, or from its announcement. */
INET_CASE(learn__new_mac)
{
	static const uint8_t mac2[6] = {2, 0, 0, 0, 0, 9}, mac3[6] = {2, 0, 0, 0, 0, 10};

	resolves("10.0.0.2");
	answer("10.0.0.2", inet_peer_mac);
	answer("10.0.0.2", mac2);
	assert_memory_equal(&h.learned_mac, mac2, 6);
	assert_at("10.0.0.2", mac2);
	inet_make_arp(&f, 1, mac3, "10.0.0.2", "10.0.0.2");
	assert_rx(SAN_DROP_NONE);
	assert_at("10.0.0.2", mac3);
}

/* ---- a table of bounded size ---- */

INET_CASE(table__replaces_the_oldest)
{
	for (unsigned int i = 2; i < 10; i++) {
		assert_int_equal(resolves(numbered("10.0.0.", i)), -EAGAIN);
		h.now_ns += 1000;
		answer(numbered("10.0.0.", i), inet_peer_mac);
		h.now_ns += 1000;
		assert_int_equal(resolves(numbered("10.0.0.", i)), 0);
	}
	/* full: .2 has the oldest confirmation */
	assert_int_equal(resolves("10.0.0.20"), -EAGAIN);
	for (unsigned int i = 3; i < 10; i++)
		assert_int_equal(resolves(numbered("10.0.0.", i)), 0);
	assert_int_equal(resolves("10.0.0.2"), -EAGAIN);
	/* an entry that is not looked up any more is replaced first */
	pass(5 * SAN_NS_PER_S);
	answer("10.0.0.9", inet_peer_mac);
	for (unsigned int i = 5; i < 9; i++) {
		answer(numbered("10.0.0.", i), inet_peer_mac);
		assert_int_equal(resolves(numbered("10.0.0.", i)), 0);
	}
	pass(5 * SAN_NS_PER_S);
	for (unsigned int i = 20; i < 24; i++)
		assert_int_equal(resolves(numbered("10.0.0.", i)), -EAGAIN);
	for (unsigned int i = 5; i < 9; i++)
		assert_int_equal(resolves(numbered("10.0.0.", i)), 0);
	assert_int_equal(resolves("10.0.0.9"), -EAGAIN);
}

/*
 * A neighbour with a new MAC address is found while datagrams are sent to it, in less than the 7.1
 * s that the kernel takes. (RT-38)
 */
INET_CASE(age__moved)
{
	static const uint8_t moved[6] = {2, 0, 0, 0, 9, 9};
	struct rte_ether_addr mac;
	uint64_t start_ns = h.now_ns;

	inet_make_arp(&f, 1, inet_peer_mac, "10.0.0.2", "10.0.0.1");
	inet_host_rx(&h, &f);
	drain();
	do {
		assert_int_equal(resolve("10.0.0.2", &mac), 0);
		pass(10 * MS);
		/* unicast requests to the old MAC address are lost */
		while (inet_host_tx(&h, &out))
			if (memcmp(out.b, inet_all_mac, 6) == 0)
				answer("10.0.0.2", moved);
		assert_in_range(h.now_ns - start_ns, 0, 5500 * MS);
	} while (memcmp(&mac, moved, 6) != 0);
	assert_in_range(h.now_ns - start_ns, 5000 * MS, 5500 * MS);
}

/* Neighbours that only send to us replace each other, but not those that we send to. */
INET_CASE(table__strangers_do_not_evict)
{
	learn();
	resolves("10.0.0.2");
	drain();
	for (unsigned int i = 10; i < 250; i++) {
		inet_make_arp(&f, 1, inet_peer_mac, numbered("10.0.0.", i), "10.0.0.1");
		h.now_ns += 1000;
		assert_rx(SAN_DROP_NONE);
		assert_int_equal(drain(), 1);
	}
	assert_int_equal(resolves("10.0.0.2"), 0);
	assert_int_equal(drain(), 0);
}

/* ---- ARP ---- */

INET_CASE(arp__request_is_answered)
{
	/* clang-format off */
	static const uint8_t want[] = {
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6,
		0, 1, 8, 0, 6, 4, 0, 2,
		2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 2, 0, 0, 0, 0, 2, 10, 0, 0, 2,
	};
	/* clang-format on */

	inet_make_arp(&f, 1, inet_peer_mac, "10.0.0.2", "10.0.0.1");
	assert_answered();
	assert_int_equal(out.len, sizeof(want));
	assert_memory_equal(out.b, want, sizeof(want));
	/* the sender of the request is known from now on; no packet waited for it */
	assert_false(h.r.was_pending);
	assert_memory_equal(h.learned.b, inet_ip("10.0.0.2").b, 16);
	assert_int_equal(resolves("10.0.0.2"), 0);
	assert_int_equal(drain(), 0);
}

/* Padded to 60 bytes, as on a real wire. */
INET_CASE(arp__padding)
{
	inet_make_arp(&f, 1, inet_peer_mac, "10.0.0.2", "10.0.0.1");
	memset(f.b + f.len, 0, 60u - f.len);
	f.len = 60;
	assert_rx(SAN_DROP_NONE);
	assert_int_equal(drain(), 1);
	assert_int_equal(out.len, 42);
}

/* A host probes whether our address is free: it is answered, but has no address yet. */
INET_CASE(arp__probe)
{
	static const struct san_ip none;

	inet_make_arp(&f, 1, inet_peer_mac, "0.0.0.0", "10.0.0.1");
	assert_rx(SAN_DROP_NONE);
	assert_int_equal(drain(), 1);
	assert_memory_equal(h.learned.b, none.b, 16);
}

/* Nothing is learnt from these. */
static const struct {
	const char *what;
	uint16_t op;
	const char *spa, *tpa;
	uint8_t mac0; /* first byte of the sender's MAC */
	int at;       /* byte to change, -1: none */
	uint8_t value;
	enum san_drop drop;
	uint32_t nb_sent;
} arp_rows[] = {
	{"not for us", 1, "10.0.0.2", "10.0.0.9", 2, -1, 0, SAN_DROP_NONE, 0},
	{"not asked for", 2, "10.0.0.2", "10.0.0.1", 2, -1, 0, SAN_DROP_NONE, 0},
	{"from beyond the link", 1, "10.1.0.2", "10.0.0.1", 2, -1, 0, SAN_DROP_NONE, 1},
	{"in our name", 1, "10.0.0.1", "10.0.0.1", 2, -1, 0, SAN_DROP_NONE, 1},
	{"multicast MAC", 1, "10.0.0.2", "10.0.0.1", 1, -1, 0, SAN_DROP_INET_MALFORMED, 0},
	{"hardware", 1, "10.0.0.2", "10.0.0.1", 2, 15, 6, SAN_DROP_INET_MALFORMED, 0},
	{"protocol", 1, "10.0.0.2", "10.0.0.1", 2, 17, 1, SAN_DROP_INET_MALFORMED, 0},
	{"hardware length", 1, "10.0.0.2", "10.0.0.1", 2, 18, 8, SAN_DROP_INET_MALFORMED, 0},
	{"protocol length", 1, "10.0.0.2", "10.0.0.1", 2, 19, 16, SAN_DROP_INET_MALFORMED, 0},
	{"operation", 1, "10.0.0.2", "10.0.0.1", 2, 21, 3, SAN_DROP_INET_UNWANTED, 0},
	{"other host's MAC", 2, "10.0.0.2", "10.0.0.1", 2, 5, 9, SAN_DROP_NOT_FOR_US, 0},
};

INET_CASE(arp__teaches_nothing)
{
	static const struct san_ip none;
	uint8_t mac[6];

	UNIT_EACH(r, arp_rows) {
		memcpy(mac, inet_peer_mac, 6);
		mac[0] = r->mac0;
		inet_make_arp(&f, r->op, mac, r->spa, r->tpa);
		if (r->at >= 0)
			f.b[r->at] = r->value;
		FAIL_IF(inet_host_rx(&h, &f) != r->drop, "%s", r->what);
		assert_int_equal(drain(), r->nb_sent);
		assert_memory_equal(h.learned.b, none.b, 16);
		assert_int_equal(san_inet_tick(h.in, h.now_ns), SAN_TIME_NEVER);
	}
}

INET_CASE(arp__cut_off)
{
	inet_make_arp(&f, 1, inet_peer_mac, "10.0.0.2", "10.0.0.1");
	for (uint16_t len = 0; len < 42; len++) {
		f.len = len;
		assert_rx(SAN_DROP_INET_MALFORMED);
		assert_int_equal(drain(), 0);
	}
}

/* Requests that cannot be sent are bounded. */
INET_CASE(out__is_bounded)
{
	inet_make_arp(&f, 1, inet_peer_mac, "10.0.0.2", "10.0.0.1");
	for (uint32_t i = 0; i < 1000; i++)
		assert_rx(SAN_DROP_NONE);
	assert_int_equal(drain(), h.in->conf.max_out);
	/* some stay: the next test must find none of them in the pool */
	for (uint32_t i = 0; i < 10; i++)
		inet_host_rx(&h, &f);
}

/* No mbuf for the request: the retry sends it. */
INET_CASE(out__no_mbuf)
{
	take_mbufs();
	assert_int_equal(resolves("10.0.0.2"), -EAGAIN);
	assert_int_equal(drain(), 0);
	assert_int_equal(san_inet_drops(h.in)[SAN_DROP_NO_MBUF], 1);
	give_mbufs(UINT32_MAX);
	pass(200 * MS);
	assert_int_equal(drain(), 1);
}
