/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RT-35: each pool that the connections of an lcore share (core_share.c), with a hostile host that
 * takes as much of it as it can, and an innocent one. Node 0 has the pools, node 1 is innocent.
 */

#include "pair.h"
#include "wire.h"

#define NB_HOSTILE 60 /* connections of node 2; more than max_wide */
#define LEN        4096
#define DEPTH      8
#define POSTED     64 /* by the hostile host, on each connection */
#define RATE_NS    (5 * SAN_NS_PER_MS)
#define ROUNDS     10

enum lie {
	RECEIVED_ONLY, /* ACKs report everything as received, and acknowledge nothing */
	NO_ACKS,       /* packets are received, and nothing is acknowledged; probes are answered */
	FIRST_ONLY,    /* pushes begin and do not continue */
	NO_BASES,      /* the first packet of each connection never comes */
	NO_RESYNC,     /* refusals are not answered */
	NO_DATA,       /* grants are not used */
	NO_REQUEST,    /* the first request of each connection never comes */
};

struct attack {
	const char *pool;
	enum lie lie;
	bool is_asked; /* node 0 sends to the hostile host; else that sends to node 0 */
	uint8_t op;
	uint32_t flags, len;
	uint32_t least; /* parts that are taken during the attack */
	bool bad_key, unordered;
};

static const struct attack attacks[] = {
	{"connections", NO_ACKS, true, RTSAN_WR_PUSH, 0, 64, NB_HOSTILE},
	{"packets in flight", NO_ACKS, true, RTSAN_WR_PUSH, RTSAN_WR_UNSOLICITED, LEN, 10},
	{"transmit blocks", NO_ACKS, true, RTSAN_WR_PUSH, RTSAN_WR_UNSOLICITED, LEN, 2},
	{"transmit blocks", RECEIVED_ONLY, true, RTSAN_WR_PUSH, RTSAN_WR_UNSOLICITED, LEN, 2},
	{"receive words", NO_BASES, false, RTSAN_WR_PUSH, RTSAN_WR_UNSOLICITED, 64, 4, false, true},
	{"initiator's records", RECEIVED_ONLY, true, RTSAN_WR_PUSH, RTSAN_WR_UNSOLICITED, 64, 20},
	{"initiator's records", NO_ACKS, true, RTSAN_WR_PULL, 0, 64, 20},
	{"initiator's rings", RECEIVED_ONLY, true, RTSAN_WR_PUSH, RTSAN_WR_UNSOLICITED, 64, 3},
	{"target's records", FIRST_ONLY, false, RTSAN_WR_PUSH, RTSAN_WR_UNSOLICITED, LEN, 2},
	{"target's records", NO_ACKS, false, RTSAN_WR_PULL, 0, 64, 2},
	{"refusals", NO_RESYNC, false, RTSAN_WR_PUSH, RTSAN_WR_UNSOLICITED, 64, 2, true},
	{"CAM", NO_REQUEST, false, RTSAN_WR_PUSH, RTSAN_WR_SOLICITED, LEN, 4},
	{"held packets", NO_BASES, false, RTSAN_WR_PUSH, RTSAN_WR_UNSOLICITED, LEN, 20},
	{"incast budget", NO_DATA, false, RTSAN_WR_PUSH, RTSAN_WR_SOLICITED, 65536, LEN},
	{"expired grants", NO_DATA, false, RTSAN_WR_PUSH, RTSAN_WR_SOLICITED, 65536, LEN},
	{"long paths", NO_DATA, false, RTSAN_WR_PUSH, RTSAN_WR_SOLICITED, 65536, 0},
};

static struct {
	const struct attack *now; /* NULL: node 2 is honest */
	struct {
		uint32_t data, cmpl, rsn;
	} first[NB_HOSTILE + 1];
} hostile;

static struct san_pdl_conn *
conn_to(struct world *w, uint32_t dcid)
{
	struct san_pdl *pdl = san_core_pdl(w->node[2].core);

	for (uint32_t i = 0; i < pdl->conf.max_conns; i++)
		if (pdl->conns[i].state == SAN_CONN_OPEN && pdl->conns[i].dcid == dcid)
			return &pdl->conns[i];
	return NULL;
}

/* Replace an ACK by one that acknowledges nothing more. */
static void
write_ack(struct rte_mbuf *m, const struct san_pdl_conn *c, struct san_wire_pkt *p,
	  struct san_wire_ack *ack, bool received)
{
	uint32_t n = p->data_ebsn - hostile.first[c->slot].data;

	p->data_ebsn = hostile.first[c->slot].data;
	p->cmpl_rsn = hostile.first[c->slot].cmpl;
	memset(ack->data_acked, 0, sizeof(ack->data_acked));
	memset(ack->data_rcvd, 0, sizeof(ack->data_rcvd));
	ack->nb_data = received ? (uint8_t)((n + 63) / 64) : 0;
	for (uint32_t i = 0; i < n; i++)
		ack->data_rcvd[i / 64] |= 1ULL << i % 64;
	p->flags = 0;
	rte_pktmbuf_reset(m);
	san_wire_build_ack(m, &c->path, p, ack);
	san_wire_icrc_seal(m);
}

static int
lie(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	static struct san_wire_ack ack;
	const struct san_pdl_conn *c;
	struct san_wire_pkt p;

	if (hostile.now == NULL || from != 2 || !world_parse(m, &p) || p.op == SAN_OP_CM)
		return 1;
	c = conn_to(w, p.dcid);
	if (c == NULL)
		return 1;
	switch (hostile.now->lie) {
	case RECEIVED_ONLY:
	case NO_ACKS:
		if (p.op == SAN_OP_PULL_REQ)
			return 1;
		if (p.op != SAN_OP_ACK)
			return 0;
		write_ack(m, c, &p, &ack, hostile.now->lie == RECEIVED_ONLY);
		return 1;
	case FIRST_ONLY:
		return p.op != SAN_OP_PUSH_UNSLCTD_DATA || p.offset == 0;
	case NO_BASES:
	case NO_REQUEST:
		return p.rsn != hostile.first[c->slot].rsn || p.op == SAN_OP_ACK ||
			p.op == SAN_OP_PROBE;
	case NO_RESYNC:
		return p.op != SAN_OP_RESYNC;
	default:
		return p.op != SAN_OP_PUSH_SLCTD_DATA;
	}
}

static void
tune(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->ulp.max_cqs = 4 * (NB_HOSTILE + 2);
	conf->pdl.max_retries = 255; /* what is not acknowledged is held for long */
	if (node == 2)
		conf->cm.features = 0; /* no packing, so each push is a packet */
	if (node != 0)
		return;
	conf->cm.features = 0;
	conf->pdl.max_wide = conf->tl.max_wide = 16;
	conf->tl.max_txns = 1024;
	conf->tl.max_rxns = 128;
	conf->tl.max_refused = 16;
	conf->ulp.guesses_per_hour = 1u << 30; /* they protect the refusals, too */
	conf->tl.max_held = 256;
	conf->tl.max_held_conn = 64;
}

struct flow {
	struct world *w;
	uint32_t q[2]; /* of node 1 to node 0, and back */
	uint64_t raddr[2];
	uint32_t key[2], nb_out[2], nb;
	uint8_t *buf;
};

/* Bytes that both directions complete in RATE_NS. */
static uint64_t
rate(struct flow *f)
{
	uint64_t end = f->w->now_ns + RATE_NS, bytes = 0;
	struct san_ulp_wr wr;
	struct san_ulp_wc wc;

	while (f->w->now_ns < end) {
		for (int i = 0; i < 2; i++) {
			for (; f->nb_out[i] < DEPTH; f->nb_out[i]++) {
				world_wr(&wr, RTSAN_WR_PUSH, f->buf, LEN, f->raddr[i], f->key[i], 0,
					 f->nb++ / 2 % 2 ? RTSAN_WR_SOLICITED :
							   RTSAN_WR_UNSOLICITED);
				if (!world_try_post(f->w, f->q[i], &wr))
					break;
			}
			for (; san_ulp_cq_poll(f->w->qp[f->q[i]].send_cq, &wc, 1) == 1;
			     f->nb_out[i]--) {
				assert_int_equal(wc.status, SAN_ST_OK);
				bytes += LEN;
			}
		}
		world_step(f->w);
	}
	return bytes;
}

static void
drain(struct flow *f)
{
	struct san_ulp_wc wc;

	for (int i = 0; i < 2; i++)
		for (; f->nb_out[i] != 0; f->nb_out[i]--)
			assert_true(world_wait(f->w, f->q[i], false, &wc, PAIR_LIMIT));
}

static uint32_t
used_of(struct world *w, const char *name)
{
	struct san_core_pool pools[SAN_CORE_POOLS];
	uint32_t i;

	san_core_pools(w->node[0].core, pools);
	for (i = 0; i < SAN_CORE_POOLS && strcmp(pools[i].name, name) != 0; i++)
		;
	assert_true(i < SAN_CORE_POOLS);
	return pools[i].used;
}

static void
post_hostile(struct world *w, const uint32_t *q, const struct attack *a, uint8_t *buf,
	     const uint32_t *key)
{
	struct san_pdl *pdl = san_core_pdl(w->node[2].core);
	const struct san_pdl_conn *c;
	struct san_ulp_wr wr;

	for (uint32_t i = 0; i < pdl->conf.max_conns; i++) {
		c = &pdl->conns[i];
		hostile.first[i].data = c->rx[SAN_WIN_DATA].base;
		hostile.first[i].cmpl = c->cmpl_out;
		hostile.first[i].rsn = san_core_tl(w->node[2].core)->conns[i].rsn_next;
	}
	hostile.now = a;
	world_wr(&wr, a->op, buf, a->len, (uint64_t)(uintptr_t)buf,
		 key[a->is_asked ? 2 : 0] ^ (a->bad_key ? 0x10000 : 0), 0, a->flags);
	/* each key is wrong only so often */
	for (uint32_t k = 0; k < (a->bad_key ? 2 : POSTED); k++)
		for (uint32_t i = 0; i < NB_HOSTILE; i++)
			world_try_post(w, q[i], &wr);
}

/* Attack one pool; the innocent host keeps four fifths of what it had. */
static void
attack(const struct attack *a)
{
	uint32_t q[NB_HOSTILE], other, key[3];
	struct flow f = {.buf = calloc(1, 65536)};
	uint64_t bytes, before, after = 0, most = 0;
	struct san_cm_param param, hostile_param;

	hostile.now = NULL;
	pair.conf.nb_nodes = 3;
	pair.conf.max_conns = NB_HOSTILE + 1;
	pair.conf.nb_mbufs = 32768;
	pair.conf.sq_depth = POSTED;
	pair.conf.link.mbps = 10000;
	pair.conf.tune = tune;
	f.w = world_create(&pair.conf);
	f.w->filter = lie;
	f.w->check = false;
	world_param_default(&param);
	hostile_param = param;
	hostile_param.ordered = !a->unordered;
	for (uint32_t i = 0; i < 3; i++)
		key[i] = world_mr(f.w, i, f.buf, 65536, PAIR_ALL);
	world_connect(f.w, 1, 0, &param, &param, &f.q[0], &f.q[1]);
	for (uint32_t i = 0; i < 2; i++) {
		f.raddr[i] = (uint64_t)(uintptr_t)f.buf;
		f.key[i] = key[i];
	}
	for (uint32_t i = 0; i < NB_HOSTILE; i++)
		world_connect(f.w, 2, 0, &hostile_param, &hostile_param,
			      a->is_asked ? &other : &q[i], a->is_asked ? &q[i] : &other);
	rate(&f);
	before = rate(&f);
	drain(&f); /* so that it holds nothing when the attack begins */
	post_hostile(f.w, q, a, f.buf, key);
	world_run_for(f.w, RATE_NS);
	for (uint32_t i = 0; i < 2 * ROUNDS; i++) {
		bytes = rate(&f);
		most = RTE_MAX(most, used_of(f.w, a->pool));
		if (i >= ROUNDS) /* what the attack sends at first is its part of the link */
			after += bytes / ROUNDS;
	}
	san_core_check(f.w->node[0].core);
	if (most < a->least || after * 5 < before * 4)
		fail_msg("%s: %" PRIu64 " taken, %" PRIu64 " bytes after %" PRIu64, a->pool, most,
			 after, before);
	/* RT-27: the connection lives, whatever others did */
	assert_false(f.w->qp[f.q[0]].disconnected);
	hostile.now = NULL;
	for (uint32_t i = 0; i < 3; i++)
		world_mr_del(f.w, i, key[i]);
	world_node_kill(f.w, 0);
	world_node_kill(f.w, 1);
	world_node_kill(f.w, 2);
	world_destroy(f.w);
	free(f.buf);
}

PAIR_CASE(sim_pools__each_has_a_share)
{
	struct san_core_pool pools[SAN_CORE_POOLS];
	uint32_t k;
	struct world *w = world_create(&pair.conf);

	san_core_pools(w->node[0].core, pools);
	world_destroy(w);
	for (uint32_t i = 0; i < SAN_CORE_POOLS; i++) {
		for (k = 0; k < RTE_DIM(attacks) && strcmp(attacks[k].pool, pools[i].name); k++)
			;
		assert_true(k < RTE_DIM(attacks)); /* a pool without a test */
	}
	UNIT_EACH(r, attacks)
		attack(r);
}
