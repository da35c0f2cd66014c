/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_CONF_H
#define DAEMON_CONF_H

/**
 * @file
 * The daemon's one configuration file, sanstack.conf(5).
 */

#include <stddef.h>
#include <stdint.h>

#define CONF_DEFAULT   "/etc/sanstack/sanstack.conf"
#define CONF_WORDS_MAX 128
#define CONF_WORD_MAX  256

struct conf {
	char eal[1024];              /**< arguments of EAL */
	char *words[CONF_WORDS_MAX]; /**< port arguments, "key=value" */
	int nb_words;
	char socket[108];
	char group[32]; /**< who may connect to it; empty: only our own user */
	/* of an application, at most */
	uint32_t app_qps, app_cqs, app_regions, app_listeners;
	uint64_t app_bytes;
	uint32_t apps;
};

/**
 * Read *path*. 0, or -errno with what is wrong in *err*: file, line, and what would be right.
 * conf_free() in either case.
 */
int conf_read(struct conf *conf, const char *path, char *err, size_t err_len);
void conf_free(struct conf *conf);

#endif /* DAEMON_CONF_H */
