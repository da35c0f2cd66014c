/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The server: sessions of clients. It provides memory, checks what arrives, and reports. Input from
 * clients is not trusted: at worst a client ends its own session. A connection request starts a
 * session, becomes a data connection of one, or is rejected.
 */

#include <stdarg.h>

#include <rte_bitops.h> /* powers of two, since DPDK 23.11 */

#include "bench.h"

#define BACKLOG       1024
#define SESSIONS_MAX  256
#define SERVER_END_MS 5000 /* time limit for missing messages after the client's end */

struct session {
	struct session *next;
	struct bench *b;
	const struct bench_mode *mode;
	struct hello hello;
	char from[48];
	uint32_t id;
	struct ctl ctl;
	struct peer *peers;
	uint64_t memory;     /* memory allocated for the session */
	struct rtsan_mr *mr; /* slots of all connections */
	struct rtsan_mr *shared;
	bool is_compared, is_reported, is_dead;
	uint64_t end_value;
	uint64_t end_deadline; /* deadline for missing messages; 0: the client goes on */
	uint64_t rtx_begin;
	struct ctl_report report;
};

void
san_server_error(struct session *s, const char *format, ...)
{
	va_list ap;

	if (s->report.errors++ > 0)
		return;
	va_start(ap, format);
	vsnprintf(s->report.text, sizeof(s->report.text), format, ap);
	va_end(ap);
}

/* ---- control messages of the client ---- */

static void
session_on_ctl_msg(void *owner, const struct ctl_msg *msg, const void *payload __rte_unused)
{
	struct session *s = owner;
	struct peer *p = msg->index < s->hello.nb_conns ? &s->peers[msg->index] : NULL;
	bool is_open = p != NULL && p->session != NULL;

	switch (msg->type) {
	case CTL_PLACED:
		if (!is_open || !san_mode_has_placed(s->mode, &s->hello) ||
		    msg->a < p->placed || msg->a - p->looked > p->q.hello.slots)
			san_server_error(s, "the client reports impossible placements");
		else
			p->placed = msg->a;
		break;
	case CTL_CONN_END:
		if (!is_open) {
			san_server_error(s, "the client ends a connection that it does not have");
			break;
		}
		p->is_ended = true;
		p->end_msgs = msg->a;
		p->end_bytes = msg->b;
		p->end_value = msg->c;
		break;
	case CTL_END:
		s->end_value = msg->a;
		s->end_deadline = rte_rdtsc() + san_bench_ticks_of_ms(s->b, SERVER_END_MS);
		break;
	default:
		san_server_error(s, "unknown control message %u", msg->type);
	}
}

static void
session_on_ctl_event(struct bench_qp *q, const struct rtsan_event *ev)
{
	struct session *s = ((struct ctl *)q)->owner;

	if (ev->type == RTSAN_EV_ESTABLISHED)
		return;
	if (!s->is_reported)
		san_server_error(s, "the client has disconnected: %s",
				 rtsan_reason_text(ev->reason));
	s->is_dead = true;
}

/* ---- data connections ---- */

/* Post receive *i* of the data connection; that of an immediate has no bytes. */
static int
peer_post_recv(struct peer *p, uint64_t i)
{
	uint32_t len = (p->session->mode->flags & MODE_RECVS) != 0 ? p->q.hello.size_max : 0;
	uint64_t off = i * san_net_stride(&p->q.hello);

	return san_net_post_recv(&p->q, i, len != 0 ? p->q.mem + off : NULL, len);
}

static void
peer_on_wc(struct bench_qp *q, const struct rtsan_wc *wc)
{
	struct peer *p = (struct peer *)q;
	struct session *s = p->session;

	if (wc->status != RTSAN_WC_SUCCESS) {
		if (wc->status != RTSAN_WC_FLUSHED)
			san_server_peer_error(p, "%s: %s", rtsan_status_name(wc->status),
					      rtsan_status_text(wc->status));
		return;
	}
	if ((s->mode->flags & MODE_RECVS) != 0) {
		p->msgs++;
		p->bytes += wc->byte_len;
	}
	s->mode->on_recv(p, wc, q->mem + wc->wr_id * san_net_stride(&q->hello));
	if (!q->is_over) /* data may arrive before the event that the connection is up */
		peer_post_recv(p, wc->wr_id);
}

static void
peer_on_event(struct bench_qp *q, const struct rtsan_event *ev)
{
	struct peer *p = (struct peer *)q;

	if (p->session->mode->on_event != NULL && p->session->mode->on_event(q, ev))
		return;
	if (ev->type != RTSAN_EV_ESTABLISHED && !p->session->is_reported)
		san_server_error(p->session, "connection %u has ended: %s", p->q.hello.index,
				 rtsan_reason_text(ev->reason));
}

/* Check the messages in place, and return their slots. */
static bool
peer_step(struct peer *p)
{
	struct session *s = p->session;
	struct ctl_msg msg = {.type = CTL_DONE, .index = p->q.hello.index};
	bool has_worked = p->looked < p->placed;

	if (s->mode->step != NULL) {
		has_worked = s->mode->step(&p->q, p->is_ended ? 0 : UINT64_MAX);
		if (p->q.did.error != NULL)
			san_server_peer_error(p, "%s", p->q.did.error);
		return has_worked;
	}
	for (; p->looked < p->placed; p->looked++)
		s->mode->on_slot(p, p->looked, san_net_slot_at(&p->q, p->looked));
	/* for every quarter of the slots, or when the client may wait for the last ones */
	msg.a = p->looked;
	if (p->looked == p->reported ||
	    (p->looked - p->reported < (p->q.hello.slots + 3u) / 4 && p->looked < p->placed))
		return has_worked;
	if (san_net_ctl_send(&s->ctl, &msg, NULL) < 0)
		return has_worked;
	p->reported = p->looked;
	return true;
}

/* ---- connection requests ---- */

static void
peer_close(struct peer *p)
{
	san_net_qp_close(&p->q);
	free(p->seen);
	memset(p, 0, sizeof(*p));
}

static void
session_free(struct session *s)
{
	uint32_t i;

	for (i = 0; i < s->hello.nb_conns && s->peers != NULL; i++)
		peer_close(&s->peers[i]);
	san_net_qp_close(&s->ctl.q);
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
	const struct bench_mode *m = san_mode_find(h->mode);

	if (ev->private_len < sizeof(*h) || h->magic != HELLO_MAGIC)
		return "not a sanbench client, or of another version";
	if (m == NULL)
		return "this mode is unknown here";
	if (h->size_min == 0 || h->size_min > h->size_max || h->size_max > RTSAN_LENGTH_MAX - 64 ||
	    h->depth == 0 || h->slots < h->depth || h->slots > 4 * h->depth ||
	    !rte_is_power_of_2(h->slots) || h->nb_conns == 0 || h->nb_conns > BENCH_CONNS_MAX ||
	    h->index >= h->nb_conns)
		return "sizes or numbers are out of range";
	if ((h->flags & HELLO_IMM) != 0 && m->on_recv == NULL)
		return "this mode has no immediates";
	return m->check != NULL ? m->check(h) : NULL;
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
	uint64_t bytes = s->hello.nb_conns * san_net_slots_bytes(&s->hello);

	if (s->mode->open != NULL) /* receives, and own requests */
		return is_affordable(s, 3 * bytes) ? 0 : -1;
	if (s->mode->rights == 0)
		return 0;
	if (!is_affordable(s, bytes))
		return -1;
	return rtsan_mr_alloc(s->b->ctx, bytes, s->mode->rights, &s->mr);
}

/* Create a session. NULL, or what is wrong. */
static const char *
accept_ctl(struct bench *b, const struct rtsan_event *ev, const struct hello *h)
{
	const struct welcome w = {.magic = HELLO_MAGIC};
	const char *wrong = "out of memory";
	struct session *s;
	uint32_t nb = 0;

	for (s = b->sessions; s != NULL; s = s->next) {
		if (s->hello.token == h->token)
			return "this session exists already";
		nb++;
	}
	if (nb >= SESSIONS_MAX)
		return "too many sessions";
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return wrong;
	s->b = b;
	s->mode = san_mode_find(h->mode);
	s->hello = *h;
	s->id = ++b->nb_sessions;
	s->ctl.owner = s;
	s->ctl.on_msg = session_on_ctl_msg;
	s->ctl.q.on_event = session_on_ctl_event;
	s->rtx_begin = san_port_rtx(b, 0);
	memcpy(s->from, ev->peer, sizeof(s->from));
	s->peers = calloc(h->nb_conns, sizeof(*s->peers));
	if (s->peers == NULL || san_net_ctl_open(b, &s->ctl) < 0)
		goto fail;
	if ((s->mode->flags & MODE_SHARED) != 0 &&
	    rtsan_mr_alloc(b->ctx, 64, s->mode->rights, &s->shared) < 0)
		goto fail;
	wrong = "no memory for that (--memory)";
	if (session_open_slots(s) < 0)
		goto fail;
	wrong = "accepting failed";
	if (san_net_accept(&s->ctl.q, ev->request, &w) < 0)
		goto fail;
	s->next = b->sessions;
	b->sessions = s;
	return NULL;
fail:
	session_free(s);
	return wrong;
}

static int
peer_open_default(struct peer *p)
{
	struct session *s = p->session;
	const struct hello *h = &p->q.hello;
	bool has_bytes = (s->mode->flags & MODE_RECVS) != 0;
	uint32_t i, rq = 0;
	uint64_t bytes;

	/* receives: one per message in flight, and as many again to cover the server's delay */
	if (has_bytes || (h->flags & HELLO_IMM) != 0) {
		rq = s->b->conf.rq != 0 ? s->b->conf.rq : 2u * h->depth;
		p->seen = calloc(1, sizeof(*p->seen));
		if (p->seen == NULL)
			return -1;
	}
	bytes = (uint64_t)rq * san_net_stride(h);
	if (has_bytes &&
	    (!is_affordable(s, bytes) || rtsan_mr_alloc(s->b->ctx, bytes, 0, &p->q.mr) < 0))
		return -1;
	if (has_bytes)
		p->q.mem = rtsan_mr_addr(p->q.mr);
	else if (s->mr != NULL)
		p->q.mem = (uint8_t *)rtsan_mr_addr(s->mr) + h->index * san_net_slots_bytes(h);
	p->q.on_wc = peer_on_wc;
	if (san_net_qp_open(&p->q, 1, RTE_MAX(rq, 1u), rq) < 0)
		return -1;
	for (i = 0; i < rq; i++)
		if (peer_post_recv(p, i) < 0)
			return -1;
	return 0;
}

static int
peer_open(struct session *s, struct peer *p, const struct hello *h)
{
	int ret;

	p->session = s;
	p->report = &s->report;
	p->q.b = s->b;
	p->q.is_server = true;
	p->q.hello = *h;
	if ((s->mode->flags & MODE_BYTES) != 0)
		p->q.stream = &s->b->conf.stream;
	p->q.on_event = peer_on_event;
	ret = s->mode->open != NULL ? s->mode->open(&p->q) : peer_open_default(p);
	if (ret == 0 && s->mode->serve != NULL)
		s->mode->serve(&p->q);
	if (ret < 0)
		peer_close(p);
	return ret;
}

/* Parameters that determine memory were checked when the session began: they must be the same. */
static bool
hello_is_alike(const struct hello *a, const struct hello *b)
{
	return memcmp(a->mode, b->mode, sizeof(a->mode)) == 0 && a->nb_conns == b->nb_conns &&
		a->size_min == b->size_min && a->size_max == b->size_max && a->depth == b->depth &&
		a->slots == b->slots;
}

static const char *
accept_data(struct bench *b, const struct rtsan_event *ev, const struct hello *h)
{
	struct welcome w = {.magic = HELLO_MAGIC};
	struct session *s = b->sessions;
	struct peer *p;

	while (s != NULL && s->hello.token != h->token)
		s = s->next;
	if (s == NULL || !hello_is_alike(h, &s->hello))
		return "no session of this kind";
	p = &s->peers[h->index];
	if (p->session != NULL && s->mode == &mode_connect) {
		san_mode_connect_again(p, ev->request);
		return NULL;
	}
	if (p->session != NULL)
		return "this connection exists already";
	if (peer_open(s, p, h) < 0)
		return "no memory for that (--memory)";
	if (s->mr != NULL) {
		w.addr = (uint64_t)(uintptr_t)p->q.mem;
		w.rkey = rtsan_mr_rkey(s->mr);
	}
	if (s->shared != NULL) {
		w.shared_addr = (uint64_t)(uintptr_t)rtsan_mr_addr(s->shared);
		w.shared_rkey = rtsan_mr_rkey(s->shared);
	}
	if (san_net_accept(&p->q, ev->request, &w) < 0) {
		peer_close(p);
		return "accepting failed";
	}
	return NULL;
}

void
san_server_accept_request(struct bench *b, const struct rtsan_event *ev)
{
	const char *wrong = "no server here";
	struct hello h;

	memcpy(&h, ev->private_data, sizeof(h));
	if (b->listener != NULL) {
		wrong = hello_wrong(ev, &h);
		if (wrong == NULL)
			wrong = h.kind == HELLO_CTL ? accept_ctl(b, ev, &h) :
						      accept_data(b, ev, &h);
	}
	if (wrong != NULL)
		rtsan_reject(b->ctx, ev->request, wrong, (uint16_t)strlen(wrong));
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
		if (p->session == NULL)
			continue;
		if ((p->seen != NULL && p->seen->count < p->end_msgs) ||
		    (s->mode->is_over != NULL && !s->mode->is_over(&p->q)))
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
		if (p->session == NULL || !p->is_ended) {
			san_server_error(s, "connection %u was not used to its end", i);
			continue;
		}
		s->mode->end(p);
		s->report.msgs += p->end_msgs;
		s->report.bytes += p->end_bytes;
	}
	if (s->shared != NULL) {
		memcpy(&shared, rtsan_mr_addr(s->shared), sizeof(shared));
		if (shared != s->end_value)
			san_server_error(s, "the shared counter is %" PRIu64 " and not %" PRIu64,
					 shared, s->end_value);
	}
}

static bool
session_step(struct session *s)
{
	struct ctl_msg report = {.type = CTL_REPORT, .len = sizeof(s->report)};
	bool has_turns = s->mode->step != NULL || san_mode_has_placed(s->mode, &s->hello);
	bool has_worked = false;
	uint32_t i;

	for (i = 0; i < s->hello.nb_conns && has_turns; i++)
		if (s->peers[i].session != NULL)
			has_worked |= peer_step(&s->peers[i]);
	if (s->is_reported || s->is_dead)
		return has_worked;
	if (s->end_deadline != 0 && !s->is_compared &&
	    (is_all_here(s) || rte_rdtsc() > s->end_deadline)) {
		session_compare(s);
		s->is_compared = true;
	}
	/* report an error at once: later errors would only hide it */
	if (s->is_compared || s->report.errors > 0) {
		s->report.rtx = san_port_rtx(s->b, s->rtx_begin);
		if (san_net_ctl_send(&s->ctl, &report, &s->report) == 0)
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
	served->failed += s->report.errors > 0;
	s->b->has_failed |= s->report.errors > 0;
}

bool
san_server_step(struct bench *b)
{
	struct session **at = &b->sessions, *one;
	bool has_worked = false;

	while ((one = *at) != NULL) {
		has_worked |= session_step(one);
		if (!one->is_dead) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		session_conclude(one);
		session_free(one);
	}
	return has_worked;
}

int
san_server_start(struct bench *b)
{
	int ret = rtsan_listen(b->ctx, b->conf.service, b->conf.conn.pkey, BACKLOG, &b->listener);

	if (ret < 0) {
		san_bench_fail(b, "can't listen: %s", rtsan_error());
		return ret;
	}
	b->nb_sessions = 0;
	printf("server: listening on service %" PRIu64 "\n", b->conf.service);
	fflush(stdout);
	return 0;
}

void
san_server_stop(struct bench *b)
{
	struct session *one;

	rtsan_listener_destroy(b->listener);
	b->listener = NULL;
	while ((one = b->sessions) != NULL) {
		b->sessions = one->next;
		if (one->is_reported) /* the client has the result, and is about to disconnect */
			session_conclude(one);
		session_free(one);
	}
}
