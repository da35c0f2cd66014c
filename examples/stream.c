/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An echo over streams: the server returns what it reads, and the client compares it with what it
 * wrote. It needs neither regions nor completions, only read and write.
 *
 *	stream server SPEC
 *	stream client SPEC PEER [MBYTES]
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rtsan_stream.h>

#define SERVICE    0x6563686f /* "echo" */
#define TIMEOUT_S  30
#define TIMEOUT_MS (TIMEOUT_S * 1000)
#define SLICE_MS   1000        /* maximum wait before checking for a signal */
#define CHUNK      (64 * 1024) /* also the server's read size */

static struct rtsan_ctx *ctx;
static volatile sig_atomic_t told_to_end; /* signal number */

static void
die(const char *what)
{
	fprintf(stderr, "stream: %s: %s\n", what, rtsan_error());
	if (ctx != NULL)
		rtsan_close(ctx);
	exit(1);
}

/* A second signal ends the program at once. */
static void
on_signal(int signum)
{
	told_to_end = signum;
}

static void
watch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

/* Closing the context removes memif's socket. Then the signal takes its default action. */
static void
end_if_told(void)
{
	if (told_to_end == 0)
		return;
	rtsan_close(ctx);
	signal(told_to_end, SIG_DFL);
	raise(told_to_end);
}

/* ---- waiting in slices ---- */

/* Wait for a peer. A peer that disconnects before it is accepted is ignored. */
static struct rtsan_stream *
accept_next(struct rtsan_listener *listener)
{
	struct rtsan_stream *s = NULL;
	int rc, slices = 0;

	/*
	 * wait in slices for a request only: rtsan_stream_accept() must not be interrupted in the
	 * middle
	 */
	while ((rc = rtsan_event_wait(ctx, SLICE_MS / 10)) == 0 || rc == -EINTR ||
	       (rc = rtsan_stream_accept(listener, NULL, TIMEOUT_MS, &s)) == -ECONNABORTED ||
	       rc == -EHOSTUNREACH) {
		end_if_told();
		if (slices++ == 10)
			fprintf(stderr, "stream: waiting for a peer\n");
		if (slices > TIMEOUT_S * 10) {
			fprintf(stderr, "stream: nobody comes\n");
			rtsan_close(ctx);
			exit(1);
		}
	}
	if (rc != 0)
		die("accept");
	return s;
}

/* The server may just be starting. */
static struct rtsan_stream *
connect_to(const char *peer)
{
	const struct timespec pause = {.tv_nsec = 100000000};
	time_t since = time(NULL);
	struct rtsan_stream *s;
	bool is_said = false;
	int rc;

	while ((rc = rtsan_stream_connect(ctx, peer, SERVICE, NULL, SLICE_MS, &s)) != 0) {
		end_if_told();
		if ((rc != -EAGAIN && rc != -ECONNREFUSED && rc != -EHOSTUNREACH) ||
		    time(NULL) - since > TIMEOUT_S)
			die("connect");
		if (!is_said && (rc == -EAGAIN || time(NULL) - since > 1)) {
			fprintf(stderr, "stream: waiting for the peer at %s\n", peer);
			is_said = true;
		}
		nanosleep(&pause, NULL);
	}
	return s;
}

/* The byte at position *at* of the client's data. */
static uint8_t
pattern(size_t at)
{
	return (uint8_t)(at * 31 + (at >> 12));
}

static void
serve(void)
{
	static uint8_t buf[CHUNK];
	struct rtsan_listener *listener;
	struct rtsan_stream *s;
	size_t sum = 0;
	ssize_t n;

	if (rtsan_listen(ctx, SERVICE, 0, 1, &listener) != 0)
		die("listen");
	s = accept_next(listener);
	rtsan_stream_set_timeout(s, TIMEOUT_MS);
	while ((n = rtsan_stream_read(s, buf, sizeof(buf), 0)) > 0) {
		end_if_told();
		if (rtsan_stream_write(s, buf, (size_t)n) != n)
			die("write");
		sum += (size_t)n;
	}
	if (n < 0)
		die("read");
	if (rtsan_stream_close(s, TIMEOUT_MS) != 0)
		die("close");
	rtsan_listener_destroy(listener);
	printf("echoed %zu bytes\n", sum);
}

static void
check(const uint8_t *buf, size_t len, size_t at)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (buf[i] == pattern(at + i))
			continue;
		fprintf(stderr, "stream: byte %zu came back wrong\n", at + i);
		exit(1);
	}
}

static void
ask(const char *peer, size_t bytes)
{
	static uint8_t buf[CHUNK];
	struct rtsan_stream *s = connect_to(peer);
	size_t done = 0, len, i;

	rtsan_stream_set_timeout(s, TIMEOUT_MS);
	for (; done < bytes; done += len) {
		end_if_told();
		/*
		 * Limit the unread data: if it exceeded the buffers of both sides, both would wait
		 * forever.
		 */
		len = bytes - done < CHUNK ? bytes - done : CHUNK;
		for (i = 0; i < len; i++)
			buf[i] = pattern(done + i);
		if (rtsan_stream_write(s, buf, len) != (ssize_t)len)
			die("write");
		memset(buf, 0, len);
		if (rtsan_stream_read(s, buf, len, RTSAN_RECV_WAITALL) != (ssize_t)len)
			die("read");
		check(buf, len, done);
	}
	if (rtsan_stream_shutdown_write(s) != 0)
		die("shutdown");
	if (rtsan_stream_read(s, buf, 1, 0) != 0)
		die("end");
	if (rtsan_stream_close(s, TIMEOUT_MS) != 0)
		die("close");
	printf("%zu bytes came back\n", done);
}

int
main(int argc, char **argv)
{
	bool is_server = argc == 3 && strcmp(argv[1], "server") == 0;
	bool is_client = argc >= 4 && argc <= 5 && strcmp(argv[1], "client") == 0;

	if (!is_server && !is_client) {
		fprintf(stderr, "usage: stream server SPEC | client SPEC PEER [MBYTES]\n");
		return 2;
	}
	watch_signals();
	if (rtsan_open(argv[2], &ctx) != 0)
		die("open");
	if (is_server)
		serve();
	else
		ask(argv[3], (argc == 5 ? strtoul(argv[4], NULL, 0) : 1) << 20);
	rtsan_close(ctx);
	return 0;
}
