/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A timer is on the lowest level on which its tick and the current tick share all higher digits (a
 * digit is 8 bits). Level 0 has the rest of the current block of 256 ticks, level 1 the later
 * blocks of the current 65536, and so on. So lower levels are always earlier than higher ones, and
 * a slot is never shared by two turns of the wheel. The place of a timer follows from its deadline
 * and the current tick alone, so it is not stored.
 *
 * When the tick enters a slot of a higher level, the timers of this slot are distributed to the
 * levels below in list order, before any timer can be armed there directly. So timers of one slot
 * stay in the order in which they were armed. If the level were chosen by distance, as in most
 * wheels, a timer could overtake one that was armed before.
 *
 * Timers beyond level 3, which covers 2^32 ticks (73 minutes), wait in slot 0 of level 3. No tick
 * of the current turn needs this slot, because the slot of the current digit is always empty.
 */

#include "san_assert.h"
#include "san_time.h"
#include "san_wheel.h"

#define DIGIT_BITS 8
#define DIGIT_MASK (SAN_WHEEL_SLOTS - 1)
#define TURN_BITS  (DIGIT_BITS * SAN_WHEEL_LEVELS)
#define NO_TICK    UINT64_MAX

struct place {
	uint32_t level;
	uint32_t slot;
	uint64_t event; /* tick at which the slot is due or must be distributed */
};

/** First tick that starts at or after *deadline_ns*: rounded up, so never early. */
static uint64_t
tick_of(uint64_t deadline_ns)
{
	uint64_t part = deadline_ns & ((1ULL << SAN_WHEEL_SHIFT) - 1);

	return (deadline_ns >> SAN_WHEEL_SHIFT) + (part != 0);
}

static uint32_t
wheel_digit(uint64_t tick, uint32_t level)
{
	return (tick >> (DIGIT_BITS * level)) & DIGIT_MASK;
}

static struct place
wheel_place_of(const struct san_wheel *w, const struct san_timer *t)
{
	uint64_t tick = tick_of(t->deadline_ns), differ;
	uint32_t level, shift;

	/* an overdue timer goes into the current slot, which must be empty before the next one */
	if (tick < w->tick)
		tick = w->tick;
	differ = tick ^ w->tick;
	if (differ >> TURN_BITS != 0)
		return (struct place){SAN_WHEEL_LEVELS - 1, 0,
				      ((w->tick >> TURN_BITS) + 1) << TURN_BITS};
	level = (63 - (uint32_t)__builtin_clzll(differ | 1)) / DIGIT_BITS;
	shift = DIGIT_BITS * level;
	return (struct place){level, wheel_digit(tick, level), tick >> shift << shift};
}

static uint64_t
wheel_slot_append(struct san_wheel *w, struct san_timer *t)
{
	struct place p = wheel_place_of(w, t);

	TAILQ_INSERT_TAIL(&w->slot[p.level][p.slot], t, link);
	w->occupied[p.level][p.slot >> 6] |= 1ULL << (p.slot & 63);
	return p.event;
}

static void
unlink_timer(struct san_wheel *w, struct san_timer *t)
{
	struct place p = wheel_place_of(w, t);
	struct san_timers *slot = &w->slot[p.level][p.slot];

	SAN_ASSERT(TAILQ_NEXT(t, link) != NULL || TAILQ_LAST(slot, san_timers) == t);
	TAILQ_REMOVE(slot, t, link);
	if (TAILQ_EMPTY(slot))
		w->occupied[p.level][p.slot >> 6] &= ~(1ULL << (p.slot & 63));
	t->link.tqe_prev = NULL;
	w->nb_armed--;
}

/** First occupied slot from *from* on, or SAN_WHEEL_SLOTS. */
static uint32_t
first_occupied(const uint64_t *occupied, uint32_t from)
{
	uint32_t i = from >> 6;
	uint64_t v;

	if (from >= SAN_WHEEL_SLOTS)
		return SAN_WHEEL_SLOTS;
	v = occupied[i] & (UINT64_MAX << (from & 63));
	while (v == 0) {
		if (++i == SAN_WHEEL_SLOTS / 64)
			return SAN_WHEEL_SLOTS;
		v = occupied[i];
	}
	return i * 64 + (uint32_t)__builtin_ctzll(v);
}

/** Next tick, the current one included, at which a slot is due or must be distributed. */
static uint64_t
wheel_next_event(const struct san_wheel *w)
{
	uint32_t level, slot;

	if (w->nb_armed == 0)
		return NO_TICK;
	for (level = 0; level < SAN_WHEEL_LEVELS; level++) {
		uint32_t from = wheel_digit(w->tick, level) + (level > 0);
		uint32_t shift = DIGIT_BITS * level;

		slot = first_occupied(w->occupied[level], from);
		if (slot < SAN_WHEEL_SLOTS) {
			uint64_t higher = w->tick >> (shift + DIGIT_BITS) << (shift + DIGIT_BITS);

			return higher | (uint64_t)slot << shift;
		}
	}
	return ((w->tick >> TURN_BITS) + 1) << TURN_BITS;
}

static void
deal_out(struct san_wheel *w, uint32_t level, uint32_t slot)
{
	struct san_timer *t = TAILQ_FIRST(&w->slot[level][slot]), *next;

	TAILQ_INIT(&w->slot[level][slot]);
	w->occupied[level][slot >> 6] &= ~(1ULL << (slot & 63));
	for (; t != NULL; t = next) {
		next = TAILQ_NEXT(t, link);
		wheel_slot_append(w, t);
	}
}

void
san_wheel_init(struct san_wheel *w, uint64_t now_ns)
{
	uint32_t level, slot;

	*w = (struct san_wheel){.tick = now_ns >> SAN_WHEEL_SHIFT, .due = NO_TICK};
	for (level = 0; level < SAN_WHEEL_LEVELS; level++)
		for (slot = 0; slot < SAN_WHEEL_SLOTS; slot++)
			TAILQ_INIT(&w->slot[level][slot]);
}

void
san_wheel_arm(struct san_wheel *w, struct san_timer *t, uint64_t deadline_ns)
{
	if (san_wheel_timer_is_armed(t))
		unlink_timer(w, t);
	t->deadline_ns = deadline_ns;
	w->nb_armed++;
	w->due = san_time_min(w->due, wheel_slot_append(w, t));
}

void
san_wheel_cancel(struct san_wheel *w, struct san_timer *t)
{
	if (san_wheel_timer_is_armed(t))
		unlink_timer(w, t);
}

struct san_timer *
san_wheel_take(struct san_wheel *w, uint64_t now_ns)
{
	uint64_t target = now_ns >> SAN_WHEEL_SHIFT;

	for (;;) {
		struct san_timer *t = TAILQ_FIRST(&w->slot[0][wheel_digit(w->tick, 0)]);
		uint64_t next, differ;
		uint32_t level;

		if (t != NULL) {
			unlink_timer(w, t);
			return t;
		}
		next = wheel_next_event(w);
		w->due = next;
		if (next > target) {
			if (target > w->tick)
				w->tick = target;
			return NULL;
		}
		/* before *next* no slot is due or must be distributed */
		differ = w->tick ^ next;
		w->tick = next;
		for (level = SAN_WHEEL_LEVELS - 1; level > 0; level--)
			if (differ >> (DIGIT_BITS * level) != 0)
				deal_out(w, level, wheel_digit(next, level));
	}
}

uint64_t
san_wheel_deadline_ns(const struct san_wheel *w)
{
	uint64_t next = wheel_next_event(w);

	/* The last turn ends where the nanoseconds wrap. */
	if (next > SAN_TIME_NEVER >> SAN_WHEEL_SHIFT)
		return SAN_TIME_NEVER;
	return next << SAN_WHEEL_SHIFT;
}

static uint32_t
wheel_check_slot(const struct san_wheel *w, uint32_t level, uint32_t slot)
{
	const struct san_timers *line = &w->slot[level][slot];
	bool occupied = (w->occupied[level][slot >> 6] >> (slot & 63)) & 1;
	struct san_timer *const *prev = &line->tqh_first;
	const struct san_timer *t;
	uint32_t n = 0;

	SAN_VERIFY(occupied == !TAILQ_EMPTY(line));
	TAILQ_FOREACH(t, line, link) {
		struct place p = wheel_place_of(w, t);

		SAN_VERIFY(t->link.tqe_prev == prev);
		SAN_VERIFY(p.level == level && p.slot == slot);
		prev = &t->link.tqe_next;
		n++;
	}
	SAN_VERIFY(line->tqh_last == prev);
	return n;
}

void
san_wheel_check(const struct san_wheel *w)
{
	uint32_t level, slot;
	uint32_t n = 0;

	for (level = 0; level < SAN_WHEEL_LEVELS; level++)
		for (slot = 0; slot < SAN_WHEEL_SLOTS; slot++)
			n += wheel_check_slot(w, level, slot);
	SAN_VERIFY(n == w->nb_armed);
	SAN_VERIFY(w->due <= wheel_next_event(w));
}
