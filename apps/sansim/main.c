/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * sansim: the transport in virtual time over a simulated network. It runs a scenario from a file,
 * or many that are drawn from seeds; see sansim(1).
 */

#include <err.h>
#include <getopt.h>
#include <unistd.h>

#include "rtsan.h"
#include "sim_world.h"

#define ERR_MAX    512
#define EXIT_USAGE 2

/* clang-format off */

/* X(name, option, its argument) */
#define OPTIONS(X) \
	X(SCENARIO, "scenario", required_argument) \
	X(SET, "set", required_argument) \
	X(SEED, "seed", required_argument) \
	X(JSON, "json", required_argument) \
	X(TRACE, "trace", required_argument) \
	X(TRACE_AT, "trace-at", required_argument) \
	X(SERIES, "series", required_argument) \
	X(PRINT, "print", no_argument) \
	X(KEYS, "keys", no_argument) \
	X(SWARM, "swarm", required_argument) \
	X(SECONDS, "seconds", required_argument) \
	X(WORKERS, "workers", required_argument) \
	X(SWARM_SEED, "swarm-seed", required_argument) \
	X(SHRINK, "shrink", no_argument) \
	X(HELP, "help", no_argument) \
	X(VERSION, "version", no_argument)

/* clang-format on */

#define OPTION_ID(name, option, arg)  OPT_##name,
#define OPTION_ROW(name, option, arg) {option, arg, NULL, OPT_##name},

enum option_id {
	OPTIONS(OPTION_ID)
	NB_OPTIONS
};
static const struct option options[] = {OPTIONS(OPTION_ROW){NULL, 0, NULL, 0}};

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

#define BIT(name)     (1u << OPT_##name)
#define SWARM_OPTIONS (BIT(SWARM) | BIT(SEED) | BIT(SECONDS) | BIT(WORKERS) | BIT(SHRINK))
#define OUTPUTS       (BIT(PRINT) | BIT(JSON) | BIT(SERIES) | BIT(TRACE))

struct args {
	uint32_t given;                /* bits of the options */
	const char *value[NB_OPTIONS]; /* of each option, or NULL */
	struct sim_conf conf;
	struct sim_watch watch;
	char **argv;
};

/* The value of an option, or *unset* if it is not given. */
static uint64_t
opt_number(const struct args *a, enum option_id id, uint64_t unset)
{
	const char *text = a->value[id];
	char *end;
	uint64_t v;

	if (text == NULL)
		return unset;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0)
		errx(EXIT_USAGE, "--%s: \"%s\" is not a number", options[id].name, text);
	return v;
}

/* Start from the defaults or a seed, wherever it stands, then apply files and words in order. */
static void
build_conf(struct args *a, int argc)
{
	char err[ERR_MAX];
	int id, rc = 0;

	if (a->value[OPT_SWARM_SEED] != NULL)
		san_sim_draw_swarm(opt_number(a, OPT_SWARM_SEED, 0), &a->conf);
	else
		san_sim_conf_default(&a->conf);
	optind = 0; /* begin again */
	while (rc == 0 && (id = getopt_long(argc, a->argv, "", options, NULL)) != -1)
		if (id == OPT_SET)
			rc = san_sim_conf_set(&a->conf, optarg, err, sizeof(err));
		else if (id == OPT_SCENARIO)
			rc = san_sim_conf_file_load(&a->conf, optarg, err, sizeof(err));
	if (rc != 0)
		errx(EXIT_USAGE, "%s", err);
	a->conf.run.seed = opt_number(a, OPT_SEED, a->conf.run.seed);
}

static int
sansim_swarm(const struct args *a)
{
	const uint64_t nb_cpus = RTE_MIN((uint64_t)sysconf(_SC_NPROCESSORS_ONLN), SIM_WORKERS_MAX);
	const uint64_t nb_workers = opt_number(a, OPT_WORKERS, nb_cpus);
	const struct sim_swarm_conf swarm = {
		.seed = opt_number(a, OPT_SEED, 1),
		.nb_runs = opt_number(a, OPT_SWARM, 0),
		.seconds = opt_number(a, OPT_SECONDS, 0),
		.nb_workers = (uint32_t)nb_workers,
		.shrink = (a->given & BIT(SHRINK)) != 0,
		.program = a->argv[0],
	};

	if ((a->given & ~SWARM_OPTIONS) != 0)
		errx(EXIT_USAGE,
		     "--swarm has its own scenarios, and takes --seed, --seconds, --workers and "
		     "--shrink only");
	if (nb_workers < 1 || nb_workers > SIM_WORKERS_MAX)
		errx(EXIT_USAGE, "--workers: 1 to 16");
	if (swarm.nb_runs == 0 && swarm.seconds == 0)
		errx(EXIT_USAGE, "--swarm 0 wants --seconds");
	return san_sim_swarm_run(&swarm) != 0;
}

/* Refuse options that would be ignored. */
static void
check_single(const struct args *a)
{
	const struct sim_watch *w = &a->watch;

	if ((a->given & (BIT(SECONDS) | BIT(WORKERS))) != 0)
		errx(EXIT_USAGE, "--seconds and --workers want --swarm");
	if (a->value[OPT_TRACE_AT] != NULL && w->trace_path == NULL)
		errx(EXIT_USAGE, "--trace-at wants --trace");
	if ((a->given & BIT(SHRINK)) != 0 && (a->given & OUTPUTS) != 0)
		errx(EXIT_USAGE, "--shrink takes no --json, --series, --trace or --print");
	if (w->series_path != NULL && strcmp(w->series_path, "-") == 0)
		errx(EXIT_USAGE, "--series: wants a file, not -");
	if (w->trace_path != NULL && strcmp(w->trace_path, "-") == 0)
		errx(EXIT_USAGE, "--trace: wants a file, not -");
	if (w->series_path != NULL && a->conf.run.sample_ns == 0)
		errx(EXIT_USAGE, "--series wants run.sample, the time between its lines");
}

/* Print what --help, --version or --keys ask for, whatever else is on the command line. */
static bool
print_about(int argc, char **argv)
{
	int id;

	opterr = 0; /* the other options are judged later */
	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (id == OPT_HELP)
			fputs(usage, stdout);
		else if (id == OPT_VERSION)
			printf("sansim %s\n", rtsan_build());
		else if (id == OPT_KEYS)
			san_sim_conf_help(stdout);
		else
			continue;
		return true;
	}
	opterr = 1;
	optind = 0; /* begin again */
	return false;
}

static void
parse_args(struct args *a, int argc, char **argv)
{
	int id;

	a->argv = argv;
	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (id == '?') {
			fputs("Try: sansim --help\n", stderr);
			exit(EXIT_USAGE);
		}
		a->given |= 1u << id;
		a->value[id] = optarg;
	}
	if (optind != argc)
		errx(EXIT_USAGE, "there are no arguments but options; try: sansim --help");
	a->watch.series_path = a->value[OPT_SERIES];
	a->watch.trace_path = a->value[OPT_TRACE];
	a->watch.trace_where = a->value[OPT_TRACE_AT] != NULL ? a->value[OPT_TRACE_AT] : "all";
}

static int
sansim_write_json(const struct sim_world *w, const char *path)
{
	FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
	int rc = 0;

	if (f == NULL) {
		warn("%s", path);
		return EXIT_USAGE;
	}
	san_sim_report_json(w, f);
	if (fflush(f) != 0 || ferror(f) || (f != stdout && fclose(f) != 0)) {
		warn("%s", path);
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
		warnx("%s", rc == 0 ? "this scenario does not fail" : why);
		return 1;
	}
	san_sim_swarm_shrink(&a->conf, why);
	san_sim_swarm_print(&a->conf, why, stdout);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		warn("standard output");
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
	const char *json = a->value[OPT_JSON];
	struct sim_world *w;
	int rc;

	san_sim_core_eal_init(san_sim_world_mb(&a->conf));
	if (san_sim_world_create(&a->conf, &a->watch, &w) != 0)
		return EXIT_USAGE;
	san_sim_world_run(w);
	rc = json != NULL ? sansim_write_json(w, json) : 0;
	if (json == NULL || strcmp(json, "-") != 0)
		san_sim_report_text(w, stdout);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		warn("standard output");
		rc = 1;
	}
	if (w->failed) {
		warnx("%s", w->why);
		print_repeat(a->argv);
		rc = 1;
	}
	if (san_sim_world_destroy(w) != 0) {
		warnx("the trace or series could not be written whole");
		rc = 1;
	}
	return rc;
}

int
main(int argc, char **argv)
{
	static struct args a;
	char err[ERR_MAX];

	if (print_about(argc, argv))
		return fflush(stdout) != 0 || ferror(stdout);
	parse_args(&a, argc, argv);
	if (a.value[OPT_SWARM] != NULL)
		return sansim_swarm(&a);
	build_conf(&a, argc);
	check_single(&a);
	if (san_sim_conf_rules_check(&a.conf, err, sizeof(err)) != 0)
		errx(EXIT_USAGE, "%s", err);
	if ((a.given & BIT(PRINT)) != 0) {
		san_sim_conf_print(&a.conf, stdout);
		return 0;
	}
	return (a.given & BIT(SHRINK)) != 0 ? sansim_shrink(&a) : sansim_run(&a);
}
