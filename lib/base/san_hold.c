/* SPDX-License-Identifier: BSD-3-Clause */

#include "san_hold.h"

#define HOLD_NAME(reason, name, help) #name,

static const char *const names[] = {SAN_HOLDS(HOLD_NAME)};

const char *
san_hold_name(uint8_t hold)
{
	return names[hold < SAN_HOLD_MAX ? hold : SAN_HOLD_MAX];
}
