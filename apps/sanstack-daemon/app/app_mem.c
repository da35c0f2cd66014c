/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * Mapping a region of 4 GiB takes a second and unmapping it half a second. To serve other
 * applications meanwhile, the daemon fills and releases page tables in steps of STEP bytes. The
 * last close(), which frees the memory, happens in another process (san_helper_close_fd()), unless
 * the file is small: adding pages takes a program longer than freeing them takes the kernel.
 *
 * A step gives way to other threads of this CPU. If there are some, the next step waits REST times
 * as long as the step took: otherwise a program whose regions come and go takes half of the CPU
 * from the programs that share it with the daemon. (SYS-13)
 */

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <rte_common.h>

#include "app.h"
#include "engine_clock.h"
#include "san_time.h"

#define STEP     ((size_t)512 << 10)
#define REST     11
#define ALONE_NS 20000              /* giving way takes less if no other thread wants the CPU */
#define SMALL    ((off_t)256 << 10) /* freed in less time than another process takes to start */

/** Memory that is unmapped in steps. */
struct going {
	struct app_mem m;
	STAILQ_ENTRY(going) link;
};

static STAILQ_HEAD(, going) all_going = STAILQ_HEAD_INITIALIZER(all_going);

/* Give way to others after a step that began at *from_ns*. Returns when the next one may begin. */
static uint64_t
step_end(uint64_t from_ns)
{
	uint64_t end_ns = san_engine_clock_monotonic(), back_ns;

	sched_yield();
	back_ns = san_engine_clock_monotonic();
	return back_ns - end_ns < ALONE_NS ? back_ns : back_ns + REST * (end_ns - from_ns);
}

/* *m* is mapped: duplicate the descriptor and register the guard. */
static int
app_mem_keep_fd(struct app_mem *m, int fd, uint16_t owner)
{
	m->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (m->fd < 0) {
		munmap(m->mem, m->bytes);
		return -errno;
	}
	m->guard = san_shmq_guard_add(m->mem, m->bytes, owner);
	return 0;
}

int
san_app_mem_create(struct app_mem *m, const char *name, size_t bytes, uint16_t owner, int *out_fd)
{
	int rc;

	*m = (struct app_mem){.bytes = bytes, .populated = bytes};
	rc = san_shmq_mem_create(name, bytes, &m->mem, out_fd);
	return rc == 0 ? app_mem_keep_fd(m, *out_fd, owner) : rc;
}

int
san_app_mem_import(struct app_mem *m, int fd, uint64_t offset, size_t bytes, uint16_t owner)
{
	int rc;

	*m = (struct app_mem){.bytes = bytes, .offset = offset, .is_theirs = true};
	rc = san_shmq_mem_map(fd, offset, bytes, 0, &m->mem);
	return rc == 0 ? app_mem_keep_fd(m, fd, owner) : rc;
}

int
san_app_mem_populate(struct app_mem *m, uint64_t *due_ns)
{
	uint64_t from_ns = san_engine_clock_monotonic();
	size_t n = RTE_MIN(m->bytes - m->populated, STEP);
	int rc = san_shmq_mem_populate((uint8_t *)m->mem + m->populated, n);

	*due_ns = step_end(from_ns);
	if (rc != 0)
		return rc;
	m->populated += n;
	return m->populated < m->bytes;
}

int
san_app_mem_take(struct app_mem *m, uint16_t owner)
{
	int rc = san_shmq_mem_map_at(m->fd, m->offset, m->bytes, m->mem);

	if (rc == 0)
		m->guard = san_shmq_guard_add(m->mem, m->bytes, owner);
	return rc;
}

void
san_app_mem_close(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && st.st_blocks <= SMALL / 512)
		close(fd);
	else
		san_helper_close_fd(fd);
}

void
san_app_mem_end(struct app_mem *m)
{
	struct going *g;

	if (m->mem == NULL)
		return;
	san_shmq_guard_del(m->guard);
	g = m->is_theirs ? malloc(sizeof(*g)) : NULL;
	if (g == NULL) {
		munmap(m->mem, m->bytes);
		close(m->fd);
	} else {
		/* the rest has no page tables, so one call is fast enough */
		munmap((uint8_t *)m->mem + m->populated, m->bytes - m->populated);
		m->bytes = m->populated;
		g->m = *m;
		STAILQ_INSERT_TAIL(&all_going, g, link);
	}
	m->mem = NULL;
}

uint64_t
san_app_mem_step(uint64_t now_ns)
{
	static uint64_t due_ns;
	struct going *g = STAILQ_FIRST(&all_going);
	uint64_t from_ns = san_engine_clock_monotonic();
	size_t n;

	if (g == NULL || now_ns < due_ns)
		return g == NULL ? SAN_TIME_NEVER : due_ns;
	n = RTE_MIN(g->m.bytes, STEP);
	if (n != 0)
		munmap(g->m.mem, n);
	g->m.mem = (uint8_t *)g->m.mem + n;
	g->m.bytes -= n;
	if (g->m.bytes == 0) {
		san_app_mem_close(g->m.fd);
		STAILQ_REMOVE_HEAD(&all_going, link);
		free(g);
	}
	due_ns = step_end(from_ns);
	return STAILQ_EMPTY(&all_going) ? SAN_TIME_NEVER : due_ns;
}
