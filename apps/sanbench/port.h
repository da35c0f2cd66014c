/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_H
#define PORT_H

/**
 * @file
 * Source of the context: an engine in this process on a DPDK port, or the daemon or RDMA device
 * that --attach names. All functions that need an engine in this process are here, so that callers
 * need not distinguish the two. (SYS-3)
 */

#include <stdio.h>

#include "bench.h"

/** Value of a counter if the engine is in another process. */
#define PORT_UNKNOWN UINT64_MAX

/** Error text of a command that needs an engine in this process. */
const char *san_port_attached(const struct bench *b);

/**
 * Open the context according to the settings.
 *
 * @param argc, argv
 *   EAL arguments, including argv[0]; not used with --attach.
 * @return
 *   0, or -errno after printing an error; -EINVAL: wrong arguments.
 */
int san_port_open(struct bench *b, int argc, char **argv);
void san_port_close(struct bench *b);
bool san_port_is_attached(const struct bench *b);
/** All counters with their names. Returns their number and fills at most *max*; 0 when attached. */
int san_port_counters(struct bench *b, struct rtsan_dpdk_counter *c, int max);
/** Value of the counter *name*, or 0 if there is none. */
uint64_t san_port_counter(struct bench *b, const char *name);
/** Increase of the counter since it was *begin*, or PORT_UNKNOWN. */
uint64_t san_port_counter_since(struct bench *b, const char *name, uint64_t begin);
/** Report leaked records. Returns their number; PORT_UNKNOWN when attached. */
uint64_t san_port_check_leaks(struct bench *b);
/** Apply the impairment settings. */
void san_port_apply_impair(struct bench *b);
/** Write all packets to a file; NULL stops that. 0, or -errno with rtsan_error(). */
int san_port_capture(struct bench *b, const char *file);
/** Print a report as text; -ENOTSUP when attached. */
int san_port_show(struct bench *b, enum rtsan_dpdk_show what, FILE *f);

#endif /* PORT_H */
