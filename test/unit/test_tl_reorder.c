/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include "unit.h"

#include <rte_hash.h>

#include "test_eal.h"
#include "tl_reorder.h"

#define ENTRIES 64

static struct rte_hash *table;
static struct san_cam cam, other;
static int values[4 * ENTRIES];

static void
setup(void)
{
	test_eal_init();
	table = san_tl_reorder_create_table("cam", ENTRIES, SOCKET_ID_ANY);
	assert_non_null(table);
	cam = (struct san_cam){.hash = table, .engine = 1};
	other = (struct san_cam){.hash = table, .engine = 2};
}

static void
teardown(void)
{
	rte_hash_free(table);
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown);

/* RT-19: an entry is found under its number, and taken once. */
UNIT_CASE(san_tl_reorder_take__once)
{
	assert_null(san_tl_reorder_take(&cam, 7, SAN_CAM_REQUEST, 100));
	assert_int_equal(san_tl_reorder_add(&cam, 7, SAN_CAM_REQUEST, 100, &values[0]), 0);
	assert_ptr_equal(san_tl_reorder_find(&cam, 7, SAN_CAM_REQUEST, 100), &values[0]);
	assert_ptr_equal(san_tl_reorder_take(&cam, 7, SAN_CAM_REQUEST, 100), &values[0]);
	assert_null(san_tl_reorder_take(&cam, 7, SAN_CAM_REQUEST, 100));
	assert_int_equal(cam.nb_used, 0);
	assert_int_equal(cam.nb_high, 1);
	assert_int_equal(cam.nb_inserts, 1);
	assert_int_equal(cam.nb_lookups, 4);
	assert_int_equal(cam.nb_hits, 2);
}

UNIT_CASE(san_tl_reorder_add__exists)
{
	assert_int_equal(san_tl_reorder_add(&cam, 7, SAN_CAM_GRANT, 1, &values[0]), 0);
	assert_int_equal(san_tl_reorder_add(&cam, 7, SAN_CAM_GRANT, 1, &values[1]), -EEXIST);
	assert_ptr_equal(san_tl_reorder_take(&cam, 7, SAN_CAM_GRANT, 1), &values[0]);
}

/* RULE-15: engine, CID, kind and number are the key, with every bit. */
UNIT_CASE(san_tl_reorder_find__each_part_of_the_key)
{
	assert_int_equal(san_tl_reorder_add(&cam, 7, SAN_CAM_REQUEST, 0xffffffff, &values[0]), 0);
	assert_null(san_tl_reorder_find(&other, 7, SAN_CAM_REQUEST, 0xffffffff));
	assert_null(san_tl_reorder_find(&cam, 7 | 1u << 31, SAN_CAM_REQUEST, 0xffffffff));
	assert_null(san_tl_reorder_find(&cam, 7, SAN_CAM_SOLICIT, 0xffffffff));
	assert_null(san_tl_reorder_find(&cam, 7, SAN_CAM_REQUEST, 0x7fffffff));
	assert_int_equal(san_tl_reorder_add(&other, 7, SAN_CAM_REQUEST, 0xffffffff, &values[1]), 0);
	assert_ptr_equal(san_tl_reorder_find(&cam, 7, SAN_CAM_REQUEST, 0xffffffff), &values[0]);
	assert_ptr_equal(san_tl_reorder_take(&other, 7, SAN_CAM_REQUEST, 0xffffffff), &values[1]);
	assert_ptr_equal(san_tl_reorder_take(&cam, 7, SAN_CAM_REQUEST, 0xffffffff), &values[0]);
}

/* RULE-8: a full table rejects, which is counted, and stays usable. */
UNIT_CASE(san_tl_reorder_add__full)
{
	uint32_t n = 0;

	while (san_tl_reorder_add(&cam, 7, SAN_CAM_REQUEST, n, &values[n]) == 0)
		n++;
	assert_in_range(n, ENTRIES, 4 * ENTRIES - 1);
	assert_int_equal(cam.nb_rejects, 1);
	assert_int_equal(cam.nb_used, n);
	assert_ptr_equal(san_tl_reorder_take(&cam, 7, SAN_CAM_REQUEST, 3), &values[3]);
	assert_int_equal(san_tl_reorder_add(&cam, 7, SAN_CAM_REQUEST, n, &values[n]), 0);
	for (uint32_t i = 0; i <= n; i++)
		assert_true((san_tl_reorder_take(&cam, 7, SAN_CAM_REQUEST, i) != NULL) == (i != 3));
	assert_int_equal(cam.nb_used, 0);
	assert_int_equal(cam.nb_high, n);
	assert_int_equal(rte_hash_count(table), 0);
}
