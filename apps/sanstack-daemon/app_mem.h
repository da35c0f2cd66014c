/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_MEM_H
#define DAEMON_APP_MEM_H

/**
 * @file
 * Memory that the daemon shares with an application: mapped, guarded (shmq_guard.h), and with a
 * descriptor by which the daemon that takes over maps it, too. One thread.
 */

#include <stddef.h>
#include <stdint.h>

struct app_mem {
	void *mem;
	size_t bytes;
	uint64_t offset; /**< in the file behind *fd* */
	int fd;
	uint32_t guard;
};

/**
 * New memory for *owner*, as shmq_guard_add() calls it.
 *
 * @param out_fd
 *   For the application: the caller's.
 * @return
 *   0, -ENOMEM, -EMFILE, ...
 */
int app_mem_create(struct app_mem *m, const char *name, size_t bytes, uint16_t owner, int *out_fd);
/** Memory of the application's own; *fd* stays the caller's. Like shmq_mem_map(). */
int app_mem_import(struct app_mem *m, int fd, uint64_t offset, size_t bytes, uint16_t owner,
		   const char **why);
/** What another process had: *m* is as it was there, but for the descriptor. */
int app_mem_take(struct app_mem *m, uint16_t owner);
/** Nobody touches it any more. */
void app_mem_end(struct app_mem *m);

#endif /* DAEMON_APP_MEM_H */
