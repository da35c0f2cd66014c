/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A server that confines itself to the system calls that it makes on its connection, and those of
 * the C library, for test_sock_unserved.py. Then it echoes the connection, and the datagrams of the
 * sender of the first one.
 *
 * usage: confined IP PORT kill|refuse read|poll|child|open
 * kill: another call ends it. refuse: another call fails. child: it is a child that waits. open: it
 * uses other sockets, made before and after.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

static void __attribute__((noreturn))
die(const char *what)
{
	perror(what);
	exit(1);
}

static int
bound(int type, const char *ip, const char *port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	int fd = socket(AF_INET, type, 0);

	if (inet_pton(AF_INET, ip, &sa.sin_addr) != 1 ||
	    bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) != 0)
		die("bind");
	return fd;
}

static void
confine(uint32_t action, bool opens)
{
	scmp_filter_ctx filter = seccomp_init(action);
	int calls[] = {SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(poll), SCMP_SYS(exit_group),
		       SCMP_SYS(rt_sigreturn)};
	int more[] = {SCMP_SYS(socket), SCMP_SYS(bind), SCMP_SYS(listen),
		      SCMP_SYS(connect), SCMP_SYS(accept), SCMP_SYS(close),
		      SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait),
		      SCMP_SYS(sendto)};
	int rc = 0;

	for (size_t i = 0; opens && i < sizeof(more) / sizeof(more[0]); i++)
		rc |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, more[i], 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		rc |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	if (rc != 0 || seccomp_load(filter) != 0)
		die("filter");
}

static void
write_all(int fd, const char *data, ssize_t n)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	ssize_t done;

	for (ssize_t at = 0; at<n; at += done> 0 ? done : 0) {
		done = write(fd, data + at, (size_t)(n - at));
		if (done < 0 && errno == EAGAIN)
			poll(&p, 1, -1);
		else if (done < 0)
			_exit(2);
	}
}

/* Use sockets that the program has not used before; *spare* is without a name. */
static void
open_others(const struct sockaddr_in *sa, int listener, const int spare[2], int stream)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct sockaddr_in any = {.sin_family = AF_INET};
	int set = epoll_create1(0), fd, fresh = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(spare[0], (const struct sockaddr *)sa, sizeof(*sa)) != 0 ||
	    (fd = accept(listener, NULL, NULL)) < 0 || write(fd, "x", 1) != 1 || close(fd) != 0 ||
	    close(spare[0]) != 0)
		_exit(4);
	if (bind(spare[1], (const struct sockaddr *)&any, sizeof(any)) != 0 ||
	    sendto(spare[1], "x", 1, 0, (const struct sockaddr *)sa, sizeof(*sa)) != 1)
		_exit(5);
	if (bind(fresh, (const struct sockaddr *)&any, sizeof(any)) != 0 || listen(fresh, 1) != 0 ||
	    close(fresh) != 0 || close(spare[1]) != 0)
		_exit(6);
	if (epoll_ctl(set, EPOLL_CTL_ADD, stream, &ev) != 0 || epoll_wait(set, &ev, 1, -1) != 1)
		_exit(7);
}

static void
serve(int stream, int dgram, bool polls)
{
	struct pollfd p[] = {{.fd = stream, .events = POLLIN}, {.fd = dgram, .events = POLLIN}};
	static char data[70000];
	ssize_t n = 1;

	while (n > 0) {
		if (polls && poll(p, 2, -1) < 1)
			_exit(3);
		if (polls && (p[1].revents & POLLIN) != 0) {
			n = read(dgram, data, sizeof(data));
			if (n > 0)
				write_all(dgram, data, n);
		}
		if (polls && (p[0].revents & POLLIN) == 0)
			continue;
		n = read(stream, data, sizeof(data));
		if (n > 0)
			write_all(stream, data, n);
	}
	_exit(n != 0);
}

int
main(int argc, char **argv)
{
	int listener, dgram, stream, status = 0, spare[2];
	struct sockaddr_storage sa;
	struct sockaddr_in own;
	bool opens;
	socklen_t len = sizeof(sa);
	char byte;

	if (argc != 5)
		return 1;
	listener = bound(SOCK_STREAM, argv[1], argv[2]);
	dgram = bound(SOCK_DGRAM, argv[1], argv[2]);
	if (listen(listener, 5) != 0)
		die("listen");
	puts("ready");
	fflush(stdout);
	stream = accept(listener, NULL, NULL);
	if (recvfrom(dgram, &byte, 1, 0, (struct sockaddr *)&sa, &len) != 1 ||
	    connect(dgram, (const struct sockaddr *)&sa, len) != 0)
		die("the first datagram");
	if (strcmp(argv[4], "read") != 0) {
		fcntl(stream, F_SETFL, O_NONBLOCK);
		fcntl(dgram, F_SETFL, O_NONBLOCK);
	}
	if (strcmp(argv[4], "child") == 0 && fork() != 0) {
		close(stream);
		close(dgram);
		wait(&status);
		fprintf(stderr, "the child ended with %x\n", (unsigned int)status);
		return status != 0;
	}
	opens = strcmp(argv[4], "open") == 0;
	spare[0] = socket(AF_INET, SOCK_STREAM, 0);
	spare[1] = socket(AF_INET, SOCK_DGRAM, 0);
	len = sizeof(own);
	getsockname(listener, (struct sockaddr *)&own, &len);
	confine(strcmp(argv[3], "kill") == 0 ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(EPERM),
		opens);
	if (opens)
		open_others(&own, listener, spare, stream);
	serve(stream, dgram, strcmp(argv[4], "read") != 0);
}
