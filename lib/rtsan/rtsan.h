/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTSAN_H
#define RTSAN_H

/**
 * @file
 * librtsan: RDMA semantics over any DPDK port, or a real RDMA device. (rtsan_stream.h is a layer on
 * top of it, for streams.)
 *
 * The concepts are those of libibverbs and librdmacm under shorter names: contexts, memory regions,
 * queue pairs, completion queues, work requests, connection events. What differs:
 * - Connection setup is part of the library; there is no separate rdma_cm.
 * - A request that the target refuses completes in error and the connection continues (RT-27); only
 *   an unreachable peer ends it. (But see caps.ends_on_error.)
 * - A queue pair may be unordered: no request waits for another (RT-15).
 * rtsan_query() reports what a provider supports; doc/providers.md compares them.
 *
 * Numbers are in host byte order, sizes in bytes, unless noted otherwise. Functions return 0 or a
 * negative errno; posting and polling return counts.
 *
 * Thread rule: a context whose engine the caller polls (the default) belongs to one thread. With an
 * engine on its own lcore, each queue pair and each completion queue belongs to one thread at a
 * time, and all other calls may be made from any thread. (SYS-2)
 */

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "rtsan_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rtsan_ctx;
struct rtsan_cq;
struct rtsan_qp;
struct rtsan_mr;
struct rtsan_listener;

/* ------------------------------------------------------------ contexts -- */

/**
 * Open a context on a provider.
 *
 * @param spec
 *   "dpdk:<EAL arguments> -- <port arguments>": the engine in this process, on
 *   DPDK ports; librtsan-dpdk.so is loaded by name. See rtsan-dpdk(7).
 *   "unix:<path>" or "unix:<path>,port=<name>": the engine of the daemon that serves this
 *   socket, on its first port or on that one. The path has no comma. See sanstack-daemon(8).
 *   "verbs:<device>[,ip=<address>][,plain]": that RDMA device, through rdma-core. See
 *   rtsan-verbs(7).
 * @param ctx
 *   Result; close it with rtsan_close().
 * @return
 *   0 or a negative errno; rtsan_error() says what is wrong and where.
 *   - -EINVAL: malformed spec, unknown argument or bad value.
 *   - -ENOENT: the provider's library is not installed.
 *   - -ENODEV: no port or device, or none with this name.
 *   - -EBUSY: dpdk: a context is open already (one EAL per process).
 *   - -ENETDOWN, -EADDRNOTAVAIL, -EOPNOTSUPP, -EIO: verbs; see rtsan-verbs(7).
 *   - -ENOMEM
 */
int rtsan_open(const char *spec, struct rtsan_ctx **ctx);

/**
 * Close a context: ends every connection without draining, and releases everything that was created
 * from the context. Queue pairs, regions and events are invalid afterwards.
 */
void rtsan_close(struct rtsan_ctx *ctx);

/** Text for the last failure of this thread: what was wrong, and where. Never NULL. */
const char *rtsan_error(void);

/**
 * Run the engine for one round: receive, timers, transmit. Does nothing if the engine has its
 * own lcore. rtsan_cq_poll() and rtsan_event_poll() do it themselves before they return nothing.
 *
 * @return
 *   Packets handled, 0 when idle, or -EIO if the port has failed.
 */
int rtsan_progress(struct rtsan_ctx *ctx);

/** Features and limits of a provider. Later releases add members at the end. */
struct rtsan_caps {
	uint32_t max_qps, max_cqs, max_mrs;
	uint32_t max_wr; /**< maximum depth of a send or receive queue */
	uint32_t max_sge;
	uint32_t max_inline;
	/** Lcores that share the work. All queue pairs of a completion queue are on one of them. */
	uint32_t nb_lcores;
	uint64_t max_msg; /**< bytes of one work request, but of streams */
	/** rtsan_mr_reg() copies nothing, and sends may name memory of no region. */
	bool has_mr_reg;
	bool has_unordered;
	bool has_loan;   /**< RTSAN_RECV_LOAN works */
	bool has_atomic; /**< RTSAN_WR_FETCH_ADD and RTSAN_WR_CMP_SWAP work (RT-30) */
	/** A request that the target refuses ends its connection, as on RDMA devices. */
	bool ends_on_error;
	char provider[32];
	bool has_recv_from; /**< queue pairs can share receives */
};
/**
 * Query the features and limits of a context. What a release adds to the library has a member here:
 * ask before using it.
 *
 * @param caps
 *   Result.
 * @param size
 *   sizeof(*caps). Members that an older library does not know are zero.
 * @return
 *   0
 */
int rtsan_query(struct rtsan_ctx *ctx, struct rtsan_caps *caps, size_t size);

/**
 * Get an address of the context's own, in the form that a peer passes to rtsan_connect(). (SYS-12)
 *
 * @param index
 *   0, 1 ...; the order is that of the port's configuration.
 * @param text
 *   Result.
 * @return
 *   0, or -ENOENT: there are no more.
 */
int rtsan_address(struct rtsan_ctx *ctx, uint32_t index, char text[RTSAN_ADDRESS_MAX]);

/* ------------------------------------------------------ memory regions -- */

/**
 * Allocate memory and register it. Works with every provider.
 *
 * @param length
 *   Bytes, at least 1; rounded up to pages.
 * @param access
 *   enum rtsan_access, or 0 for local use only.
 * @return
 *   0, -EINVAL, -ENOMEM, -ENOSPC (no more regions).
 */
int rtsan_mr_alloc(struct rtsan_ctx *ctx, size_t length, uint32_t access, struct rtsan_mr **mr);

/**
 * Map *length* bytes of a memfd from *offset* (page aligned) on, and register
 * them. The descriptor stays the caller's. All of its pages must exist until the region is
 * deregistered: a daemon ends a program that punches holes into it.
 *
 * @return
 *   0, -EINVAL, -EBADF, -ENOMEM, -ENOSPC.
 */
int rtsan_mr_import(struct rtsan_ctx *ctx, int fd, uint64_t offset, size_t length, uint32_t access,
		    struct rtsan_mr **mr);

/**
 * Register *length* bytes at *addr*, which the caller has mapped (MAP_SHARED) from *offset* of a
 * memfd on. The memory remains the caller's and must stay mapped until rtsan_mr_dereg() has
 * returned; its pages must exist, as for rtsan_mr_import(). *addr* and *offset* have the same place
 * in a page. Works with every provider.
 *
 * @return
 *   0, -EINVAL, -EBADF, -ENOMEM, -ENOSPC.
 */
int rtsan_mr_share(struct rtsan_ctx *ctx, void *addr, size_t length, int fd, uint64_t offset,
		   uint32_t access, struct rtsan_mr **mr);

/**
 * Register memory of the caller. It remains the caller's and must stay mapped until
 * rtsan_mr_dereg() has returned. Works with every provider. For one in another process (no
 * has_mr_reg) the pages are copied into a memfd that replaces them at their address, and back by
 * rtsan_mr_dereg(). Threads that access them meanwhile wait; a child of fork() has a copy. To
 * register once costs least; memory of rtsan_mr_alloc() costs no copy.
 *
 * @return
 *   0, -EINVAL, -ENOSPC; for a provider in another process also -EFAULT (not mapped, or read-only
 *   though peers may write), -EOPNOTSUPP (a stack, memory that is shared already, or data of a
 *   program file while there are several threads), -ENOMEM.
 */
int rtsan_mr_reg(struct rtsan_ctx *ctx, void *addr, size_t length, uint32_t access,
		 struct rtsan_mr **mr);

/**
 * Revoke and release a region. The key is invalid before this returns: accesses in progress
 * complete in error at the peer, and nothing is placed or read afterwards. Memory of
 * rtsan_mr_alloc() and rtsan_mr_import() is unmapped. -EBUSY: posted work of this process still
 * names the region, which stays. Another error: the daemon has ended; the region is released.
 */
int rtsan_mr_dereg(struct rtsan_mr *mr);

/** Address of the first byte of a region in this process. */
void *rtsan_mr_addr(const struct rtsan_mr *mr);
/** Length of a region, as requested. */
size_t rtsan_mr_length(const struct rtsan_mr *mr);
/** Key for scatter-gather elements of this process. */
uint32_t rtsan_mr_lkey(const struct rtsan_mr *mr);
/** Key for the peer. The peer addresses a byte by its address in this process and this key. */
uint32_t rtsan_mr_rkey(const struct rtsan_mr *mr);

/* --------------------------------------------------- completion queues -- */

struct rtsan_wc {
	uint64_t wr_id;
	struct rtsan_qp *qp;
	/**
	 * Bytes moved. For a receive with LOC_LENGTH: bytes that arrived and were refused (verbs:
	 * 0, not counted by the device). For a stream's wait: bytes unread. For other failures 0,
	 * except for sends of a stream.
	 */
	uint32_t byte_len;
	uint32_t imm;   /**< with has_imm */
	uint8_t opcode; /**< enum rtsan_wc_opcode */
	uint8_t status; /**< enum rtsan_wc_status */
	bool has_imm;
	/** RTSAN_RECV_LOAN: the bytes, read-only; *imm* names the buffer. Else NULL. */
	const void *loan;
};

/**
 * Create a completion queue.
 *
 * @param depth
 *   Completions it holds, 1 to max_wr * 2. Work that finds it full waits.
 * @return
 *   0, -EINVAL, -ENOMEM, -ENOSPC (no more of them).
 */
int rtsan_cq_create(struct rtsan_ctx *ctx, uint32_t depth, struct rtsan_cq **cq);
/**
 * Destroy a completion queue, including completions that were not polled.
 *
 * @return
 *   0, or -EBUSY: a queue pair uses it; nothing has changed.
 */
int rtsan_cq_destroy(struct rtsan_cq *cq);
/**
 * Take completions, oldest first. Never blocks. A CQ never overruns: posting
 * reserves the entry. One thread per CQ.
 *
 * @return
 *   Number in *wc*, 0 to *n*.
 */
int rtsan_cq_poll(struct rtsan_cq *cq, struct rtsan_wc *wc, int n);
/**
 * Get a descriptor for poll(2), epoll(7) or select(2), to sleep until there are completions. It
 * becomes readable when completions arrive after rtsan_cq_arm(). It belongs to the library and must
 * not be read, written or closed. Before a sleep: arm; if that returns 0, sleep until it is
 * readable; then poll the queue until it is empty. No system call is made unless a thread is
 * waiting. (AFC-19)
 *
 * @return
 *   A descriptor that is valid as long as the queue, or
 *   - -ENOTSUP: this application drives the port by its own polling (poll=caller), so nothing
 *     arrives while it sleeps.
 *   - -EMFILE, -ENFILE, -ENOMEM; -EIO: the daemon has ended.
 */
int rtsan_cq_fd(struct rtsan_cq *cq);
/**
 * Request one wake-up. Called by the thread that polls the queue.
 *
 * @return
 *   0: requested, sleep on rtsan_cq_fd(); 1: there are completions, poll them; -EIO: the daemon has
 *   ended; or an error of rtsan_cq_fd().
 */
int rtsan_cq_arm(struct rtsan_cq *cq);
/**
 * Sleep until there are completions. If the application itself drives the port, the port is polled
 * meanwhile. Called by the thread that polls the queue.
 *
 * @param timeout_ms
 *   -1: no limit.
 * @return
 *   1: poll the queue (its entries may belong to queue pairs destroyed meanwhile); 0: time is
 *   over; -EINTR: a signal arrived; -EIO: the daemon has ended; or an error of rtsan_cq_fd().
 */
int rtsan_cq_wait(struct rtsan_cq *cq, int timeout_ms);
/** Short name of a completion's status, for programs and logs. Never NULL. */
const char *rtsan_status_name(uint8_t status);
/** Explanation of a completion's status. Never NULL. */
const char *rtsan_status_text(uint8_t status);

/* --------------------------------------------------------- queue pairs -- */

struct rtsan_qp_attr {
	struct rtsan_cq *send_cq;
	struct rtsan_cq *recv_cq;
	uint32_t sq_depth; /**< 0: 128 */
	uint32_t rq_depth; /**< 0: 128 */
	void *context;     /**< returned by rtsan_qp_context() */
	/** Not NULL: a stream, which sends bytes instead of messages. Copied. */
	const struct rtsan_stream_attr *stream;
	/**
	 * Not NULL: messages use the receives that are posted to this other queue pair, as many
	 * queue pairs may. It uses receives of its own, and need not be connected. Completions come
	 * to the queue pair that got the message. Once *recv_from* is destroyed no receive is left.
	 */
	struct rtsan_qp *recv_from;
	uint64_t reserved[3]; /**< 0 */
};
/**
 * Create a queue pair. Its queues are *sq_depth* and *rq_depth* deep, rounded up to powers of two.
 *
 * @return
 *   0, -EINVAL, -ENOMEM, -ENOSPC (no more of them), -EOPNOTSUPP (*recv_from*; see has_recv_from).
 */
int rtsan_qp_create(struct rtsan_ctx *ctx, const struct rtsan_qp_attr *attr, struct rtsan_qp **qp);
/**
 * Destroy a queue pair. Ends its connection at once if there is one; completions not polled are
 * lost. Memory of its work requests may be reused on return. Another thread that posts to it must
 * have stopped. A thread that polls its completion queues may still hold completions that name it.
 */
void rtsan_qp_destroy(struct rtsan_qp *qp);
/** Get *context* of the queue pair's attributes. */
void *rtsan_qp_context(const struct rtsan_qp *qp);

/* --------------------------------------------------------- connections -- */

/** Zero means the default. */
struct rtsan_conn_param {
	uint8_t order;         /**< enum rtsan_order; the connecting side decides */
	uint16_t pkey;         /**< partition; default 0xffff (RT-29) */
	uint16_t window;       /**< packets we can receive at a time; default 512 */
	uint16_t first_window; /**< packets that the peer may have in flight; default: window */
	uint16_t max_txn;      /**< transactions in progress; default 256 */
	uint16_t msg_limit;    /**< unacknowledged messages (PCB-3); default: max_txn */
	uint16_t rnr_ms;       /**< until a receiver is ready; default 10000, 65535: no end */
	uint16_t keepalive_ms; /**< default 1000 */
	const void *private_data;
	uint16_t private_len; /**< at most RTSAN_PRIVATE_MAX */
	uint16_t reserved[3]; /**< 0 */
};

/** How far rtsan_event.uid can be trusted. */
enum rtsan_user {
	RTSAN_USER_NONE = 0,   /**< not known: an RDMA device, or a peer that does not state it */
	RTSAN_USER_STATED = 1, /**< stated by the peer's host: as trustworthy as that */
	RTSAN_USER_PROVED = 2, /**< a program of the same daemon: the kernel has proved it */
};

struct rtsan_event {
	uint8_t type;   /**< enum rtsan_event_type */
	uint8_t reason; /**< enum rtsan_reason */
	uint16_t private_len;
	/**
	 * CONNECT_REQUEST, ESTABLISHED: the user whose program the peer is, or RTSAN_UID_NONE.
	 * Subordinate users count as theirs. The peer's program cannot influence it.
	 */
	uint32_t uid;
	uint64_t request;                /**< CONNECT_REQUEST: for accept or reject */
	bool stream;                     /**< CONNECT_REQUEST: accept it with a stream */
	uint8_t user;                    /**< enum rtsan_user: who says *uid* */
	bool own_user;                   /**< *uid* is known, and the user of this program */
	uint8_t reserved[5];             /**< 0 */
	struct rtsan_qp *qp;             /**< other events */
	struct rtsan_listener *listener; /**< CONNECT_REQUEST */
	char peer[RTSAN_ADDRESS_MAX];    /**< the peer's address, from the link */
	uint8_t private_data[RTSAN_PRIVATE_MAX];
};

/** Get the next connection event. 1, 0 (none), or -EIO. Never blocks. */
int rtsan_event_poll(struct rtsan_ctx *ctx, struct rtsan_event *ev);
/**
 * Get a descriptor that becomes readable when events arrive after rtsan_event_arm(): see
 * rtsan_cq_fd(). Or -errno.
 */
int rtsan_event_fd(struct rtsan_ctx *ctx);
/** Request one wake-up by events: see rtsan_cq_arm(). 0, 1: there are events, or -errno. */
int rtsan_event_arm(struct rtsan_ctx *ctx);
/** Sleep until there are events: see rtsan_cq_wait(). 1, 0: time is over, or -errno. */
int rtsan_event_wait(struct rtsan_ctx *ctx, int timeout_ms);
/** Explanation of an event's reason. Never NULL. */
const char *rtsan_reason_text(uint8_t reason);

/**
 * Listen for connection requests; each is an event.
 *
 * @param service
 *   Any number; the connecting side names it.
 * @param pkey
 *   Partition; 0: that of the context.
 * @param backlog
 *   Requests that may wait for rtsan_accept(), at least 1. The last quarter is reserved for hosts
 *   with fewer waiting requests than are left: one host alone gets three quarters.
 * @return
 *   0, -EADDRINUSE, -EINVAL, -ENOSPC, -EACCES (the daemon does not allow this partition),
 *   -EOPNOTSUPP (a partition, but the provider has none).
 */
int rtsan_listen(struct rtsan_ctx *ctx, uint64_t service, uint16_t pkey, uint16_t backlog,
		 struct rtsan_listener **listener);
/** Stop listening. Waiting requests are dropped; connections stay. */
void rtsan_listener_destroy(struct rtsan_listener *listener);
/**
 * Connect a queue pair. An event reports the outcome: ESTABLISHED, REJECTED or UNREACHABLE.
 * Receives should be posted before.
 *
 * @param peer
 *   IPv4 or IPv6 address, text.
 * @return
 *   0, -EINVAL, -EADDRNOTAVAIL (no address of that family), -ENETUNREACH (in no prefix of an
 *   address of ours, and no gateway), -ENOSPC,
 *   -EACCES (the daemon does not allow this partition),
 *   -EOPNOTSUPP (unordered, or a partition, and the provider does not support it),
 *   -EISCONN (it has a connection, or the event that ended it was not polled),
 *   -EBUSY (completions of its last connection find no room, or a loan is not returned).
 */
int rtsan_connect(struct rtsan_qp *qp, const char *peer, uint64_t service,
		  const struct rtsan_conn_param *param);
/**
 * Accept a request. An event reports the outcome: ESTABLISHED or DISCONNECTED. Receives should be
 * posted before.
 *
 * @param request
 *   From the event CONNECT_REQUEST.
 * @param param
 *   May be NULL: all defaults.
 * @return
 *   0, -EINVAL, or
 *   - -ENOENT: the request no longer exists, because its peer gave up. If that is not known yet,
 *     the accepted connection ends: RTSAN_EV_DISCONNECTED.
 *   - -EISCONN: the queue pair has a connection, or the event that ended it was not polled.
 *   - -EBUSY: completions of its last connection find no room, or a loan is not returned.
 *   - -EPROTOTYPE: one of request and queue pair is for a stream, and the other is not.
 *   - -EOPNOTSUPP: see rtsan_connect().
 */
int rtsan_accept(struct rtsan_ctx *ctx, uint64_t request, struct rtsan_qp *qp,
		 const struct rtsan_conn_param *param);
/**
 * Refuse a request. The peer gets REJECTED with RTSAN_R_REFUSED and the private data.
 *
 * @return
 *   0, -EINVAL, -ENOENT (the request no longer exists).
 */
int rtsan_reject(struct rtsan_ctx *ctx, uint64_t request, const void *private_data,
		 uint16_t private_len);
/**
 * Disconnect orderly: posted work finishes first; RTSAN_EV_DISCONNECTED reports the end. A stream
 * is shut down (see rtsan_stream_shutdown()) and ends when the peer has received everything.
 * -ENOTCONN.
 */
int rtsan_disconnect(struct rtsan_qp *qp);

/* -------------------------------------------------------- work requests -- */

struct rtsan_send_wr {
	uint64_t wr_id;
	uint8_t opcode; /**< enum rtsan_wr_opcode */
	uint8_t flags;  /**< enum rtsan_wr_flags */
	uint8_t nb_sge; /**< 0 to RTSAN_SGE_MAX */
	uint32_t imm;
	const struct rtsan_sge *sge;
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t operand; /**< addend, or the value to compare with */
	uint64_t swap;
};

struct rtsan_recv_wr {
	uint64_t wr_id;
	const struct rtsan_sge *sge;
	uint8_t nb_sge;
	uint8_t flags; /**< enum rtsan_recv_flags; streams only, else 0 */
};

/**
 * Post work requests to the send queue. Never blocks. (RT-10, RT-11, SYS-2)
 *
 * @param qp
 *   Queue pair; before it is connected they wait. Those posted after the end of the connection,
 *   but before its event is polled, complete as flushed. One thread at a time per QP.
 * @param wr
 *   Requests; copied, reusable on return. Memory named by an SGE stays the
 *   caller's and must not change until its completion is polled.
 * @param nb_wr
 *   Entries in *wr*.
 * @return
 *   Number posted, from wr[0] on; fewer than *nb_wr*: the queue is full, poll the CQ, or
 *   wr[n] is malformed (post it alone to learn why).
 *   - -EINVAL: wr[0] is malformed or outside its region; nothing posted.
 *   - -EOPNOTSUPP: an atomic, and the provider does not support it.
 *   - -ENOTCONN: the connection has ended; destroy the QP or reconnect. (Not for a stream: its
 *     receives take the remaining data, then complete with 0 bytes after the peer's end,
 *     otherwise with the reason why there is no end, as sends do.)
 */
int rtsan_post_send(struct rtsan_qp *qp, const struct rtsan_send_wr *wr, int nb_wr);

/**
 * Post receives, like rtsan_post_send(). They are consumed in order. -EOPNOTSUPP: RTSAN_RECV_LOAN,
 * and the provider has no loans (see has_loan). -EINVAL: also if the queue pair has a *recv_from*.
 */
int rtsan_post_recv(struct rtsan_qp *qp, const struct rtsan_recv_wr *wr, int nb_wr);

/* -------------------------------------------------------------- streams -- */

/*
 * A queue pair with attr.stream sends bytes of a stream, which receives of any size take (AFC-1).
 * Memory of a send or receive belongs to the queue pair until its completion. The calls below post
 * requests besides sends and receives. Each completes in the completion queue of the send queue
 * with its wr_id, an opcode of its own and, for option values out of range, RTSAN_WC_INVALID. One
 * thread at a time per queue pair, as for rtsan_post_send(). All return
 *   0, or
 *   - -EINVAL: the queue pair is no stream.
 *   - -EAGAIN: the send queue is full: poll the completion queue.
 * rtsan_stream.h has calls like read(2) and write(2).
 */

/**
 * Wait for one of *events*, enum rtsan_stream_event, without a posted receive: completes when one
 * holds. At most 16 at a time: one more completes with RTSAN_WC_NO_BUFFERS. (AFC-1, AFC-19) 0,
 * -EINVAL, -EAGAIN.
 */
int rtsan_stream_wait(struct rtsan_qp *qp, uint32_t events, uint64_t wr_id);

/**
 * Cancel posted work: *work*, enum rtsan_stream_work. It completes as soon as the peer can no
 * longer access its memory: receives with the bytes that arrived, or RTSAN_WC_CANCELLED if there
 * are none; sends with RTSAN_WC_CANCELLED and the bytes sent. An urgent send is not cancelled,
 * because it was announced. This request completes when the cancellation was requested, before work
 * that waits for the peer's answer. (AFC-28) 0, -EINVAL, -EAGAIN.
 */
int rtsan_stream_cancel(struct rtsan_qp *qp, uint32_t work, uint64_t wr_id);
/**
 * Half-close: nothing is sent after the work posted before, and the peer's receives reach the end.
 * The other direction continues; when both are shut down, the connection ends. (AFC-1) 0, -EINVAL,
 * -EAGAIN.
 */
int rtsan_stream_shutdown(struct rtsan_qp *qp, uint64_t wr_id);
/**
 * Take the urgent byte that a send with RTSAN_WR_OOB announced, out of order: *imm* of the
 * completion. RTSAN_WC_AGAIN: announced and not arrived; RTSAN_WC_INVALID: there is none. (AFC-1)
 * 0, -EINVAL, -EAGAIN.
 */
int rtsan_stream_urgent(struct rtsan_qp *qp, uint64_t wr_id);

/**
 * Return a buffer that a receive with RTSAN_RECV_LOAN lent: *loan* is *imm* of its completion. Such
 * a receive has no SGEs. It completes with the next bytes in place, in the queue pair's own memory:
 * *loan* and byte_len of the completion. A completion without a loan (no has_imm) reports the end
 * or a failure. A lent buffer keeps its place and bytes until it is returned or the queue pair is
 * destroyed, even if the connection ends. It counts as unread (nb_store), so when all are lent no
 * more data arrives. Loans are for small transfers: large ones are faster into buffers, because
 * lent data always comes in messages. Only if the application contains the engine (has_loan).
 * RTSAN_WC_INVALID: no such buffer is lent. (AFC-1, AFC-27)
 *
 * @return
 *   0, or
 *   - -EINVAL: the queue pair is no stream.
 *   - -EOPNOTSUPP: the provider has no loans.
 *   - -EAGAIN: the send queue is full: poll the completion queue.
 */
int rtsan_stream_give_back(struct rtsan_qp *qp, uint32_t loan, uint64_t wr_id);

/** Change an option. 0, -EINVAL, -EAGAIN. */
int rtsan_stream_option(struct rtsan_qp *qp, enum rtsan_stream_option option, uint32_t value,
			uint64_t wr_id);

/** Number of the release whose interface the library has, "0.2.0". */
const char *rtsan_version(void);
/**
 * Version and commit of the library, for reports: "0.2.0 (1a2b3c4d5)" is a release, and
 * "0.2.0+5.g1a2b3c4d5 (1a2b3c4d5)" the fifth commit after it.
 */
const char *rtsan_build(void);

#ifdef __cplusplus
}
#endif

#endif /* RTSAN_H */
