/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Life of the programs' connections. The connecting side names the connection in its private data.
 * The accepting side rejects while its end of an earlier connection still exists, and the
 * connecting side tries again soon.
 */

#include <errno.h>
#include <string.h>

#include "san_assert.h"
#include "sim_world.h"

#define SERVICE     1
#define PKEY        0xffff
#define RETRY_MIN   (2 * SAN_NS_PER_MS)
#define RETRY_RANGE (8 * (uint32_t)SAN_NS_PER_MS)

static void
load_conn_fill_param(const struct sim_world *w, const struct sim_side *s, struct san_cm_param *p)
{
	const struct sim_host_conf *hc = &w->conf.host;

	*p = (struct san_cm_param){
		.ordered = s->ordered,
		.relaxed = s->ordered && w->conf.load.relaxed && !s->stream,
		.pkey = PKEY,
		.req_win = hc->req_win,
		.data_win = hc->data_win,
		.first_win = hc->first_win,
		.max_txn = hc->max_txn,
		.msg_limit = hc->msg_limit,
		.rnr_ms = hc->rnr_ms,
		.keepalive_ms = hc->keepalive_ms,
		.private_len = sizeof(s->id),
	};
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
	san_sim_load_todo_done(w, s);
}

void
san_sim_load_conn_connect(struct sim_world *w, struct sim_side *s)
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
	rc = san_core_conn_connect(h->core, s->qp, &peer, SERVICE, &param, clock_ns);
	if (rc == 0) {
		s->state = SIM_SIDE_CONNECT;
		san_sim_load_op_post_recvs(w, s);
	} else if (rc == -EBUSY || rc == -ENOSPC || rc == -EISCONN) {
		retry_later(w, s);
	} else {
		san_sim_world_fail(w, "complete", "side %u: connect: %s", s->id, strerror(-rc));
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
		san_sim_world_fail(w, "bytes", "host %u: a request for side %u", h->id, id);
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
			san_sim_check_note(w,
					   &(struct sim_note){.type = SIM_NOTE_BROKEN, .side = s});
		san_sim_check_note(w, &(struct sim_note){.type = SIM_NOTE_DOWN, .side = s});
	}
	if (wanted || w->load->ending || (was_up && !w->conf.load.reconnect))
		load_conn_ended(w, s);
	else if ((s->id & 1) == 0)
		retry_later(w, s);
}

void
san_sim_load_conn_events(struct sim_world *w, struct sim_host *h)
{
	struct san_core_event ev;
	struct sim_side *s;

	while (san_core_conn_poll_event(h->core, &ev)) {
		if (ev.type == RTSAN_EV_CONNECT_REQUEST) {
			load_conn_on_request(w, h, &ev);
			continue;
		}
		s = &w->load->sides[h->side_of_qp[SAN_QPN_INDEX(ev.qp)]];
		if (s->qp != ev.qp) {
			san_sim_world_fail(w, "complete", "host %u: event %u of queue pair %#x",
					   h->id, ev.type, ev.qp);
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
		san_sim_check_note(w, &(struct sim_note){.type = SIM_NOTE_UP, .side = s});
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
san_sim_load_conn_disconnect_all(struct sim_world *w)
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
