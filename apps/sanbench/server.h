/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_H
#define SERVER_H

/**
 * @file
 * The side that listens: sessions of clients, each with a control connection
 * and data connections; offers memory, checks what arrives, reports.
 * Nothing that a client says is trusted: it ends its own session at most.
 */

#include "ctl.h"
#include "tree.h"

struct flow;
struct rpc;
struct session;

/** Server's end of a data connection. */
struct peer {
	struct bench_qp q; /**< first, so that a bench_qp is a peer */
	struct session *session;
	uint16_t index;
	bool is_open;
	struct hello hello;
	uint8_t *mem; /**< slots, or what is read */
	struct rpc *rpc;
	struct flow *flow;
	uint64_t request; /**< mode connect: waits for the end of the last connection; 0: none */
	uint64_t begin;   /**< mode rpc: our own requests, ticks */
	struct rtsan_mr *recv_mr;
	uint8_t *recv_mem;
	uint32_t rq, recv_stride;
	struct seen *seen; /**< which messages came in by receives */
	uint64_t placed;   /**< as the client said */
	uint64_t looked;   /**< slots below have been looked at */
	uint64_t told;     /**< last DONE */
	uint64_t next;     /**< trees pulled: piece to ask for next */
	uint64_t *stamp;   /**< trees pulled: time of asking, per slot */
	uint8_t *busy;     /**< trees pulled: per slot */
	uint64_t msgs, bytes;
	bool is_ended; /**< CONN_END came */
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
	uint64_t memory;     /**< bytes allocated for it */
	struct rtsan_mr *mr; /**< slots of all connections */
	struct rtsan_mr *shared;
	struct tree_out *out;
	bool has_turns; /**< its connections have something to do by themselves */
	bool is_manifest_done, is_ready_told;
	bool is_ended, is_compared, is_told, is_dead;
	uint64_t end_value;
	uint64_t end_deadline; /**< until when missing messages may still be polled */
	uint64_t rtx_begin;
	struct app_hist lat;
	struct ctl_report report;
};

struct server;

/** Listen on the service of the settings. 0 or a negative errno. */
int server_start(struct bench *b);
/** A turn. Returns false when there was nothing to do. */
bool server_step(struct server *s);
/** Ends every session at once. */
void server_stop(struct server *s);
void server_on_request(struct bench *b, const struct rtsan_event *ev);
/** Something is wrong with what the client did: counts, and remembers the first text. */
void session_error(struct session *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** The same, about one connection. */
void peer_error(struct peer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline uint8_t *
peer_slot(const struct peer *p, uint64_t i)
{
	return p->mem + (size_t)net_slot(&p->hello, i) * net_stride(p->hello.size_max);
}

#endif /* SERVER_H */
