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
		CHECK(rtsan_post_recv(s->qp, &wr, 1) == 1);
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
	struct offer offer;
	struct rtsan_conn_param param = {.private_data = &offer, .private_len = sizeof(offer)};
	struct served *s = calloc(1, sizeof(*s));

	if (ev->private_data[0] == REFUSE || s == NULL) {
		rtsan_reject(srv->ctx, ev->request, "go away", 7);
		free(s);
		return;
	}
	s->behaviour = ev->private_data[0];
	s->is_ready = s->behaviour != NOT_READY;
	atomic_store(ready_byte(srv), 0);
	s->qp = rt_make_qp(srv->ctx, srv->cq, 0, s);
	CHECK(rtsan_mr_alloc(srv->ctx, NB_RECVS * RECV_BYTES, 0, &s->recv_mr) == 0);
	if (s->is_ready)
		post_recvs(s, s->behaviour == SHORT ? 16 : RECV_BYTES);
	for (int i = 0; i < REGIONS; i++) {
		offer.addr[i] = (uint64_t)(uintptr_t)rtsan_mr_addr(srv->mr[i]);
		offer.rkey[i] = rtsan_mr_rkey(srv->mr[i]);
	}
	if (s->behaviour == REVOKE) {
		CHECK(rtsan_mr_alloc(srv->ctx, REGION, RTSAN_REMOTE_PULL | RTSAN_REMOTE_PUSH,
				     &s->revoked) == 0);
		offer.addr[TO_REVOKE] = (uint64_t)(uintptr_t)rtsan_mr_addr(s->revoked);
		offer.rkey[TO_REVOKE] = rtsan_mr_rkey(s->revoked);
	}
	CHECK(rtsan_accept(srv->ctx, ev->request, s->qp, &param) == 0);
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
			CHECK(rtsan_mr_dereg(s->revoked) == 0); /* in use by the peer */
			s->revoked = NULL;
		}
		if (!s->is_over) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		rtsan_qp_destroy(s->qp);
		/* no posted work names it any more */
		CHECK(rtsan_mr_dereg(s->recv_mr) == 0);
		if (s->revoked != NULL)
			rtsan_mr_dereg(s->revoked);
		free(s);
	}
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
		[PUSH_ONLY] = RTSAN_REMOTE_PUSH, /* the others have none */
	};
	const struct timespec pause = {.tv_nsec = 200000};
	struct server srv = {.ctx = NULL};
	struct rtsan_listener *listener;
	struct rtsan_event ev;

	CHECK(rtsan_open(spec, &srv.ctx) == 0);
	for (int i = 0; i < REGIONS; i++)
		CHECK(rtsan_mr_alloc(srv.ctx, REGION, rights[i], &srv.mr[i]) == 0);
	CHECK(rtsan_cq_create(srv.ctx, 4096, &srv.cq) == 0);
	CHECK(rtsan_listen(srv.ctx, SERVICE, 0xffff, 16, &listener) == 0);
	rt_say("listening");
	while (!errors_stop) {
		nanosleep(&pause, NULL); /* other processes share the CPU */
		take_receives(srv.cq);
		while (rtsan_event_poll(srv.ctx, &ev) == 1) {
			/* destroying the queue pair would lose its earlier completions */
			take_receives(srv.cq);
			if (ev.type == RTSAN_EV_CONNECT_REQUEST)
				serve_request(&srv, &ev);
			else if (ev.type != RTSAN_EV_ESTABLISHED)
				((struct served *)rtsan_qp_context(ev.qp))->is_over = true;
		}
		serve_act(&srv);
	}
	for (struct served *s = srv.list; s != NULL; s = s->next)
		s->is_over = true;
	serve_act(&srv);
	rtsan_close(srv.ctx);
	return 0;
}
