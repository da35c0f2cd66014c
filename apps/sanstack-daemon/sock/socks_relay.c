/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * The daemon uses the rings of the stream like a program: it holds the program's end of the pair,
 * is woken through it, and rings the doorbell of the lcore. Bytes move between the rings and the
 * token without another copy. The program sees the token's address as its peer, and each burst
 * takes the daemon two system calls. So only the first connection is relayed, and the next ones of
 * the listener stay with the kernel.
 */

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "san_time.h"
#include "socks_pair.h"
#include "socks_priv.h"
#include "socks_relay.h"

#define STEP_BYTES (256u << 10)
#define ROOM_NS    (1 * SAN_NS_PER_MS) /* delay before the ring is checked for room again */

enum moved {
	MOVED_ALL,  /* an event reports more */
	MOVED_SOME, /* there is more, after other sockets had their turn */
	MOVED_FULL, /* the ring has no room */
	MOVED_END,  /* no more data will follow */
	MOVED_RESET,
};

void
san_socks_relay_begin(struct app_sock *s)
{
	struct san_sock_shm *shm = s->mem.mem;

	if (san_socks_watch_relay(s) != 0) {
		s->is_over = true;
		return;
	}
	s->is_relayed = s->is_relay_due = true;
	atomic_store(&shm->edges, 1);
	atomic_fetch_add(&shm->armed, 1);
}

/* Move what the program wrote. */
static enum moved
to_stream(struct app_sock *s, struct san_sock_shm *shm, bool *needs_doorbell)
{
	uint8_t *ring = san_sock_shm_tx_ring(shm, SAN_SOCK_STREAM_RX_BYTES);
	uint32_t tail = atomic_load(&shm->tx_tail), first = tail, room, off;
	ssize_t n;

	if (atomic_load(&shm->state) > SAN_SOCK_UP)
		return MOVED_RESET;
	while (tail - first < STEP_BYTES) {
		/* pairs with the lcore's release: the place is free */
		room = SAN_SOCK_STREAM_TX_BYTES - (tail - atomic_load(&shm->tx_head));
		if (room == 0 || room > SAN_SOCK_STREAM_TX_BYTES)
			return MOVED_FULL;
		off = tail & (SAN_SOCK_STREAM_TX_BYTES - 1);
		room = RTE_MIN(room, SAN_SOCK_STREAM_TX_BYTES - off);
		n = recv(s->token, ring + off, room, MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? MOVED_ALL : MOVED_RESET;
		*needs_doorbell = true;
		if (n == 0)
			return MOVED_END;
		tail += (uint32_t)n;
		atomic_store(&shm->tx_tail, tail);
	}
	return MOVED_SOME;
}

/* After the program's end of data only a reset can follow. */
static enum moved
look_for_reset(const struct app_sock *s)
{
	uint8_t byte;
	ssize_t n = recv(s->token, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);

	return n < 0 && errno != EAGAIN && errno != EINTR ? MOVED_RESET : MOVED_END;
}

/* Move what the peer sent. */
static enum moved
to_program(struct app_sock *s, struct san_sock_shm *shm, bool *needs_doorbell)
{
	const uint8_t *ring = san_sock_shm_rx_ring(shm);
	uint32_t head = atomic_load(&shm->rx_head), first = head, len, off;
	bool ended = atomic_load(&shm->fin) != 0;
	ssize_t n;

	for (;;) {
		if (head - first >= STEP_BYTES)
			return MOVED_SOME;
		len = atomic_load(&shm->rx_tail) - head;
		if (len > SAN_SOCK_STREAM_RX_BYTES)
			return MOVED_RESET;
		if (len == 0)
			break;
		off = head & (SAN_SOCK_STREAM_RX_BYTES - 1);
		len = RTE_MIN(len, SAN_SOCK_STREAM_RX_BYTES - off);
		n = send(s->token, ring + off, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? MOVED_ALL : MOVED_RESET;
		head += (uint32_t)n;
		atomic_store(&shm->rx_head, head);
		*needs_doorbell |= atomic_load(&shm->rx_waits) != 0;
	}
	if (atomic_load(&shm->error) != 0 || atomic_load(&shm->orphaned) != 0)
		return MOVED_RESET;
	return ended ? MOVED_END : MOVED_ALL;
}

/* Read the wake bytes first: those that arrive later announce later data. */
static void
relay_hear_program(const struct app_sock *s, struct san_sock_shm *shm)
{
	uint8_t byte;

	while (recv(s->held, &byte, sizeof(byte), MSG_DONTWAIT) > 0)
		;
	atomic_store(&shm->mirrored, SAN_SOCK_UNNOTIFIED);
	/* pairs with the fence of san_sock_mirror() (AFC-19) */
	atomic_thread_fence(memory_order_seq_cst);
}

/* Close both ends, with a reset if *is_reset*. */
static void
relay_finish_side(struct app_sock *s, struct san_sock_shm *shm, bool is_reset)
{
	const struct linger now = {.l_onoff = 1};

	if (is_reset) {
		atomic_store(&shm->linger, 1);
		setsockopt(s->token, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	}
	close(s->token);
	close(s->held); /* the pair hangs up, as when a program closes */
	s->token = s->held = -1;
	s->token_port = 0;
	s->is_relayed = false;
}

uint64_t
san_socks_relay_step(struct app_sock *s, uint64_t now_ns)
{
	enum moved in, out = MOVED_END;
	struct san_sock_shm *shm = s->mem.mem;
	bool needs_doorbell = false;

	if (!s->is_relay_due && now_ns < s->look_ns)
		return s->look_ns;
	s->is_relay_due = false;
	relay_hear_program(s, shm);
	in = s->relay_in_over ? look_for_reset(s) : to_stream(s, shm, &needs_doorbell);
	if (!s->relay_out_over)
		out = to_program(s, shm, &needs_doorbell);
	if (in == MOVED_END && !s->relay_in_over) {
		s->relay_in_over = true;
		atomic_fetch_or(&shm->shut, SHUT_WR + 1);
	}
	if (out == MOVED_END && !s->relay_out_over) {
		s->relay_out_over = true;
		shutdown(s->token, SHUT_WR);
	}
	if (needs_doorbell)
		san_socks_pair_doorbell(s);
	if (in == MOVED_RESET || out == MOVED_RESET)
		relay_finish_side(s, shm, true);
	else if (in == MOVED_END && out == MOVED_END)
		relay_finish_side(s, shm, false);
	s->look_ns = in == MOVED_SOME || out == MOVED_SOME ? now_ns :
		in == MOVED_FULL                           ? now_ns + ROOM_NS :
							     SAN_TIME_NEVER;
	return s->look_ns;
}
