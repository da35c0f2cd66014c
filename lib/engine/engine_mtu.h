/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_MTU_H
#define ENGINE_MTU_H

/**
 * @file
 * The MTU of a port (RT-31): what its driver, its buffers and the kernel's device behind it really
 * carry. The MTU of the network is found by lib/pdl/pdl_pmtu.c.
 */

#include <stdbool.h>
#include <stdint.h>

struct rte_eth_dev_info;

/** Limits of a port, in bytes of IP. */
struct san_engine_mtu {
	uint32_t most;   /**< what its buffers hold; UINT32_MAX: unknown */
	uint32_t now;    /**< MTU of the kernel's device behind it, or of the port */
	uint32_t kernel; /**< index of that device; 0: none */
	bool by_buffers; /**< only the buffers count: memif */
	/**
	 * Longest IPv4 packet that arrives reassembled: af_packet lets the kernel reassemble
	 * fragments, and cuts off the rest. UINT32_MAX: fragments arrive as they are.
	 */
	uint32_t whole_v4;
};

/** Ask driver, arguments and kernel. *header*: bytes of a frame in front of the IP packet. */
void san_engine_mtu_ask(uint16_t port_id, const struct rte_eth_dev_info *info, uint32_t header,
			struct san_engine_mtu *m);
/**
 * Choose the MTU to use.
 *
 * @param wanted
 *   The operator's choice; 0: what the port has, up to 9000.
 * @param least
 *   Least MTU that the addresses allow.
 * @return
 *   0, or -EMSGSIZE with the cause in *why*: the buffers hold less than is wanted, or the port has
 *   less than *least*.
 */
int san_engine_mtu_choose(const struct san_engine_mtu *m, uint16_t wanted, uint16_t least,
			  uint16_t *mtu, const char **why);
/** MTU of the kernel's device with this index; 0: no device, or an error. */
uint32_t san_engine_mtu_of_kernel(uint32_t if_index);
/** Value of "key=N" in a device's arguments; *otherwise* if it is missing. */
uint32_t san_engine_mtu_arg(const char *args, const char *key, uint32_t otherwise);

#endif /* ENGINE_MTU_H */
