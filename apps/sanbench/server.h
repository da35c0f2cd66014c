/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_H
#define SERVER_H

/**
 * @file
 * The server: sessions of clients, each with a control connection and data connections. It provides
 * memory, checks what arrives, and reports. Input from clients is not trusted: at worst a client
 * ends its own session.
 */

#include "ctl.h"

struct flow;
struct rpc;
struct session;

/** The server's end of a data connection. */
struct peer {
	struct bench_qp q; /**< must be first: a bench_qp is cast to peer */
	struct session *session;
	uint16_t index;
	bool is_open;
	struct hello hello;
	uint8_t *mem; /**< slots, or data to be pulled */
	struct rpc *rpc;
	struct flow *flow;
	uint64_t request; /**< mode connect: waits for the last connection to end; 0: none */
	uint64_t begin;   /**< mode rpc: time of the first own request, ticks */
	struct rtsan_mr *recv_mr;
	uint8_t *recv_mem;
	uint32_t rq, recv_stride;
	struct seen *seen; /**< messages that have arrived by receives */
	uint64_t placed;   /**< messages in place, as the client reports */
	uint64_t looked;   /**< messages below were checked */
	uint64_t reported; /**< value of the last DONE */
	uint64_t msgs, bytes;
	bool is_ended; /**< CONN_END has arrived */
	uint64_t end_msgs, end_bytes, end_value;
};

struct session {
	struct session *next;
	struct server *server;
	struct bench *b;
	const struct bench_mode *mode;
	struct hello hello;
	char from[48];
	uint32_t id;
	struct ctl ctl;
	struct peer *peers;
	uint64_t memory;     /**< memory allocated for the session */
	struct rtsan_mr *mr; /**< slots of all connections */
	struct rtsan_mr *shared;
	bool has_turns; /**< its connections have work of their own */
	bool is_ended, is_compared, is_reported, is_dead;
	uint64_t end_value;
	uint64_t end_deadline; /**< deadline for missing messages */
	uint64_t rtx_begin;
	struct hist lat;
	struct ctl_report report;
};

struct server;

/** Listen on the configured service. 0 or a negative errno. */
int san_server_start(struct bench *b);
/** One turn. False: nothing to do. */
bool san_server_step(struct server *s);
/** Abort all sessions. */
void san_server_stop(struct server *s);
void san_server_accept_request(struct bench *b, const struct rtsan_event *ev);
/** Count an error of a session; the text of the first one is kept. */
void san_server_session_error(struct session *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** Likewise, for one connection. */
void san_server_peer_error(struct peer *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static inline uint8_t *
san_server_peer_slot(const struct peer *p, uint64_t i)
{
	return p->mem + (size_t)san_net_slot(&p->hello, i) * san_net_stride(p->hello.size_max);
}

/* ---- server.c, which runs sessions, and server_accept.c, which creates them ---- */

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

#endif /* SERVER_H */
