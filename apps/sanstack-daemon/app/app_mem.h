/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_MEM_H
#define DAEMON_APP_MEM_H

/**
 * @file
 * Memory that the daemon shares with an application. It is mapped and guarded (shmq.h), and
 * its descriptor lets a daemon that takes over map it as well. Thread rule: the main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct app_mem {
	void *mem;
	size_t bytes;
	uint64_t offset;  /**< offset in the file of *fd* */
	size_t populated; /**< bytes that have page tables and may be accessed */
	int fd;
	bool is_theirs; /**< created by the application, so the size of the file is unknown */
	uint32_t guard;
};

/**
 * Create memory for *owner*, which is a number for san_shmq_guard_add().
 *
 * @param out_fd
 *   Descriptor to send to the application; the caller's.
 * @return
 *   0, -ENOMEM, -EMFILE, ...
 */
int san_app_mem_create(struct app_mem *m, const char *name, size_t bytes, uint16_t owner,
		       int *out_fd);
/**
 * Map memory of the application that a helper has checked; *fd* stays the caller's. It must not be
 * accessed before san_app_mem_populate() has returned 0. 0 or -errno.
 */
int san_app_mem_import(struct app_mem *m, int fd, uint64_t offset, size_t bytes, uint16_t owner);
/**
 * Fill a part of the page tables, which takes less than a ms.
 *
 * @param due_ns
 *   When the next call may be made, for this memory or other.
 * @return
 *   1: call again; 0: complete; or -errno.
 */
int san_app_mem_populate(struct app_mem *m, uint64_t *due_ns);
/** Map memory of the previous daemon at the same address. Only the descriptor in *m* is new. */
int san_app_mem_take(struct app_mem *m, uint16_t owner);
/** Close a descriptor of the application's memory that a helper has checked. It does not block. */
void san_app_mem_close(int fd);
/**
 * Release memory that is no longer accessed; see san_app_mem_step() for the application's
 * memory.
 */
void san_app_mem_end(struct app_mem *m);
/** Do one step of pending unmapping, if it is due. Returns when to call again. */
uint64_t san_app_mem_step(uint64_t now_ns);

#endif /* DAEMON_APP_MEM_H */
