/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include "engine_priv.h"
#include "view_conn.h"

#define SLICE 256 /* places visited in one call */

void
san_view_conn_of(struct san_engine *e, uint32_t slot, bool is_owner, struct san_view_conn *out)
{
	const struct san_pdl *pdl = san_core_pdl(e->core);
	const struct san_tl *tl = san_core_tl(e->core);
	const struct san_ulp *ulp = san_core_ulp(e->core);
	const struct san_pdl_conn *c = &pdl->conns[slot];

	*out = (struct san_view_conn){
		.pdl = *c,
		.cwnd_milli = (uint64_t)san_pdl_cc_window(&c->cc) * 1000 / SAN_CC_ONE,
		.virtual_win = san_pdl_pcb_vwin(pdl, c),
		.limit = san_pdl_pcb_limit(pdl, c),
		.nb_messages = tl->conns[slot].nb_msgs,
		.packs = tl->conns[slot].peer.pack,
		.qpn = SAN_QPN_NONE,
		.lcore = e->id,
		.hold = SAN_HOLD_MAX,
	};
	if (!is_owner)
		return;
	out->hold = (uint8_t)san_tl_hold(tl, c, e->now_ns);
	out->qpn = san_ulp_qp_of(ulp, (uint16_t)slot);
	if (san_ulp_qp_view(ulp, out->qpn, &out->qp))
		out->app = e->qps[san_ulp_qp_index(&e->conf.ulp, out->qpn)].app;
	else
		out->qpn = SAN_QPN_NONE;
}

/* ---- forms ---- */

#define FIELD(name, member, kind, unit, help) \
	SAN_VIEW_FIELD(struct san_view_conn, name, member, kind, unit, help)

/** Connection, in lists */
static const struct san_view_field in_list[] = {
	SAN_VIEW_NOTE(peer, INFO, "", "Address of the peer."),
	SAN_VIEW_NOTE(state, INFO, "", "State of the connection."),
	SAN_VIEW_NOTE(reason, INFO, "", "Why it sends nothing new now."),
	FIELD(app, app, INFO, "", "Number of the application."),
	FIELD(lcore, lcore, INFO, "", "Lcore, from 0."),
	FIELD(tx_bytes, qp.traffic.tx_bytes, COUNTER, "bytes", "Bytes of the program sent."),
	FIELD(rx_bytes, qp.traffic.rx_bytes, COUNTER, "bytes", "Bytes of the program received."),
	FIELD(tx_pkts, pdl.nb_tx_pkts, COUNTER, "packets", "Packets sent."),
	FIELD(rx_pkts, pdl.nb_rx_pkts, COUNTER, "packets", "Packets received."),
	FIELD(rtx, pdl.nb_rtx, COUNTER, "packets", "Packets sent again."),
	FIELD(rtt_ns, pdl.rtt.srtt_ns, GAUGE, "ns", "Smoothed round-trip time."),
	FIELD(in_flight, pdl.pcb.inflight, GAUGE, "packets", "Packets not acknowledged yet."),
	FIELD(limit, limit, GAUGE, "packets", "Packets that may be in flight."),
};
const struct san_view_set san_view_conn_list_set = {in_list, RTE_DIM(in_list)};

/** Connection, alone */
static const struct san_view_field alone[] = {
	SAN_VIEW_NOTE(cid, INFO, "", "CID of this side."),
	SAN_VIEW_NOTE(peer_cid, INFO, "", "CID of the peer."),
	SAN_VIEW_NOTE(pkey, INFO, "", "Partition."),
	SAN_VIEW_NOTE(order, INFO, "", "Order of delivery: ordered, unordered or relaxed."),
	FIELD(qp, qpn, INFO, "", "Queue pair; 4294967295: unknown."),
	FIELD(mtu, pdl.mtu, GAUGE, "bytes", "Payload of a packet, as far as the path is known."),
	FIELD(source_port, pdl.path.src_port, INFO, "", "UDP source port."),
	FIELD(cwnd_milli, cwnd_milli, GAUGE, "packets/1000", "Congestion window."),
	FIELD(first_window, pdl.pcb.first_win, GAUGE, "packets", "First window of the peer."),
	FIELD(virtual_window, virtual_win, GAUGE, "packets", "Share of this host's packets."),
	FIELD(request_window, pdl.tx[SAN_WIN_REQ].size, GAUGE, "packets", "Window of requests."),
	FIELD(data_window, pdl.tx[SAN_WIN_DATA].size, GAUGE, "packets", "Window of data."),
	FIELD(messages, nb_messages, GAUGE, "messages", "Unacknowledged messages."),
	FIELD(message_limit, pdl.pcb.msg_limit, GAUGE, "messages", "Limit of those messages."),
	FIELD(cuts, pdl.cc.nb_cuts, COUNTER, "times", "Cuts of the congestion window."),
	FIELD(rttvar_ns, pdl.rtt.var_ns, GAUGE, "ns", "Variation of the round-trip time."),
	FIELD(rtt_base_ns, pdl.rtt.base_ns, GAUGE, "ns", "Lowest known round-trip time."),
	FIELD(rto_ns, pdl.rtt.rto_ns, GAUGE, "ns", "Retransmission timeout."),
	FIELD(fast_rtx, pdl.nb_fast_rtx, COUNTER, "packets", "Fast retransmits."),
	FIELD(tlp, pdl.nb_tlp, COUNTER, "packets", "Tail-loss probes."),
	FIELD(rto, pdl.nb_rto, COUNTER, "times", "Retransmission timeouts."),
	FIELD(duplicates, pdl.nb_dup, COUNTER, "packets", "Packets received twice."),
	FIELD(tx_messages, qp.traffic.nb_tx, COUNTER, "messages", "Messages sent."),
	FIELD(rx_messages, qp.traffic.nb_rx, COUNTER, "messages", "Messages received."),
	FIELD(send_depth, qp.sq_depth, GAUGE, "requests", "Depth of the send queue."),
	FIELD(sends, qp.nb_requests, GAUGE, "requests", "Requests that are not complete."),
	FIELD(sends_waiting, qp.nb_waiting, GAUGE, "requests", "Of those, not started."),
	FIELD(recv_depth, qp.rq_depth, GAUGE, "requests", "Depth of the receive queue."),
	FIELD(recvs, qp.nb_recvs, GAUGE, "requests", "Receives that no message has used yet."),
	FIELD(level, pdl.cc.level, GAUGE, "", "Congestion level."),
	FIELD(packs, packs, INFO, "", "1: small messages share packets."),
};
const struct san_view_set san_view_conn_set = {alone, RTE_DIM(alone)};

#define HOLD_FIELD(reason, name, help) SAN_VIEW_NOTE(name, GAUGE, "connections", help),

static const struct san_view_field reasons[] = {SAN_HOLDS(HOLD_FIELD)};
const struct san_view_set san_view_reasons_set = {reasons, RTE_DIM(reasons)};

#define STATE_NAME(state, name, help) #name,

void
san_view_conn_brief(struct san_view *v, const struct san_view_conn *c)
{
	static const char *const states[] = {SAN_CONN_STATES(STATE_NAME)};
	char addr[SAN_INET_TEXT];

	san_view_string(v, "peer", san_inet_addr_text(&c->pdl.path.dst, addr));
	san_view_string(v, "state",
			c->pdl.state < RTE_DIM(states) ? states[c->pdl.state] : "unknown");
	san_view_string(v, "reason", san_hold_name(c->hold));
	san_view_fields(v, in_list, RTE_DIM(in_list), c);
}

void
san_view_conn_full(struct san_view *v, const struct san_view_conn *c)
{
	san_view_hex(v, "cid", 6, c->pdl.cid);
	san_view_hex(v, "peer_cid", 6, c->pdl.dcid);
	san_view_hex(v, "pkey", 4, c->pdl.pkey);
	san_view_string(v, "order", !c->pdl.ordered ? "unordered" : c->pdl.relaxed ? "relaxed" :
										     "ordered");
	san_view_conn_brief(v, c);
	san_view_fields(v, alone, RTE_DIM(alone), c);
}

/* ---- pages ---- */

struct page {
	uint32_t slot, end; /**< slots to visit: from, and up to */
	uint16_t app;
	struct san_view_conn *out;
	uint32_t nb, max;
};

static int
do_page(struct san_engine *e, void *arg)
{
	struct page *page = arg;
	const struct san_pdl *pdl = san_core_pdl(e->core);

	for (; page->slot < page->end && page->nb < page->max; page->slot++) {
		struct san_view_conn *out = &page->out[page->nb];

		if (pdl->conns[page->slot].state == SAN_CONN_FREE)
			continue;
		san_view_conn_of(e, page->slot, e->launched, out);
		page->nb += page->app == VIEW_APP_ANY || page->app == out->app;
	}
	return 0;
}

uint32_t
san_view_conn_all(struct san_engine_port *p, uint32_t from, uint16_t app,
		  struct san_view_conn *out, uint32_t max, uint32_t *next)
{
	const uint32_t per = p->conf.core.pdl.max_conns, all = per * p->nb_engines;
	struct page page = {.app = app, .out = out, .max = max};
	struct san_engine *e;

	while (from < all && page.nb < max) {
		e = p->engines[from / per];
		page.slot = from % per;
		page.end = RTE_MIN(page.slot + SLICE, per);
		san_engine_loop_read(e, do_page, &page);
		from = e->id * per + page.slot;
	}
	*next = from < all ? from : 0;
	return page.nb;
}

struct one {
	uint32_t cid;
	struct san_view_conn *out;
};

static int
do_one(struct san_engine *e, void *arg)
{
	const struct one *one = arg;
	const struct san_pdl_conn *c = san_pdl_conn_find(san_core_pdl(e->core), one->cid);

	if (c == NULL)
		return -ENOENT;
	san_view_conn_of(e, c->slot, e->launched, one->out);
	return 0;
}

int
san_view_conn_one(struct san_engine_port *p, uint32_t cid, struct san_view_conn *out)
{
	struct one one = {.cid = cid, .out = out};
	uint32_t lcore = san_pdl_cid_lcore(cid);

	return lcore < p->nb_engines ? san_engine_loop_read(p->engines[lcore], do_one, &one) :
				       -ENOENT;
}

/* ---- sums ---- */

struct count {
	uint32_t at, end;
	union {
		struct san_view_census *census;
		struct san_view_app *apps;
	};
};

/* Call *fn* for *nb* places of each engine. */
static void
in_slices(struct san_engine_port *p, uint32_t nb, san_engine_fn fn, struct count *count)
{
	uint32_t i;

	for (i = 0; i < p->nb_engines; i++) {
		for (count->at = 0; count->at < nb; count->at = count->end) {
			count->end = RTE_MIN(count->at + SLICE, nb);
			san_engine_loop_read(p->engines[i], fn, count);
		}
	}
}

static int
do_census(struct san_engine *e, void *arg)
{
	const struct count *count = arg;
	const struct san_pdl *pdl = san_core_pdl(e->core);
	const struct san_tl *tl = san_core_tl(e->core);
	uint32_t i;

	for (i = count->at; i < count->end; i++) {
		const struct san_pdl_conn *c = &pdl->conns[i];

		if (c->state == SAN_CONN_FREE)
			continue;
		count->census->holds[e->launched ? san_tl_hold(tl, c, e->now_ns) : SAN_HOLD_MAX]++;
		if (c->rtt.srtt_ns == 0)
			continue;
		count->census->rtt[san_engine_busy_bucket(c->rtt.srtt_ns)]++;
		count->census->rtt_sum_ns += c->rtt.srtt_ns;
	}
	return 0;
}

void
san_view_conn_count(struct san_engine_port *p, struct san_view_census *out)
{
	struct count count = {.census = out};

	memset(out, 0, sizeof(*out));
	in_slices(p, p->conf.core.pdl.max_conns, do_census, &count);
}

static int
do_apps(struct san_engine *e, void *arg)
{
	const struct count *count = arg;
	const struct san_ulp *ulp = san_core_ulp(e->core);
	struct san_ulp_qp_view qp;
	uint32_t i;

	for (i = count->at; i < count->end; i++) {
		struct san_view_app *app = &count->apps[e->qps[i].app];

		if (e->qps[i].wq.wq == NULL)
			continue;
		app->nb_qps++;
		/* as in san_view_conn_of(): the queue pair itself is read only on its lcore */
		if (!e->launched || !san_ulp_qp_view(ulp, e->qps[i].qpn, &qp))
			continue;
		app->nb_conns += qp.is_bound;
		san_ulp_traffic_add(&app->traffic, &qp.traffic);
	}
	return 0;
}

static int
do_past(struct san_engine *e, void *arg)
{
	struct san_view_app *apps = arg;
	uint32_t i;

	for (i = 0; i < e->nb_apps; i++) {
		apps[i].nb_faults += e->apps[i].nb_faults;
		san_ulp_traffic_add(&apps[i].traffic, &e->apps[i].past);
	}
	return 0;
}

void
san_view_conn_count_apps(struct san_engine_port *p, struct san_view_app *out)
{
	struct count count = {.apps = out};
	uint32_t i;

	memset(out, 0, SAN_ENGINE_APPS * sizeof(*out));
	for (i = 0; i < p->nb_engines; i++)
		san_engine_loop_read(p->engines[i], do_past, out);
	in_slices(p, p->conf.core.ulp.max_qps, do_apps, &count);
}
