/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Functions of a host on an IP link besides the transport: ARP, ND and echo replies (RT-31, SYS-1).
 * For UDP sockets: sending and receiving datagrams, in fragments if they are long, errors about
 * them, and groups (UDP-3, UDP-5). One instance per lcore; no I/O of its own.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "san_counters.h"
#include "wire.h"

struct san_inet_addr {
	struct san_ip ip;
	uint8_t prefix_len; /**< in 128 bits; IPv4: 96 + its prefix length */
};

/** A network behind a router on the link; the longest matching prefix counts. */
struct san_inet_route {
	struct san_inet_addr to; /**< prefix length 0 (IPv6) or 96 (IPv4): default route */
	struct san_ip gateway;   /**< of the same family */
};

struct san_inet_conf {
	struct rte_ether_addr mac;
	uint16_t nb_addrs;
	struct san_inet_addr addrs[8];
	uint16_t nb_routes;
	struct san_inet_route routes[16];
	uint32_t max_neighbours;
	uint64_t reachable_ns; /**< an entry in use is verified again after this time */
	uint64_t retry_ns;
	uint8_t max_retries;
	uint16_t mtu;         /**< IP bytes that the link carries */
	uint32_t max_out;     /**< frames waiting to be sent, power of two */
	uint32_t max_waiting; /**< frames waiting for the MAC address of their neighbour */
	uint16_t max_groups;
	uint16_t max_partial;   /**< packets waiting for fragments; 0: none */
	uint16_t max_frags;     /**< mbufs that they hold together, at most */
	uint16_t max_paths;     /**< paths whose MTU is remembered */
	uint64_t path_ns;       /**< how long that MTU is used */
	uint32_t answers_per_s; /**< limit per kind, for all hosts together; see inet_rate.h */
	uint32_t answers_burst; /**< ... at once */
	uint64_t prng_seed;     /**< for identifications, delays, hashes; unknown to peers */
	/** Another instance or the kernel answers for us. */
	bool quiet;
	bool announce;            /**< announce our addresses at start, unless *quiet* */
	struct rte_mempool *pool; /**< for requests and answers */
};

/** A UDP datagram. */
struct san_inet_dgram {
	struct san_ip src, dst; /**< one family; to send, *src* of zeros or 0.0.0.0: choose one */
	uint16_t sport, dport;  /**< host byte order */
	uint8_t hops;           /**< TTL or hop limit; to send, 0: the default */
	uint8_t tos;            /**< TOS or traffic class, including the ECN bits */
	bool df;                /**< to send: do not fragment */
	bool probe;             /**< to send: assume the MTU of the link */
	bool group;             /**< received: *dst* is a group or a broadcast address */
};

/** Content of a frame, for the layer above. */
enum san_inet_what {
	SAN_INET_NOTHING = 0,
	SAN_INET_LEARNED, /**< the address of a neighbour: *ip*, *mac* */
	SAN_INET_UDP,     /**< a datagram to us or one of our groups, with a valid checksum */
	SAN_INET_ERROR,   /**< host *ip* could not deliver our datagram *d* */
};

struct san_inet_result {
	uint8_t what; /**< enum san_inet_what */
	struct san_ip ip;
	struct rte_ether_addr mac;
	bool was_pending; /**< LEARNED: it was unknown and had been requested */
	struct san_inet_dgram d;
	struct rte_mbuf *m; /**< UDP: the whole datagram; the caller frees it */
	uint32_t off, len;  /**< ... its payload: offset in the frame, bytes */
	int err;            /**< ERROR: errno as the kernel reports it: ECONNREFUSED ... */
	bool hard;          /**< ... report it to a connected socket even without IP_RECVERR */
	uint8_t type, code; /**< ... ICMP or ICMPv6 type and code */
	uint16_t mtu;       /**< ... EMSGSIZE: path MTU that it reports */
};

struct san_inet; /* inet.c */

/** True for the unspecified address of either family. */
static inline bool
san_inet_is_any(const struct san_ip *ip)
{
	static const struct san_ip any6, any4 = {.b = {[10] = 0xff, [11] = 0xff}};

	return san_wire_ip_eq(ip, &any6) || san_wire_ip_eq(ip, &any4);
}

/** True if *ip* is in a prefix of one of the addresses of *conf*, as a router must be. */
bool san_inet_route_is_on_link(const struct san_inet_conf *conf, const struct san_ip *ip);

void san_inet_conf_default(struct san_inet_conf *conf);
int san_inet_create(const struct san_inet_conf *conf, struct san_inet **out);
void san_inet_destroy(struct san_inet *in);

/** True if *ip* is one of our addresses. */
bool san_inet_route_is_local(const struct san_inet *in, const struct san_ip *ip);
/**
 * Our source address for *peer*: of its family, with the prefix of *peer* or of its router if there
 * is one. -EADDRNOTAVAIL: no address of that family; -ENETUNREACH: in no prefix of ours, and no
 * route leads there.
 */
int san_inet_route_source(const struct san_inet *in, const struct san_ip *peer, struct san_ip *src);
/**
 * MAC address of the next hop to *ip*. *again*: the host does not answer, so the address is
 * requested again, because it may have changed, unless it was just confirmed. 0; -EAGAIN: it was
 * requested, try again later; -EHOSTUNREACH: no answer for some time, or no route.
 */
int san_inet_route_resolve(struct san_inet *in, const struct san_ip *ip, bool again,
			   uint64_t now_ns, struct rte_ether_addr *mac);
/**
 * Process one frame that is not the transport's. Takes over *m*. NONE: it was consumed, or *r*
 * describes its content. The last fragment to arrive completes the datagram.
 */
enum san_drop san_inet_ip_rx(struct san_inet *in, struct rte_mbuf *m, uint64_t now_ns,
			     struct san_inet_result *r);
/**
 * Report to the sender, rate-limited, that no socket receives the datagram. *r* and its mbuf stay
 * valid.
 */
void san_inet_error_refuse(struct san_inet *in, const struct san_inet_result *r, uint64_t now_ns);
/**
 * Send a datagram of the bytes in *iov*, which are copied; groups and broadcast are allowed. It
 * waits, among others, while the MAC address of its neighbour is requested.
 *
 * @return
 *   0; -ENETUNREACH: no route; -EHOSTUNREACH: no answer from there; -EMSGSIZE: longer than any
 *   datagram, or with *df* longer than the path MTU; -EADDRNOTAVAIL: the source is not ours;
 *   -EAGAIN: no room, try again after san_inet_tx_burst(); -ENOMEM: no mbuf.
 */
int san_inet_udp_send(struct san_inet *in, const struct san_inet_dgram *d, const struct iovec *iov,
		      uint32_t nb_iov, uint64_t now_ns);
/**
 * Lower the path MTU as *r*, an ERROR, says, for some time, if the datagram was too long. Only call
 * it if a socket of ours can have sent the datagram: errors are unauthenticated.
 */
void san_inet_path_narrow(struct san_inet *in, const struct san_inet_result *r, uint64_t now_ns);
/** Path MTU to *ip* in IP bytes, as far as known. */
uint16_t san_inet_path_mtu(const struct san_inet *in, const struct san_ip *ip, uint64_t now_ns);

/**
 * Join *group*, counted: it needs as many leaves. Reported to the link unless *quiet* is set. 0;
 * -EINVAL: not a group; -ENOSPC: the table is full.
 */
int san_inet_group_join(struct san_inet *in, const struct san_ip *group, uint64_t now_ns);
/** Leave *group*. -ENOENT: not a member. */
int san_inet_group_leave(struct san_inet *in, const struct san_ip *group, uint64_t now_ns);
/**
 * MAC addresses of our groups, each once. Returns their number; *n* + 1: there are more. Every host
 * is a member of some groups: all systems, all nodes, solicited nodes.
 */
uint32_t san_inet_group_all(const struct san_inet *in, struct rte_ether_addr *macs, uint32_t n);
/** True if san_inet_tx_burst() has frames. */
bool san_inet_has_tx(const struct san_inet *in);
/** Take at most *n* frames to send; the caller owns them. */
uint16_t san_inet_tx_burst(struct san_inet *in, struct rte_mbuf **m, uint16_t n);
/**
 * Retries, ageing, reports. Returns the time of the next call; any call with a time argument may
 * make it earlier.
 */
uint64_t san_inet_tick(struct san_inet *in, uint64_t now_ns);
/** Set our MAC address; *announce*: announce it to the link, even if *quiet*. */
void san_inet_route_set_mac(struct san_inet *in, const struct rte_ether_addr *mac, bool announce);
/** SAN_DROP_MAX counters of drops that san_inet_ip_rx() does not return. */
const uint64_t *san_inet_drops(const struct san_inet *in);
/** Parse "10.0.0.1", "10.0.0.1/24", "fd00::1/64". 0 or -EINVAL. */
int san_inet_addr_parse(const char *text, struct san_inet_addr *out);
/**
 * Parse the address of a host and the length of its prefix, as in "10.0.0.1/24". -EINVAL also for
 * an address that no host can have there: a group, the network's own, its broadcast address.
 */
int san_inet_addr_parse_own(const char *text, struct san_inet_addr *out);
/** Parse "10.1.0.0/16,10.0.0.254", or only a router: the default route. 0 or -EINVAL. */
int san_inet_addr_parse_route(const char *text, struct san_inet_route *out);
#define SAN_INET_TEXT 64
/** Write the text of an address to *buf*, and return it. */
const char *san_inet_addr_text(const struct san_ip *ip, char buf[SAN_INET_TEXT]);
