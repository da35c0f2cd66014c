/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Results: rates each second and the summary of a run as text, all of it as JSON.
 * doc/man/sanbench.1 describes the keys.
 */

#include <fcntl.h>
#include <unistd.h>

#include <rte_lcore.h>
#include <rte_malloc.h>

#include "bench.h"

void
san_report_memory(struct memory *m)
{
	const struct {
		const char *format;
		uint64_t *to;
	} wanted[] = {
		{"VmRSS: %" SCNu64, &m->rss_bytes},
		{"HugetlbPages: %" SCNu64, &m->hugetlb_bytes},
		{"VmData: %" SCNu64, &m->data_bytes},
	};
	FILE *f = fopen("/proc/self/status", "r");
	struct rte_malloc_socket_stats heap;
	char line[128];
	uint64_t kib;
	size_t i;

	memset(m, 0, sizeof(*m));
	for (i = 0; i < rte_socket_count(); i++)
		if (rte_malloc_get_socket_stats(rte_socket_id_by_idx((unsigned int)i), &heap) == 0)
			m->heap_bytes += heap.heap_allocsz_bytes;
	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL)
		for (i = 0; i < RTE_DIM(wanted); i++)
			if (sscanf(line, wanted[i].format, &kib) == 1)
				*wanted[i].to = kib << 10;
	fclose(f);
}

/* ---- text ---- */

static double
report_seconds(const struct client *c)
{
	uint64_t end = c->end != 0 ? c->end : rte_rdtsc();

	if (c->begin == 0 || end <= c->begin)
		return 0;
	return (double)(end - c->begin) / (double)c->b->hz;
}

static double
per_second(double n, double seconds)
{
	return seconds > 0 ? n / seconds : 0;
}

void
san_report_live(struct client *c)
{
	uint64_t now = rte_rdtsc(), rtx = san_port_rtx(c->b, 0);
	double took = (double)(now - c->live_at + c->b->hz) / (double)c->b->hz;

	printf("%7.1f s  %8.3f Gb/s  %9.4f M/s  p50 %.1f us  p99 %.1f us",
	       (double)(now - c->begin) / (double)c->b->hz,
	       (double)(c->bytes - c->live_bytes) * 8 / took / 1e9,
	       (double)(c->msgs - c->live_msgs) / took / 1e6,
	       (double)san_hist_percentile(&c->lat_second, 5000) / 1e3,
	       (double)san_hist_percentile(&c->lat_second, 9900) / 1e3);
	if (rtx != PORT_UNKNOWN)
		printf("  rtx %" PRIu64, rtx - c->live_rtx);
	putchar('\n');
	fflush(stdout);
	memset(&c->lat_second, 0, sizeof(c->lat_second));
	c->live_at = now + c->b->hz;
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
	double s = report_seconds(c);
	struct hist_summary lat;

	fprintf(f, "client: %s to %s, %u connection%s, ", c->mode->name, c->conf.peer,
		c->hello.nb_conns, c->hello.nb_conns == 1 ? "" : "s");
	if (c->hello.size_min == c->hello.size_max)
		fprintf(f, "%u bytes", c->hello.size_max);
	else
		fprintf(f, "%u to %u bytes", c->hello.size_min, c->hello.size_max);
	fprintf(f, ", depth %u, %s\n", c->conf.hello.depth, san_args_orders[c->conf.conn.order]);
	if (c->is_failed) {
		fprintf(f, "  FAILED: %s\n", c->error);
		return;
	}
	fprintf(f, "  %.3f Gb/s  %.4f M/s  %" PRIu64 " messages, %" PRIu64 " bytes in %.3f s\n",
		per_second((double)c->bytes * 8 / 1e9, s), per_second((double)c->msgs / 1e6, s),
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

/* ---- JSON ---- */

static void
put_text(FILE *f, const char *key, const char *text)
{
	fprintf(f, "  \"%s\": \"", key);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		if ((unsigned char)*text >= 0x20)
			fputc(*text, f);
	}
	fputs("\",\n", f);
}

/* A counter that only another process knows is null. */
static void
put_number(FILE *f, const char *key, uint64_t value)
{
	if (value == PORT_UNKNOWN)
		fprintf(f, "  \"%s\": null,\n", key);
	else
		fprintf(f, "  \"%s\": %" PRIu64 ",\n", key, value);
}

static void
put_memory(FILE *f, const char *key, const struct memory *m)
{
	fprintf(f,
		"  \"%s\": {\"rss\": %" PRIu64 ", \"hugetlb\": %" PRIu64 ", \"data\": %" PRIu64
		", \"heap\": %" PRIu64 "},\n",
		key, m->rss_bytes, m->hugetlb_bytes, m->data_bytes, m->heap_bytes);
}

static void
put_counters(FILE *f, struct bench *b)
{
	int n, i;
	const struct rtsan_dpdk_counter *c = san_port_counters(b, &n);

	if (c == NULL) {
		fputs("  \"counters\": null\n", f);
		return;
	}
	fputs("  \"counters\": {", f);
	for (i = 0; i < n; i++)
		fprintf(f, "%s\n    \"%s\": %" PRIu64, i > 0 ? "," : "", c[i].name, c[i].value);
	fputs("\n  }\n", f);
}

static void
json_put_client(FILE *f, const struct client *c)
{
	double s = report_seconds(c);
	struct hist_summary lat;

	san_hist_summarize(&c->lat, &lat);
	put_text(f, "error", c->error);
	put_text(f, "mode", c->mode->name);
	put_text(f, "peer", c->conf.peer);
	put_text(f, "order", san_args_orders[c->conf.conn.order]);
	put_text(f, "solicit", san_args_solicits[c->conf.solicit]);
	fprintf(f, "  \"verify\": %s,\n", c->conf.verify ? "true" : "false");
	put_number(f, "size_min", c->hello.size_min);
	put_number(f, "size_max", c->hello.size_max);
	put_number(f, "depth", c->conf.hello.depth);
	put_number(f, "conns", c->hello.nb_conns);
	put_number(f, "seed", c->hello.seed);
	fprintf(f, "  \"seconds\": %.6f,\n", s);
	put_number(f, "messages", c->msgs);
	put_number(f, "bytes", c->bytes);
	fprintf(f, "  \"gbps\": %.6f,\n", per_second((double)c->bytes * 8 / 1e9, s));
	fprintf(f, "  \"mps\": %.6f,\n", per_second((double)c->msgs / 1e6, s));
	fprintf(f,
		"  \"latency_ns\": {\"count\": %" PRIu64 ", \"mean\": %" PRIu64
		", \"min\": %" PRIu64 ", \"p50\": %" PRIu64 ", \"p90\": %" PRIu64
		", \"p99\": %" PRIu64 ", \"p999\": %" PRIu64 ", \"max\": %" PRIu64 "},\n",
		lat.count, lat.mean_ns, lat.min_ns, lat.p50_ns, lat.p90_ns, lat.p99_ns, lat.p999_ns,
		lat.max_ns);
	put_memory(f, "memory_begin", &c->memory_begin);
	put_memory(f, "memory_up", &c->memory_up);
	put_number(f, "own_per_conn", sizeof(struct client_conn));
	put_number(f, "rtx", c->rtx);
	put_number(f, "server_rtx", c->report.rtx);
	put_number(f, "server_messages", c->report.msgs);
	put_number(f, "server_bytes", c->report.bytes);
	put_number(f, "server_errors", c->report.errors);
	put_number(f, "server_calls", c->report.calls);
	fprintf(f, "  \"server_mps\": %.6f,\n",
		per_second((double)c->report.calls * 1e3, (double)c->report.calls_ns));
}

int
san_report_try(const char *path)
{
	int fd;

	if (strcmp(path, "-") == 0)
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd >= 0) /* only a check: leave no empty file behind */
		unlink(path);
	else if (errno == EEXIST)
		fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int
san_report_json(struct bench *b, const struct client *c, uint64_t leaks)
{
	bool is_bad = leaks > 0 && leaks != PORT_UNKNOWN;
	FILE *f = strcmp(b->conf.json, "-") == 0 ? stdout : fopen(b->conf.json, "w");

	if (f == NULL)
		return -errno;
	is_bad |= c != NULL ? c->is_failed : b->served.failed > 0;
	fprintf(f, "{\n  \"ok\": %s,\n", is_bad ? "false" : "true");
	if (c != NULL) {
		json_put_client(f, c);
	} else {
		put_number(f, "sessions", b->served.sessions);
		put_number(f, "sessions_failed", b->served.failed);
		put_number(f, "messages", b->served.msgs);
		put_number(f, "bytes", b->served.bytes);
	}
	put_number(f, "leaks", leaks);
	put_counters(f, b);
	fputs("}\n", f);
	is_bad = ferror(f) != 0;
	is_bad |= (f == stdout ? fflush(f) : fclose(f)) != 0;
	return is_bad ? -EIO : 0;
}
