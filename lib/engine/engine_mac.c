/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The kernel's device behind a port. An operator may take it down, rename it, change its MTU or
 * delete it while the port is in use, and the drivers do not report that. So it is checked
 * periodically in the interrupt thread, and changes appear in the log and in telemetry. (RT-38)
 *
 * The port's MAC address. Where the device is the kernel's too, it may change at runtime (ip link
 * set address). The drivers read it only once, so the kernel is asked periodically in the interrupt
 * thread, and each lcore uses the new address from its next round on. Requests and announcements
 * with an old address would divert the neighbours' traffic from the kernel. (RT-38)
 */

#include <net/if.h>
#include <sys/ioctl.h>

#include <rte_alarm.h>

#include "engine_priv.h"
#include "san_log.h"

/* Interval of the checks. For so long, neighbours that ask may get an outdated address. */
#define LOOK_US (100 * 1000)

static uint64_t
engine_mac_word_of(const void *mac)
{
	uint64_t word = 0;

	memcpy(&word, mac, RTE_ETHER_ADDR_LEN);
	return word;
}

struct rte_ether_addr
san_engine_mac(const struct san_engine_port *p)
{
	uint64_t word = atomic_load_explicit(&p->mac, memory_order_relaxed);
	struct rte_ether_addr mac;

	memcpy(&mac, &word, sizeof(mac));
	return mac;
}

void
san_engine_mac_set(struct san_engine_port *p, const struct rte_ether_addr *mac)
{
	atomic_store_explicit(&p->mac, engine_mac_word_of(mac), memory_order_relaxed);
}

/* ---- the kernel's device ---- */

#define DEV_NAME(state, name, help) #name,

static const char *const names[] = {SAN_ENGINE_DEVS(DEV_NAME)};

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

/* Check the device, use its address, and report changes. */
static void
engine_dev_look(struct san_engine_port *p)
{
	struct ifreq req = {.ifr_ifindex = (int)p->info.if_index};
	struct rte_ether_addr mac;
	uint32_t mtu;

	/* by its index: the name may have changed */
	if (ioctl(p->mac_fd, SIOCGIFNAME, &req) != 0) {
		if (errno == ENODEV || errno == ENXIO)
			engine_dev_change_state(p, SAN_ENGINE_DEV_REMOVED);
		return;
	}
	if (ioctl(p->mac_fd, SIOCGIFHWADDR, &req) == 0) {
		memcpy(&mac, req.ifr_hwaddr.sa_data, sizeof(mac));
		if (engine_mac_word_of(&mac) != p->mac && rte_is_valid_assigned_ether_addr(&mac)) {
			SAN_LOG(ENGINE, NOTICE, "port=%u mac=" RTE_ETHER_ADDR_PRT_FMT, p->id,
				RTE_ETHER_ADDR_BYTES(&mac));
			san_engine_mac_set(p, &mac);
		}
	}
	if (p->dev.name[0] != '\0' && strcmp(p->dev.name, req.ifr_name) != 0)
		SAN_LOG(ENGINE, NOTICE,
			"port=%u device=%s is called %s now; so it must be at the next start",
			p->id, p->dev.name, req.ifr_name);
	snprintf(p->dev.name, sizeof(p->dev.name), "%s", req.ifr_name);
	if (ioctl(p->mac_fd, SIOCGIFFLAGS, &req) == 0)
		engine_dev_change_state(
			p, (req.ifr_flags & IFF_UP) != 0 ? SAN_ENGINE_DEV_UP : SAN_ENGINE_DEV_DOWN);
	if (ioctl(p->mac_fd, SIOCGIFMTU, &req) != 0)
		return;
	mtu = (uint32_t)req.ifr_mtu;
	if (p->dev.mtu != 0 && mtu < p->conf.core.mtu && mtu != p->dev.mtu)
		SAN_LOG(ENGINE, WARNING,
			"port=%u device=%s has an MTU of %u now, less than the port's %u: longer "
			"packets are lost; ip link set %s mtu %u, or start again",
			p->id, p->dev.name, mtu, p->conf.core.mtu, p->dev.name, p->conf.core.mtu);
	else if (p->dev.mtu != 0 && mtu != p->dev.mtu)
		SAN_LOG(ENGINE, NOTICE,
			"port=%u device=%s has an MTU of %u now; the port keeps %u until it is "
			"started again",
			p->id, p->dev.name, mtu, p->conf.core.mtu);
	p->dev.mtu = mtu;
}

/* ---- control path ---- */

static void
engine_mac_look_timer(void *arg)
{
	struct san_engine_port *p = arg;

	engine_dev_look(p);
	rte_eal_alarm_set(LOOK_US, engine_mac_look_timer, p);
}

bool
san_engine_mac_is_own(const struct san_engine_port *p)
{
	/* for net_tap, the device is the other end of a link, with a MAC address of its own */
	return p->info.if_index == 0 || strcmp(p->info.driver_name, "net_tap") == 0;
}

void
san_engine_mac_watch(struct san_engine_port *p)
{
	struct ifreq req = {.ifr_ifindex = (int)p->info.if_index};

	if (san_engine_mac_is_own(p))
		return;
	/* a family that the daemon's sandbox allows, and that supports these ioctls */
	p->mac_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* if the port has another address than its device, it does not follow the device */
	if (p->mac_fd >= 0 && ioctl(p->mac_fd, SIOCGIFNAME, &req) == 0 &&
	    ioctl(p->mac_fd, SIOCGIFHWADDR, &req) == 0 &&
	    engine_mac_word_of(req.ifr_hwaddr.sa_data) == p->mac)
		rte_eal_alarm_set(LOOK_US, engine_mac_look_timer, p);
}

void
san_engine_mac_unwatch(struct san_engine_port *p)
{
	if (p->mac_fd < 0)
		return;
	rte_eal_alarm_cancel(engine_mac_look_timer, p); /* waits for a running one */
	close(p->mac_fd);
	p->mac_fd = -1;
}

/* ---- lcore ---- */

void
san_engine_mac_follow(struct san_engine *e)
{
	struct rte_ether_addr mac = san_engine_mac(e->port);

	e->mac = engine_mac_word_of(&mac);
	e->conf.inet.mac = e->conf.cm.path.src_mac = mac;
	/* one lcore announces it, also where the kernel answers: the kernel does not announce */
	san_core_mac_set(e->core, &mac, e->id == 0);
}
