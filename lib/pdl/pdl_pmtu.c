/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Path MTU (RT-31, RT-37). The handshake tells what both ends take. What lies between
 * them may take less, and drops the rest without a word.
 *
 * Up. A connection begins with what any Ethernet takes, and a number of full packets starts a
 * search: a PROBE as long as the largest packet is to be, which nobody granted and which carries
 * nothing, so not before it is worth it: a thousand hosts that push 64 KiB each to one
 * would send it 4 MB of PROBEs. Only an answer to this very PROBE counts,
 * so the peer's next ACK says how long the one was that came. From then on new
 * packets are longer.
 *
 * With each try goes a PROBE that carries nothing. If that is answered and the long
 * one is not, the length is to blame, else the network or the peer: a peer that
 * stalls must not cost the connection its large packets. So much for lengths; one
 * that failed is not tried again before RAISE_NS, when the path may be another.
 *
 * Down. A path may take less than it did, or less than any Ethernet from the first packet on. A
 * packet that is lost LOSSES times, while the peer was heard each time, is too long; the first
 * loss is enough before any long packet has come. It does not count if a long packet has come
 * that went later, or if the peer is full. From then on packets have the length that every path
 * takes, and the search begins anew.
 *
 * What is outstanding and too long goes in pieces (pdl_tx.c), under the PSN that it has: only the
 * receiver knows whether that PSN came (design, rule 1), and it counts the packet once, when all
 * of its pieces are there (tl_piece.c).
 *
 * Connections that fill few packets never ask. ICMP is not listened to: it can
 * be forged, and says nothing that three lost packets do not say within milliseconds.
 *
 * Timer: pmtu.at_ns, while pmtu.size is tried.
 */

#include "pdl_priv.h"

#define MISSES_MAX 3                    /* of one length, with the short PROBE answered */
#define TRIES_MAX  8                    /* of one length, whatever comes of them */
#define LOSSES     3                    /* of one packet: a busy link rarely drops it so often */
#define LEVEL_HALF 500                  /* of peer_level */
#define RAISE_NS   (600 * SAN_NS_PER_S) /* as in RFC 8899 */
#define BEGIN      1500                 /* IP bytes: of any Ethernet */

/* IP bytes: what is worth a try below what both ends take. Common tunnels leave more than 1400. */
static const uint16_t steps[] = {4096, BEGIN, 1400};

static uint16_t
payload_of(const struct san_pdl_conn *c, uint16_t ip_bytes)
{
	return san_wire_payload_max(ip_bytes, !san_ip_is_v4(&c->path.dst));
}

/* What every path takes. */
static inline uint16_t
sure(const struct san_pdl_conn *c)
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
	if (!c->pmtu.proven && !c->pmtu.watch && mtu > sure(c))
		c->mtu_watch = sure(c) + 1;
}

/* The frame is as long as the longest with that payload, whose header is longer. */
uint16_t
san_pdl_pmtu_probe_len(const struct san_pdl_conn *c)
{
	bool v6 = !san_ip_is_v4(&c->path.dst);

	return c->pmtu.size + san_wire_hdr_len(SAN_OP_PUSH_UNSLCTD_DATA, v6) -
		san_wire_hdr_len(SAN_OP_PROBE, v6);
}

/* The next shorter length that is more than what the connection has; 0: none. */
static uint16_t
shorter(const struct san_pdl_conn *c, uint16_t size)
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
	san_pdl_probe_now(pdl, c); /* goes behind the long one */
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

static void
search(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	if (c->pmtu.size != 0 || now_ns < c->pmtu.at_ns || pdl->conf.pmtu_after == 0)
		return;
	if (++c->pmtu.nb_full >= pdl->conf.pmtu_after)
		try_size(pdl, c, c->mtu_max, now_ns);
}

void
san_pdl_pmtu_on_sent(struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t len, uint64_t now_ns)
{
	if (!c->pmtu.proven && len > sure(c)) {
		c->pmtu.watch = true;
		set_mtu(c, c->mtu);
	}
	if (len >= c->mtu && c->mtu < c->mtu_max)
		search(pdl, c, now_ns);
}

void
san_pdl_pmtu_answer(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t len, uint64_t now_ns)
{
	/* one of before, or one of a length that is no longer tried */
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
	/* the short one has gone, and something was heard since */
	m->nb_misses += c->nb_probes == 0 && !c->probe_due;
	if (m->nb_misses < MISSES_MAX) {
		if (m->nb_tries < TRIES_MAX)
			send_try(pdl, c, now_ns);
		else /* nothing learned: ask again after as many packets */
			san_pdl_pmtu_stop(c, 0);
		return;
	}
	next = shorter(c, m->size);
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
		if (pdl->acked[i].len > sure(c)) /* and whole: nothing was cut before */
			c->pmtu.proven = true;
	c->pmtu.watch = !c->pmtu.proven;
	set_mtu(c, c->mtu);
}

/* Did an ACK come since *e* went last? */
static bool
is_heard(const struct san_pdl_conn *c, const struct san_pdl_entry *e, uint64_t now_ns)
{
	uint64_t sent_ns = now_ns - ((uint32_t)now_ns - e->sent_ts);

	return c->last_ack_ns > sent_ns;
}

/* Has the peer got it, placed or held? */
static bool
has_come(const struct san_pdl_conn *c, uint32_t psn)
{
	return san_bitmap_test(&c->txb->acked[SAN_WIN_DATA], psn) ||
		san_bitmap_test(&c->txb->rcvd[SAN_WIN_DATA], psn);
}

/* Did a long packet come that went after *e*? Then *e* is not lost for its length. */
static bool
passed_by_long(const struct san_pdl_conn *c, const struct san_pdl_entry *e)
{
	const struct san_pdl_txw *w = &c->tx[SAN_WIN_DATA];
	uint32_t psn;

	for (psn = w->base; psn != w->next; psn++) {
		const struct san_pdl_entry *x =
			san_pdl_txw_entry(c->txb, SAN_WIN_DATA, psn);

		if (x->len > sure(c) && (int32_t)(x->sent_ts - e->sent_ts) >= 0 &&
		    has_come(c, psn))
			return true;
	}
	return false;
}

/* What is outstanding and too long goes again: it is lost, but for what had come before. */
static void
lose_long(struct san_pdl *pdl, struct san_pdl_conn *c)
{
	const struct san_pdl_txw *w = &c->tx[SAN_WIN_DATA];
	uint32_t psn;

	for (psn = w->base; psn != w->next; psn++) {
		struct san_pdl_entry *e = san_pdl_txw_entry(c->txb, SAN_WIN_DATA, psn);

		if (e->len <= c->mtu || (e->state & SAN_ENT_DEFER) != 0 || has_come(c, psn))
			continue;
		e->retries = 0;
		e->state &= (uint8_t)~SAN_ENT_EARLY;
		san_pdl_rtx_lose(pdl, c, SAN_WIN_DATA, psn);
	}
	san_pdl_kick(pdl, c);
}

void
san_pdl_pmtu_on_loss(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_pdl_entry *e,
		     uint64_t now_ns)
{
	/* a hole may be resent several times while what proves the path is in a queue */
	uint32_t n = e->retries + ((e->state & SAN_ENT_EARLY) != 0);
	bool cut = e->len > c->mtu;

	if (likely(e->len <= sure(c)))
		return;
	/* a peer that is full drops packets of any length */
	if (c->peer_level >= LEVEL_HALF)
		return;
	if (cut || n < (c->pmtu.proven ? LOSSES : 1) || !is_heard(c, e, now_ns)) {
		/* silence says nothing about lengths, unless a short one breaks it */
		if (e->retries != 0 || (!cut && !c->pmtu.proven))
			san_pdl_probe_now(pdl, c);
		return;
	}
	/* last, because it looks at the whole window */
	if (passed_by_long(c, e)) {
		c->pmtu.proven = true;
		set_mtu(c, c->mtu);
		return;
	}
	pdl->stats.nb_mtu_lowered++;
	c->pmtu.proven = false;
	c->pmtu.watch = false;
	san_pdl_pmtu_stop(c, 0);
	set_mtu(c, sure(c));
	lose_long(pdl, c);
}

bool
san_pdl_pmtu_is_to_blame(const struct san_pdl_conn *c, const struct san_pdl_entry *e,
			 uint64_t now_ns)
{
	return e->len > sure(c) && is_heard(c, e, now_ns);
}
