/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Streams: bytes instead of messages. Each end sends as --way says, receives in the manner of
 * --receive, so that each mode of the adaptive protocol occurs, and checks every byte by its
 * position in the stream. (AFC-1, AFC-11, SYS-3)
 */

#include "bench.h"

#define DEPTH_MAX   1024
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

/* One end. It counts in did: posted messages, and sends or requests that are done. */
struct flow {
	uint8_t now;    /* the current manner */
	bool got_end;   /* the peer's end has arrived */
	bool is_shut;   /* own end is posted; the connection ends with the peer's */
	bool shut_sent; /* own end has completed */
	bool waiting, head_next;
	uint32_t nb_same; /* FLOW_MIXED: receives in this manner */
	uint8_t *rx;      /* buffers of receives, behind those of sends */
	uint64_t nb_sent; /* completed sends */
	/* requests: data to receive, or to answer */
	uint64_t want;    /* bytes of the current answer or request that have not arrived */
	uint64_t answers; /* answers to send */
	uint32_t nb_recvs;
	uint64_t rx_free; /* one bit per receive buffer */
	uint32_t rx_bytes;
};

static const char *
stream_check(const struct hello *h)
{
	if (h->order != RTSAN_ORDERED)
		return "--order: streams are ordered";
	if (h->way >= FLOW_WAYS || h->manner >= FLOW_MANNERS)
		return "--way, --receive: unknown here";
	return h->depth > DEPTH_MAX ? "--depth: at most 1024 sends" : NULL;
}

static bool
is_rpc(const struct bench_qp *q)
{
	return q->hello.way == FLOW_SEND_RECV || q->hello.way == FLOW_RECV_SEND;
}

/* ---- sending ---- */

static bool
flow_post_send(struct bench_qp *q)
{
	uint64_t i = q->did.msgs;
	uint32_t slot = (uint32_t)(i % q->hello.depth), len = san_content_size(&q->hello, i);
	uint8_t *buf = q->mem + (size_t)slot * san_net_stride(&q->hello);
	struct rtsan_sge sge = {.addr = buf, .length = len, .lkey = rtsan_mr_lkey(q->mr)};
	const struct rtsan_send_wr wr = {
		.wr_id = ID_SEND | slot,
		.opcode = RTSAN_WR_SEND,
		.flags = RTSAN_WR_SIGNALED,
		.nb_sge = 1,
		.sge = &sge,
	};
	int n;

	san_net_fill(&q->hello, q->is_server, 0, q->did.bytes, buf, len);
	n = rtsan_post_send(q->qp, &wr, 1);
	if (n != 1) {
		if (n < 0 && n != -ENOTCONN && q->did.error == NULL)
			q->did.error = rtsan_error();
		return false;
	}
	q->stamp[slot] = rte_rdtsc();
	q->did.msgs++;
	q->did.bytes += len;
	return true;
}

static bool
send_some(struct bench_qp *q, struct flow *f, uint64_t max)
{
	uint64_t n = 0;

	while (n < max && q->did.msgs - f->nb_sent < q->hello.depth && flow_post_send(q))
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
flow_post_recv(struct bench_qp *q, struct flow *f, uint32_t at, bool small, uint32_t bytes)
{
	if (san_net_post_recv(q, ID_RECV | (uint32_t)small << 16 | at, flow_buffer(f, at, small),
			      bytes) != 0)
		return false;
	f->rx_free &= ~(1ull << at);
	f->nb_recvs++;
	return true;
}

static bool
flow_post_recvs(struct bench_qp *q, struct flow *f, bool small, uint32_t max)
{
	uint32_t at, n = 0;
	uint32_t bytes = small ? RTE_MIN(q->hello.size_max, (uint32_t)SMALL_BYTES) : f->rx_bytes;

	for (at = 0; at < max; at++)
		if ((f->rx_free & 1ull << at) != 0)
			n += flow_post_recv(q, f, at, small, bytes);
	return n > 0;
}

static bool
receive_waiting(struct bench_qp *q, struct flow *f)
{
	if (f->waiting || f->nb_recvs > 0)
		return false;
	if (f->head_next) {
		f->head_next = false;
		return flow_post_recv(q, f, 1, false, f->rx_bytes);
	}
	f->waiting = rtsan_stream_wait(q->qp, RTSAN_STREAM_READABLE, ID_WAIT) == 0;
	return f->waiting;
}

static bool
flow_receive(struct bench_qp *q, struct flow *f)
{
	if (f->got_end)
		return false;
	/* change the manner only when all buffers of the last one have returned */
	if (q->hello.manner == FLOW_MIXED && f->nb_same >= SAME_RECVS) {
		if (f->nb_recvs > 0 || f->waiting)
			return false;
		f->now = (uint8_t)((f->now + 1) % FLOW_MIXED);
		f->nb_same = 0;
		f->head_next = false;
	}
	if (f->now == FLOW_WAIT)
		return receive_waiting(q, f);
	if (f->now == FLOW_SMALL)
		return flow_post_recvs(q, f, true, is_rpc(q) ? 1 : SMALL_RECVS);
	return flow_post_recvs(q, f, false, is_rpc(q) ? 1 : LARGE_RECVS);
}

/* Account for received bytes of a request or of an answer. */
static void
take_rpc(struct bench_qp *q, struct flow *f, uint32_t bytes)
{
	uint64_t stamp = q->stamp[q->did.done % q->hello.depth];

	if (bytes > f->want) {
		q->did.error = "more came than was asked for";
		return;
	}
	f->want -= bytes;
	if (f->want > 0)
		return;
	q->did.done++;
	f->head_next = false;
	if (q->is_server) {
		f->answers++;
		f->want = san_content_size(&q->hello, q->did.done);
		return;
	}
	san_hist_add(q->lat, san_bench_ns(q->b, rte_rdtsc() - stamp));
}

static void
flow_on_recv(struct bench_qp *q, struct flow *f, const struct rtsan_wc *wc)
{
	uint32_t at = wc->wr_id & 0xffff;
	bool small = (wc->wr_id & 1u << 16) != 0;
	const uint8_t *buf = flow_buffer(f, at, small);

	f->nb_recvs--;
	f->nb_same++;
	f->rx_free |= 1ull << at;
	if (wc->status != RTSAN_WC_SUCCESS)
		return;
	if (wc->byte_len == 0) {
		f->got_end = true;
		return;
	}
	if (san_content_check(&q->hello, !q->is_server, 0, q->did.received, buf, wc->byte_len) >= 0)
		q->did.error = "the stream has wrong bytes";
	q->did.received += wc->byte_len;
	if (is_rpc(q))
		take_rpc(q, f, wc->byte_len);
}

static void
stream_on_wc(struct bench_qp *q, const struct rtsan_wc *wc)
{
	struct flow *f = q->work;
	uint64_t ticks;

	if (wc->status != RTSAN_WC_SUCCESS && wc->status != RTSAN_WC_FLUSHED)
		q->did.error = rtsan_status_text(wc->status);
	switch (ID_KIND(wc->wr_id)) {
	case ID_SEND:
		f->nb_sent++;
		if (is_rpc(q))
			break;
		q->did.done++;
		ticks = q->b->now - q->stamp[(uint32_t)wc->wr_id];
		if (q->lat != NULL)
			san_hist_add(q->lat, san_bench_ns(q->b, ticks));
		break;
	case ID_RECV:
		flow_on_recv(q, f, wc);
		break;
	case ID_WAIT:
		f->waiting = false;
		/* the connection may have ended with bytes left to read */
		if (wc->status != RTSAN_WC_SUCCESS || (wc->imm & RTSAN_STREAM_READABLE) == 0) {
			f->got_end = true;
			break;
		}
		f->head_next = true;
		flow_post_recv(q, f, 0, false, HEAD_BYTES);
		break;
	default:
		f->shut_sent = true;
		break;
	}
}

/* ---- one end ---- */

/* Send one request at a time. */
static bool
step_asking(struct bench_qp *q, struct flow *f, uint64_t max)
{
	bool asks = max > 0 && q->did.msgs == q->did.done, worked = false;

	if (asks)
		f->want = san_content_size(&q->hello, q->did.done);
	if (asks && q->hello.way == FLOW_RECV_SEND)
		worked = flow_receive(q, f);
	if (asks)
		worked |= send_some(q, f, 1);
	/* receive the rest of the answer; at last, the peer's end */
	if (f->want > 0 || f->is_shut)
		worked |= flow_receive(q, f);
	return worked;
}

static bool
step_answering(struct bench_qp *q, struct flow *f)
{
	uint64_t before = q->did.msgs;
	bool worked = q->hello.way == FLOW_RECV_SEND && flow_receive(q, f);

	worked |= send_some(q, f, f->answers);
	f->answers -= q->did.msgs - before;
	return flow_receive(q, f) || worked;
}

/* All is sent, so that the own end may follow: of the server after the client's. */
static bool
may_shut(const struct bench_qp *q, const struct flow *f, uint64_t max)
{
	if (q->is_server)
		return f->got_end && f->answers == 0;
	return max == 0 && (!is_rpc(q) || q->did.done == q->did.msgs);
}

static bool
stream_step(struct bench_qp *q, uint64_t max)
{
	struct flow *f = q->work;
	bool worked, had_end = f->got_end;

	if (!q->is_up) /* data may be left to receive */
		return f->is_shut && flow_receive(q, f);
	if (is_rpc(q)) {
		worked = q->is_server ? step_answering(q, f) :
					step_asking(q, f, f->is_shut ? 0 : max);
	} else {
		worked = flow_receive(q, f);
		if (!f->is_shut && (!q->is_server || (q->hello.way == FLOW_BOTH && !had_end)))
			worked |= send_some(q, f, max);
	}
	if (!f->is_shut && may_shut(q, f, max))
		f->is_shut = rtsan_stream_shutdown(q->qp, ID_SHUTDOWN) == 0;
	return worked;
}

/* The connection ends when both ends have sent everything. Completions may come after this. */
static bool
stream_on_event(struct bench_qp *q, const struct rtsan_event *ev)
{
	const struct flow *f = q->work;

	return ev->type == RTSAN_EV_DISCONNECTED && ev->reason == RTSAN_R_NONE && f->is_shut;
}

static int
stream_open(struct bench_qp *q)
{
	uint32_t depth = q->hello.depth, stride = san_net_stride(&q->hello);
	uint32_t rx_bytes = RTE_MAX(stride, (uint32_t)LARGE_BYTES);
	uint64_t bytes = (uint64_t)stride * depth;
	struct flow *f;
	int ret = san_net_alloc(q,
				bytes + (uint64_t)rx_bytes * LARGE_RECVS +
					(uint64_t)SMALL_BYTES * SMALL_RECVS,
				sizeof(*f));

	if (ret < 0)
		return ret;
	f = q->work;
	q->on_wc = stream_on_wc;
	f->now = q->hello.manner == FLOW_MIXED ? FLOW_DIRECT : q->hello.manner;
	f->rx_free = UINT64_MAX;
	f->want = is_rpc(q) && q->is_server ? san_content_size(&q->hello, 0) : 0;
	f->rx_bytes = rx_bytes;
	f->rx = q->mem + bytes;
	return san_net_qp_open(q, depth + 2, SMALL_RECVS, depth + 2 + SMALL_RECVS);
}

static bool
stream_is_over(const struct bench_qp *q)
{
	const struct flow *f = q->work;

	return f->got_end && f->shut_sent && f->nb_sent == q->did.msgs;
}

static void
stream_end(struct peer *p)
{
	const struct bench_did *did = &p->q.did;

	if (did->received != p->end_bytes)
		san_server_peer_error(p, "%" PRIu64 " bytes of %" PRIu64, did->received,
				      p->end_bytes);
	if (did->bytes != p->end_value)
		san_server_peer_error(p, "the client has received %" PRIu64 " bytes of %" PRIu64,
				      p->end_value, did->bytes);
}

const struct bench_mode mode_stream = {
	.name = "stream",
	.help = "a stream of bytes, which the server receives as --receive says",
	.flags = MODE_BYTES,
	.defaults = {.size = 65536, .depth = 4, .conns = 1},
	.check = stream_check,
	.open = stream_open,
	.step = stream_step,
	.on_event = stream_on_event,
	.is_over = stream_is_over,
	.end = stream_end,
};
