/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCKS_PRIV_H
#define DAEMON_SOCKS_PRIV_H

/** @file Shared by the carried sockets of both protocols. (UDP-7) */

#include <sys/socket.h>

#include "app.h"
#include "inet.h"
#include "socks.h"

/* ---- socks.c ---- */

/** The engine of a port's sockets: the first one. */
struct san_engine *socks_engine(const struct app_port *port);
/** Set the text of the answer; returns *rc*. */
int socks_refuse(struct shmq_rep *rep, int rc, const char *text);
/** The socket's name in messages to helpers. */
struct helper_sock socks_name(const struct sock_entry *s);
/**
 * Ask the helper that has the kernel's socket. -EINPROGRESS, or -errno if it could not be asked.
 */
int socks_ask(const struct sock_entry *s, struct helper_msg *m, const struct app *a);
/** Keep the passed socket as the kernel's socket of *s*. */
void socks_keep(struct sock_entry *s, struct passed *p);
void socks_from_sockaddr(const struct sockaddr_storage *ss, struct san_ip *ip, uint16_t *port,
			 uint32_t *scope);
void socks_fill_addr(struct san_sock_addr *a, const struct san_ip *ip, uint16_t port,
		     uint16_t family, uint32_t scope);
bool socks_is_any(const struct san_ip *ip);
/** True if *ip* is an address of the port. */
bool socks_is_ours(const struct app_port *port, const struct san_ip *ip);
/** Check that the kernel's socket can be carried. 0, or -errno with a text. */
int socks_check_kernel(const struct app_port *port, const struct helper_facts *facts, int protocol,
		       struct shmq_rep *rep);
/** Bytes shared between programs and the lcore. */
#define SOCKS_BYTES        san_sock_shm_bytes(SAN_SOCK_RX_BYTES, SAN_SOCK_TX_BYTES)
#define SOCKS_STREAM_BYTES san_sock_stream_bytes(SAN_SOCK_STREAM_RX_BYTES, SAN_SOCK_STREAM_TX_BYTES)
/** Take a free entry for a socket with *bytes* of memory. NULL with a text: a limit is reached. */
struct sock_entry *socks_take(struct app_port *port, uid_t uid, size_t bytes, struct shmq_rep *rep);
/** Find a socket by the cookie of the kernel's socket, or of the program's end. NULL: none. */
struct sock_entry *socks_find(const struct app_port *port, uint64_t cookie, bool is_kernel);
/** Release an entry and all that it owns. */
void socks_release(struct sock_entry *s);
/** Create the memory shared with programs; *type*: SOCK_STREAM or SOCK_DGRAM. */
int socks_memory(struct sock_entry *s, uint16_t guard, uint32_t type);
/** Create the pair. *shadow* is the program's end, the caller's. */
int socks_pair(struct sock_entry *s, int *shadow);
/** Watch for the program's end, or the listener, to close. */
int socks_watch_pair(const struct sock_entry *s);
int socks_watch_token(const struct sock_entry *s);
/** Watch the token and the program's end for data and room, edge-triggered. */
int socks_watch_relay(const struct sock_entry *s);

/* ---- socks_udp.c ---- */

/** CARRY: see socks_serve(). */
int socks_udp_carry(struct app_port *port, const struct app *a, const struct shmq_req *req,
		    struct passed *p, struct shmq_rep *rep, int *out_fd);
/** The helper has answered the question of socks_udp_carry(). *s* is released on error. */
int socks_udp_carried(struct sock_entry *s, const struct helper_msg *m, struct shmq_rep *rep);
/** The kernel's socket has a new address or new options. */
int socks_udp_rename(struct sock_entry *s, const struct helper_facts *facts, struct shmq_rep *rep);
/** GROUP. */
int socks_udp_group(struct sock_entry *s, const struct shmq_req *req, struct shmq_rep *rep);
/** Give a datagram, or an error, of the kernel's socket to the program. */
void socks_udp_give(struct sock_entry *s, const struct helper_dgram *d, const void *data,
		    uint32_t len);
/** A closed socket: true if it can be released, because its data was sent or the time is over. */
bool socks_udp_may_end(struct sock_entry *s, uint64_t now_ns);
/** Remove it from the lcore. */
void socks_udp_end(struct sock_entry *s);

/* ---- socks_tcp.c ---- */

/** LISTEN, CONNECT, ACCEPT: see socks_serve(). */
int socks_tcp_serve(struct app_port *port, const struct app *a, const struct shmq_req *req,
		    struct passed *p, struct shmq_rep *rep, int *out_fd);
/** The kernel has bound a connecting socket to a port. */
int socks_tcp_bound(struct sock_entry *s, const struct helper_msg *m, struct shmq_rep *rep);
/** A closed socket: true if it can be released, because its data arrived or the time is over. */
bool socks_tcp_may_end(struct sock_entry *s, uint64_t now_ns);
/**
 * Append *len* bytes at *data*, which were written to the program's end, to the stream. With NULL
 * only check. False: try later.
 */
bool socks_tcp_aside(struct sock_entry *s, const void *data, size_t len);
/** Destroy its queue pair. */
void socks_tcp_end(struct sock_entry *s);

#endif /* DAEMON_SOCKS_PRIV_H */
