/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RTSAN_ABI_H
#define RTSAN_ABI_H

/**
 * @file
 * Values and structures of rtsan.h that every layer uses as they are: applications, librtsan, the
 * daemon's socket and shared memory, the lcore. Programs include rtsan.h. Only struct rtsan_sge
 * contains an address that another process uses.
 *
 * Values are explicit: they are in shared memory, and some on the wire.
 */

#include <stdint.h>

#define RTSAN_SGE_MAX     4          /**< scatter-gather elements of a work request */
#define RTSAN_INLINE_MAX  64         /**< bytes that RTSAN_WR_INLINE copies */
#define RTSAN_PRIVATE_MAX 64         /**< private data of connection setup */
#define RTSAN_ADDRESS_MAX 48         /**< text of an address, with the final NUL */
#define RTSAN_LENGTH_MAX  (1u << 31) /**< bytes of one work request */
#define RTSAN_UID_NONE    UINT32_MAX /**< a user that is not known */

/* ------------------------------------------------------ memory regions -- */

/** Rights of remote sides in a region. Local use needs no right. */
enum rtsan_access {
	RTSAN_REMOTE_PUSH = 0x1,
	RTSAN_REMOTE_PULL = 0x2,
	RTSAN_REMOTE_ATOMIC = 0x4,
};

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

/** Result of a work request. Each value has one cause; rtsan_status_text() explains it. */
enum rtsan_wc_status {
	RTSAN_WC_SUCCESS = 0,
	RTSAN_WC_RNR_RETRY_EXC = 1, /**< the peer posted no receive in time */
	RTSAN_WC_REM_ACCESS = 2,    /**< no such region, it is too short, or access is denied */
	RTSAN_WC_REM_LENGTH = 5,    /**< longer than the peer's posted receive */
	RTSAN_WC_REM_REVOKED = 6,   /**< the peer revoked the region meanwhile */
	RTSAN_WC_REM_ALIGN = 7,     /**< atomic on an address that is not a multiple of 8 */
	RTSAN_WC_REM_RESOURCE = 8,
	RTSAN_WC_REM_REFUSED = 9, /**< the peer's upper layer, or its device, refused it */
	RTSAN_WC_ABORTED = 10,
	RTSAN_WC_RETRY_EXC = 64,  /**< the peer does not answer; the connection has ended */
	RTSAN_WC_FLUSHED = 65,    /**< the connection ended first */
	RTSAN_WC_LOC_LENGTH = 66, /**< receive: a longer message arrived and was refused */
	/* of streams */
	RTSAN_WC_NO_BUFFERS = 67, /**< no memory or no region left: nothing was sent (AFC-20) */
	RTSAN_WC_CANCELLED = 68,  /**< by rtsan_stream_cancel(); byte_len: bytes moved before */
	RTSAN_WC_AGAIN = 69,      /**< RTSAN_RECV_DONTWAIT: no data is available */
	RTSAN_WC_SHUTDOWN = 70,   /**< posted after rtsan_stream_shutdown() */
	RTSAN_WC_PROTOCOL = 71,   /**< the peer violated the protocol; the connection has ended */
	RTSAN_WC_INVALID = 72,    /**< a value out of range */
};

/* -------------------------------------------------------- work requests -- */

struct rtsan_sge {
	void *addr;
	uint32_t length;
	uint32_t lkey; /**< of the region that contains it; 0: unregistered (has_mr_reg) */
};

enum rtsan_wr_opcode {
	RTSAN_WR_SEND = 1,      /**< into the peer's next posted receive */
	RTSAN_WR_PUSH = 2,      /**< into the peer's memory (RDMA write) */
	RTSAN_WR_PUSH_IMM = 3,  /**< likewise, and consume a receive with 32 bits */
	RTSAN_WR_PULL = 4,      /**< from the peer's memory (RDMA read) */
	RTSAN_WR_FETCH_ADD = 5, /**< on 8 bytes; the old value is placed in sge[0] (RT-30) */
	RTSAN_WR_CMP_SWAP = 6,
	RTSAN_WR_SEND_IMM = 7, /**< into the peer's next posted receive, with 32 bits */
};

enum rtsan_wr_flags {
	RTSAN_WR_SIGNALED = 0x1,    /**< request a completion; errors always complete */
	RTSAN_WR_INLINE = 0x2,      /**< payload is copied now, at most RTSAN_INLINE_MAX */
	RTSAN_WR_SOLICITED = 0x4,   /**< request a grant first, whatever the size (RT-12) */
	RTSAN_WR_UNSOLICITED = 0x8, /**< never request one */
	RTSAN_WR_OOB = 0x10,        /**< streams: the last byte is urgent (AFC-1) */
};

/**
 * Flags of receives on streams. Without any, a receive completes with the first data, 1 byte or
 * more. A peek consumes nothing, so it cannot wait for more than message buffers hold; it completes
 * with what they hold.
 */
enum rtsan_recv_flags {
	RTSAN_RECV_PEEK = 0x1,     /**< copy available data without consuming it */
	RTSAN_RECV_WAITALL = 0x2,  /**< complete when full, or at the end */
	RTSAN_RECV_DONTWAIT = 0x4, /**< complete at once, with available data, or RTSAN_WC_AGAIN */
	/**
	 * A loan instead of a buffer: see rtsan_stream_give_back(). May be combined with DONTWAIT.
	 */
	RTSAN_RECV_LOAN = 0x8,
};

/* -------------------------------------------------------------- streams -- */

/** Events that rtsan_stream_wait() waits for, and that *imm* of its completion reports. */
enum rtsan_stream_event {
	RTSAN_STREAM_READABLE = 0x1, /**< data, or its end */
	RTSAN_STREAM_WRITABLE = 0x2, /**< nothing waits to be sent, and the peer has room */
	RTSAN_STREAM_URGENT = 0x4,   /**< an urgent byte was announced */
	RTSAN_STREAM_ENDED = 0x8,    /**< the connection has ended; always waited for */
};

/** Work that rtsan_stream_cancel() cancels. */
enum rtsan_stream_work {
	RTSAN_STREAM_RECVS = 0x1, /**< those in progress complete with what arrived */
	RTSAN_STREAM_SENDS = 0x2, /**< those in progress complete with what was sent */
	RTSAN_STREAM_WAITS = 0x4,
};

/** Options that may be changed during operation, from the next transfer on. */
enum rtsan_stream_option {
	RTSAN_STREAM_OPT_MODE = 1,      /**< enum rtsan_stream_mode */
	RTSAN_STREAM_OPT_READ = 2,      /**< enum rtsan_stream_read */
	RTSAN_STREAM_OPT_HOLD_US = 3,   /**< 0: off */
	RTSAN_STREAM_OPT_GATHER_US = 4, /**< 0: off */
};

/** How a stream moves large transfers; it learns that unless it is set. (AFC-6) */
enum rtsan_stream_mode {
	RTSAN_STREAM_ADAPTIVE = 0,
	RTSAN_STREAM_SMALL_RECV = 1,  /**< everything in messages */
	RTSAN_STREAM_LARGE_RECV = 2,  /**< the receiver advertises its buffers, the sender pushes */
	RTSAN_STREAM_SMALL_LARGE = 3, /**< a message first, then as the receiver chooses */
};

/** Whether a receiver pulls large transfers, if both sides support it. (AFC-8, AFC-10) */
enum rtsan_stream_read {
	RTSAN_STREAM_READ_AUTO = 0,   /**< if a message came first */
	RTSAN_STREAM_READ_NEVER = 1,  /**< senders always push */
	RTSAN_STREAM_READ_ALWAYS = 2, /**< also into buffers that are posted already */
};

#define RTSAN_STREAM_OFF UINT32_MAX /**< value of hold_us and gather_us */

/**
 * Attributes of a queue pair that is a stream. Zero means the default. (AFC-1 ... AFC-28)
 *
 * Limits: depths up to 4,096; threshold 256 to 65,536; msg_size 512 to msg_max, that up to 65,536;
 * nb_recv 4 to 1,024, nb_store and nb_send 2 to 1,024; t2 2 to nb_recv - 2 and up to nb_store, t1 2
 * to nb_recv.
 */
struct rtsan_stream_attr {
	uint8_t mode;         /**< enum rtsan_stream_mode */
	uint8_t read;         /**< enum rtsan_stream_read */
	uint8_t learn;        /**< transfers of a kind until it is learnt; default 3 (AFC-6) */
	uint8_t scans;        /**< scans in vain until the rest goes in messages; 2 (AFC-13) */
	uint8_t linger;       /**< not 0: posted sends are still delivered after the queue pair is
				   destroyed or its process has ended: for linger, and while
				   the port has room for such streams; see rtsan-dpdk(7) */
	uint16_t nb_recv;     /**< receives posted for messages; default 32 (AFC-14) */
	uint16_t nb_store;    /**< messages that may be unread; default 32 (AFC-27) */
	uint16_t nb_send;     /**< messages in flight; default 32 */
	uint16_t t1, t2;      /**< credit thresholds (AFC-15); default: by nb_recv */
	uint16_t frags;       /**< fragmented sends before messages grow; default 8 (AFC-18) */
	uint32_t threshold;   /**< bytes from which a transfer is large; default: the provider's,
				   4096, verbs 16384 (AFC-4) */
	uint32_t msg_size;    /**< initial size of a message; default 1536 */
	uint32_t msg_max;     /**< size up to which it may grow; default 8192 */
	uint32_t send_buffer; /**< bytes that may be copied, so that sends complete at once; a
				   power of two, at most 1 GiB; 0: none (AFC-26) */
	uint32_t scan_us;     /**< interval of scans; default 10000 (AFC-13) */
	uint32_t hold_us;     /**< an advertisement waits for a small send; default 20 (AFC-11) */
	uint32_t gather_us;   /**< a small send waits for an advertisement; 20 (AFC-11) */
};

/* --------------------------------------------------------- connections -- */

/**
 * Order in which the target executes posted requests. A pull is executed in its turn, but its bytes
 * are read as they are sent: they may already include a later push of the same connection. An
 * application that needs the old bytes must wait for the completion of the pull before it posts
 * that push (as with an RDMA read).
 *
 * On an ordered connection the last packet of a push, and of a pull, is placed last: an application
 * that polls the last byte finds all others before it (RT-39). A relaxed connection does not
 * guarantee that.
 *
 * After a failed request an ordered connection continues with the next. If it is RTSAN_ENDING,
 * the target executes no later request, all requests that complete later are flushed, and the
 * connection ends, in both directions. A stream is RTSAN_ORDERED; it ends on errors by itself.
 */
enum rtsan_order {
	RTSAN_ORDERED = 0,   /**< executed and completed in posting order (RT-14) */
	RTSAN_UNORDERED = 1, /**< exactly once, in any order (RT-15) */
	RTSAN_RELAXED = 2,   /**< ordered, but pushes are placed as they arrive */
	RTSAN_ENDING = 3,    /**< ordered, and ends on error, as with verbs (RT-40) */
};

enum rtsan_event_type {
	RTSAN_EV_CONNECT_REQUEST = 1, /**< accept or reject it */
	RTSAN_EV_ESTABLISHED = 2,
	RTSAN_EV_REJECTED = 3,     /**< by the peer; *reason* */
	RTSAN_EV_UNREACHABLE = 4,  /**< no answer */
	RTSAN_EV_DISCONNECTED = 5, /**< the connection has ended and all its work is completed */
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
	RTSAN_R_TIMEOUT = 8,    /**< it no longer answers */
	RTSAN_R_STALE = 9,      /**< it restarted */
	RTSAN_R_PATH_MTU = 10,  /**< the network no longer carries packets of this length */
	RTSAN_R_MALFORMED = 11, /**< the queue pair held invalid entries: a stray pointer? */
};

/* ------------------------------------------- for tools: rtsan_dpdk.h -- */

enum rtsan_dpdk_show {
	RTSAN_SHOW_PORT,
	RTSAN_SHOW_CONN,
	RTSAN_SHOW_STATS,
	RTSAN_SHOW_CAM,
	RTSAN_SHOW_DROPS,
	RTSAN_SHOW_STREAM,
};

/** A counter by name ("rtx", "fast_rtx", "tlp", "rto", "cam_inserts", "drop_icrc" ...). */
struct rtsan_dpdk_counter {
	const char *name;
	uint64_t value;
};

#endif /* RTSAN_ABI_H */
