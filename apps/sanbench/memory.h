/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MEMORY_H
#define MEMORY_H

/** @file Memory use of this process, as the kernel and DPDK report it. */

#include <stdint.h>

struct memory {
	uint64_t rss_bytes;     /**< resident, without hugepages */
	uint64_t hugetlb_bytes; /**< hugepages */
	uint64_t data_bytes;    /**< private and writable, touched or not */
	uint64_t heap_bytes;    /**< taken from DPDK's heaps */
};

/** Values that can't be read are 0. */
void san_memory_read(struct memory *m);

#endif /* MEMORY_H */
