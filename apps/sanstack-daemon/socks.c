/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * The kernel names, the daemon carries. What a program may call its socket, whether somebody has
 * that name, which port is free and which address a route chooses are questions for the kernel,
 * and only a socket that it has bound is carried: its name is read from it here, not believed of
 * the program. So nobody carries what he could not have bound.
 *
 * Where the port's device is the kernel's, too, the kernel has a copy of each datagram for the
 * socket that it knows. A filter on that socket drops what came by this device (sock_filter.c).
 */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app.h"
#include "san_log.h"
#include "san_time.h"
#include "sock_filter.h"
#include "socks_pair.h"
#include "socks_priv.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define LINGER_NS   (1 * SAN_NS_PER_S)  /* what was sent may still go */
#define LINGER_STEP (1 * SAN_NS_PER_MS) /* until it is looked at again */
#define PUMP_MAX    32                  /* datagrams of one kernel socket before the next one's */
#define TAG_PAIR    ((uintptr_t)1)      /* of what comes with an event */
#define TAG_KERNEL  ((uintptr_t)2)
#define TAG_TOKEN   ((uintptr_t)3)
#define TAGS        ((uintptr_t)3)

/* All sockets are of the first. */
struct san_engine *
socks_engine(const struct app_port *port)
{
	return san_engine_at(port->ctx->port, 0);
}

/* ---- what the kernel says of a socket ---- */

int
socks_int(int fd, int level, int name)
{
	int v = -1;
	socklen_t len = sizeof(v);

	return getsockopt(fd, level, name, &v, &len) == 0 ? v : -1;
}

uint64_t
socks_cookie(int fd, int name)
{
	uint64_t v = 0;
	socklen_t len = sizeof(v);

	return getsockopt(fd, SOL_SOCKET, name, &v, &len) == 0 ? v : 0;
}

void
socks_from_sockaddr(const struct sockaddr_storage *ss, struct san_ip *ip, uint16_t *port, uint32_t *scope)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;

	*ip = (struct san_ip){.b = {[10] = 0xff, [11] = 0xff}};
	*scope = 0;
	if (ss->ss_family == AF_INET) {
		memcpy(ip->b + 12, &in->sin_addr, 4);
		*port = ntohs(in->sin_port);
	} else {
		memcpy(ip->b, &in6->sin6_addr, 16);
		*port = ntohs(in6->sin6_port);
		*scope = in6->sin6_scope_id;
	}
}

void
socks_fill_addr(struct san_sock_addr *a, const struct san_ip *ip, uint16_t port, uint16_t family,
	  uint32_t scope)
{
	memcpy(a->ip, ip->b, sizeof(a->ip));
	a->port = port;
	a->family = family;
	a->scope = scope;
}

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

bool
socks_is_any(const struct san_ip *ip)
{
	static const struct san_ip any6, any4 = {.b = {[10] = 0xff, [11] = 0xff}};

	return san_ip_eq(ip, &any6) || san_ip_eq(ip, &any4);
}

bool
socks_is_ours(const struct app_port *port, const struct san_ip *ip)
{
	const struct san_inet_conf *conf = &san_engine_conf_of(port->ctx->port)->core.inet;
	uint16_t i;

	for (i = 0; i < conf->nb_addrs; i++)
		if (san_ip_eq(&conf->addrs[i].ip, ip))
			return true;
	return false;
}

int
socks_refuse(struct shmq_rep *rep, int rc, const char *text)
{
	snprintf(rep->text, sizeof(rep->text), "socket: %s", text);
	return rc;
}

/* Can it be carried at all? */
int
socks_check_kernel(const struct app_port *port, int fd, int protocol, struct shmq_rep *rep)
{
	static uint64_t our_net;
	socklen_t filter = 0;
	int device, domain = socks_int(fd, SOL_SOCKET, SO_DOMAIN), own;

	if (our_net == 0 && (own = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) >= 0) {
		our_net = socks_cookie(own, SO_NETNS_COOKIE);
		close(own);
	}
	if ((domain != AF_INET && domain != AF_INET6) ||
	    socks_int(fd, SOL_SOCKET, SO_PROTOCOL) != protocol)
		return socks_refuse(rep, -EPROTONOSUPPORT,
				    "neither IPv4 nor IPv6, or of another protocol");
	/* a kernel that can't say so might have it from where its name means nothing */
	if (our_net == 0 || socks_cookie(fd, SO_NETNS_COOKIE) != our_net)
		return socks_refuse(rep, -EXDEV, "of another network namespace than the daemon's");
	/* two of one name may be on two devices: only one of them would have a right to ours */
	device = socks_int(fd, SOL_SOCKET, SO_BINDTOIFINDEX);
	if (device != 0 && device != (int)san_engine_if_index(port->ctx->port))
		return socks_refuse(rep, -EXDEV, "bound to a device that is not the port's");
	if (getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, NULL, &filter) != 0 || filter != 0)
		return socks_refuse(rep, -EOPNOTSUPP, "it has a filter of its own");
	return 0;
}

static int
check_names(const struct app_port *port, const struct san_sock_names *n, struct shmq_rep *rep)
{
	if (n->port == 0)
		return socks_refuse(rep, -EINVAL, "not bound");
	if (!socks_is_any(&n->local) && !socks_is_ours(port, &n->local))
		return socks_refuse(rep, -EADDRNOTAVAIL, "bound to an address that is not the port's");
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
	const struct sock_call *c = arg;

	san_sock_fail(san_core_socks(san_engine_core(e)), c->s->id, c->err);
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

/* A program whose socket can't be carried after all goes on with the kernel's, as it was. */
static void
leave_kernel(const struct sock_entry *s)
{
	int i, v6 = s->family == AF_INET6;
	const int none = 0;

	setsockopt(s->kernel, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none));
	for (i = 0; i < SOCKS_MORE && s->asks_more; i++)
		setsockopt(s->kernel, more[v6][i].level, more[v6][i].name, &s->had[i], sizeof(int));
}

/* What is there may stay for a while; its end is always told. */
int
socks_watch_pair(const struct sock_entry *s)
{
	struct epoll_event pair = {
		.events = EPOLLIN | EPOLLET,
		.data = {.ptr = (void *)((uintptr_t)s | TAG_PAIR)},
	};

	return epoll_ctl(s->port->epoll, EPOLL_CTL_ADD, s->pair, &pair) == 0 ? 0 : -errno;
}

int
socks_watch_token(const struct sock_entry *s)
{
	struct epoll_event token = {
		.events = EPOLLRDHUP,
		.data = {.ptr = (void *)((uintptr_t)s | TAG_TOKEN)},
	};

	return epoll_ctl(s->port->epoll, EPOLL_CTL_ADD, s->token, &token) == 0 ? 0 : -errno;
}

static int
watch(const struct sock_entry *s)
{
	/* of some it is readable for ever, for nothing: errors that nobody asked for, an end */
	struct epoll_event kernel = {
		.events = EPOLLIN | EPOLLET,
		.data = {.ptr = (void *)((uintptr_t)s | TAG_KERNEL)},
	};

	int rc = socks_watch_pair(s);

	if (rc == 0 && epoll_ctl(s->port->epoll, EPOLL_CTL_ADD, s->kernel, &kernel) != 0)
		rc = -errno;
	return rc;
}

uint32_t
socks_count(const struct app_port *port, const uid_t *uid, uint64_t *bytes)
{
	uint32_t i, nb = 0;

	*bytes = 0;
	for (i = 0; i < port->max_socks; i++) {
		const struct sock_entry *s = &port->socks[i];

		if (s->port == NULL || (uid != NULL && s->uid != *uid))
			continue;
		*bytes += s->mem.bytes;
		nb++;
	}
	return nb;
}

/* Room for one of *uid* that takes *need* bytes. */
static int
check_room(struct app_port *port, uid_t uid, size_t need, struct shmq_rep *rep)
{
	uint64_t bytes;
	uint32_t nb = socks_count(port, &uid, &bytes);
	const char *why = NULL;

	if (port->nb_socks == port->max_socks || nb >= RTE_MAX(port->max_socks / 4 * 3, 1u))
		why = "no room for one more; see sockets=";
	else if (bytes + need > port->conf->sock_bytes)
		why = "its user's have all memory that they may have; see sock_bytes=";
	if (why == NULL)
		return 0;
	port->nb_socks_refused++;
	return socks_refuse(rep, -ENOSPC, why);
}

struct sock_entry *
socks_take(struct app_port *port, uid_t uid, size_t bytes, struct shmq_rep *rep)
{
	struct sock_entry *s = port->socks;

	if (check_room(port, uid, bytes, rep) != 0)
		return NULL;
	while (s->port != NULL)
		s++;
	*s = (struct sock_entry){
		.port = port,
		.uid = uid,
		.kernel = -1,
		.pair = -1,
		.held = -1,
		.token = -1,
		.qpn = SAN_QPN_NONE,
	};
	port->nb_socks++;
	return s;
}

static struct sock_entry *
find(const struct app_port *port, int fd, bool is_kernel)
{
	uint64_t cookie = fd >= 0 ? socks_cookie(fd, SO_COOKIE) : 0;
	uint32_t i;

	for (i = 0; i < port->max_socks && cookie != 0; i++) {
		struct sock_entry *s = &port->socks[i];

		if (s->port != NULL && (is_kernel ? s->cookie : s->shadow) == cookie)
			return s;
	}
	return NULL;
}

/* Others may have borrowed the kernel's: closing ours would not end its events. */
static void
unwatch(const struct sock_entry *s, int fd)
{
	if (fd < 0)
		return;
	epoll_ctl(s->port->epoll, EPOLL_CTL_DEL, fd, NULL);
	close(fd);
}

void
socks_release(struct sock_entry *s)
{
	if (s->kernel >= 0 && s->kind == SOCKS_DGRAM)
		leave_kernel(s);
	if (s->pair >= 0) {
		epoll_ctl(s->port->epoll, EPOLL_CTL_DEL, s->pair, NULL);
		app_hang_up(s->pair, s->uid);
	}
	unwatch(s, s->kernel);
	unwatch(s, s->token);
	if (s->held >= 0)
		close(s->held);
	app_mem_end(&s->mem);
	s->port->nb_socks--;
	s->port = NULL;
}

int
socks_pair(struct sock_entry *s, int *shadow)
{
	int rc = socks_pair_make(&s->pair, shadow);

	if (rc == 0)
		s->shadow = socks_cookie(*shadow, SO_COOKIE);
	return rc;
}

int
socks_memory(struct sock_entry *s, uint16_t guard, uint32_t type)
{
	struct san_sock_shm *shm;
	int rc, mem_fd = -1;

	rc = app_mem_create(&s->mem, "sanstack-sock",
			    type == SOCK_STREAM ? SOCKS_STREAM_BYTES : SOCKS_BYTES, guard,
			    &mem_fd);
	if (mem_fd >= 0)
		close(mem_fd); /* it has one of its own */
	if (rc != 0)
		return rc;
	shm = s->mem.mem;
	shm->abi = SAN_SOCK_ABI;
	shm->rx_bytes = SAN_SOCK_RX_BYTES;
	shm->tx_bytes = SAN_SOCK_TX_BYTES;
	shm->type = type;
	shm->if_index = san_engine_if_index(s->port->ctx->port);
	return 0;
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
	if (local_only)
		rc = sock_filter_local(s->kernel);
	else
		rc = sock_filter_port(s->kernel, port->ctx->port);
	if (rc == 0)
		rc = watch(s);
	if (rc != 0)
		san_engine_call(socks_engine(port), do_del, &call);
	else
		ask_more(s);
	return rc;
}

static int
serve_carry(struct app_port *port, const struct app *a,
	    const struct shmq_req *req, int fd, struct shmq_rep *rep, int *out_fd)
{
	struct sock_entry *s;
	int rc = socks_check_kernel(port, fd, IPPROTO_UDP, rep), shadow = -1;

	if (rc != 0)
		return rc;
	if (find(port, fd, true) != NULL)
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

/* ---- what is asked of one ---- */

static int
serve_find(struct sock_entry *s, struct shmq_rep *rep, int *out_fd)
{
	rep->sock.id = s->id;
	rep->sock.bytes = s->mem.bytes;
	*out_fd = fcntl(s->mem.fd, F_DUPFD_CLOEXEC, 0);
	return *out_fd < 0 ? -errno : 0;
}

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
	rc = san_engine_call(socks_engine(s->port), req->sock.leaves != 0 ? do_leave : do_join, &call);
	if (rc == 0)
		rc = san_engine_groups(s->port->ctx->port);
	return rc == 0 ? 0 : socks_refuse(rep, rc, "the port can't be in that group");
}

static int
serve_kernel(const struct sock_entry *s, int *out_fd)
{
	*out_fd = fcntl(s->kernel, F_DUPFD_CLOEXEC, 0);
	return *out_fd < 0 ? -errno : 0;
}

int
socks_serve(struct app_port *port, const struct app *a,
	    const struct shmq_req *req, int fd, struct shmq_rep *rep, int *out_fd)
{
	struct sock_entry *s;

	if (port->max_socks == 0)
		return socks_refuse(rep, -EOPNOTSUPP, "the port carries none; see sockets=");
	if (req->type == SHMQ_SOCK_CARRY)
		return serve_carry(port, a, req, fd, rep, out_fd);
	if (req->type >= SHMQ_SOCK_LISTEN)
		return socks_tcp_serve(port, a, req, fd, rep, out_fd);
	s = find(port, fd, false);
	if (s == NULL)
		return socks_refuse(rep, -ENOENT, "not carried here");
	if (req->type == SHMQ_SOCK_FIND)
		return serve_find(s, rep, out_fd);
	if (req->type == SHMQ_SOCK_KERNEL)
		return serve_kernel(s, out_fd);
	if (s->kind != SOCKS_DGRAM)
		return 0; /* what there is to know of a stream does not change */
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

static void
pump(struct sock_entry *s)
{
	int i;

	for (i = 0; i < PUMP_MAX && pump_one(s); i++)
		;
	s->has_more = i == PUMP_MAX;
}

bool
socks_event(const struct epoll_event *ev, bool is_late)
{
	uintptr_t what = (uintptr_t)ev->data.ptr;
	struct sock_entry *s = (struct sock_entry *)(what & ~TAGS);

	if ((what & TAGS) == 0)
		return false;
	if (s->port == NULL)
		return true; /* gone meanwhile */
	if ((what & TAGS) == TAG_KERNEL) {
		s->has_more = true;
		if (!is_late)
			pump(s);
		return true;
	}
	s->has_sent = true;
	if ((what & TAGS) == TAG_TOKEN) {
		s->is_over = s->held >= 0; /* who was to accept it will not */
		epoll_ctl(s->port->epoll, EPOLL_CTL_DEL, s->token, NULL);
	} else if ((ev->events & EPOLLHUP) != 0) {
		s->is_over = true;
		epoll_ctl(s->port->epoll, EPOLL_CTL_DEL, s->pair, NULL);
	}
	return true;
}

/* ---- go ---- */

static void
end(struct sock_entry *s)
{
	struct sock_call call = {.s = s};

	if (s->kind != SOCKS_DGRAM) {
		socks_tcp_end(s);
		socks_release(s);
		return;
	}
	san_engine_call(socks_engine(s->port), do_del, &call);
	san_engine_groups(s->port->ctx->port);
	socks_release(s);
}

/* What was sent before it was closed still goes. */
static bool
may_end(struct sock_entry *s, uint64_t now_ns)
{
	struct sock_call call = {.s = s};

	if (s->over_ns == 0)
		s->over_ns = now_ns;
	if (s->kind != SOCKS_DGRAM)
		return socks_tcp_may_end(s, now_ns);
	return now_ns - s->over_ns > LINGER_NS ||
		san_engine_call(socks_engine(s->port), do_has_sent, &call) != 0;
}

/* When to look again. */
static uint64_t
look_after(struct sock_entry *s, uint64_t now_ns)
{
	if (s->has_sent)
		s->has_sent = socks_pair_read(s);
	if (s->has_more && !s->is_over)
		pump(s);
	if (!s->is_over)
		return s->has_more  ? now_ns :
			s->has_sent ? now_ns + LINGER_STEP :
				      SAN_TIME_NEVER;
	if (!may_end(s, now_ns))
		return now_ns + LINGER_STEP;
	end(s);
	return SAN_TIME_NEVER;
}

uint64_t
socks_bury(struct apps *all, uint64_t now_ns)
{
	uint64_t due_ns = SAN_TIME_NEVER;
	struct app_port *port;
	uint32_t i, k;

	for (i = 0; i < all->nb_ports; i++) {
		port = &all->ports[i];
		for (k = 0; k < port->max_socks && port->nb_socks != 0; k++)
			if (port->socks[k].port != NULL)
				due_ns = san_time_min(due_ns, look_after(&port->socks[k], now_ns));
	}
	return due_ns;
}

void
socks_close(struct app_port *port)
{
	uint32_t i;

	for (i = 0; i < port->max_socks; i++)
		if (port->socks[i].port != NULL)
			end(&port->socks[i]);
}
