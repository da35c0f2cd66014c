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
#include <sys/socket.h>
#include <sys/types.h>

#include "app_port.h"
#include "conf.h"
#include "helper.h"
#include "shmq.h"
#include "socks.h"

/** An event for which the ring had no room. */
struct app_event {
	struct shmq_event ev;
	STAILQ_ENTRY(app_event)
	link;
};

#define APP_NAME 16 /* the kernel's length */

/** The answer to one request. */
struct answer {
	struct shmq_rep rep;
	int fd; /**< that goes with it, or -1 */
};

/** What came with a request, as a helper has seen it; there is none without a descriptor. */
struct passed {
	struct helper *helper;
	const struct helper_facts *facts;
	int32_t handle;  /**< the helper's for a socket, or -1: closed unless somebody takes it */
	int memory;      /**< memory that is as it should be, or -1; stays the caller's */
	const char *why; /**< what is wrong with memory */
};

struct app {
	struct app_port *port; /**< that it chose; NULL: it has said nothing yet */
	uint16_t id;           /**< of that port's, once attached */
	char name[APP_NAME];
	int sock;
	pid_t pid;
	uid_t uid;
	uid_t owner;       /**< whose share of limits it has; see users_owner() */
	struct ucred said; /**< who sent its last request */
	struct partition_user user;
	bool attached;          /**< has said hello */
	bool over;              /**< to be destroyed */
	uint64_t job;           /**< its request that is under way and not answered; 0: none */
	uint64_t job_ns;        /**< since when; or since when it is paused */
	struct helper *asked;   /**< that it waits for; NULL: it waits for its memory */
	bool is_told;           /**< its answer is an error, and the helper has not done yet */
	bool is_answered;       /**< its helper is to answer it, or has */
	bool is_unsent;         /**< its answer waits: too many descriptors are under way */
	struct answer ans;      /**< as far as it is known */
	struct app_mem growing; /**< a region that is being mapped */
	struct shmq_req grows;  /**< the request for it */
	uint64_t grown_at;      /**< its last step; see nb_grown */
	bool is_paused;         /**< its requests are not read for the moment */
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
	int epoll;         /**< where their sockets are watched */
	uint64_t last_job; /**< that was given away */
	uint64_t nb_grown; /**< steps of regions that are mapped */
};

/** Without ports. */
void apps_init(struct apps *all, const struct conf *conf);
/** Its device is open. 0 or -errno with a text in rtsan_error(); then *ctx* stays the caller's. */
int apps_add_port(struct apps *all, const char *name, struct san_mem *mem, struct dpdk_ctx *ctx);
/** Without applications; ports are closed before. */
void apps_fini(struct apps *all);

/**
 * Somebody has connected: *sock* is the application's now. NULL: no more of them, or no
 * memory; then it is closed.
 */
struct app *app_create(struct apps *all, int sock, uint64_t now_ns);
/** It is gone: so is everything that it held. */
void app_destroy(struct apps *all, struct app *a);
/**
 * Its next request. One with descriptors stays where it is: the helper of its user fetches it, and
 * until it is answered no other one is read.
 *
 * @return
 *   1: it is in *req*; 0: a helper fetches it; -EAGAIN: there is none; -EBUSY: not now, its user's
 *   helper is late, or has none; -ENOTCONN, -EPROTO: it is of no use any more.
 */
int app_next(struct apps *all, struct app *a, struct shmq_req *req);
/** Do what a request asks for that came without descriptors, and answer it. */
void app_serve(struct apps *all, struct app *a, const struct shmq_req *req);
/** A helper has answered a question. Its descriptor *fd*, or -1, is the callee's. */
void apps_heard(struct apps *all, struct helper *h, const struct helper_msg *m, int fd);
/** A helper has ended; see helper_ops. */
void apps_helper_gone(struct apps *all, struct helper *h, bool has_begun);
/** Nothing that takes longer than HELPER_LATE_NS goes on: another daemon takes over. */
void apps_hurry(struct apps *all);
/** What has waited for too long, or goes in steps: when to call again. */
uint64_t apps_step(struct apps *all, uint64_t now_ns);
/** Attached ones of *owner*, on all ports. */
uint32_t apps_of(const struct apps *all, uid_t owner);
/** May one more application of *owner* attach to *port*, and as many as *waiting* before it? */
bool apps_have_place(const struct app_port *port, uid_t owner, uint32_t waiting);
/** Does an application wait for the answer to a request? */
bool apps_are_waiting(const struct apps *all);
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
