/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INET_H
#define INET_H

/**
 * @file
 * What a host on an IP link must do besides the transport: answer and ask ARP
 * and ND, answer echo requests (RT-31, SYS-1); and what UDP sockets need of it: datagrams
 * in and out, in fragments where they are long, errors about them, groups (UDP-3, UDP-5).
 * One instance per lcore; sans-I/O.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "san_drop.h"
#include "wire.h"

struct san_inet_addr {
	struct san_ip ip;
	uint8_t prefix_len; /**< of 128; IPv4: 96 + its prefix length */
};

/** What lies behind a router on the link; of several that hold an address the longest prefix. */
struct san_inet_route {
	struct san_inet_addr to; /**< prefix length 0 (IPv6) or 96 (IPv4): everything else */
	struct san_ip gateway;   /**< of the same family */
};

struct san_inet_conf {
	struct rte_ether_addr mac;
	uint16_t nb_addrs;
	struct san_inet_addr addrs[8];
	uint16_t nb_routes;
	struct san_inet_route routes[16];
	uint32_t max_neighbours;
	uint64_t reachable_ns; /**< an entry in use is asked for again after this */
	uint64_t retry_ns;
	uint8_t max_retries;
	uint16_t mtu;         /**< bytes of IP that the link takes */
	uint32_t max_out;     /**< frames that wait to be sent, a power of two */
	uint32_t max_waiting; /**< frames that wait for their neighbours' addresses */
	uint16_t max_groups;
	uint16_t max_partial;   /**< packets that wait for fragments; 0: none */
	uint16_t max_frags;     /**< mbufs that they hold at most, all together */
	uint16_t max_paths;     /**< whose MTU routers told us */
	uint64_t path_ns;       /**< how long that is believed */
	uint32_t answers_per_s; /**< of each kind, to all hosts, at most; see inet_rate.h */
	uint32_t answers_burst; /**< ... at once */
	uint64_t prng_seed;     /**< of identifications, delays, hashes; unknown to peers */
	/** Somebody else answers for us: another instance, the kernel. */
	bool quiet;
	bool announce;            /**< tell the link of our addresses at start; not if *quiet* */
	struct rte_mempool *pool; /**< for requests and answers */
};

/** A UDP datagram. */
struct san_inet_dgram {
	struct san_ip src, dst; /**< of one family; to send, *src* all zero or 0.0.0.0: choose */
	uint16_t sport, dport;  /**< host byte order */
	uint8_t hops;           /**< TTL or hop limit; to send, 0: the default */
	uint8_t tos;            /**< or traffic class, with its ECN bits */
	bool df;                /**< to send: not in fragments */
	bool probe;             /**< to send: as if the path took what the link takes */
	bool group;             /**< received: *dst* is a group or a broadcast address */
};

/** What a frame brought, for who is above. */
enum san_inet_what {
	SAN_INET_NOTHING = 0,
	SAN_INET_LEARNED, /**< a neighbour's address: *ip*, *mac* */
	SAN_INET_UDP,     /**< a datagram for one of our addresses or groups, its checksum right */
	SAN_INET_ERROR,   /**< somebody, *ip*, could not deliver datagram *d*, which was ours */
};

struct san_inet_result {
	uint8_t what; /**< enum san_inet_what */
	struct san_ip ip;
	struct rte_ether_addr mac;
	bool awaited; /**< LEARNED: it was not known, and was asked for */
	struct san_inet_dgram d;
	struct rte_mbuf *m; /**< UDP: the whole datagram, the caller's to free */
	uint32_t off, len;  /**< ... its payload, in bytes from the start of the frame */
	int err;            /**< ERROR: what the kernel says of it: ECONNREFUSED, EMSGSIZE, ... */
	bool hard;          /**< ... a connected socket is told of it without asking (IP_RECVERR) */
	uint8_t type, code; /**< ... of ICMP or ICMPv6 */
	uint16_t mtu;       /**< ... EMSGSIZE: of the path, as it says */
};

struct san_inet; /* inet.c */

/** Is *ip* in a prefix of one of the addresses of *conf*? A router must be. */
bool san_inet_is_on_link(const struct san_inet_conf *conf, const struct san_ip *ip);

void san_inet_conf_default(struct san_inet_conf *conf);
int san_inet_create(const struct san_inet_conf *conf, struct san_inet **out);
void san_inet_destroy(struct san_inet *in);

/** Is *ip* one of ours? */
bool san_inet_is_local(const struct san_inet *in, const struct san_ip *ip);
/**
 * Our address for talking to *peer*: same family, and the prefix of it or of its router if
 * there is one. -EADDRNOTAVAIL; -ENETUNREACH: in no prefix of ours, and no route leads to it.
 */
int san_inet_source(const struct san_inet *in, const struct san_ip *peer, struct san_ip *src);
/**
 * MAC address of the next hop to *ip*. 0; -EAGAIN: asked, try again later;
 * -EHOSTUNREACH: nobody answered for some time, or no route.
 */
int san_inet_resolve(struct san_inet *in, const struct san_ip *ip, uint64_t now_ns,
		     struct rte_ether_addr *mac);
/**
 * As san_inet_resolve(), of a host that does not answer: its next hop is asked for its MAC
 * again, which it may have changed, unless it has just confirmed it.
 */
int san_inet_resolve_again(struct san_inet *in, const struct san_ip *ip, uint64_t now_ns,
			   struct rte_ether_addr *mac);
/**
 * One frame that is not the transport's; *m* is ours from here on. NONE: it was consumed, or
 * *r* says what there is in it. Of fragments the last to come brings the datagram.
 */
enum san_drop san_inet_rx(struct san_inet *in, struct rte_mbuf *m, uint64_t now_ns,
			  struct san_inet_result *r);
/** A datagram that nobody takes: tell its sender, not too often. *r* and its mbuf stay. */
void san_inet_refuse(struct san_inet *in, const struct san_inet_result *r, uint64_t now_ns);
/**
 * Send a datagram of the bytes in *iov*, which are copied; also to groups and to everybody. While
 * its neighbour is asked for it waits, with others.
 *
 * @return
 *   0; or -ENETUNREACH: no route; -EHOSTUNREACH: nobody answers there; -EMSGSIZE: longer than any
 *   datagram, or with *df* than the path takes; -EADDRNOTAVAIL: the source is not ours;
 *   -EAGAIN: no room, try again after san_inet_tx_burst(); -ENOMEM: no mbuf.
 */
int san_inet_send(struct san_inet *in, const struct san_inet_dgram *d, const struct iovec *iov,
		  uint32_t nb_iov, uint64_t now_ns);
/**
 * A socket can have sent the datagram that *r*, an ERROR, is about: if it was too long, the path
 * is as narrow as *r* says, for some time. Others' errors must not come here: anybody can send
 * them.
 */
void san_inet_narrow(struct san_inet *in, const struct san_inet_result *r, uint64_t now_ns);
/** Bytes of IP that the path to *ip* takes in one packet, as far as known. */
uint16_t san_inet_path_mtu(const struct san_inet *in, const struct san_ip *ip, uint64_t now_ns);

/**
 * We are a member of *group*, once more; who leaves as often is none. The link is told, unless
 * *quiet* is set. 0; -EINVAL: no group; -ENOSPC.
 */
int san_inet_join(struct san_inet *in, const struct san_ip *group, uint64_t now_ns);
/** -ENOENT: is no member. */
int san_inet_leave(struct san_inet *in, const struct san_ip *group, uint64_t now_ns);
/**
 * MAC addresses of the groups we are in, each once: how many, of which *n* are written. Every
 * host is in some, those of all systems, all nodes and neighbour discovery.
 */
uint32_t san_inet_groups(const struct san_inet *in, struct rte_ether_addr *macs, uint32_t n);
/** How often another host said that *ip*, one of our addresses, is its own. */
uint64_t san_inet_conflicts(const struct san_inet *in, const struct san_ip *ip);
/** Are there frames for san_inet_tx_burst()? */
bool san_inet_has_tx(const struct san_inet *in);
/** Frames to send, at most *n*; the caller's from then on. */
uint16_t san_inet_tx_burst(struct san_inet *in, struct rte_mbuf **m, uint16_t n);
/**
 * Retries, ageing, reports; returns the next time it wants to be called, which may be sooner after
 * any call that is told the time.
 */
uint64_t san_inet_tick(struct san_inet *in, uint64_t now_ns);
/** Our MAC address from now on; *announce*: the link is told of it, even if *quiet*. */
void san_inet_set_mac(struct san_inet *in, const struct rte_ether_addr *mac, bool announce);
/** What was lost but with san_inet_rx(), which tells: SAN_DROP_MAX counters. */
const uint64_t *san_inet_drops(const struct san_inet *in);
/** "10.0.0.1", "10.0.0.1/24", "fd00::1/64". -EINVAL. */
int san_inet_parse(const char *text, struct san_inet_addr *out);
/** "10.1.0.0/16,10.0.0.254", or a router's address alone: everything else. -EINVAL. */
int san_inet_parse_route(const char *text, struct san_inet_route *out);
#define SAN_INET_TEXT 64
/** Text of an address into *buf*, returned. */
const char *san_inet_text(const struct san_ip *ip, char buf[SAN_INET_TEXT]);

#endif /* INET_H */
