/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Express takes no frame that the parser drops, and finds the same in the others: every byte of the
 * headers with every value, every number at every bound, and all combinations of those that depend
 * on each other. Each frame follows an ordinary one and is compared three ways: as its successor,
 * alone, and by the parser. The ICRC is right, so it hides nothing. (RT-42)
 */

#include "unit.h"
#include "test_eal.h"
#include "wire_priv.h"
#include "wire_sample.h"

#define ROOM 256

struct frame {
	uint16_t len;
	uint8_t b[ROOM];
};

/* Offsets in a frame. */
struct at {
	uint16_t ip_len, udp_len, bth, rt, ext, payload;
};

static const struct at at_of[] = {
	{.ip_len = 16, .udp_len = 38, .bth = 42, .rt = 54, .ext = 82, .payload = 102},
	{.ip_len = 18, .udp_len = 58, .bth = 62, .rt = 74, .ext = 102, .payload = 122},
};

static const uint8_t kinds[] = {SAN_KIND_PUSH, SAN_KIND_SEND, SAN_KIND_PUSH_IMM,
				SAN_KIND_SEND_IMM};
static const uint16_t payloads[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 64};

/* Values around each bound of a 32-bit number; the data is added to half of them. */
static const uint32_t bounds[] = {
	0, 1, 2, 3, 4, 5, 8, 0xff, 0xffff,
	SAN_WIRE_LENGTH_MAX - 1, SAN_WIRE_LENGTH_MAX, SAN_WIRE_LENGTH_MAX + 1, 3u << 30,
	-8u, -7u, -6u, -5u, -4u, -3u, -2u, -1u};

static struct rte_mbuf *ma, *mb; /* the frame ends where their memory ends */
static struct san_wire_path back;
static bool v6;
static struct frame last;
static struct san_wire_pkt of_last;
static uint64_t nb_first, nb_next, nb_all;

static void
teardown(void)
{
	rte_pktmbuf_free(ma);
	rte_pktmbuf_free(mb);
	assert_int_equal(rte_mempool_in_use_count(test_pool()), 0);
}

/* ---- frames ---- */

static struct rte_mbuf *
buffer_create(void)
{
	static const uint8_t zeros[ROOM];

	return test_eal_exact(test_pool(), zeros, ROOM);
}

static struct rte_mbuf *
buffer_put(struct rte_mbuf *m, const struct frame *f)
{
	m->data_off = ROOM - f->len;
	m->data_len = f->len;
	m->pkt_len = f->len;
	m->nb_segs = 1;
	memcpy(rte_pktmbuf_mtod(m, void *), f->b, f->len);
	return m;
}

static void
put(struct frame *f, uint32_t at, uint32_t len, uint32_t value)
{
	for (; len > 0; len--, value >>= 8)
		f->b[at + len - 1] = (uint8_t)value;
}

static uint16_t
get16(const struct frame *f, uint32_t at)
{
	return (uint16_t)(f->b[at] << 8 | f->b[at + 1]);
}

/* Both are right again after a change. */
static void
sum_ip(struct frame *f)
{
	struct rte_ipv4_hdr ip;

	if (v6)
		return;
	memcpy(&ip, f->b + RTE_ETHER_HDR_LEN, sizeof(ip));
	ip.hdr_checksum = 0;
	ip.hdr_checksum = (uint16_t)~rte_raw_cksum(&ip, sizeof(ip)); /* whatever its IHL */
	memcpy(f->b + RTE_ETHER_HDR_LEN, &ip, sizeof(ip));
}

static void
seal(struct frame *f)
{
	uint32_t end = get16(f, at_of[v6].ip_len) + RTE_ETHER_HDR_LEN + (v6 ? 40u : 0);
	rte_le32_t icrc;

	end = RTE_MIN(end, f->len);
	if (end < at_of[v6].rt)
		return;
	icrc = rte_cpu_to_le_32(san_wire_icrc(buffer_put(mb, f), v6, end - WIRE_ICRC_LEN));
	memcpy(f->b + end - WIRE_ICRC_LEN, &icrc, sizeof(icrc));
}

/* A whole unsolicited push, number *n* of its visit; without data if its immediate does not fit. */
static void
frame_init(struct frame *f, uint8_t kind, uint16_t payload, uint32_t n)
{
	uint16_t imm = san_wire_has_imm(kind) ? SAN_WIRE_IMM_LEN : 0;
	const struct wire_sample s = {
		.op = SAN_OP_PUSH_UNSLCTD_DATA,
		.flags = SAN_F_LAST | (uint8_t)(kind << SAN_F_KIND_SHIFT),
		.payload = payload,
		.length = payload - RTE_MIN(imm, payload),
	};
	struct san_wire_path path = wire_sample_path(v6);
	struct san_wire_pkt p = wire_sample_pkt(&s);
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_pool());

	p.psn += n;
	p.rsn += n;
	p.addr += 4096 * n;
	wire_sample_payload(&s, (uint8_t *)rte_pktmbuf_append(m, payload));
	san_wire_build(m, &path, &p);
	san_wire_icrc_seal(m);
	f->len = rte_pktmbuf_data_len(m);
	memcpy(f->b, rte_pktmbuf_mtod(m, void *), f->len);
	rte_pktmbuf_free(m);
}

/* The frame that the next ones follow. */
static void
last_init(bool is_v6, uint8_t kind, uint16_t payload)
{
	struct san_wire_path path = wire_sample_path(is_v6);

	v6 = is_v6;
	back = path;
	back.src = path.dst;
	back.dst = path.src;
	frame_init(&last, kind, payload, 0);
	assert_true(san_wire_express(buffer_put(ma, &last), &back, SAN_WIRE_PORT, &of_last));
	assert_true(san_wire_express_sum(ma, &of_last));
}

/* ---- the three ways ---- */

static bool
is_ordinary(const struct san_wire_pkt *p)
{
	uint8_t kind = (p->flags & SAN_F_KIND) >> SAN_F_KIND_SHIFT;
	uint32_t imm = san_wire_has_imm(kind) ? SAN_WIRE_IMM_LEN : 0;

	return p->op == SAN_OP_PUSH_UNSLCTD_DATA && (p->flags & SAN_F_PIECE) == 0 &&
		(p->flags & SAN_F_LAST) != 0 && p->offset == 0 &&
		p->payload_len == (uint64_t)p->length + imm && san_wire_ip_eq(&p->src, &back.dst) &&
		san_wire_ip_eq(&p->dst, &back.src);
}

static void
fail_frame(const struct frame *f, const char *what)
{
	char text[2 * ROOM + 1];

	for (uint32_t i = 0; i < f->len; i++)
		snprintf(text + 2 * i, 3, "%02x", f->b[i]);
	fail_msg("%s: kind %u, %s after a payload of %u", what, last.b[at_of[v6].rt + 1] >> 2, text,
		 of_last.payload_len);
}

/* Check *f*. Returns true if express takes it as the successor of *last*. */
static bool
check(const struct frame *f, uint64_t ol_flags)
{
	struct san_wire_pkt next = of_last, first, p;
	static struct san_wire_ack ack;
	bool is_next, is_first, is_right;

	buffer_put(mb, f);
	mb->ol_flags = ma->ol_flags = RTE_MBUF_F_EXTERNAL | ol_flags;
	is_next = san_wire_express_next(mb, ma, &next) && san_wire_express_sum(mb, &next);
	is_first = san_wire_express(mb, &back, SAN_WIRE_PORT, &first) &&
		san_wire_express_sum(mb, &first);
	is_right = san_wire_parse(mb, SAN_WIRE_PORT, &p, &ack) == SAN_DROP_NONE &&
		is_ordinary(&p) && rte_pktmbuf_data_len(mb) == f->len;
	if (is_next && !is_right)
		fail_frame(f, "taken as successor");
	if (is_next && wire_sample_differs(&next, &p) != NULL)
		fail_frame(f, "other fields as successor");
	if (is_first != is_right)
		fail_frame(f, is_first ? "taken" : "not taken");
	if (is_first && wire_sample_differs(&first, &p) != NULL)
		fail_frame(f, "other fields");
	nb_all++;
	nb_next += is_next;
	nb_first += is_first;
	return is_next;
}

/* ---- cases ---- */

typedef void (*each)(void);

/* Call *f* after each ordinary frame. */
static void
after_each(each f)
{
	nb_all = nb_next = nb_first = 0;
	for (uint32_t i = 0; i < 2; i++)
		UNIT_EACH(r, kinds)
			for (uint32_t j = 4; j < 6; j++) { /* with and without padding */
				last_init(i != 0, *r, payloads[j]);
				f();
			}
	assert_true(nb_next > 0 && nb_first > 0);
}

static void
ordinary(void)
{
	uint8_t kind = last.b[at_of[v6].rt + 1] >> SAN_F_KIND_SHIFT;
	bool has_imm = san_wire_has_imm(kind);
	struct frame f;

	for (uint32_t i = 0; i < RTE_DIM(payloads); i++) {
		frame_init(&f, kind, payloads[i], i + 1);
		assert_int_equal(check(&f, 0), !has_imm || payloads[i] >= SAN_WIRE_IMM_LEN);
		f.b[0]++; /* nothing asks for the Ethernet addresses */
		f.b[at_of[v6].bth + 8] ^= WIRE_BTH_ACKREQ;
		seal(&f);
		assert_int_equal(check(&f, 0), !has_imm || payloads[i] >= SAN_WIRE_IMM_LEN);
		frame_init(&f, kinds[(kind + 1) % RTE_DIM(kinds)], payloads[i], i + 1);
		assert_false(check(&f, 0));
	}
}

static void
setup(void)
{
	ma = buffer_create();
	mb = buffer_create();
}

UNIT_FIXTURE(.first = setup, .last = teardown);

UNIT_CASE(next__ordinary)
{
	after_each(ordinary);
}

/* Each byte of the headers of *f* has each value. */
static void
bytes_of(const struct frame *f, bool (*check_frame)(const struct frame *f, uint64_t ol_flags))
{
	struct frame g;

	for (uint32_t at = 0; at < at_of[v6].payload; at++) {
		g = *f;
		for (uint32_t value = 0; value < 256; value += UNIT_EVERY) {
			put(&g, at, 1, (uint8_t)(f->b[at] + value));
			if (at < at_of[v6].udp_len - 4u) {
				check_frame(&g, 0);
				sum_ip(&g);
			}
			seal(&g);
			check_frame(&g, 0);
		}
	}
}

static void
bytes(void)
{
	uint8_t kind = last.b[at_of[v6].rt + 1] >> SAN_F_KIND_SHIFT;
	struct frame f;

	for (uint32_t i = 0; i < RTE_DIM(payloads); i += 2) {
		frame_init(&f, kind, payloads[i], 1);
		bytes_of(&f, check);
	}
}

UNIT_CASE(next__each_byte)
{
	after_each(bytes);
}

/* Check *f*, alone. Returns true if express takes it as an ACK. */
static bool
check_ack(const struct frame *f, uint64_t ol_flags)
{
	struct san_wire_pkt x = {0}, p;
	static struct san_wire_ack ack_x, ack_p;
	bool is_taken, is_right;

	buffer_put(mb, f);
	mb->ol_flags = RTE_MBUF_F_EXTERNAL | ol_flags;
	is_taken = san_wire_express_ack(mb, &back, SAN_WIRE_PORT, &x, &ack_x);
	is_right = san_wire_parse(mb, SAN_WIRE_PORT, &p, &ack_p) == SAN_DROP_NONE &&
		p.op == SAN_OP_ACK && p.payload_len == 0 && san_wire_ip_eq(&p.src, &back.dst) &&
		san_wire_ip_eq(&p.dst, &back.src) && rte_pktmbuf_data_len(mb) == f->len;
	if (is_taken != is_right)
		fail_frame(f, is_taken ? "taken as an ACK" : "not taken as an ACK");
	if (is_taken &&
	    (wire_sample_differs(&x, &p) != NULL ||
	     memcmp(&ack_x, &ack_p, offsetof(struct san_wire_ack, req)) != 0))
		fail_frame(f, "other fields as an ACK");
	nb_first += is_taken;
	return is_taken;
}

/* An ACK without bitmaps, and one with them, which the parser takes alone. */
UNIT_CASE(ack__each_byte)
{
	struct frame f;

	for (uint8_t i = 0; i < 4; i++) {
		const struct wire_sample s = {"", SAN_OP_ACK, .nb_req = i / 2, .nb_data = i / 2};
		struct rte_mbuf *m;

		last_init(i % 2 != 0, SAN_KIND_PUSH, 8);
		m = wire_sample_build(test_pool(), &s, v6);
		f.len = rte_pktmbuf_data_len(m);
		memcpy(f.b, rte_pktmbuf_mtod(m, void *), f.len);
		rte_pktmbuf_free(m);
		nb_first = 0;
		assert_int_equal(check_ack(&f, 0), i < 2);
		bytes_of(&f, check_ack);
		assert_int_equal(nb_first > 1, i < 2);
	}
}

/* Length, data, kind, padding and offset depend on each other. */
static void
numbers_of(struct frame *f, uint32_t length)
{
	static const uint32_t offsets[] = {0, 1, 4, SAN_WIRE_LENGTH_MAX, 3u << 30, -4u, -1u};
	const struct at *at = &at_of[v6];

	put(f, at->ext, 4, length);
	for (uint32_t flags = 0; flags < SAN_F_ALL + 1; flags++) {
		f->b[at->rt + 1] = (uint8_t)flags;
		if (flags & (SAN_F_WIN_DATA | SAN_F_UNPACK))
			continue;
		for (uint32_t pad = 0; pad < 4; pad++) {
			f->b[at->bth + 1] = (uint8_t)(pad << WIRE_BTH_PAD_SHIFT);
			memset(f->b + f->len - WIRE_ICRC_LEN - pad, 0, pad);
			UNIT_EACH(r, offsets) {
				put(f, at->ext + 16u, 4, *r);
				seal(f);
				check(f, 0);
			}
		}
	}
}

static void
numbers(void)
{
	uint8_t kind = last.b[at_of[v6].rt + 1] >> SAN_F_KIND_SHIFT;
	struct frame f;

	UNIT_EACH(r, payloads)
		for (uint32_t k = 0; k < RTE_DIM(bounds); k++) {
			frame_init(&f, kind, *r, 1);
			numbers_of(&f, bounds[k]);
			frame_init(&f, kind, *r, 1);
			numbers_of(&f, bounds[k] + *r);
		}
}

UNIT_CASE(next__each_length)
{
	after_each(numbers);
}

/* The lengths of IP, UDP and frame, and the checksum of the IP header. */
static const int32_t deltas[] = {-8, -5, -4, -3, -1, 0, 1, 3, 4, 5, 8, 0x7fff, 0xffff};

static void
checksums(struct frame *f)
{
	static const uint16_t sums[] = {0, 1, 0xffff};
	struct san_wire_pkt p = of_last;
	uint16_t right;

	sum_ip(f);
	right = get16(f, 24);
	seal(f);
	check(f, 0);
	check(f, RTE_MBUF_F_RX_IP_CKSUM_GOOD);
	for (uint32_t i = 0; i < RTE_DIM(sums) && !v6; i++) {
		put(f, 24, 2, right + sums[i]);
		check(f, 0);
		check(f, RTE_MBUF_F_RX_IP_CKSUM_GOOD);
		put(f, 24, 2, sums[i]);
		check(f, 0);
	}
	mb->nb_segs = 2;
	assert_false(san_wire_express_next(mb, ma, &p));
	assert_false(san_wire_express(mb, &back, SAN_WIRE_PORT, &p));
}

static void
lengths_of(const struct frame *f, int32_t more)
{
	const struct at *at = &at_of[v6];
	struct frame g = *f;

	g.len = (uint16_t)(g.len + more);
	for (uint32_t i = 0; i < RTE_DIM(deltas); i++)
		for (uint32_t k = 0; k < RTE_DIM(deltas); k++) {
			put(&g, at->ip_len, 2, (uint32_t)(get16(f, at->ip_len) + deltas[i]));
			put(&g, at->udp_len, 2, (uint32_t)(get16(f, at->udp_len) + deltas[k]));
			checksums(&g);
		}
}

static void
lengths(void)
{
	uint8_t kind = last.b[at_of[v6].rt + 1] >> SAN_F_KIND_SHIFT;
	struct frame f;
	uint32_t id;

	frame_init(&f, kind, 8, 1);
	memset(f.b + f.len, 0, 8);
	for (int32_t more = -8; more <= 8; more++)
		lengths_of(&f, more);
	if (v6)
		return;
	/* so that the right checksum of *f* is 0 */
	id = get16(&f, 18) + get16(&f, 24);
	id = (id & 0xffff) + (id >> 16);
	put(&last, 18, 2, id);
	sum_ip(&last);
	assert_true(san_wire_express(buffer_put(ma, &last), &back, SAN_WIRE_PORT, &of_last));
	put(&f, 18, 2, id);
	for (int32_t more = -4; more <= 4; more += 4)
		lengths_of(&f, more);
	sum_ip(&f);
	assert_int_equal(get16(&f, 24), 0);
}

UNIT_CASE(next__each_ip_length)
{
	after_each(lengths);
}

/* What a NIC said of the last checksum says nothing of the next one. */
UNIT_CASE(next__checksum_by_nic)
{
	struct san_wire_pkt p;
	struct frame f;

	last_init(false, SAN_KIND_PUSH, 8);
	frame_init(&f, SAN_KIND_PUSH, 8, 1);
	put(&last, 24, 2, get16(&last, 24) + 1u);
	put(&f, 24, 2, get16(&f, 24) + 1u);
	buffer_put(ma, &last)->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD;
	assert_true(san_wire_express(ma, &back, SAN_WIRE_PORT, &of_last));
	assert_true(check(&f, RTE_MBUF_F_RX_IP_CKSUM_GOOD));
	mb->ol_flags &= ~RTE_MBUF_F_RX_IP_CKSUM_GOOD;
	p = of_last;
	assert_false(san_wire_express_next(mb, ma, &p));
}

/* ---- data of a solicited push ---- */

/* Number *n* of its push and visit. */
static void
data_init(struct frame *f, uint8_t flags, uint16_t payload, uint32_t n)
{
	const struct wire_sample s = {
		.op = SAN_OP_PUSH_SLCTD_DATA,
		.flags = flags,
		.payload = payload,
		.offset = n * payload,
	};
	struct san_wire_path path = wire_sample_path(v6);
	struct san_wire_pkt p = wire_sample_pkt(&s);
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_pool());

	p.psn += n;
	wire_sample_payload(&s, (uint8_t *)rte_pktmbuf_append(m, payload));
	san_wire_build(m, &path, &p);
	san_wire_icrc_seal(m);
	f->len = rte_pktmbuf_data_len(m);
	memcpy(f->b, rte_pktmbuf_mtod(m, void *), f->len);
	rte_pktmbuf_free(m);
}

/* Check *f*. Returns true if express takes it after *last*. */
static bool
check_data(const struct frame *f, uint64_t ol_flags)
{
	static struct san_wire_ack ack;
	struct san_wire_pkt next, p;
	bool is_next, is_right;

	buffer_put(ma, &last);
	buffer_put(mb, f);
	mb->ol_flags = ma->ol_flags = RTE_MBUF_F_EXTERNAL | ol_flags;
	assert_int_equal(san_wire_parse(ma, SAN_WIRE_PORT, &next, &ack), SAN_DROP_NONE);
	of_last = next;
	is_next = san_wire_express_data(mb, ma, &next);
	is_right = san_wire_parse(mb, SAN_WIRE_PORT, &p, &ack) == SAN_DROP_NONE &&
		rte_pktmbuf_data_len(mb) == f->len;
	nb_next += is_next;
	/* tl compares the offset with what it placed */
	if (!is_next || next.offset > SAN_WIRE_LENGTH_MAX - next.payload_len)
		return is_next;
	if (!is_right)
		fail_frame(f, "taken as next data");
	if (wire_sample_differs(&next, &p) != NULL)
		fail_frame(f, "other fields as next data");
	return true;
}

UNIT_CASE(data__each_byte)
{
	struct frame f;

	for (uint8_t i = 0; i < 4; i++) {
		v6 = i % 2 != 0;
		data_init(&last, WIRE_SAMPLE_KIND(PUSH), 63 + i / 2, 0);
		data_init(&f, WIRE_SAMPLE_KIND(PUSH), 63 + i / 2, 1);
		assert_true(check_data(&f, 0));
		f.b[f.len - 1] ^= 1; /* the ICRC */
		assert_false(check_data(&f, 0));
		f.b[f.len - 1] ^= 1;
		nb_next = 0;
		bytes_of(&f, check_data);
		/* Ethernet addresses, PSN, offset, AckReq */
		assert_true(nb_next >= (12 + 4 + 4) * 256 / UNIT_EVERY);
	}
}

UNIT_CASE(data__each_length)
{
	struct frame f;

	for (uint8_t i = 0; i < 2; i++) {
		v6 = i != 0;
		data_init(&last, 0, 64, 0);
		for (uint16_t len = 0; len <= 68; len++) {
			data_init(&f, 0, len, 1);
			assert_int_equal(check_data(&f, 0), len == 64);
		}
		data_init(&f, SAN_F_LAST, 64, 1);
		assert_false(check_data(&f, 0));
		/* longer than its headers say, and an ICRC at its end */
		data_init(&f, 0, 64, 1);
		memset(f.b + f.len - 4, 0, 2);
		f.len += 2;
		san_wire_icrc_seal(buffer_put(mb, &f));
		memcpy(f.b, rte_pktmbuf_mtod(mb, void *), f.len);
		assert_false(check_data(&f, 0));
	}
}

UNIT_CASE(data__one_segment_and_sum)
{
	struct san_wire_pkt p;
	struct frame f;

	v6 = false;
	data_init(&last, 0, 64, 0);
	data_init(&f, 0, 64, 1);
	put(&last, 24, 2, get16(&last, 24) + 1u); /* the IPv4 checksum */
	put(&f, 24, 2, get16(&f, 24) + 1u);
	assert_true(check_data(&f, RTE_MBUF_F_RX_IP_CKSUM_GOOD));
	p = of_last;
	mb->ol_flags &= ~RTE_MBUF_F_RX_IP_CKSUM_GOOD;
	assert_false(san_wire_express_data(mb, ma, &p));
	mb->ol_flags = ma->ol_flags;
	ma->nb_segs = 2;
	assert_false(san_wire_express_data(mb, ma, &p));
	ma->nb_segs = 1;
	mb->nb_segs = 2;
	assert_false(san_wire_express_data(mb, ma, &p));
	mb->nb_segs = 1;
	assert_true(san_wire_express_data(mb, ma, &p));
}

/* The parser refuses it: an IPv4 peer could be taken for another one. */
UNIT_CASE(first__ipv4_address_in_ipv6)
{
	struct san_wire_path path = wire_sample_path(false);
	struct frame f;

	last_init(true, SAN_KIND_PUSH, 8);
	back.src = path.dst;
	back.dst = path.src;
	f = last;
	memcpy(f.b + 22, path.src.b, sizeof(path.src.b));
	memcpy(f.b + 38, path.dst.b, sizeof(path.dst.b));
	seal(&f);
	nb_first = 0;
	check(&f, 0);
	assert_int_equal(nb_first, 0);
}
