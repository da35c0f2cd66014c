/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Reassembly of fragments (RFC 791, RFC 8200 4.5). (UDP-3)
 *
 * DESIGN NOTES
 *
 * If fragments of a packet contradict each other, the packet is dropped, and so are further
 * fragments: its name is kept until its time is over. Fragments contradict if they overlap, if they
 * disagree on the end of the packet, or if there is data after its end. RFC 5722 forbids overlaps
 * for IPv6. IPv4 has no such rule, but no honest host sends them. Duplicates are accepted, because
 * a network may duplicate.
 *
 * Fragments hold mbufs that the port needs. So there are at most conf.max_frags fragments and
 * conf.max_partial packets, and one source has at most half of each. A source that needs more loses
 * its oldest packet. It has sent others since, so a fragment of that packet was probably lost.
 * Forged sources evade the limit of one source. When the tables are full, packets older than
 * CROWDED_NS are dropped.
 *
 * A look-up scans all packets: they are few, and adjacent in memory. The fragments of a packet are
 * a list, which is walked if they arrive out of order. So their number is limited to that of the
 * longest datagram over the narrowest path (RT-36).
 *
 * Timer: the time at which the oldest packet has waited too long.
 */

#include "inet_priv.h"
#include "san_assert.h"
#include "san_time.h"

#define WAIT_V4_NS (30 * SAN_NS_PER_S)
#define WAIT_V6_NS (60 * SAN_NS_PER_S)
#define CROWDED_NS (100 * SAN_NS_PER_MS) /* fragments arrive within moments, if at all */
#define UPPER_LEN  8u                    /* of a UDP or ICMP header */

/** A packet that waits for fragments. */
struct inet_partial {
	uint64_t nr; /* order of arrival: packets may have the same time */
	uint64_t since_ns;
	struct san_inet_dgram d; /* hops, TOS: of the first fragment, as what follows *is_broken* */
	uint32_t id;             /* IPv4: includes the protocol, which is part of the name */
	uint32_t len;            /* of the IP payload; 0: the last fragment is missing */
	uint32_t nb_bytes;       /* that have arrived */
	uint32_t nb_pieces;
	TAILQ_HEAD(inet_pieces, inet_piece) pieces; /* in the order of their offsets */
	bool is_used;
	bool is_broken; /* further fragments are dropped */
	uint8_t proto;
	uint16_t off; /* offset of the IP payload */
};

/** A fragment that is held. */
struct inet_piece {
	struct rte_mbuf *m;
	TAILQ_ENTRY(inet_piece) link;
	uint16_t at, len;
};

/** A fragment just received. */
struct frag {
	uint32_t id;
	uint32_t at, end;
	bool more;
};

int
san_inet_whole_create(struct san_inet *in)
{
	in->whole_ns = SAN_TIME_NEVER;
	if (in->conf.max_partial == 0)
		return 0;
	in->partials = calloc(in->conf.max_partial, sizeof(in->partials[0]));
	in->pieces = calloc(in->conf.max_frags, sizeof(in->pieces[0]));
	if (in->partials == NULL)
		return -ENOMEM;
	return san_pool_create(&in->free_pieces, NULL, in->pieces, in->conf.max_frags,
			       sizeof(in->pieces[0]));
}

void
san_inet_whole_destroy(struct san_inet *in)
{
	uint32_t i;

	for (i = 0; in->pieces != NULL && i < in->conf.max_frags; i++)
		rte_pktmbuf_free(in->pieces[i].m);
	san_pool_destroy(&in->free_pieces, NULL);
	free(in->pieces);
	free(in->partials);
}

/* ---- pieces ---- */

static struct rte_mbuf *
whole_take_piece(struct san_inet *in, struct inet_partial *p)
{
	struct inet_piece *x = TAILQ_FIRST(&p->pieces);
	struct rte_mbuf *m = x->m;

	TAILQ_REMOVE(&p->pieces, x, link);
	x->m = NULL;
	san_pool_give(&in->free_pieces, x);
	p->nb_pieces--;
	return m;
}

/* ---- packets ---- */

/** Drop the packet: it cannot be completed. Further fragments are dropped, too. */
static void
partial_give_up(struct san_inet *in, struct inet_partial *p)
{
	in->drops[SAN_DROP_INET_FRAG] += p->nb_pieces;
	while (p->nb_pieces != 0)
		rte_pktmbuf_free(whole_take_piece(in, p));
	p->is_broken = true;
}

static void
partial_forget(struct san_inet *in, struct inet_partial *p)
{
	partial_give_up(in, p);
	p->is_used = false;
}

static uint64_t
until_ns(const struct inet_partial *p)
{
	return p->since_ns + (san_wire_ip_is_v4(&p->d.src) ? WAIT_V4_NS : WAIT_V6_NS);
}

static struct inet_partial *
partial_older(struct inet_partial *a, struct inet_partial *b)
{
	return a == NULL || b->nr < a->nr ? b : a;
}

/** Make room for a fragment of *mine*, or (NULL) of a new packet, by dropping others. */
static bool
partial_make_room(struct san_inet *in, const struct inet_rx *rx, const struct inet_partial *mine)
{
	uint32_t nb_used = mine == NULL;
	uint32_t partials = mine == NULL, pieces = 1; /* of this source */
	struct inet_partial *p, *victim, *own = NULL, *all = NULL;

	for (p = in->partials; p < in->partials + in->conf.max_partial; p++) {
		if (!p->is_used)
			continue;
		nb_used++;
		all = partial_older(all, p);
		if (!san_wire_ip_eq(&p->d.src, &rx->d.src))
			continue;
		own = partial_older(own, p);
		partials++;
		pieces += p->nb_pieces;
	}
	if (partials > (in->conf.max_partial + 1u) / 2 || pieces > in->conf.max_frags / 2)
		victim = own;
	else if (nb_used > in->conf.max_partial || in->free_pieces.nb == 0)
		victim = all;
	else
		return true;
	if (victim == mine || (victim != own && victim->since_ns + CROWDED_NS >= rx->now_ns))
		return false;
	partial_forget(in, victim);
	return partial_make_room(in, rx, mine);
}

static struct inet_partial *
partial_begin(struct san_inet *in, const struct inet_rx *rx, uint32_t id)
{
	struct inet_partial *p = in->partials;

	if (!partial_make_room(in, rx, NULL))
		return NULL;
	while (p->is_used)
		p++;
	*p = (struct inet_partial){
		.nr = in->nb_begun++,
		.since_ns = rx->now_ns,
		.d = rx->d,
		.id = id,
		.is_used = true,
	};
	TAILQ_INIT(&p->pieces);
	in->whole_ns = san_time_min(in->whole_ns, until_ns(p));
	return p;
}

/* ---- a fragment ---- */

/** End of a piece; 0 if there is none. */
static uint32_t
end_of(const struct inet_piece *x)
{
	return x == NULL ? 0 : (uint32_t)x->at + x->len;
}

/** True if the fragment and the others agree on the end of the packet. */
static bool
is_end_right(const struct inet_partial *p, const struct frag *f)
{
	if (p->len != 0)
		return f->more ? f->end < p->len : f->end == p->len;
	return f->more || f->end > end_of(TAILQ_LAST(&p->pieces, inet_pieces));
}

/**
 * Find the piece before the fragment. Returns 0, -EEXIST for a duplicate, or -EINVAL for an
 * overlap.
 */
static int
partial_find_place(const struct inet_partial *p, const struct frag *f, struct inet_piece **prev)
{
	/* most fragments arrive in order */
	struct inet_piece *x = TAILQ_LAST(&p->pieces, inet_pieces), *next;

	while (x != NULL && x->at > f->at)
		x = TAILQ_PREV(x, inet_pieces, link);
	*prev = x;
	if (x != NULL && x->at == f->at && end_of(x) == f->end)
		return -EEXIST;
	next = x != NULL ? TAILQ_NEXT(x, link) : TAILQ_FIRST(&p->pieces);
	return end_of(x) > f->at || (next != NULL && f->end > next->at) ? -EINVAL : 0;
}

/**
 * Move the fragment into one mbuf, without the bytes after the packet. Only the first fragment
 * keeps its headers. False: no mbuf.
 */
static bool
partial_tidy_frag(const struct san_inet *in, struct inet_rx *rx, const struct frag *f)
{
	uint32_t len = rx->off + rx->len;
	struct rte_mbuf *m = rx->m;

	if (m->nb_segs != 1) {
		rx->m = rte_pktmbuf_copy(m, in->conf.pool, 0, len);
		rte_pktmbuf_free(m);
		m = rx->m;
		if (m == NULL || m->nb_segs != 1)
			return false;
	}
	if (rte_pktmbuf_trim(m, (uint16_t)(rte_pktmbuf_pkt_len(m) - len)) != 0)
		return false;
	return f->at == 0 || rte_pktmbuf_adj(m, (uint16_t)rx->off) != NULL;
}

/** Use the headers of the first fragment for the packet. */
static void
note_first(struct inet_partial *p, struct inet_rx *rx)
{
	uint8_t *frame = rte_pktmbuf_mtod(rx->m, uint8_t *);

	if (!san_wire_ip_is_v4(&rx->d.src)) {
		/* Remove the fragment header. */
		frame[rx->proto_at] = rx->proto;
		rx->off -= INET_FRAG_LEN;
		memmove(frame + INET_FRAG_LEN, frame, rx->off);
		rte_pktmbuf_adj(rx->m, (uint16_t)INET_FRAG_LEN);
	}
	p->off = (uint16_t)rx->off;
	p->proto = rx->proto;
	p->d = rx->d;
}

/** Bytes of the complete *p* after the Ethernet header. */
static uint32_t
ip_bytes(const struct inet_partial *p)
{
	return p->off - INET_ETH_LEN + p->len;
}

/** *p* is complete: join it into rx->m. */
static void
partial_finish(struct san_inet *in, struct inet_rx *rx, struct inet_partial *p)
{
	struct rte_mbuf *m, *last;
	void *ip;

	rx->m = last = whole_take_piece(in, p);
	while (p->nb_pieces != 0) {
		m = whole_take_piece(in, p);
		last->next = m;
		last = m;
		rx->m->nb_segs++;
		rx->m->pkt_len += m->data_len;
	}
	ip = rte_pktmbuf_mtod_offset(rx->m, void *, INET_ETH_LEN);
	if (san_wire_ip_is_v4(&p->d.src)) {
		struct rte_ipv4_hdr *v4 = ip;

		v4->total_length = rte_cpu_to_be_16((uint16_t)ip_bytes(p));
		v4->fragment_offset &= RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
		v4->hdr_checksum = 0;
		v4->hdr_checksum = rte_ipv4_cksum(v4);
	} else {
		struct rte_ipv6_hdr *v6 = ip;

		v6->payload_len = rte_cpu_to_be_16((uint16_t)(ip_bytes(p) - INET_V6_LEN));
	}
	rx->off = p->off;
	rx->len = p->len;
	rx->proto = p->proto;
	rx->d = p->d;
	rx->whole = true;
}

/** Add a fragment to *p*. */
static enum san_drop
partial_add_frag(struct san_inet *in, struct inet_rx *rx, struct inet_partial *p,
		 const struct frag *f)
{
	struct inet_piece *x, *prev;
	int rc;

	if (p->is_broken)
		return SAN_DROP_INET_FRAG;
	rc = is_end_right(p, f) ? partial_find_place(p, f, &prev) : -EINVAL;
	if (rc == 0 && (p->nb_pieces == INET_NB_FRAGS || !partial_make_room(in, rx, p)))
		rc = -ENOSPC;
	if (rc != 0 && rc != -EEXIST)
		partial_give_up(in, p);
	if (rc != 0)
		return SAN_DROP_INET_FRAG;
	if (!partial_tidy_frag(in, rx, f))
		return SAN_DROP_NO_MBUF;
	if (f->at == 0)
		note_first(p, rx);
	x = san_pool_take(&in->free_pieces);
	*x = (struct inet_piece){
		.m = rx->m,
		.at = (uint16_t)f->at,
		.len = (uint16_t)(f->end - f->at),
	};
	if (prev != NULL)
		TAILQ_INSERT_AFTER(&p->pieces, prev, x, link);
	else
		TAILQ_INSERT_HEAD(&p->pieces, x, link);
	p->nb_bytes += x->len;
	p->nb_pieces++;
	rx->m = NULL;
	if (!f->more)
		p->len = f->end;
	if (p->nb_bytes != p->len)
		return SAN_DROP_NONE;
	/* The headers of the first fragment may be longer than those of the others. */
	if (ip_bytes(p) > UINT16_MAX + (san_wire_ip_is_v4(&p->d.src) ? 0 : INET_V6_LEN)) {
		partial_give_up(in, p);
		return SAN_DROP_NONE;
	}
	partial_finish(in, rx, p);
	partial_forget(in, p);
	return SAN_DROP_NONE;
}

static enum san_drop
rx_any(struct san_inet *in, struct inet_rx *rx, struct frag *f)
{
	uint32_t most = UINT16_MAX - (san_wire_ip_is_v4(&rx->d.src) ? INET_V4_LEN : 0);
	struct inet_partial *p;

	if (in->conf.max_partial == 0)
		return SAN_DROP_INET_UNWANTED;
	f->end = f->at + rx->len;
	if (rx->len == 0 || (f->more && rx->len % 8 != 0) || f->end > most)
		return SAN_DROP_INET_MALFORMED;
	for (p = in->partials; p < in->partials + in->conf.max_partial; p++)
		if (p->id == f->id && p->is_used && san_wire_ip_eq(&p->d.src, &rx->d.src) &&
		    san_wire_ip_eq(&p->d.dst, &rx->d.dst))
			return partial_add_frag(in, rx, p, f);
	p = partial_begin(in, rx, f->id);
	return p != NULL ? partial_add_frag(in, rx, p, f) : SAN_DROP_INET_FRAG;
}

enum san_drop
san_inet_whole_rx_v4(struct san_inet *in, struct inet_rx *rx, const struct rte_ipv4_hdr *ip)
{
	uint16_t field = rte_be_to_cpu_16(ip->fragment_offset);
	struct frag f = {
		.id = (uint32_t)ip->next_proto_id << 16 | ip->packet_id,
		.at = (field & RTE_IPV4_HDR_OFFSET_MASK) * 8u,
		.more = (field & RTE_IPV4_HDR_MF_FLAG) != 0,
	};

	return rx_any(in, rx, &f);
}

/** True if all headers of the packet are in its first fragment (RFC 7112). */
static bool
has_headers(const struct inet_rx *rx)
{
	uint32_t off = rx->off, end = rx->off + rx->len;
	uint8_t proto = rx->proto, b[2];

	while (proto == IPPROTO_DSTOPTS && off + UPPER_LEN <= end) {
		if (!san_inet_ip_copy(rx->m, off, sizeof(b), b))
			return false;
		proto = b[0];
		off += (b[1] + 1u) * 8;
	}
	return off + UPPER_LEN <= end;
}

enum san_drop
san_inet_whole_rx_v6(struct san_inet *in, struct inet_rx *rx)
{
	struct rte_ipv6_fragment_ext frag;
	struct frag f;
	uint16_t field;

	if (rx->whole || rx->len < INET_FRAG_LEN ||
	    !san_inet_ip_copy(rx->m, rx->off, INET_FRAG_LEN, &frag))
		return SAN_DROP_INET_MALFORMED;
	field = rte_be_to_cpu_16(frag.frag_data);
	f = (struct frag){
		.id = frag.id,
		.at = RTE_IPV6_GET_FO(field) * 8u,
		.more = RTE_IPV6_GET_MF(field),
	};
	rx->off += INET_FRAG_LEN;
	rx->len -= INET_FRAG_LEN;
	rx->proto = frag.next_header;
	if (f.at == 0 && !f.more) {
		/* An atomic fragment needs no others (RFC 6946). */
		rx->whole = true;
		return SAN_DROP_NONE;
	}
	if (f.at == 0 && !has_headers(rx))
		return SAN_DROP_INET_MALFORMED;
	return rx_any(in, rx, &f);
}

uint64_t
san_inet_whole_tick(struct san_inet *in, uint64_t now_ns)
{
	struct inet_partial *p;

	if (now_ns < in->whole_ns)
		return in->whole_ns;
	in->whole_ns = SAN_TIME_NEVER;
	for (p = in->partials; p < in->partials + in->conf.max_partial; p++) {
		if (p->is_used && until_ns(p) <= now_ns)
			partial_forget(in, p);
		else if (p->is_used)
			in->whole_ns = san_time_min(in->whole_ns, until_ns(p));
	}
	return in->whole_ns;
}

/** Verify that pieces are sorted, do not overlap, and match the counters. */
static void
check_partial(const struct san_inet *in, const struct inet_partial *p)
{
	uint32_t end = 0, nb = 0, bytes = 0;
	const struct inet_piece *x;

	TAILQ_FOREACH(x, &p->pieces, link) {
		SAN_VERIFY(x->m != NULL && x->at >= end);
		end = end_of(x);
		bytes += x->len;
		nb++;
	}
	SAN_VERIFY(nb == p->nb_pieces && (p->is_broken || bytes == p->nb_bytes));
	SAN_VERIFY(p->is_broken ? nb == 0 : p->len == 0 || (end <= p->len && bytes < p->len));
	SAN_VERIFY(in->whole_ns <= until_ns(p));
}

/** Verify that no source has more than half. */
static void
check_share(const struct san_inet *in, const struct san_ip *src)
{
	uint32_t i, partials = 0, pieces = 0;

	for (i = 0; i < in->conf.max_partial; i++) {
		const struct inet_partial *p = &in->partials[i];

		if (!p->is_used || !san_wire_ip_eq(&p->d.src, src))
			continue;
		pieces += p->nb_pieces;
		partials++;
	}
	SAN_VERIFY(partials <= (in->conf.max_partial + 1u) / 2);
	SAN_VERIFY(pieces <= in->conf.max_frags / 2);
}

void
san_inet_whole_check(const struct san_inet *in)
{
	uint32_t i, pieces = 0;

	for (i = 0; i < in->conf.max_partial; i++) {
		if (!in->partials[i].is_used)
			continue;
		check_partial(in, &in->partials[i]);
		check_share(in, &in->partials[i].d.src);
		pieces += in->partials[i].nb_pieces;
	}
	SAN_VERIFY(in->conf.max_partial == 0 || in->free_pieces.nb + pieces == in->conf.max_frags);
}
