/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * One rte_log type per layer, named "san.<layer>", so that an operator can set each level
 * separately (--log-level=san.pdl:debug). Only for the control path: events of packets are counted,
 * not logged. Write key=value pairs:
 *
 *   SAN_LOG(PDL, WARNING, "cid=%u state=%s", cid, name);
 */

#include <rte_log.h>

/* clang-format off */
#define SAN_LOG_LAYERS(X) \
	X(WIRE, wire) X(INET, inet) X(PDL, pdl) X(CM, cm) X(TL, tl) X(ULP, ulp) X(CORE, core) \
	X(ENGINE, engine) X(DRIVER, driver)
/* clang-format on */

#define SAN_LOG_MEMBER(layer, name) SAN_LOG_##layer,

enum san_log_layer {
	SAN_LOG_LAYERS(SAN_LOG_MEMBER)
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
