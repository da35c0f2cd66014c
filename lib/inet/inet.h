/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INET_H
#define INET_H

/**
 * @file
 * What a host on an IP link must do besides the transport: answer and ask ARP
 * and ND, answer echo requests (RT-31, SYS-1). One instance per lcore; sans-I/O.
 */

#include <stdbool.h>
#include <stdint.h>

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
	uint64_t reachable_ns; /**< entry is asked for again after this */
	uint64_t retry_ns;
	uint8_t max_retries;
	bool quiet;               /**< another instance on the port answers for all */
	struct rte_mempool *pool; /**< for requests and answers */
};

struct san_inet; /* inet_neigh.c */

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
 * One frame that is not the transport's. Never keeps *m*. NONE: consumed; a
 * *learned* neighbour (valid if not NULL and its ip not all zero) is reported.
 */
enum san_drop san_inet_rx(struct san_inet *in, struct rte_mbuf *m, uint64_t now_ns,
			  struct san_ip *learned, struct rte_ether_addr *mac);
/** Frames to send, at most *n*; the caller's from then on. */
uint16_t san_inet_tx_burst(struct san_inet *in, struct rte_mbuf **m, uint16_t n);
/** Retries and ageing; returns the next time it wants to be called. */
uint64_t san_inet_tick(struct san_inet *in, uint64_t now_ns);
/** ARP and ND packets that were not sent for lack of an mbuf. */
uint64_t san_inet_no_mbuf(const struct san_inet *in);
/** "10.0.0.1", "10.0.0.1/24", "fd00::1/64". -EINVAL. */
int san_inet_parse(const char *text, struct san_inet_addr *out);
/** "10.1.0.0/16,10.0.0.254", or a router's address alone: everything else. -EINVAL. */
int san_inet_parse_route(const char *text, struct san_inet_route *out);
#define SAN_INET_TEXT 64
/** Text of an address into *buf*, returned. */
const char *san_inet_text(const struct san_ip *ip, char buf[SAN_INET_TEXT]);

#endif /* INET_H */
