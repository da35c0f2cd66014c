/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ex.h"

#define TIMEOUT_MS 30000 /* limit without any event or completion */
#define TIMEOUT_NS (TIMEOUT_MS * 1000000ULL)
#define SLICE_MS   1000 /* maximum sleep, after which it prints what it waits for */

static volatile sig_atomic_t told_to_end; /* signal number */

void
ex_die(const struct ex *ex, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", ex->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	if (ex->ctx != NULL)
		rtsan_close(ex->ctx); /* the peer sees the end at once, and no socket file stays */
	exit(1);
}

/* The waiting loops end the program in order. A second signal ends it at once. */
static void
on_signal(int signum)
{
	told_to_end = signum;
}

static void
watch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

/* Closing the context removes memif's socket. Then the signal takes its default action. */
static void
end_if_told(const struct ex *ex)
{
	if (told_to_end == 0)
		return;
	rtsan_close(ex->ctx);
	signal(told_to_end, SIG_DFL);
	raise(told_to_end);
}

uint64_t
ex_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t
ex_checksum(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = 0xcbf29ce484222325;

	while (len-- != 0)
		h = (h ^ *p++) * 0x100000001b3;
	return h;
}

void
ex_open(struct ex *ex, const char *name, const char *spec)
{
	struct rtsan_qp_attr attr = {.sq_depth = EX_DEPTH, .rq_depth = EX_DEPTH};

	ex->name = name;
	watch_signals();
	if (rtsan_open(spec, &ex->ctx) != 0 ||
	    rtsan_cq_create(ex->ctx, 4 * EX_DEPTH, &ex->cq) != 0)
		ex_die(ex, "%s", rtsan_error());
	attr.send_cq = ex->cq;
	attr.recv_cq = ex->cq;
	if (rtsan_qp_create(ex->ctx, &attr, &ex->qp) != 0)
		ex_die(ex, "%s", rtsan_error());
}

void
ex_close(struct ex *ex)
{
	rtsan_qp_destroy(ex->qp);
	rtsan_cq_destroy(ex->cq);
	rtsan_close(ex->ctx);
}

/* ---- connections ---- */

/* Print a message once if the wait takes long. */
static void
say_waiting(struct ex *ex, uint64_t since)
{
	if (ex->waits_for == NULL || ex_now_ns() - since < SLICE_MS * 1000000ULL)
		return;
	fprintf(stderr, "%s: waiting for %s%s\n", ex->name, ex->waits_for,
		ex->peer != NULL ? ex->peer : "");
	ex->waits_for = NULL;
}

static void
next_event(struct ex *ex)
{
	uint64_t since = ex_now_ns();
	int rc;

	while ((rc = rtsan_event_poll(ex->ctx, &ex->ev)) == 0) {
		if (ex->sleeps && (rc = rtsan_event_wait(ex->ctx, SLICE_MS)) < 0 && rc != -EINTR)
			break;
		end_if_told(ex);
		say_waiting(ex, since);
		if (ex_now_ns() - since > TIMEOUT_NS)
			ex_die(ex, "nothing happens");
	}
	if (rc < 0)
		ex_die(ex, "%s", rtsan_error());
}

static void
expect(struct ex *ex, enum rtsan_event_type want)
{
	static const char *const names[] = {
		[RTSAN_EV_CONNECT_REQUEST] = "somebody connects",
		[RTSAN_EV_ESTABLISHED] = "connected",
		[RTSAN_EV_REJECTED] = "refused",
		[RTSAN_EV_UNREACHABLE] = "unreachable",
		[RTSAN_EV_DISCONNECTED] = "disconnected",
	};

	if (ex->ev.type != want)
		ex_die(ex, "%s: %s", names[ex->ev.type], rtsan_reason_text(ex->ev.reason));
}

static void
wait_event(struct ex *ex, enum rtsan_event_type want)
{
	next_event(ex);
	expect(ex, want);
}

void
ex_listen(struct ex *ex)
{
	struct rtsan_listener *listener;

	if (rtsan_listen(ex->ctx, EX_SERVICE, 0, 1, &listener) != 0)
		ex_die(ex, "%s", rtsan_error());
	ex->waits_for = "a peer";
	wait_event(ex, RTSAN_EV_CONNECT_REQUEST);
	ex->waits_for = NULL;
}

void
ex_accept(struct ex *ex, const void *data, uint16_t len)
{
	struct rtsan_conn_param param = {.private_data = data, .private_len = len};

	if (rtsan_accept(ex->ctx, ex->ev.request, ex->qp, &param) != 0)
		ex_die(ex, "%s", rtsan_error());
	wait_event(ex, RTSAN_EV_ESTABLISHED);
}

static bool
may_be_late(const struct rtsan_event *ev)
{
	return ev->type == RTSAN_EV_UNREACHABLE ||
		(ev->type == RTSAN_EV_REJECTED && ev->reason == RTSAN_R_NO_LISTENER);
}

void
ex_connect(struct ex *ex, const char *peer, const void *data, uint16_t len)
{
	struct rtsan_conn_param param = {.private_data = data, .private_len = len};
	const struct timespec pause = {.tv_nsec = 100000000};
	uint64_t since = ex_now_ns();

	ex->waits_for = "the peer at ";
	ex->peer = peer;
	/* the server may just be starting */
	for (;;) {
		if (rtsan_connect(ex->qp, peer, EX_SERVICE, &param) != 0)
			ex_die(ex, "%s", rtsan_error());
		next_event(ex);
		if (!may_be_late(&ex->ev) || ex_now_ns() - since > TIMEOUT_NS)
			break;
		say_waiting(ex, since);
		nanosleep(&pause, NULL);
		end_if_told(ex);
	}
	ex->waits_for = NULL;
	expect(ex, RTSAN_EV_ESTABLISHED);
}

void
ex_disconnect(struct ex *ex)
{
	if (rtsan_disconnect(ex->qp) != 0)
		ex_die(ex, "%s", rtsan_error());
	wait_event(ex, RTSAN_EV_DISCONNECTED);
}

void
ex_wait_disconnect(struct ex *ex)
{
	wait_event(ex, RTSAN_EV_DISCONNECTED);
}

/* ---- work ---- */

struct rtsan_mr *
ex_alloc(struct ex *ex, size_t len, uint32_t access)
{
	struct rtsan_mr *mr;

	if (rtsan_mr_alloc(ex->ctx, len, access, &mr) != 0)
		ex_die(ex, "%s", rtsan_error());
	return mr;
}

struct rtsan_sge
ex_sge(const struct rtsan_mr *mr, size_t off, size_t len)
{
	return (struct rtsan_sge){
		.addr = (uint8_t *)rtsan_mr_addr(mr) + off,
		.length = (uint32_t)len,
		.lkey = rtsan_mr_lkey(mr),
	};
}

void
ex_post_recv(struct ex *ex, uint64_t id, struct rtsan_sge sge)
{
	struct rtsan_recv_wr wr = {.wr_id = id, .sge = &sge, .nb_sge = 1};

	if (rtsan_post_recv(ex->qp, &wr, 1) != 1)
		ex_die(ex, "%s", rtsan_error());
}

void
ex_post_send(struct ex *ex, const struct rtsan_send_wr *wr)
{
	if (rtsan_post_send(ex->qp, wr, 1) != 1)
		ex_die(ex, "%s", rtsan_error());
}

void
ex_wait(struct ex *ex, struct rtsan_wc *wc)
{
	uint64_t until = 0;
	int rc;

	while (rtsan_cq_poll(ex->cq, wc, 1) == 0) {
		if (ex->sleeps && (rc = rtsan_cq_wait(ex->cq, SLICE_MS)) < 0 && rc != -EINTR)
			ex_die(ex, "%s", rtsan_error());
		end_if_told(ex);
		if (until == 0)
			until = ex_now_ns() + TIMEOUT_NS;
		else if (ex_now_ns() > until)
			ex_die(ex, "no completion comes");
	}
	if (wc->status != RTSAN_WC_SUCCESS)
		ex_die(ex, "request %llu failed: %s", (unsigned long long)wc->wr_id,
		       rtsan_status_text(wc->status));
}
