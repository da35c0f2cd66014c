/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_TAKEOVER_H
#define DAEMON_TAKEOVER_H

/**
 * @file
 * Live restart: a new daemon takes over from the one that serves the socket. (SYS-2, SYS-8)
 *
 * The new daemon starts EAL without devices, connects and asks. The old one stops its lcores, parks
 * its ports, closes devices that only one process can have, and sends its state. The new one opens
 * the devices, drops its rights, loads the state of the applications, resumes the ports and asks to
 * commit. The old one confirms and exits without another access. The lcores of the new one start.
 * If the new daemon ends before the commit, the old one continues to serve. The two never work at
 * the same time.
 */

#include <stdbool.h>

#include "server.h"

/**
 * Make the note that proves the caller to a new daemon, while the caller still has all its rights.
 * Returns its descriptor, or -1.
 */
int san_takeover_make_note(void);

/* ---- new daemon: 0, or see rtsan_error() ---- */

/** True if a daemon serves conf->socket. */
bool san_takeover_find(const struct conf *conf);
/**
 * Ask, and receive s->listener and what opening the devices needs. From now on the old daemon
 * waits.
 */
int san_takeover_receive(struct server *s);
/** Load its state: the ports in s->all, which are parked on open devices, and the shared memory. */
int san_takeover_load(struct server *s);
/**
 * Ask to commit, once the ports can start. On error they must be parked: the old daemon continues.
 */
int san_takeover_commit(struct server *s);

/* ---- old daemon ---- */

/** True if *req* asks for a takeover. */
bool san_takeover_is_request(const struct shmq_req *req);
/** *a* asks for a takeover: it becomes s->taker, or is refused. */
void san_takeover_on_request(struct server *s, struct app *a, const struct shmq_req *req);
/**
 * Hand over to s->taker. All applications that are over are destroyed. Returns after the takeover,
 * with s->phase SERVER_OVER and s->is_taken true, or after a failure. Then this daemon serves
 * unless s->is_lost.
 */
void san_takeover_give(struct server *s);

#endif /* DAEMON_TAKEOVER_H */
