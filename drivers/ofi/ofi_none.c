/* SPDX-License-Identifier: BSD-3-Clause */

/* Calls that endpoints of this type lack: libfabric calls them without a check. */

#include "ofi_priv.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

int
san_ofi_none_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

int
san_ofi_none_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

int
san_ofi_none_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	return -FI_ENOSYS;
}

/* ---- contexts of endpoints ---- */

int
san_ofi_none_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **ep,
		    void *context)
{
	return -FI_ENOSYS;
}

int
san_ofi_none_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **ep,
		    void *context)
{
	return -FI_ENOSYS;
}

ssize_t
san_ofi_none_size_left(struct fid_ep *ep)
{
	return -FI_ENOSYS;
}

/* ---- connections ---- */

static int
none_setname(fid_t fid, void *addr, size_t addrlen)
{
	return -FI_ENOSYS;
}

static int
none_getname(fid_t fid, void *addr, size_t *addrlen)
{
	return -FI_ENOSYS;
}

int
san_ofi_none_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return -FI_ENOSYS;
}

int
san_ofi_none_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

int
san_ofi_none_listen(struct fid_pep *pep)
{
	return -FI_ENOSYS;
}

int
san_ofi_none_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

int
san_ofi_none_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

int
san_ofi_none_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return -FI_ENOSYS;
}

struct fi_ops_cm san_ofi_none_cm = {
	.size = sizeof(struct fi_ops_cm),
	.setname = none_setname,
	.getname = none_getname,
	.getpeer = san_ofi_none_getpeer,
	.connect = san_ofi_none_connect,
	.listen = san_ofi_none_listen,
	.accept = san_ofi_none_accept,
	.reject = san_ofi_none_reject,
	.shutdown = san_ofi_none_shutdown,
};

/* ---- tagged messages ---- */

static ssize_t
none_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t addr, uint64_t tag,
	   uint64_t ignore, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t
none_trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t addr,
	    uint64_t tag, uint64_t ignore, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t
none_tmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	return -FI_ENOSYS;
}

static ssize_t
none_tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t addr, uint64_t tag,
	   void *context)
{
	return -FI_ENOSYS;
}

static ssize_t
none_tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t addr,
	    uint64_t tag, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t
none_tinject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t addr, uint64_t tag)
{
	return -FI_ENOSYS;
}

static ssize_t
none_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	       fi_addr_t addr, uint64_t tag, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t
none_tinjectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t addr,
		 uint64_t tag)
{
	return -FI_ENOSYS;
}

struct fi_ops_tagged san_ofi_none_tagged = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = none_trecv,
	.recvv = none_trecvv,
	.recvmsg = none_tmsg,
	.send = none_tsend,
	.sendv = none_tsendv,
	.sendmsg = none_tmsg,
	.inject = none_tinject,
	.senddata = none_tsenddata,
	.injectdata = none_tinjectdata,
};
