/* SPDX-License-Identifier: BSD-3-Clause */

/* Carried sockets and the lcore's loop: doorbells, and waiters to wake. (UDP-6, UDP-8) */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "engine_priv.h"

#define ENGINE_GROUPS 128 /* most group addresses set on a device */

bool
san_engine_sock_carries_tcp(const struct san_engine_port *p)
{
	if (p->conf.carry_tcp != SAN_CARRY_TCP_AUTO)
		return p->conf.carry_tcp == SAN_CARRY_TCP_ON;
	return strcmp(p->driver, "net_af_packet") != 0;
}

uint16_t
san_engine_sock_mtu(const struct san_engine_port *p)
{
	return p->mtu;
}

uint32_t
san_engine_sock_if_index(const struct san_engine_port *p)
{
	return p->if_index;
}

uint32_t
san_engine_sock_whole_v4(const struct san_engine_port *p)
{
	return p->whole_v4;
}

void
san_engine_sock_wake(struct san_engine *e)
{
	struct san_socks *all = san_core_socks(e->core);
	const char byte = 0;
	bool ends;
	int fd;

	if (likely(all == NULL))
		return;
	/* if the pair is full it is readable; if it is closed, no thread waits there */
	while ((fd = san_sock_wake_next(all, &ends)) >= 0)
		e->stats.nb_wakes += (ends ? shutdown(fd, SHUT_WR) == 0 :
					     send(fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0);
	if (unlikely(san_sock_table_has_room(all)))
		san_engine_event_wake(e->port);
}

struct groups_call {
	struct rte_ether_addr macs[ENGINE_GROUPS];
	uint32_t nb;
};

static int
do_groups(struct san_engine *e, void *arg)
{
	struct groups_call *c = arg;

	c->nb = san_inet_group_all(san_core_inet(e->core), c->macs, ENGINE_GROUPS);
	return 0;
}

/* Set the device's list of addresses. If it has none, or a short one, it receives all multicast. */
int
san_engine_sock_groups(struct san_engine_port *p)
{
	struct groups_call c;
	int rc = -ENOSPC;

	san_engine_loop_call(p->engines[0], do_groups, &c);
	if (c.nb <= ENGINE_GROUPS)
		rc = rte_eth_dev_set_mc_addr_list(p->id, c.macs, c.nb);
	if (rc != 0)
		rc = rte_eth_allmulticast_enable(p->id);
	/* a port whose kernel device joins the group as well needs neither */
	return rc == -ENOTSUP && p->if_index != 0 ? 0 : rc;
}
