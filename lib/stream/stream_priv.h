/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STREAM_PRIV_H
#define STREAM_PRIV_H

/**
 * @file
 * What the files of this folder share: the session behind stream.h. Its two directions know
 * nothing of each other but the messages they travel in: tx sends what our program posts, rx
 * fills what it wants to receive. (AFC-1)
 *
 * Where a rule is: credits stream_credit.c, modes stream_mode.c, advertisements stream_adv.c, read
 * offers stream_offer.c, message buffers stream_pool.c, their size stream_resize.c, the send queue
 * stream_send.c, the receive queue and what is unread stream_recv.c, waits and the urgent byte
 * stream_wait.c, messages out and in stream_msg.c, the rest stream_sess.c.
 */

#include <string.h>

#include "san_assert.h"
#include "san_seq.h"
#include "stream.h"

#define STREAM_ADVS   16 /* of the peer's sets, and of ours with the peer, at most */
#define STREAM_WDONES 16 /* writes that the peer has not been told of */
#define STREAM_NONE   UINT16_MAX

/* What a request of ours was: bits 32 to 39 of its cookie; the object is below. */
enum stream_req {
	STREAM_REQ_RECV = 1, /* message buffer */
	STREAM_REQ_SEND,     /* message buffer */
	STREAM_REQ_WRITE,    /* place in sq, and in wdones above */
	STREAM_REQ_READ,     /* place in rq */
};

static inline uint64_t
stream_cookie(enum stream_req req, uint16_t high, uint16_t low)
{
	return SAN_STREAM_COOKIE | (uint64_t)req << 32 | (uint32_t)high << 16 | low;
}

/* ---- message buffers (stream_pool.c) ---- */

enum stream_buf_state {
	STREAM_BUF_FREE = 0,
	STREAM_BUF_POSTED, /* receives: with the provider; sends: on its way */
	STREAM_BUF_HELD,   /* overtook an earlier one (AFC-17) */
	STREAM_BUF_UNREAD, /* its payload is not read yet */
	STREAM_BUF_LENT,   /* the program has it */
};

enum stream_piece_flag {
	STREAM_PIECE_INITIAL = 0x1, /* more of this send comes another way */
	STREAM_PIECE_LARGE = 0x2,   /* of a large send */
	STREAM_PIECE_MARK = 0x4,    /* the urgent byte was in front of it */
};

struct stream_buf {
	uint8_t *data;
	uint32_t size;
	uint32_t off, len; /* what is unread; of a held one the message */
	uint16_t next;     /* list of free ones, or of unread ones */
	uint8_t state;     /* enum stream_buf_state */
	uint8_t piece;     /* enum stream_piece_flag */
};

/*
 * Buffers of one size. A new size comes as the old buffers come back: place i of the old memory
 * becomes place i of the new one (AFC-18).
 */
struct stream_pool {
	struct stream_buf *bufs;
	uint16_t nb, free; /* *free*: list */
	uint16_t nb_free;
	uint16_t nb_old; /* that are still in the old memory */
	uint32_t size;
	uint8_t *mem, *old_mem;
	size_t old_bytes;
};

/* ---- queues of the program ---- */

enum stream_way {
	STREAM_WAY_NEW = 0,  /* nothing of it has gone */
	STREAM_WAY_NOTICED,  /* initial portion is out: waits to hear of buffers */
	STREAM_WAY_OFFERED,  /* likewise, and the peer may read the rest */
	STREAM_WAY_MESSAGES, /* the rest goes in messages */
};

struct stream_sqe {
	uint64_t wr_id;
	union {
		struct san_ulp_sge sge[SAN_ULP_SGE_MAX];
		uint8_t data[SAN_ULP_INLINE_MAX];
	};
	struct san_ulp_sge inl; /* *data*, as a list of one */
	uint32_t len, off;      /* *off*: handed over */
	uint32_t copy_at;       /* place in the send buffer */
	uint32_t nb_copied;     /* bytes there */
	uint32_t keys[SAN_ULP_SGE_MAX];
	uint64_t addrs[SAN_ULP_SGE_MAX]; /* what the peer calls them */
	uint16_t nb_io;                  /* writes under way */
	uint8_t nb_sge, nb_keys;
	uint8_t way;  /* enum stream_way */
	uint8_t plan; /* what that is to become by the initial portion; NEW: nothing yet */
	uint8_t status;
	bool inlined, copied; /* the payload is in the entry, in the send buffer */
	bool copying;         /* it will be in the send buffer, and has its room there */
	bool signaled, oob, fin;
	bool let_go;     /* completed though it goes on: nothing of the program's is needed */
	bool registered; /* to be written from */
	bool classed;    /* the buffers for it have been learnt from */
	bool counted;    /* whether it is too long for a message has been looked at */
	bool cancelled;
	bool done; /* nothing of it is under way, and nothing is left to do */
	bool told; /* completed for the program, if it is to be */
};

enum stream_adv_state {
	STREAM_ADV_NONE = 0,
	STREAM_ADV_SENT, /* the peer may write into it */
};

struct stream_rqe {
	uint64_t wr_id;
	struct san_ulp_sge sge[SAN_ULP_SGE_MAX];
	uint32_t room, filled;
	uint32_t keys[SAN_ULP_SGE_MAX];
	uint32_t adv_id, adv_bytes; /* advertised so many */
	uint32_t nb_io_bytes;       /* being read into it */
	uint16_t nb_io;
	uint8_t nb_sge, nb_keys;
	uint8_t flags; /* enum san_recv_flag */
	uint8_t adv;   /* enum stream_adv_state */
	uint8_t status;
	bool after; /* posted when the program knew of data: not directly (AFC-22) */
	bool cancelled;
	bool unreachable; /* its memory could not be registered: messages find it */
	uint32_t loan;    /* LOAN: which buffer, plus 1 */
};

/* A buffer set of the peer's. */
struct stream_adv {
	struct san_sm_where where;
	uint32_t id;
	uint32_t room;
	bool after;
};

/* A write that the peer is to be told of. */
struct stream_wdone {
	uint32_t id, bytes;
	uint16_t nb_io;
};

enum stream_rx_way {
	STREAM_RX_NONE = 0,
	STREAM_RX_NOTICE, /* the rest comes into what we advertise */
	STREAM_RX_OFFER,  /* the rest is ours to read */
};

/* The order in which the program receives and sends (AFC-11). */
enum stream_pattern {
	STREAM_PATTERN_NONE = 0,
	STREAM_PATTERN_RECV_SEND, /* posts a large receive, sends, gets data */
	STREAM_PATTERN_SEND_RECV, /* gets data, sends, posts a large receive */
};

/* Why data does not go. */
enum stream_stall {
	STREAM_STALL_NONE = 0,
	STREAM_STALL_CREDIT,  /* the peer has no receives left */
	STREAM_STALL_STORE,   /* its program does not read */
	STREAM_STALL_BUFFERS, /* all messages of ours are under way */
	STREAM_STALL_SET,     /* large receive mode, and no buffer is known */
	STREAM_STALLS
};
struct stream_tx {
	struct stream_sqe *sq;
	uint32_t head, cur, tail, told; /* of the ring; head <= cur, told <= tail */
	uint8_t mode;                   /* enum san_sm_mode */
	uint8_t mode_told;              /* what the peer last heard */
	uint8_t cls, nb_cls;            /* class of the last transfers, and how many (AFC-6) */
	uint8_t posture;                /* what the peer said unasked: enum stream_posture */
	uint8_t scans;
	uint32_t send_id;     /* of the last notice or offer */
	uint32_t notice_seq;  /* message that had it */
	uint32_t notice_data; /* S when it went */
	uint32_t nb_initial;  /* its payload, while the first set may be one that crossed it */
	uint32_t post_pos;    /* bytes posted */
	uint32_t nb_data;     /* S: data messages sent, initial portions not counted */
	uint32_t matched;     /* data messages up to this one have used up a set (AFC-12) */
	struct stream_adv adv[STREAM_ADVS];
	uint32_t adv_head, adv_tail;
	uint32_t adv_off; /* of the first one, written */
	struct stream_wdone wdone[STREAM_WDONES];
	uint32_t wdone_head, wdone_tail;
	uint32_t cancelled; /* advertisement up to which to say so */
	uint8_t *buffer;    /* send buffer, made when first used (AFC-26) */
	uint32_t buf_head, buf_tail;
	uint64_t gather_until; /* 0: not gathering (AFC-11) */
	bool fin_posted, fin_sent;
	uint8_t stall; /* enum stream_stall */
	/* resize (AFC-18) */
	uint32_t nb_frags, largest;
	uint32_t asked, new_size, new_after;
};

struct stream_rx {
	struct stream_rqe *rq;
	uint32_t head, cur, tail; /* head <= cur <= tail; before *cur* they are complete */
	uint32_t adv_next;        /* next one to advertise, if it is not before cur */
	uint32_t adv_id;
	uint32_t nb_advs;  /* with the peer */
	uint32_t adv_room; /* their bytes */
	bool withdrawing;  /* the peer was asked to give them back (AFC-28) */
	uint8_t mode;      /* of the peer's, as it last said */
	uint8_t way;       /* enum stream_rx_way */
	uint8_t cls;       /* of the buffers for the rest; SAN_SM_MODES: none yet */
	uint8_t scans;
	uint32_t send_id, rest;
	struct san_sm_where offer;
	uint32_t offer_off; /* read, or being read */
	bool withdrawn;     /* the sender wants the offer back */
	bool begun;         /* what came of it is in a receive */
	bool told;          /* the program knows that there is data (AFC-22) */
	uint16_t unread_head, unread_tail;
	uint32_t nb_unread, unread_bytes;
	uint32_t nb_lent;
	bool peeks;       /* the first receive takes nothing of it */
	uint32_t nb_rcvd; /* R */
	bool mark;        /* the next piece is behind the urgent byte */
	bool fin;
	bool redisc_told; /* in this stretch of small receive mode */
	bool posture_told;
	uint64_t adv_due;     /* 0: nothing to advertise */
	uint64_t posture_due; /* 0: none */
	uint8_t pattern;      /* enum stream_pattern */
	uint8_t pattern_seen;
};

struct stream_credit {
	uint32_t lssq;           /* last one sent */
	uint32_t lrsq;           /* highest received, no gap before it */
	uint32_t nb_posted_ever; /* receives */
	uint16_t nb_posted;      /* PR */
	int32_t other;           /* OtherSidesSendCredit (AFC-15) */
	uint32_t peer_seq;       /* newest header */
	uint32_t peer_pr, peer_lrsq;
	uint32_t nb_payload;                            /* messages with payload sent */
	uint32_t peer_freed;                            /* of those the peer has room for again */
	uint32_t nb_payload_rcvd, nb_freed, freed_told; /* the same for what we received */
	uint16_t *held;                                 /* messages that came early, by number */
	uint32_t held_mask;
	uint32_t nb_held;
	bool any; /* a header has come */
};

struct stream_urgent {
	uint32_t tx_mark, rx_mark;
	bool tx_due;           /* to be announced */
	bool announced, there; /* rx: it is coming; it is here */
	uint8_t byte;
};

struct stream_wait {
	uint64_t wr_id;
	uint32_t events;
};

/* A completion beside the queues: of waits, cancels and so on. */
struct stream_done {
	uint64_t wr_id;
	uint32_t imm, byte_len;
	uint8_t op, status;
};
#define STREAM_DONES 64

struct san_stream {
	struct san_stream_conf conf;
	const struct san_stream_ops *ops;
	void *arg;
	struct san_stream_caps caps;
	size_t bytes; /* of this, with its tables */
	uint32_t threshold;
	bool accepted;
	bool open, hello_sent, hello_rcvd;
	bool over;
	bool orphan;
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
	struct stream_done dones[STREAM_DONES];
	uint32_t done_head, done_tail;
	uint64_t scan_at; /* 0: nothing to scan for */
	uint64_t pumped_ns;
	uint32_t budget; /* bytes that may be copied before others have had their turn */
	/* what the next message has to say, beside data */
	uint32_t facts; /* REDISCOVER, WITHDRAW */
	bool rdone_due, small_due, resize_due, resized_due, cancel_due, cancelled_due;
	uint16_t stuck; /* a message that the provider had no room for, or NONE */
	uint32_t stuck_len;
	struct {
		uint32_t id, bytes;
		uint8_t mode;
	} rdone;
	uint32_t small_id;
	uint32_t resized, resized_after;
	uint32_t cancel;
	struct san_stream_stats stats;
	struct san_stream_change change[SAN_STREAM_EVENTS];
	uint32_t nb_change;
};

static inline struct stream_sqe *
stream_sqe(struct san_stream *s, uint32_t at)
{
	return &s->tx.sq[at & (s->conf.sq_depth - 1)];
}

static inline struct stream_rqe *
stream_rqe(struct san_stream *s, uint32_t at)
{
	return &s->rx.rq[at & (s->conf.rq_depth - 1)];
}

/* The peer broke a rule: nothing it says counts any more. */
static inline void
stream_break(struct san_stream *s, const char *why)
{
	if (s->fault == NULL)
		s->fault = why;
}

static inline uint32_t
stream_min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

#define STREAM_STEP_BYTES 64 /* what a completion or a message costs beside copying */

/* So many bytes were copied. */
static inline void
stream_spend(struct san_stream *s, uint32_t bytes)
{
	s->budget -= stream_min(bytes, s->budget);
}

/* It does not go; counted when that begins. NONE: it goes. */
void stream_stall(struct san_stream *s, enum stream_stall why);

/* ---- lists of memory pieces ---- */

/* The part of *sge* from *off* on, at most *len* bytes, in *out*; how many pieces. */
uint8_t stream_slice(const struct san_ulp_sge *sge, uint8_t nb, uint32_t off, uint32_t len,
		     struct san_ulp_sge *out);
/* Register all of a slice, for *right*, as the peer is to see it. 0 or an error, and nothing is. */
int stream_reg(struct san_stream *s, const struct san_ulp_sge *sge, uint8_t nb,
	       enum san_stream_right right, uint64_t *addrs, uint32_t *keys);
void stream_dereg(struct san_stream *s, uint32_t *keys, uint8_t *nb);

/* ---- stream_pool.c ---- */

int stream_pool_init(struct san_stream *s, struct stream_pool *p, uint16_t nb, uint32_t size);
void stream_pool_fini(struct san_stream *s, struct stream_pool *p);
/* Another size, as buffers come back. -ENOMEM; -EBUSY: the last change is not over. */
int stream_pool_resize(struct san_stream *s, struct stream_pool *p, uint32_t size);
/* A free one, or STREAM_NONE. */
uint16_t stream_pool_get(struct stream_pool *p);
void stream_pool_put(struct san_stream *s, struct stream_pool *p, uint16_t at);
/* Post free receive buffers, as many as the peer is to have credit for. */
void stream_post_recvs(struct san_stream *s);

/* ---- stream_credit.c ---- */

void stream_credit_init(struct san_stream *s);
/* Messages that may be sent now; the last one is for an update only. */
uint32_t stream_credit_left(const struct san_stream *s);
/* A header came, be it early or late. */
void stream_credit_hear(struct san_stream *s, const struct san_sm *m);
/* Fill in what each header says, and count the message as sent. */
void stream_credit_say(struct san_stream *s, struct san_sm *m);
/* Is the peer about to run out of credit, so that our last one may be spent on telling it? */
bool stream_credit_must_update(const struct san_stream *s);
/* Is it worth a message of its own to tell the peer that it may send more? */
bool stream_credit_may_update(const struct san_stream *s);
/* May one more message with payload go? The peer has room for so many unread ones. */
bool stream_credit_has_room(const struct san_stream *s);
/* And may the peer still send one, before anything is taken here? */
bool stream_credit_room_left(const struct san_stream *s);

/* ---- stream_mode.c ---- */

enum stream_posture {
	STREAM_POSTURE_NONE = 0,
	STREAM_POSTURE_SMALL, /* a small buffer is posted, or the program waits for data */
};

/* The rest of a large send met buffers of *cls*. */
void stream_mode_learn(struct san_stream *s, uint8_t cls, uint64_t now_ns);
/* Back to discovery, for this reason. */
void stream_mode_leave(struct san_stream *s, uint8_t why, uint64_t now_ns);
/* How a large send for which no buffer is known begins. */
uint8_t stream_mode_way(struct san_stream *s, uint64_t now_ns);
bool stream_can_offer(const struct san_stream *s);

/* What the program does, as far as the order in which it receives and sends goes (AFC-11). */
enum stream_see {
	STREAM_SEE_RECV = 0, /* posts a large receive */
	STREAM_SEE_SEND,     /* a small send */
	STREAM_SEE_DATA,     /* a large receive has got data */
	STREAM_SEES
};
void stream_pattern_see(struct san_stream *s, enum stream_see what);

/* ---- stream_adv.c ---- */

/* Is there a set to advertise, and may it be? */
bool stream_adv_ready(struct san_stream *s);
/* Put what is ready into *m*, as long as *room* bytes suffice. */
void stream_adv_build(struct san_stream *s, struct san_sm *m, uint32_t room);
/* The peer's sets. */
void stream_adv_hear(struct san_stream *s, const struct san_sm *m);
/* A data message went: it uses up the oldest set. */
void stream_adv_spend(struct san_stream *s);
/* Our set is no longer with the peer. */
void stream_adv_end(struct san_stream *s, struct stream_rqe *q);
/* Want all of them back. */
void stream_adv_withdraw(struct san_stream *s);
/* The peer wants its sets back, up to *id*. */
void stream_adv_forget(struct san_stream *s, uint32_t id);
/* The peer has given them back. */
void stream_adv_returned(struct san_stream *s, uint32_t id);
/* The peer wrote into the oldest. */
void stream_adv_wrote(struct san_stream *s, uint32_t id, uint32_t bytes);
static inline bool
stream_adv_any(const struct san_stream *s)
{
	return s->tx.adv_head != s->tx.adv_tail;
}

/* ---- stream_offer.c ---- */

/* A large send begins with these bytes, and *m* says where or that there is more. */
void stream_offer_hear(struct san_stream *s, const struct san_sm *m);
/* Read into *q*; false: no room for the request now. */
bool stream_offer_read(struct san_stream *s, struct stream_rqe *q);
void stream_offer_on_read(struct san_stream *s, struct stream_rqe *q, uint8_t status);
/* It is over, or what is left of it is to come in messages. */
void stream_offer_give_back(struct san_stream *s, uint8_t cls);
/* There is no large send whose rest is to come. */
void stream_rest_void(struct san_stream *s);
/* Bytes of the rest came, one way or another. */
void stream_rest_came(struct san_stream *s, uint32_t bytes);
/* The sender's side: the peer has given it back. */
void stream_offer_returned(struct san_stream *s, uint32_t id, uint32_t bytes, uint8_t cls,
			   uint64_t now_ns);
/* Ask that the rest be sent in messages. */
void stream_answer_small(struct san_stream *s);

/* ---- stream_resize.c ---- */

void stream_resize_count(struct san_stream *s, const struct stream_sqe *e);
void stream_resize_hear(struct san_stream *s, uint32_t size);
void stream_resized_hear(struct san_stream *s, uint32_t size, uint32_t after);
/* May larger ones be sent from now on? */
void stream_resize_run(struct san_stream *s);

/* ---- stream_send.c ---- */

enum stream_want {
	STREAM_WANT_NOTHING = 0,
	STREAM_WANT_DATA,    /* bytes in a message */
	STREAM_WANT_INITIAL, /* the beginning of a large send */
	STREAM_WANT_URGENT,  /* the urgent byte */
	STREAM_WANT_FIN,
};
/* Write where buffers are known, and decide how the next bytes go. */
void stream_send_run(struct san_stream *s, uint64_t now_ns);
enum stream_want stream_send_want(struct san_stream *s, uint64_t now_ns);
/* Put that into *m* and, behind its header, into *buf* of *size* bytes. */
void stream_send_fill(struct san_stream *s, enum stream_want want, struct san_sm *m, uint8_t *buf,
		      uint32_t size);
/* Nothing more is written into the peer's first set. */
void stream_send_end_write(struct san_stream *s);
void stream_send_on_written(struct san_stream *s, uint16_t at, uint16_t wdone, uint8_t status);
void stream_send_small(struct san_stream *s, uint32_t id, uint64_t now_ns);
void stream_send_scan(struct san_stream *s, uint64_t now_ns);
bool stream_send_waits(struct san_stream *s);
void stream_send_cancel(struct san_stream *s);
void stream_send_over(struct san_stream *s);
bool stream_send_is_idle(const struct san_stream *s);
/* SEND and SHUTDOWN; false: no room. */
bool stream_send_post(struct san_stream *s, const struct san_ulp_wr *wr);

/* ---- stream_recv.c ---- */

/* Payload of a message, in order. */
void stream_recv_payload(struct san_stream *s, uint16_t buf, const struct san_sm *m);
/* The first of what is unread is of no use any more: its room is the peer's again. */
void stream_recv_drop(struct san_stream *s);
/* Match what is unread, or on its way, with what is posted. */
void stream_recv_run(struct san_stream *s, uint64_t now_ns);
void stream_recv_complete(struct san_stream *s, struct stream_rqe *q, uint8_t status);
void stream_recv_cancel(struct san_stream *s);
/* The sender gives up the rest of a large send (AFC-28). */
void stream_recv_withdrawn(struct san_stream *s);
void stream_recv_scan(struct san_stream *s);
/* Is *q* a place for the rest of a large send? */
bool stream_recv_fits(const struct san_stream *s, const struct stream_rqe *q);
static inline bool
stream_recv_is_set(const struct stream_rqe *q)
{
	return (q->flags & (SAN_RECV_PEEK | SAN_RECV_DONTWAIT | SAN_RECV_LOAN)) == 0 &&
		!q->cancelled && !q->unreachable;
}
static inline struct stream_rqe *
stream_recv_first(struct san_stream *s)
{
	return s->rx.cur != s->rx.tail ? stream_rqe(s, s->rx.cur) : NULL;
}

/* ---- stream_wait.c ---- */

/* WAIT, CANCEL, SHUTDOWN, ...: false: there is no room now. */
bool stream_ctl_post(struct san_stream *s, const struct san_ulp_wr *wr);
/* Waits whose event is so complete. */
void stream_wait_run(struct san_stream *s);
void stream_ctl_done(struct san_stream *s, uint64_t wr_id, uint8_t op, uint8_t status, uint32_t imm,
		     uint32_t byte_len);
/* Does the program wait to hear of data instead of posting buffers? */
bool stream_wait_for_data(const struct san_stream *s);

/* ---- stream_msg.c ---- */

/* Send one message, if there is something to say and it may be said. */
bool stream_msg_send(struct san_stream *s, uint64_t now_ns);
/* One came. */
void stream_msg_receive(struct san_stream *s, uint16_t buf, uint32_t len, uint64_t now_ns);

#endif /* STREAM_PRIV_H */
