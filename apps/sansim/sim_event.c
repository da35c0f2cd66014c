/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A heap with four children per node: it has half the levels of a binary one, and four children
 * occupy two neighboring cache lines. Moving an event shifts a hole, so each event on its way is
 * written once.
 *
 * Handling an event mostly pushes another one for a time soon after. So a pop leaves the root
 * vacant, and the next push sinks from there by a few levels. Only if another pop comes first, the
 * last event moves to the root and sinks all the way.
 *
 * Slots: the root is 3, the children of s begin at 4(s - 2), the parent of s is s / 4 + 2. Unused
 * slots hold the greatest key, so a group always has four children, and the least is found without
 * a branch.
 *
 * Most events need no heap. An event for the current time follows all others of that time, so it
 * waits in a ring. Events of one cable are in order, so only the first one of each lane is in the
 * heap, and stands for the lane. Each event keeps the order of its push, so the result is the same.
 *
 * Two variants were tried: keys in an array of their own, or keys and indices in the heap and the
 * rest elsewhere. Both were within 10 % of this up to 100,000 events, and more complex.
 */

#include <stdlib.h>
#include <string.h>

#include "san_assert.h"
#include "sim_event.h"

#define CHILDREN       4u
#define CACHE_LINE     64
#define NB_SLOTS_MIN   64u
#define NB_SLOTS_MAX   (1u << 30) /* 32 GiB */
#define NB_LANE_MIN    16u
#define FIRST_CHILD(s) (CHILDREN * ((s)-2))
#define PARENT(s)      ((s) / CHILDREN + 2)

/* 1 MiB, more than the near caches hold: prefetch grandchildren */
#define PREFETCH_SLOTS 32768u

static inline bool
event_is_before(const struct sim_event *a, const struct sim_event *b)
{
	/* a comparison of 128 bits takes two instructions and no branch */
	unsigned __int128 key_a = (unsigned __int128)a->at_ns << 64 | a->order;
	unsigned __int128 key_b = (unsigned __int128)b->at_ns << 64 | b->order;

	return key_a < key_b;
}

static void
mark_unused(struct sim_event *slots, uint32_t n)
{
	memset(slots, 0xff, n * sizeof(*slots));
}

static void
event_heap_grow(struct sim_events *q, uint32_t nb_slots)
{
	bool has_memory, has_room = nb_slots <= NB_SLOTS_MAX;
	struct sim_event *slot;

	SAN_VERIFY(has_room);
	/* realloc() would not keep the alignment */
	slot = aligned_alloc(CACHE_LINE, nb_slots * sizeof(*slot));
	has_memory = slot != NULL;
	SAN_VERIFY(has_memory);
	if (q->nb_slots > 0)
		memcpy(slot, q->slot, q->nb_slots * sizeof(*slot));
	mark_unused(&slot[q->nb_slots], nb_slots - q->nb_slots);
	free(q->slot);
	q->slot = slot;
	q->nb_slots = nb_slots;
}

void
san_sim_event_init(struct sim_events *q)
{
	*q = (struct sim_events){.end = SIM_EVENTS_ROOT};
	event_heap_grow(q, NB_SLOTS_MIN);
}

void
san_sim_event_fini(struct sim_events *q)
{
	free(q->slot);
	san_sim_event_lane_fini(&q->due);
	*q = (struct sim_events){0};
}

/* ---- heap ---- */

/* Insert an event at the vacant root or below. */
static inline void
event_heap_sink(struct sim_events *q, struct sim_event moving)
{
	uint32_t hole = SIM_EVENTS_ROOT, first, child, next, i, a, b;
	const struct sim_event *group;

	for (first = FIRST_CHILD(hole); first < q->end; first = FIRST_CHILD(hole)) {
		/* the sixteen candidates of the step after the next */
		next = FIRST_CHILD(first);
		if (q->end > PREFETCH_SLOTS && next + CHILDREN * CHILDREN <= q->nb_slots)
			for (i = 0; i < CHILDREN * CHILDREN; i += CACHE_LINE / sizeof(*group))
				__builtin_prefetch(&q->slot[next + i]);
		/* the least of the four children is unpredictable, so there is no branch */
		group = &q->slot[first];
		a = event_is_before(&group[1], &group[0]);
		b = 2 + event_is_before(&group[3], &group[2]);
		child = first + a + (b - a) * event_is_before(&group[b], &group[a]);
		if (!event_is_before(&q->slot[child], &moving))
			break;
		q->slot[hole] = q->slot[child];
		hole = child;
	}
	q->slot[hole] = moving;
	q->is_root_vacant = false;
}

/* The root is still vacant: move the last event there. */
static inline void
event_lanes_settle(struct sim_events *q)
{
	struct sim_event last = q->slot[--q->end];

	mark_unused(&q->slot[q->end], 1);
	if (q->end == SIM_EVENTS_ROOT)
		q->is_root_vacant = false;
	else
		event_heap_sink(q, last);
}

static inline void
heap_add(struct sim_events *q, const struct sim_event *ev)
{
	uint32_t hole;

	if (q->is_root_vacant) {
		event_heap_sink(q, *ev);
		return;
	}
	if (q->end == q->nb_slots)
		event_heap_grow(q, 2 * q->nb_slots);
	hole = q->end++;
	while (hole > SIM_EVENTS_ROOT && event_is_before(ev, &q->slot[PARENT(hole)])) {
		q->slot[hole] = q->slot[PARENT(hole)];
		hole = PARENT(hole);
	}
	q->slot[hole] = *ev;
}

/* ---- lanes ---- */

static inline struct sim_event *
lane_at(const struct sim_events_lane *lane, uint32_t i)
{
	return &lane->slot[i & (lane->nb_slots - 1)];
}

static void
lane_grow(struct sim_events_lane *lane)
{
	struct sim_events_lane more = {
		.nb_slots = lane->nb_slots == 0 ? NB_LANE_MIN : 2 * lane->nb_slots,
		.head = lane->head,
		.tail = lane->tail,
	};
	bool has_memory, has_room = more.nb_slots <= NB_SLOTS_MAX;
	uint32_t i;

	SAN_VERIFY(has_room);
	more.slot = calloc(more.nb_slots, sizeof(*more.slot));
	has_memory = more.slot != NULL;
	SAN_VERIFY(has_memory);
	for (i = lane->head; i != lane->tail; i++)
		*lane_at(&more, i) = *lane_at(lane, i);
	free(lane->slot);
	*lane = more;
}

static inline void
lane_append(struct sim_events_lane *lane, const struct sim_event *ev)
{
	if (lane->tail - lane->head == lane->nb_slots)
		lane_grow(lane);
	*lane_at(lane, lane->tail++) = *ev;
}

/* The heap's entry for a lane that is not empty. */
static inline struct sim_event
lane_entry(struct sim_events_lane *lane)
{
	const struct sim_event *first = lane_at(lane, lane->head);

	return (struct sim_event){
		.at_ns = first->at_ns,
		.order = first->order,
		.arg = lane,
		.kind = SIM_EVENTS_LANE,
	};
}

void
san_sim_event_lane_fini(struct sim_events_lane *lane)
{
	free(lane->slot);
	*lane = (struct sim_events_lane){0};
}

/* ---- the queue ---- */

void
san_sim_event_push(struct sim_events *q, const struct sim_event *ev)
{
	struct sim_event own = *ev;

	SAN_ASSERT(ev->at_ns != SAN_TIME_NEVER && ev->kind != SIM_EVENTS_LANE);
	own.order = q->order++;
	q->nb_events++;
	if (own.at_ns == q->due_ns)
		lane_append(&q->due, &own);
	else
		heap_add(q, &own);
}

void
san_sim_event_push_lane(struct sim_events *q, struct sim_events_lane *lane,
			const struct sim_event *ev)
{
	bool is_first = san_sim_event_lane_is_empty(lane);
	struct sim_event own = *ev;

	/* a fault makes it overtake the lane's last event */
	if (!is_first && ev->at_ns < lane_at(lane, lane->tail - 1)->at_ns) {
		san_sim_event_push(q, ev);
		return;
	}
	SAN_ASSERT(ev->at_ns != SAN_TIME_NEVER && ev->kind != SIM_EVENTS_LANE);
	own.order = q->order++;
	q->nb_events++;
	lane_append(lane, &own);
	if (is_first) {
		own = lane_entry(lane);
		heap_add(q, &own);
	}
}

static inline void
take_root(struct sim_events *q, struct sim_event *out)
{
	struct sim_events_lane *lane;

	*out = q->slot[SIM_EVENTS_ROOT];
	if (out->kind != SIM_EVENTS_LANE) {
		q->is_root_vacant = true;
		return;
	}
	lane = out->arg;
	*out = *lane_at(lane, lane->head++);
	if (san_sim_event_lane_is_empty(lane))
		q->is_root_vacant = true;
	else
		event_heap_sink(q, lane_entry(lane));
}

/* True if the first event of the ring precedes all in the heap, whose root may be vacant. */
static inline bool
is_due_first(struct sim_events *q)
{
	if (san_sim_event_lane_is_empty(&q->due) || q->due_ns > san_sim_event_heap_ns(q))
		return false;
	if (q->due_ns < san_sim_event_heap_ns(q))
		return true;
	if (q->is_root_vacant)
		event_lanes_settle(q);
	return event_is_before(lane_at(&q->due, q->due.head), &q->slot[SIM_EVENTS_ROOT]);
}

bool
san_sim_event_pop(struct sim_events *q, struct sim_event *out)
{
	if (q->nb_events == 0)
		return false;
	q->nb_events--;
	if (is_due_first(q)) {
		*out = *lane_at(&q->due, q->due.head++);
		return true;
	}
	if (q->is_root_vacant)
		event_lanes_settle(q);
	take_root(q, out);
	if (san_sim_event_lane_is_empty(&q->due))
		q->due_ns = out->at_ns;
	return true;
}

/* ---- check ---- */

static void
check_lane(const struct sim_events_lane *lane)
{
	uint32_t i;

	SAN_VERIFY(lane->tail - lane->head <= lane->nb_slots);
	SAN_VERIFY((lane->nb_slots & (lane->nb_slots - 1)) == 0);
	for (i = lane->head + 1; i - lane->head < lane->tail - lane->head; i++)
		SAN_VERIFY(event_is_before(lane_at(lane, i - 1), lane_at(lane, i)));
}

/* Number of events that slot *s* stands for. */
static uint32_t
event_check_slot(const struct sim_events *q, uint32_t s)
{
	const struct sim_event *ev = &q->slot[s];
	struct sim_events_lane *lane = ev->arg;
	struct sim_event entry;

	SAN_VERIFY(ev->order < q->order);
	if (s == SIM_EVENTS_ROOT && q->is_root_vacant)
		return 0;
	/* a vacant root still holds the popped event, which preceded all others */
	if (s != SIM_EVENTS_ROOT)
		SAN_VERIFY(event_is_before(&q->slot[PARENT(s)], ev));
	if (ev->kind != SIM_EVENTS_LANE)
		return 1;
	check_lane(lane);
	SAN_VERIFY(!san_sim_event_lane_is_empty(lane));
	entry = lane_entry(lane);
	SAN_VERIFY(ev->at_ns == entry.at_ns && ev->order == entry.order);
	return lane->tail - lane->head;
}

void
san_sim_event_check(const struct sim_events *q)
{
	uint32_t s, i, n = q->due.tail - q->due.head;

	SAN_VERIFY(q->end >= SIM_EVENTS_ROOT && q->end <= q->nb_slots);
	SAN_VERIFY(!q->is_root_vacant || q->end > SIM_EVENTS_ROOT);
	SAN_VERIFY(q->nb_slots % CHILDREN == 0);
	for (s = SIM_EVENTS_ROOT; s < q->end; s++)
		n += event_check_slot(q, s);
	for (s = q->end; s < q->nb_slots; s++)
		SAN_VERIFY(q->slot[s].at_ns == UINT64_MAX && q->slot[s].order == UINT64_MAX);
	check_lane(&q->due);
	for (i = q->due.head; i != q->due.tail; i++)
		SAN_VERIFY(lane_at(&q->due, i)->at_ns == q->due_ns);
	SAN_VERIFY(n == q->nb_events);
}
