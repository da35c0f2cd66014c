/* SPDX-License-Identifier: BSD-3-Clause */

#include "san_drop.h"

#define DROP_NAME(reason, name, help) #name,

static const char *const names[SAN_DROP_MAX] = {"none", SAN_DROPS(DROP_NAME)};

const char *
san_drop_name(enum san_drop reason)
{
	/* Unsigned, so that a negative value is out of range too. */
	return (unsigned int)reason < SAN_DROP_MAX ? names[reason] : "unknown";
}
