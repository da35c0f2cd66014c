/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Datagrams between rings and the link: bytes, order, full rings, and what an application must not
 * write. (UDP-3, UDP-8, SYS-5)
 */

#include "unit.h"

#include <errno.h>

#include "san_prng.h"
#include "sock_pair.h"

#define PEER "10.0.0.2"
#define US   "10.0.0.1"

static struct rte_mempool *pool;
static struct inet_host h;
static struct san_socks *all;
static bool ends;
static struct sock_prog p;
static struct inet_frame f;
static uint8_t data[SAN_SOCK_DGRAM], back[SAN_SOCK_DGRAM];

static void
make_pool(void)
{
	pool = test_eal_pool("sock_dgram", 1023, 2048);
}

static void
setup(void)
{
	struct san_inet_conf conf;
	struct san_sock_names n;

	inet_host_conf(pool, &conf);
	inet_host_init(&h, pool, &conf);
	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + i / 251);
	n = sock_named(US, 5000, NULL, 0);
	assert_int_equal(san_sock_table_create(NULL, 4, &all), 0);
	p = sock_open(all, &n, 9);
	/* the neighbour is known */
	inet_make_arp(&f, 2, inet_peer_mac, PEER, US);
	inet_host_rx(&h, &f);
	inet_make_arp(&f, 1, inet_peer_mac, PEER, US);
	inet_host_rx(&h, &f);
	while (inet_host_tx(&h, &f))
		;
}

static void
teardown(void)
{
	if (p.shm != NULL)
		sock_close(all, &p);
	san_sock_table_destroy(all);
	san_inet_destroy(h.in);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static void
give(uint32_t len)
{
	const struct san_inet_dgram d = {
		.src = inet_ip(PEER),
		.dst = inet_ip(US),
		.sport = 7,
		.dport = 5000,
		.hops = 33,
		.tos = 4,
	};

	san_sock_dgram_put(all, p.id, &d, 3, data, len, 77);
}

/* ---- received ---- */

UNIT_FIXTURE(.setup = setup, .teardown = teardown, .first = make_pool);

UNIT_CASE(rx__what_it_is)
{
	struct san_ip peer = inet_ip(PEER), us = inet_ip(US);
	struct san_sock_rec rec;

	give(100);
	assert_int_equal(sock_read(&p, &rec, back, sizeof(back)), 100);
	assert_memory_equal(back, data, 100);
	assert_memory_equal(rec.src, peer.b, 16);
	assert_memory_equal(rec.dst, us.b, 16);
	assert_int_equal(rec.sport, 7);
	assert_int_equal(rec.dport, 5000);
	assert_int_equal(rec.hops, 33);
	assert_int_equal(rec.tos, 4);
	assert_int_equal(rec.ns, 77);
	assert_int_equal(rec.if_index, 3);
	assert_int_equal(sock_read(&p, &rec, back, sizeof(back)), -1);
}

UNIT_CASE(rx__all_lengths_and_wraps)
{
	struct san_sock_rec rec;
	struct san_prng prng;
	uint32_t len[3];
	int k;

	san_prng_seed(&prng, 1);
	for (uint32_t i = 0; i < 3000; i++) {
		for (k = 0; k < 3; k++) {
			len[k] = (uint32_t)(san_prng_u64(&prng) % (SAN_SOCK_DGRAM + 1));
			give(len[k]);
		}
		for (k = 0; k < 3; k++) {
			if (atomic_load(&p.shm->rx_head) == atomic_load(&p.shm->rx_tail))
				break; /* one found no room: the last one */
			assert_int_equal(sock_read(&p, &rec, back, sizeof(back)), len[k]);
			assert_memory_equal(back, data, len[k]);
		}
		assert_true(k > 1);
	}
}

UNIT_CASE(rx__low_rate_uses_few_lines)
{
	struct san_sock_rec rec;

	for (uint32_t i = 0; i < 10000; i++) {
		give(64);
		assert_int_equal(atomic_load(&p.shm->rx_tail) - atomic_load(&p.shm->rx_base), 128);
		assert_int_equal(sock_read(&p, &rec, back, sizeof(back)), 64);
	}
}

UNIT_CASE(rx__no_room_is_counted)
{
	struct san_sock_rec rec;
	uint64_t nb_rx;

	for (uint32_t i = 0; i < 3000; i++)
		give(64);
	assert_int_equal(san_sock_stats(all, p.id)->nb_rx, SAN_SOCK_RX_BYTES / 128);
	assert_int_equal(atomic_load(&p.shm->nb_drops), 3000 - SAN_SOCK_RX_BYTES / 128);
	/* the next datagram reports how many were lost before it */
	assert_int_equal(sock_read(&p, &rec, back, sizeof(back)), 64);
	assert_int_equal(rec.nb_drops, 0);
	give(64);
	while (sock_read(&p, &rec, back, sizeof(back)) >= 0)
		;
	assert_int_equal(rec.nb_drops, 3000 - SAN_SOCK_RX_BYTES / 128);
	for (uint32_t i = 0; i < SAN_SOCK_RX_BYTES / 128; i++)
		give(64);
	/* an application with an invalid read index gets nothing */
	nb_rx = san_sock_stats(all, p.id)->nb_rx;
	atomic_store(&p.shm->rx_head, 12345678);
	give(64);
	assert_int_equal(san_sock_stats(all, p.id)->nb_rx, nb_rx);
}

/* ---- to send ---- */

static void
pump(void)
{
	san_sock_doorbell(all, p.id);
	san_sock_dgram_pump(all, h.in, h.now_ns);
}

static struct san_sock_rec *
first_rec(void)
{
	return (struct san_sock_rec *)san_sock_shm_tx_ring(p.shm, p.shm->rx_bytes);
}

UNIT_CASE(tx__frame_is_right)
{
	assert_true(sock_write(&p, PEER, 7, data, 100));
	pump();
	assert_true(inet_host_tx(&h, &f));
	assert_int_equal(f.len, 14 + 20 + 8 + 100);
	assert_memory_equal(f.b, inet_peer_mac, 6);
	assert_memory_equal(f.b + 26, "\12\0\0\1\12\0\0\2", 8);
	assert_int_equal(inet_get16(f.b + 34), 5000);
	assert_int_equal(inet_get16(f.b + 36), 7);
	assert_int_equal(inet_get16(f.b + 38), 108);
	assert_memory_equal(f.b + 42, data, 100);
	assert_false(inet_host_tx(&h, &f));
	assert_true(san_sock_dgram_has_sent(all, p.id));
}

UNIT_CASE(tx__not_to_the_peer_of_later)
{
	const struct san_sock_names n = sock_named(US, 5000, PEER, 9);

	assert_true(sock_write(&p, PEER, 7, data, 1));
	assert_true(sock_write(&p, PEER, 0, data, 1));
	san_sock_name(all, p.id, &n);
	pump();
	assert_true(inet_host_tx(&h, &f));
	assert_int_equal(inet_get16(f.b + 36), 7);
	/* a datagram without a destination is an error */
	assert_false(inet_host_tx(&h, &f));
	assert_int_equal(atomic_load(&p.shm->error), EDESTADDRREQ);
}

UNIT_CASE(tx__own_port_whatever_it_writes)
{
	uint32_t end;
	struct san_sock_rec *rec;

	assert_true(sock_write(&p, PEER, 7, data, 1));
	first_rec()->sport = 53;
	pump();
	assert_true(inet_host_tx(&h, &f));
	assert_int_equal(inet_get16(f.b + 34), 5000);
	/* so is a source address that is not ours */
	rec = sock_room(&p, 1, &end);
	assert_true(sock_write(&p, PEER, 7, data, 1));
	memcpy(rec->src, inet_ip("10.0.0.77").b, 16);
	pump();
	assert_false(inet_host_tx(&h, &f));
	assert_int_equal(atomic_load(&p.shm->error), EADDRNOTAVAIL);
}

/* The kernel's socket is not bound any more: to another device, or its port was given back. */
UNIT_CASE(tx__nothing_without_a_name)
{
	const struct san_sock_names none = {.family = AF_INET};

	san_sock_name(all, p.id, &none);
	assert_true(sock_write(&p, PEER, 7, data, 1));
	pump();
	assert_false(inet_host_tx(&h, &f));
	assert_int_equal(atomic_load(&p.shm->error), EADDRNOTAVAIL);
}

UNIT_CASE(tx__many_wait_for_room)
{
	uint32_t sent = 0, written = 0;

	for (uint32_t i = 0; i < 100000 && sent < 5000; i++) {
		while (written < 5000 && sock_write(&p, PEER, 7, &written, sizeof(written)))
			written++;
		pump();
		while (inet_host_tx(&h, &f)) {
			assert_memory_equal(f.b + 42, &sent, sizeof(sent));
			sent++;
		}
	}
	assert_int_equal(sent, 5000);
	assert_false(san_sock_table_has_work(all));
}

UNIT_CASE(tx__room_is_told_once)
{
	while (sock_write(&p, PEER, 7, data, 1000))
		;
	assert_false(san_sock_shm_has_room(p.shm, SAN_SOCK_TX_BYTES));
	pump();
	while (inet_host_tx(&h, &f))
		;
	/* no application waits; then one does, until there is room for the longest datagram */
	assert_false(san_sock_table_has_room(all));
	atomic_store(&p.shm->full, 1);
	while (!san_sock_shm_has_room(p.shm, SAN_SOCK_TX_BYTES)) {
		assert_false(san_sock_table_has_room(all));
		pump();
		while (inet_host_tx(&h, &f))
			;
	}
	assert_true(san_sock_table_has_room(all));
	assert_false(san_sock_table_has_room(all));
	assert_int_equal(atomic_load(&p.shm->full), 0);
	/* that is enough, at any place in the ring */
	assert_true(sock_write(&p, PEER, 7, data, SAN_SOCK_DGRAM));
}

/* What an application must not write ends its sends. */
UNIT_CASE(tx__broken_ring)
{
	const struct san_sock_names n = sock_named(US, 5000, NULL, 0);
	static const struct {
		uint32_t bytes, tail;
	} cases[] = {
		{65, 0},                    /* a length beyond what there is */
		{SAN_SOCK_PAD - 1, 0},      /* a length beyond a datagram */
		{SAN_SOCK_PAD, 0},          /* padding beyond the tail */
		{1, SAN_SOCK_TX_BYTES * 3}, /* a tail beyond the ring */
	};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		sock_close(all, &p);
		p = sock_open(all, &n, 9);
		assert_true(sock_write(&p, PEER, 7, data, 1));
		first_rec()->bytes = cases[i].bytes;
		if (cases[i].tail != 0)
			atomic_store(&p.shm->tx_tail, cases[i].tail);
		pump();
		assert_int_equal(atomic_exchange(&p.shm->error, 0), EIO);
		assert_true(sock_write(&p, PEER, 7, data, 1) || true);
		pump();
		assert_false(inet_host_tx(&h, &f));
		assert_true(san_sock_dgram_has_sent(all, p.id));
	}
}

/* ---- errors ---- */

UNIT_CASE(error__of_who_is_connected)
{
	const struct san_sock_names n = sock_named(US, 5000, PEER, 7);
	const struct san_inet_result r = {
		.what = SAN_INET_ERROR,
		.err = ECONNREFUSED,
		.hard = true,
		.d = {.src = inet_ip(US), .dst = inet_ip(PEER), .sport = 5000, .dport = 7},
	};
	struct san_inet_result other = r;

	other.d.sport = 5001;
	assert_false(san_sock_dgram_error(all, &other)); /* no socket has the port: forged */
	assert_true(san_sock_dgram_error(all, &r));      /* not connected: it may have sent it */
	other = r;
	other.d.dport = 8;
	assert_int_equal(atomic_load(&p.shm->error), 0);
	san_sock_name(all, p.id, &n);
	atomic_store(&p.shm->armed, 1);
	assert_false(san_sock_dgram_error(all, &other)); /* connected to another address */
	assert_int_equal(atomic_load(&p.shm->error), 0);
	assert_true(san_sock_dgram_error(all, &r));
	assert_int_equal(atomic_load(&p.shm->error), ECONNREFUSED);
	assert_int_equal(san_sock_wake_next(all, &ends), 9);
}

/* A socket that has sent over the link since it was connected gets errors from there. */
UNIT_CASE(error__which_way)
{
	struct san_sock_names n = sock_named(US, 5000, NULL, 0);

	san_sock_name(all, p.id, &n);
	assert_true(sock_write(&p, PEER, 7, data, 100));
	pump();
	assert_false(san_sock_uses_link(all, p.id));
	n = sock_named(US, 5000, PEER, 7);
	san_sock_name(all, p.id, &n);
	assert_false(san_sock_uses_link(all, p.id));
	assert_true(sock_write(&p, PEER, 7, data, 100));
	pump();
	assert_true(san_sock_uses_link(all, p.id));
}
