/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_ulp.h"

UNIT_CASE(san_ulp_create__refuses_bad_values)
{
	struct san_ulp_conf good, bad;
	struct san_ulp *ulp;

	test_ulp_conf(&good);
#define REFUSED(field, value)                                          \
	do {                                                           \
		bad = good;                                            \
		bad.field = value;                                     \
		assert_int_equal(san_ulp_create(&bad, &ulp), -EINVAL); \
	} while (0)
	REFUSED(max_conns, 0);
	REFUSED(max_conns, SAN_CONNS_MAX + 1);
	REFUSED(max_qps, 0);
	REFUSED(max_qps, SAN_ULP_QPS_MAX + 1);
	REFUSED(max_cqs, 0);
	REFUSED(max_mrs, 0);
	REFUSED(max_mrs, 24);
	REFUSED(max_mrs, SAN_ULP_MRS_MAX * 2);
	REFUSED(max_mrs, SAN_ULP_MRS_MAX);
	REFUSED(max_stream_mrs, 0);
	REFUSED(max_stream_mrs, 24);
	REFUSED(max_stream_mrs, SAN_ULP_MRS_MAX);
	REFUSED(pull_piece, 0);
	REFUSED(pull_piece, SAN_WIRE_LENGTH_MAX + 1);
	REFUSED(secret32, NULL);
#undef REFUSED
}

UNIT_CASE(san_ulp_conf_default__is_valid)
{
	struct san_prng prng = {.state = 1};
	struct san_ulp_conf conf;
	struct san_ulp *ulp;

	san_ulp_conf_default(&conf);
	conf.secret32 = test_secret32;
	conf.secret_arg = &prng;
	assert_int_equal(san_ulp_create(&conf, &ulp), 0);
	san_ulp_check(ulp);
	san_ulp_destroy(ulp);
	san_ulp_destroy(NULL);
}

/* Bound, with work in every queue: nothing is leaked (checked by the sanitizer). */
UNIT_CASE(san_ulp_destroy__whatever_is_under_way)
{
	struct san_ulp_wr wr = test_wr(RTSAN_WR_SEND, 1, RTSAN_WR_SIGNALED);
	uint32_t key;
	uint8_t mem[8];

	test_ulp_open_bound(8, 8, 16);
	assert_int_equal(san_ulp_mr_add(t.ulp, mem, 8, 0, RTSAN_REMOTE_PUSH, PKEY, &key), 0);
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, &wr, 1, 0), 1);
	fake.room = 0;
	assert_int_equal(san_ulp_wr_post(t.ulp, t.qp, &wr, 1, 0), 1);
	assert_int_equal(test_post_recv(2, mem, 8), 1);
	san_ulp_destroy(t.ulp);
}

UNIT_CASE(san_ulp_status_name__all_have_one)
{
	uint32_t nb = 0;

	for (uint32_t i = 0; i < 256; i++) {
		const char *name = san_ulp_status_name((uint8_t)i);

		if (strcmp(name, "unknown") == 0)
			continue;
		nb++;
		for (uint32_t j = 0; j < i; j++)
			assert_string_not_equal(name, san_ulp_status_name((uint8_t)j));
	}
	/* 3 and 4 are not used */
	assert_int_equal(nb, SAN_ST_MAX - 2 + RTSAN_WC_INVALID - RTSAN_WC_RETRY_EXC + 1);
	assert_string_equal(san_ulp_status_name(SAN_ST_RNR), "rnr");
	assert_string_equal(san_ulp_status_name(SAN_ST_ABORTED), "aborted");
	assert_string_equal(san_ulp_status_name(RTSAN_WC_RETRY_EXC), "RETRY_EXC");
}
