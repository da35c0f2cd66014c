/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_CONF_H
#define SOCK_CONF_H

/** @file Settings and rules of sansock.conf(5) for this process. (UDP-2) */

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rules.h"

const struct sock_settings *san_sock_conf(void);
/** Whether there are no rules. */
bool san_sock_conf_is_idle(void);
/** Whether a rule refuses something: then the address of each datagram is checked. */
bool san_sock_conf_may_drop(void);
/**
 * The action for a socket. Either address may be NULL: not known yet. *is_logged*: log the decision
 * if the setting says so.
 */
enum sock_action san_sock_conf_action(int proto, bool is_v6only, const struct sockaddr *local,
				      const struct sockaddr *remote, bool is_logged);
/** Log, at level info, what was done with a socket against its rule. */
void san_sock_conf_info(const char *what, const char *why);
/** Log an error, unless logging is off. */
void san_sock_conf_error(const char *what, const char *why);

#endif /* SOCK_CONF_H */
