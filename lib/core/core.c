/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The complete protocol of one lcore. This file only moves data between the layers: pdl for PSNs,
 * tl for transactions, ulp for bytes, cm for connections. No layer calls a layer above, except that
 * tl calls its ULP.
 */

#include <string.h>

#include "core_priv.h"
#include "san_assert.h"

#define PREFETCH_AHEAD 4   /* packets: parsing them takes about the memory latency of a header */
#define CONN_HOT       768 /* used bytes of struct san_pdl_conn: windows, timers, not counters */

/* ---- construction ---- */

void
san_core_conf_default(struct san_core_conf *conf, uint32_t max_conns, uint16_t mtu)
{
	memset(conf, 0, sizeof(*conf));
	san_pdl_conf_default(&conf->pdl);
	san_tl_conf_default(&conf->tl);
	san_cm_conf_default(&conf->cm);
	san_ulp_conf_default(&conf->ulp);
	san_inet_conf_default(&conf->inet);
	conf->pdl.max_conns = max_conns;
	conf->ulp.max_qps = max_conns;
	conf->udp_port = SAN_WIRE_PORT;
	conf->stream_mem = 64ull << 20;
	conf->stream_mem_user = conf->stream_mem / 4 * 3;
	conf->linger_ns = 60 * SAN_NS_PER_S;
	conf->mtu = mtu;
	conf->express = true;
}

static int
create_layers(struct san_core *core, uint64_t now_ns)
{
	struct san_core_conf *conf = &core->conf;
	int rc;

	conf->pdl.mem = conf->ulp.mem = conf->tl.mem = conf->cm.mem = conf->mem;
	rc = san_pdl_create(&conf->pdl, now_ns, &core->pdl);
	if (rc != 0)
		return rc;
	conf->ulp.max_conns = conf->pdl.max_conns;
	rc = san_ulp_create(&conf->ulp, &core->ulp);
	if (rc != 0)
		return rc;
	conf->tl.max_conns = conf->pdl.max_conns;
	conf->tl.ulp = core->ulp;
	conf->tl.express = conf->express;
	rc = san_tl_create(&conf->tl, core->pdl, &core->death, &core->tl);
	if (rc != 0)
		return rc;
	san_ulp_set_tl(core->ulp, core->tl);
	conf->cm.max_conns = conf->pdl.max_conns;
	rc = san_cm_create(&conf->cm, core->pdl, &core->cm);
	if (rc != 0)
		return rc;
	core->express = (struct san_express){
		.is_on = conf->express,
		.udp_port = conf->udp_port,
		.pdl = core->pdl,
		.tl = core->tl,
		.ulp = core->ulp,
	};
	conf->inet.pool = conf->pool;
	conf->inet.mtu = conf->mtu;
	if (conf->max_socks == 0)
		conf->inet.max_partial = 0; /* the transport does not use fragments */
	conf->inet.prng_seed = ~conf->pdl.prng_seed;
	rc = san_inet_create(&conf->inet, &core->inet);
	if (rc != 0 || conf->max_socks == 0)
		return rc;
	return san_sock_table_create(conf->mem, conf->max_socks, &core->socks);
}

/* Direct the posts of socket streams to *core*, in this process. */
static void
set_sock_work(struct san_core *core)
{
	const struct san_sock_work work = {
		.post = san_core_post,
		.post_recv = san_core_post_recv,
		.set_timeouts = san_core_conn_set_timeouts,
		.core = core,
	};

	if (core->socks != NULL)
		san_sock_stream_set_work(core->socks, &work);
}

int
san_core_create(const struct san_core_conf *conf, uint64_t now_ns, struct san_core **out)
{
	struct san_mem *mem = conf->mem;
	struct san_core *core;
	uint32_t i;
	int rc;

	if (conf->mtu < 1024 || conf->mtu > 9000 || conf->pool == NULL)
		return -EINVAL;
	core = san_mem_aligned(mem, sizeof(*core));
	if (core == NULL)
		return -ENOMEM;
	core->conf = *conf;
	TAILQ_INIT(&core->stream_work);
	san_wheel_init(&core->stream_wheel, now_ns);
	core->slot_of_qp = san_mem_calloc(mem, conf->ulp.max_qps, sizeof(*core->slot_of_qp));
	core->draining = san_mem_calloc(mem, conf->pdl.max_conns, sizeof(*core->draining));
	core->streams = san_mem_calloc(mem, conf->ulp.max_qps, sizeof(core->streams[0]));
	rc = -ENOMEM;
	if (core->slot_of_qp != NULL && core->draining != NULL && core->streams != NULL) {
		for (i = 0; i < conf->ulp.max_qps; i++)
			core->slot_of_qp[i] = NO_SLOT;
		rc = create_layers(core, now_ns);
	}
	if (rc != 0) {
		san_core_destroy(core);
		return rc;
	}
	set_sock_work(core);
	*out = core;
	return 0;
}

void
san_core_destroy(struct san_core *core)
{
	struct san_mem *mem;
	uint32_t slot;

	if (core == NULL)
		return;
	mem = core->conf.mem;
	for (slot = 0; core->tl != NULL && slot < core->conf.pdl.max_conns; slot++)
		san_tl_conn_close(core->tl, (uint16_t)slot, RTSAN_WC_FLUSHED, 0);
	if (core->use.nb != 0)
		san_core_stream_fini_all(core);
	san_tl_death_flush(&core->death);
	san_visit_spare_empty(&core->spare);
	if (core->socks != NULL)
		san_sock_table_destroy(core->socks);
	san_inet_destroy(core->inet);
	san_cm_destroy(core->cm);
	san_tl_destroy(core->tl);
	san_ulp_destroy(core->ulp);
	san_pdl_destroy(core->pdl);
	san_mem_end(mem, core->streams);
	san_mem_end(mem, core->draining);
	san_mem_end(mem, core->slot_of_qp);
	san_mem_end(mem, core);
}

/*
 * ---- handing over a core from one process to another (live restart) ----
 *
 * Its state is in memory that both map at the same address, so nothing is copied or translated. The
 * first process releases what the second cannot use, mbufs and DPDK objects, and the second
 * provides its own. Only the reorder engine holds packets; they are dropped, and peers resend them
 * (RULE-2).
 */

void
san_core_park(struct san_core *core, uint64_t now_ns)
{
	san_tl_park(core->tl, now_ns);
	san_tl_death_flush(&core->death);
	san_visit_spare_empty(&core->spare);
	san_inet_destroy(core->inet);
	core->inet = NULL;
}

bool
san_core_park_lies_in(const struct san_core *core, const struct san_mem *mem)
{
	if (!san_mem_has(mem, core, sizeof(*core)))
		return false;
	return san_mem_has(mem, core->pdl, 1) && san_mem_has(mem, core->tl, 1) &&
		san_mem_has(mem, core->cm, 1) && san_mem_has(mem, core->ulp, 1) &&
		(core->socks == NULL || san_mem_has(mem, core->socks, 1));
}

int
san_core_park_resume(struct san_core *core, const struct san_core_conf *conf)
{
	const struct rte_ether_addr old = core->conf.inet.mac;
	int rc;

	core->conf.pool = core->conf.inet.pool = conf->pool;
	core->conf.inet.mac = conf->inet.mac;
	core->inet_deadline_ns = 0;
	core->inet = NULL;
	rc = san_pdl_resume(core->pdl, &conf->pdl);
	if (rc == 0)
		rc = san_inet_create(&core->conf.inet, &core->inet);
	if (rc == 0)
		rc = san_tl_park_resume(core->tl, &conf->tl);
	if (rc != 0) {
		san_inet_destroy(core->inet);
		core->inet = NULL;
		return rc;
	}
	san_pdl_set_mac(core->pdl, &old, &conf->inet.mac);
	set_sock_work(core);
	san_ulp_resume(core->ulp, &conf->ulp);
	san_core_stream_resume_all(core);
	san_cm_resume(core->cm, &conf->cm);
	return 0;
}

/* ---- receive ---- */

static enum san_drop
rx_transport(struct san_core *core, struct rte_mbuf *m, const struct san_wire_ack *ack,
	     uint64_t now_ns)
{
	struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_pdl_conn *c = NULL;
	enum san_drop drop;

	drop = san_pdl_rx_check(core->pdl, p, ack, now_ns, &c);
	if (drop == SAN_DROP_STATE && p->op != SAN_OP_CNP &&
	    san_cm_rx_implicit_rtu(core->cm, c->slot, now_ns)) {
		san_core_conn_cm_events(core, now_ns);
		drop = san_pdl_rx_check(core->pdl, p, ack, now_ns, &c);
	}
	if (drop == SAN_DROP_CID || drop == SAN_DROP_TAG)
		san_cm_rx_answer_reset(core->cm, p, now_ns);
	if (drop == SAN_DROP_NONE || drop == SAN_DROP_OLD || drop == SAN_DROP_DUPLICATE ||
	    drop == SAN_DROP_BEYOND)
		san_tl_on_ack(core->tl, c, now_ns);
	if (drop == SAN_DROP_NONE &&
	    (p->op == SAN_OP_NACK || san_pdl_rx_win_of(p->op, p->flags) != SAN_WIN_MAX)) {
		drop = san_tl_rx(core->tl, c, m, now_ns);
	} else {
		if (drop == SAN_DROP_DUPLICATE || drop == SAN_DROP_OLD ||
		    (drop == SAN_DROP_NONE && p->op == SAN_OP_PROBE))
			san_core_mac_follow_deaf(core, c, m, now_ns);
		san_tl_death_add(&core->death, m);
	}
	return drop;
}

static enum san_drop
rx_inet(struct san_core *core, struct rte_mbuf *m, uint64_t now_ns)
{
	struct san_inet_result r;
	enum san_drop drop;

	drop = san_inet_ip_rx(core->inet, m, now_ns, &r);
	core->inet_deadline_ns = 0;
	/* Take only addresses that were requested: other claims are unauthenticated (RT-36). */
	if (r.what == SAN_INET_LEARNED && r.was_pending)
		san_cm_fsm_resolved(core->cm, &r.ip, &r.mac, now_ns);
	if (r.what == SAN_INET_ERROR && core->socks != NULL &&
	    san_sock_dgram_error(core->socks, &r))
		san_inet_path_narrow(core->inet, &r, now_ns);
	if (r.what != SAN_INET_UDP)
		return drop;
	if (core->socks == NULL || san_sock_dgram_rx(core->socks, &r, now_ns) == 0) {
		san_inet_error_refuse(core->inet, &r, now_ns);
		drop = SAN_DROP_INET_UNWANTED;
	}
	san_tl_death_add(&core->death, r.m);
	return drop;
}

static enum san_drop
rx_packet(struct san_core *core, struct rte_mbuf *m, uint64_t now_ns)
{
	struct san_wire_pkt *p = &san_wire_pkt(m)->w;
	struct san_wire_ack *ack = &core->ack_in;
	enum san_drop drop = san_wire_parse(m, core->conf.udp_port, p, ack);

	if (drop == SAN_DROP_NOT_OURS && san_wire_peek_untag(m))
		drop = san_wire_parse(m, core->conf.udp_port, p, ack);
	if (drop == SAN_DROP_NOT_OURS)
		return rx_inet(core, m, now_ns);
	if (drop == SAN_DROP_NONE && !san_inet_route_is_local(core->inet, &p->dst))
		drop = SAN_DROP_NOT_FOR_US;
	if (drop != SAN_DROP_NONE) {
		san_tl_death_add(&core->death, m);
		return drop;
	}
	if (p->op != SAN_OP_CM)
		return rx_transport(core, m, p->op == SAN_OP_ACK ? ack : NULL, now_ns);
	drop = san_cm_rx(core->cm, m, p, now_ns);
	san_core_conn_cm_events(core, now_ns);
	san_tl_death_add(&core->death, m);
	return drop;
}

/*
 * Prefetch the records of a connection in both sublayers: with many connections they are not in the
 * cache. They arrive while packets of another connection are processed.
 */
static inline void
prefetch_conn(const struct san_core *core, uint32_t slot)
{
	const uint8_t *c = (const uint8_t *)&core->pdl->conns[slot];
	const uint8_t *tc = (const uint8_t *)&core->tl->conns[slot];
	uint32_t at;

#pragma GCC unroll 16
	for (at = 0; at < CONN_HOT; at += SAN_LINE)
		rte_prefetch0(c + at);
#pragma GCC unroll 16
	for (at = 0; at < sizeof(core->tl->conns[0]); at += SAN_LINE)
		rte_prefetch0(tc + at);
}

static void
rx_some(struct san_core *core, struct rte_mbuf **pkts, uint16_t n, uint64_t now_ns)
{
	uint32_t cid, next, slot;
	enum san_drop drop;
	uint16_t i, k;

	for (i = 0; i < RTE_MIN(n, PREFETCH_AHEAD); i++)
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], void *));
	cid = san_wire_express_cid_at(pkts[0]);
	for (i = 0; i < n; i += k) {
		if (i + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + PREFETCH_AHEAD], void *));
		next = i + 1 < n ? san_wire_express_cid_at(pkts[i + 1]) : cid;
		slot = next & core->pdl->slot_mask;
		if (next != cid && likely(slot < core->conf.pdl.max_conns))
			prefetch_conn(core, slot);
		k = san_express_rx(&core->express, cid, &pkts[i], n - i, now_ns);
		core->drops[SAN_DROP_NONE] += k;
		if (unlikely(k == 0)) {
			drop = rx_packet(core, pkts[i], now_ns);
			core->drops[drop]++;
			if (drop == SAN_DROP_NONE && san_express_rx_is_data(&core->death, pkts[i]))
				k = san_express_rx_data(&core->express, &pkts[i], n - i, now_ns);
			core->drops[SAN_DROP_NONE] += k++;
		}
		cid = k > 1 && i + k < n ? san_wire_express_cid_at(pkts[i + k]) : next;
	}
}

void
san_core_rx_burst(struct san_core *core, struct rte_mbuf **pkts, uint16_t n, uint64_t now_ns)
{
	uint16_t done;

	for (done = 0; done < n; done += SAN_CORE_BURST)
		rx_some(core, &pkts[done], RTE_MIN(n - done, SAN_CORE_BURST), now_ns);
	/*
	 * Report how full the reorder buffer is, so that peers of a slow receiver send less
	 * (RULE-12).
	 */
	core->pdl->rx_level = 0;
	if (unlikely(core->tl->nb_held != 0)) {
		core->pdl->rx_level = (uint16_t)RTE_MAX(
			core->tl->nb_held * 1000ULL / core->conf.tl.max_held, 1ULL);
		core->pdl->rx_free = RTE_MAX(core->conf.tl.max_held, core->tl->nb_held) -
			core->tl->nb_held;
	}
	san_tl_death_flush(&core->death);
}

/* ---- transmit ---- */

static bool
has_mbuf(struct san_core *core)
{
	if (likely(core->spare.n != 0 || san_visit_spare_fill(&core->spare, core->conf.pool)))
		return true;
	core->drops[SAN_DROP_NO_MBUF]++;
	return false;
}

/* Send the packet of *e*. */
static void
send_entry(struct san_core *core, struct san_visit *v, const struct san_pdl_entry *e,
	   uint64_t now_ns)
{
	struct rte_mbuf *m = san_visit_spare_take(&core->spare);
	struct san_pdl_conn *c = v->c;
	struct san_wire_pkt *p = &v->p;

	p->psn = e->psn;
	san_tl_tx_fill(core->tl, c, e, m, p);
	/* A pull whose region was revoked has no payload any more. */
	if (unlikely(e->len > c->mtu) && rte_pktmbuf_data_len(m) > c->mtu)
		san_wire_build_cut(m, p, c->piece.from, c->piece.len);
	san_visit_add(v, core->pdl, m, now_ns);
}

/* Resend lost packets. False: some are left. */
static bool
tx_again(struct san_core *core, struct san_visit *v, uint64_t now_ns)
{
	const struct san_pdl_entry *e;

	while (v->nb < v->max && has_mbuf(core)) {
		e = san_pdl_tx_again(core->pdl, v->c, now_ns);
		if (e == NULL)
			return true;
		send_entry(core, v, e, now_ns);
	}
	return false;
}

/* Only a connection that is not drained needs another visit when a report makes room. */
static bool
is_drained(const struct san_core *core, struct san_pdl_conn *c)
{
	c->limited = san_tl_has_tx(core->tl, c);
	return !c->limited;
}

/* Send new packets, ordinary ones by express. False: some are left. */
static bool
tx_new(struct san_core *core, struct san_visit *v, uint64_t now_ns)
{
	struct san_pdl_room room;
	struct san_pdl_entry e;
	bool ordinary = true;

	if (is_drained(core, v->c))
		return true;
	san_pdl_tx_room(core->pdl, v->c, now_ns, &room);
	while (v->nb < v->max && has_mbuf(core)) {
		if (!ordinary ||
		    san_express_tx(&core->express, v, &core->spare, &room, now_ns) == 0) {
			ordinary = false;
			memset(&e, 0, sizeof(e));
			if (!san_tl_tx_next(core->tl, v->c, &room, &e, now_ns))
				return true;
			san_pdl_tx_assign(core->pdl, v->c, &e, now_ns);
			send_entry(core, v, &e, now_ns);
		}
		if (is_drained(core, v->c))
			return true;
	}
	return false;
}

/* Visit a connection. Returns the number of packets; -ENOBUFS: no mbuf for the first one. */
static int
tx_conn(struct san_core *core, struct san_pdl_conn *c, struct rte_mbuf **pkts, uint16_t n,
	uint64_t now_ns)
{
	struct san_visit v;
	bool done;

	v.c = c;
	v.pkts = pkts;
	v.nb = 0;
	v.max = RTE_MIN(n, core->conf.pdl.quantum);
	done = tx_again(core, &v, now_ns) && tx_new(core, &v, now_ns);
	/* No packet follows this one soon, so it must ask for its ACK itself (RULE-11). */
	if (done && v.nb != 0)
		san_wire_build_ask_ack(pkts[v.nb - 1]);
	san_pdl_sched_end(core->pdl, c, !done);
	return v.nb == 0 && core->spare.n == 0 ? -ENOBUFS : v.nb;
}

static uint16_t
tx_data(struct san_core *core, struct rte_mbuf **pkts, uint16_t n, uint64_t now_ns)
{
	const struct san_pdl_conn *next;
	struct san_pdl_conn *c;
	uint16_t k = 0;
	int sent;

	while (k < n && (c = san_pdl_sched_next(core->pdl)) != NULL) {
		next = san_pdl_sched_peek(core->pdl);
		if (next != NULL)
			prefetch_conn(core, next->slot);
		sent = tx_conn(core, c, &pkts[k], n - k, now_ns);
		if (sent < 0)
			break; /* no other connection would find an mbuf */
		k += (uint16_t)sent;
	}
	return k;
}

static uint16_t
tx_acks(struct san_core *core, struct rte_mbuf **pkts, uint16_t n, uint64_t now_ns)
{
	struct san_pdl_conn *c;
	struct san_wire_pkt p;
	uint16_t k = 0;
	char *pad;

	san_pdl_ack_release(core->pdl, now_ns);
	while (k < n && !TAILQ_EMPTY(&core->pdl->acks) && has_mbuf(core)) {
		c = san_pdl_ack_next(core->pdl);
		if (c == NULL)
			break;
		pkts[k] = san_visit_spare_take(&core->spare);
		san_pdl_ack_fill(core->pdl, c, &p, &core->ack_out, now_ns);
		if (p.payload_len != 0) { /* a PROBE that tests the path MTU */
			pad = san_wire_payload(pkts[k], p.payload_len);
			SAN_VERIFY(pad != NULL);
			memset(pad, 0, p.payload_len);
		}
		if (p.op == SAN_OP_ACK)
			san_wire_build_ack(pkts[k], &c->path, &p, &core->ack_out);
		else
			san_wire_build(pkts[k], &c->path, &p);
		k++;
	}
	return k;
}

static uint16_t
tx_nacks(struct san_core *core, struct rte_mbuf **pkts, uint16_t n, uint64_t now_ns)
{
	struct san_wire_pkt p;
	uint16_t slot, k = 0;

	while (k < n && san_tl_nack_next(core->tl, &slot, &p)) {
		struct san_pdl_conn *c = &core->pdl->conns[slot];

		if (!has_mbuf(core))
			break; /* the NACK is lost, and the next refused packet causes another */
		pkts[k] = san_visit_spare_take(&core->spare);
		san_pdl_tx_header(core->pdl, c, &p, now_ns);
		san_wire_build(pkts[k], &c->path, &p);
		k++;
	}
	return k;
}

static uint16_t
tx_cm(struct san_core *core, struct rte_mbuf **pkts, uint16_t n, uint64_t now_ns)
{
	struct san_wire_path path;
	struct san_wire_pkt p;
	uint16_t k = 0;

	while (k < n && san_cm_tx_next(core->cm, &path, &p, &core->cm_out, now_ns)) {
		if (rte_is_zero_ether_addr(&path.dst_mac)) {
			core->inet_deadline_ns = 0; /* an address request starts a timer */
			if (san_inet_route_resolve(core->inet, &path.dst, false, now_ns,
						   &path.dst_mac) != 0)
				continue; /* the answer or the next retry queues it again */
			san_cm_fsm_resolved(core->cm, &path.dst, &path.dst_mac, now_ns);
			continue; /* cm has queued it again, with the address */
		}
		if (!has_mbuf(core))
			break;
		pkts[k] = san_visit_spare_take(&core->spare);
		san_wire_cm_build(pkts[k], &path, &p, &core->cm_out);
		k++;
	}
	return k;
}

/** Fill a burst. It is not a part of san_core_tx_burst(), which mostly has nothing to send. */
static __rte_noinline uint16_t
tx_fill(struct san_core *core, struct rte_mbuf **pkts, uint16_t n, uint64_t now_ns)
{
	uint16_t nb_inet, i, k;

	/* If both datagrams and connections have packets, each get one half. */
	nb_inet = san_inet_tx_burst(core->inet, pkts,
				    san_pdl_sched_has_work(core->pdl) ? n / 2 : n);
	k = nb_inet;
	if (unlikely(san_cm_tx_pending(core->cm)))
		k += tx_cm(core, &pkts[k], n - k, now_ns);
	/* NACKs get a quarter at most, which leaves room for data. */
	if (unlikely(san_tl_has_nacks(core->tl)))
		k += tx_nacks(core, &pkts[k], (n - k) / 4, now_ns);
	/* Data goes first, because it carries ACKs. A quarter is left for other ACKs. */
	k += tx_data(core, &pkts[k], (n - k) - (n - k) / 4, now_ns);
	k += tx_acks(core, &pkts[k], n - k, now_ns);
	for (i = nb_inet; i < k; i++)
		san_wire_icrc_seal(pkts[i]);
	return k;
}

uint16_t
san_core_tx_burst(struct san_core *core, struct rte_mbuf **pkts, uint16_t n, uint64_t now_ns)
{
	uint32_t qp;

	if (unlikely(core->use.nb != 0))
		san_core_stream_run_all(core, now_ns);
	if (unlikely(core->socks != NULL) && san_sock_table_has_work(core->socks)) {
		san_sock_dgram_pump(core->socks, core->inet, now_ns);
		core->inet_deadline_ns = 0; /* an address may have been requested */
	}
	san_ulp_qp_pump(core->ulp, now_ns);
	while (unlikely((qp = san_ulp_qp_next_failed(core->ulp)) != SAN_QPN_NONE))
		san_core_conn_abort(core, qp, now_ns);
	if (!san_pdl_sched_has_work(core->pdl) && !san_inet_has_tx(core->inet) &&
	    !san_cm_tx_pending(core->cm) && !san_tl_has_nacks(core->tl) &&
	    now_ns < san_pdl_ack_deadline_ns(core->pdl))
		return 0; /* most rounds */
	return tx_fill(core, pkts, n, now_ns);
}

/* ---- time ---- */

static __rte_noinline void
on_timer(struct san_core *core, struct san_pdl_conn *c, uint64_t now_ns)
{
	san_pdl_rtx_on_timer(core->pdl, c, now_ns);
	if (unlikely((c->odd & SAN_ODD_SILENT) || c->nb_probes != 0) || c->state == SAN_CONN_SETUP)
		san_core_mac_follow_peer(core, c, now_ns);
	if (c->failed)
		san_cm_fsm_failed(core->cm, c->slot,
				  c->too_narrow ? RTSAN_R_PATH_MTU : RTSAN_R_TIMEOUT, now_ns);
	else
		san_tl_on_timer(core->tl, c, now_ns);
	if (now_ns >= core->pdl->grace_ns)
		san_cm_fsm_on_timer(core->cm, c->slot, now_ns);
	san_core_conn_cm_events(core, now_ns);
	if (c->state != SAN_CONN_FREE)
		san_pdl_conn_arm(core->pdl, c);
}

void
san_core_tick(struct san_core *core, uint64_t now_ns)
{
	struct san_timer *t;

	while ((t = san_wheel_poll(&core->pdl->wheel, now_ns)) != NULL)
		on_timer(core, container_of(t, struct san_pdl_conn, timer), now_ns);
	if (unlikely(core->pdl->grace_ns != 0) && now_ns >= core->pdl->grace_ns)
		core->pdl->grace_ns = 0;
	san_tl_tick(core->tl, now_ns);
	if (unlikely(core->use.nb != 0))
		san_core_stream_tick_all(core, now_ns);
	if (core->nb_draining != 0)
		san_core_conn_check_draining(core, now_ns);
	san_core_conn_cm_events(core, now_ns);
	if (now_ns >= core->inet_deadline_ns)
		core->inet_deadline_ns = san_inet_tick(core->inet, now_ns);
	if (core->death.n != 0)
		san_tl_death_flush(&core->death);
}

uint64_t
san_core_deadline_ns(const struct san_core *core)
{
	uint64_t due_ns;

	if (san_pdl_sched_has_work(core->pdl) || san_ulp_qp_has_work(core->ulp) ||
	    core->nb_draining != 0)
		return 0;
	if (core->socks != NULL && san_sock_table_has_work(core->socks))
		return 0;
	due_ns = san_time_min(san_wheel_deadline_ns(&core->pdl->wheel), core->inet_deadline_ns);
	due_ns = san_time_min(due_ns, san_pdl_ack_deadline_ns(core->pdl));
	if (core->use.nb != 0)
		due_ns = san_time_min(due_ns, san_core_stream_deadline_ns(core));
	return due_ns;
}

/* ---- work and connections ---- */

void
san_core_prefetch_qp(const struct san_core *core, uint32_t qp)
{
	uint32_t index = san_ulp_qp_index(&core->conf.ulp, qp);
	uint32_t slot = core->slot_of_qp[index];

	san_ulp_qp_prefetch(core->ulp, index);
	if (slot != NO_SLOT)
		prefetch_conn(core, slot);
}

uint32_t
san_core_post(struct san_core *core, uint32_t qp, const struct san_ulp_wr *wr, uint32_t n,
	      uint64_t now_ns)
{
	struct core_stream *s =
		unlikely(core->use.nb != 0) ? san_core_stream_at(core, qp) : NULL;

	if (unlikely(s != NULL))
		return san_core_stream_post(core, s, wr, n, now_ns);
	return san_ulp_wr_post(core->ulp, qp, wr, n, now_ns);
}

uint32_t
san_core_post_recv(struct san_core *core, uint32_t qp, const struct san_ulp_recv *r, uint32_t n,
		   uint64_t now_ns)
{
	struct core_stream *s =
		unlikely(core->use.nb != 0) ? san_core_stream_at(core, qp) : NULL;

	if (unlikely(s != NULL))
		return san_core_stream_post_recv(core, s, r, n, now_ns);
	return san_ulp_qp_post_recv(core->ulp, qp, r, n, now_ns);
}

/* ---- for owners that configure and show ---- */

struct san_cm *
san_core_cm(struct san_core *core)
{
	return core->cm;
}

struct san_ulp *
san_core_ulp(struct san_core *core)
{
	return core->ulp;
}

struct san_pdl *
san_core_pdl(struct san_core *core)
{
	return core->pdl;
}

struct san_tl *
san_core_tl(struct san_core *core)
{
	return core->tl;
}

struct san_inet *
san_core_inet(struct san_core *core)
{
	core->inet_deadline_ns = 0; /* the caller may give it work */
	return core->inet;
}

struct san_socks *
san_core_socks(struct san_core *core)
{
	return core->socks;
}

void
san_core_drops(const struct san_core *core, uint64_t drops[SAN_DROP_MAX])
{
	const uint64_t *cm = san_cm_drops(core->cm), *inet = san_inet_drops(core->inet);
	int i;

	for (i = 0; i < SAN_DROP_MAX; i++)
		drops[i] = core->drops[i] + core->pdl->drops[i] + core->tl->drops[i] + cm[i] +
			inet[i];
}

void
san_core_check(const struct san_core *core)
{
	san_wheel_check(&core->pdl->wheel);
	san_pdl_check(core->pdl);
	san_tl_check(core->tl);
	san_cm_check(core->cm);
	san_ulp_check(core->ulp);
	san_core_stream_check_all(core);
	SAN_VERIFY(core->death.n == 0);
	SAN_VERIFY(core->nb_draining <= core->conf.pdl.max_conns);
}

uint64_t
san_core_leaks(const struct san_core *core)
{
	struct san_core_pool pools[SAN_CORE_POOLS];
	uint64_t n = san_ulp_mr_nb(core->ulp) + core->use.nb;
	uint32_t i;

	san_core_pools(core, pools);
	for (i = 0; i < SAN_CORE_POOLS; i++)
		n += pools[i].used;
	return n;
}

uint32_t
san_core_nb_spare(const struct san_core *core)
{
	return core->spare.n;
}
