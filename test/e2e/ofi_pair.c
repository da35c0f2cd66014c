/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Calls of libfabric on two connected endpoints of one process, for ofi_cases.py: what needs the
 * steps of both sides in one order. (OFI-1)
 *
 *	ofi_pair          all cases that need no more
 *	ofi_pair leave    exits in the middle of a message
 *	ofi_pair regions  needs more regions than there are
 *	ofi_pair victim   prints its port, and takes the messages of a hostile peer
 *	ofi_pair deserted prints its port, and closes an endpoint whose message never comes
 */

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <netinet/in.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "ofi_common.h"

#define BIG      3000000 /* more than the credits of a pool */
#define REQUESTS 1024
#define READ     20000 /* its answer takes two credits, so that requests wait for them */
#define REFUSED  60    /* more than credits; one of them more would end the connection */
#define MESSAGES 30
#define PIECE    (BIG / MESSAGES) /* a long message */
#define BEGUN_MS 500              /* in which a message that was sent has begun to be read */

static struct fid_domain *domain;
static struct fid_ep *ep[2]; /* the first one connects */
static struct fid_cq *cq[2];
static struct sockaddr_storage listens_at;
static char from[BIG], to[BIG];

/* ---- set-up ---- */

static void
open_side(int i, struct fi_info *of)
{
	cq[i] = ofi_common_open_cq(domain);
	ep[i] = ofi_common_make_ep(domain, of, cq[i]);
	CHECK(fi_enable(ep[i]) == 0);
}

static void
close_side(int i)
{
	CLOSE(&ep[i]->fid, &cq[i]->fid);
}

/* The first side requests a connection: the information for the second. */
static struct fi_info *
request_connection(void)
{
	open_side(0, info);
	CHECK(fi_connect(ep[0], &listens_at, NULL, 0) == 0);
	return ofi_common_expect(FI_CONNREQ, 0)->info;
}

/* Both sides have the same event. */
static void
expect_two(uint32_t type)
{
	ofi_common_expect(type, 0);
	ofi_common_expect(type, 0);
}

static void
accept_request(struct fi_info *of)
{
	open_side(1, of);
	fi_freeinfo(of);
	CHECK(fi_accept(ep[1], NULL, 0) == 0);
}

static void
connect_pair(void)
{
	struct fid_pep *pep = ofi_common_listen(info, &listens_at);

	accept_request(request_connection());
	expect_two(FI_CONNECTED);
	CLOSE(&pep->fid);
}

static void
close_pair(void)
{
	close_side(0);
	close_side(1);
}

/* The pair still works. */
static void
exchange(void)
{
	char word[3] = "";

	CHECK(fi_recv(ep[1], word, sizeof(word), NULL, 0, word) == 0);
	CHECK(fi_send(ep[0], "on", 3, NULL, 0, ep) == 0);
	CHECK(ofi_common_done(cq[1], word).len == 3 && strcmp(word, "on") == 0);
	ofi_common_done(cq[0], ep);
}

/* The pair with shared receives for the second one, without completions unless asked for. */
static struct fid_ep *
connect_shared(void)
{
	struct fi_rx_attr attr = {.op_flags = FI_MULTI_RECV};
	struct fid_pep *pep = ofi_common_listen(info, &listens_at);
	struct fid_ep *srx;
	struct fi_info *of;

	CHECK(fi_srx_context(domain, &attr, &srx, NULL) == 0);
	of = request_connection();
	cq[1] = ofi_common_open_cq(domain);
	ep[1] = ofi_common_make_ep(domain, of, NULL);
	fi_freeinfo(of);
	CHECK(fi_ep_bind(ep[1], &cq[1]->fid, FI_TRANSMIT) == 0);
	CHECK(fi_ep_bind(ep[1], &cq[1]->fid, FI_RECV | FI_SELECTIVE_COMPLETION) == 0);
	CHECK(fi_ep_bind(ep[1], &srx->fid, 0) == 0);
	CHECK(fi_accept(ep[1], NULL, 0) == 0);
	expect_two(FI_CONNECTED);
	CLOSE(&pep->fid);
	return srx;
}

/* Look at both queues, which are empty, until the first byte of a large message is there. */
static void
until_begun(const char *byte)
{
	struct fi_cq_data_entry e;

	while (*(const volatile char *)byte == 0) {
		CHECK(fi_cq_read(cq[0], &e, 1) == -FI_EAGAIN);
		CHECK(fi_cq_read(cq[1], &e, 1) == -FI_EAGAIN);
	}
}

/* ---- cases ---- */

/* A closed passive endpoint leaves the requests to fi_accept() that the program has seen. */
static void
request_outlives_passive_endpoint(void)
{
	struct fid_pep *pep = ofi_common_listen(info, &listens_at);
	struct fi_info *of = request_connection();

	CLOSE(&pep->fid);
	accept_request(of);
	expect_two(FI_CONNECTED);
	exchange();
	close_pair();
}

/* A request is refused whose event the program has not read. */
static void
unseen_request_is_refused(void)
{
	struct fid_pep *pep = ofi_common_listen(info, &listens_at);
	struct fi_eq_err_entry err;
	struct fi_eq_cm_entry e;
	uint32_t event;

	open_side(0, info);
	CHECK(fi_connect(ep[0], &listens_at, NULL, 0) == 0);
	while (fi_eq_read(eq, &event, &e, sizeof(e), FI_PEEK) == -FI_EAGAIN)
		;
	CLOSE(&pep->fid);
	err = ofi_common_refused();
	CHECK(err.fid == &ep[0]->fid && err.err == FI_ECONNREFUSED);
	close_side(0);
}

/* The next passive endpoint gets the port, and the request is accepted all the same. */
static void
port_is_listened_at_again(void)
{
	struct fid_pep *pep = ofi_common_listen(info, &listens_at);
	struct fi_info *of = fi_dupinfo(info), *request;

	request = request_connection();
	CLOSE(&pep->fid);
	free(of->src_addr);
	of->src_addrlen = sizeof(listens_at);
	of->src_addr = memcpy(malloc(sizeof(listens_at)), &listens_at, sizeof(listens_at));
	CHECK(fi_passive_ep(fabric, of, &pep, NULL) == 0);
	fi_freeinfo(of);
	CHECK(fi_pep_bind(pep, &eq->fid, 0) == 0);
	CHECK(fi_listen(pep) == 0);
	accept_request(request);
	expect_two(FI_CONNECTED);
	close_pair();
	request = request_connection();
	CLOSE(&pep->fid);
	close_side(0); /* its request ends with the context */
	fi_freeinfo(request);
}

/* A receive that a message has begun to fill is not cancelled, but complete. */
static void
cancel_in_use(void)
{
	struct iovec iov = {to, BIG};
	const struct fi_msg multi = {.msg_iov = &iov, .iov_count = 1, .context = to};
	struct fi_cq_data_entry e;

	to[0] = 0;
	CHECK(fi_recv(ep[1], to, BIG, NULL, 0, to) == 0);
	CHECK(fi_send(ep[0], from, BIG, NULL, 0, from) == 0);
	until_begun(to);
	CHECK(fi_cancel(&ep[1]->fid, to) == -FI_ENOENT);
	CHECK(ofi_common_done(cq[1], to).len == BIG && memcmp(from, to, BIG) == 0);
	ofi_common_done(cq[0], from);
	/* a buffer for many messages is returned with the one that is under way */
	to[0] = 0;
	CHECK(fi_recvmsg(ep[1], &multi, FI_MULTI_RECV) == 0);
	CHECK(fi_send(ep[0], from, BIG / 2, NULL, 0, from) == 0);
	until_begun(to);
	CHECK(fi_cancel(&ep[1]->fid, to) == 0);
	e = ofi_common_done(cq[1], to);
	CHECK(e.len == BIG / 2 && (e.flags & FI_MULTI_RECV) != 0);
	ofi_common_done(cq[0], from);
}

/* The context is that of a daemon, to which shared memory cannot be given. */
static bool
has_daemon(void)
{
	return strncmp(getenv("FI_SANSTACK_SPEC"), "unix:", 5) == 0;
}

/* The region is closed while answers wait for credits; and requests wait that are refused. */
static void
read_is_refused_late(void)
{
	uint8_t *memory = ofi_common_shared(BIG);
	struct fid_mr *mr = ofi_common_region(domain, memory, BIG, FI_REMOTE_READ);
	uint64_t key = fi_mr_key(mr);

	to[0] = 0;
	memory[0] = 1;
	CHECK(key >> 63 == 0);
	CHECK(fi_read(ep[0], to, BIG, NULL, 0, (uintptr_t)memory, key, to) == 0);
	until_begun(to);
	CLOSE(&mr->fid);
	CHECK(ofi_common_failed(cq[0], to).err == FI_EACCES);
	for (int i = 0; i < REFUSED; i++)
		CHECK(fi_read(ep[0], &to[i], 1, NULL, 0, (uintptr_t)memory, key, &to[i]) == 0);
	for (int i = 0; i < REFUSED; i++)
		CHECK(ofi_common_failed(cq[0], &to[i]).err == FI_EACCES);
}

/* Long messages take longer than the short ones behind them, but receives complete in order. */
static void
receives_complete_in_order(void)
{
	struct fi_cq_data_entry e;
	size_t length;

	for (int i = 0; i < MESSAGES; i++)
		CHECK(fi_recv(ep[1], &to[i * PIECE], PIECE, NULL, 0, &to[i]) == 0);
	for (int i = 0; i < MESSAGES; i++) {
		length = i % 3 == 1 ? 1 : PIECE;
		CHECK(fi_send(ep[0], &from[i], length, NULL, 0, &from[i]) == 0);
	}
	for (int i = 0; i < MESSAGES; i++) {
		length = i % 3 == 1 ? 1 : PIECE;
		CHECK(ofi_common_done(cq[1], &to[i]).len == length);
		CHECK(memcmp(&to[i * PIECE], &from[i], length) == 0);
	}
	for (int i = 0; i < MESSAGES; i++)
		CHECK(ofi_common_wait(cq[0], &e) == 1);
}

/* A sender that asks learns that a long message did not fit; FI_TAGGED changes nothing. */
static void
long_message_is_truncated(void)
{
	const struct iovec iov = {from, PIECE};
	const struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = from};
	struct fi_cq_err_entry e;

	CHECK(fi_recv(ep[1], to, PIECE / 2, NULL, 0, to) == 0);
	CHECK(fi_sendmsg(ep[0], &msg, FI_DELIVERY_COMPLETE | FI_TAGGED) == 0);
	e = ofi_common_failed(cq[1], to);
	CHECK(e.err == FI_ETRUNC && e.len == PIECE / 2 && e.olen == PIECE - PIECE / 2);
	CHECK(ofi_common_failed(cq[0], from).err == FI_ETRUNC);
	CHECK(fi_recv(ep[1], to, PIECE / 2, NULL, 0, to) == 0);
	CHECK(fi_sendmsg(ep[0], &msg, 0) == 0);
	CHECK(ofi_common_failed(cq[1], to).err == FI_ETRUNC);
	ofi_common_done(cq[0], from);
}

/* A long message of read-only memory, and the end of its connection right behind it. */
static void
long_message_before_shutdown(void)
{
	static const char constant[PIECE] = {1};

	CHECK(fi_recv(ep[1], to, PIECE, NULL, 0, to) == 0);
	CHECK(fi_send(ep[0], constant, PIECE, NULL, 0, to) == 0);
	CHECK(fi_shutdown(ep[0], 0) == 0);
	ofi_common_done(cq[0], to);
	CHECK(ofi_common_done(cq[1], to).len == PIECE && memcmp(to, constant, PIECE) == 0);
	expect_two(FI_SHUTDOWN);
}

/* As many operations as an endpoint may have, again and again. */
static void
many_requests(void)
{
	struct fi_cq_data_entry e[64];
	struct fid_mr *mr;
	int posted = 0, done = 0, nb_refused = 0;
	uint64_t key;
	ssize_t n;

	info->tx_attr->size = REQUESTS;
	connect_pair();
	mr = ofi_common_region(domain, from, BIG, FI_REMOTE_READ);
	key = fi_mr_key(mr);
	while (done < 2 * REQUESTS) {
		for (; posted - done < REQUESTS; posted++)
			CHECK(fi_read(ep[0], to, READ, NULL, 0, (uintptr_t)&from[posted], key,
				      NULL) == 0);
		n = fi_read(ep[0], to, READ, NULL, 0, (uintptr_t)&from[posted], key, NULL);
		CHECK(n == 0 || n == -FI_EAGAIN);
		nb_refused += n != 0;
		posted += n == 0; /* meanwhile a thread of the provider has made room */
		n = fi_cq_read(cq[0], e, 64);
		CHECK(n > 0 || n == -FI_EAGAIN);
		done += n > 0 ? (int)n : 0;
	}
	for (int i = done; i < posted; i++)
		ofi_common_done(cq[0], NULL);
	CHECK(nb_refused > 0);
	CHECK(memcmp(&from[posted - 1], to, READ) == 0); /* in order */
	CLOSE(&mr->fid);
	exchange();
	close_pair();
	info->tx_attr->size = 0;
}

/* An old value is read: the region needs that right, too. */
static void
fetch_needs_both_rights(void)
{
	uint64_t one = 1, old = 0, *word = ofi_common_shared(sizeof(*word));
	struct fid_mr *mr = ofi_common_region(domain, word, sizeof(*word), FI_REMOTE_WRITE);

	CHECK(fi_atomic(ep[0], &one, 1, NULL, 0, (uintptr_t)word, fi_mr_key(mr), FI_UINT64,
			FI_SUM, &one) == 0);
	ofi_common_done(cq[0], &one);
	CHECK(fi_fetch_atomic(ep[0], &one, 1, NULL, &old, NULL, 0, (uintptr_t)word,
			      fi_mr_key(mr), FI_UINT64, FI_SUM, &one) == 0);
	CHECK(ofi_common_failed(cq[0], &one).err == FI_EACCES);
	CHECK(fi_compare_atomic(ep[0], &one, 1, NULL, &one, NULL, &old, NULL, 0, (uintptr_t)word,
				fi_mr_key(mr), FI_UINT64, FI_CSWAP, &one) == 0);
	CHECK(ofi_common_failed(cq[0], &one).err == FI_EACCES);
	CHECK(*word == 1 && old == 0);
	CLOSE(&mr->fid);
}

/*
 * Flags of shared receives are their own, selective completion is the endpoint's: of three messages
 * in one buffer only the last one is reported, with the buffer.
 */
static void
shared_receives_have_flags(void)
{
	struct fid_ep *srx = connect_shared();
	struct fi_cq_data_entry e;
	size_t min = 2;

	CHECK(fi_setopt(&srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)) == 0);
	CHECK(fi_recv(srx, to, 6, NULL, 0, to) == 0);
	for (int i = 0; i < 3; i++) {
		CHECK(fi_send(ep[0], &from[2 * i], 2, NULL, 0, from) == 0);
		ofi_common_done(cq[0], from);
	}
	e = ofi_common_done(cq[1], to);
	CHECK((e.flags & FI_MULTI_RECV) != 0 && e.buf == &to[4] && memcmp(from, to, 6) == 0);
	close_pair();
	CLOSE(&srx->fid);
}

/* Everything is complete when fi_shutdown() returns. */
static void
shutdown_cancels(void)
{
	struct fi_cq_data_entry e;
	struct fi_cq_err_entry err = {0};
	struct fid *fid;

	fid = &cq[0]->fid;
	CHECK(fi_recv(ep[0], to, 8, NULL, 0, to) == 0);
	CHECK(fi_shutdown(ep[0], 0) == 0);
	CHECK(fi_trywait(fabric, &fid, 1) == -FI_EAGAIN);
	CHECK(fi_cq_read(cq[0], &e, 1) == -FI_EAVAIL && fi_cq_readerr(cq[0], &err, 0) == 1);
	CHECK(err.op_context == to && err.err == FI_ECANCELED);
	expect_two(FI_SHUTDOWN);
}

static void
be_child(void)
{
	ofi_common_get_info(NULL, NULL);
	CHECK(fi_domain(fabric, info, &domain, NULL) == 0);
	open_side(0, info);
	CHECK(fi_connect(ep[0], &listens_at, NULL, 0) == 0);
	ofi_common_expect(FI_CONNECTED, 0);
	CHECK(fi_send(ep[0], from, BIG, NULL, 0, from) == 0);
	ofi_common_done(cq[0], from);
	CHECK(false); /* it is killed before */
}

/*
 * A child of fork() has a context of its own, and its parent goes on. It dies in the middle of a
 * message: that receive and the next one complete.
 */
static void
child_dies(void)
{
	struct fid_ep *first;
	struct fid_cq *first_cq;
	struct fid_pep *pep;
	pid_t child;
	int status;

	exchange();
	pep = ofi_common_listen(info, &listens_at);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		be_child();
	first = ep[1];
	first_cq = cq[1];
	accept_request(ofi_common_expect(FI_CONNREQ, 0)->info);
	ofi_common_expect(FI_CONNECTED, 0);
	to[0] = 0;
	CHECK(fi_recv(ep[1], to, BIG, NULL, 0, to) == 0);
	CHECK(fi_recv(ep[1], &to[1], 1, NULL, 0, &to[1]) == 0);
	until_begun(to);
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status));
	CHECK(ofi_common_failed(cq[1], to).err == FI_ECANCELED);
	CHECK(ofi_common_failed(cq[1], &to[1]).err == FI_ECANCELED);
	ofi_common_expect(FI_SHUTDOWN, 0);
	close_side(1);
	ep[1] = first;
	cq[1] = first_cq;
	exchange();
	CLOSE(&pep->fid);
}

/* An engine, or an RDMA device, is for the process that opened it; that one goes on. */
static void
child_is_refused(void)
{
	int status;
	pid_t child;

	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		struct fi_info *hints = fi_dupinfo(info), *infos;
		int rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &infos);

		if (rc == 0)
			rc = fi_domain(fabric, infos, &domain, NULL);
		_exit(rc != 0 ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	CHECK(WEXITSTATUS(status) == 0);
}

/* ---- calls whose answers the manual pages say ---- */

static void
enable_needs_its_parts(void)
{
	struct fi_cq_attr attr = {0};
	struct fid_cntr *cntr;
	struct fid_ep *one;
	struct fid_cq *q;

	CHECK(fi_cq_open(domain, &attr, &q, NULL) == 0);
	CHECK(fi_cntr_open(domain, NULL, &cntr, NULL) == 0);
	CHECK(fi_endpoint(domain, info, &one, NULL) == 0);
	CHECK(fi_enable(one) == -FI_ENOEQ);
	CHECK(fi_ep_bind(one, &eq->fid, 0) == 0);
	CHECK(fi_ep_bind(one, &cntr->fid, FI_SEND) == 0);
	CHECK(fi_ep_bind(one, &cntr->fid, FI_SEND | FI_RECV) == -FI_EINVAL);
	CHECK(fi_ep_bind(one, &cntr->fid, FI_RECV) == 0);
	CHECK(fi_ep_bind(one, &cntr->fid, FI_MULTI_RECV) == -FI_EBADFLAGS);
	CHECK(fi_enable(one) == -FI_ENOCQ);
	CHECK(fi_ep_bind(one, &q->fid, FI_TRANSMIT) == 0);
	CHECK(fi_enable(one) == -FI_ENOCQ);
	CHECK(fi_ep_bind(one, &q->fid, FI_RECV) == 0);
	CHECK(fi_enable(one) == 0);
	CHECK(fi_ep_bind(one, &q->fid, FI_RECV) == -FI_EOPBADSTATE);
	CLOSE(&one->fid, &cntr->fid, &q->fid);
}

static void
flags_of_operations(void)
{
	struct fid_ep *one = ofi_common_make_ep(domain, info, NULL), *none;
	uint64_t flags = FI_TRANSMIT | FI_INJECT;

	CHECK(fi_control(&one->fid, FI_SETOPSFLAG, &flags) == 0);
	flags = FI_TRANSMIT;
	CHECK(fi_control(&one->fid, FI_GETOPSFLAG, &flags) == 0 && flags == FI_INJECT);
	flags = FI_RECV;
	CHECK(fi_control(&one->fid, FI_GETOPSFLAG, &flags) == 0 && flags == 0);
	CHECK(fi_control(&one->fid, FI_GETOPSFLAG, &flags) == -FI_EINVAL);
	flags = FI_TRANSMIT | FI_RECV;
	CHECK(fi_control(&one->fid, FI_SETOPSFLAG, &flags) == -FI_EINVAL);
	CHECK(fi_tx_context(one, 0, NULL, &none, NULL) == -FI_ENOSYS);
	CHECK(fi_rx_context(one, 0, NULL, &none, NULL) == -FI_ENOSYS);
	CHECK(one->ops->rx_size_left(one) == -FI_ENOSYS);
	CLOSE(&one->fid);
}

static void
atomics_are_queried(void)
{
	const uint64_t both = FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC;
	struct fi_atomic_attr a;

	CHECK(fi_query_atomic(domain, FI_UINT64, FI_SUM, &a, FI_FETCH_ATOMIC) == 0 && a.size == 8);
	CHECK(fi_query_atomic(domain, FI_UINT64, FI_CSWAP, &a, FI_COMPARE_ATOMIC) == 0);
	CHECK(fi_query_atomic(domain, FI_UINT64, FI_CSWAP, &a, 0) == -FI_EOPNOTSUPP);
	CHECK(fi_query_atomic(domain, FI_UINT64, FI_SUM, &a, FI_TAGGED) == -FI_EOPNOTSUPP);
	CHECK(fi_query_atomic(domain, FI_UINT64, FI_CSWAP, &a, both) == -FI_EBADFLAGS);
	CHECK(fi_query_atomic(domain, FI_UINT64, FI_SUM, &a, FI_RECV) == -FI_EBADFLAGS);
}

/* The answer to a program is what it may ask for. */
static void
info_may_be_asked_for(void)
{
	struct fi_info *all, *again, *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup("sanstack");
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &all) == 0);
	fi_freeinfo(all);
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->mr_mode = info->domain_attr->mr_mode;
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &all) == 0);
	CHECK((all->caps & FI_FENCE) != 0 && (all->tx_attr->caps & FI_FENCE) != 0);
	CHECK(all->ep_attr->protocol >> 31 == 1); /* of a provider */
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, all, &again) == 0);
	CHECK(again->caps == all->caps);
	fi_freeinfo(hints);
	fi_freeinfo(all);
	fi_freeinfo(again);
}

static bool
is_device(void)
{
	const char *spec = getenv("FI_SANSTACK_SPEC");

	return spec != NULL && strncmp(spec, "verbs:", 6) == 0;
}

/* It exits in the middle of a message, and closes nothing. */
static void
leave(void)
{
	connect_pair();
	to[0] = 0;
	CHECK(fi_recv(ep[1], to, BIG, NULL, 0, to) == 0);
	CHECK(fi_send(ep[0], from, BIG, NULL, 0, from) == 0);
	until_begun(to);
	exit(3);
}

/* Long messages need regions, and wait for those of others. */
static void
regions_run_out(void)
{
	struct fi_cq_data_entry e;
	int done = 0;
	ssize_t rc;

	for (int i = 0; i < MESSAGES; i++)
		CHECK(fi_recv(ep[1], &to[i * PIECE], PIECE, NULL, 0, &to[i]) == 0);
	for (int i = 0; i < MESSAGES; i++) {
		while ((rc = fi_send(ep[0], &from[i], PIECE, NULL, 0, &from[i])) == -FI_EAGAIN)
			done += fi_cq_read(cq[0], &e, 1) == 1;
		CHECK(rc == 0);
	}
	for (int i = 0; i < MESSAGES; i++) {
		CHECK(ofi_common_done(cq[1], &to[i]).len == PIECE);
		CHECK(memcmp(&to[i * PIECE], &from[i], PIECE) == 0);
	}
	for (; done < MESSAGES; done++)
		CHECK(ofi_common_wait(cq[0], &e) == 1);
}

/* A hostile peer fills a buffer for many messages, behind a long one that does not come. */
static void
be_victim(void)
{
	struct iovec iov = {to, BIG};
	const struct fi_msg multi = {.msg_iov = &iov, .iov_count = 1, .context = to};
	struct fid_pep *pep = ofi_common_listen(info, &listens_at);
	struct fi_cq_data_entry e;
	ssize_t rc;

	ofi_common_say("port %d", ntohs(((struct sockaddr_in *)&listens_at)->sin_port));
	accept_request(ofi_common_expect(FI_CONNREQ, 0)->info);
	CHECK(fi_recvmsg(ep[1], &multi, FI_MULTI_RECV) == 0);
	CHECK(ofi_common_failed(cq[1], to).err == FI_ECANCELED);
	while ((rc = fi_cq_read(cq[1], &e, 1)) == 1 && e.len == 0)
		;
	CHECK(rc == -FI_EAVAIL);
	CHECK(ofi_common_failed(cq[1], to).err == FI_ECANCELED); /* the buffer */
	ofi_common_expect(FI_CONNECTED, 0);
	ofi_common_expect(FI_SHUTDOWN, 0);
	close_side(1);
	CLOSE(&pep->fid);
}

/* The sender of a long message has stopped: its receive ends when the endpoint is closed. */
static void
be_deserted(void)
{
	struct fid_pep *pep = ofi_common_listen(info, &listens_at);
	struct fi_cq_data_entry e;

	ofi_common_say("port %d", ntohs(((struct sockaddr_in *)&listens_at)->sin_port));
	accept_request(ofi_common_expect(FI_CONNREQ, 0)->info);
	CHECK(fi_recv(ep[1], to, BIG, NULL, 0, to) == 0);
	ofi_common_expect(FI_CONNECTED, 0);
	CHECK(fi_cq_sread(cq[1], &e, 1, NULL, BEGUN_MS) == -FI_EAGAIN);
	ofi_common_say("begun");
	CLOSE(&ep[1]->fid);
	CHECK(ofi_common_failed(cq[1], to).err == FI_ECANCELED);
	CHECK(fi_cq_read(cq[1], &e, 1) == -FI_EAGAIN);
	CLOSE(&cq[1]->fid, &pep->fid);
}

/* Cases of a pair, which afterwards still works unless its connection has ended. */
static void
run_pair(void (*run)(void))
{
	connect_pair();
	run();
	if (run != long_message_before_shutdown && run != shutdown_cancels)
		exchange();
	close_pair();
}

static void
call_in_one_process(void)
{
	info_may_be_asked_for();
	enable_needs_its_parts();
	flags_of_operations();
	atomics_are_queried();
	request_outlives_passive_endpoint();
	unseen_request_is_refused();
	port_is_listened_at_again();
	if (!is_device()) /* a message may be complete before the program sees that it has begun */
		run_pair(cancel_in_use);
	run_pair(receives_complete_in_order);
	run_pair(long_message_is_truncated);
	run_pair(long_message_before_shutdown);
	many_requests();
	shared_receives_have_flags();
	run_pair(shutdown_cancels);
	if (!has_daemon()) {
		run_pair(child_is_refused);
	} else {
		run_pair(read_is_refused_late);
		run_pair(fetch_needs_both_rights);
		run_pair(child_dies);
	}
}

int
main(int argc, char **argv)
{
	const char *role = argc == 2 ? argv[1] : "";

	for (size_t i = 0; i < BIG; i++)
		from[i] = (char)(i % 251 + 1);
	ofi_common_get_info(NULL, NULL);
	CHECK(fi_domain(fabric, info, &domain, NULL) == 0);
	if (strcmp(role, "leave") == 0)
		leave();
	else if (strcmp(role, "regions") == 0)
		run_pair(regions_run_out);
	else if (strcmp(role, "victim") == 0)
		be_victim();
	else if (strcmp(role, "deserted") == 0)
		be_deserted();
	else
		call_in_one_process();
	CLOSE(&domain->fid, &eq->fid, &fabric->fid);
	fi_freeinfo(info);
	printf("done\n");
	return 0;
}
