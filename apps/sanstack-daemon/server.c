/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests, events and signals, as they come; the thread sleeps when there are none. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app_telemetry.h"
#include "closer.h"
#include "drain.h"
#include "engine_clock.h"
#include "logging.h"
#include "san_log.h"
#include "server.h"
#include "takeover.h"

#define EVENTS     64                  /* that are taken at once */
#define LATE_NS    (1 * SAN_NS_PER_MS) /* until events are tried again that found no room */
#define SERVE_NS   (2 * SAN_NS_PER_MS) /* of one application, and of a batch */
#define SERVE_MAX  16                  /* requests of one application before the next one's turn */
#define SEND_BYTES 4096                /* of answers that nobody has read; a library has one */

int
server_watch(const struct server *s, int fd, void *what)
{
	struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = what}};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

/* ---- applications ---- */

/* Without a descriptor for who comes it would come again and again: one is kept for that. */
static void
refuse_one(struct server *s)
{
	int sock;

	if (errno != EMFILE && errno != ENFILE)
		return;
	SAN_LOG(DRIVER, WARNING, "connections=%u: no descriptor for one more", s->all.nb);
	close(s->spare);
	sock = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock >= 0)
		app_hang_up(sock, (uid_t)-1);
	s->spare = eventfd(0, EFD_CLOEXEC);
}

static void
take_app(struct server *s)
{
	int sock = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	const int bytes = SEND_BYTES;
	struct app *a;

	if (sock < 0) {
		refuse_one(s);
		return;
	}
	/*
	 * Descriptors that are under way count as ours, all together: who asks for many and reads
	 * no answer would leave none for the others (ETOOMANYREFS).
	 */
	setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	a = app_create(&s->all, sock, san_engine_clock_monotonic());
	if (a == NULL) {
		SAN_LOG(DRIVER, WARNING, "connections=%u: one more is refused", s->all.nb);
		app_hang_up(sock, (uid_t)-1);
		return;
	}
	if (server_watch(s, sock, a) != 0)
		a->over = true;
}

/* *out_fd* goes with it. */
static int
answer(const struct app *a, const struct shmq_rep *rep, int out_fd)
{
	int rc;

	rc = shmq_send(a->sock, rep, sizeof(*rep), out_fd, false);
	if (out_fd >= 0)
		close(out_fd);
	return rc == -EAGAIN ? -EPROTO : rc; /* it asks without reading the answers */
}

/* 0: there may be more. */
static int
serve_one(struct server *s, struct app *a)
{
	int fds[SHMQ_FDS], rc, out_fd;
	struct shmq_req req;
	struct shmq_rep rep;
	uint32_t nb, i;
	bool is_asked;

	rc = shmq_recv_fds(a->sock, &req, sizeof(req), fds, &nb);
	is_asked = rc == 0 && !takeover_is_request(&req);
	if (is_asked)
		app_serve(&s->all, a, &req, nb == 1 ? fds[0] : -1, &rep, &out_fd);
	else if (rc == 0)
		takeover_hear(s, a, &req);
	for (i = 0; i < nb; i++)
		closer_put(fds[i], a->uid);
	if (is_asked)
		rc = answer(a, &rep, out_fd);
	return rc;
}

/*
 * Descriptors of its user wait to be closed. Its next requests wait in the kernel until they are:
 * a descriptor may take long, or the closing thread gets no CPU.
 */
static void
pause_app(const struct server *s, struct app *a)
{
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, a->sock, NULL);
	a->is_paused = true;
}

/* When to look again. */
static uint64_t
resume_apps(struct server *s)
{
	uint64_t due_ns = SAN_TIME_NEVER;
	struct app *a;

	LIST_FOREACH(a, &s->all.list, link) {
		struct pollfd p = {.fd = a->sock};

		if (!a->is_paused || a->over)
			continue;
		if (poll(&p, 1, 0) > 0) { /* hung up */
			a->over = true;
		} else if (closer_waiting(a->uid) < CLOSER_EACH) {
			a->is_paused = false;
			a->over = server_watch(s, a->sock, a) != 0;
		} else {
			due_ns = san_engine_clock_monotonic() + LATE_NS;
		}
	}
	return due_ns;
}

/* What it asks may take long, a large region most: then others have their turn. */
static void
serve(struct server *s, struct app *a)
{
	uint64_t end_ns = san_engine_clock_monotonic() + SERVE_NS;
	int i, rc = 0;

	for (i = 0; i < SERVE_MAX && rc == 0 && !a->over; i++) {
		if (closer_waiting(a->uid) >= CLOSER_EACH) {
			pause_app(s, a);
			return;
		}
		rc = serve_one(s, a);
		if (san_engine_clock_monotonic() > end_ns)
			break;
	}
	if (rc != 0 && rc != -EAGAIN)
		a->over = true;
}

static void
bury(struct server *s)
{
	struct app *a, *next;

	for (a = LIST_FIRST(&s->all.list); a != NULL; a = next) {
		next = LIST_NEXT(a, link);
		if (!a->over)
			continue;
		if (s->taker == a)
			s->taker = NULL;
		/* from here on nothing that happens names it */
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, a->sock, NULL);
		app_destroy(&s->all, a);
	}
}

/* ---- signals ---- */

static void
report(const char *section, const char *key)
{
	SAN_LOG(DRIVER, WARNING, "%s.%s changed: needs a restart", section, key);
}

static void
reload(struct server *s)
{
	static struct conf next;
	char err[512];

	notify_reloading();
	if (conf_read(&next, s->conf_path, err, sizeof(err)) != 0) {
		SAN_LOG(DRIVER, ERR, "%s; the configuration stays as it was", err);
	} else {
		conf_apply(&s->conf, &next, report);
		logging_apply(&s->conf);
		SAN_LOG(DRIVER, NOTICE, "%s is read again", s->conf_path);
	}
	conf_free(&next);
	notify_reloaded();
}

static void
on_signal(struct server *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGHUP)
			drain_signal(s);
		else if (s->phase == SERVER_SERVING)
			reload(s);
	}
}

/* ---- the loop ---- */

/* What is due; until when we may sleep. */
static uint64_t
on_time(struct server *s)
{
	uint64_t now_ns = san_engine_clock_monotonic();
	uint64_t due_ns = apps_strangers(&s->all, now_ns);

	due_ns = san_time_min(due_ns, notify_watchdog(&s->notify, &s->all, now_ns));
	due_ns = san_time_min(due_ns, drain_step(s, now_ns));
	due_ns = san_time_min(due_ns, socks_bury(&s->all, now_ns));
	due_ns = san_time_min(due_ns, resume_apps(s));
	bury(s);
	if (s->phase == SERVER_SERVING && s->nb_told != s->all.nb_attached) {
		s->nb_told = s->all.nb_attached;
		notify_status(&s->all);
	}
	return due_ns;
}

static int
sleep_ms(uint64_t due_ns)
{
	uint64_t now_ns = san_engine_clock_monotonic();

	if (due_ns == SAN_TIME_NEVER)
		return -1;
	if (due_ns <= now_ns)
		return 0;
	return (int)san_time_min((due_ns - now_ns + SAN_NS_PER_MS - 1) / SAN_NS_PER_MS, INT_MAX);
}

void
server_run(struct server *s)
{
	struct epoll_event ev[EVENTS];
	uint64_t due_ns = 0, end_ns;
	int i, n;

	while (s->phase != SERVER_OVER) {
		n = epoll_wait(s->epoll, ev, EVENTS, sleep_ms(due_ns));
		app_telemetry_enter();
		end_ns = san_engine_clock_monotonic() + SERVE_NS;
		/* those that are left come again, and the watchdog is told in between */
		for (i = 0; i < n; i++) {
			bool is_late = san_engine_clock_monotonic() > end_ns;

			if (socks_event(&ev[i], is_late) || is_late)
				continue;
			if (ev[i].data.ptr == &s->signals)
				on_signal(s);
			else if (ev[i].data.ptr == &s->listener)
				take_app(s);
			else if (ev[i].data.ptr == &s->guard)
				apps_failed(&s->all);
			else if (ev[i].data.ptr != &s->all)
				serve(s, ev[i].data.ptr);
		}
		due_ns = apps_events(&s->all) ? san_engine_clock_monotonic() + LATE_NS :
						SAN_TIME_NEVER;
		due_ns = san_time_min(due_ns, on_time(s));
		if (s->taker != NULL) {
			takeover_give(s);
			due_ns = 0;
		}
		app_telemetry_leave();
	}
}
