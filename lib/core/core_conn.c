/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections: passes decisions of cm to the other layers, and requests of the owner to cm. An
 * established connection is opened in pdl (by cm), tl and ulp. One that ends is closed in reverse
 * order, so that every request completes before the owner gets the event.
 */

#include <string.h>

#include "core_priv.h"

#define DRAIN_RNR_MS 3000 /* in place of a wait without an end, when a connection ends */

/* The slot of *qp*, or NO_SLOT. */
static uint32_t *
core_conn_slot_of(const struct san_core *core, uint32_t qp)
{
	return &core->slot_of_qp[san_ulp_qp_index(&core->conf.ulp, qp)];
}

/* ---- connection events: from cm to the other layers, then to the owner ---- */

/* CID and tag identify this request and no later one, even if its slot is reused. */
static uint64_t
request_of(const struct san_pdl_conn *c)
{
	return (uint64_t)c->tag << 32 | c->cid;
}

static struct san_pdl_conn *
core_conn_find_request(const struct san_core *core, uint64_t request)
{
	struct san_pdl_conn *c = san_pdl_conn_find(core->pdl, (uint32_t)request);

	return c != NULL && request_of(c) == request ? c : NULL;
}

static void
conn_established(struct san_core *core, const struct san_cm_change *cev, uint64_t now_ns)
{
	struct core_stream *s = san_core_stream_at(core, (uint32_t)cev->cookie);
	const struct san_cm_agreed *a = san_cm_agreed(core->cm, cev->slot);
	const struct san_pdl_conn *c = &core->pdl->conns[cev->slot];
	const struct san_tl_peer peer = {
		.ordered = a->pdl.ordered,
		.relaxed = a->pdl.relaxed,
		.ends = a->pdl.ends,
		.pack = (a->features & SAN_CM_FEAT_PACK) != 0,
		.first_rsn_tx = a->first_rsn_tx,
		.first_rsn_rx = a->first_rsn_rx,
		.n_tx = a->n_tx,
		.n_rx = a->n_rx,
		.rnr_tx_ms = a->rnr_tx_ms,
		.rnr_rx_ms = a->rnr_rx_ms,
	};

	san_tl_conn_open(core->tl, cev->slot, &peer);
	san_ulp_qp_bind(core->ulp, (uint32_t)cev->cookie, cev->slot, c->pkey, &c->path.dst);
	if (a->pdl.ends)
		san_ulp_qp_end_on_error(core->ulp, (uint32_t)cev->cookie);
	if (s != NULL)
		san_core_stream_opened(s, now_ns);
}

static struct core_drain *
draining_of(const struct san_core *core, uint16_t slot)
{
	uint32_t i;

	for (i = 0; i < core->nb_draining; i++)
		if (core->draining[i].slot == slot)
			return &core->draining[i];
	return NULL;
}

/* The connection has ended: every request completes before the owner gets the event. */
static void
conn_over(struct san_core *core, const struct san_cm_change *cev, uint64_t now_ns)
{
	uint32_t qp = (uint32_t)cev->cookie;
	bool tried = cev->reason == RTSAN_R_TIMEOUT || cev->reason == RTSAN_R_PATH_MTU;
	uint8_t status = tried ? RTSAN_WC_RETRY_EXC : RTSAN_WC_FLUSHED;
	struct core_stream *s = san_core_stream_at(core, qp);
	struct core_drain *d;

	san_tl_conn_close(core->tl, cev->slot, status, now_ns);
	d = draining_of(core, cev->slot);
	if (d != NULL)
		*d = core->draining[--core->nb_draining];
	san_ulp_qp_unbind(core->ulp, qp);
	if (s != NULL)
		san_core_stream_ended(s, status, now_ns);
	*core_conn_slot_of(core, qp) = NO_SLOT;
	san_cm_release(core->cm, cev->slot, now_ns);
}

static __rte_noinline void
take_cm_events(struct san_core *core, uint64_t now_ns)
{
	struct san_cm_change change;

	while (san_cm_change_next(core->cm, &change)) {
		switch (change.type) {
		case SAN_CM_EV_ESTABLISHED:
			conn_established(core, &change, now_ns);
			break;
		case SAN_CM_EV_REJECTED:
		case SAN_CM_EV_UNREACHABLE:
			san_tl_conn_close(core->tl, change.slot, RTSAN_WC_FLUSHED, 0);
			*core_conn_slot_of(core, (uint32_t)change.cookie) = NO_SLOT;
			break;
		default:
			conn_over(core, &change, now_ns);
			break;
		}
	}
}

void
san_core_conn_cm_events(struct san_core *core, uint64_t now_ns)
{
	if (unlikely(san_cm_has_change(core->cm)))
		take_cm_events(core, now_ns);
}

bool
san_core_conn_poll_event(struct san_core *core, struct san_core_event *ev)
{
	struct san_cm_event cev;

	if (!san_cm_event_next(core->cm, &cev))
		return false;
	ev->type = cev.type == SAN_CM_EV_CLOSED ? RTSAN_EV_DISCONNECTED : cev.type;
	ev->reason = cev.reason;
	ev->request = request_of(&core->pdl->conns[cev.slot]);
	ev->qp = ev->type == RTSAN_EV_CONNECT_REQUEST ? SAN_QPN_NONE : (uint32_t)cev.cookie;
	ev->listener = cev.listener;
	ev->stream = cev.stream;
	ev->peer = cev.peer;
	ev->uid = cev.uid;
	/* it has returned a cookie, or our tag, that was sent to this address */
	ev->is_local = san_inet_route_is_local(core->inet, &cev.peer);
	ev->private_len = cev.private_len;
	memcpy(ev->private_data, cev.private_data, sizeof(ev->private_data));
	return true;
}

/* *slot* will carry *qp*; *accepted*: the peer requested it. */
static void
take_slot(struct san_core *core, uint32_t qp, uint16_t slot, bool ordered, bool accepted)
{
	struct core_stream *s = san_core_stream_at(core, qp);

	if (s != NULL)
		s->accepted = accepted;
	san_tl_conn_prepare(core->tl, slot, ordered);
	san_pdl_conn_give(core->pdl, &core->pdl->conns[slot],
			  (uint8_t)san_ulp_qp_owner(core->ulp, qp));
	*core_conn_slot_of(core, qp) = slot;
}

/* Check that *qp* may get a connection, and compute its offer to *peer*. */
static int
ready_qp(struct san_core *core, uint32_t qp, const struct san_ip *peer, bool ordered,
	 const struct san_cm_param *param, struct san_cm_param *own, uint64_t now_ns)
{
	struct core_stream *s = san_core_stream_at(core, qp);
	int rc;

	if (*core_conn_slot_of(core, qp) != NO_SLOT)
		return -EISCONN;
	if (!san_tl_may_prepare(core->tl, ordered))
		return -ENOSPC;
	*own = *param;
	own->mtu = san_wire_payload_max(core->conf.mtu, !san_wire_ip_is_v4(peer));
	own->stream = s != NULL;
	rc = san_ulp_qp_renew(core->ulp, qp);
	return rc == 0 && s != NULL ? san_core_stream_renew(s, now_ns) : rc;
}

int
san_core_conn_connect(struct san_core *core, uint32_t qp, const struct san_ip *peer,
		      uint64_t service, const struct san_cm_param *param, uint64_t now_ns)
{
	struct san_cm_param own;
	struct san_ip local;
	uint16_t slot;
	int rc;

	if (san_core_stream_at(core, qp) != NULL &&
	    (!param->ordered || param->relaxed || param->ends))
		return -EINVAL;
	rc = ready_qp(core, qp, peer, param->ordered, param, &own, now_ns);
	if (rc == 0)
		rc = san_inet_route_source(core->inet, peer, &local);
	if (rc == 0)
		rc = san_cm_fsm_connect(core->cm, &local, peer, service, &own, qp, now_ns, &slot);
	if (rc == 0)
		take_slot(core, qp, slot, param->ordered, false);
	return rc;
}

int
san_core_conn_accept(struct san_core *core, uint64_t request, uint32_t qp,
		     const struct san_cm_param *param, uint64_t now_ns)
{
	const struct san_pdl_conn *c = core_conn_find_request(core, request);
	struct san_cm_param own;
	bool ordered;
	int rc;

	/* Once accepted, the request no longer exists. */
	if (c == NULL || san_cm_state(core->cm, c->slot) != SAN_CM_WAIT_ACCEPT)
		return -ENOENT;
	ordered = san_cm_is_ordered(core->cm, c->slot);
	rc = ready_qp(core, qp, &c->path.dst, ordered, param, &own, now_ns);
	if (rc == 0)
		rc = san_cm_fsm_accept_peer(core->cm, c->slot, &own, qp, now_ns);
	if (rc == 0)
		take_slot(core, qp, c->slot, ordered, true);
	return rc;
}

int
san_core_conn_request_take(struct san_core *core, uint64_t request, struct san_cm_moved *out,
			   uint64_t now_ns)
{
	const struct san_pdl_conn *c = core_conn_find_request(core, request);

	return c != NULL ? san_cm_move_out(core->cm, c->slot, out, now_ns) : -ENOENT;
}

int
san_core_conn_request_adopt(struct san_core *core, const struct san_cm_moved *moved, uint32_t qp,
			    const struct san_cm_param *param, uint64_t now_ns)
{
	struct san_cm_param own;
	uint16_t slot;
	int rc;

	rc = ready_qp(core, qp, &moved->path.dst, moved->offer.pdl.ordered, param, &own, now_ns);
	if (rc == 0)
		rc = san_cm_move_in(core->cm, moved, &own, qp, now_ns, &slot);
	if (rc == 0)
		take_slot(core, qp, slot, moved->offer.pdl.ordered, true);
	return rc;
}

void
san_core_conn_request_settle(struct san_core *core, uint64_t request, bool adopted, uint64_t now_ns)
{
	const struct san_pdl_conn *c = core_conn_find_request(core, request);

	/* If the request has ended meanwhile, the peer knows and ends the adopted connection. */
	if (c != NULL)
		san_cm_move_done(core->cm, c->slot, adopted, now_ns);
}

int
san_core_conn_reject(struct san_core *core, uint64_t request, const void *private_data,
		     uint16_t private_len, uint64_t now_ns)
{
	const struct san_pdl_conn *c = core_conn_find_request(core, request);

	if (c == NULL)
		return -ENOENT;
	return san_cm_fsm_reject(core->cm, c->slot, private_data, private_len, now_ns);
}

int
san_core_conn_disconnect_qp(struct san_core *core, uint32_t qp, bool hard, uint64_t now_ns)
{
	uint32_t slot = *core_conn_slot_of(core, qp);
	int rc;

	if (slot == NO_SLOT)
		return -ENOTCONN;
	rc = san_cm_fsm_disconnect(core->cm, (uint16_t)slot, hard, now_ns);
	if (rc == 0 && san_cm_state(core->cm, (uint16_t)slot) == SAN_CM_DRAINING &&
	    draining_of(core, (uint16_t)slot) == NULL) {
		core->draining[core->nb_draining++] = (struct core_drain){.slot = (uint16_t)slot};
		if (core->tl->conns[slot].peer.rnr_tx_ms == UINT16_MAX)
			core->tl->conns[slot].peer.rnr_tx_ms = DRAIN_RNR_MS;
	}
	san_core_conn_cm_events(core, now_ns);
	return rc;
}

int
san_core_conn_disconnect(struct san_core *core, uint32_t qp, bool hard, uint64_t now_ns)
{
	struct core_stream *s = san_core_stream_at(core, qp);

	if (s != NULL && !hard && san_core_stream_close(s))
		return 0;
	return san_core_conn_disconnect_qp(core, qp, hard, now_ns);
}

__rte_noinline void
san_core_conn_abort(struct san_core *core, uint32_t qp, uint64_t now_ns)
{
	uint32_t slot = *core_conn_slot_of(core, qp);

	if (slot == NO_SLOT)
		return;
	/* Only one of the two applies: to a connection attempt, or to an open connection. */
	san_cm_fsm_failed(core->cm, (uint16_t)slot, RTSAN_R_NONE, now_ns);
	if (san_cm_state(core->cm, (uint16_t)slot) != SAN_CM_TIMEWAIT)
		san_cm_fsm_disconnect(core->cm, (uint16_t)slot, true, now_ns);
	san_core_conn_cm_events(core, now_ns);
}

void
san_core_conn_set_timeouts(struct san_core *core, uint32_t qp, const struct san_sock_timeouts *p,
			   uint64_t now_ns)
{
	const struct san_cm_keepalive k = {
		.idle_ms = p->idle_ms,
		.every_ms = p->every_ms,
		.probes = p->probes,
		.is_lazy = true,
	};
	uint32_t slot = *core_conn_slot_of(core, qp);

	if (slot == NO_SLOT)
		return;
	core->pdl->conns[slot].user_timeout = (uint16_t)RTE_MIN(
		p->timeout_ms / SAN_PDL_USER_TIMEOUT_MS + 1, (uint32_t)UINT16_MAX);
	san_cm_keepalive_set(core->cm, (uint16_t)slot, &k, now_ns);
}

/*
 * True if neither side has work, and the peer knows that its own is done. If only the peer has
 * some, it may continue for as long as a drain may last without progress: it might request forever.
 */
static bool
core_conn_is_drained(const struct san_core *core, struct core_drain *d, uint64_t now_ns)
{
	uint32_t qp = san_ulp_qp_of(core->ulp, d->slot);

	if (san_tl_has_own_work(core->tl, d->slot) ||
	    (qp != SAN_QPN_NONE && !san_ulp_qp_is_idle(core->ulp, qp))) {
		d->idle_ns = 0;
		return false;
	}
	if (d->idle_ns == 0)
		d->idle_ns = now_ns;
	return (san_tl_is_drained(core->tl, d->slot) &&
		!san_pdl_ack_is_pending(&core->pdl->conns[d->slot])) ||
		now_ns >= d->idle_ns + core->conf.cm.drain_ns;
}

__rte_noinline void
san_core_conn_check_draining(struct san_core *core, uint64_t now_ns)
{
	uint32_t i = 0;

	while (i < core->nb_draining) {
		struct core_drain *d = &core->draining[i];
		uint16_t slot = d->slot;

		if (core_conn_is_drained(core, d, now_ns)) {
			*d = core->draining[--core->nb_draining];
			san_cm_fsm_drained(core->cm, slot, now_ns);
		} else {
			i++;
		}
	}
}

/* ---- MAC addresses that change during open connections: a peer's, and our own (RT-38) ---- */

/* Shorter silences are caused by congestion and loss: the neighbour entry stays valid. */
#define SILENT_NS (100 * SAN_NS_PER_MS)

static __rte_noinline void
ask_again(struct san_core *core, struct san_pdl_conn *c, uint64_t now_ns)
{
	struct rte_ether_addr mac;

	if (rte_is_zero_ether_addr(&c->path.dst_mac)) /* cm is requesting it */
		return;
	core->inet_deadline_ns = 0;
	if (san_inet_route_resolve(core->inet, &c->path.dst, true, now_ns, &mac) == 0)
		c->path.dst_mac = mac;
}

/*
 * A silent peer, or the gateway to it, may have another MAC address: its IP address may have moved
 * to another machine. The neighbour table is asked only then, so packets cost nothing more.
 */
void
san_core_mac_follow_peer(struct san_core *core, struct san_pdl_conn *c, uint64_t now_ns)
{
	if (now_ns >= c->last_rx_ns + SILENT_NS && c->state != SAN_CONN_FREE)
		ask_again(core, c, now_ns);
}

/*
 * A peer may not be silent although its MAC address changed: if only the peer sends, it receives
 * none of our ACKs. Then it sends PROBEs and duplicates from a MAC address other than the one we
 * send to. A router may do that, too, so the address is verified and not just taken over.
 */
void
san_core_mac_follow_deaf(struct san_core *core, struct san_pdl_conn *c, const struct rte_mbuf *m,
			 uint64_t now_ns)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

	if (!rte_is_same_ether_addr(&eth->src_addr, &c->path.dst_mac))
		ask_again(core, c, now_ns);
}

void
san_core_mac_set(struct san_core *core, const struct rte_ether_addr *mac, bool announce)
{
	const struct rte_ether_addr old = core->conf.inet.mac;

	core->conf.inet.mac = core->conf.cm.path.src_mac = *mac;
	san_pdl_set_mac(core->pdl, &old, mac);
	san_cm_set_mac(core->cm, mac);
	san_inet_route_set_mac(core->inet, mac, announce);
	core->inet_deadline_ns = 0;
}

/*
 * ---- several lcores on one port: the lcore of a received packet (SYS-1, ARCH-4) ----
 *
 * A CID names its lcore. A request to connect names none: all its copies must come to the same
 * lcore, whichever it is. RESET names the CID of its sender, so only the lcore with that peer can
 * check it: all get a copy. All also get neighbour messages, because each lcore has its own table;
 * only one answers.
 */

static uint32_t
of_cid(uint32_t cid, uint32_t nb_lcores)
{
	uint32_t lcore = san_pdl_cid_lcore(cid);

	return lcore < nb_lcores ? lcore : 0;
}

uint32_t
san_core_owner(struct rte_mbuf *m, uint16_t udp_port, uint32_t nb_lcores)
{
	struct san_wire_peek peek;

	if (unlikely(!san_wire_peek(m, udp_port, &peek)) &&
	    !(san_wire_peek_untag(m) && san_wire_peek(m, udp_port, &peek)))
		return san_wire_peek_is_neigh(m) ? SAN_OWNER_ALL : 0;
	if (likely(peek.cm_msg == 0))
		return of_cid(peek.cid, nb_lcores);
	if (peek.cm_msg == SAN_CM_RESET)
		return SAN_OWNER_ALL;
	if (peek.cm_msg == SAN_CM_REQ)
		return (uint32_t)((uint64_t)peek.cm_attempt * nb_lcores >> 32);
	return of_cid(peek.cm_cid, nb_lcores);
}
