/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file The engine's state, shared by the files of this directory. */

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_ring.h>

#include "san_counters.h"
#include "san_prng.h"
#include "san_spin.h"
#include "engine.h"
#include "engine_clock.h"

#define ENGINE_BURST      SAN_CORE_BURST
#define ENGINE_BURST_LONG 8 /**< for frames longer than ENGINE_SHORT */
#define ENGINE_SHORT      4096
#define ENGINE_OUT_MAX    (2 * ENGINE_BURST)   /* impairment may return more than it took */
#define ENGINE_LOCAL      (4 * ENGINE_OUT_MAX) /* packets to ourselves in one round */
#define ENGINE_CALLS      64
#define ENGINE_EVENTS     256
#define ENGINE_LANES      1024 /**< most packets handed over that wait for an lcore */

/**
 * How long an lcore works and how long its rounds take, from the clock that each round reads
 * anyway. The duration of a round is known when the next one begins. Only rounds that found work
 * count; sleep and empty polling do not. (SYS-1)
 */
struct san_engine_busy {
	uint64_t since_ns; /**< when counting began */
	uint64_t round_ns; /**< when this round began */
	uint64_t busy_ns;
	bool worked; /**< this round, or the last one, found work */
	uint64_t rounds[SAN_ENGINE_HIST];
};

static inline uint32_t
san_engine_busy_bucket(uint64_t ns)
{
	uint32_t log2 = 63 - (uint32_t)__builtin_clzll(ns | 1);

	return log2 < SAN_ENGINE_HIST ? log2 : SAN_ENGINE_HIST - 1;
}

/** Call at the beginning of a round, and set *worked* at its end. */
static inline void
san_engine_busy_begin(struct san_engine_busy *b, uint64_t now_ns)
{
	uint64_t took_ns = now_ns - b->round_ns;

	b->round_ns = now_ns;
	if (!b->worked)
		return;
	b->busy_ns += took_ns;
	b->rounds[san_engine_busy_bucket(took_ns)]++;
}

/**
 * Bursts and EAL's interrupt thread take turns; see engine_gate.c. A gate belongs to the lcore of
 * its port; init and fini run in one thread at a time.
 */
struct san_engine_gate {
	bool used;           /**< otherwise bursts may always run */
	_Atomic bool held;   /**< the lcore relies on the thread being held */
	uint64_t since_ns;   /**< since when; without a link: since when other gates hold it */
	uint64_t traffic_ns; /**< when packets arrived last; at least since_ns */
};

struct san_engine_impair_stats {
	uint64_t nb_dropped;
	uint64_t nb_duplicated;
	uint64_t nb_reordered;
	uint64_t nb_corrupted;
	uint64_t nb_marked;
	uint64_t nb_overflow; /**< dropped because too many packets were delayed */
};

/** A delayed packet. */
struct san_engine_impair_held {
	TAILQ_ENTRY(san_engine_impair_held) link;
	uint64_t release_ns;
	struct rte_mbuf *m;
};
TAILQ_HEAD(san_engine_impair_line, san_engine_impair_held);

struct san_engine_impair {
	struct san_engine_impair_conf conf;
	struct san_prng prng;
	bool on;
	struct san_engine_impair_held *places;
	struct san_engine_impair_line held; /**< those due first, first; at equal times in order */
	struct san_engine_impair_line free;
	struct san_engine_impair_stats stats;
};

/** The link of a memif client; see engine_memif.c. */
struct san_engine_memif {
	bool asks; /**< otherwise the rest is unused */
	uint16_t port_id;
	bool is_started;  /**< state of the driver: without a server the port does not start */
	bool is_lost;     /**< the loss was reported */
	uint32_t wait_us; /**< until the next check, while there is no link */
	int fd;           /**< descriptor of the request in progress; -1: unknown */
	uint64_t socket;  /**< its inode, because the number may be reused */
};

struct san_view_capture; /* view_capture.c */

/** Packets handed over from one lcore to another. */
struct san_engine_lane {
	struct rte_ring *ring;
	_Atomic uint64_t gap_ns; /**< time for which the port was not polled before they arrived */
};

enum san_engine_image_state {
	SAN_IMAGE_IN_USE = 0, /**< or its process died while using it */
	SAN_IMAGE_PARKED,
	SAN_IMAGE_CLAIMED, /**< by a process that has not changed it yet */
};

/** State that outlives the process, if conf.core.mem does. It is the root there. */
struct san_engine_image {
	_Atomic uint32_t state; /**< enum san_engine_image_state */
	uint32_t nb_engines;
	struct san_engine *engines[SAN_ENGINE_LCORES]; /**< NULL: not created yet */
	struct san_engine_clock clock;                 /**< calibrated once, for all engines */
	struct san_tl_lend lend;
};

/** States of the kernel's device behind a port */
#define SAN_ENGINE_DEVS(X)                                         \
	X(NONE, none, "There is none, or it was not checked yet.") \
	X(UP, up, "It is up.")                                     \
	X(DOWN, down, "It is down.")                               \
	X(REMOVED, deleted, "It was deleted; a new one with the same name does not replace it.")

#define SAN_ENGINE_DEVS_MEMBER(state, name, help) SAN_ENGINE_DEV_##state,

enum san_engine_dev {
	SAN_ENGINE_DEVS(SAN_ENGINE_DEVS_MEMBER)
};

/** The device as the engines need it, and their shared state. */
struct san_engine_port {
	uint16_t id;
	uint16_t declared; /**< MTU set on the port: some ports carry more than they allow to set */
	char name[RTE_ETH_NAME_MAX_LEN];
	/** if_index: of the kernel's device behind the port, or 0 */
	struct rte_eth_dev_info info;
	_Atomic uint64_t mac; /**< the current one, in the first six bytes; see san_engine_mac() */
	int mac_fd;           /**< to ask the kernel for changes; -1: it does not change */
	struct {
		_Atomic uint32_t state; /**< enum san_engine_dev */
		uint32_t mtu;           /**< at the last check; 0: not checked yet */
		char name[16];          /**< at the last check */
	} dev;
	/* features, as probed: used where present, never required */
	uint64_t rx_offloads, tx_offloads; /**< in use */
	/** *steer* describes how the port spreads packets over its queues */
	bool is_steered;
	struct san_cm_steer steer;
	bool started;
	_Atomic bool shut;
	_Atomic bool lost;
	bool launched;          /**< the engines run on lcores */
	uint32_t nb_driver_fds; /**< by which the kernel hands packets to the driver */
	int driver_fds[SAN_ENGINE_LCORES];
	uint32_t whole_v4; /**< see struct san_engine_mtu */
	bool is_shared;    /**< the kernel has our address on the device, and answers for us */
	bool is_guarded;   /**< see san_engine_kernel_guard() */
	struct san_engine_gate gate;
	struct san_engine_memif memif;
	/**
	 * Values in use, also where the caller left the choice. Engine i has queue i of each kind;
	 * further engines have none. With *resumes* it continues, or will continue, a parked port.
	 */
	struct san_engine_conf conf;
	struct san_engine_image *image; /**< NULL: the port has no cores */
	struct rte_mempool *pool;
	struct san_view_capture *capture;
	_Atomic bool stop;
	uint32_t next_event; /**< engine to be checked first */
	int event_fd;
	_Atomic uint32_t event_armed; /**< a thread sleeps until there is an event */
	uint32_t nb_engines;
	struct san_engine *engines[SAN_ENGINE_LCORES];
	/** Received packets, [from][to]; packets to send, [from], for the queue that it uses. */
	struct san_engine_lane rx_lanes[SAN_ENGINE_LCORES][SAN_ENGINE_LCORES];
	struct rte_ring *tx_lanes[SAN_ENGINE_LCORES];
};

/** Progress of the end of a queue pair during san_engine_drain(). */
enum san_engine_qp_end {
	SAN_QP_OPEN = 0,
	SAN_QP_ENDING, /**< work posted before continues, then the connection ends */
	SAN_QP_ENDED,  /**< there is no connection; work posted later is flushed */
};

struct san_engine_qp {
	struct san_wq_cons wq; /**< wq.wq is NULL: free, or deleted */
	uint32_t qpn;
	uint16_t app;      /**< its owner */
	bool again;        /**< listed in *again*: entries are left in its rings */
	bool is_stream;    /**< see san_core_stream_create() */
	bool lingers;      /**< see struct san_engine_qp_conf */
	uint8_t end;       /**< enum san_engine_qp_end */
	uint32_t sq_last;  /**< ENDING: tail of its send queue beyond which nothing is taken */
	const char *fault; /**< what was invalid in its rings, as text; NULL: nothing */
};

/** An application. Number 0 is the program that contains the engine, if it uses queue pairs. */
struct san_engine_app {
	struct san_doorbells *doorbells; /**< NULL: no application */
	/** the user that runs it; SAN_CORE_ALONE: this program itself */
	uint32_t user;
	uint32_t cursor;
	uint32_t left;               /**< entries that this round may still take */
	int wake_fd;                 /**< or -1; never read, because each write wakes (EPOLLET) */
	uint32_t nb_faults;          /**< queue pairs ended for invalid entries */
	struct san_ulp_traffic past; /**< traffic of its deleted queue pairs */
};

struct san_engine_stats {
	_Atomic uint64_t nb_loops; /**< rounds; other threads watch whether it grows */
	SAN_ENGINE_COUNTERS(SAN_COUNTER_MEMBER)
};

/** The engine of one lcore. */
struct san_engine {
	/* used in every round */
	struct san_core *core;
	struct san_engine_clock clock;
	struct san_engine_port *port;
	uint16_t port_id;
	uint16_t id;    /**< number among the engines of the port, and of its queue */
	bool has_queue; /**< otherwise another engine receives and sends for it */
	uint64_t mac;   /**< address of the port that the core uses */
	bool is_alone;  /**< the port has no other engine */
	uint32_t turn;  /**< lcore that goes first in this round */
	/* sizes of the next bursts */
	uint16_t rx_burst;
	uint16_t tx_burst;
	uint16_t nb_backlog;
	uint16_t nb_local;
	bool capturing;
	bool may_burst; /**< in this round */
	bool launched;
	bool awake;                      /**< *core* is in use, not parked */
	struct san_doorbells *doorbells; /**< of application 0 */
	uint32_t nb_apps;                /**< one more than the highest number in use */
	struct rte_ring *calls;
	struct san_engine_qp *qps;
	uint32_t *again; /**< ring of queue pairs to visit again, each at most once */
	uint32_t again_head, nb_again;
	uint32_t idle_loops;      /**< in a row */
	bool dozes;               /**< its doorbells say that it sleeps, so that others wake it */
	bool hears;               /**< a packet ends its sleep */
	struct san_spin spin;     /**< time to yield before it sleeps */
	uint64_t idle_ns;         /**< since when it is idle */
	uint64_t nb_wcs_notified; /**< value of nb_wcs at the last yield to programs */
	int epoll;                /**< of the events that end a sleep; -1: it never sleeps */
	int wake_fd;
	uint64_t now_ns;
	uint64_t slept_ns;   /**< longest sleep since then that was intended */
	uint64_t rx_ns;      /* when the port was polled last */
	uint64_t backlog_ns; /**< when it was sent from last */
	uint64_t link_ns;    /**< when the link was queried last */
	uint64_t speed_ns;   /**< when the unknown speed was queried last */
	struct san_engine_stats stats;
	struct san_engine_busy busy;
	uint64_t traced_rto; /**< timeouts already traced */
	uint64_t drops[SAN_DROP_MAX];
	struct san_engine_app apps[SAN_ENGINE_APPS];
	struct rte_mbuf *backlog[ENGINE_OUT_MAX];
	struct rte_mbuf *local[ENGINE_LOCAL]; /**< sent to ourselves, not yet received */
	struct san_engine_impair impair_tx, impair_rx;
	/* connection events for the application */
	struct san_spsc event_q;
	struct san_core_event events[ENGINE_EVENTS];
	/* used rarely */
	struct san_core_conf conf; /**< of this lcore */
	struct rte_hash *cam;
	struct san_prng secret;
};

/* ---- engine_lcore.c ---- */

/** Create the engine of lcore number *id* of the port; it does not run yet. */
int san_engine_lcore_create(struct san_engine_port *p, uint32_t id, struct san_engine **out,
			    const char **why);
/** Free the engine, after its lcore has stopped and before the port's pool is freed. */
void san_engine_lcore_destroy(struct san_engine *e);
/** The same, but park its core and keep its state for the next process. */
void san_engine_lcore_rest(struct san_engine *e);

/** There is an event: wake the thread that sleeps for it, if any (AFC-19). */
static inline void
san_engine_event_wake(struct san_engine_port *p)
{
	/* pairs with the fence in san_engine_event_arm(), after which the thread checks again */
	if (san_spsc_must_wake(&p->event_armed))
		eventfd_write(p->event_fd, 1);
}

/* ---- engine_loop.c ---- */

/** Run one round. Returns packets and requests handled. */
uint32_t san_engine_loop_once(struct san_engine *e);
int san_engine_loop_main(void *arg);

/* ---- engine_app.c ---- */

/** Number of doorbells of an application: for queue pairs, then for sockets. */
static inline uint32_t
san_engine_nb_doorbells(const struct san_engine *e)
{
	return e->conf.ulp.max_qps + e->conf.max_socks;
}

/** At the start of a round: reset the number of entries that may be taken. */
void san_engine_app_refill(struct san_engine *e);
/** Take entries from the rings of a queue pair of another process. False: some are left. */
bool san_engine_app_drain(struct san_engine *e, struct san_engine_qp *q);

/*
 * ---- engine_impair.c ----
 *
 * A stage before transmission and one after reception. It is not an ethdev callback, because when a
 * TX callback drops packets the caller frees them a second time.
 */

/** Initialise, switched off, with room for *max_held* delayed packets. -ENOMEM. */
int san_engine_impair_init(struct san_engine_impair *im, uint32_t max_held);
void san_engine_impair_fini(struct san_engine_impair *im);
/** Set the faults. NULL: off; delayed packets still come out in time. -EINVAL. */
int san_engine_impair_set(struct san_engine_impair *im, const struct san_engine_impair_conf *conf);

/** Whether san_engine_impair_run() must be called. */
static inline bool
san_engine_impair_is_on(const struct san_engine_impair *im)
{
	return im->on || !TAILQ_EMPTY(&im->held);
}

/**
 * Take *n* packets in, and return those that are due, at most *max*. The stage owns packets that go
 * in, the caller those that come out.
 */
uint16_t san_engine_impair_run(struct san_engine_impair *im, struct rte_mbuf **in, uint16_t n,
			       struct rte_mbuf **out, uint16_t max, uint64_t now_ns);
/** When the next packet is due; SAN_TIME_NEVER: none is delayed. */
uint64_t san_engine_impair_deadline_ns(const struct san_engine_impair *im);

/* ---- engine_mac.c ---- */

/** "up", "down", "deleted", or "none". */
const char *san_engine_dev_state(const struct san_engine_port *p);
/** Whether the MAC address belongs to the port alone, not to a device of the kernel. */
bool san_engine_mac_is_own(const struct san_engine_port *p);
void san_engine_mac_set(struct san_engine_port *p, const struct rte_ether_addr *mac);
/** Follow changes of the address in the kernel, until san_engine_mac_unwatch(). */
void san_engine_mac_watch(struct san_engine_port *p);
void san_engine_mac_unwatch(struct san_engine_port *p);
/** The address has changed: update the core. */
void san_engine_mac_follow(struct san_engine *e);

/* ---- engine_mtu.c: what a port really carries (RT-31) ---- */

/** Limits of a port, in bytes of IP. */
struct san_engine_mtu {
	uint32_t most;   /**< what its buffers hold; UINT32_MAX: unknown */
	uint32_t now;    /**< MTU of the kernel's device behind it, or of the port */
	bool by_buffers; /**< only the buffers count: memif */
	/**
	 * Longest IPv4 packet that arrives reassembled: af_packet lets the kernel reassemble
	 * fragments, and cuts off the rest. UINT32_MAX: fragments arrive as they are.
	 */
	uint32_t whole_v4;
};

/** Ask driver, arguments and kernel. *header*: bytes of a frame in front of the IP packet. */
void san_engine_mtu_ask(uint16_t port_id, const struct rte_eth_dev_info *info, uint32_t header,
			struct san_engine_mtu *m);
/**
 * Choose the MTU that the operator has *wanted*; 0: what the port has, up to 9000. 0, or -EMSGSIZE
 * with the cause in *why*: the buffers hold less, or it is below *least*, which addresses need.
 */
int san_engine_mtu_choose(const struct san_engine_mtu *m, uint16_t wanted, uint16_t least,
			  uint16_t *mtu, const char **why);
/** MTU of the kernel's device with this index; 0: no device, or an error. */
uint32_t san_engine_mtu_of_kernel(uint32_t if_index);
/** Value of "key=N" in a device's arguments; *otherwise* if it is missing. */
uint32_t san_engine_mtu_arg(const char *args, const char *key, uint32_t otherwise);

/* ---- engine_memif.c: for the thread that opens and closes the port ---- */

/** Whether the port is a memif client, from its arguments. */
bool san_engine_memif_is_client(const struct rte_eth_dev_info *info);
/**
 * Start the port and request its link; with *asks* false only start it. If there is no server, try
 * again for *timeout_ms*. Returns the result of rte_eth_dev_start(). After success, stop *m*
 * before the port.
 */
int san_engine_memif_start(struct san_engine_memif *m, uint16_t port_id, bool asks,
			   uint32_t timeout_ms);
void san_engine_memif_stop(struct san_engine_memif *m);

/* ---- engine_kernel.c ---- */

/** Whether the kernel has an address of the port on the device behind it. */
bool san_engine_kernel_shares(const struct san_engine_port *p);
/** Keep the kernel from answering the transport's packets, of which it gets copies. */
int san_engine_kernel_guard(struct san_engine_port *p, const char **why);
/** Undo it. A parked port (*parks*) keeps the socket for the process that resumes it. */
void san_engine_kernel_unguard(struct san_engine_port *p, bool parks);

/* ---- engine_handover.c ---- */

/** Create lanes between the engines of *p*, whose queues are set. -ENOMEM. */
int san_engine_handover_create(struct san_engine_port *p);
void san_engine_handover_destroy(struct san_engine_port *p);
/** Hand *n* received packets to their owners. Returns how many stay with this engine. */
uint16_t san_engine_handover(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n);
/** Get packets that other lcores received for this one; *gap_ns*: see san_pdl_rtx_rx_gap(). */
uint16_t san_engine_handover_take_rx(struct san_engine *e, uint32_t from, struct rte_mbuf **pkts,
				     uint16_t n, uint64_t *gap_ns);
/** Hand packets to the engine with the queue. Returns how many it takes. */
uint16_t san_engine_handover_lend_tx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n);
/** Get packets of engine *from*; none, unless it has no queue and this one sends for it. */
uint16_t san_engine_handover_take_tx(const struct san_engine *e, uint32_t from,
				     struct rte_mbuf **pkts, uint16_t n);

/* ---- engine_gate.c ---- */

/** Set up; *used*: the driver needs it. */
void san_engine_gate_init(struct san_engine_gate *g, bool used);
/** Release the thread; for good, if this was the last gate. */
void san_engine_gate_fini(struct san_engine_gate *g);
/** Whether bursts may run in this round. Once per round; *is_up*: the port has a link. */
bool san_engine_gate_pass(struct san_engine_gate *g, bool is_up, uint64_t now_ns);

/** Packets have arrived, so the peer is alive. */
static inline void
san_engine_gate_traffic(struct san_engine_gate *g, uint64_t now_ns)
{
	if (g->used) /* otherwise every lcore would write this word */
		g->traffic_ns = now_ns;
}

/* ---- engine_idle.c ---- */

/** Resolve AUTO for this process's lcores. */
uint8_t san_engine_idle_choose(uint8_t policy);
/** Create what sleeping needs, if the port's lcores sleep. */
int san_engine_idle_init(struct san_engine *e, const char **why);
/** Let *fd* wake the lcore, or stop that. */
int san_engine_idle_add(const struct san_engine *e, int fd);
/** After a round that found *work*: yield, pause or sleep, by the policy. */
void san_engine_idle_after(struct san_engine *e, uint32_t work);
/** There are new completions: wake the programs that wait for them. */
void san_engine_idle_wake_waiters(struct san_engine *e);
/** Wake the threads that wait in the kernel for sockets with news. */
void san_engine_idle_wake_socks(struct san_engine *e);

/** There is work for the lcore. Any thread. */
static inline void
san_engine_wake(const struct san_engine *e)
{
	/* pairs with the fence in set_dozing(): it finds the work, or this finds that it sleeps */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&e->doorbells->asleep, memory_order_relaxed) != 0)
		eventfd_write(e->wake_fd, 1);
}

/* ---- engine_port.c ---- */

/** Create the pool, configure and start the port. Only a memif client waits for its link. */
int san_engine_port_open(struct san_engine_port *p, const char **why);
/** Stop and close the port; its buffers return to the pool. */
void san_engine_port_shut(struct san_engine_port *p);
/** The same, and free the pool. */
void san_engine_port_close(struct san_engine_port *p);
/** Link speed; 0: unknown. */
uint32_t san_engine_port_mbps(const struct san_engine_port *p);
bool san_engine_port_is_up(const struct san_engine_port *p);
