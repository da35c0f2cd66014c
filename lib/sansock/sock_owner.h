/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_OWNER_H
#define SOCK_OWNER_H

/**
 * @file
 * Which side serves a socket: the kernel, or the daemon. (UDP-10)
 *
 * A call that the kernel serves *pins* the socket until it returns. The owner changes only while no
 * call pins the socket, and a call that comes then waits for the end of the change. So each call is
 * served by one owner from beginning to end. A change takes one request to the daemon.
 *
 * A call that waits for datagrams would pin a socket for long. Before a UDP socket has a name it
 * cannot receive any. Then the call waits at the socket's *gate*, which opens when the owner is
 * chosen.
 */

#include <pthread.h>
#include <signal.h>

#include "sock_fd.h"

/** State of a change to restore at its end: signals are blocked and cancellation is disabled. */
struct sock_change {
	struct fd_sock *f;
	sigset_t signals;
	int cancel;
};

/** Pin *f*, to which the caller has a reference. False: the daemon serves it from now on. */
bool san_sock_owner_pin(struct fd_sock *f);
/** Pin *f*, whichever side serves it, because its descriptors change. */
void san_sock_owner_pin_any(struct fd_sock *f);
/** Unpin *f* and release the reference; NULL: do nothing. */
void san_sock_owner_unpin(struct fd_sock *f);
/**
 * Decrement the number of calls, but not below 0: in a child that a signal handler has made, the
 * call that the handler interrupted is not counted any more.
 */
void san_sock_owner_count_down(_Atomic uint32_t *count);

/**
 * Begin a change of the owner of *f*, which san_sock_owner_change_end() ends.
 *
 * @return
 *   False: a call of another thread pins it and does not end soon.
 */
bool san_sock_owner_change_begin(struct sock_change *change, struct fd_sock *f);
/** Wait for the end of a change of *f*. */
void san_sock_owner_change_wait(const struct fd_sock *f);
/** End the change; *f->carried* says which side serves *f*. */
void san_sock_owner_change_end(struct sock_change *change);
/** The owner of *f* has been chosen by its name. Wakes the threads that wait at its gate. */
void san_sock_owner_chosen(struct fd_sock *f);
/** Around fork(): no socket is being changed when the child is created. */
void san_sock_owner_change_hold(void);
void san_sock_owner_change_release(void);
void san_sock_owner_change_begin_child(void);

/**
 * Unpin *f*, which has no name yet, release the reference, and wait until its owner is chosen, or
 * until SO_RCVTIMEO of *fd* expires.
 *
 * @return
 *   0: look the owner up again; or errno. -1: it stays pinned and the kernel must be asked, because
 *   *fd* does not block or there is no gate.
 */
int san_sock_owner_gate_wait(int fd, struct fd_sock *f);

#endif /* SOCK_OWNER_H */
