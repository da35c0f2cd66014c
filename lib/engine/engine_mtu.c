/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two drivers report 1518 whatever their buffers hold, and drop or damage longer frames:
 *
 * memif spreads a frame over several buffers of the ring, and the frames behind it arrive broken
 * (DPDK 22.11 leaves the "continued in the next" flag in the descriptors). The buffer size is the
 * argument bsize= of the client, so it must be the same on both sides.
 *
 * af_packet drops frames longer than its argument framesz=, less the space that the kernel uses in
 * front of the data.
 *
 * Behind af_packet, af_xdp and tap, and beside NICs that the kernel keeps, there is a device of the
 * kernel with an MTU of its own.
 */

#include <net/if.h>
#include <sys/ioctl.h>

#include <rte_common.h>
#include <rte_dev.h>
#include <rte_devargs.h>

#include "engine_priv.h"

#define MTU_MOST         9000 /* RT-31 */
#define MEMIF_BSIZE      2048 /* defaults of the drivers */
#define AF_PACKET_FRAME  2048
#define AF_PACKET_BEFORE 66 /* bytes: TPACKET2_HDRLEN and alignment, in front of a frame */

uint32_t
san_engine_mtu_arg(const char *args, const char *key, uint32_t otherwise)
{
	size_t len = strlen(key);

	while (args != NULL && *args != '\0') {
		if (strncmp(args, key, len) == 0 && args[len] == '=')
			return (uint32_t)strtoul(args + len + 1, NULL, 0);
		args = strchr(args, ',');
		args += args != NULL;
	}
	return otherwise;
}

uint32_t
san_engine_mtu_of_kernel(uint32_t if_index)
{
	struct ifreq req;
	int fd, rc;

	memset(&req, 0, sizeof(req));
	if (if_index == 0 || if_indextoname(if_index, req.ifr_name) == NULL)
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	rc = ioctl(fd, SIOCGIFMTU, &req);
	close(fd);
	return rc == 0 && req.ifr_mtu > 0 ? (uint32_t)req.ifr_mtu : 0;
}

static uint32_t
engine_mtu_less(uint32_t size, uint32_t overhead)
{
	return size > overhead ? size - overhead : 0;
}

void
san_engine_mtu_ask(uint16_t port_id, const struct rte_eth_dev_info *info, uint32_t header,
		   struct san_engine_mtu *m)
{
	const struct rte_devargs *given = rte_dev_devargs(info->device);
	const char *args = given != NULL ? given->args : NULL;
	uint32_t kernel = san_engine_mtu_of_kernel(info->if_index);
	uint16_t now = RTE_ETHER_MTU;

	*m = (struct san_engine_mtu){.most = UINT32_MAX, .whole_v4 = UINT32_MAX};
	if (info->max_mtu != UINT16_MAX)
		m->most = info->max_mtu;
	if (strcmp(info->driver_name, "net_memif") == 0) {
		m->most = engine_mtu_less(san_engine_mtu_arg(args, "bsize", MEMIF_BSIZE), header);
		m->by_buffers = true;
	} else if (strcmp(info->driver_name, "net_af_packet") == 0) {
		m->most = engine_mtu_less(san_engine_mtu_arg(args, "framesz", AF_PACKET_FRAME),
					  AF_PACKET_BEFORE + header);
		m->whole_v4 = m->most;
	}
	rte_eth_dev_get_mtu(port_id, &now);
	m->now = kernel != 0 ? kernel : now;
}

int
san_engine_mtu_choose(const struct san_engine_mtu *m, uint16_t wanted, uint16_t least,
		      uint16_t *mtu, const char **why)
{
	uint32_t has = m->by_buffers ? m->most : RTE_MIN(m->now, m->most);

	*mtu = wanted != 0 ? wanted : (uint16_t)RTE_MIN(has, (uint32_t)MTU_MOST);
	*why = "mtu= is more than the port's buffers hold: raise bsize= or framesz= of its device";
	if (*mtu > m->most)
		return -EMSGSIZE;
	*why = "the port's MTU is below 1024, or with an IPv6 address 1280";
	return *mtu >= least ? 0 : -EMSGSIZE;
}
