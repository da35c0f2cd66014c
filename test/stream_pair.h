/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Two stream sessions and a provider between them, for tests: what one posts stays in its queue
 * until pair_step() carries it out. It keeps the rules that a real provider could only break, and
 * aborts when a session breaks one: a message without a receive (AFC-14), an access outside of what
 * is registered, or of another right (AFC-24).
 *
 * Without `ordered`, messages may overtake each other and what was written (AFC-17, AFC-25).
 */

#include <errno.h>
#include <stdlib.h>

#include "san_assert.h"
#include "san_prng.h"
#include "stream_priv.h"

#define PAIR_REQS 4096
#define PAIR_REGS 256

struct pair_req {
	uint8_t op; /* enum rtsan_wr_opcode */
	uint64_t cookie;
	const void *buf;
	uint32_t len;
	struct rtsan_sge sge[RTSAN_SGE_MAX];
	uint8_t nb_sge;
	uint64_t addr;
	uint32_t key;
};

struct pair_reg {
	uint8_t *addr;
	uint32_t len;
	uint32_t key; /* 0: free */
	uint8_t right;
};

struct pair_end {
	struct stream_pair *pair;
	struct pair_end *peer;
	struct san_stream *s;
	uint64_t recv_cookie[PAIR_REQS];
	void *recv_buf[PAIR_REQS];
	uint32_t recv_len[PAIR_REQS], recv_head, recv_tail;
	struct pair_req req[PAIR_REQS];
	uint32_t nb_req;
	uint32_t max_req; /* more are refused */
	struct pair_reg reg[PAIR_REGS];
	uint32_t max_regs, nb_regs;
	size_t mem, max_mem;
	bool no_local; /* memory can't be registered for writing from it */
	/* what went to the peer */
	uint32_t nb_msgs, nb_plain_updates;
	void (*on_msg)(struct pair_end *from, const struct san_sm *m);
};

struct stream_pair {
	struct pair_end end[2];
	struct san_prng prng;
	uint32_t next_key;
	uint64_t now_ns;
	uint32_t reorder; /* messages that one may overtake */
	uint32_t budget;  /* of each pump */
};

/* ---- the provider ---- */

static inline int
pair_recv(void *arg, uint64_t cookie, void *buf, uint32_t len)
{
	struct pair_end *e = arg;
	uint32_t at = e->recv_tail % PAIR_REQS;

	SAN_VERIFY(e->recv_tail - e->recv_head < PAIR_REQS);
	e->recv_cookie[at] = cookie;
	e->recv_buf[at] = buf;
	e->recv_len[at] = len;
	e->recv_tail++;
	return 0;
}

static inline int
pair_post(void *arg, struct san_ulp_wr *wr)
{
	struct pair_end *e = arg;
	struct pair_req *r = &e->req[e->nb_req];

	SAN_VERIFY(wr->nb_sge > 0 && wr->nb_sge <= RTSAN_SGE_MAX);
	if (e->nb_req >= e->max_req)
		return -EAGAIN;
	e->nb_req++;
	*r = (struct pair_req){
		.op = wr->op,
		.cookie = wr->wr_id,
		.buf = wr->sge[0].addr,
		.len = wr->length,
		.nb_sge = wr->nb_sge,
		.addr = wr->remote_addr,
		.key = wr->rkey,
	};
	memcpy(r->sge, wr->sge, wr->nb_sge * sizeof(wr->sge[0]));
	return 0;
}

static inline int
pair_reg(void *arg, const struct rtsan_sge *part, enum san_stream_right right, uint64_t *addr,
	 uint32_t *key)
{
	struct pair_end *e = arg;
	uint32_t i;

	if (right == SAN_STREAM_LOCAL) {
		*addr = *key = 0;
		return e->no_local ? -ENOMEM : 0;
	}
	for (i = 0; i < PAIR_REGS && e->reg[i].key != 0; i++)
		;
	if (e->nb_regs >= e->max_regs || i == PAIR_REGS)
		return -ENOSPC;
	e->nb_regs++;
	*addr = 0x1000;
	*key = ++e->pair->next_key;
	e->reg[i] = (struct pair_reg){part->addr, part->length, *key, (uint8_t)right};
	return 0;
}

static inline struct pair_reg *
pair_find(struct pair_end *e, uint32_t key)
{
	for (uint32_t i = 0; i < PAIR_REGS; i++)
		if (e->reg[i].key == key)
			return &e->reg[i];
	return NULL;
}

static inline void
pair_dereg(void *arg, uint32_t key)
{
	struct pair_end *e = arg;
	struct pair_reg *r = pair_find(e, key);

	SAN_VERIFY(r != NULL);
	r->key = 0;
	e->nb_regs--;
}

static inline void *
pair_alloc(void *arg, size_t bytes)
{
	struct pair_end *e = arg;

	if (e->mem + bytes > e->max_mem)
		return NULL;
	e->mem += bytes;
	return calloc(1, bytes);
}

static inline void
pair_free(void *arg, void *mem, size_t bytes)
{
	((struct pair_end *)arg)->mem -= bytes;
	free(mem);
}

static struct san_stream_ops pair_ops = {
	.recv = pair_recv,
	.post = pair_post,
	.reg = pair_reg,
	.dereg = pair_dereg,
	.alloc = pair_alloc,
	.free = pair_free,
};

/* ---- carrying out ---- */

static inline void
pair_done(struct pair_end *e, uint64_t cookie, uint8_t status, uint32_t bytes)
{
	san_stream_on_done(e->s,
			   &(struct san_ulp_wc){
				   .wr_id = cookie, .status = status, .byte_len = bytes},
			   e->pair->now_ns);
}

static inline void
pair_deliver(struct pair_end *e, const struct pair_req *r)
{
	struct pair_end *to = e->peer;
	uint32_t at = to->recv_head % PAIR_REQS, payload;
	struct san_sm m;

	SAN_VERIFY(to->recv_head != to->recv_tail); /* never a message without credit */
	SAN_VERIFY(r->len <= to->recv_len[at]);
	SAN_VERIFY(san_wire_stream_get(r->buf, r->len, &m, &payload) == 0);
	e->nb_msgs++;
	e->nb_plain_updates += m.flags == SAN_SM_UPDATE;
	if (e->on_msg != NULL)
		e->on_msg(e, &m);
	memcpy(to->recv_buf[at], r->buf, r->len);
	to->recv_head++;
	pair_done(to, to->recv_cookie[at], 0, r->len);
	pair_done(e, r->cookie, 0, 0);
}

static inline void
pair_access(struct pair_end *e, const struct pair_req *r)
{
	struct pair_reg *reg = pair_find(e->peer, r->key);
	uint8_t need = r->op == RTSAN_WR_PUSH ? SAN_STREAM_PUSH : SAN_STREAM_PULL;
	uint64_t off = r->addr - 0x1000;

	SAN_VERIFY(r->key != 0 && reg != NULL && reg->right == need);
	for (uint8_t i = 0; i < r->nb_sge; i++) {
		SAN_VERIFY(off + r->sge[i].length <= reg->len);
		if (r->op == RTSAN_WR_PUSH)
			memcpy(reg->addr + off, r->sge[i].addr, r->sge[i].length);
		else
			memcpy(r->sge[i].addr, reg->addr + off, r->sge[i].length);
		off += r->sge[i].length;
	}
	pair_done(e, r->cookie, 0, 0);
}

/* Which request of *e* goes next: without order, some message may overtake those before it. */
static inline uint32_t
pair_pick(struct pair_end *e)
{
	uint32_t far = e->nb_req - 1 < e->pair->reorder ? e->nb_req - 1 : e->pair->reorder;
	uint32_t at = san_prng_below(&e->pair->prng, far + 1);

	return e->req[at].op == RTSAN_WR_SEND ? at : 0;
}

/* Carry out one request of *e*; false: it has none. */
static inline bool
pair_step(struct pair_end *e)
{
	struct pair_req r;
	uint32_t at;

	if (e->nb_req == 0)
		return false;
	at = pair_pick(e);
	r = e->req[at];
	memmove(&e->req[at], &e->req[at + 1], (--e->nb_req - at) * sizeof(r));
	if (r.op == RTSAN_WR_SEND)
		pair_deliver(e, &r);
	else
		pair_access(e, &r);
	return true;
}

/* True: there may be more. */
static inline bool
pair_pump_one(struct pair_end *e)
{
	struct stream_pair *p = e->pair;
	uint32_t left = san_stream_pump(e->s, p->budget, p->now_ns);

	SAN_VERIFY(left <= p->budget);
	return left == 0;
}

static inline bool
pair_pump(struct stream_pair *p)
{
	bool more = pair_pump_one(&p->end[0]);

	return pair_pump_one(&p->end[1]) || more;
}

/* Until nothing moves any more; time stands still. */
static inline void
pair_settle(struct stream_pair *p)
{
	bool moved;

	do {
		moved = pair_pump(p);
		moved = pair_step(&p->end[0]) || moved;
		moved = pair_step(&p->end[1]) || moved;
	} while (moved);
}

/* Time goes on, in steps that no timer is missed by. */
static inline void
pair_wait(struct stream_pair *p, uint64_t ns)
{
	uint64_t end = p->now_ns + ns;

	while (p->now_ns < end) {
		uint64_t a = san_stream_deadline_ns(p->end[0].s);
		uint64_t b = san_stream_deadline_ns(p->end[1].s);
		uint64_t next = a < b ? a : b;

		if (next <= p->now_ns)
			next = p->now_ns + 1;
		p->now_ns = next < end ? next : end;
		san_stream_tick(p->end[0].s, p->now_ns);
		san_stream_tick(p->end[1].s, p->now_ns);
		pair_settle(p);
	}
}

/* ---- made and over ---- */

static inline void
pair_init(struct stream_pair *p, uint64_t seed)
{
	memset(p, 0, sizeof(*p));
	san_prng_seed(&p->prng, seed);
	pair_ops.caps = (struct san_stream_caps){
		.threshold = 4096, .can_read = true, .ordered = true};
	p->now_ns = 1000000;
	p->budget = 1u << 20;
	for (int i = 0; i < 2; i++) {
		p->end[i].pair = p;
		p->end[i].peer = &p->end[1 - i];
		p->end[i].max_req = PAIR_REQS;
		p->end[i].max_regs = PAIR_REGS;
		p->end[i].max_mem = SIZE_MAX;
	}
}

static inline void
pair_create(struct stream_pair *p, const struct san_stream_conf *a, const struct san_stream_conf *b)
{
	SAN_VERIFY(san_stream_create(a, &pair_ops, &p->end[0], &p->end[0].s) == 0);
	SAN_VERIFY(san_stream_create(b, &pair_ops, &p->end[1], &p->end[1].s) == 0);
}

/* end[0] connects, end[1] accepts. */
static inline void
pair_open(struct stream_pair *p)
{
	pair_pump(p);
	san_stream_on_open(p->end[1].s, true);
	san_stream_on_open(p->end[0].s, false);
}

/* The connection ends: what is under way is forgotten, its requests complete with *status*. */
static inline void
pair_end_now(struct pair_end *e, uint8_t status)
{
	while (e->nb_req > 0)
		pair_done(e, e->req[--e->nb_req].cookie, status, 0);
	for (; e->recv_head != e->recv_tail; e->recv_head++)
		pair_done(e, e->recv_cookie[e->recv_head % PAIR_REQS], status, 0);
	san_stream_on_over(e->s, status, e->pair->now_ns);
}

static inline void
pair_fini(struct stream_pair *p)
{
	for (int i = 0; i < 2; i++) {
		san_stream_destroy(p->end[i].s);
		SAN_VERIFY(p->end[i].nb_regs == 0 && p->end[i].mem == 0);
	}
}

/* ---- the program ---- */

static inline uint32_t
pair_post_send(struct pair_end *e, uint64_t id, void *buf, uint32_t len, uint8_t flags)
{
	struct san_ulp_wr wr = {
		.wr_id = id,
		.op = RTSAN_WR_SEND,
		.flags = flags | RTSAN_WR_SIGNALED,
		.nb_sge = 1,
		.length = len,
		.sge = {{.addr = buf, .length = len}},
	};

	return san_stream_post_send(e->s, &wr, 1);
}

static inline uint32_t
pair_post_recv(struct pair_end *e, uint64_t id, void *buf, uint32_t len, uint8_t flags)
{
	struct san_ulp_recv r = {
		.wr_id = id, .nb_sge = 1, .flags = flags, .sge = {{.addr = buf, .length = len}}};

	return san_stream_recv_post(e->s, &r, 1);
}

static inline uint32_t
pair_ctl(struct pair_end *e, uint64_t id, uint8_t op, uint32_t imm, uint64_t value)
{
	struct san_ulp_wr wr = {
		.wr_id = id,
		.op = op,
		.imm = imm,
		.remote_addr = value,
		.flags = RTSAN_WR_SIGNALED,
	};

	return san_stream_post_send(e->s, &wr, 1);
}

static inline bool
pair_poll_kind(struct pair_end *e, bool recv, struct san_ulp_wc *wc)
{
	if (!san_stream_peek(e->s, recv, wc))
		return false;
	san_stream_take(e->s, recv);
	return true;
}

/* The next completion, of receives first; false: none. */
static inline bool
pair_poll(struct pair_end *e, struct san_ulp_wc *wc)
{
	return pair_poll_kind(e, true, wc) || pair_poll_kind(e, false, wc);
}
