/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Path MTU (RT-31). The handshake tells what both ends take. What lies between
 * them may take less, and drops the rest without a word. So a connection begins
 * with what any Ethernet takes, and a number of full packets starts a search: a PROBE
 * as long as the largest packet is to be, which nobody granted and which carries
 * nothing, so not before it is worth it: a thousand hosts that push 64 KiB each to one
 * would send it 4 MB of PROBEs. Only an answer to this very PROBE counts,
 * so the peer's next ACK says how long the one was that came. From then on new
 * packets are longer; a PSN once given keeps the length that it got.
 *
 * With each try goes a PROBE that carries nothing. If that is answered and the long
 * one is not, the length is to blame, else the network or the peer: a peer that
 * stalls must not cost the connection its large packets. So much for lengths; one
 * that failed is not tried again before RAISE_NS, when the path may be another.
 *
 * Connections that fill few packets never ask. ICMP is not listened to: it can
 * be forged, and says nothing that three lost PROBEs do not say within milliseconds.
 *
 * There is no way back. When the path gets narrower under an open connection, what
 * is outstanding fits it no more, and can't be cut: a PSN is one packet, and only
 * the receiver knows whether it came (design, rule 1). Retries run out as on any
 * dead path; the last of them ask with a short packet whether it is the length, so
 * that the program learns why and a new connection finds the new MTU.
 *
 * Timer: pmtu.at_ns, while pmtu.size is tried.
 */

#include "pdl_priv.h"

#define MISSES_MAX 3                    /* of one length, with the short PROBE answered */
#define TRIES_MAX  8                    /* of one length, whatever comes of them */
#define RAISE_NS   (600 * SAN_NS_PER_S) /* as in RFC 8899 */

/* IP bytes: what is worth a try below what both ends take, down to where it begins. */
static const uint16_t steps[] = {4096, 1500};

static uint16_t
payload_of(const struct san_pdl_conn *c, uint16_t ip_bytes)
{
	return san_wire_payload_max(ip_bytes, !san_ip_is_v4(&c->path.dst));
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
	c->pmtu = (struct san_pdl_pmtu){.at_ns = again_ns};
	c->pmtu_due = false;
}

void
san_pdl_pmtu_init(const struct san_pdl *pdl, struct san_pdl_conn *c, uint16_t mtu)
{
	c->mtu_max = mtu;
	c->mtu = mtu;
	if (pdl->conf.pmtu_after != 0)
		c->mtu = RTE_MIN(mtu, payload_of(c, steps[RTE_DIM(steps) - 1]));
}

void
san_pdl_pmtu_want(struct san_pdl *pdl, struct san_pdl_conn *c, uint64_t now_ns)
{
	if (c->pmtu.size != 0 || now_ns < c->pmtu.at_ns)
		return;
	if (++c->pmtu.nb_full >= pdl->conf.pmtu_after)
		try_size(pdl, c, c->mtu_max, now_ns);
}

void
san_pdl_pmtu_answer(struct san_pdl *pdl, struct san_pdl_conn *c, uint32_t len, uint64_t now_ns)
{
	/* one of before, or one of a length that is no longer tried */
	if (c->pmtu.size == 0 || len < san_pdl_pmtu_probe_len(c))
		return;
	c->mtu = c->pmtu.size;
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

/* ---- the end of a connection whose path became too narrow ---- */

void
san_pdl_pmtu_on_timeout(struct san_pdl *pdl, struct san_pdl_conn *c, const struct san_pdl_entry *e)
{
	if (e->len > payload_of(c, SAN_MTU_SURE) &&
	    e->retries + MISSES_MAX >= pdl->conf.max_retries)
		san_pdl_probe_now(pdl, c);
}

bool
san_pdl_pmtu_is_to_blame(const struct san_pdl_conn *c, const struct san_pdl_entry *e,
			 uint64_t now_ns)
{
	uint64_t sent_ns = now_ns - ((uint32_t)now_ns - e->sent_ts);

	return e->len > payload_of(c, SAN_MTU_SURE) && c->last_ack_ns > sent_ns;
}
