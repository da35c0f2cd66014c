/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory that another process can map at the same address. */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "san_mem.h"
#include "san_prng.h"

#define AT     0x320000000000
#define MAX    ((size_t)1 << 24)
#define BLOCKS 200
#define ROUNDS 20000

static bool
is_zero(const uint8_t *p, size_t n)
{
	while (n > 0 && p[n - 1] == 0)
		n--;
	return n == 0;
}

/* Random allocations: zeroed, disjoint, on cache lines; everything is returned. */
UNIT_CASE(san_mem_aligned__against_a_model)
{
	struct {
		uint8_t *p;
		size_t n;
		uint8_t mark;
	} b[BLOCKS] = {0};
	struct san_mem *mem;
	struct san_prng prng;
	uint32_t i;
	int fd;

	san_prng_seed(&prng, 7);
	assert_int_equal(san_mem_create(AT, MAX, &fd, &mem), 0);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		i = (uint32_t)(san_prng_u64(&prng) % BLOCKS);
		if (b[i].p != NULL) {
			for (size_t at = 0; at < b[i].n; at++)
				assert_int_equal(b[i].p[at], b[i].mark);
			san_mem_free(mem, b[i].p, b[i].n);
			b[i].p = NULL;
			continue;
		}
		b[i].n = 1 + san_prng_u64(&prng) % 20000;
		b[i].mark = (uint8_t)round | 1;
		b[i].p = san_mem_aligned(mem, b[i].n);
		assert_non_null(b[i].p);
		assert_int_equal((uintptr_t)b[i].p % 64, 0);
		assert_true(is_zero(b[i].p, b[i].n));
		memset(b[i].p, b[i].mark, b[i].n);
	}
	for (i = 0; i < BLOCKS; i++)
		san_mem_free(mem, b[i].p, b[i].n);
	/* one free block, as large as all of it was */
	assert_non_null(san_mem_aligned(mem, MAX / 2));
	assert_null(san_mem_aligned(mem, MAX));
	assert_null(san_mem_calloc(mem, SIZE_MAX / 2, 4));
	san_mem_close(mem);
	close(fd);
}

/* Pointers stay valid, and changes made there are visible here. */
UNIT_CASE(san_mem_open__in_another_process)
{
	struct san_mem *mem, *again;
	uint32_t **root, *word;
	int status, fd;
	pid_t child;

	assert_int_equal(san_mem_create(AT, MAX, &fd, &mem), 0);
	assert_null(*san_mem_root(mem));
	root = san_mem_calloc(mem, 1, sizeof(*root));
	word = san_mem_aligned(mem, sizeof(*word));
	*root = word;
	*word = 5;
	*san_mem_root(mem) = root;
	assert_int_equal(san_mem_open(fd, AT, MAX, &again), -EEXIST);
	child = fork();
	if (child == 0) {
		san_mem_close(mem);
		if (san_mem_open(fd, AT, MAX, &again) != 0)
			_exit(1);
		root = *san_mem_root(again);
		**root += 1;
		*san_mem_root(again) = NULL;
		san_mem_close(again);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(*word, 6);
	assert_null(*san_mem_root(mem));
	san_mem_close(mem);
	close(fd);
}

/* An arena that another process has damaged is refused, and so are pointers out of it. */
UNIT_CASE(san_mem_open__invalid)
{
	static const struct {
		size_t word; /* of the header: busy, max, used, root, first hole */
		uint64_t value;
	} cases[] = {
		{1, MAX + 4096},
		{2, MAX + 64},
		{2, 8},
		{4, 8},
		{4, AT - 64},
		{4, AT + MAX - 64},
		{4, 0x4141414141414141},
	};
	struct san_mem *mem, *again;
	uint64_t *hole, *words;
	uint8_t *part;
	int fd;

	assert_int_equal(san_mem_create(AT, MAX, &fd, &mem), 0);
	assert_int_equal(ftruncate(fd, 0), -1);
	hole = san_mem_aligned(mem, 192);
	part = san_mem_aligned(mem, 64);
	assert_true(san_mem_has(mem, part, 64));
	assert_false(san_mem_has(mem, part, 65));
	assert_false(san_mem_has(mem, part + 1, 1));
	assert_false(san_mem_has(mem, part, SIZE_MAX));
	assert_false(san_mem_has(mem, mem, 1));
	assert_false(san_mem_has(mem, NULL, 0));
	assert_false(san_mem_has(mem, (uint8_t *)mem - 64, 64));
	san_mem_free(mem, hole, 64);
	san_mem_free(mem, hole + 16, 64);
	san_mem_close(mem);
	words = mmap(NULL, MAX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(words != MAP_FAILED);
	UNIT_EACH(r, cases) {
		uint64_t was = words[r->word];

		words[r->word] = r->value;
		assert_int_equal(san_mem_open(fd, AT, MAX, &again), -EPROTO);
		words[r->word] = was;
	}
	/* holes: the first one lies before its successor, which has none */
	hole = (uint64_t *)((uintptr_t)words + ((uintptr_t)hole - AT));
	assert_int_equal(san_mem_open(fd, AT, MAX, &again), 0);
	san_mem_close(again);
	hole[17] = words[4]; /* a ring */
	assert_int_equal(san_mem_open(fd, AT, MAX, &again), -EPROTO);
	hole[17] = 0;
	hole[0] = 0; /* no bytes */
	assert_int_equal(san_mem_open(fd, AT, MAX, &again), -EPROTO);
	hole[0] = MAX;
	assert_int_equal(san_mem_open(fd, AT, MAX, &again), -EPROTO);
	munmap(words, MAX);
	close(fd);
}

/* Without an arena it uses the heap. */
UNIT_CASE(san_mem__heap)
{
	uint8_t *p = san_mem_aligned(NULL, 100), *q = san_mem_calloc(NULL, 10, 10);

	assert_true(is_zero(p, 100) && is_zero(q, 100));
	assert_int_equal((uintptr_t)p % 64, 0);
	san_mem_free(NULL, p, 100);
	san_mem_end(NULL, q);
}
