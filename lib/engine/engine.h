/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * A port, and for each of its lcores an engine: a core and the loop between it and the port
 * (SYS-1).
 *
 * An engine owns a core. It reads the clock, receives and sends packets, takes work from the rings
 * of the applications' threads, and runs calls of other threads on its lcore. It knows no protocol
 * rules. The engines of a port share only the device and its buffers.
 *
 * Thread rule: the engine runs either in the loop of an lcore or in san_engine_progress(), never in
 * both. If it has an lcore, any thread may use san_engine_loop_call(); otherwise only the thread
 * that calls san_engine_progress().
 */

#include <stdbool.h>
#include <stdint.h>

#include "core.h"
#include "san_doorbells.h"
#include "san_wr.h"

#define SAN_ENGINE_LCORES 16  /**< most lcores of a port: a CID has 4 bits for them */
#define SAN_ENGINE_APPS   256 /**< most applications of a port */
#define SAN_ENGINE_NAME   32  /**< bytes of a port's name, with the final NUL */
#define SAN_ENGINE_GUARDS 16  /**< most UDP ports of a process */
/** Buckets of a histogram. Bucket i: 2^i to 2^(i+1) ns; the last one: all above. */
#define SAN_ENGINE_HIST 32

/**
 * What an lcore does without work. From YIELD on lcores share their CPUs, and a thread that polls
 * for them must yield, too. From SLEEP on they sleep, and a doorbell may have to wake one.
 */
enum san_engine_idle_policy {
	SAN_IDLE_AUTO = 0, /**< yield where lcores share CPUs, otherwise poll */
	SAN_IDLE_POLL,
	SAN_IDLE_PAUSE,     /**< poll with the processor's pause instruction */
	SAN_IDLE_YIELD,     /**< sched_yield() when idle */
	SAN_IDLE_SLEEP,     /**< sleep when idle: until work, the next deadline or sleep_max_us */
	SAN_IDLE_INTERRUPT, /**< the same, and a packet ends the sleep; needs receive interrupts */
	SAN_IDLE_MAX
};

extern const char *const san_engine_idle_words[SAN_IDLE_MAX];

/** Whether TCP sockets of programs are carried over the port. (UDP-13) */
enum san_engine_carry_tcp {
	/** unless the kernel processes each packet as well: then its TCP has more throughput */
	SAN_CARRY_TCP_AUTO,
	SAN_CARRY_TCP_ON,
	SAN_CARRY_TCP_OFF,
};

#define SAN_IMPAIR_ALWAYS (1ULL << 32) /**< probability 1 */

/** Artificial link faults. The same seed and the same packets give the same faults. */
struct san_engine_impair_conf {
	/** Probabilities in units of 2^-32. */
	uint64_t drop, duplicate, reorder, corrupt, ecn;
	uint64_t delay_ns; /**< added to every packet */
	uint64_t seed;
};

struct san_engine_conf {
	/** The engine sets pool, mac, path, ports, secrets and cam. MTU 0: that of the port. */
	struct san_core_conf core;
	char name[SAN_ENGINE_NAME]; /**< the name that operators use */
	uint16_t port_id;
	uint16_t mtu_min;                   /**< least MTU that the addresses allow */
	uint16_t vlan;                      /**< VLAN of the port; 0: none */
	uint16_t nb_rxd, nb_txd;            /**< adjusted to what the port supports */
	uint16_t nb_queues;                 /**< queues of each kind; 0: as the port allows */
	uint32_t pool_size;                 /**< mbufs; see san_engine_port_pool_min() */
	bool own_lcore;                     /**< run on *lcores*; otherwise the caller polls */
	bool waits;                         /**< the lcores start only with san_engine_start() */
	bool resumes;                       /**< open the device only, for san_engine_resume() */
	struct rte_ether_addr mac;          /**< that peers know; zeros: none yet */
	uint32_t nb_lcores;                 /**< 1 if the caller polls */
	uint32_t lcores[SAN_ENGINE_LCORES]; /**< EAL lcores */
	uint8_t idle;                       /**< enum san_engine_idle_policy */
	uint32_t sleep_max_us;
	uint8_t carry_tcp; /**< enum san_engine_carry_tcp */
	struct san_engine_impair_conf impair_tx, impair_rx;
	uint64_t secret_seed; /**< for tests: seed for keys and tags; 0: arc4random */
};

struct san_engine_port; /* a port with all its engines */
struct san_engine;      /* one of them */

/** Set the defaults for *max_conns* connections; the MTU is the port's. */
void san_engine_conf_default(struct san_engine_conf *conf, uint32_t max_conns);
/** Mbufs that *conf* needs at least, so that no layer can starve another (RT-26). */
uint32_t san_engine_port_pool_min(const struct san_engine_conf *conf);

/**
 * Open the port, create the cores, start the lcores. With conf->resumes only the port is opened;
 * this may need privileges that the other steps do not need. 0; or -EINVAL, -ENODEV, -ENOMEM or
 * the error of the port, and what is wrong in *why*.
 */
int san_engine_open(const struct san_engine_conf *conf, struct san_engine_port **out,
		    const char **why);
/**
 * Continue what was parked in *mem*, on a port without cores: one opened with conf->resumes, or
 * parked by this process. Of the port's configuration only the part for the process and the device
 * is used. After an error the port is as before. 0, -EINVAL, -ENOMEM; -EBUSY: another process has
 * claimed it; -EOWNERDEAD: the process that claimed it died while it changed the state.
 */
int san_engine_resume(struct san_engine_port *p, struct san_mem *mem, const char **why);
/**
 * Touch the memory that san_engine_open() with *conf* will allocate, which takes some 50 ms without
 * hugepages, so that the later open is quick.
 */
void san_engine_port_warm(const struct san_engine_conf *conf);
/** Start the lcores of a port with conf.waits. 0; or -EINVAL, -EBUSY: close or park it. */
int san_engine_start(struct san_engine_port *p, const char **why);
/**
 * Abort the open connections and notify the peers, stop, release everything, close the port. A
 * parked port is closed without a packet.
 */
void san_engine_close(struct san_engine_port *p);

/**
 * Get the sockets that hold the transport's UDP ports in the kernel, also while a port is parked,
 * and return their number. The engine keeps them. The process that resumes the port adopts them, so
 * that no other process can bind a UDP port in between.
 */
uint32_t san_engine_kernel_guards(int fds[SAN_ENGINE_GUARDS]);
/** Adopt *fd* of san_engine_kernel_guards(). 0: the engine owns it now; -EINVAL, -ENOSPC. */
int san_engine_kernel_guard_adopt(int fd);
/**
 * For a live restart: stop without a packet. Connections, queue pairs and regions stay in
 * conf.core.mem; the port stays open, without cores. After san_engine_resume() with the same
 * memory, in this or another process, they continue. All memory that is shared with applications
 * must be mapped at the same addresses before that. Applications stay attached, but their doorbells
 * are polled only after san_engine_app_add(), and waiters are woken only after they are watched
 * again.
 */
void san_engine_park(struct san_engine_port *p);
/** Whether another process can open the port's device while this one has it open. */
bool san_engine_is_shareable(const struct san_engine_port *p);
/** The port's MAC address. Any thread. */
struct rte_ether_addr san_engine_mac(const struct san_engine_port *p);
/** The process that claimed what is parked in *mem* is dead: let another one claim it. */
void san_engine_reclaim(struct san_mem *mem);

/** The process ends without san_engine_close(): memory stays, EAL's cleanup closes the port. */
void san_engine_halt(struct san_engine_port *p);

/** One round, if the caller polls. Returns packets handled, or -EIO if the port has failed. */
int san_engine_progress(struct san_engine_port *p);

uint32_t san_engine_count(const struct san_engine_port *p);
/** Engine *id*, below san_engine_count(). */
struct san_engine *san_engine_at(const struct san_engine_port *p, uint32_t id);
/** The values in use, also for what the caller left to the engine. */
const struct san_engine_conf *san_engine_conf_of(const struct san_engine_port *p);

typedef int (*san_engine_fn)(struct san_engine *e, void *arg);
/** Run *fn* on the engine's lcore, wait for it and return its result. */
int san_engine_loop_call(struct san_engine *e, san_engine_fn fn, void *arg);
/** The same from any thread, for a *fn* that only reads single words. */
int san_engine_loop_read(struct san_engine *e, san_engine_fn fn, void *arg);
/** For use in *fn*. */
struct san_core *san_engine_lcore_core(struct san_engine *e);
uint64_t san_engine_lcore_now_ns(struct san_engine *e);

/* ---- applications and queue pairs: call these through san_engine_loop_call() ---- */

/**
 * Add an application of another process. It rings *doorbells* at the places of its queue pairs
 * (san_ulp_qp_index()); they are zeroed, except after san_engine_park(). Application 0 is the
 * program that contains the engine. *user* owns its streams; see struct san_core_stream_conf. To
 * the eventfd *wake_fd* it writes after a doorbell for a sleeping lcore; the caller keeps it; -1:
 * none. 0, -EINVAL, -EEXIST or an error of epoll.
 */
int san_engine_app_add(struct san_engine *e, uint16_t app, uint32_t user,
		       struct san_doorbells *doorbells, int wake_fd);
/** Remove an application without queue pairs; its doorbells are not polled any more. */
void san_engine_app_del(struct san_engine *e, uint16_t app);

uint32_t san_engine_lcore_nb_qps(const struct san_engine *e);

/** A queue pair of an application. */
struct san_engine_qp_conf {
	uint16_t app;
	struct san_wq *wq; /**< zeroed, the caller's */
	bool is_stream;
	/** Of a stream: posted sends are delivered even if its application deletes it or ends. */
	bool lingers;
	struct san_core_stream_conf core; /**< only *qp*, if it is no stream */
};

/** Add it. Errors are those of san_ulp_qp_create() and san_core_stream_create(). */
int san_engine_lcore_qp_add(struct san_engine *e, const struct san_engine_qp_conf *conf,
			    uint32_t *qp);
/** Why a queue pair was ended for an invalid entry in its rings, as text, or NULL. */
const char *san_engine_lcore_qp_fault(const struct san_engine *e, uint32_t qp);
/**
 * Delete a queue pair and end its connection. The engine does not touch its *wq*, which is
 * returned, or the memory of its work any more.
 */
struct san_wq *san_engine_lcore_qp_del(struct san_engine *e, uint32_t qp);
/**
 * Before the port closes, for queue pairs of other processes. Work posted before the first call is
 * done, then the connections end in order; work posted later is flushed. Returns the number of
 * queue pairs that still have work or a connection, and of orphaned streams: call it again until
 * that is 0. *none* is not used.
 */
int san_engine_drain(struct san_engine *e, void *none);
/** The same at once: work in progress is flushed, and each peer gets one message. Returns 0. */
int san_engine_drain_cut(struct san_engine *e, void *none);
/** Whether posted work of the owner of the region refers to *key*. */
bool san_engine_lcore_names_key(const struct san_engine *e, uint32_t key);

/* ---- sockets: on lcore 0, through san_engine_loop_call() ---- */

/** Make the device receive packets to the groups that the sockets have joined. 0 or -errno. */
int san_engine_sock_groups(struct san_engine_port *p);
/** Index of the kernel's device behind the port, or 0. */
uint32_t san_engine_sock_if_index(const struct san_engine_port *p);
/** Largest IPv4 packet, reassembled from fragments, that the port receives, in bytes. */
uint32_t san_engine_sock_whole_v4(const struct san_engine_port *p);

/* ---- any thread ---- */

/** Rounds of its loop so far: a watchdog reads it to see whether the lcore hangs. */
uint64_t san_engine_loop_count(const struct san_engine *e);
/** There are new entries in the work queues of *qp*. */
void san_engine_loop_doorbell(struct san_engine *e, uint32_t qp);
/** Get the next connection event of any engine. One thread at a time. */
bool san_engine_event(struct san_engine_port *p, struct san_core_event *ev);
/**
 * A descriptor, owned by the port, for a thread that waits for events. It becomes readable once
 * after each san_engine_event_arm(), when there is an event.
 */
int san_engine_event_fd(const struct san_engine_port *p);
/** Arm it. True: there is an event already, so do not sleep. */
bool san_engine_event_arm(struct san_engine_port *p);
bool san_engine_is_lost(const struct san_engine_port *p);
/** Set the faults before transmission (*tx*) or after reception. NULL: off. */
int san_engine_set_impair(struct san_engine_port *p, bool tx,
			  const struct san_engine_impair_conf *conf);
