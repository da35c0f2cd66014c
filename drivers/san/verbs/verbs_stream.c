/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A stream is a queue pair whose work is done by its session (lib/stream). Requests of the program
 * go to the session. Requests of the session go to the device as all others do, through rings of
 * its own, and complete in a queue of its own, which wakes the provider's thread. Completions of
 * the session go to the program's queues. (lib/core does the same for packets.)
 *
 * Work is done at once, under the queue pair's lock: by the thread that posts, so that its data is
 * sent within the call, and by the provider's thread, so that nothing depends on further calls of
 * the program. (AFC-1)
 *
 * The session's memory is registered when it is allocated. The program's memory is used in place:
 * by its region if it has one, otherwise it is registered for the transfer. Memory that the peer
 * may access is registered for that one access, and only as long as it is allowed (AFC-24).
 */

#include "stream_attr.h"
#include "verbs_priv.h"

#define THRESHOLD 16384                   /* bytes whose copy costs as much as a registration */
#define ROUND     (256u << 10)            /* bytes copied before others have their turn */
#define LINGER_NS (30000 * SAN_NS_PER_MS) /* time limit of an orphaned stream */
#define HAND_OVER 32                      /* completions at a time */

/* ---- operations for the session ---- */

static int
verbs_stream_recv(void *arg, uint64_t cookie, void *buf, uint32_t len)
{
	struct verbs_qp *q = ((struct verbs_stream *)arg)->q;
	uint32_t tail = atomic_load(&q->wq->rq_tail);

	if (tail - atomic_load(&q->wq->rq_head) == q->rq_depth)
		return -EAGAIN;
	q->rqe[tail & (q->rq_depth - 1)] = (struct san_ulp_recv){
		.wr_id = cookie,
		.nb_sge = 1,
		.sge = {{.addr = buf, .length = len}},
	};
	atomic_store(&q->wq->rq_tail, tail + 1);
	return 0;
}

static int
verbs_stream_post_wr(void *arg, struct san_ulp_wr *wr)
{
	struct verbs_qp *q = ((struct verbs_stream *)arg)->q;
	uint32_t tail = atomic_load(&q->wq->sq_tail);

	if (tail - atomic_load(&q->wq->sq_head) == q->sq_depth)
		return -EAGAIN;
	q->sqe[tail & (q->sq_depth - 1)] = *wr;
	atomic_store(&q->wq->sq_tail, tail + 1);
	return 0;
}

static struct verbs_chunk *
verbs_stream_chunk_add(struct verbs_stream *s, struct verbs_chunk **list, void *mem, size_t bytes,
		       int access)
{
	struct verbs_chunk *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	*c = (struct verbs_chunk){.mem = mem, .bytes = bytes, .next = *list};
	c->mr = ibv_reg_mr(s->q->ctx->pd, mem, bytes, access);
	if (c->mr == NULL) {
		free(c);
		return NULL;
	}
	*list = c;
	return c;
}

static void
verbs_stream_chunk_end(struct verbs_chunk **at)
{
	struct verbs_chunk *c = *at;

	*at = c->next;
	ibv_dereg_mr(c->mr);
	free(c);
}

static int
verbs_stream_reg(void *arg, const struct rtsan_sge *part, enum san_stream_right right,
		 uint64_t *addr, uint32_t *key)
{
	static const int access[] = {
		[SAN_STREAM_PUSH] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		[SAN_STREAM_PULL] = IBV_ACCESS_REMOTE_READ,
	};
	struct verbs_stream *s = arg;
	const struct verbs_chunk *c;

	*key = 0;
	*addr = (uintptr_t)part->addr;
	if (right == SAN_STREAM_LOCAL) /* verbs_qp.c registers it, as for other requests */
		return 0;
	c = verbs_stream_chunk_add(s, &s->shared, part->addr, part->length, access[right]);
	if (c == NULL)
		return -ENOMEM;
	*key = c->mr->rkey;
	return 0;
}

static void
verbs_stream_dereg(void *arg, uint32_t key)
{
	struct verbs_chunk **at = &((struct verbs_stream *)arg)->shared;

	while (*at != NULL && (*at)->mr->rkey != key)
		at = &(*at)->next;
	if (*at != NULL)
		verbs_stream_chunk_end(at);
}

static void *
verbs_stream_alloc(void *arg, size_t bytes)
{
	struct verbs_stream *s = arg;
	void *mem = san_mem_aligned(NULL, bytes);

	if (mem == NULL)
		return NULL;
	if (verbs_stream_chunk_add(s, &s->chunks, mem, bytes, IBV_ACCESS_LOCAL_WRITE) != NULL)
		return mem;
	free(mem);
	return NULL;
}

static void
verbs_stream_free(void *arg, void *mem, size_t bytes)
{
	struct verbs_chunk **at = &((struct verbs_stream *)arg)->chunks;

	while (*at != NULL && (*at)->mem != mem)
		at = &(*at)->next;
	if (*at == NULL)
		return;
	verbs_stream_chunk_end(at);
	free(mem);
}

static const struct san_stream_ops stream_ops = {
	.caps = {.threshold = THRESHOLD, .can_read = true, .ordered = true},
	.recv = verbs_stream_recv,
	.post = verbs_stream_post_wr,
	.reg = verbs_stream_reg,
	.dereg = verbs_stream_dereg,
	.alloc = verbs_stream_alloc,
	.free = verbs_stream_free,
};

struct ibv_mr *
san_verbs_stream_find(const struct verbs_stream *s, const void *addr)
{
	const struct verbs_chunk *c;

	for (c = s->chunks; c != NULL; c = c->next)
		if ((uintptr_t)addr - (uintptr_t)c->mem < c->bytes)
			return c->mr;
	return NULL;
}

/* ---- create, destroy ---- */

int
san_verbs_stream_create(struct verbs_qp *q, struct rtsan_provider_qp *conf)
{
	uint32_t sq_depth = conf->req->qp.sq_depth, rq_depth = conf->req->qp.rq_depth;
	struct verbs_stream *s = calloc(1, sizeof(*s));
	struct san_wq *wq;
	uint32_t depth;
	int rc;

	if (s == NULL)
		return -ENOMEM;
	s->q = q;
	s->linger_ns = SAN_TIME_NEVER;
	s->lingers = conf->req->qp.stream.linger;
	rc = san_stream_attr_conf(q->ctx->host, &conf->req->qp, &s->conf);
	if (rc == 0) { /* the queue pair's rings become those of the session */
		san_stream_depths(&s->conf, &q->sq_depth, &q->rq_depth);
		depth = q->sq_depth + q->rq_depth + VERBS_MARKS;
		rc = san_verbs_cq_make(q->ctx, depth, q, &s->own);
		q->send_cq = q->recv_cq = s->own;
	}
	if (rc == 0)
		rc = san_verbs_qp_make_queues(q);
	wq = rc == 0 ? san_mem_aligned(NULL, san_wr_wq_bytes(sq_depth, rq_depth)) : NULL;
	if (rc == 0 && wq == NULL)
		rc = -ENOMEM;
	if (rc == 0)
		rc = san_stream_create(&s->conf, &stream_ops, s, &s->session);
	if (rc != 0) {
		free(wq);
		san_verbs_qp_end_queues(q);
		if (s->own != NULL)
			san_verbs_cq_destroy(q->ctx, s->own);
		free(s);
		return rc;
	}
	san_wr_wq_cons_init(&s->wq, wq, sq_depth, rq_depth);
	s->send_cq = conf->send_cq;
	s->recv_cq = conf->recv_cq;
	q->stream = s;
	conf->wq = wq;
	return 0;
}

static void
leave_program(struct verbs_stream *s)
{
	if (s->send_cq == NULL)
		return;
	san_verbs_cq_leave(s->send_cq, 0);
	san_verbs_cq_leave(s->recv_cq, 0);
	s->send_cq = s->recv_cq = NULL;
	free(s->wq.wq);
	s->wq.wq = NULL;
}

/* The device's queue pair is destroyed already, so nothing accesses the session's memory. */
void
san_verbs_stream_destroy(struct verbs_qp *q)
{
	struct verbs_stream *s = q->stream;

	leave_program(s);
	san_stream_destroy(s->session);
	san_verbs_cq_destroy(q->ctx, s->own);
	q->stream = NULL;
	free(s);
}

int
san_verbs_stream_renew(struct verbs_qp *q)
{
	struct verbs_stream *s = q->stream;
	struct san_stream *session;
	int rc;

	if (!s->is_over)
		return 0;
	/* completions of the last connection may wait for room in the program's queues */
	san_verbs_stream_work(q, san_verbs_now_ns());
	if (s->is_blocked)
		return -EBUSY;
	rc = san_stream_create(&s->conf, &stream_ops, s, &session);
	if (rc != 0)
		return rc;
	san_stream_destroy(s->session);
	s->session = session;
	s->is_open = s->is_over = false;
	return 0;
}

/* ---- work ---- */

/* Pass posted requests to the session, as far as it takes them. */
static void
take_posted(struct verbs_stream *s, bool recvs)
{
	struct san_spsc_cons *c = recvs ? &s->wq.rq : &s->wq.sq;
	_Atomic uint32_t *tail = recvs ? &s->wq.wq->rq_tail : &s->wq.wq->sq_tail;
	_Atomic uint32_t *head = recvs ? &s->wq.wq->rq_head : &s->wq.wq->sq_head;
	uint32_t n, at, taken;

	while ((n = san_spsc_count_now(c, tail)) != 0) {
		at = c->head & c->mask;
		if (n > c->mask + 1 - at)
			n = c->mask + 1 - at;
		taken = recvs ? san_stream_recv_post(s->session, &s->wq.rqe[at], n) :
				san_stream_post_send(s->session, &s->wq.wq->sqe[at], n);
		san_spsc_pop(c, head, taken);
		if (taken < n)
			return;
	}
}

/* Pass completions of the device to the session. */
static void
verbs_stream_hand_over(struct verbs_stream *s, uint64_t now_ns)
{
	struct san_ulp_wc wc[HAND_OVER];
	int i, n;

	/* a peer's first messages may come before the event that it is connected */
	if (s->q->state == VERBS_CONNECTING)
		return;
	while ((n = san_verbs_cq_poll(s->own, wc, HAND_OVER)) != 0)
		for (i = 0; i < n; i++)
			san_stream_on_done(s->session, &wc[i], now_ns);
}

static bool
verbs_stream_give_kind(struct verbs_stream *s, bool recv, struct verbs_cq *cq)
{
	struct san_ulp_wc wc;

	while (san_stream_peek(s->session, recv, &wc)) {
		wc.qp = atomic_load(&s->q->qpn);
		if (cq != NULL && !san_verbs_cq_give(cq, &wc))
			return false;
		san_stream_take(s->session, recv);
	}
	return true;
}

/*
 * Pass completions of the session to the program. If one queue is full, those for the other one are
 * not held back.
 */
static void
verbs_stream_give_wcs(struct verbs_stream *s)
{
	bool recvs = verbs_stream_give_kind(s, true, s->recv_cq);

	s->is_blocked = !verbs_stream_give_kind(s, false, s->send_cq) || !recvs;
}

uint64_t
san_verbs_stream_work(struct verbs_qp *q, uint64_t now_ns)
{
	struct verbs_stream *s = q->stream;
	uint32_t left;
	bool is_up;

	if (s->wq.wq != NULL) {
		take_posted(s, false);
		take_posted(s, true);
	}
	verbs_stream_hand_over(s, now_ns);
	if (!s->is_armed) {
		s->is_armed = ibv_req_notify_cq(s->own->cq, 0) == 0;
		verbs_stream_hand_over(s, now_ns); /* those that came before it was armed */
	}
	if (san_stream_deadline_ns(s->session) <= now_ns)
		san_stream_tick(s->session, now_ns);
	left = san_stream_pump(s->session, ROUND, now_ns);
	san_verbs_qp_post(q);
	is_up = s->is_open && q->state == VERBS_UP;
	if (is_up && (san_stream_fault(s->session) != NULL || now_ns >= s->linger_ns)) {
		san_verbs_end_begin(q, RTSAN_EV_DISCONNECTED, RTSAN_R_NONE, NULL);
	} else if (is_up && san_stream_has_ended(s->session)) {
		q->state = VERBS_DRAINING;
		san_verbs_thread_look(q);
	}
	verbs_stream_give_wcs(s);
	if (left == 0)
		return now_ns;
	return san_time_min(san_stream_deadline_ns(s->session), s->linger_ns);
}

/* ---- the connection ---- */

void
san_verbs_stream_opened(struct verbs_qp *q)
{
	struct verbs_stream *s = q->stream;

	s->is_open = true;
	san_stream_on_open(s->session, q->is_acceptor);
}

void
san_verbs_stream_over(struct verbs_qp *q, uint8_t status)
{
	struct verbs_stream *s = q->stream;
	uint64_t now_ns = san_verbs_now_ns();

	verbs_stream_hand_over(s, now_ns);
	s->is_open = false;
	s->is_over = true;
	san_stream_on_over(s->session, status, now_ns);
	verbs_stream_give_wcs(s);
}

bool
san_verbs_stream_orphan(struct verbs_qp *q)
{
	struct verbs_stream *s = q->stream;

	if (!s->lingers || !s->is_open || !san_stream_orphan(s->session))
		return false;
	leave_program(s);
	s->linger_ns = san_verbs_now_ns() + LINGER_NS;
	san_verbs_thread_look(q);
	return true;
}

bool
san_verbs_stream_names(const struct verbs_stream *s, uint32_t key)
{
	return san_stream_show_names_key(s->session, key) ||
		(s->wq.wq != NULL &&
		 san_verbs_mr_named_by(s->wq.wq, s->wq.sq.mask + 1, s->wq.rq.mask + 1, key) !=
			 VERBS_NAMED_NOT);
}
