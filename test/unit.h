/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_H
#define UNIT_H

/**
 * @file
 * Frame of a unit test: one program holds the tests of a layer, because linking costs more
 * than compiling them; it runs the file named in its argument.
 *
 *   UNIT_TEST(test_<file>) { const struct CMUnitTest tests[] = {...}; return cmocka_run_...; }
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/** Of many cases every so many are run, with the sanitizers and in make check: all in check-all. */
#ifdef __SANITIZE_ADDRESS__
#define UNIT_EVERY (unit_is_check() ? 10 : 5)
#else
#define UNIT_EVERY (unit_is_check() ? 5 : 1)
#endif

/** Tests of one file; *run* returns how many failed. Linked before main() starts. */
struct unit_file {
	const char *name;
	int (*run)(void);
	struct unit_file *next;
};

void unit_register(struct unit_file *file);
/** Does make check run it? Then not all of many cases are. */
bool unit_is_check(void);

#define UNIT_TEST(file)                                                               \
	static int unit_run(void);                                                    \
	__attribute__((constructor)) static void unit_add(void)                       \
	{                                                                             \
		static struct unit_file unit_self = {.name = #file, .run = unit_run}; \
                                                                                      \
		unit_register(&unit_self);                                            \
	}                                                                             \
	static int unit_run(void)

#endif /* UNIT_H */
