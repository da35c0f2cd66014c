/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_CAPTURE_H
#define ENGINE_CAPTURE_H

/**
 * @file
 * Captures that an operator starts and stops while applications run. Applications use
 * san_engine_capture().
 */

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

#define ENGINE_CAPTURE_NAME 256

struct san_engine_capture_conf {
	const char *file;
	bool overwrite; /**< otherwise the file must not exist */
	uint32_t snap;  /**< bytes kept of each packet; 0: all */
	/* both CIDs of one connection; cid 0: the whole port */
	uint32_t cid, dcid;
	struct san_ip peer;
};

struct san_engine_capture_view {
	char file[ENGINE_CAPTURE_NAME];
	uint32_t cid, snap;
	uint64_t nb_pkts, nb_missed;
};

/**
 * Start a capture. Any thread. -EBUSY: one is active; -EEXIST or another error of open(); -ENOTSUP:
 * the application polls the port, and must capture itself; -ENAMETOOLONG, -ENOMEM.
 */
int san_engine_capture_start(struct san_engine_port *p,
			     const struct san_engine_capture_conf *conf);
/** Stop it. Any thread. *out*: its final state. False: there is none, or the application's own. */
bool san_engine_capture_stop(struct san_engine_port *p, struct san_engine_capture_view *out);
/** Get its state. False: there is none. */
bool san_engine_capture_show(struct san_engine_port *p, struct san_engine_capture_view *out);

#endif /* ENGINE_CAPTURE_H */
