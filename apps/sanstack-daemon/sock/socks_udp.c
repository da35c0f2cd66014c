/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UDP sockets: their addresses, and what arrives at the kernel's socket instead of the port.
 * (UDP-4)
 *
 * DESIGN NOTES
 *
 * If the kernel has the port's device as well, it receives a copy of each datagram for the socket.
 * A filter on the kernel's socket drops what arrives by this device (helper_facts.c). A helper
 * attaches the filter, and forwards the rest.
 */

#include "socks_priv.h"

/* ---- properties from the kernel ---- */

/* Fill *names* for the lcore, and *shm* for programs. */
static void
take_names(const struct helper_facts *facts, uid_t uid, struct san_sock_names *n,
	   struct san_sock_shm *shm)
{
	uint32_t scope;

	*n = (struct san_sock_names){
		.family = facts->local.ss_family,
		.user = uid,
		.reuseport = facts->reuseport,
		.v6only = facts->v6only,
		.hops = facts->hops,
		.df = facts->df,
		.tos = facts->tos,
	};
	san_helper_facts_addr(&facts->local, &n->local, &n->port, &scope);
	san_socks_fill_addr(&shm->local, &n->local, n->port, n->family, scope);
	atomic_store(&shm->df, facts->df);
	shm->peer.family = 0;
	if (facts->peer.ss_family == 0)
		return;
	san_helper_facts_addr(&facts->peer, &n->peer, &n->peer_port, &scope);
	san_socks_fill_addr(&shm->peer, &n->peer, n->peer_port, n->family, scope);
}

static int
check_names(const struct app_port *port, const struct san_sock_names *n, struct shmq_rep *rep)
{
	if (n->port == 0)
		return san_socks_refuse(rep, -EINVAL, "not bound");
	if (!san_inet_is_any(&n->local) && !san_socks_is_ours(port, &n->local))
		return san_socks_refuse(rep, -EADDRNOTAVAIL,
					"bound to an address that is not the port's");
	return 0;
}

/* ---- creation ---- */

/* Create its memory, its pair, and its entry on the lcore. */
static int
socks_udp_make_shm(struct app_sock *s, struct app *a, const struct helper_facts *facts)
{
	struct san_sock_names names;
	struct san_sock_shm *shm;
	int rc = san_socks_memory(s, san_app_guard_id(a), &a->ans.fd);

	if (rc != 0)
		return rc;
	shm = s->mem.mem;
	take_names(facts, s->uid, &names, shm);
	atomic_init(&shm->nonblock, facts->nonblock);
	rc = check_names(s->port, &names, &a->ans.rep);
	names.port = 0; /* nothing is received before a helper holds the port */
	if (rc == 0)
		rc = san_socks_call(s, LCORE_ADD, &names);
	return rc == 0 ? san_socks_watch(s, false) : rc;
}

int
san_socks_udp_carry(struct app *a, const struct shmq_req *req)
{
	const struct san_engine_port *port = a->port->ctx->port;
	struct helper_msg m = {
		.op = HELPER_CARRY,
		/* the kernel's socket need not receive what the port receives */
		.filter = {
			.if_index = san_engine_sock_if_index(port),
			.whole_v4 = san_engine_sock_whole_v4(port),
			.local_only = req->sock.local_only != 0,
		},
	};
	struct passed *p = a->passed;
	struct shmq_rep *rep = &a->ans.rep;
	struct app_sock *s;
	int rc = san_socks_check_kernel(a->port, p->facts, IPPROTO_UDP, rep);

	if (rc != 0)
		return rc;
	if (san_socks_find(a->port, p->facts->cookie, true) != NULL)
		return san_socks_refuse(rep, -EALREADY, "it is carried");
	s = san_socks_take(a->port, a->uid, a->owner, SOCKS_BYTES, rep);
	if (s == NULL)
		return -ENOSPC;
	s->app = a;
	s->cookie = p->facts->cookie;
	rc = socks_udp_make_shm(s, a, p->facts);
	if (rc == 0) {
		san_socks_keep(s, p);
		rc = san_socks_ask(s, &m, a);
	}
	if (rc != -EINPROGRESS)
		san_socks_discard(s);
	return rc;
}

int
san_socks_udp_carried(struct app_sock *s, const struct helper_msg *m, struct shmq_rep *rep)
{
	if (m->rc == 0)
		return san_socks_udp_rename(s, &m->facts, rep);
	return san_socks_refuse(rep, m->rc,
				m->rc == -EADDRINUSE ? "another socket got its port" :
						       strerror(-m->rc));
}

/* ---- changes ---- */

int
san_socks_udp_rename(struct app_sock *s, const struct helper_facts *facts, struct shmq_rep *rep)
{
	struct san_sock_names names;
	int rc;

	take_names(facts, s->uid, &names, s->mem.mem);
	/* a socket whose address is not the port's any more receives nothing from the port */
	rc = check_names(s->port, &names, rep);
	if (rc == 0 && facts->device != 0 &&
	    facts->device != (int)san_engine_sock_if_index(s->port->ctx->port))
		rc = san_socks_refuse(rep, -EXDEV, "bound to a device that is not the port's");
	if (rc != 0)
		names.port = 0;
	san_socks_call(s, LCORE_NAME, &names);
	return rc;
}

/* Index among the groups of *s*, or nb_groups if it is not there. */
static uint32_t
socks_udp_place_of(const struct app_sock *s, const struct san_ip *group)
{
	uint32_t i;

	for (i = 0; i < s->nb_groups && !san_wire_ip_eq(&s->groups[i], group); i++)
		;
	return i;
}

/* Number of groups of *owner*, or of all (NULL), without *group*. */
static uint64_t
count_groups(const struct app_port *port, const uid_t *owner, const struct san_ip *group)
{
	struct app_sock *s = NULL, *o;
	uint64_t nb = 0;
	bool is_new;
	uint32_t i;

	while ((s = san_socks_next(port, s)) != NULL) {
		for (i = 0; i < s->nb_groups; i++) {
			is_new = (owner == NULL || s->owner == *owner) &&
				!san_wire_ip_eq(&s->groups[i], group);
			for (o = NULL; is_new && (o = san_socks_next(port, o)) != s;)
				is_new = (owner != NULL && o->owner != *owner) ||
					socks_udp_place_of(o, &s->groups[i]) == o->nb_groups;
			nb += is_new;
		}
	}
	return nb;
}

int
san_socks_udp_group(struct app_sock *s, const struct shmq_req *req, struct shmq_rep *rep)
{
	bool leaves = req->sock.leaves != 0;
	struct san_ip group;
	struct users_want w = {.what = USERS_GROUPS, .owner = s->owner, .nb = 1};
	uint32_t i;
	int rc;

	memcpy(group.b, req->sock.group, sizeof(group.b));
	if (!leaves) {
		/* a user may be in its share of the port's groups, with any number of sockets */
		w.own = count_groups(s->port, &s->owner, &group);
		w.others = count_groups(s->port, NULL, &group);
		w.others -= RTE_MIN(w.others, w.own);
		if (san_apps_check_beside(s->port, w) != 0)
			return -ENOBUFS;
	}
	rc = san_socks_call(s, leaves ? LCORE_LEAVE : LCORE_JOIN, &group);
	if (!leaves && rc == -EADDRINUSE)
		return 0; /* joined on another device of the kernel */
	if (rc == 0) {
		i = socks_udp_place_of(s, &group);
		if (leaves && i < s->nb_groups)
			s->groups[i] = s->groups[--s->nb_groups];
		else if (!leaves && i == s->nb_groups && i < SAN_SOCK_GROUPS)
			s->groups[s->nb_groups++] = group;
		rc = san_engine_sock_groups(s->port->ctx->port);
	}
	return rc == 0 ? 0 : san_socks_refuse(rep, rc, "the port can't be in that group");
}
