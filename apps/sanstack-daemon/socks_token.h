/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCKS_TOKEN_H
#define DAEMON_SOCKS_TOKEN_H

/** @file What comes out of accept() for streams. (UDP-1) */

#include <stdbool.h>
#include <stdint.h>

#include "shmq.h"

struct app_port;
struct passed;
struct sock_entry;

/** Can there be any? Not where the loopback device is down. */
bool socks_token_can(void);
/** *s*, which is up, is to be accepted; see socks_token_look(). If nobody can, it is over. */
void socks_token_offer(struct sock_entry *s, uint64_t now_ns);
/** What there is to do for one that waits to be accepted; when to look again. */
uint64_t socks_token_look(struct sock_entry *s, uint64_t now_ns);
/** Has a program written to the token, without having claimed it? */
bool socks_token_is_spoken(const struct sock_entry *s);
/** A program has accepted the token, and does not claim it: see socks_relay.h. */
void socks_token_unclaimed(struct sock_entry *s);
/** A program has accepted it: if a token, it gets what stands for the stream. 0 or -errno. */
int socks_token_claim(struct app_port *port, struct passed *p, struct shmq_rep *rep, int *out_fd);

#endif /* DAEMON_SOCKS_TOKEN_H */
