/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VETH_H
#define VETH_H

/**
 * @file
 * Two network namespaces and a pair of virtual devices between them, without iproute2: the demo
 * runs on a machine that has only what building needs. They go with the processes.
 */

#include <sys/types.h>

#define VETH_SERVER_IP 0x0a4d0101 /**< 10.77.1.1, of this process */
#define VETH_CLIENT_IP 0x0a4d0102 /**< of the child */

/**
 * Go into a namespace of its own; with a child in another, at the other end of the pair.
 *
 * @param child
 *   Result: 0 in the child, its number in the parent. Both devices are up, with their addresses.
 * @return
 *   0, or a negative errno with *what* it is that did not go:
 *   - -EPERM: no right to make a namespace.
 *   - -EOPNOTSUPP: the kernel has no veth.
 */
int veth_fork(pid_t *child, const char **what);

#endif /* VETH_H */
