/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Groups with members here, and their reports to the link: at the first join and the last leave,
 * both twice because reports get lost, and after a random delay when a router queries (RFC 3376,
 * RFC 3810). The messages are in inet_report.c. (UDP-5)
 *
 * Timers: the next report of each group, the earliest of them in in->group_ns. The table is scanned
 * only at that time.
 */

#include "inet_priv.h"
#include "san_time.h"

#define ROBUSTNESS     2
#define OWN_MAX        (2 + RTE_DIM(((struct san_inet_conf *)0)->addrs))
#define UNSOLICITED_MS 1000 /* latest time of the second report after the first */

static const struct san_ip all_systems = {{[10] = 0xff, 0xff, 224, 0, 0, 1}};
static const struct san_ip all_nodes = {{0xff, 2, [15] = 1}};

static bool
is_free(const struct inet_group *g)
{
	return g->nb_members == 0 && g->nb_reports == 0 && !g->own;
}

/** True if packets of the group are to be received. */
static bool
group_has_members(const struct inet_group *g)
{
	return g->nb_members != 0 || g->own;
}

/** Also finds a group that was left recently. */
static struct inet_group *
group_find(const struct san_inet *in, const struct san_ip *group)
{
	uint32_t i;

	for (i = 0; i < in->nb_groups; i++) {
		struct inet_group *g = &in->groups[i];

		if (!is_free(g) && san_wire_ip_eq(&g->ip, group))
			return g;
	}
	return NULL;
}

/** The second leave report is not essential: such entries are reused when all are taken. */
static struct inet_group *
find_free(const struct san_inet *in)
{
	struct inet_group *left = NULL;
	uint32_t i;

	for (i = 0; i < in->nb_groups; i++) {
		struct inet_group *g = &in->groups[i];

		if (is_free(g))
			return g;
		if (!group_has_members(g))
			left = g;
	}
	return left;
}

bool
san_inet_group_is_received(const struct san_inet *in, const struct san_ip *group)
{
	const struct inet_group *g = group_find(in, group);

	return g != NULL && group_has_members(g);
}

bool
san_inet_group_is_member(const struct san_inet *in, const struct san_ip *group)
{
	const struct inet_group *g = group_find(in, group);

	return g != NULL && g->nb_members != 0;
}

/* ---- reports ---- */

/** False for groups that every host is in, and for groups local to the host. */
static bool
is_reported(const struct san_inet *in, const struct inet_group *g)
{
	if (in->conf.quiet || (g->own && !in->conf.announce))
		return false;
	if (san_wire_ip_is_v4(&g->ip))
		return !san_wire_ip_eq(&g->ip, &all_systems);
	return (g->ip.b[1] & 0x0f) >= 2 && !san_wire_ip_eq(&g->ip, &all_nodes);
}

/** At a random time up to *max_ms* from now. */
static void
set_timer(struct san_inet *in, struct inet_group *g, uint32_t max_ms, uint64_t now_ns)
{
	g->report_ns = now_ns + (1u + san_prng_below(&in->prng, max_ms)) * SAN_NS_PER_MS;
	in->group_ns = san_time_min(in->group_ns, g->report_ns);
}

static void
group_report(struct san_inet *in, struct inet_group *g, uint64_t now_ns)
{
	san_inet_report_send(in, &g->ip, g->report, now_ns);
	g->nb_reports--;
	if (g->nb_reports != 0)
		set_timer(in, g, UNSOLICITED_MS, now_ns);
}

static void
group_report_change(struct san_inet *in, struct inet_group *g, enum inet_report what,
		    uint64_t now_ns)
{
	g->nb_reports = 0;
	if (!is_reported(in, g))
		return;
	g->report = what;
	g->nb_reports = ROBUSTNESS;
	group_report(in, g, now_ns);
}

void
san_inet_group_on_query(struct san_inet *in, const struct san_ip *group, uint32_t max_ms,
			uint64_t now_ns)
{
	bool all = san_inet_is_any(group);
	uint32_t i;

	for (i = 0; i < in->nb_groups; i++) {
		struct inet_group *g = &in->groups[i];

		if (!group_has_members(g) ||
		    san_wire_ip_is_v4(&g->ip) != san_wire_ip_is_v4(group) ||
		    (!all && !san_wire_ip_eq(&g->ip, group)) || !is_reported(in, g))
			continue;
		/* A report that is already due sooner is an answer, too. */
		if (g->nb_reports != 0 && g->report_ns <= now_ns + max_ms * SAN_NS_PER_MS)
			continue;
		if (g->nb_reports == 0) {
			g->report = INET_REPORT_IS;
			g->nb_reports = 1;
		}
		set_timer(in, g, max_ms, now_ns);
	}
}

void
san_inet_group_on_report(struct san_inet *in, const struct san_ip *group)
{
	struct inet_group *g = group_find(in, group);

	if (g != NULL && g->report == INET_REPORT_IS)
		g->nb_reports = 0;
}

uint64_t
san_inet_group_tick(struct san_inet *in, uint64_t now_ns)
{
	uint32_t i;

	if (now_ns < in->group_ns)
		return in->group_ns;
	in->group_ns = SAN_TIME_NEVER;
	for (i = 0; i < in->nb_groups; i++) {
		struct inet_group *g = &in->groups[i];

		if (g->nb_reports == 0)
			continue;
		if (now_ns >= g->report_ns)
			group_report(in, g, now_ns);
		else
			in->group_ns = san_time_min(in->group_ns, g->report_ns);
	}
	return in->group_ns;
}

/* ---- members ---- */

/** Add a group that every host is in. */
static void
add_own(struct san_inet *in, const struct san_ip *group)
{
	uint32_t i;

	for (i = 0; i < in->nb_groups; i++)
		if (san_wire_ip_eq(&in->groups[i].ip, group))
			return;
	in->groups[i].ip = *group;
	in->groups[i].own = true;
	in->nb_groups++;
	if (!is_reported(in, &in->groups[i]))
		return;
	/* sent with the first tick, which knows the time */
	in->groups[i].report = INET_REPORT_JOIN;
	in->groups[i].nb_reports = ROBUSTNESS;
	in->group_ns = 0;
}

int
san_inet_group_create(struct san_inet *in)
{
	struct san_ip group;
	uint16_t i;

	in->group_ns = SAN_TIME_NEVER;
	in->groups = calloc(OWN_MAX + in->conf.max_groups, sizeof(in->groups[0]));
	if (in->groups == NULL)
		return -ENOMEM;
	for (i = 0; i < in->conf.nb_addrs; i++) {
		const struct san_ip *ip = &in->conf.addrs[i].ip;

		add_own(in, san_wire_ip_is_v4(ip) ? &all_systems : &all_nodes);
		if (san_wire_ip_is_v4(ip))
			continue;
		san_inet_nd_solicited_node(ip, &group);
		add_own(in, &group);
	}
	in->nb_groups += in->conf.max_groups;
	return 0;
}

int
san_inet_group_join(struct san_inet *in, const struct san_ip *group, uint64_t now_ns)
{
	struct inet_group *g;

	if (!san_inet_is_group(group))
		return -EINVAL;
	g = group_find(in, group);
	if (g == NULL) {
		g = find_free(in);
		if (g == NULL)
			return -ENOSPC;
		memset(g, 0, sizeof(*g));
		g->ip = *group;
	}
	g->nb_members++;
	if (g->nb_members == 1 && !g->own)
		group_report_change(in, g, INET_REPORT_JOIN, now_ns);
	return 0;
}

int
san_inet_group_leave(struct san_inet *in, const struct san_ip *group, uint64_t now_ns)
{
	struct inet_group *g = group_find(in, group);

	if (g == NULL || g->nb_members == 0)
		return -ENOENT;
	g->nb_members--;
	if (g->nb_members == 0 && !g->own)
		group_report_change(in, g, INET_REPORT_LEAVE, now_ns);
	return 0;
}

/* ---- MAC addresses ---- */

uint32_t
san_inet_group_all(const struct san_inet *in, struct rte_ether_addr *macs, uint32_t n)
{
	struct rte_ether_addr mac;
	uint32_t i, j, k = 0;

	for (i = 0; i < in->nb_groups; i++) {
		const struct inet_group *g = &in->groups[i];

		if (!group_has_members(g))
			continue;
		san_inet_route_group_mac(&g->ip, &mac);
		/* 32 IPv4 groups have the same address. */
		for (j = 0; j < k && !rte_is_same_ether_addr(&macs[j], &mac); j++)
			;
		if (j < k)
			continue;
		if (k == n)
			return n + 1;
		macs[k++] = mac;
	}
	return k;
}
