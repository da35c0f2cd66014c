/* SPDX-License-Identifier: BSD-3-Clause */

/* The private data of a connection on an RDMA device: its bytes, and what is refused. (SYS-4) */

#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "verbs_hello.h"

#define SERVICE 0x0102030405060708ull

static uint8_t words[RTSAN_PRIVATE_MAX];

static void
setup(void)
{
	for (size_t i = 0; i < sizeof(words); i++)
		words[i] = (uint8_t)(0x80 + i);
}

/** From memory of exactly that size, so that a sanitizer detects every access beyond it. */
static enum rtsan_reason
decode(const uint8_t *p, size_t len, struct verbs_hello *h)
{
	uint8_t *exact = malloc(len > 0 ? len : 1);
	enum rtsan_reason reason;

	assert_non_null(exact);
	memcpy(exact, p, len);
	reason = san_verbs_hello_decode(exact, len, h);
	free(exact);
	return reason;
}

UNIT_FIXTURE(.setup = setup);

UNIT_CASE(verbs_hello__bytes)
{
	static const uint8_t expected[] = {'S', 'A', 'N', 'V', 1, VERBS_HELLO_STREAM, 0, 3,
					   1, 2, 3, 4, 5, 6, 7, 8,
					   0x80, 0x81, 0x82};
	uint8_t buf[VERBS_HELLO_MAX];
	struct verbs_hello h, got;

	san_verbs_hello_init(&h, SERVICE, words, 3);
	h.flags = VERBS_HELLO_STREAM;
	assert_int_equal(san_verbs_hello_encode(&h, buf), sizeof(expected));
	assert_memory_equal(buf, expected, sizeof(expected));
	assert_int_equal(decode(buf, sizeof(expected), &got), RTSAN_R_NONE);
	assert_int_equal(got.service, SERVICE);
	assert_int_equal(got.flags, VERBS_HELLO_STREAM);
	assert_int_equal(got.len, 3);
	assert_memory_equal(got.data, words, 3);
}

/* Any length, with the zeros that the connection manager appends. */
UNIT_CASE(verbs_hello__all_lengths)
{
	uint8_t buf[VERBS_HELLO_MAX + 8], len;
	struct verbs_hello h, got;

	for (uint16_t n = 0; n <= RTSAN_PRIVATE_MAX; n++) {
		memset(buf, 0, sizeof(buf));
		san_verbs_hello_init(&h, SERVICE, words, n);
		h.reason = RTSAN_R_REFUSED;
		len = san_verbs_hello_encode(&h, buf);
		assert_in_range(len, 1, VERBS_HELLO_MAX);
		assert_true(n > VERBS_HELLO_ONE || len <= VERBS_HELLO_ASK);
		assert_int_equal(decode(buf, sizeof(buf), &got), RTSAN_R_NONE);
		assert_int_equal(got.len, n);
		assert_int_equal(got.reason, RTSAN_R_REFUSED);
		assert_memory_equal(got.data, words, n);
	}
}

/* A hello that is too long for a request is sent in two halves that fit. */
UNIT_CASE(verbs_hello__halves)
{
	uint8_t first[VERBS_HELLO_MAX], rest[VERBS_HELLO_MAX];
	struct verbs_hello h, a, b;

	san_verbs_hello_init(&h, SERVICE, words, RTSAN_PRIVATE_MAX);
	h.token = 77;
	h.flags = VERBS_HELLO_FIRST | VERBS_HELLO_STREAM;
	assert_int_equal(san_verbs_hello_encode(&h, first), VERBS_HELLO_ASK);
	h.flags = VERBS_HELLO_REST | VERBS_HELLO_STREAM;
	assert_int_equal(san_verbs_hello_encode(&h, rest), VERBS_HELLO_ASK);
	assert_int_equal(decode(first, VERBS_HELLO_ASK, &a), RTSAN_R_NONE);
	assert_int_equal(decode(rest, VERBS_HELLO_ASK, &b), RTSAN_R_NONE);
	assert_true(a.token == 77 && b.token == 77 && a.len == RTSAN_PRIVATE_MAX);
	assert_int_equal(a.flags, VERBS_HELLO_FIRST | VERBS_HELLO_STREAM);
	assert_memory_equal(a.data, words, VERBS_HELLO_HALF);
	assert_memory_equal(b.data + VERBS_HELLO_HALF, words + VERBS_HELLO_HALF, VERBS_HELLO_HALF);
}

/* A hello of *len* bytes of private data, cut to *size*, with byte *at* set to *value*. */
static enum rtsan_reason
spoilt(uint8_t flags, uint16_t len, size_t size, size_t at, uint8_t value)
{
	uint8_t buf[VERBS_HELLO_MAX];
	static const struct verbs_hello nothing;
	enum rtsan_reason reason;
	struct verbs_hello h;

	san_verbs_hello_init(&h, SERVICE, words, len);
	h.flags = flags;
	san_verbs_hello_encode(&h, buf);
	buf[at] = value;
	reason = decode(buf, size, &h);
	/* without the reason, no field is out of range */
	if (reason != RTSAN_R_NONE)
		assert_memory_equal(&h, &nothing, sizeof(h));
	return reason;
}

UNIT_CASE(verbs_hello__refused)
{
	struct verbs_hello h;

	assert_int_equal(san_verbs_hello_decode(NULL, 0, &h), RTSAN_R_PARAMETER);
	assert_int_equal(spoilt(0, 8, 24, 8, 1), RTSAN_R_NONE);
	assert_int_equal(spoilt(0, 8, 24, 0, 'X'), RTSAN_R_PARAMETER); /* another protocol */
	assert_int_equal(spoilt(0, 8, 24, 4, 2), RTSAN_R_VERSION);
	assert_int_equal(spoilt(0, 8, 24, 7, 9), RTSAN_R_PARAMETER); /* longer than its data */
	assert_int_equal(spoilt(0, 64, 80, 7, 65), RTSAN_R_PARAMETER);
	assert_int_equal(spoilt(0, 64, 79, 8, 1), RTSAN_R_PARAMETER);
	assert_int_equal(spoilt(0, 0, 15, 8, 1), RTSAN_R_PARAMETER);
	assert_int_equal(spoilt(VERBS_HELLO_FIRST, 64, 55, 8, 1), RTSAN_R_PARAMETER);
	/* both halves at once; one half of a hello that needs none */
	assert_int_equal(spoilt(VERBS_HELLO_FIRST, 64, 56, 5, 6), RTSAN_R_PARAMETER);
	assert_int_equal(spoilt(VERBS_HELLO_FIRST, 64, 56, 7, 40), RTSAN_R_PARAMETER);
	assert_int_equal(spoilt(VERBS_HELLO_FIRST, 64, 56, 7, 41), RTSAN_R_NONE);
}
