/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The provider whose engine runs in another process, sanstack-daemon. Each control call sends a
 * record to the daemon. Posting, polling and events need no system call: they use memory that both
 * processes map. Arguments are not checked here, because the daemon checks them. (SYS-2)
 */

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unix_priv.h"

#define ALIVE_EVERY 1024 /* polls without an event, between checks whether the daemon is alive */

/* ---- contexts ---- */

static int
unix_ops_open(const char *args, const struct rtsan_host *host, void **priv)
{
	struct unix_ctx *ctx = calloc(1, sizeof(*ctx));
	int rc;

	if (ctx == NULL)
		return -ENOMEM;
	ctx->host = host;
	rc = san_unix_call_open(ctx, args);
	if (rc != 0) {
		free(ctx);
		return rc;
	}
	ctx->qps = calloc(ctx->caps.max_qps, sizeof(*ctx->qps));
	if (ctx->qps == NULL) {
		san_unix_call_close(ctx);
		free(ctx);
		return -ENOMEM;
	}
	*priv = ctx;
	return 0;
}

static void
unix_ops_close(void *priv)
{
	struct unix_ctx *ctx = priv;

	/* the daemon releases what is left */
	san_unix_call_close(ctx);
	free(ctx->qps);
	free(ctx);
}

static int
unix_ops_progress(void *priv)
{
	const struct unix_ctx *ctx = priv;

	if (atomic_load_explicit(&ctx->is_lost, memory_order_relaxed))
		return -EIO;
	if (ctx->yields)
		sched_yield();
	return 0;
}

static void
unix_ops_query(void *priv, struct rtsan_caps *caps)
{
	const struct unix_ctx *ctx = priv;

	*caps = ctx->caps;
}

static int
unix_ops_address(void *priv, uint32_t index, char text[RTSAN_ADDRESS_MAX])
{
	const struct unix_ctx *ctx = priv;
	const struct in6_addr *ip;
	bool v4;

	if (index >= ctx->ctl->nb_addrs)
		return -ENOENT;
	ip = (const struct in6_addr *)ctx->ctl->nets[index].ip;
	v4 = IN6_IS_ADDR_V4MAPPED(ip);
	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? &ip->s6_addr[12] : ip->s6_addr, text,
		  RTSAN_ADDRESS_MAX);
	return 0;
}

/* Map memory that the daemon has created. */
static void *
unix_ops_map_mem(struct unix_ctx *ctx, int fd, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	if (p != MAP_FAILED)
		return p;
	ctx->host->fail(-ENOMEM, "mmap of %zu bytes: %s", bytes, strerror(errno));
	return NULL;
}

/* ---- records that are sent unchanged ---- */

static int
unix_ops_call(void *priv, const struct shmq_req *req)
{
	struct shmq_rep rep;

	return san_unix_call(priv, req, -1, &rep, NULL);
}

static int
call_id(struct unix_ctx *ctx, enum shmq_type type, uint32_t id)
{
	struct shmq_req req = {.type = type, .id = id};

	return unix_ops_call(ctx, &req);
}

static int
unix_ops_mr_add(void *priv, const struct shmq_req *req, int fd, struct rtsan_provider_keys *keys)
{
	struct shmq_rep rep;
	int rc = san_unix_call(priv, req, fd, &rep, NULL);

	if (rc == 0)
		keys->key = keys->rkey = rep.id;
	return rc;
}

/* ---- completion queues ---- */

static int
unix_ops_cq_create(void *priv, uint32_t depth, void **out)
{
	struct shmq_req req = {.type = SHMQ_CQ_CREATE, .cq = {.depth = depth}};
	struct unix_ctx *ctx = priv;
	struct unix_cq *cq = calloc(1, sizeof(*cq));
	struct shmq_rep rep;
	int rc, fd;

	if (cq == NULL)
		return -ENOMEM;
	rc = san_unix_call(ctx, &req, -1, &rep, &fd);
	if (rc != 0) {
		free(cq);
		return rc;
	}
	cq->ctx = ctx;
	cq->fd = -1;
	cq->id = rep.cq.id;
	cq->bytes = san_wr_cq_bytes(rep.cq.depth);
	cq->mem = unix_ops_map_mem(ctx, fd, cq->bytes);
	if (cq->mem == NULL) {
		call_id(ctx, SHMQ_CQ_DESTROY, cq->id);
		free(cq);
		return -ENOMEM;
	}
	san_spsc_cons_init(&cq->c, rep.cq.depth);
	*out = cq;
	return 0;
}

static int
unix_ops_cq_destroy(void *priv, void *arg)
{
	struct unix_cq *cq = arg;
	int rc = call_id(priv, SHMQ_CQ_DESTROY, cq->id);

	if (rc != 0 && rc != -EIO)
		return rc;
	if (cq->fd >= 0)
		close(cq->fd);
	munmap(cq->mem, cq->bytes);
	free(cq);
	return 0;
}

static int
unix_ops_cq_poll(void *arg, struct san_ulp_wc *wc, int n)
{
	struct unix_cq *cq = arg;

	return (int)san_wr_cq_poll(&cq->c, cq->mem, wc, (uint32_t)n);
}

/* ---- waiting ---- */

/* Empty the pair. When the daemon ends, its side is closed, which wakes waiters, too. */
static int
unix_ops_drain_fd(struct unix_ctx *ctx, int fd)
{
	int rc = fd >= 0 ? san_shmq_pair_drain(fd) : 0;

	if (rc != 0)
		atomic_store(&ctx->is_lost, true);
	return atomic_load(&ctx->is_lost) || atomic_load(&ctx->ctl->orphaned) ? -EIO : 0;
}

static int
unix_ops_cq_fd(void *priv, void *arg)
{
	struct unix_cq *cq = arg;

	if (cq->fd < 0)
		cq->fd = san_unix_call_fd(priv, SHMQ_CQ_FD, cq->id);
	return cq->fd;
}

static int
unix_ops_cq_arm(void *priv, void *arg)
{
	struct unix_cq *cq = arg;
	int rc = unix_ops_drain_fd(priv, cq->fd);

	if (!san_spsc_arm(&cq->c, &cq->mem->tail, &cq->mem->armed))
		return 1; /* completions can be polled, also those from before the daemon's end */
	return rc;
}

static int
unix_ops_event_fd(void *priv)
{
	struct unix_ctx *ctx = priv;

	if (ctx->event_fd < 0)
		ctx->event_fd = san_unix_call_fd(ctx, SHMQ_EVENT_FD, 0);
	return ctx->event_fd;
}

static int
unix_ops_event_arm(void *priv)
{
	struct unix_ctx *ctx = priv;
	int rc = unix_ops_drain_fd(ctx, ctx->event_fd);

	if (!san_spsc_arm(&ctx->events, &ctx->ctl->ev_tail, &ctx->ctl->ev_armed))
		return 1;
	return rc;
}

/* ---- queue pairs ---- */

static int
unix_ops_qp_create(void *priv, struct rtsan_provider_qp *conf)
{
	struct unix_ctx *ctx = priv;
	const struct unix_cq *send_cq = conf->send_cq, *recv_cq = conf->recv_cq;
	struct shmq_req req = *conf->req;
	struct unix_qp *q;
	struct shmq_rep rep;
	int rc, fd;

	req.qp.send_cq = send_cq->id;
	req.qp.recv_cq = recv_cq->id;
	rc = san_unix_call(ctx, &req, -1, &rep, &fd);
	if (rc != 0)
		return rc;
	q = &ctx->qps[SAN_QPN_INDEX(rep.id)];
	q->bytes = san_wr_wq_bytes(req.qp.sq_depth, req.qp.rq_depth);
	q->wq = unix_ops_map_mem(ctx, fd, q->bytes);
	if (q->wq == NULL) {
		call_id(ctx, SHMQ_QP_DESTROY, rep.id);
		return -ENOMEM;
	}
	conf->qp = rep.id;
	conf->wq = q->wq;
	return 0;
}

static void
unix_ops_qp_destroy(void *priv, uint32_t qp)
{
	struct unix_ctx *ctx = priv;
	struct unix_qp *q = &ctx->qps[SAN_QPN_INDEX(qp)];

	call_id(ctx, SHMQ_QP_DESTROY, qp);
	munmap(q->wq, q->bytes);
	q->wq = NULL;
}

static void
unix_ops_doorbell(void *priv, uint32_t qp)
{
	const struct unix_ctx *ctx = priv;
	uint32_t index = SAN_QPN_INDEX(qp), lcore = index >> ctx->qp_shift;

	if (san_doorbells_ring(san_shmq_doorbells(ctx->ctl, lcore, ctx->nb_doorbells),
			       index - (lcore << ctx->qp_shift)))
		eventfd_write(ctx->wake_fds[lcore], 1);
}

/* ---- events ---- */

static int
unix_ops_event_poll(void *priv, struct shmq_event *ev)
{
	struct unix_ctx *ctx = priv;

	if (san_spsc_count(&ctx->events, &ctx->ctl->ev_tail) == 0) {
		if (++ctx->nb_idle % ALIVE_EVERY == 0 && !san_unix_call_is_alive(ctx))
			return -EIO;
		return atomic_load(&ctx->ctl->orphaned) || atomic_load(&ctx->is_lost) ? -EIO : 0;
	}
	*ev = ctx->ctl->events[ctx->events.head & ctx->events.mask];
	san_spsc_pop(&ctx->events, &ctx->ctl->ev_head, 1);
	return 1;
}

static const struct rtsan_provider_ops ops = {
	.open = unix_ops_open,
	.close = unix_ops_close,
	.progress = unix_ops_progress,
	.query = unix_ops_query,
	.call = unix_ops_call,
	.address = unix_ops_address,
	.mr_add = unix_ops_mr_add,
	.cq_create = unix_ops_cq_create,
	.cq_destroy = unix_ops_cq_destroy,
	.cq_poll = unix_ops_cq_poll,
	.cq_fd = unix_ops_cq_fd,
	.cq_arm = unix_ops_cq_arm,
	.qp_create = unix_ops_qp_create,
	.qp_destroy = unix_ops_qp_destroy,
	.doorbell = unix_ops_doorbell,
	.event_poll = unix_ops_event_poll,
	.event_fd = unix_ops_event_fd,
	.event_arm = unix_ops_event_arm,
};

extern const struct rtsan_provider rtsan_provider_unix;

const struct rtsan_provider rtsan_provider_unix = {
	.abi = RTSAN_PROVIDER_ABI,
	.name = "unix",
	.ops = &ops,
};
