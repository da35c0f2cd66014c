/* SPDX-License-Identifier: BSD-3-Clause */

/* The stream of a carried socket in a core: the application reads after the end. (UDP-7) */

#include "core_priv.h"
#include "pair.h"
#include "sock_priv.h"

#define RING  (64u << 10)
#define LEN   (70u << 10) /* more than fits into the reader's ring */
#define PIECE 1000u

static void
tune(struct san_core_conf *conf, uint32_t node, void *arg)
{
	conf->max_socks = 4;
}

/* Add a socket of node 1 with the rings *shm*, and its stream. */
static uint32_t
add_sock(struct world *w, struct san_sock_shm *shm, const struct san_stream_conf *stream,
	 uint32_t *id)
{
	struct san_core *core = w->node[1].core;
	struct san_core_stream_conf conf = {
		.qp = {.sq_depth = 16, .rq_depth = 4},
		.stream = *stream,
		.is_sock = true,
		.user = SAN_CORE_ALONE,
	};
	uint32_t qp;

	assert_int_equal(san_sock_add(core->socks, shm, RING, RING, -1, id), 0);
	conf.sock = *id;
	assert_int_equal(san_core_stream_create(core, &conf, w->now_ns, &qp), 0);
	san_sock_stream(core->socks, *id, qp);
	return qp;
}

static uint32_t
connect_sock(struct world *w, uint32_t sock_qp)
{
	struct san_cm_param param;
	struct san_ip ip;
	uint32_t q;

	world_param_default(&param);
	assert_int_equal(san_cm_listen(san_core_cm(w->node[1].core), 7, param.pkey, 4, 0), 0);
	q = world_qp_create(w, 0);
	world_ip(w, 1, &ip);
	assert_int_equal(
		san_core_conn_connect(w->node[0].core, w->qp[q].qp, &ip, 7, &param, w->now_ns), 0);
	for (uint32_t i = 0; i < 200000 && !w->node[1].has_request; i++)
		world_step(w);
	assert_int_equal(san_core_conn_accept(w->node[1].core, w->node[1].request.request, sock_qp,
					      &param, w->now_ns),
			 0);
	world_run_for(w, 10 * SAN_NS_PER_MS);
	assert_true(w->qp[q].established);
	return q;
}

static void
write_and_end(struct world *w, uint32_t q, uint8_t *buf)
{
	struct san_ulp_wr wr;
	uint32_t n;

	for (uint32_t at = 0; at < LEN; at += n) {
		n = RTE_MIN(LEN - at, PIECE);
		world_wr(&wr, RTSAN_WR_SEND, buf + at, n, 0, 0, 1, 0);
		world_post(w, q, &wr);
		world_run_for(w, 20 * SAN_NS_PER_US);
	}
	world_wr(&wr, SAN_WR_SHUTDOWN, NULL, 0, 0, 0, 1, 0);
	world_post(w, q, &wr);
	world_run_for(w, 200 * SAN_NS_PER_MS);
	san_core_conn_disconnect(w->node[0].core, w->qp[q].qp, false, w->now_ns);
	world_run_for(w, 500 * SAN_NS_PER_MS);
	assert_true(w->qp[q].disconnected);
}

/* All data arrives, then the end. What the application writes after it is sent at most once. */
PAIR_CASE(sim_sock__read_after_the_end)
{
	struct san_sock_shm *shm = aligned_alloc(4096, san_sock_shm_stream_bytes(RING, RING));
	uint8_t *buf = calloc(1, LEN);
	struct san_stream_conf stream;
	uint32_t id, qp, q, n, got = 0;
	struct san_core *core;
	struct world *w;

	memset(shm, 0, san_sock_shm_stream_bytes(RING, RING));
	san_stream_conf_default(&stream);
	pair.conf.stream = &stream;
	pair.conf.tune = tune;
	w = world_create(&pair.conf);
	core = w->node[1].core;
	qp = add_sock(w, shm, &stream, &id);
	q = connect_sock(w, qp);
	san_sock_stream_up(core->socks, id, w->now_ns);
	write_and_end(w, q, buf);
	atomic_store(&shm->tx_tail, PIECE);
	san_sock_doorbell(core->socks, id);
	world_run_for(w, SAN_NS_PER_MS);
	assert_true(san_sock_stats(core->socks, id)->nb_tx_bytes <= PIECE);
	for (uint32_t i = 0; i < 200; i++) {
		n = RTE_MIN(atomic_load(&shm->rx_tail) - atomic_load(&shm->rx_head), PIECE);
		atomic_fetch_add(&shm->rx_head, n);
		got += n;
		if (atomic_load(&shm->rx_waits) != 0)
			san_sock_doorbell(core->socks, id);
		world_run_for(w, SAN_NS_PER_MS);
	}
	assert_int_equal(got, LEN);
	assert_int_equal(atomic_load(&shm->fin), 1);
	assert_int_equal(san_core_stream_destroy(core, qp), 0);
	san_sock_del(core->socks, id);
	world_destroy(w);
	free(shm);
	free(buf);
}
