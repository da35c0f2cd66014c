/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * One session message with every part and fact, and one of all that go together, for the unit
 * test of the codec, the fuzz corpus and the dissector's test: all fields set, most to values
 * that show a wrong offset or byte order. No DPDK.
 */

#include <stdint.h>
#include <string.h>

#include "wire_stream.h"

#define STREAM_SAMPLE_PAYLOAD 7

struct stream_sample {
	const char *name;
	uint32_t flags;
	uint16_t payload;
	uint8_t nb; /**< of everything that there is a list of; 0: no list */
};

#define STREAM_SAMPLE_ALL ((SAN_SM_PARTS | SAN_SM_FACTS) & ~(SAN_SM_NOTICE | SAN_SM_URGENT_BYTE))

static const struct stream_sample stream_samples[] = {
	{"update", SAN_SM_UPDATE, 0, 0},
	{"data", 0, STREAM_SAMPLE_PAYLOAD, 0},
	{"hello", SAN_SM_HELLO, 0, 0},
	{"hello_acceptor", SAN_SM_HELLO | SAN_SM_ACCEPTOR, 0, 0},
	{"wdone", SAN_SM_WDONE, 0, 1},
	{"adv", SAN_SM_ADV, 0, 1},
	{"notice", SAN_SM_NOTICE | SAN_SM_LARGE, STREAM_SAMPLE_PAYLOAD, 0},
	{"offer", SAN_SM_OFFER | SAN_SM_INITIAL, STREAM_SAMPLE_PAYLOAD, 1},
	{"rdone", SAN_SM_RDONE, 0, 0},
	{"withdraw", SAN_SM_RDONE | SAN_SM_WITHDRAW, 0, 0},
	{"small", SAN_SM_SMALL, 0, 0},
	{"resize", SAN_SM_RESIZE, 0, 0},
	{"resized", SAN_SM_RESIZED, 0, 0},
	{"urgent", SAN_SM_URGENT, 0, 0},
	{"urgent_byte", SAN_SM_URGENT_BYTE, 1, 0},
	{"cancel", SAN_SM_CANCEL, 0, 0},
	{"cancelled", SAN_SM_CANCELLED, 0, 0},
	{"fin", SAN_SM_FIN | SAN_SM_REDISCOVER, STREAM_SAMPLE_PAYLOAD, 0},
	{"all", STREAM_SAMPLE_ALL, STREAM_SAMPLE_PAYLOAD, 2},
	{"longest", STREAM_SAMPLE_ALL, 0, SAN_SM_WDONES},
};
#define STREAM_NB_SAMPLES (sizeof(stream_samples) / sizeof(stream_samples[0]))

/** Up to 4 pieces; other ones for each *salt*. */
static inline struct san_sm_where
stream_sample_where(uint8_t nb, uint8_t salt)
{
	struct san_sm_where w = {.nb_seg = nb < SAN_SM_SEGS ? nb : SAN_SM_SEGS};

	for (uint8_t i = 0; i < w.nb_seg; i++) {
		w.seg[i].addr = 0x8182838485868700u + 0x10u * salt + i;
		w.seg[i].len = 0x00010200u + 0x10u * salt + i;
		w.seg[i].key = 0x91929300u + 0x10u * salt + i;
	}
	return w;
}

static inline void
stream_sample_lists(struct san_sm *m, uint8_t nb)
{
	m->nb_wdone = (m->flags & SAN_SM_WDONE) ? nb : 0;
	for (uint8_t i = 0; i < m->nb_wdone; i++) {
		m->wdone[i].id = 0x21222300u + i;
		m->wdone[i].bytes = 0x31323300u + i;
	}
	if (m->flags & SAN_SM_ADV)
		m->nb_adv = nb < SAN_SM_ADVS ? nb : SAN_SM_ADVS;
	for (uint8_t i = 0; i < m->nb_adv; i++) {
		m->adv[i].id = 0x41424300u + i;
		m->adv[i].after = i & 1;
		m->adv[i].where = stream_sample_where(nb, i);
	}
	if (m->flags & SAN_SM_OFFER)
		m->offer = stream_sample_where(nb, SAN_SM_ADVS);
}

static inline void
stream_sample_hello(struct san_sm *m)
{
	m->hello.nb_store = 0x0102;
	m->hello.nb_adv = 0x0304;
	m->hello.msg_size = 0x00010506;
	m->hello.threshold = 0x00020708;
	m->hello.can_read = true;
}

/** Those fields that the flags of *s* name; the others are zero. */
static inline struct san_sm
stream_sample_get(const struct stream_sample *s)
{
	struct san_sm m;

	memset(&m, 0, sizeof(m)); /* padding, too, so that two can be compared */
	m.flags = s->flags;
	m.mode = SAN_SM_SMALL_LARGE;
	m.len = s->payload;
	m.pr = 0xa1a2;
	m.seq = 0xfffffffe;
	m.lrsq = 0xb1b2b3b4;
	m.nb_rcvd = 0xc1c2c3c4;
	m.nb_freed = 0xd1d2d3d4;
	if (s->flags & SAN_SM_HELLO)
		stream_sample_hello(&m);
	if (s->flags & (SAN_SM_NOTICE | SAN_SM_OFFER)) {
		m.send_id = 0x51525354;
		m.rest = 0x61626364;
	}
	if (s->flags & SAN_SM_RDONE) {
		m.rep.rdone.id = 0x71727374;
		m.rep.rdone.bytes = 0x01020304;
		m.rep.rdone.mode = SAN_SM_LARGE_RECV;
	}
	m.rep.small_id = (s->flags & SAN_SM_SMALL) ? 0x11121314 : 0;
	m.rep.resize = (s->flags & SAN_SM_RESIZE) ? 0x15161718 : 0;
	if (s->flags & SAN_SM_RESIZED) {
		m.rep.resized.bytes = 0x25262728;
		m.rep.resized.after = 0x35363738;
	}
	m.rep.urgent = (s->flags & SAN_SM_URGENT) ? 0x45464748 : 0;
	m.rep.cancel = (s->flags & SAN_SM_CANCEL) ? 0x55565758 : 0;
	m.rep.cancelled = (s->flags & SAN_SM_CANCELLED) ? 0x65666768 : 0;
	stream_sample_lists(&m, s->nb);
	return m;
}

/** Message and payload to *p*; how many bytes that were, at most SAN_SM_HDR_MAX and payload. */
static inline uint32_t
stream_sample_put(const struct stream_sample *s, uint8_t *p)
{
	struct san_sm m = stream_sample_get(s);
	uint32_t len = san_wire_stream_len(&m);

	san_wire_stream_put(&m, p);
	for (uint32_t i = 0; i < s->payload; i++)
		p[len + i] = (uint8_t)('A' + i);
	return len + s->payload;
}
