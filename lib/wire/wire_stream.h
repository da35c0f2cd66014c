/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_STREAM_H
#define WIRE_STREAM_H

/**
 * @file
 * Messages of stream sessions, as they travel in sends: a header, parts that the header's
 * flags name, and payload, which is the stream's bytes. Everything is big-endian. No DPDK,
 * because sessions also run over other providers. (AFC-3; doc/wire.md, doc/stream.md)
 */

#include <stdbool.h>
#include <stdint.h>

#define SAN_SM_VERSION 1
#define SAN_SM_HDR     28  /**< bytes of the header, without parts */
#define SAN_SM_SEGS    4   /**< pieces of memory that one location has at most */
#define SAN_SM_ADVS    4   /**< advertisements in one message, at most */
#define SAN_SM_WDONES  8   /**< completed writes in one message, at most */
#define SAN_SM_HDR_MAX 520 /**< bytes of header and parts, at most */

/** Parts follow the header in the order of these bits; facts have no bytes of their own. */
enum san_sm_flag {
	SAN_SM_HELLO = 1u << 0,      /**< the first message (AFC-2) */
	SAN_SM_WDONE = 1u << 1,      /**< advertised sets that have their bytes (AFC-7) */
	SAN_SM_ADV = 1u << 2,        /**< posted buffer sets (AFC-7) */
	SAN_SM_NOTICE = 1u << 3,     /**< the payload begins a large send (AFC-5) */
	SAN_SM_OFFER = 1u << 4,      /**< likewise, and here is the rest (AFC-8) */
	SAN_SM_RDONE = 1u << 5,      /**< an offer is given back (AFC-8, AFC-28) */
	SAN_SM_SMALL = 1u << 6,      /**< send the rest in messages (AFC-5) */
	SAN_SM_RESIZE = 1u << 7,     /**< larger message buffers, please (AFC-18) */
	SAN_SM_RESIZED = 1u << 8,    /**< the answer */
	SAN_SM_URGENT = 1u << 9,     /**< an urgent byte is on its way (AFC-1) */
	SAN_SM_CANCEL = 1u << 10,    /**< advertisements are withdrawn (AFC-28) */
	SAN_SM_CANCELLED = 1u << 11, /**< the answer: nothing more comes through them */
	/* facts */
	SAN_SM_INITIAL = 1u << 16,     /**< payload is an initial portion: not counted in S and R */
	SAN_SM_LARGE = 1u << 17,       /**< payload is of a large send, the rest in messages */
	SAN_SM_URGENT_BYTE = 1u << 18, /**< payload is the urgent byte */
	SAN_SM_FIN = 1u << 19,         /**< nothing follows the payload */
	SAN_SM_UPDATE = 1u << 20,      /**< goes for its credit: may take the last one (AFC-16) */
	SAN_SM_REDISCOVER = 1u << 21,  /**< a large buffer is posted: leave small receive mode */
	SAN_SM_WITHDRAW = 1u << 22,    /**< the rest of a notice or offer won't come (AFC-28) */
	SAN_SM_ACCEPTOR = 1u << 23,    /**< HELLO: sent by the side that accepted */
};
#define SAN_SM_PARTS 0x00000fffu
#define SAN_SM_FACTS 0x00ff0000u

/** How a sender moves data: its mode (AFC-6, AFC-22). */
enum san_sm_mode {
	SAN_SM_DISCOVERY = 0,
	SAN_SM_SMALL_RECV = 1,  /**< everything in messages */
	SAN_SM_LARGE_RECV = 2,  /**< receivers advertise */
	SAN_SM_SMALL_LARGE = 3, /**< small receive, then large */
	SAN_SM_MODES
};

/** A piece of memory, as the other side calls it. */
struct san_sm_seg {
	uint64_t addr;
	uint32_t len;
	uint32_t key;
};

struct san_sm_where {
	struct san_sm_seg seg[SAN_SM_SEGS];
	uint8_t nb_seg;
};

/** A message in host order; which fields mean something depends on *flags*. */
struct san_sm {
	uint32_t flags; /**< enum san_sm_flag */
	uint8_t mode;   /**< enum san_sm_mode: of what the sender of this sends */
	uint16_t pr;    /**< receives posted (AFC-14) */
	uint16_t len;   /**< bytes of payload */
	uint32_t seq;
	uint32_t lrsq;     /**< highest received without a gap before it */
	uint32_t nb_rcvd;  /**< R: data messages received, initial portions not counted (AFC-12) */
	uint32_t nb_freed; /**< messages with payload whose room is free again (AFC-27) */
	/* HELLO */
	struct {
		uint16_t nb_store;  /**< messages that may be unread */
		uint16_t nb_adv;    /**< advertisements it can keep */
		uint32_t msg_size;  /**< bytes of a message, at most */
		uint32_t threshold; /**< bytes of what is large */
		bool can_read;      /**< it can read remote memory */
	} hello;
	/* WDONE */
	struct {
		uint32_t id;
		uint32_t bytes;
	} wdone[SAN_SM_WDONES];
	uint8_t nb_wdone;
	/* ADV */
	struct san_sm_adv {
		uint32_t id;
		bool after; /**< posted after the notice: not directly */
		struct san_sm_where where;
	} adv[SAN_SM_ADVS];
	uint8_t nb_adv;
	/* NOTICE, OFFER */
	uint32_t send_id; /**< not 0 */
	uint32_t rest;    /**< bytes behind the payload */
	struct san_sm_where offer;
	/* RDONE */
	struct {
		uint32_t id;
		uint32_t bytes;
		uint8_t mode; /**< the class of its buffers */
	} rdone;
	uint32_t small_id; /**< SMALL: the notice it answers; 0: none, what is posted is small */
	uint32_t resize;   /**< RESIZE: bytes wanted */
	/* RESIZED */
	struct {
		uint32_t bytes; /**< that there are */
		uint32_t after; /**< messages behind this number find buffers of that size */
	} resized;
	uint32_t urgent;    /**< URGENT: how many bytes of the stream come before it, mod 2^32 */
	uint32_t cancel;    /**< CANCEL: up to this advertisement of the sender's */
	uint32_t cancelled; /**< CANCELLED: up to this one of the other side's */
};

/** Bytes of header and parts of *m*: SAN_SM_HDR to SAN_SM_HDR_MAX. */
uint32_t san_wire_stream_len(const struct san_sm *m);
/**
 * Write header and parts; *p* has san_wire_stream_len() bytes at least. Lists are within their
 * limits, and *m* is a message that the other side takes: see san_wire_stream_get().
 */
void san_wire_stream_put(const struct san_sm *m, uint8_t *p);
/**
 * Read header and parts of a message of *len* bytes.
 *
 * @param payload
 *   Where the payload begins.
 * @return
 *   0, or -EBADMSG: not a message of this version; its lengths do not fit; flags that do not go
 *   together (NOTICE with OFFER, or INITIAL or ACCEPTOR without what they speak of);
 *   or a value out of range. Nothing of *m* is to be used then.
 */
int san_wire_stream_get(const uint8_t *p, uint32_t len, struct san_sm *m, uint32_t *payload);

#endif /* WIRE_STREAM_H */
