/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file Shared by the carried sockets of both protocols. (UDP-7) */

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "engine_clock.h"
#include "inet.h"
#include "logging.h"
#include "san_time.h"
#include "socks.h"

/* ---- socks.c ---- */

/** What san_socks_call() does. The result is 0 or -errno, unless it is described. */
enum socks_op {
	LCORE_ADD,    /**< add the socket. A datagram socket: *arg* is struct san_sock_names */
	LCORE_DEL,    /**< remove it, with its queue pair or its groups */
	LCORE_SOURCE, /**< *arg*, struct san_ip: the source address to reach this address */
	LCORE_DOORBELL,
	/* datagrams */
	LCORE_NAME,     /**< *arg*: new struct san_sock_names */
	LCORE_JOIN,     /**< *arg*, struct san_ip: join this group */
	LCORE_LEAVE,    /**< likewise */
	LCORE_GIVE,     /**< *arg*, struct socks_given: give it to the program */
	LCORE_HAS_SENT, /**< result: its ring is empty */
	/* streams */
	LCORE_UP,
	LCORE_REFUSE,
	LCORE_SHUT,       /**< result: it can be released */
	LCORE_IS_DEAD,    /**< result: nothing can be sent any more */
	LCORE_MAY_APPEND, /**< result: LCORE_APPEND may follow */
	LCORE_APPEND,     /**< *arg*, struct iovec: bytes that were written to the program's end */
};

/** Execute *op* on the lcore of the sockets, and wait for it. */
int san_socks_call(struct app_sock *s, enum socks_op op, void *arg);
/** Set the text of the answer; returns *rc*. */
int san_socks_refuse(struct shmq_rep *rep, int rc, const char *text);
/** The socket's name in messages to helpers. */
struct helper_sock san_socks_name(const struct app_sock *s);
/** Ask the helper of the kernel's socket. -EINPROGRESS, or -errno: it could not be asked. */
int san_socks_ask(const struct app_sock *s, struct helper_msg *m, const struct app *a);
/** Keep the passed socket as the kernel's socket of *s*. */
void san_socks_keep(struct app_sock *s, struct passed *p);
void san_socks_fill_addr(struct san_sock_addr *a, const struct san_ip *ip, uint16_t port,
			 uint16_t family, uint32_t scope);
/** True if *ip* is an address of the port. */
bool san_socks_is_ours(const struct app_port *port, const struct san_ip *ip);
/** Check that the kernel's socket can be carried. 0, or -errno with a text. */
int san_socks_check_kernel(const struct app_port *port, const struct helper_facts *facts,
			   int protocol, struct shmq_rep *rep);
/** Bytes shared between programs and the lcore. */
#define SOCKS_BYTES san_sock_shm_bytes(SAN_SOCK_RX_BYTES, SAN_SOCK_TX_BYTES)
#define SOCKS_STREAM_BYTES \
	san_sock_shm_stream_bytes(SAN_SOCK_STREAM_RX_BYTES, SAN_SOCK_STREAM_TX_BYTES)
/** Take a free entry for a socket with *bytes* of memory. NULL with a text: a limit is reached. */
struct app_sock *san_socks_take(struct app_port *port, uid_t uid, uid_t owner, size_t bytes,
				struct shmq_rep *rep);
/** The socket behind *s* in the port's table, or (NULL) the first; NULL: none. */
struct app_sock *san_socks_next(const struct app_port *port, struct app_sock *s);
/** Find a socket by the cookie of the kernel's socket, or of the program's end. NULL: none. */
struct app_sock *san_socks_find(const struct app_port *port, uint64_t cookie, bool is_kernel);
/** End the socket on the lcore, and release its entry and all that it owns. */
void san_socks_discard(struct app_sock *s);
/** Create the memory of its kind, shared with programs, and the pair: see san_socks_pair_make(). */
int san_socks_memory(struct app_sock *s, uint16_t guard, int *shadow);
/** Watch the pair for the program's end, or the token for its listener's, to close. */
int san_socks_watch(const struct app_sock *s, bool is_token);

/* ---- socks_pair.c ---- */

/** Create the pair. *shadow* is the program's end, the caller's. 0 or -errno, with nothing open. */
int san_socks_pair_make(struct app_sock *s, int *shadow);
/**
 * Read the pair, as far as the ring has room. Datagrams are sent by the kernel's socket, which has
 * the same address. Bytes of streams are appended to those in the ring. True: there may be more,
 * try again later.
 */
bool san_socks_pair_read(struct app_sock *s);

/* ---- socks_udp.c ---- */

/** CARRY: see san_socks_serve(). */
int san_socks_udp_carry(struct app *a, const struct shmq_req *req);
/** The helper has answered the question of san_socks_udp_carry(). */
int san_socks_udp_carried(struct app_sock *s, const struct helper_msg *m, struct shmq_rep *rep);
/** The kernel's socket has a new address or new options. */
int san_socks_udp_rename(struct app_sock *s, const struct helper_facts *facts,
			 struct shmq_rep *rep);
/** GROUP. */
int san_socks_udp_group(struct app_sock *s, const struct shmq_req *req, struct shmq_rep *rep);

/* ---- socks_tcp.c ---- */

/** LISTEN, CONNECT, ACCEPT: see san_socks_serve(). */
int san_socks_tcp_serve(struct app *a, const struct shmq_req *req);
/** The kernel has bound a connecting socket to a port. */
int san_socks_tcp_bound(struct app_sock *s, const struct helper_msg *m, struct shmq_rep *rep);
/** A closed socket: true if it can be released, because its data arrived or the time is over. */
bool san_socks_tcp_may_end(struct app_sock *s, uint64_t now_ns);
/** The service of a listener ends with the last one at its port. */
void san_socks_tcp_end(struct app_sock *s);

/* ---- socks_token.c: how a program accepts a stream (UDP-1) ---- */

/**
 * Create a socket for a token, with its own name. -errno: the loopback device is down, or other
 * programs have all ports.
 */
int san_socks_token_create(struct sockaddr_in *name);
/** Check that tokens can be made for a listener at *ip*, and that the kernel names it. */
int san_socks_token_check(const struct san_ip *ip, uint16_t tcp_port);
/**
 * The listener that would accept the token *name* at port *tcp_port* of *dst*, if it is known here
 * and its program accepts streams now. Otherwise NULL.
 */
struct app_sock *san_socks_token_listener(const struct app_port *port,
					  const struct sockaddr_in *name, const struct san_ip *dst,
					  uint16_t tcp_port);
/**
 * Stream *s* is up: offer its token to its listener; see san_socks_token_look(). It is over if none
 * can accept it.
 */
void san_socks_token_offer(struct app_sock *s, uint64_t now_ns);
/** Continue to offer *s*. Returns when to call again. */
uint64_t san_socks_token_look(struct app_sock *s, uint64_t now_ns);
/** A program has accepted the token and does not claim it: the stream ends. */
void san_socks_token_unclaimed(struct app_sock *s);
/** A program has accepted a socket. If it is a token, return the stream. 0 or -errno. */
int san_socks_token_claim(struct app *a, struct shmq_rep *rep, int *out_fd);
