/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * The C library's functions that the library intercepts. Each is looked up on first use, because
 * constructors of other libraries may call before ours has run. (UDP-1)
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/** name, result type, parameter types */
#define SOCK_REALS(X)                                                                            \
	X(socket, int, (int, int, int))                                                          \
	X(bind, int, (int, const struct sockaddr *, socklen_t))                                  \
	X(connect, int, (int, const struct sockaddr *, socklen_t))                               \
	X(getsockname, int, (int, struct sockaddr *, socklen_t *))                               \
	X(getpeername, int, (int, struct sockaddr *, socklen_t *))                               \
	X(getsockopt, int, (int, int, int, void *, socklen_t *))                                 \
	X(setsockopt, int, (int, int, int, const void *, socklen_t))                             \
	X(accept, int, (int, struct sockaddr *, socklen_t *))                                    \
	X(accept4, int, (int, struct sockaddr *, socklen_t *, int))                              \
	X(listen, int, (int, int))                                                               \
	X(socketpair, int, (int, int, int, int[2]))                                              \
	X(shutdown, int, (int, int))                                                             \
	X(close, int, (int))                                                                     \
	X(close_range, int, (unsigned int, unsigned int, int))                                   \
	X(closefrom, void, (int))                                                                \
	X(fclose, int, (void *))                                                                 \
	X(fdopen, void *, (int, const char *))                                                   \
	X(freopen, void *, (const char *, const char *, void *))                                 \
	X(perror, void, (const char *))                                                          \
	X(__vdprintf_chk, int, (int, int, const char *, va_list))                                \
	X(dup, int, (int))                                                                       \
	X(dup2, int, (int, int))                                                                 \
	X(dup3, int, (int, int, int))                                                            \
	X(fcntl, int, (int, int, ...))                                                           \
	X(ioctl, int, (int, unsigned long, ...))                                                 \
	X(read, ssize_t, (int, void *, size_t))                                                  \
	X(readv, ssize_t, (int, const struct iovec *, int))                                      \
	X(recv, ssize_t, (int, void *, size_t, int))                                             \
	X(recvfrom, ssize_t, (int, void *, size_t, int, struct sockaddr *, socklen_t *))         \
	X(recvmsg, ssize_t, (int, struct msghdr *, int))                                         \
	X(recvmmsg, int, (int, struct mmsghdr *, unsigned int, int, struct timespec *))          \
	X(write, ssize_t, (int, const void *, size_t))                                           \
	X(writev, ssize_t, (int, const struct iovec *, int))                                     \
	X(send, ssize_t, (int, const void *, size_t, int))                                       \
	X(sendto, ssize_t, (int, const void *, size_t, int, const struct sockaddr *, socklen_t)) \
	X(sendmsg, ssize_t, (int, const struct msghdr *, int))                                   \
	X(sendmmsg, int, (int, struct mmsghdr *, unsigned int, int))                             \
	X(sendfile, ssize_t, (int, int, off_t *, size_t))                                        \
	X(splice, ssize_t, (int, loff_t *, int, loff_t *, size_t, unsigned int))                 \
	X(poll, int, (struct pollfd *, nfds_t, int))                                             \
	X(ppoll, int, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *))      \
	X(select, int, (int, fd_set *, fd_set *, fd_set *, struct timeval *))                    \
	X(pselect, int,                                                                          \
	  (int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *))        \
	X(epoll_create, int, (int))                                                              \
	X(epoll_create1, int, (int))                                                             \
	X(epoll_ctl, int, (int, int, int, struct epoll_event *))                                 \
	X(epoll_wait, int, (int, struct epoll_event *, int, int))                                \
	X(epoll_pwait, int, (int, struct epoll_event *, int, int, const sigset_t *))             \
	X(epoll_pwait2, int,                                                                     \
	  (int, struct epoll_event *, int, const struct timespec *, const sigset_t *))           \
	X(munmap, int, (void *, size_t))                                                         \
	X(mprotect, int, (void *, size_t, int))                                                  \
	X(mremap, void *, (void *, size_t, size_t, int, ...))                                    \
	X(preadv2, ssize_t, (int, const struct iovec *, int, off_t, int))                        \
	X(pwritev2, ssize_t, (int, const struct iovec *, int, off_t, int))                       \
	X(clone, int, (int (*)(void *), void *, int, void *, ...))                               \
	X(_Fork, pid_t, (void))                                                                  \
	X(syscall, long, (long, ...))

struct sock_real {
#define SOCK_REAL_FIELD(name, result, params) result(*name) params;
	SOCK_REALS(SOCK_REAL_FIELD)
#undef SOCK_REAL_FIELD
};

extern struct sock_real sock_real;

/** Look up the function *name* and store it at *field*. Aborts if the C library has none. */
void san_sock_real_find(void *field, const char *name);

/** The C library's function *name*. */
#define REAL_FN(name)                                               \
	(*({                                                        \
		if (__builtin_expect(sock_real.name == NULL, 0))    \
			san_sock_real_find(&sock_real.name, #name); \
		sock_real.name;                                     \
	}))
/** Call it. */
#define REAL(name, ...) REAL_FN(name)(__VA_ARGS__)

static inline void
san_sock_real_set_errno(const int *was)
{
	errno = *was;
}

/** A declaration: errno is as it was when the block ends. */
#define KEEP_ERRNO __attribute__((cleanup(san_sock_real_set_errno))) int errno_was_ = errno

/** Fail as they do: -1 and *err* in errno. */
static inline int
san_sock_real_fail(int err)
{
	errno = err;
	return -1;
}
