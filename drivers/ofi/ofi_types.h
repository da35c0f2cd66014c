/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file The objects of the libfabric provider. doc/libfabric.md says why they are so. (OFI-1) */

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "ofi_wire.h"
#include "rtsan.h"
#include "san_lock.h"

#ifndef container_of /* of libfabric 1.x */
#define container_of(ptr, type, field) ((type *)((char *)(ptr)-offsetof(type, field)))
#endif

#define OFI_NAME         "sanstack"
#define OFI_DEFAULT_SPEC "unix:/run/sanstack/sanstack.sock"
#define OFI_PROTOCOL     0x80534f46u /* the highest bit: of a provider */

#define OFI_INJECT     4096 /* bytes of an inject */
#define OFI_IOV        4
#define OFI_TX_SIZE    256 /* operations of an endpoint; up to OFI_REQUESTS by hints */
#define OFI_RX_SIZE    1024
#define OFI_RX_MAX     65536
#define OFI_MULTI_RECV 64 /* least room of a buffer for many messages */
#define OFI_BACKLOG    128
#define OFI_CNTRS      4 /* of receives, sends, reads and writes */
#define OFI_ADDRS      24
#define OFI_GUESSERS   1024

#define OFI_NUMBERS   (2 * OFI_REQUESTS) /* of operations, and of reads of long messages */
#define OFI_MR_NATIVE (1ull << 63)       /* of a key: the transport has registered the region */

#define OFI_SQ_DEPTH 256
#define OFI_RQ_DEPTH 256 /* places may be free later than completions come */

/* Kinds of wr_id; none: a send buffer. */
#define OFI_WR_OP 1u /* an operation: the bytes were inline */
#define OFI_WR_RX 2u /* a receive of the pool */

/* prov_errno: 0, a status of rtsan.h, or with this an errno, which the peer may have answered. */
#define OFI_ERRNO 256

union ofi_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/** Where a connection comes from, for limits: a host, or a user of this daemon. */
struct ofi_origin {
	uint8_t ip[16]; /**< IPv6: of the network */
	uint32_t uid;   /**< of another host RTSAN_UID_NONE, because it could state any */
};

/** Credits and receives of a pool are of a class. */
enum ofi_class {
	OFI_CLASS_MSG = 0, /**< messages, which may wait for a receive */
	OFI_CLASS_RMA = 1, /**< requests and answers, consumed at once */
	OFI_CLASSES,
	OFI_CLASS_NONE = OFI_CLASSES, /**< needs no credit */
};

/** A completion queue of the transport, for several endpoints. */
struct ofi_lane {
	struct rtsan_cq *cq;
	uint32_t room; /**< entries that are not reserved */
	SLIST_ENTRY(ofi_lane) link;
};

/** A send buffer, in memory of the transport. */
struct ofi_buf {
	uint8_t *data; /**< OFI_BUF_SIZE bytes */
	uint32_t lkey;
	struct ofi_op *op;
	size_t offset, length; /**< part of the operation's bytes, if they are to be copied back */
	LIST_ENTRY(ofi_buf) link;
};

/** A receive of an endpoint's pool, with a message; or a copy of one that waits for a receive. */
struct ofi_rx {
	struct ofi_ep *ep;
	union {
		uint8_t *data;
		const struct ofi_hdr *hdr; /**< at its beginning */
	};
	uint32_t length;
	enum ofi_class class; /**< of its credit, once it is consumed */
	bool is_copy;         /**< the bytes follow */
	void *claim;          /**< by FI_CLAIM with this context */
	STAILQ_ENTRY(ofi_rx) link;
};

/** The context of the process. */
struct ofi_ctx {
	struct rtsan_ctx *san;
	struct rtsan_caps caps;
	uint32_t refs;
	bool is_driven; /**< by a thread of ours; else the engine has threads of its own */
	struct {
		pthread_t thread;
		int fd;          /**< an eventfd that ends its sleep */
		bool is_ended;   /**< atomic */
		uint32_t rounds; /**< of the context, when it looked last */
	} drive;
	bool is_lost; /**< the daemon or the port has ended */
	bool has_rdm; /**< sleepers for completions watch events of connections, too */
	uint32_t nb_rounds;
	uint32_t nb_offers; /**< long messages that peers read */
	SLIST_HEAD(, ofi_lane) lanes;
	LIST_HEAD(, ofi_buf) bufs;   /**< free send buffers */
	LIST_HEAD(, ofi_op) ops;     /**< free ones */
	LIST_HEAD(, ofi_ep) eps;     /**< enabled ones */
	STAILQ_HEAD(, ofi_ep) dirty; /**< endpoints with something to do after a round */
	LIST_HEAD(, ofi_pep) peps;   /**< all, and those that are closed with requests */
	LIST_HEAD(, ofi_rdm) rdms;   /**< enabled ones */
	LIST_HEAD(, ofi_wait) waits;
	SLIST_HEAD(, ofi_chunk) chunks; /**< memory of the send buffers */
	struct ofi_mr **mrs;            /**< regions that the provider serves itself */
	uint32_t nb_mrs, next_mr;
	struct ofi_guesser {
		struct ofi_origin from;
		uint64_t spent_ms; /**< see san_rate_take(); all times have an hour added */
	} guessers[OFI_GUESSERS];  /**< who asked for memory */
};

/** What a thread sleeps on. */
struct ofi_wait {
	struct ofi_ctx *ctx;
	enum fi_wait_obj obj;
	int epfd, evfd;  /**< -1: FI_WAIT_NONE */
	bool for_events; /**< of connections; else completions */
	bool armed;
	uint32_t sleepers; /**< threads that sleep on it */
	uint32_t refs;     /**< objects that report to it */
	uint32_t *parent_refs;
	LIST_ENTRY(ofi_wait) link;
};

struct ofi_fabric {
	struct fid_fabric fid;
	uint32_t refs;
};

struct ofi_domain {
	struct fid_domain fid;
	struct ofi_fabric *fabric;
	struct ofi_ctx *ctx;
	uint32_t refs;
};

struct ofi_eq {
	struct fid_eq fid;
	struct ofi_fabric *fabric;
	struct ofi_wait wait;
	STAILQ_HEAD(, ofi_event) events;
	struct ofi_event *shown; /**< its error data belongs to the program until the next read */
};

struct ofi_event {
	uint32_t type;
	fid_t fid;
	struct fi_info *info;
	int err; /**< 0: no error */
	int prov_errno;
	bool is_user; /**< of fi_eq_write(): *data* is all of it */
	size_t length;
	STAILQ_ENTRY(ofi_event) link;
	uint8_t data[];
};

struct ofi_cq {
	struct fid_cq fid;
	struct ofi_domain *domain;
	struct ofi_wait wait;
	enum fi_cq_format format;
	struct fi_cq_err_entry *ring;
	uint32_t size, head, nb;
	bool is_signaled; /**< fi_cq_signal() */
};

struct ofi_cntr {
	struct fid_cntr fid;
	struct ofi_wait wait;
	uint64_t value, errors;
	uint64_t seen; /**< their sum when the program read last */
};

struct ofi_mr {
	struct fid_mr fid;
	struct ofi_domain *domain;
	struct rtsan_mr *mr; /**< NULL: served by the provider */
	uint64_t addr;
	size_t length;
	uint64_t access;
};

/** A posted fi_recv(). */
struct ofi_recv {
	void *context;
	uint64_t flags; /**< FI_COMPLETION, FI_MULTI_RECV */
	struct iovec iov[OFI_IOV];
	uint8_t nb_iov;
	bool is_taken;      /**< no longer in the queue */
	uint32_t nb_active; /**< messages that are being received */
	size_t length;
	size_t used;          /**< of a buffer for many messages */
	uint64_t tag, ignore; /**< without a tag, all bits are ignored */
	fi_addr_t from;       /**< FI_ADDR_UNSPEC: any peer */
	STAILQ_ENTRY(ofi_recv) link;
};

/** Posted receives, of one endpoint or shared, and messages that wait for one. */
struct ofi_rxq {
	struct fid_ep fid; /**< if shared */
	struct ofi_domain *domain;
	uint32_t refs;
	struct ofi_cq *cq;
	uint32_t nb, max;
	uint64_t flags; /**< defaults of receives */
	size_t min_multi;
	STAILQ_HEAD(, ofi_recv) posted;
	STAILQ_HEAD(, ofi_rx) waiting; /**< in the order in which they came */
};

/** A long message that the peer reads. */
struct ofi_offer {
	size_t length;
	uint8_t nb;
	struct ofi_mr *mrs[OFI_IOV];
	struct ofi_place places[OFI_IOV]; /**< what the message has instead of its bytes */
};

/**
 * A long message that is being read; of FI_EP_MSG also a short one behind it, because receives
 * complete in order.
 */
struct ofi_fetch {
	void (*on_read)(struct ofi_fetch *f, int prov_errno);
	struct ofi_ep *ep;
	struct ofi_recv *recv;
	size_t base; /**< in the receive */
	size_t at;   /**< bytes that were asked for */
	size_t end;  /**< of those that have room */
	struct ofi_hdr hdr;
	struct ofi_place places[OFI_IOV];
	uint8_t nb, next;
	bool is_whole; /**< all has come, or nothing more will */
	int prov_errno;
	STAILQ_ENTRY(ofi_fetch) link;
};

/** What a call says of its flags. */
enum ofi_call {
	OFI_CALL_PLAIN = 0, /**< nothing: those of the endpoint hold, too */
	OFI_CALL_MSG,       /**< all of them */
	OFI_CALL_INJECT,    /**< no completion, whatever those of the endpoint are */
};

/** What an operation of the program, or an answer, is made of. */
struct ofi_op_args {
	enum ofi_type type; /**< of its messages, but OFI_DATA; 0: OFI_MSG */
	enum ofi_call call;
	uint64_t flags; /**< of the completion; FI_COMPLETION: report it, FI_FENCE, levels */
	fi_addr_t to;   /**< of FI_EP_RDM */
	void *context;
	const struct iovec *iov;
	void **desc;
	size_t count;
	uint32_t id, status; /**< of an answer; *id* also of a request that the peer answers */
	uint64_t data, key;
	uint64_t addr; /**< of memory; of a tagged message: its tag */
	enum ofi_atomic atomic;
	uint64_t operand, compare;
};

/** An operation of the program, or an answer. */
struct ofi_op {
	struct ofi_ep *ep;
	struct ofi_op_args args; /**< its memory is in *iov* */
	bool is_native;          /**< executed by the transport alone */
	bool has_begun;
	bool is_posted; /**< everything is with the transport */
	bool needs_answer;
	bool needs_data; /**< CQ data is to follow what the transport executes */
	bool is_direct;  /**< the transport reads the program's memory */
	bool is_reported;
	uint8_t nb_iov;
	struct iovec iov[OFI_IOV];
	uint32_t lkey[OFI_IOV];
	size_t length;
	size_t posted;   /**< bytes with the transport */
	size_t answered; /**< bytes of READ_DATA that have come */
	uint32_t nb_wr;  /**< requests of the transport that are not complete */
	int prov_errno;
	struct ofi_buf *buf;     /**< bytes that were copied when it was posted */
	struct ofi_offer *offer; /**< a message that the peer reads */
	struct ofi_fetch *fetch; /**< a read of such a message of the peer's */
	STAILQ_ENTRY(ofi_op) queue;
	LIST_ENTRY(ofi_op) link;
};

/** Of the program: neither an answer nor a read of a long message. */
static inline bool
san_ofi_op_is_own(const struct ofi_op *op)
{
	return op->args.type <= OFI_ATOMIC && op->fetch == NULL;
}

STAILQ_HEAD(ofi_queue, ofi_op);

enum ofi_state {
	OFI_EP_NEW = 0,
	OFI_EP_ENABLED,    /**< receives may be posted */
	OFI_EP_CONNECTING, /**< or accepting */
	OFI_EP_CONNECTED,
	OFI_EP_ENDED,
};

/** The last reported state of the connection. The endpoint may have ended before the report. */
enum ofi_conn {
	OFI_CONN_NONE = 0, /**< nothing, or its end */
	OFI_CONN_BEGUN,
	OFI_CONN_UP,
};

/**
 * An endpoint. Of FI_EP_RDM it has *rdm*, and for each peer a connection: an endpoint of its own,
 * which the program does not see.
 */
struct ofi_ep {
	struct fid_ep fid;
	struct ofi_rdm *rdm;
	struct ofi_ep *owner;     /**< of a connection */
	fi_addr_t from;           /**< peer of a connection, or FI_ADDR_NOTAVAIL */
	uint8_t nonce[OFI_PROOF]; /**< of a connection's request */
	uint8_t owns[OFI_PROOF];  /**< the peer's proof of its name */
	uint64_t token;           /**< that the request was for */
	uint32_t nb_held;         /**< messages that wait for a receive */
	uint32_t nb_in_pool;      /**< of those, in receives of the pool */
	uint32_t nb_offers;       /**< long messages of the peer that are not answered */
	LIST_ENTRY(ofi_ep) conn_link;
	struct ofi_domain *domain;
	struct ofi_eq *eq;
	struct ofi_cq *tx_cq, *rx_cq;
	bool tx_selective, rx_selective;
	struct ofi_cntr *cntrs[OFI_CNTRS];
	struct ofi_rxq *rxq; /**< own_rxq, a shared one, or of a connection its owner's */
	struct ofi_rxq own_rxq;
	uint64_t caps;
	uint64_t tx_flags; /**< defaults of operations */
	uint32_t tx_size;
	enum ofi_state state;
	bool is_accepted; /**< else it connects */
	enum ofi_conn conn;
	bool is_shut; /**< by fi_shutdown() */
	union ofi_addr local, peer;
	struct ofi_origin origin;
	struct ofi_connreq *connreq;
	struct rtsan_qp *qp;
	struct ofi_lane *lane;
	/* receives of the pool */
	struct rtsan_mr *rx_mr;
	struct ofi_rx rx[OFI_NB_RX];
	STAILQ_HEAD(, ofi_rx) consumed;   /**< to be posted again */
	STAILQ_HEAD(, ofi_rx) early;      /**< before the report that the connection is made */
	uint32_t due[OFI_CLASSES];        /**< credits to return */
	STAILQ_HEAD(, ofi_fetch) fetches; /**< messages that complete in order (FI_EP_MSG) */
	uint32_t nb_fetches;
	uint32_t write_status; /**< of the write that is being received */
	uint32_t nb_guesses;   /**< requests for memory that were refused */
	bool is_known;         /**< one was not */
	/* sending */
	uint32_t credit[OFI_CLASSES];
	uint32_t nb_ops;     /**< of the program */
	uint32_t nb_begun;   /**< of those, begun */
	uint32_t nb_wr;      /**< requests of the transport */
	uint32_t nb_answers; /**< to the peer, and reads of its long messages */
	struct ofi_queue sends, answers;
	LIST_HEAD(, ofi_op) ops;              /**< all */
	LIST_HEAD(, ofi_buf) bufs;            /**< with the transport */
	struct ofi_op *requests[OFI_NUMBERS]; /**< that the peer answers, by their numbers */
	uint32_t next_request;
	bool is_dirty;
	bool needs_room; /**< in queues of the transport, which has no completion for that */
	STAILQ_ENTRY(ofi_ep) dirty;
	LIST_ENTRY(ofi_ep) link;
};

/**
 * A passive endpoint. When the program closes it, the listener and the requests that the program
 * knows stay, so that they can be accepted: until the last one is answered, or the context is
 * closed. The next passive endpoint at the port takes them over.
 */
struct ofi_pep {
	struct fid_pep fid;
	struct ofi_fabric *fabric;
	struct ofi_ctx *ctx;
	struct ofi_eq *eq;
	struct fi_info *info;
	union ofi_addr local;
	uint16_t backlog;
	struct rtsan_listener *listener;
	bool is_closed;
	LIST_HEAD(, ofi_connreq) requests;
	LIST_ENTRY(ofi_pep) link;
};

/**
 * A connection request: the handle of an fi_info. It ends when it is accepted or rejected, or with
 * the endpoint that was opened for it.
 */
struct ofi_connreq {
	struct fid fid;
	struct ofi_pep *pep;
	uint64_t request;
	union ofi_addr peer;
	struct ofi_origin origin;
	struct ofi_cm_hdr hdr;
	bool is_taken; /**< by an endpoint */
	bool is_done;  /**< rejected */
	LIST_ENTRY(ofi_connreq) link;
};

/** What a connection is to be made for: an entry of the address vector. */
struct ofi_peer {
	struct ofi_ep *conn;
	int64_t since; /**< of the first attempt; 0: none */
	int err;       /**< why there is none, for the next call */
};

/** What an endpoint FI_EP_RDM has. */
struct ofi_rdm {
	struct ofi_ep *ep;
	struct ofi_av *av;
	struct rtsan_listener *listener;
	uint64_t token;        /**< of its name */
	struct ofi_rxq tagged; /**< tagged receives; others are in own_rxq */
	size_t copied;         /**< bytes of copies of messages that wait */
	LIST_HEAD(, ofi_ep) conns;
	struct ofi_peer *peers; /**< by address */
	size_t nb_peers;
	LIST_ENTRY(ofi_rdm) link, av_link;
};

struct ofi_av_place {
	union ofi_addr addr;
	uint32_t uses; /**< times that it was inserted and not removed; 0: free */
};

/** An address vector, of both types: numbers of addresses are places in its table. */
struct ofi_av {
	struct fid_av fid;
	struct ofi_domain *domain;
	uint32_t refs;
	struct ofi_av_place *places;
	size_t nb;
	LIST_HEAD(, ofi_rdm) rdms;
};
