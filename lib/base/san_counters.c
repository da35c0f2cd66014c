/* SPDX-License-Identifier: BSD-3-Clause */

#include "san_counters.h"

#define NAME_OF(reason, name, help) #name,

const char *
san_drop_name(enum san_drop reason)
{
	static const char *const names[SAN_DROP_MAX] = {"none", SAN_DROPS(NAME_OF)};

	/* Unsigned, so that a negative value is out of range too. */
	return (unsigned int)reason < SAN_DROP_MAX ? names[reason] : "unknown";
}

const char *
san_hold_name(uint8_t hold)
{
	static const char *const names[] = {SAN_HOLDS(NAME_OF)};

	return names[hold < SAN_HOLD_MAX ? hold : SAN_HOLD_MAX];
}
