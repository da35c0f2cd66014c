/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file The daemon's configuration file, sanstack.conf(5). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "dpdk_priv.h"
#include "san_log.h"

#define CONF_DEFAULT   "/etc/sanstack/sanstack.conf"
#define CONF_PORTS_MAX 8
#define CONF_KEYS_MAX  64 /* beside those of ports */

/* ---- section [partitions]: which users and groups may use which P_Key (RT-29, SYS-5) ---- */

#define PARTITIONS_MAX    64
#define PARTITION_MEMBERS 32 /* users and groups of one partition */
#define PARTITION_GROUPS  64 /* groups of one program; further ones are ignored */

struct partition {
	uint16_t pkey;
	bool all; /**< any user */
	uint8_t nb_members;
	struct {
		uint32_t id;
		bool is_group;
	} members[PARTITION_MEMBERS];
};

struct partitions {
	uint32_t nb; /**< 0: any user may use any partition */
	struct partition p[PARTITIONS_MAX];
};

/** Credentials of a program, as the kernel reports them. */
struct partition_user {
	uid_t uid;
	uint32_t nb_groups;
	gid_t groups[PARTITION_GROUPS];
};

/** Parse "0x8001 = user:alice group:hpc", or "= all". -EINVAL with a text in *why*. */
int san_partition_set(struct partitions *all, const char *name, const char *value, char *why,
		      size_t why_len);
bool san_partition_may(const struct partitions *all, uint16_t pkey,
		       const struct partition_user *user);

/* ---- the file ---- */

enum conf_log_target {
	CONF_LOG_STDERR,
	CONF_LOG_SYSLOG,
};

/** One section [port] or [port NAME]. */
struct conf_port {
	char name[SAN_ENGINE_NAME];
	char section[SAN_ENGINE_NAME + 8]; /**< for messages: "port", or "port NAME" */
	struct dpdk_conf dpdk;             /**< the port arguments */
	char *given[DPDK_KEYS_MAX];        /**< text of each key of dpdk_conf_keys, or NULL */
};

struct conf {
	char eal[1024];                         /**< arguments of EAL */
	struct conf_port ports[CONF_PORTS_MAX]; /**< the first is the default */
	uint32_t nb_ports;
	char socket[108];
	char group[32];                  /**< its members may connect; empty: own user only */
	gid_t gid;                       /**< of that group */
	char user[32];                   /**< user to switch to; empty: keep the current one */
	char pidfile[108];               /**< empty: no file */
	uint32_t seccomp;                /**< 1: filter system calls */
	uint32_t takeover;               /**< 1: allow another daemon to take over */
	uint32_t drain_ms;               /**< time for posted work to complete at shutdown */
	uint32_t log_target;             /**< enum conf_log_target */
	uint32_t log_level[SAN_LOG_MAX]; /**< level of rte_log; 0: the level at start */
	/* limits of one application */
	uint32_t app_qps, app_conns; /**< 0: three quarters of the port's */
	uint32_t app_cqs, app_regions, app_listeners;
	uint64_t app_bytes;
	uint64_t sock_bytes; /**< memory of all sockets of one user, per port */
	uint64_t memory;     /**< memory of all programs together; 0: the machine's */
	uint32_t apps, apps_per_uid, unattached;
	struct partitions partitions;
	bool is_given[CONF_KEYS_MAX]; /**< keys in the file, but those of ports */
	const struct conf *before;    /**< of the running daemon, whose names are known */
};

/**
 * Read *path*. 0, or -errno with a text in *err*: file, line, and what is expected. Call
 * san_conf_free() in either case. *before*: the configuration of the running daemon, or NULL.
 */
int san_conf_read(struct conf *conf, const struct conf *before, const char *path, char *err,
		  size_t err_len);
void san_conf_free(struct conf *conf);

/** Write every key as a comment, with meaning, range and default. */
void san_conf_explain(FILE *out);

/** Copy to *conf* all values of *next* that may change at run time, and log the other changes. */
void san_conf_apply(struct conf *conf, const struct conf *next);
