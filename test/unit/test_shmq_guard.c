/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory that fails while it is used, in any thread; and memory without a guard. (SYS-5) */

#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shmq.h"

#define PAGE   4096
#define PAGES  4
#define BYTES  (PAGES * PAGE)
#define RANGES 3

static int event_fd;
static struct sigaction guards; /* cmocka replaces the signal handler before each test */

/* The guard is of the process: it is initialised once. */
static void
setup(void)
{
	assert_int_equal(san_shmq_guard_init(RANGES, &event_fd), 0);
	assert_int_equal(sigaction(SIGBUS, NULL, &guards), 0);
}

/* Memory of a file that is not sealed. */
static uint8_t *
filled(int fd, size_t bytes)
{
	uint8_t *mem;

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	memset(mem, 0x5a, bytes);
	return mem;
}

/* Memory that fails from page *good* on. */
static uint8_t *
failing(uint32_t good)
{
	int fd = memfd_create("failing", 0);
	uint8_t *mem = filled(fd, BYTES);

	assert_int_equal(ftruncate(fd, good * PAGE), 0);
	close(fd);
	return mem;
}

static bool
is_told(void)
{
	struct pollfd p = {.fd = event_fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Memory of *owner* has failed, and of no other. */
static void
assert_failed(uint16_t owner)
{
	uint16_t found = UINT16_MAX;

	assert_true(is_told());
	assert_true(san_shmq_guard_failed(&found));
	assert_int_equal(found, owner);
	assert_false(san_shmq_guard_failed(&found));
	assert_false(is_told());
}

UNIT_FIXTURE(.first = setup);

UNIT_CASE(shmq_guard__page_fails)
{
	volatile uint8_t *mem = failing(1);
	uint32_t range = san_shmq_guard_add((void *)mem, BYTES, 7);

	sigaction(SIGBUS, &guards, NULL);
	assert_int_equal(mem[0], 0x5a);
	assert_false(is_told());
	assert_int_equal(mem[PAGE + 5], 0);
	mem[BYTES - 1] = 9;
	assert_int_equal(mem[BYTES - 1], 9);
	assert_failed(7);
	san_shmq_guard_del(range);
	munmap((void *)mem, BYTES);
}

#define MIB ((size_t)1 << 20)

/*
 * Holes: the first one is reported, and what is far from it stays. A second one, while the owner
 * is about to end, costs the range.
 */
UNIT_CASE(shmq_guard__holes)
{
	int fd = memfd_create("holes", 0);
	volatile uint8_t *mem = filled(fd, 8 * MIB);
	uint32_t range = san_shmq_guard_add((void *)mem, 8 * MIB, 7);

	sigaction(SIGBUS, &guards, NULL);
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE);
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 7 * MIB, PAGE);
	assert_int_equal(mem[5 * MIB], 0x5a);
	assert_false(is_told());
	assert_int_equal(mem[5], 0);
	assert_true(is_told());
	assert_int_equal(mem[5 * MIB], 0x5a);
	assert_int_equal(mem[7 * MIB], 0);
	assert_int_equal(mem[5 * MIB], 0);
	assert_failed(7);
	san_shmq_guard_del(range);
	munmap((void *)mem, 8 * MIB);
	close(fd);
}

static _Atomic bool is_punched;

static void *
punch(void *arg)
{
	int fd = *(int *)arg;

	while (!atomic_load(&is_punched)) {
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 64 * MIB);
		posix_fallocate(fd, 0, 64 * MIB);
	}
	return NULL;
}

/* Memory that is punched and filled all the time: a thread that touches it waits twice at most. */
UNIT_CASE(shmq_guard__waits)
{
	int fd = memfd_create("holes", 0);
	struct rusage before, after;
	volatile uint8_t *mem = filled(fd, 64 * MIB);
	uint32_t range = san_shmq_guard_add((void *)mem, 64 * MIB, 7);
	pthread_t thread;

	sigaction(SIGBUS, &guards, NULL);
	assert_int_equal(pthread_create(&thread, NULL, punch, &fd), 0);
	assert_int_equal(getrusage(RUSAGE_THREAD, &before), 0);
	for (uint32_t i = 0; i < 2000000; i++)
		mem[i * 7919ull * PAGE % (64 * MIB)]++; /* each page, far from the last one */
	assert_int_equal(getrusage(RUSAGE_THREAD, &after), 0);
	atomic_store(&is_punched, true);
	pthread_join(thread, NULL);
	/* for a punch, and for the lock of the mappings of the process */
	print_message("# %ld waits\n", after.ru_nvcsw - before.ru_nvcsw);
	assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 0, 4);
	assert_failed(7);
	san_shmq_guard_del(range);
	munmap((void *)mem, 64 * MIB);
	close(fd);
}

static void *
touch(void *arg)
{
	volatile uint8_t *mem = arg;

	for (uint32_t i = 0; i < PAGES; i++)
		mem[i * PAGE]++;
	return NULL;
}

/* Several threads in one range, and a range that is not affected. */
UNIT_CASE(shmq_guard__any_thread)
{
	uint8_t *bad = failing(0), *good = failing(PAGES);
	uint32_t a = san_shmq_guard_add(good, BYTES, 1), b = san_shmq_guard_add(bad, BYTES, 2);
	pthread_t threads[4];

	sigaction(SIGBUS, &guards, NULL);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, touch, i % 2 ? good : bad), 0);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_failed(2);
	san_shmq_guard_del(a);
	san_shmq_guard_del(b);
	munmap(good, BYTES);
	munmap(bad, BYTES);
}

UNIT_CASE(san_shmq_guard_add__no_more)
{
	static uint8_t mem[RANGES + 1][PAGE];
	uint32_t i, ranges[RANGES];

	for (i = 0; i < RANGES; i++) {
		ranges[i] = san_shmq_guard_add(mem[i], PAGE, 1);
		assert_int_not_equal(ranges[i], SHMQ_GUARD_NONE);
	}
	assert_int_equal(san_shmq_guard_add(mem[i], PAGE, 1), SHMQ_GUARD_NONE);
	san_shmq_guard_del(SHMQ_GUARD_NONE);
	while (i-- > 0)
		san_shmq_guard_del(ranges[i]);
	assert_int_not_equal(san_shmq_guard_add(mem[0], PAGE, 1), SHMQ_GUARD_NONE);
}

/* The signal that ends a child which does that, or 0. */
static int
ends_by(void (*what)(volatile uint8_t *mem), volatile uint8_t *mem)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(10);
		what(mem);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void
read_it(volatile uint8_t *mem)
{
	(void)mem[0];
}

static void
is_sent(volatile uint8_t *mem)
{
	kill(getpid(), SIGBUS);
	pause();
}

/* The next owner with the same number gets no report about it. */
UNIT_CASE(san_shmq_guard_disown__left_behind)
{
	volatile uint8_t *mem = failing(0);
	uint32_t range = san_shmq_guard_add((void *)mem, BYTES, 7);

	sigaction(SIGBUS, &guards, NULL);
	san_shmq_guard_disown(7);
	mem[0] = 1;
	assert_failed(SHMQ_GUARD_NOBODY);
	san_shmq_guard_del(range);
	munmap((void *)mem, BYTES);
}

UNIT_CASE(shmq_guard__not_ours)
{
	uint8_t *mem = failing(0);
	uint32_t range = san_shmq_guard_add(mem, BYTES, 1);

	sigaction(SIGBUS, &guards, NULL);
	assert_int_equal(ends_by(read_it, mem), 0);
	san_shmq_guard_del(range);
	assert_int_equal(ends_by(read_it, mem), SIGBUS);
	assert_int_equal(ends_by(is_sent, mem), SIGBUS);
	munmap(mem, BYTES);
}
