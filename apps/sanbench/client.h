/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_H
#define CLIENT_H

/**
 * @file
 * The client: one run, from the connection to the report.
 */

#include <stdint.h>

#include "ctl.h"

/* ---- memory.c: memory use of this process, as the kernel and DPDK report it ---- */

struct memory {
	uint64_t rss_bytes;     /**< resident, without hugepages */
	uint64_t hugetlb_bytes; /**< hugepages */
	uint64_t data_bytes;    /**< private and writable, touched or not */
	uint64_t heap_bytes;    /**< taken from DPDK's heaps */
};

/** Values that can't be read are 0. */
void san_memory_read(struct memory *m);

struct flow;
struct rpc;

enum client_state {
	CLIENT_CTL,     /**< the control connection is set up */
	CLIENT_DATA,    /**< the data connections are set up */
	CLIENT_TRAFFIC, /**< new messages are posted */
	CLIENT_DRAIN,   /**< messages in flight complete */
	CLIENT_END,     /**< the two sides compare */
	CLIENT_CLOSE,   /**< connections disconnect */
	CLIENT_OVER,    /**< everything is released, the results are valid */
};

struct client;

struct client_conn {
	struct bench_qp q; /**< must be first: a bench_qp is cast to client_conn */
	struct client *client;
	uint16_t index;
	struct welcome peer;
	struct rpc *rpc;           /**< mode rpc */
	struct flow *flow;         /**< mode stream */
	uint8_t *mem;              /**< one slot per message in flight */
	uint64_t *stamp;           /**< per slot: time of posting; 0: free */
	struct rtsan_send_wr *wrs; /**< prepared work requests per slot, or NULL */
	struct rtsan_sge *sges;    /**< their elements */
	uint64_t next;             /**< next message to post */
	uint64_t lowest;           /**< all messages below have completed */
	uint64_t credit;           /**< the server has checked all messages below */
	uint64_t reported;         /**< value of the last PLACED */
	uint64_t limit;            /**< number of messages to post */
	uint64_t msgs, bytes;
	uint64_t value;  /**< atomics: expected value of the counter */
	uint64_t sum;    /**< atomics: sum of the old values */
	uint64_t served; /**< rpc: requests of the server that were answered */
	uint64_t begin;  /**< connect: start of the set-up, ticks */
	bool is_end_sent;
	bool is_leaving; /**< connect: it is being disconnected */
};

struct client {
	struct bench *b;
	struct bench_conf conf; /**< copy of the settings at the start */
	const struct bench_mode *mode;
	enum client_state state;
	uint64_t deadline; /**< end of the state, ticks */
	uint64_t give_up;  /**< time to give up on an unreachable server */
	uint64_t retry_at;
	struct hello hello;
	struct ctl ctl;
	struct client_conn *conns;
	uint32_t nb_conns, nb_made, nb_up;
	uint32_t turn; /**< index of the connection whose turn it is */
	uint32_t stride;
	struct rtsan_mr *mr; /**< slots of all connections */
	uint32_t lkey;
	bool is_end_sent, is_stopped, is_bye_said;
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

/** Start a run with the current settings. san_bench_step() continues it. */
struct client *san_client_start(struct bench *b);
/** One turn. False: nothing to do. */
bool san_client_step(struct client *c);
/** Post no new messages, and end the run in order. */
void san_client_stop(struct client *c);
/** Release it; a run in progress is aborted. */
void san_client_free(struct client *c);
void san_client_fail(struct client *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** The slot of message *i*. */
static inline uint8_t *
san_client_slot(const struct client_conn *c, uint64_t i)
{
	return c->mem + (size_t)san_net_slot(&c->client->hello, i) * c->client->stride;
}

/* ---- report.c and json.c ---- */

/** Print one line with the rates of the last second. */
void san_report_live(struct client *c);
void san_report_client(const struct client *c, FILE *f);
double san_report_seconds(const struct client *c);
/** Check that results can be written to *path*. 0 or -errno. */
int san_json_try(const char *path);
/** Write the results as JSON. 0 or -errno. */
int san_json_write(const struct client *c, const char *path, uint64_t leaks);
/** Likewise for the server. */
int san_json_write_server(struct bench *b, const char *path, uint64_t leaks);

#endif /* CLIENT_H */
