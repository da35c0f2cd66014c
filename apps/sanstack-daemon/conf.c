/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One table describes sections and keys. The keys of a port are port arguments of rtsan-dpdk(7).
 * Its provider checks them one by one, so that an error names the line. config/ has complete
 * examples. (SYS-11)
 */

#include <assert.h>
#include <grp.h>
#include <pwd.h>

#include <rte_common.h>

#include "conf.h"
#include "ini.h"
#include "server.h"

static const char *const level_words[] = {
	"as-started",
	"emergency",
	"alert",
	"critical",
	"error",
	"warning",
	"notice",
	"info",
	"debug",
};
static_assert(RTE_LOG_EMERG == 1 && RTE_LOG_DEBUG == 8, "a word's place is its level");
static const char *const target_words[] = {
	[CONF_LOG_STDERR] = "stderr",
	[CONF_LOG_SYSLOG] = "syslog",
};

#define ARGS  "at most 1023 characters in all"
#define USER  "the name of a user"
#define GROUP "the name of a group"

/* A repeated key appends to the earlier ones, because a line has a limited length. */
static const char *
set_args(void *base, const char *text)
{
	struct conf *conf = base;
	size_t len = strlen(conf->eal);

	if (len + (len != 0) + strlen(text) >= sizeof(conf->eal))
		return ARGS;
	if (len != 0)
		conf->eal[len++] = ' ';
	strcpy(conf->eal + len, text);
	return NULL;
}

static const char *
set_user(void *base, const char *text)
{
	struct conf *conf = base;
	bool is_known = conf->before != NULL && strcmp(text, conf->before->user) == 0;

	if (strlen(text) >= sizeof(conf->user) || (!is_known && getpwnam(text) == NULL))
		return USER;
	strcpy(conf->user, text);
	return NULL;
}

static const char *
set_group(void *base, const char *text)
{
	struct conf *conf = base;
	bool is_known = conf->before != NULL && strcmp(text, conf->before->group) == 0;
	const struct group *g = is_known ? NULL : getgrnam(text);

	if (strlen(text) >= sizeof(conf->group) || (!is_known && g == NULL))
		return GROUP;
	conf->gid = is_known ? conf->before->gid : g->gr_gid;
	strcpy(conf->group, text);
	return NULL;
}

#define LIMIT(f, hi) SAN_KEY_NUM(conf, f, 1, hi), .is_live = true
#define MEMORY(f)    SAN_KEY_BYTES(conf, f, 1, UINT64_MAX), .is_live = true
#define LEVEL(layer) SAN_KEY_CHOICE(conf, log_level[layer], level_words), .is_live = true
#define WHICH        "level of messages"

/* All keys except those of ports. */
static const struct san_key keys[] = {
	{"eal", "args", "arguments of DPDK's EAL, two lcores at least; may be repeated",
	 SAN_KEY_AT(conf, eal), SAN_KEY_READ(set_args, ARGS), .repeats = true},
	{"daemon", "socket", "socket to which programs connect", SAN_KEY_CHARS(conf, socket)},
	{"daemon", "group", "group that may connect, besides the daemon's own user",
	 SAN_KEY_AT(conf, group), SAN_KEY_READ(set_group, GROUP)},
	{"daemon", "user", "user to which the daemon changes once everything is open",
	 SAN_KEY_AT(conf, user), SAN_KEY_READ(set_user, USER)},
	{"daemon", "pidfile", "file with the daemon's pid", SAN_KEY_CHARS(conf, pidfile)},
	{"daemon", "seccomp", "filter of system calls", SAN_KEY_ON_OFF(conf, seccomp)},
	{"daemon", "takeover", "a new daemon may take over from this one",
	 SAN_KEY_ON_OFF(conf, takeover)},
	{"daemon", "drain", "time for posted work before the daemon ends; a number is in ms",
	 SAN_KEY_UINT(SAN_KEY_TIME, conf, drain_ms, 0, 3600 * 1000, 1, SAN_NS_PER_MS),
	 .is_live = true},
	{"log", "target", "where messages go",
	 SAN_KEY_CHOICE(conf, log_target, target_words), .is_live = true},
	{"log", "wire", WHICH, LEVEL(SAN_LOG_WIRE)},
	{"log", "inet", WHICH, LEVEL(SAN_LOG_INET)},
	{"log", "pdl", WHICH, LEVEL(SAN_LOG_PDL)},
	{"log", "cm", WHICH, LEVEL(SAN_LOG_CM)},
	{"log", "tl", WHICH, LEVEL(SAN_LOG_TL)},
	{"log", "ulp", WHICH, LEVEL(SAN_LOG_ULP)},
	{"log", "core", WHICH, LEVEL(SAN_LOG_CORE)},
	{"log", "engine", WHICH, LEVEL(SAN_LOG_ENGINE)},
	{"log", "driver", WHICH ", also of the daemon", LEVEL(SAN_LOG_DRIVER)},
	{"limits", "apps", "programs that are attached to a port",
	 LIMIT(apps, SAN_ENGINE_APPS - 1)},
	{"limits", "apps_per_uid", "programs of one user that are attached, on all ports together",
	 LIMIT(apps_per_uid, SAN_ENGINE_APPS - 1)},
	{"limits", "unattached", "programs that are connected and not attached yet",
	 LIMIT(unattached, 4096), .old = "strangers"},
	{"limits", "qps", "queue pairs of a program; default: three quarters of the port's",
	 LIMIT(app_qps, 1u << 20)},
	{"limits", "conns", "connections of a program; default: three quarters of the port's",
	 LIMIT(app_conns, 1u << 20)},
	{"limits", "cqs", "completion queues of a program", LIMIT(app_cqs, 1u << 20)},
	{"limits", "regions", "regions of a program", LIMIT(app_regions, 1u << 20)},
	{"limits", "listeners", "services for which a program listens", LIMIT(app_listeners, 64)},
	{"limits", "bytes", "memory of a program: regions, queues, and streams at their largest",
	 MEMORY(app_bytes)},
	{"limits", "sock_bytes", "memory of carried sockets of one user, on each port",
	 MEMORY(sock_bytes)},
	{"limits", "memory",
	 "memory of programs together, and of carried sockets; default: the machine's",
	 MEMORY(memory)},
	{0},
};
static_assert(RTE_DIM(keys) <= CONF_KEYS_MAX, "one mark each");

/* ---- [port] and [port NAME] ---- */

#define PORT_SECTION "port"
#define NAME_CHARS   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

/* The port name that *section* gives. NULL: it is not the section of a port. */
static const char *
port_name(const char *section)
{
	size_t len = strlen(PORT_SECTION);

	if (strncmp(section, PORT_SECTION, len) != 0)
		return NULL;
	if (section[len] == '\0')
		return DPDK_PORT_NAME;
	return section[len] == ' ' ? &section[len + 1] : NULL;
}

static const struct conf_port *
conf_find_port(const struct conf *conf, const char *name)
{
	uint32_t i;

	for (i = 0; i < conf->nb_ports; i++)
		if (strcmp(conf->ports[i].name, name) == 0)
			return &conf->ports[i];
	return NULL;
}

static int
enter_port(struct conf *conf, const char *section, const char *name, char *why, size_t why_len)
{
	struct conf_port *port = &conf->ports[conf->nb_ports];

	if (name[0] == '\0' || strlen(name) >= sizeof(port->name) ||
	    name[strspn(name, NAME_CHARS)] != '\0')
		return san_key_fail(why, why_len,
				    "[port %s]: a name is 1 to %zu letters, digits, - and _", name,
				    sizeof(port->name) - 1);
	if (conf_find_port(conf, name) != NULL) /* both are [port] sections without a name */
		return san_key_fail(why, why_len, "[port %s]: [port] has this name", name);
	if (conf->nb_ports == CONF_PORTS_MAX)
		return san_key_fail(why, why_len, "[port %s]: at most %d ports", name,
				    CONF_PORTS_MAX);
	conf->nb_ports++;
	strcpy(port->name, name);
	snprintf(port->section, sizeof(port->section), "%s", section);
	san_dpdk_conf_default(&port->dpdk);
	port->dpdk.poll = DPDK_POLL_LCORE;
	return 0;
}

/* Write what both ports have to *text*. False: nothing. */
static bool
have_both(const struct dpdk_conf *a, const struct dpdk_conf *b, char *text, size_t len)
{
	uint32_t i, k;

	for (i = 0; a->has_lcores && b->has_lcores && i < a->engine.nb_lcores; i++) {
		for (k = 0; k < b->engine.nb_lcores; k++) {
			if (a->engine.lcores[i] != b->engine.lcores[k])
				continue;
			snprintf(text, len, "lcore %u", a->engine.lcores[i]);
			return true;
		}
	}
	snprintf(text, len, "port=%s", a->port);
	return strcmp(a->port, b->port) == 0;
}

/*
 * Check the whole port, like its start. Ports share no device and no lcore. Each of several ports
 * must name its lcores.
 */
static int
leave_port(struct conf *conf, char *why, size_t why_len)
{
	struct conf_port *port = &conf->ports[conf->nb_ports - 1], *other;
	char text[96];

	if (san_dpdk_conf_derive(&port->dpdk, rtsan_provider_host()) != 0)
		return san_key_fail(why, why_len, "[%s]: %s", port->section, rtsan_error());
	for (other = conf->ports; other < port; other++)
		if (have_both(&other->dpdk, &port->dpdk, text, sizeof(text)))
			return san_key_fail(why, why_len, "[%s]: %s is also that of port %s",
					    port->section, text, other->name);
	for (other = conf->ports; conf->nb_ports > 1 && other <= port; other++)
		if (!other->dpdk.has_lcores)
			return san_key_fail(why, why_len,
					    "[%s]: of several ports each needs lcores=, and port "
					    "%s has none",
					    port->section, other->name);
	return 0;
}

/* Keep the text of a key, normalised: another spelling of the same value is no change. */
static int
keep_text(struct conf_port *port, const struct san_key *k, const char *value)
{
	char **given = &port->given[k - dpdk_conf_keys], text[SAN_KEY_TEXT], *all;

	if (san_key_value(k, &port->dpdk, text, sizeof(text)))
		value = text;
	if (asprintf(&all, "%s%s\n", *given != NULL ? *given : "", value) < 0)
		return -ENOMEM;
	free(*given);
	*given = all;
	return 0;
}

/* ---- sections and keys ---- */

static int
conf_section_enter(void *arg, const char *section, char *why, size_t why_len)
{
	const char *name = port_name(section);
	const struct san_key *k;

	if (name != NULL)
		return enter_port(arg, section, name, why, why_len);
	if (strcmp(section, "partitions") == 0)
		return 0;
	for (k = keys; k->name != NULL; k++)
		if (strcmp(section, k->section) == 0)
			return 0;
	return san_key_fail(why, why_len,
			    "[%s]: known are [eal], [port], [port NAME], [daemon], [log], "
			    "[limits], [partitions]",
			    section);
}

static int
conf_section_leave(void *arg, const char *section, char *why, size_t why_len)
{
	bool is_port = port_name(section) != NULL;
	int rc = is_port ? leave_port(arg, why, why_len) : 0;

	if (rc != 0 || (!is_port && strcmp(section, "eal") != 0))
		return rc;
	rc = san_ports_check_lcores(arg);
	return rc == 0 ? 0 : san_key_fail(why, why_len, "%s", rtsan_error());
}

static int
conf_set_key(void *arg, const char *section, const char *name, const char *value, char *why,
	     size_t why_len)
{
	struct conf *conf = arg;
	bool is_port = port_name(section) != NULL;
	struct conf_port *port = &conf->ports[conf->nb_ports - is_port];
	const struct san_key *table = is_port ? dpdk_conf_keys : keys;
	const struct san_key *k = san_key_find(table, is_port ? NULL : section, name);
	bool *is_given = is_port ? port->dpdk.is_given : conf->is_given;
	int rc;

	if (strcmp(section, "partitions") == 0)
		return san_partition_set(&conf->partitions, name, value, why, why_len);
	if (is_port && strcmp(name, "poll") == 0)
		return san_key_fail(why, why_len, "poll: the daemon polls on lcores of its own");
	if (k == NULL)
		return san_key_fail(why, why_len, "%s: unknown key of [%s]", name, section);
	if (!k->repeats && is_given[k - table])
		return san_key_fail(why, why_len, "%s: given twice", name);
	is_given[k - table] = true;
	rc = san_key_set(k, is_port ? (void *)&port->dpdk : conf, name, value, why, why_len);
	return rc == 0 && is_port ? keep_text(port, k, value) : rc;
}

static void
conf_default(struct conf *conf)
{
	*conf = (struct conf){
		.socket = "/run/sanstack/sanstack.sock",
		.seccomp = 1,
		.takeover = 1,
		.drain_ms = 10000,
		.apps = SAN_ENGINE_APPS - 1,
		.apps_per_uid = SAN_ENGINE_APPS - 1,
		.unattached = 64,
		.app_cqs = 256,
		.app_regions = 1024,
		.app_listeners = 8,
		.app_bytes = 4ull << 30,
		.sock_bytes = 1ull << 30,
	};
}

void
san_conf_explain(FILE *out)
{
	static struct dpdk_conf port;
	static struct conf conf;

	conf_default(&conf);
	san_dpdk_conf_default(&port);
	san_ini_explain(out, keys, &conf);
	fputc('\n', out);
	san_ini_explain(out, dpdk_conf_keys, &port);
}

int
san_conf_read(struct conf *conf, const struct conf *before, const char *path, char *err,
	      size_t err_len)
{
	const struct ini ini = {.arg = conf,
				.enter = conf_section_enter,
				.leave = conf_section_leave,
				.set = conf_set_key};
	int rc;

	conf_default(conf);
	conf->before = before;
	rc = san_ini_load(&ini, path, err, err_len);
	if (rc != 0 || conf->nb_ports != 0)
		return rc;
	return san_key_fail(err, err_len, "%s: there is no [port]", path);
}

void
san_conf_free(struct conf *conf)
{
	int i;

	for (; conf->nb_ports > 0; conf->nb_ports--)
		for (i = 0; i < DPDK_KEYS_MAX; i++)
			free(conf->ports[conf->nb_ports - 1].given[i]);
}

/* ---- reload ---- */

static void
conf_report(const char *section, const char *key)
{
	SAN_LOG(DRIVER, WARNING, "%s.%s changed: needs a restart", section, key);
}

/* Report each key whose values differ between the two. */
static void
report_port(const struct conf_port *port, const struct conf_port *next)
{
	const char *section = port->name[0] != '\0' ? port->section : next->section;
	const char *one, *other;
	int i;

	for (i = 0; dpdk_conf_keys[i].name != NULL; i++) {
		one = port->given[i] != NULL ? port->given[i] : "";
		other = next->given[i] != NULL ? next->given[i] : "";
		if (strcmp(one, other) != 0)
			conf_report(section, dpdk_conf_keys[i].name);
	}
}

/* A port that is missing in one file is compared with an empty one. */
static void
report_ports(const struct conf *conf, const struct conf *next)
{
	static const struct conf_port none;
	const struct conf_port *other;
	uint32_t i;

	for (i = 0; i < conf->nb_ports; i++) {
		other = conf_find_port(next, conf->ports[i].name);
		report_port(&conf->ports[i], other != NULL ? other : &none);
	}
	for (i = 0; i < next->nb_ports; i++)
		if (conf_find_port(conf, next->ports[i].name) == NULL)
			report_port(&none, &next->ports[i]);
	if (strcmp(conf->ports[0].name, next->ports[0].name) != 0)
		conf_report(PORT_SECTION, "(the first one)");
}

void
san_conf_apply(struct conf *conf, const struct conf *next)
{
	const struct san_key *k;

	for (k = keys; k->name != NULL; k++) {
		uint8_t *to = (uint8_t *)conf + k->offset;
		const uint8_t *from = (const uint8_t *)next + k->offset;

		if (k->is_live)
			memcpy(to, from, k->size);
		else if (memcmp(to, from, k->size) != 0)
			conf_report(k->section, k->name);
	}
	conf->partitions = next->partitions;
	report_ports(conf, next);
}
