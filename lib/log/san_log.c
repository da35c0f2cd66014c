/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_common.h>

#include "san_log.h"

#define NAME_OF(layer, name) "san." #name,

const char *const san_log_name[] = {SAN_LOG_LAYERS(NAME_OF)};

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
