/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Programs that use librtsan: what must work, waits, and requests. A failure ends the program with
 * status 1, and with a message that ends with rtsan_error().
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rtsan_stream.h>

#define CHECK(cond)                                                          \
	do {                                                                 \
		if (!(cond))                                                 \
			rt_die("%s:%d: not: %s", __FILE__, __LINE__, #cond); \
	} while (0)

/** The same with a message. */
#define MUST(cond, ...)                      \
	do {                                 \
		if (!(cond))                 \
			rt_die(__VA_ARGS__); \
	} while (0)

/** Called before the message of a failure, if it is set. */
extern void (*rt_failing)(void);

void __attribute__((noreturn, format(printf, 1, 2))) rt_die(const char *fmt, ...);
/** Print a line, at once. */
void __attribute__((format(printf, 1, 2))) rt_say(const char *fmt, ...);
uint64_t rt_now_ns(void);
uint64_t rt_now_ms(void);

/** A queue pair with one queue for all completions; *depth* 0: the default. */
struct rtsan_qp *rt_make_qp(struct rtsan_ctx *ctx, struct rtsan_cq *cq, uint32_t depth,
			    void *context);

/** Sleep until the next event, which must have that type and come within *ms*. */
#define rt_event(...) rt_event_at(__FILE__, __LINE__, __VA_ARGS__)
struct rtsan_event rt_event_at(const char *file, int line, struct rtsan_ctx *ctx,
			       enum rtsan_event_type want, int ms);
/** Sleep until the next completion, which must come within *ms*. */
#define rt_wc(...) rt_wc_at(__FILE__, __LINE__, __VA_ARGS__)
struct rtsan_wc rt_wc_at(const char *file, int line, struct rtsan_cq *cq, int ms);
/** Post *wr* with the first *length* bytes of the region. */
void rt_post_send(struct rtsan_qp *qp, const struct rtsan_mr *mr, uint32_t length,
		  const struct rtsan_send_wr *wr);
void rt_post_recv(struct rtsan_qp *qp, const struct rtsan_mr *mr, uint32_t length);
