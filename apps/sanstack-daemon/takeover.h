/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_TAKEOVER_H
#define DAEMON_TAKEOVER_H

/**
 * @file
 * Live restart: a new daemon takes over from the one that serves the socket. (SYS-2, SYS-8)
 *
 * The new one starts EAL without its devices, connects and asks. The old one stops its lcores,
 * parks its ports, gives up devices that only one process can have, and sends what it has. The new
 * one opens the devices, drops its rights, reads what applications hold, lets the ports go on, and
 * says so; the old one says that it will not touch anything any more, and ends; lcores of the new
 * one begin. If the new one ends before it says so, the old one goes on as if nothing had happened.
 * Between the two there is no moment in which both work.
 */

#include <stdbool.h>

#include "server.h"

/* ---- the new one: 0, or see rtsan_error() ---- */

/** Does anybody serve conf->socket? */
bool takeover_find(const struct conf *conf);
/**
 * Ask, and get what devices are opened with, and s->listener. From now on it waits for us.
 */
int takeover_receive(struct server *s);
/** All that it has comes here and is mapped: ports in s->all, parked, on open devices. */
int takeover_load(struct server *s);
/** The ports can go on. May they? If not they must be parked: it goes on. */
int takeover_commit(struct server *s);
/** Of what was taken, in the log. */
void takeover_tell(const struct server *s);

/* ---- the old one ---- */

/** Is *req* that of a new daemon? */
bool takeover_is_request(const struct shmq_req *req);
/** *a* asks: s->taker from now on, or refused. */
void takeover_hear(struct server *s, struct app *a, const struct shmq_req *req);
/**
 * To s->taker, nobody else being over. Returns when it has taken over, and then s->phase is
 * SERVER_OVER and s->is_taken true; or when it has not, and we serve, if not s->is_lost.
 */
void takeover_give(struct server *s);

#endif /* DAEMON_TAKEOVER_H */
