/* SPDX-License-Identifier: BSD-3-Clause */

#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rte_common.h>

#include "san_time.h"
#include "users.h"

#define RANGES   1024 /* further lines are ignored */
#define SHARE    16   /* this fraction of the places is reserved for root */
#define CHECK_NS (100 * SAN_NS_PER_MS)

/** Subordinate user IDs of *owner*. */
struct range {
	uid_t owner, from;
	uint32_t nb;
};

/** The one in use, and one that a thread fills: to look up names may take long. */
static struct {
	struct range ranges[RANGES];
	uint32_t nb;
} tables[2];
static _Atomic uint32_t current;
static _Atomic bool is_reading;
static const char *file;

bool
san_users_find(const char *name, uid_t *uid)
{
	struct passwd entry, *pw = NULL;
	char buf[4096], *end;
	unsigned long n;

	getpwnam_r(name, &entry, buf, sizeof(buf), &pw);
	n = pw != NULL ? pw->pw_uid : strtoul(name, &end, 10);
	*uid = (uid_t)n;
	return pw != NULL || (end != name && *end == '\0' && n < USERS_UNPROVED);
}

static void *
users_read_file(void *arg)
{
	uint32_t next = !current, nb = 0;
	FILE *f = fopen(file, "re");
	char line[256], name[64];
	struct range *r;

	while (f != NULL && nb < RANGES && fgets(line, sizeof(line), f) != NULL) {
		r = &tables[next].ranges[nb];
		/* subordinate IDs of root each count for themselves: root has no limit */
		if (sscanf(line, "%63[^:]:%u:%u", name, &r->from, &r->nb) == 3 &&
		    san_users_find(name, &r->owner) && r->owner != 0)
			nb++;
	}
	if (f != NULL)
		fclose(f);
	tables[next].nb = nb;
	current = next;
	is_reading = false;
	return arg;
}

void
san_users_read(const char *path)
{
	file = path;
	users_read_file(NULL);
}

void
san_users_follow(uint64_t now_ns)
{
	static uint64_t checked_ns;
	static struct stat was; /* at the last reading */
	struct stat now = {.st_size = 0};
	pthread_t thread;

	if (is_reading || now_ns - checked_ns < CHECK_NS)
		return;
	checked_ns = now_ns;
	stat(file, &now);
	if (now.st_size == was.st_size &&
	    memcmp(&now.st_ctim, &was.st_ctim, sizeof(now.st_ctim)) == 0)
		return;
	is_reading = true;
	if (pthread_create(&thread, NULL, users_read_file, NULL) != 0) {
		is_reading = false;
		return;
	}
	pthread_detach(thread);
	was = now;
}

uid_t
san_users_owner(uid_t uid, bool is_root)
{
	const struct range *r = tables[current].ranges;
	uint32_t i;

	if (uid == 0)
		return is_root ? 0 : USERS_UNPROVED;
	for (i = 0; i < tables[current].nb; i++)
		if (uid >= r[i].from && uid - r[i].from < r[i].nb)
			return r[i].owner;
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
