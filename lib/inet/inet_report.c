/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Reports of groups to routers, and the queries of these: IGMPv3 (RFC 3376) and MLDv2 (RFC 3810);
 * IGMPv2 (RFC 2236) and MLDv1 (RFC 2710) while a router on the link uses them. MLD is IGMP with
 * longer addresses. We accept every source of a group, so a record is only the address of the
 * group. (UDP-5)
 */

#include "inet_priv.h"
#include "san_time.h"

#define OLDER_NS   (260 * SAN_NS_PER_S) /* as long an older router is remembered */
#define RECORD_LEN 12u                  /* bytes of a new report before its only address */
#define V1_CODE    100                  /* response time of a query of IGMPv1, which has none */

/** What differs between IGMP and MLD. *Old* is version 2 of IGMP and version 1 of MLD. */
struct protocol {
	uint8_t query, report_old, leave_old, report; /* types of messages */
	uint8_t old_len;                              /* bytes of an old message */
	uint8_t group_at;                             /* in it, and in a query: the last field */
	uint8_t query_len;                            /* least bytes of a new query */
	uint8_t unit_ms;                              /* of response times */
	uint8_t mantissa;                             /* its bits in a long response time */
	struct san_ip routers, routers_new;
};

static const struct protocol protocols[2] = {
	{
		.query = 0x11,
		.report_old = 0x16,
		.leave_old = 0x17,
		.report = 0x22,
		.old_len = 8,
		.group_at = 4,
		.query_len = 12,
		.mantissa = 4,
		.unit_ms = 100,
		.routers = {{[10] = 0xff, 0xff, 224, 0, 0, 2}},
		.routers_new = {{[10] = 0xff, 0xff, 224, 0, 0, 22}},
	},
	{
		.query = 130,
		.report_old = 131,
		.leave_old = 132,
		.report = 143,
		.old_len = 24,
		.group_at = 8,
		.query_len = 28,
		.mantissa = 12,
		.unit_ms = 1,
		.routers = {{0xff, 2, [15] = 2}},
		.routers_new = {{0xff, 2, [15] = 0x16}},
	},
};

static bool
is_link_local(const struct san_ip *ip)
{
	return ip->b[0] == 0xfe && (ip->b[1] & 0xc0) == 0x80;
}

/** MLD: a link-local address; without one, the unspecified address (RFC 3590). NULL: none. */
static const struct san_ip *
report_source(const struct san_inet *in, const struct san_ip *dst)
{
	static const struct san_ip unspecified;
	const struct san_inet_addr *a;

	if (san_wire_ip_is_v4(dst)) {
		a = san_inet_route_best_source(in, dst);
		return a != NULL ? &a->ip : NULL;
	}
	for (a = in->conf.addrs; a < in->conf.addrs + in->conf.nb_addrs; a++)
		if (is_link_local(&a->ip))
			return &a->ip;
	return &unspecified;
}

void
san_inet_report_send(struct san_inet *in, const struct san_ip *group, enum inet_report what,
		     uint64_t now_ns)
{
	bool v6 = !san_wire_ip_is_v4(group), leaves = what == INET_REPORT_LEAVE;
	const struct protocol *p = &protocols[v6];
	uint32_t addr_len = p->old_len - p->group_at;
	uint8_t msg[RECORD_LEN + sizeof(group->b)] = {p->report, [7] = 1, [8] = (uint8_t)what};
	struct inet_ip_out x = {
		.dst = &p->routers_new,
		.len = RECORD_LEN + addr_len,
		.proto = v6 ? IPPROTO_ICMPV6 : IPPROTO_IGMP,
		.hops = 1,
		.tos = v6 ? 0 : INET_TOS_CONTROL,
		.alert = true,
	};

	if (now_ns < in->older_ns[v6]) {
		memset(msg, 0, sizeof(msg));
		msg[0] = leaves ? p->leave_old : p->report_old;
		x.dst = leaves ? &p->routers : group;
		x.len = p->old_len;
	}
	x.src = report_source(in, x.dst);
	if (x.src == NULL)
		return;
	x.id = v6 ? 0 : (uint16_t)san_inet_ip_id(in, x.dst);
	memcpy(msg + x.len - addr_len, san_inet_raw(group), addr_len);
	san_inet_ip_send(in, NULL, &x, msg);
}

static void
report_on_query(struct san_inet *in, const struct inet_rx *rx, const uint8_t *msg,
		const struct san_ip *group)
{
	bool v6 = !san_wire_ip_is_v4(group);
	const struct protocol *p = &protocols[v6];
	uint32_t code = v6 ? (uint32_t)msg[4] << 8 | msg[5] : msg[1], bits = p->mantissa;

	if (rx->len == p->old_len) {
		in->older_ns[v6] = rx->now_ns + OLDER_NS;
		if (code == 0 && !v6)
			code = V1_CODE;
	} else if (code >> bits >= 8) {
		code = ((code & ((1u << bits) - 1)) | 1u << bits) << ((code >> bits & 7) + 3);
	}
	san_inet_group_on_query(in, group, code * p->unit_ms, rx->now_ns);
}

enum san_drop
san_inet_report_rx(struct san_inet *in, const struct inet_rx *rx)
{
	const struct san_ip *src = &rx->d.src, *dst = &rx->d.dst;
	bool v6 = !san_wire_ip_is_v4(dst);
	const struct protocol *p = &protocols[v6];
	uint16_t sum = san_inet_ip_cksum(rx->m, rx->off, rx->len, src, dst, rx->proto);
	struct san_ip group;
	uint8_t msg[24];

	if (rx->len < p->old_len || !san_inet_ip_copy(rx->m, rx->off, p->old_len, msg) ||
	    sum != 0xffff)
		return SAN_DROP_INET_MALFORMED;
	if (msg[0] != p->query && msg[0] != p->report_old)
		return SAN_DROP_INET_UNWANTED;
	if (v6)
		memcpy(group.b, msg + p->group_at, sizeof(group.b));
	else
		san_wire_ip_from_v4(&group, msg + p->group_at);
	/* a v4-mapped group in MLD would be taken for one of IGMP */
	if (rx->d.hops != 1 || (v6 && (!is_link_local(src) || san_wire_ip_is_v4(&group))) ||
	    (!san_inet_is_group(&group) && !san_inet_is_any(&group)) ||
	    (msg[0] == p->query && rx->len != p->old_len && rx->len < p->query_len))
		return SAN_DROP_INET_MALFORMED;
	if (msg[0] == p->query)
		report_on_query(in, rx, msg, &group);
	else if (rx->now_ns < in->older_ns[v6])
		san_inet_group_on_report(in, &group); /* the answer of one member is enough */
	return SAN_DROP_NONE;
}
