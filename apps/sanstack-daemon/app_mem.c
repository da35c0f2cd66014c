/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "app_mem.h"
#include "shmq.h"
#include "shmq_guard.h"

/* Mapped; *m* keeps a descriptor of its own. */
static int
keep(struct app_mem *m, int fd, uint16_t owner)
{
	m->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (m->fd < 0) {
		shmq_mem_unmap(m->mem, m->bytes);
		return -errno;
	}
	m->guard = shmq_guard_add(m->mem, m->bytes, owner);
	return 0;
}

int
app_mem_create(struct app_mem *m, const char *name, size_t bytes, uint16_t owner, int *out_fd)
{
	int rc;

	*m = (struct app_mem){.bytes = bytes};
	rc = shmq_mem_create(name, bytes, &m->mem, out_fd);
	return rc == 0 ? keep(m, *out_fd, owner) : rc;
}

int
app_mem_import(struct app_mem *m, int fd, uint64_t offset, size_t bytes, uint16_t owner,
	       const char **why)
{
	int rc;

	*m = (struct app_mem){.bytes = bytes, .offset = offset};
	rc = shmq_mem_map(fd, offset, bytes, &m->mem, why);
	*why = rc == 0 ? "can't be kept" : *why;
	return rc == 0 ? keep(m, fd, owner) : rc;
}

int
app_mem_take(struct app_mem *m, uint16_t owner)
{
	int rc = shmq_mem_map_at(m->fd, m->offset, m->bytes, m->mem);

	if (rc == 0)
		m->guard = shmq_guard_add(m->mem, m->bytes, owner);
	return rc;
}

void
app_mem_end(struct app_mem *m)
{
	if (m->mem == NULL)
		return;
	shmq_guard_del(m->guard);
	shmq_mem_unmap(m->mem, m->bytes);
	close(m->fd); /* of a memfd: at once */
	m->mem = NULL;
}
