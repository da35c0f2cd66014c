/* SPDX-License-Identifier: BSD-3-Clause */

#include <linux/filter.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>

#include "helper_priv.h"
#include "sock.h"

int
san_helper_facts_int(int fd, int level, int name)
{
	int v = -1;
	socklen_t len = sizeof(v);

	return getsockopt(fd, level, name, &v, &len) == 0 ? v : -1;
}

uint64_t
san_helper_facts_option(int fd, int name)
{
	uint64_t v = 0; /* also if the kernel writes an int */
	socklen_t len = sizeof(v);

	return getsockopt(fd, SOL_SOCKET, name, &v, &len) == 0 ? v : 0;
}

/*
 * Check that the socket is in our network namespace: in another one its address has another
 * meaning. False if the kernel does not report the namespace.
 */
static bool
is_our_net(int fd)
{
	static uint64_t ours;
	int own;

	if (ours == 0 && (own = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) >= 0) {
		ours = san_helper_facts_option(own, SO_NETNS_COOKIE);
		close(own);
	}
	return ours != 0 && san_helper_facts_option(fd, SO_NETNS_COOKIE) == ours;
}

static bool
has_filter(int fd)
{
	socklen_t len = 0;

	return getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, NULL, &len) != 0 || len != 0;
}

static bool
is_closed(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
		info.tcpi_state == TCP_CLOSE;
}

/* The options that apply to sent packets. */
static void
helper_facts_read_sending(int fd, struct helper_facts *f)
{
	bool v4 = f->domain == AF_INET;
	int v;

	v = v4 ? san_helper_facts_int(fd, IPPROTO_IP, IP_TTL) :
		 san_helper_facts_int(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS);
	f->hops = v > 0 && v <= UINT8_MAX ? (uint8_t)v : 0;
	v = v4 ? san_helper_facts_int(fd, IPPROTO_IP, IP_MTU_DISCOVER) :
		 san_helper_facts_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER);
	/* IPv6 has the same values */
	f->df = v == IP_PMTUDISC_DO    ? SAN_SOCK_DF :
		v == IP_PMTUDISC_PROBE ? SAN_SOCK_DF_PROBE :
					 SAN_SOCK_DF_NONE;
	v = v4 ? san_helper_facts_int(fd, IPPROTO_IP, IP_TOS) :
		 san_helper_facts_int(fd, IPPROTO_IPV6, IPV6_TCLASS);
	f->tos = v > 0 ? (uint8_t)v : 0;
}

void
san_helper_facts_read(int fd, struct helper_facts *f)
{
	socklen_t len = sizeof(f->local);
	struct stat st;

	memset(f, 0, sizeof(*f));
	f->inode = fstat(fd, &st) == 0 ? st.st_ino : 0;
	f->domain = san_helper_facts_int(fd, SOL_SOCKET, SO_DOMAIN);
	f->protocol = san_helper_facts_int(fd, SOL_SOCKET, SO_PROTOCOL);
	if (f->domain < 0)
		return;
	f->cookie = san_helper_facts_option(fd, SO_COOKIE);
	if (f->domain != AF_INET && f->domain != AF_INET6)
		return;
	f->is_our_net = is_our_net(fd);
	f->device = san_helper_facts_int(fd, SOL_SOCKET, SO_BINDTOIFINDEX);
	f->has_filter = has_filter(fd);
	f->reuseport = san_helper_facts_int(fd, SOL_SOCKET, SO_REUSEPORT) > 0;
	f->v6only = f->domain == AF_INET6 &&
		san_helper_facts_int(fd, IPPROTO_IPV6, IPV6_V6ONLY) > 0;
	f->nonblock = (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
	f->listens = san_helper_facts_int(fd, SOL_SOCKET, SO_ACCEPTCONN) == 1;
	f->is_closed = f->protocol == IPPROTO_TCP && is_closed(fd);
	if (getsockname(fd, (struct sockaddr *)&f->local, &len) != 0)
		f->local.ss_family = 0;
	len = sizeof(f->peer);
	if (getpeername(fd, (struct sockaddr *)&f->peer, &len) != 0)
		f->peer.ss_family = 0;
	/*
	 * A socket that was connected still reports its old port, but another socket may own the
	 * port now. Bind the socket again. EINVAL: it still owns the port. IPv4 and IPv6 have the
	 * port at the same offset.
	 */
	if (f->is_closed && f->local.ss_family != 0 &&
	    ((const struct sockaddr_in *)&f->local)->sin_port != 0 &&
	    bind(fd, (const struct sockaddr *)&f->local, sizeof(f->local)) != 0 && errno != EINVAL)
		f->local.ss_family = 0;
	helper_facts_read_sending(fd, f);
}

void
san_helper_facts_addr(const struct sockaddr_storage *ss, struct san_ip *ip, uint16_t *port,
		      uint32_t *scope)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;

	if (scope != NULL)
		*scope = ss->ss_family == AF_INET ? 0 : in6->sin6_scope_id;
	*port = ntohs(in->sin_port); /* IPv6 has it at the same offset */
	if (ss->ss_family == AF_INET)
		san_wire_ip_from_v4(ip, &in->sin_addr);
	else
		memcpy(ip->b, &in6->sin6_addr, 16);
}

/* ---- keeping the port ---- */

int
san_helper_facts_hold_name(int fd)
{
	const struct sockaddr none = {.sa_family = AF_UNSPEC};
	int device = san_helper_facts_int(fd, SOL_SOCKET, SO_BINDTOIFINDEX);
	struct sockaddr_storage before, after, peer;
	/* IPv4 and IPv6 have the port at the same offset */
	struct sockaddr_in *from = (void *)&before, *to = (void *)&after;
	socklen_t len = sizeof(before), peer_len = sizeof(peer);
	bool has_peer = getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0;

	if (getsockname(fd, (struct sockaddr *)from, &len) != 0 ||
	    connect(fd, &none, sizeof(none)) != 0)
		return -errno;
	len = sizeof(after);
	if (getsockname(fd, (struct sockaddr *)to, &len) != 0)
		return -errno;
	/* connect(AF_UNSPEC) has cleared the device, too */
	if (device > 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &device, sizeof(device)) != 0)
		return -errno;
	if (to->sin_port == 0) {
		to->sin_port = from->sin_port;
		if (bind(fd, (const struct sockaddr *)to, sizeof(after)) != 0)
			return -errno;
	}
	return !has_peer || connect(fd, (const struct sockaddr *)&peer, peer_len) == 0 ? 0 : -errno;
}

/* ---- what the kernel's socket may still receive (UDP-4) ---- */

#define LOOPBACK    1 /* index of the kernel's loopback device in any namespace */
#define LOAD_DEVICE BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX))
#define LOAD_TYPE   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE))
#define TAKE        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX)
#define DROP        BPF_STMT(BPF_RET | BPF_K, 0)

/*
 * A classic BPF filter, which runs on reassembled datagrams. A port that reassembles by itself
 * receives all datagrams. DPDK's af_packet receives those that the kernel has reassembled, and
 * truncates datagrams longer than its frames. The filter lets these long ones pass, so that each
 * datagram arrives once.
 */
int
san_sock_filter_port(int fd, const struct helper_filter *what)
{
	uint32_t if_index = what->if_index, whole = what->whole_v4;
	bool local_only = what->local_only != 0;
	struct sock_filter code[] = {
		LOAD_DEVICE,
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, if_index, 0, 7),
		/* copies of multicast that this host sends, for receivers on this host */
		LOAD_TYPE,
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_LOOPBACK, 6, 0),
		/* IP version, and total length of IPv4 */
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (uint32_t)SKF_NET_OFF),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 4, 0, 4),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (uint32_t)(SKF_NET_OFF + 2)),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, whole, 1, 2),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LOOPBACK, 0, local_only ? 1 : 0),
		TAKE,
		DROP,
	};
	const struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (if_index == 0 && !local_only)
		return 0;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) == 0 ? 0 :
											    -errno;
}
