/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory that a program registers is adopted, so that a daemon can map it. (RDMA-2)
 *
 * DESIGN NOTES
 *
 * A daemon can map only files. So pages that a program registers are copied into a memfd, which
 * then replaces them at the same address. There is one memfd, as large as the address space, in
 * which each page has its address as its offset: regions that overlap or adjoin need no rule, and a
 * daemon maps any of them in one piece. With its last region a page becomes private again, because
 * allocators move and grow mappings of their own.
 *
 * No thread may see a gap or lose a write meanwhile. So pages are moved away at once, and
 * userfaultfd stops a thread that accesses their place, until the new mapping is there. The calling
 * thread must not access them: signals are blocked, and its stack is never adopted. Huge pages
 * cannot be moved so. A mapping of them is adopted as a whole, while userfaultfd stops those that
 * write to it.
 *
 * Adopted pages are shared with a child of fork(), which must not be. So the child gets a copy
 * while its parent waits. The maps of the process say what is adopted: nothing is recorded that
 * unmapping would make wrong.
 *
 * An engine in the process needs none of that.
 */

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rtsan_priv.h"

#define ADDRESSES  ((off_t)1 << 47) /* of a process */
#define FIBER_NEAR 65536u           /* bytes around a frame that may be its stack's */

/** A line of /proc/self/maps. */
struct mapping {
	uintptr_t from, end;
	char flags[5]; /* "rwxp" */
	uint64_t offset;
	uint64_t inode;
	char name[64];
};

/** A region that is registered. */
struct adopted {
	uintptr_t from, end; /* whole pages */
	LIST_ENTRY(adopted) link;
};

static struct {
	pthread_mutex_t lock;
	int fd; /* -1: nothing was adopted */
	LIST_HEAD(, adopted) regions;
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
	int c;

	if (fgets(line, sizeof(line), maps) == NULL)
		return false;
	c = strchr(line, '\n') != NULL ? '\n' : 0;
	while (c != '\n' && c != EOF) /* of a long name the beginning is enough */
		c = getc(maps);
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

/* Put the adopted mappings of a range into *list*, which grows. Returns their number. */
static uint32_t
list_adopted(uintptr_t from, uintptr_t end, struct mapping **list)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct mapping m, *more;
	uint32_t nb = 0;

	while (maps != NULL && read_mapping(maps, &m)) {
		if (m.end <= from || m.from >= end || !is_adopted(&m))
			continue;
		more = reallocarray(*list, nb + 1, sizeof(m));
		if (more == NULL)
			break;
		*list = more;
		more[nb++] = m;
	}
	if (maps != NULL)
		fclose(maps);
	return nb;
}

/* ---- fork() ---- */

static void
before_fork(void)
{
	pthread_mutex_lock(&store.lock);
	store.nb_adopted = store.fd >= 0 ? list_adopted(0, UINTPTR_MAX, &store.adopted) : 0;
	store.pipe[0] = store.pipe[1] = -1;
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
		abort(); /* it would change its parent's memory */
	for (; done < bytes && n > 0; done += (size_t)n)
		n = pread(store.fd, p + done, bytes - done, (off_t)(m->from + done));
	mprotect(p, bytes, prot_of(m));
	if (done < bytes ||
	    mremap(p, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, m->from) == MAP_FAILED)
		abort();
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
	if (store.fd >= 0)
		close(store.fd);
	store.fd = -1;
	LIST_INIT(&store.regions);
	pthread_mutex_unlock(&store.lock);
}

/*
 * Before the handlers of libraries that register memory under a lock of their own: fork() calls
 * the latest first, so it takes that lock before ours.
 */
static void __attribute__((constructor))
handle_fork(void)
{
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- adopted memory ---- */

static int
create_store(void)
{
	int fd;

	if (store.fd >= 0)
		return 0;
	fd = memfd_create("rtsan-adopted", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, ADDRESSES) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0 ||
	    fstat(fd, &store.st) != 0) {
		close(fd);
		return -ENOMEM;
	}
	store.fd = fd;
	return 0;
}

/* Private memory that can be moved. What the kernel provides is not the process's. */
static bool
is_private(const struct mapping *m)
{
	return m->flags[0] == 'r' && m->flags[3] == 'p' && strncmp(m->name, "[stack", 6) != 0 &&
		strncmp(m->name, "[v", 2) != 0;
}

static bool
is_huge(const struct mapping *m)
{
	return strcmp(m->name, "/anon_hugepage") == 0;
}

/* True if the calling thread, or a fiber of it, has its stack there, which it uses meanwhile. */
static bool
has_own_stack(uintptr_t from, uintptr_t end)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	pthread_attr_t attr;
	void *low = NULL;
	size_t bytes = 0;

	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return true;
	pthread_attr_getstack(&attr, &low, &bytes);
	pthread_attr_destroy(&attr);
	if (here - (uintptr_t)low >= bytes) { /* a fiber, whose bounds are not known */
		low = (void *)(here - FIBER_NEAR);
		bytes = 2 * FIBER_NEAR;
	}
	return from < (uintptr_t)low + bytes && (uintptr_t)low < end;
}

/* Copy memory that no other thread changes to its place in the file. 0 or -errno. */
static int
copy_to_store(const void *from, size_t bytes, off_t offset)
{
	while (bytes > 0) {
		/* not pwrite(): that of a sanitizer refuses the bytes between variables */
		ssize_t n = syscall(SYS_pwrite64, store.fd, from, bytes, offset);

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

/* Open a userfaultfd for these pages, or return -1. */
static int
watch_pages(uintptr_t from, size_t bytes, uint64_t mode, uint64_t features)
{
	struct uffdio_api api = {.api = UFFD_API, .features = features};
	struct uffdio_register reg = {.range = {.start = from, .len = bytes}, .mode = mode};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	/* Without the right to more it stops threads, but a system call that they make fails. */
	if (fd < 0)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (fd < 0 ||
	    (ioctl(fd, UFFDIO_API, &api) == 0 && ioctl(fd, UFFDIO_REGISTER, &reg) == 0))
		return fd;
	close(fd);
	return -1;
}

/*
 * Stop threads that access these pages, and move the pages away; returns their new place, or NULL.
 * *fd*: close it when the place is mapped again, and the threads go on.
 */
static void *
move_pages(uintptr_t from, size_t bytes, int *fd)
{
	void *moved;

	*fd = watch_pages(from, bytes, UFFDIO_REGISTER_MODE_MISSING, 0);
	if (*fd < 0)
		return NULL;
	/* glibc and libraries that replace mremap() do not pass the last argument, a hint */
	moved = (void *)syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP,
				NULL);
	if (moved != MAP_FAILED)
		return moved;
	close(*fd);
	return NULL;
}

/* Stop threads that write to these pages, until the descriptor is closed. -1: it cannot be. */
static int
protect_pages(uintptr_t from, size_t bytes)
{
	struct uffdio_writeprotect protect = {
		.range = {.start = from, .len = bytes},
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	int fd = watch_pages(from, bytes, UFFDIO_REGISTER_MODE_WP, UFFD_FEATURE_WP_HUGETLBFS_SHMEM);

	if (fd < 0 || ioctl(fd, UFFDIO_WRITEPROTECT, &protect) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Put pages at *from*, from wherever they are. */
static void
put_pages(void *pages, size_t bytes, uintptr_t from)
{
	if (mremap(pages, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, from) != MAP_FAILED)
		return;
	fputs("librtsan: memory of the program cannot be put back\n", stderr);
	abort();
}

_Atomic int rtsan_nb_threads;

/* True if the program has one thread. Those of libraries of ours change none of its globals. */
static bool
is_single_threaded(void)
{
	struct stat st;

	/* besides "." and ".." one for each thread */
	return stat("/proc/self/task", &st) == 0 &&
		st.st_nlink <= 2 + 1 + (nlink_t)atomic_load(&rtsan_nb_threads);
}

static int
adopt_pages(uintptr_t from, uintptr_t end, const struct mapping *m)
{
	bool is_changed =
		m->flags[1] == 'w' && (m->inode == 0 || !is_single_threaded()); /* by others */
	size_t bytes = end - from;
	void *moved;
	int fd = -1, rc;

	if (has_own_stack(from, end))
		return -EOPNOTSUPP;
	if (fallocate(store.fd, 0, (off_t)from, (off_t)bytes) != 0)
		return -errno;
	if (!is_changed || is_huge(m)) {
		if (is_changed && (fd = protect_pages(from, bytes)) < 0)
			return -EOPNOTSUPP;
		rc = copy_to_store((void *)from, bytes, (off_t)from);
		if (rc == 0)
			rc = map_store(from, bytes, prot_of(m));
		if (fd >= 0)
			close(fd);
		return rc;
	}
	moved = move_pages(from, bytes, &fd);
	if (moved == NULL)
		return -EOPNOTSUPP;
	rc = copy_to_store(moved, bytes, (off_t)from);
	if (rc == 0)
		rc = map_store(from, bytes, prot_of(m));
	if (rc == 0)
		munmap(moved, bytes);
	else
		put_pages(moved, bytes, from);
	close(fd);
	return rc;
}

/*
 * The reverse. A private mapping of the file replaces the shared one at once; when all its pages
 * are its own, they are moved like others. Without memory for that, and if the caller has its stack
 * there, bytes stay in the file.
 */
static void
return_pages(uintptr_t from, uintptr_t end, int prot)
{
	size_t bytes = end - from;
	void *moved, *copy;
	int fd;

	if (has_own_stack(from, end))
		return;
	copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED ||
	    madvise(copy, bytes, MADV_POPULATE_WRITE) != 0 ||
	    mmap((void *)from, bytes, prot | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, store.fd,
		 (off_t)from) == MAP_FAILED ||
	    madvise((void *)from, bytes, MADV_POPULATE_WRITE) != 0) {
		if (copy != MAP_FAILED)
			munmap(copy, bytes);
		return;
	}
	fallocate(store.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)bytes);
	moved = move_pages(from, bytes, &fd);
	if (moved == NULL) {
		munmap(copy, bytes);
		return;
	}
	memcpy(copy, moved, bytes);
	mprotect(copy, bytes, prot);
	put_pages(copy, bytes, from);
	close(fd);
	munmap(moved, bytes);
}

/* Do that for the adopted pages in a range. */
static void
return_range(uintptr_t at, uintptr_t end)
{
	struct mapping *found = NULL;
	/* all are read before any changes; the list may be in pages that are moved */
	uint32_t i, nb = list_adopted(at, end, &found);

	for (i = 0; i < nb; i++)
		return_pages(found[i].from > at ? found[i].from : at,
			     found[i].end < end ? found[i].end : end, prot_of(&found[i]));
	free(found);
}

/* Adopt what of a range is not adopted. */
static int
adopt_range(uintptr_t at, uintptr_t end, bool is_written)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct mapping m;
	int rc = 0;

	if (maps == NULL)
		return -errno;
	while (rc == 0 && at < end && read_mapping(maps, &m)) {
		uintptr_t until = m.end < end ? m.end : end;

		if (m.end <= at)
			continue;
		if (m.from > at || (is_written && m.flags[1] != 'w'))
			break;
		if (!is_adopted(&m) && !is_private(&m))
			rc = -EOPNOTSUPP;
		else if (!is_adopted(&m))
			rc = is_huge(&m) ? adopt_pages(m.from, m.end, &m) :
					   adopt_pages(at, until, &m);
		at = until;
	}
	fclose(maps);
	return rc == 0 && at < end ? -EFAULT : rc;
}

static void
pages_of(const void *addr, size_t length, uintptr_t *from, uintptr_t *end)
{
	uintptr_t page = (uintptr_t)getpagesize();

	*from = (uintptr_t)addr & ~(page - 1);
	*end = ((uintptr_t)addr + length + page - 1) & ~(page - 1);
}

/* Return the pages of a range that no region has. */
static void
return_unused(uintptr_t at, uintptr_t end)
{
	const struct adopted *r;

	while (at < end) {
		uintptr_t until = end;

		LIST_FOREACH(r, &store.regions, link) {
			if (r->from <= at && at < r->end)
				break;
			if (r->from > at && r->from < until)
				until = r->from;
		}
		if (r == NULL)
			return_range(at, until);
		at = r != NULL ? r->end : until;
	}
}

int
rtsan_adopt(void *addr, size_t length, bool is_written, int *fd)
{
	struct adopted *r = calloc(1, sizeof(*r));
	sigset_t all, before;
	int rc;
	SAN_LOCKED(&store.lock);

	if (r == NULL)
		return -ENOMEM;
	pages_of(addr, length, &r->from, &r->end);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = create_store();
	if (rc == 0)
		rc = adopt_range(r->from, r->end, is_written);
	if (rc == 0)
		LIST_INSERT_HEAD(&store.regions, r, link);
	else if (store.fd >= 0)
		return_unused(r->from, r->end);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		free(r);
	*fd = store.fd;
	return rc;
}

void
rtsan_return(void *addr, size_t length)
{
	uintptr_t from, end;
	sigset_t all, before;
	struct adopted *r;
	SAN_LOCKED(&store.lock);

	pages_of(addr, length, &from, &end);
	LIST_FOREACH(r, &store.regions, link)
		if (r->from == from && r->end == end)
			break;
	if (r == NULL) /* in a child */
		return;
	LIST_REMOVE(r, link);
	free(r);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	return_unused(from, end);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
