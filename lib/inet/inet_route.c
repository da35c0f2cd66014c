/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Our addresses, and the route to others: source address, router, MAC address. (RT-31, SYS-2,
 * UDP-3)
 *
 * Our addresses are announced on the link at start and when the MAC address of the port changes, so
 * that no host keeps the old one. What claims one of them is not learned. An IPv4 address is
 * defended (RFC 5227 2.4), with a limit: two hosts that both claim it must not flood the link.
 *
 * Timer: the next announcement.
 */

#include "inet_priv.h"
#include "san_time.h"

#define ANNOUNCEMENTS 2
#define ANNOUNCE_NS   (2 * SAN_NS_PER_S)
#define DEFEND_NS     (10 * SAN_NS_PER_S)

bool
san_inet_route_is_local(const struct san_inet *in, const struct san_ip *ip)
{
	uint16_t i;

	for (i = 0; i < in->conf.nb_addrs; i++) {
		if (san_wire_ip_eq(&in->conf.addrs[i].ip, ip))
			return true;
	}
	return false;
}

static bool
route_prefix_holds(const struct san_inet_addr *prefix, const struct san_ip *ip)
{
	unsigned int i = 0;
	uint8_t x;

	if (san_wire_ip_is_v4(&prefix->ip) != san_wire_ip_is_v4(ip))
		return false;
	while (i < sizeof(ip->b) && ip->b[i] == prefix->ip.b[i])
		i++;
	if (i == sizeof(ip->b))
		return true;
	x = ip->b[i] ^ prefix->ip.b[i];
	return i * 8 + (unsigned int)__builtin_clz(x) - 24 >= prefix->prefix_len;
}

bool
san_inet_route_is_on_link(const struct san_inet_conf *conf, const struct san_ip *ip)
{
	uint16_t i;

	for (i = 0; i < conf->nb_addrs; i++)
		if (route_prefix_holds(&conf->addrs[i], ip))
			return true;
	return false;
}

const struct san_inet_addr *
san_inet_route_best_source(const struct san_inet *in, const struct san_ip *peer)
{
	const struct san_inet_addr *a, *best = NULL, *any = NULL;

	for (a = in->conf.addrs; a < in->conf.addrs + in->conf.nb_addrs; a++) {
		if (any == NULL && san_wire_ip_is_v4(&a->ip) == san_wire_ip_is_v4(peer))
			any = a;
		if (route_prefix_holds(a, peer) &&
		    (best == NULL || a->prefix_len > best->prefix_len))
			best = a;
	}
	return best != NULL ? best : any;
}

/* Next hop on the link to *ip*, which is unicast. NULL: none. */
static const struct san_ip *
inet_route_next_hop(const struct san_inet *in, const struct san_ip *ip)
{
	const struct san_inet_route *r, *best = NULL;

	if (!san_inet_is_unicast(ip) || san_inet_route_best_source(in, ip) == NULL)
		return NULL;
	if (san_inet_route_is_on_link(&in->conf, ip))
		return ip;
	for (r = in->conf.routes; r < in->conf.routes + in->conf.nb_routes; r++)
		if (route_prefix_holds(&r->to, ip) &&
		    (best == NULL || r->to.prefix_len > best->to.prefix_len))
			best = r;
	return best != NULL ? &best->gateway : NULL;
}

int
san_inet_route_source(const struct san_inet *in, const struct san_ip *peer, struct san_ip *src)
{
	const struct san_ip *hop;

	if (san_inet_route_best_source(in, peer) == NULL)
		return -EADDRNOTAVAIL;
	hop = san_inet_route_is_local(in, peer) ? peer : inet_route_next_hop(in, peer);
	if (hop == NULL)
		return -ENETUNREACH;
	*src = san_inet_route_best_source(in, hop)->ip;
	return 0;
}

/** As san_inet_route_hop(), but only to the address of one host. */
static int
inet_route_unicast_hop(struct san_inet *in, const struct san_ip *ip, uint64_t now_ns,
		       struct inet_hop *hop)
{
	const struct san_ip *next;
	struct inet_neigh *e;
	int rc;

	hop->neigh = NULL;
	hop->mac = in->conf.mac;
	/* to ourselves: the link may be a loopback */
	if (san_inet_route_is_local(in, ip))
		return 0;
	next = inet_route_next_hop(in, ip);
	if (next == NULL)
		return -ENETUNREACH;
	rc = san_inet_neigh_find(in, next, now_ns, &e);
	if (rc == 0)
		hop->mac = e->mac;
	else if (rc == -EAGAIN)
		hop->neigh = e;
	return rc;
}

int
san_inet_route_resolve(struct san_inet *in, const struct san_ip *ip, bool again, uint64_t now_ns,
		       struct rte_ether_addr *mac)
{
	const struct san_ip *next = again ? inet_route_next_hop(in, ip) : NULL;
	struct inet_hop hop;
	int rc;

	if (next != NULL && !san_inet_route_is_local(in, ip))
		san_inet_neigh_verify(in, next, now_ns);
	rc = inet_route_unicast_hop(in, ip, now_ns, &hop);
	if (rc == 0)
		*mac = hop.mac;
	return rc == -ENETUNREACH ? -EHOSTUNREACH : rc;
}

/* ---- datagrams ---- */

/** True for the last address of the network; /31 and /32 have none (RFC 3021). */
static bool
is_directed(const struct san_inet_addr *a, const struct san_ip *ip)
{
	rte_be32_t host;

	memcpy(&host, ip->b + INET_V4_OFF, sizeof(host));
	return san_wire_ip_is_v4(&a->ip) && a->prefix_len <= 126 && route_prefix_holds(a, ip) &&
		~rte_be_to_cpu_32(host) << (a->prefix_len - 96) == 0;
}

bool
san_inet_route_is_broadcast(const struct san_inet *in, const struct san_ip *ip)
{
	static const struct san_ip all = {{[10] = 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
	uint16_t i;

	if (san_wire_ip_eq(ip, &all))
		return true;
	for (i = 0; i < in->conf.nb_addrs; i++)
		if (is_directed(&in->conf.addrs[i], ip))
			return true;
	return false;
}

void
san_inet_route_group_mac(const struct san_ip *group, struct rte_ether_addr *mac)
{
	static const uint8_t v4[3] = {0x01, 0x00, 0x5e}, v6[2] = {0x33, 0x33};

	if (san_wire_ip_is_v4(group)) {
		memcpy(mac->addr_bytes, v4, sizeof(v4));
		memcpy(mac->addr_bytes + 3, group->b + 13, 3);
		mac->addr_bytes[3] &= 0x7f;
	} else {
		memcpy(mac->addr_bytes, v6, sizeof(v6));
		memcpy(mac->addr_bytes + 2, group->b + 12, 4);
	}
}

int
san_inet_route_hop(struct san_inet *in, const struct san_ip *dst, uint64_t now_ns,
		   struct inet_hop *hop)
{
	bool group = san_inet_is_group(dst);

	/* an own address may be the broadcast address of another prefix */
	if (!group && (!san_inet_route_is_broadcast(in, dst) || san_inet_route_is_local(in, dst)))
		return inet_route_unicast_hop(in, dst, now_ns, hop);
	*hop = (struct inet_hop){.mac = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}};
	if (group)
		san_inet_route_group_mac(dst, &hop->mac);
	return 0;
}

/* ---- announcing and defending our addresses ---- */

static void
route_announce_addr(struct san_inet *in, const struct san_ip *ip)
{
	if (san_wire_ip_is_v4(ip))
		san_inet_arp_ask(in, ip, ip, NULL);
	else
		san_inet_nd_announce(in, ip);
}

void
san_inet_route_set_mac(struct san_inet *in, const struct rte_ether_addr *mac, bool announce)
{
	in->conf.mac = *mac;
	in->nb_announced = 0;
	if (announce)
		in->announce_ns = 0;
}

uint64_t
san_inet_route_tick(struct san_inet *in, uint64_t now_ns)
{
	uint16_t i;

	if (now_ns < in->announce_ns)
		return in->announce_ns;
	for (i = 0; i < in->conf.nb_addrs; i++)
		route_announce_addr(in, &in->conf.addrs[i].ip);
	in->nb_announced++;
	in->announce_ns = in->nb_announced < ANNOUNCEMENTS ? now_ns + ANNOUNCE_NS : SAN_TIME_NEVER;
	return in->announce_ns;
}

bool
san_inet_route_claimed(struct san_inet *in, const struct san_ip *ip,
		       const struct rte_ether_addr *mac, uint64_t now_ns)
{
	uint16_t i;

	for (i = 0; i < in->conf.nb_addrs; i++)
		if (san_wire_ip_eq(&in->conf.addrs[i].ip, ip))
			break;
	/* A link may return our own packets. */
	if (i == in->conf.nb_addrs || rte_is_same_ether_addr(mac, &in->conf.mac))
		return false;
	/* For IPv6 there is no rule for an address in use. */
	if (san_wire_ip_is_v4(ip) && !in->conf.quiet && now_ns >= in->defend_ns[i]) {
		route_announce_addr(in, ip);
		in->defend_ns[i] = now_ns + DEFEND_NS;
	}
	return true;
}
