/* SPDX-License-Identifier: BSD-3-Clause */

/* The MTU of a port, by its buffers and by the kernel's device behind it. (RT-31) */

#include <errno.h>
#include <string.h>

#include <net/if.h>

#include "unit.h"
#include "engine_priv.h"

UNIT_CASE(san_engine_mtu_arg__finds_the_number)
{
	const char *args = "role=server,bsize=9216,xbsize=1,socket=/tmp/bsize=7";

	assert_int_equal(san_engine_mtu_arg("bsize=4096", "bsize", 1), 4096);
	assert_int_equal(san_engine_mtu_arg(args, "bsize", 1), 9216);
	assert_int_equal(san_engine_mtu_arg("xbsize=5,bsizes=6", "bsize", 2048), 2048);
	assert_int_equal(san_engine_mtu_arg("bsize", "bsize", 2048), 2048);
	assert_int_equal(san_engine_mtu_arg("", "bsize", 2048), 2048);
	assert_int_equal(san_engine_mtu_arg(NULL, "bsize", 2048), 2048);
}

#define ANY     UINT32_MAX
#define BUFFERS "buffers"
#define BELOW   "below"

UNIT_CASE(san_engine_mtu_choose__what_the_port_takes)
{
	static const struct {
		struct san_engine_mtu m;
		uint16_t wanted, least, mtu;
		const char *why; /* NULL: it is accepted */
	} cases[] = {
		/* a NIC: its MTU, or the operator's choice */
		{{ANY, 1500, false}, 0, 1024, 1500, NULL},
		{{9600, 9600, false}, 0, 1024, 9000, NULL},
		{{ANY, 1500, false}, 9000, 1024, 9000, NULL},
		{{1982, 1500, false}, 1983, 1024, 0, BUFFERS},
		{{1982, 1500, false}, 1982, 1024, 1982, NULL},
		/* a kernel's device, and a driver with a smaller limit */
		{{ANY, 9000, false}, 0, 1024, 9000, NULL},
		{{1968, 9000, false}, 0, 1024, 1968, NULL},
		{{ANY, 65535, false}, 0, 1024, 9000, NULL},
		/* memif: only its buffers */
		{{2034, 1500, true}, 0, 1024, 2034, NULL},
		{{9202, 1500, true}, 0, 1024, 9000, NULL},
		{{9202, 1500, true}, 1500, 1024, 1500, NULL},
		{{2034, 1500, true}, 2035, 1024, 0, BUFFERS},
		/* too little */
		{{ANY, 1023, false}, 0, 1024, 0, BELOW},
		{{ANY, 1024, false}, 0, 1024, 1024, NULL},
		{{ANY, 1279, false}, 0, 1280, 0, BELOW},
		{{498, 1500, true}, 0, 1024, 0, BELOW},
		{{0, 1500, true}, 0, 1024, 0, BELOW},
	};
	const char *why;
	uint16_t mtu;
	int rc;

	UNIT_EACH(r, cases) {
		rc = san_engine_mtu_choose(&r->m, r->wanted, r->least, &mtu, &why);
		FAIL_IF(rc != (r->why != NULL ? -EMSGSIZE : 0), "case %td: %d", r - cases, rc);
		if (rc == 0)
			assert_int_equal(mtu, r->mtu);
		else
			assert_non_null(strstr(why, r->why));
	}
}

UNIT_CASE(san_engine_mtu_of_kernel__loopback)
{
	uint32_t lo = if_nametoindex("lo");

	if (lo == 0)
		skip();
	assert_in_range(san_engine_mtu_of_kernel(lo), 1024, 1u << 20);
	assert_int_equal(san_engine_mtu_of_kernel(0), 0);
	assert_int_equal(san_engine_mtu_of_kernel(UINT32_MAX / 2), 0);
}
