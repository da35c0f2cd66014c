/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any frames into ARP, ND, ICMP and UDP, mixed with questions, datagrams and time. (RT-31, UDP-3)
 *
 * Input: records. First byte: bit 7 = a frame follows (16 bits of length, in two
 * bytes, then the frame; bits 0 to 2 say what is made right: MAC and addresses, checksums,
 * hop limit); else by bits 5 and 6 a question (0), something to do (3: see act()), or
 * milliseconds (in units of 100) that pass.
 *
 * Checked: no access outside the frame, the same answer however it is cut into
 * segments, only well-formed frames go out, and no mbuf is lost.
 */

#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "fuzz.h"
#include "inet.h"
#include "san_assert.h"
#include "san_time.h"
#include "unit/test_eal.h"

#define FRAME_MAX 2048
#define NB_NEIGH  8
#define ETH_LEN   14u
#define MTU       1500

enum fix {
	FIX_ADDR = 0x01,
	FIX_CKSUM = 0x02,
	FIX_HOPS = 0x04,
};

static struct rte_mempool *pool;
static struct san_inet *nets[2]; /* the same twice: one gets frames whole, one in pieces */
static uint64_t now_ns;
static const struct rte_ether_addr our_mac = {{2, 0, 0, 0, 0, 1}};

static void
setup(void)
{
	struct san_inet_conf conf;

	if (pool == NULL)
		pool = test_eal_pool("fuzz_inet", 511, FRAME_MAX);
	now_ns = 1000;
	san_inet_conf_default(&conf);
	conf.mac = our_mac;
	conf.max_neighbours = NB_NEIGH;
	conf.pool = pool;
	conf.nb_addrs = 3;
	SAN_VERIFY(san_inet_addr_parse("10.0.0.1/24", &conf.addrs[0]) == 0);
	SAN_VERIFY(san_inet_addr_parse("fd00::1/64", &conf.addrs[1]) == 0);
	SAN_VERIFY(san_inet_addr_parse("fe80::1/64", &conf.addrs[2]) == 0);
	SAN_VERIFY(san_inet_create(&conf, &nets[0]) == 0);
	SAN_VERIFY(san_inet_create(&conf, &nets[1]) == 0);
}

/* ---- make right ---- */

/** Sum of *n* bytes at *b* with the pseudo header; 0xffff: right. */
static uint16_t
sum_with(const uint8_t *ip, uint8_t proto, const uint8_t *b, uint32_t n)
{
	uint32_t at = ip[0] >> 4 == 4 ? 12 : 8;
	uint32_t sum = rte_raw_cksum(b, n) + (uint32_t)rte_cpu_to_be_16(proto) +
		rte_cpu_to_be_16((uint16_t)n) + rte_raw_cksum(ip + at, at == 12 ? 8 : 32);

	return __rte_raw_cksum_reduce(sum);
}

static void
fix_udp(const uint8_t *ip, uint8_t *b, uint32_t len)
{
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)b;

	udp->dgram_len = rte_cpu_to_be_16((uint16_t)len);
	udp->dgram_cksum = 0;
	udp->dgram_cksum = (uint16_t)~sum_with(ip, IPPROTO_UDP, b, len);
}

static void
fix_v4(uint8_t *ip, uint32_t len, uint8_t fix)
{
	static const uint8_t us[4] = {10, 0, 0, 1};
	struct rte_ipv4_hdr *h = (struct rte_ipv4_hdr *)ip;

	if (len < sizeof(*h) + sizeof(struct rte_icmp_hdr))
		return;
	if (fix & FIX_ADDR)
		memcpy(&h->dst_addr, us, sizeof(us));
	if (fix & FIX_HOPS)
		h->total_length = rte_cpu_to_be_16((uint16_t)len);
	if (fix & FIX_CKSUM) {
		struct rte_icmp_hdr *icmp = (struct rte_icmp_hdr *)(h + 1);

		h->hdr_checksum = 0;
		h->hdr_checksum = rte_ipv4_cksum(h);
		if (h->next_proto_id == IPPROTO_UDP) {
			fix_udp(ip, ip + sizeof(*h), len - (uint32_t)sizeof(*h));
			return;
		}
		icmp->icmp_cksum = 0;
		icmp->icmp_cksum = (uint16_t)~rte_raw_cksum(icmp, len - sizeof(*h));
	}
}

static void
fix_v6(uint8_t *ip, uint32_t len, uint8_t fix)
{
	static const uint8_t us[16] = {0xfd, [15] = 1};
	struct rte_ipv6_hdr *h = (struct rte_ipv6_hdr *)ip;
	uint32_t sum;

	if (len < sizeof(*h) + sizeof(struct rte_icmp_hdr))
		return;
	if (fix & FIX_ADDR) {
		memcpy(&h->dst_addr, us, sizeof(us));
		/* a neighbour solicitation asks for us */
		if (len >= sizeof(*h) + 24 && ip[sizeof(*h)] == 135)
			memcpy(ip + sizeof(*h) + 8, us, sizeof(us));
	}
	if (fix & FIX_HOPS) {
		h->hop_limits = 255;
		h->payload_len = rte_cpu_to_be_16((uint16_t)(len - sizeof(*h)));
	}
	if ((fix & FIX_CKSUM) && h->proto == IPPROTO_UDP)
		fix_udp(ip, ip + sizeof(*h), len - (uint32_t)sizeof(*h));
	/* (the helper's shift is undefined for protocols above 127) */
	if ((fix & FIX_CKSUM) && h->proto == 58) {
		struct rte_icmp_hdr *icmp = (struct rte_icmp_hdr *)(h + 1);

		icmp->icmp_cksum = 0;
		sum = rte_raw_cksum(icmp, len - sizeof(*h)) + (uint32_t)rte_ipv6_phdr_cksum(h, 0);
		icmp->icmp_cksum = (uint16_t) ~((sum & 0xffff) + (sum >> 16));
	}
}

static void
fix_frame(uint8_t *frame, uint32_t len, uint8_t fix)
{
	static const uint8_t us[4] = {10, 0, 0, 1};
	uint16_t type;

	if (len < ETH_LEN + 28)
		return;
	type = (uint16_t)(frame[12] << 8 | frame[13]);
	if (fix & FIX_ADDR)
		memcpy(frame, &our_mac, sizeof(our_mac));
	if (type == RTE_ETHER_TYPE_IPV4)
		fix_v4(frame + ETH_LEN, len - ETH_LEN, fix);
	else if (type == RTE_ETHER_TYPE_IPV6)
		fix_v6(frame + ETH_LEN, len - ETH_LEN, fix);
	else if (type == RTE_ETHER_TYPE_ARP && (fix & FIX_ADDR))
		memcpy(frame + ETH_LEN + 24, us, sizeof(us));
}

/* ---- what goes out ---- */

static void
check_sum(const struct rte_mbuf *m, const uint8_t *ip, uint32_t off, uint8_t proto)
{
	uint32_t len = rte_pktmbuf_pkt_len(m) - off;
	uint8_t copy[FRAME_MAX];
	uint16_t sum;

	SAN_VERIFY(len <= sizeof(copy));
	if (proto == IPPROTO_UDP || ip[0] >> 4 == 6)
		sum = sum_with(ip, proto, rte_pktmbuf_read(m, off, len, copy), len);
	else
		SAN_VERIFY(rte_raw_cksum_mbuf(m, off, len, &sum) == 0);
	SAN_VERIFY(sum == 0xffff);
}

static void
check_sent(const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t len = rte_pktmbuf_pkt_len(m);
	const struct rte_ipv4_hdr *v4 = (const struct rte_ipv4_hdr *)(frame + ETH_LEN);
	const struct rte_ipv6_hdr *v6 = (const struct rte_ipv6_hdr *)(frame + ETH_LEN);
	uint16_t type;

	rte_mbuf_sanity_check(m, 1);
	SAN_VERIFY(len >= ETH_LEN + 28 && rte_pktmbuf_data_len(m) >= ETH_LEN + 28);
	SAN_VERIFY(memcmp(frame + 6, &our_mac, sizeof(our_mac)) == 0);
	type = (uint16_t)(frame[12] << 8 | frame[13]);
	if (type == RTE_ETHER_TYPE_IPV4) {
		SAN_VERIFY(rte_be_to_cpu_16(v4->total_length) == len - ETH_LEN);
		SAN_VERIFY(rte_ipv4_cksum(v4) == 0 && len <= ETH_LEN + MTU);
		if ((v4->fragment_offset & ~RTE_BE16(RTE_IPV4_HDR_DF_FLAG)) == 0)
			check_sum(m, frame + ETH_LEN, ETH_LEN + rte_ipv4_hdr_len(v4),
				  v4->next_proto_id);
	} else if (type == RTE_ETHER_TYPE_IPV6) {
		SAN_VERIFY(rte_be_to_cpu_16(v6->payload_len) == len - ETH_LEN - 40);
		SAN_VERIFY(len <= ETH_LEN + MTU);
		if (v6->proto == 0) /* router alert */
			check_sum(m, frame + ETH_LEN, ETH_LEN + 48, frame[ETH_LEN + 40]);
		else if (v6->proto != IPPROTO_FRAGMENT)
			check_sum(m, frame + ETH_LEN, ETH_LEN + 40, v6->proto);
	} else {
		SAN_VERIFY(type == RTE_ETHER_TYPE_ARP);
	}
}

static void
take_sent(void)
{
	struct rte_mbuf *a[4], *b[4];
	uint16_t n;

	do {
		n = san_inet_tx_burst(nets[0], a, RTE_DIM(a));
		SAN_VERIFY(san_inet_tx_burst(nets[1], b, RTE_DIM(b)) == n);
		for (uint16_t i = 0; i < n; i++) {
			check_sent(a[i]);
			check_sent(b[i]);
			SAN_VERIFY(rte_pktmbuf_pkt_len(a[i]) == rte_pktmbuf_pkt_len(b[i]));
			rte_pktmbuf_free(a[i]);
			rte_pktmbuf_free(b[i]);
		}
	} while (n != 0);
}

/* ---- what comes in ---- */

/** The frame in two pieces, none of them longer than what it holds. */
static struct rte_mbuf *
in_pieces(const uint8_t *frame, uint16_t len, uint16_t cut)
{
	struct rte_mbuf *m = test_eal_exact(pool, frame, cut);

	SAN_VERIFY(rte_pktmbuf_chain(m, test_eal_exact(pool, frame + cut, len - cut)) == 0);
	return m;
}

/** Nobody takes it. */
static void
give_back(struct san_inet *in, const struct san_inet_result *r)
{
	SAN_VERIFY((r->what == SAN_INET_UDP) == (r->m != NULL));
	if (r->m == NULL)
		return;
	SAN_VERIFY(r->off + r->len <= rte_pktmbuf_pkt_len(r->m));
	san_inet_error_refuse(in, r, now_ns);
	rte_pktmbuf_free(r->m);
}

static void
rx_frame(uint8_t *frame, uint16_t len, uint8_t fix)
{
	struct san_inet_result r[2];
	enum san_drop drop;

	fix_frame(frame, len, fix);
	drop = san_inet_ip_rx(nets[0], test_eal_exact(pool, frame, len), now_ns, &r[0]);
	SAN_VERIFY(drop < SAN_DROP_MAX && (drop == SAN_DROP_NONE || r[0].what == 0));
	SAN_VERIFY(san_inet_ip_rx(nets[1], in_pieces(frame, len, (uint16_t)(len / 2)), now_ns,
				  &r[1]) == drop);
	SAN_VERIFY(r[0].what == r[1].what && r[0].len == r[1].len);
	SAN_VERIFY(san_wire_ip_eq(&r[0].ip, &r[1].ip) && san_wire_ip_eq(&r[0].d.src, &r[1].d.src));
	give_back(nets[0], &r[0]);
	give_back(nets[1], &r[1]);
	take_sent();
}

/** Bit 4: IPv6. Bits 2, 3: send to a neighbour, send to a group, join it, leave it. */
static void
act(uint8_t what)
{
	static uint8_t data[4000];
	struct iovec iov = {.iov_base = data, .iov_len = (what & 3u) * 1111};
	struct san_inet_dgram d = {.sport = 5, .dport = 6, .tos = what};
	struct san_inet_addr a;
	int rc = 0;

	SAN_VERIFY(san_inet_addr_parse(what & 0x10 ? "fd00::2" : "10.0.0.2", &a) == 0);
	if (what & 0x0c)
		SAN_VERIFY(san_inet_addr_parse(what & 0x10 ? "ff02::77" : "224.0.0.77", &a) == 0);
	a.ip.b[15] += what & 3;
	d.dst = a.ip;
	for (uint32_t i = 0; i < RTE_DIM(nets); i++) {
		int old = rc;

		if ((what & 0x0c) == 0x08)
			rc = san_inet_group_join(nets[i], &a.ip, now_ns);
		else if ((what & 0x0c) == 0x0c)
			rc = san_inet_group_leave(nets[i], &a.ip, now_ns);
		else
			rc = san_inet_udp_send(nets[i], &d, &iov, 1, now_ns);
		SAN_VERIFY(i == 0 || rc == old);
	}
	take_sent();
}

static void
ask(uint8_t what)
{
	struct san_inet_addr a;
	struct rte_ether_addr mac;
	int rc;

	SAN_VERIFY(san_inet_addr_parse(what & 0x10 ? "fd00::2" : "10.0.0.2", &a) == 0);
	a.ip.b[15] = what & 0x0f;
	rc = san_inet_route_resolve(nets[0], &a.ip, false, now_ns, &mac);
	SAN_VERIFY(san_inet_route_resolve(nets[1], &a.ip, false, now_ns, &mac) == rc);
	take_sent();
}

static void
pass(uint64_t ms)
{
	now_ns += ms * SAN_NS_PER_MS;
	SAN_VERIFY(san_inet_tick(nets[0], now_ns) > now_ns);
	SAN_VERIFY(san_inet_tick(nets[1], now_ns) > now_ns);
	take_sent();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t frame[FRAME_MAX];

	setup();
	while (size != 0) {
		uint8_t what = *data++;

		size--;
		if (what & 0x80) {
			size_t len;

			if (size < 2)
				break;
			len = (size_t)data[0] << 8 | data[1];
			data += 2;
			size -= 2;
			len = RTE_MIN(RTE_MIN(len, size), (size_t)FRAME_MAX);
			memcpy(frame, data, len);
			rx_frame(frame, (uint16_t)len, what);
			data += len;
			size -= len;
		} else if ((what & 0x60) == 0x60) {
			act(what);
		} else if (what & 0x60) {
			pass((uint64_t)(what & 0x1f) * 100);
		} else {
			ask(what);
		}
	}
	pass(100000);
	san_inet_destroy(nets[0]);
	san_inet_destroy(nets[1]);
	SAN_VERIFY(rte_mempool_in_use_count(pool) == 0);
	return 0;
}
