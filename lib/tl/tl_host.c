/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Peer hosts. The resources that a silent peer holds are limited for each host in each partition,
 * not for each connection: a host with a thousand connections has one share (RT-35). A host has a
 * record while it has an open connection, so a free record always exists.
 */

#include <errno.h>

#include <rte_jhash.h>

#include "tl_priv.h"

int
san_tl_host_init(struct san_tl *tl)
{
	struct san_prng prng = tl->pdl->prng; /* a copy: the original's sequence does not change */
	uint32_t i, n = rte_align32pow2(tl->conf.max_conns);

	tl->hosts = san_mem_calloc(tl->conf.mem, tl->conf.max_conns, sizeof(*tl->hosts));
	tl->buckets = san_mem_calloc(tl->conf.mem, n, sizeof(*tl->buckets));
	if (tl->hosts == NULL || tl->buckets == NULL)
		return -ENOMEM;
	tl->bucket_mask = n - 1;
	/* so that peers cannot choose addresses that fall into one bucket */
	tl->hash_seed = (uint32_t)san_prng_u64(&prng);
	for (i = tl->conf.max_conns; i != 0; i--)
		SLIST_INSERT_HEAD(&tl->free_hosts, &tl->hosts[i - 1], bucket_link);
	return 0;
}

static struct san_tl_bucket *
tl_host_bucket_of(const struct san_tl *tl, const struct san_ip *ip, uint16_t pkey)
{
	return &tl->buckets[rte_jhash(ip->b, sizeof(ip->b), tl->hash_seed ^ pkey) &
			    tl->bucket_mask];
}

void
san_tl_host_join(struct san_tl *tl, struct san_tl_conn *tc)
{
	struct san_pdl_conn *c = san_tl_pdl_conn(tl, tc);
	struct san_tl_bucket *bucket = tl_host_bucket_of(tl, &c->path.dst, c->pkey);
	struct san_tl_host *h;

	SLIST_FOREACH(h, bucket, bucket_link)
		if (h->pkey == c->pkey && san_wire_ip_eq(&h->ip, &c->path.dst))
			break;
	if (h == NULL) {
		h = SLIST_FIRST(&tl->free_hosts);
		SAN_VERIFY(h != NULL);
		SLIST_REMOVE_HEAD(&tl->free_hosts, bucket_link);
		*h = (struct san_tl_host){.ip = c->path.dst, .pkey = c->pkey};
		TAILQ_INIT(&h->admit);
		TAILQ_INIT(&h->want);
		SLIST_INSERT_HEAD(bucket, h, bucket_link);
		tl->pdl->nb_hosts++;
	}
	h->nb_conns++;
	tc->host = h;
	c->host = (uint16_t)(h - tl->hosts);
}

void
san_tl_host_leave(struct san_tl *tl, struct san_tl_conn *tc)
{
	struct san_tl_host *h = tc->host;

	tc->host = NULL;
	if (--h->nb_conns != 0)
		return;
	SAN_VERIFY(h->expired == 0 && h->nb_rxns == 0 && !h->in_admit);
	SAN_VERIFY(h->nb_txns == 0 && h->nb_busy == 0 && h->nb_rings == 0 && h->nb_refused == 0);
	san_tl_path_end(tl, &h->paths[false]);
	san_tl_path_end(tl, &h->paths[true]);
	SLIST_REMOVE(tl_host_bucket_of(tl, &h->ip, h->pkey), h, san_tl_host, bucket_link);
	SLIST_INSERT_HEAD(&tl->free_hosts, h, bucket_link);
	tl->pdl->nb_hosts--;
}

static void
tl_host_check_one(const struct san_tl *tl, const struct san_tl_host *h)
{
	uint32_t nb_conns = 0, nb_rxns = 0, nb_heads[2] = {0}, nb_pullers = 0;
	uint32_t nb_txns = 0, nb_busy = 0, nb_rings = 0, nb_refused = 0, nb_solicit = 0;
	uint32_t nb_held = 0, expired = 0, slot;
	const struct san_tl_conn *tc;
	bool is_promised;

	for (slot = 0; slot < tl->conf.max_conns; slot++) {
		tc = &tl->conns[slot];
		if (tc->host != h)
			continue;
		nb_conns++;
		is_promised = (tc->want & SAN_WANT_PROMISED) != 0;
		nb_txns += tc->nb_txns + is_promised;
		nb_busy += tc->nb_txns != 0 || is_promised;
		nb_rings += tc->txn_mask != 0;
		nb_refused += tc->refused != NULL;
		nb_solicit += tc->nb_solicit;
		nb_rxns += tc->nb_rxns;
		if (tc->cur != NULL)
			nb_heads[tc->cur->solicited]++;
		nb_pullers += tc->nb_pulling != 0;
		nb_held += tc->nb_held;
		expired += tc->expired;
	}
	SAN_VERIFY(nb_conns == h->nb_conns && nb_rxns == h->nb_rxns && expired == h->expired);
	SAN_VERIFY(nb_txns == h->nb_txns && nb_busy == h->nb_busy && nb_rings == h->nb_rings);
	SAN_VERIFY(nb_refused == h->nb_refused && nb_solicit == h->nb_solicit);
	SAN_VERIFY(nb_heads[0] == h->nb_heads[0] && nb_heads[1] == h->nb_heads[1]);
	SAN_VERIFY(nb_pullers == h->nb_pullers);
	SAN_VERIFY(nb_held == tl->pdl->uses[h - tl->hosts].nb_held);
	SAN_VERIFY(h->slow == (h->expired > tl->conf.expired_bytes));
	SAN_VERIFY(h->in_admit == !TAILQ_EMPTY(&h->admit));
}

void
san_tl_host_check(const struct san_tl *tl)
{
	uint64_t over[2] = {0}, charged = 0, room = 0;
	const struct san_tl_path *p;
	uint32_t i, k;

	for (i = 0; i < tl->conf.max_conns; i++) {
		if (tl->hosts[i].nb_conns == 0)
			continue;
		tl_host_check_one(tl, &tl->hosts[i]);
		for (k = 0; k < 2; k++) {
			p = &tl->hosts[i].paths[k];
			over[k] += san_tl_path_over(p);
			charged += p->charged;
			room += p->room;
		}
	}
	SAN_VERIFY(over[0] == tl->pulled_used && over[0] + over[1] == tl->budget_used);
	SAN_VERIFY(charged == (uint64_t)tl->budget_used + tl->path_used);
	SAN_VERIFY(room == tl->path_room);
}
