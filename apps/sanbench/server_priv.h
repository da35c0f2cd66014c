/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_PRIV_H
#define SERVER_PRIV_H

/** @file Shared by server.c, which runs sessions, and server_accept.c, which creates them. */

#include "server.h"

#define SERVER_END_MS 5000 /**< time limit for missing messages after the client's end */

struct server {
	struct bench *b;
	struct rtsan_listener *listener;
	struct session *sessions;
	uint32_t nb_sessions;
	void (*on_ctl_msg)(void *owner, const struct ctl_msg *msg, const void *payload);
	void (*on_ctl_event)(void *owner, const struct rtsan_event *ev);
};

void san_server_accept_free(struct session *s);
/** Post receive *i* of the data connection. */
int san_server_peer_post_recv(struct peer *p, uint64_t i);
void san_server_peer_on_wc(struct bench_qp *q, const struct rtsan_wc *wc);
void san_server_peer_on_event(struct bench_qp *q, const struct rtsan_event *ev);

#endif /* SERVER_PRIV_H */
