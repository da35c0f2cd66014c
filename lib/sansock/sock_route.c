/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A port with a default route leads everywhere, but it must not be used for this host's own
 * addresses and for what is behind other devices. The kernel's routes decide. A query that needs
 * neither a privilege nor netlink is: from which address would the kernel send? If that is the
 * port's, the route is by the port's device. If the kernel does not have the port's address, it
 * does not own the device, and its routes do not count: the port gets all that is not local.
 *
 * An answer is valid for some seconds, so there is no system call in the steady state (UDP-8).
 */

#include "sock_priv.h"

#define ANSWERS  4096 /* entries of the cache, by address */
#define HOLDS_S  10
#define IS_PORTS 1u /* bit of *answer*; the bits above are the second in which it expires */

/*
 * One thread at a time writes an entry, while *turn* is odd; a reader compares *turn* before and
 * after. An entry of zeros has expired.
 */
static struct {
	_Atomic uint32_t turn, answer;
	_Atomic uint64_t ip[2];
} answers[ANSWERS];

socklen_t
san_sock_route_name(int domain, const uint8_t ip[16], uint16_t service,
		    struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*in6));
	out->ss_family = domain == AF_INET ? AF_INET : AF_INET6;
	in->sin_port = htons(service); /* IPv6 has it at the same place */
	if (domain == AF_INET) {
		memcpy(&in->sin_addr, ip + 12, 4);
		return sizeof(*in);
	}
	memcpy(&in6->sin6_addr, ip, 16);
	return sizeof(*in6);
}

/*
 * Get the address from which the kernel would send to *ip*. 0; -EAGAIN: it can't be asked; or the
 * kernel's error. Makes no call that is a cancellation point.
 */
static int
sock_route_ask(const uint8_t ip[16], uint8_t source[16])
{
	struct sockaddr_storage ss;
	int domain = san_sock_is_v4(ip) ? AF_INET : AF_INET6;
	socklen_t len = san_sock_route_name(domain, ip, 9, &ss); /* nothing is sent */
	uint16_t service;
	int fd = (int)REAL(syscall, SYS_socket, domain, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -EAGAIN;
	rc = REAL(syscall, SYS_connect, fd, &ss, len) != 0 ? -errno : 0;
	len = sizeof(ss);
	if (rc == 0 && REAL(getsockname, fd, (struct sockaddr *)&ss, &len) != 0)
		rc = -EAGAIN;
	REAL(syscall, SYS_close, fd);
	san_sock_read_name(&ss, source, &service);
	return rc;
}

/* Whether the kernel has an address of the port, of the family of *ip*. */
static bool
kernel_shares(const struct shmq_ctl *ctl, const uint8_t ip[16])
{
	uint8_t source[16];
	uint32_t i;

	for (i = 0; i < ctl->nb_addrs; i++)
		if (san_sock_is_v4(ctl->nets[i].ip) == san_sock_is_v4(ip) &&
		    sock_route_ask(ctl->nets[i].ip, source) == 0 &&
		    memcmp(source, ctl->nets[i].ip, 16) == 0)
			return true;
	return false;
}

static bool
sock_route_decide(const struct shmq_ctl *ctl, const uint8_t ip[16], bool is_on_link)
{
	uint8_t source[16];
	int rc = sock_route_ask(ip, source);
	uint32_t i;

	if (rc == -EAGAIN || rc == -ENETUNREACH || rc == -EHOSTUNREACH)
		return true;
	/* a prohibited route, a broadcast, or this host's own address */
	if (rc != 0 || memcmp(source, ip, 16) == 0)
		return false;
	if (is_on_link)
		return true;
	for (i = 0; i < ctl->nb_addrs; i++)
		if (memcmp(ctl->nets[i].ip, source, 16) == 0)
			return true;
	return !kernel_shares(ctl, ip);
}

/* Whether the address belongs, by its form, to this host or to a group. */
static bool
is_special(const uint8_t ip[16])
{
	static const uint8_t loopback[16] = {[15] = 1}, any[16];

	if (san_sock_is_v4(ip))
		return ip[12] == 0 || ip[12] == 127 || ip[12] >= 224;
	return ip[0] == 0xff || memcmp(ip, loopback, 16) == 0 || memcmp(ip, any, 16) == 0;
}

static void
sock_route_remember(size_t at, const uint64_t ip[2], uint32_t answer)
{
	uint32_t turn = atomic_load(&answers[at].turn) & ~1u;

	/* if two threads write, one gives up */
	if (!atomic_compare_exchange_strong(&answers[at].turn, &turn, turn + 1))
		return;
	atomic_store(&answers[at].ip[0], ip[0]);
	atomic_store(&answers[at].ip[1], ip[1]);
	atomic_store(&answers[at].answer, answer);
	atomic_store(&answers[at].turn, turn + 2);
}

static bool
sock_route_recall(size_t at, const uint64_t ip[2], uint32_t *answer)
{
	uint32_t turn = atomic_load_explicit(&answers[at].turn, memory_order_acquire);
	bool is;

	is = atomic_load_explicit(&answers[at].ip[0], memory_order_acquire) == ip[0] &&
		atomic_load_explicit(&answers[at].ip[1], memory_order_acquire) == ip[1];
	*answer = atomic_load_explicit(&answers[at].answer, memory_order_acquire);
	return is && (turn & 1) == 0 &&
		atomic_load_explicit(&answers[at].turn, memory_order_relaxed) == turn;
}

bool
san_sock_route_is_ports(const struct shmq_ctl *ctl, const uint8_t ip[16], bool is_on_link)
{
	uint32_t now_s = (uint32_t)(san_sock_time_ns(CLOCK_MONOTONIC_COARSE) / NS_PER_S), answer;
	uint64_t key[2];
	size_t at;
	KEEP_ERRNO;

	if (is_special(ip))
		return false;
	memcpy(key, ip, sizeof(key));
	at = (size_t)((key[0] ^ key[1]) * 0x9e3779b97f4a7c15ull >> 52) % ANSWERS;
	if (sock_route_recall(at, key, &answer) &&
	    (now_s < answer >> 1 || san_sock_box_is_closed()))
		return (answer & IS_PORTS) != 0;
	if (san_sock_box_is_closed())
		return false; /* the kernel sends to where nothing was sent before */
	answer = (now_s + HOLDS_S) << 1 | (sock_route_decide(ctl, ip, is_on_link) ? IS_PORTS : 0);
	sock_route_remember(at, key, answer);
	return (answer & IS_PORTS) != 0;
}
