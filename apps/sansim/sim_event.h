/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

/**
 * @file
 * What is going to happen in a simulation, soonest first; of what happens at
 * the same time, first in first out. Nothing else has a say in the order, so
 * the same pushes give the same pops. What an event means is its owner's.
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "san_time.h"

struct sim_event {
	uint64_t at_ns; /**< SAN_TIME_NEVER is not a time: don't push it */
	uint64_t order; /**< set by the push */
	void *arg;
	uint32_t obj;
	uint16_t kind, port; /**< SIM_EVENTS_LANE is no kind */
};
static_assert(sizeof(struct sim_event) == 32, "four events in two cache lines");

/** Of what stands for a lane in the heap. */
#define SIM_EVENTS_LANE UINT16_MAX

/**
 * Events of one source, which mostly come in the order of their times, as packets do
 * on a cable: a ring of them, of which the heap knows the first one. All zero: empty.
 */
struct sim_events_lane {
	struct sim_event *slot;
	uint32_t nb_slots;   /**< a power of two; 0: none was needed yet */
	uint32_t head, tail; /**< of all that ever were in it */
};

struct sim_events {
	struct sim_event *slot; /**< heap, from SIM_EVENTS_ROOT on */
	uint32_t end;           /**< one past the last slot in use */
	uint32_t nb_slots;
	uint32_t nb_events;         /**< in the heap, in lanes and due */
	bool is_root_vacant;        /**< popped, and nothing pushed since */
	uint64_t order;             /**< of the next push */
	struct sim_events_lane due; /**< pushed for the time that it is; not in the heap */
	uint64_t due_ns;            /**< that time */
};

/** Slot of the soonest event: so that each group of children begins a cache line. */
#define SIM_EVENTS_ROOT 3u

/** An empty queue. It grows as needed; without memory the program ends, here and later. */
void sim_events_init(struct sim_events *q);
/** Free the queue, whatever is in it. */
void sim_events_fini(struct sim_events *q);

/** Add a copy of *ev*, whose order is set here. */
void sim_events_push(struct sim_events *q, const struct sim_event *ev);
/** The same by way of *lane*, which must stay where it is until the queue is empty. */
void sim_events_push_lane(struct sim_events *q, struct sim_events_lane *lane,
			  const struct sim_event *ev);
/** Take the soonest event. False: there is none, *out* is as it was. */
bool sim_events_pop(struct sim_events *q, struct sim_event *out);

/** Give the memory of a lane back: all its events were popped, or the queue is gone. */
void sim_events_lane_fini(struct sim_events_lane *lane);

static inline bool
sim_events_lane_is_empty(const struct sim_events_lane *lane)
{
	return lane->head == lane->tail;
}

/** For the queue itself: time of the heap's soonest event; SAN_TIME_NEVER: there is none. */
static inline uint64_t
sim_events_heap_ns(const struct sim_events *q)
{
	const struct sim_event *s = &q->slot[SIM_EVENTS_ROOT];

	/* Slots not in use hold the greatest key. */
	if (!q->is_root_vacant)
		return s->at_ns;
	return san_time_min(san_time_min(s[1].at_ns, s[2].at_ns),
			    san_time_min(s[3].at_ns, s[4].at_ns));
}

/** Time of the soonest event; SAN_TIME_NEVER: there is none. */
static inline uint64_t
sim_events_next_ns(const struct sim_events *q)
{
	uint64_t heap_ns = sim_events_heap_ns(q);

	return sim_events_lane_is_empty(&q->due) ? heap_ns : san_time_min(heap_ns, q->due_ns);
}

/** Number of events. */
static inline uint32_t
sim_events_nb(const struct sim_events *q)
{
	return q->nb_events;
}

void sim_events_check(const struct sim_events *q);

#endif /* SIM_EVENT_H */
