/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Find the socket of a datagram (UDP-3, UDP-6): of those with its port, the one with the most
 * specific name. A connected socket receives from its peer only and goes before one that is bound
 * to an address, which goes before one that is bound to any. Sockets that share the port
 * (reuseport) are chosen by a hash of the sender. Of other equals, the one that was named last is
 * chosen, as in the kernel.
 */

#include <errno.h>

#include <rte_hash_crc.h>

#include "sock_priv.h"

void
san_sock_find_link(struct san_socks *all, struct san_sock *s)
{
	if (s->names.port == 0)
		return;
	s->next = all->ports[s->names.port];
	all->ports[s->names.port] = san_sock_id(all, s);
}

void
san_sock_find_unlink(struct san_socks *all, struct san_sock *s)
{
	uint32_t *at = &all->ports[s->names.port];

	if (s->names.port == 0)
		return;
	while (&all->socks[*at] != s)
		at = &all->socks[*at].next;
	*at = s->next;
}

/** How specific the name of *s* is for *d*; -1: *d* is not for *s*. */
static int
sock_find_score(const struct san_sock *s, const struct san_inet_dgram *d)
{
	const struct san_sock_names *n = &s->names;
	bool is_v4 = san_wire_ip_is_v4(&d->dst);
	int sum = 0;

	if (n->family == AF_INET ? !is_v4 : is_v4 && n->v6only)
		return -1;
	if (!san_inet_is_any(&n->local)) {
		if (!san_wire_ip_eq(&n->local, &d->dst))
			return -1;
		sum += 2;
	}
	if (n->peer_port != 0) {
		if (n->peer_port != d->sport || !san_wire_ip_eq(&n->peer, &d->src))
			return -1;
		sum += 4;
	}
	return sum + (n->family == AF_INET);
}

static bool
sock_find_shares(const struct san_sock *a, const struct san_sock *b)
{
	return a->names.reuseport && b->names.reuseport && a->names.user == b->names.user &&
		a->names.family == b->names.family && a->names.peer_port == 0 &&
		b->names.peer_port == 0 && san_wire_ip_eq(&a->names.local, &b->names.local);
}

/** One of the sockets that share with *best*, always the same for one sender. */
static struct san_sock *
sock_find_spread(struct san_socks *all, const struct san_inet_dgram *d, struct san_sock *best)
{
	uint64_t src[2]; /* aligned: rte_hash_crc() reads words */
	uint32_t i, nb = 0, hash, turn;
	struct san_sock *s;

	for (i = all->ports[d->dport]; i != SOCK_NONE; i = all->socks[i].next)
		nb += sock_find_shares(best, &all->socks[i]);
	if (nb < 2)
		return best;
	memcpy(src, &d->src, sizeof(src));
	hash = rte_hash_crc(src, sizeof(src), d->sport);
	turn = (uint32_t)((uint64_t)hash * nb >> 32);
	for (i = all->ports[d->dport]; i != SOCK_NONE; i = s->next) {
		s = &all->socks[i];
		if (sock_find_shares(best, s) && turn-- == 0)
			return s;
	}
	return best;
}

struct san_sock *
san_sock_find(struct san_socks *all, const struct san_inet_dgram *d)
{
	struct san_sock *best = NULL;
	int most = -1, now;
	uint32_t i;

	for (i = all->ports[d->dport]; i != SOCK_NONE; i = all->socks[i].next) {
		now = sock_find_score(&all->socks[i], d);
		if (now > most) {
			most = now;
			best = &all->socks[i];
		}
	}
	return best != NULL && best->names.reuseport ? sock_find_spread(all, d, best) : best;
}

/* ---- groups ---- */

static bool
sock_find_in_group(const struct san_sock *s, const struct san_ip *group, uint32_t *at)
{
	for (*at = 0; *at < s->nb_groups; (*at)++)
		if (san_wire_ip_eq(&s->groups[*at], group))
			return true;
	return false;
}

int
san_sock_find_join(struct san_socks *all, uint32_t id, const struct san_ip *group)
{
	struct san_sock *s = &all->socks[id];
	uint32_t at;

	if (sock_find_in_group(s, group, &at))
		return -EADDRINUSE;
	if (at == SAN_SOCK_GROUPS)
		return -ENOBUFS;
	s->groups[s->nb_groups++] = *group;
	return 0;
}

int
san_sock_find_leave(struct san_socks *all, uint32_t id, const struct san_ip *group)
{
	struct san_sock *s = &all->socks[id];
	uint32_t at;

	if (!sock_find_in_group(s, group, &at))
		return -EADDRNOTAVAIL;
	s->groups[at] = s->groups[--s->nb_groups];
	return 0;
}

/* A broadcast is for every matching socket; a datagram to a group is for its members. */
static bool
is_member(const struct san_sock *s, const struct san_ip *dst)
{
	bool is_v4 = san_wire_ip_is_v4(dst);
	uint32_t at;

	return (is_v4 ? dst->b[12] >> 4 != 0xe : dst->b[0] != 0xff) ||
		sock_find_in_group(s, dst, &at);
}

struct san_sock *
san_sock_find_next(struct san_socks *all, const struct san_inet_dgram *d, struct san_sock *s)
{
	uint32_t i = s == NULL ? all->ports[d->dport] : s->next;

	for (; i != SOCK_NONE; i = all->socks[i].next)
		if (sock_find_score(&all->socks[i], d) >= 0 && is_member(&all->socks[i], &d->dst))
			return &all->socks[i];
	return NULL;
}
