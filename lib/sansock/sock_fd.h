/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Table of the process's descriptors that are, or may become, carried sockets. No locks and no
 * allocations: all of it may run in a signal handler. A child of vfork() runs in our memory; what
 * it does to its descriptors does not change the table. (UDP-1, UDP-7)
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "san_spin.h"
#include "sock_shm.h"

#define SOCK_FDS    65536 /**< higher descriptors are left to the kernel */
#define SOCK_FILES  16384
#define SOCK_SETS   4 /**< epoll sets of a socket before it is carried */
#define SOCK_GROUPS 4 /**< its groups before it is carried */

/** An epoll set that has the socket. */
struct sock_set {
	int epfd; /**< -1: none */
	int fd;
	uint32_t events;
	uint64_t data;
};

/** A socket, which may have several descriptors. */
struct fd_sock {
	_Atomic uint32_t refs; /**< descriptors, and calls in progress; 0: free */
	_Atomic bool carried;
	_Atomic bool is_chosen;  /**< the rules were evaluated: sending does not do it again */
	_Atomic bool is_kernels; /**< the kernel's, and no rule can refuse what it sends */
	_Atomic bool stays;      /**< with the kernel for good: see san_sock_carry_stay() */
	int domain;
	bool is_udp;              /**< otherwise TCP */
	bool is_stdio;            /**< inherited: programs without the library may write, too */
	struct san_sock_shm *shm; /**< set when it is carried */
	size_t bytes;
	uint32_t id, rx_bytes, tx_bytes; /**< copies: other programs can write to *shm* */
	_Atomic int kernel;              /**< the kernel's socket; -1: not known yet */
	_Atomic int lease;               /**< of a listener that the daemon knows; or -1 */
	_Atomic bool is_foreign;         /**< another process's listener: no lease yet */
	_Atomic bool waits;              /**< the daemon knows that a program waits for it */
	_Atomic uint32_t item;           /**< number in an epoll set: sock_eset.c; 0: none */
	uint32_t line;                   /**< the same for its successor: san_sock_carry_return() */
	_Atomic int64_t retry_s;         /**< offer it to a new daemon then; 0: do not */
	uint32_t place;                  /**< history of its peer plus 1; 0: not our connection */
	uint32_t nb_calls;               /**< that used it, approximately */
	uint64_t last_ns;                /**< arrival of the last datagram, by the lcore's clock */
	struct san_spin rx_spin, tx_spin;
	_Atomic int64_t checked_ns; /**< when the daemon's end was last looked at */
	uint32_t nb_empty;          /**< reads that found nothing, approximately */
	uint32_t nb_refused;        /**< writes that found no room */
	uint32_t nb_errors;         /**< errors that calls have returned */
	_Atomic uint32_t pins;      /**< calls that the kernel serves: sock_owner.c */
	_Atomic int gate[2];        /**< see sock_priv.h; or -1 */
	struct sock_set sets[SOCK_SETS];
	_Atomic uint32_t nb_groups;
	uint8_t groups[SOCK_GROUPS][16];
};

/**
 * Called for each descriptor, of *f* or (NULL) of something else, that is closed or replaced,
 * before the reference is released.
 */
extern void (*sock_fd_leaves)(int fd, struct fd_sock *f);

/** Mark *f* as carried: its memory may be used from now on. */
static inline void
san_sock_fd_set_carried(struct fd_sock *f)
{
	atomic_store_explicit(&f->carried, true, memory_order_release);
}

/** The process has started, or is a new child. */
void san_sock_fd_begin(void);
/** In a child: drop the references of other threads; *hold* takes those of other tables. */
void san_sock_fd_recount(void (*hold)(void));
/** False in a child of vfork(), or of an unseen clone() that shares our memory. */
bool san_sock_fd_is_us(void);
/** The file at *fd*, with a reference that san_sock_fd_put() releases; NULL: not known. */
struct fd_sock *san_sock_fd_get(int fd);
void san_sock_fd_put(struct fd_sock *f);
static inline void
san_sock_fd_put_at(struct fd_sock **f)
{
	if (*f != NULL)
		san_sock_fd_put(*f);
}
/** Of a variable, before its type: its reference is released where its block ends. */
#define HELD __attribute__((cleanup(san_sock_fd_put_at)))
/** Take another reference to a file that the caller has. */
static inline void
san_sock_fd_hold(struct fd_sock *f)
{
	atomic_fetch_add(&f->refs, 1);
}
/** *fd* is a new socket of the kernel, which may come to be carried. *before*: it succeeds that. */
void san_sock_fd_track(int fd, int domain, bool is_udp, const struct fd_sock *before);
/** The kernel has made *to* a duplicate of *from*. */
void san_sock_fd_dup(int from, int to);
/** *fd* was closed, or is something else now. */
void san_sock_fd_forget(int fd);
/** All descriptors from *first* to *last*. */
void san_sock_fd_forget_range(unsigned int first, unsigned int last);
/**
 * A descriptor of *f* for a call that began with *fd*, which another thread may have closed or
 * replaced meanwhile. -1: none is left.
 */
int san_sock_fd_number(int fd, const struct fd_sock *f);
/** The next descriptor of *f* from *fd* on; -1: none. */
int san_sock_fd_next(const struct fd_sock *f, int fd);
