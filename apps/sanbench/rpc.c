/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "rpc.h"

#define ANSWER    1ull       /* lowest bit of the first word; the number is above */
#define SQ_FACTOR 4          /* requests, answers, and as many that are not acknowledged */
#define ASKED     UINT64_MAX /* wr_id of work requests that are no receives */

struct rpc {
	struct bench *b;
	struct bench_qp *q;
	struct rpc_state state;
	uint32_t size, depth, batch, slots;
	uint32_t nb_wrs, nb_recvs; /* to be posted */
	bool verify;
	uint64_t seed;
	uint16_t index;
	bool is_server;
	struct hist *lat;
	struct rtsan_mr *mr;
	uint8_t *rx, *tx;         /* 2 * depth receives, and *slots* requests */
	uint64_t *stamp;          /* per slot: time of posting; 0: free */
	struct rtsan_sge *rx_sge; /* of each receive, and of its answer */
	struct rtsan_sge *tx_sge;
	struct rtsan_send_wr *wrs; /* answers, then requests */
	struct rtsan_recv_wr *recvs;
};

static uint32_t
rpc_slot_stride(const struct rpc *r)
{
	return san_net_stride(r->size);
}

/* ---- set-up ---- */

static int
rpc_alloc(struct rpc *r)
{
	uint32_t nb_rx = 2 * r->depth, i;
	struct rtsan_sge sge;
	uint64_t bytes = (uint64_t)rpc_slot_stride(r) * (nb_rx + r->slots);
	int ret = rtsan_mr_alloc(r->b->ctx, bytes, 0, &r->mr);

	if (ret < 0)
		return ret;
	r->rx = rtsan_mr_addr(r->mr);
	r->tx = r->rx + (size_t)rpc_slot_stride(r) * nb_rx;
	r->stamp = calloc(r->slots, sizeof(*r->stamp));
	r->rx_sge = calloc(nb_rx, sizeof(*r->rx_sge));
	r->tx_sge = calloc(r->slots, sizeof(*r->tx_sge));
	r->wrs = calloc(nb_rx + r->depth, sizeof(*r->wrs));
	r->recvs = calloc(nb_rx, sizeof(*r->recvs));
	if (r->stamp == NULL || r->rx_sge == NULL || r->tx_sge == NULL || r->wrs == NULL ||
	    r->recvs == NULL)
		return -ENOMEM;
	sge = (struct rtsan_sge){.length = r->size, .lkey = rtsan_mr_lkey(r->mr)};
	for (i = 0; i < nb_rx; i++) {
		sge.addr = r->rx + (size_t)i * rpc_slot_stride(r);
		r->rx_sge[i] = sge;
	}
	for (i = 0; i < r->slots; i++) {
		sge.addr = r->tx + (size_t)i * rpc_slot_stride(r);
		r->tx_sge[i] = sge;
	}
	return 0;
}

static void
want_recv(struct rpc *r, uint32_t i)
{
	r->recvs[r->nb_recvs++] =
		(struct rtsan_recv_wr){.wr_id = i, .sge = &r->rx_sge[i], .nb_sge = 1};
}

/* Post answers before receives: answers are copied inline from buffers that the receives reuse. */
static int
rpc_post(struct rpc *r)
{
	int n;

	if (r->nb_wrs > 0) {
		n = rtsan_post_send(r->q->qp, r->wrs, (int)r->nb_wrs);
		if (n < 0)
			return n;
		r->nb_wrs -= (uint32_t)n;
		memmove(r->wrs, r->wrs + n, r->nb_wrs * sizeof(*r->wrs));
	}
	if (r->nb_wrs > 0 || r->nb_recvs == 0)
		return 0; /* the queue is full: post the rest later */
	n = rtsan_post_recv(r->q->qp, r->recvs, (int)r->nb_recvs);
	if (n < 0)
		return n;
	r->nb_recvs -= (uint32_t)n;
	memmove(r->recvs, r->recvs + n, r->nb_recvs * sizeof(*r->recvs));
	return 0;
}

int
san_rpc_open(struct bench *b, struct bench_qp *q, const struct hello *hello, bool is_server,
	     uint32_t batch, struct hist *lat, struct rpc **out)
{
	struct rpc *r = calloc(1, sizeof(*r));
	uint32_t i;
	int ret;

	if (r == NULL)
		return -ENOMEM;
	*out = r;
	r->b = b;
	r->q = q;
	r->size = hello->size_max;
	r->depth = hello->depth;
	r->slots = hello->slots;
	r->batch = batch;
	r->verify = (hello->flags & HELLO_VERIFY) != 0;
	r->seed = hello->seed;
	r->index = hello->index;
	r->is_server = is_server;
	r->lat = lat;
	ret = rpc_alloc(r);
	if (ret == 0)
		ret = san_net_qp_open(b, q, SQ_FACTOR * r->depth, 2 * r->depth, 2 * r->depth);
	for (i = 0; i < 2 * r->depth && ret == 0; i++)
		want_recv(r, i);
	return ret < 0 ? ret : rpc_post(r);
}

void
san_rpc_close(struct rpc *r)
{
	if (r == NULL)
		return;
	if (r->mr != NULL)
		rtsan_mr_dereg(r->mr);
	free(r->stamp);
	free(r->rx_sge);
	free(r->tx_sge);
	free(r->wrs);
	free(r->recvs);
	free(r);
}

/* ---- traffic ---- */

/* The content of a request of the server, or of the client, and of its answer. */
static uint64_t
rpc_base(const struct rpc *r, bool of_server, uint64_t i)
{
	return san_content_base(r->seed + of_server, r->index, i);
}

/* Check the content of a message after its first word. */
static bool
is_right(const struct rpc *r, bool of_server, uint64_t i, const uint8_t *buf)
{
	return !r->verify ||
		san_content_check(rpc_base(r, of_server, i), sizeof(i), buf + sizeof(i),
				  r->size - sizeof(i)) < 0;
}

static void
rpc_answer(struct rpc *r, uint32_t at, uint8_t *buf, uint64_t word)
{
	if (!is_right(r, !r->is_server, word >> 1, buf))
		r->state.error = "a request has wrong bytes";
	word |= ANSWER;
	memcpy(buf, &word, sizeof(word));
	r->wrs[r->nb_wrs++] = (struct rtsan_send_wr){
		.wr_id = ASKED,
		.opcode = RTSAN_WR_SEND,
		.flags = RTSAN_WR_INLINE,
		.nb_sge = 1,
		.sge = &r->rx_sge[at],
	};
	r->state.served++;
}

static void
rpc_take_answer(struct rpc *r, const uint8_t *buf, uint64_t i)
{
	uint64_t *stamp = &r->stamp[i & (r->slots - 1)];

	/* the slot has the last request with this number or a multiple of *slots* later */
	if (i >= r->state.asked || r->state.asked - i > r->slots || *stamp == 0) {
		r->state.error = "an answer to what was not asked, or a second one";
		return;
	}
	if (!is_right(r, r->is_server, i, buf))
		r->state.error = "an answer has wrong bytes";
	san_hist_add(r->lat, san_bench_ns(r->b, r->b->now - *stamp));
	*stamp = 0;
	r->state.answered++;
}

void
san_rpc_on_wc(struct rpc *r, const struct rtsan_wc *wc)
{
	uint8_t *buf = r->rx + wc->wr_id * rpc_slot_stride(r);
	uint64_t word;

	if (wc->status != RTSAN_WC_SUCCESS || wc->opcode != RTSAN_WC_RECV) {
		if (wc->status != RTSAN_WC_FLUSHED)
			r->state.error = rtsan_status_text(wc->status);
		return;
	}
	if (wc->byte_len != r->size) {
		r->state.error = "a message has another length";
		return;
	}
	memcpy(&word, buf, sizeof(word));
	if ((word & ANSWER) != 0)
		rpc_take_answer(r, buf, word >> 1);
	else
		rpc_answer(r, (uint32_t)wc->wr_id, buf, word);
	want_recv(r, (uint32_t)wc->wr_id);
}

/* Make requests as far as there is room, in whole batches. */
static void
rpc_ask_more(struct rpc *r, uint64_t max)
{
	uint64_t n = r->depth - (r->state.asked - r->state.answered), word, i;
	uint32_t slot;
	uint8_t *buf;

	n = n < max ? n : max;
	if (r->batch > 0 && n < max)
		n = n / r->batch * r->batch;
	for (i = 0; i < n; i++, r->state.asked++) {
		slot = (uint32_t)r->state.asked & (r->slots - 1);
		if (r->stamp[slot] != 0)
			break; /* unordered: an older request in the slot has no answer yet */
		r->stamp[slot] = r->b->now;
		buf = r->tx + (size_t)slot * rpc_slot_stride(r);
		word = r->state.asked << 1;
		memcpy(buf, &word, sizeof(word));
		if (r->verify)
			san_content_fill(rpc_base(r, r->is_server, r->state.asked), sizeof(word),
					 buf + sizeof(word), r->size - sizeof(word));
		r->wrs[r->nb_wrs++] = (struct rtsan_send_wr){
			.wr_id = ASKED,
			.opcode = RTSAN_WR_SEND,
			.flags = RTSAN_WR_INLINE,
			.nb_sge = 1,
			.sge = &r->tx_sge[slot],
		};
	}
}

void
san_rpc_step(struct rpc *r, uint64_t max)
{
	int ret;

	if (max > 0 && r->state.asked - r->state.answered < r->depth) {
		r->b->now = rte_rdtsc();
		rpc_ask_more(r, max);
	}
	ret = rpc_post(r);
	if (ret < 0 && ret != -ENOTCONN && r->state.error == NULL)
		r->state.error = rtsan_error();
}

const struct rpc_state *
san_rpc_state(const struct rpc *r)
{
	return &r->state;
}
