/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * IGMPv3 for hosts (RFC 3376), and IGMPv2 (RFC 2236) while a router on the link uses it. We accept
 * every source of a group, so a record is only the address of the group. (UDP-5)
 */

#include <rte_common.h>

#include "inet_priv.h"
#include "san_time.h"

#define QUERY     0x11
#define REPORT_V2 0x16
#define LEAVE_V2  0x17
#define REPORT_V3 0x22
#define QUERY_V3  12                   /* least bytes of a query */
#define TENTH_MS  100                  /* unit of response times */
#define V1_MS     10000                /* for a query without a response time */
#define OLDER_NS  (260 * SAN_NS_PER_S) /* as long an older router is remembered */
#define OPT_LEN   4u

struct igmp_msg {
	uint8_t type;
	uint8_t code; /* query: response time */
	rte_be16_t cksum;
	uint8_t group[4]; /* v3 report: 2 bytes reserved, number of records */
	/* v3 report: its only record */
	uint8_t record;
	uint8_t rest[3];
	uint8_t record_group[4];
} __rte_packed;
#define V2_LEN 8u

/* ---- out ---- */

static void
igmp_send_msg(struct san_inet *in, const struct igmp_msg *msg, uint32_t len,
	      const struct san_ip *dst)
{
	static const uint8_t router_alert[OPT_LEN] = {0x94, 4, 0, 0};
	const struct san_inet_addr *src;
	struct rte_ether_hdr *eth;
	struct rte_mbuf *m;
	struct rte_ipv4_hdr *ip;
	uint8_t *igmp;
	uint16_t sum;
	bool on_link;

	src = san_inet_route_best_source(in, dst, &on_link);
	if (src == NULL)
		return;
	m = san_inet_out_frame(in, RTE_BE16(RTE_ETHER_TYPE_IPV4), INET_V4_LEN + OPT_LEN + len);
	if (m == NULL)
		return; /* reports are repeated, or queried */
	eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	san_inet_route_group_mac(dst, &eth->dst_addr);
	ip = (struct rte_ipv4_hdr *)(eth + 1);
	san_inet_ip_put(ip, &(struct inet_ip_out){
				    .src = &src->ip,
				    .dst = dst,
				    .len = OPT_LEN + len,
				    .proto = INET_PROTO_IGMP,
				    .hops = 1,
				    .tos = INET_TOS_CONTROL,
				    .id = (uint16_t)san_inet_ip_id(in, dst),
			    });
	ip->version_ihl += OPT_LEN / 4;
	memcpy(ip + 1, router_alert, OPT_LEN);
	ip->hdr_checksum = 0;
	ip->hdr_checksum = (uint16_t)~rte_raw_cksum(ip, INET_V4_LEN + OPT_LEN);
	igmp = (uint8_t *)(ip + 1) + OPT_LEN;
	memcpy(igmp, msg, len);
	sum = (uint16_t)~rte_raw_cksum(igmp, len);
	memcpy(igmp + offsetof(struct igmp_msg, cksum), &sum, sizeof(sum));
	san_inet_out_add(in, m);
}

void
san_inet_igmp_report(struct san_inet *in, const struct san_ip *group, enum inet_report what,
		     uint64_t now_ns)
{
	struct igmp_msg msg = {.type = REPORT_V3, .record = (uint8_t)what};
	struct san_ip dst;

	if (now_ns < in->igmp_older_ns) {
		msg.type = what == INET_REPORT_LEAVE ? LEAVE_V2 : REPORT_V2;
		memcpy(msg.group, san_inet_raw(group), sizeof(msg.group));
		san_inet_from_v4(&dst, (const uint8_t[4]){224, 0, 0, 2});
		igmp_send_msg(in, &msg, V2_LEN, what == INET_REPORT_LEAVE ? &dst : group);
		return;
	}
	msg.group[3] = 1;
	memcpy(msg.record_group, san_inet_raw(group), sizeof(msg.record_group));
	san_inet_from_v4(&dst, (const uint8_t[4]){224, 0, 0, 22});
	igmp_send_msg(in, &msg, sizeof(msg), &dst);
}

/* ---- in ---- */

static enum san_drop
rx_query(struct san_inet *in, const struct inet_rx *rx, const uint8_t msg[8])
{
	bool is_v3 = rx->len >= QUERY_V3;
	struct san_ip group;
	uint32_t max_ms;

	if (rx->hops != 1 || (!is_v3 && rx->len != V2_LEN))
		return SAN_DROP_INET_MALFORMED;
	san_inet_from_v4(&group, msg + 4);
	if (!san_inet_is_any_v4(&group) && !san_inet_is_group(&group))
		return SAN_DROP_INET_MALFORMED;
	max_ms = msg[1] * TENTH_MS;
	if (!is_v3) {
		in->igmp_older_ns = rx->now_ns + OLDER_NS;
		if (msg[1] == 0)
			max_ms = V1_MS;
	} else if (msg[1] >= 128) { /* long times are coded as mantissa and exponent */
		max_ms = (((msg[1] & 0x0fu) | 0x10u) << ((msg[1] >> 4 & 7) + 3)) * TENTH_MS;
	}
	san_inet_group_on_query(in, &group, san_inet_is_any_v4(&group), max_ms, rx->now_ns);
	return SAN_DROP_NONE;
}

enum san_drop
san_inet_igmp_rx(struct san_inet *in, const struct inet_rx *rx)
{
	struct san_ip group;
	uint8_t msg[V2_LEN];

	if (rx->len < V2_LEN || !san_inet_ip_copy(rx->m, rx->off, V2_LEN, msg) ||
	    san_inet_ip_sum(rx->m, rx->off, rx->len) != 0xffff)
		return SAN_DROP_INET_MALFORMED;
	if (msg[0] == QUERY)
		return rx_query(in, rx, msg);
	if (msg[0] != REPORT_V2)
		return SAN_DROP_INET_UNWANTED;
	/* The answer of one member is enough. */
	san_inet_from_v4(&group, msg + 4);
	if (rx->now_ns < in->igmp_older_ns)
		san_inet_group_on_report(in, &group);
	return SAN_DROP_NONE;
}
