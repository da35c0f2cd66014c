/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_PRIV_H
#define SOCK_PRIV_H

/** @file What the files of this folder share. (UDP-6) */

#include "sock.h"

#define SOCK_NONE UINT32_MAX

#define SOCK_SENDS 4 /* of a stream, under way */

/** Of one that is a stream. */
struct sock_stream {
	uint32_t qp;        /**< SAN_QPN_NONE: it is none */
	uint32_t tx_posted; /**< between tx_head and the ring's tail */
	uint32_t first, nb_sends;
	uint32_t len[SOCK_SENDS]; /**< of what is under way; 0: it is not from the ring */
	uint32_t nb_patience;     /**< of the shared memory, when it was last looked at */
	bool has_aside;           /**< is under way */
	bool is_up;
	bool is_over;      /**< nothing is sent any more */
	bool has_recv;     /**< is posted */
	bool has_fin;      /**< nothing comes any more */
	bool fin_told;     /**< the kernel knows, of that or of shutdown() */
	bool shut_posted;  /**< our end is */
	bool shut_done;    /**< the peer has it */
	bool is_abandoned; /**< see san_sock_shut() */
};

struct sock {
	struct san_sock_shm *shm; /**< NULL: free */
	uint8_t *rx, *tx;         /**< rings */
	uint32_t rx_mask, tx_mask;
	uint32_t rx_base;
	uint32_t rx_tail, tx_head; /**< ours: what is in *shm* is a copy for the others */
	uint32_t next;             /**< of its port's, or of the free ones */
	uint32_t wake_next;        /**< of those to be woken */
	uint32_t work_next;        /**< of those that rang */
	int wake_fd;
	bool is_woken, is_work; /**< is one of them */
	bool is_named;
	bool is_broken; /**< wrote what nobody may: its sending is over */
	uint32_t nb_groups;
	struct san_ip groups[SAN_SOCK_GROUPS];
	struct san_sock_names names;
	uint64_t nb_tx_named; /**< of what was sent: before it had these */
	struct san_sock_stats stats;
	struct sock_stream stream;
};

struct san_socks {
	struct san_mem *mem;
	uint32_t max, nb;
	uint32_t if_index;
	uint32_t free_head;
	uint32_t wake_head;
	uint32_t work_head, work_tail;
	struct san_sock_work work;
	bool has_room;   /**< one that was full has, and nobody has been told */
	uint32_t *ports; /**< of each local port: the socket that was named last */
	struct sock *socks;
};

/* ---- sock_find.c ---- */

void san_sock_link(struct san_socks *all, struct sock *s);
void san_sock_unlink(struct san_socks *all, struct sock *s);
/** Whose a datagram to one address is; NULL: nobody's. */
struct sock *san_sock_find(struct san_socks *all, const struct san_inet_dgram *d);
/** Of those that get one to a group, that behind *s*, or the first behind NULL. */
struct sock *san_sock_next(struct san_socks *all, const struct san_inet_dgram *d, struct sock *s);

/** No address in particular. */
bool san_sock_is_any(const struct san_ip *ip);

static inline bool
san_sock_is_stream(const struct sock *s)
{
	return s->stream.qp != SAN_QPN_NONE;
}

/* ---- sock_stream.c ---- */

/** Its program rang. */
void san_sock_stream_visit(struct san_socks *all, struct sock *s, uint64_t now_ns);

/* ---- sock.c ---- */

/**
 * It is readable, or has an error: somebody may wait in the kernel. *is_new*: by what has just
 * come, of which the kernel would tell also those that have not read what came before.
 */
void san_sock_mirror(struct san_socks *all, struct sock *s, bool is_new);
/** What it sends has gone: if somebody waits for room and there is enough, he is told. */
void san_sock_room(struct san_socks *all, struct sock *s);

#endif /* SOCK_PRIV_H */
