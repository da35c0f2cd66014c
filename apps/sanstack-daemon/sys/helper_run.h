/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_HELPER_RUN_H
#define DAEMON_HELPER_RUN_H

/**
 * @file
 * The process of a helper. It makes the system calls on the descriptors that its user's programs
 * passed, and knows nothing of ports, applications or packets. (SYS-6)
 */

/**
 * Serve until the daemon ends. The process has no other descriptors and no other task.
 *
 * @param control
 *   Questions and answers: helper_msg.h.
 * @param data
 *   Datagrams.
 */
void __attribute__((noreturn)) san_helper_run(int control, int data);

#endif /* DAEMON_HELPER_RUN_H */
