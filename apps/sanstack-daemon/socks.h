/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_SOCKS_H
#define DAEMON_SOCKS_H

/**
 * @file
 * Sockets of programs that are carried (UDP-1, UDP-7). The kernel's own socket is kept by a helper:
 * it has the name, so that nobody else can, receives what comes another way than by the port, and
 * has the options. In its place the program has one end of a pair of sockets: inherited, passed on,
 * closed or killed with its process, the kernel counts who has it, and when it was the last the
 * other end, which is ours, hangs up.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include "app_mem.h"
#include "helper_msg.h"
#include "shmq.h"
#include "sock.h"

struct app;
struct app_port;
struct apps;
struct helper;
struct passed;
struct rtsan_provider_event;

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
	uid_t owner; /**< whose share of limits it has; see users_owner() */
	uint16_t family;
	uint32_t number;    /**< which one of its place: see struct helper_sock */
	bool has_sent;      /**< its end of the pair has: something is there to be read */
	bool is_discarding; /**< a helper takes the next message of the pair, for its descriptors */
	bool is_over;       /**< nobody has it: it goes when all is sent */
	uint64_t over_ns;
	struct helper *helper; /**< who has the kernel's socket */
	int32_t kernel;        /**< its handle, or -1 */
	uint64_t kernel_inode;
	int pair;                /**< our end */
	uint64_t cookie, shadow; /**< of the kernel's socket, and of what stands for it */
	uint64_t inode;          /**< of what its programs have */
	struct app_mem mem;      /**< struct san_sock_shm */
	/* TCP: see socks_tcp.c */
	uint32_t qpn;
	uint16_t tcp_port;   /**< a listener's, also of what it accepted; else the peer's */
	uint16_t token_port; /**< our token's own; 0: there is none, or its program has it */
	uint8_t ip[16];      /**< a listener's; of who connects: the peer's; accepted: ours */
	uint32_t nb_groups;  /**< that a datagram socket is in, and which */
	uint8_t groups[SAN_SOCK_GROUPS][16];
	bool to_any;              /**< accepted: by a listener of all addresses */
	uint64_t listener_inode;  /**< which is this one */
	uint64_t asleep_until_ns; /**< of a listener whose program accepts nothing, or unheard */
	uint8_t own_ip[16];       /**< of who connects: from where */
	uint16_t own_port;        /**< likewise; 0: it does not */
	bool connects;            /**< and has no answer yet */
	bool wants_token;         /**< the listener's queue is full */
	bool was_missed;          /**< nobody has accepted it for long */
	bool was_accepted;        /**< but not claimed: when it was looked at last */
	uint64_t look_ns;         /**< when it is looked at again */
	bool is_relayed;          /**< see socks_relay.h; and which direction has ended */
	bool relay_in_over, relay_out_over;
	bool is_relay_due; /**< an event came */
	uint64_t began_ns; /**< since when */
	int token;         /**< our end of the kernel's connection to the listener, or -1 */
	int held;          /**< what will stand for it, until a program accepts it; or -1 */
};

/**
 * What an application asks for.
 *
 * @param p
 *   The socket it is about, or NULL; its handle is -1 afterwards if it is kept.
 * @param out_fd
 *   What goes with the answer, the caller's; or -1.
 * @return
 *   0; -EINPROGRESS: a helper has to do something first, see socks_heard(); or -errno.
 */
int socks_serve(struct app_port *port, struct app *a, const struct shmq_req *req,
		struct passed *p, struct shmq_rep *rep, int *out_fd);
/**
 * A helper's answer about a socket: to CARRY, BIND, LOOK, DISCARD; or CHANGED. As above.
 *
 * @param is_wanted
 *   An application waits for it; else what is not carried yet is not carried any more.
 */
int socks_heard(struct apps *all, const struct helper_msg *m, struct shmq_rep *rep,
		bool is_wanted);
/** The kernel's socket has received a datagram, or has an error. */
void socks_dgram(struct apps *all, const struct helper_dgram *d, const void *data, uint32_t len);
/** A helper has ended, and with it the kernel's sockets that it had: so do ours. See helper_ops. */
void socks_helper_gone(struct apps *all, const struct helper *h, bool has_begun);
/** Is what came with event *ev* a socket's? Then the next socks_bury() looks after it. */
bool socks_event(const struct epoll_event *ev);
/** Is it about a carried stream? Then it is done. */
bool socks_conn_event(struct app_port *port, const struct rtsan_provider_event *from);
/** Sockets that nobody has, and have sent all: when to look again. */
uint64_t socks_bury(struct apps *all, uint64_t now_ns);
/** Sockets of *owner*, or of all (NULL): how many, and *bytes* of memory that they take. */
uint32_t socks_count(const struct app_port *port, const uid_t *owner, uint64_t *bytes);
/** A program has gone: what it wrote and rang for at last goes, too. */
void socks_left(struct app_port *port);
/** The port closes: all of its sockets go. */
void socks_close(struct app_port *port);

#endif /* DAEMON_SOCKS_H */
