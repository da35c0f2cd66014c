/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Many applications of one daemon, for test_endurance.py; each is a process. They form pairs: one
 * listens, the other connects and sends. Messages are sent back, and both ends check every byte.
 * (SYS-2, SYS-5)
 *
 *   crowd SPEC PEER PAIRS CONNS ROUNDS BYTES
 *
 * PEER is the address of the listening applications. Prints the times in milliseconds that the
 * fastest and the slowest client needed for the same work, from when all were connected.
 */

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt.h"

#define PAIRS_MAX  32 /* a daemon has 64 services for all applications together */
#define TIMEOUT_MS 120000
#define RETRY_US   20000
#define AT_ONCE    8 /* connections that an application sets up at a time */
#define SLEEP_MS   50

/* Shared by the processes. */
static struct shared {
	_Atomic uint32_t nb_listening, nb_connected;
	_Atomic bool has_failed;
	_Atomic uint64_t took_ns[PAIRS_MAX];
} * shared;

/* State of one application. Each process has its own after fork(). */
static struct rtsan_ctx *ctx;
static struct rtsan_cq *cq;
static struct rtsan_mr *mr;
static const char *peer;
static uint32_t nb_pairs, nb_conns, nb_rounds, nb_bytes, pair;
static struct conn {
	struct rtsan_qp *qp;
	uint32_t index, nb_done;
	uint8_t *out, *in;
} * conns;

static void
fail(void)
{
	fprintf(stderr, "pair %u: ", pair);
	shared->has_failed = true;
}

/* All messages differ, and each word depends on the pair, the connection and the round. */
static void
fill(uint8_t *buf, uint32_t index, uint32_t round)
{
	uint64_t word = ((uint64_t)pair << 48) + ((uint64_t)index << 32) + round;

	for (uint32_t i = 0; i < nb_bytes; i++)
		buf[i] = (uint8_t)(word * (i / 8 + 1) >> (i % 8 * 8));
}

static void
check(const struct conn *c, uint32_t round)
{
	uint8_t want[65536];

	fill(want, c->index, round);
	MUST(memcmp(want, c->in, nb_bytes) == 0, "connection %u: round %u has other bytes",
	     c->index, round);
}

static void
post(struct conn *c, const void *what, bool is_recv)
{
	struct rtsan_sge sge = {(void *)(uintptr_t)what, nb_bytes, rtsan_mr_lkey(mr)};
	struct rtsan_recv_wr recv = {.wr_id = 1, .sge = &sge, .nb_sge = 1};
	struct rtsan_send_wr send = {.opcode = RTSAN_WR_SEND, .sge = &sge, .nb_sge = 1};

	CHECK((is_recv ? rtsan_post_recv(c->qp, &recv, 1) : rtsan_post_send(c->qp, &send, 1)) == 1);
}

/* Open the context. Each connection has memory to send from and to receive into. */
static void
open_all(const char *spec)
{
	CHECK(rtsan_open(spec, &ctx) == 0);
	CHECK(rtsan_cq_create(ctx, 8 * nb_conns, &cq) == 0);
	CHECK(rtsan_mr_alloc(ctx, (size_t)nb_conns * 2 * nb_bytes, 0, &mr) == 0);
	conns = calloc(nb_conns, sizeof(*conns));
	for (uint32_t i = 0; i < nb_conns; i++) {
		conns[i].index = i;
		conns[i].out = (uint8_t *)rtsan_mr_addr(mr) + (size_t)i * 2 * nb_bytes;
		conns[i].in = conns[i].out + nb_bytes;
	}
}

static void
make_qp(struct conn *c)
{
	c->qp = rt_make_qp(ctx, cq, 8, c);
	post(c, c->in, true);
}

/* Take completions, or sleep until there are some. */
static int
take(struct rtsan_wc *wc, int n)
{
	static uint64_t since;
	int got = rtsan_cq_poll(cq, wc, n);

	if (got == 0) {
		if (since == 0)
			since = rt_now_ns();
		MUST(rt_now_ns() - since <= TIMEOUT_MS * 1000000ull, "nothing completes");
		CHECK(rtsan_cq_wait(cq, SLEEP_MS) >= 0);
		return 0;
	}
	since = 0;
	for (int i = 0; i < got; i++)
		MUST(wc[i].status == RTSAN_WC_SUCCESS, "%s", rtsan_status_text(wc[i].status));
	return got;
}

/* Wait until all pairs have come to this point. */
static void
meet(const _Atomic uint32_t *nb_here)
{
	while (*nb_here < nb_pairs) {
		MUST(!shared->has_failed, "another one has failed");
		usleep(RETRY_US);
	}
}

/* ---- servers ---- */

static void
accept_all(void)
{
	struct rtsan_conn_param param = {.private_len = 0};
	struct rtsan_listener *listener;
	struct rtsan_event ev;
	uint32_t nb = 0, nb_up = 0;

	CHECK(rtsan_listen(ctx, 100 + pair, 0, (uint16_t)(nb_conns + 1), &listener) == 0);
	shared->nb_listening++;
	while (nb_up < nb_conns) {
		MUST(rtsan_event_wait(ctx, TIMEOUT_MS) == 1, "nobody connects any more: %u of %u",
		     nb_up, nb_conns);
		while (rtsan_event_poll(ctx, &ev) == 1) {
			if (ev.type == RTSAN_EV_ESTABLISHED) {
				nb_up++;
				continue;
			}
			MUST(ev.type == RTSAN_EV_CONNECT_REQUEST && nb < nb_conns, "event %d",
			     ev.type);
			memcpy(&conns[nb].index, ev.private_data, sizeof(conns[nb].index));
			make_qp(&conns[nb]);
			CHECK(rtsan_accept(ctx, ev.request, conns[nb++].qp, &param) == 0);
		}
	}
}

static void
serve(void)
{
	uint64_t left = (uint64_t)nb_conns * nb_rounds;
	struct rtsan_wc wc[64];
	struct rtsan_event ev;
	struct conn *c;
	uint32_t nb_over = 0;
	int n;

	accept_all();
	while (left > 0) {
		n = take(wc, 64);
		for (int i = 0; i < n; i++) {
			c = rtsan_qp_context(wc[i].qp);
			check(c, c->nb_done++);
			memcpy(c->out, c->in, nb_bytes);
			post(c, c->in, true);
			post(c, c->out, false);
			left--;
		}
	}
	/* the last answer may be in flight until its client has disconnected */
	while (nb_over < nb_conns && rtsan_event_wait(ctx, TIMEOUT_MS) == 1)
		while (rtsan_event_poll(ctx, &ev) == 1)
			nb_over += ev.type == RTSAN_EV_DISCONNECTED;
	MUST(nb_over == nb_conns, "only %u of %u are over", nb_over, nb_conns);
}

/* ---- clients ---- */

static void
connect_one(struct conn *c)
{
	const struct rtsan_conn_param param = {
		.private_data = &c->index, .private_len = sizeof(c->index)};

	make_qp(c);
	CHECK(rtsan_connect(c->qp, peer, 100 + pair, &param) == 0);
}

static void
connect_all(void)
{
	struct rtsan_event ev;
	uint32_t nb = 0, nb_up = 0;

	meet(&shared->nb_listening);
	while (nb_up < nb_conns) {
		while (nb < nb_conns && nb - nb_up < AT_ONCE)
			connect_one(&conns[nb++]);
		MUST(rtsan_event_wait(ctx, TIMEOUT_MS) == 1, "nobody answers: %u of %u", nb_up,
		     nb_conns);
		while (rtsan_event_poll(ctx, &ev) == 1) {
			MUST(ev.type == RTSAN_EV_ESTABLISHED, "event %d: %s", ev.type,
			     rtsan_reason_text(ev.reason));
			nb_up++;
		}
	}
	shared->nb_connected++;
	meet(&shared->nb_connected);
}

static void
ask_all(void)
{
	uint64_t left = (uint64_t)nb_conns * nb_rounds, began;
	struct rtsan_wc wc[64];
	struct conn *c;
	int n;

	connect_all();
	began = rt_now_ns();
	for (uint32_t k = 0; k < nb_conns; k++) {
		fill(conns[k].out, k, 0);
		post(&conns[k], conns[k].out, false);
	}
	while (left > 0) {
		n = take(wc, 64);
		for (int i = 0; i < n; i++) {
			c = rtsan_qp_context(wc[i].qp);
			check(c, c->nb_done++);
			left--;
			if (c->nb_done == nb_rounds)
				continue;
			post(c, c->in, true);
			fill(c->out, c->index, c->nb_done);
			post(c, c->out, false);
		}
	}
	shared->took_ns[pair] = rt_now_ns() - began;
	for (uint32_t k = 0; k < nb_conns; k++)
		rtsan_disconnect(conns[k].qp);
}

static int
run(const char *spec, bool is_client)
{
	/* the end of the first process ends all others */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rt_failing = fail;
	open_all(spec);
	if (is_client)
		ask_all();
	else
		serve();
	rtsan_close(ctx);
	return 0;
}

static void
report(void)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (uint32_t i = 0; i < nb_pairs; i++) {
		least = shared->took_ns[i] < least ? shared->took_ns[i] : least;
		most = shared->took_ns[i] > most ? shared->took_ns[i] : most;
	}
	printf("%llu %llu\n", (unsigned long long)(least / 1000000),
	       (unsigned long long)(most / 1000000));
}

int
main(int argc, char **argv)
{
	int status, failed = 0;

	if (argc != 7)
		return 2;
	peer = argv[2];
	nb_pairs = (uint32_t)atoi(argv[3]);
	nb_conns = (uint32_t)atoi(argv[4]);
	nb_rounds = (uint32_t)atoi(argv[5]);
	nb_bytes = (uint32_t)atoi(argv[6]);
	if (nb_pairs == 0 || nb_pairs > PAIRS_MAX || nb_bytes > 65536)
		return 2;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	for (uint32_t i = 0; i < 2 * nb_pairs; i++) {
		pair = i / 2;
		status = fork();
		if (status < 0)
			return 1;
		if (status == 0)
			_exit(run(argv[1], i % 2 == 1));
	}
	while (wait(&status) > 0)
		failed |= status;
	if (failed == 0)
		report();
	return failed != 0;
}
