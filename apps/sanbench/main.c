/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "mode.h"
#include "port.h"

#define STOP_GRACE_MS 5000
#define WAIT_MS       10 /* maximum sleep, because deadlines and the prompt are polled */

volatile int bench_stop_asked;

static void
on_signal(int signum)
{
	(void)signum;
	bench_stop_asked++;
}

void
bench_fail(struct bench *b, const char *format, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("sanbench: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	b->has_failed = true;
}

void
bench_client_start(struct bench *b)
{
	client_free(b->client);
	b->client = client_start(b);
	b->is_client_told = false;
}

static void
json_told(struct bench *b, int ret)
{
	if (ret < 0)
		bench_fail(b, "--json %s: %s", b->conf.json, strerror(-ret));
}

/* A run has ended: report it. Leaks are counted only if nothing else is open. */
static void
client_ended(struct bench *b)
{
	uint64_t leaks = 0;

	b->is_client_told = true;
	if (b->server == NULL || port_is_attached(b))
		leaks = port_check_leaks(b);
	/* only JSON goes to standard output */
	report_client(b->client, strcmp(b->conf.json, "-") == 0 ? stderr : stdout);
	if (b->conf.json[0] != '\0')
		json_told(b, json_write(b->client, b->conf.json, leaks));
}

bool
bench_step(struct bench *b)
{
	bool has_worked;

	has_worked = net_poll(b) > 0;
	if (b->server != NULL)
		has_worked |= server_step(b->server);
	if (b->client != NULL && !b->is_client_told) {
		if (bench_stop_asked > 0 && b->client->state < CLIENT_CLOSE)
			client_stop(b->client);
		has_worked |= client_step(b->client);
		if (b->client->state == CLIENT_OVER)
			client_ended(b);
	}
	if (!has_worked && b->conf.wait)
		net_wait(b, WAIT_MS);
	return has_worked;
}

static void
run_server(struct bench *b)
{
	uint32_t sessions = b->conf.sessions;

	if (server_start(b) < 0)
		return;
	while (bench_stop_asked == 0 && (sessions == 0 || b->served.sessions < sessions))
		bench_step(b);
}

static void
run_client(struct bench *b)
{
	uint64_t stop_by = 0;

	bench_client_start(b);
	while (b->client != NULL && !b->is_client_told && bench_stop_asked < 2) {
		bench_step(b);
		if (bench_stop_asked == 1 && stop_by == 0)
			stop_by = rte_rdtsc() + bench_ticks_of_ms(b, STOP_GRACE_MS);
		if (stop_by != 0 && rte_rdtsc() > stop_by)
			bench_stop_asked = 2;
	}
}

static void
run(struct bench *b)
{
	const struct bench_conf *conf = &b->conf;
	bool is_batch = conf->server || conf->peer[0] != '\0';

	if (conf->cmdline_file[0] != '\0' && !cmd_run_file(b, conf->cmdline_file))
		return;
	if (b->is_quit)
		return;
	if (conf->server && conf->interactive) {
		if (server_start(b) == 0)
			cmd_prompt(b);
	} else if (conf->server) {
		run_server(b);
	} else if (is_batch && !conf->interactive && conf->cmdline_file[0] == '\0') {
		run_client(b);
	} else if (conf->interactive || conf->cmdline_file[0] == '\0') {
		cmd_prompt(b);
	}
}

/* End the run, and report what it leaves behind. */
static void
finish(struct bench *b)
{
	uint64_t leaks;

	client_free(b->client);
	server_stop(b->server);
	leaks = port_check_leaks(b);
	if (b->conf.server && b->conf.json[0] != '\0')
		json_told(b, json_write_server(b, b->conf.json, leaks));
	port_close(b);
}

/* An attached program has no EAL arguments, so --attach comes first. */
static bool
is_attach(const char *word)
{
	return strcmp(word, "--attach") == 0 || strncmp(word, "--attach=", 9) == 0;
}

/*
 * Find the own arguments: they follow the "--" that ends those of EAL, or are all arguments if
 * --attach comes first. Returns the index before the first one; -1: an error was printed.
 */
static int
split_args(int argc, char **argv)
{
	int split;

	if (argc > 1 && is_attach(argv[1]))
		return 0;
	for (split = 1; split < argc && strcmp(argv[split], "--") != 0; split++)
		if (args_is_ours(argv[split])) {
			fprintf(stderr, "sanbench: %s: \"--\" is missing between the arguments of "
					"EAL and those of sanbench\n",
				argv[split]);
			return -1;
		}
	return split;
}

int
main(int argc, char **argv)
{
	static struct bench b;
	struct sigaction sa = {.sa_handler = on_signal};
	char error[BENCH_TEXT * 2];
	int split, ret, i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			args_usage(stdout);
			return BENCH_EXIT_OK;
		}
		if (strcmp(argv[i], "--version") == 0) {
			printf("sanbench %s\n", rtsan_version());
			return BENCH_EXIT_OK;
		}
	}
	split = split_args(argc, argv);
	if (split < 0)
		return BENCH_EXIT_USAGE;
	args_defaults(&b.conf);
	if (args_parse(&b.conf, split < argc ? argc - split - 1 : 0, argv + split + 1, error,
		       sizeof(error)) < 0) {
		fprintf(stderr, "sanbench: %s\n", error);
		return BENCH_EXIT_USAGE;
	}
	if (port_is_attached(&b) && split > 1) {
		fprintf(stderr, "sanbench: --attach: there is no EAL, and no arguments for it\n");
		return BENCH_EXIT_USAGE;
	}
	ret = b.conf.json[0] != '\0' ? json_try(b.conf.json) : 0;
	if (ret < 0) { /* fail now, not after a long run */
		fprintf(stderr, "sanbench: --json %s: %s\n", b.conf.json, strerror(-ret));
		return BENCH_EXIT_USAGE;
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	ret = port_open(&b, split, argv);
	if (ret < 0)
		return ret == -EINVAL ? BENCH_EXIT_USAGE : BENCH_EXIT_FAILED;
	run(&b);
	finish(&b);
	return b.has_failed ? BENCH_EXIT_FAILED : BENCH_EXIT_OK;
}
