/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Scenarios: every key that the program lists is set, written and read back; an error is refused
 * with its place and with what is allowed.
 */

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "san_time.h"
#include "sim_conf.h"

#define US SAN_NS_PER_US
#define MS SAN_NS_PER_MS

static char folder[] = "/tmp/test_sim_conf.XXXXXX";
static char path[sizeof(folder) + 16];
static char err[512];
static struct sim_conf conf;

static void
setup(void)
{
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/scenario.ini", folder);
}

static void
teardown(void)
{
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
}

static void
fresh(void)
{
	san_sim_conf_default(&conf);
	err[0] = '\0';
}

static int
set(const char *word)
{
	return san_sim_conf_set(&conf, word, err, sizeof(err));
}

static int
load_bytes(const void *bytes, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	return san_sim_conf_file_load(&conf, path, err, sizeof(err));
}

static int
load(const char *text)
{
	return load_bytes(text, strlen(text));
}

static void
assert_says(const char *text)
{
	if (strstr(err, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err, text);
}

/* ---- every key, as the program lists them ---- */

/* "[section]", "# meaning (range)", "# key = default". */
struct listed {
	char key[64], range[160];
};

static size_t
list_keys(struct listed *out, size_t room)
{
	char *text = NULL, *line, *save, *before = NULL, section[32] = "";
	size_t len, n = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	san_sim_conf_help(f);
	fclose(f);
	for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		const char *equals = strstr(line, " =");

		if (sscanf(line, "[%31[^]]", section) == 1)
			continue;
		/* a key of a fault would create one */
		if (equals != NULL && before != NULL && strncmp(section, "fault", 5) != 0) {
			assert_true(n < room);
			snprintf(out[n].key, sizeof(out[0].key), "%s.%.*s", section,
				 (int)(equals - line) - 2, line + 2);
			before = strrchr(before, '(') + 1;
			snprintf(out[n++].range, sizeof(out[0].range), "%.*s",
				 (int)strcspn(before, ")"), before);
		}
		before = line;
	}
	free(text);
	return n;
}

/* What is written is read back unchanged. */
static void
assert_round_trip(void)
{
	struct sim_conf want, got;
	FILE *f = fopen(path, "w");

	memcpy(&want, &conf, sizeof(want));
	assert_non_null(f);
	san_sim_conf_print(&conf, f);
	fclose(f);
	fresh();
	if (san_sim_conf_file_load(&conf, path, err, sizeof(err)) != 0)
		fail_msg("%s", err);
	memcpy(&got, &conf, sizeof(got));
	assert_memory_equal(&got, &want, sizeof(got));
}

static void
set_and_round_trip(const char *key, const char *value)
{
	char word[256];

	fresh();
	snprintf(word, sizeof(word), "%s=%s", key, value);
	if (set(word) != 0)
		fail_msg("%s: %s", word, err);
	assert_round_trip();
}

static void
refused(const char *key, const char *value, const char *range)
{
	char word[256];

	fresh();
	snprintf(word, sizeof(word), "%s=%s", key, value);
	if (set(word) != -EINVAL)
		fail_msg("%s is not refused", word);
	assert_says(key);
	assert_says(value);
	assert_says(range);
}

UNIT_FIXTURE(.setup = fresh, .first = setup, .last = teardown);

UNIT_CASE(san_sim_conf_set__every_key_both_ends_of_its_range)
{
	struct listed keys[256];
	size_t n = list_keys(keys, 256);

	assert_true(n > 80);
	for (size_t i = 0; i < n; i++) {
		char range[160], beyond[170], *word, *save, *to = strstr(keys[i].range, " to ");

		snprintf(range, sizeof(range), "%s", keys[i].range);
		refused(keys[i].key, "7 parsecs", range);
		if (strstr(range, " or more") != NULL) /* the seed: all 64 bits */
			continue;
		if (to == NULL) { /* words, or yes and no */
			for (word = strtok_r(range, ", ", &save); word != NULL;
			     word = strtok_r(NULL, ", ", &save))
				if (strcmp(word, "or") != 0)
					set_and_round_trip(keys[i].key, word);
			refused(keys[i].key, "sometimes", keys[i].range);
			continue;
		}
		range[to - keys[i].range] = '\0';
		set_and_round_trip(keys[i].key, range);
		set_and_round_trip(keys[i].key, to + 4);
		snprintf(beyond, sizeof(beyond), "9%s", to + 4);
		refused(keys[i].key, beyond, keys[i].range);
		refused(keys[i].key, "-1", keys[i].range);
		if (strtod(range, NULL) > 0)
			refused(keys[i].key, "0", keys[i].range);
	}
}

#define FIELD(word, field, value)                                                        \
	{                                                                                \
		word, offsetof(struct sim_conf, field),                                  \
			sizeof(((struct sim_conf *)0)->field), (uint64_t)(value), #field \
	}

/* Written independently of the program's table: the place and the unit of each value. */
static const struct {
	const char *word;
	size_t offset, size;
	uint64_t value;
	const char *field;
} fields[] = {
	FIELD("run.seed=77", run.seed, 77),
	FIELD("run.warmup=3 us", run.warmup_ns, 3000),
	FIELD("run.duration=2 s", run.duration_ns, 2000 * MS),
	FIELD("run.settle=3 s", run.settle_ns, 3000 * MS),
	FIELD("run.stall=4 ms", run.stall_ns, 4 * MS),
	FIELD("run.sample=5 us", run.sample_ns, 5 * US),
	FIELD("run.check_every=6", run.check_every, 6),
	FIELD("run.jain_min=0.97", run.jain_min_ppm, 970000),
	FIELD("run.silence_max=8 us", run.silence_max_ns, 8000),
	FIELD("topology.type=dumbbell", topo.type, SIM_TOPO_DUMBBELL),
	FIELD("topology.hosts=9", topo.hosts, 9),
	FIELD("topology.leaves=4", topo.leaves, 4),
	FIELD("topology.spines=5", topo.spines, 5),
	FIELD("link.rate=25 Gb/s", edge.rate_mbps, 25000),
	FIELD("link.delay=7 us", edge.delay_ns, 7 * US),
	FIELD("link.buffer=64 KiB", edge.buffer_bytes, 65536),
	FIELD("link.mark=3 KiB", edge.mark_bytes, 3072),
	FIELD("link.mtu=1500", edge.mtu, 1500),
	FIELD("core.rate=400 Gb/s", core.rate_mbps, 400000),
	FIELD("core.delay=8 us", core.delay_ns, 8 * US),
	FIELD("core.buffer=1 MiB", core.buffer_bytes, 1 << 20),
	FIELD("core.mark=5 KiB", core.mark_bytes, 5120),
	FIELD("core.mtu=4096", core.mtu, 4096),
	FIELD("host.ipv6=yes", host.ipv6, true),
	FIELD("host.mtu=1500", host.mtu, 1500),
	FIELD("host.cc=dcqcn", host.core.pdl.cc, SAN_CC_DCQCN),
	FIELD("host.policy=srpt", host.core.tl.policy, SAN_GRANT_SRPT),
	FIELD("host.poll=250 ns", host.poll_ns, 250),
	FIELD("host.clock_drift=0.0001", host.clock_ppm_range, 100),
	FIELD("host.rx_ring=64", host.rx_ring, 64),
	FIELD("host.nic_queue=16 KiB", host.nic_bytes, 16384),
	FIELD("host.mbufs=999", host.mbufs, 999),
	FIELD("host.cam=888", host.cam, 888),
	FIELD("host.req_window=32", host.conn.req_win, 32),
	FIELD("host.window=33", host.conn.data_win, 33),
	FIELD("host.first_window=34", host.conn.first_win, 34),
	FIELD("host.max_txn=35", host.conn.max_txn, 35),
	FIELD("host.msg_limit=36", host.conn.msg_limit, 36),
	FIELD("host.rnr_ms=37", host.conn.rnr_ms, 37),
	FIELD("host.keepalive_ms=38", host.conn.keepalive_ms, 38),
	FIELD("host.budget=39", host.core.pdl.budget_pkts, 39),
	FIELD("host.incast=40 KiB", host.core.tl.budget_bytes, 40960),
	FIELD("host.paths=42 KiB", host.core.tl.path_bytes, 43008),
	FIELD("host.expired=41 KiB", host.core.tl.expired_bytes, 41984),
	FIELD("host.grant=42 KiB", host.core.tl.grant_bytes, 43008),
	FIELD("host.solicit=43 KiB", host.core.tl.solicit_len, 44032),
	FIELD("host.level=44", host.core.tl.solicit_level, 44),
	FIELD("host.txns=45", host.core.tl.max_txns, 45),
	FIELD("host.rxns=46", host.core.tl.max_rxns, 46),
	FIELD("host.held=47", host.core.tl.max_held, 47),
	FIELD("host.held_conn=48", host.core.tl.max_held_conn, 48),
	FIELD("host.pull_piece=49 KiB", host.core.ulp.pull_piece, 50176),
	FIELD("host.cwnd=50", host.core.pdl.cc_conf.window_init, 50 * SAN_CC_ONE),
	FIELD("host.cwnd_max=51", host.core.pdl.cc_conf.window_max, 51 * SAN_CC_ONE),
	FIELD("host.ack_every=52", host.core.pdl.ack_every, 52),
	FIELD("host.ooo=53", host.core.pdl.ooo_distance, 53),
	FIELD("host.retries=54", host.core.pdl.max_retries, 54),
	FIELD("host.plb=55", host.core.pdl.plb_bad_rtts, 55),
	FIELD("host.target=56 us", host.core.pdl.cc_conf.target_ns, 56 * US),
	FIELD("host.rto=57 ms", host.core.pdl.rto_init_ns, 57 * MS),
	FIELD("host.rto_min=58 ms", host.core.pdl.rto_min_ns, 58 * MS),
	FIELD("host.rto_max=59 ms", host.core.pdl.rto_max_ns, 59 * MS),
	FIELD("host.tlp=60 us", host.core.pdl.tlp_min_ns, 60 * US),
	FIELD("host.ack_delay=61 us", host.core.pdl.ack_delay_ns, 61 * US),
	FIELD("host.cm_retry=62 ms", host.core.cm.retry_ns, 62 * MS),
	FIELD("host.cm_drain=63 ms", host.core.cm.drain_ns, 63 * MS),
	FIELD("host.timewait=64 ms", host.core.cm.timewait_ns, 64 * MS),
	FIELD("host.wrap=yes", host.wrap, true),
	FIELD("host.pack=no", host.core.cm.features, 0),
	FIELD("load.pattern=permutation", load.pattern, SIM_PATTERN_PERMUTATION),
	FIELD("load.connections=66", load.connections, 66),
	FIELD("load.unordered=50 %", load.unordered_ppm, 500000),
	FIELD("load.relaxed=yes", load.relaxed, true),
	FIELD("load.both_ways=yes", load.both_ways, true),
	FIELD("load.solicit=never", load.solicit, SIM_SOLICIT_NEVER),
	FIELD("load.send=67", load.weights[RTSAN_WR_SEND - 1], 67),
	FIELD("load.push=68", load.weights[RTSAN_WR_PUSH - 1], 68),
	FIELD("load.push_imm=69", load.weights[RTSAN_WR_PUSH_IMM - 1], 69),
	FIELD("load.pull=70", load.weights[RTSAN_WR_PULL - 1], 70),
	FIELD("load.fetch_add=71", load.weights[RTSAN_WR_FETCH_ADD - 1], 71),
	FIELD("load.cmp_swap=72", load.weights[RTSAN_WR_CMP_SWAP - 1], 72),
	FIELD("load.size_min=73", load.size_min, 73),
	FIELD("load.size_max=74 MiB", load.size_max, 74 << 20),
	FIELD("load.depth=75", load.depth, 75),
	FIELD("load.ops=76", load.ops, 76),
	FIELD("load.start_step=77 us", load.start_step_ns, 77 * US),
	FIELD("load.stop_step=78 us", load.stop_step_ns, 78 * US),
	FIELD("load.recv_delay=79 us", load.recv_delay_ns, 79 * US),
	FIELD("load.bad_key=0.5 %", load.bad_ppm, 5000),
	FIELD("load.revoke=80 us", load.revoke_ns, 80 * US),
	FIELD("load.reconnect=yes", load.reconnect, true),
};

UNIT_CASE(san_sim_conf_set__value_goes_where_it_belongs)
{
	struct sim_conf before;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint64_t got = 0;

		fresh();
		memcpy(&before, &conf, sizeof(before));
		if (set(fields[i].word) != 0)
			fail_msg("%s", err);
		memcpy(&got, (char *)&conf + fields[i].offset, fields[i].size);
		if (got != fields[i].value)
			fail_msg("%s: %s is %lu", fields[i].word, fields[i].field,
				 (unsigned long)got);
		/* and nothing else changes */
		memcpy((char *)&conf + fields[i].offset, (char *)&before + fields[i].offset,
		       fields[i].size);
		assert_memory_equal(&conf, &before, sizeof(conf));
	}
}

/* ---- units ---- */

UNIT_CASE(san_sim_conf_set__units)
{
	static const struct {
		const char *word;
		size_t offset, size;
		uint64_t value;
		const char *field;
	} cases[] = {
		FIELD("link.delay=1.5 us", edge.delay_ns, 1500),
		FIELD("link.delay=1500 ns", edge.delay_ns, 1500),
		FIELD("link.delay=0.0015ms", edge.delay_ns, 1500),
		FIELD("link.delay=0.000001500 s", edge.delay_ns, 1500),
		FIELD("link.delay=1 s", edge.delay_ns, 1000000000),
		FIELD("link.delay=0", edge.delay_ns, 0),
		FIELD("link.delay=0 us", edge.delay_ns, 0),
		FIELD("core.mark=0.0 KiB", core.mark_bytes, 0),
		FIELD("run.duration=0.123456789 s", run.duration_ns, 123456789),
		FIELD("load.bad_key=0.5 %", load.bad_ppm, 5000),
		FIELD("load.bad_key=0.005", load.bad_ppm, 5000),
		FIELD("load.bad_key=100 %", load.bad_ppm, 1000000),
		FIELD("load.bad_key=1", load.bad_ppm, 1000000),
		FIELD("load.bad_key=0.000001", load.bad_ppm, 1),
		FIELD("load.bad_key=0.0001 %", load.bad_ppm, 1),
		FIELD("link.rate=100 Gb/s", edge.rate_mbps, 100000),
		FIELD("link.rate=2.5 Gb/s", edge.rate_mbps, 2500),
		FIELD("link.rate=10 Mb/s", edge.rate_mbps, 10),
		FIELD("link.rate=1600 Gb/s", edge.rate_mbps, 1600000),
		FIELD("link.buffer=64 KiB", edge.buffer_bytes, 65536),
		FIELD("link.buffer=65536", edge.buffer_bytes, 65536),
		FIELD("link.buffer=65536 B", edge.buffer_bytes, 65536),
		FIELD("link.buffer=1.5 MiB", edge.buffer_bytes, 1572864),
		FIELD("link.buffer=2 GiB", edge.buffer_bytes, 2147483648),
		FIELD("run.seed=18446744073709551615", run.seed, UINT64_MAX),
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t got = 0;

		if (set(cases[i].word) != 0)
			fail_msg("%s", err);
		memcpy(&got, (char *)&conf + cases[i].offset, cases[i].size);
		if (got != cases[i].value)
			fail_msg("%s: %lu", cases[i].word, (unsigned long)got);
	}
}

UNIT_CASE(san_sim_conf_set__what_is_wrong)
{
	static const struct {
		const char *word, *text;
	} cases[] = {
		{"", "section.key=value"},
		{"mtu", "section.key=value"},
		{"host.mtu", "section.key=value"},
		{"mtu=1500", "section.key=value"},
		{"=", "section.key=value"},
		{"host.mtu=", "host.mtu: \"\" is not 1024 to 9000"},
		{"host.mtu=x", "host.mtu: \"x\" is not 1024 to 9000"},
		{"host.mtu=1023", "1024 to 9000"},
		{"host.mtu=9001", "1024 to 9000"},
		{"host.mtu=1500 B", "1024 to 9000"},
		{"host.mtu=1500.5", "1024 to 9000"},
		{"host.mtu=-1500", "1024 to 9000"},
		{"run.seed=-1", "is not 0 or more"},
		{"run.seed= -1", "is not 0 or more"},
		{"run.seed=18446744073709551616", "is not 0 or more"},
		{"link.delay=5", "link.delay: \"5\" is not 0 to 1s"},
		{"link.delay=5 KiB", "0 to 1s"},
		{"link.delay=5 m", "0 to 1s"},
		{"link.delay=1.0.5 us", "0 to 1s"},
		{"link.delay=. us", "0 to 1s"},
		{"link.delay=1.1 s", "0 to 1s"},
		/* more than 64 bits of nanoseconds */
		{"run.stall=18446744073.709551617 s", "1ns to 3600s"},
		{"run.stall=99999999999 s", "1ns to 3600s"},
		{"link.rate=5", "is not 1Mb/s to 1600Gb/s"},
		{"link.rate=5 GB/s", "is not 1Mb/s to 1600Gb/s"},
		{"link.rate=0 Gb/s", "is not 1Mb/s to 1600Gb/s"},
		{"link.buffer=64 KB", "is not 2KiB to 2GiB"},
		{"link.buffer=2047", "is not 2KiB to 2GiB"},
		{"load.unordered=1.1", "load.unordered"},
		{"load.unordered=101 %", "load.unordered"},
		{"load.unordered=5 us", "is not 0 to 1"},
		{"host.ipv6=true", "host.ipv6: \"true\" is not on or off"},
		{"host.cc=reno", "host.cc: \"reno\" is not swift, dcqcn or fixed"},
		{"host.cc=Swift", "swift, dcqcn or fixed"},
		{"topology.type=ring", "pair, star, dumbbell or leaf-spine"},
		/* a tiny value must not become zero, which has a meaning of its own */
		{"core.rate=0.4 Mb/s", "core.rate"},
		{"host.rto=0.4 ns", "host.rto"},
		{"load.bad_key=0.0000001", "load.bad_key"},
		{"host.colour=blue", "unknown key \"colour\" in [host]"},
		{"garden.mtu=1500", "unknown section [garden]; sansim --keys lists all"},
		{"Host.mtu=1500", "unknown section [Host]"},
		{"host.rto.min=1", "unknown section [host.rto]"},
		{"host.colour=blue", "--keys"},
	};
	struct sim_conf before;

	memcpy(&before, &conf, sizeof(before));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		err[0] = '\0';
		if (set(cases[i].word) != -EINVAL)
			fail_msg("\"%s\" is not refused", cases[i].word);
		assert_says(cases[i].text);
		assert_memory_equal(&conf, &before, sizeof(conf));
	}
}

UNIT_CASE(san_sim_conf_set__too_long)
{
	char word[1024];

	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	memcpy(word, "host.mtu=", 9);
	assert_int_equal(set(word), -EINVAL);
	assert_says("host.mtu");
	assert_true(strlen(err) < sizeof(err));
}

/* ---- faults ---- */

UNIT_CASE(san_sim_conf_set__faults_by_name)
{
	const struct sim_fault_conf *f = conf.faults;

	assert_int_equal(set("fault.cut.kind=down"), 0);
	assert_int_equal(set("fault.rain.kind=loss"), 0);
	assert_int_equal(set("fault.cut.where=host:1:up"), 0);
	assert_int_equal(set("fault.cut.at=3 ms"), 0);
	assert_int_equal(set("fault.cut.for=4 ms"), 0);
	assert_int_equal(set("fault.rain.rate=0.5 %"), 0);
	assert_int_equal(set("fault.rain.arg=9 us"), 0);
	assert_int_equal(conf.nb_faults, 2);
	assert_string_equal(f[0].name, "cut");
	assert_string_equal(f[0].where, "host:1:up");
	assert_int_equal(f[0].kind, SIM_FAULT_DOWN);
	assert_int_equal(f[0].at_ns, 3 * MS);
	assert_int_equal(f[0].for_ns, 4 * MS);
	assert_string_equal(f[1].name, "rain");
	assert_string_equal(f[1].where, "all");
	assert_int_equal(f[1].kind, SIM_FAULT_LOSS);
	assert_int_equal(f[1].rate_ppm, 5000);
	assert_int_equal(f[1].arg_ns, 9 * US);
	assert_round_trip();
}

UNIT_CASE(san_sim_conf_set__every_kind_of_fault)
{
#define SET(name, word, ...)                                   \
	assert_int_equal(set("fault." word ".kind=" word), 0); \
	assert_int_equal(conf.faults[SIM_FAULT_##name].kind, SIM_FAULT_##name);
	SIM_FAULTS(SET)
	assert_round_trip();
}

UNIT_CASE(san_sim_conf_set__wrong_faults)
{
	static const struct {
		const char *word, *text;
	} cases[] = {
		{"fault.a.kind=meteor", "fault.a.kind: \"meteor\" is not none, loss, burst"},
		{"fault.a.rate=2", "fault.a.rate"},
		{"fault.a.at=soon", "fault.a.at: \"soon\" is not 0 to 3600s"},
		{"fault.a.arg=2 s", "0 to 1s"},
		{"fault.a.colour=red", "unknown key \"colour\" in [fault.a]"},
		{"fault.a.where=0123456789012345678901234567890123456789", "where"},
		{"fault.a.where=", "where"},
		{"fault.a.where=host:1 # or 2", "where"},
		{"fault.a.where=host:0:dwon", "fault.a.where: \"host:0:dwon\" is not all"},
		{"fault.a.where=host:0:up:down", "where"},
		{"fault.a.where=host:1x", "where"},
		{"fault.a.where=spine:-1", "where"},
		{"fault.a.where=all:up", "where"},
		/* names that a file cannot contain */
		{"fault..kind=loss", "name"},
		{"fault.a]b.kind=loss", "name"},
		{"fault.a#b.kind=loss", "name"},
		{"fault.a b.kind=loss", "name"},
		{"fault.0123456789012345678901234567890123456789.kind=loss", "name"},
		{"fault.kind=loss", "faults have names: [fault.NAME]"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fresh();
		if (set(cases[i].word) != -EINVAL)
			fail_msg("\"%s\" is not refused", cases[i].word);
		assert_says(cases[i].text);
	}
}

UNIT_CASE(san_sim_conf_set__thirty_third_fault)
{
	char word[64];

	for (uint32_t i = 0; i < SIM_FAULTS_MAX; i++) {
		snprintf(word, sizeof(word), "fault.f%u.kind=loss", i);
		assert_int_equal(set(word), 0);
	}
	assert_int_equal(set("fault.f32.kind=loss"), -EINVAL);
	assert_says("32 faults");
	assert_int_equal(conf.nb_faults, SIM_FAULTS_MAX);
	/* existing ones can still be changed */
	assert_int_equal(set("fault.f31.kind=down"), 0);
	assert_round_trip();
}

/* ---- files ---- */

UNIT_CASE(san_sim_conf_file_load__as_written_by_people)
{
	if (load("# a comment\n\n[host]\n  mtu=1500 # another\n\tcc =  dcqcn\n\n"
		 "[fault.rain]\nkind = loss\nwhere = host:1:down\nrate = 1 %\n"
		 "[load]\r\ndepth = 4\r\n[run]\nseed = 5") != 0)
		fail_msg("%s", err);
	assert_int_equal(conf.host.mtu, 1500);
	assert_int_equal(conf.host.core.pdl.cc, SAN_CC_DCQCN);
	assert_int_equal(conf.nb_faults, 1);
	assert_string_equal(conf.faults[0].where, "host:1:down");
	assert_int_equal(conf.faults[0].rate_ppm, 10000);
	assert_int_equal(conf.load.depth, 4);
	assert_int_equal(conf.run.seed, 5);
	assert_int_equal(conf.edge.rate_mbps, 100000);
}

/* Several files are combined. */
UNIT_CASE(san_sim_conf_file_load__over_what_is_there)
{
	assert_int_equal(load("[host]\nmtu = 1500\n[fault.a]\nkind = loss\n"), 0);
	assert_int_equal(load("[host]\nmtu = 9000\n[fault.a]\nrate = 1 %\n[fault.b]\n"), 0);
	assert_int_equal(conf.host.mtu, 9000);
	assert_int_equal(conf.nb_faults, 2); /* b continues in another file */
	assert_int_equal(conf.faults[0].kind, SIM_FAULT_LOSS);
	assert_int_equal(conf.faults[0].rate_ppm, 10000);
	assert_int_equal(load(""), 0);
}

UNIT_CASE(san_sim_conf_file_load__says_where)
{
	static const struct {
		const char *text;
		unsigned int line;
		const char *says;
	} cases[] = {
		{"[host]\nmtu = 10\n", 2, "host.mtu: \"10\" is not 1024 to 9000"},
		{"# x\n\n[link]\nrate = 1 Gb/s\n[host]\n\nmtu = 10\n", 7, "host.mtu"},
		{"[host]\nmtu = 1500\n\nmtu = 10\n", 4, "host.mtu: \"10\""},
		{"[load]\ndepth = 4\n[host]\ndepth = 4\n", 4, "unknown key \"depth\" in [host]"},
		{"[host]\nmtu = 1500\ncolour = red\n", 3, "unknown key \"colour\" in [host]"},
		{"[garden]\nmtu = 1500\n", 1, "unknown section [garden]"},
		{"[host]\n[garden]\n", 2, "unknown section [garden]"},
		{"[fault]\nkind = loss\n", 1, "faults have names: [fault.NAME]"},
		{"[fault.a b]\n", 1, "fault.a b: more than"},
		{"[host]\nmtu = 1500\n[host]\nmtu = 9000\n", 3, "[host]"},
		{"[host]\nmtu 1500\n", 2, "\"mtu 1500\" is not key = value"},
		{"[host]\nmtu\n", 2, "\"mtu\" is not key = value"},
		{"[host]\nmtu =\n", 2, "key = value"},
		{"[host]\n= 5\n", 2, "key = value"},
		{"[host\nmtu = 1500\n", 1, "[section]"},
		{"[]\n", 1, "[section]"},
		{"\nmtu = 1500\n", 2, "[section]"},
		{"[fault.a]\nkind = loss\nrate = 5 us\n", 3, "fault.a.rate"},
		{"[fault.a]\nkind = loss\ncolour = red\n", 3, "unknown key \"colour\""},
		{"[fault.a]\n\nkind = meteor\n", 3, "fault.a.kind"},
		{"[fault.a]\nkind = loss\nwhere = host:0:dwon\n", 3, "\"host:0:dwon\" is not all"},
	};
	char want[sizeof(path) + 16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fresh();
		if (load(cases[i].text) != -EINVAL)
			fail_msg("\"%s\" is not refused", cases[i].text);
		snprintf(want, sizeof(want), "%s:%u: ", path, cases[i].line);
		assert_says(want);
		assert_says(cases[i].says);
	}
}

UNIT_CASE(san_sim_conf_file_load__long_lines)
{
	char text[2048];
	char want[sizeof(path) + 16];

	snprintf(text, sizeof(text), "[host]\n# %0200d\nmtu = 10\n", 0);
	assert_int_equal(load(text), -EINVAL);
	snprintf(want, sizeof(want), "%s:3: ", path);
	assert_says(want);
	snprintf(text, sizeof(text), "[host]\nmtu = %01000d\n", 0);
	assert_int_equal(load(text), -EINVAL);
	snprintf(want, sizeof(want), "%s:2: ", path);
	assert_says(want);
	assert_says("long");
}

UNIT_CASE(san_sim_conf_file_load__no_text)
{
	uint8_t noise[5000];

	for (uint32_t i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)(i * 2654435761u >> 13);
	assert_int_equal(load_bytes(noise, sizeof(noise)), -EINVAL);
	assert_says(path);
	assert_int_equal(load_bytes("[host]\nmtu = 15\00000\n", 20), -EINVAL);
	assert_says(":2: ");
}

UNIT_CASE(san_sim_conf_file_load__without_end)
{
	static char lines[100001];

	assert_int_equal(san_sim_conf_file_load(&conf, "/dev/zero", err, sizeof(err)), -EINVAL);
	assert_string_equal(err, "/dev/zero:1: not a text");
	memset(lines, '\n', sizeof(lines));
	assert_int_equal(load_bytes(lines, sizeof(lines)), -EINVAL);
	assert_says(":100001: too many lines");
}

UNIT_CASE(san_sim_conf_file_load__no_file)
{
	assert_int_equal(san_sim_conf_file_load(&conf, "/nonexistent/x.ini", err, sizeof(err)),
			 -ENOENT);
	assert_says("/nonexistent/x.ini: No such file");
	assert_int_equal(san_sim_conf_file_load(&conf, folder, err, sizeof(err)), -EISDIR);
	assert_says(folder);
	assert_says("directory");
}

/* ---- together ---- */

static int
check(void)
{
	return san_sim_conf_rules_check(&conf, err, sizeof(err));
}

UNIT_CASE(san_sim_conf_rules_check__defaults)
{
	assert_int_equal(check(), 0);
	assert_round_trip();
}

/* Between switches as at the edge, unless configured otherwise. */
UNIT_CASE(san_sim_conf_rules_check__core_as_edge)
{
	assert_int_equal(set("link.delay=7 us"), 0);
	assert_int_equal(set("link.mark=9 KiB"), 0);
	assert_int_equal(check(), 0);
	assert_memory_equal(&conf.core, &conf.edge, sizeof(conf.core));
	fresh();
	assert_int_equal(set("core.rate=1 Gb/s"), 0);
	assert_int_equal(set("link.mark=9 KiB"), 0);
	/* defaults are not written */
	assert_round_trip();
	assert_int_equal(check(), 0);
	assert_int_equal(conf.core.rate_mbps, 1000);
	assert_int_equal(conf.core.buffer_bytes, conf.edge.buffer_bytes);
	assert_int_equal(conf.core.delay_ns, US);
	assert_int_equal(conf.core.mark_bytes, 9 << 10);
	/* checking or reading again does not change a checked scenario */
	assert_round_trip();
	assert_int_equal(check(), 0);
	assert_int_equal(conf.core.rate_mbps, 1000);
}

/* Each value separately, and 0 is a value. */
UNIT_CASE(san_sim_conf_rules_check__core_without_rate)
{
	assert_int_equal(set("link.mark=9 KiB"), 0);
	assert_int_equal(set("core.delay=0"), 0);
	assert_int_equal(set("core.mark=0"), 0);
	assert_int_equal(set("link.mtu=1500"), 0);
	assert_int_equal(set("core.mtu=0"), 0);
	assert_int_equal(set("core.buffer=64 KiB"), 0);
	assert_int_equal(check(), 0);
	assert_int_equal(conf.core.rate_mbps, conf.edge.rate_mbps);
	assert_int_equal(conf.core.delay_ns, 0);
	assert_int_equal(conf.core.mark_bytes, 0);
	assert_int_equal(conf.core.mtu, 0);
	assert_int_equal(conf.core.buffer_bytes, 64 << 10);
	assert_round_trip();
}

/* ---- names ---- */

UNIT_CASE(sim_conf_names__as_in_files)
{
	assert_string_equal(san_sim_conf_kinds[RTSAN_WR_CMP_SWAP - RTSAN_WR_SEND], "cmp_swap");
}
