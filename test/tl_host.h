/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Two hosts, each packet delivery and transactions without anything around
 * them, for tests: the test is the ULP, the link and the clock. A packet is an
 * mbuf with its header in host order in the private area, as after parsing.
 */

#include <errno.h>

#include <rte_hash.h>

#include "pdl.h"
#include "san_assert.h"
#include "san_prng.h"
#include "unit/test_eal.h"
#include "tl_priv.h"

#define TL_HOST_CONNS 8

struct tl_host {
	struct san_pdl *pdl;
	struct san_tl *tl;
	struct san_death_row death;
	struct rte_hash *cam;
	struct rte_mempool *pool;
	struct san_prng secret;
	uint8_t side;
};

struct tl_pkt {
	struct rte_mbuf *m;
	const struct san_wire_path *path; /**< that it is sent on */
	struct san_wire_ack ack;
};

/** What the two sides of one connection agree on. */
struct tl_link {
	uint8_t net; /* of the peer: other hosts are in other ones */
	bool ordered, relaxed, pack;
	uint16_t req_win, data_win, msg_limit, n, mtu, rnr_ms;
	uint32_t first_rsn;
};

static inline struct rte_mempool *
tl_host_pool(unsigned int n)
{
	struct rte_mempool *pool;

	test_eal_init();
	pool = rte_pktmbuf_pool_create("tl_host", n, 0, SAN_PKT_PRIV_SIZE,
				       RTE_PKTMBUF_HEADROOM + 2048, SOCKET_ID_ANY);
	SAN_VERIFY(pool != NULL);
	return pool;
}

static inline uint32_t
tl_host_secret32(void *arg)
{
	return (uint32_t)(san_prng_u64(arg) >> 32);
}

/** Few connections, small pools, PSNs that wrap early (RT-3). */
static inline void
tl_host_conf(struct san_pdl_conf *pdl, struct san_tl_conf *tl)
{
	san_pdl_conf_default(pdl);
	pdl->max_conns = TL_HOST_CONNS;
	pdl->prng_seed = 7;
	pdl->first_psn = 0xfffffff8;
	pdl->fixed_psn = true;
	san_tl_conf_default(tl);
	tl->max_conns = TL_HOST_CONNS;
	tl->max_txns = 64;
	tl->max_rxns = 64;
}

static inline void
tl_host_create(struct tl_host *h, uint8_t side, const struct san_pdl_conf *pdl,
	       const struct san_tl_conf *tl, struct rte_mempool *pool, uint64_t now_ns)
{
	struct san_pdl_conf pdl_conf = *pdl;
	struct san_tl_conf tl_conf = *tl;

	memset(h, 0, sizeof(*h));
	h->side = side;
	h->pool = pool;
	san_prng_seed(&h->secret, 42 + side);
	pdl_conf.secret32 = tl_host_secret32;
	pdl_conf.secret_arg = &h->secret;
	SAN_VERIFY(san_pdl_create(&pdl_conf, now_ns, &h->pdl) == 0);
	h->cam = tl_conf.cam;
	tl_conf.engine = side;
	SAN_VERIFY(san_tl_create(&tl_conf, h->pdl, &h->death, &h->tl) == 0);
}

static inline void
tl_host_destroy(struct tl_host *h)
{
	san_tl_death_flush(&h->death);
	san_tl_destroy(h->tl);
	san_pdl_destroy(h->pdl);
}

/** Connect the hosts; returns the slots. */
static inline void
tl_host_connect(struct tl_host *h[2], const struct tl_link *l, uint16_t slot[2], uint64_t now_ns)
{
	struct san_pdl_conn *c[2];

	for (int i = 0; i < 2; i++) {
		SAN_VERIFY(san_pdl_conn_add(h[i]->pdl, &c[i]) == 0);
		c[i]->pkey = 0x8001;
		c[i]->path.src = (struct san_ip){{[10] = 0xff, 0xff, 10, 0, 0, h[i]->side + 1}};
		c[i]->path.dst = c[i]->path.src;
		c[i]->path.dst.b[14] = l->net;
		c[i]->path.dst.b[15] = h[1 - i]->side + 1;
		slot[i] = c[i]->slot;
	}
	for (int i = 0; i < 2; i++) {
		const struct san_pdl_peer pp = {
			.dcid = c[1 - i]->cid,
			.dtag = c[1 - i]->tag,
			.req_psn = c[1 - i]->tx[SAN_WIN_REQ].next,
			.data_psn = c[1 - i]->tx[SAN_WIN_DATA].next,
			.mtu = l->mtu,
			.tx_req_win = l->req_win,
			.tx_data_win = l->data_win,
			.first_win = (uint16_t)(l->req_win + l->data_win + 1),
			.msg_limit = l->msg_limit,
			.ordered = l->ordered,
			.relaxed = l->relaxed,
		};
		const struct san_tl_peer tp = {
			.ordered = l->ordered,
			.relaxed = l->relaxed,
			.pack = l->pack,
			.first_rsn_tx = l->first_rsn + (uint32_t)i,
			.first_rsn_rx = l->first_rsn + 1 - (uint32_t)i,
			.n_tx = l->n,
			.n_rx = l->n,
			.rnr_tx_ms = l->rnr_ms,
			.rnr_rx_ms = l->rnr_ms,
		};

		san_pdl_conn_open(h[i]->pdl, c[i], &pp, l->req_win, l->data_win, now_ns);
		san_tl_conn_prepare(h[i]->tl, slot[i], tp.ordered);
		san_tl_conn_open(h[i]->tl, slot[i], &tp);
	}
}

/* ---- sending, as the core does ---- */

static inline void
tl_host_finish(const struct san_pdl_conn *c, struct san_wire_pkt *p, struct tl_pkt *out)
{
	out->path = &c->path;
	p->src = c->path.src;
	p->dst = c->path.dst;
	p->payload_len = (uint16_t)rte_pktmbuf_pkt_len(out->m);
	san_wire_pkt(out->m)->w = *p;
}

static inline struct rte_mbuf *
tl_host_mbuf(struct tl_host *h)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(h->pool);

	SAN_VERIFY(m != NULL);
	return m;
}

static inline uint32_t
tl_host_tx_conn(struct tl_host *h, struct san_pdl_conn *c, struct tl_pkt *out, uint32_t n,
		uint64_t now_ns)
{
	struct san_pdl_entry *again, e;
	struct san_pdl_room room;
	struct san_wire_pkt p;
	bool has_room = false;
	uint32_t k;

	for (k = 0; k < n; k++) {
		again = has_room ? NULL : san_pdl_tx_again(h->pdl, c, now_ns);
		if (again != NULL) {
			e = *again;
		} else {
			if (!has_room)
				san_pdl_tx_room(h->pdl, c, now_ns, &room);
			has_room = true;
			memset(&e, 0, sizeof(e));
			if (!san_tl_tx_next(h->tl, c, &room, &e, now_ns))
				break;
			san_pdl_tx_assign(h->pdl, c, &e, now_ns);
		}
		memset(&p, 0, sizeof(p));
		out[k].m = tl_host_mbuf(h);
		san_tl_tx_fill(h->tl, c, &e, out[k].m, &p);
		p.psn = e.psn;
		san_pdl_tx_header(h->pdl, c, &p, now_ns);
		tl_host_finish(c, &p, &out[k]);
	}
	san_pdl_sched_end(h->pdl, c, k == n);
	san_pdl_conn_arm(h->pdl, c);
	return k;
}

/** NACKs, data, ACKs: at most *n*. */
static inline uint32_t
tl_host_tx(struct tl_host *h, struct tl_pkt *out, uint32_t n, uint64_t now_ns)
{
	struct san_pdl_conn *c;
	struct san_wire_pkt p;
	uint32_t k = 0;
	uint16_t slot;

	memset(&p, 0, sizeof(p));
	while (k < n && san_tl_nack_next(h->tl, &slot, &p)) {
		c = &h->pdl->conns[slot];
		out[k].m = tl_host_mbuf(h);
		san_pdl_tx_header(h->pdl, c, &p, now_ns);
		tl_host_finish(c, &p, &out[k++]);
		memset(&p, 0, sizeof(p));
	}
	while (k < n && (c = san_pdl_sched_next(h->pdl)) != NULL)
		k += tl_host_tx_conn(h, c, &out[k], RTE_MIN(n - k, 8u), now_ns);
	while (k < n && (c = san_pdl_ack_next(h->pdl)) != NULL) {
		memset(&p, 0, sizeof(p));
		out[k].m = tl_host_mbuf(h);
		san_pdl_ack_fill(h->pdl, c, &p, &out[k].ack, now_ns);
		san_pdl_conn_arm(h->pdl, c);
		tl_host_finish(c, &p, &out[k++]);
	}
	return k;
}

/* ---- receiving and time, as the core does ---- */

static inline enum san_drop
tl_host_rx(struct tl_host *h, struct tl_pkt *k, uint64_t now_ns)
{
	struct san_wire_pkt *p = &san_wire_pkt(k->m)->w;
	struct san_pdl_conn *c = NULL;
	enum san_drop drop;

	drop = san_pdl_rx_check(h->pdl, p, p->op == SAN_OP_ACK ? &k->ack : NULL, now_ns, &c);
	if (drop == SAN_DROP_NONE || drop == SAN_DROP_OLD || drop == SAN_DROP_DUPLICATE ||
	    drop == SAN_DROP_BEYOND)
		san_tl_on_ack(h->tl, c, now_ns);
	if (drop == SAN_DROP_NONE &&
	    (p->op == SAN_OP_NACK || san_pdl_rx_win_of(p->op, p->flags) != SAN_WIN_MAX)) {
		drop = san_tl_rx(h->tl, c, k->m, now_ns);
	} else {
		san_tl_death_add(&h->death, k->m);
	}
	if (c != NULL)
		san_pdl_conn_arm(h->pdl, c);
	san_tl_death_flush(&h->death);
	return drop;
}

/** Timers that are due. False: the retries of a connection are exhausted. */
static inline bool
tl_host_tick(struct tl_host *h, uint64_t now_ns)
{
	struct san_timer *t;
	bool ok = true;

	while ((t = san_wheel_poll(&h->pdl->wheel, now_ns)) != NULL) {
		struct san_pdl_conn *c = container_of(t, struct san_pdl_conn, timer);

		san_pdl_rtx_on_timer(h->pdl, c, now_ns);
		ok = ok && !c->failed;
		san_tl_on_timer(h->tl, c, now_ns);
		san_pdl_conn_arm(h->pdl, c);
	}
	san_tl_tick(h->tl, now_ns);
	san_tl_death_flush(&h->death);
	return ok;
}

static inline uint64_t
tl_host_deadline_ns(const struct tl_host *h)
{
	return san_pdl_sched_has_work(h->pdl) || h->tl->nack_head != h->tl->nack_tail ?
		0 :
		san_wheel_deadline_ns(&h->pdl->wheel);
}

/** Give up the request with this cookie, at any time: a ULP never asks for that. */
static inline int
tl_host_abort(struct tl_host *h, uint16_t slot, uint64_t cookie)
{
	struct san_tl_conn *tc = &h->tl->conns[slot];
	struct san_tl_txn *t;

	for (uint32_t rsn = tc->rsn_base; tc->open && rsn != tc->rsn_next; rsn++) {
		t = san_tl_txn_at(tc, rsn);
		if (t == NULL || t->req.cookie != cookie || t->state == SAN_TXN_DONE)
			continue;
		san_tl_nack_txn_abort(h->tl, tc, t, SAN_ST_ABORTED);
		return 0;
	}
	return -ENOENT;
}

/** A deep copy of a packet: a duplicate. */
static inline struct rte_mbuf *
tl_host_copy(struct tl_host *h, const struct rte_mbuf *m)
{
	struct rte_mbuf *d;

	/* it refuses to copy nothing */
	d = m->pkt_len != 0 ? rte_pktmbuf_copy(m, h->pool, 0, UINT32_MAX) : tl_host_mbuf(h);
	SAN_VERIFY(d != NULL);
	san_wire_pkt(d)->w = san_wire_pkt((struct rte_mbuf *)(uintptr_t)m)->w;
	return d;
}
