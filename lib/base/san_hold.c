/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>

#include "san_hold.h"

static const char *const names[] = {
	[SAN_HOLD_NONE] = "none",
	[SAN_HOLD_SETUP] = "setup",
	[SAN_HOLD_APPLICATION] = "application",
	[SAN_HOLD_ANSWER] = "answer",
	[SAN_HOLD_WINDOW] = "window",
	[SAN_HOLD_VIRTUAL] = "virtual_window",
	[SAN_HOLD_CONGESTION] = "congestion",
	[SAN_HOLD_PACE] = "pace",
	[SAN_HOLD_BUDGET] = "budget",
	[SAN_HOLD_MEMORY] = "memory",
	[SAN_HOLD_GRANT] = "grant",
	[SAN_HOLD_RECEIVER] = "receiver",
	[SAN_HOLD_MESSAGES] = "messages",
	[SAN_HOLD_TRANSACTIONS] = "transactions",
	[SAN_HOLD_RECORDS] = "records",
	[SAN_HOLD_PULLS] = "pulls",
};
static_assert(sizeof(names) / sizeof(names[0]) == SAN_HOLD_MAX, "a reason has no name");

const char *
san_hold_name(uint8_t hold)
{
	return hold < SAN_HOLD_MAX ? names[hold] : "unknown";
}
