/* SPDX-License-Identifier: BSD-3-Clause */

#include <dlfcn.h>
#include <stdlib.h>

#include "sock_priv.h"

struct sock_real sock_real;

void
san_sock_real_find(void *field, const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (found == NULL) {
		fputs("libsansock: the C library lacks a function that it must have\n", stderr);
		abort();
	}
	/* other threads may store the same value */
	__atomic_store_n((void **)field, found, __ATOMIC_RELEASE);
}

/* ---- a confined process ---- */

_Atomic bool sock_box_is_closed;

/* What poll() reports at once. */
static short
state_of(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

#ifdef SYS_poll
	if (REAL(syscall, SYS_poll, &p, 1, 0) <= 0)
		return 0;
#else /* newer architectures have only this one */
	static const struct timespec zero;

	if (REAL(syscall, SYS_ppoll, &p, 1, &zero, NULL, 0) <= 0)
		return 0;
#endif
	return p.revents;
}

long
san_sock_box_recv(int fd, bool peeks)
{
	char byte;
	short is;

	if (!san_sock_box_is_closed())
		return REAL(syscall, SYS_recvfrom, fd, &byte, 1,
			    MSG_DONTWAIT | (peeks ? MSG_PEEK : 0), NULL, NULL);
	is = state_of(fd, POLLIN);
	if ((is & (POLLIN | POLLHUP)) == 0)
		return -1;
	if (peeks)
		return (is & POLLHUP) == 0;
	return REAL(syscall, SYS_read, fd, &byte, 1);
}

long
san_sock_box_send(int fd, const void *data, size_t len)
{
	if (!san_sock_box_is_closed())
		return REAL(syscall, SYS_sendto, fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL, NULL,
			    0);
	if (state_of(fd, POLLOUT) == 0)
		return san_sock_real_fail(EAGAIN);
	/* the kernel raises no SIGPIPE for sockets that preserve messages */
	return REAL(syscall, SYS_write, fd, data, len);
}
