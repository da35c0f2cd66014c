/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Two applications over two sessions (stream_pair.h). They send a pattern that identifies each
 * byte's place, so that all received bytes are checked; the sent messages are listed. Or one
 * session whose peer is written by the test (raw_*), for messages that no session sends.
 */

#include "stream_pair.h"
#include "unit.h"

#define KB        1024u
#define LARGE     (64 * KB)
#define MS        1000000ull
#define ST_BYTES  (4u << 20)
#define ST_MSGS   4096
#define ST_RECVS  512
#define ST_INNER  (1536 - SAN_SM_HDR) /* payload of a message without parts, at first */
#define RAW_STORE 32

static struct st_side {
	uint8_t src[ST_BYTES], dst[ST_BYTES];
	uint32_t src_used, dst_used;
	uint32_t at; /* bytes that the application has read of its peer's stream */
	struct {
		uint8_t *buf;
		uint8_t flags;
	} recv[ST_RECVS];
	uint32_t recv_head, recv_tail;
	struct san_ulp_wc wc[ST_RECVS]; /* not yet checked by a test */
	uint32_t nb_wc;
	struct san_sm msg[ST_MSGS];
	uint32_t nb_msgs;
} st_side[2];

static struct stream_pair pair;
static struct san_stream_conf conf[2]; /* changed by tests before st_start() */
static struct pair_end *const from = &pair.end[0], *const to = &pair.end[1];

/* The peer of *to*, written by the test. */
static struct {
	uint32_t seq, lrsq, nb_rcvd, nb_freed;
	uint32_t nb_access; /* writes and reads of the session */
	uint8_t status;     /* result of them */
	bool accepts;       /* the peer accepts, so the session is the connecting side */
} raw;

static inline struct st_side *
st_of(const struct pair_end *e)
{
	return &st_side[e - pair.end];
}

static inline void
st_note(struct pair_end *e, const struct san_sm *m)
{
	struct st_side *side = st_of(e);

	assert_true(side->nb_msgs < ST_MSGS);
	side->msg[side->nb_msgs++] = *m;
}

/* ---- start and end of a test ---- */

static inline void
st_setup(void)
{
	if (pair.end[0].s != NULL) /* of the row before */
		pair_fini(&pair);
	pair_init(&pair, 1);
	memset(&raw, 0, sizeof(raw));
	for (uint32_t i = 0; i < 2; i++) {
		struct st_side *side = &st_side[i];

		if (side->src[1] == 0)
			for (uint32_t k = 0; k < ST_BYTES; k++)
				side->src[k] = (uint8_t)((k + i + 1) * 2654435761u >> 23);
		side->src_used = side->dst_used = side->at = 0;
		side->recv_head = side->recv_tail = side->nb_wc = side->nb_msgs = 0;
		san_stream_conf_default(&conf[i]);
		pair.end[i].on_msg = st_note;
	}
}

static inline void
st_teardown(void)
{
	pair_fini(&pair);
	pair.end[0].s = NULL;
}

static inline void
st_settle(void)
{
	pair_settle(&pair);
	san_stream_show_check(from->s);
	san_stream_show_check(to->s);
	assert_null(san_stream_fault(from->s));
	assert_null(san_stream_fault(to->s));
}

static inline void
st_wait(uint64_t ns)
{
	st_settle(); /* timers begin now */
	pair_wait(&pair, ns);
	st_settle();
}

static inline void
st_forget_msgs(void)
{
	st_side[0].nb_msgs = st_side[1].nb_msgs = 0;
}

/* Connect, and exchange the hellos. */
static inline void
st_start(void)
{
	pair_create(&pair, &conf[0], &conf[1]);
	pair_open(&pair);
	st_settle();
	st_forget_msgs();
}

/* ---- programs ---- */

static inline void
st_send_flags(struct pair_end *e, uint32_t len, uint8_t flags)
{
	struct st_side *side = st_of(e);

	assert_true(side->src_used + len <= ST_BYTES);
	assert_int_equal(pair_post_send(e, side->src_used, side->src + side->src_used, len, flags),
			 1);
	side->src_used += len;
}

static inline void
st_send(struct pair_end *e, uint32_t len)
{
	st_send_flags(e, len, 0);
}

static inline void
st_recv_flags(struct pair_end *e, uint32_t len, uint8_t flags)
{
	struct st_side *side = st_of(e);
	uint8_t *buf = side->dst + side->dst_used;

	assert_true(side->dst_used + len <= ST_BYTES);
	assert_true(side->recv_tail - side->recv_head < ST_RECVS);
	assert_int_equal(pair_post_recv(e, side->recv_tail, buf, len, flags), 1);
	side->dst_used += len;
	side->recv[side->recv_tail % ST_RECVS].buf = buf;
	side->recv[side->recv_tail++ % ST_RECVS].flags = flags;
}

static inline void
st_recv(struct pair_end *e, uint32_t len)
{
	st_recv_flags(e, len, 0);
}

/* The next completion of that kind; false: none. */
static inline bool
st_take(struct pair_end *e, uint8_t op, struct san_ulp_wc *wc)
{
	struct st_side *side = st_of(e);
	struct san_ulp_wc next;
	uint32_t i;

	while (pair_poll(e, &next)) {
		assert_true(side->nb_wc < ST_RECVS);
		side->wc[side->nb_wc++] = next;
	}
	for (i = 0; i < side->nb_wc && side->wc[i].op != op; i++)
		;
	if (i == side->nb_wc)
		return false;
	*wc = side->wc[i];
	memmove(&side->wc[i], &side->wc[i + 1], (--side->nb_wc - i) * sizeof(*wc));
	return true;
}

/* ... which is there. */
static inline struct san_ulp_wc
st_took(struct pair_end *e, uint8_t op)
{
	struct san_ulp_wc wc = {0};

	assert_true(st_take(e, op, &wc));
	return wc;
}

/* The next receive has completed with *status* and the next bytes of the stream; their number. */
static inline uint32_t
st_received_as(struct pair_end *e, uint8_t status)
{
	struct st_side *side = st_of(e), *peer = st_of(e->peer);
	struct san_ulp_wc wc = st_took(e, RTSAN_WC_RECV);
	uint32_t place;
	const uint8_t *buf;

	assert_int_equal(wc.status, status);
	assert_int_equal(wc.wr_id, side->recv_head);
	place = side->recv_head++ % ST_RECVS;
	buf = wc.has_imm ? san_stream_recv_loan(e->s, wc.imm) : side->recv[place].buf;
	assert_true(wc.byte_len == 0 || memcmp(buf, peer->src + side->at, wc.byte_len) == 0);
	if ((side->recv[place].flags & RTSAN_RECV_PEEK) == 0)
		side->at += wc.byte_len;
	return wc.byte_len;
}

static inline uint32_t
st_received(struct pair_end *e)
{
	return st_received_as(e, 0);
}

/* Everything moves, and the oldest receive of *to* has completed with *len* bytes. */
static inline void
st_settle_got(uint32_t len)
{
	st_settle();
	assert_int_equal(st_received(to), len);
}

/* A receive of *len* bytes completes at once, full. */
static inline void
st_get(uint32_t len)
{
	st_recv(to, len);
	st_settle_got(len);
}

/* The next send has completed with *status*; its number of bytes. */
static inline uint32_t
st_sent_as(struct pair_end *e, uint8_t status)
{
	struct san_ulp_wc wc = st_took(e, RTSAN_WC_SEND);

	assert_int_equal(wc.status, status);
	return wc.byte_len;
}

static inline uint32_t
st_sent(struct pair_end *e)
{
	return st_sent_as(e, 0);
}

static inline bool
st_has(struct pair_end *e, uint8_t op)
{
	struct st_side *side = st_of(e);
	struct san_ulp_wc wc = {0};

	if (!st_take(e, op, &wc))
		return false;
	memmove(&side->wc[1], &side->wc[0], side->nb_wc++ * sizeof(wc));
	side->wc[0] = wc;
	return true;
}

/* Each of these posts, and then everything moves. */
static inline void
st_send_settle(struct pair_end *e, uint32_t len)
{
	st_send(e, len);
	st_settle();
}

static inline void
st_recv_settle(struct pair_end *e, uint32_t len)
{
	st_recv(e, len);
	st_settle();
}

static inline void
st_ctl_settle(struct pair_end *e, uint64_t id, uint8_t op, uint32_t imm, uint64_t value)
{
	pair_ctl(e, id, op, imm, value);
	st_settle();
}

/* Read *len* bytes in receives of at most *step*. */
static inline void
st_read(struct pair_end *e, uint32_t len, uint32_t step)
{
	uint32_t end = st_of(e)->at + len, left;

	while ((left = end - st_of(e)->at) > 0) {
		st_recv(e, left < step ? left : step);
		st_settle();
		assert_true(st_received(e) > 0);
	}
}

/* ---- views ---- */

static inline struct san_stream_view
st_view(const struct pair_end *e)
{
	struct san_stream_view v;

	san_stream_show_view(e->s, &v);
	return v;
}

static inline struct san_stream_stats
st_stats(const struct pair_end *e)
{
	return st_view(e).stats;
}

/* Number of messages of *e* with all of these flags. */
static inline uint32_t
st_said(const struct pair_end *e, uint32_t flags)
{
	const struct st_side *side = st_of(e);
	uint32_t n = 0;

	for (uint32_t i = 0; i < side->nb_msgs; i++)
		n += (side->msg[i].flags & flags) == flags;
	return n;
}

static inline uint32_t
st_said_data(const struct pair_end *e)
{
	const struct st_side *side = st_of(e);
	uint32_t n = 0;

	for (uint32_t i = 0; i < side->nb_msgs; i++)
		n += side->msg[i].len > 0;
	return n;
}

/* The first of them. */
static inline const struct san_sm *
st_msg(const struct pair_end *e, uint32_t flags)
{
	const struct st_side *side = st_of(e);

	for (uint32_t i = 0; i < side->nb_msgs; i++)
		if ((side->msg[i].flags & flags) == flags)
			return &side->msg[i];
	fail_msg("no message with flags 0x%x", flags);
	return NULL;
}

/* ---- applications and large sends ---- */

/* A posted receive gets the data; if it is not all, another one does. */
static inline void
st_finish(uint32_t len)
{
	uint32_t got;

	st_settle();
	got = st_received(to);
	assert_true(got > 0);
	st_read(to, len - got, len);
	assert_int_equal(st_sent(from), len);
}

/* The buffer is posted before: class large. */
static inline void
st_large(uint32_t len)
{
	st_recv_settle(to, len);
	st_send(from, len);
	st_finish(len);
}

/* The application waits for data. */
static inline void
st_listen(void)
{
	assert_int_equal(pair_ctl(to, 0, SAN_WR_WAIT, RTSAN_STREAM_READABLE, 0), 1);
}

/* ... and there is some. */
static inline void
st_heard(void)
{
	assert_int_equal(st_took(to, RTSAN_WC_STREAM_WAIT).status, 0);
}

/* A buffer is posted after the wait for data: class small-then-large. */
static inline void
st_after(uint32_t len)
{
	st_listen();
	st_send_settle(from, len);
	st_heard();
	st_recv(to, len);
	st_finish(len);
}

/* Only small buffers are posted. */
static inline void
st_small(uint32_t len)
{
	st_send_settle(from, len);
	st_read(to, len, 1000);
	assert_int_equal(st_sent(from), len);
}

static inline void
st_learn(void (*transfer)(uint32_t len), uint8_t mode)
{
	for (uint32_t i = 0; i < 3; i++)
		transfer(64 * KB);
	assert_int_equal(st_view(from).mode, mode);
	st_forget_msgs();
}

static inline void
st_start_large(void)
{
	st_start();
	st_learn(st_large, SAN_SM_LARGE_RECV);
}

/* ---- a peer played by the test ---- */

/* Execute what *to* posts, and list its messages. */
static inline void
raw_run(void)
{
	struct pair_req r;
	struct san_sm m;
	uint32_t payload;

	pair_pump_one(to);
	for (; to->nb_req > 0; pair_pump_one(to)) {
		r = to->req[0];
		memmove(&to->req[0], &to->req[1], --to->nb_req * sizeof(r));
		if (r.op != RTSAN_WR_SEND) {
			raw.nb_access++;
			pair_done(to, r.cookie, raw.status, 0);
			continue;
		}
		assert_int_equal(san_wire_stream_get(r.buf, r.len, &m, &payload), 0);
		st_note(to, &m);
		raw.lrsq = m.seq;
		if (m.len > 0 && (m.flags & SAN_SM_INITIAL) == 0)
			raw.nb_rcvd++;
		raw.nb_freed += m.len > 0;
		pair_done(to, r.cookie, 0, 0);
	}
	san_stream_show_check(to->s);
}

static inline void
raw_send(uint32_t len)
{
	st_send(to, len);
	raw_run();
}

static inline void
raw_recv(uint32_t len)
{
	st_recv(to, len);
	raw_run();
}

/* The next message, acknowledging all that was received. */
static inline struct san_sm
raw_msg(uint32_t flags)
{
	return (struct san_sm){
		.flags = flags,
		.pr = 32,
		.seq = raw.seq++,
		.lrsq = raw.lrsq,
		.nb_rcvd = raw.nb_rcvd,
		.nb_freed = raw.nb_freed,
	};
}

static inline struct san_sm
raw_large_msg(uint32_t flags)
{
	struct san_sm m = raw_msg(flags);

	m.mode = SAN_SM_LARGE_RECV;
	return m;
}

/* ... which advertises *len* bytes. */
static inline struct san_sm
raw_adv(uint32_t id, uint32_t len)
{
	struct san_sm m = raw_msg(SAN_SM_ADV);

	m.nb_adv = 1;
	m.adv[0].id = id;
	m.adv[0].where.nb_seg = 1;
	m.adv[0].where.seg[0] = (struct san_sm_seg){.addr = 0x1000, .len = len, .key = 7};
	return m;
}

/* Deliver *len* bytes as they are. */
static inline void
raw_put_bytes(const void *bytes, uint32_t len)
{
	uint32_t at = to->recv_head++ % PAIR_REQS;

	assert_true(to->recv_head <= to->recv_tail);
	assert_true(len <= to->recv_len[at]);
	memcpy(to->recv_buf[at], bytes, len);
	pair_done(to, to->recv_cookie[at], 0, len);
	raw_run();
}

static inline void
raw_put(struct san_sm m)
{
	static uint8_t bytes[SAN_STREAM_MSG_MAX];
	struct st_side *side = st_of(from);
	uint32_t len = san_wire_stream_len(&m);

	san_wire_stream_put(&m, bytes);
	memcpy(bytes + len, side->src + side->src_used, m.len);
	if ((m.flags & SAN_SM_URGENT_BYTE) == 0)
		side->src_used += m.len;
	raw_put_bytes(bytes, len + m.len);
}

/* Deliver the message *make* after the changes, which call it *sm*. */
#define RAW_PUT(make, ...)               \
	do {                             \
		struct san_sm sm = make; \
                                         \
		__VA_ARGS__;             \
		raw_put(sm);             \
	} while (0)

static inline struct san_sm
raw_hello(void)
{
	struct san_sm m = raw_msg(SAN_SM_HELLO | (raw.accepts ? SAN_SM_ACCEPTOR : 0));

	m.hello.nb_store = RAW_STORE;
	m.hello.nb_adv = STREAM_ADVS;
	m.hello.msg_size = 1536;
	m.hello.threshold = 4096;
	m.hello.can_read = true;
	return m;
}

/* *to* is alone, and has sent its hello; there is no answer. */
static inline void
raw_open(void)
{
	raw.seq = conf[1].first_seq;
	raw.lrsq = conf[1].first_seq - 1;
	pair_create(&pair, &conf[0], &conf[1]);
	pair_pump_one(to);
	san_stream_on_open(to->s, !raw.accepts);
	raw_run();
}

static inline void
raw_start(void)
{
	raw_open();
	raw_put(raw_hello());
	st_forget_msgs();
	assert_null(san_stream_fault(to->s));
}

/* ---- cases, by what is there when they begin ---- */

static inline void
st_setup_open(void)
{
	st_setup();
	st_start();
}

static inline void
st_setup_large(void)
{
	st_setup();
	st_start_large();
}

static inline void
st_setup_raw(void)
{
	st_setup();
	raw_start();
}

#define ST_TEST(name)  UNIT_CASE_OWN(name, st_setup, st_teardown)       /* nothing */
#define ST_OPEN(name)  UNIT_CASE_OWN(name, st_setup_open, st_teardown)  /* two sessions */
#define ST_LARGE(name) UNIT_CASE_OWN(name, st_setup_large, st_teardown) /* in large mode */
#define ST_RAW(name)   UNIT_CASE_OWN(name, st_setup_raw, st_teardown)   /* one and a peer */
