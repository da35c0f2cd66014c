/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Stream sessions: a TCP byte stream over a provider of messages and remote memory access. The
 * session moves data in the way that fits the behaviour of the application best (AFC-1 ... AFC-28;
 * doc/stream.md). No I/O: requests, completions and time go in; requests for the provider and
 * completions for the application come out. The session knows no packets, no threads and no DPDK.
 *
 * The owner of a session calls san_stream_pump() once per burst, after the other calls; nothing is
 * sent before. So small sends posted together are sent together.
 *
 * Thread rule: one thread at a time per session; sessions share nothing.
 */

#include <stdbool.h>
#include <stdint.h>

#include "san_counters.h"
#include "san_wr.h"
#include "wire_stream.h"

#define SAN_STREAM_WAIT_MAX 16    /**< waits of one stream at a time */
#define SAN_STREAM_EVENTS   16    /**< mode changes recorded for operators */
#define SAN_STREAM_MSG_MIN  512   /**< smallest message buffer, bytes */
#define SAN_STREAM_MSG_MAX  65536 /**< largest message buffer, bytes */

/** Set in cookies of the session's own requests; it defines the other bits. */
#define SAN_STREAM_COOKIE (1ull << 63)

enum san_stream_right {
	SAN_STREAM_LOCAL = 0, /**< source of a write, target of a read */
	SAN_STREAM_PUSH = 1,  /**< the peer writes into it */
	SAN_STREAM_PULL = 2,  /**< the peer reads from it */
};

/** Properties of a provider (AFC-4). */
struct san_stream_caps {
	uint32_t threshold; /**< bytes from which direct transfer is cheaper */
	bool can_read;      /**< has remote read */
	bool ordered;       /**< a send is delivered after the writes posted before it are placed */
};

/**
 * Provider of a session. The core binds it to ulp, the verbs provider to a NIC. *arg* belongs to
 * the session. Requests return 0, or -EAGAIN: no room until another one completes. Each completes
 * once, by san_stream_on_done() with its cookie, in the order of posting, for receives and for the
 * other requests separately. Until then the memory belongs to the session and does not change.
 */
struct san_stream_ops {
	struct san_stream_caps caps;
	int (*recv)(void *arg, uint64_t cookie, void *buf, uint32_t len);
	/** RTSAN_WR_SEND, PUSH or PULL, signaled; wr_id is its cookie. It may change *wr*. */
	int (*post)(void *arg, struct san_ulp_wr *wr);
	/**
	 * Register memory of the application for one right only (AFC-24).
	 *
	 * @param addr
	 *   Returns the remote address of the first byte.
	 * @return
	 *   0, -ENOSPC, -ENOMEM.
	 */
	int (*reg)(void *arg, const struct rtsan_sge *part, enum san_stream_right right,
		   uint64_t *addr, uint32_t *key);
	/** On return the peer can no longer access the memory. Not for SAN_STREAM_LOCAL. */
	void (*dereg)(void *arg, uint32_t key);
	/** Zeroed memory for message buffers and data in transit; NULL: none, or over a limit. */
	void *(*alloc)(void *arg, size_t bytes);
	void (*free)(void *arg, void *mem, size_t bytes);
};

/** enum san_sm_mode, or: learn the mode. */
#define SAN_STREAM_ADAPTIVE 0xff

/** Times in nanoseconds, sizes in bytes. san_stream_conf_default() sets usual values. */
struct san_stream_conf {
	uint32_t sq_depth, rq_depth; /**< of the application's queues; powers of two */
	uint32_t threshold;          /**< 0: the provider's threshold (AFC-4) */
	uint32_t msg_size;           /**< initial size of message buffers with headers (AFC-18) */
	uint32_t msg_max;            /**< they may grow to this size; msg_size: they do not */
	uint16_t nb_recv;            /**< posted message buffers: the credit of the peer (AFC-14) */
	uint16_t nb_store;           /**< messages that may be unread (AFC-27) */
	uint16_t nb_send;            /**< messages in flight, at most */
	uint16_t t1, t2;             /**< see AFC-15; 0: derived from nb_recv */
	uint8_t mode;                /**< SAN_STREAM_ADAPTIVE, or a fixed enum san_sm_mode */
	uint8_t read;                /**< enum rtsan_stream_read */
	uint8_t learn;               /**< transfers of one class that select a mode (AFC-6) */
	uint8_t scans;               /**< vain scans until the rest is sent in messages (AFC-13) */
	uint16_t frags;              /**< fragmented sends before a resize is requested (AFC-18) */
	uint32_t send_buffer;        /**< bytes of sends copied and completed at once (AFC-26) */
	uint64_t scan_ns;            /**< interval of scans (AFC-13) */
	uint64_t hold_ns;            /**< an advertisement waits for a send (AFC-11); 0: not */
	uint64_t gather_ns;          /**< a small send waits for one (AFC-11); 0: not */
	uint32_t first_seq;          /**< number of the first message on both sides */
};

struct san_stream;

void san_stream_conf_default(struct san_stream_conf *conf);
/** NULL if valid, else what is wrong. */
const char *san_stream_conf_check(const struct san_stream_conf *conf);
/** Most requests that a session has in progress, powers of two: queues so deep never fill up. */
void san_stream_depths(const struct san_stream_conf *conf, uint32_t *sq, uint32_t *rq);
/**
 * Most bytes that the owner of such a stream may have to allocate for it: message buffers of the
 * largest size, twice during an exchange, and the next session, for the next connection, if it is
 * created before this one is destroyed.
 */
uint64_t san_stream_bytes_max(const struct san_stream_conf *conf);
/**
 * Create a session without a connection. The first san_stream_pump() posts its message buffers, so
 * that they are there before the connection. (AFC-2)
 *
 * @return
 *   0, -EINVAL (see san_stream_conf_check()), -ENOMEM.
 */
int san_stream_create(const struct san_stream_conf *conf, const struct san_stream_ops *ops,
		      void *arg, struct san_stream **out);
/** Call it when the provider has completed, or dropped, all requests of the session. */
void san_stream_destroy(struct san_stream *s);
/** Live restart: set functions and *arg*. */
void san_stream_resume(struct san_stream *s, const struct san_stream_ops *ops, void *arg);

/* ---- events ---- */

/** The connection is established. *accepted*: the peer requested it (AFC-18). */
void san_stream_on_open(struct san_stream *s, bool accepted);
/** A request has completed: cookie in wr_id, *status*, *byte_len* for receives. */
void san_stream_on_done(struct san_stream *s, const struct san_ulp_wc *wc, uint64_t now_ns);
/** The connection has ended, and all requests have completed: *status* is for posted work. */
void san_stream_on_over(struct san_stream *s, uint8_t status, uint64_t now_ns);
/** Process timers that are due; see san_stream_deadline_ns(). */
void san_stream_tick(struct san_stream *s, uint64_t now_ns);

/* ---- posts of the application ---- */

/** Return how many were accepted; the caller posts the rest later. */
uint32_t san_stream_post_send(struct san_stream *s, const struct san_ulp_wr *wr, uint32_t n);
uint32_t san_stream_recv_post(struct san_stream *s, const struct san_ulp_recv *r, uint32_t n);
/**
 * Return a message buffer that was lent (RTSAN_RECV_LOAN). Until then, or san_stream_destroy(), it
 * stays unchanged, even if the connection ends. False: it was not lent.
 */
bool san_stream_recv_give_back(struct san_stream *s, uint32_t loan);
/** First byte of a lent message buffer; NULL: it is not lent. */
const void *san_stream_recv_loan(const struct san_stream *s, uint32_t loan);
/** True if a buffer is lent. */
bool san_stream_recv_has_lent(const struct san_stream *s);

/* ---- results ---- */

/**
 * Post to the provider whatever is possible, and copy data within *budget* bytes, so that one
 * session does not keep others waiting.
 *
 * @return
 *   The rest of *budget*; 0: there may be more to do now.
 */
uint32_t san_stream_pump(struct san_stream *s, uint32_t budget, uint64_t now_ns);
/**
 * When to call san_stream_tick() and san_stream_pump() next; UINT64_MAX: not before another event.
 */
uint64_t san_stream_deadline_ns(const struct san_stream *s);
/**
 * The next completion for the application, without taking it: of a receive, or of all other work.
 * Neither kind waits for the other, because a full queue must not hold back completions for
 * another. The field qp is not set. False: none.
 */
bool san_stream_peek(struct san_stream *s, bool recv, struct san_ulp_wc *wc);
/** Take that completion: the memory of its work request belongs to the application again. */
void san_stream_take(struct san_stream *s, bool recv);
/** How the peer violated the protocol; NULL: it did not. The owner then ends the connection. */
const char *san_stream_fault(const struct san_stream *s);
/**
 * True if the peer has all data sent, including the end (half-close): the connection may end.
 * Buffered data is sent without the application.
 */
bool san_stream_is_drained(const struct san_stream *s);
/** Shut down sending with the next pump, unless the application has; see san_stream_has_ended(). */
void san_stream_close(struct san_stream *s);
/** True if one side has ended and all is sent: the owner then disconnects in order. */
bool san_stream_has_ended(const struct san_stream *s);
/**
 * The application has ended, and its memory must no longer be accessed: close the stream. False:
 * its memory was still needed.
 */
bool san_stream_orphan(struct san_stream *s);
/** True if posted work of the application names *key* (in rtsan_sge). */
bool san_stream_show_names_key(const struct san_stream *s, uint32_t key);

/* ---- for show ---- */

/* clang-format off */

/** Causes of a change of a stream's mode */
#define SAN_STREAM_CAUSES(X) \
	X(START, "start", "The stream began.") \
	X(LEARNT, "learnt", "Enough transfers of a class in a row.") \
	X(CLASS, "other class", "A transfer of another class.") \
	X(SMALL, "small buffer or wait", "A small buffer is posted, or the program waits.") \
	X(SCAN, "nothing posted", "No buffer was posted for several scans.") \
	X(LARGE, "large buffer", "A large buffer was posted.")

/* clang-format on */

#define SAN_STREAM_CAUSES_MEMBER(cause, name, help) SAN_STREAM_WHY_##cause,

enum san_stream_why {
	SAN_STREAM_CAUSES(SAN_STREAM_CAUSES_MEMBER)
	SAN_STREAM_WHYS
};
const char *san_stream_show_mode_name(uint8_t mode);
const char *san_stream_show_why_name(uint8_t why);

struct san_stream_change {
	uint64_t at_ns;
	uint8_t from, to, why;
};

/** Bytes of one direction, by the way they were transferred. */
struct san_stream_bytes {
	uint64_t message, write, read;
};

struct san_stream_stats {
	struct san_stream_bytes tx, rx;
	SAN_STREAM_COUNTERS(SAN_COUNTER_MEMBER)
};

struct san_stream_view {
	uint8_t mode, peer_mode; /**< enum san_sm_mode of what we send, of what we receive */
	uint32_t threshold;
	uint32_t msg_size, peer_msg_size;
	uint32_t credit, peer_credit;
	uint32_t nb_unread_bytes;
	uint32_t nb_sends, nb_recvs; /**< posted by the application, not completed */
	uint32_t nb_advs;            /**< usable advertisements of the peer */
	struct san_stream_stats stats;
	struct san_stream_change change[SAN_STREAM_EVENTS]; /**< latest ones, oldest first */
	uint32_t nb_change;
};
void san_stream_show_view(const struct san_stream *s, struct san_stream_view *out);

/** Verify every invariant. For tests. */
void san_stream_show_check(const struct san_stream *s);
