/* SPDX-License-Identifier: BSD-3-Clause */

/* Streams between applications' rings and a queue pair, played by the test. (AFC-1, AFC-19) */

#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "sock.h"

#define RING (64u << 10)
#define QP   77
#define MAX  16

static struct san_socks *all;
static bool ends;
static struct san_sock_shm *shm;
static uint32_t id;

/* Posted work that is not completed. */
static struct {
	struct san_ulp_wr wr[MAX];
	struct san_ulp_recv recv[MAX];
	uint32_t nb_wr, nb_recv, room;
	struct san_sock_timeouts timeouts;
	uint32_t nb_timeout_changes;
} qp;

static uint32_t
post(struct san_core *core, uint32_t number, const struct san_ulp_wr *wr, uint32_t n,
     uint64_t now_ns)
{
	assert_int_equal(number, QP);
	assert_int_equal(n, 1);
	if (qp.nb_wr == qp.room)
		return 0;
	qp.wr[qp.nb_wr++] = *wr;
	return 1;
}

static uint32_t
post_recv(struct san_core *core, uint32_t number, const struct san_ulp_recv *r, uint32_t n,
	  uint64_t now_ns)
{
	assert_int_equal(number, QP);
	assert_int_equal(n, 1);
	qp.recv[qp.nb_recv++] = *r;
	return 1;
}

static void
set_timeouts(struct san_core *core, uint32_t number, const struct san_sock_timeouts *p,
	     uint64_t now_ns)
{
	assert_int_equal(number, QP);
	qp.timeouts = *p;
	qp.nb_timeout_changes++;
}

static void
setup(void)
{
	const struct san_sock_work work = {
		.post = post,
		.post_recv = post_recv,
		.set_timeouts = set_timeouts,
	};

	memset(&qp, 0, sizeof(qp));
	qp.room = MAX;
	assert_int_equal(san_sock_table_create(NULL, 4, &all), 0);
	san_sock_stream_set_work(all, &work);
	shm = aligned_alloc(4096, san_sock_shm_stream_bytes(RING, RING));
	memset(shm, 0, san_sock_shm_stream_bytes(RING, RING));
	assert_int_equal(san_sock_add(all, shm, RING, RING, 100, &id), 0);
	san_sock_stream(all, id, QP);
}

static void
setup_up(void)
{
	setup();
	san_sock_stream_up(all, id, 0);
}

static void
teardown(void)
{
	san_sock_del(all, id);
	san_sock_table_destroy(all);
	free(shm);
}

/* ---- the program ---- */

static uint8_t
byte_at(uint32_t at)
{
	return (uint8_t)(at * 7 + (at >> 9));
}

static void
ring(void)
{
	san_sock_doorbell(all, id);
	san_sock_dgram_pump(all, NULL, 0);
}

/* Write *n* bytes, for which there must be room, and ring the doorbell. */
static void
program_writes(uint32_t n)
{
	uint32_t tail = atomic_load(&shm->tx_tail);

	assert_true(tail + n - atomic_load(&shm->tx_head) <= RING);
	for (uint32_t i = 0; i < n; i++)
		san_sock_shm_tx_ring(shm, RING)[(tail + i) % RING] = byte_at(tail + i);
	atomic_store(&shm->tx_tail, tail + n);
	ring();
}

static void
program_reads(uint32_t n)
{
	uint32_t head = atomic_load(&shm->rx_head);

	assert_true(atomic_load(&shm->rx_tail) - head >= n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(san_sock_shm_rx_ring(shm)[(head + i) % RING], byte_at(head + i));
	atomic_store(&shm->rx_head, head + n);
	if (atomic_load(&shm->rx_waits) != 0)
		ring();
}

/* ---- the queue pair ---- */

static void
done(uint8_t op, uint8_t status, uint32_t bytes)
{
	const struct san_ulp_wc wc = {
		.wr_id = id,
		.qp = QP,
		.op = op,
		.status = status,
		.byte_len = bytes,
	};

	if (op == RTSAN_WC_RECV)
		qp.nb_recv = 0;
	san_sock_stream_done(all, id, &wc, 0);
}

/* Check the oldest posted send, whose bytes begin at *at*; returns its length. */
static uint32_t
sends(uint32_t at)
{
	struct san_ulp_wr wr = qp.wr[0];
	uint32_t n = 0;

	assert_true(qp.nb_wr > 0);
	assert_int_equal(wr.op, RTSAN_WR_SEND);
	for (uint32_t i = 0; i < wr.nb_sge; i++)
		for (uint32_t k = 0; k < wr.sge[i].length; k++, n++)
			assert_int_equal(((uint8_t *)wr.sge[i].addr)[k], byte_at(at + n));
	assert_int_equal(n, wr.length);
	memmove(&qp.wr[0], &qp.wr[1], --qp.nb_wr * sizeof(wr));
	done(RTSAN_WC_SEND, 0, n);
	return n;
}

static void
receives(uint32_t n)
{
	struct san_ulp_recv r = qp.recv[0];
	uint32_t at = atomic_load(&shm->rx_tail), sum = 0;

	assert_int_equal(qp.nb_recv, 1);
	for (uint32_t i = 0; i < r.nb_sge; i++)
		for (uint32_t k = 0; k < r.sge[i].length && sum < n; k++, sum++)
			((uint8_t *)r.sge[i].addr)[k] = byte_at(at + sum);
	assert_int_equal(sum, n);
	done(RTSAN_WC_RECV, 0, n);
}

static uint32_t
room_posted(void)
{
	uint32_t sum = 0;

	assert_int_equal(qp.nb_recv, 1);
	for (uint32_t i = 0; i < qp.recv[0].nb_sge; i++)
		sum += qp.recv[0].sge[i].length;
	return sum;
}

/* ---- tests ---- */

UNIT_FIXTURE(.setup = setup, .teardown = teardown);

/* The connection is up. */
#define UP_CASE(name) UNIT_CASE_IN(name, setup_up)

/* Nothing is sent before the connection is up; earlier data is sent then. */
UNIT_CASE(up__then_it_goes)
{
	program_writes(100);
	assert_int_equal(qp.nb_wr + qp.nb_recv, 0);
	san_sock_stream_up(all, id, 0);
	assert_int_equal(atomic_load(&shm->state), SAN_SOCK_UP);
	assert_int_equal(sends(0), 100);
	assert_int_equal(atomic_load(&shm->tx_head), 100);
	assert_int_equal(room_posted(), RING);
}

/* All bytes in order, whatever the sizes of sends and receives, several times round. */
UP_CASE(bytes__in_order)
{
	uint32_t sent = 0, n;

	srand(1);
	for (uint32_t i = 0; i < 500; i++) {
		n = RING - (atomic_load(&shm->tx_tail) - atomic_load(&shm->tx_head));
		program_writes(n < 9999 ? n : (uint32_t)rand() % 10000);
		while (qp.nb_wr > (uint32_t)rand() % 4)
			sent += sends(sent);
		if (qp.nb_recv != 0)
			receives(1 + (uint32_t)rand() % room_posted());
		n = atomic_load(&shm->rx_tail) - atomic_load(&shm->rx_head);
		program_reads(n != 0 ? (uint32_t)rand() % n : 0);
	}
	while (qp.nb_wr > 0)
		sent += sends(sent);
	assert_int_equal(sent, atomic_load(&shm->tx_tail));
	assert_true(sent > 20 * RING);
}

/* Data written while sends are in flight is combined. */
UP_CASE(send__few_at_a_time)
{
	for (uint32_t i = 0; i < 100; i++)
		program_writes(10);
	assert_int_equal(qp.nb_wr, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(sends(10 * i), 10);
	assert_int_equal(sends(40), 960);
}

/* No receive is posted for little room; a reader that makes room rings, and only then. */
UP_CASE(recv__waits_for_room)
{
	receives(RING - 100);
	assert_int_equal(qp.nb_recv, 0);
	assert_int_equal(atomic_load(&shm->rx_waits), 1);
	program_reads(RING / 4 - 101);
	assert_int_equal(qp.nb_recv, 0);
	program_reads(1);
	assert_int_equal(room_posted(), RING / 4);
	assert_int_equal(atomic_load(&shm->rx_waits), 0);
}

/* A waiter in the kernel is notified of data, of the end, and of room. */
UP_CASE(mirror__what_there_is)
{
	receives(1);
	assert_int_equal(san_sock_wake_next(all, &ends), -1);
	atomic_store(&shm->armed, 1);
	receives(1);
	assert_int_equal(san_sock_wake_next(all, &ends), 100);
	assert_int_equal(san_sock_wake_next(all, &ends), -1);
	program_writes(RING);
	atomic_store(&shm->full, 1);
	assert_false(san_sock_table_has_room(all));
	while (qp.nb_wr > 0)
		sends(atomic_load(&shm->tx_head));
	assert_true(san_sock_table_has_room(all));
	assert_int_equal(atomic_load(&shm->full), 0);
}

/* After shutdown() there is nothing to wait for, with room or without. (UDP-10) */
UP_CASE(room__not_behind_an_end)
{
	program_writes(RING);
	atomic_store(&shm->full, 1);
	ring();
	assert_false(san_sock_table_has_room(all));
	atomic_store(&shm->shut, SHUT_RD + 1);
	ring();
	assert_false(san_sock_table_has_room(all));
	atomic_store(&shm->shut, SHUT_WR + 1);
	ring();
	assert_true(san_sock_table_has_room(all));
	assert_int_equal(atomic_load(&shm->full), 0);
}

/* As in TCP, unless the application sets it; invalid values are limited. (UDP-12) */
UNIT_CASE(timeouts__as_it_is_asked_for)
{
	assert_int_equal(qp.nb_timeout_changes, 0);
	san_sock_stream_up(all, id, 0);
	assert_int_equal(qp.nb_timeout_changes, 1);
	assert_int_equal(qp.timeouts.timeout_ms, SAN_SOCK_TIMEOUT_MS);
	assert_int_equal(qp.timeouts.probes, 0); /* none ends it */
	program_writes(1);
	assert_int_equal(qp.nb_timeout_changes, 1);
	atomic_store(&shm->timeout_ms, 5000);
	atomic_store(&shm->idle_s, 60);
	atomic_store(&shm->every_s, 0);
	atomic_store(&shm->probes, 1000);
	program_writes(1);
	/* the application has not marked them as written */
	assert_int_equal(qp.nb_timeout_changes, 1);
	atomic_store(&shm->nb_timeout_changes, 1);
	program_writes(1);
	program_writes(1);
	assert_int_equal(qp.nb_timeout_changes, 2);
	assert_int_equal(qp.timeouts.timeout_ms, 5000);
	assert_int_equal(qp.timeouts.idle_ms, 60000);
	assert_int_equal(qp.timeouts.every_ms, 1000);
	assert_int_equal(qp.timeouts.probes, 1); /* it ends by its time-out */
	atomic_store(&shm->timeout_ms, 90000);
	atomic_store(&shm->every_s, 10);
	atomic_store(&shm->nb_timeout_changes, 2);
	program_writes(1);
	assert_int_equal(qp.timeouts.probes, 3);
	atomic_store(&shm->idle_s, 1);
	atomic_store(&shm->every_s, 1);
	atomic_store(&shm->timeout_ms, 600000);
	atomic_store(&shm->nb_timeout_changes, 4);
	program_writes(1);
	assert_in_range(qp.timeouts.probes * qp.timeouts.every_ms, 599000, 604000);
	atomic_store(&shm->timeout_ms, 0);
	atomic_store(&shm->nb_timeout_changes, 3);
	program_writes(1);
	assert_int_equal(qp.timeouts.probes, 127);
}

/* ---- ends ---- */

/* Our end follows the data written before, and the peer's end is reported after its data. */
UP_CASE(end__orderly)
{
	for (uint32_t i = 0; i < 4; i++)
		program_writes(10);
	atomic_store(&shm->shut, SHUT_WR + 1);
	program_writes(5);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(sends(10 * i), 10);
	assert_int_equal(sends(40), 5);
	assert_int_equal(qp.nb_wr, 1);
	assert_int_equal(qp.wr[0].op, SAN_WR_SHUTDOWN);
	assert_false(san_sock_stream_is_drained(all, id));
	done(RTSAN_WC_STREAM_SHUTDOWN, 0, 0);
	assert_true(san_sock_stream_is_drained(all, id));
	receives(7);
	assert_int_equal(atomic_load(&shm->fin), 0);
	done(RTSAN_WC_RECV, 0, 0);
	assert_int_equal(atomic_load(&shm->fin), 1);
	assert_int_equal(atomic_load(&shm->error), 0);
	assert_int_equal(qp.nb_recv, 0);
	assert_true(san_sock_stream_is_reset(all, id));
	program_reads(7);
	assert_false(san_sock_stream_is_reset(all, id));
}

/* When no process has it any more, it ends. */
UNIT_CASE(end__abandoned)
{
	program_writes(10);
	san_sock_stream_shut(all, id);
	san_sock_dgram_pump(all, NULL, 0);
	assert_int_equal(qp.nb_wr, 0);
	/* one that was accepted may come up a little later */
	assert_false(san_sock_stream_is_drained(all, id));
	qp.room = 0;
	san_sock_stream_up(all, id, 0);
	assert_int_equal(qp.nb_wr, 0);
	qp.room = MAX;
	san_sock_stream_shut(all, id);
	san_sock_dgram_pump(all, NULL, 0);
	assert_int_equal(sends(0), 10);
	assert_int_equal(qp.wr[0].op, SAN_WR_SHUTDOWN);
}

/* Data of an application that has ended is sent, although its doorbells are removed. */
UP_CASE(bytes__without_a_bell)
{
	atomic_store(&shm->tx_tail, 10);
	memset(san_sock_shm_tx_ring(shm, RING), 0, 10);
	san_sock_doorbell_all(all);
	san_sock_dgram_pump(all, NULL, 0);
	assert_int_equal(qp.nb_wr, 1);
	assert_int_equal(qp.wr[0].length, 10);
}

/* The kernel gets one end, once: even for a socket with unread data. */
UP_CASE(end__is_told_as_one)
{
	atomic_store(&shm->armed, 1);
	receives(9);
	assert_int_equal(san_sock_wake_next(all, &ends), 100);
	assert_false(ends);
	done(RTSAN_WC_RECV, 0, 0);
	assert_int_equal(san_sock_wake_next(all, &ends), 100);
	assert_true(ends);
	ring();
	assert_int_equal(san_sock_wake_next(all, &ends), -1);
}

/* A waiter that comes after the end is notified, too. */
UP_CASE(end__told_later)
{
	done(RTSAN_WC_RECV, 0, 0);
	assert_int_equal(san_sock_wake_next(all, &ends), -1);
	atomic_store(&shm->armed, 1);
	ring();
	assert_int_equal(san_sock_wake_next(all, &ends), 100);
	assert_true(ends);
}

/* The peer failed: reads return the earlier data, then the error; no call waits for room. */
UP_CASE(end__reset)
{
	receives(9);
	program_writes(RING);
	atomic_store(&shm->full, 1);
	atomic_store(&shm->armed, 1);
	done(RTSAN_WC_RECV, RTSAN_WC_FLUSHED, 0);
	done(RTSAN_WC_SEND, RTSAN_WC_FLUSHED, 0);
	assert_int_equal(atomic_load(&shm->state), SAN_SOCK_OVER);
	assert_int_equal(atomic_load(&shm->error), ECONNRESET);
	assert_int_equal(atomic_load(&shm->fin), 1);
	assert_int_equal(san_sock_wake_next(all, &ends), 100);
	assert_true(san_sock_table_has_room(all));
	program_reads(9);
	assert_true(san_sock_stream_is_drained(all, id));
}

/* Sends before a reset may be reported after it: there is room nevertheless. */
UP_CASE(end__reset_before_sent)
{
	program_writes(RING);
	done(RTSAN_WC_RECV, RTSAN_WC_FLUSHED, 0);
	done(RTSAN_WC_SEND, 0, RING);
	assert_int_equal(atomic_load(&shm->tx_head), atomic_load(&shm->tx_tail));
}

/* After the peer's end a lost connection is an error for senders only. */
UP_CASE(end__reset_behind_the_end)
{
	done(RTSAN_WC_RECV, 0, 0);
	program_writes(1);
	done(RTSAN_WC_SEND, RTSAN_WC_FLUSHED, 0);
	assert_int_equal(atomic_load(&shm->state), SAN_SOCK_OVER);
	assert_int_equal(atomic_load(&shm->error), EPIPE);
}

/* After the ends of both directions it is none. */
UP_CASE(end__reset_behind_both_ends)
{
	done(RTSAN_WC_RECV, 0, 0);
	atomic_store(&shm->shut, SHUT_WR + 1);
	ring();
	done(RTSAN_WC_STREAM_SHUTDOWN, RTSAN_WC_FLUSHED, 0);
	assert_int_equal(atomic_load(&shm->state), SAN_SOCK_OVER);
	assert_int_equal(atomic_load(&shm->error), 0);
}

UP_CASE(end__silence)
{
	done(RTSAN_WC_RECV, RTSAN_WC_RETRY_EXC, 0);
	assert_int_equal(atomic_load(&shm->error), ETIMEDOUT);
}

UNIT_CASE(never_up)
{
	atomic_store(&shm->armed, 1);
	san_sock_stream_over(all, id, ECONNREFUSED);
	assert_int_equal(atomic_load(&shm->state), SAN_SOCK_REFUSED);
	assert_int_equal(san_sock_wake_next(all, &ends), 100);
	san_sock_stream_up(all, id, 0);
	assert_int_equal(atomic_load(&shm->state), SAN_SOCK_REFUSED);
	assert_true(san_sock_stream_is_drained(all, id));
}

/* Data written without a ring follows the data in it, one write at a time. */
UNIT_CASE(aside__behind_the_ring)
{
	assert_false(san_sock_stream_may_append(all, id));
	program_writes(10);
	san_sock_stream_up(all, id, 0);
	assert_true(san_sock_stream_may_append(all, id));
	san_sock_stream_append(all, id, "aside", 5, 0);
	assert_false(san_sock_stream_may_append(all, id));
	program_writes(10);
	assert_int_equal(qp.nb_wr, 3);
	assert_int_equal(sends(0), 10);
	assert_memory_equal(qp.wr[0].sge[0].addr, "aside", 5);
	assert_int_equal(qp.wr[0].length, 5);
	memmove(&qp.wr[0], &qp.wr[1], --qp.nb_wr * sizeof(qp.wr[0]));
	done(RTSAN_WC_SEND, 0, 5);
	assert_int_equal(atomic_load(&shm->tx_head), 10);
	assert_true(san_sock_stream_may_append(all, id));
	assert_int_equal(sends(10), 10);
}

/* Impossible indices end the stream, and nothing beyond the ring is accessed (SYS-5). */
UP_CASE(hostile__positions)
{
	receives(10);
	assert_int_equal(qp.nb_recv, 1);
	atomic_store(&shm->tx_tail, RING + 1);
	ring();
	assert_int_equal(qp.nb_wr, 0);
	assert_int_equal(atomic_load(&shm->error), EIO);
	assert_int_equal(atomic_load(&shm->fin), 1);
	done(RTSAN_WC_RECV, 0, 10);
	assert_int_equal(atomic_load(&shm->rx_tail), 10);
}

UP_CASE(hostile__goes_back)
{
	program_writes(10);
	atomic_store(&shm->tx_tail, 5);
	ring();
	assert_int_equal(atomic_load(&shm->error), EIO);
}

UP_CASE(hostile__reads_ahead)
{
	receives(RING - 10);
	atomic_store(&shm->rx_head, RING + 10);
	ring();
	assert_int_equal(qp.nb_recv, 0);
	assert_int_equal(atomic_load(&shm->error), EIO);
}
