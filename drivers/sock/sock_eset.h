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
	int fd;
	uint16_t next, prev; /**< in its set */
	uint8_t set;
	uint32_t known; /**< events that the kernel was told of */
	bool is_out;    /**< it was taken out, which the kernel does not know */
	bool is_armed;  /**< and in no group */
};

struct sock_eset {
	struct san_sock_lock lock;
	int epfd;            /**< a descriptor of it */
	uint32_t nb_fds, nb; /**< descriptors of it, items; no descriptor: free */
	uint16_t first;
	uint16_t head;             /**< of its group */
	_Atomic bool is_waited;    /**< somebody sleeps in it, alone */
	_Atomic bool is_everybody; /**< for good: see above */
};

/** The set at *epfd*; NULL: it has nothing of ours. */
struct sock_eset *sock_eset_of(int epfd);
/** Under its lock: number *number* of it, or NULL. */
struct sock_eitem *sock_eset_item(const struct sock_eset *s, uint32_t number);
uint16_t sock_eset_number(const struct sock_eitem *it);
/** Each item *it* of *s*, in a for statement. */
#define SOCK_ESET_EACH(s, it)                 \
	(it) = sock_eset_item(s, (s)->first); \
	(it) != NULL;                         \
	(it) = sock_eset_item(s, (it)->next)
/** The next one to be looked at. */
void sock_eset_first(struct sock_eset *s, struct sock_eitem *it);
/** What the kernel says in place of a program's data; its lower 16 bits are the number. */
bool sock_eset_is_cookie(uint64_t data);
/** From now on the first one that becomes readable wakes who waits; and no longer. */
void sock_eset_fall_asleep(const struct sock_eset *s);
void sock_eset_wake(struct sock_eset *s);
/** The kernel hears what was changed. */
void sock_eset_tell_kernel(struct sock_eset *s);
/** For good: the kernel is told of each, and waits. */
void sock_eset_be_everybody(struct sock_eset *s);

#endif /* SOCK_ESET_H */
