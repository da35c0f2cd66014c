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

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>

#include "inet.h"

#define INET_OUT_MAX  64 /**< frames that wait for the next burst, power of two */
#define INET_NONE     UINT32_MAX
#define INET_V4_OFF   12 /**< of an IPv4 address in struct san_ip */
#define INET_ETH_LEN  ((uint32_t)sizeof(struct rte_ether_hdr))
#define INET_HOPS_ND  255 /**< ND from beyond a router is forged */
#define INET_HOPS_OUT 64

enum inet_neigh_state {
	INET_NEIGH_FREE = 0,
	INET_NEIGH_PENDING,   /**< asked for, MAC unknown */
	INET_NEIGH_REACHABLE, /**< MAC known */
	INET_NEIGH_REFRESH,   /**< MAC known and in use, but old: asked for again */
	INET_NEIGH_FAILED,    /**< nobody answered; not asked for a while */
};

struct inet_neigh {
	struct san_ip ip;
	struct rte_ether_addr mac;
	uint8_t state; /**< enum inet_neigh_state */
	uint8_t retries;
	bool used;           /**< looked up since it was confirmed */
	uint32_t next;       /**< in its bucket, or of the free list */
	uint64_t next_ns;    /**< retry, ageing or end of FAILED */
	uint64_t touched_ns; /**< made, confirmed or looked up */
};

struct san_inet {
	struct san_inet_conf conf;
	struct inet_neigh *neigh;
	uint32_t *buckets;
	uint32_t bucket_mask;
	uint32_t free_head;
	uint64_t next_ns; /**< earliest of all next_ns */
	uint32_t out_head, out_tail;
	struct rte_mbuf *out[INET_OUT_MAX];
	uint64_t nb_no_mbuf;
};

/** A received frame, and what it teaches. */
struct inet_rx {
	const struct rte_mbuf *m;
	uint64_t now_ns;
	struct rte_ether_hdr eth;
	struct san_ip *learned;
	struct rte_ether_addr *mac;
};

/** What a neighbour says of itself. */
struct inet_claim {
	struct san_ip ip;
	struct rte_ether_addr mac;
	bool create;   /**< it talks to us: worth an entry; else only an existing one changes */
	bool override; /**< a MAC that differs replaces the one known */
};

/* ---- inet_neigh.c ---- */

/** Note what a neighbour said; report it to the caller of san_inet_rx(). */
void san_inet_neigh_learn(struct san_inet *in, const struct inet_rx *rx,
			  const struct inet_claim *claim);
/** It is there, its MAC unchanged (a neighbour advertisement without address). */
void san_inet_neigh_confirm(struct san_inet *in, const struct san_ip *ip, uint64_t now_ns);
/** An empty mbuf to answer with, or NULL. */
struct rte_mbuf *san_inet_out_alloc(struct san_inet *in);
/** Send *m*; freed if too many wait. */
enum san_drop san_inet_out_add(struct san_inet *in, struct rte_mbuf *m);

/* ---- inet_arp.c ---- */

/** Ask for *target*; *mac*: ask only there, NULL: ask everybody. */
void san_inet_arp_ask(struct san_inet *in, const struct san_ip *target,
		      const struct rte_ether_addr *mac);
enum san_drop san_inet_arp_rx(struct san_inet *in, const struct inet_rx *rx);

/* ---- inet_nd.c ---- */

void san_inet_nd_ask(struct san_inet *in, const struct san_ip *target,
		     const struct rte_ether_addr *mac);
/** A checked ICMPv6 packet of *len* bytes behind *ip*: neighbour solicitation or advertisement. */
enum san_drop san_inet_nd_rx(struct san_inet *in, const struct inet_rx *rx,
			     const struct rte_ipv6_hdr *ip, uint8_t type, uint32_t len);
/** ICMPv6 checksum of *len* bytes at *off*: 0xffff in total when right. */
uint16_t san_inet_cksum_v6(const struct rte_mbuf *m, const struct rte_ipv6_hdr *ip, uint32_t off,
			   uint32_t len);

/* ---- small ones ---- */

static inline void
inet_from_v4(struct san_ip *ip, const void *addr)
{
	memset(ip->b, 0, 10);
	memset(ip->b + 10, 0xff, 2);
	memcpy(ip->b + INET_V4_OFF, addr, 4);
}

static inline bool
inet_is_zero(const struct san_ip *ip)
{
	static const struct san_ip zero;

	return san_ip_eq(ip, &zero);
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
