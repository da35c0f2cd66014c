/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTSAN_H
#define RTSAN_H

/**
 * @file
 * librtsan: RDMA semantics over any DPDK port, or a real RDMA device. (rtsan_stream.h is a layer on
 * it, for streams.)
 *
 * Whoever knows libibverbs and librdmacm finds the same things under shorter
 * names: contexts, memory regions, queue pairs, completion queues, work
 * requests, connection events. What differs:
 * - Connection set-up is part of the library; there is no separate rdma_cm.
 * - A request that the target refuses completes in error and the connection
 *   lives on (RT-27); only a vanished peer ends it. (But see caps.ends_on_error.)
 * - A queue pair may be unordered: nothing waits for anything else (RT-15).
 * rtsan_query() tells what a provider lacks; doc/providers.md compares them.
 *
 * Numbers are in host byte order, sizes in bytes, unless said otherwise.
 * Functions return 0 or a negative errno; posting and polling return counts.
 *
 * Thread rule: a context whose engine the caller polls (the default) belongs
 * to one thread. With an engine on its own lcore, each queue pair and each
 * completion queue belongs to one thread at a time, and all other calls may be
 * made from any thread. (SYS-2)
 */

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RTSAN_SGE_MAX     4          /**< scatter-gather elements of a work request */
#define RTSAN_INLINE_MAX  64         /**< bytes that RTSAN_WR_INLINE copies */
#define RTSAN_PRIVATE_MAX 64         /**< private data of connection set-up */
#define RTSAN_LENGTH_MAX  (1u << 30) /**< bytes of one work request */

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
 *   0 or a negative errno; rtsan_error() says what and where.
 *   - -EINVAL: malformed spec, unknown argument or bad value.
 *   - -ENOENT: the provider's library is not installed.
 *   - -ENODEV: no port or device, or none with this name.
 *   - -EBUSY: dpdk: a context is open already (one EAL per process).
 *   - -ENETDOWN, -EADDRNOTAVAIL, -EOPNOTSUPP, -EIO: verbs; see rtsan-verbs(7).
 *   - -ENOMEM
 */
int rtsan_open(const char *spec, struct rtsan_ctx **ctx);

/**
 * Close: ends every connection without draining, releases everything that was
 * made from the context. Queue pairs, regions and events are invalid after it.
 */
void rtsan_close(struct rtsan_ctx *ctx);

/** Text for the last failure of this thread: what was wrong, and where. Never NULL. */
const char *rtsan_error(void);

/**
 * Let the engine work: one round of receive, timers, transmit. Does nothing
 * when the engine has its own lcore. rtsan_cq_poll() and rtsan_event_poll()
 * do it by themselves when they would return nothing.
 *
 * @return
 *   Packets handled, 0 when idle, or -EIO when the port is gone.
 */
int rtsan_progress(struct rtsan_ctx *ctx);

/** What the provider can do and how large things may be. */
struct rtsan_caps {
	uint32_t max_qps, max_cqs, max_mrs;
	uint32_t max_wr; /**< depth of a send or receive queue, at most */
	uint32_t max_sge;
	uint32_t max_inline;
	/** Lcores that share the work. A completion queue's queue pairs all live on one of them. */
	uint32_t nb_lcores;
	uint64_t max_msg; /**< bytes of one work request */
	bool has_mr_reg;  /**< rtsan_mr_reg() works */
	bool has_unordered;
	bool has_loan;   /**< RTSAN_RECV_LOAN works */
	bool has_atomic; /**< RTSAN_WR_FETCH_ADD and RTSAN_WR_CMP_SWAP work (RT-30) */
	/** A request that the target refuses ends its connection, as RDMA devices do. */
	bool ends_on_error;
	char provider[32];
};
/**
 * What this context can do.
 *
 * @param caps
 *   Result.
 * @return
 *   0
 */
int rtsan_query(struct rtsan_ctx *ctx, struct rtsan_caps *caps);

/* ------------------------------------------------------ memory regions -- */

/** What a remote side may do with a region. Local use needs no right. */
enum rtsan_access {
	RTSAN_REMOTE_PUSH = 0x1,
	RTSAN_REMOTE_PULL = 0x2,
	RTSAN_REMOTE_ATOMIC = 0x4,
};

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
 * them. The descriptor stays the caller's.
 *
 * @return
 *   0, -EINVAL, -EBADF, -ENOMEM, -ENOSPC.
 */
int rtsan_mr_import(struct rtsan_ctx *ctx, int fd, uint64_t offset, size_t length, uint32_t access,
		    struct rtsan_mr **mr);

/**
 * Register memory of the caller's. It stays the caller's and must stay mapped
 * until rtsan_mr_dereg() has returned.
 *
 * @return
 *   0, -EINVAL, -ENOSPC; -ENOTSUP with a provider in another process: use
 *   rtsan_mr_alloc() or rtsan_mr_import().
 */
int rtsan_mr_reg(struct rtsan_ctx *ctx, void *addr, size_t length, uint32_t access,
		 struct rtsan_mr **mr);

/**
 * Revoke and release. The key dies before this returns: accesses under way
 * complete in error at the peer, nothing is placed or read afterwards.
 * Memory of rtsan_mr_alloc() and rtsan_mr_import() is unmapped.
 * -EBUSY: posted work of this process still names the region.
 */
int rtsan_mr_dereg(struct rtsan_mr *mr);

/** Its first byte, in this process. */
void *rtsan_mr_addr(const struct rtsan_mr *mr);
/** Its bytes, as asked for. */
size_t rtsan_mr_length(const struct rtsan_mr *mr);
/** Key for scatter-gather elements of this process. */
uint32_t rtsan_mr_lkey(const struct rtsan_mr *mr);
/** Key for the peer, which names a byte by this process's address of it and this key. */
uint32_t rtsan_mr_rkey(const struct rtsan_mr *mr);

/* --------------------------------------------------- completion queues -- */

enum rtsan_wc_opcode {
	RTSAN_WC_SEND = 1,
	RTSAN_WC_PUSH = 2,
	RTSAN_WC_PULL = 3,
	RTSAN_WC_ATOMIC = 4,
	RTSAN_WC_RECV = 5,
	RTSAN_WC_RECV_PUSH_IMM = 6, /**< a push with immediate consumed a receive */
	/* of streams: rtsan_stream_wait() and so on */
	RTSAN_WC_STREAM_WAIT = 7, /**< *imm*: enum rtsan_stream_event */
	RTSAN_WC_STREAM_CANCEL = 8,
	RTSAN_WC_STREAM_SHUTDOWN = 9,
	RTSAN_WC_STREAM_URGENT = 10, /**< *imm*: the byte */
	RTSAN_WC_STREAM_OPTION = 11,
	RTSAN_WC_STREAM_GIVE_BACK = 12,
};

/** How a work request ended. Each is one cause; rtsan_status_text() explains. */
enum rtsan_wc_status {
	RTSAN_WC_SUCCESS = 0,
	RTSAN_WC_RNR_RETRY_EXC = 1, /**< the peer posted no receive in time */
	RTSAN_WC_REM_ACCESS = 2,    /**< no such region, or it is shorter, or forbids it */
	RTSAN_WC_REM_LENGTH = 5,    /**< longer than the peer's posted receive */
	RTSAN_WC_REM_REVOKED = 6,   /**< the peer revoked the region meanwhile */
	RTSAN_WC_REM_ALIGN = 7,     /**< atomic on an address that is no multiple of 8 */
	RTSAN_WC_REM_RESOURCE = 8,
	RTSAN_WC_REM_REFUSED = 9, /**< the peer's upper layer, or its device, refused it */
	RTSAN_WC_ABORTED = 10,
	RTSAN_WC_RETRY_EXC = 64,  /**< the peer does not answer; the connection has ended */
	RTSAN_WC_FLUSHED = 65,    /**< the connection ended first */
	RTSAN_WC_LOC_LENGTH = 66, /**< receive: a longer message came and was refused */
	/* of streams */
	RTSAN_WC_NO_BUFFERS = 67, /**< no memory, or no region left: nothing went (AFC-20) */
	RTSAN_WC_CANCELLED = 68,  /**< by rtsan_stream_cancel(); byte_len: what moved before */
	RTSAN_WC_AGAIN = 69,      /**< RTSAN_RECV_DONTWAIT: nothing is there */
	RTSAN_WC_SHUTDOWN = 70,   /**< posted behind rtsan_stream_shutdown() */
	RTSAN_WC_PROTOCOL = 71,   /**< the peer broke the rules; the connection has ended */
	RTSAN_WC_INVALID = 72,    /**< a value out of range */
};

struct rtsan_wc {
	uint64_t wr_id;
	struct rtsan_qp *qp;
	/**
	 * Bytes moved; of a receive with LOC_LENGTH those that came and were refused (verbs: 0, the
	 * device does not say); of a stream's wait those that are unread. Of other failures 0, but
	 * for sends of a stream.
	 */
	uint32_t byte_len;
	uint32_t imm;   /**< with has_imm */
	uint8_t opcode; /**< enum rtsan_wc_opcode */
	uint8_t status; /**< enum rtsan_wc_status */
	bool has_imm;
	/** RTSAN_RECV_LOAN: the bytes, to be read only; *imm* is their name. Else NULL. */
	const void *loan;
};

/**
 * Make a completion queue.
 *
 * @param depth
 *   Completions it holds, 1 to max_wr * 2. Work that finds it full waits.
 * @return
 *   0, -EINVAL, -ENOMEM, -ENOSPC (no more of them).
 */
int rtsan_cq_create(struct rtsan_ctx *ctx, uint32_t depth, struct rtsan_cq **cq);
/**
 * Destroy a completion queue, with what was not polled.
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
 * A descriptor for poll(2), epoll(7) or select(2), to sleep until there are completions: it
 * becomes readable when some come after rtsan_cq_arm(). The library's: not to be read, written
 * or closed. Before a sleep: arm; if that says 0, sleep until it is readable; then poll the
 * queue until it is empty. Who does not wait costs nobody a system call. (AFC-19)
 *
 * @return
 *   A descriptor that lives as long as the queue, or
 *   - -ENOTSUP: this program's own polling drives the port (poll=caller), so nothing comes
 *     while it sleeps.
 *   - -EMFILE, -ENFILE, -ENOMEM; -EIO: the daemon is gone.
 */
int rtsan_cq_fd(struct rtsan_cq *cq);
/**
 * Ask for one wake-up. The thread that polls the queue.
 *
 * @return
 *   0: asked for, sleep on rtsan_cq_fd(); 1: there are completions, poll them; -EIO: the daemon is
 *   gone; or what rtsan_cq_fd() says.
 */
int rtsan_cq_arm(struct rtsan_cq *cq);
/**
 * Sleep until there are completions; where the program itself drives the port, poll it so long.
 * The thread that polls the queue.
 *
 * @param timeout_ms
 *   -1: for ever.
 * @return
 *   1: poll the queue (what is there may be of queue pairs destroyed meanwhile); 0: time is
 *   over; -EINTR: a signal came; -EIO: the daemon is gone; or what rtsan_cq_fd() says.
 */
int rtsan_cq_wait(struct rtsan_cq *cq, int timeout_ms);
/** Short name of a completion's status, for programs and logs. Never NULL. */
const char *rtsan_status_name(uint8_t status);
/** What a completion's status means, for people. Never NULL. */
const char *rtsan_status_text(uint8_t status);

/* --------------------------------------------------------- queue pairs -- */

/** How a stream moves what is large; it learns that by itself unless it is forced to. (AFC-6) */
enum rtsan_stream_mode {
	RTSAN_STREAM_ADAPTIVE = 0,
	RTSAN_STREAM_SMALL_RECV = 1,  /**< everything in messages */
	RTSAN_STREAM_LARGE_RECV = 2,  /**< the receiver tells of its buffers, the sender pushes */
	RTSAN_STREAM_SMALL_LARGE = 3, /**< a message first, then its rest, as the receiver asks */
};

/** Whether a receiver pulls what is large, if both sides can. (AFC-8, AFC-10) */
enum rtsan_stream_read {
	RTSAN_STREAM_READ_AUTO = 0,   /**< where a message has come first */
	RTSAN_STREAM_READ_NEVER = 1,  /**< senders push */
	RTSAN_STREAM_READ_ALWAYS = 2, /**< also into buffers that wait */
};

#define RTSAN_STREAM_OFF UINT32_MAX /**< of hold_us and gather_us */

/**
 * What makes a queue pair a stream. Zero means the default. (AFC-1 ... AFC-28)
 *
 * Limits: depths up to 4,096; threshold 256 to 65,536; msg_size 512 to msg_max, that up to 65,536;
 * nb_recv 4 to 1,024, nb_store and nb_send 2 to 1,024; t2 2 to nb_recv - 2 and up to nb_store, t1 2
 * to nb_recv.
 */
struct rtsan_stream_attr {
	uint8_t mode;         /**< enum rtsan_stream_mode */
	uint8_t read;         /**< enum rtsan_stream_read */
	uint8_t learn;        /**< transfers of a kind until it is learnt; default 3 (AFC-6) */
	uint8_t scans;        /**< without progress until the rest goes in messages; 2 (AFC-13) */
	bool linger;          /**< what was sent still goes when the queue pair is destroyed, or
				   its program has gone: for linger_ms, and while the port has
				   room for such streams; see rtsan-dpdk(7) */
	uint16_t nb_recv;     /**< messages that we are ready to receive; default 32 (AFC-14) */
	uint16_t nb_store;    /**< messages that may be unread; default 32 (AFC-27) */
	uint16_t nb_send;     /**< messages under way; default 32 */
	uint16_t t1, t2;      /**< when credit is told (AFC-15); default: by nb_recv */
	uint16_t frags;       /**< sends in pieces before messages grow; default 8 (AFC-18) */
	uint32_t threshold;   /**< bytes from which a transfer is large; default: the provider's,
				   4096, verbs 16384 (AFC-4) */
	uint32_t msg_size;    /**< bytes of a message at first; default 1536 */
	uint32_t msg_max;     /**< and to what it may grow; default 8192 */
	uint32_t send_buffer; /**< bytes that may be copied, so that sends complete at once; a
				   power of two, at most 1 GiB; 0: none (AFC-26) */
	uint32_t scan_us;     /**< time of a scan; default 10000 (AFC-13) */
	uint32_t hold_us;     /**< how long a buffer is told of with a small send; 20 (AFC-11) */
	uint32_t gather_us;   /**< how long a small send waits for that; 20 (AFC-11) */
};

struct rtsan_qp_attr {
	struct rtsan_cq *send_cq;
	struct rtsan_cq *recv_cq;
	uint32_t sq_depth; /**< 0: 128 */
	uint32_t rq_depth; /**< 0: 128 */
	void *context;     /**< handed back by rtsan_qp_context() */
	/** Not NULL: a stream, whose sends are bytes and not messages. Copied. */
	const struct rtsan_stream_attr *stream;
};
/**
 * Make a queue pair. Its queues are *sq_depth* and *rq_depth* deep, rounded up to
 * powers of two.
 *
 * @return
 *   0, -EINVAL, -ENOMEM, -ENOSPC (no more of them).
 */
int rtsan_qp_create(struct rtsan_ctx *ctx, const struct rtsan_qp_attr *attr, struct rtsan_qp **qp);
/**
 * Destroy a queue pair. Ends its connection at once if there is one; completions
 * not polled are lost. Memory of its work requests is free on return. Another
 * thread that posts to it must have stopped, and one that polls its completion
 * queues may still hold completions that name it.
 */
void rtsan_qp_destroy(struct rtsan_qp *qp);
/** *context* of the queue pair's attributes. */
void *rtsan_qp_context(const struct rtsan_qp *qp);

/* --------------------------------------------------------- connections -- */

/**
 * In which order the target does what was posted. A pull is executed in its turn,
 * but its bytes are read as they are sent: a later push of the same connection may
 * already be among them. Who needs the old bytes waits for the pull's completion
 * before posting that push (as with an RDMA read).
 *
 * If it is ordered, the last packet of a push, and of what a pull brings, is placed last:
 * a program that polls the last byte finds all the others (RT-39). Relaxed, it may not.
 *
 * After a request in error an ordered connection goes on with the next one, unless it is
 * RTSAN_ENDING: then the target executes no later one, all that complete after it are flushed,
 * and the connection ends. That is so for both directions. A stream is RTSAN_ORDERED; it ends
 * on errors by itself.
 */
enum rtsan_order {
	RTSAN_ORDERED = 0,   /**< executed and completed in posting order (RT-14) */
	RTSAN_UNORDERED = 1, /**< exactly once, in any order (RT-15) */
	RTSAN_RELAXED = 2,   /**< ordered, but pushes are placed as they arrive */
	RTSAN_ENDING = 3,    /**< ordered, and ends on error, as with verbs (RT-40) */
};

/** Zero means the default. */
struct rtsan_conn_param {
	uint8_t order;         /**< enum rtsan_order; the connecting side's counts */
	uint16_t pkey;         /**< partition; default 0xffff (RT-29) */
	uint16_t window;       /**< packets that we are ready to receive; default 512 */
	uint16_t first_window; /**< packets that the peer may have in flight; default: window */
	uint16_t max_txn;      /**< transactions under way; default 256 */
	uint16_t msg_limit;    /**< unacknowledged messages (PCB-3); default: max_txn */
	uint16_t rnr_ms;       /**< patience with a receiver that is not ready; default 10000 */
	uint16_t keepalive_ms; /**< default 1000 */
	const void *private_data;
	uint16_t private_len; /**< at most RTSAN_PRIVATE_MAX */
};

enum rtsan_event_type {
	RTSAN_EV_CONNECT_REQUEST = 1, /**< accept or reject it */
	RTSAN_EV_ESTABLISHED = 2,
	RTSAN_EV_REJECTED = 3,     /**< by the peer; *reason* */
	RTSAN_EV_UNREACHABLE = 4,  /**< nobody answered */
	RTSAN_EV_DISCONNECTED = 5, /**< the connection is over and all its work completed */
};

enum rtsan_reason {
	RTSAN_R_NONE = 0,
	RTSAN_R_NO_LISTENER = 1,
	RTSAN_R_REFUSED = 2, /**< by the peer's application */
	RTSAN_R_RESOURCES = 3,
	RTSAN_R_PKEY = 4,
	RTSAN_R_PARAMETER = 5,
	RTSAN_R_VERSION = 6,
	RTSAN_R_BACKLOG = 7,
	RTSAN_R_TIMEOUT = 8,    /**< it vanished */
	RTSAN_R_STALE = 9,      /**< it restarted */
	RTSAN_R_PATH_MTU = 10,  /**< the network no longer carries packets of the length in use */
	RTSAN_R_MALFORMED = 11, /**< the queue pair held what no library writes: a stray pointer? */
};

struct rtsan_event {
	uint8_t type;   /**< enum rtsan_event_type */
	uint8_t reason; /**< enum rtsan_reason */
	uint16_t private_len;
	uint64_t request;                /**< CONNECT_REQUEST: for accept or reject */
	bool stream;                     /**< CONNECT_REQUEST: accept it with a stream */
	struct rtsan_qp *qp;             /**< others */
	struct rtsan_listener *listener; /**< CONNECT_REQUEST */
	char peer[48];                   /**< the peer's address, text */
	uint8_t private_data[RTSAN_PRIVATE_MAX];
};

/** Next connection event, if any: 1, 0 (none), or -EIO. Never blocks. */
int rtsan_event_poll(struct rtsan_ctx *ctx, struct rtsan_event *ev);
/** Readable when events come after rtsan_event_arm(): see rtsan_cq_fd(). Or -errno. */
int rtsan_event_fd(struct rtsan_ctx *ctx);
/** Ask for one wake-up by events: see rtsan_cq_arm(). 0, 1: there are events, or -errno. */
int rtsan_event_arm(struct rtsan_ctx *ctx);
/** Sleep until there are events: see rtsan_cq_wait(). 1, 0: time is over, or -errno. */
int rtsan_event_wait(struct rtsan_ctx *ctx, int timeout_ms);
/** What an event's reason means, for people. Never NULL. */
const char *rtsan_reason_text(uint8_t reason);

/**
 * Listen for connection requests; each is an event.
 *
 * @param service
 *   Any number; the connecting side names it.
 * @param pkey
 *   Partition; 0: the context's.
 * @param backlog
 *   Requests that may wait for rtsan_accept(), at least 1. The last quarter of them is for hosts
 *   that have less than is left: one host alone gets three quarters.
 * @return
 *   0, -EADDRINUSE, -EINVAL, -ENOSPC, -EACCES (the daemon keeps the partition for others),
 *   -EOPNOTSUPP (a partition, where the provider has none).
 */
int rtsan_listen(struct rtsan_ctx *ctx, uint64_t service, uint16_t pkey, uint16_t backlog,
		 struct rtsan_listener **listener);
/** Stop listening; requests that wait are forgotten, connections stay. */
void rtsan_listener_destroy(struct rtsan_listener *listener);
/**
 * Connect; the outcome is an event: ESTABLISHED, REJECTED or UNREACHABLE.
 * Receives may be posted before, and should be.
 *
 * @param peer
 *   IPv4 or IPv6 address, text.
 * @return
 *   0, -EINVAL, -EADDRNOTAVAIL (no address of that family), -ENETUNREACH (in no prefix of an
 *   address of ours, and no gateway), -ENOSPC,
 *   -EACCES (the daemon keeps the partition for others),
 *   -EOPNOTSUPP (unordered, or a partition, where the provider has none),
 *   -EISCONN (it has a connection, or the event that ended it was not polled),
 *   -EBUSY (of its last connection, completions find no room, or a loan has not come back).
 */
int rtsan_connect(struct rtsan_qp *qp, const char *peer, uint64_t service,
		  const struct rtsan_conn_param *param);
/**
 * Accept a request; the outcome is an event: ESTABLISHED or DISCONNECTED.
 * Receives should be posted before.
 *
 * @param request
 *   Of the event CONNECT_REQUEST.
 * @param param
 *   May be NULL: all defaults.
 * @return
 *   0, -EINVAL, or
 *   - -ENOENT: the request is gone: its peer gave up. Where that is not known yet the accepted
 *     connection ends: RTSAN_EV_DISCONNECTED.
 *   - -EISCONN: the queue pair has a connection, or the event that ended it was not polled.
 *   - -EBUSY: of its last connection, completions find no room, or a loan has not come back.
 *   - -EPROTOTYPE: one of request and queue pair is for a stream, the other is not.
 *   - -EOPNOTSUPP: see rtsan_connect().
 */
int rtsan_accept(struct rtsan_ctx *ctx, uint64_t request, struct rtsan_qp *qp,
		 const struct rtsan_conn_param *param);
/**
 * Refuse a request; the peer gets REJECTED with RTSAN_R_REFUSED and the private data.
 *
 * @return
 *   0, -EINVAL, -ENOENT (the request is gone).
 */
int rtsan_reject(struct rtsan_ctx *ctx, uint64_t request, const void *private_data,
		 uint16_t private_len);
/**
 * Orderly end: what is posted finishes first; the outcome is RTSAN_EV_DISCONNECTED. A stream is
 * shut (see rtsan_stream_shutdown()) and ends when the peer has all of it. -ENOTCONN.
 */
int rtsan_disconnect(struct rtsan_qp *qp);

/* -------------------------------------------------------- work requests -- */

struct rtsan_sge {
	void *addr;
	uint32_t length;
	uint32_t lkey; /**< of the region it lies in; 0: not registered (where has_mr_reg) */
};

enum rtsan_wr_opcode {
	RTSAN_WR_SEND = 1,      /**< into the peer's next posted receive */
	RTSAN_WR_PUSH = 2,      /**< into the peer's memory (RDMA write) */
	RTSAN_WR_PUSH_IMM = 3,  /**< and consume a receive with 32 bits */
	RTSAN_WR_PULL = 4,      /**< from the peer's memory (RDMA read) */
	RTSAN_WR_FETCH_ADD = 5, /**< on 8 bytes; the old value lands in sge[0] (RT-30) */
	RTSAN_WR_CMP_SWAP = 6,
};

enum rtsan_wr_flags {
	RTSAN_WR_SIGNALED = 0x1,    /**< wants a completion; errors always complete */
	RTSAN_WR_INLINE = 0x2,      /**< payload is copied now, at most RTSAN_INLINE_MAX */
	RTSAN_WR_SOLICITED = 0x4,   /**< ask for a grant first, whatever the size (RT-12) */
	RTSAN_WR_UNSOLICITED = 0x8, /**< never ask */
	RTSAN_WR_OOB = 0x10,        /**< of streams: the last byte is urgent (AFC-1) */
};

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

/**
 * Receives of streams: without any, complete with what comes first, 1 byte or more. A peek takes
 * nothing, so it cannot wait for more than message buffers hold; then it completes with that.
 */
enum rtsan_recv_flags {
	RTSAN_RECV_PEEK = 0x1,     /**< copy what is there, and leave it there */
	RTSAN_RECV_WAITALL = 0x2,  /**< complete when full, or at the end */
	RTSAN_RECV_DONTWAIT = 0x4, /**< complete now, with what is there, or RTSAN_WC_AGAIN */
	/** A loan, no buffer: see rtsan_stream_give_back(). Of the others DONTWAIT goes with it. */
	RTSAN_RECV_LOAN = 0x8,
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
 *   Queue pair; before it is connected they wait. One thread at a time per QP.
 * @param wr
 *   Requests; copied, reusable on return. Memory named by an SGE stays the
 *   caller's and must not change until its completion is polled.
 * @param nb_wr
 *   Entries in *wr*.
 * @return
 *   Number posted, from wr[0] on; fewer than *nb_wr*: queue full, poll the CQ,
 *   or wr[n] is malformed (post it alone to learn why).
 *   - -EINVAL: wr[0] is malformed or outside its region; nothing posted.
 *   - -EOPNOTSUPP: an atomic, where the provider has none.
 *   - -ENOTCONN: the connection has ended; destroy the QP or reconnect. (Not of a stream: there
 *     receives take what is left, then complete with 0 bytes behind the peer's end, else with
 *     why there is none, as sends do.)
 */
int rtsan_post_send(struct rtsan_qp *qp, const struct rtsan_send_wr *wr, int nb_wr);

/**
 * Post receives; like rtsan_post_send(). They are consumed in order.
 * -EOPNOTSUPP: RTSAN_RECV_LOAN, where the provider has no loans (see has_loan).
 */
int rtsan_post_recv(struct rtsan_qp *qp, const struct rtsan_recv_wr *wr, int nb_wr);

/* -------------------------------------------------------------- streams -- */

/*
 * A queue pair with attr.stream: its sends are bytes of a stream, which receives of any size take
 * (AFC-1). Memory of a send or receive is the queue pair's until its completion. What follows
 * posts requests beside sends and receives; each completes in the send queue's completion
 * queue with its wr_id, an opcode of its own and, of option values out of range,
 * RTSAN_WC_INVALID. One thread at a time per queue pair, as for rtsan_post_send(). All return
 *   0, or
 *   - -EINVAL: the queue pair is no stream.
 *   - -EAGAIN: the send queue is full: poll the completion queue.
 * Whoever wants read(2) and write(2) uses rtsan_stream.h.
 */

/** What rtsan_stream_wait() waits for, and its completion's *imm* says. */
enum rtsan_stream_event {
	RTSAN_STREAM_READABLE = 0x1, /**< bytes, or their end */
	RTSAN_STREAM_WRITABLE = 0x2, /**< nothing waits to be sent, and the peer has room */
	RTSAN_STREAM_URGENT = 0x4,   /**< an urgent byte was announced */
	RTSAN_STREAM_ENDED = 0x8,    /**< the connection is over; always waited for */
};
/**
 * Complete when one of *events*, enum rtsan_stream_event, is so: no receive need be posted until
 * then. At most 16 at a time: one more completes with RTSAN_WC_NO_BUFFERS. (AFC-1, AFC-19)
 * 0, -EINVAL, -EAGAIN.
 */
int rtsan_stream_wait(struct rtsan_qp *qp, uint32_t events, uint64_t wr_id);

enum rtsan_stream_work {
	RTSAN_STREAM_RECVS = 0x1, /**< those under way complete with what came */
	RTSAN_STREAM_SENDS = 0x2, /**< those under way complete with what went */
	RTSAN_STREAM_WAITS = 0x4,
};
/**
 * Have work back: *work*, enum rtsan_stream_work, posted before completes as soon as the peer can
 * touch it no more: receives with what has come, or RTSAN_WC_CANCELLED if that is nothing; sends
 * with RTSAN_WC_CANCELLED and the bytes that went; not an urgent send, which was announced. This
 * completes when that was asked for, before what waits for the peer's answer. (AFC-28)
 * 0, -EINVAL, -EAGAIN.
 */
int rtsan_stream_cancel(struct rtsan_qp *qp, uint32_t work, uint64_t wr_id);
/**
 * Half-close: nothing is sent behind what was posted before, and the peer's receives get to the
 * end. The other direction goes on; when both are shut, the connection ends. (AFC-1)
 * 0, -EINVAL, -EAGAIN.
 */
int rtsan_stream_shutdown(struct rtsan_qp *qp, uint64_t wr_id);
/**
 * Take the urgent byte that a send with RTSAN_WR_OOB announced, out of order: in the completion's
 * *imm*. RTSAN_WC_AGAIN: announced and not here yet; RTSAN_WC_INVALID: there is none. (AFC-1)
 * 0, -EINVAL, -EAGAIN.
 */
int rtsan_stream_urgent(struct rtsan_qp *qp, uint64_t wr_id);

/**
 * Give back what a receive with RTSAN_RECV_LOAN lent: *loan* is *imm* of its completion. Such a
 * receive has no parts. It completes with the next bytes where they are, in the queue pair's own
 * memory: *loan* and byte_len of the completion; without a loan (no has_imm), it is one of the end,
 * or has failed. One that is lent keeps its place and bytes until it is given back or the queue
 * pair is destroyed, whatever becomes of the connection; it counts as unread (nb_store), so when
 * all are lent nothing more comes. Loans are for small transfers: large ones are
 * faster into buffers, since all that is lent comes in messages. Only where the program has
 * the engine in it (has_loan). RTSAN_WC_INVALID: none of that name is lent. (AFC-1, AFC-27)
 *
 * @return
 *   0, or
 *   - -EINVAL: the queue pair is no stream.
 *   - -EOPNOTSUPP: the provider has no loans.
 *   - -EAGAIN: the send queue is full: poll the completion queue.
 */
int rtsan_stream_give_back(struct rtsan_qp *qp, uint32_t loan, uint64_t wr_id);

/** What can be changed while it works, from the next transfer on. */
enum rtsan_stream_option {
	RTSAN_STREAM_OPT_MODE = 1,      /**< enum rtsan_stream_mode */
	RTSAN_STREAM_OPT_READ = 2,      /**< enum rtsan_stream_read */
	RTSAN_STREAM_OPT_HOLD_US = 3,   /**< 0: off */
	RTSAN_STREAM_OPT_GATHER_US = 4, /**< 0: off */
};
/** Change an option. 0, -EINVAL, -EAGAIN. */
int rtsan_stream_option(struct rtsan_qp *qp, enum rtsan_stream_option option, uint32_t value,
			uint64_t wr_id);

/** Version of the library, "0.1.0". */
const char *rtsan_version(void);

#ifdef __cplusplus
}
#endif

#endif /* RTSAN_H */
