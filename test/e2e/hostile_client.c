/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Applications that attack their daemon, in one way each, until SIGTERM. (SYS-5)
 *
 *   hostile_client MODE SOCKET PEER
 *
 * Exits with 0 if each attack has failed as it must, and the daemon has answered to the end.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw_app.h"

#define SERVICE  4711
#define REGION   (1u << 18)
#define DEPTH    16
#define LEN      4096
#define MARK     0x4b4145544c45414bull /* must not be seen in memory of others */
#define FLOOD    253
#define UNREAD   32 /* unread answers to one application */
#define QPS_MANY 200
#define LOOKS    20

static const char *path, *peer;
static volatile sig_atomic_t is_over;
static struct san_prng prng;

static void
on_term(int signum)
{
	is_over = signum;
}

/* Two applications, and one connection between them. */
struct pair {
	struct raw_app a, b;
	struct raw_qp qa, qb;
};

static struct san_ulp_wr
push(const struct pair *p, uint32_t len)
{
	return raw_wr(RTSAN_WR_PUSH, &p->a, &p->b, len);
}

static void
pair_attach(struct pair *p, int seals)
{
	raw_attach(&p->a, path);
	raw_attach(&p->b, path);
	raw_add_region(&p->a, REGION, seals);
	raw_add_region(&p->b, REGION, F_SEAL_SHRINK);
}

static void
pair_make_qps(struct pair *p)
{
	MUST(raw_make_qp(&p->a, &p->qa, DEPTH) == 0, "first queue pair");
	MUST(raw_make_qp(&p->b, &p->qb, DEPTH) == 0, "second queue pair");
}

static void
pair_connect(struct pair *p)
{
	pair_make_qps(p);
	raw_pair(&p->qa, &p->qb, peer, SERVICE);
}

static void
pair_end(struct pair *p)
{
	raw_end_qp(&p->qa);
	raw_end_qp(&p->qb);
}

static void
pair_detach(struct pair *p)
{
	raw_detach(&p->a);
	raw_detach(&p->b);
}

static void
fill(uint8_t *mem, size_t bytes, uint64_t word)
{
	uint64_t *w = (uint64_t *)mem;

	for (size_t i = 0; i < bytes / sizeof(word); i++)
		w[i] = word;
}

/* Half of the mark is enough to find it. */
static void
must_not_see(const void *mem, size_t bytes, const char *where)
{
	const uint64_t mark = MARK;

	MUST(mem != NULL && memmem(mem, bytes, &mark, sizeof(mark) / 2) == NULL,
	     "%s: memory of another application", where);
}

/* ---- flip: an entry changes while the daemon reads it ---- */

struct flipper {
	struct san_ulp_wr *entry;
	struct san_ulp_wr good, bad[4];
	_Atomic bool stop;
};

/* One field at a time, so that the daemon often reads a mixture. */
static void *
flip(void *arg)
{
	struct flipper *f = arg;

	for (uint32_t i = 0; !atomic_load_explicit(&f->stop, memory_order_relaxed); i++) {
		volatile struct san_ulp_wr *e = f->entry;
		const struct san_ulp_wr *from = i % 8 == 0 ? &f->bad[i / 8 % 4] : &f->good;

		e->sge[0].addr = from->sge[0].addr;
		e->sge[0].lkey = from->sge[0].lkey;
		e->sge[0].length = from->sge[0].length;
		e->length = from->length;
		e->rkey = from->rkey;
	}
	return NULL;
}

/* Post an entry that another thread changes. Returns the number of pushes that were done. */
static uint32_t
flip_until_ended(struct pair *p, const struct raw_app *other)
{
	struct flipper f = {.entry = (struct san_ulp_wr *)(p->qa.wq + 1), .good = push(p, LEN)};
	struct san_ulp_wc wc;
	pthread_t thread;
	uint32_t nb = 0;

	f.bad[0] = f.bad[1] = f.bad[2] = f.bad[3] = f.good;
	f.bad[0].sge[0] = raw_part(other, 0, LEN);
	f.bad[1].sge[0] = raw_part(&p->a, REGION - LEN + 1, LEN);
	f.bad[2].sge[0].length = f.bad[2].length = 0xfffffff0;
	f.bad[3].rkey = other->key;
	for (uint32_t i = 0; i < p->qa.depth; i++)
		f.entry[i] = f.good;
	pthread_create(&thread, NULL, flip, &f);
	do {
		atomic_fetch_add(&p->qa.wq->sq_tail, p->qa.depth);
		raw_ring(&p->qa);
		while (atomic_load(&p->qa.wq->sq_head) != atomic_load(&p->qa.wq->sq_tail) &&
		       raw_wc(&p->qa, &wc))
			nb += wc.status == 0;
	} while (!is_over && atomic_load(&p->a.ctl->ev_tail) == p->a.ev_head);
	atomic_store(&f.stop, true);
	pthread_join(thread, NULL);
	return nb;
}

static void
mode_flip(void)
{
	uint32_t nb_done = 0, nb_ended = 0;
	struct raw_app other;
	struct pair p;

	pair_attach(&p, F_SEAL_SHRINK);
	raw_attach(&other, path);
	raw_add_region(&other, REGION, F_SEAL_SHRINK);
	fill(other.region, REGION, MARK);
	while (!is_over) {
		pair_connect(&p);
		nb_done += flip_until_ended(&p, &other);
		nb_ended++;
		must_not_see(p.b.region, REGION, "pushed");
		pair_end(&p);
	}
	pair_detach(&p);
	raw_detach(&other);
	MUST(nb_done != 0 && nb_ended >= 2, "nothing has happened");
	printf("%u pushes, %u connections ended\n", nb_done, nb_ended);
}

/* ---- foreign: regions of others ---- */

static void
must_be_malformed(struct pair *p, struct san_ulp_wr wr, const char *what)
{
	struct shmq_event ev;

	pair_connect(p);
	raw_post(&p->qa, &wr);
	ev = raw_wait_event(&p->a, RAW_DISCONNECTED);
	MUST(ev.reason == RAW_MALFORMED, "%s: reason %u", what, ev.reason);
	pair_end(p);
}

/* The peer refuses the request, and the connection goes on. */
static void
must_be_refused(struct pair *p, struct san_ulp_wr wr, const char *what)
{
	struct san_ulp_wr good = push(p, LEN);

	pair_connect(p);
	MUST(raw_do(&p->qa, &wr) > 0, "%s: is done", what);
	MUST(raw_do(&p->qa, &good) == 0, "%s: and then nothing works", what);
	pair_end(p);
}

static void
mode_foreign(void)
{
	struct raw_app other;
	struct san_ulp_wr wr;
	uint32_t freed;
	struct pair p;

	pair_attach(&p, F_SEAL_SHRINK);
	raw_attach(&other, path);
	raw_add_region(&other, REGION, F_SEAL_SHRINK);
	fill(other.region, REGION, MARK);
	freed = p.a.key;
	MUST(raw_ask_id(&p.a, SHMQ_MR_DEL, freed) == 0, "not freed");
	MUST(raw_ask_id(&p.a, SHMQ_MR_DEL, freed) != 0, "freed twice");
	MUST(raw_ask_id(&p.a, SHMQ_MR_DEL, other.key) != 0, "freed what is another's");
	raw_add_region(&p.a, REGION, F_SEAL_SHRINK);
#define MUST_BE(how, change, what)           \
	do {                                 \
		wr = push(&p, LEN);          \
		change;                      \
		must_be_##how(&p, wr, what); \
	} while (0)
	MUST_BE(malformed, wr.sge[0].lkey = other.key, "region of another");
	MUST_BE(malformed, wr.sge[0].lkey = freed, "region that is gone");
	MUST_BE(malformed, wr.sge[0] = raw_part(&p.a, REGION - LEN + 1, LEN), "beyond its region");
	MUST_BE(malformed, wr.sge[0] = raw_part(&p.a, (uint32_t)-1, LEN), "before its region");
	MUST_BE(malformed, wr.sge[0].addr = p.a.region, "by another name");
	for (uint32_t i = 0; i < 8; i++)
		MUST_BE(malformed, wr.sge[0].lkey ^= 1u << (i * 4), "forged");
	MUST_BE(refused, wr.rkey = other.key, "peer: region of another");
	MUST_BE(refused, (wr.rkey = other.key, wr.op = RTSAN_WR_PULL), "peer: pull from another");
	MUST_BE(refused, wr.rkey = freed, "peer: region that is gone");
	MUST_BE(refused, wr.remote_addr = RAW_BASE + REGION - LEN + 1, "peer: beyond its region");
	MUST_BE(refused, wr.remote_addr = UINT64_MAX - 8, "peer: at the end of everything");
#undef MUST_BE
	must_not_see(p.a.region, REGION, "pulled");
	pair_detach(&p);
	raw_detach(&other);
}

/* ---- holes: memory is removed while it is in use ---- */

static void *
punch(void *arg)
{
	const struct pair *p = arg;
	const int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	struct san_prng own;

	san_prng_seed(&own, 2);
	for (uint32_t i = 1;; i++) {
		off_t at = san_prng_below(&own, REGION / 4096) * 4096;

		fallocate(p->a.region_fd, how, at, 4 * 4096);
		fallocate(p->b.region_fd, how, at, 4096);
		/* seldom, because without indices little is done */
		if (i % 4096 == 0)
			fallocate(p->qb.cq_fd, how, 0, 4096);
		if (i % 16384 == 0)
			fallocate(p->qa.wq_fd, how, 0, 4096);
	}
	return NULL;
}

/* The daemon ends a program that does it, which then waits for nothing. */
static void
mode_holes(void)
{
	struct san_ulp_wr wr;
	uint32_t nb = 0;
	pthread_t thread;
	struct pair p;
	pid_t pid;

	for (; !is_over; nb++) {
		pid = fork();
		if (pid != 0) {
			while (waitpid(pid, NULL, 0) < 0)
				;
			continue;
		}
		signal(SIGTERM, SIG_DFL);
		alarm(1);
		pair_attach(&p, F_SEAL_SHRINK);
		pair_connect(&p);
		pthread_create(&thread, NULL, punch, &p);
		for (uint32_t i = 0;; i++) {
			wr = raw_wr(i % 2 == 0 ? RTSAN_WR_PUSH : RTSAN_WR_PULL, &p.a, &p.b,
				    REGION / 2);
			/* its indices may be removed, too: then its work requests are invalid */
			if (raw_do(&p.qa, &wr) < 0)
				_exit(0);
		}
	}
	printf("%u programs\n", nb);
}

/* ---- floods: many descriptors, incomplete messages, unread answers ---- */

static bool
send_flood(int sock, int fd, uint32_t nb, size_t bytes)
{
	char control[CMSG_SPACE(FLOOD * sizeof(int))] = {0}, msg[2 * sizeof(struct shmq_req)] = {0};
	struct iovec iov = {.iov_base = msg, .iov_len = bytes};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (nb != 0) {
		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(nb * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nb * sizeof(int));
		for (uint32_t i = 0; i < nb; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

/* Requests descriptors without reading an answer. */
static void
ask_unread(void)
{
	struct shmq_req req = {.type = SHMQ_CQ_CREATE, .cq = {.depth = 2}};
	struct shmq_rep rep;
	uint32_t i, errors;
	struct raw_app a;
	int fd;

	raw_attach(&a, path);
	req.magic = SHMQ_MAGIC;
	req.abi = SHMQ_ABI;
	for (i = 0; i < 1000 && san_shmq_send(a.sock, &req, sizeof(req), -1, true) == 0; i++)
		;
	MUST(i < 1000, "1000 answers wait, and nobody has ended this");
	/* the first error says that the other end is closed */
	for (i = 0, errors = 0; errors < 2; i++) {
		errors += san_shmq_recv(a.sock, &rep, sizeof(rep), &fd, false) != 0;
		if (fd >= 0)
			close(fd);
	}
	MUST(i <= UNREAD, "%u answers were under way", i);
	raw_detach(&a);
}

static void
mode_floods(void)
{
	int memfd = raw_memfd(4096, F_SEAL_SHRINK), sock;
	uint32_t nb = 0;

	/* a user may have few other descriptors waiting: see closer.h */
	while (!is_over) {
		sock = raw_dial(path);
		for (uint32_t i = 0; i < 64; i++)
			nb += send_flood(sock, memfd, FLOOD, sizeof(struct shmq_req));
		close(sock);
		for (uint32_t i = 0; i < 8; i++) {
			sock = raw_dial(path);
			send_flood(sock, memfd, i % 2, 1 + san_prng_below(&prng, 300));
			close(sock);
		}
		ask_unread();
		usleep(1000);
	}
	printf("%u floods\n", nb);
}

/* ---- stages: the application ends at each step ---- */

enum stage {
	STAGE_HELLO,
	STAGE_REGION,
	STAGE_QUEUES,
	STAGE_LISTENS,
	STAGE_CONNECTS,
	STAGE_ASKED,
	STAGE_ACCEPTS,
	STAGE_ESTABLISHED,
	STAGE_LOADED,
	STAGE_MAX,
};

/* Do all steps up to *stage*. */
static void
go_to(struct pair *p, enum stage stage)
{
	struct san_ulp_wr wr;
	uint64_t request;

	raw_attach(&p->a, path);
	raw_attach(&p->b, path);
	if (stage < STAGE_REGION)
		return;
	raw_add_region(&p->a, REGION, F_SEAL_SHRINK);
	raw_add_region(&p->b, REGION, F_SEAL_SHRINK);
	if (stage < STAGE_QUEUES)
		return;
	pair_make_qps(p);
	if (stage < STAGE_LISTENS)
		return;
	MUST(raw_listen(&p->b, SERVICE + 1) == 0, "listen");
	if (stage < STAGE_CONNECTS)
		return;
	while (raw_connect(&p->qa, peer, SERVICE + 1) == -EAGAIN)
		usleep(10000);
	if (stage < STAGE_ASKED)
		return;
	request = raw_wait_event(&p->b, RAW_REQUEST).request;
	if (stage < STAGE_ACCEPTS)
		return;
	while (raw_accept(&p->qb, request) == -EAGAIN)
		usleep(10000);
	if (stage < STAGE_ESTABLISHED)
		return;
	raw_wait_event(&p->a, RAW_ESTABLISHED);
	wr = push(p, REGION);
	for (uint32_t i = 0; stage == STAGE_LOADED && i < DEPTH; i++)
		raw_post(&p->qa, &wr);
}

/* Each stage at least once in both orders of ends, however slow the machine is. */
static void
mode_stages(void)
{
	struct pair p;
	uint32_t i;

	for (i = 0; !is_over || i < 2 * STAGE_MAX; i++) {
		enum stage stage = i % STAGE_MAX;

		memset(&p, 0, sizeof(p));
		go_to(&p, stage);
		/* the order in which they end matters */
		if (i / STAGE_MAX % 2 == 0)
			raw_detach(&p.a);
		raw_detach(&p.b);
		if (i / STAGE_MAX % 2 != 0)
			raw_detach(&p.a);
		if (stage >= STAGE_QUEUES) {
			raw_drop_qp(&p.qa);
			raw_drop_qp(&p.qb);
		}
	}
	printf("%u ends\n", i);
}

/* ---- armed: it always waits, and does not read the bytes that wake it ---- */

static int
ask_fd(const struct raw_app *a, enum shmq_type type, uint32_t id)
{
	struct shmq_req req = {.type = type, .id = id};
	struct shmq_rep rep;
	int fd;

	return raw_ask(a, &req, -1, &rep, &fd) == 0 ? fd : -1;
}

static void
mode_armed(void)
{
	int cq_fd, ev_fd, wake_fd;
	struct san_ulp_wc wc;
	struct san_ulp_wr wr;
	uint32_t nb = 0;
	struct pair p;

	pair_attach(&p, F_SEAL_SHRINK);
	pair_connect(&p);
	cq_fd = ask_fd(&p.a, SHMQ_CQ_FD, p.qa.cq);
	ev_fd = ask_fd(&p.a, SHMQ_EVENT_FD, 0);
	wake_fd = ask_fd(&p.a, SHMQ_WAKE_FD, 0);
	MUST(cq_fd >= 0 && ev_fd >= 0, "no descriptors to wait for");
	wr = push(&p, 8);
	while (!is_over) {
		atomic_store(&p.qa.cq_mem->armed, 1);
		atomic_store(&p.a.ctl->ev_armed, 1);
		raw_post(&p.qa, &wr);
		if (wake_fd >= 0)
			eventfd_write(wake_fd, nb % 2 == 0 ? 1 : 0xfffffffe);
		MUST(raw_wc(&p.qa, &wc) && wc.status == 0, "push");
		/* at first the descriptor is full, later it is closed */
		if (++nb == 20000)
			close(cq_fd);
	}
	pair_end(&p);
	pair_detach(&p);
	printf("%u times\n", nb);
}

/* ---- churn: as many connections as allowed, without a listener, again and again ---- */

static void
mode_churn(void)
{
	static struct raw_qp qps[QPS_MANY];
	struct shmq_event ev;
	struct raw_app a;
	uint32_t n;
	int rc;

	raw_attach(&a, path);
	while (!is_over) {
		for (n = 0, rc = 0; n < QPS_MANY && rc == 0; n++)
			rc = raw_make_qp(&a, &qps[n], DEPTH) != 0 ?
				-ENOSPC :
				raw_connect(&qps[n], peer, SERVICE + 99);
		MUST(rc == -EAGAIN, "connection %u: %d", n, rc);
		while (n > 0)
			raw_end_qp(&qps[--n]);
		while (raw_event(&a, &ev))
			;
	}
	raw_detach(&a);
}

/* ---- doorbells: many queue pairs with full queues all the time ---- */

static void
mode_bells(void)
{
	static struct raw_qp qps[QPS_MANY];
	struct raw_app a;
	uint32_t n;

	raw_attach(&a, path);
	for (n = 0; n < QPS_MANY && raw_make_qp(&a, &qps[n], 256) == 0; n++)
		;
	MUST(n >= 32, "only %u queue pairs", n);
	/* after its connection, each queue pair flushes what is posted */
	for (uint32_t i = 0; i + 1 < n; i += 2) {
		raw_pair(&qps[i], &qps[i + 1], peer, SERVICE);
		raw_ask_id(&a, SHMQ_DISCONNECT, qps[i].qp);
		raw_wait_event(&a, RAW_DISCONNECTED);
		raw_wait_event(&a, RAW_DISCONNECTED);
	}
	puts("ready");
	fflush(stdout);
	while (!is_over) {
		for (uint32_t i = 0; i < n; i++) {
			struct raw_qp *q = &qps[i];

			atomic_store(&q->cq_mem->head, atomic_load(&q->cq_mem->tail));
			atomic_store(&q->wq->rq_tail, atomic_load(&q->wq->rq_head) + q->depth);
			raw_ring(q);
		}
	}
	raw_detach(&a);
	for (uint32_t i = 0; i < n; i++)
		raw_drop_qp(&qps[i]);
	printf("%u queue pairs\n", n);
}

/* ---- secret, looks: data of one application that another must not see ---- */

/* Fills all of its memory with the mark, and sends it; then it is killed. */
static void
mode_secret(void)
{
	struct pair p;
	struct san_ulp_wr wr;

	pair_attach(&p, F_SEAL_SHRINK);
	pair_connect(&p);
	fill(p.a.region, REGION, MARK);
	wr = push(&p, REGION);
	for (uint32_t i = 0; i < 16; i++)
		MUST(raw_do(&p.qa, &wr) == 0, "push");
	fill((uint8_t *)(p.qa.wq + 1), p.qa.wq_bytes - sizeof(*p.qa.wq), MARK);
	fill((uint8_t *)p.qa.cq_mem->wc, p.qa.cq_bytes - sizeof(*p.qa.cq_mem), MARK);
	fill((uint8_t *)p.a.ctl->events, sizeof(p.a.ctl->events), MARK);
	puts("filled");
	fflush(stdout);
	while (!is_over)
		usleep(10000);
}

/* *q* is NULL before it is created. */
static void
check_memory(const struct raw_app *a, const struct raw_qp *q)
{
	must_not_see(a->ctl, a->hello.hello.ctl_bytes, "ctl");
	must_not_see(a->region, a->bytes, "region");
	if (q == NULL)
		return;
	must_not_see(q->wq, q->wq_bytes, "work queues");
	must_not_see(q->cq_mem, q->cq_bytes, "completion queue");
}

/* Requests of every type, with invalid IDs: answers must have no old data. */
static void
check_answers(const struct raw_app *a)
{
	for (uint32_t type = 0; type <= SHMQ_TYPES; type++) {
		for (uint32_t i = 0; i < 4; i++) {
			struct shmq_req req = {.type = type, .id = ~(i * 77)};
			struct shmq_rep rep;
			int fd;

			raw_ask(a, &req, -1, &rep, &fd);
			if (fd >= 0)
				close(fd);
			must_not_see(&rep, sizeof(rep), "answer");
			for (size_t len = strlen(rep.text); len < sizeof(rep.text); len++)
				MUST(rep.text[len] == '\0',
				     "answer to %u: something behind its text", type);
		}
	}
}

static void
mode_looks(void)
{
	struct san_ulp_recv r = {.nb_sge = 1};
	struct san_ulp_wr wr;
	struct san_ulp_wc wc;
	uint32_t nb;
	struct pair p;

	for (nb = 0; nb < LOOKS; nb++) {
		pair_attach(&p, F_SEAL_SHRINK);
		check_memory(&p.a, NULL);
		check_memory(&p.b, NULL);
		pair_connect(&p);
		check_memory(&p.a, &p.qa);
		check_memory(&p.b, &p.qb);
		/* short messages into long buffers: the bytes behind them stay */
		for (uint32_t len = 1; len < 16; len++) {
			r.sge[0] = raw_part(&p.b, 0, LEN);
			raw_post_recv(&p.qb, &r);
			wr = raw_wr(RTSAN_WR_SEND, &p.a, &p.b, len);
			MUST(raw_do(&p.qa, &wr) == 0 && raw_wc(&p.qb, &wc) && wc.byte_len == len,
			     "send of %u bytes", len);
			wr.op = RTSAN_WR_PULL;
			MUST(raw_do(&p.qa, &wr) == 0, "pull of %u bytes", len);
		}
		/* a pull that fails brings nothing */
		wr = raw_wr(RTSAN_WR_PULL, &p.a, &p.b, REGION);
		wr.remote_addr += 8;
		MUST(raw_do(&p.qa, &wr) > 0, "pull beyond the end");
		check_answers(&p.a);
		check_memory(&p.a, &p.qa);
		check_memory(&p.b, &p.qb);
		pair_end(&p);
		pair_detach(&p);
	}
	printf("%u looks\n", nb);
}

/* ---- sigbus: for a daemon that assumes seals which do not exist ---- */

static void
mode_sigbus(void)
{
	struct san_ulp_wr wr;
	struct pair p;
	char byte;

	pair_attach(&p, 0);
	pair_connect(&p);
	MUST(ftruncate(p.a.region_fd, 0) == 0, "truncate");
	wr = push(&p, LEN);
	raw_post(&p.qa, &wr);
	/* only the application that did it is ended */
	MUST(recv(p.a.sock, &byte, 1, 0) <= 0, "the daemon goes on with it");
	raw_wait_event(&p.b, RAW_DISCONNECTED);
	MUST(raw_ask_id(&p.b, SHMQ_QP_DESTROY, p.qb.qp) == 0, "its peer is gone, too");
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{"flip", mode_flip},
	{"foreign", mode_foreign},
	{"holes", mode_holes},
	{"floods", mode_floods},
	{"stages", mode_stages},
	{"armed", mode_armed},
	{"churn", mode_churn},
	{"bells", mode_bells},
	{"secret", mode_secret},
	{"looks", mode_looks},
	{"sigbus", mode_sigbus},
};

int
main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	path = argv[2];
	peer = argv[3];
	signal(SIGTERM, on_term);
	san_prng_seed(&prng, 1);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, argv[1]) == 0) {
			modes[i].run();
			return 0;
		}
	}
	fprintf(stderr, "%s: unknown\n", argv[1]);
	return 2;
}
