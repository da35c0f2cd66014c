/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MODE_H
#define MODE_H

/**
 * @file
 * A mode is a table entry: what the client posts, and what the server provides and checks. client.c
 * and server.c do the rest for all modes.
 */

#include "client.h"
#include "server.h"

/** Sent in the hello. */
enum mode_id {
	MODE_SEND = 1,
	MODE_PUSH = 2,
	MODE_PULL = 3,
	MODE_ATOMIC = 4,
	MODE_INCAST = 5,
	MODE_RPC = 9,
	MODE_CONNECT = 10,
	MODE_IDLE = 11,
	MODE_STREAM = 12,
};

enum mode_flags {
	MODE_RECVS = 0x1,   /**< the server posts receives for the messages */
	MODE_SLOTS = 0x2,   /**< messages go to slots in the server's region */
	MODE_SHARED = 0x10, /**< the session has words shared by all connections */
	MODE_SAME = 0x20,   /**< without verification messages of one size are equal */
};

struct bench_mode {
	const char *name;
	const char *help;
	uint8_t id;     /**< enum mode_id */
	uint8_t flags;  /**< enum mode_flags */
	uint8_t rights; /**< enum rtsan_access of the server's region; 0: no region */
	/* defaults */
	uint32_t size, depth, conns;
	uint8_t solicit; /**< enum bench_solicit */

	/** Check the settings. NULL, or what is wrong. Optional. */
	const char *(*check)(const struct bench_conf *conf);

	/* modes that use slots have fill(), the others open() and step() */

	/** Create the queue pair of a connection. 0 or a negative errno. */
	int (*open)(struct client_conn *c);
	/** One turn; *is_active*: traffic has not ended. False: nothing happened. */
	bool (*step)(struct client_conn *c, bool is_active);
	/** Handle an event. False: it is unexpected. Optional. */
	bool (*on_event)(struct client_conn *c, const struct rtsan_event *ev);
	/** Release what open() created. Optional. */
	void (*close)(struct client_conn *c);
	/** Create content that stays for the whole run. Optional. */
	void (*init)(struct client_conn *c);
	/** Make message *i* and its work request. 0, or -1 after san_client_fail(). */
	int (*fill)(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr,
		    struct rtsan_sge *sge);
	/**
	 * Message *i* completed successfully. Returns NULL, or what is wrong with its result.
	 * Optional.
	 */
	const char *(*complete)(struct client_conn *c, uint64_t i, const struct rtsan_wc *wc);

	/** Create the server's queue pair, if the mode has open(). 0 or -1. */
	int (*peer_open)(struct peer *p);
	/** One turn of the server. False: nothing happened. Optional. */
	bool (*peer_step)(struct peer *p);
	/** Handle an event. False: it is unexpected. Optional. */
	bool (*peer_event)(struct peer *p, const struct rtsan_event *ev);
	/** The client has ended. True if the server has, too. Optional. */
	bool (*peer_is_over)(const struct peer *p);
	/** Release what peer_open() created. Optional. */
	void (*peer_close)(struct peer *p);
	/** Fill the region, before the connection is accepted. Optional. */
	void (*serve)(struct peer *p);
	/** A receive has completed; *buf* is its buffer. With MODE_RECVS or immediates. */
	void (*on_recv)(struct peer *p, const struct rtsan_wc *wc, const uint8_t *buf);
	/** Message *i* is in its slot. With PLACED messages. */
	void (*on_slot)(struct peer *p, uint64_t i, const uint8_t *slot);
	/** Compare with the totals of the client. */
	void (*end)(struct peer *p);
};

extern const struct bench_mode mode_send, mode_push, mode_pull, mode_atomic, mode_incast;
extern const struct bench_mode mode_rpc, mode_connect, mode_idle, mode_stream;

/** NULL-terminated, in the order of the help text. */
extern const struct bench_mode *const mode_all[];
const struct bench_mode *san_mode_by_name(const char *name);
const struct bench_mode *san_mode_by_id(uint8_t id);

/** Flags of a push or send according to the settings. */
uint8_t san_mode_wr_flags(const struct bench_conf *conf);
/** True if the server checks every slot before the client may reuse it. */
static inline bool
san_mode_has_placed(const struct bench_mode *m, uint8_t hello_flags)
{
	return (m->flags & MODE_SLOTS) != 0 && (hello_flags & HELLO_VERIFY) != 0;
}

/** Accept a connection of mode connect that was used before. NULL, or why not. */
const char *san_mode_connect_again(struct peer *p, uint64_t request);
/** Check the parameters of mode stream. */
bool san_mode_stream_fits(const struct hello *h);
/** Check the sizes of mode rpc. */
bool san_mode_rpc_fits(const struct hello *h);

/* ---- shared by modes that push ---- */

void san_mode_push_init(struct client_conn *c);
int san_mode_push_fill(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr,
		       struct rtsan_sge *sge);
void san_mode_push_on_recv(struct peer *p, const struct rtsan_wc *wc, const uint8_t *buf);
void san_mode_push_on_slot(struct peer *p, uint64_t i, const uint8_t *slot);
void san_mode_push_end(struct peer *p);

/* ---- client.c, which runs a client from start to end, and client_traffic.c ---- */

/** Enter a state, with a time limit of *ms*. */
void san_client_enter(struct client *c, enum client_state state, uint64_t ms);
/** Connect a data connection, also again. Returns like rtsan_connect(). */
int san_client_conn_connect(struct client_conn *conn);
void san_client_traffic_on_wc(struct bench_qp *q, const struct rtsan_wc *wc);
/** A turn of every connection, if the mode has turns. False: nothing happened. */
bool san_client_traffic_step_mode(struct client *c, bool is_active);
/** Post messages until all are posted. False: nothing happened. */
bool san_client_traffic_step(struct client *c);
/** Wait until all of them have completed. False: nothing happened. */
bool san_client_traffic_drain(struct client *c);

#endif /* MODE_H */
