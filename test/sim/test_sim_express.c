/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Express is a short cut of the general path: with and without it, every host sends the same
 * packets at the same times, and its programs get the same completions. The bytes in memory are
 * those that were posted, which the simulator checks at each completion. There are scenarios of
 * mostly ordinary packets with one fault each, of small and of large messages, scenarios of small
 * messages drawn from seeds, and seeds of the swarm. (RT-42)
 */

#include "unit/test_sim.h"

#include <inttypes.h>

#include "san_prng.h"
#include "sim_world.h"

#define SEED_FIRST 1000
#define SEEDS      60
#define DRAWN      200

/* Completions that the programs of the simulator poll. */
static struct {
	const struct sim_world *world;
	uint64_t nb, hash;
} seen;

static uint64_t
hash_add(uint64_t hash, const void *data, size_t len)
{
	const uint64_t *word = data;

	assert_int_equal(len % sizeof(*word), 0);
	for (size_t i = 0; i < len / sizeof(*word); i++)
		hash = (hash ^ (hash >> 29) ^ word[i]) * 0x9e3779b97f4a7c15;
	return hash;
}

/* The linker puts this before the function (meson.build). */
uint32_t __real_san_ulp_cq_poll(struct san_ulp_cq *cq, struct san_ulp_wc *wc, uint32_t n);
uint32_t __wrap_san_ulp_cq_poll(struct san_ulp_cq *cq, struct san_ulp_wc *wc, uint32_t n);

uint32_t
__wrap_san_ulp_cq_poll(struct san_ulp_cq *cq, struct san_ulp_wc *wc, uint32_t n)
{
	n = __real_san_ulp_cq_poll(cq, wc, n);
	if (seen.world == NULL || n == 0)
		return n;
	seen.hash = hash_add(seen.hash, &seen.world->now_ns, sizeof(seen.world->now_ns));
	seen.hash = hash_add(seen.hash, wc, n * sizeof(*wc));
	seen.nb += n;
	return n;
}

struct outcome {
	uint64_t packets, completions, counters; /* hashes */
	uint64_t nb_completions;
	uint64_t nb_rx, nb_tx; /* packets that took express */
	uint64_t nb_packed;    /* packed packets received */
};

/* All counters of the hosts that run at the end, except those of express. */
static uint64_t
counters_of(const struct sim_world *w)
{
	uint64_t drops[SAN_DROP_MAX], hash = w->now_ns;
	struct san_ulp_stats ulp;
	struct san_tl_stats tl;

	for (uint32_t i = 0; i < w->nb_hosts; i++) {
		struct san_core *core = w->hosts[i].core;

		if (core == NULL)
			continue;
		ulp = *san_ulp_stats(san_core_ulp(core));
		tl = san_core_tl(core)->stats;
		ulp.nb_express_rx = tl.nb_express_tx = 0;
		san_core_drops(core, drops);
		hash = hash_add(hash, &san_core_pdl(core)->stats, sizeof(struct san_pdl_stats));
		hash = hash_add(hash, &tl, sizeof(tl));
		hash = hash_add(hash, &ulp, sizeof(ulp));
		hash = hash_add(hash, drops, sizeof(drops));
	}
	return hash;
}

static struct outcome
run(struct sim_conf *conf, bool express)
{
	static const struct sim_watch no_watch;
	struct sim_engine_sums sums;
	struct outcome out;
	struct sim_world *w;

	test_eal_init();
	conf->host.core.express = express;
	assert_int_equal(san_sim_world_create(conf, &no_watch, &w), 0);
	seen.world = w;
	seen.nb = seen.hash = 0;
	san_sim_world_run(w);
	seen.world = NULL;
	test_sim_assert_fine(w);
	sums = w->dead_engines;
	for (uint32_t i = 0; i < w->nb_hosts; i++)
		if (w->hosts[i].core != NULL)
			san_sim_report_engine(&sums, w->hosts[i].core);
	out = (struct outcome){
		.packets = w->hash,
		.completions = seen.hash,
		.counters = counters_of(w),
		.nb_completions = seen.nb,
		.nb_rx = sums.nb_express_rx,
		.nb_tx = sums.tl.nb_express_tx,
		.nb_packed = sums.tl.nb_packed_rx,
	};
	assert_int_equal(san_sim_world_destroy(w), 0);
	return out;
}

/* Runs a scenario with and without express; adds the packets that took it to *all*. */
static void
assert_equal(struct sim_conf *conf, const char *name, struct outcome *all)
{
	struct outcome with = run(conf, true), without = run(conf, false);

	if (with.packets != without.packets || with.completions != without.completions ||
	    with.counters != without.counters) {
		printf("# sansim --scenario FILE, with and without --set host.express=off:\n");
		san_sim_swarm_print(conf, name, stdout);
		fail_msg("%s: %s differ", name,
			 with.packets != without.packets                 ? "packets" :
				 with.completions != without.completions ? "completions" :
									   "counters");
	}
	assert_int_equal(without.nb_rx + without.nb_tx, 0);
	all->nb_completions += with.nb_completions;
	all->nb_rx += with.nb_rx;
	all->nb_tx += with.nb_tx;
	all->nb_packed += with.nb_packed;
}

static const char *const small[] = {"topology.type=star", "topology.hosts=4", "load.connections=6",
				    "load.both_ways=yes", "load.depth=16", "load.size_min=1",
				    "load.size_max=1200", "load.send=2", "load.push=2",
				    "load.push_imm=1", "load.unordered=30 %", "host.pack=no",
				    "run.duration=300 us", NULL};

/* Data waits for grants, and most of it arrives in bursts. */
static const char *const large[] = {"topology.type=star", "topology.hosts=3", "load.connections=4",
				    "load.both_ways=yes", "load.depth=4", "load.size_min=12 KiB",
				    "load.size_max=300 KiB", "load.send=1", "load.push=2",
				    "load.push_imm=1", "load.unordered=20 %", "host.poll=5 us",
				    "run.duration=2 ms", NULL};

/* Faults of some of the packets, added to *small* or *large*. */
static const char *const faults[][4] = {
	{"load.depth=16"},
	{"fault.f.kind=loss", "fault.f.rate=3 %"},
	{"fault.f.kind=reorder", "fault.f.rate=10 %", "fault.f.arg=5 us"},
	{"fault.f.kind=duplicate", "fault.f.rate=10 %", "fault.f.arg=5 us"},
	{"fault.f.kind=corrupt", "fault.f.rate=5 %"},
	{"fault.f.kind=forge", "fault.f.rate=20 %", "host.cc=dcqcn"},
	{"load.bad_key=3 %"},
	{"load.recv_delay=20 us"},
	{"load.revoke=50 us"},
	{"link.mark=4 KiB", "host.cc=dcqcn"},
	{"host.ipv6=yes"},
	{"host.wrap=yes"},
	{"host.rxns=8", "load.pull=2"},
	{"host.solicit=800"},
	{"host.incast=40 KiB", "link.delay=20 us"},
	{"load.relaxed=yes", "fault.f.kind=reorder", "fault.f.rate=10 %", "fault.f.arg=5 us"},
};

/* *packed*: small messages that wait together share packets. */
static void
same_packets(const char *const lines[], bool packed)
{
	struct outcome all;
	struct sim_conf conf;
	char err[256];

	for (size_t i = 0; i < RTE_DIM(faults); i++) {
		test_sim_conf(&conf, lines);
		if (packed && san_sim_conf_set(&conf, "host.pack=yes", err, sizeof(err)) != 0)
			fail_msg("%s", err);
		for (size_t k = 0; k < RTE_DIM(faults[i]) && faults[i][k] != NULL; k++)
			if (san_sim_conf_set(&conf, faults[i][k], err, sizeof(err)) != 0)
				fail_msg("%s", err);
		FAIL_IF(san_sim_conf_rules_check(&conf, err, sizeof(err)) != 0, "%s", err);
		all = (struct outcome){0};
		assert_equal(&conf, faults[i][0], &all);
		assert_true(all.nb_rx > 20 && (packed ? all.nb_packed : all.nb_tx) > 20);
	}
}

UNIT_CASE(sim_express__same_packets)
{
	same_packets(small, false);
}

UNIT_CASE(sim_express__same_packed)
{
	same_packets(small, true);
}

UNIT_CASE(sim_express__same_data)
{
	same_packets(large, false);
}

/* Small messages, of which most go by express. Rounds are long, so that many arrive together. */
static void
draw_small(uint64_t seed, struct sim_conf *conf)
{
	static const uint8_t kinds[] = {SIM_FAULT_LOSS, SIM_FAULT_DUPLICATE, SIM_FAULT_REORDER};
	static const uint64_t polls_ns[] = {500, 3000, 20000, 100000};
	static const uint32_t sizes[] = {64, 400, 1200, 3000};
	struct sim_load_conf *l = &conf->load;
	struct sim_host_conf *h = &conf->host;
	struct san_prng g;

	san_sim_conf_default(conf);
	san_prng_seed(&g, seed);
	conf->run.seed = seed;
	conf->run.duration_ns = SAN_NS_PER_S;
	conf->run.check_every = 0;
	conf->topo.type = SIM_TOPO_STAR;
	conf->topo.hosts = 2 + san_prng_below(&g, 2);
	conf->edge.delay_ns = 100 + san_prng_below(&g, 20000);
	conf->edge.rate_mbps = 10000;
	conf->edge.buffer_bytes = 64 << 10; /* mbufs take most of the time of so short a run */
	h->rx_ring = 256;
	h->nic_bytes = 8 << 10;
	h->conn.req_win = 32;
	h->conn.data_win = 128;
	h->poll_ns = polls_ns[san_prng_below(&g, RTE_DIM(polls_ns))];
	if (san_prng_below(&g, 3) != 0)
		h->core.cm.features = 0;
	if (san_prng_below(&g, 3) != 0)
		h->core.pdl.ack_every = (uint16_t)(2 + san_prng_below(&g, 15));
	l->pattern = SIM_PATTERN_INCAST;
	l->connections = 1 + san_prng_below(&g, 4);
	l->unordered_ppm = san_prng_below(&g, 3) == 0 ? SIM_PPM / 2 : 0;
	l->both_ways = san_prng_below(&g, 2) == 0;
	l->size_min = 1;
	l->size_max = sizes[san_prng_below(&g, RTE_DIM(sizes))];
	l->depth = 64;
	l->ops = 500;
	l->weights[0] = l->weights[1] = l->weights[2] = 4;
	l->weights[3] = san_prng_below(&g, 3) == 0;
	if (san_prng_below(&g, 3) == 0) { /* the longer ones wait for grants */
		h->core.tl.solicit_len = l->size_max / 4;
		h->core.tl.budget_bytes = 4 * l->size_max;
	}
	if (san_prng_below(&g, 3) == 0)
		l->recv_delay_ns = 20000;
	if (san_prng_below(&g, 2) == 0) {
		conf->nb_faults = 1;
		conf->faults[0] = (struct sim_fault_conf){
			.name = "f",
			.where = "all",
			.kind = kinds[san_prng_below(&g, RTE_DIM(kinds))],
			.rate_ppm = SIM_PPM / 50,
			.arg_ns = 5000,
		};
	}
}

UNIT_CASE(sim_express__same_small)
{
	static struct sim_conf conf;
	struct outcome all = {0};
	char name[32], err[256];

	for (uint32_t i = 0; i < DRAWN / UNIT_EVERY; i++) {
		draw_small(i, &conf);
		if (san_sim_conf_rules_check(&conf, err, sizeof(err)) != 0)
			fail_msg("seed %" PRIu32 ": %s", i, err);
		snprintf(name, sizeof(name), "small messages, seed %" PRIu32, i);
		assert_equal(&conf, name, &all);
	}
	assert_true(all.nb_rx > 5000 && all.nb_tx > 5000);
}

UNIT_CASE(sim_express__same_swarm)
{
	static struct sim_conf conf;
	struct outcome all = {0};
	char name[32];

	for (uint32_t i = 0; i < SEEDS; i += UNIT_EVERY) {
		san_sim_draw_swarm(SEED_FIRST + i, &conf);
		snprintf(name, sizeof(name), "swarm, seed %" PRIu32, SEED_FIRST + i);
		assert_equal(&conf, name, &all);
	}
	assert_true(all.nb_rx > 1000 && all.nb_tx > 1000);
}
