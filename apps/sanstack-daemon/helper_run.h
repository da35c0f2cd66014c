/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_HELPER_RUN_H
#define DAEMON_HELPER_RUN_H

/**
 * @file
 * A helper's side: what its process does. It makes every system call on the descriptors that its
 * user's programs passed, and knows nothing of ports, applications or packets. (SYS-6)
 */

/**
 * Serve until the daemon has gone. The process has no other descriptors and does nothing else.
 *
 * @param control
 *   Questions and answers: helper_msg.h.
 * @param data
 *   Datagrams.
 */
void __attribute__((noreturn)) helper_run(int control, int data);

#endif /* DAEMON_HELPER_RUN_H */
