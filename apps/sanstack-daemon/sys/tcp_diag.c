/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>

#include "tcp_diag.h"

static int channel = -1;
static uint32_t last_seq;

int
san_tcp_diag_open(void)
{
	channel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
	return channel < 0 ? -errno : 0;
}

int
san_tcp_diag_find(const struct sockaddr_in *local, const struct sockaddr_in *peer,
		  struct tcp_diag *out)
{
	struct {
		struct nlmsghdr hdr;
		struct inet_diag_req_v2 body;
	} req = {
		.hdr = {
			.nlmsg_len = sizeof(req),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.body = {
			.sdiag_family = AF_INET,
			.sdiag_protocol = IPPROTO_TCP,
			.id = {
				.idiag_sport = local->sin_port,
				.idiag_dport = peer->sin_port,
				.idiag_src = {local->sin_addr.s_addr},
				.idiag_dst = {peer->sin_addr.s_addr},
				.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE},
			},
		},
	};
	struct {
		struct nlmsghdr hdr;
		union {
			struct nlmsgerr err;
			struct inet_diag_msg found;
			char all[1024]; /* attributes follow */
		};
	} rep;
	struct sockaddr_nl from;
	socklen_t len;
	ssize_t n;

	req.hdr.nlmsg_seq = ++last_seq;
	/* the kernel answers within the call */
	if (send(channel, &req, sizeof(req), 0) < 0)
		return -errno;
	do { /* another process may send messages, too */
		len = sizeof(from);
		n = recvfrom(channel, &rep, sizeof(rep), 0, (struct sockaddr *)&from, &len);
		if (n < 0)
			return -errno;
	} while (from.nl_pid != 0 || rep.hdr.nlmsg_seq != last_seq);
	if (rep.hdr.nlmsg_type == NLMSG_ERROR && n >= (ssize_t)NLMSG_LENGTH(sizeof(rep.err)))
		return rep.err.error;
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(rep.found)))
		return -EPROTO;
	out->inode = rep.found.idiag_inode;
	memcpy(&out->cookie, rep.found.id.idiag_cookie, sizeof(out->cookie));
	return 0;
}
