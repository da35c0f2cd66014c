/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CMD_H
#define CMD_H

/** @file Commands of the prompt, grouped by file. cmd.c lists them all. */

#include <cmdline.h>
#include <cmdline_parse.h>
#include <cmdline_parse_string.h>

#include "mode.h"

/** What a command is parsed into. */
struct cmd_result {
	cmdline_fixed_string_t command;
	cmdline_fixed_string_t name; /* of an option, or what else the command is about */
	cmdline_fixed_string_t value;
};

/** Define cmd_*id*, which begins with *word* and is run by do_*id*(). Then tokens may follow. */
#define CMD(id, word, help, ...)                                            \
	static void                                                         \
		run_##id(void *parsed, struct cmdline *cl, void *data)      \
	{                                                                   \
		(void)data;                                                 \
		do_##id(parsed, cl);                                        \
	}                                                                   \
	static cmdline_parse_token_string_t token_##id =                    \
		TOKEN_STRING_INITIALIZER(struct cmd_result, command, word); \
	cmdline_parse_inst_t cmd_##id = {                                   \
		.f = run_##id,                                              \
		.help_str = help,                                           \
		.tokens = {&token_##id.hdr, ##__VA_ARGS__, NULL},           \
	}

/** The program that commands act on: rte_cmdline passes no context. */
extern struct bench *cmd_bench;
/** All commands, in the order of the help; NULL ends them. */
extern cmdline_parse_ctx_t cmd_all[];

/* cmd_port.c */
extern cmdline_parse_inst_t cmd_capture, cmd_impair;
/* cmd_conn.c */
extern cmdline_parse_inst_t cmd_listen, cmd_unlisten, cmd_connect;
/* cmd_traffic.c */
extern cmdline_parse_inst_t cmd_set, cmd_start, cmd_stop, cmd_wait, cmd_sleep;
void san_cmd_traffic_init(void);
/* cmd_show.c */
extern cmdline_parse_inst_t cmd_show, cmd_help, cmd_help_option, cmd_quit;
void san_cmd_show_init(void);

/** Print an error, and record it for the exit code. */
void san_cmd_error(struct cmdline *cl, const char *text);

#endif /* CMD_H */
