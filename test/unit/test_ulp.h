/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * A ULP over a fake transaction sublayer, which records what was submitted and limits how much it
 * accepts. fake_tl.c defines the functions of tl that the ULP calls, which keeps the real ones out
 * of the program.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "san_prng.h"
#include "ulp_priv.h"
#include "unit.h"

#define FAKE_TXNS 16384
#define SLOT      3 /**< connection that the tests bind to */
#define PKEY      0x8001

struct fake_tl {
	struct san_tl tl;                  /**< only its time is used */
	struct san_tl_txn txns[FAKE_TXNS]; /**< as submitted */
	uint32_t nb_txns;
	uint32_t room;       /**< submits that still succeed */
	uint32_t nb_refused; /**< refused submits */
	uint32_t nb_recv_posted, nb_unwanted;
	bool room_inside; /**< call room() from within the submit that refuses */
	struct san_ulp *ulp;
};

extern struct fake_tl fake;

static const struct san_ip peer = {{[15] = 1}};

static inline void
fake_cmpl(uint32_t i, uint8_t status)
{
	struct san_tl_txn *t = &fake.txns[i];

	assert_true(i < fake.nb_txns);
	san_tl_ulp_cmpl(fake.ulp, &t, 1, status);
}

/** Transactions from *first* on succeed. */
static inline void
fake_done(uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++)
		fake_cmpl(i, SAN_ST_OK);
}

static inline uint32_t
test_secret32(void *arg)
{
	return (uint32_t)san_prng_u64(arg);
}

static struct test_ulp {
	struct san_prng prng;
	struct san_ulp *ulp;
	struct san_ulp_cq *send_cq, *recv_cq;
	uint32_t qp;
} t;

static inline void
test_ulp_conf(struct san_ulp_conf *conf)
{
	san_prng_seed(&t.prng, 7);
	san_ulp_conf_default(conf);
	conf->max_conns = 8;
	conf->max_qps = 8;
	conf->max_cqs = 4;
	conf->max_mrs = 16;
	conf->max_stream_mrs = 4;
	conf->pull_piece = 1000;
	conf->secret32 = test_secret32;
	conf->secret_arg = &t.prng;
}

/** One queue pair with these depths, not bound. */
static inline void
test_ulp_open(uint32_t sq_depth, uint32_t rq_depth, uint32_t cq_depth)
{
	struct san_ulp_conf conf;
	struct san_ulp_qp_conf qp_conf = {.sq_depth = sq_depth, .rq_depth = rq_depth};

	test_ulp_conf(&conf);
	assert_int_equal(san_ulp_create(&conf, &t.ulp), 0);
	san_ulp_set_tl(t.ulp, &fake.tl);
	assert_int_equal(san_ulp_cq_create(t.ulp, cq_depth, &t.send_cq), 0);
	assert_int_equal(san_ulp_cq_create(t.ulp, cq_depth, &t.recv_cq), 0);
	qp_conf.send_cq = t.send_cq;
	qp_conf.recv_cq = t.recv_cq;
	assert_int_equal(san_ulp_qp_create(t.ulp, &qp_conf, &t.qp), 0);
	memset(&fake, 0, sizeof(fake));
	fake.room = UINT32_MAX;
	fake.ulp = t.ulp;
}

static inline void
test_ulp_close(void)
{
	san_ulp_check(t.ulp);
	san_ulp_destroy(t.ulp);
}

/** The same, bound. */
static inline void
test_ulp_open_bound(uint32_t sq_depth, uint32_t rq_depth, uint32_t cq_depth)
{
	test_ulp_open(sq_depth, rq_depth, cq_depth);
	assert_int_equal(san_ulp_qp_bind(t.ulp, t.qp, SLOT, PKEY, &peer), 0);
}

/** tl has room for *n* more transactions, and reports it. */
static inline void
test_room(uint32_t n)
{
	fake.room = n;
	san_tl_ulp_room(t.ulp, SLOT);
	san_ulp_qp_pump(t.ulp, 0);
}

/** The usual fixture: 8 requests, 8 receives, room for 16 completions, bound. */
static inline void
test_ulp_setup(void)
{
	test_ulp_open_bound(8, 8, 16);
}

/** A request without payload. */
static inline struct san_ulp_wr
test_wr(uint8_t op, uint64_t wr_id, uint8_t flags)
{
	return (struct san_ulp_wr){.op = op, .wr_id = wr_id, .flags = flags};
}

static inline uint32_t
test_post_recv(uint64_t wr_id, void *addr, uint32_t len)
{
	struct san_ulp_recv r = {
		.wr_id = wr_id, .nb_sge = 1, .sge = {{.addr = addr, .length = len}}};

	return san_ulp_qp_post_recv(t.ulp, t.qp, &r, 1, 0);
}

/** Take the only completion. */
static inline struct san_ulp_wc
test_poll_one(struct san_ulp_cq *cq)
{
	struct san_ulp_wc wc[2];

	assert_int_equal(san_ulp_cq_poll(cq, wc, 2), 1);
	return wc[0];
}

static inline void
test_poll_none(struct san_ulp_cq *cq)
{
	struct san_ulp_wc wc;

	assert_int_equal(san_ulp_cq_poll(cq, &wc, 1), 0);
}

/** A push as the target's side of tl sees it. */
static inline struct san_tl_rxn
test_push(uint8_t kind, uint32_t length, uint32_t key, uint64_t addr)
{
	return (struct san_tl_rxn){
		.type = SAN_TL_PUSH,
		.kind = kind,
		.slot = SLOT,
		.length = length,
		.key = key,
		.addr = addr,
	};
}
