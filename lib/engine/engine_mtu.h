/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_MTU_H
#define ENGINE_MTU_H

/**
 * @file
 * The MTU of a port (RT-31): what its driver, the buffers that the operator gave it and
 * the kernel's device behind it really take. What the network behind it takes is not its
 * business: lib/pdl/pdl_pmtu.c finds that out.
 */

#include <stdbool.h>
#include <stdint.h>

struct rte_eth_dev_info;

/** What is known of a port; bytes of IP. */
struct san_engine_mtu {
	uint32_t most;   /**< frames that its buffers hold; UINT32_MAX: no such bound known */
	uint32_t now;    /**< it is set to, or the kernel's device behind it is */
	uint32_t kernel; /**< index of that device; 0: none */
	bool by_buffers; /**< only its buffers count: memif */
	/**
	 * The longest IPv4 packet that was in fragments and comes whole: af_packet has the kernel
	 * put them together, and cuts off the rest. UINT32_MAX: fragments come as they are.
	 */
	uint32_t whole_v4;
};

/** Ask driver, arguments and kernel. *header*: bytes of a frame in front of the IP packet. */
void san_engine_mtu_ask(uint16_t port_id, const struct rte_eth_dev_info *info, uint32_t header,
			struct san_engine_mtu *m);
/**
 * The MTU to use.
 *
 * @param wanted
 *   By the operator; 0: what the port has, up to 9000.
 * @param least
 *   That the addresses allow.
 * @return
 *   0, or -EMSGSIZE with what is wrong in *why*: the buffers hold less than is wanted, or
 *   the port has less than *least*.
 */
int san_engine_mtu_choose(const struct san_engine_mtu *m, uint16_t wanted, uint16_t least,
			  uint16_t *mtu, const char **why);
/** MTU of the kernel's device with this index; 0: none, or it can't be asked. */
uint32_t san_engine_mtu_of_kernel(uint32_t if_index);
/** Number of "key=N" among a device's arguments; *otherwise* if it is not there. */
uint32_t san_engine_mtu_arg(const char *args, const char *key, uint32_t otherwise);

#endif /* ENGINE_MTU_H */
