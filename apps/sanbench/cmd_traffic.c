/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands about traffic: settings, start, stop, wait. */

#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "cmd.h"
#include "port.h"

static void
do_set(const struct cmd_result *r, struct cmdline *cl)
{
	char error[BENCH_TEXT];

	if (san_args_set(&cmd_bench->conf, r->name, r->value, error, sizeof(error)) < 0)
		san_cmd_error(cl, error);
	else
		san_port_apply_impair(cmd_bench);
}

static void
do_start(const struct cmd_result *r, struct cmdline *cl)
{
	char error[BENCH_TEXT];

	(void)r;
	if (cmd_bench->client != NULL && cmd_bench->client->state != CLIENT_OVER)
		san_cmd_error(cl, "traffic is running: stop, or wait");
	else if (cmd_bench->conf.peer[0] == '\0')
		san_cmd_error(cl, "where to? connect ADDR");
	else if (san_args_finish(&cmd_bench->conf, error, sizeof(error)) < 0)
		san_cmd_error(cl, error);
	else
		san_bench_client_start(cmd_bench);
}

static void
do_stop(const struct cmd_result *r, struct cmdline *cl)
{
	(void)r;
	if (cmd_bench->client == NULL || cmd_bench->client->state == CLIENT_OVER)
		san_cmd_error(cl, "no traffic");
	else
		san_client_stop(cmd_bench->client);
}

static void
do_wait(const struct cmd_result *r, struct cmdline *cl)
{
	(void)r;
	(void)cl;
	while (cmd_bench->client != NULL && cmd_bench->client->state != CLIENT_OVER &&
	       bench_nb_stops < 2)
		san_bench_step(cmd_bench);
}

static void
do_sleep(const struct cmd_result *r, struct cmdline *cl)
{
	double s = atof(r->value);
	uint64_t until = rte_rdtsc() + (uint64_t)(s * (double)cmd_bench->hz);

	if (!(s > 0 && s < 86400)) {
		san_cmd_error(cl, "sleep SECONDS");
		return;
	}
	while (rte_rdtsc() < until && bench_nb_stops == 0)
		san_bench_step(cmd_bench);
}

/*
 * The allowed values depend on the name. rte_cmdline asks a token for its values without the
 * preceding token, but has just parsed that one. So the token of the name stores it.
 */
static char name_before[sizeof(cmdline_fixed_string_t)];

static int
parse_name(cmdline_parse_token_hdr_t *tk, const char *text, void *res, unsigned int size)
{
	size_t n = strcspn(text, " \t\r\n#");

	snprintf(name_before, sizeof(name_before), "%.*s", (int)n, text);
	return cmdline_parse_string(tk, text, res, size);
}

static int
count_values(cmdline_parse_token_hdr_t *tk)
{
	int n = 0;

	(void)tk;
	while (san_args_word(name_before, n) != NULL)
		n++;
	return n;
}

static int
get_value(cmdline_parse_token_hdr_t *tk, int i, char *to, unsigned int size)
{
	const char *word = san_args_word(name_before, i);

	(void)tk;
	return word != NULL && (unsigned int)snprintf(to, size, "%s", word) < size ? 0 : -1;
}

static struct cmdline_token_ops name_ops = {
	.parse = parse_name,
	.complete_get_nb = cmdline_complete_get_nb_string,
	.complete_get_elt = cmdline_complete_get_elt_string,
	.get_help = cmdline_get_help_string,
};
static struct cmdline_token_ops value_ops = {
	.parse = cmdline_parse_string,
	.complete_get_nb = count_values,
	.complete_get_elt = get_value,
	.get_help = cmdline_get_help_string,
};

static cmdline_parse_token_string_t token_name = {
	.hdr = {.ops = &name_ops, .offset = offsetof(struct cmd_result, name)},
};
static cmdline_parse_token_string_t token_value = {
	.hdr = {.ops = &value_ops, .offset = offsetof(struct cmd_result, value)},
};
static cmdline_parse_token_string_t token_seconds =
	TOKEN_STRING_INITIALIZER(struct cmd_result, value, NULL);

void
san_cmd_traffic_init(void)
{
	token_name.string_data.str = san_args_names(true);
	san_cmd_show_init();
}

CMD(set, "set", "set NAME VALUE: as the argument --NAME; on or off where that has no value",
    &token_name.hdr, &token_value.hdr);
CMD(start, "start", "start: connect and begin traffic, in the background");
CMD(stop, "stop", "stop: end traffic orderly");
CMD(wait, "wait", "wait: until traffic has ended");
CMD(sleep, "sleep", "sleep SECONDS: go on with what runs in the background",
    &token_seconds.hdr);
