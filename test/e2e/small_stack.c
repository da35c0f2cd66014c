/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Calls on sockets, each in a thread with the smallest stack, for test_sock_calls.py. The output is
 * the same whether or not the sockets are carried. (UDP-1)
 *
 *   small_stack IP PORT    to a peer that sends and reads much
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define MANY 100

static struct sockaddr_in to = {.sin_family = AF_INET};
static int tcp, udp, file, in[2], out[2];
static char byte = 'x';
static struct iovec iov = {&byte, 1};

static long
call_sendmsg(void)
{
	const struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	return sendmsg(tcp, &msg, 0);
}

static long
call_recvmsg(void)
{
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	return recvmsg(tcp, &msg, 0);
}

static long
call_poll(void)
{
	static struct pollfd fds[MANY];

	for (int i = 0; i < MANY; i++)
		fds[i] = (struct pollfd){.fd = i == 50 ? tcp : udp, .events = POLLIN};
	return poll(fds, MANY, -1);
}

static long
call_select(void)
{
	static fd_set set;
	int high = fcntl(tcp, F_DUPFD, FD_SETSIZE - 1);

	FD_SET(high, &set);
	return select(FD_SETSIZE, &set, NULL, NULL, NULL) + 10 * close(high);
}

static long
call_epoll(void)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int set = epoll_create1(0);
	long n = epoll_ctl(set, EPOLL_CTL_ADD, tcp, &ev);

	return n + epoll_wait(set, &ev, 1, -1) + 10 * close(set);
}

static long
call_connect(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	long rc = connect(fd, (const struct sockaddr *)&to, sizeof(to));

	return rc + 10 * close(fd);
}

static long
call_bind(void)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return bind(fd, (const struct sockaddr *)&any, sizeof(any)) + 10 * close(fd);
}

static long
call_option(void)
{
	int on = 1;
	socklen_t len = sizeof(on);

	return setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &on, len) +
		10 * getsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &on, &len);
}

static long
call_ioctl(void)
{
	int n = 0;

	return ioctl(tcp, FIONREAD, &n) + (n > 0);
}

/* Calls that need no more than their arguments. */
#define CALL(name, ...)               \
	static long call_##name(void) \
	{                             \
		return __VA_ARGS__;   \
	}

CALL(send, send(tcp, &byte, 1, 0))
CALL(write, write(tcp, &byte, 1))
CALL(writev, writev(tcp, &iov, 1))
CALL(recv, recv(tcp, &byte, 1, 0))
CALL(read, read(tcp, &byte, 1))
CALL(readv, readv(tcp, &iov, 1))
CALL(dprintf, dprintf(tcp, "%d bytes\n", 8))
CALL(sendfile, sendfile(tcp, file, NULL, 100))
CALL(splice_out, splice(out[0], NULL, tcp, NULL, 1, 0))
CALL(splice_in, splice(tcp, NULL, in[1], NULL, 1, 0))
CALL(dup, close(dup(tcp)))
CALL(shutdown, shutdown(tcp, SHUT_WR))
CALL(sendto, sendto(udp, &byte, 1, 0, (const struct sockaddr *)&to, sizeof(to)))
CALL(recvfrom, recvfrom(udp, &byte, 1, MSG_DONTWAIT, NULL, NULL))

static const struct {
	const char *name;
	long (*call)(void);
} calls[] = {
	{"send", call_send},
	{"sendmsg", call_sendmsg},
	{"write", call_write},
	{"writev", call_writev},
	{"recv", call_recv},
	{"recvmsg", call_recvmsg},
	{"read", call_read},
	{"readv", call_readv},
	{"poll", call_poll},
	{"select", call_select},
	{"epoll", call_epoll},
	{"dprintf", call_dprintf},
	{"sendfile", call_sendfile},
	{"splice out", call_splice_out},
	{"splice in", call_splice_in},
	{"connect", call_connect},
	{"bind", call_bind},
	{"sendto", call_sendto},
	{"recvfrom", call_recvfrom},
	{"option", call_option},
	{"ioctl", call_ioctl},
	{"dup", call_dup},
	{"shutdown", call_shutdown},
};

static void *
run(void *arg)
{
	long (*call)(void) = *(long (*const *)(void))arg;
	static long result[2];

	errno = 0;
	result[0] = call();
	result[1] = result[0] < 0 ? errno : 0;
	return result;
}

static int
try_call(pthread_attr_t *attr, const char *name, long (*const *call)(void))
{
	pthread_t t;
	void *got;
	int rc = pthread_create(&t, attr, run, (void *)(uintptr_t)call);

	if (rc != 0 || pthread_join(t, &got) != 0) {
		printf("%s: no thread: %d\n", name, rc);
		return 1;
	}
	printf("%s: %ld, errno %ld\n", name, ((const long *)got)[0], ((const long *)got)[1]);
	fflush(stdout);
	return 0;
}

int
main(int argc, char **argv)
{
	pthread_attr_t attr;

	if (argc != 3)
		return 2;
	inet_pton(AF_INET, argv[1], &to.sin_addr);
	to.sin_port = htons((uint16_t)atoi(argv[2]));
	tcp = socket(AF_INET, SOCK_STREAM, 0);
	udp = socket(AF_INET, SOCK_DGRAM, 0);
	file = open("/proc/self/exe", O_RDONLY);
	if (connect(tcp, (const struct sockaddr *)&to, sizeof(to)) != 0 || pipe(in) != 0 ||
	    pipe(out) != 0 || write(out[1], &byte, 1) != 1 || recv(tcp, &byte, 1, 0) != 1) {
		perror("small_stack");
		return 1;
	}
	pthread_attr_init(&attr);
	if (pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN)) != 0)
		return 2;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (try_call(&attr, calls[i].name, &calls[i].call) != 0)
			return 1;
	return 0;
}
