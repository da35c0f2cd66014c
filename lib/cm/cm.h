/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Connection management of one lcore: REQ / COOKIE / REQ / REP / RTU, REJ, DREQ / DREP, RESET,
 * keep-alive (RT-1, RT-23, RT-24, RT-29; RULE-17).
 *
 * A peer that has not returned a cookie costs no memory, and gets no reply longer than its request.
 * Like every layer below the engine, cm reads no clock and sends nothing: the caller pops messages
 * to send, and events.
 */

#include <stdbool.h>
#include <stdint.h>

#include "pdl.h"
#include "wire.h"

/*
 * ---- cm_steer.c: source ports that bring packets to the queue of one lcore (RULE-13, SYS-1) ----
 *
 * Only the receiver knows how its port spreads packets, so it chooses the ports and the peer uses
 * them. The port computes the Toeplitz hash of addresses and ports; the low bits index its table of
 * queues.
 */

#define SAN_STEER_KEY_MAX   64 /**< bytes */
#define SAN_STEER_KEY_MIN   40 /**< for IPv6; IPv4 needs 28 fewer */
#define SAN_STEER_TABLE_MAX 1024

/** How a port spreads received packets. */
struct san_cm_steer {
	bool v4, v6; /**< the hash includes UDP ports over IPv4, IPv6 */
	_Alignas(uint32_t) uint8_t key[SAN_STEER_KEY_MAX];
	uint16_t table_size; /**< power of two */
	uint16_t table[SAN_STEER_TABLE_MAX];
};

/**
 * Find source ports that bring packets from *src* to *queue*, starting at the *first*th dynamic
 * port. Returns their number: 0 if no port does, or if the hash ignores ports.
 */
uint8_t san_cm_steer_udp_ports(const struct san_cm_steer *s, uint16_t queue,
			       const struct san_ip *src, const struct san_ip *dst,
			       uint16_t dst_port, uint32_t first,
			       uint16_t ports[SAN_WIRE_CM_PORTS]);

#define SAN_CM_SECRET       32 /**< bytes of cookie key */
#define SAN_CM_RETRY_MAX_NS (SAN_NS_PER_S / 2)

enum san_cm_state {
	SAN_CM_IDLE = 0,
	SAN_CM_RESOLVING,       /**< connecting: waits for the neighbour's MAC address */
	SAN_CM_REQ_SENT,        /**< connecting: REQ without cookie sent */
	SAN_CM_REQ_COOKIE_SENT, /**< connecting: REQ with cookie sent */
	SAN_CM_WAIT_ACCEPT,     /**< accepting: the request is with the ULP */
	SAN_CM_REP_SENT,        /**< accepting: waits for RTU or the first packet */
	SAN_CM_ESTABLISHED,
	SAN_CM_DRAINING,  /**< disconnect requested; waits until nothing is outstanding */
	SAN_CM_DREQ_SENT, /**< waits for DREP */
	SAN_CM_TIMEWAIT,  /**< answers repeated DREQs for a while */
	SAN_CM_STATE_MAX
};

/** Those of enum rtsan_event_type, and one that the application cannot tell from DISCONNECTED. */
enum san_cm_event_type {
	SAN_CM_EV_CONNECT_REQUEST = RTSAN_EV_CONNECT_REQUEST,
	SAN_CM_EV_ESTABLISHED = RTSAN_EV_ESTABLISHED,   /**< on both sides */
	SAN_CM_EV_REJECTED = RTSAN_EV_REJECTED,         /**< connecting side; the slot is freed */
	SAN_CM_EV_UNREACHABLE = RTSAN_EV_UNREACHABLE,   /**< likewise */
	SAN_CM_EV_DISCONNECTED = RTSAN_EV_DISCONNECTED, /**< not by us; reason */
	SAN_CM_EV_CLOSED,                               /**< our own disconnect is complete */
};

struct san_cm_event {
	uint8_t type;   /**< enum san_cm_event_type */
	uint8_t reason; /**< enum rtsan_reason */
	uint16_t slot;
	uint32_t listener; /**< CONNECT_REQUEST: cookie of the listener */
	uint64_t cookie;   /**< cookie of the connection, as given to connect or accept */
	struct san_ip peer;
	bool stream;  /**< CONNECT_REQUEST: for a stream */
	uint32_t uid; /**< CONNECT_REQUEST, ESTABLISHED: as the peer's host states it */
	uint16_t private_len;
	uint8_t private_data[SAN_WIRE_CM_PRIVATE];
};

/** Offer of one side; both offers together determine the connection. */
struct san_cm_param {
	bool ordered, relaxed; /**< the connecting side decides */
	bool ends;             /**< likewise: ordered, and ends on an error (RT-40) */
	bool stream;           /**< carries the session of a stream: on both sides or on neither */
	uint16_t pkey;
	uint16_t mtu;               /**< payload bytes per packet: the minimum of both counts */
	uint16_t req_win, data_win; /**< our receive windows, packets, powers of two */
	uint16_t first_win;         /**< >= 2 (RULE-7) */
	uint16_t max_txn;           /**< N: the minimum of both counts */
	uint16_t msg_limit;         /**< PCB-3, local */
	uint16_t rnr_ms;
	uint16_t keepalive_ms; /**< silence before a PROBE is sent; 0 = never */
	uint32_t uid;          /**< user to state to the peer; RTSAN_UID_NONE: none */
	uint16_t private_len;
	uint8_t private_data[SAN_WIRE_CM_PRIVATE];
};

/** How the silence of a peer on an open connection is detected. */
struct san_cm_keepalive {
	uint32_t idle_ms;  /**< silence before the first PROBE; 0: never */
	uint32_t every_ms; /**< between two PROBEs */
	uint8_t probes;    /**< unanswered PROBEs until the peer counts as dead; 0: never */
	bool is_lazy;      /**< no PROBE while packets are unacknowledged: they have timeouts */
};

struct san_cm_conf {
	uint32_t max_conns;
	uint16_t max_listeners;
	uint8_t max_retries;      /**< of one CM message */
	uint8_t keepalive_probes; /**< initial san_cm_keepalive.probes */
	uint64_t retry_ns;        /**< doubles with every retry, up to SAN_CM_RETRY_MAX_NS */
	uint64_t cookie_slot_ns;  /**< a cookie is valid in this slot and the next */
	uint64_t drain_ns;        /**< longest time that a disconnect waits without progress */
	uint64_t timewait_ns;
	uint32_t rate_per_ms; /**< stateless answers (COOKIE, REJ, RESET): see inet_rate.h */
	uint32_t features;    /**< enum san_wire_cm_feature: supported and wanted; no STREAM */
	uint8_t secret[SAN_CM_SECRET];
	uint16_t ports[SAN_WIRE_CM_PORTS]; /**< source ports that reach this lcore (RULE-13) */
	uint16_t nb_ports;
	const struct san_cm_steer *steer; /**< first choice: ports by this, for *queue*; or NULL */
	uint16_t queue;
	struct san_wire_path path; /**< template: our MAC, dst_port, dscp */
	struct san_mem *mem;       /**< holds all state of the layer; NULL: the heap */
};

/** Negotiated parameters, valid from ESTABLISHED (for tl and pdl). */
struct san_cm_agreed {
	struct san_pdl_peer pdl;
	uint16_t rx_req_win, rx_data_win;
	uint32_t first_rsn_tx, first_rsn_rx;
	uint16_t n_tx, n_rx;
	uint16_t rnr_tx_ms, rnr_rx_ms;
	uint32_t features; /**< enum san_wire_cm_feature: of both sides */
};

struct san_cm_conn; /* cm_priv.h */
struct san_cm;      /* cm_priv.h */

/** Set defaults. The caller sets secret, max_conns, path and ports. */
void san_cm_conf_default(struct san_cm_conf *conf);
/**
 * -EINVAL: a value is out of range, max_conns differs from that of pdl, or no secret is set;
 * -ENOMEM.
 */
int san_cm_create(const struct san_cm_conf *conf, struct san_pdl *pdl, struct san_cm **out);
void san_cm_destroy(struct san_cm *cm);
/**
 * Resume the state that lay parked in conf->mem: steering and our MAC address are those of *conf*.
 */
void san_cm_resume(struct san_cm *cm, const struct san_cm_conf *conf);

/** Set the MAC address of the port. */
void san_cm_set_mac(struct san_cm *cm, const struct rte_ether_addr *mac);

/**
 * Listen on all of our addresses. *backlog*: requests that may wait for accept. -EADDRINUSE,
 * -ENOSPC.
 */
int san_cm_listen(struct san_cm *cm, uint64_t service, uint16_t pkey, uint16_t backlog,
		  uint32_t cookie);
/** Stop listening. Requests that wait for accept are rejected. */
void san_cm_listen_end(struct san_cm *cm, uint64_t service, uint16_t pkey);

/**
 * Start connecting. Takes a slot; an event reports the outcome. -ENOSPC: no slot is free; -EINVAL:
 * a parameter or an address is out of range, or a stream on a connection that is not strictly
 * ordered.
 */
int san_cm_fsm_connect(struct san_cm *cm, const struct san_ip *local, const struct san_ip *peer,
		       uint64_t service, const struct san_cm_param *param, uint64_t cookie,
		       uint64_t now_ns, uint16_t *slot);
/**
 * Answer a CONNECT_REQUEST. 0, or -ENOENT: the request no longer exists. After any other error it
 * still does: -EINVAL: a parameter is out of range; -EPROTOTYPE: one of the two sides is for a
 * stream, and the other is not.
 */
int san_cm_fsm_accept_peer(struct san_cm *cm, uint16_t slot, const struct san_cm_param *param,
			   uint64_t cookie, uint64_t now_ns);
int san_cm_fsm_reject(struct san_cm *cm, uint16_t slot, const void *private_data,
		      uint16_t private_len, uint64_t now_ns);

/**
 * A request that moves to the cm of another lcore, to which the chosen queue pair belongs. It is
 * moved out here and moved in there with the parameters of the acceptor; then the first cm gets the
 * result. Meanwhile it can be neither accepted nor rejected.
 */
struct san_cm_moved {
	struct san_wire_path path;
	uint16_t pkey;
	uint8_t flags; /**< enum san_wire_cm_flag */
	uint32_t xid, peer_uid;
	struct san_cm_agreed offer; /**< offer of the peer */
};
/** -ENOENT: the request no longer exists, or is moving already. */
int san_cm_move_out(struct san_cm *cm, uint16_t slot, struct san_cm_moved *out, uint64_t now_ns);
/** As san_cm_fsm_accept_peer(); -ENOSPC: no slot is free. */
int san_cm_move_in(struct san_cm *cm, const struct san_cm_moved *in,
		   const struct san_cm_param *param, uint64_t cookie, uint64_t now_ns,
		   uint16_t *slot);
/**
 * Conclude a move. If *adopted*, a ghost stays, for copies of the REQ; otherwise the request stays
 * here.
 */
void san_cm_move_done(struct san_cm *cm, uint16_t slot, bool adopted, uint64_t now_ns);

/**
 * Orderly close: drain, DREQ, DREP; then EV_CLOSED. *hard*: do not drain. -ENOTCONN: not connected.
 */
int san_cm_fsm_disconnect(struct san_cm *cm, uint16_t slot, bool hard, uint64_t now_ns);

/** The core reports that a DRAINING connection has drained. */
void san_cm_fsm_drained(struct san_cm *cm, uint16_t slot, uint64_t now_ns);
/**
 * The core reports that the connection failed (RT-7). From REP_SENT to DREQ_SENT it ends at once
 * with DISCONNECTED(reason), and a DREQ is sent to the peer.
 */
void san_cm_fsm_failed(struct san_cm *cm, uint16_t slot, uint8_t reason, uint64_t now_ns);
/** Order requested by the connecting side; in WAIT_ACCEPT only. */
bool san_cm_is_ordered(const struct san_cm *cm, uint16_t slot);
enum san_cm_state san_cm_state(const struct san_cm *cm, uint16_t slot);

/**
 * Process one CM packet that san_wire_parse() accepted. Never keeps *m*. The caller counts the
 * result.
 */
enum san_drop san_cm_rx(struct san_cm *cm, const struct rte_mbuf *m, const struct san_wire_pkt *p,
			uint64_t now_ns);
/**
 * A packet arrived for a connection in SETUP. pdl returned SAN_DROP_STATE, so address, tag and
 * P_Key are right; a CNP has no tag and does not count. In REP_SENT the packet replaces a lost RTU.
 * True: the connection is open now, check the packet again.
 */
bool san_cm_rx_implicit_rtu(struct san_cm *cm, uint16_t slot, uint64_t now_ns);
/** Answer a packet for an unknown CID or with a wrong tag by a rate-limited RESET. */
void san_cm_rx_answer_reset(struct san_cm *cm, const struct san_wire_pkt *p, uint64_t now_ns);

/** Negotiated parameters. Valid while the other layers process ESTABLISHED. NULL: not open. */
const struct san_cm_agreed *san_cm_agreed(const struct san_cm *cm, uint16_t slot);

/** True if san_cm_tx_next() has a message. */
bool san_cm_tx_pending(const struct san_cm *cm);
/**
 * Take the next message to send. Its path has the peer's IP address, and its MAC address if known,
 * else zero. In that case the caller resolves it, calls san_cm_fsm_resolved(), and continues with
 * the next message; this one is returned again later.
 */
bool san_cm_tx_next(struct san_cm *cm, struct san_wire_path *path, struct san_wire_pkt *p,
		    struct san_wire_cm *msg, uint64_t now_ns);
/**
 * The neighbour answered: set the MAC address in connections to *ip* that lack one, send what waits
 * for it.
 */
void san_cm_fsm_resolved(struct san_cm *cm, const struct san_ip *ip,
			 const struct rte_ether_addr *mac, uint64_t now_ns);
/** A change that the other layers must process at once. */
struct san_cm_change {
	uint8_t type;   /**< enum san_cm_event_type; CONNECT_REQUEST is none */
	uint8_t reason; /**< enum rtsan_reason */
	uint16_t slot;
	uint64_t cookie; /**< as given to connect or accept */
};
/** True if there is a change. */
bool san_cm_has_change(const struct san_cm *cm);
/** Take the next change; false: none. Call it before anything else is sent. */
bool san_cm_change_next(struct san_cm *cm, struct san_cm_change *change);
/**
 * Take the next event for the owner; false: none. Events are stored in the connection's record, so
 * there is always room. The slot is not reused before its last event was taken.
 */
bool san_cm_event_next(struct san_cm *cm, struct san_cm_event *ev);
/**
 * Set how the silence of the peer on connection *slot* is detected; initially san_cm_param and conf
 * decide. No effect if the connection is not open.
 */
void san_cm_keepalive_set(struct san_cm *cm, uint16_t slot, const struct san_cm_keepalive *k,
			  uint64_t now_ns);
/** The connection's timer fired: retries, keep-alive, time-wait, drain limit. */
void san_cm_fsm_on_timer(struct san_cm *cm, uint16_t slot, uint64_t now_ns);
/**
 * The core has released the connection in every other layer: free it and its CID. Called after the
 * changes, or events, DISCONNECTED and CLOSED, and only then.
 */
void san_cm_release(struct san_cm *cm, uint16_t slot, uint64_t now_ns);
void san_cm_check(const struct san_cm *cm);

/** Drops that no call returned, by enum san_drop: answers above the rate limit. */
const uint64_t *san_cm_drops(const struct san_cm *cm);
