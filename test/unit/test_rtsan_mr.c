/* SPDX-License-Identifier: BSD-3-Clause */

#include <fcntl.h>
#include <sys/mman.h>

#include "test_rtsan.h"

static int
check(const void *addr, uint32_t len, uint32_t lkey)
{
	const char *why;

	return rtsan_mr_check(ctx, addr, len, lkey, &why);
}

TEST(rtsan_mr_alloc__usable)
{
	struct rtsan_mr *mr;
	uint8_t *p;

	assert_int_equal(rtsan_mr_alloc(ctx, 5000, RTSAN_REMOTE_PUSH, &mr), 0);
	p = rtsan_mr_addr(mr);
	assert_ptr_equal(p, fake->mr_addr);
	/* a provider in another process relies on it */
	assert_int_equal(fake->mr_seals, F_SEAL_SHRINK);
	assert_int_equal(rtsan_mr_length(mr), 5000);
	assert_int_equal(rtsan_mr_rkey(mr), 0x2000 + RTSAN_REMOTE_PUSH);
	assert_int_not_equal(rtsan_mr_lkey(mr), 0);
	memset(p, 1, 5000);
	assert_int_equal(rtsan_mr_dereg(mr), 0);
	assert_int_equal(fake->nb_mrs, 0);
}

TEST(rtsan_mr_alloc__bad_arguments)
{
	struct rtsan_mr *mr;

	assert_error(rtsan_mr_alloc(ctx, 0, 0, &mr), -EINVAL, "length 0");
	assert_error(rtsan_mr_alloc(ctx, SIZE_MAX, 0, &mr), -EINVAL, "length");
	assert_error(rtsan_mr_alloc(ctx, 1, 0x8, &mr), -EINVAL, "0x8");
	assert_error(rtsan_mr_alloc(ctx, 1, 0, NULL), -EINVAL, "no place");
	assert_error(rtsan_mr_alloc(ctx, (size_t)1 << 60, 0, &mr), -ENOMEM, "region");
}

TEST(rtsan_mr_alloc__all_in_use)
{
	struct rtsan_mr *mr[4], *more;

	for (int i = 0; i < 4; i++)
		assert_int_equal(rtsan_mr_alloc(ctx, 1, 0, &mr[i]), 0);
	assert_error(rtsan_mr_alloc(ctx, 1, 0, &more), -ENOSPC, "all 4");
	assert_int_equal(rtsan_mr_dereg(mr[2]), 0);
	assert_int_equal(rtsan_mr_alloc(ctx, 1, 0, &more), 0);
}

TEST(rtsan_mr_alloc__provider_refuses)
{
	struct rtsan_mr *mr;

	fake->mr_add_rc = -ENOSPC;
	assert_error(rtsan_mr_alloc(ctx, 1, 0, &mr), -ENOSPC, "region");
}

TEST(rtsan_mr_import__shares)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct rtsan_mr *mr;
	uint8_t byte = 0;

	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_int_equal(rtsan_mr_import(ctx, fd, 4096, 4096, 0, &mr), 0);
	((uint8_t *)rtsan_mr_addr(mr))[7] = 42;
	assert_int_equal(pread(fd, &byte, 1, 4096 + 7), 1);
	assert_int_equal(byte, 42);
	assert_error(rtsan_mr_import(ctx, fd, 100, 1, 0, &mr), -EINVAL, "multiple of a page");
	/* a missing page would cause SIGBUS later */
	assert_error(rtsan_mr_import(ctx, fd, 4096, 4097, 0, &mr), -EINVAL, "has 8192 bytes");
	assert_error(rtsan_mr_import(ctx, fd, 1 << 20, 1, 0, &mr), -EINVAL, "has 8192 bytes");
	close(fd);
	assert_error(rtsan_mr_import(ctx, fd, 0, 1, 0, &mr), -EBADF, "descriptor");
}

TEST(rtsan_mr_share__keeps_its_place)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct rtsan_mr *mr;
	uint8_t *p;

	assert_int_equal(ftruncate(fd, 8192), 0);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	assert_int_equal(rtsan_mr_share(ctx, p + 100, 50, fd, 4096 + 100, 0, &mr), 0);
	assert_ptr_equal(rtsan_mr_addr(mr), p + 100);
	assert_ptr_equal(fake->mr_addr, p + 100);
	assert_int_equal(rtsan_mr_dereg(mr), 0);
	p[0] = 1; /* still mapped */
	assert_error(rtsan_mr_share(ctx, p + 100, 50, fd, 4096, 0, &mr), -EINVAL, "offset 4096");
	assert_error(rtsan_mr_share(ctx, p, 4097, fd, 4096, 0, &mr), -EINVAL, "has 8192 bytes");
	assert_error(rtsan_mr_share(ctx, p, 0, fd, 4096, 0, &mr), -EINVAL, "length 0");
	munmap(p, 4096);
	close(fd);
	assert_error(rtsan_mr_share(ctx, p, 1, fd, 4096, 0, &mr), -EBADF, "descriptor");
}

/* True if the page is of the file that a provider maps. */
static bool
is_shared(const uint8_t *page)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, end;
	char line[256], kind;
	bool found = false;

	while (fgets(line, sizeof(line), maps) != NULL && !found)
		found = sscanf(line, "%lx-%lx %*3s%c", &from, &end, &kind) == 3 && kind == 's' &&
			from <= (uintptr_t)page && (uintptr_t)page < end;
	fclose(maps);
	return found;
}

TEST(rtsan_mr_reg__callers_memory)
{
	static uint8_t memory[100];
	struct rtsan_mr *mr;

	assert_int_equal(rtsan_mr_reg(ctx, memory, sizeof(memory), 0, &mr), 0);
	assert_ptr_equal(rtsan_mr_addr(mr), memory);
	assert_int_equal(fake->mr_seals, -1);
	assert_int_equal(rtsan_mr_dereg(mr), 0);
	memory[0] = 1; /* still mapped */
	assert_error(rtsan_mr_reg(ctx, NULL, 1, 0, &mr), -EINVAL, "address");
	assert_error(rtsan_mr_reg(ctx, (void *)(UINTPTR_MAX - 4), 100, 0, &mr), -EINVAL, "address");
}

/* RDMA-2: the pages move into a memfd, at their address, and back. */
TEST(rtsan_mr_reg__adopts)
{
	struct rtsan_mr *mr[2], *none;
	uint8_t *on_stack = __builtin_alloca(100); /* an array is elsewhere with AddressSanitizer */
	uint8_t *memory;

	memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	ctx->caps.has_mr_reg = false;
	memory[5000] = 7;
	assert_int_equal(rtsan_mr_reg(ctx, memory + 100, 6000, 0, &mr[0]), 0);
	assert_ptr_equal(rtsan_mr_addr(mr[0]), memory + 100);
	assert_int_equal(fake->mr_seals, F_SEAL_SHRINK);
	assert_int_equal(memory[5000], 7);
	assert_true(is_shared(memory) && is_shared(memory + 4096));
	assert_int_equal(rtsan_mr_reg(ctx, memory, 100, RTSAN_REMOTE_PUSH, &mr[1]), 0);
	memory[5000] = 8;
	assert_int_equal(rtsan_mr_dereg(mr[0]), 0);
	assert_true(is_shared(memory) && !is_shared(memory + 4096) && memory[5000] == 8);
	assert_int_equal(rtsan_mr_dereg(mr[1]), 0);
	assert_false(is_shared(memory));
	fake->mr_add_rc = -ENOSPC;
	assert_error(rtsan_mr_reg(ctx, memory, 100, 0, &none), -ENOSPC, "region");
	assert_false(is_shared(memory));
	assert_error(rtsan_mr_reg(ctx, on_stack, 100, 0, &none), -EOPNOTSUPP, "stack");
	mprotect(memory, 4096, PROT_READ);
	assert_error(rtsan_mr_reg(ctx, memory, 100, RTSAN_REMOTE_PUSH, &none), -EFAULT, "writable");
	munmap(memory, 8192);
	assert_error(rtsan_mr_reg(ctx, memory, 100, 0, &none), -EFAULT, "not mapped");
}

/* While posted work refers to it, it stays. */
TEST(rtsan_mr_dereg__busy)
{
	struct rtsan_mr *mr;
	uint32_t lkey;

	assert_int_equal(rtsan_mr_alloc(ctx, 100, RTSAN_REMOTE_PULL, &mr), 0);
	lkey = rtsan_mr_lkey(mr);
	fake->mr_del_rc = -EBUSY;
	assert_error(rtsan_mr_dereg(mr), -EBUSY, "posted work");
	assert_int_equal(fake->last.id, rtsan_mr_rkey(mr) - 0x1000);
	assert_int_equal(check(rtsan_mr_addr(mr), 100, lkey), 0);
	fake->mr_del_rc = 0;
	assert_int_equal(rtsan_mr_dereg(mr), 0);
	assert_error(rtsan_mr_dereg(mr), -EINVAL, "before");
}

TEST(rtsan_mr_check__bounds)
{
	struct rtsan_mr *mr;
	uint32_t lkey;
	uint8_t *p;

	assert_int_equal(rtsan_mr_alloc(ctx, 100, 0, &mr), 0);
	p = rtsan_mr_addr(mr);
	lkey = rtsan_mr_lkey(mr);
	assert_int_equal(check(p, 100, lkey), 0);
	assert_int_equal(check(p + 100, 0, lkey), 0);
	assert_int_equal(check(p + 50, 50, lkey), 0);
	assert_int_equal(check(p + 50, 51, lkey), -EINVAL);
	assert_int_equal(check(p - 1, 2, lkey), -EINVAL);
	assert_int_equal(check(p + 101, 0, lkey), -EINVAL);
	assert_int_equal(check(p + 1, UINT32_MAX, lkey), -EINVAL);
	assert_int_equal(check((uint8_t *)UINTPTR_MAX, 2, lkey), -EINVAL);
}

TEST(rtsan_mr_check__wrong_key)
{
	struct rtsan_mr *mr, *next[4];
	uint32_t lkey;

	assert_int_equal(rtsan_mr_alloc(ctx, 100, 0, &mr), 0);
	lkey = rtsan_mr_lkey(mr);
	assert_int_equal(check(rtsan_mr_addr(mr), 1, lkey ^ 0x100), -EINVAL);
	assert_int_equal(check(rtsan_mr_addr(mr), 1, lkey ^ 1), -EINVAL);
	assert_int_equal(rtsan_mr_dereg(mr), 0);
	assert_int_equal(check(rtsan_mr_addr(mr), 1, lkey), -EINVAL);
	/* a new region in the same place has another key */
	for (int i = 0; i < 4; i++) {
		assert_int_equal(rtsan_mr_alloc(ctx, 100, 0, &next[i]), 0);
		assert_int_not_equal(rtsan_mr_lkey(next[i]), lkey);
	}
}

TEST(rtsan_mr_check__not_registered)
{
	int local = 0;

	assert_int_equal(check(&local, sizeof(local), 0), 0);
	ctx->caps.has_mr_reg = false;
	assert_int_equal(check(&local, sizeof(local), 0), -EINVAL);
}
