/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A stream that is received by loans only: between queue pairs, then between streams, of one
 * program to its own address. If the engine is in another process, each call returns that there are
 * no loans, and has no effect. (AFC-1, AFC-27)
 *
 *   loans SPEC ADDRESS
 *
 * The engine has an lcore of its own, or is the daemon's.
 */

#include <pthread.h>

#include "rt.h"

#define SERVICE    98
#define TIMEOUT_MS 20000
#define MUCH       3000000u
#define PIECE      7001 /* bytes of a send; not a round number */
#define HELD       31   /* loans held at a time; nb_store is 32 */
#define LAST       100  /* bytes that are read after the end of the connection */

/* Values of wr_id. */
enum work {
	WORK_SEND = 1,
	WORK_LOAN,
	WORK_BACK,
};

static struct rtsan_ctx *ctx;
static struct rtsan_listener *listener;
static struct rtsan_cq *cq[2];
static struct rtsan_qp *qp[2]; /* sender, receiver */
static const char *address;
static uint8_t sent[MUCH + LAST];

static uint8_t
pattern(size_t at)
{
	return (uint8_t)(at * 41 + (at >> 10));
}

static void
check_bytes(const uint8_t *bytes, size_t at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		CHECK(bytes[i] == pattern(at + i));
}

/* ---- queue pairs ---- */

static struct rtsan_wc
next_wc(int i, uint64_t work)
{
	struct rtsan_wc wc = rt_wc(cq[i], TIMEOUT_MS);

	CHECK(wc.wr_id == work);
	return wc;
}

static void
open_pair(void)
{
	static const struct rtsan_stream_attr stream;
	struct rtsan_qp_attr attr = {.stream = &stream};
	struct rtsan_event ev;

	for (int i = 0; i < 2; i++) {
		CHECK(rtsan_cq_create(ctx, 256, &cq[i]) == 0);
		attr.send_cq = attr.recv_cq = cq[i];
		CHECK(rtsan_qp_create(ctx, &attr, &qp[i]) == 0);
	}
	CHECK(rtsan_connect(qp[0], address, SERVICE, NULL) == 0);
	ev = rt_event(ctx, RTSAN_EV_CONNECT_REQUEST, TIMEOUT_MS);
	CHECK(rtsan_accept(ctx, ev.request, qp[1], NULL) == 0);
	rt_event(ctx, RTSAN_EV_ESTABLISHED, TIMEOUT_MS);
	rt_event(ctx, RTSAN_EV_ESTABLISHED, TIMEOUT_MS);
}

static void
close_pair(void)
{
	for (int i = 0; i < 2; i++) {
		rtsan_qp_destroy(qp[i]);
		CHECK(rtsan_cq_destroy(cq[i]) == 0);
	}
}

static void
post_send(size_t at, size_t len)
{
	struct rtsan_sge sge = {.addr = sent + at, .length = (uint32_t)len};
	const struct rtsan_send_wr wr = {
		.wr_id = WORK_SEND,
		.opcode = RTSAN_WR_SEND,
		.flags = RTSAN_WR_SIGNALED,
		.sge = &sge,
		.nb_sge = 1,
	};

	CHECK(rtsan_post_send(qp[0], &wr, 1) == 1);
}

/* Borrow the next bytes; none at the end. */
static struct rtsan_wc
borrow(void)
{
	const struct rtsan_recv_wr wr = {.wr_id = WORK_LOAN, .flags = RTSAN_RECV_LOAN};
	struct rtsan_wc wc;

	CHECK(rtsan_post_recv(qp[1], &wr, 1) == 1);
	wc = next_wc(1, WORK_LOAN);
	CHECK(wc.opcode == RTSAN_WC_RECV && wc.status == RTSAN_WC_SUCCESS);
	CHECK(wc.has_imm == (wc.byte_len != 0) && (wc.loan != NULL) == wc.has_imm);
	return wc;
}

static void
give_back(uint32_t loan, uint8_t status)
{
	struct rtsan_wc wc;

	CHECK(rtsan_stream_give_back(qp[1], loan, WORK_BACK) == 0);
	wc = next_wc(1, WORK_BACK);
	CHECK(wc.opcode == RTSAN_WC_STREAM_GIVE_BACK && wc.status == status);
}

/* Hold as many loans as allowed, check them again, and return first every other one. */
static size_t
receive(size_t at, size_t end)
{
	struct rtsan_wc held[HELD];
	size_t from[HELD];
	int n;

	for (n = 0; n < HELD && at < end; n++) {
		from[n] = at;
		held[n] = borrow();
		CHECK(held[n].byte_len != 0);
		check_bytes(held[n].loan, at, held[n].byte_len);
		at += held[n].byte_len;
	}
	for (int k = 0; k < 2; k++) {
		for (int i = k; i < n; i += 2) {
			check_bytes(held[i].loan, from[i], held[i].byte_len);
			give_back(held[i].imm, RTSAN_WC_SUCCESS);
		}
	}
	give_back(held[0].imm, RTSAN_WC_INVALID);
	return at;
}

static void
all_by_loans(void)
{
	size_t to, len;

	for (size_t at = 0; at < MUCH; at = to) {
		to = at;
		while (to < MUCH && to - at < 60000) {
			len = MUCH - to < PIECE ? MUCH - to : PIECE;
			post_send(to, len);
			to += len;
		}
		for (len = at; len < to;)
			len = receive(len, to);
		CHECK(len == to);
		for (len = at; len < to; len += PIECE)
			CHECK(next_wc(0, WORK_SEND).status == RTSAN_WC_SUCCESS);
	}
}

/* A loan outlasts its connection; it is returned afterwards. */
static void
after_the_end(void)
{
	struct rtsan_wc last;

	post_send(MUCH, LAST);
	CHECK(next_wc(0, WORK_SEND).status == RTSAN_WC_SUCCESS);
	last = borrow();
	CHECK(last.byte_len == LAST);
	CHECK(rtsan_disconnect(qp[0]) == 0);
	rt_event(ctx, RTSAN_EV_DISCONNECTED, TIMEOUT_MS);
	rt_event(ctx, RTSAN_EV_DISCONNECTED, TIMEOUT_MS);
	CHECK(borrow().byte_len == 0);
	check_bytes(last.loan, MUCH, LAST);
	CHECK(rtsan_connect(qp[1], address, SERVICE, NULL) == -EBUSY);
	check_bytes(last.loan, MUCH, LAST);
	give_back(last.imm, RTSAN_WC_SUCCESS);
}

/* Loans are refused, and the queue pair works as before. */
static void
refused(void)
{
	const struct rtsan_recv_wr wr = {.wr_id = WORK_LOAN, .flags = RTSAN_RECV_LOAN};

	CHECK(rtsan_post_recv(qp[1], &wr, 1) == -EOPNOTSUPP);
	CHECK(rtsan_stream_give_back(qp[1], 1, WORK_BACK) == -EOPNOTSUPP);
	CHECK(rtsan_disconnect(qp[0]) == 0);
	rt_event(ctx, RTSAN_EV_DISCONNECTED, TIMEOUT_MS);
	rt_event(ctx, RTSAN_EV_DISCONNECTED, TIMEOUT_MS);
}

/* ---- streams ---- */

static void *
write_all(void *s)
{
	CHECK(rtsan_stream_write(s, sent, MUCH) == MUCH);
	CHECK(rtsan_stream_shutdown_write(s) == 0);
	return NULL;
}

static void
read_by_loans(struct rtsan_stream *s)
{
	const void *data;
	uint32_t loan;
	size_t at = 0;
	ssize_t n;

	while ((n = rtsan_stream_borrow(s, &data, &loan, 0)) > 0) {
		check_bytes(data, at, (size_t)n);
		at += (size_t)n;
		CHECK(rtsan_stream_return(s, loan) == 0);
	}
	CHECK(n == 0 && data == NULL && at == MUCH);
	CHECK(rtsan_stream_return(s, loan) == -EINVAL);
	CHECK(rtsan_stream_borrow(s, &data, &loan, RTSAN_RECV_PEEK) == -EINVAL);
}

static void
read_without(struct rtsan_stream *s)
{
	static uint8_t got[MUCH];
	const void *data;
	uint32_t loan;

	CHECK(rtsan_stream_borrow(s, &data, &loan, 0) == -EOPNOTSUPP && data == NULL);
	CHECK(rtsan_stream_return(s, 1) == -EOPNOTSUPP);
	CHECK(rtsan_stream_read(s, got, MUCH, RTSAN_RECV_WAITALL) > 0);
}

static void *
accept_one(void *out)
{
	CHECK(rtsan_stream_accept(listener, NULL, TIMEOUT_MS, out) == 0);
	return NULL;
}

/* ---- main ---- */

static void
streams(bool has_loan)
{
	struct rtsan_stream *s, *peer;
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, accept_one, &peer) == 0);
	CHECK(rtsan_stream_connect(ctx, address, SERVICE, NULL, TIMEOUT_MS, &s) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	rtsan_stream_set_timeout(s, TIMEOUT_MS);
	rtsan_stream_set_timeout(peer, TIMEOUT_MS);
	if (has_loan) {
		CHECK(pthread_create(&thread, NULL, write_all, s) == 0);
		read_by_loans(peer);
		CHECK(pthread_join(thread, NULL) == 0);
	} else {
		CHECK(rtsan_stream_write(s, sent, PIECE) == PIECE);
		CHECK(rtsan_stream_shutdown_write(s) == 0);
		read_without(peer);
	}
	CHECK(rtsan_stream_shutdown_write(peer) == 0);
	CHECK(rtsan_stream_close(s, TIMEOUT_MS) == 0);
	CHECK(rtsan_stream_close(peer, TIMEOUT_MS) == 0);
}

int
main(int argc, char **argv)
{
	struct rtsan_caps caps;

	if (argc != 3) {
		fprintf(stderr, "usage: loans SPEC ADDRESS\n");
		return 2;
	}
	address = argv[2];
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = pattern(i);
	CHECK(rtsan_open(argv[1], &ctx) == 0);
	CHECK(rtsan_query(ctx, &caps, sizeof(caps)) == 0);
	CHECK(rtsan_listen(ctx, SERVICE, 0, 8, &listener) == 0);
	open_pair();
	if (caps.has_loan) {
		all_by_loans();
		after_the_end();
	} else {
		refused();
	}
	close_pair();
	streams(caps.has_loan);
	rtsan_listener_destroy(listener);
	rtsan_close(ctx);
	printf("loans: %s\n", caps.has_loan ? "all by loans" : "refused");
	return 0;
}
