/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Parses rules: a file, and texts of the environment. An error names the place, what is wrong, and
 * what is valid. (UDP-2)
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rules.h"
#include "san_time.h"

#define FILE_BYTES (16 << 20) /* read at most: a device or a pipe may have no end */
#define BLANKS     " \t\r"
#define PASSWD     "/etc/passwd"
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

#define DIM(table) (sizeof(table) / sizeof((table)[0]))

/* ---- lines ---- */

/** Source of bytes: a descriptor, or a text in which ; ends a line. */
struct source {
	int fd; /* -1: a text */
	const char *text;
	size_t at, len, nb_read;
	int rc; /* -errno of the last read */
	char buf[1024];
};

/** Result of next_line(). */
enum line {
	LINE_END = 0, /* no line is left */
	LINE_GOOD,
	LINE_LONG,
	LINE_NO_TEXT, /* it contains a NUL */
};

/* -1: the end. */
static int
next_byte(struct source *s)
{
	ssize_t n;

	if (s->fd < 0)
		return *s->text == '\0' ? -1 : (uint8_t)*s->text++;
	if (s->at == s->len) {
		n = syscall(SYS_read, s->fd, s->buf, sizeof(s->buf));
		s->at = 0;
		s->len = n < 0 ? 0 : (size_t)n;
		s->nb_read += s->len;
		s->rc = n < 0 ? -errno : -EFBIG * (s->nb_read > FILE_BYTES);
		if (n <= 0 || s->rc != 0)
			return -1;
	}
	return (uint8_t)s->buf[s->at++];
}

static enum line
next_line(struct source *s, char *line)
{
	enum line found = LINE_GOOD;
	size_t len = 0;
	int byte = next_byte(s);

	if (byte < 0)
		return LINE_END;
	for (; byte >= 0 && byte != '\n' && (byte != ';' || s->fd >= 0); byte = next_byte(s)) {
		if (byte == '\0')
			found = LINE_NO_TEXT;
		else if (len + 1 < SOCK_LINE_MAX)
			line[len++] = (char)byte;
		else if (found == LINE_GOOD)
			found = LINE_LONG;
	}
	line[len] = '\0';
	return found;
}

/* O_NONBLOCK: a FIFO in place of a file must not block a program's start. */
static int
open_source(struct source *s, const char *path)
{
	*s = (struct source){.fd = -1, .text = ""};
	s->fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return s->fd < 0 ? -errno : 0;
}

/* Read a number of 0 to *max*. Returns what is behind it; NULL: there is no such number. */
static const char *
take_number(const char *text, uint32_t max, uint32_t *value)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || n > max)
		return NULL;
	*value = (uint32_t)n;
	return end;
}

/* ---- state of the parser ---- */

struct reading {
	struct sock_rules *rules;
	const char *name; /* of the source */
	bool is_env;
	uint32_t line;
	uint32_t set; /* bits of the settings that this source has */
	char *err;
	size_t err_len;
};

static int __attribute__((format(printf, 2, 3)))
rules_read_refuse(const struct reading *rd, const char *fmt, ...)
{
	va_list ap;
	int n = snprintf(rd->err, rd->err_len, "%s:%u: ", rd->name, rd->line);

	va_start(ap, fmt);
	if (n >= 0 && (size_t)n < rd->err_len)
		vsnprintf(rd->err + n, rd->err_len - (size_t)n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* ---- conditions ---- */

static int
set_program(struct reading *rd, struct sock_rule *rule, const char *name, const char *value)
{
	if (strlen(value) >= sizeof(rule->program))
		return rules_read_refuse(rd, "%s: at most %zu characters", name,
					 sizeof(rule->program) - 1);
	if (strchr(value, '/') != NULL)
		return rules_read_refuse(rd, "%s %s: the name of a program, without its folder",
					 name, value);
	if (value[strspn(value, "*")] != '\0') /* * is no condition */
		strcpy(rule->program, value);
	return 0;
}

/* Look the name up in the password file. Other sources of users need calls that allocate. */
static bool
rules_read_find_user(const char *name, uint32_t *uid)
{
	struct source s;
	char line[SOCK_LINE_MAX];
	size_t len = strlen(name);
	const char *number;
	bool found = false;
	enum line l;

	if (open_source(&s, PASSWD) != 0)
		return false;
	while (!found && (l = next_line(&s, line)) != LINE_END) {
		if (l == LINE_NO_TEXT || strncmp(line, name, len) != 0 || line[len] != ':')
			continue;
		number = strchr(&line[len + 1], ':');
		if (number != NULL)
			number = take_number(number + 1, UINT32_MAX, uid);
		found = number != NULL && *number == ':';
	}
	syscall(SYS_close, s.fd);
	return found;
}

static int
set_user(struct reading *rd, struct sock_rule *rule, const char *name, const char *value)
{
	uint32_t uid;
	const char *end = take_number(value, UINT32_MAX, &uid);

	if ((end == NULL || *end != '\0') && !rules_read_find_user(value, &uid))
		return rules_read_refuse(rd, "%s %s: neither a number nor in " PASSWD, name, value);
	rule->has_user = true;
	rule->user = uid;
	return 0;
}

static int
set_proto(struct reading *rd, struct sock_rule *rule, const char *name, const char *value)
{
	if (strcmp(value, "udp") == 0)
		rule->proto = IPPROTO_UDP;
	else if (strcmp(value, "tcp") == 0)
		rule->proto = IPPROTO_TCP;
	else
		return rules_read_refuse(rd, "%s %s: known are udp, tcp", name, value);
	return 0;
}

/* Read ADDR and set *rest* to what is behind it. */
static bool
take_address(const char *value, struct sock_range *range, const char **rest)
{
	char address[INET6_ADDRSTRLEN];
	size_t skip = value[0] == '[', len = strcspn(value + skip, skip ? "]" : "/:");

	if (strncmp(value, "*", len) == 0 && len == 1) {
		*rest = value + 1;
		range->family = AF_UNSPEC;
		return true;
	}
	if (len >= sizeof(address) || (skip && value[skip + len] != ']'))
		return false;
	memcpy(address, value + skip, len);
	address[len] = '\0';
	*rest = value + len + 2 * skip;
	range->family = skip ? AF_INET6 : AF_INET;
	return inet_pton(range->family, address, range->address) == 1;
}

static int
set_range(struct reading *rd, struct sock_rule *rule, const char *name, const char *value)
{
	struct sock_range *range = name[0] == 'l' ? &rule->local : &rule->remote;
	const char *rest = value, *last;
	uint32_t max, n = 0, m, i;

	*range = (struct sock_range){.is_set = true, .port_max = UINT16_MAX};
	if (!take_address(value, range, &rest))
		return rules_read_refuse(rd, "%s %s: not an address: IPv4, [IPv6] or *", name,
					 value);
	if (range->family == AF_INET6 && IN6_IS_ADDR_V4MAPPED((struct in6_addr *)range->address))
		return rules_read_refuse(rd, "%s %s: IPv4 is written as IPv4", name, value);
	max = range->family == AF_INET ? 32 : range->family == AF_INET6 ? 128 :
									  0;
	range->bits = (uint8_t)max;
	if (*rest == '/') {
		rest = take_number(rest + 1, max, &n);
		if (max == 0 || rest == NULL || (*rest != '\0' && *rest != ':'))
			return rules_read_refuse(rd, "%s %s: %s", name, value,
						 max == 0          ? "* has no length" :
							 max == 32 ? "a length is 0 to 32" :
								     "a length is 0 to 128");
		range->bits = (uint8_t)n;
	}
	for (i = range->bits; i < 8 * sizeof(range->address); i++) /* bits behind the prefix */
		range->address[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
	if (*rest == '\0')
		return 0;
	last = *rest == ':' ? take_number(rest + 1, UINT16_MAX, &n) : NULL;
	m = n;
	if (last != NULL && *last == '-')
		last = take_number(last + 1, UINT16_MAX, &m);
	if (last == NULL || *last != '\0' || n == 0)
		return rules_read_refuse(
			rd, "%s %s: behind the address: :PORT or :PORT-PORT, of 1 to 65535", name,
			value);
	if (m < n)
		return rules_read_refuse(rd, "%s %s: %u is more than %u", name, value, n, m);
	range->port_min = (uint16_t)n;
	range->port_max = (uint16_t)m;
	return 0;
}

static const struct condition {
	const char *name;
	int (*set)(struct reading *rd, struct sock_rule *rule, const char *name, const char *value);
} conditions[] = {
	{"program", set_program},
	{"user", set_user},
	{"proto", set_proto},
	{"local", set_range},
	{"remote", set_range},
};

static int
read_rule(struct reading *rd, enum sock_action action, char *at)
{
	struct sock_rule rule = {.action = action, .line = rd->line, .is_from_env = rd->is_env};
	const char *word, *value;
	uint32_t i, seen = 0;
	int rc;

	while ((word = strtok_r(NULL, BLANKS, &at)) != NULL) {
		for (i = 0; i < DIM(conditions) && strcmp(word, conditions[i].name) != 0; i++)
			;
		if (i == DIM(conditions))
			return rules_read_refuse(
				rd, "%s: known are program, user, proto, local, remote", word);
		if (seen & 1u << i)
			return rules_read_refuse(rd, "%s is there already", word);
		seen |= 1u << i;
		value = strtok_r(NULL, BLANKS, &at);
		if (value == NULL)
			return rules_read_refuse(rd, "%s: there is nothing behind it", word);
		rc = conditions[i].set(rd, &rule, word, value);
		if (rc != 0)
			return rc;
	}
	if (rd->rules->nb_rules == SOCK_RULES_MAX)
		return rules_read_refuse(rd, "at most %d rules", SOCK_RULES_MAX);
	rd->rules->rules[rd->rules->nb_rules++] = rule;
	return 0;
}

/* ---- settings ---- */

#define DAEMON_PATH "a path from / on, of at most 107 characters"
#define PORT_NAME   "a name of 1 to 31 letters, digits, - and _"
/* *one* is the field for a number without a unit, *ns* is one of the field */
#define SOCK_TIME(f, lo, hi, ns) SAN_KEY_UINT(SAN_KEY_TIME, sock_settings, f, lo, hi, 1, ns)

static const char *
set_daemon(void *base, const char *text)
{
	struct sock_settings *to = base;

	if (text[0] != '/' || strlen(text) >= sizeof(to->daemon))
		return DAEMON_PATH;
	strcpy(to->daemon, text);
	return NULL;
}

static const char *
rules_read_set_port(void *base, const char *text)
{
	struct sock_settings *to = base;

	if (strlen(text) >= sizeof(to->port) || text[strspn(text, NAME_CHARS)] != '\0')
		return PORT_NAME;
	strcpy(to->port, text);
	return NULL;
}

static const char *const log_words[] = {
	[SOCK_LOG_OFF] = "off",
	[SOCK_LOG_ERROR] = "error",
	[SOCK_LOG_INFO] = "info",
};

const struct san_key rules_settings[] = {
	{"settings", "daemon", "the UNIX socket of sanstack-daemon",
	 SAN_KEY_AT(sock_settings, daemon), SAN_KEY_READ(set_daemon, DAEMON_PATH)},
	{"settings", "port", "the port of the daemon; default: the first",
	 SAN_KEY_AT(sock_settings, port), SAN_KEY_READ(rules_read_set_port, PORT_NAME)},
	{"settings", "spin", "longest poll of a blocking call before it sleeps; a number is in us",
	 SOCK_TIME(spin_us, 0, 1000000, SAN_NS_PER_US)},
	{"settings", "probe", "longest wait for the peer's daemon; a number is in ms",
	 SOCK_TIME(probe_ms, 0, 10000, SAN_NS_PER_MS)},
	{"settings", "short", "calls on a connection that make it worth carrying; 0: any number",
	 SAN_KEY_NUM(sock_settings, short_calls, 0, 1000000)},
	{"settings", "answer", "longest wait for this host's daemon; a number is in seconds",
	 SOCK_TIME(answer_s, 1, 60, SAN_NS_PER_S)},
	{"settings", "log", "messages on standard error",
	 SAN_KEY_CHOICE(sock_settings, log, log_words)},
	{0},
};

/* A setting of an earlier source wins, but the later one must be valid, too. */
static int
read_setting(struct reading *rd, const struct san_key *k, const char *name, char *at)
{
	struct sock_settings read = rd->rules->settings;
	uint32_t bit = 1u << (k - rules_settings);
	const char *value = strtok_r(NULL, BLANKS, &at);
	char err[SOCK_LINE_MAX * 2];
	int rc;

	if (rd->set & bit)
		return rules_read_refuse(rd, "%s is there already", name);
	if (value == NULL)
		return rules_read_refuse(rd, "%s: there is nothing behind it", name);
	if (strtok_r(NULL, BLANKS, &at) != NULL)
		return rules_read_refuse(rd, "%s: more than one word behind it", name);
	rc = san_key_set(k, &read, name, value, err, sizeof(err));
	if (rc != 0)
		return rules_read_refuse(rd, "%s", err);
	if (!(rd->rules->set & bit))
		rd->rules->settings = read;
	rd->set |= bit;
	return 0;
}

/* ---- sources ---- */

static int
read_line(struct reading *rd, char *line)
{
	const struct san_key *k;
	const char *word;
	char *rest;
	uint32_t i;

	line[strcspn(line, "#")] = '\0';
	word = strtok_r(line, BLANKS, &rest);
	if (word == NULL)
		return 0;
	for (i = 0; i < SOCK_ACTIONS; i++)
		if (strcmp(word, rules_action_names[i]) == 0)
			return read_rule(rd, (enum sock_action)i, rest);
	k = san_key_find(rules_settings, NULL, word);
	if (k != NULL)
		return read_setting(rd, k, word, rest);
	return rules_read_refuse(rd,
				 "%s: known are carry, kernel, both, drop, daemon, port, spin, "
				 "probe, short, answer, log",
				 word);
}

static int
rules_read_source(struct reading *rd, struct source *s)
{
	char line[SOCK_LINE_MAX];
	enum line found;
	int rc = 0;

	while (rc == 0 && (found = next_line(s, line)) != LINE_END) {
		rd->line++;
		if (found == LINE_LONG)
			rc = rules_read_refuse(rd, "a line has at most %d characters",
					       SOCK_LINE_MAX - 1);
		else if (found == LINE_NO_TEXT)
			rc = rules_read_refuse(rd, "not a text");
		else
			rc = read_line(rd, line);
	}
	rd->rules->set |= rd->set;
	if (rc == 0 && s->rc != 0) {
		rc = s->rc;
		snprintf(rd->err, rd->err_len, "%s: %s", rd->name, strerrordesc_np(-rc));
	}
	return rc;
}

void
san_rules_read_init(struct sock_rules *rules)
{
	memset(rules, 0, sizeof(*rules));
	strcpy(rules->settings.daemon, "/run/sanstack/sanstack.sock");
	rules->settings.spin_us = 100;
	rules->settings.probe_ms = 20;
	rules->settings.short_calls = 64;
	rules->settings.answer_s = 3;
	rules->settings.log = SOCK_LOG_ERROR;
}

int
san_rules_read_text(struct sock_rules *rules, const char *text, char *err, size_t err_len)
{
	struct source s = {.fd = -1, .text = text};
	struct reading rd = {
		.rules = rules,
		.name = SOCK_ENV_RULES,
		.is_env = true,
		.err = err,
		.err_len = err_len,
	};

	return rules_read_source(&rd, &s);
}

int
san_rules_read_file(struct sock_rules *rules, const char *path, char *err, size_t err_len)
{
	struct reading rd = {.rules = rules, .name = path, .err = err, .err_len = err_len};
	struct source s;
	int rc = -ENAMETOOLONG;

	if (strlen(path) < sizeof(rules->file)) {
		strcpy(rules->file, path);
		rc = open_source(&s, path);
	}
	if (rc != 0) {
		snprintf(err, err_len, "%s: %s", path, strerrordesc_np(-rc));
		return rc;
	}
	rc = rules_read_source(&rd, &s);
	syscall(SYS_close, s.fd);
	return rc;
}

int
san_rules_read_all(struct sock_rules *rules, char *err, size_t err_len)
{
	const char *text = secure_getenv(SOCK_ENV_RULES);
	const char *path = secure_getenv(SOCK_ENV_FILE);
	int rc = 0;

	san_rules_read_init(rules);
	if (path != NULL && path[0] == '\0')
		path = NULL;
	if (text != NULL)
		rc = san_rules_read_text(rules, text, err, err_len);
	if (rc != 0)
		return rc;
	rc = san_rules_read_file(rules, path != NULL ? path : SOCK_RULES_FILE, err, err_len);
	return rc == -ENOENT && path == NULL ? 0 : rc;
}
