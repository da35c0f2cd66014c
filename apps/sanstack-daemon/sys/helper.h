/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Helpers: processes that make the system calls on descriptors that programs pass. Such a call may
 * block for as long as a hostile program likes, and even SIGKILL does not end it. So the daemon
 * makes no such call and receives no descriptor of a program, except memory that a helper has
 * checked. It leaves a message with descriptors in its socket, and a helper fetches it. Each user
 * has a helper of its own, so a user that blocks it delays only its own programs. There are at most
 * HELPERS_MAX helpers. A helper shares no mapping and no lock with the daemon. Of the daemon's
 * descriptors it has its two channels, and the socket of a message that it fetches. Thread rule:
 * the main thread. (SYS-6)
 */

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "shmq.h"
#include "wire.h"

/** Close a descriptor that may be -1. */
static inline void
san_fd_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

/** Watch *fd*; its events carry *what*. 0 or -errno. */
static inline int
san_fd_watch(int epoll, int fd, uint32_t events, void *what)
{
	struct epoll_event ev = {.events = events, .data = {.ptr = what}};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

/** What poll() reports of *fd* at once: of *events*, and what it always reports. 0: nothing. */
static inline short
san_fd_poll(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

#define HELPERS_MAX    64
#define HELPER_LATE_NS 2000000000u /**< a helper that has not answered for so long is late */

struct apps;
struct harden_user;
struct helper;

/* ---- messages ---- */

/*
 * Both ends are processes of one program, so a message is a plain structure. A helper answers each
 * message of the daemon with one of its own, in order. It sends some messages unasked.
 */

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

/** The value of an option of SOL_SOCKET, of 4 or 8 bytes; 0: there is none. */
uint64_t san_helper_facts_option(int fd, int name);
/** Read an address of facts, of IPv4 or IPv6. *scope* may be NULL. */
void san_helper_facts_addr(const struct sockaddr_storage *ss, struct san_ip *ip, uint16_t *port,
			   uint32_t *scope);

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
	struct san_ip src, dst;
	uint16_t sport;
	uint8_t hops, tos;
};

/* ---- helper.c: the daemon's end ---- */

/** Callbacks of the daemon. */
struct helper_ops {
	/** An answer, or HELPER_CHANGED. The callee owns *fd*, which may be -1. */
	void (*on_answer)(struct apps *all, struct helper *h, const struct helper_msg *m, int fd);
	/** A datagram of a carried socket, or an error. */
	void (*dgram)(struct apps *all, const struct helper_dgram *d, const void *data,
		      uint32_t len);
	/**
	 * The process has ended without having been asked to. *h* is invalid afterwards. If
	 * *has_begun* is false it never ran and has fetched no message.
	 */
	void (*ended)(struct apps *all, struct helper *h, bool has_begun);
};

/**
 * Fork the process that forks helpers. Call this first: before threads exist, before descriptors
 * are open that helpers must not have, and before rights are dropped; the process drops its own.
 */
int san_helper_begin(const struct harden_user *user, bool seccomp);
/** EAL has started: keep the helpers off the CPUs of lcores that poll, if there are others. */
void san_helper_avoid_lcores(void);
/** A descriptor that is readable when san_helper_serve() has work; or -errno. */
int san_helper_open(const struct helper_ops *ops, struct apps *all);
/** Process the messages of helpers. */
void san_helper_serve(void);
/** Send delayed messages and check for late helpers. Returns when to call again. */
uint64_t san_helper_step(uint64_t now_ns);

/** False: the forking process was killed, and no helper can be started any more. */
bool san_helper_are_there(void);
uid_t san_helper_uid(const struct helper *h);
/**
 * Find the helper of *uid*, or start one. *has_app*: the user has an application, and the helper
 * stays until san_helper_leave(). NULL: try again later. Too many users have a helper, the user's
 * last one is ending, or there is no memory.
 */
struct helper *san_helper_of(uid_t uid, bool has_app);
/**
 * Ask a question, with a descriptor that stays the caller's, or -1. The answer comes through
 * helper_ops. -ENOMEM, -EMFILE, -ETOOMANYREFS: it was not sent.
 */
int san_helper_ask(struct helper *h, const struct helper_msg *m, int fd);
/** Close a handle that nothing refers to any more. */
void san_helper_close(struct helper *h, int32_t handle);
/** Send a datagram through a carried socket. It may be lost. */
void san_helper_send(struct helper *h, const struct helper_dgram *d, const void *data, size_t len);
/** True if it has not answered for HELPER_LATE_NS. */
bool san_helper_is_late(const struct helper *h, uint64_t now_ns);

/** The user has no application any more: end its helper once it is idle. */
void san_helper_leave(uid_t uid);
/** True if the user's helper still has something to close. */
bool san_helper_are_closing(uid_t uid);
/** Have another process close a descriptor of the daemon, because close() may block. */
void san_helper_close_fd(int fd);
/**
 * Close a socket of the daemon; through san_helper_close_fd() if unread descriptors lie in it.
 * Needs san_shmq_peek_init().
 */
void san_helper_hang_up(int sock);
