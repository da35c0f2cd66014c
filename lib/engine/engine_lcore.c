/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Create and end the engine of one lcore, and manage its queue pairs. Keys, tags, sequence numbers
 * and the key of the cookie are secrets from arc4random (RULE-17). A seed replaces it in
 * tests that must repeat.
 */

#include <bsd/stdlib.h>

#include <rte_hash.h>

#include "engine_priv.h"
#include "san_assert.h"

#define IMPAIR_HELD 4096
#define PORT_FIRST  49152 /* dynamic ports, used as source ports (RULE-13) */

/* ---- secrets ---- */

static uint32_t
engine_secret32(void *arg)
{
	struct san_engine *e = arg;

	return e->port->conf.secret_seed == 0 ? arc4random() :
						(uint32_t)(san_prng_u64(&e->secret) >> 32);
}

static void
draw_secrets(struct san_engine *e)
{
	struct san_core_conf *core = &e->conf;
	uint32_t i, word;

	san_prng_seed(&e->secret, e->port->conf.secret_seed + e->id);
	core->pdl.prng_seed = (uint64_t)engine_secret32(e) << 32 | engine_secret32(e);
	for (i = 0; i < sizeof(core->cm.secret); i += sizeof(word)) {
		word = engine_secret32(e);
		memcpy(&core->cm.secret[i], &word, sizeof(word));
	}
	/* used where one queue receives all packets, or the hash is unknown: any ports will do */
	for (i = 0; i < SAN_WIRE_CM_PORTS; i++)
		core->cm.ports[i] = (uint16_t)(PORT_FIRST +
					       engine_secret32(e) % (65536 - PORT_FIRST));
	core->cm.nb_ports = SAN_WIRE_CM_PORTS;
}

/* ---- create, destroy ---- */

/* Set what is specific to lcore *id* of *nb*, and give it its share of the limits of the host. */
static void
engine_share_limits(struct san_core_conf *core, uint32_t id, uint32_t nb)
{
	core->pdl.lcore_id = (uint8_t)id;
	core->pdl.nb_owners = SAN_ENGINE_APPS;
	core->ulp.first_qp = id * core->ulp.max_qps;
	core->max_socks = id == 0 ? core->max_socks : 0;
	core->inet.announce = true;
	core->pdl.budget_pkts = RTE_MAX(core->pdl.budget_pkts / nb, 1u);
	core->cm.rate_per_ms = RTE_MAX(core->cm.rate_per_ms / nb, 1u);
	core->ulp.guesses_per_hour = RTE_MAX(core->ulp.guesses_per_hour / nb, 2u);
	core->tl.nacks_per_ms = RTE_MAX(core->tl.nacks_per_ms / nb, 1u);
	/* a pull that exceeds the share waits until no other pull is in progress */
	core->ulp.pull_piece = RTE_MIN(core->ulp.pull_piece,
				       RTE_MAX(core->tl.budget_bytes / nb / 4 * 3, 1u));
}

static int
make_core(struct san_engine *e)
{
	struct san_core_conf *core = &e->conf;
	int rc;

	core->pdl.secret32 = core->ulp.secret32 = engine_secret32;
	core->pdl.secret_arg = core->ulp.secret_arg = e;
	core->pool = e->port->pool;
	core->pdl.link_mbps = san_engine_port_mbps(e->port);
	core->tl.lend = e->is_alone ? NULL : &e->port->image->lend;
	e->mac = e->port->mac;
	core->inet.mac = san_engine_mac(e->port);
	core->inet.quiet = e->id != 0 || e->port->is_shared;
	core->cm.path.src_mac = core->inet.mac;
	core->cm.path.dst_port = core->udp_port;
	core->cm.steer = e->port->is_steered && e->has_queue ? &e->port->steer : NULL;
	core->cm.queue = e->id;
	if (e->core != NULL) {
		rc = san_core_park_resume(e->core, core);
	} else {
		draw_secrets(e);
		engine_share_limits(core, e->id, e->port->conf.nb_lcores);
		rc = san_core_create(core, san_engine_clock_now(&e->clock), &e->core);
	}
	if (rc == 0 && san_core_socks(e->core) != NULL)
		san_sock_table_set_device(san_core_socks(e->core), e->port->info.if_index);
	e->awake = rc == 0;
	return rc;
}

static int
engine_build_core(struct san_engine *e, const char **why)
{
	size_t bytes = san_doorbells_bytes(san_engine_nb_doorbells(e));
	const struct san_engine_conf *conf = &e->port->conf;
	uint32_t max_held = RTE_MIN(conf->pool_size / 4, (uint32_t)IMPAIR_HELD);
	struct san_tl_conf *tl = &e->conf.tl;
	char name[RTE_MEMPOOL_NAMESIZE];
	int rc;

	*why = "no memory for queues";
	e->doorbells = san_mem_aligned(NULL, bytes);
	san_engine_app_add(e, 0, SAN_CORE_ALONE, e->doorbells, -1);
	snprintf(name, sizeof(name), "san_calls_%u_%u", e->port_id, e->id);
	e->calls = rte_ring_create(name, rte_align32pow2(ENGINE_CALLS + 1), SOCKET_ID_ANY,
				   RING_F_SC_DEQ);
	if (e->doorbells == NULL || e->calls == NULL)
		return -ENOMEM;
	rc = san_engine_idle_init(e, why);
	if (rc != 0)
		return rc;
	*why = "impairment: a value is out of range";
	rc = san_engine_impair_init(&e->impair_tx, max_held);
	if (rc == 0)
		rc = san_engine_impair_init(&e->impair_rx, max_held);
	if (rc == 0)
		rc = san_engine_impair_set(&e->impair_tx, &conf->impair_tx);
	if (rc == 0)
		rc = san_engine_impair_set(&e->impair_rx, &conf->impair_rx);
	if (rc != 0)
		return rc;
	*why = "no memory for the reorder engine's table";
	snprintf(name, sizeof(name), "san_cam_%u_%u", e->port_id, e->id);
	e->cam = san_tl_reorder_create_table(name, rte_align32pow2(tl->max_txns + tl->max_rxns),
					     SOCKET_ID_ANY);
	tl->cam = e->cam;
	tl->engine = e->id;
	if (e->cam == NULL)
		return -ENOMEM;
	*why = "a protocol value is out of range";
	rc = make_core(e);
	if (rc == -ENOMEM)
		*why = "no memory for the protocol's state";
	return rc;
}

/* Allocate what exists as long as the port, parked or not. */
static struct san_engine *
make_state(struct san_engine_port *p)
{
	uint32_t nb_qps = p->conf.core.ulp.max_qps;
	struct san_mem *mem = p->conf.core.mem;
	struct san_engine *e = san_mem_aligned(mem, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->conf = p->conf.core;
	e->clock = p->image->clock;
	e->qps = san_mem_calloc(mem, RTE_ALIGN_CEIL(nb_qps, 64u), /* see san_doorbells_take() */
				sizeof(*e->qps));
	e->again = san_mem_calloc(mem, nb_qps, sizeof(*e->again));
	san_spsc_init(&e->event_q, ENGINE_EVENTS);
	return e;
}

/* Clear the pointers into the process that parked it. */
static void
forget_process(struct san_engine *e)
{
	uint32_t i;

	for (i = 0; i < SAN_ENGINE_APPS; i++) {
		e->apps[i].doorbells = NULL;
		e->apps[i].wake_fd = -1;
	}
	e->nb_apps = 0;
	for (i = 0; i < e->conf.ulp.max_qps; i++)
		if (e->qps[i].fault != NULL)
			e->qps[i].fault = "something wrong, before the daemon was restarted";
	e->dozes = false;
	e->impair_tx = e->impair_rx = (struct san_engine_impair){0};
	e->doorbells = NULL;
	e->calls = NULL;
	e->cam = NULL;
	e->nb_backlog = e->nb_local = 0;
	e->rx_ns = e->backlog_ns = e->link_ns = e->speed_ns = 0;
}

int
san_engine_lcore_create(struct san_engine_port *p, uint32_t id, struct san_engine **out,
			const char **why)
{
	struct san_engine *e = p->image->engines[id];
	uint64_t now_ns;
	int rc;

	*why = "no memory";
	if (e != NULL)
		forget_process(e);
	else
		e = make_state(p);
	if (e == NULL)
		return -ENOMEM;
	e->id = (uint16_t)id;
	e->has_queue = id < p->conf.nb_queues;
	e->rx_burst = e->tx_burst = ENGINE_BURST;
	e->is_alone = p->conf.nb_lcores == 1;
	e->capturing = p->capture != NULL;
	e->port = p;
	e->port_id = p->id;
	e->epoll = e->wake_fd = -1;
	now_ns = san_engine_clock_now(&e->clock);
	e->busy = (struct san_engine_busy){.since_ns = now_ns, .round_ns = now_ns};
	rc = e->qps != NULL && e->again != NULL ? engine_build_core(e, why) : -ENOMEM;
	if (rc != 0 && p->conf.resumes)
		san_engine_lcore_rest(e);
	else if (rc != 0)
		san_engine_lcore_destroy(e);
	if (rc != 0)
		return rc;
	*out = p->image->engines[id] = e;
	return 0;
}

/* Free what belongs to this process alone. */
static void
leave_process(struct san_engine *e)
{
	san_engine_impair_fini(&e->impair_tx);
	san_engine_impair_fini(&e->impair_rx);
	rte_pktmbuf_free_bulk(e->backlog, e->nb_backlog);
	rte_pktmbuf_free_bulk(e->local, e->nb_local);
	rte_hash_free(e->cam);
	rte_ring_free(e->calls);
	if (e->epoll >= 0)
		close(e->epoll);
	if (e->wake_fd >= 0)
		close(e->wake_fd);
	free(e->doorbells);
}

void
san_engine_lcore_destroy(struct san_engine *e)
{
	struct san_mem *mem = e->conf.mem;

	san_core_destroy(e->core);
	leave_process(e);
	san_mem_end(mem, e->again);
	san_mem_end(mem, e->qps);
	san_mem_end(mem, e);
}

void
san_engine_lcore_rest(struct san_engine *e)
{
	if (e->awake)
		san_core_park(e->core, e->now_ns);
	e->awake = false;
	leave_process(e);
}

/* ---- queue pairs ---- */

/* An application may share receives of its own, which are not those of a stream. */
static bool
may_share(const struct san_engine *e, const struct san_engine_qp_conf *conf)
{
	uint32_t from = conf->core.qp.recv_from, at = san_ulp_qp_index(&e->conf.ulp, from);
	const struct san_engine_qp *q = at < e->conf.ulp.max_qps ? &e->qps[at] : NULL;

	return q != NULL && q->wq.wq != NULL && q->qpn == from && q->app == conf->app &&
		!q->is_stream && !conf->is_stream;
}

int
san_engine_lcore_qp_add(struct san_engine *e, const struct san_engine_qp_conf *conf, uint32_t *qp)
{
	struct san_core_stream_conf own = conf->core;
	struct san_engine_qp *q;
	int rc;

	if (own.qp.shares_recvs && !may_share(e, conf))
		return -EINVAL;
	own.qp.owner = conf->app;
	own.user = e->apps[conf->app].user;
	rc = conf->is_stream ? san_core_stream_create(e->core, &own, e->now_ns, qp) :
			       san_ulp_qp_create(san_core_ulp(e->core), &own.qp, qp);
	if (rc != 0)
		return rc;
	q = &e->qps[san_ulp_qp_index(&e->conf.ulp, *qp)];
	san_wr_wq_cons_init(&q->wq, conf->wq, own.qp.sq_depth, own.qp.rq_depth);
	q->qpn = *qp;
	q->app = conf->app;
	q->is_stream = conf->is_stream;
	q->lingers = conf->is_stream && conf->lingers;
	q->fault = NULL;
	q->end = SAN_QP_OPEN;
	return 0;
}

const char *
san_engine_lcore_qp_fault(const struct san_engine *e, uint32_t qp)
{
	return e->qps[san_ulp_qp_index(&e->conf.ulp, qp)].fault;
}

/* The traffic of a deleted queue pair still counts for its application. */
static void
keep_traffic(struct san_engine *e, const struct san_engine_qp *q)
{
	struct san_ulp_qp_view view;

	if (san_ulp_qp_view(san_core_ulp(e->core), q->qpn, &view))
		san_ulp_traffic_add(&e->apps[q->app].past, &view.traffic);
}

struct san_wq *
san_engine_lcore_qp_del(struct san_engine *e, uint32_t qp)
{
	struct san_engine_qp *q = &e->qps[san_ulp_qp_index(&e->conf.ulp, qp)];
	struct san_wq *wq = q->wq.wq;
	int rc;

	/* a pending doorbell finds none, or the next one in this place: a visit does no harm */
	q->wq.wq = NULL;
	if (q->lingers && q->fault == NULL && san_core_stream_orphan(e->core, qp, e->now_ns)) {
		keep_traffic(e, q);
		return wq;
	}
	san_core_conn_abort(e->core, qp, e->now_ns);
	keep_traffic(e, q);
	rc = q->is_stream ? san_core_stream_destroy(e->core, qp) :
			    san_ulp_qp_destroy(san_core_ulp(e->core), qp);
	SAN_VERIFY(rc == 0);
	return wq;
}

static bool
sge_names(const struct rtsan_sge *sge, uint8_t nb_sge, uint32_t key)
{
	uint8_t i;

	for (i = 0; i < nb_sge && i < RTSAN_SGE_MAX; i++)
		if (sge[i].lkey == key)
			return true;
	return false;
}

/* Entries that are still in the rings have not reached the ULP and are not checked yet. */
static bool
wq_names(const struct san_wq_cons *q, uint32_t key)
{
	uint32_t i, nb_sq = RTE_MIN(atomic_load(&q->wq->sq_tail) - q->sq.head, q->sq.mask + 1);
	uint32_t nb_rq = RTE_MIN(atomic_load(&q->wq->rq_tail) - q->rq.head, q->rq.mask + 1);

	for (i = 0; i < nb_sq; i++) {
		const struct san_ulp_wr *wr = &q->wq->sqe[(q->sq.head + i) & q->sq.mask];

		if (sge_names(wr->sge, wr->nb_sge, key))
			return true;
	}
	for (i = 0; i < nb_rq; i++) {
		const struct san_ulp_recv *r = &q->rqe[(q->rq.head + i) & q->rq.mask];

		if (sge_names(r->sge, r->nb_sge, key))
			return true;
	}
	return false;
}

/* Only the rings of the owner are searched: another application may write any key into its own. */
bool
san_engine_lcore_names_key(const struct san_engine *e, uint32_t key)
{
	uint16_t app = san_ulp_mr_owner(san_core_ulp(e->core), key);
	const struct san_engine_qp *q;
	uint32_t i;

	for (i = 0; i < e->conf.ulp.max_qps; i++) {
		q = &e->qps[i];
		if (q->wq.wq != NULL && q->app == app && wq_names(&q->wq, key))
			return true;
	}
	return san_ulp_qp_names_key(san_core_ulp(e->core), key) ||
		san_core_stream_names_key(e->core, key);
}

uint32_t
san_engine_lcore_nb_qps(const struct san_engine *e)
{
	uint32_t i, n = 0;

	for (i = 0; i < e->conf.ulp.max_qps; i++)
		n += e->qps[i].wq.wq != NULL;
	return n;
}

struct san_core *
san_engine_lcore_core(struct san_engine *e)
{
	return e->core;
}

uint64_t
san_engine_lcore_now_ns(struct san_engine *e)
{
	return e->now_ns;
}
