/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * sansim: the transport in virtual time over a simulated network. It runs a scenario from a file,
 * or many that are drawn from seeds; see sansim(1).
 */

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "sim_swarm.h"
#include "sim_world.h"

#define ERR_MAX     512
#define EXIT_USAGE  2
#define WORKERS_MAX 16

enum option_id {
	OPT_SCENARIO = 1,
	OPT_SET,
	OPT_SEED,
	OPT_JSON,
	OPT_TRACE,
	OPT_TRACE_AT,
	OPT_SERIES,
	OPT_PRINT,
	OPT_KEYS,
	OPT_SWARM,
	OPT_SECONDS,
	OPT_WORKERS,
	OPT_SWARM_SEED,
	OPT_SHRINK,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option options[] = {
	{"scenario", required_argument, NULL, OPT_SCENARIO},
	{"set", required_argument, NULL, OPT_SET},
	{"seed", required_argument, NULL, OPT_SEED},
	{"json", required_argument, NULL, OPT_JSON},
	{"trace", required_argument, NULL, OPT_TRACE},
	{"trace-at", required_argument, NULL, OPT_TRACE_AT},
	{"series", required_argument, NULL, OPT_SERIES},
	{"print", no_argument, NULL, OPT_PRINT},
	{"keys", no_argument, NULL, OPT_KEYS},
	{"swarm", required_argument, NULL, OPT_SWARM},
	{"seconds", required_argument, NULL, OPT_SECONDS},
	{"workers", required_argument, NULL, OPT_WORKERS},
	{"swarm-seed", required_argument, NULL, OPT_SWARM_SEED},
	{"shrink", no_argument, NULL, OPT_SHRINK},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static const char usage[] =
	"Usage: sansim [--scenario FILE] [--set SECTION.KEY=VALUE]... [OPTION]...\n"
	"       sansim --swarm RUNS [--seed FIRST] [--seconds S] [--workers N] [--shrink]\n"
	"       sansim --swarm-seed SEED [--shrink] [--set ...] [OPTION]...\n"
	"\n"
	"Runs the transport in virtual time over a simulated network, checks every\n"
	"invariant, and says what it saw. Exit status: 0 passed, 1 an invariant is\n"
	"broken, 2 the command line or a scenario is wrong.\n"
	"\n"
	"  --scenario FILE       INI file; several add up, later ones win\n"
	"  --set S.K=V           one key, over what stands before it\n"
	"  --seed N              run.seed; of a swarm, its first run's\n"
	"  --json FILE           figures as JSON; - is standard output\n"
	"  --series FILE         time series as CSV, every run.sample\n"
	"  --trace FILE          packets as pcapng, in nanoseconds of virtual time\n"
	"  --trace-at PLACE      of these links: all, host:N, spine:N, trunk (:up, :down)\n"
	"  --print               the whole scenario as INI, and no run\n"
	"  --keys                every key of a scenario: unit, range, meaning\n"
	"  --swarm RUNS          so many random scenarios; 0: until the time is over\n"
	"  --seconds S           of real time, for a swarm\n"
	"  --workers N           processes of a swarm (the CPUs that there are)\n"
	"  --swarm-seed SEED     the one scenario that a swarm draws from SEED\n"
	"  --shrink              make a failing scenario smaller, and write it to standard\n"
	"                        output; of a swarm, to sansim-SEED.ini\n"
	"  --help, --version\n";

/* A file or a word that changes the scenario, in the order of the command line. */
struct overlay {
	int id; /* OPT_SCENARIO or OPT_SET */
	const char *value;
};

struct args {
	struct sim_conf conf;
	struct overlay *overlays;
	uint32_t nb_overlays;
	struct sim_watch watch;
	struct sim_swarm_conf swarm;
	const char *json;
	bool is_swarm, is_drawn, has_seed, has_swarm_option, print, shrink;
	uint64_t seed, drawn_seed;
	char **argv;
};

static void
sansim_die(const char *what)
{
	fprintf(stderr, "sansim: %s\n", what);
	exit(EXIT_USAGE);
}

static uint64_t
opt_to_number(const char *option, const char *text)
{
	char buf[ERR_MAX];
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0) {
		snprintf(buf, sizeof(buf), "--%s: \"%s\" is not a number", option, text);
		sansim_die(buf);
	}
	return v;
}

static void
opt_take(struct args *a, int id, const char *name, const char *value)
{
	switch (id) {
	case OPT_SCENARIO:
	case OPT_SET:
		a->overlays[a->nb_overlays++] = (struct overlay){id, value};
		break;
	case OPT_SEED:
		a->seed = opt_to_number(name, value);
		a->has_seed = true;
		break;
	case OPT_JSON:
		a->json = value;
		break;
	case OPT_TRACE:
		a->watch.trace_path = value;
		break;
	case OPT_TRACE_AT:
		a->watch.trace_where = value;
		break;
	case OPT_SERIES:
		a->watch.series_path = value;
		break;
	case OPT_SWARM:
		a->swarm.nb_runs = opt_to_number(name, value);
		a->is_swarm = true;
		break;
	case OPT_SECONDS:
		a->swarm.seconds = opt_to_number(name, value);
		a->has_swarm_option = true;
		break;
	case OPT_WORKERS:
		a->swarm.nb_workers = (uint32_t)RTE_MIN(opt_to_number(name, value), UINT32_MAX);
		a->has_swarm_option = true;
		break;
	case OPT_SWARM_SEED:
		a->drawn_seed = opt_to_number(name, value);
		a->is_drawn = true;
		break;
	case OPT_PRINT:
		a->print = true;
		break;
	case OPT_SHRINK:
		a->shrink = true;
		break;
	case OPT_KEYS:
		san_sim_conf_help(stdout);
		exit(0);
	case OPT_VERSION:
		puts("sansim " SAN_VERSION);
		exit(0);
	case OPT_HELP:
		fputs(usage, stdout);
		exit(0);
	default:
		fputs("Try: sansim --help\n", stderr);
		exit(EXIT_USAGE);
	}
}

/* Start from the defaults or a seed, then apply files and words, wherever the seed stands. */
static void
build_conf(struct args *a)
{
	char err[ERR_MAX];
	uint32_t i;
	int rc;

	if (a->is_drawn)
		san_sim_draw_swarm(a->drawn_seed, &a->conf);
	else
		san_sim_conf_default(&a->conf);
	for (i = 0; i < a->nb_overlays; i++) {
		const char *value = a->overlays[i].value;

		rc = a->overlays[i].id == OPT_SET ?
			san_sim_conf_set(&a->conf, value, err, sizeof(err)) :
			san_sim_conf_file_load(&a->conf, value, err, sizeof(err));
		if (rc != 0)
			sansim_die(err);
	}
	if (a->has_seed)
		a->conf.run.seed = a->seed;
}

static void
check_swarm(struct args *a)
{
	if (a->nb_overlays != 0 || a->is_drawn || a->print || a->json != NULL ||
	    a->watch.series_path != NULL || a->watch.trace_path != NULL ||
	    a->watch.trace_where != NULL)
		sansim_die(
			"--swarm has its own scenarios, and takes --seed, --seconds, --workers and "
			"--shrink only");
	if (a->swarm.nb_workers < 1 || a->swarm.nb_workers > WORKERS_MAX)
		sansim_die("--workers: 1 to 16");
	if (a->swarm.nb_runs == 0 && a->swarm.seconds == 0)
		sansim_die("--swarm 0 wants --seconds");
	if (a->has_seed)
		a->swarm.seed = a->seed;
	a->swarm.shrink = a->shrink;
}

/* Refuse options that would be ignored. */
static void
check_single(const struct args *a)
{
	const struct sim_watch *w = &a->watch;
	bool writes = a->json != NULL || w->series_path != NULL || w->trace_path != NULL;

	if (a->has_swarm_option)
		sansim_die("--seconds and --workers want --swarm");
	if (a->shrink && (a->print || writes))
		sansim_die("--shrink takes no --json, --series, --trace or --print");
	if (w->series_path != NULL && strcmp(w->series_path, "-") == 0)
		sansim_die("--series: wants a file, not -");
	if (w->trace_path != NULL && strcmp(w->trace_path, "-") == 0)
		sansim_die("--trace: wants a file, not -");
	if (w->series_path != NULL && a->conf.run.sample_ns == 0)
		sansim_die("--series wants run.sample, the time between its lines");
}

static void
parse_args(struct args *a, int argc, char **argv)
{
	int id, index = 0;

	a->overlays = calloc((size_t)argc, sizeof(*a->overlays));
	if (a->overlays == NULL)
		sansim_die("no memory");
	a->swarm.nb_workers = (uint32_t)RTE_MIN(sysconf(_SC_NPROCESSORS_ONLN), WORKERS_MAX);
	a->argv = argv;
	a->swarm.program = argv[0];
	a->swarm.seed = 1;
	while ((id = getopt_long(argc, argv, "", options, &index)) != -1)
		opt_take(a, id, id == '?' ? "" : options[index].name, optarg);
	if (optind != argc)
		sansim_die("there are no arguments but options; try: sansim --help");
	if (a->is_swarm) {
		check_swarm(a);
		return;
	}
	if (a->watch.trace_where != NULL && a->watch.trace_path == NULL)
		sansim_die("--trace-at wants --trace");
	if (a->watch.trace_where == NULL)
		a->watch.trace_where = "all";
	build_conf(a);
	check_single(a);
}

static int
sansim_write_json(const struct sim_world *w, const char *path)
{
	FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
	int rc = 0;

	if (f == NULL) {
		fprintf(stderr, "sansim: %s: %s\n", path, strerror(errno));
		return EXIT_USAGE;
	}
	san_sim_report_json(w, f);
	if (fflush(f) != 0 || ferror(f) || (f != stdout && fclose(f) != 0)) {
		fprintf(stderr, "sansim: %s: %s\n", path, strerror(errno));
		rc = 1;
	}
	return rc;
}

static int
sansim_shrink(struct args *a)
{
	char why[ERR_MAX];
	int rc = san_sim_swarm_try(&a->conf, NULL, why, sizeof(why));

	if (rc != -EIO) {
		fprintf(stderr, "sansim: %s\n", rc == 0 ? "this scenario does not fail" : why);
		return 1;
	}
	san_sim_swarm_shrink(&a->conf, why);
	san_sim_swarm_print(&a->conf, why, stdout);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("sansim: standard output");
		return 1;
	}
	return 0;
}

/* Print the command line in a form that a shell accepts. */
static void
print_repeat(char *const *argv)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				    "%+,-./:=@_";
	const char *p;

	fputs("  repeat:", stderr);
	for (; *argv != NULL; argv++) {
		fputc(' ', stderr);
		if (**argv != '\0' && strspn(*argv, plain) == strlen(*argv)) {
			fputs(*argv, stderr);
			continue;
		}
		fputc('\'', stderr);
		for (p = *argv; *p != '\0'; p++)
			if (*p == '\'')
				fputs("'\\''", stderr);
			else
				fputc(*p, stderr);
		fputc('\'', stderr);
	}
	fputc('\n', stderr);
}

static int
sansim_run(struct args *a)
{
	struct sim_world *w;
	int rc;

	san_sim_eal_init(san_sim_world_mb(&a->conf));
	if (san_sim_world_create(&a->conf, &a->watch, &w) != 0)
		return EXIT_USAGE;
	san_sim_world_run(w);
	rc = a->json != NULL ? sansim_write_json(w, a->json) : 0;
	if (a->json == NULL || strcmp(a->json, "-") != 0)
		san_sim_report_text(w, stdout);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("sansim: standard output");
		rc = 1;
	}
	if (w->failed) {
		fprintf(stderr, "sansim: %s\n", w->why);
		print_repeat(a->argv);
		rc = 1;
	}
	if (san_sim_world_destroy(w) != 0) {
		fputs("sansim: the trace or series could not be written whole\n", stderr);
		rc = 1;
	}
	return rc;
}

int
main(int argc, char **argv)
{
	static struct args a;
	char err[ERR_MAX];

	parse_args(&a, argc, argv);
	if (a.is_swarm)
		return san_sim_swarm_run(&a.swarm) != 0;
	if (san_sim_conf_rules_check(&a.conf, err, sizeof(err)) != 0)
		sansim_die(err);
	if (a.print) {
		san_sim_conf_print(&a.conf, stdout);
		return 0;
	}
	return a.shrink ? sansim_shrink(&a) : sansim_run(&a);
}
