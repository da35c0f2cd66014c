/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The cookie that a peer must return before it costs any memory: a keyed BLAKE2b over everything
 * that both REQs must have in common, and the number of a time slot in clear. (RT-24; RULE-17)
 *
 * The fields are written one by one: the bytes of a struct would include its padding in the MAC.
 */

#include <rte_byteorder.h>
#include <sodium.h>

#include "cm_priv.h"

#define COOKIE_MAC 16

static_assert(COOKIE_MAC + sizeof(uint32_t) == SAN_WIRE_COOKIE, "cookie = MAC + time slot");
static_assert(COOKIE_MAC >= crypto_generichash_BYTES_MIN, "MAC length");
static_assert(SAN_CM_SECRET >= crypto_generichash_KEYBYTES_MIN &&
		      SAN_CM_SECRET <= crypto_generichash_KEYBYTES_MAX,
	      "key length");

static void
cookie_put32(crypto_generichash_state *mac, uint32_t v)
{
	rte_be32_t be = rte_cpu_to_be_32(v);

	crypto_generichash_update(mac, (const uint8_t *)&be, sizeof(be));
}

static void
put_request(crypto_generichash_state *mac, const struct san_wire_cm *msg)
{
	unsigned int i;

	cookie_put32(mac, (uint32_t)(msg->flags & ~SAN_CM_F_COOKIE) << 8 | msg->nb_ports);
	cookie_put32(mac, msg->xid);
	cookie_put32(mac, msg->uid);
	cookie_put32(mac, msg->src_cid);
	cookie_put32(mac, msg->src_tag);
	cookie_put32(mac, msg->req_psn);
	cookie_put32(mac, msg->data_psn);
	cookie_put32(mac, msg->first_rsn);
	cookie_put32(mac, msg->features);
	cookie_put32(mac, (uint32_t)msg->mtu << 16 | msg->first_win);
	cookie_put32(mac, (uint32_t)msg->req_win << 16 | msg->data_win);
	cookie_put32(mac, (uint32_t)msg->max_txn << 16 | msg->rnr_ms);
	cookie_put32(mac, (uint32_t)msg->keepalive_ms << 16 | msg->private_len);
	cookie_put32(mac, (uint32_t)(msg->service >> 32));
	cookie_put32(mac, (uint32_t)msg->service);
	for (i = 0; i < SAN_WIRE_CM_PORTS; i++)
		cookie_put32(mac, i < msg->nb_ports ? msg->ports[i] : 0);
	crypto_generichash_update(mac, msg->private_data, SAN_WIRE_CM_PRIVATE);
}

static void
cookie_make_mac(const struct san_cm *cm, const struct san_wire_pkt *p,
		const struct san_wire_cm *msg, uint32_t time_slot, uint8_t cookie[SAN_WIRE_COOKIE])
{
	rte_be32_t be_slot = rte_cpu_to_be_32(time_slot);
	crypto_generichash_state mac;

	crypto_generichash_init(&mac, cm->conf.secret, sizeof(cm->conf.secret), COOKIE_MAC);
	cookie_put32(&mac, time_slot);
	crypto_generichash_update(&mac, p->src.b, sizeof(p->src.b));
	crypto_generichash_update(&mac, p->dst.b, sizeof(p->dst.b));
	cookie_put32(&mac, (uint32_t)p->src_port << 16 | p->pkey);
	put_request(&mac, msg);
	crypto_generichash_final(&mac, cookie, COOKIE_MAC);
	memcpy(cookie + COOKIE_MAC, &be_slot, sizeof(be_slot));
}

static uint32_t
slot_of(const struct san_cm *cm, uint64_t now_ns)
{
	return (uint32_t)(now_ns / cm->conf.cookie_slot_ns);
}

void
san_cm_cookie_make(const struct san_cm *cm, const struct san_wire_pkt *p,
		   const struct san_wire_cm *msg, uint64_t now_ns, uint8_t cookie[SAN_WIRE_COOKIE])
{
	cookie_make_mac(cm, p, msg, slot_of(cm, now_ns), cookie);
}

bool
san_cm_cookie_valid(const struct san_cm *cm, const struct san_wire_pkt *p,
		    const struct san_wire_cm *msg, uint64_t now_ns)
{
	uint8_t want[SAN_WIRE_COOKIE];
	rte_be32_t be_slot;
	uint32_t time_slot;

	memcpy(&be_slot, msg->cookie + COOKIE_MAC, sizeof(be_slot));
	time_slot = rte_be_to_cpu_32(be_slot);
	/* The age is checked first: a flood of old cookies costs no MAC. */
	if (slot_of(cm, now_ns) - time_slot > 1)
		return false;
	cookie_make_mac(cm, p, msg, time_slot, want);
	return sodium_memcmp(want, msg->cookie, sizeof(want)) == 0;
}
