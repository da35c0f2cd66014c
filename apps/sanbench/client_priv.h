/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_PRIV_H
#define CLIENT_PRIV_H

/** @file What client.c (a run from its start to its end) and client_traffic.c share. */

#include "mode.h"

/** Go on to a state, which may take *ms*. */
void client_enter(struct client *c, enum client_state state, uint64_t ms);
/** (Re)connect a data connection; as rtsan_connect(). */
int client_conn_connect(struct client_conn *conn);
void client_on_wc(struct bench_qp *q, const struct rtsan_wc *wc);
/** Slots come back from the server only when it has looked at them. */
bool client_has_credit(const struct client *c);
/** Make messages, until none will be made any more. Returns false when nothing happened. */
bool client_step_traffic(struct client *c);
/** Until all of them have completed. */
bool client_step_drain(struct client *c);

#endif /* CLIENT_PRIV_H */
