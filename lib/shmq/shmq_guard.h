/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHMQ_GUARD_H
#define SHMQ_GUARD_H

/**
 * @file
 * Memory that we share with another process may fail under us: the kernel has no page for it,
 * the page is broken, or its file became shorter in spite of its seals. We would die of SIGBUS,
 * and all applications with us. So each range that is shared is guarded: a page of it that
 * fails is replaced by one of zeros that is nobody's, whoever touched it goes on, and whose
 * range it was is told. (SYS-5)
 *
 * One thread adds and removes ranges; any thread may touch them.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define SHMQ_GUARD_NONE   UINT32_MAX
#define SHMQ_GUARD_NOBODY 0 /**< owner of what its owner has left behind */

/**
 * Once in a process; takes SIGBUS, which elsewhere than in a range ends us as ever.
 *
 * @param max
 *   Ranges at the same time.
 * @param event_fd
 *   Readable when a page has failed, until shmq_guard_failed() has told all of them.
 * @return
 *   0 or -errno.
 */
int shmq_guard_init(uint32_t max, int *event_fd);
/**
 * From now on [mem, mem + bytes), whole pages, is *owner*'s.
 *
 * @return
 *   Its number. SHMQ_GUARD_NONE: there are as many as there may be, or no shmq_guard_init().
 */
uint32_t shmq_guard_add(void *mem, size_t bytes, uint16_t owner);
/** Before it is unmapped, and when nobody touches it any more. */
void shmq_guard_del(uint32_t range);
/** What *owner* has left behind is nobody's: another one will have its number. */
void shmq_guard_disown(uint16_t owner);
/** True: memory of *owner* has failed; each range is told of once. */
bool shmq_guard_failed(uint16_t *owner);

#endif /* SHMQ_GUARD_H */
