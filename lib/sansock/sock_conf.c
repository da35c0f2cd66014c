/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <unistd.h>

#include "sock_priv.h"

static struct sock_rules rules;
static char program[SOCK_GLOB_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Log a line by a system call: write() is intercepted. Not if the setting is below *level*. */
static void __attribute__((format(printf, 2, 3)))
sock_conf_log(enum sock_log level, const char *fmt, ...)
{
	char line[SOCK_ERR_MAX + 32] = "libsansock: ";
	size_t n = strlen(line);
	va_list ap;

	if (rules.settings.log < level)
		return;
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	n = strlen(line);
	line[n++] = '\n';
	if (REAL(syscall, SYS_write, STDERR_FILENO, line, n) < 0)
		return;
}

/* If the rules are invalid, the program runs as without any. */
static void
sock_conf_load_rules(void)
{
	static char path[4096]; /* static: a stack may be small */
	char err[SOCK_ERR_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[n < 0 ? 0 : n] = '\0';
	snprintf(program, sizeof(program), "%s", basename(path));
	if (san_rules_read_all(&rules, err, sizeof(err)) == 0)
		return;
	sock_conf_log(SOCK_LOG_ERROR, "%s", err); /* as far as the settings could be read */
	san_rules_read_init(&rules);
}

static const struct sock_rules *
sock_conf_rules(void)
{
	KEEP_ERRNO;

	pthread_once(&once, sock_conf_load_rules);
	return &rules;
}

const struct sock_settings *
san_sock_conf(void)
{
	return &sock_conf_rules()->settings;
}

bool
san_sock_conf_is_idle(void)
{
	return sock_conf_rules()->nb_rules == 0;
}

bool
san_sock_conf_may_drop(void)
{
	const struct sock_rules *r = sock_conf_rules();
	uint32_t i;

	for (i = 0; i < r->nb_rules && r->rules[i].action != SOCK_DROP; i++)
		;
	return i < r->nb_rules;
}

/* ADDRESS:PORT, or * */
static const char *
sock_conf_addr_text(const struct sockaddr *sa, char *text, size_t len)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;
	char ip[INET6_ADDRSTRLEN];
	bool is_v4 = sa != NULL && sa->sa_family == AF_INET;

	if (sa == NULL || (!is_v4 && sa->sa_family != AF_INET6))
		return "*";
	inet_ntop(sa->sa_family, is_v4 ? (const void *)&in->sin_addr : &in6->sin6_addr, ip,
		  sizeof(ip));
	/* the port has the same place in both families */
	snprintf(text, len, is_v4 ? "%s:%u" : "[%s]:%u", ip, ntohs(in->sin_port));
	return text;
}

enum sock_action
san_sock_conf_action(int proto, bool is_v6only, const struct sockaddr *local,
		     const struct sockaddr *remote, bool is_logged)
{
	const struct sock_query query = {
		.program = program,
		.called = program_invocation_short_name,
		.uid = getuid(),
		.proto = proto,
		.is_v6only = is_v6only,
		.local = local,
		.remote = remote,
	};
	const struct sock_verdict v = san_rules_match(sock_conf_rules(), &query);
	char from[64], to[64], place[SOCK_FILE_MAX + 32] = "no rule";

	if (!is_logged || rules.settings.log != SOCK_LOG_INFO)
		return v.action;
	if (v.rule != NULL)
		san_rules_place(&rules, v.rule, place, sizeof(place));
	sock_conf_log(SOCK_LOG_INFO, "%s[%d]: %s %s -> %s: %s (%s)", program, (int)getpid(),
		      proto == IPPROTO_UDP ? "udp" : "tcp",
		      sock_conf_addr_text(local, from, sizeof(from)),
		      sock_conf_addr_text(remote, to, sizeof(to)), rules_action_names[v.action],
		      place);
	return v.action;
}

void
san_sock_conf_info(const char *what, const char *why)
{
	sock_conf_rules();
	sock_conf_log(SOCK_LOG_INFO, "%s[%d]: %s: %s", program, (int)getpid(), what, why);
}

void
san_sock_conf_error(const char *what, const char *why)
{
	sock_conf_rules();
	sock_conf_log(SOCK_LOG_ERROR, "%s: %s", what, why);
}
