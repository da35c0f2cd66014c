/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_STATE_H
#define DAEMON_APP_STATE_H

/**
 * @file
 * Live restart: save applications and what they hold, and load them in the next daemon. (SYS-2,
 * SYS-8)
 */

#include "app.h"
#include "state.h"

/** Save everything of *all*, whose ports are parked. */
void san_app_state_save(const struct apps *all, struct state *st);
/**
 * Load the ports into *all*, which is empty; their devices are open. Returns like
 * san_app_state_load().
 */
int san_app_state_load_ports(struct apps *all, struct state *st);
/**
 * Load the applications. Memory that is shared with them is mapped at its old address and guarded.
 *
 * @return
 *   0, -ENOMEM, -EEXIST (an address is taken), -EPROTO (see st->why). After an error *all* must
 *   not be used.
 */
int san_app_state_load(struct apps *all, struct state *st);
/** The ports are resumed: connect the applications' doorbells to them again. 0 or -errno. */
int san_app_state_attach(struct apps *all);

#endif /* DAEMON_APP_STATE_H */
