/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One table describes sections and keys. The keys of a port are port arguments of rtsan-dpdk(7).
 * Its provider checks them one by one, so that an error names the line. config/ has complete
 * examples. (SYS-11)
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "ini.h"
#include "conf.h"
#include "dpdk_priv.h"

#define TEXT(field)   offsetof(struct conf, field), sizeof(((struct conf *)0)->field)
#define NUMBER(field) offsetof(struct conf, field), sizeof(((struct conf *)0)->field)

#define LEVEL(name, layer)                                                         \
	{                                                                          \
		"log", name, NUMBER(log_level[layer]), 0, 0, level_words, KEY_LIVE \
	}

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
	NULL,
};
static_assert(RTE_LOG_EMERG == 1 && RTE_LOG_DEBUG == 8, "a word's place is its level");
static const char *const target_words[] = {
	[CONF_LOG_STDERR] = "stderr",
	[CONF_LOG_SYSLOG] = "syslog",
	NULL,
};
static const char *const switch_words[] = {"off", "on", NULL};

/** When a changed key takes effect. */
enum key_when {
	KEY_START = 0, /**< at the next start */
	KEY_LIVE,      /**< at once */
};

/** All keys except those of ports. A text has neither a range nor words. */
static const struct key {
	const char *section, *name;
	size_t offset, size;
	uint64_t min, max;
	const char *const *words; /**< the allowed words; the value is the index of the word */
	enum key_when when;
} keys[] = {
	{"eal", "args", TEXT(eal), 0, 0, NULL, KEY_START},
	{"daemon", "socket", TEXT(socket), 0, 0, NULL, KEY_START},
	{"daemon", "group", TEXT(group), 0, 0, NULL, KEY_START},
	{"daemon", "user", TEXT(user), 0, 0, NULL, KEY_START},
	{"daemon", "pidfile", TEXT(pidfile), 0, 0, NULL, KEY_START},
	{"daemon", "seccomp", NUMBER(seccomp), 0, 0, switch_words, KEY_START},
	{"daemon", "takeover", NUMBER(takeover), 0, 0, switch_words, KEY_START},
	{"daemon", "drain", NUMBER(drain_ms), 0, 3600 * 1000, NULL, KEY_LIVE},
	{"log", "target", NUMBER(log_target), 0, 0, target_words, KEY_LIVE},
	LEVEL("wire", SAN_LOG_WIRE),
	LEVEL("inet", SAN_LOG_INET),
	LEVEL("pdl", SAN_LOG_PDL),
	LEVEL("cm", SAN_LOG_CM),
	LEVEL("tl", SAN_LOG_TL),
	LEVEL("ulp", SAN_LOG_ULP),
	LEVEL("core", SAN_LOG_CORE),
	LEVEL("engine", SAN_LOG_ENGINE),
	LEVEL("driver", SAN_LOG_DRIVER),
	{"limits", "apps", NUMBER(apps), 1, SAN_ENGINE_APPS - 1, NULL, KEY_LIVE},
	{"limits", "apps_per_uid", NUMBER(apps_per_uid), 1, SAN_ENGINE_APPS - 1, NULL, KEY_LIVE},
	{"limits", "strangers", NUMBER(strangers), 1, 4096, NULL, KEY_LIVE},
	{"limits", "qps", NUMBER(app_qps), 1, 1u << 20, NULL, KEY_LIVE},
	{"limits", "conns", NUMBER(app_conns), 1, 1u << 20, NULL, KEY_LIVE},
	{"limits", "cqs", NUMBER(app_cqs), 1, 1u << 20, NULL, KEY_LIVE},
	{"limits", "regions", NUMBER(app_regions), 1, 1u << 20, NULL, KEY_LIVE},
	{"limits", "listeners", NUMBER(app_listeners), 1, 64, NULL, KEY_LIVE},
	{"limits", "bytes", NUMBER(app_bytes), 1, UINT64_MAX, NULL, KEY_LIVE},
	{"limits", "sock_bytes", NUMBER(sock_bytes), 1, UINT64_MAX, NULL, KEY_LIVE},
};

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

void
san_conf_port_section(const struct conf_port *port, char *text, size_t len)
{
	bool is_named = strcmp(port->name, DPDK_PORT_NAME) != 0;

	snprintf(text, len, PORT_SECTION "%s%s", is_named ? " " : "", is_named ? port->name : "");
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
add_word(struct conf_port *port, const char *word)
{
	port->words[port->nb_words] = strdup(word);
	if (port->words[port->nb_words] == NULL)
		return -ENOMEM;
	port->nb_words++;
	return 0;
}

static int
enter_port(struct conf *conf, const char *name, char *why, size_t why_len)
{
	struct conf_port *port = &conf->ports[conf->nb_ports];

	if (name[0] == '\0' || strlen(name) >= sizeof(port->name) ||
	    name[strspn(name, NAME_CHARS)] != '\0') {
		snprintf(why, why_len, "[port %s]: a name is 1 to %zu letters, digits, - and _",
			 name, sizeof(port->name) - 1);
		return -EINVAL;
	}
	if (conf_find_port(conf, name) != NULL) { /* both are [port] sections without a name */
		snprintf(why, why_len, "[port %s]: [port] is called so", name);
		return -EINVAL;
	}
	if (conf->nb_ports == CONF_PORTS_MAX) {
		snprintf(why, why_len, "[port %s]: at most %d ports", name, CONF_PORTS_MAX);
		return -EINVAL;
	}
	conf->nb_ports++;
	strcpy(port->name, name);
	strcpy(port->device, "0");
	if (add_word(port, "poll=lcore") == 0)
		return 0;
	snprintf(why, why_len, "no memory");
	return -ENOMEM;
}

static const char *
one_of_both(const struct conf_port *a, const struct conf_port *b, char *text, size_t len)
{
	uint32_t i, k;

	for (i = 0; i < a->nb_lcores; i++) {
		for (k = 0; k < b->nb_lcores; k++) {
			if (a->lcores[i] != b->lcores[k])
				continue;
			snprintf(text, len, "lcore %u", a->lcores[i]);
			return text;
		}
	}
	if (strcmp(a->device, b->device) != 0)
		return NULL;
	snprintf(text, len, "port=%s", a->device);
	return text;
}

/* Check that ports share no device and no lcore. Each of several ports must name its lcores. */
static int
leave_port(const struct conf *conf, char *why, size_t why_len)
{
	const struct conf_port *port = &conf->ports[conf->nb_ports - 1], *other;
	char section[64], text[96];
	uint32_t i;

	san_conf_port_section(port, section, sizeof(section));
	for (i = 0; i + 1 < conf->nb_ports; i++) {
		other = &conf->ports[i];
		if (one_of_both(other, port, text, sizeof(text)) != NULL) {
			snprintf(why, why_len, "[%s]: %s is also that of port %s", section, text,
				 other->name);
			return -EINVAL;
		}
	}
	for (i = 0; i < conf->nb_ports && conf->nb_ports > 1; i++) {
		if (conf->ports[i].nb_lcores != 0)
			continue;
		snprintf(why, why_len, "[%s]: of several ports each needs lcores=, and port %s "
				       "has none",
			 section, conf->ports[i].name);
		return -EINVAL;
	}
	return 0;
}

/* Keep the values of *word* that must be unique among ports. */
static void
keep_own(struct conf_port *port, const struct dpdk_conf *read)
{
	if (read->port[0] != '\0')
		snprintf(port->device, sizeof(port->device), "%s", read->port);
	if (!read->has_lcores)
		return;
	port->nb_lcores = read->engine.nb_lcores;
	memcpy(port->lcores, read->engine.lcores, sizeof(port->lcores));
}

static int
conf_set_port(struct conf_port *port, const char *name, const char *value, char *why,
	      size_t why_len)
{
	static struct dpdk_conf scratch; /* each argument is checked alone */
	char word[CONF_WORD_MAX];
	int rc;

	if (port->nb_words == CONF_WORDS_MAX ||
	    snprintf(word, sizeof(word), "%s=%s", name, value) >= (int)sizeof(word)) {
		snprintf(why, why_len, "%s: too long, or more than %d keys", name, CONF_WORDS_MAX);
		return -EINVAL;
	}
	if (strcmp(name, "poll") == 0) {
		snprintf(why, why_len, "poll: the daemon polls on lcores of its own");
		return -EINVAL;
	}
	memset(&scratch, 0, sizeof(scratch));
	rc = san_dpdk_conf_word(&scratch, word, rtsan_provider_host());
	if (rc != 0) {
		snprintf(why, why_len, "%s", rtsan_error());
		return rc;
	}
	keep_own(port, &scratch);
	return add_word(port, word);
}

/* ---- sections and keys ---- */

static int
conf_section_enter(void *arg, const char *section, char *why, size_t why_len)
{
	const char *name = port_name(section);
	size_t i;

	if (name != NULL)
		return enter_port(arg, name, why, why_len);
	if (strcmp(section, "partitions") == 0)
		return 0;
	for (i = 0; i < RTE_DIM(keys); i++)
		if (strcmp(section, keys[i].section) == 0)
			return 0;
	snprintf(why, why_len,
		 "[%s]: known are [eal], [port], [port NAME], [daemon], [log], [limits], "
		 "[partitions]",
		 section);
	return -EINVAL;
}

static int
conf_section_leave(void *arg, const char *section, char *why, size_t why_len)
{
	return port_name(section) != NULL ? leave_port(arg, why, why_len) : 0;
}

static int
set_word(struct conf *conf, const struct key *k, const char *value, char *why, size_t why_len)
{
	size_t len;
	uint32_t i;

	for (i = 0; k->words[i] != NULL; i++) {
		if (strcmp(k->words[i], value) != 0)
			continue;
		memcpy((uint8_t *)conf + k->offset, &i, sizeof(i));
		return 0;
	}
	len = (size_t)snprintf(why, why_len, "%s = %s: known are", k->name, value);
	for (i = 0; k->words[i] != NULL && len < why_len; i++)
		len += (size_t)snprintf(why + len, why_len - len, "%s %s", i == 0 ? "" : ",",
					k->words[i]);
	return -EINVAL;
}

static int
conf_set_number(struct conf *conf, const struct key *k, const char *value, char *why,
		size_t why_len)
{
	uint64_t v;

	if (!san_dpdk_conf_number(value, &v) || v < k->min || v > k->max) {
		snprintf(why, why_len, "%s = %s: must be a number, %" PRIu64 " to %" PRIu64,
			 k->name, value, k->min, k->max);
		return -EINVAL;
	}
	if (k->size == sizeof(uint32_t)) {
		uint32_t narrow = (uint32_t)v;

		memcpy((uint8_t *)conf + k->offset, &narrow, sizeof(narrow));
	} else {
		memcpy((uint8_t *)conf + k->offset, &v, sizeof(v));
	}
	return 0;
}

/* A repeated [eal] args key appends to the earlier ones, because a line has a limited length. */
static int
conf_set_text(struct conf *conf, const struct key *k, const char *value, char *why, size_t why_len)
{
	char *text = (char *)conf + k->offset;
	size_t len = text == conf->eal ? strlen(text) : 0;

	if (len + (len != 0) + strlen(value) >= k->size) {
		snprintf(why, why_len, "%s: at most %zu characters", k->name, k->size - 1);
		return -EINVAL;
	}
	if (len == 0)
		memset(text, 0, k->size); /* san_conf_apply() compares the whole field */
	snprintf(text + len, k->size - len, "%s%s", len != 0 ? " " : "", value);
	return 0;
}

static int
conf_set_key(void *arg, const char *section, const char *name, const char *value, char *why,
	     size_t why_len)
{
	struct conf *conf = arg;
	size_t i;

	if (port_name(section) != NULL)
		return conf_set_port(&conf->ports[conf->nb_ports - 1], name, value, why, why_len);
	if (strcmp(section, "partitions") == 0)
		return san_partition_set(&conf->partitions, name, value, why, why_len);
	for (i = 0; i < RTE_DIM(keys); i++) {
		const struct key *k = &keys[i];

		if (strcmp(section, k->section) != 0 || strcmp(name, k->name) != 0)
			continue;
		if (k->words != NULL)
			return set_word(conf, k, value, why, why_len);
		if (k->max != 0)
			return conf_set_number(conf, k, value, why, why_len);
		return conf_set_text(conf, k, value, why, why_len);
	}
	snprintf(why, why_len, "%s: unknown key of [%s]", name, section);
	return -EINVAL;
}

int
san_conf_read(struct conf *conf, const char *path, char *err, size_t err_len)
{
	const struct ini ini = {.arg = conf,
				.enter = conf_section_enter,
				.leave = conf_section_leave,
				.set = conf_set_key};
	int rc;

	*conf = (struct conf){
		.socket = "/run/sanstack/sanstack.sock",
		.seccomp = 1,
		.takeover = 1,
		.drain_ms = 10000,
		.apps = SAN_ENGINE_APPS - 1,
		.apps_per_uid = SAN_ENGINE_APPS - 1,
		.strangers = 64,
		.app_cqs = 256,
		.app_regions = 1024,
		.app_listeners = 8,
		.app_bytes = 4ull << 30,
		.sock_bytes = 1ull << 30,
	};
	rc = san_ini_load(&ini, path, err, err_len);
	if (rc != 0 || conf->nb_ports != 0)
		return rc;
	snprintf(err, err_len, "%s: there is no [port]", path);
	return -EINVAL;
}

void
san_conf_free(struct conf *conf)
{
	while (conf->nb_ports > 0) {
		struct conf_port *port = &conf->ports[--conf->nb_ports];

		while (port->nb_words > 0)
			free(port->words[--port->nb_words]);
	}
}

/* ---- reload ---- */

static bool
conf_has_word(const struct conf_port *port, const char *word)
{
	int i;

	for (i = 0; i < port->nb_words; i++)
		if (strcmp(port->words[i], word) == 0)
			return true;
	return false;
}

static bool
has_other(const struct conf_port *a, const struct conf_port *b, const char *key, size_t len)
{
	int i;

	for (i = 0; i < a->nb_words; i++)
		if (strncmp(a->words[i], key, len) == 0 && !conf_has_word(b, a->words[i]))
			return true;
	return false;
}

/* Argument *i* of both ports, counting those of *port* first. */
static const char *
conf_word_of(const struct conf_port *port, const struct conf_port *next, int i)
{
	return i < port->nb_words ? port->words[i] : next->words[i - port->nb_words];
}

/* True if no argument before number *n* has this key. */
static bool
is_first(const struct conf_port *port, const struct conf_port *next, int n, const char *key,
	 size_t len)
{
	int i;

	for (i = 0; i < n; i++)
		if (strncmp(conf_word_of(port, next, i), key, len) == 0)
			return false;
	return true;
}

/* Report once each key whose arguments differ between the two. */
static void
report_port(const struct conf_port *port, const struct conf_port *next, conf_report report)
{
	char key[CONF_WORD_MAX], section[64];
	const char *word;
	size_t len;
	int i;

	san_conf_port_section(port->nb_words != 0 ? port : next, section, sizeof(section));
	for (i = 0; i < port->nb_words + next->nb_words; i++) {
		word = conf_word_of(port, next, i);
		len = strcspn(word, "=") + 1;
		snprintf(key, sizeof(key), "%.*s", (int)len, word);
		if (is_first(port, next, i, key, len) &&
		    (has_other(port, next, key, len) || has_other(next, port, key, len))) {
			key[len - 1] = '\0';
			report(section, key);
		}
	}
}

/* A port that is missing in one file is compared with an empty one. */
static void
report_ports(const struct conf *conf, const struct conf *next, conf_report report)
{
	static const struct conf_port none;
	const struct conf_port *other;
	uint32_t i;

	for (i = 0; i < conf->nb_ports; i++) {
		other = conf_find_port(next, conf->ports[i].name);
		report_port(&conf->ports[i], other != NULL ? other : &none, report);
	}
	for (i = 0; i < next->nb_ports; i++)
		if (conf_find_port(conf, next->ports[i].name) == NULL)
			report_port(&none, &next->ports[i], report);
	if (strcmp(conf->ports[0].name, next->ports[0].name) != 0)
		report(PORT_SECTION, "(the first one)");
}

void
san_conf_apply(struct conf *conf, const struct conf *next, conf_report report)
{
	size_t i;

	for (i = 0; i < RTE_DIM(keys); i++) {
		uint8_t *to = (uint8_t *)conf + keys[i].offset;
		const uint8_t *from = (const uint8_t *)next + keys[i].offset;

		if (keys[i].when == KEY_LIVE)
			memcpy(to, from, keys[i].size);
		else if (memcmp(to, from, keys[i].size) != 0)
			report(keys[i].section, keys[i].name);
	}
	conf->partitions = next->partitions;
	report_ports(conf, next, report);
}
