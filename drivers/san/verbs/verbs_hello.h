/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_HELLO_H
#define VERBS_HELLO_H

/**
 * @file
 * What goes along with the connection manager's messages, before a program's private data: which
 * service is meant, for which the manager's port numbers are too few, and whether for a stream.
 * An answer says why a request was refused.
 *
 * A request carries 56 bytes, of which 16 are ours. What a program has beyond 40 goes in a second
 * request: the first one is refused for that reason, and both have the same token.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rtsan.h"

#define VERBS_HELLO_MAX  80 /**< bytes of an answer */
#define VERBS_HELLO_ASK  56 /**< bytes of a request, as the connection manager carries them */
#define VERBS_HELLO_HALF 32 /**< private data in each of two requests */
#define VERBS_HELLO_ONE  40 /**< private data that fits into one */

#define VERBS_HELLO_MORE 255 /**< reason: it was a first half, the rest is wanted */

enum verbs_hello_flag {
	VERBS_HELLO_STREAM = 0x1,
	VERBS_HELLO_FIRST = 0x2, /**< half of the private data */
	VERBS_HELLO_REST = 0x4,  /**< the other half */
};

struct verbs_hello {
	uint8_t flags;  /**< enum verbs_hello_flag */
	uint8_t reason; /**< of an answer: enum rtsan_reason, or VERBS_HELLO_MORE */
	uint8_t len;    /**< of the private data, both halves */
	uint64_t service;
	uint64_t token; /**< of FIRST and REST: what belongs together */
	uint8_t data[RTSAN_PRIVATE_MAX];
};

/** *len* bytes of private data are a request's or an answer's. */
void verbs_hello_init(struct verbs_hello *h, uint64_t service, const void *data, uint16_t len);
/** Into *buf* of VERBS_HELLO_MAX bytes; how many were needed. Of halves the one that is flagged. */
uint8_t verbs_hello_encode(const struct verbs_hello *h, uint8_t *buf);
/**
 * *len* bytes from a peer, and zeros, which the connection manager adds.
 *
 * @return
 *   RTSAN_R_NONE; RTSAN_R_VERSION: of another version; RTSAN_R_PARAMETER: it is none. Then *h* is
 *   all zeros.
 */
enum rtsan_reason verbs_hello_decode(const uint8_t *buf, size_t len, struct verbs_hello *h);

#endif /* VERBS_HELLO_H */
