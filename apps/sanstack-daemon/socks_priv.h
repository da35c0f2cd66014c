/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCKS_PRIV_H
#define DAEMON_SOCKS_PRIV_H

/** @file What carried sockets of both protocols share. (UDP-7) */

#include <sys/socket.h>

#include "app.h"
#include "inet.h"
#include "socks.h"

/* ---- socks.c ---- */

/** That all sockets of a port are of: its first. */
struct san_engine *socks_engine(const struct app_port *port);
/** *rc*, with a text. */
int socks_refuse(struct shmq_rep *rep, int rc, const char *text);
/** How helpers call it. */
struct helper_sock socks_name(const struct sock_entry *s);
/** Ask the helper that has the kernel's socket; -EINPROGRESS, or -errno: it is not asked. */
int socks_ask(const struct sock_entry *s, struct helper_msg *m, const struct app *a);
/** Keep the socket that was passed: it is the kernel's of *s*. */
void socks_keep(struct sock_entry *s, struct passed *p);
void socks_from_sockaddr(const struct sockaddr_storage *ss, struct san_ip *ip, uint16_t *port,
			 uint32_t *scope);
void socks_fill_addr(struct san_sock_addr *a, const struct san_ip *ip, uint16_t port,
		     uint16_t family, uint32_t scope);
bool socks_is_any(const struct san_ip *ip);
/** Is it an address of the port? */
bool socks_is_ours(const struct app_port *port, const struct san_ip *ip);
/** Can the kernel's socket be carried at all? 0 or -errno with a text. */
int socks_check_kernel(const struct app_port *port, const struct helper_facts *facts, int protocol,
		       struct shmq_rep *rep);
/** Bytes that programs and the lcore share. */
#define SOCKS_BYTES        san_sock_shm_bytes(SAN_SOCK_RX_BYTES, SAN_SOCK_TX_BYTES)
#define SOCKS_STREAM_BYTES san_sock_stream_bytes(SAN_SOCK_STREAM_RX_BYTES, SAN_SOCK_STREAM_TX_BYTES)
/** An entry with nothing in it, for one that will have *bytes*; NULL with a text. */
struct sock_entry *socks_take(struct app_port *port, uid_t uid, size_t bytes, struct shmq_rep *rep);
/** By the kernel's socket, or by what stands for it; NULL: there is none. */
struct sock_entry *socks_find(const struct app_port *port, uint64_t cookie, bool is_kernel);
/** And back, with what it has. */
void socks_release(struct sock_entry *s);
/** What programs share with the lcore; *type*: SOCK_STREAM ... */
int socks_memory(struct sock_entry *s, uint16_t guard, uint32_t type);
/** Our end, with a name, and what stands for it, the caller's. */
int socks_pair(struct sock_entry *s, int *shadow);
/** It is over when nobody has the other end of its pair any more, or of its token. */
int socks_watch_pair(const struct sock_entry *s);
int socks_watch_token(const struct sock_entry *s);
/** Its token, and what stands for it, have something, or room, that they had not before. */
int socks_watch_relay(const struct sock_entry *s);

/* ---- socks_udp.c ---- */

/** CARRY: see socks_serve(). */
int socks_udp_carry(struct app_port *port, const struct app *a, const struct shmq_req *req,
		    struct passed *p, struct shmq_rep *rep, int *out_fd);
/** The answer to what socks_udp_carry() has asked; on error it is gone. */
int socks_udp_carried(struct sock_entry *s, const struct helper_msg *m, struct shmq_rep *rep);
/** The kernel's socket has this name now, and these options. */
int socks_udp_rename(struct sock_entry *s, const struct helper_facts *facts, struct shmq_rep *rep);
/** GROUP. */
int socks_udp_group(struct sock_entry *s, const struct shmq_req *req, struct shmq_rep *rep);
/** A datagram, or an error, of the kernel's socket goes to the program. */
void socks_udp_give(struct sock_entry *s, const struct helper_dgram *d, const void *data,
		    uint32_t len);
/** Nobody has it any more: may it go, now that what was sent has gone? */
bool socks_udp_may_end(struct sock_entry *s, uint64_t now_ns);
/** The lcore forgets it. */
void socks_udp_end(struct sock_entry *s);

/* ---- socks_tcp.c ---- */

/** LISTEN, CONNECT, ACCEPT: see socks_serve(). */
int socks_tcp_serve(struct app_port *port, const struct app *a, const struct shmq_req *req,
		    struct passed *p, struct shmq_rep *rep, int *out_fd);
/** The kernel has given a socket that is to connect its name. */
int socks_tcp_bound(struct sock_entry *s, const struct helper_msg *m, struct shmq_rep *rep);
/** Nobody has it any more: may it go, now that what was sent is there? */
bool socks_tcp_may_end(struct sock_entry *s, uint64_t now_ns);
/**
 * *len* bytes at *data*, which the program's end was sent, go behind all that it has sent. NULL:
 * may they? False: not now.
 */
bool socks_tcp_aside(struct sock_entry *s, const void *data, size_t len);
/** Its queue pair goes. */
void socks_tcp_end(struct sock_entry *s);

#endif /* DAEMON_SOCKS_PRIV_H */
