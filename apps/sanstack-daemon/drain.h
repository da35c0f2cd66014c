/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_DRAIN_H
#define DAEMON_DRAIN_H

/**
 * @file
 * Orderly shutdown: refuse new work, complete posted work, disconnect peers and inform
 * applications. (SYS-2)
 */

#include "server.h"

/** A signal asks the daemon to end. A second one skips the rest of the drain. */
void san_drain_signal(struct server *s);
/** Continue a drain, if one is in progress. Returns when to call again. */
uint64_t san_drain_step(struct server *s, uint64_t now_ns);

#endif /* DAEMON_DRAIN_H */
