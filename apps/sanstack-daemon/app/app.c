/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * An application names its objects by the engine's own numbers, so numbers need no translation.
 * Tables record the owner of each number. The answer for a number of another application is the
 * same as for one that does not exist, so an application learns nothing about others.
 *
 * One thread serves all requests and completes each before the next. It never waits for an
 * application: one that stays silent, or sends half a request, delays no other.
 */

#include <stdarg.h>
#include <sys/eventfd.h>

#include "app_priv.h"

#define CQ_DEPTH_MAX (2 * SAN_ULP_DEPTH_MAX)

int
san_app_refuse(struct app *a, int rc, const char *fmt, ...)
{
	va_list ap;

	/* Nothing of an earlier, longer text stays behind this one. */
	memset(a->ans.rep.text, 0, sizeof(a->ans.rep.text));
	va_start(ap, fmt);
	vsnprintf(a->ans.rep.text, sizeof(a->ans.rep.text), fmt, ap);
	va_end(ap);
	return rc;
}

/* ---- ownership: lookups return NULL, with a text, for an object that *a* does not own ---- */

struct app_thing *
san_app_find(struct app *a, enum app_kind kind, uint32_t number)
{
	static const char *const names[] = {
		[APP_QP] = "queue pair: none with number 0x%x",
		[APP_CQ] = "completion queue: none with number %u",
		[APP_MR] = "region: none with key 0x%x",
	};
	uint32_t place = san_app_port_place(a->port, kind, number);
	struct app_thing *t = &a->port->things[kind][place];

	if (place < san_app_port_nb(a->port, kind) && t->app == a && t->number == number)
		return t;
	san_app_refuse(a, 0, names[kind], number);
	return NULL;
}

/* ---- limits of one application ---- */

/* Check that the limit of *a* leaves *bytes* of memory for *what*. */
static int
check_bytes(struct app *a, const char *what, uint64_t bytes)
{
	/* a reload may have set the limit below what the application already has */
	uint64_t max = a->port->conf->app_bytes, left = max - RTE_MIN(max, a->nb[USERS_BYTES]);

	if (bytes != 0 && bytes <= left)
		return san_apps_check(a->port, USERS_BYTES, a->owner, bytes);
	return san_app_refuse(a, -ENOSPC, "%s: %llu bytes, %llu are left of its limit", what,
			      (unsigned long long)bytes, (unsigned long long)left);
}

int
san_app_check_one(struct app *a, enum users_place what, const char *name, uint32_t each)
{
	if (a->nb[what] < each)
		return san_apps_check(a->port, what, a->owner, 1);
	return san_app_refuse(a, -ENOSPC, "%s: this application has %u, its limit", name,
			      (uint32_t)a->nb[what]);
}

void
san_app_count(struct app *a, enum users_place what, int sign, uint64_t bytes)
{
	a->nb[what] += (uint64_t)sign;
	a->nb[USERS_BYTES] += (uint64_t)(sign * (int64_t)bytes);
	san_users_count(a->port->index, a->owner, what, sign);
	san_users_count(a->port->index, a->owner, USERS_BYTES, sign * (int64_t)bytes);
}

const enum users_place san_app_places[APP_KINDS] = {
	[APP_QP] = USERS_QPS, [APP_CQ] = USERS_CQS, [APP_MR] = USERS_MRS};

void
san_app_count_thing(const struct app_thing *t, enum app_kind kind, int sign)
{
	/* a stream's buffers count against the application's limit, too */
	t->app->nb[USERS_BYTES] += (uint64_t)(sign * (int64_t)t->stream_bytes);
	san_app_count(t->app, san_app_places[kind], sign, t->mem.bytes);
}

/* ---- objects that have ended ---- */

int
san_app_del(struct app_port *port, enum app_kind kind, struct app_thing *t)
{
	const struct shmq_req req = {.type = SHMQ_MR_DEL, .id = t->number};
	int rc = 0;

	if (kind == APP_QP)
		san_dpdk_ops_qp_destroy(port->ctx, t->number);
	else if (kind == APP_CQ)
		rc = san_dpdk_ops_cq_destroy(port->ctx, t->cq);
	else
		rc = san_dpdk_call(port->ctx, &req);
	if (rc != 0)
		return rc;
	if (kind == APP_CQ)
		san_fd_close(t->wake_sock);
	san_app_count_thing(t, kind, -1);
	san_app_mem_end(&t->mem);
	t->app = NULL;
	return 0;
}

static int
serve_del(struct app *a, const struct shmq_req *req)
{
	enum app_kind kind = req->type == SHMQ_QP_DESTROY ? APP_QP :
		req->type == SHMQ_CQ_DESTROY              ? APP_CQ :
							    APP_MR;
	struct app_thing *t = san_app_find(a, kind, req->id);

	return t != NULL ? san_app_del(a->port, kind, t) : -ENOENT;
}

/* ---- hello ---- */

/* Publish the port's addresses and routes, so that a program need not ask for them. */
static void
publish_nets(const struct app_port *port, struct shmq_ctl *ctl)
{
	const struct san_inet_conf *conf = &san_engine_conf_of(port->ctx->port)->core.inet;
	uint32_t i;

	for (i = 0; i < conf->nb_addrs; i++, ctl->nb_addrs++) {
		memcpy(ctl->nets[i].ip, conf->addrs[i].ip.b, sizeof(ctl->nets[i].ip));
		ctl->nets[i].prefix_len = conf->addrs[i].prefix_len;
	}
	ctl->nb_nets = ctl->nb_addrs;
	for (i = 0; i < conf->nb_routes; i++) {
		struct shmq_net *net = &ctl->nets[ctl->nb_nets++];

		memcpy(net->ip, conf->routes[i].to.ip.b, sizeof(net->ip));
		net->prefix_len = conf->routes[i].to.prefix_len;
	}
}

static int
make_ctl(struct app_port *port, struct app *a)
{
	struct san_doorbells *doorbells[SAN_ENGINE_LCORES];
	uint32_t i;
	int rc;

	a->port = port;
	for (i = 1; i < SAN_ENGINE_APPS && a->id == 0; i++) {
		port->last_id = port->last_id + 1 < SAN_ENGINE_APPS ? port->last_id + 1 : 1;
		if (!port->used[port->last_id])
			a->id = port->last_id;
	}
	if (a->id == 0)
		return -EUSERS;
	port->used[a->id] = true;
	port->owners[a->id] = a->owner;
	rc = san_app_mem_create(&a->ctl_mem, "sanstack-ctl",
				san_shmq_ctl_bytes(port->caps.nb_lcores, port->nb_doorbells),
				san_app_guard_id(a), &a->ans.fd);
	if (rc != 0)
		return rc;
	a->ctl = a->ctl_mem.mem;
	publish_nets(port, a->ctl);
	san_spsc_prod_init(&a->events, SHMQ_EVENTS);
	for (i = 0; i < port->caps.nb_lcores; i++) {
		doorbells[i] = san_shmq_doorbells(a->ctl, i, port->nb_doorbells);
		if (san_engine_conf_of(port->ctx->port)->idle < SAN_IDLE_SLEEP)
			continue;
		a->wake_fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (a->wake_fds[i] < 0)
			return -errno;
	}
	return san_dpdk_ops_app_add(port->ctx, a->id, a->owner, doorbells, a->wake_fds);
}

/* The port that *req* names, or the first one. NULL: no such port, the answer lists them. */
static struct app_port *
app_find_port(struct apps *all, struct app *a, const struct shmq_req *req)
{
	char name[SHMQ_PORT + 1] = "", known[SHMQ_TEXT] = "";
	size_t len = 0;
	uint32_t i;

	memcpy(name, req->hello.port, SHMQ_PORT); /* the terminating zero may be missing */
	if (name[0] == '\0')
		return &all->ports[0];
	for (i = 0; i < all->nb_ports; i++) {
		if (strcmp(all->ports[i].name, name) == 0)
			return &all->ports[i];
		if (len < sizeof(known))
			len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s",
						i == 0 ? "" : ", ", all->ports[i].name);
	}
	san_app_refuse(a, 0, "port %s: there is none; there are: %s", name, known);
	return NULL;
}

static int
serve_hello(struct apps *all, struct app *a, const struct shmq_req *req)
{
	struct shmq_rep *rep = &a->ans.rep;
	const struct san_engine_conf *conf;
	struct app_port *port;
	uint32_t nb;
	int rc;

	if (a->attached)
		return san_app_refuse(a, -EISCONN, "a hello was accepted before");
	port = app_find_port(all, a, req);
	if (port == NULL)
		return -ENODEV;
	conf = san_engine_conf_of(port->ctx->port);
	rep->hello.max_msg = port->caps.max_msg;
	rep->hello.max_qps = port->caps.max_qps;
	rep->hello.max_cqs = RTE_MIN(port->conf->app_cqs, port->caps.max_cqs);
	rep->hello.max_mrs = RTE_MIN(port->conf->app_regions, port->caps.max_mrs);
	rep->hello.max_wr = port->caps.max_wr;
	rep->hello.nb_lcores = port->caps.nb_lcores;
	rep->hello.lcore_qps = port->lcore_qps;
	rep->hello.max_socks = port->max_socks;
	rep->hello.qp_shift = port->ctx->qp_shift;
	rep->hello.yields = conf->idle >= SAN_IDLE_YIELD;
	rep->hello.sleeps = conf->idle >= SAN_IDLE_SLEEP;
	rep->hello.no_tcp = conf->carry_tcp != SAN_CARRY_TCP_ON;
	if (req->hello.is_query)
		return 0;
	san_apps_name(a, req->hello.name);
	san_apps_own(a, san_shmq_is_root(&a->sender));
	nb = san_apps_of(all, a->owner);
	if (!san_apps_have_place(port, a->owner, 0)) {
		return san_app_refuse(a, -EUSERS,
				      "port %s serves %u applications, %u of them of this user; "
				      "see apps= and apps_per_uid=",
				      port->name, port->nb_attached, nb);
	}
	rc = make_ctl(port, a);
	if (rc != 0) {
		a->over = true; /* it is partly attached */
		return rc;
	}
	san_apps_attached(all, a);
	LOG_OF(a->owner, INFO, "app=%u port=%s pid=%d uid=%u attached", a->id, port->name,
	       (int)a->pid, a->uid);
	rep->hello.ctl_bytes = a->ctl_mem.bytes;
	return 0;
}

/* ---- regions ---- */

/* Bytes of the first page that are in front of the region. */
static size_t
skipped(const struct shmq_req *req)
{
	return req->mr.offset % (size_t)getpagesize();
}

static int
serve_mr_add(struct app *a, const struct shmq_req *req)
{
	const struct apps *all = a->port->all;
	const struct passed *p = a->passed;
	uint32_t i;
	int rc;

	if (p == NULL)
		return san_app_refuse(a, -EINVAL, "region: no descriptor of its memory");
	/* each failure may hold up an lcore, see shmq_guard.c */
	for (i = 0; i < APPS_FAILED; i++)
		if (a->owner != 0 && all->failed[i].owner == a->owner &&
		    all->failed[i].until_ns > san_engine_clock_monotonic())
			return san_app_refuse(a, -EAGAIN, "region: memory of this user's program "
							  "has failed: wait a minute");
	rc = san_app_check_one(a, USERS_MRS, "region", a->port->conf->app_regions);
	if (rc == 0)
		rc = check_bytes(a, "region", req->mr.length);
	if (rc == 0 && skipped(req) != 0) /* the sum cannot wrap: the length is within the limit */
		rc = check_bytes(a, "region", req->mr.length + skipped(req));
	if (rc == 0 && p->why[0] != '\0')
		return san_app_refuse(a, -EINVAL, "region: its memory %s", p->why);
	if (rc == 0 && p->memory < 0)
		return san_app_refuse(a, -EMFILE, "region: the daemon has no descriptor left");
	if (rc == 0)
		rc = san_app_mem_import(&a->growing, p->memory, req->mr.offset - skipped(req),
					req->mr.length + skipped(req), san_app_guard_id(a));
	if (rc != 0)
		return rc;
	san_app_count(a, USERS_MRS, 1, a->growing.bytes);
	a->waits_for = NULL;
	a->grows = *req;
	return -EINPROGRESS;
}

int
san_app_grow(struct app *a, uint64_t *due_ns)
{
	struct app_port *port = a->port;
	int rc = san_app_mem_populate(&a->growing, due_ns);
	uint32_t key;

	if (rc > 0)
		return -EINPROGRESS;
	if (rc != 0)
		san_app_refuse(a, rc, "region: its memory can't be mapped");
	else
		rc = san_dpdk_ops_mr_add(port->ctx, a->id, &a->grows,
					 (uint8_t *)a->growing.mem + skipped(&a->grows), &key);
	if (rc == 0) {
		port->mrs[san_app_port_place(port, APP_MR, key)] =
			(struct app_thing){.app = a, .number = key, .mem = a->growing};
		a->growing.mem = NULL;
		a->ans.rep.id = key;
	}
	san_app_end_growing(a);
	return rc;
}

void
san_app_end_growing(struct app *a)
{
	if (a->growing.mem == NULL)
		return;
	san_app_count(a, USERS_MRS, -1, a->growing.bytes);
	san_app_mem_end(&a->growing);
}

/* ---- completion queues ---- */

static int
serve_cq_create(struct app *a, const struct shmq_req *req)
{
	struct app_port *port = a->port;
	uint32_t id, depth;
	struct app_thing *q;
	size_t bytes;
	int rc;

	rc = san_app_check_one(a, USERS_CQS, "completion queue", port->conf->app_cqs);
	if (rc != 0)
		return rc;
	if (req->cq.depth == 0 || req->cq.depth > CQ_DEPTH_MAX)
		return san_app_refuse(a, -EINVAL, "completion queue: depth %u", req->cq.depth);
	for (id = 0; id < port->caps.max_cqs && port->cqs[id].app != NULL; id++)
		;
	if (id == port->caps.max_cqs)
		return san_app_refuse(a, -ENOSPC, "completion queue: all %u are in use; see cqs=",
				      id);
	depth = san_ulp_cq_depth(req->cq.depth);
	q = &port->cqs[id];
	bytes = san_wr_cq_bytes(depth);
	rc = check_bytes(a, "completion queue", bytes);
	if (rc == 0)
		rc = san_app_mem_create(&q->mem, "sanstack-cq", bytes, san_app_guard_id(a),
					&a->ans.fd);
	if (rc != 0)
		return rc;
	q->wake_sock = -1;
	rc = san_dpdk_ops_cq_create(port->ctx, depth, q->mem.mem, &q->cq);
	if (rc != 0) {
		san_app_mem_end(&q->mem);
		return rc;
	}
	q->app = a;
	q->number = id;
	san_app_count_thing(q, APP_CQ, 1);
	a->ans.rep.cq.id = id;
	a->ans.rep.cq.depth = depth;
	return 0;
}

/* ---- waiting (AFC-19) ---- */

static int
serve_cq_fd(struct app *a, const struct shmq_req *req)
{
	struct app_thing *q = san_app_find(a, APP_CQ, req->id);
	int rc;

	if (q == NULL)
		return -ENOENT;
	if (q->wake_sock >= 0)
		return san_app_refuse(a, -EEXIST, "completion queue %u: has its descriptor",
				      req->id);
	rc = san_shmq_pair(&q->wake_sock, &a->ans.fd);
	if (rc == 0)
		san_dpdk_ops_cq_watch(a->port->ctx, q->cq, q->wake_sock);
	return rc;
}

static int
serve_event_fd(struct app *a, const struct shmq_req *req)
{
	if (a->wake_sock >= 0)
		return san_app_refuse(a, -EEXIST, "events: has their descriptor");
	return san_shmq_pair(&a->wake_sock, &a->ans.fd);
}

static int
serve_wake_fd(struct app *a, const struct shmq_req *req)
{
	if (san_engine_conf_of(a->port->ctx->port)->idle < SAN_IDLE_SLEEP ||
	    req->id >= a->port->caps.nb_lcores)
		return san_app_refuse(a, -ENOENT, "lcore %u: none, or it never sleeps", req->id);
	a->ans.fd = dup(a->wake_fds[req->id]);
	return a->ans.fd < 0 ? -errno : 0;
}

/* ---- queue pairs ---- */

static bool
app_is_depth(uint32_t depth)
{
	return depth != 0 && depth <= SAN_ULP_DEPTH_MAX && rte_is_power_of_2(depth);
}

/* The work queue lies in shared memory. */
static int
app_make_qp(struct app *a, struct rtsan_provider_qp *conf)
{
	struct app_port *port = a->port;
	const struct shmq_qp *qp = &conf->req->qp;
	size_t bytes = san_wr_wq_bytes(qp->sq_depth, qp->rq_depth);
	uint64_t stream_bytes = san_dpdk_ops_stream_bytes(qp);
	struct app_thing *q;
	struct app_mem mem;
	int rc;

	rc = check_bytes(a, "queue pair", bytes + stream_bytes);
	if (rc == 0)
		rc = san_app_mem_create(&mem, "sanstack-wq", bytes, san_app_guard_id(a),
					&a->ans.fd);
	if (rc != 0)
		return rc;
	conf->wq = mem.mem;
	rc = san_dpdk_ops_qp_create(port->ctx, a->id, conf);
	if (rc != 0) {
		san_app_mem_end(&mem);
		return rc;
	}
	q = &port->qps[SAN_QPN_INDEX(conf->qp)];
	*q = (struct app_thing){
		.app = a, .number = conf->qp, .stream_bytes = stream_bytes, .mem = mem};
	san_app_count_thing(q, APP_QP, 1);
	return 0;
}

static int
serve_qp_create(struct app *a, const struct shmq_req *req)
{
	const struct app_thing *send_cq, *recv_cq;
	/* orphaned queue pairs of its user count as well */
	uint32_t nb_orphans = san_dpdk_ops_user_orphans(a->port->ctx, a->owner);
	const struct users_want w = {
		.what = USERS_QPS, .owner = a->owner, .nb = 1, .own = nb_orphans};
	struct rtsan_provider_qp conf = {.req = req};
	int rc;

	if (a->nb[USERS_QPS] + nb_orphans >= san_app_port_each(a->port, USERS_QPS))
		return san_app_refuse(a, -ENOSPC,
				      "queue pair: this application has %u, and %u of its user's "
				      "linger, its limit",
				      (uint32_t)a->nb[USERS_QPS], nb_orphans);
	rc = san_apps_check_beside(a->port, w);
	if (rc != 0)
		return rc;
	send_cq = san_app_find(a, APP_CQ, req->qp.send_cq);
	recv_cq = san_app_find(a, APP_CQ, req->qp.recv_cq);
	if (send_cq == NULL || recv_cq == NULL)
		return san_app_refuse(a, -EINVAL, "queue pair: no such completion queue");
	if (!app_is_depth(req->qp.sq_depth) || !app_is_depth(req->qp.rq_depth))
		return san_app_refuse(a, -EINVAL, "queue pair: depths %u, %u", req->qp.sq_depth,
				      req->qp.rq_depth);
	conf.send_cq = send_cq->cq;
	conf.recv_cq = recv_cq->cq;
	rc = app_make_qp(a, &conf);
	if (rc == 0)
		a->ans.rep.id = conf.qp;
	return rc;
}

/* ---- requests ---- */

/* All requests. *begins*: it begins something new, and is refused once the daemon drains. */
static const struct {
	app_serve_fn *fn;
	bool begins;
} serve[] = {
	[SHMQ_HELLO] = {NULL, true}, /* it chooses the port: see serve_hello() */
	[SHMQ_MR_ADD] = {serve_mr_add},
	[SHMQ_MR_DEL] = {serve_del},
	[SHMQ_CQ_CREATE] = {serve_cq_create},
	[SHMQ_CQ_DESTROY] = {serve_del},
	[SHMQ_QP_CREATE] = {serve_qp_create, true},
	[SHMQ_QP_DESTROY] = {serve_del},
	[SHMQ_LISTEN] = {san_app_conn_listen, true},
	[SHMQ_UNLISTEN] = {san_app_conn_unlisten},
	[SHMQ_CONNECT] = {san_app_conn_set_up, true},
	[SHMQ_ACCEPT] = {san_app_conn_set_up, true},
	[SHMQ_REJECT] = {san_app_conn_reject},
	[SHMQ_DISCONNECT] = {san_app_conn_disconnect},
	[SHMQ_CQ_FD] = {serve_cq_fd},
	[SHMQ_EVENT_FD] = {serve_event_fd},
	[SHMQ_WAKE_FD] = {serve_wake_fd},
	[SHMQ_SOCK_CARRY] = {san_socks_serve, true},
	[SHMQ_SOCK_FIND] = {san_socks_serve},
	[SHMQ_SOCK_SYNC] = {san_socks_serve},
	[SHMQ_SOCK_KERNEL] = {san_socks_serve},
	[SHMQ_SOCK_GROUP] = {san_socks_serve},
	[SHMQ_SOCK_LISTEN] = {san_socks_serve, true},
	[SHMQ_SOCK_CONNECT] = {san_socks_serve, true},
	[SHMQ_SOCK_ACCEPT] = {san_socks_serve},
	[SHMQ_SOCK_SETTLE] = {san_socks_serve},
	[SHMQ_SOCK_CLOSED] = {san_socks_serve},
};
static_assert(RTE_DIM(serve) == SHMQ_TYPES, "each request has a function");

int
san_app_serve(struct apps *all, struct app *a, const struct shmq_req *req, struct passed *p)
{
	bool is_hello = req->type == SHMQ_HELLO;

	memset(&a->ans.rep, 0, sizeof(a->ans.rep));
	a->ans.fd = -1;
	a->passed = p;
	rtsan_error_clear();
	if (req->magic != SHMQ_MAGIC)
		return san_app_refuse(a, -EPROTO, "not a request");
	if (req->abi != SHMQ_ABI)
		return san_app_refuse(a, -EPROTO, "the daemon speaks version %u, the library %u",
				      SHMQ_ABI,
				      req->abi);
	if (!is_hello && (req->type >= RTE_DIM(serve) || serve[req->type].fn == NULL))
		return san_app_refuse(a, -EPROTO, "request of an unknown kind, %u", req->type);
	if (all->closing && serve[req->type].begins)
		return san_app_refuse(a, -ESHUTDOWN, "the daemon is about to end");
	if (is_hello)
		return serve_hello(all, a, req);
	if (!a->attached)
		return san_app_refuse(a, -EPROTO, "a hello must come first");
	return serve[req->type].fn(a, req);
}

void
san_app_answer(struct apps *all, struct app *a, int rc)
{
	struct answer *ans = &a->ans;

	if (rc == -EINPROGRESS)
		return;
	if (rc != 0) {
		/* release the memory that a failed request has already created */
		san_fd_close(ans->fd);
		ans->fd = -1;
		if (ans->rep.text[0] == '\0' && rtsan_error_is_set())
			snprintf(ans->rep.text, sizeof(ans->rep.text), "%s", rtsan_error());
	}
	ans->rep.magic = SHMQ_MAGIC;
	ans->rep.abi = SHMQ_ABI;
	ans->rep.rc = rc;
	san_app_turn_send(all, a);
}
