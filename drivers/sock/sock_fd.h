/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_FD_H
#define SOCK_FD_H

/**
 * @file
 * Which of the process's descriptors are sockets that are carried, or may come to be. No lock and
 * no allocation: all of this may happen in a signal handler. What a child of vfork() does to its
 * descriptors, in our memory, is not done to ours. (UDP-1, UDP-7)
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "san_spin.h"
#include "sock_shm.h"
#include "sock_touch.h"

#define SOCK_FDS   65536 /**< descriptors from there on are the kernel's alone */
#define SOCK_FILES 16384
#define SOCK_SETS  4 /**< epoll sets that a socket may be in before it is carried */
#define SOCK_EARLY 4 /**< ... and groups */

/** An epoll set that has it. */
struct sock_set {
	int epfd; /**< -1: none */
	int fd;
	uint32_t events;
	uint64_t data;
};

/** A socket, which may have several descriptors. */
struct sock_file {
	_Atomic uint32_t refs; /**< descriptors, and calls that are under way; 0: free */
	_Atomic bool carried;
	_Atomic bool is_chosen;  /**< rules have been asked: to send does not ask them again */
	_Atomic bool is_kernels; /**< by the name that it has: it is not looked at again */
	_Atomic bool stays;      /**< by an option: see sock_hooks_is_kernels() */
	int domain;
	bool is_udp;              /**< or TCP */
	bool is_stdio;            /**< inherited: who has not the library may write, too */
	struct san_sock_shm *shm; /**< once it is carried */
	size_t bytes;
	uint32_t id, rx_bytes, tx_bytes; /**< as they were then: others may write there */
	_Atomic int kernel;              /**< the kernel's own; -1: not yet */
	_Atomic int lease;               /**< of a listener that the daemon knows; or -1 */
	_Atomic uint32_t item;           /**< in an epoll set: sock_eset.c; or 0 */
	uint32_t line;                   /**< it has a successor's, too: sock_return() */
	_Atomic int64_t retry_s;         /**< a new daemon is asked from then on; 0: not */
	uint64_t last_ns;                /**< when the last datagram came, by the lcore's clock */
	struct san_spin rx_spin, tx_spin;
	uint32_t nb_empty;     /**< reads that found nothing, roughly */
	uint32_t nb_refused;   /**< writes that found no room */
	uint32_t nb_errors;    /**< errors that were taken */
	_Atomic uint32_t pins; /**< calls that the kernel serves: sock_owner.c */
	_Atomic int gate[2];   /**< likewise; or -1 */
	struct sock_set sets[SOCK_SETS];
	_Atomic uint32_t nb_early;
	uint8_t early[SOCK_EARLY][16];
};

/**
 * Told of each descriptor, of *f* or (NULL) of something else, that is not that any more; the
 * reference is still there.
 */
extern void (*sock_fd_leaves)(int fd, struct sock_file *f);

/** From now on *f* is one. */
static inline void
sock_set_carried(struct sock_file *f)
{
	atomic_store_explicit(&f->carried, true, memory_order_release);
}

/** The process begins, or goes on as a child of what it was. */
void sock_fd_begin(void);
/** ... in which other threads' references are nobody's; *hold* takes those that are not ours. */
void sock_fd_recount(void (*hold)(void));
/** Or a child of vfork(), or of a clone() that nobody told us of, in our memory. */
bool sock_is_us(void);
/** What *fd* is, if we know it, and not to go before sock_put(); or NULL. */
struct sock_file *sock_get(int fd);
void sock_put(struct sock_file *f);
/** One more reference to what one has. */
static inline void
sock_hold(struct sock_file *f)
{
	atomic_fetch_add(&f->refs, 1);
}
/** A socket of the kernel's is at *fd*: it may come to be carried. */
void sock_track(int fd, int domain, bool is_udp);
/** ... which stands for *f* from now on. */
void sock_succeed(int fd, const struct sock_file *f);
/** *to*, which the kernel has just made or made anew, is what *from* is. */
void sock_dup(int from, int to);
/** The kernel gave *fd* to something else, or closed it. */
void sock_forget(int fd);
/** All from *first* to *last*. */
void sock_forget_range(unsigned int first, unsigned int last);
/**
 * A number of *f* for a call that began with *fd*, which another thread may have closed meanwhile,
 * or have made something else. -1: it has none any more.
 */
int sock_number(int fd, const struct sock_file *f);
/** The next descriptor of *f* from *fd* on, or -1. */
int sock_next_fd(const struct sock_file *f, int fd);

#endif /* SOCK_FD_H */
