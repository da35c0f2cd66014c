/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Queue pairs of several nodes that access a buffer of node 0. A PAIR_CASE() sets up the world's
 * configuration in *pair*.
 */

#include "pair.h"

#define CROWD_MAX (WORLD_QPS / 2)

static struct {
	struct world *w;
	uint32_t q[CROWD_MAX], n; /* in the order in which they connected */
	uint8_t *src, *dst;
	uint32_t key; /* of *dst* */
} crowd;

/** *filter* may be NULL. */
static inline void
crowd_open(world_filter filter, uint64_t src_len, uint64_t dst_len)
{
	memset(&crowd, 0, sizeof(crowd));
	crowd.w = world_create(&pair.conf);
	crowd.w->filter = filter;
	crowd.src = calloc(1, src_len);
	crowd.dst = calloc(1, dst_len);
	crowd.key = world_mr(crowd.w, 0, crowd.dst, dst_len, PAIR_ALL);
}

static inline void
crowd_connect(uint32_t node)
{
	uint32_t peer;

	assert_true(crowd.n < CROWD_MAX);
	world_connect(crowd.w, node, 0, &pair.param, &pair.param, &crowd.q[crowd.n++], &peer);
}

/** Queue pair number *i* accesses the buffer at *off*. Returns false if its queue is full. */
static inline bool
crowd_try_post(uint32_t i, uint8_t op, uint64_t off, uint32_t len, uint8_t flags)
{
	struct san_ulp_wr wr;

	world_wr(&wr, op, crowd.src, len, (uint64_t)(uintptr_t)(crowd.dst + off), crowd.key, i,
		 flags);
	return world_try_post(crowd.w, crowd.q[i], &wr);
}

static inline void
crowd_post(uint32_t i, uint8_t op, uint64_t off, uint32_t len, uint8_t flags)
{
	assert_true(crowd_try_post(i, op, off, len, flags));
}

/** Within the limit the next request of queue pair number *i* succeeds. */
static inline void
crowd_done(uint32_t i, uint64_t limit_ns)
{
	world_wait_ok(crowd.w, crowd.q[i], false, &pair.wc, limit_ns);
}

/** Disconnects what is connected. */
static inline void
crowd_close(void)
{
	const struct world_qp *qp;

	for (uint32_t i = 0; i < crowd.n; i++) {
		qp = &crowd.w->qp[crowd.q[i]];
		if (crowd.w->node[qp->node].core != NULL && !qp->disconnected)
			world_disconnect(crowd.w, crowd.q[i], crowd.q[i] + 1);
	}
	world_mr_del(crowd.w, 0, crowd.key);
	world_destroy(crowd.w);
	free(crowd.src);
	free(crowd.dst);
}
