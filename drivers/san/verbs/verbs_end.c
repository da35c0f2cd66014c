/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * How connections end, and how their peers are watched.
 *
 * DESIGN NOTES
 *
 * A connection that ends gives back all posted work before its program gets the event. The device's
 * queue pair is put into its error state, in which it flushes everything, and a mark behind that
 * shows the end. Work that the device never had comes back from the rings; so does work that the
 * program posts before it polls the event.
 *
 * Silence. A device notices the loss of its peer only when it sends. So an idle connection sends a
 * mark now and then, an empty write: that is the keep-alive. A mark behind all posted work also
 * shows when that is done, for a connection that ends in order.
 *
 * A peer that posts no receive. A device could wait for a short time or forever (1 to 6 RNR
 * retries, or no limit). It is set to no limit, and the time is measured here: if no request and no
 * mark completes for rnr_ms, while a request in flight needs a receive, the connection ends for
 * that reason. Long requests have more time.
 *
 * A peer that does not answer at all. The device gives up by itself, after two to eight seconds. If
 * rnr_ms is shorter, both cases look the same. The device must not give up earlier: it counts from
 * the time of sending, and one that sends to a busy peer from many queue pairs waits for all of
 * them. With a quarter of that time, 2 MiB to a slow Soft-RoCE were sent again before they were
 * acknowledged, and its kernel (6.1) took them for invalid requests.
 */

#include <netdb.h>

#include "verbs_priv.h"

#define TICK_NS      (2 * SAN_NS_PER_MS) /* while a connection ends */
#define DRAIN_MS     1000                /* for the device to give back everything */
#define LOOKS        4                   /* checks within rnr_ms */
#define SILENCE_MS   10000
#define BYTES_PER_US 64 /* speed from which a send gets time beside rnr_ms */

/* ---- events for the program ---- */

void
san_verbs_end_peer_text(struct rdma_cm_id *id, char text[RTSAN_ADDRESS_MAX])
{
	const struct sockaddr *sa = id != NULL ? rdma_get_peer_addr(id) : NULL;

	text[0] = '\0';
	if (sa != NULL)
		getnameinfo(sa,
			    sa->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
						       sizeof(struct sockaddr_in6),
			    text, RTSAN_ADDRESS_MAX, NULL, 0, NI_NUMERICHOST);
}

static void
verbs_end_fill_event(struct verbs_qp *q, struct verbs_event *e, uint8_t type, uint8_t reason,
		     const struct verbs_hello *h)
{
	e->ev = (struct shmq_event){.type = type, .reason = reason, .qp = atomic_load(&q->qpn)};
	san_verbs_end_peer_text(q->id, e->ev.peer);
	if (h == NULL)
		return;
	e->ev.private_len = h->len;
	memcpy(e->ev.private_data, h->data, h->len);
}

static void
verbs_end_tell_event(struct verbs_qp *q, struct verbs_event *e)
{
	SAN_LOCKED(&q->ctx->lock);

	if (!san_verbs_qp_is_orphan(q))
		san_verbs_conn_put(q->ctx, e);
}

void
san_verbs_end_tell_up(struct verbs_qp *q, const struct verbs_hello *h)
{
	verbs_end_fill_event(q, &q->events[0], RTSAN_EV_ESTABLISHED, RTSAN_R_NONE, h);
	verbs_end_tell_event(q, &q->events[0]);
}

/* ---- ends ---- */

bool
san_verbs_end_fail(struct verbs_qp *q, uint8_t status)
{
	uint8_t none = 0;
	bool is_first = atomic_compare_exchange_strong(&q->failed, &none, status);

	if (is_first)
		san_verbs_thread_look(q);
	return is_first;
}

void
san_verbs_end_leave(struct verbs_qp *q)
{
	if (q->id == NULL)
		return;
	san_verbs_qp_unmake(q);
	san_verbs_thread_retire(q->ctx, q->id, false);
	q->id = NULL;
}

bool
san_verbs_end_is_connected(const struct verbs_qp *q)
{
	return q->state != VERBS_IDLE && q->state != VERBS_ENDED;
}

/* It was never established: posted work stays for the next connection. */
static bool
was_never_up(const struct verbs_qp *q)
{
	return q->events[1].ev.type != RTSAN_EV_DISCONNECTED;
}

void
san_verbs_end_begin(struct verbs_qp *q, uint8_t type, uint8_t reason, const struct verbs_hello *h)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

	/* an acceptor gets no other event; and after it was up, posted work must come back */
	if (q->is_acceptor || atomic_load(&q->was_up))
		type = RTSAN_EV_DISCONNECTED;
	verbs_end_fill_event(q, &q->events[1], type, reason, h);
	if (q->state == VERBS_UP || q->state == VERBS_DRAINING)
		rdma_disconnect(q->id);
	q->state = VERBS_ENDING;
	q->has_end_mark = false;
	q->end_ns = san_verbs_now_ns() + DRAIN_MS * SAN_NS_PER_MS;
	if (san_verbs_qp_is_made(q) && !was_never_up(q)) {
		ibv_modify_qp(q->id->qp, &error, IBV_QP_STATE);
		q->has_end_mark = san_verbs_qp_mark(q);
	}
	san_verbs_thread_look(q);
}

void
san_verbs_end_drop(struct verbs_qp *q)
{
	if (q->state == VERBS_UP || q->state == VERBS_DRAINING)
		rdma_disconnect(q->id);
	san_verbs_end_leave(q);
	q->state = VERBS_IDLE;
}

/*
 * Whether the device has given back everything. It has not while completions find no room: then the
 * deadline is extended, because the program has to poll, however late.
 */
static bool
verbs_end_is_drained(struct verbs_qp *q, uint64_t now_ns)
{
	bool all = san_verbs_cq_harvest(q->send_cq);

	all = san_verbs_cq_harvest(q->recv_cq) && all;
	if (!all) {
		q->end_ns = now_ns + DRAIN_MS * SAN_NS_PER_MS;
		return false;
	}
	return !atomic_load(&q->was_up) ||
		(q->has_end_mark && atomic_load(&q->marks) == 0 &&
		 atomic_load(&q->wq->rq_head) == q->rq_posted);
}

/* All work has come back: report the end. Then the program may connect again. */
static void
verbs_end_finish(struct verbs_qp *q)
{
	bool is_late = q->events[1].ev.reason == RTSAN_R_TIMEOUT;

	san_verbs_end_leave(q);
	q->state = q->stream != NULL || was_never_up(q) ? VERBS_IDLE : VERBS_ENDED;
	if (q->stream != NULL && !was_never_up(q))
		san_verbs_stream_over(q, is_late ? RTSAN_WC_RETRY_EXC : RTSAN_WC_FLUSHED);
	verbs_end_tell_event(q, &q->events[1]);
	if (san_verbs_qp_is_orphan(q))
		san_verbs_qp_free(q);
}

/* True: some work has not come back yet. */
static bool
verbs_end_free_drained(struct verbs_qp *q, uint64_t now_ns)
{
	bool is_all;

	if (was_never_up(q)) {
		verbs_end_finish(q);
		return false;
	}
	if (san_verbs_qp_is_made(q)) {
		is_all = verbs_end_is_drained(q, now_ns);
		if (!is_all && now_ns < q->end_ns)
			return true;
		san_verbs_qp_unmake(q);
		if (is_all && atomic_load(&q->was_up))
			san_verbs_cq_settle(q);
	}
	if (!san_verbs_cq_flush(q))
		return true;
	verbs_end_finish(q);
	return false;
}

/* ---- silence ---- */

static uint64_t
verbs_end_give_up(struct verbs_qp *q, uint8_t status, uint8_t reason, uint64_t now_ns)
{
	atomic_store(&q->blame, status);
	san_verbs_end_begin(q, RTSAN_EV_DISCONNECTED, reason, NULL);
	return now_ns + TICK_NS;
}

/* Returns when to look again. */
static uint64_t
verbs_end_watch_qp(struct verbs_qp *q, uint64_t now_ns)
{
	uint64_t idle_ns = q->keepalive_ms * SAN_NS_PER_MS, rnr_ns = q->rnr_ms * SAN_NS_PER_MS;
	bool all_seen = san_verbs_cq_harvest(q->send_cq), needs = false, sent, has_sends, is_busy;
	uint32_t at, sq_head = atomic_load(&q->wq->sq_head), marks = atomic_load(&q->marks);
	uint32_t rq_head = atomic_load(&q->wq->rq_head);
	uint64_t more_ns, bytes = 0; /* of the sends in flight */

	for (at = sq_head; at != q->sq_posted; at++) {
		const struct san_ulp_wr *e = &q->sqe[at & (q->sq_depth - 1)];

		bytes += e->length;
		needs |= san_wr_takes_recv(e->op); /* a receive */
	}
	more_ns = bytes / BYTES_PER_US * SAN_NS_PER_US;
	has_sends = q->sq_posted != sq_head;
	is_busy = has_sends || marks != 0;
	/* a send or a mark has completed since the last call */
	sent = sq_head != q->sq_seen || marks < q->marks_seen;
	if (rq_head != q->rq_seen || sent || q->moved_ns == 0)
		q->moved_ns = now_ns;
	q->sq_seen = sq_head;
	q->rq_seen = rq_head;
	q->marks_seen = marks;
	/* from the first check that finds work in flight */
	if (sent || !all_seen || !is_busy || q->out_ns == 0)
		q->out_ns = is_busy ? now_ns : 0;
	if (q->out_ns != 0 && needs && now_ns - q->out_ns >= rnr_ns + more_ns)
		return verbs_end_give_up(q, RTSAN_WC_RNR_RETRY_EXC, RTSAN_R_NONE, now_ns);
	if (q->out_ns != 0 && now_ns - q->out_ns >= SILENCE_MS * SAN_NS_PER_MS + 4 * more_ns)
		return verbs_end_give_up(q, RTSAN_WC_RETRY_EXC, RTSAN_R_TIMEOUT, now_ns);
	if (has_sends ? !sent : now_ns - q->moved_ns >= idle_ns)
		san_verbs_qp_mark(q);
	q->marks_seen = atomic_load(&q->marks);
	return now_ns + san_time_min(idle_ns, rnr_ns / LOOKS);
}

/* ---- all states ---- */

uint64_t
san_verbs_end_serve(struct verbs_qp *q, uint64_t now_ns)
{
	uint8_t failed = atomic_load(&q->failed); /* what was noticed elsewhere */
	uint8_t reason = failed == RTSAN_WC_RETRY_EXC ? RTSAN_R_TIMEOUT :
		failed == RTSAN_WC_NO_BUFFERS         ? RTSAN_R_RESOURCES :
							RTSAN_R_NONE;
	uint64_t next_ns = SAN_TIME_NEVER;

	if ((failed != 0 || atomic_load(&q->ctx->is_lost)) && san_verbs_end_is_connected(q) &&
	    q->state != VERBS_ENDING)
		san_verbs_end_begin(q, RTSAN_EV_UNREACHABLE, reason, NULL);
	if (q->stream != NULL && q->state != VERBS_ENDING)
		next_ns = san_verbs_stream_work(q, now_ns);
	switch (q->state) {
	case VERBS_RESOLVING:
	case VERBS_CONNECTING:
		if (now_ns >= q->end_ns)
			san_verbs_end_begin(q, RTSAN_EV_UNREACHABLE, RTSAN_R_TIMEOUT, NULL);
		return san_time_min(next_ns, q->end_ns);
	case VERBS_UP:
		return san_time_min(next_ns, verbs_end_watch_qp(q, now_ns));
	case VERBS_DRAINING:
		/* completions are taken here, because the program may not poll */
		san_verbs_cq_harvest(q->send_cq);
		if (atomic_load(&q->wq->sq_head) == atomic_load(&q->wq->sq_tail))
			san_verbs_end_begin(q, RTSAN_EV_DISCONNECTED, RTSAN_R_NONE, NULL);
		else
			san_verbs_qp_mark(q);
		if (q->state == VERBS_DRAINING)
			verbs_end_watch_qp(q, now_ns);
		return now_ns + TICK_NS;
	case VERBS_ENDING:
		if (verbs_end_free_drained(q, now_ns))
			return now_ns + TICK_NS;
		return q->stream != NULL ? now_ns : SAN_TIME_NEVER;
	case VERBS_ENDED:
		return san_verbs_cq_flush(q) ? SAN_TIME_NEVER : now_ns + TICK_NS;
	default:
		return next_ns;
	}
}
