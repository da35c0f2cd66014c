/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_HELPER_RUN_H
#define DAEMON_HELPER_RUN_H

/**
 * @file
 * The process of a helper. It makes the system calls on the descriptors that its user's programs
 * passed, and knows nothing of ports, applications or packets. (SYS-6)
 */

#include <stdbool.h>

/**
 * Begin to serve.
 *
 * @param control
 *   Questions and answers: helper_msg.h.
 * @param data
 *   Datagrams.
 * @return
 *   A descriptor that is readable when san_helper_run_turn() has something to do. Who ends helping
 *   without ending the process closes it, and the two channels.
 */
int san_helper_run_begin(int control, int data);
/**
 * Serve what there is.
 *
 * @param waits
 *   Wait until there is something.
 * @return
 *   False: the daemon has ended, or has asked the helper to end.
 */
bool san_helper_run_turn(bool waits);

#endif /* DAEMON_HELPER_RUN_H */
