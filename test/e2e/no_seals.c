/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Preloaded into a daemon: reports memory as sealed that is not. So a test can let its memory fail
 * under the daemon, as memory does that is defective or that the kernel lacks. (SYS-5)
 */

#include <linux/fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

/* not <fcntl.h>: with large files it declares both under one name */
int fcntl(int fd, int cmd, ...);
int fcntl64(int fd, int cmd, ...);

static int
call(int fd, int cmd, long arg)
{
	long rc = syscall(SYS_fcntl, fd, cmd, arg);

	return cmd == F_GET_SEALS && rc >= 0 ? (int)rc | F_SEAL_SHRINK : (int)rc;
}

#define FORWARD(name)                      \
	int name(int fd, int cmd, ...)     \
	{                                  \
		va_list ap;                \
		long arg;                  \
                                           \
		va_start(ap, cmd);         \
		arg = va_arg(ap, long);    \
		va_end(ap);                \
		return call(fd, cmd, arg); \
	}

FORWARD(fcntl)
FORWARD(fcntl64)
