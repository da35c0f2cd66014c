/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Definitions shared by the files of this folder: connection record, inputs of the state machine,
 * lists, ring of stateless answers. (RULE-17)
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_ether.h>

#include "cm.h"
#include "inet_rate.h"
#include "san_pool.h"

#define CM_NO_SLOT       UINT32_MAX
#define CM_NO_PRIVATE    UINT16_MAX
#define CM_OUT_MAX       256  /**< answers waiting for the next burst, power of two */
#define CM_RESOLVING     1024 /**< number of lists, power of two */
#define CM_SERVICES_BITS 8    /**< log2 of the number of listener lists */
#define CM_SERVICES      (1u << CM_SERVICES_BITS)
#define CM_PRIVATES      1024 /**< private data items waiting for the owner */
#define CM_WAIT_HOSTS    1024 /**< counters of waiting requests, power of two */
#define CM_KNOWN         1024 /**< hosts and networks that are remembered, power of two */
#define CM_RETRIES_MAX   20   /**< with so many doublings retry_ns stays far below 2^64 */
#define CM_HASH_KEY      16   /**< bytes, crypto_shorthash */
#define CM_MTU_MIN       64   /**< payload bytes: far below any link's MTU, but sensible */

/** Inputs of the state machine of a connection. */
enum cm_input {
	CM_IN_CONNECT,  /**< our ULP connects */
	CM_IN_RESOLVED, /**< the peer's MAC address is known */
	CM_IN_REQUEST,  /**< REQ with a valid cookie: the first one or a copy */
	CM_IN_COOKIE,
	CM_IN_REP,
	CM_IN_RTU, /**< RTU, or a packet that replaces it */
	CM_IN_REJ,
	CM_IN_DREQ,
	CM_IN_DREP,
	CM_IN_RESET,     /**< a valid RESET */
	CM_IN_ACCEPT,    /**< our ULP accepts */
	CM_IN_ADOPT,     /**< ... here, for a request received on another lcore */
	CM_IN_MOVED,     /**< ... on the lcore that received the request */
	CM_IN_REJECT,    /**< our ULP rejects */
	CM_IN_CLOSE,     /**< our ULP disconnects */
	CM_IN_CLOSE_NOW, /**< ... without draining */
	CM_IN_DRAINED,   /**< nothing is outstanding */
	CM_IN_FAILED,    /**< packet delivery or keep-alive gave up */
	CM_IN_EXPIRED,   /**< retries exhausted, or a wait limit */
	CM_IN_MAX
};

/** One input and its arguments; unused ones are zero. */
struct cm_step {
	enum cm_input in;
	uint8_t reason; /**< of an end: enum rtsan_reason */
	const struct san_wire_pkt *pkt;
	const struct san_wire_cm *msg;
	uint64_t now_ns;
};

/**
 * What a connection needs until it is open. It is in memory of packet delivery that is unused
 * meanwhile. A ghost keeps it until its slot is taken.
 */
struct cm_setup {
	uint64_t service;
	uint64_t asked_ns;                /**< time of sending; 0: not yet; SAN_TIME_NEVER: twice */
	struct san_cm_agreed agreed;      /**< until *is_agreed*: parts of both offers */
	uint16_t mtu, first_win, max_txn; /**< of our offer; pdl has some, too */
	uint16_t private_len;
	uint8_t flags;  /**< enum san_wire_cm_flag */
	bool is_stream; /**< our side uses SAN_CM_FEAT_STREAM */
	uint8_t cookie[SAN_WIRE_COOKIE];
	/**
	 * From the peer, until it is accepted or refused, or from a REJ; ours in messages we send.
	 */
	uint8_t private_data[SAN_WIRE_CM_PRIVATE];
};
static_assert(sizeof(struct cm_setup) <= SAN_PDL_SETUP, "what packet delivery lends");

struct san_cm_conn {
	uint8_t state;          /**< enum san_cm_state */
	uint8_t msg;            /**< enum san_wire_cm_msg: last one sent */
	uint8_t retries;        /**< retries of *msg* */
	uint8_t cookie_retries; /**< *retries* when a new cookie was last sent at once */
	uint8_t probes;         /**< PROBEs without answer */
	uint8_t events;         /**< bit t: an event of type t waits for the owner */
	uint8_t changes;        /**< bit t: a change of type t waits for the other layers */
	uint8_t reason;         /**< of the final event, and of the REJ for a repeated REQ */
	bool passive:1;         /**< accepting side */
	bool is_agreed:1;       /**< both offers are known */
	bool is_ghost:1;        /**< released; recognises late REQs until the slot is reused */
	bool is_refused:1;      /**< by our ULP: a repeated REQ gets the REJ again */
	bool is_taken:1;        /**< moving to another lcore (cm_move.c) */
	bool in_tx:1, in_hash:1;
	uint16_t slot;
	uint16_t listener;     /**< WAIT_ACCEPT: index of the listener */
	uint16_t keepalive_ms; /**< value offered */
	uint16_t private_idx;  /**< ESTABLISHED: index of the private data that waits */
	uint32_t xid;          /**< identifies the attempt */
	uint32_t hash_next;    /**< slot, or CM_NO_SLOT */
	union {
		uint32_t uid;        /**< of our ULP; in messages until ESTABLISHED */
		uint32_t drained_to; /**< DRAINING: fsm_progress_of() when the timer was set */
	};
	struct san_cm_keepalive keepalive;
	uint32_t peer_cid, peer_tag; /**< destination of our messages; 0 = not known yet */
	uint32_t peer_uid;
	uint64_t cookie; /**< of the ULP */
	union {
		uint64_t probe_seen_ns; /**< last_rx_ns when the last PROBE was requested */
		uint64_t expires_ns;    /**< of a ghost: end of its life */
	};
	TAILQ_ENTRY(san_cm_conn) tx_link;
	TAILQ_ENTRY(san_cm_conn) ev_link;
	TAILQ_ENTRY(san_cm_conn) change_link; /**< before any change: of those without a MAC */
};
static_assert(sizeof(struct san_cm_conn) <= 120, "doc/architecture.md: what a connection costs");

TAILQ_HEAD(cm_conn_list, san_cm_conn);

struct cm_listener {
	bool used;
	SLIST_ENTRY(cm_listener) link; /**< those whose services have the same hash */
	uint16_t pkey;
	uint16_t backlog;
	uint16_t nb_waiting; /**< connections in WAIT_ACCEPT */
	uint32_t cookie;
	uint64_t service;
};
SLIST_HEAD(cm_listeners, cm_listener);

/** An answer that belongs to no connection. */
struct cm_out {
	struct san_wire_path path;
	uint16_t pkey;
	struct san_wire_cm msg;
};

/** Private data of a REP, until the owner takes it. */
struct cm_private {
	uint16_t len;
	uint8_t data[SAN_WIRE_CM_PRIVATE];
};

struct san_cm {
	struct san_cm_conf conf;
	struct san_pdl *pdl;
	struct san_cm_conn *conns; /**< by slot, parallel to pdl->conns */
	struct cm_listener *listeners;
	struct cm_listeners services[CM_SERVICES]; /**< by hash of the service */
	uint16_t waiting[CM_WAIT_HOSTS];           /**< requests, by keyed hash of the peer */
	uint32_t *buckets;                         /**< (peer, its CID, tag) → slot, chained */
	uint32_t bucket_mask;
	uint8_t hash_key[CM_HASH_KEY];
	struct cm_conn_list tx;                      /**< with a message to send */
	struct cm_conn_list ev;                      /**< with events for the owner */
	struct cm_conn_list change;                  /**< with changes for the other layers */
	struct cm_conn_list resolving[CM_RESOLVING]; /**< without a MAC address, by peer */
	struct cm_out *out;
	uint32_t out_head, out_tail;
	struct cm_private *privates; /**< CM_PRIVATES */
	struct san_pool free_privates;
	uint64_t now_ns; /**< time of the latest call, for calls without one */
	uint64_t drops[SAN_DROP_MAX];
	struct san_inet_rate answers;  /**< rate limit of stateless answers */
	struct san_inet_rate checks;   /**< rate limit of cookie checks: each computes a MAC */
	struct san_ip known[CM_KNOWN]; /**< hosts that proved their address, and nets */
};

static inline struct san_pdl_conn *
san_cm_pdl_conn(const struct san_cm *cm, const struct san_cm_conn *c)
{
	return &cm->pdl->conns[c->slot];
}

/** Address of the peer, also of a ghost. */
static inline const struct san_ip *
san_cm_peer(const struct san_cm *cm, const struct san_cm_conn *c)
{
	return &san_cm_pdl_conn(cm, c)->path.dst;
}

static inline bool
san_cm_has_stream(uint32_t features)
{
	return (features & SAN_CM_FEAT_STREAM) != 0;
}

/** True for an address that no peer has: multicast; over IPv4 also reserved or broadcast. */
static inline bool
san_cm_is_multicast(const struct san_ip *ip)
{
	return san_wire_ip_is_v4(ip) ? ip->b[12] >= 224 : ip->b[0] == 0xff;
}

/** Valid only if san_cm_is_setup(), or for a ghost that never was open. */
static inline struct cm_setup *
san_cm_setup(const struct san_cm *cm, const struct san_cm_conn *c)
{
	return (struct cm_setup *)(void *)san_cm_pdl_conn(cm, c)->setup;
}

static inline bool
san_cm_is_setup(const struct san_cm *cm, const struct san_cm_conn *c)
{
	return san_cm_pdl_conn(cm, c)->is_lent;
}

/** Number of requests of *host*, and perhaps of others, in WAIT_ACCEPT. */
static inline uint16_t *
san_cm_waiting(struct san_cm *cm, const struct san_ip *host)
{
	return &cm->waiting[san_inet_hash(host, cm->checks.seed) % CM_WAIT_HOSTS];
}

/** Source port that steers to the sender's lcore, if the message names one. (RULE-13) */
static inline uint16_t
san_cm_reply_udp_port(const struct san_wire_pkt *p, const struct san_wire_cm *msg)
{
	return msg->nb_ports != 0 ? msg->ports[0] : p->src_port;
}

/* ---- cm_fsm.c ---- */

/**
 * The request of *slot*, to be answered; NULL: there is none. A request can be answered once the
 * ULP has taken its event. If the ULP passes the number of its slot before, it means an earlier
 * request.
 */
struct san_cm_conn *san_cm_fsm_request_at(struct san_cm *cm, uint16_t slot, uint64_t now_ns);
/** Feed the state machine. False: the input has no meaning in this state. */
bool san_cm_fsm_step(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s);
/** Accept with our offer, by *in*: ACCEPT or ADOPT. */
void san_cm_fsm_accept(struct san_cm *cm, struct san_cm_conn *c, const struct san_cm_param *param,
		       uint64_t cookie, enum cm_input in, uint64_t now_ns);

/* ---- cm.c ---- */

/** The record of *slot*, for a call at *now_ns*; NULL: there is none. */
struct san_cm_conn *san_cm_conn_at(struct san_cm *cm, uint16_t slot, uint64_t now_ns);
/** Take a slot and set up both records; -ENOSPC. */
int san_cm_conn_add(struct san_cm *cm, const struct san_ip *local, const struct san_ip *peer,
		    uint16_t pkey, struct san_cm_conn **out);
/** Return slot and CID. *ghost_ns*: how long to recognise copies of the peer's REQ. */
void san_cm_conn_free(struct san_cm *cm, struct san_cm_conn *c, uint64_t ghost_ns, uint64_t now_ns);
/** Look up by the peer's address, CID and tag, which are unique. */
struct san_cm_conn *san_cm_hash_find(const struct san_cm *cm, const struct san_ip *peer,
				     uint32_t peer_cid, uint32_t peer_tag);
/** True: the name may be added; a ghost that had it is removed. False: it is in use. */
bool san_cm_hash_free(struct san_cm *cm, const struct san_ip *peer, uint32_t peer_cid,
		      uint32_t peer_tag);
/** Add *c*, whose name san_cm_hash_free() allowed. */
void san_cm_hash_add(struct san_cm *cm, struct san_cm_conn *c);
void san_cm_hash_del(struct san_cm *cm, struct san_cm_conn *c);
void san_cm_event_add(struct san_cm *cm, struct san_cm_conn *c, enum san_cm_event_type type);
/** Store the private data of the REP *msg* for ESTABLISHED. False: no room. */
bool san_cm_private_keep(struct san_cm *cm, struct san_cm_conn *c, const struct san_wire_cm *msg);
/** List of connections that lack the MAC address of a host, and perhaps of others. */
struct cm_conn_list *san_cm_resolving(struct san_cm *cm, const struct san_ip *peer);
/** Set the timer of the connection; SAN_TIME_NEVER: off. */
void san_cm_timer(struct san_cm *cm, struct san_cm_conn *c, uint64_t deadline_ns);

/**
 * True if the parameters of a REQ or REP are valid. (RULE-7: first window >= 2) A stream needs an
 * ordered connection, because its sends must arrive after the pushes before them. (AFC-25)
 */
bool san_cm_offer_valid(const struct san_wire_cm *msg);
/** True if the parameters of our ULP are in range. */
bool san_cm_param_valid(const struct san_cm_param *param);

/* ---- cm_tx.c ---- */

/** *host* has proved its address. */
void san_cm_tx_note_known(struct san_cm *cm, const struct san_ip *host);
/** san_inet_rate_take() for *host*; hosts that have proved their address go first. */
bool san_cm_tx_rate_take(struct san_cm *cm, struct san_inet_rate *rate, const struct san_ip *host,
			 uint64_t now_ns);
/** Build the message *type* from the state of the connection. */
void san_cm_tx_build(const struct san_cm *cm, const struct san_cm_conn *c, uint8_t type,
		     struct san_wire_cm *msg);
/** Send c->msg with the next burst. */
void san_cm_tx_add(struct san_cm *cm, struct san_cm_conn *c);
void san_cm_tx_del(struct san_cm *cm, struct san_cm_conn *c);
/** Send *msg* from *src_port* to the sender of *p*. False: the ring is full. */
bool san_cm_tx_reply(struct san_cm *cm, const struct san_wire_pkt *p, uint16_t src_port,
		     const struct san_wire_cm *msg);
/** Send a copy of the message *type* to the peer of *c*: the caller may free *c* at once. */
void san_cm_tx_farewell(struct san_cm *cm, const struct san_cm_conn *c, uint8_t type,
			uint8_t reason);

/* ---- cm_listen.c ---- */

/** Find a listener; NULL: there is none, for *reason*. */
struct cm_listener *san_cm_listen_find(struct san_cm *cm, uint64_t service, uint16_t pkey,
				       uint8_t *reason);
/** True if one more request of *host* may wait. */
bool san_cm_listen_may_wait(struct san_cm *cm, const struct cm_listener *l,
			    const struct san_ip *host);

/* ---- cm_cookie.c ---- */

/** Fill *cookie* for the REQ *msg* that came with *p*. */
void san_cm_cookie_make(const struct san_cm *cm, const struct san_wire_pkt *p,
			const struct san_wire_cm *msg, uint64_t now_ns,
			uint8_t cookie[SAN_WIRE_COOKIE]);
/** True if msg->cookie was made by us for this REQ, and is not too old. */
bool san_cm_cookie_valid(const struct san_cm *cm, const struct san_wire_pkt *p,
			 const struct san_wire_cm *msg, uint64_t now_ns);

/* ---- cm_keepalive.c ---- */

/** Start to watch an open connection, with the value offered. */
void san_cm_keepalive_start(struct san_cm *cm, struct san_cm_conn *c, uint64_t now_ns);
/** The timer fired. False: the peer is dead. */
bool san_cm_keepalive_on_timer(struct san_cm *cm, struct san_cm_conn *c, uint64_t now_ns);
