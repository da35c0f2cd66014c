/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Queue pairs, completion queues and regions under random use, random
 * refusals and random ends of connections, against a count per work request:
 * each completes exactly once (silently only if unsignaled and successful), in
 * order where the transaction sublayer keeps it; each receive exactly once; no
 * completion queue overruns (RT-14, RT-23, SYS-2). san_ulp_check() after every
 * step.
 */

#include "prop.h"

#include <errno.h>

#include "ulp_priv.h"

#define NB_STEPS   400
#define NB_QPS     3
#define MAX_WRS    4096
#define MAX_UNDER  64 /* pushes under way at the target */
#define PULL_PIECE 10

/** A work request or receive: wr_id is its index. */
static struct item {
	uint32_t qp;
	bool silent; /* may complete without an entry */
	bool done, is_recv;
} items[MAX_WRS];

static struct {
	struct san_tl_txn txns[MAX_WRS]; /* of all connections; completed from the head */
	uint32_t head, tail, room;
} tl;

static struct {
	struct san_tl_rxn r[MAX_UNDER];
	uint32_t n;
} target;

static struct san_prng prng;
static const struct san_ip peer = {{[15] = 1}};
static struct san_ulp *ulp;
static struct san_ulp_cq *cq[2];
static uint32_t qps[NB_QPS];
static bool bound[NB_QPS];
static int64_t last_wr[NB_QPS]; /* newest work request completed */
static uint32_t nb_items;

int
san_tl_initiator_submit(struct san_tl *unused, uint16_t slot, const struct san_tl_req *req,
			uint64_t now_ns)
{
	if (tl.room == 0 || tl.tail == MAX_WRS)
		return -EAGAIN;
	tl.room--;
	PROP_CHECK(slot < NB_QPS && bound[slot]);
	PROP_CHECK(req->type != SAN_TL_PULL || req->length <= PULL_PIECE);
	tl.txns[tl.tail] = (struct san_tl_txn){.req = *req, .slot = slot};
	tl.tail++;
	return 0;
}

uint32_t
san_tl_initiator_plain_room(const struct san_tl *unused, uint16_t slot, uint32_t n)
{
	return RTE_MIN(n, RTE_MIN(tl.room, MAX_WRS - tl.tail));
}

uint32_t
san_tl_initiator_plain_submit(struct san_tl *unused, uint16_t slot,
			      const struct san_tl_req *const req[], uint32_t n)
{
	uint32_t k = 0;

	PROP_CHECK(n != 0 && n <= tl.room);
	while (k < n && req[k]->type == SAN_TL_PUSH &&
	       san_tl_initiator_submit(unused, slot, req[k], 0) == 0)
		k++;
	return k;
}

void
san_tl_want_end(struct san_tl *unused, uint16_t slot)
{
	PROP_CHECK(slot < NB_QPS && bound[slot]);
}

void
san_tl_on_recv_posted(struct san_tl *unused, uint16_t slot, uint64_t now_ns)
{
	PROP_CHECK(slot < NB_QPS && bound[slot]);
}

static uint32_t
secret32(void *arg)
{
	return (uint32_t)san_prng_u64(&prng);
}

static void
poll_some(uint32_t n)
{
	struct san_ulp_wc wc[32];

	for (uint32_t k = 0; k < 2; k++) {
		uint32_t got = san_ulp_cq_poll(cq[k], wc, n);

		for (uint32_t i = 0; i < got; i++) {
			struct item *it = &items[wc[i].wr_id];

			PROP_CHECK(wc[i].wr_id < nb_items);
			PROP_CHECK(!it->done);
			PROP_CHECK(qps[it->qp] == wc[i].qp);
			PROP_CHECK(it->is_recv == (wc[i].op >= RTSAN_WC_RECV));
			PROP_CHECK(it->is_recv || wc[i].status != SAN_ST_OK || !it->silent);
			it->done = true;
			if (!it->is_recv) {
				PROP_CHECK((int64_t)wc[i].wr_id > last_wr[it->qp]);
				last_wr[it->qp] = (int64_t)wc[i].wr_id;
			}
		}
	}
}

static void
post(uint32_t i)
{
	struct san_ulp_wr wr[4] = {0};
	uint32_t k, id, n = RTE_MIN(MAX_WRS - nb_items, 1 + san_prng_below(&prng, 4));

	for (k = 0; k < n; k++) {
		id = nb_items + k;
		wr[k].op = (uint8_t)(1 + san_prng_below(&prng, 6));
		wr[k].wr_id = id;
		wr[k].imm = id; /* so that the transaction tells whose it is */
		wr[k].flags = san_prng_below(&prng, 2) ? RTSAN_WR_SIGNALED : 0;
		wr[k].length = san_prng_below(&prng, 60);
		items[id] = (struct item){.qp = i, .silent = wr[k].flags == 0};
	}
	nb_items += san_ulp_wr_post(ulp, qps[i], wr, n, 0);
}

static void
post_recv(uint32_t i)
{
	static uint8_t mem[64];
	struct san_ulp_recv r = {.wr_id = nb_items, .nb_sge = 1, .sge = {{mem, 32, 0}}};

	if (nb_items == MAX_WRS)
		return;
	items[nb_items] = (struct item){.qp = i, .is_recv = true};
	nb_items += san_ulp_qp_post_recv(ulp, qps[i], &r, 1, 0);
}

static void
cmpl(struct san_tl_txn *t, uint8_t status)
{
	PROP_CHECK(t->req.imm < nb_items);
	if (status != SAN_ST_OK)
		items[t->req.imm].silent = false;
	san_tl_ulp_cmpl(ulp, &t, 1, status);
}

/** tl finishes its oldest transaction. */
static void
complete(uint8_t status)
{
	if (tl.head < tl.tail)
		cmpl(&tl.txns[tl.head++], status);
}

static void
begin_push(uint32_t i)
{
	struct san_tl_rxn *r = &target.r[target.n];
	uint8_t status;

	if (!bound[i] || target.n == MAX_UNDER)
		return;
	*r = (struct san_tl_rxn){.slot = (uint16_t)i, .kind = SAN_KIND_SEND};
	r->length = san_prng_below(&prng, 40);
	r->reserved = san_prng_below(&prng, 2) && san_tl_ulp_reserve(ulp, r->slot);
	status = san_tl_ulp_push_req(ulp, r);
	PROP_CHECK(status == SAN_ST_OK || status == SAN_ST_RNR || r->length > 32);
	target.n += status == SAN_ST_OK;
}

static void
end_push(bool abort)
{
	uint32_t i = san_prng_below(&prng, target.n);

	if (target.n == 0)
		return;
	if (abort)
		san_tl_ulp_push_abort(ulp, &target.r[i]);
	else
		PROP_CHECK(san_tl_ulp_push_done(ulp, &target.r[i]) == SAN_ST_OK);
	target.r[i] = target.r[--target.n];
}

/** As the core does: tl completes everything of the connection, then it is unbound. */
static void
disconnect(uint32_t i)
{
	uint32_t keep;

	if (!bound[i])
		return;
	for (uint32_t head = keep = tl.head; head < tl.tail; head++) {
		struct san_tl_txn t = tl.txns[head];

		if (t.slot == i)
			cmpl(&t, RTSAN_WC_FLUSHED);
		else
			tl.txns[keep++] = t;
	}
	tl.tail = keep;
	san_ulp_qp_unbind(ulp, qps[i]);
	bound[i] = false;
	for (uint32_t k = 0; k < target.n;) {
		if (target.r[k].slot == i)
			target.r[k] = target.r[--target.n];
		else
			k++;
	}
}

static void
step(void)
{
	uint32_t i = san_prng_below(&prng, NB_QPS);

	switch (san_prng_below(&prng, 14)) {
	case 0:
		if (!bound[i])
			bound[i] = san_ulp_qp_bind(ulp, qps[i], (uint16_t)i, 1, &peer) == 0;
		break;
	case 1:
		if (san_prng_below(&prng, 4) == 0)
			disconnect(i);
		break;
	case 2:
	case 3:
	case 4:
		post(i);
		break;
	case 5:
	case 6:
		post_recv(i);
		break;
	case 7:
	case 8:
		complete(san_prng_below(&prng, 6) == 0 ? SAN_ST_ACCESS : SAN_ST_OK);
		break;
	case 9:
		tl.room = san_prng_below(&prng, 8);
		if (bound[i] && tl.room > 0)
			san_tl_ulp_room(ulp, (uint16_t)i);
		break;
	case 10:
		begin_push(i);
		break;
	case 11:
		end_push(san_prng_below(&prng, 3) == 0);
		break;
	case 12:
		poll_some(san_prng_below(&prng, 8));
		break;
	default:
		san_ulp_qp_pump(ulp, 0);
		break;
	}
	san_ulp_check(ulp);
}

static void
setup(void)
{
	struct san_ulp_conf conf;
	struct san_ulp_qp_conf qp_conf = {.sq_depth = 8, .rq_depth = 8};

	san_ulp_conf_default(&conf);
	conf.max_conns = NB_QPS;
	conf.pull_piece = PULL_PIECE;
	conf.secret32 = secret32;
	PROP_CHECK(san_ulp_create(&conf, &ulp) == 0);
	PROP_CHECK(san_ulp_cq_create(ulp, 1u << san_prng_below(&prng, 5), &cq[0]) == 0);
	PROP_CHECK(san_ulp_cq_create(ulp, 1u << san_prng_below(&prng, 5), &cq[1]) == 0);
	for (uint32_t i = 0; i < NB_QPS; i++) {
		qp_conf.send_cq = cq[san_prng_below(&prng, 2)];
		qp_conf.recv_cq = cq[san_prng_below(&prng, 2)];
		PROP_CHECK(san_ulp_qp_create(ulp, &qp_conf, &qps[i]) == 0);
		bound[i] = false;
		last_wr[i] = -1;
	}
	nb_items = 0;
	memset(&tl, 0, sizeof(tl));
	target.n = 0;
}

static void
run(uint64_t seed)
{
	san_prng_seed(&prng, seed);
	setup();
	for (uint32_t i = 0; i < NB_STEPS; i++)
		step();
	/* the end of all connections: everything that was taken must come out */
	for (uint32_t i = 0; i < NB_QPS; i++) {
		if (!bound[i])
			bound[i] = san_ulp_qp_bind(ulp, qps[i], (uint16_t)i, 1, &peer) == 0;
		disconnect(i);
	}
	for (uint32_t i = 0; i < 200; i++) {
		poll_some(32);
		san_ulp_qp_pump(ulp, 0);
	}
	for (uint32_t i = 0; i < NB_QPS; i++) {
		PROP_CHECK(san_ulp_qp_is_idle(ulp, qps[i]));
		PROP_CHECK(san_ulp_qp_destroy(ulp, qps[i]) == 0);
	}
	for (uint32_t i = 0; i < nb_items; i++)
		PROP_CHECK(items[i].done || items[i].silent);
	san_ulp_check(ulp);
	san_ulp_destroy(ulp);
}

PROP_MAIN("every work request completes once", run)
