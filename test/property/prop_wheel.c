/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The timing wheel against a sorted list (RT-8, RT-20): same timers in the same
 * order, never early, at most one slot late, cancelled ones never.
 */

#include "prop.h"

#include "model_wheel.h"
#include "san_time.h"
#include "san_wheel.h"

#define SLOT_NS   (1ULL << SAN_WHEEL_SHIFT)
#define NB_STEPS  400
#define NB_TIMERS MODEL_WHEEL_MAX

static struct san_wheel wheel;
static struct san_timer timers[NB_TIMERS];
static struct model_wheel model;

/** All distances alike on a logarithmic scale: every level and beyond the last. */
static uint64_t
random_distance_ns(struct san_prng *g)
{
	uint32_t bits = san_prng_below(g, 46);

	return san_prng_u64(g) & ((1ULL << bits) - 1);
}

/** Poll at *now_ns* until nothing is due, or just once; both must agree. */
static void
poll_both(uint64_t now_ns, uint64_t *stand_ns, bool all)
{
	struct san_timer *t;

	do {
		bool due = model.nb > 0 && model.e[0].fires_ns <= now_ns / SLOT_NS * SLOT_NS;

		t = san_wheel_poll(&wheel, now_ns);
		PROP_CHECK((t != NULL) == due);
		if (t == NULL) {
			*stand_ns = now_ns / SLOT_NS * SLOT_NS;
			return;
		}
		PROP_CHECK(t == &timers[model.e[0].id]);
		PROP_CHECK(!san_wheel_timer_is_armed(t));
		PROP_CHECK(t->deadline_ns <= now_ns);
		*stand_ns = model.e[0].fires_ns;
		model_wheel_cancel(&model, model.e[0].id);
	} while (all);
}

static void
check_deadline(uint64_t stand_ns)
{
	uint64_t next = san_wheel_deadline_ns(&wheel);

	if (model.nb == 0) {
		PROP_CHECK(next == SAN_TIME_NEVER);
		return;
	}
	PROP_CHECK(next <= model.e[0].fires_ns);
	PROP_CHECK(next > stand_ns || model.e[0].fires_ns == stand_ns);
}

static void
run(uint64_t seed)
{
	struct san_prng g;
	uint64_t now, stand;

	san_prng_seed(&g, seed);
	memset(timers, 0, sizeof(timers));
	memset(&model, 0, sizeof(model));
	now = san_prng_u64(&g) >> (2 + san_prng_below(&g, 60));
	stand = now / SLOT_NS * SLOT_NS;
	san_wheel_init(&wheel, now);
	for (uint32_t step = 0; step < NB_STEPS; step++) {
		uint32_t what = san_prng_below(&g, 16);
		uint32_t id = san_prng_below(&g, NB_TIMERS);

		if (what < 8) {
			uint64_t at = now + random_distance_ns(&g);

			if (what == 0 && now > 5000)
				at = now - san_prng_below(&g, 5000);
			san_wheel_arm(&wheel, &timers[id], at);
			model_wheel_arm(&model, id, at, SLOT_NS, stand);
		} else if (what < 10) {
			san_wheel_cancel(&wheel, &timers[id]);
			model_wheel_cancel(&model, id);
		} else if (what < 12 && model.nb > 0) {
			/* Sleep as long as allowed. */
			now = san_time_min(san_wheel_deadline_ns(&wheel), model.e[0].fires_ns);
			now = now > stand ? now : stand;
			poll_both(now, &stand, true);
		} else {
			now += random_distance_ns(&g);
			poll_both(now, &stand, what != 12);
		}
		PROP_CHECK(wheel.nb_armed == model.nb);
		check_deadline(stand);
		san_wheel_check(&wheel);
	}
}

PROP_MAIN("wheel equals sorted list", run)
