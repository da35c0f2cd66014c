/* SPDX-License-Identifier: BSD-3-Clause */

/* The device and its capabilities. (SYS-4) */

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs_priv.h"

#define GIDS 256 /* entries of a port's table that are searched */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, verbs_ctx) all = LIST_HEAD_INITIALIZER(all);

/* ---- spec: DEVICE[,ip=ADDRESS][,plain] ---- */

static int
read_word(struct verbs_ctx *ctx, const char *word)
{
	int family = strchr(word, ':') != NULL ? AF_INET6 : AF_INET;
	unsigned char buf[sizeof(struct in6_addr)];

	if (strcmp(word, "plain") == 0) {
		ctx->is_plain = true;
		return 0;
	}
	if (strncmp(word, "ip=", 3) != 0)
		return ctx->host->fail(-EINVAL, "verbs: \"%s\": ip=ADDRESS or plain is expected",
				       word);
	if (inet_pton(family, word + 3, buf) != 1)
		return ctx->host->fail(-EINVAL, "verbs: \"%s\" is no address", word + 3);
	inet_ntop(family, buf, ctx->ip, sizeof(ctx->ip)); /* normalized, as the device's below */
	return 0;
}

static int
read_spec(struct verbs_ctx *ctx, const char *args)
{
	char *copy = strdup(args), *rest = copy, *word = strsep(&rest, ",");
	int rc = 0;

	if (word == NULL)
		return -ENOMEM;
	if (word[0] == '\0' || strlen(word) >= sizeof(ctx->device))
		rc = ctx->host->fail(-EINVAL, "verbs: a device is to be named, as in "
					      "verbs:mlx5_0");
	else
		strcpy(ctx->device, word);
	while (rc == 0 && (word = strsep(&rest, ",")) != NULL)
		rc = read_word(ctx, word);
	free(copy);
	return rc;
}

/* ---- the device ---- */

/* Uses the connection manager's handles, because what it resolves refers to them. */
static int
verbs_ctx_find_device(struct verbs_ctx *ctx)
{
	char names[256] = "";
	int i, n = 0;

	ctx->devs = rdma_get_devices(&n);
	for (i = 0; ctx->devs != NULL && i < n && ctx->dev == NULL; i++) {
		const char *name = ibv_get_device_name(ctx->devs[i]->device);
		size_t used = strlen(names);

		if (strcmp(name, ctx->device) == 0)
			ctx->dev = ctx->devs[i];
		snprintf(names + used, sizeof(names) - used, " %s", name);
	}
	if (ctx->dev != NULL)
		return 0;
	return ctx->host->fail(-ENODEV, "verbs: there is no device \"%s\"; there are:%s",
			       ctx->device, names[0] != '\0' ? names : " none");
}

/*
 * A RoCE port has its addresses in its table, and *ip* must be there. Without *ip* the first IPv4
 * address is taken, otherwise the first IPv6 address that is not link-local. On InfiniBand *ip*
 * must be given.
 */
static bool
has_address(struct verbs_ctx *ctx, uint8_t port)
{
	char text[VERBS_IP_MAX], found[VERBS_IP_MAX] = "";
	const struct in6_addr *a;
	union ibv_gid gid;
	bool is_v4;
	int i;

	for (i = 0; i < GIDS && ibv_query_gid(ctx->dev, port, i, &gid) == 0; i++) {
		a = (const struct in6_addr *)gid.raw;
		is_v4 = IN6_IS_ADDR_V4MAPPED(a);
		inet_ntop(is_v4 ? AF_INET : AF_INET6, &gid.raw[is_v4 ? 12 : 0], text, sizeof(text));
		if (ctx->ip[0] != '\0' ? strcmp(text, ctx->ip) == 0 : is_v4) {
			strcpy(ctx->ip, text);
			return true;
		}
		if (found[0] == '\0' && !IN6_IS_ADDR_UNSPECIFIED(a) && !IN6_IS_ADDR_LINKLOCAL(a))
			strcpy(found, text);
	}
	if (ctx->ip[0] != '\0' || found[0] == '\0')
		return false;
	strcpy(ctx->ip, found);
	return true;
}

static int
verbs_ctx_find_port(struct verbs_ctx *ctx)
{
	enum ibv_port_state state = IBV_PORT_NOP;
	struct ibv_port_attr attr;
	bool is_active = false;
	uint8_t port;

	for (port = 1; port <= ctx->attr.phys_port_cnt; port++) {
		if (ibv_query_port(ctx->dev, port, &attr) != 0)
			continue;
		state = attr.state;
		if (state != IBV_PORT_ACTIVE)
			continue;
		is_active = true;
		ctx->max_msg = attr.max_msg_sz;
		if (attr.link_layer == IBV_LINK_LAYER_INFINIBAND ? ctx->ip[0] != '\0' :
								   has_address(ctx, port))
			return 0;
	}
	if (!is_active)
		return ctx->host->fail(-ENETDOWN, "verbs: no port of %s is active: %s", ctx->device,
				       ibv_port_state_str(state));
	if (ctx->ip[0] != '\0')
		return ctx->host->fail(-EADDRNOTAVAIL, "verbs: %s is no address of %s", ctx->ip,
				       ctx->device);
	return ctx->host->fail(-EADDRNOTAVAIL, "verbs: %s has no address: see ip=", ctx->device);
}

static int
check_device(struct verbs_ctx *ctx)
{
	if (ctx->dev->device->transport_type != IBV_TRANSPORT_IB)
		return ctx->host->fail(-EOPNOTSUPP, "verbs: %s is neither RoCE nor InfiniBand",
				       ctx->device);
	if (ibv_query_device(ctx->dev, &ctx->attr) != 0)
		return ctx->host->fail(-EIO, "verbs: %s does not say what it can do", ctx->device);
	if (ctx->attr.max_qp_rd_atom == 0 || ctx->attr.max_sge == 0)
		return ctx->host->fail(-EOPNOTSUPP, "verbs: %s has no reads, or no parts of "
						    "a request",
				       ctx->device);
	ctx->max_sge = (uint32_t)MIN(ctx->attr.max_sge, RTSAN_SGE_MAX);
	atomic_store(&ctx->max_inline, RTSAN_INLINE_MAX); /* san_verbs_qp_make() may reduce it */
	return verbs_ctx_find_port(ctx);
}

/* ---- open, close ---- */

static int
make_tables(struct verbs_ctx *ctx)
{
	uint32_t i;

	ctx->qps = calloc(VERBS_QPS, sizeof(*ctx->qps));
	ctx->mrs = calloc(VERBS_MRS, sizeof(*ctx->mrs));
	if (ctx->qps == NULL || ctx->mrs == NULL)
		return -ENOMEM;
	for (i = 0; i < VERBS_QPS; i++) {
		ctx->qps[i].ctx = ctx;
		ctx->qps[i].index = i;
		atomic_store(&ctx->qps[i].qpn, SAN_QPN_NONE);
		pthread_mutex_init(&ctx->qps[i].lock, NULL);
	}
	return 0;
}

static void
verbs_ctx_release(struct verbs_ctx *ctx)
{
	if (ctx->cm != NULL)
		rdma_destroy_event_channel(ctx->cm);
	if (ctx->channel != NULL)
		ibv_destroy_comp_channel(ctx->channel);
	if (ctx->pd != NULL)
		ibv_dealloc_pd(ctx->pd);
	if (ctx->devs != NULL)
		rdma_free_devices(ctx->devs);
	if (ctx->event_fd >= 0)
		close(ctx->event_fd);
	free(ctx->qps);
	free(ctx->mrs);
	free(ctx);
}

static int
verbs_ctx_open(const char *args, const struct rtsan_host *host, void **priv)
{
	static pid_t owner; /* process that has opened devices */
	struct verbs_ctx *ctx = calloc(1, sizeof(*ctx));
	int rc;

	if (ctx == NULL)
		return -ENOMEM;
	ctx->host = host;
	ctx->event_fd = ctx->kick_fd = -1;
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_mutex_init(&ctx->cm_lock, NULL);
	pthread_cond_init(&ctx->passed, NULL);
	STAILQ_INIT(&ctx->events); /* other lists are empty if they are zero */
	STAILQ_INIT(&ctx->retired);
	STAILQ_INIT(&ctx->todo);
	rc = read_spec(ctx, args);
	/*
	 * librdmacm opens each device once and keeps it open; and the kernel refuses requests by a
	 * process that did not open the device. So a child of fork() has none until it calls
	 * exec().
	 */
	pthread_mutex_lock(&all_lock);
	if (rc == 0 && owner == 0)
		owner = getpid();
	if (rc == 0 && owner != getpid())
		rc = host->fail(-EOPNOTSUPP,
				"verbs: %s: the parent of this process has opened RDMA devices: "
				"exec() is needed",
				ctx->device);
	pthread_mutex_unlock(&all_lock);
	if (rc == 0)
		rc = verbs_ctx_find_device(ctx);
	if (rc == 0)
		rc = check_device(ctx);
	if (rc == 0)
		rc = make_tables(ctx);
	if (rc == 0) {
		ctx->pd = ibv_alloc_pd(ctx->dev);
		ctx->cm = rdma_create_event_channel();
		ctx->channel = ibv_create_comp_channel(ctx->dev);
		ctx->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (ctx->pd == NULL || ctx->cm == NULL || ctx->channel == NULL ||
		    ctx->event_fd < 0 || fcntl(ctx->cm->fd, F_SETFL, O_NONBLOCK) != 0 ||
		    fcntl(ctx->channel->fd, F_SETFL, O_NONBLOCK) != 0 ||
		    fcntl(ctx->dev->async_fd, F_SETFL, O_NONBLOCK) != 0)
			rc = host->fail(-errno, "verbs: %s: %s", ctx->device, strerror(errno));
	}
	if (rc == 0)
		rc = san_verbs_thread_start(ctx);
	if (rc != 0) {
		verbs_ctx_release(ctx);
		return rc;
	}
	pthread_mutex_lock(&all_lock);
	LIST_INSERT_HEAD(&all, ctx, link);
	pthread_mutex_unlock(&all_lock);
	*priv = ctx;
	return 0;
}

static void
verbs_ctx_close(void *priv)
{
	struct verbs_ctx *ctx = priv;
	struct ibv_mr *mr;
	uint32_t i;

	pthread_mutex_lock(&all_lock);
	LIST_REMOVE(ctx, link);
	pthread_mutex_unlock(&all_lock);
	/* librtsan has ended all listeners, and all queue pairs but streams that linger */
	for (i = 0; i < VERBS_QPS; i++) {
		struct verbs_qp *q = &ctx->qps[i];
		SAN_LOCKED(&q->lock);

		if (atomic_load(&q->qpn) != SAN_QPN_NONE)
			san_verbs_qp_free(q);
	}
	san_verbs_thread_stop(ctx);
	for (i = 0; i < VERBS_MRS; i++) {
		mr = atomic_load(&ctx->mrs[i]);
		if (mr != NULL)
			ibv_dereg_mr(mr);
	}
	verbs_ctx_release(ctx);
}

/* Contexts of one process on one device share librdmacm's handle of it, and its events. */
void
san_verbs_ctx_fail(const struct ibv_context *dev)
{
	struct verbs_ctx *ctx;
	struct verbs_cq *cq;
	SAN_LOCKED(&all_lock);

	LIST_FOREACH(ctx, &all, link) {
		if (ctx->dev != dev || atomic_exchange(&ctx->is_lost, true))
			continue;
		eventfd_write(ctx->event_fd, 1);
		pthread_mutex_lock(&ctx->lock);
		LIST_FOREACH(cq, &ctx->cqs, link)
			eventfd_write(cq->wake_fd, 1);
		pthread_mutex_unlock(&ctx->lock);
		san_verbs_thread_kick(ctx);
	}
}

bool
san_verbs_ctx_has_qp(const struct verbs_qp *q)
{
	const struct verbs_ctx *ctx;
	SAN_LOCKED(&all_lock);

	LIST_FOREACH(ctx, &all, link)
		if ((uintptr_t)q - (uintptr_t)ctx->qps < VERBS_QPS * sizeof(*ctx->qps))
			return true;
	return false;
}

bool
san_verbs_ctx_has_cq(const struct ibv_cq *which)
{
	const struct verbs_cq *cq;
	struct verbs_ctx *ctx;
	bool has = false;
	SAN_LOCKED(&all_lock);

	LIST_FOREACH(ctx, &all, link) {
		has |= which->channel == ctx->channel; /* of a stream */
		pthread_mutex_lock(&ctx->lock);
		LIST_FOREACH(cq, &ctx->cqs, link)
			has |= cq->cq == which;
		pthread_mutex_unlock(&ctx->lock);
	}
	return has;
}

static int
verbs_ctx_progress(void *priv)
{
	const struct verbs_ctx *ctx = priv;

	return atomic_load(&ctx->is_lost) ? -EIO : 0;
}

static void
verbs_ctx_query(void *priv, struct rtsan_caps *caps)
{
	const struct verbs_ctx *ctx = priv;
	const struct ibv_device_attr *a = &ctx->attr;
	/* a completion queue has room for both queues of a queue pair */
	int64_t wr = MIN(a->max_qp_wr, a->max_cqe / 2);
	uint32_t depth = VERBS_WR_MAX;

	while (depth > 1 && depth > wr - VERBS_MARKS)
		depth /= 2;
	*caps = (struct rtsan_caps){
		.max_qps = (uint32_t)MAX(MIN(a->max_qp, VERBS_QPS), 0),
		.max_cqs = (uint32_t)MAX(MIN(a->max_cq, VERBS_CQS), 0),
		.max_mrs = (uint32_t)MAX(MIN(a->max_mr, VERBS_MRS), 0),
		.max_wr = depth,
		.max_sge = ctx->max_sge,
		.max_inline = RTSAN_INLINE_MAX,
		.nb_lcores = 1,
		.max_msg = MIN(ctx->max_msg, RTSAN_LENGTH_MAX),
		.has_mr_reg = true,
		.has_atomic = a->atomic_cap != IBV_ATOMIC_NONE,
		.ends_on_error = true,
	};
	snprintf(caps->provider, sizeof(caps->provider), "verbs %.24s", ctx->device);
}

static int
verbs_ctx_address(void *priv, uint32_t index, char text[RTSAN_ADDRESS_MAX])
{
	const struct verbs_ctx *ctx = priv;

	if (index != 0)
		return -ENOENT;
	strcpy(text, ctx->ip);
	return 0;
}

const struct rtsan_provider rtsan_provider_verbs = {
	.abi = RTSAN_PROVIDER_ABI,
	.open = verbs_ctx_open,
	.close = verbs_ctx_close,
	.progress = verbs_ctx_progress,
	.query = verbs_ctx_query,
	.call = san_verbs_conn_call,
	.address = verbs_ctx_address,
	.mr_add = san_verbs_mr_add,
	.cq_create = san_verbs_cq_create,
	.cq_destroy = san_verbs_cq_destroy,
	.cq_poll = san_verbs_cq_poll,
	.cq_fd = san_verbs_cq_fd,
	.cq_arm = san_verbs_cq_arm,
	.qp_create = san_verbs_qp_create,
	.qp_destroy = san_verbs_qp_destroy,
	.doorbell = san_verbs_qp_doorbell,
	.event_poll = san_verbs_conn_event_poll,
	.event_fd = san_verbs_conn_event_fd,
	.event_arm = san_verbs_conn_event_arm,
};
