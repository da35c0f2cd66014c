/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Speaks to programs that know nothing of sanstack: rping, ucmatose, rdma_client and rdma_server of
 * rdmacm-utils. The specs say "plain", so that a service is the connection manager's port. (SYS-4)
 *
 *   stock rping-server SPEC                      for rping -c
 *   stock rping-client SPEC PEER SIZE ROUNDS     for rping -s
 *   stock cmatose-server SPEC SIZE COUNT         for ucmatose -s
 *   stock cmatose-client SPEC PEER SIZE COUNT    for ucmatose
 *   stock hello-server SPEC                      for rdma_client
 *   stock hello-client SPEC PEER                 for rdma_server
 */

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ex.h"

#define RPING_PORT   7174
#define CMATOSE_PORT 7471 /* and of rdma_server */
#define HELLO_BYTES  16
#define SIZE_MAX_    65536
#define COUNT_MAX    64 /* messages that may come at once */

static struct ex ex = {.name = "stock"};
static struct rtsan_mr *mr;
static uint8_t *mem; /* of it */
static int nb_recv, nb_sent;
static bool is_over; /* the peer has disconnected */

/* Where rping's data lies: it reads the one, writes the other. */
struct rping_info {
	uint64_t addr;
	uint32_t rkey;
	uint32_t size;
};

/* Places in the region. */
enum {
	INFO_OUT = 0,
	INFO_IN = 64,
	PING = 4096,
	PONG = PING + SIZE_MAX_,
	ALL = PONG + SIZE_MAX_,
};

#define CHECK(cond)                                                                           \
	do {                                                                                  \
		if (!(cond))                                                                  \
			ex_die(&ex, "line %d: not: %s (%s)", __LINE__, #cond, rtsan_error()); \
	} while (0)

static struct rtsan_event
next_event(void)
{
	uint64_t until = ex_now_ns() + 30000000000ULL;
	struct rtsan_event ev = {.type = 0};

	while (rtsan_event_poll(ex.ctx, &ev) == 0)
		CHECK(ex_now_ns() < until);
	return ev;
}

static void
come_up(void)
{
	struct rtsan_event ev = next_event();

	if (ev.type != RTSAN_EV_ESTABLISHED)
		ex_die(&ex, "event %d: %s", ev.type, rtsan_reason_text(ev.reason));
}

static void
dial(const char *peer, uint64_t port)
{
	CHECK(rtsan_connect(ex.qp, peer, port, NULL) == 0);
	come_up();
}

static void
serve(uint64_t port)
{
	struct rtsan_listener *listener;
	struct rtsan_event ev;

	CHECK(rtsan_listen(ex.ctx, port, 0, 4, &listener) == 0);
	puts("stock: listening");
	fflush(stdout);
	ev = next_event();
	CHECK(ev.type == RTSAN_EV_CONNECT_REQUEST);
	CHECK(rtsan_accept(ex.ctx, ev.request, ex.qp, NULL) == 0);
	come_up();
}

/* One more completion; false: the connection is over, and there is none. */
static bool
take_one(uint32_t length)
{
	struct rtsan_event ev;
	struct rtsan_wc wc;

	for (;;) {
		if (rtsan_cq_poll(ex.cq, &wc, 1) == 1)
			break;
		if (is_over)
			return false;
		if (rtsan_event_poll(ex.ctx, &ev) == 1) {
			CHECK(ev.type == RTSAN_EV_DISCONNECTED);
			is_over = true;
		}
	}
	if (wc.status == RTSAN_WC_FLUSHED)
		return true;
	if (wc.status != RTSAN_WC_SUCCESS)
		ex_die(&ex, "request %d: %s", (int)wc.wr_id, rtsan_status_text(wc.status));
	if (wc.opcode == RTSAN_WC_RECV) {
		CHECK(wc.byte_len == length);
		nb_recv++;
	} else {
		nb_sent++;
	}
	return true;
}

static bool
wait_recv(int n, uint32_t length)
{
	while (nb_recv < n)
		if (!take_one(length))
			return false;
	return true;
}

static bool
wait_sent(int n, uint32_t length)
{
	while (nb_sent < n)
		if (!take_one(length))
			return false;
	return true;
}

static void
post(uint8_t opcode, size_t at, size_t len, uint64_t addr, uint32_t rkey)
{
	struct rtsan_sge sge = ex_sge(mr, at, len);
	struct rtsan_send_wr wr = {
		.opcode = opcode,
		.flags = RTSAN_WR_SIGNALED,
		.sge = &sge,
		.nb_sge = 1,
		.remote_addr = addr,
		.rkey = rkey,
	};

	ex_post_send(&ex, &wr);
}

static void
post_recvs(int n, size_t len)
{
	while (n-- > 0)
		ex_post_recv(&ex, 0, ex_sge(mr, INFO_IN, len));
}

static void
end(bool is_ours)
{
	if (is_ours && !is_over)
		CHECK(rtsan_disconnect(ex.qp) == 0);
	while (take_one(0))
		;
}

/* ---- rping ---- */

/* It tells where its data is: we read them, write them back, and say so each time. */
static void
rping_server(void)
{
	const struct rping_info *in = (const struct rping_info *)(mem + INFO_IN);
	int rounds = 0, sent = 0;
	uint32_t size;

	post_recvs(1, sizeof(*in));
	serve(RPING_PORT);
	while (wait_recv(2 * rounds + 1, sizeof(*in))) {
		size = be32toh(in->size);
		CHECK(size > 0 && size <= SIZE_MAX_);
		post(RTSAN_WR_PULL, PING, size, be64toh(in->addr), be32toh(in->rkey));
		CHECK(wait_sent(++sent, 0));
		/* where it wants them comes as the answer to this */
		post_recvs(1, sizeof(*in));
		post(RTSAN_WR_SEND, INFO_OUT, sizeof(*in), 0, 0);
		CHECK(wait_sent(++sent, sizeof(*in)) && wait_recv(2 * rounds + 2, sizeof(*in)));
		post(RTSAN_WR_PUSH, PING, size, be64toh(in->addr), be32toh(in->rkey));
		CHECK(wait_sent(++sent, 0));
		rounds++;
		post_recvs(1, sizeof(*in));
		post(RTSAN_WR_SEND, INFO_OUT, sizeof(*in), 0, 0);
		if (!wait_sent(++sent, sizeof(*in)))
			break; /* it has what it wanted and went */
	}
	printf("stock: served %d rounds\n", rounds);
}

static void
tell(size_t at, uint32_t size)
{
	struct rping_info *out = (struct rping_info *)(mem + INFO_OUT);

	*out = (struct rping_info){
		.addr = htobe64((uint64_t)(uintptr_t)(mem + at)),
		.rkey = htobe32(rtsan_mr_rkey(mr)),
		.size = htobe32(size),
	};
	post_recvs(1, sizeof(*out));
	post(RTSAN_WR_SEND, INFO_OUT, sizeof(*out), 0, 0);
}

static void
rping_client(const char *peer, uint32_t size, int rounds)
{
	dial(peer, RPING_PORT);
	for (int n = 0; n < rounds; n++) {
		/* text, as it shows it and sends it back up to the zero at its end */
		for (uint32_t i = 0; i < size - 1; i++)
			mem[PING + i] = (uint8_t)('A' + (i * 7 + (uint32_t)n) % 50);
		mem[PING + size - 1] = 0;
		memset(mem + PONG, 0xff, size);
		tell(PING, size);
		CHECK(wait_sent(2 * n + 1, 16) && wait_recv(2 * n + 1, 16));
		tell(PONG, size);
		CHECK(wait_sent(2 * n + 2, 16) && wait_recv(2 * n + 2, 16));
		CHECK(memcmp(mem + PING, mem + PONG, size) == 0);
	}
	end(true);
	printf("stock: %d rounds came back\n", rounds);
}

/* ---- ucmatose ---- */

/* The server sends first, all at once; the client answers as many, and the server disconnects. */
static void
cmatose(const char *peer, uint32_t size, int count)
{
	CHECK(count <= COUNT_MAX && size <= SIZE_MAX_ - INFO_IN);
	post_recvs(count, size);
	if (peer != NULL) {
		dial(peer, CMATOSE_PORT);
		CHECK(wait_recv(count, size));
	} else {
		serve(CMATOSE_PORT);
	}
	for (int i = 0; i < count; i++)
		post(RTSAN_WR_SEND, PONG, size, 0, 0);
	CHECK(wait_sent(count, size) || peer != NULL);
	if (peer == NULL)
		CHECK(wait_recv(count, size));
	end(peer == NULL);
	printf("stock: %d messages each way\n", nb_recv);
}

/* ---- rdma_client, rdma_server ---- */

static void
hello(const char *peer)
{
	post_recvs(1, HELLO_BYTES);
	if (peer != NULL)
		dial(peer, CMATOSE_PORT);
	else
		serve(CMATOSE_PORT);
	if (peer == NULL)
		CHECK(wait_recv(1, HELLO_BYTES));
	post(RTSAN_WR_SEND, PONG, HELLO_BYTES, 0, 0);
	CHECK(wait_recv(1, HELLO_BYTES));
	end(false);
	printf("stock: said hello\n");
}

int
main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "", *peer = argc > 3 ? argv[3] : NULL;

	if (argc < 3)
		return 2;
	ex_open(&ex, "stock", argv[2]);
	mr = ex_alloc(&ex, ALL, RTSAN_REMOTE_PUSH | RTSAN_REMOTE_PULL);
	mem = rtsan_mr_addr(mr);
	if (strcmp(what, "rping-server") == 0)
		rping_server();
	else if (strcmp(what, "rping-client") == 0 && argc == 6)
		rping_client(peer, (uint32_t)atoi(argv[4]), atoi(argv[5]));
	else if (strcmp(what, "cmatose-server") == 0 && argc == 5)
		cmatose(NULL, (uint32_t)atoi(argv[3]), atoi(argv[4]));
	else if (strcmp(what, "cmatose-client") == 0 && argc == 6)
		cmatose(peer, (uint32_t)atoi(argv[4]), atoi(argv[5]));
	else if (strcmp(what, "hello-server") == 0 && argc == 3)
		hello(NULL);
	else if (strcmp(what, "hello-client") == 0 && argc == 4)
		hello(peer);
	else
		return 2;
	ex_close(&ex);
	return 0;
}
