/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Ports whose device the kernel uses too (af_packet, a bifurcated driver), perhaps with the same
 * address. Then ARP, ND, echo requests and packets to closed ports, which the kernel answers, must
 * not be answered twice; and the kernel, which gets copies of the transport's packets, must not
 * answer those. (UDP-2, UDP-4)
 */

#include <glob.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>

#include "engine_priv.h"

static bool
engine_kernel_addr_is_ours(const struct san_inet_conf *conf, const struct sockaddr *sa)
{
	struct san_ip ip;
	uint16_t i;

	if (sa->sa_family == AF_INET)
		san_wire_ip_from_v4(&ip, &((const struct sockaddr_in *)sa)->sin_addr);
	else if (sa->sa_family == AF_INET6)
		memcpy(ip.b, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
	else
		return false;
	for (i = 0; i < conf->nb_addrs; i++)
		if (san_wire_ip_eq(&conf->addrs[i].ip, &ip))
			return true;
	return false;
}

bool
san_engine_kernel_shares(const struct san_engine_port *p)
{
	struct ifaddrs *all, *a;
	bool shares = false;

	if (p->info.if_index == 0 || getifaddrs(&all) != 0)
		return false;
	for (a = all; a != NULL && !shares; a = a->ifa_next)
		shares = a->ifa_addr != NULL && if_nametoindex(a->ifa_name) == p->info.if_index &&
			engine_kernel_addr_is_ours(&p->conf.core.inet, a->ifa_addr);
	freeifaddrs(all);
	return shares;
}

/*
 * ---- the process that has a UDP port in the kernel ----
 *
 * The kernel reports the inode of a socket, and the inodes of a process's descriptors; for
 * processes of other users only to root.
 */

#define TEXT 160
#define NAME 32

/* Returns the inode of the port's socket, or 0. */
static uint64_t
inode_of(const char *table, uint16_t udp_port)
{
	uint64_t inode = 0, one;
	unsigned int port;
	char line[256];
	FILE *f = fopen(table, "re");

	if (f == NULL)
		return 0;
	while (inode == 0 && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, " %*u: %*[0-9A-F]:%x %*s %*s %*s %*s %*s %*s %*s %" SCNu64, &port,
			   &one) == 2 &&
		    port == udp_port)
			inode = one;
	fclose(f);
	return inode;
}

/* Returns a text that names the process with this UDP port; valid until the next call. */
static const char *
holder_text(uint16_t udp_port)
{
	static char text[TEXT];
	uint64_t inode = inode_of("/proc/net/udp", udp_port);
	char want[64], path[64], name[NAME] = "";
	glob_t fds = {0};
	size_t i, pid;
	ssize_t n;
	FILE *f;

	if (inode == 0)
		inode = inode_of("/proc/net/udp6", udp_port);
	snprintf(text, sizeof(text), "UDP port %u can't be had from the kernel%s", udp_port,
		 inode != 0 ? ": another program has it" : "");
	if (inode == 0 || glob("/proc/[0-9]*/fd/*", GLOB_NOSORT, NULL, &fds) != 0)
		return text;
	snprintf(want, sizeof(want), "socket:[%" PRIu64 "]", inode);
	for (i = 0; i < fds.gl_pathc; i++) {
		n = readlink(fds.gl_pathv[i], path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = '\0';
		if (strcmp(path, want) != 0)
			continue;
		pid = strtoul(fds.gl_pathv[i] + strlen("/proc/"), NULL, 10);
		snprintf(path, sizeof(path), "/proc/%zu/comm", pid);
		f = fopen(path, "re");
		if (f != NULL && fgets(name, sizeof(name), f) != NULL)
			name[strcspn(name, "\n")] = '\0';
		if (f != NULL)
			fclose(f);
		snprintf(text, sizeof(text), "UDP port %u is that of pid=%zu (%s) in the kernel",
			 udp_port, pid, name);
		break;
	}
	globfree(&fds);
	return text;
}

/* ---- guards ---- */

/** A socket that holds a UDP port of the transport in the kernel, for the whole process. */
struct guard {
	uint16_t udp_port; /**< 0: free */
	uint32_t nb;       /**< ports that use it; 0: kept for a parked port */
	int fd;
};

static struct guard guards[SAN_ENGINE_GUARDS];

static struct guard *
find_guard(uint16_t udp_port)
{
	uint32_t i;

	for (i = 0; i < SAN_ENGINE_GUARDS; i++)
		if (guards[i].udp_port == udp_port)
			return &guards[i];
	return NULL;
}

/* Create a socket for IPv6 and IPv4, or for IPv4 alone where the kernel has no IPv6. */
static int
guard_socket(uint16_t udp_port)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = {.len = 1, .filter = &nothing};
	struct sockaddr_in6 any = {
		.sin6_family = AF_INET6,
		.sin6_port = rte_cpu_to_be_16(udp_port),
	};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0 && errno == EAFNOSUPPORT) {
		/* sin_port is at the place of sin6_port, and the address is zeros as well */
		any.sin6_family = AF_INET;
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	}
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) == 0 &&
	    bind(fd, (const struct sockaddr *)&any, sizeof(any)) == 0)
		return fd;
	rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

int
san_engine_kernel_guard(struct san_engine_port *p, const char **why)
{
	struct guard *g = find_guard(p->conf.core.udp_port);
	int fd;

	if (g == NULL) {
		g = find_guard(0);
		*why = "too many UDP ports of the transport";
		if (g == NULL)
			return -ENOSPC;
		fd = guard_socket(p->conf.core.udp_port);
		if (fd < 0) {
			*why = holder_text(p->conf.core.udp_port);
			return fd;
		}
		*g = (struct guard){.udp_port = p->conf.core.udp_port, .fd = fd};
	}
	g->nb++;
	p->is_guarded = true;
	return 0;
}

void
san_engine_kernel_unguard(struct san_engine_port *p, bool parks)
{
	struct guard *g = p->is_guarded ? find_guard(p->conf.core.udp_port) : NULL;

	p->is_guarded = false;
	if (g == NULL || --g->nb != 0 || parks)
		return;
	close(g->fd);
	g->udp_port = 0;
}

uint32_t
san_engine_kernel_guards(int fds[SAN_ENGINE_GUARDS])
{
	uint32_t i, nb = 0;

	for (i = 0; i < SAN_ENGINE_GUARDS; i++)
		if (guards[i].udp_port != 0)
			fds[nb++] = guards[i].fd;
	return nb;
}

int
san_engine_kernel_guard_adopt(int fd)
{
	struct sockaddr_in6 name = {.sin6_family = 0};
	socklen_t len = sizeof(name), type_len = sizeof(int), filter_len = 0;
	struct guard *g = find_guard(0);
	int type = 0;

	/* sin6_port is at the place of sin_port; the rest is as guard_socket() creates it */
	if (getsockname(fd, (struct sockaddr *)&name, &len) != 0 || name.sin6_port == 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) != 0 || type != SOCK_DGRAM ||
	    getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, NULL, &filter_len) != 0 || filter_len != 1)
		return -EINVAL;
	if (g == NULL)
		return -ENOSPC;
	*g = (struct guard){.udp_port = rte_be_to_cpu_16(name.sin6_port), .fd = fd};
	return 0;
}
