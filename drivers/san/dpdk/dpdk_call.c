/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Executes the records of control calls (shmq_req.h), of this program and of the daemon's
 * applications, on the lcores that they are for; converts events. A record is valid here: librtsan
 * has filled it in, or the daemon has checked its copy.
 */

#include <unistd.h>

#include <rte_common.h>

#include "dpdk_priv.h"
#include "san_assert.h"

#define FIRST_WINDOW_MIN 2 /* RULE-7 */

/** Steps of a record that are no record themselves. */
enum call_step {
	CALL_MR_FREE = SHMQ_TYPES, /* of a region that is closed */
	CALL_MR_REOPEN,
	CALL_TAKE, /* ACCEPT on another lcore than that of the request: TAKE, ADOPT, SETTLE */
	CALL_ADOPT,
	CALL_SETTLE,
};

/** A record on its way to an lcore, with what its execution needs besides. */
struct dpdk_call {
	uint32_t op; /* enum shmq_type or call_step */
	const struct shmq_req *req;
	uint16_t pkey; /* of a listener */
	struct san_ip peer;
	struct san_cm_param param;
	struct san_cm_moved moved;
	bool adopted;
};

/* On the lcore. */
static int
call_execute(struct san_engine *e, void *arg)
{
	struct dpdk_call *call = arg;
	const struct shmq_conn *conn = &call->req->conn;
	struct san_core *core = san_engine_lcore_core(e);
	uint64_t now_ns = san_engine_lcore_now_ns(e);
	uint32_t id = call->req->id;

	switch (call->op) {
	case SHMQ_MR_DEL:
		/* in one call: work that is posted later cannot name the region either */
		if (san_engine_lcore_names_key(e, id))
			return -EBUSY;
		san_ulp_mr_close(san_core_ulp(core), id, true);
		return 0;
	case CALL_MR_FREE:
		return san_ulp_mr_del(san_core_ulp(core), id);
	case CALL_MR_REOPEN:
		san_ulp_mr_close(san_core_ulp(core), id, false);
		return 0;
	case SHMQ_LISTEN:
		return san_cm_listen(san_core_cm(core), conn->service, call->pkey, conn->backlog,
				     id);
	case SHMQ_UNLISTEN:
		san_cm_listen_end(san_core_cm(core), conn->service, call->pkey);
		return 0;
	case SHMQ_CONNECT:
		return san_core_conn_connect(core, id, &call->peer, conn->service, &call->param,
					     now_ns);
	case SHMQ_ACCEPT:
		return san_core_conn_accept(core, conn->request, id, &call->param, now_ns);
	case CALL_TAKE:
		return san_core_conn_request_take(core, conn->request, &call->moved, now_ns);
	case CALL_ADOPT:
		return san_core_conn_request_adopt(core, &call->moved, id, &call->param, now_ns);
	case CALL_SETTLE:
		san_core_conn_request_settle(core, conn->request, call->adopted, now_ns);
		return 0;
	case SHMQ_REJECT:
		return san_core_conn_reject(core, conn->request, conn->private_data,
					    conn->private_len, now_ns);
	default: /* SHMQ_DISCONNECT */
		return san_core_conn_disconnect(core, id, false, now_ns);
	}
}

static int
call_lcore(const struct dpdk_ctx *ctx, uint32_t lcore, struct dpdk_call *call, uint32_t op)
{
	call->op = op;
	return san_engine_loop_call(san_engine_at(ctx->port, lcore), call_execute, call);
}

/* ---- on the caller's thread ---- */

/* Convert the parameters of a record, with the context's defaults, for the core. */
static int
call_fill_param(const struct dpdk_ctx *ctx, const struct shmq_conn *p, struct san_cm_param *out)
{
	const struct san_cm_param *d = &ctx->param;
	uint16_t window = p->window != 0 ? p->window : d->data_win;
	uint16_t first = p->first_window != 0 ? p->first_window :
		p->window != 0                ? window :
						d->first_win;

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
	out->uid = p->uid;
	if (out->max_txn > SAN_TL_N_MAX)
		return ctx->host->fail(-EINVAL, "max_txn %u: at most %u", out->max_txn,
				       SAN_TL_N_MAX);
	SAN_VERIFY(p->private_len <= sizeof(out->private_data));
	out->private_len = p->private_len;
	memcpy(out->private_data, p->private_data, p->private_len);
	return 0;
}

/* Which lcores a record is for. */
enum call_place {
	ON_ALL,
	AT_QP,      /* that of the queue pair */
	AT_REQUEST, /* that of the connection request */
};

static const struct call_row {
	enum call_place place;
	uint32_t undo; /* reverts it if another lcore has failed; 0: nothing to do */
	uint32_t then; /* when all have succeeded */
	bool has_param, has_peer;
} rows[SHMQ_TYPES] = {
	[SHMQ_MR_DEL] = {.place = ON_ALL, .undo = CALL_MR_REOPEN, .then = CALL_MR_FREE},
	[SHMQ_LISTEN] = {.place = ON_ALL, .undo = SHMQ_UNLISTEN}, /* a request comes to any */
	[SHMQ_UNLISTEN] = {.place = ON_ALL},
	[SHMQ_CONNECT] = {.place = AT_QP, .has_param = true, .has_peer = true},
	[SHMQ_ACCEPT] = {.place = AT_QP, .has_param = true},
	[SHMQ_REJECT] = {.place = AT_REQUEST},
	[SHMQ_DISCONNECT] = {.place = AT_QP},
};

static int
call_explain(const struct dpdk_ctx *ctx, const struct shmq_req *req, int rc)
{
	if (req->type == SHMQ_CONNECT && rc == -EADDRNOTAVAIL)
		return ctx->host->fail(rc, "connect: no address of our own to talk to %s",
				       req->conn.peer);
	if (req->type == SHMQ_CONNECT && rc == -ENETUNREACH)
		return ctx->host->fail(rc,
				       "connect: no route to %s: in no prefix of our addresses, "
				       "and gw= is not set",
				       req->conn.peer);
	if (req->type == SHMQ_ACCEPT && rc == -EPROTOTYPE)
		return ctx->host->fail(rc, "accept: one of request and queue pair is for a stream, "
					   "the other is not");
	return rc;
}

int
san_dpdk_call(void *priv, const struct shmq_req *req)
{
	const struct dpdk_ctx *ctx = priv;
	const struct call_row *row = &rows[req->type];
	struct dpdk_call call = {
		.req = req,
		.pkey = req->conn.pkey != 0 ? req->conn.pkey : ctx->param.pkey,
	};
	const char *peer = req->conn.peer;
	/* a request is named by a CID, which contains the number of its lcore */
	uint32_t i, cid_lcore = san_pdl_cid_lcore((uint32_t)req->conn.request);
	uint32_t had = cid_lcore < ctx->nb_engines ? cid_lcore : 0;
	uint32_t from = row->place == ON_ALL ? 0 :
		row->place == AT_REQUEST     ? had :
					       SAN_QPN_INDEX(req->id) >> ctx->qp_shift;
	uint32_t end = row->place == ON_ALL ? ctx->nb_engines : from + 1;
	struct san_inet_addr addr = {0};
	int rc = 0;

	/* the daemon passes on what an application wrote: it need not have an end */
	if (row->has_peer &&
	    (memchr(peer, '\0', sizeof(req->conn.peer)) == NULL || strchr(peer, '/') != NULL ||
	     san_inet_addr_parse(peer, &addr) != 0))
		return ctx->host->fail(-EINVAL, "connect: \"%.*s\" is not an address",
				       (int)sizeof(req->conn.peer), peer);
	call.peer = addr.ip;
	if (row->has_param)
		rc = call_fill_param(ctx, &req->conn, &call.param);
	if (rc != 0)
		return rc;
	/* accepted on another lcore than the one that has the request: that of the queue pair */
	if (req->type == SHMQ_ACCEPT && had != from) {
		rc = call_lcore(ctx, had, &call, CALL_TAKE);
		if (rc == 0) {
			rc = call_lcore(ctx, from, &call, CALL_ADOPT);
			call.adopted = rc == 0;
			call_lcore(ctx, had, &call, CALL_SETTLE);
		}
		return call_explain(ctx, req, rc);
	}
	for (i = from; i < end && rc == 0; i++)
		rc = call_lcore(ctx, i, &call, req->type);
	if (rc != 0) {
		for (i--; i > from && row->undo != 0; i--)
			call_lcore(ctx, i - 1, &call, row->undo);
		return call_explain(ctx, req, rc);
	}
	for (i = from; i < end && row->then != 0 && rc == 0; i++)
		rc = call_lcore(ctx, i, &call, row->then);
	return rc;
}

int
san_dpdk_call_reject(struct dpdk_ctx *ctx, uint64_t request)
{
	const struct shmq_req req = {.type = SHMQ_REJECT, .conn = {.request = request}};

	return san_dpdk_call(ctx, &req);
}

/* ---- events ---- */

int
san_dpdk_call_event_poll(void *priv, struct shmq_event *ev)
{
	const struct dpdk_ctx *ctx = priv;
	struct san_core_event core;
	char text[SAN_INET_TEXT];

	if (!san_engine_event(ctx->port, &core))
		return san_engine_is_lost(ctx->port) ? -EIO : 0;
	memset(ev, 0, sizeof(*ev));
	ev->qp = core.qp;
	ev->listener = core.listener;
	ev->type = core.type;
	ev->reason = core.reason;
	ev->request = core.request;
	ev->stream = core.stream;
	ev->uid = core.uid;
	if (core.uid != RTSAN_UID_NONE)
		ev->user = core.is_local ? RTSAN_USER_PROVED : RTSAN_USER_STATED;
	ev->own_user = ev->user != RTSAN_USER_NONE && core.uid == geteuid();
	ev->private_len = RTE_MIN(core.private_len, (uint16_t)RTSAN_PRIVATE_MAX);
	memcpy(ev->private_data, core.private_data, ev->private_len);
	snprintf(ev->peer, sizeof(ev->peer), "%s", san_inet_addr_text(&core.peer, text));
	return 1;
}
