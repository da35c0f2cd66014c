/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Runs conns.h with the engine in this process, and checks its objects, faults and counters.
 * (SYS-2, RT-23, RT-26)
 *
 *   lifecycle ROLE SPEC [PEER]
 *
 * With the SPEC of a daemon the engine is in the daemon, which test_daemon.py checks.
 */

#include <time.h>

#include "conns.h"
#include "rtsan_dpdk.h"

#define NOBODY     "10.5.0.99"
#define TIMEOUT_MS 120000

static void
explain(struct rtsan_ctx *ctx)
{
	for (int what = RTSAN_SHOW_PORT; what <= RTSAN_SHOW_STREAM; what++)
		rtsan_dpdk_show(ctx, (enum rtsan_dpdk_show)what, stderr);
}

static uint64_t
counter(struct rtsan_ctx *ctx, const char *name)
{
	struct rtsan_dpdk_counter c[256];
	int n = rtsan_dpdk_counters(ctx, c, 256);

	for (int i = 0; i < n; i++)
		if (strcmp(c[i].name, name) == 0)
			return c[i].value;
	rt_die("no counter %s", name);
}

static void
left(struct rtsan_ctx *ctx)
{
	CHECK(rtsan_dpdk_leaks(ctx) == 0);
}

static void
nobody_there(struct rtsan_ctx *ctx)
{
	struct rtsan_qp *qp = conns_make_qp();

	CHECK(rtsan_connect(qp, NOBODY, 1, NULL) == 0);
	rt_event(ctx, RTSAN_EV_UNREACHABLE, TIMEOUT_MS);
	rtsan_qp_destroy(qp);
}

static void
impair_and_show(struct rtsan_ctx *ctx)
{
	FILE *f = tmpfile();

	/* the end of a connection is sent once: let it be sent before packets are dropped */
	for (int i = 0; i < 100; i++)
		rtsan_progress(ctx);
	CHECK(rtsan_dpdk_impair(ctx, true, "drop=1") == 0);
	nobody_there(ctx);
	CHECK(counter(ctx, "impair_tx_dropped") > 0 && counter(ctx, "drop_impaired") > 0);
	CHECK(rtsan_dpdk_impair(ctx, true, NULL) == 0);
	CHECK(rtsan_dpdk_impair(ctx, true, "drop=2") == -EINVAL);
	CHECK(rtsan_dpdk_impair(NULL, true, "drop=2") == -EINVAL);
	CHECK(rtsan_dpdk_impair(NULL, true, "drop=1") == 0);
	for (int i = RTSAN_SHOW_PORT; i <= RTSAN_SHOW_STREAM; i++) {
		long before = ftell(f);

		rtsan_dpdk_show(ctx, (enum rtsan_dpdk_show)i, f);
		CHECK(ftell(f) > before);
	}
	fclose(f);
}

/* A process has one EAL and one context. */
static void
in_process(struct rtsan_ctx *ctx, const char *spec)
{
	struct rtsan_ctx *second;

	CHECK(rtsan_open(spec, &second) == -EBUSY);
	impair_and_show(ctx);
}

/* A daemon accepts several contexts of a process. */
static void
in_daemon(struct rtsan_ctx *ctx, const char *spec)
{
	struct rtsan_ctx *second;

	CHECK(rtsan_open(spec, &second) == 0);
	rtsan_close(second);
	nobody_there(ctx);
}

/* Pause until the engine's next round would skip the port (engine_gate.c). */
static void
be_silent(struct rtsan_ctx *ctx)
{
	struct timespec ms20 = {.tv_nsec = 20000000};

	nanosleep(&ms20, NULL);
}

/* EAL was started with other arguments. */
static void
other_eal(void)
{
	struct rtsan_ctx *ctx;

	CHECK(rtsan_open("dpdk:--no-pci -- ip=10.5.0.2/24", &ctx) == -EINVAL);
}

int
main(int argc, char **argv)
{
	const struct conns_extra embedded = {
		.left = left,
		.round = in_process,
		.closing = be_silent,
		.closed = other_eal,
		.explain = explain,
		.link_ends = argc > 2 && strstr(argv[2], "net_memif") != NULL,
	};
	static const struct conns_extra attached = {.round = in_daemon, .closing = be_silent};

	conns_run(argc, argv,
		  argc > 2 && strncmp(argv[2], "unix:", 5) == 0 ? &attached : &embedded);
}
