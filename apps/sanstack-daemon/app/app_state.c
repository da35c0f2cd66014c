/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * Records have a fixed size. Objects are saved as they are, because both daemons have the same
 * structures and addresses; only a descriptor is an index into those that are sent along, and an
 * application its port and number. Credentials, which the kernel supplies, and totals, which can be
 * counted, are not saved.
 *
 * The receiver checks everything as if a peer had sent it, except most of the engines' memory,
 * which contains pointers. san_mem_open() and san_engine_resume() check the arena itself and the
 * first pointers. The others are believed: the other daemon has proved who it is (takeover.c).
 */

#include <fcntl.h>
#include <sys/stat.h>

#include "app_priv.h"
#include "server.h"
#include "state.h"

#define NO_PORT UINT16_MAX

enum saved_kind { /**< and each enum app_kind */
	SAVED_LISTENER = APP_KINDS,
	SAVED_REQUEST,
	SAVED_END,
};

/** An object that an application holds. Pointers in it are checked, or replaced. */
struct saved {
	uint32_t kind; /**< enum saved_kind */
	uint32_t app;  /**< number of the application that owns it */
	union {
		struct app_thing thing;
		struct app_listener listener;
		struct app_request request;
	};
};

struct saved_port {
	uint64_t at; /**< offset from PORTS_STATE_FROM */
	uint64_t bytes;
	int32_t fd;
	uint32_t next_listener;
	uint32_t last_id, pad;
};

struct saved_app {
	uint64_t hello_ns;
	struct app_mem ctl_mem;
	uint32_t attached, id;
	uint32_t ev_tail, ev_head; /**< of san_spsc_prod */
	int32_t sock, wake_sock;
	int32_t wake_fds[SAN_ENGINE_LCORES];
	uint32_t nb_late;     /**< number of struct shmq_event that follow */
	uint32_t port;        /**< or NO_PORT */
	uint32_t is_root;     /**< its hello proved that; see san_shmq_is_root() */
	uint32_t later[3];    /**< see struct san_tl_txn */
	char name[SHMQ_NAME]; /**< its hello gave it, where /proc hides the program */
};

/* ---- save ---- */

static void
save_things(const struct app_port *port, struct state *st)
{
	const struct app_listener *l;
	struct saved s;
	uint32_t kind, i;

	for (kind = 0; kind < APP_KINDS; kind++) {
		for (i = 0; i < san_app_port_nb(port, kind); i++) {
			if (port->things[kind][i].app == NULL)
				continue;
			s = (struct saved){.kind = kind, .thing = port->things[kind][i]};
			s.app = s.thing.app->id;
			s.thing.mem.fd = san_state_put_fd(st, s.thing.mem.fd);
			if (kind == APP_CQ)
				s.thing.wake_sock = san_state_put_fd(st, s.thing.wake_sock);
			san_state_put(st, &s, sizeof(s));
		}
	}
	LIST_FOREACH(l, &port->listeners, link) {
		s = (struct saved){.kind = SAVED_LISTENER, .app = l->app->id, .listener = *l};
		san_state_put(st, &s, sizeof(s));
	}
	for (i = 0; i < port->caps.max_qps; i++) {
		s = (struct saved){.kind = SAVED_REQUEST, .request = port->requests[i]};
		if (s.request.app == NULL)
			continue;
		s.app = s.request.app->id;
		san_state_put(st, &s, sizeof(s));
	}
	s = (struct saved){.kind = SAVED_END};
	san_state_put(st, &s, sizeof(s));
}

static void
save_app(const struct app *a, struct state *st)
{
	const struct app_event *late;
	struct saved_app s = {
		.port = a->port != NULL ? a->port->index : NO_PORT,
		.attached = a->attached,
		.id = a->id,
		.hello_ns = a->hello_ns,
		.ev_tail = a->events.tail,
		.ev_head = a->events.head_seen,
		.sock = san_state_put_fd(st, a->sock),
		.wake_sock = san_state_put_fd(st, a->wake_sock),
		.nb_late = a->nb_late,
		.is_root = a->owner == 0,
	};
	int i;

	if (a->attached) {
		s.ctl_mem = a->ctl_mem;
		s.ctl_mem.fd = san_state_put_fd(st, a->ctl_mem.fd);
	}
	for (i = 0; i < SAN_ENGINE_LCORES; i++)
		s.wake_fds[i] = san_state_put_fd(st, a->wake_fds[i]);
	snprintf(s.name, sizeof(s.name), "%s", a->name);
	san_state_put(st, &s, sizeof(s));
	STAILQ_FOREACH(late, &a->late, link)
		san_state_put(st, &late->ev, sizeof(late->ev));
}

void
san_app_state_save(const struct apps *all, struct state *st)
{
	const struct app *a;
	uint32_t i, nb = 0;

	for (i = 0; i < all->nb_ports; i++) {
		const struct app_port *port = &all->ports[i];
		const struct saved_port s = {
			.at = (uintptr_t)port->mem - PORTS_STATE_FROM,
			.bytes = san_mem_max(port->mem),
			.fd = san_state_put_fd(st, port->mem_fd),
			.next_listener = port->next_listener,
			.last_id = port->last_id,
		};

		san_state_put(st, &s, sizeof(s));
	}
	LIST_FOREACH(a, &all->list, link)
		nb += !a->over;
	san_state_put(st, &nb, sizeof(nb));
	LIST_FOREACH(a, &all->list, link)
		if (!a->over)
			save_app(a, st);
	for (i = 0; i < all->nb_ports; i++)
		save_things(&all->ports[i], st);
}

/* ---- load ---- */

/* Check that the range lies within *room* bytes and starts on a page boundary. */
static bool
app_state_is_place(uint64_t at, uint64_t bytes, uint64_t room)
{
	return at <= room && bytes <= room - at && bytes != 0 &&
		at % (uint64_t)sysconf(_SC_PAGESIZE) == 0;
}

/* Check that the file is a memfd of that size, and cannot become shorter. */
static bool
has_bytes(int fd, uint64_t offset, uint64_t bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat file;

	return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &file) == 0 &&
		offset <= (uint64_t)file.st_size && bytes <= (uint64_t)file.st_size - offset;
}

/* Map memory as it was saved in *m*. */
static int
load_mem(struct app_mem *m, const struct app *a, struct state *st)
{
	uint64_t at = (uintptr_t)m->mem - PORTS_SHARE_FROM;
	int rc, place = m->fd;

	m->fd = -1;
	if (!app_state_is_place(at, m->bytes, PORTS_SHARE_BYTES) || m->populated > m->bytes)
		return san_state_fail(st, "memory: where it lies");
	m->fd = san_state_get_fd(st, place);
	rc = has_bytes(m->fd, m->offset, m->bytes) ? san_app_mem_take(m, san_app_guard_id(a)) :
						     san_state_fail(st, "memory: its file");
	if (rc != 0)
		san_fd_close(m->fd);
	return rc;
}

static int
load_port(struct apps *all, uint32_t i, struct state *st)
{
	const char *name = all->conf->ports[i].name;
	struct app_port *port = &all->ports[i];
	struct saved_port s;
	struct san_mem *mem;
	int rc, fd;

	san_state_get(st, &s, sizeof(s));
	fd = san_state_get_fd(st, s.fd);
	rc = app_state_is_place(s.at, s.bytes, PORTS_STATE_BYTES) && has_bytes(fd, 0, s.bytes) ?
		san_mem_open(fd, PORTS_STATE_FROM + s.at, s.bytes, &mem) :
		-EPROTO;
	if (rc != 0) {
		san_fd_close(fd);
		return rc == -EPROTO ? san_state_fail(st, "port: its memory") : rc;
	}
	port->mem_fd = fd;
	rc = san_apps_add_port(all, name, mem, port->ctx);
	port->next_listener = s.next_listener;
	port->last_id = (uint16_t)(s.last_id % SAN_ENGINE_APPS);
	return rc;
}

static int
load_attached(struct apps *all, struct app *a, const struct saved_app *s, struct state *st)
{
	struct app_port *port = &all->ports[s->port < all->nb_ports ? s->port : 0];
	struct app_mem mem = s->ctl_mem;
	struct app_event *late;
	uint32_t i;
	int rc;

	if (s->port >= all->nb_ports || s->id == 0 || s->id >= SAN_ENGINE_APPS || port->used[s->id])
		return san_state_fail(st, "application: its number");
	if (s->ctl_mem.bytes != san_shmq_ctl_bytes(port->caps.nb_lcores, port->nb_doorbells))
		return san_state_fail(st, "application: its memory");
	a->port = port;
	a->id = (uint16_t)s->id;
	rc = load_mem(&mem, a, st);
	if (rc != 0)
		return rc;
	a->ctl_mem = mem;
	a->ctl = mem.mem;
	san_apps_attached(all, a);
	port->used[a->id] = true;
	port->owners[a->id] = a->owner;
	san_spsc_prod_init(&a->events, SHMQ_EVENTS);
	a->events.tail = s->ev_tail;
	a->events.head_seen = s->ev_head;
	a->wake_sock = san_state_get_fd(st, s->wake_sock);
	for (i = 0; i < SAN_ENGINE_LCORES; i++)
		a->wake_fds[i] = san_state_get_fd(st, s->wake_fds[i]);
	for (i = 0; i < s->nb_late && !st->failed; i++) {
		late = malloc(sizeof(*late));
		if (late == NULL)
			return -ENOMEM;
		san_state_get(st, &late->ev, sizeof(late->ev));
		STAILQ_INSERT_TAIL(&a->late, late, link);
		a->nb_late++;
	}
	return 0;
}

static int
load_app(struct apps *all, struct state *st)
{
	struct saved_app s;
	struct app *a;
	int sock;

	san_state_get(st, &s, sizeof(s));
	sock = san_state_get_fd(st, s.sock);
	if (sock < 0)
		return san_state_fail(st, "application: its socket");
	a = san_apps_add(all, sock);
	if (a == NULL) {
		close(sock);
		return -ENOMEM;
	}
	a->hello_ns = s.hello_ns;
	san_apps_own(a, s.is_root != 0);
	san_apps_name(a, s.name);
	return s.attached != 0 ? load_attached(all, a, &s, st) : 0;
}

static int
load_object(struct app_port *port, const struct saved *s, struct app *a, struct state *st)
{
	uint32_t place = san_app_port_place(port, s->kind, s->thing.number);
	struct app_thing t = s->thing;
	int rc;

	if (place >= san_app_port_nb(port, s->kind) || port->things[s->kind][place].app != NULL)
		return san_state_fail(st, "an object: its number");
	if (s->kind == APP_CQ && !san_mem_has(port->mem, t.cq, sizeof(uint64_t)))
		return san_state_fail(st, "completion queue: where it lies");
	rc = load_mem(&t.mem, a, st);
	if (rc != 0)
		return rc;
	t.app = a;
	t.sock = NULL;
	if (s->kind == APP_CQ)
		t.wake_sock = san_state_get_fd(st, t.wake_sock);
	port->things[s->kind][place] = t;
	san_app_count_thing(&t, s->kind, 1);
	return 0;
}

static int
load_thing(struct app_port *port, const struct saved *s, struct app *a, struct state *st)
{
	struct app_request *r;
	struct app_listener *l;

	if (s->kind < APP_KINDS)
		return load_object(port, s, a, st);
	if (s->kind == SAVED_LISTENER) {
		l = malloc(sizeof(*l));
		if (l == NULL)
			return -ENOMEM;
		*l = s->listener;
		l->app = a;
		LIST_INSERT_HEAD(&port->listeners, l, link);
		san_app_count(a, USERS_LISTENERS, 1, 0);
		return 0;
	}
	if (s->kind != SAVED_REQUEST)
		return san_state_fail(st, "an object of unknown kind");
	r = san_app_port_request(port, s->request.request);
	if (r->app != NULL)
		return san_state_fail(st, "connection request: its number");
	*r = (struct app_request){.request = s->request.request, .app = a};
	return 0;
}

static int
load_things(const struct apps *all, struct app_port *port, struct state *st)
{
	struct saved s;
	struct app *a;
	int rc = 0;

	for (;;) {
		san_state_get(st, &s, sizeof(s));
		if (rc != 0 || st->failed || s.kind == SAVED_END)
			return st->failed ? -EPROTO : rc;
		LIST_FOREACH(a, &all->list, link)
			if (a->port == port && a->id == s.app)
				break;
		rc = a != NULL ? load_thing(port, &s, a, st) :
				 san_state_fail(st, "an object of no application");
	}
}

int
san_app_state_load_ports(struct apps *all, struct state *st)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < all->conf->nb_ports; i++)
		rc = load_port(all, i, st);
	return rc;
}

int
san_app_state_load(struct apps *all, struct state *st)
{
	uint32_t nb, i;
	int rc = 0;

	san_state_get(st, &nb, sizeof(nb));
	for (i = 0; rc == 0 && !st->failed && i < nb; i++)
		rc = load_app(all, st);
	for (i = 0; rc == 0 && i < all->nb_ports; i++)
		rc = load_things(all, &all->ports[i], st);
	if (rc == 0 && st->at != st->len)
		rc = san_state_fail(st, "more bytes than expected");
	return st->failed ? -EPROTO : rc;
}

/* ---- attach ---- */

int
san_app_state_attach(struct apps *all)
{
	struct san_doorbells *doorbells[SAN_ENGINE_LCORES];
	const struct app_port *port;
	const struct app *a;
	uint32_t i, k;
	int rc = 0;

	LIST_FOREACH(a, &all->list, link) {
		port = a->port;
		if (rc != 0 || a->ctl == NULL)
			continue;
		for (i = 0; i < port->caps.nb_lcores; i++) {
			doorbells[i] = san_shmq_doorbells(a->ctl, i, port->nb_doorbells);
			/* the new lcores are awake; each sets the flag again when it sleeps */
			san_doorbells_set_asleep(doorbells[i], false);
		}
		rc = san_dpdk_ops_app_add(port->ctx, a->id, a->owner, doorbells, a->wake_fds);
	}
	for (i = 0; i < all->nb_ports; i++) {
		port = &all->ports[i];
		for (k = 0; k < port->caps.max_cqs; k++)
			if (port->cqs[k].app != NULL && port->cqs[k].wake_sock >= 0)
				san_dpdk_ops_cq_watch(port->ctx, port->cqs[k].cq,
						      port->cqs[k].wake_sock);
	}
	return rc;
}
