/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One table of keys serves as reader, writer, range check and manual. A new key needs a field in
 * sim_conf.h and a line here.
 */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "pdl_win.h"
#include "san_time.h"
#include "sim_conf.h"
#include "tl.h"

#define US          SAN_NS_PER_US
#define MS          SAN_NS_PER_MS
#define SEC         SAN_NS_PER_S
#define ALWAYS      (3600 * SEC)
#define FAULT_WORD  "fault."
#define MTU_DEFAULT 4096
#define TEXT_MAX    160

enum key_type {
	KEY_NUMBER,
	KEY_TIME, /* ns, us, ms, s */
	KEY_SIZE, /* B, KiB, MiB, GiB */
	KEY_RATE, /* Mb/s, Gb/s; kept in Mb/s */
	KEY_PART, /* 0.01 or 1 %; kept in parts per million */
	KEY_BOOL,
	KEY_WORD, /* one of a list */
};

struct key {
	const char *section, *name;
	enum key_type type;
	size_t offset, size;
	uint64_t min, max;
	const char *const *words;
	const char *help;
};

static const char *const topo_words[] = {
	[SIM_TOPO_PAIR] = "pair",
	[SIM_TOPO_STAR] = "star",
	[SIM_TOPO_DUMBBELL] = "dumbbell",
	[SIM_TOPO_LEAF_SPINE] = "leaf-spine",
	[SIM_TOPO_MAX] = NULL,
};

static const char *const cc_words[] = {
	[SIM_CC_SWIFT] = "swift",
	[SIM_CC_DCQCN] = "dcqcn",
	[SIM_CC_FIXED] = "fixed",
	[SIM_CC_MAX] = NULL,
};

static const char *const policy_words[] = {
	[SIM_POLICY_RR] = "round-robin",
	[SIM_POLICY_SRPT] = "shortest",
	[SIM_POLICY_MAX] = NULL,
};

static const char *const pattern_words[] = {
	[SIM_PATTERN_PAIRS] = "pairs",
	[SIM_PATTERN_INCAST] = "incast",
	[SIM_PATTERN_FAN] = "fan",
	[SIM_PATTERN_ACROSS] = "across",
	[SIM_PATTERN_RANDOM] = "random",
	[SIM_PATTERN_PERMUTATION] = "permutation",
	[SIM_PATTERN_MAX] = NULL,
};

static const char *const solicit_words[] = {
	[SIM_SOLICIT_AUTO] = "auto",
	[SIM_SOLICIT_ALWAYS] = "always",
	[SIM_SOLICIT_NEVER] = "never",
	[SIM_SOLICIT_MAX] = NULL,
};

static const char *const fault_words[] = {
	[SIM_FAULT_NONE] = "none",
	[SIM_FAULT_LOSS] = "loss",
	[SIM_FAULT_BURST] = "burst",
	[SIM_FAULT_FLOW] = "flow",
	[SIM_FAULT_REORDER] = "reorder",
	[SIM_FAULT_DUPLICATE] = "duplicate",
	[SIM_FAULT_CORRUPT] = "corrupt",
	[SIM_FAULT_DOWN] = "down",
	[SIM_FAULT_PAUSE] = "pause",
	[SIM_FAULT_RESTART] = "restart",
	[SIM_FAULT_NARROW] = "narrow",
	[SIM_FAULT_FORGE] = "forge",
	[SIM_FAULT_MUTE] = "mute",
	[SIM_FAULT_MOVE] = "move",
	[SIM_FAULT_MAX] = NULL,
};

static const char *const kind_words[SIM_KINDS] = {
	"send",
	"push",
	"push-imm",
	"pull",
	"fetch-add",
	"cmp-swap",
};

#define AT(f)           offsetof(struct sim_conf, f), sizeof(((struct sim_conf *)0)->f)
#define NUM(f, lo, hi)  KEY_NUMBER, AT(f), lo, hi, NULL
#define TIME(f, lo, hi) KEY_TIME, AT(f), lo, hi, NULL
#define SIZE(f, lo, hi) KEY_SIZE, AT(f), lo, hi, NULL
#define RATE(f, lo)     KEY_RATE, AT(f), lo, 1600000, NULL
#define PART(f)         KEY_PART, AT(f), 0, SIM_PPM, NULL
#define BOOL(f)         KEY_BOOL, AT(f), 0, 1, NULL
#define WORD(f, w)      KEY_WORD, AT(f), 0, RTE_DIM(w) - 2, w
#define DEFAULT         "; 0: the stack's default"

static const struct key keys[] = {
	{"run", "seed", NUM(run.seed, 0, UINT64_MAX), "of everything that is drawn"},
	{"run", "warmup", TIME(run.warmup_ns, 0, ALWAYS), "of the load, not measured"},
	{"run", "duration", TIME(run.duration_ns, 1, ALWAYS), "requests are posted for so long"},
	{"run", "settle", TIME(run.settle_ns, 1, ALWAYS), "then everything must complete within"},
	{"run", "stall", TIME(run.stall_ns, 1, ALWAYS), "no progress for so long is an error"},
	{"run", "silence-max", TIME(run.silence_max_ns, 0, ALWAYS),
	 "no progress for so long is an error in spite of faults; 0: any"},
	{"run", "sample", TIME(run.sample_ns, 0, ALWAYS), "interval of time series; 0: none"},
	{"run", "check-every", NUM(run.check_every, 0, UINT32_MAX),
	 "rounds of a host between looks at all its invariants; 0: never"},
	{"run", "jain-min", PART(run.jain_min_ppm), "least Jain index of the connections; 0: any"},
	{"topology", "type", WORD(topo.type, topo_words), "of the network"},
	{"topology", "hosts", NUM(topo.hosts, 2, 65535), "in all"},
	{"topology", "leaves", NUM(topo.leaves, 1, 1024), "leaf-spine: switches with hosts"},
	{"topology", "spines", NUM(topo.spines, 1, 256), "leaf-spine: paths between leaves"},
	{"link", "rate", RATE(edge.rate_mbps, 1), "of a host's cable"},
	{"link", "delay", TIME(edge.delay_ns, 0, SEC), "propagation, one way"},
	{"link", "buffer", SIZE(edge.buffer_bytes, 2048, 1u << 31), "a switch's queue to a host"},
	{"link", "mark", SIZE(edge.mark_bytes, 0, 1u << 31), "CE with more queued; 0: never"},
	{"link", "mtu", NUM(edge.mtu, 0, 9000), "IP bytes, longer packets are lost; 0: any"},
	{"core", "rate", RATE(core.rate_mbps, 1), "between switches; without, that of [link]"},
	{"core", "delay", TIME(core.delay_ns, 0, SEC), "propagation; without, that of [link]"},
	{"core", "buffer", SIZE(core.buffer_bytes, 2048, 1u << 31),
	 "a switch's queue to a switch; without, that of [link]"},
	{"core", "mark", SIZE(core.mark_bytes, 0, 1u << 31),
	 "CE with more queued; 0: never; without, that of [link]"},
	{"core", "mtu", NUM(core.mtu, 0, 9000),
	 "IP bytes, longer packets are lost; 0: any; without, that of [link]"},
	{"host", "ipv6", BOOL(host.ipv6), "addresses"},
	{"host", "wrap", BOOL(host.wrap), "sequence numbers start shortly before 2^32"},
	{"host", "pack", BOOL(host.pack), "small requests share packets"},
	{"host", "express", BOOL(host.express), "ordinary packets go straight"},
	{"host", "mtu", NUM(host.mtu, 1024, 9000), "IP bytes of a packet"},
	{"host", "cc", WORD(host.cc, cc_words), "congestion control"},
	{"host", "policy", WORD(host.policy, policy_words), "whom to grant first"},
	{"host", "poll", TIME(host.poll_ns, 0, SEC), "a round of the polling loop takes"},
	{"host", "clock-drift", PART(host.clock_ppm_range), "clocks are wrong by at most"},
	{"host", "rx-ring", NUM(host.rx_ring, 32, 65536), "packets that wait for a host"},
	{"host", "nic-queue", SIZE(host.nic_bytes, 1024, 1u << 24), "a host's own queue"},
	{"host", "mbufs", NUM(host.mbufs, 0, 1u << 20), "of each host; 0: common, enough"},
	{"host", "cam", NUM(host.cam, 0, 1u << 24), "entries of the CAM, at least 8; 0: enough"},
	{"host", "req-window", NUM(host.req_win, SAN_WIN_MIN, SAN_WIN_REQ_MAX),
	 "packets, a power of two"},
	{"host", "data-window", NUM(host.data_win, SAN_WIN_MIN, SAN_WIN_DATA_MAX),
	 "packets, a power of two"},
	{"host", "first-window", NUM(host.first_win, SAN_WIN_MIN, SAN_WIN_DATA_MAX), "packets"},
	{"host", "max-txn", NUM(host.max_txn, 1, SAN_TL_N_MAX), "transactions of a connection"},
	{"host", "msg-limit", NUM(host.msg_limit, 1, UINT16_MAX), "unacknowledged messages"},
	{"host", "rnr-ms", NUM(host.rnr_ms, 1, UINT16_MAX), "ms to try a receiver not ready"},
	{"host", "keepalive-ms", NUM(host.keepalive_ms, 0, UINT16_MAX), "ms of silence; 0: never"},
	{"host", "pmtu", NUM(host.pmtu, 0, UINT16_MAX),
	 "full packets until a longer one is tried; 0: the path takes it"},
	{"host", "budget", NUM(host.budget_pkts, 0, 1u << 24), "packets in flight" DEFAULT},
	{"host", "incast", SIZE(host.incast_bytes, 0, 1u << 31), "granted, not placed" DEFAULT},
	{"host", "paths", SIZE(host.path_bytes, 0, 1u << 31), "likewise, on long paths" DEFAULT},
	{"host", "lapsed", SIZE(host.expired_bytes, 0, 1u << 31),
	 "expired grants that make a peer slow" DEFAULT},
	{"host", "grant", SIZE(host.grant_bytes, 0, 1u << 31), "one grant" DEFAULT},
	{"host", "solicit", SIZE(host.solicit_len, 0, 1u << 31), "solicited from here" DEFAULT},
	{"host", "solicit-level", NUM(host.solicit_level, 0, 256),
	 "congestion + 1 from which all is solicited" DEFAULT},
	{"host", "wide", NUM(host.max_wide, 0, SAN_CONNS_MAX), "with full windows at once" DEFAULT},
	{"host", "txns", NUM(host.max_txns, 0, 1u << 20), "beyond one of each such" DEFAULT},
	{"host", "rxns", NUM(host.max_rxns, 0, 1u << 20), "records of targets" DEFAULT},
	{"host", "held", NUM(host.max_held, 0, 1u << 20), "mbufs held for order" DEFAULT},
	{"host", "held-conn", NUM(host.max_held_conn, 0, 1u << 20), "by a connection" DEFAULT},
	{"host", "pull-piece", SIZE(host.pull_piece, 0, 1u << 30), "of a long pull" DEFAULT},
	{"host", "cwnd", NUM(host.cwnd, 0, 1024), "first congestion window" DEFAULT},
	{"host", "cwnd-max", NUM(host.cwnd_max, 0, 16384), "largest" DEFAULT},
	{"host", "ack-every", NUM(host.ack_every, 0, 65535), "packets" DEFAULT},
	{"host", "ooo", NUM(host.ooo_distance, 0, 255), "reordering allowance" DEFAULT},
	{"host", "retries", NUM(host.max_retries, 0, 255), "of a packet" DEFAULT},
	{"host", "plb", NUM(host.plb_bad_rtts, 0, 256),
	 "bad round trips + 1 until the path changes; 1: never" DEFAULT},
	{"host", "target", TIME(host.target_ns, 0, SEC), "delay of Swift" DEFAULT},
	{"host", "rto", TIME(host.rto_init_ns, 0, 60 * SEC), "first, up to rto-max" DEFAULT},
	{"host", "rto-min", TIME(host.rto_min_ns, 0, 60 * SEC), "timeout, up to rto-max" DEFAULT},
	{"host", "rto-max", TIME(host.rto_max_ns, 0, 60 * SEC), "timeout" DEFAULT},
	{"host", "tlp", TIME(host.tlp_min_ns, 0, 60 * SEC), "tail-loss probe" DEFAULT},
	{"host", "ack-delay", TIME(host.ack_delay_ns, 0, SEC), "coalescing" DEFAULT},
	{"host", "cm-retry", TIME(host.cm_retry_ns, 0, 60 * SEC), "of set-up" DEFAULT},
	{"host", "cm-drain", TIME(host.cm_drain_ns, 0, 600 * SEC), "of an end" DEFAULT},
	{"host", "timewait", TIME(host.cm_timewait_ns, 0, 600 * SEC), "after an end" DEFAULT},
	{"load", "pattern", WORD(load.pattern, pattern_words), "who talks to whom"},
	{"load", "connections", NUM(load.connections, 1, 1u << 20), "in all"},
	{"load", "unordered", PART(load.unordered_ppm), "share of unordered connections"},
	{"load", "streams", PART(load.streams_ppm), "share of connections that are streams"},
	{"load", "relaxed", BOOL(load.relaxed), "ordered connections place on arrival"},
	{"load", "both-ways", BOOL(load.both_ways), "the accepting side initiates, too"},
	{"load", "solicit", WORD(load.solicit, solicit_words), "pushes wait for grants"},
	{"load", "send", NUM(load.weights[0], 0, 1000), "weight of the kind"},
	{"load", "push", NUM(load.weights[1], 0, 1000), "weight of the kind"},
	{"load", "push-imm", NUM(load.weights[2], 0, 1000), "weight of the kind"},
	{"load", "pull", NUM(load.weights[3], 0, 1000), "weight of the kind"},
	{"load", "fetch-add", NUM(load.weights[4], 0, 1000), "weight of the kind"},
	{"load", "cmp-swap", NUM(load.weights[5], 0, 1000), "weight of the kind"},
	{"load", "size-min", SIZE(load.size_min, 1, 1u << 28), "of a request"},
	{"load", "size-max", SIZE(load.size_max, 1, 1u << 28), "of a request"},
	{"load", "depth", NUM(load.depth, 1, 1024), "requests of a connection at once"},
	{"load", "ops", NUM(load.ops, 0, UINT32_MAX), "requests of each side; 0: no end"},
	{"load", "start-step", TIME(load.start_step_ns, 0, SEC), "each next one starts later by"},
	{"load", "stop-step", TIME(load.stop_step_ns, 0, SEC), "each next one stops earlier by"},
	{"load", "recv-delay", TIME(load.recv_delay_ns, 0, SEC), "receives come late by up to"},
	{"load", "bad-key", PART(load.bad_ppm), "requests with a wrong key"},
	{"load", "revoke", TIME(load.revoke_ns, 0, ALWAYS), "regions live about so long; 0: on"},
	{"load", "reconnect", BOOL(load.reconnect), "what broke is connected again"},
};

#undef AT
#define AT(f) offsetof(struct sim_fault_conf, f), sizeof(((struct sim_fault_conf *)0)->f)

static const struct key fault_keys[] = {
	{"fault.NAME", "kind", WORD(kind, fault_words), "what happens"},
	{"fault.NAME", "at", TIME(at_ns, 0, ALWAYS), "after the load starts"},
	{"fault.NAME", "for", TIME(for_ns, 0, ALWAYS), "0: to the end"},
	{"fault.NAME", "rate", PART(rate_ppm), "of packets, or of flows"},
	{"fault.NAME", "arg", TIME(arg_ns, 0, SEC), "reorder, duplicate: later by up to"},
	{"fault.NAME", "mtu", NUM(mtu, 0, 9000), "narrow: IP bytes, longer packets are lost"},
};

const char *
san_sim_conf_fault_name(uint8_t kind)
{
	return fault_words[kind];
}

const char *
san_sim_conf_kind_name(uint32_t kind)
{
	return kind_words[kind];
}

void
san_sim_conf_default(struct sim_conf *conf)
{
	*conf = (struct sim_conf){
		.run = {.seed = 1,
			.duration_ns = 10 * MS,
			.settle_ns = 30 * SEC,
			.stall_ns = 10 * SEC,
			.check_every = 64},
		.topo = {.type = SIM_TOPO_PAIR, .hosts = 2, .leaves = 2, .spines = 2},
		.edge = {.rate_mbps = 100000, .delay_ns = US, .buffer_bytes = 4 << 20},
		.core = {.rate_mbps = UINT32_MAX,
			 .delay_ns = UINT64_MAX,
			 .buffer_bytes = UINT32_MAX,
			 .mark_bytes = UINT32_MAX,
			 .mtu = UINT32_MAX},
		.host = {.pack = true,
			 .express = true,
			 .mtu = MTU_DEFAULT,
			 .rx_ring = 1024,
			 .nic_bytes = 32 << 10,
			 .req_win = 256,
			 .data_win = 1024,
			 .first_win = 1024,
			 .max_txn = 256,
			 .msg_limit = 256,
			 .rnr_ms = 10000,
			 .keepalive_ms = 1000,
			 .pmtu = 64},
		.load = {.connections = 1,
			 .weights = {0, 1},
			 .size_min = 64 << 10,
			 .size_max = 64 << 10,
			 .depth = 16},
	};
}

/* ---- values ---- */

static const struct unit {
	enum key_type type;
	const char *name;
	uint64_t factor;
} units[] = {
	{KEY_TIME, "ns", 1},
	{KEY_TIME, "us", US},
	{KEY_TIME, "ms", MS},
	{KEY_TIME, "s", SEC},
	{KEY_SIZE, "", 1},
	{KEY_SIZE, "B", 1},
	{KEY_SIZE, "KiB", 1 << 10},
	{KEY_SIZE, "MiB", 1 << 20},
	{KEY_SIZE, "GiB", 1 << 30},
	{KEY_RATE, "Mb/s", 1},
	{KEY_RATE, "Gb/s", 1000},
	{KEY_PART, "", SIM_PPM},
	{KEY_PART, "%", SIM_PPM / 100},
	{KEY_NUMBER, "", 1},
};

/* "1.5 us": digits after the point count as far as the unit is divisible. */
static bool
parse_quantity(const struct key *k, const char *text, uint64_t *out)
{
	uint64_t whole, part = 0, scale = 1;
	bool is_zero;
	char *end;
	size_t i;

	errno = 0;
	whole = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || errno != 0)
		return false;
	if (*end == '.' && k->type != KEY_NUMBER)
		for (end++; *end >= '0' && *end <= '9' && scale < SEC; end++, scale *= 10)
			part = part * 10 + (uint64_t)(*end - '0');
	while (*end == ' ')
		end++;
	is_zero = whole == 0 && part == 0;
	if (is_zero && *end == '\0') {
		*out = 0; /* 0 of any unit */
		return true;
	}
	for (i = 0; i < RTE_DIM(units); i++) {
		if (units[i].type != k->type || strcmp(units[i].name, end) != 0)
			continue;
		part = part * units[i].factor / scale;
		if (whole > (UINT64_MAX - part) / units[i].factor)
			return false;
		*out = whole * units[i].factor + part;
		/* a small value must not round to 0, which often means "default" */
		return is_zero == (*out == 0);
	}
	return false;
}

static bool
parse_word(const struct key *k, const char *text, uint64_t *out)
{
	uint64_t i;

	for (i = 0; i <= k->max; i++) {
		if (strcmp(k->words[i], text) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}

static bool
parse_value(const struct key *k, const char *text, uint64_t *out)
{
	static const char *const bools[] = {"no", "yes"};
	const struct key word = {.words = bools, .max = 1};

	if (k->type == KEY_WORD)
		return parse_word(k, text, out);
	if (k->type == KEY_BOOL)
		return parse_word(&word, text, out);
	return parse_quantity(k, text, out) && *out >= k->min && *out <= k->max;
}

/* A value out of the key's range marks a key that was not set, because 0 may be valid. */
static bool
is_set(const struct key *k, uint64_t v)
{
	return v <= k->max;
}

/* Use the largest unit that is exact. */
static void
format_value(const struct key *k, uint64_t v, char *buf, size_t len)
{
	const struct unit *best = NULL;
	size_t i;

	if (!is_set(k, v)) {
		snprintf(buf, len, "(not set)");
		return;
	}
	if (k->type == KEY_WORD || k->type == KEY_BOOL) {
		snprintf(buf, len, "%s",
			 k->type == KEY_WORD ? k->words[v] :
				 v != 0      ? "yes" :
					       "no");
		return;
	}
	if (k->type == KEY_PART) {
		snprintf(buf, len, "%" PRIu64 ".%06" PRIu64, v / SIM_PPM, v % SIM_PPM);
		return;
	}
	for (i = 0; i < RTE_DIM(units); i++)
		if (units[i].type == k->type && v % units[i].factor == 0)
			best = &units[i];
	if (v == 0 || best == NULL)
		snprintf(buf, len, "%" PRIu64, v);
	else
		snprintf(buf, len, "%" PRIu64 "%s%s", v / best->factor,
			 best->name[0] != '\0' ? " " : "", best->name);
}

static uint64_t
get_field(const void *base, const struct key *k)
{
	uint64_t v = 0;

	memcpy(&v, (const char *)base + k->offset, k->size); /* little-endian, like DPDK's x86 */
	return v;
}

static void
sim_conf_explain_key(const struct key *k, char *buf, size_t len)
{
	char lo[TEXT_MAX / 4], hi[TEXT_MAX / 4];
	size_t used = 0;
	uint64_t i;

	if (k->type == KEY_BOOL) {
		snprintf(buf, len, "yes or no");
	} else if (k->type == KEY_WORD) {
		for (i = 0; i <= k->max && used < len; i++)
			used += (size_t)snprintf(&buf[used], len - used, "%s%s", i > 0 ? ", " : "",
						 k->words[i]);
	} else {
		format_value(k, k->min, lo, sizeof(lo));
		format_value(k, k->max, hi, sizeof(hi));
		snprintf(buf, len, "%s to %s", lo, hi);
	}
}

/* The form of a value, for error messages. */
static const char *const type_texts[] = {
	[KEY_NUMBER] = "",
	[KEY_TIME] = "a time with ns, us, ms or s, of ",
	[KEY_SIZE] = "a size in B, KiB, MiB or GiB, of ",
	[KEY_RATE] = "a rate with Mb/s or Gb/s, of ",
	[KEY_PART] = "a part, as 0.01 or 1 %, of ",
	[KEY_BOOL] = "",
	[KEY_WORD] = "",
};

static int
set_field(void *base, const struct key *k, const char *section, const char *text, char *err,
	  size_t err_len)
{
	char right[TEXT_MAX];
	uint64_t v;

	if (!parse_value(k, text, &v)) {
		sim_conf_explain_key(k, right, sizeof(right));
		snprintf(err, err_len, "%s.%s: \"%s\" is not %s%s", section, k->name, text,
			 type_texts[k->type], right);
		return -EINVAL;
	}
	memcpy((char *)base + k->offset, &v, k->size);
	return 0;
}

/* ---- keys ---- */

static const struct key *
find_key(const struct key *table, size_t n, const char *section, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(table[i].section, section) == 0 && strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

/* Defaults of a fault section. */
static const struct sim_fault_conf no_fault = {
	.kind = SIM_FAULT_MAX,
	.where = "all",
	.rate_ppm = UINT32_MAX,
};

/* True if the name can be written to a file and read again. */
static bool
is_name(const char *text)
{
	size_t i;

	for (i = 0; text[i] != '\0'; i++)
		if (!isalnum((unsigned char)text[i]) && strchr("-_.", text[i]) == NULL)
			return false;
	return i > 0 && i < SIM_NAME_MAX;
}

static bool
is_fault(const char *section)
{
	return strncmp(section, FAULT_WORD, strlen(FAULT_WORD)) == 0;
}

static struct sim_fault_conf *
find_fault(struct sim_conf *conf, const char *name)
{
	struct sim_fault_conf *f;
	uint32_t i;

	for (i = 0; i < conf->nb_faults; i++)
		if (strcmp(conf->faults[i].name, name) == 0)
			return &conf->faults[i];
	if (conf->nb_faults == SIM_FAULTS_MAX || !is_name(name))
		return NULL;
	f = &conf->faults[conf->nb_faults++];
	*f = no_fault;
	snprintf(f->name, sizeof(f->name), "%s", name);
	return f;
}

/* Check the form. The existence of the host or spine is checked with the topology. */
static bool
sim_conf_is_place(const char *text)
{
	static const char *const forms[] = {
		"all%n",
		"host:%*[0-9]%n",
		"spine:%*[0-9]%n",
		"trunk%n",
	};
	const char *way;
	size_t i;
	int len;

	for (i = 0; i < RTE_DIM(forms); i++) {
		len = 0;
		sscanf(text, forms[i], &len);
		way = text + len;
		if (len > 0 &&
		    (*way == '\0' || (i > 0 && (!strcmp(way, ":up") || !strcmp(way, ":down")))))
			return strlen(text) < SIM_NAME_MAX;
	}
	return false;
}

static int
set_where(struct sim_fault_conf *f, const char *value, char *err, size_t err_len)
{
	if (!sim_conf_is_place(value)) {
		snprintf(err, err_len, "fault.%s.where: \"%s\" is not all, or host:N, spine:N or "
				       "trunk, these with :up or :down or nothing behind them",
			 f->name, value);
		return -EINVAL;
	}
	snprintf(f->where, sizeof(f->where), "%s", value);
	return 0;
}

static struct sim_fault_conf *
want_fault(struct sim_conf *conf, const char *section, char *err, size_t err_len)
{
	struct sim_fault_conf *f = find_fault(conf, section + strlen(FAULT_WORD));

	if (f == NULL)
		snprintf(err, err_len, "%s: more than %d faults, or a name not of 1 to %d letters, "
				       "digits, -, _ or .",
			 section, SIM_FAULTS_MAX, SIM_NAME_MAX - 1);
	return f;
}

static int
set_fault(struct sim_conf *conf, const char *section, const char *name, const char *value,
	  char *err, size_t err_len)
{
	struct sim_fault_conf *f = want_fault(conf, section, err, err_len);
	const struct key *k = find_key(fault_keys, RTE_DIM(fault_keys), "fault.NAME", name);

	if (f == NULL)
		return -EINVAL;
	if (k != NULL)
		return set_field(f, k, section, value, err, err_len);
	if (strcmp(name, "where") == 0)
		return set_where(f, value, err, err_len);
	snprintf(err, err_len, "%s: unknown key \"%s\"; there are kind, where, at, for, rate, arg",
		 section, name);
	return -EINVAL;
}

static int
check_section(const char *section, char *err, size_t err_len)
{
	size_t i;

	for (i = 0; i < RTE_DIM(keys); i++)
		if (strcmp(keys[i].section, section) == 0)
			return 0;
	if (strcmp(section, "fault") == 0)
		snprintf(err, err_len, "faults have names: [fault.NAME]");
	else
		snprintf(err, err_len, "unknown section [%s]; sansim --keys lists all", section);
	return -EINVAL;
}

int
san_sim_conf_enter(struct sim_conf *conf, const char *section, char *err, size_t err_len)
{
	if (is_fault(section))
		return want_fault(conf, section, err, err_len) == NULL ? -EINVAL : 0;
	return check_section(section, err, err_len);
}

int
san_sim_conf_set_key(struct sim_conf *conf, const char *section, const char *name,
		     const char *value, char *err, size_t err_len)
{
	const struct key *k;

	if (is_fault(section))
		return set_fault(conf, section, name, value, err, err_len);
	if (check_section(section, err, err_len) != 0)
		return -EINVAL;
	k = find_key(keys, RTE_DIM(keys), section, name);
	if (k == NULL) {
		snprintf(err, err_len, "unknown key \"%s\" in [%s]; sansim --keys lists all", name,
			 section);
		return -EINVAL;
	}
	return set_field(conf, k, section, value, err, err_len);
}

int
san_sim_conf_set(struct sim_conf *conf, const char *word, char *err, size_t err_len)
{
	char buf[TEXT_MAX];
	char *value, *name;

	if (snprintf(buf, sizeof(buf), "%s", word) >= (int)sizeof(buf) ||
	    (value = strchr(buf, '=')) == NULL) {
		snprintf(err, err_len, "\"%s\" is not section.key=value", word);
		return -EINVAL;
	}
	*value++ = '\0';
	name = strrchr(buf, '.');
	if (name == NULL) {
		snprintf(err, err_len, "\"%s\" is not section.key=value", word);
		return -EINVAL;
	}
	*name++ = '\0';
	return san_sim_conf_set_key(conf, buf, name, value, err, err_len);
}

/* ---- writing ---- */

static void
print_key(FILE *out, const struct key *k, const void *base)
{
	uint64_t v = get_field(base, k);
	char text[TEXT_MAX];

	if (!is_set(k, v))
		return;
	format_value(k, v, text, sizeof(text));
	fprintf(out, "%s = %s\n", k->name, text);
}

void
san_sim_conf_print(const struct sim_conf *conf, FILE *out)
{
	const char *section = "";
	size_t i;
	uint32_t f;

	for (i = 0; i < RTE_DIM(keys); i++) {
		if (strcmp(section, keys[i].section) != 0)
			fprintf(out, "%s[%s]\n", i > 0 ? "\n" : "", keys[i].section);
		section = keys[i].section;
		print_key(out, &keys[i], conf);
	}
	for (f = 0; f < conf->nb_faults; f++) {
		fprintf(out, "\n[fault.%s]\nwhere = %s\n", conf->faults[f].name,
			conf->faults[f].where);
		for (i = 0; i < RTE_DIM(fault_keys); i++)
			print_key(out, &fault_keys[i], &conf->faults[f]);
	}
}

void
san_sim_conf_text(const struct sim_conf *conf, const char *key, char *buf, size_t len)
{
	const char *name = strchr(key, '.') + 1;
	size_t i, section = (size_t)(name - key) - 1;
	char value[TEXT_MAX];

	for (i = 0; i < RTE_DIM(keys); i++) {
		if (strncmp(keys[i].section, key, section) != 0 ||
		    keys[i].section[section] != '\0' || strcmp(keys[i].name, name) != 0)
			continue;
		format_value(&keys[i], get_field(conf, &keys[i]), value, sizeof(value));
		snprintf(buf, len, "%s %s", key, value);
	}
}

static void
help_keys(FILE *out, const struct key *table, size_t n, const void *defaults)
{
	char range[TEXT_MAX], text[TEXT_MAX];
	size_t i;

	for (i = 0; i < n; i++) {
		sim_conf_explain_key(&table[i], range, sizeof(range));
		format_value(&table[i], get_field(defaults, &table[i]), text, sizeof(text));
		fprintf(out, "%s.%s = %s\n\t%s (%s)\n", table[i].section, table[i].name, text,
			table[i].help, range);
	}
}

void
san_sim_conf_help(FILE *out)
{
	struct sim_conf conf;

	san_sim_conf_default(&conf);
	help_keys(out, keys, RTE_DIM(keys), &conf);
	fprintf(out, "Sections [fault.NAME], as many as %d:\n", SIM_FAULTS_MAX);
	help_keys(out, fault_keys, RTE_DIM(fault_keys), &no_fault);
	fputs("fault.NAME.where = all\n\tall, host:N, spine:N, trunk; with :up only from there, "
	      "with :down only to there\n",
	      out);
}
