/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTENT_H
#define CONTENT_H

/**
 * @file
 * Bytes that follow from their position, so that the other end can check each
 * one without having seen the original; and exactly-once book-keeping. (SYS-3)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Mixes all bits of *x* into all bits of the result. */
uint64_t content_mix(uint64_t x);
/** Stream of bytes of message *msg* on connection *conn* of the run *seed*. */
uint64_t content_base(uint64_t seed, uint16_t conn, uint64_t msg);
/** Write bytes *off* to *off* + *len* of stream *base*. */
void content_fill(uint64_t base, uint64_t off, void *buf, size_t len);
/** Offset in *buf* of the first wrong byte, or -1. */
int64_t content_check(uint64_t base, uint64_t off, const void *buf, size_t len);
/** Length of message *msg*: *min* to *max*, the same at both ends. */
uint32_t content_size(uint64_t seed, uint16_t conn, uint64_t msg, uint32_t min, uint32_t max);

#define SEEN_WINDOW 65536

/** Which messages have arrived; they may overtake each other by SEEN_WINDOW at most. */
struct seen {
	uint64_t base;  /**< everything below has arrived */
	uint64_t count; /**< how many arrived in all */
	uint64_t bits[SEEN_WINDOW / 64];
};

/** False: it was here before, or is impossibly far ahead. */
bool seen_add(struct seen *s, uint64_t msg);

#endif /* CONTENT_H */
