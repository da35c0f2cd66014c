/* SPDX-License-Identifier: BSD-3-Clause */

/* The programs: pairs of hosts, memory, connections, start and end. Requests: sim_load_op.c. */

#include "san_assert.h"
#include "sim_world.h"

#define LISTEN_SERVICE 1
#define PKEY           0xffff
#define RETRY_MIN      (2 * SAN_NS_PER_MS)
#define RETRY_RANGE    (8 * (uint32_t)SAN_NS_PER_MS)
#define BLOCK_EXTRA    65536 /* number of different slices of the longest request */

/* ---- pairs of hosts ---- */

struct pair {
	uint32_t from, to;
};

static struct pair
draw_pair(struct sim_world *w, uint32_t conn)
{
	uint32_t n = w->nb_hosts, half = n / 2, other = 1 + conn % (n - 1), from;

	switch (w->conf.load.pattern) {
	case SIM_PATTERN_INCAST:
		return (struct pair){other, 0};
	case SIM_PATTERN_FAN:
		return (struct pair){0, other};
	case SIM_PATTERN_ACROSS:
		return (struct pair){conn % half, half + conn % half};
	case SIM_PATTERN_RANDOM:
		from = san_prng_below(&w->net.prng, n);
		return (struct pair){from, (from + 1 + san_prng_below(&w->net.prng, n - 1)) % n};
	case SIM_PATTERN_PERMUTATION:
		return (struct pair){conn % n, (conn + 1) % n};
	default:
		return (struct pair){2 * (conn % half), 2 * (conn % half) + 1};
	}
}

static int
alloc_side(struct sim_world *w, struct sim_side *s)
{
	const struct sim_load_conf *lc = &w->conf.load;
	struct sim_side *target = san_sim_load_peer(w, s);
	uint32_t i;

	if (s->stream && san_sim_load_stream_create(w, s) != 0)
		return -ENOMEM;
	if (!s->initiates)
		return 0;
	s->ops = calloc(lc->depth, sizeof(*s->ops));
	s->free = calloc(lc->depth, sizeof(*s->free));
	for (i = 0; s->free != NULL && i < lc->depth; i++)
		s->free[s->nb_free++] = (uint16_t)(lc->depth - 1 - i);
	if (s->stream)
		return s->ops == NULL || s->free == NULL ? -ENOMEM : 0;
	if (lc->weights[RTSAN_WR_PULL - RTSAN_WR_SEND] != 0)
		s->own = calloc(lc->depth, w->load->slot_bytes + SIM_GUARD);
	target->region = malloc(san_sim_load_region_bytes(w));
	if (lc->weights[RTSAN_WR_SEND - RTSAN_WR_SEND] != 0)
		target->recv = malloc((size_t)lc->depth * san_sim_load_recv_bytes(w));
	if (s->ops == NULL || s->free == NULL || target->region == NULL)
		return -ENOMEM;
	memset(target->region, SIM_GUARD_BYTE, san_sim_load_region_bytes(w));
	return 0;
}

static int
create_conn(struct sim_world *w, uint32_t conn)
{
	struct sim_load *ld = w->load;
	struct sim_side *a = &ld->sides[2 * conn], *b = a + 1;
	bool stream = san_sim_link_chance(&w->net, w->conf.load.streams_ppm);
	bool ordered = stream || !san_sim_link_chance(&w->net, w->conf.load.unordered_ppm);
	struct pair hosts = draw_pair(w, conn);
	int rc;

	*a = *b = (struct sim_side){
		.qp = SAN_QPN_NONE,
		.ordered = ordered,
		.stream = stream,
		.innocent = !w->hosts[hosts.from].liar && !w->hosts[hosts.to].liar,
	};
	a->id = 2 * conn;
	b->id = a->id + 1;
	a->host = hosts.from;
	b->host = hosts.to;
	a->initiates = true;
	b->initiates = w->conf.load.both_ways;
	rc = alloc_side(w, a);
	return rc != 0 ? rc : alloc_side(w, b);
}

int
san_sim_load_create(struct sim_world *w)
{
	const struct sim_load_conf *lc = &w->conf.load;
	struct sim_load *ld = calloc(1, sizeof(*ld));
	uint32_t i;
	int rc = 0;

	if (ld == NULL)
		return -ENOMEM;
	w->load = ld;
	san_prng_seed(&ld->prng, san_prng_u64(&w->net.prng));
	ld->slot_bytes = RTE_ALIGN_CEIL(RTE_MAX(lc->size_max, (uint32_t)SIM_HEADER), 64u);
	ld->block_bytes = ld->slot_bytes + BLOCK_EXTRA;
	ld->block = malloc(ld->block_bytes);
	ld->nb_sides = SIM_SIDES * lc->connections;
	ld->sides = calloc(ld->nb_sides, sizeof(*ld->sides));
	if (ld->block == NULL || ld->sides == NULL)
		return -ENOMEM;
	for (i = 0; i + 8 <= ld->block_bytes; i += 8) {
		uint64_t v = san_prng_u64(&ld->prng);

		memcpy(&ld->block[i], &v, sizeof(v));
	}
	for (i = 0; i < lc->connections && rc == 0; i++)
		rc = create_conn(w, i);
	/* link the sides of each host, ordered by number */
	for (i = ld->nb_sides; i-- > 0 && rc == 0;) {
		struct sim_host *h = &w->hosts[ld->sides[i].host];

		ld->sides[i].next = h->sides;
		h->sides = &ld->sides[i];
		h->nb_sides++;
	}
	return rc;
}

void
san_sim_load_destroy(struct sim_world *w)
{
	struct sim_load *ld = w->load;
	uint32_t i;

	if (ld == NULL)
		return;
	for (i = 0; ld->sides != NULL && i < ld->nb_sides; i++) {
		san_sim_load_stream_destroy(&ld->sides[i]);
		free(ld->sides[i].order.seqs);
		free(ld->sides[i].ops);
		free(ld->sides[i].free);
		free(ld->sides[i].own);
		free(ld->sides[i].region);
		free(ld->sides[i].recv);
	}
	free(ld->sides);
	free(ld->block);
	free(ld);
	w->load = NULL;
}

/* ---- processes ---- */

void
san_sim_load_new_life(struct sim_world *w, struct sim_side *s)
{
	uint32_t i;

	s->life++;
	if (s->region == NULL)
		return;
	for (i = 0; i < w->conf.load.depth; i++)
		memset(san_sim_load_slot(w, s, i), SIM_POISON_BYTE, w->load->slot_bytes);
}

/* Register the keys of a target: a new life begins. */
static void
sim_load_register(struct sim_world *w, struct sim_side *s)
{
	struct san_ulp *ulp = san_core_ulp(w->hosts[s->host].core);
	uint64_t base = ((uint64_t)s->id + 1) << 36;
	int rc;

	if (s->region == NULL)
		return;
	/* the outermost guards are not part of the region */
	rc = san_ulp_mr_add(ulp, s->region + SIM_GUARD,
			    san_sim_load_region_bytes(w) - 2 * SIM_GUARD, base + SIM_GUARD,
			    RTSAN_REMOTE_PUSH, PKEY, &s->rkey);
	if (rc == 0)
		rc = san_ulp_mr_add(ulp, &s->counter, sizeof(s->counter), base, RTSAN_REMOTE_ATOMIC,
				    PKEY, &s->rkey_atomic);
	SAN_VERIFY(rc == 0);
}

static void
sim_load_deregister(struct sim_world *w, struct sim_side *s)
{
	struct san_ulp *ulp = san_core_ulp(w->hosts[s->host].core);

	if (s->region == NULL)
		return;
	SAN_VERIFY(san_ulp_mr_del(ulp, s->rkey) == 0);
	SAN_VERIFY(san_ulp_mr_del(ulp, s->rkey_atomic) == 0);
}

static int
create_qp(struct sim_world *w, struct sim_host *h, struct sim_side *s)
{
	uint32_t depth = rte_align32pow2(RTE_MAX(w->conf.load.depth, 2u));
	const struct san_ulp_qp_conf conf = {
		.send_cq = h->send_cq, .recv_cq = h->recv_cq, .sq_depth = depth, .rq_depth = depth};
	int rc;

	rc = s->stream ? san_sim_load_stream_create_qp(w, h, s, &conf) :
			 san_ulp_qp_create(san_core_ulp(h->core), &conf, &s->qp);
	if (rc == 0)
		h->side_of_qp[SAN_QPN_INDEX(s->qp)] = s;
	return rc;
}

int
san_sim_load_host_up(struct sim_world *w, struct sim_host *h)
{
	struct sim_side *s;
	int rc;

	rc = san_cm_listen(san_core_cm(h->core), LISTEN_SERVICE, PKEY, UINT16_MAX, 0);
	if (rc == 0)
		rc = san_ulp_mr_add(san_core_ulp(h->core), w->load->block, w->load->block_bytes, 0,
				    RTSAN_REMOTE_PULL, PKEY, &h->rkey_block);
	for (s = h->sides; s != NULL && rc == 0; s = s->next) {
		rc = create_qp(w, h, s);
		s->counter = 0;
		san_sim_load_new_life(w, s);
		sim_load_register(w, s);
		san_sim_check_note(w, SIM_NOTE_RESTARTED, s, NULL, NULL);
		if (s->state != SIM_SIDE_OVER && (s->id & 1) == 0)
			san_sim_world_at(w, w->now_ns, SIM_EV_LOAD, s->id, SIM_LOAD_CONNECT, NULL);
	}
	return rc;
}

void
san_sim_load_host_down(struct sim_world *w, struct sim_host *h)
{
	struct sim_load *ld = w->load;
	struct sim_side *s;
	uint32_t k;

	for (s = h->sides; s != NULL; s = s->next) {
		for (k = 0; s->initiates && k < w->conf.load.depth; k++) {
			if (!s->ops[k].posted)
				continue;
			s->ops[k].posted = false;
			s->free[s->nb_free++] = s->ops[k].slot;
			s->nb_done++;
			s->nb_failed++;
			ld->nb_pending -= s->innocent;
		}
		if (s->stream)
			san_sim_load_stream_down(w, s);
		ld->nb_up -= s->state == SIM_SIDE_UP || s->state == SIM_SIDE_END;
		s->qp = SAN_QPN_NONE;
		s->nb_recvs = 0;
		if (s->state != SIM_SIDE_OVER)
			s->state = SIM_SIDE_IDLE;
		san_sim_load_new_life(w, s);
	}
}

/*
 * ---- connections ----
 *
 * The connecting side names the connection in its private data. The accepting side rejects while
 * its end of an earlier connection still exists, and the connecting side tries again soon.
 */

static void
load_conn_fill_param(const struct sim_world *w, const struct sim_side *s, struct san_cm_param *p)
{
	*p = w->conf.host.conn;
	p->ordered = s->ordered;
	p->relaxed = s->ordered && w->conf.load.relaxed && !s->stream;
	p->pkey = PKEY;
	p->private_len = sizeof(s->id);
	memcpy(p->private_data, &s->id, sizeof(s->id));
}

static void
retry_later(struct sim_world *w, const struct sim_side *s)
{
	san_sim_world_at(w, w->now_ns + RETRY_MIN + san_prng_below(&w->load->prng, RETRY_RANGE),
			 SIM_EV_LOAD, s->id, SIM_LOAD_CONNECT, NULL);
}

static void
load_conn_ended(struct sim_world *w, struct sim_side *s)
{
	if (s->state == SIM_SIDE_OVER)
		return;
	s->state = SIM_SIDE_OVER;
	w->load->nb_over++;
}

static void
load_conn_connect(struct sim_world *w, struct sim_side *s)
{
	struct sim_host *h = &w->hosts[s->host];
	uint64_t clock_ns = san_sim_host_clock(h, w->now_ns);
	struct san_cm_param param;
	struct san_ip peer;
	int rc;

	if (s->state != SIM_SIDE_IDLE)
		return;
	if (w->load->ending) {
		load_conn_ended(w, s);
		return;
	}
	load_conn_fill_param(w, s, &param);
	san_sim_core_ip(&peer, san_sim_load_peer(w, s)->host, w->conf.host.ipv6);
	rc = san_core_conn_connect(h->core, s->qp, &peer, LISTEN_SERVICE, &param, clock_ns);
	if (rc == 0) {
		s->state = SIM_SIDE_CONNECT;
		san_sim_load_op_post_recvs(w, s);
	} else if (rc == -EBUSY || rc == -ENOSPC || rc == -EISCONN) {
		retry_later(w, s);
	} else {
		san_sim_fail_side(w, s, "complete", "connect: %s", strerror(-rc));
	}
}

static void
load_conn_on_request(struct sim_world *w, struct sim_host *h, const struct san_core_event *ev)
{
	uint64_t clock_ns = san_sim_host_clock(h, w->now_ns);
	struct san_cm_param param;
	struct sim_side *s;
	uint32_t id = UINT32_MAX;
	int rc = -EINVAL;

	if (ev->private_len == sizeof(id))
		memcpy(&id, ev->private_data, sizeof(id));
	id ^= 1;
	if (id >= w->load->nb_sides || w->load->sides[id].host != h->id) {
		san_sim_fail_host(w, h, "bytes", "a request for side %u", id);
		return;
	}
	s = &w->load->sides[id];
	if (s->state == SIM_SIDE_IDLE && s->qp != SAN_QPN_NONE && !w->load->ending) {
		load_conn_fill_param(w, s, &param);
		rc = san_core_conn_accept(h->core, ev->request, s->qp, &param, clock_ns);
	}
	if (rc == 0) {
		s->state = SIM_SIDE_CONNECT;
		san_sim_load_op_post_recvs(w, s);
	} else if (rc != -ENOENT) {
		san_core_conn_reject(h->core, ev->request, NULL, 0, clock_ns);
	}
}

/* The connection was not set up, or has ended. */
static void
on_down(struct sim_world *w, struct sim_side *s, bool was_up)
{
	bool wanted = s->state == SIM_SIDE_END;
	bool broken = was_up && !wanted && !w->load->closing;
	bool counted = s->state == SIM_SIDE_UP || wanted;

	/* completions precede the event; they cause no new posts */
	s->state = SIM_SIDE_IDLE;
	san_sim_load_op_completions(w, &w->hosts[s->host]);
	if (s->stream)
		san_sim_load_stream_down(w, s);
	if (was_up) {
		w->load->nb_up -= counted;
		w->stats.nb_broken += broken;
		san_sim_load_new_life(w, s);
		if (broken)
			san_sim_check_note(w, SIM_NOTE_BROKEN, s, NULL, NULL);
		san_sim_check_note(w, SIM_NOTE_DOWN, s, NULL, NULL);
	}
	if (wanted || w->load->ending || (was_up && !w->conf.load.reconnect))
		load_conn_ended(w, s);
	else if ((s->id & 1) == 0)
		retry_later(w, s);
}

static void
load_conn_events(struct sim_world *w, struct sim_host *h)
{
	struct san_core_event ev;
	struct sim_side *s;

	while (san_core_conn_poll_event(h->core, &ev)) {
		if (ev.type == RTSAN_EV_CONNECT_REQUEST) {
			load_conn_on_request(w, h, &ev);
			continue;
		}
		s = h->side_of_qp[SAN_QPN_INDEX(ev.qp)];
		if (s == NULL || s->qp != ev.qp) {
			san_sim_fail_host(w, h, "complete", "event %u of queue pair %#x", ev.type,
					  ev.qp);
			return;
		}
		if (ev.type != RTSAN_EV_ESTABLISHED) {
			on_down(w, s, ev.type == RTSAN_EV_DISCONNECTED);
			continue;
		}
		s->state = SIM_SIDE_UP;
		s->flushed = false;
		w->load->nb_up++;
		w->stats.nb_conns++;
		s->last_ns = w->now_ns;
		if (s->stream)
			san_sim_load_stream_up(w, s);
		san_sim_load_op_post(w, s);
	}
}

/*
 * True if the other end does not know this connection and so will not end it, or if it lies: drains
 * may wait as long as a peer is alive.
 */
static bool
is_alone(struct sim_world *w, const struct sim_side *s)
{
	const struct sim_side *peer = san_sim_load_peer(w, s);

	return !s->innocent || (peer->state != SIM_SIDE_UP && peer->state != SIM_SIDE_END);
}

void
san_sim_load_disconnect_all(struct sim_world *w)
{
	uint32_t i;

	w->load->closing = true;
	for (i = 0; i < w->load->nb_sides; i++) {
		struct sim_side *s = &w->load->sides[i];
		struct sim_host *h = &w->hosts[s->host];
		uint64_t clock_ns = san_sim_host_clock(h, w->now_ns);

		if (h->core == NULL || s->state == SIM_SIDE_IDLE) {
			load_conn_ended(w, s);
		} else if (s->state == SIM_SIDE_CONNECT) {
			san_core_conn_abort(h->core, s->qp, clock_ns);
			san_sim_host_wake(w, h);
		} else if (s->state == SIM_SIDE_UP && ((i & 1) == 0 || is_alone(w, s))) {
			s->state = SIM_SIDE_END;
			san_core_conn_disconnect(h->core, s->qp, is_alone(w, s), clock_ns);
			san_sim_host_wake(w, h);
		}
	}
}

/* ---- beginning and end of the load ---- */

static void
plan_revocation(struct sim_world *w, const struct sim_side *s)
{
	uint64_t after = w->conf.load.revoke_ns;

	if (after == 0 || s->region == NULL)
		return;
	after = after / 2 + san_prng_u64(&w->load->prng) % after;
	san_sim_world_at(w, w->now_ns + after, SIM_EV_LOAD, s->id, SIM_LOAD_REVOKE, NULL);
}

void
san_sim_load_start(struct sim_world *w)
{
	const struct sim_load_conf *lc = &w->conf.load;
	struct sim_load *ld = w->load;
	uint32_t i;

	for (i = 0; i < ld->nb_sides; i++) {
		struct sim_side *s = &ld->sides[i];

		plan_revocation(w, s);
		if (!s->initiates)
			continue;
		s->start_ns = w->now_ns + (uint64_t)(i / SIM_SIDES) * lc->start_step_ns;
		s->stop_ns = w->now_ns + w->conf.run.duration_ns -
			RTE_MIN((uint64_t)(i / SIM_SIDES) * lc->stop_step_ns,
				w->conf.run.duration_ns);
		san_sim_world_at(w, s->start_ns, SIM_EV_LOAD, i, SIM_LOAD_POST, NULL);
	}
}

bool
san_sim_load_is_done(const struct sim_world *w)
{
	const struct sim_load *ld = w->load;
	const struct sim_side *s;

	if (ld->nb_pending != 0 || ld->nb_flow != 0 || (!ld->ending && w->conf.load.ops == 0))
		return false;
	for (s = ld->sides; !ld->ending && s < ld->sides + ld->nb_sides; s++)
		if (s->initiates && s->innocent && s->state != SIM_SIDE_OVER &&
		    s->nb_posted < w->conf.load.ops)
			return false;
	return true;
}

void
san_sim_load_round(struct sim_world *w, struct sim_host *h)
{
	load_conn_events(w, h);
	san_sim_load_op_completions(w, h);
}

void
san_sim_load_event(struct sim_world *w, uint32_t side, uint16_t what, void *arg)
{
	struct sim_side *s = &w->load->sides[side];

	if (what == SIM_LOAD_REVOKE && !w->load->ending) {
		if (w->hosts[s->host].core != NULL) {
			sim_load_deregister(w, s);
			san_sim_load_new_life(w, s);
			sim_load_register(w, s);
		}
		plan_revocation(w, s);
	}
	if (s->qp == SAN_QPN_NONE)
		return; /* its process has died */
	if (what == SIM_LOAD_CONNECT)
		load_conn_connect(w, s);
	else if (what == SIM_LOAD_POST)
		san_sim_load_op_post(w, s);
	else if (what == SIM_LOAD_RECV)
		san_sim_load_op_post_recv(w, s, (uintptr_t)arg & UINT16_MAX,
					  (uint32_t)((uintptr_t)arg >> 16));
	san_sim_host_wake(w, &w->hosts[s->host]);
}

void
san_sim_load_release(struct sim_world *w)
{
	struct sim_load *ld = w->load;
	uint32_t i;

	for (i = 0; i < ld->nb_sides; i++) {
		struct sim_side *s = &ld->sides[i];
		struct sim_host *h = &w->hosts[s->host];
		int rc;

		if (h->core == NULL || s->qp == SAN_QPN_NONE)
			continue;
		rc = s->stream ? san_core_stream_destroy(h->core, s->qp) :
				 san_ulp_qp_destroy(san_core_ulp(h->core), s->qp);
		if (rc != 0)
			san_sim_fail_side(w, s, "leak", "qp_destroy: %s", strerror(-rc));
		s->qp = SAN_QPN_NONE;
		sim_load_deregister(w, s);
	}
	for (i = 0; i < w->nb_hosts; i++)
		if (w->hosts[i].core != NULL)
			san_ulp_mr_del(san_core_ulp(w->hosts[i].core), w->hosts[i].rkey_block);
}
