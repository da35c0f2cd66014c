/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_MEMIF_H
#define ENGINE_MEMIF_H

/**
 * @file
 * The link of a memif client. The driver requests it from the server once, when the port is started
 * (DPDK 22.11). This requests it again whenever the server has refused or the link is lost.
 *
 * All but the first request happen in EAL's interrupt thread, where the driver also handles the
 * answers, and which engine_gate.h holds while bursts run. So no lock is needed.
 *
 * A request that the server has not accepted yet is never cancelled: the driver of a server panics
 * when it accepts a connection that its client has closed.
 *
 * Thread rule: for the thread that opens and closes the port.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>

struct san_engine_memif {
	bool asks; /**< otherwise the rest is unused */
	uint16_t port_id;
	bool is_started;  /**< state of the driver: without a server the port does not start */
	bool is_lost;     /**< the loss was reported */
	uint32_t wait_us; /**< until the next check, while there is no link */
	int fd;           /**< descriptor of the request in progress; -1: unknown */
	uint64_t socket;  /**< its inode, because the number may be reused */
};

/** Whether the port is a memif client, from its arguments. */
bool san_engine_memif_is_client(const struct rte_eth_dev_info *info);
/**
 * Start the port and request its link; with *asks* false only start it. If there is no server, try
 * again for *timeout_ms*. Returns the result of rte_eth_dev_start(). After success, stop *m*
 * before the port.
 */
int san_engine_memif_start(struct san_engine_memif *m, uint16_t port_id, bool asks,
			   uint32_t timeout_ms);
/** Stop requesting the link. */
void san_engine_memif_stop(struct san_engine_memif *m);

#endif /* ENGINE_MEMIF_H */
