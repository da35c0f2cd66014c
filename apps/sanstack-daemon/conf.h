/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_CONF_H
#define DAEMON_CONF_H

/**
 * @file
 * The daemon's one configuration file, sanstack.conf(5).
 */

#include <stddef.h>
#include <stdint.h>

#include "dpdk_priv.h"
#include "partition.h"
#include "san_log.h"

#define CONF_DEFAULT   "/etc/sanstack/sanstack.conf"
#define CONF_WORDS_MAX 128
#define CONF_WORD_MAX  256
#define CONF_PORTS_MAX 8

enum conf_log_target {
	CONF_LOG_STDERR,
	CONF_LOG_SYSLOG,
};

/** Of [port] or [port NAME]. */
struct conf_port {
	char name[SAN_ENGINE_NAME];
	char *words[CONF_WORDS_MAX]; /**< port arguments, "key=value" */
	int nb_words;
	char device[64]; /**< what port= says */
	uint32_t lcores[SAN_ENGINE_LCORES];
	uint32_t nb_lcores; /**< 0: not named */
};

struct conf {
	char eal[1024];                         /**< arguments of EAL */
	struct conf_port ports[CONF_PORTS_MAX]; /**< the first is that of who names none */
	uint32_t nb_ports;
	char socket[108];
	char group[32];                  /**< who may connect to it; empty: only our own user */
	char user[32];                   /**< who we become; empty: stay who we are */
	char pidfile[108];               /**< empty: none */
	uint32_t seccomp;                /**< 1: with a filter of system calls */
	uint32_t takeover;               /**< 1: another daemon may take over from us */
	uint32_t drain_ms;               /**< that posted work has when we are told to end */
	uint32_t log_target;             /**< enum conf_log_target */
	uint32_t log_level[SAN_LOG_MAX]; /**< of rte_log; 0: as it was at start */
	/* of an application, at most */
	uint32_t app_qps, app_conns; /**< 0: three quarters of all */
	uint32_t app_cqs, app_regions, app_listeners;
	uint64_t app_bytes;
	uint64_t sock_bytes; /**< of all sockets of one user, on each port */
	uint32_t apps, apps_per_uid, strangers;
	struct partitions partitions;
};

/**
 * Read *path*. 0, or -errno with what is wrong in *err*: file, line, and what would be right.
 * conf_free() in either case.
 */
int conf_read(struct conf *conf, const char *path, char *err, size_t err_len);
void conf_free(struct conf *conf);

/** The section of a port, as messages name it. */
void conf_port_section(const struct conf_port *port, char *text, size_t len);

/** Told of each key, with its section, that differs and can't change while we run. */
typedef void (*conf_report)(const char *section, const char *key);
/** *conf* becomes *next* in everything that may change while we run. */
void conf_apply(struct conf *conf, const struct conf *next, conf_report report);

#endif /* DAEMON_CONF_H */
