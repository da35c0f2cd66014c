/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_random.h>

#include "mode.h"

#define POST_BURST  32
#define RETRY_MS    100
#define SECOND_MS   1000
#define CLIENT_WORK (CTL_TX / 2) /* PLACED messages that may be under way at once */

static void
enter(struct client *c, enum client_state state, uint64_t ms)
{
	c->state = state;
	c->deadline = rte_rdtsc() + bench_ticks_of_ms(c->b, ms);
}

/* Orderly end of every connection; on failure at once. */
static void
enter_close(struct client *c)
{
	uint32_t i;

	if (c->end == 0)
		c->end = rte_rdtsc();
	c->rtx = bench_counter(c->b, "rtx") - c->rtx_begin;
	enter(c, CLIENT_CLOSE, c->conf.timeout_ms);
	for (i = 0; i < c->nb_conns && !c->is_failed; i++)
		if (c->conns[i].q.is_up)
			rtsan_disconnect(c->conns[i].q.qp);
}

void
client_fail(struct client *c, const char *format, ...)
{
	va_list ap;

	if (c->is_failed)
		return;
	va_start(ap, format);
	vsnprintf(c->error, sizeof(c->error), format, ap);
	va_end(ap);
	bench_fail(c->b, "%s", c->error);
	c->is_failed = true;
	if (c->state < CLIENT_CLOSE)
		enter_close(c);
}

/* ---- set-up ---- */

static bool
has_credit(const struct client *c)
{
	return (c->mode->flags & MODE_TREE) != 0 || mode_has_placed(c->mode, c->hello.flags);
}

static const char *
event_text(const struct rtsan_event *ev)
{
	switch (ev->type) {
	case RTSAN_EV_UNREACHABLE:
		return "unreachable: nobody answered";
	case RTSAN_EV_REJECTED:
		return "refused the connection";
	default:
		return "ended the connection";
	}
}

/* A connection that was being set up was not, or one that was up has ended. */
static void
on_lost(struct client *c, const struct rtsan_event *ev)
{
	char why[RTSAN_PRIVATE_MAX + 1] = "";

	if (c->state >= CLIENT_CLOSE)
		return;
	if (ev->type == RTSAN_EV_UNREACHABLE && c->state == CLIENT_CTL &&
	    rte_rdtsc() < c->give_up && !c->is_stopped) {
		c->retry_at = rte_rdtsc() + bench_ticks_of_ms(c->b, RETRY_MS);
		return;
	}
	/* A server that says no says why. */
	if (ev->type == RTSAN_EV_REJECTED && ev->private_len > 0)
		snprintf(why, sizeof(why), "%.*s", (int)ev->private_len,
			 (const char *)ev->private_data);
	if (why[0] == '\0' && ev->reason != RTSAN_R_NONE)
		snprintf(why, sizeof(why), "%s", rtsan_reason_text(ev->reason));
	client_fail(c, "%s %s%s%s", c->conf.peer, event_text(ev), why[0] != '\0' ? ": " : "", why);
}

static int
connect_qp(struct client *c, struct bench_qp *q, const struct hello *hello, uint8_t order)
{
	struct rtsan_conn_param param;
	int ret;

	net_param(&c->conf, &param, hello, sizeof(*hello));
	param.order = order;
	ret = rtsan_connect(q->qp, c->conf.peer, c->conf.service, &param);
	if (ret < 0)
		client_fail(c, "%s: can't connect: %s", c->conf.peer, rtsan_error());
	return ret;
}

static void
connect_ctl(struct client *c)
{
	c->hello.kind = HELLO_CTL;
	c->retry_at = 0;
	/* Whole windows are for the data; control is light. */
	connect_qp(c, &c->ctl.q, &c->hello, RTSAN_ORDERED);
}

static void
on_data_event(struct bench_qp *q, const struct rtsan_event *ev)
{
	struct client_conn *conn = (struct client_conn *)q;
	struct client *c = conn->client;

	if (ev->type != RTSAN_EV_ESTABLISHED) {
		c->nb_over++;
		on_lost(c, ev);
		return;
	}
	if (ev->private_len >= sizeof(conn->peer))
		memcpy(&conn->peer, ev->private_data, sizeof(conn->peer));
	if (conn->peer.magic != HELLO_MAGIC)
		client_fail(c, "%s: this is not sanbench", c->conf.peer);
	c->nb_up++;
}

static void
complete(struct client_conn *conn, uint64_t i, const struct rtsan_wc *wc)
{
	struct client *c = conn->client;
	uint32_t slot = (uint32_t)(i % c->hello.slots);
	uint64_t ns = bench_ns(c->b, c->b->now - conn->stamp[slot]);
	const char *wrong = NULL;

	if (c->mode->complete != NULL)
		wrong = c->mode->complete(conn, i, wc);
	if (wrong != NULL)
		client_fail(c, "connection %u, message %" PRIu64 ": %s", conn->index, i, wrong);
	app_hist_add(&c->lat, ns);
	if (c->conf.live)
		app_hist_add(&c->lat_second, ns);
	conn->busy[slot] = 0;
	while (conn->lowest < conn->next && !conn->busy[conn->lowest % c->hello.slots])
		conn->lowest++;
}

static void
on_data_wc(struct bench_qp *q, const struct rtsan_wc *wc)
{
	struct client_conn *conn = (struct client_conn *)q;

	if (wc->status == RTSAN_WC_SUCCESS)
		complete(conn, wc->wr_id, wc);
	else
		client_fail(conn->client, "connection %u, message %" PRIu64 ": %s: %s", conn->index,
			    wc->wr_id, rtsan_status_name(wc->status),
			    rtsan_status_text(wc->status));
}

static int
conn_open(struct client *c, uint16_t index)
{
	struct client_conn *conn = &c->conns[index];
	uint32_t slots = c->hello.slots;
	uint32_t access = (c->mode->flags & MODE_SERVER_PULLS) != 0 ? RTSAN_REMOTE_PULL : 0;
	struct hello hello = c->hello;
	int ret;

	conn->client = c;
	conn->index = index;
	conn->q.on_wc = on_data_wc;
	conn->q.on_event = on_data_event;
	conn->limit = UINT64_MAX;
	if (c->tree != NULL)
		conn->limit = (tree_bytes(c->tree) + hello.size_max - 1) / hello.size_max;
	else if (c->conf.count > 0)
		conn->limit = c->conf.count / c->nb_conns + (index < c->conf.count % c->nb_conns);
	conn->stamp = calloc(slots, sizeof(*conn->stamp));
	conn->busy = calloc(slots, sizeof(*conn->busy));
	if (conn->stamp == NULL || conn->busy == NULL)
		return -ENOMEM;
	ret = rtsan_mr_alloc(c->b->ctx, (size_t)slots * c->stride, access, &conn->mr);
	if (ret < 0)
		return ret;
	conn->mem = rtsan_mr_addr(conn->mr);
	if (c->mode->init != NULL)
		c->mode->init(conn);
	ret = net_qp_open(c->b, &conn->q, c->hello.depth, 1);
	if (ret < 0)
		return ret;
	hello.kind = HELLO_DATA;
	hello.index = index;
	hello.addr = (uint64_t)(uintptr_t)conn->mem;
	hello.rkey = rtsan_mr_rkey(conn->mr);
	return connect_qp(c, &conn->q, &hello, c->conf.order);
}

/* The server knows us now: set up the connections that carry the data. */
static void
connect_data(struct client *c)
{
	uint32_t i;
	int ret;

	enter(c, CLIENT_DATA, c->conf.timeout_ms);
	for (i = 0; i < c->nb_conns && !c->is_failed; i++) {
		ret = conn_open(c, (uint16_t)i);
		if (ret < 0 && !c->is_failed)
			client_fail(c, "connection %u can't be made: %s", i, strerror(-ret));
	}
}

static void
on_ctl_event(void *owner, const struct rtsan_event *ev)
{
	struct client *c = owner;

	if (ev->type == RTSAN_EV_ESTABLISHED)
		connect_data(c);
	else
		on_lost(c, ev);
}

static void
on_ctl_msg(void *owner, const struct ctl_msg *msg, const void *payload)
{
	struct client *c = owner;
	struct client_conn *conn;

	switch (msg->type) {
	case CTL_READY:
		if (c->state == CLIENT_MANIFEST) {
			enter(c, CLIENT_TRAFFIC, 0);
			c->begin = rte_rdtsc();
		}
		break;
	case CTL_DONE:
		if (msg->index >= c->nb_conns)
			break;
		conn = &c->conns[msg->index];
		if (msg->a > conn->credit && msg->a <= conn->next)
			conn->credit = msg->a;
		if ((c->mode->flags & MODE_SERVER_PULLS) != 0)
			conn->lowest = conn->credit;
		break;
	case CTL_REPORT:
		if (msg->len != sizeof(c->report) || c->state >= CLIENT_CLOSE)
			break;
		memcpy(&c->report, payload, sizeof(c->report));
		c->has_report = true;
		if (c->report.errors > 0)
			client_fail(c, "the server found %" PRIu64 " errors: %.*s",
				    c->report.errors, BENCH_TEXT - 64, c->report.text);
		else if (c->state != CLIENT_END)
			client_fail(c, "the server reported too early");
		break;
	}
}

/* ---- traffic ---- */

static bool
may_make(const struct client_conn *conn)
{
	const struct client *c = conn->client;

	return conn->next < conn->limit && conn->next - conn->lowest < c->hello.depth &&
		(!has_credit(c) || conn->next - conn->credit < c->hello.slots);
}

static void
made(struct client_conn *conn, uint32_t len)
{
	struct client *c = conn->client;
	uint32_t slot = (uint32_t)(conn->next % c->hello.slots);

	conn->stamp[slot] = c->b->now;
	conn->busy[slot] = 1;
	conn->next++;
	conn->msgs++;
	conn->bytes += len;
	c->msgs++;
	c->bytes += len;
}

/* Make as many messages as may be under way. Returns how many. */
static uint32_t
pump(struct client_conn *conn)
{
	struct client *c = conn->client;
	struct rtsan_send_wr wr[POST_BURST];
	struct rtsan_sge sge[POST_BURST];
	uint64_t next = conn->next;
	bool is_posted = (c->mode->flags & MODE_SERVER_PULLS) == 0;
	uint32_t skip = c->mode == &mode_tree_send ? 8 : 0;
	int n = 0, done, i;

	for (; n < POST_BURST && may_make(conn); n++, conn->next++) {
		if (c->mode->fill(conn, conn->next, &wr[n], &sge[n]) < 0)
			break;
		wr[n].wr_id = conn->next;
	}
	conn->next = next;
	if (n == 0 || c->is_failed)
		return 0;
	c->b->now = rte_rdtsc();
	done = is_posted ? rtsan_post_send(conn->q.qp, wr, n) : n;
	if (done < 0 && done != -ENOTCONN)
		client_fail(c, "posting failed: %s", rtsan_error());
	for (i = 0; i < done; i++)
		made(conn, sge[i].length - skip);
	return done > 0 ? (uint32_t)done : 0;
}

/* How many messages of the connection are in place, for the server to look at. */
static uint64_t
placed(const struct client_conn *conn)
{
	return (conn->client->mode->flags & MODE_SERVER_PULLS) != 0 ? conn->next : conn->lowest;
}

/* Tell the server, by and by, or at once when nothing else will happen. */
static bool
tell_placed(struct client_conn *conn)
{
	struct client *c = conn->client;
	uint64_t now = placed(conn);
	bool is_due = now - conn->told >= (c->hello.slots + 3u) / 4 || !may_make(conn);
	struct ctl_msg msg = {.type = CTL_PLACED, .index = conn->index, .a = now};

	if (now == conn->told || !is_due || c->ctl.nb_free_tx <= CTL_TX - CLIENT_WORK ||
	    ctl_send(&c->ctl, &msg, NULL) < 0)
		return false;
	conn->told = now;
	return true;
}

static bool
is_time_over(const struct client *c)
{
	/* A count or a tree ends by itself. */
	return c->conf.duration_ms > 0 && c->tree == NULL && c->conf.count == 0 &&
		rte_rdtsc() - c->begin >= bench_ticks_of_ms(c->b, c->conf.duration_ms);
}

static bool
step_traffic(struct client *c)
{
	bool is_active = c->state == CLIENT_TRAFFIC, is_all_made = true, has_worked = false;
	uint32_t i;

	if (c->is_stopped || is_time_over(c))
		is_active = false;
	for (i = 0; i < c->nb_conns && !c->is_failed; i++) {
		if (is_active)
			has_worked |= pump(&c->conns[i]) > 0;
		else
			c->conns[i].limit = c->conns[i].next;
		if (mode_has_placed(c->mode, c->hello.flags))
			has_worked |= tell_placed(&c->conns[i]);
		is_all_made &= c->conns[i].next >= c->conns[i].limit;
	}
	if (is_all_made && c->state == CLIENT_TRAFFIC)
		enter(c, CLIENT_DRAIN, c->conf.timeout_ms);
	return has_worked;
}

static bool
step_drain(struct client *c)
{
	bool has_worked = step_traffic(c);
	struct client_conn *conn;
	uint32_t i;

	for (i = 0; i < c->nb_conns; i++) {
		conn = &c->conns[i];
		if (conn->lowest < conn->next || (has_credit(c) && conn->credit < conn->next))
			return has_worked;
	}
	if (!c->is_failed) {
		c->end = rte_rdtsc();
		enter(c, CLIENT_END, c->conf.timeout_ms);
	}
	return true;
}

static bool
step_manifest(struct client *c)
{
	uint8_t buf[CTL_PAYLOAD];
	size_t at = c->manifest_at;
	struct ctl_msg msg = {.type = CTL_MANIFEST};

	if (c->is_manifest_told)
		return false;
	if (at < tree_entries(c->tree)) {
		msg.len = (uint32_t)tree_manifest(c->tree, &at, buf, sizeof(buf));
	} else {
		msg.type = CTL_MANIFEST_END;
		msg.a = tree_entries(c->tree);
		msg.b = tree_bytes(c->tree);
	}
	if (ctl_send(&c->ctl, &msg, buf) < 0)
		return false;
	c->manifest_at = at;
	c->is_manifest_told = msg.type == CTL_MANIFEST_END;
	return true;
}

static void
step_end(struct client *c)
{
	struct client_conn *conn;
	struct ctl_msg msg;
	uint32_t i;

	for (i = 0; i < c->nb_conns; i++) {
		conn = &c->conns[i];
		msg = (struct ctl_msg){
			.type = CTL_CONN_END,
			.index = conn->index,
			.a = conn->msgs,
			.b = conn->bytes,
			.c = conn->sum,
		};
		if (!conn->is_end_told && ctl_send(&c->ctl, &msg, NULL) < 0)
			return;
		conn->is_end_told = true;
	}
	msg = (struct ctl_msg){.type = CTL_END, .a = c->shared};
	if (!c->is_end_told && ctl_send(&c->ctl, &msg, NULL) == 0)
		c->is_end_told = true;
	if (c->has_report && !c->is_failed)
		enter_close(c);
}

/* ---- end ---- */

static void
release(struct client *c)
{
	uint32_t i;

	for (i = 0; i < c->nb_conns && c->conns != NULL; i++) {
		net_qp_close(&c->conns[i].q);
		if (c->conns[i].mr != NULL)
			rtsan_mr_dereg(c->conns[i].mr);
		free(c->conns[i].stamp);
		free(c->conns[i].busy);
	}
	ctl_close(&c->ctl);
	free(c->conns);
	c->conns = NULL;
	tree_close(c->tree);
	c->tree = NULL;
	c->state = CLIENT_OVER;
}

/* Data connections first; the control connection tells the server that all is over. */
static void
step_close(struct client *c)
{
	uint32_t i;

	if (c->is_failed || rte_rdtsc() > c->deadline) {
		if (!c->is_failed)
			client_fail(c, "%s: disconnecting takes too long", c->conf.peer);
		release(c);
		return;
	}
	for (i = 0; i < c->nb_conns; i++)
		if (!c->conns[i].q.is_over)
			return;
	if (c->ctl.q.is_up && !c->is_bye_said) {
		c->is_bye_said = true;
		rtsan_disconnect(c->ctl.q.qp);
	}
	if (c->ctl.q.is_over)
		release(c);
}

static void
step_connect(struct client *c)
{
	if (c->retry_at != 0 && rte_rdtsc() >= c->retry_at) {
		ctl_close(&c->ctl);
		if (ctl_open(c->b, &c->ctl) == 0)
			connect_ctl(c);
		else
			client_fail(c, "no memory for connections");
	}
	if (c->state == CLIENT_DATA && c->nb_up == c->nb_conns) {
		enter(c, c->tree != NULL ? CLIENT_MANIFEST : CLIENT_TRAFFIC, c->conf.timeout_ms);
		c->begin = rte_rdtsc();
		c->live_at = c->begin + bench_ticks_of_ms(c->b, SECOND_MS);
	}
}

static void
check_deadline(struct client *c)
{
	static const char *const doing[] = {
		[CLIENT_CTL] = "nobody answered, and connecting",
		[CLIENT_DATA] = "connecting",
		[CLIENT_MANIFEST] = "announcing the tree",
		[CLIENT_DRAIN] = "completing what was posted",
		[CLIENT_END] = "comparing results",
	};

	if (c->state < CLIENT_CLOSE && c->state != CLIENT_TRAFFIC && rte_rdtsc() > c->deadline)
		client_fail(c, "%s: %s took more than %u ms", c->conf.peer, doing[c->state],
			    c->conf.timeout_ms);
}

bool
client_step(struct client *c)
{
	bool has_worked = false;

	check_deadline(c);
	switch (c->state) {
	case CLIENT_CTL:
	case CLIENT_DATA:
		step_connect(c);
		break;
	case CLIENT_MANIFEST:
		has_worked = step_manifest(c);
		break;
	case CLIENT_TRAFFIC:
		has_worked = step_traffic(c);
		break;
	case CLIENT_DRAIN:
		has_worked = step_drain(c);
		break;
	case CLIENT_END:
		step_end(c);
		break;
	case CLIENT_CLOSE:
		step_close(c);
		break;
	case CLIENT_OVER:
		break;
	}
	if (c->conf.live && (c->state == CLIENT_TRAFFIC || c->state == CLIENT_DRAIN) &&
	    rte_rdtsc() >= c->live_at)
		report_live(c);
	return has_worked;
}

void
client_stop(struct client *c)
{
	if (c->state < CLIENT_TRAFFIC && !c->is_stopped)
		client_fail(c, "stopped before there was any traffic");
	c->is_stopped = true;
}

/* ---- start ---- */

static void
make_hello(struct client *c)
{
	const struct bench_conf *conf = &c->conf;
	struct hello *h = &c->hello;

	*h = (struct hello){
		.magic = HELLO_MAGIC,
		.mode = c->mode->id,
		.order = conf->order,
		.token = rte_rand(),
		.seed = conf->seed,
		.size_min = conf->size_min,
		.size_max = conf->size_max,
		.depth = (uint16_t)conf->depth,
		.nb_conns = (uint16_t)conf->conns,
	};
	if (conf->verify)
		h->flags |= HELLO_VERIFY;
	if (conf->imm && (c->mode->flags & MODE_SLOTS) != 0)
		h->flags |= HELLO_IMM;
	/* Where slots come back from the server, twice the depth hides the way there and back. */
	h->slots = (uint16_t)(has_credit(c) ? conf->depth * 2 : conf->depth);
}

struct client *
client_start(struct bench *b)
{
	struct client *c = calloc(1, sizeof(*c));
	int ret;

	if (c == NULL) {
		bench_fail(b, "out of memory");
		return NULL;
	}
	c->b = b;
	c->conf = b->conf;
	c->mode = b->conf.mode;
	c->nb_conns = c->conf.conns;
	c->ctl.owner = c;
	c->ctl.on_msg = on_ctl_msg;
	c->ctl.on_event = on_ctl_event;
	app_hist_reset(&c->lat);
	app_hist_reset(&c->lat_second);
	make_hello(c);
	c->stride = net_stride(mode_msg_max(c->mode, c->conf.size_max));
	c->rtx_begin = bench_counter(b, "rtx");
	enter(c, CLIENT_CTL, c->conf.timeout_ms);
	c->give_up = c->deadline;
	if ((c->mode->flags & MODE_TREE) != 0 &&
	    tree_open(c->conf.tree, &c->tree, c->error, sizeof(c->error)) < 0) {
		bench_fail(b, "%s", c->error);
		free(c);
		return NULL;
	}
	c->conns = calloc(c->nb_conns, sizeof(*c->conns));
	ret = c->conns == NULL ? -ENOMEM : ctl_open(b, &c->ctl);
	if (ret < 0) {
		bench_fail(b, "no memory for connections: %s", strerror(-ret));
		client_free(c);
		return NULL;
	}
	connect_ctl(c);
	return c;
}

void
client_free(struct client *c)
{
	if (c == NULL)
		return;
	if (c->state != CLIENT_OVER)
		release(c);
	free(c);
}
