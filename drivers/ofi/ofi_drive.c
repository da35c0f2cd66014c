/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The context of the process. It is opened when the first object needs it and closed with the last
 * one. A child after fork() opens its own, because rings belong to one process.
 *
 * A thread drives the engine while the program does not call the library (OFI-1). It exists
 * where the program's own polling drives the port (poll=caller): packets are answered and sleepers
 * are woken by it. While the program polls, it only sees that and sleeps.
 */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "ofi_priv.h"

#define DRIVE_MIN_NS 50000   /* between looks while packets come or a thread sleeps */
#define DRIVE_MAX_NS 1000000 /* else; a peer waits that long for an answer */
#define DRIVE_ROUNDS 64      /* at a time: a program that calls waits for them */

static struct ofi_ctx *drive_ctx;
static pid_t drive_pid;

/* ---- the thread ---- */

/* Nanoseconds until it looks again. */
static long
drive_look(struct ofi_ctx *ctx, long slept_ns)
{
	const struct ofi_wait *w;
	bool is_busy = false;
	long next_ns;
	uint32_t i;

	if (!san_ofi_ctx_trylock())
		return DRIVE_MAX_NS; /* the program is in a call */
	if (ctx->nb_rounds == ctx->drive.rounds) {
		for (i = 0; i < DRIVE_ROUNDS && rtsan_progress(ctx->san) > 0; i++)
			is_busy = true;
		san_ofi_progress(ctx);
		san_ofi_progress_events(ctx);
	}
	ctx->drive.rounds = ctx->nb_rounds;
	LIST_FOREACH(w, &ctx->waits, link)
		is_busy |= w->armed;
	next_ns = is_busy ? DRIVE_MIN_NS : 2 * slept_ns;
	san_ofi_ctx_unlock();
	return next_ns < DRIVE_MAX_NS ? next_ns : DRIVE_MAX_NS;
}

static void *
drive_run(void *arg)
{
	struct ofi_ctx *ctx = arg;
	struct pollfd p = {.fd = ctx->drive.fd, .events = POLLIN};
	struct timespec nap = {.tv_nsec = DRIVE_MAX_NS};
	eventfd_t n;

	while (!__atomic_load_n(&ctx->drive.is_ended, __ATOMIC_ACQUIRE)) {
		if (ppoll(&p, 1, &nap, NULL) == 1)
			eventfd_read(ctx->drive.fd, &n);
		nap.tv_nsec = drive_look(ctx, nap.tv_nsec);
	}
	return NULL;
}

static int
drive_start(struct ofi_ctx *ctx)
{
	sigset_t all, before;
	int rc;

	ctx->drive.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctx->drive.fd < 0)
		return -errno;
	sigfillset(&all); /* signals are for the program's threads */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&ctx->drive.thread, NULL, drive_run, ctx);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		close(ctx->drive.fd);
	ctx->is_driven = rc == 0;
	return rc;
}

/* ---- the context ---- */

static int
drive_open(struct ofi_ctx **out)
{
	struct ofi_ctx *ctx = calloc(1, sizeof(*ctx));
	int rc;

	if (ctx == NULL)
		return -FI_ENOMEM;
	rc = rtsan_open(san_ofi_ctx_spec(), &ctx->san);
	if (rc != 0) {
		free(ctx);
		return san_ofi_ctx_fail(rc, san_ofi_ctx_spec());
	}
	rtsan_query(ctx->san, &ctx->caps);
	san_ofi_ctx_note_addrs(ctx->san);
	STAILQ_INIT(&ctx->dirty); /* other lists are empty if they are zero */
	rc = rtsan_event_fd(ctx->san) == -ENOTSUP ? drive_start(ctx) : 0;
	if (rc != 0) {
		rtsan_close(ctx->san);
		free(ctx);
		return rc;
	}
	*out = ctx;
	return 0;
}

int
san_ofi_drive_get(struct ofi_ctx **out)
{
	int rc;

	if (drive_ctx == NULL || drive_pid != getpid()) {
		drive_ctx = NULL; /* after fork() the old one is the parent's */
		rc = drive_open(&drive_ctx);
		if (rc != 0)
			return rc;
		drive_pid = getpid();
	}
	drive_ctx->refs++;
	*out = drive_ctx;
	return 0;
}

void
san_ofi_drive_put(struct ofi_ctx *ctx)
{
	if (--ctx->refs != 0)
		return;
	if (ctx == drive_ctx)
		drive_ctx = NULL;
	if (ctx->is_driven) {
		__atomic_store_n(&ctx->drive.is_ended, true, __ATOMIC_RELEASE);
		eventfd_write(ctx->drive.fd, 1);
		pthread_join(ctx->drive.thread, NULL); /* it never waits for the lock */
		close(ctx->drive.fd);
	}
	san_ofi_cm_end_all(ctx);
	rtsan_close(ctx->san);
	san_ofi_ctx_free(ctx);
}
