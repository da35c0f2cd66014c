/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_SWITCH_H
#define SOCK_SWITCH_H

/** @file What the functions that programs call have in common. (UDP-1) */

#include "sock_fd.h"

#define EXPORT __attribute__((visibility("default")))

/** The carried socket at *fd*, to be given back; or NULL. */
static inline struct sock_file *
carried(int fd)
{
	struct sock_file *f = sock_get(fd);

	if (__builtin_expect(f == NULL, 1) ||
	    atomic_load_explicit(&f->carried, memory_order_acquire))
		return f;
	sock_put(f);
	return NULL;
}

/** Likewise one that is, or comes to be with what is sent. */
static inline struct sock_file *
ours(int fd)
{
	struct sock_file *f = sock_get(fd);

	if (__builtin_expect(f == NULL, 1) || f->is_udp ||
	    atomic_load_explicit(&f->carried, memory_order_acquire))
		return f;
	sock_put(f);
	return NULL;
}

/** Likewise, but one that may still come to be. */
static inline struct sock_file *
sender(int fd)
{
	struct sock_file *f = ours(fd);

	if (f == NULL || atomic_load_explicit(&f->carried, memory_order_acquire) ||
	    !atomic_load_explicit(&f->is_kernels, memory_order_relaxed))
		return f;
	sock_put(f);
	return NULL;
}

/**
 * A call is about to wait for what the kernel has of *fd*. A socket that may come to be carried
 * does not meanwhile: what comes then would come elsewhere.
 */
static inline struct sock_file *
sock_begin_wait(int fd)
{
	struct sock_file *f = sock_get(fd);

	if (__builtin_expect(f == NULL, 1))
		return NULL;
	if (f->is_udp && !atomic_load_explicit(&f->is_kernels, memory_order_relaxed)) {
		atomic_fetch_add(&f->nb_waits, 1);
		return f;
	}
	sock_put(f);
	return NULL;
}

static inline void
sock_end_wait(struct sock_file *f)
{
	if (__builtin_expect(f == NULL, 1))
		return;
	atomic_fetch_sub(&f->nb_waits, 1);
	sock_put(f);
}

/** The result of *call*, by which the kernel is asked for what *fd* has. */
#define BY_KERNEL(fd, call)                                      \
	({                                                       \
		struct sock_file *waited_ = sock_begin_wait(fd); \
		__typeof__(call) result_ = (call);               \
		sock_end_wait(waited_);                          \
		result_;                                         \
	})

#endif /* SOCK_SWITCH_H */
