/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_CONF_H
#define SOCK_CONF_H

/** @file What sansock.conf(5) says to this process. (UDP-2) */

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rules.h"

/** Path of the daemon's socket. */
const char *sock_conf_daemon(void);
/** Name of its port; empty: its first. */
const char *sock_conf_port(void);
/** How long a call that would sleep looks before it does. */
uint32_t sock_conf_spin_us(void);
/** How long a daemon of a peer has to answer. */
uint32_t sock_conf_probe_ms(void);
uint32_t sock_conf_answer_s(void);
/** Are there no rules at all? */
bool sock_conf_is_idle(void);
/** Is there a rule by which something is refused? Then each datagram's address is looked at. */
bool sock_conf_may_drop(void);
/**
 * What is to become of a socket; either address may be NULL: not known yet. *is_told*: to the user,
 * if he wants to know of each.
 */
enum sock_action sock_conf_action(int proto, bool is_v6only, const struct sockaddr *local,
				  const struct sockaddr *remote, bool is_told);
/** What became of one otherwise, if he does. */
void sock_conf_tell(const char *what, const char *why);
/** Tell the user what went wrong, if he wants to know. */
void sock_conf_say(const char *what, const char *why);

#endif /* SOCK_CONF_H */
