/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The context of the process. It is opened when the first object needs it and closed with the last
 * one. A child after fork() opens its own, because rings belong to one process.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ofi_priv.h"

#define CHUNK_BUFS 64

struct ofi_chunk {
	struct rtsan_mr *mr;
	SLIST_ENTRY(ofi_chunk) link;
	struct ofi_buf bufs[CHUNK_BUFS];
};

static pthread_mutex_t ctx_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ofi_ctx *ctx_open;
static pid_t ctx_pid;
static union ofi_addr ctx_addrs[OFI_ADDRS];
static int ctx_nb_addrs; /* of the last context; 0: none was open */

void
san_ofi_ctx_lock(void)
{
	pthread_mutex_lock(&ctx_mutex);
}

void
san_ofi_ctx_unlock(void)
{
	pthread_mutex_unlock(&ctx_mutex);
}

bool
san_ofi_ctx_trylock(void)
{
	return pthread_mutex_trylock(&ctx_mutex) == 0;
}

int
san_ofi_ctx_fail(int rc, const char *what)
{
	OFI_WARN(FI_LOG_CORE, "%s: %s: %s\n", what, fi_strerror(-rc), rtsan_error());
	return rc;
}

/* ---- addresses ---- */

static void
ctx_note_addrs(struct rtsan_ctx *san)
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

	if (strncmp(san_ofi_init_spec(), "dpdk:", 5) == 0)
		return 0;
	rc = rtsan_open(san_ofi_init_spec(), &san);
	if (rc != 0) {
		/* a missing daemon is an error only if the program has named one */
		FI_LOG(&san_ofi_init_provider,
		       san_ofi_init_has_spec() ? FI_LOG_WARN : FI_LOG_INFO, FI_LOG_CORE, "%s\n",
		       rtsan_error());
		return rc;
	}
	ctx_note_addrs(san);
	rtsan_close(san);
	return 0;
}

int
san_ofi_ctx_addrs(union ofi_addr addrs[OFI_ADDRS])
{
	int rc = 0;

	san_ofi_ctx_lock();
	if (ctx_nb_addrs == 0)
		rc = ctx_probe();
	memcpy(addrs, ctx_addrs, sizeof(ctx_addrs));
	rc = rc != 0 ? rc : ctx_nb_addrs;
	san_ofi_ctx_unlock();
	return rc;
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

/* ---- open, close ---- */

static int
ctx_create(struct ofi_ctx **out)
{
	struct ofi_ctx *ctx = calloc(1, sizeof(*ctx));
	int rc;

	if (ctx == NULL)
		return -FI_ENOMEM;
	rc = rtsan_open(san_ofi_init_spec(), &ctx->san);
	if (rc != 0) {
		free(ctx);
		return san_ofi_ctx_fail(rc, san_ofi_init_spec());
	}
	rtsan_query(ctx->san, &ctx->caps);
	ctx_note_addrs(ctx->san);
	SLIST_INIT(&ctx->lanes);
	LIST_INIT(&ctx->bufs);
	LIST_INIT(&ctx->ops);
	LIST_INIT(&ctx->eps);
	STAILQ_INIT(&ctx->dirty);
	LIST_INIT(&ctx->peps);
	LIST_INIT(&ctx->rdms);
	LIST_INIT(&ctx->waits);
	SLIST_INIT(&ctx->chunks);
	rc = rtsan_event_fd(ctx->san) == -ENOTSUP ? san_ofi_drive_start(ctx) : 0;
	if (rc != 0) {
		rtsan_close(ctx->san);
		free(ctx);
		return rc;
	}
	*out = ctx;
	return 0;
}

int
san_ofi_ctx_get(struct ofi_ctx **out)
{
	int rc;

	if (ctx_open == NULL || ctx_pid != getpid()) {
		rc = ctx_create(&ctx_open); /* after fork() the old one is the parent's */
		if (rc != 0) {
			ctx_open = NULL;
			return rc;
		}
		ctx_pid = getpid();
	}
	ctx_open->refs++;
	*out = ctx_open;
	return 0;
}

void
san_ofi_ctx_put(struct ofi_ctx *ctx)
{
	struct ofi_chunk *chunk;
	struct ofi_lane *lane;
	struct ofi_op *op;

	if (--ctx->refs != 0)
		return;
	if (ctx == ctx_open)
		ctx_open = NULL;
	san_ofi_drive_stop(ctx);
	san_ofi_pep_end_all(ctx);
	rtsan_close(ctx->san);
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

/* ---- completion queues of the transport ---- */

#define LANE_NEED (OFI_SQ_DEPTH + OFI_RQ_DEPTH)

static int
ctx_lane_create(struct ofi_ctx *ctx, struct ofi_lane **out)
{
	struct ofi_lane *lane = calloc(1, sizeof(*lane));
	int rc;

	if (lane == NULL)
		return -FI_ENOMEM;
	lane->fd = -1;
	lane->room = 2 * ctx->caps.max_wr;
	rc = rtsan_cq_create(ctx->san, lane->room, &lane->cq);
	if (rc == 0) {
		rc = san_ofi_wait_add_lane(ctx, lane);
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
	struct ofi_lane *lane;
	int rc;

	SLIST_FOREACH(lane, &ctx->lanes, link)
		if (lane->room >= LANE_NEED)
			break;
	if (lane == NULL) {
		rc = ctx_lane_create(ctx, &lane);
		if (rc != 0)
			return rc;
	}
	lane->room -= LANE_NEED;
	*out = lane;
	return 0;
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

void
san_ofi_ctx_buf_put(struct ofi_ctx *ctx, struct ofi_buf *buf)
{
	LIST_INSERT_HEAD(&ctx->bufs, buf, link);
}
