/* SPDX-License-Identifier: BSD-3-Clause */

/* A port with engines on several lcores; the device has RSS, but no link. (SYS-1) */

#include "test_engine_loop.h"

#include <rte_lcore.h>

#define NB 2

static const char *why;

static void
start_eal(void)
{
	unsigned int cpu = 0;
	char lcores[64];
	cpu_set_t cpus;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	while (!CPU_ISSET(cpu, &cpus))
		cpu++;
	snprintf(lcores, sizeof(lcores), "--lcores=0@%u,1@%u,2@%u", cpu, cpu, cpu);
	test_eal_start(lcores);
}

static void
open_setup(void)
{
	port_conf(16);
	add_device("net_null0", "no-rx=1");
	conf.idle = SAN_IDLE_YIELD;
	conf.own_lcore = true;
	conf.nb_lcores = NB;
	conf.lcores[0] = 1;
	conf.lcores[1] = 2;
	conf.pool_size = san_engine_port_pool_min(&conf);
	port = NULL;
}

static void
open_teardown(void)
{
	if (port != NULL)
		san_engine_close(port);
	assert_int_equal(rte_eal_hotplug_remove("vdev", "net_null0"), 0);
}

static int
lcore_of(struct san_engine *engine, void *arg)
{
	return (int)rte_lcore_id();
}

UNIT_FIXTURE(.setup = open_setup, .teardown = open_teardown, .first = start_eal);

UNIT_CASE(open__an_engine_on_each_lcore)
{
	struct san_core_event ev;

	assert_int_equal(san_engine_open(&conf, &port, &why), 0);
	assert_int_equal(san_engine_count(port), NB);
	for (uint32_t i = 0; i < NB; i++) {
		e = san_engine_at(port, i);
		assert_int_equal(san_engine_loop_call(e, lcore_of, NULL), conf.lcores[i]);
		assert_int_equal(e->conf.pdl.lcore_id, i);
		assert_int_equal(e->conf.ulp.first_qp, i * conf.core.ulp.max_qps);
		assert_int_equal(e->conf.inet.quiet, i != 0);
	}
	assert_false(san_engine_event(port, &ev));
	assert_int_equal(san_engine_progress(port), 0);
	assert_int_equal(san_view_counters_leaks(port), 0);
}

/* Key and table are read back, and each engine gives peers source ports of its own queue. */
UNIT_CASE(open__steered_by_rss)
{
	const struct san_ip *own = &conf.core.inet.addrs[0].ip;
	uint16_t ports[SAN_WIRE_CM_PORTS];
	struct san_inet_addr peer;

	assert_int_equal(san_engine_open(&conf, &port, &why), 0);
	assert_int_equal(port->conf.nb_queues, NB);
	assert_true(port->is_steered);
	assert_int_equal(san_inet_addr_parse("10.0.0.2", &peer), 0);
	for (uint32_t id = 0; id < NB; id++) {
		const struct san_cm_conf *cm = &port->engines[id]->conf.cm;

		assert_true(port->engines[id]->has_queue);
		assert_ptr_equal(cm->steer, &port->steer);
		assert_int_equal(cm->queue, id);
		assert_int_equal(
			san_cm_steer_udp_ports(cm->steer, cm->queue, &peer.ip, own, 4791, 9, ports),
			SAN_WIRE_CM_PORTS);
	}
}

/* With fewer queues, an lcore without one receives and sends through one with a queue. */
UNIT_CASE(open__fewer_queues)
{
	conf.nb_queues = 1;
	assert_int_equal(san_engine_open(&conf, &port, &why), 0);
	assert_int_equal(port->conf.nb_queues, 1);
	assert_false(port->is_steered);
	assert_true(port->engines[0]->has_queue);
	assert_false(port->engines[1]->has_queue);
	assert_null(port->engines[0]->conf.cm.steer);
	assert_non_null(port->rx_lanes[0][1].ring);
	assert_null(port->rx_lanes[1][0].ring);
	assert_non_null(port->tx_lanes[1]);
}

UNIT_CASE(open__says_what_is_wrong)
{
	struct san_engine_conf good = conf;

	conf.nb_queues = 3;
	assert_int_equal(san_engine_open(&conf, &port, &why), -EINVAL);
	assert_non_null(strstr(why, "queues="));
	conf = good;
	conf.own_lcore = false;
	assert_int_equal(san_engine_open(&conf, &port, &why), -EINVAL);
	conf = good;
	conf.pool_size--;
	assert_int_equal(san_engine_open(&conf, &port, &why), -EINVAL);
	assert_non_null(strstr(why, "pool"));
	conf = good;
	conf.nb_lcores = SAN_ENGINE_LCORES + 1;
	assert_int_equal(san_engine_open(&conf, &port, &why), -EINVAL);
}

/* The second lcore does not exist: the first one does not run either. */
UNIT_CASE(open__undoes_what_it_did)
{
	conf.lcores[1] = 77;
	assert_int_equal(san_engine_open(&conf, &port, &why), -EINVAL);
	assert_int_equal(rte_eal_get_lcore_state(1), WAIT);
	port = NULL;
}

/* Of several engines the sum is reported, of high-water marks the highest. */
UNIT_CASE(counters__of_all)
{
	struct rtsan_dpdk_counter all[SAN_VIEW_COUNTERS], one[SAN_VIEW_COUNTERS];
	uint32_t n;

	assert_int_equal(san_engine_open(&conf, &port, &why), 0);
	san_core_tl(port->engines[0]->core)->stats.budget_high = 70;
	san_core_tl(port->engines[1]->core)->stats.budget_high = 50;
	san_core_tl(port->engines[0]->core)->stats.nb_pulls = 3;
	san_core_tl(port->engines[1]->core)->stats.nb_pulls = 4;
	n = san_view_counters(port, NULL, all);
	assert_int_equal(san_view_counters(port, port->engines[1], one), n);
	for (uint32_t i = 0; i < n; i++) {
		if (strcmp(all[i].name, "budget_high_bytes") == 0) {
			assert_int_equal(all[i].value, 70);
			assert_int_equal(one[i].value, 50);
		}
		if (strcmp(all[i].name, "pulls") == 0) {
			assert_int_equal(all[i].value, 7);
			assert_int_equal(one[i].value, 4);
		}
	}
	assert_true(n > 60);
}

/* A device that always has as many frames as requested. */
static void
flood(const char *size, uint32_t want)
{
	assert_int_equal(rte_eal_hotplug_remove("vdev", "net_null0"), 0);
	add_device("net_null0", size);
	assert_int_equal(san_engine_open(&conf, &port, &why), 0);
	san_engine_progress(port);
	assert_int_equal(port->engines[0]->stats.nb_rx_pkts, ENGINE_BURST);
	for (uint32_t i = 1; i <= 10; i++) {
		san_engine_progress(port);
		assert_int_equal(port->engines[0]->stats.nb_rx_pkts, ENGINE_BURST + i * want);
	}
	san_engine_close(port);
	port = NULL;
}

/* Both ends work in parallel, however long the frames are: a burst of long ones is short. */
UNIT_CASE(burst__of_long_frames)
{
	conf.own_lcore = false;
	conf.nb_lcores = 1;
	flood("size=9000", ENGINE_BURST_LONG);
	flood("size=1514", ENGINE_BURST);
}
