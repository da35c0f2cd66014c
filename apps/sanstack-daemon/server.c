/* SPDX-License-Identifier: BSD-3-Clause */

/* The main loop: requests, events and signals. The thread sleeps when there are none. */

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <bsd/unistd.h>
#include <systemd/sd-daemon.h>

#include "server.h"
#include "socks.h"

#define EVENTS     64                  /* events per epoll_wait() */
#define LATE_NS    (1 * SAN_NS_PER_MS) /* delay before events without room are delivered again */
#define SERVE_NS   (2 * SAN_NS_PER_MS) /* time per application, and per batch of events */
#define SERVE_MAX  16                  /* requests of one application per turn (SYS-13) */
#define SEND_BYTES 4096                /* unread answers of an application; libraries have one */
#define DRAIN_NS   (5 * SAN_NS_PER_MS)
#define LEAVE_NS   (50 * SAN_NS_PER_MS) /* for delivery of the last events to applications */

/*
 * ---- the service manager and the operator: sd_notify(3), watchdog, process title ----
 *
 * The watchdog must detect an lcore that hangs. So this thread reads the lcore's loop counter and
 * makes no call to it, which would wait. A call on behalf of an application does wait; then this
 * thread hangs as well, and the watchdog fires all the same.
 */

static void
server_notify_status(const struct apps *all)
{
	char text[512];
	size_t len;
	uint32_t i;

	len = (size_t)snprintf(text, sizeof(text), "serving %u applications on %s",
			       all->nb_attached, all->conf->socket);
	for (i = 0; i < all->nb_ports; i++)
		if (len < sizeof(text) && san_engine_is_lost(all->ports[i].ctx->port))
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"; port %s has failed", all->ports[i].name);
	sd_notifyf(0, "STATUS=%s", text);
	setproctitle("%s", text);
}

/* Check that each lcore of the port has completed a loop since the last call. */
static bool
is_alive(uint64_t last[SAN_ENGINE_LCORES], const struct app_port *port)
{
	bool alive = true;
	uint64_t loops;
	uint32_t i;

	for (i = 0; i < port->caps.nb_lcores; i++) {
		loops = san_engine_loop_count(san_engine_at(port->ctx->port, i));
		if (loops == last[i]) {
			SAN_LOG(DRIVER, ERR, "port=%s lcore=%u hangs: the watchdog is not reset",
				port->name, i);
			alive = false;
		}
		last[i] = loops;
	}
	return alive;
}

/* Reset the watchdog when it is due, if every lcore is alive. Returns when to call again. */
static uint64_t
server_watchdog(struct server *s, uint64_t now_ns)
{
	bool alive = true;
	uint32_t i;

	if (s->watchdog_ns == 0)
		return SAN_TIME_NEVER;
	if (now_ns >= s->watchdog_due_ns) {
		s->watchdog_due_ns = now_ns + s->watchdog_ns;
		for (i = 0; i < s->all.nb_ports; i++)
			alive &= is_alive(s->loops[i], &s->all.ports[i]);
		if (alive)
			sd_notify(0, "WATCHDOG=1");
	}
	return s->watchdog_due_ns;
}

/* ---- applications ---- */

static void
take_app(struct server *s)
{
	int sock = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	const int bytes = SEND_BYTES;
	struct app *a;

	if (sock < 0 && errno != EMFILE && errno != ENFILE)
		return;
	if (sock < 0) {
		/*
		 * The daemon has no free descriptor. Use the spare one to accept the connection and
		 * close it, because epoll would report it forever otherwise.
		 */
		LOG_OF((uid_t)-1, WARNING, "connections=%u: no descriptor for one more", s->all.nb);
		close(s->spare);
		sock = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (sock >= 0 && san_shmq_peek_init(sock) == 0)
			san_helper_hang_up(sock);
		s->spare = eventfd(0, EFD_CLOEXEC);
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
	if (san_fd_watch(s->epoll, sock, EPOLLIN, a) != 0)
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

/* ---- orderly shutdown: posted work completes, then connections end (SYS-2) ---- */

/* Call *fn* on each lcore of each port. Returns the sum of the results. */
static uint32_t
call_all(const struct server *s, san_engine_fn fn)
{
	const struct san_engine_port *port;
	uint32_t i, k, sum = 0;

	for (i = 0; i < s->all.nb_ports; i++) {
		port = s->all.ports[i].ctx->port;
		for (k = 0; k < san_engine_count(port); k++)
			sum += (uint32_t)san_engine_loop_call(san_engine_at(port, k), fn, NULL);
	}
	return sum;
}

/* A signal asks the daemon to end. A second one skips the rest of the drain. */
static void
server_drain(struct server *s)
{
	uint64_t now_ns = san_engine_clock_monotonic();

	if (s->phase != SERVER_SERVING) {
		s->phase_ns = now_ns;
		return;
	}
	SAN_LOG(DRIVER, NOTICE, "applications=%u: ends, in %u ms at the latest",
		s->all.nb_attached, s->conf.drain_ms);
	s->phase = SERVER_DRAINING;
	s->phase_ns = now_ns + s->conf.drain_ms * SAN_NS_PER_MS;
	sd_notify(0, "STOPPING=1\nSTATUS=draining");
	setproctitle("draining");
	/*
	 * A helper closes the socket, with the connections in it. Remove it from epoll explicitly:
	 * the file stays open until then and its events would still be delivered.
	 */
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->listener, NULL);
	san_helper_close_fd(s->listener);
	if (san_dpdk_memif_unlink(s->conf.socket, s->user, rtsan_provider_host()) != 0)
		SAN_LOG(DRIVER, WARNING, "%s", rtsan_error());
	san_apps_close(&s->all);
}

/* Continue a drain, if one is in progress. Returns when to call again. */
static uint64_t
server_drain_step(struct server *s, uint64_t now_ns)
{
	uint32_t left;

	switch (s->phase) {
	case SERVER_DRAINING:
		left = call_all(s, san_engine_drain);
		if (left != 0 && now_ns < s->phase_ns)
			return now_ns + DRAIN_NS;
		if (left != 0)
			SAN_LOG(DRIVER, WARNING, "queue_pairs=%u had not ended", left);
		/* abort them, and let applications read their events */
		call_all(s, san_engine_drain_cut);
		s->phase = s->all.nb_attached != 0 || left != 0 ? SERVER_LEAVING : SERVER_OVER;
		s->phase_ns = now_ns + LEAVE_NS;
		return now_ns + DRAIN_NS;
	case SERVER_LEAVING:
		if (now_ns >= s->phase_ns)
			s->phase = SERVER_OVER;
		return s->phase_ns;
	default:
		return SAN_TIME_NEVER;
	}
}

/* ---- signals ---- */

static void
server_reload_conf(struct server *s)
{
	static struct conf next;
	uint64_t now_ns = san_engine_clock_monotonic();
	char err[512];

	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, (uint64_t)(now_ns / SAN_NS_PER_US));
	if (san_conf_read(&next, &s->conf, s->conf_path, err, sizeof(err)) != 0) {
		SAN_LOG(DRIVER, ERR, "%s; the configuration stays as it was", err);
	} else {
		san_conf_apply(&s->conf, &next);
		san_logging_apply(&s->conf);
		SAN_LOG(DRIVER, NOTICE, "%s is read again", s->conf_path);
	}
	san_conf_free(&next);
	sd_notify(0, "READY=1");
}

/* ---- the loop ---- */

/* Do all work that is due. Returns when the next is due. */
static uint64_t
on_time(struct server *s)
{
	uint64_t now_ns = san_engine_clock_monotonic();
	uint64_t due_ns = san_apps_expire_silent(&s->all, now_ns);

	due_ns = san_time_min(due_ns, server_watchdog(s, now_ns));
	due_ns = san_time_min(due_ns, server_drain_step(s, now_ns));
	due_ns = san_time_min(due_ns, san_socks_expire(&s->all, now_ns));
	due_ns = san_time_min(due_ns, san_app_turn_step(&s->all, now_ns));
	server_free_ended(s);
	/* also frees memory of the applications that server_free_ended() has just removed */
	due_ns = san_time_min(due_ns, san_app_mem_step(now_ns));
	due_ns = san_time_min(due_ns, san_helper_step(now_ns));
	if (s->phase == SERVER_SERVING && s->nb_notified != s->all.nb_attached) {
		s->nb_notified = s->all.nb_attached;
		server_notify_status(&s->all);
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
	struct signalfd_siginfo info;
	uint64_t due_ns = 0, end_ns, usec;
	int i, n;

	if (sd_watchdog_enabled(0, &usec) > 0)
		s->watchdog_ns = usec * SAN_NS_PER_US / 2;
	sd_notify(0, "READY=1");
	server_notify_status(&s->all);
	while (s->phase != SERVER_OVER) {
		n = epoll_wait(s->epoll, ev, EVENTS, sleep_ms(due_ns));
		san_app_telemetry_enter(&s->all);
		end_ns = san_engine_clock_monotonic() + SERVE_NS;
		/* epoll reports the skipped ones again; the watchdog is reset in between */
		for (i = 0; i < n; i++) {
			bool is_late = san_engine_clock_monotonic() > end_ns;

			if (san_socks_event(&ev[i]) || is_late)
				continue;
			while (ev[i].data.ptr == &s->signals &&
			       read(s->signals, &info, sizeof(info)) == sizeof(info)) {
				if (info.ssi_signo != SIGHUP)
					server_drain(s);
				else if (s->phase == SERVER_SERVING)
					server_reload_conf(s);
			}
			if (ev[i].data.ptr == &s->listener)
				take_app(s);
			else if (ev[i].data.ptr == &s->guard)
				san_apps_failed(&s->all);
			else if (ev[i].data.ptr == &s->helpers)
				san_helper_serve();
			else if (ev[i].data.ptr != &s->all && ev[i].data.ptr != &s->signals)
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
