/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Header before a program's private data in messages of the connection manager. A request has the
 * service, because the manager has too few ports for services, and whether it is for a stream. An
 * answer has the reason for which a request was refused.
 *
 * A request has 56 bytes, and the header takes 16 of them. Private data beyond 40 bytes needs a
 * second request: the first one is refused with VERBS_HELLO_MORE, and both have the same token.
 */

#include <stddef.h>
#include <stdint.h>

#include "rtsan.h"

#define VERBS_HELLO_MAX  80 /**< bytes of an answer */
#define VERBS_HELLO_ASK  56 /**< bytes of a request that the connection manager carries */
#define VERBS_HELLO_HALF 32 /**< private data in each of two requests */
#define VERBS_HELLO_ONE  40 /**< private data that fits into one request */

#define VERBS_HELLO_MORE 255 /**< reason: this was a first half, send the other one */

enum verbs_hello_flag {
	VERBS_HELLO_STREAM = 0x1,
	VERBS_HELLO_FIRST = 0x2, /**< first half of the private data */
	VERBS_HELLO_REST = 0x4,  /**< second half */
};

struct verbs_hello {
	uint8_t flags;  /**< enum verbs_hello_flag */
	uint8_t reason; /**< of an answer: enum rtsan_reason, or VERBS_HELLO_MORE */
	uint8_t len;    /**< length of the private data, with both halves */
	uint64_t service;
	uint64_t token; /**< of FIRST and REST: the same for both halves */
	uint8_t data[RTSAN_PRIVATE_MAX];
};

/** Initialize *h* with *len* bytes of private data. */
void san_verbs_hello_init(struct verbs_hello *h, uint64_t service, const void *data, uint16_t len);
/** Encode into *buf* of VERBS_HELLO_MAX bytes; of halves the flagged one. Returns the length. */
uint8_t san_verbs_hello_encode(const struct verbs_hello *h, uint8_t *buf);
/**
 * Decode *len* bytes from a peer; the connection manager may have added zeros.
 *
 * @return
 *   RTSAN_R_NONE; RTSAN_R_VERSION: of another version; RTSAN_R_PARAMETER: malformed. After an error
 *   *h* is all zeros.
 */
enum rtsan_reason san_verbs_hello_decode(const uint8_t *buf, size_t len, struct verbs_hello *h);
