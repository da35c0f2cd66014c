/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Sets each option of the list, on a socket before and after it has a name, for
 * test_sock_options.py. (UDP-9)
 *
 *   sock_options list                    LEVEL OPTION UDP TCP, a line each
 *   sock_options udp|tcp IP PORT DEVICE FIRST LAST
 *                                        before|after OPTION ERRNO carried|kernel
 *
 * TCP sockets connect to IP and PORT, UDP sockets are bound to any address.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "sock_opt_list.h"

static const struct row {
	int level, names[SOCK_OPT_NAMES + 1];
	const char *levels, *texts, *udp, *tcp;
} list[] = {
#define ROW(level, udp, tcp, ...) {level, {__VA_ARGS__}, #level, #__VA_ARGS__, #udp, #tcp},
	SOCK_OPT_LIST(ROW)
#undef ROW
};

static bool is_udp;
static struct sockaddr_in to = {.sin_family = AF_INET};
static const char *device;

/* ---- values ---- */

static struct sock_filter takes_all = BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
static const struct sock_fprog filter = {.len = 1, .filter = &takes_all};
static const struct linger linger = {.l_onoff = 1, .l_linger = 1};
static const struct timeval second = {.tv_sec = 1};
static const struct sock_txtime txtime = {.clockid = CLOCK_TAI};
static struct ip_mreq mreq;
static struct ipv6_mreq mreq6 = {.ipv6mr_multiaddr.s6_addr = {0xff, 0x15, [15] = 7}};
static struct group_req group;
static uint32_t index_of, index_net;

/* Values that are not 1. */
static const struct sample {
	int level, name;
	int value;
	const void *data; /* instead of *value* */
	size_t len;
} samples[] = {
	{SOL_SOCKET, SO_ATTACH_FILTER, 0, &filter, sizeof(filter)},
	{SOL_SOCKET, SO_BINDTOIFINDEX, 0, &index_of, sizeof(index_of)},
	{SOL_SOCKET, SO_LINGER, 0, &linger, sizeof(linger)},
	{SOL_SOCKET, SO_RCVTIMEO, 0, &second, sizeof(second)},
	{SOL_SOCKET, SO_SNDTIMEO, 0, &second, sizeof(second)},
	{SOL_SOCKET, SO_RCVTIMEO_NEW, 0, &second, sizeof(second)},
	{SOL_SOCKET, SO_SNDTIMEO_NEW, 0, &second, sizeof(second)},
	{SOL_SOCKET, SO_RCVLOWAT, 10, NULL, 0},
	{SOL_SOCKET, SO_MAX_PACING_RATE, 1000000, NULL, 0},
	{SOL_SOCKET, SO_RCVBUF, 100000, NULL, 0},
	{SOL_SOCKET, SO_SNDBUF, 100000, NULL, 0},
	{SOL_SOCKET, SO_TIMESTAMPING, 8 | 16, NULL, 0},
	{SOL_SOCKET, SO_TIMESTAMPING_NEW, 8 | 16, NULL, 0},
	{SOL_SOCKET, SO_TXTIME, 0, &txtime, sizeof(txtime)},
	{IPPROTO_IP, IP_ADD_MEMBERSHIP, 0, &mreq, sizeof(mreq)},
	{IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, NULL, 0},
	{IPPROTO_IP, IP_MULTICAST_IF, 0, &to.sin_addr, sizeof(to.sin_addr)},
	{IPPROTO_IP, IP_TTL, 7, NULL, 0},
	{IPPROTO_IP, IP_TOS, 8, NULL, 0},
	{IPPROTO_IP, IP_UNICAST_IF, 0, &index_net, sizeof(index_net)},
	{IPPROTO_IP, MCAST_JOIN_GROUP, 0, &group, sizeof(group)},
	{IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0, NULL, 0}, /* its default is 1 */
	{IPPROTO_IPV6, IPV6_JOIN_GROUP, 0, &mreq6, sizeof(mreq6)},
	{IPPROTO_IPV6, IPV6_MTU, 1300, NULL, 0},
	{IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, NULL, 0},
	{IPPROTO_IPV6, IPV6_TCLASS, 8, NULL, 0},
	{IPPROTO_IPV6, IPV6_UNICAST_HOPS, 7, NULL, 0},
	{IPPROTO_IPV6, IPV6_UNICAST_IF, 0, &index_net, sizeof(index_net)},
	{IPPROTO_TCP, TCP_CONGESTION, 0, "reno", 4},
	{IPPROTO_TCP, TCP_KEEPCNT, 5, NULL, 0},
	{IPPROTO_TCP, TCP_KEEPIDLE, 5, NULL, 0},
	{IPPROTO_TCP, TCP_KEEPINTVL, 5, NULL, 0},
	{IPPROTO_TCP, TCP_MAXSEG, 600, NULL, 0},
	{IPPROTO_TCP, TCP_NOTSENT_LOWAT, 10000, NULL, 0},
	{IPPROTO_TCP, TCP_ULP, 0, "tls", 3},
	{IPPROTO_TCP, TCP_USER_TIMEOUT, 5000, NULL, 0},
	{IPPROTO_TCP, TCP_WINDOW_CLAMP, 100000, NULL, 0},
	{IPPROTO_UDP, UDP_SEGMENT, 500, NULL, 0},
};

static int
set(int fd, int level, int name)
{
	const struct sample *s = samples, *end = samples + sizeof(samples) / sizeof(samples[0]);
	int value = 1;

	if (level == SOL_SOCKET && name == SO_BINDTODEVICE)
		return setsockopt(fd, level, name, device, (socklen_t)strlen(device));
	while (s < end && (s->level != level || s->name != name))
		s++;
	if (s < end && s->data != NULL)
		return setsockopt(fd, level, name, s->data, (socklen_t)s->len);
	value = s < end ? s->value : value;
	return setsockopt(fd, level, name, &value, sizeof(value));
}

/* ---- a socket ---- */

static int
name_it(int fd, int domain)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct sockaddr_in any = {.sin_family = AF_INET};

	socklen_t len = sizeof(in6);

	if (is_udp && domain == AF_INET)
		bind(fd, (struct sockaddr *)&any, sizeof(any));
	else if (is_udp)
		bind(fd, (struct sockaddr *)&in6, sizeof(in6));
	if (is_udp) /* an option may prevent a port, which has the same place in both families */
		return getsockname(fd, (struct sockaddr *)&in6, &len) != 0 || in6.sin6_port == 0;
	if (domain == AF_INET)
		return connect(fd, (struct sockaddr *)&to, sizeof(to));
	memset(in6.sin6_addr.s6_addr + 10, 0xff, 2);
	memcpy(in6.sin6_addr.s6_addr + 12, &to.sin_addr, 4);
	in6.sin6_port = to.sin_port;
	return connect(fd, (struct sockaddr *)&in6, sizeof(in6));
}

/* A carried socket is one end of a pair of UNIX sockets. */
static bool
is_carried(int fd)
{
	char path[64], link[64], line[512];
	unsigned long inode, other;
	bool is = false;
	FILE *f;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	if (sscanf(link, "socket:[%lu]", &inode) != 1)
		return false;
	f = fopen("/proc/self/net/unix", "r");
	while (f != NULL && !is && fgets(line, sizeof(line), f) != NULL)
		is = sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &other) == 1 && other == inode;
	if (f != NULL)
		fclose(f);
	return is;
}

static void
try(int level, int name, const char *text, bool before)
{
	int domain = level == IPPROTO_IPV6 ? AF_INET6 : AF_INET, err = 0, named;
	int fd = socket(domain, is_udp ? SOCK_DGRAM : SOCK_STREAM, 0);

	if (!before)
		name_it(fd, domain);
	if (set(fd, level, name) != 0)
		err = errno;
	named = before ? name_it(fd, domain) : 0;
	printf("%s %s %d %s\n", before ? "before" : "after", text, err,
	       named != 0             ? "unnamed" :
		       is_carried(fd) ? "carried" :
					"kernel");
	close(fd);
}

int
main(int argc, char **argv)
{
	const struct row *end = list + sizeof(list) / sizeof(list[0]);
	char text[SOCK_OPT_TEXT];
	int number = 0;

	for (const struct row *r = list; argc == 2 && r < end; r++)
		for (int i = 0; r->names[i] != 0; i++) {
			sock_opt_text(r->texts, i, text);
			printf("%s %s %s %s\n", r->levels, text, r->udp, r->tcp);
		}
	if (argc != 7)
		return argc != 2;
	is_udp = strcmp(argv[1], "udp") == 0;
	to.sin_port = htons((uint16_t)atoi(argv[3]));
	inet_pton(AF_INET, argv[2], &to.sin_addr);
	device = argv[4];
	index_of = if_nametoindex(device);
	index_net = htonl(index_of);
	inet_pton(AF_INET, "239.1.2.3", &mreq.imr_multiaddr);
	group.gr_interface = index_of;
	((struct sockaddr_in *)&group.gr_group)->sin_family = AF_INET;
	inet_pton(AF_INET, "239.1.2.4", &((struct sockaddr_in *)&group.gr_group)->sin_addr);
	for (const struct row *r = list; r < end; r++)
		for (int i = 0; r->names[i] != 0; i++, number++) {
			if (number < atoi(argv[5]) || number >= atoi(argv[6]))
				continue;
			sock_opt_text(r->texts, i, text);
			try(r->level, r->names[i], text, true);
			try(r->level, r->names[i], text, false);
		}
	return 0;
}
