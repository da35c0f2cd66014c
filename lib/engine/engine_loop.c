/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Loop of an lcore, run to completion (SYS-1). A round serves requests of applications, received
 * packets, timers, and packets to send. It reads the clock once, and again after it has sent posted
 * work.
 */

#define ALLOW_EXPERIMENTAL_API /* see view_trace.h: before the first header of DPDK */

#include <sched.h>
#include <sys/prctl.h>

#include "engine_priv.h"
#include "view.h"
#include "view_trace.h"

#define DOORBELL_BURST   128
#define AGAIN_BURST      64
#define AWAY_NS          (500 * SAN_NS_PER_US) /* a longer round means that the lcore did not run */
#define SPEED_EVERY_NS   (1 * SAN_NS_PER_S)
#define LINK_EVERY_NS    (1 * SAN_NS_PER_MS)   /* a query of the link may be a system call */
#define BACKLOG_STUCK_NS (100 * SAN_NS_PER_MS) /* a peer's process may be descheduled as long */
#define VID_MASK         0xfff

/* ---- requests ---- */

struct engine_call {
	san_engine_fn fn;
	void *arg;
	int rc;
	_Atomic bool done;
};

static uint32_t
loop_run_calls(struct san_engine *e)
{
	struct engine_call *c;
	uint32_t n = 0;

	while (rte_ring_dequeue(e->calls, (void **)&c) == 0) {
		c->rc = c->fn(e, c->arg);
		n++;
		/* pairs with the acquire in san_engine_loop_call(): *c* is invalid from here */
		atomic_store_explicit(&c->done, true, memory_order_release);
	}
	e->stats.nb_calls += n;
	return n;
}

int
san_engine_loop_call(struct san_engine *e, san_engine_fn fn, void *arg)
{
	struct engine_call c = {.fn = fn, .arg = arg, .done = false};
	unsigned int spins = 0;

	if (!e->launched) {
		e->now_ns = san_engine_clock_now(&e->clock);
		return fn(e, arg);
	}
	while (rte_ring_enqueue(e->calls, &c) != 0)
		sched_yield();
	san_engine_wake(e);
	while (!atomic_load_explicit(&c.done, memory_order_acquire)) {
		if (++spins < 1000)
			rte_pause();
		else
			sched_yield();
	}
	return c.rc;
}

int
san_engine_loop_read(struct san_engine *e, san_engine_fn fn, void *arg)
{
	/* without a launched lcore only the thread that polls may change now_ns */
	return e->launched ? san_engine_loop_call(e, fn, arg) : fn(e, arg);
}

/* Take the entries in the rings of one queue pair. Returns false if entries are left. */
static bool
drain_qp(struct san_engine *e, uint32_t qp, struct san_wq_cons *q)
{
	uint32_t at, n, taken;

	while ((n = san_spsc_count(&q->rq, &q->wq->rq_tail)) != 0) {
		at = q->rq.head & q->rq.mask;
		n = RTE_MIN(n, q->rq.mask + 1 - at);
		taken = san_core_post_recv(e->core, qp, &q->rqe[at], n, e->now_ns);
		san_spsc_pop(&q->rq, &q->wq->rq_head, taken);
		if (taken < n)
			break;
	}
	while ((n = san_spsc_count(&q->sq, &q->wq->sq_tail)) != 0) {
		at = q->sq.head & q->sq.mask;
		n = RTE_MIN(n, q->sq.mask + 1 - at);
		taken = san_core_post(e->core, qp, &q->wq->sqe[at], n, e->now_ns);
		san_spsc_pop(&q->sq, &q->wq->sq_head, taken);
		if (taken < n)
			return false;
	}
	return san_spsc_count(&q->rq, &q->wq->rq_tail) == 0;
}

/* Index of entry *i* in the ring of queue pairs to visit again. */
static inline uint32_t
again_at(const struct san_engine *e, uint32_t i)
{
	uint32_t at = e->again_head + i;

	return at < e->conf.ulp.max_qps ? at : at - e->conf.ulp.max_qps;
}

static void
loop_visit_qp(struct san_engine *e, uint32_t index)
{
	struct san_engine_qp *q = &e->qps[index];

	if (q->wq.wq == NULL || q->again)
		return;
	if (likely(q->app == 0) ? drain_qp(e, q->qpn, &q->wq) : san_engine_app_drain(e, q))
		return;
	q->again = true;
	e->again[again_at(e, e->nb_again++)] = index;
}

/* Queue pair *q* is visited next; with many queue pairs its rings are not in the cache. */
static inline void
prefetch_qp(struct san_engine *e, const struct san_engine_qp *q)
{
	if (q->wq.wq == NULL)
		return;
	rte_prefetch0(q->wq.wq);
	rte_prefetch0(&q->wq.wq->sqe[q->wq.sq.head & q->wq.sq.mask]);
	san_core_prefetch_qp(e->core, q->qpn);
}

/* Returns the number of doorbells handled. */
static uint32_t
loop_handle_app_doorbells(struct san_engine *e, uint16_t app)
{
	uint32_t ids[DOORBELL_BURST], i, n, nb_doorbells = san_engine_nb_doorbells(e);
	uint32_t max_qps = e->conf.ulp.max_qps; /* doorbells from it on are those of sockets */

	/* the application has used up its turn: its doorbells wait for the next round */
	if (unlikely(app != 0 && e->apps[app].left == 0))
		return 1;
	if (likely(!san_doorbells_have_rung(e->apps[app].doorbells, nb_doorbells)))
		return 0;
	n = san_doorbells_take(e->apps[app].doorbells, nb_doorbells, &e->apps[app].cursor, ids,
			       DOORBELL_BURST);
	for (i = 0; i < n; i++) {
		if (i + 1 < n && ids[i + 1] < max_qps)
			prefetch_qp(e, &e->qps[ids[i + 1]]);
		/* ignore a doorbell for a queue pair that the application does not own */
		if (unlikely(ids[i] >= max_qps)) {
			if (san_core_socks(e->core) != NULL)
				san_sock_doorbell(san_core_socks(e->core), ids[i] - max_qps);
		} else if (likely(e->qps[ids[i]].app == app)) {
			loop_visit_qp(e, ids[i]);
		}
	}
	return n;
}

static uint32_t
loop_handle_doorbells(struct san_engine *e)
{
	uint32_t i, index, n = 0, before = RTE_MIN(e->nb_again, (uint32_t)AGAIN_BURST);

	san_engine_app_refill(e);
	/* queue pairs whose rings were not emptied: in order, and a limited number in a round */
	for (i = 0; i < before; i++) {
		index = e->again[e->again_head];
		e->again_head = again_at(e, 1);
		e->nb_again--;
		e->qps[index].again = false;
		loop_visit_qp(e, index);
	}
	for (i = 0; i < e->nb_apps; i++)
		if (e->apps[i].doorbells != NULL)
			n += loop_handle_app_doorbells(e, (uint16_t)i);
	e->stats.nb_doorbells += n;
	return n;
}

void
san_engine_loop_doorbell(struct san_engine *e, uint32_t qp)
{
	if (san_doorbells_ring(e->doorbells, san_ulp_qp_index(&e->conf.ulp, qp)))
		eventfd_write(e->wake_fd, 1);
}

/*
 * ---- a port in a VLAN ----
 *
 * The tag is inserted into sent packets and removed from received ones in software, which works
 * with every driver, and the layers above do not see it. Packets of another VLAN, or without a tag,
 * are dropped. Both functions return how many packets are left.
 */

static uint16_t
loop_vlan_tx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i, kept = 0;

	for (i = 0; i < n; i++) {
		pkts[i]->vlan_tci = e->port->conf.vlan;
		if (likely(rte_vlan_insert(&pkts[i]) == 0)) {
			pkts[kept++] = pkts[i];
			continue;
		}
		e->drops[SAN_DROP_TX_FULL]++;
		rte_pktmbuf_free(pkts[i]);
	}
	return kept;
}

static uint16_t
loop_vlan_rx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i, kept = 0;

	for (i = 0; i < n; i++) {
		/* some ports strip the tag themselves */
		if (likely((pkts[i]->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 ||
			   rte_vlan_strip(pkts[i]) == 0) &&
		    likely((pkts[i]->vlan_tci & VID_MASK) == e->port->conf.vlan)) {
			pkts[kept++] = pkts[i];
			continue;
		}
		e->drops[SAN_DROP_VLAN]++;
		rte_pktmbuf_free(pkts[i]);
	}
	return kept;
}

/*
 * ---- packets to ourselves ----
 *
 * Two applications on one port: packets that the port sends to its own address are looped back
 * here, because the device would drop them (SYS-2). The lcore that owns them receives them like any
 * others, so a local connection needs no special handling.
 */

/* Returns how many of *n* packets are for the device. */
static uint16_t
loop_local_tx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n)
{
	const struct rte_ether_hdr *eth;
	uint16_t i, kept = 0;

	for (i = 0; i < n; i++) {
		eth = rte_pktmbuf_mtod(pkts[i], const struct rte_ether_hdr *);
		if (likely(!rte_is_same_ether_addr(&eth->dst_addr, &e->conf.inet.mac))) {
			pkts[kept++] = pkts[i];
		} else if (e->nb_local < ENGINE_LOCAL) {
			e->local[e->nb_local++] = pkts[i];
			e->stats.nb_loopback++;
		} else { /* lost, as in any network, and will be retransmitted */
			e->drops[SAN_DROP_TX_FULL]++;
			rte_pktmbuf_free(pkts[i]);
		}
	}
	return kept;
}

/* ---- packets ---- */

static bool
may_burst(struct san_engine *e)
{
	struct san_engine_gate *gate = &e->port->gate;

	if (!e->has_queue)
		return true;
	/* query the link only where the gate needs it */
	return san_engine_gate_pass(gate,
				    !gate->used || gate->held || san_engine_port_is_up(e->port),
				    e->now_ns);
}

static uint16_t
port_tx(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n)
{
	if (unlikely(!e->has_queue))
		return san_engine_handover_lend_tx(e, pkts, n);
	n = likely(e->may_burst) ? rte_eth_tx_burst(e->port_id, e->id, pkts, n) : 0;
	e->stats.nb_tx_pkts += n;
	return n;
}

/*
 * Size of the next burst: smaller if frames are long, so that a burst takes some ten microseconds.
 * Then one end processes a burst while the other end processes the next one, without a larger
 * window. The first and last frame of the last burst decide.
 */
static uint16_t
burst_after(struct rte_mbuf *const *pkts, uint16_t n)
{
	uint32_t len = RTE_MAX(rte_pktmbuf_pkt_len(pkts[0]), rte_pktmbuf_pkt_len(pkts[n - 1]));

	return len <= ENGINE_SHORT ? ENGINE_BURST : ENGINE_BURST_LONG;
}

/* Handle packets from the port, or packets that this host sent to itself. */
static void
loop_process_rx(struct san_engine *e, struct rte_mbuf **in, uint16_t nb_in)
{
	struct rte_mbuf *out[ENGINE_OUT_MAX], **pkts = in;
	uint16_t n = nb_in;

	if (unlikely(e->capturing))
		san_view_capture_pkts(e, in, nb_in, false);
	if (unlikely(san_engine_impair_is_on(&e->impair_rx))) {
		n = san_engine_impair_run(&e->impair_rx, in, nb_in, out, ENGINE_OUT_MAX, e->now_ns);
		pkts = out;
	}
	if (!e->is_alone && n != 0)
		n = san_engine_handover(e, pkts, n);
	if (n != 0) {
		san_pdl_rtx_rx_gap(san_core_pdl(e->core), e->now_ns - e->rx_ns, e->now_ns);
		san_core_rx_burst(e->core, pkts, n, e->now_ns);
	}
}

static uint16_t
rx_port(struct san_engine *e)
{
	struct rte_mbuf *in[ENGINE_BURST];
	uint16_t n = rte_eth_rx_burst(e->port_id, e->id, in, e->rx_burst), nb_in = n;

	/* without a packet, only packets that the impairment stage has delayed may be due */
	if (n == 0 && likely(!san_engine_impair_is_on(&e->impair_rx)))
		return 0;
	if (n != 0) {
		e->rx_burst = burst_after(in, n);
		san_engine_gate_traffic(&e->port->gate, e->now_ns);
	}
	e->stats.nb_rx_pkts += n;
	if (unlikely(e->port->conf.vlan != 0))
		n = loop_vlan_rx(e, in, n);
	loop_process_rx(e, in, n);
	return nb_in; /* packets of other VLANs count: more may follow them */
}

/* Process packets that other lcores have received for this one. */
static uint16_t
rx_lanes(struct san_engine *e)
{
	struct rte_mbuf *pkts[ENGINE_BURST];
	uint16_t n, sum = 0;
	uint64_t gap_ns;
	uint32_t from;

	for (from = 0; from < e->port->conf.nb_queues; from++) {
		n = san_engine_handover_take_rx(e, from, pkts, ENGINE_BURST, &gap_ns);
		if (n == 0)
			continue;
		san_pdl_rtx_rx_gap(san_core_pdl(e->core), e->now_ns - e->rx_ns + gap_ns, e->now_ns);
		san_core_rx_burst(e->core, pkts, n, e->now_ns);
		sum += n;
	}
	return sum;
}

static uint16_t
loop_rx_burst(struct san_engine *e)
{
	uint16_t n = 0, nb;

	if (unlikely(e->nb_local != 0)) {
		for (; n < e->nb_local; n += nb) {
			nb = RTE_MIN(e->nb_local - n, ENGINE_BURST);
			loop_process_rx(e, &e->local[n], nb);
		}
		e->nb_local = 0;
	}
	if (unlikely(!e->may_burst))
		return e->is_alone ? n : n + rx_lanes(e);
	if (likely(e->has_queue))
		n += rx_port(e);
	if (!e->is_alone)
		n += rx_lanes(e);
	e->rx_ns = e->now_ns;
	return n;
}

/*
 * Packets that the port did not take stay with the engine until the port takes them, is stuck, or
 * has no link. Packets for a dead link count as lost: otherwise timers that count losses would wait
 * for the port forever (RT-7).
 */
static void
send_backlog(struct san_engine *e)
{
	uint16_t i, sent = port_tx(e, e->backlog, e->nb_backlog);
	bool is_dead = false;

	e->nb_backlog -= sent;
	for (i = 0; i < e->nb_backlog; i++)
		e->backlog[i] = e->backlog[sent + i];
	if (sent != 0) {
		e->backlog_ns = e->now_ns;
		return;
	}
	if (e->now_ns - e->link_ns >= LINK_EVERY_NS) {
		e->link_ns = e->now_ns;
		is_dead = !san_engine_port_is_up(e->port);
	}
	if (is_dead || e->now_ns - e->backlog_ns > BACKLOG_STUCK_NS) {
		rte_pktmbuf_free_bulk(e->backlog, e->nb_backlog);
		e->drops[SAN_DROP_TX_FULL] += e->nb_backlog;
		e->nb_backlog = 0;
	}
}

/* Send to the port, or to the lcore with the queue. What is not taken becomes the backlog. */
static void
loop_transmit_pkts(struct san_engine *e, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t sent, i;

	if (unlikely(e->capturing) && e->has_queue)
		san_view_capture_pkts(e, pkts, n, true);
	if (likely(e->has_queue))
		n = loop_local_tx(e, pkts, n);
	if (unlikely(e->port->conf.vlan != 0) && e->has_queue)
		n = loop_vlan_tx(e, pkts, n);
	if (n == 0)
		return;
	sent = port_tx(e, pkts, n);
	if (unlikely(sent < n)) {
		e->stats.nb_tx_backlogged += n - sent;
		e->backlog_ns = e->now_ns;
		for (i = sent; i < n; i++)
			e->backlog[e->nb_backlog++] = pkts[i];
	}
}

static uint16_t
tx_core(struct san_engine *e)
{
	struct rte_mbuf *core[ENGINE_BURST], *out[ENGINE_OUT_MAX], **pkts = core;
	bool any;
	uint16_t n;

	if (e->nb_backlog != 0)
		return 0;
	n = san_core_tx_burst(e->core, core, e->tx_burst, e->now_ns);
	any = n != 0;
	if (any)
		e->tx_burst = burst_after(core, n);
	if (unlikely(san_engine_impair_is_on(&e->impair_tx))) {
		n = san_engine_impair_run(&e->impair_tx, core, n, out, ENGINE_OUT_MAX, e->now_ns);
		pkts = out;
	}
	if (n != 0)
		loop_transmit_pkts(e, pkts, n);
	/* A burst to this host takes twice as long, because this lcore receives it as well. */
	if (any && e->nb_local != 0)
		e->tx_burst /= 2;
	return n;
}

/* Send packets of lcore *from*. */
static uint16_t
tx_lane(struct san_engine *e, uint32_t from)
{
	struct rte_mbuf *pkts[ENGINE_BURST];
	uint16_t n;

	if (e->nb_backlog != 0)
		return 0;
	n = san_engine_handover_take_tx(e, from, pkts, ENGINE_BURST);
	if (n != 0)
		loop_transmit_pkts(e, pkts, n);
	return n;
}

static uint16_t
loop_tx_burst(struct san_engine *e)
{
	uint32_t i, lcore, nb = e->port->nb_engines;
	uint16_t n = 0;

	if (e->nb_backlog != 0)
		send_backlog(e);
	if (likely(e->is_alone))
		return tx_core(e);
	if (e->nb_backlog != 0)
		return 0; /* the turn stays with its lcore */
	/* another lcore begins each round: on a port that is always full, only the first sends */
	e->turn = e->turn + 1 < nb ? e->turn + 1 : 0;
	for (i = 0; i < nb; i++) {
		lcore = e->turn + i < nb ? e->turn + i : e->turn + i - nb;
		n += lcore == e->id ? tx_core(e) : tx_lane(e, lcore);
	}
	return n;
}

/* ---- events ---- */

static void
loop_push_events(struct san_engine *e)
{
	struct san_spsc *q = &e->event_q;
	const struct san_core_event *ev;
	uint32_t before = q->prod.tail;

	while (san_spsc_room(&q->prod, &q->head) != 0 &&
	       san_core_conn_poll_event(e->core, &e->events[q->prod.tail & q->prod.mask])) {
		ev = &e->events[q->prod.tail & q->prod.mask];
		/* a connection request is identified by tag and CID */
		san_trace_conn(e->id, ev->type, ev->reason, ev->qp, (uint32_t)ev->request);
		san_spsc_push(&q->prod, &q->tail, 1);
	}
	if (unlikely(q->prod.tail != before))
		san_engine_event_wake(e->port);
}

/* ---- the loop ---- */

uint64_t
san_engine_loop_count(const struct san_engine *e)
{
	return atomic_load_explicit(&e->stats.nb_loops, memory_order_relaxed);
}

uint32_t
san_engine_loop_once(struct san_engine *e)
{
	uint64_t due_ns = e->now_ns + e->slept_ns + AWAY_NS;
	struct san_pdl *pdl = san_core_pdl(e->core);
	uint32_t posted, work = 0;

	/* one writer: neither a lock nor an atomic addition is needed */
	atomic_store_explicit(&e->stats.nb_loops, san_engine_loop_count(e) + 1,
			      memory_order_relaxed);
	e->now_ns = san_engine_clock_now(&e->clock);
	if (unlikely(e->now_ns > due_ns))
		pdl->away_ns += e->now_ns - due_ns;
	e->slept_ns = 0;
	san_engine_busy_begin(&e->busy, e->now_ns);
	if (e->launched)
		work += loop_run_calls(e);
	posted = loop_handle_doorbells(e);
	work += posted;
	if (unlikely(san_engine_is_lost(e->port))) {
		san_ulp_cq_wake_all(san_core_ulp(e->core)); /* all programs that wait */
		san_engine_idle_wake_waiters(e);
		e->busy.worked = work != 0;
		return work;
	}
	/* the speed is unknown while the port still negotiates it */
	if (unlikely(pdl->conf.link_mbps == 0) && e->now_ns - e->speed_ns >= SPEED_EVERY_NS) {
		e->speed_ns = e->now_ns;
		pdl->conf.link_mbps = san_engine_port_mbps(e->port);
	}
	if (unlikely(e->mac != atomic_load_explicit(&e->port->mac, memory_order_relaxed)))
		san_engine_mac_follow(e);
	e->may_burst = may_burst(e);
	/* send what was just posted before received packets are processed */
	if (posted != 0) {
		work += loop_tx_burst(e);
		/* without this an ACK could arrive at the time at which its packet was sent */
		e->now_ns = san_engine_clock_now(&e->clock);
	}
	work += loop_rx_burst(e);
	san_core_tick(e->core, e->now_ns);
	if (unlikely(pdl->stats.nb_rto != e->traced_rto)) {
		san_trace_rto(e->id, pdl->stats.nb_rto - e->traced_rto);
		e->traced_rto = pdl->stats.nb_rto;
	}
	/*
	 * If work was posted, the next round sends, because it follows at once. An lcore that
	 * yields sends now: another thread may use the CPU for long before the next round.
	 */
	if (posted == 0 || !e->launched || e->port->conf.idle == SAN_IDLE_YIELD)
		work += loop_tx_burst(e);
	loop_push_events(e);
	san_engine_idle_wake_waiters(e);
	san_engine_idle_wake_socks(e);
	e->busy.worked = work != 0;
	return work;
}

int
san_engine_loop_main(void *arg)
{
	struct san_engine *e = arg;

	/* sleeps last some ten microseconds, and the default slack of timers would add fifty */
	if (e->port->conf.idle >= SAN_IDLE_SLEEP)
		prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
	while (!atomic_load_explicit(&e->port->stop, memory_order_relaxed))
		san_engine_idle_after(e, san_engine_loop_once(e));
	/* complete the calls that are still queued: their callers wait */
	loop_run_calls(e);
	return 0;
}
