/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory that two processes map. A mapping is populated at once, so that the lcore that works on it
 * takes no page faults. Seals, which cannot be removed, restrict what the other process may do to
 * it. (ARCH-5)
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "shmq.h"

#define SEALS_OURS  (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define PLACE_STEP  ((size_t)1 << 16)
#define PLACE_TRIES 100 /* attempts at places that are in use */

static struct {
	uintptr_t from, next;
	size_t bytes; /* 0: anywhere */
} places;

void
san_shmq_mem_place(uintptr_t from, size_t bytes)
{
	places.from = places.next = from;
	places.bytes = bytes;
}

/* The next place that is large enough, in use or not; 0: there is none. */
static uintptr_t
next_place(size_t bytes)
{
	uintptr_t at;

	if (bytes > places.bytes)
		return 0;
	if (bytes > places.from + places.bytes - places.next)
		places.next = places.from;
	at = places.next;
	places.next += (bytes + PLACE_STEP - 1) & ~(size_t)(PLACE_STEP - 1);
	return at;
}

static int
map_at(int fd, uint64_t offset, size_t bytes, uintptr_t at, int flags, void **out)
{
	void *p = mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | flags | (at != 0 ? MAP_FIXED_NOREPLACE : 0), fd,
		       (off_t)offset);

	if (p == MAP_FAILED)
		return -errno;
	*out = p;
	return 0;
}

int
san_shmq_mem_map(int fd, uint64_t offset, size_t bytes, int flags, void **out)
{
	int i, rc = -EEXIST;

	for (i = 0; i < PLACE_TRIES && rc == -EEXIST; i++) {
		rc = map_at(fd, offset, bytes, next_place(bytes), flags, out);
		/* in growing steps: what is mapped there may be large */
		if (rc == -EEXIST && places.bytes >> i > PLACE_STEP)
			places.next += PLACE_STEP << i;
		if (places.next - places.from > places.bytes)
			places.next = places.from;
	}
	return rc;
}

int
san_shmq_mem_map_at(int fd, uint64_t offset, size_t bytes, void *at)
{
	/* no MAP_POPULATE: the pages exist, and filling in page tables would take too long here */
	return map_at(fd, offset, bytes, (uintptr_t)at, 0, &at);
}

int
san_shmq_mem_create(const char *name, size_t bytes, void **out, int *fd)
{
	int rc = -ENOMEM;

	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	if (ftruncate(*fd, (off_t)bytes) == 0 && fcntl(*fd, F_ADD_SEALS, SEALS_OURS) == 0)
		rc = san_shmq_mem_map(*fd, 0, bytes, MAP_POPULATE, out);
	if (rc != 0) {
		close(*fd);
		*fd = -1;
	}
	return rc;
}

/* True if all of its pages exist, or, in a larger file, those of these bytes have been written. */
static bool
has_pages(int fd, const struct stat *st, uint64_t offset, size_t bytes)
{
	return (uint64_t)st->st_blocks * 512 >= (uint64_t)st->st_size ||
		lseek(fd, (off_t)offset, SEEK_HOLE) >= (off_t)(offset + bytes);
}

int
san_shmq_mem_check(int fd, uint64_t offset, size_t bytes, const char **why)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (seals < 0 || fstatfs(fd, &fs) != 0 || fstat(fd, &st) != 0)
		*why = "is no memfd";
	else if (fs.f_type != TMPFS_MAGIC)
		*why = "is on huge pages";
	else if ((seals & F_SEAL_SHRINK) == 0)
		*why = "could become shorter: it needs the seal F_SEAL_SHRINK";
	else if ((seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0 ||
		 (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
		*why = "can't be written to";
	else if (offset > (uint64_t)st.st_size || bytes > (uint64_t)st.st_size - offset)
		*why = "has fewer bytes than the region";
	else if (!has_pages(fd, &st, offset, bytes))
		*why = "has holes: fallocate() it";
	else
		return 0;
	return -EINVAL;
}

int
san_shmq_mem_populate(void *mem, size_t bytes)
{
	return madvise(mem, bytes, MADV_POPULATE_WRITE) == 0 ? 0 : -errno;
}
