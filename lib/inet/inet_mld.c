/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * MLDv2 for hosts (RFC 3810), and MLDv1 (RFC 2710) while a router on the link uses it. Reports come
 * from a link-local address; without one, from the unspecified address (RFC 3590). (UDP-5)
 */

#include <assert.h>

#include <rte_common.h>

#include "inet_priv.h"
#include "san_time.h"

#define QUERY     130
#define REPORT_V1 131
#define DONE_V1   132
#define REPORT_V2 143
#define QUERY_V1  24u /* bytes */
#define QUERY_V2  28u
#define OLDER_NS  (260 * SAN_NS_PER_S) /* as long an older router is remembered */
#define EXT_LEN   8u

struct mld_v1 {
	uint8_t type;
	uint8_t code;
	rte_be16_t cksum;
	uint8_t delay[4];
	uint8_t group[16];
} __rte_packed;
static_assert(sizeof(struct mld_v1) == QUERY_V1, "MLDv1 message");

/** A report with one record. */
struct mld_v2 {
	uint8_t type;
	uint8_t code;
	rte_be16_t cksum;
	uint8_t rsvd[3];
	uint8_t nb_records;
	uint8_t record;
	uint8_t rest[3];
	uint8_t group[16];
} __rte_packed;
static_assert(sizeof(struct mld_v2) == 28, "MLDv2 report");

/*
 * ---- sending ----
 */

static void
mld_send_msg(struct san_inet *in, const void *msg, uint32_t len, const struct san_ip *dst)
{
	static const uint8_t router_alert[EXT_LEN] = {INET_PROTO_V6, 0, 5, 2, 0, 0, 1, 0};
	uint32_t off = INET_ETH_LEN + INET_V6_LEN + EXT_LEN;
	const struct san_inet_addr *a = in->conf.addrs, *end = a + in->conf.nb_addrs;
	struct san_ip src = {0}; /* unless we have a link-local address */
	struct rte_ether_hdr *eth;
	struct rte_ipv6_hdr *ip;
	struct rte_mbuf *m;
	uint16_t sum;

	while (a < end && (a->ip.b[0] != 0xfe || (a->ip.b[1] & 0xc0) != 0x80))
		a++;
	if (a < end)
		src = a->ip;
	m = san_inet_out_frame(in, RTE_BE16(RTE_ETHER_TYPE_IPV6), off + len - INET_ETH_LEN);
	if (m == NULL)
		return; /* reports are repeated, or queried */
	eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	san_inet_route_group_mac(dst, &eth->dst_addr);
	ip = (struct rte_ipv6_hdr *)(eth + 1);
	san_inet_ip_put(ip, &(struct inet_ip_out){
				    .src = &src,
				    .dst = dst,
				    .len = EXT_LEN + len,
				    .proto = 0, /* the router alert */
				    .hops = 1,
			    });
	memcpy(ip + 1, router_alert, EXT_LEN);
	memcpy((uint8_t *)eth + off, msg, len);
	sum = (uint16_t)~san_inet_ip_cksum(m, off, len, &src, dst, INET_PROTO_V6);
	memcpy((uint8_t *)eth + off + 2, &sum, sizeof(sum));
	san_inet_out_add(in, m);
}

void
san_inet_mld_report(struct san_inet *in, const struct san_ip *group, enum inet_report what,
		    uint64_t now_ns)
{
	static const struct san_ip routers = {{0xff, 2, [15] = 2}};
	static const struct san_ip routers_v2 = {{0xff, 2, [15] = 0x16}};
	struct mld_v2 v2 = {.type = REPORT_V2, .nb_records = 1, .record = (uint8_t)what};
	struct mld_v1 v1 = {.type = what == INET_REPORT_LEAVE ? DONE_V1 : REPORT_V1};

	if (now_ns < in->mld_older_ns) {
		memcpy(v1.group, group->b, sizeof(v1.group));
		mld_send_msg(in, &v1, sizeof(v1), what == INET_REPORT_LEAVE ? &routers : group);
		return;
	}
	memcpy(v2.group, group->b, sizeof(v2.group));
	mld_send_msg(in, &v2, sizeof(v2), &routers_v2);
}

/*
 * ---- receiving ----
 */

enum san_drop
san_inet_mld_rx(struct san_inet *in, const struct inet_rx *rx)
{
	struct mld_v1 msg;
	struct san_ip group;
	uint32_t ms;
	bool all;

	if (rx->len < sizeof(msg) || !san_inet_ip_copy(rx->m, rx->off, sizeof(msg), &msg) ||
	    rx->hops != 1 || rx->src.b[0] != 0xfe || (rx->src.b[1] & 0xc0) != 0x80)
		return SAN_DROP_INET_MALFORMED;
	memcpy(group.b, msg.group, sizeof(group.b));
	all = san_inet_is_zero(&group);
	if (!all && !san_inet_is_group(&group))
		return SAN_DROP_INET_MALFORMED;
	if (msg.type == REPORT_V1) {
		/* The answer of one member is enough. */
		if (rx->now_ns < in->mld_older_ns)
			san_inet_group_on_report(in, &group);
		return SAN_DROP_NONE;
	}
	if (msg.type != QUERY)
		return SAN_DROP_INET_UNWANTED;
	if (rx->len != QUERY_V1 && rx->len < QUERY_V2)
		return SAN_DROP_INET_MALFORMED;
	if (rx->len == QUERY_V1)
		in->mld_older_ns = rx->now_ns + OLDER_NS;
	ms = (uint32_t)msg.delay[0] << 8 | msg.delay[1];
	if (ms >= 32768) /* long times are coded as mantissa and exponent */
		ms = ((ms & 0x0fffu) | 0x1000u) << ((ms >> 12 & 7) + 3);
	san_inet_group_on_query(in, &group, all, ms, rx->now_ns);
	return SAN_DROP_NONE;
}
