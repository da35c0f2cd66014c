/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

/**
 * @file
 * The future events of a simulation, the soonest first, and in the order of pushes for the same
 * time. Nothing else affects the order, so equal pushes give equal pops. The caller defines the
 * meaning of events.
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "san_time.h"

struct sim_event {
	uint64_t at_ns; /**< must not be SAN_TIME_NEVER */
	uint64_t order; /**< set by the push */
	void *arg;
	uint32_t obj;
	uint16_t kind, port;
};
static_assert(sizeof(struct sim_event) == 32, "two events in a cache line");

struct sim_events {
	struct sim_event *slot; /**< a heap: the children of slot i are 4i + 1 to 4i + 4 */
	uint32_t nb_events, nb_slots;
	uint64_t order; /**< for the next push */
};

/** Create an empty queue. It grows as needed; the program aborts without memory, also later. */
void san_sim_event_init(struct sim_events *q);
/** Free the queue with all its events. */
void san_sim_event_fini(struct sim_events *q);
/** Add a copy of *ev*. Sets its order. */
void san_sim_event_push(struct sim_events *q, const struct sim_event *ev);
/** Take the soonest event. False: none, *out* is unchanged. */
bool san_sim_event_pop(struct sim_events *q, struct sim_event *out);
void san_sim_event_check(const struct sim_events *q);

/** Time of the soonest event, or SAN_TIME_NEVER. */
static inline uint64_t
san_sim_event_next_ns(const struct sim_events *q)
{
	return q->nb_events == 0 ? SAN_TIME_NEVER : q->slot[0].at_ns;
}

#endif /* SIM_EVENT_H */
