/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file The processes of helpers: see helper.h. (SYS-6) */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"

/*
 * ---- helper_run.c: the process of a helper. It makes the system calls on the descriptors that its
 * user's programs passed, and knows nothing of ports, applications or packets. ----
 */

/**
 * Begin to serve questions and answers (*control*, struct helper_msg) and datagrams (*data*).
 * Returns a descriptor that is readable when san_helper_run_turn() has something to do. Who ends
 * helping without ending the process closes it, and the two channels.
 */
int san_helper_run_begin(int control, int data);
/**
 * Serve what there is; *waits*: wait until there is something. False: the daemon has ended, or has
 * asked the helper to end.
 */
bool san_helper_run_turn(bool waits);

/* ---- helper_facts.c: properties of a descriptor that a program passed (SYS-6) ---- */

/** Examine any descriptor. A property that it does not have is 0 or -1. */
void san_helper_facts_read(int fd, struct helper_facts *facts);
/** The value of a socket option; -1: there is none. */
int san_helper_facts_int(int fd, int level, int name);
/**
 * Bind a UDP socket to its port explicitly. connect(AF_UNSPEC) releases a port that the kernel
 * chose, but not one that bind() named, so only close() releases it afterwards. (SYS-7)
 * -EADDRINUSE: another socket got the port meanwhile.
 */
int san_helper_facts_hold_name(int fd);

/**
 * Filter what the kernel's socket of a carried one may still receive (UDP-4): drop what the port
 * receives as well. With *local_only* drop also what arrives at any device other than loopback. 0
 * or -errno.
 */
int san_sock_filter_port(int fd, const struct helper_filter *what);

/* ---- helper_fork.c: the process that forks helpers, small and without rights ---- */

/** Start it; *pid* is its number. Returns the daemon's end of its socket, or -errno. */
int san_helper_fork_init(const struct harden_user *user, bool seccomp, pid_t *pid);
/** Have it fork a helper of *uid*. 0, with the daemon's ends of the channels, or -errno. */
int san_helper_fork(int forker, uid_t uid, int *control, int *data);
#define HELPER_CLOSE_MAX 128

/**
 * Have *fds*, at most HELPER_CLOSE_MAX, closed by the exit of a new process, which does not block
 * on sockets that linger. Returns a descriptor that the caller closes after *fds*: the process
 * exits only then, so that its close() is the last one. -EAGAIN: try later; or -errno.
 */
int san_helper_fork_close(int forker, const int *fds, uint32_t nb);
