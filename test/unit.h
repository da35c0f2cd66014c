/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_H
#define UNIT_H

/**
 * @file
 * Frame of a unit test: one program holds the tests of a layer, because linking costs more
 * than compiling them; it runs the cases of the file named in its argument.
 *
 *   UNIT_CASE(san_seq_lt__wraps) { assert_true(...); }
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

/** A case of a file. Linked before main() starts; the cases of a file run in their order. */
struct unit_case {
	const char *file;
	struct CMUnitTest test;
	struct unit_case *next;
};

void unit_add_case(struct unit_case *c);

/** Define a case: the body follows. It may use *state*. */
#define UNIT_CASE(name) UNIT_CASE_WITH(name, NULL, NULL)
#define UNIT_CASE_WITH(name, setup, teardown)                                  \
	static void name(void **state);                                        \
	__attribute__((constructor)) static void name##_add(void)              \
	{                                                                      \
		static struct unit_case self = {                               \
			__FILE__, {#name, name, setup, teardown, NULL}, NULL}; \
                                                                               \
		unit_add_case(&self);                                          \
	}                                                                      \
	static void name(__attribute__((unused)) void **state)

/** Fail with a message that names the case of a table. */
#define FAIL_IF(condition, ...)                \
	do {                                   \
		if (condition)                 \
			fail_msg(__VA_ARGS__); \
	} while (0)

/** Run the statement for each row of a table; *r* points to it. */
#define UNIT_EACH(r, table)                             \
	for (const __typeof__((table)[0]) *r = (table); \
	     r < (table) + sizeof(table) / sizeof((table)[0]); r++)

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
