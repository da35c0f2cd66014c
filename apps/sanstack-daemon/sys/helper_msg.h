/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_HELPER_MSG_H
#define DAEMON_HELPER_MSG_H

/**
 * @file
 * The messages between the daemon and a helper (helper.h). Both are processes of one program, so a
 * message is a plain structure. A helper answers each message of the daemon with one of its own, in
 * order. It sends some messages unasked. (SYS-6)
 */

#include <stdint.h>
#include <sys/socket.h>

#include "shmq.h"

#define HELPER_DGRAM 65536 /**< maximum size of a datagram */

enum helper_op {
	/** Receive the next message of the socket sent along, and examine its descriptor. */
	HELPER_FETCH = 1,
	/** Receive one message of the socket that is sent along, and close its descriptors. */
	HELPER_DISCARD,
	/** Close a handle. A carried socket gets its old options back. */
	HELPER_CLOSE,
	/** Examine a handle again. */
	HELPER_LOOK,
	/** Carry a UDP socket: keep its port, attach a filter, forward what it receives. */
	HELPER_CARRY,
	/** Bind a TCP socket to an address and a port that the kernel chooses. */
	HELPER_BIND,
	/** Send an answer with a handle to the application whose socket is sent along. */
	HELPER_GIVE,
	HELPER_OPS,
	/** Unasked, the first message: the process runs. */
	HELPER_BEGUN,
	/** Unasked: the address of a carried socket, or its device, has changed. */
	HELPER_CHANGED,
};

/** Properties of a descriptor that a program passed, as the kernel reports them. */
struct helper_facts {
	int32_t domain, protocol; /**< -1: not a socket */
	int32_t device;           /**< index of the device that it is bound to, or 0 */
	uint64_t cookie, inode;   /**< 0: none */
	uint8_t is_our_net;       /**< it belongs to the daemon's network namespace */
	uint8_t has_filter;
	uint8_t listens, is_closed; /**< TCP: listening; neither listening nor connected */
	uint8_t reuseport, v6only, nonblock;
	uint8_t hops, tos, df; /**< for sent packets; hops 0: the default; enum san_sock_df */
	/** Family 0: no such address. */
	struct sockaddr_storage local, peer;
};

/** What a helper needs to filter packets that the port receives as well. */
struct helper_filter {
	uint32_t if_index; /**< 0: the kernel has no device for the port */
	uint32_t whole_v4; /**< longest IPv4 packet that the port receives whole */
	uint8_t local_only;
};

/** Identifies a socket to the daemon: its place in a port's table, and the use of that place. */
struct helper_sock {
	uint16_t port;
	uint32_t place, number;
};

struct helper_msg {
	uint32_t op;  /**< enum helper_op; an answer repeats the question's */
	int32_t rc;   /**< in answers */
	uint64_t job; /**< chosen by the daemon; an answer repeats it */
	int32_t handle;
	struct helper_sock sock; /**< likewise */
	union {
		struct helper_filter filter;    /**< CARRY */
		struct sockaddr_storage source; /**< BIND: address, with port 0 */
		struct shmq_rep rep;            /**< GIVE */
		struct {
			struct shmq_req req;       /**< answer to FETCH */
			struct helper_facts facts; /**< also LOOK, CARRY, BIND; in CHANGED */
			char why[64];              /**< why the memory was refused, or empty */
		};
	};
};

/** Header on the data channel: precedes a datagram of a carried socket in either direction. */
struct helper_dgram {
	struct helper_sock sock;
	int32_t handle; /**< to the helper: the socket to send it from */
	int32_t err;    /**< from the helper: an error of the socket instead of a datagram */
	uint32_t if_index;
	uint8_t src[16], dst[16]; /**< IPv6, or IPv4-mapped */
	uint16_t sport;
	uint8_t hops, tos;
};

#endif /* DAEMON_HELPER_MSG_H */
