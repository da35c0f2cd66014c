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
	uint16_t kind, port; /**< SIM_EVENTS_LANE is reserved */
};
static_assert(sizeof(struct sim_event) == 32, "four events in two cache lines");

/** The kind of the heap's entry for a lane. */
#define SIM_EVENTS_LANE UINT16_MAX

/**
 * Events of one source that are mostly in the order of time, like packets on a cable: a ring, whose
 * first event is in the heap. All zero is an empty lane.
 */
struct sim_events_lane {
	struct sim_event *slot;
	uint32_t nb_slots;   /**< a power of two; 0: not allocated yet */
	uint32_t head, tail; /**< free-running */
};

struct sim_events {
	struct sim_event *slot; /**< heap, starting at SIM_EVENTS_ROOT */
	uint32_t end;           /**< one past the last slot in use */
	uint32_t nb_slots;
	uint32_t nb_events;         /**< in the heap, in lanes and in *due* */
	bool is_root_vacant;        /**< popped, without a push since */
	uint64_t order;             /**< for the next push */
	struct sim_events_lane due; /**< pushed for the current time; not in the heap */
	uint64_t due_ns;            /**< the time of those */
};

/** Slot of the soonest event. With it each group of children starts at a cache line. */
#define SIM_EVENTS_ROOT 3u

/** Create an empty queue. It grows as needed; the program aborts without memory, also later. */
void san_sim_event_init(struct sim_events *q);
/** Free the queue with all its events. */
void san_sim_event_fini(struct sim_events *q);

/** Add a copy of *ev*. Sets its order. */
void san_sim_event_push(struct sim_events *q, const struct sim_event *ev);
/** Likewise through *lane*, which must not move until the queue is empty. */
void san_sim_event_push_lane(struct sim_events *q, struct sim_events_lane *lane,
			     const struct sim_event *ev);
/** Take the soonest event. False: none, *out* is unchanged. */
bool san_sim_event_pop(struct sim_events *q, struct sim_event *out);

/** Free the memory of a lane whose events were popped or whose queue is freed. */
void san_sim_event_lane_fini(struct sim_events_lane *lane);

static inline bool
san_sim_event_lane_is_empty(const struct sim_events_lane *lane)
{
	return lane->head == lane->tail;
}

/** Internal: time of the heap's soonest event, or SAN_TIME_NEVER. */
static inline uint64_t
san_sim_event_heap_ns(const struct sim_events *q)
{
	const struct sim_event *s = &q->slot[SIM_EVENTS_ROOT];

	/* unused slots hold the greatest key */
	if (!q->is_root_vacant)
		return s->at_ns;
	return san_time_min(san_time_min(s[1].at_ns, s[2].at_ns),
			    san_time_min(s[3].at_ns, s[4].at_ns));
}

/** Time of the soonest event, or SAN_TIME_NEVER. */
static inline uint64_t
san_sim_event_next_ns(const struct sim_events *q)
{
	uint64_t heap_ns = san_sim_event_heap_ns(q);

	return san_sim_event_lane_is_empty(&q->due) ? heap_ns : san_time_min(heap_ns, q->due_ns);
}

void san_sim_event_check(const struct sim_events *q);

#endif /* SIM_EVENT_H */
