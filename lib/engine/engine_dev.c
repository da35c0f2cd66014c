/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The kernel's device behind a port. An operator may take it down, rename it, change its MTU or
 * delete it while the port is in use, and the drivers do not report that. So it is checked together
 * with the MAC address (engine_mac.c), in the interrupt thread, and changes appear in the log and
 * in telemetry. (RT-38)
 */

#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "engine_priv.h"
#include "san_log.h"

static const char *const names[] = {
	[SAN_ENGINE_DEV_NONE] = "none",
	[SAN_ENGINE_DEV_UP] = "up",
	[SAN_ENGINE_DEV_DOWN] = "down",
	[SAN_ENGINE_DEV_REMOVED] = "deleted",
};
static_assert(RTE_DIM(names) == SAN_ENGINE_DEV_STATES, "one for each");

const char *
san_engine_dev_state(const struct san_engine_port *p)
{
	return names[atomic_load_explicit(&p->dev.state, memory_order_relaxed)];
}

static void
engine_dev_change_state(struct san_engine_port *p, enum san_engine_dev state)
{
	enum san_engine_dev was = atomic_exchange(&p->dev.state, state);

	if (was == state || (was == SAN_ENGINE_DEV_NONE && state == SAN_ENGINE_DEV_UP))
		return;
	if (state == SAN_ENGINE_DEV_UP)
		SAN_LOG(ENGINE, NOTICE, "port=%u device=%s is up again", p->id, p->dev.name);
	else if (state == SAN_ENGINE_DEV_DOWN)
		SAN_LOG(ENGINE, WARNING,
			"port=%u device=%s is down, no packets pass: ip link set %s up",
			p->id, p->dev.name, p->dev.name);
	else
		SAN_LOG(ENGINE, ERR,
			"port=%u device=%s was deleted, no packets pass: a new device needs a "
			"new start of the port",
			p->id, p->dev.name);
}

void
san_engine_dev_look(struct san_engine_port *p, int fd)
{
	struct ifreq req = {.ifr_ifindex = (int)p->if_index};
	uint32_t mtu;

	/* by its index: the name may have changed */
	if (ioctl(fd, SIOCGIFNAME, &req) != 0) {
		if (errno == ENODEV || errno == ENXIO)
			engine_dev_change_state(p, SAN_ENGINE_DEV_REMOVED);
		return;
	}
	if (p->dev.name[0] != '\0' && strcmp(p->dev.name, req.ifr_name) != 0)
		SAN_LOG(ENGINE, NOTICE,
			"port=%u device=%s is called %s now; so it must be at the next start",
			p->id, p->dev.name, req.ifr_name);
	snprintf(p->dev.name, sizeof(p->dev.name), "%s", req.ifr_name);
	if (ioctl(fd, SIOCGIFFLAGS, &req) == 0)
		engine_dev_change_state(
			p, (req.ifr_flags & IFF_UP) != 0 ? SAN_ENGINE_DEV_UP : SAN_ENGINE_DEV_DOWN);
	if (ioctl(fd, SIOCGIFMTU, &req) != 0)
		return;
	mtu = (uint32_t)req.ifr_mtu;
	if (p->dev.mtu != 0 && mtu < p->mtu && mtu != p->dev.mtu)
		SAN_LOG(ENGINE, WARNING,
			"port=%u device=%s has an MTU of %u now, less than the port's %u: longer "
			"packets are lost; ip link set %s mtu %u, or start again",
			p->id, p->dev.name, mtu, p->mtu, p->dev.name, p->mtu);
	else if (p->dev.mtu != 0 && mtu != p->dev.mtu)
		SAN_LOG(ENGINE, NOTICE,
			"port=%u device=%s has an MTU of %u now; the port keeps %u until it is "
			"started again",
			p->id, p->dev.name, mtu, p->mtu);
	p->dev.mtu = mtu;
}
