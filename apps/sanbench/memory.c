/* SPDX-License-Identifier: BSD-3-Clause */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "client.h"

static uint64_t
heap_bytes(void)
{
	struct rte_malloc_socket_stats stats;
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < rte_socket_count(); i++)
		if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(i), &stats) == 0)
			sum += stats.heap_allocsz_bytes;
	return sum;
}

void
san_memory_read(struct memory *m)
{
	const struct {
		const char *format;
		uint64_t *to;
	} wanted[] = {
		{"VmRSS: %" SCNu64, &m->rss_bytes},
		{"HugetlbPages: %" SCNu64, &m->hugetlb_bytes},
		{"VmData: %" SCNu64, &m->data_bytes},
	};
	FILE *f = fopen("/proc/self/status", "r");
	char line[128];
	uint64_t kib;
	size_t i;

	memset(m, 0, sizeof(*m));
	m->heap_bytes = heap_bytes();
	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL)
		for (i = 0; i < RTE_DIM(wanted); i++)
			if (sscanf(line, wanted[i].format, &kib) == 1)
				*wanted[i].to = kib << 10;
	fclose(f);
}
