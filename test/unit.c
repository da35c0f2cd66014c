/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <string.h>

#include "unit.h"

static struct unit_file *files;

void
unit_register(struct unit_file *file)
{
	file->next = files;
	files = file;
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
