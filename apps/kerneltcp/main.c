/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The baseline of the demo: TCP of the kernel over a veth pair, between two processes on the same
 * two CPUs, as an ordinary program uses it. (SYS-3)
 *
 *   kerneltcp SERVER-CPU CLIENT-CPU JSON                 requests of 64 bytes, one at a time
 *   kerneltcp SERVER-CPU CLIENT-CPU JSON OUT FILE...     copies the files to OUT
 *
 * Like sanbench's tree modes: pieces of 64 KiB, 16 in flight, each with an answer. The JSON has
 * those keys of sanbench that the demo prints. Exit status 77: no right to create namespaces.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hist.h"
#include "veth.h"

#define PORT       7471
#define PIECE      65536
#define UNDER_WAY  16
#define QUESTION   64
#define ASK_NS     1000000000ull
#define SKIPPED    77
#define PATIENCE_S 50 /* limit for the whole run, also if the other process has ended */
#define NS_PER_SEC 1000000000ull

/* Precedes each piece of data, in either direction. */
struct head {
	uint64_t len; /* 0: end of data */
};

struct run {
	int sock;
	struct hist hist;
	uint64_t bytes, messages, begin_ns, end_ns, rtx, server_rtx;
	uint64_t sent_ns[UNDER_WAY];
	uint64_t nb_sent, nb_answered;
};

static uint8_t buf[PIECE];

static void __attribute__((noreturn, format(printf, 2, 3)))
kerneltcp_die(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("kerneltcp: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

static uint64_t
kerneltcp_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void
kerneltcp_pin(const char *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(atoi(cpu), &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		kerneltcp_die(1, "CPU %s: %s", cpu, strerror(errno));
}

/* False: the peer has closed. */
static bool
read_all(int sock, void *to, size_t len)
{
	ssize_t n = recv(sock, to, len, MSG_WAITALL);

	if (n < 0)
		kerneltcp_die(1, "receive: %s", strerror(errno));
	return (size_t)n == len;
}

static void
kerneltcp_write_all(int fd, const void *from, size_t len)
{
	ssize_t n;

	for (; len > 0; len -= (size_t)n, from = (const uint8_t *)from + n) {
		n = write(fd, from, len);
		if (n <= 0)
			kerneltcp_die(1, "write: %s", strerror(errno));
	}
}

static uint64_t
kerneltcp_retransmits(int sock)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &len);
	return info.tcpi_total_retrans;
}

static int
kerneltcp_open_socket(struct sockaddr_in *at)
{
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	*at = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(PORT),
		.sin_addr = {htonl(VETH_SERVER_IP)},
	};
	if (sock < 0 || setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
		kerneltcp_die(1, "socket: %s", strerror(errno));
	return sock;
}

/* ---- the server ---- */

static void
kerneltcp_serve(int listener, int out)
{
	int sock = accept(listener, NULL, NULL), on = 1;
	struct head head;
	uint64_t rtx;

	if (sock < 0)
		kerneltcp_die(1, "accept: %s", strerror(errno));
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	while (read_all(sock, &head, sizeof(head)) && head.len != 0) {
		if (head.len > PIECE || !read_all(sock, buf, head.len))
			kerneltcp_die(1, "a piece is cut off");
		if (out >= 0)
			kerneltcp_write_all(out, buf, head.len);
		/* a request is echoed, a piece is acknowledged by its head */
		kerneltcp_write_all(sock, buf, out >= 0 ? sizeof(head) : head.len);
	}
	rtx = kerneltcp_retransmits(sock);
	kerneltcp_write_all(sock, &rtx, sizeof(rtx));
	close(sock);
}

/* ---- the client ---- */

static void
kerneltcp_take_answer(struct run *r, size_t len)
{
	uint8_t answer[QUESTION];

	if (!read_all(r->sock, answer, len))
		kerneltcp_die(1, "the server has closed the connection");
	san_hist_add(&r->hist, kerneltcp_now_ns() - r->sent_ns[r->nb_answered++ % UNDER_WAY]);
}

static void
send_piece(struct run *r, size_t len)
{
	const struct head head = {.len = len};
	uint64_t began = kerneltcp_now_ns();

	if (send(r->sock, &head, sizeof(head), MSG_MORE) != sizeof(head))
		kerneltcp_die(1, "send: %s", strerror(errno));
	kerneltcp_write_all(r->sock, buf, len);
	r->sent_ns[r->nb_sent++ % UNDER_WAY] = began;
	r->bytes += len;
	r->messages++;
}

static void
kerneltcp_copy_files(struct run *r, char *const *files, int nb)
{
	ssize_t n;
	int i, fd;

	for (i = 0; i < nb; i++) {
		fd = open(files[i], O_RDONLY | O_CLOEXEC);
		while ((n = read(fd, buf, sizeof(buf))) > 0) {
			if (r->nb_sent - r->nb_answered == UNDER_WAY)
				kerneltcp_take_answer(r, sizeof(struct head));
			send_piece(r, (size_t)n);
		}
		if (fd < 0 || n < 0)
			kerneltcp_die(1, "%s: %s", files[i], strerror(errno));
		close(fd);
	}
	while (r->nb_answered < r->nb_sent)
		kerneltcp_take_answer(r, sizeof(struct head));
}

static void
kerneltcp_request(struct run *r)
{
	while (kerneltcp_now_ns() - r->begin_ns < ASK_NS) {
		send_piece(r, QUESTION);
		kerneltcp_take_answer(r, QUESTION);
	}
}

static void
kerneltcp_write_json(const struct run *r, const char *path)
{
	double seconds = (double)(r->end_ns - r->begin_ns) / 1e9;
	struct hist_summary s;
	FILE *f = fopen(path, "w");

	san_hist_summarize(&r->hist, &s);
	if (f == NULL ||
	    fprintf(f,
		    "{\"ok\": true, \"error\": \"\", \"server_errors\": 0, \"leaks\": 0,\n"
		    "\"gbps\": %.6f, \"mps\": %.6f, \"rtx\": %llu, \"server_rtx\": %llu,\n"
		    "\"latency_ns\": {\"p50\": %llu, \"p99\": %llu}}\n",
		    (double)r->bytes * 8 / 1e9 / seconds, (double)r->messages / 1e6 / seconds,
		    (unsigned long long)r->rtx, (unsigned long long)r->server_rtx,
		    (unsigned long long)s.p50_ns, (unsigned long long)s.p99_ns) < 0 ||
	    fclose(f) != 0)
		kerneltcp_die(1, "%s: %s", path, strerror(errno));
}

static void
kerneltcp_measure(const char *json, char *const *files, int nb)
{
	static struct run r;
	const struct head last = {.len = 0};
	struct sockaddr_in at;

	san_hist_reset(&r.hist);
	r.sock = kerneltcp_open_socket(&at);
	while (connect(r.sock, (const struct sockaddr *)&at, sizeof(at)) != 0)
		if (errno != ECONNREFUSED)
			kerneltcp_die(1, "connect: %s", strerror(errno));
	r.begin_ns = kerneltcp_now_ns();
	if (nb > 0)
		kerneltcp_copy_files(&r, files, nb);
	else
		kerneltcp_request(&r);
	r.end_ns = kerneltcp_now_ns();
	r.rtx = kerneltcp_retransmits(r.sock);
	kerneltcp_write_all(r.sock, &last, sizeof(last));
	if (!read_all(r.sock, &r.server_rtx, sizeof(r.server_rtx)))
		kerneltcp_die(1, "the server has closed the connection");
	kerneltcp_write_json(&r, json);
}

int
main(int argc, char **argv)
{
	struct sockaddr_in at;
	const char *what;
	int listener, rc, out = -1, status = 0;
	pid_t child;

	if (argc < 4 || argc == 5) {
		fputs("usage: kerneltcp SERVER-CPU CLIENT-CPU JSON [OUT FILE...]\n", stderr);
		return 2;
	}
	if (argc > 4)
		out = open(argv[4], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (argc > 4 && out < 0)
		kerneltcp_die(1, "%s: %s", argv[4], strerror(errno));
	rc = san_veth_fork(&child, &what);
	if (rc != 0)
		kerneltcp_die(SKIPPED, "%s can't be made: %s", what, strerror(-rc));
	kerneltcp_pin(argv[child == 0 ? 2 : 1]);
	alarm(PATIENCE_S);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		kerneltcp_measure(argv[3], argv + 5, argc > 5 ? argc - 5 : 0);
		return 0;
	}
	listener = kerneltcp_open_socket(&at);
	if (bind(listener, (const struct sockaddr *)&at, sizeof(at)) != 0 ||
	    listen(listener, 1) != 0)
		kerneltcp_die(1, "listen: %s", strerror(errno));
	kerneltcp_serve(listener, out);
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
