/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Carried sockets, as their lcore sees them. It finds the socket of a datagram, moves datagrams
 * between the rings that programs see (sock_shm.h) and the link (inet.h), and moves bytes of
 * streams between rings and queue pairs. Sans-I/O. (UDP-6, AFC-1)
 *
 * Each carried socket has a socket of the kernel behind it, which is bound and connected. So the
 * kernel decides which name a socket has, which program may use that name, and which of several
 * sockets receives a datagram.
 */

#include <stdbool.h>
#include <stdint.h>

#include "inet.h"
#include "san_mem.h"
#include "san_wr.h"
#include "sock_shm.h"

#define SAN_SOCK_GROUPS 20 /**< groups of a socket at most: the kernel's limit */

/** Whether datagrams that the socket sends may be fragmented. */
enum san_sock_df {
	SAN_SOCK_DF_NONE = 0,
	SAN_SOCK_DF,       /**< no */
	SAN_SOCK_DF_PROBE, /**< no, and the known path MTU does not limit their length */
};

/** Names and options of the kernel's socket. */
struct san_sock_names {
	struct san_ip local, peer; /**< all zero: any */
	uint16_t port, peer_port;  /**< host byte order; peer_port 0: not connected */
	uint16_t family;           /**< AF_INET, AF_INET6 */
	bool v6only;
	bool reuseport; /**< shares datagrams with other sockets of the same name */
	uint32_t user;  /**< ... and of the same user */
	uint8_t hops, tos;
	uint8_t df; /**< enum san_sock_df */
};

struct san_sock_stats {
	uint64_t nb_rx, nb_rx_bytes, nb_tx, nb_tx_bytes;
	uint64_t nb_rx_full; /**< datagrams without room in its ring */
};

/** How long a stream tolerates silence of its peer. */
struct san_sock_timeouts {
	uint32_t timeout_ms;        /**< with data in flight */
	uint32_t idle_ms, every_ms; /**< silence before the first probe, between probes; 0: none */
	uint8_t probes;             /**< unanswered probes at most; 0: no limit */
};

struct san_core;

/** Where streams post their work requests: see core.h. *core* is passed on and not accessed. */
struct san_sock_work {
	uint32_t (*post)(struct san_core *core, uint32_t qp, const struct san_ulp_wr *wr,
			 uint32_t n, uint64_t now_ns);
	uint32_t (*post_recv)(struct san_core *core, uint32_t qp, const struct san_ulp_recv *r,
			      uint32_t n, uint64_t now_ns);
	void (*set_timeouts)(struct san_core *core, uint32_t qp, const struct san_sock_timeouts *p,
			     uint64_t now_ns);
	struct san_core *core;
};

struct san_socks;

/** Make room in *mem* for *max* sockets, below SAN_DOORBELLS_MAX. -ENOMEM. */
int san_sock_table_create(struct san_mem *mem, uint32_t max, struct san_socks **out);
/** Set the index of the kernel's device behind the link, which programs may ask for; 0: none. */
void san_sock_table_set_device(struct san_socks *all, uint32_t if_index);
void san_sock_table_destroy(struct san_socks *all);

/**
 * Add a socket with memory *shm*. The caller owns the memory. It is zero except for the constants.
 *
 * @param wake_fd
 *   The daemon's end of the pair: san_sock_wake_next() returns it.
 * @return
 *   0, -ENOSPC.
 */
int san_sock_add(struct san_socks *all, struct san_sock_shm *shm, uint32_t rx_bytes,
		 uint32_t tx_bytes, int wake_fd, uint32_t *id);
/** Delete socket *id*. Its memory is not accessed afterwards. */
void san_sock_del(struct san_socks *all, uint32_t id);
/**
 * Join *group*. A socket receives datagrams only of groups that it has joined itself.
 *
 * @return
 *   0; -EADDRINUSE: it is a member; -ENOBUFS: it is in SAN_SOCK_GROUPS already.
 */
int san_sock_find_join(struct san_socks *all, uint32_t id, const struct san_ip *group);
/** Leave *group*. -EADDRNOTAVAIL: the socket is not a member. */
int san_sock_find_leave(struct san_socks *all, uint32_t id, const struct san_ip *group);
/** Name the socket, or change its name. */
void san_sock_name(struct san_socks *all, uint32_t id, const struct san_sock_names *names);
const struct san_sock_stats *san_sock_stats(const struct san_socks *all, uint32_t id);

/**
 * Give a datagram of *len* bytes, which may be in segments, to its sockets. Returns their number,
 * which may be above one for a group.
 */
uint32_t san_sock_dgram_rx(struct san_socks *all, const struct san_inet_result *r, uint64_t now_ns);
/** Give socket *id* a datagram that the kernel has received. */
void san_sock_dgram_put(struct san_socks *all, uint32_t id, const struct san_inet_dgram *d,
			uint32_t if_index, const void *data, uint32_t len, uint64_t now_ns);
/** Whether it is connected and has sent to its peer: then the link may report errors for it. */
bool san_sock_uses_link(const struct san_socks *all, uint32_t id);
/** The next call of the socket's program fails with *err*. */
void san_sock_dgram_fail(struct san_socks *all, uint32_t id, int err);

/* ---- streams: sock_stream.c ---- */

/** Set it for all streams, before the first one is added. */
void san_sock_stream_set_work(struct san_socks *all, const struct san_sock_work *work);
/** Socket *id* is a stream. Its queue pair *qp* is connected or is connecting. */
void san_sock_stream(struct san_socks *all, uint32_t id, uint32_t qp);
/** The connection is established. */
void san_sock_stream_up(struct san_socks *all, uint32_t id, uint64_t now_ns);
/** Nothing is sent any more, or the connection was not established: the program gets *err*. */
void san_sock_stream_over(struct san_socks *all, uint32_t id, int err);
/** Work of its queue pair is complete. */
void san_sock_stream_done(struct san_socks *all, uint32_t id, const struct san_ulp_wc *wc,
			  uint64_t now_ns);
/** No program has the socket any more: send the bytes in its ring, then the end of the stream. */
void san_sock_stream_shut(struct san_socks *all, uint32_t id);
/** Whether san_sock_stream_append() may send bytes now, behind those that are in the ring. */
bool san_sock_stream_may_append(const struct san_socks *all, uint32_t id);
/** Send up to SAN_SOCK_APPEND bytes that are not in the ring. */
void san_sock_stream_append(struct san_socks *all, uint32_t id, const void *data, uint32_t len,
			    uint64_t now_ns);
/** Whether nothing is sent any more: the connection was refused, or has ended. */
bool san_sock_stream_is_over(const struct san_socks *all, uint32_t id);
/**
 * Whether the stream has accepted all bytes and the end, or has ended before.
 * san_stream_is_drained() says whether the peer has received it.
 */
bool san_sock_stream_is_drained(const struct san_socks *all, uint32_t id);
/** Whether closing it now resets the connection: bytes are unread, or SO_LINGER has no time. */
bool san_sock_stream_is_reset(const struct san_socks *all, uint32_t id);

/* ---- */

/** A host reports that a datagram could not be delivered. False: it is not of these sockets. */
bool san_sock_dgram_error(struct san_socks *all, const struct san_inet_result *r);
/** The program of *id* has notified: the next san_sock_dgram_pump() visits the socket. */
void san_sock_doorbell(struct san_socks *all, uint32_t id);
/** Visit every socket: a program has ended, and its doorbells are lost. */
void san_sock_doorbell_all(struct san_socks *all);
/** Send datagrams of the sockets that have notified, in turns, as long as *in* has room. */
void san_sock_dgram_pump(struct san_socks *all, struct san_inet *in, uint64_t now_ns);
/** Whether its send ring is empty, or broken. */
bool san_sock_dgram_has_sent(const struct san_socks *all, uint32_t id);
/** Whether a socket waits for its visit. */
bool san_sock_table_has_work(const struct san_socks *all);
/** Whether a send ring that was full has room again. Reported at most once. */
bool san_sock_table_has_room(struct san_socks *all);
/**
 * The daemon's end of the pair of a socket that became readable and has an armed waiter; -1: no
 * more of them. The caller sends a byte to it; or, if *ends*, shuts it down for sending.
 */
int san_sock_wake_next(struct san_socks *all, bool *ends);
