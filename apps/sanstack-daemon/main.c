/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * sanstack-daemon: owns ports on dedicated lcores and serves applications over a UNIX socket. This
 * file starts and ends it; server.c is the main loop. (SYS-2)
 */

#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <bsd/libutil.h>
#include <bsd/unistd.h>

#include "harden.h"
#include "server.h"
#include "socks.h"

#define BACKLOG        64
#define PIDFILE_TRIES  200
#define PIDFILE_TRY_US 10000

static struct server *taking; /* set while another daemon waits and can still go on */

static void __attribute__((noreturn, format(printf, 1, 2)))
daemon_die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "sanstack-daemon: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	if (taking != NULL)
		san_ports_park(taking);
	exit(1);
}

/* ---- set-up ---- */

/* The owner of a file may give it to its own group, and so needs CAP_SETGID, not CAP_CHOWN. */
static int
give_to_group(const char *path, gid_t group)
{
	gid_t own = getegid();
	bool is_set = setegid(group) == 0;
	int rc = chown(path, (uid_t)-1, group);

	return is_set && setegid(own) != 0 ? -1 : rc;
}

static int
daemon_open_socket(const struct conf *conf, uid_t user)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t before;
	int rc;

	strcpy(addr.sun_path, conf->socket);
	if (san_dpdk_memif_clear_path(conf->socket, user, true, rtsan_provider_host()) != 0)
		daemon_die("%s", rtsan_error());
	before = umask(0177);
	rc = bind(sock, (struct sockaddr *)&addr, sizeof(addr));
	umask(before);
	if (rc == 0 && conf->group[0] != '\0' &&
	    (give_to_group(conf->socket, conf->gid) != 0 || chmod(conf->socket, 0660) != 0))
		rc = -1;
	if (rc != 0 || listen(sock, BACKLOG) != 0)
		daemon_die("%s: %s", conf->socket, strerror(errno));
	return sock;
}

static int
open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN); /* the peer of a wake socket may have closed it */
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		daemon_die("signalfd: %s", strerror(errno));
	return fd;
}

/* libbsd empties the file, and the daemon removes it: it must have held a PID, if anything. */
static bool
may_be_pidfile(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[16] = "";
	bool may = fd < 0 ? errno == ENOENT :
			    read(fd, text, sizeof(text)) < (ssize_t)sizeof(text) &&
			text[strspn(text, "0123456789\n")] == '\0';

	san_fd_close(fd);
	return may;
}

static struct pidfh *
open_pidfile(const struct conf *conf)
{
	struct pidfh *pidfile;
	pid_t other = 0;

	if (conf->pidfile[0] == '\0')
		return NULL;
	if (!may_be_pidfile(conf->pidfile))
		daemon_die("%s: is no pidfile; it stays", conf->pidfile);
	pidfile = pidfile_open(conf->pidfile, 0644, &other);
	if (pidfile == NULL && errno == EEXIST)
		daemon_die("%s: another daemon runs, pid %d", conf->pidfile, (int)other);
	if (pidfile == NULL || pidfile_write(pidfile) != 0)
		daemon_die("%s: %s", conf->pidfile, strerror(errno));
	return pidfile;
}

/* ---- dropping rights ---- */

/*
 * Give files that were created with more rights to the user. Without CAP_CHOWN they stay root's,
 * and are then removed if the folder is the user's.
 */
static void
daemon_give_path(const struct harden_user *u, const char *path)
{
	if (u->given && path[0] != '\0' && lchown(path, u->uid, (gid_t)-1) != 0 && errno != EPERM)
		daemon_die("%s: %s", path, strerror(errno));
}

static void
warn_of(const char *path)
{
	char copy[256];

	snprintf(copy, sizeof(copy), "%s", path);
	if (path[0] != '\0' && faccessat(AT_FDCWD, dirname(copy), W_OK | X_OK, AT_EACCESS) != 0)
		SAN_LOG(DRIVER, WARNING, "%s stays at the end: its folder is another user's", path);
}

/* ---- start and end ---- */

/* Rights are dropped before, because the state could contain anything. */
static void
take_state(struct server *s)
{
	struct app *a;

	if (san_takeover_load(s) != 0 || san_ports_each(s, san_ports_resume) != 0)
		daemon_die("%s", rtsan_error());
	if (san_app_state_attach(&s->all) != 0)
		daemon_die("an application's queues can't be watched");
	LIST_FOREACH(a, &s->all.list, link)
		if (san_fd_watch(s->epoll, a->sock, EPOLLIN, a) != 0)
			daemon_die("epoll: %s", strerror(errno));
}

/* From here on this daemon alone owns the ports. */
static void
daemon_begin(struct server *s)
{
	const char *path = s->conf.pidfile;
	bool takes = taking != NULL;
	uint64_t ns;
	int i;

	if (takes && san_takeover_commit(s) != 0)
		daemon_die("%s", rtsan_error());
	taking = NULL;
	if (san_ports_each(s, san_ports_begin) != 0)
		daemon_die("%s", rtsan_error());
	if (!takes)
		return;
	san_apps_wake(&s->all, NULL, false);
	ns = san_engine_clock_monotonic() - s->parked_ns;
	SAN_LOG(DRIVER, NOTICE, "taken over from pid=%d: applications=%u, blackout_us=%u",
		(int)s->other_pid, s->all.nb_attached, (unsigned int)(ns / SAN_NS_PER_US));
	/* the previous daemon holds the file until it has ended */
	for (i = 0; i < PIDFILE_TRIES && path[0] != '\0' && s->pidfile == NULL; i++) {
		usleep(PIDFILE_TRY_US);
		s->pidfile = pidfile_open(path, 0644, NULL);
	}
	if (path[0] != '\0' && (s->pidfile == NULL || pidfile_write(s->pidfile) != 0))
		SAN_LOG(DRIVER, WARNING, "%s: %s", path, strerror(errno));
}

static const struct helper_ops helper_ops = {
	.on_answer = san_app_turn_on_answer,
	.dgram = san_socks_dgram,
	.ended = san_app_turn_helper_ended,
};

static void
daemon_start(struct server *s)
{
	struct harden_user user;
	struct rlimit limit;
	char err[256];

	if (san_harden_find(&user, s->conf.user, err, sizeof(err)) != 0)
		daemon_die("%s", err);
	san_users_read(SUBUID);
	s->user = user.given ? user.uid : geteuid();
	/* one for each program that waits; a helper has one for each carried socket */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (san_helper_begin(&user, s->conf.seccomp != 0) != 0)
		daemon_die("helpers: %s", strerror(errno));
	if (san_logging_open(&s->conf) != 0)
		daemon_die("no memory");
	s->signals = open_signals(); /* before threads start, which inherit the signal mask */
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->spare = eventfd(0, EFD_CLOEXEC);
	san_socks_token_init();
	s->note = san_takeover_make_note();
	san_apps_init(&s->all, &s->conf);
	s->all.epoll = s->epoll;
	if (s->takes_over && san_takeover_find(&s->conf)) {
		/*
		 * The devices belong to the other daemon until san_takeover_commit(). It continues
		 * to serve if this one fails.
		 */
		if (san_ports_start_eal(&s->conf, true) != 0 ||
		    san_ports_probe(&s->conf, true) != 0 || san_takeover_receive(s) != 0)
			daemon_die("%s", rtsan_error());
		taking = s;
		if (san_ports_probe(&s->conf, false) != 0 ||
		    san_ports_each(s, san_ports_open_device) != 0)
			daemon_die("%s", rtsan_error());
	} else {
		s->pidfile = open_pidfile(&s->conf);
		s->listener = daemon_open_socket(&s->conf, s->user);
		if (san_ports_start_eal(&s->conf, false) != 0 ||
		    san_ports_each(s, san_ports_open) != 0)
			daemon_die("%s", rtsan_error());
		if (san_shmq_guard_init(san_apps_ranges(&s->all), &s->guard) != 0)
			daemon_die("guard: %s", strerror(errno));
	}
	san_helper_avoid_lcores();
	san_logging_apply(&s->conf);
	daemon_give_path(&user, s->conf.socket);
	daemon_give_path(&user, s->conf.pidfile);
	if (san_harden_drop(&user, err, sizeof(err)) != 0)
		daemon_die("%s", err);
	warn_of(s->conf.socket);
	warn_of(s->conf.pidfile);
	if (s->conf.seccomp != 0 && san_sandbox_enter(SANDBOX_DAEMON, err, sizeof(err)) != 0)
		daemon_die("%s", err);
	if (taking != NULL)
		take_state(s);
	s->helpers = san_helper_open(&helper_ops, &s->all);
	if (s->helpers < 0 || san_fd_watch(s->epoll, s->signals, EPOLLIN, &s->signals) != 0 ||
	    san_fd_watch(s->epoll, s->listener, EPOLLIN, &s->listener) != 0 ||
	    san_fd_watch(s->epoll, s->guard, EPOLLIN, &s->guard) != 0 ||
	    san_fd_watch(s->epoll, s->helpers, EPOLLIN, &s->helpers) != 0)
		daemon_die("epoll, or one more thread: %s", strerror(errno));
	daemon_begin(s);
	san_app_telemetry_enter(&s->all);
	san_app_telemetry_leave();
	printf("sanstack-daemon: ready on %s\n", s->conf.socket);
	fflush(stdout);
}

/* Returns the exit status. */
static int
daemon_finish(struct server *s)
{
	uint64_t leaks;
	struct app *a;

	san_app_telemetry_enter(NULL);
	san_app_telemetry_leave();
	if (s->is_taken)
		return s->is_lost; /* there are no ports to close */
	san_apps_wake(&s->all, NULL, true);
	while ((a = LIST_FIRST(&s->all.list)) != NULL)
		san_apps_destroy(&s->all, a);
	leaks = san_ports_close(s);
	while (s->all.nb_ports > 0)
		san_app_port_fini(&s->all.ports[--s->all.nb_ports]);
	if (s->pidfile != NULL && pidfile_remove(s->pidfile) != 0)
		SAN_LOG(DRIVER, WARNING, "%s stays: %s", s->conf.pidfile, strerror(errno));
	san_conf_free(&s->conf);
	return leaks != 0;
}

static int
daemon_usage(FILE *f)
{
	fprintf(f, "usage: sanstack-daemon [--config FILE] [--takeover] [--check-config] "
		   "[--keys] [--version]\n"
		   "  -c, --config FILE   instead of " CONF_DEFAULT "; see sanstack.conf(5)\n"
		   "  --takeover          from the daemon that serves the socket now, if there "
		   "is one\n"
		   "  --check-config      say whether it is right, and do nothing; with "
		   "--takeover also\n"
		   "                      whether the daemon that serves would hand over\n"
		   "  --keys              every key, with meaning, range and default\n");
	return f == stderr ? 2 : 0;
}

static int
daemon_check(struct server *s)
{
	char layout[SHMQ_LAYOUT];

	if (s->takes_over && san_takeover_try(s) != 0)
		daemon_die("%s", rtsan_error());
	san_takeover_describe_layout(&s->conf, layout);
	return printf("%s: OK\nlive restart: %s\n", s->conf_path, layout) < 0;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"takeover", no_argument, NULL, 't'},
		{"check-config", no_argument, NULL, 'k'},
		{"keys", no_argument, NULL, 'l'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	static struct server s = {.conf_path = CONF_DEFAULT};
	bool check = false;
	char err[512];
	int c, fd;

	/* occupy descriptors 0 to 2: no file opened later receives text meant for them */
	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	san_fd_close(fd);
	setproctitle_init(argc, argv, environ);
	while ((c = getopt_long(argc, argv, "c:h", options, NULL)) != -1) {
		if (c == 'c')
			s.conf_path = optarg;
		else if (c == 't')
			s.takes_over = true;
		else if (c == 'k')
			check = true;
		else if (c == 'l')
			return san_conf_explain(stdout), fflush(stdout) != 0;
		else if (c == 'v')
			return printf("sanstack-daemon %s\n", rtsan_build()) < 0;
		else
			return daemon_usage(c == 'h' ? stdout : stderr);
	}
	if (optind != argc)
		return daemon_usage(stderr);
	if (san_conf_read(&s.conf, NULL, s.conf_path, err, sizeof(err)) != 0)
		daemon_die("%s", err);
	if (check)
		return daemon_check(&s);
	daemon_start(&s);
	san_server_run(&s);
	return daemon_finish(&s);
}
