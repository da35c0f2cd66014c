/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Memory for the protocol state of a port. Usually it is the heap of the process. If the state must
 * outlive the process, it is an arena: a file in memory, mapped by the next process at the same
 * address, so that all pointers in it stay valid.
 *
 * Thread rule: any thread. Not for the packet path.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** An arena; NULL is the heap. */
struct san_mem;

/**
 * Create an arena.
 *
 * @param at
 *   Its address: page-aligned, and free in the next process, too.
 * @param max
 *   Most bytes that it may hold; only used bytes take memory.
 * @param fd
 *   Returns its descriptor, which the caller owns.
 * @return
 *   0, -EEXIST (the address is in use), or the error of the kernel.
 */
int san_mem_create(uintptr_t at, size_t max, int *fd, struct san_mem **out);
/**
 * Map the arena that another process created, by its descriptor. 0, the error of the kernel, or
 * -EPROTO: its header or list of free memory is invalid. *fd* has at least *max* bytes.
 */
int san_mem_open(int fd, uintptr_t at, size_t max, struct san_mem **out);
/** Unmap the arena from this process; other processes keep it. */
void san_mem_close(struct san_mem *mem);
/** True if *bytes* at *p* lie in the used part of the arena. For pointers of another process. */
bool san_mem_has(const struct san_mem *mem, const void *p, size_t bytes);
size_t san_mem_max(const struct san_mem *mem);

/** The place of what the next process looks for first; NULL until it is set. */
void **san_mem_root(struct san_mem *mem);

/** Zeroed memory, aligned to a cache line. NULL: none left. */
void *san_mem_aligned(struct san_mem *mem, size_t bytes);
/** Zeroed memory; from the heap, unused pages stay untouched. NULL: none left. */
void *san_mem_calloc(struct san_mem *mem, size_t nb, size_t bytes);
/** Free memory of either function; *bytes* is the size that was requested. */
void san_mem_free(struct san_mem *mem, void *p, size_t bytes);
/** Free memory that lives as long as its arena: at once on the heap, otherwise with the arena. */
void san_mem_end(struct san_mem *mem, void *p);
