/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include <rte_ether.h>
#include <rte_hash.h>
#include <rte_ip.h>

#include "san_assert.h"
#include "sim_conf.h"
#define TEST_EAL_MB "512"
#include "unit/test_eal.h"
#include "world.h"

#define MAC_LAST    5
#define FRAME_BYTES (sizeof(struct rte_ether_hdr) + 24) /* on the wire, besides the MTU */
#define PORT_HELD   1                                   /* of an arrival: it waits in a queue */
#define RX_BURST    32
#define ROUND_NS    SAN_NS_PER_US

void
world_conf_default(struct world_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	conf->nb_nodes = 2;
	conf->seed = 1;
	conf->max_conns = 16;
	conf->mtu = 1500;
	conf->nb_mbufs = 8192;
	conf->sq_depth = 256;
	conf->rq_depth = 256;
	conf->link.delay_ns = 2000;
	conf->link.reorder_ns = 20000;
}

void
world_ip(const struct world *w, uint32_t node, struct san_ip *ip)
{
	san_sim_core_ip(ip, node, w->conf.ipv6);
}

void
world_node_conf(struct world *w, uint32_t node, struct san_core_conf *conf)
{
	san_core_conf_default(conf, w->conf.max_conns, w->conf.mtu);
	san_sim_core_conf(conf, node, w->conf.ipv6, &w->net.prng);
	conf->pool = w->pool;
	conf->tl.cam = w->cam;
	conf->tl.engine = w->nb_engines++;
	if (w->conf.tune != NULL)
		w->conf.tune(conf, node, w->conf.tune_arg);
}

void
world_node_start(struct world *w, uint32_t node)
{
	struct san_core_conf conf;
	int rc;

	world_node_conf(w, node, &conf);
	rc = san_core_create(&conf, w->now_ns, &w->node[node].core);
	if (rc != 0)
		fprintf(stderr, "san_core_create: %s\n", strerror(-rc));
	SAN_VERIFY(rc == 0);
}

void
world_node_kill(struct world *w, uint32_t node)
{
	san_core_destroy(w->node[node].core);
	w->node[node].core = NULL;
}

struct world *
world_create(const struct world_conf *conf)
{
	struct world *w = calloc(1, sizeof(*w));
	static unsigned int nb_worlds;
	char name[32];

	SAN_VERIFY(w != NULL && conf->nb_nodes <= WORLD_NODES);
	test_eal_init();
	w->conf = *conf;
	w->now_ns = SAN_NS_PER_S; /* not zero, because a zero often means "never" by accident */
	w->check = true;
	san_sim_link_net_init(&w->net, conf->seed);
	snprintf(name, sizeof(name), "world%u", nb_worlds);
	w->net.pool = w->pool = san_sim_pkt_pool_create(name, conf->nb_mbufs, 0, conf->mtu);
	SAN_VERIFY(w->pool != NULL);
	snprintf(name, sizeof(name), "cam%u", nb_worlds++);
	w->cam = san_tl_reorder_create_table(name, 16384, SOCKET_ID_ANY);
	SAN_VERIFY(w->cam != NULL);
	for (uint32_t i = 0; i < conf->nb_nodes; i++) {
		w->node[i].link = conf->link;
		san_sim_link_init(&w->node[i].in, i, &w->node[i].in_conf);
		world_param_default(&w->node[i].param);
		world_node_start(w, i);
	}
	return w;
}

/* ---- the network ---- */

/* Set the path to a node from the test's settings. */
static void
set_link(struct world *w, struct world_node *n)
{
	const struct world_link *l = &n->link;

	n->in_conf = (struct sim_link_conf){
		.rate_mbps = l->mbps, .delay_ns = l->delay_ns, .mtu = l->mtu};
	n->in.buffer_bytes = UINT32_MAX;
	if (l->queue_pkts != 0)
		n->in.buffer_bytes = l->queue_pkts * (w->conf.mtu + FRAME_BYTES);
	n->in.fault = (struct sim_link_fault){
		.loss_ppm = l->drop_ppm,
		.dup_ppm = l->dup_ppm,
		.reorder_ppm = l->reorder_ppm,
		.corrupt_ppm = l->corrupt_ppm,
		.nb_down = l->down,
		.reorder_ns = l->reorder_ns,
	};
}

static void
send_copies(struct world *w, uint32_t from, uint32_t to, struct rte_mbuf *m)
{
	int copies = w->filter != NULL ? w->filter(w, from, to, m, w->filter_arg) : 1;
	struct world_node *n = &w->node[to];

	set_link(w, n);
	for (; copies > 0; copies--) {
		struct rte_mbuf *copy = rte_pktmbuf_copy(m, w->pool, 0, UINT32_MAX);

		if (copy == NULL)
			break;
		san_sim_link_send(&w->net, &n->in, copy, w->now_ns);
	}
	n->nb_lost = n->in.stats.nb_lost + n->in.stats.nb_full;
}

static void
transmit(struct world *w, uint32_t from, struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	uint32_t to = eth->dst_addr.addr_bytes[MAC_LAST];

	if (rte_is_multicast_ether_addr(&eth->dst_addr)) {
		for (to = 0; to < w->conf.nb_nodes; to++)
			if (to != from)
				send_copies(w, from, to, m);
	} else if (to < w->conf.nb_nodes) {
		send_copies(w, from, to, m);
	}
	rte_pktmbuf_free(m);
}

/* ---- one step ---- */

static struct world_qp *
find_qp(struct world *w, uint32_t node, uint32_t qp)
{
	/* the newest one, because a restarted node reuses the numbers */
	for (uint32_t i = w->nb_qps; i-- > 0;)
		if (w->qp[i].node == node && w->qp[i].qp == qp)
			return &w->qp[i];
	return NULL;
}

static void
take_events(struct world *w, uint32_t node)
{
	struct world_node *n = &w->node[node];
	struct san_core_event ev;
	struct world_qp *q;

	while (san_core_conn_poll_event(n->core, &ev)) {
		if (ev.type == RTSAN_EV_CONNECT_REQUEST) {
			n->has_request = true;
			n->request = ev;
			if (n->accept) {
				uint32_t i = world_qp_create(w, node);

				/* another request of that slot would have another tag */
				SAN_VERIFY(san_core_conn_accept(n->core, ev.request ^ 1ULL << 40,
								w->qp[i].qp, &n->param,
								w->now_ns) == -ENOENT);
				SAN_VERIFY(san_core_conn_accept(n->core, ev.request, w->qp[i].qp,
								&n->param, w->now_ns) == 0);
			}
			continue;
		}
		q = find_qp(w, node, ev.qp);
		if (q == NULL)
			continue;
		q->reason = ev.reason;
		q->established |= ev.type == RTSAN_EV_ESTABLISHED;
		q->disconnected |= ev.type == RTSAN_EV_DISCONNECTED;
		q->rejected |= ev.type == RTSAN_EV_REJECTED;
		q->unreachable |= ev.type == RTSAN_EV_UNREACHABLE;
	}
}

static void
run_node(struct world *w, uint32_t node)
{
	struct world_node *n = &w->node[node];
	struct rte_mbuf *pkts[SAN_CORE_BURST];
	uint16_t k;

	if (n->core == NULL || w->now_ns < n->paused_until_ns)
		return;
	san_core_tick(n->core, w->now_ns);
	while ((k = san_core_tx_burst(n->core, pkts, SAN_CORE_BURST, w->now_ns)) != 0)
		for (uint16_t i = 0; i < k; i++)
			transmit(w, node, pkts[i]);
	take_events(w, node);
	if (w->check)
		san_core_check(n->core);
}

static uint64_t
node_deadline(const struct world *w, const struct world_node *n)
{
	uint64_t at;

	if (n->core == NULL)
		return SAN_TIME_NEVER;
	at = san_core_deadline_ns(n->core);
	if (at < n->paused_until_ns)
		at = n->paused_until_ns;
	/* a node that cannot send although it wants to is called again a little later */
	return at > w->now_ns ? at : w->now_ns + 1000;
}

/*
 * Whether the packet came during a pause, or behind such packets. Like a port's queue, they are
 * taken in bursts.
 */
static bool
is_held(struct world *w, struct world_node *n, struct sim_event *ev)
{
	bool in_pause = ev->at_ns < n->paused_until_ns;

	if (!in_pause && (ev->port == PORT_HELD || ev->at_ns >= n->rx_next_ns))
		return false;
	if (n->rx_next_ns < n->paused_until_ns) {
		n->rx_next_ns = n->paused_until_ns;
		n->gap_ns = n->paused_until_ns - ev->at_ns;
	}
	ev->port = PORT_HELD;
	ev->at_ns = n->rx_next_ns;
	n->rx_next_ns += ++n->nb_held % RX_BURST == 0 ? ROUND_NS : 0;
	san_sim_event_push(&w->net.events, ev);
	return true;
}

static void
deliver(struct world *w, struct sim_event *ev)
{
	struct world_node *n = &w->node[ev->obj];
	struct rte_mbuf *m = ev->arg;

	if (n->core != NULL && is_held(w, n, ev))
		return;
	if (n->core == NULL) {
		rte_pktmbuf_free(m);
		return;
	}
	w->hash = san_sim_pkt_hash(w->hash, ev->at_ns, ev->obj, m);
	n->nb_rx++;
	san_pdl_rtx_rx_gap(san_core_pdl(n->core), n->gap_ns, w->now_ns);
	n->gap_ns = 0;
	san_core_rx_burst(n->core, &m, 1, w->now_ns);
	if (w->check)
		san_core_check(n->core);
}

void
world_step(struct world *w)
{
	uint64_t next = SAN_TIME_NEVER;
	struct sim_event ev;

	for (uint32_t i = 0; i < w->conf.nb_nodes; i++)
		run_node(w, i);
	for (uint32_t i = 0; i < w->conf.nb_nodes; i++)
		next = san_time_min(next, node_deadline(w, &w->node[i]));
	next = san_time_min(next, san_sim_event_next_ns(&w->net.events));
	if (next == SAN_TIME_NEVER)
		next = w->now_ns + SAN_NS_PER_MS;
	w->now_ns = next > w->now_ns ? next : w->now_ns;
	while (san_sim_event_next_ns(&w->net.events) <= w->now_ns &&
	       san_sim_event_pop(&w->net.events, &ev))
		deliver(w, &ev);
	for (uint32_t i = 0; i < w->conf.nb_nodes; i++)
		run_node(w, i);
}

void
world_run_for(struct world *w, uint64_t ns)
{
	uint64_t end = w->now_ns + ns;

	while (w->now_ns < end)
		world_step(w);
}

bool
world_run_until(struct world *w, bool (*done)(struct world *w, void *arg), void *arg,
		uint64_t limit_ns)
{
	uint64_t end = w->now_ns + limit_ns;

	while (!done(w, arg)) {
		if (w->now_ns >= end)
			return false;
		world_step(w);
	}
	return true;
}

/* ---- connections ---- */

void
world_param_default(struct san_cm_param *p)
{
	memset(p, 0, sizeof(*p));
	p->ordered = true;
	p->pkey = 0xffff;
	p->req_win = 64;
	p->data_win = 512;
	p->first_win = 512;
	p->max_txn = 128;
	p->msg_limit = 128;
	p->rnr_ms = 1000;
	p->keepalive_ms = 1000;
}

uint32_t
world_qp_create(struct world *w, uint32_t node)
{
	struct san_ulp *ulp = san_core_ulp(w->node[node].core);
	uint32_t i = w->nb_qps++;
	struct world_qp *q = &w->qp[i];
	struct san_ulp_qp_conf conf;

	SAN_VERIFY(i < WORLD_QPS);
	memset(q, 0, sizeof(*q));
	q->node = node;
	SAN_VERIFY(san_ulp_cq_create(ulp, w->conf.sq_depth * 2, &q->send_cq) == 0);
	SAN_VERIFY(san_ulp_cq_create(ulp, w->conf.rq_depth * 2, &q->recv_cq) == 0);
	memset(&conf, 0, sizeof(conf));
	conf.send_cq = q->send_cq;
	conf.recv_cq = q->recv_cq;
	conf.sq_depth = w->conf.sq_depth;
	conf.rq_depth = w->conf.rq_depth;
	if (w->conf.stream != NULL) {
		const struct san_core_stream_conf stream = {
			.qp = conf, .stream = *w->conf.stream, .user = SAN_CORE_ALONE};

		SAN_VERIFY(san_core_stream_create(w->node[node].core, &stream, w->now_ns,
						  &q->qp) == 0);
	} else {
		SAN_VERIFY(san_ulp_qp_create(ulp, &conf, &q->qp) == 0);
	}
	return i;
}

struct both {
	uint32_t a, b;
};

static bool
both_established(struct world *w, void *arg)
{
	struct both *q = arg;

	return w->qp[q->a].established && w->nb_qps > q->b && w->qp[q->b].established;
}

static bool
both_disconnected(struct world *w, void *arg)
{
	struct both *q = arg;

	return w->qp[q->a].disconnected && w->qp[q->b].disconnected;
}

void
world_connect(struct world *w, uint32_t a, uint32_t b, const struct san_cm_param *pa,
	      const struct san_cm_param *pb, uint32_t *qa, uint32_t *qb)
{
	struct both both;
	struct san_ip ip;
	int rc = san_cm_listen(san_core_cm(w->node[b].core), 7, pb->pkey, 16, 0);

	SAN_VERIFY(rc == 0 || rc == -EADDRINUSE);
	w->node[b].accept = true;
	w->node[b].param = *pb;
	both.a = world_qp_create(w, a);
	both.b = w->nb_qps;
	world_ip(w, b, &ip);
	rc = san_core_conn_connect(w->node[a].core, w->qp[both.a].qp, &ip, 7, pa, w->now_ns);
	SAN_VERIFY(rc == 0);
	SAN_VERIFY(world_run_until(w, both_established, &both, 20 * SAN_NS_PER_S));
	*qa = both.a;
	*qb = both.b;
}

void
world_disconnect(struct world *w, uint32_t qa, uint32_t qb)
{
	struct both both = {qa, qb};

	SAN_VERIFY(san_core_conn_disconnect(w->node[w->qp[qa].node].core, w->qp[qa].qp, false,
					    w->now_ns) == 0);
	SAN_VERIFY(world_run_until(w, both_disconnected, &both, 60 * SAN_NS_PER_S));
}

void
world_qp_destroy(struct world *w, uint32_t q)
{
	struct world_qp *p = &w->qp[q];
	struct san_ulp *ulp;

	if (w->node[p->node].core == NULL || p->send_cq == NULL)
		return;
	ulp = san_core_ulp(w->node[p->node].core);
	/* an orphan ends by itself */
	if (san_core_stream(w->node[p->node].core, p->qp) != NULL)
		SAN_VERIFY(san_core_stream_destroy(w->node[p->node].core, p->qp) == 0);
	else
		SAN_VERIFY(w->conf.stream != NULL || san_ulp_qp_destroy(ulp, p->qp) == 0);
	SAN_VERIFY(san_ulp_cq_destroy(ulp, p->send_cq) == 0);
	SAN_VERIFY(san_ulp_cq_destroy(ulp, p->recv_cq) == 0);
	p->send_cq = NULL;
}

void
world_destroy(struct world *w)
{
	/* time-wait ends, and packets in flight arrive */
	world_run_for(w, 10 * SAN_NS_PER_S);
	for (uint32_t i = 0; i < w->nb_qps; i++)
		world_qp_destroy(w, i);
	for (uint32_t i = 0; i < w->conf.nb_nodes; i++) {
		if (w->node[i].core == NULL)
			continue;
		SAN_VERIFY(san_core_leaks(w->node[i].core) == 0);
		san_core_destroy(w->node[i].core);
	}
	san_sim_link_net_fini(&w->net);
	SAN_VERIFY(rte_hash_count(w->cam) == 0);
	SAN_VERIFY(rte_mempool_avail_count(w->pool) == w->conf.nb_mbufs);
	rte_hash_free(w->cam);
	rte_mempool_free(w->pool);
	free(w);
}

/* ---- work ---- */

void
world_wr(struct san_ulp_wr *wr, uint8_t op, void *buf, uint32_t len, uint64_t raddr,
	 uint32_t rkey, uint64_t wr_id, uint8_t flags)
{
	memset(wr, 0, sizeof(*wr));
	wr->wr_id = wr_id;
	wr->op = (uint8_t)op;
	wr->flags = flags | RTSAN_WR_SIGNALED;
	wr->length = len;
	wr->nb_sge = len != 0;
	wr->sge[0].addr = buf;
	wr->sge[0].length = len;
	wr->remote_addr = raddr;
	wr->rkey = rkey;
}

bool
world_try_post(struct world *w, uint32_t q, const struct san_ulp_wr *wr)
{
	return san_core_post(w->node[w->qp[q].node].core, w->qp[q].qp, wr, 1, w->now_ns) == 1;
}

void
world_post(struct world *w, uint32_t q, const struct san_ulp_wr *wr)
{
	uint64_t end = w->now_ns + 60 * SAN_NS_PER_S;

	while (!world_try_post(w, q, wr)) {
		SAN_VERIFY(w->now_ns < end);
		world_step(w);
	}
}

void
world_post_recv(struct world *w, uint32_t q, void *buf, uint32_t len, uint64_t wr_id)
{
	struct san_ulp_recv r = {.wr_id = wr_id, .nb_sge = len != 0};

	r.sge[0].addr = buf;
	r.sge[0].length = len;
	SAN_VERIFY(san_core_post_recv(w->node[w->qp[q].node].core, w->qp[q].qp, &r, 1,
				      w->now_ns) == 1);
}

bool
world_wait(struct world *w, uint32_t q, bool recv, struct san_ulp_wc *wc, uint64_t limit_ns)
{
	uint64_t end = w->now_ns + limit_ns;

	while (san_ulp_cq_poll(recv ? w->qp[q].recv_cq : w->qp[q].send_cq, wc, 1) == 0) {
		if (w->now_ns >= end)
			return false;
		world_step(w);
	}
	w->qp[q].nb_done++;
	return true;
}

uint32_t
world_mr(struct world *w, uint32_t node, void *addr, uint64_t len, uint8_t rights)
{
	uint32_t key;

	SAN_VERIFY(san_ulp_mr_add(san_core_ulp(w->node[node].core), addr, len,
				  (uint64_t)(uintptr_t)addr, rights, 0xffff, &key) == 0);
	return key;
}

void
world_mr_del(struct world *w, uint32_t node, uint32_t key)
{
	SAN_VERIFY(san_ulp_mr_del(san_core_ulp(w->node[node].core), key) == 0);
}

void
world_pattern(uint8_t *buf, uint64_t len, uint64_t seed)
{
	for (uint64_t i = 0; i < len; i++)
		buf[i] = (uint8_t)((i + seed) * 0x9e3779b97f4a7c15ULL >> 56);
}

bool
world_pattern_ok(const uint8_t *buf, uint64_t len, uint64_t seed)
{
	for (uint64_t i = 0; i < len; i++)
		if (buf[i] != (uint8_t)((i + seed) * 0x9e3779b97f4a7c15ULL >> 56))
			return false;
	return true;
}
