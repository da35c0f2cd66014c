/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Checkers that see what programs see, or compare their memory: each detects something that a
 * correct transport never does. The others are in test_sim_check_run.c. (ARCH-8)
 */

#include "test_sim_one.h"

#define LEN 1000

/* ---- reports to checkers ---- */

static void
note(enum sim_note type, uint32_t id)
{
	san_sim_check_note(w, type, side(id), NULL, NULL);
}

static struct sim_op *
post_from(uint32_t id, uint8_t kind, uint32_t len)
{
	struct sim_side *s = side(id);
	uint16_t slot = s->free[--s->nb_free];
	struct sim_op *op = &s->ops[slot];

	*op = (struct sim_op){
		.seq = s->nb_posted++,
		.life = san_sim_load_peer(w, s)->life,
		.slot = slot,
		.posted = true,
		.op = kind,
		.len = len,
		.slice = 100 + slot,
	};
	if (s->own != NULL)
		memset(san_sim_load_own(w, s, slot) + len, SIM_GUARD_BYTE, SIM_GUARD);
	w->load->nb_pending++;
	san_sim_check_note(w, SIM_NOTE_POSTED, s, op, NULL);
	return op;
}

static struct sim_op *
post(uint8_t kind)
{
	return post_from(0, kind, kind >= RTSAN_WR_FETCH_ADD ? sizeof(uint64_t) : LEN);
}

/* What a correct target does with a push, and a correct initiator with a pull. */
static uint8_t *
place(const struct sim_op *op)
{
	uint8_t *at = op->op == RTSAN_WR_PULL ? san_sim_load_own(w, side(0), op->slot) :
						san_sim_load_slot(w, side(1), op->slot);

	memcpy(at, w->load->block + op->slice, op->len);
	return at;
}

static void
complete(struct sim_op *op, uint8_t status)
{
	struct sim_side *s = side(0);
	const struct san_ulp_wc wc = {.status = status};

	san_sim_check_note(w, SIM_NOTE_COMPLETED, s, op, &wc);
	s->nb_done++;
	w->load->nb_pending--;
	if (op->op == RTSAN_WR_PUSH || op->op == RTSAN_WR_PUSH_IMM)
		memset(san_sim_load_slot(w, side(1), op->slot), SIM_POISON_BYTE, op->len);
	op->posted = false;
}

static void
complete_atomic(struct sim_op *op, uint64_t old)
{
	op->result = old;
	complete(op, SAN_ST_OK);
}

/* A send in the target's first receive: sequence number, slice and length, content. */
static uint8_t *
arrived(const struct sim_op *op)
{
	const uint64_t header[2] = {op->seq, (uint64_t)op->slice << 32 | op->len};
	uint8_t *data = side(1)->recv;

	memcpy(data, header, sizeof(header));
	memcpy(data + sizeof(header), w->load->block + op->slice, op->len - sizeof(header));
	return data;
}

static void
receive_bytes(uint32_t len)
{
	const struct san_ulp_wc wc = {.op = RTSAN_WC_RECV, .byte_len = len};

	san_sim_check_note(w, SIM_NOTE_RECEIVED, side(1), NULL, &wc);
}

static void
receive(const struct sim_op *op)
{
	const struct san_ulp_wc wc = {.op = RTSAN_WC_RECV_PUSH_IMM, .imm = (uint32_t)op->seq};

	if (op->op == RTSAN_WR_SEND) {
		arrived(op);
		receive_bytes(op->len);
	} else {
		san_sim_check_note(w, SIM_NOTE_RECEIVED, side(1), NULL, &wc);
	}
}

#define ALL_KINDS                                                                           \
	"load.send=1", "load.push=1", "load.push_imm=1", "load.pull=1", "load.fetch_add=1", \
		"load.cmp_swap=1", "load.size_max=1000", "load.size_min=1000"

static void
setup_ordered(void)
{
	setup();
	world(WORDS(ALL_KINDS));
}

static void
setup_unordered(void)
{
	setup();
	world(WORDS(ALL_KINDS, "load.unordered=1"));
}

/* The world is there when a case begins. */
#define ORDERED(name)   UNIT_CASE_OWN(name, setup_ordered, teardown)
#define UNORDERED(name) UNIT_CASE_OWN(name, setup_unordered, teardown)

/* Without an error no checker fails: the other tests change one thing each. */
ORDERED(san_sim_check_note__what_is_right)
{
	struct sim_op *op[8];

	for (uint32_t i = 0; i < 8; i++)
		op[i] = post((uint8_t)(RTSAN_WR_SEND + i % SIM_KINDS));
	for (uint32_t i = 0; i < 8; i++) {
		if (op[i]->op == RTSAN_WR_PUSH || op[i]->op == RTSAN_WR_PUSH_IMM ||
		    op[i]->op == RTSAN_WR_PULL)
			place(op[i]);
		if (op[i]->op == RTSAN_WR_SEND || op[i]->op == RTSAN_WR_PUSH_IMM)
			receive(op[i]);
		if (op[i]->op == RTSAN_WR_FETCH_ADD)
			complete_atomic(op[i], side(1)->counter++);
		else if (op[i]->op == RTSAN_WR_CMP_SWAP)
			complete_atomic(op[i], side(1)->counter);
		else
			complete(op[i], SAN_ST_OK);
		assert_fine();
	}
	note(SIM_NOTE_DOWN, 0);
	san_sim_check_sample(w);
	san_sim_check_settled(w);
	assert_fine();
}

/* ---- order ---- */

UNORDERED(sim_check_order__received_twice)
{
	struct sim_op *op = post(RTSAN_WR_SEND);

	receive(op);
	assert_fine();
	receive(op);
	assert_fails("order", "side 1: received 0 twice");
}

UNORDERED(sim_check_order__push_imm_twice)
{
	struct sim_op *op = post(RTSAN_WR_PUSH_IMM);

	place(op);
	receive(op);
	assert_fine();
	receive(op);
	assert_fails("order", "received 0 twice");
}

ORDERED(sim_check_order__received_out_of_order)
{
	struct sim_op *first = post(RTSAN_WR_SEND), *second = post(RTSAN_WR_SEND);

	receive(second);
	assert_fine();
	receive(first);
	assert_fails("order", "received 0 after 1");
}

UNORDERED(sim_check_order__unordered_may)
{
	struct sim_op *first = post(RTSAN_WR_SEND), *second = post(RTSAN_WR_SEND);

	receive(second);
	receive(first);
	complete(second, SAN_ST_OK);
	complete(first, SAN_ST_OK);
	san_sim_check_settled(w);
	assert_fine();
}

ORDERED(sim_check_order__received_what_was_not_sent)
{
	struct sim_op op = {.seq = 5, .op = RTSAN_WR_SEND, .len = LEN};

	post(RTSAN_WR_SEND);
	receive(&op);
	assert_fails("order", "received 5, which was not sent");
}

ORDERED(sim_check_order__received_what_has_no_receive)
{
	struct sim_op op = *post(RTSAN_WR_PUSH);

	op.op = RTSAN_WR_SEND;
	receive(&op);
	assert_fails("order", "received 0, which was not sent");
}

ORDERED(sim_check_order__completed_out_of_order)
{
	struct sim_op *first = post(RTSAN_WR_SEND), *second = post(RTSAN_WR_SEND);

	complete(second, SAN_ST_OK);
	assert_fine();
	complete(first, SAN_ST_OK);
	assert_fails("order", "request 0 completed after 1");
}

ORDERED(sim_check_order__succeeded_and_not_received)
{
	complete(post(RTSAN_WR_SEND), SAN_ST_OK);
	assert_fine();
	san_sim_check_settled(w);
	assert_fails("order", "succeeded and was not received");
}

/* A failed operation may have been received or not, and so may one whose process died. */
ORDERED(sim_check_order__excuses)
{
	complete(post(RTSAN_WR_SEND), SAN_ST_OK);
	side(1)->counter = 0;
	note(SIM_NOTE_RESTARTED, 1);
	complete(post(RTSAN_WR_SEND), RTSAN_WC_FLUSHED);
	note(SIM_NOTE_DOWN, 0);
	san_sim_check_settled(w);
	assert_fine();
}

ORDERED(sim_check_order__lost_is_not_completed)
{
	post(RTSAN_WR_SEND);
	side(0)->nb_done++;
	san_sim_check_settled(w);
	assert_fine();
}

ORDERED(sim_check_order__addition_twice)
{
	struct sim_op *op = post(RTSAN_WR_FETCH_ADD);

	side(1)->counter = 2;
	complete_atomic(op, 0);
	assert_fine();
	san_sim_check_settled(w);
	assert_fails("order", "counter");
}

ORDERED(sim_check_order__addition_lost)
{
	complete_atomic(post(RTSAN_WR_FETCH_ADD), 0);
	san_sim_check_settled(w);
	assert_fails("order", "counter");
}

ORDERED(sim_check_order__atomic_sees_the_past)
{
	struct sim_op *first = post(RTSAN_WR_FETCH_ADD), *second = post(RTSAN_WR_CMP_SWAP);

	complete_atomic(first, 0);
	assert_fine();
	complete_atomic(second, 0);
	assert_fails("order", "saw 0 after 0");
}

UNORDERED(sim_check_order__atomic_sees_the_future)
{
	struct sim_op *op = post(RTSAN_WR_FETCH_ADD);

	complete_atomic(op, 1);
	assert_fails("order", "saw 1 of 1");
}

/* ---- bytes ---- */

ORDERED(sim_check_bytes__push)
{
	struct sim_op *op = post(RTSAN_WR_PUSH);

	place(op)[LEN - 1] ^= 1;
	complete(op, SAN_ST_OK);
	assert_fails("bytes", "push of 1000 bytes: byte 999");
}

ORDERED(sim_check_bytes__push_not_placed)
{
	complete(post(RTSAN_WR_PUSH), SAN_ST_OK);
	assert_fails("bytes", "push of 1000 bytes: byte 0 is 0xee");
}

ORDERED(sim_check_bytes__pull)
{
	struct sim_op *op = post(RTSAN_WR_PULL);

	place(op)[500] ^= 0x80;
	complete(op, SAN_ST_OK);
	assert_fails("bytes", "pull of 1000 bytes: byte 500");
}

/* It is checked at the target's completion, before the initiator's. */
ORDERED(sim_check_bytes__push_imm)
{
	struct sim_op *op = post(RTSAN_WR_PUSH_IMM);

	place(op)[0] ^= 1;
	receive(op);
	assert_fails("bytes", "push with immediate of 1000 bytes: byte 0");
}

ORDERED(sim_check_bytes__send)
{
	arrived(post(RTSAN_WR_SEND))[SIM_HEADER] ^= 1;
	receive_bytes(LEN);
	assert_fails("bytes", "send of 984 bytes: byte 0");
}

ORDERED(sim_check_bytes__send_of_another_length)
{
	arrived(post(RTSAN_WR_SEND));
	receive_bytes(LEN - 1);
	assert_fails("bytes", "a send of 999 bytes says 1000");
}

ORDERED(sim_check_bytes__send_without_header)
{
	arrived(post(RTSAN_WR_SEND));
	receive_bytes(SIM_HEADER - 1);
	assert_fails("bytes", "a send of 15 bytes");
}

/* Operations that failed, or whose target died, have no bytes to compare. */
ORDERED(sim_check_bytes__not_of_what_failed)
{
	struct sim_op *op;

	complete(post(RTSAN_WR_PUSH), RTSAN_WC_FLUSHED);
	complete(post(RTSAN_WR_PULL), RTSAN_WC_FLUSHED);
	op = post(RTSAN_WR_PUSH);
	san_sim_load_new_life(w, side(1));
	complete(op, SAN_ST_OK);
	assert_fine();
}

/* ---- complete ---- */

SIM_CASE(sim_check_complete__statuses_have_reasons)
{
	static const uint8_t never[] = {SAN_ST_RNR, SAN_ST_ACCESS, SAN_ST_LENGTH, SAN_ST_REVOKED,
					SAN_ST_ALIGN, SAN_ST_RESOURCE, SAN_ST_REFUSED,
					SAN_ST_ABORTED, RTSAN_WC_LOC_LENGTH};

	UNIT_EACH(r, never) {
		world(WORDS(ALL_KINDS));
		complete(post(RTSAN_WR_PULL), *r);
		assert_fails("complete", "pull 0 completed with");
	}
}

SIM_CASE(sim_check_complete__statuses_with_reasons)
{
	struct sim_op *op;

	world(WORDS(ALL_KINDS, "load.recv_delay=1 ms"));
	complete(post(RTSAN_WR_SEND), SAN_ST_RNR);
	op = post(RTSAN_WR_PUSH);
	op->bad = true;
	complete(op, SAN_ST_ACCESS);
	op = post(RTSAN_WR_PUSH);
	san_sim_load_new_life(w, side(1));
	complete(op, SAN_ST_REVOKED);
	op = post(RTSAN_WR_PUSH);
	san_sim_load_new_life(w, side(1));
	complete(op, SAN_ST_ACCESS);
	assert_fine();
}

ORDERED(sim_check_complete__wrong_key_succeeds)
{
	struct sim_op *op = post(RTSAN_WR_FETCH_ADD);

	op->bad = true;
	side(1)->counter = 1;
	complete_atomic(op, 0);
	assert_fails("complete", "of a wrong key completed with");
}

ORDERED(sim_check_complete__flushed_and_still_connected)
{
	complete(post(RTSAN_WR_PUSH), RTSAN_WC_RETRY_EXC);
	assert_fine();
	san_sim_check_settled(w);
	assert_fails("complete", "flushed, but never disconnected");
}

ORDERED(sim_check_complete__ends_before_its_requests)
{
	post(RTSAN_WR_PUSH);
	note(SIM_NOTE_DOWN, 0);
	assert_fails("complete", "ended before 1");
}

ORDERED(sim_check_complete__receives_not_flushed)
{
	side(1)->nb_recvs = 3;
	note(SIM_NOTE_DOWN, 1);
	side(1)->nb_recvs = 0;
	assert_fails("complete", "3 receives were not flushed");
}

ORDERED(sim_check_complete__never_completes)
{
	post(RTSAN_WR_PUSH);
	complete(post(RTSAN_WR_SEND), RTSAN_WC_FLUSHED);
	san_sim_check_settled(w);
	assert_fails("complete", "1 of 2 requests completed");
}

/* ---- place ---- */

SIM_CASE(sim_check_place__before_and_behind)
{
	static const struct {
		int at; /* from the first byte of the slot */
		const char *text;
	} cases[] = {
		{-1, "bytes around slot"},
		{-SIM_GUARD, "bytes around slot"},
		{LEN, "bytes of slot"}, /* of the slot, not of the request */
		{1023, "bytes of slot"},
		{1024, "bytes around slot"},
		{1024 + SIM_GUARD - 1, "bytes around slot"},
	};

	UNIT_EACH(r, cases) {
		struct sim_op *op;

		world(WORDS(ALL_KINDS));
		assert_int_equal(w->load->slot_bytes, 1024);
		op = post(RTSAN_WR_PUSH);
		place(op)[r->at] ^= 1;
		complete(op, SAN_ST_OK);
		assert_fails("place", r->text);
	}
}

/* A push with an invalid key places nothing, whatever is reported. */
ORDERED(sim_check_place__without_a_right_to)
{
	struct sim_op *op = post(RTSAN_WR_PUSH);

	op->bad = true;
	place(op);
	complete(op, SAN_ST_ACCESS);
	assert_fails("place", "written without a right to");
}

ORDERED(sim_check_place__after_the_key_was_revoked)
{
	struct sim_op *op = post(RTSAN_WR_PUSH);

	san_sim_load_new_life(w, side(1));
	*san_sim_load_slot(w, side(1), op->slot) = 0;
	complete(op, SAN_ST_REVOKED);
	assert_fails("place", "written without a right to");
}

ORDERED(sim_check_place__behind_a_pull)
{
	struct sim_op *op = post(RTSAN_WR_PULL);

	place(op)[LEN] ^= 1;
	complete(op, SAN_ST_OK);
	assert_fails("place", "pull 0: bytes behind it written");
}
