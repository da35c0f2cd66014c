/* SPDX-License-Identifier: BSD-3-Clause */

/* Users, and the share of a limit that each may use. (SYS-9) */

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "san_time.h"
#include "users.h"

static void
read_text(const char *text)
{
	char path[] = "/tmp/test_users.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	san_users_read(path);
	unlink(path);
}

static void
san_users_owner__of_ranges(void **state)
{
	(void)state;
	read_text("1000:100000:65536\nno such user:200000:65536\nroot:300000:65536\n0:400000:10\n"
		  "half a line\n\n1001:500000:1\n");
	/* user 0 is root of this host only with a proof; others do not become root by one */
	assert_int_equal(san_users_owner(0, true), 0);
	assert_int_equal(san_users_owner(0, false), USERS_UNPROVED);
	assert_int_equal(san_users_owner(1000, true), 1000);
	assert_int_equal(san_users_owner(1000, false), 1000);
	assert_int_equal(san_users_owner(99999, false), 99999);
	assert_int_equal(san_users_owner(100000, false), 1000);
	assert_int_equal(san_users_owner(165535, false), 1000);
	assert_int_equal(san_users_owner(165536, false), 165536);
	assert_int_equal(san_users_owner(200000, false), 200000);
	/* this makes no user root */
	assert_int_equal(san_users_owner(300000, false), 300000);
	assert_int_equal(san_users_owner(400000, false), 400000);
	assert_int_equal(san_users_owner(500000, false), 1001);
	san_users_read("/no such file");
	assert_int_equal(san_users_owner(100000, false), 100000);
}

static void
write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* A change is seen without a restart. The file is looked at ten times a second at most. */
static void
san_users_follow__changes(void **state)
{
	char path[] = "/tmp/test_users.XXXXXX";
	uint64_t now_ns = SAN_NS_PER_S;
	int i, fd = mkstemp(path);

	(void)state;
	close(fd);
	san_users_read(path);
	san_users_follow(now_ns);
	usleep(10000); /* it has read the empty file */
	assert_int_equal(san_users_owner(100000, false), 100000);
	write_text(path, "1000:100000:65536\n");
	san_users_follow(now_ns + 1);
	usleep(10000);
	assert_int_equal(san_users_owner(100000, false), 100000);
	for (i = 0; i < 1000 && san_users_owner(100000, false) != 1000; i++) {
		san_users_follow(now_ns += SAN_NS_PER_S);
		usleep(1000);
	}
	assert_int_equal(san_users_owner(100000, false), 1000);
	write_text(path, "1001:100000:65536\n1001:300000:1\n");
	for (i = 0; i < 1000 && san_users_owner(300000, false) != 1001; i++) {
		san_users_follow(now_ns += SAN_NS_PER_S);
		usleep(1000);
	}
	assert_int_equal(san_users_owner(100000, false), 1001);
	unlink(path);
}

/* If each uses all that it may, one after the other, many users get a share, and root, too. */
static void
san_users_may__diminishing(void **state)
{
	static const uint32_t shares[] = {45, 12, 3, 0};
	uint32_t all = 0, own, i;

	(void)state;
	for (i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		for (own = 0; san_users_may(1000 + i, own, all, 64); own++)
			all++;
		assert_int_equal(own, shares[i]);
	}
	assert_int_equal(all, 60);
	for (own = 0; san_users_may(0, own, all, 64); own++)
		all++;
	assert_int_equal(all, 64);
}

/* A user without any gets one, even if few are left. */
static void
san_users_may__of_few(void **state)
{
	(void)state;
	assert_true(san_users_may(1000, 0, 0, 1));
	assert_false(san_users_may(1000, 1, 1, 1));
	assert_false(san_users_may(1001, 0, 1, 1));
	assert_true(san_users_may(1001, 0, 2, 3));
	assert_false(san_users_may(0, 0, 1, 1));
}

UNIT_TEST(test_users)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(san_users_owner__of_ranges),
		cmocka_unit_test(san_users_follow__changes),
		cmocka_unit_test(san_users_may__diminishing),
		cmocka_unit_test(san_users_may__of_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
