/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A program that leaves streams which cannot finish, because their peer never reads. (SYS-5)
 *
 *   leaver server SPEC           accepts until it is killed
 *   leaver client SPEC PEER NB   connects NB streams, writes, and exits without closing them
 */

#include <unistd.h>

#include "rt.h"

#define SERVICE    98
#define TIMEOUT_MS 20000
#define BUFFER     65536
#define LENGTH     60000 /* fits into the buffer, but the peer does not take all of it unread */
#define BACKLOG    64

static void
serve(struct rtsan_ctx *ctx)
{
	struct rtsan_listener *listener;
	struct rtsan_stream *s;

	CHECK(rtsan_listen(ctx, SERVICE, 0, BACKLOG, &listener) == 0);
	rt_say("listens");
	for (;;)
		rtsan_stream_accept(listener, NULL, TIMEOUT_MS, &s);
}

static void
leave(struct rtsan_ctx *ctx, const char *peer, int nb)
{
	const struct rtsan_stream_attr attr = {.linger = true, .send_buffer = BUFFER};
	static uint8_t buf[LENGTH];
	struct rtsan_stream *s;

	while (nb-- > 0) {
		CHECK(rtsan_stream_connect(ctx, peer, SERVICE, &attr, TIMEOUT_MS, &s) == 0);
		rtsan_stream_set_timeout(s, TIMEOUT_MS);
		CHECK(rtsan_stream_write(s, buf, sizeof(buf)) == (ssize_t)sizeof(buf));
	}
	_exit(0);
}

int
main(int argc, char **argv)
{
	struct rtsan_ctx *ctx;

	if (argc != 3 && argc != 5) {
		fprintf(stderr, "usage: leaver server SPEC | client SPEC PEER NB\n");
		return 2;
	}
	CHECK(rtsan_open(argv[2], &ctx) == 0);
	if (argc == 3)
		serve(ctx);
	else
		leave(ctx, argv[3], atoi(argv[4]));
	return 0;
}
