/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What express takes of a frame's headers is what the parser finds in them, of any frame: an
 * unsolicited push that is whole, of the path; and each of those is taken, so that the ordinary
 * case stays one. So is what it takes of a frame that is like the one before it. Frames are built
 * at random, some too short for their immediate, then most get a bit flipped somewhere, and half of
 * these a new ICRC. test_wire_express has every value of every field.
 */

#include "prop.h"

#include "unit/test_eal.h"
#include "wire_priv.h"
#include "wire_sample.h"

#define NB_FRAMES 400
#define PAYLOAD   600

static struct rte_mempool *pool;
static struct san_prng g;
static uint32_t nb_alike;

static uint32_t
below(uint32_t n)
{
	return (uint32_t)(san_prng_u64(&g) % n);
}

static void
draw_pkt(struct san_wire_pkt *p, uint16_t payload)
{
	uint8_t kind = (uint8_t)below(SAN_KIND_SEND_IMM + 1);
	uint32_t imm = san_wire_has_imm(kind) ? SAN_WIRE_IMM_LEN : 0;

	*p = (struct san_wire_pkt){
		.op = below(8) == 0 ? SAN_OP_PUSH_SLCTD_DATA : SAN_OP_PUSH_UNSLCTD_DATA,
		.flags = (uint8_t)(kind << SAN_F_KIND_SHIFT | (below(8) == 0 ? 0 : SAN_F_LAST)),
		.round = (uint8_t)below(256),
		.ackreq = below(2),
		.pkey = (uint16_t)below(65536),
		.dcid = below(1u << 24) | 2,
		.tag = (uint32_t)san_prng_u64(&g),
		.psn = (uint32_t)san_prng_u64(&g),
		.rsn = (uint32_t)san_prng_u64(&g),
		.req_ebsn = (uint32_t)san_prng_u64(&g),
		.data_ebsn = (uint32_t)san_prng_u64(&g),
		.cmpl_rsn = (uint32_t)san_prng_u64(&g),
		.tx_time = (uint32_t)san_prng_u64(&g),
		.addr = san_prng_u64(&g),
		.key = (uint32_t)san_prng_u64(&g),
		.offset = below(8) == 0 ? below(100) : 0,
	};
	p->length = payload - imm + (below(8) == 0 ? below(3) : 0); /* it may wrap */
}

/* One of the visit of *p*: like it, but for its numbers, place and length; or for more. */
static void
draw_next(struct san_wire_pkt *p, uint16_t payload)
{
	uint32_t imm = san_wire_imm_len(p->flags | SAN_F_LAST);

	p->psn += 1 + below(3);
	p->rsn++;
	p->ackreq = below(2);
	p->addr = san_prng_u64(&g);
	p->length = payload - imm; /* it may wrap */
	p->round ^= below(8) == 0;
	p->data_ebsn += below(8) == 0;
	p->key += below(8) == 0;
}

static struct rte_mbuf *
build(const struct san_wire_path *path, const struct san_wire_pkt *p, uint16_t payload)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *data;

	PROP_CHECK(m != NULL);
	data = (uint8_t *)rte_pktmbuf_append(m, payload);
	for (uint16_t i = 0; i < payload; i++)
		data[i] = (uint8_t)san_prng_u64(&g);
	san_wire_build(m, path, p);
	san_wire_icrc_seal(m);
	return m;
}

/* Most get a bit flipped, in the headers mostly: there is more to say of them. */
static void
damage(struct rte_mbuf *m, uint16_t hdr_len)
{
	uint32_t bit = below(8u * rte_pktmbuf_data_len(m));
	uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);

	if (below(3) == 0)
		return;
	if (below(4) != 0)
		bit %= 8u * hdr_len;
	data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	if (below(2) == 0 && bit / 8 != offsetof(struct wire_eth, type) &&
	    bit / 8 != offsetof(struct wire_eth, type) + 1)
		san_wire_icrc_seal(m);
}

static bool
is_ordinary(const struct rte_mbuf *m, const struct san_wire_path *path,
	    const struct san_wire_pkt *p)
{
	uint32_t imm = san_wire_imm_len(p->flags | SAN_F_LAST);

	return p->op == SAN_OP_PUSH_UNSLCTD_DATA && (p->flags & SAN_F_PIECE) == 0 &&
		(p->flags & SAN_F_LAST) != 0 && p->offset == 0 &&
		p->payload_len == p->length + imm && san_wire_ip_eq(&p->src, &path->dst) &&
		san_wire_ip_eq(&p->dst, &path->src) && m->nb_segs == 1;
}

/* Returns whether it was taken; *x*: what was found in it then. With *last* it may be like that. */
static bool
check_frame(struct rte_mbuf *m, const struct san_wire_path *path, const struct rte_mbuf *last,
	    struct san_wire_pkt *x)
{
	static struct san_wire_ack ack;
	uint32_t len = rte_pktmbuf_data_len(m);
	struct san_wire_pkt p, alike = *x;
	bool is_alike, is_taken, is_right;
	enum san_drop drop;

	is_alike = last != NULL && san_wire_express_next(m, last, &alike) &&
		san_wire_express_sum(m, &alike);
	is_taken = san_wire_express(m, path, SAN_WIRE_PORT, x) && san_wire_express_sum(m, x);
	drop = san_wire_parse(m, SAN_WIRE_PORT, &p, &ack);
	is_right = drop == SAN_DROP_NONE && is_ordinary(m, path, &p);
	PROP_CHECK(is_taken == (is_right && len == rte_pktmbuf_data_len(m)));
	PROP_CHECK(!is_alike || is_taken);
	nb_alike += is_alike;
	if (is_alike)
		PROP_CHECK(wire_sample_differs(&alike, &p) == NULL);
	if (is_taken) {
		PROP_CHECK(san_wire_express_cid_at(m) == p.dcid);
		PROP_CHECK(wire_sample_differs(x, &p) == NULL);
	}
	return is_taken;
}

static void
run(uint64_t seed)
{
	struct san_wire_path path, back;
	struct san_wire_pkt p, x = {0};
	struct rte_mbuf *m, *last = NULL;
	uint16_t payload;
	bool is_taken;

	if (pool == NULL) {
		test_eal_init();
		pool = rte_pktmbuf_pool_create("packets", 63, 0, SAN_PKT_PRIV_SIZE,
					       RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	}
	san_prng_seed(&g, seed);
	path = wire_sample_path(seed & 1);
	back = path;
	back.src = path.dst;
	back.dst = path.src;
	nb_alike = 0;
	for (uint32_t i = 0; i < NB_FRAMES; i++) {
		payload = (uint16_t)below(below(4) == 0 ? 2 * SAN_WIRE_IMM_LEN : PAYLOAD);
		if (last == NULL || below(4) == 0)
			draw_pkt(&p, payload);
		else
			draw_next(&p, payload);
		m = build(&path, &p, payload);
		damage(m, san_wire_op_hdr_len(p.op, seed & 1));
		is_taken = check_frame(m, &back, last, &x);
		rte_pktmbuf_free(last);
		last = is_taken ? m : NULL;
		if (!is_taken)
			rte_pktmbuf_free(m);
	}
	rte_pktmbuf_free(last);
	PROP_CHECK(nb_alike > NB_FRAMES / 100);
}

PROP_MAIN("express", run)
