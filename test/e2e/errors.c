/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Invalid input from an application or its peer: each has the status that rtsan.h documents, within
 * bounded time. The process goes on, and mostly the connection, too.
 * (RT-7, RT-23, RT-24, RT-27, RT-29)
 *
 * errors server SPEC
 * errors client SPEC PEER CASE...      prints "ok CASE", or "not ok CASE: why" and ends
 *
 * The same for all providers. Differences are taken from rtsan_query(): with caps.ends_on_error a
 * refusal must end the connection, and the case goes on with another one.
 */

#include <time.h>

#include "errors.h"

#define LIMIT_MS 120000 /* limit of any wait */

volatile sig_atomic_t errors_stop;

/* State of the client. */
static struct rtsan_ctx *ctx;
static struct rtsan_cq *cq;
static struct rtsan_mr *mr;
static struct rtsan_qp *qp;
static struct rtsan_caps caps;
static const char *peer, *case_name;
static uint8_t behaviour; /* in the private data of the request */
static struct offer offer;
static struct rtsan_event ev; /* the last one */

/* What a request accesses; a send accesses nothing. */
struct place {
	uint64_t addr;
	uint32_t rkey;
};
static const struct place nowhere;

static void
on_signal(int signum)
{
	errors_stop = 1;
}

static void
failing(void)
{
	fprintf(stderr, "not ok %s: ", case_name);
}

static struct place
at(enum region region, uint64_t offset)
{
	return (struct place){offer.addr[region] + offset, offer.rkey[region]};
}

/* Returns the type of the next event within the limit, or 0. */
static int
next_event(void)
{
	uint64_t until = rt_now_ms() + LIMIT_MS;

	while (rt_now_ms() < until)
		if (rtsan_event_poll(ctx, &ev) == 1)
			return ev.type;
	return 0;
}

/* Connect the queue pair. Returns the type of the event that follows, or -errno. */
static int
connect_qp(const char *to, uint64_t service, uint16_t pkey)
{
	const struct rtsan_conn_param param = {
		.pkey = pkey, .rnr_ms = 300, .private_data = &behaviour, .private_len = 1};
	int type = rtsan_connect(qp, to, service, &param);

	if (type == 0)
		type = next_event();
	if (type == RTSAN_EV_ESTABLISHED)
		memcpy(&offer, ev.private_data, sizeof(offer));
	return type;
}

/* Connect a new one with *how*. */
static int
connect_as(const char *to, uint64_t service, uint16_t pkey, enum behaviour how)
{
	qp = rt_make_qp(ctx, cq, 0, NULL);
	behaviour = (uint8_t)how;
	return connect_qp(to, service, pkey);
}

static void
connect_with(enum behaviour how)
{
	int type = connect_as(peer, SERVICE, 0, how);

	MUST(type == RTSAN_EV_ESTABLISHED, "no connection: event %d", type);
}

static void
end_qp(void)
{
	rtsan_qp_destroy(qp);
	qp = NULL;
}

static struct rtsan_send_wr
wr_to(uint8_t opcode, const struct rtsan_sge *sge, struct place to)
{
	return (struct rtsan_send_wr){
		.wr_id = 7,
		.opcode = opcode,
		.flags = RTSAN_WR_SIGNALED,
		.nb_sge = 1,
		.sge = sge,
		.remote_addr = to.addr,
		.rkey = to.rkey,
		.operand = 1,
	};
}

static int
post(uint8_t opcode, uint32_t length, struct place to)
{
	struct rtsan_sge sge = {rtsan_mr_addr(mr), length, rtsan_mr_lkey(mr)};
	struct rtsan_send_wr wr = wr_to(opcode, &sge, to);

	return rtsan_post_send(qp, &wr, 1);
}

/* Returns the status of the next completion within the limit, or -1. */
static int
next_status(void)
{
	uint64_t until = rt_now_ms() + LIMIT_MS;
	struct rtsan_wc wc;

	while (rt_now_ms() < until)
		if (rtsan_cq_poll(cq, &wc, 1) == 1)
			return wc.status;
	return -1;
}

static const char *
name_of(int status)
{
	return status < 0 ? "nothing" : rtsan_status_name((uint8_t)status);
}

/* Post one request, and return its status. */
static int
request(uint8_t opcode, uint32_t length, struct place to)
{
	MUST(post(opcode, length, to) == 1, "opcode %u was not taken", opcode);
	return next_status();
}

/* Post one request, which must succeed. */
static void
expect(uint8_t opcode, uint32_t length, struct place to)
{
	int got = request(opcode, length, to);

	MUST(got == RTSAN_WC_SUCCESS, "opcode %u: %s instead of success", opcode, name_of(got));
}

/* Whether this provider reports *got* for *status*. */
static bool
is_called(int got, int status)
{
	if (got == status || !caps.ends_on_error)
		return got == status;
	/* Soft-RoCE has one status for a message that is too long and for lack of resources */
	return (status == RTSAN_WC_REM_REVOKED && got == RTSAN_WC_REM_ACCESS) ||
		(status == RTSAN_WC_REM_LENGTH && got == RTSAN_WC_REM_RESOURCE);
}

/* A request ended with *got*, which must mean *status*. Afterwards it is connected. (RT-27) */
static void
refused(int got, int status)
{
	int type;

	MUST(is_called(got, status), "%s instead of %s", name_of(got), name_of(status));
	if (!caps.ends_on_error)
		return;
	type = next_event();
	MUST(type == RTSAN_EV_DISCONNECTED, "event %d after a refusal", type);
	end_qp();
	connect_with(behaviour);
}

static void
expect_refused(uint8_t opcode, uint32_t length, struct place to, int status)
{
	refused(request(opcode, length, to), status);
}

/* The same for an atomic, if the provider has atomics. (RT-30) */
static void
expect_refused_atomic(uint8_t opcode, struct place to, int status)
{
	if (caps.has_atomic)
		expect_refused(opcode, 8, to, status);
	else
		CHECK(post(opcode, 8, to) == -EOPNOTSUPP);
}

/* After an error the connection works, or another one does. (RT-27) */
static void
lives_on(void)
{
	expect(RTSAN_WR_PUSH, 5000, at(ALL, 0));
	expect(RTSAN_WR_PULL, 5000, at(ALL, 0));
	expect(RTSAN_WR_SEND, 100, nowhere);
}

static void
disconnected(void)
{
	CHECK(rtsan_disconnect(qp) == 0);
	CHECK(next_event() == RTSAN_EV_DISCONNECTED);
}

/* ---- cases ---- */

static void
case_unreachable(void)
{
	int net = (int)(strrchr(peer, '.') - peer), type;
	char nobody[64];

	/* an unused address in the peer's network */
	snprintf(nobody, sizeof(nobody), "%.*s.99", net, peer);
	type = connect_as(nobody, SERVICE, 0, PLAIN);
	MUST(type == RTSAN_EV_UNREACHABLE, "event %d", type);
}

static void
case_no_listener(void)
{
	int type = connect_as(peer, SERVICE + 1, 0, PLAIN);

	MUST(type == RTSAN_EV_REJECTED && ev.reason == RTSAN_R_NO_LISTENER,
	     "event %d, reason %u", type, ev.reason);
}

static void
case_refused(void)
{
	int type = connect_as(peer, SERVICE, 0, REFUSE);

	MUST(type == RTSAN_EV_REJECTED && ev.reason == RTSAN_R_REFUSED,
	     "event %d, reason %u", type, ev.reason);
	CHECK(ev.private_len == 7 && memcmp(ev.private_data, "go away", 7) == 0);
}

static void
case_partition(void)
{
	int type = connect_as(peer, SERVICE, 0x8123, PLAIN);

	/* Requests of another partition are not answered, refused as such, or not supported. */
	MUST(type == -EOPNOTSUPP || type == RTSAN_EV_UNREACHABLE ||
		     (type == RTSAN_EV_REJECTED && ev.reason == RTSAN_R_PKEY),
	     "event %d, reason %u", type, ev.reason);
}

static void
case_key(void)
{
	struct place forged;

	connect_with(PLAIN);
	forged = at(ALL, 0);
	forged.rkey ^= 0x5a5a5a5a;
	expect_refused(RTSAN_WR_PUSH, 100, forged, RTSAN_WC_REM_ACCESS);
	expect_refused(RTSAN_WR_PUSH, 100000, forged, RTSAN_WC_REM_ACCESS);
	expect_refused(RTSAN_WR_PULL, 100, forged, RTSAN_WC_REM_ACCESS);
	expect_refused_atomic(RTSAN_WR_FETCH_ADD, forged, RTSAN_WC_REM_ACCESS);
	lives_on();
	disconnected();
}

static void
case_bounds(void)
{
	static const uint8_t ops[] = {RTSAN_WR_PUSH, RTSAN_WR_PULL};
	const int status = RTSAN_WC_REM_ACCESS;

	connect_with(PLAIN);
	for (size_t i = 0; i < sizeof(ops); i++) {
		expect_refused(ops[i], 100, at(ALL, REGION - 99), status);
		expect_refused(ops[i], 100, at(ALL, -1ull), status);
		expect_refused(ops[i], 100000, at(ALL, REGION - 50000), status);
		expect_refused(ops[i], 4096, (struct place){UINT64_MAX - 100, offer.rkey[ALL]},
			       status);
		expect(ops[i], 100, at(ALL, REGION - 100));
	}
	expect_refused_atomic(RTSAN_WR_FETCH_ADD, at(ALL, REGION), status);
	lives_on();
	disconnected();
}

static void
case_rights(void)
{
	connect_with(PLAIN);
	expect_refused(RTSAN_WR_PUSH, 100, at(PULL_ONLY, 0), RTSAN_WC_REM_ACCESS);
	expect_refused(RTSAN_WR_PULL, 100, at(PUSH_ONLY, 0), RTSAN_WC_REM_ACCESS);
	expect_refused(RTSAN_WR_PULL, 100, at(NO_RIGHTS, 0), RTSAN_WC_REM_ACCESS);
	expect_refused_atomic(RTSAN_WR_CMP_SWAP, at(PULL_ONLY, 0), RTSAN_WC_REM_ACCESS);
	lives_on();
	disconnected();
}

/* An earlier request in flight must not get the error. */
static void
align_behind_push(void)
{
	struct rtsan_sge sge = {rtsan_mr_addr(mr), REGION, rtsan_mr_lkey(mr)};
	struct rtsan_sge word = {sge.addr, 8, sge.lkey};
	const struct rtsan_send_wr wr[] = {
		wr_to(RTSAN_WR_PUSH, &sge, at(ALL, 0)),
		wr_to(RTSAN_WR_FETCH_ADD, &word, at(ALL, 4)),
	};
	int status;

	CHECK(rtsan_post_send(qp, wr, 2) == 2);
	status = next_status();
	MUST(status == RTSAN_WC_SUCCESS || (caps.ends_on_error && status == RTSAN_WC_FLUSHED),
	     "the push before it: %s", name_of(status));
	refused(next_status(), RTSAN_WC_REM_ALIGN);
}

static void
case_align(void)
{
	connect_with(PLAIN);
	if (caps.has_atomic)
		align_behind_push();
	expect_refused_atomic(RTSAN_WR_FETCH_ADD, at(ALL, 4), RTSAN_WC_REM_ALIGN);
	if (caps.has_atomic)
		expect(RTSAN_WR_FETCH_ADD, 8, at(ALL, 8));
	lives_on();
	disconnected();
}

static void
case_too_long(void)
{
	connect_with(SHORT);
	expect_refused(RTSAN_WR_SEND, 17, nowhere, RTSAN_WC_REM_LENGTH);
	expect_refused(RTSAN_WR_SEND, 20000, nowhere, RTSAN_WC_REM_LENGTH);
	expect(RTSAN_WR_SEND, 16, nowhere);
	disconnected();
}

/* Have the server post its receives now. */
static void
make_ready(void)
{
	uint8_t *byte = rtsan_mr_addr(mr);
	uint64_t until = rt_now_ms() + LIMIT_MS;

	*byte = 1;
	expect(RTSAN_WR_PUSH, 1, at(ALL, READY_AT));
	do {
		MUST(rt_now_ms() < until, "no receives are posted");
		expect(RTSAN_WR_PULL, 1, at(ALL, READY_AT));
	} while (*byte != 0);
}

/* The peer posts no receive; the sender waits for 300 ms. (RT-23) */
static void
case_not_ready(void)
{
	uint64_t began;
	int got;

	connect_with(NOT_READY);
	began = rt_now_ms();
	got = request(RTSAN_WR_SEND, 100, nowhere);
	MUST(rt_now_ms() - began >= 200, "gave up too soon");
	refused(got, RTSAN_WC_RNR_RETRY_EXC);
	/* Requests without a receive go on meanwhile; another send is refused as well. */
	expect(RTSAN_WR_PUSH, 5000, at(ALL, 0));
	expect_refused(RTSAN_WR_SEND, 200, nowhere, RTSAN_WC_RNR_RETRY_EXC);
	make_ready();
	lives_on();
	disconnected();
}

static void
revoke_with(uint8_t opcode)
{
	uint64_t until = rt_now_ms() + LIMIT_MS;
	struct place revoked;
	int status;

	connect_with(REVOKE);
	revoked = at(TO_REVOKE, 0);
	expect(opcode, REGION, revoked);
	expect(RTSAN_WR_SEND, 100, nowhere);
	do
		status = request(opcode, REGION, revoked);
	while (status == RTSAN_WC_SUCCESS && rt_now_ms() < until);
	behaviour = PLAIN; /* for a new connection, if one is made */
	refused(status, status == RTSAN_WC_REM_ACCESS ? status : RTSAN_WC_REM_REVOKED);
	/* From now on the key is unknown. */
	expect_refused(opcode, 100, revoked, RTSAN_WC_REM_ACCESS);
	lives_on();
	disconnected();
}

static void
case_revoked_push(void)
{
	revoke_with(RTSAN_WR_PUSH);
}

static void
case_revoked_pull(void)
{
	revoke_with(RTSAN_WR_PULL);
}

/* Errors of our own side are returned by the call that posts. */
static void
case_local(void)
{
	struct rtsan_sge sge = {rtsan_mr_addr(mr), 100, rtsan_mr_lkey(mr)};
	struct rtsan_send_wr wr = {.opcode = 99, .nb_sge = 1, .sge = &sge};
	struct rtsan_mr *none;

	connect_with(PLAIN);
	MUST(rtsan_post_send(qp, &wr, 1) == -EINVAL, "an unknown opcode was taken");
	wr.opcode = RTSAN_WR_SEND;
	sge.length = 2 * REGION;
	MUST(rtsan_post_send(qp, &wr, 1) == -EINVAL, "memory outside of its region was taken");
	sge.length = 100;
	sge.lkey ^= 0x33333333;
	MUST(rtsan_post_send(qp, &wr, 1) == -EINVAL, "an unknown local key was taken");
	MUST(rtsan_mr_alloc(ctx, 0, 0, &none) == -EINVAL, "a region without bytes was made");
	MUST(rtsan_connect(qp, peer, SERVICE, NULL) == -EISCONN, "connected twice");
	lives_on();
	disconnected();
	sge.lkey = rtsan_mr_lkey(mr);
	MUST(rtsan_post_send(qp, &wr, 1) == -ENOTCONN, "posted to the dead");
}

/*
 * Work that is posted after the end of the connection, while its event is not polled yet, completes
 * as flushed. Then the queue pair connects again.
 */
static void
case_late(void)
{
	const struct rtsan_recv_wr receive = {.nb_sge = 0};
	const struct timespec pause = {.tv_nsec = 5000000};
	int got;

	connect_with(PLAIN);
	CHECK(rtsan_disconnect(qp) == 0);
	while ((got = request(RTSAN_WR_SEND, 10, nowhere)) == RTSAN_WC_SUCCESS)
		;
	for (int i = 0; i < 50 && got == RTSAN_WC_FLUSHED; i++) {
		nanosleep(&pause, NULL);
		CHECK((i % 2 ? post(RTSAN_WR_SEND, 10, nowhere) :
			       rtsan_post_recv(qp, &receive, 1)) == 1);
		got = next_status();
	}
	MUST(got == RTSAN_WC_FLUSHED, "status %d of late work", got);
	CHECK(next_event() == RTSAN_EV_DISCONNECTED);
	MUST(post(RTSAN_WR_SEND, 10, nowhere) == -ENOTCONN, "posted to the dead");
	CHECK(connect_qp(peer, SERVICE, 0) == RTSAN_EV_ESTABLISHED);
	lives_on();
}

/* Transfers in both directions until the connection ends. Then everything posted has completed. */
static void
stream_to_end(void)
{
	uint64_t until = rt_now_ms() + LIMIT_MS;
	int nb_posted = 0, nb_done = 0, nb_bad = 0, type = 0;
	struct rtsan_wc wc;

	connect_with(PLAIN);
	rt_say("streaming");
	while (type == 0 && rt_now_ms() < until) {
		while (nb_posted - nb_done < 16 && nb_bad == 0 &&
		       post(nb_posted % 2 ? RTSAN_WR_PULL : RTSAN_WR_PUSH, 100000, at(ALL, 0)) == 1)
			nb_posted++;
		while (rtsan_cq_poll(cq, &wc, 1) == 1) {
			nb_done++;
			if (wc.status == RTSAN_WC_SUCCESS)
				continue;
			nb_bad++;
			MUST(wc.status == RTSAN_WC_RETRY_EXC || wc.status == RTSAN_WC_FLUSHED,
			     "status %s", name_of(wc.status));
		}
		if (rtsan_event_poll(ctx, &ev) == 1)
			type = ev.type;
	}
	MUST(type == RTSAN_EV_DISCONNECTED, "event %d", type);
	while (rtsan_cq_poll(cq, &wc, 1) == 1)
		nb_done++;
	MUST(nb_done == nb_posted, "%d of %d requests completed", nb_done, nb_posted);
	rt_say("ended, reason %u", ev.reason);
	end_qp();
}

/* The script stops the peer's host while nothing is in flight. (RT-24) */
static void
case_idle(void)
{
	int type;

	connect_with(PLAIN);
	rt_say("idle");
	type = next_event();
	MUST(type == RTSAN_EV_DISCONNECTED, "event %d", type);
	rt_say("ended, reason %u", ev.reason);
	MUST(ev.reason == RTSAN_R_TIMEOUT, "reason %u", ev.reason);
}

/* The script removes the device under load: all posted work completes. */
static void
case_removed(void)
{
	uint64_t until = rt_now_ms() + LIMIT_MS;
	int nb_posted = 0, nb_done = 0, nb_bad = 0, rc = 0;
	struct rtsan_wc wc;

	connect_with(PLAIN);
	rt_say("streaming");
	while ((rc >= 0 || nb_done < nb_posted) && rt_now_ms() < until) {
		while (nb_posted - nb_done < 16 && nb_bad == 0 && rc == 0 &&
		       post(RTSAN_WR_PUSH, 100000, at(ALL, 0)) == 1)
			nb_posted++;
		while (rtsan_cq_poll(cq, &wc, 1) == 1) {
			nb_done++;
			nb_bad += wc.status != RTSAN_WC_SUCCESS;
		}
		rc = rtsan_event_poll(ctx, &ev);
	}
	rt_say("ended: %d posted, %d completed, %d badly, %d", nb_posted, nb_done, nb_bad, rc);
	CHECK(rc == -EIO && nb_done == nb_posted);
	CHECK(rtsan_progress(ctx) == -EIO);
}

/* The script kills the server and does not restart it. (RT-24) */
static void
case_killed(void)
{
	uint64_t until;
	int type;

	stream_to_end();
	until = rt_now_ms() + LIMIT_MS;
	type = connect_as(peer, SERVICE, 0, PLAIN);
	/* a daemon outlives its programs and rejects; a device that is removed may do so, too */
	while (type == RTSAN_EV_REJECTED && ev.reason != RTSAN_R_NO_LISTENER &&
	       rt_now_ms() < until) {
		end_qp();
		type = connect_as(peer, SERVICE, 0, PLAIN);
	}
	MUST(type == RTSAN_EV_UNREACHABLE ||
		     (type == RTSAN_EV_REJECTED && ev.reason == RTSAN_R_NO_LISTENER),
	     "event %d, reason %u", type, ev.reason);
}

/* The script kills the server and starts another one. (RT-24) */
static void
case_restarted(void)
{
	uint64_t until;
	int type;

	stream_to_end();
	until = rt_now_ms() + LIMIT_MS;
	while ((type = connect_as(peer, SERVICE, 0, PLAIN)) != RTSAN_EV_ESTABLISHED) {
		MUST(rt_now_ms() <= until, "no connection: event %d", type);
		end_qp();
	}
	lives_on();
	disconnected();
}

static const struct {
	const char *name;
	void (*run)(void);
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

static void
run_case(const char *name)
{
	uint64_t began = rt_now_ms();
	size_t i = 0;

	while (i < sizeof(cases) / sizeof(cases[0]) && strcmp(cases[i].name, name) != 0)
		i++;
	case_name = name;
	MUST(i < sizeof(cases) / sizeof(cases[0]), "no such case");
	cases[i].run();
	if (qp != NULL)
		end_qp();
	rt_say("ok %s after %d ms", name, (int)(rt_now_ms() - began));
}

static int
run_client(const char *spec, char **names)
{
	case_name = "begin";
	rt_failing = failing;
	CHECK(rtsan_open(spec, &ctx) == 0);
	rtsan_query(ctx, &caps, sizeof(caps));
	CHECK(rtsan_cq_create(ctx, 4096, &cq) == 0);
	CHECK(rtsan_mr_alloc(ctx, REGION, 0, &mr) == 0);
	for (; *names != NULL; names++)
		run_case(*names);
	case_name = "end";
	CHECK(rtsan_mr_dereg(mr) == 0);
	CHECK(rtsan_cq_destroy(cq) == 0);
	rtsan_close(ctx);
	return 0;
}

int
main(int argc, char **argv)
{
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	if (argc == 3 && strcmp(argv[1], "server") == 0)
		return errors_serve(argv[2]);
	if (argc >= 5 && strcmp(argv[1], "client") == 0) {
		peer = argv[3];
		return run_client(argv[2], argv + 4);
	}
	fprintf(stderr, "usage: errors server SPEC | errors client SPEC PEER CASE...\n");
	return 2;
}
