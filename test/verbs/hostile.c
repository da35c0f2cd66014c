/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A peer that keeps to no rule, by the connection manager alone. (SYS-4, RT-29)
 *
 *   hostile PEER SERVICE garbage     requests with private data that nobody of ours writes
 *   hostile PEER SERVICE halves      first halves of private data whose rest never comes
 *   hostile PEER SERVICE floods      requests that are never finished
 *   hostile PEER SERVICE keys        reads and writes with guessed keys and addresses
 *
 * It prints what became of each, and exits with 0 if all of it was refused, and in time.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "verbs_hello.h"

#define TIMEOUT_MS 10000
#define NB_FLOOD   400
#define FLOOD_MS   3000 /* that they last */
#define NB_HALVES  300
#define NB_GUESSES 40
#define BYTES      4096
#define PLAIN      1 /* see errors.h: accept, post receives */

static struct rdma_event_channel *channel;
static struct sockaddr_in peer = {.sin_family = AF_INET};
static uint64_t service;

static void
die(const char *what)
{
	fprintf(stderr, "hostile: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* The next event's type, or -1: nothing comes. Its status, or what a refusal says, in *why*. */
static int
next_event(int *why)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *ev;
	struct verbs_hello h;
	int type;

	if (poll(&fd, 1, TIMEOUT_MS) != 1 || rdma_get_cm_event(channel, &ev) != 0)
		return -1;
	type = ev->event;
	*why = ev->status;
	if (type == RDMA_CM_EVENT_REJECTED && ev->param.conn.private_data != NULL &&
	    san_verbs_hello_decode(ev->param.conn.private_data, ev->param.conn.private_data_len,
				   &h) == RTSAN_R_NONE)
		*why = h.reason;
	rdma_ack_cm_event(ev);
	return type;
}

/* Up to where it would ask for a connection. */
static struct rdma_cm_id *
resolve(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id;
	int why;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0 ||
	    rdma_resolve_addr(id, NULL, (struct sockaddr *)&peer, 2000) != 0 ||
	    next_event(&why) != RDMA_CM_EVENT_ADDR_RESOLVED || rdma_resolve_route(id, 2000) != 0 ||
	    next_event(&why) != RDMA_CM_EVENT_ROUTE_RESOLVED ||
	    rdma_create_qp(id, NULL, &attr) != 0)
		die("resolving");
	return id;
}

static void
ask(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = len,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};

	if (rdma_connect(id, &param) != 0)
		die("rdma_connect");
}

static void
leave(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

/* It must be refused, and why. */
static int
expect_refusal(const char *what, const void *data, uint8_t len)
{
	struct rdma_cm_id *id = resolve();
	int type, why = 0;

	ask(id, data, len);
	type = next_event(&why);
	printf("%s: %s, %d\n", what,
	       type < 0 ? "nothing" : rdma_event_str((enum rdma_cm_event_type)type), why);
	leave(id);
	return type == RDMA_CM_EVENT_REJECTED ? 0 : 1;
}

static int
garbage(void)
{
	static const uint8_t lengths[] = {0, 1, 4, 15, 16, 17, 40, 55, 56};
	uint8_t buf[VERBS_HELLO_MAX];
	struct verbs_hello h;
	int failed = 0;
	char what[64];

	for (size_t i = 0; i < sizeof(lengths); i++) {
		for (size_t k = 0; k < sizeof(buf); k++)
			buf[k] = (uint8_t)rand();
		snprintf(what, sizeof(what), "%u bytes of noise", lengths[i]);
		failed |= expect_refusal(what, buf, lengths[i]);
	}
	san_verbs_hello_init(&h, service, "x", 1);
	san_verbs_hello_encode(&h, buf);
	failed |= expect_refusal("too short", buf, 15);
	buf[4] ^= 0x7f;
	failed |= expect_refusal("another version", buf, 17);
	san_verbs_hello_encode(&h, buf);
	buf[7] = 255;
	failed |= expect_refusal("longer than it is", buf, 17);
	san_verbs_hello_encode(&h, buf);
	buf[5] = 0xff;
	failed |= expect_refusal("every flag", buf, 56);
	san_verbs_hello_init(&h, service ^ 1, "x", 1);
	failed |= expect_refusal("another service", buf, san_verbs_hello_encode(&h, buf));
	h = (struct verbs_hello){.service = service, .len = 64, .flags = VERBS_HELLO_REST};
	h.token = 77;
	failed |= expect_refusal("a rest without its first half", buf,
				 san_verbs_hello_encode(&h, buf));
	return failed;
}

static int
halves(void)
{
	struct verbs_hello h = {.service = service, .len = 64, .flags = VERBS_HELLO_FIRST};
	uint8_t buf[VERBS_HELLO_MAX], len;
	int failed = 0;

	for (int i = 0; i < NB_HALVES && failed == 0; i++) {
		h.token = (uint64_t)rand() << 32 | (uint32_t)rand();
		h.data[0] = PLAIN;
		len = san_verbs_hello_encode(&h, buf);
		failed |= expect_refusal("half", buf, len);
	}
	return failed;
}

/* Nobody reads the answers, so no connection is ever set up. */
static int
floods(void)
{
	static struct rdma_cm_id *ids[NB_FLOOD];
	uint8_t buf[VERBS_HELLO_MAX], behaviour = PLAIN, len;
	struct verbs_hello h;
	int i;
	struct rdma_event_channel *unread = rdma_create_event_channel();

	san_verbs_hello_init(&h, service, &behaviour, 1);
	len = san_verbs_hello_encode(&h, buf);
	for (i = 0; i < NB_FLOOD; i++) {
		ids[i] = resolve();
		if (rdma_migrate_id(ids[i], unread) != 0)
			die("rdma_migrate_id");
		ask(ids[i], buf, len);
	}
	printf("%d requests are not finished\n", i);
	fflush(stdout);
	poll(NULL, 0, FLOOD_MS);
	/* and it exits so */
	return 0;
}

/* A status, or -1: none comes. */
static int
guess(struct rdma_cm_id *id, struct ibv_mr *mr, bool is_read, uint64_t addr, uint32_t key)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, 64, mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = is_read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
					 .wr = {.rdma = {.remote_addr = addr, .rkey = key}},
				 };
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};

	if (ibv_post_send(id->qp, &wr, &bad) != 0)
		die("ibv_post_send");
	for (int i = 0; i < 10000; i++) {
		if (ibv_poll_cq(id->send_cq, 1, &wc) == 1)
			return wc.status;
		poll(NULL, 0, 1);
	}
	return -1;
}

static int
keys(void)
{
	uint8_t buf[VERBS_HELLO_MAX], behaviour = PLAIN;
	static uint8_t memory[BYTES];
	struct verbs_hello h;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	int i, why, status, failed = 0;

	san_verbs_hello_init(&h, service, &behaviour, 1);
	for (i = 0; i < NB_GUESSES && failed == 0; i++) {
		id = resolve();
		mr = ibv_reg_mr(id->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
		ask(id, buf, san_verbs_hello_encode(&h, buf));
		why = 0;
		if (mr == NULL || next_event(&why) != RDMA_CM_EVENT_ESTABLISHED)
			die("no connection");
		status = guess(id, mr, i % 2 == 0, (uint64_t)rand() << 12,
			       (uint32_t)rand() ^ (uint32_t)i << 8);
		if (status != IBV_WC_REM_ACCESS_ERR) {
			printf("a guessed key: status %d\n", status);
			failed = 1;
		}
		rdma_disconnect(id);
		next_event(&why);
		ibv_dereg_mr(mr);
		leave(id);
	}
	printf("%d keys guessed, each refused: %s\n", i, failed == 0 ? "yes" : "no");
	return failed;
}

/* As verbs_conn.c makes it of a service. */
static uint16_t
port_of(uint64_t number)
{
	uint64_t mixed = number * 0x9e3779b97f4a7c15ull;

	return (uint16_t)(1024 + (mixed >> 32) % 64000);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} all[] = {{"garbage", garbage}, {"halves", halves}, {"floods", floods}, {"keys", keys}};

	if (argc != 4 || inet_pton(AF_INET, argv[1], &peer.sin_addr) != 1)
		return 2;
	service = strtoull(argv[2], NULL, 0);
	peer.sin_port = htons(port_of(service));
	channel = rdma_create_event_channel();
	if (channel == NULL)
		die("no channel");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(argv[3], all[i].name) == 0)
			return all[i].run();
	return 2;
}
