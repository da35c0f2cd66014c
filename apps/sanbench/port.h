/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_H
#define PORT_H

/**
 * @file
 * Where the context comes from: an engine in this process, on a DPDK port, or the
 * daemon or RDMA device that --attach names. Everything that only an engine of our own can answer
 * is here as well, so that the rest does not ask which of the two it is. (SYS-3)
 */

#include <stdio.h>

#include "bench.h"

/** Value of a counter that only an engine of our own has. */
#define PORT_UNKNOWN UINT64_MAX

/** What a command says that only an engine of our own could do. */
const char *port_attached(const struct bench *b);

/**
 * Open the context as the settings say.
 *
 * @param argc, argv
 *   EAL arguments, argv[0] included; not used with --attach.
 * @return
 *   0, or -errno, which was told; -EINVAL: wrong arguments.
 */
int port_open(struct bench *b, int argc, char **argv);
void port_close(struct bench *b);
bool port_is_attached(const struct bench *b);
/** All counters by name; returns how many there are, fills at most *max*; 0 when attached. */
int port_counters(struct bench *b, struct rtsan_dpdk_counter *c, int max);
/** Value of a counter; 0 if there is none of that name. */
uint64_t port_counter(struct bench *b, const char *name);
/** How far it went since it was *begin*, or PORT_UNKNOWN. */
uint64_t port_counter_since(struct bench *b, const char *name, uint64_t begin);
/** Tell about things that teardown left behind. How many; PORT_UNKNOWN when attached. */
uint64_t port_check_leaks(struct bench *b);
/** Impairment as the settings say. */
void port_apply_impair(struct bench *b);
/** Write every packet to a file until NULL is given. 0 or -errno with rtsan_error(). */
int port_capture(struct bench *b, const char *file);
/** Print for people; -ENOTSUP when attached. */
int port_show(struct bench *b, enum rtsan_dpdk_show what, FILE *f);

#endif /* PORT_H */
