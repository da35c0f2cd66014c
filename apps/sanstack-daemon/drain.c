/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Orderly shutdown: refuse new work, complete posted work, disconnect peers and inform
 * applications. (SYS-2)
 */

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "engine_clock.h"
#include "san_log.h"
#include "server.h"

#define POLL_NS  (5 * SAN_NS_PER_MS)
#define LEAVE_NS (50 * SAN_NS_PER_MS) /* for delivery of the last events to applications */

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
	san_engine_drain_cut(e);
	return 0;
}

/* Call *fn* on each lcore of each port. */
static void
call_all(const struct server *s, san_engine_fn fn, void *arg)
{
	const struct san_engine_port *port;
	uint32_t i, k;

	for (i = 0; i < s->all.nb_ports; i++) {
		port = s->all.ports[i].ctx->port;
		for (k = 0; k < san_engine_count(port); k++)
			san_engine_loop_call(san_engine_at(port, k), fn, arg);
	}
}

void
san_drain_signal(struct server *s)
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
	san_notify_stopping();
	/*
	 * A helper closes the socket, with the connections in it. Remove it from epoll explicitly:
	 * the file stays open until then and its events would still be delivered.
	 */
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->listener, NULL);
	san_helper_close_fd(s->listener);
	if (san_dpdk_memif_unlink(s->conf.socket, s->user, rtsan_provider_host()) != 0)
		SAN_LOG(DRIVER, WARNING, "%s", rtsan_error());
	san_apps_close(&s->all);
}

uint64_t
san_drain_step(struct server *s, uint64_t now_ns)
{
	uint32_t left = 0;

	switch (s->phase) {
	case SERVER_DRAINING:
		call_all(s, do_drain, &left);
		if (left != 0 && now_ns < s->phase_ns)
			return now_ns + POLL_NS;
		if (left != 0)
			SAN_LOG(DRIVER, WARNING, "queue_pairs=%u had not ended", left);
		/* abort them, and let applications read their events */
		call_all(s, do_cut, NULL);
		s->phase = s->all.nb_attached != 0 || left != 0 ? SERVER_LEAVING : SERVER_OVER;
		s->phase_ns = now_ns + LEAVE_NS;
		return now_ns + POLL_NS;
	case SERVER_LEAVING:
		if (now_ns >= s->phase_ns)
			s->phase = SERVER_OVER;
		return s->phase_ns;
	default:
		return SAN_TIME_NEVER;
	}
}
