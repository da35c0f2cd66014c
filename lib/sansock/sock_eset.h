/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_ESET_H
#define SOCK_ESET_H

/** @file Carried sockets in epoll sets, for sock_epoll.c. (UDP-6) */

#include <sys/epoll.h>

#include "sock_fd.h"
#include "sock_lock.h"

/** A socket in a set. Items are numbered from 1; 0: none. */
struct sock_eitem {
	_Atomic(struct fd_sock *) f; /**< NULL: free; otherwise the item has a reference */
	uint64_t data;
	uint32_t events;
	uint32_t known; /**< events in the kernel's set */
	int fd;
	uint16_t next, prev; /**< of a ring of the set's items */
	uint8_t set;
	bool is_out;   /**< removed, but still in the kernel's set */
	bool is_armed; /**< counted in *armed* of the socket */
	bool is_off;   /**< EPOLLONESHOT: it was reported */
	/* EPOLLET: state of the socket when it was last checked */
	bool is_new; /**< not checked yet: every event counts as an edge */
	bool had_room;
	uint32_t rx_tail, ends, nb_refused, nb_errors;
};

/** A set of this process; sock_eset.c has the rules. */
struct sock_eset {
	struct san_sock_lock lock;
	int epfd;
	uint32_t nb;
	struct san_spin spin;
	uint16_t first;           /**< the item that is checked next */
	uint16_t late;            /**< calls since the kernel was last asked */
	uint32_t thread;          /**< the thread that waits; 0: none yet */
	bool is_asleep;           /**< that thread sleeps */
	bool is_parents;          /**< the parent process also has the set */
	_Atomic uint8_t *is_used; /**< set by a child that uses it; in shared memory */
};

/** The set at *epfd*; NULL: it is the kernel's, or has no carried sockets yet. */
struct sock_eset *san_sock_eset_of(int epfd);
/** Under the lock of *s*: its item *number*, or NULL. */
struct sock_eitem *san_sock_eset_item(const struct sock_eset *s, uint32_t number);
/** Whether an event's data is a cookie. Its lower 16 bits are the number of an item. */
bool san_sock_eset_is_cookie(uint64_t data);
/** Under the lock, for EPOLLET: whether the socket has changed since the last call. */
bool san_sock_eset_has_edge(struct sock_eitem *it);
/** Arm all sockets of the set, before its thread sleeps, or disarm them. */
void san_sock_eset_arm(struct sock_eset *s, bool is_asleep);
/** Pass changes by epoll_ctl() to the kernel. */
void san_sock_eset_sync(struct sock_eset *s);
/** Whether the set must be given to the kernel: the parent has it, or a child uses it. */
static inline bool
san_sock_eset_is_shared(const struct sock_eset *s)
{
	return s->is_parents || atomic_load_explicit(s->is_used, memory_order_relaxed) != 0;
}

/** The set at *epfd*, which becomes ours now if it is new; NULL: the kernel's. */
struct sock_eset *san_sock_eset_make(int epfd);
/** Give the set to the kernel for good. Its sockets stay armed. */
void san_sock_eset_give(struct sock_eset *s);

#endif /* SOCK_ESET_H */
