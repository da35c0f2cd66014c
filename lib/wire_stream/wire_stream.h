/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Messages of stream sessions, as transferred in sends: a header, the parts that its flags name,
 * and the payload, which is the bytes of the stream. Everything is big-endian. No DPDK, because
 * sessions also run over other providers. (AFC-3; doc/wire.md, doc/stream.md)
 */

#include <stdbool.h>
#include <stdint.h>

#include "rtsan_abi.h"

#define SAN_SM_VERSION 1
#define SAN_SM_HDR     28  /**< bytes of the header, without parts */
#define SAN_SM_SEGS    4   /**< most pieces of memory of one location */
#define SAN_SM_ADVS    4   /**< most advertisements in one message */
#define SAN_SM_WDONES  8   /**< most completed writes in one message */
#define SAN_SM_HDR_MAX 520 /**< most bytes of header and parts */

/** Parts follow the header in the order of these bits; facts have no bytes. */
enum san_sm_flag {
	SAN_SM_HELLO = 1u << 0,      /**< the first message (AFC-2) */
	SAN_SM_WDONE = 1u << 1,      /**< advertised buffer sets whose bytes are written (AFC-7) */
	SAN_SM_ADV = 1u << 2,        /**< posted buffer sets (AFC-7) */
	SAN_SM_NOTICE = 1u << 3,     /**< the payload begins a large send (AFC-5) */
	SAN_SM_OFFER = 1u << 4,      /**< likewise, and where the rest can be read (AFC-8) */
	SAN_SM_RDONE = 1u << 5,      /**< an offer is returned (AFC-8, AFC-28) */
	SAN_SM_SMALL = 1u << 6,      /**< send the rest in messages (AFC-5) */
	SAN_SM_RESIZE = 1u << 7,     /**< request for larger message buffers (AFC-18) */
	SAN_SM_RESIZED = 1u << 8,    /**< answer to RESIZE */
	SAN_SM_URGENT = 1u << 9,     /**< an urgent byte will follow (AFC-1) */
	SAN_SM_CANCEL = 1u << 10,    /**< advertisements are withdrawn (AFC-28) */
	SAN_SM_CANCELLED = 1u << 11, /**< answer to CANCEL: nothing more is written to them */
	/* facts */
	SAN_SM_INITIAL = 1u << 16,     /**< payload is an initial portion: not counted in S and R */
	SAN_SM_LARGE = 1u << 17,       /**< payload is of a large send; messages bring the rest */
	SAN_SM_URGENT_BYTE = 1u << 18, /**< payload is the urgent byte */
	SAN_SM_FIN = 1u << 19,         /**< nothing follows after the payload */
	SAN_SM_UPDATE = 1u << 20,      /**< sent to return credit: may use the last one (AFC-16) */
	SAN_SM_REDISCOVER = 1u << 21,  /**< a large buffer is posted: leave small receive mode */
	SAN_SM_WITHDRAW = 1u << 22,    /**< the rest of a notice or offer will not come (AFC-28) */
	SAN_SM_ACCEPTOR = 1u << 23,    /**< HELLO: sent by the side that accepted */
};
#define SAN_SM_PARTS 0x00000fffu
#define SAN_SM_FACTS 0x00ff0000u

/** Mode of a sender: how it transfers data (AFC-6, AFC-22). */
enum san_sm_mode {
	SAN_SM_DISCOVERY = 0,
	SAN_SM_SMALL_RECV = RTSAN_STREAM_SMALL_RECV,   /**< everything in messages */
	SAN_SM_LARGE_RECV = RTSAN_STREAM_LARGE_RECV,   /**< receivers advertise */
	SAN_SM_SMALL_LARGE = RTSAN_STREAM_SMALL_LARGE, /**< small receive, then large */
	SAN_SM_MODES
};

/** A piece of memory, in the terms of the side that owns it. */
struct san_sm_seg {
	uint64_t addr;
	uint32_t len;
	uint32_t key;
};

struct san_sm_where {
	struct san_sm_seg seg[SAN_SM_SEGS];
	uint8_t nb_seg;
};

/** Reports of any message; its flags say which are there. */
struct san_sm_reports {
	struct {
		uint32_t id;
		uint32_t bytes;
		uint8_t mode; /**< mode that fits its buffers */
	} rdone;
	uint32_t small_id; /**< SMALL: the notice answered; 0: none, the posted buffers are small */
	uint32_t resize;   /**< RESIZE: bytes wanted */
	struct {
		uint32_t bytes; /**< current size */
		uint32_t after; /**< messages after this number have buffers of that size */
	} resized;
	uint32_t urgent;    /**< URGENT: stream bytes before the urgent byte, mod 2^32 */
	uint32_t cancel;    /**< CANCEL: up to this advertisement of the sender */
	uint32_t cancelled; /**< CANCELLED: up to this advertisement of the receiver */
};

/** A message in host order; *flags* decides which fields are valid. */
struct san_sm {
	uint32_t flags; /**< enum san_sm_flag */
	uint8_t mode;   /**< enum san_sm_mode of the sender of this message */
	uint16_t pr;    /**< receives posted (AFC-14) */
	uint16_t len;   /**< bytes of payload */
	uint32_t seq;
	uint32_t lrsq;     /**< highest number received without a gap before it */
	uint32_t nb_rcvd;  /**< R: data messages received, initial portions not counted (AFC-12) */
	uint32_t nb_freed; /**< messages with payload whose buffers are free again (AFC-27) */
	/* HELLO */
	struct {
		uint16_t nb_store;  /**< number of messages that may be unread */
		uint16_t nb_adv;    /**< number of advertisements that it can store */
		uint32_t msg_size;  /**< largest message, bytes */
		uint32_t threshold; /**< bytes from which a send is large */
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
		bool after; /**< posted after the notice: no direct write */
		struct san_sm_where where;
	} adv[SAN_SM_ADVS];
	uint8_t nb_adv;
	/* NOTICE, OFFER */
	uint32_t send_id; /**< not 0 */
	uint32_t rest;    /**< bytes after the payload */
	struct san_sm_where offer;
	struct san_sm_reports rep;
};

/** Bytes of header and parts of *m*: SAN_SM_HDR to SAN_SM_HDR_MAX. */
uint32_t san_wire_stream_len(const struct san_sm *m);
/**
 * Write header and parts to *p*, which has room for san_wire_stream_len() bytes. Lists are within
 * their limits, and *m* is a message that san_wire_stream_get() accepts.
 */
void san_wire_stream_put(const struct san_sm *m, uint8_t *p);
/**
 * Read header and parts of a message of *len* bytes.
 *
 * @param payload
 *   Offset of the payload.
 * @return
 *   0, or -EBADMSG: not a message of this version; lengths do not match; flags contradict each
 *   other (NOTICE with OFFER, or INITIAL or ACCEPTOR without the flags they refer to); or a
 *   value is out of range. *m* is invalid then.
 */
int san_wire_stream_get(const uint8_t *p, uint32_t len, struct san_sm *m, uint32_t *payload);
