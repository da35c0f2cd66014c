/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Runs a fuzz target without libFuzzer: every file of the corpus folders once,
 * then mutations of them made from a fixed seed, so that any compiler and any
 * machine replays the same inputs.
 *
 * usage: replay_<surface> [--seed S] [--mutate N] FOLDER...
 */

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "san_prng.h"

#define INPUT_MAX  65536
#define CORPUS_MAX 4096

struct input {
	uint8_t *data;
	size_t size;
};

static struct input corpus[CORPUS_MAX];
static uint32_t nb_corpus;

static int
load_file(const char *path)
{
	struct input *in = &corpus[nb_corpus];
	uint8_t *buf;
	FILE *f;

	if (nb_corpus == CORPUS_MAX) {
		fprintf(stderr, "more than %d inputs\n", CORPUS_MAX);
		return -1;
	}
	f = fopen(path, "rb");
	if (f == NULL) {
		perror(path);
		return -1;
	}
	buf = malloc(INPUT_MAX);
	if (buf == NULL) {
		fclose(f);
		return -1;
	}
	in->size = fread(buf, 1, INPUT_MAX, f);
	in->data = buf;
	nb_corpus++;
	fclose(f);
	return 0;
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
	/* Not the locale's order: the mutations depend on it. */
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int
load_folder(const char *folder)
{
	struct dirent **entries;
	int rc = 0;
	int n = scandir(folder, &entries, NULL, by_name);

	if (n < 0) {
		perror(folder);
		return -1;
	}
	for (int i = 0; i < n; i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		if (rc == 0 && entries[i]->d_name[0] != '.')
			rc = load_file(path);
		free(entries[i]);
	}
	free(entries);
	return rc;
}

/** The target gets memory of exactly *size* bytes, so that a sanitizer sees every overrun. */
static void
run_one(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size > 0 ? size : 1);

	if (exact == NULL)
		abort();
	if (size > 0)
		memcpy(exact, data, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static void
mutate_bytes(struct san_prng *g, uint8_t *buf, size_t size)
{
	uint32_t n = 1 + san_prng_below(g, 4);

	while (size > 0 && n-- > 0) {
		uint32_t at = san_prng_below(g, (uint32_t)size);

		switch (san_prng_below(g, 4)) {
		case 0:
			buf[at] ^= (uint8_t)(1u << san_prng_below(g, 8));
			break;
		case 1:
			buf[at] = (uint8_t)san_prng_u64(g);
			break;
		case 2:
			buf[at] = 0xff;
			break;
		default:
			buf[at] = 0;
			break;
		}
	}
}

static void
run_mutation(struct san_prng *g)
{
	static uint8_t buf[2 * INPUT_MAX];
	const struct input *in = &corpus[san_prng_below(g, nb_corpus)];
	const struct input *other = &corpus[san_prng_below(g, nb_corpus)];
	size_t size = in->size;

	memcpy(buf, in->data, size);
	switch (san_prng_below(g, 8)) {
	case 0: /* cut off */
		size = san_prng_below(g, (uint32_t)size + 1);
		break;
	case 1: /* prolonged by another */
		memcpy(buf + size, other->data, other->size);
		size += other->size;
		break;
	case 2: /* head of one, tail of another */
		if (other->size > size) {
			memcpy(buf + size / 2, other->data + size / 2, other->size - size / 2);
			size = other->size;
		}
		break;
	default:
		break;
	}
	mutate_bytes(g, buf, size);
	run_one(buf, size);
}

int
main(int argc, char **argv)
{
	struct san_prng g;
	uint64_t seed = 1;
	unsigned long nb_mutate = 0;
	unsigned long i;

	for (int arg = 1; arg < argc; arg++) {
		if (strcmp(argv[arg], "--seed") == 0 && arg + 1 < argc)
			seed = strtoull(argv[++arg], NULL, 0);
		else if (strcmp(argv[arg], "--mutate") == 0 && arg + 1 < argc)
			nb_mutate = strtoul(argv[++arg], NULL, 0);
		else if (load_folder(argv[arg]) != 0)
			return 1;
	}
	if (nb_corpus == 0) {
		fprintf(stderr, "no inputs\n");
		return 1;
	}
	for (i = 0; i < nb_corpus; i++)
		run_one(corpus[i].data, corpus[i].size);
	san_prng_seed(&g, seed);
	for (i = 0; i < nb_mutate; i++)
		run_mutation(&g);
	for (i = 0; i < nb_corpus; i++)
		free(corpus[i].data);
	printf("# %u inputs and %lu mutations with seed %llu\n", nb_corpus, nb_mutate,
	       (unsigned long long)seed);
	return 0;
}
