/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Operations of the provider. Each is a call that ops_execute() runs on the lcore. Only the two
 * operations of the data path use the rings directly (SYS-2).
 */

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dpdk_priv.h"
#include "san_assert.h"
#include "stream_attr.h"

/* ---- open, close ---- */

static int
dpdk_ops_open(const char *args, const struct rtsan_host *host, void **priv)
{
	char buf[DPDK_WORD_MAX * 8], *words[DPDK_ARGS_MAX];
	static char name[] = "rtsan";
	struct dpdk_ctx *ctx;
	int n, eal, rc;

	words[0] = name;
	n = san_dpdk_eal_split(args, buf, sizeof(buf), &words[1], DPDK_ARGS_MAX - 1);
	if (n < 0)
		return host->fail(n == -E2BIG ? -EINVAL : n, "spec: too long, or a quote is open");
	n++;
	for (eal = 1; eal < n && strcmp(words[eal], "--") != 0; eal++)
		;
	if (eal == n)
		return host->fail(-EINVAL, "spec: \"--\" between EAL arguments and port arguments "
					   "is missing");
	rc = san_dpdk_ctx_open_alone(eal, words, &words[eal + 1], n - eal - 1, host, &ctx);
	if (rc == 0)
		*priv = ctx;
	return rc;
}

static int
dpdk_ops_progress(void *priv)
{
	const struct dpdk_ctx *ctx = priv;

	return san_engine_progress(ctx->port);
}

static void
dpdk_ops_query(void *priv, struct rtsan_caps *caps)
{
	const struct dpdk_ctx *ctx = priv;
	const struct san_ulp_conf *ulp = &san_engine_conf_of(ctx->port)->core.ulp;

	*caps = (struct rtsan_caps){
		.max_qps = ctx->nb_engines * ulp->max_qps,
		.max_cqs = ulp->max_cqs,
		.max_mrs = ulp->max_mrs,
		.max_wr = SAN_ULP_DEPTH_MAX,
		.max_sge = RTSAN_SGE_MAX,
		.nb_lcores = ctx->nb_engines,
		.max_inline = RTSAN_INLINE_MAX,
		.max_msg = RTSAN_LENGTH_MAX,
		.has_mr_reg = true,
		.has_unordered = true,
		.has_atomic = true,
		.has_recv_from = true,
		.has_loan = true,
		.provider = "dpdk",
	};
}

static int
dpdk_ops_address(void *priv, uint32_t index, char text[RTSAN_ADDRESS_MAX])
{
	const struct dpdk_ctx *ctx = priv;
	const struct san_inet_conf *inet = &san_engine_conf_of(ctx->port)->core.inet;
	char buf[SAN_INET_TEXT];

	if (index >= inet->nb_addrs)
		return -ENOENT;
	snprintf(text, RTSAN_ADDRESS_MAX, "%s", san_inet_addr_text(&inet->addrs[index].ip, buf));
	return 0;
}

/* ---- on the lcore ---- */

enum ops_op {
	OPS_APP_ADD,
	OPS_APP_DEL,
	OPS_APP_SLOTS,
	OPS_USER_ORPHANS,
	OPS_MR_ADD,
	OPS_MR_COPY, /* with the key that another lcore has chosen */
	OPS_CQ_CREATE,
	OPS_CQ_DESTROY,
	OPS_CQ_IS_OF,
	OPS_CQ_LEAVE,
	OPS_CQ_JOIN,
	OPS_CQ_WATCH,
	OPS_QP_CREATE,
	OPS_QP_DESTROY,
	OPS_QP_FAULT,
};

/** A call on its way to an lcore; each operation uses some of it. */
struct ops_call {
	enum ops_op op;
	uint16_t app;
	uint32_t user;
	struct san_doorbells *doorbells;
	int fd;          /* to wake the lcore of an application, or a waiter of *cq* */
	uint32_t *slots; /* connections of each application: the lcore's are added */
	const struct shmq_req *req;
	uint16_t pkey;
	void *mem;   /* of a region, or of a completion queue; NULL: the ulp layer allocates it */
	uint32_t id; /* key of a region, number of a queue pair */
	uint32_t depth;
	struct san_ulp_cq *cq;
	struct san_engine_qp_conf qp;
	struct san_wq *wq; /* of a queue pair that is destroyed */
	const char *fault;
};

static int
ops_mr_add(struct san_ulp *ulp, struct ops_call *c)
{
	uint64_t addr = c->req->mr.addr, length = c->req->mr.length;
	uint8_t access = (uint8_t)c->req->mr.access;
	int rc = c->op == OPS_MR_ADD ?
		san_ulp_mr_add(ulp, c->mem, length, addr, access, c->pkey, &c->id) :
		san_ulp_mr_copy(ulp, c->mem, length, addr, access, c->pkey, c->id);

	return rc == 0 ? san_ulp_mr_give(ulp, c->id, c->app) : rc;
}

static int
ops_execute(struct san_engine *e, void *arg)
{
	struct ops_call *c = arg;
	struct san_core *core = san_engine_lcore_core(e);
	struct san_ulp *ulp = san_core_ulp(core);
	uint32_t i;

	switch (c->op) {
	case OPS_APP_ADD:
		return san_engine_app_add(e, c->app, c->user, c->doorbells, c->fd);
	case OPS_APP_DEL:
		san_engine_app_del(e, c->app);
		return 0;
	case OPS_APP_SLOTS:
		for (i = 0; i < SAN_ENGINE_APPS; i++)
			c->slots[i] += san_pdl_owner_slots(san_core_pdl(core), (uint8_t)i);
		return 0;
	case OPS_USER_ORPHANS:
		return (int)san_core_share_user_orphans(core, c->user);
	case OPS_MR_ADD:
	case OPS_MR_COPY:
		return ops_mr_add(ulp, c);
	case OPS_CQ_CREATE:
		return c->mem != NULL ? san_ulp_cq_create_at(ulp, c->depth, c->mem, &c->cq) :
					san_ulp_cq_create(ulp, c->depth, &c->cq);
	case OPS_CQ_DESTROY:
		return san_ulp_cq_destroy(ulp, c->cq);
	case OPS_CQ_IS_OF:
		return san_ulp_cq_is_of(ulp, c->cq);
	case OPS_CQ_LEAVE:
		return san_ulp_cq_leave(ulp, c->cq);
	case OPS_CQ_JOIN:
		return san_ulp_cq_join(ulp, c->cq);
	case OPS_CQ_WATCH:
		san_ulp_cq_watch(c->cq, c->fd);
		return 0;
	case OPS_QP_CREATE:
		return san_engine_lcore_qp_add(e, &c->qp, &c->id);
	case OPS_QP_DESTROY:
		c->wq = san_engine_lcore_qp_del(e, c->id);
		return 0;
	default: /* OPS_QP_FAULT */
		c->fault = san_engine_lcore_qp_fault(e, c->id);
		return 0;
	}
}

static int
ops_call_lcore(const struct dpdk_ctx *ctx, uint32_t lcore, struct ops_call *c)
{
	return san_engine_loop_call(san_engine_at(ctx->port, lcore), ops_execute, c);
}

/* Returns the sum of the results of all lcores. */
static uint32_t
ops_call_all(const struct dpdk_ctx *ctx, struct ops_call *c)
{
	uint32_t i, sum = 0;

	for (i = 0; i < ctx->nb_engines; i++)
		sum += (uint32_t)ops_call_lcore(ctx, i, c);
	return sum;
}

static uint32_t
ops_lcore_of(const struct dpdk_ctx *ctx, uint32_t qp)
{
	return SAN_QPN_INDEX(qp) >> ctx->qp_shift;
}

/* ---- applications ---- */

int
san_dpdk_ops_app_add(struct dpdk_ctx *ctx, uint16_t app, uint32_t user,
		     struct san_doorbells *const doorbells[], const int wake_fds[])
{
	struct ops_call c = {.op = OPS_APP_ADD, .app = app, .user = user};
	uint32_t i;
	int rc = 0;

	for (i = 0; i < ctx->nb_engines && rc == 0; i++) {
		c.doorbells = doorbells[i];
		c.fd = wake_fds[i];
		rc = ops_call_lcore(ctx, i, &c);
	}
	return rc;
}

void
san_dpdk_ops_app_del(struct dpdk_ctx *ctx, uint16_t app)
{
	struct ops_call c = {.op = OPS_APP_DEL, .app = app};

	ops_call_all(ctx, &c);
}

void
san_dpdk_ops_app_slots(struct dpdk_ctx *ctx, uint32_t nb[SAN_ENGINE_APPS])
{
	struct ops_call c = {.op = OPS_APP_SLOTS, .slots = nb};

	ops_call_all(ctx, &c);
}

uint32_t
san_dpdk_ops_user_orphans(struct dpdk_ctx *ctx, uint32_t user)
{
	struct ops_call c = {.op = OPS_USER_ORPHANS, .user = user};

	return ops_call_all(ctx, &c);
}

const char *
san_dpdk_ops_qp_fault(struct dpdk_ctx *ctx, uint32_t qp)
{
	struct ops_call c = {.op = OPS_QP_FAULT, .id = qp};

	ops_call_lcore(ctx, ops_lcore_of(ctx, qp), &c);
	return c.fault;
}

/* ---- regions ---- */

/*
 * The lcores have equal tables: librtsan locks around changes, and a key that is free in the first
 * table is free in all.
 */
int
san_dpdk_ops_mr_add(struct dpdk_ctx *ctx, uint16_t app, const struct shmq_req *req, void *mem,
		    uint32_t *key)
{
	struct ops_call c = {
		.op = OPS_MR_ADD,
		.app = app,
		.req = req,
		.pkey = ctx->param.pkey,
		.mem = mem,
	};
	int rc = ops_call_lcore(ctx, 0, &c);
	uint32_t i;

	c.op = OPS_MR_COPY;
	for (i = 1; i < ctx->nb_engines && rc == 0; i++) {
		rc = ops_call_lcore(ctx, i, &c);
		SAN_VERIFY(rc == 0);
	}
	*key = c.id;
	return rc;
}

static int
dpdk_ops_mr_add(void *priv, const struct shmq_req *req, int fd, struct rtsan_provider_keys *keys)
{
	int rc = san_dpdk_ops_mr_add(priv, 0, req, (void *)(uintptr_t)req->mr.addr, &keys->key);

	keys->rkey = keys->key;
	return rc;
}

/* ---- completion queues ---- */

int
san_dpdk_ops_cq_create(struct dpdk_ctx *ctx, uint32_t depth, struct san_cq *mem, void **cq)
{
	struct ops_call c = {.op = OPS_CQ_CREATE, .depth = depth, .mem = mem};
	int rc = ops_call_lcore(ctx, 0, &c);

	*cq = c.cq;
	return rc;
}

static int
dpdk_ops_cq_create(void *priv, uint32_t depth, void **cq)
{
	return san_dpdk_ops_cq_create(priv, depth, NULL, cq);
}

static int
ops_call_cq(const struct dpdk_ctx *ctx, uint32_t lcore, enum ops_op op, void *cq)
{
	struct ops_call c = {.op = op, .cq = cq};

	return ops_call_lcore(ctx, lcore, &c);
}

/* Number of the engine that has *cq*. */
static uint32_t
cq_engine(const struct dpdk_ctx *ctx, void *cq)
{
	uint32_t i;

	for (i = 0; i + 1 < ctx->nb_engines; i++)
		if (ops_call_cq(ctx, i, OPS_CQ_IS_OF, cq))
			break;
	return i;
}

int
san_dpdk_ops_cq_destroy(void *priv, void *cq)
{
	return ops_call_cq(priv, cq_engine(priv, cq), OPS_CQ_DESTROY, cq);
}

/* Move *cq* to engine *to*, if it is elsewhere. -EBUSY: it has queue pairs; -ENOSPC. */
static int
cq_move(const struct dpdk_ctx *ctx, void *cq, uint32_t to)
{
	uint32_t from = cq_engine(ctx, cq);
	int rc;

	if (from == to)
		return 0;
	rc = ops_call_cq(ctx, from, OPS_CQ_LEAVE, cq);
	if (rc != 0)
		return rc;
	rc = ops_call_cq(ctx, to, OPS_CQ_JOIN, cq);
	if (rc != 0) /* move it back: its old place is still free */
		ops_call_cq(ctx, from, OPS_CQ_JOIN, cq);
	return rc;
}

/* ---- waiting ---- */

void
san_dpdk_ops_cq_watch(struct dpdk_ctx *ctx, void *cq, int fd)
{
	struct ops_call c = {.op = OPS_CQ_WATCH, .cq = cq, .fd = fd};

	ops_call_lcore(ctx, cq_engine(ctx, cq), &c);
}

/* A program that polls the engine itself cannot sleep: no packet would be received. */
static int
polls_itself(const struct dpdk_ctx *ctx)
{
	if (san_engine_conf_of(ctx->port)->own_lcore)
		return 0;
	return ctx->host->fail(-ENOTSUP, "this program's own polling drives the port: "
					 "poll=lcore gives it an lcore");
}

static int
dpdk_ops_cq_fd(void *priv, void *cq)
{
	struct dpdk_ctx *ctx = priv;
	int fd = san_ulp_cq_waiter(cq), rc = polls_itself(ctx);

	if (rc != 0 || fd >= 0)
		return rc != 0 ? rc : fd;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	san_dpdk_ops_cq_watch(ctx, cq, fd);
	return fd;
}

static int
dpdk_ops_cq_arm(void *priv, void *cq)
{
	const struct dpdk_ctx *ctx = priv;
	int fd = san_ulp_cq_waiter(cq);
	eventfd_t n;

	if (fd >= 0)
		eventfd_read(fd, &n); /* it does not block */
	if (!san_ulp_cq_arm(cq))
		return 1;
	return san_engine_is_lost(ctx->port) ? -EIO : 0;
}

static int
dpdk_ops_event_fd(void *priv)
{
	const struct dpdk_ctx *ctx = priv;
	int rc = polls_itself(ctx);

	return rc != 0 ? rc : san_engine_event_fd(ctx->port);
}

static int
dpdk_ops_event_arm(void *priv)
{
	const struct dpdk_ctx *ctx = priv;

	if (san_engine_event_arm(ctx->port))
		return 1;
	return san_engine_is_lost(ctx->port) ? -EIO : 0;
}

static int
dpdk_ops_cq_destroy(void *priv, void *cq)
{
	int fd = san_ulp_cq_waiter(cq), rc = san_dpdk_ops_cq_destroy(priv, cq);

	if (rc == 0 && fd >= 0)
		close(fd);
	return rc;
}

static int
dpdk_ops_cq_poll(void *cq, struct san_ulp_wc *wc, int n)
{
	return (int)san_ulp_cq_poll(cq, wc, (uint32_t)n);
}

/* ---- queue pairs ---- */

/*
 * Choose the engine of a new queue pair. A completion queue has one producer, so all of its queue
 * pairs live on one lcore: that of its first one. So do those that share receives. Otherwise the
 * engine with the fewest queue pairs is chosen.
 */
static uint32_t
choose_engine(struct dpdk_ctx *ctx, const struct rtsan_provider_qp *conf)
{
	uint32_t i, best;

	if (conf->req->qp.shares_recvs)
		return ops_lcore_of(ctx, conf->req->qp.recv_from);
	if (san_ulp_cq_nb_qps(conf->send_cq) != 0)
		return cq_engine(ctx, conf->send_cq);
	if (san_ulp_cq_nb_qps(conf->recv_cq) != 0)
		return cq_engine(ctx, conf->recv_cq);
	best = ctx->next_engine++ % ctx->nb_engines;
	for (i = 0; i < ctx->nb_engines; i++)
		if (ctx->nb_qps[i] < ctx->nb_qps[best])
			best = i;
	return best;
}

uint64_t
san_dpdk_ops_stream_bytes(const struct shmq_qp *qp)
{
	struct san_stream_conf own;

	if (!qp->is_stream)
		return 0;
	san_stream_attr_fill(qp, &own);
	return san_core_stream_bytes_max(&own);
}

int
san_dpdk_ops_qp_create(struct dpdk_ctx *ctx, uint16_t app, struct rtsan_provider_qp *conf)
{
	const struct shmq_qp *qp = &conf->req->qp;
	struct ops_call c = {
		.op = OPS_QP_CREATE,
		.qp = {
			.app = app,
			.wq = conf->wq,
			.is_stream = qp->is_stream != 0,
			.lingers = qp->stream.linger != 0,
			.core.qp = {
				.send_cq = conf->send_cq,
				.recv_cq = conf->recv_cq,
				.sq_depth = qp->sq_depth,
				.rq_depth = qp->rq_depth,
				.shares_recvs = qp->shares_recvs != 0,
				.recv_from = qp->recv_from,
			},
		},
	};
	uint32_t id;
	int rc = san_stream_attr_conf(ctx->host, qp, &c.qp.core.stream);

	if (rc != 0)
		return rc;
	id = choose_engine(ctx, conf);
	if (id >= ctx->nb_engines)
		return ctx->host->fail(-EINVAL, "queue pair: no such recv_from");
	rc = cq_move(ctx, conf->send_cq, id);
	if (rc == 0)
		rc = cq_move(ctx, conf->recv_cq, id);
	if (rc == -EBUSY)
		return ctx->host->fail(-EINVAL,
				       "queue pair: its completion queues serve different lcores, "
				       "or another one than recv_from; use them only together");
	if (rc != 0)
		return rc;
	rc = ops_call_lcore(ctx, id, &c);
	conf->qp = c.id;
	ctx->nb_qps[id] += rc == 0;
	if (rc == -EINVAL && qp->shares_recvs)
		return ctx->host->fail(rc, "queue pair: no such recv_from");
	if (rc == -ENOSPC)
		return ctx->host->fail(rc, "queue pair: all %u are in use; see conns=",
				       san_engine_conf_of(ctx->port)->core.ulp.max_qps);
	if (rc == -ENOMEM && qp->is_stream)
		return ctx->host->fail(rc, "stream: no memory, or what its user may have of "
					   "stream_mem= is in use");
	return rc;
}

static int
dpdk_ops_qp_create(void *priv, struct rtsan_provider_qp *conf)
{
	size_t bytes = san_wr_wq_bytes(conf->req->qp.sq_depth, conf->req->qp.rq_depth);
	void *wq;
	int rc;

	if (posix_memalign(&wq, SAN_LINE, bytes) != 0)
		return -ENOMEM;
	/* entries are written before they are read */
	conf->wq = memset(wq, 0, sizeof(*conf->wq));
	rc = san_dpdk_ops_qp_create(priv, 0, conf);
	if (rc != 0)
		free(conf->wq);
	return rc;
}

struct san_wq *
san_dpdk_ops_qp_destroy(struct dpdk_ctx *ctx, uint32_t qp)
{
	struct ops_call c = {.op = OPS_QP_DESTROY, .id = qp};

	ops_call_lcore(ctx, ops_lcore_of(ctx, qp), &c);
	ctx->nb_qps[ops_lcore_of(ctx, qp)]--;
	return c.wq;
}

static void
dpdk_ops_qp_destroy(void *priv, uint32_t qp)
{
	free(san_dpdk_ops_qp_destroy(priv, qp));
}

static void
dpdk_ops_doorbell(void *priv, uint32_t qp)
{
	const struct dpdk_ctx *ctx = priv;

	san_engine_loop_doorbell(san_engine_at(ctx->port, ops_lcore_of(ctx, qp)), qp);
}

const struct rtsan_provider rtsan_provider_dpdk = {
	.abi = RTSAN_PROVIDER_ABI,
	.open = dpdk_ops_open,
	.close = san_dpdk_ctx_close_alone,
	.progress = dpdk_ops_progress,
	.query = dpdk_ops_query,
	.call = san_dpdk_call,
	.address = dpdk_ops_address,
	.mr_add = dpdk_ops_mr_add,
	.cq_create = dpdk_ops_cq_create,
	.cq_destroy = dpdk_ops_cq_destroy,
	.cq_poll = dpdk_ops_cq_poll,
	.cq_fd = dpdk_ops_cq_fd,
	.cq_arm = dpdk_ops_cq_arm,
	.qp_create = dpdk_ops_qp_create,
	.qp_destroy = dpdk_ops_qp_destroy,
	.doorbell = dpdk_ops_doorbell,
	.event_poll = san_dpdk_call_event_poll,
	.event_fd = dpdk_ops_event_fd,
	.event_arm = dpdk_ops_event_arm,
};
