/* SPDX-License-Identifier: BSD-3-Clause */

/* The main loop: requests, events and signals. The thread sleeps when there are none. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app_mem.h"
#include "app_telemetry.h"
#include "drain.h"
#include "engine_clock.h"
#include "logging.h"
#include "san_log.h"
#include "server.h"
#include "takeover.h"

#define EVENTS     64                  /* events per epoll_wait() */
#define LATE_NS    (1 * SAN_NS_PER_MS) /* delay before events without room are delivered again */
#define SERVE_NS   (2 * SAN_NS_PER_MS) /* time per application, and per batch of events */
#define SERVE_MAX  16                  /* requests of one application per turn */
#define SEND_BYTES 4096                /* unread answers of an application; libraries have one */

int
server_watch(const struct server *s, int fd, void *what)
{
	struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = what}};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

/* ---- applications ---- */

/*
 * The daemon has no free descriptor. Use the spare one to accept the connection and close it,
 * because epoll would report it forever otherwise.
 */
static void
refuse_one(struct server *s)
{
	int sock;

	if (errno != EMFILE && errno != ENFILE)
		return;
	LOG_OF((uid_t)-1, WARNING, "connections=%u: no descriptor for one more", s->all.nb);
	close(s->spare);
	sock = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock >= 0 && shmq_peek_init(sock) == 0)
		helpers_hang_up(sock);
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
	 * The kernel limits the descriptors in flight of the whole daemon. An application that
	 * reads no answers must not use them up (ETOOMANYREFS).
	 */
	setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	a = app_create(&s->all, sock, san_engine_clock_monotonic());
	if (a == NULL)
		return;
	if (server_watch(s, sock, a) != 0)
		a->over = true;
}

/* Serve requests of *a* for a limited time, then others have their turn. */
static void
serve(struct server *s, struct app *a)
{
	uint64_t end_ns = san_engine_clock_monotonic() + SERVE_NS;
	struct shmq_req req;
	int i, rc = 1;

	if (a->is_paused) { /* only a hang-up is reported while it is paused */
		a->over = true;
		return;
	}
	if (a == s->taker) /* it hung up while it waited for the takeover */
		a->over = true;
	for (i = 0; i < SERVE_MAX && rc == 1 && !a->over && s->taker == NULL; i++) {
		rc = app_next(&s->all, a, &req);
		if (rc == 1 && takeover_is_request(&req))
			takeover_hear(s, a, &req);
		else if (rc == 1)
			app_serve(&s->all, a, &req);
		if (san_engine_clock_monotonic() > end_ns)
			break;
	}
	if (rc < 0 && rc != -EAGAIN && rc != -EBUSY)
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
		/* no further event refers to it */
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

/* ---- helpers ---- */

static void
on_answer(void *ctx, struct helper *h, const struct helper_msg *m, int fd)
{
	apps_heard(&((struct server *)ctx)->all, h, m, fd);
}

static void
on_dgram(void *ctx, const struct helper_dgram *d, const void *data, uint32_t len)
{
	socks_dgram(&((struct server *)ctx)->all, d, data, len);
}

static void
on_end(void *ctx, struct helper *h, bool has_begun)
{
	apps_helper_gone(&((struct server *)ctx)->all, h, has_begun);
}

int
server_open_helpers(struct server *s)
{
	static const struct helper_ops ops = {
		.heard = on_answer,
		.dgram = on_dgram,
		.gone = on_end,
	};

	s->helpers = helpers_open(&ops, s);
	return s->helpers < 0 ? s->helpers : server_watch(s, s->helpers, &s->helpers);
}

/* ---- the loop ---- */

/* Do all work that is due. Returns when the next is due. */
static uint64_t
on_time(struct server *s)
{
	uint64_t now_ns = san_engine_clock_monotonic();
	uint64_t due_ns = apps_strangers(&s->all, now_ns);

	due_ns = san_time_min(due_ns, notify_watchdog(&s->notify, &s->all, now_ns));
	due_ns = san_time_min(due_ns, drain_step(s, now_ns));
	due_ns = san_time_min(due_ns, socks_bury(&s->all, now_ns));
	due_ns = san_time_min(due_ns, apps_step(&s->all, now_ns));
	bury(s);
	/* also frees memory of the applications that bury() has just removed */
	if (app_mem_step())
		due_ns = now_ns;
	due_ns = san_time_min(due_ns, helpers_step(now_ns));
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
		/* epoll reports the skipped ones again; the watchdog is reset in between */
		for (i = 0; i < n; i++) {
			bool is_late = san_engine_clock_monotonic() > end_ns;

			if (socks_event(&ev[i]) || is_late)
				continue;
			if (ev[i].data.ptr == &s->signals)
				on_signal(s);
			else if (ev[i].data.ptr == &s->listener)
				take_app(s);
			else if (ev[i].data.ptr == &s->guard)
				apps_failed(&s->all);
			else if (ev[i].data.ptr == &s->helpers)
				helpers_serve();
			else if (ev[i].data.ptr != &s->all)
				serve(s, ev[i].data.ptr);
		}
		due_ns = apps_events(&s->all) ? san_engine_clock_monotonic() + LATE_NS :
						SAN_TIME_NEVER;
		due_ns = san_time_min(due_ns, on_time(s));
		/* requests in progress are answered first */
		if (s->taker != NULL) {
			apps_hurry(&s->all);
			bury(s);
		}
		if (s->taker != NULL && !apps_are_waiting(&s->all)) {
			takeover_give(s);
			due_ns = 0;
		}
		app_telemetry_leave();
	}
}
