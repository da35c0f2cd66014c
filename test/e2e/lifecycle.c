/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What opening, closing and destroying must leave in a program. The server takes
 * every connection, posts a receive, and publishes a region; the client does the
 * rest, opening and closing its context again and again. (SYS-2, RT-23, RT-26)
 *
 *   lifecycle server SPEC      until it is connected with service 2
 *   lifecycle client SPEC
 *
 * With the SPEC of a daemon the engine's counters and faults are not within reach: what
 * is left is looked for in the daemon, by test_daemon.py.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rtsan.h"
#include "rtsan_dpdk.h"

#define IP      "10.5.0.1"
#define REGION  100000
#define PATIENT 20 /* seconds */

static struct rtsan_ctx *ctx;
static struct rtsan_cq *cq;
static struct rtsan_qp *a;
static bool is_attached;

/* The server's region, as the client is told. */
static struct place {
	uint64_t addr;
	uint64_t rkey;
} place;

static void __attribute__((noreturn, format(printf, 2, 3)))
die(int line, const char *fmt, ...)
{
	va_list ap;
	int what;

	printf("lifecycle.c:%d: ", line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf(" (%s)\n", rtsan_error());
	if (ctx != NULL)
		for (what = RTSAN_SHOW_PORT; what <= RTSAN_SHOW_STREAM; what++)
			rtsan_dpdk_show(ctx, (enum rtsan_dpdk_show)what, stderr);
	exit(1);
}

#define CHECK(cond)                                   \
	do {                                          \
		if (!(cond))                          \
			die(__LINE__, "not: " #cond); \
	} while (0)

static time_t
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

static struct rtsan_event
event(int line, enum rtsan_event_type want)
{
	time_t until = now() + PATIENT;
	struct rtsan_event ev;

	while (rtsan_event_poll(ctx, &ev) == 0)
		if (now() > until)
			die(line, "no event %d", want);
	if (ev.type != want)
		die(line, "event %d instead of %d", ev.type, want);
	return ev;
}

static struct rtsan_wc
completion(int line)
{
	time_t until = now() + PATIENT;
	struct rtsan_wc wc;

	while (rtsan_cq_poll(cq, &wc, 1) == 0)
		if (now() > until)
			die(line, "no completion");
	return wc;
}

static uint64_t
counter(const char *name)
{
	struct rtsan_dpdk_counter c[256];
	int i, n = rtsan_dpdk_counters(ctx, c, 256);

	for (i = 0; i < n; i++)
		if (strcmp(c[i].name, name) == 0)
			return c[i].value;
	die(__LINE__, "no counter %s", name);
}

static struct rtsan_qp *
make_qp(void)
{
	struct rtsan_qp_attr attr = {.send_cq = cq, .recv_cq = cq};
	struct rtsan_qp *qp;

	CHECK(rtsan_qp_create(ctx, &attr, &qp) == 0);
	return qp;
}

static void
open_ctx(const char *spec)
{
	CHECK(rtsan_open(spec, &ctx) == 0);
	CHECK(rtsan_cq_create(ctx, 1024, &cq) == 0);
}

static void
dial(void)
{
	struct rtsan_event ev;

	a = make_qp();
	CHECK(rtsan_connect(a, IP, 1, NULL) == 0);
	CHECK(rtsan_connect(a, IP, 1, NULL) == -EISCONN);
	ev = event(__LINE__, RTSAN_EV_ESTABLISHED);
	CHECK(ev.qp == a && ev.private_len == sizeof(place));
	memcpy(&place, ev.private_data, sizeof(place));
}

/* ---- server ---- */

static void
serve_one(const struct rtsan_event *ev, struct rtsan_mr *mr)
{
	struct rtsan_sge sge = {rtsan_mr_addr(mr), 8, rtsan_mr_lkey(mr)};
	struct rtsan_recv_wr recv = {.sge = &sge, .nb_sge = 1};
	struct rtsan_conn_param param = {.private_data = &place, .private_len = sizeof(place)};
	struct rtsan_qp *qp = make_qp();

	CHECK(rtsan_post_recv(qp, &recv, 1) == 1);
	CHECK(rtsan_accept(ctx, ev->request, qp, &param) == 0);
}

/* Each was told so: by a disconnect, by the queue pair's end, by a close. */
static void
take_end(const struct rtsan_event *ev)
{
	if (ev->reason != RTSAN_R_NONE)
		die(__LINE__, "ended: %s", rtsan_reason_text(ev->reason));
	rtsan_qp_destroy(ev->qp);
}

static void
serve(const char *spec)
{
	struct rtsan_listener *work, *stop, *again;
	struct rtsan_event ev = {0};
	struct rtsan_mr *mr;
	struct rtsan_wc wc;
	int nb_open = 0;

	open_ctx(spec);
	CHECK(rtsan_mr_alloc(ctx, REGION, RTSAN_REMOTE_PUSH, &mr) == 0);
	CHECK(rtsan_listen(ctx, 1, 0, 4, &work) == 0);
	CHECK(rtsan_listen(ctx, 2, 0, 4, &stop) == 0);
	CHECK(rtsan_listen(ctx, 2, 0, 4, &again) == -EADDRINUSE);
	place.addr = (uintptr_t)rtsan_mr_addr(mr);
	place.rkey = rtsan_mr_rkey(mr);
	printf("listening\n");
	fflush(stdout);
	while (ev.type != RTSAN_EV_CONNECT_REQUEST || ev.listener == work) {
		while (rtsan_cq_poll(cq, &wc, 1) == 1)
			;
		ev.type = 0;
		if (rtsan_event_poll(ctx, &ev) == 0)
			continue;
		if (ev.type == RTSAN_EV_DISCONNECTED) {
			take_end(&ev);
			nb_open--;
		}
		if (ev.type == RTSAN_EV_CONNECT_REQUEST && ev.listener == work) {
			serve_one(&ev, mr);
			nb_open++;
		}
	}
	/* a request may overtake what ends the connection before it */
	while (nb_open-- > 0) {
		struct rtsan_event last = event(__LINE__, RTSAN_EV_DISCONNECTED);

		take_end(&last);
	}
	CHECK(rtsan_reject(ctx, ev.request, "bye", 3) == 0);
	CHECK(rtsan_reject(ctx, 12345, NULL, 0) == -ENOENT);
	rtsan_close(ctx);
}

/* ---- client ---- */

static int
post(uint8_t opcode, uint64_t id, struct rtsan_mr *mr, size_t len, uint32_t rkey)
{
	struct rtsan_sge sge = {.addr = rtsan_mr_addr(mr),
				.length = (uint32_t)len,
				.lkey = rtsan_mr_lkey(mr)};
	struct rtsan_send_wr wr = {.wr_id = id,
				   .opcode = opcode,
				   .flags = RTSAN_WR_SIGNALED,
				   .sge = &sge,
				   .nb_sge = 1,
				   .remote_addr = opcode == RTSAN_WR_SEND ? 0 : place.addr,
				   .rkey = rkey};

	return rtsan_post_send(a, &wr, 1);
}

static void
post_recvs(struct rtsan_mr *mr, int n)
{
	struct rtsan_sge sge = {rtsan_mr_addr(mr), 8, rtsan_mr_lkey(mr)};
	struct rtsan_recv_wr recv = {.wr_id = 9, .sge = &sge, .nb_sge = 1};

	while (n-- > 0)
		CHECK(rtsan_post_recv(a, &recv, 1) == 1);
}

/* While posted work names a region it stays; then it goes, and its key with it. */
static void
test_dereg(void)
{
	struct rtsan_mr *src;
	struct rtsan_wc wc;

	CHECK(rtsan_mr_alloc(ctx, REGION, 0, &src) == 0);
	CHECK(post(RTSAN_WR_PUSH, 1, src, REGION, (uint32_t)place.rkey) == 1);
	CHECK(rtsan_mr_dereg(src) == -EBUSY);
	wc = completion(__LINE__);
	CHECK(wc.wr_id == 1 && wc.status == RTSAN_WC_SUCCESS && wc.qp == a);
	CHECK(post(RTSAN_WR_SEND, 2, src, 8, 0) == 1);
	wc = completion(__LINE__);
	CHECK(wc.wr_id == 2 && wc.status == RTSAN_WC_SUCCESS);
	/* a refusal, and the connection lives on */
	CHECK(post(RTSAN_WR_PUSH, 3, src, 8, (uint32_t)place.rkey ^ 0x10000) == 1);
	wc = completion(__LINE__);
	CHECK(wc.wr_id == 3 && wc.status == RTSAN_WC_REM_KEY);
	CHECK(rtsan_mr_dereg(src) == 0);
}

/* Memory of posted work is free when rtsan_qp_destroy() returns, whatever is under way. */
static void
test_destroy_under_way(void)
{
	struct rtsan_mr *src;
	struct rtsan_wc wc;
	int i;

	CHECK(rtsan_mr_alloc(ctx, REGION, 0, &src) == 0);
	for (i = 0; i < 100; i++)
		CHECK(post(RTSAN_WR_PUSH, 1, src, REGION, (uint32_t)place.rkey) == 1);
	post_recvs(src, 50);
	for (i = 0; i < 100; i++)
		rtsan_progress(ctx);
	CHECK(rtsan_mr_dereg(src) == -EBUSY);
	CHECK(rtsan_cq_destroy(cq) == -EBUSY);
	rtsan_qp_destroy(a);
	CHECK(rtsan_mr_dereg(src) == 0);
	/* nothing of the dead one is polled */
	for (i = 0; i < 100; i++)
		CHECK(rtsan_cq_poll(cq, &wc, 1) == 0);
	CHECK(rtsan_dpdk_leaks(ctx) == 0);
}

static void
test_orderly_end(void)
{
	struct rtsan_mr *src;
	struct rtsan_event ev;
	struct rtsan_wc wc;
	int i;

	CHECK(rtsan_mr_alloc(ctx, REGION, 0, &src) == 0);
	dial();
	/* what is posted finishes first; the receive that nobody used is flushed */
	post_recvs(src, 1);
	for (i = 0; i < 20; i++)
		CHECK(post(RTSAN_WR_PUSH, 1, src, REGION, (uint32_t)place.rkey) == 1);
	rtsan_progress(ctx);
	CHECK(rtsan_disconnect(a) == 0);
	ev = event(__LINE__, RTSAN_EV_DISCONNECTED);
	CHECK(ev.qp == a);
	for (i = 0; i < 20; i++) {
		wc = completion(__LINE__);
		CHECK(wc.wr_id == 1 && wc.status == RTSAN_WC_SUCCESS);
	}
	wc = completion(__LINE__);
	CHECK(wc.wr_id == 9 && wc.status == RTSAN_WC_FLUSHED);
	CHECK(rtsan_disconnect(a) == -ENOTCONN);
	CHECK(post(RTSAN_WR_SEND, 1, src, 8, 0) == -ENOTCONN);
	CHECK(rtsan_mr_dereg(src) == 0);
	CHECK(rtsan_dpdk_leaks(ctx) == 0);
	rtsan_qp_destroy(a);
	CHECK(rtsan_cq_destroy(cq) == 0);
	CHECK(rtsan_cq_create(ctx, 1024, &cq) == 0);
}

/* Nobody has that address. */
static void
test_unreachable(void)
{
	a = make_qp();
	CHECK(rtsan_connect(a, "10.5.0.99", 1, NULL) == 0);
	event(__LINE__, RTSAN_EV_UNREACHABLE);
	rtsan_qp_destroy(a);
}

/* One EAL in a process; but a daemon takes this process any number of times. */
static void
test_second(const char *spec)
{
	struct rtsan_ctx *second;

	CHECK(rtsan_open(spec, &second) == (is_attached ? 0 : -EBUSY));
	if (is_attached)
		rtsan_close(second);
}

static void
test_impair_and_show(void)
{
	struct rtsan_dpdk_impair impair;
	FILE *f = tmpfile();
	int i;

	CHECK(rtsan_dpdk_impair_parse("drop=1", &impair) == 0);
	CHECK(rtsan_dpdk_impair(ctx, true, &impair) == 0);
	test_unreachable();
	CHECK(counter("impair_tx_dropped") > 0 && counter("drop_impaired") > 0);
	CHECK(rtsan_dpdk_impair(ctx, true, NULL) == 0);
	impair.drop = 2;
	CHECK(rtsan_dpdk_impair(ctx, true, &impair) == -EINVAL);
	for (i = RTSAN_SHOW_PORT; i <= RTSAN_SHOW_STREAM; i++) {
		long before = ftell(f);

		rtsan_dpdk_show(ctx, (enum rtsan_dpdk_show)i, f);
		CHECK(ftell(f) > before);
	}
	fclose(f);
}

/* So long that the next round of the engine leaves the port alone (engine_gate.h). */
static void
be_silent(void)
{
	struct timespec ms20 = {.tv_nsec = 20000000};

	nanosleep(&ms20, NULL);
}

static void
client(const char *spec)
{
	struct rtsan_event ev;
	int round;

	for (round = 0; round < 3; round++) {
		open_ctx(spec);
		test_second(spec);
		dial();
		test_dereg();
		test_destroy_under_way();
		test_orderly_end();
		if (is_attached)
			test_unreachable();
		else
			test_impair_and_show();
		/* closing takes everything along: a connection, its queues */
		dial();
		be_silent();
		if (round < 2)
			rtsan_close(ctx);
		if (round == 0 && !is_attached)
			CHECK(rtsan_open("dpdk:--no-pci -- ip=10.5.0.2/24", &ctx) == -EINVAL);
	}
	rtsan_qp_destroy(a);
	a = make_qp();
	CHECK(rtsan_connect(a, IP, 2, NULL) == 0);
	ev = event(__LINE__, RTSAN_EV_REJECTED);
	CHECK(ev.reason == RTSAN_R_REFUSED && memcmp(ev.private_data, "bye", 3) == 0);
	/* and it exits without closing */
}

int
main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	is_attached = strncmp(argv[2], "unix:", 5) == 0;
	if (strcmp(argv[1], "server") == 0)
		serve(argv[2]);
	else
		client(argv[2]);
	printf("lifecycle %s: ok\n", argv[1]);
	return 0;
}
