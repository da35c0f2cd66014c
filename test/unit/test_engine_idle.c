/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * When an lcore sleeps, and what wakes it: any thread with work for it, if it sleeps. (AFC-19;
 * ARCH-6)
 */

#include "test_engine_loop.h"

#include <rte_arp.h>

#define SLEEP_US 100000
#define NAPS     40

static void
idle_setup(void)
{
	alarm(WATCHDOG_S);
	port_conf(64);
	conf.idle = SAN_IDLE_SLEEP;
	conf.sleep_max_us = SLEEP_US;
	open_port();
	/* announcements at the start have been sent */
	while (e->idle_loops == 0)
		san_engine_progress(port);
}

static void
idle_teardown(void)
{
	close_port();
	alarm(0);
}

static void
until_it_dozes(void)
{
	while (!e->dozes)
		san_engine_progress(port);
}

static struct san_engine_app
add_app(void)
{
	struct san_engine_app app = {
		.doorbells = zeroed(san_doorbells_bytes(e->conf.ulp.max_qps)),
		.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};

	assert_int_equal(san_engine_app_add(e, 3, 0, app.doorbells, app.wake_fd), 0);
	return app;
}

static void
del_app(struct san_engine_app *app)
{
	san_engine_app_del(e, 3);
	close(app->wake_fd);
	free(app->doorbells);
}

UNIT_FIXTURE(.setup = idle_setup, .teardown = idle_teardown, .first = test_eal_init);

/* It marks its doorbells as sleeping first, checks once more, and clears the mark afterwards. */
UNIT_CASE(san_engine_idle_after__dozes_first)
{
	struct san_engine_app app = add_app();
	uint64_t nb_sleeps;

	assert_false(san_doorbells_ring(app.doorbells, 1));
	san_engine_progress(port); /* handles the doorbell: work */
	assert_int_equal(e->idle_loops, 0);
	nb_sleeps = e->stats.nb_sleeps;
	until_it_dozes();
	assert_int_equal(e->stats.nb_sleeps, nb_sleeps); /* a check comes first */
	assert_true(san_doorbells_ring(app.doorbells, 1));
	san_engine_progress(port);
	assert_int_equal(e->stats.nb_sleeps, nb_sleeps); /* and has found it */
	assert_false(e->dozes);
	assert_false(san_doorbells_ring(app.doorbells, 1));
	san_engine_progress(port);
	until_it_dozes();
	e->idle_ns = 0; /* idle for long */
	san_engine_progress(port);
	assert_int_equal(e->stats.nb_sleeps, nb_sleeps + 1);
	del_app(&app);
}

static uint64_t
naps_ns(int fd)
{
	uint64_t start_ns = san_engine_clock_now(&e->clock);

	until_it_dozes();
	for (uint32_t i = 0; i < NAPS; i++) {
		e->idle_ns = 0;
		if (fd >= 0)
			eventfd_write(fd, 1);
		else
			san_engine_wake(e);
		san_engine_progress(port);
	}
	return san_engine_clock_now(&e->clock) - start_ns;
}

/* A wake-up, its own or an application's, ends the sleep; it is never read. */
UNIT_CASE(san_engine_wake__ends_the_sleep)
{
	struct san_engine_app app = add_app();

	assert_true(naps_ns(-1) < NAPS * SLEEP_US / 2 * SAN_NS_PER_US);
	assert_true(naps_ns(app.wake_fd) < NAPS * SLEEP_US / 2 * SAN_NS_PER_US);
	/* removed, it wakes no lcore, although its other end may still be open */
	san_engine_app_del(e, 3);
	e->idle_ns = 0;
	eventfd_write(app.wake_fd, 1);
	assert_int_equal(san_engine_app_add(e, 3, 0, app.doorbells, -1), 0);
	del_app(&app);
}

/* Long idle time, long sleep; and the first sleep is short. */
UNIT_CASE(san_engine_idle_after__sleeps_by_silence)
{
	uint64_t before_ns;

	until_it_dozes();
	before_ns = e->idle_ns = san_engine_clock_now(&e->clock);
	progress(2);
	/* two of a quarter of the idle time, or of the minimum */
	assert_true(san_engine_clock_now(&e->clock) - before_ns < SLEEP_US * SAN_NS_PER_US);
}

/* A packet would have ended the sleep, so none has waited since the last round (RT-25). */
UNIT_CASE(san_engine_idle_after__sleep_is_no_delay)
{
	until_it_dozes();
	san_engine_progress(port);
	assert_true(e->rx_ns <= e->now_ns);
	until_it_dozes();
	e->hears = true;
	san_engine_progress(port);
	assert_true(e->rx_ns > e->now_ns);
}

/* ---- what a round does in which order ---- */

/* One round, in which an application has posted work. */
static void
posted_round(void)
{
	struct san_engine_app app = add_app();

	san_doorbells_ring(app.doorbells, 1);
	san_engine_progress(port);
	del_app(&app);
}

/* A host asks for our MAC address. */
static void
arp_request(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(port->pool);
	struct {
		struct rte_ether_hdr eth;
		struct rte_arp_hdr arp;
		uint8_t pad[18];
	} *f = (void *)rte_pktmbuf_append(m, sizeof(*f));

	memset(f, 0, sizeof(*f));
	memset(&f->eth.dst_addr, 0xff, sizeof(f->eth.dst_addr));
	f->eth.src_addr.addr_bytes[0] = 2;
	f->eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_ARP);
	f->arp.arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER);
	f->arp.arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	f->arp.arp_hlen = sizeof(struct rte_ether_addr);
	f->arp.arp_plen = sizeof(rte_be32_t);
	f->arp.arp_opcode = RTE_BE16(RTE_ARP_OP_REQUEST);
	f->arp.arp_data.arp_sha = f->eth.src_addr;
	f->arp.arp_data.arp_sip = RTE_BE32(RTE_IPV4(10, 0, 0, 9));
	f->arp.arp_data.arp_tip = RTE_BE32(RTE_IPV4(10, 0, 0, 1));
	assert_int_equal(rte_eth_tx_burst(conf.port_id, 0, &m, 1), 1);
}

/* Frames of other VLANs are work: more may be behind them, for which nothing wakes the lcore. */
UNIT_CASE(san_engine_loop_once__foreign_frames_are_work)
{
	until_it_dozes();
	port->conf.vlan = 5;
	arp_request();
	san_engine_progress(port);
	assert_false(e->dozes);
	assert_int_equal(e->idle_loops, 0);
}

/* Posted work is sent before the round receives, so that net_ring delivers it in the same round. */
UNIT_CASE(san_engine_loop_once__posted_goes_first)
{
	struct rte_ether_addr mac;
	struct san_inet_addr peer;
	uint64_t nb_rx = e->stats.nb_rx_pkts;

	assert_int_equal(san_inet_addr_parse("10.0.0.2", &peer), 0);
	san_inet_route_resolve(san_core_inet(e->core), &peer.ip, false, e->now_ns, &mac);
	posted_round();
	assert_int_equal(e->stats.nb_rx_pkts, nb_rx + 1);
	assert_true(e->rx_ns > e->busy.round_ns); /* no answer in the same round */
}

/* A polling thread may not return soon: received packets are answered in the same round. */
UNIT_CASE(san_engine_loop_once__answers_before_it_returns)
{
	uint64_t nb_tx = e->stats.nb_tx_pkts;

	arp_request();
	posted_round();
	assert_int_equal(e->stats.nb_tx_pkts, nb_tx + 1);
}

UNIT_CASE_ALONE(san_engine_open__no_interrupts)
{
	const char *why;

	port_conf(64);
	add_device("net_ring0", "");
	conf.idle = SAN_IDLE_INTERRUPT;
	assert_int_not_equal(san_engine_open(&conf, &port, &why), 0);
	assert_non_null(strstr(why, "interrupt"));
}
