/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PDL_H
#define PDL_H

/**
 * @file
 * Packet delivery sublayer of one lcore: connections, windows, ACKs,
 * retransmission, congestion control, PCB limits and who sends next.
 *
 * It knows PSNs, not what RSNs mean: what is under a PSN is a
 * struct san_pdl_entry that the transaction sublayer fills and gets back. It
 * calls nobody above it: the core moves packets between the two.
 *
 * Thread rule: everything here belongs to one lcore.
 * (RT-1 .. RT-9, RT-17, RT-18, RT-20 .. RT-25, RT-28, RT-29, RT-31, PCB-1, PCB-2, PCB-4)
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_common.h>

#include "pdl_cc.h"
#include "pdl_odd.h"
#include "pdl_window.h"
#include "san_drop.h"
#include "san_hold.h"
#include "san_mem.h"
#include "san_prng.h"
#include "san_time.h"
#include "san_wheel.h"
#include "wire.h"

#define SAN_PDL_OWNERS_MAX 256

/*
 * A CID is lcore, reuse counter, slot: 4 bits name the lcore; of the other 20 the slot has as many
 * as *max_conns* needs, and the reuse counter the rest.
 */
#define SAN_CID_LCORE_SHIFT 20
#define SAN_CONNS_MAX       (1u << 16)

struct san_pdl_conf {
	uint32_t max_conns;    /**< connections of this lcore */
	uint32_t max_wide;     /**< of those, at once with more than the smallest windows */
	uint32_t budget_pkts;  /**< host budget of PCB-2 and PCB-4 */
	uint8_t lcore_id;      /**< top bits of our CIDs */
	uint8_t max_retries;   /**< per packet (RT-7) */
	uint8_t ooo_distance;  /**< a hole is resent when a PSN this far beyond it arrived */
	uint8_t ackreq_window; /**< AckReq on every packet up to this window */
	uint16_t ack_every;    /**< packets: ACK at once after this many */
	uint8_t ack_stand_ins; /**< packets in a row that may stand for an ACK, below 16 */
	uint16_t quantum;      /**< packets of one connection per scheduler visit */
	uint16_t nb_owners;    /**< that share the sending evenly, at most SAN_PDL_OWNERS_MAX */
	uint8_t plb_bad_rtts;  /**< bad round trips in a row until the path changes; 0 = never */
	uint16_t pmtu_after;   /**< full packets until a longer one is tried; 0: never (RT-31) */
	uint32_t link_mbps;    /**< of our port; 0 = unknown: packets take no time */
	uint64_t ack_delay_ns; /**< coalescing time */
	uint64_t ack_hold_ns;  /**< an ACK waits so long for a packet to carry it, on any path */
	uint64_t rto_init_ns;
	uint64_t rto_min_ns;
	uint64_t rto_max_ns;
	uint64_t tlp_min_ns; /**< tail-loss probe not before this */
	const struct san_pdl_cc_ops *cc;
	struct san_pdl_cc_conf cc_conf;
	struct san_mem *mem; /**< for all of its state; NULL: the heap */
	uint64_t prng_seed;
	uint32_t (*secret32)(void *arg); /**< tags and PSNs: arc4random or a test's generator */
	void *secret_arg;
	uint32_t first_psn; /**< tests only: with *fixed_psn*, PSNs and RSNs start here */
	bool fixed_psn;
};

/**
 * The defaults of doc/architecture.md. The caller sets secret32 and prng_seed,
 * and max_conns, lcore_id where these defaults do not fit.
 */
void san_pdl_conf_default(struct san_pdl_conf *conf);

enum san_conn_state {
	SAN_CONN_FREE = 0,
	SAN_CONN_SETUP,   /**< has a CID and tag; CM packets only */
	SAN_CONN_OPEN,    /**< everything flows */
	SAN_CONN_CLOSING, /**< drained and asked to end: only ACKs flow */
};

struct san_pdl_pcb {
	uint16_t first_win; /**< what the peer's receiver allows, packets (PCB-1) */
	uint16_t msg_limit; /**< unacknowledged messages (PCB-3) */
	uint32_t inflight;  /**< sent, not received: requests, push and pull data */
};

/** Search for the path MTU (RT-31): pdl_pmtu.c. */
struct san_pdl_pmtu {
	uint64_t at_ns;    /**< next try; with none under way: no search before */
	uint16_t size;     /**< payload bytes that are tried; 0: none */
	uint16_t nb_full;  /**< full packets that went, none being tried */
	uint8_t nb_tries;  /**< of this size */
	uint8_t nb_misses; /**< of those, not answered though the peer was heard */
	bool proven;       /**< the path has carried a packet longer than SAN_MTU_SURE */
	bool watch;        /**< one is on its way that may prove it */
};

/** Of a packet that is longer than the path takes: the piece that went last (RT-37). */
struct san_pdl_piece {
	uint32_t psn;
	uint16_t from; /**< payload bytes in front of it */
	uint16_t len;
};

struct san_pdl_rtt {
	uint64_t srtt_ns; /**< 0: no sample yet */
	uint64_t var_ns;
	uint64_t rto_ns;
	uint8_t backoff;      /**< doublings of rto_ns */
	uint8_t nb_overtaken; /**< not 0: of late what seemed lost was only overtaken */
	uint64_t base_ns;     /**< what the path takes without a queue, as far as known; 0 = not */
	uint64_t rest_ns;     /**< congestion window at its minimum since; 0 = it is not */
	uint64_t rest_min_ns; /**< least delay since then */
};

/** ACK policy state (RT-8, design rule 11). */
#define SAN_PDL_DOUBTS 4 /**< nb_doubts at first */
struct san_pdl_ackst {
	uint16_t nb_unreported; /**< packets received since the last ACK */
	uint16_t ce_count;
	uint16_t probe_len;  /**< longest PROBE since the last ACK: what to answer (RT-31) */
	uint8_t oow;         /**< enum san_wire_oow to report */
	uint8_t nb_doubts:6; /**< packets of ours that must follow soon until an ACK is held */
	bool asked:1;        /**< a packet asked for an ACK, and none of ours went since */
	bool held:1;         /**< on the list of ACKs that wait for such a packet */
	bool now:1;          /**< an ACK is due in this loop */
	bool must:1;         /**< and no reverse packet may stand for it: duplicate, hole ... */
	bool listed:1;       /**< linked into the list of owed ACKs */
	bool echo_valid:1;   /**< something was received */
	uint8_t nb_stood:4;  /**< packets that stood for an ACK since the last dedicated one */
	uint32_t serial;     /**< of the last dedicated ACK sent */
	uint32_t echo_tx;    /**< newest packet's tx_time */
	uint32_t echo_rx;
	uint64_t deadline_ns; /**< coalescing timer, NEVER = off */
	uint64_t last_ns;     /**< when the last dedicated ACK went: one per RTT (RT-25) */
};

#define SAN_PDL_PATIENCE_MS 250

#define SAN_PDL_SETUP 192 /**< bytes lent to whoever sets a connection up */

struct san_pdl_conn {
	/* cache line 0: who it is, and flags; every packet */
	uint32_t cid; /**< ours: the peer sends to it */
	uint32_t tag; /**< ours: every packet to us carries it (RT-24) */
	uint32_t dcid;
	uint32_t dtag;
	uint16_t slot; /**< index in every per-connection array of every layer */
	uint16_t pkey;
	uint16_t mtu;       /**< payload bytes per packet that the path takes, as far as known */
	uint16_t mtu_watch; /**< packets at least so long are shown to pdl_pmtu */
	uint8_t state;      /**< enum san_conn_state */
	bool ordered;
	bool relaxed;
	uint8_t owner;    /**< whose turn to send is its turn; see san_pdl_conn_give() */
	bool in_ready;    /**< on its owner's ready list */
	bool in_wait;     /**< on the list of those that wait for host budget (PCB-4) */
	bool active;      /**< counts in the host's active connections (PCB-2) */
	bool token;       /**< one packet of host budget is reserved for it (PCB-4) */
	bool probe_due;   /**< a PROBE must go: san_pdl_probe_now() */
	bool cnp_due;     /**< a CNP must go */
	bool pmtu_due;    /**< a PROBE of pmtu.size must go */
	bool failed;      /**< retries exhausted: the core must end it (RT-7) */
	bool too_narrow;  /**< ... because the path takes no packets of that length any more */
	bool crowded;     /**< the peer has no place for what it is sent: one packet at a time */
	bool pace_wait;   /**< pace_ns is a deadline */
	uint8_t nb_tails; /**< tail-loss probes sent, no progress since */
	bool again_data;  /**< of lost requests and pull data, the latter went last */
	bool new_turn;    /**< a refused request left its turn to new packets */
	bool turn_left;   /**< in this visit */
	bool ackreq_owed; /**< the next packet asks for an ACK: something was resent */
	bool peer_serial_valid;
	bool is_lent;                /**< *setup* is not yet *narrow* */
	uint8_t odd;                 /**< enum san_odd; 0: its packets may go by express */
	uint8_t rnr_round_out;       /**< tl: newest RNR round seen (design, rule 4) */
	uint32_t cmpl_out;           /**< tl: our target side's cumulative completed RSN (PCB-5) */
	uint32_t cmpl_in;            /**< the peer's, newest seen */
	struct san_pdl_txblock *txb; /**< *narrow*, or of the pool; NULL: nothing is outstanding */
	/* cache line 1: sending */
	struct san_pdl_txw tx[SAN_WIN_MAX];
	struct san_pdl_pcb pcb;
	uint8_t ackreq_count; /**< packets since the last AckReq */
	uint8_t nb_probes;    /**< unanswered PROBEs */
	uint8_t probe_exp;    /**< doublings of the interval between PROBEs for held packets */
	uint8_t nb_ports;
	uint8_t port_idx;
	uint8_t nb_copies; /**< packets that had come before, since something new came */
	uint16_t mtu_max;  /**< payload bytes per packet that both ends take */
	uint16_t bad_rtts;
	uint16_t plb_wait;         /**< bad round trips beyond the configured number */
	bool plb_sample, plb_good; /**< in this round trip: any sample, any good one */
	/* cache lines 2, 3: ACK policy, timers */
	struct san_pdl_ackst ack;
	struct san_timer timer;    /**< armed for the earliest of these deadlines */
	uint64_t rtx_deadline_ns;  /**< timeout scan: pdl_rtx */
	uint64_t hole_deadline_ns; /**< a hole becomes old enough */
	uint64_t tlp_deadline_ns;  /**< tail-loss probe */
	uint64_t pace_ns;          /**< next paced packet not before */
	uint64_t tl_deadline_ns;   /**< tl's own: RNR delay, grant lapse */
	uint64_t cm_deadline_ns;   /**< cm's own: retry, keep-alive */
	struct san_pdl_pmtu pmtu;
	struct san_pdl_piece piece;
	uint64_t last_rx_ns;
	/* cache lines 4 to 6: what an ACK changes */
	struct san_pdl_rtt rtt;
	struct san_pdl_cc cc;
	uint32_t peer_serial;   /**< newest ACK seen */
	uint32_t last_echo;     /**< echo_tx of the newest sample: each counts once */
	uint16_t peer_ecn;      /**< its ecn_count */
	uint16_t peer_level;    /**< its buffer level */
	uint16_t rx_first_win;  /**< the first window in our ACKs; cm may set it (PCB-1) */
	uint16_t held_by;       /**< tl: index in nb_held */
	uint64_t last_ack_ns;   /**< newest dedicated ACK */
	uint64_t probe_ns;      /**< last PROBE */
	uint64_t cnp_ns;        /**< last CNP sent */
	uint32_t copy_serial;   /**< our newest ACK when a copy came last */
	uint32_t nb_timer_lost; /**< holes that a timer found since the last ACK */
	uint64_t plb_round_ns;  /**< path (RT-28): this round trip ends */
	/* lists */
	TAILQ_ENTRY(san_pdl_conn)
	ready_link;
	TAILQ_ENTRY(san_pdl_conn)
	wait_link;
	TAILQ_ENTRY(san_pdl_conn)
	ack_link;
	/* receive windows: the words near the base are touched */
	struct san_pdl_rxw rx[SAN_WIN_MAX];
	/* path (RT-28) */
	struct san_wire_path path;
	uint16_t ports[SAN_WIRE_CM_PORTS]; /**< source ports that steer to the peer's lcore */
	/** In SAN_PDL_PATIENCE_MS; 0: as many retries as conf says. (RT-7) */
	uint16_t patience;
	uint32_t stalled_ms; /**< first retry of the last silence, by the clock's low bits */
	/* counters of the connection, for show */
	uint64_t nb_tx_pkts, nb_rx_pkts;
	uint32_t nb_rtx, nb_early, nb_tlp, nb_rto, nb_dup;
	uint32_t oow_tick; /**< newest ACK that told of a packet beyond its window; 0: none */
	union {
		/* what is outstanding, unless a block of the pool holds it */
		struct san_pdl_narrow narrow;
		/*
		 * whoever sets the connection up, until something is sent on it; and, if it
		 * never was opened, until the slot is taken again
		 */
		_Alignas(8) uint8_t setup[SAN_PDL_SETUP];
	};
} __rte_cache_aligned;
static_assert(sizeof(struct san_pdl_conn) <= 896, "doc/architecture.md: what a connection costs");
static_assert(offsetof(struct san_pdl_conn, tx) == 64, "cache line 0: every packet");

TAILQ_HEAD(san_pdl_conns, san_pdl_conn);

/** Per-lcore counters besides drop reasons. */
struct san_pdl_stats {
	uint64_t nb_rtx;   /**< packets sent again */
	uint64_t nb_early; /**< of those, for a hole (RT-22) */
	uint64_t nb_tlp;   /**< tail-loss probes */
	uint64_t nb_rto;   /**< timeouts */
	uint64_t nb_probe_tx;
	uint64_t nb_ack_tx, nb_ack_rx;
	uint64_t nb_acks_piggy;   /**< owed ACKs that a reverse packet carried */
	uint64_t nb_path_changes; /**< RT-28 */
	uint64_t nb_mtu_raised;   /**< longer packets found to get through (RT-31) */
	uint64_t nb_mtu_lowered;  /**< longer packets found not to get through (RT-37) */
	uint64_t nb_pieces_tx;    /**< packets that were a part of one (RT-37) */
	uint64_t nb_resync_tx;
	uint64_t nb_withdrawn; /**< PSNs turned into RESYNC */
	uint64_t nb_cc_cuts;
	uint64_t nb_failed; /**< connections whose retries were exhausted */
	uint64_t nb_cnp_tx, nb_cnp_rx;
	uint64_t nb_oow;          /**< ACKs that told of a packet beyond the peer's window */
	uint64_t nb_budget_waits; /**< times a connection queued for host budget (PCB-4) */
	uint64_t nb_narrow;       /**< visits and packets that found no memory for a wide window */
};

/** Whose connections take turns with those of others, however many they are. */
struct san_pdl_owner {
	struct san_pdl_conns ready; /**< may have something to send */
	TAILQ_ENTRY(san_pdl_owner)
	link;              /**< if *ready* is not empty */
	int32_t credit;    /**< bytes left of its turn; below zero: it took more */
	uint32_t nb_slots; /**< that it has taken and not given back; not of owner 0 */
};

struct san_pdl {
	struct san_pdl_conf conf;
	char cc_name[8]; /**< of conf.cc, which another process has elsewhere */
	struct san_wheel wheel;
	struct san_prng prng;
	struct san_pdl_conn *conns;   /**< max_conns, by slot */
	struct san_pdl_owner *owners; /**< nb_owners */
	TAILQ_HEAD(, san_pdl_owner)
	turns;                          /**< owners whose connections may have something to send */
	struct san_pdl_owner *turn;     /**< whose it was last */
	struct san_pdl_owner *visited;  /**< one of its connections is, now */
	struct san_pdl_conns wait;      /**< waiting for host budget (PCB-4) */
	struct san_pdl_conns acks;      /**< owe an ACK, a PROBE or a CNP */
	struct san_pdl_conns held_acks; /**< will owe an ACK, unless an answer carries it first */
	uint32_t inflight;              /**< sum over all connections: never above budget_pkts */
	uint32_t nb_tokens;             /**< budget reserved for connections just woken */
	uint16_t rx_level;              /**< core: receive-buffer fill, 0 .. 1000 */
	uint32_t rx_free;               /**< core: packets that may still be held, if any are */
	const uint32_t *nb_held;        /**< tl: packets held of each peer host */
	uint64_t rx_gap_ns;             /**< core: packets may have waited for us so long */
	uint64_t grace_ns;              /**< san_pdl_rx_gap(); 0: timers fire */
	uint32_t nb_active;
	uint32_t share; /**< budget_pkts / nb_active, but 1 at least and a window at most */
	/** Packets that a connection sends at the same time are due at the same time. */
	struct {
		const struct san_pdl_conn *conn;
		uint64_t now_ns, due_ns;
	} visit;
	struct san_pdl_wide *wide;       /**< max_wide */
	struct san_pdl_wide **free_wide; /**< the one that was returned last on top */
	uint32_t nb_free_wide;
	struct san_pdl_rxwords *rxwords; /**< max_wide for each window */
	struct san_pdl_rxwords **free_rxwords;
	uint32_t nb_free_rxwords;
	struct san_holders used_rxwords;
	uint32_t *free_slots; /**< ring: longest freed first */
	uint8_t *slot_owner;  /**< counted by; 0: nobody */
	uint32_t *next_cid;   /**< of the slot, without its lcore */
	uint32_t slot_mask;   /**< of a CID: san_pdl_slot_mask() */
	uint32_t free_head, free_count;
	uint32_t nb_conns;
	uint32_t nb_kept; /**< slots of connections that are gone, not given back yet */
	struct san_pdl_stats stats;
	uint64_t drops[SAN_DROP_MAX];
	/** Entries that the last ACK retired; whoever takes them sets nb_acked to 0. */
	uint32_t nb_acked;
	struct san_pdl_entry acked[SAN_WIN_REQ_MAX + SAN_WIN_DATA_MAX];
};

/* ---- pdl_conn.c: connections, CIDs, tags ---- */

/** Allocate everything; -ENOMEM, -EINVAL (a value out of range). */
int san_pdl_create(const struct san_pdl_conf *conf, uint64_t now_ns, struct san_pdl **out);
void san_pdl_destroy(struct san_pdl *pdl);
/**
 * It lay parked in conf->mem: functions and link speed are those of *conf* from now on. -EINVAL:
 * its congestion control is unknown here.
 */
int san_pdl_resume(struct san_pdl *pdl, const struct san_pdl_conf *conf);
/** Our MAC address, which was *old*, is *mac*, for every connection. */
void san_pdl_set_mac(struct san_pdl *pdl, const struct rte_ether_addr *old,
		     const struct rte_ether_addr *mac);

/** What both sides agreed on; path already filled into the connection. */
struct san_pdl_peer {
	uint32_t dcid, dtag;
	uint32_t req_psn, data_psn;       /**< first PSNs of the peer */
	uint16_t mtu;                     /**< payload bytes per packet that both ends take */
	uint16_t tx_req_win, tx_data_win; /**< the peer's receive windows */
	uint16_t first_win, msg_limit;
	uint16_t nb_ports;
	uint16_t ports[SAN_WIRE_CM_PORTS];
	bool ordered, relaxed, ends;
};

/**
 * Take a slot, choose CID, tag and first PSNs (tx[].next), state SETUP.
 * Receive windows get *rx_req_win* and *rx_data_win* when it opens.
 * -ENOSPC: every slot is in use.
 */
int san_pdl_conn_add(struct san_pdl *pdl, struct san_pdl_conn **out);
/** It is *owner*'s, from before it opens until its slot is given back. */
void san_pdl_conn_give(struct san_pdl *pdl, struct san_pdl_conn *c, uint8_t owner);
/** Slots that *owner*, not 0, keeps others from taking. */
uint32_t san_pdl_owner_slots(const struct san_pdl *pdl, uint8_t owner);
/** SETUP → OPEN. */
void san_pdl_conn_open(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_pdl_peer *peer,
		       uint16_t rx_req_win, uint16_t rx_data_win, uint64_t now_ns);
/** From OPEN to CLOSING: it sends nothing of its own any more, and waits for nothing. */
void san_pdl_conn_close(struct san_pdl *pdl, struct san_pdl_conn *c);
/** Release everything it holds but its slot. Outstanding entries are forgotten. */
void san_pdl_conn_del(struct san_pdl *pdl, struct san_pdl_conn *c);
/** After that: the slot may be taken again. */
void san_pdl_slot_give(struct san_pdl *pdl, uint16_t slot);
/** By CID; NULL if free or of another incarnation. */
struct san_pdl_conn *san_pdl_conn_find(struct san_pdl *pdl, uint32_t cid);
/** lcore part of a CID. */
uint8_t san_pdl_cid_lcore(uint32_t cid);
/** Bits of a CID that are the slot, on an lcore of *max_conns* connections. */
static inline uint32_t
san_pdl_slot_mask(uint32_t max_conns)
{
	return rte_align32pow2(max_conns) - 1;
}
/** Re-arm the wheel timer for the earliest deadline of the connection. */
void san_pdl_conn_arm(struct san_pdl *pdl, struct san_pdl_conn *c);
/** It can't go on: the core ends it with its next timer, which fires at once. */
void san_pdl_conn_fail(struct san_pdl *pdl, struct san_pdl_conn *c);
/** Every invariant of windows, counters and lists. For tests. */
void san_pdl_check(const struct san_pdl *pdl);

/* ---- pdl_rx.c: one received packet in three steps ---- */

/**
 * Step 1: does the packet belong here? CID, state, source address, tag,
 * P_Key — in this order, before anything changes; wrong ones are counted by
 * the caller. Then the ACK fields are applied (retired entries are appended to
 * pdl->acked), and the PSN is placed in its window.
 *
 * @param ack
 *   For SAN_OP_ACK, otherwise NULL.
 * @return
 *   NONE: a packet for tl (RESYNC and NACK included), or of no window and done
 *   (ACK, PROBE, CNP). OLD, DUPLICATE, BEYOND: its ACK part was used, an ACK is
 *   owed, the packet is to be freed. Others: it changed nothing.
 */
enum san_drop san_pdl_rx_check(struct san_pdl *pdl, struct san_wire_pkt *p,
			       const struct san_wire_ack *ack, uint64_t now_ns,
			       struct san_pdl_conn **conn);

/** tl's answer to a packet of a window. */
enum san_verdict {
	SAN_RX_REFUSED,  /**< bit stays clear; no mention in ACKs (RT-33) */
	SAN_RX_RECEIVED, /**< taken, not yet acknowledged (RT-18) */
	SAN_RX_ACKED,    /**< taken and acknowledged */
};

/**
 * Step 2: record tl's verdict, update ACK policy. The window follows from p->op.
 * Comes before the next packet of the connection is checked: a copy of this one
 * in the same burst is then a duplicate.
 */
void san_pdl_rx_commit(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
		       enum san_verdict verdict, uint64_t now_ns);
/** Later: a received PSN of the data window is placed, or its ULP-ACK came. */
void san_pdl_rx_ack(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t psn, uint64_t now_ns);
/** Later: a received PSN of the data window was dropped after all. */
void san_pdl_rx_revoke(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t psn);
/** The window that packets of this kind travel in, or SAN_WIN_MAX for none. */
enum san_win san_pdl_win_of(uint8_t op, uint8_t flags);

/**
 * Express: is *p* of *c*, which is not odd, and without a mark? Its source address is the
 * caller's to compare. Changes nothing, and neither does the next.
 */
bool san_pdl_express_of(const struct san_pdl_conn *c, const struct san_wire_pkt *p);
/** Is its PSN the one behind the next *nb_taken* of the data window, where nothing is held? */
bool san_pdl_express(const struct san_pdl_conn *c, const struct san_wire_pkt *p,
		     uint16_t nb_taken);
/** It is taken: what it says of our packets first, as san_pdl_rx_check() has it ... */
void san_pdl_express_ack(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_wire_pkt *p,
			 uint16_t nb_taken, uint64_t now_ns);
/** ... and when all are placed, their PSNs: san_pdl_rx_commit() of each with SAN_RX_ACKED. */
void san_pdl_express_take(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t nb_taken,
			  bool ackreq, uint64_t now_ns);

/* ---- pdl_tx.c, pdl_sched.c: what goes next ---- */

/** Express: the entry of the next PSN of the data window. The caller writes its first part. */
struct san_pdl_entry *san_pdl_express_assign(struct san_pdl *pdl, struct san_pdl_conn *c);
/**
 * The *n* taken last go, with *bytes* of payload, *longest* of them at most in one: what else
 * san_pdl_tx_assign() does of each.
 */
void san_pdl_express_sent(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t n, uint32_t bytes,
			  uint16_t longest, uint64_t now_ns);

/** Put a connection on the ready list. Call after anything that may let it send; harmless. */
void san_pdl_kick(struct san_pdl *pdl, struct san_pdl_conn *c);
/** The handshake went there and back in *rtt_ns*: the first sample of its round trip. */
void san_pdl_conn_path(const struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t rtt_ns);
/** True if a connection waits for its visit or owes an ACK: do not sleep. */
bool san_pdl_has_work(const struct san_pdl *pdl);
/** Next connection that may have something to send, taken off the list; NULL: none. */
struct san_pdl_conn *san_pdl_sched_next(struct san_pdl *pdl);
/** Probably the next one after that, or NULL: to be fetched from memory. */
const struct san_pdl_conn *san_pdl_sched_peek(const struct san_pdl *pdl);

/** How many new packets may go now. */
struct san_pdl_room {
	uint16_t nb_req;    /**< room in the request window */
	uint16_t nb_data;   /**< room in the data window */
	uint16_t nb_credit; /**< virtual window, congestion window, pacing, host budget:
			     *   for all but grants and RESYNC */
};
/**
 * Room of *c* for new packets; takes a txblock if it has none. When only the host
 * budget holds it back, the connection is queued for budget; when only pacing does,
 * its timer is armed: it will come back by itself. In all other cases an ACK or a
 * post brings it back.
 */
void san_pdl_tx_room(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns,
		     struct san_pdl_room *room);
/** A new packet: assign the next PSN of its window and remember it. e->psn is set. */
void san_pdl_tx_assign(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_pdl_entry *e,
		       uint64_t now_ns);
/**
 * A lost PSN that may go again now, marked as sent; NULL: none, or it is the
 * turn of what is new. Lowest PSN of each window first, and of the two windows
 * the lower RSN (ordered) or each in turn. The entry stays the window's.
 * One that is longer than c->mtu goes in pieces: this time the one in c->piece.
 */
struct san_pdl_entry *san_pdl_tx_again(struct san_pdl *pdl, struct san_pdl_conn *c,
				       uint64_t now_ns);
/**
 * Common header of any packet of the connection: CID, tag, P_Key, eBSNs, message
 * ACK, time, AckReq; p->op is read, the rest of *p* is not touched. An owed
 * ACK that the packet carries is cancelled. The last packet of a visit asks for an ACK in any
 * case (design, rule 11): the caller, which alone knows, calls san_wire_ask_ack() then.
 * Returned: how many packets may be under way, for the rest of the visit; 0: not known yet.
 */
uint32_t san_pdl_tx_header(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_wire_pkt *p,
			   uint64_t now_ns);
/**
 * That of the next packet of a window in the same visit and the same *p*: only AckReq differs.
 * *limit*: what san_pdl_tx_header() returned.
 */
void san_pdl_tx_header_next(const struct san_pdl *pdl, struct san_pdl_conn *c,
			    struct san_wire_pkt *p, uint32_t limit);
/**
 * The visit is over: always after san_pdl_sched_next(). *more*: it stopped for
 * its quantum, not for lack.
 */
void san_pdl_tx_end(struct san_pdl *pdl, struct san_pdl_conn *c, bool more);
/** Owe the ACKs that were held long enough: before san_pdl_ack_next(). */
void san_pdl_ack_release(struct san_pdl *pdl, uint64_t now_ns);
/** When san_pdl_ack_release() has something to do. */
uint64_t san_pdl_ack_deadline_ns(const struct san_pdl *pdl);
/** May there be one for san_pdl_ack_next()? */
static inline bool
san_pdl_has_acks(const struct san_pdl *pdl)
{
	return !TAILQ_EMPTY(&pdl->acks);
}
/** Next connection that owes an ACK or PROBE now, taken off the list; NULL: none. */
struct san_pdl_conn *san_pdl_ack_next(struct san_pdl *pdl, uint64_t now_ns);
/**
 * Fill all of *p*: a dedicated ACK, or a PROBE or CNP when one of those is due:
 * then p->op says so and *ack* is unused, and the caller gives the packet a payload
 * of p->payload_len zeros. What else the connection owes is the next of
 * san_pdl_ack_next().
 */
void san_pdl_ack_fill(struct san_pdl *pdl, struct san_pdl_conn *c, struct san_wire_pkt *p,
		      struct san_wire_ack *ack, uint64_t now_ns);
/** An ACK is owed at once (duplicate, overrun, ULP-ACK with AckReq ...). */
void san_pdl_ack_now(struct san_pdl *pdl, struct san_pdl_conn *c);
/** A PROBE is owed at once (keep-alive, no progress). */
void san_pdl_probe_now(struct san_pdl *pdl, struct san_pdl_conn *c);

/* ---- pdl_pcb.c, pdl_hold.c: for show ---- */

/** Virtual window (PCB-2). */
uint32_t san_pdl_pcb_vwin(const struct san_pdl *pdl, const struct san_pdl_conn *c);
/** Packets in flight allowed: virtual and congestion window. */
uint32_t san_pdl_pcb_limit(const struct san_pdl *pdl, const struct san_pdl_conn *c);
/** What keeps a new packet of *c* for window *win* back, if there is one. Changes nothing. */
enum san_hold san_pdl_hold(const struct san_pdl *pdl, const struct san_pdl_conn *c,
			   enum san_win win, uint64_t now_ns);

/** While the peer has no place for anything that it is sent, its window is one packet (RT-35). */
void san_pdl_tx_crowded(struct san_pdl *pdl, struct san_pdl_conn *c, bool crowded);

/* ---- pdl_rtx.c: retransmission engine ---- */

/**
 * Turn unacknowledged PSNs of push data of RSN *rsn* (and, with *onward*, of
 * every later RSN) into RESYNC(code), to be sent at once (design, rules 4, 5).
 * Returns how many.
 */
uint32_t san_pdl_tx_withdraw(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t rsn, bool onward,
			     uint8_t code);
/** A NACK(RESOURCE) for *psn*: resend it after *delay_ns*, same PSN. That is no retry. */
void san_pdl_tx_defer(struct san_pdl *pdl, struct san_pdl_conn *c, enum san_win win, uint32_t psn,
		      uint64_t delay_ns, uint64_t now_ns);
/** True while *psn* is assigned and not acknowledged in *win*. */
bool san_pdl_tx_is_outstanding(const struct san_pdl_conn *c, enum san_win win, uint32_t psn);
/** True if a PROBE that carried *psn* is not answered yet: it takes no PSN of its own. */
bool san_pdl_probe_is_outstanding(const struct san_pdl_conn *c, uint32_t psn);
/**
 * The packets that follow may have waited for us for *gap_ns*. After a long gap what our timers
 * wait for may be behind them, or on its way: until pdl->grace_ns they do not fire.
 */
void san_pdl_rx_gap(struct san_pdl *pdl, uint64_t gap_ns, uint64_t now_ns);
/**
 * The connection's timer fired: coalescing, holes, tail-loss probe, timeouts,
 * pacing. May set c->failed. The caller re-arms with san_pdl_conn_arm().
 */
void san_pdl_on_timer(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns);

#endif /* PDL_H */
