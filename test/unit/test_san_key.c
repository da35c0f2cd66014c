/* SPDX-License-Identifier: BSD-3-Clause */

/* Keys: what each kind of value takes, refuses and is written as. (SYS-11) */

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "san_key.h"

struct conf {
	uint64_t number, ns, bytes, scaled;
	uint32_t mbps, ppm, ms, word, mib;
	uint8_t small, flag;
	char name[8];
	int own;
};

static const char *
set_own(void *base, const char *text)
{
	if (strcmp(text, "mine") != 0)
		return "mine";
	((struct conf *)base)->own = 1;
	return NULL;
}

static const char *const words[] = {"red", "green", "blue"};

static const struct san_key keys[] = {
	{"a", "number", "", SAN_KEY_NUM(conf, number, 0, UINT64_MAX)},
	{"a", "small", "", SAN_KEY_NUM(conf, small, 1, 200)},
	{"a", "scaled", "", SAN_KEY_NUM_OF(conf, scaled, 1, 100, 4096)},
	{"a", "ns", "", SAN_KEY_NS(conf, ns, 0, 60000000000)},
	{"a", "ms", "", SAN_KEY_UINT(SAN_KEY_TIME, conf, ms, 0, 3600000, 1000, 1000000)},
	{"b", "bytes", "", SAN_KEY_BYTES(conf, bytes, 0, 1ull << 40)},
	{"b", "mib", "", SAN_KEY_UINT(SAN_KEY_SIZE, conf, mib, 1, 1 << 20, 1, 1 << 20)},
	{"b", "rate", "", SAN_KEY_MBPS(conf, mbps, 1, 1600000)},
	{"b", "part", "", SAN_KEY_RATIO(conf, ppm, 1000000)},
	{"b", "flag", "", SAN_KEY_ON_OFF(conf, flag), .old = "switch"},
	{"b", "word", "", SAN_KEY_CHOICE(conf, word, words)},
	{"b", "name", "", SAN_KEY_CHARS(conf, name)},
	{"b", "own", "", SAN_KEY_READ(set_own, "mine")},
	{0},
};

static struct conf conf;
static char err[256];

static int
set(const char *name, const char *text)
{
	const struct san_key *k = san_key_find(keys, NULL, name);

	assert_non_null(k);
	err[0] = '\0';
	return san_key_set(k, &conf, name, text, err, sizeof(err));
}

/* Each text, and how its value is written. */
UNIT_CASE(san_key_set__values)
{
	static const struct {
		const char *name, *text, *written;
	} cases[] = {
		{"number", "0", "0"},
		{"number", "0x7B", "123"},
		{"number", "0X7b", "123"},
		{"number", "64k", "65536"},
		{"number", "1M", "1048576"},
		{"number", "18446744073709551615", "18446744073709551615"},
		{"small", "200", "200"},
		{"scaled", "7", "7"},
		{"ns", "0", "0"},
		{"ns", "1500ns", "1500ns"},
		{"ns", "1.5 us", "1500ns"},
		{"ns", "0.0015ms", "1500ns"},
		{"ns", "0.000001500s", "1500ns"},
		{"ns", "1.500000000000s", "1500ms"},
		{"ns", "60s", "60s"},
		{"ns_us", "500", "500us"},
		{"ns_us", "1ms", "1ms"},
		{"ns-ms", "5", "5ms"},
		{"ms", "0.5", "500ms"},
		{"ms", "2000", "2000s"},
		{"ms_ms", "2000", "2s"},
		{"ms", "5000us", "5ms"},
		{"bytes", "100", "100B"},
		{"bytes", "1.5MiB", "1536KiB"},
		{"bytes", "64K", "64KiB"},
		{"bytes", "1 GiB", "1GiB"},
		{"mib", "4096", "4GiB"},
		{"mib", "16MiB", "16MiB"},
		{"rate", "2.5Gb/s", "2500Mb/s"},
		{"rate", "100 Gb/s", "100Gb/s"},
		{"part", "0.01", "0.01"},
		{"part", "0.5 %", "0.005"},
		{"part", "100%", "1"},
		{"part", "0", "0"},
		{"part", ".5", "0.5"},
		{"part", "1e-3", "0.001"},
		{"part", "2.5E-2", "0.025"},
		{"part", "0.0100000000000", "0.01"},
		{"part", "0.000001", "0.000001"},
		{"flag", "on", "on"},
		{"flag", "no", "off"},
		{"flag", "1", "on"},
		{"word", "blue", "blue"},
		{"name", "seven77", "seven77"},
	};
	char text[SAN_KEY_TEXT], again[SAN_KEY_TEXT];

	UNIT_EACH(r, cases) {
		const struct san_key *k = san_key_find(keys, NULL, r->name);

		FAIL_IF(set(r->name, r->text) != 0, "%s", err);
		assert_true(san_key_value(k, &conf, text, sizeof(text)));
		if (strcmp(text, r->written) != 0)
			fail_msg("%s=%s is %s, not %s", r->name, r->text, text, r->written);
		assert_int_equal(set(k->name, text), 0);
		assert_true(san_key_value(k, &conf, again, sizeof(again)));
		assert_string_equal(again, text);
	}
	assert_int_equal(set("own", "mine"), 0);
	assert_int_equal(conf.own, 1);
}

/* The message has the key, the value and what is valid, and nothing changes. */
UNIT_CASE(san_key_set__refuses)
{
	static const struct {
		const char *name, *text, *says;
	} cases[] = {
		{"number", "", "number: \"\" is not 0 or more"},
		{"number", "-1", "0 or more"},
		{"number", " 1", "0 or more"},
		{"number", "4 ", "0 or more"},
		{"number", "1.5", "0 or more"},
		{"number", "010", "0 or more"},
		{"number", "5us", "0 or more"},
		{"number", "1KiB", "0 or more"},
		{"number", "18446744073709551616", "0 or more"},
		{"number", "18446744073709551615K", "0 or more"},
		{"small", "0", "small: \"0\" is not 1 to 200"},
		{"small", "257", "1 to 200"},
		{"scaled", "101", "1 to 100"},
		{"ns", "5", "ns: \"5\" is not 0 to 60s"},
		{"ns", "5us ", "0 to 60s"},
		{"ns", "5 m", "0 to 60s"},
		{"ns", "61s", "0 to 60s"},
		{"ns", ".us", "0 to 60s"},
		{"ns", "1.0.5us", "0 to 60s"},
		{"ns", "0.4ns", "ns: \"0.4ns\" is not a multiple of 1ns"},
		{"ns", "1.00000000001s", "0 to 60s"},
		{"ns_us", "0.0015", "a multiple of 1ns"},
		{"ns", "99999999999s", "0 to 60s"},
		{"ns_us", "7x", "ns_us: \"7x\" is not 0 to 60s"},
		{"ms", "10us", "ms: \"10us\" is not a multiple of 1ms"},
		{"ms", "1.9ms", "a multiple of 1ms"},
		{"ms", "2.0001", "a multiple of 1ms"},
		{"ms_ms", "1.5", "a multiple of 1ms"},
		{"bytes", "64KB", "0 to 1024GiB"},
		{"bytes", "1.5B", "a multiple of 1B"},
		{"bytes", "0.3KiB", "a multiple of 1B"},
		{"mib", "1.5MiB", "mib: \"1.5MiB\" is not a multiple of 1MiB"},
		{"rate", "5", "1Mb/s to 1600Gb/s"},
		{"rate", "5GB/s", "1Mb/s to 1600Gb/s"},
		{"rate", "0", "1Mb/s to 1600Gb/s"},
		{"rate", "2.5001Gb/s", "rate: \"2.5001Gb/s\" is not a multiple of 1Mb/s"},
		{"part", "1.1", "part: \"1.1\" is not 0 to 1"},
		{"part", "101%", "0 to 1"},
		{"part", "1e", "0 to 1"},
		{"part", "1e3", "0 to 1"},
		{"part", "1e-10", "0 to 1"},
		{"part", "0.0000001", "0 to 1"},
		{"flag", "true", "flag: \"true\" is not on or off"},
		{"word", "Red", "word: \"Red\" is not red, green or blue"},
		{"name", "", "name: \"\" is not 1 to 7 characters"},
		{"name", "eight888", "1 to 7 characters"},
		{"own", "yours", "own: \"yours\" is not mine"},
	};
	struct conf before;

	memcpy(&before, &conf, sizeof(before));
	UNIT_EACH(r, cases) {
		FAIL_IF(set(r->name, r->text) != -EINVAL, "%s=%s is not refused", r->name, r->text);
		FAIL_IF(strstr(err, r->says) == NULL, "\"%s\" does not say \"%s\"", err, r->says);
		assert_memory_equal(&conf, &before, sizeof(conf));
	}
}

UNIT_CASE(san_key_find__by_section_and_unit)
{
	assert_ptr_equal(san_key_find(keys, "a", "number"), &keys[0]);
	assert_null(san_key_find(keys, "b", "number"));
	assert_ptr_equal(san_key_find(keys, NULL, "ns_us"), san_key_find(keys, "a", "ns"));
	assert_ptr_equal(san_key_find(keys, "b", "switch"), san_key_find(keys, "b", "flag"));
	assert_null(san_key_find(keys, "a", "switch"));
	/* only a time, and only us and ms */
	assert_null(san_key_find(keys, NULL, "number_us"));
	assert_null(san_key_find(keys, NULL, "ns_s"));
	assert_null(san_key_find(keys, NULL, "ns_ns"));
	assert_null(san_key_find(keys, NULL, "ns_max_us"));
	assert_null(san_key_find(keys, NULL, "n"));
	assert_null(san_key_find(keys, NULL, "nsus"));
	assert_null(san_key_find(keys, NULL, ""));
}

UNIT_CASE(san_key_value__not_set)
{
	char text[SAN_KEY_TEXT];

	memset(&conf, 0, sizeof(conf));
	conf.word = 3;
	assert_false(san_key_value(san_key_find(keys, NULL, "small"), &conf, text, sizeof(text)));
	assert_string_equal(text, "");
	assert_false(san_key_value(san_key_find(keys, NULL, "word"), &conf, text, sizeof(text)));
	assert_false(san_key_value(san_key_find(keys, NULL, "name"), &conf, text, sizeof(text)));
	assert_false(san_key_value(san_key_find(keys, NULL, "own"), &conf, text, sizeof(text)));
	assert_true(san_key_value(san_key_find(keys, NULL, "ns"), &conf, text, sizeof(text)));
	assert_string_equal(text, "0");
}
