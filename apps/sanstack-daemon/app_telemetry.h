/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_TELEMETRY_H
#define DAEMON_APP_TELEMETRY_H

/**
 * @file
 * The telemetry commands /sanstack/apps: who is attached, and what each has and did; and
 * /sanstack/sockets: those that are carried.
 *
 * Applications belong to the daemon's thread; telemetry has one of its own. The daemon's
 * holds a lock whenever it does not sleep, so that telemetry sees nothing half done.
 */

#include "app.h"

/** From now on there is something to tell. */
void app_telemetry_start(struct apps *all);
/** On return nobody looks any more. */
void app_telemetry_stop(void);
/** The daemon's thread has work; until leave() it alone touches the tables. */
void app_telemetry_enter(void);
void app_telemetry_leave(void);

#endif /* DAEMON_APP_TELEMETRY_H */
