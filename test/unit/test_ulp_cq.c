/* SPDX-License-Identifier: BSD-3-Clause */

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "test_ulp.h"

#define DEPTH       16
#define WATCHDOG_MS 20000

UNIT_FIXTURE(.setup = test_ulp_setup, .teardown = test_ulp_close);

static void
put(struct san_ulp_cq *cq, uint64_t wr_id)
{
	struct san_ulp_wc wc = {.wr_id = wr_id};

	san_ulp_cq_put(cq, &wc);
}

UNIT_CASE(san_ulp_cq_create__bounds)
{
	struct san_ulp_cq *cq;

	assert_int_equal(san_ulp_cq_create(t.ulp, 0, &cq), -EINVAL);
	assert_int_equal(san_ulp_cq_create(t.ulp, SAN_ULP_CQ_MAX + 1, &cq), -EINVAL);
	/* two of four are there */
	assert_int_equal(san_ulp_cq_create(t.ulp, 1, &cq), 0);
	assert_int_equal(san_ulp_cq_create(t.ulp, 3, &cq), 0);
	assert_int_equal(san_ulp_cq_create(t.ulp, 1, &cq), -ENOSPC);
	assert_int_equal(san_ulp_cq_destroy(t.ulp, cq), 0);
	assert_int_equal(san_ulp_cq_create(t.ulp, 1, &cq), 0);
}

UNIT_CASE(san_ulp_cq_destroy__busy_while_used)
{
	assert_int_equal(san_ulp_cq_destroy(t.ulp, t.send_cq), -EBUSY);
	assert_int_equal(san_ulp_cq_destroy(t.ulp, t.recv_cq), -EBUSY);
	san_ulp_qp_unbind(t.ulp, t.qp);
	assert_int_equal(san_ulp_qp_destroy(t.ulp, t.qp), 0);
	assert_int_equal(san_ulp_cq_destroy(t.ulp, t.send_cq), 0);
	assert_int_equal(san_ulp_cq_destroy(t.ulp, t.recv_cq), 0);
}

/* A reservation counts like an entry: the queue cannot overrun (RT-23). */
UNIT_CASE(san_ulp_cq_reserve__never_beyond_depth)
{
	struct san_ulp_cq *cq = t.send_cq;
	struct san_ulp_wc wc[DEPTH];

	for (uint32_t i = 0; i < DEPTH; i++)
		assert_true(san_ulp_cq_reserve_recv(cq));
	assert_false(san_ulp_cq_reserve_recv(cq));
	for (uint32_t i = 0; i < DEPTH - 1; i++)
		put(cq, i);
	assert_false(san_ulp_cq_reserve_recv(cq));
	san_ulp_cq_unreserve(cq);
	assert_true(san_ulp_cq_reserve_recv(cq));
	assert_false(san_ulp_cq_reserve_recv(cq));
	assert_int_equal(san_ulp_cq_poll(cq, wc, 2), 2);
	assert_true(san_ulp_cq_reserve_recv(cq));
	assert_true(san_ulp_cq_reserve_recv(cq));
	assert_false(san_ulp_cq_reserve_recv(cq));
	for (uint32_t i = 0; i < 3; i++)
		san_ulp_cq_unreserve(cq);
}

/* If both share a queue, requests cannot take the entry that a receive needs (RT-26). */
UNIT_CASE(san_ulp_cq_reserve_send__leaves_one_for_receives)
{
	const struct san_ulp_qp_conf both = {t.send_cq, t.send_cq, 4, 4, 0};
	struct san_ulp_cq *cq = t.send_cq;
	uint32_t qp;

	assert_int_equal(san_ulp_qp_create(t.ulp, &both, &qp), 0);
	assert_int_equal(san_ulp_cq_reserve_send(cq, 2), 2);
	assert_int_equal(san_ulp_cq_reserve_send(cq, DEPTH), DEPTH - 3);
	assert_int_equal(san_ulp_cq_reserve_send(cq, 1), 0);
	assert_true(san_ulp_cq_reserve_recv(cq));
	assert_false(san_ulp_cq_reserve_recv(cq));
	san_ulp_cq_unreserve(cq);
	assert_int_equal(san_ulp_qp_destroy(t.ulp, qp), 0);
	/* it has no receives any more */
	assert_int_equal(san_ulp_cq_reserve_send(cq, 1), 1);
	for (uint32_t i = 0; i < DEPTH; i++)
		san_ulp_cq_unreserve(cq);
}

UNIT_CASE(san_ulp_cq_poll__oldest_first_over_wrap)
{
	struct san_ulp_cq *cq = t.send_cq;
	struct san_ulp_wc wc[DEPTH + 1];
	uint64_t next_in = 0, next_out = 0;
	uint32_t n;

	/* the indices begin just below 2^32 */
	atomic_store(&cq->mem->tail, 0xfffffff5);
	atomic_store(&cq->mem->head, 0xfffffff5);
	cq->q.tail = cq->q.head_seen = 0xfffffff5;
	cq->consumer.head = cq->consumer.tail_seen = 0xfffffff5;
	for (uint32_t round = 0; round < 20; round++) {
		while (san_ulp_cq_reserve_recv(cq))
			put(cq, next_in++);
		assert_int_equal(next_in - next_out, DEPTH);
		n = san_ulp_cq_poll(cq, wc, round % DEPTH);
		assert_int_equal(n, round % DEPTH);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(wc[i].wr_id, next_out++);
	}
	/* more are requested than there are: all of them */
	n = (uint32_t)(next_in - next_out);
	assert_int_equal(san_ulp_cq_poll(cq, wc, DEPTH + 1), n);
	assert_int_equal(wc[n - 1].wr_id, next_in - 1);
	assert_int_equal(san_ulp_cq_poll(cq, wc, DEPTH + 1), 0);
}

/* A queue without queue pairs moves to another lcore, with its entries. (SYS-1) */
UNIT_CASE(san_ulp_cq_join__moves)
{
	struct san_ulp_wc wc = {.wr_id = 7};
	struct san_ulp_conf conf;
	struct san_ulp_cq *cq, *full;
	struct san_ulp *other;

	test_ulp_conf(&conf);
	conf.first_qp = 8;
	assert_int_equal(san_ulp_create(&conf, &other), 0);
	assert_int_equal(san_ulp_cq_create(t.ulp, DEPTH, &cq), 0);
	assert_true(san_ulp_cq_reserve_recv(cq));
	san_ulp_cq_put(cq, &wc);
	assert_true(san_ulp_cq_is_of(t.ulp, cq));
	assert_false(san_ulp_cq_is_of(other, cq));
	assert_int_equal(san_ulp_cq_nb_qps(cq), 0);
	assert_int_equal(san_ulp_cq_leave(t.ulp, cq), 0);
	assert_int_equal(san_ulp_cq_join(other, cq), 0);
	assert_false(san_ulp_cq_is_of(t.ulp, cq));
	assert_true(san_ulp_cq_is_of(other, cq));
	san_ulp_check(t.ulp);
	san_ulp_check(other);
	assert_int_equal(san_ulp_cq_poll(cq, &wc, 1), 1);
	/* a queue in use stays, and a table takes only as many as it has places */
	assert_int_equal(san_ulp_cq_nb_qps(t.send_cq), 1);
	assert_int_equal(san_ulp_cq_leave(t.ulp, t.send_cq), -EBUSY);
	for (uint32_t i = 1; i < conf.max_cqs; i++)
		assert_int_equal(san_ulp_cq_create(other, 1, &full), 0);
	assert_int_equal(san_ulp_cq_create(t.ulp, 1, &cq), 0);
	assert_int_equal(san_ulp_cq_leave(t.ulp, cq), 0);
	assert_int_equal(san_ulp_cq_join(other, cq), -ENOSPC);
	assert_int_equal(san_ulp_cq_join(t.ulp, cq), 0);
	san_ulp_destroy(other);
}

#define NB_ENTRIES 300000

static void *
consumer(void *arg)
{
	struct san_ulp_wc wc[5];
	uint64_t next = 0;
	uint32_t n;

	while (next < NB_ENTRIES) {
		n = san_ulp_cq_poll(arg, wc, 5);
		for (uint32_t i = 0; i < n; i++, next++)
			if (wc[i].wr_id != next || wc[i].byte_len != (uint32_t)~next)
				return (void *)1;
		if (n == 0)
			sched_yield();
	}
	return NULL;
}

/* The application polls in its own thread (SYS-2). */
UNIT_CASE(san_ulp_cq_poll__from_another_thread)
{
	struct san_ulp_cq *cq = t.send_cq;
	struct san_ulp_wc wc = {0};
	pthread_t thread;
	void *failed;

	assert_int_equal(pthread_create(&thread, NULL, consumer, cq), 0);
	for (uint64_t i = 0; i < NB_ENTRIES; i++) {
		while (!san_ulp_cq_reserve_recv(cq))
			sched_yield();
		wc.wr_id = i;
		wc.byte_len = (uint32_t)~i;
		san_ulp_cq_put(cq, &wc);
	}
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
}

static void
put_one(struct san_ulp_cq *cq)
{
	assert_true(san_ulp_cq_reserve_recv(cq));
	put(cq, 1);
}

static void
poll_all(struct san_ulp_cq *cq)
{
	struct san_ulp_wc wc[DEPTH];

	while (san_ulp_cq_poll(cq, wc, DEPTH) != 0)
		;
}

/* Only an armed queue is reported, and once (AFC-19). */
UNIT_CASE(san_ulp_cq_wake_next__who_asked_once)
{
	struct san_ulp_cq *a = t.send_cq, *b = t.recv_cq;

	assert_int_equal(san_ulp_cq_waiter(a), -1);
	san_ulp_cq_watch(a, 7);
	san_ulp_cq_watch(b, 8);
	put_one(a);
	assert_int_equal(san_ulp_cq_wake_next(t.ulp), -1); /* a polls */
	assert_false(san_ulp_cq_arm(a));                   /* and there is something to poll */
	poll_all(a);
	assert_true(san_ulp_cq_arm(a));
	assert_int_equal(san_ulp_cq_wake_next(t.ulp), -1); /* there is nothing new */
	put_one(b);
	put_one(a);
	put_one(a);
	assert_int_equal(san_ulp_cq_wake_next(t.ulp), 7);
	assert_int_equal(san_ulp_cq_wake_next(t.ulp), -1);
	put_one(a);
	assert_int_equal(san_ulp_cq_wake_next(t.ulp), -1); /* it was reported */
	poll_all(b);
	assert_true(san_ulp_cq_arm(b));
	put_one(b);
	san_ulp_cq_watch(b, -1); /* it ends */
	assert_int_equal(san_ulp_cq_wake_next(t.ulp), -1);
}

/* A completion just before the queue moves is reported on the new lcore. */
UNIT_CASE(san_ulp_cq_wake_next__after_a_move)
{
	struct san_ulp_conf conf;
	struct san_ulp_cq *cq;
	struct san_ulp *other;

	test_ulp_conf(&conf);
	conf.first_qp = 8;
	assert_int_equal(san_ulp_create(&conf, &other), 0);
	assert_int_equal(san_ulp_cq_create(t.ulp, DEPTH, &cq), 0);
	san_ulp_cq_watch(cq, 9);
	assert_true(san_ulp_cq_arm(cq));
	put_one(cq);
	assert_int_equal(san_ulp_cq_leave(t.ulp, cq), 0);
	assert_int_equal(san_ulp_cq_wake_next(t.ulp), -1);
	assert_int_equal(san_ulp_cq_join(other, cq), 0);
	assert_int_equal(san_ulp_cq_wake_next(other), 9);
	san_ulp_destroy(other);
}

#define NB_NAPS 100000

/* Sleeps whenever there is nothing. */
static void *
sleeper(void *arg)
{
	struct san_ulp_cq *cq = arg;
	struct pollfd p = {.fd = san_ulp_cq_waiter(cq), .events = POLLIN};
	struct san_ulp_wc wc[5];
	uint64_t got = 0;
	eventfd_t n;

	while (got < NB_NAPS) {
		if (san_ulp_cq_arm(cq)) {
			if (poll(&p, 1, WATCHDOG_MS) != 1)
				return (void *)1; /* it was not woken */
			eventfd_read(p.fd, &n);
		}
		got += san_ulp_cq_poll(cq, wc, 5);
	}
	return NULL;
}

/* For any interleaving of the two, no wake-up is lost. */
UNIT_CASE(san_ulp_cq_wake_next__no_lost_wakeup)
{
	struct san_ulp_cq *cq = t.send_cq;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), who;
	pthread_t thread;
	void *failed;

	assert_true(fd >= 0);
	san_ulp_cq_watch(cq, fd);
	assert_int_equal(pthread_create(&thread, NULL, sleeper, cq), 0);
	for (uint64_t i = 0; i < NB_NAPS; i++) {
		while (!san_ulp_cq_reserve_recv(cq))
			sched_yield();
		put(cq, i);
		while ((who = san_ulp_cq_wake_next(t.ulp)) >= 0)
			eventfd_write(who, 1);
	}
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	close(fd);
}

/* An own queue with new entries is listed once, until it is taken. */
UNIT_CASE(san_ulp_cq_next_own__each_once)
{
	struct san_ulp_qp_conf conf = {.sq_depth = 4, .rq_depth = 4};
	struct san_ulp_cq *a, *b, *first, *second;
	struct san_ulp_wc wc;
	uint32_t qp;

	assert_int_equal(san_ulp_cq_create_own(t.ulp, 3, &a), -EINVAL);
	assert_int_equal(san_ulp_cq_create_own(t.ulp, 1, &a), -EINVAL);
	assert_int_equal(san_ulp_cq_create_own(t.ulp, SAN_ULP_CQ_MAX * 2, &a), -EINVAL);
	assert_int_equal(san_ulp_cq_create_own(t.ulp, 8, &a), 0);
	assert_int_equal(san_ulp_cq_create_own(t.ulp, 8, &b), 0);
	assert_false(san_ulp_cq_has_own(t.ulp));
	assert_null(san_ulp_cq_next_own(t.ulp));
	put_one(a);
	put_one(a);
	put_one(b);
	assert_true(san_ulp_cq_has_own(t.ulp));
	first = san_ulp_cq_next_own(t.ulp);
	second = san_ulp_cq_next_own(t.ulp);
	assert_true((first == a && second == b) || (first == b && second == a));
	assert_null(san_ulp_cq_next_own(t.ulp));
	assert_int_equal(san_ulp_cq_poll(a, &wc, 1), 1);
	put_one(a);
	assert_ptr_equal(san_ulp_cq_next_own(t.ulp), a);
	put_one(b);
	/* it moves with its entries, but not while it is in use */
	conf.send_cq = conf.recv_cq = b;
	assert_int_equal(san_ulp_qp_create(t.ulp, &conf, &qp), 0);
	san_ulp_check(t.ulp);
	assert_int_equal(san_ulp_cq_destroy(t.ulp, b), -EBUSY);
	assert_int_equal(san_ulp_qp_destroy(t.ulp, qp), 0);
	assert_int_equal(san_ulp_cq_destroy(t.ulp, b), 0);
	assert_null(san_ulp_cq_next_own(t.ulp));
}

/* Waiters are separate: a restart removes them, and an own queue wakes none. */
UNIT_CASE(san_ulp_cq_next_own__nobody_watches)
{
	struct san_ulp_cq *own;

	assert_int_equal(san_ulp_cq_create_own(t.ulp, 8, &own), 0);
	put_one(own);
	san_ulp_resume(t.ulp, &t.ulp->conf);
	assert_int_equal(san_ulp_cq_wake_next(t.ulp), -1);
	san_ulp_cq_wake_all(t.ulp);
	assert_int_equal(san_ulp_cq_wake_next(t.ulp), -1);
	assert_ptr_equal(san_ulp_cq_next_own(t.ulp), own);
}

/* A completion from outside uses an entry, and fails if the rest is reserved. */
UNIT_CASE(san_ulp_cq_give__holds_and_fills)
{
	struct san_ulp_wc wc = {.wr_id = 5};
	struct san_ulp_cq *cq;

	assert_int_equal(san_ulp_cq_create(t.ulp, 4, &cq), 0);
	san_ulp_cq_hold(cq);
	assert_int_equal(san_ulp_cq_destroy(t.ulp, cq), -EBUSY);
	assert_int_equal(san_ulp_cq_leave(t.ulp, cq), -EBUSY);
	assert_int_equal(san_ulp_cq_reserve_send(cq, 1), 1);
	assert_true(san_ulp_cq_give(cq, &wc));
	assert_true(san_ulp_cq_give(cq, &wc));
	assert_true(san_ulp_cq_give(cq, &wc));
	assert_false(san_ulp_cq_give(cq, &wc));
	san_ulp_cq_unreserve(cq);
	assert_true(san_ulp_cq_give(cq, &wc));
	assert_false(san_ulp_cq_give(cq, &wc));
	assert_int_equal(san_ulp_cq_poll(cq, &wc, 1), 1);
	assert_int_equal(wc.wr_id, 5);
	assert_true(san_ulp_cq_give(cq, &wc));
	san_ulp_check(t.ulp);
	san_ulp_cq_drop(cq);
	assert_int_equal(san_ulp_cq_destroy(t.ulp, cq), 0);
}
