/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "closer.h"
#include "drain.h"
#include "engine_clock.h"
#include "san_log.h"

#define POLL_NS  (5 * SAN_NS_PER_MS)
#define LEAVE_NS (50 * SAN_NS_PER_MS) /* to hand out the last events, and for one more look */

static int
do_drain(struct san_engine *e, void *arg)
{
	*(uint32_t *)arg += san_engine_drain(e);
	return 0;
}

static int
do_cut(struct san_engine *e, void *arg)
{
	(void)arg;
	san_engine_cut(e);
	return 0;
}

static uint32_t
nb_left(const struct server *s)
{
	const struct san_engine_port *port = s->all.ctx->port;
	uint32_t i, left = 0;

	for (i = 0; i < san_engine_count(port); i++)
		san_engine_call(san_engine_at(port, i), do_drain, &left);
	return left;
}

/* What has not ended by now does. */
static void
cut(struct server *s, uint64_t now_ns)
{
	const struct san_engine_port *port = s->all.ctx->port;
	uint32_t i;

	for (i = 0; i < san_engine_count(port); i++)
		san_engine_call(san_engine_at(port, i), do_cut, NULL);
	s->phase = s->all.nb_attached != 0 ? SERVER_LEAVING : SERVER_OVER;
	s->phase_ns = now_ns + LEAVE_NS;
}

void
drain_signal(struct server *s)
{
	uint64_t now_ns = san_engine_clock_monotonic();

	if (s->phase != SERVER_SERVING) {
		s->phase_ns = now_ns;
		return;
	}
	SAN_LOG(DRIVER, NOTICE, "applications=%u: ends, in %u ms at the latest",
		s->all.nb_attached, s->conf.drain_ms);
	s->phase = SERVER_DRAINING;
	s->phase_ns = now_ns + s->conf.drain_ms * SAN_NS_PER_MS;
	notify_stopping();
	closer_put(s->listener, (uid_t)-1); /* with those that nobody took */
	if (unlink(s->conf.socket) != 0)
		SAN_LOG(DRIVER, WARNING, "%s stays: %s", s->conf.socket, strerror(errno));
	apps_close(&s->all);
}

uint64_t
drain_step(struct server *s, uint64_t now_ns)
{
	uint32_t left;

	switch (s->phase) {
	case SERVER_DRAINING:
		left = nb_left(s);
		if (left != 0 && now_ns < s->phase_ns)
			return now_ns + POLL_NS;
		if (left != 0)
			SAN_LOG(DRIVER, WARNING, "queue_pairs=%u had not ended", left);
		cut(s, now_ns);
		return now_ns + POLL_NS;
	case SERVER_LEAVING:
		if (now_ns >= s->phase_ns)
			s->phase = SERVER_OVER;
		return s->phase_ns;
	default:
		return SAN_TIME_NEVER;
	}
}
