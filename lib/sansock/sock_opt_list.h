/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Each option of socket(7), ip(7), ipv6(7), tcp(7) and udp(7), and what it means to a carried
 * socket. doc/sockets.md has the same table for readers; test_sock_options compares both, and sets
 * each one. (UDP-9)
 */

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define SOCK_OPT_TEXT  32 /**< bytes of a name, with the final NUL */
#define SOCK_OPT_NAMES 32 /**< options that one row may have */

/** Write name number *i* of the list *names*. */
static inline void
sock_opt_text(const char *names, int i, char text[SOCK_OPT_TEXT])
{
	while (i-- > 0)
		names = strchr(names, ' ') + 1;
	snprintf(text, SOCK_OPT_TEXT, "%.*s", (int)strcspn(names, ","), names);
}

enum sock_opt_kind {
	SOCK_OPT_CARRIED, /**< it has its effect */
	SOCK_OPT_NOTHING, /**< it is accepted, without effect on a carried socket */
	SOCK_OPT_KERNELS, /**< it makes the socket the kernel's, or is refused: sock_opt.c */
};

/* From the kernel's headers: some C libraries lack these. */
#ifndef SO_RCVMARK
#define SO_RCVMARK 75
#endif
#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif
#define IPV6_FLOWINFO      11
#define IPV6_FLOWLABEL_MGR 32
#define IPV6_FLOWINFO_SEND 33
#define TCP_AO_ADD_KEY     38

/* clang-format off */
/** Level, kind for UDP, kind for TCP, names. Options that are missing are the kernel's. */
#define SOCK_OPT_LIST(X) \
	X(SOL_SOCKET, CARRIED, CARRIED,                                                      \
	  SO_ACCEPTCONN, SO_BINDTODEVICE, SO_BINDTOIFINDEX, SO_COOKIE, SO_DETACH_FILTER,     \
	  SO_DOMAIN, SO_ERROR, SO_INCOMING_NAPI_ID, SO_MEMINFO, SO_NETNS_COOKIE,             \
	  SO_PEERCRED, SO_PEERGROUPS, SO_PEERNAME, SO_PEERSEC, SO_PROTOCOL, SO_RCVTIMEO,     \
	  SO_RCVTIMEO_NEW, SO_REUSEADDR, SO_REUSEPORT, SO_SNDLOWAT, SO_SNDTIMEO,             \
	  SO_SNDTIMEO_NEW, SO_TYPE)                                                          \
	X(SOL_SOCKET, CARRIED, NOTHING, SO_BROADCAST, SO_RXQ_OVFL)                           \
	X(SOL_SOCKET, CARRIED, KERNELS, SO_TIMESTAMP, SO_TIMESTAMPNS)                        \
	X(SOL_SOCKET, NOTHING, CARRIED, SO_KEEPALIVE, SO_LINGER)                             \
	X(SOL_SOCKET, NOTHING, NOTHING,                                                      \
	  SO_BSDCOMPAT, SO_BUF_LOCK, SO_BUSY_POLL, SO_BUSY_POLL_BUDGET, SO_CNX_ADVICE,       \
	  SO_DEBUG, SO_INCOMING_CPU, SO_OOBINLINE, SO_PASSCRED, SO_PASSSEC,                  \
	  SO_PREFER_BUSY_POLL, SO_PRIORITY, SO_RCVBUF, SO_RCVBUFFORCE, SO_RESERVE_MEM,       \
	  SO_SNDBUF, SO_SNDBUFFORCE, SO_TXREHASH)                                            \
	X(SOL_SOCKET, NOTHING, KERNELS, SO_RCVLOWAT)                                         \
	X(SOL_SOCKET, KERNELS, NOTHING, SO_NO_CHECK)                                         \
	X(SOL_SOCKET, KERNELS, KERNELS,                                                      \
	  SO_ATTACH_BPF, SO_ATTACH_FILTER, SO_ATTACH_REUSEPORT_CBPF,                         \
	  SO_ATTACH_REUSEPORT_EBPF, SO_DETACH_REUSEPORT_BPF, SO_DONTROUTE, SO_LOCK_FILTER,   \
	  SO_MARK, SO_MAX_PACING_RATE, SO_PEEK_OFF, SO_RCVMARK, SO_SELECT_ERR_QUEUE,         \
	  SO_TIMESTAMPING, SO_TIMESTAMPING_NEW, SO_TIMESTAMPNS_NEW, SO_TIMESTAMP_NEW,        \
	  SO_TXTIME, SO_WIFI_STATUS, SO_ZEROCOPY)                                            \
	X(IPPROTO_IP, CARRIED, CARRIED,                                                      \
	  IP_BIND_ADDRESS_NO_PORT, IP_FREEBIND, IP_HDRINCL, IP_LOCAL_PORT_RANGE, IP_MTU,     \
	  IP_NODEFRAG, IP_PKTOPTIONS, IP_ROUTER_ALERT)                                       \
	X(IPPROTO_IP, CARRIED, NOTHING,                                                      \
	  IP_ADD_MEMBERSHIP, IP_DROP_MEMBERSHIP, IP_MTU_DISCOVER, IP_MULTICAST_ALL,          \
	  IP_MULTICAST_IF, IP_MULTICAST_LOOP, IP_MULTICAST_TTL, IP_PKTINFO, IP_RECVTOS,      \
	  IP_RECVTTL, IP_TOS, MCAST_JOIN_GROUP, MCAST_LEAVE_GROUP)                           \
	X(IPPROTO_IP, CARRIED, KERNELS, IP_RECVERR, IP_TTL)                                  \
	X(IPPROTO_IP, KERNELS, NOTHING,                                                      \
	  IP_ADD_SOURCE_MEMBERSHIP, IP_BLOCK_SOURCE, IP_DROP_SOURCE_MEMBERSHIP, IP_MSFILTER, \
	  IP_UNBLOCK_SOURCE, MCAST_BLOCK_SOURCE, MCAST_JOIN_SOURCE_GROUP,                    \
	  MCAST_LEAVE_SOURCE_GROUP, MCAST_MSFILTER, MCAST_UNBLOCK_SOURCE)                    \
	X(IPPROTO_IP, KERNELS, KERNELS,                                                      \
	  IP_CHECKSUM, IP_IPSEC_POLICY, IP_MINTTL, IP_OPTIONS, IP_PASSSEC,                   \
	  IP_RECVERR_RFC4884, IP_RECVFRAGSIZE, IP_RECVOPTS, IP_RECVORIGDSTADDR, IP_RETOPTS,  \
	  IP_TRANSPARENT, IP_UNICAST_IF, IP_XFRM_POLICY)                                     \
	X(IPPROTO_IPV6, CARRIED, CARRIED,                                                    \
	  IPV6_CHECKSUM, IPV6_FREEBIND, IPV6_HDRINCL, IPV6_PATHMTU, IPV6_ROUTER_ALERT,       \
	  IPV6_V6ONLY)                                                                       \
	X(IPPROTO_IPV6, CARRIED, NOTHING,                                                    \
	  IPV6_JOIN_GROUP, IPV6_LEAVE_ANYCAST, IPV6_LEAVE_GROUP, IPV6_MTU_DISCOVER,          \
	  IPV6_MULTICAST_ALL, IPV6_MULTICAST_HOPS, IPV6_MULTICAST_IF, IPV6_MULTICAST_LOOP,   \
	  IPV6_RECVHOPLIMIT, IPV6_RECVPKTINFO, IPV6_RECVTCLASS, IPV6_TCLASS)                 \
	X(IPPROTO_IPV6, CARRIED, KERNELS, IPV6_RECVERR, IPV6_UNICAST_HOPS)                   \
	X(IPPROTO_IPV6, KERNELS, CARRIED, IPV6_ADDR_PREFERENCES)                             \
	X(IPPROTO_IPV6, KERNELS, NOTHING, IPV6_DONTFRAG, IPV6_JOIN_ANYCAST)                  \
	X(IPPROTO_IPV6, KERNELS, KERNELS,                                                    \
	  IPV6_2292DSTOPTS, IPV6_2292HOPLIMIT, IPV6_2292HOPOPTS, IPV6_2292PKTINFO,           \
	  IPV6_2292PKTOPTIONS, IPV6_2292RTHDR, IPV6_ADDRFORM, IPV6_AUTOFLOWLABEL,            \
	  IPV6_DSTOPTS, IPV6_FLOWINFO, IPV6_FLOWINFO_SEND, IPV6_FLOWLABEL_MGR, IPV6_HOPOPTS, \
	  IPV6_IPSEC_POLICY, IPV6_MINHOPCOUNT, IPV6_MTU, IPV6_NEXTHOP, IPV6_PKTINFO,         \
	  IPV6_RECVDSTOPTS, IPV6_RECVERR_RFC4884, IPV6_RECVFRAGSIZE, IPV6_RECVHOPOPTS,       \
	  IPV6_RECVORIGDSTADDR, IPV6_RECVPATHMTU, IPV6_RECVRTHDR, IPV6_RTHDR,                \
	  IPV6_RTHDRDSTOPTS, IPV6_TRANSPARENT, IPV6_UNICAST_IF, IPV6_XFRM_POLICY)            \
	X(IPPROTO_TCP, CARRIED, CARRIED,                                                     \
	  TCP_CC_INFO, TCP_INFO, TCP_KEEPCNT, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_NODELAY,      \
	  TCP_SAVED_SYN, TCP_SYNCNT, TCP_USER_TIMEOUT)                                       \
	X(IPPROTO_TCP, CARRIED, NOTHING,                                                     \
	  TCP_CORK, TCP_FASTOPEN, TCP_FASTOPEN_CONNECT, TCP_FASTOPEN_KEY,                    \
	  TCP_FASTOPEN_NO_COOKIE, TCP_LINGER2, TCP_QUICKACK, TCP_THIN_DUPACK,                \
	  TCP_THIN_LINEAR_TIMEOUTS)                                                          \
	X(IPPROTO_TCP, CARRIED, KERNELS,                                                     \
	  TCP_AO_ADD_KEY, TCP_CM_INQ, TCP_CONGESTION, TCP_DEFER_ACCEPT, TCP_MAXSEG,          \
	  TCP_MD5SIG, TCP_MD5SIG_EXT, TCP_NOTSENT_LOWAT, TCP_QUEUE_SEQ, TCP_REPAIR,          \
	  TCP_REPAIR_OPTIONS, TCP_REPAIR_QUEUE, TCP_REPAIR_WINDOW, TCP_SAVE_SYN,             \
	  TCP_TIMESTAMP, TCP_TX_DELAY, TCP_ULP, TCP_WINDOW_CLAMP, TCP_ZEROCOPY_RECEIVE)      \
	X(IPPROTO_UDP, KERNELS, CARRIED,                                                     \
	  UDP_CORK, UDP_ENCAP, UDP_GRO, UDP_NO_CHECK6_RX, UDP_NO_CHECK6_TX, UDP_SEGMENT)
/* clang-format on */
