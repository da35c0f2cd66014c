/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_DRAIN_H
#define DAEMON_DRAIN_H

/**
 * @file
 * How the daemon ends: nothing new is begun, what is posted is done, peers and applications
 * are told. (SYS-2)
 */

#include "server.h"

/** Told to end. The second time: at once. */
void drain_signal(struct server *s);
/** Go on with it, if it has begun; when to call next. */
uint64_t drain_step(struct server *s, uint64_t now_ns);

#endif /* DAEMON_DRAIN_H */
