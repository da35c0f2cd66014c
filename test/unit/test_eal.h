/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * EAL and mbufs for tests that need them: no hugepages, no devices, nothing shared with other
 * processes, so that tests can run in parallel.
 */

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

/** EAL memory in megabytes; a test that needs more defines it before. */
#ifndef TEST_EAL_MB
#define TEST_EAL_MB "64"
#endif

/**
 * Start EAL once. The CPU affinity that it sets is undone, because tests share the CPUs.
 * *lcores*: argument with the lcores; NULL: the first CPU.
 */
static inline void
test_eal_start(char *lcores)
{
	static char args[][16] = {"test", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry",
				  "-m", TEST_EAL_MB, "--log-level=4"};
	char *argv[RTE_DIM(args) + 2] = {NULL};
	static int started;
	cpu_set_t cpus;

	if (started)
		return;
	for (unsigned int i = 0; i < RTE_DIM(args); i++)
		argv[i] = args[i];
	argv[RTE_DIM(args)] = lcores;
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (rte_eal_init((int)RTE_DIM(args) + (lcores != NULL), argv) < 0) {
		fprintf(stderr, "rte_eal_init: %s\n", rte_strerror(rte_errno));
		abort();
	}
	sched_setaffinity(0, sizeof(cpus), &cpus);
	started = 1;
}

static inline void
test_eal_init(void)
{
	test_eal_start(NULL);
}

/** A pool of *n* mbufs with the usual headroom and *room* bytes of data behind it. */
static inline struct rte_mempool *
test_eal_pool(const char *name, unsigned int n, uint16_t room)
{
	struct rte_mempool *pool;

	test_eal_init();
	pool = rte_pktmbuf_pool_create(name, n, 0, 0, (uint16_t)(RTE_PKTMBUF_HEADROOM + room),
				       SOCKET_ID_ANY);
	if (pool == NULL) {
		fprintf(stderr, "rte_pktmbuf_pool_create: %s\n", rte_strerror(rte_errno));
		abort();
	}
	return pool;
}

/** The usual pool of a test, made at the first call. */
static inline struct rte_mempool *
test_pool(void)
{
	static struct rte_mempool *pool;

	if (pool == NULL)
		pool = test_eal_pool("test", 1023, 2048);
	return pool;
}

static inline void
test_eal_ext_free(void *addr, void *opaque)
{
	free(addr);
}

/**
 * Make an mbuf over a buffer of exactly *len* bytes, so that a sanitizer detects every access
 * beyond it. The buffer is freed with the mbuf.
 */
static inline struct rte_mbuf *
test_eal_exact(struct rte_mempool *pool, const void *data, uint16_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct rte_mbuf_ext_shared_info *info;
	uint8_t *buf = malloc(len > 0 ? len : 1);

	if (m == NULL || buf == NULL)
		abort();
	memcpy(buf, data, len);
	/* the space in the mbuf's own buffer outlives the attachment */
	info = m->buf_addr;
	info->free_cb = test_eal_ext_free;
	info->fcb_opaque = NULL;
	rte_mbuf_ext_refcnt_set(info, 1);
	rte_pktmbuf_attach_extbuf(m, buf, RTE_BAD_IOVA, len, info);
	m->data_off = 0;
	m->data_len = len;
	m->pkt_len = len;
	return m;
}
