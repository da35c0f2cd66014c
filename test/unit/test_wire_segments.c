/* SPDX-License-Identifier: BSD-3-Clause */

/* Packets in several segments, and longer than IP says: wire_parse.c again. */

#include "test_wire.h"

static struct rte_mempool *tiny; /* mbufs too small for our headers */

static void
make_tiny(void)
{
	test_eal_init();
	tiny = rte_pktmbuf_pool_create("wire_tiny", 15, 0, 0, 64, SOCKET_ID_ANY);
	assert_non_null(tiny);
}

static void
nothing_leaked(void)
{
	teardown();
	assert_int_equal(rte_mempool_in_use_count(tiny), 0);
}

UNIT_FIXTURE(.first = make_tiny, .teardown = nothing_leaked);

/** Segments of *step* bytes each, in our own mbufs. */
static struct rte_mbuf *
in_pieces(const struct rte_mbuf *m, uint16_t first, uint16_t step)
{
	const char *data = rte_pktmbuf_mtod(m, const char *);
	uint16_t len = rte_pktmbuf_data_len(m);
	struct rte_mbuf *head = rte_pktmbuf_alloc(test_pool());
	struct rte_mbuf *seg = head;
	uint16_t at = 0;

	for (uint16_t n = RTE_MIN(first, len);; n = RTE_MIN(step, (uint16_t)(len - at))) {
		memcpy(rte_pktmbuf_append(seg, n), data + at, n);
		at += n;
		if (seg != head)
			assert_int_equal(rte_pktmbuf_chain(head, seg), 0);
		if (at == len)
			return head;
		seg = rte_pktmbuf_alloc(test_pool());
	}
}

static void
same_result(struct rte_mbuf *whole, struct rte_mbuf *parts)
{
	struct san_wire_pkt a, b;
	struct san_wire_ack ack_a = {0}, ack_b = {0};
	struct san_wire_cm cm_a, cm_b;
	uint16_t len = rte_pktmbuf_data_len(whole);
	static char copy[4096];

	assert_int_equal(san_wire_parse(whole, SAN_WIRE_PORT, &a, &ack_a), SAN_DROP_NONE);
	assert_int_equal(san_wire_parse(parts, SAN_WIRE_PORT, &b, &ack_b), SAN_DROP_NONE);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_memory_equal(&ack_a, &ack_b, sizeof(ack_a));
	if (a.op == SAN_OP_CM) {
		assert_int_equal(san_wire_cm_parse(whole, &a, &cm_a), SAN_DROP_NONE);
		assert_int_equal(san_wire_cm_parse(parts, &b, &cm_b), SAN_DROP_NONE);
		assert_memory_equal(&cm_a, &cm_b, sizeof(cm_a));
	}
	rte_mbuf_sanity_check(parts, 1);
	assert_true(parts->data_len >= b.payload_off);
	assert_int_equal(rte_pktmbuf_pkt_len(parts), len);
	assert_memory_equal(rte_pktmbuf_read(parts, 0, len, copy),
			    rte_pktmbuf_mtod(whole, char *), len);
}

/* The headers are made contiguous, wherever the segments end. */
UNIT_CASE(parse__split_headers)
{
	struct rte_mbuf *m, *parts;

	UNIT_EACH(r, wire_samples) {
		for (unsigned int v6 = 0; v6 < 2; v6++) {
			m = wire_sample_build(test_pool(), r, v6);
			for (uint16_t at = 0; at < RTE_MIN(rte_pktmbuf_data_len(m), 160); at++) {
				parts = in_pieces(m, at, 4000);
				same_result(m, parts);
				rte_pktmbuf_free(parts);
				parts = in_pieces(m, at, 41);
				same_result(m, parts);
				rte_pktmbuf_free(parts);
			}
			rte_pktmbuf_free(m);
		}
	}
}

/* No room behind the first segment: its data moves to the front of the mbuf. */
UNIT_CASE(parse__split_headers_without_tailroom)
{
	struct rte_mbuf *m = sample("push_unslctd_data", true);
	struct rte_mbuf *parts = in_pieces(m, 40, 30);

	memmove((char *)parts->buf_addr + parts->buf_len - 40, rte_pktmbuf_mtod(parts, char *), 40);
	parts->data_off = (uint16_t)(parts->buf_len - 40);
	same_result(m, parts);
	rte_pktmbuf_free(parts);
	rte_pktmbuf_free(m);
}

UNIT_CASE(parse__split_header_refused)
{
	struct rte_mbuf *m = sample("push_unslctd_data", false);
	const char *data = rte_pktmbuf_mtod(m, const char *);
	uint16_t len = rte_pktmbuf_data_len(m);
	struct rte_mbuf *parts;

	/* an external buffer must not be written to, even with room behind the data */
	parts = test_eal_exact(test_pool(), data, len);
	rte_pktmbuf_trim(parts, (uint16_t)(len - 60));
	rte_pktmbuf_chain(parts, test_eal_exact(test_pool(), data + 60, (uint16_t)(len - 60)));
	assert_int_equal(parse(parts), SAN_DROP_SPLIT_HEADER);
	rte_pktmbuf_free(parts);
	/* the first segment is shared, then the second */
	parts = in_pieces(m, 60, 4000);
	rte_mbuf_refcnt_update(parts, 1);
	assert_int_equal(parse(parts), SAN_DROP_SPLIT_HEADER);
	rte_mbuf_refcnt_update(parts, -1);
	rte_mbuf_refcnt_update(parts->next, 1);
	assert_int_equal(parse(parts), SAN_DROP_SPLIT_HEADER);
	rte_mbuf_refcnt_update(parts->next, -1);
	assert_int_equal(parse(parts), SAN_DROP_NONE);
	rte_pktmbuf_free(parts);
	/* a first mbuf that is too small */
	parts = rte_pktmbuf_alloc(tiny);
	parts->data_off = 0;
	memcpy(rte_pktmbuf_append(parts, 60), data, 60);
	rte_pktmbuf_chain(parts, test_eal_exact(test_pool(), data + 60, (uint16_t)(len - 60)));
	assert_int_equal(parse(parts), SAN_DROP_SPLIT_HEADER);
	rte_pktmbuf_free(parts);
	rte_pktmbuf_free(m);
}

/* A shared header is accepted if nothing has to move. */
UNIT_CASE(parse__shared_but_contiguous)
{
	struct rte_mbuf *m = sample("pull_data", false);
	const char *data = rte_pktmbuf_mtod(m, const char *);
	uint16_t len = rte_pktmbuf_data_len(m);
	struct rte_mbuf *parts = test_eal_exact(test_pool(), data,
						san_wire_op_hdr_len(SAN_OP_PULL_DATA, 0));
	uint16_t rest = (uint16_t)(len - parts->data_len);

	rte_pktmbuf_chain(parts, test_eal_exact(test_pool(), data + parts->data_len, rest));
	same_result(m, parts);
	rte_pktmbuf_free(parts);
	rte_pktmbuf_free(m);
}

/* Ethernet pads short frames: the mbuf is trimmed to the IP length. */
UNIT_CASE(parse__trims_ethernet_padding)
{
	struct rte_mbuf *m, *parts;
	uint16_t len;

	UNIT_EACH(r, wire_samples) {
		for (unsigned int v6 = 0; v6 < 2; v6++) {
			for (uint16_t extra = 1; extra < 50; extra += 16) {
				m = wire_sample_build(test_pool(), r, v6);
				len = rte_pktmbuf_data_len(m);
				memset(rte_pktmbuf_append(m, extra), 0x99, extra);
				parts = in_pieces(m, 130, 20);
				assert_int_equal(parse(m), SAN_DROP_NONE);
				assert_int_equal(rte_pktmbuf_pkt_len(m), len);
				assert_int_equal(rte_pktmbuf_data_len(m), len);
				assert_int_equal(parse(parts), SAN_DROP_NONE);
				assert_int_equal(rte_pktmbuf_pkt_len(parts), len);
				rte_mbuf_sanity_check(parts, 1);
				rte_pktmbuf_free(parts);
				rte_pktmbuf_free(m);
			}
		}
	}
}
