/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_PRIV_H
#define ENGINE_PRIV_H

/**
 * @file
 * The engine's state, shared by the files of this folder.
 */

#include <stdatomic.h>
#include <sys/eventfd.h>

#include <rte_ethdev.h>
#include <rte_ring.h>

#include "san_spin.h"
#include "engine.h"
#include "engine_busy.h"
#include "engine_clock.h"
#include "engine_gate.h"
#include "engine_memif.h"
#include "engine_trace.h"

#define ENGINE_BURST      SAN_CORE_BURST
#define ENGINE_BURST_LONG 8 /**< of frames longer than ENGINE_SHORT */
#define ENGINE_SHORT      4096
#define ENGINE_OUT_MAX    (2 * ENGINE_BURST)   /* the impairment stage may give more than it got */
#define ENGINE_LOCAL      (4 * ENGINE_OUT_MAX) /* packets of a round to ourselves */
#define ENGINE_CALLS      64
#define ENGINE_EVENTS     256
#define ENGINE_LANES      1024 /**< packets handed over to an lcore that may wait for it */

struct san_engine_capture; /* engine_capture.c */

/** Packets on their way from one lcore to another. */
struct san_engine_lane {
	struct rte_ring *ring;
	_Atomic uint64_t gap_ns; /**< for which the port was not looked at before they came */
};

enum san_engine_image_state {
	SAN_IMAGE_IN_USE = 0, /**< or left in the middle, by who died there */
	SAN_IMAGE_PARKED,
	SAN_IMAGE_CLAIMED, /**< by one who has not touched it yet */
};

/** What outlives the process, if conf.core.mem does: its root. */
struct san_engine_image {
	_Atomic uint32_t state; /**< enum san_engine_image_state */
	uint32_t nb_engines;
	struct san_engine *engines[SAN_ENGINE_LCORES]; /**< NULL: not made yet */
	struct san_engine_clock clock;                 /**< calibrated once, for all */
	struct san_tl_lend lend;
};

/** What the kernel says of the device behind a port. */
enum san_engine_dev {
	SAN_ENGINE_DEV_NONE = 0, /**< there is none, or it was not looked at yet */
	SAN_ENGINE_DEV_UP,
	SAN_ENGINE_DEV_DOWN,
	SAN_ENGINE_DEV_GONE, /**< one of the same name is another */
	SAN_ENGINE_DEV_STATES,
};

/** The device as the engines need it, and what all of them share. */
struct san_engine_port {
	uint16_t id;
	uint16_t mtu;      /**< of IP, as agreed with the operator */
	uint16_t declared; /**< as the port knows it: some refuse to be told, but carry it */
	uint16_t nb_rxd, nb_txd;
	uint16_t nb_queues; /**< engine i has queue i, of either kind; those beyond have none */
	char name[RTE_ETH_NAME_MAX_LEN];
	const char *driver;
	_Atomic uint64_t mac; /**< as it is now, in its first six bytes; see san_engine_mac() */
	int mac_fd;           /**< to ask the kernel for it; -1: it does not change */
	struct {
		_Atomic uint32_t state; /**< enum san_engine_dev */
		uint32_t mtu;           /**< as seen last; 0: not yet */
		char name[16];          /**< likewise */
	} dev;
	/* what it can do, as probed: used where present, never required */
	uint64_t rx_offloads, tx_offloads; /**< in use */
	uint64_t rx_capa, tx_capa;         /**< offered */
	uint16_t reta_size;
	uint64_t rss_capa;
	bool is_steered; /**< *steer* tells how it spreads packets over its queues */
	struct san_cm_steer steer;
	bool started;
	_Atomic bool shut;
	_Atomic bool gone;
	bool launched;          /**< the engines run on lcores of their own */
	uint8_t idle;           /**< enum san_engine_idle_policy, not AUTO */
	bool sleeps;            /**< by it: lcores are woken */
	uint32_t if_index;      /**< of the kernel's device behind it; 0: there is none */
	uint32_t nb_driver_fds; /**< see san_engine_driver_fd_find() */
	int driver_fds[SAN_ENGINE_LCORES];
	uint32_t whole_v4; /**< see struct san_engine_mtu */
	bool is_shared;    /**< the kernel has our address there: it answers for us */
	bool is_guarded;   /**< see san_engine_kernel_guard() */
	struct san_engine_gate gate;
	struct san_engine_memif memif;
	struct san_engine_conf conf;
	struct san_engine_image *image; /**< NULL: it has no cores */
	bool resumes;                   /**< what was parked goes on with it, or is to */
	struct rte_mempool *pool;
	struct san_engine_capture *capture;
	_Atomic bool stop;
	uint32_t next_event; /**< engine that is asked first */
	int event_fd;
	_Atomic bool event_armed; /**< somebody sleeps until there is an event */
	uint32_t nb_engines;
	struct san_engine *engines[SAN_ENGINE_LCORES];
	/** Received, [from][to]; to send, [from]: to the engine that has its queue. */
	struct san_engine_lane rx_lanes[SAN_ENGINE_LCORES][SAN_ENGINE_LCORES];
	struct rte_ring *tx_lanes[SAN_ENGINE_LCORES];
};

/** How far the end of a queue pair is while the port is drained; see san_engine_drain(). */
enum san_engine_qp_end {
	SAN_QP_OPEN = 0,
	SAN_QP_ENDING, /**< what was posted before goes on, then its connection ends */
	SAN_QP_ENDED,  /**< has no connection any more: what was posted later is flushed */
};

struct san_engine_qp {
	struct san_wq_cons wq; /**< wq.wq is NULL: free, or gone */
	uint32_t qpn;
	uint16_t app;      /**< whose it is */
	bool again;        /**< listed: something is left in its rings */
	bool is_stream;    /**< see san_core_stream_create() */
	bool lingers;      /**< see san_engine_stream_add() */
	uint8_t end;       /**< enum san_engine_qp_end */
	uint32_t sq_last;  /**< ENDING: of its send queue nothing is taken from here on */
	const char *fault; /**< what its application wrote there that nobody may */
};

/** A program that rings. 0 is the one that we are part of, or nobody. */
struct san_engine_app {
	struct san_bells *bells; /**< NULL: there is none */
	uint32_t user;           /**< who runs it; SAN_CORE_ALONE: ourselves */
	uint32_t cursor;
	uint32_t left;               /**< entries that this round still takes of its rings */
	int wake_fd;                 /**< or -1; never read: each write wakes (EPOLLET) */
	uint32_t nb_faults;          /**< of its queue pairs, for what it wrote */
	struct san_ulp_traffic past; /**< of its queue pairs that are gone */
};

struct san_engine_stats {
	_Atomic uint64_t nb_loops; /**< others look whether it still grows */
	uint64_t nb_idle_loops;
	uint64_t nb_rx, nb_tx;
	uint64_t nb_backlogged; /**< packets that the port did not take at once */
	uint64_t nb_bells;
	uint64_t nb_calls;
	uint64_t nb_sleeps;
	uint64_t nb_wakes;      /**< programs woken: system calls, made for who waits only */
	uint64_t nb_handed;     /**< packets received for other lcores */
	uint64_t nb_taken;      /**< ... by others for this one */
	uint64_t nb_lent;       /**< packets given to others to send */
	uint64_t nb_local;      /**< packets sent to our own address */
	uint64_t nb_app_faults; /**< queue pairs ended for what an application wrote */
};

/** One lcore's. */
struct san_engine {
	/* every loop */
	struct san_core *core;
	struct san_engine_clock clock;
	struct san_engine_port *port;
	uint16_t port_id;
	uint16_t id;    /**< number among the engines of the port; its queue, if it has one */
	bool has_queue; /**< else another engine receives and sends for it */
	uint64_t mac;   /**< the port's, as the core knows it */
	bool is_alone;  /**< nobody to hand anything to */
	uint32_t turn;  /**< lcore whose packets are sent first in this round */
	/* packets of the next burst */
	uint16_t rx_burst;
	uint16_t tx_burst;
	uint16_t nb_backlog;
	uint16_t nb_local;
	bool capturing;
	bool may_burst; /**< this round */
	bool launched;
	bool awake;              /**< *core* is not parked */
	struct san_bells *bells; /**< of application 0 */
	uint32_t nb_apps;        /**< one more than the highest number in use */
	struct rte_ring *calls;
	struct san_engine_qp *qps;
	uint32_t *again; /**< queue pairs whose rings were not emptied: a ring, each at most once */
	uint32_t again_head, nb_again;
	uint32_t idle_loops;  /**< in a row */
	bool dozes;           /**< says in all bells that it sleeps */
	bool hears;           /**< a packet ends its sleep */
	struct san_spin spin; /**< before it sleeps */
	uint64_t idle_ns;     /**< since when there is nothing to do */
	uint64_t nb_wcs_told; /**< completions for which programs were let run */
	int epoll;            /**< what ends a sleep; -1: never sleeps */
	int wake_fd;
	uint64_t now_ns;
	uint64_t rx_ns;      /* when the port was looked at last */
	uint64_t backlog_ns; /**< when it last moved */
	uint64_t link_ns;    /**< when the link was last asked for */
	uint64_t speed_ns;   /**< when its speed was, while it had none */
	struct san_engine_stats stats;
	struct san_engine_busy busy;
	uint64_t traced_rto; /**< timeouts that the trace has */
	uint64_t drops[SAN_DROP_MAX];
	struct san_engine_app apps[SAN_ENGINE_APPS];
	struct rte_mbuf *backlog[ENGINE_OUT_MAX];
	struct rte_mbuf *local[ENGINE_LOCAL]; /**< sent to ourselves, not received yet */
	struct san_engine_impair impair_tx, impair_rx;
	/* connection events on their way to the application */
	struct san_spsc event_q;
	struct san_core_event events[ENGINE_EVENTS];
	/* rarely */
	struct san_core_conf conf; /**< of this lcore */
	struct rte_hash *cam;
	struct san_prng secret;
};

/* ---- engine.c ---- */

/** The engine of the port's lcore number *id*; not running yet. */
int san_engine_create(struct san_engine_port *p, uint32_t id, struct san_engine **out,
		      const char **why);
/** The lcore has stopped. Frees what it holds; the port still has its buffers. */
void san_engine_destroy(struct san_engine *e);
/** Likewise, but its core is parked, and it stays where it is for the next process. */
void san_engine_rest(struct san_engine *e);
/** Every connection ends; the next rounds tell the peers. */
void san_engine_end(struct san_engine *e);

/** There is an event: wake who sleeps until then, if anybody does (AFC-19). */
static inline void
san_engine_event_wake(struct san_engine_port *p)
{
	/* pairs with the store in san_engine_event_arm(), after which it looks again */
	if (atomic_exchange(&p->event_armed, false))
		eventfd_write(p->event_fd, 1);
}

/* ---- engine_loop.c ---- */

/** One round: packets and requests handled. */
uint32_t san_engine_loop_once(struct san_engine *e);
/** The lcore's function. */
int san_engine_loop_main(void *arg);

/* ---- engine_app.c ---- */

/** Bells of an application: of its queue pairs, and behind them of sockets. */
static inline uint32_t
san_engine_nb_bells(const struct san_engine *e)
{
	return e->conf.ulp.max_qps + e->conf.max_socks;
}

/** A round begins: what may be taken in it. */
void san_engine_app_refill(struct san_engine *e);
/** Take what is in the rings of a queue pair of another process. False: some is left. */
bool san_engine_app_drain(struct san_engine *e, struct san_engine_qp *q);

/* ---- engine_sock.c ---- */

/** A program rang for socket *id*, which may be none. */
void san_engine_sock_rang(struct san_engine *e, uint32_t id);
/** Wake who waits in the kernel for sockets that have become readable. */
void san_engine_sock_wake(struct san_engine *e);

/* ---- engine_dev.c ---- */

/** Has its device changed? Then that is told. *fd*: any socket. */
void san_engine_dev_look(struct san_engine_port *p, int fd);
/** "up", "down", "deleted", or "none". */
const char *san_engine_dev_state(const struct san_engine_port *p);

/* ---- engine_mac.c ---- */

/** Is it the port's alone, and no kernel's device's? */
bool san_engine_mac_is_own(const struct san_engine_port *p);
/** See san_engine_mac(). */
void san_engine_mac_set(struct san_engine_port *p, const struct rte_ether_addr *mac);
/** Follow it where the kernel may change it, until it is no longer watched. */
void san_engine_mac_watch(struct san_engine_port *p);
void san_engine_mac_unwatch(struct san_engine_port *p);
/** It has changed: tell the core. */
void san_engine_mac_follow(struct san_engine *e);

/* ---- engine_kernel.c ---- */

/** Does the kernel have one of the port's addresses, on the device behind it? */
bool san_engine_kernel_shares(const struct san_engine_port *p);
/** Keep the kernel from answering the transport's packets, of which it gets copies. */
int san_engine_kernel_guard(struct san_engine_port *p, const char **why);
/** No longer, if *p* did; one that is parked leaves the guard for the next. */
void san_engine_kernel_unguard(struct san_engine_port *p, bool parks);

/* ---- engine_holder.c ---- */

/** A text that says which process has this UDP port in the kernel, until the next call. */
const char *san_engine_kernel_holder(uint16_t udp_port);

/* ---- engine_handover.c ---- */

/** Lanes between the engines of *p*, which has its queues. -ENOMEM. */
int san_engine_lanes_create(struct san_engine_port *p);
/** What lies in them is freed. */
void san_engine_lanes_destroy(struct san_engine_port *p);
/** Give *n* received packets to their owners; those of this engine stay, their number. */
uint16_t san_engine_handover(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n);
/** Packets that others received for this engine; *gap_ns*: see san_core_rx_gap(). */
uint16_t san_engine_take_rx(struct san_engine *e, uint32_t from, struct rte_mbuf **pkts,
			    uint16_t n, uint64_t *gap_ns);
/** To be sent by the engine with the queue; how many it takes. */
uint16_t san_engine_lend_tx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n);
/** Does this engine send for engine *from*? */
bool san_engine_sends_for(const struct san_engine *e, uint32_t from);
uint16_t san_engine_take_tx(const struct san_engine *e, uint32_t from, struct rte_mbuf **pkts,
			    uint16_t n);

/* ---- engine_local.c ---- */

/** Keep those of *n* packets that are for this port; those for the device stay, their number. */
uint16_t san_engine_local_tx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n);
/** What was kept. */
uint16_t san_engine_local_rx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n);

/* ---- engine_vlan.c: for a port in a VLAN; how many of *n* packets are left ---- */

uint16_t san_engine_vlan_tx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n);
uint16_t san_engine_vlan_rx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n);

/* ---- engine_driver_fd.c ---- */

/** Find the descriptors by which the kernel hands packets to the driver of *p*. */
void san_engine_driver_fd_find(struct san_engine_port *p);

/* ---- engine_idle.c ---- */

/** Resolve AUTO for this process's lcores. */
uint8_t san_engine_idle_choose(uint8_t policy);
const char *san_engine_idle_name(uint8_t policy);
/** What its sleeps need, if the port's lcores sleep. */
int san_engine_idle_init(struct san_engine *e, const char **why);
void san_engine_idle_fini(struct san_engine *e);
/** *fd* wakes it from now on, or not any more. */
int san_engine_idle_add(const struct san_engine *e, int fd);
void san_engine_idle_del(const struct san_engine *e, int fd);
/** A round found *work* to do. */
void san_engine_idle_after(struct san_engine *e, uint32_t work);
/** Completions were put: wake programs that wait for them. */
void san_engine_wake_waiters(struct san_engine *e);
/** The port is gone: nothing will come that they wait for. */
void san_engine_wake_all(struct san_engine *e);

/** Any thread: there is something for the lcore. */
static inline void
san_engine_wake(const struct san_engine *e)
{
	/* pairs with the fence in doze(): it finds what there is, or we find that it sleeps */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&e->bells->asleep, memory_order_relaxed) != 0)
		eventfd_write(e->wake_fd, 1);
}

/* ---- engine_port.c ---- */

/** Pool, configuration, queues, start; does not wait for the link. */
int san_engine_port_open(struct san_engine_port *p, const char **why);
/** Stop and close it; what it held goes back to the pool. */
void san_engine_port_shut(struct san_engine_port *p);
/** That, and the pool. */
void san_engine_port_close(struct san_engine_port *p);
/** Link speed; 0: the port does not tell. */
uint32_t san_engine_port_mbps(const struct san_engine_port *p);
bool san_engine_port_is_up(const struct san_engine_port *p);

/* ---- engine_capture.c ---- */

void san_engine_capture_pkts(struct san_engine *e, struct rte_mbuf **m, uint16_t n, bool tx);

/* ---- engine_show.c ---- */

/** A word for enum san_conn_state. */
const char *san_engine_conn_state(uint8_t state);

/* ---- engine_show_stream.c ---- */

/** The stream that *c* carries; NULL: it carries none. On its lcore. */
const struct san_stream *san_engine_stream_of(const struct san_engine *e,
					      const struct san_pdl_conn *c);
/** All of them. On their lcore. */
void san_engine_show_streams(struct san_engine *e, FILE *f);

/* ---- engine_telemetry.c ---- */

void san_engine_telemetry_add(struct san_engine_port *p);
/** On return nobody reads the engines any more. */
void san_engine_telemetry_del(struct san_engine_port *p);

#endif /* ENGINE_PRIV_H */
