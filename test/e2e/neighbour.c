/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A neighbour of other programs of a daemon, in one way until it is killed. (SYS-13)
 *
 *   neighbour KIND SOCKET PEER
 *
 * "fair" keeps a few small pushes under way, as an ordinary busy program does. All others take what
 * they can: a program beside a hostile kind should feel little more than beside the fair one.
 */

#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "raw_app.h"

#define SERVICE    4711
#define NOBODY     65534
#define NB_QPS     200
#define NB_PULLS   4
#define SMALL      4096
#define REGION     ((size_t)64 << 20)
#define REGIONS    16
#define NB_PUNCHES 2
#define NB_POSTED  8 /* together */

static const char *path, *peer;
static struct raw_app a, b;
static struct raw_qp qa[NB_QPS], qb[NB_QPS];

static void
pair(uint32_t nb, uint32_t depth, size_t bytes)
{
	raw_attach(&a, path);
	raw_attach(&b, path);
	raw_add_region(&a, bytes, F_SEAL_SHRINK);
	raw_add_region(&b, bytes, F_SEAL_SHRINK);
	for (uint32_t i = 0; i < nb; i++) {
		MUST(raw_make_qp(&a, &qa[i], depth) == 0 && raw_make_qp(&b, &qb[i], depth) == 0,
		     "queue pair %u", i);
		raw_pair(&qa[i], &qb[i], peer, SERVICE);
	}
}

static void
ready(void)
{
	puts("ready");
	fflush(stdout);
}

/* Keep *depth* of these under way on each connection, over the whole region. */
static void
transfer(uint32_t nb, uint32_t depth, enum rtsan_wr_opcode op, uint32_t len)
{
	struct san_ulp_wr wr = raw_wr(op, &a, &b, len);
	uint32_t done;

	ready();
	for (;;) {
		for (uint32_t i = 0; i < nb; i++) {
			done = atomic_load(&qa[i].cq_mem->tail);
			atomic_store(&qa[i].cq_mem->head, done);
			if (atomic_load(&qa[i].wq->sq_tail) - done > depth - NB_POSTED)
				continue;
			for (uint32_t j = 0; j < NB_POSTED; j++) {
				raw_post(&qa[i], &wr);
				wr.remote_addr = RAW_BASE +
					(wr.remote_addr - RAW_BASE + len) % (a.bytes - len + 1);
			}
		}
		if (atomic_load(&a.ctl->ev_tail) != a.ev_head)
			return; /* the daemon has ended it */
	}
}

static void
be_fair(void)
{
	pair(1, 16, REGION);
	transfer(1, 16, RTSAN_WR_PUSH, SMALL);
}

static void
be_bells(void)
{
	pair(NB_QPS, 2, SMALL);
	ready();
	for (uint32_t i = 0;; i++)
		raw_ring(&qa[i % NB_QPS]);
}

static void
be_pulls(void)
{
	pair(NB_PULLS, 64, REGION);
	transfer(NB_PULLS, 64, RTSAN_WR_PULL, REGION);
}

static void
be_regions(void)
{
	struct shmq_req req = {.type = SHMQ_MR_ADD,
			       .mr = {.addr = RAW_BASE, .length = REGION, .access = 7}};
	int fd = raw_memfd(REGION, F_SEAL_SHRINK), got;
	struct shmq_rep rep;
	uint32_t i, keys[REGIONS] = {0};

	raw_attach(&a, path);
	ready();
	for (i = 0;; i++) {
		if (i >= REGIONS)
			raw_ask_id(&a, SHMQ_MR_DEL, keys[i % REGIONS]);
		if (raw_ask(&a, &req, fd, &rep, &got) == 0)
			keys[i % REGIONS] = rep.id;
	}
}

/* Each has another socket, queues and a connection, and ends in the middle of it. */
static void
be_conns(void)
{
	ready();
	for (;;) {
		raw_attach(&a, path);
		raw_attach(&b, path);
		if (raw_make_qp(&a, &qa[0], 2) == 0) {
			if (raw_make_qp(&b, &qb[0], 2) == 0) {
				raw_pair(&qa[0], &qb[0], peer, SERVICE);
				raw_drop_qp(&qb[0]);
			}
			raw_drop_qp(&qa[0]);
		}
		raw_detach(&a);
		raw_detach(&b);
	}
}

/* What the daemon writes down about each: nonsense, and a queue pair that breaks its rules. */
static void
be_noise(void)
{
	struct san_ulp_wr bad;
	const char word[] = "nonsense";

	memset(&bad, 0xff, sizeof(bad));
	ready();
	for (;;) {
		int sock = raw_dial(path);

		(void)!write(sock, word, sizeof(word));
		close(sock);
		raw_attach(&a, path);
		MUST(raw_make_qp(&a, &qa[0], 2) == 0, "queue pair");
		raw_post(&qa[0], &bad);
		raw_end_qp(&qa[0]);
		raw_detach(&a);
	}
}

static void *
punch(void *unused)
{
	for (;;) {
		fallocate(b.region_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, REGION);
		(void)!posix_fallocate(b.region_fd, 0, REGION);
	}
	return NULL;
}

/* Ask for a region. After a failure of its memory the user gets none for a minute. */
static bool
may_add_region(void)
{
	struct shmq_req req = {.type = SHMQ_MR_ADD,
			       .mr = {.addr = RAW_BASE, .length = SMALL, .access = 7}};
	int fd = raw_memfd(SMALL, F_SEAL_SHRINK), got;
	struct shmq_rep rep;
	bool may;

	raw_attach(&a, path);
	may = raw_ask(&a, &req, fd, &rep, &got) == 0;
	raw_detach(&a);
	close(fd);
	return may;
}

/* Pages of its region come and go while the daemon writes to them. Ended, it comes again. */
static void
be_pages(void)
{
	pthread_t t;
	int nb_threads = 0;

	for (;;) {
		while (!may_add_region())
			;
		pair(1, 64, REGION);
		for (; nb_threads < NB_PUNCHES; nb_threads++)
			MUST(pthread_create(&t, NULL, punch, NULL) == 0, "thread");
		transfer(1, 64, RTSAN_WR_PUSH, SMALL);
		raw_drop_qp(&qa[0]);
		raw_drop_qp(&qb[0]);
		raw_detach(&a);
		raw_detach(&b);
	}
}

static const struct {
	const char *name;
	void (*be)(void);
} kinds[] = {
	{"fair", be_fair},
	{"bells", be_bells},
	{"pulls", be_pulls},
	{"regions", be_regions},
	{"conns", be_conns},
	{"noise", be_noise},
	{"pages", be_pages},
};

int
main(int argc, char **argv)
{
	uid_t uid = NOBODY;

	MUST(argc == 4, "usage: neighbour KIND SOCKET PEER");
	path = argv[2];
	peer = argv[3];
	/* of a user of its own: after pages that went, its user gets no regions for a minute */
	if (strcmp(argv[1], "pages") == 0)
		uid--;
	MUST(setgroups(0, NULL) == 0 && setgid(uid) == 0 && setuid(uid) == 0, "another user");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(argv[1], kinds[i].name) == 0)
			kinds[i].be();
	raw_die("%s has ended", argv[1]);
}
