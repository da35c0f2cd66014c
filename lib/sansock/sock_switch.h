/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_SWITCH_H
#define SOCK_SWITCH_H

/** @file Common to the files with intercepted functions. (UDP-1) */

#include "sock_owner.h"

#define EXPORT __attribute__((visibility("default")))
/** The function *name* in the same file has another name, too. */
#define EXPORT_AS(name, other) EXPORT __typeof__(name) other __attribute__((alias(#name)))

/** The process starts: notice its children. */
void san_sock_fork_begin(void);
/** True if this call of syscall() makes a child with a memory of its own. */
bool san_sock_fork_copies(long number, const long a[6]);
/** Make that call. */
long san_sock_fork_by_number(long number, const long a[6]);
/** True if this call of syscall() confines the process: see sock_box.c. */
bool san_sock_switch_confines(long number, const long a[6]);
/** Make that call. */
long san_sock_switch_confine(long number, const long a[6]);
/** The process starts: prepare standard streams for carried sockets. */
void san_sock_stdio_begin(void);
/** *fd* has changed: if it is a carried socket now, so is its standard stream. */
void san_sock_stdio_at(int fd);

/**
 * Returns *f*, to which the caller has a reference, if the daemon serves it. NULL: the kernel does.
 * Then *f* is pinned and *pinned* is *f*; or, if it is the kernel's for good, the reference is
 * released and *pinned* is NULL.
 */
static inline struct fd_sock *
san_sock_switch_pin(struct fd_sock *f, struct fd_sock **pinned)
{
	*pinned = NULL;
	f->nb_calls++;
	if (atomic_load_explicit(&f->carried, memory_order_acquire))
		return f;
	if (atomic_load_explicit(&f->stays, memory_order_relaxed))
		san_sock_fd_put(f);
	else if (!san_sock_owner_pin(f))
		return f;
	else
		*pinned = f;
	return NULL;
}

/**
 * The carried socket at *fd*, with a reference. NULL: the kernel serves *fd*; call it by
 * BY_KERNEL(*pinned*), which may be NULL, too.
 */
static inline struct fd_sock *
san_sock_switch_carried(int fd, struct fd_sock **pinned)
{
	struct fd_sock *f = san_sock_fd_get(fd);

	if (__builtin_expect(f != NULL, 0))
		return san_sock_switch_pin(f, pinned);
	*pinned = NULL;
	return NULL;
}

/** The carried socket at *fd*, with a reference. NULL: it is not carried, but may come to be. */
static inline struct fd_sock *
san_sock_switch_carried_now(int fd)
{
	struct fd_sock *f = san_sock_fd_get(fd);

	if (__builtin_expect(f == NULL, 1) ||
	    atomic_load_explicit(&f->carried, memory_order_acquire))
		return f;
	san_sock_fd_put(f);
	return NULL;
}

static inline void
san_sock_switch_unpin_at(struct fd_sock **f)
{
	san_sock_owner_unpin(*f);
}

/**
 * Result of *call*, by which the kernel serves *pinned*. It is unpinned afterwards, also if the
 * thread is cancelled.
 */
#define BY_KERNEL(pinned, call)                                                                \
	({                                                                                     \
		__attribute__((                                                                \
			cleanup(san_sock_switch_unpin_at))) struct fd_sock *until_ = (pinned); \
		(call);                                                                        \
	})

#endif /* SOCK_SWITCH_H */
