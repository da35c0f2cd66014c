/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Drop rights, once everything that needs them is open: the user, capabilities (harden.c), and the
 * system calls that the daemon and its helpers do not make (sandbox.c). (SYS-5)
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define HARDEN_GROUPS 64

/** The user to switch to. */
struct harden_user {
	bool given; /**< false: keep the current user */
	uid_t uid;
	gid_t gid;
	gid_t groups[HARDEN_GROUPS];
	int nb_groups;
};

/** Look up *name*, which may be empty. 0; -EINVAL, -EPERM with a text in *err*. */
int san_harden_find(struct harden_user *u, const char *name, char *err, size_t err_len);
/**
 * Switch all threads, including EAL's and future ones, to the user. They lose all capabilities and
 * can't gain new ones. -errno with a text in *err*: some threads may still have them.
 */
int san_harden_drop(const struct harden_user *u, char *err, size_t err_len);

/** The process whose calls are allowed. */
enum sandbox_role {
	SANDBOX_DAEMON,
	SANDBOX_FORKER, /**< forks the helpers */
	SANDBOX_HELPER,
};

/** Restrict the system calls of all threads, permanently. -errno with a text in *err*. */
int san_sandbox_enter(enum sandbox_role role, char *err, size_t err_len);
