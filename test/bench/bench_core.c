/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two cores in one process and one thread, back to back: what one operation costs each
 * side, without a second CPU, a kernel or a device. Made to be counted: `bench.py
 * --profile` runs it under callgrind, where client_turn() and server_turn() are the two
 * sides. Alone it prints nanoseconds, and the packets of both sides in any case.
 *
 * bench_core [send|push|pull|rpc|idle [BYTES [DEPTH [BATCH [COUNT [CONNECTIONS [PACK [ROUND]]]]]]]]
 *
 * rpc: each send is answered by one as long, and is done when the answer is there. idle: COUNT
 * rounds of a client that has nothing to do.
 * PACK is 0 or 1 (default): whether small requests share packets (RT-34).
 * ROUND: virtual nanoseconds that each side's round takes, its program included (500).
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ring.h>

#include "core.h"
#include "sim_conf.h"
#define TEST_EAL_MB "512"
#include "unit/test_eal.h"

#define RING_SIZE  1024
#define SERVICE    1
#define PKEY       0xffff
#define MTU        1500
#define REGION     (64u << 20)
#define POOL_SIZE  65535
#define POOL_CACHE 256
#define CAM_SIZE   65536
#define CQ_DEPTH   4096
#define BATCH_MAX  64
#define CONNS_MAX  16384
#define WAIT_S     30
#define CONNECTING 64 /* connections set up at a time */

enum host {
	CLIENT,
	SERVER
};

struct side {
	struct san_core *core;
	struct rte_ring *in, *out;
	struct san_ulp_cq *cq;
	uint32_t *qps; /* one per connection */
	uint8_t *region;
	uint32_t key;
	uint32_t nb_up;
	uint64_t posted, nb_sent, nb_received, nb_pkts;
	uint64_t tsc; /* spent in its turns */
};

static struct {
	uint8_t op;
	bool answers, idle;
	uint32_t size, depth, batch;
	uint64_t count;
	uint32_t nb_conns;
	bool pack;
	uint64_t done;
	uint32_t turn;   /* the connection that posts next */
	uint64_t now_ns; /* virtual: instructions and behaviour are the same in every run */
	uint64_t round_ns;
	struct rte_mempool *pool;
	struct san_prng prng;
	struct side client, server;
} bench = {
	.op = RTSAN_WR_PUSH,
	.size = 64,
	.depth = 256,
	.batch = 16,
	.count = 1000000,
	.nb_conns = 1,
	.pack = true,
	.round_ns = 500,
};

static void
die(const char *what)
{
	fprintf(stderr, "bench_core: %s\n", what);
	exit(1);
}

/* ---- construction ---- */

static void
make_core(struct side *s, enum host host)
{
	struct san_core_conf conf;
	char text[32];

	san_core_conf_default(&conf, bench.nb_conns + 16, MTU);
	san_sim_core_conf(&conf, host, false, &bench.prng);
	conf.pool = bench.pool;
	snprintf(text, sizeof(text), "cam%u", host);
	conf.tl.engine = host;
	conf.tl.cam = san_tl_reorder_create_table(text, CAM_SIZE, SOCKET_ID_ANY);
	if (conf.tl.cam == NULL)
		die("no memory");
	conf.cm.features = bench.pack ? SAN_CM_FEAT_PACK : 0;
	if (san_core_create(&conf, bench.now_ns, &s->core) != 0)
		die("core");
}

static void
make_queues(struct side *s)
{
	struct san_ulp *ulp = san_core_ulp(s->core);
	struct san_ulp_qp_conf conf = {
		.sq_depth = rte_align32pow2(bench.depth),
		.rq_depth = bench.op == RTSAN_WR_SEND ? 2 * rte_align32pow2(bench.depth) : 1,
	};

	if (san_ulp_cq_create(ulp, CQ_DEPTH, &s->cq) != 0)
		die("completion queue");
	conf.send_cq = conf.recv_cq = s->cq;
	s->qps = calloc(bench.nb_conns, sizeof(*s->qps));
	s->region = aligned_alloc(64, REGION);
	if (s->qps == NULL || s->region == NULL)
		die("no memory");
	memset(s->region, 1, REGION);
	for (uint32_t i = 0; i < bench.nb_conns; i++)
		if (san_ulp_qp_create(ulp, &conf, &s->qps[i]) != 0)
			die("queue pair");
	if (san_ulp_mr_add(ulp, s->region, REGION, 0, RTSAN_REMOTE_PUSH | RTSAN_REMOTE_PULL, PKEY,
			   &s->key) != 0)
		die("region");
}

static void
make_all(void)
{
	struct rte_ring *there, *back;

	test_eal_init();
	bench.now_ns = SAN_NS_PER_S;
	san_prng_seed(&bench.prng, 1);
	bench.pool = rte_pktmbuf_pool_create("packets", POOL_SIZE, POOL_CACHE, SAN_PKT_PRIV_SIZE,
					     RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	there = rte_ring_create("there", RING_SIZE, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	back = rte_ring_create("back", RING_SIZE, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (bench.pool == NULL || there == NULL || back == NULL)
		die("no memory");
	bench.client.out = bench.server.in = there;
	bench.server.out = bench.client.in = back;
	make_core(&bench.client, CLIENT);
	make_core(&bench.server, SERVER);
	make_queues(&bench.client);
	make_queues(&bench.server);
}

/* ---- the loop of a side ---- */

static void
progress(struct side *s)
{
	struct rte_mbuf *pkts[SAN_CORE_BURST];
	uint16_t n;

	bench.now_ns += bench.round_ns;
	n = (uint16_t)rte_ring_dequeue_burst(s->in, (void **)pkts, SAN_CORE_BURST, NULL);
	if (n != 0)
		san_core_rx_burst(s->core, pkts, n, bench.now_ns);
	san_core_tick(s->core, bench.now_ns);
	if (rte_ring_free_count(s->out) < SAN_CORE_BURST)
		return;
	n = san_core_tx_burst(s->core, pkts, SAN_CORE_BURST, bench.now_ns);
	s->nb_pkts += n;
	rte_ring_enqueue_burst(s->out, (void **)pkts, n, NULL);
}

/* ---- connecting ---- */

static struct san_cm_param
param_default(void)
{
	return (struct san_cm_param){
		.ordered = true,
		.pkey = PKEY,
		.mtu = san_wire_payload_max(MTU, false),
		.req_win = 256,
		.data_win = 512,
		.first_win = 512,
		.max_txn = 256,
		.msg_limit = 256,
		.rnr_ms = 10000,
		.keepalive_ms = 10000,
	};
}

static void
poll_events(struct side *s, uint32_t *next_qp)
{
	struct san_cm_param param = param_default();
	struct san_core_event ev;

	progress(s);
	while (san_core_conn_poll_event(s->core, &ev)) {
		if (ev.type == RTSAN_EV_CONNECT_REQUEST) {
			if (san_core_conn_accept(s->core, ev.request, s->qps[(*next_qp)++], &param,
						 bench.now_ns) != 0)
				die("accept");
		} else if (ev.type == RTSAN_EV_ESTABLISHED) {
			s->nb_up++;
		} else {
			die("connect");
		}
	}
}

static void
connect_all(void)
{
	struct side *client = &bench.client, *server = &bench.server;
	uint64_t until = bench.now_ns + WAIT_S * SAN_NS_PER_S;
	struct san_cm_param param = param_default();
	uint32_t started = 0, accepted = 0;
	struct san_ip peer;

	san_sim_core_ip(&peer, SERVER, false);
	if (san_cm_listen(san_core_cm(server->core), SERVICE, PKEY, 1024, 0) != 0)
		die("listen");
	while (client->nb_up < bench.nb_conns || server->nb_up < bench.nb_conns) {
		for (; started < bench.nb_conns && started < client->nb_up + CONNECTING; started++)
			if (san_core_conn_connect(client->core, client->qps[started], &peer,
						  SERVICE, &param, bench.now_ns) != 0)
				die("connect");
		poll_events(client, NULL);
		poll_events(server, &accepted);
		if (bench.now_ns > until)
			die("connecting takes too long");
	}
}

/* ---- traffic ---- */

static void
post_batch(struct side *s, uint32_t conn, uint32_t n)
{
	struct san_ulp_wr wrs[BATCH_MAX];
	uint64_t off;

	for (uint32_t i = 0; i < n; i++) {
		struct san_ulp_wr *wr = &wrs[i];

		off = s->posted++ % bench.depth * bench.size % (REGION - bench.size);
		wr->wr_id = off;
		wr->remote_addr = off;
		wr->rkey = bench.server.key;
		wr->op = bench.op;
		wr->flags = RTSAN_WR_SIGNALED;
		wr->nb_sge = 1;
		wr->length = bench.size;
		wr->sge[0] = (struct rtsan_sge){.addr = s->region + off, .length = bench.size};
	}
	if (san_core_post(s->core, s->qps[conn], wrs, n, bench.now_ns) != n)
		die("send queue");
}

static void
post_recvs(struct side *s, uint32_t conn, uint32_t n)
{
	struct san_ulp_recv r[BATCH_MAX];

	for (uint32_t i = 0; i < n; i++) {
		r[i].wr_id = conn;
		r[i].nb_sge = 1;
		r[i].sge[0] = (struct rtsan_sge){.addr = s->region, .length = bench.size};
	}
	if (san_core_post_recv(s->core, s->qps[conn], r, n, bench.now_ns) != n)
		die("receive queue");
}

/* The receives that completed are posted again; with *answer* each is answered. */
static void
poll(struct side *s, bool answer)
{
	struct san_ulp_wc wc[BATCH_MAX];
	uint32_t run, n;

	while ((n = san_ulp_cq_poll(s->cq, wc, BATCH_MAX)) != 0) {
		/* as many at once as came for one connection */
		for (uint32_t i = 0; i < n; i += run) {
			for (run = 1; i + run < n && wc[i + run].op == wc[i].op &&
			     wc[i + run].wr_id == wc[i].wr_id;
			     run++)
				;
			if (wc[i].status != SAN_ST_OK)
				die(san_ulp_status_name(wc[i].status));
			if (wc[i].op != RTSAN_WC_RECV) {
				s->nb_sent += run;
				continue;
			}
			s->nb_received += run;
			post_recvs(s, (uint32_t)wc[i].wr_id, run);
			if (answer)
				post_batch(s, (uint32_t)wc[i].wr_id, run);
		}
	}
}

static __rte_noinline void
client_turn(void)
{
	struct side *s = &bench.client;
	uint64_t begin = rte_rdtsc();

	while (s->posted < bench.count && s->posted - bench.done + bench.batch <= bench.depth) {
		post_batch(s, bench.turn, bench.batch);
		bench.turn = bench.turn + 1 == bench.nb_conns ? 0 : bench.turn + 1;
	}
	progress(s);
	poll(s, false);
	if (!bench.idle)
		bench.done = bench.answers ? s->nb_received : s->nb_sent;
	s->tsc += rte_rdtsc() - begin;
}

static __rte_noinline void
server_turn(void)
{
	struct side *s = &bench.server;
	uint64_t begin = rte_rdtsc();

	progress(s);
	poll(s, bench.answers);
	s->tsc += rte_rdtsc() - begin;
}

static void
print_result(uint64_t nb_pkts)
{
	struct side *client = &bench.client, *server = &bench.server;
	double ns_per_tick = 1e9 / (double)rte_get_tsc_hz();

	printf("{\"operations\": %lu, \"client_ns\": %.1f, \"server_ns\": %.1f, \"packets\": %lu, "
	       "\"acks\": %lu, \"express_tx\": %lu, \"express_rx\": %lu, \"resent\": %lu}\n",
	       (unsigned long)bench.done, (double)client->tsc * ns_per_tick / (double)bench.done,
	       (double)server->tsc * ns_per_tick / (double)bench.done, (unsigned long)nb_pkts,
	       (unsigned long)(san_core_pdl(client->core)->stats.nb_acks_tx +
			       san_core_pdl(server->core)->stats.nb_acks_tx),
	       (unsigned long)(san_core_tl(client->core)->stats.nb_express_tx +
			       san_core_tl(server->core)->stats.nb_express_tx),
	       (unsigned long)(san_ulp_stats(san_core_ulp(client->core))->nb_express_rx +
			       san_ulp_stats(san_core_ulp(server->core))->nb_express_rx),
	       (unsigned long)san_core_pdl(client->core)->stats.nb_rtx);
}

static void
run(void)
{
	uint64_t before = bench.client.nb_pkts + bench.server.nb_pkts;

	for (uint32_t i = 0; bench.op == RTSAN_WR_SEND && i < bench.nb_conns; i++) {
		for (uint32_t k = 0; k < rte_align32pow2(bench.depth); k++) {
			post_recvs(&bench.server, i, 1);
			if (bench.answers)
				post_recvs(&bench.client, i, 1);
		}
	}
	if (bench.idle)
		bench.client.posted = bench.count;
	while (bench.done < bench.count) {
		client_turn();
		if (bench.idle)
			bench.done++;
		else
			server_turn();
	}
	print_result(bench.client.nb_pkts + bench.server.nb_pkts - before);
}

static void
get_args(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint8_t op;
		bool answers, idle;
	} ops[] = {
		{"send", RTSAN_WR_SEND, false, false},
		{"push", RTSAN_WR_PUSH, false, false},
		{"pull", RTSAN_WR_PULL, false, false},
		{"rpc", RTSAN_WR_SEND, true, false},
		{"idle", RTSAN_WR_PUSH, false, true},
	};
	uint32_t *numbers[] = {&bench.size, &bench.depth, &bench.batch};

	bench.op = argc > 1 ? 0 : bench.op;
	for (unsigned int i = 0; argc > 1 && i < RTE_DIM(ops); i++) {
		if (strcmp(argv[1], ops[i].name) == 0) {
			bench.op = ops[i].op;
			bench.answers = ops[i].answers;
			bench.idle = ops[i].idle;
		}
	}
	for (unsigned int i = 0; i < RTE_DIM(numbers) && argc > 2 + (int)i; i++)
		*numbers[i] = (uint32_t)strtoul(argv[2 + i], NULL, 0);
	if (argc > 5)
		bench.count = strtoull(argv[5], NULL, 0);
	if (argc > 6)
		bench.nb_conns = (uint32_t)strtoul(argv[6], NULL, 0);
	if (argc > 7)
		bench.pack = strtoul(argv[7], NULL, 0) != 0;
	if (argc > 8)
		bench.round_ns = strtoull(argv[8], NULL, 0);
	if (bench.op == 0 || bench.size == 0 || bench.size > REGION / 2 || bench.batch == 0 ||
	    bench.batch > bench.depth || bench.batch > BATCH_MAX || bench.depth > CQ_DEPTH / 2 ||
	    bench.nb_conns == 0 || bench.nb_conns > CONNS_MAX || bench.round_ns == 0 ||
	    bench.count % bench.batch != 0)
		die("arguments: [send|push|pull|rpc|idle [BYTES [DEPTH [BATCH [COUNT [CONNECTIONS "
		    "[PACK [ROUND]]]]]]]]");
}

int
main(int argc, char **argv)
{
	get_args(argc, argv);
	make_all();
	connect_all();
	run();
	return 0; /* the process ends: nothing has to be undone */
}
