/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_OWNER_H
#define SOCK_OWNER_H

/**
 * @file
 * Who serves a socket: the kernel, or the daemon. (UDP-10)
 *
 * A call that the kernel is to serve *pins* the socket meanwhile. The owner changes only while
 * nobody has it pinned, and a call that comes then waits for the end of the change. So each call is
 * served whole by one of them. A change takes one question to the daemon.
 *
 * A call that waits for datagrams would pin a socket for long. Before a UDP socket has a name none
 * can come: then the call waits at the socket's *gate*, which opens when the owner is chosen.
 */

#include <pthread.h>
#include <signal.h>

#include "sock_fd.h"

/** What a thread's change keeps: signals and cancellation wait for its end. */
struct sock_change {
	struct sock_file *f;
	sigset_t signals;
	int cancel;
};

/** Pin *f*, to which the caller has a reference. False: the daemon serves it, from now on. */
bool sock_pin(struct sock_file *f);
/** Pin *f*, whoever serves it: its numbers change. */
void sock_pin_any(struct sock_file *f);
/** Unpin *f* and give the reference back; NULL: nothing. */
void sock_unpin(struct sock_file *f);
/**
 * Of calls that are counted, one less. Not below 0: in a child that a signal handler made, the call
 * that it interrupted is not counted any more.
 */
void sock_count_down(_Atomic uint32_t *count);

/**
 * The owner of *f* may change until sock_change_end().
 *
 * @return
 *   False: another thread's call has it pinned, and does not end soon.
 */
bool sock_change_begin(struct sock_change *change, struct sock_file *f);
/** Until *f* is not being changed. */
void sock_change_wait(const struct sock_file *f);
/** *f->carried* says whose it is. */
void sock_change_end(struct sock_change *change);
/** The owner of *f* is chosen, by its name. Wakes the threads that wait at its gate. */
void sock_owner_chosen(struct sock_file *f);
/** Around fork(): no socket is being changed when the child comes into being. */
void sock_change_hold(void);
void sock_change_release(void);
void sock_change_begin_child(void);

/**
 * Unpin *f*, which has no name yet, give the reference back, and wait until its owner is chosen; or
 * as long as SO_RCVTIMEO of *fd* says.
 *
 * @return
 *   0: look again; or errno. -1: it stays pinned, for the kernel to be asked: *fd* does not block,
 *   or there is no gate.
 */
int sock_gate_wait(int fd, struct sock_file *f);

#endif /* SOCK_OWNER_H */
