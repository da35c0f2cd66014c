/* SPDX-License-Identifier: BSD-3-Clause */

/* Results as JSON. doc/man/sanbench.1 describes the keys. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mode.h"
#include "port.h"

#define COUNTERS_MAX 512

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

static void
json_put_number(FILE *f, const char *key, uint64_t value)
{
	fprintf(f, "  \"%s\": %" PRIu64 ",\n", key, value);
}

/* A counter that only another process knows is null. */
static void
put_counter(FILE *f, const char *key, uint64_t value)
{
	if (value == PORT_UNKNOWN)
		fprintf(f, "  \"%s\": null,\n", key);
	else
		json_put_number(f, key, value);
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
	struct rtsan_dpdk_counter *c;
	int n = 0, i;

	if (san_port_is_attached(b)) {
		fputs("  \"counters\": null\n", f);
		return;
	}
	c = calloc(COUNTERS_MAX, sizeof(*c));
	if (c != NULL)
		n = san_port_counters(b, c, COUNTERS_MAX);
	fputs("  \"counters\": {", f);
	for (i = 0; i < n; i++)
		fprintf(f, "%s\n    \"%s\": %" PRIu64, i > 0 ? "," : "", c[i].name, c[i].value);
	fputs("\n  }\n", f);
	free(c);
}

static void
put_conf(FILE *f, const struct client *c)
{
	static const char *const orders[] = {"ordered", "unordered", "relaxed", "ending"};
	static const char *const solicits[] = {"auto", "always", "never"};

	put_text(f, "mode", c->mode->name);
	put_text(f, "peer", c->conf.peer);
	put_text(f, "order", orders[c->conf.order]);
	put_text(f, "solicit", solicits[c->conf.solicit]);
	fprintf(f, "  \"verify\": %s,\n", c->conf.verify ? "true" : "false");
	json_put_number(f, "size_min", c->conf.size_min);
	json_put_number(f, "size_max", c->conf.size_max);
	json_put_number(f, "depth", c->conf.depth);
	json_put_number(f, "conns", c->nb_conns);
	json_put_number(f, "seed", c->conf.seed);
}

static bool
is_leaking(uint64_t leaks)
{
	return leaks > 0 && leaks != PORT_UNKNOWN;
}

static FILE *
out_open(const char *path)
{
	return strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
}

static int
out_close(FILE *f)
{
	bool is_bad;

	fputs("}\n", f);
	is_bad = ferror(f) != 0;
	if (f == stdout)
		fflush(f);
	else
		is_bad |= fclose(f) != 0;
	return is_bad ? -EIO : 0;
}

int
san_json_try(const char *path)
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
san_json_write(const struct client *c, const char *path, uint64_t leaks)
{
	FILE *f = out_open(path);
	double s = san_report_seconds(c);
	struct hist_summary lat;

	if (f == NULL)
		return -errno;
	san_hist_summarize(&c->lat, &lat);
	fputs("{\n", f);
	fprintf(f, "  \"ok\": %s,\n", c->is_failed || is_leaking(leaks) ? "false" : "true");
	put_text(f, "error", c->error);
	put_conf(f, c);
	fprintf(f, "  \"seconds\": %.6f,\n", s);
	json_put_number(f, "messages", c->msgs);
	json_put_number(f, "bytes", c->bytes);
	fprintf(f, "  \"gbps\": %.6f,\n", s > 0 ? (double)c->bytes * 8 / s / 1e9 : 0);
	fprintf(f, "  \"mps\": %.6f,\n", s > 0 ? (double)c->msgs / s / 1e6 : 0);
	fprintf(f,
		"  \"latency_ns\": {\"count\": %" PRIu64 ", \"mean\": %" PRIu64
		", \"min\": %" PRIu64 ", \"p50\": %" PRIu64 ", \"p90\": %" PRIu64
		", \"p99\": %" PRIu64 ", \"p999\": %" PRIu64 ", \"max\": %" PRIu64 "},\n",
		lat.count, lat.mean_ns, lat.min_ns, lat.p50_ns, lat.p90_ns, lat.p99_ns, lat.p999_ns,
		lat.max_ns);
	put_memory(f, "memory_begin", &c->memory_begin);
	put_memory(f, "memory_up", &c->memory_up);
	json_put_number(f, "own_per_conn", sizeof(struct client_conn));
	put_counter(f, "rtx", c->rtx);
	put_counter(f, "server_rtx", c->report.rtx);
	json_put_number(f, "server_messages", c->report.msgs);
	json_put_number(f, "server_bytes", c->report.bytes);
	json_put_number(f, "server_errors", c->report.errors);
	json_put_number(f, "server_calls", c->report.calls);
	fprintf(f, "  \"server_mps\": %.6f,\n",
		c->report.calls_ns > 0 ?
			(double)c->report.calls * 1e3 / (double)c->report.calls_ns :
			0);
	put_counter(f, "leaks", leaks);
	put_counters(f, c->b);
	return out_close(f);
}

int
san_json_write_server(struct bench *b, const char *path, uint64_t leaks)
{
	FILE *f = out_open(path);

	if (f == NULL)
		return -errno;
	fputs("{\n", f);
	fprintf(f, "  \"ok\": %s,\n", b->served.failed > 0 || is_leaking(leaks) ? "false" : "true");
	json_put_number(f, "sessions", b->served.sessions);
	json_put_number(f, "sessions_failed", b->served.failed);
	json_put_number(f, "messages", b->served.msgs);
	json_put_number(f, "bytes", b->served.bytes);
	put_counter(f, "leaks", leaks);
	put_counters(f, b);
	return out_close(f);
}
