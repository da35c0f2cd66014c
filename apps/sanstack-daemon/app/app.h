/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * The applications: what each one holds and requests. The daemon's main thread owns all of it; the
 * lcores know an application only by its number and its doorbells. (SYS-2, SYS-5)
 */

#include <sys/queue.h>

#include "conf.h"
#include "helper.h"
#include "users.h"

struct app;
struct app_sock;
struct apps;
struct state;

/* ---- app_mem.c: memory that the daemon shares with an application ---- */

/* It is guarded (shmq.h), and its descriptor lets a daemon that takes over map it as well. */

struct app_mem {
	void *mem;
	size_t bytes;
	uint64_t offset;  /**< offset in the file of *fd* */
	size_t populated; /**< bytes that have page tables and may be accessed */
	int fd;
	uint8_t is_theirs; /**< 1: created by the application, so the size of the file is unknown */
	uint32_t guard;
};

/**
 * Create memory for *owner*, which is a number for san_shmq_guard_add(). *out_fd*, to be sent to
 * the application, is the caller's. 0 or -errno.
 */
int san_app_mem_create(struct app_mem *m, const char *name, size_t bytes, uint16_t owner,
		       int *out_fd);
/**
 * Map memory of the application that a helper has checked; *fd* stays the caller's. It must not be
 * accessed before san_app_mem_populate() has returned 0. 0 or -errno.
 */
int san_app_mem_import(struct app_mem *m, int fd, uint64_t offset, size_t bytes, uint16_t owner);
/**
 * Fill a part of the page tables, which takes less than a ms. 1: call again, for this memory or
 * other, at *due_ns*; 0: complete; or -errno.
 */
int san_app_mem_populate(struct app_mem *m, uint64_t *due_ns);
/** Map memory of the previous daemon at the same address. Only the descriptor in *m* is new. */
int san_app_mem_take(struct app_mem *m, uint16_t owner);
/** Close a descriptor of the application's memory that a helper has checked. It does not block. */
void san_app_mem_close(int fd);
/** Release memory that is no longer accessed; the application's own by san_app_mem_step(). */
void san_app_mem_end(struct app_mem *m);
/** Do one step of pending unmapping, if it is due. Returns when to call again. */
uint64_t san_app_mem_step(uint64_t now_ns);

/* ---- apps.c: a port, and what its applications hold of it ---- */

/* Numbers of applications and their objects mean nothing on another port. (SYS-1) */

/** Kinds of objects of applications. */
enum app_kind {
	APP_QP,
	APP_CQ,
	APP_MR,
	APP_KINDS
};

/** One of these; app is NULL in a free entry. */
struct app_thing {
	struct app *app;
	struct app_sock *sock; /**< queue pair: the carried stream that owns it instead */
	uint32_t number;       /**< of a queue pair or completion queue; key of a region */
	int wake_sock;         /**< completion queue: wakes a thread that waits for it, or -1 */
	void *cq;              /**< completion queue: the engine's */
	uint64_t stream_bytes; /**< queue pair: memory of its stream buffers, beside *mem* */
	struct app_mem mem;    /**< struct san_wq, struct san_cq, or the region */
};

struct app_listener {
	struct app *app;
	uint32_t id;     /**< assigned by the engine */
	uint32_t cookie; /**< chosen by the application */
	uint64_t service;
	uint16_t pkey;
	LIST_ENTRY(app_listener) link;
};

/** A connection request that was reported to an application, which alone may answer it. */
struct app_request {
	uint64_t request;
	struct app *app;
};

struct app_port {
	const char *name;
	const struct apps *all;    /**< the set that contains this port */
	uint16_t index;            /**< index in that set */
	struct dpdk_ctx *ctx;      /**< NULL: the port is parked and its device closed */
	struct rte_ether_addr mac; /**< its MAC address while it is parked */
	struct san_mem *mem;       /**< memory of its state; NULL: it can't be taken over */
	int mem_fd;                /**< descriptor of *mem*, or -1 */
	const struct conf *conf;
	struct rtsan_caps caps;
	uint32_t lcore_qps;
	uint32_t max_socks;
	uint32_t nb_doorbells; /**< per lcore: lcore_qps + max_socks */
	uint32_t max_conns;    /**< of all lcores together */
	uint32_t slot_mask;    /**< san_pdl_slot_mask() */
	union {                /**< by san_app_port_place() */
		struct {
			struct app_thing *qps, *cqs, *mrs;
		};
		struct app_thing *things[APP_KINDS];
	};
	LIST_HEAD(, app_listener) listeners;
	uint32_t next_listener;
	struct app_request *requests; /**< see san_app_port_request() */
	struct app_sock *socks;       /**< array of max_socks; see socks.h */
	uint32_t nb_socks;
	uint32_t last_sock;        /**< number of the newest socket */
	uint64_t nb_streams[2];    /**< connected, and accepted */
	uint64_t nb_socks_refused; /**< because no entry was free */
	uint32_t nb_attached;
	bool used[SAN_ENGINE_APPS];    /**< numbers in use; 0 is the daemon's */
	uid_t owners[SAN_ENGINE_APPS]; /**< users of the numbers: the last ones, if not in use */
	uint16_t last_id;              /**< newest number; numbers rotate, so that old ones rest */
};

/** Free its tables, after all applications are destroyed. */
void san_app_port_fini(struct app_port *port);
/** The application's number among those of all ports, for san_shmq_guard_add(). */
uint16_t san_app_guard_id(const struct app *a);
/** The table entry for a connection request. The caller must check what the entry holds. */
struct app_request *san_app_port_request(struct app_port *port, uint64_t request);
/** Number of entries of a table. */
uint32_t san_app_port_nb(const struct app_port *port, enum app_kind kind);
/** Place of a number, which may be wrong, in the table of its kind. */
uint32_t san_app_port_place(const struct app_port *port, enum app_kind kind, uint32_t number);
/** Limit of one application: of USERS_QPS, USERS_CONNS. */
uint32_t san_app_port_each(const struct app_port *port, enum users_place what);

/* ---- applications ---- */

/** An event that waits because the application's ring is full. */
struct app_event {
	struct shmq_event ev;
	STAILQ_ENTRY(app_event) link;
};

#define APP_NAME    16 /* the kernel's limit for the name of a process */
#define APPS_FAILED 32

/** The answer to one request. */
struct answer {
	struct shmq_rep rep;
	int fd; /**< descriptor that is sent with it, or -1 */
};

/** The descriptor of a request, as a helper reports it; absent if the request has none. */
struct passed {
	struct helper *helper;
	const struct helper_facts *facts;
	int32_t handle;  /**< the helper's handle of a socket, or -1; closed unless it is taken */
	int memory;      /**< memory that the helper has checked, or -1; stays the caller's */
	const char *why; /**< why the memory was refused; empty: it was not */
};

struct app {
	struct app_port *port; /**< the port that it chose; NULL: it has not sent a hello */
	uint16_t id;           /**< its number on that port, once attached */
	char name[APP_NAME];
	int sock;
	pid_t pid;
	uid_t uid;
	uid_t owner;         /**< the user whose limits apply; see san_users_owner() */
	struct ucred sender; /**< credentials of the sender of its last request */
	struct partition_user user;
	/** Of its carried sockets that have ended. */
	struct san_ulp_traffic socks_traffic;
	bool attached;            /**< its hello was accepted */
	bool over;                /**< to be destroyed */
	uint64_t job;             /**< number of the request that a helper handles; 0: none */
	uint64_t job_ns;          /**< time at which the job or the pause began */
	struct helper *waits_for; /**< the helper it waits for; NULL: it waits for its memory */
	bool is_notified;         /**< an error was sent, but the helper is still busy */
	bool is_answered;         /**< a helper sends, or has sent, the answer */
	bool is_unsent;           /**< the answer waits: too many descriptors are in flight */
	struct passed *passed;    /**< descriptor of the request that is being served, or NULL */
	struct answer ans;        /**< the answer, perhaps incomplete */
	struct app_mem growing;   /**< the region that is being mapped */
	struct shmq_req grows;    /**< the request for that region */
	uint64_t grown_at;        /**< value of nb_grown at its last step */
	bool is_paused;           /**< its requests are not read for now */
	uint64_t hello_ns;        /**< deadline for its hello */
	struct app_mem ctl_mem;   /**< memory of *ctl*; both are valid once attached */
	struct shmq_ctl *ctl;
	struct san_spsc_prod events;
	int wake_sock;                   /**< wakes a thread that waits for events, or -1 */
	int wake_fds[SAN_ENGINE_LCORES]; /**< applications write to them to wake an lcore; or -1 */
	STAILQ_HEAD(, app_event) late;
	uint32_t nb_late;
	uint64_t nb[USERS_PLACES]; /**< what it has; USERS_BYTES: and its streams may have */
	LIST_ENTRY(app) link;
};

/** All applications and all ports. */
struct apps {
	const struct conf *conf;
	struct app_port ports[CONF_PORTS_MAX]; /**< the first is the default */
	uint32_t nb_ports;
	LIST_HEAD(, app) list;
	bool closing; /**< the daemon drains: nothing new is begun */
	uint32_t nb, nb_attached;
	uint64_t max_fds; /**< descriptors that the daemon may have */
	uint64_t memory;  /**< memory of the machine */
	struct {
		uid_t owner;
		uint64_t until_ns;
	} failed[APPS_FAILED]; /**< users whose memory has failed add no regions for a while */
	uint32_t nb_failed;
	int epoll;         /**< watches the sockets of applications, and carried ones */
	uint64_t last_job; /**< last job number assigned */
	uint64_t nb_grown; /**< steps of mapping done so far, of all regions */
	uint64_t grow_ns;  /**< when the next step may begin */
};

/** The ports are added later. */
void san_apps_init(struct apps *all, const struct conf *conf);
/**
 * The device of *ctx* is open. 0, or -errno with a text in rtsan_error(); *ctx* stays the caller's
 * on error.
 */
int san_apps_add_port(struct apps *all, const char *name, struct san_mem *mem,
		      struct dpdk_ctx *ctx);

/**
 * A program has connected. The new application owns *sock*. NULL: the limit is reached or there is
 * no memory; *sock* is closed.
 */
struct app *san_apps_create(struct apps *all, int sock, uint64_t now_ns);
void san_apps_destroy(struct apps *all, struct app *a);
/**
 * Read the application's next request. A request with descriptors stays in the socket: its user's
 * helper fetches it, and no further request is read until it is answered. 1: *req* is valid; 0: a
 * helper fetches it; -EAGAIN: none; -EBUSY: try later, the user's helper is late or missing;
 * -ENOTCONN, -EPROTO: the connection is unusable.
 */
int san_app_turn_next(struct apps *all, struct app *a, struct shmq_req *req);
/** Execute a request; *p*: its descriptor, or NULL. Returns *rc* of san_app_answer(). */
int san_app_serve(struct apps *all, struct app *a, const struct shmq_req *req, struct passed *p);
/** Answer its request; -EINPROGRESS: the answer comes later. */
void san_app_answer(struct apps *all, struct app *a, int rc);
/** A helper has answered. The callee owns *fd*, which may be -1. */
void san_app_turn_on_answer(struct apps *all, struct helper *h, const struct helper_msg *m, int fd);
/** The helper's process has ended; see helper_ops. */
void san_app_turn_helper_ended(struct apps *all, struct helper *h, bool has_begun);
/** Before a takeover: abort what has taken longer than HELPER_LATE_NS. */
void san_app_turn_abort_late(struct apps *all);
/** Handle timeouts and map regions by steps. Returns when to call again. */
uint64_t san_app_turn_step(struct apps *all, uint64_t now_ns);
/** Number of attached applications of *owner* on all ports. */
uint32_t san_apps_of(const struct apps *all, uid_t owner);
/** Check that *owner* may attach one more application to *port* beside *waiting* others. */
bool san_apps_have_place(const struct app_port *port, uid_t owner, uint32_t waiting);
/**
 * Check that *owner* may have *nb* more places of *port*, and the descriptors for them. -ENOSPC: it
 * is logged, and rtsan_error() has the text.
 */
int san_apps_check(const struct app_port *port, enum users_place what, uid_t owner, uint64_t nb);
/** As san_apps_check(), beside *own* and *others* that san_users_count() does not know. */
int san_apps_check_beside(const struct app_port *port, struct users_want w);
/** True if an application waits for an answer. */
bool san_app_turn_are_waiting(const struct apps *all);
/**
 * Deliver the engines' events to the applications and arm the next notify. True: some events wait
 * for room in a ring, call again soon.
 */
bool san_apps_events(struct apps *all);

/** Shared memory has failed (SIGBUS): mark the applications that own it as over. */
void san_apps_failed(struct apps *all);
/** How many memory ranges may need a guard; see san_shmq_guard_init(). */
uint32_t san_apps_ranges(const struct apps *all);

/** End connections that have not sent a hello in time. Returns when to check again. */
uint64_t san_apps_expire_silent(struct apps *all, uint64_t now_ns);
/** Refuse new applications, listeners and connections. Existing connections continue. */
void san_apps_close(struct apps *all);
/**
 * Wake all waiting threads of applications of *port*, or of all ports (NULL), so that they check
 * their queues again. *has_ended*: the port has failed or is about to stop, and requests fail.
 */
void san_apps_wake(const struct apps *all, const struct app_port *port, bool has_ended);

/* ---- app_state.c: live restart (SYS-2, SYS-8) ---- */

/** Save everything of *all*, whose ports are parked. */
void san_app_state_save(const struct apps *all, struct state *st);
/**
 * Load the ports into *all*, which is empty; their devices are open. Returns like
 * san_app_state_load().
 */
int san_app_state_load_ports(struct apps *all, struct state *st);
/**
 * Load the applications. Memory that is shared with them is mapped at its old address and guarded.
 * 0, -ENOMEM, -EEXIST (an address is taken), -EPROTO (see st->why). After an error *all* must not
 * be used.
 */
int san_app_state_load(struct apps *all, struct state *st);
/** The ports are resumed: connect the applications' doorbells to them again. 0 or -errno. */
int san_app_state_attach(struct apps *all);

/* ---- app_telemetry.c ---- */

/*
 * The main thread owns the applications, and telemetry runs in a thread of its own. The main thread
 * holds a lock unless it sleeps, so telemetry sees only consistent tables.
 */

/**
 * The main thread enters before it accesses the tables and leaves before it sleeps. The telemetry
 * commands about applications and sockets show *all*; NULL disables them.
 */
void san_app_telemetry_enter(struct apps *all);
void san_app_telemetry_leave(void);
