/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The neighbour table. inet_arp.c and inet_nd.c send the requests and parse the answers. (RT-31,
 * SYS-1, UDP-3)
 *
 *   FREE -> PENDING -> REACHABLE -> REFRESH -> REACHABLE ...       STALE -> REACHABLE, if used
 *   PENDING -> FAILED -> FREE       REFRESH -> FREE, without answer
 *   FREE -> STALE -> FREE           REACHABLE -> STALE, if not used
 *
 * An entry also becomes REFRESH when a connection finds that its peer is silent. (RT-38)
 *
 * A host that requests our address becomes STALE: it is known but not in use. An entry in use is
 * verified every few seconds, because datagrams have no ACK that would show that they arrive. The
 * kernel waits longer, so it finds a new MAC address of a neighbour later.
 *
 * The table has a fixed size. A new entry replaces the entry that has been STALE longest. If none
 * is STALE, it replaces one in another state.
 *
 * A few datagrams wait for a PENDING neighbour. A new one replaces the oldest. When the neighbour
 * becomes FAILED they are dropped, and the next send reports the error.
 *
 * Timer: next_ns of each entry. All entries stay in a state for the same time, so each state's list
 * is in the order of next_ns. Only the heads of the lists are checked, so the cost does not depend
 * on the number of entries (RT-36).
 */

#include "inet_priv.h"
#include "san_time.h"

#define STALE_NS (60 * SAN_NS_PER_S) /* as in the kernel */

int
san_inet_neigh_create(struct san_inet *in)
{
	uint32_t nb_buckets = rte_align32pow2(in->conf.max_neighbours);
	uint32_t i;

	for (i = 0; i < INET_NEIGH_MAX; i++)
		TAILQ_INIT(&in->states[i]);
	in->neigh = calloc(in->conf.max_neighbours, sizeof(*in->neigh));
	in->buckets = calloc(nb_buckets, sizeof(*in->buckets));
	in->waits = calloc(in->conf.max_waiting + 1u, sizeof(*in->waits));
	if (in->buckets == NULL ||
	    san_pool_create(&in->free_neigh, NULL, in->neigh, in->conf.max_neighbours,
			    sizeof(*in->neigh)) ||
	    san_pool_create(&in->free_waits, NULL, in->waits, in->conf.max_waiting,
			    sizeof(*in->waits)))
		return -ENOMEM;
	in->bucket_mask = nb_buckets - 1;
	return 0;
}

void
san_inet_neigh_destroy(struct san_inet *in)
{
	uint32_t i;

	for (i = 0; in->waits != NULL && i < in->conf.max_waiting; i++)
		rte_pktmbuf_free(in->waits[i].m);
	san_pool_destroy(&in->free_waits, NULL);
	san_pool_destroy(&in->free_neigh, NULL);
	free(in->waits);
	free(in->buckets);
	free(in->neigh);
}

/* ---- waiting datagrams ---- */

/** Take the next frame that waits for *e*. At least one waits. */
static struct rte_mbuf *
take_waiting(struct san_inet *in, struct inet_neigh *e)
{
	struct inet_wait *w = STAILQ_FIRST(&e->waits);
	struct rte_mbuf *m = w->m;

	e->nb_waiting -= w->is_first;
	STAILQ_REMOVE_HEAD(&e->waits, link);
	w->m = NULL;
	san_pool_give(&in->free_waits, w);
	return m;
}

static void
drop_oldest(struct san_inet *in, struct inet_neigh *e)
{
	do
		rte_pktmbuf_free(take_waiting(in, e));
	while (!STAILQ_EMPTY(&e->waits) && !STAILQ_FIRST(&e->waits)->is_first);
	in->drops[SAN_DROP_INET_NEIGH]++;
}

static void
drop_waiting(struct san_inet *in, struct inet_neigh *e)
{
	while (!STAILQ_EMPTY(&e->waits))
		drop_oldest(in, e);
}

bool
san_inet_neigh_wait(struct san_inet *in, struct inet_neigh *e, struct rte_mbuf **m, uint32_t n)
{
	struct inet_wait *w;
	uint32_t k;

	/* One neighbour gets at most half of the places: it may never answer. */
	if (e->nb_waiting >= in->conf.max_waiting / 2)
		drop_oldest(in, e);
	if (in->free_waits.nb < n)
		return false;
	for (k = 0; k < n; k++) {
		w = san_pool_take(&in->free_waits);
		*w = (struct inet_wait){.m = m[k], .is_first = k == 0};
		STAILQ_INSERT_TAIL(&e->waits, w, link);
	}
	e->nb_waiting++;
	return true;
}

/* ---- the table ---- */

static struct inet_bucket *
neigh_bucket_of(const struct san_inet *in, const struct san_ip *ip)
{
	return &in->buckets[san_inet_hash(ip, in->hash_seed) & in->bucket_mask];
}

static struct inet_neigh *
neigh_find(const struct san_inet *in, const struct san_ip *ip)
{
	struct inet_neigh *e;

	LIST_FOREACH(e, neigh_bucket_of(in, ip), in_bucket)
		if (san_wire_ip_eq(&e->ip, ip))
			break;
	return e;
}

static void
neigh_del(struct san_inet *in, struct inet_neigh *e)
{
	LIST_REMOVE(e, in_bucket);
	drop_waiting(in, e);
	TAILQ_REMOVE(&in->states[e->state], e, link);
	memset(e, 0, sizeof(*e));
	san_pool_give(&in->free_neigh, e);
}

static struct inet_neigh *
neigh_add(struct san_inet *in, const struct san_ip *ip)
{
	struct inet_neigh *e;
	uint32_t i;

	for (i = 0; in->free_neigh.nb == 0; i++) {
		e = TAILQ_FIRST(&in->states[i]);
		if (e != NULL) /* see enum inet_neigh_state */
			neigh_del(in, e);
	}
	e = san_pool_take(&in->free_neigh);
	e->ip = *ip;
	STAILQ_INIT(&e->waits);
	LIST_INSERT_HEAD(neigh_bucket_of(in, ip), e, in_bucket);
	return e;
}

/** Enter *state* for *ns*, which is the same for all entries in that state. */
static void
neigh_enter_state(struct san_inet *in, struct inet_neigh *e, enum inet_neigh_state state,
		  uint64_t ns, uint64_t now_ns)
{
	if (e->state != INET_NEIGH_FREE)
		TAILQ_REMOVE(&in->states[e->state], e, link);
	e->state = state;
	e->next_ns = now_ns + ns;
	TAILQ_INSERT_TAIL(&in->states[state], e, link);
}

static void
neigh_send_request(struct san_inet *in, struct inet_neigh *e, enum inet_neigh_state state,
		   uint64_t now_ns)
{
	/*
	 * The first request to a known neighbour is unicast. If there is no answer, the neighbour
	 * may have a new MAC address.
	 */
	const struct rte_ether_addr *mac =
		state == INET_NEIGH_REFRESH && e->retries == 0 ? &e->mac : NULL;
	struct san_ip src;

	if (san_inet_route_source(in, &e->ip, &src) == 0)
		(san_wire_ip_is_v4(&e->ip) ? san_inet_arp_ask : san_inet_nd_ask)(in, &src, &e->ip,
										 mac);
	neigh_enter_state(in, e, state, in->conf.retry_ns, now_ns);
}

static void
neigh_confirm(struct san_inet *in, struct inet_neigh *e, uint64_t now_ns)
{
	e->retries = 0;
	e->used = false;
	neigh_enter_state(in, e, INET_NEIGH_REACHABLE, in->conf.reachable_ns, now_ns);
}

int
san_inet_neigh_find(struct san_inet *in, const struct san_ip *hop, uint64_t now_ns,
		    struct inet_neigh **out)
{
	struct inet_neigh *e = neigh_find(in, hop);

	if (e == NULL) {
		e = neigh_add(in, hop);
		neigh_send_request(in, e, INET_NEIGH_PENDING, now_ns);
	}
	if (e->state == INET_NEIGH_STALE)
		neigh_enter_state(in, e, INET_NEIGH_REACHABLE, in->conf.reachable_ns, now_ns);
	e->used = true;
	*out = e;
	if (e->state == INET_NEIGH_PENDING)
		return -EAGAIN;
	return e->state == INET_NEIGH_FAILED ? -EHOSTUNREACH : 0;
}

static bool
neigh_is_known(const struct inet_neigh *e)
{
	return e->state != INET_NEIGH_PENDING && e->state != INET_NEIGH_FAILED;
}

void
san_inet_neigh_learn(struct san_inet *in, const struct inet_rx *rx, const struct inet_claim *claim)
{
	struct inet_neigh *e;
	struct rte_mbuf *m;

	/*
	 * Store only addresses that a neighbour can have. Otherwise forged packets could fill the
	 * table.
	 */
	if (!san_inet_is_unicast(&claim->ip) ||
	    !san_inet_route_is_on_link(&in->conf, &claim->ip) ||
	    san_inet_route_is_local(in, &claim->ip) ||
	    !rte_is_valid_assigned_ether_addr(&claim->mac))
		return;
	e = neigh_find(in, &claim->ip);
	if (e == NULL && !claim->create)
		return;
	if (e == NULL)
		e = neigh_add(in, &claim->ip);
	else if (neigh_is_known(e) && !claim->override &&
		 !rte_is_same_ether_addr(&e->mac, &claim->mac))
		return;
	e->mac = claim->mac;
	rx->r->was_pending = !neigh_is_known(e);
	if (e->state == INET_NEIGH_FREE || e->state == INET_NEIGH_STALE)
		neigh_enter_state(in, e, INET_NEIGH_STALE, STALE_NS, rx->now_ns);
	else
		neigh_confirm(in, e, rx->now_ns);
	while (!STAILQ_EMPTY(&e->waits)) {
		m = take_waiting(in, e);
		rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->dst_addr = e->mac;
		in->drops[SAN_DROP_TX_FULL] += san_inet_out_add(in, m) != SAN_DROP_NONE;
	}
	rx->r->what = SAN_INET_LEARNED;
	rx->r->ip = claim->ip;
	rx->r->mac = claim->mac;
}

void
san_inet_neigh_confirm(struct san_inet *in, const struct san_ip *ip, uint64_t now_ns)
{
	struct inet_neigh *e = neigh_find(in, ip);

	if (e != NULL && neigh_is_known(e) && e->state != INET_NEIGH_STALE)
		neigh_confirm(in, e, now_ns);
}

void
san_inet_neigh_verify(struct san_inet *in, const struct san_ip *hop, uint64_t now_ns)
{
	struct inet_neigh *e = neigh_find(in, hop);

	/* many connections may have the same neighbour: a recent confirmation serves them all */
	if (e == NULL || !neigh_is_known(e) || e->state == INET_NEIGH_REFRESH ||
	    (e->state == INET_NEIGH_REACHABLE &&
	     now_ns + in->conf.reachable_ns < e->next_ns + in->conf.retry_ns))
		return;
	neigh_send_request(in, e, INET_NEIGH_REFRESH, now_ns);
}

/** The timer of the entry has expired. */
static void
neigh_expire(struct san_inet *in, struct inet_neigh *e, uint64_t now_ns)
{
	const struct san_inet_conf *conf = &in->conf;

	switch (e->state) {
	case INET_NEIGH_REACHABLE:
		if (e->used)
			neigh_send_request(in, e, INET_NEIGH_REFRESH, now_ns);
		else
			neigh_enter_state(in, e, INET_NEIGH_STALE, STALE_NS, now_ns);
		break;
	case INET_NEIGH_PENDING:
	case INET_NEIGH_REFRESH:
		if (e->retries < conf->max_retries) {
			e->retries++;
			neigh_send_request(in, e, e->state, now_ns);
		} else if (e->state == INET_NEIGH_PENDING) {
			drop_waiting(in, e);
			neigh_enter_state(in, e, INET_NEIGH_FAILED,
					  conf->retry_ns * (conf->max_retries + 1u), now_ns);
		} else {
			neigh_del(in, e);
		}
		break;
	default:
		neigh_del(in, e);
		break;
	}
}

uint64_t
san_inet_neigh_tick(struct san_inet *in, uint64_t now_ns)
{
	uint64_t next_ns = SAN_TIME_NEVER;
	struct inet_neigh *e;
	uint32_t i;

	for (i = 0; i < INET_NEIGH_MAX; i++)
		while ((e = TAILQ_FIRST(&in->states[i])) != NULL && now_ns >= e->next_ns)
			neigh_expire(in, e, now_ns);
	for (i = 0; i < INET_NEIGH_MAX; i++) {
		e = TAILQ_FIRST(&in->states[i]);
		if (e != NULL)
			next_ns = san_time_min(next_ns, e->next_ns);
	}
	return next_ns;
}
