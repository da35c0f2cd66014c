/* SPDX-License-Identifier: BSD-3-Clause */

/* Peers that guess keys. (SYS-5) */

#include "test_ulp.h"
#include "unit.h"

#define BASE      0x40000
#define LEN       64
#define CONN_MAX  64
#define PER_HOUR  1000
#define HOUR_NS   (3600 * SAN_NS_PER_S)
#define ALL_HOSTS (4 * 128 * 8) /* several times as many as are remembered */

static uint8_t mem[LEN];
static struct san_ip host;

static uint32_t
add(struct test_ulp *t)
{
	uint32_t key;

	assert_int_equal(
		san_ulp_mr_add(t->ulp, mem, LEN, BASE, RTSAN_REMOTE_PULL, PKEY, &key), 0);
	return key;
}

static uint8_t
pull_at(struct test_ulp *t, uint32_t key, uint64_t addr)
{
	struct san_tl_rxn r = {.slot = SLOT, .key = key, .addr = addr, .length = 8};

	return san_tl_ulp_pull_req(t->ulp, &r);
}

static uint8_t
pull(struct test_ulp *t, uint32_t key)
{
	return pull_at(t, key, BASE);
}

/* The queue pair gets a new connection, to *host*. */
static void
reconnect(struct test_ulp *t)
{
	while (san_ulp_qp_next_failed(t->ulp) != SAN_QPN_NONE)
		;
	san_ulp_qp_unbind(t->ulp, t->qp);
	assert_int_equal(san_ulp_qp_renew(t->ulp, t->qp), 0);
	assert_int_equal(san_ulp_qp_bind(t->ulp, t->qp, SLOT, PKEY, &host), 0);
}

/* Refusals until the connection is ended. */
static uint32_t
guess_until_end(struct test_ulp *t, uint32_t key)
{
	uint32_t n = 0;

	do {
		assert_int_equal(pull(t, key ^ 0x40000000), SAN_ST_ACCESS);
		n++;
	} while (san_ulp_qp_next_failed(t->ulp) == SAN_QPN_NONE && n < 10 * CONN_MAX);
	return n;
}

static void
guess__ends_the_connection(void **state)
{
	struct test_ulp *t = *state;
	uint32_t key = add(t);

	assert_int_equal(guess_until_end(t, key), CONN_MAX);
	assert_int_equal(san_ulp_stats(t->ulp)->nb_guessers, 1);
	/* a valid key does not give it more */
	reconnect(t);
	assert_int_equal(pull(t, key), SAN_ST_OK);
	assert_int_equal(guess_until_end(t, key), CONN_MAX);
	assert_int_equal(pull(t, key ^ 0x40000000), SAN_ST_ACCESS);
	assert_int_equal(san_ulp_qp_next_failed(t->ulp), SAN_QPN_NONE); /* once */
}

/* Refusals that *host* gets, each on a new connection, until even a valid key is refused. */
static uint32_t
spend(struct test_ulp *t, uint32_t key)
{
	uint32_t n = 0;

	for (;;) {
		reconnect(t);
		if (pull(t, key) != SAN_ST_OK)
			return n;
		reconnect(t);
		assert_int_equal(pull(t, key ^ 0x40000000), SAN_ST_ACCESS);
		n++;
	}
}

static void
guess__budget_of_a_host(void **state)
{
	struct test_ulp *t = *state;
	uint32_t key = add(t), n, i;

	n = spend(t, key);
	assert_in_range(n, PER_HOUR / 4, PER_HOUR);
	/* the key is not checked at all */
	assert_int_equal(pull(t, key), SAN_ST_ACCESS);
	/* no more than that per hour */
	for (i = 0; i < 60; i++) {
		fake.tl.now_ns += HOUR_NS / 60;
		n += spend(t, key);
	}
	assert_in_range(n, PER_HOUR / 2, PER_HOUR);
	/* after silence as before */
	fake.tl.now_ns += HOUR_NS;
	assert_in_range(spend(t, key), PER_HOUR / 4, PER_HOUR);
}

static void
guess__others_go_on(void **state)
{
	struct test_ulp *t = *state;
	uint32_t key = add(t);

	spend(t, key);
	/* another host */
	host.b[0]++;
	reconnect(t);
	assert_int_equal(pull(t, key), SAN_ST_OK);
	/* of this one, which is known */
	fake.tl.now_ns += HOUR_NS;
	host.b[0]--;
	reconnect(t);
	assert_int_equal(pull(t, key), SAN_ST_OK);
}

/* A connection with valid keys that spends the last of its host's budget ends with that. */
static void
guess__known_ends_when_it_is_spent(void **state)
{
	struct test_ulp *t = *state;
	uint32_t key = add(t), n = 0;

	do {
		reconnect(t);
		assert_int_equal(pull(t, key), SAN_ST_OK);
		n = guess_until_end(t, key);
	} while (n == CONN_MAX);
	assert_true(n < CONN_MAX);
	/* its work in flight is not checked */
	assert_int_equal(pull(t, key), SAN_ST_ACCESS);
}

/* Its peer was given the key of a stream's region: that proves nothing, and is never refused. */
static void
guess__stream(void **state)
{
	struct test_ulp *t = *state;
	uint32_t key = add(t), own;

	spend(t, key);
	reconnect(t);
	assert_int_equal(san_ulp_mr_add_stream(t->ulp, t->qp, mem, LEN, RTSAN_REMOTE_PULL, &own),
			 0);
	assert_int_equal(pull_at(t, own, 0), SAN_ST_OK);
	assert_int_equal(pull(t, key), SAN_ST_ACCESS);
	assert_int_equal(pull_at(t, own, 0), SAN_ST_OK);
	assert_int_equal(san_ulp_mr_del(t->ulp, own), 0);
}

/* All addresses of an IPv6 network count as one host. */
static void
guess__network(void **state)
{
	struct test_ulp *t = *state;
	uint32_t key = add(t);

	spend(t, key);
	host.b[12]++;
	reconnect(t);
	assert_int_equal(pull(t, key), SAN_ST_ACCESS);
	host.b[7]++;
	reconnect(t);
	assert_int_equal(pull(t, key), SAN_ST_OK);
}

/* The owner is part of it: refusals of one application do not count for another one. */
static void
guess__of_an_application(void **state)
{
	struct test_ulp *t = *state;
	uint32_t key = add(t);

	spend(t, key);
	t->ulp->qps[0]->owner = 5;
	assert_int_equal(san_ulp_mr_give(t->ulp, key, 5), 0);
	reconnect(t);
	assert_int_equal(pull(t, key), SAN_ST_OK);
}

/* A host without budget is remembered, however many hosts use a part of theirs. */
static void
guess__remembered(void **state)
{
	struct test_ulp *t = *state;
	uint32_t key = add(t), i;

	spend(t, key);
	for (i = 1; i < ALL_HOSTS; i++) {
		host.b[1] = (uint8_t)i;
		host.b[2] = (uint8_t)(i >> 8);
		reconnect(t);
		assert_int_equal(pull(t, key ^ 0x40000000), SAN_ST_ACCESS);
	}
	host.b[1] = host.b[2] = 0;
	reconnect(t);
	assert_int_equal(pull(t, key), SAN_ST_ACCESS);
}

/* Express accepts the pushes of a known connection. */
static void
guess__express(void **state)
{
	struct test_ulp *t = *state;
	struct san_wire_pkt p = {
		.flags = SAN_KIND_PUSH << SAN_F_KIND_SHIFT,
		.addr = BASE,
		.length = 8,
	};
	struct san_ulp_express x;

	assert_int_equal(san_ulp_mr_add(t->ulp, mem, LEN, BASE,
					RTSAN_REMOTE_PULL | RTSAN_REMOTE_PUSH,
					PKEY, &p.key),
			 0);
	san_ulp_place_express_start(t->ulp, SLOT, &x);
	assert_false(san_ulp_place_express(t->ulp, &p, &x));
	assert_int_equal(pull(t, p.key), SAN_ST_OK);
	san_ulp_place_express_start(t->ulp, SLOT, &x);
	assert_true(san_ulp_place_express(t->ulp, &p, &x));
}

static int
setup(void **state)
{
	host = peer;
	return test_ulp_setup(state);
}

#define GUESS(f) cmocka_unit_test_setup_teardown(f, setup, test_ulp_teardown)

UNIT_TEST(test_ulp_guess)
{
	const struct CMUnitTest tests[] = {
		GUESS(guess__ends_the_connection),
		GUESS(guess__budget_of_a_host),
		GUESS(guess__others_go_on),
		GUESS(guess__known_ends_when_it_is_spent),
		GUESS(guess__of_an_application),
		GUESS(guess__stream),
		GUESS(guess__network),
		GUESS(guess__remembered),
		GUESS(guess__express),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
