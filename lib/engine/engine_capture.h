/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_CAPTURE_H
#define ENGINE_CAPTURE_H

/**
 * @file
 * Capturing that an operator switches on and off while programs run. Programs
 * themselves have san_engine_capture().
 */

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

#define ENGINE_CAPTURE_NAME 256

struct san_engine_capture_conf {
	const char *file;
	bool overwrite; /**< else it must not exist */
	uint32_t snap;  /**< bytes of a packet that are kept; 0: all */
	/* one connection, which both ends call differently; cid 0: the whole port */
	uint32_t cid, dcid;
	struct san_ip peer;
};

struct san_engine_capture_view {
	char file[ENGINE_CAPTURE_NAME];
	uint32_t cid, snap;
	uint64_t nb_pkts, nb_missed;
};

/**
 * Any thread. -EBUSY: there is one; -EEXIST and what else open() says; -ENOTSUP: the port
 * is polled by its program, which can capture itself; -ENAMETOOLONG, -ENOMEM.
 */
int san_engine_capture_start(struct san_engine_port *p,
			     const struct san_engine_capture_conf *conf);
/** Any thread; *out*: how it ended. False: there was none, or it is the program's own. */
bool san_engine_capture_stop(struct san_engine_port *p, struct san_engine_capture_view *out);
/** False: there is none. */
bool san_engine_capture_show(struct san_engine_port *p, struct san_engine_capture_view *out);

#endif /* ENGINE_CAPTURE_H */
