/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Draws a scenario from a seed. Most values are ordinary, so that the load makes progress. Each run
 * is difficult in only a few ways, because in a run that is difficult in all ways the worst one
 * hides the others. (ARCH-8)
 */

#include "sim_world.h"

#define US SAN_NS_PER_US
#define MS SAN_NS_PER_MS

#define REFUSALS_MAX 65536 /* at 10 to 40 us each, including the checkers */
#define LONG_RUN_NS  (4 * SAN_NS_PER_S)
#define LINKS_MAX    4 /* between two hosts */

static bool
one_in(struct san_prng *g, uint32_t n)
{
	return san_prng_below(g, n) == 0;
}

/* A value between *lo* and *hi*, log-uniform. */
static uint64_t
draw_spread(struct san_prng *g, uint64_t lo, uint64_t hi)
{
	uint32_t octaves = 0;
	uint64_t from;

	while (lo << (octaves + 1) <= hi)
		octaves++;
	from = lo << san_prng_below(g, octaves + 1);
	return RTE_MIN(hi, from + san_prng_u64(g) % from);
}

static uint32_t
draw_power_of_2(struct san_prng *g, uint32_t lo, uint32_t hi)
{
	return 1u << (lo + san_prng_below(g, hi - lo + 1));
}

static void
draw_network(struct san_prng *g, struct sim_conf *c)
{
	static const uint8_t types[] = {
		SIM_TOPO_PAIR, SIM_TOPO_PAIR, SIM_TOPO_PAIR, SIM_TOPO_STAR, SIM_TOPO_STAR,
		SIM_TOPO_DUMBBELL, SIM_TOPO_LEAF_SPINE, SIM_TOPO_LEAF_SPINE};
	static const uint32_t rates[] = {100, 1000, 10000, 25000, 100000};

	c->topo.type = types[san_prng_below(g, RTE_DIM(types))];
	c->topo.hosts = c->topo.type == SIM_TOPO_PAIR ? 2 : 2 + san_prng_below(g, 9);
	c->topo.leaves = 1 + san_prng_below(g, RTE_MIN(3u, c->topo.hosts));
	c->topo.spines = 1 + san_prng_below(g, 4);
	c->edge.rate_mbps = rates[san_prng_below(g, RTE_DIM(rates))];
	c->edge.delay_ns = draw_spread(g, 100, 50 * US);
	c->edge.buffer_bytes = (uint32_t)draw_spread(g, 16 << 10, 4 << 20);
	c->edge.mark_bytes = one_in(g, 2) ? c->edge.buffer_bytes / 4 : 0;
	c->core = c->edge;
	if (one_in(g, 3))
		c->core.rate_mbps = RTE_MAX(100u, c->edge.rate_mbps / (1 + san_prng_below(g, 4)));
}

static void
draw_host(struct san_prng *g, struct sim_host_conf *h)
{
	static const uint16_t mtus[] = {1500, 1500, 4096, 9000, 1280, 1024};
	struct san_core_conf *core = &h->core;
	struct san_cm_param *conn = &h->conn;

	h->mtu = mtus[san_prng_below(g, RTE_DIM(mtus))];
	h->ipv6 = h->mtu >= 1280 && one_in(g, 4);
	core->pdl.cc = (uint8_t)(one_in(g, 2) ? SAN_CC_SWIFT : san_prng_below(g, SAN_CC_MAX));
	core->tl.policy = (uint8_t)san_prng_below(g, SAN_GRANT_MAX);
	h->poll_ns = one_in(g, 2) ? 0 : draw_spread(g, 100, 20 * US);
	h->clock_ppm_range = one_in(g, 3) ? 1 + san_prng_below(g, 200) : 0;
	h->rx_ring = draw_power_of_2(g, 5, 10);
	conn->req_win = (uint16_t)(one_in(g, 2) ? 64 : draw_power_of_2(g, 1, 8));
	conn->data_win = (uint16_t)(one_in(g, 2) ? 512 : draw_power_of_2(g, 1, 10));
	conn->first_win = (uint16_t)(one_in(g, 2) ? 512 : 2 + san_prng_below(g, 1023));
	conn->max_txn = (uint16_t)(one_in(g, 2) ? 128 : 1 + san_prng_below(g, 256));
	conn->msg_limit = (uint16_t)(one_in(g, 2) ? 128 : 1 + san_prng_below(g, 256));
	h->nic_bytes = (uint32_t)draw_spread(g, 16 << 10, 256 << 10);
	conn->keepalive_ms = (uint16_t)(100 + san_prng_below(g, 2000));
	h->wrap = one_in(g, 5);
	if (one_in(g, 4))
		core->pdl.ooo_distance = (uint8_t)(1 + san_prng_below(g, 64));
	if (one_in(g, 4))
		core->pdl.ack_every = (uint16_t)(1 + san_prng_below(g, 64));
	if (one_in(g, 8))
		core->cm.features &= ~SAN_CM_FEAT_PACK;
}

/* Set one or two pools close to their minimum. */
static void
draw_tiny(struct san_prng *g, struct sim_host_conf *h)
{
	struct san_pdl_conf *pdl = &h->core.pdl;
	struct san_tl_conf *tl = &h->core.tl;
	uint32_t n = 1 + san_prng_below(g, 2);

	for (; n > 0; n--) {
		switch (san_prng_below(g, 10)) {
		case 0:
			pdl->budget_pkts = 1 + san_prng_below(g, 32);
			break;
		case 1:
			tl->budget_bytes = (uint32_t)draw_spread(g, 2048, 256 << 10);
			tl->grant_bytes = (uint32_t)draw_spread(g, 1024, tl->budget_bytes);
			break;
		case 2:
			tl->expired_bytes = (uint32_t)draw_spread(g, 2048, 256 << 10);
			break;
		case 3:
			tl->max_txns = 1 + san_prng_below(g, 16);
			break;
		case 4:
			tl->max_rxns = 1 + san_prng_below(g, 16);
			break;
		case 5:
			tl->max_held = 4 + san_prng_below(g, 64);
			tl->max_held_conn = 1 + san_prng_below(g, tl->max_held);
			break;
		case 6:
			h->cam = 8 + san_prng_below(g, 256);
			break;
		case 7:
			h->mbufs = 256 + san_prng_below(g, 1024);
			tl->max_held = RTE_MIN(64u, h->mbufs / 8);
			tl->max_held_conn = tl->max_held / 2;
			break;
		case 8:
			pdl->max_wide = 1 + san_prng_below(g, 4);
			break;
		default:
			h->core.ulp.pull_piece = (uint32_t)draw_spread(g, 1024, 64 << 10);
			break;
		}
	}
}

/*
 * True if a run would take too long. It takes about the time of its bytes, plus that of refused
 * requests: a target with few records refuses them until it has room.
 */
static bool
is_too_much(const struct sim_conf *c, uint64_t ops)
{
	const struct sim_load_conf *l = &c->load;
	uint64_t most_bytes = c->edge.rate_mbps <= 1000 ? 4 << 20 : 32 << 20;
	uint64_t sides = l->connections * (l->both_ways ? 2u : 1u);
	uint64_t waiting = l->connections * RTE_MIN(ops, l->depth);

	if (ops * l->connections * (l->size_max / 3 + 64) > most_bytes)
		return true;
	return ops * sides * waiting / c->host.core.tl.max_rxns > REFUSALS_MAX;
}

static void
draw_load(struct san_prng *g, struct sim_conf *c)
{
	struct sim_load_conf *l = &c->load;
	uint64_t least_ns;
	uint32_t i;

	l->pattern = (uint8_t)(one_in(g, 4) ? SIM_PATTERN_INCAST : SIM_PATTERN_RANDOM);
	l->connections = 1 + san_prng_below(g, one_in(g, 4) ? 32 : 6);
	l->unordered_ppm = san_prng_below(g, 3) * (SIM_PPM / 2);
	l->relaxed = one_in(g, 8);
	l->both_ways = one_in(g, 2);
	l->solicit = (uint8_t)san_prng_below(g, SIM_SOLICIT_MAX);
	for (i = 0; i < SIM_KINDS; i++)
		l->weights[i] = one_in(g, 2) ? 0 : 1 + san_prng_below(g, 9);
	l->weights[san_prng_below(g, SIM_KINDS)] += 5;
	l->size_min = (uint32_t)draw_spread(g, 1, 4096);
	l->size_max = (uint32_t)draw_spread(g, l->size_min, 256 << 10);
	if (one_in(g, 3)) { /* small enough that many share a packet */
		l->size_min = 1 + san_prng_below(g, 64);
		l->size_max = (uint32_t)draw_spread(g, l->size_min, 512);
	}
	l->depth = (uint32_t)draw_spread(g, 1, 64);
	l->ops = draw_spread(g, 4, 300);
	while (l->ops > 4 && is_too_much(c, l->ops))
		l->ops /= 2;
	l->start_step_ns = one_in(g, 2) ? 0 : draw_spread(g, 100, MS);
	l->recv_delay_ns = one_in(g, 4) ? draw_spread(g, US, 5 * MS) : 0;
	l->bad_ppm = one_in(g, 5) ? SIM_PPM / 20 : 0;
	/* each revocation rewrites the region, which takes real time: allow 8 GB in a run */
	least_ns = (uint64_t)l->connections * (l->both_ways ? 2 : 1) * l->depth * l->size_max / 16;
	if (one_in(g, 6))
		l->revoke_ns = RTE_MAX(draw_spread(g, 100 * US, 20 * MS), least_ns);
	l->reconnect = true;
}

static struct sim_fault_conf *
add_fault(struct sim_conf *c, uint8_t kind)
{
	struct sim_fault_conf *f = &c->faults[c->nb_faults];

	*f = (struct sim_fault_conf){.kind = kind};
	snprintf(f->name, sizeof(f->name), "f%u", c->nb_faults++);
	return f;
}

static void
draw_place(struct san_prng *g, const struct sim_conf *c, struct sim_fault_conf *f)
{
	static const char *const ways[] = {"", ":up", ":down"};
	const char *way = ways[san_prng_below(g, RTE_DIM(ways))];

	if (f->kind == SIM_FAULT_PAUSE || f->kind == SIM_FAULT_RESTART ||
	    f->kind == SIM_FAULT_MOVE)
		snprintf(f->where, sizeof(f->where), "host:%u", san_prng_below(g, c->topo.hosts));
	else if (one_in(g, 2))
		snprintf(f->where, sizeof(f->where), "all%s", "");
	else if (c->topo.type == SIM_TOPO_LEAF_SPINE && one_in(g, 2))
		snprintf(f->where, sizeof(f->where), "spine:%u%s",
			 san_prng_below(g, c->topo.spines), way);
	else if (c->topo.type == SIM_TOPO_DUMBBELL && one_in(g, 2))
		snprintf(f->where, sizeof(f->where), "trunk%s", way);
	else
		snprintf(f->where, sizeof(f->where), "host:%u%s", san_prng_below(g, c->topo.hosts),
			 way);
}

/* A further fault at any place, and from any time on. */
static struct sim_fault_conf *
draw_somewhere(struct san_prng *g, struct sim_conf *c, uint8_t kind)
{
	struct sim_fault_conf *f = add_fault(c, kind);

	draw_place(g, c, f);
	f->at_ns = one_in(g, 3) ? 0 : draw_spread(g, US, 20 * MS);
	return f;
}

static void
draw_fault(struct san_prng *g, struct sim_conf *c)
{
	uint8_t kind = (uint8_t)(1 + san_prng_below(g, SIM_FAULT_RESTART));
	struct sim_fault_conf *f = draw_somewhere(g, c, kind);

	f->for_ns = draw_spread(g, 10 * US, one_in(g, 8) ? 8 * SAN_NS_PER_S : 100 * MS);
	f->rate_ppm = (uint32_t)draw_spread(g, 1000, SIM_PPM / 5);
	if (f->kind == SIM_FAULT_FLOW)
		f->rate_ppm = SIM_PPM / (2 + san_prng_below(g, 8));
	f->arg_ns = draw_spread(g, US, MS);
}

/*
 * Narrow paths, of 1,280 bytes or more, permanently or for a while. They end and stop nothing, so
 * they do not count as silence. (RT-37)
 */
static void
draw_narrow(struct san_prng *g, struct sim_conf *c)
{
	uint32_t n = one_in(g, 3) ? 1 + san_prng_below(g, 3) : 0;
	struct sim_fault_conf *f;

	for (; n > 0; n--) {
		f = draw_somewhere(g, c, SIM_FAULT_NARROW);
		f->for_ns = one_in(g, 3) ? 0 : draw_spread(g, 10 * US, 200 * MS);
		f->mtu = (uint16_t)(one_in(g, 2) ? 1280 : 1280 + san_prng_below(g, 9000 - 1280));
	}
}

/* Round trips of *work* through a pool of *room*; one of the *usual* size does not limit it. */
static uint64_t
trips(uint64_t work, uint32_t room, uint32_t usual)
{
	return room == usual ? 0 : work / room;
}

/* Number of round trips of the load, given small windows and pools. */
static uint64_t
round_trips(const struct sim_conf *c)
{
	const struct san_core_conf *core = &c->host.core;
	const struct san_cm_param *conn = &c->host.conn;
	const struct sim_load_conf *l = &c->load;
	uint64_t all = l->ops * l->connections * (l->both_ways ? 2 : 1);
	uint64_t pkts = 1 + l->size_max / 2 / c->host.mtu; /* per operation */
	uint64_t n = l->ops * pkts / RTE_MIN(conn->data_win, conn->first_win - 1);
	uint32_t at_once = RTE_MIN(conn->max_txn, conn->msg_limit);
	struct san_core_conf usual;

	san_core_conf_default(&usual, 0, 0);
	n += l->ops / RTE_MIN(at_once, RTE_MIN(conn->req_win, l->depth));
	n += trips(all * pkts, core->pdl.budget_pkts, usual.pdl.budget_pkts);
	n += trips(all * l->size_max / 2, core->tl.budget_bytes, usual.tl.budget_bytes);
	n += trips(all, core->tl.max_rxns, usual.tl.max_rxns);
	n += trips(all, core->tl.max_txns, usual.tl.max_txns);
	n += trips(all, core->pdl.max_wide, usual.pdl.max_wide);
	return n;
}

/* Forged CNPs (RT-36), and hosts that change their MAC address (RT-38). */
static void
draw_foreign(struct san_prng *g, struct sim_conf *c)
{
	uint8_t kind = one_in(g, 2) ? SIM_FAULT_FORGE : SIM_FAULT_MOVE;
	struct sim_fault_conf *f;

	if (!one_in(g, 4))
		return;
	f = draw_somewhere(g, c, kind);
	f->for_ns = draw_spread(g, 10 * US, 200 * MS);
	f->rate_ppm = kind == SIM_FAULT_FORGE ? (uint32_t)draw_spread(g, 1000, SIM_PPM) : 0;
}

/* A host that sends requests and answers, but does not continue its transfers. (RT-35) */
static void
draw_mute(struct san_prng *g, struct sim_conf *c)
{
	struct sim_fault_conf *f;

	if (!one_in(g, 4))
		return;
	f = add_fault(c, SIM_FAULT_MUTE);
	snprintf(f->where, sizeof(f->where), "host:%u:up", san_prng_below(g, c->topo.hosts));
	f->at_ns = one_in(g, 3) ? 0 : draw_spread(g, US, 20 * MS);
	f->for_ns = draw_spread(g, 10 * US, 400 * MS);
}

/* Hosts that lie, not 0 nor all others (RT-35). They compete for small pools in half of these. */
static void
draw_liars(struct san_prng *g, struct sim_conf *c)
{
	uint32_t n, host, others = c->topo.hosts - 1;
	struct sim_fault_conf *f;

	if (c->topo.hosts < 3 || !one_in(g, 8))
		return;
	host = san_prng_below(g, others);
	for (n = 1 + san_prng_below(g, others - 1); n > 0; n--) {
		f = add_fault(c, SIM_FAULT_LIE);
		snprintf(f->where, sizeof(f->where), "host:%u", 1 + host++ % others);
		f->lie = (uint8_t)(1 + san_prng_below(g, SIM_LIE_MAX - 1));
		f->at_ns = one_in(g, 2) ? 0 : draw_spread(g, US, 20 * MS);
		f->for_ns = one_in(g, 4) ? draw_spread(g, 10 * US, 400 * MS) : 0;
	}
	if (one_in(g, 2) && c->edge.delay_ns < MS) {
		c->host.core.pdl.max_wide = 1 + san_prng_below(g, 8);
		c->host.core.tl.max_txns = 1 + san_prng_below(g, 16);
	}
}

void
san_sim_draw_swarm(uint64_t seed, struct sim_conf *conf)
{
	static const uint16_t mtus[] = {1500, 1500, 4096, 5000};
	struct san_prng g;
	uint64_t long_ns;
	uint32_t n;

	san_sim_conf_default(conf);
	san_prng_seed(&g, seed);
	conf->run.seed = san_prng_u64(&g) >> 1;
	conf->run.duration_ns = 500 * MS;
	conf->run.settle_ns = 60 * SAN_NS_PER_S;
	conf->run.stall_ns = 15 * SAN_NS_PER_S;
	draw_network(&g, conf);
	draw_host(&g, &conf->host);
	if (one_in(&g, 2))
		draw_tiny(&g, &conf->host);
	draw_load(&g, conf);
	/* checks are slow: check each round only if there are few connections */
	conf->run.check_every = conf->load.connections > 6 ? 8 : 1;
	for (n = san_prng_below(&g, 5); n > 0; n--)
		draw_fault(&g, conf);
	/* last, so that seeds from before these features still give the same scenario */
	if (one_in(&g, 3))
		conf->edge.mtu = mtus[san_prng_below(&g, RTE_DIM(mtus))];
	if (one_in(&g, 3))
		conf->load.streams_ppm = one_in(&g, 2) ? SIM_PPM : SIM_PPM / 2;
	draw_narrow(&g, conf);
	/* a path of up to 20 ms, longer than any budget (RT-41), unless that would take minutes */
	long_ns = LONG_RUN_NS / (2 * LINKS_MAX * (1 + round_trips(conf)));
	if (one_in(&g, 12))
		conf->edge.delay_ns = conf->core.delay_ns =
			RTE_MIN(draw_spread(&g, MS, 10 * MS), long_ns);
	draw_foreign(&g, conf);
	draw_mute(&g, conf);
	draw_liars(&g, conf);
}
