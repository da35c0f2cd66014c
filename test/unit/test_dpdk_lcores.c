/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The provider with two lcores on a loopback port, so that both ends of every connection are here,
 * on the same lcore or not. (SYS-1, SYS-2)
 */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

#include <rte_common.h>
#include <rte_ethdev.h>

#include "dpdk_priv.h"
#include "rtsan_priv.h"

#define OWN_IP "10.0.0.1"
#define CONF \
	"ip=10.0.0.1/24 port=net_ring0 lcores=1,2 idle=yield conns=50 held=64 rxd=64 txd=64"
#define WATCHDOG_S 60 /* real time, generous */
#define LEN        20000

static struct rtsan_ctx *ctx;
static struct rtsan_caps caps;
static struct rtsan_cq *cq[3];
static char eal[10][32];

static void
fill_eal(void)
{
	static const char *const words[RTE_DIM(eal)] = {
		"test",
		"",
		"--no-huge",
		"--no-pci",
		"--no-shconf",
		"--no-telemetry",
		"-m",
		"128",
		"--log-level=4",
		"--vdev=net_ring0",
	};
	unsigned int i, cpu[2] = {0};
	cpu_set_t cpus;

	for (i = 0; i < RTE_DIM(eal); i++)
		strcpy(eal[i], words[i]);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	while (!CPU_ISSET(cpu[0], &cpus))
		cpu[0]++;
	for (cpu[1] = cpu[0] + 1; cpu[1] < CPU_SETSIZE && !CPU_ISSET(cpu[1], &cpus); cpu[1]++)
		;
	if (cpu[1] == CPU_SETSIZE)
		cpu[1] = cpu[0];
	snprintf(eal[1], sizeof(eal[1]), "--lcores=0@%u,1@%u,2@%u", cpu[0], cpu[1], cpu[0]);
}

/* Once, because the device cannot be recreated after it was removed (DPDK 22.11). */
static void
group_setup(void)
{
	struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 1}};
	char *argv[RTE_DIM(eal)];
	uint16_t port;

	fill_eal();
	for (uint32_t i = 0; i < RTE_DIM(eal); i++)
		argv[i] = eal[i];
	/* it has no address; the first one that is added becomes its own */
	assert_int_equal(san_dpdk_eal_start((int)RTE_DIM(eal), argv, rtsan_provider_host()), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_ring0", &port), 0);
	assert_int_equal(rte_eth_dev_mac_addr_add(port, &mac, 0), 0);
	if (rtsan_dpdk_open((int)RTE_DIM(eal), argv, CONF, &ctx) != 0)
		fail_msg("%s", rtsan_error());
	assert_int_equal(rtsan_query(ctx, &caps, sizeof(caps)), 0);
}

static void
group_teardown(void)
{
	rtsan_close(ctx);
}

static void
setup(void)
{
	alarm(WATCHDOG_S);
	for (uint32_t i = 0; i < RTE_DIM(cq); i++)
		assert_int_equal(rtsan_cq_create(ctx, 64, &cq[i]), 0);
}

static void
teardown(void)
{
	alarm(0);
	for (uint32_t i = 0; i < RTE_DIM(cq); i++)
		if (cq[i] != NULL)
			assert_int_equal(rtsan_cq_destroy(cq[i]), 0);
	assert_int_equal(rtsan_dpdk_leaks(ctx), 0);
}

static struct rtsan_qp *
make(struct rtsan_cq *send_cq, struct rtsan_cq *recv_cq)
{
	struct rtsan_qp_attr attr = {.send_cq = send_cq, .recv_cq = recv_cq, .context = send_cq};
	struct rtsan_qp *qp = NULL;

	if (rtsan_qp_create(ctx, &attr, &qp) != 0)
		return NULL;
	return qp;
}

static uint32_t
lcore_of(const struct rtsan_qp *qp)
{
	const struct dpdk_ctx *c = rtsan_provider_priv(ctx, &rtsan_provider_dpdk);

	return SAN_QPN_INDEX(qp->qpn) >> c->qp_shift;
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown, .first = group_setup, .last = group_teardown);

/* A queue gets the lcore of its first queue pair. */
UNIT_CASE(qp_create__where_its_queues_are)
{
	struct rtsan_qp *a, *b, *c;

	assert_int_equal(caps.nb_lcores, 2);
	assert_int_equal(caps.max_qps, 2 * 64);
	a = make(cq[0], cq[0]);
	b = make(cq[1], cq[2]);
	assert_non_null(a);
	assert_non_null(b);
	assert_int_not_equal(lcore_of(a), lcore_of(b));
	c = make(cq[1], cq[1]);
	assert_int_equal(lcore_of(c), lcore_of(b));
	rtsan_qp_destroy(c);
	assert_null(make(cq[0], cq[1]));
	assert_non_null(strstr(rtsan_error(), "different lcores"));
	rtsan_qp_destroy(b);
	/* free again: it can move to the other lcore */
	c = make(cq[0], cq[2]);
	assert_int_equal(lcore_of(c), lcore_of(a));
	assert_int_equal(rtsan_cq_destroy(cq[2]), -EBUSY);
	rtsan_qp_destroy(c);
	assert_int_equal(rtsan_cq_destroy(cq[2]), 0);
	cq[2] = NULL;
	rtsan_qp_destroy(a);
}

UNIT_CASE(qp_create__evenly)
{
	struct rtsan_qp *qp[8];
	struct rtsan_cq *own[8];
	uint32_t sum = 0;

	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(rtsan_cq_create(ctx, 8, &own[i]), 0);
		qp[i] = make(own[i], own[i]);
		sum += lcore_of(qp[i]);
	}
	assert_int_equal(sum, 4);
	for (uint32_t i = 0; i < 8; i++) {
		rtsan_qp_destroy(qp[i]);
		assert_int_equal(rtsan_cq_destroy(own[i]), 0);
	}
}

static struct rtsan_event
next_event(enum rtsan_event_type type)
{
	struct rtsan_event ev;

	while (rtsan_event_poll(ctx, &ev) == 0)
		;
	if (ev.type != type)
		fail_msg("event %d, not %d", ev.type, type);
	return ev;
}

static struct rtsan_wc
next_wc(struct rtsan_cq *from)
{
	struct rtsan_wc wc;

	while (rtsan_cq_poll(from, &wc, 1) == 0)
		;
	assert_int_equal(wc.status, RTSAN_WC_SUCCESS);
	return wc;
}

/* Push from *a* to the memory of the other end; all of it arrives. */
static void
push(struct rtsan_qp *a, struct rtsan_cq *done, struct rtsan_mr *from, struct rtsan_mr *to,
     int byte)
{
	struct rtsan_sge sge = {rtsan_mr_addr(from), LEN, rtsan_mr_lkey(from)};
	struct rtsan_send_wr wr = {
		.opcode = RTSAN_WR_PUSH,
		.flags = RTSAN_WR_SIGNALED | RTSAN_WR_SOLICITED,
		.sge = &sge,
		.nb_sge = 1,
		.remote_addr = (uintptr_t)rtsan_mr_addr(to),
		.rkey = rtsan_mr_rkey(to),
	};

	memset(rtsan_mr_addr(from), byte, LEN);
	assert_int_equal(rtsan_post_send(a, &wr, 1), 1);
	next_wc(done);
	assert_memory_equal(rtsan_mr_addr(from), rtsan_mr_addr(to), LEN);
}

/*
 * From either lcore to either, wherever the request arrived: a region has one key on all lcores,
 * and deregistration removes it on all.
 */
UNIT_CASE(connect__any_lcore_to_any)
{
	struct rtsan_listener *listener;
	struct rtsan_mr *from, *to;
	struct rtsan_qp *qp[2], *held[2];
	struct rtsan_event ev;

	assert_int_equal(rtsan_listen(ctx, 7, 0, 4, &listener), 0);
	/* these keep the queues on their lcores */
	held[0] = make(cq[0], cq[0]);
	held[1] = make(cq[1], cq[1]);
	for (uint32_t i = 0; i < 12; i++) {
		assert_int_equal(rtsan_mr_alloc(ctx, LEN, 0, &from), 0);
		assert_int_equal(rtsan_mr_alloc(ctx, LEN, RTSAN_REMOTE_PUSH, &to), 0);
		qp[0] = make(cq[i & 1], cq[i & 1]);
		qp[1] = make(cq[i >> 1 & 1], cq[i >> 1 & 1]);
		assert_int_equal(rtsan_connect(qp[0], OWN_IP, 7, NULL), 0);
		ev = next_event(RTSAN_EV_CONNECT_REQUEST);
		assert_ptr_equal(ev.listener, listener);
		assert_int_equal(rtsan_accept(ctx, ev.request, qp[1], NULL), 0);
		/* only once, wherever it was accepted */
		assert_int_equal(rtsan_accept(ctx, ev.request, held[0], NULL), -ENOENT);
		assert_int_equal(rtsan_accept(ctx, ev.request, held[1], NULL), -ENOENT);
		assert_int_equal(rtsan_reject(ctx, ev.request, NULL, 0), -ENOENT);
		next_event(RTSAN_EV_ESTABLISHED);
		next_event(RTSAN_EV_ESTABLISHED);
		push(qp[0], cq[i & 1], from, to, (int)i + 1);
		push(qp[1], cq[i >> 1 & 1], from, to, (int)i + 101);
		assert_int_equal(rtsan_disconnect(qp[i & 1]), 0);
		next_event(RTSAN_EV_DISCONNECTED);
		next_event(RTSAN_EV_DISCONNECTED);
		rtsan_qp_destroy(qp[0]);
		rtsan_qp_destroy(qp[1]);
		assert_int_equal(rtsan_mr_dereg(from), 0);
		assert_int_equal(rtsan_mr_dereg(to), 0);
	}
	rtsan_qp_destroy(held[0]);
	rtsan_qp_destroy(held[1]);
	rtsan_listener_destroy(listener);
}

/* A failed accept keeps the request for a better one. */
UNIT_CASE(accept__again_after_an_error)
{
	const struct rtsan_conn_param bad = {.window = 3, .max_txn = 9999};
	struct rtsan_listener *listener;
	struct rtsan_qp *qp, *held[2];
	struct rtsan_event ev;

	assert_int_equal(rtsan_listen(ctx, 7, 0, 4, &listener), 0);
	assert_int_equal(rtsan_listen(ctx, 7, 0, 4, &listener), -EADDRINUSE);
	held[0] = make(cq[0], cq[0]);
	held[1] = make(cq[1], cq[1]);
	qp = make(cq[0], cq[0]);
	assert_int_equal(rtsan_connect(qp, OWN_IP, 7, NULL), 0);
	ev = next_event(RTSAN_EV_CONNECT_REQUEST);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(rtsan_accept(ctx, ev.request, held[i], &bad), -EINVAL);
	assert_int_equal(rtsan_accept(ctx, ev.request, qp, NULL), -EISCONN);
	assert_int_equal(rtsan_accept(ctx, ev.request, held[1], NULL), 0);
	next_event(RTSAN_EV_ESTABLISHED);
	next_event(RTSAN_EV_ESTABLISHED);
	rtsan_qp_destroy(qp);
	next_event(RTSAN_EV_DISCONNECTED);
	rtsan_qp_destroy(held[0]);
	rtsan_qp_destroy(held[1]);
	rtsan_listener_destroy(listener);
}
