/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Groups (multicast). (RDMA-4)
 *
 * DESIGN NOTES
 *
 * A datagram to a group goes to each member by a flow, because the transport has connections only.
 * Members find each other by the multicast of the kernel: who joins asks, and members answer with
 * address and number. So the hosts must reach each other by the kernel, too. Announcements are not
 * authenticated, as joining a group is not. A member is removed when its process rejects the
 * connection. A sender asks again each second, because announcements get lost.
 */

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "san_time.h"
#include "sv_cm.h"

#define PORT  4793       /* of UDP */
#define MAGIC 0x73764d43 /* "svMC" */

#define ASK_NS    SAN_NS_PER_S         /* a sender asks as often, at most */
#define ANSWER_NS (10 * SAN_NS_PER_MS) /* and a member answers */

enum kind {
	ASK,
	ANSWER
};

/** What members announce, big endian. */
struct announcement {
	union ibv_gid mgid, gid;
	uint32_t magic, kind;
	uint32_t qpn; /**< 0: it only sends */
	uint32_t reserved;
};

bool
san_sv_is_group(const union ibv_gid *gid)
{
	return IN6_IS_ADDR_MULTICAST((const struct in6_addr *)gid->raw) ||
		(san_sv_is_v4(gid) && gid->raw[12] >> 4 == 14);
}

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SAN_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* It may get lost, as others do. */
static void
announce(const struct sv_group *g, enum kind kind)
{
	const struct sv_device *dev = san_sv_device(g->q->ibv.context);
	struct announcement a = {
		.magic = htonl(MAGIC),
		.kind = htonl(kind),
		.mgid = g->mgid,
		.gid = dev->gids[san_sv_gid_like(dev, &g->mgid)],
		.qpn = g->is_member ? htonl(g->q->ibv.qp_num) : 0,
	};
	struct sockaddr_storage to;

	san_sv_cm_addr(&g->mgid, htons(PORT), &to);
	sendto(g->fd, &a, sizeof(a), 0, (struct sockaddr *)&to, sizeof(to));
}

/* A socket that gets what is sent to the group. -errno. */
static int
open_socket(const union ibv_gid *mgid)
{
	struct group_req req = {0};
	int level, fd, rc, one = 1;

	san_sv_cm_addr(mgid, htons(PORT), &req.gr_group);
	level = req.gr_group.ss_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
	fd = socket(req.gr_group.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
	    bind(fd, (struct sockaddr *)&req.gr_group, sizeof(req.gr_group)) == 0 &&
	    setsockopt(fd, level, MCAST_JOIN_GROUP, &req, sizeof(req)) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* With the lock of the queue pair and, if it is one of its groups, that of the device. */
static void
group_free(struct sv_group *g)
{
	if (g->link.le_prev != NULL) {
		san_sv_ud_leave(g->q, &g->mgid);
		LIST_REMOVE(g, link);
	}
	if (g->fd >= 0) { /* a child of fork() may have it, too, so closing does not remove it */
		epoll_ctl(san_sv_device(g->q->ibv.context)->groups_fd, EPOLL_CTL_DEL, g->fd, NULL);
		close(g->fd);
	}
	free(g);
}

static int
group_create(struct sv_qp *q, const union ibv_gid *mgid, struct sv_group **out)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct sv_group *g = calloc(1, sizeof(*g));
	int rc = -ENOMEM;

	if (g == NULL)
		return rc;
	ev.data.ptr = g;
	g->q = q;
	g->mgid = *mgid;
	g->fd = open_socket(mgid);
	rc = g->fd;
	if (rc >= 0)
		rc = epoll_ctl(san_sv_device(q->ibv.context)->groups_fd, EPOLL_CTL_ADD, g->fd, &ev);
	if (rc < 0) {
		group_free(g);
		return rc;
	}
	LIST_INSERT_HEAD(&q->groups, g, link);
	*out = g;
	return 0;
}

struct sv_group *
san_sv_group_find(struct sv_qp *q, const union ibv_gid *mgid)
{
	struct sv_group *g;

	LIST_FOREACH(g, &q->groups, link)
		if (memcmp(&g->mgid, mgid, sizeof(*mgid)) == 0)
			return g;
	return NULL;
}

struct sv_group *
san_sv_group_get(struct sv_qp *q, const union ibv_gid *mgid)
{
	struct sv_group *g = san_sv_group_find(q, mgid);

	if (g == NULL && san_sv_explain(group_create(q, mgid, &g), "multicast") != 0)
		return NULL;
	if (now_ns() - g->asked_ns >= ASK_NS) {
		g->asked_ns = now_ns();
		announce(g, ASK);
	}
	return g;
}

int
san_sv_group_join(struct sv_qp *q, const union ibv_gid *mgid, bool is_member)
{
	struct sv_group *g;
	int rc = 0;
	SAN_LOCKED(&q->lock);

	g = san_sv_group_find(q, mgid);
	if (g == NULL)
		rc = group_create(q, mgid, &g);
	if (rc != 0)
		return san_sv_refuse(rc, "the kernel has no multicast for this group");
	g->is_member |= is_member;
	announce(g, ASK);
	return 0;
}

int
san_sv_group_leave(struct sv_qp *q, const union ibv_gid *mgid)
{
	struct sv_group *g;
	SAN_LOCKED(&san_sv_device(q->ibv.context)->lock);

	pthread_mutex_lock(&q->lock);
	g = san_sv_group_find(q, mgid);
	if (g != NULL)
		group_free(g);
	pthread_mutex_unlock(&q->lock);
	return g != NULL ? 0 : san_sv_refuse(-EADDRNOTAVAIL, "not joined");
}

void
san_sv_group_end(struct sv_qp *q)
{
	SAN_LOCKED(&q->lock);

	while (!LIST_EMPTY(&q->groups))
		group_free(LIST_FIRST(&q->groups));
}

/* ---- members ---- */

void
san_sv_group_forget(struct sv_qp *q, const struct sv_target *member)
{
	struct sv_group *g = san_sv_group_find(q, &member->mgid);
	uint32_t i;

	for (i = 0; g != NULL && i < g->nb_members; i++)
		if (g->members[i].qpn == member->qpn &&
		    memcmp(&g->members[i].gid, &member->gid, sizeof(member->gid)) == 0)
			g->members[i--] = g->members[--g->nb_members];
}

static void
on_announcement(struct sv_group *g, const struct announcement *a)
{
	const struct sv_device *dev = san_sv_device(g->q->ibv.context);
	struct sv_target member = {.gid = a->gid, .mgid = g->mgid, .qpn = ntohl(a->qpn)};
	bool is_self = member.qpn == g->q->ibv.qp_num &&
		memcmp(&a->gid, &dev->gids[san_sv_gid_like(dev, &a->gid)], sizeof(a->gid)) == 0;
	SAN_LOCKED(&g->q->lock);

	if (a->kind == htonl(ASK) && g->is_member && now_ns() - g->answered_ns >= ANSWER_NS) {
		g->answered_ns = now_ns();
		announce(g, ANSWER);
	}
	if (member.qpn == 0 || (is_self && g->q->blocks_self))
		return;
	san_sv_group_forget(g->q, &member);
	if (g->nb_members < SV_MEMBERS)
		g->members[g->nb_members++] = member;
	else /* some may not be there */
		g->members[g->next++ % SV_MEMBERS] = member;
}

void
san_sv_group_events(struct sv_device *dev)
{
	struct epoll_event ev;
	struct announcement a;
	int i;

	for (i = 0; i < SV_BURST && epoll_wait(dev->groups_fd, &ev, 1, 0) == 1; i++) {
		struct sv_group *g = ev.data.ptr;

		if (recv(g->fd, &a, sizeof(a), MSG_TRUNC) == sizeof(a) &&
		    a.magic == htonl(MAGIC) && memcmp(&a.mgid, &g->mgid, sizeof(a.mgid)) == 0)
			on_announcement(g, &a);
	}
}

/* ---- calls ---- */

int
ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	SV_ELSE_NEXT(san_sv_device(qp->context), ibv_attach_mcast, qp, gid, lid);
	if (qp->qp_type != IBV_QPT_UD || !san_sv_is_group(gid))
		return EINVAL;
	return -san_sv_explain(san_sv_group_join((struct sv_qp *)qp, gid, true),
			       "ibv_attach_mcast()");
}

int
ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	SV_ELSE_NEXT(san_sv_device(qp->context), ibv_detach_mcast, qp, gid, lid);
	return -san_sv_group_leave((struct sv_qp *)qp, gid);
}

int
rdma_join_multicast_ex(struct rdma_cm_id *cm_id, struct rdma_cm_join_mc_attr_ex *attr,
		       void *context)
{
	struct sv_id *id = (struct sv_id *)cm_id;
	struct sv_cm_event *e;
	union ibv_gid mgid;
	bool is_member;
	int rc;

	SV_CM_ELSE_NEXT(rdma_join_multicast_ex, cm_id, attr, context);
	if ((attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) == 0 || id->dev == NULL ||
	    cm_id->qp_type != IBV_QPT_UD)
		return san_sv_result(-EINVAL, "rdma_join_multicast()");
	san_sv_cm_gid(attr->addr, &mgid);
	is_member = (attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS) == 0 ||
		attr->join_flags == RDMA_MC_JOIN_FLAG_FULLMEMBER;
	rc = san_sv_is_group(&mgid) ? 0 : -EINVAL;
	if (rc == 0 && cm_id->qp != NULL)
		rc = san_sv_group_join((struct sv_qp *)cm_id->qp, &mgid, is_member);
	if (rc != 0)
		return san_sv_result(rc, "rdma_join_multicast()");
	pthread_mutex_lock(&san_sv_cm_lock);
	e = san_sv_cm_report(id, NULL, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	if (e != NULL)
		e->ev.param.ud = (struct rdma_ud_param){
			.private_data = context,
			.ah_attr = san_sv_cm_ah(id, &mgid),
			.qp_num = 0xffffff,
			.qkey = RDMA_UDP_QKEY,
		};
	pthread_mutex_unlock(&san_sv_cm_lock);
	return san_sv_cm_complete(id);
}

int
rdma_join_multicast(struct rdma_cm_id *cm_id, struct sockaddr *addr, void *context)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS,
		.addr = addr,
	};

	SV_CM_ELSE_NEXT(rdma_join_multicast, cm_id, addr, context);
	return rdma_join_multicast_ex(cm_id, &attr, context);
}

int
rdma_leave_multicast(struct rdma_cm_id *cm_id, struct sockaddr *addr)
{
	union ibv_gid mgid;

	SV_CM_ELSE_NEXT(rdma_leave_multicast, cm_id, addr);
	san_sv_cm_gid(addr, &mgid);
	if (cm_id->qp == NULL)
		return 0;
	return san_sv_result(san_sv_group_leave((struct sv_qp *)cm_id->qp, &mgid),
			     "rdma_leave_multicast()");
}
