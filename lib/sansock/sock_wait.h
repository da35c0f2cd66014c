/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_WAIT_H
#define SOCK_WAIT_H

/**
 * @file
 * Waiting for several descriptors, of which some are carried. If only carried ones are polled and
 * one is ready, the kernel is not asked. Otherwise the kernel waits, for their stand-ins, too.
 * (AFC-19)
 */

#include <poll.h>
#include <signal.h>
#include <sys/select.h>
#include <time.h>

/** ppoll(2). *timeout* NULL: no limit; *mask* may be NULL. */
int san_sock_wait_poll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		       const sigset_t *mask);
/** Whether one of them is carried, or may come to be. */
int san_sock_wait_concerns(const struct pollfd *fds, nfds_t n);
/** pselect(2). *timeout* NULL: no limit; *mask* may be NULL. */
int san_sock_wait_select(int n, fd_set *in, fd_set *out, fd_set *except,
			 const struct timespec *timeout, const sigset_t *mask);
int san_sock_wait_concerns_sets(int n, const fd_set *in, const fd_set *out, const fd_set *except);

#endif /* SOCK_WAIT_H */
