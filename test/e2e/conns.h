/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Contexts, queue pairs, regions and connections that come and go, with any provider:
 *
 *   PROGRAM server SPEC      until it is connected with service 2
 *   PROGRAM client SPEC PEER
 *   PROGRAM deaf SPEC        a server that looks at nothing until SIGTERM; ends by another
 *   PROGRAM leaves SPEC PEER asks that one, and does not wait for the answer
 *
 * The programs are comes_and_goes.c, and lifecycle.c, which can look into the engine.
 */

#ifndef CONNS_H
#define CONNS_H

#include <rtsan.h>

/** What a program looks at besides; each may be NULL. */
struct conns_extra {
	void (*left)(struct rtsan_ctx *ctx); /**< without region and connection: nothing may be */
	void (*round)(struct rtsan_ctx *ctx, const char *spec);
	void (*closing)(struct rtsan_ctx *ctx);
	void (*closed)(void);
	void (*explain)(struct rtsan_ctx *ctx); /**< it has failed */
	/** The link ends with the context, and may take along what was sent last. */
	bool link_ends;
};

/** Run that role, and exit. */
void __attribute__((noreturn)) conns_run(int argc, char **argv, const struct conns_extra *extra);

void __attribute__((noreturn)) conns_die(const char *file, int line, const char *what);
struct rtsan_event conns_event(const char *file, int line, enum rtsan_event_type want);
struct rtsan_qp *conns_make_qp(void);

#define CHECK(cond)                                           \
	do {                                                  \
		if (!(cond))                                  \
			conns_die(__FILE__, __LINE__, #cond); \
	} while (0)

/** The next one, which must be of that type. */
#define EVENT(want) conns_event(__FILE__, __LINE__, want)

#endif
