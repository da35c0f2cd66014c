/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any requests to the daemon, in any order, from several applications, mixed with whatever they
 * write into the memory that they share with it. The daemon's own functions serve them, on an
 * engine whose port is a loop; the clock is ours. The helper is no process of its own: it takes its
 * turns here, so that it is measured and checked as well. (SYS-5, SYS-6)
 *
 * Input: records of one byte of what and what belongs to it. Numbers, keys and requests are
 * those that an application was given, or another one was, or made up: so that a fuzzer gets
 * past what nobody can guess.
 *
 * Checked: each answer is one, each engine's invariants after each record, and that at the end
 * nothing of any application is left: tables, connections, mappings, descriptors.
 */

#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_dev.h>

#include "app.h"
#include "engine_priv.h"
#include "fuzz.h"
#include "helper_priv.h"
#include "rtsan_priv.h"
#include "san_assert.h"
#include "socks.h"
#include "users.h"
#include "view.h"
#define TEST_EAL_MB "128"
#include "unit/test_eal.h"

#define NB_APPS      3
#define NB_OBJ       4 /* of a kind that an application remembers */
#define REGION       8192
#define BASE         0x10000 /* what an application calls the first byte of its regions */
#define OWN_IP       "10.0.0.1"
#define DEPTH        8
#define STEP_NS      (1 * SAN_NS_PER_US)
#define END_NS       (500 * SAN_NS_PER_MS)
#define END_RUNS     100
#define EVENTS_EVERY 4  /* rounds: it costs a system call */
#define MAPS_EVERY   32 /* inputs, after one of which mappings are counted */

/** An application as it sees itself. */
struct liar {
	struct app *app;
	int sock;                                        /**< its end */
	int waiter;                                      /**< its end of a pair, or -1 */
	uint32_t cqs[NB_OBJ], qps[NB_OBJ], keys[NB_OBJ]; /**< numbers that it was given */
	uint64_t request;
	uint32_t nb_cqs, nb_qps, nb_keys;
};

static struct conf conf = {
	.apps = NB_APPS - 1, /* one of them is too many */
	.apps_per_uid = NB_APPS,
	.unattached = NB_APPS,
	.app_qps = 6,
	.app_cqs = 6,
	.app_regions = 6,
	.app_listeners = 2,
	.app_bytes = 1u << 20,
	.sock_bytes = 4u << 20,
};
static struct apps all;
static struct app_port *port; /**< its only one */
static struct helping {
	bool is_on;
	int control, data, events;
} helping;
static struct san_engine *e;
static struct liar liars[NB_APPS];
static int region_fd;
static uint32_t nb_inputs; /**< that left nothing */

/* ---- what there is once ---- */

/* Whatever is passed to it, it goes on. */
static void
on_end(struct apps *apps, struct helper *h, bool has_begun)
{
	SAN_VERIFY(false);
}

int
san_helper_fork_init(const struct harden_user *user, bool seccomp, pid_t *pid)
{
	return -ENOSYS; /* nobody asks for it */
}

int
san_helper_fork(int forker, uid_t uid, int *control, int *data)
{
	int ends[2][2];

	SAN_VERIFY(uid == USERS_UNPROVED && !helping.is_on); /* no program proves to be root */
	for (int i = 0; i < 2; i++)
		SAN_VERIFY(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends[i]) == 0);
	*control = ends[0][0];
	*data = ends[1][0];
	helping = (struct helping){
		.is_on = true,
		.control = ends[0][1],
		.data = ends[1][1],
		.events = san_helper_run_begin(ends[0][1], ends[1][1]),
	};
	return 0;
}

int
san_helper_fork_close(int forker, const int *fds, uint32_t nb)
{
	return eventfd(0, EFD_CLOEXEC); /* the caller's close() of *fds* is the last one */
}

/* A turn of the helper, and one of the daemon with what it says. */
static void
help(void)
{
	if (helping.is_on && !san_helper_run_turn(false)) {
		close(helping.control);
		close(helping.data);
		close(helping.events);
		helping.is_on = false;
	}
	san_helper_serve();
}

static void
open_helpers(void)
{
	static const struct helper_ops ops = {
		.on_answer = san_app_turn_on_answer,
		.dgram = san_socks_dgram,
		.ended = on_end,
	};

	SAN_VERIFY(san_helper_open(&ops, &all) >= 0);
}

static void
open_port(void)
{
	struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 1}};
	char *words[] = {
		"port=net_ring0",
		"ip=" OWN_IP "/24",
		"poll=caller",
		"conns=32",
		"cqs=16",
		"regions=16",
		"held=64",
		"rxd=64",
		"txd=64",
		"seed=1",
	};
	static struct dpdk_conf port_conf;
	struct dpdk_ctx *ctx;
	cpu_set_t cpu;
	uint16_t id;
	int rc;

	open_helpers();
	/* threads on other CPUs would make each munmap() wait for those */
	CPU_ZERO(&cpu);
	CPU_SET((unsigned int)sched_getcpu(), &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	test_eal_init();
	SAN_VERIFY(rte_eal_hotplug_add("vdev", "net_ring0", "") == 0);
	SAN_VERIFY(rte_eth_dev_get_port_by_name("net_ring0", &id) == 0);
	SAN_VERIFY(rte_eth_dev_mac_addr_add(id, &mac, 0) == 0);
	rc = san_dpdk_conf_read(&port_conf, words, (int)RTE_DIM(words), rtsan_provider_host());
	SAN_VERIFY(rc == 0);
	rc = san_dpdk_ctx_open("0", &port_conf, NULL, NULL, rtsan_provider_host(), &ctx);
	SAN_VERIFY(rc == 0);
	san_apps_init(&all, &conf);
	all.epoll = epoll_create1(EPOLL_CLOEXEC);
	SAN_VERIFY(san_apps_add_port(&all, "0", NULL, ctx) == 0);
	port = &all.ports[0];
	e = san_engine_at(ctx->port, 0);
	/* it stands still unless we move it, and no clock of the machine ever catches up */
	e->clock.is_tsc = false;
	e->clock.last_ns = UINT64_MAX / 2;
	region_fd = memfd_create("fuzz", MFD_ALLOW_SEALING);
	SAN_VERIFY(posix_fallocate(region_fd, 0, REGION) == 0);
	SAN_VERIFY(fcntl(region_fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
}

static void
run(uint32_t rounds, uint64_t step_ns)
{
	while (rounds-- > 0) {
		e->clock.last_ns += step_ns;
		san_engine_progress(port->ctx->port);
		if (rounds % EVENTS_EVERY == 0)
			san_apps_events(&all);
	}
}

/* Without completion queues: what stands in their memory is the applications'. */
static void
check(void)
{
	san_pdl_check(san_core_pdl(e->core));
	san_tl_check(san_core_tl(e->core));
}

/* ---- what is held ---- */

struct held {
	uint32_t fds, maps;
};

/* The kernel's word; EAL has memory of that kind, too. *maps* are slow to count. */
static struct held
held(bool maps)
{
	struct held h = {0};
	char line[512];
	DIR *d = opendir("/proc/self/fd");
	FILE *f;

	while (san_app_mem_step(SAN_TIME_NEVER) != SAN_TIME_NEVER || helping.is_on) {
		san_helper_leave(USERS_UNPROVED);
		san_helper_step(SAN_TIME_NEVER);
		help();
	}
	san_helper_step(SAN_TIME_NEVER);
	while (readdir(d) != NULL)
		h.fds++;
	closedir(d);
	if (!maps)
		return h;
	f = fopen("/proc/self/maps", "re");
	while (fgets(line, sizeof(line), f) != NULL)
		h.maps += strstr(line, "memfd:sanstack") != NULL ||
			strstr(line, "memfd:fuzz") != NULL;
	fclose(f);
	return h;
}

/*
 * Memory that the daemon shares is written through the daemon's own mapping: another one of each
 * would take longer than all else. NULL: there is none, or no longer.
 */
static const struct app_mem *
ctl_of(const struct liar *l)
{
	return l->app != NULL && l->app->ctl_mem.mem != NULL ? &l->app->ctl_mem : NULL;
}

static const struct app_mem *
cq_of(const struct liar *l, uint8_t pick)
{
	uint32_t at = pick % NB_OBJ;
	const struct app_mem *m = &port->cqs[l->cqs[at] % port->caps.max_cqs].mem;

	return at < l->nb_cqs && m->mem != NULL ? m : NULL;
}

static const struct app_mem *
qp_of(const struct liar *l, uint8_t pick)
{
	uint32_t at = pick % NB_OBJ;
	const struct app_mem *m = &port->qps[SAN_QPN_INDEX(l->qps[at]) % port->caps.max_qps].mem;

	return at < l->nb_qps && m->mem != NULL ? m : NULL;
}

static void
attach(struct liar *l)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int ends[2];

	if (l->app != NULL)
		return;
	SAN_VERIFY(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	memset(l, 0, sizeof(*l));
	l->waiter = -1;
	l->app = san_apps_create(&all, ends[0], 0);
	SAN_VERIFY(l->app != NULL);
	SAN_VERIFY(epoll_ctl(all.epoll, EPOLL_CTL_ADD, ends[0], &ev) == 0);
	l->sock = ends[1];
}

static void
detach(struct liar *l)
{
	if (l->app == NULL)
		return;
	san_apps_destroy(&all, l->app);
	l->app = NULL;
	close(l->sock);
	if (l->waiter >= 0)
		close(l->waiter);
}

/* ---- requests ---- */

static void
keep_answer(struct liar *l, const struct shmq_req *req, const struct shmq_rep *rep, int fd)
{
	switch (req->type) {
	case SHMQ_CQ_CREATE:
		l->cqs[l->nb_cqs++ % NB_OBJ] = rep->cq.id;
		break;
	case SHMQ_QP_CREATE:
		l->qps[l->nb_qps++ % NB_OBJ] = rep->id;
		break;
	case SHMQ_MR_ADD:
		l->keys[l->nb_keys++ % NB_OBJ] = rep->id;
		break;
	case SHMQ_CQ_FD:
	case SHMQ_EVENT_FD:
		if (l->waiter < 0 && fd >= 0) {
			l->waiter = fd;
			return;
		}
		break;
	default:
		break;
	}
	if (fd >= 0)
		close(fd);
}

/* A descriptor of any kind; the caller's. */
static int
some_fd(uint8_t kind)
{
	int fd;

	switch (kind % 8) {
	case 0:
	case 1:
	case 2:
		return dup(region_fd);
	case 3: /* nobody has sealed it */
		fd = memfd_create("fuzz-bare", MFD_ALLOW_SEALING);
		SAN_VERIFY(ftruncate(fd, REGION) == 0);
		return fd;
	case 4: /* shorter than anything */
		fd = memfd_create("fuzz-short", MFD_ALLOW_SEALING);
		SAN_VERIFY(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
		return fd;
	case 5:
		return open("/dev/null", O_RDWR);
	case 6:
		return eventfd(0, 0);
	default:
		return socket(AF_UNIX, SOCK_STREAM, 0);
	}
}

/* As the server does. */
static void
serve(struct app *a)
{
	struct shmq_req req;
	int rc;

	/* the helper before is about to end */
	while ((rc = san_app_turn_next(&all, a, &req)) == -EBUSY)
		help();
	if (rc == 1)
		san_app_answer(&all, a, san_app_serve(&all, a, &req, NULL));
	a->over |= rc < 0;
	while (a->job != 0) {
		help();
		san_app_turn_step(&all, san_engine_clock_monotonic());
	}
}

/* False: it is hung up on instead, because descriptors came with its first word. */
static bool
is_answered(struct liar *l, const struct shmq_req *req, int fd, struct shmq_rep *rep, int *out_fd)
{
	SAN_VERIFY(san_shmq_send(l->sock, req, sizeof(*req), fd, false) == 0);
	serve(l->app);
	if (san_shmq_recv(l->sock, rep, sizeof(*rep), out_fd, false) == 0)
		return true;
	SAN_VERIFY(l->app->over && !l->app->attached);
	return false;
}

static void
ask(struct liar *l, const struct shmq_req *req, int fd)
{
	struct shmq_rep rep;
	int out_fd;

	if (l->app->over) { /* the server serves it no more */
		detach(l);
	} else if (is_answered(l, req, fd, &rep, &out_fd)) {
		SAN_VERIFY(rep.magic == SHMQ_MAGIC && rep.abi == SHMQ_ABI && rep.rc <= 0);
		SAN_VERIFY(memchr(rep.text, '\0', sizeof(rep.text)) != NULL && rep.pad == 0);
		SAN_VERIFY(rep.rc == 0 || out_fd < 0);
		if (rep.rc == 0)
			keep_answer(l, req, &rep, out_fd);
	}
	if (fd >= 0)
		close(fd);
}

static struct liar *
some_liar(uint8_t pick)
{
	return &liars[pick % NB_APPS];
}

/* A connection request that it was told of, if its events say so. */
static uint64_t
some_request(const struct liar *l, uint32_t other)
{
	const struct app_mem *mem = ctl_of(l);
	const struct shmq_ctl *ctl;
	uint32_t tail;

	if (mem == NULL || (other & 7) == 7)
		return other;
	ctl = mem->mem;
	tail = atomic_load(&ctl->ev_tail) - (other & 7);
	return ctl->events[(tail - 1) % SHMQ_EVENTS].request;
}

/* Made right as far as *fix* says; what is not stays as it came. */
static void
fix_request(struct liar *l, struct shmq_req *req, uint8_t fix, uint8_t pick)
{
	const struct liar *of = (fix & 0x80) != 0 ? some_liar(pick >> 4) : l;
	uint32_t at = pick % NB_OBJ;

	req->magic = SHMQ_MAGIC;
	req->abi = SHMQ_ABI;
	req->type %= SHMQ_TYPES + 1;
	if ((fix & 1) == 0)
		return;
	switch (req->type) {
	case SHMQ_MR_ADD:
		req->mr.addr = BASE;
		req->mr.length = (fix & 2) != 0 ? REGION : req->mr.length % (2 * REGION);
		req->mr.offset = (fix & 4) != 0 ? 0 : req->mr.offset % REGION;
		req->mr.access &= 7;
		break;
	case SHMQ_MR_DEL:
		req->id = of->keys[at];
		break;
	case SHMQ_CQ_CREATE:
		req->cq.depth = (req->cq.depth & 63) + ((fix & 2) != 0 ? DEPTH : 0);
		break;
	case SHMQ_CQ_DESTROY:
	case SHMQ_CQ_FD:
		req->id = of->cqs[at];
		break;
	case SHMQ_QP_CREATE:
		req->qp.send_cq = of->cqs[at];
		req->qp.recv_cq = of->cqs[(fix & 2) != 0 ? at : (at + 1u) % NB_OBJ];
		req->qp.sq_depth = req->qp.rq_depth = DEPTH;
		break;
	case SHMQ_QP_DESTROY:
	case SHMQ_DISCONNECT:
		req->id = of->qps[at];
		break;
	case SHMQ_WAKE_FD:
		req->id &= 1;
		break;
	case SHMQ_HELLO: /* the only port, by its name or as the first; or one that is not */
		memset(req->hello.port, 0, sizeof(req->hello.port));
		if ((fix & 2) != 0)
			req->hello.port[0] = (pick & 7) == 7 ? '1' : '0';
		break;
	default:
		req->id = of->qps[at];
		req->conn.service &= 3;
		req->conn.backlog = (uint16_t)(1 + (req->conn.backlog & 3));
		req->conn.pkey = 0;
		req->conn.request = some_request(of, (uint32_t)req->conn.request);
		if ((fix & 2) != 0)
			memcpy(req->conn.peer, OWN_IP, sizeof(OWN_IP));
		if ((fix & 4) != 0) /* the defaults */
			memset(&req->conn.window, 0,
			       sizeof(req->conn) - offsetof(struct shmq_conn, window));
		req->conn.order %= RTSAN_ENDING + 2;
		req->conn.private_len %= RTSAN_PRIVATE_MAX + 2;
	}
}

static void
do_request(struct liar *l, struct fuzz_input *in)
{
	uint8_t fix = take8(in), pick = take8(in), kind = take8(in);
	struct shmq_req req = {.type = kind & 31};

	take(in, req.room, take8(in) % sizeof(req.room));
	memcpy(&req.id, req.room, sizeof(req.id));
	if (l->app == NULL)
		return;
	if ((fix & 0x40) != 0) {
		req.magic = (fix & 2) != 0 ? SHMQ_MAGIC : take32(in);
		req.abi = take32(in);
	} else {
		fix_request(l, &req, fix, pick);
	}
	ask(l, &req, (fix & 0x20) != 0 || req.type == SHMQ_MR_ADD ? some_fd(kind >> 5) : -1);
}

/* ---- what it writes ---- */

static struct rtsan_sge
some_sge(const struct liar *l, struct fuzz_input *in)
{
	uint8_t pick = take8(in);
	const struct liar *of = (pick & 0x80) != 0 ? some_liar(pick) : l;
	uint32_t at = take32(in), len = take32(in);

	if ((pick & 0x40) == 0) {
		at %= REGION;
		len %= REGION + 1 - at;
	}
	return (struct rtsan_sge){
		.addr = (void *)(uintptr_t)(BASE + at),
		.length = len,
		.lkey = (pick & 0x20) != 0 ? take32(in) : of->keys[pick % NB_OBJ],
	};
}

static void
do_send(struct liar *l, struct fuzz_input *in)
{
	const struct app_mem *mem = qp_of(l, take8(in));
	uint8_t fix = take8(in), what = take8(in), pick = take8(in);
	struct san_ulp_wr wr = {.op = what & 7, .flags = what >> 4 & 7, .nb_sge = pick & 3};
	struct san_wq *wq;
	uint32_t tail;

	if (mem == NULL)
		return;
	wq = mem->mem;
	wr.rkey = liars[pick % NB_APPS].keys[pick >> 2 & (NB_OBJ - 1)];
	wr.remote_addr = BASE + (take32(in) & (REGION - 1) & ~7u);
	for (uint32_t i = 0; i < wr.nb_sge; i++) {
		wr.sge[i] = some_sge(l, in);
		wr.length += wr.sge[i].length;
	}
	if ((wr.flags & RTSAN_WR_INLINE) != 0)
		wr.length = wr.inline_len = take8(in);
	if (wr.op >= RTSAN_WR_FETCH_ADD && (fix & 2) == 0)
		wr.length = wr.sge[0].length = 8;
	if ((fix & 1) != 0)
		((uint8_t *)&wr)[take8(in) % sizeof(wr)] = take8(in);
	tail = atomic_load(&wq->sq_tail);
	memcpy((uint8_t *)(wq + 1) + tail % DEPTH * sizeof(wr), &wr, sizeof(wr));
	atomic_store(&wq->sq_tail, tail + 1);
}

static void
do_recv(struct liar *l, struct fuzz_input *in)
{
	const struct app_mem *mem = qp_of(l, take8(in));
	struct san_ulp_recv r = {.nb_sge = take8(in) % (RTSAN_SGE_MAX + 2)};
	struct san_wq *wq;
	uint32_t tail;

	if (mem == NULL)
		return;
	wq = mem->mem;
	for (uint32_t i = 0; i < r.nb_sge && i < RTSAN_SGE_MAX; i++)
		r.sge[i] = some_sge(l, in);
	tail = atomic_load(&wq->rq_tail);
	memcpy((uint8_t *)(wq + 1) + DEPTH * sizeof(struct san_ulp_wr) + tail % DEPTH * sizeof(r),
	       &r, sizeof(r));
	atomic_store(&wq->rq_tail, tail + 1);
}

/* Anything, anywhere, or a hole. */
static void
do_poke(struct liar *l, struct fuzz_input *in)
{
	uint8_t pick = take8(in), n = take8(in);
	const struct app_mem *s = pick < 64 ? ctl_of(l) :
		pick < 160                  ? cq_of(l, pick) :
					      qp_of(l, pick);
	uint32_t at = take32(in);

	if (s == NULL)
		return;
	if (n > 240) {
		fallocate(n > 248 ? region_fd : s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  at & 0x1000, 4096);
		return;
	}
	/* near its head, where the indices are, or anywhere */
	at = at % (uint32_t)((n & 0x80) != 0 ? s->bytes : RTE_MIN(s->bytes, (size_t)256));
	take(in, (uint8_t *)s->mem + at, RTE_MIN((size_t)(n & 15), s->bytes - at));
}

static void
do_ring(struct liar *l, struct fuzz_input *in)
{
	uint8_t pick = take8(in);

	if (ctl_of(l) == NULL)
		return;
	san_doorbells_ring(san_shmq_doorbells(l->app->ctl_mem.mem, 0, port->nb_doorbells),
			   (pick & 0x80) != 0 ? pick % port->lcore_qps :
						SAN_QPN_INDEX(l->qps[pick % NB_OBJ]));
}

static void
do_arm(struct liar *l, struct fuzz_input *in)
{
	const struct app_mem *mem = cq_of(l, take8(in));
	struct san_cq *cq;

	if (ctl_of(l) != NULL)
		atomic_store(&((struct shmq_ctl *)l->app->ctl_mem.mem)->ev_armed, 1);
	if (mem == NULL)
		return;
	cq = mem->mem;
	atomic_store(&cq->armed, 1);
	atomic_store(&cq->head, atomic_load(&cq->tail));
}

/* ---- all of it ---- */

static bool
is_empty(void)
{
	return san_ulp_mr_nb(san_core_ulp(e->core)) == 0 && san_core_pdl(e->core)->nb_conns == 0 &&
		san_view_counters_leaks(port->ctx->port) == 0;
}

/* Everybody goes, and then nothing is left; what ends by time has ended for the next input. */
static void
teardown(uint32_t nb_fds)
{
	struct held now;

	for (uint32_t i = 0; i < NB_APPS; i++)
		detach(&liars[i]);
	for (uint32_t i = 0; i < END_RUNS && !is_empty(); i++)
		run(1, END_NS);
	run(2, END_RUNS * END_NS);
	san_core_check(e->core);
	SAN_VERIFY(all.nb == 0 && all.nb_attached == 0 && LIST_EMPTY(&port->listeners));
	for (uint32_t i = 0; i < port->caps.max_qps; i++)
		SAN_VERIFY(port->qps[i].app == NULL && port->requests[i].app == NULL);
	for (uint32_t i = 0; i < port->caps.max_cqs; i++)
		SAN_VERIFY(port->cqs[i].app == NULL);
	SAN_VERIFY(is_empty());
	/* what was punched is there again for the next input */
	SAN_VERIFY(posix_fallocate(region_fd, 0, REGION) == 0);
	now = held(nb_inputs++ % MAPS_EVERY == 0);
	SAN_VERIFY(now.fds == nb_fds);
	SAN_VERIFY(now.maps == 0);
}

static void
one(struct fuzz_input *in)
{
	uint8_t what = take8(in);
	struct liar *l = some_liar(what >> 4);

	switch (what & 15) {
	case 0:
		attach(l);
		break;
	case 1:
		detach(l);
		break;
	case 2:
	case 3:
	case 4:
	case 5:
		do_request(l, in);
		break;
	case 6:
	case 7:
		do_send(l, in);
		do_ring(l, in);
		break;
	case 8:
		do_recv(l, in);
		do_ring(l, in);
		break;
	case 9:
		do_poke(l, in);
		break;
	case 10:
		do_ring(l, in);
		break;
	case 11:
		do_arm(l, in);
		break;
	case 12:
		run(1, (uint64_t)take8(in) * 10 * SAN_NS_PER_MS);
		break;
	default:
		run(1 + take8(in) % 16, STEP_NS);
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint32_t nb_fds;

	if (e == NULL)
		open_port();
	nb_fds = held(false).fds; /* libFuzzer opens some between inputs */
	while (in.size != 0) {
		one(&in);
		check();
	}
	teardown(nb_fds);
	return 0;
}
