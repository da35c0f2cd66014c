/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Frame of a unit test: one program holds the tests of a layer, because linking costs more
 * than compiling them; it runs the cases of the file named in its argument.
 *
 *   UNIT_FIXTURE(.setup = open_pair, .teardown = close_pair);    if each case needs one
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

/** Does make check run it? Then not all of many cases are. */
bool unit_is_check(void);
/** The case is at row *name* of its table: a failure prints it. The name is not copied. */
void unit_row(const char *name);

/** What surrounds the cases of a file; NULL: nothing. */
struct unit_fixture {
	void (*setup)(void), (*teardown)(void); /**< each */
	void (*first)(void), (*last)(void);     /**< all of them */
};

/** A case of a file. Linked before main() starts; the cases of a file run in their order. */
struct unit_case {
	const char *file, *name;
	void (*run)(void **state);
	struct unit_fixture own;
	const struct unit_fixture *of_file;
	struct unit_case *next;
};

void unit_add_case(struct unit_case *c);

/* A file that has one defines it. */
static struct unit_fixture unit_fixture __attribute__((unused));
#define UNIT_FIXTURE(...) static struct unit_fixture unit_fixture = {__VA_ARGS__}

/** Define a case: the body follows. */
#define UNIT_CASE(name) UNIT_CASE_OWN(name, unit_fixture.setup, unit_fixture.teardown)

/** Likewise, with a setup of its own. */
#define UNIT_CASE_IN(name, setup) UNIT_CASE_OWN(name, setup, unit_fixture.teardown)

/** Run the case *name* once more, with another setup, as *name* *suffix*. */
#define UNIT_CASE_AGAIN(name, suffix, setup) \
	UNIT_CASE_IN(name##suffix, setup)    \
	{                                    \
		name(state);                 \
	}

/** Likewise, without setup and teardown. */
#define UNIT_CASE_ALONE(name) UNIT_CASE_OWN(name, NULL, NULL)

#define UNIT_CASE_OWN(function, own_setup, own_teardown)              \
	static void function(void **state);                           \
	__attribute__((constructor)) static void function##_add(void) \
	{                                                             \
		static struct unit_case self = {                      \
			.file = __FILE__,                             \
			.name = #function,                            \
			.run = function,                              \
			.of_file = &unit_fixture,                     \
		};                                                    \
                                                                      \
		self.own.setup = own_setup;                           \
		self.own.teardown = own_teardown;                     \
		unit_add_case(&self);                                 \
	}                                                             \
	static void function(__attribute__((unused)) void **state)

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
