/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What everybody has: TCP and UDP of the kernel, driven as fast as sockets go.
 * Both sides poll (MSG_DONTWAIT) and never sleep, as sanbench does.
 *
 *   bench_kernel tcp-echo|udp-echo|tcp-sink ADDRESS PORT
 *   bench_kernel tcp-ping|udp-ping ADDRESS PORT MILLISECONDS BYTES DEPTH
 *   bench_kernel tcp-bulk ADDRESS PORT MILLISECONDS
 *
 * "ping" keeps DEPTH messages under way to "echo"; "bulk" streams to "sink",
 * which prints what it received. The others end when they are told to.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sample.h"

#define DIM(a)     (sizeof(a) / sizeof((a)[0]))
#define BUFFER     (1u << 17) /* what is copied stays in the cache */
#define WARM_UP_NS 100000000u
#define CONNECT_MS 5000
#define LOSS_NS    50000000u /* a datagram not back by then is lost */

struct kernel {
	struct sockaddr_in addr;
	uint64_t duration_ns;
	uint32_t size, depth;
	bool tcp;
	int fd;
};

static uint8_t buffer[BUFFER];

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Bytes, 0 if there was nothing, -1 at the end of the connection or an error. */
static ssize_t
poll_result(ssize_t n)
{
	if (n > 0)
		return n;
	return n < 0 && (errno == EAGAIN || errno == ECONNREFUSED) ? 0 : -1;
}

static int
kernel_connect(struct kernel *k)
{
	struct timespec pause = {0, 10000000};
	int one = 1;
	int i;

	for (i = 0; i < CONNECT_MS / 10; i++) {
		k->fd = socket(AF_INET, k->tcp ? SOCK_STREAM : SOCK_DGRAM, 0);
		if (connect(k->fd, (struct sockaddr *)&k->addr, sizeof(k->addr)) == 0) {
			if (k->tcp)
				setsockopt(k->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
			return 0;
		}
		close(k->fd);
		nanosleep(&pause, NULL);
	}
	perror("connect");
	return -1;
}

static int
kernel_serve(struct kernel *k)
{
	int fd = socket(AF_INET, k->tcp ? SOCK_STREAM : SOCK_DGRAM, 0);
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	k->fd = fd;
	if (bind(fd, (struct sockaddr *)&k->addr, sizeof(k->addr)) != 0 ||
	    (k->tcp && (listen(fd, 1) != 0 || (k->fd = accept(fd, NULL, NULL)) < 0))) {
		perror("server socket");
		return -1;
	}
	if (k->tcp)
		setsockopt(k->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return 0;
}

static int
role_tcp_echo(struct kernel *k)
{
	ssize_t n, done, sent;

	while ((n = poll_result(recv(k->fd, buffer, BUFFER, MSG_DONTWAIT))) >= 0) {
		for (done = 0; done < n; done += sent) {
			sent = poll_result(send(k->fd, buffer + done, (size_t)(n - done),
						MSG_DONTWAIT | MSG_NOSIGNAL));
			if (sent < 0)
				return 0;
		}
	}
	return 0;
}

static int
role_udp_echo(struct kernel *k)
{
	struct sockaddr_in in;
	struct sockaddr *from = (struct sockaddr *)&in;
	socklen_t len = sizeof(in);
	ssize_t n;

	while ((n = poll_result(recvfrom(k->fd, buffer, BUFFER, MSG_DONTWAIT, from, &len))) >= 0) {
		if (n > 0)
			sendto(k->fd, buffer, (size_t)n, MSG_DONTWAIT, from, len);
		len = sizeof(in);
	}
	return -1;
}

/* Fill the pipe up to the depth; a datagram per message, or a stream of bytes. */
static ssize_t
ping_send(struct kernel *k, uint32_t under_way)
{
	uint32_t room = k->size * k->depth - under_way;

	if (room == 0)
		return 0;
	return poll_result(send(k->fd, buffer, k->tcp ? room : k->size,
				MSG_DONTWAIT | MSG_NOSIGNAL));
}

static int
role_ping(struct kernel *k)
{
	uint64_t start = now_ns();
	uint64_t begin = start + WARM_UP_NS;
	uint64_t last = start;
	uint64_t bytes = 0, lost = 0;
	uint32_t under_way = 0;
	struct sample sample;
	uint64_t now = start;
	ssize_t sent, got;

	if (sample_init(&sample) != 0)
		return -1;
	for (; now < begin + k->duration_ns; now = now_ns()) {
		sent = ping_send(k, under_way);
		got = poll_result(recv(k->fd, buffer, BUFFER, MSG_DONTWAIT));
		if (sent < 0 || got < 0)
			return -1;
		under_way += (uint32_t)sent;
		under_way -= (uint32_t)got <= under_way ? (uint32_t)got : under_way;
		if (got > 0)
			last = now;
		if (got > 0 && now >= begin)
			bytes += (uint64_t)got;
		if (k->depth == 1 && under_way == 0) {
			now = now_ns();
			if (start >= begin && !sample_add(&sample, now - start))
				break;
			start = now;
		}
		if (!k->tcp && under_way > 0 && now - last > LOSS_NS) {
			lost += under_way / k->size;
			under_way = 0;
			start = last = now;
		}
	}
	if (k->depth == 1)
		return sample_report(&sample, 1e3, (double)(now - begin) / 1e9);
	printf("{\"mops\": %.4f, \"lost\": %" PRIu64 "}\n",
	       (double)bytes / k->size / (double)(now - begin) * 1e3, lost);
	return bytes > 0 ? 0 : -1;
}

static int
role_bulk(struct kernel *k)
{
	uint64_t end = now_ns() + 2 * WARM_UP_NS + k->duration_ns;

	while (now_ns() < end)
		if (poll_result(send(k->fd, buffer, BUFFER, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0)
			break;
	return 0;
}

static int
role_sink(struct kernel *k)
{
	uint64_t begin = now_ns() + WARM_UP_NS;
	uint64_t bytes = 0;
	uint64_t now = 0, last = 0;
	ssize_t n;

	while ((n = poll_result(recv(k->fd, buffer, BUFFER, MSG_DONTWAIT))) >= 0) {
		now = now_ns();
		if (n == 0 || now < begin)
			continue;
		bytes += (uint64_t)n;
		last = now;
	}
	if (last <= begin)
		return -1;
	printf("{\"gbps\": %.3f}\n", (double)bytes * 8 / (double)(last - begin));
	return 0;
}

static const struct {
	const char *name;
	bool tcp, server;
	int (*run)(struct kernel *k);
	int nb_args;
} roles[] = {
	{"tcp-echo", true, true, role_tcp_echo, 4},
	{"udp-echo", false, true, role_udp_echo, 4},
	{"tcp-sink", true, true, role_sink, 4},
	{"tcp-ping", true, false, role_ping, 7},
	{"udp-ping", false, false, role_ping, 7},
	{"tcp-bulk", true, false, role_bulk, 5},
};

int
main(int argc, char **argv)
{
	struct kernel k = {.addr.sin_family = AF_INET};
	size_t i;

	for (i = 0; i < DIM(roles); i++)
		if (argc > 1 && strcmp(argv[1], roles[i].name) == 0)
			break;
	if (i == DIM(roles) || argc != roles[i].nb_args ||
	    inet_pton(AF_INET, argv[2], &k.addr.sin_addr) != 1) {
		fprintf(stderr, "usage: bench_kernel ROLE ADDRESS PORT "
				"[MILLISECONDS [BYTES DEPTH]]\n");
		return 2;
	}
	k.tcp = roles[i].tcp;
	k.addr.sin_port = htons((uint16_t)atoi(argv[3]));
	k.duration_ns = argc > 4 ? (uint64_t)atoi(argv[4]) * 1000000u : 0;
	k.size = argc > 5 ? (uint32_t)atoi(argv[5]) : 0;
	k.depth = argc > 6 ? (uint32_t)atoi(argv[6]) : 0;
	alarm(60); /* whatever happens, nothing stays behind */
	if ((roles[i].server ? kernel_serve(&k) : kernel_connect(&k)) != 0)
		return 1;
	return roles[i].run(&k) == 0 ? 0 : 1;
}
