/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Older versions of DPDK with the interface of 24.11, for which all sources are written. Include it
 * in place of the headers below. meson.build has the versions that are accepted. An IPv6 address is
 * an array before 24.11 and a struct since: its address serves both, as in memcpy(&ip->src_addr).
 */

#include <rte_cycles.h>
#include <rte_pcapng.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#if RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0)
#define rte_tel_data_add_array_uint rte_tel_data_add_array_u64
#define rte_tel_data_add_dict_uint  rte_tel_data_add_dict_u64
/* a file has all ports from the start */
#define rte_pcapng_add_interface(file, port, name, description, filter) 0
#define rte_pcapng_copy(port, queue, m, pool, length, direction, comment) \
	rte_pcapng_copy(port, queue, m, pool, length, rte_rdtsc(), direction)
#elif RTE_VERSION < RTE_VERSION_NUM(23, 11, 0, 0)
#define rte_pcapng_copy(port, queue, m, pool, length, direction, comment) \
	rte_pcapng_copy(port, queue, m, pool, length, rte_rdtsc(), direction, comment)
#endif
