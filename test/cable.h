/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * A cable between the two sides of a test: a link of the simulator in each
 * direction, both with the same faults.
 */

#include "san_assert.h"
#include "sim_link.h"

struct cable {
	struct sim_net net;
	struct sim_link_conf conf; /**< of both directions; may change at any time */
	struct sim_link to[2];     /**< towards each side */
};

/** No faults, no delay; as fast as can be. */
static inline void
cable_init(struct cable *c, struct rte_mempool *pool, uint64_t seed)
{
	san_sim_link_net_init(&c->net, seed);
	c->net.pool = pool;
	c->conf = (struct sim_link_conf){.buffer_bytes = UINT32_MAX};
	san_sim_link_init(&c->to[0], 0, &c->conf);
	san_sim_link_init(&c->to[1], 1, &c->conf);
}

static inline void
cable_fini(struct cable *c)
{
	san_sim_link_net_fini(&c->net);
}

static inline void
cable_set_fault(struct cable *c, const struct sim_link_fault *f)
{
	c->to[0].fault = c->to[1].fault = *f;
}

/** To side *to*, on a way that takes *delay_ns*; *m* is the cable's. */
static inline void
cable_send(struct cable *c, int to, struct rte_mbuf *m, uint64_t delay_ns, uint64_t now_ns)
{
	c->conf.delay_ns = delay_ns;
	san_sim_link_send(&c->net, &c->to[to], m, now_ns);
}

/** When the next packet arrives; SAN_TIME_NEVER: nothing is under way. */
static inline uint64_t
cable_next_ns(const struct cable *c)
{
	return san_sim_event_next_ns(&c->net.events);
}

/** The next packet that arrives until *now_ns*, at side *to*; NULL: none. The caller's. */
static inline struct rte_mbuf *
cable_arrival(struct cable *c, int *to, uint64_t now_ns)
{
	struct sim_event ev;

	if (cable_next_ns(c) > now_ns || !san_sim_event_pop(&c->net.events, &ev))
		return NULL;
	SAN_VERIFY(ev.kind == SIM_EV_ARRIVE);
	*to = (int)ev.obj;
	return ev.arg;
}
