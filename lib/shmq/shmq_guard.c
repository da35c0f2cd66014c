/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A program can punch holes into memory that it shares. The kernel would fill a hole at each touch,
 * and the touch would wait while the program punches. With userfaultfd(2) it is a SIGBUS instead,
 * so that the program ends. Only the touch that finds the hole waits, for the call that makes it.
 * A seal against holes (F_SEAL_FUTURE_WRITE) is no choice: a daemon that takes over could not map
 * the memory.
 *
 * The handler runs in the thread that touched the page, at any point of its code. So it takes no
 * lock and reads only atomic words. The range that it looks for is in use and cannot be removed.
 * Other ranges may be added or removed at the same time; therefore the first word of a range is
 * written last and read twice.
 *
 * The table is searched linearly. A search tree would have to change while a handler may read it,
 * for an event that happens at most once in the life of an application.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shmq.h"

#define CHUNK ((uintptr_t)2 << 20) /* replaced at once: the kernel limits the number of mappings */

struct range {
	_Atomic uintptr_t first; /**< 0: free */
	_Atomic size_t bytes;
	_Atomic bool failed;
	uint16_t owner;
};

static struct {
	struct range *ranges;
	uint32_t max;
	uint32_t next; /**< where the search for a free one begins */
	int event_fd;
	int fault_fd; /**< turns touches of holes into SIGBUS; -1: the kernel has no userfaultfd */
	uintptr_t page;
} guard = {.event_fd = -1};

/* ---- the handler ---- */

static struct range *
guard_find_range(uintptr_t at)
{
	uintptr_t first;
	struct range *r;
	size_t bytes;
	uint32_t i;

	for (i = 0; i < guard.max; i++) {
		r = &guard.ranges[i];
		first = atomic_load(&r->first);
		bytes = atomic_load(&r->bytes);
		if (first != 0 && at >= first && at - first < bytes &&
		    atomic_load(&r->first) == first)
			return r;
	}
	return NULL;
}

static void
on_sigbus(int sig, siginfo_t *info, void *context)
{
	uintptr_t from = (uintptr_t)info->si_addr & ~(CHUNK - 1), to = from + CHUNK, first = 0;
	struct range *r = guard_find_range((uintptr_t)info->si_addr);
	const uint64_t one = 1;
	int before = errno;

	if (r != NULL) {
		first = atomic_load(&r->first);
		/* a range with a second failure is replaced as a whole: each one may take long */
		if (from < first || atomic_load(&r->failed))
			from = first;
		if (to > first + r->bytes || atomic_load(&r->failed))
			to = first + r->bytes;
	}
	/*
	 * Two threads may handle the same page. The second one replaces the page of the first one,
	 * and data written in between is lost. The application that owns the page ends anyway.
	 */
	if (r == NULL ||
	    mmap((void *)from, to - from, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
		/* not a guarded range: the fault repeats on return, and then ends the process */
		signal(sig, SIG_DFL);
		if (info->si_code <= 0) /* a sent signal does not repeat by itself */
			raise(sig);
		return;
	}
	atomic_store(&r->failed, true);
	if (write(guard.event_fd, &one, sizeof(one)) < 0) {
		/* the counter is at its limit, so the descriptor is readable */
	}
	errno = before;
}

/* ---- the table ---- */

int
san_shmq_guard_init(uint32_t max, int *event_fd)
{
	struct sigaction act = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS};

	guard.ranges = calloc(max, sizeof(*guard.ranges));
	if (guard.ranges == NULL)
		return -ENOMEM;
	guard.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (guard.event_fd < 0)
		return -errno;
	guard.fault_fd = (int)syscall(SYS_userfaultfd,
				      O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (guard.fault_fd >= 0 && ioctl(guard.fault_fd, UFFDIO_API, &api) != 0) {
		close(guard.fault_fd);
		guard.fault_fd = -1;
	}
	guard.page = (uintptr_t)sysconf(_SC_PAGESIZE);
	guard.max = max;
	sigemptyset(&act.sa_mask);
	*event_fd = guard.event_fd;
	return sigaction(SIGBUS, &act, NULL) == 0 ? 0 : -errno;
}

uint32_t
san_shmq_guard_add(void *mem, size_t bytes, uint16_t owner)
{
	struct uffdio_register holes = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct range *r = NULL;
	uint32_t i;

	for (i = 0; i < guard.max; i++) {
		r = &guard.ranges[guard.next];
		guard.next = (guard.next + 1) % guard.max;
		if (atomic_load(&r->first) == 0)
			break;
	}
	if (i == guard.max)
		return SHMQ_GUARD_NONE;
	r->owner = owner;
	atomic_store(&r->failed, false);
	atomic_store(&r->bytes, (bytes + guard.page - 1) & ~(guard.page - 1));
	atomic_store(&r->first, (uintptr_t)mem);
	holes.range.start = (uintptr_t)mem;
	holes.range.len = atomic_load(&r->bytes);
	/* if it can't be registered, the kernel fills holes */
	ioctl(guard.fault_fd, UFFDIO_REGISTER, &holes);
	return (uint32_t)(r - guard.ranges);
}

void
san_shmq_guard_del(uint32_t range)
{
	if (range != SHMQ_GUARD_NONE)
		atomic_store(&guard.ranges[range].first, 0);
}

void
san_shmq_guard_disown(uint16_t owner)
{
	uint32_t i;

	for (i = 0; i < guard.max; i++)
		if (guard.ranges[i].owner == owner)
			guard.ranges[i].owner = SHMQ_GUARD_NOBODY;
}

bool
san_shmq_guard_failed(uint16_t *owner)
{
	uint64_t n;
	uint32_t i;

	/* a failure after this read makes the descriptor readable again */
	if (read(guard.event_fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		return false;
	for (i = 0; i < guard.max; i++) {
		struct range *r = &guard.ranges[i];

		if (atomic_load(&r->first) != 0 && atomic_exchange(&r->failed, false)) {
			*owner = r->owner;
			return true;
		}
	}
	return false;
}
