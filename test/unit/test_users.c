/* SPDX-License-Identifier: BSD-3-Clause */

/* Users, and the share of a limit that each may use. (SYS-9) */

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "san_time.h"
#include "users.h"

static void
write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void
read_text(const char *text)
{
	char path[] = "/tmp/test_users.XXXXXX";

	assert_int_equal(close(mkstemp(path)), 0);
	write_text(path, text);
	san_users_read(path);
	unlink(path);
}

UNIT_CASE(san_users_owner__of_ranges)
{
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

/* A change is seen without a restart. The file is looked at ten times a second at most. */
UNIT_CASE(san_users_follow__changes)
{
	char path[] = "/tmp/test_users.XXXXXX";
	uint64_t now_ns = SAN_NS_PER_S;

	assert_int_equal(close(mkstemp(path)), 0);
	san_users_read(path);
	write_text(path, "1000:100000:65536\n");
	for (int i = 0; i < 1000 && san_users_owner(100000, false) != 1000; i++) {
		san_users_follow(now_ns += SAN_NS_PER_S);
		usleep(1000);
	}
	assert_int_equal(san_users_owner(100000, false), 1000);
	write_text(path, "1001:100000:65536\n1001:300000:1\n");
	san_users_follow(now_ns + 1);
	usleep(10000);
	assert_int_equal(san_users_owner(100000, false), 1000);
	for (int i = 0; i < 1000 && san_users_owner(300000, false) != 1001; i++) {
		san_users_follow(now_ns += SAN_NS_PER_S);
		usleep(1000);
	}
	assert_int_equal(san_users_owner(100000, false), 1001);
	unlink(path);
}

/* If each uses all that it may, one after the other, many users get a share, and root, too. */
UNIT_CASE(san_users_may__diminishing)
{
	static const uint32_t shares[] = {45, 12, 3, 0};
	uint32_t all = 0, own;

	for (uint32_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
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
UNIT_CASE(san_users_may__of_few)
{
	assert_true(san_users_may(1000, 0, 0, 1));
	assert_false(san_users_may(1000, 1, 1, 1));
	assert_false(san_users_may(1001, 0, 1, 1));
	assert_true(san_users_may(1001, 0, 2, 3));
	assert_false(san_users_may(0, 0, 1, 1));
}

#define NB      64
#define HOSTILE 1000u
#define OTHER   1001u

/* Take places of *what*, up to *nb*, for user *uid* on port *port*. The number of places. */
static uint32_t
take_places(uint16_t port, uid_t uid, enum users_place what, uint32_t nb)
{
	struct users_want w = {
		.port = port,
		.what = what,
		.owner = san_users_owner(uid, true),
		.nb = 1,
		.max = NB,
	};
	char why[256];
	uint32_t i;

	for (i = 0; i < nb; i++) {
		if (san_users_check(&w, why, sizeof(why)) != 0)
			break;
		assert_int_equal(san_users_count(port, w.owner, what, 1), 0);
	}
	return i;
}

static void
give_places(uint16_t port, uid_t uid, enum users_place what)
{
	uid_t owner = san_users_owner(uid, true);

	san_users_count(port, owner, what, -(int64_t)san_users_nb(port, &owner, what));
}

/*
 * A hostile user has many programs, also of its subordinate users, and each takes what it gets.
 * Another user and root get theirs, of everything that programs take. (SYS-9)
 */
UNIT_CASE(san_users_check__each_place)
{
	uint32_t nb;

	read_text("1000:100000:65536\n");
	for (enum users_place what = 0; what < USERS_PLACES; what++) {
		nb = 0;
		for (uint32_t i = 0; i < 100; i++)
			nb += take_places(1, i % 2 == 0 ? HOSTILE : 100000 + i, what, 3);
		assert_int_equal(nb, 45); /* three quarters of what root leaves */
		assert_int_equal(take_places(1, OTHER, what, NB), 12);
		assert_int_equal(take_places(1, 0, what, NB), NB - 45 - 12);
		assert_int_equal(san_users_nb(1, NULL, what), NB);
		give_places(1, HOSTILE, what);
		give_places(1, OTHER, what);
		give_places(1, 0, what);
		assert_int_equal(san_users_nb(0, NULL, USERS_FDS), 0);
	}
}

/* Ports have places of their own, but share memory and descriptors. */
UNIT_CASE(san_users_check__of_ports)
{
	static const enum users_place common[] = {
		USERS_UNATTACHED, USERS_BYTES, USERS_SOCK_BYTES, USERS_FDS};
	bool is_common;

	for (enum users_place what = 0; what < USERS_PLACES; what++) {
		is_common = false;
		for (uint32_t i = 0; i < RTE_DIM(common); i++)
			is_common |= what == common[i];
		assert_int_equal(take_places(1, HOSTILE, what, NB), 45);
		assert_int_equal(take_places(2, HOSTILE, what, NB), is_common ? 0 : 45);
		give_places(2, HOSTILE, what);
		give_places(1, HOSTILE, what);
	}
}

/* A refusal has a text, and is reported once until the user has more or less. */
UNIT_CASE(san_users_check__refusal)
{
	struct users_want w = {.what = USERS_CQS, .owner = HOSTILE, .nb = 1, .max = NB};
	char why[256];

	assert_int_equal(take_places(0, HOSTILE, USERS_CQS, NB), 45);
	assert_int_equal(san_users_check(&w, why, sizeof(why)), -EALREADY);
	assert_string_equal(why, "completion queue: 45 of 64 are in use, 45 of user 1000: one more "
				 "is refused; see cqs=");
	san_users_count(0, HOSTILE, USERS_CQS, -1);
	assert_int_equal(san_users_check(&w, why, sizeof(why)), 0);
	w.nb = 2;
	assert_int_equal(san_users_check(&w, why, sizeof(why)), -ENOSPC);
	w.nb = UINT64_MAX;
	assert_int_equal(san_users_check(&w, why, sizeof(why)), -EALREADY);
	give_places(0, HOSTILE, USERS_CQS);
	/* what others count takes part */
	w.nb = 1;
	w.own = 45;
	assert_int_equal(san_users_check(&w, why, sizeof(why)), -ENOSPC);
	w.own = 11;
	w.others = 45;
	assert_int_equal(san_users_check(&w, why, sizeof(why)), 0);
}

/* Descriptors are counted with what has them. */
UNIT_CASE(san_users_count__descriptors)
{
	for (enum users_place what = 0; what < USERS_FDS; what++) {
		san_users_count(1, HOSTILE, what, 5);
		assert_int_equal(san_users_nb(0, NULL, USERS_FDS), san_users_fds(what, 5));
		san_users_count(1, HOSTILE, what, -5);
	}
	assert_true(san_users_fds(USERS_MRS, 1) != 0);
	assert_int_equal(san_users_nb(0, NULL, USERS_FDS), 0);
}
