/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A socket of our own asks, because asking changes it. TCP asks without sending by
 * TCP_FASTOPEN_CONNECT: connect() goes as far as the first SYN, which it leaves to the first
 * write(). UDP asks by an empty message that only confirms the neighbour (MSG_PROBE).
 *
 * Filters of packets (IPAddressDeny= of systemd) can only be asked with a packet, and are not.
 */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "sock_conf.h"
#include "sock_fd.h"
#include "sock_hooks.h"
#include "sock_real.h"

#define ASKED_BITS 10

#ifndef TCP_FASTOPEN_NO_COOKIE
#define TCP_FASTOPEN_NO_COOKIE 34
#endif
#ifndef TCP_ULP
#define TCP_ULP 31
#endif
#ifndef TCP_MD5SIG_EXT
#define TCP_MD5SIG_EXT 32
#endif
#define TCP_AO_ADD_KEY 38
#define MSG_PROBE_ONLY 0x10 /* MSG_PROBE of the kernel's headers */
#define UDP_ENCAP_PORT 100  /* UDP_ENCAP */

static const struct {
	int level, name;
} kernels[] = {
	{IPPROTO_TCP, TCP_ULP}, /* kTLS */
	{IPPROTO_TCP, TCP_MD5SIG},
	{IPPROTO_TCP, TCP_MD5SIG_EXT},
	{IPPROTO_TCP, TCP_AO_ADD_KEY},
	{IPPROTO_TCP, TCP_REPAIR},
	{IPPROTO_UDP, UDP_ENCAP_PORT},
	{IPPROTO_IP, IP_IPSEC_POLICY},
	{IPPROTO_IP, IP_XFRM_POLICY},
	{IPPROTO_IPV6, IPV6_IPSEC_POLICY},
	{IPPROTO_IPV6, IPV6_XFRM_POLICY},
};

bool
sock_hooks_is_kernels(int level, int name)
{
	size_t i;

	for (i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if (kernels[i].level == level && kernels[i].name == name)
			return true;
	return false;
}

static int
own_socket(const struct sock_file *f, int type)
{
	return REAL(socket)(f->domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static bool
is_refused(int err)
{
	return err == EPERM || err == EACCES;
}

/* ---- TCP ---- */

bool
sock_hooks_connect(const struct sock_file *f, const struct sockaddr *sa, socklen_t len)
{
	const int on = 1;
	int fd = own_socket(f, SOCK_STREAM), was = errno;
	bool may;

	may = fd >= 0 &&
		REAL(setsockopt)(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)) == 0 &&
		REAL(setsockopt)(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof(on)) == 0;
	if (!may)
		sock_conf_tell("a connection is the kernel's",
			       "nobody can be asked: net.ipv4.tcp_fastopen lacks 1");
	else if (REAL(connect)(fd, sa, len) != 0)
		may = !is_refused(errno);
	REAL(close)
	(fd);
	errno = was;
	return may;
}

/* ---- UDP ---- */

/* Which address of which socket; never 0. FNV-1a. */
static uint64_t
hash(const struct sock_file *f, const uint8_t *p, socklen_t len)
{
	uint64_t h = 0xcbf29ce484222325 ^ (uintptr_t)f;
	socklen_t i;

	for (i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3;
	return h | 1;
}

int
sock_hooks_send(const struct sock_file *f, const struct sockaddr *to, socklen_t len)
{
	static _Atomic uint64_t asked[1 << ASKED_BITS];
	const int flags = MSG_PROBE_ONLY | MSG_CONFIRM | MSG_DONTWAIT;
	uint64_t h = hash(f, (const uint8_t *)to, len);
	_Atomic uint64_t *place = &asked[h >> (64 - ASKED_BITS)];
	int fd, was = errno, err = 0;

	if (atomic_load_explicit(place, memory_order_relaxed) == h)
		return 0;
	fd = own_socket(f, SOCK_DGRAM);
	if (fd < 0)
		return errno;
	if (REAL(sendto)(fd, "", 0, flags, to, len) < 0 && is_refused(errno))
		err = errno;
	else
		atomic_store_explicit(place, h, memory_order_relaxed);
	REAL(close)
	(fd);
	errno = was;
	return err;
}
