/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ofi_rdm_hostile SPEC IP PORT: a peer of an endpoint FI_EP_RDM that breaks its protocol, for
 * ofi_cases.py. Each fault must end its connection; a correct message at last arrives. (OFI-1)
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>

#include "ofi_wire.h"

#define TAG_LAST  0x7777
#define PATIENT   20 /* seconds */
#define HUGE      (1ull << 63)
#define NB_PLACES 5 /* one more than is allowed */

static struct rtsan_ctx *ctx;
static struct rtsan_cq *cq;
static struct rtsan_qp *qp;
static struct rtsan_mr *mr;
static struct sockaddr_in victim;

#define CHECK(cond)                                                                         \
	do {                                                                                \
		if (!(cond)) {                                                              \
			fprintf(stderr, "%s:%d: not: %s (%s)\n", __FILE__, __LINE__, #cond, \
				rtsan_error());                                             \
			exit(1);                                                            \
		}                                                                           \
	} while (0)

/* What a long message says of itself. */
#define LONG (OFI_TAGGED | OFI_PLACES | OFI_WANT_ACK)

/**
 * A message, sent *repeat* times more. The last two are correct and of one connection, but the
 * bytes of the long one are not to be had.
 */
static const struct fault {
	const char *name;
	uint8_t type, flags;
	uint32_t length;
	uint64_t tag;
	size_t nb_places;
	uint64_t places[NB_PLACES]; /* their lengths */
	int repeat;
} faults[] = {
	{"less than it says", OFI_MSG, LONG, 100, 0, 1, {50}, 0},
	{"more than it says", OFI_MSG, LONG, 100, 0, 2, {50, 51}, 0},
	{"an overflow", OFI_MSG, LONG, 0, 0, 2, {HUGE, HUGE}, 0},
	{"too many places", OFI_MSG, LONG, 5, 0, NB_PLACES, {1, 1, 1, 1, 1}, 0},
	{"no answer wanted", OFI_MSG, OFI_TAGGED | OFI_PLACES, 1, 0, 1, {1}, 0},
	{"another length", OFI_MSG, OFI_TAGGED, 5, 0, 0, {0}, 0},
	{"a place of no bytes", OFI_MSG, LONG, 100, 0, 2, {100, 0}, 0},
	{"unknown", OFI_TYPES, OFI_TAGGED, 0, 0, 0, {0}, 0},
	{"too many long ones", OFI_MSG, LONG, 0, 0, 0, {0}, OFI_REQUESTS},
	{"none", OFI_MSG, OFI_TAGGED, 0, TAG_LAST, 0, {0}, 0},
	{"no bytes", OFI_MSG, LONG, 100, TAG_LAST + 1, 1, {100}, 0},
};

#define NB_FAULTS ((int)(sizeof(faults) / sizeof(faults[0])) - 2)

static struct rtsan_event
event(const char *name)
{
	time_t end = time(NULL) + PATIENT;
	struct rtsan_event ev;
	struct rtsan_wc wc;

	while (rtsan_event_poll(ctx, &ev) == 0) {
		rtsan_cq_poll(cq, &wc, 1);
		if (time(NULL) >= end) {
			fprintf(stderr, "%s: not noticed\n", name);
			exit(1);
		}
	}
	return ev;
}

static void
connect_qp(void)
{
	const struct rtsan_qp_attr attr = {
		.send_cq = cq, .recv_cq = cq, .sq_depth = 32, .rq_depth = OFI_NB_RX};
	struct ofi_cm_hdr hdr = {OFI_CM_MAGIC, OFI_CM_VERSION, sizeof(victim), 9, OFI_NB_MSG,
				 OFI_NB_RMA, OFI_BUF_SIZE};
	struct rtsan_sge sge = {rtsan_mr_addr(mr), OFI_BUF_SIZE, rtsan_mr_lkey(mr)};
	const struct rtsan_recv_wr wr = {.sge = &sge, .nb_sge = 1};
	struct sockaddr_in name = victim;
	uint8_t data[sizeof(hdr) + sizeof(name)];
	struct rtsan_conn_param param = {.private_data = data, .private_len = sizeof(data)};
	char ip[RTSAN_ADDRESS_MAX];
	int i;

	name.sin_port = htons(9);
	memcpy(data, &hdr, sizeof(hdr));
	memcpy(data + sizeof(hdr), &name, sizeof(name));
	CHECK(rtsan_qp_create(ctx, &attr, &qp) == 0);
	for (i = 0; i < OFI_NB_RX; i++)
		CHECK(rtsan_post_recv(qp, &wr, 1) == 1);
	inet_ntop(AF_INET, &victim.sin_addr, ip, sizeof(ip));
	CHECK(rtsan_connect(qp, ip, OFI_RDM_SERVICE(ntohs(victim.sin_port)), &param) == 0);
	CHECK(event("connect").type == RTSAN_EV_ESTABLISHED);
}

/* False: the connection has ended. */
static int
send_fault(const struct fault *f)
{
	const struct ofi_hdr hdr = {
		.type = f->type, .flags = f->flags, .length = f->length, .addr = f->tag};
	struct ofi_place place = {.key = 1};
	uint8_t *bytes = (uint8_t *)rtsan_mr_addr(mr) + OFI_BUF_SIZE;
	struct rtsan_sge sge = {bytes, 0, rtsan_mr_lkey(mr)};
	const struct rtsan_send_wr wr = {
		.opcode = RTSAN_WR_SEND, .flags = RTSAN_WR_SIGNALED, .sge = &sge, .nb_sge = 1};
	struct rtsan_wc wc;
	size_t i;

	memcpy(bytes, &hdr, sizeof(hdr));
	for (i = 0; i < f->nb_places; i++) {
		place.length = f->places[i];
		memcpy(bytes + OFI_HDR_MSG + i * sizeof(place), &place, sizeof(place));
	}
	sge.length = (uint32_t)(OFI_HDR_MSG + f->nb_places * sizeof(place));
	if (rtsan_post_send(qp, &wr, 1) != 1)
		return 0;
	do
		while (rtsan_cq_poll(cq, &wc, 1) == 0)
			;
	while (wc.opcode == RTSAN_WC_RECV);
	return wc.status == RTSAN_WC_SUCCESS;
}

int
main(int argc, char **argv)
{
	int i, sent;

	CHECK(argc == 4);
	victim.sin_family = AF_INET;
	CHECK(inet_pton(AF_INET, argv[2], &victim.sin_addr) == 1);
	victim.sin_port = htons((uint16_t)atoi(argv[3]));
	CHECK(rtsan_open(argv[1], &ctx) == 0);
	CHECK(rtsan_cq_create(ctx, 1024, &cq) == 0);
	CHECK(rtsan_mr_alloc(ctx, 2 * OFI_BUF_SIZE, 0, &mr) == 0);
	for (i = 0; i < NB_FAULTS + 2; i++) {
		if (i <= NB_FAULTS)
			connect_qp();
		for (sent = 0; sent <= faults[i].repeat && send_fault(&faults[i]); sent++)
			;
		CHECK(sent >= faults[i].repeat); /* what is allowed was taken */
		if (i == NB_FAULTS)
			continue;
		CHECK(event(faults[i].name).type == RTSAN_EV_DISCONNECTED);
		rtsan_qp_destroy(qp);
	}
	rtsan_close(ctx);
	printf("done\n");
	return 0;
}
