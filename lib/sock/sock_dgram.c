/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Moves datagrams between the link and programs' rings. A program may change its send ring at any
 * time, so the head of a record is copied before it is checked, and only the copy is used. (UDP-3,
 * UDP-8, SYS-5)
 */

#include <errno.h>
#include <sys/uio.h>

#include <rte_branch_prediction.h>

#include "sock_priv.h"

#define VISIT 32 /* datagrams of one socket before the next socket's turn */

/* ---- received ---- */

/** Put the datagram into the ring of *s*: its bytes are in r->m, or at *data* without one. */
static void
dgram_take(struct san_socks *all, struct san_sock *s, const struct san_inet_result *r,
	   const void *data, uint32_t if_index, uint64_t now_ns)
{
	/* pairs with the release of the reader: the place is free */
	uint32_t head = atomic_load_explicit(&s->shm->rx_head, memory_order_acquire);
	struct san_sock_rec *rec;
	uint32_t at;

	if (unlikely(san_sock_shm_place(s->rx, s->rx_mask + 1, s->rx_tail, head, &s->rx_base,
					r->len, &at) != 0)) {
		s->stats.nb_rx_full++;
		atomic_store_explicit(&s->shm->nb_drops, s->stats.nb_rx_full, memory_order_relaxed);
		return;
	}
	rec = (struct san_sock_rec *)(s->rx + san_sock_shm_off(s->rx_mask + 1, s->rx_base, at));
	rec->bytes = r->len;
	rec->nb_drops = (uint32_t)s->stats.nb_rx_full;
	memcpy(rec->src, r->d.src.b, sizeof(rec->src));
	memcpy(rec->dst, r->d.dst.b, sizeof(rec->dst));
	rec->sport = r->d.sport;
	rec->dport = r->d.dport;
	rec->hops = r->d.hops;
	rec->tos = r->d.tos;
	rec->if_index = if_index;
	rec->ns = now_ns;
	if (r->m != NULL)
		data = rte_pktmbuf_read(r->m, r->off, r->len, rec + 1);
	if (data != rec + 1 && data != NULL)
		memcpy(rec + 1, data, r->len);
	s->rx_tail = at + san_sock_shm_rec_bytes(r->len);
	s->stats.nb_rx++;
	s->stats.nb_rx_bytes += r->len;
	atomic_store_explicit(&s->shm->rx_base, s->rx_base, memory_order_relaxed);
	atomic_store_explicit(&s->shm->rx_tail, s->rx_tail, memory_order_release);
	san_sock_mirror(all, s, true);
}

void
san_sock_dgram_put(struct san_socks *all, uint32_t id, const struct san_inet_dgram *d,
		   uint32_t if_index, const void *data, uint32_t len, uint64_t now_ns)
{
	const struct san_inet_result r = {.d = *d, .len = len};

	dgram_take(all, &all->socks[id], &r, data, if_index, now_ns);
}

uint32_t
san_sock_dgram_rx(struct san_socks *all, const struct san_inet_result *r, uint64_t now_ns)
{
	struct san_sock *s;
	uint32_t nb = 0;

	if (unlikely(r->d.group)) {
		for (s = NULL; (s = san_sock_find_next(all, &r->d, s)) != NULL; nb++)
			dgram_take(all, s, r, NULL, all->if_index, now_ns);
		return nb;
	}
	s = san_sock_find(all, &r->d);
	if (s == NULL)
		return 0;
	dgram_take(all, s, r, NULL, all->if_index, now_ns);
	return 1;
}

bool
san_sock_dgram_error(struct san_socks *all, const struct san_inet_result *r)
{
	/* the addresses of an answer to the datagram: they find the socket that sent it */
	const struct san_inet_dgram back = {
		.src = r->d.dst,
		.dst = r->d.src,
		.sport = r->d.dport,
		.dport = r->d.sport,
	};
	struct san_sock *s = san_sock_find(all, &back);

	if (s == NULL)
		return false;
	/* a socket that is not connected sends to many peers, and an error does not name one */
	if (s->names.peer_port != 0 && r->hard)
		san_sock_dgram_fail(all, san_sock_id(all, s), r->err);
	return true;
}

void
san_sock_dgram_fail(struct san_socks *all, uint32_t id, int err)
{
	struct san_sock *s = &all->socks[id];

	atomic_store_explicit(&s->shm->error, (uint32_t)err, memory_order_release);
	san_sock_mirror(all, s, true);
}

/* ---- to send ---- */

static int
dgram_send_rec(struct san_sock *s, struct san_inet *in, const struct san_sock_rec *rec, void *data,
	       uint64_t now_ns)
{
	const struct iovec iov = {.iov_base = data, .iov_len = rec->bytes};
	const struct san_sock_names *n = &s->names;
	struct san_inet_dgram d = {
		.src = n->local,
		.sport = n->port,
		.dport = rec->dport,
		.hops = rec->hops != 0 ? rec->hops : n->hops,
		.tos = rec->tos != 0 ? rec->tos : n->tos,
		.df = n->df != SAN_SOCK_DF_NONE,
		.probe = n->df == SAN_SOCK_DF_PROBE,
	};
	static const uint8_t zero[sizeof(rec->src)];
	int rc;

	/* the kernel no longer reserves the port, so it must not be a source */
	if (n->port == 0)
		return -EADDRNOTAVAIL;
	/* the socket's own peer is not used instead: it may have changed since the program wrote */
	if (rec->dport == 0)
		return -EDESTADDRREQ;
	memcpy(d.dst.b, rec->dst, sizeof(d.dst.b));
	if (memcmp(rec->src, zero, sizeof(zero)) != 0)
		memcpy(d.src.b, rec->src, sizeof(d.src.b));
	else if (san_inet_is_any(&d.src) &&
		 (rc = san_inet_route_source(in, &d.dst, &d.src)) != 0)
		return rc;
	return san_inet_udp_send(in, &d, &iov, 1, now_ns);
}

/** 0, or -EAGAIN: the datagram is still in the ring. */
static int
send_next(struct san_socks *all, struct san_sock *s, struct san_inet *in, uint32_t tail,
	  uint64_t now_ns)
{
	uint32_t base = atomic_load_explicit(&s->shm->tx_base, memory_order_relaxed);
	uint32_t off = san_sock_shm_off(s->tx_mask + 1, base, s->tx_head);
	uint32_t left = tail - s->tx_head, room = s->tx_mask + 1 - off;
	uint8_t *at = s->tx + off;
	struct san_sock_rec rec;
	int rc;

	memcpy(&rec, at, sizeof(rec));
	if (rec.bytes == SAN_SOCK_PAD && room <= left) {
		s->tx_head += room;
		return 0;
	}
	if (left > s->tx_mask + 1 || rec.bytes > SAN_SOCK_DGRAM ||
	    san_sock_shm_rec_bytes(rec.bytes) > RTE_MIN(left, room)) {
		s->is_broken = true;
		san_sock_dgram_fail(all, san_sock_id(all, s), EIO);
		return 0;
	}
	rc = dgram_send_rec(s, in, &rec, at + sizeof(rec), now_ns);
	if (rc == -EAGAIN)
		return rc;
	s->tx_head += san_sock_shm_rec_bytes(rec.bytes);
	if (rc == 0) {
		s->stats.nb_tx++;
		s->stats.nb_tx_bytes += rec.bytes;
		return 0;
	}
	if (rc != -ENOMEM)
		san_sock_dgram_fail(all, san_sock_id(all, s), -rc);
	return 0;
}

/* Send what is in the ring, at most VISIT datagrams. -EAGAIN: nothing more can be sent now. */
static int
dgram_visit_sock(struct san_socks *all, struct san_sock *s, struct san_inet *in, uint64_t now_ns)
{
	/* pairs with the release of the writer */
	uint32_t tail = atomic_load_explicit(&s->shm->tx_tail, memory_order_acquire);
	uint32_t i;
	int rc = 0;

	for (i = 0; i < VISIT && rc == 0 && !s->is_broken && s->tx_head != tail; i++)
		rc = send_next(all, s, in, tail, now_ns);
	atomic_store_explicit(&s->shm->tx_head, s->tx_head, memory_order_release);
	san_sock_on_room(all, s);
	san_sock_mirror_again(all, s);
	if (!s->is_broken && s->tx_head != tail)
		san_sock_doorbell(all, san_sock_id(all, s));
	return rc;
}

__rte_noinline void
san_sock_dgram_pump(struct san_socks *all, struct san_inet *in, uint64_t now_ns)
{
	const struct san_sock *last = TAILQ_LAST(&all->works, sock_works);
	struct san_sock *s;

	/* visit each socket once: one with more datagrams is appended behind *last* */
	do {
		s = TAILQ_FIRST(&all->works);
		if (s == NULL)
			return;
		TAILQ_REMOVE(&all->works, s, work_link);
		s->is_work = false;
		if (san_sock_is_stream(s))
			san_sock_stream_visit(all, s, now_ns);
		else if (dgram_visit_sock(all, s, in, now_ns) == -EAGAIN)
			return;
	} while (s != last);
}

bool
san_sock_dgram_has_sent(const struct san_socks *all, uint32_t id)
{
	const struct san_sock *s = &all->socks[id];

	return s->is_broken ||
		atomic_load_explicit(&s->shm->tx_tail, memory_order_acquire) == s->tx_head;
}
