/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCKS_TOKEN_H
#define DAEMON_SOCKS_TOKEN_H

/** @file Tokens: how a program accepts a stream. (UDP-1) */

#include <stdbool.h>
#include <stdint.h>

#include "shmq.h"

struct app_port;
struct passed;
struct app_sock;

/** True if tokens can be created. They need the loopback device. */
bool san_socks_token_can(void);
/**
 * Stream *s* is up: offer it to a listener; see san_socks_token_look(). It is over if none can
 * accept it.
 */
void san_socks_token_offer(struct app_sock *s, uint64_t now_ns);
/** Continue to offer *s*. Returns when to call again. */
uint64_t san_socks_token_look(struct app_sock *s, uint64_t now_ns);
/** True if a program has written to the token without having claimed it. */
bool san_socks_token_has_data(const struct app_sock *s);
/** A program has accepted the token without claiming it: relay; see socks_relay.h. */
void san_socks_token_unclaimed(struct app_sock *s);
/** A program has accepted a socket. If it is a token, return the stream. 0 or -errno. */
int san_socks_token_claim(struct app_port *port, struct passed *p, struct shmq_rep *rep,
			  int *out_fd);

#endif /* DAEMON_SOCKS_TOKEN_H */
