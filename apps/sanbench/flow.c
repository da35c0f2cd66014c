/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "flow.h"

#define SMALL_BYTES 1024 /* maximum size of a small buffer */
#define SMALL_RECVS 32   /* number of small buffers posted */
#define LARGE_BYTES 8192 /* minimum size of a large buffer */
#define LARGE_RECVS 4
#define HEAD_BYTES  64 /* first read after waiting for data */
#define SAME_RECVS  64 /* FLOW_MIXED: receives until the next manner */

/* wr_id: kind and index. */
#define ID_SEND     (0ull << 32)
#define ID_RECV     (1ull << 32)
#define ID_WAIT     (2ull << 32)
#define ID_SHUTDOWN (3ull << 32)
#define ID_KIND(id) ((id) & ~(uint64_t)UINT32_MAX)

struct flow {
	struct bench *b;
	struct bench_qp *q;
	struct flow_state state;
	uint32_t size_min, size_max, depth;
	uint64_t seed;
	uint16_t index;
	uint8_t way, manner;
	uint8_t now; /* the current manner of FLOW_MIXED */
	bool verify, is_server;
	bool got_end;   /* the peer's end has arrived */
	bool shut_sent; /* own end has completed */
	bool waiting, head_next;
	uint32_t nb_same;
	struct hist *lat;
	struct rtsan_mr *mr;
	uint8_t *tx, *rx;
	uint64_t *stamp;
	uint64_t nb_sent; /* completed sends */
	/* requests: data to receive, or to answer */
	uint64_t want;    /* bytes of the current answer or request that have not arrived */
	uint64_t turn;    /* its number */
	uint64_t answers; /* answers to send */
	uint32_t nb_recvs;
	uint64_t rx_free; /* one bit per receive buffer */
	uint32_t rx_bytes;
};

static bool
is_rpc(const struct flow *f)
{
	return f->way == FLOW_SEND_RECV || f->way == FLOW_RECV_SEND;
}

/* The stream of bytes that the server sends, or the client. */
static uint64_t
flow_base(const struct flow *f, bool of_server)
{
	return san_content_base(f->seed + of_server, f->index, 0);
}

static uint32_t
size_of(const struct flow *f, uint64_t i)
{
	return san_content_size(f->seed, f->index, i, f->size_min, f->size_max);
}

/* ---- set-up ---- */

static int
flow_alloc(struct flow *f)
{
	uint64_t bytes = (uint64_t)san_net_stride(f->size_max) * f->depth;
	int ret;

	f->rx_bytes = san_net_stride(RTE_MAX(f->size_max, (uint32_t)LARGE_BYTES));
	ret = rtsan_mr_alloc(f->b->ctx,
			     bytes + (uint64_t)f->rx_bytes * LARGE_RECVS +
				     (uint64_t)SMALL_BYTES * SMALL_RECVS,
			     0, &f->mr);
	if (ret < 0)
		return ret;
	f->tx = rtsan_mr_addr(f->mr);
	f->rx = f->tx + bytes;
	f->stamp = calloc(f->depth, sizeof(*f->stamp));
	return f->stamp == NULL ? -ENOMEM : 0;
}

int
san_flow_open(struct bench *b, struct bench_qp *q, const struct hello *hello, bool is_server,
	      const struct rtsan_stream_attr *stream, struct hist *lat, struct flow **out)
{
	struct flow *f = calloc(1, sizeof(*f));
	int ret;

	if (f == NULL)
		return -ENOMEM;
	*out = f;
	f->b = b;
	f->q = q;
	f->size_min = hello->size_min;
	f->size_max = hello->size_max;
	f->depth = hello->depth;
	f->way = hello->way;
	f->manner = hello->manner;
	f->now = f->manner == FLOW_MIXED ? FLOW_DIRECT : f->manner;
	f->rx_free = UINT64_MAX;
	f->verify = (hello->flags & HELLO_VERIFY) != 0;
	f->seed = hello->seed;
	f->index = hello->index;
	f->is_server = is_server;
	f->lat = lat;
	f->want = is_rpc(f) && is_server ? size_of(f, 0) : 0;
	ret = flow_alloc(f);
	q->stream = stream;
	if (ret == 0)
		ret = san_net_qp_open(b, q, f->depth + 2, SMALL_RECVS,
				      f->depth + 2 + SMALL_RECVS);
	return ret;
}

void
san_flow_close(struct flow *f)
{
	if (f == NULL)
		return;
	if (f->mr != NULL)
		rtsan_mr_dereg(f->mr);
	free(f->stamp);
	free(f);
}

/* ---- sending ---- */

static bool
flow_post_send(struct flow *f, uint64_t i)
{
	uint32_t slot = (uint32_t)(i % f->depth), len = size_of(f, i);
	uint8_t *buf = f->tx + (size_t)slot * san_net_stride(f->size_max);
	struct rtsan_sge sge = {.addr = buf, .length = len, .lkey = rtsan_mr_lkey(f->mr)};
	const struct rtsan_send_wr wr = {
		.wr_id = ID_SEND | slot,
		.opcode = RTSAN_WR_SEND,
		.flags = RTSAN_WR_SIGNALED,
		.nb_sge = 1,
		.sge = &sge,
	};
	int n;

	if (f->verify)
		san_content_fill(flow_base(f, f->is_server), f->state.bytes, buf, len);
	n = rtsan_post_send(f->q->qp, &wr, 1);
	if (n != 1) {
		if (n < 0 && n != -ENOTCONN && f->state.error == NULL)
			f->state.error = rtsan_error();
		return false;
	}
	f->stamp[slot] = rte_rdtsc();
	f->state.msgs++;
	f->state.bytes += len;
	return true;
}

static bool
send_some(struct flow *f, uint64_t max)
{
	uint64_t n = 0;

	while (n < max && f->state.msgs - f->nb_sent < f->depth &&
	       flow_post_send(f, f->state.msgs))
		n++;
	return n > 0;
}

/* ---- receiving ---- */

static uint8_t *
flow_buffer(const struct flow *f, uint32_t at, bool small)
{
	if (!small)
		return f->rx + (size_t)at * f->rx_bytes;
	return f->rx + (size_t)LARGE_RECVS * f->rx_bytes + (size_t)at * SMALL_BYTES;
}

static bool
flow_post_recv(struct flow *f, uint32_t at, bool small, uint32_t bytes)
{
	struct rtsan_sge sge = {
		.addr = flow_buffer(f, at, small), .length = bytes, .lkey = rtsan_mr_lkey(f->mr)};
	const struct rtsan_recv_wr wr = {
		.wr_id = ID_RECV | (uint32_t)small << 16 | at, .sge = &sge, .nb_sge = 1};

	if (rtsan_post_recv(f->q->qp, &wr, 1) != 1)
		return false;
	f->rx_free &= ~(1ull << at);
	f->nb_recvs++;
	return true;
}

static bool
flow_post_recvs(struct flow *f, bool small, uint32_t max)
{
	uint32_t at, n = 0;
	uint32_t bytes = small ? RTE_MIN(f->size_max, (uint32_t)SMALL_BYTES) : f->rx_bytes;

	for (at = 0; at < max; at++)
		if ((f->rx_free & 1ull << at) != 0)
			n += flow_post_recv(f, at, small, bytes);
	return n > 0;
}

static bool
receive_waiting(struct flow *f)
{
	if (f->waiting || f->nb_recvs > 0)
		return false;
	if (f->head_next) {
		f->head_next = false;
		return flow_post_recv(f, 1, false, f->rx_bytes);
	}
	f->waiting = rtsan_stream_wait(f->q->qp, RTSAN_STREAM_READABLE, ID_WAIT) == 0;
	return f->waiting;
}

static bool
flow_receive(struct flow *f)
{
	if (f->got_end)
		return false;
	/* change the manner only when all buffers of the last one have returned */
	if (f->manner == FLOW_MIXED && f->nb_same >= SAME_RECVS) {
		if (f->nb_recvs > 0 || f->waiting)
			return false;
		f->now = (uint8_t)((f->now + 1) % FLOW_MIXED);
		f->nb_same = 0;
		f->head_next = false;
	}
	if (f->now == FLOW_WAIT)
		return receive_waiting(f);
	if (f->now == FLOW_SMALL)
		return flow_post_recvs(f, true, is_rpc(f) ? 1 : SMALL_RECVS);
	return flow_post_recvs(f, false, is_rpc(f) ? 1 : LARGE_RECVS);
}

/* Account for received bytes of a request or of an answer. */
static void
take_rpc(struct flow *f, uint32_t bytes)
{
	uint32_t slot = (uint32_t)(f->turn % f->depth);

	if (bytes > f->want) {
		f->state.error = "more came than was asked for";
		return;
	}
	f->want -= bytes;
	if (f->want > 0)
		return;
	f->turn++;
	f->head_next = false;
	if (f->is_server) {
		f->answers++;
		f->want = size_of(f, f->turn);
		return;
	}
	san_hist_add(f->lat, san_bench_ns(f->b, rte_rdtsc() - f->stamp[slot]));
	f->state.done++;
}

static void
flow_on_recv(struct flow *f, const struct rtsan_wc *wc)
{
	uint32_t at = wc->wr_id & 0xffff;
	bool small = (wc->wr_id & 1u << 16) != 0;
	int64_t wrong = -1;

	f->nb_recvs--;
	f->nb_same++;
	f->rx_free |= 1ull << at;
	if (wc->status != RTSAN_WC_SUCCESS)
		return;
	if (wc->byte_len == 0) {
		f->got_end = true;
		return;
	}
	if (f->verify)
		wrong = san_content_check(flow_base(f, !f->is_server), f->state.received,
					  flow_buffer(f, at, small), wc->byte_len);
	if (wrong >= 0)
		f->state.error = "the stream has wrong bytes";
	f->state.received += wc->byte_len;
	if (is_rpc(f))
		take_rpc(f, wc->byte_len);
}

void
san_flow_on_wc(struct flow *f, const struct rtsan_wc *wc)
{
	if (wc->status != RTSAN_WC_SUCCESS && wc->status != RTSAN_WC_FLUSHED)
		f->state.error = rtsan_status_text(wc->status);
	switch (ID_KIND(wc->wr_id)) {
	case ID_SEND:
		f->nb_sent++;
		if (is_rpc(f))
			break;
		f->state.done++;
		san_hist_add(f->lat, san_bench_ns(f->b, f->b->now - f->stamp[(uint32_t)wc->wr_id]));
		break;
	case ID_RECV:
		flow_on_recv(f, wc);
		break;
	case ID_WAIT:
		f->waiting = false;
		if (wc->status != RTSAN_WC_SUCCESS || (wc->imm & RTSAN_STREAM_ENDED) != 0) {
			f->got_end = true;
			break;
		}
		f->head_next = true;
		flow_post_recv(f, 0, false, HEAD_BYTES);
		break;
	default:
		f->shut_sent = true;
		break;
	}
}

/* Send one request at a time. */
static bool
step_asking(struct flow *f, uint64_t max)
{
	bool asks = max > 0 && f->state.msgs == f->state.done, worked = false;

	if (asks)
		f->want = size_of(f, f->turn);
	if (asks && f->way == FLOW_RECV_SEND)
		worked = flow_receive(f);
	if (asks)
		worked |= send_some(f, 1);
	/* receive the rest of the answer; at last, the peer's end */
	if (f->want > 0 || f->state.is_shut)
		worked |= flow_receive(f);
	return worked;
}

static bool
step_answering(struct flow *f)
{
	uint64_t before = f->state.msgs;
	bool worked = f->way == FLOW_RECV_SEND && flow_receive(f);

	worked |= send_some(f, f->answers);
	f->answers -= f->state.msgs - before;
	return flow_receive(f) || worked;
}

bool
san_flow_step(struct flow *f, uint64_t max)
{
	bool worked, had_end = f->got_end;

	if (!f->q->is_up)
		return false;
	if (is_rpc(f)) {
		worked = f->is_server ? step_answering(f) :
					step_asking(f, f->state.is_shut ? 0 : max);
	} else {
		worked = flow_receive(f);
		if (!f->state.is_shut && (!f->is_server || (f->way == FLOW_BOTH && !had_end)))
			worked |= send_some(f, max);
	}
	/* the server ends its direction after the client */
	if (!f->state.is_shut && (f->is_server ? f->got_end && f->answers == 0 : max == 0) &&
	    (!is_rpc(f) || f->is_server || f->state.done == f->state.msgs))
		f->state.is_shut = rtsan_stream_shutdown(f->q->qp, ID_SHUTDOWN) == 0;
	return worked;
}

bool
san_flow_is_over(const struct flow *f)
{
	return f->got_end && f->shut_sent && f->nb_sent == f->state.msgs;
}

const struct flow_state *
san_flow_state(const struct flow *f)
{
	return &f->state;
}
