/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_SPSC_H
#define SAN_SPSC_H

/**
 * @file
 * Indices of a single-producer single-consumer ring; the entries are an array
 * of the owner's, a power of two long. Each side keeps a private copy of the
 * other's index and looks at the shared one only when that copy says full or
 * empty, so the cache line moves between cores once a burst.
 */

#include <stdatomic.h>
#include <stdint.h>

struct san_spsc {
	_Alignas(64) _Atomic uint32_t tail; /**< producer: next entry to write */
	uint32_t head_seen;                 /**< producer's copy of head */
	uint32_t mask;
	_Alignas(64) _Atomic uint32_t head; /**< consumer: next entry to read */
	uint32_t tail_seen;                 /**< consumer's copy of tail */
};

static inline void
san_spsc_init(struct san_spsc *q, uint32_t size)
{
	atomic_init(&q->tail, 0);
	atomic_init(&q->head, 0);
	q->head_seen = 0;
	q->tail_seen = 0;
	q->mask = size - 1;
}

/** Producer: entries that may be written, from index *tail* on. */
static inline uint32_t
san_spsc_room(struct san_spsc *q, uint32_t *tail)
{
	*tail = atomic_load_explicit(&q->tail, memory_order_relaxed);
	if (*tail - q->head_seen > q->mask)
		/* pairs with the release in san_spsc_pop(): the consumer is done reading */
		q->head_seen = atomic_load_explicit(&q->head, memory_order_acquire);
	return q->mask + 1 - (*tail - q->head_seen);
}

/** Producer: publish *n* entries written. */
static inline void
san_spsc_push(struct san_spsc *q, uint32_t n)
{
	uint32_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);

	atomic_store_explicit(&q->tail, tail + n, memory_order_release);
}

/** Consumer: entries that may be read, from index *head* on. */
static inline uint32_t
san_spsc_count(struct san_spsc *q, uint32_t *head)
{
	*head = atomic_load_explicit(&q->head, memory_order_relaxed);
	if (*head == q->tail_seen)
		/* pairs with the release in san_spsc_push(): the entries are written */
		q->tail_seen = atomic_load_explicit(&q->tail, memory_order_acquire);
	return q->tail_seen - *head;
}

/** Consumer: *n* entries were read. */
static inline void
san_spsc_pop(struct san_spsc *q, uint32_t n)
{
	uint32_t head = atomic_load_explicit(&q->head, memory_order_relaxed);

	atomic_store_explicit(&q->head, head + n, memory_order_release);
}

/** Producer: how many the consumer has not read yet, freshly looked up. */
static inline uint32_t
san_spsc_pending(struct san_spsc *q)
{
	q->head_seen = atomic_load_explicit(&q->head, memory_order_acquire);
	return atomic_load_explicit(&q->tail, memory_order_relaxed) - q->head_seen;
}

#endif /* SAN_SPSC_H */
