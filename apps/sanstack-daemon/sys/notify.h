/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

/**
 * @file
 * Status for the service manager and the operator: sd_notify(3), watchdog, process title.
 */

#include <stdint.h>

#include "app.h"

/** State of the watchdog. */
struct notify {
	uint64_t every_ns; /**< period; 0: no watchdog */
	uint64_t next_ns;
	uint64_t loops[CONF_PORTS_MAX][SAN_ENGINE_LCORES];
};

/** Call first in main(): the title overwrites the memory of the arguments. */
void san_notify_init(int argc, char **argv);

void san_notify_ready(struct notify *n, const struct apps *all);
/** The number of applications, or the state of a port, has changed. */
void san_notify_status(const struct apps *all);
void san_notify_reloading(void);
void san_notify_reloaded(void);
void san_notify_stopping(void);
/** Reset the watchdog before an operation that may take some seconds. */
void san_notify_alive(void);
/**
 * Reset the watchdog when it is due, if every lcore is alive.
 *
 * @return
 *   When to call again, or SAN_TIME_NEVER.
 */
uint64_t san_notify_watchdog(struct notify *n, const struct apps *all, uint64_t now_ns);

#endif /* DAEMON_NOTIFY_H */
