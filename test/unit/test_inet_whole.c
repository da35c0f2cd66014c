/* SPDX-License-Identifier: BSD-3-Clause */

/* Reassembly of fragments: which packets, which not, and how many may wait. (UDP-3) */

#define TEST_INET_MBUFS 1023
#include "test_inet.h"

#include "san_prng.h"

#define NB_PARTIALS 8
#define NB_FRAGS    256 /* the least number that can be configured */
#define PIECE       1480u
#define MOMENT_NS   (100 * SAN_NS_PER_MS)

/* The datagram that is fragmented: its source, its identification, and the protocol. */
static const char *src;
static uint32_t id;
static uint8_t ip_proto;
static uint8_t bytes[65536];
static uint32_t nb_bytes;

static void
setup(void)
{
	test_inet_conf();
	conf.max_partial = NB_PARTIALS;
	conf.max_frags = NB_FRAGS;
	test_inet_start();
	id = 1;
	ip_proto = 17;
}

static const char *
our_address(void)
{
	return strchr(src, ':') != NULL ? "fd00::1" : "10.0.0.1";
}

/** Make a datagram with *n* bytes from *from* to us. */
static void
make(const char *from, uint32_t n)
{
	struct san_ip a, b;
	uint32_t i, sum;

	src = from;
	nb_bytes = n + 8;
	memset(bytes, 0, 8);
	inet_set16(bytes, 1000);
	inet_set16(bytes + 2, 2000);
	inet_set16(bytes + 4, (uint16_t)nb_bytes);
	for (i = 8; i < nb_bytes; i++)
		bytes[i] = (uint8_t)(i * 11 + i / 256);
	a = inet_ip(src);
	b = inet_ip(our_address());
	for (i = san_wire_ip_is_v4(&a) ? 12 : 0, sum = 17 + nb_bytes; i < 16; i += 2)
		sum += inet_get16(a.b + i) + inet_get16(b.b + i);
	inet_set16(bytes + 6, inet_sum(bytes, nb_bytes, sum));
}

/** Make *f* the fragment with *n* bytes at *at*. */
static void
cut(uint32_t at, uint32_t n, bool more)
{
	struct san_ip a = inet_ip(src), b = inet_ip(our_address());

	inet_put_eth(&f, inet_our_mac, inet_peer_mac, san_wire_ip_is_v4(&a) ? 0x0800 : 0x86dd);
	if (san_wire_ip_is_v4(&a)) {
		const uint8_t v4[12] = {0x45, 3, 0, 0, 0, 0, 0, 0, 33, ip_proto};

		inet_put(&f, v4, sizeof(v4));
		inet_put(&f, a.b + 12, 4);
		inet_put(&f, b.b + 12, 4);
		inet_set16(f.b + 16, (uint16_t)(20 + n));
		inet_set16(f.b + 18, (uint16_t)id);
		inet_set16(f.b + 20, (uint16_t)(at / 8 | (more ? 0x2000 : 0)));
		inet_set16(f.b + 24, inet_sum(f.b + 14, 20, 0));
	} else {
		const uint8_t v6[8] = {0x60, 0x30, 0, 0, 0, 0, 44, 33};
		const uint8_t head[8] = {ip_proto};

		inet_put(&f, v6, sizeof(v6));
		inet_put(&f, a.b, 16);
		inet_put(&f, b.b, 16);
		inet_put(&f, head, sizeof(head));
		inet_set16(f.b + 18, (uint16_t)(8 + n));
		inet_set16(f.b + 56, (uint16_t)(at | more));
		inet_set16(f.b + 60, (uint16_t)id);
	}
	inet_put(&f, bytes + at, (uint16_t)n);
}

static enum san_drop
rx(uint32_t at, uint32_t n, bool more)
{
	enum san_drop drop;

	cut(at, n, more);
	drop = inet_host_rx(&h, &f);
	san_inet_whole_check(h.in);
	return drop;
}

/** Of all fragments with *step* bytes, the one with number *k*. */
static enum san_drop
rx_step(uint32_t k, uint32_t step)
{
	uint32_t left = nb_bytes - k * step;

	return rx(k * step, RTE_MIN(step, left), left > step);
}

/** The fragment is accepted, and nothing else happens. */
static void
rx_waits(uint32_t at, uint32_t n, bool more)
{
	assert_int_equal(rx(at, n, more), SAN_DROP_NONE);
	assert_int_equal(h.r.what, SAN_INET_NOTHING);
}

static void
assert_whole(void)
{
	struct san_ip ip = inet_ip(src);

	assert_int_equal(h.r.what, SAN_INET_UDP);
	assert_memory_equal(&h.r.d.src, &ip, sizeof(ip));
	assert_int_equal(h.r.d.sport, 1000);
	assert_int_equal(h.r.d.dport, 2000);
	assert_int_equal(h.r.d.hops, 33);
	assert_int_equal(h.r.d.tos, 3);
	assert_int_equal(h.r.off, san_wire_ip_is_v4(&ip) ? 42 : 62);
	assert_int_equal(h.r.len, nb_bytes - 8);
	assert_memory_equal(h.payload, bytes + 8, h.r.len);
}

/** Receive all of the datagram in fragments of *step* bytes, in order. */
static void
rx_all(uint32_t step)
{
	for (uint32_t k = 0; k * step < nb_bytes; k++)
		assert_int_equal(rx_step(k, step), SAN_DROP_NONE);
	assert_whole();
}

static uint64_t
nb_lost(void)
{
	return san_inet_drops(h.in)[SAN_DROP_INET_FRAG];
}

/* ---- what becomes whole ---- */

INET_CASE(whole__in_any_order)
{
	static const uint32_t sizes[] = {1473, 2000, 4000, 11000, 40000, 65507};
	uint16_t order[128];
	struct san_prng g;
	uint32_t n, step;

	san_prng_seed(&g, 3);
	for (uint32_t i = 0; i < 200; i++) {
		make(i & 1 ? "fd00::2" : "10.0.0.2", sizes[i % RTE_DIM(sizes)]);
		id++;
		step = 8 * (65 + san_prng_below(&g, 121));
		n = (nb_bytes + step - 1) / step;
		for (uint32_t k = 0; k < n; k++) {
			uint32_t j = san_prng_below(&g, k + 1);

			order[k] = order[j];
			order[j] = (uint16_t)k;
		}
		for (uint32_t k = 0; k < n; k++) {
			assert_int_equal(h.r.what == SAN_INET_UDP, k == 0 && i != 0);
			assert_int_equal(rx_step(order[k], step), SAN_DROP_NONE);
		}
		assert_whole();
	}
	assert_int_equal(nb_lost(), 0);
	assert_int_equal(san_inet_tick(h.in, h.now_ns + SAN_NS_PER_S * 100), SAN_TIME_NEVER);
}

/* The longest datagrams, over an ordinary link. */
INET_CASE(whole__longest)
{
	make("10.0.0.2", 65507);
	rx_all(1480);
	make("fd00::2", 65527);
	rx_all(1448);
}

/* One mbuf for each fragment; the headers are those of an unfragmented packet. */
INET_CASE(whole__as_if_never_cut)
{
	struct san_inet_result r;
	const uint8_t *b;

	for (int v6 = 0; v6 < 2; v6++) {
		make(v6 ? "fd00::2" : "10.0.0.2", 4000);
		rx_waits(PIECE, PIECE, true);
		rx_waits(2 * PIECE, nb_bytes - 2 * PIECE, false);
		cut(0, PIECE, true);
		assert_int_equal(
			san_inet_ip_rx(h.in, test_eal_exact(pool, f.b, f.len), h.now_ns, &r),
			SAN_DROP_NONE);
		assert_int_equal(r.what, SAN_INET_UDP);
		rte_mbuf_sanity_check(r.m, 1);
		assert_int_equal(r.m->nb_segs, 3);
		assert_int_equal(rte_pktmbuf_pkt_len(r.m), (v6 ? 54 : 34) + nb_bytes);
		b = rte_pktmbuf_mtod(r.m, const uint8_t *);
		assert_memory_equal(b, inet_our_mac, 6);
		assert_int_equal(inet_get16(b + (v6 ? 18 : 16)), (v6 ? 0 : 20) + nb_bytes);
		assert_int_equal(b[v6 ? 20 : 23], 17);
		if (!v6) {
			assert_int_equal(inet_get16(b + 20), 0);
			assert_int_equal(inet_sum(b + 14, 20, 0), 0);
		}
		rte_pktmbuf_free(r.m);
	}
}

/* Fragments in several mbufs, segmented anywhere, and with Ethernet padding. */
INET_CASE(whole__in_pieces)
{
	struct rte_mbuf *m;

	for (int v6 = 0; v6 < 2; v6++) {
		make(v6 ? "fd00::2" : "10.0.0.2", 1500);
		for (uint16_t i = 1; i < 100; i++) {
			cut(PIECE, nb_bytes - PIECE, false);
			memset(f.b + f.len, 0xee, 20);
			f.len += 20;
			m = test_eal_exact(pool, f.b, i);
			if (f.len > i)
				rte_pktmbuf_chain(m, test_eal_exact(pool, f.b + i, f.len - i));
			assert_int_equal(inet_host_rx_mbuf(&h, m), SAN_DROP_NONE);
			cut(0, PIECE, true);
			m = test_eal_exact(pool, f.b, i);
			rte_pktmbuf_chain(m, test_eal_exact(pool, f.b + i, f.len - i));
			assert_int_equal(inet_host_rx_mbuf(&h, m), SAN_DROP_NONE);
			assert_whole();
		}
	}
}

/* Source, destination and identification identify a packet; for IPv4 also the protocol. */
INET_CASE(whole__names)
{
	make("10.0.0.2", 2000);
	rx_waits(0, PIECE, true);
	id++;
	rx_waits(PIECE, nb_bytes - PIECE, false);
	id--;
	ip_proto = 1;
	rx_waits(PIECE, nb_bytes - PIECE, false);
	ip_proto = 17;
	make("10.0.0.3", 2000);
	rx_waits(PIECE, nb_bytes - PIECE, false);
	make("10.0.0.2", 2000);
	assert_int_equal(rx(PIECE, nb_bytes - PIECE, false), SAN_DROP_NONE);
	assert_whole();
	/* only the first fragment names the next header (RFC 8200 4.5) */
	make("fd00::2", 2000);
	rx_waits(0, PIECE, true);
	ip_proto = 59;
	assert_int_equal(rx(PIECE, nb_bytes - PIECE, false), SAN_DROP_NONE);
	assert_whole();
}

/* A duplicate is ignored, and does no harm. */
INET_CASE(whole__twice)
{
	make("10.0.0.2", 4000);
	rx_waits(2 * PIECE, nb_bytes - 2 * PIECE, false);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(rx(2 * PIECE, nb_bytes - 2 * PIECE, false), SAN_DROP_INET_FRAG);
		assert_int_equal(rx(0, PIECE, true), i == 0 ? SAN_DROP_NONE : SAN_DROP_INET_FRAG);
	}
	assert_int_equal(rx(PIECE, PIECE, true), SAN_DROP_NONE);
	assert_whole();
	assert_int_equal(nb_lost(), 0);
}

/* ---- what does not ---- */

struct piece {
	uint32_t at, n;
	bool more;
};

struct liar_row {
	const char *what;
	struct piece p[3]; /* the last one is the offending fragment */
};

static const struct liar_row liar_rows[] = {
	{"begins in another", {{0, 800, true}, {800, 800, true}, {792, 1000, true}}},
	{"ends in another", {{800, 800, true}, {3200, 808, false}, {400, 408, true}}},
	{"holds another", {{800, 800, true}, {3200, 808, false}, {0, 1800, true}}},
	{"within another", {{800, 800, true}, {1600, 800, true}, {808, 8, true}}},
	{"as another, but longer", {{0, 800, true}, {1600, 800, true}, {0, 808, true}}},
	{"as another, but shorter", {{0, 800, true}, {1600, 800, true}, {0, 792, true}}},
	{"as the last, but not last", {{3208, 800, false}, {0, 800, true}, {3208, 800, true}}},
	{"as another, but the last", {{0, 800, true}, {3200, 800, true}, {3200, 800, false}}},
	{"another end", {{3208, 800, false}, {0, 800, true}, {3208, 808, false}}},
	{"a further end", {{2408, 800, false}, {0, 800, true}, {3208, 800, false}}},
	{"a nearer end", {{3208, 800, false}, {0, 800, true}, {2400, 800, false}}},
	{"behind the end", {{2400, 800, false}, {0, 800, true}, {3200, 800, true}}},
	{"over the end", {{2400, 800, false}, {0, 800, true}, {2400, 1600, true}}},
	{"ends before what came", {{2400, 800, true}, {0, 800, true}, {1600, 800, false}}},
	{"ends in what came", {{2400, 800, true}, {0, 800, true}, {1600, 1000, false}}},
};

/* They invalidate the whole packet, and later fragments of it while those may arrive. */
INET_CASE(whole__contradicted)
{
	uint64_t lost = 0;

	for (unsigned int i = 0; i < 2 * RTE_DIM(liar_rows); i++) {
		const struct liar_row *r = &liar_rows[i / 2];

		make(i & 1 ? "fd00::2" : "10.0.0.2", 4000);
		for (unsigned int k = 0; k < 3; k++) {
			enum san_drop drop = rx(r->p[k].at, r->p[k].n, r->p[k].more);

			if (drop != (k == 2 ? SAN_DROP_INET_FRAG : SAN_DROP_NONE))
				fail_msg("%s: %u", r->what, k);
		}
		lost += 2;
		assert_int_equal(nb_lost(), lost);
		assert_int_equal(rte_mempool_in_use_count(pool), 0);
		for (unsigned int k = 0; k * 800 < nb_bytes; k++)
			assert_int_equal(rx_step(k, 800), SAN_DROP_INET_FRAG);
		h.now_ns += 61 * SAN_NS_PER_S;
		san_inet_tick(h.in, h.now_ns);
		rx_all(800);
	}
}

static const struct piece bad_rows[] = {
	{8, 0, true},        /* empty */
	{8, 0, false},       /* empty last fragment */
	{0, 1479, true},     /* not a multiple of 8 */
	{65528, 8, false},   /* too long */
	{65528, 1400, true}, /* far too long */
};

INET_CASE(whole__malformed)
{
	for (unsigned int i = 0; i < 2 * RTE_DIM(bad_rows); i++) {
		const struct piece *p = &bad_rows[i / 2];

		make(i & 1 ? "fd00::2" : "10.0.0.2", 2000);
		/* (its bytes do not matter) */
		cut(0, p->n, p->more);
		if (i & 1) {
			inet_set16(f.b + 56, (uint16_t)(p->at | p->more));
		} else {
			inet_set16(f.b + 20, (uint16_t)(p->at / 8 | (p->more ? 0x2000 : 0)));
			seal_ip(20);
		}
		FAIL_IF(inet_host_rx(&h, &f) != SAN_DROP_INET_MALFORMED, "%u %u", i, p->at);
	}
	assert_int_equal(san_inet_tick(h.in, h.now_ns), SAN_TIME_NEVER);
}

/* With the options of the first fragment it would exceed the longest packet. */
INET_CASE(whole__too_long_with_options)
{
	static const uint8_t nops[4] = {1, 1, 1, 1};

	make("10.0.0.2", 65507);
	for (uint32_t at = PIECE; at < nb_bytes; at += PIECE)
		rx_waits(at, RTE_MIN(PIECE, nb_bytes - at), at + PIECE < nb_bytes);
	cut(0, PIECE, true);
	memmove(f.b + 38, f.b + 34, PIECE);
	memcpy(f.b + 34, nops, sizeof(nops));
	f.len += 4;
	f.b[14] = 0x46;
	inet_set16(f.b + 16, (uint16_t)(24 + PIECE));
	seal_ip(24);
	assert_rx(SAN_DROP_NONE);
	assert_int_equal(h.r.what, SAN_INET_NOTHING);
	assert_int_equal(nb_lost(), 45);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

/* ---- IPv6's headers ---- */

/** Put 8 bytes of destination options of kind *kind* at *at* of *f*; *next*: the next header. */
static void
put_options(uint32_t at, uint32_t kind, uint8_t next)
{
	const uint8_t options[8] = {next, 0, 1, 4};

	memmove(f.b + at + 8, f.b + at, f.len - at);
	memcpy(f.b + at, options, sizeof(options));
	f.b[kind] = 60;
	f.len += 8;
	inet_set16(f.b + 18, (uint16_t)(f.len - 54));
}

INET_CASE(whole__v6_alone)
{
	/* an atomic fragment is independent of others with its identification (RFC 6946) */
	make("fd00::2", 100);
	rx_waits(0, 80, true);
	assert_int_equal(rx(0, nb_bytes, false), SAN_DROP_NONE);
	assert_int_equal(h.r.what, SAN_INET_UDP);
	assert_int_equal(h.r.len, 100);
	assert_int_equal(rx(80, nb_bytes - 80, false), SAN_DROP_NONE);
	assert_whole();
	/* once is enough */
	cut(0, nb_bytes, false);
	f.b[54] = 44;
	memmove(f.b + 62, f.b + 54, f.len - 54u);
	f.len += 8;
	inet_set16(f.b + 18, (uint16_t)(f.len - 54));
	assert_rx(SAN_DROP_INET_MALFORMED);
	/* even if it is the result of a reassembly */
	ip_proto = 44;
	rx_waits(0, 80, true);
	assert_int_equal(rx(80, nb_bytes - 80, false), SAN_DROP_INET_MALFORMED);
}

INET_CASE(whole__v6_short)
{
	make("fd00::2", 2000);
	cut(0, 0, true);
	inet_set16(f.b + 18, 7); /* only a part of the header */
	assert_rx(SAN_DROP_INET_MALFORMED);
}

/* Headers in front of it, and behind it; the first fragment has all of them (RFC 7112). */
INET_CASE(whole__v6_headers)
{
	make("fd00::2", 2000);
	cut(0, PIECE, true);
	put_options(54, 20, 44);
	assert_rx(SAN_DROP_NONE);
	assert_int_equal(rx(PIECE, nb_bytes - PIECE, false), SAN_DROP_NONE);
	assert_int_equal(h.r.what, SAN_INET_UDP);
	assert_int_equal(h.r.off, 70);
	assert_memory_equal(h.payload, bytes + 8, 2000);
	/* behind it: 8 bytes of options, then the datagram, 8 bytes later */
	cut(0, PIECE, true);
	put_options(62, 54, 17);
	inet_set16(f.b + 56, 1);
	assert_rx(SAN_DROP_NONE);
	cut(PIECE, nb_bytes - PIECE, false);
	inet_set16(f.b + 56, (uint16_t)(PIECE + 8));
	assert_rx(SAN_DROP_NONE);
	assert_int_equal(h.r.what, SAN_INET_UDP);
	assert_memory_equal(h.payload, bytes + 8, 2000);
	/* nothing behind the options, or only a part of them */
	cut(0, 8, true);
	put_options(62, 54, 17);
	f.len -= 8;
	inet_set16(f.b + 18, (uint16_t)(f.len - 54));
	assert_rx(SAN_DROP_INET_MALFORMED);
	cut(0, 8, true);
	put_options(62, 54, 17);
	f.b[63] = 1;
	assert_rx(SAN_DROP_INET_MALFORMED);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

/* ---- how long, how many ---- */

INET_CASE(whole__given_up)
{
	uint64_t start_ns = h.now_ns;

	make("10.0.0.2", 2000);
	rx_waits(0, PIECE, true);
	make("fd00::2", 2000);
	rx_waits(PIECE, nb_bytes - PIECE, false);
	assert_int_equal(san_inet_tick(h.in, h.now_ns), start_ns + 30 * SAN_NS_PER_S);
	h.now_ns = start_ns + 30 * SAN_NS_PER_S - 1;
	san_inet_tick(h.in, h.now_ns);
	assert_int_equal(rte_mempool_in_use_count(pool), 2);
	h.now_ns++;
	assert_int_equal(san_inet_tick(h.in, h.now_ns), start_ns + 60 * SAN_NS_PER_S);
	san_inet_whole_check(h.in);
	assert_int_equal(nb_lost(), 1);
	h.now_ns = start_ns + 60 * SAN_NS_PER_S;
	assert_int_equal(san_inet_tick(h.in, h.now_ns), SAN_TIME_NEVER);
	assert_int_equal(nb_lost(), 2);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

/*
 * A source that loses many fragments loses its oldest packets: its later ones, and those of other
 * sources, are reassembled.
 */
INET_CASE(whole__share_of_packets)
{
	make("10.0.0.3", 2000);
	rx_waits(0, PIECE, true);
	make("10.0.0.2", 2000);
	for (uint32_t i = 0; i < 100; i++) {
		id = 100 + i;
		rx_waits(0, PIECE, true);
	}
	assert_int_equal(rte_mempool_in_use_count(pool), 1 + NB_PARTIALS / 2);
	assert_int_equal(nb_lost(), 100 - NB_PARTIALS / 2);
	id = 199 - NB_PARTIALS / 2 + 1;
	assert_int_equal(rx(PIECE, nb_bytes - PIECE, false), SAN_DROP_NONE);
	assert_whole();
	id = 1;
	make("10.0.0.3", 2000);
	assert_int_equal(rx(PIECE, nb_bytes - PIECE, false), SAN_DROP_NONE);
	assert_whole();
}

/* The same for fragments. */
INET_CASE(whole__share_of_fragments)
{
	uint32_t i;

	make("10.0.0.2", 40000);
	for (i = 0; i < 100; i++)
		rx_waits(8 + i * 8, 8, true);
	id = 2;
	for (i = 0; i < NB_FRAGS / 2 - 100; i++)
		rx_waits(8 + i * 8, 8, true);
	assert_int_equal(nb_lost(), 0);
	rx_waits(8 + i * 8, 8, true);
	assert_int_equal(nb_lost(), 100);
	/* with so many fragments it cannot be reassembled */
	for (i++; i < NB_FRAGS / 2; i++)
		rx_waits(8 + i * 8, 8, true);
	assert_int_equal(rx(8 + i * 8, 8, true), SAN_DROP_INET_FRAG);
	assert_int_equal(nb_lost(), 100 + NB_FRAGS / 2);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	/* with this number it can */
	id = 3;
	nb_bytes = NB_FRAGS / 2 * 8;
	for (i = 0; i < NB_FRAGS / 2; i++)
		rx(i * 8, 8, i + 1 < NB_FRAGS / 2);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	assert_int_equal(nb_lost(), 100 + NB_FRAGS / 2);
}

/* Whatever the share of a source: no path makes so many fragments of a packet. (RT-36) */
INET_CASE(whole__too_many_pieces)
{
	test_inet_conf();
	conf.max_frags = 8 * INET_NB_FRAGS;
	test_inet_start();
	make("10.0.0.2", 40000);
	for (uint32_t i = INET_NB_FRAGS; i > 0; i--)
		rx_waits(8 + i * 8, 8, true);
	assert_int_equal(nb_lost(), 0);
	assert_int_equal(rx(8, 8, true), SAN_DROP_INET_FRAG);
	assert_int_equal(nb_lost(), INET_NB_FRAGS);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static const char *const many[] = {"10.0.0.20", "10.0.0.21", "10.0.0.22", "10.0.0.23", "fd00::20",
				   "fd00::21", "fd00::22", "fd00::23"};

/* Many lossy sources may use all packets, but not for long. */
INET_CASE(whole__crowded)
{
	for (uint32_t i = 0; i < NB_PARTIALS; i++) {
		make(many[i], 2000);
		rx_waits(0, PIECE, true);
	}
	make("10.0.0.2", 2000);
	assert_int_equal(rx(0, PIECE, true), SAN_DROP_INET_FRAG);
	h.now_ns += MOMENT_NS;
	assert_int_equal(rx(0, PIECE, true), SAN_DROP_INET_FRAG);
	assert_int_equal(nb_lost(), 0);
	h.now_ns++;
	rx_all(PIECE);
	assert_int_equal(nb_lost(), 1);
	/* a source with a packet in progress continues */
	make(many[7], 2000);
	assert_int_equal(rx(PIECE, nb_bytes - PIECE, false), SAN_DROP_NONE);
	assert_whole();
}

/* The same for mbufs; a fragment without room removes its packet. */
INET_CASE(whole__crowded_by_mbufs)
{
	uint32_t i;

	make("10.0.0.2", 2000);
	rx_waits(0, 8, true);
	for (uint32_t k = 0; k < 3; k++) {
		make(many[k], 40000);
		for (i = 0; i < (k == 2 ? 1 : NB_FRAGS / 2 - 1); i++)
			rx_waits(i * 8, 8, true);
	}
	assert_int_equal(rte_mempool_in_use_count(pool), NB_FRAGS);
	assert_int_equal(rx(i * 8, 8, true), SAN_DROP_INET_FRAG);
	assert_int_equal(rte_mempool_in_use_count(pool), NB_FRAGS - 1);
	assert_int_equal(nb_lost(), 1);
	/* the oldest of all is from 10.0.0.2 */
	make(many[3], 2000);
	rx_waits(0, 8, true);
	h.now_ns += MOMENT_NS + 1;
	rx_waits(8, 8, true);
	assert_int_equal(nb_lost(), 2);
	make("10.0.0.2", 2000);
	h.now_ns += MOMENT_NS + 1;
	rx_all(PIECE);
	assert_int_equal(nb_lost(), 2 + NB_FRAGS / 2 - 1);
}

/* A segmented fragment needs an mbuf; without one it is dropped, and the packet stays. */
INET_CASE(whole__no_mbuf)
{
	struct rte_mbuf *m;

	make("10.0.0.2", 2000);
	cut(0, PIECE, true);
	m = test_eal_exact(pool, f.b, 100);
	rte_pktmbuf_chain(m, test_eal_exact(pool, f.b + 100, f.len - 100));
	take_mbufs();
	assert_int_equal(inet_host_rx_mbuf(&h, m), SAN_DROP_NO_MBUF);
	san_inet_whole_check(h.in);
	give_mbufs(UINT32_MAX);
	rx_all(PIECE);
}

/* Without room for it there is no reassembly. */
INET_CASE(whole__not_wanted)
{
	struct san_inet *in;

	conf.max_frags--;
	assert_int_equal(san_inet_create(&conf, &in), -EINVAL);
	san_inet_destroy(h.in);
	conf.max_partial = 0;
	test_inet_start();
	make("10.0.0.2", 2000);
	assert_int_equal(rx(0, PIECE, true), SAN_DROP_INET_UNWANTED);
	make("fd00::2", 2000);
	assert_int_equal(rx(0, PIECE, true), SAN_DROP_INET_UNWANTED);
	assert_int_equal(san_inet_tick(h.in, h.now_ns), SAN_TIME_NEVER);
}
