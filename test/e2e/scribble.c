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

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "san_prng.h"
#include "shmq.h"

#define QPS       4
#define DEPTH     16
#define REGION    (1u << 18)
#define SERVICE   77
#define MALFORMED 11 /* RTSAN_R_MALFORMED */
#define WORDS     64 /* overwritten at once at most */
#define TURNS     1000

struct queue {
	uint32_t qp, cq;
	struct san_wq *wq;
	struct san_cq *cq_mem;
	int wq_fd, cq_fd;
	size_t wq_bytes, cq_bytes;
	bool up;
};

static struct san_prng prng;
static int sock;
static struct shmq_rep hello;
static struct shmq_ctl *ctl;
static struct queue queues[QPS];
static uint8_t *region;
static int region_fd;
static uint32_t key, peer_key;
static uint32_t ev_head;
static bool is_server;
static uint32_t nb_ended; /* queue pairs that invalid data has ended */
static const char *peer;
static volatile sig_atomic_t is_told; /* SIGTERM has come */

static uint32_t
below(uint32_t n)
{
	return san_prng_below(&prng, n);
}

static void __attribute__((noreturn))
die(const char *what)
{
	fprintf(stderr, "scribble: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* The daemon may refuse a request, but must answer. */
static int
ask(struct shmq_req *req, int fd, struct shmq_rep *rep, int *got)
{
	req->magic = SHMQ_MAGIC;
	req->abi = SHMQ_ABI;
	if (san_shmq_send(sock, req, sizeof(*req), fd, true) != 0 ||
	    san_shmq_recv(sock, rep, sizeof(*rep), got, true) != 0)
		die("the daemon does not answer");
	return rep->rc;
}

static int
ask_id(enum shmq_type type, uint32_t id)
{
	struct shmq_req req = {.type = type, .id = id};
	struct shmq_rep rep;
	int fd;

	return ask(&req, -1, &rep, &fd);
}

static void *
map(int fd, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static void
attach(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct shmq_req req = {.type = SHMQ_HELLO};
	struct shmq_rep rep;
	int fd;

	sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(sock, (struct sockaddr *)&addr, sizeof(addr)) != 0)
		die(path);
	if (ask(&req, -1, &hello, &fd) != 0)
		die(hello.text);
	ctl = map(fd, hello.hello.ctl_bytes);
	close(fd);
	region_fd = memfd_create("scribble", MFD_ALLOW_SEALING);
	if (posix_fallocate(region_fd, 0, REGION) != 0 ||
	    fcntl(region_fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
		die("memfd");
	region = map(region_fd, REGION);
	req = (struct shmq_req){.type = SHMQ_MR_ADD,
				.mr = {.addr = 0x10000, .length = REGION, .access = 7}};
	if (ask(&req, region_fd, &rep, &fd) != 0)
		die(rep.text);
	key = rep.id;
}

static void
make_queue(struct queue *q)
{
	struct shmq_req req = {.type = SHMQ_CQ_CREATE, .cq = {.depth = 2 * DEPTH}};
	struct shmq_rep rep;

	memset(q, 0, sizeof(*q));
	if (ask(&req, -1, &rep, &q->cq_fd) != 0)
		die(rep.text);
	q->cq = rep.cq.id;
	q->cq_bytes = san_wr_cq_bytes(rep.cq.depth);
	q->cq_mem = map(q->cq_fd, q->cq_bytes);
	req = (struct shmq_req){.type = SHMQ_QP_CREATE, .qp = {q->cq, q->cq, DEPTH, DEPTH}};
	if (ask(&req, -1, &rep, &q->wq_fd) != 0)
		die(rep.text);
	q->qp = rep.id;
	q->wq_bytes = san_wr_wq_bytes(DEPTH, DEPTH);
	q->wq = map(q->wq_fd, q->wq_bytes);
}

static void
end_queue(struct queue *q)
{
	if (ask_id(SHMQ_QP_DESTROY, q->qp) != 0 || ask_id(SHMQ_CQ_DESTROY, q->cq) != 0)
		die("destroy");
	munmap(q->wq, q->wq_bytes);
	munmap(q->cq_mem, q->cq_bytes);
	close(q->wq_fd);
	close(q->cq_fd);
}

static void
begin(struct queue *q)
{
	struct shmq_req req = {.type = SHMQ_CONNECT,
			       .id = q->qp,
			       .conn = {.service = SERVICE}};
	struct shmq_rep rep;
	int fd;

	snprintf(req.conn.peer, sizeof(req.conn.peer), "%s", peer);
	memcpy(req.conn.private_data, &key, sizeof(key));
	req.conn.private_len = sizeof(key);
	req.conn.order = (uint8_t)below(3);
	if (!is_server)
		ask(&req, -1, &rep, &fd);
}

static void
accept_one(const struct shmq_event *ev)
{
	struct shmq_req req = {.type = SHMQ_ACCEPT, .conn = {.request = ev->request}};
	struct shmq_rep rep;
	uint32_t i;
	int fd;

	memcpy(&peer_key, ev->private_data, sizeof(peer_key));
	for (i = 0; i < QPS && queues[i].up; i++)
		;
	if (i == QPS)
		i = below(QPS); /* one that is connected already: must be refused */
	req.id = queues[i].qp;
	if (ask(&req, -1, &rep, &fd) == 0)
		queues[i].up = true;
}

static void
events(void)
{
	struct queue *q;
	uint32_t i, n;

	/* a request that is refused at once causes the next event */
	for (n = 0; n < QPS && ev_head != atomic_load(&ctl->ev_tail); n++) {
		struct shmq_event ev = ctl->events[ev_head++ % SHMQ_EVENTS];

		atomic_store(&ctl->ev_head, ev_head);
		if (ev.type == 1)
			accept_one(&ev);
		for (i = 0; i < QPS && ev.type > 2; i++) {
			q = &queues[i];
			if (q->qp != ev.qp)
				continue;
			nb_ended += ev.reason == MALFORMED;
			end_queue(q);
			make_queue(q);
			begin(q);
		}
	}
}

/* Mostly valid, so that the daemon processes much of it. */
static void
post(struct queue *q)
{
	struct san_ulp_wr *e = (struct san_ulp_wr *)(q->wq + 1);
	uint32_t tail = atomic_load(&q->wq->sq_tail), len = below(REGION / 8);

	e += tail % DEPTH;
	*e = (struct san_ulp_wr){
		.op = (uint8_t)(1 + below(6)),
		.flags = (uint8_t)below(2),
		.nb_sge = 1,
		.remote_addr = 0x10000 + below(REGION / 16) * 8ull,
		.rkey = below(10) != 0 ? peer_key : key,
		.length = len,
		.sge = {{(void *)(uintptr_t)(0x10000 + below(REGION / 2)), len, key}},
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
	uint32_t i, n = 1 + below(WORDS);

	for (i = 0; i < n; i++)
		w[below((uint32_t)(bytes / 8))] =
			below(2) ? san_prng_u64(&prng) : below(2) ? 0 :
								    UINT64_MAX;
}

static void
one(struct queue *q)
{
	uint32_t lcore = (q->qp & ((1u << SAN_QPN_INDEX_BITS) - 1)) >> hello.hello.qp_shift;
	uint32_t nb_doorbells = hello.hello.lcore_qps + hello.hello.max_socks;
	struct san_doorbells *doorbells = san_shmq_doorbells(ctl, lcore, nb_doorbells);

	switch (below(24)) {
	case 0:
		scribble_over(q->wq, q->wq_bytes);
		break;
	case 1:
		scribble_over(q->cq_mem, q->cq_bytes);
		break;
	case 2:
		scribble_over(doorbells, san_doorbells_bytes(nb_doorbells));
		break;
	case 3:
		atomic_store(&q->cq_mem->head, (uint32_t)san_prng_u64(&prng));
		break;
	case 4:
		if (ftruncate(region_fd, 0) == 0)
			die("the seal does not hold");
		break;
	default:
		post(q);
		break;
	}
	san_doorbells_ring(doorbells, q->qp & (hello.hello.lcore_qps - 1));
}

static void
on_term(int signum)
{
	is_told = signum;
}

int
main(int argc, char **argv)
{
	struct shmq_req req = {.type = SHMQ_LISTEN,
			       .id = 1,
			       .conn = {.backlog = QPS, .service = SERVICE}};
	struct shmq_rep rep;
	uint32_t i, nb_turns;
	int fd;

	if (argc != 5)
		return 2;
	signal(SIGTERM, on_term);
	is_server = strcmp(argv[1], "server") == 0;
	peer = argv[3];
	san_prng_seed(&prng, strtoull(argv[4], NULL, 0));
	attach(argv[2]);
	peer_key = key;
	if (is_server && ask(&req, -1, &rep, &fd) != 0)
		die(rep.text);
	for (i = 0; i < QPS; i++) {
		make_queue(&queues[i]);
		begin(&queues[i]);
	}
	for (nb_turns = 0; !is_told || nb_turns < TURNS; nb_turns++) {
		events();
		for (i = 0; i < QPS; i++)
			one(&queues[i]);
		usleep(below(200));
	}
	printf("%u queue pairs ended\n", nb_ended);
	return 0;
}
