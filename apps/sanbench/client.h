/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_H
#define CLIENT_H

/**
 * @file
 * The side that connects and asks: one run from connection to report.
 */

#include "ctl.h"
#include "memory.h"
#include "tree.h"

struct flow;
struct rpc;

enum client_state {
	CLIENT_CTL,      /**< control connection is being set up */
	CLIENT_DATA,     /**< data connections are being set up */
	CLIENT_MANIFEST, /**< trees: the server learns what there will be */
	CLIENT_TRAFFIC,  /**< new messages are made */
	CLIENT_DRAIN,    /**< what is under way completes */
	CLIENT_END,      /**< both sides compare */
	CLIENT_CLOSE,    /**< orderly disconnect */
	CLIENT_OVER,     /**< everything is released; results can be read */
};

struct client;

struct client_conn {
	struct bench_qp q; /**< first, so that a bench_qp is a client_conn */
	struct client *client;
	uint16_t index;
	struct welcome peer;
	struct rpc *rpc;           /**< mode rpc */
	struct flow *flow;         /**< mode stream */
	uint8_t *mem;              /**< a slot per message under way */
	uint64_t *stamp;           /**< per slot: time of posting; 0: nothing is under way */
	struct rtsan_send_wr *wrs; /**< per slot, where messages don't differ, or NULL */
	struct rtsan_sge *sges;    /**< theirs */
	uint64_t next;             /**< message to be made next */
	uint64_t lowest;           /**< everything below has completed */
	uint64_t credit;           /**< everything below was looked at by the server */
	uint64_t told;             /**< last PLACED */
	uint64_t limit;            /**< messages to make */
	uint64_t msgs, bytes;
	uint64_t value;  /**< atomics: what the counter will be */
	uint64_t sum;    /**< atomics: of old values */
	uint64_t served; /**< rpc: requests of the server */
	uint64_t begin;  /**< connect: of setting it up, ticks */
	bool is_end_told;
	bool is_leaving; /**< connect: its end was asked for */
};

struct client {
	struct bench *b;
	struct bench_conf conf; /**< as it was at the start */
	const struct bench_mode *mode;
	enum client_state state;
	uint64_t deadline; /**< of the state, ticks */
	uint64_t give_up;  /**< until when an unreachable server is tried again */
	uint64_t retry_at;
	struct hello hello;
	struct ctl ctl;
	struct client_conn *conns;
	uint32_t nb_conns, nb_made, nb_up;
	uint32_t turn; /**< whose it is */
	uint32_t stride;
	struct rtsan_mr *mr; /**< slots of all connections */
	uint32_t lkey;
	struct tree *tree;
	size_t manifest_at;
	bool is_manifest_told, is_end_told, is_stopped, is_bye_said;
	bool is_failed, has_report;
	bool has_placed;                      /**< the server looks at every slot */
	uint64_t shared;                      /**< atomics: additions to the shared word */
	uint64_t begin, end;                  /**< of the traffic, ticks */
	uint64_t msgs, bytes, rtx_begin, rtx; /**< or PORT_UNKNOWN */
	uint64_t completed;                   /**< of msgs */
	uint64_t rounds;
	struct memory memory_begin, memory_up; /**< before and with the connections */
	struct app_hist lat, lat_second;       /**< all, and since the last live line */
	uint64_t live_at, live_msgs, live_bytes, live_rtx;
	struct ctl_report report;
	char error[BENCH_TEXT];
};

/** Start a run with the present settings; it goes on in bench_step(). */
struct client *client_start(struct bench *b);
/** A turn. Returns false when there was nothing to do. */
bool client_step(struct client *c);
/** Make no new messages; the run ends orderly. */
void client_stop(struct client *c);
/** Release it; ends it at once if it still runs. */
void client_free(struct client *c);
void client_fail(struct client *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Slot of a message. */
static inline uint8_t *
client_slot(const struct client_conn *c, uint64_t i)
{
	return c->mem + (size_t)net_slot(&c->client->hello, i) * c->client->stride;
}

/* ---- report.c and json.c ---- */

/** One line with the rates of the last second. */
void report_live(struct client *c);
void report_client(const struct client *c, FILE *f);
double report_seconds(const struct client *c);
/** Can results be written there? 0 or -errno. */
int json_try(const char *path);
/** Write the results as JSON. 0 or -errno. */
int json_write(const struct client *c, const char *path, uint64_t leaks);
/** The same for what the server did. */
int json_write_server(struct bench *b, const char *path, uint64_t leaks);

#endif /* CLIENT_H */
