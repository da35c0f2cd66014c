/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One application that waits for very many completion queues. Armed queues are woken, once each,
 * when a completion comes, and no others. (AFC-19)
 *
 *   waiters SOCKET PEER QUEUES ROUNDS
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw_app.h"

#define SERVICE    4713
#define DEPTH      2
#define WAKE_BYTES 8     /* of one wake-up at most */
#define TIMEOUT_MS 10000 /* for the next wake-up */

static struct raw_app app;
static struct raw_qp *qps;
static struct pollfd *fds;
static uint32_t nb_queues;

/* Connect neighbours; each has a completion queue of its own. */
static void
make_queues(const char *peer)
{
	struct shmq_rep rep;

	for (uint32_t i = 0; i < nb_queues; i++) {
		struct shmq_req req = {.type = SHMQ_CQ_FD};
		int rc = raw_make_qp(&app, &qps[i], DEPTH);

		MUST(rc == 0, "queue pair %u: %d", i, rc);
		if (i % 2 == 1)
			raw_pair(&qps[i - 1], &qps[i], peer, SERVICE);
		req.id = qps[i].cq;
		MUST(raw_ask(&app, &req, -1, &rep, &fds[i].fd) == 0, "queue %u: %s", i, rep.text);
	}
}

static bool
is_armed(uint32_t i, uint32_t round)
{
	return (i + round) % 4 != 0;
}

static void
send_all(void)
{
	struct san_ulp_wr wr = {.op = RTSAN_WR_SEND, .flags = RTSAN_WR_SIGNALED};
	struct san_ulp_recv r = {.nb_sge = 0};

	for (uint32_t i = 0; i < nb_queues; i += 2) {
		raw_post_recv(&qps[i + 1], &r);
		raw_post(&qps[i], &wr);
	}
}

static void
wait_armed(uint32_t round)
{
	char bytes[2 * WAKE_BYTES];
	uint32_t left = 0;
	ssize_t n;

	for (uint32_t i = 0; i < nb_queues; i++) {
		fds[i].events = is_armed(i, round) ? POLLIN : 0;
		left += is_armed(i, round);
	}
	while (left > 0) {
		MUST(poll(fds, nb_queues, TIMEOUT_MS) > 0,
		     "round %u: %u of %u queues are not woken", round, left, nb_queues);
		for (uint32_t i = 0; i < nb_queues; i++) {
			if (fds[i].events == 0 || fds[i].revents == 0)
				continue;
			n = recv(fds[i].fd, bytes, sizeof(bytes), MSG_DONTWAIT);
			MUST(n > 0 && n <= WAKE_BYTES, "round %u, queue %u: %zd bytes", round, i,
			     n);
			fds[i].events = 0;
			left--;
		}
	}
}

/* Each queue has its completion. No more wake-ups come, and unarmed queues had none. */
static void
take_all(uint32_t round)
{
	struct san_ulp_wc wc;
	char byte;

	for (uint32_t i = 0; i < nb_queues; i++)
		MUST(raw_wc(&qps[i], &wc) && wc.status == 0,
		     "round %u, queue %u: no completion", round, i);
	for (uint32_t i = 0; i < nb_queues; i++)
		MUST(recv(fds[i].fd, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN,
		     "round %u, queue %u: woken for nothing", round, i);
}

int
main(int argc, char **argv)
{
	struct rlimit limit;
	uint32_t nb_rounds;

	if (argc != 5)
		return 2;
	nb_queues = (uint32_t)atoi(argv[3]);
	nb_rounds = (uint32_t)atoi(argv[4]);
	qps = calloc(nb_queues, sizeof(*qps));
	fds = calloc(nb_queues, sizeof(*fds));
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	raw_attach(&app, argv[1]);
	make_queues(argv[2]);
	for (uint32_t round = 0; round < nb_rounds; round++) {
		for (uint32_t i = 0; i < nb_queues; i++)
			atomic_store(&qps[i].cq_mem->armed, is_armed(i, round));
		send_all();
		wait_armed(round);
		take_all(round);
	}
	raw_detach(&app);
	for (uint32_t i = 0; i < nb_queues; i++) {
		raw_drop_qp(&qps[i]);
		close(fds[i].fd);
	}
	free(fds);
	free(qps);
	printf("%u queues woken %u times\n", nb_queues, nb_rounds);
	return 0;
}
