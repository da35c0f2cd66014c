/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "raw_app.h"

#define TIMEOUT_S 10

void
raw_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (%s)\n", strerror(errno));
	exit(1);
}

/* ---- requests ---- */

int
raw_dial(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	MUST(connect(sock, (struct sockaddr *)&addr, sizeof(addr)) == 0, "%s", path);
	return sock;
}

int
raw_ask(const struct raw_app *a, struct shmq_req *req, int fd, struct shmq_rep *rep, int *got)
{
	req->magic = SHMQ_MAGIC;
	req->abi = SHMQ_ABI;
	if (san_shmq_send(a->sock, req, sizeof(*req), fd, true) != 0 ||
	    san_shmq_recv(a->sock, rep, sizeof(*rep), got, true) != 0)
		raw_die("the daemon does not answer to request %u", req->type);
	return rep->rc;
}

int
raw_ask_rc(const struct raw_app *a, struct shmq_req *req)
{
	struct shmq_rep rep;
	int fd, rc = raw_ask(a, req, -1, &rep, &fd);

	if (fd >= 0)
		close(fd);
	return rc;
}

int
raw_ask_id(const struct raw_app *a, enum shmq_type type, uint32_t id)
{
	return raw_ask_rc(a, &(struct shmq_req){.type = type, .id = id});
}

void *
raw_map(int fd, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	MUST(p != MAP_FAILED, "mmap");
	return p;
}

void
raw_attach(struct raw_app *a, const char *path)
{
	struct shmq_req req = {.type = SHMQ_HELLO};
	int fd;

	memset(a, 0, sizeof(*a));
	a->region_fd = -1;
	a->sock = raw_dial(path);
	MUST(raw_ask(a, &req, -1, &a->hello, &fd) == 0, "hello: %s", a->hello.text);
	a->ctl = raw_map(fd, a->hello.hello.ctl_bytes);
	close(fd);
}

int
raw_memfd(size_t bytes, int seals)
{
	int fd = memfd_create("raw", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	MUST(posix_fallocate(fd, 0, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0,
	     "memfd");
	return fd;
}

void
raw_add_region(struct raw_app *a, size_t bytes, int seals)
{
	struct shmq_req req = {.type = SHMQ_MR_ADD,
			       .mr = {.addr = RAW_BASE, .length = bytes, .access = 7}};
	struct shmq_rep rep;
	int fd;

	a->bytes = bytes;
	a->region_fd = raw_memfd(bytes, seals);
	a->region = raw_map(a->region_fd, bytes);
	MUST(raw_ask(a, &req, a->region_fd, &rep, &fd) == 0, "region: %s", rep.text);
	a->key = rep.id;
}

void
raw_detach(struct raw_app *a)
{
	close(a->sock);
	munmap(a->ctl, a->hello.hello.ctl_bytes);
	if (a->region_fd < 0)
		return;
	munmap(a->region, a->bytes);
	close(a->region_fd);
	a->region_fd = -1; /* a thread may still use it */
}

/* ---- queue pairs ---- */

int
raw_make_qp(struct raw_app *a, struct raw_qp *q, uint32_t depth)
{
	struct shmq_req req = {.type = SHMQ_CQ_CREATE, .cq = {.depth = 2 * depth}};
	struct shmq_rep rep;
	int rc;

	memset(q, 0, sizeof(*q));
	q->app = a;
	q->depth = depth;
	rc = raw_ask(a, &req, -1, &rep, &q->cq_fd);
	if (rc != 0)
		return rc;
	q->cq = rep.cq.id;
	q->cq_depth = rep.cq.depth;
	req = (struct shmq_req){.type = SHMQ_QP_CREATE, .qp = {q->cq, q->cq, depth, depth}};
	rc = raw_ask(a, &req, -1, &rep, &q->wq_fd);
	if (rc != 0) {
		raw_ask_id(a, SHMQ_CQ_DESTROY, q->cq);
		close(q->cq_fd);
		return rc;
	}
	q->qp = rep.id;
	q->cq_bytes = san_wr_cq_bytes(q->cq_depth);
	q->cq_mem = raw_map(q->cq_fd, q->cq_bytes);
	q->wq_bytes = san_wr_wq_bytes(depth, depth);
	q->wq = raw_map(q->wq_fd, q->wq_bytes);
	san_spsc_cons_init(&q->c, q->cq_depth);
	return 0;
}

void
raw_drop_qp(struct raw_qp *q)
{
	munmap(q->wq, q->wq_bytes);
	munmap(q->cq_mem, q->cq_bytes);
	close(q->wq_fd);
	close(q->cq_fd);
}

void
raw_end_qp(struct raw_qp *q)
{
	int rc = raw_ask_id(q->app, SHMQ_QP_DESTROY, q->qp);

	MUST(rc == 0, "destroy queue pair 0x%x: %s", q->qp, strerror(-rc));
	rc = raw_ask_id(q->app, SHMQ_CQ_DESTROY, q->cq);
	MUST(rc == 0, "destroy completion queue %u: %s", q->cq, strerror(-rc));
	raw_drop_qp(q);
}

void
raw_ring(const struct raw_qp *q)
{
	const struct shmq_rep *hello = &q->app->hello;
	uint32_t index = SAN_QPN_INDEX(q->qp), lcore = index >> hello->hello.qp_shift;

	san_doorbells_ring(san_shmq_doorbells(q->app->ctl, lcore,
					      hello->hello.lcore_qps + hello->hello.max_socks),
			   index - (lcore << hello->hello.qp_shift));
}

struct rtsan_sge
raw_part(const struct raw_app *a, uint32_t at, uint32_t len)
{
	return (struct rtsan_sge){(void *)(uintptr_t)(RAW_BASE + at), len, a->key};
}

struct san_ulp_wr
raw_wr(enum rtsan_wr_opcode op, const struct raw_app *from, const struct raw_app *to, uint32_t len)
{
	return (struct san_ulp_wr){
		.op = (uint8_t)op,
		.flags = RTSAN_WR_SIGNALED,
		.nb_sge = 1,
		.remote_addr = RAW_BASE,
		.rkey = to->key,
		.length = len,
		.sge = {raw_part(from, 0, len)},
	};
}

void
raw_post(struct raw_qp *q, const struct san_ulp_wr *wr)
{
	struct san_ulp_wr *ring = (struct san_ulp_wr *)(q->wq + 1);
	uint32_t tail = atomic_load(&q->wq->sq_tail);

	ring[tail % q->depth] = *wr;
	atomic_store(&q->wq->sq_tail, tail + 1);
	raw_ring(q);
}

void
raw_post_recv(struct raw_qp *q, const struct san_ulp_recv *r)
{
	struct san_ulp_wr *sends = (struct san_ulp_wr *)(q->wq + 1);
	struct san_ulp_recv *ring = (struct san_ulp_recv *)(sends + q->depth);
	uint32_t tail = atomic_load(&q->wq->rq_tail);

	ring[tail % q->depth] = *r;
	atomic_store(&q->wq->rq_tail, tail + 1);
	raw_ring(q);
}

int
raw_do(struct raw_qp *q, const struct san_ulp_wr *wr)
{
	struct san_ulp_wc wc;

	raw_post(q, wr);
	return raw_wc(q, &wc) ? wc.status : -1;
}

bool
raw_wc(struct raw_qp *q, struct san_ulp_wc *wc)
{
	const struct shmq_ctl *ctl = q->app->ctl;
	time_t until = time(NULL) + TIMEOUT_S;
	uint32_t tail;

	for (;;) {
		tail = atomic_load(&q->cq_mem->tail);
		if (q->c.head != tail) {
			*wc = q->cq_mem->wc[q->c.head++ % q->cq_depth];
			atomic_store(&q->cq_mem->head, q->c.head);
			return true;
		}
		if (atomic_load(&ctl->ev_tail) != q->app->ev_head || time(NULL) > until)
			return false;
	}
}

/* ---- connections ---- */

bool
raw_event(struct raw_app *a, struct shmq_event *ev)
{
	if (a->ev_head == atomic_load(&a->ctl->ev_tail))
		return false;
	*ev = a->ctl->events[a->ev_head++ % SHMQ_EVENTS];
	atomic_store(&a->ctl->ev_head, a->ev_head);
	return true;
}

struct shmq_event
raw_wait_event(struct raw_app *a, enum raw_event type)
{
	time_t until = time(NULL) + TIMEOUT_S;
	struct shmq_event ev;

	while (!raw_event(a, &ev) || ev.type != type)
		MUST(time(NULL) <= until, "event %d does not come", type);
	return ev;
}

int
raw_listen(const struct raw_app *a, uint64_t service)
{
	struct shmq_req req = {
		.type = SHMQ_LISTEN,
		.id = 1,
		.conn = {.pkey = a->pkey, .backlog = 16, .service = service},
	};

	return raw_ask_rc(a, &req);
}

int
raw_connect(const struct raw_qp *q, const char *peer, uint64_t service)
{
	struct shmq_req req = {.type = SHMQ_CONNECT,
			       .id = q->qp,
			       .conn = {.pkey = q->app->pkey, .service = service}};

	snprintf(req.conn.peer, sizeof(req.conn.peer), "%s", peer);
	return raw_ask_rc(q->app, &req);
}

int
raw_accept(const struct raw_qp *q, uint64_t request)
{
	struct shmq_req req = {.type = SHMQ_ACCEPT, .id = q->qp, .conn = {.request = request}};

	return raw_ask_rc(q->app, &req);
}

void
raw_pair(struct raw_qp *a, struct raw_qp *b, const char *peer, uint64_t service)
{
	struct shmq_req req = {.type = SHMQ_UNLISTEN,
			       .conn = {.pkey = b->app->pkey, .service = service}};
	int rc;

	MUST(raw_listen(b->app, service) == 0, "listen");
	rc = raw_connect(a, peer, service);
	MUST(rc == 0, "connect: %d", rc);
	rc = raw_accept(b, raw_wait_event(b->app, RAW_REQUEST).request);
	MUST(rc == 0, "accept: %d", rc);
	raw_wait_event(a->app, RAW_ESTABLISHED);
	raw_wait_event(b->app, RAW_ESTABLISHED);
	MUST(raw_ask_rc(b->app, &req) == 0, "unlisten");
}
