/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_STATE_H
#define DAEMON_APP_STATE_H

/**
 * @file
 * Live restart: applications and what they hold, from one daemon to the next. (SYS-2, SYS-8)
 */

#include "app.h"
#include "state.h"

/** Everything of *all*, whose ports are parked. */
void apps_save(const struct apps *all, struct state *st);
/** Its ports into *all*, which is empty, on their open devices. Like apps_load(), which follows. */
int apps_load_ports(struct apps *all, struct state *st);
/**
 * All the rest; what is shared with applications is mapped where it was, and guarded.
 *
 * @return
 *   0, -ENOMEM, -EEXIST (an address is taken), -EPROTO (see st->why). After an error *all* is good
 *   for nothing.
 */
int apps_load(struct apps *all, struct state *st);
/** Ports have been resumed: applications ring them, and are woken by them, again. 0 or -errno. */
int apps_attach(struct apps *all);

#endif /* DAEMON_APP_STATE_H */
