/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Short stories of a stream as captures: one for each mode, and for each change from one mode to
 * another. Two cores run in virtual time, so a story always has the same packets. Actions of the
 * programs are in the comment of the next packet. devtools/stream_diagrams.py draws the diagrams of
 * doc/stream.md from them. (AFC-5 ... AFC-13, AFC-18, AFC-23)
 *
 * usage: stream_story STORY FILE.pcapng
 *        stream_story --list
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim_conf.h"
#include "sim_trace.h"
#include "world.h"

#define LARGE (20u << 10)
#define SMALL 100
#define HEAD  64
#define A     0 /* connects, and sends */
#define B     1

static struct {
	struct world *w;
	struct sim_trace *trace;
	struct san_stream_conf stream;
	uint32_t q[2];
	uint8_t *buf[2];
	char comment[256];
} story;

/* ---- comments and actions ---- */

static void
say(const char *who, const char *what, uint32_t bytes)
{
	size_t at = strlen(story.comment);

	snprintf(story.comment + at, sizeof(story.comment) - at, "%s%s: %s", at > 0 ? "; " : "",
		 who, what);
	at = strlen(story.comment);
	if (bytes > 0)
		snprintf(story.comment + at, sizeof(story.comment) - at, " %u", bytes);
}

static int
on_packet(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	static uint8_t frame[65536];
	const uint8_t *bytes = rte_pktmbuf_read(m, 0, m->pkt_len, frame);

	san_sim_trace_packet(story.trace, from, w->now_ns, true, bytes, m->pkt_len,
			     story.comment[0] != '\0' ? story.comment : NULL);
	story.comment[0] = '\0';
	return 1;
}

static void
settle(void)
{
	world_run_for(story.w, 200 * SAN_NS_PER_US);
}

static void
posts(uint32_t who, uint32_t bytes)
{
	say(who == A ? "A" : "B", "posts a buffer of", bytes);
	world_post_recv(story.w, story.q[who], story.buf[who], bytes, 1);
}

static void
sends(uint32_t who, uint32_t bytes)
{
	struct san_ulp_wr wr;

	say(who == A ? "A" : "B", "sends", bytes);
	world_wr(&wr, RTSAN_WR_SEND, story.buf[who], bytes, 0, 0, 1, RTSAN_WR_SIGNALED);
	world_post(story.w, story.q[who], &wr);
}

static void
asks(uint32_t who, uint8_t op, uint32_t imm, const char *what)
{
	struct san_ulp_wr wr;

	say(who == A ? "A" : "B", what, 0);
	world_wr(&wr, op, NULL, 0, 0, 0, 1, RTSAN_WR_SIGNALED);
	wr.imm = imm;
	world_post(story.w, story.q[who], &wr);
}

/* ---- stories ---- */

static void
tell_small(void)
{
	posts(B, LARGE);
	sends(A, SMALL);
	settle();
}

static void
direct(void)
{
	posts(B, LARGE);
	settle();
	sends(A, LARGE);
	settle();
}

/* As many transfers as it takes to learn. */
static void
learn(void (*transfer)(void))
{
	for (int i = 0; i < story.stream.learn; i++) {
		if (i == story.stream.learn - 1)
			snprintf(story.comment, sizeof(story.comment), "after %d like this", i);
		transfer();
	}
}

static void
tell_large(void)
{
	learn(direct);
	direct();
}

static void
tell_large_small(void)
{
	learn(direct);
	posts(B, LARGE);
	settle();
	sends(A, SMALL);
	settle();
}

static void
waits(void)
{
	asks(B, SAN_WR_WAIT, RTSAN_STREAM_READABLE, "waits for data");
	sends(A, LARGE);
	settle();
	posts(B, HEAD);
	settle();
	posts(B, LARGE);
	settle();
}

static void
tell_small_large(void)
{
	learn(waits);
	waits();
}

static void
small(void)
{
	posts(B, HEAD);
	settle();
	sends(A, LARGE);
	settle();
	while (world_wait(story.w, story.q[B], true, &(struct san_ulp_wc){0}, SAN_NS_PER_US * 50)) {
		world_post_recv(story.w, story.q[B], story.buf[B], 1024, 1);
		world_run_for(story.w, 20 * SAN_NS_PER_US);
	}
}

static void
tell_crossing(void)
{
	learn(direct);
	posts(B, LARGE);
	sends(A, LARGE);
	settle();
}

static void
tell_stale(void)
{
	learn(direct);
	sends(A, SMALL);
	posts(B, LARGE);
	settle();
	posts(B, LARGE);
	settle();
	sends(A, LARGE);
	settle();
}

static void
tell_scan(void)
{
	learn(direct);
	sends(A, LARGE);
	world_run_for(story.w, 50 * SAN_NS_PER_MS);
	posts(B, LARGE);
	settle();
}

static void
tell_leave_large(void)
{
	learn(direct);
	sends(A, LARGE);
	posts(B, HEAD);
	settle();
}

static void
tell_leave_small(void)
{
	learn(small);
	posts(B, LARGE);
	settle();
	sends(A, LARGE);
	settle();
	posts(B, LARGE);
	settle();
}

static void
tell_leave_small_large(void)
{
	learn(waits);
	direct();
}

/* B sends requests, and A's answers are large: the buffer is advertised with the request. */
static void
ask(void)
{
	posts(B, LARGE);
	sends(B, SMALL);
	posts(A, HEAD * 2);
	settle();
	sends(A, LARGE);
	settle();
}

static void
tell_recv_send(void)
{
	learn(ask);
	ask();
}

static void
tell_resize(void)
{
	for (uint32_t i = 0; i < 6; i++) {
		sends(A, 3000);
		world_post_recv(story.w, story.q[B], story.buf[B], LARGE, 1);
		settle();
	}
}

static void
tell_urgent(void)
{
	struct san_ulp_wr wr;

	say("A", "sends 100, the last byte urgent", 0);
	world_wr(&wr, RTSAN_WR_SEND, story.buf[A], SMALL, 0, 0, 1, RTSAN_WR_SIGNALED);
	wr.flags |= RTSAN_WR_OOB;
	world_post(story.w, story.q[A], &wr);
	settle();
}

static void
tell_withdraw(void)
{
	learn(direct);
	posts(B, LARGE);
	settle();
	asks(B, SAN_WR_CANCEL, RTSAN_STREAM_RECVS, "wants its buffers back");
	settle();
}

static void
tell_end(void)
{
	sends(A, SMALL);
	asks(A, SAN_WR_SHUTDOWN, 0, "has sent all");
	posts(B, LARGE);
	settle();
}

static void
no_reads(struct san_stream_conf *c)
{
	c->read = RTSAN_STREAM_READ_NEVER;
}

static void
few_buffers(struct san_stream_conf *c)
{
	c->nb_recv = c->nb_store = 4;
	c->frags = 2;
}

static void
all_reads(struct san_stream_conf *c)
{
	c->read = RTSAN_STREAM_READ_ALWAYS;
}

static const struct {
	const char *name;
	void (*tell)(void);
	void (*conf)(struct san_stream_conf *c);
} stories[] = {
	{"small", tell_small, NULL},
	{"discovery", direct, NULL},
	{"large", tell_large, NULL},
	{"large-small-data", tell_large_small, NULL},
	{"small-large", tell_small_large, NULL},
	{"small-large-write", waits, no_reads},
	{"small-receive", small, NULL},
	{"crossing", tell_crossing, all_reads},
	{"stale", tell_stale, NULL},
	{"nothing-posted", tell_scan, NULL},
	{"leave-large", tell_leave_large, NULL},
	{"leave-small", tell_leave_small, NULL},
	{"leave-small-large", tell_leave_small_large, NULL},
	{"receive-send", tell_recv_send, NULL},
	{"resize", tell_resize, few_buffers},
	{"urgent", tell_urgent, NULL},
	{"withdrawn", tell_withdraw, NULL},
	{"end", tell_end, NULL},
};

/* ---- a run ---- */

static int
run(uint32_t nr, const char *file)
{
	struct world_conf conf;
	struct san_cm_param param;
	int rc = san_sim_trace_open(file, &story.trace);

	if (rc != 0)
		return rc;
	san_sim_trace_interface(story.trace, "A");
	san_sim_trace_interface(story.trace, "B");
	san_stream_conf_default(&story.stream);
	if (stories[nr].conf != NULL)
		stories[nr].conf(&story.stream);
	world_conf_default(&conf);
	conf.nb_nodes = 2;
	conf.stream = &story.stream;
	story.w = world_create(&conf);
	story.w->filter = on_packet;
	world_param_default(&param);
	world_connect(story.w, A, B, &param, &param, &story.q[A], &story.q[B]);
	settle();
	for (int i = 0; i < 2; i++)
		story.buf[i] = calloc(1, LARGE);
	stories[nr].tell();
	rc = san_sim_trace_close(story.trace);
	story.w->filter = NULL;
	for (int i = 0; i < 2; i++)
		san_core_conn_abort(story.w->node[i].core, story.w->qp[story.q[i]].qp,
				    story.w->now_ns);
	world_run_for(story.w, SAN_NS_PER_MS);
	world_destroy(story.w);
	for (int i = 0; i < 2; i++)
		free(story.buf[i]);
	return rc;
}

int
main(int argc, char **argv)
{
	uint32_t nb = sizeof(stories) / sizeof(stories[0]);
	int rc;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (uint32_t i = 0; i < nb; i++)
			printf("%s\n", stories[i].name);
		return 0;
	}
	for (uint32_t i = 0; argc == 3 && i < nb; i++) {
		if (strcmp(argv[1], stories[i].name) != 0)
			continue;
		rc = run(i, argv[2]);
		if (rc != 0)
			fprintf(stderr, "%s: %s\n", argv[2], strerror(-rc));
		return rc != 0;
	}
	fprintf(stderr, "usage: stream_story STORY FILE.pcapng\n       stream_story --list\n");
	return 2;
}
