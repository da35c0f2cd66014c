/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Carried sockets of programs (UDP-1, UDP-7). A helper keeps the kernel's socket, which reserves
 * the address, receives what does not arrive at the port, and has the options. The program has one
 * end of a socket pair instead. The kernel counts the references to this end across fork(),
 * passing, close() and exit. When the last is closed, the daemon's end hangs up.
 */

#include <netinet/in.h>

#include "app.h"
#include "sock.h"

struct rte_tel_data;
struct san_view_app;
struct san_view_set;

/**
 * Service of a TCP port, which is added to it. Daemons use these services to connect carried
 * streams; applications can't use them.
 */
#define SOCKS_SERVICE 0x53414e5443500000ull

static inline bool
san_socks_is_service(uint64_t service)
{
	return (service & ~0xffffull) == SOCKS_SERVICE;
}

enum socks_kind {
	SOCKS_DGRAM = 0,
	SOCKS_STREAM,
	SOCKS_LISTENER, /**< a listening socket of the kernel; its connections may be carried */
};

struct app_sock {
	struct app_port *port; /**< NULL: free entry */
	struct app *app;       /**< has named or accepted it; NULL: none yet, or it has ended */
	uint8_t kind;          /**< enum socks_kind */
	bool has_id;           /**< the lcore has, or had, the socket as *id* */
	uint32_t id;
	uid_t uid;
	uid_t owner;        /**< the user whose limits apply; see san_users_owner() */
	uint32_t number;    /**< unique number of this use of the entry; see struct helper_sock */
	bool has_sent;      /**< the pair may have something to read */
	bool is_discarding; /**< a helper reads the next message of the pair, for its descriptors */
	bool is_over;       /**< closed by all programs; released when all data is sent */
	uint64_t over_ns;
	struct helper *helper; /**< the helper that has the kernel's socket */
	int32_t kernel;        /**< its handle there, or -1 */
	uint64_t kernel_inode;
	int pair;                /**< the daemon's end of the pair */
	uint64_t cookie, shadow; /**< of the kernel's socket, and of the program's end */
	uint64_t inode;          /**< of the program's end; a listener's: the kernel's socket */
	struct app_mem mem;      /**< struct san_sock_shm */
	/* TCP: see socks_tcp.c */
	uint32_t qpn;
	uint16_t tcp_port;  /**< listening or accepted: own port; connecting: the peer's */
	struct san_ip ip;   /**< listening or accepted: own address; connecting: the peer's */
	uint32_t nb_groups; /**< multicast groups of a datagram socket */
	struct san_ip groups[SAN_SOCK_GROUPS];
	uint64_t listener;             /**< accepted: the cookie of the kernel's listener */
	bool is_waited_for;            /**< a listener that a program with the library waits for */
	uint64_t asleep_until_ns;      /**< of a listener whose program does not accept */
	struct san_ip own_ip;          /**< connecting: own address */
	uint16_t own_port;             /**< connecting: own port; else 0 */
	bool connects;                 /**< the peer has not answered yet */
	bool wants_token;              /**< the listener's queue is full */
	bool is_offered;               /**< the token is in the queue, or not claimed yet */
	bool is_accepted;              /**< the latter, at the last look */
	uint64_t look_ns;              /**< time of the next look */
	uint64_t began_ns;             /**< begin of the current state */
	int token;                     /**< the daemon's end of the connection, or -1 */
	struct sockaddr_in token_name; /**< its own name */
	int held;                      /**< the program's end until a program claims it, or -1 */
};

/**
 * Serve a request of an application. The handle of the passed socket becomes -1 if it is kept. 0;
 * -EINPROGRESS: a helper has to answer first, see san_socks_on_answer(); or -errno.
 */
int san_socks_serve(struct app *a, const struct shmq_req *req);
/**
 * A helper has answered CARRY, BIND, LOOK or DISCARD, or reports CHANGED. *is_wanted*: an
 * application waits for it; if not, a socket that is not carried yet is released. Returns like
 * san_socks_serve().
 */
int san_socks_on_answer(struct apps *all, const struct helper_msg *m, struct shmq_rep *rep,
			bool is_wanted);
/** The kernel's socket has received a datagram, or has an error. */
void san_socks_dgram(struct apps *all, const struct helper_dgram *d, const void *data,
		     uint32_t len);
/** A helper has ended, and its sockets with it: release them. See helper_ops. */
void san_socks_helper_ended(struct apps *all, const struct helper *h, bool has_begun);
/** True if event *ev* belongs to a socket. The next san_socks_expire() handles it. */
bool san_socks_event(const struct epoll_event *ev);
/** Handle an event of a carried stream. False: it is another one's. */
bool san_socks_tcp_conn_event(struct app_port *port, const struct shmq_event *ev);
/** Serve all sockets, and release closed ones that are drained. Returns when to call again. */
uint64_t san_socks_expire(struct apps *all, uint64_t now_ns);
/** An application has ended: send the data for which it could not ring the doorbell any more. */
void san_socks_app_ended(struct app *a);
/** Add to *of*, by number of the application, what its sockets have moved. */
void san_socks_count(const struct app_port *port, struct san_view_app *of);
/** The port closes: release all sockets. */
void san_socks_close(struct app_port *port);
/**
 * Open a channel to the kernel, before the sandbox forbids it. Without it no token can be made, and
 * listeners stay with the kernel.
 */
void san_socks_token_init(void);

/* ---- socks_telemetry.c ---- */

/** Record why the kernel's socket of *inode* is not carried. Only the latest ones are kept. */
void san_socks_telemetry_refused(uint64_t inode, const char *why);

/* Answers: each fills the dict *d*, lists with as many as fit from number *from* on. */
int san_socks_telemetry_sum(struct rte_tel_data *d, const struct app_port *port, uint32_t from);
int san_socks_telemetry_list(struct rte_tel_data *d, const struct app_port *port, uint32_t from);
int san_socks_telemetry_reasons(struct rte_tel_data *d, const struct app_port *port, uint32_t from);
extern const struct san_view_set san_socks_telemetry_sum_set, san_socks_telemetry_list_set;
