/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Any bytes through the parser. Input: an Ethernet frame.
 *
 * Checked: no access outside the frame (the buffers have exactly its size); the
 * same answer however the frame is cut into segments; what was taken can be
 * built again and then parses the same. So that a fuzzer gets past the
 * checksums, they are put right where they are all that is wrong.
 */

#include "fuzz.h"
#include "san_assert.h"
#include "unit/test_eal.h"
#include "wire.h"
#include "wire_priv.h"

#define FRAME_MAX 16384
#define NB_MBUFS  255

struct result {
	enum san_drop drop;
	enum san_drop cm_drop;
	struct san_wire_pkt p;
	struct san_wire_ack ack;
	struct san_wire_cm cm;
	uint8_t payload[FRAME_MAX];
	uint32_t len; /* what the parser left of the frame */
};

static struct rte_mempool *pool;

static void
parse(struct rte_mbuf *m, struct result *r)
{
	const void *payload;

	memset(&r->ack, 0, sizeof(r->ack));
	memset(&r->cm, 0, sizeof(r->cm));
	r->cm_drop = SAN_DROP_NONE;
	r->drop = san_wire_parse(m, SAN_WIRE_PORT, &r->p, &r->ack);
	r->len = rte_pktmbuf_pkt_len(m);
	if (r->drop != SAN_DROP_NONE)
		return;
	SAN_VERIFY((uint32_t)r->p.payload_off + r->p.payload_len < r->len);
	SAN_VERIFY(rte_pktmbuf_data_len(m) >= r->p.payload_off);
	payload = rte_pktmbuf_read(m, r->p.payload_off, r->p.payload_len, r->payload);
	if (payload != r->payload)
		memcpy(r->payload, payload, r->p.payload_len);
	if (r->p.op == SAN_OP_CM)
		r->cm_drop = san_wire_cm_parse(m, &r->p, &r->cm);
}

static void
verify_same(const struct result *a, const struct result *b)
{
	SAN_VERIFY(a->drop == b->drop && a->cm_drop == b->cm_drop);
	if (a->drop != SAN_DROP_NONE)
		return;
	SAN_VERIFY(memcmp(&a->p, &b->p, sizeof(a->p)) == 0);
	SAN_VERIFY(memcmp(&a->ack, &b->ack, sizeof(a->ack)) == 0);
	SAN_VERIFY(memcmp(&a->cm, &b->cm, sizeof(a->cm)) == 0);
	SAN_VERIFY(memcmp(a->payload, b->payload, a->p.payload_len) == 0);
}

/** The frame in pieces, each at most *step* bytes, the first in an mbuf that is ours. */
static struct rte_mbuf *
in_pieces(const uint8_t *data, uint32_t len, uint32_t first, uint32_t step)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint32_t at = RTE_MIN(first, len);
	uint32_t n;

	memcpy(rte_pktmbuf_append(m, (uint16_t)at), data, at);
	for (; at < len; at += n) {
		n = RTE_MIN(step, len - at);
		rte_pktmbuf_chain(m, test_eal_exact(pool, data + at, (uint16_t)n));
	}
	return m;
}

/** Put right what *drop* complains of, if that is a checksum. @return whether it was. */
static bool
repair(struct rte_mbuf *m, enum san_drop drop)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	struct wire_front_v4 *v4 = (struct wire_front_v4 *)frame;
	struct wire_front_v6 *v6 = (struct wire_front_v6 *)frame;
	uint32_t len;

	if (drop == SAN_DROP_IP_CHECKSUM) {
		v4->ip.hdr_checksum = 0;
		v4->ip.hdr_checksum = rte_ipv4_cksum((const void *)(frame + sizeof(v4->eth)));
		return true;
	}
	if (drop != SAN_DROP_ICRC)
		return false;
	if (v4->eth.type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4))
		len = 14u + rte_be_to_cpu_16(v4->ip.total_length);
	else
		len = 54u + rte_be_to_cpu_16(v6->ip.payload_len);
	rte_pktmbuf_trim(m, (uint16_t)(rte_pktmbuf_pkt_len(m) - len));
	san_wire_icrc_seal(m);
	return true;
}

/** Cut the piece *was* out of a whole payload again. False: *m* has no room for that. */
static bool
piece_of(struct rte_mbuf *m, const struct result *was, struct san_wire_pkt *p)
{
	char *whole = rte_pktmbuf_append(m, was->p.whole_len);

	if (whole == NULL)
		return false;
	memset(whole, 0, was->p.whole_len);
	memcpy(whole + was->p.piece_off, was->payload, was->p.payload_len);
	p->flags &= (uint8_t)~SAN_F_PIECE;
	san_wire_build_cut(m, p, was->p.piece_off, was->p.payload_len);
	return true;
}

/** Build the packet that was parsed once more, and parse that. */
static void
rebuild(const struct result *was)
{
	struct san_wire_path path = {
		.src_mac = was->p.src_mac,
		.src = was->p.src,
		.dst = was->p.dst,
		.src_port = was->p.src_port,
		.dst_port = SAN_WIRE_PORT,
	};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct san_wire_pkt p = was->p;
	static struct result again;

	if (p.flags & SAN_F_PIECE) {
		if (!piece_of(m, was, &p)) {
			rte_pktmbuf_free(m);
			return;
		}
		san_wire_build(m, &path, &p);
	} else if (was->p.op == SAN_OP_ACK) {
		san_wire_build_ack(m, &path, &was->p, &was->ack);
	} else if (was->p.op == SAN_OP_CM && was->cm_drop == SAN_DROP_NONE) {
		san_wire_cm_build(m, &path, &was->p, &was->cm);
	} else {
		memcpy(rte_pktmbuf_append(m, was->p.payload_len), was->payload,
		       was->p.payload_len);
		san_wire_build(m, &path, &was->p);
	}
	san_wire_icrc_seal(m);
	parse(m, &again);
	again.p.ce = was->p.ce; /* not ours to send */
	verify_same(was, &again);
	rte_pktmbuf_free(m);
}

static void
one_frame(struct rte_mbuf *m, struct result *whole)
{
	static uint8_t frame[FRAME_MAX];
	static struct result parts;
	uint32_t len = rte_pktmbuf_data_len(m);
	uint32_t first, step;
	struct rte_mbuf *split;

	memcpy(frame, rte_pktmbuf_mtod(m, void *), len);
	/* where to cut depends on the frame, so that a file replays alike */
	first = len > 0 ? frame[len / 2] : 0;
	step = RTE_MAX(len > 0 ? frame[len / 3] : 1u, len / 200 + 1);
	split = in_pieces(frame, len, first, step);
	parse(m, whole);
	parse(split, &parts);
	verify_same(whole, &parts);
	rte_pktmbuf_free(split);
	if (whole->drop == SAN_DROP_NONE)
		rebuild(whole);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct result whole;
	struct rte_mbuf *m;

	if (pool == NULL)
		pool = test_eal_pool("fuzz_wire", NB_MBUFS, FRAME_MAX + 256);
	if (size > FRAME_MAX)
		return 0;
	m = test_eal_exact(pool, data, (uint16_t)size);
	for (int rounds = 0; rounds < 3; rounds++) {
		one_frame(m, &whole);
		if (!repair(m, whole.drop))
			break;
	}
	rte_pktmbuf_free(m);
	SAN_VERIFY(rte_mempool_in_use_count(pool) == 0);
	return 0;
}
