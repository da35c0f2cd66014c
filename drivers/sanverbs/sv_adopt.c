/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory that a program registers is adopted, so that a daemon can map it.
 *
 * DESIGN NOTES
 *
 * A daemon can map only files. So pages that a program registers are copied into a memfd, which
 * then replaces them at the same address. There is one memfd, as large as the address space, in
 * which each page has its address as its offset: regions that overlap or adjoin need no rule, and a
 * daemon maps any of them in one piece. Pages stay adopted until they are unmapped.
 *
 * No thread may see a gap or lose a write meanwhile. If there are other threads, the pages are
 * moved away at once, and userfaultfd stops a thread that accesses their place, until the file is
 * mapped there.
 *
 * Adopted pages are shared with a child of fork(), which must not be. So the child gets a copy
 * while its parent waits. The maps of the process say what is adopted: nothing is recorded that
 * unmapping would make wrong.
 *
 * An engine in the process needs none of that.
 */

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sv_priv.h"

#define ADDRESSES ((off_t)1 << 47) /* of a process */

/** A line of /proc/self/maps. */
struct mapping {
	uintptr_t from, end;
	char flags[5]; /* "rwxp" */
	uint64_t offset;
	uint64_t inode;
	char name[64];
};

static struct {
	pthread_mutex_t lock;
	int fd; /* -1: nothing was adopted */
	struct stat st;
	/* while the process forks: */
	struct mapping *adopted;
	uint32_t nb_adopted;
	int pipe[2];
} store = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static bool
read_mapping(FILE *maps, struct mapping *m)
{
	char line[512];

	if (fgets(line, sizeof(line), maps) == NULL)
		return false;
	m->name[0] = '\0';
	return sscanf(line, "%lx-%lx %4s %lx %*s %lu %63s", &m->from, &m->end, m->flags, &m->offset,
		      &m->inode, m->name) >= 5;
}

static bool
is_adopted(const struct mapping *m)
{
	return m->flags[3] == 's' && m->inode == store.st.st_ino && m->offset == m->from;
}

static int
prot_of(const struct mapping *m)
{
	return PROT_READ | (m->flags[1] == 'w' ? PROT_WRITE : 0) |
		(m->flags[2] == 'x' ? PROT_EXEC : 0);
}

/* ---- fork() ---- */

static void
before_fork(void)
{
	struct mapping m, *more;
	FILE *maps;

	pthread_mutex_lock(&store.lock);
	store.nb_adopted = 0;
	store.pipe[0] = store.pipe[1] = -1;
	maps = fopen("/proc/self/maps", "re");
	while (maps != NULL && read_mapping(maps, &m)) {
		if (!is_adopted(&m))
			continue;
		more = reallocarray(store.adopted, store.nb_adopted + 1, sizeof(m));
		if (more == NULL)
			break;
		store.adopted = more;
		store.adopted[store.nb_adopted++] = m;
	}
	if (maps != NULL)
		fclose(maps);
	if (store.nb_adopted != 0 && pipe2(store.pipe, O_CLOEXEC) != 0)
		store.nb_adopted = 0;
}

/* The parent waits until the child has its copy, or has ended. */
static void
after_fork_in_parent(void)
{
	char byte;

	if (store.nb_adopted != 0) {
		close(store.pipe[1]);
		while (read(store.pipe[0], &byte, 1) < 0 && errno == EINTR)
			;
		close(store.pipe[0]);
	}
	pthread_mutex_unlock(&store.lock);
}

static void
copy_for_child(const struct mapping *m)
{
	size_t bytes = m->end - m->from, done = 0;
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ssize_t n = 1;

	if (p == MAP_FAILED)
		return;
	for (; done < bytes && n > 0; done += (size_t)n)
		n = pread(store.fd, p + done, bytes - done, (off_t)(m->from + done));
	mprotect(p, bytes, prot_of(m));
	mremap(p, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, m->from);
}

static void
after_fork_in_child(void)
{
	uint32_t i;

	for (i = 0; i < store.nb_adopted; i++)
		copy_for_child(&store.adopted[i]);
	if (store.nb_adopted != 0) {
		close(store.pipe[0]);
		close(store.pipe[1]);
	}
	pthread_mutex_unlock(&store.lock);
}

/* ---- adopted memory ---- */

static int
create_store(void)
{
	int fd;

	if (store.fd >= 0)
		return 0;
	fd = memfd_create("sanverbs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, ADDRESSES) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0 ||
	    fstat(fd, &store.st) != 0) {
		close(fd);
		return -ENOMEM;
	}
	store.fd = fd;
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
	return 0;
}

/* A stack grows while it is copied, and what the kernel provides is not the process's. */
static bool
is_private(const struct mapping *m)
{
	return m->flags[0] == 'r' && m->flags[3] == 'p' && strncmp(m->name, "[stack", 6) != 0 &&
		strncmp(m->name, "[v", 2) != 0;
}

/* Write memory that no other thread changes to its place in the file. 0 or -errno. */
static int
copy_to_store(const void *from, size_t bytes, off_t offset)
{
	while (bytes > 0) {
		ssize_t n = pwrite(store.fd, from, bytes, offset);

		if (n <= 0)
			return n == 0 ? -EIO : -errno;
		from = (const char *)from + n;
		bytes -= (size_t)n;
		offset += n;
	}
	return 0;
}

static int
map_store(uintptr_t from, size_t bytes, int prot)
{
	void *p = mmap((void *)from, bytes, prot, MAP_SHARED | MAP_FIXED, store.fd, (off_t)from);

	return p == MAP_FAILED ? -errno : 0;
}

/*
 * Adopt pages that other threads may be using. They are moved away at once; a thread that then
 * accesses their place waits, by userfaultfd, until the file is mapped there.
 */
static int
adopt_shared(uintptr_t from, size_t bytes, int prot)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {
		.range = {.start = from, .len = bytes},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *moved;
	int rc;

	/* Without the right to more it stops threads, but a system call that they make fails. */
	if (fd < 0)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &reg) != 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	/* the last argument is a hint, which the kernel checks; glibc does not set it */
	moved = mremap((void *)from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	rc = moved == MAP_FAILED ? -errno : copy_to_store(moved, bytes, (off_t)from);
	if (rc == 0)
		rc = map_store(from, bytes, prot);
	if (rc != 0 && moved != MAP_FAILED &&
	    mremap(moved, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, from) != MAP_FAILED)
		moved = MAP_FAILED;
	close(fd); /* threads that wait go on */
	if (moved != MAP_FAILED)
		munmap(moved, bytes);
	return rc;
}

static bool
is_single_threaded(void)
{
	struct stat st;

	/* besides "." and ".." one for each thread; ours do not access the program's memory */
	return stat("/proc/self/task", &st) == 0 &&
		st.st_nlink <= 2 + 1 + (nlink_t)atomic_load(&san_sv_nb_threads);
}

static int
adopt_pages(uintptr_t from, uintptr_t end, int prot)
{
	int rc = fallocate(store.fd, 0, (off_t)from, (off_t)(end - from)) == 0 ? 0 : -errno;

	if (rc == 0 && !is_single_threaded())
		return adopt_shared(from, end - from, prot);
	if (rc == 0)
		rc = copy_to_store((void *)from, end - from, (off_t)from);
	return rc == 0 ? map_store(from, end - from, prot) : rc;
}

int
san_sv_adopt(void *addr, size_t length, int *fd)
{
	uintptr_t page = (uintptr_t)getpagesize(), at = (uintptr_t)addr & ~(page - 1);
	uintptr_t end = ((uintptr_t)addr + length + page - 1) & ~(page - 1);
	struct mapping m;
	FILE *maps;
	int rc;
	SAN_LOCKED(&store.lock);

	rc = create_store();
	if (rc != 0)
		return rc;
	maps = fopen("/proc/self/maps", "re");
	if (maps == NULL)
		return -errno;
	while (rc == 0 && at < end && read_mapping(maps, &m)) {
		uintptr_t until = m.end < end ? m.end : end;

		if (m.end <= at)
			continue;
		if (m.from > at)
			break;
		if (!is_adopted(&m))
			rc = is_private(&m) ? adopt_pages(at, until, prot_of(&m)) : -EOPNOTSUPP;
		at = until;
	}
	fclose(maps);
	*fd = store.fd;
	return rc == 0 && at < end ? -EFAULT : rc;
}
