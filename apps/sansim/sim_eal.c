/* SPDX-License-Identifier: BSD-3-Clause */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "sim_eal.h"

void
san_sim_eal_init(uint32_t mb)
{
	char size[16];
	char *argv[] = {
		"sansim",
		"--no-huge",
		"--no-pci",
		"--no-shconf",
		"--no-telemetry",
		"--log-level=4",
		"-m",
		size,
		NULL,
	};
	cpu_set_t cpus;

	snprintf(size, sizeof(size), "%u", mb);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (rte_eal_init((int)RTE_DIM(argv) - 1, argv) < 0) {
		fprintf(stderr, "sansim: DPDK's environment: %s\n", rte_strerror(rte_errno));
		exit(1);
	}
	/* EAL binds the process to one CPU; several simulations share the machine */
	sched_setaffinity(0, sizeof(cpus), &cpus);
}
