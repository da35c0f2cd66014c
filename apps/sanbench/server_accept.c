/* SPDX-License-Identifier: BSD-3-Clause */

/* A connection request starts a session, becomes a data connection of one, or is rejected. */

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "mode.h"
#include "port.h"
#include "server.h"

#define SESSIONS_MAX 256

static void
peer_close(struct peer *p)
{
	san_net_qp_close(&p->q);
	if (p->session != NULL && p->session->mode->peer_close != NULL)
		p->session->mode->peer_close(p);
	if (p->recv_mr != NULL)
		rtsan_mr_dereg(p->recv_mr);
	free(p->seen);
	memset(p, 0, sizeof(*p));
}

void
san_server_accept_free(struct session *s)
{
	uint32_t i;

	for (i = 0; i < s->hello.nb_conns && s->peers != NULL; i++)
		peer_close(&s->peers[i]);
	san_ctl_close(&s->ctl);
	if (s->mr != NULL)
		rtsan_mr_dereg(s->mr);
	if (s->shared != NULL)
		rtsan_mr_dereg(s->shared);
	free(s->peers);
	free(s);
}

static const char *
hello_wrong(const struct rtsan_event *ev, const struct hello *h)
{
	const struct bench_mode *m = san_mode_by_id(h->mode);

	if (ev->private_len < sizeof(*h) || h->magic != HELLO_MAGIC)
		return "not a sanbench client, or of another version";
	if (m == NULL)
		return "this mode is unknown here";
	if (h->size_min == 0 || h->size_min > h->size_max || h->size_max > RTSAN_LENGTH_MAX - 64 ||
	    h->depth == 0 || h->slots < h->depth || h->slots > 4 * h->depth ||
	    !rte_is_power_of_2(h->slots) || (m->id == MODE_RPC && !san_mode_rpc_fits(h)) ||
	    (m->id == MODE_STREAM && !san_mode_stream_fits(h)) ||
	    h->nb_conns == 0 || h->nb_conns > BENCH_CONNS_MAX || h->index >= h->nb_conns)
		return "sizes or numbers are out of range";
	if (m->id == MODE_ATOMIC && h->size_max != 8)
		return "atomics have 8 bytes";
	return NULL;
}

/* Check that *bytes* more are within the memory that clients may use (--memory). */
static bool
is_affordable(struct session *s, uint64_t bytes)
{
	if (bytes > ((uint64_t)s->b->conf.memory_mib << 20) - s->memory)
		return false;
	s->memory += bytes;
	return true;
}

/* Register one region for the slots of all connections. */
static int
session_open_slots(struct session *s)
{
	uint64_t bytes = s->hello.nb_conns *
		san_net_slots_bytes(&s->hello, san_net_stride(s->hello.size_max));

	if (s->mode->peer_open != NULL) /* receives, and own requests */
		return is_affordable(s, 3 * bytes) ? 0 : -1;
	if (s->mode->rights == 0)
		return 0;
	if (!is_affordable(s, bytes))
		return -1;
	return rtsan_mr_alloc(s->b->ctx, bytes, s->mode->rights, &s->mr);
}

static void
session_add(struct server *srv, const struct rtsan_event *ev, const struct hello *h,
	    const char **wrong)
{
	struct session *s = calloc(1, sizeof(*s));
	struct bench *b = srv->b;

	*wrong = "out of memory";
	if (s == NULL)
		return;
	s->server = srv;
	s->b = b;
	s->mode = san_mode_by_id(h->mode);
	s->hello = *h;
	s->id = ++srv->nb_sessions;
	s->ctl.owner = s;
	s->ctl.on_msg = srv->on_ctl_msg;
	s->ctl.on_event = srv->on_ctl_event;
	s->rtx_begin = san_port_counter(b, "rtx");
	san_hist_reset(&s->lat);
	memcpy(s->from, ev->peer, sizeof(s->from));
	s->peers = calloc(h->nb_conns, sizeof(*s->peers));
	if (s->peers == NULL || san_ctl_open(b, &s->ctl) < 0)
		goto fail;
	s->has_turns = s->mode->peer_step != NULL || san_mode_has_placed(s->mode, h->flags);
	if ((s->mode->flags & MODE_SHARED) != 0 &&
	    rtsan_mr_alloc(b->ctx, 64, s->mode->rights, &s->shared) < 0)
		goto fail;
	*wrong = "no memory for that (--memory)";
	if (session_open_slots(s) < 0)
		goto fail;
	s->next = srv->sessions;
	srv->sessions = s;
	*wrong = NULL;
	return;
fail:
	san_server_accept_free(s);
}

static const char *
accept_ctl(struct server *srv, const struct rtsan_event *ev, const struct hello *h)
{
	struct welcome w = {.magic = HELLO_MAGIC};
	struct rtsan_conn_param param;
	const char *wrong;
	struct session *s;
	uint32_t nb = 0;

	for (s = srv->sessions; s != NULL; s = s->next) {
		if (s->hello.token == h->token)
			return "this session exists already";
		nb++;
	}
	if (nb >= SESSIONS_MAX)
		return "too many sessions";
	session_add(srv, ev, h, &wrong);
	if (wrong != NULL)
		return wrong;
	s = srv->sessions;
	san_net_param(&srv->b->conf, &param, &w, sizeof(w));
	if (rtsan_accept(srv->b->ctx, ev->request, s->ctl.q.qp, &param) < 0) {
		srv->sessions = s->next;
		san_server_accept_free(s);
		return "accepting failed";
	}
	return NULL;
}

/* Receives: one per message in flight, and as many again to cover the server's delay. */
static int
peer_open_recvs(struct peer *p, uint32_t rq)
{
	struct session *s = p->session;
	bool has_bytes = (s->mode->flags & MODE_RECVS) != 0;

	if (!has_bytes && (p->hello.flags & HELLO_IMM) == 0)
		return 0;
	p->rq = rq;
	p->seen = calloc(1, sizeof(*p->seen));
	if (p->seen == NULL)
		return -1;
	if (!has_bytes)
		return 0;
	p->recv_stride = san_net_stride(p->hello.size_max);
	if (!is_affordable(s, (uint64_t)rq * p->recv_stride) ||
	    rtsan_mr_alloc(s->b->ctx, (size_t)rq * p->recv_stride, 0, &p->recv_mr) < 0)
		return -1;
	p->recv_mem = rtsan_mr_addr(p->recv_mr);
	return 0;
}

static int
peer_open_default(struct peer *p)
{
	struct session *s = p->session;
	uint32_t rq = s->b->conf.rq != 0 ? s->b->conf.rq : 2u * p->hello.depth, i;

	p->q.on_wc = san_server_peer_on_wc;
	if (s->mr != NULL)
		p->mem = (uint8_t *)rtsan_mr_addr(s->mr) +
			p->index *
				san_net_slots_bytes(&p->hello, san_net_stride(p->hello.size_max));
	if (peer_open_recvs(p, rq) < 0 ||
	    san_net_qp_open(s->b, &p->q, 1, RTE_MAX(p->rq, 1u), p->rq) < 0)
		return -1;
	for (i = 0; i < p->rq; i++)
		if (san_server_peer_post_recv(p, i) < 0)
			return -1;
	return 0;
}

static int
peer_open(struct session *s, struct peer *p, const struct hello *h)
{
	int ret;

	p->session = s;
	p->hello = *h;
	p->index = h->index;
	p->q.on_event = san_server_peer_on_event;
	ret = s->mode->peer_open != NULL ? s->mode->peer_open(p) : peer_open_default(p);
	if (ret == 0 && s->mode->serve != NULL)
		s->mode->serve(p);
	if (ret < 0)
		peer_close(p);
	return ret;
}

/* Parameters that determine memory were checked when the session began: they must be the same. */
static bool
hello_is_alike(const struct hello *a, const struct hello *b)
{
	return a->mode == b->mode && a->nb_conns == b->nb_conns && a->size_min == b->size_min &&
		a->size_max == b->size_max && a->depth == b->depth && a->slots == b->slots;
}

static const char *
accept_data(struct server *srv, const struct rtsan_event *ev, const struct hello *h)
{
	struct welcome w = {.magic = HELLO_MAGIC};
	struct rtsan_conn_param param;
	struct session *s = srv->sessions;
	struct peer *p;

	while (s != NULL && s->hello.token != h->token)
		s = s->next;
	if (s == NULL || !hello_is_alike(h, &s->hello))
		return "no session of this kind";
	p = &s->peers[h->index];
	if (p->is_open && s->mode->id == MODE_CONNECT)
		return san_mode_connect_again(p, ev->request);
	if (p->is_open)
		return "this connection exists already";
	if (peer_open(s, p, h) < 0)
		return "no memory for that (--memory)";
	if (s->mr != NULL) {
		w.addr = (uint64_t)(uintptr_t)p->mem;
		w.rkey = rtsan_mr_rkey(s->mr);
	}
	if (s->shared != NULL) {
		w.shared_addr = (uint64_t)(uintptr_t)rtsan_mr_addr(s->shared);
		w.shared_rkey = rtsan_mr_rkey(s->shared);
	}
	w.rq = p->rq;
	san_net_param(&srv->b->conf, &param, &w, sizeof(w));
	if (rtsan_accept(srv->b->ctx, ev->request, p->q.qp, &param) < 0) {
		peer_close(p);
		return "accepting failed";
	}
	p->is_open = true;
	return NULL;
}

void
san_server_accept_request(struct bench *b, const struct rtsan_event *ev)
{
	const char *wrong = "no server here";
	struct hello h;

	memcpy(&h, ev->private_data, sizeof(h));
	if (b->server != NULL) {
		wrong = hello_wrong(ev, &h);
		if (wrong == NULL)
			wrong = h.kind == HELLO_CTL ? accept_ctl(b->server, ev, &h) :
						      accept_data(b->server, ev, &h);
	}
	if (wrong != NULL)
		rtsan_reject(b->ctx, ev->request, wrong, (uint16_t)strlen(wrong));
}
