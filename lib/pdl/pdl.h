/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Packet delivery sublayer of one lcore: connections, windows, ACKs, retransmission, congestion
 * control, PCB limits and the send scheduler.
 *
 * This layer handles PSNs and knows nothing of RSNs. A struct san_pdl_entry describes the packet
 * under a PSN; the transaction sublayer fills it and gets it back. This layer never calls a layer
 * above: the core moves packets between the two.
 *
 * Thread rule: everything here belongs to one lcore. (RT-1 .. RT-9, RT-17, RT-18, RT-20 .. RT-25,
 * RT-28, RT-29, RT-31, PCB-1, PCB-2, PCB-4)
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_common.h>

#include "pdl_cc.h"
#include "pdl_win.h"
#include "san_counters.h"
#include "san_line.h"
#include "san_mem.h"
#include "san_pool.h"
#include "san_prng.h"
#include "san_seq.h"
#include "san_time.h"
#include "san_wheel.h"
#include "wire.h"

/*
 * ---- reasons why packets of a connection must take the general path (lib/express) ----
 *
 * A bit is set as long as its reason holds. Each layer sets and clears its own bits, and its
 * san_*_check() verifies them.
 */

enum san_odd {
	SAN_ODD_STATE = 0x01,  /**< pdl.c: not open */
	SAN_ODD_SILENT = 0x02, /**< pdl_rtx.c: no packet received since a timeout */
	SAN_ODD_BASE = 0x04,   /**< tl_rxn.c: the base RSN has a record, part of it came */
	SAN_ODD_AHEAD = 0x08,  /**< tl_rxn.c: the CAM has records of later RSNs */
	SAN_ODD_HEAD = 0x10,   /**< tl_rxn.c: the base is a request without a record */
	SAN_ODD_RNR = 0x20,    /**< tl_nack.c: the base was refused and not accepted since */
	SAN_ODD_FAILED = 0x40, /**< tl_target_order.c: nothing is executed any more (RT-40) */
};

static inline void
san_pdl_odd_put(uint8_t *odd, enum san_odd why, bool holds)
{
	*odd = holds ? *odd | (uint8_t)why : *odd & (uint8_t)~why;
}

#define SAN_PDL_OWNERS_MAX 256

/*
 * A CID consists of lcore, reuse counter and slot, from the top. The lcore takes 4 of the 24 bits,
 * the slot as many of the other 20 as *max_conns* needs, and the reuse counter the rest.
 */
#define SAN_CID_LCORE_SHIFT 20
#define SAN_CONNS_MAX       (1u << 16)

struct san_pdl_conf {
	uint32_t max_conns;    /**< connections of this lcore */
	uint32_t max_wide;     /**< how many may have a wide transmit block at a time */
	uint32_t budget_pkts;  /**< host budget, packets (PCB-2, PCB-4) */
	uint8_t lcore_id;      /**< top bits of our CIDs */
	uint8_t max_retries;   /**< per packet (RT-7) */
	uint8_t ooo_distance;  /**< a missing PSN is lost once a PSN this far above it arrived */
	uint8_t ackreq_window; /**< AckReq on every packet up to this window */
	uint16_t ack_every;    /**< packets: send an ACK at once after this many */
	uint16_t quantum;      /**< packets of one connection per scheduler visit */
	uint16_t nb_owners;    /**< owners that share sending evenly, up to SAN_PDL_OWNERS_MAX */
	uint8_t plb_bad_rtts;  /**< bad round trips in a row that change the path; 0 = never */
	uint16_t pmtu_after;   /**< full packets before a longer one is tried; 0: never (RT-31) */
	uint32_t link_mbps;    /**< of our port; 0 = unknown: ignore transmission time */
	uint64_t ack_delay_ns; /**< coalescing time */
	uint64_t rto_init_ns;
	uint64_t rto_min_ns;
	uint64_t rto_max_ns;
	uint64_t tlp_min_ns; /**< least silence before a tail-loss probe */
	uint8_t cc;          /**< enum san_pdl_cc_kind */
	struct san_pdl_cc_conf cc_conf;
	struct san_mem *mem; /**< holds all state of the layer; NULL: the heap */
	uint64_t prng_seed;
	uint32_t (*secret32)(void *arg); /**< tags and PSNs: arc4random or a test's generator */
	void *secret_arg;
	uint32_t first_psn; /**< for tests: with *fixed_psn*, PSNs and RSNs start here */
	bool fixed_psn;
};

/**
 * Set the defaults of doc/architecture.md. The caller sets secret32 and prng_seed, and max_conns
 * and lcore_id where the defaults do not fit.
 */
void san_pdl_conf_default(struct san_pdl_conf *conf);

/** States of a connection */
#define SAN_CONN_STATES(X)                                                                 \
	X(FREE, free, "There is no connection.")                                           \
	X(SETUP, setup, "It has a CID and a tag; only connection messages are exchanged.") \
	X(OPEN, open, "It exchanges all packets.")                                         \
	X(CLOSING, closing, "It is drained, and exchanges only ACKs until it is closed.")

#define SAN_CONN_STATES_MEMBER(state, name, help) SAN_CONN_##state,

enum san_conn_state {
	SAN_CONN_STATES(SAN_CONN_STATES_MEMBER)
};

struct san_pdl_pcb {
	uint16_t first_win; /**< first window that the peer's receiver grants, packets (PCB-1) */
	uint16_t msg_limit; /**< limit on unacknowledged messages (PCB-3) */
	uint32_t inflight;  /**< packets sent and not yet received: requests, push and pull data */
};

/** Search for the path MTU (RT-31): pdl_pmtu.c. */
struct san_pdl_pmtu {
	uint64_t at_ns;    /**< next try; if no size is tried: earliest next search */
	uint16_t size;     /**< payload size being tried; 0: no search */
	uint16_t nb_full;  /**< full packets sent since the last search */
	uint8_t nb_tries;  /**< tries of this size */
	uint8_t nb_misses; /**< tries of this size without an answer from a peer that sends */
	bool proven;       /**< the path has carried a packet longer than SAN_MTU_SURE */
	bool watch;        /**< a packet that may prove it is outstanding */
};

/** The piece sent last of a packet that is longer than the path MTU (RT-37). */
struct san_pdl_piece {
	uint32_t psn;
	uint16_t from; /**< payload bytes of the packet before this piece */
	uint16_t len;
};

struct san_pdl_rtt {
	uint64_t srtt_ns; /**< 0: no sample yet */
	uint64_t var_ns;
	uint64_t rto_ns;
	uint8_t backoff;         /**< doublings of rto_ns */
	uint8_t nb_reorder_wait; /**< not 0: recently a reordered packet was taken for lost */
	uint32_t away_ms;        /**< pdl->away_ns at the time stalled_ms */
	uint64_t base_ns;        /**< delay of the path without a queue; 0 = unknown */
	uint64_t rest_ns;        /**< congestion window at its minimum since; 0 = it is not */
	uint64_t rest_min_ns;    /**< smallest delay since then */
};

/** ACK policy state (RT-8, RULE-11). */
#define SAN_PDL_DOUBTS  4 /**< initial nb_doubts */
#define SAN_PDL_TURN_NS 8 /**< unit of *turn* */
struct san_pdl_ackst {
	uint16_t nb_unreported; /**< packets received since the last ACK */
	uint16_t ce_count;
	uint16_t probe_len;  /**< longest PROBE since the last ACK: the length to report (RT-31) */
	uint8_t oow;         /**< enum san_wire_oow to report */
	uint8_t nb_doubts:6; /**< timely answers still missing before ACKs are held again */
	bool asked:1;        /**< a packet asked for an ACK, and we have sent none since */
	bool held:1;         /**< on the list of ACKs that a packet of ours may carry */
	bool now:1;          /**< an ACK must be sent in this loop */
	bool must:1;         /**< and a reverse packet cannot replace it: duplicate, gap ... */
	bool listed:1;       /**< on the list of connections that owe an ACK */
	bool echo_valid:1;   /**< echo_tx and echo_rx are set */
	uint8_t nb_stood:4;  /**< packets that replaced an ACK since the last dedicated one */
	bool ce:1;           /**< a CE mark came since the last dedicated ACK */
	uint16_t turn;       /**< learned turn-round of the program, in SAN_PDL_TURN_NS */
	uint32_t serial;     /**< serial number of the last dedicated ACK sent */
	uint32_t echo_tx;    /**< tx_time of the newest packet received */
	uint32_t echo_rx;
	uint64_t deadline_ns; /**< coalescing timer, NEVER = off */
	uint64_t last_ns;     /**< last dedicated ACK sent: at least one per RTT (RT-25) */
};

#define SAN_PDL_USER_TIMEOUT_MS 250

#define SAN_PDL_SETUP 192 /**< scratch bytes for the setup of a connection */

struct san_pdl_conn {
	/* cache line 0: identity and flags, used by every packet */
	_Alignas(SAN_LINE) uint32_t cid; /**< our CID: the peer sends to it */
	uint32_t tag;                    /**< our tag: every packet to us carries it (RT-24) */
	uint32_t dcid;
	uint32_t dtag;
	uint16_t slot; /**< index in every per-connection array of every layer */
	uint16_t pkey;
	uint16_t mtu;       /**< path MTU in payload bytes, as far as known */
	uint16_t mtu_watch; /**< packets of at least this length are reported to pdl_pmtu */
	uint8_t state;      /**< enum san_conn_state */
	bool ordered;
	bool relaxed;
	uint8_t owner;    /**< owner in whose turns it sends; see san_pdl_conn_give() */
	bool in_ready;    /**< on the ready list of its owner */
	bool in_wait;     /**< on the list of connections that wait for host budget (PCB-4) */
	bool active;      /**< counted in nb_active (PCB-2) */
	bool token;       /**< one packet of host budget is reserved for it (PCB-4) */
	bool probe_due;   /**< a PROBE must be sent: san_pdl_ack_probe_now() */
	bool cnp_due;     /**< a CNP must be sent */
	bool pmtu_due;    /**< a PROBE of pmtu.size must be sent */
	bool failed;      /**< retries are exhausted: the core must end it (RT-7) */
	bool too_narrow;  /**< ... because packets of that length no longer pass the path */
	bool crowded;     /**< the peer has no buffers for our packets: one in flight at a time */
	bool pace_wait;   /**< pace_ns is a deadline */
	uint8_t nb_tails; /**< tail-loss probes sent since the last progress */
	bool again_data;  /**< of the two windows, lost data was sent last */
	bool new_turn;    /**< a refused request left its last turn to new packets */
	bool turn_left;   /**< that happened in this visit */
	bool ackreq_owed; /**< the next packet asks for an ACK because something was resent */
	bool peer_serial_valid;
	bool is_lent;                /**< the union still holds *setup*, not *narrow* */
	uint8_t odd;                 /**< enum san_odd; 0: packets may take the express path */
	uint8_t rnr_round_out;       /**< tl: newest RNR round seen (RULE-4) */
	uint32_t cmpl_out;           /**< tl: cumulative completed RSN of our target side (PCB-5) */
	uint32_t cmpl_in;            /**< newest value of the peer */
	struct san_pdl_txblock *txb; /**< *narrow*, or of the pool; NULL: nothing outstanding */
	/* cache line 1: sending */
	struct san_pdl_txw tx[SAN_WIN_MAX];
	struct san_pdl_pcb pcb;
	uint8_t ackreq_count; /**< packets since the last AckReq */
	uint8_t nb_probes;    /**< unanswered PROBEs */
	uint8_t probe_exp;    /**< doublings of the interval between PROBEs for held packets */
	uint8_t nb_ports;
	uint8_t port_idx;
	uint8_t nb_copies; /**< duplicates received since the last new packet */
	bool limited;      /**< core: tl had packets left when the last visit ended */
	uint16_t mtu_max;  /**< payload bytes per packet that both ends take */
	uint16_t bad_rtts;
	uint16_t plb_wait;         /**< bad round trips beyond the configured number */
	bool plb_sample, plb_good; /**< this round trip brought any sample, any good one */
	/* cache lines 2, 3: ACK policy, timers */
	struct san_pdl_ackst ack;
	struct san_timer timer;   /**< armed for the earliest of these deadlines */
	uint64_t rtx_deadline_ns; /**< timeout scan: pdl_rtx */
	uint64_t gap_deadline_ns; /**< a missing packet becomes old enough to be resent */
	uint64_t tlp_deadline_ns; /**< tail-loss probe */
	uint64_t pace_ns;         /**< earliest time of the next paced packet */
	uint64_t tl_deadline_ns;  /**< deadline of tl: RNR delay, grant expiry */
	uint64_t cm_deadline_ns;  /**< deadline of cm: retry, keep-alive */
	struct san_pdl_pmtu pmtu;
	struct san_pdl_piece piece;
	uint64_t last_rx_ns;
	/* cache lines 4 to 6: changed by ACKs */
	struct san_pdl_rtt rtt;
	struct san_pdl_cc cc;
	uint32_t peer_serial;   /**< serial number of the newest ACK */
	uint32_t last_echo;     /**< echo_tx of the newest sample: each counts once */
	uint16_t peer_ecn;      /**< ecn_count of the newest ACK */
	uint16_t peer_level;    /**< buffer level of the newest ACK */
	uint16_t rx_first_win;  /**< first window in our ACKs; cm may set it (PCB-1) */
	uint16_t host;          /**< tl: its peer host, index in pdl->uses */
	uint64_t last_ack_ns;   /**< when the newest dedicated ACK arrived */
	uint64_t probe_ns;      /**< last PROBE */
	uint64_t cnp_ns;        /**< last CNP sent */
	uint32_t copy_serial;   /**< serial of our newest ACK when the last duplicate came */
	uint32_t nb_timer_lost; /**< losses that a timer found since the last ACK */
	uint64_t plb_round_ns;  /**< end of the current round trip for path selection (RT-28) */
	/* lists */
	TAILQ_ENTRY(san_pdl_conn) ready_link;
	TAILQ_ENTRY(san_pdl_conn) wait_link;
	TAILQ_ENTRY(san_pdl_conn) ack_link;
	/* receive windows: only the words near the base are touched */
	struct san_pdl_rxw rx[SAN_WIN_MAX];
	struct san_wire_path path;         /**< RT-28; kept until the slot is taken, for cm */
	uint16_t ports[SAN_WIRE_CM_PORTS]; /**< source ports that steer to the peer's lcore */
	/**
	 * Silence until the connection ends, in units of SAN_PDL_USER_TIMEOUT_MS; 0:
	 * conf.max_retries decides. (RT-7)
	 */
	uint16_t user_timeout;
	uint32_t stalled_ms; /**< first retry or PROBE of the last silence, low bits */
	/* counters for show */
	uint64_t nb_tx_pkts, nb_rx_pkts;
	uint32_t nb_rtx, nb_fast_rtx, nb_tlp, nb_rto, nb_dup;
	uint32_t oow_tick; /**< newest ACK that reported a packet beyond the window; 0: none */
	union {
		/* outstanding packets, unless a block of the pool holds them */
		struct san_pdl_narrow narrow;
		/*
		 * Used by the connection setup until something is sent. If the connection was never
		 * opened, valid until the slot is taken again.
		 */
		_Alignas(8) uint8_t setup[SAN_PDL_SETUP];
	};
};
/* ARCH-9 */
static_assert(sizeof(struct san_pdl_conn) <= 896, "doc/architecture.md: what a connection costs");
static_assert(offsetof(struct san_pdl_conn, tx) == SAN_LINE, "cache line 0: every packet");

TAILQ_HEAD(san_pdl_conns, san_pdl_conn);

/** Per-lcore counters besides drop reasons. */
struct san_pdl_stats {
	SAN_PDL_COUNTERS(SAN_COUNTER_MEMBER)
};

/**
 * Connections of one owner share its turns: owners send evenly, whatever number of connections each
 * has.
 */
struct san_pdl_owner {
	struct san_pdl_conns ready;      /**< connections that may have something to send */
	TAILQ_ENTRY(san_pdl_owner) link; /**< on *turns* while *ready* is not empty */
	int32_t credit;                  /**< bytes left of its turn; negative: it took more */
	uint32_t nb_slots;               /**< slots taken, not given back; owner 0: 0 */
};

/** What the connections of a peer host use of the pools of packet delivery (RT-35). */
struct san_pdl_use {
	uint32_t nb_held;  /**< tl: packets held */
	uint32_t nb_wide;  /**< blocks of transmit windows */
	uint32_t nb_words; /**< words of receive windows */
};

struct san_pdl {
	struct san_pdl_conf conf;
	struct san_wheel wheel;
	struct san_prng prng;
	struct san_pdl_conn *conns;        /**< max_conns, by slot */
	struct san_pdl_owner *owners;      /**< nb_owners */
	TAILQ_HEAD(, san_pdl_owner) turns; /**< owners that may have something to send */
	struct san_pdl_owner *turn;        /**< owner of the last turn */
	struct san_pdl_owner *visited;     /**< owner whose connection is being visited */
	struct san_pdl_conns wait;         /**< waiting for host budget (PCB-4) */
	struct san_pdl_conns acks;         /**< connections that owe an ACK, a PROBE or a CNP */
	struct san_pdl_conns held_acks;    /**< owe an ACK unless an answer carries it first */
	uint32_t inflight;                 /**< sum over all connections, at most budget_pkts */
	uint32_t nb_tokens;                /**< budget reserved for connections just woken */
	uint16_t rx_level;                 /**< core: how full receive buffers are, 0 .. 1000 */
	uint32_t rx_free;                  /**< core: packets that may still be held, if any are */
	struct san_pdl_use *uses;          /**< by peer host; tl numbers the hosts */
	uint32_t nb_hosts;                 /**< tl: hosts with open connections */
	uint64_t rx_gap_ns;                /**< core: packets may have waited for us this long */
	uint64_t away_ns;                  /**< engine: sum of times that this lcore did not run */
	/** no timer fires before; 0: none set. san_pdl_rtx_rx_gap() */
	uint64_t grace_ns;
	uint32_t nb_active;
	uint32_t share; /**< budget_pkts / nb_active, at least 1 and at most a window */
	/** Packets that a connection sends in one visit are due at the same time. */
	struct {
		const struct san_pdl_conn *conn;
		uint64_t now_ns, due_ns;
	} visit;
	struct san_pdl_wide *wide; /**< max_wide */
	struct san_pool free_wide;
	struct san_pdl_rxwords *rxwords; /**< max_wide for each window */
	struct san_pool free_rxwords;
	struct san_holders used_rxwords;
	uint32_t *free_slots; /**< ring: the slot free for the longest time is first */
	uint8_t *slot_owner;  /**< owner that the slot counts for; 0: none */
	uint32_t *next_cid;   /**< next CID of the slot, without the lcore bits */
	uint32_t slot_mask;   /**< slot bits of a CID: san_pdl_slot_mask() */
	uint32_t free_head, free_count;
	uint32_t nb_conns;
	uint32_t nb_kept; /**< slots of deleted connections that are not given back yet */
	struct san_pdl_stats stats;
	uint64_t drops[SAN_DROP_MAX];
	/** Entries that ACKs retired; the layer that takes them sets nb_acked to 0. */
	uint32_t nb_acked;
	struct san_pdl_entry acked[SAN_WIN_REQ_MAX + SAN_WIN_DATA_MAX];
};

/* ---- pdl.c: connections, CIDs, tags ---- */

/** Allocate the state of an lcore; -ENOMEM, -EINVAL (a value is out of range). */
int san_pdl_create(const struct san_pdl_conf *conf, uint64_t now_ns, struct san_pdl **out);
void san_pdl_destroy(struct san_pdl *pdl);
/**
 * Resume the state that lay parked in conf->mem: functions and link speed are those of *conf* from
 * now on. -EINVAL: its congestion control is unknown here.
 */
int san_pdl_resume(struct san_pdl *pdl, const struct san_pdl_conf *conf);
/** Change our MAC address from *old* to *mac* in every connection. */
void san_pdl_set_mac(struct san_pdl *pdl, const struct rte_ether_addr *old,
		     const struct rte_ether_addr *mac);

/** Parameters that both sides agreed on. The caller has set the connection's path. */
struct san_pdl_peer {
	uint32_t dcid, dtag;
	uint32_t req_psn, data_psn;       /**< the peer's first PSNs */
	uint16_t mtu;                     /**< payload bytes per packet that both ends take */
	uint16_t tx_req_win, tx_data_win; /**< the peer's receive windows */
	uint16_t first_win, msg_limit;
	uint16_t nb_ports;
	uint16_t ports[SAN_WIRE_CM_PORTS];
	bool ordered, relaxed, ends;
};

/**
 * Take a slot and choose CID, tag and first PSNs (tx[].next); the state is SETUP. The receive
 * windows are set when it opens. -ENOSPC: every slot is in use.
 */
int san_pdl_conn_add(struct san_pdl *pdl, struct san_pdl_conn **out);
/** Assign the connection to *owner*: before it opens, until its slot is given back. */
void san_pdl_conn_give(struct san_pdl *pdl, struct san_pdl_conn *c, uint8_t owner);
/** Slots that *owner*, which is not 0, occupies. */
uint32_t san_pdl_owner_slots(const struct san_pdl *pdl, uint8_t owner);
/** SETUP → OPEN. */
void san_pdl_conn_open(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_pdl_peer *peer,
		       uint16_t rx_req_win, uint16_t rx_data_win, uint64_t now_ns);
/** OPEN → CLOSING: the connection sends no packets of its own and waits for no budget. */
void san_pdl_conn_close(struct san_pdl *pdl, struct san_pdl_conn *c);
/** Release everything the connection holds but slot and path. Outstanding entries are dropped. */
void san_pdl_conn_del(struct san_pdl *pdl, struct san_pdl_conn *c);
/** Give the slot of a deleted connection back, so that it may be taken again. */
void san_pdl_slot_give(struct san_pdl *pdl, uint16_t slot);
/** Look up by CID; NULL if free or of another incarnation. */
struct san_pdl_conn *san_pdl_conn_find(struct san_pdl *pdl, uint32_t cid);
/** The lcore of a CID. */
uint8_t san_pdl_cid_lcore(uint32_t cid);
/** Slot bits of a CID, on an lcore of *max_conns* connections. */
static inline uint32_t
san_pdl_slot_mask(uint32_t max_conns)
{
	return rte_align32pow2(max_conns) - 1;
}
/** Re-arm the wheel timer for the earliest deadline of the connection. */
void san_pdl_conn_arm(struct san_pdl *pdl, struct san_pdl_conn *c);
/** The connection has failed: its timer fires at once, and the core then ends it. */
void san_pdl_conn_fail(struct san_pdl *pdl, struct san_pdl_conn *c);
/** Verify every invariant of windows, counters and lists. For tests. */
void san_pdl_check(const struct san_pdl *pdl);

/**
 * RT-35: true if a host that has *own* of *pool* may take one more. The pool has *each* parts for
 * each of max_wide connections, and spare ones: with more connections, hosts compete for them.
 */
static inline bool
san_pdl_may_take(const struct san_pdl *pdl, uint32_t own, const struct san_pool *pool,
		 uint32_t each)
{
	return san_holders_may_take(pdl->nb_conns > pdl->conf.max_wide && pdl->nb_hosts > 1, own,
				    pool->nb, pool->max - each * pdl->conf.max_wide);
}

/* ---- pdl_rx.c: one received packet in three steps ---- */

/**
 * Step 1: check that the packet belongs to a connection. CID, state, source address, tag and P_Key
 * are checked before anything changes; the caller counts a mismatch. Then the ACK fields are
 * applied (retired entries are appended to pdl->acked), and the PSN is placed in its window.
 *
 * @param ack
 *   For SAN_OP_ACK, otherwise NULL.
 * @return
 *   NONE: a packet for tl (RESYNC and NACK included), or one without a window that needs no more
 *   work (ACK, PROBE, CNP). OLD, DUPLICATE, BEYOND: its ACK fields were used, an ACK is owed, and
 *   the caller frees the packet. Others: the packet changed nothing.
 */
enum san_drop san_pdl_rx_check(struct san_pdl *pdl, struct san_wire_pkt *p,
			       const struct san_wire_ack *ack, uint64_t now_ns,
			       struct san_pdl_conn **conn);

/** Verdict of tl on a packet of a window. */
enum san_verdict {
	SAN_RX_REFUSED,  /**< the bit stays clear; ACKs do not mention it (RT-33) */
	SAN_RX_RECEIVED, /**< accepted, not yet acknowledged (RT-18) */
	SAN_RX_ACKED,    /**< accepted and acknowledged */
};

/**
 * Step 2: record the verdict of tl and update the ACK policy. The window follows from p->op. The
 * caller commits a packet before it checks the next one of the connection, so that a copy in the
 * same burst is a duplicate.
 */
void san_pdl_rx_commit(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
		       enum san_verdict verdict, uint64_t now_ns);
/** Later: a received PSN of the data window is placed, or its ULP-ACK came. It is acknowledged. */
void san_pdl_rx_ack(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t psn, uint64_t now_ns);
/** Later: a received PSN of the data window was dropped after all. */
void san_pdl_rx_revoke(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t psn);
/** The window of packets of this kind; SAN_WIN_MAX: none. */
enum san_win san_pdl_rx_win_of(uint8_t op, uint8_t flags);

/**
 * Express: true if *p* belongs to *c*, which is not odd, and carries no CE mark. The caller
 * compares the source address. This function and the next change nothing.
 */
static inline bool
san_pdl_rx_express_of(const struct san_pdl_conn *c, const struct san_wire_pkt *p)
{
	/* The general path counts each impossible ACK, express one of several similar ones. */
	return p->dcid == c->cid && p->tag == c->tag && p->pkey == c->pkey && !p->ce &&
		san_seq_le(p->req_ebsn, c->tx[SAN_WIN_REQ].next) &&
		san_seq_le(p->data_ebsn, c->tx[SAN_WIN_DATA].next);
}
/**
 * True if its PSN follows the next *nb_taken* of the data window, and nothing above the base is
 * held.
 */
bool san_pdl_rx_express(const struct san_pdl_conn *c, const struct san_wire_pkt *p,
			uint16_t nb_taken);
/** It is an ACK: apply it, as san_pdl_rx_check() does. */
void san_pdl_rx_express_report(struct san_pdl *pdl, struct san_pdl_conn *c,
			       const struct san_wire_pkt *p, const struct san_wire_ack *ack,
			       uint64_t now_ns);
/** A push is taken. First its ACK fields are applied, as san_pdl_rx_check() does ... */
void san_pdl_rx_express_ack(struct san_pdl *pdl, struct san_pdl_conn *c,
			    const struct san_wire_pkt *p, uint16_t nb_taken, uint64_t now_ns);
/**
 * ... and after all are placed, their PSNs: as san_pdl_rx_commit() of each with SAN_RX_ACKED. The
 * first *nb_silent* of them do not ask for an ACK; then one asks, unless these are all.
 */
void san_pdl_rx_express_take(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t nb_taken,
			     uint16_t nb_silent, uint64_t now_ns);

/* ---- pdl_tx.c, pdl_sched.c: what is sent next ---- */

/**
 * Express: assign the next PSN of the data window and return its entry. The caller writes the
 * entry's first part.
 */
struct san_pdl_entry *san_pdl_tx_express_assign(struct san_pdl *pdl, struct san_pdl_conn *c);
/**
 * The *n* packets assigned last are sent, with *bytes* of payload in all and at most *longest* in
 * one: does the rest of san_pdl_tx_assign() for each.
 */
void san_pdl_tx_express_sent(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t n,
			     uint32_t bytes, uint16_t longest, uint64_t now_ns);

/**
 * Put a connection on the ready list. Call it after anything that may let the connection send; an
 * extra call does no harm.
 */
void san_pdl_sched_kick(struct san_pdl *pdl, struct san_pdl_conn *c);
/** The handshake took *rtt_ns* there and back: the first sample of the round trip. */
void san_pdl_rtt_path(const struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t rtt_ns);
/** True if a connection waits for a visit or owes an ACK: the lcore must not sleep. */
bool san_pdl_sched_has_work(const struct san_pdl *pdl);
/** Take the next connection that may have something to send off the list; NULL: none. */
struct san_pdl_conn *san_pdl_sched_next(struct san_pdl *pdl);
/** The connection that probably comes next, or NULL. For prefetching. */
const struct san_pdl_conn *san_pdl_sched_peek(const struct san_pdl *pdl);

/** How many new packets may be sent now. */
struct san_pdl_room {
	uint16_t nb_req;    /**< room in the request window */
	uint16_t nb_data;   /**< room in the data window */
	uint16_t nb_credit; /**< virtual window, congestion window, pacing, host budget:
			     *   for all but grants and RESYNC */
};
/**
 * Room of *c* for new packets. Takes a txblock if *c* has none. If only the host budget holds the
 * connection back, it is queued for budget; if only pacing does, its timer is armed. In both cases
 * it becomes ready by itself. In all other cases an ACK or a post makes it ready.
 */
void san_pdl_tx_room(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns,
		     struct san_pdl_room *room);
/** A new packet: assign the next PSN of its window and store the entry. Sets e->psn. */
void san_pdl_tx_assign(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_pdl_entry *e,
		       uint64_t now_ns);
/**
 * A lost PSN that may be resent now, marked as sent; NULL: none, or it is the turn of new packets.
 * In each window the lowest PSN is first; between the windows the lower RSN (ordered) or each in
 * turn. The entry remains the window's. A packet longer than c->mtu is sent in pieces: this time
 * the piece in c->piece.
 */
struct san_pdl_entry *san_pdl_tx_again(struct san_pdl *pdl, struct san_pdl_conn *c,
				       uint64_t now_ns);
/**
 * Fill the common header of any packet of the connection: CID, tag, P_Key, eBSNs, message ACK,
 * time, AckReq. Reads p->op and leaves the rest of *p* alone. An owed ACK that the packet carries
 * is cancelled. The last packet of a visit always asks for an ACK (RULE-11): only the
 * caller knows which one is last, and calls san_wire_build_ask_ack() for it. Returns how many
 * packets may be in flight during the rest of the visit.
 */
uint32_t san_pdl_tx_header(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_wire_pkt *p,
			   uint64_t now_ns);
/**
 * Fill the header of the next packet of a window in the same visit, in the same *p*: only AckReq
 * differs. *limit* is what san_pdl_tx_header() returned.
 */
void san_pdl_tx_header_next(const struct san_pdl *pdl, struct san_pdl_conn *c,
			    struct san_wire_pkt *p, uint32_t limit);
/**
 * End a visit. Every san_pdl_sched_next() is followed by one call. *more*: the visit stopped at its
 * quantum, not for lack of packets.
 */
void san_pdl_sched_end(struct san_pdl *pdl, struct san_pdl_conn *c, bool more);
/** True if packets have arrived whose ACK was not sent yet. */
static inline bool
san_pdl_ack_is_pending(const struct san_pdl_conn *c)
{
	return c->ack.now || c->ack.held || c->ack.deadline_ns != SAN_TIME_NEVER;
}
/** Stop holding the ACKs that were held long enough. Call it before san_pdl_ack_next(). */
void san_pdl_ack_release(struct san_pdl *pdl, uint64_t now_ns);
/** When san_pdl_ack_release() must be called next. */
uint64_t san_pdl_ack_deadline_ns(const struct san_pdl *pdl);
/** Take the next connection that owes an ACK, PROBE or CNP now off the list; NULL: none. */
struct san_pdl_conn *san_pdl_ack_next(struct san_pdl *pdl);
/**
 * Fill all of *p* with a dedicated ACK, or with a PROBE or CNP if one is due. In the latter case
 * p->op says so, *ack* is unused, and the caller adds a payload of p->payload_len zeros. If the
 * connection owes more, san_pdl_ack_next() returns it again.
 */
void san_pdl_ack_fill(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_wire_pkt *p,
		      struct san_wire_ack *ack, uint64_t now_ns);
/** Owe a PROBE at once (keep-alive, no progress). */
void san_pdl_ack_probe_now(struct san_pdl *pdl, struct san_pdl_conn *c);

/* ---- pdl_pcb.c, pdl_tx.c: for show ---- */

/** Virtual window (PCB-2). */
uint32_t san_pdl_pcb_vwin(const struct san_pdl *pdl, const struct san_pdl_conn *c);
/** Packets allowed in flight: the smaller of virtual and congestion window. */
uint32_t san_pdl_pcb_limit(const struct san_pdl *pdl, const struct san_pdl_conn *c);
/** What holds a new packet of *c* for window *win* back, if anything. Changes nothing. */
enum san_hold san_pdl_hold(const struct san_pdl *pdl, const struct san_pdl_conn *c,
			   enum san_win win, uint64_t now_ns);

/** While the peer has no buffers for what it is sent, its window is one packet (RT-35). */
void san_pdl_pcb_set_crowded(struct san_pdl *pdl, struct san_pdl_conn *c, bool crowded);

/* ---- pdl_rtx.c: retransmission engine ---- */

/**
 * Turn the unacknowledged PSNs of push data of RSN *rsn* (and, with *onward*, of every later RSN)
 * into RESYNC(code), to be sent at once (RULE-4, RULE-5). Returns how many.
 */
uint32_t san_pdl_rtx_cancel(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t rsn, bool onward,
			    uint8_t code);
/** A NACK(RESOURCE) for *psn*: resend it after *delay_ns* under the same PSN. That is no retry. */
void san_pdl_rtx_defer(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn,
		       uint64_t delay_ns, uint64_t now_ns);
/** True while *psn* is assigned and not acknowledged in *win*. */
bool san_pdl_rtx_is_outstanding(const struct san_pdl_conn *c, enum san_win win, uint32_t psn);
/**
 * The port was last polled *gap_ns* ago, so the packets that follow may have waited that long. This
 * is not taken for congestion (RULE-12) or loss. After a long gap the answers that our timers wait
 * for may be queued behind them: until pdl->grace_ns the timers do not fire.
 */
void san_pdl_rtx_rx_gap(struct san_pdl *pdl, uint64_t gap_ns, uint64_t now_ns);
/**
 * True if *c* must not end yet for the silence of its peer: this lcore did not run for most of it,
 * so the peer's machine may be as busy, and the rest is shorter than *patience_ns*. (RT-7, RT-24)
 */
bool san_pdl_rtx_is_excused(const struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t patience_ns,
			    uint64_t now_ns);
/**
 * The connection's timer fired: coalescing, fast retransmit, tail-loss probe, timeouts, pacing. May
 * set c->failed. The caller re-arms with san_pdl_conn_arm().
 */
void san_pdl_rtx_on_timer(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);
