/* SPDX-License-Identifier: BSD-3-Clause */

#include "veth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>

#define SERVER_DEV "tcp0"
#define CLIENT_DEV "tcp1"
#define PREFIX     0xffffff00

/* A netlink request with nested attributes. */
struct request {
	struct nlmsghdr head;
	struct ifinfomsg info;
	uint8_t attrs[256];
};

static struct rtattr *
veth_attr_add(struct request *r, uint16_t type, const void *data, size_t len)
{
	struct rtattr *a = (struct rtattr *)((uint8_t *)r + NLMSG_ALIGN(r->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(len);
	if (len != 0)
		memcpy(RTA_DATA(a), data, len);
	r->head.nlmsg_len = NLMSG_ALIGN(r->head.nlmsg_len) + (uint32_t)RTA_SPACE(len);
	return a;
}

/* Close attribute *a*: it contains everything added since. */
static void
veth_attr_end(struct request *r, struct rtattr *a)
{
	a->rta_len = (uint16_t)((uint8_t *)r + r->head.nlmsg_len - (uint8_t *)a);
}

static int
veth_netlink_ask(struct request *r)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr err;
		uint8_t more[512];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int rc = 0;

	if (fd < 0 || send(fd, r, r->head.nlmsg_len, 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < 0)
		rc = -errno;
	else if (answer.head.nlmsg_type == NLMSG_ERROR)
		rc = answer.err.error;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Create the pair, with the other end in the namespace of *child*. */
static int
make_pair(pid_t child)
{
	const struct ifinfomsg peer_info = {.ifi_family = AF_UNSPEC};
	struct request r = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
			 .nlmsg_type = RTM_NEWLINK,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK},
	};
	struct rtattr *link, *data, *peer;
	uint32_t pid = (uint32_t)child;

	veth_attr_add(&r, IFLA_IFNAME, SERVER_DEV, sizeof(SERVER_DEV));
	link = veth_attr_add(&r, IFLA_LINKINFO, NULL, 0);
	veth_attr_add(&r, IFLA_INFO_KIND, "veth", strlen("veth"));
	data = veth_attr_add(&r, IFLA_INFO_DATA, NULL, 0);
	peer = veth_attr_add(&r, VETH_INFO_PEER, &peer_info, sizeof(peer_info));
	veth_attr_add(&r, IFLA_IFNAME, CLIENT_DEV, sizeof(CLIENT_DEV));
	veth_attr_add(&r, IFLA_NET_NS_PID, &pid, sizeof(pid));
	veth_attr_end(&r, peer);
	veth_attr_end(&r, data);
	veth_attr_end(&r, link);
	return veth_netlink_ask(&r);
}

static int
set_address(int fd, struct ifreq *r, unsigned long what, uint32_t ip)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(ip)}};

	memcpy(&r->ifr_addr, &in, sizeof(in));
	return ioctl(fd, what, r);
}

static int
raise_device(const char *name, uint32_t ip)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;
	struct ifreq r = {0};

	strncpy(r.ifr_name, name, sizeof(r.ifr_name) - 1);
	if (set_address(fd, &r, SIOCSIFADDR, ip) != 0 ||
	    set_address(fd, &r, SIOCSIFNETMASK, PREFIX) != 0 || ioctl(fd, SIOCGIFFLAGS, &r) != 0)
		rc = -errno;
	r.ifr_flags |= IFF_UP;
	if (rc == 0 && ioctl(fd, SIOCSIFFLAGS, &r) != 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Wait for the result of the other process. */
static int
veth_hear_parent(int sock)
{
	int rc;

	return read(sock, &rc, sizeof(rc)) == sizeof(rc) ? rc : -ECHILD;
}

static int
veth_send_rc(int sock, int rc)
{
	return write(sock, &rc, sizeof(rc)) == sizeof(rc) ? rc : -EPIPE;
}

/* In the child: create a namespace, into which the parent puts the device. */
static int
veth_join_child(int sock)
{
	int rc = veth_send_rc(sock, unshare(CLONE_NEWNET) == 0 ? 0 : -errno);

	if (rc == 0)
		rc = veth_hear_parent(sock);
	return rc == 0 ? veth_send_rc(sock, raise_device(CLIENT_DEV, VETH_CLIENT_IP)) : rc;
}

int
san_veth_fork(pid_t *child, const char **what)
{
	int socks[2], rc;

	*what = "a network namespace";
	/* within a new user namespace an ordinary user may create a network namespace */
	if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks) != 0)
		return -errno;
	*child = fork();
	if (*child == 0) {
		close(socks[0]);
		return veth_join_child(socks[1]);
	}
	close(socks[1]);
	rc = *child < 0 ? -errno : veth_hear_parent(socks[0]);
	if (rc == 0) {
		*what = "a veth pair";
		rc = make_pair(*child);
		if (rc == 0)
			rc = raise_device(SERVER_DEV, VETH_SERVER_IP);
		veth_send_rc(socks[0], rc);
	}
	if (rc == 0)
		rc = veth_hear_parent(socks[0]);
	close(socks[0]);
	return rc;
}
