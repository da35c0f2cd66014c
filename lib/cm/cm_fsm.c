/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The life of a connection: one table [state][input] = {next, action}, one
 * setter. (RT-1, RT-23, RT-24; design, rule 17)
 *
 *   connecting   RESOLVING -> REQ_SENT -> REQ_COOKIE_SENT -> ESTABLISHED
 *   accepting    WAIT_ACCEPT -> REP_SENT -> ESTABLISHED
 *   ending       ESTABLISHED -> DRAINING -> DREQ_SENT -> TIMEWAIT
 *
 * Timers, all of them in cm_deadline_ns of the connection, one at a time:
 *   RESOLVING, REQ_SENT, REQ_COOKIE_SENT, REP_SENT, DREQ_SENT
 *                 retry of own.msg: retry_wait_ns(), max_retries times
 *   WAIT_ACCEPT   longer than the connecting side goes on repeating its REQ
 *   ESTABLISHED   keep-alive (cm_keepalive.c)
 *   DRAINING      drain_ns without progress
 *   TIMEWAIT      none: it ends when the core releases the slot
 *
 * An action runs after the new state is set. None frees the record except
 * those of a request that our ULP did not accept, which nobody else holds.
 */

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "cm_priv.h"
#include "san_log.h"

typedef void (*cm_action)(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s);

static const char *const state_names[] = {
	[SAN_CM_IDLE] = "idle",
	[SAN_CM_RESOLVING] = "resolving",
	[SAN_CM_REQ_SENT] = "req_sent",
	[SAN_CM_REQ_COOKIE_SENT] = "req_cookie_sent",
	[SAN_CM_WAIT_ACCEPT] = "wait_accept",
	[SAN_CM_REP_SENT] = "rep_sent",
	[SAN_CM_ESTABLISHED] = "established",
	[SAN_CM_DRAINING] = "draining",
	[SAN_CM_DREQ_SENT] = "dreq_sent",
	[SAN_CM_TIMEWAIT] = "timewait",
};
static_assert(RTE_DIM(state_names) == SAN_CM_STATE_MAX, "a state has no name");

const char *
san_cm_state_name(enum san_cm_state s)
{
	return (unsigned int)s < SAN_CM_STATE_MAX ? state_names[s] : "unknown";
}

static bool
is_half_open(uint8_t state)
{
	return state == SAN_CM_WAIT_ACCEPT || state == SAN_CM_REP_SENT;
}

/** The one place where the state changes: counts, traces, leaves the lists of the old one. */
static void
set_state(struct san_cm *cm, struct san_cm_conn *c, enum san_cm_state next)
{
	if (c->state == (uint8_t)next)
		return;
	SAN_LOG(CM, DEBUG, "slot=%u state=%s next=%s", c->slot, state_names[c->state],
		state_names[next]);
	if (c->state == SAN_CM_RESOLVING)
		san_cm_resolving_del(cm, c);
	if (c->state == SAN_CM_WAIT_ACCEPT) {
		cm->listeners[c->listener].nb_waiting--;
		c->listener = CM_NO_LISTENER;
	}
	if (next == SAN_CM_RESOLVING)
		san_cm_resolving_add(cm, c);
	if (next == SAN_CM_WAIT_ACCEPT)
		cm->listeners[c->listener].nb_waiting++;
	cm->nb_half_open += is_half_open((uint8_t)next);
	cm->nb_half_open -= is_half_open(c->state);
	c->state = (uint8_t)next;
	c->retries = 0;
}

/* Doubled each time, but not for ever: many tries get through a bad link, few do not. */
static uint64_t
retry_wait_ns(const struct san_cm *cm, uint32_t retries)
{
	uint64_t most_ns = RTE_MAX(cm->conf.retry_ns, SAN_CM_RETRY_MAX_NS);

	return RTE_MIN(cm->conf.retry_ns << retries, most_ns);
}

/** Send own.msg and repeat it until something else happens. */
static void
send(struct san_cm *cm, struct san_cm_conn *c, uint8_t msg, uint64_t now_ns)
{
	c->own.msg = msg;
	if (c->retries == 0)
		c->asked_ns = 0;
	san_cm_tx_add(cm, c);
	san_cm_timer(cm, c, now_ns + retry_wait_ns(cm, c->retries));
}

/** An answer to the peer that must go whatever becomes of the record. */
static void
farewell(struct san_cm *cm, const struct san_cm_conn *c, uint8_t msg, uint8_t reason)
{
	struct san_wire_cm out = c->own;

	out.msg = msg;
	out.reason = reason;
	out.flags = 0;
	out.private_len = 0;
	san_cm_tx_farewell(cm, c, &out);
}

/** Nothing more to send or to wait for, but for the core. */
static void
finish(struct san_cm *cm, struct san_cm_conn *c, enum san_cm_event_type ev, uint8_t reason)
{
	san_cm_tx_del(cm, c);
	san_cm_timer(cm, c, SAN_TIME_NEVER);
	c->reason = reason;
	san_cm_event_add(cm, c, ev);
}

/* ---- connecting ---- */

static void
act_ask(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	send(cm, c, SAN_CM_REQ, s->now_ns);
}

static void
keep_cookie(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	(void)cm;
	memcpy(c->own.cookie, s->msg->cookie, sizeof(c->own.cookie));
	c->own.flags |= SAN_CM_F_COOKIE;
}

/*
 * The answer to what was sent once: so long is the path. Only of what the other side answers
 * by itself: a REP waited for its ULP, and so did a request that stands for an RTU.
 */
static void
measure_path(const struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	if (s->msg != NULL && c->asked_ns != 0 && c->asked_ns != SAN_TIME_NEVER)
		san_pdl_conn_path(cm->pdl, cm_pdl_conn(cm, c), s->now_ns - c->asked_ns);
}

static void
act_cookie(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	struct san_pdl_conn *pc = cm_pdl_conn(cm, c);

	/* the answer was quicker than whoever resolves addresses */
	if (rte_is_zero_ether_addr(&pc->path.dst_mac))
		pc->path.dst_mac = s->pkt->src_mac;
	measure_path(cm, c, s);
	keep_cookie(cm, c, s);
	c->cookie_retries = 0;
	send(cm, c, SAN_CM_REQ, s->now_ns);
}

/*
 * Our cookie has grown old. Once per retry the new one goes at once, else it might be
 * old again when its turn comes; not more often, or a peer that likes none of our
 * cookies could play ping-pong with us.
 */
static void
act_fresh_cookie(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	keep_cookie(cm, c, s);
	if (c->cookie_retries == c->retries)
		return;
	c->cookie_retries = c->retries;
	san_cm_tx_add(cm, c);
}

static void
keep_private(struct san_cm_conn *c, const struct san_wire_cm *msg)
{
	c->peer_private_len = msg->private_len;
	memcpy(c->peer_private, msg->private_data, sizeof(c->peer_private));
}

static void
act_rejected(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	if (s->msg->msg == SAN_CM_REJ)
		keep_private(c, s->msg);
	finish(cm, c, SAN_CM_EV_REJECTED, s->reason);
}

/* Accepted, but taken back before we heard of it. */
static void
act_withdrawn(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	c->own.dst_cid = s->msg->src_cid;
	c->own.dst_tag = s->msg->src_tag;
	farewell(cm, c, SAN_CM_DREP, SAN_CM_R_NONE);
	finish(cm, c, SAN_CM_EV_REJECTED, SAN_CM_R_REFUSED);
}

static void
act_unreachable(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	(void)s;
	finish(cm, c, SAN_CM_EV_UNREACHABLE, SAN_CM_R_TIMEOUT);
}

/* ---- accepting ---- */

/** Wait longer for our ULP than the peer goes on asking. */
static void
act_keep(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	uint32_t n = cm->conf.max_retries + 1;

	san_cm_timer(cm, c, s->now_ns + n * retry_wait_ns(cm, n));
}

/* The slot is free at once; a ghost knows the REQ that comes again. */
static void
act_moved(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	san_cm_conn_free(cm, c, cm->conf.timewait_ns, s->now_ns);
}

static void
act_request(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	act_keep(cm, c, s);
	san_cm_event_add(cm, c, SAN_CM_EV_CONNECT_REQUEST);
}

static void
act_accept(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	send(cm, c, SAN_CM_REP, s->now_ns);
}

/* The first message again; its retries go on as they were. */
static void
act_again(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	(void)s;
	san_cm_tx_add(cm, c);
}

/* The slot is free at once; a ghost repeats the REJ as long as the REQ is repeated. */
static void
act_reject(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	c->own.msg = SAN_CM_REJ;
	c->own.reason = s->reason;
	c->own.flags = 0;
	c->is_refused = true;
	san_cm_tx_farewell(cm, c, &c->own);
	san_cm_conn_free(cm, c, cm->conf.timewait_ns, s->now_ns);
}

static void
act_refuse_again(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	if (!c->is_refused || !san_cm_rate_take(cm, s->now_ns))
		return;
	san_cm_tx_reply(cm, s->pkt, cm_reply_port(s->pkt, s->msg), &c->own);
}

static void
act_forget(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	san_cm_conn_free(cm, c, 0, s->now_ns);
}

/* ---- open ---- */

static void
open_conn(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	struct san_pdl_conn *pc = cm_pdl_conn(cm, c);
	struct san_cm_agreed *a = &c->agreed;

	c->is_agreed = true;
	san_pdl_conn_open(cm->pdl, pc, &a->pdl, a->rx_req_win, a->rx_data_win, s->now_ns);
	pc->rx_first_win = c->own.first_win;
	san_cm_keepalive_start(cm, c, s->now_ns);
	san_cm_event_add(cm, c, SAN_CM_EV_ESTABLISHED);
}

/** Both offers make the agreement; *c->agreed* holds the peer's. */
static void
agree(struct san_cm_conn *c, uint16_t msg_limit)
{
	const struct san_wire_cm *own = &c->own;
	struct san_cm_agreed *a = &c->agreed;

	a->pdl.mtu = RTE_MIN(a->pdl.mtu, own->mtu);
	a->pdl.msg_limit = msg_limit;
	a->rx_req_win = own->req_win;
	a->rx_data_win = own->data_win;
	a->first_rsn_tx = own->first_rsn;
	a->n_tx = RTE_MIN(a->n_tx, own->max_txn);
	a->n_rx = a->n_tx;
	a->rnr_tx_ms = own->rnr_ms;
	a->features &= own->features;
}

static void
act_ready(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	c->agreed.pdl.ordered = (c->own.flags & SAN_CM_F_ORDERED) != 0;
	c->agreed.pdl.relaxed = (c->own.flags & SAN_CM_F_RELAXED) != 0;
	agree(c, c->agreed.pdl.msg_limit);
	c->own.msg = SAN_CM_RTU;
	c->own.flags = 0;
	c->own.private_len = 0;
	san_cm_hash_add(cm, c);
	san_cm_tx_add(cm, c);
	open_conn(cm, c, s);
}

/* Our RTU was lost. */
static void
act_rtu_again(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	(void)s;
	if (!c->passive)
		san_cm_tx_add(cm, c);
}

/*
 * It still asks, so what stood for its RTU was no such thing, or this is an old
 * copy, which does no harm: it gets an RTU for our REP.
 */
static void
act_rep_again(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	act_again(cm, c, s);
}

static void
act_open(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	san_cm_tx_del(cm, c);
	measure_path(cm, c, s);
	open_conn(cm, c, s);
}

/* ---- ending ---- */

/* Changes with every PSN that is finished in either direction. */
static uint32_t
progress_of(const struct san_pdl_conn *pc)
{
	return pc->tx[SAN_WIN_REQ].base + pc->tx[SAN_WIN_DATA].base + pc->rx[SAN_WIN_REQ].base +
		pc->rx[SAN_WIN_DATA].base;
}

static void
act_drain(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	c->drained_to = progress_of(cm_pdl_conn(cm, c));
	san_cm_timer(cm, c, s->now_ns + cm->conf.drain_ns);
}

static void
act_dreq(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	san_pdl_conn_close(cm->pdl, cm_pdl_conn(cm, c));
	c->own.flags = 0;
	c->own.private_len = 0;
	send(cm, c, SAN_CM_DREQ, s->now_ns);
}

static void
act_none(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	(void)cm;
	(void)c;
	(void)s;
}

/* We wanted it: DREP, RESET in place of it, or nobody there to answer. */
static void
act_closed(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	finish(cm, c, SAN_CM_EV_CLOSED,
	       s->in == CM_IN_EXPIRED ? SAN_CM_R_TIMEOUT : SAN_CM_R_NONE);
}

/* Both wanted it. */
static void
act_both_closed(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	(void)s;
	farewell(cm, c, SAN_CM_DREP, SAN_CM_R_NONE);
	finish(cm, c, SAN_CM_EV_CLOSED, SAN_CM_R_NONE);
}

static void
act_drep(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	/* the slot is still ours only until the core has released it */
	(void)s;
	farewell(cm, c, SAN_CM_DREP, SAN_CM_R_NONE);
}

static void
act_ended(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	farewell(cm, c, SAN_CM_DREP, SAN_CM_R_NONE);
	finish(cm, c, SAN_CM_EV_DISCONNECTED, s->reason);
}

static void
act_lost(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	finish(cm, c, SAN_CM_EV_DISCONNECTED, s->reason);
}

/* Perhaps only one direction is dead: a peer that hears this needs not find out itself. */
static void
act_failed(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	uint8_t reason = s->in == CM_IN_EXPIRED ? SAN_CM_R_TIMEOUT : s->reason;

	farewell(cm, c, SAN_CM_DREQ, reason);
	finish(cm, c, SAN_CM_EV_DISCONNECTED, reason);
}

/* ---- the table ---- */

struct cm_rule {
	enum san_cm_state next;
	cm_action action; /**< NULL: this input means nothing here */
};

static const struct cm_rule rules[][CM_IN_MAX] = {
	[SAN_CM_IDLE] = {
		[CM_IN_CONNECT] = {SAN_CM_RESOLVING, act_ask},
		[CM_IN_REQUEST] = {SAN_CM_WAIT_ACCEPT, act_request},
		[CM_IN_ADOPT] = {SAN_CM_REP_SENT, act_accept},
	},
	[SAN_CM_RESOLVING] = {
		[CM_IN_RESOLVED] = {SAN_CM_REQ_SENT, act_ask},
		[CM_IN_COOKIE] = {SAN_CM_REQ_COOKIE_SENT, act_cookie},
		[CM_IN_REJ] = {SAN_CM_TIMEWAIT, act_rejected},
		[CM_IN_CLOSE] = {SAN_CM_TIMEWAIT, act_closed},
		[CM_IN_CLOSE_NOW] = {SAN_CM_TIMEWAIT, act_closed},
		[CM_IN_EXPIRED] = {SAN_CM_TIMEWAIT, act_unreachable},
	},
	[SAN_CM_REQ_SENT] = {
		[CM_IN_COOKIE] = {SAN_CM_REQ_COOKIE_SENT, act_cookie},
		[CM_IN_REJ] = {SAN_CM_TIMEWAIT, act_rejected},
		[CM_IN_CLOSE] = {SAN_CM_TIMEWAIT, act_closed},
		[CM_IN_CLOSE_NOW] = {SAN_CM_TIMEWAIT, act_closed},
		[CM_IN_EXPIRED] = {SAN_CM_TIMEWAIT, act_unreachable},
	},
	[SAN_CM_REQ_COOKIE_SENT] = {
		[CM_IN_COOKIE] = {SAN_CM_REQ_COOKIE_SENT, act_fresh_cookie},
		[CM_IN_REP] = {SAN_CM_ESTABLISHED, act_ready},
		[CM_IN_REJ] = {SAN_CM_TIMEWAIT, act_rejected},
		[CM_IN_DREQ] = {SAN_CM_TIMEWAIT, act_withdrawn},
		[CM_IN_CLOSE] = {SAN_CM_TIMEWAIT, act_closed},
		[CM_IN_CLOSE_NOW] = {SAN_CM_TIMEWAIT, act_closed},
		[CM_IN_EXPIRED] = {SAN_CM_TIMEWAIT, act_unreachable},
	},
	[SAN_CM_WAIT_ACCEPT] = {
		[CM_IN_REQUEST] = {SAN_CM_WAIT_ACCEPT, act_keep},
		[CM_IN_ACCEPT] = {SAN_CM_REP_SENT, act_accept},
		[CM_IN_MOVED] = {SAN_CM_TIMEWAIT, act_moved},
		[CM_IN_REJECT] = {SAN_CM_TIMEWAIT, act_reject},
		[CM_IN_EXPIRED] = {SAN_CM_IDLE, act_forget},
	},
	[SAN_CM_REP_SENT] = {
		[CM_IN_REQUEST] = {SAN_CM_REP_SENT, act_again},
		[CM_IN_RTU] = {SAN_CM_ESTABLISHED, act_open},
		[CM_IN_REJ] = {SAN_CM_TIMEWAIT, act_lost},
		[CM_IN_DREQ] = {SAN_CM_TIMEWAIT, act_ended},
		[CM_IN_CLOSE] = {SAN_CM_DREQ_SENT, act_dreq},
		[CM_IN_CLOSE_NOW] = {SAN_CM_DREQ_SENT, act_dreq},
		[CM_IN_FAILED] = {SAN_CM_TIMEWAIT, act_failed},
		[CM_IN_EXPIRED] = {SAN_CM_TIMEWAIT, act_failed},
	},
	[SAN_CM_ESTABLISHED] = {
		[CM_IN_REQUEST] = {SAN_CM_ESTABLISHED, act_rep_again},
		[CM_IN_REP] = {SAN_CM_ESTABLISHED, act_rtu_again},
		[CM_IN_RTU] = {SAN_CM_ESTABLISHED, act_none},
		[CM_IN_DREQ] = {SAN_CM_TIMEWAIT, act_ended},
		[CM_IN_RESET] = {SAN_CM_TIMEWAIT, act_lost},
		[CM_IN_CLOSE] = {SAN_CM_DRAINING, act_drain},
		[CM_IN_CLOSE_NOW] = {SAN_CM_DREQ_SENT, act_dreq},
		[CM_IN_FAILED] = {SAN_CM_TIMEWAIT, act_failed},
	},
	[SAN_CM_DRAINING] = {
		[CM_IN_REP] = {SAN_CM_DRAINING, act_rtu_again},
		[CM_IN_RTU] = {SAN_CM_DRAINING, act_none},
		[CM_IN_DREQ] = {SAN_CM_TIMEWAIT, act_both_closed},
		[CM_IN_RESET] = {SAN_CM_TIMEWAIT, act_lost},
		[CM_IN_CLOSE] = {SAN_CM_DRAINING, act_none},
		[CM_IN_CLOSE_NOW] = {SAN_CM_DREQ_SENT, act_dreq},
		[CM_IN_DRAINED] = {SAN_CM_DREQ_SENT, act_dreq},
		[CM_IN_FAILED] = {SAN_CM_TIMEWAIT, act_failed},
		[CM_IN_EXPIRED] = {SAN_CM_DREQ_SENT, act_dreq},
	},
	[SAN_CM_DREQ_SENT] = {
		[CM_IN_RTU] = {SAN_CM_DREQ_SENT, act_none},
		[CM_IN_DREQ] = {SAN_CM_TIMEWAIT, act_both_closed},
		[CM_IN_DREP] = {SAN_CM_TIMEWAIT, act_closed},
		[CM_IN_RESET] = {SAN_CM_TIMEWAIT, act_closed},
		[CM_IN_CLOSE] = {SAN_CM_DREQ_SENT, act_none},
		[CM_IN_CLOSE_NOW] = {SAN_CM_DREQ_SENT, act_none},
		[CM_IN_FAILED] = {SAN_CM_TIMEWAIT, act_failed},
		[CM_IN_EXPIRED] = {SAN_CM_TIMEWAIT, act_closed},
	},
	[SAN_CM_TIMEWAIT] = {
		[CM_IN_REQUEST] = {SAN_CM_TIMEWAIT, act_refuse_again},
		[CM_IN_DREQ] = {SAN_CM_TIMEWAIT, act_drep},
	},
};
static_assert(RTE_DIM(rules) == SAN_CM_STATE_MAX, "a state has no rules");

bool
san_cm_fsm_step(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	const struct cm_rule *rule = &rules[c->state][s->in];

	if (rule->action == NULL)
		return false;
	set_state(cm, c, rule->next);
	rule->action(cm, c, s);
	return true;
}

/* ---- what our ULP and the core do ---- */

static uint32_t
first_rsn(const struct san_pdl *pdl)
{
	return pdl->conf.fixed_psn ? pdl->conf.first_psn :
				     pdl->conf.secret32(pdl->conf.secret_arg);
}

/** The source ports that bring the peer's packets here. (rule 13) */
static void
fill_ports(const struct san_cm *cm, const struct san_pdl_conn *pc, struct san_wire_cm *own)
{
	uint32_t first;

	memset(own->ports, 0, sizeof(own->ports));
	own->nb_ports = 0;
	if (cm->conf.steer != NULL) {
		first = (uint32_t)san_prng_u64(&cm->pdl->prng) >> 1;
		own->nb_ports = san_cm_steer_ports(cm->conf.steer, cm->conf.queue, &pc->path.dst,
						   &pc->path.src, cm->conf.path.dst_port, first,
						   own->ports);
	}
	if (own->nb_ports != 0)
		return;
	own->nb_ports = (uint8_t)cm->conf.nb_ports;
	memcpy(own->ports, cm->conf.ports, sizeof(own->ports));
}

/** Our offer, into the message that carries it. */
static void
fill_offer(struct san_cm *cm, struct san_cm_conn *c, const struct san_cm_param *param)
{
	const struct san_pdl_conn *pc = cm_pdl_conn(cm, c);
	struct san_wire_cm *own = &c->own;

	own->src_cid = pc->cid;
	own->src_tag = pc->tag;
	own->req_psn = pc->tx[SAN_WIN_REQ].next;
	own->data_psn = pc->tx[SAN_WIN_DATA].next;
	own->first_rsn = first_rsn(cm->pdl);
	own->features = cm->conf.features;
	own->mtu = param->mtu;
	own->req_win = param->req_win;
	own->data_win = param->data_win;
	own->first_win = param->first_win;
	own->max_txn = param->max_txn;
	own->rnr_ms = param->rnr_ms;
	own->keepalive_ms = param->keepalive_ms;
	fill_ports(cm, pc, own);
	own->private_len = param->private_len;
	memcpy(own->private_data, param->private_data, param->private_len);
	c->keepalive_ns = param->keepalive_ms * SAN_NS_PER_MS;
}

/** Somebody can be there: same family, and no address that stands for nobody or many. */
static bool
is_peer_valid(const struct san_ip *local, const struct san_ip *peer)
{
	static const struct san_ip none;
	static const uint8_t none_v4[4];

	if (san_ip_is_v4(local) != san_ip_is_v4(peer))
		return false;
	if (san_ip_is_v4(peer))
		return memcmp(peer->b + 12, none_v4, sizeof(none_v4)) != 0 && peer->b[12] < 224;
	return !san_ip_eq(peer, &none) && peer->b[0] != 0xff;
}

int
san_cm_connect(struct san_cm *cm, const struct san_ip *local, const struct san_ip *peer,
	       uint64_t service, const struct san_cm_param *param, uint64_t cookie,
	       uint64_t now_ns, uint16_t *slot)
{
	const struct cm_step s = {.in = CM_IN_CONNECT, .now_ns = now_ns};
	struct san_cm_conn *c;
	int rc;

	cm->now_ns = now_ns;
	if (!san_cm_param_valid(param) || !is_peer_valid(local, peer))
		return -EINVAL;
	rc = san_cm_conn_add(cm, local, peer, param->pkey, now_ns, &c);
	if (rc != 0)
		return rc;
	c->cookie = cookie;
	c->own.xid = cm->pdl->conf.secret32(cm->pdl->conf.secret_arg);
	c->own.service = service;
	c->own.flags = (uint8_t)((param->ordered ? SAN_CM_F_ORDERED : 0) |
				 (param->relaxed ? SAN_CM_F_RELAXED : 0));
	c->agreed.pdl.msg_limit = param->msg_limit;
	fill_offer(cm, c, param);
	san_cm_fsm_step(cm, c, &s);
	*slot = c->slot;
	return 0;
}

struct san_cm_conn *
san_cm_fsm_at(struct san_cm *cm, uint16_t slot, uint64_t now_ns)
{
	cm->now_ns = now_ns;
	if (slot >= cm->conf.max_conns || cm->conns[slot].is_ghost)
		return NULL;
	return &cm->conns[slot];
}

/* Not before its event was taken: the ULP can't mean this one. */
static bool
is_answerable(const struct san_cm_conn *c)
{
	return c != NULL && c->state == SAN_CM_WAIT_ACCEPT && !c->in_ev && !c->is_taken;
}

void
san_cm_fsm_accept(struct san_cm *cm, struct san_cm_conn *c, const struct san_cm_param *param,
		  uint64_t cookie, enum cm_input in, uint64_t now_ns)
{
	const struct cm_step s = {.in = in, .now_ns = now_ns};

	c->cookie = cookie;
	fill_offer(cm, c, param);
	agree(c, param->msg_limit);
	san_cm_fsm_step(cm, c, &s);
}

int
san_cm_accept(struct san_cm *cm, uint16_t slot, const struct san_cm_param *param,
	      uint64_t cookie, uint64_t now_ns)
{
	struct san_cm_conn *c = san_cm_fsm_at(cm, slot, now_ns);

	if (!is_answerable(c))
		return -ENOENT;
	/* ordered and relaxed are the connecting side's */
	if (!san_cm_param_valid(param))
		return -EINVAL;
	san_cm_fsm_accept(cm, c, param, cookie, CM_IN_ACCEPT, now_ns);
	return 0;
}

int
san_cm_reject(struct san_cm *cm, uint16_t slot, uint8_t reason, const void *private_data,
	      uint16_t private_len, uint64_t now_ns)
{
	const struct cm_step s = {.in = CM_IN_REJECT, .reason = reason, .now_ns = now_ns};
	struct san_cm_conn *c = san_cm_fsm_at(cm, slot, now_ns);

	if (!is_answerable(c))
		return -ENOENT;
	if (private_len > SAN_WIRE_CM_PRIVATE || reason >= SAN_CM_R_MAX)
		return -EINVAL;
	c->own.private_len = private_len;
	if (private_len != 0)
		memcpy(c->own.private_data, private_data, private_len);
	san_cm_fsm_step(cm, c, &s);
	return 0;
}

int
san_cm_disconnect(struct san_cm *cm, uint16_t slot, bool hard, uint64_t now_ns)
{
	const struct cm_step s = {.in = hard ? CM_IN_CLOSE_NOW : CM_IN_CLOSE, .now_ns = now_ns};
	struct san_cm_conn *c = san_cm_fsm_at(cm, slot, now_ns);

	return c != NULL && san_cm_fsm_step(cm, c, &s) ? 0 : -ENOTCONN;
}

void
san_cm_drained(struct san_cm *cm, uint16_t slot, uint64_t now_ns)
{
	const struct cm_step s = {.in = CM_IN_DRAINED, .now_ns = now_ns};
	struct san_cm_conn *c = san_cm_fsm_at(cm, slot, now_ns);

	if (c != NULL)
		san_cm_fsm_step(cm, c, &s);
}

void
san_cm_failed(struct san_cm *cm, uint16_t slot, uint8_t reason, uint64_t now_ns)
{
	const struct cm_step s = {.in = CM_IN_FAILED, .reason = reason, .now_ns = now_ns};
	struct san_cm_conn *c = san_cm_fsm_at(cm, slot, now_ns);

	if (c != NULL)
		san_cm_fsm_step(cm, c, &s);
}

void
san_cm_resolved(struct san_cm *cm, const struct san_ip *ip, const struct rte_ether_addr *mac,
		uint64_t now_ns)
{
	const struct cm_step s = {.in = CM_IN_RESOLVED, .now_ns = now_ns};
	struct san_cm_conn *c, *next;

	cm->now_ns = now_ns;
	for (c = TAILQ_FIRST(&cm->resolving); c != NULL; c = next) {
		next = TAILQ_NEXT(c, resolving_link);
		if (!san_ip_eq(&c->peer, ip))
			continue;
		cm_pdl_conn(cm, c)->path.dst_mac = *mac;
		san_cm_fsm_step(cm, c, &s);
	}
}

/** Does the state repeat own.msg? */
static bool
is_repeating(uint8_t state)
{
	return state == SAN_CM_RESOLVING || state == SAN_CM_REQ_SENT ||
		state == SAN_CM_REQ_COOKIE_SENT || state == SAN_CM_REP_SENT ||
		state == SAN_CM_DREQ_SENT;
}

void
san_cm_on_timer(struct san_cm *cm, uint16_t slot, uint64_t now_ns)
{
	struct cm_step s = {.in = CM_IN_EXPIRED, .now_ns = now_ns};
	struct san_cm_conn *c = san_cm_fsm_at(cm, slot, now_ns);
	const struct san_pdl_conn *pc;

	/* one timer for all layers: perhaps another one's time has come */
	if (c == NULL || c->state == SAN_CM_IDLE)
		return;
	pc = cm_pdl_conn(cm, c);
	if (now_ns < pc->cm_deadline_ns)
		return;
	if (c->state == SAN_CM_ESTABLISHED) {
		if (san_cm_keepalive_on_timer(cm, c, now_ns))
			return;
		s.in = CM_IN_FAILED;
		s.reason = SAN_CM_R_TIMEOUT;
	} else if (c->state == SAN_CM_DRAINING && progress_of(pc) != c->drained_to) {
		act_drain(cm, c, &s);
		return;
	} else if (is_repeating(c->state) && c->retries < cm->conf.max_retries) {
		c->retries++;
		send(cm, c, c->own.msg, now_ns);
		return;
	}
	san_cm_fsm_step(cm, c, &s);
}
