/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STREAM_H
#define STREAM_H

/**
 * @file
 * Stream sessions: a TCP byte stream over a provider of messages and remote memory access,
 * which moves data the best way for how the application behaves (AFC-1 ... AFC-28; doc/stream.md).
 * Sans-I/O: requests, completions and time go in; requests for the provider and completions for
 * the application come out. It knows no packets, no threads and no DPDK.
 *
 * Whoever owns a session calls san_stream_pump() after he has told it things, once per burst;
 * before that nothing is sent. (So small sends that come together travel together.)
 *
 * Thread rule: one thread at a time per session; sessions share nothing.
 */

#include <stdbool.h>
#include <stdint.h>

#include "san_wr.h"
#include "wire_stream.h"

#define SAN_STREAM_WAIT_MAX 16    /**< waits of one stream at a time */
#define SAN_STREAM_EVENTS   16    /**< changes of mode that are kept for operators */
#define SAN_STREAM_MSG_MIN  512   /**< bytes of a message buffer */
#define SAN_STREAM_MSG_MAX  65536 /**< likewise */

/** Cookies of the session's own requests have this bit; the rest is its own. */
#define SAN_STREAM_COOKIE (1ull << 63)

enum san_stream_right {
	SAN_STREAM_LOCAL = 0, /**< source of a write, target of a read */
	SAN_STREAM_PUSH = 1,  /**< the peer writes into it */
	SAN_STREAM_PULL = 2,  /**< the peer reads from it */
};

/** What a provider can do (AFC-4). */
struct san_stream_caps {
	uint32_t threshold; /**< bytes from which direct transfer pays */
	bool can_read;      /**< has remote read */
	bool ordered;       /**< a send is delivered after the writes posted before it are placed */
	uint16_t max_sge;
};

/**
 * What carries a session. The core binds it to ulp, the verbs provider to a NIC. *arg* is the
 * session's own. Requests return 0, or -EAGAIN: no room until another one has completed; each
 * completes once, by san_stream_on_done() with its cookie, in the order of posting for receives
 * and for the rest. Memory stays the session's and does not change before that.
 */
struct san_stream_ops {
	void (*query)(void *arg, struct san_stream_caps *caps);
	int (*recv)(void *arg, uint64_t cookie, void *buf, uint32_t len);
	int (*send)(void *arg, uint64_t cookie, const void *buf, uint32_t len);
	int (*write)(void *arg, uint64_t cookie, const struct san_ulp_sge *sge, uint8_t nb_sge,
		     uint64_t addr, uint32_t key);
	int (*read)(void *arg, uint64_t cookie, const struct san_ulp_sge *sge, uint8_t nb_sge,
		    uint64_t addr, uint32_t key);
	/**
	 * Memory of the application's, for one right only (AFC-24).
	 *
	 * @param addr
	 *   What the peer calls the first byte.
	 * @return
	 *   0, -ENOSPC, -ENOMEM.
	 */
	int (*reg)(void *arg, const struct san_ulp_sge *part, enum san_stream_right right,
		   uint64_t *addr, uint32_t *key);
	/** On return the peer reaches it no more. Not for SAN_STREAM_LOCAL. */
	void (*dereg)(void *arg, uint32_t key);
	/** Zeros, for message buffers and data on their way; NULL: no memory, or over the cap. */
	void *(*alloc)(void *arg, size_t bytes);
	void (*free)(void *arg, void *mem, size_t bytes);
};

/** enum san_sm_mode, or: learn it. */
#define SAN_STREAM_ADAPTIVE 0xff

/** When remote read is used, if both sides have it. */
enum san_stream_read {
	SAN_STREAM_READ_AUTO = 0, /**< in small-then-large mode (AFC-8) */
	SAN_STREAM_READ_NEVER,    /**< as if the provider had none */
	SAN_STREAM_READ_ALWAYS,   /**< in large receive mode, too (AFC-10) */
};

/** Times in nanoseconds, sizes in bytes. san_stream_conf_default() has what each is usually. */
struct san_stream_conf {
	uint32_t sq_depth, rq_depth; /**< of the application's queues; powers of two */
	uint32_t threshold;          /**< 0: the provider's (AFC-4) */
	uint32_t msg_size;           /**< of message buffers at first, headers included (AFC-18) */
	uint32_t msg_max;            /**< what they may grow to; msg_size: they do not */
	uint16_t nb_recv;            /**< messages posted: the credit of the peer (AFC-14) */
	uint16_t nb_store;           /**< messages that may be unread (AFC-27) */
	uint16_t nb_send;            /**< messages under way, at most */
	uint16_t t1, t2;             /**< AFC-15; 0: by nb_recv */
	uint8_t mode;                /**< SAN_STREAM_ADAPTIVE, or an enum san_sm_mode for good */
	uint8_t read;                /**< enum san_stream_read */
	uint8_t learn;               /**< transfers of a class that fix a mode (AFC-6) */
	uint8_t scans;               /**< in vain, before the rest goes in messages (AFC-13) */
	uint16_t frags;              /**< fragmented sends before a resize is asked for (AFC-18) */
	uint32_t send_buffer;        /**< bytes that are copied, and complete at once (AFC-26) */
	uint64_t scan_ns;            /**< AFC-13 */
	uint64_t hold_ns;            /**< an advertisement waits for a send (AFC-11); 0: not */
	uint64_t gather_ns;          /**< a small send waits for one (AFC-11); 0: not */
	uint32_t first_seq;          /**< number of the first message, both sides' */
};

struct san_stream;

void san_stream_conf_default(struct san_stream_conf *conf);
/** NULL, or what is wrong with it. */
const char *san_stream_conf_check(const struct san_stream_conf *conf);
/** Requests, powers of two, that a session has under way at most: with such queues none is full. */
void san_stream_depths(const struct san_stream_conf *conf, uint32_t *sq, uint32_t *rq);
/**
 * Bytes that whoever has such a stream may allocate for it at any time: with message buffers as
 * large as they become, twice while they are exchanged, and beside it the next session, of
 * the next connection, if that is made before this one is destroyed.
 */
uint64_t san_stream_bytes_max(const struct san_stream_conf *conf);
/**
 * A session that is not connected. Its message buffers are posted by the first
 * san_stream_pump(), so that they are there before the connection is. (AFC-2)
 *
 * @return
 *   0, -EINVAL (see san_stream_conf_check()), -ENOMEM.
 */
int san_stream_create(const struct san_stream_conf *conf, const struct san_stream_ops *ops,
		      void *arg, struct san_stream **out);
/** The provider has completed, or forgotten, all its requests. */
void san_stream_destroy(struct san_stream *s);
/** Live restart: functions and *arg* are these now. */
void san_stream_resume(struct san_stream *s, const struct san_stream_ops *ops, void *arg);

/* ---- what happens ---- */

/** The connection is there. *accepted*: the peer asked for it (AFC-18). */
void san_stream_on_open(struct san_stream *s, bool accepted, uint64_t now_ns);
/** One of its requests is over: cookie in wr_id, *status*, *byte_len* of receives. */
void san_stream_on_done(struct san_stream *s, const struct san_ulp_wc *wc, uint64_t now_ns);
/** The connection is over, after all of its requests: *status* is for what is still posted. */
void san_stream_on_over(struct san_stream *s, uint8_t status, uint64_t now_ns);
/** Timers that are due; see san_stream_deadline_ns(). */
void san_stream_tick(struct san_stream *s, uint64_t now_ns);

/* ---- what the application wants: how many were taken; the rest later ---- */

uint32_t san_stream_post_send(struct san_stream *s, const struct san_ulp_wr *wr, uint32_t n,
			      uint64_t now_ns);
uint32_t san_stream_post_recv(struct san_stream *s, const struct san_ulp_recv *r, uint32_t n,
			      uint64_t now_ns);
/**
 * A message buffer that was lent (SAN_RECV_LOAN) comes back; until then, or san_stream_destroy(),
 * it is where and what it was, whatever becomes of the connection. False: it was not lent.
 */
bool san_stream_give_back(struct san_stream *s, uint32_t loan);
/** Where a lent message buffer's bytes begin; NULL: it is not lent. */
const void *san_stream_loan(const struct san_stream *s, uint32_t loan);
/** Is one lent? */
bool san_stream_has_lent(const struct san_stream *s);

/* ---- what comes of it ---- */

/**
 * Post to the provider whatever can be, and copy what can be, as far as *budget* bytes go: so one
 * session does not keep others waiting while it copies.
 *
 * @return
 *   What is left of *budget*; 0: there may be more to do now.
 */
uint32_t san_stream_pump(struct san_stream *s, uint32_t budget, uint64_t now_ns);
/** When to pump it, with san_stream_tick() before; UINT64_MAX: not before something happens. */
uint64_t san_stream_deadline_ns(const struct san_stream *s);
/**
 * The next completion for the application, without taking it: of a receive, or of all other work.
 * Neither kind waits for the other, because a queue that is full must not hold back what goes to
 * another one. Its qp is not set. False: none.
 */
bool san_stream_peek(struct san_stream *s, bool recv, struct san_ulp_wc *wc);
/** Take it: its work request's memory is the application's again. */
void san_stream_take(struct san_stream *s, bool recv);
/** Broken by the peer, in which way; NULL: it is not. Then the owner ends the connection. */
const char *san_stream_fault(const struct san_stream *s);
/**
 * All that was to be sent is with the peer, its end included (half-close): the connection may go.
 * What is buffered goes on by itself, whether or not the application is still there.
 */
bool san_stream_is_drained(const struct san_stream *s);
/** The application, or its owner, has posted the end of what is sent. */
bool san_stream_is_shut(const struct san_stream *s);
/** The peer has sent its end, and all before it has come. */
bool san_stream_has_fin(const struct san_stream *s);
/** The application is gone: its memory must not be touched any more; false: it was needed. */
bool san_stream_orphan(struct san_stream *s);
/** Does posted work name memory of that key? (Work of the application's, by san_ulp_sge.) */
bool san_stream_names_key(const struct san_stream *s, uint32_t key);

/* ---- to be seen ---- */

/** Why a mode began. */
enum san_stream_why {
	SAN_STREAM_WHY_START = 0,
	SAN_STREAM_WHY_LEARNT, /**< enough transfers of a class in a row */
	SAN_STREAM_WHY_CLASS,  /**< a transfer of another class */
	SAN_STREAM_WHY_SMALL,  /**< a small buffer was posted, or the program waits for data */
	SAN_STREAM_WHY_SCAN,   /**< nothing was posted for so many scans */
	SAN_STREAM_WHY_LARGE,  /**< a large buffer was posted */
	SAN_STREAM_WHYS
};
const char *san_stream_mode_name(uint8_t mode);
const char *san_stream_why_name(uint8_t why);

struct san_stream_change {
	uint64_t at_ns;
	uint8_t from, to, why;
};

/** One direction's bytes by path, as they were used. */
struct san_stream_bytes {
	uint64_t message, write, read;
};

struct san_stream_stats {
	struct san_stream_bytes tx, rx;
	uint64_t nb_tx_msgs, nb_rx_msgs;
	uint64_t nb_tx_data, nb_rx_data;    /**< messages with payload */
	uint64_t nb_updates;                /**< credit updates sent */
	uint64_t nb_advs, nb_adv_rides;     /**< advertisements sent, and those on data messages */
	uint64_t nb_stale;                  /**< advertisements received and discarded */
	uint64_t nb_offers, nb_offers_void; /**< sent; crossed with an advertisement */
	uint64_t nb_fallbacks;              /**< rests that went in messages after scans */
	uint64_t nb_resizes, nb_resizes_refused;
	uint64_t nb_no_buffers; /**< sends that failed so */
	uint64_t nb_held;       /**< messages that overtook others */
	/* why data did not go, counted once each time that begins */
	uint64_t nb_stall_credit, nb_stall_store, nb_stall_buffers, nb_stall_set;
};

struct san_stream_view {
	uint8_t mode, peer_mode; /**< enum san_sm_mode: of what we send, and receive */
	bool is_open, fin_sent, fin_rcvd;
	uint32_t threshold;
	uint32_t msg_size, peer_msg_size;
	uint32_t credit, peer_credit;
	uint32_t nb_unread_bytes;
	uint32_t nb_sends, nb_recvs; /**< posted by the application, not completed */
	uint32_t nb_advs;            /**< of the peer's, that can be used */
	struct san_stream_stats stats;
	struct san_stream_change change[SAN_STREAM_EVENTS]; /**< the last ones, oldest first */
	uint32_t nb_change;
};
void san_stream_view(const struct san_stream *s, struct san_stream_view *out);

/** Every invariant. For tests. */
void san_stream_check(const struct san_stream *s);

#endif /* STREAM_H */
