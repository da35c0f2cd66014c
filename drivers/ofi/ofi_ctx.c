/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What all objects share: the provider with its parameters, the lock, and of the context its
 * addresses, completion queues and send buffers.
 */

#include "ofi_priv.h"

#define CHUNK_BUFS 64
#define LANE_NEED  (OFI_SQ_DEPTH + OFI_RQ_DEPTH)

struct ofi_chunk {
	struct rtsan_mr *mr;
	SLIST_ENTRY(ofi_chunk) link;
	struct ofi_buf bufs[CHUNK_BUFS];
};

static char *ctx_spec, *ctx_users;
pthread_mutex_t san_ofi_ctx_lock = PTHREAD_MUTEX_INITIALIZER;
static union ofi_addr ctx_addrs[OFI_ADDRS];
static int ctx_nb_addrs; /* of the last context; 0: none was open */

/* ---- the provider ---- */

struct fi_provider san_ofi_ctx_provider = {
	.version = FI_VERSION(0, 1),
	/* the headers' version: libfabric passes over a provider that is older than the call */
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = OFI_NAME,
};

static void
ctx_lock(void)
{
	pthread_mutex_lock(&san_ofi_ctx_lock);
}

static void
ctx_unlock(void)
{
	pthread_mutex_unlock(&san_ofi_ctx_lock);
}

void
san_ofi_ctx_read_params(void)
{
	struct fi_provider *p = &san_ofi_ctx_provider;

	fi_param_define(p, "spec", FI_PARAM_STRING,
			"Where the transport is, as for rtsan_open(): unix:PATH of a daemon, "
			"dpdk:EAL -- PORT, verbs:DEVICE (default: %s)",
			OFI_DEFAULT_SPEC);
	fi_param_get_str(p, "spec", &ctx_spec); /* stays NULL if it is not given */
	fi_param_define(p, "users", FI_PARAM_STRING,
			"Other users whose programs may connect: numbers with commas, or any "
			"(default: none)");
	fi_param_get_str(p, "users", &ctx_users);
	/* so that the lock is free in a child of fork() */
	pthread_atfork(ctx_lock, ctx_unlock, ctx_unlock);
}

const char *
san_ofi_ctx_spec(void)
{
	return ctx_spec != NULL ? ctx_spec : OFI_DEFAULT_SPEC;
}

bool
san_ofi_ctx_has_user(uint32_t uid)
{
	const char *p = ctx_users != NULL ? ctx_users : "";
	char *end;

	if (strcmp(p, "any") == 0)
		return true;
	for (; *p >= '0' && *p <= '9'; p = end + (*end == ','))
		if (strtoul(p, &end, 10) == uid)
			return true;
	return false;
}

ssize_t
san_ofi_ctx_none(void)
{
	return -FI_ENOSYS;
}

struct ofi_no_ops san_ofi_ctx_no_ops = {sizeof(struct ofi_no_ops), {[0 ... 8] = OFI_NONE}};

int
san_ofi_ctx_fail(int rc, const char *what)
{
	OFI_WARN(FI_LOG_CORE, "%s: %s: %s\n", what, fi_strerror(-rc), rtsan_error());
	return rc;
}

/* ---- addresses ---- */

void
san_ofi_ctx_note_addrs(struct rtsan_ctx *san)
{
	char text[RTSAN_ADDRESS_MAX];
	uint32_t i;

	ctx_nb_addrs = 0;
	for (i = 0; i < OFI_ADDRS && rtsan_address(san, i, text) == 0; i++)
		if (san_ofi_addr_parse(&ctx_addrs[ctx_nb_addrs], text, 0) == 0)
			ctx_nb_addrs++;
}

/* Query the addresses that a context would have. No engine is started for that. */
static int
ctx_probe(void)
{
	struct rtsan_ctx *san;
	int rc;

	if (strncmp(san_ofi_ctx_spec(), "dpdk:", 5) == 0)
		return 0;
	rc = rtsan_open(san_ofi_ctx_spec(), &san);
	if (rc != 0) {
		/* a missing daemon is an error only if the program has named one */
		FI_LOG(&san_ofi_ctx_provider, ctx_spec != NULL ? FI_LOG_WARN : FI_LOG_INFO,
		       FI_LOG_CORE, "%s\n", rtsan_error());
		return rc;
	}
	san_ofi_ctx_note_addrs(san);
	rtsan_close(san);
	return 0;
}

int
san_ofi_ctx_addrs(union ofi_addr addrs[OFI_ADDRS])
{
	int rc = 0;
	OFI_LOCKED;

	if (ctx_nb_addrs == 0)
		rc = ctx_probe();
	memcpy(addrs, ctx_addrs, sizeof(ctx_addrs));
	return rc != 0 ? rc : ctx_nb_addrs;
}

int
san_ofi_ctx_addr(int family, union ofi_addr *a)
{
	uint16_t port = san_ofi_addr_port(a);
	int i;

	if (a->sa.sa_family == family && !san_ofi_addr_is_any(a))
		return 0;
	if (ctx_nb_addrs == 0)
		return -FI_EADDRNOTAVAIL;
	for (i = 0; i < ctx_nb_addrs && ctx_addrs[i].sa.sa_family != family; i++)
		;
	*a = ctx_addrs[i < ctx_nb_addrs ? i : 0];
	san_ofi_addr_set_port(a, port);
	return 0;
}

/* ---- completion queues of the transport ---- */

static int
ctx_lane_create(struct ofi_ctx *ctx, struct ofi_lane **out)
{
	struct ofi_lane *lane = calloc(1, sizeof(*lane));
	int rc;

	if (lane == NULL)
		return -FI_ENOMEM;
	lane->room = 2 * ctx->caps.max_wr;
	rc = rtsan_cq_create(ctx->san, lane->room, &lane->cq);
	if (rc == 0) {
		rc = san_ofi_wait_add(ctx, lane);
		if (rc != 0)
			rtsan_cq_destroy(lane->cq);
	}
	if (rc != 0) {
		free(lane);
		return san_ofi_ctx_fail(rc, "endpoint");
	}
	SLIST_INSERT_HEAD(&ctx->lanes, lane, link);
	*out = lane;
	return 0;
}

int
san_ofi_ctx_lane_get(struct ofi_ctx *ctx, struct ofi_lane **out)
{
	int rc = 0;

	SLIST_FOREACH(*out, &ctx->lanes, link)
		if ((*out)->room >= LANE_NEED)
			break;
	if (*out == NULL)
		rc = ctx_lane_create(ctx, out);
	if (rc == 0)
		(*out)->room -= LANE_NEED;
	return rc;
}

void
san_ofi_ctx_lane_put(struct ofi_lane *lane)
{
	lane->room += LANE_NEED;
}

/* ---- send buffers ---- */

static bool
ctx_add_chunk(struct ofi_ctx *ctx)
{
	struct ofi_chunk *chunk = calloc(1, sizeof(*chunk));
	uint32_t i;
	int rc;

	if (chunk == NULL)
		return false;
	rc = rtsan_mr_alloc(ctx->san, CHUNK_BUFS * OFI_BUF_SIZE, 0, &chunk->mr);
	if (rc != 0) {
		san_ofi_ctx_fail(rc, "send buffers");
		free(chunk);
		return false;
	}
	for (i = 0; i < CHUNK_BUFS; i++) {
		chunk->bufs[i].data = (uint8_t *)rtsan_mr_addr(chunk->mr) + i * OFI_BUF_SIZE;
		chunk->bufs[i].lkey = rtsan_mr_lkey(chunk->mr);
		LIST_INSERT_HEAD(&ctx->bufs, &chunk->bufs[i], link);
	}
	SLIST_INSERT_HEAD(&ctx->chunks, chunk, link);
	return true;
}

struct ofi_buf *
san_ofi_ctx_buf_get(struct ofi_ctx *ctx)
{
	struct ofi_buf *buf;

	if (LIST_EMPTY(&ctx->bufs) && !ctx_add_chunk(ctx))
		return NULL;
	buf = LIST_FIRST(&ctx->bufs);
	LIST_REMOVE(buf, link);
	buf->op = NULL;
	buf->length = 0;
	return buf;
}

/* ---- endpoints with something to do ---- */

void
san_ofi_ctx_mark(struct ofi_ep *ep)
{
	if (ep->is_dirty)
		return;
	ep->is_dirty = true;
	STAILQ_INSERT_TAIL(&ep->domain->ctx->dirty, ep, dirty);
}

void
san_ofi_ctx_need_room(struct ofi_ep *ep)
{
	ep->needs_room = true;
	san_ofi_wait_wake_all(ep->domain->ctx);
}

/* ---- the end ---- */

void
san_ofi_ctx_free(struct ofi_ctx *ctx)
{
	struct ofi_chunk *chunk;
	struct ofi_lane *lane;
	struct ofi_op *op;

	while ((chunk = SLIST_FIRST(&ctx->chunks)) != NULL) {
		SLIST_REMOVE_HEAD(&ctx->chunks, link);
		free(chunk);
	}
	while ((lane = SLIST_FIRST(&ctx->lanes)) != NULL) {
		SLIST_REMOVE_HEAD(&ctx->lanes, link);
		free(lane);
	}
	while ((op = LIST_FIRST(&ctx->ops)) != NULL) {
		LIST_REMOVE(op, link);
		free(op);
	}
	free(ctx->mrs);
	free(ctx);
}
