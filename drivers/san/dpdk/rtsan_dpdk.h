/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTSAN_DPDK_H
#define RTSAN_DPDK_H

/**
 * @file
 * What the embedded DPDK provider offers beyond rtsan.h: opening from argv, impairment, counters.
 * For tools such as sanbench; link with librtsan-dpdk.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "rtsan.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * rtsan_open() from separate arguments.
 *
 * @param argc, argv
 *   EAL arguments, argv[0] included, up to the end.
 * @param conf
 *   Port arguments, as after "--" in the spec of rtsan_open():
 *   "ip=10.0.0.1/24 ip6=fd00::1/64 port=0 mtu=9000 poll=caller|lcore
 *   idle=poll|yield|sleep cc=swift ...", separated by blanks; see rtsan-dpdk(7).
 */
int rtsan_dpdk_open(int argc, char **argv, const char *conf, struct rtsan_ctx **ctx);

/**
 * Set faults that the port adds in one direction. Both directions may have one seed: that of
 * *tx* counts one more, so that they do not lose the same packets of a request and its answer.
 *
 * @param ctx
 *   NULL: only check *text*.
 * @param tx
 *   Before transmission, otherwise after reception.
 * @param text
 *   "drop=0.01,dup=1%,reorder=0.05,delay=100us,corrupt=0.001,ecn=0.1,seed=7": probabilities of
 *   each packet, and what is added to every packet's delay. NULL: none.
 * @return
 *   0, -EINVAL.
 */
int rtsan_dpdk_impair(struct rtsan_ctx *ctx, bool tx, const char *text);

/** Print to *f* for people. */
void rtsan_dpdk_show(struct rtsan_ctx *ctx, enum rtsan_dpdk_show what, FILE *f);

/** Get all counters. Returns their number and fills at most *max* of them. */
int rtsan_dpdk_counters(struct rtsan_ctx *ctx, struct rtsan_dpdk_counter *c, int max);
/** Number of objects that teardown should have released and did not; 0 is right. */
uint64_t rtsan_dpdk_leaks(struct rtsan_ctx *ctx);
/** Write every packet of the port to a pcapng file; NULL ends that. 0 or -errno. */
int rtsan_dpdk_capture(struct rtsan_ctx *ctx, const char *file);

#ifdef __cplusplus
}
#endif

#endif /* RTSAN_DPDK_H */
