/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Our addresses. They are announced on the link at start and when the MAC address of the port
 * changes, so that no host keeps the old one. What claims one of them is not learned. An IPv4
 * address is defended (RFC 5227 2.4), with a limit, so that two hosts that both claim it do not
 * flood the link. (RT-31, UDP-3)
 *
 * Timer: the next announcement.
 */

#include "inet_priv.h"
#include "san_time.h"

#define ANNOUNCEMENTS 2
#define ANNOUNCE_NS   (2 * SAN_NS_PER_S)
#define DEFEND_NS     (10 * SAN_NS_PER_S)

static void
own_announce_addr(struct san_inet *in, const struct san_ip *ip)
{
	if (san_wire_ip_is_v4(ip))
		san_inet_arp_ask(in, ip, ip, NULL);
	else
		san_inet_nd_announce(in, ip);
}

void
san_inet_own_set_mac(struct san_inet *in, const struct rte_ether_addr *mac, bool announce)
{
	in->conf.mac = *mac;
	in->nb_announced = 0;
	if (announce)
		in->announce_ns = 0;
}

uint64_t
san_inet_own_tick(struct san_inet *in, uint64_t now_ns)
{
	uint16_t i;

	if (now_ns < in->announce_ns)
		return in->announce_ns;
	for (i = 0; i < in->conf.nb_addrs; i++)
		own_announce_addr(in, &in->conf.addrs[i].ip);
	in->nb_announced++;
	in->announce_ns = in->nb_announced < ANNOUNCEMENTS ? now_ns + ANNOUNCE_NS : SAN_TIME_NEVER;
	return in->announce_ns;
}

bool
san_inet_own_claimed(struct san_inet *in, const struct san_ip *ip,
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
		own_announce_addr(in, ip);
		in->defend_ns[i] = now_ns + DEFEND_NS;
	}
	return true;
}
