/* SPDX-License-Identifier: BSD-3-Clause */

/* The device, and what it can do. (SYS-4) */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs_priv.h"

#define PORT 1

/* ---- spec: DEVICE[,ip=ADDRESS] ---- */

static int
read_spec(struct verbs_ctx *ctx, const char *args)
{
	size_t len = strcspn(args, ",");
	const char *more = args + len;

	if (len == 0 || len >= sizeof(ctx->device))
		return ctx->host->fail(-EINVAL, "verbs: a device is to be named, as in verbs:mlx5_0");
	memcpy(ctx->device, args, len);
	if (more[0] == '\0')
		return 0;
	if (strncmp(more, ",ip=", 4) != 0 || strlen(more + 4) >= sizeof(ctx->ip))
		return ctx->host->fail(-EINVAL, "verbs: \"%s\" is not ip=ADDRESS", more + 1);
	strcpy(ctx->ip, more + 4);
	return 0;
}

/* The manager's view of it: what it resolves is on that. */
static int
find_device(struct verbs_ctx *ctx)
{
	struct ibv_context **all;
	char names[256] = "";
	int i, n = 0;

	all = rdma_get_devices(&n);
	for (i = 0; all != NULL && i < n && ctx->dev == NULL; i++) {
		const char *name = ibv_get_device_name(all[i]->device);

		if (strcmp(name, ctx->device) == 0)
			ctx->dev = all[i];
		snprintf(names + strlen(names), sizeof(names) - strlen(names), " %s", name);
	}
	if (all != NULL)
		rdma_free_devices(all);
	if (ctx->dev != NULL)
		return 0;
	return ctx->host->fail(-ENODEV, "verbs: there is no device \"%s\"; there are:%s",
			       ctx->device, names[0] != '\0' ? names : " none");
}

/* An address of IPv4, as RoCE has it in its table; of other links it must be given. */
static void
find_ip(struct verbs_ctx *ctx)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	union ibv_gid gid;
	int i;

	for (i = 0; ctx->ip[0] == '\0' && i < 256; i++) {
		if (ibv_query_gid(ctx->dev, PORT, i, &gid) != 0)
			return;
		if (memcmp(gid.raw, mapped, sizeof(mapped)) == 0)
			inet_ntop(AF_INET, gid.raw + 12, ctx->ip, sizeof(ctx->ip));
	}
}

static int
check_device(struct verbs_ctx *ctx)
{
	struct ibv_port_attr port;

	if (ibv_query_device(ctx->dev, &ctx->attr) != 0 ||
	    ibv_query_port(ctx->dev, PORT, &port) != 0)
		return ctx->host->fail(-EIO, "verbs: %s does not say what it can do", ctx->device);
	if (port.state != IBV_PORT_ACTIVE)
		return ctx->host->fail(-ENETDOWN, "verbs: port %d of %s is not active: %s", PORT,
				       ctx->device, ibv_port_state_str(port.state));
	if (ctx->attr.max_sge < SAN_ULP_SGE_MAX)
		return ctx->host->fail(-EOPNOTSUPP, "verbs: %s has %d parts of a request, %d needed",
				       ctx->device, ctx->attr.max_sge, SAN_ULP_SGE_MAX);
	ctx->max_inline = SAN_ULP_INLINE_MAX;
	return 0;
}

/* ---- open, close ---- */

static int
make_tables(struct verbs_ctx *ctx)
{
	uint32_t i;

	ctx->qps = calloc(VERBS_QPS, sizeof(*ctx->qps));
	ctx->mrs = calloc(2 * VERBS_MRS, sizeof(*ctx->mrs));
	if (ctx->qps == NULL || ctx->mrs == NULL)
		return -ENOMEM;
	for (i = 0; i < VERBS_QPS; i++) {
		ctx->qps[i].qpn = SAN_QPN_NONE;
		pthread_mutex_init(&ctx->qps[i].lock, NULL);
	}
	return 0;
}

static int
make_rest(struct verbs_ctx *ctx)
{
	ctx->pd = ibv_alloc_pd(ctx->dev);
	ctx->cm = rdma_create_event_channel();
	ctx->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ctx->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctx->pd == NULL || ctx->cm == NULL || ctx->event_fd < 0 || ctx->kick_fd < 0)
		return ctx->host->fail(-errno, "verbs: %s: %s", ctx->device, strerror(errno));
	return 0;
}

static void
release(struct verbs_ctx *ctx)
{
	struct verbs_event *e;

	while ((e = STAILQ_FIRST(&ctx->events)) != NULL) {
		STAILQ_REMOVE_HEAD(&ctx->events, link);
		free(e);
	}
	if (ctx->cm != NULL)
		rdma_destroy_event_channel(ctx->cm);
	if (ctx->pd != NULL)
		ibv_dealloc_pd(ctx->pd);
	if (ctx->event_fd >= 0)
		close(ctx->event_fd);
	if (ctx->kick_fd >= 0)
		close(ctx->kick_fd);
	free(ctx->qps);
	free(ctx->mrs);
	free(ctx);
}

static int
op_open(const char *args, const struct rtsan_host *host, void **priv)
{
	struct verbs_ctx *ctx = calloc(1, sizeof(*ctx));
	int rc;

	if (ctx == NULL)
		return -ENOMEM;
	ctx->host = host;
	ctx->event_fd = ctx->kick_fd = -1;
	pthread_mutex_init(&ctx->lock, NULL);
	LIST_INIT(&ctx->listeners);
	STAILQ_INIT(&ctx->events);
	rc = read_spec(ctx, args);
	if (rc == 0)
		rc = find_device(ctx);
	if (rc == 0)
		rc = check_device(ctx);
	if (rc == 0)
		rc = make_tables(ctx);
	if (rc == 0) {
		find_ip(ctx);
		rc = make_rest(ctx);
	}
	if (rc == 0)
		rc = -pthread_create(&ctx->thread, NULL, verbs_conn_run, ctx);
	if (rc != 0) {
		release(ctx);
		return rc;
	}
	*priv = ctx;
	return 0;
}

static void
op_close(void *priv)
{
	struct verbs_ctx *ctx = priv;
	struct verbs_listener *l;
	struct ibv_mr *mr;
	uint32_t i;

	atomic_store(&ctx->is_over, true);
	verbs_conn_kick(ctx);
	pthread_join(ctx->thread, NULL);
	for (i = 0; i < VERBS_QPS; i++)
		if (ctx->qps[i].qpn != SAN_QPN_NONE)
			verbs_qp_destroy(ctx, ctx->qps[i].qpn);
	for (i = 0; i < VERBS_REQUESTS; i++)
		if (ctx->requests[i].id != NULL)
			rdma_destroy_id(ctx->requests[i].id);
	while ((l = LIST_FIRST(&ctx->listeners)) != NULL)
		verbs_conn_unlisten(ctx, l->service, 0);
	for (i = 0; i < 2 * VERBS_MRS; i++) {
		mr = atomic_load(&ctx->mrs[i].mr);
		if (mr != NULL && mr != VERBS_MR_GONE)
			ibv_dereg_mr(mr);
	}
	release(ctx);
}

static int
op_progress(void *priv)
{
	const struct verbs_ctx *ctx = priv;

	return atomic_load(&ctx->is_gone) ? -EIO : 0;
}

static uint32_t
least(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

static void
op_query(void *priv, struct rtsan_caps *caps)
{
	const struct verbs_ctx *ctx = priv;
	const struct ibv_device_attr *a = &ctx->attr;

	*caps = (struct rtsan_caps){
		.max_qps = least((uint64_t)a->max_qp, VERBS_QPS),
		.max_cqs = least((uint64_t)a->max_cq, VERBS_CQS),
		.max_mrs = least((uint64_t)a->max_mr, VERBS_MRS),
		.max_wr = least((uint64_t)a->max_qp_wr, VERBS_WR_MAX),
		.max_sge = SAN_ULP_SGE_MAX,
		.max_inline = SAN_ULP_INLINE_MAX,
		.nb_lcores = 1,
		.max_msg = RTSAN_LENGTH_MAX,
		.has_mr_reg = true,
	};
	snprintf(caps->provider, sizeof(caps->provider), "verbs %.24s", ctx->device);
}

static const struct rtsan_provider_ops verbs_ops = {
	.open = op_open,
	.close = op_close,
	.progress = op_progress,
	.query = op_query,
	.mr_add = verbs_mr_add,
	.mr_del = verbs_mr_del,
	.cq_create = verbs_cq_create,
	.cq_destroy = verbs_cq_destroy,
	.cq_poll = verbs_cq_poll,
	.cq_fd = verbs_cq_fd,
	.cq_arm = verbs_cq_arm,
	.qp_create = verbs_qp_create,
	.qp_destroy = verbs_qp_destroy,
	.doorbell = verbs_qp_doorbell,
	.listen = verbs_conn_listen,
	.unlisten = verbs_conn_unlisten,
	.connect = verbs_conn_connect,
	.accept = verbs_conn_accept,
	.reject = verbs_conn_reject,
	.disconnect = verbs_conn_disconnect,
	.event_poll = verbs_conn_event_poll,
	.event_fd = verbs_conn_event_fd,
	.event_arm = verbs_conn_event_arm,
};

const struct rtsan_provider rtsan_provider_verbs = {
	.abi = RTSAN_PROVIDER_ABI,
	.name = "verbs",
	.ops = &verbs_ops,
};
