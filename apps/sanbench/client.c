/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdarg.h>

#include <rte_bitops.h> /* powers of two, since DPDK 23.11 */
#include <rte_random.h>

#include "bench.h"

#define RETRY_MS       100
#define CONNECTING_MAX 256 /* connections that are set up at a time */

void
san_client_enter(struct client *c, enum client_state state)
{
	c->state = state;
	c->deadline = rte_rdtsc() + san_bench_ticks_of_ms(c->b, c->conf.timeout_ms);
}

/* Disconnect all connections; after a failure abort them. */
static void
enter_close(struct client *c)
{
	uint32_t i;

	if (c->end == 0)
		c->end = rte_rdtsc();
	c->rtx = san_port_rtx(c->b, c->rtx_begin);
	san_client_enter(c, CLIENT_CLOSE);
	for (i = 0; i < c->hello.nb_conns && !c->is_failed; i++)
		if (c->conns[i].q.is_up)
			rtsan_disconnect(c->conns[i].q.qp);
}

void
san_client_fail(struct client *c, const char *format, ...)
{
	va_list ap;

	if (c->is_failed)
		return;
	va_start(ap, format);
	vsnprintf(c->error, sizeof(c->error), format, ap);
	va_end(ap);
	san_bench_fail(c->b, "%s", c->error);
	c->is_failed = true;
	if (c->state < CLIENT_CLOSE)
		enter_close(c);
}

/* ---- set-up ---- */

/* The set-up of a connection failed, or a connection ended. */
static void
on_lost(struct client *c, const struct rtsan_event *ev)
{
	const char *what = "ended the connection";
	char why[RTSAN_PRIVATE_MAX + 1] = "";

	if (c->state >= CLIENT_CLOSE)
		return;
	if (ev->type == RTSAN_EV_UNREACHABLE && c->state == CLIENT_CTL &&
	    rte_rdtsc() < c->deadline && !c->is_stopped) {
		c->retry_at = rte_rdtsc() + san_bench_ticks_of_ms(c->b, RETRY_MS);
		return;
	}
	if (ev->type == RTSAN_EV_UNREACHABLE)
		what = "unreachable: no answer";
	else if (ev->type == RTSAN_EV_REJECTED)
		what = "refused the connection";
	/* a server that rejects sends the reason */
	if (ev->type == RTSAN_EV_REJECTED && ev->private_len > 0)
		snprintf(why, sizeof(why), "%.*s", (int)ev->private_len,
			 (const char *)ev->private_data);
	if (why[0] == '\0' && ev->reason != RTSAN_R_NONE)
		snprintf(why, sizeof(why), "%s", rtsan_reason_text(ev->reason));
	san_client_fail(c, "%s %s%s%s", c->conf.peer, what, why[0] != '\0' ? ": " : "", why);
}

static void
connect_ctl(struct client *c)
{
	c->ctl.q.hello = c->hello;
	c->ctl.q.hello.kind = HELLO_CTL;
	c->retry_at = 0;
	if (san_net_connect(&c->ctl.q, &c->conf) < 0)
		san_client_fail(c, "%s: can't connect: %s", c->conf.peer, rtsan_error());
}

static void
on_data_event(struct bench_qp *q, const struct rtsan_event *ev)
{
	struct client_conn *conn = (struct client_conn *)q;
	struct client *c = conn->client;

	if (c->state != CLIENT_DATA && c->mode->on_event != NULL && c->mode->on_event(q, ev))
		return;
	if (ev->type != RTSAN_EV_ESTABLISHED) {
		on_lost(c, ev);
		return;
	}
	if (ev->private_len >= sizeof(conn->peer))
		memcpy(&conn->peer, ev->private_data, sizeof(conn->peer));
	if (conn->peer.magic != HELLO_MAGIC)
		san_client_fail(c, "%s: this is not sanbench", c->conf.peer);
	c->nb_up++;
}

/*
 * True if all messages of a slot are equal, so that prepared work requests can be posted again.
 * With turns the work requests of many connections would not fit into the cache.
 */
static bool
client_is_same_version(const struct client *c)
{
	return (c->mode->flags & MODE_SAME) != 0 && c->hello.flags == 0 &&
		c->hello.size_min == c->hello.size_max && c->conf.turns == 0 &&
		(c->hello.batch == 0 || c->hello.slots % c->hello.batch == 0);
}

/* Create the slots, and a queue pair for as many messages. */
static int
conn_open_slots(struct client_conn *conn)
{
	struct client *c = conn->client;
	uint32_t prepared = client_is_same_version(c) ? c->hello.slots : 0, depth = c->hello.depth;
	int ret = san_net_alloc(&conn->q, 0, prepared * (sizeof(*conn->wrs) + sizeof(*conn->sges)));

	if (ret < 0)
		return ret;
	if (prepared != 0) {
		conn->wrs = conn->q.work;
		conn->sges = (struct rtsan_sge *)(conn->wrs + prepared);
	}
	conn->q.on_wc = san_client_traffic_on_wc;
	conn->q.mem = (uint8_t *)rtsan_mr_addr(c->mr) +
		conn->q.hello.index * san_net_slots_bytes(&c->hello);
	if (c->mode->init != NULL)
		c->mode->init(&conn->q);
	/* with turns all connections share the limit of messages in flight */
	if (c->conf.turns > 0)
		return san_net_qp_open(&conn->q, depth, 1,
				       conn->q.hello.index == 0 ? c->conf.hello.depth : 0);
	return san_net_qp_open(&conn->q, depth, 1, depth + 1);
}

static int
conn_open(struct client *c, uint16_t index)
{
	struct client_conn *conn = &c->conns[index];
	uint32_t nb = c->hello.nb_conns;
	int ret;

	conn->client = c;
	conn->q.b = c->b;
	conn->q.on_event = on_data_event;
	conn->q.lat = &c->lat;
	conn->q.hello = c->hello;
	conn->q.hello.kind = HELLO_DATA;
	conn->q.hello.index = index;
	if ((c->mode->flags & MODE_BYTES) != 0)
		conn->q.stream = &c->conf.stream;
	conn->limit = UINT64_MAX;
	if (c->conf.count > 0)
		conn->limit = c->conf.count / nb + (index < c->conf.count % nb);
	ret = c->mode->open != NULL ? c->mode->open(&conn->q) : conn_open_slots(conn);
	return ret < 0 ? ret : san_net_connect(&conn->q, &c->conf);
}

static void
client_on_ctl_event(struct bench_qp *q, const struct rtsan_event *ev)
{
	struct client *c = ((struct ctl *)q)->owner;

	if (ev->type != RTSAN_EV_ESTABLISHED) {
		on_lost(c, ev);
		return;
	}
	if (c->mode->open == NULL) { /* one region for the slots of all connections */
		if (rtsan_mr_alloc(c->b->ctx, c->hello.nb_conns * san_net_slots_bytes(&c->hello), 0,
				   &c->mr) < 0) {
			san_client_fail(c, "no memory for the messages");
			return;
		}
		c->lkey = rtsan_mr_lkey(c->mr);
	}
	san_client_enter(c, CLIENT_DATA);
}

static void
client_on_ctl_msg(void *owner, const struct ctl_msg *msg, const void *payload)
{
	struct client *c = owner;
	struct client_conn *conn;

	switch (msg->type) {
	case CTL_DONE:
		if (msg->index >= c->hello.nb_conns)
			break;
		conn = &c->conns[msg->index];
		if (msg->a > conn->credit && msg->a <= conn->q.did.msgs)
			conn->credit = msg->a;
		break;
	case CTL_REPORT:
		if (msg->len != sizeof(c->report) || c->state >= CLIENT_CLOSE)
			break;
		memcpy(&c->report, payload, sizeof(c->report));
		c->has_report = true;
		if (c->report.errors > 0)
			san_client_fail(c, "the server found %" PRIu64 " errors: %.*s",
					c->report.errors, BENCH_TEXT - 64, c->report.text);
		else if (c->state != CLIENT_END)
			san_client_fail(c, "the server reported too early");
		break;
	}
}

/* ---- end ---- */

static void
step_end(struct client *c)
{
	for (; c->nb_ends <= c->hello.nb_conns; c->nb_ends++) {
		struct ctl_msg msg = {.type = CTL_END, .a = c->shared};

		if (c->nb_ends < c->hello.nb_conns) {
			const struct bench_did *did = &c->conns[c->nb_ends].q.did;

			msg = (struct ctl_msg){
				.type = CTL_CONN_END,
				.index = (uint16_t)c->nb_ends,
				.a = did->msgs,
				.b = did->bytes,
				.c = did->received,
			};
		}
		if (san_net_ctl_send(&c->ctl, &msg, NULL) < 0)
			return;
	}
	if (c->has_report && !c->is_failed)
		enter_close(c);
}

/* ---- disconnect ---- */

static void
client_release(struct client *c)
{
	uint32_t i;

	for (i = 0; i < c->hello.nb_conns && c->conns != NULL; i++)
		san_net_qp_close(&c->conns[i].q);
	if (c->mr != NULL)
		rtsan_mr_dereg(c->mr);
	c->mr = NULL;
	san_net_qp_close(&c->ctl.q);
	free(c->conns);
	c->conns = NULL;
	c->state = CLIENT_OVER;
}

/* Disconnect data connections first: the end of the control connection ends the session. */
static void
step_close(struct client *c)
{
	uint32_t i;

	if (c->is_failed || rte_rdtsc() > c->deadline) {
		if (!c->is_failed)
			san_client_fail(c, "%s: disconnecting takes too long", c->conf.peer);
		client_release(c);
		return;
	}
	for (i = 0; i < c->hello.nb_conns; i++)
		if (!c->conns[i].q.is_over)
			return;
	if (c->ctl.q.is_up && !c->is_bye_said) {
		c->is_bye_said = true;
		rtsan_disconnect(c->ctl.q.qp);
	}
	if (c->ctl.q.is_over)
		client_release(c);
}

/* Connect the control connection, again if need be, then the others, some at a time. */
static void
step_connect(struct client *c)
{
	int ret;

	if (c->retry_at != 0 && rte_rdtsc() >= c->retry_at) {
		san_net_qp_close(&c->ctl.q);
		if (san_net_ctl_open(c->b, &c->ctl) == 0)
			connect_ctl(c);
		else
			san_client_fail(c, "no memory for connections");
	}
	while (c->state == CLIENT_DATA && c->nb_made < c->hello.nb_conns &&
	       c->nb_made - c->nb_up < CONNECTING_MAX) {
		ret = conn_open(c, (uint16_t)c->nb_made++);
		if (ret < 0)
			san_client_fail(c, "connection %u can't be made: %s (%s)", c->nb_made - 1,
					strerror(-ret), rtsan_error());
	}
	if (c->state == CLIENT_DATA && c->nb_up == c->hello.nb_conns) {
		san_report_memory(&c->memory_up);
		san_client_enter(c, CLIENT_TRAFFIC);
		c->begin = rte_rdtsc();
		c->live_at = c->begin + c->b->hz;
	}
}

static void
check_deadline(struct client *c)
{
	static const char *const doing[] = {
		[CLIENT_CTL] = "connecting to the server",
		[CLIENT_DATA] = "connecting",
		[CLIENT_DRAIN] = "completing what was posted",
		[CLIENT_END] = "comparing results",
	};

	if (c->state < CLIENT_CLOSE && c->state != CLIENT_TRAFFIC && rte_rdtsc() > c->deadline)
		san_client_fail(c, "%s: %s took more than %u ms", c->conf.peer, doing[c->state],
				c->conf.timeout_ms);
}

bool
san_client_step(struct client *c)
{
	bool has_worked = false;

	check_deadline(c);
	switch (c->state) {
	case CLIENT_CTL:
	case CLIENT_DATA:
		step_connect(c);
		break;
	case CLIENT_TRAFFIC:
		has_worked = san_client_traffic_step(c);
		break;
	case CLIENT_DRAIN:
		has_worked = san_client_traffic_drain(c);
		break;
	case CLIENT_END:
		/* mode rpc: the server may still send requests */
		san_client_traffic_step_mode(c, false);
		step_end(c);
		break;
	case CLIENT_CLOSE:
		step_close(c);
		break;
	default:
		break;
	}
	if (c->conf.live && (c->state == CLIENT_TRAFFIC || c->state == CLIENT_DRAIN) &&
	    rte_rdtsc() >= c->live_at)
		san_report_live(c);
	return has_worked;
}

void
san_client_stop(struct client *c)
{
	if (c->state < CLIENT_TRAFFIC && !c->is_stopped)
		san_client_fail(c, "stopped before there was any traffic");
	c->is_stopped = true;
}

/* ---- start ---- */

void
san_client_hello(const struct bench_conf *conf, struct hello *h)
{
	const struct bench_mode *mode = conf->mode;

	*h = conf->hello;
	h->magic = HELLO_MAGIC;
	h->order = conf->conn.order;
	memcpy(h->mode, mode->name, sizeof(h->mode));
	if (conf->verify)
		h->flags |= HELLO_VERIFY;
	if (conf->imm && (mode->flags & MODE_SLOTS) != 0)
		h->flags |= HELLO_IMM;
	if (conf->both)
		h->flags |= HELLO_BOTH;
	/* with turns all connections together have the depth of one */
	if (conf->turns > 0 && (uint64_t)conf->hello.nb_conns * conf->turns > conf->hello.depth)
		h->depth = (uint16_t)conf->turns;
	/* if the server returns slots, twice the depth hides its latency */
	h->slots = (uint16_t)rte_align32pow2(h->depth * (san_mode_has_placed(mode, h) ? 2u : 1u));
}

void
san_client_start(struct bench *b)
{
	struct client *c = calloc(1, sizeof(*c));
	int ret;

	san_client_free(b->client);
	b->client = c;
	if (c == NULL) {
		san_bench_fail(b, "out of memory");
		return;
	}
	c->b = b;
	c->conf = b->conf;
	c->mode = b->conf.mode;
	c->ctl.owner = c;
	c->ctl.on_msg = client_on_ctl_msg;
	c->ctl.q.on_event = client_on_ctl_event;
	san_client_hello(&c->conf, &c->hello);
	c->hello.token = rte_rand();
	c->has_placed = san_mode_has_placed(c->mode, &c->hello);
	c->rtx_begin = san_port_rtx(b, 0);
	san_report_memory(&c->memory_begin);
	san_client_enter(c, CLIENT_CTL);
	c->conns = calloc(c->hello.nb_conns, sizeof(*c->conns));
	ret = c->conns == NULL ? -ENOMEM : san_net_ctl_open(b, &c->ctl);
	if (ret < 0) {
		san_bench_fail(b, "no room for connections: %s",
			       c->conns == NULL ? strerror(-ret) : rtsan_error());
		san_client_free(c);
		b->client = NULL;
		return;
	}
	connect_ctl(c);
}

void
san_client_free(struct client *c)
{
	if (c == NULL)
		return;
	if (c->state < CLIENT_OVER)
		client_release(c);
	free(c);
}
