/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Protection domains and regions.
 */

#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "sv_priv.h"

/* ---- domains ---- */

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd;

	SV_ELSE_NEXT(san_sv_device(context), ibv_alloc_pd, context);
	pd = calloc(1, sizeof(*pd));
	if (pd != NULL)
		pd->context = context;
	return pd;
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	SV_ELSE_NEXT(san_sv_device(pd->context), ibv_dealloc_pd, pd);
	free(pd);
	return 0;
}

/* ---- regions ---- */

static int
register_memory(struct sv_device *dev, void *addr, size_t length, unsigned int access,
		struct rtsan_mr **mr)
{
	uint32_t rights = ((access & IBV_ACCESS_REMOTE_WRITE) != 0 ? RTSAN_REMOTE_PUSH : 0) |
		((access & IBV_ACCESS_REMOTE_READ) != 0 ? RTSAN_REMOTE_PULL : 0) |
		((access & IBV_ACCESS_REMOTE_ATOMIC) != 0 ? RTSAN_REMOTE_ATOMIC : 0);
	uintptr_t in_page = (uintptr_t)addr % (uintptr_t)getpagesize();
	bool is_written = (access & IBV_ACCESS_LOCAL_WRITE) != 0;

	if (length == 0 ||
	    (!is_written && (rights & (RTSAN_REMOTE_PUSH | RTSAN_REMOTE_ATOMIC)) != 0))
		return san_sv_refuse(-EINVAL, "no bytes, or only peers write");
	if (is_written &&
	    madvise((char *)addr - in_page, length + in_page, MADV_POPULATE_WRITE) != 0)
		return san_sv_refuse(-EFAULT, "not mapped, or not writable");
	return rtsan_mr_reg(dev->rt, addr, length, rights, mr);
}

/* *access* has the flags that are known: the declaration is that of the functions without iova. */
struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	const unsigned int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_OPTIONAL_RANGE;
	struct sv_device *dev = san_sv_device(pd->context);
	struct sv_mr *mr;
	int rc;

	SV_ELSE_NEXT(dev, ibv_reg_mr_iova2, pd, addr, length, iova, access);
	if ((access & ~known) != 0 || iova != (uintptr_t)addr) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return NULL;
	rc = register_memory(dev, addr, length, access, &mr->rt);
	if (rc != 0) {
		free(mr);
		san_sv_result(rc, "ibv_reg_mr()");
		return NULL;
	}
	mr->ibv = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.lkey = rtsan_mr_lkey(mr->rt),
		.rkey = rtsan_mr_rkey(mr->rt),
	};
	return &mr->ibv;
}

struct ibv_mr *
ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	SV_ELSE_NEXT(san_sv_device(pd->context), ibv_reg_mr_iova, pd, addr, length, iova, access);
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	SV_ELSE_NEXT(san_sv_device(pd->context), ibv_reg_mr, pd, addr, length, access);
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

void
san_sv_mr_retry(struct sv_device *dev)
{
	struct sv_mr *mr, *next;

	for (mr = LIST_FIRST(&dev->waiting_mrs); mr != NULL; mr = next) {
		next = LIST_NEXT(mr, link);
		if (rtsan_mr_dereg(mr->rt) != -EBUSY) {
			LIST_REMOVE(mr, link);
			free(mr);
		}
	}
}

/* Programs deregister memory of receives before they destroy the queue pair that has them. */
int
ibv_dereg_mr(struct ibv_mr *ibmr)
{
	struct sv_device *dev = san_sv_device(ibmr->context);
	struct sv_mr *mr = (struct sv_mr *)ibmr;
	int rc;

	SV_ELSE_NEXT(dev, ibv_dereg_mr, ibmr);
	rc = rtsan_mr_dereg(mr->rt);
	if (rc == -EBUSY) {
		SAN_LOCKED(&dev->lock);
		LIST_INSERT_HEAD(&dev->waiting_mrs, mr, link);
		return 0;
	}
	free(mr); /* also if the daemon has ended */
	return -san_sv_explain(rc, "ibv_dereg_mr()");
}

/*
 * A daemon cannot map huge pages that other processes may share. A program that gets none takes
 * other memory, as UCX does.
 */
int
shmget(key_t key, size_t size, int flags)
{
	const struct sv_device *dev;
	bool is_for_daemon = false;
	int i;

	for (i = 0; (flags & SHM_HUGETLB) != 0 && (dev = san_sv_device_at(i)) != NULL; i++)
		is_for_daemon |= !dev->caps.has_mr_reg;
	SV_ELSE_NEXT(is_for_daemon, shmget, key, size, flags);
	errno = ENOMEM;
	return -1;
}
