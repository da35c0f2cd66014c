/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_PORTS_H
#define DAEMON_PORTS_H

/**
 * @file
 * EAL and the ports of the configuration: open, start, park, close. A port's state lies in memory
 * with which another daemon can go on. (SYS-1, SYS-2)
 */

#include "server.h"

/*
 * Address ranges that nothing else uses: programs, libraries and heaps lie above or below, EAL's
 * memory below. The first range holds the state of the ports, with more room for each than it can
 * need, the second one the memory shared with applications.
 */
#define PORTS_STATE_FROM  0x200000000000
#define PORTS_STATE_BYTES ((size_t)16 << 40)
#define PORTS_SHARE_FROM  0x300000000000
#define PORTS_SHARE_BYTES ((size_t)32 << 40)

/**
 * Check that EAL's arguments name the lcores of the ports, if they name any. 0, or see
 * rtsan_error().
 */
int san_ports_check_lcores(const struct conf *conf);
/** *bare*: without the devices, which another daemon has. 0, or see rtsan_error(). */
int san_ports_start_eal(const struct conf *conf, bool bare);
/**
 * Do the part of san_ports_open() that is possible while another daemon has the devices. 0, or see
 * rtsan_error().
 */
int san_ports_warm(const struct conf *conf);
/** Probe the devices that EAL does not have yet. 0, or see rtsan_error(). */
int san_ports_probe(const struct conf *conf);
/** Open all ports with new state; the lcores wait. 0, or see rtsan_error(). */
int san_ports_open(struct server *s);
/** Open the devices of parked ports that are closed. 0, or see rtsan_error(). */
int san_ports_open_devices(struct server *s);
/** Resume parked ports on open devices; the lcores wait. 0, or see rtsan_error(). */
int san_ports_resume(struct server *s);
/** Start the lcores of all ports. */
int san_ports_begin(struct server *s);
/**
 * Stop the open ports, with their state in memory. Close the devices that another process could not
 * open meanwhile.
 */
void san_ports_park(struct server *s);
/** The process that had started to resume the ports has died: take their memory back. */
void san_ports_reclaim(struct server *s);
/** True if all ports can be parked. */
bool san_ports_can_park(const struct server *s);
/** Close all ports. Returns the number of leaked records. */
uint64_t san_ports_close(struct server *s);

#endif /* DAEMON_PORTS_H */
