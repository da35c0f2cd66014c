/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

static struct unit_file *files;

void
unit_register(struct unit_file *file)
{
	file->next = files;
	files = file;
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
	const struct unit_file *f;

	for (f = files; argc == 2 && f != NULL; f = f->next) {
		if (strcmp(f->name, argv[1]) == 0)
			return f->run();
	}
	fprintf(stderr, "usage: %s FILE, which is one of:\n", argv[0]);
	for (f = files; f != NULL; f = f->next)
		fprintf(stderr, "  %s\n", f->name);
	return 2;
}
