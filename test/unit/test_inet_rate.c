/* SPDX-License-Identifier: BSD-3-Clause */

/* Rates of answers to unauthenticated hosts: for all together and for each. (RT-36) */

#include "unit.h"

#include "inet_rate.h"
#include "san_time.h"

#define EACH  (100 * SAN_NS_PER_US) /* 10,000 per second */
#define BURST 400

static struct san_inet_rate rate;
static enum san_inet_trust trust;

static struct san_ip
host(uint32_t i)
{
	struct san_ip ip = {{[10] = 0xff, [11] = 0xff, [12] = 10}};

	ip.b[13] = (uint8_t)(i >> 16);
	ip.b[14] = (uint8_t)(i >> 8);
	ip.b[15] = (uint8_t)i;
	return ip;
}

static uint32_t
take(uint32_t who, uint32_t n, uint64_t now_ns)
{
	struct san_ip ip = host(who);
	uint32_t k = 0;

	while (n-- > 0)
		k += san_inet_rate_take(&rate, &ip, trust, now_ns);
	return k;
}

static void
setup(void)
{
	trust = SAN_INET_KNOWN;
	san_inet_rate_init(&rate, EACH, BURST, 0x5eed);
}

/* A flood of one host gets the rest; the other hosts get as much as without it. */
UNIT_CASE_OWN(rate_take__one_flood, setup, NULL)
{
	uint64_t now_ns = SAN_NS_PER_S;
	uint32_t i, flood = 0, others = 0;

	for (i = 0; i < 1000; i++, now_ns += SAN_NS_PER_MS) {
		flood += take(1, 1000, now_ns);
		others += take(2, 2, now_ns) + take(3, 2, now_ns) + take(4, 1, now_ns);
	}
	assert_int_equal(others, 5000);
	assert_in_range(flood, 5000, 5000 + BURST);
	/* alone, it gets everything */
	now_ns += SAN_NS_PER_S;
	for (i = flood = 0; i < 1000; i++, now_ns += SAN_NS_PER_MS)
		flood += take(1, 1000, now_ns);
	assert_in_range(flood, 9900, 10000 + BURST);
}

/* Many floods, as with forged addresses, get no more than the total rate. */
UNIT_CASE_OWN(rate_take__many_floods, setup, NULL)
{
	uint64_t now_ns = SAN_NS_PER_S;
	uint32_t n = 0;

	for (uint32_t i = 0; i < 1000000; i++, now_ns += SAN_NS_PER_US)
		n += take(i, 1, now_ns);
	assert_in_range(n, 10000, 10000 + BURST);
}

/* A host that shares a budget with a flood gets another one a second later. (2^30 ns) */
UNIT_CASE_OWN(rate_take__same_budget, setup, NULL)
{
	uint64_t now_ns = 4ULL << 30;
	uint32_t other = 0, got = 0, n = 0;

	do {
		setup();
		take(0, 1000, now_ns);
	} while (take(++other, 1, now_ns) == 1);
	for (now_ns = 5ULL << 30; now_ns < 6ULL << 30; now_ns += SAN_NS_PER_MS) {
		take(0, 1000, now_ns);
		got += take(other, 1, now_ns);
		n++;
	}
	assert_int_equal(got, n);
}

/* A flood from forged, unknown addresses leaves known hosts their full rate. */
UNIT_CASE_OWN(rate_take__known_first, setup, NULL)
{
	static const enum san_inet_trust better[] = {SAN_INET_KNOWN, SAN_INET_NET};
	uint64_t now_ns = SAN_NS_PER_S;
	uint32_t flood = 0, got = 0;

	for (uint32_t i = 0; i < 1000; i++, now_ns += SAN_NS_PER_MS) {
		trust = SAN_INET_STRANGER;
		for (uint32_t k = 0; k < 1000; k++)
			flood += take(i * 1000 + k, 1, now_ns);
		trust = better[i % 2];
		got += take(1 << 23, 2, now_ns);
	}
	assert_int_equal(got, 2000);
	assert_in_range(flood, 8000, 8000 + BURST);
}
