/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Streams between two cores: what the core does with sessions. The tests of sessions check how they
 * move bytes. (AFC-1, AFC-2, AFC-24)
 */

#include <errno.h>

#include "pair.h"

#define LEN   100000
#define PIECE 3000 /* of a write; not a divisor of anything */
#define LIMIT (20 * SAN_NS_PER_S)

static struct streams {
	struct world *w;
	struct world_conf conf;
	struct san_stream_conf stream;
	struct san_cm_param param;
	uint32_t qa, qb;
	uint8_t *a, *b; /* LEN bytes each */
} t;

static void
setup(void)
{
	memset(&t, 0, sizeof(t));
	world_conf_default(&t.conf);
	world_param_default(&t.param);
	san_stream_conf_default(&t.stream);
	t.a = calloc(1, LEN);
	t.b = calloc(1, LEN);
}

static void
teardown(void)
{
	world_destroy(t.w);
	free(t.a);
	free(t.b);
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown);

static void
open_streams(void)
{
	t.conf.stream = &t.stream;
	t.w = world_create(&t.conf);
	world_connect(t.w, 0, 1, &t.param, &t.param, &t.qa, &t.qb);
}

static struct san_core *
core_of(uint32_t q)
{
	return t.w->node[t.w->qp[q].node].core;
}

/* Connect *q*, which may have had a connection, to a new queue pair of *node*. */
static int
connect_to(uint32_t q, uint32_t node)
{
	struct san_ip ip;

	world_ip(t.w, node, &ip);
	t.w->qp[q].disconnected = t.w->qp[q].established = false;
	return san_core_conn_connect(core_of(q), t.w->qp[q].qp, &ip, 7, &t.param, t.w->now_ns);
}

/* The next completion of *q*. */
static struct san_ulp_wc
next(uint32_t q, bool recv)
{
	struct san_ulp_wc wc;

	assert_true(world_wait(t.w, q, recv, &wc, LIMIT));
	return wc;
}

static void
post_write(uint32_t q, const uint8_t *buf, uint32_t len, uint8_t flags)
{
	struct san_ulp_wr wr;

	world_wr(&wr, RTSAN_WR_SEND, (void *)(uintptr_t)buf, len, 0, 0, 1, 0);
	wr.flags = flags;
	world_post(t.w, q, &wr);
}

static void
write_all(uint32_t q, const uint8_t *buf, uint32_t len)
{
	uint32_t n;

	for (uint32_t at = 0; at < len; at += n) {
		n = RTE_MIN(len - at, (uint32_t)PIECE);
		post_write(q, buf + at, n, at + n == len ? RTSAN_WR_SIGNALED : 0);
	}
}

/* Bytes of one receive; 0: the end. */
static uint32_t
read_some(uint32_t q, uint8_t *buf, uint32_t len)
{
	struct san_ulp_wc wc;

	world_post_recv(t.w, q, buf, len, 7);
	world_wait_ok(t.w, q, true, &wc, LIMIT);
	assert_int_equal(wc.op, RTSAN_WC_RECV);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.qp, t.w->qp[q].qp);
	return wc.byte_len;
}

static void
read_all(uint32_t q, uint8_t *buf, uint32_t len)
{
	uint32_t n;

	for (uint32_t at = 0; at < len; at += n) {
		n = read_some(q, buf + at, len - at);
		assert_true(n > 0);
	}
}

static void
transfer(uint32_t from, uint32_t to, uint64_t seed)
{
	struct san_ulp_wc wc;

	world_pattern(t.a, LEN, seed);
	memset(t.b, 0, LEN);
	write_all(from, t.a, LEN);
	read_all(to, t.b, LEN);
	assert_true(world_pattern_ok(t.b, LEN, seed));
	world_wait_ok(t.w, from, false, &wc, LIMIT);
	assert_int_equal(wc.op, RTSAN_WC_SEND);
	assert_int_equal(wc.wr_id, 1);
}

static void
both_ways(const struct world_link *link)
{
	if (link != NULL)
		t.conf.link = *link;
	open_streams();
	assert_int_equal(san_core_share_use(core_of(t.qa))->nb, 1);
	transfer(t.qa, t.qb, 1);
	transfer(t.qb, t.qa, 2);
	world_disconnect(t.w, t.qa, t.qb);
}

UNIT_CASE(sim_stream__both_ways)
{
	both_ways(NULL);
}

UNIT_CASE(sim_stream__bad_link)
{
	struct world_conf bad;

	world_conf_bad_link(&bad, 3);
	both_ways(&bad.link);
}

/* A stream and a queue pair on the same hosts do not affect each other. */
UNIT_CASE(sim_stream__beside_others)
{
	uint32_t pa, pb;

	open_streams();
	t.w->conf.stream = NULL;
	world_connect(t.w, 0, 1, &t.param, &t.param, &pa, &pb);
	world_post_recv(t.w, pb, t.b, 10, 3);
	post_write(pa, t.a, 10, RTSAN_WR_SIGNALED);
	assert_int_equal(next(pb, true).byte_len, 10);
	next(pa, false);
	assert_null(san_core_stream(core_of(pa), t.w->qp[pa].qp));
	transfer(t.qa, t.qb, 4);
	world_disconnect(t.w, pa, pb);
	world_qp_destroy(t.w, pa);
	world_qp_destroy(t.w, pb);
	t.w->conf.stream = &t.stream;
	world_disconnect(t.w, t.qa, t.qb);
}

/* AFC-2: a stream does not connect to a plain queue pair. */
UNIT_CASE(sim_stream__other_kind)
{
	struct world_node *n;
	uint32_t qa, stream, plain;

	t.w = world_create(&t.conf);
	n = &t.w->node[1];
	assert_int_equal(san_cm_listen(san_core_cm(n->core), 7, t.param.pkey, 4, 0), 0);
	t.w->conf.stream = &t.stream;
	qa = world_qp_create(t.w, 0);
	stream = world_qp_create(t.w, 1);
	t.w->conf.stream = NULL;
	plain = world_qp_create(t.w, 1);
	assert_int_equal(connect_to(qa, 1), 0);
	world_run_for(t.w, SAN_NS_PER_MS);
	assert_true(n->has_request && n->request.stream);
	assert_int_equal(san_core_conn_accept(n->core, n->request.request, t.w->qp[plain].qp,
					      &t.param, t.w->now_ns),
			 -EPROTOTYPE);
	assert_int_equal(san_core_conn_accept(n->core, n->request.request, t.w->qp[stream].qp,
					      &t.param, t.w->now_ns),
			 0);
	world_run_for(t.w, SAN_NS_PER_MS);
	assert_true(t.w->qp[qa].established && t.w->qp[stream].established);
	world_disconnect(t.w, qa, stream);
	world_qp_destroy(t.w, plain);
	t.w->conf.stream = &t.stream;
}

/* AFC-25: a stream needs an ordered connection. */
UNIT_CASE(sim_stream__must_be_ordered)
{
	uint32_t q;

	t.conf.stream = &t.stream;
	t.w = world_create(&t.conf);
	q = world_qp_create(t.w, 0);
	t.param.relaxed = true;
	assert_int_equal(connect_to(q, 1), -EINVAL);
	t.param.relaxed = t.param.ordered = false;
	assert_int_equal(connect_to(q, 1), -EINVAL);
}

/* All data posted before a disconnect arrives, then the end, on a bad link, too. */
UNIT_CASE(sim_stream__disconnect_after_all)
{
	struct world_conf bad;

	world_conf_bad_link(&bad, 5);
	t.conf.link = bad.link;
	open_streams();
	world_pattern(t.a, LEN, 9);
	write_all(t.qa, t.a, LEN);
	assert_int_equal(san_core_conn_disconnect(core_of(t.qa), t.w->qp[t.qa].qp, false,
						  t.w->now_ns),
			 0);
	read_all(t.qb, t.b, LEN);
	assert_true(world_pattern_ok(t.b, LEN, 9));
	assert_int_equal(read_some(t.qb, t.b, 1), 0);
	world_run_for(t.w, SAN_NS_PER_S);
	assert_true(t.w->qp[t.qa].disconnected && t.w->qp[t.qb].disconnected);
}

/* Data received before the connection ended is read after it, then the end. */
UNIT_CASE(sim_stream__read_after_the_end)
{
	open_streams();
	world_pattern(t.a, 1000, 8);
	write_all(t.qa, t.a, 1000);
	world_disconnect(t.w, t.qa, t.qb);
	read_all(t.qb, t.b, 1000);
	assert_true(world_pattern_ok(t.b, 1000, 8));
	assert_int_equal(read_some(t.qb, t.b, 1), 0);
}

static void
shut(uint32_t q)
{
	struct san_ulp_wr wr;

	world_wr(&wr, SAN_WR_SHUTDOWN, NULL, 0, 0, 0, 2, 0);
	world_post(t.w, q, &wr);
}

/* AFC-1: one direction may continue when the other one is shut; after both the connection ends. */
UNIT_CASE(sim_stream__half_close)
{
	struct san_ulp_wc wc;

	open_streams();
	shut(t.qa);
	wc = next(t.qa, false);
	assert_int_equal(wc.op, RTSAN_WC_STREAM_SHUTDOWN);
	assert_int_equal(wc.status, SAN_ST_OK);
	assert_int_equal(read_some(t.qb, t.b, 10), 0);
	transfer(t.qb, t.qa, 6);
	assert_false(t.w->qp[t.qa].disconnected);
	shut(t.qb);
	assert_int_equal(read_some(t.qa, t.a, 10), 0);
	world_run_for(t.w, SAN_NS_PER_S);
	assert_true(t.w->qp[t.qa].disconnected && t.w->qp[t.qb].disconnected);
}

/* Fill the queue completely. */
static void
fill_queue(struct san_ulp_cq *cq)
{
	const struct san_ulp_wc other = {.wr_id = 99};

	for (uint32_t i = 0; i < 2 * t.conf.sq_depth; i++)
		assert_true(san_ulp_cq_give(cq, &other));
	assert_false(san_ulp_cq_give(cq, &other));
}

/* Send into a posted receive, at congestion level *level*; returns the solicited pushes. */
static uint64_t
written(uint32_t len, uint32_t level)
{
	const struct san_tl *tl = san_core_tl(core_of(t.qa));
	uint64_t before = tl->stats.nb_push_solicited;

	world_post_recv(t.w, t.qb, t.b, len, 7);
	world_run_for(t.w, SAN_NS_PER_MS);
	for (uint32_t i = 0; i < tl->pdl->conf.max_conns; i++)
		tl->pdl->conns[i].cc.level = level;
	post_write(t.qa, t.a, len, RTSAN_WR_SIGNALED);
	assert_int_equal(next(t.qb, true).byte_len, len);
	next(t.qa, false);
	return tl->stats.nb_push_solicited - before;
}

/*
 * A write requests a grant from four times the usual length on, because its buffer was advertised;
 * from the usual length on if the path is congested. (RT-12)
 */
UNIT_CASE(sim_stream__asks_for_grants)
{
	struct san_stream_view v;
	const struct san_tl_conf *tl;

	t.stream.mode = SAN_SM_LARGE_RECV;
	open_streams();
	tl = &san_core_tl(core_of(t.qa))->conf;
	assert_int_equal(written(4 * tl->solicit_len - 1, 0), 0);
	assert_int_equal(written(4 * tl->solicit_len, 0), 1);
	assert_int_equal(written(tl->solicit_len, tl->solicit_level - 1), 0);
	/* the message that reports its end is solicited, too */
	assert_int_equal(written(tl->solicit_len, tl->solicit_level), 2);
	san_stream_show_view(san_core_stream(core_of(t.qa), t.w->qp[t.qa].qp), &v);
	assert_int_equal(v.stats.tx.message, 0);
	world_disconnect(t.w, t.qa, t.qb);
}

/* How often the core of *q* asks to be called, in 10 ms. */
static uint32_t
wakes_of(uint32_t q)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		world_run_for(t.w, 10 * SAN_NS_PER_US);
		n += san_core_deadline_ns(core_of(q)) <= t.w->now_ns + 10 * SAN_NS_PER_US;
	}
	return n;
}

/*
 * Completions that find the queue full wait until it is polled; none is lost. A queue that is not
 * polled for long is checked less and less often, so that it costs the lcore little.
 */
UNIT_CASE(sim_stream__full_queue)
{
	struct san_ulp_wc wc;

	open_streams();
	fill_queue(t.w->qp[t.qa].send_cq);
	for (uint32_t i = 0; i < 10; i++)
		post_write(t.qa, t.a, 100, RTSAN_WR_SIGNALED);
	read_all(t.qb, t.b, 1000);
	world_run_for(t.w, SAN_NS_PER_MS);
	world_run_for(t.w, 5 * SAN_NS_PER_MS);
	assert_in_range(wakes_of(t.qa), 8, 40);
	for (uint32_t i = 0; i < 2 * t.conf.sq_depth; i++)
		assert_int_equal(next(t.qa, false).wr_id, 99);
	for (uint32_t i = 0; i < 10; i++) {
		wc = next(t.qa, false);
		assert_int_equal(wc.wr_id, 1);
		assert_int_equal(wc.op, RTSAN_WC_SEND);
	}
	world_disconnect(t.w, t.qa, t.qb);
}

/*
 * A full queue does not block the other one: an application that polls only that one gets its
 * completions.
 */
UNIT_CASE(sim_stream__full_queue_beside)
{
	struct san_ulp_wc wc;

	open_streams();
	fill_queue(t.w->qp[t.qa].send_cq);
	fill_queue(t.w->qp[t.qb].recv_cq);
	world_pattern(t.a, 200, 13);
	post_write(t.qa, t.a, 100, RTSAN_WR_SIGNALED);
	world_post_recv(t.w, t.qb, t.b, 100, 7);
	world_run_for(t.w, SAN_NS_PER_MS);
	post_write(t.qb, t.a, 200, RTSAN_WR_SIGNALED);
	read_all(t.qa, t.b + 100, 200);
	assert_true(world_pattern_ok(t.b + 100, 200, 13));
	assert_int_equal(next(t.qb, false).op, RTSAN_WC_SEND);
	while (world_wait(t.w, t.qb, true, &wc, LIMIT) && wc.wr_id == 99)
		;
	assert_int_equal(wc.op, RTSAN_WC_RECV);
	assert_int_equal(wc.byte_len, 100);
	while (world_wait(t.w, t.qa, false, &wc, LIMIT) && wc.wr_id == 99)
		;
	assert_int_equal(wc.op, RTSAN_WC_SEND);
	world_disconnect(t.w, t.qa, t.qb);
}

/* After the death of the peer all posted work completes, and the queue pair can connect again. */
UNIT_CASE(sim_stream__peer_gone)
{
	struct san_ulp_wc wc;

	open_streams();
	for (uint32_t i = 0; i < 3; i++)
		world_post_recv(t.w, t.qa, t.a, 100, i);
	world_node_kill(t.w, 1);
	t.w->qp[t.qb].send_cq = NULL;
	for (uint32_t i = 0; i < 3; i++) {
		wc = next(t.qa, true);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status, RTSAN_WC_RETRY_EXC);
	}
	world_run_for(t.w, SAN_NS_PER_MS);
	assert_true(t.w->qp[t.qa].disconnected);
	world_node_start(t.w, 1);
	assert_int_equal(san_cm_listen(san_core_cm(t.w->node[1].core), 7, t.param.pkey, 4, 0), 0);
	t.qb = t.w->nb_qps;
	assert_int_equal(connect_to(t.qa, 1), 0);
	world_run_for(t.w, SAN_NS_PER_S);
	assert_true(t.w->qp[t.qa].established && t.w->qp[t.qb].established);
	transfer(t.qa, t.qb, 11);
	world_disconnect(t.w, t.qa, t.qb);
}

/* RT-43: work posted between two connections completes, and does not belong to the next one. */
UNIT_CASE(sim_stream__posted_between)
{
	struct san_ulp_wc wc;

	open_streams();
	world_disconnect(t.w, t.qa, t.qb);
	post_write(t.qa, t.a, 100, RTSAN_WR_SIGNALED); /* before it has seen the end */
	assert_true(san_ulp_cq_poll(t.w->qp[t.qa].send_cq, &wc, 1) == 1);
	assert_int_equal(wc.status, RTSAN_WC_FLUSHED);
	world_post_recv(t.w, t.qa, t.a, 100, 5);
	t.qb = t.w->nb_qps;
	assert_int_equal(connect_to(t.qa, 1), 0);
	assert_true(san_ulp_cq_poll(t.w->qp[t.qa].recv_cq, &wc, 1) == 1 && wc.wr_id == 5);
	world_run_for(t.w, SAN_NS_PER_S);
	world_disconnect(t.w, t.qa, t.qb);
}

static void
give_back(uint32_t q, uint32_t loan)
{
	struct san_ulp_wc wc;
	struct san_ulp_wr wr;

	world_wr(&wr, SAN_WR_GIVE_BACK, NULL, 0, 0, 0, 3, RTSAN_WR_SIGNALED);
	wr.imm = loan;
	world_post(t.w, q, &wr);
	assert_true(world_wait(t.w, q, false, &wc, LIMIT));
	assert_int_equal(wc.op, RTSAN_WC_STREAM_GIVE_BACK);
	assert_int_equal(wc.status, SAN_ST_OK);
}

/* AFC-1: a loan outlives its connection; until it is given back there is no next connection. */
UNIT_CASE(sim_stream__lent_after_the_end)
{
	const struct san_ulp_recv r = {.wr_id = 7, .flags = RTSAN_RECV_LOAN};
	struct san_ulp_wc wc;

	open_streams();
	world_pattern(t.a, 500, 14);
	post_write(t.qa, t.a, 500, RTSAN_WR_SIGNALED);
	assert_int_equal(san_core_post_recv(core_of(t.qb), t.w->qp[t.qb].qp, &r, 1, t.w->now_ns),
			 1);
	assert_true(world_wait(t.w, t.qb, true, &wc, LIMIT));
	assert_int_equal(wc.byte_len, 500);
	world_disconnect(t.w, t.qa, t.qb);
	assert_true(world_pattern_ok(wc.loan, 500, 14));
	assert_int_equal(connect_to(t.qb, 0), -EBUSY);
	assert_true(world_pattern_ok(wc.loan, 500, 14));
	give_back(t.qb, wc.imm);
	assert_int_equal(connect_to(t.qb, 0), 0);
	world_run_for(t.w, SAN_NS_PER_S);
}

/* An invalid message of the session ends the connection, and the applications get the reason. */
UNIT_CASE(sim_stream__broken_peer)
{
	static uint8_t junk[3] = {2, 0xff, 0xff};
	struct san_ulp_wr wr;

	open_streams();
	world_run_for(t.w, SAN_NS_PER_MS);
	world_post_recv(t.w, t.qb, t.b, 100, 5);
	world_wr(&wr, RTSAN_WR_SEND, junk, sizeof(junk), 0, 0, 0, 0);
	wr.flags = 0;
	assert_int_equal(san_ulp_wr_post(san_core_ulp(core_of(t.qa)), t.w->qp[t.qa].qp, &wr, 1,
					 t.w->now_ns),
			 1);
	assert_int_equal(next(t.qb, true).status, RTSAN_WC_PROTOCOL);
	world_run_for(t.w, SAN_NS_PER_MS);
	assert_true(t.w->qp[t.qa].disconnected && t.w->qp[t.qb].disconnected);
}

/* The application ends, its data is still delivered, and then nothing is left. */
UNIT_CASE(sim_stream__orphan)
{
	struct san_core *core;

	open_streams();
	core = core_of(t.qa);
	world_pattern(t.a, 500, 12);
	post_write(t.qa, t.a, 500, RTSAN_WR_SIGNALED);
	next(t.qa, false);
	t.w->node[1].paused_until_ns = t.w->now_ns + SAN_NS_PER_MS;
	assert_true(san_core_stream_orphan(core, t.w->qp[t.qa].qp, t.w->now_ns));
	memset(t.a, 0, 500);
	assert_false(san_core_stream_orphan(core, t.w->qp[t.qa].qp, t.w->now_ns));
	assert_int_equal(san_core_share_use(core)->nb_orphans, 1);
	/* the application may use its queues again */
	assert_int_equal(san_ulp_cq_destroy(san_core_ulp(core), t.w->qp[t.qa].send_cq), 0);
	assert_int_equal(san_ulp_cq_destroy(san_core_ulp(core), t.w->qp[t.qa].recv_cq), 0);
	t.w->qp[t.qa].send_cq = NULL;
	read_all(t.qb, t.b, 500);
	assert_true(world_pattern_ok(t.b, 500, 12));
	assert_int_equal(read_some(t.qb, t.b, 1), 0);
	world_run_for(t.w, SAN_NS_PER_S);
	assert_int_equal(san_core_share_use(core)->nb, 0);
	assert_int_equal(san_core_share_use(core)->nb_orphans, 0);
}

static void
tune_linger(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->linger_ns = SAN_NS_PER_S;
}

/* An orphan does not wait forever for a peer that does not read. */
UNIT_CASE(sim_stream__orphan_ends)
{
	struct san_core *core;
	uint64_t end_ns;

	t.conf.tune = tune_linger;
	open_streams();
	core = core_of(t.qa);
	world_run_for(t.w, SAN_NS_PER_MS);
	t.w->node[1].paused_until_ns = t.w->now_ns + 100 * SAN_NS_PER_S;
	end_ns = t.w->now_ns + SAN_NS_PER_S;
	assert_true(san_core_stream_orphan(core, t.w->qp[t.qa].qp, t.w->now_ns));
	world_run_for(t.w, SAN_NS_PER_S - 10 * SAN_NS_PER_MS);
	assert_int_equal(san_core_share_use(core)->nb, 1);
	while (san_core_share_use(core)->nb != 0) {
		assert_true(t.w->now_ns < end_ns + SAN_NS_PER_MS);
		world_step(t.w);
	}
	t.w->node[1].paused_until_ns = 0;
}

static void
tune_small(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->stream_mem = 256 << 10;
}

/* The memory of sessions is limited, and a stream that gets none leaks nothing. */
UNIT_CASE(sim_stream__no_memory)
{
	struct san_core_stream_conf conf = {.qp = {.sq_depth = 16, .rq_depth = 16}};
	struct san_core *core;
	uint32_t q, qp, nb;
	int rc;

	t.conf.tune = tune_small;
	t.w = world_create(&t.conf);
	core = t.w->node[0].core;
	q = world_qp_create(t.w, 0);
	conf.qp.send_cq = t.w->qp[q].send_cq;
	conf.qp.recv_cq = t.w->qp[q].recv_cq;
	conf.stream = t.stream;
	conf.stream.nb_recv = 1;
	assert_int_equal(san_core_stream_create(core, &conf, t.w->now_ns, &qp), -EINVAL);
	conf.stream = t.stream;
	conf.qp.recv_cq = NULL;
	assert_int_equal(san_core_stream_create(core, &conf, t.w->now_ns, &qp), -EINVAL);
	conf.qp.recv_cq = t.w->qp[q].recv_cq;
	for (nb = 0; (rc = san_core_stream_create(core, &conf, t.w->now_ns, &qp)) == 0; nb++)
		;
	assert_int_equal(rc, -ENOMEM);
	assert_int_equal(san_core_share_use(core)->nb, nb);
	san_core_check(core);
	world_node_kill(t.w, 0);
	t.w->qp[q].send_cq = NULL;
}

/* A stream uses the memory that was predicted: for its session and its queue pair. */
UNIT_CASE(sim_stream__bytes)
{
	struct san_core_stream_conf conf = {.qp = {.sq_depth = 16, .rq_depth = 16}, .user = 1};
	uint64_t session, own;
	struct san_core *core;
	uint32_t q, qp;

	t.w = world_create(&t.conf);
	core = t.w->node[0].core;
	q = world_qp_create(t.w, 0);
	conf.qp.send_cq = t.w->qp[q].send_cq;
	conf.qp.recv_cq = t.w->qp[q].recv_cq;
	conf.stream = t.stream;
	conf.stream.sq_depth = conf.stream.rq_depth = 16;
	conf.stream.msg_max = conf.stream.msg_size;
	assert_int_equal(san_core_stream_create(core, &conf, t.w->now_ns, &qp), 0);
	session = san_stream_bytes_max(&conf.stream) / 2; /* it includes the next one */
	own = san_core_share_use(core)->bytes - session;
	assert_true(own > san_ulp_qp_bytes(64, 32) + san_ulp_cq_own_bytes(128));
	assert_int_equal(own + 2 * session, san_core_stream_bytes_max(&conf.stream));
	san_core_check(core);
	assert_int_equal(san_core_stream_destroy(core, qp), 0);
	assert_int_equal(san_core_share_use(core)->bytes, 0);
}

/* Another process continues with a parked core: the streams lose nothing. */
UNIT_CASE(sim_stream__park)
{
	struct san_core_conf conf;

	open_streams();
	transfer(t.qa, t.qb, 14);
	world_node_conf(t.w, 0, &conf);
	world_pattern(t.a, LEN, 15);
	write_all(t.qa, t.a, LEN);
	san_core_park(t.w->node[0].core, t.w->now_ns);
	assert_int_equal(san_core_park_resume(t.w->node[0].core, &conf), 0);
	read_all(t.qb, t.b, LEN);
	assert_true(world_pattern_ok(t.b, LEN, 15));
	world_disconnect(t.w, t.qa, t.qb);
}
