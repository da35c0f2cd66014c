/* SPDX-License-Identifier: BSD-3-Clause */

/* ICMP errors for datagrams that we sent or refuse; path MTU. (UDP-3, RT-31) */

#include "test_inet.h"

static void
setup(void)
{
	test_inet_conf();
	conf.max_paths = 8;
	conf.answers_per_s = 10;
	conf.answers_burst = 6; /* one host gets half at once */
	test_inet_start();
}

/* ---- ours ---- */

/** The datagram in *f* arrives and is not accepted. */
static void
refuse(void)
{
	struct san_inet_result r;

	assert_int_equal(san_inet_ip_rx(h.in, test_eal_exact(pool, f.b, f.len), h.now_ns, &r), 0);
	assert_int_equal(r.what, SAN_INET_UDP);
	san_inet_error_refuse(h.in, &r, h.now_ns);
	/* a refused packet stays the caller's */
	rte_pktmbuf_free(r.m);
}

INET_CASE(refuse__v4)
{
	static const uint16_t sizes[] = {0, 1, 27, 28, 29, 100, 547, 548, 549, 1400};
	unsigned int n;

	UNIT_EACH(size, sizes) {
		h.now_ns += SAN_NS_PER_S;
		inet_make_udp(&f, "10.0.0.2", "10.0.0.1", *size);
		refuse();
		assert_tx();
		assert_memory_equal(out.b, inet_peer_mac, 6);
		assert_memory_equal(out.b + 6, inet_our_mac, 6);
		n = RTE_MIN(RTE_MAX(28u, *size), 548u);
		assert_int_equal(out.len, 14 + 28 + n);
		assert_int_equal(inet_get16(out.b + 16), 28 + n);
		assert_int_equal(inet_sum(out.b + 14, 20, 0), 0);
		assert_int_equal(out.b[23], 1);
		assert_memory_equal(out.b + 26, inet_ip("10.0.0.1").b + 12, 4);
		assert_memory_equal(out.b + 30, inet_ip("10.0.0.2").b + 12, 4);
		assert_int_equal(inet_get16(out.b + 34), 0x0303);
		assert_int_equal(inet_sum(out.b + 34, out.len - 34u, 0), 0);
		assert_memory_equal(out.b + 42, f.b + 14, n);
	}
}

INET_CASE(refuse__v6)
{
	static const uint16_t sizes[] = {0, 1, 47, 48, 49, 1231, 1232, 1233, 1400};
	unsigned int n;

	UNIT_EACH(size, sizes) {
		h.now_ns += SAN_NS_PER_S;
		inet_make_udp(&f, "fd00::2", "fd00::1", *size);
		refuse();
		assert_tx();
		assert_memory_equal(out.b, inet_peer_mac, 6);
		n = RTE_MIN(RTE_MAX(48u, *size), 1232u);
		assert_int_equal(out.len, 14 + 48 + n);
		assert_int_equal(inet_get16(out.b + 18), 8 + n);
		assert_int_equal(out.b[20], 58);
		assert_memory_equal(out.b + 22, inet_ip("fd00::1").b, 16);
		assert_memory_equal(out.b + 38, inet_ip("fd00::2").b, 16);
		assert_int_equal(inet_get16(out.b + 54), 0x0104);
		assert_true(inet_is_sum_right_v6(&out));
		assert_memory_equal(out.b + 62, f.b + 14, n);
	}
}

/* A datagram to a group, or in a broadcast frame, is not refused by each receiver. */
INET_CASE(refuse__never_to_many)
{
	static const char *const dst[] = {"255.255.255.255", "10.0.0.255", "239.1.1.1"};

	assert_int_equal(join("239.1.1.1"), 0);
	drain();
	UNIT_EACH(r, dst) {
		inet_make_udp(&f, "10.0.0.2", *r, 9);
		refuse();
		assert_no_tx();
	}
	assert_int_equal(join("ff02::77"), 0);
	drain();
	inet_make_udp(&f, "fd00::2", "ff02::77", 9);
	refuse();
	assert_no_tx();
	inet_make_udp(&f, "10.0.0.2", "10.0.0.1", 9);
	memset(f.b, 0xff, 6);
	refuse();
	assert_no_tx();
}

static uint32_t
count_refused(uint32_t n)
{
	uint32_t k = 0;

	inet_make_udp(&f, "10.0.0.2", "10.0.0.1", 9);
	while (n-- > 0) {
		refuse();
		k += inet_host_tx(&h, &out);
	}
	return k;
}

INET_CASE(refuse__rate)
{
	assert_int_equal(count_refused(10), 3);
	h.now_ns += 100 * SAN_NS_PER_MS - 1;
	assert_int_equal(count_refused(10), 0);
	h.now_ns += 1;
	assert_int_equal(count_refused(10), 1);
	h.now_ns += 250 * SAN_NS_PER_MS;
	assert_int_equal(count_refused(10), 2);
	/* the saved budget is bounded */
	h.now_ns += 3600 * SAN_NS_PER_S;
	assert_int_equal(count_refused(10), 3);
	assert_int_equal(san_inet_drops(h.in)[SAN_DROP_INET_RATE], 7 + 10 + 9 + 8 + 7);
	h.now_ns += SAN_NS_PER_S;
	h.in->conf.quiet = true;
	assert_int_equal(count_refused(10), 0);
}

INET_CASE(refuse__no_mbuf)
{
	struct san_inet_result r;

	inet_make_udp(&f, "10.0.0.2", "10.0.0.1", 9);
	assert_int_equal(san_inet_ip_rx(h.in, test_eal_exact(pool, f.b, f.len), h.now_ns, &r), 0);
	take_mbufs();
	san_inet_error_refuse(h.in, &r, h.now_ns);
	give_mbufs(UINT32_MAX);
	rte_pktmbuf_free(r.m);
	assert_no_tx();
}

/* ---- others' ---- */

/** Make an error of a router, which quotes *n* bytes of the packet of ours in *q*. */
static void
make_error(uint8_t type, uint8_t code, uint32_t info, const struct inet_frame *q, uint16_t n)
{
	bool v6 = q->b[12] == 0x86;

	if (v6)
		inet_make_echo_v6(&f, "fd00::fe", "fd00::1", 0);
	else
		inet_make_echo_v4(&f, "10.0.0.254", "10.0.0.1", 0);
	f.len -= 8;
	inet_put8(&f, type);
	inet_put8(&f, code);
	inet_put16(&f, 0);
	inet_put16(&f, (uint16_t)(info >> 16));
	inet_put16(&f, (uint16_t)info);
	inet_put(&f, q->b + 14, n);
	if (v6)
		inet_seal_v6(&f);
	else
		inet_seal_v4(&f);
}

/** A datagram that we sent. */
static const struct inet_frame *
make_ours(bool v6)
{
	static struct inet_frame q;

	inet_make_udp(&q, v6 ? "fd00::1" : "10.0.0.1", v6 ? "fd01::9" : "192.168.9.9", 1000);
	return &q;
}

static const struct {
	bool v6;
	uint8_t type, code;
	int err; /* 0: nothing that is believed */
	bool hard;
} error_rows[] = {
	{false, 3, 0, ENETUNREACH, false},
	{false, 3, 1, EHOSTUNREACH, false},
	{false, 3, 2, ENOPROTOOPT, true},
	{false, 3, 3, ECONNREFUSED, true},
	{false, 3, 5, EOPNOTSUPP, false},
	{false, 3, 6, ENETUNREACH, true},
	{false, 3, 7, EHOSTDOWN, true},
	{false, 3, 8, ENONET, true},
	{false, 3, 9, ENETUNREACH, true},
	{false, 3, 10, EHOSTUNREACH, true},
	{false, 3, 11, ENETUNREACH, false},
	{false, 3, 12, EHOSTUNREACH, false},
	{false, 3, 13, EHOSTUNREACH, true},
	{false, 3, 15, EHOSTUNREACH, true},
	{false, 3, 16, EHOSTUNREACH, false},
	{false, 11, 0, EHOSTUNREACH, false},
	{false, 12, 0, EPROTO, true},
	{false, 4, 0, 0, false}, /* source quench: obsolete */
	{false, 5, 0, 0, false}, /* redirect: not believed */
	{true, 1, 0, ENETUNREACH, false},
	{true, 1, 1, EACCES, true},
	{true, 1, 3, EHOSTUNREACH, false},
	{true, 1, 4, ECONNREFUSED, true},
	{true, 1, 6, EACCES, true},
	{true, 1, 7, EPROTO, true},
	{true, 3, 0, EHOSTUNREACH, false},
	{true, 4, 1, EPROTO, true},
	{true, 5, 0, 0, false},
};

INET_CASE(error__what_it_means)
{
	UNIT_EACH(r, error_rows) {
		make_error(r->type, r->code, 0, make_ours(r->v6), r->v6 ? 48 : 28);
		if (inet_host_rx(&h, &f) != (r->err ? SAN_DROP_NONE : SAN_DROP_INET_UNWANTED) ||
		    h.r.what != (r->err ? SAN_INET_ERROR : SAN_INET_NOTHING) ||
		    h.r.err != r->err || h.r.hard != r->hard)
			fail_msg("type %u, code %u: %d", r->type, r->code, h.r.err);
		if (r->err == 0)
			continue;
		assert_int_equal(h.r.type, r->type);
		assert_int_equal(h.r.code, r->code);
		assert_memory_equal(h.r.ip.b, inet_ip(r->v6 ? "fd00::fe" : "10.0.0.254").b, 16);
		assert_memory_equal(h.r.d.src.b, inet_ip(r->v6 ? "fd00::1" : "10.0.0.1").b, 16);
		assert_memory_equal(h.r.d.dst.b, inet_ip(r->v6 ? "fd01::9" : "192.168.9.9").b, 16);
		assert_int_equal(h.r.d.sport, 1000);
		assert_int_equal(h.r.d.dport, 2000);
		assert_no_tx();
	}
}

/* Quotes of packets that we did not send. */
static const struct {
	const char *what;
	bool v6;
	int at; /* offset in the quoted packet; -1: no change */
	uint8_t value;
	uint16_t len; /* bytes quoted */
} quote_rows[] = {
	{"version", false, 0, 0x65, 28},
	{"header length", false, 0, 0x44, 28},
	{"long header", false, 0, 0x46, 28},
	{"not UDP", false, 9, 6, 28},
	{"later fragment", false, 7, 1, 28},
	{"from others", false, 15, 2, 28},
	{"to a group", false, 16, 239, 28},
	{"cut off", false, -1, 0, 27},
	{"no header", false, -1, 0, 19},
	{"nothing", false, -1, 0, 0},
	{"version", true, 0, 0x45, 48},
	{"not UDP", true, 6, 6, 48},
	{"from others", true, 23, 2, 48},
	{"to a group", true, 24, 0xff, 48},
	{"cut off", true, -1, 0, 47},
	{"fragment cut off", true, 6, 44, 47},
	{"nothing", true, -1, 0, 0},
};

INET_CASE(error__not_believed)
{
	struct inet_frame q;

	UNIT_EACH(r, quote_rows) {
		q = *make_ours(r->v6);
		if (r->at >= 0)
			q.b[14 + r->at] = r->value;
		make_error(r->v6 ? 1 : 3, r->v6 ? 4 : 3, 0, &q, r->len);
		if (inet_host_rx(&h, &f) != SAN_DROP_INET_UNWANTED)
			fail_msg("%s, IPv%d", r->what, r->v6 ? 6 : 4);
	}
	/* a wrong checksum */
	make_error(3, 3, 0, make_ours(false), 28);
	f.b[36] ^= 1;
	assert_rx(SAN_DROP_INET_MALFORMED);
	make_error(1, 4, 0, make_ours(true), 48);
	f.b[56] ^= 1;
	assert_rx(SAN_DROP_INET_MALFORMED);
}

/* A quote of the first fragment, of IPv6 with a fragment header. */
INET_CASE(error__of_a_fragment)
{
	static const uint8_t frag[8] = {17, 0, 0, 1, 1, 2, 3, 4};
	struct inet_frame q = *make_ours(true);

	q.b[20] = 44;
	memmove(q.b + 62, q.b + 54, 40);
	memcpy(q.b + 54, frag, 8);
	make_error(1, 4, 0, &q, 56);
	assert_rx(SAN_DROP_NONE);
	assert_int_equal(h.r.d.sport, 1000);
	q.b[57] = 8; /* a later fragment */
	make_error(1, 4, 0, &q, 56);
	assert_rx(SAN_DROP_INET_UNWANTED);
}

/* ---- path MTU ---- */

static uint16_t
path_mtu(const char *text)
{
	struct san_ip ip = inet_ip(text);

	return san_inet_path_mtu(h.in, &ip, h.now_ns);
}

static const struct {
	bool v6;
	uint32_t said;
	uint16_t want; /* 0: not believed */
} mtu_rows[] = {
	{false, 1027, 1027},
	{false, 1028, 0}, /* as long as the packet that did not pass */
	{false, 9000, 0},
	{false, 552, 552},
	{false, 300, 552},
	{false, 0, 1006}, /* an old router does not report the MTU */
	{true, 1047, 0},
	{true, 1279, 0},
	{true, 70000, 0},
};

INET_CASE(path__as_routers_say)
{
	struct inet_frame q;

	UNIT_EACH(r, mtu_rows) {
		const char *peer = r->v6 ? "fd01::9" : "192.168.9.9";

		h.now_ns += 600 * SAN_NS_PER_S;
		make_error(r->v6 ? 2 : 3, r->v6 ? 0 : 4, r->said, make_ours(r->v6),
			   r->v6 ? 48 : 28);
		if (inet_host_rx(&h, &f) != (r->want ? SAN_DROP_NONE : SAN_DROP_INET_UNWANTED) ||
		    path_mtu(peer) != 1500)
			fail_msg("%u", r->said); /* before a socket has sent it */
		san_inet_path_narrow(h.in, &h.r, h.now_ns);
		FAIL_IF(path_mtu(peer) != (r->want ? r->want : 1500), "%u", r->said);
		if (r->want)
			assert_int_equal(h.r.err, EMSGSIZE);
	}
	/* for a short packet not less than the minimum of every path */
	h.now_ns += 600 * SAN_NS_PER_S;
	inet_make_udp(&q, "10.0.0.1", "192.168.9.9", 800);
	make_error(3, 4, 0, &q, 28);
	assert_rx(SAN_DROP_NONE);
	san_inet_path_narrow(h.in, &h.r, h.now_ns);
	assert_int_equal(path_mtu("192.168.9.9"), 552);
	/* no path is shorter than a packet that states no length */
	memset(q.b + 16, 0, 2);
	make_error(3, 4, 0, &q, 28);
	assert_rx(SAN_DROP_INET_UNWANTED);
	/* only for packets that must not be fragmented */
	make_error(3, 4, 600, make_ours(false), 28);
	f.b[42 + 6] = 0;
	inet_seal_v4(&f);
	assert_rx(SAN_DROP_INET_UNWANTED);
}

static void
say(const char *peer, uint16_t mtu)
{
	bool v6 = strchr(peer, ':') != NULL;
	struct inet_frame q;

	inet_make_udp(&q, v6 ? "fd00::1" : "10.0.0.1", peer, 1400);
	make_error(v6 ? 2 : 3, v6 ? 0 : 4, mtu, &q, v6 ? 48 : 28);
	assert_rx(SAN_DROP_NONE);
	san_inet_path_narrow(h.in, &h.r, h.now_ns);
}

INET_CASE(path__is_forgotten)
{
	say("192.168.9.9", 1000);
	say("fd01::9", 1300);
	h.now_ns += 599 * SAN_NS_PER_S;
	assert_int_equal(path_mtu("192.168.9.9"), 1000);
	assert_int_equal(path_mtu("fd01::9"), 1300);
	/* a report cannot raise it, and repeating it does not extend it */
	say("192.168.9.9", 1000);
	say("192.168.9.9", 1200);
	assert_int_equal(path_mtu("192.168.9.9"), 1000);
	h.now_ns += SAN_NS_PER_S;
	assert_int_equal(path_mtu("192.168.9.9"), 1500);
	assert_int_equal(path_mtu("fd01::9"), 1500);
	/* a smaller value is kept for the full time again */
	say("192.168.9.9", 1000);
	h.now_ns += 300 * SAN_NS_PER_S;
	say("192.168.9.9", 900);
	h.now_ns += 400 * SAN_NS_PER_S;
	assert_int_equal(path_mtu("192.168.9.9"), 900);
}

/* With more paths than entries the most recent ones are kept. */
INET_CASE(path__bounded)
{
	for (unsigned int i = 1; i <= 10; i++) {
		say(numbered("192.168.9.", i), 1000);
		h.now_ns += SAN_NS_PER_S;
	}
	assert_int_equal(path_mtu("192.168.9.1"), 1500);
	assert_int_equal(path_mtu("192.168.9.2"), 1500);
	for (unsigned int i = 3; i <= 10; i++)
		assert_int_equal(path_mtu(numbered("192.168.9.", i)), 1000);
}

INET_CASE(path__bounds_what_is_sent)
{
	static uint8_t data[1400];
	struct san_inet_dgram d = {.sport = 1, .dport = 2, .df = true};
	struct iovec iov = {data, 972};

	inet_make_arp(&f, 1, inet_peer_mac, "10.0.0.2", "10.0.0.1");
	inet_host_rx(&h, &f);
	inet_host_tx(&h, &out);
	say("10.0.0.2", 1000);
	d.dst = inet_ip("10.0.0.2");
	assert_int_equal(san_inet_udp_send(h.in, &d, &iov, 1, h.now_ns), 0);
	assert_tx();
	iov.iov_len++;
	assert_int_equal(san_inet_udp_send(h.in, &d, &iov, 1, h.now_ns), -EMSGSIZE);
	/* a probe is sent in one packet as long as the link's MTU */
	d.probe = true;
	assert_int_equal(san_inet_udp_send(h.in, &d, &iov, 1, h.now_ns), 0);
	assert_tx();
	assert_int_equal(out.len, 14 + 28 + 973);
	d.probe = false;
	h.now_ns += 600 * SAN_NS_PER_S;
	assert_int_equal(san_inet_udp_send(h.in, &d, &iov, 1, h.now_ns), 0);
}
