/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INET_PRIV_H
#define INET_PRIV_H

/**
 * @file
 * What the files of this folder share: the instance, the neighbour table, and
 * the frame that is being looked at. (RT-31)
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>

#include "inet.h"
#include "inet_rate.h"
#include "san_prng.h"

#define INET_NONE        UINT32_MAX
#define INET_V4_OFF      12 /**< of an IPv4 address in struct san_ip */
#define INET_ETH_LEN     ((uint32_t)sizeof(struct rte_ether_hdr))
#define INET_HOPS_ND     255 /**< ND from beyond a router is forged */
#define INET_HOPS_OUT    64
#define INET_MTU_MIN     576 /**< what every host takes (RFC 791) */
#define INET_PATH_MIN_V4 552 /**< no path is taken to be narrower, whatever is said of it */
#define INET_PATH_MIN_V6 1280
#define INET_NB_FRAGS    128 /**< of the longest datagram over the narrowest path */
#define INET_IDS         256
#define INET_PROTO_V6    58 /**< ICMPv6 */
#define INET_PROTO_IGMP  2
#define INET_PROTO_FRAG  44
#define INET_PROTO_UDP   17

enum inet_neigh_state {
	INET_NEIGH_FREE = 0,
	INET_NEIGH_PENDING,   /**< asked for, MAC unknown */
	INET_NEIGH_REACHABLE, /**< MAC confirmed, or put to use, not long ago */
	INET_NEIGH_STALE,     /**< MAC known, not in use */
	INET_NEIGH_REFRESH,   /**< MAC known and in use, but old: asked for again */
	INET_NEIGH_FAILED,    /**< nobody answered; not asked for a while */
	INET_NEIGH_MAX
};

struct inet_neigh {
	struct san_ip ip;
	struct rte_ether_addr mac;
	uint8_t state; /**< enum inet_neigh_state */
	uint8_t retries;
	bool used;           /**< looked up since it was confirmed */
	uint16_t nb_waiting; /**< datagrams */
	uint32_t wait_head;  /**< their frames; INET_NONE: none */
	uint32_t wait_tail;  /**< of the last one */
	uint32_t next;       /**< in its bucket, or of the free list */
	uint64_t next_ns;    /**< its time in its state ends */
	TAILQ_ENTRY(inet_neigh)
	link; /**< of those in its state */
};
TAILQ_HEAD(inet_neigh_list, inet_neigh);

/** A frame that waits for its neighbour's MAC. */
struct inet_wait {
	struct rte_mbuf *m;
	uint32_t next;
	bool is_first; /**< of its datagram */
};

/** What a report says of a group: types of records in IGMPv3 and MLDv2. */
enum inet_report {
	INET_REPORT_IS = 2,    /**< as before, because a router asks */
	INET_REPORT_LEAVE = 3, /**< from now on no source */
	INET_REPORT_JOIN = 4,  /**< ... every source */
};

/** A group that somebody here is a member of, or was a moment ago. */
struct inet_group {
	struct san_ip ip;
	uint32_t nb_members;
	bool own;           /**< each host is in it, without members */
	uint8_t report;     /**< enum inet_report */
	uint8_t nb_reports; /**< still to be sent; with no members neither: the entry is free */
	uint64_t report_ns; /**< the next of them */
};

/** What a router said of the way to a host. */
struct inet_path {
	struct san_ip ip;
	uint16_t mtu;
	uint64_t until_ns;
};

/** Of one of our addresses. */
struct inet_own {
	uint64_t nb_conflicts;
	uint64_t defend_ns; /**< not again before */
};

/** What anybody may ask us for, each with rates of its own: a flood of one stops no other. */
enum inet_answer {
	INET_ANSWER_NEIGH, /**< ARP, neighbour discovery */
	INET_ANSWER_ECHO,
	INET_ANSWER_ERROR,
	INET_ANSWER_MAX
};

struct san_inet {
	struct san_inet_conf conf;
	struct san_prng prng;
	uint32_t hash_seed;           /**< of tables that peers fill */
	uint64_t drops[SAN_DROP_MAX]; /**< of what san_inet_rx() does not tell */
	/* inet.c */
	struct rte_mbuf **out;
	uint32_t out_head, out_tail;
	/* inet_own.c */
	struct inet_own own[8]; /**< as conf.addrs */
	uint64_t announce_ns;
	uint8_t nb_announced;
	/* inet_neigh.c */
	struct inet_neigh *neigh;
	uint32_t *buckets;
	uint32_t bucket_mask;
	uint32_t free_head;
	struct inet_neigh_list states[INET_NEIGH_MAX]; /**< longest in it first */
	struct inet_wait *waits;
	uint32_t wait_free;
	/* inet_ip.c */
	uint32_t ids[INET_IDS]; /**< see san_inet_id() */
	/* inet_whole.c */
	struct inet_partial *partials;
	struct inet_piece *pieces;
	uint32_t nb_partials;
	uint32_t nb_pieces;
	uint32_t piece_free; /* a list; INET_NONE: none */
	uint64_t nb_begun;   /**< packets, ever */
	uint64_t whole_ns;   /**< nothing waits too long before */
	/* inet_path.c */
	struct inet_path *paths;
	uint32_t nb_path_sets;
	/* inet_group.c */
	struct inet_group *groups; /**< own ones first */
	uint32_t nb_groups;
	uint64_t group_ns; /**< earliest of all report_ns */
	/* inet_igmp.c, inet_mld.c: until then there is a router that speaks nothing newer */
	uint64_t igmp_older_ns;
	uint64_t mld_older_ns;
	struct san_inet_rate answers[INET_ANSWER_MAX];
};

/** A received frame, and what it teaches. */
struct inet_rx {
	struct rte_mbuf *m;
	uint64_t now_ns;
	struct rte_ether_hdr eth;
	struct san_inet_result *r;
	/* of an IP packet: */
	struct san_ip src, dst;
	uint32_t off, len; /**< what IP carries, in bytes from the start of the frame */
	uint8_t proto;     /**< ... and what that is */
	uint32_t proto_at; /**< IPv6: ... which is said there */
	uint8_t hops;
	uint8_t tos;
	bool group; /**< *dst* is a group or a broadcast address */
	bool whole; /**< it was in fragments */
};

/** Where a packet goes next. */
struct inet_hop {
	struct rte_ether_addr mac;
	struct inet_neigh *neigh; /**< whose MAC is not known yet; NULL: it is */
};

/** What a neighbour says of itself. */
struct inet_claim {
	struct san_ip ip;
	struct rte_ether_addr mac;
	bool create;   /**< it talks to us: worth an entry; else only an existing one changes */
	bool override; /**< a MAC that differs replaces the one known */
};

/* ---- inet.c ---- */

/** An empty mbuf, or NULL: none is left, or what would be sent in it had no room. */
struct rte_mbuf *san_inet_out_alloc(struct san_inet *in);
/**
 * A copy of *len* bytes at *off* of *m*, to be sent, behind *hdr* bytes of headers to be written.
 * NULL: no mbuf, or what would be sent had no room.
 */
struct rte_mbuf *san_inet_out_copy(const struct san_inet *in, const struct rte_mbuf *m,
				   uint32_t off, uint32_t len, uint32_t hdr);
/** Send *m*; freed if too many wait. */
enum san_drop san_inet_out_add(struct san_inet *in, struct rte_mbuf *m);
/** That many frames more may be sent. */
uint32_t san_inet_out_room(const struct san_inet *in);
/** Answer *host*? Not more often than it may have, and not if another instance answers for us. */
bool san_inet_may_answer(struct san_inet *in, enum inet_answer kind, const struct san_ip *host,
			 uint64_t now_ns);

/* ---- inet_route.c ---- */

/** Of the same family, our address with the longest prefix that holds *peer*; else any. */
const struct san_inet_addr *san_inet_best_source(const struct san_inet *in,
						 const struct san_ip *peer, bool *on_link);
/** Who on the link takes packets for *ip*, which is one host's. NULL: nobody. */
const struct san_ip *san_inet_next_hop(const struct san_inet *in, const struct san_ip *ip);
/** Everybody on the link, or on one of our IPv4 networks? */
bool san_inet_is_broadcast(const struct san_inet *in, const struct san_ip *ip);
/** 0; -EAGAIN: wait for hop->neigh; -ENETUNREACH, -EHOSTUNREACH: see san_inet_send(). */
int san_inet_hop(struct san_inet *in, const struct san_ip *dst, uint64_t now_ns,
		 struct inet_hop *hop);
/** MAC address that the members of *group* listen to. */
void san_inet_group_mac(const struct san_ip *group, struct rte_ether_addr *mac);

/* ---- inet_neigh.c ---- */

int san_inet_neigh_create(struct san_inet *in);
void san_inet_neigh_destroy(struct san_inet *in);
/** 0; -EAGAIN: asked; -EHOSTUNREACH: nobody answers. *e* in any case but the last. */
int san_inet_neigh_find(struct san_inet *in, const struct san_ip *hop, uint64_t now_ns,
			struct inet_neigh **e);
/** The *n* frames of a datagram wait until *e* answers. False: no room; they stay the caller's. */
bool san_inet_neigh_wait(struct san_inet *in, struct inet_neigh *e, struct rte_mbuf **m,
			 uint32_t n);
/** Note what a neighbour said; report it to the caller of san_inet_rx(). */
void san_inet_neigh_learn(struct san_inet *in, const struct inet_rx *rx,
			  const struct inet_claim *claim);
/** It is there, its MAC unchanged (a neighbour advertisement without address). */
void san_inet_neigh_confirm(struct san_inet *in, const struct san_ip *ip, uint64_t now_ns);
/** Packets to it are not answered: ask it again, if it is not asked already. */
void san_inet_neigh_doubt(struct san_inet *in, const struct san_ip *hop, uint64_t now_ns);
/** Retries and ageing; the next time for it. */
uint64_t san_inet_neigh_tick(struct san_inet *in, uint64_t now_ns);

/* ---- inet_own.c ---- */

void san_inet_own_init(struct san_inet *in);
/** *mac* says that it has *ip*. True: that is ours, and it is not. */
bool san_inet_own_claimed(struct san_inet *in, const struct san_ip *ip,
			  const struct rte_ether_addr *mac, uint64_t now_ns);
/** Announcements; the next time for it. */
uint64_t san_inet_own_tick(struct san_inet *in, uint64_t now_ns);

/* ---- inet_arp.c ---- */

/** Tell everybody that *ip* is ours. */
void san_inet_arp_announce(struct san_inet *in, const struct san_ip *ip);

/** Ask for *target*; *mac*: ask only there, NULL: ask everybody. */
void san_inet_arp_ask(struct san_inet *in, const struct san_ip *target,
		      const struct rte_ether_addr *mac);
enum san_drop san_inet_arp_rx(struct san_inet *in, const struct inet_rx *rx);

/* ---- inet_nd.c ---- */

/** Tell everybody that *ip* is ours. */
void san_inet_nd_announce(struct san_inet *in, const struct san_ip *ip);
/** The group on which the owner of *ip* listens for solicitations. */
void san_inet_solicited_node(const struct san_ip *ip, struct san_ip *group);

void san_inet_nd_ask(struct san_inet *in, const struct san_ip *target,
		     const struct rte_ether_addr *mac);
/** A checked ICMPv6 message: neighbour solicitation or advertisement. */
enum san_drop san_inet_nd_rx(struct san_inet *in, const struct inet_rx *rx, uint8_t type);

/* ---- inet_ip.c ---- */

/**
 * The identification of the next packet to *dst*. Addresses share sequences by a secret hash, so a
 * receiver does not learn how many packets other hosts get.
 */
uint32_t san_inet_id(struct san_inet *in, const struct san_ip *dst);

/** Internet checksum, not inverted, of *len* bytes at *off*; 0: they are not all there. */
uint16_t san_inet_sum(const struct rte_mbuf *m, uint32_t off, uint32_t len);
/** Internet checksum of *len* bytes at *off* and a pseudo header: 0xffff in total when right. */
uint16_t san_inet_cksum(const struct rte_mbuf *m, uint32_t off, uint32_t len,
			const struct san_ip *src, const struct san_ip *dst, uint8_t proto);

/** Copy *len* bytes at *off*: nothing says that they lie aligned, or in one piece. */
bool san_inet_copy(const struct rte_mbuf *m, uint32_t off, uint32_t len, void *to);

/* ---- inet_icmp.c ---- */

enum san_drop san_inet_icmp_rx(struct san_inet *in, const struct inet_rx *rx);
enum san_drop san_inet_icmp6_rx(struct san_inet *in, const struct inet_rx *rx);

/* ---- inet_frag.c ---- */

/** Of a packet with *len* bytes of IP and no options. */
uint32_t san_inet_nb_frags(bool v4, uint32_t len, uint16_t mtu);
/**
 * Send the IP packet in *m*, its Ethernet header but for the destination written, in fragments
 * if it is longer than *mtu*. 0; -EAGAIN: no room; -ENOMEM. *m* is gone in any case.
 */
int san_inet_out_packet(struct san_inet *in, struct rte_mbuf *m, const struct inet_hop *hop,
			uint16_t mtu);
/* ---- inet_whole.c ---- */

int san_inet_whole_create(struct san_inet *in);
void san_inet_whole_destroy(struct san_inet *in);
/** A fragment, with the header *ip*. NONE: rx->m is the whole packet now, or NULL. */
enum san_drop san_inet_whole_rx_v4(struct san_inet *in, struct inet_rx *rx,
				   const struct rte_ipv4_hdr *ip);
/** ... or one with a fragment header at rx->off. */
enum san_drop san_inet_whole_rx_v6(struct san_inet *in, struct inet_rx *rx);
/** Gives up what waited too long; the next time for it. */
uint64_t san_inet_whole_tick(struct san_inet *in, uint64_t now_ns);
/** All that holds of the tables, for tests. */
void san_inet_whole_check(const struct san_inet *in);

/* ---- inet_error.c ---- */

/** A checked ICMP message, or ICMPv6, that may be an error; *icmp*: its header. */
enum san_drop san_inet_error_rx(struct san_inet *in, const struct inet_rx *rx,
				const uint8_t icmp[8]);

/* ---- inet_path.c ---- */

int san_inet_path_create(struct san_inet *in);
void san_inet_path_destroy(struct san_inet *in);

/* ---- inet_udp.c ---- */

/** NONE: the result has the datagram; its mbuf is to stay. */
enum san_drop san_inet_udp_rx(const struct inet_rx *rx);

/* ---- inet_group.c ---- */

int san_inet_group_create(struct san_inet *in);
void san_inet_group_destroy(struct san_inet *in);
/** Did somebody here join it? */
bool san_inet_is_member(const struct san_inet *in, const struct san_ip *group);
/** A router asks for *group*, or for *all* groups of its family; answer in *max_ms*. */
void san_inet_group_asked(struct san_inet *in, const struct san_ip *group, bool all,
			  uint32_t max_ms, uint64_t now_ns);
/** Another member answered for *group*. */
void san_inet_group_heard(struct san_inet *in, const struct san_ip *group);
/** Reports that are due; the next time for it. */
uint64_t san_inet_group_tick(struct san_inet *in, uint64_t now_ns);

/* ---- inet_igmp.c ---- */

void san_inet_igmp_report(struct san_inet *in, const struct san_ip *group, enum inet_report what,
			  uint64_t now_ns);
/** To one of our groups, or to all systems. */
enum san_drop san_inet_igmp_rx(struct san_inet *in, const struct inet_rx *rx);

/* ---- inet_mld.c ---- */

void san_inet_mld_report(struct san_inet *in, const struct san_ip *group, enum inet_report what,
			 uint64_t now_ns);
/** A checked ICMPv6 message. */
enum san_drop san_inet_mld_rx(struct san_inet *in, const struct inet_rx *rx);

/* ---- small ones ---- */

static inline void
inet_from_v4(struct san_ip *ip, const void *addr)
{
	memset(ip->b, 0, 10);
	memset(ip->b + 10, 0xff, 2);
	memcpy(ip->b + INET_V4_OFF, addr, 4);
}

/** To the wire: IPv4 4 bytes, IPv6 16. */
static inline const void *
inet_raw(const struct san_ip *ip)
{
	return san_ip_is_v4(ip) ? ip->b + INET_V4_OFF : ip->b;
}

static inline bool
inet_is_group(const struct san_ip *ip)
{
	if (san_ip_is_v4(ip))
		return (ip->b[INET_V4_OFF] & 0xf0) == 0xe0;
	return ip->b[0] == 0xff;
}

static inline bool
inet_is_zero(const struct san_ip *ip)
{
	static const struct san_ip zero;

	return san_ip_eq(ip, &zero);
}

/** IPv4's unspecified address. */
static inline bool
inet_is_any_v4(const struct san_ip *ip)
{
	static const uint8_t any[4];

	return san_ip_is_v4(ip) && memcmp(ip->b + INET_V4_OFF, any, sizeof(any)) == 0;
}

/** An address that one host has: not unspecified, multicast, broadcast or loopback. */
static inline bool
inet_is_unicast(const struct san_ip *ip)
{
	static const uint8_t loopback[16] = {[15] = 1};

	if (san_ip_is_v4(ip))
		return ip->b[INET_V4_OFF] != 0 && ip->b[INET_V4_OFF] != 127 &&
			ip->b[INET_V4_OFF] < 224;
	return !inet_is_zero(ip) && ip->b[0] != 0xff &&
		memcmp(ip->b, loopback, sizeof(loopback)) != 0;
}

#endif /* INET_PRIV_H */
