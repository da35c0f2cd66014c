/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The provider whose engine runs in another process, sanstack-daemon. Each control call sends a
 * record to the daemon, waits for the answer, and other threads wait meanwhile. Posting, polling
 * and events need no system call: they use memory that both processes map. Arguments are not
 * checked here, because the daemon checks them. (SYS-2)
 */

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rtsan_provider.h"
#include "shmq.h"

#define PATH_MAX_LEN sizeof(((struct sockaddr_un *)0)->sun_path)
#define PORT_KEY     ",port="
#define ALIVE_EVERY  1024 /* polls without an event, between checks whether the daemon is alive */

/** A queue pair: memory that the daemon and the program map. */
struct unix_qp {
	struct san_wq *wq;
	size_t bytes;
};

struct unix_ctx {
	const struct rtsan_host *host;
	int sock;
	bool yields;   /**< the daemon's lcores share the CPUs of programs */
	int event_fd;  /**< readable when there are events, once armed; -1: not requested */
	int *wake_fds; /**< one for each lcore; NULL: lcores never sleep */
	uint32_t qp_shift;
	uint32_t nb_doorbells; /**< doorbells of an lcore */
	struct rtsan_caps caps;
	struct shmq_ctl *ctl;
	size_t ctl_bytes;
	struct unix_qp *qps;  /**< caps.max_qps entries, by SAN_QPN_INDEX() */
	pthread_mutex_t lock; /**< held for a request and its answer */
	_Atomic bool is_lost; /**< the daemon, or its port, has ended */
	uint32_t nb_idle;     /**< polls without an event */
	struct san_spsc_cons events;
};

struct unix_cq {
	uint32_t id;
	struct san_cq *mem;
	size_t bytes;
	int fd; /**< readable when there are completions, once armed; -1: not requested */
	struct san_spsc_cons c;
};

/* ---- requests ---- */

static int
unix_daemon_died(struct unix_ctx *ctx, int rc)
{
	atomic_store(&ctx->is_lost, true);
	return ctx->host->fail(-EIO, "the daemon has ended (%s)", strerror(-rc));
}

/*
 * Make a request; *fd* goes with it, -1: none. *got* becomes the descriptor of the answer, without
 * which the call fails; NULL: none is expected. If the daemon refuses, the text is the daemon's.
 */
static int
unix_request(struct unix_ctx *ctx, const struct shmq_req *req, int fd, struct shmq_rep *rep,
	     int *got)
{
	struct shmq_req msg = *req;
	int rc, rx_fd = -1;

	msg.magic = SHMQ_MAGIC;
	msg.abi = SHMQ_ABI;
	pthread_mutex_lock(&ctx->lock);
	rc = msg.type == SHMQ_HELLO ? san_shmq_send_proof(ctx->sock, &msg, sizeof(msg)) :
				      san_shmq_send(ctx->sock, &msg, sizeof(msg), fd, true);
	if (rc == 0)
		rc = san_shmq_recv(ctx->sock, rep, sizeof(*rep), &rx_fd, true);
	pthread_mutex_unlock(&ctx->lock);
	if (rc != 0)
		return unix_daemon_died(ctx, rc);
	rep->text[SHMQ_TEXT - 1] = '\0';
	if (rep->rc == 0 && got != NULL && rx_fd < 0)
		rc = unix_daemon_died(ctx, -EPROTO);
	else if (rep->rc != 0)
		rc = rep->text[0] != '\0' ? ctx->host->fail(rep->rc, "%s", rep->text) : rep->rc;
	if (rc == 0 && got != NULL)
		*got = rx_fd;
	else if (rx_fd >= 0)
		close(rx_fd);
	return rc;
}

/* Request a descriptor, by *id*. Returns it, or -errno. */
static int
unix_request_fd(struct unix_ctx *ctx, enum shmq_type type, uint32_t id)
{
	struct shmq_req req = {.type = type, .id = id};
	struct shmq_rep rep;
	int fd = -1, rc = unix_request(ctx, &req, -1, &rep, &fd);

	return rc == 0 ? fd : rc;
}

static bool
unix_is_alive(struct unix_ctx *ctx)
{
	char byte;
	ssize_t n;

	/* another thread's request is in progress and will find out */
	if (pthread_mutex_trylock(&ctx->lock) != 0)
		return true;
	n = recv(ctx->sock, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
	pthread_mutex_unlock(&ctx->lock);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		atomic_store(&ctx->is_lost, true);
	return !atomic_load(&ctx->is_lost);
}

/* ---- contexts ---- */

/* "PATH" or "PATH,port=NAME". */
static int
unix_split_args(const struct unix_ctx *ctx, const char *args, char path[PATH_MAX_LEN],
		char port[SHMQ_PORT])
{
	size_t len = strcspn(args, ",");
	const char *key = &args[len];

	if (len == 0 || len >= PATH_MAX_LEN)
		return ctx->host->fail(-EINVAL, "unix:%s: a path of 1 to %zu characters", args,
				       PATH_MAX_LEN - 1);
	memcpy(path, args, len);
	path[len] = '\0';
	memset(port, 0, SHMQ_PORT);
	if (key[0] == '\0')
		return 0;
	if (strncmp(key, PORT_KEY, strlen(PORT_KEY)) != 0)
		return ctx->host->fail(-EINVAL,
				       "unix:%s: behind the path may only be " PORT_KEY "NAME",
				       args);
	key += strlen(PORT_KEY);
	if (key[0] == '\0' || strlen(key) >= SHMQ_PORT)
		return ctx->host->fail(-EINVAL, "unix:%s: a port's name has 1 to %d characters",
				       args, SHMQ_PORT - 1);
	strcpy(port, key);
	return 0;
}

/* Map memory that the daemon has created. */
static void *
unix_map_mem(struct unix_ctx *ctx, int fd, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	if (p != MAP_FAILED)
		return p;
	ctx->host->fail(-ENOMEM, "mmap of %zu bytes: %s", bytes, strerror(errno));
	return NULL;
}

static int
unix_hello(struct unix_ctx *ctx, const char port[SHMQ_PORT])
{
	struct shmq_req req = {.type = SHMQ_HELLO};
	struct shmq_rep rep;
	uint32_t i, nb;
	int fd, rc;

	memcpy(req.hello.port, port, SHMQ_PORT);
	strncpy(req.hello.name, program_invocation_short_name, SHMQ_NAME - 1);
	rc = unix_request(ctx, &req, -1, &rep, &fd);
	if (rc != 0)
		return rc;
	if (rep.magic != SHMQ_MAGIC || rep.abi != SHMQ_ABI) {
		close(fd);
		return ctx->host->fail(-EPROTO, "the daemon speaks version %u, this library %u",
				       rep.abi, SHMQ_ABI);
	}
	ctx->yields = rep.hello.yields != 0;
	ctx->nb_doorbells = rep.hello.lcore_qps + rep.hello.max_socks;
	ctx->qp_shift = rep.hello.qp_shift;
	ctx->ctl_bytes = rep.hello.ctl_bytes;
	ctx->caps = (struct rtsan_caps){
		.max_qps = rep.hello.max_qps,
		.max_cqs = rep.hello.max_cqs,
		.max_mrs = rep.hello.max_mrs,
		.max_wr = rep.hello.max_wr,
		.max_sge = RTSAN_SGE_MAX,
		.max_inline = RTSAN_INLINE_MAX,
		.nb_lcores = rep.hello.nb_lcores,
		.max_msg = rep.hello.max_msg,
		.has_unordered = true,
		.has_atomic = true,
		.has_recv_from = true,
		.provider = "unix",
	};
	ctx->ctl = unix_map_mem(ctx, fd, ctx->ctl_bytes);
	if (ctx->ctl == NULL)
		return -ENOMEM;
	san_spsc_cons_init(&ctx->events, SHMQ_EVENTS);
	/* the descriptors that wake the daemon's lcores, if these may sleep */
	nb = rep.hello.sleeps ? ctx->caps.nb_lcores : 0;
	ctx->wake_fds = nb != 0 ? malloc(nb * sizeof(*ctx->wake_fds)) : NULL;
	if (nb != 0 && ctx->wake_fds == NULL)
		return -ENOMEM;
	for (i = 0; i < nb; i++)
		ctx->wake_fds[i] = -1;
	for (i = 0; i < nb && rc == 0; i++) {
		ctx->wake_fds[i] = unix_request_fd(ctx, SHMQ_WAKE_FD, i);
		rc = ctx->wake_fds[i] < 0 ? ctx->wake_fds[i] : 0;
	}
	return rc;
}

static void
unix_close(void *priv)
{
	struct unix_ctx *ctx = priv;
	uint32_t i;

	/* the daemon releases what is left */
	for (i = 0; ctx->wake_fds != NULL && i < ctx->caps.nb_lcores; i++)
		if (ctx->wake_fds[i] >= 0)
			close(ctx->wake_fds[i]);
	free(ctx->wake_fds);
	if (ctx->event_fd >= 0)
		close(ctx->event_fd);
	if (ctx->sock >= 0)
		close(ctx->sock);
	if (ctx->ctl != NULL)
		munmap(ctx->ctl, ctx->ctl_bytes);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx->qps);
	free(ctx);
}

static int
unix_open(const char *args, const struct rtsan_host *host, void **priv)
{
	struct unix_ctx *ctx = calloc(1, sizeof(*ctx));
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char port[SHMQ_PORT];
	int rc;

	if (ctx == NULL)
		return -ENOMEM;
	ctx->host = host;
	ctx->event_fd = -1;
	ctx->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	pthread_mutex_init(&ctx->lock, NULL);
	rc = unix_split_args(ctx, args, addr.sun_path, port);
	if (rc == 0 && connect(ctx->sock, (struct sockaddr *)&addr, sizeof(addr)) != 0)
		rc = host->fail(-errno, "unix:%s: %s%s", addr.sun_path, strerror(errno),
				errno == ECONNREFUSED || errno == ENOENT ?
					": is sanstack-daemon running?" :
					"");
	if (rc == 0)
		rc = unix_hello(ctx, port);
	if (rc == 0) {
		ctx->qps = calloc(ctx->caps.max_qps, sizeof(*ctx->qps));
		rc = ctx->qps != NULL ? 0 : -ENOMEM;
	}
	if (rc != 0) {
		unix_close(ctx);
		return rc;
	}
	*priv = ctx;
	return 0;
}

static int
unix_progress(void *priv)
{
	const struct unix_ctx *ctx = priv;

	if (atomic_load_explicit(&ctx->is_lost, memory_order_relaxed))
		return -EIO;
	if (ctx->yields)
		sched_yield();
	return 0;
}

static void
unix_query(void *priv, struct rtsan_caps *caps)
{
	const struct unix_ctx *ctx = priv;

	*caps = ctx->caps;
}

static int
unix_address(void *priv, uint32_t index, char text[RTSAN_ADDRESS_MAX])
{
	const struct unix_ctx *ctx = priv;
	const struct in6_addr *ip;
	bool v4;

	if (index >= ctx->ctl->nb_addrs)
		return -ENOENT;
	ip = (const struct in6_addr *)ctx->ctl->nets[index].ip;
	v4 = IN6_IS_ADDR_V4MAPPED(ip);
	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? &ip->s6_addr[12] : ip->s6_addr, text,
		  RTSAN_ADDRESS_MAX);
	return 0;
}

/* ---- records that are sent unchanged ---- */

static int
unix_call(void *priv, const struct shmq_req *req)
{
	struct shmq_rep rep;

	return unix_request(priv, req, -1, &rep, NULL);
}

static int
unix_call_id(struct unix_ctx *ctx, enum shmq_type type, uint32_t id)
{
	struct shmq_req req = {.type = type, .id = id};

	return unix_call(ctx, &req);
}

static int
unix_mr_add(void *priv, const struct shmq_req *req, int fd, struct rtsan_provider_keys *keys)
{
	struct shmq_rep rep;
	int rc = unix_request(priv, req, fd, &rep, NULL);

	if (rc == 0)
		keys->key = keys->rkey = rep.id;
	return rc;
}

/* ---- completion queues ---- */

static int
unix_cq_create(void *priv, uint32_t depth, void **out)
{
	struct shmq_req req = {.type = SHMQ_CQ_CREATE, .cq = {.depth = depth}};
	struct unix_ctx *ctx = priv;
	struct unix_cq *cq = calloc(1, sizeof(*cq));
	struct shmq_rep rep;
	int rc, fd;

	if (cq == NULL)
		return -ENOMEM;
	rc = unix_request(ctx, &req, -1, &rep, &fd);
	if (rc != 0) {
		free(cq);
		return rc;
	}
	cq->fd = -1;
	cq->id = rep.cq.id;
	cq->bytes = san_wr_cq_bytes(rep.cq.depth);
	cq->mem = unix_map_mem(ctx, fd, cq->bytes);
	if (cq->mem == NULL) {
		unix_call_id(ctx, SHMQ_CQ_DESTROY, cq->id);
		free(cq);
		return -ENOMEM;
	}
	san_spsc_cons_init(&cq->c, rep.cq.depth);
	*out = cq;
	return 0;
}

static int
unix_cq_destroy(void *priv, void *arg)
{
	struct unix_cq *cq = arg;
	int rc = unix_call_id(priv, SHMQ_CQ_DESTROY, cq->id);

	if (rc != 0 && rc != -EIO)
		return rc;
	if (cq->fd >= 0)
		close(cq->fd);
	munmap(cq->mem, cq->bytes);
	free(cq);
	return 0;
}

static int
unix_cq_poll(void *arg, struct san_ulp_wc *wc, int n)
{
	struct unix_cq *cq = arg;

	return (int)san_wr_cq_poll(&cq->c, cq->mem, wc, (uint32_t)n);
}

/* ---- waiting ---- */

/* Empty the pair. When the daemon ends, its side is closed, which wakes waiters, too. */
static int
unix_drain_fd(struct unix_ctx *ctx, int fd)
{
	int rc = fd >= 0 ? san_shmq_pair_drain(fd) : 0;

	if (rc != 0)
		atomic_store(&ctx->is_lost, true);
	return atomic_load(&ctx->is_lost) || atomic_load(&ctx->ctl->orphaned) ? -EIO : 0;
}

static int
unix_cq_fd(void *priv, void *arg)
{
	struct unix_cq *cq = arg;

	if (cq->fd < 0)
		cq->fd = unix_request_fd(priv, SHMQ_CQ_FD, cq->id);
	return cq->fd;
}

static int
unix_cq_arm(void *priv, void *arg)
{
	struct unix_cq *cq = arg;
	int rc = unix_drain_fd(priv, cq->fd);

	if (!san_spsc_arm(&cq->c, &cq->mem->tail, &cq->mem->armed))
		return 1; /* completions can be polled, also those from before the daemon's end */
	return rc;
}

static int
unix_event_fd(void *priv)
{
	struct unix_ctx *ctx = priv;

	if (ctx->event_fd < 0)
		ctx->event_fd = unix_request_fd(ctx, SHMQ_EVENT_FD, 0);
	return ctx->event_fd;
}

static int
unix_event_arm(void *priv)
{
	struct unix_ctx *ctx = priv;
	int rc = unix_drain_fd(ctx, ctx->event_fd);

	if (!san_spsc_arm(&ctx->events, &ctx->ctl->ev_tail, &ctx->ctl->ev_armed))
		return 1;
	return rc;
}

/* ---- queue pairs ---- */

static int
unix_qp_create(void *priv, struct rtsan_provider_qp *conf)
{
	struct unix_ctx *ctx = priv;
	const struct unix_cq *send_cq = conf->send_cq, *recv_cq = conf->recv_cq;
	struct shmq_req req = *conf->req;
	struct unix_qp *q;
	struct shmq_rep rep;
	int rc, fd;

	req.qp.send_cq = send_cq->id;
	req.qp.recv_cq = recv_cq->id;
	rc = unix_request(ctx, &req, -1, &rep, &fd);
	if (rc != 0)
		return rc;
	q = &ctx->qps[SAN_QPN_INDEX(rep.id)];
	q->bytes = san_wr_wq_bytes(req.qp.sq_depth, req.qp.rq_depth);
	q->wq = unix_map_mem(ctx, fd, q->bytes);
	if (q->wq == NULL) {
		unix_call_id(ctx, SHMQ_QP_DESTROY, rep.id);
		return -ENOMEM;
	}
	conf->qp = rep.id;
	conf->wq = q->wq;
	return 0;
}

static void
unix_qp_destroy(void *priv, uint32_t qp)
{
	struct unix_ctx *ctx = priv;
	struct unix_qp *q = &ctx->qps[SAN_QPN_INDEX(qp)];

	unix_call_id(ctx, SHMQ_QP_DESTROY, qp);
	munmap(q->wq, q->bytes);
	q->wq = NULL;
}

static void
unix_doorbell(void *priv, uint32_t qp)
{
	const struct unix_ctx *ctx = priv;
	uint32_t index = SAN_QPN_INDEX(qp), lcore = index >> ctx->qp_shift;

	if (san_doorbells_ring(san_shmq_doorbells(ctx->ctl, lcore, ctx->nb_doorbells),
			       index - (lcore << ctx->qp_shift)))
		eventfd_write(ctx->wake_fds[lcore], 1);
}

/* ---- events ---- */

static int
unix_event_poll(void *priv, struct shmq_event *ev)
{
	struct unix_ctx *ctx = priv;

	if (san_spsc_count(&ctx->events, &ctx->ctl->ev_tail) == 0) {
		if (++ctx->nb_idle % ALIVE_EVERY == 0 && !unix_is_alive(ctx))
			return -EIO;
		return atomic_load(&ctx->ctl->orphaned) || atomic_load(&ctx->is_lost) ? -EIO : 0;
	}
	*ev = ctx->ctl->events[ctx->events.head & ctx->events.mask];
	san_spsc_pop(&ctx->events, &ctx->ctl->ev_head, 1);
	return 1;
}

const struct rtsan_provider rtsan_provider_unix = {
	.abi = RTSAN_PROVIDER_ABI,
	.open = unix_open,
	.close = unix_close,
	.progress = unix_progress,
	.query = unix_query,
	.call = unix_call,
	.address = unix_address,
	.mr_add = unix_mr_add,
	.cq_create = unix_cq_create,
	.cq_destroy = unix_cq_destroy,
	.cq_poll = unix_cq_poll,
	.cq_fd = unix_cq_fd,
	.cq_arm = unix_cq_arm,
	.qp_create = unix_qp_create,
	.qp_destroy = unix_qp_destroy,
	.doorbell = unix_doorbell,
	.event_poll = unix_event_poll,
	.event_fd = unix_event_fd,
	.event_arm = unix_event_arm,
};
