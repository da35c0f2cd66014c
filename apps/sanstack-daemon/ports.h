/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_PORTS_H
#define DAEMON_PORTS_H

/**
 * @file
 * EAL, and the ports of the daemon's configuration: opened, begun, parked, closed. Each has its
 * state in memory that another daemon could go on with. (SYS-1, SYS-2)
 */

#include "server.h"

/*
 * Places in the address space that nobody else uses: programs, their libraries and heaps lie
 * above or below, EAL's memory below. The first are for the state of ports, each with room for
 * more than it can need; the others for what applications share with us.
 */
#define PORTS_STATE_FROM  0x200000000000
#define PORTS_STATE_BYTES ((size_t)16 << 40)
#define PORTS_SHARE_FROM  0x300000000000
#define PORTS_SHARE_BYTES ((size_t)32 << 40)

/** *bare*: without devices, which another daemon has. 0, or see rtsan_error(). */
int ports_start_eal(const struct conf *conf, bool bare);
/**
 * All of ports_open() that can be done while another daemon still has the devices. 0, or see
 * rtsan_error().
 */
int ports_warm(const struct conf *conf);
/** Devices that are not here yet. 0, or see rtsan_error(). */
int ports_probe(const struct conf *conf);
/** All of them, new; lcores wait. 0, or see rtsan_error(). */
int ports_open(struct server *s);
/** The devices of parked ports, as far as they are not open. 0, or see rtsan_error(). */
int ports_open_devices(struct server *s);
/** What was parked goes on, on open devices; lcores wait. 0, or see rtsan_error(). */
int ports_resume(struct server *s);
/** Their lcores begin. */
int ports_begin(struct server *s);
/**
 * Those that are open stop, and lie in their memory; devices that another process could not open
 * meanwhile are closed.
 */
void ports_park(struct server *s);
/** Who had begun to go on with them is dead. */
void ports_reclaim(struct server *s);
/** True: all of them can be. */
bool ports_can_park(const struct server *s);
/** Returns what was left in them. */
uint64_t ports_close(struct server *s);

#endif /* DAEMON_PORTS_H */
