/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * The check uses a temporary socket, because it changes the socket. For TCP,
 * TCP_FASTOPEN_CONNECT checks without sending: connect() makes all checks, but leaves the first SYN
 * to the first write(). For UDP, an empty message that only confirms the neighbour (MSG_PROBE) does
 * it.
 *
 * Packet filters (IPAddressDeny= of systemd) can only be checked by sending a packet, and are not.
 *
 * The library does not see requests by io_uring. A ring that is created by syscall(3) is refused
 * (sock_process.c): then the program uses ordinary calls. A ring that is created by the program's
 * own instruction is found here, if it exists when a socket gets its name. (UDP-11)
 */

#include <dlfcn.h>

#include "sock_priv.h"

#define ASKED_BITS 10
#define HOLDS_NS   100000000 /* validity of an answer, for programs that connect often */
#define FDS_MAX    256       /* only the lowest descriptors are checked */

/* from the kernel's headers */
#define MSG_PROBE_ONLY 0x10 /* MSG_PROBE */

/* ---- TCP ---- */

bool
san_sock_hooks_connect(const struct fd_sock *f, const struct sockaddr *sa, socklen_t len)
{
	const int on = 1;
	int fd = REAL(socket, f->domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool may;
	KEEP_ERRNO;

	may = fd >= 0 &&
		REAL(setsockopt, fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)) == 0 &&
		REAL(setsockopt, fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof(on)) == 0;
	if (!may)
		san_sock_conf_info("a connection is the kernel's",
				   "it cannot be checked: net.ipv4.tcp_fastopen lacks 1");
	else if (REAL(connect, fd, sa, len) != 0)
		may = errno != EPERM && errno != EACCES;
	REAL(close, fd);
	return may;
}

/* ---- UDP ---- */

int
san_sock_hooks_send(const struct fd_sock *f, const struct san_sock_rec *rec,
		    const struct sockaddr *to, socklen_t len)
{
	static _Atomic uint64_t asked[1 << ASKED_BITS];
	const int flags = MSG_PROBE_ONLY | MSG_CONFIRM | MSG_DONTWAIT;
	const uint64_t odd = 0x9e3779b97f4a7c15; /* high bits depend on all lower ones */
	_Atomic uint64_t *place;
	uint64_t w[2], h; /* hash of the address and the socket; never 0 */
	int fd, err = 0;
	KEEP_ERRNO;

	memcpy(w, rec->dst, sizeof(w));
	h = (((w[0] ^ (uintptr_t)f) * odd ^ w[1]) * odd ^ rec->dport) * odd | 1;
	place = &asked[h >> (64 - ASKED_BITS)];
	if (atomic_load_explicit(place, memory_order_relaxed) == h)
		return 0;
	fd = REAL(socket, f->domain, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	if (REAL(sendto, fd, "", 0, flags, to, len) < 0 && (errno == EPERM || errno == EACCES))
		err = errno;
	else
		atomic_store_explicit(place, h, memory_order_relaxed);
	REAL(close, fd);
	return err;
}

/* ---- io_uring ---- */

static bool
has_ring(void)
{
	static const char ring[] = "anon_inode:[io_uring]";
	char path[32], link[sizeof(ring)];
	int fd;

	for (fd = 0; fd < FDS_MAX; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (REAL(syscall, SYS_readlinkat, AT_FDCWD, path, link, sizeof(link)) ==
			    sizeof(ring) - 1 &&
		    memcmp(link, ring, sizeof(ring) - 1) == 0)
			return true;
	}
	return false;
}

bool
san_sock_hooks_has_ring(void)
{
	static _Atomic int64_t until_ns;
	static _Atomic bool has;

	if (atomic_load(&has)) /* what it has asked for may concern later sockets */
		return true;
	if (san_sock_time_ns(CLOCK_MONOTONIC_COARSE) < atomic_load(&until_ns))
		return false;
	atomic_store(&has, dlsym(RTLD_DEFAULT, "io_uring_queue_init") != NULL || has_ring());
	atomic_store(&until_ns, san_sock_time_ns(CLOCK_MONOTONIC_COARSE) + HOLDS_NS);
	return atomic_load(&has);
}
