/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A thread that drives the engine while the program does not call the library (OFI-1). It exists
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

struct ofi_drive {
	struct ofi_ctx *ctx;
	pthread_t thread;
	int fd;          /* an eventfd that ends its sleep */
	bool is_ended;   /* atomic */
	uint32_t rounds; /* of the context, when it looked last */
};

/* Nanoseconds until it looks again. */
static long
drive_look(struct ofi_drive *d, long slept_ns)
{
	struct ofi_ctx *ctx = d->ctx;
	const struct ofi_wait *w;
	bool is_busy = false;
	long next_ns;
	uint32_t i;

	if (!san_ofi_ctx_trylock())
		return DRIVE_MAX_NS; /* the program is in a call */
	if (ctx->nb_rounds == d->rounds) {
		for (i = 0; i < DRIVE_ROUNDS && rtsan_progress(ctx->san) > 0; i++)
			is_busy = true;
		san_ofi_progress_all(ctx);
	}
	d->rounds = ctx->nb_rounds;
	LIST_FOREACH(w, &ctx->waits, link)
		is_busy |= w->armed;
	next_ns = is_busy ? DRIVE_MIN_NS : 2 * slept_ns;
	san_ofi_ctx_unlock();
	return next_ns < DRIVE_MAX_NS ? next_ns : DRIVE_MAX_NS;
}

static void *
drive_run(void *arg)
{
	struct ofi_drive *d = arg;
	struct pollfd p = {.fd = d->fd, .events = POLLIN};
	struct timespec nap = {.tv_nsec = DRIVE_MAX_NS};
	eventfd_t n;

	while (!__atomic_load_n(&d->is_ended, __ATOMIC_ACQUIRE)) {
		if (ppoll(&p, 1, &nap, NULL) == 1)
			eventfd_read(d->fd, &n);
		nap.tv_nsec = drive_look(d, nap.tv_nsec);
	}
	return NULL;
}

int
san_ofi_drive_start(struct ofi_ctx *ctx)
{
	struct ofi_drive *d = calloc(1, sizeof(*d));
	sigset_t all, before;
	int rc;

	if (d == NULL)
		return -FI_ENOMEM;
	d->ctx = ctx;
	d->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = -errno;
	if (d->fd >= 0) {
		sigfillset(&all); /* signals are for the program's threads */
		pthread_sigmask(SIG_SETMASK, &all, &before);
		rc = -pthread_create(&d->thread, NULL, drive_run, d);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (rc != 0) {
		if (d->fd >= 0)
			close(d->fd);
		free(d);
		return rc;
	}
	ctx->drive = d;
	return 0;
}

void
san_ofi_drive_stop(struct ofi_ctx *ctx)
{
	struct ofi_drive *d = ctx->drive;

	if (d == NULL)
		return;
	__atomic_store_n(&d->is_ended, true, __ATOMIC_RELEASE);
	eventfd_write(d->fd, 1);
	pthread_join(d->thread, NULL); /* it never waits for the lock */
	close(d->fd);
	free(d);
	ctx->drive = NULL;
}

void
san_ofi_drive_wake(struct ofi_ctx *ctx)
{
	if (ctx->drive != NULL)
		eventfd_write(ctx->drive->fd, 1);
}
