/* SPDX-License-Identifier: BSD-3-Clause */

/* Life of applications, and delivery of events to them. */

#include "app_priv.h"
#include "san_assert.h"

#define HELLO_NS  (5 * SAN_NS_PER_S) /* time limit for the hello */
#define LATE_EACH 4                  /* unread events per queue pair */
#define FAILED_NS (60 * SAN_NS_PER_S)

/* ---- all of them ---- */

void
san_apps_init(struct apps *all, const struct conf *conf)
{
	memset(all, 0, sizeof(*all));
	all->conf = conf;
	all->max_fds = (uint64_t)sysconf(_SC_OPEN_MAX);
	all->memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	LIST_INIT(&all->list);
}

int
san_apps_add_port(struct apps *all, const char *name, struct san_mem *mem, struct dpdk_ctx *ctx)
{
	struct app_port *port = &all->ports[all->nb_ports];
	const struct san_core_conf *core = &san_engine_conf_of(ctx->port)->core;
	bool has_tables = true;
	enum app_kind kind;

	rtsan_provider_dpdk.query(ctx, &port->caps);
	port->ctx = ctx;
	port->name = name;
	port->conf = all->conf;
	port->lcore_qps = port->caps.max_qps / port->caps.nb_lcores;
	port->max_conns = core->pdl.max_conns * port->caps.nb_lcores;
	port->slot_mask = san_pdl_slot_mask(core->pdl.max_conns);
	port->max_socks = core->max_socks;
	port->nb_doorbells = port->lcore_qps + port->max_socks;
	for (kind = 0; kind < APP_KINDS; kind++) {
		port->things[kind] = calloc(san_app_port_nb(port, kind), sizeof(struct app_thing));
		has_tables &= port->things[kind] != NULL;
	}
	port->requests = calloc(port->caps.max_qps, sizeof(*port->requests));
	port->socks = calloc(RTE_MAX(port->max_socks, 1u), sizeof(*port->socks));
	LIST_INIT(&port->listeners);
	if (!has_tables || port->requests == NULL || port->socks == NULL) {
		san_app_port_fini(port);
		return rtsan_provider_host()->fail(-ENOMEM,
						   "no memory for the tables of applications");
	}
	port->mem = mem;
	port->all = all;
	port->index = (uint16_t)all->nb_ports++;
	return 0;
}

void
san_app_port_fini(struct app_port *port)
{
	enum app_kind kind;

	for (kind = 0; kind < APP_KINDS; kind++)
		free(port->things[kind]);
	free(port->socks);
	free(port->requests);
	port->max_socks = 0;
}

/* ---- numbers and limits of one port ---- */

static_assert(CONF_PORTS_MAX * SAN_ENGINE_APPS <= UINT16_MAX + 1, "they have room");

uint16_t
san_app_guard_id(const struct app *a)
{
	return (uint16_t)(a->port->index * SAN_ENGINE_APPS + a->id);
}

/* *request* holds a CID: lcore and slot. Connections never outnumber queue pairs. */
struct app_request *
san_app_port_request(struct app_port *port, uint64_t request)
{
	uint32_t cid = (uint32_t)request, slot = cid & port->slot_mask;
	uint32_t lcore = san_pdl_cid_lcore(cid);

	/* a forged number selects some entry, but does not equal the number stored there */
	return &port->requests[(lcore * port->lcore_qps + slot) % port->caps.max_qps];
}

uint32_t
san_app_port_nb(const struct app_port *port, enum app_kind kind)
{
	return kind == APP_QP  ? port->caps.max_qps :
		kind == APP_CQ ? port->caps.max_cqs :
				 port->caps.max_mrs;
}

uint32_t
san_app_port_place(const struct app_port *port, enum app_kind kind, uint32_t number)
{
	return kind == APP_QP  ? SAN_QPN_INDEX(number) :
		kind == APP_CQ ? number :
				 number & (port->caps.max_mrs - 1); /* like the engine's */
}

uint32_t
san_app_port_each(const struct app_port *port, enum users_place what)
{
	uint32_t limit = what == USERS_QPS ? port->conf->app_qps : port->conf->app_conns;
	uint32_t all = what == USERS_QPS ? port->caps.max_qps : port->max_conns;

	/* by default three quarters: one application can't exhaust the port */
	return limit != 0 ? limit : RTE_MAX(all - all / 4, 1u);
}

/* ---- one application ---- */

/*
 * Read the name of the program, for operators only. The program chooses it freely, so characters
 * that could be mistaken for anything but a name are replaced.
 */
static void
apps_read_name(struct app *a)
{
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)a->pid);
	f = fopen(path, "re");
	if (f != NULL && fgets(a->name, sizeof(a->name), f) != NULL)
		a->name[strcspn(a->name, "\n")] = '\0';
	if (f != NULL)
		fclose(f);
	san_logging_printable(a->name);
}

void
san_apps_name(struct app *a, const char name[SHMQ_NAME])
{
	if (a->name[0] != '\0')
		return;
	snprintf(a->name, sizeof(a->name), "%.*s", SHMQ_NAME - 1, name);
	san_logging_printable(a->name);
}

uint32_t
san_apps_of(const struct apps *all, uid_t owner)
{
	uint32_t i, n = 0;

	for (i = 0; i < all->nb_ports; i++)
		n += (uint32_t)san_users_nb(all->ports[i].index, &owner, USERS_APPS);
	return n;
}

/* How many there are of *what*, for all users together. */
static uint64_t
apps_max_of(const struct app_port *port, enum users_place what)
{
	const struct san_core_conf *core = &san_engine_conf_of(port->ctx->port)->core;
	uint64_t memory = port->conf->memory != 0 ? port->conf->memory : port->all->memory;
	const uint64_t max[] = {
		[USERS_UNATTACHED] = port->conf->unattached,
		[USERS_APPS] = port->conf->apps,
		[USERS_QPS] = port->caps.max_qps,
		[USERS_CONNS] = port->max_conns,
		[USERS_CQS] = port->caps.max_cqs,
		[USERS_MRS] = port->caps.max_mrs,
		[USERS_BYTES] = memory,
		[USERS_LISTENERS] = core->cm.max_listeners,
		[USERS_SOCKS] = port->max_socks,
		[USERS_SOCK_BYTES] = memory,
		[USERS_GROUPS] = core->inet.max_groups,
		[USERS_FDS] = port->all->max_fds,
	};

	static_assert(RTE_DIM(max) == USERS_PLACES, "each has a limit");
	static_assert(USERS_PORTS == CONF_PORTS_MAX, "each port is counted");
	return max[what];
}

int
san_apps_check_beside(const struct app_port *port, struct users_want w)
{
	char why[SHMQ_TEXT];
	int rc;

	w.port = port->index;
	w.max = apps_max_of(port, w.what);
	rc = san_users_check(&w, why, sizeof(why));
	if (rc == -ENOSPC)
		LOG_OF(w.owner, WARNING, "port=%s %s", port->name, why);
	return rc == 0 ? 0 : rtsan_provider_host()->fail(-ENOSPC, "%s", why);
}

int
san_apps_check(const struct app_port *port, enum users_place what, uid_t owner, uint64_t nb)
{
	struct users_want w = {.what = what, .owner = owner, .nb = nb};
	int rc = nb != 0 ? san_apps_check_beside(port, w) : 0;

	w.what = USERS_FDS;
	w.nb = san_users_fds(what, nb);
	return rc == 0 && w.nb != 0 ? san_apps_check_beside(port, w) : rc;
}

bool
san_apps_have_place(const struct app_port *port, uid_t owner, uint32_t waiting)
{
	const struct users_want w = {
		.what = USERS_APPS, .owner = owner, .nb = 1, .own = waiting};

	return san_apps_of(port->all, owner) + waiting < port->conf->apps_per_uid &&
		san_apps_check_beside(port, w) == 0;
}

void
san_apps_attached(struct apps *all, struct app *a)
{
	a->attached = true;
	all->nb_attached++;
	a->port->nb_attached++;
	san_users_count(a->port->index, a->owner, USERS_APPS, 1);
	san_users_count(0, a->owner, USERS_UNATTACHED, -1);
}

void
san_apps_own(struct app *a, bool is_root)
{
	uid_t owner = san_users_owner(a->uid, is_root);

	/* it is not attached yet */
	if (owner != a->owner && san_users_count(0, owner, USERS_UNATTACHED, 1) == 0) {
		san_users_count(0, a->owner, USERS_UNATTACHED, -1);
		a->owner = owner;
	}
	if (a->uid == 0)
		a->user.uid = a->owner;
}

struct app *
san_apps_add(struct apps *all, int sock)
{
	struct ucred cred = {.uid = (uid_t)-1};
	struct app *a = calloc(1, sizeof(*a));
	socklen_t len = sizeof(cred);
	int i;

	getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	if (a == NULL || cred.uid == (uid_t)-1 || /* it is no UNIX socket */
	    san_users_count(0, san_users_owner(cred.uid, false), USERS_UNATTACHED, 1) != 0) {
		free(a);
		return NULL;
	}
	san_shmq_peek_init(sock);
	a->sock = sock;
	a->pid = cred.pid;
	a->uid = cred.uid;
	a->owner = san_users_owner(cred.uid, false);
	/* the groups at connect(); the primary group is not always included */
	a->user.uid = cred.uid;
	len = sizeof(a->user.groups);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, a->user.groups, &len) == 0)
		a->user.nb_groups = RTE_MIN((uint32_t)(len / sizeof(a->user.groups[0])),
					    (uint32_t)PARTITION_GROUPS - 1);
	a->user.groups[a->user.nb_groups++] = cred.gid;
	san_apps_own(a, false);
	a->wake_sock = -1;
	a->ans.fd = -1;
	for (i = 0; i < SAN_ENGINE_LCORES; i++)
		a->wake_fds[i] = -1;
	apps_read_name(a);
	STAILQ_INIT(&a->late);
	all->nb++;
	LIST_INSERT_HEAD(&all->list, a, link);
	return a;
}

/*
 * Root proves itself by its hello, which comes after the connection. So until then each program of
 * user 0 may have a place of root's reserve, or that of the oldest such program without a message.
 */
static bool
apps_make_room_for_root(struct apps *all)
{
	uint32_t nb_silent = all->nb - all->nb_attached;
	struct app *a, *oldest = NULL;

	if (!san_users_may(USERS_UNPROVED, 0, nb_silent, all->conf->unattached) &&
	    san_users_may(0, 0, nb_silent, all->conf->unattached))
		return true;
	LIST_FOREACH(a, &all->list, link)
		if (!a->attached && !a->over && a->uid == 0 && san_fd_poll(a->sock, POLLIN) == 0)
			oldest = a;
	if (oldest != NULL)
		oldest->over = true;
	return oldest != NULL;
}

struct app *
san_apps_create(struct apps *all, int sock, uint64_t now_ns)
{
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);
	struct app *a = NULL;

	san_users_follow(now_ns);
	getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	if (san_apps_check(&all->ports[0], USERS_UNATTACHED, san_users_owner(cred.uid, false), 1) ==
		    0 ||
	    (cred.uid == 0 && apps_make_room_for_root(all)))
		a = san_apps_add(all, sock);
	if (a == NULL) {
		san_helper_hang_up(sock);
		return NULL;
	}
	a->hello_ns = now_ns + HELLO_NS;
	return a;
}

/* Reject the requests and end the listeners of *only*, or of all applications (NULL). */
static void
apps_stop_listening(struct app_port *port, const struct app *only)
{
	struct app_listener *l, *next;
	struct app_request *r;

	for (r = port->requests; r < &port->requests[port->caps.max_qps]; r++) {
		if (r->app == NULL || (only != NULL && r->app != only))
			continue;
		san_dpdk_call_reject(port->ctx, r->request);
		r->app = NULL;
	}
	for (l = LIST_FIRST(&port->listeners); l != NULL; l = next) {
		next = LIST_NEXT(l, link);
		if (only == NULL || l->app == only)
			san_app_conn_del_listener(port, l);
	}
}

/*
 * Release first the objects that refer to others (requests, listeners, queue pairs), then the rest.
 */
static void
apps_release_port(struct app_port *port, struct app *a)
{
	const uint64_t *nb;
	enum app_kind kind;
	uint32_t i;
	int rc;

	apps_stop_listening(port, a);
	for (kind = 0; kind < APP_KINDS; kind++) {
		nb = &a->nb[san_app_places[kind]];
		for (i = 0; i < san_app_port_nb(port, kind) && *nb > 0; i++) {
			if (port->things[kind][i].app != a)
				continue;
			rc = san_app_del(port, kind, &port->things[kind][i]);
			SAN_VERIFY(rc == 0);
		}
	}
}

void
san_apps_destroy(struct apps *all, struct app *a)
{
	struct app_event *ev;
	int i;

	san_app_end_growing(a);
	if (a->port != NULL)
		apps_release_port(a->port, a);
	if (a->ctl != NULL) {
		san_dpdk_ops_app_del(a->port->ctx, a->id);
		san_app_mem_end(&a->ctl_mem);
		san_shmq_guard_disown(san_app_guard_id(a));
		san_socks_app_ended(a);
	}
	while ((ev = STAILQ_FIRST(&a->late)) != NULL) {
		STAILQ_REMOVE_HEAD(&a->late, link);
		free(ev);
	}
	if (a->attached) {
		LOG_OF(a->owner, INFO, "app=%u port=%s pid=%d detached", a->id, a->port->name,
		       (int)a->pid);
		all->nb_attached--;
		a->port->nb_attached--;
		san_users_count(a->port->index, a->owner, USERS_APPS, -1);
	} else {
		san_users_count(0, a->owner, USERS_UNATTACHED, -1);
	}
	for (i = 0; i < SAN_ENGINE_LCORES; i++)
		san_fd_close(a->wake_fds[i]);
	san_fd_close(a->wake_sock);
	if (a->id != 0)
		a->port->used[a->id] = false;
	san_fd_close(a->ans.fd);
	LIST_REMOVE(a, link);
	all->nb--;
	san_helper_hang_up(a->sock);
	if (san_users_nb(0, &a->owner, USERS_UNATTACHED) + san_apps_of(all, a->owner) == 0)
		san_helper_leave(a->owner);
	free(a);
}

/* ---- events ---- */

static bool
app_event_put(struct app *a, const struct shmq_event *ev)
{
	if (san_spsc_room(&a->events, &a->ctl->ev_head) == 0)
		return false;
	a->ctl->events[a->events.tail & a->events.mask] = *ev;
	san_spsc_push(&a->events, &a->ctl->ev_tail, 1);
	if (a->wake_sock >= 0 && san_spsc_must_wake(&a->ctl->ev_armed))
		san_shmq_pair_wake(a->wake_sock);
	return true;
}

/*
 * Queue an event. Events that wait for room in the ring keep their order; their number is limited.
 */
static void
app_event_give(struct app *a, const struct shmq_event *ev)
{
	struct app_event *late;
	uint32_t max;

	if (STAILQ_EMPTY(&a->late) && app_event_put(a, ev))
		return;
	/* it would wait forever for the lost event */
	max = SHMQ_EVENTS + LATE_EACH * a->port->caps.max_qps;
	late = a->nb_late < max ? malloc(sizeof(*late)) : NULL;
	if (late == NULL) {
		a->over = true;
		return;
	}
	late->ev = *ev;
	STAILQ_INSERT_TAIL(&a->late, late, link);
	a->nb_late++;
}

/* Find the application that an event is for, and word the event for it. NULL: none. */
static struct app *
app_event_address(struct app_port *port, struct shmq_event *ev)
{
	const struct app_listener *l;
	const struct app_thing *q;

	if (san_socks_tcp_conn_event(port, ev))
		return NULL;
	if (ev->type == RTSAN_EV_CONNECT_REQUEST) {
		LIST_FOREACH(l, &port->listeners, link)
			if (l->id == ev->listener)
				break;
		if (l == NULL)
			return NULL;
		ev->listener = l->cookie;
		/*
		 * the application does not read its events, and peers can send any number of
		 * requests
		 */
		if (l->app->nb_late >= SHMQ_EVENTS) {
			san_dpdk_call_reject(port->ctx, ev->request);
			return NULL;
		}
		*san_app_port_request(port, ev->request) =
			(struct app_request){.app = l->app, .request = ev->request};
		return l->app;
	}
	ev->listener = 0; /* not the application's number */
	q = &port->qps[SAN_QPN_INDEX(ev->qp)];
	if (q->app == NULL || q->number != ev->qp)
		return NULL;
	if (ev->type == RTSAN_EV_DISCONNECTED && san_dpdk_ops_qp_fault(port->ctx, ev->qp) != NULL)
		ev->reason = RTSAN_R_MALFORMED;
	return q->app;
}

void
san_apps_wake(const struct apps *all, const struct app_port *only, bool has_ended)
{
	const struct app_port *port;
	const struct app *a;
	uint32_t i;

	LIST_FOREACH(a, &all->list, link) {
		if (a->ctl == NULL || (only != NULL && a->port != only))
			continue;
		if (has_ended)
			atomic_store(&a->ctl->orphaned, 1);
		if (a->wake_sock >= 0)
			san_shmq_pair_wake(a->wake_sock);
	}
	for (port = all->ports; port < &all->ports[all->nb_ports]; port++)
		for (i = 0; i < port->caps.max_cqs && (only == NULL || port == only); i++)
			if (port->cqs[i].app != NULL && port->cqs[i].wake_sock >= 0)
				san_shmq_pair_wake(port->cqs[i].wake_sock);
}

/* True: some events wait for room in a ring. */
static bool
port_events(struct apps *all, struct app_port *port)
{
	struct shmq_event ev;
	bool late = false;
	struct app *a;
	int rc;

	while ((rc = san_dpdk_call_event_poll(port->ctx, &ev)) == 1) {
		a = app_event_address(port, &ev);
		if (a == NULL)
			continue;
		ev.own_user = ev.user != RTSAN_USER_NONE && ev.uid == a->owner;
		app_event_give(a, &ev);
		late |= !STAILQ_EMPTY(&a->late);
	}
	if (rc < 0)
		san_apps_wake(all, port, true); /* no more events: the device has failed */
	return late;
}

bool
san_apps_events(struct apps *all)
{
	struct app_event *next;
	bool late = false;
	struct app *a;
	uint32_t i;

	LIST_FOREACH(a, &all->list, link) {
		while ((next = STAILQ_FIRST(&a->late)) != NULL && app_event_put(a, &next->ev)) {
			STAILQ_REMOVE_HEAD(&a->late, link);
			a->nb_late--;
			free(next);
		}
		late |= next != NULL;
	}
	for (i = 0; i < all->nb_ports; i++) {
		san_engine_event_arm(all->ports[i].ctx->port);
		late |= port_events(all, &all->ports[i]);
	}
	return late;
}

/* ---- failures and shutdown ---- */

uint32_t
san_apps_ranges(const struct apps *all)
{
	const struct app_port *port;
	uint32_t sum = 0;

	for (port = all->ports; port < &all->ports[all->nb_ports]; port++)
		sum += port->caps.max_qps + port->caps.max_cqs + port->caps.max_mrs +
			port->max_socks + SAN_ENGINE_APPS;
	return sum;
}

void
san_apps_failed(struct apps *all)
{
	struct app *a;
	uint16_t id;

	while (san_shmq_guard_failed(&id)) {
		LIST_FOREACH(a, &all->list, link) {
			if (a->ctl == NULL || san_app_guard_id(a) != id || a->over)
				continue;
			LOG_OF(a->owner, ERR, "app=%u port=%s pid=%d: its memory failed (SIGBUS); "
					      "it ends",
			       a->id, a->port->name, (int)a->pid);
			a->over = true;
			all->failed[all->nb_failed % APPS_FAILED].owner = a->owner;
			all->failed[all->nb_failed++ % APPS_FAILED].until_ns =
				san_engine_clock_monotonic() + FAILED_NS;
		}
	}
}

uint64_t
san_apps_expire_silent(struct apps *all, uint64_t now_ns)
{
	uint64_t next_ns = SAN_TIME_NEVER;
	struct app *a;

	if (all->nb == all->nb_attached)
		return next_ns;
	LIST_FOREACH(a, &all->list, link) {
		if (a->attached || a->over)
			continue;
		if (now_ns >= a->hello_ns) {
			LOG_OF(a->owner, WARNING, "pid=%d uid=%u: connected, but sent no hello",
			       (int)a->pid, a->uid);
			a->over = true;
		} else {
			next_ns = san_time_min(next_ns, a->hello_ns);
		}
	}
	return next_ns;
}

void
san_apps_close(struct apps *all)
{
	struct app *a;
	uint32_t i;

	all->closing = true;
	for (i = 0; i < all->nb_ports; i++)
		apps_stop_listening(&all->ports[i], NULL);
	LIST_FOREACH(a, &all->list, link)
		if (!a->attached)
			a->over = true;
}
