/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/** @file A context on the fake provider, which is in the directory of the test program. */

#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_provider.h"
#include "rtsan_priv.h"

static struct rtsan_ctx *ctx;
static struct fake_state *fake;
static struct rtsan_cq *qp_cq; /* of the last test_rtsan_qp() */

/** Let librtsan search there after its default path. */
static inline void
test_rtsan_set_path(void)
{
	char self[PATH_MAX] = "";
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	setenv("RTSAN_PROVIDER_PATH", dirname(self), 1);
}

static inline void
test_rtsan_find_fake(void)
{
	char path[PATH_MAX];
	void *dl;

	snprintf(path, sizeof(path), "%s/librtsan-fake.so", getenv("RTSAN_PROVIDER_PATH"));
	dl = dlopen(path, RTLD_NOW);
	assert_non_null(dl);
	fake = dlsym(dl, "fake_state");
	assert_non_null(fake);
	memset(fake, 0, sizeof(*fake));
}

static inline void
test_rtsan_setup(void)
{
	test_rtsan_set_path();
	test_rtsan_find_fake();
	assert_int_equal(rtsan_open("fake:hello", &ctx), 0);
}

/* Closing releases whatever a test left. */
static inline void
test_rtsan_teardown(void)
{
	fake->cq_destroy_rc = 0;
	rtsan_close(ctx);
	assert_int_equal(fake->nb_open, 0);
	assert_int_equal(fake->nb_qps, 0);
	assert_int_equal(fake->nb_cqs, 0);
	assert_int_equal(fake->nb_listeners, 0);
}

/** *stream*: attributes of a stream, or NULL. */
static inline struct rtsan_qp *
test_rtsan_qp(uint32_t depth, const struct rtsan_stream_attr *stream)
{
	struct rtsan_qp_attr attr = {.sq_depth = depth, .rq_depth = depth, .stream = stream};
	struct rtsan_qp *qp;

	assert_int_equal(rtsan_cq_create(ctx, 16, &qp_cq), 0);
	attr.send_cq = attr.recv_cq = qp_cq;
	assert_int_equal(rtsan_qp_create(ctx, &attr, &qp), 0);
	return qp;
}

#define assert_error(rc, want, text)                            \
	do {                                                    \
		assert_int_equal(rc, want);                     \
		if (strstr(rtsan_error(), text) == NULL)        \
			fail_msg("\"%s\" does not have \"%s\"", \
				 rtsan_error(), text);          \
	} while (0)

#define TEST(name) UNIT_CASE_OWN(name, test_rtsan_setup, test_rtsan_teardown)
