/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_TELEMETRY_H
#define DAEMON_APP_TELEMETRY_H

/**
 * @file
 * The telemetry commands /sanstack/apps, with the attached applications and their usage, and
 * /sanstack/sockets, with the carried sockets.
 *
 * The main thread owns the applications, and telemetry runs in a thread of its own. The main thread
 * holds a lock unless it sleeps, so telemetry sees only consistent tables.
 */

#include "app.h"

/** Enable the commands. */
void san_app_telemetry_start(struct apps *all);
/** Disable them. On return telemetry no longer accesses *all*. */
void san_app_telemetry_stop(void);
/** The main thread enters before it accesses the tables and leaves before it sleeps. */
void san_app_telemetry_enter(void);
void san_app_telemetry_leave(void);

#endif /* DAEMON_APP_TELEMETRY_H */
