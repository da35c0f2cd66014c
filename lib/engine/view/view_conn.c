/* SPDX-License-Identifier: BSD-3-Clause */

/* Connections, and the streams on them. */

#include <inttypes.h>

#include <rte_telemetry.h>

#include "engine_priv.h"
#include "view.h"

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

/* ---- streams: how they move bytes, and why (AFC-6, AFC-14) ---- */

#undef FIELD
#define FIELD(name, member, kind, unit, help) \
	SAN_VIEW_FIELD(struct san_stream_view, name, member, kind, unit, help)

#define STAT(name, member, unit, help) FIELD(name, stats.member, COUNTER, unit, help)

#define OF_STATS(name, unit, help) STAT(name, nb_##name, unit, help),

/* clang-format off */

/** Stream */
static const struct san_view_field of_stream[] = {
	SAN_VIEW_NOTE(mode, INFO, "", "How this side sends."),
	SAN_VIEW_NOTE(peer_mode, INFO, "", "How the peer sends."),
	SAN_VIEW_NOTE(time_ns, INFO, "ns", "Time of the answer, on the clock of the changes."),
	SAN_VIEW_NOTE(changes, INFO, "", "The last changes of mode, each with time and cause."),
	FIELD(threshold, threshold, GAUGE, "bytes", "Length from which transfers are large."),
	FIELD(message_size, msg_size, GAUGE, "bytes", "Size of own message buffers."),
	FIELD(peer_message_size, peer_msg_size, GAUGE, "bytes", "Size of message buffers there."),
	FIELD(credit, credit, GAUGE, "messages", "Messages that may be sent to the peer now."),
	FIELD(peer_credit, peer_credit, GAUGE, "messages", "Messages that the peer may send now."),
	FIELD(unread_bytes, nb_unread_bytes, GAUGE, "bytes", "Bytes that were not read."),
	FIELD(sends, nb_sends, GAUGE, "requests", "Sends of the program that are not complete."),
	FIELD(recvs, nb_recvs, GAUGE, "requests", "Receives of the program that are not complete."),
	STAT(tx_message_bytes, tx.message, "bytes", "Bytes sent in messages."),
	STAT(tx_write_bytes, tx.write, "bytes", "Bytes sent by writes into the peer's buffers."),
	STAT(tx_read_bytes, tx.read, "bytes", "Bytes sent by reads of the peer."),
	STAT(rx_message_bytes, rx.message, "bytes", "Bytes received in messages."),
	STAT(rx_write_bytes, rx.write, "bytes", "Bytes received by writes of the peer."),
	STAT(rx_read_bytes, rx.read, "bytes", "Bytes received by reads from the peer."),
	SAN_STREAM_COUNTERS(OF_STATS)
};

/* clang-format on */

const struct san_view_set san_view_stream_set = {of_stream, RTE_DIM(of_stream)};

int
san_view_stream_of(const struct san_engine *e, const struct san_pdl_conn *c,
		   struct san_view_stream *out)
{
	const struct san_stream *s =
		san_core_stream(e->core, san_ulp_qp_of(san_core_ulp(e->core), c->slot));

	if (s == NULL)
		return -ENOENT;
	out->cid = c->cid;
	out->now_ns = e->now_ns;
	san_stream_show_view(s, &out->view);
	return 0;
}

int
san_view_stream(struct san_view *v, const struct san_view_stream *s)
{
	struct rte_tel_data *changes = v->dict != NULL ? rte_tel_data_alloc() : NULL;
	char text[RTE_TEL_MAX_STRING_LEN];
	uint32_t i;

	san_view_string(v, "mode", san_stream_show_mode_name(s->view.mode));
	san_view_string(v, "peer_mode", san_stream_show_mode_name(s->view.peer_mode));
	san_view_u64(v, "time_ns", s->now_ns);
	san_view_fields(v, of_stream, RTE_DIM(of_stream), &s->view);
	if (changes != NULL)
		rte_tel_data_start_array(changes, RTE_TEL_STRING_VAL);
	else if (v->dict != NULL)
		return -ENOMEM;
	/* as in "1234567890: discovery > large (learnt)", the oldest first */
	for (i = 0; i < s->view.nb_change; i++) {
		snprintf(text, sizeof(text), "%" PRIu64 ": %s > %s (%s)", s->view.change[i].at_ns,
			 san_stream_show_mode_name(s->view.change[i].from),
			 san_stream_show_mode_name(s->view.change[i].to),
			 san_stream_show_why_name(s->view.change[i].why));
		if (changes != NULL)
			rte_tel_data_add_array_string(changes, text);
		else
			fprintf(v->text, "\n    %s", text);
	}
	return v->dict != NULL ? rte_tel_data_add_dict_container(v->dict, "changes", changes, 0) :
				 0;
}

/* ---- visits ---- */

enum visit_op {
	VISIT_PAGE,   /* copy connections */
	VISIT_ONE,    /* copy that of a CID */
	VISIT_STREAM, /* copy its stream */
	VISIT_CENSUS, /* count connections */
	VISIT_APPS,   /* count queue pairs */
};

/** What is asked of an engine about the places *at* to *end* of its table. */
struct visit {
	enum visit_op op;
	uint32_t at, end;
	uint32_t cid;               /* ONE, STREAM */
	uint16_t app;               /* PAGE: of whom */
	struct san_view_conn *conn; /* PAGE, ONE */
	struct san_view_stream *stream;
	uint32_t nb, max; /* PAGE: connections in *conn*, and room */
	struct san_view_census *census;
	struct san_view_app *apps;
};

static void
visit_conn(struct san_engine *e, struct visit *v)
{
	const struct san_pdl_conn *c = &san_core_pdl(e->core)->conns[v->at];
	struct san_view_census *sum = v->census;

	if (c->state == SAN_CONN_FREE)
		return;
	if (v->op == VISIT_PAGE) {
		san_view_conn_of(e, v->at, e->launched, &v->conn[v->nb]);
		v->nb += v->app == VIEW_APP_ANY || v->app == v->conn[v->nb].app;
		return;
	}
	sum->holds[e->launched ? san_tl_hold(san_core_tl(e->core), c, e->now_ns) : SAN_HOLD_MAX]++;
	if (c->rtt.srtt_ns == 0)
		return;
	sum->rtt[san_engine_busy_bucket(c->rtt.srtt_ns)]++;
	sum->rtt_sum_ns += c->rtt.srtt_ns;
}

static void
visit_qp(const struct san_engine *e, const struct visit *v)
{
	const struct san_engine_qp *q = &e->qps[v->at];
	struct san_view_app *app = &v->apps[q->app];
	struct san_ulp_qp_view qp;

	if (q->wq.wq == NULL)
		return;
	app->nb_qps++;
	/* as in san_view_conn_of(): the queue pair itself is read only on its lcore */
	if (!e->launched || !san_ulp_qp_view(san_core_ulp(e->core), q->qpn, &qp))
		return;
	app->nb_conns += qp.is_bound;
	san_ulp_traffic_add(&app->traffic, &qp.traffic);
}

/* Add what an engine counts itself. */
static void
visit_engine(const struct san_engine *e, const struct visit *v)
{
	uint32_t i;

	for (i = 0; v->op == VISIT_CENSUS && i < SAN_ENGINE_HIST; i++)
		v->census->rounds[i] += e->busy.rounds[i];
	if (v->op == VISIT_CENSUS)
		v->census->busy_ns += e->busy.busy_ns;
	for (i = 0; v->op == VISIT_APPS && i < e->nb_apps; i++) {
		v->apps[i].nb_faults += e->apps[i].nb_faults;
		san_ulp_traffic_add(&v->apps[i].traffic, &e->apps[i].past);
	}
}

static int
visit(struct san_engine *e, void *arg)
{
	struct visit *v = arg;
	const struct san_pdl_conn *c;

	if (v->op == VISIT_STREAM && !e->launched)
		return -ENOTSUP;
	if (v->op == VISIT_ONE || v->op == VISIT_STREAM) {
		c = san_pdl_conn_find(san_core_pdl(e->core), v->cid);
		if (c == NULL)
			return -ENOENT;
		if (v->op == VISIT_STREAM)
			return san_view_stream_of(e, c, v->stream);
		san_view_conn_of(e, c->slot, e->launched, v->conn);
		return 0;
	}
	if (v->at == 0)
		visit_engine(e, v);
	for (; v->at < v->end && (v->op != VISIT_PAGE || v->nb < v->max); v->at++)
		if (v->op == VISIT_APPS)
			visit_qp(e, v);
		else
			visit_conn(e, v);
	return 0;
}

uint32_t
san_view_conn_all(struct san_engine_port *p, uint32_t from, uint16_t app,
		  struct san_view_conn *out, uint32_t max, uint32_t *next)
{
	const uint32_t per = p->conf.core.pdl.max_conns, all = per * p->nb_engines;
	struct visit v = {.op = VISIT_PAGE, .app = app, .conn = out, .max = max};
	struct san_engine *e;

	while (from < all && v.nb < max) {
		e = p->engines[from / per];
		v.at = from % per;
		v.end = RTE_MIN(v.at + SLICE, per);
		san_engine_loop_read(e, visit, &v);
		from = e->id * per + v.at;
	}
	*next = from < all ? from : 0;
	return v.nb;
}

static int
visit_cid(struct san_engine_port *p, struct visit v)
{
	uint32_t lcore = san_pdl_cid_lcore(v.cid);

	return lcore < p->nb_engines ? san_engine_loop_read(p->engines[lcore], visit, &v) : -ENOENT;
}

int
san_view_conn_one(struct san_engine_port *p, uint32_t cid, struct san_view_conn *out)
{
	return visit_cid(p, (struct visit){.op = VISIT_ONE, .cid = cid, .conn = out});
}

int
san_view_stream_one(struct san_engine_port *p, uint32_t cid, struct san_view_stream *out)
{
	return visit_cid(p, (struct visit){.op = VISIT_STREAM, .cid = cid, .stream = out});
}

/* Visit *nb* places of each engine. */
static void
visit_all(struct san_engine_port *p, struct visit *v, uint32_t nb)
{
	uint32_t i;

	for (i = 0; i < p->nb_engines; i++) {
		for (v->at = 0; v->at < nb;) {
			v->end = RTE_MIN(v->at + SLICE, nb);
			san_engine_loop_read(p->engines[i], visit, v);
		}
	}
}

void
san_view_conn_count(struct san_engine_port *p, struct san_view_census *out)
{
	struct visit v = {.op = VISIT_CENSUS, .census = out};

	memset(out, 0, sizeof(*out));
	visit_all(p, &v, p->conf.core.pdl.max_conns);
}

void
san_view_conn_count_apps(struct san_engine_port *p, struct san_view_app *out)
{
	struct visit v = {.op = VISIT_APPS, .apps = out};

	memset(out, 0, SAN_ENGINE_APPS * sizeof(*out));
	visit_all(p, &v, p->conf.core.ulp.max_qps);
}
