/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * What the transaction sublayer has to do, told naively: a list of transactions
 * per connection and direction, what the ULP of the target says to each, and
 * what may have become of it in the end. It is the ULP of both hosts, too, and
 * looks at every call: exactly once, in order, the right bytes. (RT-10, RT-11,
 * RT-14, RT-15, RT-18, RT-27, RT-30)
 */

#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include "prop.h"
#include "tl.h"

#define MODEL_TXNS   96 /* of one direction */
#define MODEL_CONNS  3
#define MODEL_CLOSED 200 /* status of what a close cuts off */
#define MODEL_LEN    24000

/** What the target's ULP says to a transaction. */
enum model_fate {
	FATE_OK,
	FATE_REFUSE_REQ,  /**< pushReq or pullReq is refused */
	FATE_REFUSE_DONE, /**< the ULP-ACK is a refusal */
	FATE_REVOKE,      /**< the region goes away half way */
};

struct model_txn {
	struct san_tl_req req;
	uint64_t operand, swap; /* atomics */
	uint8_t fate, code;
	uint8_t nb_not_ready; /* so many times the target says RNR */
	bool submitted, completed, aborted;
	uint8_t status;
	/* target */
	bool begun, executed, refused, was_rnr;
	bool alone; /* it was refused in a packed packet, and must not come in one again */
	uint32_t nb_covered;
	uint64_t old; /* atomics: what the target returned */
	/* initiator */
	uint64_t seen;
	uint8_t cover[MODEL_LEN / 8 + 1]; /* bytes placed */
};

/** One direction of a connection. */
struct model_dir {
	bool ordered, relaxed;
	uint32_t first_rsn;
	uint32_t nb, next; /* next: to be submitted */
	int32_t last_done, last_begun;
	uint32_t nb_completed;
	uint32_t nb_recvs, nb_set_aside, nb_taken; /* at the target */
	uint32_t nb_recvs_to_post;
	uint64_t counter; /* what atomics work on */
	struct model_txn txns[MODEL_TXNS];
};

struct model_host {
	uint8_t side;
	uint16_t slot[MODEL_CONNS];
	uint32_t nb_conns;
	struct model_dir *out[MODEL_CONNS], *in[MODEL_CONNS];
	bool room[MODEL_CONNS];
};

static inline uint8_t
model_byte(uint32_t id, uint32_t offset)
{
	return (uint8_t)(id * 131 + offset * 7 + (offset >> 8) * 29);
}

static inline uint32_t
model_conn(const struct model_host *h, uint16_t slot)
{
	for (uint32_t i = 0; i < h->nb_conns; i++)
		if (h->slot[i] == slot)
			return i;
	PROP_CHECK(!"a slot that is not open");
	return 0;
}

static inline void
model_cover(struct model_txn *x, uint32_t id, uint32_t offset, struct rte_mbuf *m, uint16_t off,
	    uint16_t len)
{
	static uint8_t copy[65536];
	const uint8_t *d = rte_pktmbuf_read(m, off, len, copy);

	PROP_CHECK(d != NULL && offset + len <= x->req.length);
	for (uint32_t i = 0; i < len; i++) {
		uint32_t at = offset + i;

		PROP_CHECK(d[i] == model_byte(id, at));
		x->nb_covered += !((x->cover[at / 8] >> (at & 7)) & 1);
		x->cover[at / 8] |= (uint8_t)(1 << (at & 7));
	}
}

static inline void
model_uncover(struct model_txn *x)
{
	x->nb_covered = 0;
	memset(x->cover, 0, sizeof(x->cover));
}

/* ---- the target's ULP ---- */

static inline struct model_txn *
model_target(struct model_host *h, const struct san_tl_rxn *r, struct model_dir **dir)
{
	struct model_dir *d = h->in[model_conn(h, r->slot)];
	struct model_txn *x;
	uint32_t id = r->rsn - d->first_rsn;

	PROP_CHECK(id < d->nb && d->txns[id].submitted);
	x = &d->txns[id];
	PROP_CHECK(r->type == x->req.type);
	/* a send names no memory, and in a packed packet it has no place for that */
	if (!r->packed || !san_wire_is_send(r->kind))
		PROP_CHECK(r->key == x->req.key && r->addr == x->req.addr);
	*dir = d;
	return x;
}

static inline bool
model_needs_recv(const struct model_txn *x)
{
	return x->req.kind != SAN_KIND_PUSH;
}

bool
san_tl_ulp_reserve(void *ulp, uint16_t slot)
{
	struct model_host *h = ulp;
	struct model_dir *d = h->in[model_conn(h, slot)];

	if (d->nb_recvs <= d->nb_set_aside)
		return false;
	d->nb_set_aside++;
	return true;
}

void
san_tl_ulp_unreserve(void *ulp, uint16_t slot)
{
	struct model_host *h = ulp;
	struct model_dir *d = h->in[model_conn(h, slot)];

	PROP_CHECK(d->nb_set_aside > 0);
	d->nb_set_aside--;
}

/** In order, and never again. */
static inline void
model_done(struct model_dir *d, struct model_txn *x)
{
	int32_t id = (int32_t)(x - d->txns);

	PROP_CHECK(!x->executed && !x->refused);
	PROP_CHECK(!d->ordered || id > d->last_done);
	d->last_done = id;
	x->executed = true;
}

/** RT-34: nothing of a refusal stays but that it comes alone; what is taken is taken for good. */
static inline bool
model_takes_packed(const struct model_dir *d, struct model_txn *x)
{
	PROP_CHECK(!x->alone);
	x->alone = x->fate != FATE_OK || x->nb_not_ready > 0 ||
		(model_needs_recv(x) && d->nb_recvs == 0);
	return !x->alone;
}

/* Half of what is refused shows only with its data. */
uint8_t
san_tl_ulp_push_check(void *ulp, struct san_tl_rxn *r)
{
	struct model_dir *d;
	struct model_txn *x = model_target(ulp, r, &d);

	PROP_CHECK(r->solicited && !x->begun && !x->executed && !x->refused);
	if (x->fate != FATE_REFUSE_REQ || (x - d->txns) % 2 != 0)
		return SAN_ST_OK;
	x->refused = true;
	return x->code;
}

uint8_t
san_tl_ulp_push_req(void *ulp, struct san_tl_rxn *r)
{
	struct model_dir *d;
	struct model_txn *x = model_target(ulp, r, &d);
	int32_t id = (int32_t)(x - d->txns);

	PROP_CHECK(!x->begun && !x->executed);
	PROP_CHECK(r->length == x->req.length && r->kind == x->req.kind);
	PROP_CHECK(!d->ordered || d->relaxed || id > d->last_done);
	if (r->reserved) {
		san_tl_ulp_unreserve(ulp, r->slot);
		r->reserved = false;
	}
	if (r->packed && !model_takes_packed(d, x))
		return x->fate != FATE_OK ? x->code : SAN_ST_RNR;
	if (x->fate == FATE_REFUSE_REQ) {
		x->refused = true;
		return x->code;
	}
	if (x->nb_not_ready > 0 || (model_needs_recv(x) && d->nb_recvs == 0)) {
		x->nb_not_ready -= x->nb_not_ready > 0;
		x->was_rnr = true;
		return SAN_ST_RNR;
	}
	if (model_needs_recv(x)) {
		d->nb_recvs--;
		d->nb_taken++;
	}
	x->begun = true;
	return SAN_ST_OK;
}

uint8_t
san_tl_ulp_push_place(void *ulp, struct san_tl_rxn *r, uint32_t offset, struct rte_mbuf *m,
		      uint16_t off, uint16_t len)
{
	struct model_dir *d;
	struct model_txn *x = model_target(ulp, r, &d);

	PROP_CHECK(x->begun && !x->executed && len > 0);
	if (x->fate == FATE_REVOKE && offset + len > x->req.length / 2) {
		x->refused = true;
		return x->code;
	}
	model_cover(x, (uint32_t)(x - d->txns), offset, m, off, len);
	return SAN_ST_OK;
}

uint8_t
san_tl_ulp_push_done(void *ulp, struct san_tl_rxn *r)
{
	struct model_dir *d;
	struct model_txn *x = model_target(ulp, r, &d);

	PROP_CHECK(x->begun && x->nb_covered == x->req.length);
	PROP_CHECK(!san_wire_has_imm(r->kind) || r->imm == x->req.imm);
	if (x->fate == FATE_REFUSE_DONE) {
		x->refused = true;
		return x->code;
	}
	model_done(d, x);
	x->begun = false;
	if (model_needs_recv(x))
		d->nb_taken--;
	return SAN_ST_OK;
}

bool
san_tl_ulp_push_packed(void *ulp, uint16_t slot, const struct rte_mbuf *m,
		       const struct san_wire_pkt *p)
{
	return false; /* it is asked for each message */
}

void
san_tl_ulp_push_abort(void *ulp, struct san_tl_rxn *r)
{
	struct model_dir *d;
	struct model_txn *x = model_target(ulp, r, &d);

	PROP_CHECK(x->begun && !x->executed);
	PROP_CHECK(!r->packed || x->nb_covered == 0);
	x->begun = false;
	x->alone |= r->packed;
	model_uncover(x);
	if (!model_needs_recv(x))
		return;
	PROP_CHECK(d->nb_taken > 0);
	d->nb_taken--;
	d->nb_recvs++;
}

uint8_t
san_tl_ulp_pull_req(void *ulp, struct san_tl_rxn *r)
{
	struct model_dir *d;
	struct model_txn *x = model_target(ulp, r, &d);

	PROP_CHECK(r->length == x->req.length);
	if (x->nb_not_ready > 0) {
		x->nb_not_ready--;
		x->was_rnr = true;
		return SAN_ST_RNR;
	}
	if (x->fate == FATE_REFUSE_REQ) {
		x->refused = true;
		return x->code;
	}
	model_done(d, x);
	return SAN_ST_OK;
}

uint8_t
san_tl_ulp_pull_read(void *ulp, struct san_tl_rxn *r, uint32_t offset, void *dst, uint16_t len)
{
	struct model_dir *d;
	struct model_txn *x = model_target(ulp, r, &d);
	uint8_t *p = dst;

	PROP_CHECK(x->executed && offset + len <= x->req.length);
	if (x->fate == FATE_REVOKE && offset + len > x->req.length / 2)
		return x->code;
	for (uint32_t i = 0; i < len; i++)
		p[i] = model_byte((uint32_t)(x - d->txns), offset + i);
	return SAN_ST_OK;
}

uint8_t
san_tl_ulp_atomic(void *ulp, struct san_tl_rxn *r)
{
	struct model_dir *d;
	struct model_txn *x = model_target(ulp, r, &d);

	PROP_CHECK(r->op == x->req.op && r->operand == x->operand && r->swap == x->swap);
	if (x->nb_not_ready > 0) {
		x->nb_not_ready--;
		x->was_rnr = true;
		return SAN_ST_RNR;
	}
	if (x->fate == FATE_REFUSE_REQ) {
		x->refused = true;
		return x->code;
	}
	model_done(d, x);
	r->result = d->counter;
	x->old = d->counter;
	if (r->op == SAN_ATOMIC_FETCH_ADD)
		d->counter += r->operand;
	else if (d->counter == r->operand)
		d->counter = r->swap;
	return SAN_ST_OK;
}

/* ---- the initiator's ULP ---- */

static inline struct model_txn *
model_initiator(struct model_host *h, const struct san_tl_txn *t, struct model_dir **dir)
{
	struct model_dir *d = h->out[model_conn(h, t->slot)];

	PROP_CHECK(t->req.cookie < d->nb);
	*dir = d;
	return &d->txns[t->req.cookie];
}

void
san_tl_ulp_push_fill(void *ulp, const struct san_tl_txn *t, uint32_t offset, void *dst,
		     uint16_t len)
{
	struct model_dir *d;
	struct model_txn *x = model_initiator(ulp, t, &d);
	uint8_t *p = dst;

	PROP_CHECK(!x->completed && len > 0 && offset + len <= x->req.length);
	for (uint32_t i = 0; i < len; i++)
		p[i] = model_byte((uint32_t)(x - d->txns), offset + i);
}

void
san_tl_ulp_atomic_fill(void *ulp, const struct san_tl_txn *t, rte_be64_t args[2])
{
	struct model_dir *d;
	const struct model_txn *x = model_initiator(ulp, t, &d);

	PROP_CHECK(!x->completed);
	args[0] = rte_cpu_to_be_64(x->operand);
	args[1] = rte_cpu_to_be_64(x->swap);
}

uint8_t
san_tl_ulp_pull_place(void *ulp, const struct san_tl_txn *t, uint32_t offset, struct rte_mbuf *m,
		      uint16_t off, uint16_t len)
{
	struct model_dir *d;
	struct model_txn *x = model_initiator(ulp, t, &d);
	rte_be64_t copy;
	const void *p;

	PROP_CHECK(!x->completed);
	if (x->req.type == SAN_TL_ATOMIC) {
		PROP_CHECK(offset == 0 && len == sizeof(copy));
		p = rte_pktmbuf_read(m, off, len, &copy);
		memcpy(&copy, p, sizeof(copy));
		x->seen = rte_be_to_cpu_64(copy);
		x->nb_covered = 1;
		return SAN_ST_OK;
	}
	model_cover(x, (uint32_t)(x - d->txns), offset, m, off, len);
	return SAN_ST_OK;
}

/** Is *status* what may become of it? */
static inline void
model_judge(const struct model_txn *x, uint8_t status)
{
	switch (status) {
	case SAN_ST_OK:
		PROP_CHECK(x->executed);
		if (x->req.type == SAN_TL_ATOMIC)
			PROP_CHECK(x->nb_covered == 1 && x->seen == x->old);
		else
			PROP_CHECK(x->nb_covered == x->req.length);
		break;
	case SAN_ST_RNR:
		PROP_CHECK(!x->executed && (x->was_rnr || model_needs_recv(x)));
		break;
	case SAN_ST_ABORTED:
		PROP_CHECK(x->aborted);
		break;
	case MODEL_CLOSED:
		break;
	default:
		PROP_CHECK(x->fate != FATE_OK && status == x->code);
		PROP_CHECK(x->fate == FATE_REVOKE || (x->refused && !x->executed));
		break;
	}
}

static void
model_complete(struct model_host *ulp, const struct san_tl_txn *t, uint8_t status)
{
	struct model_dir *d;
	struct model_txn *x = model_initiator(ulp, t, &d);

	PROP_CHECK(x->submitted && !x->completed);
	PROP_CHECK(!d->ordered || t->req.cookie == d->nb_completed);
	model_judge(x, status);
	d->nb_completed++;
	x->completed = true;
	x->status = status;
}

void
san_tl_ulp_cmpl(void *ulp, struct san_tl_txn *const t[], uint32_t n, uint8_t status)
{
	for (uint32_t i = 0; i < n; i++)
		model_complete(ulp, t[i], status);
}

void
san_tl_ulp_room(void *ulp, uint16_t slot)
{
	struct model_host *h = ulp;

	h->room[model_conn(h, slot)] = true;
}
