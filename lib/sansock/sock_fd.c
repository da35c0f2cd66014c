/* SPDX-License-Identifier: BSD-3-Clause */

#include <sys/resource.h>
#include <unistd.h>

#include "sock_priv.h"

#define HIGH_FD 700 /* programs expect low numbers */

/* ---- descriptors of the library itself ---- */

/* For each descriptor of the library, where its number is kept. Unused pages take no memory. */
static _Atomic(_Atomic int *) holders[SOCK_FDS];
static _Atomic int highest_own = -1;

static void
sock_own_set_bit(int fd, _Atomic int *holder)
{
	int high = atomic_load(&highest_own);

	if ((unsigned int)fd >= SOCK_FDS)
		return;
	atomic_store(&holders[fd], holder);
	while (holder != NULL && fd > high &&
	       !atomic_compare_exchange_weak(&highest_own, &high, fd))
		;
}

int
san_sock_own(int fd, _Atomic int *holder)
{
	int high = fd < 0 ? -1 : REAL(fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FD);

	if (high >= 0) {
		REAL(syscall, SYS_close, fd); /* close() is a cancellation point */
		fd = high;
	}
	sock_own_set_bit(fd, holder);
	return fd;
}

int
san_sock_own_dup(int fd, _Atomic int *holder)
{
	int high = REAL(fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FD);
	struct rlimit limit;

	/* keep an eighth of the numbers for the program */
	if (high >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    (rlim_t)high >= limit.rlim_cur - limit.rlim_cur / 8) {
		REAL(syscall, SYS_close, high);
		high = -1;
	}
	sock_own_set_bit(high, holder);
	return high;
}

void
san_sock_own_close(int fd)
{
	if (fd < 0)
		return;
	sock_own_set_bit(fd, NULL);
	REAL(syscall, SYS_close, fd);
}

bool
san_sock_own_is(int fd)
{
	return fd >= 0 && fd <= atomic_load_explicit(&highest_own, memory_order_relaxed) &&
		atomic_load(&holders[fd]) != NULL;
}

/* If it is the library's, the kernel has given it to the program: a call not seen has closed it. */
static void
own_lost(int fd)
{
	_Atomic int *holder;

	if (!san_sock_own_is(fd) || !san_sock_fd_is_us())
		return;
	holder = atomic_exchange(&holders[fd], NULL);
	if (holder != NULL)
		atomic_compare_exchange_strong(holder, &fd, -1);
}

void
san_sock_own_vacate(int fd)
{
	_Atomic int *holder = san_sock_own_is(fd) ? atomic_load(&holders[fd]) : NULL;
	int was = fd, to;
	KEEP_ERRNO;

	if (holder == NULL)
		return;
	to = REAL(fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FD);
	sock_own_set_bit(fd, NULL);
	sock_own_set_bit(to, holder);
	/* without a free number the descriptor is lost, and the holder has -1 */
	if (!atomic_compare_exchange_strong(holder, &was, to))
		san_sock_own_close(to);
}

int
san_sock_own_close_others(unsigned int first, unsigned int last, int flags)
{
	unsigned int fd, at = first;
	int rc = 0;

	for (fd = first; fd <= last && (int)fd <= atomic_load(&highest_own) && rc == 0; fd++) {
		if (!san_sock_own_is((int)fd))
			continue;
		if (fd > at)
			rc = REAL(close_range, at, fd - 1, flags);
		at = fd + 1;
	}
	/* also an invalid range: the kernel returns the error */
	return rc != 0 || (at > last && at != first) ? rc : REAL(close_range, at, last, flags);
}

/* ---- descriptors of sockets ---- */

/* Value of *refs* while a file is made or released: no reference may be taken. */
#define BUSY UINT32_MAX

/* Index in *files* plus one; 0: not known. Unused pages take no memory. */
static _Atomic uint32_t table[SOCK_FDS];
static struct fd_sock files[SOCK_FILES];
static _Atomic uint32_t hint;    /* where the search for a free one begins */
static _Atomic uint32_t nb_used; /* files from this on were never used */
static _Atomic int highest = -1; /* highest descriptor that was ever in the table */

static _Atomic uint32_t lines;

static pid_t owner;
void (*sock_fd_leaves)(int fd, struct fd_sock *f);

void
san_sock_fd_begin(void)
{
	owner = san_sock_box_is_closed() ? 0 : getpid();
}

bool
san_sock_fd_is_us(void)
{
	/* a confined process may not be allowed to ask */
	return owner == 0 || san_sock_box_is_closed() || owner == getpid();
}

static bool
in_table(int fd)
{
	return (unsigned int)fd < SOCK_FDS;
}

struct fd_sock *
san_sock_fd_get(int fd)
{
	struct fd_sock *f;
	uint32_t at, refs;

	while (in_table(fd)) {
		at = atomic_load_explicit(&table[fd], memory_order_acquire);
		if (__builtin_expect(at == 0, 1))
			return NULL;
		f = &files[at - 1];
		refs = atomic_load_explicit(&f->refs, memory_order_relaxed);
		/* a file that is being released is not used again */
		if (refs == 0 || refs == BUSY ||
		    !atomic_compare_exchange_weak(&f->refs, &refs, refs + 1))
			continue;
		if (atomic_load_explicit(&table[fd], memory_order_acquire) == at)
			return f;
		san_sock_fd_put(f);
	}
	return NULL;
}

static void
close_gate(struct fd_sock *f)
{
	san_sock_own_close(atomic_exchange(&f->gate[0], -1));
	san_sock_own_close(atomic_exchange(&f->gate[1], -1));
}

void
san_sock_fd_put(struct fd_sock *f)
{
	uint32_t refs = atomic_load(&f->refs);

	while (!atomic_compare_exchange_weak(&f->refs, &refs, refs == 1 ? BUSY : refs - 1))
		;
	if (refs != 1)
		return;
	if (f->shm != NULL)
		REAL(munmap, f->shm, f->bytes);
	san_sock_own_close(f->kernel);
	san_sock_own_close(f->lease);
	close_gate(f);
	/* only now another thread may take it */
	atomic_store(&f->refs, 0);
}

/* The file is BUSY. */
static struct fd_sock *
take_free(void)
{
	uint32_t i, was, at = atomic_load(&hint), none = 0;

	for (i = 0; i < SOCK_FILES; i++, none = 0) {
		at = (at + 1) % SOCK_FILES;
		if (atomic_load_explicit(&files[at].refs, memory_order_relaxed) == 0 &&
		    atomic_compare_exchange_strong(&files[at].refs, &none, BUSY)) {
			atomic_store(&hint, at);
			was = atomic_load(&nb_used);
			while (was <= at && !atomic_compare_exchange_weak(&nb_used, &was, at + 1))
				;
			return &files[at];
		}
	}
	return NULL;
}

static void
put_at(int fd, uint32_t at)
{
	uint32_t was = atomic_exchange(&table[fd], at);
	int i, high = atomic_load(&highest);
	struct fd_sock *f;

	while (at != 0 && fd > high && !atomic_compare_exchange_weak(&highest, &high, fd))
		;
	if (was == 0)
		return;
	f = &files[was - 1];
	for (i = 0; i < SOCK_SETS; i++)
		if (f->sets[i].fd == fd)
			f->sets[i].epfd = -1;
	if (sock_fd_leaves != NULL)
		sock_fd_leaves(fd, f);
	san_sock_fd_put(f);
}

void
san_sock_fd_track(int fd, int domain, bool is_udp, const struct fd_sock *before)
{
	struct fd_sock *f;
	int i;

	if (!in_table(fd) || !san_sock_fd_is_us())
		return;
	f = take_free();
	if (f == NULL) {
		san_sock_fd_forget(fd);
		return;
	}
	memset(&f->carried, 0, sizeof(*f) - offsetof(struct fd_sock, carried));
	f->line = before != NULL ? before->line : atomic_fetch_add(&lines, 1);
	f->domain = domain;
	f->is_udp = is_udp;
	f->kernel = f->lease = -1;
	f->gate[0] = f->gate[1] = -1;
	for (i = 0; i < SOCK_SETS; i++)
		f->sets[i].epfd = -1;
	atomic_store(&f->refs, 1);
	put_at(fd, (uint32_t)(f - files) + 1);
}

void
san_sock_fd_dup(int from, int to)
{
	struct fd_sock *f;

	if (from == to || !in_table(to))
		return;
	own_lost(to);
	f = san_sock_fd_get(from);
	if (f == NULL)
		san_sock_fd_forget(to);
	else if (!san_sock_fd_is_us())
		san_sock_fd_put(f);
	else
		put_at(to, (uint32_t)(f - files) + 1); /* the table keeps the reference */
}

void
san_sock_fd_forget(int fd)
{
	own_lost(fd);
	if (!in_table(fd) || !san_sock_fd_is_us())
		return;
	if (atomic_load_explicit(&table[fd], memory_order_relaxed) != 0)
		put_at(fd, 0);
	else if (sock_fd_leaves != NULL)
		sock_fd_leaves(fd, NULL);
}

/* Close what another thread of the parent was releasing: a number names its holder until then. */
static void
close_held(_Atomic int *holder)
{
	int fd = atomic_load(holder);

	if (san_sock_own_is(fd) && atomic_load(&holders[fd]) == holder)
		san_sock_own_close(fd);
}

void
san_sock_fd_recount(void (*hold)(void))
{
	uint32_t i, refs, nb = atomic_load(&nb_used);
	bool is_whole;
	int fd;

	for (i = 0; i < nb; i++) {
		refs = atomic_load(&files[i].refs);
		/* of a BUSY file, another thread had made or released a part */
		is_whole = refs != 0 && refs != BUSY;
		if (refs == BUSY) {
			close_held(&files[i].kernel);
			close_held(&files[i].lease);
		}
		atomic_store(&files[i].refs, is_whole); /* held by this function */
		if (is_whole)
			close_gate(&files[i]); /* no thread of this process waits there */
		atomic_store(&files[i].pins, 0);
	}
	for (fd = 0; fd <= atomic_load(&highest); fd++)
		if (atomic_load(&table[fd]) != 0)
			san_sock_fd_hold(&files[table[fd] - 1]);
	hold();
	for (i = 0; i < nb; i++)
		if (atomic_load(&files[i].refs) != 0)
			san_sock_fd_put(&files[i]);
}

void
san_sock_fd_forget_range(unsigned int first, unsigned int last)
{
	unsigned int fd;

	for (fd = first; fd <= last && (int)fd <= atomic_load(&highest); fd++)
		if (!san_sock_own_is((int)fd))
			san_sock_fd_forget((int)fd);
}

int
san_sock_fd_next(const struct fd_sock *f, int fd)
{
	uint32_t at = (uint32_t)(f - files) + 1;

	for (; fd <= atomic_load(&highest); fd++) /* it may grow at any time */
		if (atomic_load(&table[fd]) == at)
			return fd;
	return -1;
}

int
san_sock_fd_number(int fd, const struct fd_sock *f)
{
	uint32_t at = (uint32_t)(f - files) + 1;

	return in_table(fd) && atomic_load_explicit(&table[fd], memory_order_relaxed) == at ?
		fd :
		san_sock_fd_next(f, 0);
}
