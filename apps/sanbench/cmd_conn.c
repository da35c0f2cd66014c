/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands about connections: connect and listen. */

#include "cmd.h"

struct conn_result {
	cmdline_fixed_string_t command;
	cmdline_fixed_string_t peer;
};

static void
cmd_do_listen(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)data;
	if (cmd_bench->server != NULL)
		san_cmd_error(cl, "already listening");
	else
		san_server_start(cmd_bench);
}

static void
cmd_do_unlisten(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)data;
	if (cmd_bench->server == NULL)
		san_cmd_error(cl, "not listening");
	else
		san_server_stop(cmd_bench->server);
}

static void
cmd_do_connect(void *parsed, struct cmdline *cl, void *data)
{
	struct conn_result *r = parsed;
	char error[BENCH_TEXT];

	(void)data;
	if (san_args_set(&cmd_bench->conf, "connect", r->peer, error, sizeof(error)) < 0)
		san_cmd_error(cl, error);
}

static cmdline_parse_token_string_t token_listen =
	TOKEN_STRING_INITIALIZER(struct conn_result, command, "listen");
static cmdline_parse_token_string_t token_unlisten =
	TOKEN_STRING_INITIALIZER(struct conn_result, command, "unlisten");
static cmdline_parse_token_string_t token_connect =
	TOKEN_STRING_INITIALIZER(struct conn_result, command, "connect");
static cmdline_parse_token_string_t token_peer =
	TOKEN_STRING_INITIALIZER(struct conn_result, peer, NULL);

cmdline_parse_inst_t cmd_listen = {
	.f = cmd_do_listen,
	.help_str = "listen: serve clients in the background",
	.tokens = {(void *)&token_listen, NULL},
};

cmdline_parse_inst_t cmd_unlisten = {
	.f = cmd_do_unlisten,
	.help_str = "unlisten: end every session, serve no more",
	.tokens = {(void *)&token_unlisten, NULL},
};

cmdline_parse_inst_t cmd_connect = {
	.f = cmd_do_connect,
	.help_str = "connect ADDR: the server of the next start",
	.tokens = {(void *)&token_connect, (void *)&token_peer, NULL},
};
