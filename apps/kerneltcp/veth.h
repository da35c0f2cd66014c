/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VETH_H
#define VETH_H

/**
 * @file
 * Two network namespaces and a veth pair between them, without iproute2, because the demo needs
 * nothing but what the build needs. They end with the processes.
 */

#include <sys/types.h>

#define VETH_SERVER_IP 0x0a4d0101 /**< 10.77.1.1, of the parent */
#define VETH_CLIENT_IP 0x0a4d0102 /**< 10.77.1.2, of the child */

/**
 * Enter a new network namespace, and fork a child in another one at the other end of the pair.
 *
 * @param child
 *   Result: 0 in the child, its PID in the parent. Both devices are up and have addresses.
 * @return
 *   0, or a negative errno with the failed step in *what*:
 *   - -EPERM: no right to create a namespace.
 *   - -EOPNOTSUPP: the kernel has no veth.
 */
int san_veth_fork(pid_t *child, const char **what);

#endif /* VETH_H */
