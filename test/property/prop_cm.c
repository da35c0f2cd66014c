/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Two hosts that connect, accept, reject and disconnect at random over a link that
 * loses, repeats and reorders (RT-1, RT-24). Then the link heals.
 *
 * Must hold: each attempt ends in exactly one final event, after at most one
 * ESTABLISHED; the accepting side is established only for an attempt that is (or
 * was) established, and once for each; what is still open is open on both sides,
 * under the same CIDs and tags; after disconnecting all, nothing is left.
 */

#include "prop.h"

#include "cm_net.h"

#define MS         SAN_NS_PER_MS
#define NB_STEPS   60
#define MAX_CONNS  8
#define MAX_IDS    512
#define MAX_ASKING 64

/** One end of a connection, from connect or accept on. */
struct end {
	int host;
	bool passive;
	uint16_t slot;
	uint32_t tag; /* ours: unique */
	uint32_t nb_est, nb_final;
	bool is_matched; /* connecting: an accepting end was established for it */
};

struct asking {
	int host;
	uint16_t slot;
	uint64_t at_ns;
};

static struct cm_net net;
static struct rte_mempool *pool;
static struct san_prng g;
static struct end ends[MAX_IDS];
static uint32_t nb_ends;
static struct asking asking[MAX_ASKING];
static uint32_t nb_asking;

/* Some packets turn up when nobody thinks of them any more. */
static void
link_hook(struct cm_net *n, int from, const struct san_wire_pkt *p, const struct san_wire_cm *msg,
	  struct cm_fate *fate)
{
	fate->copies = san_prng_below(&g, 8) == 0 ? 2 : 1;
	for (uint32_t i = 0; i < fate->copies; i++) {
		fate->delay_ns[i] = 1000;
		if (san_prng_below(&g, 32) == 0)
			fate->delay_ns[i] += san_prng_below(&g, 3000) * MS;
	}
}

static uint32_t
add_end(int host, bool passive)
{
	PROP_CHECK(nb_ends < MAX_IDS);
	ends[nb_ends] = (struct end){.host = host, .passive = passive};
	return nb_ends++;
}

static void
accept_one(int host, uint16_t slot)
{
	struct cm_host *h = &net.h[host];
	uint32_t id = nb_ends;

	if (san_cm_fsm_accept_peer(h->cm, slot, &h->param, id, net.now_ns) != 0)
		return;
	add_end(host, true);
	ends[id].slot = slot;
	ends[id].tag = h->pdl->conns[slot].tag;
}

static void
on_request(int host, const struct san_cm_event *ev)
{
	switch (san_prng_below(&g, 8)) {
	case 0:
		san_cm_fsm_reject(net.h[host].cm, ev->slot, NULL, 0, net.now_ns);
		break;
	case 1: /* never answered */
		break;
	case 2:
	case 3: /* later */
		if (nb_asking < MAX_ASKING)
			asking[nb_asking++] = (struct asking){
				host, ev->slot, net.now_ns + san_prng_below(&g, 1000) * MS};
		break;
	default:
		accept_one(host, ev->slot);
		break;
	}
}

/** The accepting end is established: for which attempt? */
static void
match(const struct end *e)
{
	const struct san_cm_agreed *a = san_cm_agreed(net.h[e->host].cm, e->slot);
	struct end *peer = ends;

	PROP_CHECK(a != NULL);
	while (peer < ends + nb_ends && peer->tag != a->pdl.dtag)
		peer++;
	PROP_CHECK(peer < ends + nb_ends && !peer->passive && peer->host != e->host);
	PROP_CHECK(peer->nb_est == 1 && !peer->is_matched);
	peer->is_matched = true;
}

static void
on_event(struct cm_net *n, int i, const struct san_cm_event *ev)
{
	struct end *e;

	if (ev->type == SAN_CM_EV_CONNECT_REQUEST) {
		on_request(i, ev);
		return;
	}
	PROP_CHECK(ev->cookie < nb_ends);
	e = &ends[ev->cookie];
	PROP_CHECK(e->host == i && e->slot == ev->slot && e->nb_final == 0);
	if (ev->type == SAN_CM_EV_ESTABLISHED) {
		PROP_CHECK(++e->nb_est == 1);
		if (e->passive)
			match(e);
		return;
	}
	e->nb_final++;
	PROP_CHECK(!e->passive || ev->type >= SAN_CM_EV_DISCONNECTED);
	PROP_CHECK(e->nb_est == 0 || ev->type >= SAN_CM_EV_DISCONNECTED);
}

static void
answer_late(bool all)
{
	uint32_t i = 0;

	while (i < nb_asking) {
		if (!all && net.now_ns < asking[i].at_ns) {
			i++;
			continue;
		}
		accept_one(asking[i].host, asking[i].slot);
		asking[i] = asking[--nb_asking];
	}
}

static void
connect_one(int host)
{
	struct cm_host *h = &net.h[host];
	uint32_t id = nb_ends;
	uint16_t slot;

	if (san_cm_fsm_connect(h->cm, &h->ip, &net.h[1 - host].ip, CM_NET_SERVICE, &h->param, id,
			       net.now_ns, &slot) != 0)
		return; /* no slot has rested long enough */
	add_end(host, false);
	ends[id].slot = slot;
	ends[id].tag = h->pdl->conns[slot].tag;
}

static void
disconnect_one(struct end *e)
{
	struct san_cm *cm = net.h[e->host].cm;

	if (e->nb_final != 0 ||
	    san_cm_fsm_disconnect(cm, e->slot, san_prng_below(&g, 2), net.now_ns) != 0)
		return;
	if (san_prng_below(&g, 2))
		san_cm_fsm_drained(cm, e->slot, net.now_ns);
}

static void
step(void)
{
	uint32_t what = san_prng_below(&g, 8);

	if (what < 4)
		connect_one((int)san_prng_below(&g, 2));
	else if (what < 6 && nb_ends != 0)
		disconnect_one(&ends[san_prng_below(&g, nb_ends)]);
	cm_net_run(&net, san_prng_below(&g, 100) * MS / 2);
	answer_late(false);
}

static uint32_t
check_open(void)
{
	const struct san_pdl_conn *c, *peer;
	uint32_t n = 0;

	for (uint32_t i = 0; i < nb_ends; i++) {
		const struct end *e = &ends[i];

		if (e->nb_final != 0)
			continue;
		n++;
		PROP_CHECK(e->nb_est == 1);
		PROP_CHECK(san_cm_state(net.h[e->host].cm, e->slot) == SAN_CM_ESTABLISHED);
		c = &net.h[e->host].pdl->conns[e->slot];
		PROP_CHECK(c->tag == e->tag);
		peer = san_pdl_conn_find(net.h[1 - e->host].pdl, c->dcid);
		PROP_CHECK(peer != NULL && peer->tag == c->dtag && peer->dtag == c->tag &&
			   peer->dcid == c->cid);
	}
	PROP_CHECK(n == net.h[0].pdl->nb_conns + net.h[1].pdl->nb_conns);
	return n;
}

static void
begin(uint64_t seed)
{
	struct sim_link_fault fault;

	san_prng_seed(&g, seed);
	nb_ends = 0;
	nb_asking = 0;
	memset(ends, 0, sizeof(ends));
	cm_net_init(&net, pool, seed, MAX_CONNS, san_prng_below(&g, 2));
	cm_net_listen(&net, 0);
	cm_net_listen(&net, 1);
	net.h[0].no_accept = true;
	net.h[1].no_accept = true;
	net.h[0].param.keepalive_ms = 300;
	net.h[1].param.keepalive_ms = 500;
	net.hook = link_hook;
	net.on_event = on_event;
	fault = (struct sim_link_fault){
		.loss_ppm = san_prng_below(&g, 4) == 0 ? 0 : san_prng_below(&g, SIM_PPM / 2),
		.dup_ppm = san_prng_below(&g, SIM_PPM / 2),
		.reorder_ppm = SIM_PPM,
		.reorder_ns = san_prng_below(&g, san_prng_below(&g, 2) ? 100000 : 20000000),
	};
	fault.dup_ns = fault.reorder_ns;
	cable_set_fault(&net.cable, &fault);
}

static void
run(uint64_t seed)
{
	static const struct sim_link_fault none;

	if (pool == NULL)
		pool = test_eal_pool("prop_cm", 1023, 2048);
	begin(seed);
	for (uint32_t i = 0; i < NB_STEPS; i++)
		step();
	/* the link heals */
	net.hook = NULL;
	cable_set_fault(&net.cable, &none);
	cm_net_run(&net, 15 * SAN_NS_PER_S);
	answer_late(true);
	cm_net_run(&net, 15 * SAN_NS_PER_S);
	check_open();
	for (uint32_t i = 0; i < nb_ends; i++)
		disconnect_one(&ends[i]);
	cm_net_run(&net, 30 * SAN_NS_PER_S);
	PROP_CHECK(check_open() == 0);
	for (uint32_t i = 0; i < nb_ends; i++)
		PROP_CHECK(ends[i].nb_final == 1);
	PROP_CHECK(net.h[0].pdl->nb_conns + net.h[1].pdl->nb_conns == 0);
	cm_net_fini(&net);
	PROP_CHECK(rte_mempool_in_use_count(pool) == 0);
}

PROP_MAIN("both established once, or both clean", run)
