/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sock_conf.h"

static struct sock_rules rules;
static char program[SOCK_GLOB_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* By system calls: the functions are ours. */
static void
say(const char *text)
{
	char line[SOCK_ERR_MAX + 32];
	int n = snprintf(line, sizeof(line), "libsansock: %s\n", text);

	if (syscall(SYS_write, STDERR_FILENO, line, n) < 0)
		return;
}

/* Whatever is wrong with the rules, the program runs as if there were none. */
static void
load(void)
{
	char path[4096], err[SOCK_ERR_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *name;
	bool is_off;
	int rc;

	path[n < 0 ? 0 : n] = '\0';
	name = strrchr(path, '/');
	snprintf(program, sizeof(program), "%s", name != NULL ? name + 1 : path);
	rc = sock_rules_load(&rules, err, sizeof(err));
	if (rc == 0)
		return;
	is_off = rules.settings.log == SOCK_LOG_OFF; /* as far as they could be read */
	sock_rules_init(&rules);
	if (!is_off)
		say(err);
}

static const struct sock_rules *
loaded(void)
{
	int was = errno;

	pthread_once(&once, load);
	errno = was;
	return &rules;
}

bool
sock_conf_is_idle(void)
{
	return loaded()->nb_rules == 0;
}

const char *
sock_conf_daemon(void)
{
	return loaded()->settings.daemon;
}

const char *
sock_conf_port(void)
{
	return loaded()->settings.port;
}

uint32_t
sock_conf_spin_us(void)
{
	return loaded()->settings.spin_us;
}

uint32_t
sock_conf_probe_ms(void)
{
	return loaded()->settings.probe_ms;
}

enum sock_action
sock_conf_action(int proto, bool is_v6only, const struct sockaddr *local,
		 const struct sockaddr *remote)
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

	return sock_rules_match(loaded(), &query).action;
}

void
sock_conf_say(const char *what, int rc)
{
	char text[160];

	if (loaded()->settings.log == SOCK_LOG_OFF)
		return;
	snprintf(text, sizeof(text), "%s: %s", what, strerror(-rc));
	say(text);
}
