/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdarg.h>
#include <time.h>

#include "rt.h"

void (*rt_failing)(void);

void
rt_die(const char *fmt, ...)
{
	va_list ap;

	if (rt_failing != NULL)
		rt_failing();
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (%s)\n", rtsan_error());
	exit(1);
}

void
rt_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

uint64_t
rt_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t
rt_now_ms(void)
{
	return rt_now_ns() / 1000000;
}

struct rtsan_qp *
rt_make_qp(struct rtsan_ctx *ctx, struct rtsan_cq *cq, uint32_t depth, void *context)
{
	const struct rtsan_qp_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.sq_depth = depth,
		.rq_depth = depth,
		.context = context,
	};
	struct rtsan_qp *qp;

	CHECK(rtsan_qp_create(ctx, &attr, &qp) == 0);
	return qp;
}

struct rtsan_event
rt_event_at(const char *file, int line, struct rtsan_ctx *ctx, enum rtsan_event_type want, int ms)
{
	struct rtsan_event ev;
	int rc;

	while ((rc = rtsan_event_poll(ctx, &ev)) == 0)
		if ((rc = rtsan_event_wait(ctx, ms)) != 1 && rc != -EINTR)
			rt_die("%s:%d: no event of type %d", file, line, want);
	MUST(rc >= 0, "%s:%d: events: %d", file, line, rc);
	MUST(ev.type == want, "%s:%d: event of type %d, reason %u (%s), not %d", file, line,
	     ev.type, ev.reason, rtsan_reason_text(ev.reason), want);
	return ev;
}

struct rtsan_wc
rt_wc_at(const char *file, int line, struct rtsan_cq *cq, int ms)
{
	struct rtsan_wc wc;
	int rc;

	while ((rc = rtsan_cq_poll(cq, &wc, 1)) == 0)
		if ((rc = rtsan_cq_wait(cq, ms)) != 1 && rc != -EINTR)
			rt_die("%s:%d: no completion", file, line);
	MUST(rc >= 0, "%s:%d: poll: %d", file, line, rc);
	return wc;
}

void
rt_post_send(struct rtsan_qp *qp, const struct rtsan_mr *mr, uint32_t length,
	     const struct rtsan_send_wr *wr)
{
	struct rtsan_sge sge = {rtsan_mr_addr(mr), length, rtsan_mr_lkey(mr)};
	struct rtsan_send_wr full = *wr;

	full.sge = &sge;
	full.nb_sge = 1;
	MUST(rtsan_post_send(qp, &full, 1) == 1, "post of opcode %d", wr->opcode);
}

void
rt_post_recv(struct rtsan_qp *qp, const struct rtsan_mr *mr, uint32_t length)
{
	struct rtsan_sge sge = {rtsan_mr_addr(mr), length, rtsan_mr_lkey(mr)};
	const struct rtsan_recv_wr wr = {.sge = &sge, .nb_sge = 1};

	CHECK(rtsan_post_recv(qp, &wr, 1) == 1);
}
