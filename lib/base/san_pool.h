/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * The free objects of an array, as a stack: the object used last, which the cache still holds, is
 * taken first. Users read *nb*, the number of free objects, to reserve and to check.
 *
 * Thread rule: a pool belongs to one lcore.
 */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "san_assert.h"
#include "san_mem.h"

struct san_pool {
	void **free;
	uint32_t nb;  /**< free objects */
	uint32_t max; /**< all objects */
};

/**
 * Make *p* hold all *nb* objects of the array *objs*, each of *size* bytes. They are taken in order
 * of their addresses, so that few pages are touched. -ENOMEM, also if *objs* is NULL.
 */
static inline int
san_pool_create(struct san_pool *p, struct san_mem *mem, void *objs, uint32_t nb, size_t size)
{
	p->free = san_mem_calloc(mem, (size_t)nb + 1, sizeof(*p->free));
	if (objs == NULL || p->free == NULL)
		return -ENOMEM;
	p->max = nb;
	for (p->nb = 0; p->nb < nb; p->nb++)
		p->free[p->nb] = (uint8_t *)objs + (nb - 1 - p->nb) * size;
	return 0;
}

static inline void
san_pool_destroy(struct san_pool *p, struct san_mem *mem)
{
	san_mem_end(mem, p->free);
}

/** Take an object; one is free. */
static inline void *
san_pool_take(struct san_pool *p)
{
	SAN_ASSERT(p->nb != 0);
	return p->free[--p->nb];
}

/** Give back *n* objects that were taken. */
static inline void
san_pool_give_all(struct san_pool *p, const void *objs, uint32_t n)
{
	SAN_ASSERT(p->nb + n <= p->max);
	memcpy(&p->free[p->nb], objs, n * sizeof(*p->free));
	p->nb += n;
}

/** Give back an object that was taken. */
static inline void
san_pool_give(struct san_pool *p, void *obj)
{
	SAN_ASSERT(p->nb < p->max);
	p->free[p->nb++] = obj;
}
