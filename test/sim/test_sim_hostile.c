/* SPDX-License-Identifier: BSD-3-Clause */
/* Silent and lying peers: what they hold is bounded, expires, and is not what others need. */

#include "pair.h"
#include "unit.h"

#define MIB (1u << 20)

/* RT-27, RT-35: a wrong key costs a request and its refusal, not a grant's worth of data. */
static void
sim_hostile__wrong_key_is_granted_nothing(void **state)
{
	static const uint8_t flags[] = {SAN_WR_SOLICITED, 0};
	struct world_conf conf;
	struct san_ulp_wc wc;
	struct san_ulp_wr wr;
	struct pair p;
	uint64_t before;
	uint32_t i;

	(void)state;
	world_conf_default(&conf);
	pair_open(&p, &conf, true, 4 * MIB);
	for (i = 0; i < RTE_DIM(flags); i++) {
		before = p.w->node[1].nb_rx;
		world_wr(&wr, SAN_WR_PUSH, p.a, 4 * MIB, (uint64_t)(uintptr_t)p.b,
			 p.kb ^ 0x40000000, i, flags[i]);
		world_post(p.w, p.qa, &wr);
		assert_int_equal(pair_wait(&p, true, false, &wc), SAN_ST_BAD_KEY);
		assert_int_equal(san_core_tl(p.w->node[1].core)->stats.nb_grants, 0);
		assert_true(p.w->node[1].nb_rx - before <= 4);
	}
	pair_close(&p);
}

UNIT_TEST(test_sim_hostile)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim_hostile__wrong_key_is_granted_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
