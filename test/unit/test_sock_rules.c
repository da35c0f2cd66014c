/* SPDX-License-Identifier: BSD-3-Clause */

/* Rules for sockets: what is accepted, what is refused and where, which rule matches. (UDP-2) */

#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rules.h"

#define DIM(table) (sizeof(table) / sizeof((table)[0]))

static struct sock_rules rules;
static char err[SOCK_ERR_MAX];

static void
read_rules(const char *text)
{
	san_rules_read_init(&rules);
	if (san_rules_read_text(&rules, text, err, sizeof(err)) != 0)
		fail_msg("%s", err);
}

/* Write a file with these bytes. Returns its name. */
static const char *
write_file(const void *text, size_t len)
{
	static char path[64];
	int fd;

	strcpy(path, "/tmp/san-rules.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
	return path;
}

static void
assert_text_refused(const char *text)
{
	assert_int_equal(san_rules_read_text(&rules, text, err, sizeof(err)), -EINVAL);
}

/* Reading a file with these bytes fails with *rc* and its name, then *says*. */
static void
assert_file_refused(const void *text, size_t len, int rc, const char *says)
{
	const char *path = write_file(text, len);
	char want[128];

	assert_int_equal(san_rules_read_file(&rules, path, err, sizeof(err)), rc);
	snprintf(want, sizeof(want), "%s:%s", path, says);
	assert_string_equal(err, want);
	unlink(path);
}

/* ---- queries ---- */

/* "10.0.0.1:53", "[fd00::1]:53"; NULL stays NULL. */
static const struct sockaddr *
address(const char *text, struct sockaddr_storage *to)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;
	bool is_v6 = text != NULL && text[0] == '[';
	char host[64];
	const char *port;

	if (text == NULL)
		return NULL;
	port = strrchr(text, ':');
	*to = (struct sockaddr_storage){.ss_family = is_v6 ? AF_INET6 : AF_INET};
	in->sin_port = htons((uint16_t)atoi(port + 1)); /* IPv6 has it at the same place */
	snprintf(host, sizeof(host), "%.*s", (int)(port - text) - 2 * is_v6, text + is_v6);
	assert_int_equal(inet_pton(to->ss_family, host,
				   is_v6 ? (void *)&in6->sin6_addr : (void *)&in->sin_addr),
			 1);
	return (struct sockaddr *)to;
}

static struct sock_verdict
ask(const char *local, const char *remote)
{
	struct sockaddr_storage l, r;
	const struct sock_query q = {
		.program = "prog",
		.uid = 1000,
		.proto = IPPROTO_UDP,
		.local = address(local, &l),
		.remote = address(remote, &r),
	};

	return san_rules_match(&rules, &q);
}

static void
expect(const char *local, const char *remote, enum sock_action action, uint32_t line)
{
	struct sock_verdict v = ask(local, remote);

	if (v.action != action || (v.rule != NULL ? v.rule->line : 0) != line)
		fail_msg("local %s, remote %s: %s by rule %u, not %s by rule %u",
			 local != NULL ? local : "-", remote != NULL ? remote : "-",
			 rules_action_names[v.action], v.rule != NULL ? v.rule->line : 0,
			 rules_action_names[action], line);
}

/* ---- accepted ---- */

UNIT_CASE(add_text__says_again_what_it_means)
{
	static const char *const same[] = {
		"carry",
		"kernel program nginx",
		"both program *ngin? user 1000 proto udp local 10.0.0.1/32:5000",
		"drop proto tcp remote [fd00::]/8:1-65535",
		"carry local *",
		"carry local *:53 remote *:1000-2000",
		"carry user 0 local 0.0.0.0/0",
		"carry remote [::]/0",
		"carry remote [fd00:1:2:3:4:5:6:7]/128:9",
		"carry user 4294967295",
	};
	static const struct {
		const char *text, *means;
	} other[] = {
		{"  carry\tproto   udp  # why", "carry proto udp"},
		{"carry remote 10.1.2.3/8", "carry remote 10.0.0.0/8"},
		{"carry remote 10.255.255.255/13", "carry remote 10.248.0.0/13"},
		{"carry remote [fd00::1]/127:53-53", "carry remote [fd00::]/127:53"},
		{"carry program **", "carry"},
		{"carry remote 10.0.0.1 proto udp", "carry proto udp remote 10.0.0.1/32"},
		{"carry user root", "carry user 0"},
		{";;\n;# carry\n;drop", "drop"},
	};
	char text[SOCK_LINE_MAX];

	for (size_t i = 0; i < DIM(same) + DIM(other); i++) {
		bool is_same = i < DIM(same);

		read_rules(is_same ? same[i] : other[i - DIM(same)].text);
		assert_int_equal(rules.nb_rules, 1);
		san_rules_rule_text(&rules.rules[0], text, sizeof(text));
		assert_string_equal(text, is_same ? same[i] : other[i - DIM(same)].means);
	}
}

UNIT_CASE(rule_text__longest)
{
	char text[SOCK_LINE_MAX], glob[SOCK_GLOB_MAX], line[SOCK_LINE_MAX];
	int n;

	memset(glob, 'g', sizeof(glob));
	glob[sizeof(glob) - 1] = '\0';
	n = snprintf(line, sizeof(line), "kernel program %s user 4294967295 proto udp", glob);
	n += snprintf(line + n, sizeof(line) - (size_t)n,
		      " local [fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]/128:65534-65535");
	snprintf(line + n, sizeof(line) - (size_t)n,
		 " remote [fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]/128:65534-65535");
	read_rules(line);
	san_rules_rule_text(&rules.rules[0], text, sizeof(text));
	assert_string_equal(text, line);
	san_rules_rule_text(&rules.rules[0], text, 8); /* truncated, with a final NUL */
	assert_string_equal(text, "kernel ");
}

UNIT_CASE(add_text__settings)
{
	san_rules_read_init(&rules);
	assert_string_equal(rules.settings.daemon, "/run/sanstack/sanstack.sock");
	assert_string_equal(rules.settings.port, "");
	assert_int_equal(rules.settings.spin_us, 100);
	assert_int_equal(rules.settings.probe_ms, 20);
	assert_int_equal(rules.settings.answer_s, 3);
	assert_int_equal(rules.settings.log, SOCK_LOG_ERROR);
	read_rules("daemon /tmp/d;port east-1;spin 0;probe 10000;answer 60;log info");
	assert_int_equal(rules.nb_rules, 0);
	assert_string_equal(rules.settings.daemon, "/tmp/d");
	assert_string_equal(rules.settings.port, "east-1");
	assert_int_equal(rules.settings.spin_us, 0);
	assert_int_equal(rules.settings.probe_ms, 10000);
	assert_int_equal(rules.settings.answer_s, 60);
	assert_int_equal(rules.settings.log, SOCK_LOG_INFO);
	read_rules("spin 5ms;probe 1s;answer 30s"); /* one spelling of units */
	assert_int_equal(rules.settings.spin_us, 5000);
	assert_int_equal(rules.settings.probe_ms, 1000);
	assert_int_equal(rules.settings.answer_s, 30);
}

/* ---- refused ---- */

UNIT_CASE(add_text__refused)
{
	static const struct {
		const char *text, *says;
	} table[] = {
		{"cary", "1: cary: known are carry, kernel,"},
		{"carry;Carry", "2: Carry: known are"},
		{"carry;;\ncarry lokal *", "4: lokal: known are program, user,"},
		{"carry local", "1: local: there is nothing behind it"},
		{"carry local # *", "1: local: there is nothing behind it"},
		{"carry proto udp proto udp", "1: proto is there already"},
		{"carry proto sctp", "1: proto sctp: known are udp, tcp"},
		{"carry program /bin/ls", "1: program /bin/ls: the name of"},
		{"carry user nobody-of-this-name", "1: user nobody-of-this-name: neither"},
		{"carry user roo", "1: user roo: neither"},
		{"carry user 4294967296", "1: user 4294967296: neither"},
		{"carry user -1", "1: user -1: neither"},
		{"carry local 10.0.0.256", "1: local 10.0.0.256: not an address"},
		{"carry local 10.0.0", "not an address"},
		{"carry local fd00::1", "not an address"},
		{"carry local [fd00::1", "not an address"},
		{"carry local [10.0.0.1]", "not an address"},
		{"carry local [*]", "not an address"},
		{"carry local **", "not an address"},
		{"carry local :53", "not an address"},
		{"carry local [1:2:3:4:5:6:7:8:9]", "not an address"},
		{"carry local [0000000000000000000000000000000000000000000000001::]", "not an"},
		{"carry local [::ffff:10.0.0.1]", "IPv4 is written as IPv4"},
		{"carry local 10.0.0.0/33", "a length is 0 to 32"},
		{"carry local 10.0.0.0/", "a length is 0 to 32"},
		{"carry local 10.0.0.0/8x", "a length is 0 to 32"},
		{"carry local [fd00::]/129", "a length is 0 to 128"},
		{"carry local */8", "* has no length"},
		{"carry local 10.0.0.1:", "of 1 to 65535"},
		{"carry local 10.0.0.1:0", "of 1 to 65535"},
		{"carry local 10.0.0.1:65536", "of 1 to 65535"},
		{"carry local 10.0.0.1:18446744073709551617", "of 1 to 65535"},
		{"carry local *:*", "of 1 to 65535"},
		{"carry local *:1-", "of 1 to 65535"},
		{"carry local *:1-2-3", "of 1 to 65535"},
		{"carry local *x", "not an address"},
		{"carry remote *:9-8", "1: remote *:9-8: 9 is more than 8"},
		{"daemon", "1: daemon: there is nothing behind it"},
		{"daemon run", "1: daemon: \"run\" is not a path from / on"},
		{"daemon /a /b", "1: daemon: more than one word"},
		{"spin 1;spin 2", "2: spin is there already"},
		{"spin 1000001", "1: spin: \"1000001\" is not 0 to 1s"},
		{"probe 11s", "1: probe: \"11s\" is not 0 to 10s"},
		{"answer 0", "1: answer: \"0\" is not 1s to 60s"},
		{"port a.b", "1: port: \"a.b\" is not a name of 1 to 31"},
		{"port abcdefghijklmnopqrstuvwxyz012345", "a name of 1 to 31"},
		{"log all", "1: log: \"all\" is not off, error or info"},
	};

	UNIT_EACH(row, table) {
		san_rules_read_init(&rules);
		assert_text_refused(row->text);
		if (strncmp(err, SOCK_ENV_RULES ":", strlen(SOCK_ENV_RULES) + 1) != 0 ||
		    strstr(err, row->says) == NULL)
			fail_msg("\"%s\" gives: %s", row->text, err);
	}
}

UNIT_CASE(add_text__at_its_limits)
{
	char text[SOCK_LINE_MAX + 8];

	san_rules_read_init(&rules);
	for (int i = 0; i < SOCK_RULES_MAX; i++)
		assert_int_equal(san_rules_read_text(&rules, "drop", err, sizeof(err)), 0);
	assert_text_refused("drop");
	assert_non_null(strstr(err, "at most 128 rules"));
	/* the longest possible line, and one byte more */
	memset(text, ' ', sizeof(text));
	memcpy(text, "log off", 7);
	text[SOCK_LINE_MAX - 1] = '\0';
	read_rules(text);
	text[SOCK_LINE_MAX - 1] = ' ';
	text[SOCK_LINE_MAX] = '\0';
	san_rules_read_init(&rules);
	assert_text_refused(text);
	assert_non_null(strstr(err, ":1: a line has at most 255"));
	/* a pattern and a path that are too long */
	memset(text, 'p', sizeof(text));
	memcpy(text, "drop program ", 13);
	text[13 + SOCK_GLOB_MAX] = '\0';
	assert_text_refused(text);
	text[13 + SOCK_GLOB_MAX - 1] = '\0';
	read_rules(text);
	memset(text, 'p', sizeof(text));
	memcpy(text, "daemon /", 8);
	text[7 + SOCK_PATH_MAX] = '\0';
	assert_text_refused(text);
	text[7 + SOCK_PATH_MAX - 1] = '\0';
	read_rules(text);
	/* the error text fits a buffer of any size */
	assert_int_equal(san_rules_read_text(&rules, "carry x", text, 5), -EINVAL);
	assert_string_equal(text, "SANS");
}

/* ---- files ---- */

UNIT_CASE(add_file__place_of_an_error)
{
	static const char good[] = "# one\n\ncarry program a;b\nspin 5";
	char want[128];
	const char *path;

	path = write_file(good, sizeof(good) - 1);
	san_rules_read_init(&rules);
	assert_int_equal(san_rules_read_file(&rules, path, err, sizeof(err)), 0);
	assert_int_equal(rules.settings.spin_us, 5); /* a last line without a newline */
	san_rules_place(&rules, &rules.rules[0], err, sizeof(err));
	snprintf(want, sizeof(want), "%s:3", path);
	assert_string_equal(err, want);
	assert_string_equal(rules.rules[0].program, "a;b"); /* in a file ; ends no rule */
	unlink(path);
	assert_file_refused("carry\n\n  drop proto x\n", 22, -EINVAL,
			    "3: proto x: known are udp, tcp");
	assert_file_refused("carry\nca\0rry\n", 13, -EINVAL, "2: not a text");
}

UNIT_CASE(add_file__not_readable)
{
	char path[2 * SOCK_FILE_MAX];

	san_rules_read_init(&rules);
	assert_int_equal(san_rules_read_file(&rules, "/nosuch/file", err, sizeof(err)), -ENOENT);
	assert_string_equal(err, "/nosuch/file: No such file or directory");
	assert_int_equal(san_rules_read_file(&rules, "/tmp", err, sizeof(err)), -EISDIR);
	assert_string_equal(err, "/tmp: Is a directory");
	memset(path, '/', sizeof(path));
	path[SOCK_FILE_MAX] = '\0';
	assert_int_equal(san_rules_read_file(&rules, path, err, sizeof(err)), -ENAMETOOLONG);
}

UNIT_CASE(add_file__without_end)
{
	static char lines[(16 << 20) + 4096];

	san_rules_read_init(&rules);
	assert_int_equal(san_rules_read_file(&rules, "/dev/zero", err, sizeof(err)), -EINVAL);
	assert_string_equal(err, "/dev/zero:1: not a text");
	for (size_t i = 0; i < sizeof(lines); i++)
		lines[i] = "#\n"[i % 2];
	assert_file_refused(lines, sizeof(lines), -EFBIG, " File too large");
}

/* A file longer than one read, with rules across the boundary. */
UNIT_CASE(add_file__long)
{
	char text[8000];
	const char *path;
	int n = 0;

	for (int i = 0; i < 100; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "carry user %d #%*s\n", i,
			      i % 40, "");
	path = write_file(text, (size_t)n);
	san_rules_read_init(&rules);
	assert_int_equal(san_rules_read_file(&rules, path, err, sizeof(err)), 0);
	unlink(path);
	assert_int_equal(rules.nb_rules, 100);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(rules.rules[i].user, i);
		assert_int_equal(rules.rules[i].line, i + 1);
	}
}

UNIT_CASE(load__environment_first)
{
	static const char file[] = "carry\nspin 5\nprobe 6\n";
	const char *path = write_file(file, sizeof(file) - 1);

	setenv(SOCK_ENV_FILE, path, 1);
	setenv(SOCK_ENV_RULES, "spin 7;kernel proto udp", 1);
	assert_int_equal(san_rules_read_all(&rules, err, sizeof(err)), 0);
	assert_int_equal(rules.nb_rules, 2);
	assert_int_equal(rules.settings.spin_us, 7);
	assert_int_equal(rules.settings.probe_ms, 6);
	san_rules_place(&rules, &rules.rules[0], err, sizeof(err));
	assert_string_equal(err, SOCK_ENV_RULES ":2");
	expect(NULL, NULL, SOCK_KERNEL, 2);
	/* a setting that loses must be valid, too */
	setenv(SOCK_ENV_RULES, "spin 7", 1);
	unlink(path);
	path = write_file("spin x\n", 7);
	setenv(SOCK_ENV_FILE, path, 1);
	assert_int_equal(san_rules_read_all(&rules, err, sizeof(err)), -EINVAL);
	unlink(path);
	/* a file that is named in the environment must exist */
	assert_int_equal(san_rules_read_all(&rules, err, sizeof(err)), -ENOENT);
	setenv(SOCK_ENV_RULES, "nonsense", 1);
	assert_int_equal(san_rules_read_all(&rules, err, sizeof(err)), -EINVAL);
	unsetenv(SOCK_ENV_RULES);
	/* the usual file need not; an empty name means the usual one */
	if (access(SOCK_RULES_FILE, F_OK) != 0) {
		setenv(SOCK_ENV_FILE, "", 1);
		assert_int_equal(san_rules_read_all(&rules, err, sizeof(err)), 0);
		unsetenv(SOCK_ENV_FILE);
		assert_int_equal(san_rules_read_all(&rules, err, sizeof(err)), 0);
		assert_int_equal(rules.nb_rules, 0);
	}
}

/* ---- matching ---- */

UNIT_CASE(match__first_of_all)
{
	read_rules("");
	expect(NULL, "10.0.0.1:53", SOCK_KERNEL, 0);
	read_rules("kernel remote *:53;carry remote 10.0.0.0/8;drop;both");
	expect(NULL, "10.0.0.1:53", SOCK_KERNEL, 1);
	expect(NULL, "10.0.0.1:54", SOCK_CARRY, 2);
	expect(NULL, "11.0.0.1:54", SOCK_DROP, 3);
	expect(NULL, NULL, SOCK_DROP, 3);
}

UNIT_CASE(match__program)
{
	static const struct {
		const char *glob, *name;
		bool is_match;
	} table[] = {
		{"nginx", "nginx", true},
		{"nginx", "nginx2", false},
		{"nginx", "ngin", false},
		{"ngin?", "nginx", true},
		{"ngin?", "ngin", false},
		{"?", "", false},
		{"n*x", "nx", true},
		{"n*x", "nginx", true},
		{"n*x", "nginy", false},
		{"*nx*", "nginx", true},
		{"*xn*", "nginx", false},
		{"*in*", "nginx", true},
		{"a*b*c", "aXbXbXc", true},
		{"a*b*c", "aXbXbX", false},
		{"*ab", "aab", true},
		{"*?", "", false},
		{"python3.*", "python3.11", true},
		{"python3.*", "python3x11", false},
		{"a**", "a", true},
	};
	struct sock_query q = {.proto = IPPROTO_UDP};
	char text[64];

	UNIT_EACH(row, table) {
		snprintf(text, sizeof(text), "carry program %s", row->glob);
		read_rules(text);
		q.program = row->name;
		if ((san_rules_match(&rules, &q).action == SOCK_CARRY) != row->is_match)
			fail_msg("%s and %s", row->glob, row->name);
	}
	/* also by the name of a link, such as redis-server */
	read_rules("carry program redis-server");
	q.program = "redis-check-rdb";
	assert_int_equal(san_rules_match(&rules, &q).action, SOCK_KERNEL);
	q.called = "redis-server";
	assert_int_equal(san_rules_match(&rules, &q).action, SOCK_CARRY);
	q.program = NULL;
	assert_int_equal(san_rules_match(&rules, &q).action, SOCK_CARRY);
	q.called = NULL;
	assert_int_equal(san_rules_match(&rules, &q).action, SOCK_KERNEL);
}

UNIT_CASE(match__user_and_proto)
{
	read_rules("drop user 0;both proto tcp;kernel user 999;carry user 1000 proto udp");
	expect(NULL, NULL, SOCK_CARRY, 4);
	read_rules("drop user root;drop user 10000;carry user 1000");
	expect(NULL, NULL, SOCK_CARRY, 3);
}

UNIT_CASE(match__addresses)
{
	static const struct {
		const char *range, *address;
		bool is_match;
	} table[] = {
		{"*", "10.0.0.1:1", true},
		{"*", "[fd00::1]:1", true},
		{"*:53", "[fd00::1]:53", true},
		{"*:53", "[fd00::1]:54", false},
		{"*:53-55", "10.0.0.1:52", false},
		{"*:53-55", "10.0.0.1:53", true},
		{"*:53-55", "10.0.0.1:55", true},
		{"*:53-55", "10.0.0.1:56", false},
		{"*:65535", "10.0.0.1:65535", true},
		{"10.0.0.1", "10.0.0.1:0", true},
		{"10.0.0.1", "10.0.0.2:1", false},
		{"10.0.0.0/8", "10.255.255.255:1", true},
		{"10.0.0.0/8", "11.0.0.0:1", false},
		{"10.128.0.0/9", "10.127.255.255:1", false},
		{"10.128.0.0/9", "10.128.0.0:1", true},
		{"10.0.0.0/31", "10.0.0.1:1", true},
		{"10.0.0.0/31", "10.0.0.2:1", false},
		{"0.0.0.0/0", "255.255.255.255:1", true},
		{"0.0.0.0/0", "[fd00::1]:1", false},
		{"[::]/0", "[fd00::1]:1", true},
		{"[::]/0", "10.0.0.1:1", false},
		{"[fd00::]/15", "[fd01::1]:1", true},
		{"[fd00::]/15", "[fd02::1]:1", false},
		{"[fd00::1]", "[fd00::1]:1", true},
		{"[fd00::1]", "[fd00::2]:1", false},
		/* an IPv4 address of a program with IPv6 sockets */
		{"10.0.0.0/8", "[::ffff:10.0.0.1]:1", true},
		{"[::]/0", "[::ffff:10.0.0.1]:1", false},
		/* an unknown address */
		{"*", NULL, false},
	};
	char text[64];

	UNIT_EACH(row, table) {
		snprintf(text, sizeof(text), "carry local %s", row->range);
		read_rules(text);
		expect(row->address, NULL, row->is_match, row->is_match);
		expect(NULL, row->address, SOCK_KERNEL, 0);
		snprintf(text, sizeof(text), "carry remote %s", row->range);
		read_rules(text);
		expect(NULL, row->address, row->is_match, row->is_match);
		expect(row->address, NULL, SOCK_KERNEL, 0);
	}
}

UNIT_CASE(match__other_families)
{
	const struct sockaddr unix_address = {.sa_family = AF_UNIX};
	struct sock_query q = {.program = "p", .local = &unix_address};

	read_rules("carry local *");
	assert_int_equal(san_rules_match(&rules, &q).action, SOCK_KERNEL);
	read_rules("carry");
	assert_int_equal(san_rules_match(&rules, &q).action, SOCK_CARRY);
}

/* A socket bound to all addresses, with rules for some: see san_rules_match(). */
UNIT_CASE(match__wildcard)
{
	static const struct {
		const char *text, *local;
		enum sock_action action;
		uint32_t line;
	} table[] = {
		{"carry local 10.0.0.1:5000", "0.0.0.0:5000", SOCK_BOTH, 1},
		{"carry local 10.0.0.1:5000", "0.0.0.0:5001", SOCK_KERNEL, 0},
		{"carry local 10.0.0.1:5000", "[::]:5000", SOCK_BOTH, 1},
		{"carry local [fd00::1]:5000", "[::]:5000", SOCK_BOTH, 1},
		{"carry local [fd00::1]:5000", "0.0.0.0:5000", SOCK_KERNEL, 0},
		{"carry local *:5000", "0.0.0.0:5000", SOCK_CARRY, 1},
		{"carry local 0.0.0.0/0", "0.0.0.0:5000", SOCK_CARRY, 1},
		{"carry local 0.0.0.0/0", "[::]:5000", SOCK_BOTH, 1},
		{"carry", "0.0.0.0:5000", SOCK_CARRY, 1},
		{"both local 10.0.0.1", "0.0.0.0:5000", SOCK_BOTH, 1},
		{"kernel local 10.0.0.1", "0.0.0.0:5000", SOCK_KERNEL, 1},
		/* an exception for some addresses, a rule for all others */
		{"kernel local 127.0.0.0/8;carry", "0.0.0.0:1", SOCK_BOTH, 1},
		{"carry local 10.0.0.1;carry", "0.0.0.0:1", SOCK_CARRY, 1},
		{"carry local 10.0.0.1;drop", "0.0.0.0:1", SOCK_CARRY, 1},
		{"both local 10.0.0.1;drop", "0.0.0.0:1", SOCK_DROP, 1},
		{"kernel local 10.0.0.1;drop", "0.0.0.0:1", SOCK_DROP, 1},
		{"carry local 10.0.0.1;kernel local 10.0.0.2;drop", "0.0.0.0:1", SOCK_DROP, 1},
		{"carry local 10.0.0.1;both", "0.0.0.0:1", SOCK_BOTH, 1},
		{"kernel local 10.0.0.1;kernel", "0.0.0.0:1", SOCK_KERNEL, 1},
		/* a socket is refused if a part of it is dropped */
		{"carry local 10.0.0.1;drop local 10.0.0.2;carry", "0.0.0.0:1", SOCK_DROP, 2},
		/* an earlier rule has decided */
		{"kernel local 10.0.0.0/8;carry local 10.0.0.1", "0.0.0.0:1", SOCK_KERNEL, 1},
		{"kernel local 10.0.0.0/8;drop local 10.0.0.1", "0.0.0.0:1", SOCK_KERNEL, 1},
		{"carry;drop local 10.0.0.1", "0.0.0.0:1", SOCK_CARRY, 1},
		/* for another user */
		{"kernel user 1 local 10.0.0.0/8;carry local 10.0.0.1", "0.0.0.0:1", SOCK_BOTH, 2},
	};
	struct sock_verdict v;

	UNIT_EACH(row, table) {
		read_rules(row->text);
		expect(row->local, NULL, row->action, row->line);
	}
	/* a remote end is no wildcard */
	read_rules("carry remote 10.0.0.1");
	expect(NULL, "0.0.0.0:1", SOCK_KERNEL, 0);
	read_rules("kernel local 127.0.0.0/8;carry");
	v = ask("0.0.0.0:1", NULL);
	assert_true(v.is_part);
	assert_ptr_equal(v.rest, &rules.rules[1]);
	v = ask("10.0.0.1:1", NULL);
	assert_false(v.is_part);
	assert_null(v.rest);
	assert_ptr_equal(v.rule, &rules.rules[1]);
}

UNIT_CASE(match__wildcard_v6only)
{
	struct sockaddr_storage local;
	struct sock_query q = {.is_v6only = true, .local = address("[::]:1", &local)};

	read_rules("carry local 10.0.0.1");
	assert_int_equal(san_rules_match(&rules, &q).action, SOCK_KERNEL);
	read_rules("carry local [::]/0");
	assert_int_equal(san_rules_match(&rules, &q).action, SOCK_CARRY);
	read_rules("carry local [fd00::1]");
	assert_int_equal(san_rules_match(&rules, &q).action, SOCK_BOTH);
}

UNIT_CASE(rule_misses__first)
{
	struct sockaddr_storage local, remote;
	const struct sock_query q = {
		.program = "prog",
		.uid = 1,
		.proto = IPPROTO_TCP,
		.local = address("10.0.0.1:1", &local),
		.remote = address("10.0.0.2:2", &remote),
	};
	static const struct {
		const char *text, *misses;
	} table[] = {
		{"carry program x user 2 proto udp local *:9 remote *:9", "program"},
		{"carry program p* user 2 proto udp local *:9 remote *:9", "user"},
		{"carry program p* user 1 proto udp local *:9 remote *:9", "proto"},
		{"carry program p* user 1 proto tcp local *:9 remote *:9", "local"},
		{"carry program p* user 1 proto tcp local *:1 remote *:9", "remote"},
		{"carry program p* user 1 proto tcp local *:1 remote *:2", NULL},
	};
	const char *misses;

	UNIT_EACH(row, table) {
		read_rules(row->text);
		misses = san_rules_rule_misses(&rules.rules[0], &q);
		if (row->misses == NULL)
			assert_null(misses);
		else
			assert_string_equal(misses, row->misses);
	}
}

UNIT_CASE(shadow__table)
{
	static const struct {
		const char *first, *second;
		bool is_shadowed;
	} table[] = {
		{"carry", "carry", true},
		{"carry", "drop program x user 1 proto udp local *:1 remote *:2", true},
		{"carry program x", "carry", false},
		{"carry program x", "carry program x", true},
		{"carry program x", "carry program y", false},
		{"carry program x*", "carry program xy", true},
		{"carry program x*", "carry program x*y", true},
		{"carry program x?", "carry program x*", false},
		{"carry program x?", "carry program x??", false},
		{"carry program x?*", "carry program x??", true},
		{"carry program ??", "carry program ?*", false},
		{"carry user 1", "carry", false},
		{"carry user 1", "carry user 2", false},
		{"carry user 1", "carry user 1 proto udp", true},
		{"carry proto udp", "carry proto tcp", false},
		{"carry proto udp", "carry", false},
		{"carry proto udp", "carry proto udp remote *", true},
		{"carry local *", "carry", false}, /* also for sockets that are not bound */
		{"carry local *", "carry local [fd00::1]:1", true},
		{"carry local *:1-5", "carry local *:2-5", true},
		{"carry local *:1-5", "carry local *:2-6", false},
		{"carry local *:2-5", "carry local *:1-5", false},
		{"carry local *:1-5", "carry local *", false},
		{"carry local 10.0.0.0/8", "carry local 10.1.0.0/16", true},
		{"carry local 10.1.0.0/16", "carry local 10.0.0.0/8", false},
		{"carry local 10.0.0.0/8", "carry local 11.0.0.0/8", false},
		{"carry local 0.0.0.0/0", "carry local *", false},
		{"carry local 0.0.0.0/0", "carry local [::]/0", false},
		{"carry local [::]/0", "carry local [fd00::]/64", true},
		{"carry remote 10.0.0.0/8", "carry local 10.0.0.0/8", false},
	};
	char text[256];

	UNIT_EACH(row, table) {
		/* the rule in between is for another program */
		snprintf(text, sizeof(text), "%s;carry program other;%s", row->first, row->second);
		read_rules(text);
		if (san_rules_shadow(&rules, &rules.rules[2]) !=
		    (row->is_shadowed ? &rules.rules[0] : NULL))
			fail_msg("%s", text);
	}
}
