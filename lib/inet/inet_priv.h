/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Definitions shared by the files of this folder: the instance, the neighbour table, and the frame
 * being processed. (RT-31)
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>

#include "inet.h"
#include "inet_rate.h"
#include "san_pool.h"
#include "san_prng.h"

#define INET_V4_OFF      12 /**< offset of an IPv4 address in struct san_ip */
#define INET_ETH_LEN     ((uint32_t)sizeof(struct rte_ether_hdr))
#define INET_V4_LEN      ((uint32_t)sizeof(struct rte_ipv4_hdr))
#define INET_V6_LEN      ((uint32_t)sizeof(struct rte_ipv6_hdr))
#define INET_FRAG_LEN    ((uint32_t)sizeof(struct rte_ipv6_fragment_ext))
#define INET_HOPS_ND     255 /**< required: a lower value means that a router forwarded it */
#define INET_HOPS_OUT    64
#define INET_MTU_MIN     576 /**< every host accepts this length (RFC 791) */
#define INET_PATH_MIN_V4 552 /**< a path MTU is never lowered further, whatever is reported */
#define INET_PATH_MIN_V6 1280
#define INET_NB_FRAGS    128 /**< the longest datagram over the narrowest path */
#define INET_IDS         256
#define INET_TOS_CONTROL 0xc0 /**< internetwork control, as other hosts set it */

/** In the order in which new entries replace others. */
enum inet_neigh_state {
	INET_NEIGH_FREE = 0,
	INET_NEIGH_STALE,     /**< MAC address known, not in use */
	INET_NEIGH_FAILED,    /**< no answer; no new request for a while */
	INET_NEIGH_REACHABLE, /**< MAC address recently confirmed, or taken into use */
	INET_NEIGH_REFRESH,   /**< MAC address in use, but old: requested again */
	INET_NEIGH_PENDING,   /**< MAC address requested, unknown */
	INET_NEIGH_MAX
};

/** A frame that waits for the MAC address of its neighbour. */
struct inet_wait {
	struct rte_mbuf *m;
	STAILQ_ENTRY(inet_wait) link;
	bool is_first; /**< first frame of its datagram */
};

struct inet_neigh {
	struct san_ip ip;
	struct rte_ether_addr mac;
	uint8_t state; /**< enum inet_neigh_state */
	uint8_t retries;
	bool used;                      /**< looked up since the last confirmation */
	uint16_t nb_waiting;            /**< datagrams waiting for it */
	STAILQ_HEAD(, inet_wait) waits; /**< their frames */
	LIST_ENTRY(inet_neigh) in_bucket;
	uint64_t next_ns;             /**< end of its time in this state */
	TAILQ_ENTRY(inet_neigh) link; /**< in the list of its state */
};
TAILQ_HEAD(inet_neigh_list, inet_neigh);
LIST_HEAD(inet_bucket, inet_neigh);

/** Content of a group report: record types of IGMPv3 and MLDv2. */
enum inet_report {
	INET_REPORT_IS = 2,    /**< unchanged; answer to a router's query */
	INET_REPORT_LEAVE = 3, /**< no source from now on */
	INET_REPORT_JOIN = 4,  /**< ... every source */
};

/** A group with members here, now or recently. */
struct inet_group {
	struct san_ip ip;
	uint32_t nb_members;
	bool own;           /**< every host is in it, without members */
	uint8_t report;     /**< enum inet_report */
	uint8_t nb_reports; /**< reports to be sent; free if there are no members either */
	uint64_t report_ns; /**< time of the next report */
};

/** Path MTU that a router reported. */
struct inet_path {
	struct san_ip ip;
	uint16_t mtu;
	uint64_t until_ns;
};

/**
 * Kinds of unauthenticated requests, each rate-limited on its own: a flood of one stops no other.
 */
enum inet_answer {
	INET_ANSWER_NEIGH, /**< ARP, neighbour discovery */
	INET_ANSWER_ECHO,
	INET_ANSWER_ERROR,
	INET_ANSWER_MAX
};

struct san_inet {
	struct san_inet_conf conf;
	struct san_prng prng;
	uint32_t hash_seed;           /**< for tables that peers fill */
	uint64_t drops[SAN_DROP_MAX]; /**< drops that san_inet_ip_rx() does not return */
	/* inet.c */
	struct rte_mbuf **out;
	uint32_t out_head, out_tail;
	/* inet_route.c */
	uint64_t defend_ns[8]; /**< of conf.addrs[]: next defence not before */
	uint64_t announce_ns;
	uint8_t nb_announced;
	/* inet_neigh.c */
	struct inet_neigh *neigh;
	struct inet_bucket *buckets;
	uint32_t bucket_mask;
	struct san_pool free_neigh;
	struct inet_neigh_list states[INET_NEIGH_MAX]; /**< per state, longest in it first */
	struct inet_wait *waits;
	struct san_pool free_waits;
	/* inet_ip.c */
	uint32_t ids[INET_IDS]; /**< see san_inet_ip_id() */
	/* inet_whole.c */
	struct inet_partial *partials;
	struct inet_piece *pieces;
	struct san_pool free_pieces;
	uint64_t nb_begun; /**< packets begun so far */
	uint64_t whole_ns; /**< next time that a packet has waited too long */
	/* inet_path.c */
	struct inet_path *paths;
	uint32_t nb_path_sets;
	/* inet_group.c */
	struct inet_group *groups; /**< own groups first */
	uint32_t nb_groups;
	uint64_t group_ns;    /**< earliest of all report_ns */
	uint64_t older_ns[2]; /**< inet_report.c: until then an older router is assumed */
	struct san_inet_rate answers[INET_ANSWER_MAX];
};

/** A received frame, and its content. */
struct inet_rx {
	struct rte_mbuf *m;
	uint64_t now_ns;
	struct rte_ether_hdr eth;
	struct san_inet_result *r;
	/* of an IP packet: */
	struct san_inet_dgram d; /**< only UDP has ports */
	uint32_t off, len;       /**< IP payload: offset in the frame, bytes */
	uint8_t proto;           /**< ... its protocol */
	uint32_t proto_at;       /**< IPv6: ... offset of the field that names it */
	bool whole;              /**< it came in fragments */
};

/** IP header to be written. */
struct inet_ip_out {
	const struct san_ip *src, *dst;
	uint32_t len; /**< bytes after the header and its options */
	uint8_t proto, hops, tos;
	uint16_t id; /**< IPv4 only, as *df* */
	bool df;
	bool alert; /**< with the router alert option */
};

/** Next hop of a packet. */
struct inet_hop {
	struct rte_ether_addr mac;
	struct inet_neigh *neigh; /**< neighbour whose MAC address is missing; NULL: none */
};

/** Address that a neighbour claims. */
struct inet_claim {
	struct san_ip ip;
	struct rte_ether_addr mac;
	bool create;   /**< it talks to us: create an entry; else only update one */
	bool override; /**< a different MAC address replaces the known one */
};

/* ---- inet.c ---- */

/** An empty mbuf; NULL: none is left, or the send queue is full. */
struct rte_mbuf *san_inet_out_alloc(struct san_inet *in);
/**
 * A frame with *len* bytes after its Ethernet header, which is written except for the destination.
 * NULL: no mbuf, or the send queue is full.
 */
struct rte_mbuf *san_inet_out_frame(struct san_inet *in, rte_be16_t ether_type, uint32_t len);
/**
 * Copy *len* bytes at *off* of *m* into a frame to send, with *hdr* bytes of space for headers
 * before them. NULL: no mbuf, or the send queue is full.
 */
struct rte_mbuf *san_inet_out_copy(const struct san_inet *in, const struct rte_mbuf *m,
				   uint32_t off, uint32_t len, uint32_t hdr);
/** Queue *m* for sending; freed if the queue is full. */
enum san_drop san_inet_out_add(struct san_inet *in, struct rte_mbuf *m);
/** Frames that fit in the send queue. */
uint32_t san_inet_out_room(const struct san_inet *in);
/** True if *host* may get an answer: within its rate, and no other instance answers for us. */
bool san_inet_may_answer(struct san_inet *in, enum inet_answer kind, const struct san_ip *host,
			 uint64_t now_ns);

/* ---- inet_route.c ---- */

/** Our address with the longest prefix that contains *peer*; else any of its family. */
const struct san_inet_addr *san_inet_route_best_source(const struct san_inet *in,
						       const struct san_ip *peer);
/** True for the broadcast addresses of the link and of our IPv4 networks. */
bool san_inet_route_is_broadcast(const struct san_inet *in, const struct san_ip *ip);
/** 0; -EAGAIN: wait for hop->neigh; -ENETUNREACH, -EHOSTUNREACH: see san_inet_udp_send(). */
int san_inet_route_hop(struct san_inet *in, const struct san_ip *dst, uint64_t now_ns,
		       struct inet_hop *hop);
/** MAC address to which packets for *group* are sent. */
void san_inet_route_group_mac(const struct san_ip *group, struct rte_ether_addr *mac);
/** *mac* claims *ip*. True: this is our address, and not our MAC address. */
bool san_inet_route_claimed(struct san_inet *in, const struct san_ip *ip,
			    const struct rte_ether_addr *mac, uint64_t now_ns);
/** Announcements; returns the next time for a call. */
uint64_t san_inet_route_tick(struct san_inet *in, uint64_t now_ns);

/* ---- inet_neigh.c ---- */

int san_inet_neigh_create(struct san_inet *in);
void san_inet_neigh_destroy(struct san_inet *in);
/** 0; -EAGAIN: requested; -EHOSTUNREACH: no answer. *e* is set in all cases but the last. */
int san_inet_neigh_find(struct san_inet *in, const struct san_ip *hop, uint64_t now_ns,
			struct inet_neigh **e);
/** Queue the *n* frames of a datagram until *e* answers. False: no room; the caller keeps them. */
bool san_inet_neigh_wait(struct san_inet *in, struct inet_neigh *e, struct rte_mbuf **m,
			 uint32_t n);
/** Store a neighbour's claim and report it to the caller of san_inet_ip_rx(). */
void san_inet_neigh_learn(struct san_inet *in, const struct inet_rx *rx,
			  const struct inet_claim *claim);
/** The neighbour is there, with its MAC address unchanged (advertisement without address). */
void san_inet_neigh_confirm(struct san_inet *in, const struct san_ip *ip, uint64_t now_ns);
/** Packets to it get no answer: request its MAC address again, unless that is under way. */
void san_inet_neigh_verify(struct san_inet *in, const struct san_ip *hop, uint64_t now_ns);
/** Retries and ageing; returns the next time for a call. */
uint64_t san_inet_neigh_tick(struct san_inet *in, uint64_t now_ns);

/* ---- inet_arp.c ---- */

/**
 * Request the MAC address of *target*, from *mac* only or (NULL) by broadcast. To announce an
 * address of ours, *src* is that address, too.
 */
void san_inet_arp_ask(struct san_inet *in, const struct san_ip *src, const struct san_ip *target,
		      const struct rte_ether_addr *mac);
enum san_drop san_inet_arp_rx(struct san_inet *in, const struct inet_rx *rx);

/* ---- inet_nd.c ---- */

/** Announce on the link that *ip* is ours. */
void san_inet_nd_announce(struct san_inet *in, const struct san_ip *ip);
/** Solicited-node group of *ip*. */
void san_inet_nd_solicited_node(const struct san_ip *ip, struct san_ip *group);
void san_inet_nd_ask(struct san_inet *in, const struct san_ip *src, const struct san_ip *target,
		     const struct rte_ether_addr *mac);
/** Process a verified ICMPv6 message: neighbour solicitation or advertisement. */
enum san_drop san_inet_nd_rx(struct san_inet *in, const struct inet_rx *rx, uint8_t type);

/* ---- inet_ip.c ---- */

/**
 * Identification for the next packet to *dst*. Addresses share sequences by a secret hash, so a
 * receiver cannot infer how many packets other hosts get.
 */
uint32_t san_inet_ip_id(struct san_inet *in, const struct san_ip *dst);

/** Write an IP header to *hdr*, and return the place after it. */
void *san_inet_ip_put(void *hdr, const struct inet_ip_out *x);
/** Write the header of an ICMP, ICMPv6 or IGMP message of ours in *m*, and its checksum. */
void san_inet_ip_finish(struct rte_mbuf *m, const struct inet_ip_out *x);
/** Send such a message of x->len bytes, to *mac* or (NULL) to the members of the group x->dst. */
void san_inet_ip_send(struct san_inet *in, const struct rte_ether_addr *mac,
		      const struct inet_ip_out *x, const void *msg);
/**
 * Internet checksum of *len* bytes at *off* and a pseudo header, which ICMP and IGMP don't have:
 * 0xffff if correct.
 */
uint16_t san_inet_ip_cksum(const struct rte_mbuf *m, uint32_t off, uint32_t len,
			   const struct san_ip *src, const struct san_ip *dst, uint8_t proto);

/** Copy *len* bytes at *off*, which may be unaligned and in several segments. */
bool san_inet_ip_copy(const struct rte_mbuf *m, uint32_t off, uint32_t len, void *to);

/* ---- inet_icmp.c ---- */

/** Process a message of ICMP or ICMPv6. */
enum san_drop san_inet_icmp_rx(struct san_inet *in, const struct inet_rx *rx);

/* ---- inet_frag.c ---- */

/** Fragments of a packet with *len* bytes of IP and no options. */
uint32_t san_inet_frag_count(bool v4, uint32_t len, uint16_t mtu);
/**
 * Send the IP packet in *m*, in fragments if it is longer than *mtu*. Its Ethernet header is
 * written except for the destination. 0; -EAGAIN: no room; -ENOMEM. Takes over *m* in any case.
 */
int san_inet_frag_out(struct san_inet *in, struct rte_mbuf *m, const struct inet_hop *hop,
		      uint16_t mtu);

/* ---- inet_whole.c ---- */

int san_inet_whole_create(struct san_inet *in);
void san_inet_whole_destroy(struct san_inet *in);
/** Process a fragment with the header *ip*. NONE: rx->m is the whole packet now, or NULL. */
enum san_drop san_inet_whole_rx_v4(struct san_inet *in, struct inet_rx *rx,
				   const struct rte_ipv4_hdr *ip);
/** ... or a fragment with the fragment header at rx->off. */
enum san_drop san_inet_whole_rx_v6(struct san_inet *in, struct inet_rx *rx);
/** Drop packets that waited too long; returns the next time for a call. */
uint64_t san_inet_whole_tick(struct san_inet *in, uint64_t now_ns);
/** Verify all invariants of the tables, for tests. */
void san_inet_whole_check(const struct san_inet *in);

/* ---- inet_error.c ---- */

/** Process a verified ICMP or ICMPv6 message that may be an error; *icmp*: its header. */
enum san_drop san_inet_error_rx(struct san_inet *in, const struct inet_rx *rx,
				const uint8_t icmp[8]);

/* ---- inet_path.c ---- */

int san_inet_path_create(struct san_inet *in);

/* ---- inet_udp.c ---- */

/** NONE: the result has the datagram, and its mbuf stays. */
enum san_drop san_inet_udp_rx(const struct inet_rx *rx);

/* ---- inet_group.c ---- */

int san_inet_group_create(struct san_inet *in);
/** True if a socket here joined *group*, or every host is in it. */
bool san_inet_group_is_received(const struct san_inet *in, const struct san_ip *group);
/** True if a socket here joined *group*. */
bool san_inet_group_is_member(const struct san_inet *in, const struct san_ip *group);
/** A router queries *group*, or (any) all groups of its family; answer within *max_ms*. */
void san_inet_group_on_query(struct san_inet *in, const struct san_ip *group, uint32_t max_ms,
			     uint64_t now_ns);
/** Another member answered for *group*. */
void san_inet_group_on_report(struct san_inet *in, const struct san_ip *group);
/** Send reports that are due; returns the next time for a call. */
uint64_t san_inet_group_tick(struct san_inet *in, uint64_t now_ns);

/* ---- inet_report.c ---- */

void san_inet_report_send(struct san_inet *in, const struct san_ip *group, enum inet_report what,
			  uint64_t now_ns);
/** Process a message of IGMP or MLD. */
enum san_drop san_inet_report_rx(struct san_inet *in, const struct inet_rx *rx);

/* ---- small helpers ---- */

/** The bytes of an address on the wire: 4 for IPv4, 16 for IPv6. */
static inline const void *
san_inet_raw(const struct san_ip *ip)
{
	return san_wire_ip_is_v4(ip) ? ip->b + INET_V4_OFF : ip->b;
}

/** Bytes of the IP header, without options, of packets of the family of *ip*. */
static inline uint32_t
san_inet_hdr_len(const struct san_ip *ip)
{
	return san_wire_ip_is_v4(ip) ? INET_V4_LEN : INET_V6_LEN;
}

static inline rte_be16_t
san_inet_ether_type(const struct san_ip *ip)
{
	return rte_cpu_to_be_16(san_wire_ip_is_v4(ip) ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
}

static inline bool
san_inet_is_group(const struct san_ip *ip)
{
	if (san_wire_ip_is_v4(ip))
		return (ip->b[INET_V4_OFF] & 0xf0) == 0xe0;
	return ip->b[0] == 0xff;
}

/** True for the address of one host: not unspecified, multicast, broadcast or loopback. */
static inline bool
san_inet_is_unicast(const struct san_ip *ip)
{
	static const uint8_t loopback[16] = {[15] = 1};

	if (san_wire_ip_is_v4(ip))
		return ip->b[INET_V4_OFF] != 0 && ip->b[INET_V4_OFF] != 127 &&
			ip->b[INET_V4_OFF] < 224;
	return !san_inet_is_any(ip) && ip->b[0] != 0xff &&
		memcmp(ip->b, loopback, sizeof(loopback)) != 0;
}
