/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Scenarios from seeds, runs in separate processes, and shrinking. EAL is started only in those
 * processes, except for the last test.
 */

#include "test_sim.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim_world.h"
#include "unit.h"

#define SEEDS (2000 / UNIT_EVERY)

static struct sim_conf conf;
static char err[512];

/* A scenario as text, to be freed. */
static char *
print(const struct sim_conf *c)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	san_sim_conf_print(c, f);
	fclose(f);
	return text;
}

static void
scenario(const char *const *words)
{
	test_sim_conf(&conf, words);
}

/* The output of runs that must fail is discarded. */
static int
try_quietly(const struct sim_conf *c, struct sim_swarm_sum *sum)
{
	int rc, saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);

	dup2(null, STDERR_FILENO);
	rc = san_sim_swarm_try(c, sum, err, sizeof(err));
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(null);
	return rc;
}

/* ---- scenarios of seeds ---- */

UNIT_CASE(san_sim_draw_swarm__seed_decides)
{
	uint32_t same = 0;

	for (uint64_t seed = 0; seed < 200; seed++) {
		char *text[3];

		memset(&conf, 0xff, sizeof(conf));
		san_sim_draw_swarm(seed, &conf);
		text[0] = print(&conf);
		memset(&conf, 0x5a, sizeof(conf));
		san_sim_draw_swarm(seed, &conf);
		text[1] = print(&conf);
		assert_string_equal(text[0], text[1]);
		san_sim_draw_swarm(seed + 1, &conf);
		text[2] = print(&conf);
		same += strcmp(text[0], text[2]) == 0;
		free(text[0]);
		free(text[1]);
		free(text[2]);
	}
	assert_int_equal(same, 0);
}

/* As far as can be checked before it runs. */
static void
assert_is_scenario(uint64_t seed)
{
	const uint32_t mb = san_sim_world_mb(&conf);
	struct sim_world w = {.conf = conf};

	if (san_sim_conf_rules_check(&conf, err, sizeof(err)) != 0)
		fail_msg("seed %lu: %s", (unsigned long)seed, err);
	assert_int_equal(san_sim_topo_create(&w), 0);
	w.hosts = calloc(w.nb_hosts, sizeof(*w.hosts));
	assert_non_null(w.hosts);
	assert_int_equal(san_sim_fault_create(&w), 0);
	for (struct sim_fault_conf *f = conf.faults; f < &conf.faults[conf.nb_faults]; f++)
		assert_in_range(f->kind, SIM_FAULT_NONE + 1, SIM_FAULT_MAX - 1);
	assert_in_range(conf.load.ops, 1, 300);
	FAIL_IF(mb > SIM_EAL_SWARM_MB, "seed %lu: %u MB", (unsigned long)seed, mb);
	free(w.hosts);
	free(w.links);
}

UNIT_CASE(san_sim_draw_swarm__scenarios_are_right)
{
	uint32_t topo[SIM_TOPO_MAX] = {0}, fault[SIM_FAULT_MAX] = {0}, kind[SIM_KINDS] = {0};
	uint32_t cc[SAN_CC_MAX] = {0}, i;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		san_sim_draw_swarm(seed, &conf);
		assert_is_scenario(seed);
		topo[conf.topo.type]++;
		cc[conf.host.core.pdl.cc]++;
		for (i = 0; i < conf.nb_faults; i++)
			fault[conf.faults[i].kind]++;
		for (i = 0; i < SIM_KINDS; i++)
			kind[i] += conf.load.weights[i] != 0;
	}
	for (i = 0; i < SIM_TOPO_MAX; i++)
		assert_true(topo[i] > SEEDS / 20);
	for (i = 0; i < SAN_CC_MAX; i++)
		assert_true(cc[i] > SEEDS / 20);
	for (i = 1; i < SIM_FAULT_MAX; i++)
		assert_true(fault[i] > SEEDS / 20);
	for (i = 0; i < SIM_KINDS; i++)
		assert_true(kind[i] > SEEDS / 4);
}

/* None takes more than a second or two of CPU: what is refused, and written, repeatedly. */
UNIT_CASE(san_sim_draw_swarm__scenarios_are_short)
{
	const struct sim_load_conf *l = &conf.load;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		uint64_t sides, waiting;

		san_sim_draw_swarm(seed, &conf);
		sides = l->connections * (l->both_ways ? 2u : 1u);
		waiting = l->connections * RTE_MIN(l->ops, l->depth);
		if (l->ops > 4)
			assert_true(sides * l->ops * waiting / conf.host.core.tl.max_rxns < 100000);
		if (l->revoke_ns != 0)
			assert_true(conf.run.duration_ns / l->revoke_ns * sides * l->depth *
					    l->size_max <
				    10000000000);
	}
}

/* The printed scenario repeats the run: written and read, it is unchanged. */
UNIT_CASE(san_sim_draw_swarm__scenarios_can_be_written)
{
	char path[] = "/tmp/test_sim_swarm.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	for (uint64_t seed = 1; seed <= 300; seed++) {
		char *want, *got;
		FILE *f = fopen(path, "w");

		san_sim_draw_swarm(seed, &conf);
		want = print(&conf);
		fputs(want, f);
		fclose(f);
		san_sim_conf_default(&conf);
		FAIL_IF(san_sim_conf_file_load(&conf, path, err, sizeof(err)) != 0, "%s", err);
		got = print(&conf);
		assert_string_equal(got, want);
		free(got);
		free(want);
	}
	close(fd);
	unlink(path);
}

/* ---- one run ---- */

UNIT_CASE(san_sim_swarm_try__passes)
{
	struct sim_swarm_sum sum = {0}, again = {0};

	scenario(WORDS("run.duration=100 us", "fault.f.kind=loss", "fault.f.rate=1 %"));
	assert_int_equal(san_sim_swarm_try(&conf, &sum, err, sizeof(err)), 0);
	assert_string_equal(err, "");
	assert_int_equal(sum.nb_runs, 1);
	assert_int_equal(sum.nb_failed, 0);
	assert_int_equal(sum.nb_broken, 0);
	assert_true(sum.nb_events > 100 && sum.nb_ops > 10 && sum.nb_faults > 1);
	/* each in its own process, and all equal */
	assert_int_equal(san_sim_swarm_try(&conf, &again, err, sizeof(err)), 0);
	assert_memory_equal(&again, &sum, sizeof(sum));
	assert_int_equal(san_sim_swarm_try(&conf, &again, err, sizeof(err)), 0);
	assert_int_equal(again.nb_runs, 2);
	assert_int_equal(again.nb_events, 2 * sum.nb_events);
	assert_int_equal(again.hash, 2 * sum.hash);
	assert_int_equal(san_sim_swarm_try(&conf, NULL, err, sizeof(err)), 0);
}

UNIT_CASE(san_sim_swarm_try__counts_what_broke)
{
	struct sim_swarm_sum sum = {0};

	scenario(WORDS("run.duration=20 ms", "fault.f.kind=restart", "fault.f.where=host:1",
		       "fault.f.at=1 ms", "fault.f.for=1 ms", "load.reconnect=yes"));
	assert_int_equal(san_sim_swarm_try(&conf, &sum, err, sizeof(err)), 0);
	assert_int_not_equal(sum.nb_broken, 0);
}

UNIT_CASE(san_sim_swarm_try__fails)
{
	struct sim_swarm_sum sum = {0};

	scenario(WORDS("link.rate=10 Mb/s", "run.duration=1 ms", "run.settle=1 ms"));
	assert_int_equal(try_quietly(&conf, &sum), -EIO);
	assert_non_null(strstr(err, "progress: "));
	assert_int_equal(sum.nb_failed, 1);
}

/* An invalid scenario is not a failure of the transport. */
UNIT_CASE(san_sim_swarm_try__no_scenario)
{
	san_sim_conf_default(&conf);
	conf.load.weights[1] = 0;
	assert_int_equal(try_quietly(&conf, NULL), 0);
	scenario(WORDS("fault.f.kind=pause", "fault.f.where=host:2"));
	assert_int_equal(try_quietly(&conf, NULL), -EINVAL);
	assert_non_null(strstr(err, "could not be built"));
}

/* Scenarios with more memory than the swarm draws: for buffers and for records of them. */
UNIT_CASE(san_sim_swarm_try__large)
{
	scenario(WORDS("topology.type=star", "topology.hosts=40", "host.mbufs=1000",
		       "host.mtu=9000", "run.duration=10 us"));
	FAIL_IF(san_sim_swarm_try(&conf, NULL, err, sizeof(err)) != 0, "%s", err);
	scenario(WORDS("host.mtu=1500", "link.buffer=200 MiB", "load.connections=300",
		       "run.duration=10 us"));
	FAIL_IF(san_sim_swarm_try(&conf, NULL, err, sizeof(err)) != 0, "%s", err);
	scenario(WORDS("host.cam=4000000", "run.duration=10 us"));
	assert_true(san_sim_world_mb(&conf) > SIM_EAL_SWARM_MB);
	FAIL_IF(san_sim_swarm_try(&conf, NULL, err, sizeof(err)) != 0, "%s", err);
}

/* A run that takes hours: its process is ended for the CPU time that it used. */
UNIT_CASE(san_sim_swarm_try__does_not_end)
{
	const struct rlimit most = {.rlim_cur = 3, .rlim_max = 3}, none = {0};
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		setrlimit(RLIMIT_CPU, &most);
		setrlimit(RLIMIT_CORE, &none);
		scenario(WORDS("run.duration=3600 s", "load.connections=8", "load.depth=64"));
		_exit(try_quietly(&conf, NULL) != -EIO ||
		      strcmp(err, "the run does not end") != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- shrinking ---- */

/* Several things can be removed; the time to settle is too short, and stays. */
#define FAILING                                                                            \
	"link.rate=10 Mb/s", "run.duration=1 ms", "run.settle=1 ms", "topology.type=star", \
		"topology.hosts=6", "load.pattern=random", "load.connections=8",           \
		"load.both_ways=yes", "load.send=1", "load.pull=1", "load.unordered=50 %", \
		"load.bad_key=1 %", "host.poll=1 us", "host.clock_drift=0.0001", "load.ops=64"

UNIT_CASE(san_sim_swarm_shrink__smaller_and_still_failing)
{
	uint32_t kinds = 0;

	scenario(WORDS(FAILING, "fault.a.kind=loss", "fault.a.rate=1 %", "fault.b.kind=pause",
		       "fault.b.where=host:5", "fault.b.for=10 us"));
	assert_int_equal(try_quietly(&conf, NULL), -EIO);
	san_sim_swarm_shrink(&conf, err);
	assert_int_equal(try_quietly(&conf, NULL), -EIO);
	assert_non_null(strstr(err, "progress: "));
	assert_int_equal(conf.nb_faults, 0);
	assert_int_equal(conf.topo.hosts, 2);
	assert_int_equal(conf.topo.type, SIM_TOPO_PAIR);
	assert_int_equal(conf.load.connections, 1);
	assert_int_equal(conf.load.depth, 1);
	assert_int_equal(conf.load.ops, 1);
	assert_int_equal(conf.load.unordered_ppm + conf.load.bad_ppm + conf.host.poll_ns +
				 conf.host.clock_ppm_range + conf.load.both_ways,
			 0);
	for (uint32_t i = 0; i < SIM_KINDS; i++)
		kinds += conf.load.weights[i] != 0;
	assert_int_equal(kinds, 1);
	/* the cause of the failure is still there */
	assert_int_equal(conf.run.settle_ns, SAN_NS_PER_MS);
	assert_int_equal(conf.edge.rate_mbps, 10);
}

/* A fault that is needed stays, and the hosts that it names. */
UNIT_CASE(san_sim_swarm_shrink__keeps_what_it_needs)
{
	/* a peer of host 5 gets no answer, and gives up later than this run waits */
	scenario(WORDS("topology.type=star", "topology.hosts=8", "load.connections=8",
		       "load.pattern=permutation", "load.ops=2", "run.settle=1 s",
		       "run.duration=5 ms", "fault.a.kind=loss", "fault.a.rate=1 %",
		       "fault.b.kind=restart", "fault.b.where=host:5", "fault.b.for=30 s",
		       "fault.c.kind=pause", "fault.c.where=host:7", "fault.c.for=1 us"));
	assert_int_equal(try_quietly(&conf, NULL), -EIO);
	san_sim_swarm_shrink(&conf, err);
	assert_int_equal(try_quietly(&conf, NULL), -EIO);
	assert_int_equal(conf.nb_faults, 1);
	assert_string_equal(conf.faults[0].name, "b");
	assert_in_range(conf.topo.hosts, 6, 8);
	assert_int_equal(conf.load.ops, 1);
}

/* A failure for an unfair share needs two that share. */
UNIT_CASE(san_sim_swarm_shrink__unfair)
{
	scenario(WORDS("topology.type=star", "topology.hosts=5", "load.pattern=incast",
		       "load.connections=4", "run.duration=400 us", "load.stop_step=100 us",
		       "run.jain_min=1", "load.size_max=4 KiB", "load.size_min=4 KiB"));
	assert_int_equal(try_quietly(&conf, NULL), -EIO);
	assert_non_null(strstr(err, "fair: "));
	san_sim_swarm_shrink(&conf, err);
	assert_int_equal(try_quietly(&conf, NULL), -EIO);
	assert_non_null(strstr(err, "fair: "));
	assert_int_equal(conf.load.connections, 2);
}

/* If only one of two posted, it would fail for time: that is another failure. */
UNIT_CASE(san_sim_swarm_shrink__the_same_failure)
{
	scenario(WORDS("topology.type=star", "topology.hosts=3", "load.pattern=incast",
		       "load.connections=2", "load.ops=1", "load.depth=1", "load.size_max=1 MiB",
		       "load.size_min=1 MiB", "link.rate=1 Gb/s", "run.duration=1 ms",
		       "run.settle=12 ms", "run.jain_min=1", "load.start_step=100 ms"));
	assert_int_equal(try_quietly(&conf, NULL), -EIO);
	assert_non_null(strstr(err, "fair: "));
	san_sim_swarm_shrink(&conf, err);
	assert_int_equal(try_quietly(&conf, NULL), -EIO);
	assert_non_null(strstr(err, "fair: "));
	conf.load.start_step_ns = 0;
	assert_int_equal(try_quietly(&conf, NULL), -EIO);
	assert_non_null(strstr(err, "progress: "));
}

/* ---- determinism ---- */

/* In a new process, or in one that ran others before: the same packets at the same times. */
UNIT_CASE(san_sim_swarm_try__same_as_alone)
{
	static const struct sim_watch no_watch;
	static struct sim_conf confs[6];
	struct sim_swarm_sum sum[6] = {{0}};
	struct sim_world *w;

	for (uint32_t i = 0; i < 6; i++) {
		san_sim_draw_swarm(1000 + i, &confs[i]);
		assert_int_equal(san_sim_conf_rules_check(&confs[i], err, sizeof(err)), 0);
		if (san_sim_swarm_try(&confs[i], &sum[i], err, sizeof(err)) != 0)
			fail_msg("seed %u: %s", 1000 + i, err);
	}
	test_eal_init(); /* no separate process from here on */
	for (uint32_t again = 0; again < 2; again++) {
		for (uint32_t i = 0; i < 6; i++) {
			assert_int_equal(san_sim_world_create(&confs[i], &no_watch, &w), 0);
			san_sim_world_run(w);
			test_sim_assert_fine(w);
			assert_int_equal(w->hash, sum[i].hash);
			assert_int_equal(w->stats.nb_events, sum[i].nb_events);
			assert_int_equal(san_sim_world_destroy(w), 0);
		}
	}
}
