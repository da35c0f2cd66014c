/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * An engine on a loopback port, and two applications that share their queues with it and are
 * connected to each other. Tests of other engines use the configuration.
 */

#include <unistd.h>

#include "unit.h"

#include <rte_dev.h>

#include "engine_priv.h"
#define TEST_EAL_MB "128"
#include "test_eal.h"
#include "view.h"

#define DEPTH      512
#define LEN        5000
#define PKEY       0xffff
#define SERVICE    7
#define USER       1000
#define WATCHDOG_S 60 /* real time, generous */

/* Resources of one application, and the address at which it maps its memory. */
struct app {
	uint16_t id;
	struct san_doorbells *doorbells;
	struct san_wq *wq;
	struct san_wq_prod q;
	struct san_cq *cq_mem;
	struct san_spsc_cons cq;
	struct san_ulp_cq *ulp_cq;
	uint32_t qp, key;
	uint8_t mem[LEN];
};

static struct san_engine_conf conf;
static struct san_engine_port *port;
static struct san_engine *e;
static struct app apps[2];

static inline uint64_t
name_of(const struct app *a)
{
	return 0x500000000000 + (uint64_t)a->id * 0x1000000;
}

static inline void *
zeroed(size_t bytes)
{
	void *p = aligned_alloc(64, RTE_ALIGN_CEIL(bytes, 64));

	memset(p, 0, bytes);
	return p;
}

static bool app_streams; /**< queue pairs are streams */

/* Its queue pair, with a queue that is all zero. */
static inline void
app_qp_add(struct app *a)
{
	struct san_engine_qp_conf qp = {
		.app = a->id,
		.wq = a->wq,
		.is_stream = app_streams,
		.lingers = true,
		.core.qp = {a->ulp_cq, a->ulp_cq, .sq_depth = DEPTH, .rq_depth = DEPTH},
	};

	san_stream_conf_default(&qp.core.stream);
	assert_int_equal(san_engine_lcore_qp_add(e, &qp, &a->qp), 0);
}

static inline void
app_init(struct app *a, uint16_t id)
{
	struct san_ulp *ulp = san_core_ulp(e->core);

	memset(a, 0, sizeof(*a));
	a->id = id;
	a->doorbells = zeroed(san_doorbells_bytes(e->conf.ulp.max_qps));
	a->wq = zeroed(san_wr_wq_bytes(DEPTH, DEPTH));
	a->cq_mem = zeroed(san_wr_cq_bytes(4 * DEPTH));
	assert_int_equal(san_engine_app_add(e, id, USER, a->doorbells, -1), 0);
	assert_int_equal(san_ulp_cq_create_at(ulp, 4 * DEPTH, a->cq_mem, &a->ulp_cq), 0);
	san_spsc_cons_init(&a->cq, 4 * DEPTH);
	app_qp_add(a);
	san_wr_wq_prod_init(&a->q, a->wq, DEPTH, DEPTH);
	assert_int_equal(san_ulp_mr_add(ulp, a->mem, LEN, name_of(a),
					RTSAN_REMOTE_PUSH | RTSAN_REMOTE_PULL, PKEY, &a->key),
			 0);
	assert_int_equal(san_ulp_mr_give(ulp, a->key, id), 0);
}

static inline void
app_fini(struct app *a)
{
	struct san_ulp *ulp = san_core_ulp(e->core);

	assert_ptr_equal(san_engine_lcore_qp_del(e, a->qp), a->wq);
	san_engine_app_del(e, a->id);
	assert_int_equal(san_ulp_mr_del(ulp, a->key), 0);
	assert_int_equal(san_ulp_cq_destroy(ulp, a->ulp_cq), 0);
	free(a->doorbells);
	free(a->wq);
	free(a->cq_mem);
}

static inline struct san_core_event
next_event(uint8_t type)
{
	struct san_core_event ev;

	while (!san_engine_event(port, &ev))
		san_engine_progress(port);
	assert_int_equal(ev.type, type);
	return ev;
}

static inline void
connect_apps(void)
{
	static const struct san_cm_param param = {
		.ordered = true,
		.pkey = PKEY,
		.data_win = 64,
		.req_win = 64,
		.first_win = 64,
		.max_txn = 64,
		.msg_limit = 64,
		.rnr_ms = 1000,
		.keepalive_ms = 1000,
	};
	struct san_core_event ev;

	assert_int_equal(san_cm_listen(san_core_cm(e->core), SERVICE, PKEY, 4, 1), 0);
	assert_int_equal(san_core_conn_connect(e->core, apps[0].qp, &conf.core.inet.addrs[0].ip,
					       SERVICE, &param, e->now_ns),
			 0);
	ev = next_event(RTSAN_EV_CONNECT_REQUEST);
	assert_int_equal(san_core_conn_accept(e->core, ev.request, apps[1].qp, &param, e->now_ns),
			 0);
	next_event(RTSAN_EV_ESTABLISHED);
	next_event(RTSAN_EV_ESTABLISHED);
	san_cm_listen_end(san_core_cm(e->core), SERVICE, PKEY);
}

static inline void
setup(void)
{
	alarm(WATCHDOG_S);
	e->stats.nb_app_faults = 0;
	app_init(&apps[0], 1);
	app_init(&apps[1], 2);
	connect_apps();
}

/* End both applications, and discard the events of their connection. */
static inline void
end_apps(void)
{
	struct san_core_event ev;

	app_fini(&apps[0]);
	app_fini(&apps[1]);
	for (uint32_t i = 0; i < 100; i++) {
		san_engine_progress(port);
		while (san_engine_event(port, &ev))
			;
	}
}

static inline void
progress(uint32_t n)
{
	while (n-- > 0)
		san_engine_progress(port);
}

static inline void
teardown(void)
{
	end_apps();
	alarm(0);
	assert_int_equal(san_view_counters_leaks(port), 0);
}

/* ---- what an application does ---- */

static inline void
ring(const struct app *a)
{
	san_doorbells_ring(a->doorbells, san_ulp_qp_index(&e->conf.ulp, a->qp));
}

static inline void
post(struct app *a, const struct san_ulp_wr *wr)
{
	a->q.wq->sqe[a->q.sq.tail & a->q.sq.mask] = *wr;
	san_spsc_push(&a->q.sq, &a->wq->sq_tail, 1);
	ring(a);
}

static inline void
post_recv(struct app *a, const struct san_ulp_recv *r)
{
	a->q.rqe[a->q.rq.tail & a->q.rq.mask] = *r;
	san_spsc_push(&a->q.rq, &a->wq->rq_tail, 1);
	ring(a);
}

static inline struct san_ulp_wc
next_wc(struct app *a)
{
	struct san_ulp_wc wc;

	while (san_wr_cq_poll(&a->cq, a->cq_mem, &wc, 1) == 0)
		san_engine_progress(port);
	return wc;
}

/* *len* bytes at *at* of *a*, with the address that the application uses. */
static inline struct rtsan_sge
part(const struct app *a, uint32_t at, uint32_t len)
{
	return (struct rtsan_sge){(void *)(uintptr_t)(name_of(a) + at), len, a->key};
}

static inline struct san_ulp_wr
good_push(void)
{
	return (struct san_ulp_wr){
		.op = RTSAN_WR_PUSH,
		.flags = RTSAN_WR_SIGNALED,
		.remote_addr = name_of(&apps[1]) + 100,
		.rkey = apps[1].key,
		.nb_sge = 2,
		.length = 3000,
		.sge = {part(&apps[0], 0, 1000), part(&apps[0], 2000, 2000)},
	};
}

/* For *max_conns* connections, and not yet for a device. */
static inline void
port_conf(uint32_t max_conns)
{
	san_engine_conf_default(&conf, max_conns);
	assert_int_equal(san_inet_addr_parse("10.0.0.1/24", &conf.core.inet.addrs[0]), 0);
	conf.core.inet.nb_addrs = 1;
	conf.core.tl.max_held = conf.core.tl.max_held_conn = 64;
	conf.nb_rxd = conf.nb_txd = 64;
	conf.nb_lcores = 1;
	conf.pool_size = san_engine_port_pool_min(&conf);
}

/* A new device. */
static inline void
add_device(const char *name, const char *args)
{
	assert_int_equal(rte_eal_hotplug_add("vdev", name, args), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(name, &conf.port_id), 0);
}

/* Each time with a new device. */
static inline void
open_port(void)
{
	struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 1}};
	const char *why;

	add_device("net_ring0", "");
	assert_int_equal(rte_eth_dev_mac_addr_add(conf.port_id, &mac, 0), 0);
	if (san_engine_open(&conf, &port, &why) != 0)
		fail_msg("%s", why);
	e = port->engines[0];
}

/* ... which is removed. */
static inline void
close_port(void)
{
	san_engine_close(port);
	rte_eal_hotplug_remove("vdev", "net_ring0");
}

static inline void
group_setup(void)
{
	test_eal_init();
	port_conf(256);
	open_port();
}

static inline void
group_teardown(void)
{
	san_engine_close(port);
}
