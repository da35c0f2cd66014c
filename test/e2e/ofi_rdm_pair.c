/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Endpoints FI_EP_RDM whose peers, or daemon, test_ofi.py ends, and one with a hostile peer.
 * (OFI-1)
 *
 *	ofi_rdm_pair peer          prints its address, sleeps for messages, and stays to be killed
 *	ofi_rdm_pair hold ADDRESS  sends to a peer until it dies, then to itself
 *	ofi_rdm_pair wait          waits for a message until its daemon dies
 *	ofi_rdm_pair victim        prints its address, and waits for a message with TAG_LAST
 */

#include <string.h>

#include "ofi_rdm_common.h"

#define LONG 60 /* long messages to a peer that sleeps */

static void
print_address(const struct node *n)
{
	char text[64];
	size_t len = sizeof(text);

	printf("address %s\n", fi_av_straddr(n->av, &n->name, text, &len));
	fflush(stdout);
}

static void
be_peer(void)
{
	struct node *n = &nodes[0];
	struct fi_cq_tagged_entry e;

	int i;

	for (i = 0; i <= LONG; i++) {
		CHECK(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 0, 0, &contexts[i]) == 0);
		if (i == 0)
			print_address(n);
		CHECK(fi_cq_sread(n->cq, &e, 1, NULL, WAIT_MS) == 1);
		CHECK(e.op_context == &contexts[i] && e.len == (i == 0 ? 1 : BIG));
	}
	for (;;)
		rdm_progress();
}

/* Sends to it fail, at the latest when the connection is made again; those to others do not. */
static void
hold(char *address)
{
	struct node *n = &nodes[0];
	char *colon = strrchr(address, ':');
	struct fi_cq_err_entry err;
	struct fi_cq_tagged_entry e;
	ssize_t rc;
	int i;

	*colon = 0;
	CHECK(fi_av_insertsvc(n->av, address, colon + 1, &n->at[1], 0, NULL) == 1);
	CHECK(fi_av_insert(n->av, &n->name, 1, &n->at[0], 0, NULL) == 1);
	rdm_send_tag(0, 1, 0, 1);
	rdm_done(n, &contexts[MANY], NULL);
	for (i = 0; i < LONG; i++) {
		rdm_send_tag(0, 1, 0, BIG);
		CHECK(fi_cq_sread(n->cq, &e, 1, NULL, WAIT_MS) == 1);
	}
	POST(fi_tsend(n->ep, from, BIG, NULL, n->at[1], 1, &contexts[0])); /* never received */
	printf("holding\n");
	fflush(stdout);
	CHECK(rdm_wait_one(n, &e, NULL) == -FI_EAVAIL);
	CHECK(fi_cq_readerr(n->cq, &err, 0) == 1);
	CHECK(err.op_context == &contexts[0] && err.err == FI_ECANCELED);
	while ((rc = fi_tsend(n->ep, from, 1, NULL, n->at[1], 0, NULL)) == -FI_EAGAIN)
		rdm_progress();
	CHECK(rc == -FI_ECONNREFUSED);
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
	printf("waiting\n");
	fflush(stdout);
	CHECK(rdm_failed(n, &contexts[1]).err == FI_ECANCELED);
	CHECK(rdm_failed(n, &contexts[0]).err == FI_ECANCELED);
	CHECK(fi_trecv(n->ep, to, 1, NULL, FI_ADDR_UNSPEC, 0, 0, NULL) == -FI_ENOTCONN);
	CHECK(fi_tsend(n->ep, to, 1, NULL, n->at[0], 0, NULL) == -FI_ENOTCONN);
	rdm_receive_tag(0, 1, 10); /* it had come */
}

/* A hostile peer costs it that connection, and no more. */
static void
be_victim(void)
{
	struct node *n = &nodes[0];

	print_address(n);
	rdm_receive_tag(0, TAG_LAST, 0);
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
	else if (strcmp(argv[1], "wait") == 0)
		lose();
	else
		be_victim();
	rdm_close_node(&nodes[0]);
	rdm_close_domain();
	printf("done\n");
	return 0;
}
