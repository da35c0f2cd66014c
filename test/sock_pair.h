/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file Carried sockets and the programs that have them, for tests of lib/sock. */

#include <sys/socket.h>

#include "inet_host.h"
#include "sock.h"

/** A program's view of a socket: rings as it would write and read them. */
struct sock_prog {
	struct san_sock_shm *shm;
	uint32_t id;
};

static inline struct san_sock_names
sock_named(const char *local, uint16_t port, const char *peer, uint16_t peer_port)
{
	struct san_sock_names n = {
		.port = port,
		.peer_port = peer_port,
		.family = strchr(local, ':') != NULL ? AF_INET6 : AF_INET,
		.local = inet_ip(local),
	};

	if (peer != NULL)
		n.peer = inet_ip(peer);
	return n;
}

static inline struct sock_prog
sock_open(struct san_socks *all, const struct san_sock_names *names, int wake_fd)
{
	struct sock_prog p;
	size_t bytes = san_sock_shm_bytes(SAN_SOCK_RX_BYTES, SAN_SOCK_TX_BYTES);

	p.shm = aligned_alloc(4096, bytes);
	memset((void *)p.shm, 0, bytes);
	p.shm->rx_bytes = SAN_SOCK_RX_BYTES;
	p.shm->tx_bytes = SAN_SOCK_TX_BYTES;
	SAN_VERIFY(san_sock_add(all, p.shm, SAN_SOCK_RX_BYTES, SAN_SOCK_TX_BYTES, wake_fd,
				&p.id) == 0);
	san_sock_name(all, p.id, names);
	return p;
}

static inline void
sock_close(struct san_socks *all, struct sock_prog *p)
{
	san_sock_del(all, p->id);
	free(p->shm);
	p->shm = NULL;
}

/** The next datagram of *p*, of at most *max* bytes; -1: none. */
static inline int
sock_read(struct sock_prog *p, struct san_sock_rec *rec, void *data, size_t max)
{
	uint32_t head = atomic_load(&p->shm->rx_head), size = p->shm->rx_bytes;
	uint32_t base = atomic_load(&p->shm->rx_base);
	const uint8_t *ring = san_sock_shm_rx_ring(p->shm);

	if (head == atomic_load(&p->shm->rx_tail))
		return -1;
	memcpy(rec, ring + san_sock_shm_off(size, base, head), sizeof(*rec));
	head = san_sock_shm_skip(size, base, head, rec->bytes);
	memcpy(rec, ring + san_sock_shm_off(size, base, head), sizeof(*rec));
	SAN_VERIFY(rec->bytes <= max);
	memcpy(data, ring + san_sock_shm_off(size, base, head) + sizeof(*rec), rec->bytes);
	atomic_store(&p->shm->rx_head, head + san_sock_shm_rec_bytes(rec->bytes));
	return (int)rec->bytes;
}

/** Where the next one to send goes, for *bytes*; NULL: no room. *end*: the tail behind it. */
static inline struct san_sock_rec *
sock_room(struct sock_prog *p, uint32_t bytes, uint32_t *end)
{
	uint8_t *ring = san_sock_shm_tx_ring(p->shm, p->shm->rx_bytes);
	uint32_t at, base = atomic_load(&p->shm->tx_base);

	if (san_sock_shm_place(ring, p->shm->tx_bytes, atomic_load(&p->shm->tx_tail),
			       atomic_load(&p->shm->tx_head), &base, bytes, &at) != 0)
		return NULL;
	atomic_store(&p->shm->tx_base, base);
	*end = at + san_sock_shm_rec_bytes(bytes);
	return (struct san_sock_rec *)(ring + san_sock_shm_off(p->shm->tx_bytes, base, at));
}

/** *p* sends *data*. False: no room. */
static inline bool
sock_write(struct sock_prog *p, const char *to, uint16_t port, const void *data, uint32_t bytes)
{
	uint32_t end;
	struct san_sock_rec *rec = sock_room(p, bytes, &end);
	struct san_ip ip = inet_ip(to);

	if (rec == NULL)
		return false;
	memset(rec, 0, sizeof(*rec));
	rec->bytes = bytes;
	rec->dport = port;
	memcpy(rec->dst, ip.b, sizeof(rec->dst));
	memcpy(rec + 1, data, bytes);
	atomic_store(&p->shm->tx_tail, end);
	return true;
}
