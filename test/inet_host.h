/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * One host of lib/inet and frames for it, byte by byte, for the tests. Frames are
 * made here without any help of the code under test; checksums are summed the slow way.
 */

#include <rte_byteorder.h>
#include <rte_ether.h>

#include "inet.h"
#include "inet_priv.h"
#include "san_assert.h"
#include "san_time.h"
#include "unit/test_eal.h"

#define FRAME_MAX   2048
#define PAYLOAD_MAX 65536

struct inet_host {
	struct san_inet *in;
	struct rte_mempool *pool;
	uint64_t now_ns;
	struct san_inet_result r; /* of the last frame; what it had of an mbuf is freed */
	struct san_ip learned;
	struct rte_ether_addr learned_mac;
	uint8_t payload[PAYLOAD_MAX]; /* of the last datagram */
};

static const uint8_t inet_our_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t inet_peer_mac[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t inet_all_mac[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/** A frame under construction. */
struct inet_frame {
	uint16_t len;
	uint8_t b[FRAME_MAX];
};

static inline struct san_ip
inet_ip(const char *text)
{
	struct san_inet_addr a;

	SAN_VERIFY(san_inet_addr_parse(text, &a) == 0);
	return a.ip;
}

static inline void
inet_host_conf(struct rte_mempool *pool, struct san_inet_conf *conf)
{
	san_inet_conf_default(conf);
	memcpy(conf->mac.addr_bytes, inet_our_mac, sizeof(inet_our_mac));
	conf->pool = pool;
	conf->max_out = 128;
	conf->nb_addrs = 2;
	SAN_VERIFY(san_inet_addr_parse("10.0.0.1/24", &conf->addrs[0]) == 0);
	SAN_VERIFY(san_inet_addr_parse("fd00::1/64", &conf->addrs[1]) == 0);
}

static inline void
inet_host_init(struct inet_host *h, struct rte_mempool *pool, const struct san_inet_conf *conf)
{
	memset(h, 0, sizeof(*h));
	h->pool = pool;
	h->now_ns = 5 * SAN_NS_PER_S;
	SAN_VERIFY(san_inet_create(conf, &h->in) == 0);
}

/** Host *h* receives *m*. */
static inline enum san_drop
inet_host_rx_mbuf(struct inet_host *h, struct rte_mbuf *m)
{
	const struct san_inet_result *r = &h->r;
	enum san_drop drop;
	const void *data;

	drop = san_inet_ip_rx(h->in, m, h->now_ns, &h->r);
	memset(&h->learned, 0, sizeof(h->learned));
	if (r->what == SAN_INET_LEARNED) {
		h->learned = r->ip;
		h->learned_mac = r->mac;
	}
	SAN_VERIFY((r->what == SAN_INET_UDP) == (r->m != NULL));
	if (r->what == SAN_INET_UDP) {
		SAN_VERIFY(r->len <= PAYLOAD_MAX);
		data = h->payload;
		if (r->len != 0)
			data = rte_pktmbuf_read(r->m, r->off, r->len, h->payload);
		SAN_VERIFY(data != NULL);
		if (data != h->payload)
			memcpy(h->payload, data, r->len);
		rte_pktmbuf_free(r->m);
	}
	return drop;
}

/** Host *h* receives *f*, from memory of exactly its size. */
static inline enum san_drop
inet_host_rx(struct inet_host *h, const struct inet_frame *f)
{
	return inet_host_rx_mbuf(h, test_eal_exact(h->pool, f->b, f->len));
}

/** The next frame that *h* sends; false: none. */
static inline bool
inet_host_tx(struct inet_host *h, struct inet_frame *f)
{
	struct rte_mbuf *m;
	const void *data;

	if (san_inet_tx_burst(h->in, &m, 1) == 0)
		return false;
	f->len = (uint16_t)rte_pktmbuf_pkt_len(m);
	SAN_VERIFY(f->len <= FRAME_MAX);
	data = rte_pktmbuf_read(m, 0, f->len, f->b);
	if (data != f->b)
		memcpy(f->b, data, f->len);
	rte_pktmbuf_free(m);
	return true;
}

/* ---- building ---- */

static inline void
inet_put(struct inet_frame *f, const void *data, uint16_t n)
{
	SAN_VERIFY(f->len + n <= FRAME_MAX);
	memcpy(f->b + f->len, data, n);
	f->len += n;
}

static inline void
inet_put8(struct inet_frame *f, uint8_t v)
{
	inet_put(f, &v, 1);
}

static inline void
inet_put16(struct inet_frame *f, uint16_t v)
{
	inet_put8(f, (uint8_t)(v >> 8));
	inet_put8(f, (uint8_t)v);
}

static inline uint16_t
inet_get16(const uint8_t *b)
{
	return (uint16_t)(b[0] << 8 | b[1]);
}

static inline void
inet_set16(uint8_t *b, uint16_t v)
{
	b[0] = (uint8_t)(v >> 8);
	b[1] = (uint8_t)v;
}

static inline void
inet_put_eth(struct inet_frame *f, const uint8_t dst[6], const uint8_t src[6], uint16_t type)
{
	f->len = 0;
	inet_put(f, dst, 6);
	inet_put(f, src, 6);
	inet_put16(f, type);
}

/** Internet checksum, the slow way. */
static inline uint16_t
inet_sum(const uint8_t *b, uint32_t n, uint32_t start)
{
	uint32_t sum = start;

	for (uint32_t i = 0; i < n; i++)
		sum += i & 1 ? b[i] : (uint32_t)b[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static inline void
inet_make_arp(struct inet_frame *f, uint16_t op, const uint8_t sha[6], const char *spa,
	      const char *tpa)
{
	struct san_ip s = inet_ip(spa), t = inet_ip(tpa);
	const uint8_t zero[6] = {0};

	inet_put_eth(f, op == 1 ? inet_all_mac : inet_our_mac, sha, 0x0806);
	inet_put16(f, 1);
	inet_put16(f, 0x0800);
	inet_put8(f, 6);
	inet_put8(f, 4);
	inet_put16(f, op);
	inet_put(f, sha, 6);
	inet_put(f, s.b + 12, 4);
	inet_put(f, op == 1 ? zero : inet_our_mac, 6);
	inet_put(f, t.b + 12, 4);
}

/** Lengths and checksums of an IPv4 frame with an ICMP message. */
static inline void
inet_seal_v4(struct inet_frame *f)
{
	uint8_t *ip = f->b + 14, *icmp = ip + 20;
	uint16_t len = (uint16_t)(f->len - 14);

	inet_set16(ip + 2, len);
	inet_set16(ip + 10, 0);
	inet_set16(ip + 10, inet_sum(ip, 20, 0));
	inet_set16(icmp + 2, 0);
	inet_set16(icmp + 2, inet_sum(icmp, len - 20u, 0));
}

static inline uint32_t
inet_phdr_v6(const uint8_t *ip)
{
	uint32_t sum = 58u + inet_get16(ip + 4);

	for (uint32_t i = 8; i < 40; i += 2)
		sum += inet_get16(ip + i);
	return sum;
}

static inline void
inet_seal_v6(struct inet_frame *f)
{
	uint8_t *ip = f->b + 14, *icmp = ip + 40;
	uint16_t len = (uint16_t)(f->len - 54);

	inet_set16(ip + 4, len);
	inet_set16(icmp + 2, 0);
	inet_set16(icmp + 2, inet_sum(icmp, len, inet_phdr_v6(ip)));
}

static inline bool
inet_is_sum_right_v6(const struct inet_frame *f)
{
	return inet_sum(f->b + 54, f->len - 54u, inet_phdr_v6(f->b + 14)) == 0;
}

/** Ethernet and IPv4 header; length and checksum are to be set. */
static inline void
inet_put_v4(struct inet_frame *f, const char *src, const char *dst, uint8_t proto)
{
	static const uint8_t head[9] = {0x45, 3, 0, 0, 0x77, 0x77, 0x40, 0, 33};
	struct san_ip s = inet_ip(src), d = inet_ip(dst);

	inet_put_eth(f, inet_our_mac, inet_peer_mac, 0x0800);
	inet_put(f, head, sizeof(head));
	inet_put8(f, proto);
	inet_put16(f, 0);
	inet_put(f, s.b + 12, 4);
	inet_put(f, d.b + 12, 4);
}

/** An echo request with *n* bytes of data, which are multiples of *factor*. */
static inline void
inet_put_echo(struct inet_frame *f, uint8_t type, uint16_t n, uint16_t factor)
{
	const uint8_t head[8] = {type, 0, 0, 0, 0x12, 0x34, 0, 7};

	inet_put(f, head, sizeof(head));
	for (uint16_t i = 0; i < n; i++)
		inet_put8(f, (uint8_t)(i * factor));
}

static inline void
inet_make_echo_v4(struct inet_frame *f, const char *src, const char *dst, uint16_t n)
{
	inet_put_v4(f, src, dst, 1);
	inet_put_echo(f, 8, n, 7);
	inet_seal_v4(f);
}

static inline void
inet_put_v6(struct inet_frame *f, const char *src, const char *dst, uint8_t hops)
{
	struct san_ip s = inet_ip(src), d = inet_ip(dst);
	uint8_t group[6] = {0x33, 0x33, d.b[12], d.b[13], d.b[14], d.b[15]};

	inet_put_eth(f, d.b[0] == 0xff ? group : inet_our_mac, inet_peer_mac, 0x86dd);
	inet_put16(f, 0x6030);
	inet_put16(f, 0x1234);
	inet_put16(f, 0);
	inet_put8(f, 58);
	inet_put8(f, hops);
	inet_put(f, s.b, 16);
	inet_put(f, d.b, 16);
}

static inline void
inet_make_echo_v6(struct inet_frame *f, const char *src, const char *dst, uint16_t n)
{
	inet_put_v6(f, src, dst, 33);
	inet_put_echo(f, 128, n, 5);
	inet_seal_v6(f);
}

/** *type*: 135 or 136; *opt*: 0 = none, else that option with *mac*. */
static inline void
inet_make_nd(struct inet_frame *f, uint8_t type, const char *src, const char *dst,
	     const char *target, uint8_t flags, uint8_t opt, const uint8_t mac[6])
{
	struct san_ip t = inet_ip(target);

	inet_put_v6(f, src, dst, 255);
	inet_put8(f, type);
	inet_put8(f, 0);
	inet_put16(f, 0);
	inet_put8(f, flags);
	inet_put(f, "\0\0", 3);
	inet_put(f, t.b, 16);
	if (opt != 0) {
		inet_put8(f, opt);
		inet_put8(f, 1);
		inet_put(f, mac, 6);
	}
	inet_seal_v6(f);
}

/** Ethernet and IP header of either family, then a UDP header; its length and sum are to be set. */
static inline void
inet_put_udp(struct inet_frame *f, const char *src, const char *dst, uint16_t sport, uint16_t dport)
{
	struct san_ip d = inet_ip(dst);

	if (san_wire_ip_is_v4(&d)) {
		inet_put_v4(f, src, dst, 17);
	} else {
		inet_put_v6(f, src, dst, 33);
		f->b[20] = 17;
	}
	inet_put16(f, sport);
	inet_put16(f, dport);
	inet_put(f, "\0\0\0", 4);
}

/** Sum of a UDP datagram of *n* bytes at *udp* and the pseudo header of *ip*; 0: right. */
static inline uint16_t
inet_sum_udp(const uint8_t *ip, const uint8_t *udp, uint32_t n)
{
	bool v4 = ip[0] >> 4 == 4;
	uint32_t sum = 17 + n;

	for (uint32_t i = v4 ? 12 : 8; i < (v4 ? 20u : 40u); i += 2)
		sum += inet_get16(ip + i);
	return inet_sum(udp, n, sum);
}

static inline uint8_t *
inet_udp_of(struct inet_frame *f)
{
	return f->b + (f->b[12] == 0x08 ? 34 : 54);
}

/** Lengths and checksums of a UDP frame without options. */
static inline void
inet_seal_udp(struct inet_frame *f)
{
	uint8_t *ip = f->b + 14, *udp = inet_udp_of(f);
	uint16_t n = (uint16_t)(f->b + f->len - udp);

	if (ip[0] >> 4 == 4) {
		inet_set16(ip + 2, (uint16_t)(f->len - 14));
		inet_set16(ip + 10, 0);
		inet_set16(ip + 10, inet_sum(ip, 20, 0));
	} else {
		inet_set16(ip + 4, n);
	}
	inet_set16(udp + 4, n);
	inet_set16(udp + 6, 0);
	inet_set16(udp + 6, inet_sum_udp(ip, udp, n));
}

/** A datagram of *n* bytes from port 1000 to 2000. */
static inline void
inet_make_udp(struct inet_frame *f, const char *src, const char *dst, uint16_t n)
{
	inet_put_udp(f, src, dst, 1000, 2000);
	for (uint16_t i = 0; i < n; i++)
		inet_put8(f, (uint8_t)(i * 3));
	inet_seal_udp(f);
}
