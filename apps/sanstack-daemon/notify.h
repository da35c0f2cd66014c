/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

/**
 * @file
 * What a service manager and an operator see of us: sd_notify(3), the watchdog, our title.
 */

#include <stdint.h>

#include "app.h"

/** Of the watchdog. */
struct notify {
	uint64_t every_ns; /**< 0: nobody watches */
	uint64_t next_ns;
	uint64_t loops[CONF_PORTS_MAX][SAN_ENGINE_LCORES];
};

/** The title of a process lies where its arguments were: first of all in main(). */
void notify_init(int argc, char **argv);

void notify_ready(struct notify *n, const struct apps *all);
/** The number of applications, or what they can do, has changed. */
void notify_status(const struct apps *all);
void notify_reloading(void);
void notify_reloaded(void);
void notify_stopping(void);
/** What follows may take some seconds, and is no hanging. */
void notify_alive(void);
/**
 * Tell the watchdog, when it is time, that we live, if every lcore does.
 *
 * @return
 *   When to call next, or SAN_TIME_NEVER.
 */
uint64_t notify_watchdog(struct notify *n, const struct apps *all, uint64_t now_ns);

#endif /* DAEMON_NOTIFY_H */
