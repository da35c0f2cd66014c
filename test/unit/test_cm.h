/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_CM_H
#define TEST_CM_H

/**
 * @file
 * Fixtures of the tests of lib/cm: two hosts and the cable between them.
 */

#include <errno.h>

#include "unit.h"
#include "cm_net.h"

#define MS SAN_NS_PER_MS

static struct cm_net net;

/** Nobody listens. */
static inline void
cm_idle(void)
{
	cm_net_init(&net, test_pool(), 1, 16, false);
}

/** Host 1 listens. */
static inline void
cm_setup(void)
{
	cm_idle();
	cm_net_listen(&net, 1);
}

static inline void
cm_teardown(void)
{
	cm_net_fini(&net);
	assert_int_equal(rte_mempool_in_use_count(test_pool()), 0);
}

#endif /* TEST_CM_H */
