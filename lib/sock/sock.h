/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_H
#define SOCK_H

/**
 * @file
 * Carried sockets, as their lcore sees them: which of them a datagram is for, and datagrams
 * between the rings that programs see (sock_shm.h) and the link (inet.h); bytes of streams between
 * rings and queue pairs. Sans-I/O. (UDP-6, AFC-1)
 *
 * What a socket is called, who may call it that, and which of several gets what comes, the kernel
 * has decided before: behind each stands a socket of its own that is bound and connected.
 */

#include <stdbool.h>
#include <stdint.h>

#include "inet.h"
#include "san_mem.h"
#include "san_wr.h"
#include "sock_shm.h"

#define SAN_SOCK_GROUPS 20 /**< of a socket: as many as the kernel allows */

/** May what it sends go in fragments? */
enum san_sock_df {
	SAN_SOCK_DF_NONE = 0,
	SAN_SOCK_DF,       /**< no */
	SAN_SOCK_DF_PROBE, /**< nor if the path is known to take less */
};

/** What the kernel says of a socket. */
struct san_sock_names {
	struct san_ip local, peer; /**< all zero: any */
	uint16_t port, peer_port;  /**< host byte order; peer_port 0: not connected */
	uint16_t family;           /**< AF_INET, AF_INET6 */
	bool v6only;
	bool reuseport; /**< shares what comes with others that are named alike */
	uint32_t user;  /**< ... and are of the same user */
	uint8_t hops, tos;
	uint8_t df; /**< enum san_sock_df */
};

struct san_sock_stats {
	uint64_t nb_rx, nb_rx_bytes, nb_tx, nb_tx_bytes;
	uint64_t nb_rx_full; /**< no room in its ring */
	uint64_t nb_tx_bad;  /**< could not be sent: its program has the error */
};

/** How long a silence of its peer a stream bears. */
struct san_sock_patience {
	uint32_t timeout_ms;        /**< with data under way */
	uint32_t idle_ms, every_ms; /**< without: until a probe, and the next one; 0: none goes */
	uint8_t probes;             /**< that stay unanswered at most; 0: for ever */
};

/** Where streams post their work: see core.h. */
struct san_sock_work {
	uint32_t (*post)(void *arg, uint32_t qp, const struct san_ulp_wr *wr, uint32_t n,
			 uint64_t now_ns);
	uint32_t (*post_recv)(void *arg, uint32_t qp, const struct san_ulp_recv *r, uint32_t n,
			      uint64_t now_ns);
	void (*set_patience)(void *arg, uint32_t qp, const struct san_sock_patience *p,
			     uint64_t now_ns);
	void *arg;
};

struct san_socks;

/** For *max* sockets, below SAN_BELLS_MAX, in *mem*. -ENOMEM. */
int san_socks_create(struct san_mem *mem, uint32_t max, struct san_socks **out);
/** The kernel's device behind the link, which programs may ask for; 0: none. */
void san_socks_set_device(struct san_socks *all, uint32_t if_index);
void san_socks_destroy(struct san_socks *all);
uint32_t san_socks_nb(const struct san_socks *all);

/**
 * A socket in *shm*, which the caller has made, of zeros but for its constants, and which is his.
 *
 * @param wake_fd
 *   Our end of the pair: san_sock_rung() returns it.
 * @return
 *   0, -ENOSPC.
 */
int san_sock_add(struct san_socks *all, struct san_sock_shm *shm, uint32_t rx_bytes,
		 uint32_t tx_bytes, int wake_fd, uint32_t *id);
/** Its memory is not touched any more. */
void san_sock_del(struct san_socks *all, uint32_t id);
/** It gets what is sent to *group*, and to groups that it is in alone. -EADDRINUSE, -ENOBUFS. */
int san_sock_join(struct san_socks *all, uint32_t id, const struct san_ip *group);
/** -EADDRNOTAVAIL: it is not in it. */
int san_sock_leave(struct san_socks *all, uint32_t id, const struct san_ip *group);
/** Group number *i* of those that it is in; NULL: there are no more. */
const struct san_ip *san_sock_group(const struct san_socks *all, uint32_t id, uint32_t i);
/** Named, or named anew. */
void san_sock_name(struct san_socks *all, uint32_t id, const struct san_sock_names *names);
const struct san_sock_names *san_sock_names(const struct san_socks *all, uint32_t id);
const struct san_sock_stats *san_sock_stats(const struct san_socks *all, uint32_t id);

/** A datagram, of *len* bytes in pieces: who gets it? Their number; a group's may be many. */
uint32_t san_sock_rx(struct san_socks *all, const struct san_inet_result *r, uint64_t now_ns);
/** One that came another way, for socket *id*. */
void san_sock_give(struct san_socks *all, uint32_t id, const struct san_inet_dgram *d,
		   uint32_t if_index, const void *data, uint32_t len, uint64_t now_ns);
/** Is it connected, and does its peer get what it sends by the link? Then so come errors. */
bool san_sock_asks_link(const struct san_socks *all, uint32_t id);
/** The next call of its program fails with *err*. */
void san_sock_fail(struct san_socks *all, uint32_t id, int err);
/* ---- streams: sock_stream.c ---- */

/** For all of them, before the first one. */
void san_socks_set_work(struct san_socks *all, const struct san_sock_work *work);
/** Socket *id* is a stream: it has queue pair *qp*, which is connected or connects. */
void san_sock_stream(struct san_socks *all, uint32_t id, uint32_t qp);
/** It is connected. */
void san_sock_up(struct san_socks *all, uint32_t id, uint64_t now_ns);
/** It never was: *err* is what its program hears. */
void san_sock_over(struct san_socks *all, uint32_t id, int err);
/** Work of its queue pair is complete. */
void san_sock_done(struct san_socks *all, uint32_t id, const struct san_ulp_wc *wc,
		   uint64_t now_ns);
/** Nobody has it any more: what is in its ring goes, then its end. */
void san_sock_shut(struct san_socks *all, uint32_t id);
/** May bytes go that are not in the ring, behind those that are there now? */
bool san_sock_may_aside(const struct san_socks *all, uint32_t id);
/** Then they go: up to SAN_SOCK_ASIDE of them. */
void san_sock_aside(struct san_socks *all, uint32_t id, const void *data, uint32_t len,
		    uint64_t now_ns);
/** Nothing goes any more: it was refused, or its connection has ended. */
bool san_sock_is_over(const struct san_socks *all, uint32_t id);
/**
 * The stream has taken all that was sent, and the end; or it can't any more. The peer has it when
 * san_stream_is_drained() says so.
 */
bool san_sock_is_drained(const struct san_socks *all, uint32_t id);
/** Closed now, is it reset? It has received what nobody has read, or SO_LINGER without time. */
bool san_sock_is_reset(const struct san_socks *all, uint32_t id);

/* ---- */

/**
 * Somebody reports that a datagram could not be delivered. False: no socket of ours can have
 * sent it.
 */
bool san_sock_error(struct san_socks *all, const struct san_inet_result *r);
/** The program of *id* rang: its ring is looked at by the next san_socks_pump(). */
void san_sock_ring(struct san_socks *all, uint32_t id);
/** Likewise of each: a program that rang has gone, and its bells with it. */
void san_socks_ring(struct san_socks *all);
/** Send what there is in rings of those that rang, in turns, as long as *in* has room. */
void san_socks_pump(struct san_socks *all, struct san_inet *in, uint64_t now_ns);
/** Is its ring to send empty, or of no use? */
bool san_sock_has_sent(const struct san_socks *all, uint32_t id);
/** Is something left to send? */
bool san_socks_has_work(const struct san_socks *all);
/** Has a ring to send that was full got room? Said once; and rarely not at all. */
bool san_socks_has_room(struct san_socks *all);
/**
 * Our end of the pair of a socket that has become readable for who waits in the kernel; -1: no
 * more of them. To be sent a byte; or if it *ends*, to be shut down for sending.
 */
int san_sock_rung(struct san_socks *all, bool *ends);

#endif /* SOCK_H */
