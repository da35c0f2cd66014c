/* SPDX-License-Identifier: BSD-3-Clause */

/* Groups that somebody here is a member of. (UDP-5) */

#include <errno.h>
#include <stdlib.h>

#include "inet_priv.h"

int
san_inet_group_create(struct san_inet *in)
{
	in->groups = calloc(in->conf.max_groups, sizeof(in->groups[0]));
	return in->groups != NULL ? 0 : -ENOMEM;
}

void
san_inet_group_destroy(struct san_inet *in)
{
	free(in->groups);
}

static struct inet_group *
find(const struct san_inet *in, const struct san_ip *group)
{
	uint16_t i;

	for (i = 0; i < in->conf.max_groups; i++) {
		struct inet_group *g = &in->groups[i];

		if (g->nb_members != 0 && san_ip_eq(&g->ip, group))
			return g;
	}
	return NULL;
}

static struct inet_group *
find_free(const struct san_inet *in)
{
	uint16_t i;

	for (i = 0; i < in->conf.max_groups; i++)
		if (in->groups[i].nb_members == 0)
			return &in->groups[i];
	return NULL;
}

bool
san_inet_is_member(const struct san_inet *in, const struct san_ip *group)
{
	return find(in, group) != NULL;
}

int
san_inet_join(struct san_inet *in, const struct san_ip *group, uint64_t now_ns)
{
	struct inet_group *g;

	(void)now_ns;
	if (!inet_is_group(group))
		return -EINVAL;
	g = find(in, group);
	if (g == NULL) {
		g = find_free(in);
		if (g == NULL)
			return -ENOSPC;
		g->ip = *group;
	}
	g->nb_members++;
	return 0;
}

int
san_inet_leave(struct san_inet *in, const struct san_ip *group, uint64_t now_ns)
{
	struct inet_group *g = find(in, group);

	(void)now_ns;
	if (g == NULL)
		return -ENOENT;
	g->nb_members--;
	return 0;
}

/** Has an entry before *g* the same MAC address? 32 IPv4 groups have one. */
static bool
is_repeated(const struct san_inet *in, const struct inet_group *g,
	    const struct rte_ether_addr *mac)
{
	struct rte_ether_addr other;
	const struct inet_group *o;

	for (o = in->groups; o < g; o++) {
		if (o->nb_members == 0)
			continue;
		san_inet_group_mac(&o->ip, &other);
		if (rte_is_same_ether_addr(&other, mac))
			return true;
	}
	return false;
}

uint32_t
san_inet_groups(const struct san_inet *in, struct rte_ether_addr *macs, uint32_t n)
{
	struct rte_ether_addr mac;
	uint32_t k = 0;
	uint16_t i;

	for (i = 0; i < in->conf.max_groups; i++) {
		const struct inet_group *g = &in->groups[i];

		if (g->nb_members == 0)
			continue;
		san_inet_group_mac(&g->ip, &mac);
		if (is_repeated(in, g, &mac))
			continue;
		if (k < n)
			macs[k] = mac;
		k++;
	}
	return k;
}
