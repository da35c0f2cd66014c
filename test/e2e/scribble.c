/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * An application that corrupts shared memory. It attaches to a daemon as librtsan does, connects,
 * and then writes random data wherever it may write, while the daemon works on it. (SYS-5)
 *
 *   scribble server|client SOCKET PEER SEED
 *
 * Both roles do the same; the client connects to the server, so work is always in flight. It runs
 * until SIGTERM, for at least TURNS, and prints how many queue pairs were ended because of invalid
 * data. Exits with 0 if the daemon has answered to the end.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "raw_app.h"

#define QPS     4
#define DEPTH   16
#define REGION  (1u << 18)
#define SERVICE 77
#define WORDS   64 /* overwritten at once at most */
#define TURNS   1000

struct queue {
	struct raw_qp q;
	bool up;
};

static struct san_prng prng;
static struct raw_app app;
static struct queue queues[QPS];
static uint32_t peer_key;
static bool is_server;
static uint32_t nb_ended; /* queue pairs that invalid data has ended */
static const char *peer;
static volatile sig_atomic_t is_told; /* SIGTERM has come */

static uint32_t
below(uint32_t n)
{
	return san_prng_below(&prng, n);
}

static void
make_queue(struct queue *q)
{
	q->up = false;
	MUST(raw_make_qp(&app, &q->q, DEPTH) == 0, "queue pair");
}

static void
begin(struct queue *q)
{
	struct shmq_req req = {.type = SHMQ_CONNECT, .id = q->q.qp, .conn = {.service = SERVICE}};

	snprintf(req.conn.peer, sizeof(req.conn.peer), "%s", peer);
	memcpy(req.conn.private_data, &app.key, sizeof(app.key));
	req.conn.private_len = sizeof(app.key);
	req.conn.order = (uint8_t)below(3);
	if (!is_server)
		raw_ask_rc(&app, &req);
}

static void
accept_one(const struct shmq_event *ev)
{
	uint32_t i;

	memcpy(&peer_key, ev->private_data, sizeof(peer_key));
	for (i = 0; i < QPS && queues[i].up; i++)
		;
	if (i == QPS)
		i = below(QPS); /* one that is connected already: must be refused */
	if (raw_accept(&queues[i].q, ev->request) == 0)
		queues[i].up = true;
}

static void
events(void)
{
	struct shmq_event ev;

	/* a request that is refused at once causes the next event */
	for (uint32_t n = 0; n < QPS && raw_event(&app, &ev); n++) {
		if (ev.type == RAW_REQUEST)
			accept_one(&ev);
		for (uint32_t i = 0; i < QPS && ev.type > RAW_ESTABLISHED; i++) {
			struct queue *q = &queues[i];

			if (q->q.qp != ev.qp)
				continue;
			nb_ended += ev.reason == RAW_MALFORMED;
			raw_end_qp(&q->q);
			make_queue(q);
			begin(q);
		}
	}
}

/* Mostly valid, so that the daemon processes much of it. */
static void
post(struct raw_qp *q)
{
	struct san_ulp_wr *e = (struct san_ulp_wr *)(q->wq + 1);
	uint32_t tail = atomic_load(&q->wq->sq_tail), len = below(REGION / 8);

	e += tail % DEPTH;
	*e = (struct san_ulp_wr){
		.op = (uint8_t)(1 + below(6)),
		.flags = (uint8_t)below(2),
		.nb_sge = 1,
		.remote_addr = RAW_BASE + below(REGION / 16) * 8ull,
		.rkey = below(10) != 0 ? peer_key : app.key,
		.length = len,
		.sge = {raw_part(&app, below(REGION / 2), len)},
	};
	if (e->op >= 5)
		e->length = e->sge[0].length = 8;
	if (below(20) == 0)
		((uint8_t *)e)[below(sizeof(*e))] = (uint8_t)below(256);
	atomic_store(&q->wq->sq_tail, tail + 1 + (below(50) == 0 ? below(40) : 0));
}

static void
scribble_over(void *mem, size_t bytes)
{
	uint64_t *w = mem;
	uint32_t n = 1 + below(WORDS);

	for (uint32_t i = 0; i < n; i++)
		w[below((uint32_t)(bytes / 8))] =
			below(2) ? san_prng_u64(&prng) : below(2) ? 0 :
								    UINT64_MAX;
}

static void
one(struct raw_qp *q)
{
	uint32_t lcore = SAN_QPN_INDEX(q->qp) >> app.hello.hello.qp_shift;
	uint32_t nb_doorbells = app.hello.hello.lcore_qps + app.hello.hello.max_socks;

	switch (below(24)) {
	case 0:
		scribble_over(q->wq, q->wq_bytes);
		break;
	case 1:
		scribble_over(q->cq_mem, q->cq_bytes);
		break;
	case 2:
		scribble_over(san_shmq_doorbells(app.ctl, lcore, nb_doorbells),
			      san_doorbells_bytes(nb_doorbells));
		break;
	case 3:
		atomic_store(&q->cq_mem->head, (uint32_t)san_prng_u64(&prng));
		break;
	case 4:
		MUST(ftruncate(app.region_fd, 0) != 0, "the seal does not hold");
		break;
	default:
		post(q);
		break;
	}
	raw_ring(q);
}

static void
on_term(int signum)
{
	is_told = signum;
}

int
main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	signal(SIGTERM, on_term);
	is_server = strcmp(argv[1], "server") == 0;
	peer = argv[3];
	san_prng_seed(&prng, strtoull(argv[4], NULL, 0));
	raw_attach(&app, argv[2]);
	raw_add_region(&app, REGION, F_SEAL_SHRINK);
	peer_key = app.key;
	MUST(!is_server || raw_listen(&app, SERVICE) == 0, "listen");
	for (uint32_t i = 0; i < QPS; i++) {
		make_queue(&queues[i]);
		begin(&queues[i]);
	}
	for (uint32_t nb_turns = 0; !is_told || nb_turns < TURNS; nb_turns++) {
		events();
		for (uint32_t i = 0; i < QPS; i++)
			one(&queues[i].q);
		usleep(below(200));
	}
	printf("%u queue pairs ended\n", nb_ended);
	return 0;
}
