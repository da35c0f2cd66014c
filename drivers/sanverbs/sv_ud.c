/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Datagrams (UD). (RDMA-4)
 *
 * DESIGN NOTES
 *
 * A datagram goes over a connection of librtsan, a flow. The first one to a queue pair makes it,
 * and only that side uses it: the number of its peer is not proved. All flows of a queue pair take
 * the receives of its own queue pair of librtsan, which is never connected. The request to connect
 * names the Q_Key, so that no datagram needs a header.
 *
 * A send succeeds, whatever happens to it. It is dropped if the destination does not exist, has
 * another Q_Key, or posts no receive within a millisecond, and if there is no memory or connection
 * for it. Its bytes are copied: a program may use them again when a later send has completed, which
 * may be on another flow. The 40 bytes in front of received data get the addresses when the
 * completion is taken. A datagram to a group goes to each member by a flow of its own.
 */

#include <arpa/inet.h>
#include <unistd.h>

#include "sv_priv.h"

#define GRH_LEN   ((uint32_t)sizeof(struct ibv_grh))
#define FLOWS_MAX 1024 /* of a queue pair */
#define DRAIN_MS  200  /* that the datagrams of a queue pair have to arrive when it ends */

/** Parameters of the private data, big endian. */
struct ud_hello {
	union ibv_gid mgid; /**< group of *dest* that its datagrams are for, or 0 */
	uint32_t dest, src; /**< numbers of queue pairs */
	uint32_t qkey;      /**< of *dest* */
	uint32_t reserved;
};
static_assert(sizeof(struct ud_hello) != SV_HELLO_LEN, "told from requests of RC by length");

/* ---- posted work: librtsan's wr_id is its place here, because one may be dropped ---- */

static int
slots_init(struct sv_slots *s, uint32_t nb)
{
	s->nb = nb != 0 ? nb : 1;
	s->slot = calloc(s->nb, sizeof(*s->slot));
	pthread_mutex_init(&s->lock, NULL);
	return s->slot != NULL ? 0 : -ENOMEM;
}

int
san_sv_ud_init(struct sv_qp *q)
{
	int rc = slots_init(&q->sends, 2 * q->init.cap.max_send_wr + SV_BURST + SV_MEMBERS);

	return rc == 0 ? slots_init(&q->recvs, q->init.cap.max_recv_wr) : rc;
}

/* The place; -1: all are in use. */
static int
slot_take(struct sv_slots *s, uint64_t wr_id, const void *of, bool is_signaled)
{
	uint32_t i;
	SAN_LOCKED(&s->lock);

	for (i = 0; i < s->nb; i++) {
		uint32_t at = (s->next + i) % s->nb;

		if (s->slot[at].is_used)
			continue;
		s->next = at + 1;
		s->slot[at] = (struct sv_slot){wr_id, of, is_signaled, true};
		return (int)at;
	}
	return -1;
}

static struct sv_slot
slot_give(struct sv_slots *s, uint64_t at)
{
	SAN_LOCKED(&s->lock);

	s->slot[at].is_used = false;
	return s->slot[at];
}

/* ---- flows ---- */

static struct sv_flow *
flow_create(struct sv_qp *q, const struct sv_target *to, int *rc)
{
	struct sv_flow *f = q->nb_flows < FLOWS_MAX ? calloc(1, sizeof(*f)) : NULL;

	*rc = -ENOMEM;
	if (f == NULL)
		return NULL;
	f->end.q = q;
	f->to = *to;
	*rc = san_sv_rt_create(q, &f->end, q->init.cap.max_send_wr, 1, q->rt, &f->rt);
	if (*rc != 0) {
		free(f);
		return NULL;
	}
	LIST_INSERT_HEAD(&q->flows, f, link);
	q->nb_flows++;
	return f;
}

/* With the lock of *q*. What has arrived is reported, and its sends, which are dropped. */
static void
flow_end(struct sv_qp *q, struct sv_flow *f)
{
	struct sv_works dropped = {0};
	uint32_t i;

	san_sv_cqs_lock(q);
	san_sv_cq_move((struct sv_cq *)q->ibv.send_cq);
	san_sv_cq_move((struct sv_cq *)q->ibv.recv_cq);
	rtsan_qp_destroy(f->rt);
	for (i = 0; i < q->sends.nb; i++) {
		struct sv_slot *s = &q->sends.slot[(q->sends.next + i) % q->sends.nb];

		if (!s->is_used || s->of != f)
			continue;
		slot_give(&q->sends, (uint64_t)(s - q->sends.slot));
		if (s->is_signaled)
			san_sv_works_add(&dropped, s->wr_id, IBV_WC_SEND);
	}
	san_sv_complete(q->ibv.send_cq, q, &dropped, IBV_WC_SUCCESS);
	free(dropped.list);
	san_sv_cqs_unlock(q);
	LIST_REMOVE(f, link);
	q->nb_flows--;
	free(f);
}

/* A flow to there; NULL: none can be made. *rc*: why, or why there is no way. */
static struct sv_flow *
flow_to(struct sv_qp *q, const struct sv_target *to, int *rc)
{
	struct ud_hello hello = {to->mgid, htonl(to->qpn), htonl(q->ibv.qp_num), htonl(to->qkey)};
	struct rtsan_conn_param param = {
		.rnr_ms = 1, .private_data = &hello, .private_len = sizeof(hello)};
	struct sv_flow *f;

	LIST_FOREACH(f, &q->flows, link)
		if (f->is_ours && memcmp(&f->to, to, sizeof(*to)) == 0)
			return f;
	f = flow_create(q, to, rc);
	if (f == NULL)
		return NULL;
	f->is_ours = true;
	*rc = san_sv_connect(f->rt, &to->gid, san_sv_service(to->qpn >> SV_QP_BITS), &param);
	return f;
}

int
san_sv_ud_ask(struct sv_qp *q, const union ibv_gid *gid, uint64_t service,
	      const struct rtsan_conn_param *param)
{
	const struct sv_target to = {.gid = *gid};
	struct sv_flow *f;
	int rc;
	SAN_LOCKED(&q->lock);

	f = flow_create(q, &to, &rc);
	if (f == NULL)
		return rc;
	f->is_question = true;
	rc = san_sv_connect(f->rt, gid, service, param);
	if (rc != 0)
		flow_end(q, f);
	return rc;
}

bool
san_sv_ud_is_asking(struct sv_qp *q)
{
	const struct sv_flow *f;
	SAN_LOCKED(&q->lock);

	LIST_FOREACH(f, &q->flows, link)
		if (f->is_question)
			return true;
	return false;
}

/* True if *q* is one for datagrams, of that group if one is named. */
static bool
is_there(struct sv_qp *q, const union ibv_gid *mgid)
{
	const struct sv_group *g = san_sv_group_find(q, mgid);

	return q->ibv.qp_type == IBV_QPT_UD && (g != NULL ? g->is_member : !san_sv_is_group(mgid));
}

void
san_sv_ud_request(struct sv_device *dev, const struct rtsan_event *ev)
{
	const struct ud_hello *h = (const struct ud_hello *)ev->private_data;
	struct rtsan_conn_param param = {.rnr_ms = 1};
	struct sv_target from = {0};
	struct sv_qp *q = NULL;
	struct sv_flow *f = NULL;
	bool exists = false;
	int rc;

	if (ev->private_len == sizeof(*h))
		q = san_sv_qp_find(dev, ntohl(h->dest));
	if (q != NULL) {
		SAN_LOCKED(&q->lock);
		san_sv_gid(ev->peer, &from.gid);
		from.mgid = h->mgid;
		from.qpn = ntohl(h->src);
		exists = is_there(q, &h->mgid);
		if (exists && q->attr.qkey == ntohl(h->qkey) && q->nb_flows < FLOWS_MAX / 2 &&
		    (q->ibv.state == IBV_QPS_RTR || q->ibv.state == IBV_QPS_RTS))
			f = flow_create(q, &from, &rc);
		if (f != NULL && rtsan_accept(dev->rt, ev->request, f->rt, &param) == 0)
			return;
		if (f != NULL)
			flow_end(q, f);
	}
	rtsan_reject(dev->rt, ev->request, "", exists); /* a byte: it may be asked again */
}

void
san_sv_ud_event(struct sv_end *end, const struct rtsan_event *ev)
{
	static const struct rtsan_event refused = {
		.type = RTSAN_EV_REJECTED, .reason = RTSAN_R_REFUSED};
	struct sv_flow *f = (struct sv_flow *)end;
	struct sv_qp *q = end->q;
	SAN_LOCKED(&q->lock);

	f->is_up = ev->type == RTSAN_EV_ESTABLISHED;
	if (f->is_question && q->id != NULL)
		san_sv_cm_qp_event(q, f->is_up ? &refused : ev); /* nobody may accept it */
	else if (ev->type == RTSAN_EV_REJECTED && ev->private_len == 0 &&
		 (ev->reason == RTSAN_R_REFUSED || ev->reason == RTSAN_R_NO_LISTENER))
		san_sv_group_forget(q, &f->to);
	if (f->is_question || !f->is_up)
		flow_end(q, f);
}

void
san_sv_ud_leave(struct sv_qp *q, const union ibv_gid *mgid)
{
	struct sv_flow *f, *next;

	for (f = LIST_FIRST(&q->flows); f != NULL; f = next) {
		next = LIST_NEXT(f, link);
		if (!f->is_ours && memcmp(&f->to.mgid, mgid, sizeof(*mgid)) == 0)
			flow_end(q, f);
	}
}

void
san_sv_ud_drain(struct sv_device *dev, struct sv_qp *q)
{
	uint32_t i, ms, nb_used;

	for (ms = 0; ms < DRAIN_MS && q->ibv.qp_type == IBV_QPT_UD; ms++) {
		pthread_mutex_lock(&q->lock);
		san_sv_cqs_lock(q);
		san_sv_cq_move((struct sv_cq *)q->ibv.send_cq);
		san_sv_cqs_unlock(q);
		for (i = nb_used = 0; i < q->sends.nb; i++)
			nb_used += q->sends.slot[i].is_used;
		pthread_mutex_unlock(&q->lock);
		if (nb_used == 0 || dev->has_failed)
			return;
		pthread_mutex_unlock(&dev->lock);
		usleep(1000);
		pthread_mutex_lock(&dev->lock);
	}
}

void
san_sv_ud_end(struct sv_qp *q)
{
	static const struct rtsan_event ended = {.type = RTSAN_EV_UNREACHABLE};
	struct sv_flow *f;
	uint32_t i;

	while ((f = LIST_FIRST(&q->flows)) != NULL) {
		if (f->is_question && q->id != NULL)
			san_sv_cm_qp_event(q, &ended);
		flow_end(q, f);
	}
	for (i = 0; i < q->recvs.nb; i++) {
		struct sv_slot *s = &q->recvs.slot[(q->recvs.next + i) % q->recvs.nb];

		if (s->is_used)
			san_sv_works_add(&q->early_recvs, s->wr_id, IBV_WC_RECV);
		s->is_used = false;
	}
}

/* ---- work ---- */

/* Complete a send that is dropped. With the lock of *q*. */
static void
complete_now(struct sv_qp *q, uint64_t wr_id)
{
	struct sv_works works = {0};
	SAN_LOCKED(&((struct sv_cq *)q->ibv.send_cq)->lock);

	san_sv_works_add(&works, wr_id, IBV_WC_SEND);
	san_sv_complete(q->ibv.send_cq, q, &works, IBV_WC_SUCCESS);
	free(works.list);
}

/*
 * True if datagrams wait for flows in all places but those that the program's own requests need:
 * members may not be there.
 */
static bool
is_waiting_full(struct sv_qp *q)
{
	uint32_t i, nb = q->init.cap.max_send_wr;
	SAN_LOCKED(&q->sends.lock);

	for (i = 0; i < q->sends.nb; i++)
		nb += q->sends.slot[i].is_used &&
			!((const struct sv_flow *)q->sends.slot[i].of)->is_up;
	return nb >= q->sends.nb;
}

/*
 * 1: it is under way, and completes with its flow; 0: it is dropped, or is to a member that may not
 * be there; -errno: it is malformed.
 */
static int
send_to(struct sv_qp *q, const struct rtsan_send_wr *wr, const struct sv_target *to,
	bool is_signaled)
{
	bool is_grouped = san_sv_is_group(&to->mgid);
	struct rtsan_send_wr own = *wr;
	struct rtsan_sge sge;
	int rc = 0, n = 0, at = -1;
	struct sv_flow *f = flow_to(q, to, &rc);
	bool is_sure = f != NULL && (f->is_up || !is_grouped);

	if (f != NULL && (is_sure || !is_waiting_full(q)))
		at = slot_take(&q->sends, wr->wr_id, f, is_signaled && is_sure);
	if (at >= 0) {
		own.wr_id = (uint64_t)at;
		own.flags |= RTSAN_WR_SIGNALED; /* the place is free when it completes */
		n = san_sv_bounce(q, &own, &sge, (uint32_t)at);
		if (n == 0)
			n = rtsan_post_send(f->rt, &own, 1);
		if (n != 1)
			slot_give(&q->sends, (uint64_t)at);
	}
	if (f != NULL && rc != 0) { /* there is no way: drops what is posted */
		san_sv_group_forget(q, to);
		flow_end(q, f);
	}
	return n == -ENOTCONN || (n > 0 && !is_sure) ? 0 : n;
}

/* The same: to each member of the group; from the end on, because one may be forgotten. */
static int
send_to_group(struct sv_qp *q, const struct rtsan_send_wr *wr, struct sv_target *to,
	      bool is_signaled)
{
	const struct sv_group *g = san_sv_group_get(q, &to->mgid);
	uint32_t i = g != NULL ? g->nb_members : 0;
	int n, nb = 0;

	while (i-- > 0) {
		to->gid = g->members[i].gid;
		to->qpn = g->members[i].qpn;
		n = send_to(q, wr, to, is_signaled && nb == 0);
		if (n < 0)
			return n;
		nb += n;
	}
	return nb != 0;
}

/* 1, or -errno: it is malformed. */
static int
send_one(struct sv_qp *q, const struct rtsan_send_wr *wr, const struct sv_dest *d)
{
	const union ibv_gid *gid = &((const struct sv_ah *)d->ah)->dgid;
	bool is_signaled = (wr->flags & RTSAN_WR_SIGNALED) != 0;
	struct sv_target to = {.qkey = d->qkey >> 31 != 0 ? q->attr.qkey : d->qkey};
	int n;

	if (wr->opcode != RTSAN_WR_SEND && wr->opcode != RTSAN_WR_SEND_IMM)
		return san_sv_refuse(-EINVAL, "datagrams are only sent");
	if (san_sv_is_group(gid)) {
		to.mgid = *gid;
		n = send_to_group(q, wr, &to, is_signaled);
	} else {
		to.gid = *gid;
		to.qpn = d->qpn;
		n = send_to(q, wr, &to, is_signaled);
	}
	if (n == 0 && is_signaled)
		complete_now(q, wr->wr_id);
	return n < 0 ? n : 1;
}

int
san_sv_ud_post_sends(struct sv_qp *q, struct rtsan_send_wr *wr, const struct sv_dest *dests,
		     int nb)
{
	int i, n = 1;

	for (i = 0; i < nb && n == 1; i++)
		n = send_one(q, &wr[i], &dests[i]);
	return n == 1 ? nb : i > 1 ? i - 1 :
				     n;
}

static int
post_one(struct sv_qp *q, const struct rtsan_recv_wr *wr)
{
	struct rtsan_sge sge[RTSAN_SGE_MAX];
	struct rtsan_recv_wr own = {.sge = sge, .nb_sge = wr->nb_sge};
	int at, n;

	if (wr->nb_sge == 0 || wr->sge[0].length < GRH_LEN)
		return san_sv_refuse(-EINVAL, "the first element has no room for the GRH");
	memcpy(sge, wr->sge, wr->nb_sge * sizeof(sge[0]));
	sge[0].addr = (uint8_t *)sge[0].addr + GRH_LEN;
	sge[0].length -= GRH_LEN;
	at = slot_take(&q->recvs, wr->wr_id, wr->sge[0].addr, true);
	if (at < 0)
		return 0;
	own.wr_id = (uint64_t)at;
	n = rtsan_post_recv(q->rt, &own, 1);
	if (n != 1)
		slot_give(&q->recvs, (uint64_t)at);
	return n;
}

int
san_sv_ud_post_recvs(struct sv_qp *q, const struct rtsan_recv_wr *wr, int nb)
{
	int i, n = 1;

	for (i = 0; i < nb && n == 1; i++)
		n = post_one(q, &wr[i]);
	return n == 1 ? nb : i > 1 ? i - 1 :
				     n;
}

bool
san_sv_ud_convert(struct sv_end *end, const struct rtsan_wc *from, struct ibv_wc *to)
{
	const struct sv_flow *f = (const struct sv_flow *)end;
	const struct sv_device *dev = san_sv_device(end->q->ibv.context);
	bool is_recv = from->opcode >= RTSAN_WC_RECV;
	struct sv_slot s = slot_give(is_recv ? &end->q->recvs : &end->q->sends, from->wr_id);
	struct ibv_grh grh = {.version_tclass_flow = htonl(6 << 28), .hop_limit = 64};

	to->wr_id = s.wr_id;
	if (!is_recv) {
		to->status = IBV_WC_SUCCESS;
		return s.is_signaled;
	}
	/* a push with an immediate takes a receive, too: as if it had no bytes */
	to->byte_len = GRH_LEN + (from->opcode == RTSAN_WC_RECV ? from->byte_len : 0);
	to->src_qp = f->to.qpn;
	to->wc_flags |= IBV_WC_GRH;
	grh.paylen = htons((uint16_t)from->byte_len);
	grh.sgid = f->to.gid;
	grh.dgid = san_sv_is_group(&f->to.mgid) ? f->to.mgid :
						  dev->gids[san_sv_gid_like(dev, &f->to.gid)];
	if (end->q->ibv.state != IBV_QPS_RESET) /* else the program may have unmapped it */
		memcpy((void *)(uintptr_t)s.of, &grh, sizeof(grh));
	return true;
}

/* ---- addresses ---- */

struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	const struct sv_device *dev = san_sv_device(pd->context);
	struct ibv_ah_attr way = *attr;
	struct sv_ah *ah;

	SV_ELSE_NEXT(dev, ibv_create_ah, pd, attr);
	if (san_sv_way(dev, &way) != 0) {
		errno = EINVAL;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (ah == NULL)
		return NULL;
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->dgid = way.grh.dgid;
	return &ah->ibv;
}

int
ibv_destroy_ah(struct ibv_ah *ah)
{
	SV_ELSE_NEXT(san_sv_device(ah->context), ibv_destroy_ah, ah);
	free(ah);
	return 0;
}

int
ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
		    struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const struct sv_device *dev = san_sv_device(context);

	SV_ELSE_NEXT(dev, ibv_init_ah_from_wc, context, port, wc, grh, attr);
	*attr = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = port,
		.grh = {.dgid = grh->sgid,
			.sgid_index = (uint8_t)san_sv_gid_like(dev, &grh->sgid),
			.hop_limit = 64},
	};
	return 0;
}

struct ibv_ah *
ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;

	SV_ELSE_NEXT(san_sv_device(pd->context), ibv_create_ah_from_wc, pd, wc, grh, port);
	ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr);
	return ibv_create_ah(pd, &attr);
}
