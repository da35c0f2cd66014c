/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The sockets of the drivers af_packet and af_xdp. The drivers have no receive interrupts and do
 * not name their descriptors, but the kernel reports a packet on them. They are found by the
 * device that they are bound to.
 */

#include <dirent.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "engine_priv.h"

/*
 * More than any ring of af_packet holds. The driver counts a packet as sent once it is in the ring.
 * With the usual 208 KiB the kernel leaves packets there until the driver sends again.
 */
#define SEND_BUFFER (64 << 20)

static sa_family_t
family_of(int fd, uint32_t if_index)
{
	union {
		struct sockaddr any;
		struct sockaddr_ll packet;
		struct sockaddr_xdp xdp;
	} name;
	socklen_t len = sizeof(name);

	if (getsockname(fd, &name.any, &len) != 0)
		return AF_UNSPEC;
	if (name.any.sa_family == AF_PACKET && (uint32_t)name.packet.sll_ifindex == if_index)
		return AF_PACKET;
	if (name.any.sa_family == AF_XDP && name.xdp.sxdp_ifindex == if_index)
		return AF_XDP;
	return AF_UNSPEC;
}

void
san_engine_driver_fd_find(struct san_engine_port *p)
{
	const int send_buffer = SEND_BUFFER;
	const struct dirent *entry;
	DIR *dir = NULL;
	sa_family_t family;
	int fd;

	p->nb_driver_fds = 0;
	if (p->if_index != 0)
		dir = opendir("/proc/self/fd");
	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL && p->nb_driver_fds < RTE_DIM(p->driver_fds)) {
		if (entry->d_name[0] == '.')
			continue;
		fd = atoi(entry->d_name);
		family = family_of(fd, p->if_index);
		if (family == AF_UNSPEC)
			continue;
		if (family == AF_PACKET)
			setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &send_buffer,
				   sizeof(send_buffer));
		p->driver_fds[p->nb_driver_fds++] = fd;
	}
	closedir(dir);
}
