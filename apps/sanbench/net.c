/* SPDX-License-Identifier: BSD-3-Clause */

#include <poll.h>

#include "bench.h"

#define POLL_BURST   64
#define WAIT_FDS_MAX 257 /* events, and the completion queues of one application */
#define EVENT_EVERY  64  /* polls: events are rare, and polling for them takes a lock */
#define CTL_STRIDE   (sizeof(struct ctl_msg) + CTL_PAYLOAD)

struct bench_cq {
	LIST_ENTRY(bench_cq) link;
	struct rtsan_cq *cq;
	uint32_t depth, used; /**< completions that its queue pairs may have together */
	uint32_t nb_qps;
};

/* ---- queue pairs and completion queues ---- */

/* Once there is one queue per lcore: the queue with room that has the fewest queue pairs. */
static struct bench_cq *
cq_find(const struct bench *b, uint32_t entries)
{
	struct bench_cq *cq, *best = NULL;
	uint32_t n = 0;

	LIST_FOREACH(cq, &b->cqs, link) {
		n++;
		if (cq->depth - cq->used >= entries && (best == NULL || cq->nb_qps < best->nb_qps))
			best = cq;
	}
	return n >= b->caps.nb_lcores ? best : NULL;
}

static struct bench_cq *
cq_get(struct bench *b, uint32_t entries)
{
	struct bench_cq *cq = cq_find(b, entries);

	if (cq != NULL)
		return cq;
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return NULL;
	cq->depth = RTE_MIN(RTE_MAX(entries, 4096u), 2 * b->caps.max_wr);
	if (cq->depth < entries || rtsan_cq_create(b->ctx, cq->depth, &cq->cq) < 0) {
		free(cq);
		return NULL;
	}
	LIST_INSERT_HEAD(&b->cqs, cq, link);
	return cq;
}

static void
cq_put(struct bench_cq *cq, uint32_t entries)
{
	cq->used -= entries;
	cq->nb_qps--;
	if (cq->nb_qps > 0) /* queue pairs without own work use no entries */
		return;
	LIST_REMOVE(cq, link);
	rtsan_cq_destroy(cq->cq);
	free(cq);
}

int
san_net_qp_open(struct bench_qp *q, uint32_t sq_depth, uint32_t rq_depth, uint32_t under_way)
{
	struct bench *b = q->b;
	struct rtsan_qp_attr attr = {
		.sq_depth = sq_depth, .rq_depth = rq_depth, .context = q, .stream = q->stream};
	int ret;

	/* the stack may round depths up to powers of two */
	q->cq_entries = 2 * under_way;
	q->cq = cq_get(b, q->cq_entries);
	if (q->cq == NULL)
		return -ENOMEM;
	q->cq->used += q->cq_entries;
	q->cq->nb_qps++;
	attr.send_cq = q->cq->cq;
	attr.recv_cq = q->cq->cq;
	ret = rtsan_qp_create(b->ctx, &attr, &q->qp);
	if (ret < 0) {
		cq_put(q->cq, q->cq_entries);
		q->cq = NULL;
	}
	return ret;
}

void
san_net_qp_close(struct bench_qp *q)
{
	if (q->cq != NULL) {
		rtsan_qp_destroy(q->qp);
		cq_put(q->cq, q->cq_entries);
	}
	if (q->mr != NULL)
		rtsan_mr_dereg(q->mr);
	free(q->stamp);
	free(q->work);
	q->qp = NULL;
	q->cq = NULL;
	q->mr = NULL;
	q->stamp = q->work = NULL;
	q->is_up = false;
}

int
san_net_alloc(struct bench_qp *q, uint64_t bytes, size_t work)
{
	int ret = bytes != 0 ? rtsan_mr_alloc(q->b->ctx, bytes, 0, &q->mr) : 0;

	if (ret < 0)
		return ret;
	if (bytes != 0)
		q->mem = rtsan_mr_addr(q->mr);
	q->stamp = calloc(q->hello.slots, sizeof(*q->stamp));
	q->work = calloc(1, work);
	return q->stamp == NULL || (q->work == NULL && work != 0) ? -ENOMEM : 0;
}

int
san_net_post_recv(struct bench_qp *q, uint64_t wr_id, void *addr, uint32_t len)
{
	struct rtsan_sge sge = {
		.addr = addr, .length = len, .lkey = len != 0 ? rtsan_mr_lkey(q->mr) : 0};
	struct rtsan_recv_wr wr = {.wr_id = wr_id, .sge = &sge, .nb_sge = len != 0};
	int ret = rtsan_post_recv(q->qp, &wr, 1);

	return ret == 1 ? 0 : ret < 0 ? ret :
					-ENOBUFS;
}

/* ---- polling ---- */

static uint32_t
poll_events(struct bench *b)
{
	struct rtsan_event ev;
	struct bench_qp *q;
	uint32_t nb = 0;
	int n;

	if (b->event_wait > 0 && !LIST_EMPTY(&b->cqs)) {
		b->event_wait--;
		return 0;
	}
	for (; (n = rtsan_event_poll(b->ctx, &ev)) == 1; nb++) {
		if (ev.type == RTSAN_EV_CONNECT_REQUEST) {
			san_server_accept_request(b, &ev);
			continue;
		}
		q = rtsan_qp_context(ev.qp);
		q->is_up = ev.type == RTSAN_EV_ESTABLISHED;
		q->is_over |= !q->is_up;
		q->on_event(q, &ev);
	}
	if (n < 0 && bench_nb_stops == 0) {
		san_bench_fail(b, "the port has failed: %s", rtsan_error());
		bench_nb_stops = 2;
	}
	b->event_wait = nb > 0 ? 0 : EVENT_EVERY;
	return nb;
}

uint32_t
san_net_poll(struct bench *b)
{
	struct rtsan_wc wc[POLL_BURST];
	struct bench_cq *cq;
	struct bench_qp *q;
	uint32_t nb = 0;
	int n, i;

	/* completions first: they name the reason for the end of a connection more precisely */
	LIST_FOREACH(cq, &b->cqs, link) {
		n = rtsan_cq_poll(cq->cq, wc, POLL_BURST);
		if (n > 0)
			b->now = rte_rdtsc();
		for (i = 0; i < n; i++) {
			q = rtsan_qp_context(wc[i].qp);
			q->on_wc(q, &wc[i]);
		}
		nb += n > 0 ? (uint32_t)n : 0;
	}
	return nb + poll_events(b);
}

void
san_net_wait(struct bench *b, int timeout_ms)
{
	struct pollfd fds[WAIT_FDS_MAX];
	struct bench_cq *cq;
	nfds_t nb = 1;

	b->event_wait = 0; /* the next poll includes events */
	/* if it can't be armed there is an event, or an error that the next poll reports */
	if (rtsan_event_arm(b->ctx) != 0)
		return;
	fds[0] = (struct pollfd){.fd = rtsan_event_fd(b->ctx), .events = POLLIN};
	LIST_FOREACH(cq, &b->cqs, link) {
		if (nb == WAIT_FDS_MAX || rtsan_cq_arm(cq->cq) != 0)
			return;
		fds[nb++] = (struct pollfd){.fd = rtsan_cq_fd(cq->cq), .events = POLLIN};
	}
	poll(fds, nb, timeout_ms);
}

int
san_net_connect(struct bench_qp *q, const struct bench_conf *conf)
{
	struct rtsan_conn_param param = conf->conn;
	int ret;

	param.private_data = &q->hello;
	param.private_len = sizeof(q->hello);
	if (q->hello.kind == HELLO_CTL)
		param.order = RTSAN_ORDERED;
	ret = rtsan_connect(q->qp, conf->peer, conf->service, &param);
	if (ret == 0)
		q->is_over = false;
	return ret;
}

int
san_net_accept(struct bench_qp *q, uint64_t request, const struct welcome *w)
{
	struct rtsan_conn_param param = q->b->conf.conn;

	param.private_data = w;
	param.private_len = sizeof(*w);
	return rtsan_accept(q->b->ctx, request, q->qp, &param);
}

/* ---- control messages ---- */

static void
on_wc(struct bench_qp *q, const struct rtsan_wc *wc)
{
	struct ctl *c = (struct ctl *)q;
	uint8_t *at = q->mem + wc->wr_id * CTL_STRIDE;
	struct ctl_msg msg;

	if (wc->opcode != RTSAN_WC_RECV)
		c->nb_tx--;
	if (wc->status != RTSAN_WC_SUCCESS || wc->opcode != RTSAN_WC_RECV)
		return;
	if (wc->byte_len >= sizeof(msg)) {
		memcpy(&msg, at, sizeof(msg));
		if (msg.len == wc->byte_len - sizeof(msg))
			c->on_msg(c->owner, &msg, at + sizeof(msg));
	}
	if (c->q.is_up)
		san_net_post_recv(q, wc->wr_id, at, CTL_STRIDE);
}

int
san_net_ctl_open(struct bench *b, struct ctl *c)
{
	uint32_t i;
	int ret = rtsan_mr_alloc(b->ctx, (CTL_RX + CTL_TX) * CTL_STRIDE, 0, &c->q.mr);

	if (ret < 0)
		return ret;
	c->q.mem = rtsan_mr_addr(c->q.mr);
	c->nb_tx = 0;
	c->q.b = b;
	c->q.on_wc = on_wc;
	ret = san_net_qp_open(&c->q, CTL_TX, CTL_RX, CTL_TX + CTL_RX);
	for (i = 0; i < CTL_RX && ret == 0; i++)
		ret = san_net_post_recv(&c->q, i, c->q.mem + i * CTL_STRIDE, CTL_STRIDE);
	if (ret < 0)
		san_net_qp_close(&c->q);
	return ret;
}

int
san_net_ctl_send(struct ctl *c, const struct ctl_msg *msg, const void *payload)
{
	struct rtsan_sge sge = {
		.addr = c->q.mem + (CTL_RX + c->next_tx) * CTL_STRIDE,
		.length = (uint32_t)sizeof(*msg) + msg->len,
	};
	struct rtsan_send_wr wr = {
		.opcode = RTSAN_WR_SEND, .flags = RTSAN_WR_SIGNALED, .nb_sge = 1, .sge = &sge};
	int ret;

	if (!c->q.is_up)
		return -ENOTCONN;
	if (c->nb_tx == CTL_TX)
		return -EAGAIN;
	sge.lkey = rtsan_mr_lkey(c->q.mr);
	memcpy(sge.addr, msg, sizeof(*msg));
	if (msg->len > 0)
		memcpy((uint8_t *)sge.addr + sizeof(*msg), payload, msg->len);
	ret = rtsan_post_send(c->q.qp, &wr, 1);
	if (ret != 1)
		return ret < 0 ? ret : -EAGAIN;
	c->next_tx = (c->next_tx + 1) % CTL_TX;
	c->nb_tx++;
	return 0;
}
