/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The sockets of the drivers af_packet and af_xdp. The drivers have no receive interrupts and do
 * not name their descriptors, but the kernel reports a packet on them.
 */

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "engine_priv.h"
#include "san_log.h"

static bool
is_bound_to(int fd, uint32_t if_index)
{
	struct sockaddr_ll name;
	socklen_t len = sizeof(name);

	return getsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
		name.sll_family == AF_PACKET && name.sll_protocol == htons(ETH_P_ALL) &&
		(uint32_t)name.sll_ifindex == if_index;
}

/* The kernel does not report the device: a packet of another port ends the sleep, too. */
static bool
is_xdp(int fd)
{
	socklen_t len = sizeof(int);
	int domain = AF_UNSPEC;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_XDP;
}

void
san_engine_driver_fd_find(struct san_engine_port *p)
{
	bool is_packet = strcmp(p->driver, "net_af_packet") == 0;
	const struct dirent *entry;
	DIR *dir;
	int fd;

	p->nb_driver_fds = 0;
	if (!is_packet && strcmp(p->driver, "net_af_xdp") != 0)
		return;
	dir = opendir("/proc/self/fd");
	if (dir == NULL) {
		SAN_LOG(ENGINE, NOTICE, "port=%u driver=%s: without /proc no packet ends a sleep",
			p->id, p->driver);
		return;
	}
	while ((entry = readdir(dir)) != NULL && p->nb_driver_fds < RTE_DIM(p->driver_fds)) {
		if (entry->d_name[0] == '.')
			continue;
		fd = atoi(entry->d_name);
		if (is_packet ? !is_bound_to(fd, p->if_index) : !is_xdp(fd))
			continue;
		p->driver_fds[p->nb_driver_fds++] = fd;
	}
	closedir(dir);
}
