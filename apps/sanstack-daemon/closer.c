/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The list is as long as there are descriptors, so it needs no other bound. The thread is not
 * waited for at the end: it may be the one that waits.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include "closer.h"

struct entry {
	int fd;
	uid_t uid;
	STAILQ_ENTRY(entry)
	link;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	STAILQ_HEAD(, entry)
	entries;
} closer = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.more = PTHREAD_COND_INITIALIZER,
	.entries = STAILQ_HEAD_INITIALIZER(closer.entries),
};

static void *
work(void *arg)
{
	struct entry *e;

	pthread_mutex_lock(&closer.lock);
	for (;;) {
		while ((e = STAILQ_FIRST(&closer.entries)) == NULL)
			pthread_cond_wait(&closer.more, &closer.lock);
		pthread_mutex_unlock(&closer.lock);
		close(e->fd);
		pthread_mutex_lock(&closer.lock);
		/* until now it counted */
		STAILQ_REMOVE_HEAD(&closer.entries, link);
		free(e);
	}
	return arg;
}

int
closer_start(void)
{
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, work, NULL);

	if (rc != 0)
		return -rc;
	pthread_setname_np(thread, "san-closer");
	return -pthread_detach(thread);
}

void
closer_put(int fd, uid_t uid)
{
	struct entry *e;

	/* memory alone has seals, and goes at once; without memory there is nothing better */
	if (fcntl(fd, F_GET_SEALS) >= 0 || (e = malloc(sizeof(*e))) == NULL) {
		close(fd);
		return;
	}
	*e = (struct entry){.fd = fd, .uid = uid};
	pthread_mutex_lock(&closer.lock);
	STAILQ_INSERT_TAIL(&closer.entries, e, link);
	pthread_cond_signal(&closer.more);
	pthread_mutex_unlock(&closer.lock);
}

uint32_t
closer_waiting(uid_t uid)
{
	const struct entry *e;
	uint32_t n = 0;

	pthread_mutex_lock(&closer.lock);
	STAILQ_FOREACH(e, &closer.entries, link)
		if (e->uid == uid)
			n++;
	pthread_mutex_unlock(&closer.lock);
	return n;
}
