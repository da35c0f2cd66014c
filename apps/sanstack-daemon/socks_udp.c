/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UDP sockets: what the kernel calls them, and what comes to the kernel's another way than by the
 * port. (UDP-4)
 *
 * DESIGN NOTES
 *
 * Where the port's device is the kernel's, too, the kernel has a copy of each datagram for the
 * socket that it knows. A filter on that socket drops what came by this device (sock_filter.c).
 */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "san_time.h"
#include "sock_filter.h"
#include "socks_priv.h"

#define LINGER_NS (1 * SAN_NS_PER_S) /* what was sent may still go */
#define PUMP_MAX  32                 /* datagrams of one kernel socket before the next one's */

/* ---- what the kernel says of one ---- */

/* Into *names*, for the lcore, and into *shm*, for programs. */
static int
read_names(int fd, uid_t uid, struct san_sock_names *n, struct san_sock_shm *shm)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	uint32_t scope;
	int v;

	memset(n, 0, sizeof(*n));
	if (getsockname(fd, (struct sockaddr *)&ss, &len) != 0)
		return -errno;
	socks_from_sockaddr(&ss, &n->local, &n->port, &scope);
	n->family = ss.ss_family;
	socks_fill_addr(&shm->local, &n->local, n->port, n->family, scope);
	len = sizeof(ss);
	if (getpeername(fd, (struct sockaddr *)&ss, &len) == 0) {
		socks_from_sockaddr(&ss, &n->peer, &n->peer_port, &scope);
		socks_fill_addr(&shm->peer, &n->peer, n->peer_port, n->family, scope);
	} else {
		shm->peer.family = 0;
	}
	n->user = uid;
	n->reuseport = socks_int(fd, SOL_SOCKET, SO_REUSEPORT) > 0;
	n->v6only = n->family == AF_INET6 && socks_int(fd, IPPROTO_IPV6, IPV6_V6ONLY) > 0;
	v = n->family == AF_INET ? socks_int(fd, IPPROTO_IP, IP_TTL) :
				   socks_int(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS);
	n->hops = v > 0 && v <= UINT8_MAX ? (uint8_t)v : 0;
	v = n->family == AF_INET ? socks_int(fd, IPPROTO_IP, IP_MTU_DISCOVER) :
				   socks_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER);
	n->df = v == IP_PMTUDISC_DO || v == IP_PMTUDISC_PROBE; /* IPv6 has the same values */
	v = n->family == AF_INET ? socks_int(fd, IPPROTO_IP, IP_TOS) :
				   socks_int(fd, IPPROTO_IPV6, IPV6_TCLASS);
	n->tos = v > 0 ? (uint8_t)v : 0;
	return 0;
}

static int
check_names(const struct app_port *port, const struct san_sock_names *n, struct shmq_rep *rep)
{
	if (n->port == 0)
		return socks_refuse(rep, -EINVAL, "not bound");
	if (!socks_is_any(&n->local) && !socks_is_ours(port, &n->local))
		return socks_refuse(rep, -EADDRNOTAVAIL,
				    "bound to an address that is not the port's");
	return 0;
}

/* ---- the lcore's part: functions for san_engine_call() ---- */

struct sock_call {
	struct sock_entry *s;
	const struct san_sock_names *names;
	const struct san_inet_dgram *dgram;
	const struct san_ip *group;
	const void *data;
	uint32_t if_index;
	uint32_t len;
	int err;
};

static int
do_add(struct san_engine *e, void *arg)
{
	struct sock_call *c = arg;
	struct san_socks *all = san_core_socks(san_engine_core(e));
	struct sock_entry *s = c->s;
	struct san_sock_shm *shm = s->mem.mem;
	int rc;

	rc = san_sock_add(all, shm, SAN_SOCK_RX_BYTES, SAN_SOCK_TX_BYTES, s->pair, &s->id);
	if (rc == 0)
		san_sock_name(all, s->id, c->names);
	return rc;
}

static int
do_name(struct san_engine *e, void *arg)
{
	const struct sock_call *c = arg;

	san_sock_name(san_core_socks(san_engine_core(e)), c->s->id, c->names);
	return 0;
}

/* The link's and the socket's, or neither. */
static int
do_join(struct san_engine *e, void *arg)
{
	const struct sock_call *c = arg;
	struct san_socks *all = san_core_socks(san_engine_core(e));
	struct san_inet *in = san_core_inet(san_engine_core(e));
	uint64_t now_ns = san_engine_now_ns(e);
	int rc = san_sock_join(all, c->s->id, c->group);

	if (rc != 0)
		return rc;
	rc = san_inet_join(in, c->group, now_ns);
	if (rc != 0)
		san_sock_leave(all, c->s->id, c->group);
	return rc;
}

static int
do_leave(struct san_engine *e, void *arg)
{
	const struct sock_call *c = arg;
	int rc = san_sock_leave(san_core_socks(san_engine_core(e)), c->s->id, c->group);

	if (rc == 0)
		san_inet_leave(san_core_inet(san_engine_core(e)), c->group, san_engine_now_ns(e));
	return rc;
}

static int
do_del(struct san_engine *e, void *arg)
{
	const struct sock_call *c = arg;
	const struct san_socks *all = san_core_socks(san_engine_core(e));
	const struct san_ip *group;
	uint32_t i;

	for (i = 0; (group = san_sock_group(all, c->s->id, i)) != NULL; i++)
		san_inet_leave(san_core_inet(san_engine_core(e)), group, san_engine_now_ns(e));
	san_sock_del(san_core_socks(san_engine_core(e)), c->s->id);
	return 0;
}

static int
do_give(struct san_engine *e, void *arg)
{
	const struct sock_call *c = arg;

	san_sock_give(san_core_socks(san_engine_core(e)), c->s->id, c->dgram, c->if_index,
		      c->data, c->len, san_engine_now_ns(e));
	return 0;
}

static int
do_fail(struct san_engine *e, void *arg)
{
	struct san_socks *all = san_core_socks(san_engine_core(e));
	const struct sock_call *c = arg;

	/* the kernel sees what comes by its device, too: we have told that already, or will */
	if (!san_sock_asks_link(all, c->s->id))
		san_sock_fail(all, c->s->id, c->err);
	return 0;
}

static int
do_has_sent(struct san_engine *e, void *arg)
{
	const struct sock_call *c = arg;

	san_sock_ring(san_core_socks(san_engine_core(e)), c->s->id);
	return san_sock_has_sent(san_core_socks(san_engine_core(e)), c->s->id);
}

/* ---- come ---- */

/* What the pump has to know of each datagram, by family. */
static const struct {
	int level, name;
} more[2][SOCKS_MORE] = {
	{{IPPROTO_IP, IP_PKTINFO}, {IPPROTO_IP, IP_RECVTTL}, {IPPROTO_IP, IP_RECVTOS}},
	{{IPPROTO_IPV6, IPV6_RECVPKTINFO},
	 {IPPROTO_IPV6, IPV6_RECVHOPLIMIT},
	 {IPPROTO_IPV6, IPV6_RECVTCLASS}},
};

static void
ask_more(struct sock_entry *s)
{
	const int on = 1;
	int i, v6 = s->family == AF_INET6;

	for (i = 0; i < SOCKS_MORE; i++) {
		s->had[i] = socks_int(s->kernel, more[v6][i].level, more[v6][i].name);
		setsockopt(s->kernel, more[v6][i].level, more[v6][i].name, &on, sizeof(on));
	}
	s->asks_more = true;
}

void
socks_udp_leave(const struct sock_entry *s)
{
	int i, v6 = s->family == AF_INET6;
	const int none = 0;

	setsockopt(s->kernel, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none));
	for (i = 0; i < SOCKS_MORE && s->asks_more; i++)
		setsockopt(s->kernel, more[v6][i].level, more[v6][i].name, &s->had[i], sizeof(int));
}

/* Its memory, its pair, and our own descriptor of the kernel's. */
static int
make(struct sock_entry *s, uint16_t guard, int fd, int *shadow)
{
	int rc = socks_memory(s, guard, SOCK_DGRAM);

	if (rc != 0)
		return rc;
	s->kernel = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return s->kernel < 0 ? -errno : socks_pair(s, shadow);
}

static int
begin(struct app_port *port, struct sock_entry *s, bool local_only, struct shmq_rep *rep)
{
	struct san_sock_shm *shm = s->mem.mem;
	struct san_sock_names names;
	struct sock_call call = {.s = s, .names = &names};
	int rc;

	rc = read_names(s->kernel, s->uid, &names, shm);
	if (rc == 0)
		rc = check_names(port, &names, rep);
	if (rc != 0)
		return rc;
	s->family = names.family;
	atomic_init(&shm->nonblock, (fcntl(s->kernel, F_GETFL) & O_NONBLOCK) != 0);
	rc = san_engine_call(socks_engine(port), do_add, &call);
	if (rc != 0)
		return rc;
	shm->id = s->id;
	rc = sock_filter_port(s->kernel, port->ctx->port, local_only);
	if (rc == 0)
		rc = socks_watch(s);
	if (rc != 0)
		san_engine_call(socks_engine(port), do_del, &call);
	else
		ask_more(s);
	return rc;
}

int
socks_udp_carry(struct app_port *port, const struct app *a,
		const struct shmq_req *req, int fd, struct shmq_rep *rep, int *out_fd)
{
	struct sock_entry *s;
	int rc = socks_check_kernel(port, fd, IPPROTO_UDP, rep), shadow = -1;

	if (rc != 0)
		return rc;
	if (socks_find(port, fd, true) != NULL)
		return socks_refuse(rep, -EALREADY, "it is carried");
	s = socks_take(port, a->uid, SOCKS_BYTES, rep);
	if (s == NULL)
		return -ENOSPC;
	s->cookie = socks_cookie(fd, SO_COOKIE);
	rc = make(s, app_port_guard_id(port, a->id), fd, &shadow);
	if (rc == 0)
		rc = begin(port, s, req->sock.local_only != 0, rep);
	if (rc != 0) {
		if (shadow >= 0)
			close(shadow);
		socks_release(s);
		return rc;
	}
	rep->sock.id = s->id;
	rep->sock.bytes = s->mem.bytes;
	*out_fd = shadow;
	return 0;
}

/* ---- what changes ---- */

static int
serve_sync(struct sock_entry *s, struct shmq_rep *rep)
{
	struct san_sock_names names;
	struct sock_call call = {.s = s, .names = &names};
	int rc = read_names(s->kernel, s->uid, &names, s->mem.mem);

	if (rc != 0)
		return rc;
	/* what the kernel calls something else, or nothing, gets nothing by the port any more */
	rc = check_names(s->port, &names, rep);
	if (rc != 0)
		names.port = 0;
	san_engine_call(socks_engine(s->port), do_name, &call);
	return rc;
}

static int
serve_group(struct sock_entry *s, const struct shmq_req *req, struct shmq_rep *rep)
{
	struct san_ip group;
	struct sock_call call = {.s = s, .group = &group};
	int rc;

	memcpy(group.b, req->sock.group, sizeof(group.b));
	rc = san_engine_call(socks_engine(s->port), req->sock.leaves != 0 ? do_leave : do_join,
			     &call);
	if (rc == 0)
		rc = san_engine_groups(s->port->ctx->port);
	return rc == 0 ? 0 : socks_refuse(rep, rc, "the port can't be in that group");
}

int
socks_udp_change(struct sock_entry *s, const struct shmq_req *req, struct shmq_rep *rep)
{
	return req->type == SHMQ_SOCK_GROUP ? serve_group(s, req, rep) : serve_sync(s, rep);
}

/* ---- what comes another way ---- */

static void
read_control(struct msghdr *msg, struct san_inet_dgram *d, uint32_t *if_index)
{
	struct cmsghdr *c;
	int v;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			const struct in_pktinfo *info = (const void *)CMSG_DATA(c);

			memcpy(d->dst.b + 12, &info->ipi_addr, 4);
			*if_index = (uint32_t)info->ipi_ifindex;
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			const struct in6_pktinfo *info = (const void *)CMSG_DATA(c);

			memcpy(d->dst.b, &info->ipi6_addr, 16);
			*if_index = info->ipi6_ifindex;
		} else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
			   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT)) {
			memcpy(&v, CMSG_DATA(c), sizeof(v));
			d->hops = (uint8_t)v;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
			d->tos = *CMSG_DATA(c);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
			memcpy(&v, CMSG_DATA(c), sizeof(v));
			d->tos = (uint8_t)v;
		}
	}
}

/* One datagram of the kernel's. False: there is none. */
static bool
pump_one(struct sock_entry *s)
{
	static uint8_t data[SAN_SOCK_DGRAM + 1], control[512];
	const struct san_sock_shm *shm = s->mem.mem;
	struct sockaddr_storage from;
	struct iovec iov = {data, sizeof(data)};
	struct msghdr msg = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct san_inet_dgram d = {.dst = {.b = {[10] = 0xff, [11] = 0xff}}};
	struct sock_call call = {.s = s, .dgram = &d, .data = data};
	ssize_t n = recvmsg(s->kernel, &msg, MSG_DONTWAIT);
	uint32_t scope;

	if (n < 0 && errno == EAGAIN)
		return false;
	if (n < 0) {
		call.err = errno;
		san_engine_call(socks_engine(s->port), do_fail, &call);
		return true;
	}
	socks_from_sockaddr(&from, &d.src, &d.sport, &scope);
	d.dport = shm->local.port;
	read_control(&msg, &d, &call.if_index);
	call.len = (uint32_t)n;
	san_engine_call(socks_engine(s->port), do_give, &call);
	return true;
}

void
socks_udp_pump(struct sock_entry *s)
{
	int i;

	for (i = 0; i < PUMP_MAX && pump_one(s); i++)
		;
	s->has_more = i == PUMP_MAX;
}

/* ---- go ---- */

bool
socks_udp_may_end(struct sock_entry *s, uint64_t now_ns)
{
	struct sock_call call = {.s = s};

	return now_ns - s->over_ns > LINGER_NS ||
		san_engine_call(socks_engine(s->port), do_has_sent, &call) != 0;
}

void
socks_udp_end(struct sock_entry *s)
{
	struct sock_call call = {.s = s};

	san_engine_call(socks_engine(s->port), do_del, &call);
	san_engine_groups(s->port->ctx->port);
}
