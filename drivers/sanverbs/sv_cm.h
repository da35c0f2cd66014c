/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * The functions of librdmacm on devices of the library. If there is a device, all identifiers are
 * ours; otherwise all calls go to the next library. (RDMA-3)
 *
 * One lock protects channels and identifiers; that of a device comes before it.
 */

#include <sys/queue.h>

#include <rdma/rdma_cma.h>

#include "sv_priv.h"

#define SV_CM_DATA_MAX 56 /* private data: the rest of librtsan's 64 bytes is struct sv_cm_hello */

/** In front of the private data of requests and answers. */
struct sv_cm_hello {
	uint16_t port; /**< of the sender, big endian */
	uint8_t responder_resources, initiator_depth;
	uint8_t length; /**< of the private data */
	uint8_t qp_num[3];
};
static_assert(sizeof(struct sv_cm_hello) + SV_CM_DATA_MAX == RTSAN_PRIVATE_MAX, "they fill it");

struct sv_cm_event {
	struct rdma_cm_event ev; /**< first: what the program gets */
	uint8_t data[SV_CM_DATA_MAX];
	STAILQ_ENTRY(sv_cm_event) link;
};

struct sv_cm_channel {
	struct rdma_event_channel ch; /**< fd: an eventfd that counts *events* */
	STAILQ_HEAD(, sv_cm_event) events;
};

struct sv_id {
	struct rdma_cm_id id;
	struct sv_device *dev;       /**< NULL: not bound to one */
	bool is_sync;                /**< calls wait for their events, on a channel of its own */
	struct sv_qp *q;             /**< that it connects: *id.qp*, or the program's own */
	bool is_active;              /**< it connects, and does not accept */
	struct rdma_conn_param peer; /**< what the peer sent last, without private data */
	bool has_request;
	uint64_t request;  /**< of librtsan, until it is accepted or rejected */
	uint32_t nb_taken; /**< events that the program has and did not acknowledge */
	struct rtsan_listener *listeners[SV_DEVICES];
	struct ibv_qp_init_attr attr; /**< of rdma_create_ep(), for accepted connections */
	bool has_attr;
	LIST_ENTRY(sv_id) link; /**< if it listens, or was made for a request */
};

/* ---- sv_cm.c ---- */

extern pthread_mutex_t san_sv_cm_lock;

/** Call the next library if there is no device, and return what it returns. */
#define SV_CM_ELSE_NEXT(name, ...) SV_ELSE_NEXT(san_sv_devices() != 0, name, __VA_ARGS__)

/** Report an event of *id*, with its lock. *listener*: of a request. NULL: no memory. */
struct sv_cm_event *san_sv_cm_report(struct sv_id *id, struct sv_id *listener,
				     enum rdma_cm_event_type type, int status);
/** The call has caused an event: a synchronous identifier waits for it. 0, or -1 with errno. */
int san_sv_cm_complete(struct sv_id *id);
/** Bind *id* to *dev*. 0 or -errno. */
int san_sv_cm_bind(struct sv_id *id, struct sv_device *dev);
/** GID of an address. */
void san_sv_cm_gid(const struct sockaddr *addr, union ibv_gid *gid);
/** Address of a GID. */
void san_sv_cm_addr(const union ibv_gid *gid, __be16 port, struct sockaddr_storage *addr);
/** Way from *id* to a GID. */
struct ibv_ah_attr san_sv_cm_ah(const struct sv_id *id, const union ibv_gid *to);
/** A port that nobody asked for. */
__be16 san_sv_cm_choose_port(void);
/** Port of an address, big endian. */
__be16 *san_sv_cm_port(struct sockaddr *addr);
