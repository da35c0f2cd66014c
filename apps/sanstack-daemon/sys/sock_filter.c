/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A classic BPF filter on the kernel's socket, which runs on reassembled datagrams. A port that
 * reassembles by itself receives all datagrams. DPDK's af_packet receives those that the kernel has
 * reassembled, and truncates datagrams longer than its frames. The filter lets these long ones
 * pass, so that each datagram arrives once.
 */

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <stdint.h>
#include <sys/socket.h>

#include "helper_run.h"

#define LOOPBACK    1 /* index of the kernel's loopback device in any namespace */
#define LOAD_DEVICE BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX))
#define LOAD_TYPE   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE))
#define TAKE        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX)
#define DROP        BPF_STMT(BPF_RET | BPF_K, 0)

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
