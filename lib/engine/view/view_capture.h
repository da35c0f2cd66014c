/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VIEW_CAPTURE_H
#define VIEW_CAPTURE_H

/**
 * @file
 * Captures that an operator starts and stops while applications run. Applications use
 * san_view_capture().
 */

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

#define VIEW_CAPTURE_NAME 256

struct san_view_capture_conf {
	const char *file;
	bool overwrite; /**< otherwise the file must not exist */
	uint32_t snap;  /**< bytes kept of each packet; 0: all */
	/* both CIDs of one connection; cid 0: the whole port */
	uint32_t cid, dcid;
	struct san_ip peer;
};

struct san_view_capture_view {
	char file[VIEW_CAPTURE_NAME];
	uint32_t cid, snap;
	uint64_t nb_pkts, nb_missed;
};

/**
 * Start a capture. Any thread. -EBUSY: one is active; -EEXIST or another error of open(); -ENOTSUP:
 * the application polls the port, and must capture itself; -ENAMETOOLONG, -ENOMEM.
 */
int san_view_capture_start(struct san_engine_port *p,
			   const struct san_view_capture_conf *conf);
/** Stop it. Any thread. *out*: its final state. False: there is none, or the application's own. */
bool san_view_capture_stop(struct san_engine_port *p, struct san_view_capture_view *out);
/** Get its state. False: there is none. */
bool san_view_capture_show(struct san_engine_port *p, struct san_view_capture_view *out);

/** Write every packet of the port to *file* (pcapng), until NULL is given. 0 or -errno. */
int san_view_capture(struct san_engine_port *p, const char *file);

/* ---- for the engine ---- */

void san_view_capture_pkts(struct san_engine *e, struct rte_mbuf **m, uint16_t n, bool tx);

#endif /* VIEW_CAPTURE_H */
