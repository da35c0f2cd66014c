/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "san_prng.h"
#include "sim_link.h"

#define MODEL_MAX 1000

static struct sim_events q;

static void
setup(void)
{
	san_sim_event_init(&q);
}

static void
teardown(void)
{
	san_sim_event_check(&q);
	san_sim_event_fini(&q);
}

static void
push(uint64_t at_ns, uint32_t obj)
{
	san_sim_event_push(&q, &(struct sim_event){.at_ns = at_ns, .obj = obj});
}

static void
assert_pop(uint64_t at_ns, uint32_t obj)
{
	struct sim_event ev;

	assert_true(san_sim_event_next_ns(&q) == at_ns);
	assert_true(san_sim_event_pop(&q, &ev));
	assert_true(ev.at_ns == at_ns);
	assert_int_equal(ev.obj, obj);
}

static void
assert_empty(void)
{
	struct sim_event ev;

	assert_int_equal(q.nb_events, 0);
	assert_true(san_sim_event_next_ns(&q) == SAN_TIME_NEVER);
	assert_false(san_sim_event_pop(&q, &ev));
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown);

UNIT_CASE(san_sim_event_init__empty)
{
	struct sim_event ev, before;

	assert_empty();
	memset(&ev, 0x5a, sizeof(ev));
	before = ev;
	assert_false(san_sim_event_pop(&q, &ev));
	assert_memory_equal(&ev, &before, sizeof(ev));
}

UNIT_CASE(san_sim_event_fini__with_events_in_it)
{
	/* The sanitizer must find no leak of these. */
	for (uint32_t i = 0; i < 1000; i++) {
		push(i, i);
		push(0, i);
	}
}

UNIT_CASE(san_sim_event_push__carries_every_field)
{
	const struct sim_event in = {
		.at_ns = 0x0102030405060708,
		.order = 99, /* not set by the caller */
		.arg = &q,
		.obj = 0xa1a2a3a4,
		.kind = 0xb1b2,
		.port = 0xc1c2,
	};
	struct sim_event out;

	push(5, 0);
	san_sim_event_push(&q, &in);
	assert_pop(5, 0);
	assert_true(san_sim_event_pop(&q, &out));
	assert_true(out.at_ns == in.at_ns);
	assert_true(out.order == 1);
	assert_ptr_equal(out.arg, in.arg);
	assert_int_equal(out.obj, in.obj);
	assert_int_equal(out.kind, in.kind);
	assert_int_equal(out.port, in.port);
	assert_empty();
}

UNIT_CASE(san_sim_event_push__ends_of_time)
{
	push(SAN_TIME_NEVER - 1, 1);
	push(1ULL << 63, 2);
	push(0, 3);
	push((1ULL << 63) - 1, 4);
	assert_pop(0, 3);
	assert_pop((1ULL << 63) - 1, 4);
	assert_pop(1ULL << 63, 2);
	assert_pop(SAN_TIME_NEVER - 1, 1);
	assert_empty();
}

UNIT_CASE(san_sim_event_pop__same_time_first_in_first_out)
{
	for (uint32_t i = 0; i < 100; i++)
		push(i % 2 == 0 ? 7 : 8, i);
	for (uint32_t i = 0; i < 100; i += 2)
		assert_pop(7, i);
	/* An event for the current time is queued behind those that wait. */
	push(8, 100);
	for (uint32_t i = 1; i < 100; i += 2)
		assert_pop(8, i);
	push(8, 101);
	assert_pop(8, 100);
	assert_pop(8, 101);
	assert_empty();
}

UNIT_CASE(san_sim_event_pop__pushes_between_pops)
{
	for (uint32_t i = 0; i < 10; i++)
		push(10 * i, i);
	assert_pop(0, 0);
	assert_int_equal(q.nb_events, 9);
	assert_true(san_sim_event_next_ns(&q) == 10);
	/* Before all, in the middle, after all. */
	push(3, 100);
	assert_int_equal(q.nb_events, 10);
	assert_pop(3, 100);
	push(55, 101);
	assert_pop(10, 1);
	push(1000, 102);
	for (uint32_t i = 2; i <= 5; i++)
		assert_pop(10 * i, i);
	assert_pop(55, 101);
	for (uint32_t i = 6; i < 10; i++)
		assert_pop(10 * i, i);
	assert_pop(1000, 102);
	assert_empty();
	push(1, 103);
	assert_pop(1, 103);
	assert_empty();
}

/* ---- against a plain list ---- */

static struct sim_event model[MODEL_MAX]; /* sorted */
static uint32_t nb_model;

static void
model_push(uint64_t at_ns, uint32_t obj)
{
	uint32_t at = nb_model++;

	for (; at > 0 && model[at - 1].at_ns > at_ns; at--)
		model[at] = model[at - 1];
	model[at] = (struct sim_event){.at_ns = at_ns, .obj = obj};
}

static void
model_pop(struct sim_event *out)
{
	*out = model[0];
	memmove(&model[0], &model[1], --nb_model * sizeof(model[0]));
}

static void
random_steps(uint64_t seed, uint32_t nb_steps, uint32_t range_ns)
{
	struct sim_event ev;
	struct san_prng g;
	uint64_t now_ns = 0;

	san_prng_seed(&g, seed);
	for (uint32_t i = 0; i < nb_steps; i++) {
		/* Grows and shrinks in turn. */
		bool is_push = san_prng_below(&g, 100) < (i / 700 % 2 == 0 ? 65 : 35);

		if (is_push && nb_model < MODEL_MAX) {
			/* The queue itself allows times in the past. */
			uint64_t at_ns = now_ns / 2 + san_prng_below(&g, range_ns);

			if (san_prng_below(&g, 5) == 0) /* behind what is there for now */
				at_ns = now_ns;
			push(at_ns, i);
			model_push(at_ns, i);
		} else if (nb_model > 0) {
			model_pop(&ev);
			now_ns = ev.at_ns;
			assert_pop(ev.at_ns, ev.obj);
		}
		assert_int_equal(q.nb_events, nb_model);
		assert_true(san_sim_event_next_ns(&q) ==
			    (nb_model > 0 ? model[0].at_ns : SAN_TIME_NEVER));
		san_sim_event_check(&q);
	}
}

UNIT_CASE(sim_events__like_a_sorted_list)
{
	static const uint32_t ranges_ns[] = {1, 2, 5, 100, 10000, UINT32_MAX};
	struct sim_event ev;

	for (uint32_t round = 0; round < 5; round++) {
		for (uint32_t i = 0; i < sizeof(ranges_ns) / sizeof(ranges_ns[0]); i++) {
			random_steps(round * 100 + i, 2500, ranges_ns[i]);
			while (nb_model > 0) {
				model_pop(&ev);
				assert_pop(ev.at_ns, ev.obj);
			}
			assert_empty();
		}
	}
}

UNIT_CASE(sim_events__grows)
{
	enum {
		NB = 200000
	};
	struct sim_event ev, last = {0};
	struct san_prng g;

	san_prng_seed(&g, 1);
	for (uint32_t i = 0; i < NB; i++)
		push(san_prng_below(&g, NB / 4), i);
	assert_int_equal(q.nb_events, NB);
	san_sim_event_check(&q);
	for (uint32_t i = 0; i < NB; i++) {
		assert_true(san_sim_event_pop(&q, &ev));
		/* The n-th push has order n. */
		assert_true(ev.order == ev.obj);
		assert_true(i == 0 || ev.at_ns > last.at_ns ||
			    (ev.at_ns == last.at_ns && ev.order > last.order));
		last = ev;
	}
	assert_empty();
}
