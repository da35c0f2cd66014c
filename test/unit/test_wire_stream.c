/* SPDX-License-Identifier: BSD-3-Clause */

/* Session messages: the bytes of every part, and what is refused. (AFC-3) */

#include <errno.h>
#include <stdlib.h>

#include "unit.h"
#include "stream_sample.h"

#define ROOM (SAN_SM_HDR_MAX + STREAM_SAMPLE_PAYLOAD)

static const struct stream_sample *
sample(const char *name)
{
	for (size_t i = 0; i < STREAM_NB_SAMPLES; i++) {
		if (strcmp(stream_samples[i].name, name) == 0)
			return &stream_samples[i];
	}
	fail_msg("no sample %s", name);
	return NULL;
}

/** From memory of exactly that size, so that a sanitizer detects every access beyond it. */
static int
get(const uint8_t *p, uint32_t len, struct san_sm *m, uint32_t *payload)
{
	uint8_t *exact = malloc(len > 0 ? len : 1);
	int rc;

	assert_non_null(exact);
	memcpy(exact, p, len);
	rc = san_wire_stream_get(exact, len, m, payload);
	free(exact);
	return rc;
}

UNIT_CASE(put__bytes)
{
	/* by hand, so that both directions cannot have the same error */
	static const uint8_t want[] = {
		1, 3, 0, 7, 0x00, 0x01, 0x00, 0x10,             /* version, mode, length, flags */
		0xa1, 0xa2, 0, 0, 0xff, 0xff, 0xff, 0xfe,       /* PR, seq */
		0xb1, 0xb2, 0xb3, 0xb4, 0xc1, 0xc2, 0xc3, 0xc4, /* LRSQ, R */
		0xd1, 0xd2, 0xd3, 0xd4,                         /* freed */
		0x51, 0x52, 0x53, 0x54, 0x61, 0x62, 0x63, 0x64, /* send, rest */
		1, 0, 0, 0,                                     /* one piece */
		0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x40, /* address */
		0x00, 0x01, 0x02, 0x40, 0x91, 0x92, 0x93, 0x40, /* length, key */
		'A', 'B', 'C', 'D', 'E', 'F', 'G'};
	uint8_t p[ROOM];

	assert_int_equal(stream_sample_put(sample("offer"), p), sizeof(want));
	assert_memory_equal(p, want, sizeof(want));
}

UNIT_CASE(put__length)
{
	struct san_sm m = stream_sample_get(sample("longest"));
	uint8_t p[ROOM + 1];

	assert_int_equal(san_wire_stream_len(&m), SAN_SM_HDR_MAX);
	memset(p, 0x5a, sizeof(p));
	san_wire_stream_put(&m, p);
	assert_int_equal(p[SAN_SM_HDR_MAX], 0x5a);
	m = stream_sample_get(sample("update"));
	assert_int_equal(san_wire_stream_len(&m), SAN_SM_HDR);
}

UNIT_CASE(get__every_part)
{
	struct san_sm want, m;
	uint8_t p[ROOM], again[ROOM];
	uint32_t payload, len;

	for (size_t i = 0; i < STREAM_NB_SAMPLES; i++) {
		want = stream_sample_get(&stream_samples[i]);
		len = stream_sample_put(&stream_samples[i], p);
		memset(&m, 0x5a, sizeof(m));
		if (get(p, len, &m, &payload) != 0)
			fail_msg("%s is refused", stream_samples[i].name);
		assert_memory_equal(&m, &want, sizeof(m));
		assert_int_equal(payload, len - m.len);
		assert_int_equal(payload, san_wire_stream_len(&m));
		san_wire_stream_put(&m, again);
		assert_memory_equal(again, p, payload);
	}
}

/** Bytes of a part are missing, or the payload is shorter or longer than its length. */
UNIT_CASE(get__every_length)
{
	uint8_t p[ROOM + 1] = {0};
	uint32_t payload, len;
	struct san_sm m;

	for (size_t i = 0; i < STREAM_NB_SAMPLES; i++) {
		len = stream_sample_put(&stream_samples[i], p);
		for (uint32_t n = 0; n <= len + 1; n++) {
			if ((get(p, n, &m, &payload) == 0) != (n == len))
				fail_msg("%s: %u of %u bytes", stream_samples[i].name, n, len);
		}
	}
}

/* Invalid values, with their place in the header and the parts. */
static const struct {
	const char *sample;
	uint16_t at;
	uint8_t value;
} rows[] = {
	{"data", 0, 0}, /* version */
	{"data", 0, 2},
	{"data", 1, SAN_SM_MODES},
	{"data", 1, 255},
	{"data", 4, 0x01}, /* flags */
	{"data", 4, 0x80},
	{"data", 6, 0x10},
	{"data", 6, 0x80},
	{"data", 5, 0x01}, /* INITIAL of nothing */
	{"data", 5, 0x04}, /* URGENT_BYTE of seven */
	{"data", 5, 0x80}, /* ACCEPTOR without HELLO */
	{"data", 10, 1},   /* reserved */
	{"data", 11, 1},
	{"hello", 28 + 12, 2}, /* a bool that is neither */
	{"hello", 28 + 13, 1},
	{"hello", 28 + 15, 1},
	{"wdone", 28, 0},
	{"wdone", 28, 2},
	{"wdone", 28, SAN_SM_WDONES + 1},
	{"wdone", 29, 1},
	{"wdone", 31, 1},
	{"adv", 28, 0},
	{"adv", 28, 2},
	{"adv", 28, SAN_SM_ADVS + 1},
	{"adv", 29, 1},
	{"adv", 32 + 4, 0}, /* pieces */
	{"adv", 32 + 4, 2},
	{"adv", 32 + 4, SAN_SM_SEGS + 1},
	{"adv", 32 + 5, 2}, /* after */
	{"adv", 32 + 6, 1},
	{"adv", 32 + 7, 1},
	{"offer", 36, 0},
	{"offer", 36, 2},
	{"offer", 36, SAN_SM_SEGS + 1},
	{"offer", 37, 1},
	{"rdone", 36, SAN_SM_MODES},
	{"rdone", 37, 1},
	{"longest", 28 + 16, SAN_SM_WDONES + 1},
	{"longest", 28 + 16 + 68, SAN_SM_ADVS + 1},
};

UNIT_CASE(get__values)
{
	uint8_t p[ROOM];
	uint32_t payload, len;
	struct san_sm m;

	UNIT_EACH(r, rows) {
		len = stream_sample_put(sample(r->sample), p);
		p[r->at] = r->value;
		if (get(p, len, &m, &payload) != -EBADMSG)
			fail_msg("%s with byte %u = %u", r->sample, r->at, r->value);
	}
}

/** Counts beyond the limit are no index, even if there are bytes for so many. */
UNIT_CASE(get__counts_with_bytes)
{
	uint8_t p[SAN_SM_HDR + 4 + 255 * 72] = {1};
	struct san_sm m;
	uint32_t payload;

	p[7] = SAN_SM_WDONE;
	for (unsigned int n = 0; n < 256; n++) {
		p[SAN_SM_HDR] = (uint8_t)n;
		assert_int_equal(get(p, SAN_SM_HDR + 4 + 8 * n, &m, &payload) == 0,
				 n >= 1 && n <= SAN_SM_WDONES);
		assert_true(m.nb_wdone <= SAN_SM_WDONES);
	}
	p[7] = SAN_SM_OFFER;
	p[SAN_SM_HDR + 3] = 1; /* send */
	for (unsigned int n = 0; n < 256; n++) {
		p[SAN_SM_HDR + 8] = (uint8_t)n;
		memset(p + SAN_SM_HDR + 12, 1, 16 * n);
		assert_int_equal(get(p, SAN_SM_HDR + 12 + 16 * n, &m, &payload) == 0,
				 n >= 1 && n <= SAN_SM_SEGS);
		assert_true(m.offer.nb_seg <= SAN_SM_SEGS);
	}
}

UNIT_CASE(get__counts_with_bytes_adv)
{
	uint8_t p[SAN_SM_HDR + 4 + 255 * 24] = {1};
	struct san_sm m;
	uint32_t payload;

	p[7] = SAN_SM_ADV;
	for (uint32_t at = SAN_SM_HDR + 4; at < sizeof(p); at += 24) {
		p[at + 4] = 1;  /* one piece */
		p[at + 16] = 1; /* and its length */
	}
	for (unsigned int n = 0; n < 256; n++) {
		p[SAN_SM_HDR] = (uint8_t)n;
		assert_int_equal(get(p, SAN_SM_HDR + 4 + 24 * n, &m, &payload) == 0,
				 n >= 1 && n <= SAN_SM_ADVS);
		assert_true(m.nb_adv <= SAN_SM_ADVS);
	}
}

/** Messages that no put() makes: *m* as it is, or with a change. */
static int
refused(struct san_sm *m)
{
	uint8_t p[ROOM] = {0};
	uint32_t payload;
	struct san_sm got;

	san_wire_stream_put(m, p);
	return get(p, san_wire_stream_len(m) + m->len, &got, &payload);
}

UNIT_CASE(get__combinations)
{
	struct san_sm m = stream_sample_get(sample("offer"));

	m.flags |= SAN_SM_NOTICE;
	assert_int_equal(refused(&m), -EBADMSG);
	m = stream_sample_get(sample("notice"));
	m.flags |= SAN_SM_INITIAL;
	assert_int_equal(refused(&m), 0);
	m.send_id = 0;
	assert_int_equal(refused(&m), -EBADMSG);
	m = stream_sample_get(sample("offer"));
	m.send_id = 0;
	assert_int_equal(refused(&m), -EBADMSG);
	m = stream_sample_get(sample("urgent_byte"));
	m.len = 0;
	assert_int_equal(refused(&m), -EBADMSG);
	m.len = 2;
	assert_int_equal(refused(&m), -EBADMSG);
}

/** A piece without bytes, at any place. */
UNIT_CASE(get__empty_pieces)
{
	struct san_sm m;

	for (unsigned int k = 0; k < SAN_SM_SEGS; k++) {
		m = stream_sample_get(sample("longest"));
		m.offer.seg[k].len = 0;
		assert_int_equal(refused(&m), -EBADMSG);
		for (unsigned int i = 0; i < SAN_SM_ADVS; i++) {
			m = stream_sample_get(sample("longest"));
			m.adv[i].where.seg[k].len = 0;
			assert_int_equal(refused(&m), -EBADMSG);
		}
	}
}
