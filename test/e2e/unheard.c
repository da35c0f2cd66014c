/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A server whose calls cannot be intercepted, for test_sock_unserved.py. It echoes what one client
 * sends, until the end. (UDP-11)
 *
 *   unheard calls IP PORT    accepts, reads and writes by its own system call instructions
 *   unheard ring IP PORT     ... by io_uring
 *   unheard udp IP PORT      receives one datagram by io_uring
 *
 * Prints "ready" when it listens. Status 77: io_uring is not available.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NO_RING 77

static long
kernel(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long rc;

	__asm__ volatile("syscall"
			 : "=a"(rc)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return rc;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
	exit(NO_RING);
#endif
}

/* ---- a ring ---- */

static struct {
	int fd;
	uint8_t *sq, *cq;
	struct io_uring_sqe *sqes;
	struct io_uring_params p;
} ring;

static void
open_ring(void)
{
	size_t sq, cq;

	ring.fd = (int)kernel(SYS_io_uring_setup, 4, (long)&ring.p, 0, 0, 0, 0);
	if (ring.fd < 0) {
		fprintf(stderr, "io_uring_setup: %s\n", strerror(-ring.fd));
		exit(NO_RING);
	}
	sq = ring.p.sq_off.array + ring.p.sq_entries * sizeof(uint32_t);
	cq = ring.p.cq_off.cqes + ring.p.cq_entries * sizeof(struct io_uring_cqe);
	ring.sq = mmap(NULL, sq, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
	ring.cq = mmap(NULL, cq, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_CQ_RING);
	ring.sqes = mmap(NULL, ring.p.sq_entries * sizeof(*ring.sqes), PROT_READ | PROT_WRITE,
			 MAP_SHARED, ring.fd, IORING_OFF_SQES);
}

/* Returns the result of one operation. */
static long
by_ring(uint8_t op, int fd, void *buf, uint32_t len)
{
	uint32_t *tail = (uint32_t *)(ring.sq + ring.p.sq_off.tail);
	uint32_t *head = (uint32_t *)(ring.cq + ring.p.cq_off.head);
	uint32_t mask = *(uint32_t *)(ring.sq + ring.p.sq_off.ring_mask), at = *tail & mask;
	struct io_uring_cqe *cqes = (struct io_uring_cqe *)(ring.cq + ring.p.cq_off.cqes);
	long rc;

	ring.sqes[at] = (struct io_uring_sqe){
		.opcode = op,
		.fd = fd,
		.addr = (uintptr_t)buf,
		.len = len,
	};
	((uint32_t *)(ring.sq + ring.p.sq_off.array))[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	rc = kernel(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, 0, 0);
	if (rc < 0)
		return rc;
	rc = cqes[*head & (ring.p.cq_entries - 1)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return rc;
}

/* ---- the server ---- */

static int
named(const char *what, const char *ip, const char *port)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(port)),
	};
	int type = strcmp(what, "udp") == 0 ? SOCK_DGRAM : SOCK_STREAM, on = 1;
	int fd = socket(AF_INET, type, 0);

	inet_pton(AF_INET, ip, &in.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&in, sizeof(in)) != 0 ||
	    (type == SOCK_STREAM && listen(fd, 9) != 0)) {
		perror(what);
		exit(1);
	}
	puts("ready");
	fflush(stdout);
	return fd;
}

int
main(int argc, char **argv)
{
	int calls = argc == 4 && strcmp(argv[1], "calls") == 0, fd;
	char buf[65536];
	long n, k;

	if (argc != 4)
		return 2;
	if (!calls)
		open_ring();
	fd = named(argv[1], argv[2], argv[3]);
	if (strcmp(argv[1], "udp") == 0) {
		n = by_ring(IORING_OP_RECV, fd, buf, sizeof(buf));
		printf("%.*s\n", (int)(n > 0 ? n : 0), buf);
		return n <= 0;
	}
	fd = (int)(calls ? kernel(SYS_accept4, fd, 0, 0, 0, 0, 0) :
			   by_ring(IORING_OP_ACCEPT, fd, NULL, 0));
	while ((n = calls ? kernel(SYS_read, fd, (long)buf, sizeof(buf), 0, 0, 0) :
			    by_ring(IORING_OP_RECV, fd, buf, sizeof(buf))) > 0)
		for (k = 0; k < n;) {
			long sent = calls ? kernel(SYS_write, fd, (long)(buf + k), n - k, 0, 0, 0) :
					    by_ring(IORING_OP_SEND, fd, buf + k, (uint32_t)(n - k));

			if (sent < 0)
				return 1;
			k += sent;
		}
	printf("end %ld\n", n);
	return n < 0;
}
