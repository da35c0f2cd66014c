/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Whatever programs have set up at a daemon must work with the next one, for test_takeover.py.
 *
 *   takeover SERVER_SPEC CLIENT_SPEC PEER ROUNDS
 *
 * Two applications in one process. In each round they set everything up and print "set up". SIGUSR1
 * means that another daemon has taken over; then they use everything and end most of it. The
 * listener and the completion queues are kept in all rounds.
 */

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "rt.h"

#define SERVICE     11
#define BYTES       4096
#define PATIENCE_MS 20000
#define ASLEEP_US   20000 /* until a waiting thread sleeps; otherwise the test checks less */
#define NB_PAIRS    4

/* Pairs of queue pairs, by the state of their connections before the restart. */
enum pair {
	IDLE,   /* connected; only a posted receive is left */
	TOLD,   /* the server has read the request and has not answered */
	UNREAD, /* the request is in the server's event ring */
	LATER,  /* connects afterwards */
};

struct side {
	struct rtsan_ctx *ctx;
	struct rtsan_cq *cq;
	struct rtsan_mr *mr;
	struct rtsan_qp *qps[NB_PAIRS];
};

static struct side server, client;
static struct rtsan_listener *listener;
static const char *peer;

/* ---- helpers ---- */

static void
make_qp(struct side *s, enum pair p)
{
	s->qps[p] = rt_make_qp(s->ctx, s->cq, 0, NULL);
}

static void
make_region(struct side *s)
{
	const uint32_t all = RTSAN_REMOTE_PUSH | RTSAN_REMOTE_PULL | RTSAN_REMOTE_ATOMIC;

	CHECK(rtsan_mr_alloc(s->ctx, BYTES, all, &s->mr) == 0);
}

static void
ask(enum pair p)
{
	make_qp(&client, p);
	CHECK(rtsan_connect(client.qps[p], peer, SERVICE, NULL) == 0);
}

static void
both_have(enum rtsan_event_type type, enum pair p)
{
	CHECK(rt_event(server.ctx, type, PATIENCE_MS).qp == server.qps[p]);
	CHECK(rt_event(client.ctx, type, PATIENCE_MS).qp == client.qps[p]);
}

static uint64_t
next_request(void)
{
	return rt_event(server.ctx, RTSAN_EV_CONNECT_REQUEST, PATIENCE_MS).request;
}

static void
accept_one(enum pair p, uint64_t request)
{
	make_qp(&server, p);
	CHECK(rtsan_accept(server.ctx, request, server.qps[p], NULL) == 0);
	both_have(RTSAN_EV_ESTABLISHED, p);
}

/* Access the server's region with its current or former key. */
static uint8_t
work(enum pair p, enum rtsan_wr_opcode op, uint64_t to, uint32_t key)
{
	const struct rtsan_send_wr wr = {
		.opcode = op,
		.flags = RTSAN_WR_SIGNALED,
		.remote_addr = to,
		.rkey = key,
		.operand = 1,
	};

	rt_post_send(client.qps[p], client.mr, op == RTSAN_WR_FETCH_ADD ? 8 : BYTES, &wr);
	return rt_wc(client.cq, PATIENCE_MS).status;
}

static void
must_work(enum pair p, enum rtsan_wr_opcode op)
{
	uint8_t status = work(p, op, (uintptr_t)rtsan_mr_addr(server.mr), rtsan_mr_rkey(server.mr));

	MUST(status == RTSAN_WC_SUCCESS, "pair %d, opcode %d: %s", p, op,
	     rtsan_status_text(status));
}

static void
fill(const struct side *s, int byte)
{
	memset(rtsan_mr_addr(s->mr), byte, BYTES);
}

static void
must_be(const struct side *s, int byte)
{
	const uint8_t *p = rtsan_mr_addr(s->mr);

	for (int i = 0; i < BYTES; i++)
		MUST(p[i] == byte, "byte %d is %d, not %d", i, p[i], byte);
}

/* ---- before ---- */

static uint64_t
set_up(void)
{
	uint64_t request;

	make_region(&server);
	make_region(&client);
	ask(IDLE);
	accept_one(IDLE, next_request());
	rt_post_recv(server.qps[IDLE], server.mr, BYTES);
	ask(TOLD);
	request = next_request();
	ask(UNREAD);
	CHECK(rtsan_event_wait(server.ctx, PATIENCE_MS) == 1);
	return request;
}

/* ---- afterwards ---- */

static void
use_region(void)
{
	fill(&client, 1);
	fill(&server, 0);
	must_work(IDLE, RTSAN_WR_PUSH);
	must_be(&server, 1);
	fill(&server, 2);
	must_work(IDLE, RTSAN_WR_PULL);
	must_be(&client, 2);
	fill(&server, 0);
	must_work(IDLE, RTSAN_WR_FETCH_ADD);
	CHECK(*(uint64_t *)rtsan_mr_addr(server.mr) == 1);
}

static void *
wait_there(void *status)
{
	*(uint8_t *)status = rt_wc(server.cq, PATIENCE_MS).status;
	return NULL;
}

/* Send one message into a posted receive, for which a thread sleeps. */
static void
send_one(enum pair p)
{
	pthread_t waiter;
	uint8_t status;

	fill(&client, 3 + (int)p);
	fill(&server, 0);
	CHECK(pthread_create(&waiter, NULL, wait_there, &status) == 0);
	usleep(ASLEEP_US);
	must_work(p, RTSAN_WR_SEND);
	pthread_join(waiter, NULL);
	MUST(status == RTSAN_WC_SUCCESS, "pair %d: receive: %s", p, rtsan_status_text(status));
	must_be(&server, 3 + (int)p);
}

static void
end_pair(enum pair p)
{
	CHECK(rtsan_disconnect(client.qps[p]) == 0);
	both_have(RTSAN_EV_DISCONNECTED, p);
	rtsan_qp_destroy(client.qps[p]);
	rtsan_qp_destroy(server.qps[p]);
}

/* The key of a deregistered region gives no access. */
static void
end_regions(void)
{
	uint64_t to = (uintptr_t)rtsan_mr_addr(server.mr);
	uint32_t key = rtsan_mr_rkey(server.mr);

	CHECK(rtsan_mr_dereg(server.mr) == 0);
	CHECK(work(IDLE, RTSAN_WR_PUSH, to, key) == RTSAN_WC_REM_ACCESS);
	end_pair(IDLE);
	CHECK(rtsan_mr_dereg(client.mr) == 0);
}

static void
use(uint64_t request)
{
	accept_one(UNREAD, next_request());
	accept_one(TOLD, request);
	ask(LATER);
	accept_one(LATER, next_request());
	use_region();
	send_one(IDLE);
	for (enum pair p = TOLD; p < NB_PAIRS; p++) {
		rt_post_recv(server.qps[p], server.mr, BYTES);
		send_one(p);
		end_pair(p);
	}
	end_regions();
}

static void
open_side(struct side *s, const char *spec)
{
	CHECK(rtsan_open(spec, &s->ctx) == 0);
	CHECK(rtsan_cq_create(s->ctx, 1024, &s->cq) == 0);
}

static void
close_side(struct side *s)
{
	CHECK(rtsan_cq_destroy(s->cq) == 0);
	rtsan_close(s->ctx);
}

int
main(int argc, char **argv)
{
	int got, rounds = argc == 5 ? atoi(argv[4]) : 0;
	uint64_t request;
	sigset_t set;

	if (rounds <= 0)
		return 2;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	open_side(&server, argv[1]);
	open_side(&client, argv[2]);
	peer = argv[3];
	CHECK(rtsan_listen(server.ctx, SERVICE, 0, 8, &listener) == 0);
	for (int i = 0; i < rounds; i++) {
		request = set_up();
		rt_say("set up %d", i);
		sigwait(&set, &got);
		use(request);
	}
	rtsan_listener_destroy(listener);
	close_side(&server);
	close_side(&client);
	puts("used");
	return 0;
}
