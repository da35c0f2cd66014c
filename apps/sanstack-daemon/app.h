/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_H
#define DAEMON_APP_H

/**
 * @file
 * Applications: what each holds, and what it asks for. All of it belongs to the daemon's one
 * thread; the lcores know an application by its number and by its bells. (SYS-2, SYS-5)
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "app_port.h"
#include "conf.h"
#include "shmq.h"
#include "socks.h"

/** An event for which the ring had no room. */
struct app_event {
	struct shmq_event ev;
	STAILQ_ENTRY(app_event)
	link;
};

#define APP_NAME 16 /* the kernel's length */

struct app {
	struct app_port *port; /**< that it chose; NULL: it has said nothing yet */
	uint16_t id;           /**< of that port's, once attached */
	char name[APP_NAME];
	int sock;
	pid_t pid;
	uid_t uid;
	struct partition_user user;
	bool attached;          /**< has said hello */
	bool over;              /**< to be destroyed */
	bool is_paused;         /**< the server does not read its requests for the moment */
	uint64_t hello_ns;      /**< until then it must say hello */
	struct app_mem ctl_mem; /**< and *ctl*, the same, once attached */
	struct shmq_ctl *ctl;
	struct san_spsc_prod events;
	int wake_sock;                   /**< wakes who waits for events; -1: nobody does */
	int wake_fds[SAN_ENGINE_LCORES]; /**< which it writes to wake our lcores; or -1 */
	STAILQ_HEAD(, app_event)
	late;
	uint32_t nb_late;
	uint32_t nb_qps, nb_cqs, nb_mrs, nb_listeners;
	uint64_t bytes; /**< of its regions and queues */
	LIST_ENTRY(app)
	link;
};

/** All of them, and the ports that there are. */
struct apps {
	const struct conf *conf;
	struct app_port ports[CONF_PORTS_MAX]; /**< the first is for who names none */
	uint32_t nb_ports;
	LIST_HEAD(, app)
	list;
	bool closing; /**< nothing new is begun */
	uint32_t nb, nb_attached;
};

/** Without ports. */
void apps_init(struct apps *all, const struct conf *conf);
/** 0 or -errno with a text in rtsan_error(); then *ctx* stays the caller's. */
int apps_add_port(struct apps *all, const char *name, struct san_mem *mem, struct dpdk_ctx *ctx);
/** Without applications; ports are closed before. */
void apps_fini(struct apps *all);

/**
 * Somebody has connected: *sock* is the application's now. NULL: no more of them, or no
 * memory.
 */
struct app *app_create(struct apps *all, int sock, uint64_t now_ns);
/** Close *sock*, at the other end of which is *uid*; without waiting for what lies in it. */
void app_hang_up(int sock, uid_t uid);
/** It is gone: so is everything that it held. */
void app_destroy(struct apps *all, struct app *a);
/**
 * Do what it asks.
 *
 * @param fd
 *   What came with it, or -1; stays the caller's.
 * @param out_fd
 *   What goes with the answer, or -1; is the caller's.
 */
void app_serve(struct apps *all, struct app *a, const struct shmq_req *req, int fd,
	       struct shmq_rep *rep, int *out_fd);
/**
 * Give events of the engines to those they are for, and be woken for the next ones. True: some
 * have no room, try again soon.
 */
bool apps_events(struct apps *all);

/** Memory that somebody shares with us has failed: who it was goes. */
void apps_failed(struct apps *all);
/** How many ranges may have to be guarded; see shmq_guard_init(). */
uint32_t apps_ranges(const struct apps *all);

/** Those that connected and then said nothing for too long go; when to look again. */
uint64_t apps_strangers(struct apps *all, uint64_t now_ns);
/** Nobody attaches, listens or connects any more; who is connected goes on. */
void apps_close(struct apps *all);
/** Whoever waits looks again. */
void apps_wake(const struct apps *all);
/** The engines are about to go: what applications ask fails from now on. */
void apps_gone(struct apps *all);

#endif /* DAEMON_APP_H */
