/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sections and keys are one table; those of [port] are the port arguments of rtsan-dpdk(7),
 * which its provider checks, one by one, so that a wrong one is told with its line.
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "app_ini.h"
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

/** When a change of a key counts. */
enum key_when {
	KEY_START = 0, /**< at the next start */
	KEY_LIVE,      /**< at once */
};

/** Keys outside [port]. A text has neither range nor words. */
static const struct key {
	const char *section, *name;
	size_t offset, size;
	uint64_t min, max;
	const char *const *words; /**< of which it is one; the number is its place */
	enum key_when when;
} keys[] = {
	{"eal", "args", TEXT(eal), 0, 0, NULL, KEY_START},
	{"daemon", "socket", TEXT(socket), 0, 0, NULL, KEY_START},
	{"daemon", "group", TEXT(group), 0, 0, NULL, KEY_START},
	{"daemon", "user", TEXT(user), 0, 0, NULL, KEY_START},
	{"daemon", "pidfile", TEXT(pidfile), 0, 0, NULL, KEY_START},
	{"daemon", "seccomp", NUMBER(seccomp), 0, 0, switch_words, KEY_START},
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
};

static int
enter(void *arg, const char *section, char *why, size_t why_len)
{
	size_t i;

	(void)arg;
	if (strcmp(section, "port") == 0 || strcmp(section, "partitions") == 0)
		return 0;
	for (i = 0; i < RTE_DIM(keys); i++)
		if (strcmp(section, keys[i].section) == 0)
			return 0;
	snprintf(why, why_len,
		 "[%s]: known are [eal], [port], [daemon], [log], [limits], [partitions]",
		 section);
	return -EINVAL;
}

static int
add_word(struct conf *conf, const char *word)
{
	conf->words[conf->nb_words] = strdup(word);
	if (conf->words[conf->nb_words] == NULL)
		return -ENOMEM;
	conf->nb_words++;
	return 0;
}

static int
set_port(struct conf *conf, const char *name, const char *value, char *why, size_t why_len)
{
	static struct dpdk_conf scratch; /* checks are one by one: nothing of it is used */
	char word[CONF_WORD_MAX];
	int rc;

	if (conf->nb_words == CONF_WORDS_MAX ||
	    snprintf(word, sizeof(word), "%s=%s", name, value) >= (int)sizeof(word)) {
		snprintf(why, why_len, "%s: too long, or more than %d keys", name, CONF_WORDS_MAX);
		return -EINVAL;
	}
	if (strcmp(name, "poll") == 0) {
		snprintf(why, why_len, "poll: the daemon polls on lcores of its own");
		return -EINVAL;
	}
	memset(&scratch, 0, sizeof(scratch));
	rc = dpdk_conf_word(&scratch, word, rtsan_provider_host());
	if (rc != 0) {
		snprintf(why, why_len, "%s", rtsan_error());
		return rc;
	}
	return add_word(conf, word);
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
set_number(struct conf *conf, const struct key *k, const char *value, char *why, size_t why_len)
{
	uint64_t v;

	if (!dpdk_conf_number(value, &v) || v < k->min || v > k->max) {
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

/* Of EAL's arguments there may be many, and a line is short: each further one adds to them. */
static int
set_text(struct conf *conf, const struct key *k, const char *value, char *why, size_t why_len)
{
	char *text = (char *)conf + k->offset;
	size_t len = text == conf->eal ? strlen(text) : 0;

	if (len + (len != 0) + strlen(value) >= k->size) {
		snprintf(why, why_len, "%s: at most %zu characters", k->name, k->size - 1);
		return -EINVAL;
	}
	if (len == 0)
		memset(text, 0, k->size); /* compared as a whole */
	snprintf(text + len, k->size - len, "%s%s", len != 0 ? " " : "", value);
	return 0;
}

static int
set(void *arg, const char *section, const char *name, const char *value, char *why,
    size_t why_len)
{
	struct conf *conf = arg;
	size_t i;

	if (strcmp(section, "port") == 0)
		return set_port(conf, name, value, why, why_len);
	if (strcmp(section, "partitions") == 0)
		return partition_set(&conf->partitions, name, value, why, why_len);
	for (i = 0; i < RTE_DIM(keys); i++) {
		const struct key *k = &keys[i];

		if (strcmp(section, k->section) != 0 || strcmp(name, k->name) != 0)
			continue;
		if (k->words != NULL)
			return set_word(conf, k, value, why, why_len);
		if (k->max != 0)
			return set_number(conf, k, value, why, why_len);
		return set_text(conf, k, value, why, why_len);
	}
	snprintf(why, why_len, "%s: unknown key of [%s]", name, section);
	return -EINVAL;
}

int
conf_read(struct conf *conf, const char *path, char *err, size_t err_len)
{
	const struct app_ini ini = {.arg = conf, .enter = enter, .set = set};

	*conf = (struct conf){
		.socket = "/run/sanstack/sanstack.sock",
		.seccomp = 1,
		.drain_ms = 10000,
		.apps = 64,
		.apps_per_uid = SAN_ENGINE_APPS - 1,
		.strangers = 64,
		.app_cqs = 256,
		.app_regions = 1024,
		.app_listeners = 8,
		.app_bytes = 4ull << 30,
	};
	if (add_word(conf, "poll=lcore") != 0) {
		snprintf(err, err_len, "no memory");
		return -ENOMEM;
	}
	return app_ini_load(&ini, path, err, err_len);
}

void
conf_free(struct conf *conf)
{
	while (conf->nb_words > 0)
		free(conf->words[--conf->nb_words]);
}

/* ---- again ---- */

static bool
has_word(const struct conf *conf, const char *word)
{
	int i;

	for (i = 0; i < conf->nb_words; i++)
		if (strcmp(conf->words[i], word) == 0)
			return true;
	return false;
}

static bool
has_other(const struct conf *a, const struct conf *b, const char *key, size_t len)
{
	int i;

	for (i = 0; i < a->nb_words; i++)
		if (strncmp(a->words[i], key, len) == 0 && !has_word(b, a->words[i]))
			return true;
	return false;
}

/* Number *i* of the arguments of both, one after the other. */
static const char *
word_of(const struct conf *conf, const struct conf *next, int i)
{
	return i < conf->nb_words ? conf->words[i] : next->words[i - conf->nb_words];
}

/* Has none before number *n* this key? */
static bool
is_first(const struct conf *conf, const struct conf *next, int n, const char *key, size_t len)
{
	int i;

	for (i = 0; i < n; i++)
		if (strncmp(word_of(conf, next, i), key, len) == 0)
			return false;
	return true;
}

/* Each key once, of whose arguments one side has some that the other one lacks. */
static void
report_port(const struct conf *conf, const struct conf *next, conf_report report)
{
	char key[CONF_WORD_MAX];
	const char *word;
	size_t len;
	int i;

	for (i = 0; i < conf->nb_words + next->nb_words; i++) {
		word = word_of(conf, next, i);
		len = strcspn(word, "=") + 1;
		snprintf(key, sizeof(key), "%.*s", (int)len, word);
		if (is_first(conf, next, i, key, len) &&
		    (has_other(conf, next, key, len) || has_other(next, conf, key, len))) {
			key[len - 1] = '\0';
			report("port", key);
		}
	}
}

void
conf_apply(struct conf *conf, const struct conf *next, conf_report report)
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
	report_port(conf, next, report);
}
