/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A heap with four children per node: half the levels of two, and the four lie in
 * two neighbouring cache lines. Whatever sinks or rises moves as a hole, so that
 * each event on its way is written once.
 *
 * What an event does is mostly to push another one, soon. So a pop leaves the root
 * vacant and the next push sinks from there, a few levels; only if another pop comes
 * first, the last event is taken to the root and sinks all the way.
 *
 * Slots: the root is 3, the children of s begin at 4(s - 2), the parent of s is
 * s / 4 + 2. Slots not in use hold the greatest key, so that a group always has
 * four children and the least of them is found without a branch.
 *
 * Keys in an array of their own, or keys and indices in the heap and the rest elsewhere,
 * were tried: within a tenth of this up to 100,000 events, and more to keep in step.
 */

#include <stdlib.h>
#include <string.h>

#include "san_assert.h"
#include "sim_event.h"

#define CHILDREN       4u
#define CACHE_LINE     64
#define NB_SLOTS_MIN   64u
#define NB_SLOTS_MAX   (1u << 30) /* 32 GiB */
#define FIRST_CHILD(s) (CHILDREN * ((s)-2))
#define PARENT(s)      ((s) / CHILDREN + 2)

/* A mebibyte, more than the near caches are sure to hold: fetch grandchildren ahead. */
#define PREFETCH_SLOTS 32768u

static inline bool
is_before(const struct sim_event *a, const struct sim_event *b)
{
	/* One comparison of 128 bits is two instructions and no branch. */
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
grow(struct sim_events *q, uint32_t nb_slots)
{
	bool has_memory, has_room = nb_slots <= NB_SLOTS_MAX;
	struct sim_event *slot;

	SAN_VERIFY(has_room);
	/* Not realloc, which forgets the alignment. */
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
sim_events_init(struct sim_events *q)
{
	*q = (struct sim_events){.end = SIM_EVENTS_ROOT};
	grow(q, NB_SLOTS_MIN);
}

void
sim_events_fini(struct sim_events *q)
{
	free(q->slot);
	*q = (struct sim_events){0};
}

/* Least of a group of children; which one it is can't be guessed, so there is no branch. */
static inline uint32_t
least_child(const struct sim_event *group)
{
	uint32_t a = is_before(&group[1], &group[0]);
	uint32_t b = 2 + is_before(&group[3], &group[2]);

	return a + (b - a) * is_before(&group[b], &group[a]);
}

/* The sixteen among which the step after the next chooses. */
static inline void
prefetch_grandchildren(const struct sim_events *q, uint32_t first)
{
	uint32_t i, from = FIRST_CHILD(first);

	if (from + CHILDREN * CHILDREN > q->nb_slots)
		return;
	for (i = 0; i < CHILDREN * CHILDREN; i += CACHE_LINE / sizeof(struct sim_event))
		__builtin_prefetch(&q->slot[from + i]);
}

/* Put an event into the root, which is vacant, or below. */
static inline void
sink(struct sim_events *q, struct sim_event moving)
{
	uint32_t hole = SIM_EVENTS_ROOT, first, child;

	for (first = FIRST_CHILD(hole); first < q->end; first = FIRST_CHILD(hole)) {
		if (q->end > PREFETCH_SLOTS)
			prefetch_grandchildren(q, first);
		child = first + least_child(&q->slot[first]);
		if (!is_before(&q->slot[child], &moving))
			break;
		q->slot[hole] = q->slot[child];
		hole = child;
	}
	q->slot[hole] = moving;
	q->is_root_vacant = false;
}

/* Put an event behind the last one, or above. */
static inline void
rise(struct sim_events *q, struct sim_event moving)
{
	uint32_t hole;

	if (q->end == q->nb_slots)
		grow(q, 2 * q->nb_slots);
	hole = q->end++;
	while (hole > SIM_EVENTS_ROOT && is_before(&moving, &q->slot[PARENT(hole)])) {
		q->slot[hole] = q->slot[PARENT(hole)];
		hole = PARENT(hole);
	}
	q->slot[hole] = moving;
}

/* The root is vacant and nothing was pushed into it: the last event goes there. */
static inline void
settle(struct sim_events *q)
{
	struct sim_event last = q->slot[--q->end];

	mark_unused(&q->slot[q->end], 1);
	if (q->end == SIM_EVENTS_ROOT)
		q->is_root_vacant = false;
	else
		sink(q, last);
}

void
sim_events_push(struct sim_events *q, const struct sim_event *ev)
{
	struct sim_event moving = *ev;

	SAN_ASSERT(ev->at_ns != SAN_TIME_NEVER);
	moving.order = q->order++;
	if (q->is_root_vacant)
		sink(q, moving);
	else
		rise(q, moving);
}

bool
sim_events_pop(struct sim_events *q, struct sim_event *out)
{
	if (q->is_root_vacant)
		settle(q);
	if (q->end == SIM_EVENTS_ROOT)
		return false;
	*out = q->slot[SIM_EVENTS_ROOT];
	q->is_root_vacant = true;
	return true;
}

void
sim_events_check(const struct sim_events *q)
{
	uint32_t s;

	SAN_VERIFY(q->end >= SIM_EVENTS_ROOT && q->end <= q->nb_slots);
	SAN_VERIFY(!q->is_root_vacant || q->end > SIM_EVENTS_ROOT);
	SAN_VERIFY(q->nb_slots % CHILDREN == 0);
	for (s = SIM_EVENTS_ROOT; s < q->end; s++) {
		SAN_VERIFY(q->slot[s].order < q->order);
		/* A vacant root still shows what was popped, which was before all others. */
		if (s != SIM_EVENTS_ROOT)
			SAN_VERIFY(is_before(&q->slot[PARENT(s)], &q->slot[s]));
	}
	for (s = q->end; s < q->nb_slots; s++)
		SAN_VERIFY(q->slot[s].at_ns == UINT64_MAX && q->slot[s].order == UINT64_MAX);
}
