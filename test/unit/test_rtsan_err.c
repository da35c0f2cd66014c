/* SPDX-License-Identifier: BSD-3-Clause */

#include <pthread.h>

#include "test_rtsan.h"

static void *
other_thread(void *arg)
{
	/* no error in this thread */
	snprintf(arg, 64, "%s", rtsan_error());
	rtsan_fail(-EINVAL, "the other thread's");
	return NULL;
}

UNIT_CASE(rtsan_error__per_thread)
{
	char text[64] = "";
	pthread_t t;

	assert_int_equal(rtsan_fail(-EBUSY, "this thread's %d", 1), -EBUSY);
	assert_int_equal(pthread_create(&t, NULL, other_thread, text), 0);
	pthread_join(t, NULL);
	assert_string_equal(text, "no error");
	assert_string_equal(rtsan_error(), "this thread's 1");
}

UNIT_CASE(rtsan_fail_else__keeps_the_better_text)
{
	rtsan_error_clear();
	rtsan_fail(-EINVAL, "exactly this");
	assert_error(rtsan_fail_else(-EINVAL, "something"), -EINVAL, "exactly this");
	rtsan_error_clear();
	assert_error(rtsan_fail_else(-ENOSPC, "something"), -ENOSPC, "something: No space");
	assert_int_equal(rtsan_fail_else(0, "nothing"), 0);
}

/* RT-27: each status has its own name and a text. */
UNIT_CASE(rtsan_status__all_named)
{
	static const uint8_t statuses[] = {0, 1, 2, 5, 6, 7, 8, 9, 10,
					   64, 65, 66, 67, 68, 69, 70, 71, 72};

	for (size_t i = 0; i < sizeof(statuses); i++) {
		assert_string_not_equal(rtsan_status_name(statuses[i]), "unknown");
		assert_string_not_equal(rtsan_status_text(statuses[i]), "unknown");
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(rtsan_status_name(statuses[i]),
						rtsan_status_name(statuses[k]));
	}
	assert_string_equal(rtsan_status_name(11), "unknown");
	assert_string_equal(rtsan_status_name(3), "unknown");
	assert_string_equal(rtsan_status_name(4), "unknown");
	assert_string_equal(rtsan_status_name(73), "unknown");
	assert_string_equal(rtsan_status_text(255), "unknown");
}

UNIT_CASE(rtsan_reason__all_named)
{
	for (uint8_t r = RTSAN_R_NONE; r <= RTSAN_R_MALFORMED; r++)
		assert_string_not_equal(rtsan_reason_text(r), "unknown");
	assert_string_equal(rtsan_reason_text(RTSAN_R_MALFORMED + 1), "unknown");
}
