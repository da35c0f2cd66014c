/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Path MTUs to hosts, as routers report them (RFC 1191, RFC 8201). The default is the MTU of the
 * link. A reported value expires after a while, because the path may carry longer packets again.
 * (UDP-3)
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

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

/** First entry of the set for *ip*. */
static struct inet_path *
set_of(const struct san_inet *in, const struct san_ip *ip)
{
	uint32_t h = san_inet_hash(ip, in->hash_seed);

	return &in->paths[(h & (in->nb_path_sets - 1)) * WAYS];
}

static struct inet_path *
inet_path_find_host(const struct san_inet *in, const struct san_ip *ip)
{
	struct inet_path *p = set_of(in, ip);
	uint32_t i;

	for (i = 0; i < WAYS; i++, p++)
		if (san_wire_ip_eq(&p->ip, ip))
			return p;
	return NULL;
}

uint16_t
san_inet_path_mtu(const struct san_inet *in, const struct san_ip *ip, uint64_t now_ns)
{
	const struct inet_path *p = inet_path_find_host(in, ip);

	return p != NULL && now_ns < p->until_ns ? p->mtu : in->conf.mtu;
}

void
san_inet_path_narrow(struct san_inet *in, const struct san_inet_result *r, uint64_t now_ns)
{
	const struct san_ip *ip = &r->d.dst;
	uint16_t floor = san_wire_ip_is_v4(ip) ? INET_PATH_MIN_V4 : INET_PATH_MIN_V6;
	uint16_t mtu = RTE_MAX(r->mtu, floor);
	struct inet_path *p, *set = set_of(in, ip);
	uint32_t i;

	if (r->what != SAN_INET_ERROR || r->err != EMSGSIZE)
		return;
	/* A report never raises the value, and a repeated one does not extend its time. */
	if (mtu >= san_inet_path_mtu(in, ip, now_ns))
		return;
	p = inet_path_find_host(in, ip);
	if (p == NULL) /* the entry that expires first */
		for (p = set, i = 1; i < WAYS; i++)
			if (set[i].until_ns < p->until_ns)
				p = &set[i];
	p->ip = *ip;
	p->mtu = mtu;
	p->until_ns = now_ns + in->conf.path_ns;
}
