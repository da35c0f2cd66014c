/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

/**
 * @file
 * The daemon as a whole, and its one thread's loop. (SYS-2)
 */

#include "app.h"
#include "notify.h"

enum server_phase {
	SERVER_SERVING,
	SERVER_DRAINING, /**< told to end: what is posted is done, then connections end */
	SERVER_LEAVING,  /**< no connections any more: applications read their last events */
	SERVER_OVER,
};

struct pidfh;

struct server {
	struct apps all; /**< its place stands for events of the ports */
	struct conf conf;
	const char *conf_path;
	struct notify notify;
	struct pidfh *pidfile; /**< or NULL */
	uid_t user;            /**< who we become, or are */
	int epoll;
	/* watched; the place of each says which it is */
	int listener, signals, guard, helpers;
	int spare;         /**< a descriptor for when there are no others */
	bool takes_over;   /**< --takeover */
	bool is_taken;     /**< at the end: by another daemon, nothing is ours */
	bool is_lost;      /**< nor could it go on itself: nobody serves */
	struct app *taker; /**< a daemon that asks for all that we have, or NULL */
	int other;         /**< the daemon that we take over from; -1: none */
	pid_t other_pid;
	uint64_t parked_ns; /**< since when its applications wait */
	enum server_phase phase;
	uint64_t phase_ns; /**< DRAINING, LEAVING: when they are over */
	uint32_t nb_told;  /**< applications that there were when the status was told */
};

/** Watch *fd*; *what* comes with its events. 0 or -errno. */
int server_watch(const struct server *s, int fd, void *what);
/** Helpers can be had from now on; see helpers_fork(). 0 or -errno. */
int server_open_helpers(struct server *s);
/** Until it is OVER. */
void server_run(struct server *s);

#endif /* DAEMON_SERVER_H */
