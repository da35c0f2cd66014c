/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_MEMIF_H
#define ENGINE_MEMIF_H

/**
 * @file
 * The link of a memif client: the driver asks the server for it once, when the port is started
 * (DPDK 22.11). This asks again whenever the server refused, or the link is lost.
 *
 * All but the first time happens in EAL's interrupt thread, where the driver handles the answers,
 * and which engine_gate.h holds while bursts run. So nothing is locked.
 *
 * A request that the server has not accepted yet is never given up: the driver of a server that
 * accepts a connection which its client has closed panics.
 *
 * Thread rule: of the thread that opens and closes the port.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>

struct san_engine_memif {
	bool asks; /**< else all of this does nothing */
	uint16_t port_id;
	bool is_started;  /**< as the driver knows it: without a server it does not start */
	bool is_lost;     /**< reported */
	uint32_t wait_us; /**< before the next look, while there is no link */
	int fd;           /**< of the request that is under way; -1: not known */
	uint64_t socket;  /**< its inode: the number may be another one's by now */
};

/** Whether the port is one, from its arguments. */
bool san_engine_memif_is_client(const struct rte_eth_dev_info *info);
/**
 * Start the port and ask for its link. Where *asks* is false it is only started.
 * *patience_ms*: for that long again if there is no server.
 * Returns what rte_eth_dev_start() did; then *m* must be stopped before the port is.
 */
int san_engine_memif_start(struct san_engine_memif *m, uint16_t port_id, bool asks,
			   uint32_t patience_ms);
/** It asks no more. */
void san_engine_memif_stop(struct san_engine_memif *m);

#endif /* ENGINE_MEMIF_H */
