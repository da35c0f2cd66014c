/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHMQ_GUARD_H
#define SHMQ_GUARD_H

/**
 * @file
 * Memory that is shared with another process may fail: the kernel has no page for it, the page is
 * broken, the other process has punched a hole, or the file shrank in spite of its seals. SIGBUS
 * would then end the daemon, and the service of all applications with it. Therefore each shared
 * range is guarded. A page that fails is replaced, with those around it, by private pages of zeros,
 * the thread that touched it continues, and the owner of the range is reported. (SYS-5)
 *
 * One thread adds and removes ranges; any thread may touch them.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define SHMQ_GUARD_NONE   UINT32_MAX
#define SHMQ_GUARD_NOBODY 0 /**< owner of a range whose owner has ended */

/**
 * Install the handler for SIGBUS, once in a process. Outside the guarded ranges, SIGBUS ends the
 * process as before.
 *
 * @param max
 *   Most ranges at the same time.
 * @param event_fd
 *   Readable when a page has failed, until san_shmq_guard_failed() has reported all of them.
 * @return
 *   0 or -errno.
 */
int san_shmq_guard_init(uint32_t max, int *event_fd);
/**
 * Guard [mem, mem + bytes), whole pages, for *owner*.
 *
 * @return
 *   Its number. SHMQ_GUARD_NONE: the table is full, or san_shmq_guard_init() was not called.
 */
uint32_t san_shmq_guard_add(void *mem, size_t bytes, uint16_t owner);
/** Remove a range, before it is unmapped and when no thread touches it any more. */
void san_shmq_guard_del(uint32_t range);
/** Detach the ranges of *owner*, before its number is reused. */
void san_shmq_guard_disown(uint16_t owner);
/** True: memory of *owner* has failed. Each range is reported once. */
bool san_shmq_guard_failed(uint16_t *owner);

#endif /* SHMQ_GUARD_H */
