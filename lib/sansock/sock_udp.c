/* SPDX-License-Identifier: BSD-3-Clause */

#include <sys/time.h>

#include "sock_priv.h"

#define HEADS_V4      28 /* bytes of the headers of IP and UDP */
#define HEADS_V6      48
#define ERROR_CONTROL 512 /* bytes: enough for all control messages of an error */

/* ---- addresses ---- */

/* Read the destination from the name in *msg*. 0 or errno. */
static int
sock_udp_read_name(const struct fd_sock *f, const struct msghdr *msg, struct san_sock_rec *rec)
{
	const struct sockaddr_in *in = msg->msg_name;
	bool is_v4;

	if (msg->msg_namelen > sizeof(struct sockaddr_storage))
		return EINVAL;
	if (san_sock_touch_is_bad(in, msg->msg_namelen))
		return EFAULT;
	is_v4 = f->domain == AF_INET ||
		(msg->msg_namelen >= sizeof(sa_family_t) && in->sin_family == AF_INET);
	if (msg->msg_namelen < (is_v4 ? sizeof(*in) : offsetof(struct sockaddr_in6, sin6_scope_id)))
		return EINVAL;
	if (is_v4 ? in->sin_family != AF_INET &&
			    (f->domain != AF_INET || in->sin_family != AF_UNSPEC) :
		    in->sin_family != AF_INET6)
		return EAFNOSUPPORT;
	san_sock_read_name(in, rec->dst, &rec->dport);
	return rec->dport == 0 ? EINVAL : 0;
}

/* ---- to send ---- */

/* 0; -EAGAIN: no room; -EFAULT; -EDEADLK: see san_sock_lock(). */
static int
sock_udp_put_rec(struct fd_sock *f, const struct san_sock_rec *head, const struct msghdr *msg)
{
	struct san_sock_shm *shm = f->shm;
	uint8_t *ring = san_sock_shm_tx_ring(shm, f->rx_bytes);
	uint32_t tail, at, base, key;
	int rc = -EAGAIN;

	if (san_sock_lock(&shm->tx_lock, false, &key) < 0)
		return -EDEADLK;
	tail = atomic_load_explicit(&shm->tx_tail, memory_order_relaxed);
	base = atomic_load_explicit(&shm->tx_base, memory_order_relaxed);
	if (san_sock_shm_place(ring, f->tx_bytes, tail,
			       atomic_load_explicit(&shm->tx_head, memory_order_acquire), &base,
			       head->bytes, &at) == 0) {
		struct san_sock_rec *rec = (void *)(ring + san_sock_shm_off(f->tx_bytes, base, at));

		*rec = *head;
		if (san_sock_ring_copy(msg, 0, rec + 1, head->bytes, true) < head->bytes) {
			rc = -EFAULT;
		} else {
			atomic_store_explicit(&shm->tx_base, base, memory_order_relaxed);
			if (san_sock_ring_publish(&shm->tx_tail, tail,
						  at + san_sock_shm_rec_bytes(head->bytes)))
				rc = 0;
		}
	}
	san_sock_lock_unlock(&shm->tx_lock, key);
	return rc;
}

/* Whether device and address are unspecified or the port's. The kernel decides about others. */
static bool
is_ports(const struct fd_sock *f, uint32_t if_index, const uint8_t source[16])
{
	static const uint8_t none[16];

	return (if_index == 0 || if_index == f->shm->if_index) &&
		(memcmp(source, none, sizeof(none)) == 0 || san_sock_attach_is_ports(source));
}

static bool
read_one(const struct fd_sock *f, const struct cmsghdr *c, struct san_sock_rec *rec)
{
	const struct in_pktinfo *info = (const void *)CMSG_DATA(c);
	const struct in6_pktinfo *info6 = (const void *)CMSG_DATA(c);
	int v;

	if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO &&
	    c->cmsg_len == CMSG_LEN(sizeof(*info))) {
		if (info->ipi_spec_dst.s_addr != 0) {
			memset(rec->src + 10, 0xff, 2);
			memcpy(rec->src + 12, &info->ipi_spec_dst, 4);
		}
		return is_ports(f, (uint32_t)info->ipi_ifindex, rec->src);
	}
	if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO &&
	    c->cmsg_len >= CMSG_LEN(sizeof(*info6))) {
		memcpy(rec->src, &info6->ipi6_addr, 16);
		return is_ports(f, info6->ipi6_ifindex, rec->src);
	}
	if (c->cmsg_len != CMSG_LEN(sizeof(v)))
		return false;
	memcpy(&v, CMSG_DATA(c), sizeof(v));
	if (v <= 0 || v > UINT8_MAX)
		return false;
	if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
	    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT))
		rec->hops = (uint8_t)v;
	else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
		 (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS))
		rec->tos = (uint8_t)v;
	else
		return false;
	return true;
}

/* Read the control messages. False: the kernel must send the datagram. */
static bool
sock_udp_read_control(const struct fd_sock *f, const struct msghdr *msg, struct san_sock_rec *rec)
{
	struct msghdr copy = *msg; /* the macros take a pointer to a mutable one */
	struct cmsghdr *c;

	if (msg->msg_controllen == 0)
		return true;
	if (san_sock_touch_is_bad(msg->msg_control, msg->msg_controllen))
		return false;
	for (c = CMSG_FIRSTHDR(&copy); c != NULL; c = CMSG_NXTHDR(&copy, c))
		if (san_sock_ring_is_cmsg_bad(&copy, c) || !read_one(f, c, rec))
			return false;
	return true;
}

ssize_t
san_sock_udp_send(int fd, struct fd_sock *f, const struct msghdr *msg, int flags)
{
	struct san_sock_shm *shm = f->shm;
	struct san_sock_rec head = {.bytes = 0};
	ssize_t len = san_sock_ring_length(msg);
	int rc, err;

	if (len < 0)
		return san_sock_real_fail((int)-len);
	if (len > SAN_SOCK_DGRAM)
		return san_sock_real_fail(EMSGSIZE);
	if ((flags & MSG_OOB) != 0)
		return san_sock_real_fail(EOPNOTSUPP);
	if ((atomic_load(&shm->shut) & (SHUT_WR + 1)) != 0)
		return san_sock_real_fail(EPIPE);
	if (msg->msg_name != NULL && msg->msg_namelen != 0) {
		rc = sock_udp_read_name(f, msg, &head);
		if (rc != 0)
			return san_sock_real_fail(rc);
	} else if (shm->peer.family == 0) {
		return KERNEL_OF(fd, f, sendmsg, msg, flags); /* the peer may be port 0 */
	} else {
		memcpy(head.dst, shm->peer.ip, sizeof(head.dst));
		head.dport = shm->peer.port;
	}
	if (atomic_load_explicit(&shm->error, memory_order_relaxed) != 0 &&
	    (err = san_sock_ring_take_error(f)) != 0)
		return san_sock_real_fail(err);
	if (atomic_load(&shm->tx_tail) != atomic_load(&shm->tx_head))
		san_sock_ring_is_deserted(fd, f); /* a live lcore takes what is there */
	if (atomic_load_explicit(&shm->orphaned, memory_order_relaxed) != 0)
		return san_sock_real_fail(ENETDOWN);
	/* the kernel collects parts of a datagram */
	if ((flags & MSG_MORE) != 0 && san_sock_carry_give_back(fd, f, "MSG_MORE"))
		return san_sock_real_fail(ENETDOWN); /* the call begins anew with the kernel's */
	/* the kernel's socket sends to this host and by other devices */
	if (!sock_udp_read_control(f, msg, &head) || (flags & (MSG_MORE | MSG_DONTROUTE)) != 0 ||
	    head.dport == 0 || san_sock_attach_why_not_reached(head.dst) != NULL)
		return KERNEL_OF(fd, f, sendmsg, msg, flags);
	if (atomic_load_explicit(&shm->df, memory_order_relaxed) != 0 &&
	    (size_t)len + (san_sock_is_v4(head.dst) ? HEADS_V4 : HEADS_V6) > shm->mtu)
		return san_sock_real_fail(EMSGSIZE);
	if (msg->msg_name != NULL && msg->msg_namelen != 0 &&
	    (rc = san_sock_hooks_send(f, &head, msg->msg_name, msg->msg_namelen)) != 0)
		return san_sock_real_fail(rc);
	head.bytes = (uint32_t)len;
	while ((rc = sock_udp_put_rec(f, &head, msg)) != 0) {
		if (atomic_load(&shm->orphaned) != 0)
			return san_sock_real_fail(ENETDOWN);
		if (rc == -EFAULT)
			return san_sock_real_fail(EFAULT);
		if (rc == -EDEADLK) /* the kernel's socket has the same name */
			return KERNEL_OF(fd, f, sendmsg, msg, flags);
		rc = san_sock_ring_wait_room(fd, f, flags);
		if (rc != 0)
			return san_sock_real_fail(rc);
	}
	san_sock_attach_doorbell(f);
	return len;
}

/* ---- received ---- */

/* The next record, at *head*, behind padding that may be at *from*; NULL: none. Under rx_lock. */
static struct san_sock_rec *
sock_udp_peek_rec(struct fd_sock *f, uint32_t *from, uint32_t *head)
{
	struct san_sock_shm *shm = f->shm;
	/* pairs with the release of the lcore */
	uint32_t tail = atomic_load_explicit(&shm->rx_tail, memory_order_acquire);
	uint8_t *ring = san_sock_shm_rx_ring(shm);
	struct san_sock_rec *rec;
	uint32_t base;

	*from = atomic_load_explicit(&shm->rx_head, memory_order_relaxed);
	if (*from == tail)
		return NULL;
	base = atomic_load_explicit(&shm->rx_base, memory_order_relaxed);
	rec = (void *)(ring + san_sock_shm_off(f->rx_bytes, base, *from));
	*head = san_sock_shm_skip(f->rx_bytes, base, *from, rec->bytes);
	return (void *)(ring + san_sock_shm_off(f->rx_bytes, base, *head));
}

static void
add_control(struct msghdr *msg, size_t *used, int level, int type, const void *data, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)((uint8_t *)msg->msg_control + *used);
	size_t room = msg->msg_control != NULL ? msg->msg_controllen - *used : 0;

	if (room < CMSG_LEN(len))
		msg->msg_flags |= MSG_CTRUNC;
	if (room < sizeof(*c))
		return;
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len) < room ? CMSG_LEN(len) : room;
	memcpy(CMSG_DATA(c), data, c->cmsg_len - sizeof(*c));
	*used += CMSG_SPACE(len) < room ? CMSG_SPACE(len) : room;
}

static struct timespec
real_time(uint64_t ns)
{
	/* *ns* is what another process wrote: unsigned, so that any value gives a time */
	uint64_t age_ns = (uint64_t)san_sock_time_ns(CLOCK_MONOTONIC) - ns;
	uint64_t at_ns = (uint64_t)san_sock_time_ns(CLOCK_REALTIME) - age_ns;

	return (struct timespec){(time_t)(at_ns / NS_PER_S), (long)(at_ns % NS_PER_S)};
}

int
san_sock_udp_stamp(const struct fd_sock *f, bool in_ns, void *arg)
{
	struct timespec ts = real_time(f->last_ns);

	if (f->last_ns == 0)
		return san_sock_real_fail(ENOENT);
	if (san_sock_touch_is_bad_out(arg, sizeof(ts)))
		return san_sock_real_fail(EFAULT);
	if (in_ns)
		memcpy(arg, &ts, sizeof(ts));
	else
		TIMESPEC_TO_TIMEVAL((struct timeval *)arg, &ts);
	return 0;
}

static void
fill_control(const struct fd_sock *f, struct msghdr *msg, const struct san_sock_rec *rec)
{
	uint32_t want = atomic_load_explicit(&f->shm->options, memory_order_relaxed);
	struct in_pktinfo info = {.ipi_ifindex = (int)rec->if_index};
	struct in6_pktinfo info6;
	struct timespec ts;
	struct timeval tv;
	size_t used = 0;
	int v;

	if (want == 0) {
		msg->msg_controllen = 0;
		return;
	}
	if ((want & (SAN_SOCK_TIMESTAMP | SAN_SOCK_TIMESTAMPNS)) != 0)
		ts = real_time(rec->ns);
	if ((want & SAN_SOCK_TIMESTAMP) != 0) {
		TIMESPEC_TO_TIMEVAL(&tv, &ts);
		add_control(msg, &used, SOL_SOCKET, SCM_TIMESTAMP, &tv, sizeof(tv));
	} else if ((want & SAN_SOCK_TIMESTAMPNS) != 0) {
		add_control(msg, &used, SOL_SOCKET, SCM_TIMESTAMPNS, &ts, sizeof(ts));
	}
	if ((want & SAN_SOCK_RXQ_OVFL) != 0 && rec->nb_drops != 0)
		add_control(msg, &used, SOL_SOCKET, SO_RXQ_OVFL, &rec->nb_drops,
			    sizeof(rec->nb_drops));
	if ((want & SAN_SOCK_PKTINFO) != 0) {
		memcpy(&info.ipi_addr, rec->dst + 12, 4);
		info.ipi_spec_dst = info.ipi_addr;
		add_control(msg, &used, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	}
	v = rec->hops;
	if ((want & SAN_SOCK_RECVTTL) != 0)
		add_control(msg, &used, IPPROTO_IP, IP_TTL, &v, sizeof(v));
	if ((want & SAN_SOCK_RECVTOS) != 0)
		add_control(msg, &used, IPPROTO_IP, IP_TOS, &rec->tos, 1);
	if ((want & SAN_SOCK_PKTINFO6) != 0) {
		memcpy(&info6.ipi6_addr, rec->dst, 16);
		info6.ipi6_ifindex = rec->if_index;
		add_control(msg, &used, IPPROTO_IPV6, IPV6_PKTINFO, &info6, sizeof(info6));
	}
	if ((want & SAN_SOCK_RECVHOPS6) != 0)
		add_control(msg, &used, IPPROTO_IPV6, IPV6_HOPLIMIT, &v, sizeof(v));
	v = rec->tos;
	if ((want & SAN_SOCK_RECVTCLASS6) != 0)
		add_control(msg, &used, IPPROTO_IPV6, IPV6_TCLASS, &v, sizeof(v));
	msg->msg_controllen = used;
}

static ssize_t
sock_udp_deliver_rec(struct fd_sock *f, struct msghdr *msg, struct san_sock_rec *rec,
		     uint32_t bytes, int flags)
{
	struct sockaddr_storage from;
	socklen_t len;
	size_t room = (size_t)san_sock_ring_length(msg), done = room < bytes ? room : bytes;

	if (san_sock_ring_copy(msg, 0, rec + 1, done, false) < done)
		return -EFAULT; /* the datagram is lost, as in the kernel */
	f->last_ns = rec->ns;
	msg->msg_flags = done < bytes ? MSG_TRUNC : 0;
	if (msg->msg_name != NULL) {
		len = san_sock_route_name(f->domain, rec->src, rec->sport, &from);
		memcpy(msg->msg_name, &from, len < msg->msg_namelen ? len : msg->msg_namelen);
		msg->msg_namelen = len;
	}
	fill_control(f, msg, rec);
	return (ssize_t)((flags & MSG_TRUNC) != 0 ? bytes : done);
}

/* Take the next datagram, or -EAGAIN. Under rx_lock. */
static ssize_t
sock_udp_take_locked(struct fd_sock *f, struct msghdr *msg, int flags)
{
	struct msghdr got = *msg;
	uint32_t from, to, bytes;
	struct san_sock_rec *rec = sock_udp_peek_rec(f, &from, &to);
	ssize_t rc;

	if (rec == NULL)
		return -EAGAIN;
	/* other programs may write to the ring: read the length once */
	bytes = *(volatile const uint32_t *)&rec->bytes;
	bytes = bytes < SAN_SOCK_DGRAM ? bytes : SAN_SOCK_DGRAM;
	rc = sock_udp_deliver_rec(f, &got, rec, bytes, flags);
	to = (flags & MSG_PEEK) != 0 ? from : to + san_sock_shm_rec_bytes(bytes);
	if (!san_sock_ring_publish(&f->shm->rx_head, from, to))
		return -EAGAIN;
	*msg = got;
	return rc;
}

/* Returns bytes, -EAGAIN, or -errno. */
static ssize_t
sock_udp_take_rec(int fd, struct fd_sock *f, struct msghdr *msg, int flags)
{
	struct san_sock_shm *shm = f->shm;
	uint32_t key;
	int err = 0;
	ssize_t rc;

	if (atomic_load_explicit(&shm->rx_tail, memory_order_relaxed) ==
		    atomic_load_explicit(&shm->rx_head, memory_order_relaxed) &&
	    atomic_load_explicit(&shm->error, memory_order_relaxed) == 0 &&
	    atomic_load_explicit(&shm->mirrored, memory_order_relaxed) == 0 &&
	    !san_sock_ring_is_deserted(fd, f))
		return -EAGAIN;
	if (!san_sock_ring_lock_rx(f, &key))
		return -EDEADLK;
	if (atomic_load_explicit(&shm->error, memory_order_relaxed) != 0)
		err = san_sock_ring_take_error(f);
	rc = err != 0 ? -err : sock_udp_take_locked(f, msg, flags);
	san_sock_ring_unmirror(fd, f);
	san_sock_lock_unlock(&f->shm->rx_lock, key);
	return rc;
}

/* Receive from the error queue of the kernel's socket. */
static ssize_t
recv_error(int fd, struct fd_sock *f, struct msghdr *msg, int flags)
{
	uint8_t control[ERROR_CONTROL];
	struct msghdr got = *msg;
	struct cmsghdr *c;
	uint32_t bit;
	size_t used = 0;
	ssize_t n;
	int kernel = san_sock_carry_kernel(fd, f);

	if (kernel < 0)
		return san_sock_real_fail(EAGAIN);
	got.msg_control = control;
	got.msg_controllen = sizeof(control);
	n = REAL(recvmsg, kernel, &got, flags);
	if (n < 0)
		return n;
	msg->msg_namelen = got.msg_namelen;
	msg->msg_flags = got.msg_flags;
	for (c = CMSG_FIRSTHDR(&got); c != NULL; c = CMSG_NXTHDR(&got, c)) {
		/* the daemon has set options that the program has not */
		bit = san_sock_opt_bit(f, c->cmsg_level, c->cmsg_type, true);
		if (bit == 0 || (atomic_load(&f->shm->options) & bit) != 0)
			add_control(msg, &used, c->cmsg_level, c->cmsg_type, CMSG_DATA(c),
				    c->cmsg_len - CMSG_LEN(0));
	}
	msg->msg_controllen = used;
	return n;
}

ssize_t
san_sock_udp_recv(int fd, struct fd_sock *f, struct msghdr *msg, int flags)
{
	size_t name = f->domain == AF_INET ? sizeof(struct sockaddr_in) :
					     sizeof(struct sockaddr_in6);
	struct san_sock_shm *shm = f->shm;
	ssize_t rc = san_sock_ring_length(msg);
	int err;

	if (rc < 0)
		return san_sock_real_fail((int)-rc);
	if (msg->msg_name != NULL && (int)msg->msg_namelen < 0)
		return san_sock_real_fail(EINVAL);
	name = msg->msg_namelen < name ? msg->msg_namelen : name;
	if ((msg->msg_name != NULL && san_sock_touch_is_bad_out(msg->msg_name, name)) ||
	    (msg->msg_control != NULL &&
	     san_sock_touch_is_bad_out(msg->msg_control, msg->msg_controllen)))
		return san_sock_real_fail(EFAULT);
	if ((flags & MSG_ERRQUEUE) != 0)
		return recv_error(fd, f, msg, flags);
	while ((rc = sock_udp_take_rec(fd, f, msg, flags)) == -EAGAIN) {
		if (atomic_load(&shm->orphaned) != 0)
			return san_sock_real_fail(ENETDOWN);
		/* also if the socket is shut down, as in the kernel */
		if ((flags & MSG_DONTWAIT) != 0 || atomic_load(&shm->nonblock) != 0)
			return san_sock_real_fail(EAGAIN);
		if ((atomic_load(&shm->shut) & (SHUT_RD + 1)) != 0) {
			msg->msg_flags = 0;
			msg->msg_namelen = 0;
			return 0;
		}
		err = san_sock_ring_wait_something(fd, f);
		if (err != 0)
			return san_sock_real_fail(err);
	}
	if (rc == -EDEADLK)
		rc = -EAGAIN; /* the interrupted call has the lock, and its datagram */
	return rc < 0 ? san_sock_real_fail((int)-rc) : rc;
}

/* ---- state ---- */

int
san_sock_udp_next(struct fd_sock *f)
{
	struct san_sock_rec *rec;
	uint32_t head, from, key;
	int bytes = 0;

	if (!san_sock_ring_lock_rx(f, &key))
		return 0;
	rec = sock_udp_peek_rec(f, &from, &head);
	if (rec != NULL)
		bytes = (int)rec->bytes;
	san_sock_lock_unlock(&f->shm->rx_lock, key);
	return bytes;
}
