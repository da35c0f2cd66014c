/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_eal.h"
#include "test_ulp.h"
#include "wire_pack.h"

#define BASE 0x40000

static uint64_t words[128];
static uint8_t *const mem = (uint8_t *)words;
static uint8_t data[1024];

static void
group_setup(void)
{
	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(1 + i % 251);
}

UNIT_FIXTURE(.setup = test_ulp_setup, .teardown = test_ulp_close, .first = group_setup);

static uint32_t
add_region(uint8_t rights)
{
	uint32_t key;

	memset(words, 0, sizeof(words));
	assert_int_equal(san_ulp_mr_add(t.ulp, mem, sizeof(words), BASE, rights, PKEY, &key), 0);
	return key;
}

/** Bytes *from* .. *from* + *len* of data[], in a packet with headers in front. */
static uint8_t
place(struct san_tl_rxn *r, uint32_t offset, uint16_t from, uint16_t len)
{
	struct rte_mbuf *m = test_eal_exact(test_pool(), data, (uint16_t)(from + len));
	uint8_t status = san_tl_ulp_push_place(t.ulp, r, offset, m, from, len);

	rte_pktmbuf_free(m);
	return status;
}

static uint8_t
push_req(struct san_tl_rxn *r)
{
	uint8_t status = san_tl_ulp_push_req(t.ulp, r);

	san_ulp_check(t.ulp);
	return status;
}

/* ---- reserve ---- */

/* RULE-4: a solicited send reserves its receive before its grant. */
UNIT_CASE(reserve__only_what_is_posted)
{
	assert_false(san_tl_ulp_reserve(t.ulp, SLOT));
	test_post_recv(1, mem, 8);
	test_post_recv(2, mem, 8);
	assert_true(san_tl_ulp_reserve(t.ulp, SLOT));
	assert_true(san_tl_ulp_reserve(t.ulp, SLOT));
	assert_false(san_tl_ulp_reserve(t.ulp, SLOT));
	san_tl_ulp_unreserve(t.ulp, SLOT);
	assert_true(san_tl_ulp_reserve(t.ulp, SLOT));
	assert_false(san_tl_ulp_reserve(t.ulp, SLOT + 1));
	san_tl_ulp_unreserve(t.ulp, SLOT + 1);
}

UNIT_CASE(reserve__taken_with_its_push)
{
	struct san_tl_rxn r = test_push(SAN_KIND_SEND, 8, 0, 0);

	test_post_recv(1, mem, 8);
	test_post_recv(2, mem, 8);
	assert_true(san_tl_ulp_reserve(t.ulp, SLOT));
	r.reserved = true;
	assert_int_equal(push_req(&r), SAN_ST_OK);
	assert_false(r.reserved);
	/* one is left, and none is reserved */
	assert_true(san_tl_ulp_reserve(t.ulp, SLOT));
	assert_false(san_tl_ulp_reserve(t.ulp, SLOT));
}

/* RT-26: the head of the line may take even a reserved one. */
UNIT_CASE(reserve__head_of_line_goes_first)
{
	struct san_tl_rxn first = test_push(SAN_KIND_SEND, 8, 0, 0);
	struct san_tl_rxn later = test_push(SAN_KIND_SEND, 8, 0, 0);

	test_post_recv(1, mem, 8);
	assert_true(san_tl_ulp_reserve(t.ulp, SLOT));
	later.reserved = true;
	assert_int_equal(push_req(&first), SAN_ST_OK);
	assert_int_equal(push_req(&later), SAN_ST_RNR);
	assert_false(san_tl_ulp_reserve(t.ulp, SLOT));
	test_post_recv(2, mem, 8);
	assert_int_equal(push_req(&later), SAN_ST_OK);
	test_post_recv(3, mem, 8);
	assert_true(san_tl_ulp_reserve(t.ulp, SLOT));
}

/* ---- pushes ---- */

/* RT-10, RT-11 */
UNIT_CASE(push__lands_in_its_region)
{
	uint32_t key = add_region(RTSAN_REMOTE_PUSH);
	struct san_tl_rxn r = test_push(SAN_KIND_PUSH, 300, key, BASE + 100);

	assert_int_equal(push_req(&r), SAN_ST_OK);
	/* packets of one transaction are placed on arrival */
	assert_int_equal(place(&r, 200, 200, 100), SAN_ST_OK);
	assert_int_equal(place(&r, 0, 0, 200), SAN_ST_OK);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r), SAN_ST_OK);
	assert_memory_equal(mem + 100, data, 300);
	assert_int_equal(mem[99], 0);
	assert_int_equal(mem[400], 0);
	test_poll_none(t.recv_cq);
	assert_int_equal(san_ulp_stats(t.ulp)->nb_placed_bytes, 300);
}

UNIT_CASE(push_place__packet_in_segments)
{
	uint32_t key = add_region(RTSAN_REMOTE_PUSH);
	struct san_tl_rxn r = test_push(SAN_KIND_PUSH, 90, key, BASE);
	struct san_tl_rxn s = test_push(SAN_KIND_SEND, 90, 0, 0);
	struct rte_mbuf *m = test_eal_exact(test_pool(), data, 30);
	uint8_t buf[90] = {0};

	assert_int_equal(rte_pktmbuf_chain(m, test_eal_exact(test_pool(), data + 30, 10)), 0);
	assert_int_equal(rte_pktmbuf_chain(m, test_eal_exact(test_pool(), data + 40, 60)), 0);
	test_post_recv(1, buf, sizeof(buf));
	assert_int_equal(push_req(&r), SAN_ST_OK);
	assert_int_equal(push_req(&s), SAN_ST_OK);
	assert_int_equal(san_tl_ulp_push_place(t.ulp, &r, 0, m, 10, 90), SAN_ST_OK);
	assert_int_equal(san_tl_ulp_push_place(t.ulp, &s, 0, m, 10, 90), SAN_ST_OK);
	assert_memory_equal(mem, data + 10, 90);
	assert_memory_equal(buf, data + 10, 90);
	/* shorter than it claims */
	assert_int_equal(san_tl_ulp_push_place(t.ulp, &r, 0, m, 11, 90), SAN_ST_LENGTH);
	assert_int_equal(san_tl_ulp_push_place(t.ulp, &s, 0, m, 11, 90), SAN_ST_LENGTH);
	rte_pktmbuf_free(m);
}

UNIT_CASE(push_place__never_beyond_what_was_let_in)
{
	uint32_t key = add_region(RTSAN_REMOTE_PUSH);
	struct san_tl_rxn r = test_push(SAN_KIND_PUSH, 50, key, BASE);

	assert_int_equal(push_req(&r), SAN_ST_OK);
	assert_int_equal(place(&r, 0, 0, 51), SAN_ST_LENGTH);
	assert_int_equal(place(&r, 50, 0, 1), SAN_ST_LENGTH);
	assert_int_equal(place(&r, UINT32_MAX, 0, 2), SAN_ST_LENGTH);
	assert_int_equal(place(&r, 0, 0, 50), SAN_ST_OK);
	assert_int_equal(mem[50], 0);
}

/* Region revoked in flight; a new one in its slot is another region. */
UNIT_CASE(push_place__revoked)
{
	uint32_t key = add_region(RTSAN_REMOTE_PUSH);
	struct san_tl_rxn r = test_push(SAN_KIND_PUSH, 50, key, BASE);

	assert_int_equal(push_req(&r), SAN_ST_OK);
	assert_int_equal(place(&r, 0, 0, 25), SAN_ST_OK);
	assert_int_equal(san_ulp_mr_del(t.ulp, key), 0);
	assert_int_equal(place(&r, 25, 25, 25), SAN_ST_REVOKED);
	for (uint32_t i = 0; i < 16; i++)
		add_region(RTSAN_REMOTE_PUSH);
	assert_int_equal(place(&r, 25, 25, 25), SAN_ST_REVOKED);
	assert_int_equal(mem[25], 0);
	assert_int_equal(san_ulp_stats(t.ulp)->nb_revoked, 2);
	assert_int_equal(push_req(&r), SAN_ST_ACCESS);
}

UNIT_CASE(push_req__zero_length)
{
	struct san_tl_rxn r = test_push(SAN_KIND_PUSH, 0, 0, 0);
	struct san_tl_rxn wrong = test_push(SAN_KIND_PUSH, 0, 12345, 0);

	/* an empty push as a signal needs no region */
	assert_int_equal(push_req(&r), SAN_ST_OK);
	assert_int_equal(place(&r, 0, 0, 0), SAN_ST_OK);
	assert_int_equal(place(&r, 0, 0, 1), SAN_ST_LENGTH);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r), SAN_ST_OK);
	assert_int_equal(push_req(&wrong), SAN_ST_ACCESS);
}

UNIT_CASE(push_req__unknown_connection)
{
	struct san_tl_rxn r = test_push(SAN_KIND_SEND, 0, 0, 0);

	r.slot = SLOT + 1;
	assert_int_equal(push_req(&r), SAN_ST_REFUSED);
	assert_int_equal(san_tl_ulp_pull_req(t.ulp, &r), SAN_ST_REFUSED);
	assert_int_equal(san_tl_ulp_atomic(t.ulp, &r), SAN_ST_REFUSED);
}

/* ---- sends ---- */

UNIT_CASE(send__fills_the_posted_receive)
{
	struct san_tl_rxn r = test_push(SAN_KIND_SEND, 70, 0, 0);
	uint8_t a[30] = {0}, b[50] = {0};
	struct san_ulp_recv recv = {
		.wr_id = 9,
		.nb_sge = 3,
		.sge = {{a, sizeof(a), 0}, {NULL, 0, 0}, {b, sizeof(b), 0}},
	};
	struct san_ulp_wc wc;

	assert_int_equal(san_ulp_qp_post_recv(t.ulp, t.qp, &recv, 1, 0), 1);
	assert_int_equal(push_req(&r), SAN_ST_OK);
	assert_int_equal(place(&r, 40, 40, 30), SAN_ST_OK);
	assert_int_equal(place(&r, 0, 0, 40), SAN_ST_OK);
	test_poll_none(t.recv_cq);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r), SAN_ST_OK);
	assert_memory_equal(a, data, 30);
	assert_memory_equal(b, data + 30, 40);
	assert_int_equal(b[40], 0);
	wc = test_poll_one(t.recv_cq);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(wc.qp, t.qp);
	assert_int_equal(wc.op, RTSAN_WC_RECV);
	assert_int_equal(wc.status, SAN_ST_OK);
	assert_int_equal(wc.byte_len, 70);
	assert_false(wc.has_imm);
}

/* RT-23: without a receive it is "not ready", not an error. */
UNIT_CASE(send__without_receive)
{
	struct san_tl_rxn r = test_push(SAN_KIND_SEND, 8, 0, 0);

	assert_int_equal(push_req(&r), SAN_ST_RNR);
	assert_int_equal(san_ulp_stats(t.ulp)->nb_rnr, 1);
	test_post_recv(1, mem, 8);
	assert_int_equal(push_req(&r), SAN_ST_OK);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r), SAN_ST_OK);
}

/* RT-23: the same with a full completion queue; the receive stays posted. */
UNIT_CASE_IN(send__without_cq_entry, NULL)
{
	struct san_tl_rxn r[3];

	test_ulp_open_bound(8, 8, 2);
	for (uint32_t i = 0; i < 3; i++) {
		test_post_recv(i, mem, 8);
		r[i] = test_push(SAN_KIND_SEND, 8, 0, 0);
	}
	assert_int_equal(push_req(&r[0]), SAN_ST_OK);
	assert_int_equal(push_req(&r[1]), SAN_ST_OK);
	assert_int_equal(push_req(&r[2]), SAN_ST_RNR);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r[0]), SAN_ST_OK);
	assert_int_equal(push_req(&r[2]), SAN_ST_RNR);
	assert_int_equal(test_poll_one(t.recv_cq).wr_id, 0);
	assert_int_equal(push_req(&r[2]), SAN_ST_OK);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r[1]), SAN_ST_OK);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r[2]), SAN_ST_OK);
}

/* RT-27: only it is refused; the receive reports why. */
UNIT_CASE(send__longer_than_the_receive)
{
	struct san_tl_rxn r = test_push(SAN_KIND_SEND, 9, 0, 0);
	struct san_ulp_wc wc;

	test_post_recv(1, mem, 8);
	test_post_recv(2, mem, 9);
	assert_int_equal(push_req(&r), SAN_ST_LENGTH);
	wc = test_poll_one(t.recv_cq);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.op, RTSAN_WC_RECV);
	assert_int_equal(wc.status, RTSAN_WC_LOC_LENGTH);
	assert_int_equal(wc.byte_len, 9);
	/* nothing to return */
	san_tl_ulp_push_abort(t.ulp, &r);
	assert_int_equal(push_req(&r), SAN_ST_OK);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r), SAN_ST_OK);
	assert_int_equal(test_poll_one(t.recv_cq).wr_id, 2);
}

/* RT-34: in a packed packet the refusal has no effect: the send is resent alone. */
UNIT_CASE(send__longer_than_the_receive_packed)
{
	struct san_tl_rxn r = test_push(SAN_KIND_SEND, 9, 0, 0);
	struct san_ulp_wc wc;

	test_post_recv(1, mem, 8);
	test_post_recv(2, mem, 9);
	r.packed = true;
	assert_int_equal(push_req(&r), SAN_ST_LENGTH);
	assert_int_equal(san_ulp_cq_poll(t.recv_cq, &wc, 1), 0);
	assert_int_equal(t.recv_cq->nb_reserved, 0);
	r.packed = false;
	assert_int_equal(push_req(&r), SAN_ST_LENGTH);
	assert_int_equal(test_poll_one(t.recv_cq).wr_id, 1);
}

UNIT_CASE(push_abort__gives_receive_and_cq_entry_back)
{
	struct san_tl_rxn r = test_push(SAN_KIND_SEND, 8, 0, 0);
	struct san_tl_rxn other = r;
	uint8_t old[8] = {0};

	test_post_recv(1, old, 8);
	test_post_recv(2, mem, 8);
	assert_int_equal(push_req(&r), SAN_ST_OK);
	assert_int_equal(t.recv_cq->nb_reserved, 1);
	san_tl_ulp_push_abort(t.ulp, &r);
	san_ulp_check(t.ulp);
	assert_int_equal(t.recv_cq->nb_reserved, 0);
	/* the second call has no effect, even if the receive is another push's by now */
	assert_int_equal(push_req(&other), SAN_ST_OK);
	san_tl_ulp_push_abort(t.ulp, &r);
	san_ulp_check(t.ulp);
	assert_int_equal(place(&r, 0, 0, 8), SAN_ST_REFUSED);
	assert_int_equal(old[1], 0);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &other), SAN_ST_OK);
	assert_int_equal(test_poll_one(t.recv_cq).wr_id, 1);
}

/* ---- push with immediate ---- */

UNIT_CASE(push_imm__places_and_completes_a_receive)
{
	uint32_t key = add_region(RTSAN_REMOTE_PUSH);
	struct san_tl_rxn r = test_push(SAN_KIND_PUSH_IMM, 40, key, BASE + 8);
	uint8_t untouched[4] = {0};
	struct san_ulp_wc wc;

	/* its buffer is not used, and may be too small */
	test_post_recv(3, untouched, sizeof(untouched));
	assert_int_equal(push_req(&r), SAN_ST_OK);
	assert_int_equal(place(&r, 0, 0, 40), SAN_ST_OK);
	r.imm = 0xdeadbeef;
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r), SAN_ST_OK);
	assert_memory_equal(mem + 8, data, 40);
	assert_int_equal(untouched[1], 0);
	wc = test_poll_one(t.recv_cq);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(wc.op, RTSAN_WC_RECV_PUSH_IMM);
	assert_int_equal(wc.byte_len, 40);
	assert_true(wc.has_imm);
	assert_int_equal(wc.imm, 0xdeadbeef);
}

UNIT_CASE(push_imm__key_before_receive)
{
	uint32_t key = add_region(RTSAN_REMOTE_PUSH);
	struct san_tl_rxn r = test_push(SAN_KIND_PUSH_IMM, 40, key ^ 0x100, BASE);

	/* an invalid one does not wait for a receive, and takes none */
	assert_int_equal(push_req(&r), SAN_ST_ACCESS);
	test_post_recv(3, mem, 8);
	assert_int_equal(push_req(&r), SAN_ST_ACCESS);
	r.key = key;
	assert_int_equal(push_req(&r), SAN_ST_OK);
	assert_int_equal(san_ulp_mr_del(t.ulp, key), 0);
	assert_int_equal(place(&r, 0, 0, 40), SAN_ST_REVOKED);
	san_tl_ulp_push_abort(t.ulp, &r);
	r = test_push(SAN_KIND_PUSH_IMM, 0, 0, 0);
	assert_int_equal(push_req(&r), SAN_ST_OK);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r), SAN_ST_OK);
	assert_int_equal(test_poll_one(t.recv_cq).wr_id, 3);
}

UNIT_CASE(send_imm__into_the_receive)
{
	struct san_tl_rxn r = test_push(SAN_KIND_SEND_IMM, 40, 0, 0);
	struct san_ulp_wc wc;

	assert_int_equal(push_req(&r), SAN_ST_RNR);
	test_post_recv(3, mem, 40);
	assert_int_equal(push_req(&r), SAN_ST_OK);
	assert_int_equal(place(&r, 0, 0, 40), SAN_ST_OK);
	r.imm = 0xdeadbeef;
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &r), SAN_ST_OK);
	assert_memory_equal(mem, data, 40);
	wc = test_poll_one(t.recv_cq);
	assert_int_equal(wc.op, RTSAN_WC_RECV);
	assert_int_equal(wc.byte_len, 40);
	assert_true(wc.has_imm && wc.imm == 0xdeadbeef);
	test_post_recv(4, mem, 39);
	r = test_push(SAN_KIND_SEND_IMM, 40, 0, 0);
	assert_int_equal(push_req(&r), SAN_ST_LENGTH);
}

/* ---- pulls ---- */

UNIT_CASE(pull__reads_the_region_each_time)
{
	uint32_t key = add_region(RTSAN_REMOTE_PULL);
	struct san_tl_rxn r = {.type = SAN_TL_PULL, .slot = SLOT, .length = 100, .key = key};
	uint8_t out[100];

	r.addr = BASE + 50;
	memcpy(mem, data, sizeof(words));
	assert_int_equal(san_tl_ulp_pull_req(t.ulp, &r), SAN_ST_OK);
	assert_int_equal(san_tl_ulp_pull_read(t.ulp, &r, 60, out, 40), SAN_ST_OK);
	assert_memory_equal(out, data + 110, 40);
	/* bytes are read at each (re)transmission (RULE-3) */
	mem[110] ^= 0xff;
	assert_int_equal(san_tl_ulp_pull_read(t.ulp, &r, 60, out, 40), SAN_ST_OK);
	assert_int_equal(out[0], data[110] ^ 0xff);
	/* RULE-14: only while the region is valid */
	assert_int_equal(san_ulp_mr_del(t.ulp, key), 0);
	assert_int_equal(san_tl_ulp_pull_read(t.ulp, &r, 60, out, 40), SAN_ST_REVOKED);
	assert_int_equal(san_tl_ulp_pull_read(t.ulp, &r, 100, out, 0), SAN_ST_OK);
	assert_int_equal(san_ulp_stats(t.ulp)->nb_revoked, 1);
}

/* ---- atomics: RT-30 ---- */

static struct san_tl_rxn
atomic_on(uint32_t key, uint64_t addr, uint8_t op, uint64_t operand)
{
	return (struct san_tl_rxn){
		.type = SAN_TL_ATOMIC,
		.slot = SLOT,
		.op = op,
		.key = key,
		.addr = addr,
		.operand = operand,
	};
}

UNIT_CASE(atomic__fetch_add)
{
	uint32_t key = add_region(RTSAN_REMOTE_ATOMIC);
	struct san_tl_rxn r = atomic_on(key, BASE + 16, SAN_ATOMIC_FETCH_ADD, 5);

	words[2] = UINT64_MAX - 1;
	assert_int_equal(san_tl_ulp_atomic(t.ulp, &r), SAN_ST_OK);
	assert_int_equal(r.result, UINT64_MAX - 1);
	assert_int_equal(words[2], 3);
	assert_int_equal(words[1], 0);
	assert_int_equal(words[3], 0);
}

UNIT_CASE(atomic__compare_and_swap)
{
	uint32_t key = add_region(RTSAN_REMOTE_ATOMIC);
	struct san_tl_rxn r = atomic_on(key, BASE, SAN_ATOMIC_CMP_SWAP, 10);

	words[0] = 10;
	r.swap = 20;
	assert_int_equal(san_tl_ulp_atomic(t.ulp, &r), SAN_ST_OK);
	assert_int_equal(r.result, 10);
	assert_int_equal(words[0], 20);
	/* no match: the old value is returned, nothing changes */
	assert_int_equal(san_tl_ulp_atomic(t.ulp, &r), SAN_ST_OK);
	assert_int_equal(r.result, 20);
	assert_int_equal(words[0], 20);
}

UNIT_CASE(atomic__refusals)
{
	uint32_t key = add_region(RTSAN_REMOTE_ATOMIC);
	uint32_t other = add_region(RTSAN_REMOTE_PUSH | RTSAN_REMOTE_PULL);
	uint32_t skewed;
	const struct {
		uint32_t key;
		uint64_t addr;
		uint8_t status;
	} cases[] = {
		{key ^ 0x1000, BASE, SAN_ST_ACCESS},
		{other, BASE, SAN_ST_ACCESS},
		{key, BASE + 4, SAN_ST_ALIGN},
		{key, BASE + sizeof(words) - 4, SAN_ST_ACCESS},
		{key, BASE + sizeof(words), SAN_ST_ACCESS},
		{key, BASE + sizeof(words) - 8, SAN_ST_OK},
	};
	struct san_tl_rxn r;

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		r = atomic_on(cases[i].key, cases[i].addr, SAN_ATOMIC_FETCH_ADD, 1);
		assert_int_equal(san_tl_ulp_atomic(t.ulp, &r), cases[i].status);
	}
	/* the address in the region is aligned, but our memory is not */
	assert_int_equal(san_ulp_mr_add(t.ulp, mem + 1, 64, 0, RTSAN_REMOTE_ATOMIC, PKEY, &skewed),
			 0);
	r = atomic_on(skewed, 8, SAN_ATOMIC_FETCH_ADD, 1);
	assert_int_equal(san_tl_ulp_atomic(t.ulp, &r), SAN_ST_ALIGN);
	r = atomic_on(skewed, 7, SAN_ATOMIC_FETCH_ADD, 1);
	assert_int_equal(san_tl_ulp_atomic(t.ulp, &r), SAN_ST_ALIGN);
	for (uint32_t i = 0; i + 1 < 128; i++)
		assert_int_equal(words[i], 0);
	assert_int_equal(words[127], 1);
}

/* For operators: successful operations in each direction, one-sided ones, too. */
UNIT_CASE(san_ulp_qp_view__traffic)
{
	uint32_t key = add_region(RTSAN_REMOTE_PUSH | RTSAN_REMOTE_PULL);
	struct san_tl_rxn push = test_push(SAN_KIND_PUSH, 300, key, BASE);
	struct san_tl_rxn send = test_push(SAN_KIND_SEND, 8, 0, 0);
	struct san_tl_rxn pull = {.type = SAN_TL_PULL, .slot = SLOT, .length = 70, .key = key};
	struct san_ulp_wr wr = test_wr(RTSAN_WR_PUSH, 1, 0);
	struct san_ulp_qp_view v;

	assert_false(san_ulp_qp_view(t.ulp, t.qp ^ 1, &v));
	pull.addr = BASE;
	assert_int_equal(push_req(&push), SAN_ST_OK);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &push), SAN_ST_OK);
	test_post_recv(1, mem, 8);
	assert_int_equal(push_req(&send), SAN_ST_OK);
	assert_int_equal(san_tl_ulp_push_done(t.ulp, &send), SAN_ST_OK);
	assert_int_equal(san_tl_ulp_pull_req(t.ulp, &pull), SAN_ST_OK);
	pull.key ^= 0x10000;
	assert_int_not_equal(san_tl_ulp_pull_req(t.ulp, &pull), SAN_ST_OK);
	wr.length = 20;
	wr.nb_sge = 1;
	wr.sge[0] = (struct rtsan_sge){.addr = mem, .length = 20};
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, &wr, 1, 0), 1);
	wr.op = RTSAN_WR_PULL;
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, &wr, 1, 0), 1);
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, &wr, 1, 0), 1);
	fake_done(0, 2);
	assert_true(san_ulp_qp_view(t.ulp, t.qp, &v));
	assert_int_equal(v.nb_requests, 1);
	fake_cmpl(2, SAN_ST_ACCESS);
	assert_true(san_ulp_qp_view(t.ulp, t.qp, &v));
	assert_true(v.is_bound);
	assert_int_equal(v.nb_requests, 0);
	assert_int_equal(v.traffic.nb_rx, 3);
	assert_int_equal(v.traffic.rx_bytes, 300 + 8 + 20);
	assert_int_equal(v.traffic.nb_tx, 2);
	assert_int_equal(v.traffic.tx_bytes, 70 + 20);
}

static bool
express(enum san_wire_kind kind, uint32_t key, uint64_t addr, uint32_t len)
{
	const struct san_wire_pkt p = {
		.flags = (uint8_t)(kind << SAN_F_KIND_SHIFT),
		.key = key,
		.addr = addr,
		.length = len,
	};
	struct san_ulp_express x;

	t.ulp->qps[0]->is_known = true; /* see test_ulp_guess.c */
	san_ulp_place_express_start(t.ulp, SLOT, &x);
	return san_ulp_place_express(t.ulp, &p, &x);
}

/* What would be refused, or has to wait, takes the general path, which reports it. */
UNIT_CASE(express__only_what_can_be_taken)
{
	uint32_t key = add_region(RTSAN_REMOTE_PUSH), no_right;

	assert_int_equal(san_ulp_mr_add(t.ulp, mem, 8, BASE, RTSAN_REMOTE_PULL, PKEY, &no_right),
			 0);
	assert_true(express(SAN_KIND_PUSH, key, BASE, sizeof(words)));
	assert_true(express(SAN_KIND_PUSH, 0, 0, 0));
	assert_false(express(SAN_KIND_PUSH, key, BASE + 1, sizeof(words)));
	assert_false(express(SAN_KIND_PUSH, key + 1000, BASE, 8));
	assert_false(express(SAN_KIND_PUSH, no_right, BASE, 8));
	assert_false(express(SAN_KIND_SEND, 0, 0, 8));
	assert_false(express(SAN_KIND_PUSH_IMM, key, BASE, 8));
	test_post_recv(1, mem, 8);
	assert_true(express(SAN_KIND_SEND, 0, 0, 8));
	assert_false(express(SAN_KIND_SEND, 0, 0, 9));
	assert_true(express(SAN_KIND_SEND_IMM, 0, 0, 8));
	assert_false(express(SAN_KIND_SEND_IMM, 0, 0, 9));
	assert_true(express(SAN_KIND_PUSH_IMM, key, BASE, 100));
	assert_false(express(SAN_KIND_PUSH_IMM, no_right, BASE, 8));
}

/* It needs no region, so there is nowhere to copy nothing to. */
UNIT_CASE(express_take__nothing)
{
	struct rte_mbuf *m = test_eal_exact(test_pool(), data, 8);
	const struct san_wire_pkt p = {.flags = SAN_KIND_PUSH << SAN_F_KIND_SHIFT};
	struct san_ulp_express x;

	san_ulp_place_express_start(t.ulp, SLOT, &x);
	assert_true(san_ulp_place_express(t.ulp, &p, &x));
	assert_null(x.dst);
	san_ulp_place_express_take(t.ulp, &x, &p, m);
	assert_int_equal(san_ulp_stats(t.ulp)->nb_express_rx, 1);
	rte_pktmbuf_free(m);
}

/* For the region of the last push only the bounds are checked, but they are. */
UNIT_CASE(express_data__only_what_is_placed)
{
	struct san_tl_rxn r = test_push(SAN_KIND_PUSH, 50, add_region(RTSAN_REMOTE_PUSH), BASE);
	struct rte_mbuf *m = test_eal_exact(test_pool(), data, 30);
	struct san_wire_pkt p = {.offset = 20, .payload_off = 10, .payload_len = 20};

	assert_int_equal(push_req(&r), SAN_ST_OK);
	assert_true(san_ulp_place_express_data(t.ulp, &r, &p, m));
	assert_memory_equal(mem + 20, data + 10, 20);
	p.offset = 31;
	assert_false(san_ulp_place_express_data(t.ulp, &r, &p, m));
	assert_int_equal(san_ulp_stats(t.ulp)->nb_express_rx, 1);
	rte_pktmbuf_free(m);
}

UNIT_CASE(express__same_region_again)
{
	struct san_wire_pkt p = {
		.flags = SAN_KIND_PUSH << SAN_F_KIND_SHIFT,
		.key = add_region(RTSAN_REMOTE_PUSH),
		.addr = BASE,
		.length = 8,
	};
	struct san_ulp_express x;

	t.ulp->qps[0]->is_known = true;
	san_ulp_place_express_start(t.ulp, SLOT, &x);
	assert_true(san_ulp_place_express(t.ulp, &p, &x));
	p.addr = BASE + sizeof(words) - 8;
	assert_true(san_ulp_place_express(t.ulp, &p, &x));
	assert_ptr_equal(x.dst, mem + sizeof(words) - 8);
	p.addr++;
	assert_false(san_ulp_place_express(t.ulp, &p, &x));
}

/* ---- packed packets ---- */

/* A packed packet of *n* messages; the data of each is the start of data[]. */
static bool
push_packed(const struct san_wire_msg *msgs, uint32_t n)
{
	struct san_wire_pkt p = {.length = n};
	static uint8_t bytes[1024];
	struct rte_mbuf *m;
	uint32_t len = 0;
	bool is_taken;

	t.ulp->qps[0]->is_known = true;
	for (uint32_t i = 0; i < n; i++) {
		memcpy(san_wire_pack_put(bytes + len, &msgs[i]), data, msgs[i].length);
		len += san_wire_pack_len(msgs[i].kind, msgs[i].length);
	}
	m = test_eal_exact(test_pool(), bytes, (uint16_t)len);
	p.payload_len = (uint16_t)len;
	assert_int_equal(san_wire_pack_check(m, &p), SAN_DROP_NONE);
	is_taken = san_tl_ulp_push_packed(t.ulp, SLOT, m, &p);
	rte_pktmbuf_free(m);
	san_ulp_check(t.ulp);
	return is_taken;
}

UNIT_CASE(push_packed__each_length)
{
	uint32_t key = add_region(RTSAN_REMOTE_PUSH);
	struct san_ulp_wc wc[4];

	for (uint16_t len = 0; len < 70; len++) {
		struct san_wire_msg msgs[] = {
			{.kind = SAN_KIND_PUSH, .length = len, .key = key, .addr = BASE},
			{.kind = SAN_KIND_SEND, .length = len},
			{.kind = SAN_KIND_PUSH_IMM, .length = len, .key = key, .addr = BASE + 99},
			{.kind = SAN_KIND_SEND_IMM, .length = len, .imm = 8},
		};

		msgs[2].imm = 7;
		memset(words, 0, sizeof(words));
		test_post_recv(1, mem + 198, len);
		test_post_recv(2, mem, 0);
		test_post_recv(3, mem + 297, len);
		assert_true(push_packed(msgs, RTE_DIM(msgs)));
		for (uint32_t at = 0; at < 4 * 99; at += 99) {
			assert_memory_equal(mem + at, data, len);
			assert_int_equal(mem[at + len], 0);
		}
		assert_int_equal(san_ulp_cq_poll(t.recv_cq, wc, 4), 3);
		assert_true(wc[0].wr_id == 1 && wc[0].byte_len == len && !wc[0].has_imm);
		assert_true(wc[1].wr_id == 2 && wc[1].byte_len == len && wc[1].has_imm);
		assert_int_equal(wc[1].imm, 7);
		assert_true(wc[2].wr_id == 3 && wc[2].byte_len == len && wc[2].has_imm);
		assert_int_equal(wc[2].imm, 8);
	}
	assert_int_equal(san_ulp_stats(t.ulp)->nb_express_rx, 70);
	assert_int_equal(san_ulp_stats(t.ulp)->nb_placed_bytes, 4 * 69 * 70 / 2);
	assert_int_equal(t.ulp->qps[0]->nb_rx, 4 * 70);
}

/* RT-34: all messages are taken, or nothing changes. */
UNIT_CASE(push_packed__all_or_none)
{
	uint32_t key = add_region(RTSAN_REMOTE_PUSH), no_right;
	struct san_wire_msg first = {
		.kind = SAN_KIND_PUSH, .length = 8, .key = key, .addr = BASE};
	struct san_wire_msg msgs[] = {
		first,
		{.kind = SAN_KIND_SEND, .length = 8},
		{.kind = SAN_KIND_PUSH, .length = 9, .key = key, .addr = BASE + sizeof(words) - 8},
		{.kind = SAN_KIND_PUSH, .length = 8, .key = key + 1000, .addr = BASE},
		{.kind = SAN_KIND_PUSH, .length = 8, .addr = BASE},
		{.kind = SAN_KIND_SEND, .length = 9},
		{.kind = SAN_KIND_PUSH_IMM, .length = 8, .key = key, .addr = BASE + 1024},
	};
	struct san_ulp_stats stats = *san_ulp_stats(t.ulp);

	assert_int_equal(san_ulp_mr_add(t.ulp, mem, 8, BASE, RTSAN_REMOTE_PULL, PKEY, &no_right),
			 0);
	msgs[4].key = no_right;
	assert_false(push_packed(msgs, 2)); /* no receive */
	test_post_recv(1, mem, 8);
	for (uint32_t i = 2; i < RTE_DIM(msgs); i++) {
		const struct san_wire_msg two[] = {first, msgs[i]};
		const struct san_wire_msg three[] = {first, msgs[1], msgs[i]};

		assert_false(push_packed(two, 2));
		assert_false(push_packed(three, 3)); /* sends: there is one receive */
	}
	msgs[0] = msgs[1];
	assert_false(push_packed(msgs, 2));
	msgs[0] = first;
	t.ulp->qps[0]->failed = true;
	assert_false(push_packed(msgs, 1));
	t.ulp->qps[0]->failed = false;
	assert_memory_equal(&stats, san_ulp_stats(t.ulp), sizeof(stats));
	assert_int_equal(words[0], 0);
	assert_true(push_packed(msgs, 2));
	assert_memory_equal(mem, data, 8);
	assert_int_equal(test_poll_one(t.recv_cq).wr_id, 1);
}

UNIT_CASE_IN(push_packed__without_cq_entry, NULL)
{
	const struct san_wire_msg msgs[3] = {
		{.kind = SAN_KIND_SEND}, {.kind = SAN_KIND_SEND}, {.kind = SAN_KIND_SEND}};
	struct san_ulp_wc wc[3];

	test_ulp_open_bound(8, 8, 2);
	for (uint32_t i = 0; i < 3; i++)
		test_post_recv(i, mem, 8);
	assert_false(push_packed(msgs, 3));
	assert_true(push_packed(msgs, 2));
	assert_int_equal(san_ulp_cq_poll(t.recv_cq, wc, 3), 2);
	assert_true(wc[0].wr_id == 0 && wc[1].wr_id == 1);
}
