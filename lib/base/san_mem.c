/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An arena grows at its end. Freed memory becomes a hole. Holes are listed by address and merge
 * with their neighbours, so memory freed by queue pairs of one size serves those of another. All
 * state of the arena is in the arena.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "san_line.h"
#include "san_mem.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct free_block {
	size_t bytes;
	struct free_block *next;
};

struct san_mem {
	atomic_flag busy;
	size_t max;
	size_t used; /* from the start; all bytes beyond are zeros */
	void *root;
	struct free_block *free_blocks;
};

static size_t
round_up(size_t bytes)
{
	return (bytes + SAN_LINE - 1) & ~(size_t)(SAN_LINE - 1);
}

/* ---- arenas ---- */

static int
mem_map_fd(int fd, uintptr_t at, size_t max, struct san_mem **out)
{
	void *p = mmap((void *)at, max, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*out = p;
	return 0;
}

int
san_mem_create(uintptr_t at, size_t max, int *fd, struct san_mem **out)
{
	int rc;

	*fd = memfd_create("sanstack-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	rc = ftruncate(*fd, (off_t)max) == 0 && fcntl(*fd, F_ADD_SEALS, SEALS) == 0 ?
		mem_map_fd(*fd, at, max, out) :
		-errno;
	if (rc != 0) {
		close(*fd);
		*fd = -1;
		return rc;
	}
	atomic_flag_clear(&(*out)->busy);
	(*out)->max = max;
	(*out)->used = round_up(sizeof(**out));
	return 0;
}

bool
san_mem_has(const struct san_mem *mem, const void *p, size_t bytes)
{
	uintptr_t at = (uintptr_t)p - (uintptr_t)mem; /* below the arena: a large number */

	return at % sizeof(void *) == 0 && at >= sizeof(*mem) && at <= mem->used &&
		bytes <= mem->used - at;
}

/* Check what another process has written: each hole lies behind the one before. */
static bool
mem_is_valid(const struct san_mem *mem, size_t max)
{
	const struct free_block *h, *next;

	if (mem->max != max || mem->used > max || mem->used < sizeof(*mem))
		return false;
	for (h = mem->free_blocks; h != NULL; h = next) {
		if (!san_mem_has(mem, h, sizeof(*h)) || h->bytes < sizeof(*h) ||
		    !san_mem_has(mem, h, h->bytes))
			return false;
		next = h->next;
		if (next != NULL && (uintptr_t)next < (uintptr_t)h + h->bytes)
			return false;
	}
	return true;
}

int
san_mem_open(int fd, uintptr_t at, size_t max, struct san_mem **out)
{
	int rc = mem_map_fd(fd, at, max, out);

	if (rc != 0 || mem_is_valid(*out, max))
		return rc;
	munmap(*out, max);
	return -EPROTO;
}

void
san_mem_close(struct san_mem *mem)
{
	if (mem != NULL)
		munmap(mem, mem->max);
}

size_t
san_mem_max(const struct san_mem *mem)
{
	return mem->max;
}

void **
san_mem_root(struct san_mem *mem)
{
	return &mem->root;
}

/* ---- allocation ---- */

/* Take the first hole that is large enough; the rest of it stays a hole. */
static void *
mem_take_free(struct san_mem *mem, size_t bytes)
{
	struct free_block **at, *h, *rest;

	for (at = &mem->free_blocks; (h = *at) != NULL; at = &h->next) {
		if (h->bytes < bytes)
			continue;
		*at = h->next;
		if (h->bytes > bytes) {
			rest = (struct free_block *)((uint8_t *)h + bytes);
			*rest = (struct free_block){.bytes = h->bytes - bytes, .next = h->next};
			*at = rest;
		}
		return memset(h, 0, bytes);
	}
	return NULL;
}

static void
mem_enter(struct san_mem *mem)
{
	while (atomic_flag_test_and_set_explicit(&mem->busy, memory_order_acquire))
		sched_yield();
}

static void
mem_leave(struct san_mem *mem)
{
	atomic_flag_clear_explicit(&mem->busy, memory_order_release);
}

static void *
mem_take_block(struct san_mem *mem, size_t bytes)
{
	void *p;

	bytes = round_up(bytes != 0 ? bytes : 1);
	mem_enter(mem);
	p = mem_take_free(mem, bytes);
	if (p == NULL && bytes <= mem->max - mem->used) { /* zeroed memory at the end */
		p = (uint8_t *)mem + mem->used;
		mem->used += bytes;
	}
	mem_leave(mem);
	return p;
}

/* Merge *h* with the next hole if they touch. */
static void
mem_merge_free(struct free_block *h)
{
	if ((uint8_t *)h + h->bytes != (uint8_t *)h->next)
		return;
	h->bytes += h->next->bytes;
	h->next = h->next->next;
}

static void
mem_give_block(struct san_mem *mem, void *p, size_t bytes)
{
	struct free_block *h = p, *before = NULL, **at = &mem->free_blocks;

	mem_enter(mem);
	while (*at != NULL && *at < h) {
		before = *at;
		at = &before->next;
	}
	*h = (struct free_block){.bytes = round_up(bytes), .next = *at};
	*at = h;
	mem_merge_free(h);
	if (before != NULL)
		mem_merge_free(before);
	mem_leave(mem);
}

void *
san_mem_aligned(struct san_mem *mem, size_t bytes)
{
	void *p;

	if (mem != NULL)
		return mem_take_block(mem, bytes);
	p = aligned_alloc(SAN_LINE, round_up(bytes));
	return p != NULL ? memset(p, 0, bytes) : NULL;
}

void *
san_mem_calloc(struct san_mem *mem, size_t nb, size_t bytes)
{
	if (mem == NULL)
		return calloc(nb, bytes);
	return bytes == 0 || nb <= mem->max / bytes ? mem_take_block(mem, nb * bytes) : NULL;
}

void
san_mem_free(struct san_mem *mem, void *p, size_t bytes)
{
	if (mem == NULL)
		free(p);
	else if (p != NULL)
		mem_give_block(mem, p, bytes);
}

void
san_mem_end(struct san_mem *mem, void *p)
{
	if (mem == NULL)
		free(p);
}
