/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

/**
 * @file
 * The daemon as a whole, and the loop of its main thread. (SYS-2)
 */

#include "app.h"

enum server_phase {
	SERVER_SERVING,
	SERVER_DRAINING, /**< posted work completes, then connections end */
	SERVER_LEAVING,  /**< connections have ended: applications read their last events */
	SERVER_OVER,
};

struct pidfh;

struct server {
	struct apps all; /**< its address tags events of the ports */
	struct conf conf;
	const char *conf_path;
	uint64_t watchdog_ns;     /**< period of the watchdog; 0: there is none */
	uint64_t watchdog_due_ns; /**< when it is to be reset */
	/** Rounds of each lcore at the last reset. */
	uint64_t loops[CONF_PORTS_MAX][SAN_ENGINE_LCORES];
	struct pidfh *pidfile; /**< or NULL */
	uid_t user;            /**< user to switch to, or the current one */
	int epoll;
	/* watched by epoll; the address of each tags its events */
	int listener, signals, guard, helpers;
	int spare;         /**< descriptor to free when no other is left */
	bool takes_over;   /**< --takeover */
	bool is_taken;     /**< another daemon has taken over: nothing is left to close */
	bool is_lost;      /**< neither daemon could go on: nothing serves */
	struct app *taker; /**< a daemon that asks to take over, or NULL */
	int other;         /**< socket to the daemon that serves; -1: none */
	int note;          /**< what proves this daemon to the next one; see takeover.c */
	pid_t other_pid;
	uint64_t parked_ns; /**< applications have been waiting since then */
	enum server_phase phase;
	uint64_t phase_ns;    /**< end of DRAINING, LEAVING */
	uint32_t nb_notified; /**< applications in the last reported status */
};

/** Watch *fd*; events carry *what*. 0 or -errno. */
int san_server_watch(const struct server *s, int fd, void *what);
/** Run until the phase is SERVER_OVER. */
void san_server_run(struct server *s);

#endif /* DAEMON_SERVER_H */
