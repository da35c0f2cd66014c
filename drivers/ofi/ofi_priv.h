/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * What the files of the libfabric provider call of each other, in the order of meson.build: each
 * calls only those above it. (OFI-1)
 *
 * One lock protects everything: the functions that libfabric calls take it, all others expect it.
 */

#include <stdlib.h>
#include <string.h>

#include "ofi_types.h"

extern struct fi_provider san_ofi_ctx_provider;

/** Stands for any call that an object lacks, because it reads no argument: -FI_ENOSYS. */
#define OFI_NONE ((void *)san_ofi_ctx_none)
/** Stands for a table of calls of a kind that an object lacks. */
#define OFI_NO_OPS ((void *)&san_ofi_ctx_no_ops)
#define OFI_FID_OPS(close_call, bind_call, control_call)            \
	{                                                           \
		.size = sizeof(struct fi_ops), .close = close_call, \
		.bind = bind_call, .control = control_call,         \
		.ops_open = OFI_NONE                                \
	}

#define OFI_WARN(subsys, ...) FI_WARN(&san_ofi_ctx_provider, subsys, __VA_ARGS__)
#define OFI_INFO(subsys, ...) FI_INFO(&san_ofi_ctx_provider, subsys, __VA_ARGS__)

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

/* ---- ofi_wait.c ---- */

int san_ofi_wait_init(struct ofi_wait *w, struct ofi_ctx *ctx, enum fi_wait_obj obj,
		      bool for_events);
void san_ofi_wait_fini(struct ofi_wait *w);
/** Another thread may be asleep: wake it. */
void san_ofi_wait_wake(struct ofi_wait *w);
void san_ofi_wait_wake_all(struct ofi_ctx *ctx);
/** Let all that sleep for completions wait for a new lane, or if *lane* is NULL for events, too. */
int san_ofi_wait_add(struct ofi_ctx *ctx, struct ofi_lane *lane);
/** It watches events of connections. */
bool san_ofi_wait_has_events(const struct ofi_wait *w);
/** Milliseconds of the clock, for timeouts. */
int64_t san_ofi_wait_now_ms(void);

/* ---- ofi_ctx.c ---- */

void san_ofi_ctx_read_params(void);
const char *san_ofi_ctx_spec(void);
/** The program's parameter names the user as one whose programs may connect. */
bool san_ofi_ctx_has_user(uint32_t uid);
ssize_t san_ofi_ctx_none(void);
extern struct ofi_no_ops {
	size_t size;
	void *calls[9]; /**< of the largest such table */
} san_ofi_ctx_no_ops;
/** -errno for an error of rtsan.h, whose text is logged. */
int san_ofi_ctx_fail(int rc, const char *what);
extern pthread_mutex_t san_ofi_ctx_lock;
/** Last of a function's declarations: hold the lock from here to its return. */
#define OFI_LOCKED SAN_LOCKED(&san_ofi_ctx_lock)
/** The addresses of a context that is open. */
void san_ofi_ctx_note_addrs(struct rtsan_ctx *san);
/**
 * Addresses of the context, without the lock. Returns their number; 0: not known before an engine
 * runs; -errno: there will be no context.
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
/** *ep* has something to do at the end of the round. */
void san_ofi_ctx_mark(struct ofi_ep *ep);
/** The transport has no room for work of *ep*: keep threads from sleeping until it has. */
void san_ofi_ctx_need_room(struct ofi_ep *ep);
/** Free it and what it holds; the transport is closed. */
void san_ofi_ctx_free(struct ofi_ctx *ctx);

/* ---- ofi_info.c ---- */

int san_ofi_info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
		     const struct fi_info *hints, struct fi_info **info);
/** The same with attributes that are missing; *info* may be NULL. */
struct fi_info san_ofi_info_complete(const struct fi_info *info);
/** Set the addresses of *info*; *dest* may be NULL. 0 or -FI_ENOMEM. */
int san_ofi_info_set_addrs(struct fi_info *info, const union ofi_addr *src,
			   const union ofi_addr *dest);

/* ---- ofi_mr.c ---- */

extern struct fi_ops_mr san_ofi_mr_ops;
/** Check memory of a region of ours. 0, or for whatever reason FI_EACCES. */
uint32_t san_ofi_mr_find(const struct ofi_domain *domain, uint64_t key, uint64_t addr,
			 size_t length, uint64_t access);
/** Register memory; *is_lasting*: by the program, and not for one message. 0 or -errno. */
int san_ofi_mr_open(struct ofi_domain *domain, const struct iovec *iov, uint64_t access,
		    bool is_lasting, struct ofi_mr **mr);
/** 0, or -errno: it is still there. */
int san_ofi_mr_free(struct ofi_mr *mr);

/* ---- ofi_cm.c ---- */

/** Write private data: ours, then *data*. Returns its length. */
uint16_t san_ofi_cm_fill(uint8_t to[RTSAN_PRIVATE_MAX], uint16_t port, const void *data,
			 size_t length);
/** Read it. False: it is not of this provider. */
bool san_ofi_cm_read(const struct rtsan_event *ev, struct ofi_cm_hdr *hdr);
/** The program's data in *ev*. */
static inline const uint8_t *
san_ofi_cm_data(const struct rtsan_event *ev)
{
	return ev->private_data + sizeof(struct ofi_cm_hdr);
}
/**
 * Whether programs of the peer's user may be connected: of this program's user, or as the program's
 * parameter says. A user that only the peer's host states, or that is not known, is taken for this
 * one's only without *needs_proof*.
 */
bool san_ofi_cm_is_user(const struct rtsan_event *ev, bool needs_proof);
/** Find where the peer of *ev* is. 0, or -FI_EINVAL: its address is not readable. */
int san_ofi_cm_origin(const struct rtsan_event *ev, struct ofi_origin *to);
/** Log why there is no connection to *peer*. */
void san_ofi_cm_warn(const union ofi_addr *peer, const char *why);
#define OFI_KINDS "; ofi_rxm uses FI_EP_MSG: do all programs have the same FI_PROVIDER?"
/** Listen at the port of *local*, or if that is 0 at a free one. 0 or -errno. */
int san_ofi_cm_listen(struct ofi_ctx *ctx, union ofi_addr *local, uint64_t service,
		      uint16_t backlog, struct rtsan_listener **listener);
/** Free a request that is accepted. */
void san_ofi_cm_request_free(struct ofi_connreq *req);
/** Reject a request for the program. 0 or -errno. */
int san_ofi_cm_request_reject(struct ofi_connreq *req, const void *param, size_t paramlen);
/** Reject a request that the program does not answer, and free it. */
void san_ofi_cm_request_drop(struct ofi_connreq *req);
void san_ofi_cm_pep_free(struct ofi_pep *pep);
/** The context is closed: what passive endpoints have left behind ends. */
void san_ofi_cm_end_all(struct ofi_ctx *ctx);

/* ---- ofi_report.c ---- */

/** Errno of a completion with *prov_errno*. */
int san_ofi_report_errno(int prov_errno);
/** Write a completion, whose *err* follows from its *prov_errno*. */
void san_ofi_report_cq(struct ofi_cq *cq, const struct fi_cq_err_entry *e);
/** Make, or double, the ring of *cq*. False: no memory. */
bool san_ofi_report_grow(struct ofi_cq *cq);
/** What the counters of an endpoint count. */
extern const uint64_t san_ofi_report_counted[OFI_CNTRS];
/** Write a completion of *flags* FI_SEND, FI_RECV and so on, if it is wanted, and count it. */
void san_ofi_report_done(struct ofi_ep *ep, const struct fi_cq_err_entry *e, bool is_wanted);
/** Add a copy of *ev* with *data*. Without memory it is lost, and logged. */
void san_ofi_report_event(struct ofi_eq *eq, const struct ofi_event *ev, const void *data);
/** Report an event of *ep*'s connection. */
void san_ofi_report_conn(struct ofi_ep *ep, struct ofi_event *ev, const void *data);
/** Report once that the connection has ended, or that its set-up has failed. */
void san_ofi_report_end(struct ofi_ep *ep, uint8_t reason);
/** Free an event, or NULL. A connection request that the program has not seen is rejected. */
void san_ofi_report_free(struct ofi_event *ev);
/** Remove the events of *fid*, which is being closed. */
void san_ofi_report_forget(struct ofi_eq *eq, fid_t fid);

/* ---- ofi_rxq.c ---- */

void san_ofi_rxq_init(struct ofi_rxq *q, struct ofi_domain *domain, const struct fi_rx_attr *attr);
/** Complete all as cancelled. */
void san_ofi_rxq_flush(struct ofi_rxq *q, struct ofi_ep *ep);
/** The receives of an endpoint, or the shared ones. */
struct ofi_rxq *san_ofi_rxq_of(fid_t fid);
/** Post a receive like *like* with the memory of *msg*. 0, -FI_EAGAIN, -FI_EINVAL. */
int san_ofi_rxq_post(struct ofi_rxq *q, const struct ofi_recv *like,
		     const struct fi_msg_tagged *msg, struct ofi_recv **out);
/** Begin a message in receive *r*. Returns where. */
size_t san_ofi_rxq_use(struct ofi_rxq *q, struct ofi_recv *r, size_t length);
/** A message is complete, or the connection has ended (*err*). */
void san_ofi_rxq_done(struct ofi_ep *ep, struct ofi_recv *r, struct fi_cq_err_entry *e);
/** Options and cancelling, of endpoints, passive ones and shared queues. */
extern struct fi_ops_ep san_ofi_rxq_ep_ops;

/* ---- ofi_op.c ---- */

/** Of the types of messages on the wire. */
extern const struct ofi_op_type {
	size_t hdr_size; /**< 0: no type */
	enum ofi_class class;
	uint64_t flags; /**< of the completion */
} san_ofi_op_types[OFI_TYPES];
/**
 * Pieces of memory from *offset* on, of *length* bytes in sum. *places*, unless NULL, says where
 * they are in *from*. Returns their number.
 */
size_t san_ofi_op_slice(const struct iovec *from, size_t nb_from, size_t offset, size_t length,
			struct iovec to[OFI_IOV], uint8_t *places);
/** Copy bytes of it to *bytes*; if it is to be filled, from there. */
void san_ofi_op_copy(const struct iovec *of, size_t nb_of, size_t offset, size_t length,
		     void *bytes, bool is_filled);
/** Queue an operation. 0; -FI_EAGAIN: read the completion queue first; or -errno. */
int san_ofi_op_post(struct ofi_ep *ep, const struct ofi_op_args *args);
/** Read a part of a message that the peer offers. 0 or -errno. */
int san_ofi_op_fetch(struct ofi_ep *conn, struct ofi_fetch *fetch, const struct ofi_op_args *args);
/** Queue an answer to the peer. NULL: no memory, or too many requests. */
struct ofi_op *san_ofi_op_answer(struct ofi_ep *ep, const struct ofi_op_args *args);
/** Complete it if all of its work is done. */
void san_ofi_op_check(struct ofi_op *op);
/**
 * Cancel operations and receives. Operations with work requests in the transport end with its last
 * completion, unless *all* of them end now.
 */
void san_ofi_op_cancel_all(struct ofi_ep *ep, bool all);
/** The connection has ended: everything that is posted completes, as soon as it is back. */
void san_ofi_op_end_all(struct ofi_ep *ep);
/** The peer has violated the protocol: end the connection. */
void san_ofi_op_break(struct ofi_ep *ep, const char *why);

/* ---- ofi_tx.c ---- */

/** Send what can be sent. */
void san_ofi_tx_push(struct ofi_ep *ep);
/** Disconnect in order. 0 or -errno. */
int san_ofi_tx_finish(struct ofi_ep *ep);
void san_ofi_tx_on_wc(struct ofi_ep *ep, const struct rtsan_wc *wc);

/* ---- ofi_conn.c ---- */

/** An endpoint without its parts, or NULL. */
struct ofi_ep *san_ofi_conn_alloc(struct ofi_domain *domain);
/** Return what it has of the transport. */
void san_ofi_conn_release(struct ofi_ep *ep);
/** A connection of an endpoint FI_EP_RDM, or NULL. */
struct ofi_ep *san_ofi_conn_open(struct ofi_ep *owner);
void san_ofi_conn_close(struct ofi_ep *conn);
/** Give it what it needs of the transport. 0 or -errno. */
int san_ofi_conn_enable(struct ofi_ep *ep);
/** Connect to service *at* of *ep*'s peer, or accept its request of that number. 0 or -errno. */
int san_ofi_conn_begin(struct ofi_ep *ep, uint64_t at, const struct ofi_cm_hdr *request,
		       const void *param, size_t paramlen);
/** A receive of the pool is no longer needed; its credit is of *class*. */
void san_ofi_conn_consume(struct ofi_ep *ep, struct ofi_rx *rx, enum ofi_class class);
/** Post the consumed receives of the pool again. */
void san_ofi_conn_repost(struct ofi_ep *ep);

/* ---- ofi_deliver.c: what the peer sends ---- */

/** A receive of the pool has been filled. */
void san_ofi_deliver_on_recv(struct ofi_ep *ep, struct ofi_rx *rx);
/** What dirty endpoints have to do: sends and receives that have become possible. */
void san_ofi_deliver_dirty(struct ofi_ctx *ctx);
/** Post a receive, tagged if *flags* has FI_TAGGED; of *ep*, or shared if that is NULL. */
int san_ofi_deliver_post(struct ofi_rxq *q, struct ofi_ep *ep, const struct fi_msg_tagged *msg,
			 uint64_t flags);
/** Drop the messages of *ep*, or of its connections, that wait for a receive. */
void san_ofi_deliver_drop_all(struct ofi_rxq *q, const struct ofi_ep *ep);

/* ---- ofi_rdm.c: connections of endpoints FI_EP_RDM ---- */

/** Make *ep* an endpoint FI_EP_RDM. 0 or -errno. */
int san_ofi_rdm_init(struct ofi_ep *ep, const struct fi_rx_attr *attr);
int san_ofi_rdm_enable(struct ofi_ep *ep);
/** Its address, which is known by now, has its token. */
void san_ofi_rdm_name(struct ofi_ep *ep);
/** Make the connection to *to*. NULL: -FI_EAGAIN in *rc*, try again later, or -errno. */
struct ofi_ep *san_ofi_rdm_reach(struct ofi_rdm *rdm, fi_addr_t to, int *rc);
/** A request for a listener. False: of none of these endpoints. */
bool san_ofi_rdm_on_request(struct ofi_ctx *ctx, const struct rtsan_event *ev);
/** Whether the peer that has accepted is the program that was meant. */
bool san_ofi_rdm_is_proved(const struct ofi_ep *conn, const struct rtsan_event *ev);
/** A connection has been made, or not, or has ended. */
void san_ofi_rdm_on_event(struct ofi_ep *conn, const struct rtsan_event *ev);
/** The daemon or the port has ended: nothing comes any more. */
void san_ofi_rdm_end_all(struct ofi_ctx *ctx);
/** Free connections that have ended. */
void san_ofi_rdm_reap(struct ofi_ctx *ctx);
int san_ofi_rdm_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
			void *context);

/* ---- ofi_progress.c ---- */

/** A round: completions, then what follows from them; now and then events of connections. */
void san_ofi_progress(struct ofi_ctx *ctx);
/** Events of connections. */
void san_ofi_progress_events(struct ofi_ctx *ctx);
/** Try again what had no room. True: there was something. */
bool san_ofi_progress_retry(struct ofi_ctx *ctx);
/** The process's context, opened if need be. 0 or -errno, with a text in the log. */
int san_ofi_progress_ctx_get(struct ofi_ctx **ctx);
void san_ofi_progress_ctx_put(struct ofi_ctx *ctx);

/* ---- what programs call ---- */

int san_ofi_queue_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
			  void *context);
int san_ofi_queue_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
			  void *context);
int san_ofi_queue_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
			    struct fid_cntr **cntr, void *context);
int san_ofi_queue_trywait(struct fid_fabric *fabric, struct fid **fids, int count);

int san_ofi_msg_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **ep,
			 void *context);
int san_ofi_msg_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			     struct fi_atomic_attr *attr, uint64_t flags);

extern struct fi_ops_msg san_ofi_msg_ops;
extern struct fi_ops_tagged san_ofi_msg_tagged_ops;
extern struct fi_ops_rma san_ofi_msg_rma_ops;
extern struct fi_ops_atomic san_ofi_msg_atomic_ops;

int san_ofi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		    void *context);
int san_ofi_ep_passive_open(struct fid_fabric *fabric, struct fi_info *info,
			    struct fid_pep **pep, void *context);
