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

#include "conf.h"
#include "dpdk_priv.h"
#include "shmq.h"

struct app;

/* What applications hold, by number; app is NULL: free. */
struct app_qp {
	struct app *app;
	uint32_t qpn;
	uint32_t send_cq, recv_cq;
	size_t bytes;
	uint32_t guard; /**< of shmq_guard_add(), here and below */
};

struct app_cq {
	struct app *app;
	void *cq;
	struct san_cq *mem;
	size_t bytes;
	uint32_t guard;
	int wake_sock; /**< wakes who waits for completions; -1: nobody does */
};

struct app_mr {
	struct app *app;
	uint32_t key;
	void *mem;
	size_t bytes;
	uint32_t guard;
};

struct app_listener {
	struct app *app;
	uint32_t id;     /**< ours: what the engine calls it */
	uint32_t cookie; /**< the application's */
	uint64_t service;
	uint16_t pkey;
	LIST_ENTRY(app_listener)
	link;
};

/** A connection request that an application was told of: nobody else may answer it. */
struct app_request {
	uint64_t request;
	struct app *app;
};

/** An event for which the ring had no room. */
struct app_event {
	struct shmq_event ev;
	STAILQ_ENTRY(app_event)
	link;
};

#define APP_NAME 16 /* the kernel's length */

struct app {
	uint16_t id; /**< once attached */
	char name[APP_NAME];
	int sock;
	pid_t pid;
	uid_t uid;
	struct partition_user user;
	bool attached;     /**< has said hello */
	bool over;         /**< to be destroyed */
	uint64_t hello_ns; /**< until then it must say hello */
	struct shmq_ctl *ctl;
	size_t ctl_bytes;
	uint32_t ctl_guard;
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

/** The engine, and what all applications hold of it. */
struct apps {
	struct dpdk_ctx *ctx;
	const struct conf *conf;
	struct rtsan_caps caps;
	uint32_t lcore_qps;
	uint32_t max_conns; /**< of all lcores */
	bool yields, sleeps;
	struct app_qp *qps; /**< by SAN_QPN_INDEX() */
	struct app_cq *cqs;
	struct app_mr *mrs; /**< by the lower bits of their keys, as the engine has them */
	LIST_HEAD(, app_listener)
	listeners;
	uint32_t next_listener;
	struct app_request *requests; /**< see apps_request() */
	LIST_HEAD(, app)
	list;
	bool closing; /**< nothing new is begun */
	uint32_t nb, nb_attached;
	bool used[SAN_ENGINE_APPS]; /**< numbers of those that are attached; 0: ourselves */
	uint16_t last_id;           /**< that was given away: they take turns, with what rests */
};

/** 0 or -errno with a text in rtsan_error(). */
int apps_init(struct apps *all, struct dpdk_ctx *ctx, const struct conf *conf);
/** Without applications. */
void apps_fini(struct apps *all);

/**
 * Somebody has connected: *sock* is the application's now. NULL: no more of them, no memory, or
 * its user has passed too much that waits to be closed.
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
/** *limit*; 0: three quarters of *all*, so that nobody has everything without being told to. */
uint32_t app_share(uint32_t limit, uint32_t all);
/** Give events of the engine to those they are for. True: some have no room, try again soon. */
bool apps_events(struct apps *all);

/** Memory that somebody shares with us has failed: who it was goes. */
void apps_failed(struct apps *all);
/** How many ranges may have to be guarded; see shmq_guard_init(). */
uint32_t apps_ranges(const struct apps *all);

/** Those that connected and then said nothing for too long go; when to look again. */
uint64_t apps_strangers(struct apps *all, uint64_t now_ns);
/** Nobody attaches, listens or connects any more; who is connected goes on. */
void apps_close(struct apps *all);
/** The engine is about to go: what applications ask fails from now on. */
void apps_gone(struct apps *all);

#endif /* DAEMON_APP_H */
