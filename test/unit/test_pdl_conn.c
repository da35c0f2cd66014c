/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_pdl.h"

static struct san_pdl *pdl;

static void
create(uint32_t max_conns, uint8_t lcore)
{
	struct san_pdl_conf conf = pair_conf();

	conf.max_conns = max_conns;
	conf.lcore_id = lcore;
	conf.fixed_psn = false;
	san_prng_seed(&pair_secret, 3);
	assert_int_equal(san_pdl_create(&conf, 0, &pdl), 0);
}

static void
destroy(void)
{
	san_pdl_check(pdl);
	san_pdl_destroy(pdl);
}

UNIT_FIXTURE(.teardown = destroy);

UNIT_CASE_ALONE(san_pdl_create__refuses_nonsense)
{
	struct san_pdl_conf conf;
	struct san_pdl *out = NULL;

#define REFUSED(change)                                                    \
	do {                                                               \
		conf = pair_conf();                                        \
		conf.change;                                               \
		assert_int_equal(san_pdl_create(&conf, 0, &out), -EINVAL); \
	} while (0)
	REFUSED(max_conns = 0);
	REFUSED(max_conns = SAN_CONNS_MAX + 1);
	REFUSED(quantum = 0);
	REFUSED(budget_pkts = 0);
	REFUSED(lcore_id = 16);
	REFUSED(ooo_distance = 0);
	REFUSED(ack_every = 0);
	REFUSED(rto_min_ns = conf.rto_max_ns + 1);
	REFUSED(secret32 = NULL);
	REFUSED(cc = SAN_CC_MAX);
	REFUSED(cc_conf.window_min = 0);
	REFUSED(cc_conf.window_max = conf.cc_conf.window_init - 1);
#undef REFUSED
	assert_null(out);
	san_pdl_destroy(NULL);
}

/* The state of another process may name a congestion control that is unknown here. */
UNIT_CASE_ALONE(san_pdl_resume__unknown_congestion_control)
{
	struct san_pdl_conf conf = pair_conf();
	struct san_pdl *out;

	assert_int_equal(san_pdl_create(&conf, 0, &out), 0);
	assert_int_equal(san_pdl_resume(out, &conf), 0);
	out->conf.cc = SAN_CC_MAX;
	assert_int_equal(san_pdl_resume(out, &conf), -EINVAL);
	san_pdl_destroy(out);
}

/* Slots count for their owner until they are released. */
UNIT_CASE(san_pdl_owner_slots__until_given_back)
{
	struct san_pdl_conf conf = pair_conf();
	struct san_pdl_conn *c[6];
	uint16_t slot;

	conf.max_conns = 8;
	conf.nb_owners = 3;
	assert_int_equal(san_pdl_create(&conf, 0, &pdl), 0);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(san_pdl_conn_add(pdl, &c[i]), 0);
		if (i < 4)
			san_pdl_conn_give(pdl, c[i], i < 3 ? 1 : 2);
	}
	assert_int_equal(san_pdl_owner_slots(pdl, 1), 3);
	assert_int_equal(san_pdl_owner_slots(pdl, 2), 1);
	slot = c[1]->slot;
	san_pdl_conn_del(pdl, c[1]); /* its final event is not taken yet */
	assert_int_equal(san_pdl_owner_slots(pdl, 1), 3);
	san_pdl_slot_give(pdl, slot);
	pair_del(pdl, c[5]);
	assert_int_equal(san_pdl_owner_slots(pdl, 1), 2);
	assert_int_equal(san_pdl_owner_slots(pdl, 2), 1);
}

/* RT-1: our CIDs are unique, contain the lcore, and are never 0 or the well-known one. */
UNIT_CASE_ALONE(san_pdl_conn_add__cids)
{
	struct san_pdl_conn *c;
	uint8_t *seen;

	for (int lcore = 0; lcore < 16; lcore += 5) {
		seen = calloc(1 << 24, 1);
		assert_non_null(seen);
		create(300, (uint8_t)lcore);
		for (uint32_t i = 0; i < 300; i++) {
			assert_int_equal(san_pdl_conn_add(pdl, &c), 0);
			assert_in_range(c->cid, 2, (1 << SAN_WIRE_CID_BITS) - 1);
			assert_int_equal(seen[c->cid]++, 0);
			assert_int_equal(san_pdl_cid_lcore(c->cid), lcore);
			assert_int_equal(c->state, SAN_CONN_SETUP);
			assert_true(c->tag != 0);
			assert_ptr_equal(san_pdl_conn_find(pdl, c->cid), c);
		}
		assert_int_equal(san_pdl_conn_add(pdl, &c), -ENOSPC);
		san_pdl_check(pdl);
		san_pdl_destroy(pdl);
		free(seen);
	}
}

/* The low slots of lcore 0 would give CIDs 0 and 1: no reuse produces them. */
UNIT_CASE(san_pdl_conn_add__never_0_or_1)
{
	struct san_pdl_conn *c;

	create(2, 0);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(san_pdl_conn_add(pdl, &c), 0);
		assert_true(c->cid > 1);
		pair_del(pdl, c);
	}
}

/* There is a slot unless all are in use; the one released longest ago is used first. */
UNIT_CASE(san_pdl_conn_add__longest_freed_first)
{
	struct san_pdl_conn *c[3], *d;
	uint32_t old[3];

	create(3, 2);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(san_pdl_conn_add(pdl, &c[i]), 0);
		old[i] = c[i]->cid;
	}
	assert_int_equal(san_pdl_conn_add(pdl, &d), -ENOSPC);
	pair_del(pdl, c[1]);
	pair_del(pdl, c[0]);
	assert_int_equal(san_pdl_conn_add(pdl, &d), 0);
	assert_ptr_equal(d, c[1]);
	assert_true(d->cid != old[1]); /* the reuse counter */
	assert_null(san_pdl_conn_find(pdl, old[1]));
	assert_int_equal(san_pdl_conn_add(pdl, &d), 0);
	assert_ptr_equal(d, c[0]);
	assert_int_equal(san_pdl_conn_add(pdl, &d), -ENOSPC);
}

/* A slot uses each of its numbers once before one repeats, with another tag (RT-24). */
UNIT_CASE_ALONE(san_pdl_conn_add__all_numbers_of_a_slot)
{
	static const uint32_t conns[] = {33, 1000, SAN_CONNS_MAX};
	struct san_pdl_conn *c;
	uint32_t n, first, tag;
	uint8_t *seen;

	for (size_t at = 0; at < RTE_DIM(conns); at++) {
		seen = calloc(1 << 24, 1);
		assert_non_null(seen);
		create(conns[at], 3);
		for (uint32_t i = 0; i < conns[at]; i++)
			assert_int_equal(san_pdl_conn_add(pdl, &c), 0);
		first = c->cid;
		tag = c->tag;
		for (n = 0; seen[c->cid]++ == 0; n++) {
			pair_del(pdl, c);
			assert_int_equal(san_pdl_conn_add(pdl, &c), 0);
		}
		assert_int_equal(n, (1 << 20) / rte_align32pow2(conns[at]));
		assert_int_equal(c->cid, first);
		assert_true(c->tag != tag);
		san_pdl_destroy(pdl);
		free(seen);
	}
}

/* RT-24: a new tag for each incarnation, never zero, from the secret generator. */
static uint32_t
zero_first(void *arg)
{
	uint32_t *n = arg;

	return (*n)++ % 3 == 0 ? 0 : *n;
}

UNIT_CASE(san_pdl_conn_add__tags)
{
	struct san_pdl_conf conf = pair_conf();
	struct san_pdl_conn *c;
	uint32_t calls = 0, last = 0;

	conf.secret32 = zero_first;
	conf.secret_arg = &calls;
	conf.max_conns = 1;
	assert_int_equal(san_pdl_create(&conf, 0, &pdl), 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(san_pdl_conn_add(pdl, &c), 0);
		assert_true(c->tag != 0 && c->tag != last);
		last = c->tag;
		pair_del(pdl, c);
	}
}

/* RT-3: random first PSNs, unless a test fixes them. */
UNIT_CASE(san_pdl_conn_add__first_psn)
{
	struct san_pdl_conn *a, *b;

	create(4, 0);
	san_pdl_conn_add(pdl, &a);
	san_pdl_conn_add(pdl, &b);
	assert_true(a->tx[0].next != a->tx[1].next && a->tx[0].next != b->tx[0].next);
	pdl->conf.fixed_psn = true;
	san_pdl_conn_add(pdl, &a);
	assert_true(a->tx[0].next == 0xfffffff8 && a->tx[1].next == 0xfffffff8);
}

UNIT_CASE(san_pdl_conn_open__takes_the_peers_terms)
{
	struct san_pdl_peer peer = {
		.dcid = 77,
		.dtag = 88,
		.req_psn = 5,
		.data_psn = 0xffffffff,
		.mtu = 4000,
		.tx_req_win = 4000,
		.tx_data_win = 4000,
		.first_win = 0,
		.msg_limit = 9,
		.nb_ports = 2,
		.ports = {600, 601},
	};
	struct san_pdl_conn *c;

	create(1, 0);
	san_pdl_conn_add(pdl, &c);
	san_pdl_conn_open(pdl, c, &peer, 32, 128, 55);
	assert_int_equal(c->state, SAN_CONN_OPEN);
	assert_int_equal(c->dcid, 77);
	assert_int_equal(c->dtag, 88);
	assert_int_equal(c->mtu_max, 4000);
	assert_int_equal(c->tx[SAN_WIN_REQ].size, SAN_WIN_REQ_MAX); /* our memory's limit */
	assert_int_equal(c->tx[SAN_WIN_DATA].size, SAN_WIN_DATA_MAX);
	assert_int_equal(c->rx[SAN_WIN_REQ].size, 32);
	assert_true(c->rx[SAN_WIN_DATA].base == 0xffffffff);
	assert_int_equal(c->pcb.first_win, 2); /* PCB-2: at least */
	assert_int_equal(c->pcb.msg_limit, 9);
	assert_int_equal(c->path.src_port, 600);
	assert_true(c->last_rx_ns == 55);
}

/* RT-28: the connections of two hosts start on different ports, not all on one path. */
UNIT_CASE(san_pdl_conn_open__begins_on_different_ports)
{
	struct san_pdl_peer peer = {
		.mtu = 1000, .nb_ports = 4, .ports = {600, 601, 602, 603}};
	struct san_pdl_conn *c;
	uint32_t nb[4] = {0};

	create(14, 0);
	for (int i = 0; i < 12; i++) {
		assert_int_equal(san_pdl_conn_add(pdl, &c), 0);
		san_pdl_conn_open(pdl, c, &peer, 32, 128, 0);
		assert_in_range(c->path.src_port, 600, 603);
		assert_true(c->ports[c->port_idx] == c->path.src_port); /* the next one differs */
		nb[c->path.src_port - 600]++;
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(nb[i], 3);
	peer.nb_ports = 1;
	assert_int_equal(san_pdl_conn_add(pdl, &c), 0);
	san_pdl_conn_open(pdl, c, &peer, 32, 128, 0);
	assert_int_equal(c->path.src_port, 600);
	peer.nb_ports = 0; /* without ports of the peer the port of the handshake stays */
	assert_int_equal(san_pdl_conn_add(pdl, &c), 0);
	c->path.src_port = 777;
	san_pdl_conn_open(pdl, c, &peer, 32, 128, 0);
	assert_int_equal(c->path.src_port, 777);
}

/* RT-24: everything is released, in whatever state it is. */
UNIT_CASE_ALONE(san_pdl_conn_del__releases_everything)
{
	struct san_pdl_conf conf = pair_conf();

	pair_open(&pair, &conf, 16, 64);
	for (int i = 0; i < 10; i++)
		assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k));
	assert_true(pair_send(&pair, 0, SAN_OP_PULL_REQ, 1, &k));
	assert_true(pair_send(&pair, 0, SAN_OP_PUSH_GRNT, 1, &k));
	pair_pass(&pair, 2 * conf.rto_init_ns); /* some are lost by now */
	assert_true(san_pdl_has_lost(pair.c[0]));
	san_pdl_ack_probe_now(pair.pdl[0], pair.c[0]);
	san_pdl_sched_kick(pair.pdl[0], pair.c[0]);
	pair_del(pair.pdl[0], pair.c[0]);
	san_pdl_check(pair.pdl[0]);
	assert_int_equal(pair.pdl[0]->nb_conns, 0);
	assert_int_equal(pair.pdl[0]->free_wide.nb, pair.pdl[0]->free_wide.max);
	assert_int_equal(pair.pdl[0]->inflight, 0);
	assert_false(san_pdl_sched_has_work(pair.pdl[0]));
	assert_true(san_wheel_deadline_ns(&pair.pdl[0]->wheel) == SAN_TIME_NEVER);
	/* its txblock is clean for the next connection */
	pair_del(pair.pdl[1], pair.c[1]);
	pair.now += SAN_NS_PER_S;
	pair_connect(&pair, 16, 64);
	assert_true(pair_send(&pair, 0, SAN_OP_PUSH_UNSLCTD_DATA, 1, &k));
	pair_close(&pair);
}

UNIT_CASE(san_pdl_conn_find__only_this_incarnation)
{
	struct san_pdl_conn *c;
	uint32_t cid;

	create(3, 1);
	san_pdl_conn_add(pdl, &c);
	cid = c->cid;
	assert_ptr_equal(san_pdl_conn_find(pdl, cid), c);
	assert_null(san_pdl_conn_find(pdl, cid + 4));         /* another incarnation */
	assert_null(san_pdl_conn_find(pdl, cid + (1 << 20))); /* another lcore */
	assert_null(san_pdl_conn_find(pdl, cid + 1));         /* free slot */
	assert_null(san_pdl_conn_find(pdl, cid + 3));         /* no such slot */
	assert_null(san_pdl_conn_find(pdl, 0));
	assert_null(san_pdl_conn_find(pdl, SAN_WIRE_CID_CM));
	pair_del(pdl, c);
	assert_null(san_pdl_conn_find(pdl, cid));
}

/* Lazy: armed for the earliest, moved only to earlier. */
UNIT_CASE(san_pdl_conn_arm__earliest)
{
	struct san_pdl_conn *c;

	create(1, 0);
	san_pdl_conn_add(pdl, &c);
	san_pdl_conn_arm(pdl, c);
	assert_false(san_wheel_timer_is_armed(&c->timer));
	c->cm_deadline_ns = 5000000;
	san_pdl_conn_arm(pdl, c);
	assert_true(c->timer.deadline_ns == 5000000);
	c->tl_deadline_ns = 3000000;
	san_pdl_conn_arm(pdl, c);
	assert_true(c->timer.deadline_ns == 3000000);
	c->tl_deadline_ns = 9000000;
	san_pdl_conn_arm(pdl, c);
	assert_true(c->timer.deadline_ns == 3000000); /* fires once without need */
	assert_ptr_equal(san_wheel_poll(&pdl->wheel, 3100000), &c->timer);
	san_pdl_rtx_on_timer(pdl, c, 3100000);
	san_pdl_conn_arm(pdl, c);
	assert_true(c->timer.deadline_ns == 5000000);
}
