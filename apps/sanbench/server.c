/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "mode.h"
#include "port.h"
#include "server.h"

#define BACKLOG 1024

void
san_server_session_error(struct session *s, const char *format, ...)
{
	va_list ap;

	if (s->report.errors++ > 0)
		return;
	va_start(ap, format);
	vsnprintf(s->report.text, sizeof(s->report.text), format, ap);
	va_end(ap);
}

void
san_server_peer_error(struct peer *p, const char *format, ...)
{
	char text[BENCH_TEXT];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	san_server_session_error(p->session, "connection %u: %s", p->index, text);
}

/* ---- control messages of the client ---- */

static void
session_on_ctl_msg(void *owner, const struct ctl_msg *msg, const void *payload)
{
	struct session *s = owner;
	struct peer *p = msg->index < s->hello.nb_conns ? &s->peers[msg->index] : NULL;
	bool is_open = p != NULL && p->is_open;

	(void)payload;
	switch (msg->type) {
	case CTL_PLACED:
		if (!is_open || !san_mode_has_placed(s->mode, s->hello.flags) ||
		    msg->a < p->placed || msg->a - p->looked > p->hello.slots)
			san_server_session_error(s, "the client reports impossible placements");
		else
			p->placed = msg->a;
		break;
	case CTL_CONN_END:
		if (!is_open) {
			san_server_session_error(
				s, "the client ends a connection that it does not have");
			break;
		}
		p->is_ended = true;
		p->end_msgs = msg->a;
		p->end_bytes = msg->b;
		p->end_value = msg->c;
		break;
	case CTL_END:
		s->is_ended = true;
		s->end_value = msg->a;
		s->end_deadline = rte_rdtsc() + san_bench_ticks_of_ms(s->b, SERVER_END_MS);
		break;
	default:
		san_server_session_error(s, "unknown control message %u", msg->type);
	}
}

static void
session_on_ctl_event(void *owner, const struct rtsan_event *ev)
{
	struct session *s = owner;

	if (ev->type == RTSAN_EV_ESTABLISHED)
		return;
	if (!s->is_reported)
		san_server_session_error(s, "the client has disconnected: %s",
					 rtsan_reason_text(ev->reason));
	s->is_dead = true;
}

/* ---- data connections ---- */

int
san_server_peer_post_recv(struct peer *p, uint64_t i)
{
	struct rtsan_sge sge = {
		.addr = p->recv_mem + i * p->recv_stride,
		.length = p->hello.size_max,
	};
	struct rtsan_recv_wr wr = {.wr_id = i, .sge = &sge, .nb_sge = 1};
	int ret;

	if (p->recv_mr == NULL)
		wr.nb_sge = 0;
	else
		sge.lkey = rtsan_mr_lkey(p->recv_mr);
	ret = rtsan_post_recv(p->q.qp, &wr, 1);
	return ret == 1 ? 0 : ret < 0 ? ret :
					-ENOBUFS;
}

void
san_server_peer_on_wc(struct bench_qp *q, const struct rtsan_wc *wc)
{
	struct peer *p = (struct peer *)q;
	struct session *s = p->session;

	if (wc->status != RTSAN_WC_SUCCESS) {
		if (wc->status != RTSAN_WC_FLUSHED)
			san_server_session_error(s, "connection %u: %s: %s", p->index,
						 rtsan_status_name(wc->status),
						 rtsan_status_text(wc->status));
		return;
	}
	if ((s->mode->flags & MODE_RECVS) != 0) {
		p->msgs++;
		p->bytes += wc->byte_len;
	}
	s->mode->on_recv(p, wc, p->recv_mem + wc->wr_id * p->recv_stride);
	if (!q->is_over) /* data may arrive before the event that the connection is up */
		san_server_peer_post_recv(p, wc->wr_id);
}

void
san_server_peer_on_event(struct bench_qp *q, const struct rtsan_event *ev)
{
	struct peer *p = (struct peer *)q;

	if (p->session->mode->peer_event != NULL && p->session->mode->peer_event(p, ev))
		return;
	if (ev->type != RTSAN_EV_ESTABLISHED && !p->session->is_reported)
		san_server_session_error(p->session, "connection %u has ended: %s", p->index,
					 rtsan_reason_text(ev->reason));
}

/* Check the messages in place, and return their slots. */
static bool
peer_step(struct peer *p)
{
	struct session *s = p->session;
	struct ctl_msg msg = {.type = CTL_DONE, .index = p->index};
	bool has_worked = p->looked < p->placed;

	if (s->mode->peer_step != NULL)
		return s->mode->peer_step(p);
	for (; p->looked < p->placed; p->looked++)
		s->mode->on_slot(p, p->looked, san_server_peer_slot(p, p->looked));
	/* for every quarter of the slots, or when the client may wait for the last ones */
	msg.a = p->looked;
	if (p->looked == p->reported ||
	    (p->looked - p->reported < (p->hello.slots + 3u) / 4 && p->looked < p->placed))
		return has_worked;
	if (san_ctl_send(&s->ctl, &msg, NULL) < 0)
		return has_worked;
	p->reported = p->looked;
	return true;
}

/* ---- sessions ---- */

/* Messages may still be pending in another completion queue. */
static bool
is_all_here(const struct session *s)
{
	const struct peer *p;
	uint32_t i;

	for (i = 0; i < s->hello.nb_conns; i++) {
		p = &s->peers[i];
		if (p->is_open && p->seen != NULL && p->seen->count < p->end_msgs)
			return false;
		if (s->mode->peer_is_over != NULL && !s->mode->peer_is_over(p))
			return false;
	}
	return true;
}

static void
session_compare(struct session *s)
{
	struct peer *p;
	uint64_t shared;
	uint32_t i;

	for (i = 0; i < s->hello.nb_conns; i++) {
		p = &s->peers[i];
		if (!p->is_open || !p->is_ended) {
			san_server_session_error(s, "connection %u was not used to its end", i);
			continue;
		}
		s->mode->end(p);
		s->report.msgs += p->end_msgs;
		s->report.bytes += p->end_bytes;
	}
	if (s->shared != NULL) {
		memcpy(&shared, rtsan_mr_addr(s->shared), sizeof(shared));
		if (shared != s->end_value)
			san_server_session_error(
				s, "the shared counter is %" PRIu64 " and not %" PRIu64, shared,
				s->end_value);
	}
}

static bool
session_step(struct session *s)
{
	struct ctl_msg report = {.type = CTL_REPORT, .len = sizeof(s->report)};
	bool has_worked = false;
	uint32_t i;

	for (i = 0; i < s->hello.nb_conns && s->has_turns; i++)
		if (s->peers[i].is_open)
			has_worked |= peer_step(&s->peers[i]);
	if (s->is_reported || s->is_dead)
		return has_worked;
	if (s->is_ended && !s->is_compared &&
	    (is_all_here(s) || rte_rdtsc() > s->end_deadline)) {
		session_compare(s);
		s->is_compared = true;
	}
	/* report an error at once: later errors would only hide it */
	if (s->is_compared || s->report.errors > 0) {
		s->report.rtx = san_port_counter_since(s->b, "rtx", s->rtx_begin);
		san_hist_summarize(&s->lat, &s->report.lat);
		if (san_ctl_send(&s->ctl, &report, &s->report) == 0)
			s->is_reported = true;
	}
	return has_worked;
}

/* Print and count a session that is over. */
static void
session_conclude(const struct session *s)
{
	struct bench_served *served = &s->b->served;

	printf("server: session %u from %s, %s: %" PRIu64 " messages, %" PRIu64 " bytes, ", s->id,
	       s->from, s->mode->name, s->report.msgs, s->report.bytes);
	if (s->report.errors > 0)
		printf("%" PRIu64 " errors: %s\n", s->report.errors, s->report.text);
	else if ((s->hello.flags & HELLO_VERIFY) != 0)
		printf("content verified, no errors\n");
	else
		printf("counts compared, no errors\n");
	fflush(stdout);
	served->sessions++;
	served->msgs += s->report.msgs;
	served->bytes += s->report.bytes;
	if (s->report.errors > 0) {
		served->failed++;
		s->b->has_failed = true;
	}
}

bool
san_server_step(struct server *s)
{
	struct session **at = &s->sessions, *one;
	bool has_worked = false;

	while ((one = *at) != NULL) {
		has_worked |= session_step(one);
		if (!one->is_dead) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		session_conclude(one);
		san_server_accept_free(one);
	}
	return has_worked;
}

int
san_server_start(struct bench *b)
{
	struct server *s = calloc(1, sizeof(*s));
	int ret;

	if (s == NULL)
		return -ENOMEM;
	s->b = b;
	s->on_ctl_msg = session_on_ctl_msg;
	s->on_ctl_event = session_on_ctl_event;
	ret = rtsan_listen(b->ctx, b->conf.service, b->conf.pkey, BACKLOG, &s->listener);
	if (ret < 0) {
		san_bench_fail(b, "can't listen: %s", rtsan_error());
		free(s);
		return ret;
	}
	b->server = s;
	printf("server: listening on service %" PRIu64 "\n", b->conf.service);
	fflush(stdout);
	return 0;
}

void
san_server_stop(struct server *s)
{
	struct session *one;

	if (s == NULL)
		return;
	rtsan_listener_destroy(s->listener);
	while ((one = s->sessions) != NULL) {
		s->sessions = one->next;
		if (one->is_reported) /* the client has the result, and is about to disconnect */
			session_conclude(one);
		san_server_accept_free(one);
	}
	s->b->server = NULL;
	free(s);
}
