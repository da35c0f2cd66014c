/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_LOG_H
#define SAN_LOG_H

/**
 * @file
 * One rte_log type per layer, named "san.<layer>", so that an operator can set each level
 * separately (--log-level=san.pdl:debug). Only for the control path: events of packets are counted,
 * not logged. Write key=value pairs:
 *
 *   SAN_LOG(PDL, WARNING, "cid=%u state=%s", cid, name);
 */

#include <rte_log.h>

enum san_log_layer {
	SAN_LOG_WIRE,
	SAN_LOG_INET,
	SAN_LOG_PDL,
	SAN_LOG_CM,
	SAN_LOG_TL,
	SAN_LOG_ULP,
	SAN_LOG_CORE,
	SAN_LOG_ENGINE,
	SAN_LOG_DRIVER,
	SAN_LOG_MAX
};

/** rte_log type of each layer, registered before main() at level NOTICE. */
extern int san_log_type[SAN_LOG_MAX];

/** "san.<layer>" of each. */
extern const char *const san_log_name[];

/** One line; the newline is added here. */
#define SAN_LOG(layer, level, fmt, ...)                                   \
	rte_log(RTE_LOG_##level, (uint32_t)san_log_type[SAN_LOG_##layer], \
		"%s: " fmt "\n", san_log_name[SAN_LOG_##layer], ##__VA_ARGS__)

#endif /* SAN_LOG_H */
