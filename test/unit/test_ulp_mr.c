/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_ulp.h"

#define LEN  256
#define BASE 0x10000

static uint8_t mem[LEN];

/* Keys in the order that a test needs; the last one repeats. */
static const uint32_t *script;
static uint32_t script_left;

UNIT_FIXTURE(.setup = test_ulp_setup, .teardown = test_ulp_close);

static uint32_t
scripted(void *arg)
{
	uint32_t key = *script;

	if (script_left > 1) {
		script++;
		script_left--;
	}
	return key;
}

static void
follow(const uint32_t *keys, uint32_t n)
{
	script = keys;
	script_left = n;
	t.ulp->conf.secret32 = scripted;
}

static uint32_t
add(uint8_t rights, uint16_t pkey)
{
	uint32_t key;

	assert_int_equal(san_ulp_mr_add(t.ulp, mem, LEN, BASE, rights, pkey, &key), 0);
	return key;
}

static uint8_t
try_pull(uint32_t key, uint64_t addr, uint32_t length)
{
	struct san_tl_rxn r = {.type = SAN_TL_PULL, .slot = SLOT, .key = key, .addr = addr};

	r.length = length;
	return san_tl_ulp_pull_req(t.ulp, &r);
}

UNIT_CASE(san_ulp_mr_add__refuses_bad_arguments)
{
	uint32_t key;

	assert_int_equal(san_ulp_mr_add(t.ulp, NULL, 1, 0, 0, PKEY, &key), -EINVAL);
	assert_int_equal(san_ulp_mr_add(t.ulp, mem, 0, 0, 0, PKEY, &key), -EINVAL);
	assert_int_equal(san_ulp_mr_add(t.ulp, mem, LEN, 0, 0x8, PKEY, &key), -EINVAL);
	assert_int_equal(san_ulp_mr_add(t.ulp, mem, UINT64_MAX, 0, 0, PKEY, &key), -EINVAL);
	assert_int_equal(san_ulp_mr_add(t.ulp, mem, LEN, UINT64_MAX - LEN + 1, 0, PKEY, &key),
			 -EINVAL);
	assert_int_equal(san_ulp_mr_nb(t.ulp), 0);
	/* up to the very end is allowed */
	assert_int_equal(san_ulp_mr_add(t.ulp, mem, LEN, UINT64_MAX - LEN, 0, PKEY, &key), 0);
}

UNIT_CASE(san_ulp_mr_add__fills_the_table)
{
	uint32_t keys[16], key;

	for (uint32_t i = 0; i < 16; i++) {
		keys[i] = add(0, PKEY);
		assert_int_not_equal(keys[i], 0);
		for (uint32_t j = 0; j < i; j++)
			assert_int_not_equal(keys[i] & 15, keys[j] & 15);
		san_ulp_check(t.ulp);
	}
	assert_int_equal(san_ulp_mr_nb(t.ulp), 16);
	assert_int_equal(san_ulp_mr_add(t.ulp, mem, LEN, 0, 0, PKEY, &key), -ENOSPC);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(san_ulp_mr_del(t.ulp, keys[i]), 0);
	assert_int_equal(san_ulp_mr_nb(t.ulp), 0);
}

UNIT_CASE(san_ulp_mr_add__draws_again_on_collision)
{
	static const uint32_t keys[] = {0x2aaa0005, 0x3bbb0005, 0x4ccc0006};

	follow(keys, 3);
	assert_int_equal(add(0, PKEY), 0x2aaa0005);
	assert_int_equal(add(0, PKEY), 0x4ccc0006);
}

UNIT_CASE(san_ulp_mr_add__never_zero)
{
	static const uint32_t keys[] = {0, 0, 0x12340000};
	static const uint32_t zeros[] = {0};

	follow(keys, 3);
	assert_int_equal(add(0, PKEY), 0x12340000);
	assert_int_equal(san_ulp_mr_del(t.ulp, 0x12340000), 0);
	/* a generator that repeats itself ends the search, too */
	follow(zeros, 1);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_not_equal(add(0, PKEY), 0);
	san_ulp_check(t.ulp);
}

UNIT_CASE(san_ulp_mr_add__dead_key_stays_dead)
{
	static const uint32_t keys[] = {0x77770001, 0x77770001, 0x77770001, 0x68880001};
	static const uint32_t stuck[] = {0x68880001};
	uint32_t key;

	follow(keys, 4);
	key = add(RTSAN_REMOTE_PULL, PKEY);
	assert_int_equal(san_ulp_mr_del(t.ulp, key), 0);
	assert_int_equal(add(RTSAN_REMOTE_PULL, PKEY), 0x68880001);
	assert_int_equal(try_pull(key, BASE, 1), SAN_ST_ACCESS);
	follow(stuck, 1);
	assert_int_equal(san_ulp_mr_del(t.ulp, 0x68880001), 0);
	assert_int_not_equal(add(RTSAN_REMOTE_PULL, PKEY), 0x68880001);
	assert_int_equal(try_pull(0x68880001, BASE, 1), SAN_ST_ACCESS);
}

UNIT_CASE(san_ulp_mr_del__unknown_key)
{
	uint32_t key = add(0, PKEY);

	assert_int_equal(san_ulp_mr_del(t.ulp, 0), -ENOENT);
	assert_int_equal(san_ulp_mr_del(t.ulp, key ^ 0x10000), -ENOENT);
	assert_int_equal(san_ulp_mr_nb(t.ulp), 1);
	assert_int_equal(san_ulp_mr_del(t.ulp, key), 0);
	assert_int_equal(san_ulp_mr_del(t.ulp, key), -ENOENT);
}

/* RT-27: a refusal has the right status. */
UNIT_CASE(san_ulp_mr_access__key_and_partition)
{
	uint32_t mine = add(RTSAN_REMOTE_PULL, PKEY);
	uint32_t other = add(RTSAN_REMOTE_PULL, PKEY + 1);

	assert_int_equal(try_pull(mine, BASE, LEN), SAN_ST_OK);
	assert_int_equal(try_pull(mine ^ 0x80000000, BASE, LEN), SAN_ST_ACCESS);
	assert_int_equal(try_pull(0, BASE, LEN), SAN_ST_ACCESS);
	/* RT-29: a region of another partition does not exist */
	assert_int_equal(try_pull(other, BASE, LEN), SAN_ST_ACCESS);
	assert_int_equal(san_ulp_mr_del(t.ulp, mine), 0);
	assert_int_equal(try_pull(mine, BASE, LEN), SAN_ST_ACCESS);
	assert_int_equal(san_ulp_stats(t.ulp)->nb_key_errors, 4);
}

UNIT_CASE(san_ulp_mr_access__bounds)
{
	static const struct {
		uint64_t addr;
		uint32_t length;
		uint8_t status;
	} cases[] = {
		{BASE, LEN, SAN_ST_OK},
		{BASE, 0, SAN_ST_OK},
		{BASE + LEN, 0, SAN_ST_OK},
		{BASE + LEN - 1, 1, SAN_ST_OK},
		{BASE, LEN + 1, SAN_ST_ACCESS},
		{BASE + 1, LEN, SAN_ST_ACCESS},
		{BASE + LEN, 1, SAN_ST_ACCESS},
		{BASE + LEN + 1, 0, SAN_ST_ACCESS},
		{BASE - 1, 2, SAN_ST_ACCESS},
		{BASE - 1, 0, SAN_ST_ACCESS},
		{0, 1, SAN_ST_ACCESS},
		{UINT64_MAX, 1, SAN_ST_ACCESS},
		{UINT64_MAX - 10, UINT32_MAX, SAN_ST_ACCESS}, /* the end wraps */
		{BASE + 1, UINT32_MAX, SAN_ST_ACCESS},
	};
	uint32_t key = add(RTSAN_REMOTE_PULL, PKEY);
	uint32_t nb_bad = 0;

	UNIT_EACH(r, cases) {
		assert_int_equal(try_pull(key, r->addr, r->length), r->status);
		nb_bad += r->status == SAN_ST_ACCESS;
	}
	assert_int_equal(san_ulp_stats(t.ulp)->nb_bounds_errors, nb_bad);
}

UNIT_CASE(san_ulp_mr_access__each_right_alone)
{
	for (uint8_t rights = 0; rights < 8; rights++) {
		uint32_t key;
		struct san_tl_rxn push, pull = {.slot = SLOT, .length = 8};
		struct san_tl_rxn atomic = {.slot = SLOT, .op = SAN_ATOMIC_FETCH_ADD};
		uint64_t word[1] = {0};

		assert_int_equal(san_ulp_mr_add(t.ulp, word, 8, 0, rights, PKEY, &key), 0);
		push = test_push(SAN_KIND_PUSH, 8, key, 0);
		pull.key = key;
		atomic.key = key;
		assert_int_equal(san_tl_ulp_push_req(t.ulp, &push),
				 rights & RTSAN_REMOTE_PUSH ? SAN_ST_OK : SAN_ST_ACCESS);
		assert_int_equal(san_tl_ulp_pull_req(t.ulp, &pull),
				 rights & RTSAN_REMOTE_PULL ? SAN_ST_OK : SAN_ST_ACCESS);
		assert_int_equal(san_tl_ulp_atomic(t.ulp, &atomic),
				 rights & RTSAN_REMOTE_ATOMIC ? SAN_ST_OK : SAN_ST_ACCESS);
		assert_int_equal(san_ulp_mr_del(t.ulp, key), 0);
	}
	assert_int_equal(san_ulp_stats(t.ulp)->nb_rights_errors, 12);
}

/* A region on several lcores has one key. (SYS-1) */
UNIT_CASE(san_ulp_mr_copy__same_key)
{
	uint32_t key = add(RTSAN_REMOTE_PULL, PKEY);
	struct san_ulp_conf conf;
	struct san_ulp *other;

	test_ulp_conf(&conf);
	assert_int_equal(san_ulp_create(&conf, &other), 0);
	assert_int_equal(san_ulp_mr_copy(other, mem, LEN, BASE, RTSAN_REMOTE_PULL, PKEY, key), 0);
	assert_int_equal(san_ulp_mr_copy(other, mem, LEN, BASE, RTSAN_REMOTE_PULL, PKEY, key),
			 -EEXIST);
	assert_int_equal(san_ulp_mr_copy(other, mem, 0, BASE, RTSAN_REMOTE_PULL, PKEY, key + 1),
			 -EINVAL);
	assert_int_equal(san_ulp_mr_nb(other), 1);
	san_ulp_check(other);
	assert_int_equal(san_ulp_mr_del(other, key), 0);
	assert_int_equal(try_pull(key, BASE, 1), SAN_ST_OK);
	san_ulp_destroy(other);
}

/* Keys of streams' regions cannot be keys of applications' regions on another lcore. */
UNIT_CASE(san_ulp_mr_copy__not_a_streams_key)
{
	assert_int_equal(san_ulp_mr_copy(t.ulp, mem, LEN, BASE, RTSAN_REMOTE_PULL, PKEY,
					 SAN_ULP_KEY_STREAM | 1),
			 -EINVAL);
}

/* AFC-24: neither kind takes places of the other, whatever keys are drawn. */
UNIT_CASE(san_ulp_mr_add_stream__beside_programs)
{
	static const uint32_t stuck[] = {0x80000003};
	uint32_t keys[4], key, nb_programs = 0;

	follow(stuck, 1);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(san_ulp_mr_add_stream(t.ulp, t.qp, mem, LEN, RTSAN_REMOTE_PUSH,
						       &keys[i]),
				 0);
		assert_int_not_equal(keys[i] & SAN_ULP_KEY_STREAM, 0);
		san_ulp_check(t.ulp);
	}
	assert_int_equal(san_ulp_mr_add_stream(t.ulp, t.qp, mem, LEN, 0, &key), -ENOSPC);
	while (san_ulp_mr_add(t.ulp, mem, LEN, BASE, 0, PKEY, &key) == 0) {
		assert_int_equal(key & SAN_ULP_KEY_STREAM, 0);
		nb_programs++;
	}
	assert_int_equal(nb_programs, 16);
	assert_int_equal(san_ulp_mr_nb(t.ulp), 20);
	san_ulp_check(t.ulp);
	assert_int_equal(san_ulp_mr_del(t.ulp, keys[1]), 0);
	assert_int_equal(san_ulp_mr_del(t.ulp, keys[1]), -ENOENT);
	assert_int_equal(san_ulp_mr_add(t.ulp, mem, LEN, BASE, 0, PKEY, &key), -ENOSPC);
	assert_int_equal(san_ulp_mr_add_stream(t.ulp, t.qp, mem, LEN, 0, &key), 0);
	assert_int_not_equal(key, keys[1]);
	san_ulp_check(t.ulp);
}

/* The peer addresses bytes by their offset; work of the application cannot use it at all. */
UNIT_CASE(san_ulp_mr_add_stream__peer_only)
{
	const struct san_ulp_qp_conf conf = {t.send_cq, t.recv_cq, 4, 4, 0};
	uint32_t key, program, other;

	assert_int_equal(san_ulp_mr_add_stream(t.ulp, t.qp, mem, 0, 0, &key), -EINVAL);
	assert_int_equal(san_ulp_mr_add_stream(t.ulp, t.qp, mem, LEN, RTSAN_REMOTE_PULL, &key), 0);
	assert_int_equal(try_pull(key, 0, LEN), SAN_ST_OK);
	assert_int_equal(try_pull(key, 1, LEN), SAN_ST_ACCESS);
	assert_null(san_ulp_mr_find(t.ulp, key, 0, 0, 1));
	/* regions of an application are not accessible after it has ended */
	program = add(RTSAN_REMOTE_PULL, PKEY);
	assert_int_equal(try_pull(program, BASE, LEN), SAN_ST_OK);
	san_ulp_qp_disown(t.ulp, t.qp);
	assert_int_equal(try_pull(program, BASE, LEN), SAN_ST_ACCESS);
	assert_int_equal(try_pull(key, 0, LEN), SAN_ST_OK);
	/* another queue pair with the same peer is not the same */
	san_ulp_qp_unbind(t.ulp, t.qp);
	assert_int_equal(san_ulp_qp_create(t.ulp, &conf, &other), 0);
	assert_int_equal(san_ulp_qp_bind(t.ulp, other, SLOT, PKEY, &peer), 0);
	assert_int_equal(try_pull(key, 0, LEN), SAN_ST_ACCESS);
	san_ulp_qp_unbind(t.ulp, other);
	assert_int_equal(san_ulp_qp_bind(t.ulp, t.qp, SLOT, PKEY, &peer), 0);
	san_ulp_qp_unbind(t.ulp, t.qp);
	assert_int_equal(san_ulp_mr_add_stream(t.ulp, t.qp, mem, LEN, 0, &key), -EINVAL);
	assert_int_equal(san_ulp_mr_add_stream(t.ulp, t.qp + 1, mem, LEN, 0, &key), -EINVAL);
	assert_int_equal(san_ulp_qp_bind(t.ulp, t.qp, SLOT, PKEY, &peer), 0);
}
