/* SPDX-License-Identifier: BSD-3-Clause */

/* Connections: converts the parameters of rtsan.h to those of the core, and events back. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "dpdk_priv.h"

#define FIRST_WINDOW_MIN 2 /* RULE-7 */

struct conn_call {
	uint64_t service;
	uint32_t qp;
	uint32_t cookie;
	uint64_t request;
	uint16_t pkey, backlog;
	struct san_ip peer;
	struct san_cm_param param;
	struct san_cm_moved moved;
	bool adopted;
	const void *data;
	uint16_t len;
};

static int
dpdk_conn_do_listen(struct san_engine *e, void *arg)
{
	const struct conn_call *call = arg;

	return san_core_conn_listen(san_engine_lcore_core(e), call->service, call->pkey,
				    call->backlog, call->cookie);
}

static int
dpdk_conn_do_unlisten(struct san_engine *e, void *arg)
{
	const struct conn_call *call = arg;

	san_core_conn_unlisten(san_engine_lcore_core(e), call->service, call->pkey);
	return 0;
}

/* Stop listening on the first *n* engines. */
static void
dpdk_conn_unlisten_first(const struct dpdk_ctx *ctx, struct conn_call *call, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		san_engine_loop_call(san_engine_at(ctx->port, i), dpdk_conn_do_unlisten, call);
}

int
san_dpdk_conn_listen(void *priv, uint64_t service, uint16_t pkey, uint16_t backlog, uint32_t cookie)
{
	const struct dpdk_ctx *ctx = priv;
	struct conn_call call = {
		.service = service,
		.pkey = pkey != 0 ? pkey : ctx->param.pkey,
		.backlog = backlog,
		.cookie = cookie,
	};
	uint32_t i;
	int rc = 0;

	/* a request may come to any engine */
	for (i = 0; i < ctx->nb_engines && rc == 0; i++)
		rc = san_engine_loop_call(san_engine_at(ctx->port, i), dpdk_conn_do_listen, &call);
	if (rc != 0)
		dpdk_conn_unlisten_first(ctx, &call, i - 1);
	return rc;
}

void
san_dpdk_conn_unlisten(void *priv, uint64_t service, uint16_t pkey)
{
	const struct dpdk_ctx *ctx = priv;
	struct conn_call call = {
		.service = service,
		.pkey = pkey != 0 ? pkey : ctx->param.pkey,
	};

	dpdk_conn_unlisten_first(ctx, &call, ctx->nb_engines);
}

/* Convert *param* (or NULL), with the context's defaults, for the core. */
static int
dpdk_conn_fill_param(const struct dpdk_ctx *ctx, const struct rtsan_conn_param *param,
		     struct san_cm_param *out)
{
	static const struct rtsan_conn_param none;
	const struct rtsan_conn_param *p = param != NULL ? param : &none, *d = &ctx->param;
	uint16_t window = p->window != 0 ? p->window : d->window;
	uint16_t first = p->first_window != 0 ? p->first_window :
		p->window != 0                ? window :
						d->first_window;

	if (window < SAN_WIN_MIN || window > SAN_WIN_DATA_MAX)
		return ctx->host->fail(-EINVAL, "window %u: must be %u to %u", window, SAN_WIN_MIN,
				       SAN_WIN_DATA_MAX);
	if (first < FIRST_WINDOW_MIN)
		return ctx->host->fail(-EINVAL, "first_window %u: at least %u", first,
				       FIRST_WINDOW_MIN);
	memset(out, 0, sizeof(*out));
	out->ordered = p->order != RTSAN_UNORDERED;
	out->relaxed = p->order == RTSAN_RELAXED;
	out->ends = p->order == RTSAN_ENDING;
	out->pkey = p->pkey != 0 ? p->pkey : d->pkey;
	out->data_win = (uint16_t)rte_align32pow2(window);
	out->req_win = (uint16_t)RTE_MIN(out->data_win, (uint16_t)SAN_WIN_REQ_MAX);
	out->first_win = first;
	out->max_txn = p->max_txn != 0 ? p->max_txn : d->max_txn;
	out->msg_limit = p->msg_limit != 0 ? p->msg_limit :
		p->max_txn != 0            ? p->max_txn :
					     d->msg_limit;
	out->rnr_ms = p->rnr_ms != 0 ? p->rnr_ms : d->rnr_ms;
	out->keepalive_ms = p->keepalive_ms != 0 ? p->keepalive_ms : d->keepalive_ms;
	if (out->max_txn > SAN_TL_N_MAX)
		return ctx->host->fail(-EINVAL, "max_txn %u: at most %u", out->max_txn,
				       SAN_TL_N_MAX);
	out->private_len = p->private_len;
	if (p->private_len != 0)
		memcpy(out->private_data, p->private_data, p->private_len);
	return 0;
}

static int
dpdk_conn_do_connect(struct san_engine *e, void *arg)
{
	const struct conn_call *call = arg;

	return san_core_conn_connect(san_engine_lcore_core(e), call->qp, &call->peer, call->service,
				     &call->param, san_engine_lcore_now_ns(e));
}

int
san_dpdk_conn_connect(void *priv, uint32_t qp, const char *peer, uint64_t service,
		      const struct rtsan_conn_param *param)
{
	const struct dpdk_ctx *ctx = priv;
	struct conn_call call = {.qp = qp, .service = service};
	struct san_inet_addr addr;
	int rc;

	if (strchr(peer, '/') != NULL || san_inet_addr_parse(peer, &addr) != 0)
		return ctx->host->fail(-EINVAL, "connect: \"%s\" is not an address", peer);
	call.peer = addr.ip;
	rc = dpdk_conn_fill_param(ctx, param, &call.param);
	if (rc != 0)
		return rc;
	rc = san_engine_loop_call(san_dpdk_engine_of(ctx, qp), dpdk_conn_do_connect, &call);
	if (rc == -EADDRNOTAVAIL)
		return ctx->host->fail(rc, "connect: no address of our own to talk to %s", peer);
	if (rc == -ENETUNREACH)
		return ctx->host->fail(rc,
				       "connect: no route to %s: in no prefix of our addresses, "
				       "and gw= is not set",
				       peer);
	return rc;
}

static int
do_accept(struct san_engine *e, void *arg)
{
	const struct conn_call *call = arg;

	return san_core_conn_accept(san_engine_lcore_core(e), call->request, call->qp, &call->param,
				    san_engine_lcore_now_ns(e));
}

/* A request is named by a CID, which contains the number of its lcore. */
static struct san_engine *
engine_of_request(const struct dpdk_ctx *ctx, uint64_t request)
{
	uint32_t id = san_pdl_cid_lcore((uint32_t)request);

	return san_engine_at(ctx->port, id < ctx->nb_engines ? id : 0);
}

static int
do_take(struct san_engine *e, void *arg)
{
	struct conn_call *call = arg;

	return san_core_conn_request_take(san_engine_lcore_core(e), call->request, &call->moved,
					  san_engine_lcore_now_ns(e));
}

static int
do_adopt(struct san_engine *e, void *arg)
{
	const struct conn_call *call = arg;

	return san_core_conn_request_adopt(san_engine_lcore_core(e), &call->moved, call->qp,
					   &call->param, san_engine_lcore_now_ns(e));
}

static int
do_settle(struct san_engine *e, void *arg)
{
	const struct conn_call *call = arg;

	san_core_conn_request_settle(san_engine_lcore_core(e), call->request, call->adopted,
				     san_engine_lcore_now_ns(e));
	return 0;
}

/* Accept on another lcore than the one that has the request: that of the queue pair. */
static int
dpdk_conn_move_request(struct san_engine *from, struct san_engine *to, struct conn_call *call)
{
	int rc = san_engine_loop_call(from, do_take, call);

	if (rc != 0)
		return rc;
	rc = san_engine_loop_call(to, do_adopt, call);
	call->adopted = rc == 0;
	san_engine_loop_call(from, do_settle, call);
	return rc;
}

int
san_dpdk_conn_accept(void *priv, uint64_t request, uint32_t qp,
		     const struct rtsan_conn_param *param)
{
	const struct dpdk_ctx *ctx = priv;
	struct san_engine *from = engine_of_request(ctx, request);
	struct san_engine *to = san_dpdk_engine_of(ctx, qp);
	struct conn_call call = {.qp = qp, .request = request};
	int rc;

	rc = dpdk_conn_fill_param(ctx, param, &call.param);
	if (rc != 0)
		return rc;
	rc = from == to ? san_engine_loop_call(to, do_accept, &call) :
			  dpdk_conn_move_request(from, to, &call);
	if (rc == -EPROTOTYPE)
		return ctx->host->fail(rc, "accept: one of request and queue pair is for a stream, "
					   "the other is not");
	return rc;
}

static int
do_reject(struct san_engine *e, void *arg)
{
	const struct conn_call *call = arg;

	return san_core_conn_reject(san_engine_lcore_core(e), call->request, call->data, call->len,
				    san_engine_lcore_now_ns(e));
}

int
san_dpdk_conn_reject(void *priv, uint64_t request, const void *data, uint16_t len)
{
	const struct dpdk_ctx *ctx = priv;
	struct conn_call call = {.request = request, .data = data, .len = len};

	return san_engine_loop_call(engine_of_request(ctx, request), do_reject, &call);
}

static int
do_disconnect(struct san_engine *e, void *arg)
{
	return san_core_conn_disconnect(san_engine_lcore_core(e), *(const uint32_t *)arg, false,
					san_engine_lcore_now_ns(e));
}

int
san_dpdk_conn_disconnect(void *priv, uint32_t qp)
{
	const struct dpdk_ctx *ctx = priv;

	return san_engine_loop_call(san_dpdk_engine_of(ctx, qp), do_disconnect, &qp);
}

int
san_dpdk_conn_event_poll(void *priv, struct rtsan_provider_event *ev)
{
	const struct dpdk_ctx *ctx = priv;
	struct san_core_event core;
	char text[SAN_INET_TEXT];

	if (!san_engine_event(ctx->port, &core))
		return san_engine_is_lost(ctx->port) ? -EIO : 0;
	memset(ev, 0, sizeof(*ev));
	ev->qp = core.qp;
	ev->listener = core.listener;
	ev->ev.type = core.type;
	ev->ev.reason = core.reason;
	ev->ev.request = core.request;
	ev->ev.stream = core.stream;
	ev->ev.private_len = RTE_MIN(core.private_len, (uint16_t)RTSAN_PRIVATE_MAX);
	memcpy(ev->ev.private_data, core.private_data, ev->ev.private_len);
	snprintf(ev->ev.peer, sizeof(ev->ev.peer), "%s", san_inet_addr_text(&core.peer, text));
	return 1;
}
