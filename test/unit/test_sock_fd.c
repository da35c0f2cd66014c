/* SPDX-License-Identifier: BSD-3-Clause */

/* Which descriptors are carried, while other threads use them. (UDP-1) */

#include "unit.h"

#include <pthread.h>

#include "sock_fd.h"

#define FD     500
#define ROUNDS 300000

static _Atomic bool is_over;

/* Calls with the descriptor, while the socket is turned into a carried one. */
static void *
carry(void *arg)
{
	struct sock_file *f;

	while (!atomic_load(&is_over)) {
		f = sock_get(FD);
		if (f == NULL)
			continue;
		if (!atomic_load(&f->carried))
			sock_set_carried(f);
		sock_put(f);
	}
	return arg;
}

static bool
may_track(void)
{
	struct sock_file *f;

	sock_track(FD, 2, true);
	f = sock_get(FD);
	sock_forget(FD);
	if (f != NULL)
		sock_put(f);
	return f != NULL;
}

static void
nobody(void)
{
}

static void
put__what_changed_at_the_last_moment(void **state)
{
	pthread_t thread;
	uint32_t i;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, carry, NULL), 0);
	for (i = 0; i < ROUNDS; i++) {
		sock_track(FD, 2, true);
		sock_forget(FD);
	}
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
	/* none was lost */
	assert_true(may_track());
}

/* A child does not release what other threads of its parent hold. */
static void
recount__of_other_threads(void **state)
{
	struct sock_file *mine;
	uint32_t i;

	(void)state;
	sock_track(FD, 2, true);
	mine = sock_get(FD);
	for (i = 1; i < SOCK_FILES; i++) {
		sock_track(FD + 1, 2, true);
		assert_non_null(sock_get(FD + 1));
		sock_forget(FD + 1);
	}
	sock_track(FD + 1, 2, true);
	assert_null(sock_get(FD + 1));
	sock_fd_recount(nobody);
	assert_ptr_equal(sock_get(FD), mine);
	sock_put(mine);
	sock_forget(FD);
	assert_true(may_track());
}

UNIT_TEST(test_sock_fd)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put__what_changed_at_the_last_moment),
		cmocka_unit_test(recount__of_other_threads),
	};

	sock_fd_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
