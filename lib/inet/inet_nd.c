/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Neighbour discovery for IPv6: solicitation and advertisement (RFC 4861, 7.1 and 7.2). No router
 * discovery and no redirects: the gateway is configured, and redirects are ignored. (RT-31)
 */

#include <assert.h>
#include <netinet/icmp6.h>

#include "inet_priv.h"

#define ND_MAX 256 /* most bytes of a message: two options are usual, 8 bytes each */

/* ff02::1:ffXX:XXXX */
void
san_inet_nd_solicited_node(const struct san_ip *ip, struct san_ip *group)
{
	static const uint8_t prefix[13] = {0xff, 2, [11] = 1, [12] = 0xff};

	memcpy(group->b, prefix, sizeof(prefix));
	memcpy(group->b + 13, ip->b + 13, 3);
}

static const struct san_ip all_nodes = {{0xff, 2, [15] = 1}};

struct nd_out {
	uint8_t type;
	uint32_t flags;                   /* ND_NA_FLAG_... */
	bool bare;                        /* without our link-layer address */
	const struct rte_ether_addr *mac; /* NULL: *dst* is a group */
	struct san_ip dst;
	const struct san_ip *src;
	const struct san_ip *target;
};

/** The option that a message carries: the link-layer address of its sender. */
static uint8_t
option_of(uint8_t type)
{
	return type == ND_NEIGHBOR_SOLICIT ? ND_OPT_SOURCE_LINKADDR : ND_OPT_TARGET_LINKADDR;
}

static void
put_nd(struct san_inet *in, const struct nd_out *o)
{
	struct {
		struct nd_neighbor_advert msg; /* a solicitation has the same fields */
		struct nd_opt_hdr opt;
		struct rte_ether_addr mac;
	} x = {
		.msg = {.nd_na_type = o->type, .nd_na_flags_reserved = o->flags},
		.opt = {option_of(o->type), .nd_opt_len = 1},
		.mac = in->conf.mac,
	};
	const struct inet_ip_out ip = {
		.src = o->src,
		.dst = &o->dst,
		.len = o->bare ? sizeof(x.msg) : sizeof(x),
		.proto = IPPROTO_ICMPV6,
		.hops = INET_HOPS_ND,
	};

	static_assert(sizeof(x) == 32, "message with an option");
	memcpy(&x.msg.nd_na_target, o->target->b, sizeof(x.msg.nd_na_target));
	san_inet_ip_send(in, o->mac, &ip, &x);
}

void
san_inet_nd_ask(struct san_inet *in, const struct san_ip *src, const struct san_ip *target,
		const struct rte_ether_addr *mac)
{
	struct nd_out o = {
		.type = ND_NEIGHBOR_SOLICIT,
		.mac = mac,
		.dst = *target,
		.src = src,
		.target = target,
	};

	if (mac == NULL)
		san_inet_nd_solicited_node(target, &o.dst);
	put_nd(in, &o);
}

void
san_inet_nd_announce(struct san_inet *in, const struct san_ip *ip)
{
	put_nd(in, &(struct nd_out){
			   .type = ND_NEIGHBOR_ADVERT,
			   .flags = ND_NA_FLAG_OVERRIDE,
			   .dst = all_nodes,
			   .src = ip,
			   .target = ip,
		   });
}

/** Find the link-layer address option *type*. False: the options are malformed. */
static bool
parse_options(const uint8_t *opt, uint32_t len, uint8_t type, const uint8_t **mac)
{
	*mac = NULL;
	while (len != 0) {
		if (len < 8 || opt[1] == 0 || opt[1] * 8u > len)
			return false;
		if (opt[0] == type && opt[1] == 1)
			*mac = opt + 2;
		len -= opt[1] * 8u;
		opt += opt[1] * 8u;
	}
	return true;
}

/**
 * A host solicits one of our addresses. The answer is no longer than the request (RT-36): it has
 * the link-layer address only if the request had one. A host that only checks reachability or its
 * address does not need it.
 */
static enum san_drop
inet_nd_rx_solicit(struct san_inet *in, const struct inet_rx *rx, const struct san_ip *target,
		   const uint8_t *slla)
{
	struct inet_claim claim = {.create = true, .override = true};
	struct nd_out o = {
		.type = ND_NEIGHBOR_ADVERT,
		.flags = ND_NA_FLAG_OVERRIDE,
		.bare = slla == NULL,
		.dst = all_nodes,
		.src = target,
		.target = target,
	};
	struct san_ip group;

	if (!san_inet_route_is_local(in, target))
		return SAN_DROP_INET_UNWANTED;
	san_inet_nd_solicited_node(target, &group);
	claim.ip = rx->d.src;
	if (san_inet_is_any(&claim.ip)) {
		/* A host wants to use our address: all nodes must learn that it is taken. */
		if (slla != NULL || !san_wire_ip_eq(&rx->d.dst, &group))
			return SAN_DROP_INET_MALFORMED;
	} else {
		claim.mac = rx->eth.src_addr;
		if (slla != NULL)
			memcpy(claim.mac.addr_bytes, slla, RTE_ETHER_ADDR_LEN);
		if (!san_inet_is_unicast(&claim.ip) ||
		    !rte_is_valid_assigned_ether_addr(&claim.mac))
			return SAN_DROP_INET_MALFORMED;
		san_inet_neigh_learn(in, rx, &claim);
		o.flags |= ND_NA_FLAG_SOLICITED;
		o.mac = &claim.mac;
		o.dst = claim.ip;
	}
	if (san_inet_may_answer(in, INET_ANSWER_NEIGH, &claim.ip, rx->now_ns))
		put_nd(in, &o);
	return SAN_DROP_NONE;
}

static enum san_drop
rx_advert(struct san_inet *in, const struct inet_rx *rx, const struct san_ip *target,
	  uint32_t flags, const uint8_t *tlla)
{
	struct inet_claim claim = {.ip = *target, .override = (flags & ND_NA_FLAG_OVERRIDE) != 0};

	if (rx->d.group && (flags & ND_NA_FLAG_SOLICITED))
		return SAN_DROP_INET_MALFORMED;
	if (tlla != NULL) {
		memcpy(claim.mac.addr_bytes, tlla, RTE_ETHER_ADDR_LEN);
		if (!san_inet_route_claimed(in, &claim.ip, &claim.mac, rx->now_ns))
			san_inet_neigh_learn(in, rx, &claim);
	} else if (flags & ND_NA_FLAG_SOLICITED) {
		/* After a unicast solicitation the address may be left out. */
		san_inet_neigh_confirm(in, &claim.ip, rx->now_ns);
	}
	return SAN_DROP_NONE;
}

enum san_drop
san_inet_nd_rx(struct san_inet *in, const struct inet_rx *rx, uint8_t type)
{
	union {
		struct nd_neighbor_advert msg;
		uint8_t b[ND_MAX];
	} x;
	const uint32_t off = sizeof(x.msg);
	const uint8_t *mac;
	struct san_ip target;

	if (type != ND_NEIGHBOR_SOLICIT && type != ND_NEIGHBOR_ADVERT)
		return SAN_DROP_INET_UNWANTED;
	if (rx->d.hops != INET_HOPS_ND || rx->len < off || rx->len > sizeof(x) ||
	    !san_inet_ip_copy(rx->m, rx->off, rx->len, &x) || x.msg.nd_na_code != 0 ||
	    !parse_options(x.b + off, rx->len - off, option_of(type), &mac))
		return SAN_DROP_INET_MALFORMED;
	memcpy(target.b, &x.msg.nd_na_target, sizeof(target.b));
	/* ARP handles IPv4 neighbours. */
	if (!san_inet_is_unicast(&target) || san_wire_ip_is_v4(&target))
		return SAN_DROP_INET_MALFORMED;
	if (type == ND_NEIGHBOR_SOLICIT)
		return inet_nd_rx_solicit(in, rx, &target, mac);
	return rx_advert(in, rx, &target, x.msg.nd_na_flags_reserved, mac);
}
