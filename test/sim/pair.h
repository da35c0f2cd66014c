/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Two hosts, one connection, and on each side a buffer that the other side may access. Most tests
 * of the protocol begin with it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "world.h"

#define PAIR_LIMIT (60 * SAN_NS_PER_S)
#define PAIR_ALL   (RTSAN_REMOTE_PUSH | RTSAN_REMOTE_PULL | RTSAN_REMOTE_ATOMIC)

static struct pair {
	struct world_conf conf;    /* changed by a test before it opens */
	struct san_cm_param param; /* of both sides */
	struct world *w;           /* NULL: not open */
	uint32_t qa, qb;
	uint8_t *a, *b; /* len bytes each, both registered with all rights */
	uint64_t len;
	uint32_t ka, kb;
	struct san_ulp_wc wc; /* the last one that was waited for */
} pair;

static inline void
pair_open_param(const struct san_cm_param *pa, const struct san_cm_param *pb, uint64_t len)
{
	pair.w = world_create(&pair.conf);
	pair.len = len;
	world_connect(pair.w, 0, 1, pa, pb, &pair.qa, &pair.qb);
	pair.a = calloc(1, len);
	pair.b = calloc(1, len);
	assert_true(len == 0 || (pair.a != NULL && pair.b != NULL));
	pair.ka = world_mr(pair.w, 0, pair.a, len, PAIR_ALL);
	pair.kb = world_mr(pair.w, 1, pair.b, len, PAIR_ALL);
}

static inline void
pair_open(uint64_t len)
{
	pair_open_param(&pair.param, &pair.param, len);
}

/** Orderly end; world_destroy() asserts that nothing is leaked. */
static inline void
pair_close(void)
{
	if (!pair.w->qp[pair.qa].disconnected)
		world_disconnect(pair.w, pair.qa, pair.qb);
	if (pair.w->node[0].core != NULL)
		world_mr_del(pair.w, 0, pair.ka);
	if (pair.w->node[1].core != NULL)
		world_mr_del(pair.w, 1, pair.kb);
	world_destroy(pair.w);
	pair.w = NULL;
	free(pair.a);
	free(pair.b);
}

static inline void
pair_setup(void)
{
	memset(&pair, 0, sizeof(pair));
	world_conf_default(&pair.conf);
	world_param_default(&pair.param);
}

static inline void
pair_teardown(void)
{
	if (pair.w != NULL) {
		pair.w->filter = NULL; /* its argument may have been on the stack of the case */
		pair_close();
	}
}

/** All packets from now on go through *filter*, which gets *arg*. */
static inline void
pair_filter(world_filter filter, void *arg)
{
	pair.w->filter = filter;
	pair.w->filter_arg = arg;
}

/** Set conf.tune: all hosts use express or not, by the bool at *arg*. */
static inline void
pair_tune_express(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->express = *(const bool *)arg;
}

/** A case with a pair of default configuration. It opens the pair, which is closed behind it. */
#define PAIR_CASE(name) UNIT_CASE_OWN(name, pair_setup, pair_teardown)

static inline void
pair_post(bool from_a, enum rtsan_wr_opcode op, uint64_t off, uint32_t len, uint64_t wr_id,
	  uint8_t flags)
{
	struct san_ulp_wr wr;
	uint8_t *own = from_a ? pair.a : pair.b, *other = from_a ? pair.b : pair.a;

	world_wr(&wr, op, own + off, len, (uint64_t)(uintptr_t)(other + off),
		 from_a ? pair.kb : pair.ka, wr_id, flags);
	world_post(pair.w, from_a ? pair.qa : pair.qb, &wr);
}

/** Status of the next completion of that side's send or receive queue. */
static inline uint8_t
pair_wait(bool at_a, bool recv)
{
	assert_true(world_wait(pair.w, at_a ? pair.qa : pair.qb, recv, &pair.wc, PAIR_LIMIT));
	return pair.wc.status;
}

/** The next completion of that queue has this status and number. */
static inline void
pair_wait_for(bool at_a, bool recv, uint8_t status, uint64_t wr_id)
{
	assert_int_equal(pair_wait(at_a, recv), status);
	assert_int_equal(pair.wc.wr_id, wr_id);
}

/** The next *n* requests of that side succeed. */
static inline void
pair_done(bool at_a, uint32_t n)
{
	while (n-- > 0)
		assert_int_equal(pair_wait(at_a, false), SAN_ST_OK);
}

/** Post one request, which succeeds. */
static inline void
pair_do(bool from_a, enum rtsan_wr_opcode op, uint64_t off, uint32_t len, uint64_t wr_id,
	uint8_t flags)
{
	pair_post(from_a, op, off, len, wr_id, flags);
	pair_done(from_a, 1);
}

/** The connection ends at both sides. */
static inline void
pair_wait_end(void)
{
	while (!pair.w->qp[pair.qa].disconnected || !pair.w->qp[pair.qb].disconnected)
		world_step(pair.w);
}

/** Within the limit the next request or receive of a queue pair succeeds. */
static inline void
world_wait_ok(struct world *w, uint32_t q, bool recv, struct san_ulp_wc *wc, uint64_t limit_ns)
{
	assert_true(world_wait(w, q, recv, wc, limit_ns));
	assert_int_equal(wc->status, SAN_ST_OK);
}

/** Parse a packet as its receiver does; false: it is none of the transport. */
static inline bool
world_parse(struct rte_mbuf *m, struct san_wire_pkt *pkt)
{
	static struct san_wire_ack ack;

	return san_wire_parse(m, SAN_WIRE_PORT, pkt, &ack) == SAN_DROP_NONE;
}

static inline struct san_pdl_conn *
pair_conn(bool of_a)
{
	struct san_pdl *pdl = san_core_pdl(pair.w->node[of_a ? 0 : 1].core);

	for (uint32_t i = 0; i < pdl->conf.max_conns; i++)
		if (pdl->conns[i].state == SAN_CONN_OPEN)
			return &pdl->conns[i];
	return NULL;
}

static inline void
world_conf_bad_link(struct world_conf *conf, uint64_t seed)
{
	world_conf_default(conf);
	conf->seed = seed;
	conf->link.drop_ppm = 50000;
	conf->link.dup_ppm = 20000;
	conf->link.reorder_ppm = 100000;
	conf->link.corrupt_ppm = 5000;
}
