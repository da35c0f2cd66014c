/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_OWN_H
#define SOCK_OWN_H

/**
 * @file
 * Descriptors of the library itself, which the program does not know. They have high numbers, and
 * the program can neither close nor replace them. (UDP-1)
 */

#include <stdatomic.h>
#include <stdbool.h>

/**
 * Make *fd*, which may be -1, a descriptor of the library, and move it to a high number.
 *
 * @param holder
 *   Where its number is kept, or will be. It is updated there if the program wants the number.
 * @return
 *   The new number.
 */
int san_sock_own(int fd, _Atomic int *holder);
/** Duplicate *fd* for the library; -1: no number is free, or few are left for the program. */
int san_sock_own_dup(int fd, _Atomic int *holder);
/** Close a descriptor of the library; -1: do nothing. */
void san_sock_own_close(int fd);
bool san_sock_own_is(int fd);
/** The kernel has given *fd* to the program: a call not intercepted has closed the library's. */
void san_sock_own_lost(int fd);
/** The program wants the number *fd*: move the library's descriptor away. */
void san_sock_own_make_way(int fd);
/** close_range(2) for all descriptors except the library's. */
int san_sock_own_close_others(unsigned int first, unsigned int last, int flags);

#endif /* SOCK_OWN_H */
