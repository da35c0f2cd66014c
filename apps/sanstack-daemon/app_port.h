/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_APP_PORT_H
#define DAEMON_APP_PORT_H

/**
 * @file
 * A port of the daemon, and what its applications hold of it. Numbers are a port's: those of
 * applications, of queues and of regions; what one port gave away names nothing on another
 * one. (SYS-1, SYS-5)
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "app_mem.h"
#include "conf.h"
#include "dpdk_priv.h"

struct app;
struct apps;

/* What applications hold, by number; app is NULL: free. */
struct app_qp {
	struct app *app;
	struct sock_entry *sock; /**< or a carried stream's */
	uint32_t qpn;
	uint64_t stream_bytes; /**< what its session may take, beside *mem* */
	struct app_mem mem;    /**< struct san_wq */
};

struct app_cq {
	struct app *app;
	void *cq;
	struct app_mem mem; /**< struct san_cq */
	int wake_sock;      /**< wakes who waits for completions; -1: nobody does */
};

struct app_mr {
	struct app *app;
	uint32_t key;
	struct app_mem mem;
};

struct app_listener {
	struct app *app;
	uint32_t id;     /**< ours: what the engine calls it */
	uint32_t cookie; /**< the application's */
	uint64_t service;
	uint16_t pkey;
	LIST_ENTRY(app_listener)
	link;
};

/** A connection request that an application was told of: nobody else may answer it. */
struct app_request {
	uint64_t request;
	struct app *app;
};

struct app_port {
	const char *name;
	const struct apps *all;    /**< that it is one of the ports of */
	uint16_t index;            /**< among the daemon's */
	struct dpdk_ctx *ctx;      /**< NULL: parked, and its device is not open */
	struct rte_ether_addr mac; /**< while it is parked: that peers know it by */
	struct san_mem *mem;       /**< where its state lies; NULL: nobody can take it over */
	int mem_fd;                /**< of *mem*; or -1 */
	const struct conf *conf;
	struct rtsan_caps caps;
	uint32_t lcore_qps;
	uint32_t max_socks;
	uint32_t nb_bells;  /**< of an lcore: lcore_qps and max_socks */
	uint32_t max_conns; /**< of all lcores */
	uint32_t slot_mask; /**< san_pdl_slot_mask() */
	bool yields, sleeps;
	struct app_qp *qps; /**< by SAN_QPN_INDEX() */
	struct app_cq *cqs;
	struct app_mr *mrs; /**< by the lower bits of their keys, as the engine has them */
	LIST_HEAD(, app_listener)
	listeners;
	uint32_t next_listener;
	struct app_request *requests; /**< see app_port_request() */
	struct sock_entry *socks;     /**< max_socks of them; see socks.h */
	uint32_t nb_socks;
	uint32_t last_sock;        /**< number of the last one */
	uint64_t nb_streams[2];    /**< that were connected; and accepted */
	uint64_t nb_socks_refused; /**< for lack of room */
	int epoll;                 /**< where their descriptors are watched */
	uint32_t nb_attached;
	bool used[SAN_ENGINE_APPS]; /**< numbers of those that are attached; 0: ourselves */
	uint16_t last_id;           /**< that was given away: they take turns, with what rests */
};

/**
 * Its device is open. *port* is zeros, but for what says where its state lies; *name* and *conf*
 * stay the caller's. 0 or -ENOMEM with a text in rtsan_error().
 */
int app_port_init(struct app_port *port, const char *name, const struct conf *conf,
		  struct dpdk_ctx *ctx);
/** Without applications. */
void app_port_fini(struct app_port *port);

/** A number for one more application; 0: all are in use, by those that are about to go. */
uint16_t app_port_take_id(struct app_port *port);
/** What *id* is called where numbers of all ports meet: shmq_guard_add(). */
uint16_t app_port_guard_id(const struct app_port *port, uint16_t id);
/** The place of a connection request, whoever was told of the one that stands there. */
struct app_request *app_port_request(struct app_port *port, uint64_t request);
/** How many ranges may have to be guarded; see shmq_guard_init(). */
uint32_t app_port_ranges(const struct app_port *port);
/** Queue pairs and connections that one application may have. */
uint32_t app_port_qps_each(const struct app_port *port);
uint32_t app_port_conns_each(const struct app_port *port);

#endif /* DAEMON_APP_PORT_H */
