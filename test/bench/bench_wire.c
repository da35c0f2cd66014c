/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What wire costs per packet: headers written, ICRC computed, parsed and ICRC
 * verified, for unsolicited push data over IPv4, in ns of one core. Packets are
 * warm: this is the instructions' share, without cache misses.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "unit/test_eal.h"
#include "wire_sample.h"

#define NB_PKTS   64 /* as many as a burst or two: they stay in the cache */
#define NB_ROUNDS 20001

enum stage {
	STAGE_BUILD, /* payload length set, all headers written */
	STAGE_SEAL,  /* ICRC */
	STAGE_PARSE, /* every check, ICRC included */
	NB_STAGES
};

static uint64_t ticks[NB_STAGES][NB_ROUNDS];

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int
run_round(struct rte_mbuf **pkts, uint16_t payload, uint32_t round)
{
	const struct wire_sample s = {
		.name = "bench", .op = SAN_OP_PUSH_UNSLCTD_DATA, .flags = SAN_F_LAST};
	struct san_wire_path path = wire_sample_path(false);
	struct san_wire_pkt p = wire_sample_pkt(&s);
	struct san_wire_pkt parsed;
	struct san_wire_ack ack;
	uint64_t t[NB_STAGES + 1];
	int bad = 0;

	p.length = payload;
	p.offset = 0;
	t[STAGE_BUILD] = rte_rdtsc_precise();
	for (unsigned int i = 0; i < NB_PKTS; i++) {
		rte_pktmbuf_reset(pkts[i]);
		rte_pktmbuf_append(pkts[i], payload);
		san_wire_build(pkts[i], &path, &p);
	}
	t[STAGE_SEAL] = rte_rdtsc_precise();
	for (unsigned int i = 0; i < NB_PKTS; i++)
		san_wire_icrc_seal(pkts[i]);
	t[STAGE_PARSE] = rte_rdtsc_precise();
	for (unsigned int i = 0; i < NB_PKTS; i++)
		bad |= san_wire_parse(pkts[i], SAN_WIRE_PORT, &parsed, &ack) != SAN_DROP_NONE;
	t[NB_STAGES] = rte_rdtsc_precise();
	for (unsigned int i = 0; i < NB_STAGES; i++)
		ticks[i][round] = t[i + 1] - t[i];
	return bad ? -1 : 0;
}

static int
run(struct rte_mempool *pool, uint16_t payload)
{
	double ns[NB_STAGES];
	struct rte_mbuf *pkts[NB_PKTS];
	int ret = 0;

	if (rte_pktmbuf_alloc_bulk(pool, pkts, NB_PKTS) != 0)
		return -1;
	for (uint32_t i = 0; i < NB_ROUNDS; i++)
		ret |= run_round(pkts, payload, i);
	for (uint32_t i = 0; i < NB_STAGES; i++) {
		qsort(ticks[i], NB_ROUNDS, sizeof(ticks[i][0]), compare);
		ns[i] = (double)ticks[i][NB_ROUNDS / 2] * 1e9 / (double)rte_get_tsc_hz() / NB_PKTS;
	}
	printf("\"%u\": {\"build_ns\": %.1f, \"icrc_ns\": %.1f, \"parse_ns\": %.1f}", payload,
	       ns[STAGE_BUILD], ns[STAGE_SEAL], ns[STAGE_PARSE]);
	rte_pktmbuf_free_bulk(pkts, NB_PKTS);
	return ret;
}

int
main(void)
{
	struct rte_mempool *pool = test_eal_pool("bench", 255, 9216);
	int ret;

	printf("{");
	ret = run(pool, 64);
	printf(", ");
	ret |= run(pool, san_wire_payload_max(1500, false));
	printf(", ");
	ret |= run(pool, san_wire_payload_max(9000, false));
	printf("}\n");
	if (ret != 0)
		fprintf(stderr, "a packet was refused\n");
	return ret == 0 ? 0 : 1;
}
