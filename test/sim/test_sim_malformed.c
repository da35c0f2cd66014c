/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Malformed packets of a peer that follow its ordinary ones have the same effect with express and
 * without: on drops, completions, memory, windows. Among them are lengths that wrap, in a region
 * that has room for them. (RT-42)
 */

#include <sys/mman.h>

#include "pair.h"

#include "core_priv.h"
#include "wire_sample.h"

#define REGION    (5ull << 30) /* a length below 0 is within it, if it is not checked */
#define NB_RECVS  8
#define RECV_LEN  64
#define HOSTILE   6000 /* at least as many */
#define DATA      128  /* of the region and of the receives that is compared */
#define FIRST_LEN 8

struct push {
	uint8_t kind;
	uint16_t payload;
	uint32_t length, offset;
	uint16_t behind; /* bytes of Ethernet padding */
};

/* What the target has of three pushes: an ordinary one, a hostile one, and one in its place. */
struct effect {
	uint64_t drops[SAN_DROP_MAX];
	uint32_t psn, high, rsn;
	struct san_ulp_wc wc[NB_RECVS];
	uint32_t nb_wc;
	uint64_t nb_placed_bytes, rx_bytes;
	uint8_t data[DATA], recvs[DATA];
};

static struct san_core *target;
static struct san_pdl_conn *conn;
static uint8_t *region;
static uint32_t key, nb_recvs;
static uint8_t recvs[NB_RECVS * RECV_LEN];

/* A packet of the peer; its fields that a push has, too. */
static struct san_wire_pkt
pkt_of(const struct wire_sample *s, uint32_t psn, uint32_t rsn)
{
	struct san_wire_pkt pkt = wire_sample_pkt(s);

	pkt.pkey = conn->pkey;
	pkt.dcid = conn->cid;
	pkt.tag = conn->tag;
	pkt.psn = psn;
	pkt.rsn = rsn;
	pkt.round = 0;
	pkt.req_ebsn = conn->tx[SAN_WIN_REQ].next;
	pkt.data_ebsn = conn->tx[SAN_WIN_DATA].next;
	pkt.cmpl_rsn = conn->cmpl_in;
	pkt.key = key;
	pkt.addr = (uintptr_t)region;
	return pkt;
}

static struct rte_mbuf *
pkt_build(const struct san_wire_pkt *pkt, const struct wire_sample *s, uint16_t behind)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pair.w->pool);
	struct san_wire_path path = conn->path;

	path.src = conn->path.dst;
	path.dst = conn->path.src;
	wire_sample_payload(s, (uint8_t *)rte_pktmbuf_append(m, s->payload));
	san_wire_build(m, &path, pkt);
	san_wire_icrc_seal(m);
	memset(rte_pktmbuf_append(m, behind), 0, behind);
	return m;
}

static struct rte_mbuf *
push_build(const struct push *h, uint32_t psn, uint32_t rsn, uint8_t last)
{
	const struct wire_sample s = {
		.op = SAN_OP_PUSH_UNSLCTD_DATA,
		.flags = last | (uint8_t)(h->kind << SAN_F_KIND_SHIFT),
		.payload = h->payload,
		.length = h->length,
		.offset = h->offset,
	};
	struct san_wire_pkt pkt = pkt_of(&s, psn, rsn);

	pkt.addr = (uintptr_t)region + 2u * h->kind;
	return pkt_build(&pkt, &s, h->behind);
}

/* LAST of a push was taken, and its begin does not come otherwise: send it. */
static void
begin_late(const struct push *h)
{
	const struct san_pdl_rxw *w = &conn->rx[SAN_WIN_DATA];
	struct push begin = *h;
	struct rte_mbuf *m;

	begin.payload = (uint16_t)h->offset;
	begin.offset = begin.behind = 0;
	m = push_build(&begin, w->high, target->tl->conns[conn->slot].rx_base, 0);
	san_core_rx_burst(target, &m, 1, pair.w->now_ns);
	assert_int_equal(conn->odd, 0);
}

static void
effect_of(const struct push *first, const struct push *h, struct effect *e)
{
	uint32_t psn = conn->rx[SAN_WIN_DATA].base, rsn = target->tl->conns[conn->slot].rx_base;
	struct rte_mbuf *burst[3] = {push_build(first, psn, rsn, SAN_F_LAST),
				     push_build(h, psn + 1, rsn + 1, SAN_F_LAST),
				     push_build(first, psn + 1, rsn + 1, SAN_F_LAST)};

	memset(e, 0, sizeof(*e));
	for (; nb_recvs < NB_RECVS; nb_recvs++)
		world_post_recv(pair.w, pair.qb, recvs + nb_recvs * RECV_LEN, RECV_LEN, nb_recvs);
	san_core_rx_burst(target, burst, RTE_DIM(burst), pair.w->now_ns);
	san_core_check(target);
	san_core_drops(target, e->drops);
	e->psn = conn->rx[SAN_WIN_DATA].base;
	e->high = conn->rx[SAN_WIN_DATA].high;
	e->rsn = target->tl->conns[conn->slot].rx_base;
	e->nb_placed_bytes = san_ulp_stats(target->ulp)->nb_placed_bytes;
	e->nb_wc = san_ulp_cq_poll(pair.w->qp[pair.qb].recv_cq, e->wc, NB_RECVS);
	nb_recvs -= e->nb_wc;
	memcpy(e->data, region, sizeof(e->data));
	memcpy(e->recvs, recvs, sizeof(e->recvs));
}

/* An ordinary one and the hostile one behind it, number *i*. False: there is none. */
static bool
pushes_draw(uint32_t i, struct push *first, struct push *h)
{
	static const uint32_t offsets[] = {0, 1, -4u};
	static const uint16_t behinds[] = {0, 4};
	static const int64_t lengths[] = {0, 1, SAN_WIRE_LENGTH_MAX, SAN_WIRE_LENGTH_MAX + 1,
					  3u << 30, UINT32_MAX};

	first->kind = (uint8_t)(i % 3);
	first->payload = FIRST_LEN;
	first->length = FIRST_LEN - (first->kind == SAN_KIND_PUSH_IMM ? SAN_WIRE_IMM_LEN : 0);
	first->offset = first->behind = 0;
	i /= 3;
	h->kind = (uint8_t)(i % 4);
	i /= 4;
	h->payload = (uint16_t)(i % 9);
	i /= 9;
	h->offset = offsets[i % RTE_DIM(offsets)];
	i /= RTE_DIM(offsets);
	h->behind = behinds[i % RTE_DIM(behinds)];
	i /= RTE_DIM(behinds);
	/* what is left of the payload without an immediate, and around it; and limits */
	h->length = i < 9 ? h->payload + 1u - i : (uint32_t)lengths[(i - 9) % RTE_DIM(lengths)];
	return i < 9 + RTE_DIM(lengths);
}

static void
region_open(void)
{
	region = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(region != MAP_FAILED);
}

static void
target_open(bool express)
{
	pair.conf.tune = pair_tune_express;
	pair.conf.tune_arg = &express;
	memset(region, 0, DATA);
	memset(recvs, 0, sizeof(recvs));
	nb_recvs = 0;
	pair_open(64);
	key = world_mr(pair.w, 1, region, REGION, PAIR_ALL);
	target = pair.w->node[1].core;
	conn = pair_conn(false);
}

/* Returns how many pushes took express. */
static uint64_t
target_close(void)
{
	uint64_t nb = san_ulp_stats(target->ulp)->nb_express_rx;

	world_node_kill(pair.w, 0);
	world_node_kill(pair.w, 1);
	world_destroy(pair.w);
	pair.w = NULL;
	free(pair.a);
	free(pair.b);
	return nb;
}

/* Give all to one target. The first time their effects are stored, then they are compared. */
static uint64_t
hostile_run(bool express, struct effect *effects)
{
	struct push first, h;
	struct effect e;
	uint32_t i;

	target_open(express);
	for (i = 0; pushes_draw(i, &first, &h); i++) {
		effect_of(&first, &h, &e);
		if (express && memcmp(&e, &effects[i], sizeof(e)) != 0)
			fail_msg("push of kind %u, %u bytes, length %#x, offset %#x, %u behind: "
				 "its effect is another one by express",
				 h.kind, h.payload, h.length, h.offset, h.behind);
		effects[i] = e;
		if (conn->odd != 0)
			begin_late(&h);
	}
	assert_true(i > HOSTILE);
	return target_close();
}

PAIR_CASE(sim_malformed__same_effect)
{
	struct effect *effects = calloc(2 * HOSTILE, sizeof(*effects));

	assert_non_null(effects);
	region_open();
	assert_int_equal(hostile_run(false, effects), 0);
	assert_true(hostile_run(true, effects) > HOSTILE);
	munmap(region, REGION);
	free(effects);
}

/* ---- data of a solicited push ---- */

#define NB_PARTS 5
#define PART_LEN 24u
#define AT       2    /* the packet that is hostile */
#define GRANTED  960u /* of twice that; the next grant is due after an eighth of it */

/* What is added to, or of flags changed in, the fields that the packet would have. */
struct odds {
	uint32_t psn, rsn, offset, tag, req_ebsn, data_ebsn, cmpl_rsn, tx_time;
	uint16_t payload, pkey, behind;
	uint8_t flags, round;
	bool ackreq, damaged;
};

static const struct odds odds[] = {
	{0},
	{.ackreq = true},
	{.psn = 1},
	{.psn = 2},
	{.psn = -1u},
	{.psn = -3u},
	{.psn = 1u << 24},
	{.psn = 1000000},
	{.rsn = 1},
	{.rsn = -1u},
	{.rsn = 1000},
	{.offset = 1},
	{.offset = -1u},
	{.offset = PART_LEN},
	{.offset = -PART_LEN},
	{.offset = 2 * PART_LEN},
	{.offset = 3 * PART_LEN},
	{.offset = SAN_WIRE_LENGTH_MAX},
	{.offset = 3u << 30},
	{.offset = -AT * PART_LEN - 1},
	{.offset = GRANTED - AT * PART_LEN},
	{.tag = 1},
	{.req_ebsn = 1},
	{.data_ebsn = 1},
	{.data_ebsn = -1u},
	{.cmpl_rsn = 1},
	{.tx_time = 1},
	{.tx_time = -1u},
	{.payload = 1},
	{.payload = 4},
	{.payload = -4 & UINT16_MAX},
	{.payload = (uint16_t)-PART_LEN},
	{.payload = 2 * PART_LEN},
	{.payload = 3 * PART_LEN},
	{.pkey = 1},
	{.behind = 4},
	{.flags = SAN_F_LAST},
	{.flags = SAN_F_PIECE},
	{.flags = 1u << SAN_F_KIND_SHIFT},
	{.flags = 2u << SAN_F_KIND_SHIFT},
	{.flags = 0x80},
	{.round = 1},
	{.damaged = true},
};

static struct rte_mbuf *
data_build(uint32_t psn, uint32_t rsn, uint32_t i, const struct odds *o)
{
	const struct wire_sample s = {
		.op = SAN_OP_PUSH_SLCTD_DATA,
		.flags = WIRE_SAMPLE_KIND(PUSH) ^ o->flags,
		.payload = (uint16_t)(PART_LEN + o->payload),
		.offset = i * PART_LEN + o->offset,
	};
	struct san_wire_pkt p = pkt_of(&s, psn + i + o->psn, rsn + o->rsn);
	struct rte_mbuf *m;

	p.ackreq = o->ackreq;
	p.pkey = (uint16_t)(p.pkey + o->pkey);
	p.round = o->round;
	p.tag += o->tag;
	p.req_ebsn += o->req_ebsn;
	p.data_ebsn += o->data_ebsn;
	p.cmpl_rsn += o->cmpl_rsn;
	p.tx_time += o->tx_time;
	m = pkt_build(&p, &s, o->behind);
	if (o->damaged)
		rte_pktmbuf_mtod(m, uint8_t *)[rte_pktmbuf_data_len(m) - 5] ^= 1;
	return m;
}

/* What the target has of five packets, of which the third is hostile, or all from there on. */
struct data_effect {
	uint64_t drops[SAN_DROP_MAX];
	struct san_pdl_stats pdl;
	struct san_tl_stats tl;
	struct san_pdl_ackst ack;
	uint64_t nb_placed_bytes, nb_rx_pkts;
	uint32_t psn, high, rsn, received, arrived, budget_used, odd;
	uint8_t data[DATA];
};

/* Ask for more than is granted, and let the target answer, so that it owes no ACK. */
static void
data_ask(uint32_t rsn)
{
	const struct wire_sample ask = {.op = SAN_OP_PUSH_SLCTD_REQ,
					.flags = WIRE_SAMPLE_KIND(PUSH),
					.length = 2 * GRANTED};
	struct san_wire_pkt p = pkt_of(&ask, conn->rx[SAN_WIN_REQ].base, rsn);
	const struct san_tl_conn *tc = &target->tl->conns[conn->slot];
	struct rte_mbuf *m;

	target->tl->budget_bytes = target->tl->limit_bytes = GRANTED;
	p.ssn = tc->ssn_queued;
	m = pkt_build(&p, &ask, 0);
	san_core_rx_burst(target, &m, 1, pair.w->now_ns);
	assert_non_null(tc->cur);
	assert_int_equal(tc->cur->granted, GRANTED);
	while (san_core_tx_burst(target, &m, 1, pair.w->now_ns) == 1)
		rte_pktmbuf_free(m);
	assert_false(conn->ack.asked || conn->ack.listed);
}

static uint64_t
data_run(bool express, const struct odds *o, bool all, struct data_effect *e)
{
	struct rte_mbuf *burst[NB_PARTS];
	static const struct odds none;
	const struct san_tl_conn *tc;
	uint32_t psn, rsn;

	target_open(express);
	tc = &target->tl->conns[conn->slot];
	psn = conn->rx[SAN_WIN_DATA].base;
	rsn = tc->rx_base;
	data_ask(rsn);
	for (uint32_t i = 0; i < NB_PARTS; i++)
		burst[i] = data_build(psn, rsn, i,
				      i == AT || (all && i > AT) ? o : &none);
	san_core_rx_burst(target, burst, NB_PARTS, pair.w->now_ns);
	san_core_check(target);
	memset(e, 0, sizeof(*e));
	san_core_drops(target, e->drops);
	e->pdl = target->pdl->stats;
	e->tl = target->tl->stats;
	e->ack = conn->ack;
	e->nb_placed_bytes = san_ulp_stats(target->ulp)->nb_placed_bytes;
	e->nb_rx_pkts = conn->nb_rx_pkts;
	e->psn = conn->rx[SAN_WIN_DATA].base;
	e->high = conn->rx[SAN_WIN_DATA].high;
	e->rsn = tc->rx_base;
	e->received = tc->cur != NULL ? tc->cur->received : 0;
	e->arrived = tc->cur != NULL ? tc->cur->arrived : 0;
	e->budget_used = target->tl->budget_used;
	e->odd = conn->odd;
	memcpy(e->data, region, sizeof(e->data));
	return target_close();
}

PAIR_CASE(sim_malformed__same_effect_of_data)
{
	struct data_effect with, without;
	uint64_t nb;

	region_open();
	for (uint32_t i = 0; i < 2 * RTE_DIM(odds); i++) {
		assert_int_equal(data_run(false, &odds[i / 2], i % 2 != 0, &without), 0);
		nb = data_run(true, &odds[i / 2], i % 2 != 0, &with);
		if (memcmp(&with, &without, sizeof(with)) != 0)
			fail_msg("odds %u: the effect is another one by express", i / 2);
		/* the second packet, and all but the first and last if they are ordinary */
		assert_true(i < 4 ? nb == NB_PARTS - 2 : nb >= 1);
	}
	munmap(region, REGION);
}
