/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_PARTITION_H
#define DAEMON_PARTITION_H

/**
 * @file
 * Which users and groups may use which partition (P_Key): section [partitions]. (RT-29, SYS-5)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PARTITIONS_MAX    64
#define PARTITION_MEMBERS 16 /* users and groups of one partition */
#define PARTITION_GROUPS  64 /* groups of one program; further ones are ignored */

struct partition {
	uint16_t pkey;
	bool all; /**< any user */
	uint8_t nb_users, nb_groups;
	uid_t users[PARTITION_MEMBERS];
	gid_t groups[PARTITION_MEMBERS];
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

#endif /* DAEMON_PARTITION_H */
