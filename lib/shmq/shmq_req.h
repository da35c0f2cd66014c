/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * A control call as a record, and the event that reports what became of one. librtsan fills the
 * record in; the unix provider sends it to the daemon as it is; the engine's provider and the
 * daemon execute it by one table (drivers/san/dpdk/dpdk_call.c). The daemon trusts nothing in a
 * record that it has received: app_conn.c and app.c check its copy. (SYS-2, SYS-5)
 */

#include <stdint.h>

#include "rtsan_abi.h"

#define SHMQ_MAGIC  0x716d6873u /* "shmq" */
#define SHMQ_ABI    11          /**< changes with any layout here, in shmq.h or in included files */
#define SHMQ_PORT   32          /* bytes of a port's name, with the final NUL */
#define SHMQ_NAME   16          /* bytes of a program's name, with the final NUL */
#define SHMQ_LAYOUT 40          /* bytes of the layout text that SHMQ_TAKEOVER compares */

enum shmq_type {
	SHMQ_HELLO = 1, /**< the first request; the answer brings struct shmq_ctl */
	SHMQ_MR_ADD = 2,
	SHMQ_MR_DEL = 3,
	SHMQ_CQ_CREATE = 4, /**< the answer brings struct san_cq */
	SHMQ_CQ_DESTROY = 5,
	SHMQ_QP_CREATE = 6, /**< the answer brings struct san_wq */
	SHMQ_QP_DESTROY = 7,
	SHMQ_LISTEN = 8,
	SHMQ_UNLISTEN = 9,
	SHMQ_CONNECT = 10,
	SHMQ_ACCEPT = 11,
	SHMQ_REJECT = 12,
	SHMQ_DISCONNECT = 13,
	/** the answer brings the waiter's end of a pair: see san_shmq_pair() */
	SHMQ_CQ_FD = 14,
	SHMQ_EVENT_FD = 15, /**< the same for events */
	SHMQ_WAKE_FD = 16,  /**< of an lcore: the answer brings an eventfd that wakes it */
	/*
	 * A carried socket (sock_shm.h). The first request brings the kernel's socket, which the
	 * daemon keeps. The answer brings its stand-in, which all later requests bring.
	 */
	SHMQ_SOCK_CARRY = 17,  /**< the answer brings the stand-in */
	SHMQ_SOCK_FIND = 18,   /**< the answer brings its memory */
	SHMQ_SOCK_SYNC = 19,   /**< the kernel's socket has a new name or other options */
	SHMQ_SOCK_KERNEL = 20, /**< the answer brings the kernel's socket */
	SHMQ_SOCK_GROUP = 21,  /**< the kernel's socket has joined or left a group */
	/* TCP: each of LISTEN, CONNECT and ACCEPT brings the kernel's socket */
	SHMQ_SOCK_LISTEN = 22,  /**< the answer brings a descriptor: held while listening */
	SHMQ_SOCK_CONNECT = 23, /**< the answer brings the stand-in, used once it is up */
	SHMQ_SOCK_ACCEPT = 24,  /**< the answer brings the stand-in */
	SHMQ_SOCK_SETTLE = 25,  /**< release the sockets that have ended; -EBUSY: ask again */
	SHMQ_SOCK_CLOSED = 26,  /**< -EBUSY: its user's descriptors are not closed yet; ask again */
	SHMQ_TYPES,
	SHMQ_TAKEOVER = 256 /**< from one daemon to the next; not for applications */
};

/** A queue pair. */
struct shmq_qp {
	uint32_t send_cq, recv_cq;   /**< ids of completion queues; the unix provider enters them */
	uint32_t sq_depth, rq_depth; /**< powers of two */
	uint8_t is_stream;           /**< otherwise *stream* is not used */
	uint8_t shares_recvs;        /**< otherwise *recv_from* is not used */
	uint8_t pad[2];
	uint32_t recv_from; /**< number of a queue pair */
	struct rtsan_stream_attr stream;
};

/**
 * Parameters of a listener or connection: SHMQ_LISTEN ... SHMQ_REJECT. Zero means the default, as
 * in struct rtsan_conn_param.
 */
struct shmq_conn {
	uint16_t pkey;                /**< partition; 0: the port's */
	uint16_t backlog;             /**< SHMQ_LISTEN */
	uint32_t uid;                 /**< SHMQ_CONNECT, SHMQ_ACCEPT; the daemon enters it */
	uint64_t service;             /**< SHMQ_LISTEN, SHMQ_UNLISTEN, SHMQ_CONNECT */
	uint64_t request;             /**< SHMQ_ACCEPT, SHMQ_REJECT */
	char peer[RTSAN_ADDRESS_MAX]; /**< SHMQ_CONNECT: text of its address */
	uint16_t window, first_window;
	uint16_t max_txn, msg_limit;
	uint16_t rnr_ms, keepalive_ms;
	uint16_t private_len;
	uint8_t order; /**< enum rtsan_order */
	uint8_t pad;
	uint8_t private_data[RTSAN_PRIVATE_MAX];
};

/** The record. Whatever crosses the socket has this size; see struct shmq_rep. */
struct shmq_req {
	uint32_t magic; /**< magic and abi have the same place in every version */
	uint32_t abi;
	uint32_t type; /**< enum shmq_type */
	uint32_t id;   /**< region, completion queue, queue pair, lcore, or cookie of a listener */
	union {
		struct {
			char port[SHMQ_PORT]; /**< its name; empty: the daemon's first one */
			uint8_t is_query;     /**< report the port only: nothing is attached */
			/** of the program, for operators; empty: an older library */
			char name[SHMQ_NAME];
		} hello;
		struct {
			uint64_t addr; /**< address of the first byte in the application */
			uint64_t length;
			uint64_t offset; /**< in the memfd that comes with the record */
			uint32_t access;
		} mr;
		struct {
			uint32_t depth; /**< of a completion queue */
		} cq;
		struct shmq_qp qp;
		struct shmq_conn conn;
		struct {
			uint8_t local_only; /**< the kernel's socket receives local packets only */
			uint8_t leaves;     /**< it leaves the group; otherwise it joins */
			uint8_t group[16];
			uint8_t peer[16]; /**< to connect to */
			uint16_t peer_port;
		} sock;
		char layout[SHMQ_LAYOUT];
		/** The size is that of version 7, so that such a library is refused with a text. */
		uint8_t room[160];
	};
};

/** An event of a provider; librtsan makes a struct rtsan_event of it. */
struct shmq_event {
	uint8_t type;   /**< enum rtsan_event_type */
	uint8_t reason; /**< enum rtsan_reason */
	uint16_t private_len;
	uint32_t qp;       /**< number of the queue pair, or SAN_QPN_NONE */
	uint32_t listener; /**< CONNECT_REQUEST: its cookie */
	uint8_t stream;    /**< CONNECT_REQUEST: it is for a stream */
	uint8_t user;      /**< enum rtsan_user */
	uint8_t own_user;  /**< *uid* is that of the application */
	uint8_t pad;
	uint32_t uid;
	uint32_t pad_end;
	uint64_t request;
	char peer[RTSAN_ADDRESS_MAX];
	uint8_t private_data[RTSAN_PRIVATE_MAX];
};

_Static_assert(sizeof(struct shmq_req) == 176, "SHMQ_ABI");
_Static_assert(sizeof(struct shmq_event) == 144, "SHMQ_ABI");
