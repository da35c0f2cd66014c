/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Calls of libibverbs and librdmacm, for test_sanverbs.py: verbs_calls CASE.
 * Two queue pairs of the process are connected to each other where a case transfers.
 */

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "verbs_pair.h"

#define WRITERS 3
#define AREAS   30
#define AREA    (64 * PAGE)

/* ---- cases: memory ---- */

static uint8_t global[3 * PAGE + 100];
static const uint8_t constant[5000] = {1, 2, 3, 4, 5};

/* Private memory: at *addr*, or anywhere. */
static void *
map_at(void *addr, size_t bytes)
{
	return mmap(addr, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | (addr != NULL ? MAP_FIXED : 0), -1, 0);
}

/* A write to *to* arrives there, and around it nothing changes. */
static void
arrives(void *to, size_t length)
{
	uint8_t *from = malloc(length), *bytes = to;
	struct ibv_mr *own, *other;

	for (size_t i = 0; i < length; i++)
		from[i] = (uint8_t)(i * 7 + 1);
	memset(to, 0, length);
	own = reg(from, length, 0);
	other = reg(to, length, ALL);
	CHECK(transfer(IBV_WR_RDMA_WRITE, own, from, other, to, (uint32_t)length) ==
	      IBV_WC_SUCCESS);
	CHECK(memcmp(bytes, from, length) == 0);
	memset(from, 0, length);
	CHECK(transfer(IBV_WR_RDMA_READ, own, from, other, to, (uint32_t)length) ==
	      IBV_WC_SUCCESS);
	CHECK(memcmp(bytes, from, length) == 0);
	CHECK(ibv_dereg_mr(own) == 0 && ibv_dereg_mr(other) == 0);
	free(from);
}

static void *
register_stack(void *arg)
{
	uint8_t bytes[100];

	CHECK(ibv_reg_mr(pd, bytes, 100, ALL) == NULL || getenv("EMBEDDED") != NULL);
	return NULL;
}

static void
memory(void)
{
	uint8_t *p = malloc(100), *big = map_at(NULL, 6 * PAGE);
	struct ibv_mr *all, *some, *from;
	uint8_t on_stack[100];
	pthread_t thread;

	open_pair();
	memset(p, 9, 100);
	arrives(p + 10, 50);
	CHECK(p[9] == 9 && p[60] == 9);
	arrives(global + 3, sizeof(global) - 3);
	/* regions that overlap and adjoin */
	big[0] = 1;
	all = reg(big + PAGE, 2 * PAGE, ALL);
	some = reg(big + 100, 4 * PAGE, ALL);
	arrives(big, 6 * PAGE);
	CHECK(ibv_dereg_mr(all) == 0 && ibv_dereg_mr(some) == 0);
	/* memory that is unmapped, and other memory at its place */
	munmap(big, 6 * PAGE);
	CHECK(map_at(big, 6 * PAGE) == big);
	CHECK(big[PAGE] == 0);
	arrives(big, 6 * PAGE);
	/* memory that grows after its region, and other memory at its old place */
	p = malloc(1 << 20);
	memset(p, 5, 1 << 20);
	all = reg(p, 1 << 20, ALL);
	CHECK(ibv_dereg_mr(all) == 0);
	p = realloc(p, 8 << 20);
	memset(p + (1 << 20), 6, 7 << 20);
	for (int i = 0; i < 4; i++)
		arrives(malloc(1 << 20), 1 << 20);
	for (size_t i = 0; i < 8 << 20; i++)
		CHECK(p[i] == (i < 1 << 20 ? 5 : 6));
	/* constants can be sent */
	from = reg((void *)(uintptr_t)constant, sizeof(constant), 0);
	all = reg(big, sizeof(constant), ALL);
	CHECK(transfer(IBV_WR_RDMA_WRITE, from, (void *)(uintptr_t)constant, all, big,
		       sizeof(constant)) == IBV_WC_SUCCESS);
	CHECK(memcmp(big, constant, sizeof(constant)) == 0);
	/* what can't be */
	CHECK(ibv_reg_mr(pd, (void *)PAGE, PAGE, 0) == NULL || getenv("EMBEDDED") != NULL);
	CHECK(ibv_reg_mr(pd, p, 100, IBV_ACCESS_REMOTE_WRITE) == NULL && errno == EINVAL);
	CHECK(ibv_reg_mr(pd, on_stack, 100, ALL) == NULL || getenv("EMBEDDED") != NULL);
	CHECK(pthread_create(&thread, NULL, register_stack, NULL) == 0 &&
	      pthread_join(thread, NULL) == 0);
	puts("memory: ok");
}

/* A peer gets at nothing beyond its region, though whole pages are shared. */
static void
bounds(void)
{
	uint8_t *p = malloc(PAGE), *from = calloc(1, 100);
	struct ibv_mr *own, *other;

	open_pair();
	memset(p, 9, PAGE);
	own = reg(from, 100, 0);
	other = reg(p + 100, 100, ALL);
	CHECK(transfer(IBV_WR_RDMA_WRITE, own, from, other, p + 150, 51) == IBV_WC_REM_ACCESS_ERR);
	CHECK(p[99] == 9 && p[200] == 9);
	CHECK(qp[0]->state == IBV_QPS_ERR);
	puts("bounds: ok");
}

static atomic_bool is_over;
static uint8_t *areas[AREAS];
static uint64_t written[WRITERS][AREAS];

/* Count in an own place of each area, and through the kernel: nothing may be lost. */
static void *
writer(void *arg)
{
	uint64_t id = (uintptr_t)arg, nb = 0;
	int fds[2];

	CHECK(pipe(fds) == 0);
	while (!is_over) {
		uint64_t area = nb % AREAS, page = nb / AREAS % (AREA / PAGE);
		volatile uint64_t *at = (void *)(areas[area] + page * PAGE + id * 16);

		++*at;
		nb++;
		written[id][area]++;
		/* the kernel writes beside it */
		CHECK(write(fds[1], &nb, sizeof(nb)) == sizeof(nb));
		CHECK(read(fds[0], (void *)(at + 1), sizeof(nb)) == sizeof(nb));
		CHECK(at[1] == nb);
	}
	return NULL;
}

static void
threads(void)
{
	pthread_t thread[WRITERS];
	struct ibv_mr *mr;

	open_first();
	for (int i = 0; i < AREAS; i++)
		areas[i] = map_at(NULL, AREA);
	for (uintptr_t i = 0; i < WRITERS; i++)
		CHECK(pthread_create(&thread[i], NULL, writer, (void *)i) == 0);
	for (int i = 0; i < AREAS; i++) {
		usleep(5000);
		mr = reg(areas[i], AREA, ALL);
		usleep(1000);
		if (i % 3 != 0)
			CHECK(ibv_dereg_mr(mr) == 0);
	}
	is_over = true;
	for (int i = 0; i < WRITERS; i++)
		pthread_join(thread[i], NULL);
	for (uint64_t id = 0; id < WRITERS; id++) {
		for (int i = 0; i < AREAS; i++) {
			uint64_t sum = 0;

			for (int page = 0; page < AREA / PAGE; page++)
				sum += *(uint64_t *)(areas[i] + page * PAGE + id * 16);
			CHECK(sum == written[id][i] && sum > 0);
		}
	}
	puts("threads: ok");
}

/* A child has its own copy, from the time of fork(). */
static void
forked(void)
{
	uint8_t *p = malloc(PAGE);
	int status;
	pid_t pid;

	open_first();
	memset(p, 1, PAGE);
	reg(p, PAGE, ALL);
	pid = fork();
	if (pid == 0) {
		usleep(100000);
		_exit(p[0] == 1 && (p[1] = 3) == 3 ? 0 : 1);
	}
	p[0] = 2;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(p[1] == 1);
	puts("forked: ok");
}

/* ---- cases: states ---- */

static void
states(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_mr *mr;
	struct ibv_qp *q;

	open_first();
	q = create();
	CHECK(post_recv(q, 1, NULL) == EINVAL);
	CHECK(to_rts(q) == EINVAL);
	CHECK(to_rtr(q, 1, TO_RTR) == EINVAL);
	CHECK(to_init(q) == 0 && q->state == IBV_QPS_INIT);
	CHECK(to_rtr(q, 1, TO_RTR & ~IBV_QP_DEST_QPN) == EINVAL);
	CHECK(to_rtr(q, 1, TO_RTR | IBV_QP_SQ_PSN) == EINVAL);
	CHECK(q->state == IBV_QPS_INIT);
	CHECK(to_init(q) == 0);
	/* work that waits is flushed in order, and later work at once */
	for (uint64_t i = 0; i < 3; i++)
		CHECK(post_recv(q, i, NULL) == 0);
	CHECK(to_state(q, IBV_QPS_ERR) == 0);
	CHECK(post_recv(q, 3, NULL) == 0);
	for (uint64_t i = 0; i < 4; i++) {
		struct ibv_wc wc = completion();

		CHECK(wc.wr_id == i && wc.status == IBV_WC_WR_FLUSH_ERR && wc.qp_num == q->qp_num);
	}
	CHECK(to_init(q) == EINVAL);
	CHECK(to_state(q, IBV_QPS_RESET) == 0);
	CHECK(to_init(q) == 0 && post_recv(q, 4, NULL) == 0);
	CHECK(ibv_query_qp(q, &attr, IBV_QP_STATE | IBV_QP_CAP, &init) == 0);
	CHECK(attr.qp_state == IBV_QPS_INIT && attr.cap.max_send_wr >= DEPTH && init.send_cq == cq);
	CHECK(ibv_destroy_cq(cq) == EBUSY);
	/* memory of a receive may go before its queue pair */
	mr = reg(global, 100, ALL);
	CHECK(post_recv(q, 5, mr) == 0 && ibv_dereg_mr(mr) == 0);
	CHECK(ibv_destroy_qp(q) == 0);
	CHECK(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
	puts("states: ok");
}

/* The end of a connected queue pair: its peer keeps its receives until it learns of that. */
static void
ends(void)
{
	uint8_t *p = malloc(100);
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 7, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	open_pair();
	mr = reg(p, 100, IBV_ACCESS_LOCAL_WRITE);
	sge = (struct ibv_sge){(uintptr_t)p, 100, mr->lkey};
	for (uint64_t i = 0; i < 3; i++)
		CHECK(post_recv(qp[1], i, mr) == 0);
	CHECK(ibv_post_send(qp[0], &wr, &bad) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(completion().status == IBV_WC_SUCCESS);
	CHECK(ibv_destroy_qp(qp[0]) == 0);
	usleep(200000);
	CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
	CHECK(qp[1]->state == IBV_QPS_RTS);
	CHECK(ibv_post_send(qp[1], &wr, &bad) == 0);
	wc = completion();
	CHECK(wc.wr_id == 7 && wc.status == IBV_WC_RETRY_EXC_ERR);
	for (uint64_t i = 1; i < 3; i++) {
		wc = completion();
		CHECK(wc.wr_id == i && wc.status == IBV_WC_WR_FLUSH_ERR);
	}
	CHECK(qp[1]->state == IBV_QPS_ERR);
	puts("ends: ok");
}

/* Receives shared by two queue pairs, and immediates. */
/* The next asynchronous event, of *element*; 0: there is none. */
static enum ibv_event_type
async_event(const void *element)
{
	struct pollfd p = {.fd = context->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	if (poll(&p, 1, 0) == 0)
		return 0;
	CHECK(ibv_get_async_event(context, &event) == 0);
	CHECK(event.element.srq == element);
	ibv_ack_async_event(&event);
	return event.event_type;
}

/* Its program learns that few receives are left, and that a queue pair takes no more of them. */
static void
limits(struct ibv_send_wr *wr, struct ibv_recv_wr *recv)
{
	struct ibv_srq_attr attr = {.max_wr = 2 * DEPTH, .srq_limit = DEPTH + 1};
	struct ibv_recv_wr *bad_recv;
	struct ibv_send_wr *bad;

	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EOPNOTSUPP);
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == EINVAL);
	for (int i = 0; i < 3; i++)
		CHECK(ibv_post_srq_recv(srq, recv, &bad_recv) == 0);
	attr.srq_limit = 2;
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == 0);
	CHECK(ibv_query_srq(srq, &attr) == 0 && attr.srq_limit == 2);
	for (int i = 0; i < 3; i++) {
		CHECK(async_event(srq) == 0);
		CHECK(ibv_post_send(qp[0], wr, &bad) == 0);
		CHECK(completion().status == 0 && completion().status == 0);
		CHECK(i != 1 || async_event(srq) == IBV_EVENT_SRQ_LIMIT_REACHED);
	}
	CHECK(ibv_query_srq(srq, &attr) == 0 && attr.srq_limit == 0 && async_event(srq) == 0);
	attr.srq_limit = 1; /* reached already */
	CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == 0);
	CHECK(async_event(srq) == IBV_EVENT_SRQ_LIMIT_REACHED);
	CHECK(to_state(qp[1], IBV_QPS_ERR) == 0);
	while (async_event(qp[1]) != IBV_EVENT_QP_LAST_WQE_REACHED)
		sched_yield();
	CHECK(to_state(qp[0], IBV_QPS_ERR) == 0);
	CHECK(ibv_destroy_qp(qp[0]) == 0 && ibv_destroy_qp(qp[1]) == 0);
	CHECK(async_event(qp[0]) == 0); /* dropped with its queue pair */
	connect_pair();
}

static void
shared(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
	uint8_t *p = calloc(2, 100);
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 7,
				 .opcode = IBV_WR_SEND_WITH_IMM,
				 .imm_data = 0x12345678,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1};
	struct ibv_send_wr *bad;
	struct ibv_recv_wr recv = {.num_sge = 1}, *bad_recv;
	struct ibv_srq_attr attr;
	struct ibv_sge to;

	open_first();
	srq = ibv_create_srq(pd, &init);
	CHECK(srq != NULL && ibv_query_srq(srq, &attr) == 0 && attr.max_wr >= DEPTH);
	mr = reg(p, 200, IBV_ACCESS_LOCAL_WRITE);
	sge = (struct ibv_sge){(uintptr_t)p, 100, mr->lkey};
	to = (struct ibv_sge){(uintptr_t)p + 100, 100, mr->lkey};
	recv.sg_list = &to;
	connect_pair();
	CHECK(post_recv(qp[0], 1, mr) == EINVAL && ibv_destroy_srq(srq) == EBUSY);
	for (uint64_t i = 0; i < 6; i++) {
		struct ibv_wc wc[2] = {{0}};

		recv.wr_id = i;
		CHECK(ibv_post_srq_recv(srq, &recv, &bad_recv) == 0);
		memset(p, (int)i + 1, 100);
		CHECK(ibv_post_send(qp[i / 2 % 2], &wr, &bad) == 0);
		for (int k = 0; k < 2; k++) {
			struct ibv_wc one = completion();

			wc[one.opcode == IBV_WC_RECV] = one;
		}
		CHECK(wc[0].wr_id == 7 && wc[0].opcode == IBV_WC_SEND && wc[0].status == 0);
		CHECK(wc[1].wr_id == i && wc[1].status == 0 && wc[1].byte_len == 100);
		CHECK(wc[1].wc_flags == IBV_WC_WITH_IMM && wc[1].imm_data == 0x12345678);
		CHECK(wc[1].qp_num == qp[1 - i / 2 % 2]->qp_num);
		CHECK(memcmp(p, p + 100, 100) == 0);
	}
	limits(&wr, &recv);
	/* a receive that nobody used outlives its queue pairs */
	CHECK(ibv_post_srq_recv(srq, &recv, &bad_recv) == 0);
	CHECK(ibv_destroy_qp(qp[0]) == 0 && ibv_destroy_qp(qp[1]) == 0);
	connect_pair();
	CHECK(ibv_post_send(qp[0], &wr, &bad) == 0);
	CHECK(completion().status == 0 && completion().status == 0);
	CHECK(ibv_destroy_qp(qp[0]) == 0 && ibv_destroy_qp(qp[1]) == 0);
	CHECK(ibv_destroy_srq(srq) == 0);
	puts("shared: ok");
}

/* ---- cases: identifiers whose queue pairs the program creates ---- */

enum {
	ACTIVE = 0,
	PASSIVE = 1,
};

/* How a connection is made. */
enum {
	SWAPPED = 1,  /* the passive side's queue pair is the first */
	LATE = 2,     /* the passive side accepts at INIT; the active side connects at INIT */
	REJECTED = 4, /* by the active side, after the response */
	MIXED = 8,    /* the passive side's queue pair is rdma_create_qp()'s */
};

static struct rdma_event_channel *channel[2];
static struct rdma_cm_id *listener;
static struct ibv_mr *from, *to; /* what both send, and where they receive */

static struct rdma_cm_id *
expect(int side, enum rdma_cm_event_type type, uint32_t qp_num, const char *text)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	CHECK(rdma_get_cm_event(channel[side], &ev) == 0);
	if (ev->event != type)
		fprintf(stderr, "%d: %s\n", side, rdma_event_str(ev->event));
	CHECK(ev->event == type && ev->status == (type == RDMA_CM_EVENT_REJECTED ? 28 : 0));
	CHECK(qp_num == 0 || ev->param.conn.qp_num == qp_num);
	CHECK(text == NULL || strcmp(ev->param.conn.private_data, text) == 0);
	id = ev->id;
	CHECK(rdma_ack_cm_event(ev) == 0);
	return id;
}

/* rdma_create_qp()'s queue pair changes its states by itself. */
static void
modify(struct rdma_cm_id *id, struct ibv_qp *q, enum ibv_qp_state state)
{
	static const int masks[] = {
		[IBV_QPS_INIT] = TO_INIT, [IBV_QPS_RTR] = TO_RTR, [IBV_QPS_RTS] = TO_RTS};
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	CHECK(rdma_init_qp_attr(id, &attr, &mask) == 0 && attr.qp_state == state);
	CHECK(mask == masks[state]);
	if (id->qp == NULL)
		CHECK(ibv_modify_qp(q, &attr, mask) == 0 && q->state == state);
	for (int i = 0; state == IBV_QPS_INIT && i < 2; i++)
		CHECK(post_recv(q, 2, to) == 0);
}

static struct rdma_conn_param
conn_param(const struct ibv_qp *q, const char *text)
{
	return (struct rdma_conn_param){
		.qp_num = q->qp_num,
		.private_data = text,
		.private_data_len = (uint8_t)(strlen(text) + 1),
		.responder_resources = 1,
		.initiator_depth = 1,
	};
}

static struct rdma_cm_id *
resolved(void)
{
	struct sockaddr *addr = rdma_get_local_addr(listener);
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(channel[ACTIVE], &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, NULL, addr, 1000) == 0);
	CHECK(expect(ACTIVE, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL) == id);
	CHECK(rdma_resolve_route(id, 1000) == 0);
	CHECK(expect(ACTIVE, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL) == id);
	CHECK(rdma_establish(id) == -1 && errno == EINVAL);
	return id;
}

/* Both sides send, and get what the other sent. */
static void
exchange(void)
{
	struct ibv_sge sge = {(uintptr_t)from->addr, (uint32_t)from->length, from->lkey};
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
	struct ibv_send_wr *bad;
	int nb[3] = {0};

	for (int i = 0; i < 2; i++) {
		memset(from->addr, 10 + i, from->length);
		CHECK(ibv_post_send(qp[i], &wr, &bad) == 0);
		for (int k = 0; k < 2; k++) {
			struct ibv_wc wc = completion();

			CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id <= 2);
			CHECK(wc.qp_num == qp[wc.wr_id == 2 ? 1 - i : i]->qp_num);
			nb[wc.wr_id]++;
		}
		CHECK(memcmp(from->addr, to->addr, from->length) == 0);
	}
	CHECK(nb[1] == 2 && nb[2] == 2);
}

/* Ask for a connection of qp[ACTIVE]; qp[PASSIVE] may be created later. */
static void
request(struct rdma_cm_id *id[2], int how)
{
	struct rdma_conn_param param = conn_param(qp[ACTIVE], "request");
	struct ibv_qp_init_attr init = init_attr();

	id[ACTIVE] = resolved();
	if (how & LATE)
		modify(id[ACTIVE], qp[ACTIVE], IBV_QPS_INIT);
	CHECK(rdma_connect(id[ACTIVE], &param) == 0);
	id[PASSIVE] = expect(PASSIVE, RDMA_CM_EVENT_CONNECT_REQUEST, qp[ACTIVE]->qp_num,
			     "request");
	if (!(how & MIXED))
		return;
	CHECK(rdma_create_qp(id[PASSIVE], pd, &init) == 0);
	qp[PASSIVE] = id[PASSIVE]->qp;
}

static void
to_both(struct rdma_cm_id *id, struct ibv_qp *q)
{
	modify(id, q, IBV_QPS_RTR);
	modify(id, q, IBV_QPS_RTS);
}

static void
connect_ids(int how)
{
	struct rdma_cm_id *id[2];
	struct rdma_conn_param param;

	for (int i = 0; i < (how & MIXED ? 1 : 2); i++)
		qp[i ^ (how & SWAPPED)] = create();
	request(id, how);
	modify(id[PASSIVE], qp[PASSIVE], IBV_QPS_INIT);
	if (!(how & LATE))
		to_both(id[PASSIVE], qp[PASSIVE]);
	param = conn_param(qp[PASSIVE], "answer");
	CHECK(rdma_accept(id[PASSIVE], &param) == 0);
	expect(ACTIVE, RDMA_CM_EVENT_CONNECT_RESPONSE, qp[PASSIVE]->qp_num, "answer");
	if (how & REJECTED) {
		CHECK(rdma_reject(id[ACTIVE], NULL, 0) == 0);
		CHECK(rdma_establish(id[ACTIVE]) == -1 && errno == EINVAL);
	} else {
		if (!(how & LATE))
			modify(id[ACTIVE], qp[ACTIVE], IBV_QPS_INIT);
		to_both(id[ACTIVE], qp[ACTIVE]);
		CHECK(rdma_establish(id[ACTIVE]) == 0);
	}
	expect(PASSIVE, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
	if (!(how & REJECTED)) {
		if (how & LATE)
			to_both(id[PASSIVE], qp[PASSIVE]);
		exchange();
		CHECK(rdma_disconnect(id[ACTIVE]) == 0);
		expect(ACTIVE, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
	}
	expect(PASSIVE, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
	CHECK(poll(&(struct pollfd){.fd = channel[ACTIVE]->fd, .events = POLLIN}, 1, 50) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(ibv_destroy_qp(qp[i]) == 0 && rdma_destroy_id(id[i]) == 0);
}

/* A refused queue pair at RESET can be used again. */
static void
refuse(void)
{
	struct rdma_cm_id *id[2];

	qp[ACTIVE] = create();
	for (int i = 0; i < 2; i++) {
		request(id, 0);
		CHECK(rdma_reject(id[PASSIVE], "no", 3) == 0);
		expect(ACTIVE, RDMA_CM_EVENT_REJECTED, 0, "no");
		CHECK(qp[ACTIVE]->state == IBV_QPS_RESET);
		CHECK(rdma_destroy_id(id[PASSIVE]) == 0 && rdma_destroy_id(id[ACTIVE]) == 0);
	}
	CHECK(ibv_destroy_qp(qp[ACTIVE]) == 0);
}

static void
own_qps(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	union ibv_gid gid;

	open_first();
	from = reg(calloc(1, 100), 100, 0);
	to = reg(calloc(1, 100), 100, IBV_ACCESS_LOCAL_WRITE);
	CHECK(ibv_query_gid(context, 1, 0, &gid) == 0);
	memcpy(&at.sin_addr, gid.raw + 12, 4);
	for (int i = 0; i < 2; i++)
		CHECK((channel[i] = rdma_create_event_channel()) != NULL);
	CHECK(rdma_create_id(channel[PASSIVE], &listener, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(listener, (struct sockaddr *)&at) == 0);
	CHECK(rdma_listen(listener, 1) == 0);
	for (int how = 0; how <= (SWAPPED | LATE | REJECTED | MIXED); how++)
		if ((how & (SWAPPED | MIXED)) != (SWAPPED | MIXED))
			connect_ids(how);
	refuse();
	CHECK(rdma_destroy_id(listener) == 0);
	puts("own_qps: ok");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"memory", memory},
	{"bounds", bounds},
	{"threads", threads},
	{"forked", forked},
	{"states", states},
	{"ends", ends},
	{"shared", shared},
	{"own_qps", own_qps},
};

int
main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(argv[1], cases[i].name) == 0)
			cases[i].run();
	return 0;
}
