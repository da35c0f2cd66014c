/* SPDX-License-Identifier: BSD-3-Clause */

/* The server, whose behaviour is requested by the private data of a connection. */

#include <stdatomic.h>
#include <time.h>

#include "errors.h"

struct served {
	struct served *next;
	struct rtsan_qp *qp;
	struct rtsan_mr *recv_mr;
	struct rtsan_mr *revoked;
	uint8_t behaviour;
	uint64_t act_at;
	bool is_ready; /* receives are posted */
	bool is_over;
};

struct server {
	struct rtsan_ctx *ctx;
	struct rtsan_cq *cq;
	struct rtsan_mr *mr[REGIONS];
	struct served *list;
};

static void
post_recvs(struct served *s, uint32_t length)
{
	struct rtsan_sge sge = {.lkey = rtsan_mr_lkey(s->recv_mr), .length = length};
	struct rtsan_recv_wr wr = {.sge = &sge, .nb_sge = 1};

	for (int i = 0; i < NB_RECVS; i++) {
		sge.addr = (uint8_t *)rtsan_mr_addr(s->recv_mr) + i * RECV_BYTES;
		wr.wr_id = (uint64_t)i;
		if (rtsan_post_recv(s->qp, &wr, 1) != 1)
			rt_die("rtsan_post_recv");
	}
}

static _Atomic uint8_t *
ready_byte(const struct server *srv)
{
	return (_Atomic uint8_t *)rtsan_mr_addr(srv->mr[ALL]) + READY_AT;
}

static void
serve_request(struct server *srv, const struct rtsan_event *ev)
{
	struct rtsan_qp_attr attr = {.send_cq = srv->cq, .recv_cq = srv->cq};
	struct offer offer;
	struct rtsan_conn_param param = {
		.private_data = &offer,
		.private_len = sizeof(offer),
	};
	struct served *s = calloc(1, sizeof(*s));

	if (ev->private_data[0] == REFUSE || s == NULL) {
		rtsan_reject(srv->ctx, ev->request, "go away", 7);
		free(s);
		return;
	}
	s->behaviour = ev->private_data[0];
	s->is_ready = s->behaviour != NOT_READY;
	atomic_store(ready_byte(srv), 0);
	attr.context = s;
	if (rtsan_qp_create(srv->ctx, &attr, &s->qp) < 0 ||
	    rtsan_mr_alloc(srv->ctx, NB_RECVS * RECV_BYTES, 0, &s->recv_mr) < 0)
		rt_die("a connection's resources");
	if (s->is_ready)
		post_recvs(s, s->behaviour == SHORT ? 16 : RECV_BYTES);
	for (int i = 0; i < REGIONS; i++) {
		offer.addr[i] = (uint64_t)(uintptr_t)rtsan_mr_addr(srv->mr[i]);
		offer.rkey[i] = rtsan_mr_rkey(srv->mr[i]);
	}
	if (s->behaviour == REVOKE) {
		if (rtsan_mr_alloc(srv->ctx, REGION, RTSAN_REMOTE_PULL | RTSAN_REMOTE_PUSH,
				   &s->revoked) < 0)
			rt_die("rtsan_mr_alloc");
		offer.addr[TO_REVOKE] = (uint64_t)(uintptr_t)rtsan_mr_addr(s->revoked);
		offer.rkey[TO_REVOKE] = rtsan_mr_rkey(s->revoked);
	}
	if (rtsan_accept(srv->ctx, ev->request, s->qp, &param) < 0)
		rt_die("rtsan_accept");
	s->next = srv->list;
	srv->list = s;
}

static void
serve_act(struct server *srv)
{
	struct served **at = &srv->list, *s;

	while ((s = *at) != NULL) {
		if (!s->is_ready && atomic_load(ready_byte(srv)) != 0) {
			s->is_ready = true;
			post_recvs(s, RECV_BYTES);
			atomic_store(ready_byte(srv), 0);
		}
		if (s->act_at != 0 && rt_now_ms() >= s->act_at) {
			s->act_at = 0;
			if (rtsan_mr_dereg(s->revoked) < 0)
				rt_die("rtsan_mr_dereg of a region in use by the peer");
			s->revoked = NULL;
		}
		if (!s->is_over) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		rtsan_qp_destroy(s->qp);
		/* no posted work names it any more */
		if (rtsan_mr_dereg(s->recv_mr) < 0)
			rt_die("rtsan_mr_dereg of receives");
		if (s->revoked != NULL)
			rtsan_mr_dereg(s->revoked);
		free(s);
	}
}

static void
serve_event(struct server *srv, const struct rtsan_event *ev)
{
	struct served *s;

	if (ev->type == RTSAN_EV_CONNECT_REQUEST) {
		serve_request(srv, ev);
		return;
	}
	s = rtsan_qp_context(ev->qp);
	if (ev->type != RTSAN_EV_ESTABLISHED)
		s->is_over = true;
}

static void
take_receives(struct rtsan_cq *cq)
{
	struct served *s;
	struct rtsan_wc wc;

	while (rtsan_cq_poll(cq, &wc, 1) == 1) {
		if (wc.opcode != RTSAN_WC_RECV || wc.status == RTSAN_WC_FLUSHED)
			continue;
		rt_say("receive %s", rtsan_status_name(wc.status));
		s = rtsan_qp_context(wc.qp);
		if (s->revoked != NULL && s->act_at == 0)
			s->act_at = rt_now_ms() + REVOKE_MS;
	}
}

int
errors_serve(const char *spec)
{
	static const uint32_t rights[REGIONS] = {
		[ALL] = RTSAN_REMOTE_PUSH | RTSAN_REMOTE_PULL | RTSAN_REMOTE_ATOMIC,
		[PULL_ONLY] = RTSAN_REMOTE_PULL,
		[PUSH_ONLY] = RTSAN_REMOTE_PUSH,
		[NO_RIGHTS] = 0,
		[TO_REVOKE] = 0,
	};
	const struct timespec pause = {.tv_nsec = 200000};
	struct server srv = {.ctx = NULL};
	struct rtsan_listener *listener;
	struct rtsan_event ev;

	if (rtsan_open(spec, &srv.ctx) < 0)
		rt_die("rtsan_open");
	for (int i = 0; i < REGIONS; i++)
		if (rtsan_mr_alloc(srv.ctx, REGION, rights[i], &srv.mr[i]) < 0)
			rt_die("rtsan_mr_alloc");
	if (rtsan_cq_create(srv.ctx, 4096, &srv.cq) < 0 ||
	    rtsan_listen(srv.ctx, SERVICE, 0xffff, 16, &listener) < 0)
		rt_die("listening");
	rt_say("listening");
	while (!errors_stop) {
		nanosleep(&pause, NULL); /* other processes share the CPU */
		take_receives(srv.cq);
		while (rtsan_event_poll(srv.ctx, &ev) == 1) {
			/* destroying the queue pair would lose its earlier completions */
			take_receives(srv.cq);
			serve_event(&srv, &ev);
		}
		serve_act(&srv);
	}
	for (struct served *s = srv.list; s != NULL; s = s->next)
		s->is_over = true;
	serve_act(&srv);
	rtsan_close(srv.ctx);
	return 0;
}
