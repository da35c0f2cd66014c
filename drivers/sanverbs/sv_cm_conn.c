/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connections of identifiers, and their queue pairs. (sv_qp.c has those that programs connect
 * themselves.)
 *
 *   active    resolved -> rdma_connect() -> ESTABLISHED, REJECTED or UNREACHABLE
 *   passive   CONNECT_REQUEST -> rdma_accept() -> ESTABLISHED
 *   own       the program created the queue pair and changes its states. At the active side,
 *             CONNECT_RESPONSE -> rdma_establish() or rdma_reject(). librtsan has established the
 *             connection by then: the passive side is ESTABLISHED already, and DISCONNECTED by
 *             the rejection
 *   end       DISCONNECTED at both sides; the queue pair is flushed at the side that disconnects,
 *             and at the other when it does so, too
 */

#include <arpa/inet.h>

#include "sv_cm.h"

#define SERVICE    0x72646d6100ull /* "rdma", and the port space */
#define BACKLOG    4096
#define PORT_TRIES 1000
#define RNR_MS     UINT16_MAX /* no end, as rnr_retry 7 */

/* What rdma-core's REJECTED has as its status. */
#define REJ_NO_RESOURCES 3
#define REJ_NO_SERVICE   8
#define REJ_CONSUMER     28

static LIST_HEAD(, sv_id) ids = LIST_HEAD_INITIALIZER(ids);

static uint64_t
service_of(const struct sv_id *id, __be16 port)
{
	return (SERVICE | (id->id.ps & 0xff)) << 16 | ntohs(port);
}

/* ---- queue pairs ---- */

/* The connection of *q* is that of *id* from now on; with the lock of the device. */
static void
join(struct sv_id *id, struct sv_qp *q)
{
	if (id->q != NULL)
		id->q->id = NULL;
	if (q->id != NULL)
		q->id->q = NULL;
	q->id = id;
	id->q = q;
}

void
san_sv_cm_forget_qp(struct sv_qp *q)
{
	q->id->id.qp = NULL;
	q->id->q = NULL;
}

/* Programs modify their queue pairs to RTR before rdma_accept(), or after it. */
bool
san_sv_cm_has_qp(struct sv_device *dev, const struct sv_qp *q)
{
	const struct sv_id *id;

	if (q->id != NULL)
		return true;
	SAN_LOCKED(&san_sv_cm_lock);
	LIST_FOREACH(id, &ids, link)
		if (id->has_request && id->dev == dev &&
		    id->peer.qp_num == q->attr.dest_qp_num &&
		    memcmp(&id->id.route.addr.addr.ibaddr.dgid, &q->attr.ah_attr.grh.dgid,
			   sizeof(union ibv_gid)) == 0)
			return true;
	return false;
}

/* Create a completion queue with a channel, if the program leaves *used* to us. */
static int
create_cq(struct rdma_cm_id *id, uint32_t depth, struct ibv_comp_channel **channel,
	  struct ibv_cq **cq, struct ibv_cq **used)
{
	if (*used != NULL)
		return 0;
	*channel = ibv_create_comp_channel(id->verbs);
	if (*channel != NULL)
		*cq = ibv_create_cq(id->verbs, depth != 0 ? (int)depth : 1, id, *channel, 0);
	*used = *cq;
	return *cq != NULL ? 0 : -1;
}

static void
destroy_cqs(struct rdma_cm_id *id)
{
	if (id->send_cq != NULL)
		ibv_destroy_cq(id->send_cq);
	if (id->recv_cq != NULL)
		ibv_destroy_cq(id->recv_cq);
	if (id->send_cq_channel != NULL)
		ibv_destroy_comp_channel(id->send_cq_channel);
	if (id->recv_cq_channel != NULL)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	id->send_cq = id->recv_cq = NULL;
	id->send_cq_channel = id->recv_cq_channel = NULL;
}

int
rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = NULL;

	SV_CM_ELSE_NEXT(rdma_create_qp_ex, id, attr);
	if (id->verbs == NULL || id->qp != NULL)
		return san_sv_result(-EINVAL, "rdma_create_qp()");
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr->pd == NULL)
		attr->pd = id->pd;
	attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
	if (create_cq(id, attr->cap.max_send_wr, &id->send_cq_channel, &id->send_cq,
		      &attr->send_cq) == 0 &&
	    create_cq(id, attr->cap.max_recv_wr, &id->recv_cq_channel, &id->recv_cq,
		      &attr->recv_cq) == 0)
		qp = san_sv_create_qp_ex(id->verbs, attr);
	if (qp == NULL) {
		destroy_cqs(id);
		return -1;
	}
	id->qp = qp;
	id->pd = attr->pd;
	SAN_LOCKED(&((struct sv_id *)id)->dev->lock);
	join((struct sv_id *)id, (struct sv_qp *)qp);
	((struct sv_qp *)qp)->attr.port_num = SV_PORT;
	((struct sv_qp *)qp)->attr.qkey = RDMA_UDP_QKEY;
	qp->state = qp->qp_type == IBV_QPT_UD ? IBV_QPS_RTS : IBV_QPS_INIT;
	return 0;
}

int
rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex all = {.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd};
	int rc;

	SV_CM_ELSE_NEXT(rdma_create_qp, id, pd, attr);
	memcpy(&all, attr, sizeof(*attr));
	rc = rdma_create_qp_ex(id, &all);
	attr->cap = all.cap; /* not the completion queues: programs use *attr* again */
	return rc;
}

void
rdma_destroy_qp(struct rdma_cm_id *id)
{
	SV_CM_ELSE_NEXT(rdma_destroy_qp, id);
	ibv_destroy_qp(id->qp);
	id->qp = NULL;
	destroy_cqs(id);
}

/* ---- private data ---- */

/* Find the queue pair of *id* and fill the parameters to send; with the lock of the device. */
static int
fill_param(struct sv_id *id, const struct rdma_conn_param *p, uint8_t buf[RTSAN_PRIVATE_MAX],
	   struct rtsan_conn_param *out)
{
	struct sv_cm_hello *h = (struct sv_cm_hello *)buf;
	struct sv_qp *q = (struct sv_qp *)id->id.qp;
	uint32_t qp_num;

	if (q == NULL && p != NULL)
		q = san_sv_qp_find(id->dev, p->qp_num);
	if (q == NULL || q->ibv.qp_type != id->id.qp_type || q->link == SV_LINK_WAITS ||
	    q->link == SV_LINK_UP)
		return -EINVAL;
	if (san_sv_ud_is_asking(q))
		return san_sv_refuse(-EBUSY, "its queue pair waits for another answer");
	join(id, q);
	qp_num = htonl(q->ibv.qp_num);
	*out = (struct rtsan_conn_param){
		.order = RTSAN_ENDING,
		.rnr_ms = RNR_MS,
		.private_data = buf,
		.private_len = sizeof(*h),
	};
	*h = (struct sv_cm_hello){.port = *san_sv_cm_port(&id->id.route.addr.src_addr)};
	memcpy(h->qp_num, (uint8_t *)&qp_num + 1, 3);
	if (p == NULL)
		return 0;
	if (p->private_data_len > SV_CM_DATA_MAX)
		return -EINVAL;
	h->responder_resources = p->responder_resources;
	h->initiator_depth = p->initiator_depth;
	h->length = p->private_data != NULL ? p->private_data_len : 0;
	if (h->length != 0)
		memcpy(h + 1, p->private_data, h->length);
	out->private_len = (uint16_t)(sizeof(*h) + h->length);
	return 0;
}

struct ibv_ah_attr
san_sv_cm_ah(const struct sv_id *id, const union ibv_gid *to)
{
	const union ibv_gid *from = &id->id.route.addr.addr.ibaddr.sgid;
	int i;

	for (i = id->dev->nb_gids - 1; i > 0; i--)
		if (memcmp(&id->dev->gids[i], from, sizeof(*from)) == 0)
			break;
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = SV_PORT,
		.grh = {.dgid = *to, .sgid_index = (uint8_t)i, .hop_limit = 64},
	};
}

/* Pass on what the peer sent with a request or answer. */
static void
pass_data(struct sv_cm_event *e, const struct rtsan_event *ev)
{
	const struct sv_cm_hello *h = (const struct sv_cm_hello *)ev->private_data;
	struct rdma_conn_param *p = &e->ev.param.conn;
	struct sv_id *id = (struct sv_id *)e->ev.id;

	if (ev->private_len < sizeof(*h) || h->length > ev->private_len - sizeof(*h))
		return;
	/* what the peer may start, we must be able to answer */
	p->responder_resources = h->initiator_depth;
	p->initiator_depth = h->responder_resources;
	p->rnr_retry_count = 7;
	p->qp_num = (uint32_t)(h->qp_num[0] << 16 | h->qp_num[1] << 8 | h->qp_num[2]);
	id->peer = *p;
	memcpy(e->data, h + 1, h->length);
	p->private_data = h->length != 0 ? e->data : NULL;
	p->private_data_len = h->length;
	if (id->id.qp_type == IBV_QPT_UD)
		e->ev.param.ud = (struct rdma_ud_param){
			.private_data = p->private_data,
			.private_data_len = h->length,
			.ah_attr = san_sv_cm_ah(id, &id->id.route.addr.addr.ibaddr.dgid),
			.qp_num = id->peer.qp_num,
			.qkey = RDMA_UDP_QKEY,
		};
}

/* ---- calls ---- */

/* On the device of *id*, or on all if it is bound to none. 0 or -errno. */
static int
listen_at(struct sv_id *id, __be16 port, uint16_t backlog)
{
	struct sv_device *dev;
	int i, rc = 0;

	for (i = 0; (dev = san_sv_device_at(i)) != NULL && rc == 0; i++) {
		if (id->dev != NULL && id->dev != dev)
			continue;
		/* no request is handled before *listeners* has the listener */
		SAN_LOCKED(&dev->lock);
		rc = rtsan_listen(dev->rt, service_of(id, port), 0, backlog, &id->listeners[i]);
	}
	for (i = 0; i < SV_DEVICES && rc != 0; i++) {
		rtsan_listener_destroy(id->listeners[i]);
		id->listeners[i] = NULL;
	}
	return rc;
}

int
rdma_listen(struct rdma_cm_id *cm_id, int backlog)
{
	/* librtsan keeps a part of it for other hosts */
	uint16_t nb = (uint16_t)(2 * (backlog > BACKLOG ? BACKLOG : backlog > 16 ? backlog :
										   16));
	struct sv_id *id = (struct sv_id *)cm_id, any = {0};
	struct sockaddr *src = &cm_id->route.addr.src_addr;
	int i, rc = -EADDRINUSE;

	SV_CM_ELSE_NEXT(rdma_listen, cm_id, backlog);
	if (src->sa_family == 0)
		src->sa_family = AF_INET;
	/* the thread of events runs on each device that listens */
	for (i = 0; i < san_sv_devices() && id->dev == NULL; i++)
		san_sv_cm_bind(&any, san_sv_device_at(i));
	pthread_mutex_lock(&san_sv_cm_lock);
	if (id->link.le_prev == NULL)
		LIST_INSERT_HEAD(&ids, id, link);
	pthread_mutex_unlock(&san_sv_cm_lock);
	if (*san_sv_cm_port(src) != 0)
		return san_sv_result(listen_at(id, *san_sv_cm_port(src), nb), "rdma_listen()");
	for (i = 0; i < PORT_TRIES && rc == -EADDRINUSE; i++) {
		*san_sv_cm_port(src) = san_sv_cm_choose_port();
		rc = listen_at(id, *san_sv_cm_port(src), nb);
	}
	return san_sv_result(rc, "rdma_listen()");
}

int
rdma_connect(struct rdma_cm_id *cm_id, struct rdma_conn_param *p)
{
	const union ibv_gid *gid = &cm_id->route.addr.addr.ibaddr.dgid;
	struct sv_id *id = (struct sv_id *)cm_id;
	uint8_t buf[RTSAN_PRIVATE_MAX];
	struct rtsan_conn_param param;
	uint64_t service = service_of(id, *san_sv_cm_port(&cm_id->route.addr.dst_addr));
	int rc;

	SV_CM_ELSE_NEXT(rdma_connect, cm_id, p);
	if (id->dev == NULL)
		return san_sv_result(-EINVAL, "rdma_connect()");
	pthread_mutex_lock(&id->dev->lock);
	rc = fill_param(id, p, buf, &param);
	if (rc == 0) {
		id->is_active = true;
		if (cm_id->qp_type == IBV_QPT_UD)
			rc = san_sv_ud_ask(id->q, gid, service, &param);
		else
			rc = san_sv_qp_connect(id->q, gid, service, &param);
	}
	pthread_mutex_unlock(&id->dev->lock);
	return rc == 0 ? san_sv_cm_complete(id) : san_sv_result(rc, "rdma_connect()");
}

int
rdma_accept(struct rdma_cm_id *cm_id, struct rdma_conn_param *p)
{
	struct sv_id *id = (struct sv_id *)cm_id;
	uint8_t buf[RTSAN_PRIVATE_MAX];
	struct rtsan_conn_param param;
	bool is_datagram = cm_id->qp_type == IBV_QPT_UD;
	int rc;

	SV_CM_ELSE_NEXT(rdma_accept, cm_id, p);
	if (!id->has_request)
		return san_sv_result(-EINVAL, "rdma_accept()");
	pthread_mutex_lock(&id->dev->lock);
	rc = fill_param(id, p, buf, &param);
	if (rc == 0 && is_datagram) /* see is_answer() */
		rc = rtsan_reject(id->dev->rt, id->request, buf, param.private_len);
	else if (rc == 0)
		rc = rtsan_accept(id->dev->rt, id->request, id->q->rt, &param);
	if (rc == 0)
		id->has_request = false;
	if (rc == 0 && !is_datagram) {
		id->q->link = SV_LINK_WAITS;
		if (cm_id->qp != NULL)
			cm_id->qp->state = IBV_QPS_RTS;
	}
	pthread_mutex_unlock(&id->dev->lock);
	return rc == 0 && !is_datagram ? san_sv_cm_complete(id) :
					 san_sv_result(rc, "rdma_accept()");
}

/* CONNECT_RESPONSE was reported: rdma_establish() or rdma_reject() follows. */
static bool
has_response(const struct sv_id *id)
{
	if (!id->is_active || id->id.qp != NULL || id->q == NULL)
		return false;
	SAN_LOCKED(&id->dev->lock);
	return id->q->link == SV_LINK_UP;
}

int
rdma_reject(struct rdma_cm_id *cm_id, const void *data, uint8_t length)
{
	struct sv_id *id = (struct sv_id *)cm_id;
	struct sv_cm_hello h = {.length = data != NULL ? length : 0};
	uint8_t buf[RTSAN_PRIVATE_MAX];

	SV_CM_ELSE_NEXT(rdma_reject, cm_id, data, length);
	if (has_response(id)) {
		SAN_LOCKED(&id->dev->lock);
		id->q->id = NULL;
		rtsan_disconnect(id->q->rt);
		id->q = NULL;
		return 0;
	}
	if (!id->has_request || h.length > SV_CM_DATA_MAX)
		return san_sv_result(-EINVAL, "rdma_reject()");
	id->has_request = false;
	memcpy(buf, &h, sizeof(h));
	if (h.length != 0)
		memcpy(buf + sizeof(h), data, h.length);
	return san_sv_result(rtsan_reject(id->dev->rt, id->request, buf,
					  (uint16_t)(sizeof(h) + h.length)),
			     "rdma_reject()");
}

int
rdma_disconnect(struct rdma_cm_id *cm_id)
{
	struct sv_id *id = (struct sv_id *)cm_id;
	struct sv_qp *q;
	bool was_up;

	SV_CM_ELSE_NEXT(rdma_disconnect, cm_id);
	q = id->q;
	if (q == NULL || cm_id->qp_type == IBV_QPT_UD)
		return san_sv_result(-EINVAL, "rdma_disconnect()");
	pthread_mutex_lock(&id->dev->lock);
	was_up = q->link == SV_LINK_UP && q->ibv.state != IBV_QPS_ERR;
	san_sv_qp_fail(q, IBV_WC_WR_FLUSH_ERR);
	pthread_mutex_unlock(&id->dev->lock);
	return was_up ? san_sv_cm_complete(id) : 0;
}

int
rdma_establish(struct rdma_cm_id *id)
{
	SV_CM_ELSE_NEXT(rdma_establish, id);
	return san_sv_result(has_response((struct sv_id *)id) ? 0 : -EINVAL, "rdma_establish()");
}

int
rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	SV_CM_ELSE_NEXT(rdma_notify, id, event);
	return 0;
}

int
rdma_init_qp_attr(struct rdma_cm_id *cm_id, struct ibv_qp_attr *attr, int *mask)
{
	const struct sv_id *id = (const struct sv_id *)cm_id;
	bool needs_peer = cm_id->qp_type == IBV_QPT_RC && attr->qp_state != IBV_QPS_INIT;

	SV_CM_ELSE_NEXT(rdma_init_qp_attr, cm_id, attr, mask);
	if (id->dev == NULL || (needs_peer && id->peer.qp_num == 0))
		return san_sv_result(-EINVAL, "rdma_init_qp_attr()");
	*mask = san_sv_qp_mask(cm_id->qp_type, attr->qp_state);
	*attr = (struct ibv_qp_attr){
		.qp_state = attr->qp_state,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.port_num = SV_PORT,
		.qkey = RDMA_UDP_QKEY,
		.ah_attr = san_sv_cm_ah(id, &cm_id->route.addr.addr.ibaddr.dgid),
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = id->peer.qp_num,
		.max_dest_rd_atomic = id->peer.responder_resources,
		.max_rd_atomic = id->peer.initiator_depth,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	return 0;
}

/* ---- events ---- */

static struct sv_id *
listener_of(const struct rtsan_listener *listener)
{
	struct sv_id *id;
	int i;
	SAN_LOCKED(&san_sv_cm_lock);

	LIST_FOREACH(id, &ids, link)
		for (i = 0; i < SV_DEVICES; i++)
			if (id->listeners[i] == listener)
				return id;
	return NULL;
}

/* A new identifier for a request to *listener*. */
static struct sv_id *
accept_id(struct sv_device *dev, struct sv_id *listener, const struct rtsan_event *ev)
{
	__be16 port = *san_sv_cm_port(&listener->id.route.addr.src_addr);
	const struct sv_cm_hello *h = (const struct sv_cm_hello *)ev->private_data;
	struct sv_id *id = calloc(1, sizeof(*id));
	struct rdma_addr *a;

	if (id == NULL)
		return NULL;
	a = &id->id.route.addr;
	id->id.channel = listener->id.channel;
	id->id.context = listener->id.context;
	id->id.ps = listener->id.ps;
	id->id.qp_type = listener->id.qp_type;
	id->request = ev->request;
	id->has_request = true;
	san_sv_gid(ev->peer, &a->addr.ibaddr.dgid);
	san_sv_cm_addr(&a->addr.ibaddr.dgid, h->port, &a->dst_storage);
	a->addr.ibaddr.sgid = dev->gids[san_sv_gid_like(dev, &a->addr.ibaddr.dgid)];
	san_sv_cm_addr(&a->addr.ibaddr.sgid, port, &a->src_storage);
	return id;
}

bool
san_sv_cm_request(struct sv_device *dev, const struct rtsan_event *ev)
{
	struct sv_id *listener = listener_of(ev->listener), *id = NULL;
	struct sv_cm_event *e = NULL;

	if (listener == NULL)
		return false;
	if (ev->private_len >= sizeof(struct sv_cm_hello))
		id = accept_id(dev, listener, ev);
	if (id != NULL && san_sv_cm_bind(id, dev) == 0) {
		SAN_LOCKED(&san_sv_cm_lock);
		e = san_sv_cm_report(id, listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		if (e != NULL) {
			pass_data(e, ev);
			LIST_INSERT_HEAD(&ids, id, link);
		}
	}
	if (e == NULL) {
		rtsan_reject(dev->rt, ev->request, NULL, 0);
		free(id);
	}
	return true;
}

/* A request for datagrams is answered by a rejection with a number: no connection stays. */
static bool
is_answer(const struct rtsan_event *ev)
{
	static const uint8_t none[3];
	const struct sv_cm_hello *h = (const struct sv_cm_hello *)ev->private_data;

	return ev->type == RTSAN_EV_REJECTED && ev->private_len >= sizeof(*h) &&
		h->length <= ev->private_len - sizeof(*h) &&
		memcmp(h->qp_num, none, sizeof(none)) != 0;
}

void
san_sv_cm_qp_event(struct sv_qp *q, const struct rtsan_event *ev)
{
	static const struct {
		enum rdma_cm_event_type type;
		int status;
	} reports[] = {
		[RTSAN_EV_ESTABLISHED] = {RDMA_CM_EVENT_ESTABLISHED, 0},
		[RTSAN_EV_REJECTED] = {RDMA_CM_EVENT_REJECTED, REJ_NO_RESOURCES},
		[RTSAN_EV_UNREACHABLE] = {RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT},
		[RTSAN_EV_DISCONNECTED] = {RDMA_CM_EVENT_DISCONNECTED, 0},
	};
	enum rdma_cm_event_type type = reports[ev->type].type;
	int status = reports[ev->type].status;
	struct sv_cm_event *e;

	if (ev->reason == RTSAN_R_REFUSED)
		status = REJ_CONSUMER;
	else if (ev->reason == RTSAN_R_NO_LISTENER)
		status = REJ_NO_SERVICE;
	if (q->ibv.qp_type == IBV_QPT_UD && is_answer(ev)) {
		type = RDMA_CM_EVENT_ESTABLISHED;
		status = 0;
	} else if (ev->type == RTSAN_EV_ESTABLISHED && q->id->id.qp != NULL) {
		q->ibv.state = IBV_QPS_RTS;
	} else if (ev->type == RTSAN_EV_ESTABLISHED && q->id->is_active) {
		type = RDMA_CM_EVENT_CONNECT_RESPONSE;
	}
	SAN_LOCKED(&san_sv_cm_lock);
	e = san_sv_cm_report(q->id, NULL, type, status);
	if (e != NULL && ev->type != RTSAN_EV_DISCONNECTED)
		pass_data(e, ev);
}
