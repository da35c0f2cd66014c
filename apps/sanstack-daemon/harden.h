/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DAEMON_HARDEN_H
#define DAEMON_HARDEN_H

/**
 * @file
 * Who we are, and what we may do, once everything that needs more is open. (SYS-5)
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define HARDEN_GROUPS 64

/** Who we become. */
struct harden_user {
	bool given; /**< else we stay who we are */
	uid_t uid;
	gid_t gid;
	gid_t groups[HARDEN_GROUPS];
	int nb_groups;
};

/** *name* may be empty. -EINVAL, -EPERM with what is wrong in *err*. */
int harden_find(struct harden_user *u, const char *name, char *err, size_t err_len);
/** *path* is theirs, so that they can remove it. 0 or -errno. */
int harden_give(const struct harden_user *u, const char *path);
/**
 * All threads, those of EAL and those that come later: be that user, without capabilities and
 * ways to new ones. -errno with *err*: not all of it was done.
 */
int harden_drop(const struct harden_user *u, char *err, size_t err_len);
/** Can we remove *path* when we end? */
bool harden_can_remove(const char *path);

#endif /* DAEMON_HARDEN_H */
