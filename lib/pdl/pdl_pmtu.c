/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Path MTU (RT-31, RT-37). The handshake has what both ends accept. The path between them may
 * carry less, and drops longer packets silently.
 *
 * Raising. A connection starts with the length that any Ethernet carries. After a number of full
 * packets it starts a search: it sends a PROBE as long as the largest packet would be. It does not
 * search sooner, because a PROBE needs no grant and carries no data. If a thousand hosts push 64
 * KiB each to one host, 4 MB of PROBEs would reach it. Only an answer to this very PROBE counts:
 * the peer's next ACK states the length that arrived. From then on new packets are longer.
 *
 * Each try also sends a PROBE without payload. If only the short one is answered, the length is the
 * reason. If none is answered, the network or the peer is: a peer that stalls must not cost the
 * connection its large packets. A failed length is tried again after RAISE_NS, when the path may
 * have changed.
 *
 * Lowering. A path may carry less than before, or less than any Ethernet from the start. A packet
 * is too long if it is lost LOSSES times while the peer answers other packets. Before any long
 * packet has arrived, the first loss is enough. The loss does not count if a long packet sent later
 * has arrived, or if the peer is full. Then packets get the length that every path carries, and the
 * search starts again.
 *
 * An outstanding packet that is too long is sent in pieces (pdl_tx.c) under its PSN, because only
 * the receiver knows whether that PSN arrived (RULE-1). The receiver counts the packet once, when
 * all pieces are there (tl_piece.c).
 *
 * A connection that fills few packets never searches. ICMP is ignored: it can be forged, and three
 * lost packets give the same information within milliseconds.
 *
 * Timer: pmtu.at_ns, while pmtu.size is tried.
 */

#include "pdl_priv.h"

#define MISSES_MAX 3                    /* per length, with the short PROBE answered */
#define TRIES_MAX  8                    /* per length, with any result */
#define LOSSES     3                    /* of one packet: a busy link rarely drops it that often */
#define LEVEL_HALF 500                  /* of peer_level */
#define RAISE_NS   (600 * SAN_NS_PER_S) /* as in RFC 8899 */
#define BEGIN      1500                 /* IP bytes: carried by any Ethernet */

/* IP bytes: sizes to try below what both ends accept. Common tunnels leave more than 1400. */
static const uint16_t steps[] = {4096, BEGIN, 1400};

static uint16_t
payload_of(const struct san_pdl_conn *c, uint16_t ip_bytes)
{
	return san_wire_payload_max(ip_bytes, !san_wire_ip_is_v4(&c->path.dst));
}

/* Payload bytes that every path carries. */
static inline uint16_t
pmtu_sure_size(const struct san_pdl_conn *c)
{
	return payload_of(c, SAN_MTU_SURE);
}

static void
set_mtu(struct san_pdl_conn *c, uint16_t mtu)
{
	c->mtu = mtu;
	c->mtu_watch = UINT16_MAX;
	if (mtu < c->mtu_max)
		c->mtu_watch = mtu;
	if (!c->pmtu.proven && !c->pmtu.watch && mtu > pmtu_sure_size(c))
		c->mtu_watch = pmtu_sure_size(c) + 1;
}

/* The frame is as long as that of the longest packet with c->pmtu.size of payload. */
uint16_t
san_pdl_pmtu_probe_len(const struct san_pdl_conn *c)
{
	bool v6 = !san_wire_ip_is_v4(&c->path.dst);

	return c->pmtu.size + san_wire_op_hdr_len(SAN_OP_PUSH_UNSLCTD_DATA, v6) -
		san_wire_op_hdr_len(SAN_OP_PROBE, v6);
}

/* The next shorter length above the current MTU; 0: none. */
static uint16_t
pmtu_shorter_size(const struct san_pdl_conn *c, uint16_t size)
{
	uint32_t i;

	for (i = 0; i < RTE_DIM(steps); i++) {
		uint16_t len = payload_of(c, steps[i]);

		if (len < size)
			return len > c->mtu ? len : 0;
	}
	return 0;
}

static void
send_try(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	struct san_pdl_pmtu *m = &c->pmtu;

	m->at_ns = now_ns + san_pdl_rtt_timeout(pdl, c, m->nb_tries);
	m->nb_tries++;
	c->pmtu_due = true;
	san_pdl_ack_probe_now(pdl, c); /* sent after the long one */
	san_pdl_arm_for(pdl, c, m->at_ns);
}

static void
try_size(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t size, uint64_t now_ns)
{
	c->pmtu.size = size;
	c->pmtu.nb_tries = 0;
	c->pmtu.nb_misses = 0;
	send_try(pdl, c, now_ns);
}

void
san_pdl_pmtu_stop(struct san_pdl_conn *c, uint64_t again_ns)
{
	c->pmtu.at_ns = again_ns;
	c->pmtu.size = 0;
	c->pmtu.nb_full = 0;
	c->pmtu_due = false;
}

void
san_pdl_pmtu_init(const struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t mtu)
{
	c->mtu_max = mtu;
	if (pdl->conf.pmtu_after != 0)
		mtu = RTE_MIN(mtu, payload_of(c, BEGIN));
	c->pmtu = (struct san_pdl_pmtu){0};
	set_mtu(c, mtu);
}

void
san_pdl_pmtu_on_sent(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t len, uint64_t now_ns)
{
	if (!c->pmtu.proven && len > pmtu_sure_size(c)) {
		c->pmtu.watch = true;
		set_mtu(c, c->mtu);
	}
	if (len < c->mtu || c->mtu >= c->mtu_max || c->pmtu.size != 0 || now_ns < c->pmtu.at_ns ||
	    pdl->conf.pmtu_after == 0)
		return;
	if (++c->pmtu.nb_full >= pdl->conf.pmtu_after)
		try_size(pdl, c, c->mtu_max, now_ns);
}

void
san_pdl_pmtu_answer(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t len, uint64_t now_ns)
{
	/* the answer to an older PROBE, or to a length no longer tried */
	if (c->pmtu.size == 0 || len < san_pdl_pmtu_probe_len(c))
		return;
	c->pmtu.proven = true;
	c->pmtu.watch = false;
	set_mtu(c, c->pmtu.size);
	pdl->stats.nb_mtu_raised++;
	san_pdl_pmtu_stop(c, now_ns + RAISE_NS);
}

void
san_pdl_pmtu_on_timer(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	struct san_pdl_pmtu *m = &c->pmtu;
	uint16_t next;

	if (m->size == 0 || now_ns < m->at_ns)
		return;
	/* The short PROBE was sent, and an ACK has arrived since. */
	m->nb_misses += c->nb_probes == 0 && !c->probe_due;
	if (m->nb_misses < MISSES_MAX) {
		if (m->nb_tries < TRIES_MAX)
			send_try(pdl, c, now_ns);
		else /* no result: search again after the same number of packets */
			san_pdl_pmtu_stop(c, 0);
		return;
	}
	next = pmtu_shorter_size(c, m->size);
	if (next != 0)
		try_size(pdl, c, next, now_ns);
	else
		san_pdl_pmtu_stop(c, now_ns + RAISE_NS);
}

/* ---- down ---- */

void
san_pdl_pmtu_on_acked(const struct san_pdl *pdl, struct san_pdl_conn *c)
{
	uint32_t i;

	for (i = 0; i < pdl->nb_acked; i++)
		/* and whole: none was sent in pieces before */
		if (pdl->acked[i].len > pmtu_sure_size(c))
			c->pmtu.proven = true;
	c->pmtu.watch = !c->pmtu.proven;
	set_mtu(c, c->mtu);
}

/* True if an ACK has arrived since *e* was last sent. */
static bool
is_answered_since(const struct san_pdl_conn *c, const struct san_pdl_entry *e, uint64_t now_ns)
{
	uint64_t sent_ns = now_ns - ((uint32_t)now_ns - e->sent_ts);

	return c->last_ack_ns > sent_ns;
}

/* True if the peer has received *psn*. */
static bool
has_arrived(const struct san_pdl_conn *c, uint32_t psn)
{
	return san_bitmap_test(&c->txb->acked[SAN_WIN_DATA], psn) ||
		san_bitmap_test(&c->txb->rcvd[SAN_WIN_DATA], psn);
}

/* True if a long packet sent after *e* has arrived: then the length of *e* is not the reason. */
static bool
passed_by_long(const struct san_pdl_conn *c, const struct san_pdl_entry *e)
{
	const struct san_pdl_txw *w = &c->tx[SAN_WIN_DATA];
	uint32_t psn;

	for (psn = w->base; psn != w->next; psn++) {
		const struct san_pdl_entry *x =
			san_pdl_win_tx_entry(c->txb, SAN_WIN_DATA, psn);

		if (x->len > pmtu_sure_size(c) && (int32_t)(x->sent_ts - e->sent_ts) >= 0 &&
		    has_arrived(c, psn))
			return true;
	}
	return false;
}

/* Mark outstanding packets that are too long as lost, except those that have arrived. */
static void
lose_long(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	const struct san_pdl_txw *w = &c->tx[SAN_WIN_DATA];
	uint32_t psn;

	for (psn = w->base; psn != w->next; psn++) {
		struct san_pdl_entry *e = san_pdl_win_tx_entry(c->txb, SAN_WIN_DATA, psn);

		if (e->len <= c->mtu || (e->state & SAN_ENT_DEFER) != 0 || has_arrived(c, psn))
			continue;
		e->retries = 0;
		e->state &= (uint8_t)~SAN_ENT_FAST_RTX;
		san_pdl_rtx_lose(pdl, c, SAN_WIN_DATA, psn);
	}
	san_pdl_sched_kick(pdl, c);
}

void
san_pdl_pmtu_on_loss(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_pdl_entry *e,
		     uint64_t now_ns)
{
	/* An ACK of a long packet may be queued while a packet is resent several times. */
	uint32_t n = e->retries + ((e->state & SAN_ENT_FAST_RTX) != 0);
	bool cut = e->len > c->mtu;

	if (likely(e->len <= pmtu_sure_size(c)))
		return;
	/* A full peer drops packets of any length. */
	if (c->peer_level >= LEVEL_HALF)
		return;
	if (cut || n < (c->pmtu.proven ? LOSSES : 1) || !is_answered_since(c, e, now_ns)) {
		/* Silence says nothing about lengths, unless a short packet is answered. */
		if (e->retries != 0 || (!cut && !c->pmtu.proven))
			san_pdl_ack_probe_now(pdl, c);
		return;
	}
	/* checked last, because it scans the whole window */
	if (passed_by_long(c, e)) {
		c->pmtu.proven = true;
		set_mtu(c, c->mtu);
		return;
	}
	pdl->stats.nb_mtu_lowered++;
	c->pmtu.proven = false;
	c->pmtu.watch = false;
	san_pdl_pmtu_stop(c, 0);
	set_mtu(c, pmtu_sure_size(c));
	lose_long(pdl, c);
}

bool
san_pdl_pmtu_is_to_blame(const struct san_pdl_conn *c, const struct san_pdl_entry *e,
			 uint64_t now_ns)
{
	return e->len > pmtu_sure_size(c) && is_answered_since(c, e, now_ns);
}
