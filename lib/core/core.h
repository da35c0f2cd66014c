/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * The complete protocol instance of one lcore, without I/O: packets and time go in, packets and
 * events come out (SYS-1, SYS-2, ARCH-1). It reads no clock, makes no system call and calls no
 * application. Two runs with the same inputs are identical bit by bit.
 *
 * There are five calls for packets and time: san_core_rx_burst(), _tx_burst(), _tick(),
 * _deadline_ns(), _poll_event(). Work enters by san_core_post() and san_core_post_recv(),
 * everything else by the calls below them. The object belongs to one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "cm.h"
#include "express.h"
#include "inet.h"
#include "pdl.h"
#include "sock.h"
#include "stream.h"
#include "tl.h"
#include "ulp.h"

#define SAN_CORE_BURST 32

struct san_core_conf {
	struct san_pdl_conf pdl;
	struct san_tl_conf tl; /**< the core sets ops and ulp */
	struct san_cm_conf cm; /**< the owner sets path and ports; max_conns follows pdl */
	struct san_ulp_conf ulp;
	struct san_inet_conf inet;
	uint16_t udp_port;
	uint16_t mtu;             /**< IP MTU of the link: limits the payload (RT-31) */
	struct rte_mempool *pool; /**< for packets built here; see SAN_PKT_PRIV_SIZE */
	struct san_mem *mem;      /**< holds all protocol state; NULL: the heap */
	uint64_t stream_mem;      /**< bytes for all streams together */
	uint64_t stream_mem_user; /**< ... for the streams of one user; see san_core_stream_conf */
	uint64_t linger_ns;       /**< how long an orphaned stream continues to send */
	uint32_t max_socks;       /**< carried sockets; 0: none, and no memory for them */
	bool express;             /**< ordinary packets use the express path (express.h); default */
};

struct san_core_event {
	uint8_t type;     /**< enum rtsan_event_type */
	uint8_t reason;   /**< enum rtsan_reason */
	uint32_t qp;      /**< number of the queue pair; SAN_QPN_NONE for a CONNECT_REQUEST */
	uint64_t request; /**< CONNECT_REQUEST: for accept or reject */
	uint32_t listener;
	bool stream;   /**< CONNECT_REQUEST: must be accepted with a stream */
	bool is_local; /**< the peer is a program of this port: *uid* is what its owner states */
	uint32_t uid;  /**< CONNECT_REQUEST, ESTABLISHED: of the peer, or RTSAN_UID_NONE */
	struct san_ip peer;
	uint16_t private_len;
	uint8_t private_data[SAN_WIRE_CM_PRIVATE];
};

struct san_core;

/** Set all defaults for *max_conns* connections over a link with *mtu* (IP bytes). */
void san_core_conf_default(struct san_core_conf *conf, uint32_t max_conns, uint16_t mtu);
/** -EINVAL: a value is out of range; -ENOMEM. */
int san_core_create(const struct san_core_conf *conf, uint64_t now_ns, struct san_core **out);
void san_core_destroy(struct san_core *core);

/**
 * Release everything that belongs to this process; the rest stays in conf->mem. Held packets are
 * dropped; peers resend them.
 */
void san_core_park(struct san_core *core, uint64_t now_ns);
/**
 * True if a core that another process has parked, and its parts, lie in *mem*. Check this before
 * san_core_park_resume().
 */
bool san_core_park_lies_in(const struct san_core *core, const struct san_mem *mem);
/**
 * Resume a parked core, also in another process. Of *conf* only what belongs to the process is
 * used: pool, tables, functions, the port's own address. 0, -EINVAL, -ENOMEM; on an error it is
 * still parked.
 */
int san_core_park_resume(struct san_core *core, const struct san_core_conf *conf);

/**
 * The MAC address of the port has changed; connections continue with it. *announce*: announce it to
 * the link, because neighbours would keep the old one.
 */
void san_core_mac_set(struct san_core *core, const struct rte_ether_addr *mac, bool announce);

/** Process received packets. Takes over the mbufs. Before it: san_pdl_rtx_rx_gap(). */
void san_core_rx_burst(struct san_core *core, struct rte_mbuf **pkts, uint16_t n, uint64_t now_ns);
/** Returns at most *n* packets to send, which the caller owns. 0: nothing to send now. */
uint16_t san_core_tx_burst(struct san_core *core, struct rte_mbuf **pkts, uint16_t n,
			   uint64_t now_ns);
/** Run timers that are due. */
void san_core_tick(struct san_core *core, uint64_t now_ns);
/** When tick must be called next; SAN_TIME_NEVER: only after another call. */
uint64_t san_core_deadline_ns(const struct san_core *core);
bool san_core_conn_poll_event(struct san_core *core, struct san_core_event *ev);

/* ---- work: see ulp.h ---- */
/** Prefetch the records of *qp*, which exists and has work next. */
void san_core_prefetch_qp(const struct san_core *core, uint32_t qp);
uint32_t san_core_post(struct san_core *core, uint32_t qp, const struct san_ulp_wr *wr, uint32_t n,
		       uint64_t now_ns);
uint32_t san_core_post_recv(struct san_core *core, uint32_t qp, const struct san_ulp_recv *r,
			    uint32_t n, uint64_t now_ns);

/* ---- connections; listeners: see cm.h ---- */
/**
 * Connect *qp*. An event reports the outcome. -EADDRNOTAVAIL, -ENETUNREACH: see inet.h; -ENOSPC: no
 * connection is left, or no unordered one; see cm. -EINVAL: a stream that is not strictly ordered.
 */
int san_core_conn_connect(struct san_core *core, uint32_t qp, const struct san_ip *peer,
			  uint64_t service, const struct san_cm_param *param, uint64_t now_ns);
/**
 * -ENOENT: the request no longer exists; -ENOSPC: no unordered connection is left; -EISCONN,
 * -EBUSY: see san_ulp_qp_renew(); -EPROTOTYPE: one of request and *qp* is for a stream, and the
 * other is not.
 */
int san_core_conn_accept(struct san_core *core, uint64_t request, uint32_t qp,
			 const struct san_cm_param *param, uint64_t now_ns);
int san_core_conn_reject(struct san_core *core, uint64_t request, const void *private_data,
			 uint16_t private_len, uint64_t now_ns);
/**
 * Drain and disconnect; *hard*: disconnect at once. RTSAN_EV_DISCONNECTED reports the end.
 * -ENOTCONN. A stream is shut down first; it is drained when the peer has received everything.
 */
int san_core_conn_disconnect(struct san_core *core, uint32_t qp, bool hard, uint64_t now_ns);
/**
 * Disconnect at once, before the queue pair is destroyed: on return none of its work is left, and
 * its memory is no longer accessed. The peer gets one DREQ. Harmless without a connection.
 */
void san_core_conn_abort(struct san_core *core, uint32_t qp, uint64_t now_ns);
/**
 * Set how long an open connection tolerates the silence of its peer, instead of san_cm_param and
 * conf. A restarted peer is detected nevertheless. Harmless without a connection. (UDP-12)
 */
void san_core_conn_set_timeouts(struct san_core *core, uint32_t qp,
				const struct san_sock_timeouts *p, uint64_t now_ns);

/*
 * ---- streams: queue pairs whose work a session (lib/stream) does (AFC-1 ... AFC-28) ----
 *
 * Work, connections and time use the calls above.
 */

#define SAN_CORE_ALONE UINT32_MAX /**< user: the application owns the core; no limits apply */

struct san_core_stream_conf {
	struct san_ulp_qp_conf qp;     /**< queues and depths for the application */
	struct san_stream_conf stream; /**< the depths are ignored; those of *qp* count */
	bool is_sock;                  /**< completions go to carried socket *sock* instead */
	uint32_t sock;
	uint32_t user; /**< user that the stream counts for; or SAN_CORE_ALONE */
};

/**
 * Create a queue pair that is a stream. It is connected, posted to and disconnected as others are;
 * its connection must be ordered and not relaxed.
 *
 * @return
 *   0; -EINVAL: see san_stream_conf_check(); -ENOSPC; -ENOMEM: also if conf.stream_mem or the
 *   user's part of it is used up.
 */
int san_core_stream_create(struct san_core *core, const struct san_core_stream_conf *conf,
			   uint64_t now_ns, uint32_t *qp);
/**
 * It must have no connection (see san_core_conn_abort()). Posted work is flushed. -EBUSY,
 * -EINVAL.
 */
int san_core_stream_destroy(struct san_core *core, uint32_t qp);
/**
 * The application has ended: its memory and queues are no longer accessed. The stream continues
 * sending for at most conf.linger_ns; then the queue pair is destroyed.
 *
 * @return
 *   False: nothing is left to send, or it needs memory of the application, or orphaned streams
 *   already have half of the queue pairs or of conf.stream_mem. Nothing changed.
 */
bool san_core_stream_orphan(struct san_core *core, uint32_t qp, uint64_t now_ns);
/** End all orphaned streams now, whatever they still have to send. */
void san_core_stream_cut_all(struct san_core *core, uint64_t now_ns);
/** The session of *qp*; NULL: it is not a stream. */
const struct san_stream *san_core_stream(const struct san_core *core, uint32_t qp);
/** True if a work request or receive of a stream names *key*. Scans all of them. */
bool san_core_stream_names_key(const struct san_core *core, uint32_t key);
/** Number of streams, and used bytes of conf.stream_mem; then those of orphaned streams. */
struct san_core_use {
	uint32_t nb, nb_orphans;
	uint64_t bytes, orphan_bytes;
};
const struct san_core_use *san_core_share_use(const struct san_core *core);
/** Orphaned streams of *user*. */
uint32_t san_core_share_user_orphans(const struct san_core *core, uint32_t user);
/** Most bytes that a stream holds at any time. (SYS-5) */
uint64_t san_core_stream_bytes_max(const struct san_stream_conf *conf);

/* ---- layers, for owners that configure and show ---- */

struct san_cm *san_core_cm(struct san_core *core);
struct san_ulp *san_core_ulp(struct san_core *core);
struct san_pdl *san_core_pdl(struct san_core *core);
struct san_tl *san_core_tl(struct san_core *core);
struct san_inet *san_core_inet(struct san_core *core);
/** NULL: there are no carried sockets. */
struct san_socks *san_core_socks(struct san_core *core);

/** Drops by reason, summed over the layers. */
void san_core_drops(const struct san_core *core, uint64_t drops[SAN_DROP_MAX]);

/* ---- several lcores on one port ---- */

#define SAN_OWNER_ALL UINT32_MAX /**< each lcore gets a copy */

/**
 * The lcore, of *nb_lcores*, that a received packet is for, by its CID; 0 if there is none. Reads
 * only the mbuf, and removes a priority tag. (SYS-1, RT-38)
 */
uint32_t san_core_owner(struct rte_mbuf *m, uint16_t udp_port, uint32_t nb_lcores);
/**
 * Move a connection request to the lcore of the queue pair that accepts it. It is taken from its
 * own core; the other core adopts it as san_core_conn_accept() would, with the same errors; then
 * the first core gets the result. If it was taken and not adopted, the request is unchanged.
 * -ENOENT: it no longer exists, or is taken already.
 */
int san_core_conn_request_take(struct san_core *core, uint64_t request, struct san_cm_moved *out,
			       uint64_t now_ns);
int san_core_conn_request_adopt(struct san_core *core, const struct san_cm_moved *moved,
				uint32_t qp, const struct san_cm_param *param, uint64_t now_ns);
void san_core_conn_request_settle(struct san_core *core, uint64_t request, bool adopted,
				  uint64_t now_ns);

/** A pool that the connections of an lcore share (RT-35). */
struct san_core_pool {
	const char *name;
	uint32_t used, max; /**< parts, packets or bytes; expired grants are not limited by *max* */
};
#define SAN_CORE_POOLS 13

/** All of them; doc/deadlock.md has the share of a host of each. */
void san_core_pools(const struct san_core *core, struct san_core_pool pools[SAN_CORE_POOLS]);
/** Verify every invariant of every layer. For tests. */
void san_core_check(const struct san_core *core);
/**
 * What teardown must not leave behind. 0, or the number of connections, records, regions, streams,
 * CAM entries and held mbufs still in use.
 */
uint64_t san_core_leaks(const struct san_core *core);
/** Number of empty mbufs that it holds for the next packets. */
uint32_t san_core_nb_spare(const struct san_core *core);
