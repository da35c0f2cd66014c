/* SPDX-License-Identifier: BSD-3-Clause */

/* Which socket gets a datagram; and an application is woken exactly if it waits. (UDP-6, AFC-19) */

#include "unit.h"

#include <errno.h>

#include "sock_pair.h"

#define MAX 8

static struct rte_mempool *pool;
static struct san_socks *all;
static bool ends;
static struct sock_prog p[MAX];
static uint32_t nb;
static struct san_inet_dgram usual; /* from 10.0.0.2:7 to 10.0.0.1:5000 */

static void
make_pool(void)
{
	pool = test_eal_pool("sock_find", 63, 2048);
}

static struct san_inet_dgram
dgram(const char *src, uint16_t sport, const char *dst, uint16_t dport)
{
	return (struct san_inet_dgram){
		.src = inet_ip(src),
		.dst = inet_ip(dst),
		.sport = sport,
		.dport = dport,
	};
}

static void
setup(void)
{
	nb = 0;
	usual = dgram("10.0.0.2", 7, "10.0.0.1", 5000);
	assert_int_equal(san_sock_table_create(NULL, MAX, &all), 0);
}

static void
teardown(void)
{
	while (nb > 0)
		sock_close(all, &p[--nb]);
	san_sock_table_destroy(all);
}

static uint32_t
add(const char *local, uint16_t port, const char *peer, uint16_t peer_port)
{
	struct san_sock_names n = sock_named(local, port, peer, peer_port);

	p[nb] = sock_open(all, &n, 100 + (int)nb);
	return nb++;
}

/* For a datagram without an mbuf, thus without bytes. */
static uint32_t
arrives(const struct san_inet_dgram *d)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	const struct san_inet_result r = {.what = SAN_INET_UDP, .d = *d, .m = m};
	uint32_t got = san_sock_dgram_rx(all, &r, 1);

	rte_pktmbuf_free(r.m);
	return got;
}

static bool
got(uint32_t i)
{
	struct san_sock_rec rec;
	uint8_t data[16];

	return sock_read(&p[i], &rec, data, sizeof(data)) == 0;
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown, .first = make_pool);

UNIT_CASE(find__most_specific)
{
	uint32_t any, bound, conn;

	assert_int_equal(arrives(&usual), 0);
	any = add("0.0.0.0", 5000, NULL, 0);
	assert_int_equal(arrives(&usual), 1);
	assert_true(got(any));
	bound = add("10.0.0.1", 5000, NULL, 0);
	assert_int_equal(arrives(&usual), 1);
	assert_true(got(bound));
	conn = add("10.0.0.1", 5000, "10.0.0.2", 7);
	assert_int_equal(arrives(&usual), 1);
	assert_true(got(conn));
	assert_false(got(any) || got(bound));
}

UNIT_CASE(find__not_for_others)
{
	const struct san_inet_dgram other_port = dgram("10.0.0.2", 7, "10.0.0.1", 5001);
	const struct san_inet_dgram other_addr = dgram("10.0.0.2", 7, "10.0.0.9", 5000);
	const struct san_inet_dgram other_peer = dgram("10.0.0.2", 8, "10.0.0.1", 5000);
	const struct san_inet_dgram v6 = dgram("fd00::2", 7, "fd00::1", 5000);

	add("10.0.0.1", 5000, "10.0.0.2", 7);
	assert_int_equal(arrives(&other_port), 0);
	assert_int_equal(arrives(&other_addr), 0);
	assert_int_equal(arrives(&other_peer), 0);
	assert_int_equal(arrives(&v6), 0);
}

UNIT_CASE(find__v6_takes_v4_unless_told)
{
	struct san_sock_names n = sock_named("::", 5000, NULL, 0);
	uint32_t i = add("::", 5000, NULL, 0);

	assert_int_equal(arrives(&usual), 1);
	assert_true(got(i));
	n.v6only = true;
	san_sock_name(all, p[i].id, &n);
	assert_int_equal(arrives(&usual), 0);
}

UNIT_CASE(find__reuseport_spreads)
{
	struct san_sock_names n = sock_named("0.0.0.0", 5000, NULL, 0);
	uint32_t i, k, sum[4] = {0};

	n.reuseport = true;
	for (i = 0; i < 4; i++) {
		add("0.0.0.0", 5000, NULL, 0);
		san_sock_name(all, p[i].id, &n);
	}
	for (i = 0; i < 1000; i++) {
		struct san_inet_dgram d = dgram("10.0.0.2", (uint16_t)(1000 + i), "10.0.0.1", 5000);
		uint32_t first = UINT32_MAX;

		/* the same sender, the same socket, whatever option one of them gets */
		for (k = 0; k < 8; k++) {
			n.tos = (uint8_t)i;
			san_sock_name(all, p[k % 4].id, &n);
			assert_int_equal(arrives(&d), 1);
			if (first == UINT32_MAX)
				while (!got(k))
					k++;
			else
				assert_true(got(first));
			if (first == UINT32_MAX) {
				first = k;
				sum[first]++;
				k = 6;
			}
		}
	}
	for (i = 0; i < 4; i++)
		assert_in_range(sum[i], 150, 350);
}

UNIT_CASE(find__group_reaches_all)
{
	struct san_inet_dgram d = dgram("10.0.0.2", 7, "239.1.2.3", 5000);
	const struct san_ip other = inet_ip("239.1.2.4");

	d.group = true;
	add("0.0.0.0", 5000, NULL, 0);
	add("239.1.2.3", 5000, NULL, 0);
	add("10.0.0.1", 5000, NULL, 0);
	add("0.0.0.0", 5000, NULL, 0);
	assert_int_equal(arrives(&d), 0);
	assert_int_equal(san_sock_find_join(all, p[0].id, &other), 0);
	assert_int_equal(san_sock_find_join(all, p[0].id, &d.dst), 0);
	assert_int_equal(san_sock_find_join(all, p[1].id, &d.dst), 0);
	assert_int_equal(san_sock_find_join(all, p[2].id, &d.dst), 0);
	assert_int_equal(san_sock_find_join(all, p[0].id, &d.dst), -EADDRINUSE);
	assert_int_equal(arrives(&d), 2);
	assert_true(got(0) && got(1));
	assert_false(got(2) || got(3));
	assert_int_equal(san_sock_find_leave(all, p[0].id, &d.dst), 0);
	assert_int_equal(san_sock_find_leave(all, p[0].id, &d.dst), -EADDRNOTAVAIL);
	assert_int_equal(san_sock_find_leave(all, p[0].id, &other), 0);
	assert_int_equal(san_sock_find_leave(all, p[0].id, &other), -EADDRNOTAVAIL);
	assert_int_equal(arrives(&d), 1);
	assert_true(got(1));
}

UNIT_CASE(find__broadcast_reaches_all)
{
	struct san_inet_dgram d = dgram("10.0.0.2", 7, "10.0.0.255", 5000);

	d.group = true;
	add("0.0.0.0", 5000, NULL, 0);
	add("0.0.0.0", 5000, NULL, 0);
	add("10.0.0.1", 5000, NULL, 0);
	assert_int_equal(arrives(&d), 2);
	assert_true(got(0) && got(1));
	assert_false(got(2));
}

UNIT_CASE(wake__only_who_waits)
{
	uint32_t i = add("10.0.0.1", 5000, NULL, 0);

	arrives(&usual);
	assert_int_equal(san_sock_wake_next(all, &ends), -1);
	assert_true(got(i));
	atomic_store(&p[i].shm->armed, 1);
	arrives(&usual);
	arrives(&usual);
	assert_int_equal(san_sock_wake_next(all, &ends), 100);
	assert_int_equal(san_sock_wake_next(all, &ends), -1);
	assert_int_equal(atomic_load(&p[i].shm->mirrored), SAN_SOCK_NOTIFIED);
}

/* If everything is read before the wake-up, it is withdrawn. */
UNIT_CASE(wake__taken_back)
{
	uint32_t i = add("10.0.0.1", 5000, NULL, 0);

	atomic_store(&p[i].shm->armed, 1);
	arrives(&usual);
	assert_int_equal(atomic_load(&p[i].shm->mirrored), SAN_SOCK_TO_NOTIFY);
	atomic_store(&p[i].shm->mirrored, SAN_SOCK_UNNOTIFIED);
	assert_int_equal(san_sock_wake_next(all, &ends), -1);
	arrives(&usual);
	assert_int_equal(san_sock_wake_next(all, &ends), 100);
	assert_int_equal(atomic_load(&p[i].shm->mirrored), SAN_SOCK_NOTIFIED);
}

UNIT_CASE(wake__edges_of_each_burst)
{
	uint32_t i = add("10.0.0.1", 5000, NULL, 0);

	atomic_store(&p[i].shm->armed, 1);
	atomic_store(&p[i].shm->edges, 1);
	for (uint32_t k = 0; k < 3; k++) {
		arrives(&usual);
		arrives(&usual);
		assert_int_equal(san_sock_wake_next(all, &ends), 100);
		assert_int_equal(san_sock_wake_next(all, &ends), -1);
		/* what is sent meanwhile is no edge */
		san_sock_doorbell(all, p[i].id);
		san_sock_dgram_pump(all, NULL, 1);
		assert_int_equal(san_sock_wake_next(all, &ends), -1);
	}
}

UNIT_CASE(wake__rung_while_there_is_something)
{
	uint32_t i = add("10.0.0.1", 5000, NULL, 0);

	arrives(&usual);
	/* it arms, finds something and rings its doorbell */
	atomic_store(&p[i].shm->armed, 1);
	san_sock_doorbell(all, p[i].id);
	san_sock_dgram_pump(all, NULL, 1);
	assert_int_equal(san_sock_wake_next(all, &ends), 100);
}

UNIT_CASE(wake__closed_before_it_was_told)
{
	add("10.0.0.1", 5000, NULL, 0);
	add("10.0.0.1", 5001, NULL, 0);
	atomic_store(&p[1].shm->armed, 1);
	atomic_store(&p[0].shm->armed, 1);
	arrives(&usual);
	san_sock_dgram_fail(all, p[1].id, ECONNREFUSED);
	san_sock_doorbell(all, p[1].id);
	sock_close(all, &p[--nb]);
	assert_int_equal(san_sock_wake_next(all, &ends), 100);
	assert_int_equal(san_sock_wake_next(all, &ends), -1);
	assert_false(san_sock_table_has_work(all));
}

UNIT_CASE(add__no_room)
{
	struct san_sock_shm shm;
	uint32_t id;

	while (nb < MAX)
		add("10.0.0.1", 5000, NULL, 0);
	assert_int_equal(san_sock_add(all, &shm, SAN_SOCK_RX_BYTES, SAN_SOCK_TX_BYTES, -1, &id),
			 -ENOSPC);
	sock_close(all, &p[--nb]);
	add("10.0.0.1", 5000, NULL, 0);
}
