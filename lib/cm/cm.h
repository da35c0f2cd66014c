/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_H
#define CM_H

/**
 * @file
 * Connection management of one lcore: REQ / COOKIE / REQ / REP / RTU, REJ,
 * DREQ / DREP, RESET, keep-alive (RT-1, RT-23, RT-24, RT-29; design, rule 17).
 *
 * A peer that has not returned a cookie costs no memory, and gets no reply
 * longer than its request. Like everything below the engine it reads no clock
 * and sends nothing: messages to send are popped, events are popped.
 */

#include <stdbool.h>
#include <stdint.h>

#include "cm_steer.h"
#include "pdl.h"
#include "wire.h"

#define SAN_CM_SECRET       32 /**< bytes of cookie key */
#define SAN_CM_RETRY_MAX_NS (SAN_NS_PER_S / 2)

enum san_cm_state {
	SAN_CM_IDLE = 0,
	SAN_CM_RESOLVING,       /**< connecting: waits for the neighbour's MAC address */
	SAN_CM_REQ_SENT,        /**< connecting: REQ without cookie sent */
	SAN_CM_REQ_COOKIE_SENT, /**< connecting: REQ with cookie sent */
	SAN_CM_WAIT_ACCEPT,     /**< accepting: the ULP has the request */
	SAN_CM_REP_SENT,        /**< accepting: waits for RTU or the first packet */
	SAN_CM_ESTABLISHED,
	SAN_CM_DRAINING,  /**< disconnect asked for; waits until nothing is outstanding */
	SAN_CM_DREQ_SENT, /**< waits for DREP */
	SAN_CM_TIMEWAIT,  /**< answers repeated DREQs for a while */
	SAN_CM_STATE_MAX
};

enum san_cm_event_type {
	SAN_CM_EV_CONNECT_REQUEST = 1, /**< accept or reject it */
	SAN_CM_EV_ESTABLISHED,         /**< both sides */
	SAN_CM_EV_REJECTED,            /**< connecting side; reason; slot is gone */
	SAN_CM_EV_UNREACHABLE,         /**< connecting side: nobody answered; slot is gone */
	SAN_CM_EV_DISCONNECTED,        /**< by the peer, by RESET, keep-alive or retries; reason */
	SAN_CM_EV_CLOSED,              /**< our own disconnect has finished */
};

struct san_cm_event {
	uint8_t type;   /**< enum san_cm_event_type */
	uint8_t reason; /**< enum san_wire_cm_reason */
	uint16_t slot;
	uint32_t listener; /**< CONNECT_REQUEST: listener's cookie */
	uint64_t cookie;   /**< the connection's cookie: as given to connect or accept */
	struct san_ip peer;
	bool stream; /**< CONNECT_REQUEST: it is for a stream */
	uint16_t private_len;
	uint8_t private_data[SAN_WIRE_CM_PRIVATE];
};

/** What one side offers; both offers together make the connection. */
struct san_cm_param {
	bool ordered, relaxed; /**< the connecting side decides */
	bool ends;             /**< likewise: ordered, and it ends on error (RT-40) */
	bool stream;           /**< it carries a stream's session: of both sides, or of none */
	uint16_t pkey;
	uint16_t mtu;               /**< payload bytes per packet: minimum of both */
	uint16_t req_win, data_win; /**< our receive windows, packets, powers of two */
	uint16_t first_win;         /**< >= 2 (design, rule 7) */
	uint16_t max_txn;           /**< N: minimum of both */
	uint16_t msg_limit;         /**< PCB-3, local */
	uint16_t rnr_ms;
	uint16_t keepalive_ms; /**< silence after which a PROBE goes; 0 = never */
	uint16_t private_len;
	uint8_t private_data[SAN_WIRE_CM_PRIVATE];
};

/** How the silence of an open connection is noticed. */
struct san_cm_keepalive {
	uint32_t idle_ms;  /**< of silence until the first PROBE; 0: never */
	uint32_t every_ms; /**< between two of them */
	uint8_t probes;    /**< unanswered ones until the peer counts as gone; 0: never */
	bool is_lazy;      /**< not while a packet is unacknowledged, which has timeouts */
};

struct san_cm_conf {
	uint32_t max_conns;
	uint16_t max_listeners;
	uint8_t max_retries;      /**< of one CM message */
	uint8_t keepalive_probes; /**< san_cm_keepalive.probes, until it is set */
	uint64_t retry_ns;        /**< doubled with every retry, up to SAN_CM_RETRY_MAX_NS */
	uint64_t cookie_slot_ns;  /**< a cookie is good for this and the next slot */
	uint64_t drain_ns;        /**< a disconnect waits so long without progress */
	uint64_t timewait_ns;
	uint32_t rate_per_ms; /**< stateless answers (COOKIE, REJ, RESET): see inet_rate.h */
	uint32_t features;    /**< enum san_wire_cm_feature: what we can and want; no STREAM */
	uint8_t secret[SAN_CM_SECRET];
	uint16_t ports[SAN_WIRE_CM_PORTS]; /**< source ports that reach this lcore (rule 13) */
	uint16_t nb_ports;
	const struct san_cm_steer *steer; /**< else ports by this, for *queue*; NULL: any will do */
	uint16_t queue;
	struct san_wire_path path; /**< template: our MAC, dst_port, dscp */
	struct san_mem *mem;       /**< for all of its state; NULL: the heap */
};

/** Parameters agreed on, valid from ESTABLISHED (for tl and pdl). */
struct san_cm_agreed {
	struct san_pdl_peer pdl;
	uint16_t rx_req_win, rx_data_win;
	uint32_t first_rsn_tx, first_rsn_rx;
	uint16_t n_tx, n_rx;
	uint16_t rnr_tx_ms, rnr_rx_ms;
	uint32_t features; /**< enum san_wire_cm_feature: of both */
};

struct san_cm_conn; /* cm_priv.h */
struct san_cm;      /* cm_priv.h */

/** The caller sets secret, max_conns, path and ports. */
void san_cm_conf_default(struct san_cm_conf *conf);
/** -EINVAL: a value out of range, max_conns not pdl's, or no secret set; -ENOMEM. */
int san_cm_create(const struct san_cm_conf *conf, struct san_pdl *pdl, struct san_cm **out);
void san_cm_destroy(struct san_cm *cm);
/** It lay parked in conf->mem: steering and our own address are those of *conf* from now on. */
void san_cm_resume(struct san_cm *cm, const struct san_cm_conf *conf);

/** The port's MAC address from now on. */
void san_cm_set_mac(struct san_cm *cm, const struct rte_ether_addr *mac);

/** On any of our addresses. *backlog*: requests waiting for accept. -EADDRINUSE, -ENOSPC. */
int san_cm_listen(struct san_cm *cm, uint64_t service, uint16_t pkey, uint16_t backlog,
		  uint32_t cookie);
/** Every partition of it; who waits for accept is rejected. */
void san_cm_unlisten(struct san_cm *cm, uint64_t service, uint16_t pkey);

/**
 * Start connecting. Takes a slot; the outcome is an event.
 * -ENOSPC: no slot; -EINVAL: parameter out of range (see doc/api).
 */
int san_cm_connect(struct san_cm *cm, const struct san_ip *local, const struct san_ip *peer,
		   uint64_t service, const struct san_cm_param *param, uint64_t cookie,
		   uint64_t now_ns, uint16_t *slot);
/**
 * Answer a CONNECT_REQUEST.
 *
 * @return
 *   0, or -ENOENT: it is gone. Else it is still there: -EINVAL: parameter out of range, or a
 *   stream on a connection that is not strictly ordered; -EPROTOTYPE: one of the two is for a
 *   stream, and the other is not.
 */
int san_cm_accept(struct san_cm *cm, uint16_t slot, const struct san_cm_param *param,
		  uint64_t cookie, uint64_t now_ns);
int san_cm_reject(struct san_cm *cm, uint16_t slot, uint8_t reason, const void *private_data,
		  uint16_t private_len, uint64_t now_ns);

/**
 * A request on its way to the cm of another lcore, whose queue pair is to have it. It
 * is taken out, moved in there with the acceptor's parameters, and the first cm is
 * told whether it was. Until then it can be neither accepted nor rejected.
 */
struct san_cm_moved {
	struct san_wire_path path;
	uint16_t pkey;
	uint8_t flags; /**< enum san_wire_cm_flag */
	uint32_t xid;
	uint32_t peer_cid, peer_tag;
	struct san_cm_agreed offer; /**< the peer's */
};
/** -ENOENT: it is gone, or taken. */
int san_cm_move_out(struct san_cm *cm, uint16_t slot, struct san_cm_moved *out, uint64_t now_ns);
/** As san_cm_accept(); -ENOSPC: no slot. */
int san_cm_move_in(struct san_cm *cm, const struct san_cm_moved *in,
		   const struct san_cm_param *param, uint64_t cookie, uint64_t now_ns,
		   uint16_t *slot);
/** It moved: a ghost stays, for its REQ again; or, not *adopted*, it did not. */
void san_cm_moved(struct san_cm *cm, uint16_t slot, bool adopted, uint64_t now_ns);

/** Orderly end: drain, DREQ, DREP; then EV_CLOSED. -ENOTCONN. *hard*: without draining. */
int san_cm_disconnect(struct san_cm *cm, uint16_t slot, bool hard, uint64_t now_ns);

/** The core tells whether an ESTABLISHED connection in DRAINING has drained. */
void san_cm_drained(struct san_cm *cm, uint16_t slot, uint64_t now_ns);
/**
 * The core tells that the connection failed (RT-7): from REP_SENT to DREQ_SENT it ends
 * at once, with DISCONNECTED(reason), and the peer is told.
 */
void san_cm_failed(struct san_cm *cm, uint16_t slot, uint8_t reason, uint64_t now_ns);
/** What the connecting side asked for; in WAIT_ACCEPT. */
bool san_cm_is_ordered(const struct san_cm *cm, uint16_t slot);
enum san_cm_state san_cm_state(const struct san_cm *cm, uint16_t slot);
const char *san_cm_state_name(enum san_cm_state s);

/**
 * One CM packet that san_wire_parse() accepted. Never keeps *m*. The caller
 * counts the result.
 */
enum san_drop san_cm_rx(struct san_cm *cm, const struct rte_mbuf *m, const struct san_wire_pkt *p,
			uint64_t now_ns);
/**
 * A packet reached a connection in SETUP (pdl said SAN_DROP_STATE, so address, tag
 * and P_Key are right; a CNP has no tag and does not count): if it came from the
 * peer of REP_SENT it stands for a lost RTU. True: now open, check again.
 */
bool san_cm_implicit_rtu(struct san_cm *cm, uint16_t slot, uint64_t now_ns);
/** A packet for an unknown CID or wrong tag: answer with a rate-limited RESET. */
void san_cm_answer_reset(struct san_cm *cm, const struct san_wire_pkt *p, uint64_t now_ns);

/** Valid while ESTABLISHED is taken by the other layers. NULL: not open. */
const struct san_cm_agreed *san_cm_agreed(const struct san_cm *cm, uint16_t slot);

/** Is there a message for san_cm_tx_next()? */
bool san_cm_has_tx(const struct san_cm *cm);
/**
 * Next message to send. Its path has the peer's IP, and its MAC if already known, else
 * zero: then resolve, tell san_cm_resolved(), and take the next; this one comes again.
 */
bool san_cm_tx_next(struct san_cm *cm, struct san_wire_path *path, struct san_wire_pkt *p,
		    struct san_wire_cm *msg, uint64_t now_ns);
/** The neighbour answered: fill MACs of connections to *ip* that lack one, send what waits. */
void san_cm_resolved(struct san_cm *cm, const struct san_ip *ip, const struct rte_ether_addr *mac,
		     uint64_t now_ns);
/** What the other layers must hear of at once. */
struct san_cm_change {
	uint8_t type;   /**< enum san_cm_event_type; CONNECT_REQUEST is none */
	uint8_t reason; /**< enum san_wire_cm_reason */
	uint16_t slot;
	uint64_t cookie; /**< as given to connect or accept */
};
/** Is there a change? */
bool san_cm_has_change(const struct san_cm *cm);
/** Next change; false: none. To be taken before anything else is sent. */
bool san_cm_change_next(struct san_cm *cm, struct san_cm_change *change);
/**
 * Next event for the owner; false: none. Events wait in their connection's record, so
 * there is always room; nobody else gets the slot until the last of them was taken.
 */
bool san_cm_event_next(struct san_cm *cm, struct san_cm_event *ev);
/**
 * From now on the silence of connection *slot* is noticed so; before, as san_cm_param and conf say.
 * No effect on one that is not open.
 */
void san_cm_set_keepalive(struct san_cm *cm, uint16_t slot, const struct san_cm_keepalive *k,
			  uint64_t now_ns);
/** The connection's timer fired: retries, keep-alive, time-wait, drain limit. */
void san_cm_on_timer(struct san_cm *cm, uint16_t slot, uint64_t now_ns);
/**
 * The core has released the connection in every other layer: cm frees it and the CID.
 * To be called after the changes, or events, DISCONNECTED and CLOSED, and only then.
 */
void san_cm_release(struct san_cm *cm, uint16_t slot, uint64_t now_ns);
uint64_t san_cm_nb_half_open(const struct san_cm *cm);
void san_cm_check(const struct san_cm *cm);

/** Drops that no call returned, by enum san_drop: answers over the rate limit. */
const uint64_t *san_cm_drops(const struct san_cm *cm);

#endif /* CM_H */
