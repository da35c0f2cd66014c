/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include "unit.h"
#include "san_pool.h"

#define NB 5

struct object {
	uint64_t a, b, c;
};

static struct object objs[NB];
static struct san_pool pool;

static void
setup(void)
{
	assert_int_equal(san_pool_create(&pool, NULL, objs, NB, sizeof(objs[0])), 0);
}

static void
teardown(void)
{
	san_pool_destroy(&pool, NULL);
}

#define TEST(name) UNIT_CASE_OWN(name, setup, teardown)

TEST(san_pool_take__by_address)
{
	for (uint32_t i = 0; i < NB; i++) {
		assert_int_equal(pool.nb, NB - i);
		assert_ptr_equal(san_pool_take(&pool), &objs[i]);
	}
	assert_int_equal(pool.nb, 0);
}

TEST(san_pool_give_all__like_give)
{
	void *taken[3];

	for (uint32_t i = 3; i-- > 0;)
		taken[i] = san_pool_take(&pool);
	san_pool_give_all(&pool, taken, 3);
	assert_int_equal(pool.nb, NB);
	for (uint32_t i = 0; i < 3; i++)
		assert_ptr_equal(san_pool_take(&pool), &objs[i]);
}

TEST(san_pool_give__last_is_taken_first)
{
	while (pool.nb != 0)
		san_pool_take(&pool);
	san_pool_give(&pool, &objs[3]);
	san_pool_give(&pool, &objs[1]);
	assert_int_equal(pool.nb, 2);
	assert_ptr_equal(san_pool_take(&pool), &objs[1]);
	san_pool_give(&pool, &objs[4]);
	assert_ptr_equal(san_pool_take(&pool), &objs[4]);
	assert_ptr_equal(san_pool_take(&pool), &objs[3]);
	assert_int_equal(pool.nb, 0);
}

UNIT_CASE(san_pool_create__of_nothing)
{
	struct san_pool none;

	assert_int_equal(san_pool_create(&none, NULL, objs, 0, sizeof(objs[0])), 0);
	assert_int_equal(none.nb, 0);
	san_pool_destroy(&none, NULL);
	assert_int_equal(san_pool_create(&none, NULL, NULL, NB, sizeof(objs[0])), -ENOMEM);
	san_pool_destroy(&none, NULL);
}
