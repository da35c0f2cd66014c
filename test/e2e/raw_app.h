/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RAW_APP_H
#define RAW_APP_H

/**
 * @file
 * An application of the daemon without librtsan, so that it may do what no library does. Each
 * is one connection to the socket; a program may be several. What must not go wrong ends the
 * program.
 */

#include <stdbool.h>
#include <stdint.h>

#include "san_prng.h"
#include "shmq.h"

#define RAW_BASE      0x10000 /* what an application calls the first byte of its region */
#define RAW_MALFORMED 11      /* RTSAN_R_MALFORMED */

/** As they are in struct shmq_event. */
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

/** Connect to the socket, and say nothing. */
int raw_dial(const char *path);
/** The answer; *got* is what came with it, or -1. Dies if there is none. */
int raw_ask(const struct raw_app *a, struct shmq_req *req, int fd, struct shmq_rep *rep, int *got);
/** Likewise, for what needs a number only. */
int raw_ask_id(const struct raw_app *a, enum shmq_type type, uint32_t id);
void *raw_map(int fd, size_t bytes);

/** Connect, say hello, and map what comes. */
void raw_attach(struct raw_app *a, const char *path);
/** A region of *bytes*, with all rights; for *seals* see raw_memfd(). */
void raw_add_region(struct raw_app *a, size_t bytes, int seals);
/** Without a word. */
void raw_detach(struct raw_app *a);
/** A memfd of *bytes*. The daemon takes it with F_SEAL_SHRINK only. */
int raw_memfd(size_t bytes, int seals);

/** 0, or what the daemon says. */
int raw_make_qp(struct raw_app *a, struct raw_qp *q, uint32_t depth);
void raw_end_qp(struct raw_qp *q);
/** Forget it: its application is gone. */
void raw_drop_qp(struct raw_qp *q);
void raw_ring(const struct raw_qp *q);
/** Into the next place of its send queue, which has one, and ring. */
void raw_post(struct raw_qp *q, const struct san_ulp_wr *wr);
void raw_post_recv(struct raw_qp *q, const struct san_ulp_recv *r);
/** Wait for a completion; false: its connection has ended, or nothing came for 10 seconds. */
bool raw_wc(struct raw_qp *q, struct san_ulp_wc *wc);

/** Next event, if there is one. */
bool raw_event(struct raw_app *a, struct shmq_event *ev);
/** Wait for it. */
struct shmq_event raw_wait_event(struct raw_app *a, enum raw_event type);
int raw_listen(const struct raw_app *a, uint64_t service);
int raw_connect(const struct raw_qp *q, const char *peer, uint64_t service);
int raw_accept(const struct raw_qp *q, uint64_t request);
/** *a* connects to *b*, which listens there only meanwhile. */
void raw_pair(struct raw_qp *a, struct raw_qp *b, const char *peer, uint64_t service);

#endif /* RAW_APP_H */
