/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Each user has a thread as long as something of his waits, so who makes it wait for long makes
 * only his own wait. Lists are as long as there are descriptors, and need no other bound.
 * Threads are not waited for at the end: they may be what waits.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "closer.h"

struct entry {
	int fd;
	STAILQ_ENTRY(entry)
	link;
};

struct user {
	uid_t uid;
	uint32_t nb; /**< that wait, with the one that is being closed */
	STAILQ_HEAD(, entry)
	entries;
	LIST_ENTRY(user)
	link;
};

static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, user)
	users;
} closer = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct user *
find(uid_t uid)
{
	struct user *u;

	LIST_FOREACH(u, &closer.users, link)
		if (u->uid == uid)
			return u;
	return NULL;
}

/* All that a user has; and then he is forgotten. */
static void *
work(void *arg)
{
	struct user *u = arg;
	struct entry *e;

	pthread_mutex_lock(&closer.lock);
	while ((e = STAILQ_FIRST(&u->entries)) != NULL) {
		STAILQ_REMOVE_HEAD(&u->entries, link);
		pthread_mutex_unlock(&closer.lock);
		close(e->fd);
		free(e);
		pthread_mutex_lock(&closer.lock);
		u->nb--;
	}
	LIST_REMOVE(u, link);
	pthread_mutex_unlock(&closer.lock);
	free(u);
	return NULL;
}

static struct user *
begin(uid_t uid)
{
	struct user *u = calloc(1, sizeof(*u));
	pthread_t thread;

	if (u == NULL)
		return NULL;
	u->uid = uid;
	STAILQ_INIT(&u->entries);
	/* it waits for the lock, which we have */
	if (pthread_create(&thread, NULL, work, u) != 0) {
		free(u);
		return NULL;
	}
	pthread_setname_np(thread, "san-closer");
	pthread_detach(thread);
	LIST_INSERT_HEAD(&closer.users, u, link);
	return u;
}

static bool
put_locked(int fd, uid_t uid)
{
	struct entry *e = malloc(sizeof(*e));
	struct user *u = find(uid);

	if (e != NULL && u == NULL)
		u = begin(uid);
	if (e == NULL || u == NULL) {
		free(e);
		return false;
	}
	e->fd = fd;
	STAILQ_INSERT_TAIL(&u->entries, e, link);
	u->nb++;
	return true;
}

void
closer_put(int fd, uid_t uid)
{
	bool is_put;

	/* memory alone has seals, and goes at once */
	if (fcntl(fd, F_GET_SEALS) >= 0) {
		close(fd);
		return;
	}
	pthread_mutex_lock(&closer.lock);
	is_put = put_locked(fd, uid);
	pthread_mutex_unlock(&closer.lock);
	if (!is_put)
		close(fd); /* there is nothing better */
}

uint32_t
closer_waiting(uid_t uid)
{
	const struct user *u;
	uint32_t n;

	pthread_mutex_lock(&closer.lock);
	u = find(uid);
	n = u != NULL ? u->nb : 0;
	pthread_mutex_unlock(&closer.lock);
	return n;
}
