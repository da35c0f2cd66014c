/* SPDX-License-Identifier: BSD-3-Clause */

/* The only place that parses bytes chosen by a peer; all others are the device's. (SYS-4) */

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "verbs_hello.h"

#define MAGIC   0x53414e56u /* "SANV" */
#define VERSION 1

/* In network byte order. */
struct head {
	uint32_t magic;
	uint8_t version, flags, reason, len;
	uint64_t service;
};

/* Follows the head of FIRST and REST. */
struct half {
	uint64_t token;
	uint8_t data[VERBS_HELLO_HALF];
};

static_assert(sizeof(struct head) + VERBS_HELLO_ONE == VERBS_HELLO_ASK, "a request is full");
static_assert(sizeof(struct head) + sizeof(struct half) == VERBS_HELLO_ASK, "so is half of one");
static_assert(sizeof(struct head) + RTSAN_PRIVATE_MAX == VERBS_HELLO_MAX, "an answer has all");
static_assert(2 * VERBS_HELLO_HALF == RTSAN_PRIVATE_MAX, "two are enough");

void
san_verbs_hello_init(struct verbs_hello *h, uint64_t service, const void *data, uint16_t len)
{
	*h = (struct verbs_hello){.len = (uint8_t)len, .service = service};
	if (len != 0)
		memcpy(h->data, data, len);
}

uint8_t
san_verbs_hello_encode(const struct verbs_hello *h, uint8_t *buf)
{
	const struct head head = {
		.magic = htobe32(MAGIC),
		.version = VERSION,
		.flags = h->flags,
		.reason = h->reason,
		.len = h->len,
		.service = htobe64(h->service),
	};
	struct half half = {.token = htobe64(h->token)};

	memcpy(buf, &head, sizeof(head));
	if ((h->flags & (VERBS_HELLO_FIRST | VERBS_HELLO_REST)) == 0) {
		memcpy(buf + sizeof(head), h->data, h->len);
		return (uint8_t)(sizeof(head) + h->len);
	}
	memcpy(half.data, &h->data[(h->flags & VERBS_HELLO_FIRST) != 0 ? 0 : VERBS_HELLO_HALF],
	       VERBS_HELLO_HALF);
	memcpy(buf + sizeof(head), &half, sizeof(half));
	return sizeof(head) + sizeof(half);
}

static bool
decode_half(const struct head *head, const uint8_t *buf, size_t len, struct verbs_hello *h)
{
	struct half half;

	/* exactly one of the two, and only if one request is too short */
	if ((head->flags & VERBS_HELLO_FIRST) != 0 && (head->flags & VERBS_HELLO_REST) != 0)
		return false;
	if (len < sizeof(half) || head->len <= VERBS_HELLO_ONE)
		return false;
	memcpy(&half, buf, sizeof(half));
	h->token = be64toh(half.token);
	memcpy(&h->data[(head->flags & VERBS_HELLO_FIRST) != 0 ? 0 : VERBS_HELLO_HALF], half.data,
	       VERBS_HELLO_HALF);
	return true;
}

enum rtsan_reason
san_verbs_hello_decode(const uint8_t *buf, size_t len, struct verbs_hello *h)
{
	struct head head;

	memset(h, 0, sizeof(*h));
	if (buf == NULL || len < sizeof(head))
		return RTSAN_R_PARAMETER;
	memcpy(&head, buf, sizeof(head));
	buf += sizeof(head);
	len -= sizeof(head);
	if (be32toh(head.magic) != MAGIC)
		return RTSAN_R_PARAMETER;
	if (head.version != VERSION)
		return RTSAN_R_VERSION;
	if (head.len > RTSAN_PRIVATE_MAX)
		return RTSAN_R_PARAMETER;
	if ((head.flags & (VERBS_HELLO_FIRST | VERBS_HELLO_REST)) != 0) {
		if (!decode_half(&head, buf, len, h))
			return RTSAN_R_PARAMETER;
	} else {
		if (len < head.len)
			return RTSAN_R_PARAMETER;
		memcpy(h->data, buf, head.len);
	}
	/* only now: after an error *h* is all zeros, so that it cannot be used by mistake */
	h->flags = head.flags;
	h->reason = head.reason;
	h->len = head.len;
	h->service = be64toh(head.service);
	return RTSAN_R_NONE;
}
