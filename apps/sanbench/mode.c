/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The list of modes, and those that need little code: messages through slots (send, push, incast,
 * pull, atomic), and connections without traffic.
 */

#include "bench.h"

/* Flags of a push or send according to the settings. */
static uint8_t
mode_wr_flags(const struct bench_conf *conf)
{
	static const uint8_t flags[] = {
		[BENCH_SOLICIT_ALWAYS] = RTSAN_WR_SOLICITED,
		[BENCH_SOLICIT_NEVER] = RTSAN_WR_UNSOLICITED,
	};

	return RTSAN_WR_SIGNALED | flags[conf->solicit];
}

/*
 * ---- send: into the server's receives ----
 *
 * A message of 8 bytes or more starts with its number, so that unordered connections can be checked
 * as well.
 */

static const char *
send_check(const struct hello *h)
{
	if ((h->flags & HELLO_VERIFY) != 0 && h->order == RTSAN_UNORDERED && h->size_min < 8)
		return "--size: unordered sends that are verified need at least 8 bytes";
	return NULL;
}

static void
send_fill(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr)
{
	const struct hello *h = &c->q.hello;

	san_net_fill(h, false, i, 0, wr->sge->addr, wr->sge->length);
	if (wr->sge->length >= sizeof(i))
		memcpy(wr->sge->addr, &i, sizeof(i));
	wr->opcode = RTSAN_WR_SEND;
	wr->flags = mode_wr_flags(&c->client->conf);
}

static void
send_on_recv(struct peer *p, const struct rtsan_wc *wc, const uint8_t *buf)
{
	const struct hello *h = &p->q.hello;
	uint64_t i = p->seen->count, skip = 0;
	int64_t wrong;

	if (wc->byte_len >= sizeof(i)) {
		memcpy(&i, buf, sizeof(i));
		skip = sizeof(i);
	}
	if (h->order != RTSAN_UNORDERED && i != p->seen->base)
		san_server_peer_error(p, "message %" PRIu64 " came in place of %" PRIu64, i,
				      p->seen->base);
	if (!san_content_seen_add(p->seen, i)) {
		san_server_peer_error(p, "message %" PRIu64 " came twice", i);
		return;
	}
	if ((h->flags & HELLO_VERIFY) == 0)
		return;
	if (wc->byte_len != san_content_size(h, i)) {
		san_server_peer_error(p, "message %" PRIu64 " has %u bytes", i, wc->byte_len);
		return;
	}
	wrong = san_content_check(h, false, i, skip, buf + skip, wc->byte_len - skip);
	if (wrong >= 0)
		san_server_peer_error(p, "message %" PRIu64 " is wrong at byte %" PRIu64, i,
				      (uint64_t)wrong + skip);
}

static void
send_end(struct peer *p)
{
	if (p->seen->base != p->end_msgs || p->msgs != p->end_msgs || p->bytes != p->end_bytes)
		san_server_peer_error(
			p, "got %" PRIu64 " (%" PRIu64 " bytes) of %" PRIu64 " (%" PRIu64 ")",
			p->msgs, p->bytes, p->end_msgs, p->end_bytes);
}

static const struct bench_mode mode_send = {
	.name = "send",
	.help = "messages into receives that the server posts",
	.flags = MODE_RECVS,
	.defaults = {.size = 4096, .depth = 32, .conns = 1},
	.check = send_check,
	.fill = send_fill,
	.on_recv = send_on_recv,
	.end = send_end,
};

/*
 * ---- push, incast: remote writes into slots of the server's region ----
 *
 * With verification the client reports how many are complete, and reuses a slot only after the
 * server has checked it. With immediates each push also consumes a receive.
 *
 * Incast: many connections push long solicited messages to one server at the same time, so that the
 * server's grants control their rates (RT-13).
 */

/* Fill all slots with one stream of bytes. */
static void
mode_fill_slots(struct bench_qp *q)
{
	san_content_fill(san_content_base(&q->hello, false, 0), 0, q->mem,
			 san_net_slots_bytes(&q->hello));
}

static void
push_fill(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr)
{
	const struct hello *h = &c->q.hello;

	san_net_fill(h, false, i, 0, wr->sge->addr, wr->sge->length);
	wr->opcode = (h->flags & HELLO_IMM) != 0 ? RTSAN_WR_PUSH_IMM : RTSAN_WR_PUSH;
	wr->flags = mode_wr_flags(&c->client->conf);
	wr->imm = (uint32_t)i;
	wr->remote_addr += (uint64_t)san_net_slot(h, i) * san_net_stride(h);
}

static void
push_on_recv(struct peer *p, const struct rtsan_wc *wc, const uint8_t *buf __rte_unused)
{
	/* the immediate has 32 bits of the number, more than messages in flight */
	uint64_t i = p->seen->base + (uint32_t)(wc->imm - (uint32_t)p->seen->base);

	if (wc->opcode != RTSAN_WC_RECV_PUSH_IMM || !wc->has_imm) {
		san_server_peer_error(p, "a receive without immediate");
		return;
	}
	if (p->q.hello.order != RTSAN_UNORDERED && i != p->seen->base)
		san_server_peer_error(p, "immediate %" PRIu64 " in place of %" PRIu64, i,
				      p->seen->base);
	if (!san_content_seen_add(p->seen, i))
		san_server_peer_error(p, "immediate %u came twice", wc->imm);
}

static void
push_on_slot(struct peer *p, uint64_t i, const uint8_t *slot)
{
	const struct hello *h = &p->q.hello;
	uint32_t len = san_content_size(h, i);
	int64_t wrong = san_content_check(h, false, i, 0, slot, len);

	p->bytes += len;
	if (wrong >= 0)
		san_server_peer_error(p, "push %" PRIu64 " is wrong at byte %" PRIu64, i,
				      (uint64_t)wrong);
}

static void
push_end(struct peer *p)
{
	uint8_t flags = p->q.hello.flags;

	if ((flags & HELLO_VERIFY) != 0 &&
	    (p->looked != p->end_msgs || p->bytes != p->end_bytes))
		san_server_peer_error(
			p, "%" PRIu64 " (%" PRIu64 " bytes) of %" PRIu64 " (%" PRIu64 ")",
			p->looked, p->bytes, p->end_msgs, p->end_bytes);
	if ((flags & HELLO_IMM) != 0 && p->seen->base != p->end_msgs)
		san_server_peer_error(p, "%" PRIu64 " immediates came, %" PRIu64 " sent",
				      p->seen->count, p->end_msgs);
}

#define PUSHES                                                                   \
	.rights = RTSAN_REMOTE_PUSH, .init = mode_fill_slots, .fill = push_fill, \
	.on_recv = push_on_recv, .on_slot = push_on_slot, .end = push_end

const struct bench_mode mode_push = {
	.name = "push",
	.help = "remote writes into the server's memory",
	.flags = MODE_SLOTS | MODE_SAME,
	.defaults = {.size = 4096, .depth = 32, .conns = 1},
	PUSHES,
};

static const struct bench_mode mode_incast = {
	.name = "incast",
	.help = "many connections push to one server at once, solicited",
	.flags = MODE_SLOTS,
	.defaults = {.size = 65536, .depth = 4, .conns = 32, .solicit = BENCH_SOLICIT_ALWAYS},
	PUSHES,
};

/* ---- pull: remote reads from any place in the server's region, which never changes ---- */

/* Offset of message *i*: any byte, so that reads are unaligned. */
static uint64_t
pull_offset(const struct hello *h, uint64_t i)
{
	return san_content_base(h, true, i) %
		(san_net_slots_bytes(h) - san_content_size(h, i) + 1);
}

static void
pull_fill(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr)
{
	wr->opcode = RTSAN_WR_PULL;
	wr->remote_addr += pull_offset(&c->q.hello, i);
}

static const char *
pull_complete(struct client_conn *c, uint64_t i, const struct rtsan_wc *wc)
{
	const struct hello *h = &c->q.hello;

	if (wc->byte_len != san_content_size(h, i))
		return "a pull has the wrong length";
	if (san_content_check(h, false, 0, pull_offset(h, i), san_net_slot_at(&c->q, i),
			      wc->byte_len) >= 0)
		return "a pull has the wrong content";
	return NULL;
}

/* The client has checked the data. Check that the region is unchanged. */
static void
pull_end(struct peer *p)
{
	const struct hello *h = &p->q.hello;

	if (san_content_check(h, false, 0, 0, p->q.mem, san_net_slots_bytes(h)) >= 0)
		san_server_peer_error(p, "a pull changed the region");
}

static const struct bench_mode mode_pull = {
	.name = "pull",
	.help = "remote reads from the server's memory",
	.rights = RTSAN_REMOTE_PULL,
	.defaults = {.size = 4096, .depth = 32, .conns = 1},
	.fill = pull_fill,
	.complete = pull_complete,
	.serve = mode_fill_slots,
	.end = pull_end,
};

/*
 * ---- atomic: on 8-byte words of the server (RT-30) ----
 *
 * Each connection has a word of its own, and every fourth request uses a word that all share. On an
 * ordered connection requests to the own word alternate between fetch-and-add and compare-and-swap,
 * and every old value is known in advance. On an unordered one the sum of the old values proves
 * that each addition was executed once.
 */

#define SHARED_EVERY 4

static bool
atomic_is_shared(uint64_t i)
{
	return i % SHARED_EVERY == SHARED_EVERY - 1;
}

/* Number of requests below *i* that use the own word. */
static uint64_t
own_before(uint64_t i)
{
	return i - i / SHARED_EVERY;
}

static const char *
atomic_check(const struct hello *h)
{
	return h->size_min != 8 || h->size_max != 8 ? "--size: atomics have 8 bytes" : NULL;
}

static void
atomic_fill(struct client_conn *c, uint64_t i, struct rtsan_send_wr *wr)
{
	wr->opcode = RTSAN_WR_FETCH_ADD;
	wr->operand = 1;
	if (atomic_is_shared(i)) {
		wr->remote_addr = c->peer.shared_addr;
		wr->rkey = c->peer.shared_rkey;
	} else if (c->q.hello.order == RTSAN_ORDERED && own_before(i) % 2 == 1) {
		wr->opcode = RTSAN_WR_CMP_SWAP;
		wr->operand = own_before(i);
		wr->swap = own_before(i) + 1;
	}
}

static const char *
atomic_complete(struct client_conn *c, uint64_t i, const struct rtsan_wc *wc __rte_unused)
{
	uint64_t old;

	memcpy(&old, san_net_slot_at(&c->q, i), sizeof(old));
	if (atomic_is_shared(i)) {
		c->client->shared++;
		return NULL;
	}
	if (c->q.hello.order == RTSAN_ORDERED && old != own_before(i))
		return "an atomic returned an old value that it can't have met";
	c->q.did.received += old;
	return NULL;
}

static void
atomic_end(struct peer *p)
{
	uint64_t value;

	memcpy(&value, p->q.mem, sizeof(value));
	if (value != own_before(p->end_msgs))
		san_server_peer_error(p, "counter is %" PRIu64 " and not %" PRIu64, value,
				      own_before(p->end_msgs));
	if (p->end_value != value * (value - 1) / 2)
		san_server_peer_error(p, "old values are not 0 to %" PRIu64, value - 1);
}

static const struct bench_mode mode_atomic = {
	.name = "atomic",
	.help = "fetch-and-add and compare-and-swap on the server's memory",
	.flags = MODE_SHARED,
	.rights = RTSAN_REMOTE_ATOMIC,
	.defaults = {.size = 8, .depth = 32, .conns = 1},
	.check = atomic_check,
	.fill = atomic_fill,
	.complete = atomic_complete,
	.end = atomic_end,
};

/*
 * ---- connect, idle: connections without traffic ----
 *
 * connect: each is set up, ended and set up again at full rate. A message is one such cycle, and
 * its latency is the time of the set-up. idle: all are set up once and stay, so that their memory
 * can be measured.
 */

static int
bare_open(struct bench_qp *q)
{
	return san_net_qp_open(q, 1, 1, 0);
}

static void
idle_end(struct peer *p)
{
	if (!p->q.is_up)
		san_server_peer_error(p, "the connection has ended");
}

static const struct bench_mode mode_idle = {
	.name = "idle",
	.help = "connections that carry nothing",
	.defaults = {.size = 1, .depth = 1, .conns = 1},
	.open = bare_open,
	.end = idle_end,
};

/*
 * Disconnect a connection of the client that is up, and connect one that has ended. A cycle counts
 * from its start, so that the end of the traffic waits for it.
 */
static bool
connect_step(struct bench_qp *q, uint64_t max)
{
	struct client_conn *conn = (struct client_conn *)q;

	if (q->is_server || conn->client->state == CLIENT_END)
		return false;
	if (q->is_up && !conn->is_leaving) {
		if (rtsan_disconnect(q->qp) < 0)
			return false; /* the event is pending */
		conn->is_leaving = true;
		if (q->did.msgs == 0)
			q->did.msgs++; /* the first cycle began before the traffic */
		return true;
	}
	if (max == 0 || !q->is_over)
		return false;
	conn->begin = rte_rdtsc();
	if (san_net_connect(q, &conn->client->conf) < 0)
		san_client_fail(conn->client, "can't connect again: %s", rtsan_error());
	else
		q->did.msgs++;
	return true;
}

static bool
connect_peer_event(struct peer *p, const struct rtsan_event *ev)
{
	uint64_t request = p->request;

	if (ev->type != RTSAN_EV_DISCONNECTED)
		return ev->type == RTSAN_EV_ESTABLISHED;
	/* count disconnects: the event that it was up may be missing if it ends at once */
	p->msgs++;
	p->request = 0;
	if (request != 0)
		san_mode_connect_again(p, request);
	return true;
}

static bool
connect_on_event(struct bench_qp *q, const struct rtsan_event *ev)
{
	struct client_conn *conn = (struct client_conn *)q;

	if (q->is_server)
		return connect_peer_event((struct peer *)q, ev);
	if (ev->type == RTSAN_EV_ESTABLISHED) {
		san_hist_add(q->lat, san_bench_ns(q->b, rte_rdtsc() - conn->begin));
		return true;
	}
	if (ev->type != RTSAN_EV_DISCONNECTED || !conn->is_leaving)
		return false;
	conn->is_leaving = false;
	q->did.done++;
	return true;
}

void
san_mode_connect_again(struct peer *p, uint64_t request)
{
	const struct welcome w = {.magic = HELLO_MAGIC};

	if (!p->q.is_over) {
		p->request = request; /* the event of its end is still pending */
		return;
	}
	p->q.is_over = false;
	/* an expired request fails, and the client repeats it */
	san_net_accept(&p->q, request, &w);
}

static bool
connect_is_over(const struct bench_qp *q)
{
	const struct peer *p = (const struct peer *)q;

	return !q->is_server || p->msgs >= p->end_msgs;
}

static void
connect_end(struct peer *p)
{
	if (p->msgs != p->end_msgs)
		san_server_peer_error(p, "%" PRIu64 " connections of %" PRIu64, p->msgs,
				      p->end_msgs);
}

const struct bench_mode mode_connect = {
	.name = "connect",
	.help = "connections set up and ended, over and over",
	.defaults = {.size = 1, .depth = 1, .conns = 64},
	.open = bare_open,
	.step = connect_step,
	.on_event = connect_on_event,
	.is_over = connect_is_over,
	.end = connect_end,
};

/* ---- all of them ---- */

const struct bench_mode *const mode_all[] = {
	&mode_send,
	&mode_push,
	&mode_pull,
	&mode_atomic,
	&mode_incast,
	&mode_rpc,
	&mode_connect,
	&mode_idle,
	&mode_stream,
	NULL,
};

const struct bench_mode *
san_mode_find(const char *name)
{
	const struct bench_mode *const *m = mode_all;

	while (*m != NULL && strncmp((*m)->name, name, BENCH_MODE) != 0)
		m++;
	return *m;
}
