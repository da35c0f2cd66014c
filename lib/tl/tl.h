/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Transaction sublayer of one lcore: pushes, pulls and atomics with their RSN and SSN, as initiator
 * and as target; ordering, grants, admission, refusals.
 *
 * The interface to the ULP is that of the source document. pushReq and pullReq enter by
 * san_tl_initiator_submit(). pushReq, pullReq, ULP-ACK, pullResp and pushCmpl towards the ULP are
 * the functions san_tl_ulp_*(), which the ULP defines.
 *
 * Thread rule: everything here belongs to one lcore. (RT-10 .. RT-20, RT-23, RT-26, RT-27, RT-30,
 * RT-32, RT-33, PCB-3, PCB-5, ARCH-2)
 */

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "san_counters.h"
#include "san_line.h"
#include "pdl.h"
#include "tl_reorder.h"
#include "wire.h"
#include "wire_pack.h"

/*
 * ---- tl_lend.c: the incast budget of a host with several lcores (RT-13) ----
 *
 * It is split evenly, and lent by lcores that do not use theirs. Thread rule: the lcores share the
 * struct; each lcore calls with its own san_tl.
 */
struct san_tl_lend {
	_Alignas(SAN_LINE) _Atomic uint32_t free_bytes; /**< in no lcore's budget */
	_Alignas(SAN_LINE) _Atomic uint32_t claims;     /**< lcores that wait; high half: short */
	_Alignas(SAN_LINE) uint32_t total_bytes;
	uint32_t share_bytes; /**< what an lcore gets whenever it asks */
	uint32_t least_bytes; /**< what an lcore always keeps */
	uint32_t unit_bytes;  /**< bytes borrowed at a time */
};

void san_tl_lend_init(struct san_tl_lend *l, uint32_t total_bytes, uint32_t nb_lcores);

#define SAN_TL_N_MAX 256 /**< N of RULE-6: most transactions of a connection at a time */

/** mbufs that the core frees in bulk at the end of a burst. When full, they are freed at once. */
#define SAN_DEATH_ROW 512
struct san_death_row {
	uint32_t n;
	struct rte_mbuf *m[SAN_DEATH_ROW];
};

static inline void
san_tl_death_flush(struct san_death_row *d)
{
	rte_pktmbuf_free_bulk(d->m, d->n);
	d->n = 0;
}

static inline void
san_tl_death_add(struct san_death_row *d, struct rte_mbuf *m)
{
	if (d->n == SAN_DEATH_ROW)
		san_tl_death_flush(d);
	d->m[d->n++] = m;
}

enum san_tl_type {
	SAN_TL_PUSH = 1,
	SAN_TL_PULL = 2,
	SAN_TL_ATOMIC = 3,
};

/** How a push is sent (RT-12). */
enum san_tl_solicit {
	SAN_SOLICIT_AUTO = 0,
	SAN_SOLICIT_ALWAYS = 1,
	SAN_SOLICIT_NEVER = 2,
};

/** A request of the initiator's ULP: pushReq, pullReq. */
struct san_tl_req {
	uint8_t type;    /**< enum san_tl_type */
	uint8_t kind;    /**< pushes: enum san_wire_kind */
	uint8_t solicit; /**< pushes: enum san_tl_solicit */
	uint8_t op;      /**< atomics: enum san_wire_atomic */
	uint32_t length; /**< bytes; push with immediate: without the immediate */
	uint32_t key;
	uint32_t imm; /**< push with immediate, host order */
	uint64_t addr;
	uint64_t cookie; /**< of the ULP, returned in its callbacks */
};
static_assert(sizeof(struct san_tl_req) == SAN_LINE / 2, "half a cache line of struct san_tl_txn");

enum san_txn_state {
	SAN_TXN_FREE = 0,
	SAN_TXN_POSTED,   /**< has RSN (and SSN), nothing sent */
	SAN_TXN_SENDING,  /**< part of it has PSNs */
	SAN_TXN_SENT,     /**< all of it has PSNs; waits for ACKs or pull data */
	SAN_TXN_ABORTING, /**< refused or given up; waits until its PSNs are resynchronised */
	SAN_TXN_DONE,     /**< finished; waits for its turn to be reported */
};

/**
 * Bytes that a transaction may still bring in, and the budget that counts them (RT-13; RULE-6).
 * charged + expired is what was granted and not yet placed in its turn; for pulls, at most what was
 * requested and has not arrived.
 */
struct san_tl_charge {
	uint32_t charged;   /**< bytes in budget_used or path_used */
	uint32_t expired;   /**< bytes in expired_used: expired */
	uint64_t since_ns;  /**< last grant or last arrival */
	uint64_t since_use; /**< tl->use at that time, bytes */
	uint64_t queued_ns; /**< since_ns when it was put on its list */
	uint16_t slot;      /**< of the connection */
	bool granted;       /**< of a push to us; false: of a pull of ours */
	bool listed;
	bool slow; /**< counted in slow_used, too */
	TAILQ_ENTRY(san_tl_charge) link;
};
TAILQ_HEAD(san_tl_charges, san_tl_charge);

/** The list of its connection that holds an initiator's record. */
enum san_txn_list {
	SAN_TXN_LIST_NONE = 0,
	SAN_TXN_LIST_READY, /**< unordered: has push data to send */
	SAN_TXN_LIST_WAIT,  /**< unordered: refused for now, until wait_ns */
	SAN_TXN_LIST_ABORT, /**< has a RESYNC(abort) to send */
};

/** Initiator's record of a transaction. Rarely used fields are in its struct san_tl_extra. */
struct san_tl_txn {
	_Alignas(SAN_LINE) struct san_tl_req req;
	uint32_t rsn;
	uint32_t ssn;  /**< solicited pushes */
	uint32_t sent; /**< next byte of push data to get a PSN */
	union {
		uint32_t granted; /**< solicited: data up to here may be sent */
		uint32_t placed;  /**< pulls: bytes received and placed */
	};
	uint16_t slot;       /**< connection */
	uint8_t status;      /**< enum san_wire_status; final */
	uint8_t round;       /**< unordered: round of the last refusal, echoed in its data */
	uint8_t nb_packed;   /**< messages in the packed packet that starts with it; 0: none */
	uint8_t list;        /**< enum san_txn_list */
	uint16_t nb_unacked; /**< push data and abort PSNs outstanding, also withdrawn ones */
	uint8_t state;       /**< enum san_txn_state */
	bool has_extra:1;    /**< its struct san_tl_extra is valid; *link* always is */
	bool solicited:1;
	bool req_sent:1; /**< the request has a PSN */
	bool req_acked:1;
	bool last_sent:1;   /**< LAST has a PSN */
	bool last_acked:1;  /**< LAST was acknowledged: the push happened, in any case */
	bool msg_counted:1; /**< counted in the limit of PCB-3 */
	bool unwanted:1;    /**< give it up if it has to wait for the target */
	bool alone:1;       /**< was refused: it is never packed again (RT-34) */
	bool aborted:1;     /**< RESYNC(abort) must be sent or was sent */
	bool abort_acked:1;
	bool in_cam:1;   /**< its grant is in the CAM: ahead of the base SSN */
	bool ssn_lost:1; /**< likewise, but the CAM was full */
	uint32_t later;  /**< zero; room for fields of other versions (doc/reliability.md) */
};
static_assert(sizeof(struct san_tl_txn) == SAN_LINE, "a cache line");

/**
 * Rarely used fields: of pulls, of transactions that the target is not ready for, of unordered
 * connections.
 */
struct san_tl_extra {
	TAILQ_ENTRY(san_tl_extra) link; /**< in a list of its connection: enum san_txn_list */
	uint64_t rnr_since_ns;          /**< first RNR in a row; 0 = none */
	uint64_t wait_ns;               /**< on the list WAIT: until when */
	struct rte_mbuf *last;          /**< pulls: held until the rest is placed */
	struct san_tl_charge charge;    /**< of pulls; an atomic is not charged */
};
TAILQ_HEAD(san_tl_extras, san_tl_extra);

enum san_rxn_state {
	SAN_RXN_FREE = 0,
	SAN_RXN_AHEAD,   /**< the ULP does not know it: packets are held, or it waits */
	SAN_RXN_ACTIVE,  /**< the ULP knows it; data is placed on arrival */
	SAN_RXN_PULLING, /**< pull or atomic executed; its data is being sent */
	SAN_RXN_REFUSED, /**< refused before its turn; finished when the base reaches it */
	SAN_RXN_ABORTED, /**< given up by the initiator; finished likewise */
};

/** The queue of its connection that holds a target's record. */
enum san_rxn_queue {
	SAN_RXN_QUEUE_NONE = 0,
	SAN_RXN_QUEUE_GRANT, /**< solicited: not fully granted */
	SAN_RXN_QUEUE_PULL,  /**< executed, with bytes to send */
	SAN_RXN_QUEUE_RETRY, /**< pull or atomic that the ULP was not ready for */
};

/** Target's record of a transaction. */
struct san_tl_rxn {
	/* read by the ULP */
	uint8_t type;   /**< enum san_tl_type */
	uint8_t kind;   /**< enum san_wire_kind */
	uint8_t op;     /**< atomics */
	uint8_t status; /**< status of a refusal */
	uint16_t slot;  /**< connection */
	uint8_t state;  /**< enum san_rxn_state */
	bool solicited;
	uint32_t length; /**< bytes, without an immediate; pushes: known from any packet */
	uint32_t key;
	uint64_t addr;
	uint32_t imm;     /**< valid in push_done of a push with immediate */
	uint32_t ulp_ref; /**< of the ULP: region, receive entry; set in its callbacks */
	uint64_t ulp_gen;
	uint64_t operand, swap, result; /**< atomics, host order */
	bool reserved;                  /**< a receive is reserved for it */
	bool packed;                    /**< one of several in a packet (RT-34): see push_req */
	/* private to tl */
	bool begun;      /**< the ULP accepted it (push_req said OK) */
	bool seen_last;  /**< LAST has arrived: held or placed */
	bool has_last;   /**< LAST is placed and waits for the ULP-ACK */
	bool in_cam;     /**< in the CAM under SAN_CAM_REQUEST */
	bool in_cam_ssn; /**< in the CAM under SAN_CAM_SOLICIT */
	bool in_out;     /**< a grant is decided and has no PSN yet */
	uint8_t queue;   /**< enum san_rxn_queue */
	uint32_t rsn;
	uint32_t ssn;
	uint32_t received; /**< bytes placed */
	uint32_t arrived;  /**< bytes placed or held */
	uint32_t granted;
	uint32_t pull_sent;  /**< pulls: next byte to get a PSN */
	uint32_t nb_unacked; /**< pulls: PULL_DATA outstanding */
	uint32_t last_psn;   /**< PSN of LAST, acknowledged with the ULP-ACK */
	uint64_t since_ns;   /**< waits since: for a receive, or until the ULP is ready */
	struct rte_mbuf *held_head, *held_tail;
	struct san_tl_charge charge;
	struct san_holder holder;
	TAILQ_ENTRY(san_tl_rxn) all_link;
	TAILQ_ENTRY(san_tl_rxn) queue_link;
	TAILQ_ENTRY(san_tl_rxn) out_link;
};
TAILQ_HEAD(san_tl_rxns, san_tl_rxn);

/*
 * ---- the ULP as the transaction sublayer sees it ----
 *
 * The user of tl defines these functions: the data path follows no function pointer. Statuses are
 * enum san_wire_status; SAN_ST_RNR means "not now". *ulp* is that of struct san_tl_conf. All calls
 * come from the lcore that owns both. None may block or call back into tl. First those of the
 * target:
 */

/** Reserve a receive for a solicited send. False: none is free. */
bool san_tl_ulp_reserve(void *ulp, uint16_t slot);
void san_tl_ulp_unreserve(void *ulp, uint16_t slot);
/** Check key, bounds and rights of a push before anything is granted to it. Takes nothing. */
uint8_t san_tl_ulp_push_check(void *ulp, struct san_tl_rxn *r);
/**
 * pushReq: check key, bounds and rights; take a receive and a CQ slot where needed. Places nothing.
 * If r->reserved is set, the reserved receive belongs to this push: it is used or released, and
 * r->reserved is cleared. If r->packed is set, only OK may have side effects: on any other status
 * the message comes again alone and is answered then. After OK push_place and push_done must not
 * refuse a packed message.
 */
uint8_t san_tl_ulp_push_req(void *ulp, struct san_tl_rxn *r);
/** Place *len* payload bytes, from *off* in *m*, at *offset* of the transaction. */
uint8_t san_tl_ulp_push_place(void *ulp, struct san_tl_rxn *r, uint32_t offset, struct rte_mbuf *m,
			      uint16_t off, uint16_t len);
/** All data is placed. The return value is the ULP-ACK: OK or a refusal. */
uint8_t san_tl_ulp_push_done(void *ulp, struct san_tl_rxn *r);
/**
 * Express: does all of this for each message of *m*, a packed packet in one segment. False: not all
 * can be taken, and nothing has changed: then each message is requested.
 */
bool san_tl_ulp_push_packed(void *ulp, uint16_t slot, const struct rte_mbuf *m,
			    const struct san_wire_pkt *p);
/**
 * A push that push_req accepted will not be finished, because push_place or push_done refused it or
 * for another reason: what push_req took returns to the head of its queues.
 */
void san_tl_ulp_push_abort(void *ulp, struct san_tl_rxn *r);
/** pullReq: the return value is ULP-ACK and pullResp. */
uint8_t san_tl_ulp_pull_req(void *ulp, struct san_tl_rxn *r);
/** Copy bytes of a pull into *dst*; not OK: the region was revoked. Repeatable. */
uint8_t san_tl_ulp_pull_read(void *ulp, struct san_tl_rxn *r, uint32_t offset, void *dst,
			     uint16_t len);
/** Execute once; r->result gets the old value. */
uint8_t san_tl_ulp_atomic(void *ulp, struct san_tl_rxn *r);

/* ... and of the initiator: */

/** Copy push payload into *dst*. Repeatable. */
void san_tl_ulp_push_fill(void *ulp, const struct san_tl_txn *t, uint32_t offset, void *dst,
			  uint16_t len);
/** Operands of an atomic, big-endian: addend or compare value, and swap value. Repeatable. */
void san_tl_ulp_atomic_fill(void *ulp, const struct san_tl_txn *t, rte_be64_t args[2]);
/** Place pull data, or the old value of an atomic (8 bytes, big-endian, as received). */
uint8_t san_tl_ulp_pull_place(void *ulp, const struct san_tl_txn *t, uint32_t offset,
			      struct rte_mbuf *m, uint16_t off, uint16_t len);
/**
 * pushCmpl and its kin, for *n* requests of one connection: exactly one per submitted request, in
 * RSN order if ordered. Nothing may be submitted from here or from room(): it would overtake the
 * requests that wait for the resources just released.
 */
void san_tl_ulp_cmpl(void *ulp, struct san_tl_txn *const t[], uint32_t n, uint8_t status);
/** A submit that got -EAGAIN may succeed now. */
void san_tl_ulp_room(void *ulp, uint16_t slot);

enum san_tl_policy {
	SAN_GRANT_RR = 0,   /**< round-robin over connections */
	SAN_GRANT_SRPT = 1, /**< shortest remaining first, over connections (RT-16) */
	SAN_GRANT_MAX
};

extern const char *const san_tl_policy_words[SAN_GRANT_MAX];

struct san_tl_conf {
	uint32_t max_conns;
	uint32_t max_wide;      /**< how many may have more than one transaction at a time */
	uint32_t max_unordered; /**< how many may be unordered */
	uint32_t max_refused;   /**< targets that may remember pushes completed in error */
	uint32_t max_txns;      /**< initiator records, besides one for each wide one */
	uint32_t max_rxns;      /**< target records of the lcore */
	uint32_t budget_bytes;  /**< incast budget: granted or pulled, not placed (RT-13) */
	uint32_t path_bytes;    /**< in addition, capacity of long paths, for all hosts (RT-41) */
	uint32_t expired_bytes; /**< a host with more expired grants is granted slowly */
	/**
	 * Budget shared by several lcores; budget_bytes is then ignored. NULL: this lcore's own.
	 */
	struct san_tl_lend *lend;
	uint32_t grant_bytes;   /**< largest single grant step */
	uint32_t solicit_len;   /**< L of RT-12 */
	uint8_t solicit_level;  /**< C of RT-12, 0 .. 255; 0 = never by congestion */
	uint8_t policy;         /**< enum san_tl_policy */
	uint32_t max_held;      /**< mbufs that the reorder engine may hold on this lcore */
	uint32_t max_held_conn; /**< ... for one connection */
	uint32_t rnr_delay_us;  /**< delay that RNR and RESOURCE announce */
	uint32_t nacks_per_ms;  /**< limit for one peer host */
	struct rte_hash *cam;
	uint32_t engine; /**< id in CAM keys */
	bool express;    /**< the ULP may take a packed packet at once (RT-42) */
	void *ulp;
	struct san_mem *mem; /**< holds all state of the layer; NULL: the heap */
};

void san_tl_conf_default(struct san_tl_conf *conf);

/** Parameters of a connection that cm negotiated. */
struct san_tl_peer {
	bool ordered, relaxed;
	bool ends;             /**< nothing is executed after an error (RT-40) */
	bool pack;             /**< both sides support PUSH_PACKED (RT-34) */
	uint32_t first_rsn_tx; /**< our first RSN and SSN */
	uint32_t first_rsn_rx; /**< the peer's */
	uint16_t n_tx;         /**< RSNs that we may use beyond the oldest unfinished */
	uint16_t n_rx;         /**< ... that the peer may use */
	uint16_t rnr_tx_ms;    /**< how long we retry while the receiver is not ready */
	uint16_t rnr_rx_ms;    /**< how long the peer retries */
};

/** Why a submit on the connection got -EAGAIN (tl_want.c). */
enum san_tl_want {
	SAN_WANT_OWN = 0x1,      /**< its own limits: one of its transactions must finish */
	SAN_WANT_RECORD = 0x2,   /**< listed in tl->want_record */
	SAN_WANT_BUDGET = 0x4,   /**< listed in tl->want_budget */
	SAN_WANT_PROMISED = 0x8, /**< a free record is reserved for it */
	SAN_WANT_FIRST = 0x10,   /**< listed in tl->want_first */
	SAN_WANT_SHARE = 0x20,   /**< listed in its host's *want*: the host has its share */
	SAN_WANT_RECORDS = SAN_WANT_RECORD | SAN_WANT_FIRST | SAN_WANT_SHARE,
	SAN_WANT_LISTED = SAN_WANT_RECORDS | SAN_WANT_BUDGET,
};

/**
 * Records of a connection as a target, and their queues. Most connections have no record, and so
 * none of these.
 */
struct san_tl_queues {
	struct san_tl_rxns rxns;   /**< all records */
	struct san_tl_rxns grants; /**< requests in SSN order, not fully granted */
	struct san_tl_rxns out;    /**< grants decided, without a PSN yet */
	struct san_tl_rxns pulls;  /**< executed pulls with bytes to send */
	struct san_tl_rxns retry;  /**< pulls and atomics that the ULP was not ready for */
	uint64_t retry_ns;
	TAILQ_ENTRY(san_tl_queues) admit_link;
	uint16_t slot; /**< of the connection */
};
TAILQ_HEAD(san_tl_queues_list, san_tl_queues);

/** What only an unordered connection has; arrays are indexed by RSN mod SAN_TL_N_MAX. */
struct san_tl_memo {
	/* initiator */
	struct san_tl_extras ready; /**< push data to be sent */
	struct san_tl_extras wait;
	uint64_t wait_due_ns; /**< no wait_ns is earlier */
	/* target */
	uint64_t fin[SAN_TL_N_MAX / 64]; /**< finished RSNs above rx_base */
	uint8_t round[SAN_TL_N_MAX];     /**< round of the last refusal of each unfinished RSN */
};

/** RSNs of pushes completed in error, likewise: half a byte each, the status or 0. */
struct san_tl_refused {
	uint8_t status[SAN_TL_N_MAX / 2];
	uint32_t psn; /**< the highest one that was refused */
	uint16_t slot;
	struct san_holder holder;
};

TAILQ_HEAD(san_tl_conns, san_tl_conn);

/**
 * The path from a peer host: bytes granted to it or pulled from it that are not placed yet. The
 * part that the path itself holds is not counted in the budget (RT-41; see tl_path.c).
 */
struct san_tl_path {
	uint32_t charged;   /**< all of it */
	uint32_t room;      /**< bytes of it outside the budget, at most */
	uint32_t want;      /**< target of *room*, which shrinks as charges come back */
	uint32_t rate;      /**< bytes per 2^20 ns: best recent rate */
	uint64_t arrived;   /**< bytes since *since_ns* */
	uint64_t since_ns;  /**< start of this measurement; 0: none yet */
	uint64_t rtt_ns;    /**< shortest round trip of its connections; 0: none */
	uint64_t since_use; /**< tl->use at *since_ns* */
};

/**
 * A peer host within one partition: what its connections hold together, and its turn among the
 * hosts, whatever number of connections it has (RT-35).
 */
struct san_tl_host {
	struct san_ip ip;
	uint16_t pkey;
	bool in_admit;                   /**< on tl->admit[slow] */
	bool slow;                       /**< more than expired_bytes of its grants have expired */
	uint32_t nb_conns;               /**< open connections; 0: the record is free */
	uint32_t expired;                /**< its part of expired_used, from grants */
	uint32_t nb_txns;                /**< initiator's records in use or promised */
	uint32_t nb_busy;                /**< connections with one of those */
	uint32_t nb_rings;               /**< rings in use */
	uint32_t nb_refused;             /**< connections that remember refused pushes */
	uint32_t nb_solicit;             /**< SSNs in the CAM, with and without a record */
	uint32_t nb_rxns;                /**< target's records in use */
	uint32_t nb_heads[2];            /**< connections whose base has a record, by *solicited* */
	uint32_t nb_pullers;             /**< connections with an executed pull below the base */
	uint64_t nacks_ns;               /**< rate limit of NACKs, see san_time.h */
	struct san_tl_queues_list admit; /**< of its connections that have something to grant */
	struct san_tl_conns want;        /**< those that wait for its share of records and rings */
	struct san_tl_path paths[2];     /**< pulled, and granted */
	TAILQ_ENTRY(san_tl_host) link;
	TAILQ_ENTRY(san_tl_host) want_link;   /**< on tl->want_hosts while *want* is not empty */
	SLIST_ENTRY(san_tl_host) bucket_link; /**< in a bucket or the free list */
};
TAILQ_HEAD(san_tl_host_list, san_tl_host);
SLIST_HEAD(san_tl_bucket, san_tl_host);

struct san_tl_conn {
	struct san_tl_peer peer;
	uint16_t slot;
	bool open;
	bool draining; /**< no new submit is accepted */
	/* initiator */
	bool turn;    /**< pull data is next if there is both */
	uint8_t want; /**< enum san_tl_want */
	uint16_t nb_txns;
	uint32_t rsn_base; /**< oldest unfinished; reported next if ordered */
	uint32_t rsn_next;
	uint32_t stale_mark; /**< its progress at *stale_ms*: see tl_want.c */
	uint64_t nb_issued;  /**< RSNs ever used: distinguishes unused from finished ones */
	uint32_t stale_ms;   /**< first sweep that found it there; 0: none yet */
	uint32_t ssn_base;   /**< ordered: lowest not fully granted */
	uint32_t ssn_next;
	uint32_t adm_rsn;         /**< next RSN to be counted for PCB-3, in RSN order */
	uint32_t req_rsn;         /**< next RSN whose request may be sent */
	uint32_t data_rsn;        /**< next RSN whose push data may be sent (ordered) */
	uint32_t msg_rsn;         /**< ordered: lowest RSN not message-acknowledged */
	uint16_t nb_msgs;         /**< unacknowledged messages (PCB-3) */
	uint16_t txn_mask;        /**< size of the ring *txns* - 1 */
	uint16_t nb_pulls;        /**< pull pieces outstanding */
	uint16_t nb_deferred;     /**< consecutive packets refused for lack of resources */
	uint16_t nb_cam_grant;    /**< grants in the CAM */
	uint16_t nb_cam_cmpl;     /**< finished transactions in the CAM */
	uint16_t nb_cmpl_lost;    /**< finished, but the CAM was full */
	uint16_t nb_ssn_lost;     /**< granted or finished ahead of ssn_base, not in the CAM */
	uint32_t rnr_rsn_tx;      /**< ordered: RSN that the last RNR refused */
	uint32_t deferred_us;     /**< first refusal, or progress since; wraps */
	uint32_t nb_held;         /**< mbufs held, also of pulls */
	uint64_t rnr_until_ns;    /**< ordered: push data waits until then; 0 = no wait */
	struct san_tl_txn **txns; /**< ring by RSN: *one*, or a pool ring while in use */
	struct san_tl_txn *one;   /**< ring for a single transaction */
	struct san_tl_extras aborts;
	uint32_t want_bytes;     /**< bytes of the request that waits */
	uint32_t expired_pulled; /**< its part of expired_used, from pulls */
	TAILQ_ENTRY(san_tl_conn) want_link;
	/* target */
	struct san_tl_host *host;
	uint32_t rx_base;    /**< lowest unfinished RSN of the peer */
	uint32_t rx_ssn;     /**< lowest SSN not fully granted */
	uint32_t ssn_queued; /**< ordered: next SSN to join the grant queue */
	uint32_t rnr_rsn;    /**< ordered: our last RNR refused it and all above */
	uint8_t rnr_round;   /**< ordered: round of our last RNR */
	bool rnr_valid;      /**< an RNR was sent */
	bool rnr_unpack;     /**< ordered: our last RNR refused a packed packet */
	uint8_t rnr_code;    /**< ordered: code of our last RNR; RESOURCE: no record */
	bool grant_wait;     /**< the head of the grant queue waits for a receive */
	bool using_expired;  /**< expired grants are being used: the last change was a use */
	bool in_admit;
	bool in_pull_wait;
	uint16_t nb_rxns; /**< records in use */
	uint16_t nb_pulling;
	uint16_t nb_ahead;            /**< records in the CAM */
	uint16_t nb_solicit;          /**< SSNs in the CAM */
	struct rte_mbuf *pieces;      /**< incomplete packets' pieces, by PSN and offset */
	uint32_t held_at;             /**< position of the base at the last check of held packets */
	uint16_t held_scarce;         /**< tl->nb_scarce at that time */
	uint16_t nb_waits;            /**< times that the base was refused for lack of resources */
	uint64_t held_ns;             /**< time of the next check */
	uint32_t charged;             /**< its part of budget_used and path_used, from grants */
	uint32_t expired;             /**< its part of expired_used, from grants */
	struct san_tl_rxn *cur;       /**< record of rx_base, if any (never in the CAM) */
	struct san_tl_queues *queues; /**< tl->no_queues if it has no record */
	TAILQ_ENTRY(san_tl_conn) pull_link;
	struct san_tl_memo *memo;       /**< unordered */
	struct san_tl_refused *refused; /**< NULL: none */
	uint64_t later;                 /**< see struct san_tl_txn */
};
static_assert(sizeof(struct san_tl_conn) <= 296, "doc/architecture.md: what a connection costs");
static_assert(SAN_ST_MAX <= 16, "half a byte in struct san_tl_refused");

struct san_tl_stats {
	SAN_TL_COUNTERS(SAN_COUNTER_MEMBER)
	uint64_t budget_high; /**< high-water mark of budget_used */
	uint64_t path_high;   /**< likewise of path_used (RT-41) */
};

/** A NACK to be sent. */
struct san_tl_nack {
	uint32_t cid; /**< keeps it from a later connection of the slot */
	uint16_t slot;
	uint8_t code; /**< enum san_wire_status */
	uint8_t round;
	uint8_t flags; /**< enum san_wire_flag: window of the PSN */
	uint32_t psn, rsn, delay_us;
};
#define SAN_TL_NACKS 512 /**< power of two */

/** A message of the packed packet being processed, and what the ULP assigned to it. */
struct san_tl_part {
	struct san_wire_msg msg;
	uint64_t ulp_gen;
	uint32_t ulp_ref;
};

struct san_tl {
	struct san_tl_conf conf; /**< pool sizes are those in effect */
	struct san_pdl *pdl;
	struct san_death_row *death;
	struct san_cam cam;
	struct san_tl_conn *conns; /**< by slot */
	struct san_tl_txn *txns;
	struct san_tl_extra *extras; /**< one for each of *txns* */
	struct san_pool free_txns;
	uint32_t nb_busy;     /**< connections with something outstanding, or a promise */
	uint32_t nb_promised; /**< records reserved for connections that waited */
	struct san_tl_rxn *rxns;
	struct san_pool free_rxns;
	struct san_tl_queues *queues; /**< one for each of *rxns*, so that one is always free */
	struct san_pool free_queues;
	struct san_tl_queues no_queues; /**< empty, of connections without a record */
	uint32_t nb_heads[2];           /**< connections whose base has a record, by *solicited* */
	uint32_t nb_pullers;            /**< connections with an executed pull below the base */
	uint32_t nb_scarce;             /**< times that a base found no record */
	uint32_t seen_scarce;           /**< nb_scarce at the last check of the holders */
	struct san_holders used_rxns;
	struct san_tl_rxn scratch; /**< of a push that its only packet completes */
	struct san_tl_part parts[SAN_WIRE_PACK_MAX];
	struct san_tl_txn **rings; /**< max_wide rings of SAN_TL_N_MAX pointers each */
	struct san_pool free_rings;
	struct san_tl_memo *memos; /**< max_unordered */
	struct san_pool free_memos;
	struct san_tl_refused *refused; /**< max_refused */
	struct san_pool free_refused;
	struct san_holders used_refused;
	uint32_t budget_bytes; /**< current budget; see tl_lend.c */
	uint32_t limit_bytes;  /**< part of it that may be used: others may be short */
	uint32_t share_bytes;  /**< part that it can always get */
	uint32_t claim;        /**< its contribution to lend->claims */
	uint32_t calm;         /**< ticks since a connection here waited for budget */
	uint32_t budget_used;  /**< granted or pulled, not placed in turn, not in path_used */
	uint32_t pulled_used;  /**< part of it that is pulled */
	uint32_t path_used;    /**< granted or pulled, not placed, not in budget_used */
	uint64_t path_room;    /**< sum of the room of all paths */
	uint32_t rate;         /**< rate of all paths together, as in the paths */
	uint32_t expired_used;
	uint64_t use;    /**< granted and pulled bytes that arrived */
	uint64_t use_ns; /**< time of the last arrival */
	uint64_t now_ns; /**< arrival time of the packet being processed */
	uint32_t nb_held;
	struct san_tl_conn *joiner; /**< may hold pieces of one packet beyond the limit; or NULL */
	uint64_t join_ns;           /**< no other connection may before */
	uint32_t nb_admit;
	uint32_t slow_used;            /**< part of both, granted to slow hosts */
	struct san_tl_host *hosts;     /**< max_conns */
	struct san_tl_bucket *buckets; /**< hash table of hosts in use */
	uint32_t bucket_mask, hash_seed;
	struct san_tl_bucket free_hosts;
	struct san_tl_host_list admit[2];   /**< hosts with something to grant: others, slow ones */
	struct san_tl_conns pull_wait;      /**< whose base is a waiting pull, longest first */
	uint32_t nb_waiting;                /**< connections on the next three lists and of hosts */
	uint32_t nb_short;                  /**< those of them that wait for records */
	uint32_t sweep_slot;                /**< next one that is checked for progress meanwhile */
	uint64_t sweep_ns;                  /**< time of the next check */
	struct san_tl_conns want_record;    /**< no record was free, longest waiting first */
	struct san_tl_conns want_first;     /**< likewise, with nothing outstanding */
	struct san_tl_conns want_budget;    /**< likewise, waiting for pull budget */
	struct san_tl_host_list want_hosts; /**< with connections that wait for their share */
	struct san_tl_charges charges[2];   /**< pulled, granted; longest unused first */
	uint32_t nack_head, nack_tail;
	struct san_tl_nack nacks[SAN_TL_NACKS];
	struct san_tl_stats stats;
	uint64_t drops[SAN_DROP_MAX]; /**< held packets that were discarded later */
};

/** Allocate the state of an lcore; -EINVAL (a value is out of range), -ENOMEM. */
int san_tl_create(const struct san_tl_conf *conf, struct san_pdl *pdl, struct san_death_row *death,
		  struct san_tl **out);
void san_tl_destroy(struct san_tl *tl);
/** Drop held packets and store the contents of the reorder engine in conf->mem. */
void san_tl_park(struct san_tl *tl, uint64_t now_ns);
/**
 * Resume from conf->mem with the CAM table and the shared budget of *conf*. -ENOSPC: the table is
 * too small.
 */
int san_tl_park_resume(struct san_tl *tl, const struct san_tl_conf *conf);
/** True if one more connection may be prepared. Only unordered ones are limited. */
bool san_tl_may_prepare(const struct san_tl *tl, bool ordered);
/**
 * Reserve what *slot* needs to be opened. san_tl_conn_close() releases it, whether the connection
 * was opened or not.
 */
void san_tl_conn_prepare(struct san_tl *tl, uint16_t slot, bool ordered);
/** Open after san_tl_conn_prepare(). peer->ordered must be that passed to it. */
void san_tl_conn_open(struct san_tl *tl, uint16_t slot, const struct san_tl_peer *peer);
/**
 * Close: every outstanding request completes with *status* (in RSN order), and every record, grant,
 * charge and held mbuf is released. Harmless if not open.
 */
void san_tl_conn_close(struct san_tl *tl, uint16_t slot, uint8_t status, uint64_t now_ns);
/** True if something is outstanding as initiator. */
bool san_tl_has_own_work(const struct san_tl *tl, uint16_t slot);
/**
 * True if nothing is outstanding as initiator or unfinished as target: the connection may
 * disconnect.
 */
bool san_tl_is_drained(const struct san_tl *tl, uint16_t slot);

/* ---- tl_hold.c ---- */

/** Why *c* sends nothing new now, packet delivery included. Changes nothing. For show. */
enum san_hold san_tl_hold(const struct san_tl *tl, const struct san_pdl_conn *c, uint64_t now_ns);

/* ---- tl_want.c ---- */

/**
 * The request that got -EAGAIN is withdrawn, and there is no other: the next connection has its
 * turn.
 */
void san_tl_want_end(struct san_tl *tl, uint16_t slot);

/* ---- tl_initiator.c ---- */

/**
 * pushReq or pullReq. It is registered under its RSN (and SSN) before anything is sent, and the
 * connection is kicked. -EAGAIN: N, records or pull budget are exhausted; san_tl_ulp_room()
 * reports when to retry. -ENOTCONN: not open, or draining.
 */
int san_tl_initiator_submit(struct san_tl *tl, uint16_t slot, const struct san_tl_req *req,
			    uint64_t now_ns);
/**
 * How many of *n* pushes in a row may be submitted by san_tl_initiator_plain_submit(). No other
 * call with *tl* may come between. Most pushes wait for nothing, so this is the common case.
 * Changes nothing.
 */
uint32_t san_tl_initiator_plain_room(const struct san_tl *tl, uint16_t slot, uint32_t n);
/** Submit those up to the first that is no unsolicited push. Returns their number. */
uint32_t san_tl_initiator_plain_submit(struct san_tl *tl, uint16_t slot,
				       const struct san_tl_req *const req[], uint32_t n);

/* ---- tl_finish.c ---- */

/** Process the retired entries of pdl->acked, and count the messages that are complete (PCB-3). */
void san_tl_finish_acked(struct san_tl *tl, struct san_pdl_conn *c, uint64_t now_ns);
/** The ACK fields of a packet were applied: process what they retired. */
static inline void
san_tl_on_ack(struct san_tl *tl, struct san_pdl_conn *c, uint64_t now_ns)
{
	if (tl->pdl->nb_acked != 0 || c->cmpl_in != tl->conns[c->slot].msg_rsn)
		san_tl_finish_acked(tl, c, now_ns);
}

/* ---- receive: tl_target.c and tl_initiator.c by opcode ---- */

/**
 * Process a packet that san_pdl_rx_check() passed (a packet of a window, or NACK). Reports the
 * verdict by san_pdl_rx_commit(), and keeps *m* or puts it on the death row. Returns the result;
 * the caller counts it.
 */
enum san_drop san_tl_rx(struct san_tl *tl, struct san_pdl_conn *c, struct rte_mbuf *m,
			uint64_t now_ns);

/** Express: how many of *n* packets of this connection may be taken together. */
uint16_t san_tl_target_express_run(const struct san_tl *tl, uint16_t slot, uint16_t n);
/**
 * True if *p*, a whole unsolicited push, may be taken after *nb_taken* like it on a connection that
 * is not odd. Changes nothing.
 */
bool san_tl_target_express(const struct san_tl *tl, uint16_t slot, const struct san_wire_pkt *p,
			   uint16_t nb_taken);
/** The ULP took *nb_taken* pushes: their RSNs are finished. */
void san_tl_target_express_take(struct san_tl *tl, uint16_t slot, uint16_t nb_taken,
				uint32_t last_rsn, uint64_t now_ns);
/**
 * Express: the solicited push of *rsn*, which is at the base of a connection with SAN_ODD_BASE;
 * NULL: it is unusual. *room* bytes of it, those from *received* on, may be taken together.
 */
struct san_tl_rxn *san_tl_target_express_data(struct san_tl *tl, uint16_t slot, uint32_t rsn,
					      uint32_t *room);
/** The ULP placed these *bytes*. */
void san_tl_target_express_data_take(struct san_tl *tl, struct san_tl_rxn *r, uint32_t bytes,
				     uint64_t now_ns);

/* ---- transmit ---- */

/**
 * Express: true if only push data is to be sent, and some may be. Admits the messages that may be
 * sent (PCB-3).
 */
bool san_tl_initiator_express_tx(struct san_tl *tl, struct san_pdl_conn *c);
/** The next push, if its packet is not shared with others; or NULL. */
struct san_tl_txn *san_tl_initiator_express_next(const struct san_tl *tl,
						 const struct san_pdl_conn *c);
/** A packet of *t* is sent: write the first part of *e* and advance *t*. */
void san_tl_initiator_express_sent(struct san_tl *tl, const struct san_pdl_conn *c,
				   struct san_tl_txn *t, struct san_pdl_entry *e);
/** Like san_tl_tx_fill(), for an express packet. */
void san_tl_initiator_express_fill(struct san_tl *tl, const struct san_pdl_conn *c,
				   const struct san_tl_txn *t, const struct san_pdl_entry *e,
				   struct rte_mbuf *m, struct san_wire_pkt *p);

/** True if san_tl_tx_next() may find something for *c*, given room. */
static inline bool
san_tl_has_tx(const struct san_tl *tl, const struct san_pdl_conn *c)
{
	const struct san_tl_conn *tc = &tl->conns[c->slot];

	return tc->adm_rsn != tc->rsn_next || tc->req_rsn != tc->adm_rsn ||
		(tc->peer.ordered ? tc->data_rsn != tc->adm_rsn :
				    tc->memo != NULL && !TAILQ_EMPTY(&tc->memo->ready)) ||
		!TAILQ_EMPTY(&tc->aborts) ||
		(tc->nb_rxns != 0 &&
		 (!TAILQ_EMPTY(&tc->queues->out) || !TAILQ_EMPTY(&tc->queues->pulls)));
}

/**
 * Choose the next new packet of the connection that fits into *room*: RESYNC and grants first, then
 * requests, then push and pull data in turn. Reduces *room*. False: nothing can be sent now. The
 * transaction is advanced, so the caller must pass *e*, which it zeroed before, to
 * san_pdl_tx_assign().
 */
bool san_tl_tx_next(struct san_tl *tl, struct san_pdl_conn *c, struct san_pdl_room *room,
		    struct san_pdl_entry *e, uint64_t now_ns);
/**
 * Build the extended header fields and the payload of an entry, for the first time or again. Sets
 * op, flags, rsn ... of *p*, and appends the payload after the data start of *m*, which has
 * headroom for the headers. A pull whose region was revoked becomes PULL_DATA with a status and no
 * payload.
 */
void san_tl_tx_fill(struct san_tl *tl, struct san_pdl_conn *c, const struct san_pdl_entry *e,
		    struct rte_mbuf *m, struct san_wire_pkt *p);

/** True if san_tl_nack_next() has a NACK. */
static inline bool
san_tl_has_nacks(const struct san_tl *tl)
{
	return tl->nack_head != tl->nack_tail;
}
/**
 * Take the next NACK that received packets caused; false: none. There is at most one per refused
 * packet.
 */
bool san_tl_nack_next(struct san_tl *tl, uint16_t *slot, struct san_wire_pkt *p);

/* ---- time ---- */

/** A timer of one connection: RNR delay, a solicited send that waits for a receive, ... */
void san_tl_on_timer(struct san_tl *tl, struct san_pdl_conn *c, uint64_t now_ns);
/** Once per loop: expire old grants, hand out released budget. */
void san_tl_tick(struct san_tl *tl, uint64_t now_ns);
/** A receive was posted on the connection: a solicited send that waits for one may be granted. */
void san_tl_on_recv_posted(struct san_tl *tl, uint16_t slot, uint64_t now_ns);
/** Verify every invariant. For tests. */
void san_tl_check(const struct san_tl *tl);
