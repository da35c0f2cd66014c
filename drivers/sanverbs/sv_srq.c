/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Shared receive queues. Each is a queue pair of librtsan that is never connected: others take its
 * receives (recv_from).
 */

#include "sv_cm.h"

static void
check_limit(struct sv_srq *s)
{
	uint32_t limit = s->limit;

	if (s->nb_posted < limit && atomic_compare_exchange_strong(&s->limit, &limit, 0))
		san_sv_async(s->ibv.context, IBV_EVENT_SRQ_LIMIT_REACHED, s);
}

static int
post(void *arg, const struct rtsan_recv_wr *wr, int nb)
{
	struct sv_srq *s = arg;
	int n;

	s->nb_posted += (uint32_t)nb; /* before they can complete */
	n = rtsan_post_recv(s->rt, wr, nb);
	if (n < nb) {
		s->nb_posted -= (uint32_t)(nb - (n > 0 ? n : 0));
		check_limit(s);
	}
	return n;
}

void
san_sv_srq_taken(struct ibv_srq *srq)
{
	struct sv_srq *s = (struct sv_srq *)srq;

	s->nb_posted--;
	check_limit(s);
}

int
san_sv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sv_srq *s = (struct sv_srq *)srq;
	SAN_LOCKED(&s->lock);

	*bad = wr;
	return san_sv_post_recv_list(post, s, s->max_sge, bad);
}

static void
srq_free(struct sv_srq *s)
{
	rtsan_qp_destroy(s->rt);
	if (s->cq != NULL)
		rtsan_cq_destroy(s->cq);
	free(s);
}

struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	struct sv_device *dev = san_sv_device(pd->context);
	struct rtsan_qp_attr attr = {.sq_depth = 1};
	struct sv_srq *s;
	int rc = -EINVAL;

	SV_ELSE_NEXT(dev, ibv_create_srq, pd, a);
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
	if (!dev->caps.has_recv_from)
		rc = -EOPNOTSUPP;
	else if (a->attr.max_wr != 0 && a->attr.max_wr <= dev->caps.max_wr &&
		 a->attr.max_sge <= dev->caps.max_sge)
		rc = rtsan_cq_create(dev->rt, 1, &s->cq);
	if (rc == 0) {
		attr.send_cq = attr.recv_cq = s->cq;
		attr.rq_depth = a->attr.max_wr;
		rc = rtsan_qp_create(dev->rt, &attr, &s->rt);
	}
	if (rc != 0) {
		srq_free(s);
		san_sv_result(rc, "ibv_create_srq()");
		return NULL;
	}
	s->max_wr = a->attr.max_wr;
	s->max_sge = a->attr.max_sge = dev->caps.max_sge;
	s->ibv.context = pd->context;
	s->ibv.srq_context = a->srq_context;
	s->ibv.pd = pd;
	pthread_mutex_init(&s->lock, NULL);
	return &s->ibv;
}

int
ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	const struct sv_srq *s = (const struct sv_srq *)srq;

	SV_ELSE_NEXT(san_sv_device(srq->context), ibv_query_srq, srq, attr);
	*attr = (struct ibv_srq_attr){
		.max_wr = s->max_wr, .max_sge = s->max_sge, .srq_limit = s->limit};
	return 0;
}

int
ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct sv_srq *s = (struct sv_srq *)srq;

	SV_ELSE_NEXT(san_sv_device(srq->context), ibv_modify_srq, srq, attr, mask);
	if ((mask & IBV_SRQ_MAX_WR) != 0)
		return EOPNOTSUPP;
	if ((mask & IBV_SRQ_LIMIT) == 0)
		return 0;
	if (attr->srq_limit > s->max_wr)
		return EINVAL;
	s->limit = attr->srq_limit;
	check_limit(s);
	return 0;
}

int
ibv_destroy_srq(struct ibv_srq *srq)
{
	struct sv_device *dev = san_sv_device(srq->context);
	struct sv_srq *s = (struct sv_srq *)srq;
	uint32_t nb_qps;

	SV_ELSE_NEXT(dev, ibv_destroy_srq, srq);
	pthread_mutex_lock(&dev->lock);
	nb_qps = s->nb_qps;
	pthread_mutex_unlock(&dev->lock);
	if (nb_qps != 0)
		return EBUSY;
	san_sv_async_forget(srq->context, s);
	SAN_LOCKED(&dev->lock);
	srq_free(s);
	san_sv_mr_retry(dev);
	return 0;
}

/* ---- librdmacm ---- */

int
rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	SV_CM_ELSE_NEXT(rdma_create_srq, id, pd, attr);
	id->srq = ibv_create_srq(pd != NULL ? pd : id->pd, attr);
	return id->srq != NULL ? 0 : -1;
}

void
rdma_destroy_srq(struct rdma_cm_id *id)
{
	SV_CM_ELSE_NEXT(rdma_destroy_srq, id);
	if (ibv_destroy_srq(id->srq) == 0)
		id->srq = NULL;
}
