/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_H
#define BENCH_H

/**
 * @file
 * sanbench, the program for measurements and tests (SYS-3): what its parts share.
 *
 * One thread does everything in steps that never block (except with --wait). san_bench_step()
 * handles events and completions, then gives the client and the server a turn. Batch mode and the
 * prompt call it in their loops.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rtsan.h>
#include <rtsan_dpdk.h>

#include "hist.h"

/*
 * ---- content.c: data that is a function of its position (SYS-3) ----
 *
 * The receiver can check each byte without the original, and detects lost and repeated messages.
 */

/** The stream of bytes for message *msg* of connection *conn*, in the run with *seed*. */
uint64_t san_content_base(uint64_t seed, uint16_t conn, uint64_t msg);
/** Write *len* bytes of stream *base* from offset *off*. */
void san_content_fill(uint64_t base, uint64_t off, void *buf, size_t len);
/** Offset in *buf* of the first wrong byte, or -1. */
int64_t san_content_check(uint64_t base, uint64_t off, const void *buf, size_t len);
/** Length of message *msg* between *min* and *max*, equal at both ends. */
uint32_t san_content_size(uint64_t seed, uint16_t conn, uint64_t msg, uint32_t min, uint32_t max);

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
#define BENCH_IPS_MAX   8
#define BENCH_SETS_MAX  64
#define BENCH_TEXT      192 /**< size of an error text */
#define BENCH_PORT_CONF 2048
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
	uint8_t order;   /**< enum rtsan_order */
	bool verify, imm, live, both;
	uint64_t given; /**< bits of arguments, of which others have the value of the mode */
	uint32_t size_min, size_max;
	uint32_t depth, conns, rq;
	uint32_t batch;      /**< messages posted together; 0: as many as fit */
	uint8_t way, manner; /**< streams: enum flow_way, enum flow_manner */
	struct rtsan_stream_attr stream;
	uint32_t turns;              /**< messages of a connection per turn; 0: no turns */
	uint64_t duration_ms, count; /**< 0: unlimited */
	uint64_t seed;
	uint32_t timeout_ms;
	/* connection parameters; 0: the stack's default */
	uint16_t window, first_window, max_txn, msg_limit, pkey;
	uint16_t rnr_ms, keepalive_ms;
	/* server */
	uint32_t sessions; /**< exit after so many; 0: never */
	uint32_t memory_mib;
	/* port */
	const char *ips[BENCH_IPS_MAX];
	uint32_t nb_ips;
	const char *sets[BENCH_SETS_MAX];
	uint32_t nb_sets;
	uint8_t poll;                       /**< 0: not given, 1: caller, 2: lcore */
	struct rtsan_dpdk_impair impair[2]; /**< 0: rx, 1: tx */
	bool has_impair[2];
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
struct server;

struct bench {
	struct bench_conf conf;
	struct rtsan_ctx *ctx;
	struct rtsan_caps caps;
	struct bench_cq *cqs;  /**< list */
	uint64_t hz;           /**< frequency of the time stamp counter */
	uint64_t ns_per_tick;  /**< multiplied by 2^32 */
	uint64_t now;          /**< time stamp counter at the start of this step */
	uint32_t event_wait;   /**< polls until the next poll for events */
	struct client *client; /**< the current run, or the last one */
	struct server *server;
	struct bench_served served;
	bool has_failed;         /**< makes the exit code 1 */
	bool is_client_reported; /**< the result of the run was reported */
	bool is_quit;
};

/** Number of stop requests of the operator: the first ends the run cleanly, the second at once. */
extern volatile int bench_nb_stops;

/** One step of everything; may sleep for a moment with --wait. False: nothing happened. */
bool san_bench_step(struct bench *b);
/** Start a run with the current settings. */
void san_bench_client_start(struct bench *b);
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
/** True if --attach names an RDMA device. */
bool san_args_is_device(const struct bench_conf *conf);
/** True if *word* is an option of sanbench, not of EAL. */
bool san_args_is_ours(const char *word);
/**
 * Parse the arguments behind "--".
 *
 * @return
 *   0, or -1 with a text in *error*.
 */
int san_args_parse(struct bench_conf *conf, int argc, char **argv, char *error, size_t size);
/** Set one value by its name without dashes, for the prompt. Returns like san_args_parse(). */
int san_args_set(struct bench_conf *conf, const char *name, const char *value, char *error,
		 size_t size);
/**
 * Names of all arguments, or of those that san_args_set() accepts, separated by # for
 * rte_cmdline.
 */
const char *san_args_names(bool only_settings);
/** The *i*-th allowed value of a setting, or NULL. */
const char *san_args_word(const char *name, int i);
/** Print the line of san_args_usage() for one argument. False: there is none. */
bool san_args_explain(const char *name, FILE *f);
/** Apply the defaults of the mode, and check for contradictions. Returns like san_args_parse(). */
int san_args_finish(struct bench_conf *conf, char *error, size_t size);
void san_args_usage(FILE *f);
/** Print every argument as a comment, with meaning, range and default, for devtools/keys.py. */
void san_args_keys(FILE *f);
void san_args_show(struct bench_conf *conf, FILE *f);
/** Arguments for rtsan_dpdk_open(). -1: they don't fit. */
int san_args_port_conf(const struct bench_conf *conf, char *out, size_t size);

/* ---- cmd.c ---- */

/** Run the commands of a file. False: it can't be read. */
bool san_cmd_run_file(struct bench *b, const char *path);
/** Run the prompt until "quit", end of input or a signal. */
void san_cmd_prompt(struct bench *b);

#endif /* BENCH_H */
