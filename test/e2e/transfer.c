/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A long transfer, while the daemon of its sender is asked to end. Work that was posted before is
 * completed, later work is not, and all programs are notified. (SYS-2)
 *
 *   transfer server SPEC         prints how its connection has ended, and answers until SIGUSR1
 *   transfer client SPEC PEER [PUSHES]
 *                                posts PUSHES or NB pushes, and LATER more on SIGUSR1
 */

#include <signal.h>
#include <time.h>

#include "rt.h"

#define SERVICE   9
#define LENGTH    (32u << 20) /* bytes of a push */
#define NB        64
#define LATER     8
#define TIMEOUT_S 200 /* seconds */

static struct rtsan_ctx *ctx;
static struct rtsan_cq *cq;
static struct rtsan_qp *qp;
static struct rtsan_mr *mr;
static volatile sig_atomic_t more;

static struct place {
	uint64_t addr, rkey;
} place;

static void
on_signal(int sig)
{
	more = 1;
}

static void
check_timeout(time_t *until)
{
	if (*until == 0)
		*until = time(NULL) + TIMEOUT_S;
	CHECK(time(NULL) < *until);
}

static void
open_all(const char *spec)
{
	struct rtsan_qp_attr attr = {.sq_depth = 128};

	CHECK(rtsan_open(spec, &ctx) == 0);
	CHECK(rtsan_cq_create(ctx, 1024, &cq) == 0);
	attr.send_cq = attr.recv_cq = cq;
	CHECK(rtsan_qp_create(ctx, &attr, &qp) == 0);
	CHECK(rtsan_mr_alloc(ctx, LENGTH, RTSAN_REMOTE_PUSH, &mr) == 0);
}

static void
server(const char *spec)
{
	struct rtsan_conn_param param = {.private_data = &place, .private_len = sizeof(place)};
	struct rtsan_listener *listener;
	struct rtsan_event ev;
	time_t until = 0;

	open_all(spec);
	place.addr = (uintptr_t)rtsan_mr_addr(mr);
	place.rkey = rtsan_mr_rkey(mr);
	CHECK(rtsan_listen(ctx, SERVICE, 0, 1, &listener) == 0);
	rt_say("listening");
	ev = rt_event(ctx, RTSAN_EV_CONNECT_REQUEST, TIMEOUT_S * 1000);
	CHECK(rtsan_accept(ctx, ev.request, qp, &param) == 0);
	rt_event(ctx, RTSAN_EV_ESTABLISHED, TIMEOUT_S * 1000);
	ev = rt_event(ctx, RTSAN_EV_DISCONNECTED, TIMEOUT_S * 1000);
	rt_say("ended: %s", ev.reason == RTSAN_R_NONE ? "told" : rtsan_reason_text(ev.reason));
	while (!more) { /* closing its link now would lose the answer in it */
		check_timeout(&until);
		rtsan_progress(ctx);
	}
	rtsan_close(ctx);
}

static void
post(int nb)
{
	const struct rtsan_send_wr wr = {
		.opcode = RTSAN_WR_PUSH,
		.flags = RTSAN_WR_SIGNALED,
		.remote_addr = place.addr,
		.rkey = (uint32_t)place.rkey,
	};

	for (; nb > 0; nb--)
		rt_post_send(qp, mr, LENGTH, &wr);
}

static void
client(const char *spec, const char *peer, int nb)
{
	int nb_posted = nb, nb_done = 0, nb_flushed = 0, nb_other = 0;
	struct rtsan_event ev;
	struct rtsan_wc wc;
	time_t until = 0;
	int rc;

	open_all(spec);
	CHECK(rtsan_connect(qp, peer, SERVICE, NULL) == 0);
	ev = rt_event(ctx, RTSAN_EV_ESTABLISHED, TIMEOUT_S * 1000);
	memcpy(&place, ev.private_data, sizeof(place));
	post(nb);
	rt_say("posted");
	while (nb_done + nb_flushed + nb_other < nb_posted) {
		check_timeout(&until);
		rtsan_progress(ctx);
		if (more) {
			more = 0;
			nb_posted += LATER;
			post(LATER);
		}
		if (rtsan_cq_poll(cq, &wc, 1) == 1)
			(*(wc.status == RTSAN_WC_SUCCESS         ? &nb_done :
				   wc.status == RTSAN_WC_FLUSHED ? &nb_flushed :
								   &nb_other))++;
	}
	printf("done %d flushed %d other %d\n", nb_done, nb_flushed, nb_other);
	ev = rt_event(ctx, RTSAN_EV_DISCONNECTED, TIMEOUT_S * 1000);
	printf("ended: %u\n", ev.reason);
	while ((rc = rtsan_event_poll(ctx, &ev)) == 0)
		check_timeout(&until);
	printf("then %s\n", strerror(-rc));
	CHECK(rc == -EIO);
	rtsan_close(ctx);
}

int
main(int argc, char **argv)
{
	signal(SIGUSR1, on_signal);
	if (argc == 3 && strcmp(argv[1], "server") == 0)
		server(argv[2]);
	else if ((argc == 4 || argc == 5) && strcmp(argv[1], "client") == 0)
		client(argv[2], argv[3], argc == 5 ? atoi(argv[4]) : NB);
	else
		return 2;
	return 0;
}
