/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_PRIV_H
#define ENGINE_PRIV_H

/**
 * @file
 * The engine's state, shared by the files of this folder.
 */

#include <stdatomic.h>

#include <rte_ethdev.h>
#include <rte_ring.h>

#include "engine.h"
#include "engine_clock.h"
#include "engine_gate.h"

#define ENGINE_BURST    SAN_CORE_BURST
#define ENGINE_OUT_MAX  (2 * ENGINE_BURST) /* the impairment stage may give more than it got */
#define ENGINE_CALLS    64
#define ENGINE_EVENTS   256
#define ENGINE_MAC_TEXT 18

struct san_engine_capture; /* engine_capture.c */

/** What the port can do, as probed; used where present, never required. */
struct san_engine_port {
	uint16_t id;
	uint16_t mtu;      /**< of IP, as agreed with the operator */
	uint16_t declared; /**< as the port knows it: some refuse to be told, but carry it */
	uint16_t nb_rxd, nb_txd;
	char name[RTE_ETH_NAME_MAX_LEN];
	const char *driver;
	struct rte_ether_addr mac;
	uint64_t rx_offloads, tx_offloads; /**< in use */
	uint64_t rx_capa, tx_capa;         /**< offered */
	uint16_t reta_size;
	uint64_t rss_capa;
	bool started;
	_Atomic bool shut;
};

struct san_engine_qp {
	struct san_wq *wq; /**< NULL: free, or gone */
	uint32_t qpn;
	bool again; /**< listed: something is left in its rings */
};

struct san_engine_stats {
	uint64_t nb_loops;
	uint64_t nb_idle_loops;
	uint64_t nb_rx, nb_tx;
	uint64_t nb_backlogged; /**< packets that the port did not take at once */
	uint64_t nb_bells;
	uint64_t nb_calls;
	uint64_t nb_sleeps;
};

struct san_engine {
	/* every loop */
	struct san_core *core;
	struct san_engine_clock clock;
	uint16_t port_id;
	uint16_t nb_backlog;
	bool capturing;
	bool may_burst; /**< this round */
	_Atomic bool gone;
	struct rte_ring *bells; /**< indices of queue pairs with new work */
	struct rte_ring *calls;
	struct san_engine_qp *qps;
	uint32_t *again; /**< queue pairs whose rings were not emptied */
	uint32_t nb_again;
	uint32_t idle_loops; /**< in a row */
	uint64_t now_ns;
	uint64_t rx_ns;      /* when the port was looked at last */
	uint64_t backlog_ns; /**< when it last moved */
	uint64_t link_ns;    /**< when the link was last asked for */
	uint64_t speed_ns;   /**< when its speed was, while it had none */
	struct san_engine_stats stats;
	uint64_t drops[SAN_DROP_MAX];
	struct san_engine_gate gate;
	struct rte_mbuf *backlog[ENGINE_OUT_MAX];
	struct san_engine_impair impair_tx, impair_rx;
	/* connection events on their way to the application */
	struct san_spsc event_q;
	struct san_core_event events[ENGINE_EVENTS];
	/* rarely */
	struct san_engine_conf conf;
	struct san_engine_port port;
	struct rte_mempool *pool;
	struct rte_hash *cam;
	struct san_engine_capture *capture;
	struct san_prng secret;
	uint8_t idle; /**< enum san_engine_idle_policy, not AUTO */
	_Atomic bool stop;
	bool launched;
};

/* ---- engine_loop.c ---- */

/** One round: packets and requests handled. */
uint32_t san_engine_loop_once(struct san_engine *e);
/** Queue pair *qp* goes: its rings are not looked at any more, its bell is taken down. */
void san_engine_loop_forget(struct san_engine *e, uint32_t qp);
/** The lcore's function. */
int san_engine_loop_main(void *arg);

/* ---- engine_idle.c ---- */

/** Resolve AUTO for this process's lcores. */
uint8_t san_engine_idle_choose(uint8_t policy);
const char *san_engine_idle_name(uint8_t policy);
/** A round found *work* to do. */
void san_engine_idle_after(struct san_engine *e, uint32_t work);

/* ---- engine_port.c ---- */

/** Pool, configuration, queues, start; does not wait for the link. */
int san_engine_port_open(struct san_engine *e, const char **why);
/** Stop and close it; what it held goes back to the pool. */
void san_engine_port_shut(struct san_engine *e);
/** That, and the pool. */
void san_engine_port_close(struct san_engine *e);
/** Link speed; 0: the port does not tell. */
uint32_t san_engine_port_mbps(const struct san_engine *e);
bool san_engine_port_is_up(const struct san_engine *e);

/* ---- engine_capture.c ---- */

void san_engine_capture_pkts(struct san_engine *e, struct rte_mbuf **m, uint16_t n, bool tx);

/* ---- engine_telemetry.c ---- */

void san_engine_telemetry_add(struct san_engine *e);
/** On return nobody reads the engine any more. */
void san_engine_telemetry_del(struct san_engine *e);

#endif /* ENGINE_PRIV_H */
