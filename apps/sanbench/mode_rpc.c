/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Requests and answers, both as sends; with --both either end sends requests. An answer is the
 * request with a mark.
 *
 * All messages are inline and unsignaled: an answer proves that the request has arrived, and the
 * number of open requests is limited to the peer's receives.
 */

#include "bench.h"

#define RPC_SIZE_MIN  8 /* a message has at least its number */
#define RPC_DEPTH_MAX 1024

#define ANSWER    1ull       /* lowest bit of the first word; the number is above */
#define SQ_FACTOR 4          /* requests, answers, and as many that are not acknowledged */
#define ASKED     UINT64_MAX /* wr_id of work requests that are no receives */

struct rpc {
	uint32_t nb_wrs, nb_recvs; /* to be posted */
	uint64_t begin;            /* server: time of the first own request, ticks */
	struct rtsan_sge *sge;     /* of receives and their answers, then of requests by slot */
	struct rtsan_send_wr *wrs; /* answers, then requests */
	struct rtsan_recv_wr *recvs;
};

static const char *
rpc_check(const struct hello *h)
{
	if (h->size_min != h->size_max || h->size_max < RPC_SIZE_MIN ||
	    h->size_max > RTSAN_INLINE_MAX)
		return "--size: requests have one size of 8 to 64 bytes";
	return h->depth > RPC_DEPTH_MAX ? "--depth: at most 1024 requests" : NULL;
}

static uint32_t
rpc_nb_rx(const struct bench_qp *q)
{
	return 2u * q->hello.depth;
}

/* ---- posting ---- */

static void
want_recv(struct rpc *r, uint32_t i)
{
	r->recvs[r->nb_recvs++] =
		(struct rtsan_recv_wr){.wr_id = i, .sge = &r->sge[i], .nb_sge = 1};
}

/* Post answers before receives: answers are copied inline from buffers that the receives reuse. */
static int
rpc_post(struct bench_qp *q, struct rpc *r)
{
	int n;

	if (r->nb_wrs > 0) {
		n = rtsan_post_send(q->qp, r->wrs, (int)r->nb_wrs);
		if (n < 0)
			return n;
		r->nb_wrs -= (uint32_t)n;
		memmove(r->wrs, r->wrs + n, r->nb_wrs * sizeof(*r->wrs));
	}
	if (r->nb_wrs > 0 || r->nb_recvs == 0)
		return 0; /* the queue is full: post the rest later */
	n = rtsan_post_recv(q->qp, r->recvs, (int)r->nb_recvs);
	if (n < 0)
		return n;
	r->nb_recvs -= (uint32_t)n;
	memmove(r->recvs, r->recvs + n, r->nb_recvs * sizeof(*r->recvs));
	return 0;
}

/* ---- traffic ---- */

/* Check the content of a request of the server, or of the client, or of its answer. */
static bool
is_right(const struct bench_qp *q, bool of_server, uint64_t i, const uint8_t *buf)
{
	return san_content_check(&q->hello, of_server, i, sizeof(i), buf + sizeof(i),
				 q->hello.size_max - sizeof(i)) < 0;
}

/* Write the first word of the message in buffer *at*, and let rpc_post() send it. */
static void
want_send(struct bench_qp *q, uint32_t at, uint64_t word)
{
	struct rpc *r = q->work;

	memcpy(r->sge[at].addr, &word, sizeof(word));
	r->wrs[r->nb_wrs++] = (struct rtsan_send_wr){
		.wr_id = ASKED,
		.opcode = RTSAN_WR_SEND,
		.flags = RTSAN_WR_INLINE,
		.nb_sge = 1,
		.sge = &r->sge[at],
	};
}

static void
rpc_take_answer(struct bench_qp *q, const uint8_t *buf, uint64_t i)
{
	uint64_t *stamp = &q->stamp[san_net_slot(&q->hello, i)];

	/* the slot has the last request with this number or a multiple of *slots* later */
	if (i >= q->did.msgs || q->did.msgs - i > q->hello.slots || *stamp == 0) {
		q->did.error = "an answer to what was not asked, or a second one";
		return;
	}
	if (!is_right(q, q->is_server, i, buf))
		q->did.error = "an answer has wrong bytes";
	if (q->lat != NULL)
		san_hist_add(q->lat, san_bench_ns(q->b, q->b->now - *stamp));
	*stamp = 0;
	q->did.done++;
}

static void
rpc_on_wc(struct bench_qp *q, const struct rtsan_wc *wc)
{
	const uint8_t *buf = q->mem + wc->wr_id * san_net_stride(&q->hello);
	uint64_t word;

	if (wc->status != RTSAN_WC_SUCCESS || wc->opcode != RTSAN_WC_RECV) {
		if (wc->status != RTSAN_WC_FLUSHED)
			q->did.error = rtsan_status_text(wc->status);
		return;
	}
	if (wc->byte_len != q->hello.size_max) {
		q->did.error = "a message has another length";
		return;
	}
	memcpy(&word, buf, sizeof(word));
	if ((word & ANSWER) != 0) {
		rpc_take_answer(q, buf, word >> 1);
	} else {
		if (!is_right(q, !q->is_server, word >> 1, buf))
			q->did.error = "a request has wrong bytes";
		want_send(q, (uint32_t)wc->wr_id, word | ANSWER);
		q->did.received++;
	}
	want_recv(q->work, (uint32_t)wc->wr_id);
}

/* Make requests as far as there is room, in whole batches. */
static void
rpc_ask_more(struct bench_qp *q, struct rpc *r, uint64_t max)
{
	uint64_t n = q->hello.depth - (q->did.msgs - q->did.done), i;
	uint32_t slot, at, batch = q->hello.batch;
	uint8_t *buf;

	n = n < max ? n : max;
	if (batch > 0 && n < max)
		n = n / batch * batch;
	for (i = 0; i < n; i++) {
		slot = san_net_slot(&q->hello, q->did.msgs);
		if (q->stamp[slot] != 0)
			break; /* unordered: an older request in the slot has no answer yet */
		q->stamp[slot] = q->b->now;
		at = rpc_nb_rx(q) + slot;
		buf = r->sge[at].addr;
		san_net_fill(&q->hello, q->is_server, q->did.msgs, sizeof(uint64_t),
			     buf + sizeof(uint64_t), q->hello.size_max - sizeof(uint64_t));
		want_send(q, at, q->did.msgs << 1);
		q->did.msgs++;
		q->did.bytes += q->hello.size_max;
	}
}

static bool
rpc_step(struct bench_qp *q, uint64_t max)
{
	struct rpc *r = q->work;
	uint64_t before = q->did.msgs + q->did.received;
	int ret;

	if (!q->is_up)
		return false;
	/* the server sends requests after it has received the first one */
	if (q->is_server && ((q->hello.flags & HELLO_BOTH) == 0 || q->did.received == 0))
		max = 0;
	if (max > 0 && q->did.msgs - q->did.done < q->hello.depth) {
		q->b->now = rte_rdtsc();
		if (r->begin == 0)
			r->begin = q->b->now;
		rpc_ask_more(q, r, max);
	}
	ret = rpc_post(q, r);
	if (ret < 0 && ret != -ENOTCONN && q->did.error == NULL)
		q->did.error = rtsan_error();
	return q->did.msgs + q->did.received != before;
}

static int
rpc_open(struct bench_qp *q)
{
	uint32_t nb_rx = rpc_nb_rx(q), nb_tx = nb_rx + q->hello.depth;
	uint32_t nb = nb_rx + q->hello.slots, i;
	struct rpc *r;
	int ret = san_net_alloc(q, (uint64_t)nb * san_net_stride(&q->hello),
				sizeof(*r) + nb * sizeof(*r->sge) + nb_tx * sizeof(*r->wrs) +
					nb_rx * sizeof(*r->recvs));

	q->on_wc = rpc_on_wc;
	if (ret == 0)
		ret = san_net_qp_open(q, SQ_FACTOR * q->hello.depth, nb_rx, nb_rx);
	if (ret < 0)
		return ret;
	r = q->work;
	r->sge = (struct rtsan_sge *)(r + 1);
	r->wrs = (struct rtsan_send_wr *)(r->sge + nb);
	r->recvs = (struct rtsan_recv_wr *)(r->wrs + nb_tx);
	for (i = 0; i < nb; i++)
		r->sge[i] = (struct rtsan_sge){
			.addr = q->mem + (size_t)i * san_net_stride(&q->hello),
			.length = q->hello.size_max,
			.lkey = rtsan_mr_lkey(q->mr),
		};
	for (i = 0; i < nb_rx; i++)
		want_recv(r, i);
	return rpc_post(q, r);
}

static bool
rpc_is_over(const struct bench_qp *q)
{
	return q->did.done == q->did.msgs;
}

static void
rpc_end(struct peer *p)
{
	const struct bench_did *did = &p->q.did;
	const struct rpc *r = p->q.work;
	uint64_t ns = san_bench_ns(p->q.b, rte_rdtsc() - r->begin);

	if (did->received != p->end_msgs)
		san_server_peer_error(p, "%" PRIu64 " requests of %" PRIu64, did->received,
				      p->end_msgs);
	if (did->done != did->msgs)
		san_server_peer_error(p, "%" PRIu64 " requests of ours were not answered",
				      did->msgs - did->done);
	p->report->calls += did->done;
	if (r->begin != 0 && ns > p->report->calls_ns)
		p->report->calls_ns = ns;
}

const struct bench_mode mode_rpc = {
	.name = "rpc",
	.help = "requests that the server answers, with sends",
	.defaults = {.size = 32, .depth = 64, .conns = 1},
	.check = rpc_check,
	.open = rpc_open,
	.step = rpc_step,
	.is_over = rpc_is_over,
	.end = rpc_end,
};
