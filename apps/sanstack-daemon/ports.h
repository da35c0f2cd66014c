/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_PORTS_H
#define DAEMON_PORTS_H

/**
 * @file
 * EAL, and the ports of the daemon's configuration: opened, begun, parked, closed. Each has its
 * state in memory that another daemon could go on with. (SYS-1, SYS-2)
 */

#include "server.h"

/** *bare*: without devices, which another daemon has. 0, or see rtsan_error(). */
int ports_start_eal(const struct conf *conf, bool bare);
/**
 * All of ports_open() that can be done while another daemon still has the devices. 0, or see
 * rtsan_error().
 */
int ports_warm(const struct conf *conf);
/** Devices that are not here yet. 0, or see rtsan_error(). */
int ports_probe(const struct conf *conf);
/** All of them, new or from what was parked; lcores wait. 0, or see rtsan_error(). */
int ports_open(struct server *s);
/** Their lcores begin. */
int ports_begin(struct server *s);
/** Those that are open stop, and lie in their memory; devices are free. */
void ports_park(struct server *s);
/** Who had begun to go on with them is dead. */
void ports_reclaim(struct server *s);
/** True: all of them can be. */
bool ports_can_park(const struct server *s);
/** Returns what was left in them. */
uint64_t ports_close(struct server *s);

#endif /* DAEMON_PORTS_H */
