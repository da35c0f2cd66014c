/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Reads requests, has a helper fetch those with descriptors, and answers them.
 *
 * DESIGN NOTES
 *
 * An application has one request in progress at a time. Further requests wait in the kernel, and
 * its socket is watched only for a hang-up. A request that a helper fetches is answered within
 * HELPER_LATE_NS. The next request is read only after the helper has finished: until then the
 * message may still be in the socket.
 */

#include "app_priv.h"

#define SEND_NS  (10 * SAN_NS_PER_S)  /* time limit for sending an answer */
#define PAUSE_NS (10 * SAN_NS_PER_MS) /* delay before another try to fetch a request */

/* Pause or resume reading. A hang-up is reported in either state. */
static void
set_paused(const struct apps *all, struct app *a, bool is_paused)
{
	struct epoll_event ev = {.events = is_paused ? 0 : EPOLLIN, .data = {.ptr = a}};

	if (a->is_paused == is_paused)
		return;
	a->is_paused = is_paused;
	a->over |= epoll_ctl(all->epoll, EPOLL_CTL_MOD, a->sock, &ev) != 0;
}

/* The request is answered: read the next one. */
static void
app_turn_end_job(struct apps *all, struct app *a)
{
	san_fd_close(a->ans.fd);
	a->ans.fd = -1;
	a->job = 0;
	a->waits_for = NULL;
	a->is_notified = a->is_answered = a->is_unsent = false;
	set_paused(all, a, false);
}

/*
 * The kernel counts descriptors in flight of all processes of the daemon's user. Too many of them
 * (ETOOMANYREFS) are not this application's fault, so the answer is sent again later.
 */
void
san_app_turn_send(struct apps *all, struct app *a)
{
	const struct answer *ans = &a->ans;
	int rc = san_shmq_send(a->sock, &ans->rep, sizeof(ans->rep), ans->fd, false);

	if (rc != -ETOOMANYREFS) {
		a->over |= rc != 0; /* the application does not read its answers */
		app_turn_end_job(all, a);
		return;
	}
	if (!a->is_unsent)
		a->job_ns = san_engine_clock_monotonic();
	a->is_unsent = true;
	set_paused(all, a, true);
}

static int
app_turn_fetch_msg(struct apps *all, struct app *a)
{
	struct helper_msg m = {.op = HELPER_FETCH, .job = all->last_job + 1};
	uint64_t now_ns = san_engine_clock_monotonic();
	struct helper *h = san_helper_of(a->owner, true);

	set_paused(all, a, true);
	a->job_ns = now_ns;
	if (h == NULL || san_helper_is_late(h, now_ns) || san_helper_ask(h, &m, a->sock) != 0)
		return -EBUSY;
	memset(&a->ans.rep, 0, sizeof(a->ans.rep));
	all->last_job = a->job = m.job;
	a->waits_for = h;
	return 0;
}

int
san_app_turn_next(struct apps *all, struct app *a, struct shmq_req *req)
{
	bool has_fds;
	int rc;

	if (a->job != 0 || a->is_unsent)
		return -EBUSY;
	rc = san_shmq_peek(a->sock, req, sizeof(*req), &has_fds, &a->sender);
	if (has_fds) /* a hello has no descriptors */
		return a->attached && san_helper_are_there() ? app_turn_fetch_msg(all, a) : -EPROTO;
	if (rc != 0)
		return rc;
	san_shmq_skip(a->sock);
	return 1;
}

/* ---- helpers answer ---- */

/* *a* is NULL if the application no longer waits. */
static void
app_turn_on_fetched(struct apps *all, struct app *a, struct helper *h, const struct helper_msg *m,
		    int memory)
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
	} else if (a != NULL && !a->is_notified) {
		san_app_answer(all, a, san_app_serve(all, a, &m->req, &p));
		is_kept = a->growing.mem != NULL;
		a->grown_at = all->nb_grown;
	}
	if (a != NULL && (a->over || a->is_notified))
		app_turn_end_job(all, a);
	if (p.handle >= 0)
		san_helper_close(h, p.handle);
	if (memory >= 0 && is_kept)
		close(memory); /* not the last reference to the file */
	else if (memory >= 0)
		san_app_mem_close(memory);
}

void
san_app_turn_on_answer(struct apps *all, struct helper *h, const struct helper_msg *m, int fd)
{
	struct answer none = {.fd = -1};
	bool is_wanted;
	struct app *a;
	int rc;

	LIST_FOREACH(a, &all->list, link)
		if (m->job != 0 && a->job == m->job)
			break;
	is_wanted = a != NULL && !a->is_notified;
	if (m->op == HELPER_FETCH) {
		app_turn_on_fetched(all, a, h, m, fd);
	} else if (m->op == HELPER_GIVE && a != NULL) { /* the helper has sent the answer */
		a->over |= m->rc != 0;
		app_turn_end_job(all, a);
	} else if (m->op != HELPER_GIVE && m->op != HELPER_CLOSE) {
		rc = san_socks_on_answer(all, m, is_wanted ? &a->ans.rep : &none.rep, is_wanted);
		if (is_wanted)
			san_app_answer(all, a, rc);
		else if (a != NULL)
			app_turn_end_job(all, a);
	}
}

void
san_app_turn_helper_ended(struct apps *all, struct helper *h, bool has_begun)
{
	struct app *a;

	san_socks_helper_ended(all, h, has_begun);
	LIST_FOREACH(a, &all->list, link) {
		if (a->waits_for != h)
			continue;
		a->over |= has_begun; /* the helper may have fetched the message */
		app_turn_end_job(all, a);
		set_paused(all, a, true); /* delay the next try to fetch */
		a->job_ns = san_engine_clock_monotonic();
	}
}

/* ---- steps and timeouts ---- */

/* The latest step that an application of the user has got. */
static uint64_t
last_step(const struct apps *all, uid_t owner)
{
	const struct app *a;
	uint64_t last = 0;

	LIST_FOREACH(a, &all->list, link)
		if (a->owner == owner)
			last = RTE_MAX(last, a->grown_at);
	return last;
}

/* Serve the users in turn, and the applications of each user in turn. */
static bool
app_turn_is_before(const struct apps *all, const struct app *a, const struct app *b)
{
	uint64_t of_a = last_step(all, a->owner), of_b = last_step(all, b->owner);

	return of_a != of_b ? of_a < of_b : a->grown_at < b->grown_at;
}

/* Check the timeouts of *a*. Returns when to call again. */
static uint64_t
app_turn_check_timeouts(struct apps *all, struct app *a, uint64_t now_ns)
{
	if (!a->is_paused || a->over)
		return SAN_TIME_NEVER;
	if (a->is_unsent && now_ns - a->job_ns < SEND_NS) {
		san_app_turn_send(all, a);
		return now_ns + PAUSE_NS;
	}
	if (a->is_unsent) {
		a->over = true;
		return SAN_TIME_NEVER;
	}
	if (a->job == 0) { /* no helper could fetch it */
		if (now_ns - a->job_ns < PAUSE_NS)
			return a->job_ns + PAUSE_NS;
		set_paused(all, a, false);
		return SAN_TIME_NEVER;
	}
	if (a->waits_for == NULL || a->is_notified)
		return SAN_TIME_NEVER;
	if (now_ns - a->job_ns < HELPER_LATE_NS)
		return a->job_ns + HELPER_LATE_NS;
	if (a->is_answered) {
		a->over = true; /* it must not get a second answer */
		return SAN_TIME_NEVER;
	}
	/* an error of the daemon itself: the helper is still busy with the request */
	san_fd_close(a->ans.fd);
	a->ans.fd = -1;
	a->ans.rep = (struct shmq_rep){
		.magic = SHMQ_MAGIC,
		.abi = SHMQ_ABI,
		.rc = -ETIMEDOUT,
		.text = "a descriptor of this user's programs holds up the kernel",
	};
	a->over |= san_shmq_send(a->sock, &a->ans.rep, sizeof(a->ans.rep), -1, false) != 0;
	a->is_notified = true;
	return SAN_TIME_NEVER;
}

uint64_t
san_app_turn_step(struct apps *all, uint64_t now_ns)
{
	uint64_t due_ns = SAN_TIME_NEVER;
	struct app *a, *next = NULL;

	/* map one step of one region */
	LIST_FOREACH(a, &all->list, link)
		if (a->growing.mem != NULL && !a->over &&
		    (next == NULL || app_turn_is_before(all, a, next)))
			next = a;
	if (next != NULL && now_ns >= all->grow_ns) {
		next->grown_at = ++all->nb_grown;
		san_app_answer(all, next, san_app_grow(next, &all->grow_ns));
	}
	if (next != NULL)
		due_ns = all->grow_ns;
	LIST_FOREACH(a, &all->list, link)
		due_ns = san_time_min(due_ns, app_turn_check_timeouts(all, a, now_ns));
	return due_ns;
}

void
san_app_turn_abort_late(struct apps *all)
{
	uint64_t now_ns = san_engine_clock_monotonic();
	struct app *a;

	LIST_FOREACH(a, &all->list, link) {
		/* the message may still be in the socket, and would get a second answer */
		a->over |= a->is_notified;
		if (a->growing.mem == NULL || now_ns - a->job_ns < HELPER_LATE_NS)
			continue;
		san_app_end_growing(a);
		san_app_answer(all, a, san_app_refuse(a, -EAGAIN, "another daemon takes over"));
	}
}

bool
san_app_turn_are_waiting(const struct apps *all)
{
	const struct app *a;

	LIST_FOREACH(a, &all->list, link)
		if ((a->job != 0 || a->is_unsent) && !a->over)
			return true;
	return false;
}
