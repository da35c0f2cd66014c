/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Incast: many connections push long solicited messages to one server at the same time, so that the
 * server's grants control their rates (RT-13).
 */

#include "mode.h"

const struct bench_mode mode_incast = {
	.name = "incast",
	.help = "many connections push to one server at once, solicited",
	.id = MODE_INCAST,
	.flags = MODE_SLOTS,
	.rights = RTSAN_REMOTE_PUSH,
	.size = 65536,
	.depth = 4,
	.conns = 32,
	.solicit = BENCH_SOLICIT_ALWAYS,
	.init = san_mode_push_init,
	.fill = san_mode_push_fill,
	.on_recv = san_mode_push_on_recv,
	.on_slot = san_mode_push_on_slot,
	.end = san_mode_push_end,
};
