/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory is checked as the kernel would, and not changed. (UDP-9) */

#include "unit.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sock_priv.h"

#define PAGE 4096

static uint8_t *
pages(int prot, size_t nb)
{
	uint8_t *p = mmap(NULL, nb * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

UNIT_CASE(touch__none_and_far)
{
	assert_true(san_sock_touch_is_bad(NULL, 1));
	assert_true(san_sock_touch_is_bad_out(NULL, 1));
	assert_false(san_sock_touch_is_bad(NULL, 0));
	assert_false(san_sock_touch_is_bad_out((void *)1, 0));
	assert_true(san_sock_touch_is_bad((void *)(uintptr_t)-1, 1));
	assert_true(san_sock_touch_is_bad((void *)(uintptr_t)-4, 8)); /* around the end */
	assert_true(san_sock_touch_is_bad_out((void *)0xdead0000, 10));
	assert_true(san_sock_touch_is_bad((void *)(1ull << 47), 1));
	assert_false(san_sock_touch_is_bad("text", 5));
}

UNIT_CASE(touch__as_it_is_protected)
{
	static const struct {
		int prot;
		bool read, write;
	} cases[] = {
		{PROT_NONE, false, false},
		{PROT_READ, true, false},
		{PROT_READ | PROT_WRITE, true, true},
	};
	uint8_t *p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		p = pages(cases[i].prot, 1);
		for (size_t at = 0; at < PAGE; at += PAGE - 1) {
			assert_int_equal(!san_sock_touch_is_bad(p + at, 1), cases[i].read);
			assert_int_equal(!san_sock_touch_is_bad_out(p + at, 1), cases[i].write);
			/* once more */
			assert_int_equal(!san_sock_touch_is_bad(p + at, 1), cases[i].read);
		}
		san_sock_touch_forget();
		munmap(p, PAGE);
		assert_true(san_sock_touch_is_bad(p, 1));
	}
}

/* Each page is checked, and no byte behind the last one. */
UNIT_CASE(touch__across_pages)
{
	uint8_t *p = pages(PROT_READ | PROT_WRITE, 3);

	assert_int_equal(mprotect(p + 2 * PAGE, PAGE, PROT_NONE), 0);
	san_sock_touch_forget();
	assert_false(san_sock_touch_is_bad(p, 2 * PAGE));
	assert_false(san_sock_touch_is_bad_out(p + PAGE + 1, PAGE - 1));
	assert_true(san_sock_touch_is_bad(p, 2 * PAGE + 1));
	assert_true(san_sock_touch_is_bad_out(p + 2 * PAGE - 1, 2));
	munmap(p, 3 * PAGE);
}

UNIT_CASE(touch__bytes_stay)
{
	uint8_t *p = pages(PROT_READ | PROT_WRITE, 2), was[2 * PAGE];

	for (size_t i = 0; i < sizeof(was); i++)
		was[i] = p[i] = (uint8_t)(i * 7 + 1);
	for (size_t i = 0; i < 9; i++) {
		san_sock_touch_forget();
		assert_false(san_sock_touch_is_bad_out(p + i, PAGE));
		assert_false(san_sock_touch_is_bad(p + i, PAGE));
	}
	assert_memory_equal(p, was, sizeof(was));
	munmap(p, sizeof(was));
}

/* Valid memory is not checked again, until the application changes its mappings. */
UNIT_CASE(touch__forgotten)
{
	uint8_t *p = pages(PROT_READ, 1);

	assert_false(san_sock_touch_is_bad(p, 1));
	assert_int_equal(mprotect(p, PAGE, PROT_NONE), 0);
	assert_false(san_sock_touch_is_bad(p, 1));
	san_sock_touch_forget();
	assert_true(san_sock_touch_is_bad(p, 1));
	munmap(p, PAGE);
}
