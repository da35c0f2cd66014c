/* SPDX-License-Identifier: BSD-3-Clause */

/* Packets that lcores of one port hand over: all of them, in order, or counted. (SYS-1) */

#include "unit.h"
#include "engine_priv.h"
#include "test_eal.h"
#include "wire_sample.h"

#define NB     3
#define QUEUES 2
#define LANE   512 /* of ENGINE_LANES: share of an lcore, from each of two with a queue */
#define LENT   256 /* share of each of three to send */

static struct rte_mempool *pool;
static struct san_engine_port port;
static struct san_engine engines[NB];

static void
make_pool(void)
{
	pool = test_eal_pool("handover", 1024, 1024);
}

static void
setup(void)
{
	memset(&port, 0, sizeof(port));
	memset(engines, 0, sizeof(engines));
	port.pool = pool;
	port.nb_engines = NB;
	port.conf.nb_queues = QUEUES;
	for (uint32_t i = 0; i < NB; i++) {
		engines[i].id = (uint16_t)i;
		engines[i].port = &port;
		engines[i].conf.udp_port = SAN_WIRE_PORT;
		port.engines[i] = &engines[i];
	}
	assert_int_equal(san_engine_handover_create(&port), 0);
}

static void
teardown(void)
{
	san_engine_handover_destroy(&port);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

/* A packet for lcore *lcore*; the PSN identifies it. */
static struct rte_mbuf *
packet(uint32_t lcore, uint32_t psn)
{
	struct san_wire_pkt p = wire_sample_pkt(wire_sample_get("probe"));
	struct san_wire_path path = wire_sample_path(false);
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	assert_non_null(m);
	p.dcid = lcore << SAN_CID_LCORE_SHIFT | 7;
	p.psn = psn;
	san_wire_build(m, &path, &p);
	san_wire_icrc_seal(m);
	return m;
}

static uint32_t
psn_of(struct rte_mbuf *m)
{
	struct san_wire_ack ack;
	struct san_wire_pkt p;

	assert_int_equal(san_wire_parse(m, SAN_WIRE_PORT, &p, &ack), SAN_DROP_NONE);
	rte_pktmbuf_free(m);
	return p.psn;
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown, .first = make_pool);

UNIT_CASE(handover__each_to_its_owner_in_order)
{
	struct rte_mbuf *in[ENGINE_BURST], *out[ENGINE_BURST];
	uint32_t lcore, next[NB] = {0, 1, 2};
	uint64_t gap_ns;
	uint16_t n;

	for (uint16_t i = 0; i < 30; i++)
		in[i] = packet(i % NB, i);
	engines[1].now_ns = 5000;
	engines[1].rx_ns = 1000;
	assert_int_equal(san_engine_handover(&engines[1], in, 30), 10);
	for (uint16_t i = 0; i < 10; i++, next[1] += NB)
		assert_int_equal(psn_of(in[i]), next[1]);
	for (lcore = 0; lcore < NB; lcore += 2) {
		n = san_engine_handover_take_rx(&engines[lcore], 1, out, ENGINE_BURST, &gap_ns);
		assert_int_equal(n, 10);
		assert_int_equal(gap_ns, 4000);
		for (uint16_t i = 0; i < n; i++, next[lcore] += NB)
			assert_int_equal(psn_of(out[i]), next[lcore]);
		assert_int_equal(engines[lcore].stats.nb_handover_in, 10);
		/* from no other lcore */
		assert_int_equal(san_engine_handover_take_rx(&engines[lcore], 0, out, 1, &gap_ns),
				 0);
	}
	assert_int_equal(engines[1].stats.nb_handover_out, 20);
}

/* An lcore that does not receive is not waited for; the loss is counted with its reason. */
UNIT_CASE(handover__full_lane)
{
	struct rte_mbuf *m, *out[ENGINE_BURST];
	uint64_t gap_ns;

	for (uint32_t i = 0; i < LANE + 5; i++) {
		m = packet(2, i);
		assert_int_equal(san_engine_handover(&engines[0], &m, 1), 0);
	}
	assert_int_equal(engines[0].stats.nb_handover_out, LANE);
	assert_int_equal(engines[0].drops[SAN_DROP_HANDOVER], 5);
	assert_int_equal(rte_mempool_in_use_count(pool), LANE);
	assert_int_equal(san_engine_handover_take_rx(&engines[2], 0, out, 1, &gap_ns), 1);
	assert_int_equal(psn_of(out[0]), 0);
}

/* Neighbour packets and RESETs: each core gets its own copy, because it writes into the mbuf. */
UNIT_CASE(handover__copies_for_all)
{
	static const char *const samples[] = {"cm_reset", NULL};
	uint8_t arp[42] = {[12] = 8, [13] = 6, [41] = 9};
	struct rte_mbuf *m, *out[2];
	uint64_t gap_ns;

	for (unsigned int i = 0; i < RTE_DIM(samples); i++) {
		m = samples[i] != NULL ?
			wire_sample_build(pool, wire_sample_get(samples[i]), false) :
			test_eal_exact(pool, arp, sizeof(arp));
		assert_int_equal(san_engine_handover(&engines[0], &m, 1), 1);
		assert_int_equal(san_engine_handover_take_rx(&engines[1], 0, &out[0], 1, &gap_ns),
				 1);
		assert_int_equal(san_engine_handover_take_rx(&engines[2], 0, &out[1], 1, &gap_ns),
				 1);
		assert_int_equal(out[0]->data_len, m->data_len);
		assert_memory_equal(rte_pktmbuf_mtod(out[0], char *),
				    rte_pktmbuf_mtod(m, char *), m->data_len);
		assert_ptr_not_equal(out[0], out[1]);
		assert_ptr_not_equal(out[0]->buf_addr, m->buf_addr);
		rte_pktmbuf_free_bulk(out, 2);
		rte_pktmbuf_free(m);
	}
}

/* A RESET that overtook the DREQ before it would look like a restart of the peer. */
UNIT_CASE(handover__copies_in_their_turn)
{
	struct rte_mbuf *in[3], *out[3];
	uint64_t gap_ns;
	uint32_t len;

	in[0] = packet(1, 0);
	in[1] = wire_sample_build(pool, wire_sample_get("cm_reset"), false);
	in[2] = packet(1, 1);
	len = in[1]->data_len;
	assert_int_equal(san_engine_handover(&engines[0], in, 3), 1);
	assert_int_equal(in[0]->data_len, len);
	assert_int_equal(san_engine_handover_take_rx(&engines[1], 0, out, 3, &gap_ns), 3);
	assert_int_equal(psn_of(out[0]), 0);
	assert_int_equal(out[1]->data_len, len);
	assert_int_equal(psn_of(out[2]), 1);
	assert_int_equal(san_engine_handover_take_rx(&engines[2], 0, &out[2], 1, &gap_ns), 1);
	rte_pktmbuf_free(in[0]);
	rte_pktmbuf_free_bulk(&out[1], 2);
}

/* An lcore without a queue sends through one that has one; what does not fit stays with it. */
UNIT_CASE(lend_tx__to_one_with_a_queue)
{
	struct rte_mbuf *m[ENGINE_BURST];
	uint32_t sent = 0;
	uint16_t n;

	for (uint32_t i = 0; i < LENT; i++) {
		m[0] = packet(9, i);
		assert_int_equal(san_engine_handover_lend_tx(&engines[2], m, 1), 1);
	}
	m[0] = packet(9, LENT);
	assert_int_equal(san_engine_handover_lend_tx(&engines[2], m, 1), 0);
	rte_pktmbuf_free(m[0]);
	assert_int_equal(engines[2].stats.nb_tx_by_others, LENT);
	assert_int_equal(san_engine_handover_take_tx(&engines[1], 2, m, ENGINE_BURST), 0);
	assert_int_equal(san_engine_handover_take_tx(&engines[0], 1, m, ENGINE_BURST), 0);
	assert_int_equal(san_engine_handover_take_tx(&engines[0], 0, m, ENGINE_BURST), 0);
	while ((n = san_engine_handover_take_tx(&engines[0], 2, m, ENGINE_BURST)) != 0)
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(psn_of(m[i]), sent++);
	assert_int_equal(sent, LENT);
}
