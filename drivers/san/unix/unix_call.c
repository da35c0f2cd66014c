/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests to the daemon. Each waits for its answer, and other threads wait meanwhile. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "unix_priv.h"

#define PATH_MAX_LEN sizeof(((struct sockaddr_un *)0)->sun_path)
#define PORT_KEY     ",port="

static int
unix_call_daemon_died(struct unix_ctx *ctx, int rc)
{
	atomic_store(&ctx->is_lost, true);
	return ctx->host->fail(-EIO, "the daemon has ended (%s)", strerror(-rc));
}

int
san_unix_call(struct unix_ctx *ctx, const struct shmq_req *req, int fd, struct shmq_rep *rep,
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
		return unix_call_daemon_died(ctx, rc);
	rep->text[SHMQ_TEXT - 1] = '\0';
	if (rep->rc == 0 && got != NULL && rx_fd < 0)
		rc = unix_call_daemon_died(ctx, -EPROTO);
	else if (rep->rc != 0)
		rc = rep->text[0] != '\0' ? ctx->host->fail(rep->rc, "%s", rep->text) : rep->rc;
	if (rc == 0 && got != NULL)
		*got = rx_fd;
	else if (rx_fd >= 0)
		close(rx_fd);
	return rc;
}

int
san_unix_call_fd(struct unix_ctx *ctx, enum shmq_type type, uint32_t id)
{
	struct shmq_req req = {.type = type, .id = id};
	struct shmq_rep rep;
	int fd, rc = san_unix_call(ctx, &req, -1, &rep, &fd);

	return rc == 0 ? fd : rc;
}

bool
san_unix_call_is_alive(struct unix_ctx *ctx)
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

/* ---- open, close ---- */

/* "PATH" or "PATH,port=NAME". */
static int
unix_call_split_args(const struct unix_ctx *ctx, const char *args, char path[PATH_MAX_LEN],
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

static int
unix_call_dial(struct unix_ctx *ctx, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	strcpy(addr.sun_path, path);
	ctx->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (ctx->sock < 0)
		return ctx->host->fail(-errno, "unix:%s: %s", path, strerror(errno));
	if (connect(ctx->sock, (struct sockaddr *)&addr, sizeof(addr)) != 0)
		return ctx->host->fail(-errno, "unix:%s: %s%s", path, strerror(errno),
				       errno == ECONNREFUSED || errno == ENOENT ?
					       ": is sanstack-daemon running?" :
					       "");
	return 0;
}

static void
unix_call_keep_limits(struct unix_ctx *ctx, const struct shmq_rep *rep)
{
	ctx->yields = rep->hello.yields != 0;
	ctx->lcore_qps = rep->hello.lcore_qps;
	ctx->nb_doorbells = rep->hello.lcore_qps + rep->hello.max_socks;
	ctx->qp_shift = rep->hello.qp_shift;
	ctx->ctl_bytes = rep->hello.ctl_bytes;
	ctx->caps = (struct rtsan_caps){
		.max_qps = rep->hello.max_qps,
		.max_cqs = rep->hello.max_cqs,
		.max_mrs = rep->hello.max_mrs,
		.max_wr = rep->hello.max_wr,
		.max_sge = RTSAN_SGE_MAX,
		.max_inline = RTSAN_INLINE_MAX,
		.nb_lcores = rep->hello.nb_lcores,
		.max_msg = rep->hello.max_msg,
		.has_unordered = true,
		.has_atomic = true,
		.provider = "unix",
	};
}

/* Get the descriptors that wake the daemon's lcores. */
static int
take_wake_fds(struct unix_ctx *ctx)
{
	uint32_t i;

	ctx->wake_fds = malloc(ctx->caps.nb_lcores * sizeof(*ctx->wake_fds));
	if (ctx->wake_fds == NULL)
		return -ENOMEM;
	for (i = 0; i < ctx->caps.nb_lcores; i++)
		ctx->wake_fds[i] = -1;
	for (i = 0; i < ctx->caps.nb_lcores; i++) {
		ctx->wake_fds[i] = san_unix_call_fd(ctx, SHMQ_WAKE_FD, i);
		if (ctx->wake_fds[i] < 0)
			return ctx->wake_fds[i];
	}
	return 0;
}

static int
unix_call_hello(struct unix_ctx *ctx, const char port[SHMQ_PORT])
{
	struct shmq_req req = {.type = SHMQ_HELLO};
	struct shmq_rep rep;
	void *ctl;
	int fd, rc;

	memcpy(req.hello.port, port, SHMQ_PORT);
	rc = san_unix_call(ctx, &req, -1, &rep, &fd);
	if (rc != 0)
		return rc;
	if (rep.magic != SHMQ_MAGIC || rep.abi != SHMQ_ABI) {
		close(fd);
		return ctx->host->fail(-EPROTO, "the daemon speaks version %u, this library %u",
				       rep.abi, SHMQ_ABI);
	}
	unix_call_keep_limits(ctx, &rep);
	ctl = mmap(NULL, ctx->ctl_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (ctl == MAP_FAILED)
		return ctx->host->fail(-ENOMEM, "mmap: %s", strerror(errno));
	ctx->ctl = ctl;
	san_spsc_cons_init(&ctx->events, SHMQ_EVENTS);
	return rep.hello.sleeps ? take_wake_fds(ctx) : 0;
}

int
san_unix_call_open(struct unix_ctx *ctx, const char *args)
{
	char path[PATH_MAX_LEN], port[SHMQ_PORT];
	int rc;

	ctx->sock = ctx->event_fd = -1;
	pthread_mutex_init(&ctx->lock, NULL);
	rc = unix_call_split_args(ctx, args, path, port);
	if (rc == 0)
		rc = unix_call_dial(ctx, path);
	if (rc == 0)
		rc = unix_call_hello(ctx, port);
	if (rc != 0)
		san_unix_call_close(ctx);
	return rc;
}

void
san_unix_call_close(struct unix_ctx *ctx)
{
	uint32_t i;

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
}
