/* SPDX-License-Identifier: BSD-3-Clause */

/* The prompt and its commands. */

#include <poll.h>
#include <unistd.h>

#include <cmdline.h>
#include <cmdline_parse.h>
#include <cmdline_parse_string.h>
#include <cmdline_socket.h>

#include "bench.h"

#define LINE_MAX_BYTES 512
#define INPUT_MS       5 /* period of reading standard input while traffic runs */

/* What a command is parsed into. */
struct cmd_result {
	cmdline_fixed_string_t command;
	cmdline_fixed_string_t name; /* of an option, or what else the command is about */
	cmdline_fixed_string_t value;
};

/* The program that commands act on: rte_cmdline passes no context. */
static struct bench *cmd_bench;
#define NB_COMMANDS 14
static cmdline_parse_ctx_t cmd_all[NB_COMMANDS + 1];

/* Print an error, if there is one, and record it for the exit code. True: there is none. */
static bool
is_fine(struct cmdline *cl, const char *error)
{
	if (error == NULL)
		return true;
	cmdline_printf(cl, "error: %s\n", error);
	cmd_bench->has_failed = true;
	return false;
}

static void
cmd_set_value(struct cmdline *cl, const char *name, const char *value)
{
	bool is_impair = strcmp(name, "impair") == 0;

	if (is_fine(cl, is_impair ? san_port_attached(&cmd_bench->conf) : NULL) &&
	    is_fine(cl, san_args_set(&cmd_bench->conf, name, value)) && is_impair)
		san_port_apply_impair(cmd_bench);
}

static bool
is_running(void)
{
	return cmd_bench->client != NULL && cmd_bench->client->state < CLIENT_OVER;
}

/* Tokens of a command: its word, a name, a value, whatever they are. */
#define TOKEN(field, words) TOKEN_STRING_INITIALIZER(struct cmd_result, field, words)

/* Define the command *id*, which begins with *word* and runs the block that follows. */
#define CMD(id, word, help, ...)                                                        \
	static void do_##id(void *parsed, struct cmdline *cl, void *data);              \
	static cmdline_parse_token_string_t token_##id = TOKEN(command, word);          \
	static cmdline_parse_inst_t cmd_##id = {                                        \
		.f = do_##id,                                                           \
		.help_str = help,                                                       \
		.tokens = {&token_##id.hdr, ##__VA_ARGS__, NULL},                       \
	};                                                                              \
	static void do_##id(void *parsed __rte_unused, struct cmdline *cl __rte_unused, \
			    void *data __rte_unused)

static cmdline_parse_token_string_t token_any = TOKEN(value, NULL);

/* ---- connections ---- */

CMD(listen, "listen", "listen: serve clients in the background")
{
	if (is_fine(cl, cmd_bench->listener != NULL ? "already listening" : NULL))
		san_server_start(cmd_bench);
}

CMD(unlisten, "unlisten", "unlisten: end every session, serve no more")
{
	if (is_fine(cl, cmd_bench->listener == NULL ? "not listening" : NULL))
		san_server_stop(cmd_bench);
}

CMD(connect, "connect", "connect ADDR: the server of the next start", &token_any.hdr)
{
	cmd_set_value(cl, "connect", ((const struct cmd_result *)parsed)->value);
}

/* ---- the port ---- */

CMD(capture, "capture", "capture FILE|off: write every packet to a pcapng file", &token_any.hdr)
{
	const char *file = ((const struct cmd_result *)parsed)->value;

	if (is_fine(cl, san_port_attached(&cmd_bench->conf)) &&
	    rtsan_dpdk_capture(cmd_bench->ctx, strcmp(file, "off") == 0 ? NULL : file) < 0)
		is_fine(cl, rtsan_error());
}

CMD(impair, "impair", "impair [rx:|tx:]SPEC|off: faults, e.g. drop=0.01,reorder=0.05,seed=7",
    &token_any.hdr)
{
	cmd_set_value(cl, "impair", ((const struct cmd_result *)parsed)->value);
}

/* ---- traffic ---- */

/*
 * The allowed values depend on the name. rte_cmdline asks a token for its values without the
 * preceding token, but has just parsed that one. So the token of the name stores it. It completes
 * known names but accepts any, so that an unknown name gets a helpful error.
 */
static char name_before[sizeof(cmdline_fixed_string_t)];

static int
parse_name(cmdline_parse_token_hdr_t *tk, const char *text, void *res, unsigned int size)
{
	cmdline_parse_token_string_t any = {.hdr = *tk};

	snprintf(name_before, sizeof(name_before), "%.*s", (int)strcspn(text, " \t\r\n#"), text);
	return cmdline_parse_string(&any.hdr, text, res, size);
}

static int
count_values(cmdline_parse_token_hdr_t *tk __rte_unused)
{
	int n = 0;

	while (san_args_word(name_before, n) != NULL)
		n++;
	return n;
}

static int
get_value(cmdline_parse_token_hdr_t *tk __rte_unused, int i, char *to, unsigned int size)
{
	const char *word = san_args_word(name_before, i);

	return word != NULL && (unsigned int)snprintf(to, size, "%s", word) < size ? 0 : -1;
}

static struct cmdline_token_ops name_ops, value_ops;
static cmdline_parse_token_string_t token_name = {
	.hdr = {.ops = &name_ops, .offset = offsetof(struct cmd_result, name)},
};
static cmdline_parse_token_string_t token_value = {
	.hdr = {.ops = &value_ops, .offset = offsetof(struct cmd_result, value)},
};

CMD(set, "set", "set NAME VALUE: as the argument --NAME; on or off where that has no value",
    &token_name.hdr, &token_value.hdr)
{
	const struct cmd_result *r = parsed;

	cmd_set_value(cl, r->name, r->value);
}

CMD(start, "start", "start: connect and begin traffic, in the background")
{
	if (is_fine(cl, is_running() ? "traffic is running: stop, or wait" : NULL) &&
	    is_fine(cl, cmd_bench->conf.peer[0] == '\0' ? "where to? connect ADDR" : NULL) &&
	    is_fine(cl, san_args_finish(&cmd_bench->conf)))
		san_client_start(cmd_bench);
}

CMD(stop, "stop", "stop: end traffic orderly")
{
	if (is_fine(cl, is_running() ? NULL : "no traffic"))
		san_client_stop(cmd_bench->client);
}

CMD(wait, "wait", "wait: until traffic has ended")
{
	while (is_running() && bench_nb_stops < 2)
		san_bench_step(cmd_bench);
}

CMD(sleep, "sleep", "sleep SECONDS: go on with what runs in the background", &token_any.hdr)
{
	double s = atof(((const struct cmd_result *)parsed)->value);
	uint64_t until = rte_rdtsc() + (uint64_t)(s * (double)cmd_bench->hz);

	if (!is_fine(cl, s > 0 && s < 86400 ? NULL : "sleep SECONDS"))
		return;
	while (rte_rdtsc() < until && bench_nb_stops == 0)
		san_bench_step(cmd_bench);
}

/* ---- show, help and quit ---- */

static const char *const shown[] = {
	[RTSAN_SHOW_PORT] = "port",
	[RTSAN_SHOW_CONN] = "conn",
	[RTSAN_SHOW_STATS] = "stats",
	[RTSAN_SHOW_CAM] = "cam",
	[RTSAN_SHOW_DROPS] = "drops",
	[RTSAN_SHOW_STREAM] = "stream",
};
static cmdline_parse_token_string_t token_what =
	TOKEN(name, "port#conn#stream#stats#cam#drops#histogram#config");

CMD(show, "show", "show port|conn|stream|stats|cam|drops|histogram|config", &token_what.hdr)
{
	const struct cmd_result *r = parsed;
	size_t i;

	for (i = 0; i < RTE_DIM(shown); i++)
		if (strcmp(r->name, shown[i]) == 0 &&
		    is_fine(cl, san_port_attached(&cmd_bench->conf)))
			rtsan_dpdk_show(cmd_bench->ctx, (enum rtsan_dpdk_show)i, stdout);
	if (strcmp(r->name, "config") == 0)
		san_args_show(&cmd_bench->conf, stdout);
	if (strcmp(r->name, "histogram") == 0 &&
	    is_fine(cl, cmd_bench->client == NULL ? "no traffic yet" : NULL))
		san_hist_print(&cmd_bench->client->lat, stdout);
	fflush(stdout);
}

CMD(help, "help", "help: this list")
{
	size_t i;

	for (i = 0; cmd_all[i] != NULL; i++)
		cmdline_printf(cl, "%s\n", ((const cmdline_parse_inst_t *)cmd_all[i])->help_str);
}

static cmdline_parse_token_string_t token_option = {
	.hdr = {.ops = &name_ops, .offset = offsetof(struct cmd_result, name)},
};

CMD(help_option, "help", "help OPTION: what --help has of it", &token_option.hdr)
{
	const char *name = ((const struct cmd_result *)parsed)->name;
	char text[BENCH_TEXT];

	snprintf(text, sizeof(text), "%.100s: no such option", name);
	is_fine(cl, san_args_explain(name, stdout) ? NULL : text);
	fflush(stdout);
}

CMD(quit, "quit", "quit: end what runs, and the program")
{
	cmd_bench->is_quit = true;
	cmdline_quit(cl);
}

/* In the order of the help. */
static cmdline_parse_ctx_t cmd_all[NB_COMMANDS + 1] = {
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

/* ---- input ---- */

static void
cmd_init(struct bench *b)
{
	cmd_bench = b;
	name_ops = value_ops = cmdline_token_string_ops;
	name_ops.parse = parse_name;
	value_ops.complete_get_nb = count_values;
	value_ops.complete_get_elt = get_value;
	token_name.string_data.str = san_args_names(true);
	token_option.string_data.str = san_args_names(false);
}

/* Line by line, because cmdline_interact() does not report which line is wrong. */
bool
san_cmd_run_file(struct bench *b, const char *path)
{
	static const char *const errors[] = {
		[-CMDLINE_PARSE_AMBIGUOUS] = "ambiguous command",
		[-CMDLINE_PARSE_NOMATCH] = "no such command, see help",
		[-CMDLINE_PARSE_BAD_ARGS] = "bad arguments, see help",
	};
	FILE *f = fopen(path, "r");
	struct cmdline *cl = cmdline_new(cmd_all, "", STDIN_FILENO, STDOUT_FILENO);
	char line[LINE_MAX_BYTES + 2];
	uint32_t number = 0;
	int status;

	cmd_init(b);
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
			san_bench_fail(b, "%s:%u: %s", path, number, errors[-status]);
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

	cmd_init(b);
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
