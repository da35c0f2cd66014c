/* SPDX-License-Identifier: BSD-3-Clause */

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <cmdline_socket.h>
#include <rte_cycles.h>

#include "cmd.h"

#define LINE_MAX_BYTES 512
#define INPUT_MS       5 /* period of reading standard input while traffic runs */

struct bench *cmd_bench;

cmdline_parse_ctx_t cmd_all[] = {
	&cmd_help,
	&cmd_help_option,
	&cmd_show,
	&cmd_set,
	&cmd_connect,
	&cmd_listen,
	&cmd_unlisten,
	&cmd_start,
	&cmd_stop,
	&cmd_wait,
	&cmd_sleep,
	&cmd_impair,
	&cmd_capture,
	&cmd_quit,
	NULL,
};

void
san_cmd_error(struct cmdline *cl, const char *text)
{
	cmdline_printf(cl, "error: %s\n", text);
	cmd_bench->has_failed = true;
}

static const char *
parse_error(int status)
{
	switch (status) {
	case CMDLINE_PARSE_AMBIGUOUS:
		return "ambiguous command";
	case CMDLINE_PARSE_NOMATCH:
		return "no such command, see help";
	default:
		return "bad arguments, see help";
	}
}

/* Line by line, because cmdline_interact() does not report which line is wrong. */
bool
san_cmd_run_file(struct bench *b, const char *path)
{
	FILE *f = fopen(path, "r");
	struct cmdline *cl = cmdline_new(cmd_all, "", STDIN_FILENO, STDOUT_FILENO);
	char line[LINE_MAX_BYTES + 2];
	uint32_t number = 0;
	int status;

	cmd_bench = b;
	san_cmd_traffic_init();
	if (f == NULL || cl == NULL)
		san_bench_fail(b, "--cmdline-file %s: can't be read", path);
	while (f != NULL && cl != NULL && !b->is_quit && bench_nb_stops == 0 &&
	       fgets(line, LINE_MAX_BYTES, f) != NULL) {
		number++;
		if (strchr(line, '\n') == NULL && !feof(f)) {
			san_bench_fail(b, "%s:%u: not a text, or line too long", path, number);
			break;
		}
		if (line[strspn(line, " \t\r\n")] == '\0' || line[0] == '#')
			continue;
		line[strcspn(line, "\r\n")] = '\0';
		/* the parser needs the end of the line */
		strcat(line, "\n");
		status = cmdline_parse(cl, line);
		if (status < 0)
			san_bench_fail(b, "%s:%u: %s", path, number, parse_error(status));
	}
	if (cl != NULL)
		cmdline_free(cl);
	if (f == NULL)
		return false;
	fclose(f);
	return true;
}

/* Read the keyboard. False: end of input, or "quit". */
static bool
take_input(struct cmdline *cl)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char buf[256];
	ssize_t n;

	if (poll(&in, 1, 0) <= 0)
		return true;
	n = read(STDIN_FILENO, buf, sizeof(buf));
	if (n <= 0)
		return false;
	/* -1 after "quit"; other errors concern one line and were reported */
	cmdline_in(cl, buf, (int)n);
	return !cmd_bench->is_quit;
}

void
san_cmd_prompt(struct bench *b)
{
	uint64_t check_at = 0;
	struct cmdline *cl;

	cmd_bench = b;
	san_cmd_traffic_init();
	cl = cmdline_stdin_new(cmd_all, "sanbench> ");
	if (cl == NULL) {
		san_bench_fail(b, "no prompt on this standard input");
		return;
	}
	while (!b->is_quit && bench_nb_stops == 0) {
		san_bench_step(b);
		if (rte_rdtsc() < check_at)
			continue;
		if (!take_input(cl))
			break;
		check_at = rte_rdtsc() + san_bench_ticks_of_ms(b, INPUT_MS);
	}
	cmdline_stdin_exit(cl);
	printf("\n");
}
