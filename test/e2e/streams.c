/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What rtsan_stream.h promises, between streams of one program to its own address. (AFC-1, AFC-2)
 *
 *   streams SPEC ADDRESS
 *
 * The engine has an lcore of its own, or is the daemon's; several threads use one stream.
 */

#include <pthread.h>
#include <unistd.h>

#include "rt.h"

#define SERVICE    99
#define TIMEOUT_MS 20000
#define SHORT_MS   60
#define MUCH       (4u << 20)
#define CHUNK      50001  /* not a round number */
#define ONE        200000 /* one part of a write, more than may be unread */
#define ROUNDS     20

static struct rtsan_ctx *ctx;
static struct rtsan_listener *listener;
static const char *address;
static struct rtsan_stream *a, *b;

static uint8_t
pattern(size_t at)
{
	return (uint8_t)(at * 37 + (at >> 11));
}

static void *
accept_one(void *out)
{
	CHECK(rtsan_stream_accept(listener, NULL, TIMEOUT_MS, out) == 0);
	return NULL;
}

static void
make_pair(const struct rtsan_stream_attr *attr, struct rtsan_stream **one,
	  struct rtsan_stream **other)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, accept_one, other) == 0);
	CHECK(rtsan_stream_connect(ctx, address, SERVICE, attr, TIMEOUT_MS, one) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	rtsan_stream_set_timeout(*one, TIMEOUT_MS);
	rtsan_stream_set_timeout(*other, TIMEOUT_MS);
}

static void *
close_one(void *s)
{
	CHECK(rtsan_stream_close(s, TIMEOUT_MS) == 0);
	return NULL;
}

static void
close_pair(struct rtsan_stream *one, struct rtsan_stream *other)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, close_one, one) == 0);
	close_one(other);
	CHECK(pthread_join(thread, NULL) == 0);
}

/* ---- threads ---- */

static void *
write_much(void *s)
{
	static __thread uint8_t buf[CHUNK];
	size_t len;

	for (size_t at = 0; at < MUCH; at += len) {
		len = MUCH - at < CHUNK ? MUCH - at : CHUNK;
		for (size_t i = 0; i < len; i++)
			buf[i] = pattern(at + i);
		CHECK(rtsan_stream_write(s, buf, len) == (ssize_t)len);
	}
	return NULL;
}

static void
read_checked(struct rtsan_stream *s, size_t at, size_t end)
{
	static __thread uint8_t buf[CHUNK];
	ssize_t n;

	for (; at < end; at += (size_t)n) {
		n = rtsan_stream_read(s, buf, end - at < CHUNK ? end - at : CHUNK, 0);
		CHECK(n > 0);
		for (ssize_t i = 0; i < n; i++)
			CHECK(buf[i] == pattern(at + (size_t)i));
	}
}

static void *
read_much(void *s)
{
	read_checked(s, 0, MUCH);
	return NULL;
}

/* Four threads on two streams: no direction waits for the other one. */
static void
both_ways(void)
{
	void *(*const does[])(void *) = {write_much, write_much, read_much, read_much};
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, does[i], i % 2 == 0 ? a : b) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

/* ---- timeouts ---- */

static void
read_in_time(void)
{
	uint8_t buf[4] = {0};
	uint64_t from;

	rtsan_stream_set_timeout(b, 0);
	CHECK(rtsan_stream_read(b, buf, sizeof(buf), 0) == -EAGAIN);
	rtsan_stream_set_timeout(b, TIMEOUT_MS);
	CHECK(rtsan_stream_read(b, buf, sizeof(buf), RTSAN_RECV_DONTWAIT) == -EAGAIN);
	rtsan_stream_set_timeout(b, SHORT_MS);
	from = rt_now_ms();
	CHECK(rtsan_stream_read(b, buf, sizeof(buf), 0) == -EAGAIN);
	CHECK(rt_now_ms() - from >= SHORT_MS);
	/* the expired read has consumed nothing */
	CHECK(rtsan_stream_write(a, "abc", 3) == 3);
	/* an incomplete read with WAITALL returns what is there when it expires */
	CHECK(rtsan_stream_read(b, buf, sizeof(buf), RTSAN_RECV_WAITALL) == 3);
	CHECK(memcmp(buf, "abc", 3) == 0);
	rtsan_stream_set_timeout(b, TIMEOUT_MS);
}

/* A reader that does not read blocks the writer. What was written before arrives once. */
static void
write_in_time(void)
{
	static uint8_t buf[CHUNK];
	size_t sent = 1;
	ssize_t n;

	buf[0] = pattern(0);
	CHECK(rtsan_stream_write(a, buf, 1) == 1);
	rtsan_stream_set_timeout(a, SHORT_MS);
	for (;;) {
		for (size_t i = 0; i < CHUNK; i++)
			buf[i] = pattern(sent + i);
		n = rtsan_stream_write(a, buf, CHUNK);
		if (n < 0)
			break;
		sent += (size_t)n;
		CHECK(sent < 64u << 20);
	}
	CHECK(n == -EAGAIN);
	rtsan_stream_set_timeout(a, TIMEOUT_MS);
	read_checked(b, 0, sent);
	CHECK(rtsan_stream_read(b, buf, 1, RTSAN_RECV_DONTWAIT) == -EAGAIN);
}

/* ---- other calls ---- */

static void
peek_and_parts(void)
{
	uint8_t x[2] = {0}, y[7] = {0};
	struct iovec in[] = {{x, sizeof(x)}, {NULL, 0}, {y, sizeof(y)}};
	struct iovec out[] = {{"scat", 4}, {"", 0}, {"te", 2}, {"r", 1}, {"e", 1}, {"d", 1}};

	CHECK(rtsan_stream_writev(a, out, 6) == 9);
	CHECK(rtsan_stream_readv(b, in, 3, RTSAN_RECV_WAITALL | RTSAN_RECV_PEEK) == 9);
	CHECK(memcmp(x, "sc", 2) == 0 && memcmp(y, "attered", 7) == 0);
	memset(y, 0, sizeof(y));
	CHECK(rtsan_stream_readv(b, in, 3, RTSAN_RECV_WAITALL) == 9);
	CHECK(memcmp(y, "attered", 7) == 0);
	CHECK(rtsan_stream_read(b, x, 0, 0) == 0);
	CHECK(rtsan_stream_read(b, x, 1, 0x80) == -EINVAL);
	CHECK(rtsan_stream_writev(a, NULL, 1) == -EINVAL);
}

static void
urgent(void)
{
	struct rtsan_stream_poll p = {.stream = b, .events = RTSAN_STREAM_URGENT};
	uint8_t byte = 0;
	int rc;

	CHECK(rtsan_stream_recv_urgent(b, &byte) == -EINVAL);
	CHECK(rtsan_stream_send_urgent(a, '!') == 0);
	CHECK(rtsan_stream_poll(&p, 1, TIMEOUT_MS) == 1 && p.revents == RTSAN_STREAM_URGENT);
	while ((rc = rtsan_stream_recv_urgent(b, &byte)) == -EAGAIN)
		;
	CHECK(rc == 0 && byte == '!');
}

static void
poll_several(void)
{
	struct rtsan_stream *c, *d;
	struct rtsan_stream_poll p[2] = {
		{.events = RTSAN_STREAM_READABLE},
		{.events = RTSAN_STREAM_READABLE},
	};
	uint8_t byte;
	uint64_t from = rt_now_ms();

	make_pair(NULL, &c, &d);
	p[0].stream = b;
	p[1].stream = d;
	CHECK(rtsan_stream_poll(p, 2, 0) == 0);
	CHECK(rtsan_stream_poll(p, 2, SHORT_MS) == 0 && rt_now_ms() - from >= SHORT_MS);
	CHECK(rtsan_stream_write(c, "x", 1) == 1);
	CHECK(rtsan_stream_poll(p, 2, TIMEOUT_MS) == 1);
	CHECK(p[0].revents == 0 && p[1].revents == RTSAN_STREAM_READABLE);
	CHECK(rtsan_stream_read(d, &byte, 1, 0) == 1);
	/* after the read it is not readable any more */
	CHECK(rtsan_stream_poll(p, 2, 0) == 0);
	p[1].events = RTSAN_STREAM_READABLE | RTSAN_STREAM_WRITABLE;
	CHECK(rtsan_stream_poll(p, 2, TIMEOUT_MS) == 1 && p[1].revents == RTSAN_STREAM_WRITABLE);
	p[1].events = 0x100;
	CHECK(rtsan_stream_poll(p, 2, 0) == -EINVAL);
	close_pair(c, d);
}

static void *
read_byte(void *s)
{
	uint8_t byte;

	CHECK(rtsan_stream_read(s, &byte, 1, 0) == 1);
	return NULL;
}

static void *
poll_urgent(void *s)
{
	struct rtsan_stream_poll p = {.stream = s, .events = RTSAN_STREAM_URGENT};

	CHECK(rtsan_stream_poll(&p, 1, -1) == 1 && p.revents == RTSAN_STREAM_URGENT);
	return NULL;
}

/* One of two threads drives the stream, and wakes the other one for its event. */
static void
poll_beside_a_reader(void)
{
	pthread_t reader, poller;
	uint8_t byte;
	int rc;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK(pthread_create(&reader, NULL, read_byte, b) == 0);
		CHECK(pthread_create(&poller, NULL, poll_urgent, b) == 0);
		usleep((useconds_t)i * 200); /* before and after they wait */
		CHECK(rtsan_stream_send_urgent(a, '!') == 0);
		CHECK(pthread_join(poller, NULL) == 0);
		while ((rc = rtsan_stream_recv_urgent(b, &byte)) == -EAGAIN)
			;
		CHECK(rc == 0 && byte == '!');
		CHECK(rtsan_stream_write(a, "x", 1) == 1);
		CHECK(pthread_join(reader, NULL) == 0);
	}
}

static void
half_close(void)
{
	uint8_t byte;

	CHECK(rtsan_stream_shutdown_write(a) == 0);
	CHECK(rtsan_stream_read(b, &byte, 1, 0) == 0);
	CHECK(rtsan_stream_read(b, &byte, 1, 0) == 0);
	CHECK(rtsan_stream_write(a, "x", 1) == -EPIPE);
	CHECK(rtsan_stream_write(b, "y", 1) == 1);
	CHECK(rtsan_stream_read(a, &byte, 1, 0) == 1 && byte == 'y');
}

static void *
write_one(void *s)
{
	static uint8_t buf[ONE];

	for (size_t i = 0; i < ONE; i++)
		buf[i] = pattern(i);
	CHECK(rtsan_stream_write(s, buf, ONE) == ONE);
	return NULL;
}

/*
 * shutdown_write() waits neither for the peer, which does not read, nor for a blocked write.
 * Meanwhile the stream works as before, and the end follows the written bytes.
 */
static void
shutdown_at_once(void)
{
	struct rtsan_stream_poll p = {.events = RTSAN_STREAM_READABLE};
	struct rtsan_stream *c, *d;
	pthread_t thread;
	uint64_t from;
	uint8_t byte;

	make_pair(NULL, &c, &d);
	CHECK(pthread_create(&thread, NULL, write_one, c) == 0);
	p.stream = d;
	CHECK(rtsan_stream_poll(&p, 1, TIMEOUT_MS) == 1); /* the write has begun */
	from = rt_now_ms();
	CHECK(rtsan_stream_shutdown_write(c) == 0);
	CHECK(rtsan_stream_shutdown_write(c) == 0);
	CHECK(rtsan_stream_recv_urgent(c, &byte) == -EINVAL);
	CHECK(rtsan_stream_write(d, "y", 1) == 1);
	p.stream = c;
	CHECK(rtsan_stream_poll(&p, 1, TIMEOUT_MS) == 1 && p.revents == RTSAN_STREAM_READABLE);
	CHECK(rtsan_stream_read(c, &byte, 1, 0) == 1 && byte == 'y');
	CHECK(rt_now_ms() - from < TIMEOUT_MS / 2);
	read_checked(d, 0, ONE);
	CHECK(rtsan_stream_read(d, &byte, 1, 0) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(rtsan_stream_write(c, "x", 1) == -EPIPE);
	close_pair(c, d);
}

static void *
write_and_close(void *s)
{
	write_much(s);
	return close_one(s);
}

/* All that was written before the close can be read after it. */
static void
close_after_write(void)
{
	struct rtsan_stream *c, *d;
	pthread_t thread;
	uint8_t byte;

	make_pair(NULL, &c, &d);
	CHECK(pthread_create(&thread, NULL, write_and_close, c) == 0);
	read_much(d);
	CHECK(rtsan_stream_read(d, &byte, 1, 0) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(rtsan_stream_close(d, TIMEOUT_MS) == 0);
}

static void
nobody_there(void)
{
	struct rtsan_stream *s;

	CHECK(rtsan_stream_connect(ctx, address, SERVICE + 1, NULL, TIMEOUT_MS, &s) ==
	      -ECONNREFUSED);
	CHECK(rtsan_stream_accept(listener, NULL, SHORT_MS, &s) == -EAGAIN);
	CHECK(rtsan_stream_connect(ctx, "nowhere", SERVICE, NULL, TIMEOUT_MS, &s) == -EINVAL);
}

static struct rtsan_stream *late;

static void *
connect_late(void *arg)
{
	CHECK(rtsan_stream_connect(ctx, address, SERVICE + 1, NULL, TIMEOUT_MS, &late) == 0);
	return NULL;
}

/* A request that comes before the accept is kept, whichever call has read it meanwhile. */
static void
accept_late(void)
{
	struct rtsan_listener *l;
	struct rtsan_stream *s;
	pthread_t thread;

	CHECK(rtsan_listen(ctx, SERVICE + 1, 0, 8, &l) == 0);
	CHECK(pthread_create(&thread, NULL, connect_late, NULL) == 0);
	CHECK(rtsan_stream_accept(listener, NULL, 5 * SHORT_MS, &s) == -EAGAIN);
	CHECK(rtsan_stream_accept(l, NULL, TIMEOUT_MS, &s) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	close_pair(late, s);
	rtsan_listener_destroy(l);
}

/* Options that can be changed later, and those that cannot. */
static void
options(void)
{
	CHECK(rtsan_stream_set_option(a, RTSAN_STREAM_OPT_GATHER_US, 0) == 0);
	CHECK(rtsan_stream_set_option(a, RTSAN_STREAM_OPT_MODE, 77) == -EINVAL);
	CHECK(rtsan_stream_set_option(a, (enum rtsan_stream_option)99, 0) == -EINVAL);
}

/* Written bytes are sent after the close, without a program that waits. */
static void
lingers(void)
{
	const struct rtsan_stream_attr attr = {.linger = true, .send_buffer = MUCH};
	struct rtsan_stream *one, *other;
	static uint8_t buf[MUCH];

	for (size_t i = 0; i < MUCH; i++)
		buf[i] = pattern(i);
	make_pair(&attr, &one, &other);
	CHECK(rtsan_stream_write(one, buf, MUCH) == MUCH);
	CHECK(rtsan_stream_close(one, 0) == -EAGAIN); /* the peer has read nothing */
	read_checked(other, 0, MUCH);
	CHECK(rtsan_stream_read(other, buf, 1, 0) == 0);
	close_one(other);
}

int
main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: streams SPEC ADDRESS\n");
		return 2;
	}
	address = argv[2];
	CHECK(rtsan_open(argv[1], &ctx) == 0);
	CHECK(rtsan_listen(ctx, SERVICE, 0, 8, &listener) == 0);
	make_pair(NULL, &a, &b);
	read_in_time();
	options();
	both_ways();
	write_in_time();
	peek_and_parts();
	urgent();
	poll_several();
	poll_beside_a_reader();
	half_close();
	close_pair(a, b);
	shutdown_at_once();
	close_after_write();
	lingers();
	accept_late();
	nobody_there();
	rtsan_listener_destroy(listener);
	rtsan_close(ctx);
	printf("streams: all as promised\n");
	return 0;
}
