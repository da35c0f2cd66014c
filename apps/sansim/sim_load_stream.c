/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Programs on streams (AFC-1). Sent data is remembered until the other side has received it, and is
 * compared byte by byte. So a lost, repeated or misplaced byte is detected at once. The manner of
 * receiving changes, so that sessions have something to adapt to: large buffers posted before data
 * arrives; waiting for data, then a small and a large buffer; small buffers.
 */

#include "san_assert.h"
#include "sim_world.h"

#define SMALL_MAX 1000 /* maximum size of a small buffer */
#define HEAD      64   /* first receive after waiting */
#define LARGE_MIN 4096
#define SAME_MAX  40 /* receives until the manner changes */
#define RECVS_MAX 2

enum manner {
	MANNER_DIRECT,
	MANNER_WAITS,
	MANNER_SMALL,
	MANNERS
};

struct piece {
	uint32_t slice, len;
};

struct sim_flow {
	/* sent data that the other side has not received */
	struct piece *log;
	uint32_t cap, head, nb;
	uint32_t off; /* received bytes of the first piece */
	bool live;    /* counted in load->nb_flow, as only innocent sides are */
	/* receiver */
	uint8_t manner; /* enum manner */
	uint32_t left;  /* receives until the next manner */
	bool waiting, after_wait, ended;
	uint32_t len[RECVS_MAX];
	uint8_t bufs[]; /* RECVS_MAX of large_max() */
};

static uint32_t
large_max(const struct sim_world *w)
{
	return RTE_MAX(w->load->slot_bytes, (uint32_t)LARGE_MIN);
}

static uint8_t *
stream_buf(const struct sim_world *w, const struct sim_side *s, uint32_t slot)
{
	return s->flow->bufs + (size_t)slot * large_max(w);
}

int
san_sim_load_stream_create(struct sim_world *w, struct sim_side *s)
{
	s->flow = calloc(1, sizeof(*s->flow) + RECVS_MAX * (size_t)large_max(w));
	return s->flow == NULL ? -ENOMEM : 0;
}

void
san_sim_load_stream_destroy(struct sim_side *s)
{
	free(s->flow != NULL ? s->flow->log : NULL);
	free(s->flow);
}

/* Few buffers and short timers in some runs, defaults in the others. */
static void
draw_conf(struct sim_world *w, struct san_stream_conf *c)
{
	struct san_prng *g = &w->load->prng;

	san_stream_conf_default(c);
	c->read = (uint8_t)san_prng_below(g, RTSAN_STREAM_READ_ALWAYS + 1);
	if (san_prng_below(g, 2) == 0)
		return;
	c->nb_recv = (uint16_t)(4 + san_prng_below(g, 12));
	c->nb_store = (uint16_t)(4 + san_prng_below(g, 12));
	c->nb_send = (uint16_t)(2 + san_prng_below(g, 12));
	c->t2 = 2;
	c->msg_size = 512 + san_prng_below(g, 2000);
	c->frags = (uint16_t)(1 + san_prng_below(g, 8));
	c->scan_ns = SAN_NS_PER_MS + san_prng_below(g, 10 * SAN_NS_PER_MS);
	if (san_prng_below(g, 2) == 0)
		c->send_buffer = 1u << (10 + san_prng_below(g, 8));
	if (san_prng_below(g, 4) == 0)
		c->mode = (uint8_t)san_prng_below(g, SAN_SM_MODES);
}

int
san_sim_load_stream_create_qp(struct sim_world *w, struct sim_host *h, struct sim_side *s,
			      const struct san_ulp_qp_conf *qp)
{
	struct san_core_stream_conf conf = {.qp = *qp, .user = SAN_CORE_ALONE};

	draw_conf(w, &conf.stream);
	return san_core_stream_create(h->core, &conf, san_sim_host_clock(h, w->now_ns), &s->qp);
}

/* ---- sent data ---- */

void
san_sim_load_stream_sent(struct sim_world *w, struct sim_side *s, uint32_t slice, uint32_t len)
{
	struct sim_flow *f = s->flow;

	if (f->nb == f->cap) {
		f->cap = RTE_MAX(64u, 2 * f->cap);
		f->log = realloc(f->log, f->cap * sizeof(*f->log));
		SAN_VERIFY(f->log != NULL);
	} else if (f->head + f->nb == f->cap) {
		memmove(f->log, f->log + f->head, f->nb * sizeof(*f->log));
		f->head = 0;
	}
	f->log[f->head + f->nb++] = (struct piece){.slice = slice, .len = len};
	w->load->nb_flow += f->live;
}

void
san_sim_load_stream_up(struct sim_world *w, struct sim_side *s)
{
	struct sim_flow *f = s->flow;

	f->head = f->nb = f->off = 0;
	f->live = s->innocent;
	f->waiting = f->after_wait = f->ended = false;
	s->recv_epoch++;
	san_sim_load_stream_receive(w, s);
}

/* Data in flight may still arrive, or not. */
void
san_sim_load_stream_down(struct sim_world *w, struct sim_side *s)
{
	if (s->flow->live)
		w->load->nb_flow -= s->flow->nb;
	s->flow->live = false;
}

/* ---- received data ---- */

/* Compare with the next data that the other side sent. */
static void
load_stream_take_bytes(struct sim_world *w, struct sim_side *s, const uint8_t *got, uint32_t len)
{
	struct sim_side *peer = san_sim_load_peer(w, s);
	struct sim_flow *f = peer->flow;

	while (len > 0 && s->innocent) {
		const struct piece *p = &f->log[f->head];
		uint32_t n;

		if (f->nb == 0) {
			san_sim_fail_side(w, s, "stream", "%u bytes that were not sent", len);
			return;
		}
		n = RTE_MIN(len, p->len - f->off);
		if (memcmp(got, w->load->block + p->slice + f->off, n) != 0) {
			san_sim_fail_side(w, s, "stream", "wrong bytes, up to %u from %u of %u", n,
					  f->off, p->len);
			return;
		}
		got += n;
		len -= n;
		f->off += n;
		if (f->off < p->len)
			continue;
		f->off = 0;
		f->head++;
		f->nb--;
		w->load->nb_flow -= f->live;
	}
}

static void
load_stream_post(struct sim_world *w, struct sim_side *s, uint32_t slot, uint32_t len)
{
	struct san_ulp_recv r = {.wr_id = slot, .nb_sge = 1};

	s->flow->len[slot] = len;
	r.sge[0] = (struct rtsan_sge){.addr = stream_buf(w, s, slot), .length = len};
	san_sim_load_op_take_recv(w, s, &r);
}

static uint32_t
draw_large(struct sim_world *w)
{
	uint32_t max = large_max(w);

	return LARGE_MIN + san_prng_below(&w->load->prng, max - LARGE_MIN + 1);
}

void
san_sim_load_stream_receive(struct sim_world *w, struct sim_side *s)
{
	static const struct san_ulp_wr wait = {
		.op = SAN_WR_WAIT, .imm = RTSAN_STREAM_READABLE, .flags = RTSAN_WR_SIGNALED};
	struct sim_host *h = &w->hosts[s->host];
	struct san_prng *g = &w->load->prng;
	struct sim_flow *f = s->flow;

	if ((s->state != SIM_SIDE_UP && s->state != SIM_SIDE_END) || f->ended || f->waiting ||
	    s->nb_recvs != 0)
		return;
	if (f->left == 0) {
		f->left = 1 + san_prng_below(g, SAME_MAX);
		f->manner = (uint8_t)san_prng_below(g, MANNERS);
	}
	f->left--;
	if (f->manner == MANNER_SMALL) {
		load_stream_post(w, s, 0, 1 + san_prng_below(g, SMALL_MAX));
	} else if (f->manner == MANNER_WAITS && !f->after_wait) {
		if (san_core_post(h->core, s->qp, &wait, 1, san_sim_host_clock(h, w->now_ns)) != 1)
			san_sim_fail_side(w, s, "complete", "a wait is not taken");
		f->waiting = true;
	} else {
		f->after_wait = false;
		load_stream_post(w, s, 0, draw_large(w));
		if (f->manner == MANNER_DIRECT && san_prng_below(g, 2) == 0)
			load_stream_post(w, s, 1, draw_large(w));
	}
}

void
san_sim_load_stream_on_wait(struct sim_world *w, struct sim_side *s, const struct san_ulp_wc *wc)
{
	s->flow->waiting = false;
	if ((s->state != SIM_SIDE_UP && s->state != SIM_SIDE_END) ||
	    (wc->imm & RTSAN_STREAM_ENDED) != 0)
		return;
	s->flow->after_wait = true;
	load_stream_post(w, s, 0, HEAD);
}

void
san_sim_load_stream_on_recv(struct sim_world *w, struct sim_side *s, const struct san_ulp_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id;

	s->nb_recvs--;
	if (wc->status >= RTSAN_WC_RETRY_EXC) {
		s->flow->ended = true;
		return;
	}
	if (wc->status != 0 || slot >= RECVS_MAX || wc->byte_len > s->flow->len[slot]) {
		san_sim_fail_side(w, s, "stream", "a receive completed with %s and %u bytes",
				  san_ulp_status_name(wc->status), wc->byte_len);
		return;
	}
	s->flow->ended |= wc->byte_len == 0;
	load_stream_take_bytes(w, s, stream_buf(w, s, slot), wc->byte_len);
	if (!san_sim_load_op_recv_later(w, s, 0))
		san_sim_load_stream_receive(w, s);
}
