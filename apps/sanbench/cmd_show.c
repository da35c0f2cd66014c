/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands that show something, and quit. */

#include <string.h>

#include "cmd.h"
#include "port.h"

static const char *const shown[] = {
	[RTSAN_SHOW_PORT] = "port",
	[RTSAN_SHOW_CONN] = "conn",
	[RTSAN_SHOW_STATS] = "stats",
	[RTSAN_SHOW_CAM] = "cam",
	[RTSAN_SHOW_DROPS] = "drops",
	[RTSAN_SHOW_STREAM] = "stream",
};

static void
do_show(const struct cmd_result *r, struct cmdline *cl)
{
	size_t i;

	for (i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (strcmp(r->name, shown[i]) == 0 &&
		    san_port_show(cmd_bench, (enum rtsan_dpdk_show)i, stdout) < 0)
			san_cmd_error(cl, san_port_attached(cmd_bench));
	if (strcmp(r->name, "config") == 0)
		san_args_show(&cmd_bench->conf, stdout);
	if (strcmp(r->name, "histogram") == 0) {
		if (cmd_bench->client == NULL)
			san_cmd_error(cl, "no traffic yet");
		else
			san_hist_print(&cmd_bench->client->lat, stdout);
	}
	fflush(stdout);
}

static void
do_help(const struct cmd_result *r, struct cmdline *cl)
{
	size_t i;

	(void)r;
	for (i = 0; cmd_all[i] != NULL; i++)
		cmdline_printf(cl, "%s\n", cmd_all[i]->help_str);
}

static void
do_help_option(const struct cmd_result *r, struct cmdline *cl)
{
	char text[BENCH_TEXT];

	if (!san_args_explain(r->name, stdout)) {
		snprintf(text, sizeof(text), "%.100s: no such option", r->name);
		san_cmd_error(cl, text);
	}
	fflush(stdout);
}

static void
do_quit(const struct cmd_result *r, struct cmdline *cl)
{
	(void)r;
	cmd_bench->is_quit = true;
	cmdline_quit(cl);
}

static int
parse_option(cmdline_parse_token_hdr_t *tk, const char *text, void *res, unsigned int size)
{
	cmdline_parse_token_string_t any = {.hdr = *tk};

	return cmdline_parse_string(&any.hdr, text, res, size);
}

static cmdline_parse_token_string_t token_what = TOKEN_STRING_INITIALIZER(
	struct cmd_result, name, "port#conn#stream#stats#cam#drops#histogram#config");
/* Completes known names but accepts any, so that an unknown name gets a helpful error. */
static struct cmdline_token_ops option_ops = {
	.parse = parse_option,
	.complete_get_nb = cmdline_complete_get_nb_string,
	.complete_get_elt = cmdline_complete_get_elt_string,
	.get_help = cmdline_get_help_string,
};
static cmdline_parse_token_string_t token_option = {
	.hdr = {.ops = &option_ops, .offset = offsetof(struct cmd_result, name)},
};

CMD(show, "show", "show port|conn|stream|stats|cam|drops|histogram|config", &token_what.hdr);
CMD(help, "help", "help: this list");
CMD(help_option, "help", "help OPTION: what --help has of it", &token_option.hdr);
CMD(quit, "quit", "quit: end what runs, and the program");

void
san_cmd_show_init(void)
{
	token_option.string_data.str = san_args_names(false);
}
