/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An echo over streams: the server writes back whatever it reads, the client compares what
 * comes back with what it wrote. No region, no completion: read and write.
 *
 * stream server SPEC
 * stream client SPEC PEER [MBYTES]
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rtsan_stream.h>

#define SERVICE     0x6563686f /* "echo" */
#define PATIENCE_MS 30000
#define CHUNK       (64 * 1024) /* what the server takes at a time, too */

static void
die(const char *what)
{
	fprintf(stderr, "stream: %s: %s\n", what, rtsan_error());
	exit(1);
}

/* The byte at *at* of what the client writes. */
static uint8_t
pattern(size_t at)
{
	return (uint8_t)(at * 31 + (at >> 12));
}

static void
serve(struct rtsan_ctx *ctx)
{
	static uint8_t buf[CHUNK];
	struct rtsan_listener *listener;
	struct rtsan_stream *s;
	size_t sum = 0;
	ssize_t n;

	if (rtsan_listen(ctx, SERVICE, 0, 1, &listener) != 0 ||
	    rtsan_stream_accept(listener, NULL, PATIENCE_MS, &s) != 0)
		die("accept");
	rtsan_stream_set_timeout(s, PATIENCE_MS);
	while ((n = rtsan_stream_read(s, buf, sizeof(buf), 0)) > 0) {
		if (rtsan_stream_write(s, buf, (size_t)n) != n)
			die("write");
		sum += (size_t)n;
	}
	if (n < 0)
		die("read");
	if (rtsan_stream_close(s, PATIENCE_MS) != 0)
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
ask(struct rtsan_ctx *ctx, const char *peer, size_t bytes)
{
	static uint8_t buf[CHUNK];
	struct rtsan_stream *s;
	size_t done = 0, len, i;

	if (rtsan_stream_connect(ctx, peer, SERVICE, NULL, PATIENCE_MS, &s) != 0)
		die("connect");
	rtsan_stream_set_timeout(s, PATIENCE_MS);
	for (; done < bytes; done += len) {
		/* who writes more than both sides store, and does not read, waits for ever */
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
	if (rtsan_stream_close(s, PATIENCE_MS) != 0)
		die("close");
	printf("%zu bytes came back\n", done);
}

int
main(int argc, char **argv)
{
	bool is_server = argc == 3 && strcmp(argv[1], "server") == 0;
	bool is_client = argc >= 4 && argc <= 5 && strcmp(argv[1], "client") == 0;
	struct rtsan_ctx *ctx;

	if (!is_server && !is_client) {
		fprintf(stderr, "usage: stream server SPEC | client SPEC PEER [MBYTES]\n");
		return 2;
	}
	if (rtsan_open(argv[2], &ctx) != 0)
		die("open");
	if (is_server)
		serve(ctx);
	else
		ask(ctx, argv[3], (argc == 5 ? strtoul(argv[4], NULL, 0) : 1) << 20);
	rtsan_close(ctx);
	return 0;
}
