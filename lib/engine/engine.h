/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_H
#define ENGINE_H

/**
 * @file
 * A port, and for each of its lcores an engine: a core and the loop between it and
 * the port (SYS-1).
 *
 * An engine is the owner of a core: it reads the clock, polls and feeds the port,
 * takes work out of the rings of applications' threads, and runs what must
 * happen on the lcore's side on their behalf. It knows no protocol rules. What the
 * engines of a port share is the device and its buffers; nothing else.
 *
 * Thread rule: san_engine_progress() and the lcore's loop are the same thing in
 * two hands, never at once. san_engine_call() may be used by any thread when
 * the engine has its lcore, else by the one that calls san_engine_progress().
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core.h"
#include "engine_impair.h"
#include "san_bells.h"
#include "san_wr.h"

#define SAN_ENGINE_LCORES 16  /**< of a port, at most: a CID has 4 bits for them */
#define SAN_ENGINE_APPS   256 /**< applications of a port, at most */
#define SAN_ENGINE_NAME   32  /**< bytes of a port's name, with its end */
#define SAN_ENGINE_GUARDS 16  /**< UDP ports of a process, at most */

enum san_engine_idle_policy {
	SAN_IDLE_AUTO = 0, /**< yield where lcores share CPUs, else poll */
	SAN_IDLE_POLL,
	SAN_IDLE_PAUSE,     /**< poll with the processor's pause instruction */
	SAN_IDLE_YIELD,     /**< sched_yield() when idle */
	SAN_IDLE_SLEEP,     /**< sleeps when idle: until work, the next deadline, or sleep_max_us */
	SAN_IDLE_INTERRUPT, /**< likewise, or until a packet comes, where the port can tell */
	SAN_IDLE_MAX
};

struct san_engine_conf {
	/**
	 * Protocol values. Of pool, mac, path, ports, secrets, cam the engine takes care; an
	 * MTU of 0 is the port's.
	 */
	struct san_core_conf core;
	char name[SAN_ENGINE_NAME]; /**< what operators call the port */
	uint16_t port_id;
	uint16_t mtu_min;                   /**< that the addresses allow: less is refused */
	uint16_t vlan;                      /**< that the port is in; 0: none */
	uint16_t nb_rxd, nb_txd;            /**< as near as the port can */
	uint16_t nb_queues;                 /**< receive and transmit; 0: as the port allows */
	uint32_t pool_size;                 /**< mbufs; see san_engine_pool_min() */
	bool own_lcore;                     /**< runs on *lcores*, else the caller polls */
	bool waits;                         /**< ... but not before san_engine_start() */
	bool resumes;                       /**< the device only, for san_engine_resume() */
	struct rte_ether_addr mac;          /**< that peers know the port by; zeros: none yet */
	uint32_t nb_lcores;                 /**< 1 if the caller polls */
	uint32_t lcores[SAN_ENGINE_LCORES]; /**< of EAL */
	uint8_t idle;                       /**< enum san_engine_idle_policy */
	uint32_t sleep_max_us;
	struct san_engine_impair_conf impair_tx, impair_rx;
	uint64_t secret_seed; /**< tests only: keys and tags from a seed; 0 = arc4random */
};

struct san_engine_port; /* a port and all engines on it */
struct san_engine;      /* one of them */

/** Every default for *max_conns* connections; the MTU is the port's. */
void san_engine_conf_default(struct san_engine_conf *conf, uint32_t max_conns);
/** Mbufs that *conf* needs at least, so that no layer can starve another (RT-26). */
uint32_t san_engine_pool_min(const struct san_engine_conf *conf);

/**
 * Open the port, make the cores, start the lcores. With conf->resumes only the port is opened:
 * this may need rights that the rest does not.
 *
 * @param why
 *   What is wrong, on error.
 * @return
 *   0, -EINVAL, -ENODEV, -ENOMEM or what the port said.
 */
int san_engine_open(const struct san_engine_conf *conf, struct san_engine_port **out,
		    const char **why);
/**
 * Go on with what was parked in *mem*, on a port without cores: opened with conf->resumes, or
 * parked by this process. Of its configuration only what belongs to the process and to the device
 * counts. After an error the port is as before.
 *
 * @return
 *   0, -EINVAL, -ENOMEM; -EBUSY: another process goes on with it; -EOWNERDEAD: it died at that.
 */
int san_engine_resume(struct san_engine_port *p, struct san_mem *mem, const char **why);
/**
 * The memory that san_engine_open() with *conf* will take is touched, which without hugepages takes
 * some 50 ms: for who has little time then.
 */
void san_engine_warm(const struct san_engine_conf *conf);
/** Lcores that were told to wait begin. 0, -EINVAL, -EBUSY; then close or park it. */
int san_engine_start(struct san_engine_port *p, const char **why);
/**
 * Tell peers of connections still open, stop, release everything; the port is closed. One that is
 * parked goes without a word.
 */
void san_engine_close(struct san_engine_port *p);

/**
 * The sockets that keep the transport's UDP ports in the kernel, also while a port is parked: for
 * the process that goes on with it, so that no other one gets a UDP port in between. They stay
 * the engine's.
 *
 * @return
 *   Their number.
 */
uint32_t san_engine_guards(int fds[SAN_ENGINE_GUARDS]);
/** Have *fd*, from another process's san_engine_guards(). 0: the engine's now; -EINVAL, -ENOSPC. */
int san_engine_guard_adopt(int fd);
/**
 * Live restart: stop, and say nothing to anybody. Connections, queue pairs and regions lie in
 * conf.core.mem; the port stays open, without cores. san_engine_resume() with the same memory, here
 * or in another process, goes on with them, when all that applications share is mapped where it
 * was. Who attached is there, but is not looked at before san_engine_app_add(); and nobody is woken
 * before he is watched for.
 */
void san_engine_park(struct san_engine_port *p);
/** Can another process have the port's device while this one has it? */
bool san_engine_is_shareable(const struct san_engine_port *p);
/** The port's MAC address. Any thread. */
struct rte_ether_addr san_engine_mac(const struct san_engine_port *p);
/** Who wanted to go on with what is parked in *mem* is dead: another one may. */
void san_engine_reclaim(struct san_mem *mem);

/** The process ends without closing: leave the port to EAL's own cleaning up, memory as it is. */
void san_engine_halt(struct san_engine_port *p);

/** One round if the caller polls: packets handled, 0, -EIO (the port is gone). */
int san_engine_progress(struct san_engine_port *p);

uint32_t san_engine_count(const struct san_engine_port *p);
/** Engine *id*, below san_engine_count(). */
struct san_engine *san_engine_at(const struct san_engine_port *p, uint32_t id);
const struct san_engine_conf *san_engine_conf_of(const struct san_engine_port *p);

typedef int (*san_engine_fn)(struct san_engine *e, void *arg);
/** Run *fn* where the core lives, wait, return what it returns. */
int san_engine_call(struct san_engine *e, san_engine_fn fn, void *arg);
/** Likewise from any thread, for *fn* that only reads, word by word. */
int san_engine_read(struct san_engine *e, san_engine_fn fn, void *arg);
/** For *fn*. */
struct san_core *san_engine_core(struct san_engine *e);
uint64_t san_engine_now_ns(struct san_engine *e);

/* ---- applications and queue pairs: call these by san_engine_call() ---- */

/**
 * An application in another process, which rings *bells*, zeroed (but after san_engine_park()),
 * for its queue pairs' places (san_ulp_qp_index()). Application 0 is the program that the engine
 * is part of.
 *
 * @param user
 *   For whom its streams count; see struct san_core_stream_conf.
 * @param wake_fd
 *   An eventfd that it writes when it rings a lcore that sleeps; stays the caller's. -1: none.
 * @return
 *   0, -EINVAL, -EEXIST, or what epoll says.
 */
int san_engine_app_add(struct san_engine *e, uint16_t app, uint32_t user, struct san_bells *bells,
		       int wake_fd);
/** It has no queue pairs any more; its bells are not looked at again. */
void san_engine_app_del(struct san_engine *e, uint16_t app);

/** Queue pairs of all applications. */
uint32_t san_engine_nb_qps(const struct san_engine *e);
/** Slots of connections that *app*, not 0, keeps others from taking. */
uint32_t san_engine_app_slots(struct san_engine *e, uint16_t app);

/** *wq*, zeroed, stays the caller's, and *app*'s; san_ulp_qp_create() says what can fail. */
int san_engine_qp_add(struct san_engine *e, struct san_wq *wq, uint16_t app,
		      const struct san_ulp_qp_conf *conf, uint32_t *qp);
/**
 * Likewise one that is a stream; san_core_stream_create() says what can fail.
 *
 * @param lingers
 *   What was sent still goes to the peer when its program deletes it, or has gone.
 */
int san_engine_stream_add(struct san_engine *e, struct san_wq *wq, uint16_t app,
			  const struct san_core_stream_conf *conf, bool lingers, uint32_t *qp);
/** What its application wrote into its rings that ended it, or NULL. */
const char *san_engine_qp_fault(const struct san_engine *e, uint32_t qp);
/** Its connection ends; its *wq*, returned, and the memory of its work are not touched any more. */
struct san_wq *san_engine_qp_del(struct san_engine *e, uint32_t qp);
/**
 * The port is about to close, for queue pairs of other processes: what is posted by the first
 * call is done, then their connections end in order; what is posted later is flushed. To be
 * called again until it returns 0.
 *
 * @return
 *   Queue pairs that still have work, or a connection; and streams that programs left behind.
 */
uint32_t san_engine_drain(struct san_engine *e);
/** Likewise, but at once: work under way is flushed, and peers are told once. */
void san_engine_cut(struct san_engine *e);
/** Does posted work of *app*, whose region it is, name *key*? */
bool san_engine_names_key(const struct san_engine *e, uint16_t app, uint32_t key);

/* ---- sockets: of lcore 0, by san_engine_call() ---- */

/** Of a port, at most; 0: it carries none. Their bells lie behind those of queue pairs. */
uint32_t san_engine_max_socks(const struct san_engine_port *p);
/** The device is to receive what is sent to groups that the first lcore is in: 0, or -errno. */
int san_engine_groups(struct san_engine_port *p);
/** The kernel's device behind the port, or 0. */
uint32_t san_engine_if_index(const struct san_engine_port *p);
/** Bytes of the longest IP packet that the port sends. */
uint16_t san_engine_mtu(const struct san_engine_port *p);
/** Bytes of the longest IPv4 packet in fragments that comes by the port. */
uint32_t san_engine_whole_v4(const struct san_engine_port *p);

/* ---- any thread ---- */

/** Rounds of its loop until now: a watchdog sees whether it hangs, without asking it. */
uint64_t san_engine_loops(const struct san_engine *e);
/** There are new entries in the work queues of *qp*. */
void san_engine_doorbell(struct san_engine *e, uint32_t qp);
/** Next connection event of any engine; one thread at a time. */
bool san_engine_event(struct san_engine_port *p, struct san_core_event *ev);
/**
 * For who sleeps until there are events: a descriptor, the port's own, that becomes readable
 * once after each san_engine_event_arm() when there is one. Arm it, then look, then sleep.
 */
int san_engine_event_fd(const struct san_engine_port *p);
void san_engine_event_arm(struct san_engine_port *p);
/** Is there a connection event? For who has armed and is about to sleep. */
bool san_engine_has_event(struct san_engine_port *p);
/** Do lcores sleep, so that who rings may have to wake them? */
bool san_engine_sleeps(const struct san_engine_port *p);
/** Do the lcores share their CPUs, by the policy? Then who polls for them lets them work. */
bool san_engine_yields(const struct san_engine_port *p);
bool san_engine_is_gone(const struct san_engine_port *p);
/** *tx*: before transmission, else after reception. NULL: off. */
int san_engine_impair(struct san_engine_port *p, bool tx,
		      const struct san_engine_impair_conf *conf);
/** Write every packet of the port to *file* (pcapng) until NULL is given. 0 or -errno. */
int san_engine_capture(struct san_engine_port *p, const char *file);

/* ---- engine_show.c ---- */

enum san_engine_show {
	SAN_SHOW_PORT,
	SAN_SHOW_CONN,
	SAN_SHOW_STATS,
	SAN_SHOW_CAM,
	SAN_SHOW_DROPS,
	SAN_SHOW_STREAM,
};

struct san_engine_counter {
	const char *name;
	uint64_t value;
};

void san_engine_show(struct san_engine_port *p, enum san_engine_show what, FILE *f);
/** All counters, of all engines; returns how many there are, fills at most *max*. */
int san_engine_counters(struct san_engine_port *p, struct san_engine_counter *c, int max);
/** Likewise of one engine. */
int san_engine_counters_of(struct san_engine *e, struct san_engine_counter *c, int max);
uint64_t san_engine_leaks(struct san_engine_port *p);

#endif /* ENGINE_H */
