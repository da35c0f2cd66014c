/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Moves bytes between the rings of programs and the queue pairs of their streams. Bytes are sent
 * from the send ring in place. They are received into the receive ring, where programs read them.
 * (AFC-1, AFC-19, UDP-8)
 *
 * DESIGN NOTES
 *
 * One receive is posted at a time, for all free room. So the bytes of consecutive receives are
 * contiguous in the ring. A receive is posted only for a quarter of the ring or more. Until that
 * much is free, a reader that makes room notifies the lcore.
 *
 * At most SOCK_SENDS sends are in flight. Bytes that a program writes meanwhile go into the next
 * send.
 *
 * Positions that programs write are checked against the size of the ring. A wrong one ends the
 * stream.
 */

#include <errno.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "sock_priv.h"
#include "wire.h"

/* Receiving continues: the session may hold more bytes. */
void
san_sock_stream_over(struct san_socks *all, uint32_t id, int err)
{
	struct san_sock *s = &all->socks[id];
	struct sock_stream *st = &s->stream;

	if (st->is_over)
		return;
	st->is_over = true;
	/* release all room, so that threads stop waiting for it */
	s->tx_head = st->tx_posted = atomic_load_explicit(&s->shm->tx_tail, memory_order_relaxed);
	atomic_store_explicit(&s->shm->tx_head, s->tx_head, memory_order_release);
	/* as TCP: after the peer's end the error is that of a sender, and none after both ends */
	if (!st->has_fin || !st->shut_posted)
		atomic_store_explicit(&s->shm->error, st->has_fin ? EPIPE : (uint32_t)err,
				      memory_order_relaxed);
	atomic_store_explicit(&s->shm->state, st->is_up ? SAN_SOCK_OVER : SAN_SOCK_REFUSED,
			      memory_order_release);
	san_sock_mirror(all, s, true);
	san_sock_on_room(all, s);
}

/* End the receiving direction. */
static void
rx_over(struct san_socks *all, struct san_sock *s)
{
	s->stream.has_fin = true;
	atomic_store_explicit(&s->shm->fin, 1, memory_order_release);
	san_sock_mirror(all, s, true);
}

static void
sock_stream_broken(struct san_socks *all, struct san_sock *s)
{
	s->is_broken = true;
	san_sock_stream_over(all, san_sock_id(all, s), EIO);
	rx_over(all, s);
}

/*
 * Describe *len* bytes of the ring from position *at* on. Returns the number of elements, one or
 * two.
 */
static uint8_t
sock_stream_ring_sges(uint8_t *ring, uint32_t mask, uint32_t at, uint32_t len,
		      struct rtsan_sge sge[2])
{
	uint32_t off = at & mask, first = RTE_MIN(len, mask + 1 - off);

	sge[0] = (struct rtsan_sge){.addr = ring + off, .length = first};
	if (first == len)
		return 1;
	sge[1] = (struct rtsan_sge){.addr = ring, .length = len - first};
	return 2;
}

/* ---- receive ---- */

static void
sock_stream_post_recv(struct san_socks *all, struct san_sock *s, uint64_t now_ns)
{
	struct sock_stream *st = &s->stream;
	struct san_ulp_recv r = {.wr_id = san_sock_id(all, s)};
	/* pairs with the release of the reader, which frees the place */
	uint32_t used = s->rx_tail - atomic_load_explicit(&s->shm->rx_head, memory_order_acquire);
	uint32_t size = s->rx_mask + 1;

	if (!st->is_up || st->has_recv || st->has_fin)
		return;
	if (size - used < size / 4) {
		atomic_store_explicit(&s->shm->rx_waits, 1, memory_order_relaxed);
		/* pairs with the fence of the reader: it sees *rx_waits*, or we see the room */
		atomic_thread_fence(memory_order_seq_cst);
		used = s->rx_tail - atomic_load(&s->shm->rx_head);
		if (size - used < size / 4)
			return;
	}
	if (used > size) {
		sock_stream_broken(all, s);
		return;
	}
	r.nb_sge = sock_stream_ring_sges(s->rx, s->rx_mask, s->rx_tail, size - used, r.sge);
	if (all->work.post_recv(all->work.core, st->qp, &r, 1, now_ns) != 1)
		return;
	st->has_recv = true;
	if (unlikely(atomic_load_explicit(&s->shm->rx_waits, memory_order_relaxed) != 0))
		atomic_store_explicit(&s->shm->rx_waits, 0, memory_order_relaxed);
}

/* ---- send ---- */

static bool
wants_end(const struct san_sock *s)
{
	return s->stream.is_abandoned ||
		(atomic_load_explicit(&s->shm->shut, memory_order_acquire) & (SHUT_WR + 1)) != 0;
}

/* Send *len* bytes: *from_ring* of them from the ring, the others from the place behind it. */
static bool
sock_stream_post_send(struct san_socks *all, struct san_sock *s, struct san_ulp_wr *wr,
		      uint32_t len, uint32_t from_ring, uint64_t now_ns)
{
	struct sock_stream *st = &s->stream;

	wr->wr_id = san_sock_id(all, s);
	wr->op = RTSAN_WR_SEND;
	wr->flags = RTSAN_WR_SIGNALED;
	wr->length = len;
	if (all->work.post(all->work.core, st->qp, wr, 1, now_ns) != 1)
		return false;
	st->len[(st->first + st->nb_sends++) % SOCK_SENDS] = from_ring;
	st->tx_posted += from_ring;
	s->stats.nb_tx++;
	s->stats.nb_tx_bytes += len;
	return true;
}

static void
sock_stream_post_sends(struct san_socks *all, struct san_sock *s, uint64_t now_ns)
{
	struct sock_stream *st = &s->stream;
	/* read this before the tail: what was written before the end must be sent before it */
	bool ends = wants_end(s);
	/* pairs with the release of the writer */
	uint32_t tail = atomic_load_explicit(&s->shm->tx_tail, memory_order_acquire);

	if (!st->is_up || st->is_over || st->shut_posted)
		return;
	if (tail - s->tx_head > s->tx_mask + 1 || tail - s->tx_head < st->tx_posted - s->tx_head) {
		sock_stream_broken(all, s);
		return;
	}
	while (st->tx_posted != tail && st->nb_sends < SOCK_SENDS) {
		uint32_t len = RTE_MIN(tail - st->tx_posted, (s->tx_mask + 1) / 2);
		struct san_ulp_wr wr = {.wr_id = 0};

		wr.nb_sge = sock_stream_ring_sges(s->tx, s->tx_mask, st->tx_posted, len, wr.sge);
		if (!sock_stream_post_send(all, s, &wr, len, len, now_ns))
			break;
	}
	if (ends && st->tx_posted == tail) {
		const struct san_ulp_wr wr = {
			.wr_id = san_sock_id(all, s),
			.op = SAN_WR_SHUTDOWN,
			.flags = RTSAN_WR_SIGNALED,
		};

		st->shut_posted = all->work.post(all->work.core, st->qp, &wr, 1, now_ns) == 1;
	}
}

/* ---- timeouts and keep-alive ---- */

#define RARE_MS     5000u /* interval of probes without SO_KEEPALIVE: they find a restart */
#define PROBES_MAX  127u  /* this and SECONDS_MAX are Linux's limits */
#define SECONDS_MAX 32767u

/* Apply the timeouts that the program has set at its socket, or TCP's defaults. (UDP-12) */
static void
sock_stream_set_timeouts(struct san_socks *all, struct san_sock *s, uint64_t now_ns)
{
	const struct san_sock_shm *shm = s->shm;
	uint32_t timeout_ms = atomic_load_explicit(&shm->timeout_ms, memory_order_relaxed);
	uint32_t idle_s = atomic_load_explicit(&shm->idle_s, memory_order_relaxed);
	uint32_t every_s = atomic_load_explicit(&shm->every_s, memory_order_relaxed);
	uint32_t probes = atomic_load_explicit(&shm->probes, memory_order_relaxed), rest_ms;
	struct san_sock_timeouts p = {
		.timeout_ms = timeout_ms != 0 ? timeout_ms : SAN_SOCK_TIMEOUT_MS,
		.idle_ms = RARE_MS,
		.every_ms = RARE_MS,
	};

	if (idle_s != 0) { /* SO_KEEPALIVE */
		p.idle_ms = RTE_MIN(idle_s, SECONDS_MAX) * 1000;
		p.every_ms = RTE_MAX(RTE_MIN(every_s, SECONDS_MAX), 1u) * 1000;
		if (timeout_ms != 0) { /* TCP_USER_TIMEOUT ends the connection, not TCP_KEEPCNT */
			rest_ms = timeout_ms > p.idle_ms ? timeout_ms - p.idle_ms : 1;
			p.every_ms = RTE_MAX(p.every_ms, rest_ms / PROBES_MAX + 1);
			probes = (rest_ms - 1) / p.every_ms + 1;
		}
		p.probes = (uint8_t)RTE_MAX(RTE_MIN(probes, PROBES_MAX), 1u);
	}
	all->work.set_timeouts(all->work.core, s->stream.qp, &p, now_ns);
}

/* ---- completions and doorbells ---- */

void
san_sock_stream_done(struct san_socks *all, uint32_t id, const struct san_ulp_wc *wc,
		     uint64_t now_ns)
{
	struct san_sock *s = &all->socks[id];
	struct sock_stream *st = &s->stream;

	if (wc->op == RTSAN_WC_RECV)
		st->has_recv = false;
	if (s->is_broken)
		return;
	if (wc->status != 0)
		san_sock_stream_over(all, id,
				     wc->status == RTSAN_WC_RETRY_EXC          ? ETIMEDOUT :
					     wc->status == RTSAN_WC_NO_BUFFERS ? ENOBUFS :
										 ECONNRESET);
	if (wc->op == RTSAN_WC_RECV && wc->byte_len != 0) {
		s->rx_tail += wc->byte_len;
		s->stats.nb_rx++;
		s->stats.nb_rx_bytes += wc->byte_len;
		atomic_store_explicit(&s->shm->rx_tail, s->rx_tail, memory_order_release);
		san_sock_mirror(all, s, true);
		sock_stream_post_recv(all, s, now_ns);
	} else if (wc->op == RTSAN_WC_RECV) {
		rx_over(all, s);
	} else if (wc->status != 0 || st->is_over) {
		return;                       /* the whole ring is free already */
	} else if (wc->op == RTSAN_WC_SEND) { /* the oldest: release its bytes */
		if (st->len[st->first] == 0)
			st->has_appended = false;
		s->tx_head += st->len[st->first];
		st->first = (st->first + 1) % SOCK_SENDS;
		st->nb_sends--;
		atomic_store_explicit(&s->shm->tx_head, s->tx_head, memory_order_release);
		san_sock_on_room(all, s);
		sock_stream_post_sends(all, s, now_ns);
	} else if (wc->op == RTSAN_WC_STREAM_SHUTDOWN) {
		st->shut_done = true;
	}
}

void
san_sock_stream_visit(struct san_socks *all, struct san_sock *s, uint64_t now_ns)
{
	/* pairs with the release of the program that wrote the fields */
	uint32_t nb = atomic_load_explicit(&s->shm->nb_timeout_changes, memory_order_acquire);

	if (unlikely(nb != s->stream.nb_timeout_changes) && s->stream.is_up && !s->stream.is_over) {
		s->stream.nb_timeout_changes = nb;
		sock_stream_set_timeouts(all, s, now_ns);
	}
	sock_stream_post_sends(all, s, now_ns);
	sock_stream_post_recv(all, s, now_ns);
	if (unlikely(wants_end(s)))
		san_sock_on_room(all, s);
	san_sock_mirror_again(all, s);
}

/* ---- the connection begins and ends ---- */

void
san_sock_stream_set_work(struct san_socks *all, const struct san_sock_work *work)
{
	all->work = *work;
}

void
san_sock_stream(struct san_socks *all, uint32_t id, uint32_t qp)
{
	all->socks[id].stream.qp = qp;
}

void
san_sock_stream_up(struct san_socks *all, uint32_t id, uint64_t now_ns)
{
	struct san_sock *s = &all->socks[id];

	if (s->stream.is_over)
		return;
	s->stream.is_up = true;
	sock_stream_set_timeouts(all, s, now_ns);
	atomic_store_explicit(&s->shm->state, SAN_SOCK_UP, memory_order_release);
	san_sock_mirror(all, s, true);
	sock_stream_post_recv(all, s, now_ns);
	sock_stream_post_sends(all, s, now_ns);
}

void
san_sock_stream_shut(struct san_socks *all, uint32_t id)
{
	all->socks[id].stream.is_abandoned = true;
	san_sock_doorbell(all, id);
}

/* ---- bytes written without the ring ---- */

bool
san_sock_stream_may_append(const struct san_socks *all, uint32_t id)
{
	const struct san_sock *s = &all->socks[id];
	const struct sock_stream *st = &s->stream;

	if (st->is_over || st->shut_posted)
		return true; /* these bytes are dropped, like all that are written after the end */
	return st->is_up && !st->has_appended && st->nb_sends < SOCK_SENDS &&
		st->tx_posted == atomic_load_explicit(&s->shm->tx_tail, memory_order_acquire);
}

void
san_sock_stream_append(struct san_socks *all, uint32_t id, const void *data, uint32_t len,
		       uint64_t now_ns)
{
	struct san_sock *s = &all->socks[id];
	uint8_t *to = s->tx + s->tx_mask + 1;
	struct san_ulp_wr wr = {.nb_sge = 1, .sge = {{.addr = to, .length = len}}};

	if (s->stream.is_over || s->stream.shut_posted || len == 0 || len > SAN_SOCK_APPEND)
		return;
	memcpy(to, data, len);
	s->stream.has_appended = sock_stream_post_send(all, s, &wr, len, 0, now_ns);
}

bool
san_sock_stream_is_over(const struct san_socks *all, uint32_t id)
{
	return all->socks[id].stream.is_over;
}

bool
san_sock_stream_is_drained(const struct san_socks *all, uint32_t id)
{
	const struct sock_stream *st = &all->socks[id].stream;

	return st->is_over || st->shut_done;
}

bool
san_sock_stream_is_reset(const struct san_socks *all, uint32_t id)
{
	const struct san_sock *s = &all->socks[id];

	return atomic_load_explicit(&s->shm->rx_head, memory_order_relaxed) != s->rx_tail ||
		atomic_load_explicit(&s->shm->linger, memory_order_relaxed) == 1;
}
