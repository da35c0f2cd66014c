/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_WAIT_H
#define SOCK_WAIT_H

/**
 * @file
 * Waiting for several descriptors, of which some are carried. With one of those ready nobody
 * asks the kernel about them; else it is the kernel who waits, for what stands for them. (AFC-19)
 */

#include <poll.h>
#include <signal.h>
#include <sys/select.h>
#include <time.h>

/** *timeout* NULL: for ever. Like ppoll(2); *mask* may be NULL. */
int sock_wait_poll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		   const sigset_t *mask);
/** Is any of them carried? */
int sock_wait_concerns(const struct pollfd *fds, nfds_t n);
/** Likewise like pselect(2). */
int sock_wait_select(int n, fd_set *in, fd_set *out, fd_set *except,
		     const struct timespec *timeout, const sigset_t *mask);
int sock_wait_concerns_sets(int n, const fd_set *in, const fd_set *out, const fd_set *except);

#endif /* SOCK_WAIT_H */
