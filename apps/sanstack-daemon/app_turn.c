/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What an application asks is read, fetched by a helper if descriptors come with it, and answered.
 *
 * DESIGN NOTES
 *
 * Of one application one request is under way at a time. Meanwhile its next ones wait in the
 * kernel, and its socket is watched for its end alone. A request is answered at the latest
 * HELPER_LATE_NS after its helper was asked to fetch it; but a large region takes longer.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "app_priv.h"
#include "engine_clock.h"
#include "san_time.h"

#define PAUSE_NS (10 * SAN_NS_PER_MS) /* until a request that could not be fetched is tried again */

/* Its end is always heard. */
static void
set_paused(const struct apps *all, struct app *a, bool is_paused)
{
	struct epoll_event ev = {.events = is_paused ? 0 : EPOLLIN, .data = {.ptr = a}};

	if (a->is_paused == is_paused)
		return;
	a->is_paused = is_paused;
	a->over |= epoll_ctl(all->epoll, EPOLL_CTL_MOD, a->sock, &ev) != 0;
}

void
app_end_job(struct apps *all, struct app *a)
{
	if (a->ans.fd >= 0)
		close(a->ans.fd);
	a->ans.fd = -1;
	a->job = 0;
	a->asked = NULL;
	set_paused(all, a, false);
}

static int
fetch(struct apps *all, struct app *a)
{
	struct helper_msg m = {.op = HELPER_FETCH, .job = all->last_job + 1};
	uint64_t now_ns = san_engine_clock_monotonic();
	struct helper *h = helper_of(a->uid);

	set_paused(all, a, true);
	a->job_ns = now_ns;
	if (h == NULL || helper_is_late(h, now_ns) || helper_ask(h, &m, a->sock) != 0)
		return -EBUSY;
	memset(&a->ans.rep, 0, sizeof(a->ans.rep));
	all->last_job = a->job = m.job;
	a->asked = h;
	return 0;
}

int
app_next(struct apps *all, struct app *a, struct shmq_req *req)
{
	bool has_fds;
	int rc;

	if (a->job != 0)
		return -EBUSY;
	rc = shmq_peek(a->sock, req, sizeof(*req), &has_fds);
	if (has_fds) /* the first word has none */
		return a->attached && helpers_are_there() ? fetch(all, a) : -EPROTO;
	if (rc != 0)
		return rc;
	shmq_skip(a->sock);
	return 1;
}

/* ---- helpers answer ---- */

static struct app *
find_job(const struct apps *all, uint64_t job)
{
	struct app *a;

	LIST_FOREACH(a, &all->list, link)
		if (job != 0 && a->job == job)
			return a;
	return NULL;
}

/* *a* is NULL if nobody waits for it any more. */
static void
fetched(struct apps *all, struct app *a, struct helper *h, const struct helper_msg *m, int memory,
	uid_t uid)
{
	struct passed p = {
		.helper = h,
		.facts = &m->facts,
		.handle = m->handle,
		.memory = memory,
		.why = m->why,
	};
	bool is_kept = false;

	if (a != NULL && m->rc != 0) {
		a->over = true;
		app_end_job(all, a);
	} else if (a != NULL) {
		app_serve_passed(all, a, &m->req, &p);
		is_kept = a->growing.mem != NULL;
		a->grown_at = all->nb_grown;
	}
	if (p.handle >= 0)
		helper_close(h, p.handle);
	if (memory >= 0 && is_kept)
		close(memory); /* not the last one */
	else if (memory >= 0)
		helpers_close(memory, uid);
}

void
apps_heard(struct apps *all, struct helper *h, const struct helper_msg *m, int fd)
{
	struct app *a = find_job(all, m->job);
	struct answer none = {.fd = -1};
	int rc;

	switch (m->op) {
	case HELPER_FETCH:
		fetched(all, a, h, m, fd, helper_uid(h));
		break;
	case HELPER_GIVE: /* it has answered */
		if (a == NULL)
			break;
		a->over |= m->rc != 0;
		app_end_job(all, a);
		break;
	case HELPER_CLOSE:
	case HELPER_CLOSE_FD:
		break;
	default:
		rc = socks_heard(all, m, a != NULL ? &a->ans.rep : &none.rep);
		if (a != NULL)
			app_answer(all, a, rc);
		break;
	}
}

/* The answer is the daemon's own. */
static void
give_up(struct apps *all, struct app *a, int rc, const char *why)
{
	snprintf(a->ans.rep.text, sizeof(a->ans.rep.text), "%s", why);
	app_answer(all, a, rc);
}

void
apps_helper_gone(struct apps *all, struct helper *h)
{
	struct app *a;

	socks_helper_gone(all, h);
	LIST_FOREACH(a, &all->list, link)
		if (a->asked == h)
			give_up(all, a, -EIO, "what came with it ended its user's helper");
}

/* ---- what takes its time ---- */

/* A step of one region, of whoever had none for longest: when to call again. */
static uint64_t
grow_one(struct apps *all, uint64_t now_ns)
{
	struct app *a, *next = NULL;

	LIST_FOREACH(a, &all->list, link)
		if (a->growing.mem != NULL && !a->over &&
		    (next == NULL || a->grown_at < next->grown_at))
			next = a;
	if (next == NULL)
		return SAN_TIME_NEVER;
	next->grown_at = ++all->nb_grown;
	app_answer(all, next, app_grow(next));
	return now_ns;
}

/* When to call again. */
static uint64_t
look_at(struct apps *all, struct app *a, uint64_t now_ns)
{
	if (!a->is_paused || a->over)
		return SAN_TIME_NEVER;
	if (a->job == 0) { /* it could not be fetched */
		if (now_ns - a->job_ns < PAUSE_NS)
			return a->job_ns + PAUSE_NS;
		set_paused(all, a, false);
		return SAN_TIME_NEVER;
	}
	if (a->asked == NULL)
		return SAN_TIME_NEVER;
	if (now_ns - a->job_ns < HELPER_LATE_NS)
		return a->job_ns + HELPER_LATE_NS;
	give_up(all, a, -ETIMEDOUT, "a descriptor of this user's programs holds up the kernel");
	return SAN_TIME_NEVER;
}

uint64_t
apps_step(struct apps *all, uint64_t now_ns)
{
	uint64_t due_ns = grow_one(all, now_ns);
	struct app *a;

	LIST_FOREACH(a, &all->list, link)
		due_ns = san_time_min(due_ns, look_at(all, a, now_ns));
	return app_mem_step() ? now_ns : due_ns;
}

bool
apps_are_waiting(const struct apps *all)
{
	const struct app *a;

	LIST_FOREACH(a, &all->list, link)
		if (a->job != 0 && !a->over)
			return true;
	return false;
}
