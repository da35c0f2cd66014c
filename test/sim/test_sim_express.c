/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Express is a short cut of the general path: with and without it, every host sends the same
 * packets at the same times. The scenarios have mostly ordinary packets, with one fault each, and
 * there are seeds of the swarm. (RT-42)
 */

#include "unit.h"
#include "unit/test_sim.h"

#include "sim_report.h"
#include "sim_swarm.h"

#define SEED_FIRST 1000
#define SEEDS      60

struct outcome {
	uint64_t hash, nb_rx, nb_tx; /* packets that took express */
};

static struct outcome
run(struct sim_conf *conf, bool express)
{
	static const struct sim_watch no_watch;
	struct sim_engine_sums sums;
	struct outcome out;
	struct sim_world *w;
	uint32_t i;

	conf->host.express = express;
	assert_int_equal(san_sim_world_create(conf, &no_watch, &w), 0);
	san_sim_world_run(w);
	test_sim_assert_fine(w);
	sums = w->dead_engines;
	for (i = 0; i < w->nb_hosts; i++)
		san_sim_report_engine(&sums, w->hosts[i].core);
	out = (struct outcome){
		.hash = w->hash,
		.nb_rx = sums.nb_express_rx,
		.nb_tx = sums.nb_express_tx,
	};
	assert_int_equal(san_sim_world_destroy(w), 0);
	return out;
}

static struct outcome
assert_equal(struct sim_conf *conf)
{
	struct outcome with = run(conf, true), without = run(conf, false);

	assert_int_equal(with.hash, without.hash);
	assert_int_equal(without.nb_rx + without.nb_tx, 0);
	return with;
}

static const char *const small[] = {
	"topology.type=star",
	"topology.hosts=4",
	"load.connections=6",
	"load.both-ways=yes",
	"load.depth=16",
	"load.size-min=1",
	"load.size-max=1200",
	"load.send=2",
	"load.push=2",
	"load.push-imm=1",
	"load.unordered=30 %",
	"host.pack=no",
	"run.duration=300 us",
	NULL,
};

/* Faults of some of the packets, added to *small*. */
static const char *const faults[][3] = {
	{"load.depth=16"},
	{"fault.f.kind=loss", "fault.f.rate=3 %"},
	{"fault.f.kind=reorder", "fault.f.rate=10 %", "fault.f.arg=5 us"},
	{"fault.f.kind=duplicate", "fault.f.rate=10 %", "fault.f.arg=5 us"},
	{"fault.f.kind=corrupt", "fault.f.rate=5 %"},
	{"fault.f.kind=forge", "fault.f.rate=20 %", "host.cc=dcqcn"},
	{"load.bad-key=3 %"},
	{"load.recv-delay=20 us"},
	{"load.revoke=50 us"},
	{"link.mark=4 KiB", "host.cc=dcqcn"},
	{"host.ipv6=yes"},
	{"host.wrap=yes"},
	{"host.rxns=8", "load.pull=2"},
	{"host.solicit=800"},
};

static void
sim_express__same_packets(void **state)
{
	struct sim_conf conf;
	struct outcome out;
	char err[256];
	size_t i, k;

	(void)state;
	for (i = 0; i < RTE_DIM(faults); i++) {
		test_sim_conf(&conf, small);
		for (k = 0; k < RTE_DIM(faults[i]) && faults[i][k] != NULL; k++)
			if (san_sim_conf_set(&conf, faults[i][k], err, sizeof(err)) != 0)
				fail_msg("%s", err);
		if (san_sim_conf_rules_check(&conf, err, sizeof(err)) != 0)
			fail_msg("%s", err);
		out = assert_equal(&conf);
		assert_true(out.nb_rx > 20 && out.nb_tx > 20);
	}
}

static void
sim_express__same_swarm(void **state)
{
	static struct sim_conf conf;
	struct outcome out, all = {0};
	uint32_t i;

	(void)state;
	for (i = 0; i < SEEDS; i += UNIT_EVERY) {
		san_sim_draw_swarm(SEED_FIRST + i, &conf);
		out = assert_equal(&conf);
		all.nb_rx += out.nb_rx;
		all.nb_tx += out.nb_tx;
	}
	assert_true(all.nb_rx > 1000 && all.nb_tx > 1000);
}

UNIT_TEST(test_sim_express)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim_express__same_packets),
		cmocka_unit_test(sim_express__same_swarm),
	};

	test_eal_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
