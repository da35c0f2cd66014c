/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands about connections: connect and listen. */

#include "cmd.h"

static void
do_listen(const struct cmd_result *r, struct cmdline *cl)
{
	(void)r;
	if (cmd_bench->server != NULL)
		san_cmd_error(cl, "already listening");
	else
		san_server_start(cmd_bench);
}

static void
do_unlisten(const struct cmd_result *r, struct cmdline *cl)
{
	(void)r;
	if (cmd_bench->server == NULL)
		san_cmd_error(cl, "not listening");
	else
		san_server_stop(cmd_bench->server);
}

static void
do_connect(const struct cmd_result *r, struct cmdline *cl)
{
	char error[BENCH_TEXT];

	if (san_args_set(&cmd_bench->conf, "connect", r->value, error, sizeof(error)) < 0)
		san_cmd_error(cl, error);
}

static cmdline_parse_token_string_t token_value =
	TOKEN_STRING_INITIALIZER(struct cmd_result, value, NULL);

CMD(listen, "listen", "listen: serve clients in the background");
CMD(unlisten, "unlisten", "unlisten: end every session, serve no more");
CMD(connect, "connect", "connect ADDR: the server of the next start", &token_value.hdr);
