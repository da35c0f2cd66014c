/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Programs whose state an operator reads, for test_operator.py. Both run until they are ended.
 *
 *   operator server SPEC RECVS                      accept all, keep RECVS receives posted on each
 *   operator client SPEC PEER CONNS SENDS BYTES     keep SENDS sends in flight on each
 */

#include <unistd.h>

#include "rt.h"

#define SERVICE    9
#define REGION     65536
#define TIMEOUT_MS 60000 /* ms to wait for a receiver that is not ready */
#define AT_ONCE    64    /* connections that are set up at a time */
#define DEPTH      8

static struct rtsan_ctx *ctx;
static struct rtsan_cq *cq;
static struct rtsan_mr *mr;
static uint32_t nb_bytes = REGION;

static void
post(struct rtsan_qp *qp, int recv)
{
	const struct rtsan_send_wr send = {.opcode = RTSAN_WR_SEND, .flags = RTSAN_WR_SIGNALED};

	if (recv)
		rt_post_recv(qp, mr, REGION);
	else
		rt_post_send(qp, mr, nb_bytes, &send);
}

/* Post each completed request again. */
static void
work(int recv)
{
	struct rtsan_wc wc[32];
	int n = rtsan_cq_poll(cq, wc, 32);

	for (int i = 0; i < n; i++)
		if (wc[i].status == RTSAN_WC_SUCCESS)
			post(wc[i].qp, recv);
	if (n == 0)
		usleep(200);
}

static void
serve(int nb_recvs)
{
	const struct rtsan_conn_param param = {.rnr_ms = TIMEOUT_MS};
	struct rtsan_listener *listener;
	struct rtsan_event ev;
	struct rtsan_qp *qp;

	CHECK(rtsan_listen(ctx, SERVICE, 0, 2 * AT_ONCE, &listener) == 0);
	for (;;) {
		while (rtsan_event_poll(ctx, &ev) == 1) {
			if (ev.type == RTSAN_EV_DISCONNECTED)
				rtsan_qp_destroy(ev.qp);
			if (ev.type != RTSAN_EV_CONNECT_REQUEST)
				continue;
			qp = rt_make_qp(ctx, cq, DEPTH, NULL);
			for (int i = 0; i < nb_recvs; i++)
				post(qp, 1);
			CHECK(rtsan_accept(ctx, ev.request, qp, &param) == 0);
		}
		work(1);
	}
}

static void
connect_all(const char *peer, int nb_conns, int nb_sends)
{
	const struct rtsan_conn_param param = {.rnr_ms = TIMEOUT_MS};
	struct rtsan_event ev;
	int asked = 0, open = 0;

	while (open < nb_conns) {
		for (; asked < nb_conns && asked - open < AT_ONCE; asked++)
			CHECK(rtsan_connect(rt_make_qp(ctx, cq, DEPTH, NULL), peer, SERVICE,
					    &param) == 0);
		if (rtsan_event_poll(ctx, &ev) != 1) {
			usleep(100);
			continue;
		}
		MUST(ev.type == RTSAN_EV_ESTABLISHED, "event %d: %s", ev.type,
		     rtsan_reason_text(ev.reason));
		open++;
		for (int i = 0; i < nb_sends; i++)
			post(ev.qp, 0);
	}
	rt_say("connected %d", open);
	for (;;) {
		while (rtsan_event_poll(ctx, &ev) == 1)
			rt_die("event %d: %s", ev.type, rtsan_reason_text(ev.reason));
		work(0);
	}
}

int
main(int argc, char **argv)
{
	bool is_server = argc == 4 && strcmp(argv[1], "server") == 0;

	if (!is_server && (argc != 7 || strcmp(argv[1], "client") != 0))
		return 2;
	CHECK(rtsan_open(argv[2], &ctx) == 0);
	CHECK(rtsan_cq_create(ctx, 4096, &cq) == 0);
	CHECK(rtsan_mr_alloc(ctx, REGION, 0, &mr) == 0);
	if (is_server)
		serve(atoi(argv[3]));
	nb_bytes = (uint32_t)atoi(argv[6]);
	connect_all(argv[3], atoi(argv[4]), atoi(argv[5]));
	return 0;
}
