/* SPDX-License-Identifier: BSD-3-Clause */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
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

/** All that programs take: a limit is shared by the same rule for each. */
static const struct {
	const char *name, *see;
	uint32_t fds;   /* descriptors that one may need */
	bool is_common; /* to all ports */
} places[] = {
	[USERS_UNATTACHED] = {"connection", "; see unattached=", 1, true},
	[USERS_APPS] = {"application", "; see apps=", 3},
	[USERS_QPS] = {"queue pair", "; see conns=", 1},
	[USERS_CONNS] = {"connection", "; see conns="},
	[USERS_CQS] = {"completion queue", "; see cqs=", 1},
	[USERS_MRS] = {"region", "; see regions=", 1},
	[USERS_BYTES] = {"bytes", "; see memory=", 0, true},
	[USERS_LISTENERS] = {"listener", ""},
	[USERS_SOCKS] = {"socket", "; see sockets=", 2},
	[USERS_SOCK_BYTES] = {"bytes of sockets", "; see memory=", 0, true},
	[USERS_GROUPS] = {"multicast group", ""},
	[USERS_FDS] = {"descriptor", "; see RLIMIT_NOFILE", 0, true},
};
static_assert(RTE_DIM(places) == USERS_PLACES, "each has a row");

/** What a user has; it exists while that is not nothing. */
struct account {
	uid_t owner;
	uint64_t nb[USERS_PORTS][USERS_PLACES];
	bool is_refused[USERS_PLACES]; /* and nothing was granted or released since */
	LIST_ENTRY(account) link;
};

static LIST_HEAD(, account) accounts = LIST_HEAD_INITIALIZER(accounts);

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

	if (now_ns - checked_ns < CHECK_NS)
		return;
	checked_ns = now_ns;
	if (is_reading)
		return;
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
san_users_may(uid_t owner, uint64_t own, uint64_t all, uint64_t max)
{
	uint64_t left;

	if (owner == 0)
		return all < max;
	max -= max / SHARE;
	if (all >= max)
		return false;
	left = max - (all - own);
	return own < RTE_MAX(left - left / 4, UINT64_C(1));
}

/* NULL: the user has nothing. */
static struct account *
account_of(uid_t owner)
{
	struct account *u;

	LIST_FOREACH(u, &accounts, link)
		if (u->owner == owner)
			return u;
	return NULL;
}

uint64_t
san_users_nb(uint16_t port, const uid_t *owner, enum users_place what)
{
	const struct account *u;
	uint64_t nb = 0;

	port = places[what].is_common ? 0 : port;
	LIST_FOREACH(u, &accounts, link)
		if (owner == NULL || u->owner == *owner)
			nb += u->nb[port][what];
	return nb;
}

uint64_t
san_users_fds(enum users_place what, uint64_t nb)
{
	return nb * places[what].fds;
}

int
san_users_check(const struct users_want *w, char *why, size_t len)
{
	uint64_t own = san_users_nb(w->port, &w->owner, w->what) + w->own;
	uint64_t all = san_users_nb(w->port, NULL, w->what) + w->own + w->others;
	struct account *u = account_of(w->owner);
	int rc = -ENOSPC;

	if (w->nb <= w->max && san_users_may(w->owner, own + w->nb - 1, all + w->nb - 1, w->max))
		return 0;
	snprintf(why, len, "%s: %" PRIu64 " of %" PRIu64 " are in use, %" PRIu64 " of user %u: %s "
			   "is refused%s",
		 places[w->what].name, all, w->max, own, w->owner,
		 w->nb > 1 ? "what it wants" : "one more", places[w->what].see);
	if (u != NULL) {
		rc = u->is_refused[w->what] ? -EALREADY : rc;
		u->is_refused[w->what] = true;
	}
	return rc;
}

int
san_users_count(uint16_t port, uid_t owner, enum users_place what, int64_t change)
{
	static const struct account none;
	struct account *u = account_of(owner);

	if (u == NULL && change > 0) {
		u = calloc(1, sizeof(*u));
		if (u == NULL)
			return -ENOMEM;
		u->owner = owner;
		LIST_INSERT_HEAD(&accounts, u, link);
	}
	if (u == NULL)
		return 0;
	u->nb[places[what].is_common ? 0 : port][what] += (uint64_t)change;
	u->nb[0][USERS_FDS] += (uint64_t)(change * places[what].fds);
	u->is_refused[what] = false;
	if (memcmp(u->nb, none.nb, sizeof(u->nb)) == 0) {
		LIST_REMOVE(u, link);
		free(u);
	}
	return 0;
}
