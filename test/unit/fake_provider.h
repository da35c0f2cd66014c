/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * A provider without packets, for tests of librtsan. It records its calls, returns the results that
 * the test sets, and delivers the completions and events that the test adds.
 */

#include "rtsan_provider.h"

#define FAKE_MAX 16

struct fake_state {
	/* set by the test */
	int open_rc, mr_add_rc, mr_del_rc, cq_rc, cq_destroy_rc, qp_rc, conn_rc, progress_rc;
	int cq_fd_rc;
	bool no_mr_reg;
	struct san_ulp_wc wc[FAKE_MAX]; /**< nb_wc of them are ready to be polled */
	int nb_wc;
	int wc_at_progress; /**< number that becomes ready with the next progress */
	int wc_at_fd;       /**< ... when the descriptor for sleeping is asked for again */
	struct shmq_event ev[FAKE_MAX];
	int nb_ev;
	/* recorded for the test */
	char args[128];
	struct rtsan_provider_qp qp[FAKE_MAX];
	struct shmq_req qp_req[FAKE_MAX]; /**< their *req* */
	bool qp_used[FAKE_MAX];
	int nb_open, nb_mrs, nb_cqs, nb_cq_fd, nb_qps, nb_doorbells, nb_progress, nb_listeners;
	void *mr_addr;
	int mr_seals;         /**< of its memfd; -1: none */
	struct shmq_req last; /**< record of the last call */
	uint32_t cookie;      /**< of the last listener */
};
