/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCKS_TOKEN_H
#define DAEMON_SOCKS_TOKEN_H

/** @file Tokens: how a program accepts a stream. (UDP-1) */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "shmq.h"

struct app_port;
struct app_sock;
struct passed;
struct san_ip;

/**
 * Create a socket for a token. *name* is its own name.
 *
 * @return
 *   The socket, or -errno: the loopback device is down, or other programs have all ports.
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
/** True if a program has written to the token without having claimed it. */
bool san_socks_token_has_data(const struct app_sock *s);
/** A program has accepted the token and does not claim it: the stream ends. */
void san_socks_token_unclaimed(struct app_sock *s);
/** A program has accepted a socket. If it is a token, return the stream. 0 or -errno. */
int san_socks_token_claim(struct app *a, struct shmq_rep *rep, int *out_fd);

#endif /* DAEMON_SOCKS_TOKEN_H */
