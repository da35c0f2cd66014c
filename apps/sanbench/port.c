/* SPDX-License-Identifier: BSD-3-Clause */

#include <time.h>

#include "bench.h"

#define COUNTERS_MAX 512
#define LEAK_WAIT_MS 3000
#define MEASURE_NS   50000000
#define TRIES        100 /* tries to read both clocks without an interruption between them */

const char *
san_port_attached(const struct bench_conf *conf)
{
	if (conf->attach[0] == '\0')
		return NULL;
	return strncmp(conf->attach, "verbs:", 6) == 0 ?
		"an RDMA device has no port of ours: see rtsan-verbs(7)" :
		"the port is the daemon's: see sanctl(1) and sanstack.conf(5)";
}

/* ---- opening ---- */

/* Read both clocks at the same time, unless the thread is interrupted each time. */
static uint64_t
port_read_clocks(uint64_t *tsc)
{
	uint64_t before, took, least = UINT64_MAX, ns = 0;
	struct timespec ts;
	int i;

	*tsc = 0;
	for (i = 0; i < TRIES; i++) {
		before = rte_rdtsc();
		clock_gettime(CLOCK_MONOTONIC, &ts);
		took = rte_rdtsc() - before;
		if (took >= least)
			continue;
		least = took;
		*tsc = before + took / 2;
		ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	}
	return ns;
}

/* Measure the frequency: EAL, which knows it, is not initialized with --attach. */
static int
open_attached(struct bench *b)
{
	const struct timespec pause = {.tv_nsec = MEASURE_NS};
	uint64_t tsc_begin, tsc_end, begin, end;
	int ret = rtsan_open(b->conf.attach, &b->ctx);

	if (ret < 0) {
		san_bench_fail(b, "--attach %s: %s", b->conf.attach, rtsan_error());
		return ret;
	}
	begin = port_read_clocks(&tsc_begin);
	nanosleep(&pause, NULL);
	end = port_read_clocks(&tsc_end);
	b->hz = (uint64_t)((unsigned __int128)(tsc_end - tsc_begin) * 1000000000u / (end - begin));
	return 0;
}

static int
open_embedded(struct bench *b, int argc, char **argv)
{
	int ret = rtsan_dpdk_open(argc, argv, b->conf.port, &b->ctx);

	if (ret < 0) {
		san_bench_fail(b, "%s", rtsan_error());
		return ret;
	}
	b->hz = rte_get_tsc_hz();
	san_port_apply_impair(b);
	if (b->conf.capture[0] != '\0' && rtsan_dpdk_capture(b->ctx, b->conf.capture) < 0) {
		san_bench_fail(b, "--capture %s: %s", b->conf.capture, rtsan_error());
		rtsan_close(b->ctx);
		return -EIO;
	}
	return 0;
}

int
san_port_open(struct bench *b, int argc, char **argv)
{
	bool is_attached = san_port_attached(&b->conf) != NULL;
	int ret = is_attached ? open_attached(b) : open_embedded(b, argc, argv);

	if (ret < 0)
		return ret;
	if (b->conf.wait && rtsan_event_fd(b->ctx) == -ENOTSUP) {
		san_bench_fail(
			b, "--wait: needs --attach or --poll lcore: nothing else polls the port");
		rtsan_close(b->ctx);
		return -EINVAL;
	}
	b->ns_per_tick = (uint64_t)(((unsigned __int128)1000000000u << 32) / b->hz);
	rtsan_query(b->ctx, &b->caps, sizeof(b->caps));
	return 0;
}

void
san_port_close(struct bench *b)
{
	if (b->conf.capture[0] != '\0')
		rtsan_dpdk_capture(b->ctx, NULL);
	rtsan_close(b->ctx);
}

/* ---- only with an engine in this process ---- */

const struct rtsan_dpdk_counter *
san_port_counters(struct bench *b, int *nb)
{
	static struct rtsan_dpdk_counter all[COUNTERS_MAX];

	*nb = 0;
	if (san_port_attached(&b->conf) != NULL)
		return NULL;
	*nb = RTE_MIN(rtsan_dpdk_counters(b->ctx, all, COUNTERS_MAX), COUNTERS_MAX);
	return all;
}

uint64_t
san_port_rtx(struct bench *b, uint64_t begin)
{
	int n, i;
	const struct rtsan_dpdk_counter *c = san_port_counters(b, &n);

	for (i = 0; i < n; i++)
		if (strcmp(c[i].name, "rtx") == 0)
			return c[i].value - begin;
	return PORT_UNKNOWN;
}

/* Wait for a moment: connections that are ending may still hold records. */
uint64_t
san_port_check_leaks(struct bench *b)
{
	uint64_t until = rte_rdtsc() + san_bench_ticks_of_ms(b, LEAK_WAIT_MS), leaks;

	if (san_port_attached(&b->conf) != NULL)
		return PORT_UNKNOWN;
	while ((leaks = rtsan_dpdk_leaks(b->ctx)) > 0 && rte_rdtsc() < until)
		san_net_poll(b);
	if (leaks > 0)
		san_bench_fail(b, "%llu things were not released", (unsigned long long)leaks);
	return leaks;
}

void
san_port_apply_impair(struct bench *b)
{
	int i;

	for (i = 0; i < 2 && san_port_attached(&b->conf) == NULL; i++)
		if (rtsan_dpdk_impair(b->ctx, i == 1,
				      b->conf.impair[i][0] != '\0' ? b->conf.impair[i] : NULL) < 0)
			san_bench_fail(b, "impairment refused: %s", rtsan_error());
}
