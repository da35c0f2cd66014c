/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Runs conns.h with any provider, and prints what the provider can do. (SYS-2, SYS-4, RT-23, RT-26)
 *
 *   comes_and_goes ROLE SPEC [PEER]
 *   comes_and_goes caps SPEC
 */

#include "conns.h"

static const struct conns_extra nothing;

static int
show_caps(const char *spec)
{
	struct rtsan_caps caps;
	struct rtsan_ctx *ctx;

	if (rtsan_open(spec, &ctx) != 0 || rtsan_query(ctx, &caps, sizeof(caps)) != 0) {
		printf("%s\n", rtsan_error());
		return 1;
	}
	printf("provider %s\nqps %u\ncqs %u\nmrs %u\nwr %u\nsge %u\ninline %u\nmsg %llu\n",
	       caps.provider, caps.max_qps, caps.max_cqs, caps.max_mrs, caps.max_wr, caps.max_sge,
	       caps.max_inline, (unsigned long long)caps.max_msg);
	printf("mr_reg %d\nunordered %d\nloans %d\natomics %d\nends_on_error %d\n", caps.has_mr_reg,
	       caps.has_unordered, caps.has_loan, caps.has_atomic, caps.ends_on_error);
	rtsan_close(ctx);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "caps") == 0)
		return show_caps(argv[2]);
	conns_run(argc, argv, &nothing);
}
