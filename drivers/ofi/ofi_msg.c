/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * fi_send(), fi_recv(), fi_read(), fi_write(), atomics, their variants, and queues of receives that
 * endpoints share. Every call fills one record, struct ofi_op_args or struct fi_msg_tagged, and
 * takes one path. Atomics are FI_SUM, fetching or not, and FI_CSWAP, on one integer of 64 bits.
 */

#include "ofi_priv.h"

/** Begin an operation with these fields of struct ofi_op_args. */
#define MSG_POST(ep, ...) msg_post(ep, &(struct ofi_op_args){__VA_ARGS__})
/** Memory in one piece. */
#define MSG_ONE(buf, len, desc_at) \
	.iov = &(struct iovec){(void *)(uintptr_t)(buf), len}, .desc = desc_at, .count = 1
/** What a message of any type says. */
#define MSG_BY(msg)                                                       \
	.call = OFI_CALL_MSG, .iov = (msg)->msg_iov, .desc = (msg)->desc, \
	.count = (msg)->iov_count, .to = (msg)->addr, .context = (msg)->context, .data = (msg)->data

/* ---- sends ---- */

/* The connection of an endpoint FI_EP_RDM; while there is none, each call makes progress. */
static struct ofi_ep *
msg_conn(struct ofi_ep *ep, fi_addr_t to, int *rc)
{
	const struct ofi_rdm *rdm = ep->rdm;
	struct ofi_ep *conn = to < rdm->nb_peers ? rdm->peers[to].conn : NULL;

	if (conn != NULL && conn->state == OFI_EP_CONNECTED && !conn->is_shut)
		return conn;
	if (ep->state == OFI_EP_NEW) {
		*rc = -FI_EOPBADSTATE;
		return NULL;
	}
	san_ofi_progress(ep->domain->ctx);
	san_ofi_progress_events(ep->domain->ctx);
	return san_ofi_rdm_reach(ep->rdm, to, rc);
}

/* Begin an operation. 0; -FI_EAGAIN: read the completion queue first; or -errno. */
static ssize_t
msg_post(struct fid_ep *fid, struct ofi_op_args *args)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid);
	int rc = 0;
	OFI_LOCKED;

	if (args->call == OFI_CALL_INJECT)
		args->flags |= FI_INJECT;
	else if (!ep->tx_selective)
		args->flags |= FI_COMPLETION;
	if (args->call == OFI_CALL_PLAIN)
		args->flags |= ep->tx_flags;
	if (ep->rdm != NULL)
		ep = msg_conn(ep, args->to, &rc);
	if (rc == 0)
		rc = san_ofi_op_post(ep, args);
	if (rc == 0)
		san_ofi_tx_push(ep);
	return rc;
}

static ssize_t
msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	  void *context)
{
	return MSG_POST(ep, .iov = iov, .desc = desc, .count = count, .to = to, .context = context);
}

static ssize_t
msg_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, void *context)
{
	return MSG_POST(ep, MSG_ONE(buf, len, &desc), .to = to, .context = context);
}

static ssize_t
msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return MSG_POST(ep, MSG_BY(msg), .flags = flags & ~FI_TAGGED);
}

static ssize_t
msg_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	     fi_addr_t to, void *context)
{
	return MSG_POST(ep, MSG_ONE(buf, len, &desc), .flags = FI_REMOTE_CQ_DATA, .data = data,
			.to = to, .context = context);
}

static ssize_t
msg_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to)
{
	return MSG_POST(ep, MSG_ONE(buf, len, NULL), .call = OFI_CALL_INJECT, .to = to);
}

static ssize_t
msg_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to)
{
	return MSG_POST(ep, MSG_ONE(buf, len, NULL), .call = OFI_CALL_INJECT,
			.flags = FI_REMOTE_CQ_DATA, .data = data, .to = to);
}

static ssize_t
tagged_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	     uint64_t tag, void *context)
{
	return MSG_POST(ep, .flags = FI_TAGGED, .iov = iov, .desc = desc, .count = count, .to = to,
			.addr = tag, .context = context);
}

static ssize_t
tagged_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t tag,
	    void *context)
{
	return MSG_POST(ep, MSG_ONE(buf, len, &desc), .flags = FI_TAGGED, .to = to, .addr = tag,
			.context = context);
}

static ssize_t
tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	return MSG_POST(ep, MSG_BY(msg), .flags = flags | FI_TAGGED, .addr = msg->tag);
}

static ssize_t
tagged_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag)
{
	return MSG_POST(ep, MSG_ONE(buf, len, NULL), .call = OFI_CALL_INJECT, .flags = FI_TAGGED,
			.to = to, .addr = tag);
}

static ssize_t
tagged_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
		fi_addr_t to, uint64_t tag, void *context)
{
	return MSG_POST(ep, MSG_ONE(buf, len, &desc), .flags = FI_TAGGED | FI_REMOTE_CQ_DATA,
			.data = data, .to = to, .addr = tag, .context = context);
}

static ssize_t
tagged_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to,
		  uint64_t tag)
{
	return MSG_POST(ep, MSG_ONE(buf, len, NULL), .call = OFI_CALL_INJECT,
			.flags = FI_TAGGED | FI_REMOTE_CQ_DATA, .data = data, .to = to,
			.addr = tag);
}

/* ---- receives, of endpoints and shared ---- */

static ssize_t
msg_post_recv(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	bool is_shared = fid->fid.fclass == FI_CLASS_SRX_CTX;
	struct ofi_ep *ep = is_shared ? NULL : container_of(fid, struct ofi_ep, fid);
	struct ofi_rxq *q = san_ofi_rxq_of(&fid->fid);
	OFI_LOCKED;

	if ((flags & FI_PEEK) != 0) /* a program may look until a message is there */
		san_ofi_progress(q->domain->ctx);
	if (!is_shared && ep->state == OFI_EP_NEW)
		return -FI_EOPBADSTATE;
	if (!is_shared && q != &ep->own_rxq)
		return -FI_EINVAL;
	if ((flags & FI_TAGGED) != 0)
		q = &ep->rdm->tagged;
	return san_ofi_deliver_post(q, ep, msg, flags);
}

static ssize_t
msg_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	const struct fi_msg_tagged any = {
		msg->msg_iov, msg->desc, msg->iov_count, msg->addr, 0, ~0ull, msg->context, 0};

	return msg_post_recv(ep, &any, flags & ~(FI_TAGGED | FI_PEEK));
}

static ssize_t
msg_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	  void *context)
{
	const struct fi_msg msg = {iov, desc, count, from, context, 0};

	return msg_recvmsg(ep, &msg, san_ofi_rxq_of(&ep->fid)->flags);
}

static ssize_t
msg_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from, void *context)
{
	return msg_recvv(ep, &(struct iovec){buf, len}, &desc, 1, from, context);
}

static ssize_t
tagged_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	return msg_post_recv(ep, msg, (flags & ~FI_MULTI_RECV) | FI_TAGGED);
}

static ssize_t
tagged_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	     uint64_t tag, uint64_t ignore, void *context)
{
	const struct fi_msg_tagged msg = {iov, desc, count, from, tag, ignore, context, 0};

	return tagged_recvmsg(ep, &msg, san_ofi_rxq_of(&ep->fid)->flags);
}

static ssize_t
tagged_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t tag,
	    uint64_t ignore, void *context)
{
	return tagged_recvv(ep, &(struct iovec){buf, len}, &desc, 1, from, tag, ignore, context);
}

/* ---- tables ---- */

struct fi_ops_msg san_ofi_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};

struct fi_ops_tagged san_ofi_msg_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};

static struct fi_ops_msg srx_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
};

/* ---- memory ---- */

static ssize_t
rma_message(struct fid_ep *ep, enum ofi_type type, const struct fi_msg_rma *msg, uint64_t flags)
{
	size_t i, length = 0;

	for (i = 0; i < msg->iov_count; i++)
		length += msg->msg_iov[i].iov_len;
	if (msg->rma_iov_count != 1 || msg->rma_iov[0].len != length)
		return -FI_EINVAL;
	return MSG_POST(ep, MSG_BY(msg), .type = type, .flags = flags, .addr = msg->rma_iov[0].addr,
			.key = msg->rma_iov[0].key);
}

/* ---- reads ---- */

static ssize_t
rma_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
	  uint64_t addr, uint64_t key, void *context)
{
	return MSG_POST(ep, .type = OFI_READ, .iov = iov, .desc = desc, .count = count, .to = from,
			.addr = addr, .key = key, .context = context);
}

static ssize_t
rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t addr,
	 uint64_t key, void *context)
{
	return rma_readv(ep, &(struct iovec){buf, len}, &desc, 1, from, addr, key, context);
}

static ssize_t
rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return rma_message(ep, OFI_READ, msg, flags);
}

/* ---- writes ---- */

static ssize_t
rma_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
	   uint64_t addr, uint64_t key, void *context)
{
	return MSG_POST(ep, .type = OFI_WRITE, .iov = iov, .desc = desc, .count = count, .to = to,
			.addr = addr, .key = key, .context = context);
}

static ssize_t
rma_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t addr,
	  uint64_t key, void *context)
{
	return MSG_POST(ep, MSG_ONE(buf, len, &desc), .type = OFI_WRITE, .to = to, .addr = addr,
			.key = key, .context = context);
}

static ssize_t
rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return rma_message(ep, OFI_WRITE, msg, flags);
}

static ssize_t
rma_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t addr,
	   uint64_t key)
{
	return MSG_POST(ep, MSG_ONE(buf, len, NULL), .type = OFI_WRITE, .call = OFI_CALL_INJECT,
			.to = to, .addr = addr, .key = key);
}

static ssize_t
rma_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	      fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
	return MSG_POST(ep, MSG_ONE(buf, len, &desc), .type = OFI_WRITE, .flags = FI_REMOTE_CQ_DATA,
			.data = data, .to = to, .addr = addr, .key = key, .context = context);
}

static ssize_t
rma_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to,
	       uint64_t addr, uint64_t key)
{
	return MSG_POST(ep, MSG_ONE(buf, len, NULL), .type = OFI_WRITE, .call = OFI_CALL_INJECT,
			.flags = FI_REMOTE_CQ_DATA, .data = data, .to = to, .addr = addr,
			.key = key);
}

struct fi_ops_rma san_ofi_msg_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};

/* ---- atomics ---- */

/** What a call has besides its message. */
struct atomic_call {
	uint64_t kind; /**< 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC */
	enum ofi_call call;
	uint64_t flags;
	const struct fi_ioc *compare, *result; /**< see ATOMIC_ONE */
};

/** An array of *nb* integers, as an element of a vector. */
#define ATOMIC_IN(array, nb) (&(struct fi_ioc){(void *)(uintptr_t)(array), nb})
/** The only integer of a vector; NULL is refused. */
#define ATOMIC_ONE(array, nb) ((nb) == 1 && (array)[0].count == 1 ? (array) : NULL)

/*
 * The two of the transport, on 8 bytes. FI_SUM works with and without FI_FETCH_ATOMIC, FI_CSWAP
 * with FI_COMPARE_ATOMIC only.
 */
int
san_ofi_msg_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			 struct fi_atomic_attr *attr, uint64_t flags)
{
	const uint64_t both = FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC;
	bool compares = (flags & FI_COMPARE_ATOMIC) != 0;

	if ((flags & FI_TAGGED) != 0) /* to a tagged receive */
		return -FI_EOPNOTSUPP;
	if ((flags & ~both) != 0 || flags == both)
		return -FI_EBADFLAGS;
	if (datatype != FI_INT64 && datatype != FI_UINT64)
		return -FI_EOPNOTSUPP;
	if (op != (compares ? FI_CSWAP : FI_SUM))
		return -FI_EOPNOTSUPP;
	attr->count = 1;
	attr->size = sizeof(uint64_t);
	return 0;
}

static ssize_t
atomic_post(struct fid_ep *ep, const struct fi_msg_atomic *msg, struct atomic_call c)
{
	const struct fi_ioc *from = ATOMIC_ONE(msg->msg_iov, msg->iov_count);
	const struct fi_rma_ioc *at = ATOMIC_ONE(msg->rma_iov, msg->rma_iov_count);
	struct iovec iov = {.iov_len = sizeof(uint64_t)};
	struct ofi_op_args args = {.type = OFI_ATOMIC, .call = c.call, .flags = c.flags};
	struct fi_atomic_attr attr;
	int rc = san_ofi_msg_query_atomic(NULL, msg->datatype, msg->op, &attr, c.kind);

	if (rc != 0)
		return rc;
	if (from == NULL || at == NULL || (c.kind != 0 && c.result == NULL) ||
	    (c.kind == FI_COMPARE_ATOMIC && c.compare == NULL))
		return -FI_EINVAL;
	args.atomic = msg->op == FI_SUM ? OFI_FETCH_ADD : OFI_CMP_SWAP;
	args.to = msg->addr;
	args.addr = at->addr;
	args.key = at->key;
	args.context = msg->context;
	memcpy(&args.operand, from->addr, sizeof(args.operand));
	if (c.kind == FI_COMPARE_ATOMIC)
		memcpy(&args.compare, c.compare->addr, sizeof(args.compare));
	if (c.kind != 0) {
		iov.iov_base = c.result->addr;
		args.iov = &iov;
		args.count = 1;
	}
	return msg_post(ep, &args);
}

/** With these members of struct atomic_call. */
#define ATOMIC_POST(ep, msg, ...) atomic_post(ep, msg, (struct atomic_call){__VA_ARGS__})

/* ---- without a result ---- */

static ssize_t
atomic_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
{
	return ATOMIC_POST(ep, msg, .call = OFI_CALL_MSG, .flags = flags);
}

static ssize_t
atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t to,
	      uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct fi_rma_ioc at = {addr, 1, key};
	const struct fi_msg_atomic msg = {iov, desc, count, to, &at, 1, datatype, op, context, 0};

	return ATOMIC_POST(ep, &msg, 0);
}

static ssize_t
atomic_write(struct fid_ep *ep, const void *buf, size_t count, void *desc, fi_addr_t to,
	     uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	return atomic_writev(ep, ATOMIC_IN(buf, count), &desc, 1, to, addr, key, datatype, op,
			     context);
}

static ssize_t
atomic_inject(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t to, uint64_t addr,
	      uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	const struct fi_rma_ioc at = {addr, 1, key};
	const struct fi_msg_atomic msg = {
		ATOMIC_IN(buf, count), NULL, 1, to, &at, 1, datatype, op, NULL, 0};

	return ATOMIC_POST(ep, &msg, .call = OFI_CALL_INJECT);
}

/* ---- with the old value ---- */

static ssize_t
atomic_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
		    void **result_desc, size_t nb_result, uint64_t flags)
{
	return ATOMIC_POST(ep, msg, .kind = FI_FETCH_ATOMIC, .call = OFI_CALL_MSG, .flags = flags,
			   .result = ATOMIC_ONE(resultv, nb_result));
}

static ssize_t
atomic_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
		  struct fi_ioc *resultv, void **result_desc, size_t nb_result, fi_addr_t to,
		  uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
		  void *context)
{
	const struct fi_rma_ioc at = {addr, 1, key};
	const struct fi_msg_atomic msg = {iov, desc, count, to, &at, 1, datatype, op, context, 0};

	return ATOMIC_POST(ep, &msg, .kind = FI_FETCH_ATOMIC,
			   .result = ATOMIC_ONE(resultv, nb_result));
}

static ssize_t
atomic_readwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
		 void *result_desc, fi_addr_t to, uint64_t addr, uint64_t key,
		 enum fi_datatype datatype, enum fi_op op, void *context)
{
	return atomic_readwritev(ep, ATOMIC_IN(buf, count), &desc, 1, ATOMIC_IN(result, count),
				 &result_desc, 1, to, addr, key, datatype, op, context);
}

/* ---- with a comparison ---- */

static ssize_t
atomic_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
		    const struct fi_ioc *comparev, void **compare_desc, size_t nb_compare,
		    struct fi_ioc *resultv, void **result_desc, size_t nb_result, uint64_t flags)
{
	return ATOMIC_POST(ep, msg, .kind = FI_COMPARE_ATOMIC, .call = OFI_CALL_MSG, .flags = flags,
			   .compare = ATOMIC_ONE(comparev, nb_compare),
			   .result = ATOMIC_ONE(resultv, nb_result));
}

static ssize_t
atomic_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
		  const struct fi_ioc *comparev, void **compare_desc, size_t nb_compare,
		  struct fi_ioc *resultv, void **result_desc, size_t nb_result, fi_addr_t to,
		  uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
		  void *context)
{
	const struct fi_rma_ioc at = {addr, 1, key};
	const struct fi_msg_atomic msg = {iov, desc, count, to, &at, 1, datatype, op, context, 0};

	return ATOMIC_POST(ep, &msg, .kind = FI_COMPARE_ATOMIC,
			   .compare = ATOMIC_ONE(comparev, nb_compare),
			   .result = ATOMIC_ONE(resultv, nb_result));
}

static ssize_t
atomic_compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc, const void *compare,
		 void *compare_desc, void *result, void *result_desc, fi_addr_t to, uint64_t addr,
		 uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	return atomic_compwritev(ep, ATOMIC_IN(buf, count), &desc, 1, ATOMIC_IN(compare, count),
				 &compare_desc, 1, ATOMIC_IN(result, count), &result_desc, 1, to,
				 addr, key, datatype, op, context);
}

/* ---- what is valid ---- */

static int
atomic_is_valid(enum fi_datatype datatype, enum fi_op op, size_t *count, uint64_t kind)
{
	struct fi_atomic_attr attr = {0};
	int rc = san_ofi_msg_query_atomic(NULL, datatype, op, &attr, kind);

	if (rc == 0)
		*count = attr.count;
	return rc;
}

static int
atomic_writevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return atomic_is_valid(datatype, op, count, 0);
}

static int
atomic_readwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return atomic_is_valid(datatype, op, count, FI_FETCH_ATOMIC);
}

static int
atomic_compwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return atomic_is_valid(datatype, op, count, FI_COMPARE_ATOMIC);
}

struct fi_ops_atomic san_ofi_msg_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = atomic_writevalid,
	.readwritevalid = atomic_readwritevalid,
	.compwritevalid = atomic_compwritevalid,
};

/* ---- receives that endpoints share ---- */

static int
srx_close(struct fid *fid)
{
	struct ofi_rxq *q = container_of(fid, struct ofi_rxq, fid.fid);
	OFI_LOCKED;

	if (q->refs != 0)
		return -FI_EBUSY;
	san_ofi_rxq_flush(q, NULL);
	if (q->cq != NULL)
		q->cq->wait.refs--;
	q->domain->refs--;
	free(q);
	return 0;
}

static int
srx_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct ofi_rxq *q = container_of(fid, struct ofi_rxq, fid.fid);

	if (bfid->fclass != FI_CLASS_CQ || q->cq != NULL)
		return -FI_EINVAL;
	q->cq = container_of(bfid, struct ofi_cq, fid.fid);
	q->cq->wait.refs++;
	return 0;
}

static int
srx_control(struct fid *fid, int command, void *arg)
{
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops srx_fid_ops = OFI_FID_OPS(srx_close, srx_bind, srx_control);

int
san_ofi_msg_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **out,
		     void *context)
{
	struct ofi_rxq *q = calloc(1, sizeof(*q));
	OFI_LOCKED;

	if (q == NULL)
		return -FI_ENOMEM;
	san_ofi_rxq_init(q, container_of(domain, struct ofi_domain, fid), attr);
	q->fid = (struct fid_ep){
		.fid = {.fclass = FI_CLASS_SRX_CTX, .context = context, .ops = &srx_fid_ops},
		.ops = &san_ofi_rxq_ep_ops,
		.cm = OFI_NO_OPS,
		.msg = &srx_msg_ops,
		.tagged = OFI_NO_OPS,
	};
	q->domain->refs++;
	*out = &q->fid;
	return 0;
}
