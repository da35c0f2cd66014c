/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCKS_H
#define DAEMON_SOCKS_H

/**
 * @file
 * Sockets of programs that are carried (UDP-1, UDP-7). The kernel's own socket is kept here: it
 * has the name, so that nobody else can, receives what comes another way than by the port, and has
 * the options. In its place the program has one end of a pair of sockets: inherited, passed on,
 * closed or killed with its process, the kernel counts who has it, and when it was the last the
 * other end, which is ours, hangs up.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include "app_mem.h"
#include "shmq.h"

struct app;
struct app_port;
struct apps;
struct rtsan_provider_event;

#define SOCKS_MORE 3 /* options of the kernel's socket that are turned on */

/** Behind it a TCP port: services by which daemons find each other's, and which nobody else has. */
#define SOCKS_SERVICE 0x53414e5443500000ull

static inline bool
socks_is_service(uint64_t service)
{
	return (service & ~0xffffull) == SOCKS_SERVICE;
}

enum socks_kind {
	SOCKS_DGRAM = 0,
	SOCKS_STREAM,
	SOCKS_LISTENER, /**< of the kernel's: what comes for it may be carried */
};

struct sock_entry {
	struct app_port *port; /**< NULL: free */
	uint8_t kind;          /**< enum socks_kind */
	uint32_t id;
	uid_t uid;
	uint16_t family;
	bool has_sent; /**< its end of the pair has: something is there to be read */
	bool has_more; /**< the kernel's has datagrams that its turn was too short for */
	bool is_over;  /**< nobody has it: it goes when all is sent */
	bool asks_more;
	int had[SOCKS_MORE]; /**< what they were before */
	uint64_t over_ns;
	int kernel;
	int pair;                /**< our end */
	uint64_t cookie, shadow; /**< of the kernel's socket, and of what stands for it */
	uint64_t inode;          /**< of what its programs have */
	struct app_mem mem;      /**< struct san_sock_shm */
	/* TCP: see socks_tcp.c */
	uint32_t qpn;
	uint16_t tcp_port;   /**< a listener's; of who was accepted: that listener's */
	uint16_t token_port; /**< our token's own; 0: there is none, or its program has it */
	uint8_t ip[16];      /**< a listener's; of who connects: the peer's; accepted: ours */
	bool is_asleep;      /**< a listener whose program takes nothing, or has not the library */
	bool connects;       /**< and has no answer yet */
	bool wants_token;    /**< the listener's queue is full */
	bool was_missed;     /**< nobody has accepted it for long */
	uint64_t began_ns;   /**< since when */
	int token;           /**< our end of the kernel's connection to the listener, or -1 */
	int held;            /**< what will stand for it, until a program accepts it; or -1 */
};

/**
 * What an application asks for.
 *
 * @param fd
 *   The socket it is about, or -1; stays the caller's.
 * @param out_fd
 *   What goes with the answer, the caller's; or -1.
 */
int socks_serve(struct app_port *port, const struct app *a, const struct shmq_req *req, int fd,
		struct shmq_rep *rep, int *out_fd);
/**
 * Is what came with event *ev* a socket's? Then it is looked after: now, or if it *is_late*,
 * by the next socks_bury(); it does not come again.
 */
bool socks_event(const struct epoll_event *ev, bool is_late);
/** Is it about a carried stream? Then it is done. */
bool socks_conn_event(struct app_port *port, const struct rtsan_provider_event *from);
/** Sockets that nobody has, and have sent all: when to look again. */
uint64_t socks_bury(struct apps *all, uint64_t now_ns);
/** Sockets of *uid*, or of all (NULL): how many, and *bytes* of memory that they take. */
uint32_t socks_count(const struct app_port *port, const uid_t *uid, uint64_t *bytes);
/** A program has gone: what it wrote and rang for at last goes, too. */
void socks_left(struct app_port *port);
/** The port closes: all of its sockets go. */
void socks_close(struct app_port *port);

#endif /* DAEMON_SOCKS_H */
