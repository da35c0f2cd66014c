/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Invalid input from an application or its peer: each has the status that rtsan.h documents, within
 * bounded time. The process goes on, and mostly the connection, too.
 * (RT-7, RT-23, RT-24, RT-27, RT-29)
 *
 * errors server SPEC
 * errors client SPEC PEER CASE...      prints "ok CASE" or "not ok CASE: why"
 *
 * The same for all providers. Differences are taken from rtsan_query(): with caps.ends_on_error a
 * refusal must end the connection, and the case goes on with another one.
 */

#include <stdarg.h>
#include <time.h>

#include "errors.h"

#define LIMIT_MS 120000 /* limit of any wait */

volatile sig_atomic_t errors_stop;

static void
on_signal(int signum)
{
	(void)signum;
	errors_stop = 1;
}

struct client {
	struct rtsan_ctx *ctx;
	struct rtsan_cq *cq;
	struct rtsan_mr *mr;
	struct rtsan_qp *qp;
	struct rtsan_caps caps;
	const char *peer;
	uint8_t behaviour; /* in the private data of the request */
	int refused;       /* -errno of rtsan_connect() */
	struct offer offer;
	struct rtsan_event ev; /* the last one */
	char why[256];
};

static int
wrong(struct client *c, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(c->why, sizeof(c->why), format, ap);
	va_end(ap);
	return -1;
}

/* Returns the type of the next event within *ms*, or 0. */
static int
next_event(struct client *c, uint64_t ms)
{
	uint64_t until = rt_now_ms() + ms;

	while (rt_now_ms() < until)
		if (rtsan_event_poll(c->ctx, &c->ev) == 1)
			return c->ev.type;
	return 0;
}

/* Connect the queue pair. Returns the type of the event that follows. */
static int
connect_qp(struct client *c, const char *peer, uint64_t service, uint16_t pkey)
{
	struct rtsan_conn_param param = {
		.pkey = pkey,
		.rnr_ms = 300,
		.private_data = &c->behaviour,
		.private_len = 1,
	};
	int type;

	c->refused = rtsan_connect(c->qp, peer, service, &param);
	if (c->refused < 0)
		return wrong(c, "rtsan_connect: %s", rtsan_error());
	type = next_event(c, LIMIT_MS);
	if (type == RTSAN_EV_ESTABLISHED)
		memcpy(&c->offer, c->ev.private_data, sizeof(c->offer));
	return type;
}

/* Connect a new one with *behaviour*. */
static int
connect_as(struct client *c, const char *peer, uint64_t service, uint16_t pkey, uint8_t behaviour)
{
	struct rtsan_qp_attr attr = {.send_cq = c->cq, .recv_cq = c->cq};

	if (rtsan_qp_create(c->ctx, &attr, &c->qp) < 0)
		rt_die("rtsan_qp_create");
	c->behaviour = behaviour;
	return connect_qp(c, peer, service, pkey);
}

static int
connected(struct client *c, uint8_t behaviour)
{
	int type = connect_as(c, c->peer, SERVICE, 0, behaviour);

	return type == RTSAN_EV_ESTABLISHED ? 0 : wrong(c, "no connection: event %d", type);
}

static int
post(struct client *c, uint8_t opcode, uint32_t length, uint64_t addr, uint32_t rkey)
{
	struct rtsan_sge sge = {
		.addr = rtsan_mr_addr(c->mr),
		.length = length,
		.lkey = rtsan_mr_lkey(c->mr),
	};
	struct rtsan_send_wr wr = {
		.wr_id = 7,
		.opcode = opcode,
		.flags = RTSAN_WR_SIGNALED,
		.nb_sge = 1,
		.sge = &sge,
		.remote_addr = addr,
		.rkey = rkey,
		.operand = 1,
	};

	return rtsan_post_send(c->qp, &wr, 1);
}

/* Returns the status of the next completion within the limit, or -1. */
static int
next_status(struct client *c)
{
	uint64_t until = rt_now_ms() + LIMIT_MS;
	struct rtsan_wc wc;

	while (rt_now_ms() < until)
		if (rtsan_cq_poll(c->cq, &wc, 1) == 1)
			return wc.status;
	return -1;
}

/* Post one request, which must complete with *status*. */
static int
expect(struct client *c, uint8_t opcode, uint32_t length, uint64_t addr, uint32_t rkey, int status)
{
	int got;

	if (post(c, opcode, length, addr, rkey) != 1)
		return wrong(c, "opcode %u was not taken: %s", opcode, rtsan_error());
	got = next_status(c);
	if (got < 0)
		return wrong(c, "opcode %u does not complete", opcode);
	if (got != status)
		return wrong(c, "opcode %u: %s instead of %s", opcode,
			     rtsan_status_name((uint8_t)got),
			     rtsan_status_name((uint8_t)status));
	return 0;
}

/* Whether this provider reports *got* for *status*. */
static bool
is_called(const struct client *c, int got, int status)
{
	if (got == status || !c->caps.ends_on_error)
		return got == status;
	/* Soft-RoCE has one status for a message that is too long and for lack of resources */
	return (status == RTSAN_WC_REM_REVOKED && got == RTSAN_WC_REM_ACCESS) ||
		(status == RTSAN_WC_REM_LENGTH && got == RTSAN_WC_REM_RESOURCE);
}

/* A request ended with *got*, which must mean *status*. Afterwards it is connected. (RT-27) */
static int
refused(struct client *c, int got, int status)
{
	int type;

	if (!is_called(c, got, status))
		return wrong(c, "%s instead of %s",
			     got < 0 ? "nothing" : rtsan_status_name((uint8_t)got),
			     rtsan_status_name((uint8_t)status));
	if (!c->caps.ends_on_error)
		return 0;
	type = next_event(c, LIMIT_MS);
	if (type != RTSAN_EV_DISCONNECTED)
		return wrong(c, "event %d after a refusal", type);
	rtsan_qp_destroy(c->qp);
	c->qp = NULL;
	return connected(c, c->behaviour);
}

static int
expect_refused(struct client *c, uint8_t opcode, uint32_t length, uint64_t addr, uint32_t rkey,
	       int status)
{
	if (post(c, opcode, length, addr, rkey) != 1)
		return wrong(c, "opcode %u was not taken: %s", opcode, rtsan_error());
	return refused(c, next_status(c), status);
}

/* The same for an atomic, if the provider has atomics. (RT-30) */
static int
expect_refused_atomic(struct client *c, uint8_t opcode, uint64_t addr, uint32_t rkey, int status)
{
	if (c->caps.has_atomic)
		return expect_refused(c, opcode, 8, addr, rkey, status);
	return post(c, opcode, 8, addr, rkey) == -EOPNOTSUPP ?
		0 :
		wrong(c, "an atomic was taken by who has none");
}

/* After an error the connection works, or another one does. (RT-27) */
static int
lives_on(struct client *c)
{
	if (expect(c, RTSAN_WR_PUSH, 5000, c->offer.addr[ALL], c->offer.rkey[ALL],
		   RTSAN_WC_SUCCESS) < 0 ||
	    expect(c, RTSAN_WR_PULL, 5000, c->offer.addr[ALL], c->offer.rkey[ALL],
		   RTSAN_WC_SUCCESS) < 0)
		return -1;
	return expect(c, RTSAN_WR_SEND, 100, 0, 0, RTSAN_WC_SUCCESS);
}

static int
disconnected(struct client *c)
{
	if (rtsan_disconnect(c->qp) < 0)
		return wrong(c, "rtsan_disconnect: %s", rtsan_error());
	return next_event(c, LIMIT_MS) == RTSAN_EV_DISCONNECTED ? 0 :
								  wrong(c, "no end of connection");
}

/* ---- cases ---- */

static int
case_unreachable(struct client *c)
{
	int net = (int)(strrchr(c->peer, '.') - c->peer), type;
	char nobody[64];

	/* an unused address in the peer's network */
	snprintf(nobody, sizeof(nobody), "%.*s.99", net, c->peer);
	type = connect_as(c, nobody, SERVICE, 0, PLAIN);
	return type == RTSAN_EV_UNREACHABLE ? 0 : wrong(c, "event %d", type);
}

static int
case_no_listener(struct client *c)
{
	int type = connect_as(c, c->peer, SERVICE + 1, 0, PLAIN);

	return type == RTSAN_EV_REJECTED && c->ev.reason == RTSAN_R_NO_LISTENER ?
		0 :
		wrong(c, "event %d, reason %u", type, c->ev.reason);
}

static int
case_refused(struct client *c)
{
	int type = connect_as(c, c->peer, SERVICE, 0, REFUSE);

	if (type != RTSAN_EV_REJECTED || c->ev.reason != RTSAN_R_REFUSED)
		return wrong(c, "event %d, reason %u", type, c->ev.reason);
	return c->ev.private_len == 7 && memcmp(c->ev.private_data, "go away", 7) == 0 ?
		0 :
		wrong(c, "the peer's words did not come");
}

static int
case_partition(struct client *c)
{
	int type = connect_as(c, c->peer, SERVICE, 0x8123, PLAIN);

	/* Requests of another partition are not answered, refused as such, or not supported. */
	return c->refused == -EOPNOTSUPP || type == RTSAN_EV_UNREACHABLE ||
			(type == RTSAN_EV_REJECTED && c->ev.reason == RTSAN_R_PKEY) ?
		0 :
		wrong(c, "event %d, reason %u", type, c->ev.reason);
}

static int
case_key(struct client *c)
{
	uint64_t addr;
	uint32_t key;

	if (connected(c, PLAIN) < 0)
		return -1;
	addr = c->offer.addr[ALL];
	key = c->offer.rkey[ALL] ^ 0x5a5a5a5a;
	if (expect_refused(c, RTSAN_WR_PUSH, 100, addr, key, RTSAN_WC_REM_ACCESS) < 0 ||
	    expect_refused(c, RTSAN_WR_PUSH, 100000, addr, key, RTSAN_WC_REM_ACCESS) < 0 ||
	    expect_refused(c, RTSAN_WR_PULL, 100, addr, key, RTSAN_WC_REM_ACCESS) < 0 ||
	    expect_refused_atomic(c, RTSAN_WR_FETCH_ADD, addr, key, RTSAN_WC_REM_ACCESS) < 0 ||
	    lives_on(c) < 0)
		return -1;
	return disconnected(c);
}

static int
case_bounds(struct client *c)
{
	static const uint8_t ops[] = {RTSAN_WR_PUSH, RTSAN_WR_PULL};
	const int status = RTSAN_WC_REM_ACCESS;
	uint64_t addr;
	uint32_t key;

	if (connected(c, PLAIN) < 0)
		return -1;
	addr = c->offer.addr[ALL];
	key = c->offer.rkey[ALL];
	for (size_t i = 0; i < sizeof(ops); i++)
		if (expect_refused(c, ops[i], 100, addr + REGION - 99, key, status) < 0 ||
		    expect_refused(c, ops[i], 100, addr - 1, key, status) < 0 ||
		    expect_refused(c, ops[i], 100000, addr + REGION - 50000, key, status) < 0 ||
		    expect_refused(c, ops[i], 4096, UINT64_MAX - 100, key, status) < 0 ||
		    expect(c, ops[i], 100, addr + REGION - 100, key, RTSAN_WC_SUCCESS) < 0)
			return -1;
	if (expect_refused_atomic(c, RTSAN_WR_FETCH_ADD, addr + REGION, key, status) < 0 ||
	    lives_on(c) < 0)
		return -1;
	return disconnected(c);
}

static int
case_rights(struct client *c)
{
	const struct offer *o = &c->offer;

	if (connected(c, PLAIN) < 0)
		return -1;
	if (expect_refused(c, RTSAN_WR_PUSH, 100, o->addr[PULL_ONLY], o->rkey[PULL_ONLY],
			   RTSAN_WC_REM_ACCESS) < 0 ||
	    expect_refused(c, RTSAN_WR_PULL, 100, o->addr[PUSH_ONLY], o->rkey[PUSH_ONLY],
			   RTSAN_WC_REM_ACCESS) < 0 ||
	    expect_refused(c, RTSAN_WR_PULL, 100, o->addr[NO_RIGHTS], o->rkey[NO_RIGHTS],
			   RTSAN_WC_REM_ACCESS) < 0 ||
	    expect_refused_atomic(c, RTSAN_WR_CMP_SWAP, o->addr[PULL_ONLY], o->rkey[PULL_ONLY],
				  RTSAN_WC_REM_ACCESS) < 0 ||
	    lives_on(c) < 0)
		return -1;
	return disconnected(c);
}

/* An earlier request in flight must not get the error. */
static int
align_behind_push(struct client *c)
{
	struct rtsan_sge sge = {
		.addr = rtsan_mr_addr(c->mr),
		.length = REGION,
		.lkey = rtsan_mr_lkey(c->mr),
	};
	struct rtsan_sge word = {sge.addr, 8, sge.lkey};
	const struct rtsan_send_wr wr[] = {
		{.opcode = RTSAN_WR_PUSH,
		 .flags = RTSAN_WR_SIGNALED,
		 .nb_sge = 1,
		 .sge = &sge,
		 .remote_addr = c->offer.addr[ALL],
		 .rkey = c->offer.rkey[ALL]},
		{.opcode = RTSAN_WR_FETCH_ADD,
		 .flags = RTSAN_WR_SIGNALED,
		 .nb_sge = 1,
		 .sge = &word,
		 .remote_addr = c->offer.addr[ALL] + 4,
		 .rkey = c->offer.rkey[ALL]},
	};
	int status;

	if (rtsan_post_send(c->qp, wr, 2) != 2)
		return wrong(c, "not taken: %s", rtsan_error());
	status = next_status(c);
	if (status != RTSAN_WC_SUCCESS &&
	    !(c->caps.ends_on_error && status == RTSAN_WC_FLUSHED))
		return wrong(c, "the push before it: %s", rtsan_status_name((uint8_t)status));
	return refused(c, next_status(c), RTSAN_WC_REM_ALIGN);
}

static int
case_align(struct client *c)
{
	if (connected(c, PLAIN) < 0)
		return -1;
	if (c->caps.has_atomic && align_behind_push(c) < 0)
		return -1;
	if (expect_refused_atomic(c, RTSAN_WR_FETCH_ADD, c->offer.addr[ALL] + 4,
				  c->offer.rkey[ALL], RTSAN_WC_REM_ALIGN) < 0)
		return -1;
	if (c->caps.has_atomic &&
	    expect(c, RTSAN_WR_FETCH_ADD, 8, c->offer.addr[ALL] + 8, c->offer.rkey[ALL],
		   RTSAN_WC_SUCCESS) < 0)
		return -1;
	return lives_on(c) < 0 ? -1 : disconnected(c);
}

static int
case_too_long(struct client *c)
{
	if (connected(c, SHORT) < 0)
		return -1;
	if (expect_refused(c, RTSAN_WR_SEND, 17, 0, 0, RTSAN_WC_REM_LENGTH) < 0 ||
	    expect_refused(c, RTSAN_WR_SEND, 20000, 0, 0, RTSAN_WC_REM_LENGTH) < 0 ||
	    expect(c, RTSAN_WR_SEND, 16, 0, 0, RTSAN_WC_SUCCESS) < 0)
		return -1;
	return disconnected(c);
}

/* Have the server post its receives now. */
static int
make_ready(struct client *c)
{
	uint8_t *byte = rtsan_mr_addr(c->mr);
	uint64_t addr = c->offer.addr[ALL] + READY_AT, until = rt_now_ms() + LIMIT_MS;
	uint32_t rkey = c->offer.rkey[ALL];

	*byte = 1;
	if (expect(c, RTSAN_WR_PUSH, 1, addr, rkey, RTSAN_WC_SUCCESS) < 0)
		return -1;
	do {
		if (expect(c, RTSAN_WR_PULL, 1, addr, rkey, RTSAN_WC_SUCCESS) < 0)
			return -1;
	} while (*byte != 0 && rt_now_ms() < until);
	return *byte == 0 ? 0 : wrong(c, "no receives are posted");
}

/* The peer posts no receive; the sender waits for 300 ms. (RT-23) */
static int
case_not_ready(struct client *c)
{
	uint64_t began;
	int got;

	if (connected(c, NOT_READY) < 0)
		return -1;
	began = rt_now_ms();
	if (post(c, RTSAN_WR_SEND, 100, 0, 0) != 1)
		return wrong(c, "a send was not taken: %s", rtsan_error());
	got = next_status(c);
	if (rt_now_ms() - began < 200)
		return wrong(c, "gave up too soon");
	if (refused(c, got, RTSAN_WC_RNR_RETRY_EXC) < 0)
		return -1;
	/* Requests without a receive go on meanwhile; another send is refused as well. */
	if (expect(c, RTSAN_WR_PUSH, 5000, c->offer.addr[ALL], c->offer.rkey[ALL],
		   RTSAN_WC_SUCCESS) < 0 ||
	    expect_refused(c, RTSAN_WR_SEND, 200, 0, 0, RTSAN_WC_RNR_RETRY_EXC) < 0)
		return -1;
	return make_ready(c) < 0 || lives_on(c) < 0 ? -1 : disconnected(c);
}

static int
revoke_with(struct client *c, uint8_t opcode)
{
	uint64_t until = rt_now_ms() + LIMIT_MS, addr;
	int status = RTSAN_WC_SUCCESS;
	uint32_t key;

	if (connected(c, REVOKE) < 0)
		return -1;
	addr = c->offer.addr[TO_REVOKE];
	key = c->offer.rkey[TO_REVOKE];
	if (expect(c, opcode, REGION, addr, key, RTSAN_WC_SUCCESS) < 0 ||
	    expect(c, RTSAN_WR_SEND, 100, 0, 0, RTSAN_WC_SUCCESS) < 0)
		return -1;
	while (status == RTSAN_WC_SUCCESS && rt_now_ms() < until) {
		if (post(c, opcode, REGION, addr, key) != 1)
			return wrong(c, "not taken: %s", rtsan_error());
		status = next_status(c);
	}
	if (status < 0)
		return wrong(c, "a request never completes");
	c->behaviour = PLAIN; /* for a new connection, if one is made */
	if (refused(c, status, status == RTSAN_WC_REM_ACCESS ? status : RTSAN_WC_REM_REVOKED) < 0)
		return -1;
	/* From now on the key is unknown. */
	if (expect_refused(c, opcode, 100, addr, key, RTSAN_WC_REM_ACCESS) < 0 || lives_on(c) < 0)
		return -1;
	return disconnected(c);
}

static int
case_revoked_push(struct client *c)
{
	return revoke_with(c, RTSAN_WR_PUSH);
}

static int
case_revoked_pull(struct client *c)
{
	return revoke_with(c, RTSAN_WR_PULL);
}

/* Errors of our own side are returned by the call that posts. */
static int
case_local(struct client *c)
{
	struct rtsan_sge sge = {
		.addr = rtsan_mr_addr(c->mr),
		.length = 100,
		.lkey = rtsan_mr_lkey(c->mr),
	};
	struct rtsan_send_wr wr = {.opcode = 99, .nb_sge = 1, .sge = &sge};
	struct rtsan_mr *mr;

	if (connected(c, PLAIN) < 0)
		return -1;
	if (rtsan_post_send(c->qp, &wr, 1) != -EINVAL)
		return wrong(c, "an unknown opcode was taken");
	wr.opcode = RTSAN_WR_SEND;
	sge.length = 2 * REGION;
	if (rtsan_post_send(c->qp, &wr, 1) != -EINVAL)
		return wrong(c, "memory outside of its region was taken");
	sge.length = 100;
	sge.lkey ^= 0x33333333;
	if (rtsan_post_send(c->qp, &wr, 1) != -EINVAL)
		return wrong(c, "an unknown local key was taken");
	if (rtsan_mr_alloc(c->ctx, 0, 0, &mr) != -EINVAL)
		return wrong(c, "a region without bytes was made");
	if (rtsan_connect(c->qp, c->peer, SERVICE, NULL) != -EISCONN)
		return wrong(c, "connected twice");
	if (lives_on(c) < 0 || disconnected(c) < 0)
		return -1;
	sge.lkey = rtsan_mr_lkey(c->mr);
	return rtsan_post_send(c->qp, &wr, 1) == -ENOTCONN ? 0 : wrong(c, "posted to the dead");
}

/*
 * Work that is posted after the end of the connection, while its event is not polled yet, completes
 * as flushed. Then the queue pair connects again.
 */
static int
case_late(struct client *c)
{
	const struct rtsan_recv_wr receive = {.nb_sge = 0};
	const struct timespec pause = {.tv_nsec = 5000000};
	int got;

	if (connected(c, PLAIN) < 0 || rtsan_disconnect(c->qp) < 0)
		return wrong(c, "no connection, or no end: %s", rtsan_error());
	do {
		if (post(c, RTSAN_WR_SEND, 10, 0, 0) != 1)
			return wrong(c, "not taken: %s", rtsan_error());
		got = next_status(c);
	} while (got == RTSAN_WC_SUCCESS);
	for (int i = 0; i < 50 && got == RTSAN_WC_FLUSHED; i++) {
		nanosleep(&pause, NULL);
		if ((i % 2 ? post(c, RTSAN_WR_SEND, 10, 0, 0) :
			     rtsan_post_recv(c->qp, &receive, 1)) != 1)
			return wrong(c, "not taken: %s", rtsan_error());
		got = next_status(c);
	}
	if (got != RTSAN_WC_FLUSHED)
		return wrong(c, "status %d of late work", got);
	if (next_event(c, LIMIT_MS) != RTSAN_EV_DISCONNECTED)
		return wrong(c, "no end of connection");
	if (post(c, RTSAN_WR_SEND, 10, 0, 0) != -ENOTCONN)
		return wrong(c, "posted to the dead");
	if (connect_qp(c, c->peer, SERVICE, 0) != RTSAN_EV_ESTABLISHED)
		return wrong(c, "it does not connect again");
	return lives_on(c);
}

/* Transfers in both directions until the connection ends. Then everything posted has completed. */
static int
stream_to_end(struct client *c)
{
	uint64_t until = rt_now_ms() + LIMIT_MS;
	int nb_posted = 0, nb_done = 0, nb_bad = 0, type = 0;
	struct rtsan_wc wc;

	if (connected(c, PLAIN) < 0)
		return -1;
	printf("streaming\n");
	fflush(stdout);
	while (type == 0 && rt_now_ms() < until) {
		while (nb_posted - nb_done < 16 && nb_bad == 0 &&
		       post(c, nb_posted % 2 ? RTSAN_WR_PULL : RTSAN_WR_PUSH, 100000,
			    c->offer.addr[ALL], c->offer.rkey[ALL]) == 1)
			nb_posted++;
		while (rtsan_cq_poll(c->cq, &wc, 1) == 1) {
			nb_done++;
			if (wc.status == RTSAN_WC_SUCCESS)
				continue;
			nb_bad++;
			if (wc.status != RTSAN_WC_RETRY_EXC && wc.status != RTSAN_WC_FLUSHED)
				return wrong(c, "status %s", rtsan_status_name(wc.status));
		}
		if (rtsan_event_poll(c->ctx, &c->ev) == 1)
			type = c->ev.type;
	}
	if (type != RTSAN_EV_DISCONNECTED)
		return wrong(c, "event %d", type);
	while (rtsan_cq_poll(c->cq, &wc, 1) == 1)
		nb_done++;
	if (nb_done != nb_posted)
		return wrong(c, "%d of %d requests completed", nb_done, nb_posted);
	printf("ended, reason %u\n", c->ev.reason);
	fflush(stdout);
	rtsan_qp_destroy(c->qp);
	return 0;
}

/* The script stops the peer's host while nothing is in flight. (RT-24) */
static int
case_idle(struct client *c)
{
	if (connected(c, PLAIN) < 0)
		return -1;
	printf("idle\n");
	fflush(stdout);
	c->ev.type = 0;
	if (next_event(c, LIMIT_MS) != RTSAN_EV_DISCONNECTED)
		return wrong(c, "event %d", c->ev.type);
	printf("ended, reason %u\n", c->ev.reason);
	fflush(stdout);
	return c->ev.reason == RTSAN_R_TIMEOUT ? 0 : wrong(c, "reason %u", c->ev.reason);
}

/* The script removes the device under load: all posted work completes. */
static int
case_removed(struct client *c)
{
	uint64_t until = rt_now_ms() + LIMIT_MS;
	int nb_posted = 0, nb_done = 0, nb_bad = 0, rc = 0;
	struct rtsan_wc wc;

	if (connected(c, PLAIN) < 0)
		return -1;
	printf("streaming\n");
	fflush(stdout);
	while ((rc >= 0 || nb_done < nb_posted) && rt_now_ms() < until) {
		while (nb_posted - nb_done < 16 && nb_bad == 0 && rc == 0 &&
		       post(c, RTSAN_WR_PUSH, 100000, c->offer.addr[ALL], c->offer.rkey[ALL]) == 1)
			nb_posted++;
		while (rtsan_cq_poll(c->cq, &wc, 1) == 1) {
			nb_done++;
			nb_bad += wc.status != RTSAN_WC_SUCCESS;
		}
		rc = rtsan_event_poll(c->ctx, &c->ev);
	}
	printf("ended: %d posted, %d completed, %d badly, %d\n", nb_posted, nb_done, nb_bad, rc);
	fflush(stdout);
	if (rc != -EIO || nb_done != nb_posted)
		return wrong(c, "%d of %d requests completed, rtsan_event_poll() says %d", nb_done,
			     nb_posted, rc);
	if (rtsan_progress(c->ctx) != -EIO)
		return wrong(c, "rtsan_progress() does not say so");
	rtsan_qp_destroy(c->qp);
	c->qp = NULL;
	return 0;
}

/* The script kills the server and does not restart it. (RT-24) */
static int
case_killed(struct client *c)
{
	uint64_t until;
	int type;

	if (stream_to_end(c) < 0)
		return -1;
	until = rt_now_ms() + LIMIT_MS;
	type = connect_as(c, c->peer, SERVICE, 0, PLAIN);
	/* a daemon outlives its programs and rejects; a device that is removed may do so, too */
	while (type == RTSAN_EV_REJECTED && c->ev.reason != RTSAN_R_NO_LISTENER &&
	       rt_now_ms() < until) {
		rtsan_qp_destroy(c->qp);
		type = connect_as(c, c->peer, SERVICE, 0, PLAIN);
	}
	return type == RTSAN_EV_UNREACHABLE ||
			(type == RTSAN_EV_REJECTED && c->ev.reason == RTSAN_R_NO_LISTENER) ?
		0 :
		wrong(c, "event %d, reason %u", type, c->ev.reason);
}

/* The script kills the server and starts another one. (RT-24) */
static int
case_restarted(struct client *c)
{
	uint64_t until;

	if (stream_to_end(c) < 0)
		return -1;
	until = rt_now_ms() + LIMIT_MS;
	while (connected(c, PLAIN) < 0) {
		if (rt_now_ms() > until)
			return -1;
		rtsan_qp_destroy(c->qp);
	}
	return lives_on(c) < 0 ? -1 : disconnected(c);
}

static const struct {
	const char *name;
	int (*run)(struct client *c);
} cases[] = {
	{"unreachable", case_unreachable},
	{"no-listener", case_no_listener},
	{"refused", case_refused},
	{"partition", case_partition},
	{"key", case_key},
	{"bounds", case_bounds},
	{"rights", case_rights},
	{"align", case_align},
	{"too-long", case_too_long},
	{"not-ready", case_not_ready},
	{"revoked-push", case_revoked_push},
	{"revoked-pull", case_revoked_pull},
	{"local", case_local},
	{"late", case_late},
	{"idle", case_idle},
	{"removed", case_removed},
	{"killed", case_killed},
	{"restarted", case_restarted},
};

static int
run_case(struct client *c, const char *name)
{
	uint64_t began = rt_now_ms();
	size_t i;
	int ret;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(cases[i].name, name) == 0)
			break;
	if (i == sizeof(cases) / sizeof(cases[0])) {
		printf("not ok %s: no such case\n", name);
		return 1;
	}
	c->qp = NULL;
	ret = cases[i].run(c);
	if (c->qp != NULL)
		rtsan_qp_destroy(c->qp);
	if (ret == 0)
		printf("ok %s after %d ms\n", name, (int)(rt_now_ms() - began));
	else
		printf("not ok %s: %s\n", name, c->why);
	fflush(stdout);
	return ret == 0 ? 0 : 1;
}

static int
run_client(const char *spec, const char *peer, char **names)
{
	struct client c = {.peer = peer};
	int failed = 0;

	if (rtsan_open(spec, &c.ctx) < 0)
		rt_die("rtsan_open");
	rtsan_query(c.ctx, &c.caps);
	if (rtsan_cq_create(c.ctx, 4096, &c.cq) < 0 ||
	    rtsan_mr_alloc(c.ctx, REGION, 0, &c.mr) < 0)
		rt_die("resources");
	for (; *names != NULL; names++)
		failed |= run_case(&c, *names);
	if (rtsan_mr_dereg(c.mr) < 0 || rtsan_cq_destroy(c.cq) < 0) {
		printf("not ok end: %s\n", rtsan_error());
		failed = 1;
	}
	rtsan_close(c.ctx);
	return failed;
}

int
main(int argc, char **argv)
{
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	if (argc == 3 && strcmp(argv[1], "server") == 0)
		return errors_serve(argv[2]);
	if (argc >= 5 && strcmp(argv[1], "client") == 0)
		return run_client(argv[2], argv[3], argv + 4);
	fprintf(stderr, "usage: errors server SPEC | errors client SPEC PEER CASE...\n");
	return 2;
}
