/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * The length of a cache line that all layouts assume. Memory that processes share has these
 * layouts, so it is a constant, and not DPDK's, which is 128 in builds for any arm64 CPU. Where
 * lines are longer, two sides write to the same line: slower, and still correct.
 */

#define SAN_LINE 64u
