/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * sanstack-daemon: owns a port on lcores of its own and serves applications over a UNIX
 * socket. This thread does nothing but that; it sleeps when nobody asks. (SYS-2)
 */

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "app.h"
#include "app_telemetry.h"
#include "san_log.h"

#define BACKLOG   64
#define EVENTS    64 /* that are taken at once */
#define LATE_MS   1  /* until events are tried again for which an application had no room */
#define SERVE_MAX 16 /* requests of one application before the next one's turn */

struct server {
	struct apps all;
	int epoll;
	int listener, signals, events; /**< watched; the place of each says which it is */
	bool stop;
};

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "sanstack-daemon: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	exit(1);
}

/* ---- set-up ---- */

static void
watch(const struct server *s, int fd, void *what)
{
	struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = what}};

	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) != 0)
		die("epoll: %s", strerror(errno));
}

/* A socket that a daemon left behind which is gone is in nobody's use. */
static bool
is_stale(const struct sockaddr_un *addr)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool stale;

	stale = connect(sock, (const struct sockaddr *)addr, sizeof(*addr)) != 0 &&
		errno == ECONNREFUSED;
	close(sock);
	return stale;
}

static void
share_with(const char *path, const char *group)
{
	const struct group *g = getgrnam(group);

	if (g == NULL)
		die("[daemon] group = %s: no such group", group);
	if (chown(path, (uid_t)-1, g->gr_gid) != 0 || chmod(path, 0660) != 0)
		die("%s: %s", path, strerror(errno));
}

static int
open_socket(const struct conf *conf)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t before;
	int rc;

	strcpy(addr.sun_path, conf->socket);
	if (is_stale(&addr))
		unlink(addr.sun_path);
	before = umask(0177);
	rc = bind(sock, (struct sockaddr *)&addr, sizeof(addr));
	umask(before);
	if (rc != 0)
		die("%s: %s%s", conf->socket, strerror(errno),
		    errno == EADDRINUSE ? ": another daemon serves it" : "");
	if (conf->group[0] != '\0')
		share_with(conf->socket, conf->group);
	if (listen(sock, BACKLOG) != 0)
		die("%s: %s", conf->socket, strerror(errno));
	return sock;
}

static int
open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		die("signalfd: %s", strerror(errno));
	return fd;
}

static struct dpdk_ctx *
open_port(const struct conf *conf)
{
	static char name[] = "sanstack-daemon";
	char buf[DPDK_WORD_MAX * 8], *words[DPDK_ARGS_MAX];
	const struct rtsan_host *host = rtsan_provider_host();
	struct dpdk_ctx *ctx;
	int n;

	words[0] = name;
	n = dpdk_eal_split(conf->eal, buf, sizeof(buf), &words[1], DPDK_ARGS_MAX - 1);
	if (n < 0)
		die("[eal] args: too long, or a quote is open");
	if (dpdk_ctx_claim(host) != 0 || dpdk_eal_start(n + 1, words, host) != 0 ||
	    dpdk_ctx_open(conf->words, conf->nb_words, host, &ctx) != 0)
		die("%s", rtsan_error());
	return ctx;
}

/* ---- applications ---- */

static void
take_app(struct server *s)
{
	int sock = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct app *a;

	if (sock < 0)
		return;
	a = app_create(&s->all, sock);
	if (a == NULL) {
		SAN_LOG(DRIVER, WARNING, "connections=%u: one more is refused", s->all.nb);
		close(sock);
		return;
	}
	watch(s, sock, a);
}

static void
serve(struct server *s, struct app *a)
{
	struct shmq_req req;
	struct shmq_rep rep;
	int i, rc, fd, out_fd;

	for (i = 0; i < SERVE_MAX; i++) {
		rc = shmq_recv(a->sock, &req, sizeof(req), &fd, false);
		if (rc == -EAGAIN)
			return;
		if (rc == 0) {
			app_serve(&s->all, a, &req, fd, &rep, &out_fd);
			if (fd >= 0)
				close(fd);
			rc = shmq_send(a->sock, &rep, sizeof(rep), out_fd, false);
			if (out_fd >= 0)
				close(out_fd);
		}
		if (rc != 0) { /* gone, or it asks without reading the answers */
			a->over = true;
			return;
		}
	}
}

static void
bury(struct server *s)
{
	struct app *a, *next;

	for (a = LIST_FIRST(&s->all.list); a != NULL; a = next) {
		next = LIST_NEXT(a, link);
		if (a->over)
			app_destroy(&s->all, a);
	}
}

/* ---- the loop ---- */

static void
run(struct server *s)
{
	struct epoll_event ev[EVENTS];
	bool late = false;
	int i, n;

	s->events = san_engine_event_fd(s->all.ctx->port);
	watch(s, s->events, &s->events);
	while (!s->stop) {
		n = epoll_wait(s->epoll, ev, EVENTS, late ? LATE_MS : -1);
		app_telemetry_enter();
		for (i = 0; i < n; i++) {
			if (ev[i].data.ptr == &s->signals)
				s->stop = true;
			else if (ev[i].data.ptr == &s->listener)
				take_app(s);
			else if (ev[i].data.ptr != &s->events)
				serve(s, ev[i].data.ptr);
		}
		san_engine_event_arm(s->all.ctx->port);
		late = apps_events(&s->all);
		bury(s);
		app_telemetry_leave();
	}
}

static int
usage(FILE *f)
{
	fprintf(f, "usage: sanstack-daemon [--config FILE] [--check-config] [--version]\n"
		   "  -c, --config FILE   instead of " CONF_DEFAULT "; see sanstack.conf(5)\n"
		   "  --check-config      say whether it is right, and do nothing\n");
	return f == stderr ? 2 : 0;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"check-config", no_argument, NULL, 'k'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *path = CONF_DEFAULT;
	static struct server s;
	static struct conf conf;
	bool check = false;
	uint64_t leaks;
	struct app *a;
	char err[512];
	int c;

	while ((c = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
		if (c == 'c')
			path = optarg;
		else if (c == 'k')
			check = true;
		else if (c == 'v')
			return printf("%s\n", rtsan_version()) < 0;
		else
			return usage(c == 'h' ? stdout : stderr);
	}
	if (optind != argc)
		return usage(stderr);
	if (conf_read(&conf, path, err, sizeof(err)) != 0)
		die("%s", err);
	if (check)
		return printf("%s: OK\n", path) < 0;
	s.signals = open_signals(); /* before threads are, which inherit what is blocked */
	s.epoll = epoll_create1(EPOLL_CLOEXEC);
	s.listener = open_socket(&conf);
	if (apps_init(&s.all, open_port(&conf), &conf) != 0)
		die("%s", rtsan_error());
	watch(&s, s.signals, &s.signals);
	watch(&s, s.listener, &s.listener);
	printf("sanstack-daemon: ready on %s\n", conf.socket);
	fflush(stdout);
	app_telemetry_start(&s.all);
	run(&s);
	app_telemetry_stop();
	close(s.listener);
	unlink(conf.socket);
	while ((a = LIST_FIRST(&s.all.list)) != NULL)
		app_destroy(&s.all, a);
	leaks = san_engine_leaks(s.all.ctx->port);
	if (leaks != 0)
		SAN_LOG(DRIVER, ERR, "leaks=%" PRIu64 ": records that nobody holds", leaks);
	dpdk_ctx_close(s.all.ctx);
	apps_fini(&s.all);
	conf_free(&conf);
	return leaks != 0;
}
