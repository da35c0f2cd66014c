/* SPDX-License-Identifier: BSD-3-Clause */

/* The cookie covers every field that both REQs share, and expires. (RT-24; RULE-17) */

#include "unit.h"
#include "cm_net.h"

#define SLOT_NS (4 * SAN_NS_PER_S)

static struct san_cm cm;
static struct san_wire_pkt pkt;
static struct san_wire_cm msg;

static void
setup(void)
{
	struct san_prng g;

	san_prng_seed(&g, 5);
	memset(&cm, 0, sizeof(cm));
	cm.conf.cookie_slot_ns = SLOT_NS;
	for (unsigned int i = 0; i < sizeof(cm.conf.secret); i++)
		cm.conf.secret[i] = (uint8_t)san_prng_u64(&g);
	memset(&pkt, 0, sizeof(pkt));
	pkt.src = cm_net_ip(0, false);
	pkt.dst = cm_net_ip(1, false);
	pkt.src_port = 50000;
	pkt.pkey = 0xffff;
	memset(&msg, 0, sizeof(msg));
	msg.msg = SAN_CM_REQ;
	msg.nb_ports = SAN_WIRE_CM_PORTS;
	msg.private_len = 17;
}

UNIT_FIXTURE(.setup = setup);

/** Get a cookie as the connecting side does. */
static void
take_cookie(uint64_t now_ns)
{
	san_cm_cookie_make(&cm, &pkt, &msg, now_ns, msg.cookie);
	msg.flags |= SAN_CM_F_COOKIE;
}

static bool
is_valid(uint64_t now_ns)
{
	return san_cm_cookie_valid(&cm, &pkt, &msg, now_ns);
}

UNIT_CASE(valid__own_cookie)
{
	take_cookie(5 * SLOT_NS);
	assert_true(is_valid(5 * SLOT_NS));
}

struct field {
	const char *name;
	size_t off, len;
	bool pkt;
};

/* clang-format off */
#define MSG(f) {#f, offsetof(struct san_wire_cm, f), sizeof(((struct san_wire_cm *)0)->f), false}
#define PKT(f) {#f, offsetof(struct san_wire_pkt, f), sizeof(((struct san_wire_pkt *)0)->f), true}

static const struct field covered[] = {
	PKT(src), PKT(dst), PKT(src_port), PKT(pkey),
	MSG(nb_ports), MSG(xid), MSG(src_cid), MSG(src_tag), MSG(req_psn), MSG(data_psn),
	MSG(first_rsn), MSG(features), MSG(mtu), MSG(req_win), MSG(data_win), MSG(first_win),
	MSG(max_txn), MSG(rnr_ms), MSG(keepalive_ms), MSG(private_len), MSG(service),
	MSG(cookie), MSG(ports), MSG(private_data),
};
/* clang-format on */

/* Changing any bit of any field invalidates the cookie. */
UNIT_CASE(valid__covers_every_bit)
{
	uint8_t *at;

	take_cookie(5 * SLOT_NS);
	UNIT_EACH(r, covered) {
		at = (r->pkt ? (uint8_t *)&pkt : (uint8_t *)&msg) + r->off;
		for (size_t bit = 0; bit < r->len * 8; bit++) {
			at[bit / 8] ^= (uint8_t)(1u << bit % 8);
			if (is_valid(5 * SLOT_NS))
				fail_msg("%s bit %zu", r->name, bit);
			at[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
	msg.flags ^= SAN_CM_F_ORDERED;
	assert_false(is_valid(5 * SLOT_NS));
	msg.flags ^= SAN_CM_F_ORDERED | SAN_CM_F_RELAXED;
	assert_false(is_valid(5 * SLOT_NS));
	msg.flags ^= SAN_CM_F_RELAXED;
	assert_true(is_valid(5 * SLOT_NS));
}

static const struct {
	uint64_t made_ns, now_ns;
	bool valid;
} ages[] = {
	{0, 0, true},
	{0, SLOT_NS - 1, true},
	{0, SLOT_NS, true}, /* previous slot */
	{0, 2 * SLOT_NS - 1, true},
	{0, 2 * SLOT_NS, false},
	{SLOT_NS - 1, 2 * SLOT_NS - 1, true},
	{SLOT_NS - 1, 2 * SLOT_NS, false},
	{SLOT_NS, SLOT_NS - 1, false}, /* from the future */
	{7 * SLOT_NS, 1000 * SLOT_NS, false},
	/* the number of the slot wraps at 2^32 */
	{0xffffffffULL * SLOT_NS, 0x100000000ULL * SLOT_NS, true},
	{0xffffffffULL * SLOT_NS, 0x100000001ULL * SLOT_NS, false},
};

UNIT_CASE(valid__ages)
{
	for (unsigned int i = 0; i < RTE_DIM(ages); i++) {
		take_cookie(ages[i].made_ns);
		if (is_valid(ages[i].now_ns) != ages[i].valid)
			fail_msg("row %u", i);
	}
}

/* A later slot number in an old cookie is invalid: the MAC covers it. */
UNIT_CASE(valid__slot_is_not_free)
{
	take_cookie(5 * SLOT_NS);
	msg.cookie[19]++;
	assert_false(is_valid(6 * SLOT_NS));
}

UNIT_CASE(valid__secret_matters)
{
	take_cookie(5 * SLOT_NS);
	for (unsigned int i = 0; i < SAN_CM_SECRET; i++) {
		cm.conf.secret[i] ^= 1;
		assert_false(is_valid(5 * SLOT_NS));
		cm.conf.secret[i] ^= 1;
	}
	assert_true(is_valid(5 * SLOT_NS));
}

/* The MAC address is not covered, because it is not part of the message. */
UNIT_CASE(valid__not_the_mac_address)
{
	take_cookie(5 * SLOT_NS);
	pkt.src_mac.addr_bytes[3] ^= 1;
	assert_true(is_valid(5 * SLOT_NS));
}

/* The same input gives the same cookie, so that a run can be repeated. */
UNIT_CASE(cookie_make_mac__deterministic)
{
	static const uint8_t slot[4] = {0, 0, 0, 5};
	uint8_t first[SAN_WIRE_COOKIE];

	take_cookie(5 * SLOT_NS);
	memcpy(first, msg.cookie, sizeof(first));
	assert_memory_equal(first + 16, slot, sizeof(slot));
	take_cookie(5 * SLOT_NS + 1);
	assert_memory_equal(first, msg.cookie, sizeof(first));
	take_cookie(6 * SLOT_NS);
	assert_memory_not_equal(first, msg.cookie, 16);
}
