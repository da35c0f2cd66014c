/* SPDX-License-Identifier: BSD-3-Clause */

/* Carried sockets and the lcore's loop: who rang, and who is to be woken. (UDP-6, UDP-8) */

#include <sys/socket.h>

#include "engine_priv.h"

uint32_t
san_engine_max_socks(const struct san_engine_port *p)
{
	return p->conf.core.max_socks;
}

uint32_t
san_engine_if_index(const struct san_engine_port *p)
{
	return p->if_index;
}

void
san_engine_sock_rang(struct san_engine *e, uint32_t id)
{
	struct san_socks *all = san_core_socks(e->core);

	if (all != NULL)
		san_sock_ring(all, id);
}

void
san_engine_sock_wake(struct san_engine *e)
{
	struct san_socks *all = san_core_socks(e->core);
	const char byte = 0;
	int fd;

	if (likely(all == NULL))
		return;
	/* full, it is readable; closed, nobody waits there */
	while ((fd = san_sock_rung(all)) >= 0)
		e->stats.nb_wakes += send(fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}
