/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAN_MEM_H
#define SAN_MEM_H

/**
 * @file
 * Where the protocol state of a port lies. Usually that is the heap of the process. If the state
 * is to outlive the process it is an arena: a file in memory, at an address where the next
 * process maps it too, so that all pointers within it stay good.
 *
 * Thread rule: any thread. Nothing here is for the packet path.
 */

#include <stddef.h>
#include <stdint.h>

/** An arena; NULL is the heap. */
struct san_mem;

/**
 * A new arena.
 *
 * @param at
 *   Where it is to be: a page, which the next process must find free, too.
 * @param max
 *   Bytes that it may hold at most; only what is used takes memory.
 * @param fd
 *   Its descriptor, the caller's: each process has a number of its own for it.
 * @return
 *   0, -EEXIST (something is there), or what the kernel says.
 */
int san_mem_create(uintptr_t at, size_t max, int *fd, struct san_mem **out);
/** The arena that another process made, by its descriptor. */
int san_mem_open(int fd, uintptr_t at, size_t max, struct san_mem **out);
/** No longer in this process; where it is in another one it stays. */
void san_mem_close(struct san_mem *mem);
size_t san_mem_max(const struct san_mem *mem);

/** What the next process looks for first; NULL until it is set. */
void *san_mem_root(const struct san_mem *mem);
void san_mem_set_root(struct san_mem *mem, void *root);

/** Zeros, on a cache line. NULL: no memory. */
void *san_mem_aligned(struct san_mem *mem, size_t bytes);
/** Zeros; of the heap, pages that are never used stay untouched. NULL: no memory. */
void *san_mem_calloc(struct san_mem *mem, size_t nb, size_t bytes);
/** Of either, with the size it was asked for. */
void san_mem_free(struct san_mem *mem, void *p, size_t bytes);
/** Likewise of what is there as long as its arena: ends with that, or now if there is none. */
void san_mem_end(struct san_mem *mem, void *p);

#endif /* SAN_MEM_H */
