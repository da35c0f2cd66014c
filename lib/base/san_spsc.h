/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Indices of a single-producer single-consumer ring; the owner has the array of entries, whose
 * length is a power of two.
 *
 * Both sides share two words, each written by one of them. Everything else is private to a side,
 * including its own index: no side trusts what the other could have written, so the rings of two
 * processes work as those of two threads (SYS-5). Each side also keeps a copy of the other's index.
 * It reads the shared word only when the copy says full or empty, so the cache line moves between
 * cores once per burst.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "san_line.h"

/** The producer's half. */
struct san_spsc_prod {
	uint32_t tail;      /**< next entry to write */
	uint32_t head_seen; /**< copy of the consumer's word */
	uint32_t mask;
};

/** The consumer's half. */
struct san_spsc_cons {
	uint32_t head;      /**< next entry to read */
	uint32_t tail_seen; /**< copy of the producer's word */
	uint32_t mask;
};

/** Both halves and both words, for two threads that trust each other. */
struct san_spsc {
	_Alignas(SAN_LINE) _Atomic uint32_t tail;
	struct san_spsc_prod prod;
	_Alignas(SAN_LINE) _Atomic uint32_t head;
	struct san_spsc_cons cons;
};

/** Size of a ring for at least *n* entries: a power of two. */
static inline uint32_t
san_spsc_size(uint32_t n)
{
	uint32_t size = 1;

	while (size < n)
		size <<= 1;
	return size;
}

static inline void
san_spsc_prod_init(struct san_spsc_prod *p, uint32_t size)
{
	*p = (struct san_spsc_prod){.mask = size - 1};
}

static inline void
san_spsc_cons_init(struct san_spsc_cons *c, uint32_t size)
{
	*c = (struct san_spsc_cons){.mask = size - 1};
}

static inline void
san_spsc_init(struct san_spsc *q, uint32_t size)
{
	atomic_init(&q->tail, 0);
	atomic_init(&q->head, 0);
	san_spsc_prod_init(&q->prod, size);
	san_spsc_cons_init(&q->cons, size);
}

/* ---- the producer ---- */

/** Room by the copy of the consumer's word. An impossible value of the word counts as full. */
static inline uint32_t
san_spsc_room_seen(const struct san_spsc_prod *p)
{
	uint32_t used = p->tail - p->head_seen;

	return used > p->mask ? 0 : p->mask + 1 - used;
}

/** Likewise, after reading the word itself. */
static inline uint32_t
san_spsc_room_now(struct san_spsc_prod *p, const _Atomic uint32_t *head)
{
	/* Pairs with the release in san_spsc_pop(): the consumer has finished reading. */
	p->head_seen = atomic_load_explicit(head, memory_order_acquire);
	return san_spsc_room_seen(p);
}

/** Entries that may be written, from p->tail on. */
static inline uint32_t
san_spsc_room(struct san_spsc_prod *p, const _Atomic uint32_t *head)
{
	uint32_t room = san_spsc_room_seen(p);

	return room != 0 ? room : san_spsc_room_now(p, head);
}

/** Publish *n* entries. */
static inline void
san_spsc_push(struct san_spsc_prod *p, _Atomic uint32_t *tail, uint32_t n)
{
	p->tail += n;
	atomic_store_explicit(tail, p->tail, memory_order_release);
}

/* ---- the consumer ---- */

/** Entries that may be read, after reading the producer's word. */
static inline uint32_t
san_spsc_count_now(struct san_spsc_cons *c, const _Atomic uint32_t *tail)
{
	/* Pairs with the release in san_spsc_push(): the entries are written. */
	c->tail_seen = atomic_load_explicit(tail, memory_order_acquire);
	return c->tail_seen - c->head;
}

/** Entries from c->head on. More than the ring has: the producer wrote an invalid index. */
static inline uint32_t
san_spsc_count(struct san_spsc_cons *c, const _Atomic uint32_t *tail)
{
	if (c->head == c->tail_seen)
		return san_spsc_count_now(c, tail);
	return c->tail_seen - c->head;
}

/** Release *n* entries that were read. */
static inline void
san_spsc_pop(struct san_spsc_cons *c, _Atomic uint32_t *head, uint32_t n)
{
	c->head += n;
	atomic_store_explicit(head, c->head, memory_order_release);
}

/* ---- a consumer that sleeps ---- */

/*
 * Each side writes its word and then, after a full fence, reads the other's. So at least one of
 * them sees the other, and no wake-up is lost. If the consumer does not wait, the producer reads
 * one word and makes no system call (AFC-19).
 */

/**
 * The consumer is about to sleep. True: it may sleep and will be woken; false: there are entries.
 */
static inline bool
san_spsc_arm(struct san_spsc_cons *c, const _Atomic uint32_t *tail, _Atomic uint32_t *armed)
{
	atomic_store_explicit(armed, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (san_spsc_count_now(c, tail) == 0)
		return true;
	atomic_store_explicit(armed, 0, memory_order_relaxed);
	return false;
}

/** The producer has pushed: true if it must wake the consumer. Returned once per sleep. */
static inline bool
san_spsc_must_wake(_Atomic uint32_t *armed)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(armed, memory_order_relaxed) == 0)
		return false;
	return atomic_exchange(armed, 0) != 0;
}
