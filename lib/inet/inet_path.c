/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Path MTUs to hosts, as routers report them (RFC 1191, RFC 8201). The default is the MTU of the
 * link. A reported value expires after a while, because the path may carry longer packets again.
 * (UDP-3)
 */

#include "inet_priv.h"

#define WAYS 8 /* entries of a set, the only ones searched for a host (RT-36) */

int
san_inet_path_create(struct san_inet *in)
{
	in->nb_path_sets = (uint32_t)rte_align32pow2(in->conf.max_paths) / WAYS;
	in->nb_path_sets = RTE_MAX(in->nb_path_sets, 1u);
	in->paths = calloc(in->nb_path_sets * WAYS, sizeof(in->paths[0]));
	return in->paths != NULL ? 0 : -ENOMEM;
}

/** The entry of *ip*; else the one of its set that expires first. */
static struct inet_path *
path_entry_of(const struct san_inet *in, const struct san_ip *ip)
{
	uint32_t set = san_inet_hash(ip, in->hash_seed) & (in->nb_path_sets - 1);
	struct inet_path *p = &in->paths[set * WAYS], *end = p + WAYS, *oldest = p;

	for (; p < end && !san_wire_ip_eq(&p->ip, ip); p++)
		if (p->until_ns < oldest->until_ns)
			oldest = p;
	return p < end ? p : oldest;
}

uint16_t
san_inet_path_mtu(const struct san_inet *in, const struct san_ip *ip, uint64_t now_ns)
{
	const struct inet_path *p = path_entry_of(in, ip);

	return san_wire_ip_eq(&p->ip, ip) && now_ns < p->until_ns ? p->mtu : in->conf.mtu;
}

void
san_inet_path_narrow(struct san_inet *in, const struct san_inet_result *r, uint64_t now_ns)
{
	const struct san_ip *ip = &r->d.dst;
	uint16_t floor = san_wire_ip_is_v4(ip) ? INET_PATH_MIN_V4 : INET_PATH_MIN_V6;
	uint16_t mtu = RTE_MAX(r->mtu, floor);

	/* A report never raises the value, and a repeated one does not extend its time. */
	if (r->what == SAN_INET_ERROR && r->err == EMSGSIZE &&
	    mtu < san_inet_path_mtu(in, ip, now_ns))
		*path_entry_of(in, ip) = (struct inet_path){
			.ip = *ip,
			.mtu = mtu,
			.until_ns = now_ns + in->conf.path_ns,
		};
}
