/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "san_assert.h"
#include "wire_stream.h"

/* doc/wire.md has the figures. The length of every part is a multiple of 4 bytes. */
#define SEG_BYTES   16
#define WDONE_BYTES 8
#define ADV_BYTES   8 /* plus its pieces */
#define NB_PARTS    12

static_assert(SAN_SM_PARTS == (1u << NB_PARTS) - 1, "a row in the table for each");

static uint8_t *
sm_put8(uint8_t *p, uint8_t v)
{
	*p = v;
	return p + 1;
}

static uint8_t *
sm_put16(uint8_t *p, uint16_t v)
{
	v = htobe16(v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static uint8_t *
sm_put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static uint8_t *
sm_put64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

/** Reserved bytes are sent as zero; other values are refused. */
static uint8_t *
put_zero(uint8_t *p, uint32_t n)
{
	memset(p, 0, n);
	return p + n;
}

/** A message being read. Reading past its end returns zero and sets *bad*. */
struct in {
	const uint8_t *p;
	uint32_t left;
	bool bad;
};

static const uint8_t *
sm_take_bytes(struct in *in, uint32_t n)
{
	static const uint8_t zero[8];
	const uint8_t *p = in->p;

	if (in->left < n) {
		in->bad = true;
		return zero;
	}
	in->p += n;
	in->left -= n;
	return p;
}

static uint8_t
sm_get8(struct in *in)
{
	return *sm_take_bytes(in, 1);
}

static uint16_t
sm_get16(struct in *in)
{
	uint16_t v;

	memcpy(&v, sm_take_bytes(in, sizeof(v)), sizeof(v));
	return be16toh(v);
}

static uint32_t
sm_get32(struct in *in)
{
	uint32_t v;

	memcpy(&v, sm_take_bytes(in, sizeof(v)), sizeof(v));
	return be32toh(v);
}

static uint64_t
sm_get64(struct in *in)
{
	uint64_t v;

	memcpy(&v, sm_take_bytes(in, sizeof(v)), sizeof(v));
	return be64toh(v);
}

static void
refuse_unless(struct in *in, bool good)
{
	in->bad |= !good;
}

static void
get_zero(struct in *in, uint32_t n)
{
	while (n-- > 0)
		refuse_unless(in, sm_get8(in) == 0);
}

static bool
get_bool(struct in *in)
{
	uint8_t v = sm_get8(in);

	refuse_unless(in, v <= 1);
	return v != 0;
}

/** Read a count of 1 to *max*; 0 if it is invalid, so that no list is read. */
static uint8_t
get_count(struct in *in, uint8_t max)
{
	uint8_t n = sm_get8(in);

	refuse_unless(in, n >= 1 && n <= max);
	return in->bad ? 0 : n;
}

static uint8_t *
put_segs(const struct san_sm_where *w, uint8_t *p)
{
	uint8_t i;

	SAN_ASSERT(w->nb_seg >= 1 && w->nb_seg <= SAN_SM_SEGS);
	for (i = 0; i < w->nb_seg; i++) {
		p = sm_put64(p, w->seg[i].addr);
		p = sm_put32(p, w->seg[i].len);
		p = sm_put32(p, w->seg[i].key);
	}
	return p;
}

static void
get_segs(struct in *in, struct san_sm_where *w)
{
	uint8_t i;

	for (i = 0; i < w->nb_seg; i++) {
		w->seg[i].addr = sm_get64(in);
		w->seg[i].len = sm_get32(in);
		w->seg[i].key = sm_get32(in);
		refuse_unless(in, w->seg[i].len > 0);
	}
}

static uint8_t *
put_hello(const struct san_sm *m, uint8_t *p)
{
	p = sm_put16(p, m->hello.nb_store);
	p = sm_put16(p, m->hello.nb_adv);
	p = sm_put32(p, m->hello.msg_size);
	p = sm_put32(p, m->hello.threshold);
	p = sm_put8(p, m->hello.can_read);
	return put_zero(p, 3);
}

static void
get_hello(struct in *in, struct san_sm *m)
{
	m->hello.nb_store = sm_get16(in);
	m->hello.nb_adv = sm_get16(in);
	m->hello.msg_size = sm_get32(in);
	m->hello.threshold = sm_get32(in);
	m->hello.can_read = get_bool(in);
	get_zero(in, 3);
}

static uint32_t
len_wdone(const struct san_sm *m)
{
	return 4 + WDONE_BYTES * (uint32_t)m->nb_wdone;
}

static uint8_t *
put_wdone(const struct san_sm *m, uint8_t *p)
{
	uint8_t i;

	SAN_ASSERT(m->nb_wdone >= 1 && m->nb_wdone <= SAN_SM_WDONES);
	p = sm_put8(p, m->nb_wdone);
	p = put_zero(p, 3);
	for (i = 0; i < m->nb_wdone; i++) {
		p = sm_put32(p, m->wdone[i].id);
		p = sm_put32(p, m->wdone[i].bytes);
	}
	return p;
}

static void
get_wdone(struct in *in, struct san_sm *m)
{
	uint8_t i;

	m->nb_wdone = get_count(in, SAN_SM_WDONES);
	get_zero(in, 3);
	for (i = 0; i < m->nb_wdone; i++) {
		m->wdone[i].id = sm_get32(in);
		m->wdone[i].bytes = sm_get32(in);
	}
}

static uint32_t
len_adv(const struct san_sm *m)
{
	uint32_t bytes = 4;
	uint8_t i;

	for (i = 0; i < m->nb_adv; i++)
		bytes += ADV_BYTES + SEG_BYTES * (uint32_t)m->adv[i].where.nb_seg;
	return bytes;
}

static uint8_t *
put_adv(const struct san_sm *m, uint8_t *p)
{
	uint8_t i;

	SAN_ASSERT(m->nb_adv >= 1 && m->nb_adv <= SAN_SM_ADVS);
	p = sm_put8(p, m->nb_adv);
	p = put_zero(p, 3);
	for (i = 0; i < m->nb_adv; i++) {
		p = sm_put32(p, m->adv[i].id);
		p = sm_put8(p, m->adv[i].where.nb_seg);
		p = sm_put8(p, m->adv[i].after);
		p = put_zero(p, 2);
		p = put_segs(&m->adv[i].where, p);
	}
	return p;
}

static void
get_adv(struct in *in, struct san_sm *m)
{
	uint8_t i;

	m->nb_adv = get_count(in, SAN_SM_ADVS);
	get_zero(in, 3);
	for (i = 0; i < m->nb_adv; i++) {
		m->adv[i].id = sm_get32(in);
		m->adv[i].where.nb_seg = get_count(in, SAN_SM_SEGS);
		m->adv[i].after = get_bool(in);
		get_zero(in, 2);
		get_segs(in, &m->adv[i].where);
	}
}

static uint32_t
len_offer(const struct san_sm *m)
{
	return 12 + SEG_BYTES * (uint32_t)m->offer.nb_seg;
}

static uint8_t *
put_notice(const struct san_sm *m, uint8_t *p)
{
	p = sm_put32(p, m->send_id);
	return sm_put32(p, m->rest);
}

static void
get_notice(struct in *in, struct san_sm *m)
{
	m->send_id = sm_get32(in);
	m->rest = sm_get32(in);
	refuse_unless(in, m->send_id != 0);
}

static uint8_t *
put_offer(const struct san_sm *m, uint8_t *p)
{
	p = put_notice(m, p);
	p = sm_put8(p, m->offer.nb_seg);
	p = put_zero(p, 3);
	return put_segs(&m->offer, p);
}

static void
get_offer(struct in *in, struct san_sm *m)
{
	get_notice(in, m);
	m->offer.nb_seg = get_count(in, SAN_SM_SEGS);
	get_zero(in, 3);
	get_segs(in, &m->offer);
}

static uint8_t *
put_rdone(const struct san_sm *m, uint8_t *p)
{
	SAN_ASSERT(m->rdone.mode < SAN_SM_MODES);
	p = sm_put32(p, m->rdone.id);
	p = sm_put32(p, m->rdone.bytes);
	p = sm_put8(p, m->rdone.mode);
	return put_zero(p, 3);
}

static void
get_rdone(struct in *in, struct san_sm *m)
{
	m->rdone.id = sm_get32(in);
	m->rdone.bytes = sm_get32(in);
	m->rdone.mode = sm_get8(in);
	refuse_unless(in, m->rdone.mode < SAN_SM_MODES);
	get_zero(in, 3);
}

static uint8_t *
put_resized(const struct san_sm *m, uint8_t *p)
{
	p = sm_put32(p, m->resized.bytes);
	return sm_put32(p, m->resized.after);
}

static void
get_resized(struct in *in, struct san_sm *m)
{
	m->resized.bytes = sm_get32(in);
	m->resized.after = sm_get32(in);
}

/** One row per part, in the order of the flags. */
struct part {
	uint8_t bytes; /* 0: *len* computes it */
	uint32_t (*len)(const struct san_sm *m);
	uint8_t *(*put)(const struct san_sm *m, uint8_t *p); /* NULL: one number, at *number* */
	void (*get)(struct in *in, struct san_sm *m);
	size_t number;
};

#define BIT(flag) __builtin_ctz(SAN_SM_##flag)
#define FIXED(size, name)                                             \
	{                                                             \
		.bytes = (size), .put = put_##name, .get = get_##name \
	}
#define LIST(name)                                                      \
	{                                                               \
		.len = len_##name, .put = put_##name, .get = get_##name \
	}
#define NUMBER(field)                                                \
	{                                                            \
		.bytes = 4, .number = offsetof(struct san_sm, field) \
	}

static const struct part parts[] = {
	[BIT(HELLO)] = FIXED(16, hello),
	[BIT(WDONE)] = LIST(wdone),
	[BIT(ADV)] = LIST(adv),
	[BIT(NOTICE)] = FIXED(8, notice),
	[BIT(OFFER)] = LIST(offer),
	[BIT(RDONE)] = FIXED(12, rdone),
	[BIT(SMALL)] = NUMBER(small_id),
	[BIT(RESIZE)] = NUMBER(resize),
	[BIT(RESIZED)] = FIXED(8, resized),
	[BIT(URGENT)] = NUMBER(urgent),
	[BIT(CANCEL)] = NUMBER(cancel),
	[BIT(CANCELLED)] = NUMBER(cancelled),
};
static_assert(sizeof(parts) / sizeof(parts[0]) == NB_PARTS, "a row for each");

uint32_t
san_wire_stream_len(const struct san_sm *m)
{
	uint32_t todo = m->flags & SAN_SM_PARTS;
	uint32_t bytes = SAN_SM_HDR;
	const struct part *part;

	for (; todo != 0; todo &= todo - 1) {
		part = &parts[__builtin_ctz(todo)];
		bytes += part->bytes != 0 ? part->bytes : part->len(m);
	}
	return bytes;
}

void
san_wire_stream_put(const struct san_sm *m, uint8_t *p)
{
	uint32_t todo = m->flags & SAN_SM_PARTS, number;
	const struct part *part;

	SAN_ASSERT((m->flags & ~(SAN_SM_PARTS | SAN_SM_FACTS)) == 0 && m->mode < SAN_SM_MODES);
	p = sm_put8(p, SAN_SM_VERSION);
	p = sm_put8(p, m->mode);
	p = sm_put16(p, m->len);
	p = sm_put32(p, m->flags);
	p = sm_put16(p, m->pr);
	p = put_zero(p, 2);
	p = sm_put32(p, m->seq);
	p = sm_put32(p, m->lrsq);
	p = sm_put32(p, m->nb_rcvd);
	p = sm_put32(p, m->nb_freed);
	for (; todo != 0; todo &= todo - 1) {
		part = &parts[__builtin_ctz(todo)];
		if (part->put != NULL) {
			p = part->put(m, p);
			continue;
		}
		memcpy(&number, (const uint8_t *)m + part->number, sizeof(number));
		p = sm_put32(p, number);
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

int
san_wire_stream_get(const uint8_t *p, uint32_t len, struct san_sm *m, uint32_t *payload)
{
	struct in in = {.p = p, .left = len};
	const struct part *part;
	uint32_t todo, number;

	memset(m, 0, sizeof(*m));
	refuse_unless(&in, sm_get8(&in) == SAN_SM_VERSION);
	m->mode = sm_get8(&in);
	m->len = sm_get16(&in);
	m->flags = sm_get32(&in);
	m->pr = sm_get16(&in);
	get_zero(&in, 2);
	m->seq = sm_get32(&in);
	m->lrsq = sm_get32(&in);
	m->nb_rcvd = sm_get32(&in);
	m->nb_freed = sm_get32(&in);
	refuse_unless(&in, m->mode < SAN_SM_MODES);
	if (in.bad || !flags_valid(m))
		return -EBADMSG;
	for (todo = m->flags & SAN_SM_PARTS; todo != 0; todo &= todo - 1) {
		part = &parts[__builtin_ctz(todo)];
		if (part->get != NULL) {
			part->get(&in, m);
			continue;
		}
		number = sm_get32(&in);
		memcpy((uint8_t *)m + part->number, &number, sizeof(number));
	}
	if (in.bad || in.left != m->len)
		return -EBADMSG;
	*payload = len - in.left;
	return 0;
}
