/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file Shared by the files of this folder. (UDP-6) */

#include <sys/queue.h>

#include "san_pool.h"
#include "sock.h"

#define SOCK_NONE UINT32_MAX

#define SOCK_SENDS 4 /* sends of a stream in flight at most */

/** State of a socket that is a stream. */
struct sock_stream {
	uint32_t qp;        /**< SAN_QPN_NONE: the socket is not a stream */
	uint32_t tx_posted; /**< position up to which sends are posted */
	uint32_t first, nb_sends;
	/** ring bytes of each send in flight; 0: san_sock_stream_append() */
	uint32_t len[SOCK_SENDS];
	uint32_t nb_timeout_changes; /**< nb_timeout_changes of the shared memory, as last seen */
	bool has_appended;           /**< a send of san_sock_stream_append() is in flight */
	bool is_up;
	bool is_over;      /**< nothing is sent any more */
	bool has_recv;     /**< a receive is posted */
	bool has_fin;      /**< nothing is received any more */
	bool fin_notified; /**< the kernel reports the end, or shutdown() */
	bool shut_posted;  /**< our end of the stream is posted */
	bool shut_done;    /**< ... and the peer has it */
	bool is_abandoned; /**< see san_sock_stream_shut() */
};

struct san_sock {
	struct san_sock_shm *shm; /**< NULL: free */
	uint8_t *rx, *tx;         /**< rings */
	uint32_t rx_mask, tx_mask;
	uint32_t rx_base;
	uint32_t rx_tail, tx_head; /**< authoritative; those in *shm* are copies for programs */
	uint32_t next;             /**< of the sockets of its port, if names.port is not 0 */
	int wake_fd;
	bool is_woken, is_work;          /**< is in the list */
	LIST_ENTRY(san_sock) wake_link;  /**< sockets to wake */
	TAILQ_ENTRY(san_sock) work_link; /**< sockets that notified */
	bool is_broken;                  /**< its program wrote what is invalid: nothing is sent */
	uint32_t nb_groups;
	struct san_ip groups[SAN_SOCK_GROUPS];
	struct san_sock_names names;
	uint64_t nb_tx_named; /**< nb_tx when it got these names */
	struct san_sock_stats stats;
	struct sock_stream stream;
};

struct san_socks {
	struct san_mem *mem;
	uint32_t max;
	uint32_t if_index;
	struct san_pool free;
	LIST_HEAD(, san_sock) woken;
	TAILQ_HEAD(sock_works, san_sock) works;
	struct san_sock_work work;
	bool has_room;   /**< a send ring that was full has room, which is not reported yet */
	uint32_t *ports; /**< for each local port, the socket that was named last */
	struct san_sock *socks;
};

static inline uint32_t
san_sock_id(const struct san_socks *all, const struct san_sock *s)
{
	return (uint32_t)(s - all->socks);
}

static inline bool
san_sock_is_stream(const struct san_sock *s)
{
	return s->stream.qp != SAN_QPN_NONE;
}

/* ---- sock_find.c ---- */

void san_sock_find_link(struct san_socks *all, struct san_sock *s);
void san_sock_find_unlink(struct san_socks *all, struct san_sock *s);
/** The socket of a datagram to one address; NULL: none. */
struct san_sock *san_sock_find(struct san_socks *all, const struct san_inet_dgram *d);
/** Of the sockets that receive *d*, sent to a group, the one behind *s*; the first if NULL. */
struct san_sock *san_sock_find_next(struct san_socks *all, const struct san_inet_dgram *d,
				    struct san_sock *s);

/* ---- sock_stream.c ---- */

/** Serve a stream whose program has notified. */
void san_sock_stream_visit(struct san_socks *all, struct san_sock *s, uint64_t now_ns);

/* ---- sock.c ---- */

/**
 * The socket is readable or has an error: notify a thread that waits in the kernel. *is_new*: new
 * data is the reason. With EPOLLET the kernel reports it even if older data is unread.
 */
void san_sock_mirror(struct san_socks *all, struct san_sock *s, bool is_new);
/** The program may have begun to wait while something was unread: report it again. */
void san_sock_mirror_again(struct san_socks *all, struct san_sock *s);
/** Data was sent: if a thread waits for room and there is enough, report it. */
void san_sock_on_room(struct san_socks *all, struct san_sock *s);
