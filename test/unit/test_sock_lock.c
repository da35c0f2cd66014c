/* SPDX-License-Identifier: BSD-3-Clause */

/* Locks between processes: none waits forever, whatever happens to the others. (UDP-7, SYS-5) */

#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sock_priv.h"

#define PROGRAMS 4
#define TURNS    20000

static struct {
	struct san_sock_lock lock;
	_Atomic uint32_t step;
	volatile uint32_t count;
} * shm;

static void
setup(void)
{
	shm = mmap(NULL, sizeof(*shm), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shm, MAP_FAILED);
}

static void
teardown(void)
{
	assert_int_equal(munmap(shm, sizeof(*shm)), 0);
}

static uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void
wait_step(uint32_t step)
{
	while (atomic_load(&shm->step) < step)
		usleep(1000);
}

/* A process that holds the lock until step 2, releases it and sets step 3. */
static pid_t
holder(void)
{
	pid_t pid = fork();
	uint32_t key;

	if (pid != 0) {
		wait_step(1);
		return pid;
	}
	san_sock_lock_detach();
	if (san_sock_lock(&shm->lock, false, &key) != 0)
		_exit(1);
	atomic_store(&shm->step, 1);
	wait_step(2);
	san_sock_lock_unlock(&shm->lock, key);
	atomic_store(&shm->step, 3);
	_exit(0);
}

static void
assert_taken(bool takes, int rc)
{
	uint32_t key;

	assert_int_equal(san_sock_lock(&shm->lock, takes, &key), rc);
	if (rc >= 0)
		san_sock_lock_unlock(&shm->lock, key);
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown);

UNIT_CASE(sock_lock_take__one_at_a_time)
{
	uint32_t key;
	int status;

	for (uint32_t i = 0; i < PROGRAMS; i++) {
		if (fork() != 0)
			continue;
		san_sock_lock_detach();
		for (uint32_t k = 0; k < TURNS; k++) {
			if (san_sock_lock(&shm->lock, false, &key) != 0)
				_exit(1);
			shm->count++;
			san_sock_lock_unlock(&shm->lock, key);
		}
		_exit(0);
	}
	for (uint32_t i = 0; i < PROGRAMS; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(shm->count, PROGRAMS * TURNS);
}

UNIT_CASE(sock_lock_take__ours_is_refused)
{
	uint32_t key;

	assert_int_equal(san_sock_lock(&shm->lock, true, &key), 0);
	assert_taken(true, -EDEADLK);
	san_sock_lock_unlock(&shm->lock, key);
	assert_taken(true, 0);
}

UNIT_CASE(sock_lock_take__owner_was_killed)
{
	uint64_t began_ms = now_ms();
	pid_t pid;

	for (int reaped = 0; reaped < 2; reaped++) {
		atomic_store(&shm->step, 0);
		pid = holder();
		kill(pid, SIGKILL);
		if (reaped)
			waitpid(pid, NULL, 0);
		assert_taken(false, SOCK_LOCK_TAKEN);
		if (!reaped)
			waitpid(pid, NULL, 0);
	}
	assert_in_range(now_ms() - began_ms, 0, 900);
}

UNIT_CASE(sock_lock_take__owner_does_not_go_on)
{
	pid_t pid = holder();
	uint32_t key;

	assert_taken(false, -EDEADLK);
	assert_int_equal(san_sock_lock(&shm->lock, true, &key), SOCK_LOCK_TAKEN);
	/* it releases the lock that we hold by now */
	atomic_store(&shm->step, 2);
	wait_step(3);
	assert_taken(true, -EDEADLK);
	waitpid(pid, NULL, 0);
}

UNIT_CASE(sock_lock_take__owner_whom_we_do_not_know)
{
	/* from another namespace: its number is that of a process that lives here */
	atomic_store(&shm->lock.word, (uint32_t)getppid());
	atomic_store(&shm->lock.space, 7);
	assert_taken(false, SOCK_LOCK_TAKEN);
	assert_taken(false, 0);
}
