/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Posting: lists of requests, and the functions of ibv_wr_*(). The bytes of datagrams, and of sends
 * with more elements or inline bytes than librtsan takes, are copied.
 */

#include <arpa/inet.h>

#include "san_spsc.h"
#include "sv_priv.h"

static_assert(sizeof(struct ibv_sge) == sizeof(struct rtsan_sge) &&
		      offsetof(struct ibv_sge, length) == offsetof(struct rtsan_sge, length) &&
		      offsetof(struct ibv_sge, lkey) == offsetof(struct rtsan_sge, lkey),
	      "elements are passed on as they are");

static const enum rtsan_wr_opcode opcodes[] = {
	/* 0: not supported */
	[IBV_WR_RDMA_WRITE] = RTSAN_WR_PUSH,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = RTSAN_WR_PUSH_IMM,
	[IBV_WR_SEND] = RTSAN_WR_SEND,
	[IBV_WR_SEND_WITH_IMM] = RTSAN_WR_SEND_IMM,
	[IBV_WR_RDMA_READ] = RTSAN_WR_PULL,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = RTSAN_WR_CMP_SWAP,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = RTSAN_WR_FETCH_ADD,
};

/* True if it is for datagrams, which have no connection whose state matters. */
static bool
is_datagram(const struct sv_qp *q)
{
	return q->ibv.qp_type == IBV_QPT_UD && q->ibv.state != IBV_QPS_ERR;
}

/* Number of places: one for each request that librtsan holds, and for those of a burst. */
static uint32_t
nb_places(const struct sv_qp *q)
{
	if (q->ibv.qp_type == IBV_QPT_UD)
		return q->sends.nb;
	/* the ring, of create_rt() rounded up, and the lcore hold as many */
	return 2 * san_spsc_size(q->init.cap.max_send_wr + SV_BURST) + SV_BURST;
}

int
san_sv_bounce(struct sv_qp *q, struct rtsan_send_wr *wr, struct rtsan_sge *sge, uint64_t number)
{
	struct sv_device *dev = san_sv_device(q->ibv.context);
	uint64_t length = 0;
	uint8_t *to;
	uint32_t i;
	int rc;

	for (i = 0; i < wr->nb_sge; i++)
		length += wr->sge[i].length;
	if (q->ibv.qp_type == IBV_QPT_RC && wr->nb_sge <= RTSAN_SGE_MAX &&
	    ((wr->flags & RTSAN_WR_INLINE) == 0 || length <= RTSAN_INLINE_MAX))
		return 0;
	if (wr->opcode == RTSAN_WR_PULL || length > SV_MTU)
		return san_sv_refuse(-EINVAL, "a datagram, or what must be copied, is too long");
	if (q->bounce == NULL) {
		rc = rtsan_mr_alloc(dev->rt, (size_t)nb_places(q) * SV_MTU, 0, &q->bounce);
		if (rc != 0)
			return rc;
	}
	to = (uint8_t *)rtsan_mr_addr(q->bounce) + number % nb_places(q) * SV_MTU;
	*sge = (struct rtsan_sge){to, (uint32_t)length, rtsan_mr_lkey(q->bounce)};
	for (i = 0; i < wr->nb_sge; i++) {
		memcpy(to, wr->sge[i].addr, wr->sge[i].length);
		to += wr->sge[i].length;
	}
	wr->sge = sge;
	wr->nb_sge = 1;
	wr->flags &= (uint8_t)~RTSAN_WR_INLINE;
	return 0;
}

/* rtsan_post_send(), with the bytes of some requests copied first. */
static int
post_bounced(struct sv_qp *q, struct rtsan_send_wr *wr, int nb)
{
	uint64_t nb_bounced = q->nb_bounced;
	struct rtsan_send_wr before[SV_BURST];
	struct rtsan_sge sge[SV_BURST];
	int i, n, rc = 0;

	for (i = 0; i < nb && rc == 0; i++) {
		before[i] = wr[i];
		rc = san_sv_bounce(q, &wr[i], &sge[i], nb_bounced);
		nb_bounced += wr[i].sge == &sge[i];
	}
	nb = rc == 0 ? nb : i - 1;
	n = rc == 0 || nb > 0 ? rtsan_post_send(q->rt, wr, nb) : rc;
	for (i = 0; i < nb; i++)
		if (i < n)
			q->nb_bounced += wr[i].sge == &sge[i];
		else
			wr[i] = before[i]; /* it may be posted again */
	return n;
}

/*
 * Post at most SV_BURST requests. What librtsan may not complete is remembered: work that waits for
 * a connection, and work after its end. The number, or -errno.
 */
static int
post_sends(struct sv_qp *q, struct rtsan_send_wr *wr, const struct sv_dest *dests, int nb)
{
	int i, n;

	if (is_datagram(q))
		return san_sv_ud_post_sends(q, wr, dests, nb);
	n = q->ibv.state == IBV_QPS_ERR ? -ENOTCONN : post_bounced(q, wr, nb);
	if (n == -ENOTCONN) {
		q->is_failing = true; /* the peer has gone, and now the program learns of that */
		n = nb;
	} else if (q->link == SV_LINK_UP) {
		return n;
	}
	for (i = 0; i < n; i++)
		san_sv_works_add(&q->early_sends, wr[i].wr_id,
				 wr[i].opcode == RTSAN_WR_PUSH ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
	return n;
}

static int
post_recvs(void *arg, const struct rtsan_recv_wr *wr, int nb)
{
	struct sv_qp *q = arg;
	int i, n, room = (int)q->init.cap.max_recv_wr - (int)q->early_recvs.nb;

	if (is_datagram(q))
		return san_sv_ud_post_recvs(q, wr, nb);
	n = q->ibv.state == IBV_QPS_ERR ? -ENOTCONN : rtsan_post_recv(q->rt, wr, nb);
	if (n == -ENOTCONN) /* the peer has gone, which the program learns when it sends */
		n = nb <= room ? nb : room > 0 ? room :
						 0;
	else if (q->link == SV_LINK_UP)
		return n;
	for (i = 0; i < n; i++)
		san_sv_works_add(&q->early_recvs, wr[i].wr_id, IBV_WC_RECV);
	return n;
}

/* Work posted to a queue pair that has failed completes at once; without its lock. */
static void
complete_failed(struct sv_qp *q)
{
	struct sv_device *dev = san_sv_device(q->ibv.context);

	if (q->ibv.state != IBV_QPS_ERR && !q->is_failing)
		return;
	SAN_LOCKED(&dev->lock);
	san_sv_qp_fail(q, q->ibv.state == IBV_QPS_ERR ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR);
}

/* 0 or an errno. */
static int
convert(const struct sv_qp *q, const struct ibv_send_wr *from, struct rtsan_send_wr *to,
	struct sv_dest *dest)
{
	bool is_atomic = from->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		from->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

	if (from->opcode >= sizeof(opcodes) / sizeof(opcodes[0]) || opcodes[from->opcode] == 0)
		return EOPNOTSUPP;
	if ((uint32_t)from->num_sge > q->init.cap.max_send_sge)
		return EINVAL;
	*to = (struct rtsan_send_wr){
		.wr_id = from->wr_id,
		.opcode = (uint8_t)opcodes[from->opcode],
		.nb_sge = (uint8_t)from->num_sge,
		.imm = ntohl(from->imm_data),
		.sge = (const struct rtsan_sge *)from->sg_list,
		.remote_addr = is_atomic ? from->wr.atomic.remote_addr : from->wr.rdma.remote_addr,
		.rkey = is_atomic ? from->wr.atomic.rkey : from->wr.rdma.rkey,
		.operand = from->wr.atomic.compare_add,
		.swap = from->wr.atomic.swap,
	};
	if (q->init.sq_sig_all || (from->send_flags & IBV_SEND_SIGNALED) != 0)
		to->flags |= RTSAN_WR_SIGNALED;
	if ((from->send_flags & IBV_SEND_INLINE) != 0)
		to->flags |= RTSAN_WR_INLINE;
	if (q->ibv.qp_type == IBV_QPT_UD)
		*dest = (struct sv_dest){from->wr.ud.ah, from->wr.ud.remote_qpn,
					 from->wr.ud.remote_qkey};
	return 0;
}

/* What a post that took *n* returns. 0: go on with the rest, or an errno. */
static int
errno_of(int n)
{
	if (n >= 0)
		return n > 0 ? 0 : ENOMEM;
	return -san_sv_explain(n, "posting");
}

static int
post_send_list(struct sv_qp *q, struct ibv_send_wr **wr)
{
	struct rtsan_send_wr burst[SV_BURST];
	struct sv_dest dests[SV_BURST];
	int rc = 0;
	SAN_LOCKED(&q->lock);

	if (q->ibv.state != IBV_QPS_RTS && q->ibv.state != IBV_QPS_ERR)
		return EINVAL;
	while (rc == 0 && *wr != NULL) {
		struct ibv_send_wr *at = *wr;
		int nb, n, wrong = 0;

		for (nb = 0; nb < SV_BURST && at != NULL; nb++, at = at->next) {
			wrong = convert(q, at, &burst[nb], &dests[nb]);
			if (wrong != 0)
				break;
		}
		if (nb == 0)
			return wrong;
		n = post_sends(q, burst, dests, nb);
		rc = errno_of(n);
		for (; n > 0; n--)
			*wr = (*wr)->next;
	}
	return rc;
}

int
san_sv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct sv_qp *q = (struct sv_qp *)qp;
	int rc;

	*bad = wr;
	rc = post_send_list(q, bad);
	complete_failed(q);
	return rc;
}

int
san_sv_post_recv_list(int (*post)(void *arg, const struct rtsan_recv_wr *wr, int nb), void *arg,
		      uint32_t max_sge, struct ibv_recv_wr **wr)
{
	struct rtsan_recv_wr burst[SV_BURST];
	int rc = 0;

	while (rc == 0 && *wr != NULL) {
		struct ibv_recv_wr *at = *wr;
		int nb, n;

		for (nb = 0; nb < SV_BURST && at != NULL; nb++, at = at->next) {
			if ((uint32_t)at->num_sge > max_sge)
				break;
			burst[nb] = (struct rtsan_recv_wr){
				.wr_id = at->wr_id,
				.sge = (const struct rtsan_sge *)at->sg_list,
				.nb_sge = (uint8_t)at->num_sge,
			};
		}
		n = nb > 0 ? post(arg, burst, nb) : -EINVAL;
		rc = errno_of(n);
		for (; n > 0; n--)
			*wr = (*wr)->next;
	}
	return rc;
}

int
san_sv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sv_qp *q = (struct sv_qp *)qp;
	int rc = EINVAL;

	*bad = wr;
	pthread_mutex_lock(&q->lock);
	if (q->ibv.state != IBV_QPS_RESET && q->ibv.srq == NULL)
		rc = san_sv_post_recv_list(post_recvs, q, q->init.cap.max_recv_sge, bad);
	pthread_mutex_unlock(&q->lock);
	complete_failed(q);
	return rc;
}

/* ---- ibv_wr_*() ---- */

/* Requests are staged until ibv_wr_complete(). If the queue has room for some, these are posted. */

static void
wr_start(struct ibv_qp_ex *ex)
{
	struct sv_qp *q = (struct sv_qp *)ex;

	pthread_mutex_lock(&q->lock);
	q->nb_staged = 0;
	q->staged_rc = 0;
}

static struct rtsan_send_wr *
stage(struct ibv_qp_ex *ex, enum rtsan_wr_opcode opcode)
{
	struct sv_qp *q = (struct sv_qp *)ex;
	struct rtsan_send_wr *wr;

	if (q->nb_staged == q->init.cap.max_send_wr)
		q->staged_rc = ENOMEM;
	else
		q->nb_staged++;
	wr = &q->staged[q->nb_staged - 1];
	*wr = (struct rtsan_send_wr){
		.wr_id = ex->wr_id,
		.opcode = (uint8_t)opcode,
		.sge = &q->staged_sges[(q->nb_staged - 1) * SV_SGES],
	};
	if (q->init.sq_sig_all || (ex->wr_flags & IBV_SEND_SIGNALED) != 0)
		wr->flags |= RTSAN_WR_SIGNALED;
	return wr;
}

static struct rtsan_send_wr *
stage_remote(struct ibv_qp_ex *ex, enum rtsan_wr_opcode opcode, uint32_t rkey, uint64_t addr)
{
	struct rtsan_send_wr *wr = stage(ex, opcode);

	wr->rkey = rkey;
	wr->remote_addr = addr;
	return wr;
}

static void
wr_send(struct ibv_qp_ex *ex)
{
	stage(ex, RTSAN_WR_SEND);
}

static void
wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	stage(ex, RTSAN_WR_SEND_IMM)->imm = ntohl(imm);
}

static void
wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	stage_remote(ex, RTSAN_WR_PUSH, rkey, addr);
}

static void
wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	stage_remote(ex, RTSAN_WR_PUSH_IMM, rkey, addr)->imm = ntohl(imm);
}

static void
wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	stage_remote(ex, RTSAN_WR_PULL, rkey, addr);
}

static void
wr_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
	stage_remote(ex, RTSAN_WR_FETCH_ADD, rkey, addr)->operand = add;
}

static void
wr_cmp_swap(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
	struct rtsan_send_wr *wr = stage_remote(ex, RTSAN_WR_CMP_SWAP, rkey, addr);

	wr->operand = compare;
	wr->swap = swap;
}

static void
wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct sv_qp *q = (struct sv_qp *)ex;

	q->staged_dests[q->nb_staged - 1] = (struct sv_dest){ah, qpn, qkey};
}

static void
wr_set_sge_list(struct ibv_qp_ex *ex, size_t nb, const struct ibv_sge *list)
{
	struct sv_qp *q = (struct sv_qp *)ex;
	struct rtsan_send_wr *wr = &q->staged[q->nb_staged - 1];

	if (nb > q->init.cap.max_send_sge) {
		q->staged_rc = EINVAL;
		return;
	}
	memcpy((void *)wr->sge, list, nb * sizeof(*list));
	wr->nb_sge = (uint8_t)nb;
}

static void
wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	wr_set_sge_list(ex, 1, &(struct ibv_sge){.addr = addr, .length = length, .lkey = lkey});
}

/* The bytes are copied now: the program may change them before ibv_wr_complete(). */
static void
wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t nb, const struct ibv_data_buf *list)
{
	struct sv_qp *q = (struct sv_qp *)ex;
	uint8_t *to = &q->staged_bytes[(q->nb_staged - 1) * SV_INLINE];
	struct rtsan_send_wr *wr = &q->staged[q->nb_staged - 1];
	size_t i, length = 0;

	for (i = 0; i < nb; i++) {
		if (list[i].length > SV_INLINE - length) {
			q->staged_rc = EINVAL;
			return;
		}
		memcpy(to + length, list[i].addr, list[i].length);
		length += list[i].length;
	}
	*(struct rtsan_sge *)wr->sge = (struct rtsan_sge){.addr = to, .length = (uint32_t)length};
	wr->nb_sge = 1;
	wr->flags |= RTSAN_WR_INLINE;
}

static void
wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	wr_set_inline_data_list(ex, 1, &(struct ibv_data_buf){.addr = addr, .length = length});
}

static void
wr_abort(struct ibv_qp_ex *ex)
{
	pthread_mutex_unlock(&((struct sv_qp *)ex)->lock);
}

static int
wr_complete(struct ibv_qp_ex *ex)
{
	struct sv_qp *q = (struct sv_qp *)ex;
	int i, n, nb = (int)q->nb_staged, rc = q->staged_rc;

	if (rc == 0 && q->ibv.state != IBV_QPS_RTS && q->ibv.state != IBV_QPS_ERR)
		rc = EINVAL;
	for (i = 0; rc == 0 && i < nb; i += n) {
		n = nb - i < SV_BURST ? nb - i : SV_BURST;
		n = post_sends(q, &q->staged[i], &q->staged_dests[i], n);
		rc = errno_of(n);
	}
	pthread_mutex_unlock(&q->lock);
	complete_failed(q);
	return rc;
}

int
san_sv_wr_init(struct sv_qp *q)
{
	uint32_t depth = q->init.cap.max_send_wr != 0 ? q->init.cap.max_send_wr : 1;

	q->init.cap.max_send_wr = depth;
	q->staged = calloc(depth, sizeof(*q->staged));
	q->staged_sges = calloc(depth * SV_SGES, sizeof(*q->staged_sges));
	q->staged_bytes = calloc(depth, SV_INLINE);
	q->staged_dests = calloc(depth, sizeof(*q->staged_dests));
	q->ex.wr_start = wr_start;
	q->ex.wr_send = wr_send;
	q->ex.wr_send_imm = wr_send_imm;
	q->ex.wr_rdma_write = wr_rdma_write;
	q->ex.wr_rdma_write_imm = wr_rdma_write_imm;
	q->ex.wr_rdma_read = wr_rdma_read;
	q->ex.wr_atomic_fetch_add = wr_fetch_add;
	q->ex.wr_atomic_cmp_swp = wr_cmp_swap;
	q->ex.wr_set_ud_addr = wr_set_ud_addr;
	q->ex.wr_set_sge = wr_set_sge;
	q->ex.wr_set_sge_list = wr_set_sge_list;
	q->ex.wr_set_inline_data = wr_set_inline_data;
	q->ex.wr_set_inline_data_list = wr_set_inline_data_list;
	q->ex.wr_complete = wr_complete;
	q->ex.wr_abort = wr_abort;
	return q->staged != NULL && q->staged_sges != NULL && q->staged_bytes != NULL &&
			q->staged_dests != NULL ?
		0 :
		-ENOMEM;
}
