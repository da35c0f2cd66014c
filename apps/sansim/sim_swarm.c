/* SPDX-License-Identifier: BSD-3-Clause */

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim_world.h"

#define RUN_SECONDS   600 /* CPU time; a longer run is considered hung */
#define SHRINK_ROUNDS 4
#define REASON_MAX    200 /* line length of an INI file */

/** A worker's result of a run; shorter than PIPE_BUF, so that it is written at once. */
struct verdict {
	struct sim_swarm_sum sum; /* of this run */
	bool unbuilt;             /* the run could not be built */
	char why[256];
};

struct worker {
	pid_t pid;
	int fd;        /* pipe with verdicts; -1: it has ended */
	uint64_t next; /* index of its current run */
};

struct campaign {
	const struct sim_swarm_conf *conf;
	struct worker workers[SIM_WORKERS_MAX];
	struct sim_swarm_sum sum;
	uint64_t began_s;
};

static uint64_t
swarm_now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec;
}

/* ---- in a worker ---- */

static void
run_one(const struct sim_conf *conf, struct verdict *v)
{
	static const struct sim_watch no_watch;
	struct rlimit limit;
	struct sim_world *w;

	/*
	 * A run that does not end is killed by SIGXCPU. CPU time, because a worker may be stopped,
	 * or wait for a busy machine. A hard limit would kill it without that signal.
	 */
	getrlimit(RLIMIT_CPU, &limit);
	limit.rlim_cur = RTE_MIN((rlim_t)(clock() / CLOCKS_PER_SEC) + RUN_SECONDS,
				 limit.rlim_max - 1);
	setrlimit(RLIMIT_CPU, &limit);
	if (san_sim_world_create(conf, &no_watch, &w) != 0) {
		v->sum = (struct sim_swarm_sum){.nb_runs = 1, .nb_failed = 1};
		v->unbuilt = true;
		snprintf(v->why, sizeof(v->why), "the simulation could not be built");
		return;
	}
	san_sim_world_run(w);
	v->sum = (struct sim_swarm_sum){
		.nb_runs = 1,
		.nb_failed = w->failed,
		.nb_events = w->stats.nb_events,
		.nb_faults = w->net.nb_faults,
		.nb_ops = w->stats.nb_ops,
		.nb_broken = w->stats.nb_broken,
		.hash = w->hash,
	};
	snprintf(v->why, sizeof(v->why), "%.*s", (int)sizeof(v->why) - 1, w->why);
	san_sim_world_destroy(w);
}

/* Fork a child that writes its verdicts to the returned descriptor. */
static pid_t
swarm_spawn_worker(int *fd, uint32_t mb)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends) != 0)
		return -1;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		*fd = ends[1];
		san_sim_core_eal_init(mb);
		return 0;
	}
	close(ends[1]);
	*fd = ends[0];
	if (pid < 0) {
		close(ends[0]);
		*fd = -1;
	}
	return pid;
}

/* When the time is over, the runs in progress are the last. */
static bool
has_run(const struct campaign *c, uint64_t next)
{
	const struct sim_swarm_conf *conf = c->conf;

	return (conf->nb_runs == 0 || next < conf->nb_runs) &&
		(conf->seconds == 0 || swarm_now_s() - c->began_s < conf->seconds);
}

static void
swarm_worker_run(const struct campaign *c, int fd, uint64_t next)
{
	struct sim_conf run;

	do {
		struct verdict v = {0};

		san_sim_draw_swarm(c->conf->seed + next, &run);
		run_one(&run, &v);
		if (write(fd, &v, sizeof(v)) != sizeof(v))
			_exit(1);
		next += c->conf->nb_workers;
	} while (has_run(c, next));
	_exit(0);
}

/* ---- one run, for shrinking and for the command line ---- */

static const char *
death_of(int status)
{
	bool is_hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU;

	return is_hung ? "the run does not end" : "the process died; see above";
}

int
san_sim_swarm_try(const struct sim_conf *conf, struct sim_swarm_sum *sum, char *why, size_t len)
{
	struct verdict v = {.sum = {.nb_runs = 1, .nb_failed = 1}};
	struct sim_conf own = *conf;
	int fd, rc, status;
	pid_t pid;
	bool died;

	if (san_sim_conf_rules_check(&own, why, len) != 0)
		return 0; /* not a scenario, so no failure */
	pid = swarm_spawn_worker(&fd, RTE_MAX(san_sim_world_mb(&own), (uint32_t)SIM_EAL_SWARM_MB));
	if (pid < 0) {
		rc = -errno;
		snprintf(why, len, "no process for a run: %s", strerror(-rc));
		return rc;
	}
	if (pid == 0) {
		run_one(&own, &v);
		_exit(write(fd, &v, sizeof(v)) == sizeof(v) ? 0 : 1);
	}
	died = read(fd, &v, sizeof(v)) != sizeof(v);
	close(fd);
	waitpid(pid, &status, 0);
	snprintf(why, len, "%s", died ? death_of(status) : v.why);
	if (sum != NULL)
		san_sim_report_add(sum, &v.sum, sizeof(v.sum));
	if (v.unbuilt)
		return -EINVAL;
	return v.sum.nb_failed != 0 ? -EIO : 0;
}

/* ---- shrinking ---- */

static bool
still_fails(const struct sim_conf *conf, const char *first)
{
	char why[256];
	int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
	bool fails;

	dup2(null, STDERR_FILENO);
	/* the names of checkers, or how the processes ended, without time and details */
	fails = san_sim_swarm_try(conf, NULL, why, sizeof(why)) == -EIO &&
		strcspn(why, ":") == strcspn(first, ":") &&
		strncmp(why, first, strcspn(first, ":")) == 0;
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(null);
	return fails;
}

enum shrink_step {
	LESS_CONNECTIONS,
	LESS_OPS,
	LESS_HOSTS,
	AS_PAIR,
	LESS_DEPTH,
	LESS_BYTES,
	SHRINK_STEPS
};

/* Settings of the plainest scenario. */
static const char *const plain[] = {
	"load.send=0", "load.push=0", "load.push_imm=0", "load.pull=0", "load.fetch_add=0",
	"load.cmp_swap=0", "load.both_ways=off", "host.clock_drift=0", "host.poll=0ns",
	"load.revoke=0ns", "load.recv_delay=0ns", "load.start_step=0ns", "load.bad_key=0",
	"load.unordered=0"};

/* Remove something. False: there is nothing to remove. */
static bool
shrink_once(struct sim_conf *c, enum shrink_step step)
{
	bool is_pair = c->topo.type == SIM_TOPO_PAIR;

	switch (step) {
	case LESS_CONNECTIONS:
		c->load.connections /= 2;
		return c->load.connections != 0;
	case LESS_OPS:
		c->load.ops /= 2;
		return c->load.ops != 0;
	case LESS_HOSTS:
		if (is_pair || c->topo.hosts < 3)
			return false;
		c->topo.hosts = RTE_MAX(2u, c->topo.hosts / 2);
		c->topo.leaves = RTE_MIN(c->topo.leaves, c->topo.hosts);
		return true;
	case AS_PAIR:
		c->topo.type = SIM_TOPO_PAIR;
		c->topo.hosts = 2;
		return !is_pair;
	case LESS_DEPTH:
		c->load.depth /= 2;
		return c->load.depth != 0;
	default: /* LESS_BYTES */
		c->load.size_max /= 2;
		return c->load.size_max >= c->load.size_min;
	}
}

/* Take the smaller scenario if it fails as well, else return to *conf*. */
static bool
shrink_to(struct sim_conf *conf, struct sim_conf *less, bool is_less, const char *why)
{
	bool fails = is_less && still_fails(less, why);

	if (fails)
		*conf = *less;
	else
		*less = *conf;
	return fails;
}

void
san_sim_swarm_shrink(struct sim_conf *conf, const char *why)
{
	struct sim_conf less = *conf;
	char err[256]; /* the words are right */
	bool changed = true;
	uint32_t round, i;

	for (round = 0; changed && round < SHRINK_ROUNDS; round++) {
		changed = false;
		for (i = conf->nb_faults; i-- > 0;) {
			less.nb_faults--;
			memmove(&less.faults[i], &less.faults[i + 1],
				(less.nb_faults - i) * sizeof(less.faults[0]));
			changed |= shrink_to(conf, &less, true, why);
		}
		for (i = 0; i < RTE_DIM(plain); i++) {
			san_sim_conf_set(&less, plain[i], err, sizeof(err));
			changed |= shrink_to(conf, &less, memcmp(&less, conf, sizeof(less)) != 0,
					     why);
		}
		for (i = 0; i < SHRINK_STEPS; i++)
			while (shrink_to(conf, &less, shrink_once(&less, i), why))
				changed = true;
	}
}

void
san_sim_swarm_print(const struct sim_conf *conf, const char *why, FILE *out)
{
	fprintf(out, "# %.*s\n", (int)RTE_MIN(strcspn(why, "\n"), (size_t)REASON_MAX), why);
	san_sim_conf_print(conf, out);
}

/* ---- the campaign ---- */

static void
write_shrunk(const struct campaign *c, uint64_t seed, const char *why)
{
	struct sim_conf conf;
	char path[64];
	FILE *f;
	bool bad;

	san_sim_draw_swarm(seed, &conf);
	san_sim_swarm_shrink(&conf, why);
	snprintf(path, sizeof(path), "sansim-%" PRIu64 ".ini", seed);
	f = fopen(path, "w");
	bad = f == NULL;
	if (f != NULL) {
		san_sim_swarm_print(&conf, why, f);
		bad = fflush(f) != 0 || ferror(f);
		bad |= fclose(f) != 0;
	}
	if (bad)
		fprintf(stderr, "sansim: %s: %s\n", path, strerror(errno));
	else
		printf("  shorter: %s --scenario %s\n", c->conf->program, path);
}

static void
report_failure(struct campaign *c, uint64_t index, const char *why)
{
	uint64_t seed = c->conf->seed + index;

	printf("FAILED: %s\n  repeat: %s --swarm-seed %" PRIu64 "\n", why, c->conf->program, seed);
	if (c->conf->shrink)
		write_shrunk(c, seed, why);
	fflush(stdout);
}

static void
start_worker(struct campaign *c, struct worker *wk, uint64_t next)
{
	wk->fd = -1;
	if (!has_run(c, next))
		return;
	wk->next = next;
	wk->pid = swarm_spawn_worker(&wk->fd, SIM_EAL_SWARM_MB);
	if (wk->pid == 0)
		swarm_worker_run(c, wk->fd, next);
	if (wk->pid < 0) {
		fprintf(stderr, "sansim: no process for a run: %s\n", strerror(errno));
		c->sum.nb_failed++;
	}
}

static void
take_verdict(struct campaign *c, struct worker *wk)
{
	struct verdict v;
	int status;

	if (read(wk->fd, &v, sizeof(v)) != sizeof(v)) { /* no more runs, or one has failed */
		waitpid(wk->pid, &status, 0);
		close(wk->fd);
		wk->fd = -1;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			return;
		c->sum.nb_runs++;
		c->sum.nb_failed++;
		report_failure(c, wk->next, death_of(status));
		start_worker(c, wk, wk->next + c->conf->nb_workers);
		return;
	}
	san_sim_report_add(&c->sum, &v.sum, sizeof(v.sum));
	if (v.sum.nb_failed != 0)
		report_failure(c, wk->next, v.why);
	wk->next += c->conf->nb_workers;
}

static bool
wait_some(struct campaign *c)
{
	struct pollfd p[SIM_WORKERS_MAX];
	uint32_t i, n = 0;

	for (i = 0; i < c->conf->nb_workers; i++) {
		p[i] = (struct pollfd){.fd = c->workers[i].fd, .events = POLLIN};
		n += c->workers[i].fd >= 0;
	}
	if (n == 0)
		return false;
	poll(p, c->conf->nb_workers, -1);
	for (i = 0; i < c->conf->nb_workers; i++)
		if (p[i].revents != 0)
			take_verdict(c, &c->workers[i]);
	return true;
}

uint64_t
san_sim_swarm_run(const struct sim_swarm_conf *conf)
{
	struct campaign c = {.conf = conf, .began_s = swarm_now_s()};
	uint32_t i;

	for (i = 0; i < conf->nb_workers; i++)
		start_worker(&c, &c.workers[i], i);
	while (wait_some(&c))
		;
	printf("%" PRIu64 " runs, %" PRIu64 " failed, %" PRIu64 " packet events, %" PRIu64
	       " faults, %" PRIu64 " requests, %" PRIu64 " connections broken, ",
	       c.sum.nb_runs, c.sum.nb_failed, c.sum.nb_events, c.sum.nb_faults, c.sum.nb_ops,
	       c.sum.nb_broken);
	printf("trace hash %016" PRIx64 ", %" PRIu64 " s\n", c.sum.hash, swarm_now_s() - c.began_s);
	return c.sum.nb_failed;
}
