/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors get their documented status in bounded virtual time, and other work is not affected. */

#include <rte_arp.h>

#include "pair.h"

#define LEN 65536

static void
open_default(bool ordered)
{
	pair.param.ordered = ordered;
	pair_open(LEN);
}

static void
post_raw(enum rtsan_wr_opcode op, uint32_t len, uint64_t raddr, uint32_t key, uint8_t flags)
{
	struct san_ulp_wr wr;

	world_wr(&wr, op, pair.a, len, raddr, key, 9, flags);
	world_post(pair.w, pair.qa, &wr);
}

/* The refused request completes with *status*; its neighbours succeed, in order (RT-27). */
static void
refused_between_good_ones(enum rtsan_wr_opcode op, uint32_t len, uint64_t raddr,
			  uint32_t key, uint8_t flags, uint8_t status)
{
	pair_post(true, RTSAN_WR_PUSH, 0, 3000, 1, 0);
	post_raw(op, len, raddr, key, flags);
	pair_post(true, RTSAN_WR_PUSH, 0, 3000, 2, 0);
	pair_do(true, RTSAN_WR_PULL, 0, 3000, 3, 0);
	assert_int_equal(pair.wc.wr_id, 1);
	pair_wait_for(true, false, status, 9);
	pair_wait_for(true, false, SAN_ST_OK, 2);
	pair_wait_for(true, false, SAN_ST_OK, 3);
	assert_false(pair.w->qp[pair.qa].disconnected);
}

PAIR_CASE(sim_error__bad_key_bounds_rights)
{
	static const enum rtsan_wr_opcode ops[] = {RTSAN_WR_PUSH, RTSAN_WR_PULL,
						   RTSAN_WR_FETCH_ADD};
	static const uint8_t ways[] = {RTSAN_WR_UNSOLICITED, RTSAN_WR_SOLICITED};
	uint32_t ro;

	open_default(true);
	UNIT_EACH(op, ops) {
		for (unsigned int k = 0; k < RTE_DIM(ways); k++) {
			uint64_t b = (uint64_t)(uintptr_t)pair.b;
			uint32_t len = *op == RTSAN_WR_FETCH_ADD ? 8 : 5000;

			if (*op != RTSAN_WR_PUSH && k > 0)
				continue;
			refused_between_good_ones(*op, len, b, pair.kb ^ 0x40000000, ways[k],
						  SAN_ST_ACCESS);
			refused_between_good_ones(*op, len, b + LEN - len + 8, pair.kb, ways[k],
						  SAN_ST_ACCESS);
			refused_between_good_ones(*op, len, UINT64_MAX - 7, pair.kb, ways[k],
						  SAN_ST_ACCESS);
			ro = world_mr(pair.w, 1, pair.b, LEN, 0);
			refused_between_good_ones(*op, len, b, ro, ways[k], SAN_ST_ACCESS);
			world_mr_del(pair.w, 1, ro);
			refused_between_good_ones(*op, len, b, ro, ways[k], SAN_ST_ACCESS);
		}
	}
	refused_between_good_ones(RTSAN_WR_FETCH_ADD, 8, (uint64_t)(uintptr_t)pair.b + 4,
				  pair.kb, 0, SAN_ST_ALIGN);
}

PAIR_CASE(sim_error__send_longer_than_receive)
{
	static const uint8_t ways[] = {RTSAN_WR_UNSOLICITED, RTSAN_WR_SOLICITED};

	open_default(true);
	UNIT_EACH(way, ways) {
		memset(pair.b, 0, LEN);
		memset(pair.a, 1, LEN);
		world_post_recv(pair.w, pair.qb, pair.b, 100, 1);
		world_post_recv(pair.w, pair.qb, pair.b, 5000, 2);
		post_raw(RTSAN_WR_SEND, 5000, 0, 0, *way);
		post_raw(RTSAN_WR_SEND, 5000, 0, 0, *way);
		assert_int_equal(pair_wait(true, false), SAN_ST_LENGTH);
		assert_int_equal(pair_wait(true, false), SAN_ST_OK);
		pair_wait_for(false, true, RTSAN_WC_LOC_LENGTH, 1);
		pair_wait_for(false, true, SAN_ST_OK, 2);
	}
}

/* RT-23: there is no receive for longer than the initiator waits. */
PAIR_CASE(sim_error__rnr_exceeded)
{
	static const uint8_t ways[] = {RTSAN_WR_UNSOLICITED, RTSAN_WR_SOLICITED};
	uint64_t start;

	for (unsigned int k = 0; k < 2 * RTE_DIM(ways); k++) {
		pair.param.rnr_ms = 50;
		pair.param.ordered = k < 2;
		pair_open(LEN);
		start = pair.w->now_ns;
		post_raw(RTSAN_WR_SEND, 5000, 0, 0, ways[k % 2]);
		assert_int_equal(pair_wait(true, false), SAN_ST_RNR);
		assert_in_range(pair.w->now_ns - start, 50 * SAN_NS_PER_MS, 80 * SAN_NS_PER_MS);
		/* the connection continues, and the next send finds its receive */
		world_post_recv(pair.w, pair.qb, pair.b, 5000, 1);
		post_raw(RTSAN_WR_SEND, 5000, 0, 0, ways[k % 2]);
		assert_int_equal(pair_wait(true, false), SAN_ST_OK);
		pair_close();
	}
}

static void
ask_for_long_delays(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->tl.rnr_delay_us = 500000;
}

/* RT-23: a wait without an end has one when the connection is to end. */
PAIR_CASE(sim_error__rnr_endless)
{
	pair.conf.tune = ask_for_long_delays;
	for (unsigned int ordered = 0; ordered < 2; ordered++) {
		pair.param.rnr_ms = UINT16_MAX;
		pair.param.ordered = ordered;
		pair_open(LEN);
		post_raw(RTSAN_WR_SEND, 500, 0, 0, RTSAN_WR_UNSOLICITED);
		world_run_for(pair.w, SAN_NS_PER_S);
		pair.w->check = false; /* three seconds in steps of microseconds */
		world_disconnect(pair.w, pair.qa, pair.qb);
		assert_int_not_equal(pair_wait(true, false), SAN_ST_OK);
		pair_close();
	}
}

/* A full completion queue makes the receiver not ready; after a poll everything continues. */
PAIR_CASE(sim_error__rnr_recovers)
{
	for (unsigned int ordered = 0; ordered < 2; ordered++) {
		world_conf_bad_link(&pair.conf, 8);
		pair.param.ordered = ordered;
		pair_open(LEN);
		for (unsigned int i = 0; i < 50; i++)
			post_raw(RTSAN_WR_SEND, 2000, 0, 0, 0);
		for (unsigned int i = 0; i < 50; i++) {
			world_run_for(pair.w, 300 * SAN_NS_PER_US);
			world_post_recv(pair.w, pair.qb, pair.b, 2000, i);
		}
		for (unsigned int i = 0; i < 50; i++) {
			assert_int_equal(pair_wait(true, false), SAN_ST_OK);
			assert_int_equal(pair_wait(false, true), SAN_ST_OK);
		}
		assert_true(san_core_tl(pair.w->node[0].core)->stats.nb_rnr_rx > 0);
		assert_true(san_core_tl(pair.w->node[1].core)->stats.nb_resync_rx > 0);
		pair_close();
	}
}

PAIR_CASE(sim_error__region_revoked_in_flight)
{
	static const enum rtsan_wr_opcode ops[] = {RTSAN_WR_PUSH, RTSAN_WR_PULL};
	uint8_t *big;
	uint32_t key;

	UNIT_EACH(op, ops) {
		pair.conf.link.mbps = 1000;
		pair_open(1 << 20);
		big = malloc(1 << 20);
		key = world_mr(pair.w, 1, big, 1 << 20, PAIR_ALL);
		post_raw(*op, 1 << 20, (uint64_t)(uintptr_t)big, key, 0);
		world_run_for(pair.w, SAN_NS_PER_MS); /* of about 9 ms */
		world_mr_del(pair.w, 1, key);
		free(big); /* a sanitizer would detect a later access */
		assert_int_not_equal(pair_wait(true, false), SAN_ST_OK);
		assert_true(pair.wc.status == SAN_ST_REVOKED || pair.wc.status == SAN_ST_ACCESS);
		pair_do(true, RTSAN_WR_PUSH, 0, 3000, 2, 0);
		pair_close();
	}
}

/* RT-7: the peer dies; everything completes within the sum of the timeouts + 10 %. */
PAIR_CASE(sim_error__peer_vanishes)
{
	struct san_pdl *pdl;
	uint64_t start, sum, rto;
	unsigned int i;

	pair.param.keepalive_ms = 0;
	pair_open(LEN);
	pair_post(true, RTSAN_WR_PUSH, 0, 100, 0, 0); /* gives an RTT sample */
	assert_int_equal(pair_wait(true, false), SAN_ST_OK);
	pdl = san_core_pdl(pair.w->node[0].core);
	world_node_kill(pair.w, 1);
	start = pair.w->now_ns;
	for (i = 0; i < 10; i++)
		pair_post(true, i & 1 ? RTSAN_WR_PULL : RTSAN_WR_PUSH, 0, 3000, i, 0);
	for (i = 0; i < 10; i++)
		pair_wait_for(true, false, RTSAN_WC_RETRY_EXC, i);
	/* upper bound of all timeouts: the initial value, doubled up to the maximum */
	for (sum = 0, rto = pdl->conf.rto_init_ns * 4, i = 0; i <= pdl->conf.max_retries; i++) {
		sum += rto;
		rto = rto * 2 < pdl->conf.rto_max_ns ? rto * 2 : pdl->conf.rto_max_ns;
	}
	assert_true(pair.w->now_ns - start <= sum + sum / 10);
	world_run_for(pair.w, SAN_NS_PER_S);
	assert_true(pair.w->qp[pair.qa].disconnected);
	assert_int_equal(pair.w->qp[pair.qa].reason, RTSAN_R_TIMEOUT);
}

/* RT-24: a dead peer is detected without data in flight, too. */
PAIR_CASE(sim_error__keepalive_notices)
{
	pair.param.keepalive_ms = 100;
	pair_open(LEN);
	world_run_for(pair.w, 5 * SAN_NS_PER_S);
	assert_false(pair.w->qp[pair.qa].disconnected); /* PROBEs are answered */
	world_node_kill(pair.w, 1);
	world_run_for(pair.w, 5 * SAN_NS_PER_S);
	assert_true(pair.w->qp[pair.qa].disconnected);
}

/* RT-24: a restarted peer answers with RESET; the old connection ends, and a new one works. */
PAIR_CASE(sim_error__peer_restarts)
{
	uint32_t q0, q1;

	pair_open(LEN);
	world_node_kill(pair.w, 1);
	world_node_start(pair.w, 1);
	pair_post(true, RTSAN_WR_PUSH, 0, 3000, 0, 0);
	assert_int_not_equal(pair_wait(true, false), SAN_ST_OK);
	world_run_for(pair.w, SAN_NS_PER_S);
	assert_true(pair.w->qp[pair.qa].disconnected);
	assert_int_equal(pair.w->qp[pair.qa].reason, RTSAN_R_STALE);
	pair.w->qp[pair.qb].send_cq = NULL; /* died with its process */
	world_connect(pair.w, 0, 1, &pair.param, &pair.param, &q0, &q1);
	pair.kb = world_mr(pair.w, 1, pair.b, LEN, PAIR_ALL);
	pair.qa = q0;
	pair.qb = q1;
	pair_do(true, RTSAN_WR_PUSH, 0, 3000, 0, 0);
}

static void
connect_to(struct world *w, uint32_t q, const struct san_ip *ip, const struct san_cm_param *param)
{
	int rc = san_core_conn_connect(w->node[0].core, w->qp[q].qp, ip, 7, param, w->now_ns);

	assert_int_equal(rc, 0);
}

PAIR_CASE(sim_error__nobody_there)
{
	struct san_ip ip;
	uint32_t q;
	struct world *w = world_create(&pair.conf);

	world_ip(w, 1, &ip);
	q = world_qp_create(w, 0);
	connect_to(w, q, &ip, &pair.param);
	world_run_for(w, 5 * SAN_NS_PER_S);
	assert_true(w->qp[q].rejected);
	assert_int_equal(w->qp[q].reason, RTSAN_R_NO_LISTENER);
	q = world_qp_create(w, 0);
	ip.b[15] = 99; /* no such host */
	connect_to(w, q, &ip, &pair.param);
	world_run_for(w, 60 * SAN_NS_PER_S);
	assert_true(w->qp[q].unreachable);
	world_destroy(w);
}

/* RT-29: a request of another partition is refused, a packet of another partition is counted. */
PAIR_CASE(sim_error__partition)
{
	struct san_ip ip;
	uint32_t q;
	struct world *w = world_create(&pair.conf);

	assert_int_equal(san_cm_listen(san_core_cm(w->node[1].core), 7, 0x8001, 4, 0), 0);
	world_ip(w, 1, &ip);
	q = world_qp_create(w, 0);
	pair.param.pkey = 0x8002;
	connect_to(w, q, &ip, &pair.param);
	world_run_for(w, 5 * SAN_NS_PER_S);
	assert_true(w->qp[q].rejected);
	assert_int_equal(w->qp[q].reason, RTSAN_R_PKEY);
	world_destroy(w);
}

/* RT-21, RT-24: packets of a live connection with one forged field change only a counter. */
struct forge {
	enum san_drop want;
	bool done;
};

static void
forge_field(struct san_wire_pkt *pkt, enum san_drop want)
{
	switch (want) {
	case SAN_DROP_CID:
		pkt->dcid ^= 0x10;
		break;
	case SAN_DROP_TAG:
		pkt->tag ^= 1;
		break;
	case SAN_DROP_PKEY:
		pkt->pkey ^= 1;
		break;
	case SAN_DROP_BEYOND:
		pkt->psn += 5000;
		break;
	case SAN_DROP_ACK_BEYOND:
		pkt->data_ebsn += 5000;
		break;
	default:
		break;
	}
}

static int
forge_copy(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	struct forge *f = arg;
	struct san_wire_path path;
	struct san_wire_pkt pkt;
	struct rte_mbuf *copy;

	if (f->done || from != 0 || !world_parse(m, &pkt) || pkt.op != SAN_OP_PUSH_UNSLCTD_DATA)
		return 1;
	f->done = true;
	memset(&path, 0, sizeof(path));
	path.src = pkt.src;
	path.dst = pkt.dst;
	if (f->want == SAN_DROP_PEER)
		path.src.b[15] += 7;
	path.src_port = pkt.src_port;
	path.dst_port = SAN_WIRE_PORT;
	path.dst_mac = rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->dst_addr;
	copy = rte_pktmbuf_copy(m, w->pool, pkt.payload_off, pkt.payload_len);
	assert_non_null(copy);
	forge_field(&pkt, f->want);
	san_wire_build(copy, &path, &pkt);
	san_wire_icrc_seal(copy);
	san_core_rx_burst(w->node[to].core, &copy, 1, w->now_ns);
	return 1;
}

PAIR_CASE(sim_error__forged_packets)
{
	static const enum san_drop wants[] = {SAN_DROP_CID, SAN_DROP_TAG, SAN_DROP_PKEY,
					      SAN_DROP_PEER, SAN_DROP_BEYOND, SAN_DROP_ACK_BEYOND};
	uint64_t drops[SAN_DROP_MAX];
	struct forge f;

	UNIT_EACH(r, wants) {
		open_default(true);
		f.want = *r;
		f.done = false;
		pair_filter(forge_copy, &f);
		for (unsigned int k = 0; k < 10; k++)
			pair_post(true, RTSAN_WR_PUSH, 0, 1000, k, 0);
		pair_done(true, 10);
		assert_true(f.done);
		san_core_drops(pair.w->node[1].core, drops);
		assert_int_equal(drops[*r], 1);
		world_run_for(pair.w, 10 * SAN_NS_PER_MS);
		assert_false(pair.w->qp[pair.qa].disconnected);
		pair_close();
	}
}

/* Disconnect drains: work posted before completes first, on both sides (RULE-17). */
PAIR_CASE(sim_error__disconnect_drains)
{
	world_conf_bad_link(&pair.conf, 12);
	pair_open(LEN);
	for (unsigned int k = 0; k < 50; k++)
		pair_post(true, k & 1 ? RTSAN_WR_PULL : RTSAN_WR_PUSH, 0, 30000, k, 0);
	world_disconnect(pair.w, pair.qa, pair.qb);
	for (unsigned int k = 0; k < 50; k++) {
		assert_int_equal(san_ulp_cq_poll(pair.w->qp[pair.qa].send_cq, &pair.wc, 1), 1);
		assert_int_equal(pair.wc.status, SAN_ST_OK);
	}
}

/* Before an orderly end the peer gets the ACK of what has arrived (RULE-17). */
PAIR_CASE(sim_error__disconnect_after_an_answer)
{
	unsigned int k;

	for (uint32_t len = 64; len <= 65536; len *= 32) {
		pair_open(LEN);
		for (k = 0; k < 50; k++) {
			world_post_recv(pair.w, pair.qa, pair.a, len, k);
			world_post_recv(pair.w, pair.qb, pair.b, len, k);
			pair_post(true, RTSAN_WR_SEND, 0, len, k, 0);
			pair_wait_for(false, true, SAN_ST_OK, k);
			pair_post(false, RTSAN_WR_SEND, 0, len, k, 0);
			pair_wait_for(true, true, SAN_ST_OK, k);
		}
		world_disconnect(pair.w, pair.qa, pair.qb);
		for (k = 0; k < 50; k++)
			pair_wait_for(false, false, SAN_ST_OK, k);
		pair_close();
	}
}

#define DRAIN (20 * SAN_NS_PER_MS)

static void
tune_drain(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->cm.drain_ns = DRAIN;
}

/* Records that node 0 uses for the work of its peer. */
static uint32_t
nb_of_peer(void)
{
	const struct san_tl *tl = san_core_tl(pair.w->node[0].core);

	return tl->conf.max_rxns - tl->free_rxns.nb;
}

/*
 * Rule 17: a peer that always has a pull outstanding, and makes progress, cannot delay the end
 * forever. The drain waits for its own work, and the limit counts from the end of that.
 */
PAIR_CASE(sim_error__drain_ends_while_the_peer_asks_on)
{
	uint64_t own_ns = 0, start, nb_pulled = 0;
	uint32_t k;
	int rc;

	pair.conf.link.mbps = 1000;
	pair.conf.tune = tune_drain;
	pair_open(LEN);
	pair.w->check = false;   /* the test polls during the drain, so there are too many steps */
	for (k = 0; k < 60; k++) /* takes longer than the limit */
		pair_post(true, RTSAN_WR_PUSH, 0, 50000, k, 0);
	for (k = 0; k < 8; k++)
		pair_post(false, RTSAN_WR_PULL, 0, 50000, k, 0);
	while (nb_of_peer() == 0)
		world_step(pair.w);
	rc = san_core_conn_disconnect(pair.w->node[0].core, pair.w->qp[pair.qa].qp, false,
				      pair.w->now_ns);
	assert_int_equal(rc, 0);
	start = pair.w->now_ns;
	for (k = 0; !pair.w->qp[pair.qa].disconnected;) {
		assert_true(pair.w->now_ns < start + 10 * DRAIN);
		/* the peer is never idle; otherwise the drain would end by that */
		assert_true(pair.w->qp[pair.qb].disconnected || nb_of_peer() != 0 ||
			    pair_conn(true) == NULL);
		world_step(pair.w);
		while (san_ulp_cq_poll(pair.w->qp[pair.qb].send_cq, &pair.wc, 1) == 1) {
			nb_pulled += pair.wc.status == SAN_ST_OK;
			if (pair.wc.status == SAN_ST_OK)
				pair_post(false, RTSAN_WR_PULL, 0, 50000, pair.wc.wr_id, 0);
		}
		while (san_ulp_cq_poll(pair.w->qp[pair.qa].send_cq, &pair.wc, 1) == 1) {
			assert_int_equal(pair.wc.status, SAN_ST_OK);
			own_ns = pair.w->now_ns;
			k++;
		}
	}
	assert_int_equal(k, 60);
	assert_true(own_ns > start + DRAIN);
	assert_in_range(pair.w->now_ns - own_ns, DRAIN, DRAIN + DRAIN / 4);
	assert_true(nb_pulled > 60);
	world_run_for(pair.w, SAN_NS_PER_S);
	assert_true(pair.w->qp[pair.qb].disconnected);
}

/* A queue pair can be used again after its connection has ended; work posted early waits. */
PAIR_CASE(sim_error__queue_pair_used_again)
{
	struct san_ip ip;

	open_default(true);
	world_disconnect(pair.w, pair.qa, pair.qb);
	world_ip(pair.w, 1, &ip);
	pair.w->qp[pair.qa].established = false;
	pair.w->qp[pair.qa].disconnected = false;
	connect_to(pair.w, pair.qa, &ip, &pair.param);
	pair.qb = pair.w->nb_qps; /* the one that the other side creates */
	pair_do(true, RTSAN_WR_PUSH, 0, 3000, 5, 0);
	assert_int_equal(pair.wc.wr_id, 5);
}

/* If a connection ends before it is open, its waiting work completes. */
PAIR_CASE(sim_error__ended_before_it_opened)
{
	struct san_ulp_wr wr;
	struct san_ulp_wc wc;
	struct san_ip ip;
	uint8_t byte = 0;
	uint32_t q;
	struct world *w = world_create(&pair.conf);

	assert_int_equal(san_cm_listen(san_core_cm(w->node[1].core), 7, 0xffff, 4, 0), 0);
	world_ip(w, 1, &ip);
	q = world_qp_create(w, 0);
	connect_to(w, q, &ip, &pair.param);
	world_wr(&wr, RTSAN_WR_SEND, &byte, 1, 0, 0, 3, 0);
	world_post(w, q, &wr);
	world_run_for(w, SAN_NS_PER_MS);
	assert_int_equal(san_core_conn_disconnect(w->node[0].core, w->qp[q].qp, false, w->now_ns),
			 0);
	world_run_for(w, 20 * SAN_NS_PER_S);
	assert_true(w->qp[q].disconnected);
	assert_true(world_wait(w, q, false, &wc, 0));
	assert_int_equal(wc.status, RTSAN_WC_FLUSHED);
	assert_int_equal(wc.wr_id, 3);
	world_destroy(w);
}

/* ---- a neighbour with a new MAC address ---- */

#define MAC_MOVED 7 /* last byte but one of the new address; the last one is the node's number */
#define MAC_BYTE  4

/*
 * Node 1 has a new MAC address: frames to the old one are lost, ARP returns the new one. The
 * argument counts ARP requests of other nodes.
 */
static int
move_node_1(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	struct rte_arp_hdr *arp = (struct rte_arp_hdr *)(eth + 1);
	bool is_arp = eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP);
	uint32_t *nb_asked = arg;

	if (from == 1) {
		eth->src_addr.addr_bytes[MAC_BYTE] = MAC_MOVED;
		if (is_arp)
			arp->arp_data.arp_sha.addr_bytes[MAC_BYTE] = MAC_MOVED;
		return 1;
	}
	*nb_asked += is_arp;
	return to != 1 || rte_is_broadcast_ether_addr(&eth->dst_addr) ||
		eth->dst_addr.addr_bytes[MAC_BYTE] == MAC_MOVED;
}

/* A peer with a new MAC address is found again; one that answers is not asked for. (RT-38) */
PAIR_CASE(sim_error__neighbour_moves)
{
	uint64_t start_ns;
	uint32_t nb_asked = 0;

	open_default(true);
	pair_do(true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
	pair_filter(move_node_1, &nb_asked);
	start_ns = pair.w->now_ns;
	pair_do(true, RTSAN_WR_PUSH, 0, LEN, 2, 0);
	assert_in_range(pair.w->now_ns - start_ns, 0, 2 * SAN_NS_PER_S);
	assert_in_range(nb_asked, 1, 4);
	nb_asked = 0;
	for (start_ns = pair.w->now_ns; pair.w->now_ns < start_ns + SAN_NS_PER_S;) {
		pair_do(true, RTSAN_WR_PUSH, 0, LEN, 3, 0);
		world_run_for(pair.w, 10 * SAN_NS_PER_MS);
	}
	assert_int_equal(nb_asked, 0);
	pair_close();
}

/* A peer whose MAC address has changed is found during connection setup, too. (RT-38) */
PAIR_CASE(sim_error__connect_to_who_moved)
{
	uint64_t start_ns;
	uint32_t nb_asked = 0, qa, qb;
	struct world *w = world_create(&pair.conf);

	world_connect(w, 0, 1, &pair.param, &pair.param, &qa, &qb);
	world_disconnect(w, qa, qb);
	w->filter = move_node_1;
	w->filter_arg = &nb_asked;
	start_ns = w->now_ns;
	world_connect(w, 0, 1, &pair.param, &pair.param, &qa, &qb);
	assert_in_range(w->now_ns - start_ns, 0, 2 * SAN_NS_PER_S);
	world_disconnect(w, qa, qb);
	world_destroy(w);
}

struct own_mac {
	uint32_t nb_old;       /* frames of node 0 that contain the old address */
	uint32_t nb_announced; /* ARP announcements of node 0 */
};

/* The device of node 0 has the new address, so frames to the old one are lost. */
static int
only_new_mac(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m, void *arg)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_arp_hdr *arp = (const struct rte_arp_hdr *)(eth + 1);
	bool is_arp = eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP);
	struct own_mac *own = arg;

	if (from != 0)
		return to != 0 || rte_is_broadcast_ether_addr(&eth->dst_addr) ||
			eth->dst_addr.addr_bytes[MAC_BYTE] == MAC_MOVED;
	own->nb_old += eth->src_addr.addr_bytes[MAC_BYTE] != MAC_MOVED ||
		(is_arp && arp->arp_data.arp_sha.addr_bytes[MAC_BYTE] != MAC_MOVED);
	own->nb_announced += is_arp && arp->arp_data.arp_sip == arp->arp_data.arp_tip;
	return 1;
}

/* Node 0 announces its new MAC address, and connections continue both ways. (RT-38) */
PAIR_CASE(sim_error__own_mac_changes)
{
	struct own_mac own = {0};
	struct rte_ether_addr mac;
	uint64_t start_ns;
	uint32_t qa, qb;

	open_default(true);
	mac = san_core_pdl(pair.w->node[0].core)->conns[0].path.src_mac;
	mac.addr_bytes[MAC_BYTE] = MAC_MOVED;
	san_core_mac_set(pair.w->node[0].core, &mac, true);
	pair_filter(only_new_mac, &own);
	start_ns = pair.w->now_ns;
	pair_post(true, RTSAN_WR_PUSH, 0, LEN, 1, 0);
	pair_post(false, RTSAN_WR_PUSH, 0, LEN, 2, 0);
	assert_int_equal(pair_wait(true, false), SAN_ST_OK);
	assert_int_equal(pair_wait(false, false), SAN_ST_OK);
	assert_in_range(pair.w->now_ns - start_ns, 0, 2 * SAN_NS_PER_S);
	/* new connections can be opened */
	world_connect(pair.w, 1, 0, &pair.param, &pair.param, &qa, &qb);
	world_disconnect(pair.w, qa, qb);
	world_run_for(pair.w, 3 * SAN_NS_PER_S);
	assert_int_equal(own.nb_announced, 2);
	assert_int_equal(own.nb_old, 0);
	pair_close();
}
