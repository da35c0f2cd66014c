/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Protection domains and regions.
 *
 * DESIGN NOTES
 *
 * A program registers memory that it has allocated, and a daemon can map only files. So pages that
 * a program registers are adopted: copied into a memfd, which then replaces them at the same
 * address. There is one memfd, as large as the address space, in which each page has its address as
 * its offset: regions that overlap or adjoin need no rule, and a daemon maps any of them in one
 * piece. Pages stay adopted until they are unmapped.
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
#define ACCESS_REMOTE \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static struct {
	pthread_mutex_t lock;
	int fd; /* -1: nothing was adopted */
	struct stat st;
} store = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/** A line of /proc/self/maps. */
struct mapping {
	uintptr_t from, end;
	char flags[5]; /* "rwxp" */
	uint64_t offset;
	uint64_t inode;
	char name[64];
};

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
	return 0;
}

static bool
is_adopted(const struct mapping *m)
{
	return m->flags[3] == 's' && m->inode == store.st.st_ino && m->offset == m->from;
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
map_store(uintptr_t from, size_t bytes, const char *flags)
{
	int prot = PROT_READ | (flags[1] == 'w' ? PROT_WRITE : 0) |
		(flags[2] == 'x' ? PROT_EXEC : 0);

	return mmap((void *)from, bytes, prot, MAP_SHARED | MAP_FIXED, store.fd, (off_t)from) ==
			MAP_FAILED ?
		-errno :
		0;
}

/*
 * Adopt pages that other threads may be using. They are moved away at once; a thread that then
 * accesses their place waits, by userfaultfd, until the file is mapped there.
 */
static int
adopt_shared(uintptr_t from, size_t bytes, const char *flags)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {
		.range = {.start = from, .len = bytes},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *moved;
	int rc;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &reg) != 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	moved = mremap((void *)from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	rc = moved == MAP_FAILED ? -errno : copy_to_store(moved, bytes, (off_t)from);
	if (rc == 0)
		rc = map_store(from, bytes, flags);
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
adopt_pages(uintptr_t from, uintptr_t end, const char *flags)
{
	int rc = fallocate(store.fd, 0, (off_t)from, (off_t)(end - from)) == 0 ? 0 : -errno;

	if (rc == 0 && !is_single_threaded())
		return adopt_shared(from, end - from, flags);
	if (rc == 0)
		rc = copy_to_store((void *)from, end - from, (off_t)from);
	return rc == 0 ? map_store(from, end - from, flags) : rc;
}

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
			rc = is_private(&m) ? adopt_pages(at, until, m.flags) : -EOPNOTSUPP;
		at = until;
	}
	fclose(maps);
	*fd = store.fd;
	return rc == 0 && at < end ? -EFAULT : rc;
}

/* ---- domains ---- */

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd;

	if (san_sv_device(context) == NULL)
		return SV_NEXT(ibv_alloc_pd)(context);
	pd = calloc(1, sizeof(*pd));
	if (pd != NULL)
		pd->context = context;
	return pd;
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	if (san_sv_device(pd->context) == NULL)
		return SV_NEXT(ibv_dealloc_pd)(pd);
	free(pd);
	return 0;
}

/* ---- regions ---- */

static int
register_memory(struct sv_device *dev, void *addr, size_t length, unsigned int access,
		struct rtsan_mr **mr)
{
	uint32_t rights = ((access & IBV_ACCESS_REMOTE_WRITE) != 0 ? RTSAN_REMOTE_PUSH : 0) |
		((access & IBV_ACCESS_REMOTE_READ) != 0 ? RTSAN_REMOTE_PULL : 0) |
		((access & IBV_ACCESS_REMOTE_ATOMIC) != 0 ? RTSAN_REMOTE_ATOMIC : 0);
	int rc, fd;

	if (dev->caps.has_mr_reg)
		return rtsan_mr_reg(dev->rt, addr, length, rights, mr);
	rc = san_sv_adopt(addr, length, &fd);
	return rc == 0 ? rtsan_mr_share(dev->rt, addr, length, fd, (uintptr_t)addr, rights, mr) :
			 rc;
}

/* The declaration is that of the functions without iova; *access* has the flags that are known. */
static struct ibv_mr *
reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	const unsigned int known = IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE |
		IBV_ACCESS_OPTIONAL_RANGE;
	struct sv_mr *mr;
	int rc;

	if ((access & ~known) != 0 || iova != (uintptr_t)addr) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (length == 0 ||
	    ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 &&
	     (access & IBV_ACCESS_LOCAL_WRITE) == 0)) {
		errno = EINVAL;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return NULL;
	rc = register_memory(san_sv_device(pd->context), addr, length, access, &mr->rt);
	if (rc != 0) {
		free(mr);
		san_sv_errno(rc, "ibv_reg_mr()");
		return NULL;
	}
	mr->ibv = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.lkey = rtsan_mr_lkey(mr->rt),
		.rkey = rtsan_mr_rkey(mr->rt),
	};
	return &mr->ibv;
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (san_sv_device(pd->context) == NULL)
		return SV_NEXT(ibv_reg_mr)(pd, addr, length, access);
	return reg_mr(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *
ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	if (san_sv_device(pd->context) == NULL)
		return SV_NEXT(ibv_reg_mr_iova)(pd, addr, length, iova, access);
	return reg_mr(pd, addr, length, iova, (unsigned int)access);
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	if (san_sv_device(pd->context) == NULL)
		return SV_NEXT(ibv_reg_mr_iova2)(pd, addr, length, iova, access);
	return reg_mr(pd, addr, length, iova, access);
}

int
ibv_dereg_mr(struct ibv_mr *ibmr)
{
	struct sv_mr *mr = (struct sv_mr *)ibmr;
	int rc;

	if (san_sv_device(ibmr->context) == NULL)
		return SV_NEXT(ibv_dereg_mr)(ibmr);
	rc = rtsan_mr_dereg(mr->rt);
	if (rc == 0)
		free(mr);
	return -rc;
}
