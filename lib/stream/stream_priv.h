/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Definitions shared by the files of this folder: the session behind stream.h. Its two directions
 * are independent; they only share messages. tx sends what our application posts, rx fills the
 * buffers in which it receives. (AFC-1)
 */

#include <string.h>

#include "san_assert.h"
#include "san_seq.h"
#include "stream.h"

#define STREAM_ADVS   16 /* most sets of the peer known here, and of ours known to the peer */
#define STREAM_WDONES 16 /* most writes not reported to the peer yet */
#define STREAM_NONE   UINT16_MAX

/* Kind of a request: bits 32 to 39 of its cookie; the lower bits are the object. */
enum stream_req {
	STREAM_REQ_RECV = 1, /* message buffer */
	STREAM_REQ_SEND,     /* message buffer */
	STREAM_REQ_WRITE,    /* index in sq, and above it in wdones */
	STREAM_REQ_READ,     /* index in rq */
};

static inline uint64_t
san_stream_cookie(enum stream_req req, uint16_t high, uint16_t low)
{
	return SAN_STREAM_COOKIE | (uint64_t)req << 32 | (uint32_t)high << 16 | low;
}

/* ---- message buffers (stream_pool.c) ---- */

enum stream_buf_state {
	STREAM_BUF_FREE = 0,
	STREAM_BUF_POSTED, /* receives: posted to the provider; sends: in progress */
	STREAM_BUF_HELD,   /* arrived before an earlier message (AFC-17) */
	STREAM_BUF_UNREAD, /* its payload is unread */
	STREAM_BUF_LENT,   /* lent to the application */
};

enum stream_piece_flag {
	STREAM_PIECE_INITIAL = 0x1, /* the rest of this send comes in another way */
	STREAM_PIECE_LARGE = 0x2,   /* part of a large send */
	STREAM_PIECE_MARK = 0x4,    /* the urgent byte was before it */
};

struct stream_buf {
	uint8_t *data;
	uint32_t size;
	uint32_t off, len; /* the unread part; in a held one the message */
	uint16_t next;     /* in the list of free or of unread ones */
	uint8_t state;     /* enum stream_buf_state */
	uint8_t piece;     /* enum stream_piece_flag */
};

/*
 * Buffers of one size. After a change of size each buffer moves when it is returned: index i of the
 * old memory becomes index i of the new memory (AFC-18).
 */
struct stream_pool {
	struct stream_buf *bufs;
	uint16_t nb, free; /* *free*: head of the list */
	uint16_t nb_free;
	uint16_t nb_old; /* buffers still in the old memory */
	uint32_t size;
	uint8_t *mem, *old_mem;
	size_t old_bytes;
};

/* ---- queues of the application ---- */

enum stream_way {
	STREAM_WAY_NEW = 0,  /* nothing was sent */
	STREAM_WAY_NOTICED,  /* initial portion sent: waits for buffers of the peer */
	STREAM_WAY_OFFERED,  /* likewise, and the peer may read the rest */
	STREAM_WAY_MESSAGES, /* the rest is sent in messages */
};

struct stream_sqe {
	uint64_t wr_id;
	union {
		struct rtsan_sge sge[RTSAN_SGE_MAX];
		uint8_t data[RTSAN_INLINE_MAX];
	};
	struct rtsan_sge inl; /* *data* as a list of one element: instead of *sge* */
	uint32_t len, off;    /* *off*: bytes handed over */
	uint32_t copy_at;     /* its place in the send buffer */
	uint32_t nb_copied;   /* bytes copied there */
	uint32_t keys[RTSAN_SGE_MAX];
	uint64_t addrs[RTSAN_SGE_MAX]; /* their remote addresses */
	uint16_t nb_io;                /* writes in progress */
	uint8_t nb_sge, nb_keys;
	uint8_t way;  /* enum stream_way */
	uint8_t plan; /* *way* after the initial portion; NEW: not decided */
	uint8_t status;
	bool inlined, copied; /* the payload is in the entry; in the send buffer */
	bool copying;         /* it is being copied to the send buffer, where room is reserved */
	bool signaled, oob, fin;
	bool let_go;     /* completed although it continues without memory of the application */
	bool registered; /* registered as a source of writes */
	bool classed;    /* its buffers were counted for the mode */
	bool counted;    /* checked whether it is too long for a message */
	bool cancelled;
	bool done; /* nothing of it is in progress or left to do */
};

struct stream_rqe {
	uint64_t wr_id;
	struct rtsan_sge sge[RTSAN_SGE_MAX];
	uint32_t room, filled;
	uint32_t keys[RTSAN_SGE_MAX];
	uint32_t adv_id, adv_bytes; /* bytes advertised */
	uint32_t nb_io_bytes;       /* bytes being read into it */
	uint16_t nb_io;
	uint8_t nb_sge, nb_keys;
	uint8_t flags; /* enum rtsan_recv_flags */
	uint8_t status;
	bool after; /* posted when the application knew of data: no direct transfer (AFC-22) */
	bool cancelled;
	bool is_adv;      /* advertised: the peer may write into it */
	bool unreachable; /* its memory could not be registered: messages fill it */
	uint32_t loan;    /* LOAN: index of the buffer, plus 1 */
};

/* A buffer set of the peer. */
struct stream_adv {
	struct san_sm_where where;
	uint32_t id;
	uint32_t room;
	bool after;
};

/* A write to be reported to the peer. */
struct stream_wdone {
	uint32_t id, bytes;
	uint16_t nb_io;
};

enum stream_rx_way {
	STREAM_RX_NONE = 0,
	STREAM_RX_NOTICE, /* the rest is written into what we advertise */
	STREAM_RX_OFFER,  /* we read the rest */
};

/* Order in which the application receives and sends (AFC-11). */
enum stream_pattern {
	STREAM_PATTERN_NONE = 0,
	STREAM_PATTERN_RECV_SEND, /* posts a large receive, sends, receives data */
	STREAM_PATTERN_SEND_RECV, /* receives data, sends, posts a large receive */
};

/* Why data is not sent. */
enum stream_stall {
	STREAM_STALL_NONE = 0,
	STREAM_STALL_CREDIT,  /* the peer has no receives left */
	STREAM_STALL_STORE,   /* its application does not read */
	STREAM_STALL_BUFFERS, /* all our message buffers are in use */
	STREAM_STALL_SET,     /* large receive mode, and no buffer is known */
};

struct stream_tx {
	struct stream_sqe *sq;
	uint32_t head, cur, tail, notified; /* ring indices; head <= cur, notified <= tail */
	uint8_t mode;                       /* enum san_sm_mode */
	uint8_t mode_reported;              /* mode in our last message */
	/* class of the last transfers, and their number (AFC-6) */
	uint8_t cls, nb_cls;
	bool small_posted; /* the peer reported it unasked: a small buffer, or a wait for data */
	uint8_t scans;
	uint32_t send_id;     /* of the last notice or offer */
	uint32_t notice_seq;  /* number of the message that carried it */
	uint32_t notice_data; /* S when it was sent */
	uint32_t nb_initial;  /* its payload bytes, while the first set may have crossed it */
	uint32_t post_pos;    /* stream position of the end of posted data */
	uint32_t nb_data;     /* S: data messages sent, initial portions not counted */
	uint32_t matched;     /* data messages up to this number have used up a set (AFC-12) */
	struct stream_adv adv[STREAM_ADVS];
	uint32_t adv_head, adv_tail;
	uint32_t adv_off; /* bytes written into the first one */
	struct stream_wdone wdone[STREAM_WDONES];
	uint32_t wdone_head, wdone_tail;
	uint8_t *buffer; /* send buffer, allocated at first use (AFC-26) */
	uint32_t buf_head, buf_tail;
	uint64_t gather_until; /* 0: not gathering (AFC-11) */
	bool fin_posted, fin_sent;
	uint8_t stall; /* enum stream_stall */
	/* resize (AFC-18) */
	uint32_t nb_frags, largest;
	uint32_t new_size, new_after;
};

struct stream_rx {
	struct stream_rqe *rq;
	uint32_t head, cur, tail; /* head <= cur <= tail; those before *cur* are complete */
	uint32_t adv_next;        /* next one to advertise, unless it is before cur */
	uint32_t adv_id;
	uint32_t nb_advs;  /* advertised to the peer */
	uint32_t adv_room; /* bytes of these */
	bool withdrawing;  /* the peer was asked to return them (AFC-28) */
	uint8_t mode;      /* of the peer, from its last message */
	uint8_t way;       /* enum stream_rx_way */
	uint8_t cls;       /* class of the buffers for the rest; SAN_SM_MODES: none yet */
	uint8_t scans;
	uint32_t send_id, rest;
	struct san_sm_where offer;
	uint32_t offer_off; /* bytes read or being read */
	bool withdrawn;     /* the sender wants the offer back */
	bool begun;         /* data of it was put into a receive */
	bool notified;      /* the application knows that there is data (AFC-22) */
	uint16_t unread_head, unread_tail;
	uint32_t nb_unread, unread_bytes;
	uint32_t nb_lent;
	bool peeks;       /* the first receive only peeks */
	uint32_t nb_rcvd; /* R */
	bool mark;        /* the next piece follows the urgent byte */
	bool fin;
	bool redisc_reported; /* sent in this period of small receive mode */
	bool posture_reported;
	uint64_t adv_due;     /* 0: nothing to advertise */
	uint64_t posture_due; /* 0: none */
	uint8_t pattern;      /* enum stream_pattern */
	uint8_t pattern_seen;
};

struct stream_credit {
	uint32_t lssq;           /* number of the last message sent */
	uint32_t lrsq;           /* highest number received without a gap before it */
	uint32_t nb_posted_ever; /* receives posted in all */
	uint16_t nb_posted;      /* PR */
	int32_t other;           /* OtherSidesSendCredit (AFC-15) */
	uint32_t peer_seq;       /* number of the newest header */
	uint32_t peer_pr, peer_lrsq;
	uint32_t nb_payload;                                /* messages with payload sent */
	uint32_t peer_freed;                                /* of those, read by the peer */
	uint32_t nb_payload_rcvd, nb_freed, freed_reported; /* likewise for received messages */
	uint16_t *held;                                     /* messages out of order, by number */
	uint32_t held_mask;
	uint32_t nb_held;
};

struct stream_urgent {
	bool announced, there; /* rx: it was announced; it has arrived */
	uint8_t byte;
};

struct stream_wait {
	uint64_t wr_id;
	uint32_t events;
};

#define STREAM_DONES 64 /* completions outside the queues: of waits, cancels etc. */

struct san_stream {
	struct san_stream_conf conf;
	const struct san_stream_ops *ops;
	void *arg;
	struct san_stream_caps caps;
	size_t bytes; /* of this struct and its tables */
	uint32_t threshold;
	bool accepted;
	bool open, over, orphan, is_closing;
	bool hello_sent, hello_rcvd;
	uint8_t over_status;
	bool peer_can_read;
	uint16_t peer_store, peer_advs;
	uint32_t peer_msg;
	const char *fault;
	struct stream_tx tx;
	struct stream_rx rx;
	struct stream_credit cr;
	struct stream_pool rpool, spool;
	struct stream_urgent urg;
	struct stream_wait wait[SAN_STREAM_WAIT_MAX];
	uint32_t nb_waits;
	struct san_ulp_wc dones[STREAM_DONES];
	uint32_t done_head, done_tail;
	uint64_t scan_at; /* next scan; 0: none */
	uint64_t pumped_ns;
	uint32_t budget; /* bytes that may still be copied in this turn */
	uint32_t due;    /* enum san_sm_flag: content of the next message besides data and WDONE */
	uint16_t stuck;  /* a message that the provider had no room for, or NONE */
	uint32_t stuck_len;
	struct san_sm_reports rep; /* of the next message; resize: 0: no request is open (AFC-18) */
	struct san_stream_stats stats;
	struct san_stream_change change[SAN_STREAM_EVENTS];
	uint32_t nb_change;
};

static inline struct stream_sqe *
san_stream_sqe(struct san_stream *s, uint32_t at)
{
	return &s->tx.sq[at & (s->conf.sq_depth - 1)];
}

static inline struct stream_rqe *
san_stream_rqe(struct san_stream *s, uint32_t at)
{
	return &s->rx.rq[at & (s->conf.rq_depth - 1)];
}

/* The peer violated a rule: ignore everything it sends. */
static inline void
san_stream_break(struct san_stream *s, const char *why)
{
	if (s->fault == NULL)
		s->fault = why;
}

static inline uint32_t
san_stream_min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

#define STREAM_STEP_BYTES 64 /* cost of a completion or a message besides copying */

/* Charge *bytes* of copying to the budget. */
static inline void
san_stream_spend(struct san_stream *s, uint32_t bytes)
{
	s->budget -= san_stream_min(bytes, s->budget);
}

/* Begin a request for *length* bytes; the caller adds the memory. */
static inline void
san_stream_wr_init(struct san_ulp_wr *wr, uint8_t op, uint64_t cookie, uint32_t length)
{
	memset(wr, 0, offsetof(struct san_ulp_wr, sge));
	wr->wr_id = cookie;
	wr->op = op;
	wr->flags = RTSAN_WR_SIGNALED;
	wr->length = length;
}

/* ---- lists of memory pieces ---- */

/* Store the part of *sge* from *off* on, at most *len* bytes, in *out*; returns its elements. */
uint8_t san_stream_slice(const struct rtsan_sge *sge, uint8_t nb, uint32_t off, uint32_t len,
			 struct rtsan_sge *out);
/* Copy that part to *mem*, or, if *fills*, from there. */
void san_stream_copy(struct san_stream *s, const struct rtsan_sge *sge, uint8_t nb, uint32_t off,
		     uint32_t len, uint8_t *mem, bool fills);
/* Register all elements of a slice for *right*. 0, or an error and none is registered. */
int san_stream_reg(struct san_stream *s, const struct rtsan_sge *sge, uint8_t nb,
		   enum san_stream_right right, uint64_t *addrs, uint32_t *keys);
void san_stream_dereg(struct san_stream *s, uint32_t *keys, uint8_t *nb);
/* Remove the first *bytes*. */
void san_stream_skip(struct san_sm_where *where, uint32_t bytes);

/* ---- stream_pool.c ---- */

int san_stream_pool_init(struct san_stream *s, struct stream_pool *p, uint16_t nb, uint32_t size);
void san_stream_pool_fini(struct san_stream *s, struct stream_pool *p);
/* Change the size, as buffers are returned. -ENOMEM; -EBUSY: the last change is not complete. */
int san_stream_pool_resize(struct san_stream *s, struct stream_pool *p, uint32_t size);
/* Take a free buffer, or STREAM_NONE. */
uint16_t san_stream_pool_get(struct stream_pool *p);
void san_stream_pool_put(struct san_stream *s, struct stream_pool *p, uint16_t at);
/* Post free receive buffers, as many as the credit of the peer needs. */
void san_stream_pool_post_recvs(struct san_stream *s);

/* ---- stream_credit.c ---- */

void san_stream_credit_init(struct san_stream *s);
/* Messages that may be sent now; the last one is only for an update. */
uint32_t san_stream_credit_left(const struct san_stream *s);
/* Process the counts of a header, in any order of arrival. */
void san_stream_credit_on_msg(struct san_stream *s, const struct san_sm *m);
/* Fill in the counts of a header, and count the message as sent. */
void san_stream_credit_say(struct san_stream *s, struct san_sm *m);
/* True if the peer is running out of credit, so that our last credit may be spent on an update. */
bool san_stream_credit_must_update(const struct san_stream *s);
/* True if an update is worth a message of its own. */
bool san_stream_credit_may_update(const struct san_stream *s);
/* True if the peer has room for one more unread message with payload. */
bool san_stream_credit_has_room(const struct san_stream *s);

/* ---- stream_mode.c ---- */

/* Buffers of *cls* were used for the rest of a large send. */
void san_stream_mode_learn(struct san_stream *s, uint8_t cls, uint64_t now_ns);
/* Return to discovery for the reason *why*. */
void san_stream_mode_leave(struct san_stream *s, uint8_t why, uint64_t now_ns);
/* How to begin a large send for which no buffer is known. */
uint8_t san_stream_mode_way(struct san_stream *s, uint64_t now_ns);

/* Actions of the application that show in which order it receives and sends (AFC-11). */
enum stream_see {
	STREAM_SEE_RECV = 0, /* posts a large receive */
	STREAM_SEE_SEND,     /* a small send */
	STREAM_SEE_DATA,     /* a large receive was filled with data */
	STREAM_SEES
};
void san_stream_mode_see(struct san_stream *s, enum stream_see what);

/* ---- stream_adv.c ---- */

/* The next set to advertise now, or NULL. */
struct stream_rqe *san_stream_adv_next(struct san_stream *s);
/* Add sets that can be advertised to *m*, within *room* bytes. */
void san_stream_adv_build(struct san_stream *s, struct san_sm *m, uint32_t room);
/* Process the peer's advertisements. */
void san_stream_adv_on_msg(struct san_stream *s, const struct san_sm *m);
/* A data message was sent: it uses up the oldest set. */
void san_stream_adv_spend(struct san_stream *s);
/* Our set is no longer advertised. */
void san_stream_adv_end(struct san_stream *s, struct stream_rqe *q);
/* Ask for the return of all our sets. */
void san_stream_adv_withdraw(struct san_stream *s);
/* The peer wants its sets up to *id* back. */
void san_stream_adv_forget(struct san_stream *s, uint32_t id);
/* The peer has returned our sets up to *id*. */
void san_stream_adv_returned(struct san_stream *s, uint32_t id);
/* The peer wrote into our oldest set. */
void san_stream_adv_wrote(struct san_stream *s, uint32_t id, uint32_t bytes);
static inline bool
san_stream_adv_any(const struct san_stream *s)
{
	return s->tx.adv_head != s->tx.adv_tail;
}

/* ---- stream_offer.c ---- */

/* A large send starts with this message; *m* says where the rest is or that it will follow. */
void san_stream_offer_on_msg(struct san_stream *s, const struct san_sm *m);
/* Read into *q*; false: no room for the request now. */
bool san_stream_offer_read(struct san_stream *s, struct stream_rqe *q);
void san_stream_offer_on_read(struct san_stream *s, struct stream_rqe *q, uint8_t status);
/* The offer is done, or its rest must come in messages: return it. */
void san_stream_offer_give_back(struct san_stream *s, uint8_t cls);
/* No large send has a rest to come. */
void san_stream_offer_rest_void(struct san_stream *s);
/* *bytes* of the rest arrived in any way. */
void san_stream_offer_rest_came(struct san_stream *s, uint32_t bytes);
/* Sender: the peer has returned the offer. */
void san_stream_offer_returned(struct san_stream *s, const struct san_sm *m, uint64_t now_ns);
/* Ask for the rest in messages. */
void san_stream_offer_answer_small(struct san_stream *s);

/* ---- stream_resize.c ---- */

void san_stream_resize_count(struct san_stream *s, const struct stream_sqe *e);
void san_stream_resize_on_request(struct san_stream *s, uint32_t size);
void san_stream_resize_on_done(struct san_stream *s, uint32_t size, uint32_t after);
/* Use the new size for sending if it is allowed now. */
void san_stream_resize_run(struct san_stream *s);

/* ---- stream_send.c ---- */

enum stream_want {
	STREAM_WANT_NOTHING = 0,
	STREAM_WANT_DATA,    /* payload in a message */
	STREAM_WANT_INITIAL, /* initial portion of a large send */
	STREAM_WANT_URGENT,  /* the urgent byte */
	STREAM_WANT_FIN,
};
/* Write where buffers are known, and decide how to send the next bytes. */
void san_stream_send_run(struct san_stream *s, uint64_t now_ns);
enum stream_want san_stream_send_want(struct san_stream *s, uint64_t now_ns);
/* Add that content to *m* and, after its header, to *buf* of *size* bytes. */
void san_stream_send_fill(struct san_stream *s, enum stream_want want, struct san_sm *m,
			  uint8_t *buf, uint32_t size);
/* The peer's first set is not written any further. */
void san_stream_send_end_write(struct san_stream *s);
void san_stream_send_on_written(struct san_stream *s, uint16_t at, uint16_t wdone, uint8_t status);
void san_stream_send_small(struct san_stream *s, uint32_t id, uint64_t now_ns);
void san_stream_send_scan(struct san_stream *s, uint64_t now_ns);
bool san_stream_send_waits(struct san_stream *s);
void san_stream_send_cancel(struct san_stream *s);
void san_stream_send_over(struct san_stream *s);
bool san_stream_send_is_idle(const struct san_stream *s);
/* SEND and SHUTDOWN; false: no room. */
bool san_stream_send_post(struct san_stream *s, const struct san_ulp_wr *wr);

/* ---- stream_recv.c ---- */

/* Payload of a message in its turn. */
void san_stream_recv_payload(struct san_stream *s, uint16_t buf, const struct san_sm *m);
/* The first unread buffer is read: release it, which gives room to the peer. */
void san_stream_recv_drop(struct san_stream *s);
/* Match unread data, and data to come, with posted receives. */
void san_stream_recv_run(struct san_stream *s, uint64_t now_ns);
void san_stream_recv_complete(struct san_stream *s, struct stream_rqe *q, uint8_t status);
void san_stream_recv_cancel(struct san_stream *s);
/* The sender gives up the rest of a large send (AFC-28). */
void san_stream_recv_withdrawn(struct san_stream *s);
void san_stream_recv_scan(struct san_stream *s);
static inline uint32_t
san_stream_recv_room_left(const struct stream_rqe *q)
{
	return q->room - q->filled;
}
/* True if the peer may write into it. */
static inline bool
san_stream_recv_is_set(const struct stream_rqe *q)
{
	return (q->flags & (RTSAN_RECV_PEEK | RTSAN_RECV_DONTWAIT | RTSAN_RECV_LOAN)) == 0 &&
		!q->cancelled && !q->unreachable;
}
static inline struct stream_rqe *
san_stream_recv_first(struct san_stream *s)
{
	return s->rx.cur != s->rx.tail ? san_stream_rqe(s, s->rx.cur) : NULL;
}

/* ---- stream_wait.c ---- */

/* WAIT, CANCEL, OPTION, ...; false: no room now. */
bool san_stream_wait_ctl_post(struct san_stream *s, const struct san_ulp_wr *wr);
/* Complete the waits for which an event holds. */
void san_stream_wait_run(struct san_stream *s);
/* True if the application waits for data instead of posting buffers. */
bool san_stream_wait_for_data(const struct san_stream *s);

/* ---- stream_msg.c ---- */

/* Record why data is not sent; counted when the reason begins. NONE: it is sent. */
void san_stream_msg_stall(struct san_stream *s, enum stream_stall why);
/* Send one message if there is something to send and it is allowed. */
bool san_stream_msg_send(struct san_stream *s, uint64_t now_ns);
/* Process a received message. */
void san_stream_msg_receive(struct san_stream *s, uint16_t buf, uint32_t len, uint64_t now_ns);
