/* SPDX-License-Identifier: BSD-3-Clause */

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "users.h"

#define RANGES 1024 /* further lines are ignored */
#define SHARE  16   /* this fraction of the places is reserved for root */

/** Subordinate user IDs of *owner*. */
struct range {
	uid_t owner, from;
	uint32_t nb;
};

static struct range ranges[RANGES];
static uint32_t nb_ranges;

/* Look up a user by number or name. */
static bool
users_find_user(const char *name, uid_t *uid)
{
	const struct passwd *pw;
	unsigned long n;
	char *end;

	n = strtoul(name, &end, 10);
	if (end != name && *end == '\0' && n < UINT32_MAX) {
		*uid = (uid_t)n;
		return true;
	}
	pw = getpwnam(name);
	if (pw != NULL)
		*uid = pw->pw_uid;
	return pw != NULL;
}

void
san_users_read(const char *path)
{
	FILE *f = fopen(path, "re");
	char line[256], name[64];
	struct range *r;

	nb_ranges = 0;
	while (f != NULL && nb_ranges < RANGES && fgets(line, sizeof(line), f) != NULL) {
		r = &ranges[nb_ranges];
		/* subordinate IDs of root each count for themselves: root has no limit */
		if (sscanf(line, "%63[^:]:%u:%u", name, &r->from, &r->nb) == 3 &&
		    users_find_user(name, &r->owner) && r->owner != 0)
			nb_ranges++;
	}
	if (f != NULL)
		fclose(f);
}

uid_t
san_users_owner(uid_t uid)
{
	uint32_t i;

	for (i = 0; i < nb_ranges; i++)
		if (uid >= ranges[i].from && uid - ranges[i].from < ranges[i].nb)
			return ranges[i].owner;
	return uid;
}

bool
san_users_may(uid_t owner, uint32_t own, uint32_t all, uint32_t max)
{
	uint32_t left;

	if (owner == 0)
		return all < max;
	max -= max / SHARE;
	if (all >= max)
		return false;
	left = max - (all - own);
	return own < RTE_MAX(left - left / 4, 1u);
}
