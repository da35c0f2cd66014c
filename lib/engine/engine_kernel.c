/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A port whose device stays the kernel's, too (af_packet, a bifurcated driver), and may have the
 * same address there: then what the kernel answers, which is ARP, ND, echo and that a port is
 * closed, is not answered twice; and our own packets, of which it gets copies, are not answered
 * at all. (UDP-2, UDP-4)
 */

#include <errno.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine_priv.h"

static bool
is_ours(const struct san_inet_conf *conf, const struct sockaddr *sa)
{
	struct san_ip ip = {.b = {[10] = 0xff, [11] = 0xff}};
	uint16_t i;

	if (sa->sa_family == AF_INET)
		memcpy(ip.b + 12, &((const struct sockaddr_in *)sa)->sin_addr, 4);
	else if (sa->sa_family == AF_INET6)
		memcpy(ip.b, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
	else
		return false;
	for (i = 0; i < conf->nb_addrs; i++)
		if (san_ip_eq(&conf->addrs[i].ip, &ip))
			return true;
	return false;
}

bool
san_engine_kernel_shares(const struct san_engine_port *p)
{
	struct ifaddrs *all, *a;
	bool shares = false;

	if (p->if_index == 0 || getifaddrs(&all) != 0)
		return false;
	for (a = all; a != NULL && !shares; a = a->ifa_next)
		shares = a->ifa_addr != NULL && if_nametoindex(a->ifa_name) == p->if_index &&
			is_ours(&p->conf.core.inet, a->ifa_addr);
	freeifaddrs(all);
	return shares;
}

int
san_engine_kernel_guard(struct san_engine_port *p, const char **why)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = {.len = 1, .filter = &nothing};
	const struct sockaddr_in6 any = {
		.sin6_family = AF_INET6,
		.sin6_port = rte_cpu_to_be_16(p->conf.core.udp_port),
	};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	*why = "the transport's UDP port is another program's in the kernel";
	if (fd >= 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) == 0 &&
	    bind(fd, (const struct sockaddr *)&any, sizeof(any)) == 0) {
		p->guard_fd = fd;
		return 0;
	}
	rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}
