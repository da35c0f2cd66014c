/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * A TCP socket asks without sending by TCP_FASTOPEN_CONNECT: connect() goes as far as the first
 * SYN, which it leaves to the first write(); connect() to no address undoes it. A UDP socket does
 * by an empty message that is for confirming the neighbour alone (MSG_PROBE).
 *
 * Filters of packets (IPAddressDeny= of systemd) can only be asked with a packet, and are not.
 */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "sock_carry.h"
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

/* ---- TCP ---- */

static int
set(int fd, int name, int v)
{
	return REAL(setsockopt)(fd, IPPROTO_TCP, name, &v, sizeof(v));
}

bool
sock_hooks_connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	static const struct sockaddr none = {.sa_family = AF_UNSPEC};
	socklen_t size = sizeof(int);
	int was = errno, had = 0;
	bool may;

	REAL(getsockopt)
	(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &had, &size);
	may = set(fd, TCP_FASTOPEN_CONNECT, 1) == 0 && set(fd, TCP_FASTOPEN_NO_COOKIE, 1) == 0;
	if (may && REAL(connect)(fd, sa, len) == 0)
		REAL(connect)
	(fd, &none, sizeof(none));
	else if (may)
		may = errno != EPERM && errno != EACCES;
	set(fd, TCP_FASTOPEN_NO_COOKIE, 0);
	set(fd, TCP_FASTOPEN_CONNECT, had);
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

/* 0 or errno. */
static int
probe(int kernel, const struct sockaddr *to, socklen_t len)
{
	const int flags = MSG_PROBE_ONLY | MSG_CONFIRM | MSG_DONTWAIT;

	if (REAL(sendto)(kernel, "", 0, flags, to, len) >= 0)
		return 0;
	return errno == EPERM || errno == EACCES ? errno : 0;
}

int
sock_hooks_send(int fd, struct sock_file *f, const struct sockaddr *to, socklen_t len)
{
	static _Atomic uint64_t asked[1 << ASKED_BITS];
	uint64_t h = hash(f, (const uint8_t *)to, len);
	_Atomic uint64_t *place = &asked[h >> (64 - ASKED_BITS)];
	int kernel, was = errno, err = 0;

	if (atomic_load_explicit(place, memory_order_relaxed) == h)
		return 0;
	kernel = sock_kernel(fd, f);
	if (kernel >= 0)
		err = probe(kernel, to, len);
	if (err == 0)
		atomic_store_explicit(place, h, memory_order_relaxed);
	errno = was;
	return err;
}
