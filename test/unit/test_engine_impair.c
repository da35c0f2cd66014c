/* SPDX-License-Identifier: BSD-3-Clause */

#include "unit.h"

#include <errno.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "engine_priv.h"
#include "san_time.h"
#include "test_eal.h"

#define POOL     1023
#define HELD     256
#define NB       100000
#define PAYLOAD  200
#define RATE(p)  ((uint64_t)((p) * (double)SAN_IMPAIR_ALWAYS))
#define SIGMAS   6
#define ECT0     0x02
#define STEP_NS  1000
#define LATER_NS (10 * SAN_NS_PER_MS)

static struct rte_mempool *pool;
static struct san_engine_impair im;
static uint64_t now_ns;

static void
make_pool(void)
{
	pool = test_eal_pool("impair", POOL, 512);
}

static void
setup(void)
{
	now_ns = SAN_NS_PER_S;
	assert_int_equal(san_engine_impair_init(&im, HELD), 0);
}

/* Nothing is left: every packet was returned once, or freed once. */
static void
teardown(void)
{
	san_engine_impair_fini(&im);
	assert_int_equal(rte_mempool_avail_count(pool), POOL);
}

/* An IPv4 frame that carries *number*. */
static struct rte_mbuf *
make(uint32_t number, uint8_t tos)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct rte_ether_hdr *eth;
	struct rte_ipv4_hdr *ip;

	assert_non_null(m);
	eth = (struct rte_ether_hdr *)rte_pktmbuf_append(m, sizeof(*eth) + sizeof(*ip) + PAYLOAD);
	memset(eth, 0x5a, m->data_len);
	eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	ip = (struct rte_ipv4_hdr *)(eth + 1);
	memset(ip, 0, sizeof(*ip));
	ip->version_ihl = 0x45;
	ip->type_of_service = tos;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	memcpy(ip + 1, &number, sizeof(number));
	return m;
}

static uint32_t
number_of(struct rte_mbuf *m)
{
	uint32_t n;

	memcpy(&n, rte_pktmbuf_mtod_offset(m, uint8_t *, 34), sizeof(n));
	return n;
}

static void
set_conf(const struct san_engine_impair_conf *conf)
{
	assert_int_equal(san_engine_impair_set(&im, conf), 0);
}

#define SET(...) set_conf(&(struct san_engine_impair_conf){__VA_ARGS__})

/* Put one packet in; free those that come out; returns their number and a hash of them. */
static uint32_t
run(struct rte_mbuf *m, uint64_t *hash)
{
	struct rte_mbuf *out[8];
	uint16_t b, n = san_engine_impair_run(&im, &m, m != NULL, out, 8, now_ns);

	for (uint16_t i = 0; i < n; i++) {
		for (uint16_t k = 0; hash != NULL && k < out[i]->data_len; k++) {
			b = *rte_pktmbuf_mtod_offset(out[i], uint8_t *, k);
			*hash = (*hash ^ b) * 0x100000001b3;
		}
		rte_pktmbuf_free(out[i]);
	}
	now_ns += STEP_NS;
	return n;
}

static uint32_t
drain(void)
{
	uint32_t n = 0;

	now_ns += LATER_NS;
	while (!TAILQ_EMPTY(&im.held))
		n += run(NULL, NULL);
	return n;
}

/* Within SIGMAS standard deviations of a binomial distribution. */
static void
assert_rate(uint64_t count, double p)
{
	double off = (double)count - NB * p;

	if (off * off > SIGMAS * SIGMAS * NB * p * (1 - p))
		fail_msg("%lu of %d for %g", (unsigned long)count, NB, p);
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown, .first = make_pool);

UNIT_CASE(san_engine_impair_set__out_of_range)
{
	struct san_engine_impair_conf conf = {.drop = SAN_IMPAIR_ALWAYS + 1};

	assert_int_equal(san_engine_impair_set(&im, &conf), -EINVAL);
	assert_false(san_engine_impair_is_on(&im));
}

UNIT_CASE(san_engine_impair_run__off_changes_nothing)
{
	struct rte_mbuf *in = make(1, 0), *out[1];

	SET(.seed = 1);
	assert_false(san_engine_impair_is_on(&im));
	assert_int_equal(san_engine_impair_run(&im, &in, 1, out, 1, now_ns), 1);
	assert_ptr_equal(in, out[0]);
	rte_pktmbuf_free(in);
	assert_true(san_engine_impair_deadline_ns(&im) == SAN_TIME_NEVER);
}

UNIT_CASE(san_engine_impair_run__rates)
{
	struct san_engine_impair_conf conf = {
		.drop = RATE(0.1),
		.duplicate = RATE(0.02),
		.reorder = RATE(0.05),
		.corrupt = RATE(0.01),
		.ecn = RATE(0.3),
		.seed = 42,
	};
	uint32_t out = 0;

	set_conf(&conf);
	for (uint32_t i = 0; i < NB; i++)
		out += run(make(i, ECT0), NULL);
	out += drain();
	assert_rate(im.stats.nb_dropped, 0.1);
	assert_rate(im.stats.nb_duplicated, 0.9 * 0.02);
	assert_rate(im.stats.nb_reordered, 0.9 * 0.05);
	assert_rate(im.stats.nb_corrupted, 0.9 * 0.01);
	assert_rate(im.stats.nb_marked, 0.9 * 0.3);
	assert_int_equal(im.stats.nb_overflow, 0);
	assert_int_equal(out, NB - im.stats.nb_dropped + im.stats.nb_duplicated);
}

UNIT_CASE(san_engine_impair_run__always_and_never)
{
	SET(.drop = SAN_IMPAIR_ALWAYS);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(run(make(i, 0), NULL), 0);
	SET(.duplicate = SAN_IMPAIR_ALWAYS);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(run(make(i, 0), NULL), 2);
	assert_int_equal(im.stats.nb_dropped, 1000);
	assert_int_equal(im.stats.nb_reordered, 0);
}

static uint64_t
trace(uint64_t seed)
{
	struct san_engine_impair_conf conf = {
		.drop = RATE(0.1),
		.duplicate = RATE(0.1),
		.reorder = RATE(0.1),
		.corrupt = RATE(0.1),
		.ecn = RATE(0.1),
		.seed = seed,
	};
	uint64_t hash = 0xcbf29ce484222325;

	now_ns = SAN_NS_PER_S;
	set_conf(&conf);
	for (uint32_t i = 0; i < 5000; i++)
		run(make(i, ECT0), &hash);
	drain();
	return hash;
}

UNIT_CASE(san_engine_impair_run__same_seed_same_faults)
{
	uint64_t first = trace(7);

	assert_true(trace(7) == first);
	assert_true(trace(8) != first);
}

/* A duplicate shares no byte with its original: placing one must not change the other. */
UNIT_CASE(san_engine_impair_run__duplicate_is_deep)
{
	struct rte_mbuf *in = make(5, 0), *out[4];

	SET(.duplicate = SAN_IMPAIR_ALWAYS);
	assert_int_equal(san_engine_impair_run(&im, &in, 1, out, 4, now_ns), 2);
	assert_ptr_not_equal(out[0], out[1]);
	assert_ptr_not_equal(rte_pktmbuf_mtod(out[0], void *), rte_pktmbuf_mtod(out[1], void *));
	assert_int_equal(rte_mbuf_refcnt_read(out[0]), 1);
	assert_int_equal(rte_mbuf_refcnt_read(out[1]), 1);
	assert_memory_equal(rte_pktmbuf_mtod(out[0], void *), rte_pktmbuf_mtod(out[1], void *),
			    out[0]->data_len);
	rte_pktmbuf_free_bulk(out, 2);
}

/* RT-3: exactly one bit behind the Ethernet header, in the long run everywhere. */
UNIT_CASE(san_engine_impair_run__corrupts_one_bit)
{
	uint8_t before[14 + 20 + PAYLOAD], hit[14 + 20 + PAYLOAD] = {0};
	struct rte_mbuf *m, *out[2];
	uint32_t k, bits, bytes = 0;

	SET(.corrupt = SAN_IMPAIR_ALWAYS, .seed = 3);
	for (uint32_t i = 0; i < 20000; i++) {
		m = make(i, 0);
		memcpy(before, rte_pktmbuf_mtod(m, void *), sizeof(before));
		assert_int_equal(san_engine_impair_run(&im, &m, 1, out, 2, now_ns), 1);
		for (bits = 0, k = 0; k < sizeof(before); k++) {
			uint8_t d = before[k] ^ *rte_pktmbuf_mtod_offset(out[0], uint8_t *, k);

			bits += (uint32_t)__builtin_popcount(d);
			hit[k] |= d != 0;
		}
		assert_int_equal(bits, 1);
		rte_pktmbuf_free(out[0]);
	}
	for (k = 0; k < sizeof(hit); k++)
		bytes += hit[k];
	assert_int_equal(bytes, sizeof(hit) - 14);
	assert_int_equal(hit[13], 0);
}

/* ARP has no checksum: a link's frame check would have detected the error. */
UNIT_CASE(san_engine_impair_run__leaves_arp_whole)
{
	struct rte_mbuf *m = make(1, ECT0);
	uint8_t before[60];

	SET(.corrupt = SAN_IMPAIR_ALWAYS, .ecn = SAN_IMPAIR_ALWAYS);
	rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->ether_type =
		rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP);
	memcpy(before, rte_pktmbuf_mtod(m, void *), sizeof(before));
	assert_int_equal(san_engine_impair_run(&im, &m, 1, &m, 1, now_ns), 1);
	assert_memory_equal(rte_pktmbuf_mtod(m, void *), before, sizeof(before));
	rte_pktmbuf_free(m);
}

/* RT-9: marked as a router would do: only ECT packets, with a correct checksum. */
UNIT_CASE(san_engine_impair_run__marks)
{
	struct rte_ipv4_hdr *ip;
	struct rte_mbuf *m;

	SET(.ecn = SAN_IMPAIR_ALWAYS);
	m = make(1, 0x68 | ECT0);
	assert_int_equal(san_engine_impair_run(&im, &m, 1, &m, 1, now_ns), 1);
	ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14);
	assert_int_equal(ip->type_of_service, 0x68 | 3);
	assert_int_equal(rte_ipv4_cksum(ip), 0);
	rte_pktmbuf_free(m);
	m = make(1, 0x68);
	assert_int_equal(san_engine_impair_run(&im, &m, 1, &m, 1, now_ns), 1);
	ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14);
	assert_int_equal(ip->type_of_service, 0x68);
	rte_pktmbuf_free(m);
	assert_int_equal(im.stats.nb_marked, 1);
}

UNIT_CASE(san_engine_impair_run__marks_ipv6)
{
	struct rte_mbuf *m = make(1, 0);
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, 14);

	SET(.ecn = SAN_IMPAIR_ALWAYS);
	rte_pktmbuf_mtod(m, struct rte_ether_hdr *)->ether_type =
		rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6);
	ip[0] = 0x66; /* version, upper half of the traffic class 0x6a */
	ip[1] = 0xa0;
	assert_int_equal(san_engine_impair_run(&im, &m, 1, &m, 1, now_ns), 1);
	assert_int_equal(ip[0], 0x66);
	assert_int_equal(ip[1], 0xb0);
	rte_pktmbuf_free(m);
}

UNIT_CASE(san_engine_impair_run__delays_in_order)
{
	struct rte_mbuf *m, *out[8];
	uint32_t next = 0;
	uint16_t n;

	SET(.delay_ns = 50 * SAN_NS_PER_US);
	for (uint32_t i = 0; i < 200; i++) {
		m = make(i, 0);
		n = san_engine_impair_run(&im, &m, 1, out, 8, now_ns);
		assert_int_equal(n, i >= 50);
		for (uint16_t k = 0; k < n; k++) {
			assert_int_equal(number_of(out[k]), next++);
			rte_pktmbuf_free(out[k]);
		}
		now_ns += STEP_NS;
	}
	/* off: delayed packets still come out in time */
	set_conf(NULL);
	assert_true(san_engine_impair_is_on(&im));
	assert_true(san_engine_impair_deadline_ns(&im) == SAN_NS_PER_S + next * STEP_NS + 50000);
	assert_int_equal(drain(), 200 - next);
	assert_false(san_engine_impair_is_on(&im));
}

UNIT_CASE(san_engine_impair_run__reorders_some)
{
	uint32_t high = 0, late = 0, count = 0;
	struct rte_mbuf *m, *out[8];
	uint16_t n;

	SET(.reorder = RATE(0.05), .seed = 5);
	for (uint32_t i = 0; i < 10000; i++) {
		m = make(i, 0);
		n = san_engine_impair_run(&im, &m, 1, out, 8, now_ns);
		for (uint32_t k = 0; k < n; k++) {
			late += number_of(out[k]) < high;
			high = RTE_MAX(high, number_of(out[k]));
			rte_pktmbuf_free(out[k]);
		}
		count += n;
		now_ns += STEP_NS;
	}
	count += drain();
	assert_int_equal(count, 10000);
	assert_true(late > 350 && late < 650);
}

UNIT_CASE(san_engine_impair_run__no_more_than_it_may_hold)
{
	SET(.delay_ns = SAN_NS_PER_S);
	for (uint32_t i = 0; i < HELD + 10; i++)
		assert_int_equal(run(make(i, 0), NULL), 0);
	assert_int_equal(im.stats.nb_overflow, 10);
	/* the teardown counts: fini frees the delayed packets */
}
