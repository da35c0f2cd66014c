/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_OWN_H
#define SOCK_OWN_H

/**
 * @file
 * Descriptors that the switch has for itself, of which the program knows nothing: they are out of
 * the way of its own ones, and it can neither close nor replace them. (UDP-1)
 */

#include <stdatomic.h>
#include <stdbool.h>

/**
 * *fd*, which may be -1, is ours from now on, with a high number.
 *
 * @param holder
 *   Where its number is kept, or will be; it is changed there if the program wants the number.
 * @return
 *   What it is called now.
 */
int sock_own(int fd, _Atomic int *holder);
/** A second number of *fd*, which is ours; -1: there is none, or few are left for the program. */
int sock_own_dup(int fd, _Atomic int *holder);
/** Close one of ours; -1: nothing. */
void sock_own_close(int fd);
bool sock_is_own(int fd);
/** The kernel has given *fd* to the program: ours was closed unheard. */
void sock_own_lost(int fd);
/** The program wants *fd*: if it is ours, it moves. */
void sock_own_make_way(int fd);
/** close_range(2) of all but ours. */
int sock_own_close_others(unsigned int first, unsigned int last, int flags);

#endif /* SOCK_OWN_H */
