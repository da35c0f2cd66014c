/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sections and keys are one table; those of [port] are the port arguments of rtsan-dpdk(7),
 * which its provider checks, one by one, so that a wrong one is told with its line.
 */

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

/** Keys outside [port]. A text has no range. */
static const struct key {
	const char *section, *name;
	size_t offset, size;
	uint64_t min, max;
} keys[] = {
	{"eal", "args", TEXT(eal), 0, 0},
	{"daemon", "socket", TEXT(socket), 0, 0},
	{"daemon", "group", TEXT(group), 0, 0},
	{"limits", "apps", NUMBER(apps), 1, SAN_ENGINE_APPS - 1},
	{"limits", "qps", NUMBER(app_qps), 1, 1u << 20},
	{"limits", "cqs", NUMBER(app_cqs), 1, 1u << 20},
	{"limits", "regions", NUMBER(app_regions), 1, 1u << 20},
	{"limits", "listeners", NUMBER(app_listeners), 1, 64},
	{"limits", "bytes", NUMBER(app_bytes), 1, UINT64_MAX},
};

static int
enter(void *arg, const char *section, char *why, size_t why_len)
{
	size_t i;

	(void)arg;
	if (strcmp(section, "port") == 0)
		return 0;
	for (i = 0; i < RTE_DIM(keys); i++)
		if (strcmp(section, keys[i].section) == 0)
			return 0;
	snprintf(why, why_len, "[%s]: known are [eal], [port], [daemon], [limits]", section);
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
	for (i = 0; i < RTE_DIM(keys); i++) {
		const struct key *k = &keys[i];

		if (strcmp(section, k->section) != 0 || strcmp(name, k->name) != 0)
			continue;
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
		.apps = 64,
		.app_qps = 1024,
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
