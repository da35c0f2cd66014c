/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Endpoints FI_EP_RDM of one process, for ofi_cases.py: matching, messages without a receive, long
 * ones, memory, and peers that end. (OFI-1)
 */

#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "ofi_rdm_common.h"

#define PART    16000
#define EAGER   16584 /* bytes of the longest message that is one part */
#define GUESSES 64    /* refusals that end a connection */
#define BUDGET  512   /* more refusals than a host gets at once */
#define KEPT    (256l << 20)
#define PERIOD  (3ul << 20) /* whole pages, and no divisor of what the transport moves at once */
#define HUGE    ((2ul << 30) + PERIOD / 2)

static void
open_nodes(void)
{
	rdm_open_domain();
	for (int i = 0; i < NODES; i++)
		rdm_open_node(&nodes[i]);
	for (int i = 0; i < NODES; i++)
		for (int j = 0; j < NODES; j++)
			CHECK(fi_av_insert(nodes[i].av, &nodes[j].name, 1, &nodes[i].at[j], 0,
					   NULL) == 1);
}

/* Node 0 receives a message that has come, or is under way. */
static struct fi_cq_tagged_entry
receive(fi_addr_t of, uint64_t tag, uint64_t ignore, fi_addr_t *source)
{
	POST(fi_trecv(nodes[0].ep, to, BIG, NULL, of, tag, ignore, &contexts[MANY + 1]));
	return rdm_done(&nodes[0], &contexts[MANY + 1], source);
}

/* ---- cases ---- */

/* The first message of a connection is long: it comes before the report of the connection. */
static void
first_long(void)
{
	struct node *n = &nodes[0];

	POST(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]));
	POST(fi_tsend(nodes[2].ep, from, BIG, NULL, nodes[2].at[0], 1, &contexts[1]));
	CHECK(rdm_done(n, &contexts[0], NULL).len == BIG && memcmp(from, to, BIG) == 0);
	rdm_done(&nodes[2], &contexts[1], NULL);
}

/* Tags, and bits that do not count, choose the first message that came; so does a source. */
static void
match(void)
{
	struct node *n = &nodes[0];
	fi_addr_t source;
	struct fi_cq_tagged_entry e;

	rdm_send_tag(1, 0, 0x101, 10);
	rdm_send_tag(1, 0, 0x202, 20);
	rdm_send_tag(2, 0, 0x303, 30);
	rdm_send_tag(1, 0, 0x404, 40);
	e = receive(FI_ADDR_UNSPEC, 0x404, 0, &source);
	CHECK(e.len == 40 && e.tag == 0x404 && source == n->at[1]);
	CHECK(e.flags == (FI_TAGGED | FI_RECV));
	e = receive(n->at[2], 0, ~0ull, &source);
	CHECK(e.len == 30 && source == n->at[2]);
	e = receive(n->at[1], 1, 0xfff0, &source);
	CHECK(e.len == 10 && e.tag == 0x101);
	CHECK(receive(FI_ADDR_UNSPEC, 0, ~0ull, NULL).len == 20);
	/* receives that are there first, and messages without a tag */
	POST(fi_trecv(n->ep, to, BIG, NULL, n->at[2], 7, 0, &contexts[4]));
	POST(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 7, 0, &contexts[5]));
	POST(fi_recv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, &contexts[6]));
	POST(fi_inject(nodes[1].ep, from, 5, nodes[1].at[0]));
	POST(fi_tinjectdata(nodes[1].ep, from, 6, 0x1122334455667788, nodes[1].at[0], 7));
	e = rdm_done(n, &contexts[6], &source);
	CHECK(e.len == 5 && e.flags == (FI_MSG | FI_RECV) && source == n->at[1]);
	e = rdm_done(n, &contexts[5], NULL);
	CHECK(e.len == 6 && e.data == 0x1122334455667788 && (e.flags & FI_REMOTE_CQ_DATA) != 0);
	rdm_send_tag(2, 0, 7, 8);
	CHECK(rdm_done(n, &contexts[4], NULL).len == 8);
	CHECK(fi_trecv(n->ep, to, 1, NULL, FI_ADDR_UNSPEC, 9, 0, &contexts[7]) == 0);
	CHECK(fi_cancel(&n->ep->fid, &contexts[7]) == 0);
	CHECK(rdm_failed(n, &contexts[7]).err == FI_ECANCELED);
	CHECK(fi_cancel(&n->ep->fid, &contexts[7]) == -FI_ENOENT);
}

/* More messages wait than a pool has receives, and the last one is received first. */
static void
unexpected(void)
{
	for (int i = 0; i < MANY; i++) {
		from[0] = (char)i;
		POST(fi_tsend(nodes[1].ep, from, PART, NULL, nodes[1].at[0], (uint64_t)i,
			      &contexts[i]));
		rdm_done(&nodes[1], &contexts[i], NULL);
	}
	for (int i = MANY - 1; i >= 0; i--) {
		CHECK(receive(FI_ADDR_UNSPEC, (uint64_t)i, 0, NULL).len == PART);
		CHECK(to[0] == (char)i);
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
	CHECK(rdm_done(n, &contexts[0], NULL).len == BIG);
	CHECK(memcmp(from, to, BIG) == 0);
	rdm_done(&nodes[2], &contexts[1], NULL);
	memset(to, 0, BIG);
	rdm_send_tag(2, 0, 2, BIG);
	rdm_send_tag(2, 0, 3, 10);
	receive(FI_ADDR_UNSPEC, 3, 0, NULL);
	POST(fi_trecv(n->ep, to, BIG - 1, NULL, FI_ADDR_UNSPEC, 2, 0, &contexts[3]));
	err = rdm_failed(n, &contexts[3]);
	CHECK(err.err == FI_ETRUNC && err.olen == 1 && err.len == BIG - 1);
	CHECK(memcmp(from, to, BIG - 1) == 0 && to[BIG - 1] == 0);
	rdm_done(&nodes[2], &contexts[MANY], NULL);
	rdm_send_tag(2, 0, 4, 11);
	POST(fi_trecv(n->ep, to, 10, NULL, FI_ADDR_UNSPEC, 4, 0, &contexts[4]));
	err = rdm_failed(n, &contexts[4]);
	CHECK(err.err == FI_ETRUNC && err.olen == 1 && err.tag == 4);
	rdm_drain();
}

/* Lengths around the limit of one part, in one to four pieces. */
static void
lengths(void)
{
	struct iovec iov[4];
	size_t at;
	int i;

	for (int nb = 1; nb <= 4; nb++)
		for (size_t len = EAGER - 1; len <= EAGER + 1; len++) {
			for (i = 0, at = 0; i < nb; at += iov[i++].iov_len)
				iov[i] = (struct iovec){from + at,
							i == nb - 1 ? len - at : len / 5 + i};
			POST(fi_tsendv(nodes[1].ep, iov, NULL, (size_t)nb, nodes[1].at[0], len,
				       &contexts[0]));
			rdm_receive_tag(0, len, len);
			rdm_done(&nodes[1], &contexts[0], NULL);
		}
	rdm_send_tag(1, 0, 1, 0);
	rdm_receive_tag(0, 1, 0);
	CHECK(fi_tsend(nodes[1].ep, from, 1ul << 32, NULL, nodes[1].at[0], 1, NULL) ==
	      -FI_EMSGSIZE);
	rdm_drain();
}

#define ORDER_LEN(i) ((i) % 2 == 0 ? BIG / 4 - (size_t)(i) : 10 + (size_t)(i))

static void
post_four(void)
{
	for (int i = 0; i < 4; i++)
		POST(fi_trecv(nodes[0].ep, to + i * BIG / 4, BIG / 4, NULL, nodes[0].at[1], 1, 0,
			      &contexts[i]));
}

/* Messages of a tag take receives in the order in which they were sent, long ones, too. */
static void
order(bool is_late)
{
	struct fi_cq_tagged_entry e;
	int i;

	if (!is_late)
		post_four();
	for (i = 0; i < 4; i++)
		rdm_send_tag(1, 0, 1, ORDER_LEN(i));
	if (is_late)
		post_four();
	for (int nb = 0; nb < 4; nb++) {
		CHECK(rdm_wait_one(&nodes[0], &e, NULL) == 1);
		i = (int)((struct fi_context *)e.op_context - contexts);
		CHECK(e.len == ORDER_LEN(i));
	}
	rdm_drain();
}

/* As many are kept as there is memory for; then the sender waits, and none is lost. */
static void
flood(void)
{
	const long most = KEPT / PART + 1024;
	long sent = 0, i, idle = 0;
	struct fi_cq_tagged_entry e;

	while (idle < 10000 && sent < most) {
		if (fi_tsend(nodes[1].ep, from, PART, NULL, nodes[1].at[0], (uint64_t)sent,
			     NULL) == 0) {
			sent++;
			idle = 0;
		} else {
			fi_cq_read(nodes[0].cq, NULL, 0);
			fi_cq_read(nodes[1].cq, &e, 1);
			usleep(20); /* a daemon may need this CPU */
			idle++;
		}
	}
	CHECK(sent < most && sent > KEPT / (PART + 64));
	for (i = 0; i < sent; i++)
		rdm_receive_tag(0, (uint64_t)i, PART);
	while (fi_cq_read(nodes[1].cq, &e, 1) == 1)
		;
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
	const struct fi_msg_tagged none = {.addr = FI_ADDR_UNSPEC};
	struct node *n = &nodes[0];
	struct fi_cq_tagged_entry e;

	rdm_drain();
	look(n, 1, FI_PEEK, 0);
	CHECK(rdm_failed(n, &contexts[0]).err == FI_ENOMSG);
	rdm_send_tag(1, 0, 1, 10);
	rdm_send_tag(1, 0, 1, BIG);
	rdm_send_tag(1, 0, 1, 20);
	rdm_send_tag(1, 0, 2, 0); /* with it, all have come */
	rdm_receive_tag(0, 2, 0);
	look(n, 1, FI_PEEK, 0);
	e = rdm_done(n, &contexts[0], NULL);
	CHECK(e.len == 10 && e.tag == 1);
	look(n, 1, FI_PEEK | FI_CLAIM, 1);
	CHECK(rdm_done(n, &contexts[1], NULL).len == 10);
	look(n, 1, FI_PEEK | FI_DISCARD, 2); /* the long one */
	CHECK(rdm_done(n, &contexts[2], NULL).len == BIG);
	look(n, 1, FI_PEEK | FI_CLAIM, 3);
	CHECK(rdm_done(n, &contexts[3], NULL).len == 20);
	look(n, 1, FI_PEEK, 4);
	CHECK(rdm_failed(n, &contexts[4]).err == FI_ENOMSG);
	look(n, 1, FI_CLAIM, 1);
	CHECK(rdm_done(n, &contexts[1], NULL).len == 10);
	look(n, 1, FI_CLAIM | FI_DISCARD, 3);
	CHECK(rdm_done(n, &contexts[3], NULL).len == 20);
	/* without a message that was claimed */
	CHECK(fi_trecvmsg(n->ep, &none, FI_CLAIM) == -FI_EINVAL);
	CHECK(fi_trecvmsg(n->ep, &none, FI_PEEK | FI_CLAIM) == -FI_EINVAL);
	CHECK(fi_trecvmsg(n->ep, &none, FI_DISCARD) == -FI_EINVAL);
	rdm_drain();
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

	CHECK(fi_recvmsg(n->ep, &msg, FI_MULTI_RECV) == 0);
	for (int i = 0; i < 4; i++) {
		len = i % 2 == 0 ? 100 : 20000;
		POST(fi_send(nodes[1].ep, from + i, len, NULL, nodes[1].at[0], &contexts[1]));
		e = rdm_done(n, &contexts[0], NULL);
		CHECK(e.len == len && e.buf == to + at && memcmp(e.buf, from + i, len) == 0);
		CHECK((e.flags & FI_MULTI_RECV) == 0);
		at += len;
		rdm_done(&nodes[1], &contexts[1], NULL);
	}
	CHECK(fi_cancel(&n->ep->fid, &contexts[0]) == 0);
	CHECK((rdm_failed(n, &contexts[0]).flags & FI_MULTI_RECV) != 0);
}

static struct fid_mr *
open_region(void *buf, size_t len)
{
	return ofi_common_region(rdm_domain, buf, len, FI_REMOTE_READ | FI_REMOTE_WRITE);
}

/* Reads, writes and atomics name the peer as sends do, and CQ data has a source. */
static void
memory(void)
{
	struct fid_mr *mr = open_region(to, BIG);
	uint64_t word = 5, old = 0, key = fi_mr_key(mr);
	struct node *n = &nodes[0];
	struct fi_cq_tagged_entry e;
	fi_addr_t source;

	memset(to, 0, BIG);
	POST(fi_write(n->ep, from, BIG, NULL, n->at[2], (uintptr_t)to, key, &contexts[0]));
	CHECK(rdm_done(n, &contexts[0], NULL).flags == (FI_RMA | FI_WRITE));
	CHECK(memcmp(from, to, BIG) == 0);
	memset(to, 0, 64);
	POST(fi_fetch_atomic(n->ep, &word, 1, NULL, &old, NULL, n->at[1], (uintptr_t)to, key,
			     FI_UINT64, FI_SUM, &contexts[1]));
	rdm_done(n, &contexts[1], NULL);
	POST(fi_read(n->ep, &word, sizeof(word), NULL, n->at[1], (uintptr_t)to, key, &contexts[2]));
	rdm_done(n, &contexts[2], NULL);
	CHECK(old == 0 && word == 5);
	word = 5;
	POST(fi_compare_atomic(n->ep, &key, 1, NULL, &word, NULL, &old, NULL, n->at[1],
			       (uintptr_t)to, key, FI_UINT64, FI_CSWAP, &contexts[2]));
	rdm_done(n, &contexts[2], NULL);
	CHECK(old == 5 && memcmp(to, &key, sizeof(key)) == 0);
	POST(fi_writedata(n->ep, from, 1, NULL, 0x99, n->at[1], (uintptr_t)to, key, &contexts[3]));
	CHECK(rdm_wait_one(&nodes[1], &e, &source) == 1);
	CHECK(e.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA) && e.data == 0x99);
	CHECK(source == nodes[1].at[0]);
	rdm_done(n, &contexts[3], NULL);
	CLOSE(&mr->fid);
}

static void
read_counts(uint64_t *counts, const uint64_t *before)
{
	for (int i = 0; i < CNTRS; i++)
		counts[i] = fi_cntr_read(nodes[0].cntrs[i]) - before[i];
}

/* Counters count operations with all peers, but no look at a message. */
static void
counters(void)
{
	struct fid_mr *mr = open_region(to, BIG);
	const uint64_t want[CNTRS] = {3, 2, 1, 2}, none[CNTRS] = {0};
	uint64_t before[CNTRS], counts[CNTRS], key = fi_mr_key(mr), word = 1;
	time_t end = time(NULL) + WAIT_MS / 1000;
	struct node *n = &nodes[0];

	rdm_drain();
	read_counts(before, none);
	rdm_send_tag(0, 1, 1, BIG);
	rdm_receive_tag(1, 1, BIG);
	rdm_send_tag(0, 2, 1, 10);
	rdm_receive_tag(2, 1, 10);
	POST(fi_inject(n->ep, from, 1, n->at[1]));
	rdm_send_tag(1, 0, 2, BIG);
	rdm_send_tag(1, 0, 3, 0);
	rdm_receive_tag(0, 3, 0);
	look(n, 2, FI_PEEK, 0);
	rdm_receive_tag(0, 2, BIG);
	POST(fi_read(n->ep, &word, sizeof(word), NULL, n->at[2], (uintptr_t)to, key, NULL));
	POST(fi_inject_write(n->ep, &word, sizeof(word), n->at[2], (uintptr_t)to, key));
	POST(fi_atomic(n->ep, &word, 1, NULL, n->at[1], (uintptr_t)to, key, FI_UINT64, FI_SUM,
		       NULL));
	do {
		rdm_drain();
		read_counts(counts, before);
		CHECK(time(NULL) < end);
	} while (memcmp(counts, want, sizeof(want)) != 0);
	POST(fi_recv(nodes[1].ep, to, 1, NULL, FI_ADDR_UNSPEC, &contexts[0])); /* the inject */
	rdm_done(&nodes[1], &contexts[0], NULL);
	CLOSE(&mr->fid);
}

/* A fenced message leaves when what was posted to its peer before is complete. */
static void
fence(void)
{
	const struct iovec iov = {from, 8};
	struct node *n = &nodes[0];
	const struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = n->at[1]};
	struct fid_mr *mr = open_region(from, BIG);
	char word[8];

	memset(to, 0, BIG);
	POST(fi_recv(nodes[1].ep, word, 8, NULL, FI_ADDR_UNSPEC, &contexts[0]));
	POST(fi_read(n->ep, to, BIG, NULL, n->at[1], (uintptr_t)from, fi_mr_key(mr), NULL));
	POST(fi_sendmsg(n->ep, &msg, FI_FENCE));
	rdm_done(&nodes[1], &contexts[0], NULL);
	CHECK(memcmp(from, to, BIG) == 0);
	rdm_drain();
	CLOSE(&mr->fid);
}

/* A peer that is inserted after its connection was made is a source from then on. */
static void
source(void)
{
	struct node *n = &nodes[0], late = {0};
	fi_addr_t from_late, at;

	rdm_open_node(&late);
	CHECK(fi_av_insert(late.av, &n->name, 1, &at, 0, NULL) == 1);
	POST(fi_tsend(late.ep, from, 1, NULL, at, 1, NULL));
	receive(FI_ADDR_UNSPEC, 1, 0, &from_late);
	CHECK(from_late == FI_ADDR_NOTAVAIL);
	POST(fi_tsend(late.ep, from, 1, NULL, at, 1, NULL));
	rdm_drain();
	CHECK(fi_av_insert(n->av, &late.name, 1, &at, 0, NULL) == 1 && at == NODES);
	receive(at, 1, 0, &from_late);
	CHECK(from_late == at);
	POST(fi_tsend(n->ep, from, 1, NULL, at, 2, NULL)); /* by the same connection */
	POST(fi_trecv(late.ep, to, 1, NULL, FI_ADDR_UNSPEC, 2, 0, &contexts[0]));
	rdm_done(&late, &contexts[0], NULL);
	CHECK(fi_av_remove(n->av, &at, 1, 0) == 0);
	rdm_close_node(&late);
	rdm_drain();
}

/* Both sides of a pair begin at once. */
static void
both_begin(void)
{
	fi_addr_t at[2];
	struct node *n[2] = {&nodes[1], &nodes[2]};
	ssize_t rc[2] = {-FI_EAGAIN, -FI_EAGAIN};

	for (int i = 0; i < 2; i++) {
		at[i] = n[i]->at[2 - i];
		POST(fi_trecv(n[i]->ep, to + i, 1, NULL, at[i], 0, 0, &contexts[i]));
	}
	while (rc[0] != 0 || rc[1] != 0)
		for (int i = 0; i < 2; i++) {
			if (rc[i] == 0)
				continue;
			rc[i] = fi_tsend(n[i]->ep, from, 1, NULL, at[i], 0, &contexts[2]);
			CHECK(rc[i] == 0 || rc[i] == -FI_EAGAIN);
		}
	for (int i = 0; i < 2; i++)
		rdm_done(n[i], &contexts[i], NULL);
	rdm_drain();
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
	((struct sockaddr_in *)&a)->sin_port ^= 1;
	CHECK(fi_av_insert(n->av, &a, 1, &at, 0, NULL) == 1 && at == NODES);
	CHECK(fi_av_remove(n->av, &at, 1, 0) == 0);
	CHECK(fi_av_lookup(n->av, at, &a, &len) == -FI_EINVAL);
	CHECK(fi_tsend(n->ep, from, 1, NULL, at, 0, NULL) == -FI_EINVAL);
	CHECK(fi_av_remove(n->av, &at, 1, 0) == -FI_EINVAL);
}

/* A repeated address has the number that it had, until it is removed as often. */
static void
repeated(void)
{
	struct sockaddr_in list[2];
	struct node *n = &nodes[0];
	fi_addr_t at[2], source;

	for (int i = 0; i < 2; i++)
		memcpy(&list[i], &nodes[i + 1].name, sizeof(list[i]));
	CHECK(fi_av_insert(n->av, list, 2, at, 0, NULL) == 2);
	CHECK(at[0] == n->at[1] && at[1] == n->at[2]);
	POST(fi_trecv(n->ep, to, 1, NULL, at[1], 1, 0, &contexts[0]));
	rdm_send_tag(2, 0, 1, 1);
	rdm_done(n, &contexts[0], &source);
	CHECK(source == at[1]);
	CHECK(fi_av_remove(n->av, at, 2, 0) == 0);
	POST(fi_trecv(n->ep, to, 1, NULL, n->at[2], 2, 0, &contexts[0]));
	rdm_send_tag(2, 0, 2, 1);
	rdm_done(n, &contexts[0], NULL);
	rdm_send_tag(0, 2, 3, 1);
	rdm_receive_tag(2, 3, 1);
	rdm_drain();
}

static void
vector_v6(void)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(80)}, b;
	size_t len = sizeof(b), text_len;
	char text[64];
	fi_addr_t at[2];

	inet_pton(AF_INET6, "fd00::1", &a.sin6_addr);
	CHECK(fi_av_insert(nodes[0].av, &a, 1, &at[0], 0, NULL) == 1 && at[0] == NODES);
	CHECK(fi_av_insertsvc(nodes[0].av, "fd00::2", "81", &at[1], 0, NULL) == 1);
	CHECK(fi_av_lookup(nodes[0].av, at[0], &b, &len) == 0);
	CHECK(len == sizeof(b) && memcmp(&a, &b, len) == 0);
	CHECK(fi_av_lookup(nodes[0].av, at[1], &b, &len) == 0 && len == sizeof(b));
	text_len = sizeof(text);
	fi_av_straddr(nodes[0].av, &b, text, &text_len);
	CHECK(strcmp(text, "[fd00::2]:81") == 0 && text_len == sizeof("[fd00::2]:81"));
	CHECK(fi_av_remove(nodes[0].av, at, 2, 0) == 0);
}

/* Until node 0 sees the end of the connection, messages are still acknowledged, or fail late. */
static ssize_t
send_until_refused(int to_node)
{
	struct node *n = &nodes[0];
	struct fi_cq_err_entry err = {0};
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	while ((rc = fi_tsend(n->ep, from, 1, NULL, n->at[to_node], 0, NULL)) == 0 ||
	       rc == -FI_EAGAIN)
		if (rc == 0 && rdm_wait_one(n, &e, NULL) == -FI_EAVAIL)
			CHECK(fi_cq_readerr(n->cq, &err, 0) == 1 && err.err == FI_ECANCELED);
		else
			rdm_progress();
	return rc;
}

/* A message to an endpoint that is no longer there fails; the others go on, and a new one, too. */
static void
reopen(void)
{
	struct node *n = &nodes[0], *ended = &nodes[2];
	struct sockaddr_storage name = ended->name;

	rdm_send_tag(2, 0, 1, 10);
	rdm_send_tag(2, 0, 2, BIG);
	rdm_drain();
	rdm_close_node(ended);
	memset(ended, 0, sizeof(*ended));
	CHECK(send_until_refused(2) == -FI_ECONNREFUSED);
	/* what had come is received, and what it had yet to be asked for is lost */
	rdm_receive_tag(0, 1, 10);
	POST(fi_trecv(n->ep, to, BIG, NULL, FI_ADDR_UNSPEC, 2, 0, &contexts[1]));
	CHECK(rdm_failed(n, &contexts[1]).err == FI_ECANCELED);
	rdm_send_tag(1, 0, 3, 10);
	rdm_receive_tag(0, 3, 10);
	/* it begins again at its address and connects, while an attempt to reach it has failed */
	CHECK(fi_tsend(n->ep, from, 1, NULL, n->at[2], 0, NULL) == -FI_EAGAIN);
	rdm_drain();
	free(info->src_addr);
	info->src_addrlen = sizeof(struct sockaddr_in);
	info->src_addr = memcpy(malloc(sizeof(name)), &name, sizeof(name));
	rdm_open_node(ended);
	CHECK(memcmp(&ended->name, &name, sizeof(struct sockaddr_in)) == 0);
	CHECK(fi_av_insert(ended->av, &n->name, 1, &ended->at[0], 0, NULL) == 1);
	rdm_send_tag(2, 0, 4, 10);
	rdm_receive_tag(0, 4, 10);
	CHECK(fi_tsend(n->ep, from, 10, NULL, n->at[2], 5, NULL) == 0);
	rdm_receive_tag(2, 5, 10);
}

/*
 * All refusals are the same. The 64th ends the connection. When a host has had too many, its new
 * connections do not even use what they may; one that has done so before goes on.
 */
static void
guesses(uint64_t key, uint64_t at)
{
	struct node guesser = {0};
	struct fi_cq_err_entry e;
	fi_addr_t n;

	rdm_open_node(&guesser);
	CHECK(fi_av_insert(guesser.av, &nodes[0].name, 1, &n, 0, NULL) == 1);
	POST(fi_read(nodes[1].ep, to, 8, NULL, nodes[1].at[0], at, key, &contexts[1]));
	rdm_done(&nodes[1], &contexts[1], NULL);
	for (int i = 1; i <= BUDGET; i++) {
		if (i % 3 == 0)
			POST(fi_write(guesser.ep, to, 8, NULL, n, at, key, &contexts[0]));
		else
			POST(fi_read(guesser.ep, to, 8, NULL, n, at + (i % 3 == 1),
				     key ^ (uint64_t)(i % 3 == 2) << 40, &contexts[0]));
		e = rdm_failed(&guesser, &contexts[0]);
		CHECK(e.err == (i % GUESSES == 0 ? FI_ECANCELED : FI_EACCES));
		CHECK(i % GUESSES == 0 || e.prov_errno == 256 + FI_EACCES);
	}
	POST(fi_read(guesser.ep, to, 8, NULL, n, at, key, &contexts[0]));
	CHECK(rdm_failed(&guesser, &contexts[0]).err == FI_EACCES);
	POST(fi_read(nodes[1].ep, to, 8, NULL, nodes[1].at[0], at, key, &contexts[1]));
	rdm_done(&nodes[1], &contexts[1], NULL);
	rdm_close_node(&guesser);
}

static void
keys(void)
{
	void *memory = ofi_common_shared(8);
	struct fid_mr *mr = ofi_common_region(rdm_domain, memory, 8, FI_REMOTE_READ);

	if (fi_mr_key(mr) >> 63 == 0) /* else the transport counts */
		guesses(fi_mr_key(mr), (uintptr_t)memory);
	CLOSE(&mr->fid);
}

/* The vector has the name of an endpoint that must not be reached. */
static void
is_refused(const void *name)
{
	struct node *n = &nodes[0];
	fi_addr_t at;

	CHECK(fi_av_insert(n->av, name, 1, &at, 0, NULL) == 1);
	POST_FOR(-FI_ECONNREFUSED, fi_tsend(n->ep, from, 1, NULL, at, 9, NULL));
	CHECK(fi_av_remove(n->av, &at, 1, 0) == 0);
}

/* A peer that accepts at an address, but does not know the token of its name, gets nothing. */
static void
other_token(void)
{
	struct sockaddr_in name;

	memcpy(&name, &nodes[1].name, sizeof(name));
	name.sin_zero[0] ^= 1;
	is_refused(&name);
}

/* Endpoints FI_EP_MSG, as ofi_rxm has them, and FI_EP_RDM do not connect to each other. */
static void
other_kind(void)
{
	struct fi_info *msg = fi_dupinfo(info);
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct sockaddr_storage name;
	struct fid_pep *pep;
	struct fid_ep *ep;

	msg->ep_attr->type = FI_EP_MSG;
	CHECK(fi_eq_open(fabric, &attr, &eq, NULL) == 0);
	ep = ofi_common_make_ep(rdm_domain, msg, nodes[0].cq);
	CHECK(fi_connect(ep, &nodes[1].name, NULL, 0) == -FI_ECONNREFUSED);
	pep = ofi_common_listen(msg, &name);
	is_refused(&name);
	CLOSE(&ep->fid, &pep->fid, &eq->fid);
	fi_freeinfo(msg);
}

/* HUGE bytes, of which PERIOD repeat. */
static char *
map_huge(void)
{
	char *all = mmap(NULL, HUGE + PERIOD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("huge", 0);

	CHECK(all != MAP_FAILED && ftruncate(fd, PERIOD) == 0);
	for (size_t i = 0; i < HUGE; i += PERIOD)
		CHECK(mmap(all + i, PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			   0) != MAP_FAILED);
	close(fd);
	return all;
}

/* A message, a write and a read that are longer than a request of the transport may be. */
static void
huge(void)
{
	char *out = map_huge(), *in = map_huge();
	struct fid_mr *mr = open_region(in, HUGE);
	struct node *n = &nodes[0];

	for (size_t i = 0; i < PERIOD; i++)
		out[i] = (char)(i * 31 + i / 4099);
	POST(fi_trecv(n->ep, in, HUGE, NULL, n->at[1], 1, 0, &contexts[0]));
	POST(fi_tsend(nodes[1].ep, out, HUGE, NULL, nodes[1].at[0], 1, &contexts[1]));
	CHECK(rdm_done(n, &contexts[0], NULL).len == HUGE && memcmp(in, out, PERIOD) == 0);
	rdm_done(&nodes[1], &contexts[1], NULL);
	memset(in, 0, PERIOD);
	POST(fi_write(nodes[1].ep, out, HUGE, NULL, nodes[1].at[0], (uintptr_t)in, fi_mr_key(mr),
		      &contexts[2]));
	rdm_done(&nodes[1], &contexts[2], NULL);
	CHECK(memcmp(in, out, PERIOD) == 0);
	memset(out, 0, PERIOD);
	POST(fi_read(nodes[1].ep, out, HUGE, NULL, nodes[1].at[0], (uintptr_t)in, fi_mr_key(mr),
		     &contexts[3]));
	rdm_done(&nodes[1], &contexts[3], NULL);
	CHECK(memcmp(in, out, PERIOD) == 0);
	CLOSE(&mr->fid);
}

int
main(int argc, char **argv)
{
	open_nodes();
	if (argc == 2 && strcmp(argv[1], "huge") == 0) {
		huge();
		printf("done\n");
		return 0;
	}
	first_long();
	both_begin();
	match();
	unexpected();
	rendezvous();
	lengths();
	order(false);
	order(true);
	flood();
	peek();
	multi_recv();
	memory();
	counters();
	fence();
	source();
	vector();
	repeated();
	vector_v6();
	other_token();
	other_kind();
	keys();
	reopen();
	for (int i = 0; i < NODES; i++)
		rdm_close_node(&nodes[i]);
	rdm_close_domain();
	printf("done\n");
	return 0;
}
