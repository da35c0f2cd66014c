/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Contexts, queue pairs, regions and connections are created and destroyed, with any provider:
 *
 *   PROGRAM server SPEC      until a client connects to service 2
 *   PROGRAM client SPEC PEER
 *   PROGRAM deaf SPEC        a server that reads no events until SIGTERM; another one ends it
 *   PROGRAM leaves SPEC PEER connects to that server, and does not wait for the answer
 *
 * The programs are comes_and_goes.c, and lifecycle.c, which also checks the engine.
 */

#pragma once

#include "rt.h"

/** Further checks of a program; each may be NULL. */
struct conns_extra {
	void (*left)(struct rtsan_ctx *ctx); /**< nothing is registered: nothing may be left */
	void (*round)(struct rtsan_ctx *ctx, const char *spec);
	void (*closing)(struct rtsan_ctx *ctx);
	void (*closed)(void);
	void (*explain)(struct rtsan_ctx *ctx); /**< print the state at a failure */
	/** The link ends with the context, which may lose the packets that were sent last. */
	bool link_ends;
};

/** Run the role, and exit. */
void __attribute__((noreturn)) conns_run(int argc, char **argv, const struct conns_extra *extra);

struct rtsan_qp *conns_make_qp(void);
