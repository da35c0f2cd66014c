/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PAIR_H
#define PAIR_H

/**
 * @file
 * Two hosts, one connection, and on each side a buffer that the other side may access. Most tests
 * of the protocol begin with it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "world.h"

#define PAIR_LIMIT (60 * SAN_NS_PER_S)
#define PAIR_ALL   (RTSAN_REMOTE_PUSH | RTSAN_REMOTE_PULL | RTSAN_REMOTE_ATOMIC)

struct pair {
	struct world *w;
	uint32_t qa, qb;
	uint8_t *a, *b; /* len bytes each, both registered with all rights */
	uint64_t len;
	uint32_t ka, kb;
};

static inline void
pair_open_param(struct pair *p, const struct world_conf *conf, const struct san_cm_param *pa,
		const struct san_cm_param *pb, uint64_t len)
{
	memset(p, 0, sizeof(*p));
	p->w = world_create(conf);
	p->len = len;
	world_connect(p->w, 0, 1, pa, pb, &p->qa, &p->qb);
	p->a = calloc(1, len);
	p->b = calloc(1, len);
	p->ka = world_mr(p->w, 0, p->a, len, PAIR_ALL);
	p->kb = world_mr(p->w, 1, p->b, len, PAIR_ALL);
}

static inline void
pair_open(struct pair *p, const struct world_conf *conf, bool ordered, uint64_t len)
{
	struct san_cm_param param;

	world_param_default(&param);
	param.ordered = ordered;
	pair_open_param(p, conf, &param, &param, len);
}

/** Orderly end; world_destroy() asserts that nothing is leaked. */
static inline void
pair_close(struct pair *p)
{
	if (!p->w->qp[p->qa].disconnected)
		world_disconnect(p->w, p->qa, p->qb);
	if (p->w->node[0].core != NULL)
		world_mr_del(p->w, 0, p->ka);
	if (p->w->node[1].core != NULL)
		world_mr_del(p->w, 1, p->kb);
	world_destroy(p->w);
	free(p->a);
	free(p->b);
}

static inline void
pair_post(struct pair *p, bool from_a, enum rtsan_wr_opcode op, uint64_t off, uint32_t len,
	  uint64_t wr_id, uint8_t flags)
{
	struct san_ulp_wr wr;
	uint8_t *own = from_a ? p->a : p->b, *other = from_a ? p->b : p->a;

	world_wr(&wr, op, own + off, len, (uint64_t)(uintptr_t)(other + off),
		 from_a ? p->kb : p->ka, wr_id, flags);
	world_post(p->w, from_a ? p->qa : p->qb, &wr);
}

/** Status of the next completion of that side's send or receive queue. */
static inline uint8_t
pair_wait(struct pair *p, bool at_a, bool recv, struct san_ulp_wc *wc)
{
	assert_true(world_wait(p->w, at_a ? p->qa : p->qb, recv, wc, PAIR_LIMIT));
	return wc->status;
}

static inline struct san_pdl_conn *
pair_conn(struct pair *p, bool of_a)
{
	struct san_pdl *pdl = san_core_pdl(p->w->node[of_a ? 0 : 1].core);
	uint32_t i;

	for (i = 0; i < pdl->conf.max_conns; i++)
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

#endif /* PAIR_H */
