/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/sockios.h>

#include "sock_attach.h"
#include "sock_carry.h"
#include "sock_opt.h"
#include "sock_priv.h"
#include "sock_real.h"
#include "sock_ring.h"
#include "sock_tcp.h"
#include "sock_udp.h"

#define HEADS_V4 52 /* bytes of the headers of IP and TCP, with timestamps */
#define HEADS_V6 72

/*
 * Options that add control messages to each datagram: the library adds them. The kernel's socket
 * has most of them turned on for the daemon.
 */
static const struct {
	int level, name;
	uint32_t bit;
} ours[] = {
	{SOL_SOCKET, SO_TIMESTAMP, SAN_SOCK_TIMESTAMP},
	{SOL_SOCKET, SO_TIMESTAMPNS, SAN_SOCK_TIMESTAMPNS},
	{SOL_SOCKET, SO_RXQ_OVFL, SAN_SOCK_RXQ_OVFL},
	{IPPROTO_IP, IP_PKTINFO, SAN_SOCK_PKTINFO},
	{IPPROTO_IP, IP_RECVTTL, SAN_SOCK_RECVTTL},
	{IPPROTO_IP, IP_RECVTOS, SAN_SOCK_RECVTOS},
	{IPPROTO_IPV6, IPV6_RECVPKTINFO, SAN_SOCK_PKTINFO6},
	{IPPROTO_IPV6, IPV6_RECVHOPLIMIT, SAN_SOCK_RECVHOPS6},
	{IPPROTO_IPV6, IPV6_RECVTCLASS, SAN_SOCK_RECVTCLASS6},
};

static uint32_t
our_bit(const struct fd_sock *f, int level, int name)
{
	size_t i;

	for (i = 0; f->is_udp && i < sizeof(ours) / sizeof(ours[0]); i++)
		if (ours[i].level == level && ours[i].name == name)
			return ours[i].bit;
	return 0;
}

static int
give_int(int v, void *value, socklen_t *len)
{
	if (*len > sizeof(v))
		*len = sizeof(v);
	if (san_sock_touch_is_bad_out(value, *len))
		return san_sock_real_fail(EFAULT);
	memcpy(value, &v, *len);
	return 0;
}

/* Segment size that TCP would use on the port, with timestamps. */
static uint32_t
sock_opt_max_segment(const struct fd_sock *f)
{
	return f->shm->mtu - (f->shm->local.family == AF_INET ? HEADS_V4 : HEADS_V6);
}

int
san_sock_opt_get(int fd, struct fd_sock *f, int level, int name, void *value, socklen_t *len)
{
	uint32_t bit = our_bit(f, level, name);
	struct tcp_info info;
	int kernel, rc;

	if (san_sock_touch_is_bad_out(len, sizeof(*len)))
		return san_sock_real_fail(EFAULT);
	if ((int)*len < 0)
		return san_sock_real_fail(EINVAL);
	if (bit != 0)
		return give_int((atomic_load(&f->shm->options) & bit) != 0, value, len);
	/* not the kernel's: the daemon passes its errors on, and one must not be returned twice */
	if (level == SOL_SOCKET && name == SO_ERROR)
		return give_int(san_sock_ring_take_error(f), value, len);
	if (f->is_udp && level == SOL_SOCKET && name == SO_GET_FILTER) {
		*len = 0; /* the kernel's socket has the daemon's filter; the program has none */
		return 0;
	}
	if (!f->is_udp && level == SOL_SOCKET && name == SO_PEERNAME)
		return san_sock_tcp_name(f, true, value, len);
	if (!f->is_udp && level == IPPROTO_TCP && name == TCP_MAXSEG)
		return give_int((int)sock_opt_max_segment(f), value, len);
	kernel = san_sock_carry_kernel(fd, f);
	rc = kernel < 0 ? san_sock_real_fail(ENETDOWN) :
			  REAL(getsockopt, kernel, level, name, value, len);
	if (rc != 0 || f->is_udp || level != IPPROTO_TCP || name != TCP_INFO)
		return rc;
	/* the kernel's socket is not connected: return the stream's state instead */
	info = (struct tcp_info){
		.tcpi_state = (uint8_t)san_sock_tcp_state(f),
		.tcpi_snd_mss = sock_opt_max_segment(f),
		.tcpi_rcv_mss = sock_opt_max_segment(f),
		.tcpi_advmss = sock_opt_max_segment(f),
		.tcpi_pmtu = f->shm->mtu,
	};
	memset(value, 0, *len);
	memcpy(value, &info, *len < sizeof(info) ? *len : sizeof(info));
	return 0;
}

static bool
is_time(int level, int name)
{
	return level == SOL_SOCKET &&
		(name == SO_RCVTIMEO || name == SO_SNDTIMEO || name == SO_RCVTIMEO_NEW ||
		 name == SO_SNDTIMEO_NEW);
}

/* The group in *value*, and whether it is left. False: the option is not about a group. */
static bool
about_group(int level, int name, const void *value, socklen_t len, uint8_t group[16], bool *leaves)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const struct group_req *req = value;

	*leaves = (level == IPPROTO_IP && name == IP_DROP_MEMBERSHIP) ||
		(level == IPPROTO_IPV6 && name == IPV6_LEAVE_GROUP) || name == MCAST_LEAVE_GROUP;
	memcpy(group, mapped, sizeof(mapped));
	if (level == IPPROTO_IP && (name == IP_ADD_MEMBERSHIP || name == IP_DROP_MEMBERSHIP) &&
	    len >= sizeof(struct ip_mreq)) {
		memcpy(group + 12, value, 4); /* the first field of ip_mreq and of ip_mreqn */
		return true;
	}
	if (level == IPPROTO_IPV6 && (name == IPV6_JOIN_GROUP || name == IPV6_LEAVE_GROUP) &&
	    len >= sizeof(struct ipv6_mreq)) {
		memcpy(group, value, 16);
		return true;
	}
	if ((level != IPPROTO_IP && level != IPPROTO_IPV6) || len < sizeof(*req) ||
	    (name != MCAST_JOIN_GROUP && name != MCAST_LEAVE_GROUP))
		return false;
	if (req->gr_group.ss_family == AF_INET)
		memcpy(group + 12, &((const struct sockaddr_in *)&req->gr_group)->sin_addr, 4);
	else
		memcpy(group, &((const struct sockaddr_in6 *)&req->gr_group)->sin6_addr, 16);
	return true;
}

/* Join or leave the group for the carried socket, as for the kernel's. */
static int
sock_opt_follow_group(int fd, const uint8_t group[16], bool leaves)
{
	struct shmq_req req = {0};
	struct shmq_rep rep;

	req.sock.leaves = leaves;
	memcpy(req.sock.group, group, 16);
	return san_sock_attach_ask(SHMQ_SOCK_GROUP, fd, &req, &rep, NULL);
}

/* Read as the kernel does: an IPv4 option may have one byte, or none. 0 or errno. */
static int
read_flag(int level, const void *value, socklen_t len, int *v)
{
	if (len < sizeof(*v) && level != IPPROTO_IP)
		return EINVAL;
	if (san_sock_touch_is_bad(value, len < sizeof(*v) ? len : sizeof(*v)))
		return EFAULT;
	*v = 0;
	if (len >= sizeof(*v))
		memcpy(v, value, sizeof(*v));
	else if (len != 0)
		*v = *(const uint8_t *)value;
	return 0;
}

int
san_sock_opt_set(int fd, struct fd_sock *f, int level, int name, const void *value, socklen_t len)
{
	uint32_t bit = our_bit(f, level, name);
	int v = 0, rc, kernel;
	uint8_t group[16];
	const char *text;
	bool leaves;

	if (bit != 0) {
		rc = read_flag(level, value, len, &v);
		if (rc != 0)
			return san_sock_real_fail(rc);
		if (v != 0)
			atomic_fetch_or(&f->shm->options, bit);
		else
			atomic_fetch_and(&f->shm->options, ~bit);
		return 0;
	}
	if (len != 0 && san_sock_touch_is_bad(value, len))
		return san_sock_real_fail(EFAULT);
	kernel = san_sock_carry_kernel(fd, f);
	if (kernel < 0)
		return san_sock_real_fail(ENETDOWN);
	if (f->is_udp && level == SOL_SOCKET && name == SO_DETACH_FILTER)
		/* the filter is the daemon's */
		return san_sock_real_fail(len < sizeof(v) ? EINVAL : ENOENT);
	/* only valid before connect(): the kernel's socket, not connected, would accept them */
	if (!f->is_udp && level == IPPROTO_TCP &&
	    (name == TCP_FASTOPEN || name == TCP_FASTOPEN_CONNECT ||
	     name == TCP_FASTOPEN_NO_COOKIE))
		return san_sock_real_fail(EINVAL);
	/* or refuse it as a kernel without the option does: programs are prepared for that */
	if (san_sock_opt_kind_is_kernels(kernel, f, level, name, value, len, &text)) {
		if (!san_sock_carry_can_give_back(f)) {
			san_sock_conf_info("an option of a carried socket is refused", text);
			return san_sock_real_fail(ENOPROTOOPT);
		}
		/* a refused option must change nothing; a filter would replace the daemon's */
		if ((level != SOL_SOCKET ||
		     (name != SO_ATTACH_FILTER && name != SO_ATTACH_BPF &&
		      name != SO_LOCK_FILTER)) &&
		    REAL(setsockopt, kernel, level, name, value, len) != 0)
			return -1;
		return san_sock_carry_give_back(fd, f, text) ?
			setsockopt(fd, level, name, value, len) :
			san_sock_real_fail(ENOPROTOOPT);
	}
	rc = REAL(setsockopt, kernel, level, name, value, len);
	if (rc == 0 && about_group(level, name, value, len, group, &leaves)) {
		if (sock_opt_follow_group(fd, group, leaves) == 0 || leaves) {
			/* for san_sock_carry_return() */
			san_sock_opt_note(f, level, name, value, len);
			return 0;
		}
		/* the port would not receive the group: undo it, with errno for lack of room */
		name = name == MCAST_JOIN_GROUP   ? MCAST_LEAVE_GROUP :
			name == IP_ADD_MEMBERSHIP ? IP_DROP_MEMBERSHIP :
						    IPV6_LEAVE_GROUP;
		REAL(setsockopt, kernel, level, name, value, len);
		return san_sock_real_fail(ENOBUFS);
	}
	if (rc == 0 && is_time(level, name)) /* calls wait by these */
		san_sock_opt_times(kernel, fd);
	else if (rc == 0 && f->is_udp)
		san_sock_carry_sync(fd, f);
	else if (rc == 0 && (level == SOL_SOCKET || level == IPPROTO_TCP))
		san_sock_opt_stream(kernel, f);
	return rc;
}

static uint32_t
sock_opt_kernel_number(int kernel, int level, int name)
{
	uint32_t v = 0;
	socklen_t len = sizeof(v);

	return REAL(getsockopt, kernel, level, name, &v, &len) == 0 ? v : 0;
}

void
san_sock_opt_stream(int kernel, struct fd_sock *f)
{
	uint32_t timeout_ms = sock_opt_kernel_number(kernel, IPPROTO_TCP, TCP_USER_TIMEOUT);
	bool probes = sock_opt_kernel_number(kernel, SOL_SOCKET, SO_KEEPALIVE) != 0;
	struct san_sock_shm *shm = f->shm;
	struct linger l = {0};
	socklen_t len = sizeof(l);

	if (REAL(getsockopt, kernel, SOL_SOCKET, SO_LINGER, &l, &len) == 0)
		atomic_store(&shm->linger, l.l_onoff == 0 ? 0 : (uint32_t)l.l_linger + 1);
	if (timeout_ms == 0 && !probes && atomic_load(&shm->nb_timeout_changes) == 0)
		return; /* TCP's defaults apply already */
	atomic_store(&shm->timeout_ms, timeout_ms);
	atomic_store(&shm->idle_s,
		     probes ? sock_opt_kernel_number(kernel, IPPROTO_TCP, TCP_KEEPIDLE) : 0);
	atomic_store(&shm->every_s, sock_opt_kernel_number(kernel, IPPROTO_TCP, TCP_KEEPINTVL));
	atomic_store(&shm->probes, sock_opt_kernel_number(kernel, IPPROTO_TCP, TCP_KEEPCNT));
	atomic_fetch_add(&shm->nb_timeout_changes, 1);
	san_sock_attach_doorbell(f);
}

void
san_sock_opt_note(struct fd_sock *f, int level, int name, const void *value, socklen_t len)
{
	uint32_t nb = atomic_load(&f->nb_groups), i;
	uint8_t group[16];
	bool leaves;

	if (!about_group(level, name, value, len, group, &leaves))
		return;
	for (i = 0; i < nb && memcmp(f->groups[i], group, sizeof(group)) != 0; i++)
		;
	if (leaves && i < nb) {
		memcpy(f->groups[i], f->groups[nb - 1], sizeof(group));
		atomic_store(&f->nb_groups, nb - 1);
	} else if (!leaves && i == nb && nb < SOCK_GROUPS) {
		memcpy(f->groups[nb], group, sizeof(group));
		atomic_store(&f->nb_groups, nb + 1);
	}
}

uint32_t
san_sock_opt_bits(int fd)
{
	uint32_t bits = 0;
	socklen_t len;
	size_t i;
	int v;

	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		len = sizeof(v);
		v = 0;
		if (REAL(getsockopt, fd, ours[i].level, ours[i].name, &v, &len) == 0 && v != 0)
			bits |= ours[i].bit;
	}
	return bits;
}

void
san_sock_opt_restore(int kernel, const struct fd_sock *f)
{
	uint32_t bits = atomic_load(&f->shm->options);
	int flags = REAL(fcntl, kernel, F_GETFL), none = 0, v;
	size_t i;

	REAL(setsockopt, kernel, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none));
	/* turning one off may turn off another, so those that are on come last */
	for (v = 0; v < 2; v++)
		for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
			if (((bits & ours[i].bit) != 0) == (v != 0))
				REAL(setsockopt, kernel, ours[i].level, ours[i].name, &v, sizeof(v));
	if ((atomic_load(&f->shm->shut) & (SHUT_RD + 1)) != 0)
		REAL(shutdown, kernel, SHUT_RD);
	flags = atomic_load(&f->shm->nonblock) != 0 ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	REAL(fcntl, kernel, F_SETFL, flags);
}

void
san_sock_opt_times(int fd, int shadow)
{
	static const int names[] = {SO_RCVTIMEO, SO_SNDTIMEO};
	struct timeval tv;
	socklen_t len;
	size_t i;

	for (i = 0; i < 2; i++) {
		len = sizeof(tv);
		if (REAL(getsockopt, fd, SOL_SOCKET, names[i], &tv, &len) == 0)
			REAL(setsockopt, shadow, SOL_SOCKET, names[i], &tv, len);
	}
}

void
san_sock_opt_inherit(int fd, struct fd_sock *f)
{
	uint32_t i;

	for (i = 0; i < atomic_load(&f->nb_groups); i++)
		sock_opt_follow_group(fd, f->groups[i], false);
}

int
san_sock_opt_connect(int fd, struct fd_sock *f, const struct sockaddr *sa, socklen_t len)
{
	int kernel, rc;

	if (len < sizeof(sa->sa_family))
		return san_sock_real_fail(EINVAL);
	if (san_sock_touch_is_bad(sa, len))
		return san_sock_real_fail(EFAULT);
	if (!f->is_udp)
		return sa->sa_family == AF_UNSPEC && san_sock_carry_disconnect(fd, f) == 0 ?
			0 :
			san_sock_real_fail(EISCONN);
	kernel = san_sock_carry_kernel(fd, f);
	if (kernel < 0)
		return san_sock_real_fail(ENETDOWN);
	rc = REAL(connect, kernel, sa, len);
	if (rc == 0)
		san_sock_carry_sync(fd, f);
	return rc;
}

int
san_sock_opt_name(int fd, struct fd_sock *f, bool peer, struct sockaddr *sa, socklen_t *len)
{
	int kernel;

	if (!f->is_udp)
		return san_sock_tcp_name(f, peer, sa, len);
	kernel = san_sock_carry_kernel(fd, f);
	if (kernel < 0)
		return san_sock_real_fail(ENETDOWN);
	return peer ? REAL(getpeername, kernel, sa, len) : REAL(getsockname, kernel, sa, len);
}

int
san_sock_opt_shutdown(int fd, struct fd_sock *f, int how)
{
	int kernel, rc, err;

	if (!f->is_udp)
		return san_sock_tcp_shutdown(fd, f, how);
	kernel = san_sock_carry_kernel(fd, f);
	if (kernel < 0)
		return san_sock_real_fail(ENETDOWN);
	/* not for SHUT_RD: the kernel's socket would be readable for ever */
	rc = how == SHUT_RD ? 0 : REAL(shutdown, kernel, SHUT_WR);
	if (rc == 0 && f->shm->peer.family == 0)
		rc = san_sock_real_fail(ENOTCONN); /* as the kernel, which shuts it down, too */
	err = errno;
	if (how != SHUT_WR)
		atomic_fetch_or(&f->shm->shut, SHUT_RD + 1);
	if (how != SHUT_RD)
		atomic_fetch_or(&f->shm->shut, SHUT_WR + 1);
	san_sock_attach_doorbell(f); /* wakes threads that wait to read */
	errno = err;
	return rc;
}

int
san_sock_opt_ioctl(int fd, struct fd_sock *f, unsigned long request, void *arg)
{
	int kernel, rc;

	if (request == FIONREAD) {
		if (san_sock_touch_is_bad_out(arg, sizeof(int)))
			return san_sock_real_fail(EFAULT);
		*(int *)arg = f->is_udp ? san_sock_udp_next(f) : san_sock_tcp_unread(f);
		return 0;
	}
	if (request == TIOCOUTQ && !f->is_udp) {
		if (san_sock_touch_is_bad_out(arg, sizeof(int)))
			return san_sock_real_fail(EFAULT);
		*(int *)arg = san_sock_tcp_unsent(f);
		return 0;
	}
	if (request == FIONBIO) {
		rc = REAL(ioctl, fd, request, arg);
		if (rc == 0)
			atomic_store(&f->shm->nonblock, *(const int *)arg != 0);
		return rc;
	}
	if (f->is_udp && (request == SIOCGSTAMP || request == SIOCGSTAMPNS))
		return san_sock_udp_stamp(f, request == SIOCGSTAMPNS, arg);
	if (request == FIOASYNC) {
		rc = REAL(ioctl, fd, request, arg);
		if (rc == 0 && *(const int *)arg != 0)
			san_sock_carry_arm(f, EPOLLET, true); /* each burst brings a signal */
		return rc;
	}
	if (request == FIOCLEX || request == FIONCLEX || request == FIOSETOWN ||
	    request == FIOGETOWN || request == SIOCSPGRP || request == SIOCGPGRP)
		return REAL(ioctl, fd, request, arg);
	kernel = san_sock_carry_kernel(fd, f);
	return kernel < 0 ? san_sock_real_fail(ENETDOWN) : REAL(ioctl, kernel, request, arg);
}

int
san_sock_opt_fcntl(int fd, struct fd_sock *f, int cmd, void *arg)
{
	int rc = REAL(fcntl, fd, cmd, arg);

	if (cmd != F_SETFL || rc != 0)
		return rc;
	atomic_store(&f->shm->nonblock, ((intptr_t)arg & O_NONBLOCK) != 0);
	if (((intptr_t)arg & O_ASYNC) != 0)
		san_sock_carry_arm(f, EPOLLET, true); /* each burst brings a signal */
	return rc;
}
