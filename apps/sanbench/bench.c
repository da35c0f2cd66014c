/* SPDX-License-Identifier: BSD-3-Clause */

#include <err.h>
#include <signal.h>
#include <stdarg.h>

#include "bench.h"

#define STOP_GRACE_MS 5000
#define WAIT_MS       10 /* maximum sleep, because deadlines and the prompt are polled */

volatile int bench_nb_stops;

static void
bench_on_signal(int signum __rte_unused)
{
	bench_nb_stops++;
}

void
san_bench_fail(struct bench *b, const char *format, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, format);
	vwarnx(format, ap);
	va_end(ap);
	b->has_failed = true;
}

/* Write the results of the client, or without one of the server, if --json asks for them. */
static void
bench_write_json(struct bench *b, const struct client *c, uint64_t leaks)
{
	int ret = b->conf.json[0] == '\0' ? 0 : san_report_json(b, c, leaks);

	if (ret < 0)
		san_bench_fail(b, "--json %s: %s", b->conf.json, strerror(-ret));
}

bool
san_bench_step(struct bench *b)
{
	bool has_worked = san_net_poll(b) > 0;
	uint64_t leaks = 0;

	if (b->listener != NULL)
		has_worked |= san_server_step(b);
	if (b->client != NULL && b->client->state < CLIENT_OVER) {
		if (bench_nb_stops > 0 && b->client->state < CLIENT_CLOSE)
			san_client_stop(b->client);
		has_worked |= san_client_step(b->client);
	}
	if (b->client != NULL && b->client->state == CLIENT_OVER) {
		b->client->state = CLIENT_REPORTED;
		/* leaks are counted only if nothing else is open */
		if (b->listener == NULL || san_port_attached(&b->conf) != NULL)
			leaks = san_port_check_leaks(b);
		/* only JSON goes to standard output */
		san_report_client(b->client, strcmp(b->conf.json, "-") == 0 ? stderr : stdout);
		bench_write_json(b, b->client, leaks);
	}
	if (!has_worked && b->conf.wait)
		san_net_wait(b, WAIT_MS);
	return has_worked;
}

static void
bench_run(struct bench *b)
{
	const struct bench_conf *conf = &b->conf;
	uint64_t stop_by = 0;

	if (conf->cmdline_file[0] != '\0' && !san_cmd_run_file(b, conf->cmdline_file))
		return;
	if (b->is_quit)
		return;
	if (conf->server && san_server_start(b) != 0)
		return;
	if (conf->server && !conf->interactive) {
		while (bench_nb_stops == 0 &&
		       (conf->sessions == 0 || b->served.sessions < conf->sessions))
			san_bench_step(b);
	} else if (conf->peer[0] != '\0' && !conf->interactive && conf->cmdline_file[0] == '\0') {
		san_client_start(b);
		while (b->client != NULL && b->client->state < CLIENT_REPORTED &&
		       bench_nb_stops < 2) {
			san_bench_step(b);
			if (bench_nb_stops == 1 && stop_by == 0)
				stop_by = rte_rdtsc() + san_bench_ticks_of_ms(b, STOP_GRACE_MS);
			if (stop_by != 0 && rte_rdtsc() > stop_by)
				bench_nb_stops = 2;
		}
	} else if (conf->interactive || conf->cmdline_file[0] == '\0') {
		san_cmd_prompt(b);
	}
}

/*
 * Find the own arguments: they follow the "--" that ends those of EAL, or are all arguments if
 * --attach comes first. Returns the index before the first one.
 */
static int
split_args(int argc, char **argv)
{
	int split;

	if (argc > 1 &&
	    (strcmp(argv[1], "--attach") == 0 || strncmp(argv[1], "--attach=", 9) == 0))
		return 0;
	for (split = 1; split < argc && strcmp(argv[split], "--") != 0; split++)
		if (san_args_is_ours(argv[split]))
			errx(BENCH_EXIT_USAGE,
			     "%s: \"--\" is missing between the arguments of EAL and those of "
			     "sanbench",
			     argv[split]);
	return split;
}

int
main(int argc, char **argv)
{
	static struct bench b;
	struct sigaction sa = {.sa_handler = bench_on_signal};
	const char *wrong;
	uint64_t leaks;
	int split, ret, i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			san_args_usage(stdout);
		else if (strcmp(argv[i], "--keys") == 0)
			san_args_keys(stdout);
		else if (strcmp(argv[i], "--version") == 0)
			printf("sanbench %s\n", rtsan_build());
		else
			continue;
		return BENCH_EXIT_OK;
	}
	split = split_args(argc, argv);
	san_args_defaults(&b.conf);
	wrong = san_args_parse(&b.conf, split < argc ? argc - split - 1 : 0, argv + split + 1);
	if (wrong != NULL)
		errx(BENCH_EXIT_USAGE, "%s", wrong);
	if (san_port_attached(&b.conf) != NULL && split > 1)
		errx(BENCH_EXIT_USAGE, "--attach: there is no EAL, and no arguments for it");
	ret = b.conf.json[0] != '\0' ? san_report_try(b.conf.json) : 0;
	if (ret < 0) /* fail now, not after a long run */
		errx(BENCH_EXIT_USAGE, "--json %s: %s", b.conf.json, strerror(-ret));
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	ret = san_port_open(&b, split, argv);
	if (ret < 0)
		return ret == -EINVAL ? BENCH_EXIT_USAGE : BENCH_EXIT_FAILED;
	bench_run(&b);
	san_client_free(b.client);
	san_server_stop(&b);
	leaks = san_port_check_leaks(&b);
	if (b.conf.server)
		bench_write_json(&b, NULL, leaks);
	san_port_close(&b);
	return b.has_failed ? BENCH_EXIT_FAILED : BENCH_EXIT_OK;
}
