/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * An application names what it holds by the engine's own numbers. They are looked up in
 * tables that say whose each is; what is not its own does not exist for it, so that it learns
 * nothing about others and needs no numbers of its own.
 *
 * Requests are served one after the other by one thread, each to its end: nothing waits for
 * an application, and an application that says nothing, or half of it, holds up nobody.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "app.h"
#include "app_priv.h"
#include "rtsan_priv.h"
#include "san_log.h"
#include "shmq_guard.h"

#define CQ_DEPTH_MAX (2 * SAN_ULP_DEPTH_MAX)

/* The answer to one request. */
struct answer {
	struct shmq_rep *rep;
	int fd; /**< that goes with it */
};

static int __attribute__((format(printf, 3, 4)))
refuse(struct answer *ans, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ans->rep->text, sizeof(ans->rep->text), fmt, ap);
	va_end(ap);
	return rc;
}

/* ---- what is whose: NULL, if it is not *a*'s ---- */

static struct app_qp *
find_qp(struct apps *all, const struct app *a, uint32_t qpn)
{
	struct app_qp *q = &all->qps[SAN_QPN_INDEX(qpn)];

	if (SAN_QPN_INDEX(qpn) >= all->caps.max_qps)
		return NULL;
	return q->app == a && q->qpn == qpn ? q : NULL;
}

static struct app_cq *
find_cq(struct apps *all, const struct app *a, uint32_t id)
{
	return id < all->caps.max_cqs && all->cqs[id].app == a ? &all->cqs[id] : NULL;
}

static struct app_mr *
mr_place(struct apps *all, uint32_t key)
{
	return &all->mrs[key & (all->caps.max_mrs - 1)];
}

static struct app_request *
find_request(struct apps *all, const struct app *a, uint64_t request)
{
	struct app_request *r = apps_request(all, request);

	return r->app == a && r->request == request ? r : NULL;
}

/* ---- what each may have ---- */

uint32_t
app_share(uint32_t limit, uint32_t all)
{
	return limit != 0 ? limit : RTE_MAX(all - all / 4, 1u);
}

/* Memory for *what*, if its limit allows. */
static int
check_bytes(const struct apps *all, const struct app *a, const char *what, uint64_t bytes,
	    struct answer *ans)
{
	/* it may have been made less than what this one has */
	uint64_t left = all->conf->app_bytes - RTE_MIN(all->conf->app_bytes, a->bytes);

	if (bytes != 0 && bytes <= left)
		return 0;
	return refuse(ans, -ENOSPC, "%s: %llu bytes, %llu are left of its limit", what,
		      (unsigned long long)bytes, (unsigned long long)left);
}

/* One more connection. Numbers of those that have ended rest for a while, and count. */
static int
check_conns(struct apps *all, const struct app *a, struct answer *ans)
{
	uint32_t max = app_share(all->conf->app_conns, all->max_conns);
	uint32_t nb = dpdk_app_slots(all->ctx, a->id);

	if (nb < max)
		return 0;
	return refuse(ans, -EAGAIN, "connection: this application has %u, with those that ended a "
				    "moment ago, its limit",
		      nb);
}

/* ---- hello ---- */

static int
make_ctl(struct apps *all, struct app *a, int *fd)
{
	struct san_bells *bells[SAN_ENGINE_LCORES];
	uint32_t i;
	void *mem;
	int rc;

	do /* there are as many as the limit allows, at least */
		all->last_id = all->last_id + 1 < SAN_ENGINE_APPS ? all->last_id + 1 : 1;
	while (all->used[all->last_id]);
	a->id = all->last_id;
	all->used[a->id] = true;
	a->ctl_bytes = shmq_ctl_bytes(all->caps.nb_lcores, all->lcore_qps);
	rc = shmq_mem_create("sanstack-ctl", a->ctl_bytes, &mem, fd);
	if (rc != 0)
		return rc;
	a->ctl = mem;
	a->ctl_guard = shmq_guard_add(mem, a->ctl_bytes, a->id);
	san_spsc_prod_init(&a->events, SHMQ_EVENTS);
	for (i = 0; i < all->caps.nb_lcores; i++) {
		bells[i] = shmq_bells(a->ctl, i, all->lcore_qps);
		if (!all->sleeps)
			continue;
		a->wake_fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (a->wake_fds[i] < 0)
			return -errno;
	}
	return dpdk_app_add(all->ctx, a->id, bells, a->wake_fds);
}

static uint32_t
count_of(const struct apps *all, uid_t uid)
{
	const struct app *a;
	uint32_t n = 0;

	LIST_FOREACH(a, &all->list, link)
		if (a->attached && a->uid == uid)
			n++;
	return n;
}

static int
serve_hello(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
	    struct answer *ans)
{
	int rc;

	(void)req;
	(void)fd;
	if (a->attached)
		return refuse(ans, -EISCONN, "said hello before");
	if (all->nb_attached >= all->conf->apps)
		return refuse(ans, -EUSERS, "the daemon serves %u applications, its limit",
			      all->nb_attached);
	if (count_of(all, a->uid) >= all->conf->apps_per_uid)
		return refuse(ans, -EUSERS, "the daemon serves %u applications of user %u, "
					    "the limit",
			      count_of(all, a->uid), a->uid);
	rc = make_ctl(all, a, &ans->fd);
	if (rc != 0) {
		a->over = true; /* half of it is there */
		return rc;
	}
	a->attached = true;
	all->nb_attached++;
	SAN_LOG(DRIVER, INFO, "app=%u pid=%d uid=%u attached", a->id, (int)a->pid, a->uid);
	ans->rep->hello.ctl_bytes = a->ctl_bytes;
	ans->rep->hello.max_msg = all->caps.max_msg;
	ans->rep->hello.max_qps = all->caps.max_qps;
	ans->rep->hello.max_cqs = RTE_MIN(all->conf->app_cqs, all->caps.max_cqs);
	ans->rep->hello.max_mrs = RTE_MIN(all->conf->app_regions, all->caps.max_mrs);
	ans->rep->hello.max_wr = all->caps.max_wr;
	ans->rep->hello.nb_lcores = all->caps.nb_lcores;
	ans->rep->hello.lcore_qps = all->lcore_qps;
	ans->rep->hello.qp_shift = all->ctx->qp_shift;
	ans->rep->hello.yields = all->yields;
	ans->rep->hello.sleeps = all->sleeps;
	return 0;
}

/* ---- regions ---- */

static int
serve_mr_add(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
	     struct answer *ans)
{
	struct rtsan_provider_mr mr = {.length = req->mr.length, .access = req->mr.access};
	struct app_mr *place;
	const char *why;
	int rc;

	if (fd < 0)
		return refuse(ans, -EINVAL, "region: no descriptor of its memory");
	if (a->nb_mrs >= all->conf->app_regions)
		return refuse(ans, -ENOSPC, "region: this application has %u, its limit",
			      a->nb_mrs);
	rc = check_bytes(all, a, "region", req->mr.length, ans);
	if (rc != 0)
		return rc;
	rc = shmq_mem_map(fd, req->mr.offset, req->mr.length, &mr.addr, &why);
	if (rc != 0)
		return refuse(ans, rc, "region: its memory %s", why);
	rc = dpdk_mr_add(all->ctx, a->id, req->mr.addr, &mr);
	if (rc != 0) {
		shmq_mem_unmap(mr.addr, mr.length);
		return rc;
	}
	place = mr_place(all, mr.key);
	*place = (struct app_mr){.app = a, .key = mr.key, .mem = mr.addr, .bytes = mr.length};
	place->guard = shmq_guard_add(mr.addr, mr.length, a->id);
	a->nb_mrs++;
	a->bytes += mr.length;
	ans->rep->id = mr.key;
	return 0;
}

int
app_del_mr(struct apps *all, struct app_mr *mr)
{
	int rc = dpdk_mr_del(all->ctx, mr->app->id, mr->key);

	if (rc != 0)
		return rc;
	shmq_guard_del(mr->guard);
	shmq_mem_unmap(mr->mem, mr->bytes);
	mr->app->nb_mrs--;
	mr->app->bytes -= mr->bytes;
	mr->app = NULL;
	return 0;
}

static int
serve_mr_del(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
	     struct answer *ans)
{
	struct app_mr *mr = mr_place(all, req->id);

	(void)fd;
	if (mr->app != a || mr->key != req->id)
		return refuse(ans, -ENOENT, "region: none with key 0x%x", req->id);
	return app_del_mr(all, mr);
}

/* ---- completion queues ---- */

static int
serve_cq_create(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
		struct answer *ans)
{
	uint32_t id, depth;
	struct app_cq *q;
	void *mem;
	int rc;

	(void)fd;
	if (a->nb_cqs >= all->conf->app_cqs)
		return refuse(ans, -ENOSPC, "completion queue: this application has %u, its limit",
			      a->nb_cqs);
	if (req->cq.depth == 0 || req->cq.depth > CQ_DEPTH_MAX)
		return refuse(ans, -EINVAL, "completion queue: depth %u", req->cq.depth);
	for (id = 0; id < all->caps.max_cqs && all->cqs[id].app != NULL; id++)
		;
	if (id == all->caps.max_cqs)
		return refuse(ans, -ENOSPC, "completion queue: all %u are in use; see cqs=", id);
	depth = san_ulp_cq_depth(req->cq.depth);
	q = &all->cqs[id];
	q->bytes = san_cq_bytes(depth);
	rc = check_bytes(all, a, "completion queue", q->bytes, ans);
	if (rc != 0)
		return rc;
	rc = shmq_mem_create("sanstack-cq", q->bytes, &mem, &ans->fd);
	if (rc != 0)
		return rc;
	q->mem = mem;
	q->wake_sock = -1;
	rc = dpdk_cq_create(all->ctx, depth, q->mem, &q->cq);
	if (rc != 0) {
		shmq_mem_unmap(mem, q->bytes);
		return rc;
	}
	q->app = a;
	q->guard = shmq_guard_add(mem, q->bytes, a->id);
	a->bytes += q->bytes;
	a->nb_cqs++;
	ans->rep->cq.id = id;
	ans->rep->cq.depth = depth;
	return 0;
}

int
app_del_cq(struct apps *all, struct app_cq *q)
{
	int rc = dpdk_cq_destroy(all->ctx, q->cq);

	if (rc != 0)
		return rc;
	if (q->wake_sock >= 0)
		close(q->wake_sock);
	shmq_guard_del(q->guard);
	shmq_mem_unmap(q->mem, q->bytes);
	q->app->bytes -= q->bytes;
	q->app->nb_cqs--;
	q->app = NULL;
	return 0;
}

static int
serve_cq_destroy(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
		 struct answer *ans)
{
	struct app_cq *q = find_cq(all, a, req->id);

	(void)fd;
	if (q == NULL)
		return refuse(ans, -ENOENT, "completion queue: none with number %u", req->id);
	return app_del_cq(all, q);
}

/* ---- waiting (AFC-19) ---- */

static int
serve_cq_fd(struct apps *all, struct app *a, const struct shmq_req *req, int fd, struct answer *ans)
{
	struct app_cq *q = find_cq(all, a, req->id);
	int rc;

	(void)fd;
	if (q == NULL)
		return refuse(ans, -ENOENT, "completion queue: none with number %u", req->id);
	if (q->wake_sock >= 0)
		return refuse(ans, -EEXIST, "completion queue %u: has its descriptor", req->id);
	rc = shmq_pair(&q->wake_sock, &ans->fd);
	if (rc == 0)
		dpdk_cq_watch(all->ctx, q->cq, q->wake_sock);
	return rc;
}

static int
serve_event_fd(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
	       struct answer *ans)
{
	(void)all;
	(void)req;
	(void)fd;
	if (a->wake_sock >= 0)
		return refuse(ans, -EEXIST, "events: has their descriptor");
	return shmq_pair(&a->wake_sock, &ans->fd);
}

static int
serve_wake_fd(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
	      struct answer *ans)
{
	(void)fd;
	if (!all->sleeps || req->id >= all->caps.nb_lcores)
		return refuse(ans, -ENOENT, "lcore %u: none, or it never sleeps", req->id);
	ans->fd = dup(a->wake_fds[req->id]);
	return ans->fd < 0 ? -errno : 0;
}

/* ---- queue pairs ---- */

static bool
is_depth(uint32_t depth)
{
	return depth != 0 && depth <= SAN_ULP_DEPTH_MAX && rte_is_power_of_2(depth);
}

static int
serve_qp_create(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
		struct answer *ans)
{
	const struct app_cq *send_cq = find_cq(all, a, req->qp.send_cq);
	const struct app_cq *recv_cq = find_cq(all, a, req->qp.recv_cq);
	struct rtsan_provider_qp conf = {
		.sq_depth = req->qp.sq_depth,
		.rq_depth = req->qp.rq_depth,
	};
	struct app_qp *q;
	size_t bytes;
	void *mem;
	int rc;

	(void)fd;
	if (a->nb_qps >= app_share(all->conf->app_qps, all->caps.max_qps))
		return refuse(ans, -ENOSPC, "queue pair: this application has %u, its limit",
			      a->nb_qps);
	if (send_cq == NULL || recv_cq == NULL)
		return refuse(ans, -EINVAL, "queue pair: no such completion queue");
	if (!is_depth(conf.sq_depth) || !is_depth(conf.rq_depth))
		return refuse(ans, -EINVAL, "queue pair: depths %u, %u", conf.sq_depth,
			      conf.rq_depth);
	bytes = san_wq_bytes(conf.sq_depth, conf.rq_depth);
	rc = check_bytes(all, a, "queue pair", bytes, ans);
	if (rc != 0)
		return rc;
	rc = shmq_mem_create("sanstack-wq", bytes, &mem, &ans->fd);
	if (rc != 0)
		return rc;
	conf.wq = mem;
	conf.send_cq = send_cq->cq;
	conf.recv_cq = recv_cq->cq;
	rc = dpdk_qp_create(all->ctx, a->id, &conf);
	if (rc != 0) {
		shmq_mem_unmap(mem, bytes);
		return rc;
	}
	q = &all->qps[SAN_QPN_INDEX(conf.qp)];
	*q = (struct app_qp){.app = a, .qpn = conf.qp, .bytes = bytes};
	q->guard = shmq_guard_add(mem, bytes, a->id);
	a->bytes += bytes;
	a->nb_qps++;
	ans->rep->id = conf.qp;
	return 0;
}

void
app_del_qp(struct apps *all, struct app_qp *q)
{
	struct san_wq *wq = dpdk_qp_destroy(all->ctx, q->qpn);

	shmq_guard_del(q->guard);
	shmq_mem_unmap(wq, q->bytes);
	q->app->bytes -= q->bytes;
	q->app->nb_qps--;
	q->app = NULL;
}

static int
serve_qp_destroy(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
		 struct answer *ans)
{
	struct app_qp *q = find_qp(all, a, req->id);

	(void)fd;
	if (q == NULL)
		return refuse(ans, -ENOENT, "queue pair: none with number 0x%x", req->id);
	app_del_qp(all, q);
	return 0;
}

/* ---- connections ---- */

/* 0: the port's. */
static int
check_partition(const struct apps *all, const struct app *a, uint16_t pkey, struct answer *ans)
{
	if (pkey == 0)
		pkey = all->ctx->param.pkey;
	if (partition_may(&all->conf->partitions, pkey, &a->user))
		return 0;
	return refuse(ans, -EACCES, "partition 0x%04x: not for this user; see [partitions]", pkey);
}

static int
serve_listen(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
	     struct answer *ans)
{
	struct app_listener *l;
	int rc;

	(void)fd;
	if (req->conn.backlog == 0)
		return refuse(ans, -EINVAL, "listen: backlog must be at least 1");
	rc = check_partition(all, a, req->conn.pkey, ans);
	if (rc != 0)
		return rc;
	if (a->nb_listeners >= all->conf->app_listeners)
		return refuse(ans, -ENOSPC, "listen: this application has %u listeners, its limit",
			      a->nb_listeners);
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	l->app = a;
	l->id = ++all->next_listener;
	l->cookie = req->conn.id;
	l->service = req->conn.service;
	l->pkey = req->conn.pkey;
	rc = dpdk_listen(all->ctx, l->service, l->pkey, req->conn.backlog, l->id);
	if (rc != 0) {
		free(l);
		return rc;
	}
	LIST_INSERT_HEAD(&all->listeners, l, link);
	a->nb_listeners++;
	return 0;
}

void
app_del_listener(struct apps *all, struct app_listener *l)
{
	dpdk_unlisten(all->ctx, l->service, l->pkey);
	LIST_REMOVE(l, link);
	l->app->nb_listeners--;
	free(l);
}

static int
serve_unlisten(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
	       struct answer *ans)
{
	struct app_listener *l;

	(void)fd;
	LIST_FOREACH(l, &all->listeners, link) {
		if (l->app == a && l->service == req->conn.service && l->pkey == req->conn.pkey) {
			app_del_listener(all, l);
			return 0;
		}
	}
	return refuse(ans, -ENOENT, "unlisten: does not listen there");
}

/* As librtsan would have checked it. */
static int
take_param(const struct shmq_param *from, struct rtsan_conn_param *to, struct answer *ans)
{
	memset(to, 0, sizeof(*to));
	if (!from->given)
		return 0;
	if (from->order > RTSAN_RELAXED)
		return refuse(ans, -EINVAL, "connection: order %u is unknown", from->order);
	if (from->private_len > RTSAN_PRIVATE_MAX)
		return refuse(ans, -EINVAL, "connection: private data of %u bytes, at most %u",
			      from->private_len, RTSAN_PRIVATE_MAX);
	to->order = from->order;
	to->pkey = from->pkey;
	to->window = from->window;
	to->first_window = from->first_window;
	to->max_txn = from->max_txn;
	to->msg_limit = from->msg_limit;
	to->rnr_ms = from->rnr_ms;
	to->keepalive_ms = from->keepalive_ms;
	to->private_len = from->private_len;
	to->private_data = from->private_data;
	return 0;
}

/* The queue pair of a request about connections, if nothing is wrong with it. */
static int
take_qp(struct apps *all, struct app *a, uint32_t qpn, struct answer *ans)
{
	const char *fault;

	if (find_qp(all, a, qpn) == NULL)
		return refuse(ans, -ENOENT, "queue pair: none with number 0x%x", qpn);
	fault = dpdk_qp_fault(all->ctx, qpn);
	if (fault != NULL)
		return refuse(ans, -EBADMSG, "queue pair: ended for an entry with %s", fault);
	return 0;
}

static int
serve_connect(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
	      struct answer *ans)
{
	struct rtsan_conn_param param;
	char peer[SHMQ_PEER + 1] = "";
	int rc = take_qp(all, a, req->conn.id, ans);

	(void)fd;
	if (rc == 0)
		rc = take_param(&req->conn.param, &param, ans);
	if (rc == 0)
		rc = check_conns(all, a, ans);
	if (rc != 0)
		return rc;
	rc = check_partition(all, a, param.pkey, ans);
	if (rc != 0)
		return rc;
	memcpy(peer, req->conn.peer, SHMQ_PEER);
	return dpdk_connect(all->ctx, req->conn.id, peer, req->conn.service, &param);
}

static int
serve_accept(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
	     struct answer *ans)
{
	struct app_request *r = find_request(all, a, req->conn.request);
	struct rtsan_conn_param param;
	int rc = take_qp(all, a, req->conn.id, ans);

	(void)fd;
	if (rc == 0)
		rc = take_param(&req->conn.param, &param, ans);
	if (rc != 0)
		return rc;
	if (r == NULL)
		return refuse(ans, -ENOENT, "accept: no such request");
	rc = check_conns(all, a, ans);
	if (rc != 0)
		return rc;
	rc = dpdk_accept(all->ctx, req->conn.request, req->conn.id, &param);
	if (rc == 0 || rc == -ENOENT)
		r->app = NULL;
	return rc;
}

static int
serve_reject(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
	     struct answer *ans)
{
	struct app_request *r = find_request(all, a, req->conn.request);
	struct rtsan_conn_param param;
	int rc = take_param(&req->conn.param, &param, ans);

	(void)fd;
	if (rc != 0)
		return rc;
	if (r == NULL)
		return refuse(ans, -ENOENT, "reject: no such request");
	r->app = NULL;
	return dpdk_reject(all->ctx, req->conn.request, param.private_data, param.private_len);
}

static int
serve_disconnect(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
		 struct answer *ans)
{
	(void)fd;
	if (find_qp(all, a, req->id) == NULL)
		return refuse(ans, -ENOENT, "queue pair: none with number 0x%x", req->id);
	return dpdk_disconnect(all->ctx, req->id);
}

/* ---- requests ---- */

static int (*const serve[])(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
			    struct answer *ans) = {
	[SHMQ_HELLO] = serve_hello,
	[SHMQ_MR_ADD] = serve_mr_add,
	[SHMQ_MR_DEL] = serve_mr_del,
	[SHMQ_CQ_CREATE] = serve_cq_create,
	[SHMQ_CQ_DESTROY] = serve_cq_destroy,
	[SHMQ_QP_CREATE] = serve_qp_create,
	[SHMQ_QP_DESTROY] = serve_qp_destroy,
	[SHMQ_LISTEN] = serve_listen,
	[SHMQ_UNLISTEN] = serve_unlisten,
	[SHMQ_CONNECT] = serve_connect,
	[SHMQ_ACCEPT] = serve_accept,
	[SHMQ_REJECT] = serve_reject,
	[SHMQ_DISCONNECT] = serve_disconnect,
	[SHMQ_CQ_FD] = serve_cq_fd,
	[SHMQ_EVENT_FD] = serve_event_fd,
	[SHMQ_WAKE_FD] = serve_wake_fd,
};
static_assert(RTE_DIM(serve) == SHMQ_TYPES, "a request that nobody serves");

/* What begins something that would not come to an end before we do. */
static const bool is_begin[SHMQ_TYPES] = {
	[SHMQ_HELLO] = true,
	[SHMQ_QP_CREATE] = true,
	[SHMQ_LISTEN] = true,
	[SHMQ_CONNECT] = true,
	[SHMQ_ACCEPT] = true,
};

static int
serve_one(struct apps *all, struct app *a, const struct shmq_req *req, int fd, struct answer *ans)
{
	if (req->magic != SHMQ_MAGIC)
		return refuse(ans, -EPROTO, "not a request");
	if (req->abi != SHMQ_ABI)
		return refuse(ans, -EPROTO, "the daemon speaks version %u, the library %u",
			      SHMQ_ABI,
			      req->abi);
	if (req->type >= RTE_DIM(serve) || serve[req->type] == NULL)
		return refuse(ans, -EPROTO, "request of an unknown kind, %u", req->type);
	if (all->closing && is_begin[req->type])
		return refuse(ans, -ESHUTDOWN, "the daemon is about to end");
	if (!a->attached && req->type != SHMQ_HELLO)
		return refuse(ans, -EPROTO, "no hello before");
	return serve[req->type](all, a, req, fd, ans);
}

void
app_serve(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
	  struct shmq_rep *rep, int *out_fd)
{
	struct answer ans = {.rep = rep, .fd = -1};
	int rc;

	memset(rep, 0, sizeof(*rep));
	rtsan_error_clear();
	rc = serve_one(all, a, req, fd, &ans);
	if (rc != 0) {
		/* one that failed after it had made its memory keeps none of it */
		if (ans.fd >= 0)
			close(ans.fd);
		ans.fd = -1;
		if (rep->text[0] == '\0' && rtsan_error_is_set())
			snprintf(rep->text, sizeof(rep->text), "%s", rtsan_error());
	}
	rep->magic = SHMQ_MAGIC;
	rep->abi = SHMQ_ABI;
	rep->rc = rc;
	*out_fd = ans.fd;
}
