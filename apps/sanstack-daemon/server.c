/* SPDX-License-Identifier: BSD-3-Clause */

/* The main loop: requests, events and signals. The thread sleeps when there are none. */

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app_mem.h"
#include "app_telemetry.h"
#include "engine_clock.h"
#include "logging.h"
#include "san_log.h"
#include "server.h"
#include "takeover.h"

#define EVENTS     64                  /* events per epoll_wait() */
#define LATE_NS    (1 * SAN_NS_PER_MS) /* delay before events without room are delivered again */
#define SERVE_NS   (2 * SAN_NS_PER_MS) /* time per application, and per batch of events */
#define SERVE_MAX  16                  /* requests of one application per turn (SYS-13) */
#define SEND_BYTES 4096                /* unread answers of an application; libraries have one */

int
san_server_watch(const struct server *s, int fd, void *what)
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
	if (sock >= 0 && san_shmq_peek_init(sock) == 0)
		san_helper_hang_up(sock);
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
	a = san_apps_create(&s->all, sock, san_engine_clock_monotonic());
	if (a == NULL)
		return;
	if (san_server_watch(s, sock, a) != 0)
		a->over = true;
}

/* Serve requests of *a* for a limited time, then others have their turn. */
static void
server_serve_app(struct server *s, struct app *a)
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
		rc = san_app_turn_next(&s->all, a, &req);
		if (rc == 1 && san_takeover_is_request(&req))
			san_takeover_on_request(s, a, &req);
		else if (rc == 1)
			san_app_answer(&s->all, a, san_app_serve(&s->all, a, &req, NULL));
		if (san_engine_clock_monotonic() > end_ns)
			break;
	}
	if (rc < 0 && rc != -EAGAIN && rc != -EBUSY)
		a->over = true;
}

static void
server_free_ended(struct server *s)
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
		san_apps_destroy(&s->all, a);
		sched_yield();
	}
}

/* ---- signals ---- */

static void
server_report_key(const char *section, const char *key)
{
	SAN_LOG(DRIVER, WARNING, "%s.%s changed: needs a restart", section, key);
}

static void
server_reload_conf(struct server *s)
{
	static struct conf next;
	char err[512];

	san_notify_reloading();
	if (san_conf_read(&next, s->conf_path, err, sizeof(err)) != 0) {
		SAN_LOG(DRIVER, ERR, "%s; the configuration stays as it was", err);
	} else {
		san_conf_apply(&s->conf, &next, server_report_key);
		san_logging_apply(&s->conf);
		SAN_LOG(DRIVER, NOTICE, "%s is read again", s->conf_path);
	}
	san_conf_free(&next);
	san_notify_reloaded();
}

static void
server_on_signal(struct server *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGHUP)
			san_drain_signal(s);
		else if (s->phase == SERVER_SERVING)
			server_reload_conf(s);
	}
}

/* ---- helpers ---- */

static void
on_answer(void *ctx, struct helper *h, const struct helper_msg *m, int fd)
{
	san_app_turn_on_answer(&((struct server *)ctx)->all, h, m, fd);
}

static void
on_dgram(void *ctx, const struct helper_dgram *d, const void *data, uint32_t len)
{
	san_socks_dgram(&((struct server *)ctx)->all, d, data, len);
}

static void
on_end(void *ctx, struct helper *h, bool has_begun)
{
	san_app_turn_helper_ended(&((struct server *)ctx)->all, h, has_begun);
}

int
san_server_open_helpers(struct server *s)
{
	static const struct helper_ops ops = {
		.on_answer = on_answer,
		.dgram = on_dgram,
		.ended = on_end,
	};

	s->helpers = san_helper_open(&ops, s);
	return s->helpers < 0 ? s->helpers : san_server_watch(s, s->helpers, &s->helpers);
}

/* ---- the loop ---- */

/* Do all work that is due. Returns when the next is due. */
static uint64_t
on_time(struct server *s)
{
	uint64_t now_ns = san_engine_clock_monotonic();
	uint64_t due_ns = san_apps_expire_silent(&s->all, now_ns);

	due_ns = san_time_min(due_ns, san_notify_watchdog(&s->notify, &s->all, now_ns));
	due_ns = san_time_min(due_ns, san_drain_step(s, now_ns));
	due_ns = san_time_min(due_ns, san_socks_expire(&s->all, now_ns));
	due_ns = san_time_min(due_ns, san_app_turn_step(&s->all, now_ns));
	server_free_ended(s);
	/* also frees memory of the applications that server_free_ended() has just removed */
	due_ns = san_time_min(due_ns, san_app_mem_step(now_ns));
	due_ns = san_time_min(due_ns, san_helper_step(now_ns));
	if (s->phase == SERVER_SERVING && s->nb_notified != s->all.nb_attached) {
		s->nb_notified = s->all.nb_attached;
		san_notify_status(&s->all);
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
san_server_run(struct server *s)
{
	struct epoll_event ev[EVENTS];
	uint64_t due_ns = 0, end_ns;
	int i, n;

	while (s->phase != SERVER_OVER) {
		n = epoll_wait(s->epoll, ev, EVENTS, sleep_ms(due_ns));
		san_app_telemetry_enter();
		end_ns = san_engine_clock_monotonic() + SERVE_NS;
		/* epoll reports the skipped ones again; the watchdog is reset in between */
		for (i = 0; i < n; i++) {
			bool is_late = san_engine_clock_monotonic() > end_ns;

			if (san_socks_event(&ev[i]) || is_late)
				continue;
			if (ev[i].data.ptr == &s->signals)
				server_on_signal(s);
			else if (ev[i].data.ptr == &s->listener)
				take_app(s);
			else if (ev[i].data.ptr == &s->guard)
				san_apps_failed(&s->all);
			else if (ev[i].data.ptr == &s->helpers)
				san_helper_serve();
			else if (ev[i].data.ptr != &s->all)
				server_serve_app(s, ev[i].data.ptr);
		}
		sched_yield(); /* programs on this CPU wait for one turn at most (SYS-13) */
		due_ns = san_apps_events(&s->all) ? san_engine_clock_monotonic() + LATE_NS :
						    SAN_TIME_NEVER;
		due_ns = san_time_min(due_ns, on_time(s));
		/* requests in progress are answered first */
		if (s->taker != NULL) {
			san_app_turn_abort_late(&s->all);
			server_free_ended(s);
		}
		if (s->taker != NULL && !san_app_turn_are_waiting(&s->all)) {
			san_takeover_give(s);
			due_ns = 0;
		}
		san_app_telemetry_leave();
	}
}
