/* SPDX-License-Identifier: BSD-3-Clause */

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "sim_conf.h"

#define PREFIX_V4  (96 + 8)
#define PREFIX_V6  64
#define PORT_FIRST 50000

static uint32_t
sim_core_secret32(void *arg)
{
	return (uint32_t)san_prng_u64(arg);
}

void
san_sim_core_ip(struct san_ip *ip, uint32_t id, bool ipv6)
{
	uint32_t n = rte_cpu_to_be_32((ipv6 ? 0u : 10u << 24) + id + 1);

	memset(ip, 0, sizeof(*ip));
	if (ipv6)
		ip->b[0] = 0xfd;
	else
		ip->b[10] = ip->b[11] = 0xff;
	memcpy(&ip->b[12], &n, sizeof(n));
}

void
san_sim_core_conf(struct san_core_conf *conf, uint32_t id, bool ipv6, struct san_prng *prng)
{
	uint32_t i, n = rte_cpu_to_be_32(id);

	conf->pdl.secret32 = conf->ulp.secret32 = sim_core_secret32;
	conf->pdl.secret_arg = conf->ulp.secret_arg = prng;
	conf->pdl.prng_seed = san_prng_u64(prng);
	for (i = 0; i < SAN_CM_SECRET; i++)
		conf->cm.secret[i] = (uint8_t)san_prng_u64(prng);
	conf->inet.mac.addr_bytes[0] = 2;
	memcpy(&conf->inet.mac.addr_bytes[2], &n, sizeof(n));
	conf->inet.nb_addrs = 1;
	san_sim_core_ip(&conf->inet.addrs[0].ip, id, ipv6);
	conf->inet.addrs[0].prefix_len = ipv6 ? PREFIX_V6 : PREFIX_V4;
	conf->cm.path.src_mac = conf->inet.mac;
	conf->cm.nb_ports = SAN_WIRE_CM_PORTS;
	for (i = 0; i < SAN_WIRE_CM_PORTS; i++)
		conf->cm.ports[i] = (uint16_t)(PORT_FIRST + i);
}

void
san_sim_core_eal_init(uint32_t mb)
{
	char size[16];
	char *argv[] = {"sansim", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry",
			"--log-level=4", "-m", size, NULL};
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
