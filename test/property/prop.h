/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Frame of a property test: "--runs N" sequences of random operations, each
 * from a seed of its own that a failure prints; "--seed S" repeats just that.
 *
 *   static void run(uint64_t seed) { ... PROP_CHECK(real == model); ... }
 *   PROP_MAIN("wheel", run)
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "san_prng.h"

static uint64_t prop_seed; /**< of the run under way */

/** Must hold; else say where and with which seed, and end the program. */
#define PROP_CHECK(cond)                                                            \
	do {                                                                        \
		if (!(cond)) {                                                      \
			printf("not ok 1 - %s:%d: %s\n# repeat with --seed %llu\n", \
			       __FILE__, __LINE__, #cond,                           \
			       (unsigned long long)prop_seed);                      \
			exit(1);                                                    \
		}                                                                   \
	} while (0)

static inline int
prop_main(int argc, char **argv, const char *name, void (*run)(uint64_t seed))
{
	struct san_prng seeds;
	unsigned long runs = 200;
	unsigned long i;
	int arg;

	/* One plan, one result: the runs are samples of the same statement. */
	printf("1..1\n");
	fflush(stdout);
	san_prng_seed(&seeds, 20240229);
	for (arg = 1; arg + 1 < argc; arg += 2) {
		if (strcmp(argv[arg], "--runs") == 0) {
			runs = strtoul(argv[arg + 1], NULL, 0);
		} else if (strcmp(argv[arg], "--seed") == 0) {
			prop_seed = strtoull(argv[arg + 1], NULL, 0);
			run(prop_seed);
			printf("ok 1 - %s, seed %llu\n", name, (unsigned long long)prop_seed);
			return 0;
		} else {
			break;
		}
	}
	if (arg < argc || runs == 0) {
		fprintf(stderr, "usage: %s [--runs N] [--seed S]\n", argv[0]);
		return 2;
	}
	for (i = 0; i < runs; i++) {
		prop_seed = san_prng_u64(&seeds);
		run(prop_seed);
	}
	printf("ok 1 - %s, %lu runs\n", name, runs);
	return 0;
}

#define PROP_MAIN(name, run)                             \
	int                                              \
	main(int argc, char **argv)                      \
	{                                                \
		return prop_main(argc, argv, name, run); \
	}
