/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Our addresses, the way to others, and the neighbour table. Asking and answering
 * is ARP (inet_arp.c) or ND (inet_nd.c). (RT-31, SYS-1)
 *
 *   FREE -> PENDING -> REACHABLE -> REFRESH -> REACHABLE ...
 *   PENDING -> FAILED -> FREE           REFRESH -> FREE, when nobody answers
 *
 * An entry that nobody looked up since it was confirmed is forgotten instead of
 * refreshed. The table is of fixed size: a new entry replaces one that nobody
 * looked up, or else the one touched longest ago.
 *
 * Timer: next_ns of each entry, the earliest in in->next_ns; san_inet_tick()
 * scans the table only when that has come.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "inet_priv.h"
#include "san_assert.h"
#include "san_time.h"

void
san_inet_conf_default(struct san_inet_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	conf->max_neighbours = 1024;
	conf->reachable_ns = 30 * SAN_NS_PER_S;
	conf->retry_ns = 200 * SAN_NS_PER_MS;
	conf->max_retries = 5;
}

static bool
is_conf_valid(const struct san_inet_conf *conf)
{
	uint16_t i;

	if (conf->nb_addrs > RTE_DIM(conf->addrs) || conf->nb_routes > RTE_DIM(conf->routes) ||
	    conf->max_neighbours == 0 ||
	    conf->max_neighbours > 1u << 20 || conf->reachable_ns == 0 || conf->retry_ns == 0 ||
	    conf->pool == NULL)
		return false;
	for (i = 0; i < conf->nb_addrs; i++) {
		if (!inet_is_unicast(&conf->addrs[i].ip) || conf->addrs[i].prefix_len > 128)
			return false;
	}
	for (i = 0; i < conf->nb_routes; i++) {
		const struct san_inet_route *r = &conf->routes[i];

		if (!inet_is_unicast(&r->gateway) || r->to.prefix_len > 128 ||
		    san_ip_is_v4(&r->gateway) != san_ip_is_v4(&r->to.ip))
			return false;
	}
	return true;
}

static int
alloc_tables(struct san_inet *in)
{
	uint32_t nb_buckets = rte_align32pow2(in->conf.max_neighbours);
	uint32_t i;

	in->neigh = calloc(in->conf.max_neighbours, sizeof(*in->neigh));
	in->buckets = calloc(nb_buckets, sizeof(*in->buckets));
	if (in->neigh == NULL || in->buckets == NULL)
		return -ENOMEM;
	for (i = 0; i < nb_buckets; i++)
		in->buckets[i] = INET_NONE;
	for (i = 0; i < in->conf.max_neighbours; i++)
		in->neigh[i].next = i + 1 < in->conf.max_neighbours ? i + 1 : INET_NONE;
	in->bucket_mask = nb_buckets - 1;
	return 0;
}

int
san_inet_create(const struct san_inet_conf *conf, struct san_inet **out)
{
	struct san_inet *in;
	int rc;

	if (!is_conf_valid(conf))
		return -EINVAL;
	in = calloc(1, sizeof(*in));
	if (in == NULL)
		return -ENOMEM;
	in->conf = *conf;
	in->next_ns = SAN_TIME_NEVER;
	rc = alloc_tables(in);
	if (rc != 0) {
		san_inet_destroy(in);
		return rc;
	}
	*out = in;
	return 0;
}

void
san_inet_destroy(struct san_inet *in)
{
	if (in == NULL)
		return;
	while (in->out_head != in->out_tail)
		rte_pktmbuf_free(in->out[in->out_head++ & (INET_OUT_MAX - 1)]);
	free(in->buckets);
	free(in->neigh);
	free(in);
}

/* ---- frames to send ---- */

struct rte_mbuf *
san_inet_out_alloc(struct san_inet *in)
{
	struct rte_mbuf *m;

	/* what could not be sent anyway needs no mbuf */
	if (in->out_tail - in->out_head == INET_OUT_MAX)
		return NULL;
	m = rte_pktmbuf_alloc(in->conf.pool);
	in->nb_no_mbuf += m == NULL;
	return m;
}

enum san_drop
san_inet_out_add(struct san_inet *in, struct rte_mbuf *m)
{
	if (in->out_tail - in->out_head == INET_OUT_MAX) {
		rte_pktmbuf_free(m);
		return SAN_DROP_TX_FULL;
	}
	in->out[in->out_tail++ & (INET_OUT_MAX - 1)] = m;
	return SAN_DROP_NONE;
}

uint64_t
san_inet_no_mbuf(const struct san_inet *in)
{
	return in->nb_no_mbuf;
}

uint16_t
san_inet_tx_burst(struct san_inet *in, struct rte_mbuf **m, uint16_t n)
{
	uint16_t k = 0;

	while (k < n && in->out_head != in->out_tail)
		m[k++] = in->out[in->out_head++ & (INET_OUT_MAX - 1)];
	return k;
}

/* ---- our addresses, and the next hop ---- */

bool
san_inet_is_local(const struct san_inet *in, const struct san_ip *ip)
{
	uint16_t i;

	for (i = 0; i < in->conf.nb_addrs; i++) {
		if (san_ip_eq(&in->conf.addrs[i].ip, ip))
			return true;
	}
	return false;
}

/** Number of leading bits that are equal. */
static unsigned int
common_bits(const struct san_ip *a, const struct san_ip *b)
{
	unsigned int i;

	for (i = 0; i < sizeof(a->b); i++) {
		uint8_t x = a->b[i] ^ b->b[i];

		if (x != 0)
			return i * 8 + (unsigned int)__builtin_clz(x) - 24;
	}
	return 128;
}

static bool
holds(const struct san_inet_addr *prefix, const struct san_ip *ip)
{
	return san_ip_is_v4(&prefix->ip) == san_ip_is_v4(ip) &&
		common_bits(&prefix->ip, ip) >= prefix->prefix_len;
}

bool
san_inet_is_on_link(const struct san_inet_conf *conf, const struct san_ip *ip)
{
	uint16_t i;

	for (i = 0; i < conf->nb_addrs; i++)
		if (holds(&conf->addrs[i], ip))
			return true;
	return false;
}

/** Of the same family, our address with the longest prefix that holds *peer*; else any. */
static const struct san_inet_addr *
best_source(const struct san_inet *in, const struct san_ip *peer, bool *on_link)
{
	const struct san_inet_addr *best = NULL;
	uint16_t i;

	*on_link = false;
	for (i = 0; i < in->conf.nb_addrs; i++) {
		const struct san_inet_addr *a = &in->conf.addrs[i];

		if (san_ip_is_v4(&a->ip) != san_ip_is_v4(peer))
			continue;
		if (holds(a, peer) && (!*on_link || a->prefix_len > best->prefix_len)) {
			best = a;
			*on_link = true;
		} else if (best == NULL) {
			best = a;
		}
	}
	return best;
}

static const struct san_inet_route *
best_route(const struct san_inet *in, const struct san_ip *ip)
{
	const struct san_inet_route *best = NULL;
	uint16_t i;

	for (i = 0; i < in->conf.nb_routes; i++) {
		const struct san_inet_route *r = &in->conf.routes[i];

		if (holds(&r->to, ip) && (best == NULL || r->to.prefix_len > best->to.prefix_len))
			best = r;
	}
	return best;
}

/* Who on the link takes packets for *ip*. NULL: nobody. */
static const struct san_ip *
next_hop(const struct san_inet *in, const struct san_ip *ip)
{
	const struct san_inet_route *route;
	bool on_link;

	if (!inet_is_unicast(ip) || best_source(in, ip, &on_link) == NULL)
		return NULL;
	if (on_link)
		return ip;
	route = best_route(in, ip);
	return route != NULL ? &route->gateway : NULL;
}

int
san_inet_source(const struct san_inet *in, const struct san_ip *peer, struct san_ip *src)
{
	const struct san_ip *hop = peer;
	const struct san_inet_addr *a;
	bool on_link;

	if (best_source(in, peer, &on_link) == NULL)
		return -EADDRNOTAVAIL;
	if (!san_inet_is_local(in, peer))
		hop = next_hop(in, peer);
	if (hop == NULL)
		return -ENETUNREACH;
	a = best_source(in, hop, &on_link);
	*src = a->ip;
	return 0;
}

/* ---- the table ---- */

static uint32_t *
bucket_of(const struct san_inet *in, const struct san_ip *ip)
{
	uint32_t h = 0;
	uint32_t word;
	unsigned int i;

	for (i = 0; i < sizeof(ip->b); i += sizeof(word)) {
		memcpy(&word, ip->b + i, sizeof(word));
		h = (h ^ word) * 0x9e3779b1u;
		h ^= h >> 15;
	}
	return &in->buckets[h & in->bucket_mask];
}

static struct inet_neigh *
find(const struct san_inet *in, const struct san_ip *ip)
{
	uint32_t i = *bucket_of(in, ip);

	while (i != INET_NONE && !san_ip_eq(&in->neigh[i].ip, ip))
		i = in->neigh[i].next;
	return i != INET_NONE ? &in->neigh[i] : NULL;
}

static void
del(struct san_inet *in, struct inet_neigh *e)
{
	uint32_t idx = (uint32_t)(e - in->neigh);
	uint32_t *link = bucket_of(in, &e->ip);

	while (*link != idx)
		link = &in->neigh[*link].next;
	*link = e->next;
	memset(e, 0, sizeof(*e));
	e->next = in->free_head;
	in->free_head = idx;
}

/** The one that will be missed least. Scans: only for a new entry in a full table. */
static struct inet_neigh *
victim(struct san_inet *in)
{
	struct inet_neigh *best = &in->neigh[0];
	uint32_t i;

	for (i = 1; i < in->conf.max_neighbours; i++) {
		struct inet_neigh *e = &in->neigh[i];

		if (e->used != best->used ? best->used : e->touched_ns < best->touched_ns)
			best = e;
	}
	return best;
}

static struct inet_neigh *
add(struct san_inet *in, const struct san_ip *ip, uint64_t now_ns)
{
	uint32_t *bucket = bucket_of(in, ip);
	struct inet_neigh *e;

	if (in->free_head == INET_NONE)
		del(in, victim(in));
	e = &in->neigh[in->free_head];
	in->free_head = e->next;
	e->ip = *ip;
	e->touched_ns = now_ns;
	e->next = *bucket;
	*bucket = (uint32_t)(e - in->neigh);
	return e;
}

static void
set_timer(struct san_inet *in, struct inet_neigh *e, uint64_t next_ns)
{
	e->next_ns = next_ns;
	in->next_ns = san_time_min(in->next_ns, next_ns);
}

static void
ask(struct san_inet *in, struct inet_neigh *e, uint64_t now_ns)
{
	/* a neighbour that we know is asked alone first; perhaps it has a new MAC by now */
	bool alone = e->state == INET_NEIGH_REFRESH && e->retries == 0;

	if (san_ip_is_v4(&e->ip))
		san_inet_arp_ask(in, &e->ip, alone ? &e->mac : NULL);
	else
		san_inet_nd_ask(in, &e->ip, alone ? &e->mac : NULL);
	set_timer(in, e, now_ns + in->conf.retry_ns);
}

static void
confirm(struct san_inet *in, struct inet_neigh *e, uint64_t now_ns)
{
	e->state = INET_NEIGH_REACHABLE;
	e->retries = 0;
	e->used = false;
	e->touched_ns = now_ns;
	set_timer(in, e, now_ns + in->conf.reachable_ns);
}

int
san_inet_resolve(struct san_inet *in, const struct san_ip *ip, uint64_t now_ns,
		 struct rte_ether_addr *mac)
{
	const struct san_ip *hop;
	struct inet_neigh *e;

	/* ourselves: the link may be a loop */
	if (san_inet_is_local(in, ip)) {
		*mac = in->conf.mac;
		return 0;
	}
	hop = next_hop(in, ip);
	if (hop == NULL)
		return -EHOSTUNREACH;
	e = find(in, hop);
	if (e == NULL) {
		e = add(in, hop, now_ns);
		e->state = INET_NEIGH_PENDING;
		ask(in, e, now_ns);
	}
	e->used = true;
	e->touched_ns = now_ns;
	if (e->state == INET_NEIGH_PENDING)
		return -EAGAIN;
	if (e->state == INET_NEIGH_FAILED)
		return -EHOSTUNREACH;
	*mac = e->mac;
	return 0;
}

static bool
is_neighbour(const struct san_inet *in, const struct san_ip *ip)
{
	bool on_link;

	return inet_is_unicast(ip) && best_source(in, ip, &on_link) != NULL && on_link &&
		!san_inet_is_local(in, ip);
}

void
san_inet_neigh_learn(struct san_inet *in, const struct inet_rx *rx, const struct inet_claim *claim)
{
	struct inet_neigh *e;

	/* only what can be a neighbour: else anybody could fill the table with anything */
	if (!is_neighbour(in, &claim->ip) || !rte_is_valid_assigned_ether_addr(&claim->mac))
		return;
	e = find(in, &claim->ip);
	if (e == NULL && !claim->create)
		return;
	if (e == NULL)
		e = add(in, &claim->ip, rx->now_ns);
	else if ((e->state == INET_NEIGH_REACHABLE || e->state == INET_NEIGH_REFRESH) &&
		 !claim->override && !rte_is_same_ether_addr(&e->mac, &claim->mac))
		return;
	e->mac = claim->mac;
	confirm(in, e, rx->now_ns);
	if (rx->learned != NULL) {
		*rx->learned = claim->ip;
		*rx->mac = claim->mac;
	}
}

void
san_inet_neigh_confirm(struct san_inet *in, const struct san_ip *ip, uint64_t now_ns)
{
	struct inet_neigh *e = find(in, ip);

	if (e != NULL && (e->state == INET_NEIGH_REACHABLE || e->state == INET_NEIGH_REFRESH))
		confirm(in, e, now_ns);
}

/** The entry's time has come. */
static void
expire(struct san_inet *in, struct inet_neigh *e, uint64_t now_ns)
{
	switch (e->state) {
	case INET_NEIGH_REACHABLE:
		if (!e->used) {
			del(in, e);
			break;
		}
		e->state = INET_NEIGH_REFRESH;
		ask(in, e, now_ns);
		break;
	case INET_NEIGH_PENDING:
	case INET_NEIGH_REFRESH:
		if (e->retries < in->conf.max_retries) {
			e->retries++;
			ask(in, e, now_ns);
		} else if (e->state == INET_NEIGH_PENDING) {
			e->state = INET_NEIGH_FAILED;
			set_timer(in, e, now_ns + in->conf.retry_ns * (in->conf.max_retries + 1u));
		} else {
			del(in, e);
		}
		break;
	default:
		del(in, e);
		break;
	}
}

uint64_t
san_inet_tick(struct san_inet *in, uint64_t now_ns)
{
	uint32_t i;

	if (now_ns < in->next_ns)
		return in->next_ns;
	in->next_ns = SAN_TIME_NEVER;
	for (i = 0; i < in->conf.max_neighbours; i++) {
		struct inet_neigh *e = &in->neigh[i];

		if (e->state == INET_NEIGH_FREE)
			continue;
		if (now_ns >= e->next_ns)
			expire(in, e, now_ns);
		else
			in->next_ns = san_time_min(in->next_ns, e->next_ns);
	}
	return in->next_ns;
}
