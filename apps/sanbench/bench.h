/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * sanbench, the program for measurements and tests (SYS-3): all that its files share.
 *
 * One thread does everything in steps that never block (except with --wait). san_bench_step()
 * handles events and completions, then gives the client and the server a turn. Batch mode and the
 * prompt call it in their loops.
 *
 * A mode is a table entry: what the client posts, and what the server provides and checks. client.c
 * and server.c do the rest for all modes.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <rtsan.h>
#include <rtsan_dpdk.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "hist.h"

/* ---- what the two ends of a run agree on ---- */

#define BENCH_MODE 8 /**< size of the name of a mode */

#define HELLO_MAGIC 0x53424e33 /**< "SBN3" in little endian */

enum hello_kind {
	HELLO_CTL = 1,
	HELLO_DATA = 2,
};

enum hello_flags {
	HELLO_VERIFY = 0x1,
	HELLO_IMM = 0x2,
	HELLO_BOTH = 0x4, /**< the server sends requests, too */
};

/** Streams: how the receiver posts buffers. */
enum flow_manner {
	FLOW_DIRECT = 0, /**< large buffers, posted before data arrives */
	FLOW_WAIT,       /**< wait for data, then post a small buffer, then a large one */
	FLOW_SMALL,      /**< small buffers */
	FLOW_MIXED,      /**< each of these for a while */
	FLOW_MANNERS
};

/** Streams: which end sends, and when. */
enum flow_way {
	FLOW_ONE = 0,   /**< the client, at full rate */
	FLOW_BOTH,      /**< both ends */
	FLOW_SEND_RECV, /**< request and answer; each end sends, then posts a receive */
	FLOW_RECV_SEND, /**< request and answer; each end posts a receive, then sends */
	FLOW_WAYS
};

/** Private data of a connection request. The control connection is set up first. */
struct hello {
	uint32_t magic;
	uint8_t kind;
	uint8_t flags;
	uint8_t order;
	char mode[BENCH_MODE];
	uint64_t token; /**< identifies the session */
	uint64_t seed;
	uint32_t size_min, size_max;
	uint16_t depth, slots; /**< slots is a power of two */
	uint16_t nb_conns, index;
	uint16_t batch;      /**< requests that an end posts together; 0: as many as fit */
	uint8_t way, manner; /**< streams: enum flow_way, enum flow_manner */
};

/*
 * ---- content.c: data that is a function of its position (SYS-3) ----
 *
 * The receiver can check each byte without the original, and detects lost and repeated messages.
 */

/** The stream of bytes for message *i* of the client of a connection, or of the server. */
uint64_t san_content_base(const struct hello *h, bool of_server, uint64_t i);
/** Write *len* bytes of stream *base* from offset *off*. */
void san_content_fill(uint64_t base, uint64_t off, void *buf, size_t len);
/** With verification only: the offset in *buf* of the first wrong byte, or -1. */
int64_t san_content_check(const struct hello *h, bool of_server, uint64_t i, uint64_t off,
			  const void *buf, size_t len);
/** Length of message *i*, equal at both ends. */
uint32_t san_content_size(const struct hello *h, uint64_t i);

#define SEEN_WINDOW 65536

/** Messages that have arrived. They may be out of order by at most SEEN_WINDOW. */
struct seen {
	uint64_t base;  /**< all messages below have arrived */
	uint64_t count; /**< number of messages that have arrived */
	uint64_t bits[SEEN_WINDOW / 64];
};

/** Returns false for a repeated message, and for one beyond the window. */
bool san_content_seen_add(struct seen *s, uint64_t msg);

#define BENCH_CONNS_MAX 16384
#define BENCH_DEPTH_MAX 16384
#define BENCH_BATCH_MAX 256
#define BENCH_PORT      2048 /**< bytes of the arguments for the provider */
#define BENCH_TEXT      192  /**< size of an error text */
#define BENCH_SERVICE   4791

enum bench_exit {
	BENCH_EXIT_OK = 0,
	BENCH_EXIT_FAILED = 1, /**< connection failed, wrong data, or leaks */
	BENCH_EXIT_USAGE = 2,
};

enum bench_solicit {
	BENCH_SOLICIT_AUTO = 0,
	BENCH_SOLICIT_ALWAYS = 1,
	BENCH_SOLICIT_NEVER = 2,
};

struct bench_mode;

/** All values of the arguments and of the prompt's "set". */
struct bench_conf {
	/* what to do */
	const struct bench_mode *mode;
	char peer[48]; /**< empty: no client */
	bool server;
	bool interactive;
	char cmdline_file[256];
	uint64_t service;
	/* traffic */
	uint8_t solicit; /**< enum bench_solicit */
	bool verify, imm, live, both;
	uint64_t given;     /**< bits of arguments, of which others have the value of the mode */
	struct hello hello; /**< with those of its values that are settings */
	uint32_t rq;
	struct rtsan_stream_attr stream;
	uint32_t turns;              /**< messages of a connection per turn; 0: no turns */
	uint64_t duration_ms, count; /**< 0: unlimited */
	uint32_t timeout_ms;
	struct rtsan_conn_param conn; /**< without private data; 0: the stack's default */
	/* server */
	uint32_t sessions; /**< exit after so many; 0: never */
	uint32_t memory_mib;
	/* port */
	char port[BENCH_PORT]; /**< --ip, --set, --poll: for rtsan_dpdk_open() */
	char impair[2][256];   /**< 0: rx, 1: tx; empty: off */
	char capture[256];
	char json[256];
	char attach[256]; /**< daemon or device; empty: an engine in this process */
	bool wait;        /**< sleep while idle */
};

/** Results of the server so far. */
struct bench_served {
	uint64_t sessions, failed; /**< sessions that have ended */
	uint64_t msgs, bytes;
};

struct bench_cq;
struct client;
struct session;

struct bench {
	struct bench_conf conf;
	struct rtsan_ctx *ctx;
	struct rtsan_caps caps;
	LIST_HEAD(, bench_cq) cqs;
	uint64_t hz;                     /**< frequency of the time stamp counter */
	uint64_t ns_per_tick;            /**< multiplied by 2^32 */
	uint64_t now;                    /**< time stamp counter at the start of this step */
	uint32_t event_wait;             /**< polls until the next poll for events */
	struct client *client;           /**< the current run, or the last one */
	struct rtsan_listener *listener; /**< of the server; NULL: none */
	struct session *sessions;        /**< of the server: a list */
	uint32_t nb_sessions;            /**< since it listens */
	struct bench_served served;
	bool has_failed; /**< makes the exit code 1 */
	bool is_quit;
};

/** Number of stop requests of the operator: the first ends the run cleanly, the second at once. */
extern volatile int bench_nb_stops;

/** One step of everything; may sleep for a moment with --wait. False: nothing happened. */
bool san_bench_step(struct bench *b);
/** Print "sanbench: ..." to stderr and set has_failed. */
void san_bench_fail(struct bench *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline uint64_t
san_bench_ns(const struct bench *b, uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * b->ns_per_tick >> 32);
}

static inline uint64_t
san_bench_ticks_of_ms(const struct bench *b, uint64_t ms)
{
	return ms * b->hz / 1000;
}

/* ---- args.c ---- */

void san_args_defaults(struct bench_conf *conf);
/** True if *word* is an option of sanbench, not of EAL. */
bool san_args_is_ours(const char *word);
/** Names of enum rtsan_order and of enum bench_solicit. */
extern const char *const san_args_orders[], *const san_args_solicits[];
/** Parse the arguments behind "--". NULL, or what is wrong, until the next call. */
const char *san_args_parse(struct bench_conf *conf, int argc, char **argv);
/** Set one value by its name without dashes, for the prompt. Returns like san_args_parse(). */
const char *san_args_set(struct bench_conf *conf, const char *name, const char *value);
/** Names of all arguments or of those that san_args_set() accepts, for rte_cmdline: "one#two". */
const char *san_args_names(bool only_settings);
/** The *i*-th allowed value of a setting, or NULL. */
const char *san_args_word(const char *name, int i);
/** Print the line of san_args_usage() for one argument. False: there is none. */
bool san_args_explain(const char *name, FILE *f);
/** Apply the defaults of the mode, and check for contradictions. Returns like san_args_parse(). */
const char *san_args_finish(struct bench_conf *conf);
void san_args_usage(FILE *f);
/** Print every argument as a comment, with meaning, range and default, for devtools/keys.py. */
void san_args_keys(FILE *f);
void san_args_show(struct bench_conf *conf, FILE *f);

/* ---- cmd.c ---- */

/** Run the commands of a file. False: it can't be read. */
bool san_cmd_run_file(struct bench *b, const char *path);
/** Run the prompt until "quit", end of input or a signal. */
void san_cmd_prompt(struct bench *b);

/* ---- net.c: queue pairs, their completion queues, and whom completions and events go to ---- */

/** Private data of the answer. */
struct welcome {
	uint32_t magic;
	uint32_t rkey; /**< region of the server, 0: none */
	uint64_t addr;
	uint64_t shared_addr; /**< words shared by all connections of the session */
	uint32_t shared_rkey;
};

_Static_assert(sizeof(struct hello) <= RTSAN_PRIVATE_MAX, "hello fits");
_Static_assert(sizeof(struct welcome) <= RTSAN_PRIVATE_MAX, "welcome fits");

/** What one end of a connection has done: the client, and the server in a mode that has step(). */
struct bench_did {
	uint64_t msgs, bytes; /**< posted */
	uint64_t done;        /**< completed: in a mode with fill() all messages below */
	uint64_t received;    /**< bytes of a stream; peer's requests; atomics: sum of values */
	const char *error;    /**< text of the last error, or NULL */
};

struct bench_qp {
	struct bench *b;
	struct rtsan_qp *qp;
	struct bench_cq *cq;
	uint32_t cq_entries;
	const struct rtsan_stream_attr *stream; /**< NULL: a queue pair for messages */
	bool is_server;
	bool is_up;
	bool is_over; /**< it was up, or was being set up, and has ended */
	void (*on_wc)(struct bench_qp *q, const struct rtsan_wc *wc);
	void (*on_event)(struct bench_qp *q, const struct rtsan_event *ev);
	struct rtsan_mr *mr; /**< memory of its own, or NULL; released with it */
	uint8_t *mem;        /**< slots, data to be pulled, or the buffers of messages */
	struct hello hello;  /**< of the client; empty: a server's control connection */
	/* of a data connection */
	struct hist *lat; /**< NULL: a server measures no latency */
	struct bench_did did;
	uint64_t *stamp; /**< per slot: time of posting; 0: free */
	void *work;      /**< state of the mode */
};

/**
 * Create a queue pair. Completion queues are shared as far as their depth permits: *under_way* of
 * its work requests may complete between two polls.
 */
int san_net_qp_open(struct bench_qp *q, uint32_t sq_depth, uint32_t rq_depth, uint32_t under_way);
/**
 * Allocate *bytes* of registered memory, if any, the stamps, and *work* bytes for the mode, with
 * zeros. san_net_qp_close() releases all. 0 or a negative errno.
 */
int san_net_alloc(struct bench_qp *q, uint64_t bytes, size_t work);
/** Close it and release its memory; a connection is aborted. Not allowed in a callback. */
void san_net_qp_close(struct bench_qp *q);
/** Post a receive of *len* bytes of the queue pair's own memory. 0 or a negative errno. */
int san_net_post_recv(struct bench_qp *q, uint64_t wr_id, void *addr, uint32_t len);
/** Poll all events and completions once. Returns their number. */
uint32_t san_net_poll(struct bench *b);
/** Sleep until san_net_poll() has work, or the time is over. The caller polls in both cases. */
void san_net_wait(struct bench *b, int timeout_ms);
/** Connect with its hello and these settings, also again. Returns like rtsan_connect(). */
int san_net_connect(struct bench_qp *q, const struct bench_conf *conf);
/** Accept a request with the settings. Returns like rtsan_accept(). */
int san_net_accept(struct bench_qp *q, uint64_t request, const struct welcome *w);

/** Distance of two slots: they are aligned, so that copies are aligned for any size. */
static inline uint32_t
san_net_stride(const struct hello *h)
{
	return (h->size_max + 63u) & ~63u;
}

static inline uint32_t
san_net_slot(const struct hello *h, uint64_t i)
{
	return (uint32_t)i & (h->slots - 1u);
}

static inline uint64_t
san_net_slots_bytes(const struct hello *h)
{
	return (uint64_t)h->slots * san_net_stride(h);
}

static inline uint8_t *
san_net_slot_at(const struct bench_qp *q, uint64_t i)
{
	return q->mem + (size_t)san_net_slot(&q->hello, i) * san_net_stride(&q->hello);
}

/** With verification: write *len* bytes of the content of message *i*. */
static inline void
san_net_fill(const struct hello *h, bool of_server, uint64_t i, uint64_t off, void *buf, size_t len)
{
	if ((h->flags & HELLO_VERIFY) != 0)
		san_content_fill(san_content_base(h, of_server, i), off, buf, len);
}

/*
 * ---- net.c: control messages between the two ends of a run ----
 *
 * They are sends on a connection of their own, which is always ordered.
 *
 *   client                           server
 *   PLACED(conn, n)            -->          messages below n are in their slots
 *                              <--  DONE(conn, n)  they were checked
 *   CONN_END(conn, ...)        -->          totals of the connection
 *   END                        -->
 *                              <--  REPORT  what the server found
 */

#define CTL_PAYLOAD 512 /**< a struct ctl_report */
#define CTL_RX      64
#define CTL_TX      32

enum ctl_type {
	CTL_PLACED = 4,   /**< index, a: messages */
	CTL_DONE = 5,     /**< index, a: messages */
	CTL_CONN_END = 6, /**< index, a: messages, b: bytes, c: checksum of the mode */
	CTL_END = 7,      /**< a: checksum of the mode over all connections */
	CTL_REPORT = 8,   /**< struct ctl_report */
};

struct ctl_msg {
	uint16_t type; /**< enum ctl_type */
	uint16_t index;
	uint32_t len; /**< length of the payload that follows */
	uint64_t a, b, c;
};

/** Result of the server. */
struct ctl_report {
	uint64_t errors; /**< wrong, missing or surplus messages */
	uint64_t msgs, bytes;
	uint64_t rtx;             /**< the server's retransmissions, or PORT_UNKNOWN */
	uint64_t calls, calls_ns; /**< mode rpc: its own requests, and their duration */
	char text[BENCH_TEXT];    /**< text of the first error */
};

struct ctl {
	struct bench_qp q;       /**< must be first: it is cast to ctl; on_event is the owner's */
	uint32_t next_tx, nb_tx; /**< next place to send from; in flight, which end in order */
	void *owner;
	void (*on_msg)(void *owner, const struct ctl_msg *msg, const void *payload);
};

/** 0 or a negative errno; san_net_qp_close() closes it. */
int san_net_ctl_open(struct bench *b, struct ctl *c);
/** 0; -EAGAIN: no room, try again in a later step; -ENOTCONN. */
int san_net_ctl_send(struct ctl *c, const struct ctl_msg *msg, const void *payload);

/*
 * ---- port.c: source of the context ----
 *
 * An engine in this process on a DPDK port, or the daemon or RDMA device that --attach names. All
 * functions that need an engine in this process are here, so that callers need not distinguish the
 * two. (SYS-3)
 */

/** Value of a counter if the engine is in another process. */
#define PORT_UNKNOWN UINT64_MAX

/**
 * Open the context according to the settings, without --attach with these arguments for EAL. 0, or
 * -errno after printing an error; -EINVAL: wrong arguments.
 */
int san_port_open(struct bench *b, int argc, char **argv);
void san_port_close(struct bench *b);
/** NULL, or why there is no engine in this process. */
const char *san_port_attached(const struct bench_conf *conf);
/** All counters with their names, *nb* of them, until the next call. NULL when attached. */
const struct rtsan_dpdk_counter *san_port_counters(struct bench *b, int *nb);
/** Retransmissions since there were *begin*, or PORT_UNKNOWN. */
uint64_t san_port_rtx(struct bench *b, uint64_t begin);
/** Report leaked records. Returns their number; PORT_UNKNOWN when attached. */
uint64_t san_port_check_leaks(struct bench *b);
void san_port_apply_impair(struct bench *b);

/* ---- server.c: sessions of clients, each with a control connection and data connections ---- */

/** The server's end of a data connection. */
struct peer {
	struct bench_qp q;         /**< must be first: a bench_qp is cast to peer */
	struct session *session;   /**< NULL: no such connection yet */
	struct ctl_report *report; /**< of the session */
	uint64_t request;          /**< mode connect: waits for the end of the last one; 0: none */
	struct seen *seen;         /**< messages that have arrived by receives */
	uint64_t placed;           /**< messages in place, as the client reports */
	uint64_t looked;           /**< messages below were checked */
	uint64_t reported;         /**< value of the last DONE */
	uint64_t msgs, bytes;
	bool is_ended; /**< CONN_END has arrived */
	uint64_t end_msgs, end_bytes, end_value;
};

/** Listen on the configured service. 0 or a negative errno. */
int san_server_start(struct bench *b);
/** One turn. False: nothing to do. */
bool san_server_step(struct bench *b);
/** Abort all sessions. */
void san_server_stop(struct bench *b);
void san_server_accept_request(struct bench *b, const struct rtsan_event *ev);
/** Count an error of a session; the text of the first one is kept. */
void san_server_error(struct session *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
#define san_server_peer_error(p, text, ...) \
	san_server_error((p)->session, "connection %u: " text, (p)->q.hello.index, ##__VA_ARGS__)

/* ---- client.c, client_traffic.c: one run, from the connection to the report ---- */

/** Memory use of this process, as the kernel and DPDK report it. */
struct memory {
	uint64_t rss_bytes;     /**< resident, without hugepages */
	uint64_t hugetlb_bytes; /**< hugepages */
	uint64_t data_bytes;    /**< private and writable, touched or not */
	uint64_t heap_bytes;    /**< taken from DPDK's heaps */
};

enum client_state {
	CLIENT_CTL,     /**< the control connection is set up */
	CLIENT_DATA,    /**< the data connections are set up */
	CLIENT_TRAFFIC, /**< new messages are posted */
	CLIENT_DRAIN,   /**< messages in flight complete */
	CLIENT_END,     /**< the two sides compare */
	CLIENT_CLOSE,   /**< connections disconnect */
	CLIENT_OVER,    /**< everything is released, the results are valid */
	CLIENT_REPORTED /**< they were reported */
};

struct client_conn {
	struct bench_qp q; /**< must be first: a bench_qp is cast to client_conn */
	struct client *client;
	struct welcome peer;
	struct rtsan_send_wr *wrs; /**< prepared work requests per slot, or NULL */
	struct rtsan_sge *sges;    /**< their elements */
	uint64_t credit;           /**< the server has checked all messages below */
	uint64_t reported;         /**< value of the last PLACED */
	uint64_t limit;            /**< number of messages to post */
	uint64_t begin;            /**< connect: start of the set-up, ticks */
	bool is_leaving;           /**< connect: it is being disconnected */
};

struct client {
	struct bench *b;
	struct bench_conf conf; /**< copy of the settings at the start */
	const struct bench_mode *mode;
	enum client_state state;
	uint64_t deadline; /**< end of the state, ticks */
	uint64_t retry_at;
	struct hello hello;
	struct ctl ctl;
	struct client_conn *conns;
	uint32_t nb_made, nb_up;
	uint32_t nb_ends;    /**< totals sent: of each connection, then of all */
	uint32_t turn;       /**< index of the connection whose turn it is */
	struct rtsan_mr *mr; /**< slots of all connections */
	uint32_t lkey;
	bool is_stopped, is_bye_said;
	bool is_failed, has_report;
	bool has_placed;                      /**< the server checks every slot */
	uint64_t shared;                      /**< atomics: additions to the shared word */
	uint64_t begin, end;                  /**< of the traffic, in ticks */
	uint64_t msgs, bytes, rtx_begin, rtx; /**< retransmissions, or PORT_UNKNOWN */
	uint64_t completed;                   /**< completed messages */
	uint64_t rounds;
	struct memory memory_begin, memory_up; /**< before and with the connections */
	struct hist lat, lat_second;           /**< of the run, and since the last live line */
	uint64_t live_at, live_msgs, live_bytes, live_rtx;
	struct ctl_report report;
	char error[BENCH_TEXT];
};

/** Start a run with the current settings instead of the last; san_bench_step() continues it. */
void san_client_start(struct bench *b);
/** One turn. False: nothing to do. */
bool san_client_step(struct client *c);
/** Post no new messages, and end the run in order. */
void san_client_stop(struct client *c);
/** Release it; a run in progress is aborted. */
void san_client_free(struct client *c);
void san_client_fail(struct client *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/** What clients with these settings send. */
void san_client_hello(const struct bench_conf *conf, struct hello *h);
/** Enter a state, with the time limit of the settings. */
void san_client_enter(struct client *c, enum client_state state);
void san_client_traffic_on_wc(struct bench_qp *q, const struct rtsan_wc *wc);
/** A turn of every connection, if the mode has turns. False: nothing happened. */
bool san_client_traffic_step_mode(struct client *c, bool is_active);
/** Post messages until all are posted. False: nothing happened. */
bool san_client_traffic_step(struct client *c);
/** Wait until all of them have completed. False: nothing happened. */
bool san_client_traffic_drain(struct client *c);

/* ---- report.c ---- */

/** Values that can't be read are 0. */
void san_report_memory(struct memory *m);
/** Print one line with the rates of the last second. */
void san_report_live(struct client *c);
void san_report_client(const struct client *c, FILE *f);
/** Check that results can be written to *path*. 0 or -errno. */
int san_report_try(const char *path);
/** Write the results of the client, or without one of the server, as JSON. 0 or -errno. */
int san_report_json(struct bench *b, const struct client *c, uint64_t leaks);

/* ---- mode*.c ---- */

enum mode_flags {
	MODE_RECVS = 0x1,   /**< the server posts receives for the messages */
	MODE_SLOTS = 0x2,   /**< messages go to slots in the server's region */
	MODE_SHARED = 0x10, /**< the session has words shared by all connections */
	MODE_SAME = 0x20,   /**< without verification messages of one size are equal */
	MODE_BYTES = 0x40,  /**< its queue pairs are streams */
};

struct bench_mode {
	char name[BENCH_MODE];
	const char *help;
	uint8_t flags;  /**< enum mode_flags */
	uint8_t rights; /**< enum rtsan_access of the server's region; 0: no region */
	struct {
		uint32_t size, depth, conns;
		uint8_t solicit; /**< enum bench_solicit */
	} defaults;

	/** Check what a client wants, at both ends. NULL, or what is wrong. Optional. */
	const char *(*check)(const struct hello *h);

	/* modes that use slots have fill(); the others open(), close() and step() for both ends */

	/** Create the queue pair of a connection. 0 or a negative errno. */
	int (*open)(struct bench_qp *q);
	/**
	 * One turn: post at most *max* new messages, and count them in q->did. 0: no more follow.
	 * False: nothing happened. Optional.
	 */
	bool (*step)(struct bench_qp *q, uint64_t max);
	/** Handle an event of either end. False: it is unexpected. Optional. */
	bool (*on_event)(struct bench_qp *q, const struct rtsan_event *ev);
	/** Create content that stays for the whole run. Optional. */
	void (*init)(struct bench_qp *q);
	/** Make message *i*; *wr* has its slot and the server's region. */
	void (*fill)(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr);
	/** Message *i* completed successfully. NULL, or what is wrong with its result. Optional. */
	const char *(*complete)(struct client_conn *c, uint64_t i, const struct rtsan_wc *wc);

	/** Fill the region, before the connection is accepted. Optional. */
	void (*serve)(struct bench_qp *q);
	/** No more messages follow. True if all have completed at this end. Optional. */
	bool (*is_over)(const struct bench_qp *q);
	/** A receive has completed; *buf* is its buffer. With MODE_RECVS or immediates. */
	void (*on_recv)(struct peer *p, const struct rtsan_wc *wc, const uint8_t *buf);
	/** Message *i* is in its slot. With PLACED messages. */
	void (*on_slot)(struct peer *p, uint64_t i, const uint8_t *slot);
	/** Compare with the totals of the client. */
	void (*end)(struct peer *p);
};

extern const struct bench_mode mode_push, mode_rpc, mode_connect, mode_stream;

/** NULL-terminated, in the order of the help text. */
extern const struct bench_mode *const mode_all[];
/** Find a mode by its name, of which at most BENCH_MODE bytes are read. NULL: there is none. */
const struct bench_mode *san_mode_find(const char *name);

/** True if the server checks every slot before the client may reuse it. */
static inline bool
san_mode_has_placed(const struct bench_mode *m, const struct hello *h)
{
	return (m->flags & MODE_SLOTS) != 0 && (h->flags & HELLO_VERIFY) != 0;
}

/** Accept a connection of mode connect that was used before. */
void san_mode_connect_again(struct peer *p, uint64_t request);
