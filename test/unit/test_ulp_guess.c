/* SPDX-License-Identifier: BSD-3-Clause */

/* Peers that guess keys. (SYS-5) */

#include "test_ulp.h"

#define BASE      0x40000
#define LEN       64
#define CONN_MAX  64
#define PER_HOUR  1000
#define HOUR_NS   (3600 * SAN_NS_PER_S)
#define ALL_HOSTS (4 * 128 * 8) /* several times as many as are remembered */

static uint8_t mem[LEN];
static struct san_ip host;

static void
setup(void)
{
	host = peer;
	test_ulp_setup();
}

UNIT_FIXTURE(.setup = setup, .teardown = test_ulp_close);

static uint32_t
add(void)
{
	uint32_t key;

	assert_int_equal(san_ulp_mr_add(t.ulp, mem, LEN, BASE, RTSAN_REMOTE_PULL, PKEY, &key), 0);
	return key;
}

static uint8_t
pull_at(uint32_t key, uint64_t addr)
{
	struct san_tl_rxn r = {.slot = SLOT, .key = key, .addr = addr, .length = 8};

	return san_tl_ulp_pull_req(t.ulp, &r);
}

static uint8_t
pull(uint32_t key)
{
	return pull_at(key, BASE);
}

/* The queue pair gets a new connection, to *host*. */
static void
reconnect(void)
{
	while (san_ulp_qp_next_failed(t.ulp) != SAN_QPN_NONE)
		;
	san_ulp_qp_unbind(t.ulp, t.qp);
	assert_int_equal(san_ulp_qp_renew(t.ulp, t.qp), 0);
	assert_int_equal(san_ulp_qp_bind(t.ulp, t.qp, SLOT, PKEY, &host), 0);
}

/* Refusals until the connection is ended. */
static uint32_t
guess_until_end(uint32_t key)
{
	uint32_t n = 0;

	do {
		assert_int_equal(pull(key ^ 0x40000000), SAN_ST_ACCESS);
		n++;
	} while (san_ulp_qp_next_failed(t.ulp) == SAN_QPN_NONE && n < 10 * CONN_MAX);
	return n;
}

UNIT_CASE(guess__ends_the_connection)
{
	uint32_t key = add();

	assert_int_equal(guess_until_end(key), CONN_MAX);
	assert_int_equal(san_ulp_stats(t.ulp)->nb_guessers, 1);
	/* a valid key does not give it more */
	reconnect();
	assert_int_equal(pull(key), SAN_ST_OK);
	assert_int_equal(guess_until_end(key), CONN_MAX);
	assert_int_equal(pull(key ^ 0x40000000), SAN_ST_ACCESS);
	assert_int_equal(san_ulp_qp_next_failed(t.ulp), SAN_QPN_NONE); /* once */
}

/* Refusals that *host* gets, each on a new connection, until even a valid key is refused. */
static uint32_t
spend(uint32_t key)
{
	uint32_t n = 0;

	for (;;) {
		reconnect();
		if (pull(key) != SAN_ST_OK)
			return n;
		reconnect();
		assert_int_equal(pull(key ^ 0x40000000), SAN_ST_ACCESS);
		n++;
	}
}

UNIT_CASE(guess__budget_of_a_host)
{
	uint32_t key = add(), n;

	n = spend(key);
	assert_in_range(n, PER_HOUR / 4, PER_HOUR);
	/* the key is not checked at all */
	assert_int_equal(pull(key), SAN_ST_ACCESS);
	/* no more than that per hour */
	for (uint32_t i = 0; i < 60; i++) {
		fake.tl.now_ns += HOUR_NS / 60;
		n += spend(key);
	}
	assert_in_range(n, PER_HOUR / 2, PER_HOUR);
	/* after silence as before */
	fake.tl.now_ns += HOUR_NS;
	assert_in_range(spend(key), PER_HOUR / 4, PER_HOUR);
}

UNIT_CASE(guess__others_go_on)
{
	uint32_t key = add();

	spend(key);
	/* another host */
	host.b[0]++;
	reconnect();
	assert_int_equal(pull(key), SAN_ST_OK);
	/* of this one, which is known */
	fake.tl.now_ns += HOUR_NS;
	host.b[0]--;
	reconnect();
	assert_int_equal(pull(key), SAN_ST_OK);
}

/* A connection with valid keys that spends the last of its host's budget ends with that. */
UNIT_CASE(guess__known_ends_when_it_is_spent)
{
	uint32_t key = add(), n = 0;

	do {
		reconnect();
		assert_int_equal(pull(key), SAN_ST_OK);
		n = guess_until_end(key);
	} while (n == CONN_MAX);
	assert_true(n < CONN_MAX);
	/* its work in flight is not checked */
	assert_int_equal(pull(key), SAN_ST_ACCESS);
}

/* Its peer was given the key of a stream's region: that proves nothing, and is never refused. */
UNIT_CASE(guess__stream)
{
	uint32_t key = add(), own;

	spend(key);
	reconnect();
	assert_int_equal(san_ulp_mr_add_stream(t.ulp, t.qp, mem, LEN, RTSAN_REMOTE_PULL, &own), 0);
	assert_int_equal(pull_at(own, 0), SAN_ST_OK);
	assert_int_equal(pull(key), SAN_ST_ACCESS);
	assert_int_equal(pull_at(own, 0), SAN_ST_OK);
	assert_int_equal(san_ulp_mr_del(t.ulp, own), 0);
}

/* All addresses of an IPv6 network count as one host. */
UNIT_CASE(guess__network)
{
	uint32_t key = add();

	spend(key);
	host.b[12]++;
	reconnect();
	assert_int_equal(pull(key), SAN_ST_ACCESS);
	host.b[7]++;
	reconnect();
	assert_int_equal(pull(key), SAN_ST_OK);
}

/* The owner is part of it: refusals of one application do not count for another one. */
UNIT_CASE(guess__of_an_application)
{
	uint32_t key = add();

	spend(key);
	t.ulp->qps[0]->owner = 5;
	assert_int_equal(san_ulp_mr_give(t.ulp, key, 5), 0);
	reconnect();
	assert_int_equal(pull(key), SAN_ST_OK);
}

/* A host without budget is remembered, however many hosts use a part of theirs. */
UNIT_CASE(guess__remembered)
{
	uint32_t key = add();

	spend(key);
	for (uint32_t i = 1; i < ALL_HOSTS; i++) {
		host.b[1] = (uint8_t)i;
		host.b[2] = (uint8_t)(i >> 8);
		reconnect();
		assert_int_equal(pull(key ^ 0x40000000), SAN_ST_ACCESS);
	}
	host.b[1] = host.b[2] = 0;
	reconnect();
	assert_int_equal(pull(key), SAN_ST_ACCESS);
}

/* Express accepts the pushes of a known connection. */
UNIT_CASE(guess__express)
{
	struct san_wire_pkt p = {
		.flags = SAN_KIND_PUSH << SAN_F_KIND_SHIFT, .addr = BASE, .length = 8};
	struct san_ulp_express x;

	assert_int_equal(san_ulp_mr_add(t.ulp, mem, LEN, BASE,
					RTSAN_REMOTE_PULL | RTSAN_REMOTE_PUSH, PKEY, &p.key),
			 0);
	san_ulp_place_express_start(t.ulp, SLOT, &x);
	assert_false(san_ulp_place_express(t.ulp, &p, &x));
	assert_int_equal(pull(p.key), SAN_ST_OK);
	san_ulp_place_express_start(t.ulp, SLOT, &x);
	assert_true(san_ulp_place_express(t.ulp, &p, &x));
}
