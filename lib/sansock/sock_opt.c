/* SPDX-License-Identifier: BSD-3-Clause */

#include <net/if.h>

#include "sock_priv.h"

#define VALUE_MAX 128 /* longer values are not compared */

/*
 * Which options only the kernel has. A socket that gets one before it is carried stays with the
 * kernel. A carried UDP socket goes back to the kernel if that has the port's device. A stream, or
 * a socket of a port without such a device, refuses the option (ENOPROTOOPT). (UDP-9)
 */
static const struct known {
	int level;
	enum sock_opt_kind udp, tcp;
	const char *texts;
	int names[SOCK_OPT_NAMES + 1]; /* ends with 0 */
} known[] = {
#define SOCK_OPT_ROW(level, udp, tcp, ...) \
	{level, SOCK_OPT_##udp, SOCK_OPT_##tcp, #__VA_ARGS__, {__VA_ARGS__}},
	SOCK_OPT_LIST(SOCK_OPT_ROW)
#undef SOCK_OPT_ROW
};

/* Options of a newer kernel may change how packets are sent, so they are the kernel's. */
static enum sock_opt_kind
kind_of(const struct fd_sock *f, int level, int name, char text[SOCK_OPT_TEXT])
{
	const struct known *k;
	int i;

	for (k = known; k < &known[sizeof(known) / sizeof(known[0])]; k++) {
		for (i = 0; k->level == level && k->names[i] != 0; i++) {
			if (k->names[i] != name)
				continue;
			sock_opt_text(k->texts, i, text);
			return f->is_udp ? k->udp : k->tcp;
		}
	}
	strcpy(text, "an option that is not known");
	return level == SOL_SOCKET || level == IPPROTO_IP || level == IPPROTO_IPV6 ||
			level == (f->is_udp ? IPPROTO_UDP : IPPROTO_TCP) ?
		SOCK_OPT_KERNELS :
		SOCK_OPT_CARRIED;
}

/* Whether the kernel's socket has that value already; what a shorter one lacks counts as 0. */
static bool
has_it(int kernel, int level, int name, const void *value, socklen_t len)
{
	uint8_t now[VALUE_MAX] = {0}, wanted[VALUE_MAX] = {0};
	socklen_t got = sizeof(now);

	/* the length of a filter would be a number of instructions */
	if (len == 0 || len > sizeof(wanted) || (level == SOL_SOCKET && name == SO_GET_FILTER))
		return false;
	memcpy(wanted, value, len);
	return REAL(getsockopt, kernel, level, name, now, &got) == 0 && got != 0 &&
		memcmp(now, wanted, sizeof(now)) == 0;
}

/* Whether the option names a device other than the port's. */
static bool
is_other_device(const struct fd_sock *f, int name, const void *value, socklen_t len)
{
	char device[IF_NAMESIZE] = "";
	uint32_t index;

	if (!atomic_load(&f->carried))
		return false; /* the daemon checks the device when the socket is carried */
	if (name == SO_BINDTOIFINDEX) {
		if (len < sizeof(index))
			return false;
		memcpy(&index, value, sizeof(index));
		return index != 0 && index != f->shm->if_index;
	}
	memcpy(device, value, len < sizeof(device) ? len : sizeof(device) - 1);
	return device[0] != '\0' && if_nametoindex(device) != f->shm->if_index;
}

bool
san_sock_opt_is_kernels(int kernel, const struct fd_sock *f, int level, int name,
			const void *value, socklen_t len, char text[SOCK_OPT_TEXT])
{
	enum sock_opt_kind kind = kind_of(f, level, name, text);
	int v = 0;

	if (len != 0 && san_sock_touch_is_bad(value, len))
		return false; /* the kernel returns the error */
	if (level == SOL_SOCKET && (name == SO_BINDTODEVICE || name == SO_BINDTOIFINDEX))
		return is_other_device(f, name, value, len);
	if (len >= sizeof(v))
		memcpy(&v, value, sizeof(v));
	if (level == SOL_SOCKET && name == SO_RCVLOWAT && v <= 1)
		return false;
	/* INTERFACE uses the device's MTU and not the path's; so does OMIT, which then fragments */
	if (f->is_udp && level == IPPROTO_IP && name == IP_MTU_DISCOVER)
		return v == IP_PMTUDISC_INTERFACE || v == IP_PMTUDISC_OMIT;
	if (f->is_udp && level == IPPROTO_IPV6 && name == IPV6_MTU_DISCOVER)
		return v == IPV6_PMTUDISC_INTERFACE || v == IPV6_PMTUDISC_OMIT;
	/* with 0 no packet leaves this host; in a record 0 means the socket's value */
	if (level == IPPROTO_IPV6 && name == IPV6_UNICAST_HOPS && len >= sizeof(v) && v == 0)
		return true;
	return kind == SOCK_OPT_KERNELS && !has_it(kernel, level, name, value, len);
}

/* ---- options of which the library or the daemon takes part ---- */

/*
 * Options that add control messages to each datagram: the library adds them. The kernel's socket
 * has most of them turned on for the daemon.
 */
static const struct {
	int level, name, message;
	uint32_t bit;
} ours[] = {
	{SOL_SOCKET, SO_TIMESTAMP, SCM_TIMESTAMP, SAN_SOCK_TIMESTAMP},
	{SOL_SOCKET, SO_TIMESTAMPNS, SCM_TIMESTAMPNS, SAN_SOCK_TIMESTAMPNS},
	{SOL_SOCKET, SO_RXQ_OVFL, SO_RXQ_OVFL, SAN_SOCK_RXQ_OVFL},
	{IPPROTO_IP, IP_PKTINFO, IP_PKTINFO, SAN_SOCK_PKTINFO},
	{IPPROTO_IP, IP_RECVTTL, IP_TTL, SAN_SOCK_RECVTTL},
	{IPPROTO_IP, IP_RECVTOS, IP_TOS, SAN_SOCK_RECVTOS},
	{IPPROTO_IPV6, IPV6_RECVPKTINFO, IPV6_PKTINFO, SAN_SOCK_PKTINFO6},
	{IPPROTO_IPV6, IPV6_RECVHOPLIMIT, IPV6_HOPLIMIT, SAN_SOCK_RECVHOPS6},
	{IPPROTO_IPV6, IPV6_RECVTCLASS, IPV6_TCLASS, SAN_SOCK_RECVTCLASS6},
};

uint32_t
san_sock_opt_bit(const struct fd_sock *f, int level, int name, bool is_message)
{
	size_t i;

	for (i = 0; f->is_udp && i < sizeof(ours) / sizeof(ours[0]); i++)
		if (ours[i].level == level && (is_message ? ours[i].message : ours[i].name) == name)
			return ours[i].bit;
	return 0;
}

int
san_sock_opt_int(int fd, int level, int name, int otherwise)
{
	socklen_t len = sizeof(int);
	int v = 0;

	return REAL(getsockopt, fd, level, name, &v, &len) == 0 ? v : otherwise;
}

void
san_sock_opt_stream(int kernel, struct fd_sock *f)
{
	uint32_t timeout_ms = san_sock_opt_int(kernel, IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
	bool probes = san_sock_opt_int(kernel, SOL_SOCKET, SO_KEEPALIVE, 0) != 0;
	struct san_sock_shm *shm = f->shm;
	struct linger l = {0};
	socklen_t len = sizeof(l);

	if (REAL(getsockopt, kernel, SOL_SOCKET, SO_LINGER, &l, &len) == 0)
		atomic_store(&shm->linger, l.l_onoff == 0 ? 0 : (uint32_t)l.l_linger + 1);
	if (timeout_ms == 0 && !probes && atomic_load(&shm->nb_timeout_changes) == 0)
		return; /* TCP's defaults apply already */
	atomic_store(&shm->timeout_ms, timeout_ms);
	atomic_store(&shm->idle_s,
		     probes ? san_sock_opt_int(kernel, IPPROTO_TCP, TCP_KEEPIDLE, 0) : 0);
	atomic_store(&shm->every_s, san_sock_opt_int(kernel, IPPROTO_TCP, TCP_KEEPINTVL, 0));
	atomic_store(&shm->probes, san_sock_opt_int(kernel, IPPROTO_TCP, TCP_KEEPCNT, 0));
	atomic_fetch_add(&shm->nb_timeout_changes, 1);
	san_sock_attach_doorbell(f);
}

void
san_sock_opt_note(struct fd_sock *f, int level, int name, const void *value, socklen_t len)
{
	uint32_t nb = atomic_load(&f->nb_groups), i;
	uint8_t group[16];
	bool leaves;

	if (!san_sock_opt_group(level, name, value, len, group, &leaves))
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
	size_t i;

	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (san_sock_opt_int(fd, ours[i].level, ours[i].name, 0) != 0)
			bits |= ours[i].bit;
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
				REAL(setsockopt, kernel, ours[i].level, ours[i].name, &v,
				     sizeof(v));
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

/* ---- groups ---- */

bool
san_sock_opt_group(int level, int name, const void *value, socklen_t len, uint8_t group[16],
		   bool *leaves)
{
	const struct group_req *req = value;
	uint16_t service;

	*leaves = (level == IPPROTO_IP && name == IP_DROP_MEMBERSHIP) ||
		(level == IPPROTO_IPV6 && name == IPV6_LEAVE_GROUP) || name == MCAST_LEAVE_GROUP;
	if (level == IPPROTO_IP && (name == IP_ADD_MEMBERSHIP || name == IP_DROP_MEMBERSHIP) &&
	    len >= sizeof(struct ip_mreq)) {
		san_sock_from_v4(group, value); /* the first field of ip_mreq and of ip_mreqn */
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
	san_sock_read_name(&req->gr_group, group, &service);
	return true;
}

int
san_sock_opt_follow_group(int fd, const uint8_t group[16], bool leaves)
{
	struct shmq_req req = {0};

	req.sock.leaves = leaves;
	memcpy(req.sock.group, group, 16);
	return san_sock_attach_ask(SHMQ_SOCK_GROUP, fd, &req, NULL, NULL);
}
