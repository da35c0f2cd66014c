/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Filters are the kernel's classic ones. A datagram looks to them as it does to its socket: put
 * together from its fragments, if it was in some. Where the port does the same there is nothing
 * more to say; but DPDK's af_packet gets the kernel's result and cuts off what its frames do not
 * hold. Such a long one is taken from the kernel, so it is there once.
 */

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <stdint.h>
#include <sys/socket.h>

#include "sock_filter.h"

#define LOOPBACK    1 /* index of the kernel's device, in each namespace */
#define LOAD_DEVICE BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX))
#define LOAD_TYPE   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE))
#define TAKE        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX)
#define DROP        BPF_STMT(BPF_RET | BPF_K, 0)

int
sock_filter_port(int fd, const struct helper_filter *what)
{
	uint32_t if_index = what->if_index, whole = what->whole_v4;
	bool local_only = what->local_only != 0;
	struct sock_filter code[] = {
		LOAD_DEVICE,
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, if_index, 0, 7),
		/* what this host sends to a group, and is for readers here, too */
		LOAD_TYPE,
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_LOOPBACK, 6, 0),
		/* the version of IP, and the length of IPv4 */
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
