/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Calls of libibverbs for datagrams and for sends that are copied, for test_sanverbs.py:
 * verbs_more CASE.
 */

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "rtsan.h"
#include "verbs_pair.h"

#define QKEY      0x11111111
#define GRH       40
#define LEN       100
#define QUARTER   (1u << 29)
#define HUGE_PAGE ((size_t)2 << 20)

static uint8_t *bytes; /* sent, then where it arrives */
static struct ibv_mr *mr;
static union ibv_gid gid;
static struct ibv_cq *recv_cq;

static struct ibv_qp *
create_ud(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = recv_cq,
		.cap = {DEPTH, DEPTH, 1, 1, 0},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	struct ibv_qp *q = ibv_create_qp(pd, &init);

	CHECK(q != NULL);
	CHECK(ibv_modify_qp(q, &attr, mask) == EINVAL);
	CHECK(ibv_modify_qp(q, &attr, mask | IBV_QP_QKEY) == 0);
	attr.qp_state = IBV_QPS_RTR;
	CHECK(ibv_modify_qp(q, &attr, IBV_QP_STATE) == 0);
	attr.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(q, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
	return q;
}

static int
post_ud(struct ibv_qp *q, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)bytes, length, mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = qpn,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = 0x12345678,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = qkey},
	};
	struct ibv_send_wr *bad;

	return ibv_post_send(q, &wr, &bad);
}

/* It succeeds, whatever became of it. */
static void
send_ud(struct ibv_qp *q, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_wc wc;

	CHECK(post_ud(q, ah, qpn, qkey, LEN) == 0);
	wc = completion();
	CHECK(wc.status == 0 && wc.opcode == IBV_WC_SEND && wc.wr_id == qpn);
}

static int
recv_ud(struct ibv_qp *q, uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)bytes + 2048, length, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	return ibv_post_recv(q, &wr, &bad);
}

static struct ibv_ah *
open_ud(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_ah *ah;

	open_first();
	bytes = calloc(2, 4096);
	mr = reg(bytes, 8192, IBV_ACCESS_LOCAL_WRITE);
	recv_cq = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
	CHECK(recv_cq != NULL);
	qp[0] = create_ud();
	qp[1] = create_ud();
	CHECK(ibv_query_gid(context, 1, 0, &gid) == 0);
	CHECK(ibv_create_ah(pd, &(struct ibv_ah_attr){.port_num = 1}) == NULL && errno == EINVAL);
	attr.grh.dgid = gid;
	ah = ibv_create_ah(pd, &attr);
	CHECK(ah != NULL);
	return ah;
}

static struct ibv_wc
received(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(recv_cq, 1, &wc) == 0)
		sched_yield();
	return wc;
}

static void
arrives_for(const union ibv_gid *dgid, const struct ibv_qp *to, const struct ibv_qp *from,
	    uint64_t wr_id)
{
	const struct ibv_grh *grh = (const struct ibv_grh *)(bytes + 2048);
	struct ibv_wc wc = received();

	CHECK(wc.status == 0 && wc.opcode == IBV_WC_RECV && wc.wr_id == wr_id);
	CHECK(wc.byte_len == GRH + LEN && wc.src_qp == from->qp_num && wc.qp_num == to->qp_num);
	CHECK(wc.wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM) && wc.imm_data == 0x12345678);
	CHECK(memcmp(&grh->sgid, &gid, sizeof(gid)) == 0);
	CHECK(memcmp(&grh->dgid, dgid, sizeof(*dgid)) == 0);
	CHECK(memcmp(bytes, bytes + 2048 + GRH, LEN) == 0);
}

static void
arrives(const struct ibv_qp *to, const struct ibv_qp *from, uint64_t wr_id)
{
	arrives_for(&gid, to, from, wr_id);
}

static void
datagrams(void)
{
	struct ibv_ah *back, *ah = open_ud();
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};

	for (uint64_t i = 0; i < 3; i++) {
		memset(bytes, (int)i + 1, LEN);
		CHECK(recv_ud(qp[1], i, GRH + LEN) == 0);
		send_ud(qp[0], ah, qp[1]->qp_num, QKEY);
		arrives(qp[1], qp[0], i);
	}
	/* the answer, to the address in front of the data */
	back = ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)(bytes + 2048), 1);
	CHECK(back != NULL && recv_ud(qp[0], 9, GRH + LEN) == 0);
	send_ud(qp[1], back, qp[0]->qp_num, 0x80000000); /* the sender's own Q_Key */
	arrives(qp[0], qp[1], 9);
	/* dropped: no receive, another Q_Key, no such queue pair */
	send_ud(qp[0], ah, qp[1]->qp_num, QKEY);
	usleep(50000); /* a receive posted before the peer learns of that may still get it */
	CHECK(recv_ud(qp[1], 10, GRH + LEN) == 0);
	send_ud(qp[0], ah, qp[1]->qp_num, QKEY + 1);
	send_ud(qp[0], ah, qp[1]->qp_num ^ 0x3ff, QKEY);
	usleep(50000);
	CHECK(ibv_poll_cq(recv_cq, 1, &wc) == 0);
	send_ud(qp[0], ah, qp[1]->qp_num, QKEY);
	arrives(qp[1], qp[0], 10);
	/* what can't be */
	CHECK(recv_ud(qp[1], 11, GRH - 1) == EINVAL);
	CHECK(post_ud(qp[0], ah, qp[1]->qp_num, QKEY, 4097) == EINVAL);
	/* flushed, in order */
	for (uint64_t i = 20; i < 23; i++)
		CHECK(recv_ud(qp[1], i, GRH + LEN) == 0);
	CHECK(to_state(qp[1], IBV_QPS_ERR) == 0);
	CHECK(recv_ud(qp[1], 23, GRH + LEN) == 0);
	for (uint64_t i = 20; i < 24; i++) {
		wc = received();
		CHECK(wc.wr_id == i && wc.status == IBV_WC_WR_FLUSH_ERR);
	}
	send_ud(qp[0], ah, qp[1]->qp_num, QKEY);
	CHECK(ibv_destroy_ah(ah) == 0 && ibv_destroy_ah(back) == 0);
	CHECK(ibv_destroy_qp(qp[0]) == 0 && ibv_destroy_qp(qp[1]) == 0 && ibv_destroy_cq(cq) == 0);
	puts("datagrams: ok");
}

/* Each has its number as its bytes, however many wait for a receive. */
static void
posted_until_full(struct ibv_send_wr *wr)
{
	struct ibv_sge to = {(uintptr_t)bytes + 4096, 64, mr->lkey};
	struct ibv_recv_wr *bad_recv, recv = {.sg_list = &to, .num_sge = 1};
	struct ibv_send_wr *bad;
	uint32_t n = 0;
	struct ibv_wc wc;

	wr->send_flags = IBV_SEND_INLINE;
	wr->num_sge = 7;
	for (int i = 0; i < 7; i++)
		wr->sg_list[i] = (struct ibv_sge){(uintptr_t)bytes, sizeof(n), 0};
	for (int tries = 0; tries < 20; tries++, usleep(1000))
		for (memcpy(bytes, &n, sizeof(n)); ibv_post_send(qp[0], wr, &bad) == 0;
		     memcpy(bytes, &n, sizeof(n)))
			n++;
	CHECK(n > DEPTH);
	for (uint32_t i = 0; i < n; i++) {
		CHECK(ibv_post_recv(qp[0], &recv, &bad_recv) == 0);
		do
			wc = completion();
		while (wc.status == 0 && wc.opcode != IBV_WC_RECV);
		CHECK(wc.status == 0 && memcmp(bytes + 4096, &i, sizeof(i)) == 0);
	}
	usleep(10000);
	while (ibv_poll_cq(cq, 1, &wc) == 1)
		;
}

static void
open_self(void)
{
	struct ibv_qp_init_attr init;

	open_first();
	init = init_attr();
	init.cap.max_send_sge = 16;
	init.cap.max_inline_data = 256;
	qp[0] = ibv_create_qp(pd, &init);
	CHECK(qp[0] != NULL && init.cap.max_inline_data >= 256 && init.cap.max_send_sge >= 16);
	CHECK(to_init(qp[0]) == 0 && to_rtr(qp[0], qp[0]->qp_num, TO_RTR) == 0);
	CHECK(to_rts(qp[0]) == 0);
}

/* Sends of more than librtsan takes, on a queue pair that is connected to itself. */
static void
copied(void)
{
	struct ibv_sge sge[16];
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .sg_list = sge};

	open_self();
	bytes = calloc(2, 4096);
	mr = reg(bytes, 8192, ALL);
	for (int i = 0; i < 300; i++) {
		bool is_inline = i % 2 != 0;
		uint32_t length = is_inline ? 10 : 256, nb = is_inline ? 16 : 7;
		struct ibv_sge to = {(uintptr_t)bytes + 4096, 4096, mr->lkey};
		struct ibv_recv_wr *bad_recv, recv = {.wr_id = 1, .sg_list = &to, .num_sge = 1};

		for (uint32_t k = 0; k < nb; k++) {
			sge[k] = (struct ibv_sge){(uintptr_t)bytes + k * length, length,
						  is_inline ? 0 : mr->lkey};
			memset(bytes + k * length, (int)k + i, length);
		}
		wr.num_sge = (int)nb;
		wr.send_flags = is_inline ? IBV_SEND_INLINE : 0;
		CHECK(ibv_post_recv(qp[0], &recv, &bad_recv) == 0);
		CHECK(ibv_post_send(qp[0], &wr, &bad) == 0);
		if (is_inline) /* it may change at once */
			memset(bytes, 0, nb * length);
		for (int k = 0; k < 2; k++) {
			struct ibv_wc wc = completion();

			CHECK(wc.status == 0);
			CHECK(wc.opcode != IBV_WC_RECV || wc.byte_len == nb * length);
		}
		for (uint32_t k = 0; k < nb * length; k++)
			CHECK(bytes[4096 + k] == (uint8_t)(k / length + (uint32_t)i));
	}
	posted_until_full(&wr);
	sge[0].length = 4096;
	wr.send_flags = 0;
	CHECK(ibv_post_send(qp[0], &wr, &bad) == EINVAL);
	CHECK(ibv_destroy_qp(qp[0]) == 0 && ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0);
	puts("copied: ok");
}

/* A message of 2 GiB, the longest: its quarters come from one place. One byte more is refused. */
static void
huge(void)
{
	uint8_t *from = calloc(1, QUARTER + 1), *to = calloc(4, QUARTER);
	struct ibv_mr *own, *other;
	struct ibv_sge sge[4];
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = sge, .num_sge = 4};
	struct ibv_port_attr port;

	CHECK(from != NULL && to != NULL);
	open_self();
	CHECK(ibv_query_port(context, 1, &port) == 0 && port.max_msg_sz == 4 * QUARTER);
	for (uint32_t i = 0; i < QUARTER; i += 1024)
		memcpy(from + i, &i, sizeof(i));
	own = reg(from, QUARTER + 1, 0);
	other = reg(to, (size_t)4 * QUARTER, ALL);
	for (int i = 0; i < 4; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)from, QUARTER, own->lkey};
	wr.wr.rdma.remote_addr = (uintptr_t)to;
	wr.wr.rdma.rkey = other->rkey;
	sge[3].length++;
	CHECK(ibv_post_send(qp[0], &wr, &bad) == EINVAL);
	sge[3].length--;
	CHECK(ibv_post_send(qp[0], &wr, &bad) == 0);
	CHECK(completion().status == IBV_WC_SUCCESS);
	for (int i = 0; i < 4; i++)
		CHECK(memcmp(to + (size_t)i * QUARTER, from, QUARTER) == 0);
	puts("huge: ok");
}

static _Atomic bool is_over;

/* Count in each word of a page, until the end: a write that is lost is seen a lap later. */
static void *
counts(void *page)
{
	volatile uint64_t *words = page;

	for (uint64_t lap = 0; !is_over; lap++)
		for (int i = 0; i < PAGE / 8; i++) {
			CHECK(words[i] == lap);
			words[i] = lap + 1;
		}
	return NULL;
}

/* Huge pages are registered while a thread writes to them. */
static void
register_huge(struct ibv_mr *own)
{
	uint8_t *p = mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	uint8_t *to = p + HUGE_PAGE - LEN / 2;
	struct ibv_mr *other;
	pthread_t thread;

	CHECK(p != MAP_FAILED);
	memset(to - 1, 7, LEN + 2);
	is_over = false;
	CHECK(pthread_create(&thread, NULL, counts, p) == 0);
	while (*(volatile uint64_t *)p < 1000)
		sched_yield();
	other = reg(to, LEN, ALL);
	CHECK(transfer(IBV_WR_RDMA_WRITE, own, own->addr, other, to, LEN) == IBV_WC_SUCCESS);
	CHECK(ibv_dereg_mr(other) == 0);
	CHECK(memcmp(to, own->addr, LEN) == 0 && to[-1] == 7 && to[LEN] == 7);
	is_over = true;
	CHECK(pthread_join(thread, NULL) == 0 && munmap(p, 2 * HUGE_PAGE) == 0);
}

static void
pages(void)
{
	open_pair();
	mr = reg(calloc(1, LEN), LEN, 0);
	for (int i = 0; i < 20; i++)
		register_huge(mr);
	/* those that can be shared are not given: the program takes other memory */
	CHECK(shmget(IPC_PRIVATE, HUGE_PAGE, IPC_CREAT | SHM_HUGETLB | 0600) < 0 &&
	      errno == ENOMEM);
	puts("pages: ok");
}

/*
 * A peer of librtsan connects as datagrams do, in the name of qp[0], and pushes with immediates:
 * each takes a receive, no more. What qp[1] sends to qp[0] does not go to that peer.
 */
static void
forged(void)
{
	struct ibv_ah *ah = open_ud();
	uint32_t hello[8] = {[4] = htonl(qp[1]->qp_num), htonl(qp[0]->qp_num)};
	struct rtsan_conn_param param = {.private_data = hello, .private_len = sizeof(hello)};
	struct rtsan_send_wr wr = {.opcode = RTSAN_WR_PUSH_IMM, .flags = RTSAN_WR_SIGNALED};
	struct rtsan_qp_attr attr = {0};
	struct rtsan_event ev;
	struct rtsan_wc done;
	struct rtsan_ctx *ctx;
	struct rtsan_qp *peer;
	struct ibv_wc wc;
	char ip[RTSAN_ADDRESS_MAX];

	for (int i = 0; i < 2; i++)
		CHECK(ibv_modify_qp(qp[i], &(struct ibv_qp_attr){.qkey = 0}, IBV_QP_QKEY) == 0);
	CHECK(rtsan_open(getenv("SANVERBS_SPEC"), &ctx) == 0 && rtsan_address(ctx, 0, ip) == 0);
	CHECK(rtsan_cq_create(ctx, DEPTH, &attr.send_cq) == 0);
	attr.recv_cq = attr.send_cq;
	CHECK(rtsan_qp_create(ctx, &attr, &peer) == 0);
	CHECK(rtsan_connect(peer, ip, 0x76657262000000ull << 8 | qp[1]->qp_num >> 10, &param) == 0);
	CHECK(rtsan_event_wait(ctx, 10000) == 1 && rtsan_event_poll(ctx, &ev) == 1);
	CHECK(ev.type == RTSAN_EV_ESTABLISHED);
	for (uint64_t i = 0; i < 4 * DEPTH; i++) {
		CHECK(recv_ud(qp[1], i, GRH + LEN) == 0);
		CHECK(rtsan_post_send(peer, &wr, 1) == 1);
		wc = received();
		CHECK(wc.status == 0 && wc.wr_id == i && wc.byte_len == GRH);
		while (rtsan_cq_poll(attr.send_cq, &done, 1) == 0)
			sched_yield();
		CHECK(done.status == RTSAN_WC_SUCCESS && ibv_poll_cq(cq, 1, &wc) == 0);
	}
	CHECK(recv_ud(qp[0], 5, GRH + LEN) == 0);
	send_ud(qp[1], ah, qp[0]->qp_num, 0);
	arrives(qp[0], qp[1], 5);
	puts("forged: ok");
}

/* What members announce to each other, see sv_group.c. */
struct announcement {
	union ibv_gid mgid, gid;
	uint32_t magic, kind, qpn, reserved;
};

/* Announcements that none of ours made: shorter ones, and of a hundred members. */
static void
announce_lies(const union ibv_gid *mgid, uint32_t magic)
{
	struct announcement a = {*mgid, gid, htonl(magic), htonl(1)};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(4793)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	memcpy(&to.sin_addr, mgid->raw + 12, 4);
	CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
	CHECK(send(fd, &a, sizeof(a) - 1, 0) > 0 && send(fd, "", 0, 0) == 0);
	for (uint32_t i = 0; i < 100; i++) {
		a.qpn = htonl(qp[0]->qp_num ^ (i + 2)); /* none exists */
		CHECK(send(fd, &a, sizeof(a), 0) > 0);
	}
	close(fd);
	usleep(50000);
}

/* Send until *to* gets it: members are found after the first datagram. */
static void
send_until(struct ibv_qp *from, struct ibv_ah *ah, const union ibv_gid *mgid, struct ibv_qp *to,
	   uint64_t wr_id)
{
	volatile uint8_t *first = bytes + 2048 + GRH;
	struct ibv_wc wc;

	*first = 0;
	for (uint32_t i = 0; *first == 0; i++) {
		if (i % 500 == 0)
			send_ud(from, ah, 0xffffff, QKEY);
		usleep(1000);
	}
	arrives_for(mgid, to, from, wr_id);
	usleep(50000);
	CHECK(ibv_poll_cq(recv_cq, 1, &wc) == 0);
}

/* Datagrams to a group reach its members. */
static void
groups(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	union ibv_gid mgid = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};
	struct ibv_ah *ah = open_ud(), *group;
	struct ibv_wc wc;

	attr.grh.dgid = mgid;
	group = ibv_create_ah(pd, &attr);
	bytes[0] = 1;
	CHECK(group != NULL && ibv_attach_mcast(qp[0], &gid, 0) == EINVAL);
	CHECK(ibv_detach_mcast(qp[1], &mgid, 0) == EADDRNOTAVAIL);
	CHECK(ibv_attach_mcast(qp[1], &mgid, 0) == 0);
	CHECK(recv_ud(qp[1], 1, GRH + LEN) == 0);
	send_until(qp[0], group, &mgid, qp[1], 1); /* a sender need not be a member */
	CHECK(recv_ud(qp[0], 2, GRH + LEN) == 0);
	send_ud(qp[0], group, 0xffffff, QKEY); /* *qp[1]* has no receive */
	usleep(50000);
	CHECK(recv_ud(qp[1], 3, GRH + LEN) == 0);
	send_ud(qp[0], group, 0xffffff, QKEY + 1);
	send_ud(qp[0], ah, 0xffffff, QKEY);
	usleep(50000);
	CHECK(ibv_poll_cq(recv_cq, 1, &wc) == 0);
	send_ud(qp[0], group, 0xffffff, QKEY);
	arrives_for(&mgid, qp[1], qp[0], 3);
	announce_lies(&mgid, 0x73764d44); /* of another program: the member stays */
	CHECK(recv_ud(qp[1], 4, GRH + LEN) == 0);
	send_ud(qp[0], group, 0xffffff, QKEY);
	arrives_for(&mgid, qp[1], qp[0], 4);
	announce_lies(&mgid, 0x73764d43); /* they take its place, and it is found again */
	CHECK(recv_ud(qp[1], 4, GRH + LEN) == 0);
	send_until(qp[0], group, &mgid, qp[1], 4);
	/* a member gets what it sends itself */
	CHECK(ibv_attach_mcast(qp[0], &mgid, 0) == 0);
	send_until(qp[0], group, &mgid, qp[0], 2);
	CHECK(ibv_detach_mcast(qp[1], &mgid, 0) == 0);
	CHECK(recv_ud(qp[0], 5, GRH + LEN) == 0 && recv_ud(qp[1], 6, GRH + LEN) == 0);
	send_until(qp[0], group, &mgid, qp[0], 5);
	CHECK(ibv_destroy_qp(qp[0]) == 0 && ibv_destroy_qp(qp[1]) == 0 && ibv_destroy_cq(cq) == 0);
	puts("groups: ok");
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "datagrams") == 0)
		datagrams();
	if (argc > 1 && strcmp(argv[1], "groups") == 0)
		groups();
	if (argc > 1 && strcmp(argv[1], "forged") == 0)
		forged();
	if (argc > 1 && strcmp(argv[1], "copied") == 0)
		copied();
	if (argc > 1 && strcmp(argv[1], "huge") == 0)
		huge();
	if (argc > 1 && strcmp(argv[1], "pages") == 0)
		pages();
	return 0;
}
