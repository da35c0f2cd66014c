/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Peers that break the provider's protocol, or use up what it has, for ofi_cases.py. (OFI-1)
 *
 *	ofi_hostile rdm SPEC IP PORT  of FI_EP_RDM: each fault must end its connection; a correct
 *	                              message at last arrives
 *	ofi_hostile msg SPEC IP PORT  of FI_EP_MSG: sends short messages behind a long one
 *	                              without bytes, until no credits come back
 *	ofi_hostile mute SPEC IP PORT of FI_EP_MSG: only that long one
 *	ofi_hostile forge SPEC IP PORT [UID]      of FI_EP_RDM, as this user: claims to be another
 *	ofi_hostile forge-msg SPEC IP PORT [UID]  endpoint; or of FI_EP_MSG: it must be refused
 */

#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "ofi_wire.h"
#include "rt.h"

#define TAG_LAST  0x7777
#define PATIENT   20 /* seconds */
#define QUIET     2  /* seconds without credits: there will be none */
#define HUGE      (1ull << 63)
#define NB_PLACES 5   /* one more than is allowed */
#define RX_SIZE   64u /* the victim's messages are headers */

static struct rtsan_ctx *ctx;
static struct rtsan_cq *cq;
static struct rtsan_qp *qp;
static struct rtsan_mr *mr; /* the receives, then the message to send */
static struct sockaddr_in victim;
static int credits; /* for messages */

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

static uint8_t *
rx_at(uint64_t slot)
{
	return (uint8_t *)rtsan_mr_addr(mr) + slot * RX_SIZE;
}

static int
post_recv(uint64_t slot)
{
	struct rtsan_sge sge = {rx_at(slot), RX_SIZE, rtsan_mr_lkey(mr)};
	const struct rtsan_recv_wr wr = {.wr_id = slot, .sge = &sge, .nb_sge = 1};

	return rtsan_post_recv(qp, &wr, 1);
}

/* The next completion of a send, if there is one. Received credits are counted. */
static int
poll_sent(struct rtsan_wc *wc)
{
	const struct ofi_hdr *hdr;

	while (rtsan_cq_poll(cq, wc, 1) == 1) {
		if (wc->opcode != RTSAN_WC_RECV)
			return 1;
		if (wc->status != RTSAN_WC_SUCCESS)
			continue;
		hdr = (const struct ofi_hdr *)rx_at(wc->wr_id);
		credits += hdr->credit[0];
		post_recv(wc->wr_id); /* the connection may have ended */
	}
	return 0;
}

static struct rtsan_event
event(const char *name)
{
	time_t end = time(NULL) + PATIENT;
	struct rtsan_event ev;
	struct rtsan_wc wc;

	while (rtsan_event_poll(ctx, &ev) == 0) {
		poll_sent(&wc);
		MUST(time(NULL) < end, "%s: not noticed", name);
	}
	return ev;
}

/*
 * Connect to *service* with the provider's private data, of FI_EP_RDM without proofs. Returns the
 * type of the event.
 */
static uint8_t
try_qp(uint64_t service, bool is_rdm)
{
	uint8_t length = is_rdm ? sizeof(struct ofi_rdm_req) : 0;
	struct ofi_cm_hdr hdr = {OFI_CM_MAGIC, OFI_CM_VERSION, length, 9, OFI_NB_MSG, OFI_NB_RMA,
				 OFI_BUF_SIZE};
	uint8_t data[sizeof(hdr) + sizeof(struct ofi_rdm_req)] = {0};
	struct rtsan_conn_param param = {.private_data = data,
					 .private_len = (uint8_t)(sizeof(hdr) + length)};
	char ip[RTSAN_ADDRESS_MAX];

	memcpy(data, &hdr, sizeof(hdr));
	qp = rt_make_qp(ctx, cq, OFI_NB_RX, NULL);
	for (uint64_t i = 0; i < OFI_NB_RX; i++)
		CHECK(post_recv(i) == 1);
	credits = OFI_NB_MSG;
	inet_ntop(AF_INET, &victim.sin_addr, ip, sizeof(ip));
	CHECK(rtsan_connect(qp, ip, service, &param) == 0);
	return event("connect").type;
}

/* False: the connection has ended. */
static int
send_fault(const struct fault *f)
{
	const struct ofi_hdr hdr = {
		.type = f->type, .flags = f->flags, .length = f->length, .addr = f->tag};
	struct ofi_place place = {.key = 1};
	uint8_t *bytes = rx_at(OFI_NB_RX);
	struct rtsan_sge sge = {bytes, 0, rtsan_mr_lkey(mr)};
	const struct rtsan_send_wr wr = {
		.opcode = RTSAN_WR_SEND, .flags = RTSAN_WR_SIGNALED, .sge = &sge, .nb_sge = 1};
	struct rtsan_wc wc;

	memcpy(bytes, &hdr, sizeof(hdr));
	for (size_t i = 0; i < f->nb_places; i++) {
		place.length = f->places[i];
		memcpy(bytes + OFI_HDR_MSG + i * sizeof(place), &place, sizeof(place));
	}
	sge.length = (uint32_t)(OFI_HDR_MSG + f->nb_places * sizeof(place));
	if (rtsan_post_send(qp, &wr, 1) != 1)
		return 0;
	credits--;
	while (!poll_sent(&wc))
		;
	return wc.status == RTSAN_WC_SUCCESS;
}

/* ---- FI_EP_RDM ---- */

static void
break_rdm(uint16_t port)
{
	int sent;

	for (int i = 0; i < NB_FAULTS + 2; i++) {
		if (i <= NB_FAULTS)
			CHECK(try_qp(OFI_RDM_SERVICE(port), true) == RTSAN_EV_ESTABLISHED);
		for (sent = 0; sent <= faults[i].repeat && send_fault(&faults[i]); sent++)
			;
		CHECK(sent >= faults[i].repeat); /* what is allowed was taken */
		if (i == NB_FAULTS)
			continue;
		CHECK(event(faults[i].name).type == RTSAN_EV_DISCONNECTED);
		rtsan_qp_destroy(qp);
	}
}

/* ---- FI_EP_MSG ---- */

static void
promise_msg(uint16_t port)
{
	const struct fault no_bytes = {"", OFI_MSG, OFI_PLACES | OFI_WANT_ACK, 100, 0, 1, {100}, 0};

	CHECK(try_qp(OFI_SERVICE(port), false) == RTSAN_EV_ESTABLISHED);
	CHECK(send_fault(&no_bytes));
}

/* As many messages may be incomplete as operations. Others keep the receives of their credits. */
static void
fill_msg(void)
{
	const struct fault whole = {.type = OFI_MSG};
	time_t quiet_since = time(NULL);
	struct rtsan_wc wc;
	int sent = 1;

	while (time(NULL) - quiet_since <= QUIET) {
		poll_sent(&wc);
		if (credits == 0)
			continue;
		CHECK(send_fault(&whole));
		quiet_since = time(NULL);
		CHECK(++sent <= OFI_REQUESTS + 2 * OFI_NB_MSG);
	}
	CHECK(sent >= OFI_REQUESTS);
}

/* ---- both ---- */

static void
be_refused(uint64_t service, bool is_rdm)
{
	for (int i = 0; i < OFI_NB_RX; i++) {
		CHECK(try_qp(service, is_rdm) == RTSAN_EV_REJECTED);
		rtsan_qp_destroy(qp);
	}
}

int
main(int argc, char **argv)
{
	uint16_t port;

	CHECK(argc >= 5);
	port = (uint16_t)atoi(argv[4]);
	victim.sin_family = AF_INET;
	victim.sin_port = htons(port);
	CHECK(inet_pton(AF_INET, argv[3], &victim.sin_addr) == 1);
	/* the kernel tells the daemon this user; later librtsan writes root into the requests */
	if (argc == 6)
		CHECK(seteuid((uid_t)atoi(argv[5])) == 0);
	CHECK(rtsan_open(argv[2], &ctx) == 0);
	CHECK(argc != 6 || seteuid(getuid()) == 0);
	CHECK(rtsan_cq_create(ctx, 1024, &cq) == 0);
	CHECK(rtsan_mr_alloc(ctx, OFI_NB_RX * RX_SIZE + OFI_BUF_SIZE, 0, &mr) == 0);
	if (strcmp(argv[1], "msg") == 0 || strcmp(argv[1], "mute") == 0)
		promise_msg(port);
	if (strcmp(argv[1], "msg") == 0)
		fill_msg();
	else if (strcmp(argv[1], "mute") == 0)
		CHECK(event("close").type == RTSAN_EV_DISCONNECTED);
	else if (strcmp(argv[1], "forge") == 0)
		be_refused(OFI_RDM_SERVICE(port), true);
	else if (strcmp(argv[1], "forge-msg") == 0)
		be_refused(OFI_SERVICE(port), false);
	else
		break_rdm(port);
	rtsan_close(ctx);
	printf("done\n");
	return 0;
}
