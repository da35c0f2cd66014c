/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * sansock: starts programs with the preloaded library that carries their sockets, and explains what
 * the rules decide about a socket. (UDP-1, UDP-2)
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ini.h"
#include "rtsan.h"
#include "rules.h"
#include "shmq.h"

#define LIBRARY "libsansock.so"

/* See sansock(1). */
enum status {
	STATUS_OK = 0,
	STATUS_FAILED = 1,
	STATUS_USAGE = 2,
	STATUS_NEVER = 3, /* a rule can never match */
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
};

static const char usage[] =
	"usage: sansock run PROGRAM [ARGUMENT...]\n"
	"       sansock explain PROGRAM udp|tcp [ADDRESS PORT] [--local ADDRESS[:PORT]]\n"
	"               [--user USER]\n"
	"       sansock check [FILE]\n"
	"       sansock --help | --version\n"
	"See sansock(1).\n";

static struct sock_rules rules;

static int __attribute__((format(printf, 2, 3)))
sansock_exit_with(enum status status, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "sansock: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	return status;
}

static int
refuse_usage(void)
{
	fputs(usage, stderr);
	return STATUS_USAGE;
}

/* ---- programs ---- */

/* Search like a shell. */
static bool
find_program(const char *name, char *path, size_t len)
{
	const char *at = getenv("PATH"), *end;

	if (strchr(name, '/') != NULL || at == NULL)
		return snprintf(path, len, "%s", name) < (int)len && access(path, X_OK) == 0;
	for (;; at = end + 1) {
		end = strchrnul(at, ':');
		if (snprintf(path, len, "%.*s/%s", (int)(end - at), at, name) < (int)len &&
		    access(path, X_OK) == 0)
			return true;
		if (*end == '\0')
			return false;
	}
}

/* ---- run ---- */

/* Search next to this program, in the build folder, and where it is installed. (SYS-10) */
static bool
find_library(char *path, size_t len)
{
	static const char *const places[] = {"", "../../lib/sansock/"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t i;

	self[n > 0 ? n : 0] = '\0';
	self[basename(self) - self] = '\0';
	for (i = 0; n > 0 && i < sizeof(places) / sizeof(places[0]); i++)
		if (snprintf(path, len, "%s%s" LIBRARY, self, places[i]) < (int)len &&
		    access(path, R_OK) == 0)
			return true;
	snprintf(path, len, "%s", SANSOCK_LIBDIR "/" LIBRARY);
	return access(path, R_OK) == 0;
}

/* The loader of musl can't load the library. Its name is on the first page of a program. */
static bool
is_musl(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char page[4096];
	ssize_t n = read(fd, page, sizeof(page));

	close(fd);
	return n > 4 && memcmp(page, "\177ELF", 4) == 0 &&
		memmem(page, (size_t)n, "/ld-musl-", 9) != NULL;
}

/* Put *first* in front of what the variable has already. 0 or -errno. */
static int
sansock_put_first(const char *variable, const char *first)
{
	const char *before = getenv(variable);
	char *both;
	int rc;

	if (before == NULL || before[0] == '\0')
		return setenv(variable, first, 1) == 0 ? 0 : -errno;
	if (strncmp(before, first, strlen(first)) == 0 &&
	    strchr(": ", before[strlen(first)]) != NULL)
		return 0; /* by another sansock; strchr() also finds the end */
	if (asprintf(&both, "%s:%s", first, before) < 0)
		return -ENOMEM;
	rc = setenv(variable, both, 1) == 0 ? 0 : -errno;
	free(both);
	return rc;
}

static int
cmd_run(int argc, char **argv)
{
	char library[PATH_MAX], program[PATH_MAX], err[SOCK_ERR_MAX];
	int i = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;
	struct stat st;
	bool is_found;
	int rc;

	if (i >= argc || (i == 1 && argv[i][0] == '-'))
		return refuse_usage();
	/*
	 * Check the rules here: with broken rules the library silently leaves all sockets to the
	 * kernel.
	 */
	if (san_rules_read_all(&rules, err, sizeof(err)) != 0)
		return sansock_exit_with(STATUS_FAILED, "%s", err);
	if (!find_library(library, sizeof(library)))
		return sansock_exit_with(STATUS_FAILED, "%s: %s", library, strerror(errno));
	if (strpbrk(library, ": ") != NULL)
		return sansock_exit_with(STATUS_FAILED,
					 "%s: LD_PRELOAD takes no path with a colon or space",
					 library);
	is_found = find_program(argv[i], program, sizeof(program)) && stat(program, &st) == 0;
	if (is_found && (st.st_mode & (S_ISUID | S_ISGID)) != 0)
		sansock_exit_with(STATUS_OK,
				  "%s is set-uid or set-gid: its sockets stay with the kernel",
				  program);
	/* ASan of gcc refuses to start behind another library, unless this option is given */
	rc = sansock_put_first("ASAN_OPTIONS", "verify_asan_link_order=0");
	if (is_found && is_musl(program))
		sansock_exit_with(STATUS_OK,
				  "%s is linked with musl: its sockets stay with the kernel",
				  program);
	else if (rc == 0)
		rc = sansock_put_first("LD_PRELOAD", library);
	if (rc != 0)
		return sansock_exit_with(STATUS_FAILED, "environment: %s", strerror(-rc));
	execvp(argv[i], &argv[i]);
	return sansock_exit_with(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE,
				 "%s: %s", argv[i], strerror(errno));
}

/* ---- check ---- */

static int
cmd_check(int argc, char **argv)
{
	char err[SOCK_ERR_MAX], place[SOCK_ERR_MAX], first[SOCK_ERR_MAX];
	const struct sock_rule *rule, *shadow;
	int status = STATUS_OK, rc;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-'))
		return refuse_usage();
	san_rules_read_init(&rules);
	if (argc == 2)
		rc = san_rules_read_file(&rules, argv[1], err, sizeof(err));
	else
		rc = san_rules_read_all(&rules, err, sizeof(err));
	if (rc != 0)
		return sansock_exit_with(STATUS_FAILED, "%s", err);
	for (rule = rules.rules; rule < &rules.rules[rules.nb_rules]; rule++) {
		shadow = san_rules_shadow(&rules, rule);
		if (shadow == NULL)
			continue;
		san_rules_place(&rules, rule, place, sizeof(place));
		san_rules_place(&rules, shadow, first, sizeof(first));
		printf("%s: never matches: all of it is in %s\n", place, first);
		status = STATUS_NEVER;
	}
	if (rules.nb_rules == 0 && access(rules.file, F_OK) != 0)
		return sansock_exit_with(STATUS_FAILED, "%s: %s: every socket is the kernel's",
					 rules.file, strerror(errno));
	printf("%s: %u rules\n", rules.file, rules.nb_rules);
	return status;
}

/* ---- explain ---- */

/*
 * The address is as a program writes it: [IPv6] with or without brackets, IPv4, or * for any.
 * *port* NULL: none.
 */
static bool
read_address(const char *text, size_t len, const char *port, struct sockaddr_storage *to)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;
	char address[INET6_ADDRSTRLEN];
	uint64_t service = 0;

	if (port != NULL && (!san_key_number(port, &service) || service > UINT16_MAX))
		return false;
	if (len > 1 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (len >= sizeof(address))
		return false;
	memcpy(address, text, len);
	address[len] = '\0';
	*to = (struct sockaddr_storage){.ss_family = AF_INET6};
	in->sin_port = htons((uint16_t)service); /* IPv6 has it at the same place */
	if (inet_pton(AF_INET6, address, &in6->sin6_addr) == 1)
		return true;
	to->ss_family = AF_INET;
	return strcmp(address, "*") == 0 || inet_pton(AF_INET, address, &in->sin_addr) == 1;
}

/* ADDRESS[:PORT] */
static bool
read_local(const char *text, struct sockaddr_storage *to)
{
	const char *bracket = strchr(text, ']');
	const char *colon = strchr(bracket != NULL ? bracket : text, ':');

	return read_address(text, strlen(text), NULL, to) ||
		(colon != NULL && read_address(text, (size_t)(colon - text), colon + 1, to));
}

static bool
read_user(const char *text, uid_t *uid)
{
	const struct passwd *pw = getpwnam(text);
	char *end;

	*uid = pw != NULL ? pw->pw_uid : (uid_t)strtoul(text, &end, 10);
	return pw != NULL || (text[0] >= '0' && text[0] <= '9' && *end == '\0');
}

/* Print each rule that was tried, and why it does not match. */
static void
print_way(const struct sock_query *q, const struct sock_verdict *v)
{
	const struct sock_rule *last = v->is_part ? v->rest : v->rule;
	char place[SOCK_ERR_MAX], text[SOCK_LINE_MAX];
	const struct sock_rule *rule;
	const char *misses;

	for (rule = rules.rules; rule < &rules.rules[rules.nb_rules]; rule++) {
		misses = san_rules_rule_misses(rule, q);
		san_rules_place(&rules, rule, place, sizeof(place));
		san_rules_rule_text(rule, text, sizeof(text));
		if (misses != NULL)
			printf("  %s: %s: not its %s\n", place, text, misses);
		else if (rule == v->rule && v->is_part)
			printf("  %s: %s: matches for some of its addresses\n", place, text);
		else if (rule == v->rule || rule == v->rest)
			printf("  %s: %s: matches%s\n", place, text,
			       v->is_part ? " for the rest" : "");
		else
			printf("  %s: %s: for some of its addresses\n", place, text);
		if (rule == last || (rule == v->rule && rule->action == SOCK_DROP))
			return;
	}
	printf("  no rule%s: the kernel's\n", v->is_part ? " for the rest" : " matches");
}

/* Returns an errno. EPROTOTYPE: a socket of another type is there; its owner sees no connection. */
static int
sansock_dial(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	return connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 ? 0 : errno;
}

/* sansock_dial() as *uid*, in a child; 0 if this user may not do that. */
static int
dial_as(uid_t uid, const char *path)
{
	const struct passwd *pw = getpwuid(uid);
	int status = 0, rc;
	pid_t pid;

	if (uid == getuid())
		return sansock_dial(path);
	pid = fork();
	if (pid == 0) {
		rc = pw != NULL ? initgroups(pw->pw_name, pw->pw_gid) : setgroups(0, NULL);
		rc |= setgid(pw != NULL ? pw->pw_gid : (gid_t)uid);
		rc |= setuid(uid);
		_exit(rc == 0 ? sansock_dial(path) : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 0;
	return WEXITSTATUS(status);
}

/* Ask the daemon at *path*, without attaching to it, whether its port leaves TCP to the kernel. */
static bool
is_tcp_left(const char *path)
{
	struct shmq_req req = {
		.magic = SHMQ_MAGIC,
		.abi = SHMQ_ABI,
		.type = SHMQ_HELLO,
		.hello.is_query = 1,
	};
	const struct timeval timeout = {.tv_sec = rules.settings.answer_s};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct shmq_rep rep = {.rc = -1};
	bool is_answer;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	snprintf(req.hello.port, sizeof(req.hello.port), "%s", rules.settings.port);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	is_answer = connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 &&
		send(fd, &req, sizeof(req), MSG_NOSIGNAL) == (ssize_t)sizeof(req) &&
		recv(fd, &rep, sizeof(rep), 0) == (ssize_t)sizeof(rep);
	close(fd);
	return is_answer && rep.rc == 0 && rep.hello.no_tcp != 0;
}

/* Print what keeps the library from carrying the socket, in its own words. */
static void
print_obstacle(const struct sock_query *q, const struct sock_verdict *v)
{
	const char *path = rules.settings.daemon;
	int err;

	if (v->action != SOCK_CARRY && v->action != SOCK_BOTH)
		return;
	err = dial_as(q->uid, path);
	if (err == EACCES || err == EPERM)
		printf("  but no right to the daemon at %s\n", path);
	else if (err == ENOENT || err == ECONNREFUSED || err == ENOTDIR)
		printf("  but no daemon at %s\n", path);
	else if (q->proto == IPPROTO_TCP && is_tcp_left(path))
		printf("  but %s\n", SHMQ_NO_TCP);
}

static int
sansock_explain_query(struct sock_query *q, const char *name)
{
	char path[PATH_MAX], real[PATH_MAX], place[SOCK_ERR_MAX] = "", err[SOCK_ERR_MAX];
	struct sock_verdict v;

	if (san_rules_read_all(&rules, err, sizeof(err)) != 0)
		return sansock_exit_with(STATUS_FAILED, "%s", err);
	if (find_program(name, path, sizeof(path)) && realpath(path, real) != NULL)
		q->program = basename(real);
	v = san_rules_match(&rules, q);
	if (v.rule != NULL)
		san_rules_place(&rules, v.rule, place, sizeof(place));
	printf("%s%s%s\n", rules_action_names[v.action], place[0] != '\0' ? " " : "", place);
	if (strcmp(q->program, q->called) != 0)
		printf("  %s is %s\n", q->called, q->program);
	print_way(q, &v);
	print_obstacle(q, &v);
	return STATUS_OK;
}

static int
cmd_explain(int argc, char **argv)
{
	static const struct option options[] = {
		{"local", required_argument, NULL, 'l'},
		{"user", required_argument, NULL, 'u'},
		{NULL, 0, NULL, 0},
	};
	struct sockaddr_storage local, remote;
	struct sock_query q = {.uid = getuid()};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'l' && !read_local(optarg, &local))
			return sansock_exit_with(STATUS_USAGE, "%s: not ADDRESS[:PORT]", optarg);
		if (c == 'u' && !read_user(optarg, &q.uid))
			return sansock_exit_with(STATUS_USAGE, "%s: no such user", optarg);
		if (c == '?')
			return refuse_usage();
		if (c == 'l')
			q.local = (struct sockaddr *)&local;
	}
	argv += optind;
	argc -= optind;
	if (argc != 2 && argc != 4)
		return refuse_usage();
	q.program = q.called = basename(argv[0]);
	q.proto = strcmp(argv[1], "udp") == 0 ? IPPROTO_UDP :
		strcmp(argv[1], "tcp") == 0   ? IPPROTO_TCP :
						0;
	if (q.proto == 0)
		return sansock_exit_with(STATUS_USAGE, "%s: known are udp, tcp", argv[1]);
	if (argc == 4) {
		if (!read_address(argv[2], strlen(argv[2]), argv[3], &remote))
			return sansock_exit_with(STATUS_USAGE, "%s %s: not ADDRESS PORT", argv[2],
						 argv[3]);
		q.remote = (struct sockaddr *)&remote;
	}
	return sansock_explain_query(&q, argv[0]);
}

static int
cmd_about(int argc, char **argv)
{
	if (strcmp(argv[0], "--help") == 0) {
		fputs(usage, stdout);
	} else if (strcmp(argv[0], "--version") == 0) {
		printf("sansock %s\n", rtsan_build());
	} else {
		san_rules_read_init(&rules);
		san_ini_explain(stdout, rules_settings, &rules.settings);
	}
	return STATUS_OK;
}

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"run", cmd_run},
	{"explain", cmd_explain},
	{"check", cmd_check},
	{"--help", cmd_about},
	{"--keys", cmd_about},
	{"--version", cmd_about},
};

int
main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	return refuse_usage();
}
