/* SPDX-License-Identifier: BSD-3-Clause */

/* Addresses from and to text. (RT-31) */

#include "unit.h"

#include <errno.h>

#include <rte_common.h>

#include "inet.h"

struct good_row {
	const char *text, *canonical;
	uint8_t prefix_len;
	uint8_t b[16];
};

/* clang-format off */
#define V4(a, b, c, d) {[10] = 0xff, 0xff, a, b, c, d}
/* clang-format on */

static const struct good_row good[] = {
	{"10.0.0.1", "10.0.0.1", 128, V4(10, 0, 0, 1)},
	{"10.0.0.1/24", "10.0.0.1", 120, V4(10, 0, 0, 1)},
	{"255.255.255.255/32", "255.255.255.255", 128, V4(255, 255, 255, 255)},
	{"0.0.0.0/0", "0.0.0.0", 96, V4(0, 0, 0, 0)},
	{"fd00::1", "fd00::1", 128, {0xfd, [15] = 1}},
	{"fd00::1/64", "fd00::1", 64, {0xfd, [15] = 1}},
	{"FE80:0:0:0:0:0:0:00aB/010", "fe80::ab", 10, {0xfe, 0x80, [15] = 0xab}},
	{"::/0", "::", 0, {0}},
	{"::1.2.3.4", "::1.2.3.4", 128, {[12] = 1, 2, 3, 4}},
};

/* clang-format off */
static const char *const bad[] = {
	"", "/", "/24", "10.0.0", "10.0.0.1.2", "10.0.0.256", "10.0.0.1/", "10.0.0.1/33",
	"10.0.0.1/-1", "10.0.0.1/+1", "10.0.0.1/ 1", "10.0.0.1/1 ", " 10.0.0.1", "10.0.0.1 ",
	"10.0.0.1/24/24", "10.0.0.1/1x", "10.0.0.1/0x8", "10.0.0.1/0000", "10.0.0.1/4294967297",
	"fd00::1/129", "fd00::1::2", "fd00::g", "fe80::1%eth0", "::ffff:10.0.0.1",
	"::ffff:10.0.0.1/120", "localhost", "10", "0x0a000001",
	"1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111",
};
/* clang-format on */

UNIT_CASE(parse__good)
{
	struct san_inet_addr a;

	UNIT_EACH(r, good) {
		memset(&a, 0xee, sizeof(a));
		assert_int_equal(san_inet_addr_parse(r->text, &a), 0);
		assert_memory_equal(a.ip.b, r->b, 16);
		assert_int_equal(a.prefix_len, r->prefix_len);
	}
}

UNIT_CASE(parse__bad)
{
	struct san_inet_addr a;

	UNIT_EACH(r, bad)
		FAIL_IF(san_inet_addr_parse(*r, &a) != -EINVAL, "'%s'", *r);
}

/* Of a host on a link: a link of two has no broadcast address. */
UNIT_CASE(parse_own__hosts)
{
	static const char *const right[] = {"10.0.0.1/24", "10.0.0.0/31", "10.0.0.1/31",
					    "10.0.0.255/32", "10.0.1.0/23", "fd00::1/64",
					    "fd00::1/128"};
	static const char *const wrong[] = {"10.0.0.1", "10.0.0.1/0", "10.0.0.1/33",
					    "10.0.0.0/24", "10.0.0.255/24", "10.0.0.3/30",
					    "0.0.0.1/8", "127.0.0.1/8", "224.0.0.1/24",
					    "fd00::1", "fd00::1/0", "::/64", "::1/64",
					    "ff02::1/64"};
	struct san_inet_addr a;

	UNIT_EACH(r, right)
		FAIL_IF(san_inet_addr_parse_own(*r, &a) != 0, "'%s'", *r);
	UNIT_EACH(r, wrong)
		FAIL_IF(san_inet_addr_parse_own(*r, &a) != -EINVAL, "'%s'", *r);
}

UNIT_CASE(text__canonical)
{
	char buf[SAN_INET_TEXT];
	struct san_ip ip;

	UNIT_EACH(r, good) {
		memcpy(ip.b, r->b, 16);
		assert_ptr_equal(san_inet_addr_text(&ip, buf), buf);
		assert_string_equal(buf, r->canonical);
	}
	/* the longest one */
	memset(ip.b, 0x11, 16);
	assert_string_equal(san_inet_addr_text(&ip, buf),
			    "1111:1111:1111:1111:1111:1111:1111:1111");
}
