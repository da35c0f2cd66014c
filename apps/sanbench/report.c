/* SPDX-License-Identifier: BSD-3-Clause */

/* Text output: rates each second, and the summary of a run. */

#include <inttypes.h>

#include <rte_cycles.h>

#include "mode.h"
#include "port.h"

double
san_report_seconds(const struct client *c)
{
	uint64_t end = c->end != 0 ? c->end : rte_rdtsc();

	if (c->begin == 0 || end <= c->begin)
		return 0;
	return (double)(end - c->begin) / (double)c->b->hz;
}

void
san_report_live(struct client *c)
{
	uint64_t now = rte_rdtsc(), rtx = san_port_counter(c->b, "rtx");
	uint64_t second = san_bench_ticks_of_ms(c->b, 1000);
	double took = (double)(now - c->live_at + second) / (double)c->b->hz;

	printf("%7.1f s  %8.3f Gb/s  %9.4f M/s  p50 %.1f us  p99 %.1f us",
	       (double)(now - c->begin) / (double)c->b->hz,
	       (double)(c->bytes - c->live_bytes) * 8 / took / 1e9,
	       (double)(c->msgs - c->live_msgs) / took / 1e6,
	       (double)san_hist_percentile(&c->lat_second, 5000) / 1e3,
	       (double)san_hist_percentile(&c->lat_second, 9900) / 1e3);
	if (!san_port_is_attached(c->b))
		printf("  rtx %" PRIu64, rtx - c->live_rtx);
	putchar('\n');
	fflush(stdout);
	san_hist_reset(&c->lat_second);
	c->live_at = now + second;
	c->live_bytes = c->bytes;
	c->live_msgs = c->msgs;
	c->live_rtx = rtx;
}

/* The counters of another process are unknown. */
static void
print_rtx(uint64_t rtx, const char *where, FILE *f)
{
	if (rtx != PORT_UNKNOWN)
		fprintf(f, "  retransmissions %s: %" PRIu64 "\n", where, rtx);
}

void
san_report_client(const struct client *c, FILE *f)
{
	static const char *const orders[] = {"ordered", "unordered", "relaxed", "ending"};
	double s = san_report_seconds(c);
	struct hist_summary lat;

	fprintf(f, "client: %s to %s, %u connection%s, ", c->mode->name, c->conf.peer, c->nb_conns,
		c->nb_conns == 1 ? "" : "s");
	if (c->conf.size_min == c->conf.size_max)
		fprintf(f, "%u bytes", c->conf.size_max);
	else
		fprintf(f, "%u to %u bytes", c->conf.size_min, c->conf.size_max);
	fprintf(f, ", depth %u, %s\n", c->conf.depth, orders[c->conf.order]);
	if (c->is_failed) {
		fprintf(f, "  FAILED: %s\n", c->error);
		return;
	}
	fprintf(f, "  %.3f Gb/s  %.4f M/s  %" PRIu64 " messages, %" PRIu64 " bytes in %.3f s\n",
		s > 0 ? (double)c->bytes * 8 / s / 1e9 : 0, s > 0 ? (double)c->msgs / s / 1e6 : 0,
		c->msgs, c->bytes, s);
	san_hist_summarize(&c->lat, &lat);
	fprintf(f, "  latency us: p50 %.2f  p90 %.2f  p99 %.2f  p99.9 %.2f  max %.2f  mean %.2f\n",
		(double)lat.p50_ns / 1e3, (double)lat.p90_ns / 1e3, (double)lat.p99_ns / 1e3,
		(double)lat.p999_ns / 1e3, (double)lat.max_ns / 1e3, (double)lat.mean_ns / 1e3);
	print_rtx(c->rtx, "here", f);
	print_rtx(c->report.rtx, "at the server", f);
	fprintf(f, "  %s by both sides: no errors\n",
		c->conf.verify ? "content verified" : "counts compared");
	fflush(f);
}
