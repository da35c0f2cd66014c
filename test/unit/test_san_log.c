/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "san_log.h"

UNIT_CASE(san_log_register__one_type_each)
{
	for (int i = 0; i < SAN_LOG_MAX; i++) {
		assert_true(san_log_type[i] >= RTE_LOGTYPE_FIRST_EXT_ID);
		assert_int_equal(rte_log_get_level((uint32_t)san_log_type[i]), RTE_LOG_NOTICE);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(san_log_type[i], san_log_type[k]);
	}
}

UNIT_CASE(san_log_register__level_by_name)
{
	assert_int_equal(rte_log_set_level_pattern("san.pdl", RTE_LOG_DEBUG), 0);
	assert_int_equal(rte_log_get_level((uint32_t)san_log_type[SAN_LOG_PDL]), RTE_LOG_DEBUG);
	assert_int_equal(rte_log_get_level((uint32_t)san_log_type[SAN_LOG_TL]), RTE_LOG_NOTICE);
	assert_int_equal(rte_log_set_level_pattern("san.pdl", RTE_LOG_NOTICE), 0);
}

UNIT_CASE(san_log__one_line_if_level_allows)
{
	char text[256];
	FILE *f;

	memset(text, 0, sizeof(text));
	f = fmemopen(text, sizeof(text) - 1, "w");
	assert_non_null(f);
	assert_int_equal(rte_openlog_stream(f), 0);
	SAN_LOG(CM, WARNING, "cid=%u state=%s", 7u, "open");
	SAN_LOG(CM, DEBUG, "cid=%u", 8u);
	SAN_LOG(TL, ERR, "done");
	assert_int_equal(rte_openlog_stream(NULL), 0);
	fclose(f);
	assert_string_equal(text, "san.cm: cid=7 state=open\nsan.tl: done\n");
}
