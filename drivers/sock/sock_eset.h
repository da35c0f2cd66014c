/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_ESET_H
#define SOCK_ESET_H

/** @file Carried sockets in epoll sets: what sock_epoll.c waits for. (UDP-6) */

#include <sys/epoll.h>

#include "sock_fd.h"
#include "sock_lock.h"

/** A socket in a set. Numbers of items are from 1 on; 0: none. */
struct sock_eitem {
	_Atomic(struct sock_file *) f; /**< NULL: free; else the reference is the item's */
	uint64_t data;
	uint32_t events;
	uint32_t known; /**< events that the kernel was told of */
	int fd;
	uint16_t next, prev; /**< in its set, of which the last one comes before the first */
	uint8_t set;
	bool is_out;   /**< it was taken out, which the kernel does not know */
	bool is_armed; /**< who sleeps is told of it */
	bool is_off;   /**< EPOLLONESHOT: it was told */
	/* with EPOLLET: what there was when it was looked at last */
	bool is_new; /**< nothing: whatever there is is an edge */
	bool had_room;
	uint32_t rx_tail, ends, nb_refused, nb_errors;
};

/** A set that is ours: sock_eset.c says which are. */
struct sock_eset {
	struct san_sock_lock lock;
	int epfd;
	uint32_t nb;
	struct san_spin spin;
	uint16_t first;           /**< of its items: the next one to be looked at */
	uint16_t late;            /**< calls since the kernel was asked, whatever there is */
	uint32_t thread;          /**< who waits in it; 0: nobody yet */
	bool is_asleep;           /**< and sleeps */
	bool is_parents;          /**< of the process that we are a child of, too */
	_Atomic uint8_t *is_used; /**< by a child: in memory that it has, too */
};

/** The set at *epfd*; NULL: it is the kernel's, as far as we know, or nobody has used it yet. */
struct sock_eset *sock_eset_of(int epfd);
/** Under its lock: number *number* of it, or NULL. */
struct sock_eitem *sock_eset_item(const struct sock_eset *s, uint32_t number);
/** What the kernel says in place of a program's data; its lower 16 bits are the number. */
bool sock_eset_is_cookie(uint64_t data);
/** Under its lock, of one with EPOLLET: has something come since this was asked last? */
bool sock_eset_has_edge(struct sock_eitem *it);
/** Who sleeps is told of all of them from now on, or no longer. */
void sock_eset_arm(struct sock_eset *s, bool is_asleep);
/** The kernel hears what was changed. */
void sock_eset_tell_kernel(struct sock_eset *s);
/** Must it be given to the kernel, because it is our parent's or a child of ours uses it? */
static inline bool
sock_eset_is_shared(const struct sock_eset *s)
{
	return s->is_parents || atomic_load_explicit(s->is_used, memory_order_relaxed) != 0;
}

/** The set at *epfd*, which becomes ours now if nothing is known of it; NULL: the kernel's. */
struct sock_eset *sock_eset_make(int epfd);
/** For good: the kernel has it, and is told of each socket that becomes readable. */
void sock_eset_give(struct sock_eset *s);

#endif /* SOCK_ESET_H */
