/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Endpoints FI_EP_RDM whose peers, or daemon, ofi_cases.py ends, and one with a hostile peer.
 * (OFI-1)
 *
 *	ofi_rdm_pair peer          prints its address, sleeps for messages, and stays to be killed
 *	ofi_rdm_pair hold NAME  sends to a peer until it dies, then to itself
 *	ofi_rdm_pair slow          prints its address, and takes one message in slow steps
 *	ofi_rdm_pair one NAME LENGTH  sends that message
 *	ofi_rdm_pair wait          waits for a message until its daemon dies
 *	ofi_rdm_pair victim        prints its address, and waits for a message with TAG_LAST
 *	ofi_rdm_pair wary          the same; then it sends to the name that the peer claims
 *	ofi_rdm_pair alone         prints its address, and sends to itself when a file is there
 */

#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <netinet/in.h>

#include "ofi_rdm_common.h"

#define NB_SIZED 300 /* messages to a peer that sleeps, and back */

/* As text, and the name itself in hexadecimal digits: the text has no token. */
static void
print_address(const struct node *n)
{
	char text[64];
	size_t len = sizeof(text);

	printf("address %s name ", fi_av_straddr(n->av, &n->name, text, &len));
	for (size_t i = 0; i < sizeof(struct sockaddr_in); i++)
		printf("%02x", ((const uint8_t *)&n->name)[i]);
	printf("\n");
	fflush(stdout);
}

/* Sleep until the completion of *context*. */
static void
sleep_for(struct node *n, void *context)
{
	struct fi_cq_tagged_entry e;

	do
		CHECK(fi_cq_sread(n->cq, &e, 1, NULL, WAIT_MS) == 1);
	while (e.op_context != context);
}

/* Messages there and back: those of a length, then longer ones. */
static void
exchange(struct node *n, bool begins)
{
	for (int i = 0; i < NB_SIZED; i++) {
		CHECK(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 3, 0, &contexts[1]) == 0);
		if (!begins)
			sleep_for(n, &contexts[1]);
		POST(fi_tsend(n->ep, from, 64ul << i / 20, NULL, n->at[1], 3, &contexts[2]));
		sleep_for(n, &contexts[2]);
		if (begins)
			sleep_for(n, &contexts[1]);
	}
}

static void
be_peer(void)
{
	struct node *n = &nodes[0];

	CHECK(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 0, 0, &contexts[0]) == 0);
	print_address(n);
	sleep_for(n, &contexts[0]);
	CHECK(fi_av_insert(n->av, to, 1, &n->at[1], 0, NULL) == 1);
	exchange(n, false);
	for (;;)
		rdm_progress();
}

/*
 * Each step looks at completions, one of many at events. So the message comes before the report of
 * its connection. It is answered although the endpoint is closed as soon as it is there.
 */
static void
be_slow(void)
{
	struct node *n = &nodes[0];
	struct fi_cq_tagged_entry e;
	time_t end = time(NULL) + WAIT_MS / 1000;
	ssize_t rc;

	CHECK(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 0, 0, &contexts[0]) == 0);
	print_address(n);
	while ((rc = fi_cq_read(n->cq, &e, 1)) == -FI_EAGAIN) {
		CHECK(time(NULL) < end);
		usleep(2000);
	}
	CHECK(rc == 1 && memcmp(from, to, e.len) == 0);
}

static void
insert_peer(struct node *n, const char *name)
{
	uint8_t bytes[sizeof(struct sockaddr_in)];

	for (size_t i = 0; i < sizeof(bytes); i++)
		CHECK(sscanf(&name[2 * i], "%2hhx", &bytes[i]) == 1);
	CHECK(fi_av_insert(n->av, bytes, 1, &n->at[1], 0, NULL) == 1);
}

static void
send_one(const char *name, size_t len)
{
	const struct iovec iov = {from, len};
	struct node *n = &nodes[0];
	struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .context = &contexts[0]};

	insert_peer(n, name);
	msg.addr = n->at[1];
	POST(fi_tsendmsg(n->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	rdm_done(n, &contexts[0], NULL);
}

/* Sends to it fail, at the latest when the connection is made again; those to others do not. */
static void
hold(const char *name)
{
	struct node *n = &nodes[0];
	struct fi_cq_err_entry err;
	struct fi_cq_tagged_entry e;

	insert_peer(n, name);
	CHECK(fi_av_insert(n->av, &n->name, 1, &n->at[0], 0, NULL) == 1);
	POST(fi_tsend(n->ep, &n->name, sizeof(n->name), NULL, n->at[1], 0, &contexts[0]));
	rdm_done(n, &contexts[0], NULL);
	exchange(n, true);
	POST(fi_tsend(n->ep, from, BIG, NULL, n->at[1], 1, &contexts[0])); /* never received */
	ofi_common_say("holding");
	CHECK(rdm_wait_one(n, &e, NULL) == -FI_EAVAIL);
	CHECK(fi_cq_readerr(n->cq, &err, 0) == 1);
	CHECK(err.op_context == &contexts[0] && err.err == FI_ECANCELED);
	POST_FOR(-FI_ECONNREFUSED, fi_tsend(n->ep, from, 1, NULL, n->at[1], 0, NULL));
	rdm_send_tag(0, 0, 2, 1);
	POST(fi_trecv(n->ep, to, 1, NULL, n->at[0], 2, 0, &contexts[1]));
	rdm_done(n, &contexts[1], NULL);
}

/* What waits for a message ends with the daemon, and all calls that are made after it. */
static void
lose(void)
{
	struct node *n = &nodes[0];

	CHECK(fi_av_insert(n->av, &n->name, 1, &n->at[0], 0, NULL) == 1);
	rdm_send_tag(0, 0, 1, 10);
	rdm_drain();
	CHECK(fi_trecv(n->ep, to, 1, NULL, FI_ADDR_UNSPEC, 0, 0, &contexts[0]) == 0);
	CHECK(fi_recv(n->ep, to, 1, NULL, FI_ADDR_UNSPEC, &contexts[1]) == 0);
	ofi_common_say("waiting");
	CHECK(rdm_failed(n, &contexts[1]).err == FI_ECANCELED);
	CHECK(rdm_failed(n, &contexts[0]).err == FI_ECANCELED);
	CHECK(fi_trecv(n->ep, to, 1, NULL, FI_ADDR_UNSPEC, 0, 0, NULL) == -FI_ENOTCONN);
	CHECK(fi_tsend(n->ep, to, 1, NULL, n->at[0], 0, NULL) == -FI_ENOTCONN);
	rdm_receive_tag(0, 1, 10); /* it had come */
}

/*
 * A hostile peer costs it that connection, and no more. A long message whose bytes the peer does
 * not send is not in the way of a fenced one to the peer.
 */
static void
be_victim(void)
{
	struct node *n = &nodes[0];
	const struct iovec iov = {from, 1};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = &contexts[0]};
	struct sockaddr_in peer;

	print_address(n);
	rdm_receive_tag(0, TAG_LAST, 0);
	CHECK(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, TAG_LAST + 1, 0, NULL) == 0);
	rdm_drain();
	memcpy(&peer, &n->name, sizeof(peer));
	memset(peer.sin_zero, 0, sizeof(peer.sin_zero)); /* it has proved nothing */
	peer.sin_port = htons(9);
	CHECK(fi_av_insert(n->av, &peer, 1, &msg.addr, 0, NULL) == 1);
	POST(fi_sendmsg(n->ep, &msg, FI_FENCE));
	rdm_done(n, &contexts[0], NULL);
}

/* Others that knock meanwhile get nothing, and the endpoint goes on. */
static void
be_alone(const char *file)
{
	struct node *n = &nodes[0];

	print_address(n);
	CHECK(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, TAG_LAST, 0, &contexts[1]) == 0);
	while (access(file, F_OK) != 0)
		rdm_progress();
	CHECK(fi_av_insert(n->av, &n->name, 1, &n->at[0], 0, NULL) == 1);
	rdm_send_tag(0, 0, TAG_LAST, 7);
	CHECK(rdm_done(n, &contexts[1], NULL).len == 7);
}

/* A peer that claims a port, but not the token of a name there, gets no messages for that name. */
static void
be_wary(void)
{
	struct node *n = &nodes[0];
	struct sockaddr_in other;
	fi_addr_t at;

	print_address(n);
	rdm_receive_tag(0, TAG_LAST, 0);
	memcpy(&other, &n->name, sizeof(other));
	other.sin_port = htons(9); /* the token stays */
	CHECK(fi_av_insert(n->av, &other, 1, &at, 0, NULL) == 1);
	POST_FOR(-FI_ECONNREFUSED, fi_tsend(n->ep, from, 1, NULL, at, 0, NULL)); /* none listens */
}

int
main(int argc, char **argv)
{
	CHECK(argc >= 2);
	rdm_open_domain();
	rdm_open_node(&nodes[0]);
	if (strcmp(argv[1], "hold") == 0)
		hold(argv[2]);
	else if (strcmp(argv[1], "peer") == 0)
		be_peer();
	else if (strcmp(argv[1], "slow") == 0)
		be_slow();
	else if (strcmp(argv[1], "one") == 0)
		send_one(argv[2], strtoul(argv[3], NULL, 0));
	else if (strcmp(argv[1], "wait") == 0)
		lose();
	else if (strcmp(argv[1], "alone") == 0)
		be_alone(argv[2]);
	else if (strcmp(argv[1], "wary") == 0)
		be_wary();
	else
		be_victim();
	rdm_close_node(&nodes[0]);
	rdm_close_domain();
	ofi_common_say("done");
	return 0;
}
