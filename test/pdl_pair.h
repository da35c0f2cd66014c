/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Two packet delivery instances with one open connection between them, for
 * tests: side 0 and side 1. No link: the test carries the packets, and time is
 * what it says.
 */

#include <stdlib.h>
#include <string.h>

#include "pdl_priv.h"
#include "san_prng.h"

struct pair {
	struct san_pdl *pdl[2];
	struct san_pdl_conn *c[2];
	uint64_t now;
};

struct pair_pkt {
	struct san_wire_pkt p;
	struct san_wire_ack ack;
};

static inline uint32_t
pair_secret32(void *arg)
{
	return (uint32_t)(san_prng_u64(arg) >> 32);
}

static struct san_prng pair_secret;

/** Defaults, few connections, PSNs that wrap within the first dozen packets (RT-3). */
static inline struct san_pdl_conf
pair_conf(void)
{
	struct san_pdl_conf conf;

	san_pdl_conf_default(&conf);
	conf.max_conns = 4;
	conf.secret32 = pair_secret32;
	conf.secret_arg = &pair_secret;
	conf.prng_seed = 7;
	conf.first_psn = 0xfffffff8;
	conf.fixed_psn = true;
	return conf;
}

static inline struct san_ip
pair_ip(uint8_t host)
{
	return (struct san_ip){{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, host}};
}

static inline struct san_pdl_peer
pair_peer(const struct san_pdl_conn *peer, uint16_t req_win, uint16_t data_win)
{
	return (struct san_pdl_peer){
		.dcid = peer->cid,
		.dtag = peer->tag,
		.req_psn = peer->tx[SAN_WIN_REQ].next,
		.data_psn = peer->tx[SAN_WIN_DATA].next,
		.mtu = 1024,
		.tx_req_win = req_win,
		.tx_data_win = data_win,
		.first_win = (uint16_t)(req_win + data_win + 1),
		.msg_limit = 64,
		.nb_ports = 4,
		.ports = {50001, 50002, 50003, 50004},
		.ordered = true,
	};
}

/** A connection between the two instances; *host* tells several apart. */
static inline void
pair_connect(struct pair *t, uint16_t req_win, uint16_t data_win)
{
	struct san_pdl_peer peer;

	for (int i = 0; i < 2; i++) {
		SAN_VERIFY(san_pdl_conn_add(t->pdl[i], &t->c[i]) == 0);
		t->c[i]->pkey = 0x8001;
		t->c[i]->path.src = pair_ip((uint8_t)(1 + i));
		t->c[i]->path.dst = pair_ip((uint8_t)(2 - i));
	}
	for (int i = 0; i < 2; i++) {
		peer = pair_peer(t->c[1 - i], req_win, data_win);
		san_pdl_conn_open(t->pdl[i], t->c[i], &peer, req_win, data_win, t->now);
	}
}

static inline void
pair_open(struct pair *t, const struct san_pdl_conf *conf, uint16_t req_win, uint16_t data_win)
{
	san_prng_seed(&pair_secret, 42);
	t->now = 1000000;
	SAN_VERIFY(san_pdl_create(conf, t->now, &t->pdl[0]) == 0);
	SAN_VERIFY(san_pdl_create(conf, t->now, &t->pdl[1]) == 0);
	pair_connect(t, req_win, data_win);
}

static inline void
pair_close(struct pair *t)
{
	san_pdl_check(t->pdl[0]);
	san_pdl_check(t->pdl[1]);
	san_pdl_destroy(t->pdl[0]);
	san_pdl_destroy(t->pdl[1]);
}

/** The connection goes, and its slot with it. */
static inline void
pair_del(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	san_pdl_conn_del(pdl, c);
	san_pdl_slot_give(pdl, c->slot);
}

/** The packet of entry *e*, as it would arrive. */
static inline void
pair_build(struct pair *t, int side, const struct san_pdl_entry *e, struct pair_pkt *k)
{
	memset(k, 0, sizeof(*k));
	k->p.op = e->op;
	k->p.flags = e->flags;
	k->p.status = e->status;
	k->p.rsn = e->rsn;
	k->p.psn = e->psn;
	k->p.offset = e->offset;
	k->p.payload_len = e->len;
	san_pdl_tx_header(t->pdl[side], t->c[side], &k->p, t->now);
	k->p.src = t->c[side]->path.src;
}

/** One new packet if there is room for it; visits like the core does. */
static inline bool
pair_send(struct pair *t, int side, uint8_t op, uint32_t rsn, struct pair_pkt *k)
{
	struct san_pdl *pdl = t->pdl[side];
	struct san_pdl_conn *c = t->c[side];
	struct san_pdl_entry e = {.op = op, .rsn = rsn, .len = 100};
	struct san_pdl_room room;
	enum san_win win;
	bool ok;

	e.flags = op == SAN_OP_RESYNC ? SAN_F_WIN_DATA : 0;
	win = san_pdl_rx_win_of(op, e.flags);
	san_pdl_tx_room(pdl, c, t->now, &room);
	ok = (win == SAN_WIN_REQ ? room.nb_req : room.nb_data) > 0 &&
		(!san_pdl_is_counted(op) || room.nb_credit > 0);
	if (ok) {
		san_pdl_tx_assign(pdl, c, &e, t->now);
		pair_build(t, side, &e, k);
	}
	san_pdl_sched_end(pdl, c, false);
	return ok;
}

/** One packet that must go again, if any may. */
static inline bool
pair_again(struct pair *t, int side, struct pair_pkt *k)
{
	struct san_pdl_entry *e = san_pdl_tx_again(t->pdl[side], t->c[side], t->now);

	if (e != NULL)
		pair_build(t, side, e, k);
	san_pdl_sched_end(t->pdl[side], t->c[side], false);
	return e != NULL;
}

/** The ACK, PROBE or CNP that *side* owes now, if any. */
static inline bool
pair_owed(struct pair *t, int side, struct pair_pkt *k)
{
	struct san_pdl_conn *c;

	san_pdl_ack_release(t->pdl[side], t->now);
	c = san_pdl_ack_next(t->pdl[side]);
	if (c == NULL)
		return false;
	memset(k, 0, sizeof(*k));
	san_pdl_ack_fill(t->pdl[side], c, &k->p, &k->ack, t->now);
	k->p.src = c->path.src;
	return true;
}

/** Arrival at *side*. What is taken gets *verdict*. */
static inline enum san_drop
pair_recv(struct pair *t, int side, const struct pair_pkt *k, enum san_verdict verdict)
{
	struct san_wire_pkt p = k->p;
	struct san_pdl_conn *c;
	enum san_drop drop;

	drop = san_pdl_rx_check(t->pdl[side], &p, p.op == SAN_OP_ACK ? &k->ack : NULL, t->now, &c);
	if (drop == SAN_DROP_NONE && san_pdl_rx_win_of(p.op, p.flags) != SAN_WIN_MAX)
		san_pdl_rx_commit(t->pdl[side], c, &p, verdict, t->now);
	return drop;
}

/** Let *ns* pass and fire what becomes due, in order. */
static inline void
pair_pass(struct pair *t, uint64_t ns)
{
	uint64_t end = t->now + ns;

	while (t->now < end) {
		uint64_t next = san_time_min(san_wheel_deadline_ns(&t->pdl[0]->wheel),
					     san_wheel_deadline_ns(&t->pdl[1]->wheel));
		struct san_timer *timer;

		t->now = san_time_min(end, RTE_MAX(next, t->now + 1));
		for (int i = 0; i < 2; i++) {
			while ((timer = san_wheel_poll(&t->pdl[i]->wheel, t->now)) != NULL) {
				struct san_pdl_conn *c =
					container_of(timer, struct san_pdl_conn, timer);

				san_pdl_rtx_on_timer(t->pdl[i], c, t->now);
				san_pdl_conn_arm(t->pdl[i], c);
			}
		}
	}
}

/** What side 0 has sent times out, although the peer was heard since: it is lost. */
static inline void
pair_lose(struct pair *t)
{
	uint64_t rto_ns = t->pdl[0]->conf.rto_init_ns;

	pair_pass(t, rto_ns / 4 * 3);
	t->c[0]->last_rx_ns = t->now;
	pair_pass(t, rto_ns);
}

/** *side* reports what it received and the other takes it; false: nothing owed. */
static inline bool
pair_report(struct pair *t, int side)
{
	struct pair_pkt k;

	if (!pair_owed(t, side, &k))
		return false;
	return pair_recv(t, 1 - side, &k, SAN_RX_REFUSED) == SAN_DROP_NONE;
}

/** *side* holds *level* packets of the other one, and has room for a thousand more. */
static inline void
pair_hold(struct pair *t, int side, uint32_t level)
{
	t->pdl[side]->uses[0].nb_held = level;
	t->pdl[side]->rx_free = 1000;
	t->pdl[side]->rx_level = 1;
}
