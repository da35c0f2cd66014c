/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The neighbour table. Asking and answering is ARP (inet_arp.c) or ND (inet_nd.c).
 * (RT-31, SYS-1, UDP-3)
 *
 *   FREE -> PENDING -> REACHABLE -> REFRESH -> REACHABLE ...
 *   PENDING -> FAILED -> FREE           REFRESH -> FREE, when nobody answers
 *
 * REACHABLE -> REFRESH also as soon as a connection finds that its peer is silent. (RT-38)
 *
 * An entry that nobody looked up since it was confirmed is forgotten instead of
 * refreshed. The table is of fixed size: a new entry replaces one that nobody
 * looked up, or else the one touched longest ago.
 *
 * Datagrams wait for a PENDING neighbour, few of each: a new one drives out the oldest.
 * With FAILED they are dropped, and who sends next is told.
 *
 * Timer: next_ns of each entry, the earliest in in->next_ns; the table is scanned only
 * when that has come.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "inet_priv.h"
#include "san_assert.h"
#include "san_time.h"

int
san_inet_neigh_create(struct san_inet *in)
{
	uint32_t nb_buckets = rte_align32pow2(in->conf.max_neighbours);
	uint32_t i;

	in->next_ns = SAN_TIME_NEVER;
	in->neigh = calloc(in->conf.max_neighbours, sizeof(*in->neigh));
	in->buckets = calloc(nb_buckets, sizeof(*in->buckets));
	in->waits = calloc(in->conf.max_waiting + 1u, sizeof(*in->waits));
	if (in->neigh == NULL || in->buckets == NULL || in->waits == NULL)
		return -ENOMEM;
	for (i = 0; i < nb_buckets; i++)
		in->buckets[i] = INET_NONE;
	for (i = 0; i < in->conf.max_neighbours; i++)
		in->neigh[i].next = i + 1 < in->conf.max_neighbours ? i + 1 : INET_NONE;
	in->wait_free = INET_NONE;
	for (i = 0; i < in->conf.max_waiting; i++) {
		in->waits[i].next = in->wait_free;
		in->wait_free = i;
	}
	in->bucket_mask = nb_buckets - 1;
	return 0;
}

void
san_inet_neigh_destroy(struct san_inet *in)
{
	uint32_t i;

	for (i = 0; in->waits != NULL && i < in->conf.max_waiting; i++)
		rte_pktmbuf_free(in->waits[i].m);
	free(in->waits);
	free(in->buckets);
	free(in->neigh);
}

/* ---- datagrams that wait ---- */

/** The next frame that waits for *e*, which must have one. */
static struct rte_mbuf *
take_waiting(struct san_inet *in, struct inet_neigh *e)
{
	uint32_t i = e->wait_head;
	struct inet_wait *w = &in->waits[i];
	struct rte_mbuf *m = w->m;

	e->nb_waiting -= w->is_first;
	e->wait_head = w->next;
	w->m = NULL;
	w->next = in->wait_free;
	in->wait_free = i;
	return m;
}

static void
drop_oldest(struct san_inet *in, struct inet_neigh *e)
{
	do
		rte_pktmbuf_free(take_waiting(in, e));
	while (e->wait_head != INET_NONE && !in->waits[e->wait_head].is_first);
	in->drops[SAN_DROP_INET_NEIGH]++;
}

static void
drop_waiting(struct san_inet *in, struct inet_neigh *e)
{
	while (e->wait_head != INET_NONE)
		drop_oldest(in, e);
}

/** Its MAC is known now. */
static void
send_waiting(struct san_inet *in, struct inet_neigh *e)
{
	struct rte_mbuf *m;

	while (e->wait_head != INET_NONE) {
		m = take_waiting(in, e);
		rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->dst_addr = e->mac;
		in->drops[SAN_DROP_TX_FULL] += san_inet_out_add(in, m) != SAN_DROP_NONE;
	}
}

static bool
has_room(const struct san_inet *in, uint32_t n)
{
	uint32_t i = in->wait_free;

	while (n > 0 && i != INET_NONE) {
		i = in->waits[i].next;
		n--;
	}
	return n == 0;
}

bool
san_inet_neigh_wait(struct san_inet *in, struct inet_neigh *e, struct rte_mbuf **m, uint32_t n)
{
	uint32_t i, k;

	/* one that does not answer leaves others room */
	if (e->nb_waiting >= in->conf.max_waiting / 2)
		drop_oldest(in, e);
	if (!has_room(in, n))
		return false;
	for (k = 0; k < n; k++) {
		i = in->wait_free;
		in->wait_free = in->waits[i].next;
		in->waits[i] = (struct inet_wait){.m = m[k], .next = INET_NONE, .is_first = k == 0};
		if (e->wait_head == INET_NONE)
			e->wait_head = i;
		else
			in->waits[e->wait_tail].next = i;
		e->wait_tail = i;
	}
	e->nb_waiting++;
	return true;
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
	drop_waiting(in, e);
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
	e->wait_head = INET_NONE;
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
san_inet_neigh_find(struct san_inet *in, const struct san_ip *hop, uint64_t now_ns,
		    struct inet_neigh **out)
{
	struct inet_neigh *e = find(in, hop);

	if (e == NULL) {
		e = add(in, hop, now_ns);
		e->state = INET_NEIGH_PENDING;
		ask(in, e, now_ns);
	}
	e->used = true;
	e->touched_ns = now_ns;
	*out = e;
	if (e->state == INET_NEIGH_PENDING)
		return -EAGAIN;
	return e->state == INET_NEIGH_FAILED ? -EHOSTUNREACH : 0;
}

static bool
is_neighbour(const struct san_inet *in, const struct san_ip *ip)
{
	bool on_link;

	return inet_is_unicast(ip) && san_inet_best_source(in, ip, &on_link) != NULL && on_link &&
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
	send_waiting(in, e);
	rx->r->what = SAN_INET_LEARNED;
	rx->r->ip = claim->ip;
	rx->r->mac = claim->mac;
}

void
san_inet_neigh_confirm(struct san_inet *in, const struct san_ip *ip, uint64_t now_ns)
{
	struct inet_neigh *e = find(in, ip);

	if (e != NULL && (e->state == INET_NEIGH_REACHABLE || e->state == INET_NEIGH_REFRESH))
		confirm(in, e, now_ns);
}

void
san_inet_neigh_doubt(struct san_inet *in, const struct san_ip *hop, uint64_t now_ns)
{
	struct inet_neigh *e = find(in, hop);

	/* many connections may doubt one neighbour: what it just confirmed holds for all */
	if (e == NULL || e->state != INET_NEIGH_REACHABLE ||
	    now_ns + in->conf.reachable_ns < e->next_ns + in->conf.retry_ns)
		return;
	e->state = INET_NEIGH_REFRESH;
	ask(in, e, now_ns);
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
			drop_waiting(in, e);
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
san_inet_neigh_tick(struct san_inet *in, uint64_t now_ns)
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
