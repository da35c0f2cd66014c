/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_rtsan.h"

/* SYS-2: every error in a spec is reported. */
TEST(rtsan_open__malformed_spec)
{
	struct rtsan_ctx *c;

	assert_error(rtsan_open("", &c), -EINVAL, "provider:");
	assert_error(rtsan_open(NULL, &c), -EINVAL, "provider:");
	assert_error(rtsan_open("dpdk --no-pci", &c), -EINVAL, "dpdk --no-pci");
	assert_error(rtsan_open(":x", &c), -EINVAL, "1 to 31");
	assert_error(rtsan_open("a123456789b123456789c123456789d123456789:x", &c), -EINVAL,
		     "1 to 31");
	assert_error(rtsan_open("../../tmp/evil:x", &c), -EINVAL, "not the name");
	assert_error(rtsan_open("fake:x", NULL), -EINVAL, "no place");
}

TEST(rtsan_open__unknown_provider)
{
	struct rtsan_ctx *c;

	assert_error(rtsan_open("nosuch:x", &c), -ENOENT, "librtsan-nosuch.so");
	unsetenv("RTSAN_PROVIDER_PATH");
	assert_error(rtsan_open("nosuch:x", &c), -ENOENT, "nosuch");
}

TEST(rtsan_open__other_version)
{
	struct rtsan_ctx *c;

	assert_error(rtsan_open("old:x", &c), -ENOENT, "another version");
}

TEST(rtsan_open__no_symbol)
{
	struct rtsan_ctx *c;

	assert_error(rtsan_open("empty:x", &c), -ENOENT, "no symbol");
}

TEST(rtsan_open__provider_says_why)
{
	struct rtsan_ctx *c;

	fake->open_rc = -EINVAL;
	assert_error(rtsan_open("fake:ip=300", &c), -EINVAL, "fake: ip=300 is wrong");
	/* without a text of the provider, the errno is reported */
	fake->open_rc = -ENODEV;
	assert_error(rtsan_open("fake:x", &c), -ENODEV, "No such device");
}

TEST(rtsan_open__passes_arguments)
{
	assert_string_equal(fake->args, "hello");
	assert_int_equal(fake->nb_open, 1);
}

TEST(rtsan_close__releases_everything)
{
	struct rtsan_listener *listener;
	struct rtsan_mr *mr;

	test_rtsan_qp(8, NULL);
	assert_int_equal(rtsan_listen(ctx, 1, 0, 1, &listener), 0);
	assert_int_equal(rtsan_mr_alloc(ctx, 10, 0, &mr), 0);
	rtsan_close(NULL);
	/* the teardown does the rest, with a sanitizer */
}

/* A queue that cannot be destroyed is released with its context. */
TEST(rtsan_close__busy_queue)
{
	struct rtsan_cq *cq;

	assert_int_equal(rtsan_cq_create(ctx, 1, &cq), 0);
	fake->cq_destroy_rc = -EBUSY;
	rtsan_close(ctx);
	assert_int_equal(fake->nb_open, 0);
	fake->nb_cqs = 0;
	fake->cq_destroy_rc = 0;
	assert_int_equal(rtsan_open("fake:again", &ctx), 0);
}

TEST(rtsan_query__caps)
{
	struct rtsan_caps caps;

	assert_int_equal(rtsan_query(ctx, &caps, sizeof(caps)), 0);
	assert_string_equal(caps.provider, "fake");
	assert_int_equal(caps.max_mrs, 4);
}

/* A program knows fewer members than the library, or more. */
TEST(rtsan_query__sizes)
{
	struct {
		struct rtsan_caps caps;
		uint64_t later;
	} more = {.later = 7};
	const size_t fewer = offsetof(struct rtsan_caps, max_cqs);

	assert_int_equal(rtsan_query(ctx, &more.caps, sizeof(more)), 0);
	assert_int_equal(more.caps.max_mrs, 4);
	assert_int_equal(more.later, 0);
	memset(&more, 0xff, sizeof(more));
	assert_int_equal(rtsan_query(ctx, &more.caps, fewer), 0);
	assert_int_not_equal(more.caps.max_qps, UINT32_MAX);
	assert_int_equal(more.caps.max_cqs, UINT32_MAX);
}

/* SYS-12 */
TEST(rtsan_address__one_after_the_other)
{
	char text[RTSAN_ADDRESS_MAX];

	assert_int_equal(rtsan_address(ctx, 0, text), 0);
	assert_string_equal(text, "10.0.0.1");
	assert_int_equal(rtsan_address(ctx, 1, text), 0);
	assert_string_equal(text, "fd00::1");
	assert_error(rtsan_address(ctx, 2, text), -ENOENT, "address 2");
}

TEST(rtsan_provider_priv__other_provider)
{
	static const struct rtsan_provider other = {.abi = RTSAN_PROVIDER_ABI};

	assert_null(rtsan_provider_priv(ctx, &other));
	assert_ptr_equal(rtsan_provider_priv(ctx, ctx->ops), fake);
}

TEST(rtsan_version__text)
{
	assert_ptr_equal(strstr(rtsan_build(), rtsan_version()), rtsan_build());
	assert_non_null(strstr(rtsan_build(), " ("));
}
