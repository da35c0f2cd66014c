/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The watchdog must detect an lcore that hangs. So this thread reads the lcore's loop counter and
 * makes no call to it, which would wait. A call on behalf of an application does wait; then this
 * thread hangs as well, and the watchdog fires all the same.
 */

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <bsd/unistd.h>
#include <systemd/sd-daemon.h>

#include "notify.h"
#include "san_log.h"
#include "san_time.h"

void
san_notify_init(int argc, char **argv)
{
	setproctitle_init(argc, argv, environ);
}

void
san_notify_ready(struct notify *n, const struct apps *all)
{
	uint64_t usec;

	if (sd_watchdog_enabled(0, &usec) > 0)
		n->every_ns = usec * SAN_NS_PER_US / 2;
	sd_notify(0, "READY=1");
	san_notify_status(all);
}

void
san_notify_status(const struct apps *all)
{
	char text[512];
	size_t len;
	uint32_t i;

	len = (size_t)snprintf(text, sizeof(text), "serving %u applications on %s",
			       all->nb_attached, all->conf->socket);
	for (i = 0; i < all->nb_ports; i++)
		if (len < sizeof(text) && san_engine_is_lost(all->ports[i].ctx->port))
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"; port %s has failed", all->ports[i].name);
	sd_notifyf(0, "STATUS=%s", text);
	setproctitle("%s", text);
}

void
san_notify_reloading(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		   (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000);
}

void
san_notify_reloaded(void)
{
	sd_notify(0, "READY=1");
}

void
san_notify_stopping(void)
{
	sd_notify(0, "STOPPING=1\nSTATUS=draining");
	setproctitle("draining");
}

void
san_notify_alive(void)
{
	sd_notify(0, "WATCHDOG=1");
}

/* Check that each lcore of the port has completed a loop since the last call. */
static bool
is_alive(uint64_t last[SAN_ENGINE_LCORES], const struct app_port *port)
{
	bool alive = true;
	uint64_t loops;
	uint32_t i;

	for (i = 0; i < port->caps.nb_lcores; i++) {
		loops = san_engine_loop_count(san_engine_at(port->ctx->port, i));
		if (loops == last[i]) {
			SAN_LOG(DRIVER, ERR, "port=%s lcore=%u hangs: the watchdog is not reset",
				port->name, i);
			alive = false;
		}
		last[i] = loops;
	}
	return alive;
}

uint64_t
san_notify_watchdog(struct notify *n, const struct apps *all, uint64_t now_ns)
{
	bool alive = true;
	uint32_t i;

	if (n->every_ns == 0)
		return SAN_TIME_NEVER;
	if (now_ns >= n->next_ns) {
		n->next_ns = now_ns + n->every_ns;
		for (i = 0; i < all->nb_ports; i++)
			alive &= is_alive(n->loops[i], &all->ports[i]);
		if (alive)
			sd_notify(0, "WATCHDOG=1");
	}
	return n->next_ns;
}
