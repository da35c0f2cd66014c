/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands about the port: capture and impairment. */

#include <string.h>

#include "cmd.h"
#include "port.h"

static void
do_capture(const struct cmd_result *r, struct cmdline *cl)
{
	bool is_off = strcmp(r->value, "off") == 0;

	if (san_port_is_attached(cmd_bench))
		san_cmd_error(cl, san_port_attached(cmd_bench));
	else if (san_port_capture(cmd_bench, is_off ? NULL : r->value) < 0)
		san_cmd_error(cl, rtsan_error());
}

static void
do_impair(const struct cmd_result *r, struct cmdline *cl)
{
	char error[BENCH_TEXT];

	if (san_port_is_attached(cmd_bench))
		san_cmd_error(cl, san_port_attached(cmd_bench));
	else if (san_args_set(&cmd_bench->conf, "impair", r->value, error, sizeof(error)) < 0)
		san_cmd_error(cl, error);
	else
		san_port_apply_impair(cmd_bench);
}

static cmdline_parse_token_string_t token_value =
	TOKEN_STRING_INITIALIZER(struct cmd_result, value, NULL);

CMD(capture, "capture", "capture FILE|off: write every packet to a pcapng file", &token_value.hdr);
CMD(impair, "impair", "impair [rx:|tx:]SPEC|off: faults, e.g. drop=0.01,reorder=0.05,seed=7",
    &token_value.hdr);
