/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define CASES_MAX 128 /* of a file */

static struct unit_case *cases, **cases_end = &cases;
static const char *row;

void
unit_add_case(struct unit_case *c)
{
	c->file = strrchr(c->file, '/') + 1;
	*cases_end = c;
	cases_end = &c->next;
}

void
unit_row(const char *name)
{
	row = name;
}

static int
setup_case(void **state)
{
	const struct unit_case *c = *state;

	if (c->own.setup != NULL)
		c->own.setup();
	return 0;
}

static void
run_case(void **state)
{
	const struct unit_case *c = *state;

	row = NULL;
	c->run(state);
	row = NULL;
}

/* A row remains when the case failed. */
static int
teardown_case(void **state)
{
	const struct unit_case *c = *state;

	if (row != NULL)
		print_error("%s: in row %s\n", c->name, row);
	row = NULL;
	if (c->own.teardown != NULL)
		c->own.teardown();
	return 0;
}

/* Run the cases of a file. Returns the number that failed; -1: the file has none. */
static int
run_cases(const char *file)
{
	struct CMUnitTest tests[CASES_MAX];
	const struct unit_fixture *all = NULL;
	size_t n = 0, len = strlen(file);
	int failed;

	for (struct unit_case *c = cases; c != NULL; c = c->next) {
		if (strncmp(c->file, file, len) != 0 || strcmp(c->file + len, ".c") != 0)
			continue;
		if (n == CASES_MAX)
			abort();
		tests[n++] = (struct CMUnitTest){c->name, run_case, setup_case, teardown_case, c};
		all = c->of_file;
	}
	if (n == 0)
		return -1;
	if (all->first != NULL)
		all->first();
	failed = _cmocka_run_group_tests("tests", tests, n, NULL, NULL);
	if (all->last != NULL)
		all->last();
	return failed;
}

bool
unit_is_check(void)
{
	const char *tier = getenv("SAN_TIER");

	return tier != NULL && strcmp(tier, "check") == 0;
}

int
main(int argc, char **argv)
{
	const char *last = "";
	int rc = argc == 2 ? run_cases(argv[1]) : -1;

	if (rc >= 0)
		return rc;
	fprintf(stderr, "usage: %s FILE, which is one of:\n", argv[0]);
	for (const struct unit_case *c = cases; c != NULL; c = c->next) {
		if (strcmp(c->file, last) != 0)
			fprintf(stderr, "  %.*s\n", (int)strcspn(c->file, "."), c->file);
		last = c->file;
	}
	return 2;
}
