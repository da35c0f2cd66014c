/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Structures go as they are, with places of descriptors instead of descriptors and numbers of
 * applications instead of pointers to them. Pointers into memory that both daemons map, the
 * engine's and the applications', stay what they are.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app_state.h"

#define NO_PORT UINT16_MAX

enum saved_kind {
	SAVED_END = 0,
	SAVED_QP,
	SAVED_CQ,
	SAVED_MR,
	SAVED_LISTENER,
	SAVED_REQUEST,
};

/** Before each thing that an application holds. */
struct saved {
	uint32_t kind; /**< enum saved_kind */
	uint32_t index;
	uint32_t app; /**< its number */
	uint32_t pad;
};

struct saved_port {
	char name[SAN_ENGINE_NAME];
	uintptr_t at;
	size_t max;
	int fd;
	struct rtsan_caps caps;
	uint32_t next_listener;
	bool used[SAN_ENGINE_APPS];
	uint16_t last_id;
};

/* ---- save ---- */

static void
save_thing(struct state *st, enum saved_kind kind, uint32_t index, const struct app *a,
	   const void *p, size_t len)
{
	const struct saved s = {.kind = kind, .index = index, .app = a->id};

	state_put(st, &s, sizeof(s));
	state_put(st, p, len);
}

static void
save_queues(const struct app_port *port, struct state *st)
{
	struct app_qp qp;
	struct app_cq cq;
	uint32_t i;

	for (i = 0; i < port->caps.max_cqs; i++) {
		cq = port->cqs[i];
		if (cq.app == NULL)
			continue;
		cq.mem.fd = state_put_fd(st, cq.mem.fd);
		cq.wake_sock = state_put_fd(st, cq.wake_sock);
		save_thing(st, SAVED_CQ, i, cq.app, &cq, sizeof(cq));
	}
	for (i = 0; i < port->caps.max_qps; i++) {
		qp = port->qps[i];
		if (qp.app == NULL)
			continue;
		qp.mem.fd = state_put_fd(st, qp.mem.fd);
		save_thing(st, SAVED_QP, i, qp.app, &qp, sizeof(qp));
	}
}

static void
save_things(const struct app_port *port, struct state *st)
{
	const struct saved end = {.kind = SAVED_END};
	const struct app_request *r;
	const struct app_listener *l;
	struct app_mr mr;
	uint32_t i;

	save_queues(port, st);
	for (i = 0; i < port->caps.max_mrs; i++) {
		mr = port->mrs[i];
		if (mr.app == NULL)
			continue;
		mr.mem.fd = state_put_fd(st, mr.mem.fd);
		save_thing(st, SAVED_MR, i, mr.app, &mr, sizeof(mr));
	}
	LIST_FOREACH(l, &port->listeners, link)
		save_thing(st, SAVED_LISTENER, 0, l->app, l, sizeof(*l));
	for (i = 0; i < port->caps.max_qps; i++) {
		r = &port->requests[i];
		if (r->app != NULL)
			save_thing(st, SAVED_REQUEST, i, r->app, r, sizeof(*r));
	}
	state_put(st, &end, sizeof(end));
}

static void
save_port(const struct app_port *port, struct state *st)
{
	struct saved_port s = {
		.at = (uintptr_t)port->mem,
		.max = san_mem_max(port->mem),
		.fd = state_put_fd(st, port->mem_fd),
		.caps = port->caps,
		.next_listener = port->next_listener,
		.last_id = port->last_id,
	};

	strcpy(s.name, port->name);
	memcpy(s.used, port->used, sizeof(s.used));
	state_put(st, &s, sizeof(s));
}

static void
save_app(const struct app *a, struct state *st)
{
	uint16_t port = a->port != NULL ? a->port->index : NO_PORT;
	const struct app_event *late;
	struct app copy = *a;
	int i;

	copy.sock = state_put_fd(st, a->sock);
	copy.wake_sock = state_put_fd(st, a->wake_sock);
	copy.ctl_mem.fd = a->ctl != NULL ? state_put_fd(st, a->ctl_mem.fd) : -1;
	for (i = 0; i < SAN_ENGINE_LCORES; i++)
		copy.wake_fds[i] = state_put_fd(st, a->wake_fds[i]);
	state_put(st, &port, sizeof(port));
	state_put(st, &copy, sizeof(copy));
	STAILQ_FOREACH(late, &a->late, link)
		state_put(st, &late->ev, sizeof(late->ev));
}

void
apps_save(const struct apps *all, struct state *st)
{
	const struct app *a;
	uint32_t i, nb = 0;

	state_put(st, &all->nb_ports, sizeof(all->nb_ports));
	for (i = 0; i < all->nb_ports; i++)
		save_port(&all->ports[i], st);
	LIST_FOREACH(a, &all->list, link)
		nb += !a->over;
	state_put(st, &nb, sizeof(nb));
	LIST_FOREACH(a, &all->list, link)
		if (!a->over)
			save_app(a, st);
	for (i = 0; i < all->nb_ports; i++)
		save_things(&all->ports[i], st);
}

/* ---- load ---- */

static int
take_mem(struct app_mem *m, const struct app *a, struct state *st)
{
	m->fd = state_get_fd(st, m->fd);
	return st->failed ? -EPROTO : app_mem_take(m, app_port_guard_id(a->port, a->id));
}

static int
load_port(struct apps *all, struct state *st)
{
	struct app_port *port = &all->ports[all->nb_ports];
	struct saved_port s;
	struct san_mem *mem;
	int rc, fd;

	state_get(st, &s, sizeof(s));
	if (st->failed || all->nb_ports >= all->conf->nb_ports)
		return -EPROTO;
	fd = state_get_fd(st, s.fd);
	rc = san_mem_open(fd, s.at, s.max, &mem);
	if (rc != 0)
		return rc;
	/* the names are those of our own file: it says the same, or we would not be here */
	rc = app_port_init(port, all->conf->ports[all->nb_ports].name, all->conf, &s.caps);
	if (rc != 0)
		return rc;
	port->mem = mem;
	port->mem_fd = fd;
	port->index = (uint16_t)all->nb_ports++;
	port->next_listener = s.next_listener;
	port->last_id = s.last_id;
	memcpy(port->used, s.used, sizeof(port->used));
	return 0;
}

static int
load_late(struct app *a, struct state *st)
{
	struct app_event *late;
	uint32_t i;

	STAILQ_INIT(&a->late);
	for (i = 0; i < a->nb_late; i++) {
		late = malloc(sizeof(*late));
		if (late == NULL)
			return -ENOMEM;
		state_get(st, &late->ev, sizeof(late->ev));
		STAILQ_INSERT_TAIL(&a->late, late, link);
	}
	return 0;
}

static int
load_app(struct apps *all, struct state *st)
{
	struct app *a = malloc(sizeof(*a));
	uint16_t port;
	int i, rc;

	if (a == NULL)
		return -ENOMEM;
	state_get(st, &port, sizeof(port));
	state_get(st, a, sizeof(*a));
	if (st->failed || (port != NO_PORT && port >= all->nb_ports)) {
		free(a);
		return -EPROTO;
	}
	a->port = port != NO_PORT ? &all->ports[port] : NULL;
	a->is_paused = false;
	a->sock = state_get_fd(st, a->sock);
	a->wake_sock = state_get_fd(st, a->wake_sock);
	for (i = 0; i < SAN_ENGINE_LCORES; i++)
		a->wake_fds[i] = state_get_fd(st, a->wake_fds[i]);
	rc = load_late(a, st);
	LIST_INSERT_HEAD(&all->list, a, link);
	all->nb++;
	all->nb_attached += a->attached;
	if (a->attached)
		a->port->nb_attached++;
	return rc == 0 && a->ctl != NULL ? take_mem(&a->ctl_mem, a, st) : rc;
}

static struct app *
find_app(const struct apps *all, const struct app_port *port, uint32_t id)
{
	struct app *a;

	LIST_FOREACH(a, &all->list, link)
		if (a->port == port && a->id == id)
			return a;
	return NULL;
}

static int
load_listener(struct app_port *port, struct app *a, struct state *st)
{
	struct app_listener *l = malloc(sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	state_get(st, l, sizeof(*l));
	l->app = a;
	LIST_INSERT_HEAD(&port->listeners, l, link);
	return 0;
}

static int
load_thing(struct app_port *port, const struct saved *s, struct app *a, struct state *st)
{
	struct app_request *r = &port->requests[s->index % port->caps.max_qps];
	struct app_qp *qp = &port->qps[s->index % port->caps.max_qps];
	struct app_cq *cq = &port->cqs[s->index % port->caps.max_cqs];
	struct app_mr *mr = &port->mrs[s->index % port->caps.max_mrs];

	switch (s->kind) {
	case SAVED_QP:
		state_get(st, qp, sizeof(*qp));
		qp->app = a;
		return take_mem(&qp->mem, a, st);
	case SAVED_CQ:
		state_get(st, cq, sizeof(*cq));
		cq->app = a;
		cq->wake_sock = state_get_fd(st, cq->wake_sock);
		return take_mem(&cq->mem, a, st);
	case SAVED_MR:
		state_get(st, mr, sizeof(*mr));
		mr->app = a;
		return take_mem(&mr->mem, a, st);
	case SAVED_LISTENER:
		return load_listener(port, a, st);
	case SAVED_REQUEST:
		state_get(st, r, sizeof(*r));
		r->app = a;
		return 0;
	default:
		return -EPROTO;
	}
}

static int
load_things(const struct apps *all, struct app_port *port, struct state *st)
{
	struct saved s;
	struct app *a;
	int rc = 0;

	for (;;) {
		state_get(st, &s, sizeof(s));
		if (rc != 0 || st->failed || s.kind == SAVED_END)
			return st->failed ? -EPROTO : rc;
		a = find_app(all, port, s.app);
		rc = a != NULL ? load_thing(port, &s, a, st) : -EPROTO;
	}
}

int
apps_load_ports(struct apps *all, struct state *st)
{
	uint32_t nb_ports, i;
	int rc = 0;

	state_get(st, &nb_ports, sizeof(nb_ports));
	for (i = 0; rc == 0 && i < nb_ports; i++)
		rc = load_port(all, st);
	return rc;
}

int
apps_load(struct apps *all, struct state *st)
{
	uint32_t nb, i;
	int rc = 0;

	state_get(st, &nb, sizeof(nb));
	for (i = 0; rc == 0 && i < nb; i++)
		rc = load_app(all, st);
	for (i = 0; rc == 0 && i < all->nb_ports; i++)
		rc = load_things(all, &all->ports[i], st);
	return st->failed ? -EPROTO : rc;
}

/* ---- attach ---- */

static int
attach(const struct app *a)
{
	struct san_bells *bells[SAN_ENGINE_LCORES];
	const struct app_port *port = a->port;
	uint32_t i;

	for (i = 0; i < port->caps.nb_lcores; i++) {
		bells[i] = shmq_bells(a->ctl, i, port->nb_bells);
		/* who was told that its lcore sleeps is told again when it does */
		san_bells_awake(bells[i]);
	}
	return dpdk_app_add(port->ctx, a->id, a->owner, bells, a->wake_fds);
}

int
apps_attach(struct apps *all)
{
	const struct app_port *port;
	const struct app *a;
	uint32_t i, k;
	int rc = 0;

	LIST_FOREACH(a, &all->list, link)
		if (rc == 0 && a->ctl != NULL)
			rc = attach(a);
	for (i = 0; i < all->nb_ports; i++) {
		port = &all->ports[i];
		for (k = 0; k < port->caps.max_cqs; k++)
			if (port->cqs[k].app != NULL && port->cqs[k].wake_sock >= 0)
				dpdk_cq_watch(port->ctx, port->cqs[k].cq, port->cqs[k].wake_sock);
	}
	return rc;
}
