/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Calls of libfabric on endpoints of type FI_EP_MSG, between two processes, for ofi_cases.py: what
 * fi_pingpong does not do. (OFI-1)
 *
 *	ofi_calls server            prints its port
 *	ofi_calls thinks            is a server that makes no call for THINK_S
 *	ofi_calls client IP PORT    does every case
 *	ofi_calls refused IP PORT   connects, and expects an error
 *	ofi_calls alone             does what needs no peer
 *	ofi_calls many              opens endpoints until one is refused
 *	ofi_calls hold IP PORT      connects, and waits for the end of the connection
 *	ofi_calls shared FILE       serves two endpoints with shared receives; FILE.1 and FILE.2
 *	                            say that their messages are under way
 *	ofi_calls two IP PORT       is their peer, and ends in the middle of a message
 */

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "ofi_common.h"

#define MEMORY   (1 << 20)
#define THINK_S  8 /* a peer without the thread that answers is given up after 5 s */
#define CQ_VALUE 0x1122334455667788ull
#define NATIVE   (1ull << 63) /* key of a region that the transport reaches itself */

/** Where the memory of the server is; the first message to the client. */
struct place {
	uint64_t addr, key;
	uint64_t other; /**< key of another domain */
};

static struct fid_domain *domain;
static struct fid_cq *cq;
static struct fid_cntr *cntr;
static struct fid_ep *ep;
static struct fid_mr *mr;
static char *memory;

/* ---- set-up ---- */

static void
open_ep(struct fi_info *of)
{
	CHECK(fi_domain(fabric, of, &domain, NULL) == 0);
	cq = ofi_common_open_cq(domain);
	CHECK(fi_cntr_open(domain, NULL, &cntr, NULL) == 0);
	ep = ofi_common_make_ep(domain, of, cq);
	CHECK(fi_ep_bind(ep, &cntr->fid, FI_RECV) == 0);
	CHECK(fi_enable(ep) == 0);
	memory = calloc(1, MEMORY);
	mr = ofi_common_region(domain, memory, MEMORY, FI_REMOTE_READ | FI_REMOTE_WRITE);
}

static void
close_all(void)
{
	CLOSE(&mr->fid, &ep->fid, &cntr->fid, &cq->fid, &domain->fid, &eq->fid, &fabric->fid);
	fi_freeinfo(info);
	free(memory);
}

/* ---- completions ---- */

static struct fi_cq_data_entry
done(void *context)
{
	return ofi_common_done(cq, context);
}

static struct fi_cq_err_entry
failed(void *context)
{
	return ofi_common_failed(cq, context);
}

static void
send_text(const char *text, uint64_t flags)
{
	struct iovec iov = {(void *)(uintptr_t)text, strlen(text) + 1};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = (void *)2};

	CHECK(fi_sendmsg(ep, &msg, flags) == 0);
	CHECK((done((void *)2).flags & FI_SEND) != 0);
}

static void
recv_text(const char *text)
{
	char buf[64];

	CHECK(fi_recv(ep, buf, sizeof(buf), NULL, 0, buf) == 0);
	CHECK(done(buf).len == strlen(text) + 1 && strcmp(buf, text) == 0);
}

/* ---- cases: what the client does, and what the server does ---- */

static void
client_messages(void)
{
	static char big[300000];
	struct iovec iov[2] = {{big, 100000}, {big + 100000, 200000}};
	char word[8] = "inject";

	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 7);
	CHECK(fi_inject(ep, word, 7, 0) == 0);
	memset(word, 0, sizeof(word)); /* it was copied */
	CHECK(fi_senddata(ep, "data", 5, NULL, CQ_VALUE, 0, big) == 0);
	done(big);
	CHECK(fi_sendv(ep, iov, NULL, 2, 0, big) == 0);
	done(big);
	send_text("too long for four bytes", 0);
	send_text("delivered", FI_DELIVERY_COMPLETE);
	for (size_t i = 0; i < 3; i++)
		send_text("many", 0);
	recv_text("got it all");
}

static void
server_messages(void)
{
	static char big[300000], many[16];
	struct iovec iov = {many, 15};
	const struct fi_msg multi = {.msg_iov = &iov, .iov_count = 1, .context = many};
	struct fi_cq_data_entry e;
	struct fi_cq_err_entry err;
	size_t min = 5;

	recv_text("inject");
	CHECK(fi_recv(ep, big, sizeof(big), NULL, 0, big) == 0);
	e = done(big);
	CHECK((e.flags & FI_REMOTE_CQ_DATA) != 0 && e.data == CQ_VALUE && e.len == 5);
	CHECK(fi_recv(ep, big, sizeof(big), NULL, 0, big) == 0);
	CHECK(done(big).len == sizeof(big));
	for (size_t i = 0; i < sizeof(big); i++)
		CHECK(big[i] == (char)(i * 7));
	CHECK(fi_recv(ep, big, 4, NULL, 0, big) == 0);
	err = failed(big);
	CHECK(err.err == FI_ETRUNC && err.len == 4 && err.olen == 20);
	recv_text("delivered");
	CHECK(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)) == 0);
	CHECK(fi_recvmsg(ep, &multi, FI_MULTI_RECV) == 0);
	for (size_t i = 0; i < 3; i++) {
		e = done(many);
		CHECK(e.buf == many + 5 * i && e.len == 5);
		CHECK(((e.flags & FI_MULTI_RECV) != 0) == (i == 2));
	}
	CHECK(fi_recv(ep, big, 4, NULL, 0, big) == 0);
	CHECK(fi_cancel(&ep->fid, big) == 0);
	CHECK(failed(big).err == FI_ECANCELED);
	send_text("got it all", 0);
}

static char mine[200000], back[200000];

static void
client_memory(const struct place *at)
{
	uint64_t operand = 5, compare = 12, old = 0;
	struct fi_atomic_attr attr;

	for (size_t i = 0; i < sizeof(mine); i++)
		mine[i] = (char)(i * 3 + 1);
	CHECK(fi_write(ep, mine, sizeof(mine), NULL, 0, at->addr + 64, at->key, mine) == 0);
	CHECK((done(mine).flags & FI_WRITE) != 0);
	CHECK(fi_read(ep, back, sizeof(back), NULL, 0, at->addr + 64, at->key, back) == 0);
	CHECK((done(back).flags & FI_READ) != 0);
	CHECK(memcmp(mine, back, sizeof(mine)) == 0);
	CHECK(fi_inject_write(ep, "w", 2, 0, at->addr + 16, at->key) == 0);
	CHECK(fi_query_atomic(domain, FI_UINT64, FI_SUM, &attr, FI_FETCH_ATOMIC) == 0);
	CHECK(fi_query_atomic(domain, FI_UINT64, FI_PROD, &attr, 0) == -FI_EOPNOTSUPP);
	CHECK(fi_query_atomic(domain, FI_INT32, FI_SUM, &attr, 0) == -FI_EOPNOTSUPP);
	CHECK(fi_fetch_atomic(ep, &operand, 1, NULL, &old, NULL, 0, at->addr, at->key, FI_UINT64,
			      FI_SUM, &old) == 0);
	done(&old);
	CHECK(old == 7);
	operand = 99;
	CHECK(fi_compare_atomic(ep, &operand, 1, NULL, &compare, NULL, &old, NULL, 0, at->addr,
				at->key, FI_UINT64, FI_CSWAP, &old) == 0);
	done(&old);
	CHECK(old == 12);
}

/* A key that does not exist: the read fails; with an RDMA device its connection ends, too. */
static void
read_is_refused(const struct place *at)
{
	char bytes[8];

	CHECK(fi_read(ep, bytes, 8, NULL, 0, at->addr, at->key ^ 0x40000001, bytes) == 0);
	CHECK(failed(bytes).err == FI_EACCES);
}

/* Other transports refuse an access and keep the connection. */
static void
client_refusals(const struct place *at)
{
	char bytes[100] = "";

	read_is_refused(at);
	CHECK(fi_write(ep, bytes, 64, NULL, 0, at->addr + MEMORY - 8, at->key, bytes) == 0);
	CHECK(failed(bytes).err == FI_EACCES);
	/* the target is not told of a write that is refused */
	CHECK(fi_writedata(ep, bytes, 100, NULL, 1, 0, at->addr + MEMORY - 8, at->key, bytes) == 0);
	CHECK(failed(bytes).err == FI_EACCES);
	if ((at->other & NATIVE) == 0) { /* the transport knows no domains */
		CHECK(fi_read(ep, bytes, 8, NULL, 0, at->addr, at->other, bytes) == 0);
		CHECK(failed(bytes).err == FI_EACCES);
	}
}

static void
server_memory(void)
{
	struct fi_cq_data_entry e;
	uint64_t value;

	e = done(NULL); /* of a write with data, which takes no receive */
	CHECK((e.flags & FI_REMOTE_WRITE) != 0 && e.data == CQ_VALUE);
	memcpy(&value, memory, sizeof(value));
	CHECK(value == 99 && strcmp(memory + 16, "w") == 0);
	for (size_t i = 0; i < 100; i++)
		CHECK(memory[512 + i] == (char)(i * 3 + 1));
	CHECK(fi_cntr_read(cntr) >= 7 && fi_cntr_readerr(cntr) == 2);
}

/* ---- roles ---- */

/* Listen at a free port, which is printed. */
static struct fid_pep *
listen_anywhere(void)
{
	size_t size = sizeof(size_t), cm_size = 0;
	struct sockaddr_storage at;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&at;
	struct fid_pep *pep = ofi_common_listen(info, &at);

	CHECK(fi_getopt(&pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &cm_size, &size) == 0);
	CHECK(cm_size == 48);
	CHECK(at.ss_family == AF_INET && in->sin_addr.s_addr != 0);
	ofi_common_say("port %u", ntohs(in->sin_port));
	return pep;
}

static int
serve(const char *role)
{
	const struct fi_eq_cm_entry *e;
	struct fid_domain *other;
	struct fid_pep *pep;
	struct fid_mr *other_mr;
	struct place at;
	uint64_t seven = 7;

	ofi_common_get_info(NULL, NULL);
	pep = listen_anywhere();
	e = ofi_common_expect(FI_CONNREQ, 6);
	CHECK(memcmp(e->data, "hello", 6) == 0);
	open_ep(e->info);
	fi_freeinfo(e->info);
	memcpy(memory, &seven, sizeof(seven));
	at.addr = (uintptr_t)memory;
	at.key = fi_mr_key(mr);
	CHECK(fi_domain(fabric, info, &other, NULL) == 0);
	other_mr = ofi_common_region(other, memory, MEMORY, FI_REMOTE_READ);
	at.other = fi_mr_key(other_mr);
	CHECK(fi_accept(ep, &at, sizeof(at)) == 0);
	if (strcmp(role, "intruded") != 0) {
		recv_text("on");
		CHECK(fi_inject(ep, "on", 3, 0) == 0); /* connected, though the event is not read */
	}
	CHECK(ofi_common_expect(FI_CONNECTED, 0)->fid == &ep->fid);
	CLOSE(&pep->fid);
	if (strcmp(role, "thinks") == 0)
		sleep(THINK_S);
	if (strcmp(role, "intruded") != 0) {
		server_messages();
		server_memory();
		send_text("bye", 0);
	}
	ofi_common_expect(FI_SHUTDOWN, 0);
	CLOSE(&other_mr->fid, &other->fid);
	close_all();
	return 0;
}

static void
client_connect(const char *ip, const char *port)
{
	ofi_common_get_info(ip, port);
	open_ep(info);
	CHECK(fi_connect(ep, info->dest_addr, "hello", 6) == 0);
}

static void
use_connection(const struct place *at, bool is_polite)
{
	CHECK(fi_inject(ep, "on", 3, 0) == 0);
	recv_text("on");
	client_messages();
	client_memory(at);
	if (!is_polite)
		client_refusals(at);
	/* the target learns of this one */
	CHECK(fi_writedata(ep, mine, 100, NULL, CQ_VALUE, 0, at->addr + 512, at->key, mine) == 0);
	done(mine);
	recv_text("bye");
}

static int
run_client(const char *role, const char *ip, const char *port)
{
	struct place at;

	client_connect(ip, port);
	memcpy(&at, ofi_common_expect(FI_CONNECTED, sizeof(at))->data, sizeof(at));
	if (strcmp(role, "hold") == 0) {
		CHECK(fi_recv(ep, memory, 64, NULL, 0, memory) == 0);
		ofi_common_say("connected");
		ofi_common_expect(FI_SHUTDOWN, 0);
		CHECK(failed(memory).err == FI_ECANCELED);
		CHECK(fi_send(ep, memory, 8, NULL, 0, memory) == -FI_ENOTCONN);
	} else if (strcmp(role, "intrude") == 0) {
		read_is_refused(&at);
	} else {
		use_connection(&at, strcmp(role, "polite") == 0);
	}
	close_all();
	ofi_common_say("done");
	return 0;
}

static int
expect_refusal(const char *ip, const char *port)
{
	struct fi_eq_err_entry err;

	client_connect(ip, port);
	err = ofi_common_refused();
	ofi_common_say("%s: %s", fi_strerror(err.err),
		       fi_eq_strerror(eq, err.prov_errno, err.err_data, NULL, 0));
	close_all();
	return 0;
}

static int
open_many(void)
{
	struct fid_ep *many[64];
	int n = 0, rc = 0;

	ofi_common_get_info(NULL, NULL);
	open_ep(info);
	while (rc == 0 && n < 64) {
		many[n] = ofi_common_make_ep(domain, info, cq);
		rc = fi_enable(many[n++]);
	}
	printf("%d endpoints: %s\n", n, fi_strerror(-rc));
	while (n > 0)
		CLOSE(&many[--n]->fid);
	close_all();
	return 0;
}

/* ---- two endpoints with shared receives ---- */

static struct fid_ep *
one_of_two(struct fi_info *of, struct fid_ep *srx)
{
	struct fid_ep *one = ofi_common_make_ep(domain, of, cq);

	if (srx != NULL)
		CHECK(fi_ep_bind(one, &srx->fid, 0) == 0);
	CHECK(fi_enable(one) == 0);
	return one;
}

/* Make progress until the file is there, and as long as messages that have come need. */
static void
hold_until(const char *file, const char *suffix)
{
	struct fi_cq_data_entry e;
	char path[4096];

	snprintf(path, sizeof(path), "%s%s", file, suffix);
	for (int i = 0; i < 200; i += access(path, F_OK) == 0) {
		CHECK(fi_cq_read(cq, &e, 1) == -FI_EAGAIN);
		usleep(1000);
	}
}

static int
serve_two(const char *file)
{
	struct fid_ep *srx, *two[2];
	char texts[17], more[64];
	struct iovec iov = {texts, sizeof(texts)};
	const struct fi_msg multi = {.msg_iov = &iov, .iov_count = 1, .context = texts};
	struct fi_info *of;
	struct fid_pep *pep;
	size_t min = 6;

	ofi_common_get_info(NULL, NULL);
	CHECK(fi_domain(fabric, info, &domain, NULL) == 0);
	cq = ofi_common_open_cq(domain);
	CHECK(fi_srx_context(domain, info->rx_attr, &srx, NULL) == 0);
	CHECK(fi_setopt(&srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)) == 0);
	pep = listen_anywhere();
	for (int i = 0; i < 2; i++) {
		of = ofi_common_expect(FI_CONNREQ, 0)->info;
		two[i] = one_of_two(of, srx);
		fi_freeinfo(of);
		CHECK(fi_accept(two[i], NULL, 0) == 0);
		ofi_common_expect(FI_CONNECTED, 0);
	}
	/* a buffer with room for both messages wakes both endpoints */
	hold_until(file, ".1");
	CHECK(fi_recvmsg(srx, &multi, FI_MULTI_RECV) == 0);
	CHECK((done(texts).flags & FI_MULTI_RECV) == 0);
	CHECK((done(texts).flags & FI_MULTI_RECV) != 0);
	CHECK(memcmp(texts, "first\0first", 12) == 0);
	CHECK(fi_inject(two[0], "go", 3, 0) == 0);
	/* the peer dies, and its long message, for which there was no receive, takes none */
	hold_until(file, ".2");
	ofi_common_say("held");
	ofi_common_expect(FI_SHUTDOWN, 0);
	ofi_common_expect(FI_SHUTDOWN, 0);
	CHECK(fi_recv(srx, more, sizeof(more), NULL, 0, more) == 0);
	hold_until(file, ".2");
	CHECK(fi_cancel(&srx->fid, more) == 0); /* it was still there */
	CLOSE(&pep->fid, &two[0]->fid, &two[1]->fid, &srx->fid, &cq->fid, &domain->fid, &eq->fid,
	      &fabric->fid);
	fi_freeinfo(info);
	ofi_common_say("done");
	return 0;
}

static int
be_two(const char *ip, const char *port)
{
	static char big[2000000]; /* more than the peer's pool holds */
	struct fi_cq_data_entry c;
	struct fid_ep *two[2];

	ofi_common_get_info(ip, port);
	CHECK(fi_domain(fabric, info, &domain, NULL) == 0);
	cq = ofi_common_open_cq(domain);
	for (int i = 0; i < 2; i++) {
		two[i] = one_of_two(info, NULL);
		CHECK(fi_connect(two[i], info->dest_addr, NULL, 0) == 0);
		ofi_common_expect(FI_CONNECTED, 0);
	}
	CHECK(fi_recv(two[0], big, 3, NULL, 0, big) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK(fi_send(two[i], "first", 6, NULL, 0, two) == 0);
		CHECK(ofi_common_wait(cq, &c) == 1 && c.op_context == two);
	}
	ofi_common_say("sent");
	CHECK(done(big).len == 3);
	CHECK(fi_send(two[0], big, sizeof(big), NULL, 0, big) == 0);
	ofi_common_say("half");
	for (;;) /* until it is killed */
		CHECK(fi_cq_sread(cq, &c, 1, NULL, 1000) == -FI_EAGAIN);
}

/* What the program counts between its look and its sleep is not overlooked. */
static void
counter_is_looked_at(void)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_FD};
	struct fid_cntr *waited;
	struct fid *fid;

	CHECK(fi_cntr_open(domain, &attr, &waited, NULL) == 0);
	fid = &waited->fid;
	CHECK(fi_cntr_read(waited) == 0);
	CHECK(fi_cntr_add(waited, 1) == 0);
	CHECK(fi_trywait(fabric, &fid, 1) == -FI_EAGAIN);
	CHECK(fi_cntr_read(waited) == 1);
	CHECK(fi_trywait(fabric, &fid, 1) == 0);
	CLOSE(&waited->fid);
}

static void *
sleep_on_cq(void *arg)
{
	struct fi_cq_data_entry e;

	*(ssize_t *)arg = fi_cq_sread(cq, &e, 1, NULL, WAIT_MS);
	return NULL;
}

/* A thread whose time is over does not take the other one's waking away. */
static void
both_sleepers_are_woken(void)
{
	struct fi_cq_data_entry e;
	ssize_t rc = 0;
	pthread_t other;

	CHECK(pthread_create(&other, NULL, sleep_on_cq, &rc) == 0);
	CHECK(fi_cq_sread(cq, &e, 1, NULL, 300) == -FI_EAGAIN);
	CHECK(fi_cq_signal(cq) == 0);
	CHECK(pthread_join(other, NULL) == 0 && rc == -FI_EAGAIN);
}

/* With FI_SOURCE there is an address, also before an engine knows its own: ofi_rxm reads it. */
static void
source_is_filled(void)
{
	const uint32_t formats[] = {FI_FORMAT_UNSPEC, FI_SOCKADDR_IN, FI_SOCKADDR_IN6};
	struct fi_info *hints = fi_allocinfo(), *all;
	int nb = 0;

	for (size_t k = 0; k < sizeof(formats) / sizeof(formats[0]); k++) {
		hints->addr_format = formats[k];
		if (fi_getinfo(FI_VERSION(1, 17), NULL, "9228", FI_SOURCE, hints, &all) != 0)
			continue; /* no IPv6 */
		for (struct fi_info *i = all; i != NULL; i = i->next)
			if (strncmp(i->fabric_attr->prov_name, "sanstack", 8) == 0) {
				CHECK(i->src_addr != NULL && i->src_addrlen != 0);
				nb++;
			}
		fi_freeinfo(all);
	}
	CHECK(nb >= 4); /* two types of endpoints, and two formats at least */
	fi_freeinfo(hints);
}

/* The wildcard address is no name: an endpoint has an own one, with the port. */
static void
wildcard_has_a_name(void)
{
	const struct in6_addr any = IN6ADDR_ANY_INIT;
	union {
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} name = {.in = {.sin_family = AF_INET, .sin_port = htons(9228)}};
	size_t len = sizeof(name.in);
	struct fid_ep *other;

	free(info->src_addr);
	info->src_addr = memcpy(malloc(len), &name, len);
	info->src_addrlen = len;
	len = sizeof(name);
	CHECK(fi_endpoint(domain, info, &other, NULL) == 0);
	CHECK(fi_getname(&other->fid, &name, &len) == 0 && name.in.sin_port == htons(9228));
	CHECK(name.in.sin_family == AF_INET ? name.in.sin_addr.s_addr != INADDR_ANY :
					      memcmp(&name.in6.sin6_addr, &any, sizeof(any)) != 0);
	CLOSE(&other->fid);
}

static int
be_alone(void)
{
	int64_t begun;
	struct timespec ts;

	source_is_filled();
	ofi_common_get_info(NULL, NULL);
	open_ep(info);
	wildcard_has_a_name();
	counter_is_looked_at();
	clock_gettime(CLOCK_MONOTONIC, &ts);
	begun = ts.tv_sec;
	both_sleepers_are_woken();
	clock_gettime(CLOCK_MONOTONIC, &ts);
	CHECK(ts.tv_sec - begun < WAIT_MS / 2000); /* not by its own time */
	close_all();
	ofi_common_say("done");
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc == 2)
		return strcmp(argv[1], "many") == 0   ? open_many() :
			strcmp(argv[1], "alone") == 0 ? be_alone() :
							serve(argv[1]);
	if (argc == 3)
		return serve_two(argv[2]);
	if (argc != 4)
		return 2;
	if (strcmp(argv[1], "two") == 0)
		return be_two(argv[2], argv[3]);
	if (strcmp(argv[1], "refused") == 0)
		return expect_refusal(argv[2], argv[3]);
	return run_client(argv[1], argv[2], argv[3]);
}
