/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_HELPER_MSG_H
#define DAEMON_HELPER_MSG_H

/**
 * @file
 * The messages between the daemon and a helper (helper.h). Both are processes of one program, so
 * the messages are structures as they are. A helper answers each message of the daemon's with one
 * of its own, in order; a few messages it sends unasked. (SYS-6)
 */

#include <stdint.h>
#include <sys/socket.h>

#include "shmq.h"

#define HELPER_DGRAM 65536 /**< bytes of a datagram, at most */

enum helper_op {
	/** Receive the next message of the socket that comes along; look at its descriptor. */
	HELPER_FETCH = 1,
	/** Receive one message of the socket that comes along; close the descriptors in it. */
	HELPER_DISCARD,
	/** Close a handle; one that was carried is as it was before. */
	HELPER_CLOSE,
	/** Say once more what the kernel says of a handle. */
	HELPER_LOOK,
	/** A UDP socket is carried: hold its name, filter it, and pass on what it receives. */
	HELPER_CARRY,
	/** Bind a TCP socket to an address, with a port that the kernel chooses. */
	HELPER_BIND,
	/** Send an answer, with a handle, to the application whose socket comes along. */
	HELPER_GIVE,
	HELPER_OPS,
	/** Unasked, and first: the process runs. */
	HELPER_BEGUN,
	/** Unasked: the name of a carried socket, or its device, has changed. */
	HELPER_CHANGED,
};

/** What the kernel says of a descriptor that a program passed. */
struct helper_facts {
	int32_t domain, protocol; /**< -1: it is no socket */
	int32_t device;           /**< index of the device that it is bound to, or 0 */
	uint64_t cookie, inode;   /**< 0: it has none */
	uint8_t is_our_net;       /**< it is of the daemon's network namespace */
	uint8_t has_filter;
	uint8_t listens, is_closed; /**< TCP: it listens; neither listens nor connects */
	uint8_t reuseport, v6only, nonblock;
	uint8_t hops, tos, df; /**< of what it sends; hops 0: the system's; enum san_sock_df */
	/** Family 0: it has no such name. */
	struct sockaddr_storage local, peer;
};

/** What a helper needs to know of a port to filter what the port receives as well. */
struct helper_filter {
	uint32_t if_index; /**< 0: the kernel does not have the port's device */
	uint32_t whole_v4; /**< longest IPv4 packet that the port has whole */
	uint8_t local_only;
};

/** Names a socket to the daemon: its place in a port's table, and which one of that place. */
struct helper_sock {
	uint16_t port;
	uint32_t place, number;
};

struct helper_msg {
	uint32_t op;  /**< enum helper_op; of an answer, the question's */
	int32_t rc;   /**< of an answer */
	uint64_t job; /**< the daemon's; an answer has the question's */
	int32_t handle;
	struct helper_sock sock; /**< likewise */
	union {
		struct helper_filter filter;    /**< CARRY */
		struct sockaddr_storage source; /**< BIND: with port 0 */
		struct shmq_rep rep;            /**< GIVE */
		struct {
			struct shmq_req req;       /**< answer to FETCH */
			struct helper_facts facts; /**< also to LOOK, CARRY, BIND; CHANGED */
			char why[64];              /**< what is wrong with memory; or empty */
		};
	};
};

/** On the data channel, before the bytes: a datagram of a carried socket, in both directions. */
struct helper_dgram {
	struct helper_sock sock;
	int32_t handle; /**< to the helper: the socket that sends it */
	int32_t err;    /**< from the helper: no datagram, but this error of the socket */
	uint32_t if_index;
	uint8_t src[16], dst[16]; /**< IPv6, or IPv4 mapped into it */
	uint16_t sport;
	uint8_t hops, tos;
};

#endif /* DAEMON_HELPER_MSG_H */
