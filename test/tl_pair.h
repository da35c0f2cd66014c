/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Two hosts with one connection (more on demand) and a ULP that does what the
 * test told it and remembers what it was asked. Side 0 is the initiator of most
 * tests, side 1 the target. The test carries the packets. fake_ulp.c is the ULP.
 */

#include "san_seq.h"
#include "tl_host.h"
#include "unit.h"

#define PAIR_LOG  64
#define PAIR_MEM  (1u << 20)
#define PAIR_PKTS 256

/** The ULP of one side. */
struct tl_fake {
	/* what it says */
	uint8_t push_check, push_req, push_place, push_done, pull_req, pull_read;
	uint32_t nb_recvs;
	uint8_t bad; /* not OK: what it says to the push with RSN bad_rsn */
	uint32_t bad_rsn;
	/* what it was asked */
	uint32_t nb_push_req, nb_place, nb_done, nb_abort, nb_pull_req, nb_atomic, nb_room;
	uint32_t nb_set_aside;
	uint32_t done[PAIR_LOG]; /* RSNs in the order of the ULP-ACK, of pulls and atomics */
	uint32_t imm;
	uint64_t addend; /* of atomics of this side */
	uint64_t counter;
	/* completions, in order */
	uint32_t nb_cmpl;
	uint64_t cookie[PAIR_LOG];
	uint8_t status[PAIR_LOG];
	uint16_t room_slot; /* whom room() named last */
	uint32_t nb_pull_bytes;
	uint64_t atomic_result;
	uint8_t mem[PAIR_MEM];
};

struct tl_pair {
	struct tl_host h[2];
	struct tl_fake f[2];
	struct san_pdl_conn *c[2];
	uint16_t slot[2];
	uint64_t now;
	struct rte_mempool *pool;
	struct rte_hash *cam[2];
	struct tl_pkt out[PAIR_PKTS]; /* of the last pair_tx() */
	uint32_t nb_out;
};

extern struct tl_pair pair;

/** What travels: byte *offset* of a push or pull. */
static inline uint8_t
pair_byte(uint64_t cookie, uint32_t offset)
{
	return (uint8_t)(cookie * 37 + offset * 3 + (offset >> 8));
}

/* ---- construction ---- */

static inline struct tl_link
pair_link(bool ordered)
{
	return (struct tl_link){
		.ordered = ordered,
		.req_win = 16,
		.data_win = 64,
		.msg_limit = 64,
		.n = 64,
		.mtu = 1000,
		.rnr_ms = 1000,
		.first_rsn = 0xfffffffc, /* wraps within a few (RT-3) */
	};
}

static inline void
pair_connect(const struct tl_link *l, uint16_t slot[2])
{
	struct tl_host *h[2] = {&pair.h[0], &pair.h[1]};

	tl_host_connect(h, l, slot, pair.now);
}

/** *tl*: NULL, or what to use instead of the defaults of tl_host_conf(). */
static inline void
pair_open(const struct tl_link *l, const struct san_tl_conf *tl)
{
	struct san_pdl_conf pdl_conf;
	struct san_tl_conf tl_conf;

	if (pair.pool == NULL) {
		pair.pool = tl_host_pool(1023);
		pair.cam[0] = san_tl_reorder_create_table("pair0", 256, SOCKET_ID_ANY);
		pair.cam[1] = san_tl_reorder_create_table("pair1", 256, SOCKET_ID_ANY);
		SAN_VERIFY(pair.cam[0] != NULL && pair.cam[1] != NULL);
	}
	memset(pair.f, 0, sizeof(pair.f));
	pair.now = 1000000;
	pair.nb_out = 0;
	for (int i = 0; i < 2; i++) {
		tl_host_conf(&pdl_conf, &tl_conf);
		pdl_conf.cc = SAN_CC_FIXED;
		if (tl != NULL)
			tl_conf = *tl;
		tl_conf.max_conns = TL_HOST_CONNS;
		tl_conf.cam = pair.cam[i];
		tl_conf.ulp = &pair.f[i];
		tl_host_create(&pair.h[i], (uint8_t)i, &pdl_conf, &tl_conf, pair.pool, pair.now);
	}
	pair_connect(l, pair.slot);
	pair.c[0] = &pair.h[0].pdl->conns[pair.slot[0]];
	pair.c[1] = &pair.h[1].pdl->conns[pair.slot[1]];
}

static inline void
pair_drop_all(void)
{
	while (pair.nb_out > 0)
		rte_pktmbuf_free(pair.out[--pair.nb_out].m);
}

/** Everything is released, and nothing was left behind. */
static inline void
pair_close(void)
{
	pair_drop_all();
	for (int i = 0; i < 2; i++) {
		struct san_tl *tl = pair.h[i].tl;

		san_tl_check(tl);
		san_pdl_check(pair.h[i].pdl);
		for (uint16_t slot = 0; slot < TL_HOST_CONNS; slot++)
			san_tl_conn_close(tl, slot, SAN_ST_ABORTED, pair.now);
		san_tl_check(tl);
		SAN_VERIFY(tl->free_txns.nb == tl->conf.max_txns);
		SAN_VERIFY(tl->free_rxns.nb == tl->conf.max_rxns);
		SAN_VERIFY(tl->cam.nb_used == 0 && tl->nb_held == 0);
		SAN_VERIFY(tl->budget_used == 0 && tl->expired_used == 0);
		SAN_VERIFY(pair.f[i].nb_set_aside == 0);
		tl_host_destroy(&pair.h[i]);
	}
	SAN_VERIFY(rte_mempool_full(pair.pool));
}

/* ---- fixtures of most files; the teardown is pair_close() ---- */

static inline void
pair_setup_as(bool ordered, uint16_t rnr_ms)
{
	struct tl_link l = pair_link(ordered);

	l.rnr_ms = rnr_ms;
	pair_open(&l, NULL);
}

static inline void
pair_setup(void)
{
	pair_setup_as(true, 1000);
}

static inline void
pair_setup_unordered(void)
{
	pair_setup_as(false, 1000);
}

/** What the receiver is not ready for ends after 5 ms. */
static inline void
pair_setup_hasty(void)
{
	pair_setup_as(true, 5);
}

static inline void
pair_setup_hasty_unordered(void)
{
	pair_setup_as(false, 5);
}

static inline void
pair_setup_relaxed(void)
{
	struct tl_link l = pair_link(true);

	l.relaxed = true;
	pair_open(&l, NULL);
}

/* ---- work ---- */

static inline struct san_tl_conn *
pair_tc(int side)
{
	return &pair.h[side].tl->conns[pair.slot[side]];
}

/** What must wait, or is refused, is not offered the short way either. */
static inline int
pair_submit_at(int side, uint16_t slot, const struct san_tl_req *req)
{
	struct san_tl *tl = pair.h[side].tl;
	bool waits = tl->conns[slot].want != 0;
	uint32_t room = san_tl_initiator_plain_room(tl, slot, 1);
	int rc = san_tl_initiator_submit(tl, slot, req, pair.now);

	SAN_VERIFY(room == 0 || (!waits && (rc == 0 || req->type != SAN_TL_PUSH)));
	return rc;
}

static inline int
pair_submit(int side, const struct san_tl_req *req)
{
	return pair_submit_at(side, pair.slot[side], req);
}

/** A push of side 0, named by *cookie*, that goes to address 4096 * cookie. */
static inline int
pair_push(uint64_t cookie, uint8_t kind, uint8_t solicit, uint32_t length)
{
	const struct san_tl_req req = {
		.type = SAN_TL_PUSH,
		.kind = kind,
		.solicit = solicit,
		.length = length,
		.key = 77,
		.addr = cookie * 4096,
		.imm = 0xabcd0000 + (uint32_t)cookie,
		.cookie = cookie,
	};

	return pair_submit(0, &req);
}

static inline int
pair_pull(uint64_t cookie, uint32_t length)
{
	const struct san_tl_req req = {
		.type = SAN_TL_PULL,
		.length = length,
		.key = 77,
		.addr = cookie * 4096,
		.cookie = cookie,
	};

	return pair_submit(0, &req);
}

static inline int
pair_add(uint64_t cookie, uint64_t addend)
{
	const struct san_tl_req req = {
		.type = SAN_TL_ATOMIC, .op = SAN_ATOMIC_FETCH_ADD, .cookie = cookie};

	pair.f[0].addend = addend;
	return pair_submit(0, &req);
}

/** *n* pushes or sends of *length* bytes, named from *first* on. */
static inline void
pair_requests(uint8_t kind, uint8_t solicit, uint32_t length, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		SAN_VERIFY(pair_push(first + i, kind, solicit, length) == 0);
}

/** *n* pushes of 100 bytes, named from *first* on, that need no grant. */
static inline void
pair_pushes(uint32_t first, uint32_t n)
{
	pair_requests(SAN_KIND_PUSH, SAN_SOLICIT_NEVER, 100, first, n);
}

/** Likewise sends, each of which needs a receive. */
static inline void
pair_sends(uint32_t first, uint32_t n)
{
	pair_requests(SAN_KIND_SEND, SAN_SOLICIT_NEVER, 100, first, n);
}

/** RSN number *i* of side 0, from its first one on. */
static inline uint32_t
pair_rsn(uint32_t i)
{
	return pair_tc(0)->peer.first_rsn_tx + i;
}

/* ---- packets ---- */

/** What *side* sends now goes to pair.out; what was there is lost. Returns how many. */
static inline uint32_t
pair_tx(int side)
{
	pair_drop_all();
	pair.nb_out = tl_host_tx(&pair.h[side], pair.out, PAIR_PKTS, pair.now);
	san_tl_check(pair.h[side].tl);
	return pair.nb_out;
}

static inline struct san_wire_pkt *
pair_pkt(uint32_t i)
{
	SAN_VERIFY(i < pair.nb_out);
	return &san_wire_pkt(pair.out[i].m)->w;
}

/** *k*, which is *side*'s from now on, arrives there. */
static inline enum san_drop
pair_arrive(int side, struct tl_pkt k)
{
	enum san_drop drop = tl_host_rx(&pair.h[side], &k, pair.now);

	san_tl_check(pair.h[side].tl);
	san_pdl_check(pair.h[side].pdl);
	return drop;
}

/** A copy of packet *i* arrives at *side*. */
static inline enum san_drop
pair_rx(int side, uint32_t i)
{
	struct tl_pkt k = pair.out[i];

	SAN_VERIFY(i < pair.nb_out);
	k.m = tl_host_copy(&pair.h[side], k.m);
	return pair_arrive(side, k);
}

/** Packets of pair.out arrive at *side*: all, those of kind *op*, or all but those. */
static inline void
pair_rx_all(int side)
{
	for (uint32_t i = 0; i < pair.nb_out; i++)
		pair_rx(side, i);
}

static inline void
pair_rx_only(int side, uint8_t op)
{
	for (uint32_t i = 0; i < pair.nb_out; i++)
		if (pair_pkt(i)->op == op)
			pair_rx(side, i);
}

static inline void
pair_rx_but(int side, uint8_t op)
{
	for (uint32_t i = 0; i < pair.nb_out; i++)
		if (pair_pkt(i)->op != op)
			pair_rx(side, i);
}

/** Index in pair.out of the *n*th packet of kind *op*, or UINT32_MAX. */
static inline uint32_t
pair_find(uint8_t op, uint32_t n)
{
	for (uint32_t i = 0; i < pair.nb_out; i++)
		if (pair_pkt(i)->op == op && n-- == 0)
			return i;
	return UINT32_MAX;
}

/** Everything that *side* has to send arrives. Returns how many packets. */
static inline uint32_t
pair_xfer(int side)
{
	uint32_t n = pair_tx(side);

	for (uint32_t i = 0; i < n; i++)
		pair_rx(1 - side, i);
	return n;
}

static inline void
pair_tick(int side)
{
	SAN_VERIFY(tl_host_tick(&pair.h[side], pair.now));
	san_tl_check(pair.h[side].tl);
}

/** Let *ns* pass on both sides, without packets. */
static inline void
pair_wait(uint64_t ns)
{
	pair.now += ns;
	pair_tick(0);
	pair_tick(1);
}

/** Both sides send, then 10 us pass. */
static inline void
pair_turn(void)
{
	pair_xfer(0);
	pair_xfer(1);
	pair_wait(10 * SAN_NS_PER_US);
}

/** Packets and time until nobody sends for 20 ms: longer than a timeout. */
static inline void
pair_settle(void)
{
	uint64_t last = pair.now;

	while (pair.now < last + 20 * SAN_NS_PER_MS) {
		if (pair_xfer(0) + pair_xfer(1) != 0)
			last = pair.now;
		pair_wait(10 * SAN_NS_PER_US);
	}
}

/** By then *n* requests of side 0 have completed. */
#define assert_settles(n)                               \
	do {                                            \
		pair_settle();                          \
		assert_int_equal(pair.f[0].nb_cmpl, n); \
	} while (0)

/** By then as many requests as there are arguments have completed, with these statuses. */
#define assert_settles_with(...)                                                   \
	do {                                                                       \
		const uint8_t statuses[] = {__VA_ARGS__};                          \
                                                                                   \
		assert_settles(RTE_DIM(statuses));                                 \
		assert_memory_equal(pair.f[0].status, statuses, sizeof(statuses)); \
	} while (0)

/** The bytes of push *cookie* are at their place. */
static inline bool
pair_has_bytes(uint64_t cookie, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (pair.f[1].mem[cookie * 4096 + i] != pair_byte(cookie, i))
			return false;
	return true;
}
