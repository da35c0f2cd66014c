/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A stream is an ulp queue pair whose number the application knows, while a session does its work.
 * The application's posts go to the session. The session's requests complete in a queue of the
 * lcore's own, and these completions are returned to the session. Completions of the session go to
 * the application's queues. So the application sees an ordinary queue pair, and the layers below
 * see no streams.
 *
 * A call that touches a session lists it. Listed sessions are pumped once per burst, before packets
 * are built. So small sends that are posted together are sent together, and a header that is due
 * anyway carries the credit of all that arrived. Only the end of a connection does not wait: the
 * owner gets that event when every request has completed.
 *
 * If the application's queue is full, completions wait in the session, in order, receives apart
 * from the rest. A poll of the queue is not notified, so the session tries again after a moment,
 * and after twice the time if it is still full.
 *
 * An inner queue pair is as deep as the session can fill it. So ulp never refuses for lack of
 * entries, and the completion queue of the inner queue pair never becomes full.
 *
 * Timers: one per stream, for the session's deadline, the retry of a full queue, and the end of an
 * orphan.
 */

#include <string.h>

#include "core_priv.h"
#include "san_assert.h"

#define CQ_RETRY_NS    (20 * SAN_NS_PER_US) /* at first; doubles each time */
#define CQ_RETRY_MAX   SAN_NS_PER_MS
#define ROUND_BYTES    (256u << 10) /* that all sessions may copy before packets have their turn */
#define HAND_OVER      32           /* completions at a time */
#define NEVER_ORPHANED SAN_TIME_NEVER

/* ---- tables ---- */

static void
core_stream_list_work(struct core_stream *s)
{
	if (s->is_listed)
		return;
	s->is_listed = true;
	TAILQ_INSERT_TAIL(&s->core->stream_work, s, work_link);
}

static void
core_stream_unlist_work(struct core_stream *s)
{
	if (!s->is_listed)
		return;
	s->is_listed = false;
	TAILQ_REMOVE(&s->core->stream_work, s, work_link);
}

struct core_stream *
san_core_stream_at(const struct san_core *core, uint32_t qp)
{
	uint32_t place = san_ulp_qp_index(&core->conf.ulp, qp);
	struct core_stream *s = place < core->conf.ulp.max_qps ? core->streams[place] : NULL;

	return s != NULL && s->qpn == qp ? s : NULL;
}

const struct san_stream *
san_core_stream(const struct san_core *core, uint32_t qp)
{
	const struct core_stream *s = san_core_stream_at(core, qp);

	return s != NULL ? s->session : NULL;
}

bool
san_core_stream_names_key(const struct san_core *core, uint32_t key)
{
	uint32_t i;

	for (i = 0; core->use.nb != 0 && i < core->conf.ulp.max_qps; i++)
		if (core->streams[i] != NULL &&
		    san_stream_show_names_key(core->streams[i]->session, key))
			return true;
	return false;
}

/* ---- construction ---- */

/* Depths of the queue pair below a stream; returns that of its completion queue. */
static uint32_t
inner_depths(const struct san_stream_conf *conf, struct san_ulp_qp_conf *inner)
{
	san_stream_depths(conf, &inner->sq_depth, &inner->rq_depth);
	/* One more, because requests leave one entry to receives if both share a queue. */
	return rte_align32pow2(inner->sq_depth + inner->rq_depth + 1);
}

/* Bytes besides those of the session. */
static uint64_t
own_bytes(const struct san_stream_conf *conf)
{
	struct san_ulp_qp_conf inner;
	uint32_t cq_depth = inner_depths(conf, &inner);

	return sizeof(struct core_stream) + san_ulp_qp_bytes(inner.sq_depth, inner.rq_depth) +
		san_ulp_cq_own_bytes(cq_depth);
}

uint64_t
san_core_stream_bytes_max(const struct san_stream_conf *conf)
{
	return own_bytes(conf) + san_stream_bytes_max(conf);
}

static int
inner_create(struct core_stream *s, const struct san_ulp_qp_conf *outer)
{
	struct san_ulp_qp_conf inner = {.owner = outer->owner};
	uint32_t cq_depth = inner_depths(&s->conf, &inner);
	struct san_ulp *ulp = s->core->ulp;
	int rc;

	rc = san_ulp_cq_create_own(ulp, cq_depth, &s->own);
	if (rc != 0)
		return rc;
	inner.send_cq = inner.recv_cq = s->own;
	rc = san_ulp_qp_create(ulp, &inner, &s->qpn);
	if (rc != 0)
		san_ulp_cq_destroy(ulp, s->own);
	return rc;
}

static void
inner_destroy(struct core_stream *s)
{
	int rc = san_ulp_qp_destroy(s->core->ulp, s->qpn);

	SAN_VERIFY(rc == 0);
	rc = san_ulp_cq_destroy(s->core->ulp, s->own);
	SAN_VERIFY(rc == 0);
}

static void
core_stream_new_session(struct core_stream *s, struct san_stream *session)
{
	s->session = session;
	s->is_open = s->is_over = s->accepted = s->disconnects = false;
	core_stream_list_work(s);
}

int
san_core_stream_create(struct san_core *core, const struct san_core_stream_conf *conf,
		       uint64_t now_ns, uint32_t *qp)
{
	struct san_stream *session;
	struct san_stream_conf own;
	struct core_stream *s;
	int rc;

	own = conf->stream;
	own.sq_depth = conf->qp.sq_depth;
	own.rq_depth = conf->qp.rq_depth;
	if ((conf->qp.send_cq == NULL || conf->qp.recv_cq == NULL) != conf->is_sock ||
	    san_stream_conf_check(&own) != NULL)
		return -EINVAL;
	s = san_mem_calloc(core->conf.mem, 1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->core = core;
	s->conf = own;
	s->send_cq = conf->qp.send_cq;
	s->recv_cq = conf->qp.recv_cq;
	s->is_sock = conf->is_sock;
	s->sock = conf->sock;
	s->armed_ns = SAN_TIME_NEVER;
	s->linger_ns = NEVER_ORPHANED;
	s->retry_ns = CQ_RETRY_NS;
	rc = san_core_share_init(core, &s->share, conf->user);
	if (rc != 0)
		goto no_share;
	rc = -ENOMEM;
	if (!san_core_share_take(core, &s->share, own_bytes(&own)))
		goto no_room;
	rc = inner_create(s, &conf->qp);
	if (rc != 0)
		goto no_inner;
	core->stream_now_ns = now_ns;
	rc = san_stream_create(&s->conf, &san_core_stream_ops, s, &session);
	if (rc != 0)
		goto no_session;
	core->streams[san_ulp_qp_index(&core->conf.ulp, s->qpn)] = s;
	core->use.nb++;
	if (!s->is_sock) {
		san_ulp_cq_hold(s->send_cq);
		san_ulp_cq_hold(s->recv_cq);
	}
	core_stream_new_session(s, session);
	*qp = s->qpn;
	return 0;

no_session:
	inner_destroy(s);
no_inner:
	san_core_share_give(core, &s->share, own_bytes(&own));
no_room:
	san_core_share_fini(core, &s->share);
no_share:
	san_mem_free(core->conf.mem, s, sizeof(*s));
	return rc;
}

/* The connection has ended, if there was one. */
static void
stream_free(struct core_stream *s)
{
	struct san_core *core = s->core;

	core_stream_unlist_work(s);
	san_wheel_cancel(&core->stream_wheel, &s->timer);
	if (s->send_cq != NULL) {
		san_ulp_cq_drop(s->send_cq);
		san_ulp_cq_drop(s->recv_cq);
	}
	core->streams[san_ulp_qp_index(&core->conf.ulp, s->qpn)] = NULL;
	core->use.nb--;
	/* The session's requests must be dropped before its memory is freed. */
	inner_destroy(s);
	san_stream_destroy(s->session);
	san_core_share_give(core, &s->share, own_bytes(&s->conf));
	san_core_share_fini(core, &s->share);
	san_mem_free(core->conf.mem, s, sizeof(*s));
}

int
san_core_stream_destroy(struct san_core *core, uint32_t qp)
{
	struct core_stream *s = san_core_stream_at(core, qp);
	struct san_ulp_qp_view view;

	if (s == NULL || !san_ulp_qp_view(core->ulp, qp, &view))
		return -EINVAL;
	if (view.is_bound)
		return -EBUSY;
	stream_free(s);
	return 0;
}

void
san_core_stream_fini_all(struct san_core *core)
{
	uint32_t i;

	for (i = 0; core->streams != NULL && i < core->conf.ulp.max_qps; i++) {
		if (core->streams[i] == NULL)
			continue;
		/* No connection is left: unbind all. */
		san_ulp_qp_unbind(core->ulp, core->streams[i]->qpn);
		stream_free(core->streams[i]);
	}
}

void
san_core_stream_resume_all(struct san_core *core)
{
	struct core_stream *s;
	uint32_t i;

	for (i = 0; i < core->conf.ulp.max_qps; i++) {
		s = core->streams[i];
		if (s != NULL)
			san_stream_resume(s->session, &san_core_stream_ops, s);
	}
}

/* ---- rounds ---- */

/* Return completions of ulp to the session. */
static void
core_stream_hand_over(struct san_core *core, struct san_ulp_cq *own, uint64_t now_ns)
{
	struct san_ulp_wc wc[HAND_OVER];
	struct core_stream *s;
	uint32_t i, n;

	while ((n = san_ulp_cq_poll(own, wc, HAND_OVER)) != 0) {
		s = san_core_stream_at(core, wc[0].qp);
		for (i = 0; i < n; i++)
			san_stream_on_done(s->session, &wc[i], now_ns);
		core_stream_list_work(s);
	}
}

static bool
core_stream_give_kind(struct core_stream *s, bool recv, struct san_ulp_cq *cq)
{
	struct san_ulp_wc wc;

	while (san_stream_peek(s->session, recv, &wc)) {
		wc.qp = s->qpn;
		if (cq != NULL && !san_ulp_cq_give(cq, &wc))
			return false;
		san_stream_take(s->session, recv);
		if (s->is_sock)
			san_sock_stream_done(s->core->socks, s->sock, &wc, s->core->stream_now_ns);
	}
	return true;
}

/*
 * Pass completions of the session to the application. False: one of its queues is full. The other
 * is served nevertheless, because the application may wait for that one before it polls this one.
 */
static bool
core_stream_give_wcs(struct core_stream *s)
{
	bool recvs = core_stream_give_kind(s, true, s->recv_cq);

	return core_stream_give_kind(s, false, s->send_cq) && recvs;
}

/* Arm the timer for the earliest deadline. */
static void
core_stream_arm(struct core_stream *s, bool is_full, uint64_t now_ns)
{
	struct san_wheel *wheel = &s->core->stream_wheel;
	uint64_t at_ns = san_time_min(san_stream_deadline_ns(s->session), s->linger_ns);

	if (is_full)
		at_ns = san_time_min(at_ns, now_ns + s->retry_ns);
	s->retry_ns = is_full ? RTE_MIN(2 * s->retry_ns, CQ_RETRY_MAX) : CQ_RETRY_NS;
	if (at_ns == s->armed_ns)
		return;
	s->armed_ns = at_ns;
	if (at_ns == SAN_TIME_NEVER)
		san_wheel_cancel(wheel, &s->timer);
	else
		san_wheel_arm(wheel, &s->timer, at_ns);
}

/*
 * Do all work that may have become possible, within *budget* bytes. Returns the rest of the budget.
 * *s* may be freed by this call.
 */
static uint32_t
core_stream_work_once(struct core_stream *s, uint32_t budget, uint64_t now_ns)
{
	struct san_core *core = s->core;
	bool is_full;

	/* Do this after the end of the connection, too: received bytes can still be read. */
	budget = san_stream_pump(s->session, budget, now_ns);
	if (budget == 0)
		core_stream_list_work(s);
	if (s->is_open && (san_stream_fault(s->session) != NULL || now_ns >= s->linger_ns)) {
		san_core_conn_abort(core, s->qpn, now_ns);
	} else if (s->is_open && !s->disconnects && san_stream_has_ended(s->session)) {
		s->disconnects = true;
		san_core_conn_disconnect_qp(core, s->qpn, false, now_ns);
	}
	if (s->is_over && s->share.is_orphan) {
		stream_free(s);
		return budget;
	}
	is_full = !core_stream_give_wcs(s);
	core_stream_arm(s, is_full, now_ns);
	return budget;
}

__rte_noinline void
san_core_stream_run_all(struct san_core *core, uint64_t now_ns)
{
	struct core_stream *s, *last;
	uint32_t budget = ROUND_BYTES;
	struct san_ulp_cq *own;

	core->stream_now_ns = now_ns;
	while ((own = san_ulp_cq_next_own(core->ulp)) != NULL)
		core_stream_hand_over(core, own, now_ns);
	/* Streams listed meanwhile are left to the next round, or this one might never end. */
	last = TAILQ_LAST(&core->stream_work, core_streams);
	while (last != NULL && budget > 0 && (s = TAILQ_FIRST(&core->stream_work)) != NULL) {
		core_stream_unlist_work(s);
		if (s == last)
			last = NULL;
		budget = core_stream_work_once(s, budget, now_ns);
	}
}

__rte_noinline void
san_core_stream_tick_all(struct san_core *core, uint64_t now_ns)
{
	struct core_stream *s;
	struct san_timer *t;

	while ((t = san_wheel_poll(&core->stream_wheel, now_ns)) != NULL) {
		s = container_of(t, struct core_stream, timer);
		s->armed_ns = SAN_TIME_NEVER;
		core->stream_now_ns = now_ns;
		if (san_stream_deadline_ns(s->session) <= now_ns)
			san_stream_tick(s->session, now_ns);
		core_stream_list_work(s);
	}
}

uint64_t
san_core_stream_deadline_ns(const struct san_core *core)
{
	if (!TAILQ_EMPTY(&core->stream_work) || san_ulp_cq_has_own(core->ulp))
		return 0;
	return san_wheel_deadline_ns(&core->stream_wheel);
}

/* ---- work of applications ---- */

/*
 * Work posted to a stream that has ended completes at once, as with an ended queue pair: the
 * application may not have read that event yet. A socket is notified in the next round, because it
 * is just posting.
 */
static uint32_t
core_stream_take_posted(struct core_stream *s, uint32_t taken, uint64_t now_ns)
{
	core_stream_list_work(s);
	if (unlikely(s->is_over) && !s->is_sock) {
		san_stream_pump(s->session, ROUND_BYTES, now_ns);
		core_stream_give_wcs(s);
	}
	return taken;
}

uint32_t
san_core_stream_post(struct san_core *core, struct core_stream *s, const struct san_ulp_wr *wr,
		     uint32_t n, uint64_t now_ns)
{
	core->stream_now_ns = now_ns;
	return core_stream_take_posted(s, san_stream_post_send(s->session, wr, n), now_ns);
}

uint32_t
san_core_stream_post_recv(struct san_core *core, struct core_stream *s,
			  const struct san_ulp_recv *r, uint32_t n, uint64_t now_ns)
{
	core->stream_now_ns = now_ns;
	return core_stream_take_posted(s, san_stream_recv_post(s->session, r, n), now_ns);
}

/* ---- connections ---- */

int
san_core_stream_renew(struct core_stream *s, uint64_t now_ns)
{
	struct san_stream *session;
	int rc;

	if (!s->is_over)
		return 0;
	s->core->stream_now_ns = now_ns;
	/*
	 * Work posted since the last connection ended must complete, too (RT-43). It may still have
	 * to be copied, or wait for room in a queue of the application.
	 */
	if (san_stream_pump(s->session, ROUND_BYTES, now_ns) == 0 || !core_stream_give_wcs(s))
		return -EBUSY;
	/* The application may still read its message buffers, which are freed with the session. */
	if (san_stream_recv_has_lent(s->session))
		return -EBUSY;
	rc = san_stream_create(&s->conf, &san_core_stream_ops, s, &session);
	if (rc != 0)
		return rc;
	san_stream_destroy(s->session);
	core_stream_new_session(s, session);
	return 0;
}

void
san_core_stream_opened(struct core_stream *s, uint64_t now_ns)
{
	s->core->stream_now_ns = now_ns;
	s->is_open = true;
	san_stream_on_open(s->session, s->accepted);
	core_stream_list_work(s);
}

void
san_core_stream_ended(struct core_stream *s, uint8_t status, uint64_t now_ns)
{
	struct san_core *core = s->core;

	core->stream_now_ns = now_ns;
	core_stream_hand_over(core, s->own, now_ns);
	s->is_open = false;
	s->is_over = true;
	san_stream_on_over(s->session, status, now_ns);
	core_stream_give_wcs(s);
	core_stream_list_work(s);
}

bool
san_core_stream_close(struct core_stream *s)
{
	if (!s->is_open)
		return false;
	san_stream_close(s->session);
	core_stream_list_work(s);
	return true;
}

bool
san_core_stream_orphan(struct san_core *core, uint32_t qp, uint64_t now_ns)
{
	struct core_stream *s = san_core_stream_at(core, qp);

	core->stream_now_ns = now_ns;
	if (s == NULL || !s->is_open || s->send_cq == NULL ||
	    !san_core_share_may_linger(core, &s->share) ||
	    !san_stream_orphan(s->session))
		return false;
	san_ulp_cq_drop(s->send_cq);
	san_ulp_cq_drop(s->recv_cq);
	s->send_cq = s->recv_cq = NULL;
	san_ulp_qp_disown(core->ulp, qp);
	san_core_share_orphan(core, &s->share);
	s->linger_ns = now_ns + core->conf.linger_ns;
	core_stream_list_work(s);
	return true;
}

void
san_core_stream_cut_all(struct san_core *core, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; core->use.nb_orphans != 0 && i < core->conf.ulp.max_qps; i++) {
		if (core->streams[i] == NULL || !core->streams[i]->share.is_orphan)
			continue;
		core->streams[i]->linger_ns = now_ns;
		core_stream_list_work(core->streams[i]);
	}
}

/* ---- for tests ---- */

void
san_core_stream_check_all(const struct san_core *core)
{
	const struct core_stream *s;
	uint64_t bytes = 0;
	uint32_t i, nb = 0;

	for (i = 0; i < core->conf.ulp.max_qps; i++) {
		s = core->streams[i];
		if (s == NULL)
			continue;
		nb++;
		bytes += s->share.bytes;
		SAN_VERIFY((s->send_cq == NULL) == (s->share.is_orphan || s->is_sock));
		SAN_VERIFY(s->share.is_orphan == (s->linger_ns != NEVER_ORPHANED));
		SAN_VERIFY(san_core_stream_at(core, s->qpn) == s);
		SAN_VERIFY(!(s->is_open && s->is_over));
		SAN_VERIFY(san_wheel_timer_is_armed(&s->timer) == (s->armed_ns != SAN_TIME_NEVER));
		san_stream_show_check(s->session);
	}
	SAN_VERIFY(nb == core->use.nb);
	SAN_VERIFY(bytes == core->use.bytes);
	san_core_share_check(core);
	TAILQ_FOREACH(s, &core->stream_work, work_link)
		SAN_VERIFY(s->is_listed);
	san_wheel_check(&core->stream_wheel);
}
