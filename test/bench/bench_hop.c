/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What crossing from an application to the daemon's lcore and back costs: a work request is
 * written into shared memory and the doorbell rung; the lcore copies it, checks it and completes
 * it, flushed, because its queue pair has no connection any more; the completion is polled. Beside
 * it what a cache line needs to cross between the same two cores and back.
 *
 *   bench_hop CPU CPU MILLISECONDS
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "engine.h"
#include "sample.h"
#include "shmq.h"

#define APP    1
#define DEPTH  512 /* of the queue */
#define BATCH  32  /* work requests of a doorbell */
#define WORKER 1   /* lcore */

static struct {
	struct san_engine_port *port;
	struct san_engine *e;
	struct san_wq *wq;
	struct san_cq *cq_mem;
	struct san_doorbells *doorbells;
	struct san_wq_prod q;
	struct san_spsc_cons cq;
	uint32_t qp;
	uint64_t ticks; /* that each measurement takes */
	struct sample line, hop;
	double mops;
} bench;

static void
die(const char *what)
{
	fprintf(stderr, "bench_hop: %s\n", what);
	exit(1);
}

static double
p50_us(struct sample *s)
{
	return (double)sample_median(s) * 1e6 / (double)rte_get_tsc_hz();
}

/* ---- a cache line, there and back ---- */

static struct {
	_Alignas(64) _Atomic uint64_t there;
	_Alignas(64) _Atomic uint64_t back;
} line;

static int
answer(void *arg)
{
	uint64_t n = 0, seen;

	do {
		while ((seen = atomic_load_explicit(&line.there, memory_order_acquire)) == n)
			;
		n = seen;
		atomic_store_explicit(&line.back, n, memory_order_release);
	} while (n != UINT64_MAX);
	return 0;
}

static void
measure_line(void)
{
	uint64_t end = rte_rdtsc() + bench.ticks, start, n = 0;

	rte_eal_remote_launch(answer, NULL, WORKER);
	do {
		start = rte_rdtsc();
		atomic_store_explicit(&line.there, ++n, memory_order_release);
		while (atomic_load_explicit(&line.back, memory_order_acquire) != n)
			;
	} while (sample_add(&bench.line, rte_rdtsc() - start) && rte_rdtsc() < end);
	atomic_store(&line.there, UINT64_MAX);
	rte_eal_wait_lcore(WORKER);
}

/* ---- the daemon's lcore, and an application ---- */

static void *
share(const char *name, size_t bytes)
{
	void *mem;
	int fd;

	if (san_shmq_mem_create(name, bytes, &mem, &fd) != 0)
		die("no shared memory");
	close(fd);
	return mem;
}

static int
make_app(struct san_engine *e, void *arg)
{
	struct san_engine_qp_conf conf = {.app = APP, .wq = bench.wq};
	struct san_ulp_qp_conf *qp = &conf.core.qp;
	struct san_ulp *ulp = san_core_ulp(san_engine_lcore_core(e));

	qp->sq_depth = DEPTH;
	qp->rq_depth = 2;
	if (san_engine_app_add(e, APP, 0, bench.doorbells, -1) != 0 ||
	    san_ulp_cq_create_at(ulp, DEPTH, bench.cq_mem, &qp->send_cq) != 0)
		return -1;
	qp->recv_cq = qp->send_cq;
	if (san_engine_lcore_qp_add(e, &conf, &bench.qp) != 0)
		return -1;
	san_ulp_qp_unbind(ulp, bench.qp);
	return 0;
}

static void
start(void)
{
	struct san_engine_conf conf;
	const char *why;

	san_engine_conf_default(&conf, 64);
	conf.own_lcore = true;
	conf.lcores[0] = WORKER;
	conf.idle = SAN_IDLE_POLL;
	conf.core.tl.max_held = conf.core.tl.max_held_conn = 64;
	conf.nb_rxd = conf.nb_txd = 64;
	conf.pool_size = san_engine_port_pool_min(&conf);
	if (san_inet_addr_parse("10.0.0.1/24", &conf.core.inet.addrs[0]) != 0 ||
	    rte_eth_dev_get_port_by_name("net_ring0", &conf.port_id) != 0)
		die("no port");
	conf.core.inet.nb_addrs = 1;
	if (san_engine_open(&conf, &bench.port, &why) != 0)
		die(why);
	bench.e = san_engine_at(bench.port, 0);
	bench.doorbells = share("bells", san_doorbells_bytes(conf.core.ulp.max_qps));
	bench.wq = share("wq", san_wr_wq_bytes(DEPTH, 2));
	bench.cq_mem = share("cq", san_wr_cq_bytes(DEPTH));
	san_wr_wq_prod_init(&bench.q, bench.wq, DEPTH, 2);
	san_spsc_cons_init(&bench.cq, DEPTH);
	if (san_engine_loop_call(bench.e, make_app, NULL) != 0)
		die("no queue pair");
}

static void
post(uint32_t n)
{
	struct san_wq_prod *q = &bench.q;
	struct san_ulp_wr *wr;

	/* what it has no use for is not written, as in librtsan: one cache line */
	for (uint32_t i = 0; i < n; i++) {
		wr = &q->wq->sqe[(q->sq.tail + i) & q->sq.mask];
		wr->wr_id = q->sq.tail + i;
		wr->op = RTSAN_WR_SEND;
		wr->flags = RTSAN_WR_SIGNALED | RTSAN_WR_INLINE;
		wr->nb_sge = 0;
		wr->inline_len = wr->length = 8;
		memcpy(wr->data, &wr->wr_id, 8);
	}
	san_spsc_push(&q->sq, &q->wq->sq_tail, n);
	san_doorbells_ring(bench.doorbells, SAN_QPN_INDEX(bench.qp));
}

static void
measure_hop(void)
{
	uint64_t end = rte_rdtsc() + bench.ticks, begin;
	struct san_ulp_wc wc;

	do {
		begin = rte_rdtsc();
		post(1);
		while (san_wr_cq_poll(&bench.cq, bench.cq_mem, &wc, 1) == 0)
			;
	} while (sample_add(&bench.hop, rte_rdtsc() - begin) && rte_rdtsc() < end);
}

static void
measure_rate(void)
{
	uint64_t begin = rte_rdtsc(), end = begin + bench.ticks, now, done = 0;
	struct san_ulp_wc wc[BATCH];
	uint32_t under_way = 0, n;

	do {
		while (under_way + BATCH <= DEPTH / 2) {
			post(BATCH);
			under_way += BATCH;
		}
		n = san_wr_cq_poll(&bench.cq, bench.cq_mem, wc, BATCH);
		under_way -= n;
		done += n;
		now = rte_rdtsc();
	} while (now < end);
	bench.mops = (double)done * (double)rte_get_tsc_hz() / (double)(now - begin) / 1e6;
}

int
main(int argc, char **argv)
{
	char lcores[64], *eal[] = {
				 argv[0],
				 lcores,
				 (char[]){"--no-huge"},
				 (char[]){"--no-pci"},
				 (char[]){"--no-shconf"},
				 (char[]){"--no-telemetry"},
				 (char[]){"-m"},
				 (char[]){"128"},
				 (char[]){"--log-level=3"},
				 (char[]){"--vdev=net_ring0"},
			 };

	if (argc != 4) {
		fprintf(stderr, "usage: bench_hop CPU CPU MILLISECONDS\n");
		return 2;
	}
	snprintf(lcores, sizeof(lcores), "--lcores=0@%s,%d@%s", argv[1], WORKER, argv[2]);
	if (rte_eal_init((int)RTE_DIM(eal), eal) < 0)
		die("no EAL");
	alarm(60); /* whatever happens, nothing stays behind */
	bench.ticks = rte_get_tsc_hz() / 1000 * strtoul(argv[3], NULL, 10);
	if (sample_init(&bench.line) != 0 || sample_init(&bench.hop) != 0)
		die("no memory");
	measure_line();
	start();
	measure_hop();
	measure_rate();
	printf("{\"line_us\": %.4f, \"p50_us\": %.4f, \"mops\": %.3f}\n", p50_us(&bench.line),
	       p50_us(&bench.hop), bench.mops);
	fflush(stdout);
	_exit(0); /* the lcore still runs */
}
