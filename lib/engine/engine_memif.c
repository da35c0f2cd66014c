/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The link of a memif client. The driver requests it from the server once, when the port is started
 * (DPDK 22.11). This requests it again whenever the server has refused or the link is lost.
 *
 * All but the first request happen in EAL's interrupt thread, where the driver also handles the
 * answers, and which engine_gate.c holds while bursts run. So no lock is needed.
 *
 * A request that the server has not accepted yet is never cancelled: the driver of a server panics
 * when it accepts a connection that its client has closed.
 */

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <rte_alarm.h>
#include <rte_dev.h>
#include <rte_devargs.h>

#include "engine_priv.h"
#include "san_log.h"

#define LOOK_UP_US  (100 * 1000)  /* interval of checks while the link is up */
#define LOOK_MIN_US 1000          /* first interval without a link */
#define LOOK_MAX_US (1000 * 1000) /* longest interval without a link */

bool
san_engine_memif_is_client(const struct rte_eth_dev_info *info)
{
	const struct rte_devargs *args = rte_dev_devargs(info->device);

	return strcmp(info->driver_name, "net_memif") == 0 &&
		(args == NULL || args->args == NULL || strstr(args->args, "role=server") == NULL);
}

/* The inode of *fd* if it is a socket connected to a named UNIX socket, otherwise 0. */
static uint64_t
socket_to_server(int fd)
{
	struct sockaddr_un peer;
	socklen_t len = sizeof(peer);
	struct stat st;

	if (fstat(fd, &st) != 0 || getpeername(fd, (struct sockaddr *)&peer, &len) != 0)
		return 0;
	return peer.sun_family == AF_UNIX && len > sizeof(sa_family_t) ? st.st_ino : 0;
}

/*
 * Start the port, which makes the driver connect to the server. The driver does not expose the
 * descriptor of its request. It is the lowest free one, unless another thread opens a descriptor at
 * the same moment; then it is unknown whether the server has accepted, and the next check waits for
 * long. (If the descriptor is closed already, the server has refused.)
 */
static int
engine_memif_ask_link(struct san_engine_memif *m)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	int rc;

	if (fd >= 0)
		close(fd);
	rc = rte_eth_dev_start(m->port_id);
	m->is_started = rc == 0;
	m->fd = fd;
	m->socket = rc == 0 && fd >= 0 ? socket_to_server(fd) : 0;
	if (rc == 0 && m->socket == 0 && fcntl(fd, F_GETFD) >= 0)
		m->wait_us = LOOK_MAX_US;
	return rc;
}

static void
engine_memif_report_peer(struct san_engine_memif *m, bool is_lost)
{
	if (m->is_lost != is_lost)
		SAN_LOG(ENGINE, NOTICE, "port=%u memif=%s", m->port_id,
			is_lost ? "lost, asks for the link again" : "connected");
	m->is_lost = is_lost;
}

/* Runs in the interrupt thread. */
static void
engine_memif_look_timer(void *arg)
{
	struct san_engine_memif *m = arg;
	uint32_t wait_us = LOOK_UP_US;

	if (san_engine_port_is_up(container_of(m, struct san_engine_port, memif))) {
		engine_memif_report_peer(m, false);
		m->wait_us = LOOK_MIN_US;
	} else {
		if (m->socket == 0 || socket_to_server(m->fd) != m->socket) {
			engine_memif_report_peer(m, true);
			if (m->is_started)
				rte_eth_dev_stop(m->port_id);
			engine_memif_ask_link(m);
		}
		wait_us = m->wait_us;
		m->wait_us = RTE_MIN(2 * wait_us, (uint32_t)LOOK_MAX_US);
	}
	rte_eal_alarm_set(wait_us, engine_memif_look_timer, m);
}

int
san_engine_memif_start(struct san_engine_memif *m, uint16_t port_id, bool asks, uint32_t timeout_ms)
{
	int rc;

	*m = (struct san_engine_memif){.asks = asks, .port_id = port_id, .wait_us = LOOK_MIN_US};
	if (!asks)
		return rte_eth_dev_start(port_id);
	for (rc = engine_memif_ask_link(m); rc != 0 && timeout_ms != 0; timeout_ms--) {
		rte_delay_us_sleep(1000);
		rc = engine_memif_ask_link(m);
	}
	m->asks = rc == 0;
	if (m->asks)
		rte_eal_alarm_set(m->wait_us, engine_memif_look_timer, m);
	return rc;
}

void
san_engine_memif_stop(struct san_engine_memif *m)
{
	if (m->asks)
		rte_eal_alarm_cancel(engine_memif_look_timer, m); /* waits for a running one */
	m->asks = false;
}
