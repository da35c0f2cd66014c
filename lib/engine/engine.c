/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Making and ending an engine, and what it does for its queue pairs. Secrets come
 * from arc4random: keys, tags, sequence numbers, the key of the cookie (design,
 * rule 17); a seed in their place is for tests that must repeat.
 */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/stdlib.h>

#include <rte_hash.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "engine_priv.h"
#include "san_assert.h"
#include "san_log.h"

#define FAREWELL_LOOPS 64 /* rounds in which the last messages to peers go out */
#define FAREWELL_NS    (20 * SAN_NS_PER_MS)
#define IMPAIR_HELD    4096
#define PORT_FIRST     49152 /* dynamic ports: our source ports (design, rule 13) */
#define DESC_DEFAULT   1024
#define POOL_DEFAULT   16384
#define SLEEP_MAX_US   50

/* ---- secrets ---- */

static uint32_t
secret32(void *arg)
{
	struct san_engine *e = arg;

	return e->conf.secret_seed == 0 ? arc4random() : (uint32_t)(san_prng_u64(&e->secret) >> 32);
}

static void
set_secrets(struct san_engine *e)
{
	struct san_core_conf *core = &e->conf.core;
	uint32_t i, word;

	san_prng_seed(&e->secret, e->conf.secret_seed);
	core->pdl.secret32 = secret32;
	core->pdl.secret_arg = e;
	core->ulp.secret32 = secret32;
	core->ulp.secret_arg = e;
	core->pdl.prng_seed = (uint64_t)secret32(e) << 32 | secret32(e);
	for (i = 0; i < sizeof(core->cm.secret); i += sizeof(word)) {
		word = secret32(e);
		memcpy(&core->cm.secret[i], &word, sizeof(word));
	}
	/* one queue takes every packet, so any port steers right */
	for (i = 0; i < SAN_WIRE_CM_PORTS; i++)
		core->cm.ports[i] = (uint16_t)(PORT_FIRST + secret32(e) % (65536 - PORT_FIRST));
	core->cm.nb_ports = SAN_WIRE_CM_PORTS;
}

/* ---- create, destroy ---- */

void
san_engine_conf_default(struct san_engine_conf *conf, uint32_t max_conns)
{
	memset(conf, 0, sizeof(*conf));
	san_core_conf_default(&conf->core, max_conns, 0);
	conf->nb_rxd = DESC_DEFAULT;
	conf->nb_txd = DESC_DEFAULT;
	conf->pool_size = POOL_DEFAULT;
	conf->sleep_max_us = SLEEP_MAX_US;
}

static int
make_cam(struct san_engine *e)
{
	const struct san_tl_conf *tl = &e->conf.core.tl;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "san_cam_%u", e->port_id);
	e->cam = san_cam_table_create(name, rte_align32pow2(tl->max_txns + tl->max_rxns),
				      SOCKET_ID_ANY);
	e->conf.core.tl.cam = e->cam;
	return e->cam != NULL ? 0 : -ENOMEM;
}

static struct rte_ring *
make_ring(const struct san_engine *e, const char *what, uint32_t entries, unsigned int flags)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "san_%s_%u", what, e->port_id);
	return rte_ring_create(name, rte_align32pow2(entries + 1), SOCKET_ID_ANY, flags);
}

static int
make_queues(struct san_engine *e)
{
	uint32_t nb_qps = e->conf.core.ulp.max_qps;

	e->qps = calloc(nb_qps, sizeof(*e->qps));
	e->again = calloc(nb_qps, sizeof(*e->again));
	e->bells = make_ring(e, "bells", nb_qps, RING_F_SC_DEQ);
	e->calls = make_ring(e, "calls", ENGINE_CALLS, RING_F_SC_DEQ);
	san_spsc_init(&e->event_q, ENGINE_EVENTS);
	if (e->qps == NULL || e->again == NULL || e->bells == NULL || e->calls == NULL)
		return -ENOMEM;
	return 0;
}

static int
make_core(struct san_engine *e)
{
	struct san_core_conf *core = &e->conf.core;

	set_secrets(e);
	core->pool = e->pool;
	core->pdl.link_mbps = san_engine_port_mbps(e);
	core->inet.mac = e->port.mac;
	core->cm.path.src_mac = e->port.mac;
	core->cm.path.dst_port = core->udp_port;
	return san_core_create(core, san_engine_clock_now(&e->clock), &e->core);
}

static int
make_impair(struct san_engine *e)
{
	uint32_t max_held = RTE_MIN(e->conf.pool_size / 4, (uint32_t)IMPAIR_HELD);
	int rc = san_engine_impair_init(&e->impair_tx, max_held);

	if (rc == 0)
		rc = san_engine_impair_init(&e->impair_rx, max_held);
	if (rc == 0)
		rc = san_engine_impair_set(&e->impair_tx, &e->conf.impair_tx);
	if (rc == 0)
		rc = san_engine_impair_set(&e->impair_rx, &e->conf.impair_rx);
	return rc;
}

static int
build(struct san_engine *e, const char **why)
{
	int rc;

	san_engine_clock_init(&e->clock);
	e->idle = san_engine_idle_choose(e->conf.idle);
	rc = san_engine_port_open(e, why);
	if (rc != 0)
		return rc;
	*why = "no memory for queues";
	rc = make_queues(e);
	if (rc != 0)
		return rc;
	*why = "impairment: a value is out of range";
	rc = make_impair(e);
	if (rc != 0)
		return rc;
	*why = "no memory for the reorder engine's table";
	rc = make_cam(e);
	if (rc != 0)
		return rc;
	*why = "a protocol value is out of range";
	rc = make_core(e);
	if (rc == -ENOMEM)
		*why = "no memory for the protocol's state";
	return rc;
}

static int
launch(struct san_engine *e, const char **why)
{
	int rc;

	if (!e->conf.own_lcore)
		return 0;
	*why = "no such worker lcore, or it is busy";
	if (!rte_lcore_is_enabled(e->conf.lcore) || e->conf.lcore == rte_get_main_lcore())
		return -EINVAL;
	e->launched = true;
	rc = rte_eal_remote_launch(san_engine_loop_main, e, e->conf.lcore);
	if (rc != 0)
		e->launched = false;
	return rc;
}

int
san_engine_create(const struct san_engine_conf *conf, struct san_engine **out, const char **why)
{
	struct san_engine *e;
	int rc;

	*why = "pool is smaller than what the queues and the reorder engine may hold";
	if (conf->pool_size < san_engine_pool_min(conf))
		return -EINVAL;
	*why = "no memory";
	e = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(sizeof(*e), RTE_CACHE_LINE_SIZE));
	if (e == NULL)
		return -ENOMEM;
	memset(e, 0, sizeof(*e));
	e->conf = *conf;
	e->port_id = conf->port_id;
	rc = build(e, why);
	if (rc == 0)
		rc = launch(e, why);
	if (rc != 0) {
		san_engine_destroy(e);
		return rc;
	}
	san_engine_telemetry_add(e);
	*out = e;
	return 0;
}

/* A few more rounds, so that what must still be said to peers is said. */
static void
say_farewell(struct san_engine *e)
{
	uint64_t until_ns;
	uint32_t i;

	for (i = 0; i < e->conf.core.ulp.max_qps; i++)
		if (e->qps[i].wq != NULL)
			san_engine_qp_del(e, e->qps[i].qpn);
	/* rounds in which the port may not be touched don't count (engine_gate.h) */
	until_ns = san_engine_clock_now(&e->clock) + FAREWELL_NS;
	for (i = 0; i < FAREWELL_LOOPS && e->now_ns < until_ns && !san_engine_is_gone(e);) {
		san_engine_loop_once(e);
		if (e->may_burst)
			i++;
		else
			sched_yield();
	}
}

static void
stop_lcore(struct san_engine *e)
{
	san_engine_telemetry_del(e);
	if (!e->launched)
		return;
	atomic_store(&e->stop, true);
	rte_eal_wait_lcore(e->conf.lcore);
	e->launched = false;
}

void
san_engine_halt(struct san_engine *e)
{
	stop_lcore(e);
	/* another thread may still poll */
	atomic_store(&e->gone, true);
	san_engine_capture(e, NULL);
	san_engine_port_shut(e);
}

void
san_engine_destroy(struct san_engine *e)
{
	if (e == NULL)
		return;
	stop_lcore(e);
	if (e->core != NULL)
		say_farewell(e);
	san_engine_capture(e, NULL);
	san_core_destroy(e->core);
	san_engine_impair_fini(&e->impair_tx);
	san_engine_impair_fini(&e->impair_rx);
	rte_pktmbuf_free_bulk(e->backlog, e->nb_backlog);
	san_engine_port_close(e);
	rte_hash_free(e->cam);
	rte_ring_free(e->calls);
	rte_ring_free(e->bells);
	free(e->again);
	free(e->qps);
	free(e);
}

/* ---- queue pairs ---- */

int
san_engine_qp_add(struct san_engine *e, struct san_wq *wq, const struct san_ulp_qp_conf *conf,
		  uint32_t *qp)
{
	int rc = san_ulp_qp_create(san_core_ulp(e->core), conf, qp);

	struct san_engine_qp *q;

	if (rc != 0)
		return rc;
	q = &e->qps[SAN_QPN_INDEX(*qp)];
	q->wq = wq;
	q->qpn = *qp;
	return 0;
}

void
san_engine_qp_del(struct san_engine *e, uint32_t qp)
{
	int rc;

	san_engine_loop_forget(e, qp);
	san_core_abort(e->core, qp, e->now_ns);
	rc = san_ulp_qp_destroy(san_core_ulp(e->core), qp);
	SAN_VERIFY(rc == 0);
}

static bool
sge_names(const struct san_ulp_sge *sge, uint8_t nb_sge, uint32_t lkey)
{
	uint8_t i;

	for (i = 0; i < nb_sge; i++)
		if (sge[i].lkey == lkey)
			return true;
	return false;
}

/* What still lies in the rings has not reached ulp. */
static bool
wq_names(struct san_wq *wq, uint32_t lkey)
{
	uint32_t head, tail;

	head = atomic_load(&wq->sq.head);
	tail = atomic_load(&wq->sq.tail);
	for (; head != tail; head++) {
		const struct san_ulp_wr *wr = &wq->sqe[head & wq->sq.mask];

		if (sge_names(wr->sge, wr->nb_sge, lkey))
			return true;
	}
	head = atomic_load(&wq->rq.head);
	tail = atomic_load(&wq->rq.tail);
	for (; head != tail; head++) {
		const struct san_ulp_recv *r = &wq->rqe[head & wq->rq.mask];

		if (sge_names(r->sge, r->nb_sge, lkey))
			return true;
	}
	return false;
}

bool
san_engine_names_lkey(const struct san_engine *e, uint32_t lkey)
{
	uint32_t i;

	for (i = 0; i < e->conf.core.ulp.max_qps; i++)
		if (e->qps[i].wq != NULL && wq_names(e->qps[i].wq, lkey))
			return true;
	return san_ulp_names_lkey(san_core_ulp(e->core), lkey);
}

/* ---- small things ---- */

struct san_core *
san_engine_core(struct san_engine *e)
{
	return e->core;
}

uint64_t
san_engine_now_ns(struct san_engine *e)
{
	return e->now_ns;
}

const struct san_engine_conf *
san_engine_conf_of(const struct san_engine *e)
{
	return &e->conf;
}

bool
san_engine_is_gone(const struct san_engine *e)
{
	return atomic_load_explicit(&e->gone, memory_order_relaxed);
}

struct impair_call {
	bool tx;
	const struct san_engine_impair_conf *conf;
};

static int
do_impair(struct san_engine *e, void *arg)
{
	const struct impair_call *call = arg;

	return san_engine_impair_set(call->tx ? &e->impair_tx : &e->impair_rx, call->conf);
}

int
san_engine_impair(struct san_engine *e, bool tx, const struct san_engine_impair_conf *conf)
{
	struct impair_call call = {.tx = tx, .conf = conf};

	return san_engine_call(e, do_impair, &call);
}
