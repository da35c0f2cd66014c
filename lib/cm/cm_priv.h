/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_PRIV_H
#define CM_PRIV_H

/**
 * @file
 * What the files of this folder share: the connection record, the inputs of
 * the state machine, lists, the ring of stateless answers. (design, rule 17)
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_ether.h>

#include "cm.h"
#include "inet_rate.h"

#define CM_NO_SLOT       UINT32_MAX
#define CM_NO_LISTENER   UINT16_MAX
#define CM_NO_PRIVATE    UINT16_MAX
#define CM_OUT_MAX       256  /**< answers that wait for the next burst, power of two */
#define CM_RESOLVING     1024 /**< lists, power of two */
#define CM_SERVICES_BITS 8    /**< of the number of lists of listeners */
#define CM_SERVICES      (1u << CM_SERVICES_BITS)
#define CM_PRIVATES      1024 /**< private data that waits for the owner */
#define CM_WAIT_HOSTS    1024 /**< counts of waiting requests; a power of two */
#define CM_RETRIES_MAX   20   /**< doublings of retry_ns that stay far below 2^64 */
#define CM_HASH_KEY      16   /**< bytes, crypto_shorthash */
#define CM_MTU_MIN       64   /**< payload bytes: far below any link's, but no nonsense */

/** What can happen to a connection. */
enum cm_input {
	CM_IN_CONNECT,  /**< our ULP connects */
	CM_IN_RESOLVED, /**< the peer's MAC address is known */
	CM_IN_REQUEST,  /**< REQ with a good cookie: the first, or again */
	CM_IN_COOKIE,
	CM_IN_REP,
	CM_IN_RTU, /**< RTU, or a packet that stands for it */
	CM_IN_REJ,
	CM_IN_DREQ,
	CM_IN_DREP,
	CM_IN_RESET,     /**< one that counts */
	CM_IN_ACCEPT,    /**< our ULP accepts */
	CM_IN_ADOPT,     /**< ... on another lcore than where the request came: here */
	CM_IN_MOVED,     /**< ... and there */
	CM_IN_REJECT,    /**< our ULP rejects */
	CM_IN_CLOSE,     /**< our ULP disconnects */
	CM_IN_CLOSE_NOW, /**< ... and does not wait */
	CM_IN_DRAINED,   /**< nothing is outstanding any more */
	CM_IN_FAILED,    /**< packet delivery or keep-alive gave up */
	CM_IN_EXPIRED,   /**< retries exhausted, or a limit of waiting */
	CM_IN_MAX
};

/** One input with what belongs to it; the rest is zero. */
struct cm_step {
	enum cm_input in;
	uint8_t reason; /**< REJECT, FAILED: enum san_wire_cm_reason */
	const struct san_wire_pkt *pkt;
	const struct san_wire_cm *msg;
	uint64_t now_ns;
};

/**
 * What a connection needs until it is open, in memory that packet delivery lends
 * meanwhile. A ghost keeps it until its slot is taken.
 */
struct cm_setup {
	uint64_t service;
	uint64_t asked_ns;           /**< it went then; 0: not yet; SAN_TIME_NEVER: twice */
	struct san_cm_agreed agreed; /**< the peer's offer until *is_agreed* */
	/* our offer; the rest of it is packet delivery's */
	uint32_t first_rsn;
	uint16_t mtu, req_win, data_win, first_win, max_txn, rnr_ms;
	uint16_t private_len;
	uint8_t flags;  /**< enum san_wire_cm_flag */
	bool is_stream; /**< ours is: SAN_CM_FEAT_STREAM */
	uint8_t cookie[SAN_WIRE_COOKIE];
	/** The peer's until it is accepted or refused, and of a REJ; ours in what we send. */
	uint8_t private_data[SAN_WIRE_CM_PRIVATE];
};
static_assert(sizeof(struct cm_setup) <= SAN_PDL_SETUP, "what packet delivery lends");

struct san_cm_conn {
	uint8_t state;          /**< enum san_cm_state */
	uint8_t msg;            /**< enum san_wire_cm_msg: sent last */
	uint8_t retries;        /**< of it */
	uint8_t cookie_retries; /**< *retries* when a fresh cookie was last sent at once */
	uint8_t probes;         /**< PROBEs without an answer */
	uint8_t events;         /**< bit t: event of type t waits for the owner */
	uint8_t changes;        /**< bit t: likewise for the other layers */
	uint8_t reason;         /**< of the final event; of the REJ that a repeated REQ gets */
	bool passive:1;         /**< accepting side */
	bool is_agreed:1;       /**< both offers are known */
	bool is_ghost:1;        /**< released; knows late REQs until the slot is reused */
	bool is_refused:1;      /**< by our ULP: a repeated REQ gets the REJ again */
	bool is_taken:1;        /**< about to move to another lcore (cm_move.c) */
	bool in_tx:1, in_ev:1, in_change:1, in_resolving:1, in_hash:1;
	uint16_t slot;
	uint16_t listener;     /**< WAIT_ACCEPT: index */
	uint16_t keepalive_ms; /**< offered */
	uint16_t private_idx;  /**< ESTABLISHED waits with private data: where it is */
	uint32_t xid;          /**< of the attempt */
	uint32_t hash_next;    /**< slot, or CM_NO_SLOT */
	uint32_t drained_to;   /**< DRAINING: progress when its timer was set */
	struct san_cm_keepalive keepalive;
	uint32_t peer_cid, peer_tag; /**< where we send to; 0 = not yet known */
	struct san_ip peer;
	uint64_t cookie; /**< the ULP's */
	union {
		uint64_t probe_seen_ns; /**< last_rx_ns when the last PROBE was asked for */
		uint64_t expires_ns;    /**< of a ghost */
	};
	TAILQ_ENTRY(san_cm_conn)
	tx_link;
	TAILQ_ENTRY(san_cm_conn)
	ev_link;
	TAILQ_ENTRY(san_cm_conn)
	change_link; /**< or, before there is any change, of those that lack a MAC address */
};
static_assert(sizeof(struct san_cm_conn) <= 136, "doc/architecture.md: what a connection costs");

TAILQ_HEAD(cm_conn_list, san_cm_conn);

struct cm_listener {
	bool used;
	uint16_t next; /**< of those whose service has the same hash, or CM_NO_LISTENER */
	uint16_t pkey;
	uint16_t backlog;
	uint16_t nb_waiting; /**< connections in WAIT_ACCEPT */
	uint32_t cookie;
	uint64_t service;
};

/** An answer that belongs to no connection. */
struct cm_out {
	struct san_wire_path path;
	uint16_t pkey;
	struct san_wire_cm msg;
};

/** Private data of a REP, until the owner takes it. */
struct cm_private {
	uint16_t next; /**< while free */
	uint16_t len;
	uint8_t data[SAN_WIRE_CM_PRIVATE];
};

struct san_cm {
	struct san_cm_conf conf;
	struct san_pdl *pdl;
	struct san_cm_conn *conns; /**< by slot, parallel to pdl->conns */
	struct cm_listener *listeners;
	uint16_t services[CM_SERVICES];  /**< service → first listener, chained */
	uint16_t waiting[CM_WAIT_HOSTS]; /**< in WAIT_ACCEPT, by a keyed hash of the peer */
	uint32_t *buckets;               /**< (peer, its CID, its tag) → slot, chained */
	uint32_t bucket_mask;
	uint8_t hash_key[CM_HASH_KEY];
	struct cm_conn_list tx;                      /**< have a message to send */
	struct cm_conn_list ev;                      /**< have events for the owner */
	struct cm_conn_list change;                  /**< have news for the other layers */
	struct cm_conn_list resolving[CM_RESOLVING]; /**< lack a MAC address, by peer */
	struct cm_out *out;
	uint32_t out_head, out_tail;
	struct cm_private *privates; /**< CM_PRIVATES */
	uint16_t free_private;       /**< first of a chain, or CM_NO_PRIVATE */
	uint64_t now_ns;             /**< of the latest call, for those without a time */
	uint64_t nb_half_open;
	uint64_t drops[SAN_DROP_MAX];
	struct san_inet_rate answers; /**< stateless ones */
	struct san_inet_rate checks;  /**< of cookies: each costs a MAC */
};

static inline struct san_pdl_conn *
cm_pdl_conn(const struct san_cm *cm, const struct san_cm_conn *c)
{
	return &cm->pdl->conns[c->slot];
}

static inline bool
cm_has_stream(uint32_t features)
{
	return (features & SAN_CM_FEAT_STREAM) != 0;
}

/** Only if cm_is_setup(), or of a ghost that never was open. */
static inline struct cm_setup *
cm_setup(const struct san_cm *cm, const struct san_cm_conn *c)
{
	return (struct cm_setup *)(void *)cm_pdl_conn(cm, c)->setup;
}

/** The order is what the connecting side wants. */
static inline void
cm_agree_order(struct cm_setup *setup)
{
	struct san_pdl_peer *peer = &setup->agreed.pdl;

	peer->ordered = (setup->flags & SAN_CM_F_ORDERED) != 0;
	peer->relaxed = (setup->flags & SAN_CM_F_RELAXED) != 0;
	peer->ends = (setup->flags & SAN_CM_F_ENDS) != 0;
}

static inline bool
cm_is_setup(const struct san_cm *cm, const struct san_cm_conn *c)
{
	return cm_pdl_conn(cm, c)->is_lent;
}

/** The source port that steers to the sender's lcore, if it told one. (rule 13) */
static inline uint16_t
cm_reply_port(const struct san_wire_pkt *p, const struct san_wire_cm *msg)
{
	return msg->nb_ports != 0 ? msg->ports[0] : p->src_port;
}

/* ---- cm_fsm.c ---- */

/** Feed the state machine. False: this input means nothing in this state. */
bool san_cm_fsm_step(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s);
/** Our offer meets the peer's, by *in*: ACCEPT or ADOPT. */
void san_cm_fsm_accept(struct san_cm *cm, struct san_cm_conn *c, const struct san_cm_param *param,
		       uint64_t cookie, enum cm_input in, uint64_t now_ns);
/** The record of *slot* if it is one, for a call at *now_ns*. */
struct san_cm_conn *san_cm_fsm_at(struct san_cm *cm, uint16_t slot, uint64_t now_ns);

/* ---- cm_conn.c ---- */

/** Take a slot and set up both records; -ENOSPC. */
int san_cm_conn_add(struct san_cm *cm, const struct san_ip *local, const struct san_ip *peer,
		    uint16_t pkey, struct san_cm_conn **out);
/** Give slot and CID back; *ghost_ns*: for so long, know the peer's REQ as an old one. */
void san_cm_conn_free(struct san_cm *cm, struct san_cm_conn *c, uint64_t ghost_ns,
		      uint64_t now_ns);
/** By the peer's address, CID and tag: at most one has all three. */
struct san_cm_conn *san_cm_hash_find(const struct san_cm *cm, const struct san_ip *peer,
				     uint32_t peer_cid, uint32_t peer_tag);
/** True: that name may be added; a ghost that had it is forgotten. False: it is in use. */
bool san_cm_hash_free(struct san_cm *cm, const struct san_ip *peer, uint32_t peer_cid,
		      uint32_t peer_tag);
/** *c* has a name that san_cm_hash_free() allowed. */
void san_cm_hash_add(struct san_cm *cm, struct san_cm_conn *c);
void san_cm_hash_del(struct san_cm *cm, struct san_cm_conn *c);
void san_cm_event_add(struct san_cm *cm, struct san_cm_conn *c, enum san_cm_event_type type);
/** Keep the private data of the REP *msg* for ESTABLISHED. False: no room. */
bool san_cm_private_keep(struct san_cm *cm, struct san_cm_conn *c, const struct san_wire_cm *msg);
/** Those that lack the MAC address of a host, and perhaps of others. */
struct cm_conn_list *san_cm_resolving(struct san_cm *cm, const struct san_ip *peer);
void san_cm_resolving_add(struct san_cm *cm, struct san_cm_conn *c);
void san_cm_resolving_del(struct san_cm *cm, struct san_cm_conn *c);
/** Wake the connection at *deadline_ns*; SAN_TIME_NEVER: not any more. */
void san_cm_timer(struct san_cm *cm, struct san_cm_conn *c, uint64_t deadline_ns);

/* ---- cm_tx.c ---- */

/** The message *type* of the connection, as it stands. */
void san_cm_tx_build(const struct san_cm *cm, const struct san_cm_conn *c, uint8_t type,
		     struct san_wire_cm *msg);
/** Send c->msg with the next burst. */
void san_cm_tx_add(struct san_cm *cm, struct san_cm_conn *c);
void san_cm_tx_del(struct san_cm *cm, struct san_cm_conn *c);
/** Send *msg* from *src_port* to where *p* came from. False: the ring is full. */
bool san_cm_tx_reply(struct san_cm *cm, const struct san_wire_pkt *p, uint16_t src_port,
		     const struct san_wire_cm *msg);
/** Send *msg* to the peer of *c*, whatever becomes of *c*. */
void san_cm_tx_farewell(struct san_cm *cm, const struct san_cm_conn *c,
			const struct san_wire_cm *msg);

/* ---- cm_listen.c ---- */

/** NULL: *reason* says why not. */
struct cm_listener *san_cm_listener_find(struct san_cm *cm, uint64_t service, uint16_t pkey,
					 uint8_t *reason);
/** *change* more connections in WAIT_ACCEPT of *c*'s listener and host. */
void san_cm_listener_wait(struct san_cm *cm, const struct san_cm_conn *c, int change);
/** May one more request of *host* wait? */
bool san_cm_listener_may_wait(struct san_cm *cm, const struct cm_listener *l,
			      const struct san_ip *host);

/* ---- cm_rx.c ---- */

/** What our ULP offers is in range. */
bool san_cm_param_valid(const struct san_cm_param *param);

/* ---- cm_cookie.c ---- */

/** Fill *cookie* for the REQ *msg* that came with *p*. */
void san_cm_cookie_make(const struct san_cm *cm, const struct san_wire_pkt *p,
			const struct san_wire_cm *msg, uint64_t now_ns,
			uint8_t cookie[SAN_WIRE_COOKIE]);
/** Is msg->cookie ours, for just this REQ, and not too old? */
bool san_cm_cookie_valid(const struct san_cm *cm, const struct san_wire_pkt *p,
			 const struct san_wire_cm *msg, uint64_t now_ns);

/* ---- cm_keepalive.c ---- */

/** Start watching an open connection, as it was offered. */
void san_cm_keepalive_start(struct san_cm *cm, struct san_cm_conn *c, uint64_t now_ns);
/** Its timer fired. False: the peer is gone. */
bool san_cm_keepalive_on_timer(struct san_cm *cm, struct san_cm_conn *c, uint64_t now_ns);

#endif /* CM_PRIV_H */
