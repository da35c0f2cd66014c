/* SPDX-License-Identifier: BSD-3-Clause */

/* Which descriptors are carried, while other threads use them. (UDP-1) */

#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sock_fd.h"

#define FD     500
#define ROUNDS 300000
#define FORKS  100

static _Atomic bool is_over;

/* Calls with the descriptor, while the socket is turned into a carried one. */
static void *
carry(void *arg)
{
	struct fd_sock *f;

	while (!atomic_load(&is_over)) {
		f = san_sock_fd_get(FD);
		if (f == NULL)
			continue;
		if (!atomic_load(&f->carried))
			san_sock_fd_set_carried(f);
		san_sock_fd_put(f);
	}
	return arg;
}

static bool
may_track(void)
{
	struct fd_sock *f;

	san_sock_fd_track(FD, 2, true, NULL);
	f = san_sock_fd_get(FD);
	san_sock_fd_forget(FD);
	if (f != NULL)
		san_sock_fd_put(f);
	return f != NULL;
}

static void
nobody(void)
{
}

UNIT_FIXTURE(.first = san_sock_fd_begin);

UNIT_CASE(put__what_changed_at_the_last_moment)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, carry, NULL), 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		san_sock_fd_track(FD, 2, true, NULL);
		san_sock_fd_forget(FD);
	}
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
	/* none was lost */
	assert_true(may_track());
}

/* A child does not release what other threads of its parent hold. */
UNIT_CASE(recount__of_other_threads)
{
	struct fd_sock *mine;

	san_sock_fd_track(FD, 2, true, NULL);
	mine = san_sock_fd_get(FD);
	for (uint32_t i = 1; i < SOCK_FILES; i++) {
		san_sock_fd_track(FD + 1, 2, true, NULL);
		assert_non_null(san_sock_fd_get(FD + 1));
		san_sock_fd_forget(FD + 1);
	}
	san_sock_fd_track(FD + 1, 2, true, NULL);
	assert_null(san_sock_fd_get(FD + 1));
	san_sock_fd_recount(nobody);
	assert_ptr_equal(san_sock_fd_get(FD), mine);
	san_sock_fd_put(mine);
	san_sock_fd_forget(FD);
	assert_true(may_track());
}

static void *
make(void *arg)
{
	while (!atomic_load(&is_over)) {
		san_sock_fd_track(FD, 2, true, NULL);
		san_sock_fd_forget(FD);
	}
	return arg;
}

/* A child does not release what another thread of its parent has made or released in part. */
UNIT_CASE(recount__of_a_file_that_is_made)
{
	pthread_t thread;
	int status;
	pid_t pid;

	atomic_store(&is_over, false);
	assert_int_equal(pthread_create(&thread, NULL, make, NULL), 0);
	for (uint32_t i = 0; i < FORKS; i++) {
		pid = fork();
		if (pid == 0) {
			san_sock_fd_recount(nobody);
			_exit(fcntl(STDIN_FILENO, F_GETFD) < 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
}
