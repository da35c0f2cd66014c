/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Packets of every type with every wrong field, with a CE mark and without, sent to a connection
 * with packets in flight: only a counter changes. (RT-21, RT-24, RT-29)
 */

#include "pair.h"

#include <rte_ip.h>

#include "cm_priv.h"
#include "core_priv.h"
#include "wire_sample.h"

#define LEN 20000

enum wrong {
	W_PKEY,
	W_PEER, /* the source address */
	W_DST,  /* the destination address */
	W_PORT, /* the destination port */
	W_CID,
	W_TAG,
	W_ICRC,
	W_CUT, /* the last byte is missing */
	W_PSN, /* beyond the window; in a RESET: not in flight */
	W_XID, /* for messages */
	W_MAX
};

/* A packet that express would take (express.h). */
static const struct wire_sample ordinary = {
	"ordinary_push",
	SAN_OP_PUSH_UNSLCTD_DATA,
	SAN_F_LAST | WIRE_SAMPLE_KIND(PUSH),
	.payload = 64,
	.length = 64,
};

/* Expected drops, except for messages. NONE: depends on the type; MAX: no such field. */
static const enum san_drop drop_of[W_MAX] = {
	[W_PKEY] = SAN_DROP_PKEY,
	[W_PEER] = SAN_DROP_PEER,
	[W_DST] = SAN_DROP_NOT_FOR_US,
	[W_PORT] = SAN_DROP_INET_UNWANTED,
	[W_CID] = SAN_DROP_CID,
	[W_TAG] = SAN_DROP_TAG,
	[W_ICRC] = SAN_DROP_ICRC,
	[W_PSN] = SAN_DROP_BEYOND,
	[W_XID] = SAN_DROP_MAX,
};

static const enum san_drop drop_of_msg[W_MAX] = {
	[W_PKEY] = SAN_DROP_PKEY,
	[W_PEER] = SAN_DROP_PEER,
	[W_DST] = SAN_DROP_NOT_FOR_US,
	[W_PORT] = SAN_DROP_INET_UNWANTED,
	[W_CID] = SAN_DROP_CM_STALE,
	[W_TAG] = SAN_DROP_TAG,
	[W_ICRC] = SAN_DROP_ICRC,
	[W_PSN] = SAN_DROP_MAX,
	[W_XID] = SAN_DROP_CM_STALE,
};

/** State of the victim for the connection, and for all connections. */
struct snapshot {
	struct san_pdl pdl;
	struct san_tl tl;
	struct san_pdl_conn c;
	struct san_tl_conn tc;
	struct san_cm_conn cc;
	uint64_t nb_taken;
	uint8_t bytes[LEN];
};

static struct snapshot before, after;
static struct san_core *victim;
static uint16_t slot;

static void
take_snapshot(struct snapshot *s)
{
	s->pdl = *victim->pdl;
	s->tl = *victim->tl;
	s->c = victim->pdl->conns[slot];
	s->tc = victim->tl->conns[slot];
	s->cc = victim->cm->conns[slot];
	s->nb_taken = victim->drops[SAN_DROP_NONE];
	memcpy(s->bytes, pair.b, sizeof(s->bytes));
}

/* ---- forging ---- */

static struct san_wire_path
path_of(enum wrong w)
{
	const struct san_pdl_conn *c = &victim->pdl->conns[slot];
	struct san_wire_path path = {
		.src_mac = c->path.dst_mac,
		.dst_mac = c->path.src_mac,
		.src = c->path.dst,
		.dst = c->path.src,
		.src_port = c->path.src_port,
		.dst_port = SAN_WIRE_PORT,
	};

	path.src.b[15] += w == W_PEER ? 77 : 0;
	path.dst.b[15] += w == W_DST ? 77 : 0;
	path.dst_port += w == W_PORT;
	return path;
}

/** A packet that the peer could send now, except for the wrong field *w*. */
static struct san_wire_pkt
pkt_of(const struct wire_sample *s, enum wrong w)
{
	const struct san_pdl_conn *c = &victim->pdl->conns[slot];
	enum san_win win = san_pdl_rx_win_of(s->op, s->flags);
	struct san_wire_pkt pkt = wire_sample_pkt(s);

	pkt.pkey = (uint16_t)(c->pkey ^ (w == W_PKEY));
	if (s->op != SAN_OP_CM)
		pkt.dcid = c->cid ^ (w == W_CID ? 0x10u : 0);
	if (s->op == SAN_OP_CNP)
		return pkt;
	pkt.tag = c->tag ^ (w == W_TAG);
	pkt.psn = win != SAN_WIN_MAX ? c->rx[win].base : 0;
	pkt.rsn = victim->tl->conns[slot].rx_base;
	pkt.req_ebsn = c->tx[SAN_WIN_REQ].next;
	pkt.data_ebsn = c->tx[SAN_WIN_DATA].next; /* acknowledges all that is in flight */
	pkt.nack_psn = c->tx[SAN_WIN_DATA].base;
	if (s == &ordinary) {
		pkt.key = pair.kb;
		pkt.addr = (uintptr_t)pair.b;
	}
	if (w == W_PSN) { /* its tag is valid, so its acknowledgements would count */
		pkt.psn += 5000;
		pkt.req_ebsn = c->tx[SAN_WIN_REQ].base;
		pkt.data_ebsn = c->tx[SAN_WIN_DATA].base;
		pkt.cmpl_rsn = c->cmpl_in;
	}
	return pkt;
}

static struct san_wire_cm
msg_of(const struct wire_sample *s, enum wrong w)
{
	const struct san_cm_conn *cc = &victim->cm->conns[slot];
	const struct san_pdl_conn *c = &victim->pdl->conns[slot];
	struct san_wire_cm msg = wire_sample_cm(s);

	if (s->cm_msg == SAN_CM_RESET) {
		msg.src_cid = c->dcid ^ (w == W_CID);
		msg.src_tag = c->dtag ^ (w == W_TAG);
		msg.data_psn = c->tx[SAN_WIN_DATA].base + (w == W_PSN ? 5000u : 0);
		return msg;
	}
	msg.xid = cc->xid ^ (w == W_XID);
	msg.dst_cid = c->cid ^ (w == W_CID ? 0x10u : 0);
	msg.dst_tag = c->tag ^ (w == W_TAG);
	msg.src_cid = cc->peer_cid;
	msg.src_tag = cc->peer_tag;
	return msg;
}

static void
mark_ce(struct rte_mbuf *m)
{
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *,
							  sizeof(struct rte_ether_hdr));

	ip->type_of_service |= 3;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

static struct rte_mbuf *
forge(const struct wire_sample *s, enum wrong w, bool marked)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pair.w->pool);
	struct san_wire_path path = path_of(w);
	struct san_wire_pkt pkt = pkt_of(s, w);
	struct san_wire_ack ack = wire_sample_ack(s);
	struct san_wire_cm msg;

	assert_non_null(m);
	if (s->op == SAN_OP_ACK) {
		san_wire_build_ack(m, &path, &pkt, &ack);
	} else if (s->op == SAN_OP_CM) {
		msg = msg_of(s, w);
		san_wire_cm_build(m, &path, &pkt, &msg);
	} else {
		wire_sample_payload(s, (uint8_t *)rte_pktmbuf_append(m, s->payload));
		san_wire_build(m, &path, &pkt);
	}
	san_wire_icrc_seal(m);
	if (w == W_ICRC)
		*rte_pktmbuf_mtod_offset(m, uint8_t *, rte_pktmbuf_pkt_len(m) - 1) ^= 1;
	if (w == W_CUT)
		rte_pktmbuf_trim(m, 1);
	if (marked)
		mark_ce(m);
	return m;
}

/* ---- the table ---- */

static enum san_drop
expected(const struct wire_sample *s, enum wrong w)
{
	if (s->op == SAN_OP_CNP && w == W_TAG)
		return SAN_DROP_MAX; /* it has no tag */
	if (w == W_PSN && s->op != SAN_OP_CM && san_pdl_rx_win_of(s->op, s->flags) == SAN_WIN_MAX)
		return SAN_DROP_MAX;
	if (s->op != SAN_OP_CM)
		return drop_of[w];
	/* a REQ belongs to no connection: see test_cm_rx */
	if (s->cm_msg == SAN_CM_REQ)
		return SAN_DROP_MAX;
	if (s->cm_msg == SAN_CM_RESET && w == W_XID)
		return SAN_DROP_MAX;
	if (s->cm_msg == SAN_CM_RESET && drop_of_msg[w] != SAN_DROP_NOT_FOR_US && w != W_PORT &&
	    w != W_ICRC && w != W_CUT)
		return SAN_DROP_RESET_STALE;
	return drop_of_msg[w];
}

/* With a valid tag it comes from the peer: it counts as heard and gets an ACK, nothing else. */
static bool
is_unchanged(enum wrong w)
{
	if (w != W_PSN)
		return memcmp(&before, &after, sizeof(before)) == 0;
	return memcmp(before.c.rx, after.c.rx, sizeof(before.c.rx)) == 0 &&
		memcmp(before.c.tx, after.c.tx, sizeof(before.c.tx)) == 0 &&
		memcmp(&before.tl, &after.tl, sizeof(before.tl)) == 0 &&
		memcmp(&before.tc, &after.tc, sizeof(before.tc)) == 0 &&
		memcmp(&before.cc, &after.cc, sizeof(before.cc)) == 0 &&
		memcmp(before.bytes, after.bytes, sizeof(before.bytes)) == 0;
}

static void
check_forged(const struct wire_sample *s, enum wrong w, bool marked)
{
	enum san_drop want = expected(s, w);
	struct san_core_event ev;
	struct rte_mbuf *m;
	uint64_t nb;

	if (want == SAN_DROP_MAX)
		return;
	nb = victim->drops[want];
	take_snapshot(&before);
	m = forge(s, w, marked);
	san_core_rx_burst(victim, &m, 1, pair.w->now_ns);
	take_snapshot(&after);
	FAIL_IF(!is_unchanged(w), "%s, wrong %u: something changed", s->name, w);
	if (want != SAN_DROP_NONE && victim->drops[want] != nb + 1)
		fail_msg("%s, wrong %u: not dropped as %s", s->name, w, san_drop_name(want));
	assert_false(san_core_conn_poll_event(victim, &ev));
}

static int
drop_all(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	return 0;
}

PAIR_CASE(sim_forged__every_type_every_field)
{
	struct san_pdl_conn *c;
	struct rte_mbuf *m;
	uint64_t nb;

	pair_open(LEN);
	victim = pair.w->node[1].core;
	for (slot = 0; victim->pdl->conns[slot].state != SAN_CONN_OPEN; slot++)
		;
	/* the key of the ordinary packet is known, or express would leave it to the general path */
	pair_do(true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
	/* the victim has data in flight: acknowledgements, marks and RESETs could refer to it */
	pair.w->filter = drop_all;
	pair_post(false, RTSAN_WR_PUSH, 0, LEN, 1, RTSAN_WR_UNSOLICITED);
	world_run_for(pair.w, 10 * SAN_NS_PER_US);
	assert_true(victim->pdl->inflight > 1);
	for (unsigned int w = 0; w < 2 * W_MAX; w++) {
		for (unsigned int i = 0; i < RTE_DIM(wire_samples); i++)
			check_forged(&wire_samples[i], (enum wrong)(w / 2), w % 2);
		check_forged(&ordinary, (enum wrong)(w / 2), w % 2);
	}
	/* nor does a correct ACK change anything before the connection is open */
	c = &victim->pdl->conns[slot];
	c->state = SAN_CONN_SETUP;
	san_pdl_odd_put(&c->odd, SAN_ODD_STATE, true);
	nb = victim->drops[SAN_DROP_STATE];
	take_snapshot(&before);
	m = forge(wire_sample_get("ack_bare"), W_MAX, false);
	san_core_rx_burst(victim, &m, 1, pair.w->now_ns);
	take_snapshot(&after);
	assert_true(is_unchanged(W_MAX));
	assert_int_equal(victim->drops[SAN_DROP_STATE], nb + 1);
	c->state = SAN_CONN_OPEN;
	san_pdl_odd_put(&c->odd, SAN_ODD_STATE, false);
	pair.w->filter = NULL;
	pair_post(true, RTSAN_WR_PUSH, 0, LEN, 2, 0);
	assert_int_equal(pair_wait(false, false), SAN_ST_OK);
	assert_int_equal(pair_wait(true, false), SAN_ST_OK);
	/* express takes the ordinary packet if nothing is wrong */
	nb = san_ulp_stats(victim->ulp)->nb_express_rx;
	m = forge(&ordinary, W_MAX, false);
	san_core_rx_burst(victim, &m, 1, pair.w->now_ns);
	assert_int_equal(san_ulp_stats(victim->ulp)->nb_express_rx, nb + 1);
}
