/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTENT_H
#define CONTENT_H

/**
 * @file
 * Data that is a function of its position, so that the receiver can check each byte without the
 * original; and detection of lost and repeated messages. (SYS-3)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The stream of bytes for message *msg* of connection *conn*, in the run with *seed*. */
uint64_t san_content_base(uint64_t seed, uint16_t conn, uint64_t msg);
/** Write *len* bytes of stream *base* from offset *off*. */
void san_content_fill(uint64_t base, uint64_t off, void *buf, size_t len);
/** Offset in *buf* of the first wrong byte, or -1. */
int64_t san_content_check(uint64_t base, uint64_t off, const void *buf, size_t len);
/** Length of message *msg* between *min* and *max*, equal at both ends. */
uint32_t san_content_size(uint64_t seed, uint16_t conn, uint64_t msg, uint32_t min, uint32_t max);

#define SEEN_WINDOW 65536

/** Messages that have arrived. They may be out of order by at most SEEN_WINDOW. */
struct seen {
	uint64_t base;  /**< all messages below have arrived */
	uint64_t count; /**< number of messages that have arrived */
	uint64_t bits[SEEN_WINDOW / 64];
};

/** Returns false for a repeated message, and for one beyond the window. */
bool san_content_seen_add(struct seen *s, uint64_t msg);

#endif /* CONTENT_H */
