/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_MEM_H
#define DAEMON_APP_MEM_H

/**
 * @file
 * Memory that the daemon shares with an application: mapped, guarded (shmq_guard.h), and with a
 * descriptor by which the daemon that takes over maps it, too. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct app_mem {
	void *mem;
	size_t bytes;
	uint64_t offset;  /**< in the file behind *fd* */
	size_t populated; /**< bytes that may be touched */
	int fd;
	bool is_theirs; /**< the application made it: how large the file is we don't know */
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
/**
 * Memory of the application's own, which a helper has checked; *fd* stays the caller's. It may be
 * touched once app_mem_populate() has said so. 0 or -errno.
 */
int app_mem_import(struct app_mem *m, int fd, uint64_t offset, size_t bytes, uint16_t owner);
/**
 * Fill in a part of its page tables, which takes a few ms.
 *
 * @return
 *   1: call again; 0: all is there; or -errno.
 */
int app_mem_populate(struct app_mem *m);
/** What another process had: *m* is as it was there, but for the descriptor. */
int app_mem_take(struct app_mem *m, uint16_t owner);
/** Nobody touches it any more. What the application made goes in steps, and is closed elsewhere. */
void app_mem_end(struct app_mem *m);
/** A part of what goes in steps. True: call again. */
bool app_mem_step(void);

#endif /* DAEMON_APP_MEM_H */
