/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Applications that share their queues with the engine. Valid entries are executed as if the queues
 * were in one process; an invalid entry ends its queue pair and nothing else. The port is a
 * loopback. (SYS-5)
 */

#include <sys/mman.h>

#include "test_engine_loop.h"

#include "core_priv.h"

#define VISIT 128 /* most entries that are taken in one visit */
#define ROUND 256 /* most entries of one application in a round */

/* ---- tests ---- */

UNIT_FIXTURE(.setup = setup, .teardown = teardown, .first = group_setup, .last = group_teardown);

UNIT_CASE(san_engine_app_drain__by_its_own_names)
{
	struct san_ulp_recv r = {.wr_id = 5, .nb_sge = 1, .sge = {part(&apps[1], 4000, 1000)}};
	struct san_ulp_wr wr = good_push();

	for (uint32_t i = 0; i < LEN; i++)
		apps[0].mem[i] = (uint8_t)(i * 7);
	post_recv(&apps[1], &r);
	post(&apps[0], &wr);
	assert_int_equal(next_wc(&apps[0]).status, SAN_ST_OK);
	assert_memory_equal(&apps[1].mem[100], apps[0].mem, 1000);
	assert_memory_equal(&apps[1].mem[1100], &apps[0].mem[2000], 2000);
	wr = (struct san_ulp_wr){
		.op = RTSAN_WR_SEND,
		.flags = RTSAN_WR_INLINE,
		.inline_len = 5,
		.length = 5,
		.data = "hello",
	};
	post(&apps[0], &wr);
	assert_int_equal(next_wc(&apps[1]).wr_id, 5);
	assert_memory_equal(&apps[1].mem[4000], "hello", 5);
	assert_int_equal(e->stats.nb_app_faults, 0);
}

/* The queue pair of application 1 has ended with the reason, and the other end is notified. */
static void
assert_fault(const char *text)
{
	struct san_core_event ev;

	for (uint32_t i = 0; i < 2; i++) {
		ev = next_event(RTSAN_EV_DISCONNECTED);
		assert_true(ev.qp == apps[0].qp || ev.qp == apps[1].qp);
	}
	assert_non_null(san_engine_lcore_qp_fault(e, apps[0].qp));
	assert_string_equal(san_engine_lcore_qp_fault(e, apps[0].qp), text);
	assert_null(san_engine_lcore_qp_fault(e, apps[1].qp));
	assert_int_equal(e->stats.nb_app_faults, 1);
	/* nothing is taken from it any more */
	ring(&apps[0]);
	san_engine_progress(port);
	assert_int_equal(e->stats.nb_app_faults, 1);
}

/* ... whose applications are replaced by new ones. */
static void
end_fault(const char *text)
{
	assert_fault(text);
	end_apps();
	setup();
}

/* The valid request, after *change*, which calls it *wr*, ends its queue pair. */
#define BAD_OF(valid, change, text)           \
	do {                                  \
		struct san_ulp_wr wr = valid; \
                                              \
		change;                       \
		post(&apps[0], &wr);          \
		end_fault(text);              \
	} while (0)

UNIT_CASE(san_engine_app_drain__malformed)
{
#define BAD(change, text) BAD_OF(good_push(), change, text)
	BAD(wr.op = 0, "unknown operation");
	BAD(wr.op = RTSAN_WR_SEND_IMM + 1, "unknown operation");
	BAD(wr.flags = 0x10, "unknown flags");
	BAD(wr.flags = RTSAN_WR_SOLICITED | RTSAN_WR_UNSOLICITED, "unknown flags");
	BAD(wr.op = SAN_WR_WAIT, "unknown operation");
	BAD(wr.nb_sge = RTSAN_SGE_MAX + 1, "more parts than an entry has");
	BAD(wr.nb_sge = 255, "more parts than an entry has");
	BAD(wr.length = 2999, "wrong length");
	BAD(wr.length = 3001, "wrong length");
	BAD((wr.flags = RTSAN_WR_INLINE, wr.inline_len = 65, wr.length = 65),
	    "no inline data of that kind");
	BAD((wr.flags = RTSAN_WR_INLINE, wr.op = RTSAN_WR_PULL, wr.inline_len = wr.length = 8),
	    "no inline data of that kind");
	BAD((wr.op = RTSAN_WR_FETCH_ADD), "atomic of another length");
	/* lengths whose sum is right only modulo 2^32 */
	BAD((wr.sge[0].length = UINT32_MAX, wr.sge[1].length = 3001), "memory outside its regions");
#undef BAD
}

/* One byte more than a request may have, although its memory has them: nobody reads it. */
UNIT_CASE(san_engine_app_drain__too_long)
{
	struct san_ulp *ulp = san_core_ulp(e->core);
	const uint32_t half = SAN_WIRE_LENGTH_MAX / 2;
	void *p = mmap(NULL, half + 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		       0);
	struct san_ulp_wr wr = good_push();
	uint32_t key;

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(san_ulp_mr_add(ulp, p, half + 1, (uintptr_t)p, 0, PKEY, &key), 0);
	assert_int_equal(san_ulp_mr_give(ulp, key, apps[0].id), 0);
	wr.sge[0] = (struct rtsan_sge){.addr = p, .length = half, .lkey = key};
	wr.sge[1] = (struct rtsan_sge){.addr = p, .length = half + 1, .lkey = key};
	wr.nb_sge = 2;
	wr.length = SAN_WIRE_LENGTH_MAX + 1;
	post(&apps[0], &wr);
	end_fault("wrong length");
	assert_int_equal(san_ulp_mr_del(ulp, key), 0);
	munmap(p, half + 1);
}

UNIT_CASE(san_engine_app_drain__memory_of_others)
{
	struct san_ulp_recv r = {.nb_sge = 1};

#define OUTSIDE(change) BAD_OF(good_push(), change, "memory outside its regions")
	/* the other application's region, by its real key and address */
	OUTSIDE(wr.sge[0] = part(&apps[1], 0, 1000));
	/* its address in the engine */
	OUTSIDE(wr.sge[0].addr = apps[0].mem);
	OUTSIDE(wr.sge[0].lkey = 0);
	OUTSIDE(wr.sge[0].lkey ^= 0x10000);
	OUTSIDE(wr.sge[0] = part(&apps[0], LEN - 999, 1000));
	OUTSIDE(wr.sge[0] = part(&apps[0], (uint32_t)-1, 1000));
	OUTSIDE(wr.sge[1].addr = (void *)(UINTPTR_MAX - 100));
#undef OUTSIDE
	r.sge[0] = part(&apps[1], 0, 10);
	post_recv(&apps[0], &r);
	assert_fault("memory outside its regions");
}

UNIT_CASE(san_engine_app_drain__index_beyond)
{
	atomic_store(&apps[0].wq->sq_tail, DEPTH + 1);
	ring(&apps[0]);
	end_fault("more entries than the ring has");
	atomic_store(&apps[0].wq->rq_tail, UINT32_MAX);
	ring(&apps[0]);
	assert_fault("more entries than the ring has");
	/* regions can still be queried */
	assert_false(san_engine_lcore_names_key(e, apps[1].key));
}

/* An application cannot keep a region of another one alive by naming it. */
UNIT_CASE(san_engine_lcore_names_key__by_others)
{
	struct san_ulp_wr wr = good_push();

	/* of zero length, so not looked up */
	wr.sge[1] = (struct rtsan_sge){.lkey = apps[1].key};
	wr.length = 1000;
	post(&apps[0], &wr);
	san_engine_progress(port);
	assert_false(san_engine_lcore_names_key(e, apps[1].key));
	assert_int_equal(next_wc(&apps[0]).status, SAN_ST_OK);
	/* in the ring, but without a doorbell */
	wr.sge[1] = part(&apps[1], 0, 100);
	apps[0].q.wq->sqe[1] = wr;
	san_spsc_push(&apps[0].q.sq, &apps[0].wq->sq_tail, 1);
	assert_false(san_engine_lcore_names_key(e, apps[1].key));
	assert_true(san_engine_lcore_names_key(e, apps[0].key));
}

/* New work cannot use a region that is being removed; remote sides still can. */
UNIT_CASE(san_ulp_mr_close__no_new_work)
{
	struct san_ulp_wr wr = good_push();

	san_ulp_mr_close(san_core_ulp(e->core), apps[1].key, true);
	post(&apps[0], &wr);
	assert_int_equal(next_wc(&apps[0]).status, SAN_ST_OK);
	san_ulp_mr_close(san_core_ulp(e->core), apps[0].key, true);
	post(&apps[0], &wr);
	assert_fault("memory outside its regions");
}

/* The peer of one application cannot access a region of another one, whatever it knows. */
UNIT_CASE(san_ulp_mr_access__of_others)
{
	struct san_ulp *ulp = san_core_ulp(e->core);
	struct san_ulp_wr wr = good_push();
	static uint8_t mem[64];
	uint32_t key;

	assert_int_equal(san_ulp_mr_add(ulp, mem, sizeof(mem), 0, RTSAN_REMOTE_PUSH, PKEY, &key),
			 0);
	assert_int_equal(san_ulp_mr_give(ulp, key, 3), 0);
	wr.rkey = key;
	wr.remote_addr = 0;
	wr.nb_sge = 1;
	wr.length = wr.sge[0].length = 64;
	post(&apps[0], &wr);
	assert_int_equal(next_wc(&apps[0]).status, SAN_ST_ACCESS);
	assert_int_equal(san_ulp_mr_give(ulp, key, 2), 0);
	post(&apps[0], &wr);
	assert_int_equal(next_wc(&apps[0]).status, SAN_ST_OK);
	assert_int_equal(san_ulp_mr_del(ulp, key), 0);
}

/*
 * After the connection has ended everything completes at once, and there is always room again.
 * Still a visit ends, and the rest is taken in the next rounds.
 */
UNIT_CASE(san_engine_app_drain__in_turn)
{
	uint32_t before, taken;

	assert_int_equal(san_core_conn_disconnect(e->core, apps[0].qp, true, e->now_ns), 0);
	next_event(RTSAN_EV_DISCONNECTED);
	next_event(RTSAN_EV_DISCONNECTED);
	for (uint32_t i = 0; i < DEPTH; i++)
		apps[0].q.rqe[i] = (struct san_ulp_recv){.wr_id = i};
	atomic_store(&apps[0].wq->rq_tail, DEPTH);
	ring(&apps[0]);
	for (uint32_t i = 0; i < DEPTH / VISIT; i++) {
		before = atomic_load(&apps[0].wq->rq_head);
		san_engine_progress(port);
		taken = atomic_load(&apps[0].wq->rq_head) - before;
		assert_int_equal(taken, VISIT);
	}
	for (uint32_t i = 0; i < DEPTH; i++)
		assert_int_equal(next_wc(&apps[0]).wr_id, i);
	assert_int_equal(e->stats.nb_app_faults, 0);
}

/* With many queue pairs an application gets no more per round than with a few. */
UNIT_CASE(san_engine_app_refill__many)
{
	struct san_engine_qp_conf conf_qp = {
		.app = 1,
		.core.qp = {apps[0].ulp_cq, apps[0].ulp_cq, .sq_depth = DEPTH, .rq_depth = DEPTH},
	};
	struct san_wq *wqs[4];
	uint32_t qps[4], i, rounds, taken, before;

	for (i = 0; i < 4; i++) {
		conf_qp.wq = wqs[i] = zeroed(san_wr_wq_bytes(DEPTH, DEPTH));
		assert_int_equal(san_engine_lcore_qp_add(e, &conf_qp, &qps[i]), 0);
		atomic_store(&wqs[i]->rq_tail, VISIT);
		san_doorbells_ring(apps[0].doorbells, san_ulp_qp_index(&e->conf.ulp, qps[i]));
	}
	for (rounds = 0, taken = 0; taken < 4 * VISIT; rounds++) {
		before = taken;
		san_engine_progress(port);
		for (i = 0, taken = 0; i < 4; i++)
			taken += atomic_load(&wqs[i]->rq_head);
		assert_in_range(taken - before, 1, ROUND);
	}
	assert_int_equal(rounds, 4 * VISIT / ROUND);
	for (i = 0; i < 4; i++)
		free(san_engine_lcore_qp_del(e, qps[i]));
}

/* RT-44: not those of another application or of a stream. */
UNIT_CASE(san_engine_lcore_qp_add__recv_from)
{
	struct san_engine_qp_conf conf_qp = {
		.app = 1,
		.core.qp = {apps[0].ulp_cq, apps[0].ulp_cq, .sq_depth = DEPTH, .rq_depth = DEPTH},
	};
	uint32_t qp, bad[] = {apps[1].qp, 99, UINT32_MAX};

	conf_qp.core.qp.shares_recvs = true;
	conf_qp.wq = zeroed(san_wr_wq_bytes(DEPTH, DEPTH));
	for (uint32_t i = 0; i < RTE_DIM(bad); i++) {
		conf_qp.core.qp.recv_from = bad[i];
		assert_int_equal(san_engine_lcore_qp_add(e, &conf_qp, &qp), -EINVAL);
	}
	conf_qp.core.qp.recv_from = apps[0].qp;
	conf_qp.is_stream = true;
	assert_int_equal(san_engine_lcore_qp_add(e, &conf_qp, &qp), -EINVAL);
	conf_qp.is_stream = false;
	e->qps[san_ulp_qp_index(&e->conf.ulp, apps[0].qp)].is_stream = true;
	assert_int_equal(san_engine_lcore_qp_add(e, &conf_qp, &qp), -EINVAL);
	e->qps[san_ulp_qp_index(&e->conf.ulp, apps[0].qp)].is_stream = false;
	assert_int_equal(san_engine_lcore_qp_add(e, &conf_qp, &qp), 0);
	free(san_engine_lcore_qp_del(e, qp));
}

/* If an application claims to have taken completions that never existed, only it gets none. */
UNIT_CASE(san_ulp_cq__head_beyond)
{
	struct san_ulp_wr wr = good_push();
	struct san_ulp_wc wc;

	atomic_store(&apps[0].cq_mem->head, 1000);
	for (uint32_t i = 0; i < 8; i++)
		post(&apps[0], &wr);
	progress(1000);
	/* with a correct index they are delivered again */
	atomic_store(&apps[0].cq_mem->head, 0);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(next_wc(&apps[0]).status, SAN_ST_OK);
	assert_int_equal(san_wr_cq_poll(&apps[0].cq, apps[0].cq_mem, &wc, 1), 0);
}

/* An application rings the doorbell of another one's queue pair, whose entries are half written. */
UNIT_CASE(san_engine_app__bell_of_another)
{
	struct san_ulp_wr wr = good_push();

	apps[0].q.wq->sqe[0] = wr;
	san_spsc_push(&apps[0].q.sq, &apps[0].wq->sq_tail, 1);
	san_doorbells_ring(apps[1].doorbells, san_ulp_qp_index(&e->conf.ulp, apps[0].qp));
	san_engine_progress(port);
	assert_int_equal(apps[0].wq->sq_head, 0);
	ring(&apps[0]);
	assert_int_equal(next_wc(&apps[0]).status, SAN_ST_OK);
	/* all doorbells at once, of queue pairs that do not exist, have no effect */
	memset((void *)apps[1].doorbells, 0xff, san_doorbells_bytes(e->conf.ulp.max_qps));
	progress(100);
	assert_int_equal(e->stats.nb_app_faults, 0);
}

/* Two applications of one port communicate without the device, which may have no link. (SYS-2) */
UNIT_CASE(san_engine_loop_once__local_packets_not_by_the_device)
{
	struct san_ulp_wr wr = good_push();
	uint64_t nb_tx = e->stats.nb_tx_pkts, nb_local = e->stats.nb_loopback;

	post(&apps[0], &wr);
	assert_int_equal(next_wc(&apps[0]).status, SAN_ST_OK);
	assert_int_equal(e->stats.nb_tx_pkts, nb_tx);
	assert_true(e->stats.nb_loopback >= nb_local + 3); /* two data packets, an ACK */
	/* a burst that this lcore receives as well takes twice as long (SYS-13) */
	assert_int_equal(e->tx_burst, ENGINE_BURST / 2);
}

/* ---- the end of a port ---- */

static void
assert_disconnected(void)
{
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(next_event(RTSAN_EV_DISCONNECTED).reason, RTSAN_R_NONE);
}

/* Work posted before is done, later work is flushed, and then both ends are notified. */
UNIT_CASE(san_engine_drain__what_was_posted)
{
	struct san_ulp_wr wr = good_push();

	/* as if it were on another host, which does not end */
	e->qps[san_ulp_qp_index(&e->conf.ulp, apps[1].qp)].app = 0;
	for (uint32_t i = 0; i < 8; i++)
		post(&apps[0], &wr);
	assert_int_equal(san_engine_drain(e, NULL), 1);
	for (uint32_t i = 0; i < 3; i++)
		post(&apps[0], &wr);
	while (san_engine_drain(e, NULL) != 0)
		san_engine_progress(port);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(next_wc(&apps[0]).status, SAN_ST_OK);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(next_wc(&apps[0]).status, RTSAN_WC_FLUSHED);
	assert_disconnected();
	assert_int_equal(e->stats.nb_app_faults, 0);
}

/* An impossible index is a fault during a drain, too; without a doorbell it is not read. */
UNIT_CASE(san_engine_drain__index_beyond)
{
	atomic_store(&apps[0].wq->sq_tail, DEPTH + 1);
	assert_int_equal(san_engine_drain(e, NULL), 2);
	ring(&apps[0]);
	assert_fault("more entries than the ring has");
	while (san_engine_drain(e, NULL) != 0)
		san_engine_progress(port);
}

UNIT_CASE(san_engine_drain_cut__at_once)
{
	struct san_ulp_wr wr = good_push();

	post(&apps[0], &wr);
	assert_int_equal(san_engine_drain(e, NULL), 2);
	san_engine_drain_cut(e, NULL);
	assert_int_equal(next_wc(&apps[0]).status, RTSAN_WC_FLUSHED);
	assert_disconnected();
}

UNIT_CASE(san_engine_loop_count__grow)
{
	uint64_t before = san_engine_loop_count(e);

	progress(2);
	assert_int_equal(san_engine_loop_count(e), before + 2);
}

/* ---- streams ---- */

/* Ten bytes. */
static struct san_ulp_wr
test_stream_send(void)
{
	return (struct san_ulp_wr){
		.wr_id = 3,
		.op = RTSAN_WR_SEND,
		.flags = RTSAN_WR_SIGNALED,
		.nb_sge = 1,
		.length = 10,
		.sge = {part(&apps[0], 0, 10)},
	};
}

static void
streams_setup(void)
{
	app_streams = true;
	setup();
}

static void
streams_teardown(void)
{
	teardown();
	app_streams = false;
}

/* Both sides use their own addresses, as with messages. (AFC-1) */
UNIT_CASE_OWN(san_engine_app_drain__stream, streams_setup, streams_teardown)
{
	struct san_ulp_recv r = {.wr_id = 5, .nb_sge = 1, .sge = {part(&apps[1], 4000, 5)}};
	struct san_ulp_wr wr = {
		.wr_id = 8,
		.op = RTSAN_WR_SEND,
		.flags = RTSAN_WR_INLINE | RTSAN_WR_OOB,
		.inline_len = 6,
		.length = 6,
		.data = "stream",
	};
	struct san_ulp_wc wc;

	r.flags = RTSAN_RECV_WAITALL;
	post_recv(&apps[1], &r);
	post(&apps[0], &wr);
	wc = next_wc(&apps[1]);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.byte_len, 5);
	assert_memory_equal(&apps[1].mem[4000], "strea", 5);
	wr = (struct san_ulp_wr){.wr_id = 9, .op = SAN_WR_URGENT, .flags = RTSAN_WR_SIGNALED};
	post(&apps[1], &wr);
	wc = next_wc(&apps[1]);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(wc.status, SAN_ST_OK);
	assert_int_equal(wc.imm, 'm');
	/* a value out of range is not a fault */
	wr.op = SAN_WR_OPTION;
	wr.imm = 77;
	post(&apps[1], &wr);
	assert_int_equal(next_wc(&apps[1]).status, RTSAN_WC_INVALID);
	assert_int_equal(e->stats.nb_app_faults, 0);
}

UNIT_CASE_OWN(san_engine_app_drain__stream_malformed, streams_setup, streams_teardown)
{
	const struct san_ulp_recv loan = {.flags = RTSAN_RECV_LOAN};

#define BAD(change, text) BAD_OF(test_stream_send(), change, text)
	BAD(wr.op = RTSAN_WR_PUSH, "no operation of streams");
	BAD(wr.op = SAN_WR_GIVE_BACK + 1, "no operation of streams");
	/* loans are not allowed: their address would be one in the engine */
	BAD((wr.op = SAN_WR_GIVE_BACK, wr.imm = 1, wr.nb_sge = 0, wr.length = 0),
	    "no operation of streams");
	BAD(wr.flags = RTSAN_WR_SOLICITED, "unknown flags");
	BAD((wr.op = SAN_WR_WAIT, wr.flags = RTSAN_WR_OOB), "unknown flags");
	BAD(wr.op = SAN_WR_SHUTDOWN, "no parts belong to that");
	BAD((wr.op = SAN_WR_CANCEL, wr.nb_sge = 0), "no parts belong to that");
	BAD(wr.sge[0] = part(&apps[1], 0, 10), "memory outside its regions");
#undef BAD
	post_recv(&apps[0], &loan);
	end_fault("unknown flags of a receive");
}

/* For the teardown, which deletes it. */
static void
qp_again(struct app *a)
{
	memset(a->wq, 0, san_wr_wq_bytes(DEPTH, DEPTH));
	app_qp_add(a);
}

/* Data that was sent arrives although its application has ended. */
UNIT_CASE_OWN(san_engine_lcore_qp_del__lingers, streams_setup, streams_teardown)
{
	struct san_ulp_recv r = {.wr_id = 5, .nb_sge = 1, .sge = {part(&apps[1], 0, 100)}};
	struct san_ulp_wr wr = test_stream_send();
	struct san_wq *wq = apps[0].wq;

	memcpy(apps[0].mem, "last words", 10);
	post(&apps[0], &wr);
	assert_int_equal(next_wc(&apps[0]).wr_id, 3);
	assert_ptr_equal(san_engine_lcore_qp_del(e, apps[0].qp), wq);
	assert_int_equal(san_core_share_use(e->core)->nb_orphans, 1);
	assert_int_equal(san_core_share_user_orphans(e->core, USER), 1);
	assert_in_range(san_core_share_use(e->core)->orphan_bytes, 1,
			san_core_share_use(e->core)->bytes - 1);
	memset(apps[0].mem, 0, 10);
	post_recv(&apps[1], &r);
	assert_int_equal(next_wc(&apps[1]).byte_len, 10);
	assert_memory_equal(apps[1].mem, "last words", 10);
	for (uint32_t i = 0; i < 1000 && san_core_share_use(e->core)->nb_orphans != 0; i++)
		san_engine_progress(port);
	assert_int_equal(san_core_share_use(e->core)->nb_orphans, 0);
	assert_int_equal(san_core_share_user_orphans(e->core, USER), 0);
	qp_again(&apps[0]);
}

/* When the port closes, orphaned streams have as much time as others; then they are ended. */
UNIT_CASE_OWN(san_engine_drain_cut__left_behind, streams_setup, streams_teardown)
{
	progress(100);
	e->qps[san_ulp_qp_index(&e->conf.ulp, apps[1].qp)].app = 0; /* as if on another host */
	assert_non_null(san_engine_lcore_qp_del(e, apps[0].qp));
	assert_int_equal(san_core_share_use(e->core)->nb_orphans, 1);
	assert_int_equal(san_engine_drain(e, NULL), 1);
	san_engine_drain_cut(e, NULL);
	san_engine_progress(port);
	assert_int_equal(san_core_share_use(e->core)->nb_orphans, 0);
	assert_int_equal(san_engine_drain(e, NULL), 0);
	qp_again(&apps[0]);
}

/* If orphaned streams use their half of the memory, the next one ends at once. */
UNIT_CASE_OWN(san_engine_lcore_qp_del__no_room_to_linger, streams_setup, streams_teardown)
{
	uint64_t *mem = &e->core->conf.stream_mem, all = *mem;

	progress(100); /* both sides know of the connection */
	*mem = san_core_share_use(e->core)->bytes;
	assert_non_null(san_engine_lcore_qp_del(e, apps[0].qp));
	assert_int_equal(san_core_share_use(e->core)->nb_orphans, 1);
	assert_non_null(san_engine_lcore_qp_del(e, apps[1].qp));
	assert_int_equal(san_core_share_use(e->core)->nb_orphans, 1);
	assert_int_equal(san_core_share_use(e->core)->nb, 1);
	while (san_core_share_use(e->core)->nb != 0) /* its peer gets a reset */
		san_engine_progress(port);
	*mem = all;
	qp_again(&apps[0]);
	qp_again(&apps[1]);
}
