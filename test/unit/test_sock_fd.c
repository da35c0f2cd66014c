/* SPDX-License-Identifier: BSD-3-Clause */

/* Which descriptors are ours, while other threads look at them. (UDP-1) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "sock_fd.h"

#define FD     500
#define ROUNDS 300000

static _Atomic bool is_over;

/* Calls with the descriptor, in which the socket comes to be carried. */
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
	assert_int_equal(atomic_load(&sock_nb_carried), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put__what_changed_at_the_last_moment),
	};

	sock_fd_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
