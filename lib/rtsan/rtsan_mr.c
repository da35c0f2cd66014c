/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A region that we allocate is always a memfd, so that it can be passed to a provider in another
 * process. For such a one, memory of the application is moved into a memfd (rtsan_adopt.c).
 *
 * An lkey consists of index and generation: posting finds the range without a search, and a key
 * from before a deregistration no longer matches. No counter per region is kept while work is in
 * progress. Whether posted work names a region is checked once, at deregistration, by the provider,
 * which has that work.
 */

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rtsan_priv.h"

#define ACCESS_ALL (RTSAN_REMOTE_PUSH | RTSAN_REMOTE_PULL | RTSAN_REMOTE_ATOMIC)

/* Whole pages, or 0 if the length is too large. */
static size_t
whole_pages(size_t length)
{
	size_t page = (size_t)getpagesize();

	return length > SSIZE_MAX - page ? 0 : (length + page - 1) & ~(page - 1);
}

static int
check_args(size_t length, uint32_t access, struct rtsan_mr **mr)
{
	if (mr == NULL)
		return rtsan_fail(-EINVAL, "region: no place for the result");
	if (whole_pages(length) == 0)
		return rtsan_fail(-EINVAL, "region: length %zu", length);
	if ((access & ~(uint32_t)ACCESS_ALL) != 0)
		return rtsan_fail(-EINVAL, "region: access 0x%x has unknown bits", access);
	return 0;
}

/* Find a free entry; the context's lock is held. */
static struct rtsan_mr *
mr_find_slot(struct rtsan_ctx *ctx)
{
	uint32_t i;

	for (i = 0; i < ctx->caps.max_mrs; i++) {
		struct rtsan_mr *mr = &ctx->mrs[(ctx->mr_next + i) % ctx->caps.max_mrs];

		if (atomic_load(&mr->lkey) == 0) {
			ctx->mr_next = (uint32_t)(mr - ctx->mrs) + 1;
			return mr;
		}
	}
	return NULL;
}

/*
 * Add *length* bytes at *addr*, mapped from *fd* if it is not -1. *map_size*: bytes that we mapped
 * and must unmap.
 */
static int
mr_add(struct rtsan_ctx *ctx, void *addr, size_t length, int fd, uint64_t offset, uint32_t access,
       size_t map_size, struct rtsan_mr **out)
{
	const struct shmq_req req = {
		.type = SHMQ_MR_ADD,
		.mr = {
			.addr = (uintptr_t)addr,
			.length = length,
			.offset = offset,
			.access = access,
		},
	};
	struct rtsan_provider_keys keys;
	struct rtsan_mr *mr;
	uint32_t gen_mask = UINT32_MAX >> ctx->lkey_bits;
	int rc;
	SAN_LOCKED(&ctx->lock);

	mr = mr_find_slot(ctx);
	if (mr == NULL)
		return rtsan_fail(-ENOSPC, "region: all %u are in use", ctx->caps.max_mrs);
	rtsan_error_clear();
	rc = ctx->ops->mr_add(ctx->priv, &req, fd, &keys);
	if (rc != 0)
		return rtsan_fail_else(rc, "region");
	mr->ctx = ctx;
	mr->addr = (uintptr_t)addr;
	mr->length = length;
	mr->key = keys.key;
	mr->rkey = keys.rkey;
	mr->map_size = map_size;
	mr->gen = (mr->gen + 1) & gen_mask;
	if (mr->gen == 0)
		mr->gen = 1;
	/* Pairs with the acquire in rtsan_mr_check(): the range is written. */
	atomic_store_explicit(&mr->lkey, mr->gen << ctx->lkey_bits | (uint32_t)(mr - ctx->mrs),
			      memory_order_release);
	*out = mr;
	return 0;
}

/* Check that *fd* has these bytes: a page beyond its end would cause SIGBUS when it is accessed. */
static int
check_file(int fd, uint64_t offset, size_t length)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return rtsan_fail(-EBADF, "region: descriptor %d: %s", fd, strerror(errno));
	if (offset > (uint64_t)st.st_size || length > (uint64_t)st.st_size - offset)
		return rtsan_fail(-EINVAL, "region: descriptor %d has %lld bytes, not %llu + %zu",
				  fd, (long long)st.st_size, (unsigned long long)offset, length);
	return 0;
}

static int
map_and_add(struct rtsan_ctx *ctx, int fd, uint64_t offset, size_t length, uint32_t access,
	    struct rtsan_mr **out)
{
	size_t size = whole_pages(length);
	void *addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
	int rc;

	if (addr == MAP_FAILED)
		return rtsan_fail(errno == ENOMEM ? -ENOMEM : -EBADF,
				  "region: mmap of %zu bytes: %s", size, strerror(errno));
	rc = mr_add(ctx, addr, length, fd, offset, access, size, out);
	if (rc != 0)
		munmap(addr, size);
	return rc;
}

int
rtsan_mr_alloc(struct rtsan_ctx *ctx, size_t length, uint32_t access, struct rtsan_mr **mr)
{
	int rc = check_args(length, access, mr);
	int fd;

	if (rc != 0)
		return rc;
	fd = memfd_create("rtsan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return rtsan_fail(-ENOMEM, "region: memfd: %s", strerror(errno));
	/* A provider in another process may map it: it has all its pages, and must not shrink. */
	if (ftruncate(fd, (off_t)whole_pages(length)) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0 ||
	    (!ctx->caps.has_mr_reg && fallocate(fd, 0, 0, (off_t)whole_pages(length)) != 0))
		rc = rtsan_fail(-ENOMEM, "region: memfd of %zu bytes: %s", length, strerror(errno));
	else
		rc = map_and_add(ctx, fd, 0, length, access, mr);
	close(fd);
	return rc;
}

int
rtsan_mr_import(struct rtsan_ctx *ctx, int fd, uint64_t offset, size_t length, uint32_t access,
		struct rtsan_mr **mr)
{
	int rc = check_args(length, access, mr);

	if (rc != 0)
		return rc;
	if (offset % (uint64_t)getpagesize() != 0)
		return rtsan_fail(-EINVAL, "region: offset %llu is no multiple of a page",
				  (unsigned long long)offset);
	rc = check_file(fd, offset, length);
	return rc == 0 ? map_and_add(ctx, fd, offset, length, access, mr) : rc;
}

int
rtsan_mr_share(struct rtsan_ctx *ctx, void *addr, size_t length, int fd, uint64_t offset,
	       uint32_t access, struct rtsan_mr **mr)
{
	int rc = check_args(length, access, mr);

	if (rc != 0)
		return rc;
	if (((uintptr_t)addr - offset) % (uint64_t)getpagesize() != 0 ||
	    (uintptr_t)addr > UINTPTR_MAX - length)
		return rtsan_fail(-EINVAL, "region: address %p, offset %llu, length %zu", addr,
				  (unsigned long long)offset, length);
	rc = check_file(fd, offset, length);
	return rc == 0 ? mr_add(ctx, addr, length, fd, offset, access, 0, mr) : rc;
}

int
rtsan_mr_reg(struct rtsan_ctx *ctx, void *addr, size_t length, uint32_t access,
	     struct rtsan_mr **mr)
{
	int rc = check_args(length, access, mr), fd;

	if (rc != 0)
		return rc;
	if (addr == NULL || (uintptr_t)addr > UINTPTR_MAX - length)
		return rtsan_fail(-EINVAL, "region: address %p, length %zu", addr, length);
	if (ctx->caps.has_mr_reg)
		return mr_add(ctx, addr, length, -1, 0, access, 0, mr);
	rc = rtsan_adopt(addr, length, (access & (uint32_t)~RTSAN_REMOTE_PULL) != 0, &fd);
	if (rc != 0)
		return rtsan_fail(rc, "region: %zu bytes at %p: %s", length, addr,
				  rc == -EFAULT ? "not mapped, or not writable" :
						  "a stack, or no private memory");
	rc = mr_add(ctx, addr, length, fd, (uintptr_t)addr, access, 0, mr);
	if (rc == 0)
		(*mr)->is_adopted = true;
	else
		rtsan_return(addr, length);
	return rc;
}

void
rtsan_mr_release(struct rtsan_mr *mr)
{
	atomic_store(&mr->lkey, 0);
	if (mr->map_size != 0)
		munmap((void *)mr->addr, mr->map_size);
	if (mr->is_adopted)
		rtsan_return((void *)mr->addr, mr->length);
	mr->is_adopted = false;
}

int
rtsan_mr_dereg(struct rtsan_mr *mr)
{
	struct rtsan_ctx *ctx = mr->ctx;
	uint32_t lkey = atomic_load(&mr->lkey);
	struct shmq_req req = {.type = SHMQ_MR_DEL, .id = mr->key};
	int rc;
	SAN_LOCKED(&ctx->lock);

	if (lkey == 0)
		return rtsan_fail(-EINVAL, "region: deregistered before");
	rtsan_error_clear();
	rc = ctx->ops->call(ctx->priv, &req);
	if (rc == -EBUSY)
		return rtsan_fail(rc, "region: posted work still names it");
	rtsan_mr_release(mr); /* also if the daemon has ended */
	return rtsan_fail_else(rc, "region");
}

int
rtsan_mr_check(const struct rtsan_ctx *ctx, const void *addr, uint32_t len, uint32_t lkey,
	       const char **why)
{
	uint32_t place = lkey & ((1u << ctx->lkey_bits) - 1);
	uintptr_t a = (uintptr_t)addr;
	const struct rtsan_mr *mr;

	if (lkey == 0) {
		*why = "memory that is not registered";
		return ctx->caps.has_mr_reg ? 0 : -EINVAL;
	}
	*why = "no region has this lkey";
	if (place >= ctx->caps.max_mrs)
		return -EINVAL;
	mr = &ctx->mrs[place];
	/* Pairs with the release in mr_add(). */
	if (atomic_load_explicit(&mr->lkey, memory_order_acquire) != lkey)
		return -EINVAL;
	*why = "outside its region";
	if (a < mr->addr || a - mr->addr > mr->length || len > mr->length - (a - mr->addr))
		return -EINVAL;
	return 0;
}

void *
rtsan_mr_addr(const struct rtsan_mr *mr)
{
	return (void *)mr->addr;
}

size_t
rtsan_mr_length(const struct rtsan_mr *mr)
{
	return mr->length;
}

uint32_t
rtsan_mr_lkey(const struct rtsan_mr *mr)
{
	return atomic_load_explicit(&mr->lkey, memory_order_relaxed);
}

uint32_t
rtsan_mr_rkey(const struct rtsan_mr *mr)
{
	return mr->rkey;
}
