/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Endpoints FI_EP_RDM of one process, for test_ofi.py: matching, messages without a receive, long
 * ones, memory, and peers that end. (OFI-1)
 *
 *	ofi_rdm         all of them
 *	ofi_rdm peer    prints its address, answers one message and stays, for a test that kills it
 *	ofi_rdm hold ADDRESS    sends to a peer until it dies, then to itself
 */

#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <netinet/in.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "ofi_common.h"

#define NODES 3
#define BIG   3000000
#define MANY  300 /* more than the credits of a pool */
#define PART  16000

static struct fid_domain *domain;
static struct fi_info *infos;

/** An endpoint with its parts. */
static struct node {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	struct sockaddr_storage name;
	fi_addr_t at[NODES];
} nodes[NODES];

static char from[BIG], to[BIG];
static struct fi_context contexts[MANY + 1];

/* ---- set-up ---- */

static void
open_domain(void)
{
	struct fi_info *hints = fi_allocinfo();

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE |
		FI_MULTI_RECV;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("sanstack");
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &infos) == 0);
	fi_freeinfo(hints);
	info = infos;
	while (strcmp(info->fabric_attr->prov_name, "sanstack") != 0) /* ofi_rxm lists it, too */
		CHECK((info = info->next) != NULL);
	CHECK(info->ep_attr->type == FI_EP_RDM && info->caps & FI_DIRECTED_RECV);
	CHECK(fi_fabric(info->fabric_attr, &fabric, NULL) == 0);
	CHECK(fi_domain(fabric, info, &domain, NULL) == 0);
}

static void
open_node(struct node *n)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av = {.type = FI_AV_MAP};
	size_t len = sizeof(n->name);

	CHECK(fi_cq_open(domain, &cq, &n->cq, NULL) == 0);
	CHECK(fi_av_open(domain, &av, &n->av, NULL) == 0);
	CHECK(fi_endpoint(domain, info, &n->ep, NULL) == 0);
	CHECK(fi_enable(n->ep) == -FI_ENOCQ);
	CHECK(fi_ep_bind(n->ep, &n->cq->fid, FI_TRANSMIT | FI_RECV) == 0);
	CHECK(fi_enable(n->ep) == -FI_ENOAV);
	CHECK(fi_ep_bind(n->ep, &n->av->fid, 0) == 0);
	CHECK(fi_enable(n->ep) == 0);
	CHECK(fi_getname(&n->ep->fid, &n->name, &len) == 0);
}

static void
close_node(struct node *n)
{
	CHECK(fi_close(&n->av->fid) == -FI_EBUSY);
	CHECK(fi_close(&n->ep->fid) == 0);
	CHECK(fi_close(&n->av->fid) == 0);
	CHECK(fi_close(&n->cq->fid) == 0);
}

static void
open_nodes(void)
{
	int i, j;

	open_domain();
	for (i = 0; i < NODES; i++)
		open_node(&nodes[i]);
	for (i = 0; i < NODES; i++)
		for (j = 0; j < NODES; j++)
			CHECK(fi_av_insert(nodes[i].av, &nodes[j].name, 1, &nodes[i].at[j], 0,
					   NULL) == 1);
}

/* ---- steps ---- */

static void
progress(void)
{
	int i;

	for (i = 0; i < NODES; i++)
		if (nodes[i].cq != NULL)
			fi_cq_read(nodes[i].cq, NULL, 0);
}

/* Repeat a call while it is to be repeated. */
#define POST(call)                                   \
	do {                                         \
		ssize_t rc_;                         \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			progress();                  \
		CHECK(rc_ == 0);                     \
	} while (0)

static ssize_t
wait_one(struct node *n, struct fi_cq_tagged_entry *e, fi_addr_t *source)
{
	time_t end = time(NULL) + WAIT_MS / 1000;
	ssize_t rc;

	while ((rc = fi_cq_readfrom(n->cq, e, 1, source)) == -FI_EAGAIN) {
		progress();
		CHECK(time(NULL) < end);
	}
	return rc;
}

/* The completion of *context*, whatever comes before. */
static struct fi_cq_tagged_entry
done(struct node *n, void *context, fi_addr_t *source)
{
	struct fi_cq_tagged_entry e;

	do {
		ssize_t rc = wait_one(n, &e, source);

		if (rc == -FI_EAVAIL) {
			struct fi_cq_err_entry err = {0};

			fi_cq_readerr(n->cq, &err, 0);
			fprintf(stderr, "context %td of %td: %s, %s\n",
				(struct fi_context *)err.op_context - contexts,
				(struct fi_context *)context - contexts, fi_strerror(err.err),
				fi_cq_strerror(n->cq, err.prov_errno, NULL, NULL, 0));
		}
		CHECK(rc == 1);
	} while (e.op_context != context);
	return e;
}

static struct fi_cq_err_entry
failed(struct node *n, void *context)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	while ((rc = wait_one(n, &e, NULL)) == 1)
		;
	CHECK(rc == -FI_EAVAIL);
	CHECK(fi_cq_readerr(n->cq, &err, 0) == 1);
	CHECK(err.op_context == context);
	return err;
}

static void
drain(void)
{
	struct fi_cq_tagged_entry e;
	int i, rounds;

	for (rounds = 0; rounds < 300; rounds++)
		for (i = 0; i < NODES; i++)
			if (nodes[i].cq != NULL)
				fi_cq_read(nodes[i].cq, &e, 1);
}

static void
send_tag(int a, int b, uint64_t tag, size_t len)
{
	POST(fi_tsend(nodes[a].ep, from, len, NULL, nodes[a].at[b], tag, &contexts[MANY]));
}

/* ---- cases ---- */

/* Tags, and bits that do not count, choose the first message that came; so does a source. */
static void
match(void)
{
	struct node *n = &nodes[0];
	fi_addr_t source;
	struct fi_cq_tagged_entry e;

	send_tag(1, 0, 0x101, 10);
	send_tag(1, 0, 0x202, 20);
	send_tag(2, 0, 0x303, 30);
	send_tag(1, 0, 0x404, 40);
	POST(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 0x404, 0, &contexts[0]));
	e = done(n, &contexts[0], &source);
	CHECK(e.len == 40 && e.tag == 0x404 && source == n->at[1]);
	CHECK(e.flags == (FI_TAGGED | FI_RECV));
	POST(fi_trecv(n->ep, to, BIG, NULL, n->at[2], 0, ~0ull, &contexts[1]));
	e = done(n, &contexts[1], &source);
	CHECK(e.len == 30 && source == n->at[2]);
	POST(fi_trecv(n->ep, to, BIG, NULL, n->at[1], 1, 0xfff0, &contexts[2]));
	e = done(n, &contexts[2], &source);
	CHECK(e.len == 10 && e.tag == 0x101);
	POST(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &contexts[3]));
	CHECK(done(n, &contexts[3], NULL).len == 20);
	/* receives that are there first, and messages without a tag */
	POST(fi_trecv(n->ep, to, BIG, NULL, n->at[2], 7, 0, &contexts[4]));
	POST(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 7, 0, &contexts[5]));
	POST(fi_recv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, &contexts[6]));
	POST(fi_inject(nodes[1].ep, from, 5, nodes[1].at[0]));
	POST(fi_tinjectdata(nodes[1].ep, from, 6, 0x1122334455667788, nodes[1].at[0], 7));
	send_tag(2, 0, 7, 8);
	e = done(n, &contexts[6], &source);
	CHECK(e.len == 5 && e.flags == (FI_MSG | FI_RECV) && source == n->at[1]);
	e = done(n, &contexts[5], NULL);
	CHECK(e.len == 6 && e.data == 0x1122334455667788 && (e.flags & FI_REMOTE_CQ_DATA) != 0);
	CHECK(done(n, &contexts[4], NULL).len == 8);
	CHECK(fi_trecv(n->ep, to, 1, NULL, FI_ADDR_UNSPEC, 9, 0, &contexts[7]) == 0);
	CHECK(fi_cancel(&n->ep->fid, &contexts[7]) == 0);
	CHECK(failed(n, &contexts[7]).err == FI_ECANCELED);
	CHECK(fi_cancel(&n->ep->fid, &contexts[7]) == -FI_ENOENT);
}

/* More messages wait than a pool has receives, and the last one is received first. */
static void
unexpected(void)
{
	struct node *n = &nodes[0];
	int i;

	for (i = 0; i < MANY; i++) {
		from[0] = (char)i;
		POST(fi_tsend(nodes[1].ep, from, PART, NULL, nodes[1].at[0], (uint64_t)i,
			      &contexts[i]));
		done(&nodes[1], &contexts[i], NULL);
	}
	for (i = MANY - 1; i >= 0; i--) {
		POST(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, (uint64_t)i, 0, &contexts[i]));
		CHECK(done(n, &contexts[i], NULL).len == PART && to[0] == (char)i);
	}
	from[0] = 0;
}

/* Long messages, before and after their receive, in pieces and too long. */
static void
rendezvous(void)
{
	const struct iovec pieces[] = {{from, 1000000}, {from + 1000000, BIG - 1000000}};
	const struct iovec parts[] = {{to, 17}, {to + 17, 2000000}, {to + 2000017, BIG - 2000017}};
	struct node *n = &nodes[0];
	struct fi_cq_err_entry err;

	memset(to, 0, BIG);
	POST(fi_trecvv(n->ep, parts, NULL, 3, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
	POST(fi_tsendv(nodes[2].ep, pieces, NULL, 2, nodes[2].at[0], 1, &contexts[1]));
	CHECK(done(n, &contexts[0], NULL).len == BIG);
	CHECK(memcmp(from, to, BIG) == 0);
	done(&nodes[2], &contexts[1], NULL);
	memset(to, 0, BIG);
	send_tag(2, 0, 2, BIG);
	send_tag(2, 0, 3, 10);
	POST(fi_trecv(n->ep, to, 100, NULL, FI_ADDR_UNSPEC, 3, 0, &contexts[2]));
	done(n, &contexts[2], NULL);
	POST(fi_trecv(n->ep, to, BIG - 1, NULL, FI_ADDR_UNSPEC, 2, 0, &contexts[3]));
	err = failed(n, &contexts[3]);
	CHECK(err.err == FI_ETRUNC && err.olen == 1 && err.len == BIG - 1);
	CHECK(memcmp(from, to, BIG - 1) == 0 && to[BIG - 1] == 0);
	done(&nodes[2], &contexts[MANY], NULL);
	send_tag(2, 0, 4, 11);
	POST(fi_trecv(n->ep, to, 10, NULL, FI_ADDR_UNSPEC, 4, 0, &contexts[4]));
	err = failed(n, &contexts[4]);
	CHECK(err.err == FI_ETRUNC && err.olen == 1 && err.tag == 4);
	drain();
}

static void
look(struct node *n, uint64_t tag, uint64_t flags, int context)
{
	struct iovec iov = {to, BIG};
	const struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.tag = tag,
		.context = &contexts[context],
	};

	CHECK(fi_trecvmsg(n->ep, &msg, flags) == 0);
}

static void
peek(void)
{
	struct node *n = &nodes[0];
	struct fi_cq_tagged_entry e;

	drain();
	look(n, 1, FI_PEEK, 0);
	CHECK(failed(n, &contexts[0]).err == FI_ENOMSG);
	send_tag(1, 0, 1, 10);
	send_tag(1, 0, 1, BIG);
	send_tag(1, 0, 1, 20);
	send_tag(1, 0, 2, 0); /* with it, all have come */
	POST(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 2, 0, &contexts[0]));
	done(n, &contexts[0], NULL);
	look(n, 1, FI_PEEK, 0);
	e = done(n, &contexts[0], NULL);
	CHECK(e.len == 10 && e.tag == 1);
	look(n, 1, FI_PEEK | FI_CLAIM, 1);
	CHECK(done(n, &contexts[1], NULL).len == 10);
	look(n, 1, FI_PEEK | FI_DISCARD, 2); /* the long one */
	CHECK(done(n, &contexts[2], NULL).len == BIG);
	look(n, 1, FI_PEEK | FI_CLAIM, 3);
	CHECK(done(n, &contexts[3], NULL).len == 20);
	look(n, 1, FI_PEEK, 4);
	CHECK(failed(n, &contexts[4]).err == FI_ENOMSG);
	look(n, 1, FI_CLAIM, 1);
	CHECK(done(n, &contexts[1], NULL).len == 10);
	look(n, 1, FI_CLAIM | FI_DISCARD, 3);
	CHECK(done(n, &contexts[3], NULL).len == 20);
	drain();
}

/* One buffer for many messages, short and long. */
static void
multi_recv(void)
{
	const struct iovec iov = {to, BIG};
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &contexts[0]};
	struct node *n = &nodes[0];
	struct fi_cq_tagged_entry e;
	size_t at = 0, len;
	int i;

	CHECK(fi_recvmsg(n->ep, &msg, FI_MULTI_RECV) == 0);
	for (i = 0; i < 4; i++) {
		len = i % 2 == 0 ? 100 : 20000;
		POST(fi_send(nodes[1].ep, from + i, len, NULL, nodes[1].at[0], &contexts[1]));
		e = done(n, &contexts[0], NULL);
		CHECK(e.len == len && e.buf == to + at && memcmp(e.buf, from + i, len) == 0);
		CHECK((e.flags & FI_MULTI_RECV) == 0);
		at += len;
		done(&nodes[1], &contexts[1], NULL);
	}
	CHECK(fi_cancel(&n->ep->fid, &contexts[0]) == 0);
	CHECK((failed(n, &contexts[0]).flags & FI_MULTI_RECV) != 0);
}

/* Reads, writes and atomics name the peer as sends do. */
static void
memory(void)
{
	struct node *n = &nodes[0];
	uint64_t word = 5, old = 0;
	struct fid_mr *mr;
	uint64_t key;

	memset(to, 0, BIG);
	CHECK(fi_mr_reg(domain, to, BIG, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL) ==
	      0);
	key = fi_mr_key(mr);
	POST(fi_write(n->ep, from, BIG, NULL, n->at[2], (uintptr_t)to, key, &contexts[0]));
	CHECK(done(n, &contexts[0], NULL).flags == (FI_RMA | FI_WRITE));
	CHECK(memcmp(from, to, BIG) == 0);
	memset(to, 0, 64);
	POST(fi_fetch_atomic(n->ep, &word, 1, NULL, &old, NULL, n->at[1], (uintptr_t)to, key,
			     FI_UINT64, FI_SUM, &contexts[1]));
	done(n, &contexts[1], NULL);
	POST(fi_read(n->ep, &word, sizeof(word), NULL, n->at[1], (uintptr_t)to, key,
		     &contexts[2]));
	done(n, &contexts[2], NULL);
	CHECK(old == 0 && word == 5);
	CHECK(fi_close(&mr->fid) == 0);
}

/* Both sides of a pair begin at once. */
static void
both_begin(void)
{
	fi_addr_t at[2];
	struct node *n[2] = {&nodes[1], &nodes[2]};
	ssize_t rc[2] = {-FI_EAGAIN, -FI_EAGAIN};
	int i;

	for (i = 0; i < 2; i++) {
		at[i] = n[i]->at[2 - i];
		POST(fi_trecv(n[i]->ep, to + i, 1, NULL, at[i], 0, 0, &contexts[i]));
	}
	while (rc[0] != 0 || rc[1] != 0)
		for (i = 0; i < 2; i++) {
			if (rc[i] == 0)
				continue;
			rc[i] = fi_tsend(n[i]->ep, from, 1, NULL, at[i], 0, &contexts[2]);
			CHECK(rc[i] == 0 || rc[i] == -FI_EAGAIN);
		}
	for (i = 0; i < 2; i++)
		done(n[i], &contexts[i], NULL);
	drain();
}

static void
vector(void)
{
	struct node *n = &nodes[0];
	struct sockaddr_storage a;
	size_t len = sizeof(a);
	fi_addr_t at;
	char text[64];

	CHECK(fi_av_lookup(n->av, n->at[1], &a, &len) == 0);
	CHECK(len == sizeof(struct sockaddr_in) && memcmp(&a, &nodes[1].name, len) == 0);
	len = sizeof(text);
	CHECK(fi_av_straddr(n->av, &a, text, &len) == text && len == strlen(text) + 1);
	CHECK(fi_av_insert(n->av, &a, 1, &at, 0, NULL) == 1 && at == NODES);
	CHECK(fi_av_remove(n->av, &at, 1, 0) == 0);
	CHECK(fi_av_lookup(n->av, at, &a, &len) == -FI_EINVAL);
	CHECK(fi_tsend(n->ep, from, 1, NULL, at, 0, NULL) == -FI_EINVAL);
	CHECK(fi_av_remove(n->av, &at, 1, 0) == -FI_EINVAL);
}

/* A message to an endpoint that is no longer there fails; the others go on, and a new one, too. */
static void
reopen(void)
{
	struct node *n = &nodes[0], *ended = &nodes[2];
	ssize_t rc;

	send_tag(2, 0, 1, 10);
	send_tag(2, 0, 2, BIG);
	drain();
	close_node(ended);
	memset(ended, 0, sizeof(*ended));
	while ((rc = fi_tsend(n->ep, from, 1, NULL, n->at[2], 0, NULL)) == -FI_EAGAIN)
		progress();
	CHECK(rc == -FI_ECONNREFUSED);
	/* what had come is received, and what it had yet to be asked for is lost */
	POST(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
	CHECK(done(n, &contexts[0], NULL).len == 10);
	POST(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 2, 0, &contexts[1]));
	CHECK(failed(n, &contexts[1]).err == FI_ECANCELED);
	send_tag(1, 0, 3, 10);
	POST(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 3, 0, &contexts[2]));
	CHECK(done(n, &contexts[2], NULL).len == 10);
	open_node(ended);
	CHECK(fi_av_remove(n->av, &n->at[2], 1, 0) == 0);
	CHECK(fi_av_insert(n->av, &ended->name, 1, &n->at[2], 0, NULL) == 1 && n->at[2] == 2);
	send_tag(0, 2, 4, 10);
	POST(fi_trecv(ended->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 4, 0, &contexts[3]));
	CHECK(done(ended, &contexts[3], NULL).len == 10);
}

/* ---- a peer that dies ---- */

static void
be_peer(void)
{
	struct node *n = &nodes[0];
	char text[64];
	size_t len = sizeof(text);

	open_domain();
	open_node(n);
	CHECK(fi_trecv(n->ep, to, 1, NULL, FI_ADDR_UNSPEC, 0, 0, &contexts[0]) == 0);
	printf("address %s\n", fi_av_straddr(n->av, &n->name, text, &len));
	fflush(stdout);
	done(n, &contexts[0], NULL);
	for (;;)
		progress();
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

	open_domain();
	open_node(n);
	*colon = 0;
	CHECK(fi_av_insertsvc(n->av, address, colon + 1, &n->at[1], 0, NULL) == 1);
	CHECK(fi_av_insert(n->av, &n->name, 1, &n->at[0], 0, NULL) == 1);
	send_tag(0, 1, 0, 1);
	done(n, &contexts[MANY], NULL);
	POST(fi_tsend(n->ep, from, BIG, NULL, n->at[1], 1, &contexts[0])); /* never received */
	printf("holding\n");
	fflush(stdout);
	CHECK(wait_one(n, &e, NULL) == -FI_EAVAIL);
	CHECK(fi_cq_readerr(n->cq, &err, 0) == 1);
	CHECK(err.op_context == &contexts[0] && err.err == FI_ECANCELED);
	while ((rc = fi_tsend(n->ep, from, 1, NULL, n->at[1], 0, NULL)) == -FI_EAGAIN)
		progress();
	CHECK(rc == -FI_ECONNREFUSED);
	send_tag(0, 0, 2, 1);
	POST(fi_trecv(n->ep, to, 1, NULL, n->at[0], 2, 0, &contexts[1]));
	done(n, &contexts[1], NULL);
	close_node(n);
}

int
main(int argc, char **argv)
{
	int i;

	for (i = 0; i < BIG; i++)
		from[i] = (char)(i * 7 + (i >> 8));
	if (argc == 2 && strcmp(argv[1], "peer") == 0)
		be_peer();
	if (argc == 3 && strcmp(argv[1], "hold") == 0) {
		hold(argv[2]);
	} else {
		open_nodes();
		both_begin();
		match();
		unexpected();
		rendezvous();
		peek();
		multi_recv();
		memory();
		vector();
		reopen();
		for (i = 0; i < NODES; i++)
			close_node(&nodes[i]);
	}
	CHECK(fi_close(&domain->fid) == 0);
	CHECK(fi_close(&fabric->fid) == 0);
	fi_freeinfo(infos);
	printf("done\n");
	return 0;
}
