/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>

#include <rte_common.h>

#include "san_log.h"

const char *const san_log_name[] = {
	[SAN_LOG_WIRE] = "san.wire",
	[SAN_LOG_INET] = "san.inet",
	[SAN_LOG_PDL] = "san.pdl",
	[SAN_LOG_CM] = "san.cm",
	[SAN_LOG_TL] = "san.tl",
	[SAN_LOG_ULP] = "san.ulp",
	[SAN_LOG_CORE] = "san.core",
	[SAN_LOG_ENGINE] = "san.engine",
	[SAN_LOG_DRIVER] = "san.driver",
};

static_assert(RTE_DIM(san_log_name) == SAN_LOG_MAX, "a layer has no log name");

int san_log_type[SAN_LOG_MAX];

RTE_INIT(san_log_register)
{
	unsigned int i;

	for (i = 0; i < SAN_LOG_MAX; i++) {
		int type = rte_log_register_type_and_pick_level(san_log_name[i], RTE_LOG_NOTICE);

		/* Out of memory before main(): the messages go to the user type then. */
		san_log_type[i] = type < 0 ? RTE_LOGTYPE_USER1 : type;
	}
}
