/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFI_PRIV_H
#define OFI_PRIV_H

/**
 * @file
 * The objects of the libfabric provider, and the functions that its files call of each other.
 * doc/libfabric.md says why they are so. (OFI-1)
 *
 * One lock protects everything: the functions that libfabric calls take it, all others expect it.
 */

#include <netinet/in.h>
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
#define OFI_ADDRS      24
#define OFI_GUESSERS   1024

#define OFI_NUMBERS  (2 * OFI_REQUESTS) /* of operations, and of reads of long messages */
#define OFI_SQ_DEPTH 256
#define OFI_RQ_DEPTH 256 /* places may be free later than completions come */

/* Kinds of wr_id; none: a send buffer. */
#define OFI_WR_OP 1u /* an operation: the bytes were inline */
#define OFI_WR_RX 2u /* a receive of the pool */

/* prov_errno: a status of rtsan.h, or with this an errno that the peer's provider answered. */
#define OFI_ERRNO 256

extern struct fi_provider san_ofi_init_provider;

#define OFI_WARN(subsys, ...) FI_WARN(&san_ofi_init_provider, subsys, __VA_ARGS__)
#define OFI_INFO(subsys, ...) FI_INFO(&san_ofi_init_provider, subsys, __VA_ARGS__)

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
	int fd;        /**< for waiting; -1: not requested yet */
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

/** A receive of an endpoint's pool. */
struct ofi_rx {
	uint8_t *data;
	uint32_t length;
	enum ofi_class class; /**< of its credit, once it is consumed */
	STAILQ_ENTRY(ofi_rx) link;
};

/** The context of the process. */
struct ofi_ctx {
	struct rtsan_ctx *san;
	struct rtsan_caps caps;
	uint32_t refs;
	struct ofi_drive *drive; /**< NULL: the engine has threads of its own */
	bool is_lost;            /**< the daemon or the port has ended */
	bool has_rdm;            /**< sleepers for completions watch events of connections, too */
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
	uint32_t sleepers; /**< threads in san_ofi_wait_sleep() */
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
	uint32_t refs;
	STAILQ_HEAD(, ofi_event) events;
	struct ofi_event *shown; /**< its error data belongs to the program until the next read */
};

struct ofi_cq {
	struct fid_cq fid;
	struct ofi_domain *domain;
	struct ofi_wait wait;
	enum fi_cq_format format;
	uint32_t refs;
	struct fi_cq_err_entry *ring;
	uint32_t size, head, nb;
	bool is_signaled; /**< fi_cq_signal() */
};

struct ofi_cntr {
	struct fid_cntr fid;
	struct ofi_domain *domain;
	struct ofi_wait wait;
	uint32_t refs;
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
	size_t used; /**< of a buffer for many messages */
	/* of an endpoint FI_EP_RDM */
	uint64_t tag, ignore;
	fi_addr_t from; /**< FI_ADDR_UNSPEC: any peer */
	STAILQ_ENTRY(ofi_recv) link;
};

/** Posted receives, of one endpoint or shared. */
struct ofi_rxq {
	struct fid_ep fid; /**< if shared */
	struct ofi_domain *domain;
	uint32_t refs;
	struct ofi_cq *cq;
	uint32_t nb, max;
	uint64_t flags; /**< defaults of receives, if shared */
	size_t min_multi;
	STAILQ_HEAD(, ofi_recv) posted;
	STAILQ_HEAD(, ofi_ep) starving; /**< endpoints with messages that wait for a receive */
};

/** A long message that the peer reads. */
struct ofi_offer {
	size_t length;
	uint8_t nb;
	struct ofi_mr *mrs[OFI_IOV];
	struct ofi_place places[OFI_IOV]; /**< what the message has instead of its bytes */
};

enum ofi_kind {
	OFI_OP_SEND = 0,
	OFI_OP_WRITE,
	OFI_OP_READ,
	OFI_OP_ATOMIC,
	OFI_OP_ACK,       /**< an answer */
	OFI_OP_READ_DATA, /**< an answer */
	OFI_OP_CREDIT,
};

/** An operation of the program, or an answer. */
struct ofi_op {
	struct ofi_ep *ep;
	void *context;
	uint64_t flags; /**< of the completion; FI_COMPLETION: report it, FI_FENCE, levels */
	uint8_t kind;   /**< enum ofi_kind */
	uint8_t atomic; /**< enum ofi_atomic */
	bool is_native; /**< executed by the transport alone */
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
	uint32_t id;
	uint32_t status; /**< of an answer */
	uint64_t data, addr, key, operand, compare;
	int err, prov_errno;
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
	return op->kind <= OFI_OP_ATOMIC && op->fetch == NULL;
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

enum ofi_cntr_kind {
	OFI_CNTR_SEND = 0,
	OFI_CNTR_RECV,
	OFI_CNTR_READ,
	OFI_CNTR_WRITE,
	OFI_CNTRS,
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
	uint32_t nb_held;         /**< messages of a connection that wait for a receive */
	uint32_t nb_in_pool;      /**< of those, in receives of the pool */
	uint32_t nb_offers;       /**< long messages of the peer that are not answered */
	LIST_ENTRY(ofi_ep) conn_link;
	struct ofi_domain *domain;
	struct ofi_eq *eq;
	struct ofi_cq *tx_cq, *rx_cq;
	bool tx_selective, rx_selective;
	struct ofi_cntr *cntrs[OFI_CNTRS];
	struct ofi_rxq *rxq; /**< own_rxq or a shared one */
	struct ofi_rxq own_rxq;
	uint64_t caps;
	uint64_t tx_flags, rx_flags; /**< defaults of operations */
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
	STAILQ_HEAD(, ofi_rx) held;       /**< messages that wait for a receive */
	STAILQ_HEAD(, ofi_rx) early;      /**< ... for the report that the connection is made */
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
	bool is_dirty, is_starving;
	bool needs_room; /**< in queues of the transport, which has no completion for that */
	STAILQ_ENTRY(ofi_ep) dirty, starving;
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

/* ---- ofi_init.c ---- */

/** Spec of the context. */
const char *san_ofi_init_spec(void);
/** It is the program's choice, not the default. */
bool san_ofi_init_has_spec(void);
/** The program's parameter names the user as one whose programs may connect. */
bool san_ofi_init_has_user(uint32_t uid);

/* ---- ofi_info.c ---- */

int san_ofi_info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
		     const struct fi_info *hints, struct fi_info **info);
/** Set the addresses of *info*; *dest* may be NULL. 0 or -FI_ENOMEM. */
int san_ofi_info_set_addrs(struct fi_info *info, const union ofi_addr *src,
			   const union ofi_addr *dest);

/* ---- ofi_addr.c ---- */

size_t san_ofi_addr_len(const union ofi_addr *a);
uint16_t san_ofi_addr_port(const union ofi_addr *a);
void san_ofi_addr_set_port(union ofi_addr *a, uint16_t port);
/** Token of an endpoint's name, in fields that are zero in other addresses. 0: none. */
uint64_t san_ofi_addr_token(const union ofi_addr *a);
void san_ofi_addr_set_token(union ofi_addr *a, uint64_t token);
bool san_ofi_addr_is_any(const union ofi_addr *a);
bool san_ofi_addr_is_same_ip(const union ofi_addr *a, const union ofi_addr *b);
/** Read an address that a program passes. 0, -FI_EINVAL: of another family, or too short. */
int san_ofi_addr_read(union ofi_addr *to, const void *from, size_t len);
/** Read the address's text, which rtsan.h gives. 0 or -FI_EINVAL. */
int san_ofi_addr_parse(union ofi_addr *to, const char *text, uint16_t port);
void san_ofi_addr_text(const union ofi_addr *a, char text[RTSAN_ADDRESS_MAX]);
/** Copy it to a program's buffer. 0 or -FI_ETOOSMALL. */
int san_ofi_addr_copy(const union ofi_addr *a, void *to, size_t *len);
/** Resolve a name. 0 or -FI_ENODATA. */
int san_ofi_addr_resolve(union ofi_addr *to, const char *node, const char *service, bool numeric,
			 int family);

/* ---- ofi_ctx.c ---- */

void san_ofi_ctx_lock(void);
void san_ofi_ctx_unlock(void);
/** True: it is locked. Never waits. */
bool san_ofi_ctx_trylock(void);
/** The process's context, opened if need be. 0 or -errno, with a text in the log. */
int san_ofi_ctx_get(struct ofi_ctx **ctx);
void san_ofi_ctx_put(struct ofi_ctx *ctx);
/**
 * Addresses of the context, without the lock.
 *
 * @return
 *   Their number, 0: not known before an engine runs, or -errno: there will be no context.
 */
int san_ofi_ctx_addrs(union ofi_addr addrs[OFI_ADDRS]);
/**
 * Unless *a* is an address of *family*, make it an own one, if possible of that family, with the
 * port that it has. 0 or -FI_EADDRNOTAVAIL.
 */
int san_ofi_ctx_addr(int family, union ofi_addr *a);
/** Reserve entries for an endpoint. 0 or -errno. */
int san_ofi_ctx_lane_get(struct ofi_ctx *ctx, struct ofi_lane **lane);
void san_ofi_ctx_lane_put(struct ofi_lane *lane);
/** A send buffer, or NULL. */
struct ofi_buf *san_ofi_ctx_buf_get(struct ofi_ctx *ctx);
void san_ofi_ctx_buf_put(struct ofi_ctx *ctx, struct ofi_buf *buf);
/** -errno for an error of rtsan.h, whose text is logged. */
int san_ofi_ctx_fail(int rc, const char *what);

/* ---- ofi_progress.c ---- */

/** A round: completions, then what follows from them; now and then events of connections. */
void san_ofi_progress(struct ofi_ctx *ctx);
/** A round, and events of connections. */
void san_ofi_progress_all(struct ofi_ctx *ctx);
/** Events of connections. */
void san_ofi_progress_events(struct ofi_ctx *ctx);
/** *ep* has something to do at the end of the round. */
void san_ofi_progress_mark(struct ofi_ep *ep);
/** The transport has no room for work of *ep*: keep threads from sleeping until it has. */
void san_ofi_progress_need_room(struct ofi_ep *ep);
/** Try again what had no room. True: there was something. */
bool san_ofi_progress_retry(struct ofi_ctx *ctx);

/* ---- ofi_drive.c ---- */

/** Start the thread that drives the engine while the program does not. 0 or -errno. */
int san_ofi_drive_start(struct ofi_ctx *ctx);
/** End it, if there is one. */
void san_ofi_drive_stop(struct ofi_ctx *ctx);
/** A thread is about to sleep: look more often. */
void san_ofi_drive_wake(struct ofi_ctx *ctx);

/* ---- ofi_wait.c ---- */

int san_ofi_wait_init(struct ofi_wait *w, struct ofi_ctx *ctx, enum fi_wait_obj obj,
		      bool for_events);
void san_ofi_wait_fini(struct ofi_wait *w);
/** Another thread may be asleep: wake it. */
void san_ofi_wait_wake(struct ofi_wait *w);
/** A lane is new: let all sleepers wait for it, too. */
int san_ofi_wait_add_lane(struct ofi_ctx *ctx, struct ofi_lane *lane);
/** From now on, sleepers for completions wait for events of connections, too. */
int san_ofi_wait_add_events(struct ofi_ctx *ctx);
/** Before a sleep. 0; -FI_EAGAIN: there was progress, look again; or -errno. */
int san_ofi_wait_arm(struct ofi_wait *w);
/** Sleep without the lock, which is held before and after. 0, or -FI_EAGAIN: a signal came. */
int san_ofi_wait_sleep(struct ofi_wait *w, int timeout_ms);
/** A thread that may have slept returns to the program: others that sleep have to arm anew. */
void san_ofi_wait_leave(struct ofi_wait *w);
/** FI_GETWAIT, FI_GETWAITOBJ. */
int san_ofi_wait_control(struct ofi_wait *w, int command, void *arg);
/** Milliseconds of the clock, for timeouts. */
int64_t san_ofi_wait_now_ms(void);

/* ---- ofi_fabric.c, ofi_domain.c, ofi_eq.c, ofi_cq.c, ofi_cntr.c ---- */

int san_ofi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int san_ofi_domain_open(struct fid_fabric *fabric, struct fi_info *info,
			struct fid_domain **domain, void *context);
int san_ofi_domain_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
				enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags);

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

int san_ofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		    void *context);
/** Add a copy of *ev* with *data*. Without memory it is lost, and logged. */
void san_ofi_eq_put(struct ofi_eq *eq, const struct ofi_event *ev, const void *data);
/** Remove the events of *fid*, which is being closed. */
void san_ofi_eq_forget(struct ofi_eq *eq, fid_t fid);

int san_ofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		    void *context);
void san_ofi_cq_put(struct ofi_cq *cq, const struct fi_cq_err_entry *e);
/** -FI_EAGAIN: not empty. */
int san_ofi_cq_trywait(struct ofi_cq *cq);

int san_ofi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		      struct fid_cntr **cntr, void *context);
void san_ofi_cntr_add(struct ofi_cntr *cntr, bool is_error);

/* ---- ofi_mr.c ---- */

extern struct fi_ops_mr san_ofi_mr_ops;
/** Key of a region that the transport reaches itself. */
bool san_ofi_mr_is_native(uint64_t key);
uint32_t san_ofi_mr_rkey(uint64_t key);
/** Check memory of a region of ours. 0, or for whatever reason FI_EACCES. */
uint32_t san_ofi_mr_find(const struct ofi_domain *domain, uint64_t key, uint64_t addr,
			 size_t length, uint64_t access);
/** The same for a request of the peer of *ep*, whose connection too many refusals end. */
uint32_t san_ofi_mr_find_for(struct ofi_ep *ep, uint64_t key, uint64_t addr, size_t length,
			     uint64_t access);
/** Register memory for the provider itself. 0 or -errno. */
int san_ofi_mr_open(struct ofi_domain *domain, const struct iovec *iov, uint64_t access,
		    struct ofi_mr **mr);
void san_ofi_mr_free(struct ofi_mr *mr);
/** The lkey of a descriptor. */
uint32_t san_ofi_mr_lkey(void *desc);

/* ---- ofi_ep.c, ofi_cm.c, ofi_pep.c ---- */

int san_ofi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		    void *context);
/** Free a request that is accepted. */
void san_ofi_pep_request_free(struct ofi_connreq *req);
/** Reject a request that the program does not answer, and free it. */
void san_ofi_pep_request_drop(struct ofi_connreq *req);
/** The context is closed: what passive endpoints have left behind ends. */
void san_ofi_pep_end_all(struct ofi_ctx *ctx);
/** Give it what it needs of the transport. 0 or -errno. */
int san_ofi_ep_enable(struct ofi_ep *ep);
/** Disconnect; a peer that answers ends the connection before the return. 0 or -errno. */
int san_ofi_ep_shutdown(struct ofi_ep *ep);
/** The connection has ended: everything that is posted completes, as soon as it is back. */
void san_ofi_ep_end(struct ofi_ep *ep);
/** The peer has violated the protocol: end the connection. */
void san_ofi_ep_break(struct ofi_ep *ep, const char *why);
/** Write a completion of *flags* FI_SEND, FI_RECV and so on, if it is wanted, and count it. */
void san_ofi_ep_report(struct ofi_ep *ep, const struct fi_cq_err_entry *e, bool is_wanted);

/** A connection of an endpoint FI_EP_RDM, or NULL. */
struct ofi_ep *san_ofi_ep_conn_open(struct ofi_ep *owner);
void san_ofi_ep_conn_close(struct ofi_ep *conn);
/** Send what is posted, until *end_ms*. */
void san_ofi_ep_drain(struct ofi_ep *ep, int64_t end_ms);
/** Then disconnect. 0 or -errno. */
int san_ofi_ep_linger(struct ofi_ep *ep, int64_t end_ms);

extern struct fi_ops_cm san_ofi_cm_ops, san_ofi_cm_rdm_ops;
/** Connect to *ep*'s peer, or accept its request. 0 or -errno. */
int san_ofi_cm_connect(struct ofi_ep *ep, uint64_t service, const void *param, size_t paramlen);
int san_ofi_cm_accept(struct ofi_ep *ep, uint64_t request, const struct ofi_cm_hdr *hdr,
		      const void *param, size_t paramlen);

void san_ofi_cm_on_event(const struct rtsan_event *ev);
/** Log why there is no connection to *peer*. */
void san_ofi_cm_warn(const union ofi_addr *peer, const char *why);
#define OFI_KINDS "; ofi_rxm uses FI_EP_MSG: do all programs have the same FI_PROVIDER?"
/** Report once that the connection has ended, or that its set-up has failed. */
void san_ofi_cm_report_end(struct ofi_ep *ep, uint8_t reason);
/** Write private data: ours, then *data*. Returns its length. */
uint16_t san_ofi_cm_fill(uint8_t to[RTSAN_PRIVATE_MAX], uint16_t port, const void *data,
			 size_t length);
/**
 * Whether programs of the peer's user may be connected: of this program's user, or as the program's
 * parameter says. A user that only the peer's host states, or that is not known, is taken for this
 * one's only without *needs_proof*.
 */
bool san_ofi_cm_is_user(const struct rtsan_event *ev, bool needs_proof);
/** Find where the peer of *ev* is. 0, or -FI_EINVAL: its address is not readable. */
int san_ofi_cm_origin(const struct rtsan_event *ev, struct ofi_origin *to);
/** Read it. False: it is not of this provider. */
bool san_ofi_cm_read(const struct rtsan_event *ev, struct ofi_cm_hdr *hdr);
/** The program's data in *ev*. */
static inline const uint8_t *
san_ofi_cm_data(const struct rtsan_event *ev)
{
	return ev->private_data + sizeof(struct ofi_cm_hdr);
}

int san_ofi_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
		     void *context);
void san_ofi_pep_on_request(struct ofi_ctx *ctx, const struct rtsan_event *ev);
/** A port for an endpoint that has not chosen one. */
uint16_t san_ofi_pep_draw_port(void);

/* ---- ofi_rxq.c: posted receives ---- */

void san_ofi_rxq_init(struct ofi_rxq *q, struct ofi_domain *domain, uint32_t max);
/** Complete all as cancelled. */
void san_ofi_rxq_flush(struct ofi_rxq *q, struct ofi_ep *ep);
/** A shared queue. */
int san_ofi_rxq_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **ep,
		     void *context);
/** Cancel the receive with *context*. 0 or -FI_ENOENT. */
int san_ofi_rxq_cancel(struct ofi_rxq *q, struct ofi_ep *ep, void *context);
/** Post a receive. *flags*: FI_COMPLETION, FI_MULTI_RECV. 0, -FI_EAGAIN, -FI_EINVAL. */
int san_ofi_rxq_post(struct ofi_rxq *q, const struct fi_msg *msg, uint64_t flags);
/** Begin a message in receive *r*. Returns where. */
size_t san_ofi_rxq_use(struct ofi_rxq *q, struct ofi_recv *r, size_t length);
/** A message is complete, or the connection has ended (*err*). */
void san_ofi_rxq_done(struct ofi_ep *ep, struct ofi_recv *r, struct fi_cq_err_entry *e);
int san_ofi_rxq_setopt(struct ofi_rxq *q, int level, int name, const void *value, size_t len);
int san_ofi_rxq_getopt(const struct ofi_rxq *q, int level, int name, void *value, size_t *len);

/* ---- ofi_rx.c: receiving ---- */

void san_ofi_rx_on_recv(struct ofi_ep *ep, struct ofi_rx *rx);
/** Give held messages to receives. */
void san_ofi_rx_feed(struct ofi_ep *ep);
/** Post the consumed receives of the pool again. */
void san_ofi_rx_repost(struct ofi_ep *ep);

/** The message in *rx* no longer needs it. */
void san_ofi_rx_release(struct ofi_ep *ep, struct ofi_rx *rx);
/** Answer the peer's request *id*. */
void san_ofi_rx_answer(struct ofi_ep *ep, uint32_t id, uint32_t status, uint64_t data);

/* ---- ofi_iov.c: memory in pieces ---- */

/** Its pieces from *offset* on, of *length* bytes in sum. Returns their number. */
size_t san_ofi_iov_slice(const struct iovec *from, size_t nb_from, size_t offset, size_t length,
			 struct iovec to[OFI_IOV]);
/** Copy bytes of it. */
void san_ofi_iov_read(const struct iovec *from, size_t nb_from, size_t offset, void *to,
		      size_t length);
/** Copy bytes to it. */
void san_ofi_iov_write(const struct iovec *to, size_t nb_to, size_t offset, const void *from,
		       size_t length);

/* ---- ofi_deliver.c: a message and its receive ---- */

/** Whether a message with *payload* bytes behind its header keeps to the protocol. */
bool san_ofi_deliver_is_sound(const struct ofi_ep *ep, const struct ofi_hdr *hdr, size_t payload);
/** Give a message, *length* bytes with its header, to receive *r* of *q*. */
void san_ofi_deliver(struct ofi_ep *ep, struct ofi_rxq *q, struct ofi_recv *r,
		     const uint8_t *bytes, size_t length);
/** Describe a message in a completion. */
void san_ofi_deliver_fill(struct fi_cq_err_entry *e, const struct ofi_ep *ep,
			  const struct ofi_hdr *hdr);
/** Answer a message, if the sender waits for that. */
void san_ofi_deliver_answer(struct ofi_ep *ep, const struct ofi_hdr *hdr, int err);
/** A read of a long message is complete. */
void san_ofi_deliver_on_read(struct ofi_fetch *fetch, int err, int prov_errno);

/* ---- ofi_op.c, ofi_tx.c: sending ---- */

/** What an operation of the program is made of. */
struct ofi_op_args {
	enum ofi_kind kind;
	uint64_t flags;
	fi_addr_t to; /**< of FI_EP_RDM */
	void *context;
	const struct iovec *iov;
	void **desc;
	size_t count;
	uint64_t data, key;
	uint64_t addr; /**< of memory; of a tagged message: its tag */
	enum ofi_atomic atomic;
	uint64_t operand, compare;
};
/** Begin an operation. 0; -FI_EAGAIN: read the completion queue first; or -errno. */
ssize_t san_ofi_op_post(struct ofi_ep *ep, const struct ofi_op_args *args);
/** Read a part of a message that the peer offers. 0 or -errno. */
int san_ofi_op_fetch(struct ofi_ep *conn, struct ofi_fetch *fetch, const struct ofi_op_args *args);
/** An answer to request *id* of the peer. NULL: no memory, or too many requests. */
struct ofi_op *san_ofi_op_answer(struct ofi_ep *ep, enum ofi_kind kind, uint32_t id);
/** Complete it if all of its work is done. */
void san_ofi_op_check(struct ofi_op *op);
/** Complete it now. */
void san_ofi_op_cancel(struct ofi_op *op);
/** The operation that the peer answers, or NULL. */
struct ofi_op *san_ofi_op_of_request(struct ofi_ep *ep, uint32_t id);

/** Send what can be sent. */
void san_ofi_tx_push(struct ofi_ep *ep);
/** Disconnect in order. 0 or -errno. */
int san_ofi_tx_finish(struct ofi_ep *ep);
void san_ofi_tx_on_wc(struct ofi_ep *ep, const struct rtsan_wc *wc);

/* ---- ofi_msg.c, ofi_rma.c, ofi_atomic.c: the calls ---- */

/** Flags of an operation whose call has *flags*. */
uint64_t san_ofi_msg_own_flags(struct fid_ep *fid, uint64_t flags);
/** Flags of an operation whose call has none. */
uint64_t san_ofi_msg_flags(struct fid_ep *fid);
/** Call san_ofi_op_post() with the lock. */
ssize_t san_ofi_msg_post(struct fid_ep *fid, const struct ofi_op_args *args);

extern struct fi_ops_msg san_ofi_msg_ops, san_ofi_msg_srx_ops;
extern struct fi_ops_rma san_ofi_rma_ops;
extern struct fi_ops_atomic san_ofi_atomic_ops;

/* ---- ofi_none.c: calls that are not supported ---- */

extern struct fi_ops_tagged san_ofi_none_tagged;
extern struct fi_ops_cm san_ofi_none_cm;
int san_ofi_none_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **ep,
			void *context);
int san_ofi_none_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **ep,
			void *context);
ssize_t san_ofi_none_size_left(struct fid_ep *ep);
int san_ofi_none_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen);
int san_ofi_none_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen);
int san_ofi_none_listen(struct fid_pep *pep);
int san_ofi_none_accept(struct fid_ep *ep, const void *param, size_t paramlen);
int san_ofi_none_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen);
int san_ofi_none_shutdown(struct fid_ep *ep, uint64_t flags);
int san_ofi_none_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int san_ofi_none_control(struct fid *fid, int command, void *arg);
int san_ofi_none_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
			  void *context);

#endif /* OFI_PRIV_H */
