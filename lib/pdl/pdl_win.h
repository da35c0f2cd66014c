/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * PSN sliding windows: in each direction one window for requests and one for data (RT-2 .. RT-6,
 * RT-18; RULE-1, RULE-2, RULE-16).
 *
 * The base is the lowest PSN not acknowledged. "Received" is a hint: it holds retransmission back
 * and can be revoked. "Acknowledged" is final.
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "san_bitmap.h"
#include "san_counters.h"
#include "san_holders.h"
#include "san_line.h"

/** The two windows of a direction (RT-2). */
enum san_win {
	SAN_WIN_REQ = 0,  /**< requests */
	SAN_WIN_DATA = 1, /**< grants, push data, pull data */
	SAN_WIN_MAX = 2
};

#define SAN_WIN_REQ_MAX  256 /**< packets; an ACK carries this many bits */
#define SAN_WIN_DATA_MAX SAN_BITMAP_BITS
#define SAN_WIN_MIN      2

/**
 * A receive window. Its bitmaps are narrow until a PSN beyond SAN_BITMAP_NARROW arrives. Then both
 * are wide.
 */
struct san_pdl_rxw {
	uint32_t base; /**< eBSN: lowest PSN not acknowledged */
	uint32_t high; /**< one past the highest PSN received */
	uint32_t size;
	struct san_bitmap rcvd;  /**< received (includes acknowledged) */
	struct san_bitmap acked; /**< acknowledged, above the base */
};

/** Memory that makes both bitmaps of a window wide. */
struct san_pdl_rxwords {
	struct san_holder holder;
	struct san_pdl_conn *conn; /**< connection that uses them */
	const struct san_pdl_rxw *window;
	uint64_t rcvd[SAN_BITMAP_WORDS];
	uint64_t acked[SAN_BITMAP_WORDS];
};

void san_pdl_win_rx_init(struct san_pdl_rxw *w, uint32_t psn, uint32_t size);
/** Find the position of a PSN (RT-5): NONE if it is new, else OLD, DUPLICATE or BEYOND. */
enum san_drop san_pdl_win_rx_classify(const struct san_pdl_rxw *w, uint32_t psn);
/** NEW → received. */
void san_pdl_win_rx_receive(struct san_pdl_rxw *w, uint32_t psn);
/** Received or NEW → acknowledged; slides the base over leading acknowledged bits. */
void san_pdl_win_rx_ack(struct san_pdl_rxw *w, uint32_t psn);
/** NEW → acknowledged. A PSN in order, as nearly all are, touches no bit. */
void san_pdl_win_rx_take(struct san_pdl_rxw *w, uint32_t psn);
/** Received, not acknowledged → NEW: the packet held was dropped (RT-33). */
void san_pdl_win_rx_revoke(struct san_pdl_rxw *w, uint32_t psn);
/** True if anything above the base is received: there is a gap or a held packet. */
static inline bool
san_pdl_win_rx_has_gap(const struct san_pdl_rxw *w)
{
	return w->high != w->base;
}
/** True if the bitmaps have a bit for *psn*, which is inside the window. */
static inline bool
san_pdl_win_rx_reaches(const struct san_pdl_rxw *w, uint32_t psn)
{
	return psn - w->base < san_bitmap_bits(&w->rcvd);
}
/** Make the bitmaps wide. *words* are zeros. */
void san_pdl_win_rx_widen(struct san_pdl_rxw *w, struct san_pdl_rxwords *words);
/** Make the bitmaps narrow even if bits are set. Returns the words unchanged. */
struct san_pdl_rxwords *san_pdl_win_rx_close(struct san_pdl_rxw *w);
/**
 * If the bitmaps are wide and no bit is set: make them narrow and return the words, which are
 * zeros. Else return NULL.
 */
struct san_pdl_rxwords *san_pdl_win_rx_narrow(struct san_pdl_rxw *w);
void san_pdl_win_rx_check(const struct san_pdl_rxw *w);

/**
 * Describes the packet under an outstanding PSN, so that it can be built again and no mbuf is kept
 * (RULE-16). The transaction sublayer fills the first part. It gets this part back
 * unchanged when the packet must be resent and when it is acknowledged.
 */
struct san_pdl_entry {
	uint32_t rsn;
	uint32_t offset;
	uint32_t aux;   /**< grant: SSN; push data and its RESYNC: RSNs beyond *rsn* (RT-34) */
	uint16_t len;   /**< payload bytes */
	uint8_t op;     /**< enum san_wire_op */
	uint8_t flags;  /**< enum san_wire_flag */
	uint8_t status; /**< grant status, RESYNC code */
	/* private to packet delivery */
	uint8_t retries; /**< timeouts of this PSN (RT-7) */
	uint8_t win;     /**< enum san_win */
	uint8_t state;   /**< enum san_pdl_entry_state */
	uint32_t psn;
	uint32_t sent_ts; /**< last transmission, low 32 bits of ns: an ACK echoes it */
	uint32_t due;     /**< its timeout, in units of 2^SAN_PDL_TICK_SHIFT ns, mod 2^32 */
};
static_assert(sizeof(struct san_pdl_entry) == SAN_LINE / 2, "two entries per cache line");

#define SAN_PDL_TICK_SHIFT 10

enum san_pdl_entry_state {
	SAN_ENT_FAST_RTX = 0x03, /**< mask: number of fast retransmits since the last timeout */
	SAN_ENT_PROBED = 0x04,   /**< reported received, and a PROBE asked for it (RULE-2) */
	SAN_ENT_DEFER = 0x08,    /**< refused for lack of resources: resent when due */
	SAN_ENT_TAIL = 0x10,     /**< resent by the tail-loss probe, which keeps its *due* */
	SAN_ENT_SENT = 0x20,     /**< sent at least once in its present form */
	SAN_ENT_REFUSED = 0x40,  /**< was deferred before: new packets may be sent first */
	SAN_ENT_SILENT = 0x80,   /**< timed out in silence, whose end restarts its timer */
};

/** State of the two transmit windows while anything is outstanding. */
struct san_pdl_txblock {
	struct san_bitmap acked[SAN_WIN_MAX];
	struct san_bitmap rcvd[SAN_WIN_MAX];   /**< reported received by the newest ACK */
	struct san_bitmap lost[SAN_WIN_MAX];   /**< must be sent again: loss, timeout, RESYNC */
	struct san_bitmap flight[SAN_WIN_MAX]; /**< counted in the in-flight sum of PCB-2 */
	struct san_pdl_entry *e[SAN_WIN_MAX];  /**< rings, indexed by PSN */
	uint32_t mask[SAN_WIN_MAX];            /**< sizes of the rings - 1 */
};

/** Block embedded in each connection: the smallest windows with which all rules hold. */
struct san_pdl_narrow {
	struct san_pdl_txblock b;
	struct san_pdl_entry req[1];
	struct san_pdl_entry data[2];
};

/** Block of the pool: for any window. */
struct san_pdl_wide {
	struct san_pdl_txblock b;
	uint64_t words[4 * SAN_WIN_MAX][SAN_BITMAP_WORDS];
	struct san_pdl_entry req[SAN_WIN_REQ_MAX];
	struct san_pdl_entry data[SAN_WIN_DATA_MAX];
};

struct san_pdl_txw {
	uint32_t base;         /**< lowest PSN not acknowledged */
	uint32_t next;         /**< NSN */
	uint32_t high;         /**< one past the highest PSN reported received, at least base */
	uint32_t size;         /**< size of the peer's receive window */
	uint32_t nb_lost;      /**< bits set in lost */
	uint32_t nb_lost_free; /**< of those, grants and RESYNC: they need no credit */
};

static inline uint32_t
san_pdl_win_tx_outstanding(const struct san_pdl_txw *w)
{
	return w->next - w->base;
}

static inline uint32_t
san_pdl_win_tx_room(const struct san_pdl_txw *w)
{
	uint32_t used = san_pdl_win_tx_outstanding(w);

	return used < w->size ? w->size - used : 0;
}

static inline struct san_pdl_entry *
san_pdl_win_tx_entry(struct san_pdl_txblock *b, enum san_win win, uint32_t psn)
{
	return &b->e[win][psn & b->mask[win]];
}

/** How many more packets *b* has memory for. */
static inline uint32_t
san_pdl_win_tx_memory(const struct san_pdl_txw *w, const struct san_pdl_txblock *b,
		      enum san_win win)
{
	return b->mask[win] + 1 - san_pdl_win_tx_outstanding(w);
}

void san_pdl_win_tx_init(struct san_pdl_txw *w, uint32_t psn, uint32_t size);
/** Initialize an empty block. The memory need not be zeros. */
struct san_pdl_txblock *san_pdl_win_narrow_init(struct san_pdl_narrow *n);
/** Likewise. A block that is returned with nothing outstanding needs no new initialization. */
void san_pdl_win_wide_init(struct san_pdl_wide *b);
/** Move the outstanding packets of *from* to *to*. */
void san_pdl_win_wide_take(struct san_pdl_wide *to, const struct san_pdl_narrow *from,
			   const struct san_pdl_txw w[SAN_WIN_MAX]);
/** Slide the base over all leading acknowledged bits and clear the bits that it passes. */
void san_pdl_win_tx_slide(struct san_pdl_txw *w, struct san_pdl_txblock *b, enum san_win win);
/**
 * Lowest PSN from *psn* on that is not acknowledged, reported received or lost; w->next if none.
 */
uint32_t san_pdl_win_tx_unreported(const struct san_pdl_txw *w, const struct san_pdl_txblock *b,
				   enum san_win win, uint32_t psn);
void san_pdl_win_tx_check(const struct san_pdl_txw *w, const struct san_pdl_txblock *b,
			  enum san_win win);
