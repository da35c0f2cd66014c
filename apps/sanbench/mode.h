/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MODE_H
#define MODE_H

/**
 * @file
 * A mode is a table entry: what the client asks for, and what the server
 * offers and checks. client.c and server.c do the rest for all of them.
 */

#include "client.h"
#include "server.h"

/** On the wire: in the hello. */
enum mode_id {
	MODE_SEND = 1,
	MODE_PUSH = 2,
	MODE_PULL = 3,
	MODE_ATOMIC = 4,
	MODE_INCAST = 5,
	MODE_TREE_SEND = 6,
	MODE_TREE_PUSH = 7,
	MODE_TREE_PULL = 8,
	MODE_RPC = 9,
	MODE_CONNECT = 10,
	MODE_IDLE = 11,
	MODE_STREAM = 12,
};

enum mode_flags {
	MODE_RECVS = 0x1,        /**< the server posts receives for the messages */
	MODE_SLOTS = 0x2,        /**< messages land in slots of the server's region */
	MODE_TREE = 0x4,         /**< moves a file tree */
	MODE_SERVER_PULLS = 0x8, /**< the client offers slots, the server is the one that asks */
	MODE_SHARED = 0x10,      /**< the session has words that all connections share */
	MODE_SAME = 0x20,        /**< unless flagged, messages of one size are all alike */
};

struct bench_mode {
	const char *name;
	const char *help;
	uint8_t id;     /**< enum mode_id */
	uint8_t flags;  /**< enum mode_flags */
	uint8_t rights; /**< enum rtsan_access, on the server's region; 0: it has none */
	/* defaults where the caller chose nothing */
	uint32_t size, depth, conns;
	uint8_t solicit; /**< enum bench_solicit, unless chosen */

	/** What is wrong with the settings, or NULL. May be absent. */
	const char *(*check)(const struct bench_conf *conf);

	/* Modes that move messages through slots have fill(); the others open() and step(). */

	/** Queue pair of a connection. 0 or a negative errno. */
	int (*open)(struct client_conn *c);
	/** A turn; *is_active*: until the end of the traffic. False: nothing happened. */
	bool (*step)(struct client *c, bool is_active);
	/** True: this event of a connection was expected. May be absent. */
	bool (*on_event)(struct client_conn *c, const struct rtsan_event *ev);
	/** Release what open() made. May be absent. */
	void (*close)(struct client_conn *c);
	/** Content that stays for the whole run. May be absent. */
	void (*init)(struct client_conn *c);
	/** Make message *i*: its bytes and its work request. 0, or -1: client_fail() was called. */
	int (*fill)(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr,
		    struct rtsan_sge *sge);
	/** Message *i* completed well: NULL, or what is wrong with the result. May be absent. */
	const char *(*complete)(struct client_conn *c, uint64_t i, const struct rtsan_wc *wc);

	/** Queue pair of the server's end, where the client's mode has open(). 0 or -1. */
	int (*peer_open)(struct peer *p);
	/** A turn of it. False: nothing happened. May be absent. */
	bool (*peer_step)(struct peer *p);
	/** True: this event was expected. May be absent. */
	bool (*peer_event)(struct peer *p, const struct rtsan_event *ev);
	/** The client has ended; true: so has this end. May be absent. */
	bool (*peer_is_over)(const struct peer *p);
	/** Release what peer_open() made. May be absent. */
	void (*peer_close)(struct peer *p);
	/** Content of the region, before the connection is accepted. May be absent. */
	void (*serve)(struct peer *p);
	/** A message came in by a receive; *buf* is its buffer. With MODE_RECVS or immediates. */
	void (*on_recv)(struct peer *p, const struct rtsan_wc *wc, const uint8_t *buf);
	/** Message *i* is in its slot. With PLACED messages. */
	void (*on_slot)(struct peer *p, uint64_t i, const uint8_t *slot);
	/** The client says how much there was: compare. */
	void (*end)(struct peer *p);
};

extern const struct bench_mode mode_send, mode_push, mode_pull, mode_atomic, mode_incast;
extern const struct bench_mode mode_rpc, mode_connect, mode_idle, mode_stream;
extern const struct bench_mode mode_tree_send, mode_tree_push, mode_tree_pull;

/** NULL-terminated, in the order of help texts. */
extern const struct bench_mode *const mode_all[];
const struct bench_mode *mode_by_name(const char *name);
const struct bench_mode *mode_by_id(uint8_t id);

/** Flags of a push or send as the settings want it. */
uint8_t mode_wr_flags(const struct bench_conf *conf);
/** The server looks at every slot, and the client waits for that before it uses it again. */
static inline bool
mode_has_placed(const struct bench_mode *m, uint8_t hello_flags)
{
	return (m->flags & MODE_SERVER_PULLS) != 0 ||
		((m->flags & MODE_SLOTS) != 0 &&
		 ((m->flags & MODE_TREE) != 0 || (hello_flags & HELLO_VERIFY) != 0));
}

/** Longest message as it travels: trees send a number in front of each piece. */
static inline uint32_t
mode_msg_max(const struct bench_mode *m, uint32_t size)
{
	return (m->flags & MODE_TREE) != 0 ? size + 8 : size;
}

/** Connection of mode connect that was used before: NULL, or why not. */
const char *mode_connect_again(struct peer *p, uint64_t request);
/** What mode stream can be asked for. */
bool mode_stream_fits(const struct hello *h);
/** Sizes that mode rpc takes. */
bool mode_rpc_fits(const struct hello *h);

/* ---- shared by modes that push ---- */

void mode_push_init(struct client_conn *c);
int mode_push_fill(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr,
		   struct rtsan_sge *sge);
void mode_push_on_recv(struct peer *p, const struct rtsan_wc *wc, const uint8_t *buf);
void mode_push_on_slot(struct peer *p, uint64_t i, const uint8_t *slot);
void mode_push_end(struct peer *p);

#endif /* MODE_H */
