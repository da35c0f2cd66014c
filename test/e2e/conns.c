/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * See conns.h. Posted work does not prevent that a queue pair is destroyed, but that a region is
 * deregistered. (SYS-2, SYS-4, RT-23, RT-26)
 */

#include <signal.h>
#include <time.h>

#include "conns.h"

#define REGION     100000
#define ROUNDS     3
#define TIMEOUT_MS 120000 /* before a wait fails */
#define UNDER      40     /* requests in flight */

enum service {
	ORDERLY = 1, /* its connections end in order */
	STOP,
	OTHER,
	ANYHOW, /* its connections may end before they are established */
	NOBODY = 77,
};

static struct rtsan_ctx *ctx;
static struct rtsan_cq *cq;
static struct rtsan_qp *qp;
static struct rtsan_mr *mr;
static struct rtsan_caps caps;
static const char *peer;
static const struct conns_extra *extra;

/* of the server */
static struct rtsan_listener *orderly, *anyhow, *stop;
static int nb_open; /* number of connections */

/* The server's region, which the client gets as private data. */
static struct place {
	uint64_t addr;
	uint64_t rkey;
} place;

static void
failing(void)
{
	if (extra->explain != NULL && ctx != NULL)
		extra->explain(ctx);
}

struct rtsan_qp *
conns_make_qp(void)
{
	return rt_make_qp(ctx, cq, 0, NULL);
}

static void
open_ctx(const char *spec)
{
	char own[RTSAN_ADDRESS_MAX];

	CHECK(rtsan_open(spec, &ctx) == 0);
	CHECK(rtsan_query(ctx, &caps, sizeof(caps)) == 0);
	CHECK(rtsan_address(ctx, 0, own) == 0 && own[0] != '\0');
	CHECK(rtsan_address(ctx, 16, own) == -ENOENT);
	CHECK(rtsan_cq_create(ctx, 1024, &cq) == 0);
	CHECK(rtsan_mr_alloc(ctx, REGION, RTSAN_REMOTE_PUSH, &mr) == 0);
}

static int
post(uint8_t opcode, uint64_t id, const struct rtsan_mr *from, uint32_t len, uint64_t rkey)
{
	struct rtsan_sge sge = {rtsan_mr_addr(from), len, rtsan_mr_lkey(from)};
	struct rtsan_send_wr wr = {.wr_id = id,
				   .opcode = opcode,
				   .flags = RTSAN_WR_SIGNALED,
				   .sge = &sge,
				   .nb_sge = 1,
				   .remote_addr = opcode == RTSAN_WR_SEND ? 0 : place.addr,
				   .rkey = (uint32_t)rkey};

	return rtsan_post_send(qp, &wr, 1);
}

static void
post_recvs(const struct rtsan_mr *to, int n)
{
	struct rtsan_sge sge = {rtsan_mr_addr(to), 8, rtsan_mr_lkey(to)};
	struct rtsan_recv_wr recv = {.wr_id = 9, .sge = &sge, .nb_sge = 1};

	while (n-- > 0)
		CHECK(rtsan_post_recv(qp, &recv, 1) == 1);
}

/* The next completion is that of *id*. */
static void
done(uint64_t id, enum rtsan_wc_status status)
{
	struct rtsan_wc wc = rt_wc(cq, TIMEOUT_MS);

	CHECK(wc.wr_id == id && wc.status == status);
}

/* Connect *qp*, which may have been connected before. */
static void
connect_qp(void)
{
	CHECK(rtsan_connect(qp, peer, ORDERLY, NULL) == 0);
	rt_event(ctx, RTSAN_EV_ESTABLISHED, TIMEOUT_MS);
}

/* ---- server ---- */

static void
serve_one(const struct rtsan_event *ev)
{
	struct rtsan_conn_param param = {.private_data = &place, .private_len = sizeof(place)};
	struct rtsan_qp *new = rt_make_qp(ctx, cq, 0, ev->listener);
	int rc;

	rt_post_recv(new, mr, 8);
	rc = rtsan_accept(ctx, ev->request, new, &param);
	CHECK(rc == 0 || (rc == -ENOENT && ev->listener != orderly));
	if (rc < 0)
		rtsan_qp_destroy(new);
	else
		nb_open++;
}

/* A connection ends by a disconnect, by a destroyed queue pair, or by a closed context. */
static void
take_end(const struct rtsan_event *ev)
{
	if (ev->reason != RTSAN_R_NONE)
		printf("ended: %s\n", rtsan_reason_text(ev->reason));
	CHECK(ev->reason == RTSAN_R_NONE || rtsan_qp_context(ev->qp) != orderly);
	rtsan_qp_destroy(ev->qp);
	nb_open--;
}

static void
listen_all(void)
{
	struct rtsan_listener *again;

	CHECK(rtsan_listen(ctx, ORDERLY, 0, 64, &orderly) == 0);
	CHECK(rtsan_listen(ctx, ANYHOW, 0, 64, &anyhow) == 0);
	CHECK(rtsan_listen(ctx, STOP, 0, 64, &stop) == 0);
	CHECK(rtsan_listen(ctx, STOP, 0, 64, &again) == -EADDRINUSE);
	CHECK(rtsan_listen(ctx, OTHER, 0, 4, &again) == 0);
	rtsan_listener_destroy(again);
	CHECK(rtsan_listen(ctx, OTHER, 0, 4, &again) == 0);
}

static void
serve(const char *spec)
{
	struct rtsan_event ev = {0};
	struct rtsan_wc wc;
	uint64_t last = 0;

	open_ctx(spec);
	listen_all();
	place.addr = (uintptr_t)rtsan_mr_addr(mr);
	place.rkey = rtsan_mr_rkey(mr);
	rt_say("listening");
	/* a request may overtake the end of the connection before it */
	while (last == 0 || nb_open > 0) {
		while (rtsan_cq_poll(cq, &wc, 1) == 1)
			;
		if (rtsan_event_poll(ctx, &ev) == 0)
			continue;
		if (ev.type == RTSAN_EV_DISCONNECTED)
			take_end(&ev);
		if (ev.type == RTSAN_EV_CONNECT_REQUEST && ev.listener == stop)
			last = ev.request;
		else if (ev.type == RTSAN_EV_CONNECT_REQUEST)
			serve_one(&ev);
	}
	CHECK(rtsan_reject(ctx, last, "bye", 3) == 0);
	CHECK(rtsan_reject(ctx, last, "bye", 3) == -ENOENT);
	CHECK(rtsan_reject(ctx, 0x7654321012345, NULL, 0) == -ENOENT);
	rtsan_close(ctx);
}

/* ---- a server that reads no events for a while ---- */

static volatile sig_atomic_t nb_told;

static void
on_term(int signum)
{
	nb_told++;
}

static void
be_deaf(const char *spec)
{
	struct rtsan_event ev;
	uint64_t until;
	bool has;

	signal(SIGTERM, on_term);
	open_ctx(spec);
	CHECK(rtsan_listen(ctx, ANYHOW, 0, 64, &anyhow) == 0);
	rt_say("listening");
	while (nb_told == 0)
		rtsan_progress(ctx);
	until = rt_now_ms() + TIMEOUT_MS;
	do {
		has = rtsan_event_poll(ctx, &ev) == 1;
		/* the client has ended: that comes now, or as the end of a connection */
		CHECK(!has || ev.type == RTSAN_EV_CONNECT_REQUEST ||
		      ev.type == RTSAN_EV_DISCONNECTED);
		if (has)
			(ev.type == RTSAN_EV_DISCONNECTED ? take_end : serve_one)(&ev);
		CHECK(rt_now_ms() < until);
	} while (has || nb_open > 0);
	rt_say("all have gone");
	while (nb_told == 1)
		rtsan_progress(ctx);
	rtsan_close(ctx);
}

/* ---- client ---- */

/* Destroyed queue pairs leave nothing, and no work names a region. */
static void
nothing_left(void)
{
	CHECK(rtsan_mr_dereg(mr) == 0);
	if (extra->left != NULL)
		extra->left(ctx);
	CHECK(rtsan_mr_alloc(ctx, REGION, RTSAN_REMOTE_PUSH, &mr) == 0);
}

static void
dial(uint64_t service)
{
	struct rtsan_event ev;

	qp = conns_make_qp();
	CHECK(rtsan_connect(qp, peer, service, NULL) == 0);
	CHECK(rtsan_connect(qp, peer, service, NULL) == -EISCONN);
	ev = rt_event(ctx, RTSAN_EV_ESTABLISHED, TIMEOUT_MS);
	CHECK(ev.qp == qp && ev.private_len == sizeof(place));
	memcpy(&place, ev.private_data, sizeof(place));
}

/* A region can be deregistered when no posted work names it any more. */
static void
test_dereg(void)
{
	struct rtsan_mr *src;
	struct rtsan_wc wc;

	CHECK(rtsan_mr_alloc(ctx, REGION, 0, &src) == 0);
	CHECK(post(RTSAN_WR_PUSH, 1, src, REGION, place.rkey) == 1);
	wc = rt_wc(cq, TIMEOUT_MS);
	CHECK(wc.wr_id == 1 && wc.status == RTSAN_WC_SUCCESS && wc.qp == qp);
	CHECK(post(RTSAN_WR_SEND, 2, src, 8, 0) == 1);
	done(2, RTSAN_WC_SUCCESS);
	if (!caps.ends_on_error) { /* a refusal, and the connection goes on */
		CHECK(post(RTSAN_WR_PUSH, 3, src, 8, place.rkey ^ 0x10000) == 1);
		done(3, RTSAN_WC_REM_ACCESS);
	}
	CHECK(rtsan_mr_dereg(src) == 0);
}

/*
 * Memory of posted work may be freed when rtsan_qp_destroy() has returned, whatever is in flight.
 * Whether or not the pushes are done, the send waits for a receive of the peer, and the receives
 * wait for a send.
 */
static void
test_destroy_under_way(void)
{
	struct rtsan_mr *src, *dst;
	struct rtsan_wc wc;

	CHECK(rtsan_mr_alloc(ctx, REGION, 0, &src) == 0);
	CHECK(rtsan_mr_alloc(ctx, REGION, 0, &dst) == 0);
	for (int i = 0; i < UNDER; i++)
		CHECK(post(RTSAN_WR_PUSH, 1, src, REGION, place.rkey) == 1);
	CHECK(post(RTSAN_WR_SEND, 1, src, 8, 0) == 1);
	post_recvs(dst, UNDER);
	for (int i = 0; i < 100; i++)
		rtsan_progress(ctx);
	CHECK(rtsan_mr_dereg(src) == -EBUSY);
	CHECK(rtsan_mr_dereg(dst) == -EBUSY);
	CHECK(rtsan_cq_destroy(cq) == -EBUSY);
	rtsan_qp_destroy(qp);
	CHECK(rtsan_mr_dereg(src) == 0);
	CHECK(rtsan_mr_dereg(dst) == 0);
	/* the destroyed queue pair has no completions */
	for (int i = 0; i < 100; i++)
		CHECK(rtsan_cq_poll(cq, &wc, 1) == 0);
	nothing_left();
}

/* Posted requests are completed first; the unused receive is flushed. */
static void
test_orderly_end(void)
{
	dial(ORDERLY);
	post_recvs(mr, 1);
	for (int i = 0; i < UNDER; i++)
		CHECK(post(RTSAN_WR_PUSH, 1, mr, REGION, place.rkey) == 1);
	CHECK(rtsan_disconnect(qp) == 0);
	CHECK(rt_event(ctx, RTSAN_EV_DISCONNECTED, TIMEOUT_MS).qp == qp);
	for (int i = 0; i < UNDER; i++)
		done(1, RTSAN_WC_SUCCESS);
	done(9, RTSAN_WC_FLUSHED);
	CHECK(rtsan_disconnect(qp) == -ENOTCONN);
	CHECK(post(RTSAN_WR_SEND, 1, mr, 8, 0) == -ENOTCONN);
	nothing_left();
	connect_qp();
	CHECK(post(RTSAN_WR_PUSH, 3, mr, 8, place.rkey) == 1);
	done(3, RTSAN_WC_SUCCESS);
	rtsan_qp_destroy(qp);
	CHECK(rtsan_cq_destroy(cq) == 0);
	CHECK(rtsan_cq_create(ctx, 1024, &cq) == 0);
}

/* A queue pair can be destroyed in any state of its connection, with all it has posted. */
static void
test_destroy_while_connecting(void)
{
	struct timespec pause = {.tv_nsec = 0};
	struct rtsan_event ev;

	for (int i = 0; i < 8; i++) {
		qp = conns_make_qp();
		post_recvs(mr, 3);
		CHECK(rtsan_connect(qp, peer, ANYHOW, NULL) == 0);
		CHECK(post(RTSAN_WR_SEND, 1, mr, 8, 0) == 1);
		pause.tv_nsec = i * 500000;
		for (int k = 0; k < i; k++)
			rtsan_progress(ctx);
		nanosleep(&pause, NULL);
		rtsan_qp_destroy(qp);
	}
	/* no listener has that service; the rejection may come after the destroy */
	qp = conns_make_qp();
	CHECK(rtsan_connect(qp, peer, NOBODY, NULL) == 0);
	rtsan_qp_destroy(qp);
	while (rtsan_event_poll(ctx, &ev) == 1)
		CHECK(ev.qp == NULL);
}

/* If a connection is given up before it is established, posted work is flushed. */
static void
test_given_up(void)
{
	int net = (int)(strrchr(peer, '.') - peer), nb_sends = 0;
	struct rtsan_wc wc;
	char nobody[64];

	snprintf(nobody, sizeof(nobody), "%.*s.99", net, peer);
	qp = conns_make_qp();
	post_recvs(mr, 3);
	CHECK(rtsan_connect(qp, nobody, ORDERLY, NULL) == 0);
	CHECK(post(RTSAN_WR_SEND, 1, mr, 8, 0) == 1);
	CHECK(rtsan_disconnect(qp) == 0);
	CHECK(rt_event(ctx, RTSAN_EV_DISCONNECTED, TIMEOUT_MS).qp == qp);
	for (int i = 0; i < 4; i++) {
		wc = rt_wc(cq, TIMEOUT_MS);
		CHECK(wc.status == RTSAN_WC_FLUSHED && (wc.wr_id == 1 || wc.wr_id == 9));
		nb_sends += wc.wr_id == 1;
	}
	CHECK(nb_sends == 1);
	connect_qp();
	rtsan_qp_destroy(qp);
}

/* Requests whose queue pairs are destroyed soon. */
static void
leave(const char *spec)
{
	const struct timespec pause = {.tv_nsec = 50000000};

	open_ctx(spec);
	for (int i = 0; i < 8; i++) {
		qp = conns_make_qp();
		CHECK(rtsan_connect(qp, peer, ANYHOW, NULL) == 0);
		for (int k = 0; k < 100; k++)
			rtsan_progress(ctx);
		nanosleep(&pause, NULL);
		rtsan_qp_destroy(qp);
	}
	rtsan_close(ctx);
}

/* A queue pair that was rejected can be connected again. */
static void
test_refused(void)
{
	qp = conns_make_qp();
	CHECK(rtsan_connect(qp, peer, NOBODY, NULL) == 0);
	CHECK(rt_event(ctx, RTSAN_EV_REJECTED, TIMEOUT_MS).reason == RTSAN_R_NO_LISTENER);
	connect_qp();
	rtsan_qp_destroy(qp);
}

/* Memory of the program's own, and orders that this provider lacks. */
static void
test_lacks(void)
{
	static uint8_t own[4096];
	const struct rtsan_conn_param unordered = {.order = RTSAN_UNORDERED};
	struct rtsan_sge sge = {.addr = own, .length = sizeof(own)};
	struct rtsan_send_wr wr = {
		.wr_id = 4,
		.opcode = RTSAN_WR_PUSH,
		.flags = RTSAN_WR_SIGNALED,
		.nb_sge = 1,
		.sge = &sge,
		.remote_addr = place.addr,
		.rkey = (uint32_t)place.rkey,
	};
	struct rtsan_mr *reg;
	struct rtsan_wc wc;
	int rc;

	qp = conns_make_qp();
	rc = rtsan_connect(qp, peer, ORDERLY, &unordered);
	CHECK(rc == (caps.has_unordered ? 0 : -EOPNOTSUPP));
	if (rc == 0)
		rt_event(ctx, RTSAN_EV_ESTABLISHED, TIMEOUT_MS);
	rtsan_qp_destroy(qp);
	dial(ORDERLY);
	CHECK(rtsan_mr_reg(ctx, own, sizeof(own), 0, &reg) == 0);
	/* memory in no region, then in one */
	CHECK(rtsan_post_send(qp, &wr, 1) == (caps.has_mr_reg ? 1 : -EINVAL));
	sge.lkey = rtsan_mr_lkey(reg);
	CHECK(rtsan_post_send(qp, &wr, 1) == 1);
	if (caps.has_mr_reg)
		done(4, RTSAN_WC_SUCCESS);
	wc = rt_wc(cq, TIMEOUT_MS);
	CHECK(wc.wr_id == 4 && wc.status == RTSAN_WC_SUCCESS && wc.byte_len == sizeof(own));
	CHECK(rtsan_mr_dereg(reg) == 0);
	rtsan_qp_destroy(qp);
}

/* A process may have several contexts, or the second one is refused. */
static void
test_second(const char *spec)
{
	struct rtsan_ctx *second;
	int rc = rtsan_open(spec, &second);

	CHECK(rc == 0 || rc == -EBUSY);
	if (rc == 0)
		rtsan_close(second);
}

/* The server ends as soon as it has rejected; over memif its last packet may be lost by that. */
static void
stop_server(void)
{
	uint64_t until = rt_now_ms() + TIMEOUT_MS;
	struct rtsan_event ev = {.type = 0};

	rtsan_qp_destroy(qp);
	qp = conns_make_qp();
	CHECK(rtsan_connect(qp, peer, STOP, NULL) == 0);
	while (rtsan_event_poll(ctx, &ev) == 0)
		CHECK(rt_now_ms() < until);
	CHECK(ev.type == RTSAN_EV_UNREACHABLE ||
	      (ev.type == RTSAN_EV_REJECTED && ev.reason == RTSAN_R_REFUSED &&
	       memcmp(ev.private_data, "bye", 3) == 0));
}

static void
client(const char *spec)
{
	for (int round = 0; round < ROUNDS; round++) {
		open_ctx(spec);
		test_second(spec);
		dial(ORDERLY);
		test_dereg();
		test_destroy_under_way();
		test_orderly_end();
		test_destroy_while_connecting();
		test_given_up();
		test_refused();
		test_lacks();
		if (extra->round != NULL)
			extra->round(ctx, spec);
		/* closing a context also ends a connection and its queues */
		dial(extra->link_ends ? ANYHOW : ORDERLY);
		post_recvs(mr, 5);
		CHECK(post(RTSAN_WR_PUSH, 1, mr, REGION, place.rkey) == 1);
		if (extra->closing != NULL)
			extra->closing(ctx);
		if (round == ROUNDS - 1)
			break;
		rtsan_close(ctx);
		ctx = NULL;
		if (extra->closed != NULL)
			extra->closed();
	}
	stop_server();
	/* the process exits without closing the context */
}

void
conns_run(int argc, char **argv, const struct conns_extra *more)
{
	static const struct {
		const char *name;
		void (*run)(const char *spec);
		int nb_args;
	} roles[] = {
		{"server", serve, 3},
		{"client", client, 4},
		{"deaf", be_deaf, 3},
		{"leaves", leave, 4},
	};

	extra = more;
	rt_failing = failing;
	for (size_t i = 0; argc > 1 && i < sizeof(roles) / sizeof(*roles); i++) {
		if (strcmp(argv[1], roles[i].name) != 0 || argc != roles[i].nb_args)
			continue;
		peer = argv[3];
		roles[i].run(argv[2]);
		printf("%s: ok\n", argv[1]);
		exit(0);
	}
	exit(2);
}
