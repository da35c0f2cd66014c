/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * State machine of a connection: one table [state][input] = {next, action}, and one function that
 * sets the state. (RT-1, RT-23, RT-24; RULE-17)
 *
 *   connecting   RESOLVING -> REQ_SENT -> REQ_COOKIE_SENT -> ESTABLISHED
 *   accepting    WAIT_ACCEPT -> REP_SENT -> ESTABLISHED
 *   ending       ESTABLISHED -> DRAINING -> DREQ_SENT -> TIMEWAIT
 *
 * Each state has at most one timer, in cm_deadline_ns of the connection:
 *   RESOLVING, REQ_SENT, REQ_COOKIE_SENT, REP_SENT, DREQ_SENT
 *                 send c->msg again, max_retries times, at intervals of retry_wait_ns()
 *   WAIT_ACCEPT   for longer than the connecting side repeats its REQ
 *   ESTABLISHED   keep-alive (cm_keepalive.c)
 *   DRAINING      drain_ns without progress
 *   TIMEWAIT      none: it ends when the core releases the slot
 *
 * An action runs after the new state is set, and before a message is sent. Only actions on a
 * request that our ULP has not accepted may free the record: no other layer refers to it yet.
 */

#include <errno.h>

#include <rte_common.h>

#include "cm_priv.h"
#include "inet.h"
#include "san_log.h"

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

/** Add *change* to the WAIT_ACCEPT counts of the listener and the host of *c*. */
static void
count_waiting(struct san_cm *cm, const struct san_cm_conn *c, int change)
{
	cm->listeners[c->listener].nb_waiting += change;
	*san_cm_waiting(cm, san_cm_peer(cm, c)) += change;
}

/** Change the state; this is the only place. Counts, traces, and leaves lists of the old state. */
static void
set_state(struct san_cm *cm, struct san_cm_conn *c, enum san_cm_state next)
{
	if (c->state == (uint8_t)next)
		return;
	SAN_LOG(CM, DEBUG, "slot=%u state=%s next=%s", c->slot, state_names[c->state],
		state_names[next]);
	if (c->state == SAN_CM_RESOLVING)
		TAILQ_REMOVE(san_cm_resolving(cm, san_cm_peer(cm, c)), c, change_link);
	if (c->state == SAN_CM_WAIT_ACCEPT)
		count_waiting(cm, c, -1);
	if (next == SAN_CM_RESOLVING)
		TAILQ_INSERT_TAIL(san_cm_resolving(cm, san_cm_peer(cm, c)), c, change_link);
	if (next == SAN_CM_WAIT_ACCEPT)
		count_waiting(cm, c, 1);
	c->state = (uint8_t)next;
	c->retries = 0;
}

/* The wait doubles up to a limit. Without a limit, too few tries would be left for a bad link. */
static uint64_t
retry_wait_ns(const struct san_cm *cm, uint32_t retries)
{
	uint64_t most_ns = RTE_MAX(cm->conf.retry_ns, SAN_CM_RETRY_MAX_NS);

	return RTE_MIN(cm->conf.retry_ns << retries, most_ns);
}

/** Send *msg* and repeat it until the state changes. */
static void
fsm_send_msg(struct san_cm *cm, struct san_cm_conn *c, uint8_t msg, uint64_t now_ns)
{
	c->msg = msg;
	if (c->retries == 0 && san_cm_is_setup(cm, c))
		san_cm_setup(cm, c)->asked_ns = 0;
	san_cm_tx_add(cm, c);
	san_cm_timer(cm, c, now_ns + retry_wait_ns(cm, c->retries));
}

/** Stop sending and stop the timer. The core ends the connection when it takes the event. */
static void
fsm_finish_conn(struct san_cm *cm, struct san_cm_conn *c, enum san_cm_event_type ev, uint8_t reason)
{
	san_cm_tx_del(cm, c);
	san_cm_timer(cm, c, SAN_TIME_NEVER);
	c->reason = reason;
	san_cm_event_add(cm, c, ev);
}

/* ---- connecting ---- */

static void
keep_cookie(const struct san_cm *cm, const struct san_cm_conn *c, const struct cm_step *s)
{
	struct cm_setup *own = san_cm_setup(cm, c);

	memcpy(own->cookie, s->msg->cookie, sizeof(own->cookie));
	own->flags |= SAN_CM_F_COOKIE;
}

/*
 * Measure the round trip of the path from the answer to a message that was sent once. Only an
 * answer sent automatically counts. A REP waited for the peer's ULP, and so did a request that
 * arrives in place of an RTU.
 */
static void
measure_path(const struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	uint64_t asked_ns = san_cm_setup(cm, c)->asked_ns;

	if (s->msg != NULL && asked_ns != 0 && asked_ns != SAN_TIME_NEVER)
		san_pdl_rtt_path(cm->pdl, san_cm_pdl_conn(cm, c), s->now_ns - asked_ns);
}

static void
act_cookie(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	struct san_pdl_conn *pc = san_cm_pdl_conn(cm, c);

	/* the answer arrived before the address was resolved */
	if (rte_is_zero_ether_addr(&pc->path.dst_mac))
		pc->path.dst_mac = s->pkt->src_mac;
	measure_path(cm, c, s);
	keep_cookie(cm, c, s);
	c->cookie_retries = 0;
}

/*
 * The cookie that was sent has expired. The new one is sent at once, because it might have expired
 * by the next retry. This is done once per retry: otherwise a peer that refuses every cookie could
 * cause an endless exchange.
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
act_rejected(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	struct cm_setup *setup = san_cm_setup(cm, c);

	setup->private_len = s->msg->msg == SAN_CM_REJ ? s->msg->private_len : 0;
	memcpy(setup->private_data, s->msg->private_data, setup->private_len);
}

/* The peer accepted, but disconnected before the REP reached us. */
static void
act_withdrawn(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	c->peer_cid = s->msg->src_cid;
	c->peer_tag = s->msg->src_tag;
	san_cm_setup(cm, c)->private_len = 0;
	san_cm_tx_farewell(cm, c, SAN_CM_DREP, RTSAN_R_NONE);
	fsm_finish_conn(cm, c, SAN_CM_EV_REJECTED, RTSAN_R_REFUSED);
}

/* ---- accepting ---- */

/** Wait longer for our ULP than the peer repeats its REQ. */
static void
act_keep(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	uint32_t n = cm->conf.max_retries + 1;

	san_cm_timer(cm, c, s->now_ns + n * retry_wait_ns(cm, n));
}

static void
act_request(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	act_keep(cm, c, s);
	san_cm_event_add(cm, c, SAN_CM_EV_CONNECT_REQUEST);
}

/* The slot is free at once; a ghost repeats the REJ while the REQ is repeated. */
static void
act_reject(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	c->reason = s->reason;
	c->is_refused = true;
	san_cm_tx_farewell(cm, c, SAN_CM_REJ, s->reason);
	san_cm_conn_free(cm, c, cm->conf.timewait_ns, s->now_ns);
}

static void
act_refuse_again(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	struct san_wire_cm rej;

	if (!c->is_refused || !san_cm_tx_rate_take(cm, &cm->answers, san_cm_peer(cm, c), s->now_ns))
		return;
	san_cm_tx_build(cm, c, SAN_CM_REJ, &rej);
	san_cm_tx_reply(cm, s->pkt, san_cm_reply_udp_port(s->pkt, s->msg), &rej);
}

/* The slot is free at once; of a request that has moved, a ghost recognises copies of the REQ. */
static void
act_forget(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	san_cm_conn_free(cm, c, s->in == CM_IN_MOVED ? cm->conf.timewait_ns : 0, s->now_ns);
}

/* ---- open ---- */

static void
open_conn(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	struct san_pdl_conn *pc = san_cm_pdl_conn(cm, c);
	const struct cm_setup *setup = san_cm_setup(cm, c);
	const struct san_cm_agreed *a = &setup->agreed;

	c->is_agreed = true;
	san_pdl_conn_open(cm->pdl, pc, &a->pdl, a->rx_req_win, a->rx_data_win, s->now_ns);
	pc->rx_first_win = setup->first_win;
	san_cm_keepalive_start(cm, c, s->now_ns);
	san_cm_event_add(cm, c, SAN_CM_EV_ESTABLISHED);
}

/** Complete *agreed*, which holds the peer's offer so far, by our offer. */
static void
fsm_agree_limits(const struct san_cm *cm, struct cm_setup *own)
{
	struct san_cm_agreed *a = &own->agreed;

	a->pdl.mtu = RTE_MIN(a->pdl.mtu, own->mtu);
	a->n_tx = RTE_MIN(a->n_tx, own->max_txn);
	a->n_rx = a->n_tx;
	a->features &= cm->conf.features | SAN_CM_FEAT_STREAM; /* set on both sides or on neither */
}

static void
act_ready(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	fsm_agree_limits(cm, san_cm_setup(cm, c));
	c->msg = SAN_CM_RTU;
	san_cm_hash_add(cm, c);
	san_cm_tx_add(cm, c);
	open_conn(cm, c, s);
}

/*
 * The peer repeats its REQ, perhaps although the connection is open here. Then another packet was
 * taken for its RTU, or the REQ is a late copy. In all cases send the REP, which the peer answers
 * by an RTU; this is no retry. If the memory of the set-up has been reused, the REP cannot be
 * built. Then the peer has no connection, and keep-alive detects that.
 */
static void
act_rep_again(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s __rte_unused)
{
	if (san_cm_is_setup(cm, c) && c->msg == SAN_CM_REP)
		san_cm_tx_add(cm, c);
}

/* Our RTU was lost. */
static void
act_rtu_again(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s __rte_unused)
{
	if (!c->passive)
		san_cm_tx_add(cm, c);
}

static void
act_open(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	san_cm_tx_del(cm, c);
	measure_path(cm, c, s);
	open_conn(cm, c, s);
}

/* ---- ending ---- */

/* A value that changes with every PSN finished in either direction. */
static uint32_t
fsm_progress_of(const struct san_pdl_conn *pc)
{
	return pc->tx[SAN_WIN_REQ].base + pc->tx[SAN_WIN_DATA].base + pc->rx[SAN_WIN_REQ].base +
		pc->rx[SAN_WIN_DATA].base;
}

static void
act_drain(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	c->drained_to = fsm_progress_of(san_cm_pdl_conn(cm, c));
	san_cm_timer(cm, c, s->now_ns + cm->conf.drain_ns);
}

static void
act_dreq(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s __rte_unused)
{
	san_pdl_conn_close(cm->pdl, san_cm_pdl_conn(cm, c));
}

/* ---- the table ---- */

struct cm_rule {
	enum san_cm_state next; /**< IDLE: the state ignores this input */
	void (*action)(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s);
	enum san_wire_cm_msg send;     /**< until the state changes */
	enum san_wire_cm_msg farewell; /**< sent once */
	enum san_cm_event_type end;
};

#define PEER_ENDS .farewell = SAN_CM_DREP, .end = SAN_CM_EV_DISCONNECTED
/* If only one direction fails, a DREQ still reports the end to the peer. */
#define FAILS .farewell = SAN_CM_DREQ, .end = SAN_CM_EV_DISCONNECTED
/* What ends an attempt to connect. */
#define CONNECTING_ENDS                                                           \
	[CM_IN_REJ] = {SAN_CM_TIMEWAIT, act_rejected, .end = SAN_CM_EV_REJECTED}, \
	[CM_IN_CLOSE] = {SAN_CM_TIMEWAIT, .end = SAN_CM_EV_CLOSED},               \
	[CM_IN_CLOSE_NOW] = {SAN_CM_TIMEWAIT, .end = SAN_CM_EV_CLOSED},           \
	[CM_IN_EXPIRED] = {SAN_CM_TIMEWAIT, .end = SAN_CM_EV_UNREACHABLE}

static const struct cm_rule rules[][CM_IN_MAX] = {
	[SAN_CM_IDLE] = {
		[CM_IN_CONNECT] = {SAN_CM_RESOLVING, .send = SAN_CM_REQ},
		[CM_IN_REQUEST] = {SAN_CM_WAIT_ACCEPT, act_request},
		[CM_IN_ADOPT] = {SAN_CM_REP_SENT, .send = SAN_CM_REP},
	},
	[SAN_CM_RESOLVING] = {
		[CM_IN_RESOLVED] = {SAN_CM_REQ_SENT, .send = SAN_CM_REQ},
		[CM_IN_COOKIE] = {SAN_CM_REQ_COOKIE_SENT, act_cookie, .send = SAN_CM_REQ},
		CONNECTING_ENDS,
	},
	[SAN_CM_REQ_SENT] = {
		[CM_IN_COOKIE] = {SAN_CM_REQ_COOKIE_SENT, act_cookie, .send = SAN_CM_REQ},
		CONNECTING_ENDS,
	},
	[SAN_CM_REQ_COOKIE_SENT] = {
		[CM_IN_COOKIE] = {SAN_CM_REQ_COOKIE_SENT, act_fresh_cookie},
		[CM_IN_REP] = {SAN_CM_ESTABLISHED, act_ready},
		[CM_IN_DREQ] = {SAN_CM_TIMEWAIT, act_withdrawn},
		CONNECTING_ENDS,
	},
	[SAN_CM_WAIT_ACCEPT] = {
		[CM_IN_REQUEST] = {SAN_CM_WAIT_ACCEPT, act_keep},
		[CM_IN_ACCEPT] = {SAN_CM_REP_SENT, .send = SAN_CM_REP},
		[CM_IN_MOVED] = {SAN_CM_TIMEWAIT, act_forget},
		[CM_IN_REJECT] = {SAN_CM_TIMEWAIT, act_reject},
		[CM_IN_EXPIRED] = {SAN_CM_TIMEWAIT, act_forget},
	},
	[SAN_CM_REP_SENT] = {
		[CM_IN_REQUEST] = {SAN_CM_REP_SENT, act_rep_again},
		[CM_IN_RTU] = {SAN_CM_ESTABLISHED, act_open},
		[CM_IN_REJ] = {SAN_CM_TIMEWAIT, .end = SAN_CM_EV_DISCONNECTED},
		[CM_IN_DREQ] = {SAN_CM_TIMEWAIT, PEER_ENDS},
		[CM_IN_CLOSE] = {SAN_CM_DREQ_SENT, act_dreq, .send = SAN_CM_DREQ},
		[CM_IN_CLOSE_NOW] = {SAN_CM_DREQ_SENT, act_dreq, .send = SAN_CM_DREQ},
		[CM_IN_FAILED] = {SAN_CM_TIMEWAIT, FAILS},
		[CM_IN_EXPIRED] = {SAN_CM_TIMEWAIT, FAILS},
	},
	[SAN_CM_ESTABLISHED] = {
		[CM_IN_REQUEST] = {SAN_CM_ESTABLISHED, act_rep_again},
		[CM_IN_REP] = {SAN_CM_ESTABLISHED, act_rtu_again},
		[CM_IN_RTU] = {SAN_CM_ESTABLISHED},
		[CM_IN_DREQ] = {SAN_CM_TIMEWAIT, PEER_ENDS},
		[CM_IN_RESET] = {SAN_CM_TIMEWAIT, .end = SAN_CM_EV_DISCONNECTED},
		[CM_IN_CLOSE] = {SAN_CM_DRAINING, act_drain},
		[CM_IN_CLOSE_NOW] = {SAN_CM_DREQ_SENT, act_dreq, .send = SAN_CM_DREQ},
		[CM_IN_FAILED] = {SAN_CM_TIMEWAIT, FAILS},
	},
	[SAN_CM_DRAINING] = {
		[CM_IN_REP] = {SAN_CM_DRAINING, act_rtu_again},
		[CM_IN_RTU] = {SAN_CM_DRAINING},
		/* both sides close */
		[CM_IN_DREQ] = {SAN_CM_TIMEWAIT, .farewell = SAN_CM_DREP, .end = SAN_CM_EV_CLOSED},
		[CM_IN_RESET] = {SAN_CM_TIMEWAIT, .end = SAN_CM_EV_DISCONNECTED},
		[CM_IN_CLOSE] = {SAN_CM_DRAINING},
		[CM_IN_CLOSE_NOW] = {SAN_CM_DREQ_SENT, act_dreq, .send = SAN_CM_DREQ},
		[CM_IN_DRAINED] = {SAN_CM_DREQ_SENT, act_dreq, .send = SAN_CM_DREQ},
		[CM_IN_FAILED] = {SAN_CM_TIMEWAIT, FAILS},
		[CM_IN_EXPIRED] = {SAN_CM_DREQ_SENT, act_dreq, .send = SAN_CM_DREQ},
	},
	[SAN_CM_DREQ_SENT] = {
		[CM_IN_RTU] = {SAN_CM_DREQ_SENT},
		[CM_IN_DREQ] = {SAN_CM_TIMEWAIT, .farewell = SAN_CM_DREP, .end = SAN_CM_EV_CLOSED},
		[CM_IN_DREP] = {SAN_CM_TIMEWAIT, .end = SAN_CM_EV_CLOSED},
		[CM_IN_RESET] = {SAN_CM_TIMEWAIT, .end = SAN_CM_EV_CLOSED},
		[CM_IN_CLOSE] = {SAN_CM_DREQ_SENT},
		[CM_IN_CLOSE_NOW] = {SAN_CM_DREQ_SENT},
		[CM_IN_FAILED] = {SAN_CM_TIMEWAIT, FAILS},
		[CM_IN_EXPIRED] = {SAN_CM_TIMEWAIT, .end = SAN_CM_EV_CLOSED},
	},
	[SAN_CM_TIMEWAIT] = {
		[CM_IN_REQUEST] = {SAN_CM_TIMEWAIT, act_refuse_again},
		/* repeated: it is answered until the core releases the slot */
		[CM_IN_DREQ] = {SAN_CM_TIMEWAIT, .farewell = SAN_CM_DREP},
	},
};
static_assert(RTE_DIM(rules) == SAN_CM_STATE_MAX, "a state has no rules");

bool
san_cm_fsm_step(struct san_cm *cm, struct san_cm_conn *c, const struct cm_step *s)
{
	const struct cm_rule *rule = &rules[c->state][s->in];

	/* what a peer's message says about the end that we have asked for is of no interest */
	uint8_t reason = rule->end == SAN_CM_EV_CLOSED && s->msg != NULL ? RTSAN_R_NONE : s->reason;

	if (rule->next == SAN_CM_IDLE)
		return false;
	set_state(cm, c, rule->next);
	if (rule->action != NULL)
		rule->action(cm, c, s);
	if (rule->send != 0)
		fsm_send_msg(cm, c, rule->send, s->now_ns);
	if (rule->farewell != 0)
		san_cm_tx_farewell(cm, c, rule->farewell,
				   rule->farewell == SAN_CM_DREQ ? reason : RTSAN_R_NONE);
	if (rule->end != 0)
		fsm_finish_conn(cm, c, rule->end, reason);
	return true;
}

/* ---- calls of our ULP and the core ---- */

/** Store our offer, for the messages that carry it. */
static void
fsm_fill_offer(struct san_cm *cm, struct san_cm_conn *c, const struct san_cm_param *param)
{
	const struct san_pdl_conf *conf = &cm->pdl->conf;
	struct cm_setup *own = san_cm_setup(cm, c);

	own->agreed.first_rsn_tx =
		conf->fixed_psn ? conf->first_psn : conf->secret32(conf->secret_arg);
	own->agreed.rx_req_win = param->req_win;
	own->agreed.rx_data_win = param->data_win;
	own->agreed.rnr_tx_ms = param->rnr_ms;
	own->agreed.pdl.msg_limit = param->msg_limit;
	own->mtu = param->mtu;
	own->first_win = param->first_win;
	own->max_txn = param->max_txn;
	own->is_stream = param->stream;
	c->uid = param->uid;
	own->private_len = param->private_len;
	memcpy(own->private_data, param->private_data, param->private_len);
	c->keepalive_ms = param->keepalive_ms;
}

/** True if a peer may have this address: same family, not unspecified, not multicast. */
static bool
is_peer_valid(const struct san_ip *local, const struct san_ip *peer)
{
	return san_wire_ip_is_v4(local) == san_wire_ip_is_v4(peer) && !san_inet_is_any(peer) &&
		!san_cm_is_multicast(peer);
}

int
san_cm_fsm_connect(struct san_cm *cm, const struct san_ip *local, const struct san_ip *peer,
		   uint64_t service, const struct san_cm_param *param, uint64_t cookie,
		   uint64_t now_ns, uint16_t *slot)
{
	const struct cm_step s = {.in = CM_IN_CONNECT, .now_ns = now_ns};
	struct cm_setup *setup;
	struct san_cm_conn *c;
	int rc;

	cm->now_ns = now_ns;
	if (!san_cm_param_valid(param) || !is_peer_valid(local, peer) ||
	    (param->stream && (!param->ordered || param->relaxed || param->ends)))
		return -EINVAL;
	rc = san_cm_conn_add(cm, local, peer, param->pkey, &c);
	if (rc != 0)
		return rc;
	c->cookie = cookie;
	c->xid = cm->pdl->conf.secret32(cm->pdl->conf.secret_arg);
	setup = san_cm_setup(cm, c);
	setup->service = service;
	setup->flags = (uint8_t)((param->ordered ? SAN_CM_F_ORDERED : 0) |
				 (param->relaxed ? SAN_CM_F_RELAXED : 0) |
				 (param->ends ? SAN_CM_F_ENDS : 0));
	fsm_fill_offer(cm, c, param);
	san_cm_fsm_step(cm, c, &s);
	*slot = c->slot;
	return 0;
}

struct san_cm_conn *
san_cm_fsm_request_at(struct san_cm *cm, uint16_t slot, uint64_t now_ns)
{
	struct san_cm_conn *c = san_cm_conn_at(cm, slot, now_ns);

	if (c == NULL || c->state != SAN_CM_WAIT_ACCEPT || c->events != 0 || c->is_taken)
		return NULL;
	return c;
}

void
san_cm_fsm_accept(struct san_cm *cm, struct san_cm_conn *c, const struct san_cm_param *param,
		  uint64_t cookie, enum cm_input in, uint64_t now_ns)
{
	const struct cm_step s = {.in = in, .now_ns = now_ns};

	c->cookie = cookie;
	fsm_fill_offer(cm, c, param);
	fsm_agree_limits(cm, san_cm_setup(cm, c));
	san_cm_fsm_step(cm, c, &s);
}

int
san_cm_fsm_accept_peer(struct san_cm *cm, uint16_t slot, const struct san_cm_param *param,
		       uint64_t cookie, uint64_t now_ns)
{
	struct san_cm_conn *c = san_cm_fsm_request_at(cm, slot, now_ns);

	if (c == NULL)
		return -ENOENT;
	/* param->ordered is not compared: the connecting side decides it */
	if (!san_cm_param_valid(param))
		return -EINVAL;
	if (san_cm_has_stream(san_cm_setup(cm, c)->agreed.features) != param->stream)
		return -EPROTOTYPE;
	san_cm_fsm_accept(cm, c, param, cookie, CM_IN_ACCEPT, now_ns);
	return 0;
}

int
san_cm_fsm_reject(struct san_cm *cm, uint16_t slot, const void *private_data, uint16_t private_len,
		  uint64_t now_ns)
{
	const struct cm_step s = {
		.in = CM_IN_REJECT, .reason = RTSAN_R_REFUSED, .now_ns = now_ns};
	struct san_cm_conn *c = san_cm_fsm_request_at(cm, slot, now_ns);
	struct cm_setup *setup;

	if (c == NULL)
		return -ENOENT;
	if (private_len > SAN_WIRE_CM_PRIVATE)
		return -EINVAL;
	setup = san_cm_setup(cm, c);
	setup->private_len = private_len;
	if (private_len != 0)
		memcpy(setup->private_data, private_data, private_len);
	san_cm_fsm_step(cm, c, &s);
	return 0;
}

int
san_cm_fsm_disconnect(struct san_cm *cm, uint16_t slot, bool hard, uint64_t now_ns)
{
	const struct cm_step s = {.in = hard ? CM_IN_CLOSE_NOW : CM_IN_CLOSE, .now_ns = now_ns};
	struct san_cm_conn *c = san_cm_conn_at(cm, slot, now_ns);

	return c != NULL && san_cm_fsm_step(cm, c, &s) ? 0 : -ENOTCONN;
}

void
san_cm_fsm_drained(struct san_cm *cm, uint16_t slot, uint64_t now_ns)
{
	const struct cm_step s = {.in = CM_IN_DRAINED, .now_ns = now_ns};
	struct san_cm_conn *c = san_cm_conn_at(cm, slot, now_ns);

	if (c != NULL)
		san_cm_fsm_step(cm, c, &s);
}

void
san_cm_fsm_failed(struct san_cm *cm, uint16_t slot, uint8_t reason, uint64_t now_ns)
{
	const struct cm_step s = {.in = CM_IN_FAILED, .reason = reason, .now_ns = now_ns};
	struct san_cm_conn *c = san_cm_conn_at(cm, slot, now_ns);

	if (c != NULL)
		san_cm_fsm_step(cm, c, &s);
}

__rte_noinline void
san_cm_fsm_resolved(struct san_cm *cm, const struct san_ip *ip, const struct rte_ether_addr *mac,
		    uint64_t now_ns)
{
	const struct cm_step s = {.in = CM_IN_RESOLVED, .now_ns = now_ns};
	struct san_cm_conn *c, *next;

	cm->now_ns = now_ns;
	for (c = TAILQ_FIRST(san_cm_resolving(cm, ip)); c != NULL; c = next) {
		next = TAILQ_NEXT(c, change_link);
		if (!san_wire_ip_eq(san_cm_peer(cm, c), ip))
			continue;
		san_cm_pdl_conn(cm, c)->path.dst_mac = *mac;
		san_cm_fsm_step(cm, c, &s);
	}
}

void
san_cm_fsm_on_timer(struct san_cm *cm, uint16_t slot, uint64_t now_ns)
{
	struct cm_step s = {.in = CM_IN_EXPIRED, .reason = RTSAN_R_TIMEOUT, .now_ns = now_ns};
	struct san_cm_conn *c = san_cm_conn_at(cm, slot, now_ns);
	const struct san_pdl_conn *pc;

	/* All layers share one timer, which may have fired for another layer. */
	if (c == NULL || c->state == SAN_CM_IDLE)
		return;
	pc = san_cm_pdl_conn(cm, c);
	if (now_ns < pc->cm_deadline_ns)
		return;
	if (c->state == SAN_CM_ESTABLISHED) {
		if (san_cm_keepalive_on_timer(cm, c, now_ns))
			return;
		s.in = CM_IN_FAILED;
	} else if (c->state == SAN_CM_DRAINING && fsm_progress_of(pc) != c->drained_to) {
		act_drain(cm, c, &s);
		return;
	} else if (c->state != SAN_CM_DRAINING && c->state != SAN_CM_WAIT_ACCEPT &&
		   c->retries < cm->conf.max_retries) {
		c->retries++;
		fsm_send_msg(cm, c, c->msg, now_ns);
		return;
	}
	san_cm_fsm_step(cm, c, &s);
}
