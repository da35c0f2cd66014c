/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_PRIV_H
#define CLIENT_PRIV_H

/** @file Shared by client.c, which runs a client from start to end, and client_traffic.c. */

#include "mode.h"

/** Enter a state, with a time limit of *ms*. */
void san_client_enter(struct client *c, enum client_state state, uint64_t ms);
/** Connect a data connection, also again. Returns like rtsan_connect(). */
int san_client_conn_connect(struct client_conn *conn);
void san_client_traffic_on_wc(struct bench_qp *q, const struct rtsan_wc *wc);
/** Post messages until all are posted. False: nothing happened. */
bool san_client_traffic_step(struct client *c);
/** Wait until all of them have completed. False: nothing happened. */
bool san_client_traffic_drain(struct client *c);

#endif /* CLIENT_PRIV_H */
