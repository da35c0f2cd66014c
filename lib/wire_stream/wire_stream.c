/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The layout of a stream's messages is written down once: walk() visits the fields in their order
 * on the wire, and counts their bytes, writes them or reads them. doc/wire.md has the figures. The
 * length of every part is a multiple of 4 bytes.
 */

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "san_assert.h"
#include "wire_stream.h"

enum walk_to {
	WALK_LEN, /**< count the bytes */
	WALK_PUT, /**< write them; the message is not changed */
	WALK_GET, /**< read them into the message */
};

struct walk {
	enum walk_to to;
	uint8_t *p;    /**< next byte; unused by LEN, never written by GET */
	uint32_t left; /**< GET: bytes that are left; LEN: bytes so far */
	bool bad;      /**< GET: the message is invalid or too short */
};

/** The next *n* bytes; NULL: there are none to write or read. */
static inline uint8_t *
step(struct walk *w, uint32_t n)
{
	uint8_t *p = w->p;

	if (w->to == WALK_LEN) {
		w->left += n;
		return NULL;
	}
	if (w->to == WALK_GET) {
		w->bad |= w->left < n;
		if (w->bad)
			return NULL;
		w->left -= n;
	}
	w->p += n;
	return p;
}

static inline void
refuse_unless(struct walk *w, bool good)
{
	w->bad |= w->to == WALK_GET && !good;
}

/** An unsigned number of *n* bytes. Past the end of the message it is not changed. */
static inline __attribute__((always_inline)) void
number(struct walk *w, void *v, uint32_t n)
{
	uint8_t *p = step(w, n);
	union {
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
	} x;

	if (p == NULL)
		return;
	memcpy(&x, w->to == WALK_PUT ? v : p, n);
	if (n == 2)
		x.u16 = htobe16(x.u16);
	else if (n == 4)
		x.u32 = htobe32(x.u32);
	else if (n == 8)
		x.u64 = htobe64(x.u64);
	memcpy(w->to == WALK_PUT ? p : v, &x, n);
}

/** Reserved bytes are sent as zero; other values are refused. */
static inline void
zero(struct walk *w, uint32_t n)
{
	static const uint8_t none[4];
	uint8_t *p = step(w, n);

	if (p == NULL)
		return;
	if (w->to == WALK_PUT)
		memset(p, 0, n);
	else
		refuse_unless(w, memcmp(p, none, n) == 0);
}

static void
truth(struct walk *w, bool *v)
{
	uint8_t byte = *v;

	number(w, &byte, sizeof(byte));
	refuse_unless(w, byte <= 1);
	if (w->to == WALK_GET)
		*v = byte != 0;
}

/** The number of items of a list, 1 to *max*. If it is invalid, no item is read. */
static void
count(struct walk *w, uint8_t *n, uint8_t max)
{
	number(w, n, sizeof(*n));
	refuse_unless(w, *n >= 1 && *n <= max);
	SAN_ASSERT(w->to == WALK_GET || (*n >= 1 && *n <= max));
	if (w->bad)
		*n = 0;
}

static void
segs(struct walk *w, struct san_sm_where *where)
{
	uint8_t i;

	for (i = 0; i < where->nb_seg; i++) {
		number(w, &where->seg[i].addr, 8);
		number(w, &where->seg[i].len, 4);
		number(w, &where->seg[i].key, 4);
		refuse_unless(w, where->seg[i].len > 0);
	}
}

static void
lists(struct walk *w, struct san_sm *m, uint32_t part)
{
	uint8_t i;

	if (part == SAN_SM_WDONE) {
		count(w, &m->nb_wdone, SAN_SM_WDONES);
		zero(w, 3);
		for (i = 0; i < m->nb_wdone; i++) {
			number(w, &m->wdone[i].id, 4);
			number(w, &m->wdone[i].bytes, 4);
		}
		return;
	}
	count(w, &m->nb_adv, SAN_SM_ADVS);
	zero(w, 3);
	for (i = 0; i < m->nb_adv; i++) {
		number(w, &m->adv[i].id, 4);
		count(w, &m->adv[i].where.nb_seg, SAN_SM_SEGS);
		truth(w, &m->adv[i].after);
		zero(w, 2);
		segs(w, &m->adv[i].where);
	}
}

static void
walk_part(struct walk *w, struct san_sm *m, uint32_t part)
{
	switch (part) {
	case SAN_SM_HELLO:
		number(w, &m->hello.nb_store, 2);
		number(w, &m->hello.nb_adv, 2);
		number(w, &m->hello.msg_size, 4);
		number(w, &m->hello.threshold, 4);
		truth(w, &m->hello.can_read);
		zero(w, 3);
		break;
	case SAN_SM_WDONE:
	case SAN_SM_ADV:
		lists(w, m, part);
		break;
	case SAN_SM_NOTICE:
	case SAN_SM_OFFER:
		number(w, &m->send_id, 4);
		number(w, &m->rest, 4);
		refuse_unless(w, m->send_id != 0);
		if (part == SAN_SM_NOTICE)
			break;
		count(w, &m->offer.nb_seg, SAN_SM_SEGS);
		zero(w, 3);
		segs(w, &m->offer);
		break;
	case SAN_SM_RDONE:
		number(w, &m->rep.rdone.id, 4);
		number(w, &m->rep.rdone.bytes, 4);
		number(w, &m->rep.rdone.mode, 1);
		zero(w, 3);
		refuse_unless(w, m->rep.rdone.mode < SAN_SM_MODES);
		break;
	case SAN_SM_RESIZED:
		number(w, &m->rep.resized.bytes, 4);
		number(w, &m->rep.resized.after, 4);
		break;
	case SAN_SM_SMALL:
		number(w, &m->rep.small_id, 4);
		break;
	case SAN_SM_RESIZE:
		number(w, &m->rep.resize, 4);
		break;
	case SAN_SM_URGENT:
		number(w, &m->rep.urgent, 4);
		break;
	case SAN_SM_CANCEL:
		number(w, &m->rep.cancel, 4);
		break;
	default:
		number(w, &m->rep.cancelled, 4);
		break;
	}
}

/** True if all flags are known and do not contradict each other. */
static bool
flags_valid(const struct san_sm *m)
{
	uint32_t f = m->flags;
	uint32_t begins = f & (SAN_SM_NOTICE | SAN_SM_OFFER);

	if ((f & ~(SAN_SM_PARTS | SAN_SM_FACTS)) != 0)
		return false;
	if (begins == (SAN_SM_NOTICE | SAN_SM_OFFER))
		return false;
	if ((f & SAN_SM_INITIAL) && begins == 0)
		return false;
	if ((f & SAN_SM_URGENT_BYTE) && m->len != 1)
		return false;
	return !(f & SAN_SM_ACCEPTOR) || (f & SAN_SM_HELLO);
}

/* The caller's *to* is a constant, so the header is compiled for each. */
static inline __attribute__((always_inline)) void
walk(struct walk *w, struct san_sm *m)
{
	uint8_t version = SAN_SM_VERSION;
	uint32_t todo;

	number(w, &version, 1);
	number(w, &m->mode, 1);
	number(w, &m->len, 2);
	number(w, &m->flags, 4);
	number(w, &m->pr, 2);
	zero(w, 2);
	number(w, &m->seq, 4);
	number(w, &m->lrsq, 4);
	number(w, &m->nb_rcvd, 4);
	number(w, &m->nb_freed, 4);
	refuse_unless(w, version == SAN_SM_VERSION && m->mode < SAN_SM_MODES && flags_valid(m));
	for (todo = w->bad ? 0 : m->flags & SAN_SM_PARTS; todo != 0; todo &= todo - 1)
		walk_part(w, m, todo & -todo);
}

/* Only WALK_GET changes the message. */
static inline struct san_sm *
unchanged(const struct san_sm *m)
{
	return (struct san_sm *)(uintptr_t)m;
}

uint32_t
san_wire_stream_len(const struct san_sm *m)
{
	struct walk w = {.to = WALK_LEN};

	walk(&w, unchanged(m));
	return w.left;
}

void
san_wire_stream_put(const struct san_sm *m, uint8_t *p)
{
	struct walk w = {.to = WALK_PUT, .p = p};

	SAN_ASSERT((m->flags & ~(SAN_SM_PARTS | SAN_SM_FACTS)) == 0 && m->mode < SAN_SM_MODES);
	walk(&w, unchanged(m));
}

int
san_wire_stream_get(const uint8_t *p, uint32_t len, struct san_sm *m, uint32_t *payload)
{
	struct walk w = {.to = WALK_GET, .p = (uint8_t *)(uintptr_t)p, .left = len};

	memset(m, 0, sizeof(*m));
	walk(&w, m);
	if (w.bad || w.left != m->len)
		return -EBADMSG;
	*payload = len - w.left;
	return 0;
}
