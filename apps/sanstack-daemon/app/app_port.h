/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_PORT_H
#define DAEMON_APP_PORT_H

/**
 * @file
 * A port of the daemon, and what its applications hold of it. Numbers of applications, queues and
 * regions belong to one port and mean nothing on another. (SYS-1, SYS-5)
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "app_mem.h"
#include "conf.h"
#include "dpdk_priv.h"

struct app;
struct apps;

/* Objects of applications, indexed by number. app is NULL in a free entry. */
struct app_qp {
	struct app *app;
	struct app_sock *sock; /**< the carried stream that owns it instead */
	uint32_t qpn;
	uint64_t stream_bytes; /**< memory of its stream buffers, beside *mem* */
	struct app_mem mem;    /**< struct san_wq */
};

struct app_cq {
	struct app *app;
	void *cq;
	struct app_mem mem; /**< struct san_cq */
	int wake_sock;      /**< wakes a thread that waits for completions, or -1 */
};

struct app_mr {
	struct app *app;
	uint32_t key;
	struct app_mem mem;
};

struct app_listener {
	struct app *app;
	uint32_t id;     /**< assigned by the engine */
	uint32_t cookie; /**< chosen by the application */
	uint64_t service;
	uint16_t pkey;
	LIST_ENTRY(app_listener) link;
};

/**
 * A connection request that was reported to an application. Only this application may answer it.
 */
struct app_request {
	uint64_t request;
	struct app *app;
};

struct app_port {
	const char *name;
	const struct apps *all;    /**< the set that contains this port */
	uint16_t index;            /**< index in that set */
	struct dpdk_ctx *ctx;      /**< NULL: the port is parked and its device closed */
	struct rte_ether_addr mac; /**< its MAC address while it is parked */
	struct san_mem *mem;       /**< memory of its state; NULL: it can't be taken over */
	int mem_fd;                /**< descriptor of *mem*, or -1 */
	const struct conf *conf;
	struct rtsan_caps caps;
	uint32_t lcore_qps;
	uint32_t max_socks;
	uint32_t nb_doorbells; /**< per lcore: lcore_qps + max_socks */
	uint32_t max_conns;    /**< of all lcores together */
	uint32_t slot_mask;    /**< san_pdl_slot_mask() */
	bool yields, sleeps, carries_tcp;
	struct app_qp *qps; /**< indexed by SAN_QPN_INDEX() */
	struct app_cq *cqs;
	struct app_mr *mrs; /**< indexed by the lower bits of the key, like the engine's */
	LIST_HEAD(, app_listener) listeners;
	uint32_t next_listener;
	struct app_request *requests; /**< see san_app_port_request() */
	struct app_sock *socks;       /**< array of max_socks; see socks.h */
	uint32_t nb_socks;
	uint32_t last_sock;        /**< number of the newest socket */
	uint64_t nb_streams[2];    /**< connected, and accepted */
	uint64_t nb_socks_refused; /**< because no entry was free */
	int epoll;                 /**< watches the descriptors of sockets */
	uint32_t nb_attached;
	bool used[SAN_ENGINE_APPS];    /**< numbers in use; 0 is the daemon's */
	uid_t owners[SAN_ENGINE_APPS]; /**< users of the numbers: the last ones, if not in use */
	uint16_t last_id;              /**< newest number; numbers rotate, so that old ones rest */
};

/** All applications are destroyed. */
void san_app_port_fini(struct app_port *port);

/** The number of application *id* among those of all ports, for san_shmq_guard_add(). */
uint16_t san_app_port_guard_id(const struct app_port *port, uint16_t id);
/** The table entry for a connection request. The caller must check what the entry holds. */
struct app_request *san_app_port_request(struct app_port *port, uint64_t request);
/** Limits of queue pairs and connections of one application. */
uint32_t san_app_port_qps_each(const struct app_port *port);
uint32_t san_app_port_conns_each(const struct app_port *port);

#endif /* DAEMON_APP_PORT_H */
