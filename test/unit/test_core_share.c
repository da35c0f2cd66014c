/* SPDX-License-Identifier: BSD-3-Clause */

/* Limits for streams of a core: all of them, those of one user, and orphaned ones. */

#include "unit.h"
#include "core_priv.h"

#define ALICE 1000
#define BOB   1001
#define MEM   1000
#define USER  600

static struct san_core core;

static void
setup(void)
{
	core = (struct san_core){
		.conf.stream_mem = MEM,
		.conf.stream_mem_user = USER,
		.conf.ulp.max_qps = 8,
	};
}

UNIT_FIXTURE(.setup = setup);

/* In the core, core_stream.c counts the streams. */
static void
add(struct core_share *share, uint32_t user)
{
	assert_int_equal(san_core_share_init(&core, share, user), 0);
	core.use.nb++;
	san_core_share_check(&core);
}

static void
del(struct core_share *share)
{
	san_core_share_give(&core, share, share->bytes);
	san_core_share_fini(&core, share);
	core.use.nb--;
	san_core_share_check(&core);
}

static bool
take(struct core_share *share, uint64_t bytes)
{
	bool taken = san_core_share_take(&core, share, bytes);

	san_core_share_check(&core);
	return taken;
}

static bool
orphan(struct core_share *share)
{
	bool may = san_core_share_may_linger(&core, share);

	if (may)
		san_core_share_orphan(&core, share);
	san_core_share_check(&core);
	return may;
}

UNIT_CASE(take__of_one_user)
{
	struct core_share a, b, c;

	add(&a, ALICE);
	add(&b, ALICE);
	add(&c, BOB);
	assert_true(take(&a, USER - 1));
	assert_false(take(&b, 2));
	assert_true(take(&b, 1));
	assert_false(take(&a, 1));
	/* Bob can have what is left of the total */
	assert_false(take(&c, MEM - USER + 1));
	assert_true(take(&c, MEM - USER));
	assert_int_equal(san_core_share_use(&core)->bytes, MEM);
	san_core_share_give(&core, &a, 100);
	assert_true(take(&c, 100));
	del(&a);
	del(&b);
	del(&c);
	assert_int_equal(san_core_share_use(&core)->bytes, 0);
	assert_true(LIST_EMPTY(&core.users));
}

/* The owner of the core may use all of it, and orphan as much. */
UNIT_CASE(take__alone)
{
	struct core_share s[9];

	for (uint32_t i = 0; i < 9; i++)
		add(&s[i], SAN_CORE_ALONE);
	assert_true(take(&s[0], MEM));
	assert_false(take(&s[0], 1));
	for (uint32_t i = 0; i < 9; i++)
		assert_true(orphan(&s[i]));
	for (uint32_t i = 0; i < 9; i++)
		del(&s[i]);
}

/* A user that ends and returns still pays for its orphans. */
UNIT_CASE(orphan__counts_for_its_user)
{
	struct core_share left, next;

	add(&left, ALICE);
	assert_true(take(&left, 400));
	assert_true(orphan(&left));
	assert_int_equal(san_core_share_user_orphans(&core, ALICE), 1);
	assert_int_equal(san_core_share_user_orphans(&core, BOB), 0);
	add(&next, ALICE);
	assert_false(take(&next, USER - 400 + 1));
	assert_true(take(&next, USER - 400));
	del(&left);
	assert_int_equal(san_core_share_use(&core)->nb_orphans, 0);
	assert_int_equal(san_core_share_use(&core)->orphan_bytes, 0);
	assert_int_equal(san_core_share_user_orphans(&core, ALICE), 0);
	assert_true(take(&next, 400));
	del(&next);
}

UNIT_CASE(orphan__half_of_the_memory)
{
	struct core_share a, b;

	add(&a, ALICE);
	add(&b, BOB);
	assert_true(take(&a, MEM / 2 - 10));
	assert_true(take(&b, 11));
	assert_true(orphan(&a));
	assert_false(orphan(&b));
	san_core_share_give(&core, &b, 1);
	assert_true(orphan(&b));
	assert_int_equal(san_core_share_use(&core)->orphan_bytes, MEM / 2);
	/* nor may they grow beyond it */
	assert_false(take(&b, 1));
	del(&a);
	assert_true(take(&b, 1));
	del(&b);
}

UNIT_CASE(orphan__half_of_the_queue_pairs)
{
	struct core_share s[5];

	for (uint32_t i = 0; i < 5; i++)
		add(&s[i], ALICE + i);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(orphan(&s[i]));
	assert_false(orphan(&s[4]));
	del(&s[0]);
	assert_true(orphan(&s[4]));
	for (uint32_t i = 1; i < 5; i++)
		del(&s[i]);
}
