/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "mode.h"

const struct bench_mode *const mode_all[] = {
	&mode_send,
	&mode_push,
	&mode_pull,
	&mode_atomic,
	&mode_incast,
	&mode_rpc,
	&mode_connect,
	&mode_idle,
	&mode_stream,
	NULL,
};

const struct bench_mode *
san_mode_by_name(const char *name)
{
	uint32_t i;

	for (i = 0; mode_all[i] != NULL; i++)
		if (strcmp(mode_all[i]->name, name) == 0)
			break;
	return mode_all[i];
}

const struct bench_mode *
san_mode_by_id(uint8_t id)
{
	uint32_t i;

	for (i = 0; mode_all[i] != NULL; i++)
		if (mode_all[i]->id == id)
			break;
	return mode_all[i];
}

uint8_t
san_mode_wr_flags(const struct bench_conf *conf)
{
	static const uint8_t flags[] = {
		[BENCH_SOLICIT_AUTO] = 0,
		[BENCH_SOLICIT_ALWAYS] = RTSAN_WR_SOLICITED,
		[BENCH_SOLICIT_NEVER] = RTSAN_WR_UNSOLICITED,
	};

	return RTSAN_WR_SIGNALED | flags[conf->solicit];
}
