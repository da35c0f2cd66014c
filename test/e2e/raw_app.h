/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * An application of the daemon without librtsan, which can do what no library does. Each has one
 * connection to the daemon's socket; a program may have several. A failure of what must work ends
 * the program.
 */

#include <stdbool.h>
#include <stdint.h>

#include "san_prng.h"
#include "shmq.h"

#define RAW_BASE      0x10000 /* address of the first byte of a region */
#define RAW_MALFORMED 11      /* RTSAN_R_MALFORMED */

/** Types of struct shmq_event. */
enum raw_event {
	RAW_REQUEST = 1,
	RAW_ESTABLISHED = 2,
	RAW_REJECTED = 3,
	RAW_UNREACHABLE = 4,
	RAW_DISCONNECTED = 5,
};

struct raw_app {
	int sock;
	struct shmq_rep hello;
	struct shmq_ctl *ctl;
	uint32_t ev_head;
	uint8_t *region;
	size_t bytes;
	int region_fd;
	uint32_t key;
	uint16_t pkey; /**< partition of its listeners and connections; 0: the port's */
};

struct raw_qp {
	struct raw_app *app;
	uint32_t qp, cq, depth, cq_depth;
	struct san_wq *wq;
	struct san_cq *cq_mem;
	int wq_fd, cq_fd;
	size_t wq_bytes, cq_bytes;
	struct san_spsc_cons c;
};

void __attribute__((noreturn, format(printf, 1, 2))) raw_die(const char *fmt, ...);
#define MUST(cond, ...)                       \
	do {                                  \
		if (!(cond))                  \
			raw_die(__VA_ARGS__); \
	} while (0)

/** Connect to the socket, without a request. */
int raw_dial(const char *path);
/** Make a request and wait for its answer. *got*: its descriptor, or -1. Dies without one. */
int raw_ask(const struct raw_app *a, struct shmq_req *req, int fd, struct shmq_rep *rep, int *got);
/** Make a request whose answer is a number. */
int raw_ask_rc(const struct raw_app *a, struct shmq_req *req);
/** Make a request that also needs only a number. */
int raw_ask_id(const struct raw_app *a, enum shmq_type type, uint32_t id);
void *raw_map(int fd, size_t bytes);

/** Connect, say hello, and map the memory of the answer. */
void raw_attach(struct raw_app *a, const char *path);
/** Add a region of *bytes* with all rights; for *seals* see raw_memfd(). */
void raw_add_region(struct raw_app *a, size_t bytes, int seals);
/** Close the connection without further requests. */
void raw_detach(struct raw_app *a);
/** Create a memfd of *bytes*. The daemon accepts it only with F_SEAL_SHRINK. */
int raw_memfd(size_t bytes, int seals);

/** 0, or the daemon's error. */
int raw_make_qp(struct raw_app *a, struct raw_qp *q, uint32_t depth);
void raw_end_qp(struct raw_qp *q);
/** Release it here: its application has detached. */
void raw_drop_qp(struct raw_qp *q);
void raw_ring(const struct raw_qp *q);
/** Bytes of the region, at that offset. */
struct rtsan_sge raw_part(const struct raw_app *a, uint32_t at, uint32_t len);
/** The first bytes of the region, to or from those of another one; signaled. */
struct san_ulp_wr raw_wr(enum rtsan_wr_opcode op, const struct raw_app *from,
			 const struct raw_app *to, uint32_t len);
/** Write to the next place of the send queue, which must be free, and ring the doorbell. */
void raw_post(struct raw_qp *q, const struct san_ulp_wr *wr);
void raw_post_recv(struct raw_qp *q, const struct san_ulp_recv *r);
/** Post it, and wait for its status; -1 without one. */
int raw_do(struct raw_qp *q, const struct san_ulp_wr *wr);
/** Wait for a completion. False: the connection has ended, or none came for 10 seconds. */
bool raw_wc(struct raw_qp *q, struct san_ulp_wc *wc);

/** Poll for the next event. */
bool raw_event(struct raw_app *a, struct shmq_event *ev);
/** Wait for an event of that type. */
struct shmq_event raw_wait_event(struct raw_app *a, enum raw_event type);
int raw_listen(const struct raw_app *a, uint64_t service);
int raw_connect(const struct raw_qp *q, const char *peer, uint64_t service);
int raw_accept(const struct raw_qp *q, uint64_t request);
/** Connect *a* to *b*, which listens only for that time. */
void raw_pair(struct raw_qp *a, struct raw_qp *b, const char *peer, uint64_t service);
