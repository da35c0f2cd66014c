/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_SWITCH_H
#define SOCK_SWITCH_H

/** @file What the functions that programs call have in common. (UDP-1) */

#include "sock_owner.h"

#define EXPORT __attribute__((visibility("default")))

/**
 * *f*, to which the caller has a reference, if the daemon serves it. NULL: the kernel does, and
 * *pinned* is *f*, unless it is the kernel's for good.
 */
static inline struct sock_file *
pin(struct sock_file *f, struct sock_file **pinned)
{
	*pinned = NULL;
	if (atomic_load_explicit(&f->carried, memory_order_acquire))
		return f;
	if (atomic_load_explicit(&f->stays, memory_order_relaxed))
		sock_put(f);
	else if (!sock_pin(f))
		return f;
	else
		*pinned = f;
	return NULL;
}

/**
 * The carried socket at *fd*, to be given back. NULL: the kernel serves it, by BY_KERNEL(*pinned*),
 * which may be NULL, too.
 */
static inline struct sock_file *
carried(int fd, struct sock_file **pinned)
{
	struct sock_file *f = sock_get(fd);

	if (__builtin_expect(f != NULL, 0))
		return pin(f, pinned);
	*pinned = NULL;
	return NULL;
}

/** The carried socket at *fd*, to be given back; or NULL, and it may come to be one meanwhile. */
static inline struct sock_file *
carried_now(int fd)
{
	struct sock_file *f = sock_get(fd);

	if (__builtin_expect(f == NULL, 1) ||
	    atomic_load_explicit(&f->carried, memory_order_acquire))
		return f;
	sock_put(f);
	return NULL;
}

static inline void
sock_unpin_at(struct sock_file **f)
{
	sock_unpin(*f);
}

/** The result of *call*, by which the kernel serves what is *pinned*; also if it is cancelled. */
#define BY_KERNEL(pinned, call)                                                              \
	({                                                                                   \
		__attribute__((cleanup(sock_unpin_at))) struct sock_file *until_ = (pinned); \
		(call);                                                                      \
	})

#endif /* SOCK_SWITCH_H */
