/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <limits.h>
#include <time.h>

#include "rtsan_priv.h"

#define MS_PER_S  1000
#define NS_PER_MS 1000000

int64_t
rtsan_turn_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * MS_PER_S + ts.tv_nsec / NS_PER_MS;
}

int64_t
rtsan_turn_end_ms(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : rtsan_turn_now_ms() + timeout_ms;
}

int
rtsan_turn_left_ms(int64_t end_ms)
{
	int64_t left;

	if (end_ms < 0)
		return -1;
	left = end_ms - rtsan_turn_now_ms();
	if (left < 0)
		return 0;
	return left > INT_MAX ? INT_MAX : (int)left;
}

int
rtsan_turn_init(struct rtsan_turn *t)
{
	pthread_condattr_t attr;
	int rc = pthread_condattr_init(&attr);

	if (rc != 0)
		return rc;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	rc = pthread_cond_init(&t->seen, &attr);
	pthread_condattr_destroy(&attr);
	if (rc != 0)
		return rc;
	t->busy = false;
	rc = pthread_mutex_init(&t->lock, NULL);
	if (rc != 0)
		pthread_cond_destroy(&t->seen);
	return rc;
}

void
rtsan_turn_fini(struct rtsan_turn *t)
{
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->seen);
}

static int
turn_look_once(struct rtsan_turn *t, const struct rtsan_turn_ops *ops, void *of, int64_t end_ms)
{
	int rc, taken;

	t->busy = true;
	pthread_mutex_unlock(&t->lock);
	rc = ops->sleep(of, rtsan_turn_left_ms(end_ms));
	pthread_mutex_lock(&t->lock);
	t->busy = false;
	taken = ops->take(of);
	/* Another waiting thread must check from now on, if we stop. */
	pthread_cond_broadcast(&t->seen);
	if (taken < 0)
		return taken;
	return rc < 0 && rc != -EINTR ? rc : 0;
}

int
rtsan_turn_wait(struct rtsan_turn *t, const struct rtsan_turn_ops *ops, void *of,
		const void *what, int64_t end_ms)
{
	const struct timespec ts = {
		.tv_sec = end_ms / MS_PER_S,
		.tv_nsec = end_ms % MS_PER_S * NS_PER_MS,
	};
	int rc = t->busy ? 0 : ops->take(of);

	while (rc == 0 && !ops->done(what)) {
		if (rtsan_turn_left_ms(end_ms) == 0)
			return -EAGAIN;
		if (t->busy && end_ms < 0) /* wait while another thread checks */
			pthread_cond_wait(&t->seen, &t->lock);
		else if (t->busy)
			pthread_cond_timedwait(&t->seen, &t->lock, &ts);
		else
			rc = turn_look_once(t, ops, of, end_ms);
	}
	return ops->done(what) ? 0 : rc;
}
