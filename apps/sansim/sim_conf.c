/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * One table of keys serves as reader, writer, range check and manual. A new key needs a field in
 * sim_conf.h and a line here. Rules for combinations of keys follow at the end.
 */

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_ether.h>

#include "core_keys.h"
#include "ini.h"
#include "sim_conf.h"

#define US           SAN_NS_PER_US
#define MS           SAN_NS_PER_MS
#define SEC          SAN_NS_PER_S
#define ALWAYS       (3600 * SEC)
#define FAULT_WORD   "fault."
#define MTU_DEFAULT  4096
#define IPV6_MTU_MIN 1280
#define CAM_MIN      8 /* minimum of its hash table */
#define TEXT_MAX     160
#define PLACES       "all, or host:N, spine:N or trunk, these with :up or :down or neither"

#define WORD_OF(name, word)            word,
#define WORD_OF_FAULT(name, word, ...) word,

static const char *const topo_words[] = {SIM_TOPOS(WORD_OF)};
static const char *const pattern_words[] = {SIM_PATTERNS(WORD_OF)};
static const char *const solicit_words[] = {SIM_SOLICITS(WORD_OF)};
static const char *const fault_words[] = {SIM_FAULTS(WORD_OF_FAULT)};
static const char *const lie_words[] = {SIM_LIES(WORD_OF)};
const char *const san_sim_conf_kinds[SIM_KINDS] = {"send", "push", "push_imm", "pull", "fetch_add",
						   "cmp_swap"};

#define NUM(f, lo, hi)  SAN_KEY_NUM(BASE, f, lo, hi)
#define TIME(f, lo, hi) SAN_KEY_NS(BASE, f, lo, hi)
#define SIZE(f, lo, hi) SAN_KEY_BYTES(BASE, f, lo, hi)
#define RATE(f, lo)     SAN_KEY_MBPS(BASE, f, lo, 1600000)
#define PART(f)         SAN_KEY_RATIO(BASE, f, SIM_PPM)
#define BOOL(f)         SAN_KEY_ON_OFF(BASE, f)
#define WORD(f, w)      SAN_KEY_CHOICE(BASE, f, w)

#define BASE sim_conf
static const struct san_key keys[] = {
	{"run", "seed", "seed of all random choices of the run", NUM(run.seed, 0, UINT64_MAX)},
	{"run", "warmup", "time of load before measurement begins", TIME(run.warmup_ns, 0, ALWAYS)},
	{"run", "duration", "time for which requests are posted", TIME(run.duration_ns, 1, ALWAYS)},
	{"run", "settle", "longest time after the load until all requests have completed",
	 TIME(run.settle_ns, 1, ALWAYS)},
	{"run", "stall", "longest time that a connection may have requests and no completion",
	 TIME(run.stall_ns, 1, ALWAYS)},
	{"run", "silence_max", "longest time without a completion, also during faults; 0: any",
	 TIME(run.silence_max_ns, 0, ALWAYS)},
	{"run", "sample", "interval of the time series; 0: none", TIME(run.sample_ns, 0, ALWAYS)},
	{"run", "check_every", "rounds of a host between checks of all its invariants; 0: never",
	 NUM(run.check_every, 0, UINT32_MAX)},
	{"run", "jain_min", "least Jain index of the bytes of all sides; 0: any",
	 PART(run.jain_min_ppm)},
	{"topology", "type", "see above", WORD(topo.type, topo_words)},
	{"topology", "hosts", "number of hosts", NUM(topo.hosts, 2, 65535)},
	{"topology", "leaves", "leaf-spine: switches with hosts", NUM(topo.leaves, 1, 1024)},
	{"topology", "spines", "leaf-spine: paths between leaves", NUM(topo.spines, 1, 256)},
	{"link", "rate", "rate of the cable", RATE(edge.rate_mbps, 1)},
	{"link", "delay", "propagation, one way", TIME(edge.delay_ns, 0, SEC)},
	{"link", "doubling",
	 "the cable of each host beyond host 1 is twice as long as the one before",
	 BOOL(topo.doubling)},
	{"link", "buffer", "a switch's queue to a host; what does not fit is dropped",
	 SIZE(edge.buffer_bytes, 2048, 1u << 31)},
	{"link", "mark", "bytes in the queue above which packets are marked CE; 0: never",
	 SIZE(edge.mark_bytes, 0, 1u << 31)},
	{"link", "mtu", "IP bytes; longer packets are lost silently; 0: no limit",
	 NUM(edge.mtu, 0, 9000)},
	{"core", "rate", "rate of the cable", RATE(core.rate_mbps, 1)},
	{"core", "delay", "propagation, one way", TIME(core.delay_ns, 0, SEC)},
	{"core", "buffer", "a switch's queue to a switch", SIZE(core.buffer_bytes, 2048, 1u << 31)},
	{"core", "mark", "as in [link]", SIZE(core.mark_bytes, 0, 1u << 31)},
	{"core", "mtu", "as in [link]", NUM(core.mtu, 0, 9000)},
	{"host", "ipv6", "addresses are IPv6", BOOL(host.ipv6)},
	{"host", "wrap", "sequence numbers start shortly before 2^32", BOOL(host.wrap)},
	{"host", "express", "ordinary packets go straight through all layers",
	 BOOL(host.core.express)},
	{"host", "mtu", "IP bytes of a packet", NUM(host.mtu, 1024, 9000)},
	{"host", "poll", "duration of a round of the polling loop; packets wait for its end",
	 TIME(host.poll_ns, 0, SEC)},
	{"host", "clock_drift", "largest error of the rate of a clock", PART(host.clock_ppm_range)},
	{"host", "rx_ring", "packets that may wait for a host; further ones are lost",
	 NUM(host.rx_ring, 32, 65536)},
	{"host", "nic_queue", "bytes that a host queues on its own port",
	 SIZE(host.nic_bytes, 1024, 1u << 24)},
	{"host", "mbufs", "mbufs of a host, in its own pool; 0: a common pool, large enough",
	 NUM(host.mbufs, 0, 1u << 20)},
	{"host", "cam", "entries of the reorder engine's table, at least 8; 0: enough",
	 NUM(host.cam, 0, 1u << 24)},
	{"host", "req_window", "requests that this side can receive; a power of two",
	 NUM(host.conn.req_win, SAN_WIN_MIN, SAN_WIN_REQ_MAX)},
	SAN_CONN_KEYS("host", sim_conf, host.conn),
	SAN_CORE_KEYS("host", sim_conf, host.core),
	{"host", "timewait", "time for which an ended connection keeps its place",
	 TIME(host.core.cm.timewait_ns, MS, 600 * SEC)},
	{"load", "pattern", "which hosts talk to each other, see above",
	 WORD(load.pattern, pattern_words)},
	{"load", "connections", "number of connections", NUM(load.connections, 1, 1u << 20)},
	{"load", "unordered", "part of connections that are unordered", PART(load.unordered_ppm)},
	{"load", "streams", "part of connections that are streams", PART(load.streams_ppm)},
	{"load", "relaxed", "ordered connections place data on arrival", BOOL(load.relaxed)},
	{"load", "both_ways", "the accepting side initiates, too", BOOL(load.both_ways)},
	{"load", "solicit", "pushes wait for grants", WORD(load.solicit, solicit_words)},
	{"load", "send", "weight of sends among requests", NUM(load.weights[0], 0, 1000)},
	{"load", "push", "weight of pushes", NUM(load.weights[1], 0, 1000)},
	{"load", "push_imm", "weight of pushes with immediate", NUM(load.weights[2], 0, 1000)},
	{"load", "pull", "weight of pulls", NUM(load.weights[3], 0, 1000)},
	{"load", "fetch_add", "weight of fetch-and-adds", NUM(load.weights[4], 0, 1000)},
	{"load", "cmp_swap", "weight of compare-and-swaps", NUM(load.weights[5], 0, 1000)},
	{"load", "size_min", "least bytes of a request; all magnitudes are equally frequent",
	 SIZE(load.size_min, 1, 1u << 28)},
	{"load", "size_max", "most bytes of a request", SIZE(load.size_max, 1, 1u << 28)},
	{"load", "depth", "requests in flight of a connection", NUM(load.depth, 1, 1024)},
	{"load", "ops", "requests of each side; 0: until the duration is over",
	 NUM(load.ops, 0, UINT32_MAX)},
	{"load", "start_step", "delay of the start of each further connection",
	 TIME(load.start_step_ns, 0, SEC)},
	{"load", "stop_step", "each further connection ends earlier by this time",
	 TIME(load.stop_step_ns, 0, SEC)},
	{"load", "recv_delay", "longest delay until a receive is posted again",
	 TIME(load.recv_delay_ns, 0, SEC)},
	{"load", "bad_key", "part of requests that name a wrong key", PART(load.bad_ppm)},
	{"load", "revoke", "mean interval between new keys of a target's region; 0: never",
	 TIME(load.revoke_ns, 0, ALWAYS)},
	{"load", "reconnect", "broken connections are set up again", BOOL(load.reconnect)},
	{0},
};

#undef BASE
#define BASE sim_fault_conf

static const char *set_where(void *fault, const char *text);

static const struct san_key fault_keys[] = {
	{"fault.NAME", "kind", "see FAULTS", WORD(kind, fault_words)},
	{"fault.NAME", "where", "see PLACES", SAN_KEY_AT(sim_fault_conf, where),
	 SAN_KEY_READ(set_where, PLACES)},
	{"fault.NAME", "at", "time after the load starts", TIME(at_ns, 0, ALWAYS)},
	{"fault.NAME", "for", "duration; 0: to the end of the load", TIME(for_ns, 0, ALWAYS)},
	{"fault.NAME", "rate", "part of packets, or of flows, that the fault affects",
	 PART(rate_ppm)},
	{"fault.NAME", "arg", "reorder, duplicate: greatest delay of a packet",
	 TIME(arg_ns, 0, SEC)},
	{"fault.NAME", "mtu", "narrow: IP bytes; longer packets are lost", NUM(mtu, 0, 9000)},
	{"fault.NAME", "lie", "lie: see FAULTS", WORD(lie, lie_words)},
	{0},
};

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
		.host = {.mtu = MTU_DEFAULT,
			 .rx_ring = 1024,
			 .nic_bytes = 32 << 10,
			 .conn = {.req_win = 256,
				  .data_win = 1024,
				  .first_win = 1024,
				  .max_txn = 256,
				  .msg_limit = 256,
				  .rnr_ms = 10000,
				  .keepalive_ms = 1000}},
		.load = {.connections = 1,
			 .weights = {0, 1},
			 .size_min = 64 << 10,
			 .size_max = 64 << 10,
			 .depth = 16},
	};
	san_core_conf_default(&conf->host.core, 0, 0);
}

/* ---- faults ---- */

/* Defaults of a fault section. */
static const struct sim_fault_conf no_fault = {
	.kind = SIM_FAULT_MAX, .where = "all", .rate_ppm = UINT32_MAX};

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

bool
san_sim_conf_place(const char *text, struct sim_place *p)
{
	static const char *const words[] = {"all", "host:", "spine:", "trunk"};
	const char *way = NULL;
	char *end;
	uint32_t i;

	*p = (struct sim_place){0};
	for (i = 0; i < RTE_DIM(words) && way == NULL; i++) {
		p->kind = i;
		if (strncmp(text, words[i], strlen(words[i])) == 0)
			way = text + strlen(words[i]);
	}
	if (way != NULL && way[-1] == ':') {
		if (!isdigit((unsigned char)*way))
			return false;
		p->id = (uint32_t)RTE_MIN(strtoull(way, &end, 10), (unsigned long long)UINT32_MAX);
		way = end;
	}
	if (way == NULL || strlen(text) >= SIM_NAME_MAX)
		return false;
	p->from = *way == '\0' || strcmp(way, ":up") == 0;
	p->to = *way == '\0' || strcmp(way, ":down") == 0;
	return p->kind == SIM_PLACE_ALL ? *way == '\0' : p->from || p->to;
}

static const char *
set_where(void *fault, const char *text)
{
	struct sim_fault_conf *f = fault;
	struct sim_place p;

	if (!san_sim_conf_place(text, &p))
		return PLACES;
	memset(f->where, 0, sizeof(f->where));
	strcpy(f->where, text);
	return NULL;
}

/* Find the fault of *section*, or add it. NULL: that is not possible, see *err*. */
static struct sim_fault_conf *
want_fault(struct sim_conf *conf, const char *section, char *err, size_t err_len)
{
	const char *name = section + strlen(FAULT_WORD);
	struct sim_fault_conf *f;
	uint32_t i;

	for (i = 0; i < conf->nb_faults; i++)
		if (strcmp(conf->faults[i].name, name) == 0)
			return &conf->faults[i];
	if (conf->nb_faults == SIM_FAULTS_MAX || !is_name(name)) {
		snprintf(err, err_len, "%s: more than %d faults, or a name not of 1 to %d letters, "
				       "digits, -, _ or .",
			 section, SIM_FAULTS_MAX, SIM_NAME_MAX - 1);
		return NULL;
	}
	f = &conf->faults[conf->nb_faults++];
	*f = no_fault;
	snprintf(f->name, sizeof(f->name), "%s", name);
	return f;
}

/* ---- keys ---- */

static int
enter_section(void *conf, const char *section, char *err, size_t err_len)
{
	const struct san_key *k;

	if (is_fault(section))
		return want_fault(conf, section, err, err_len) == NULL ? -EINVAL : 0;
	for (k = keys; k->name != NULL; k++)
		if (strcmp(k->section, section) == 0)
			return 0;
	if (strcmp(section, "fault") == 0)
		return san_key_fail(err, err_len, "faults have names: [fault.NAME]");
	return san_key_fail(err, err_len, "unknown section [%s]; sansim --keys lists all", section);
}

static int
sim_conf_set_key(void *conf, const char *section, const char *name, const char *value, char *err,
		 size_t err_len)
{
	bool of_fault = is_fault(section);
	const struct san_key *k = of_fault ? san_key_find(fault_keys, NULL, name) :
					     san_key_find(keys, section, name);
	char full[TEXT_MAX];

	if (enter_section(conf, section, err, err_len) != 0)
		return -EINVAL;
	if (k == NULL)
		return san_key_fail(err, err_len,
				    "unknown key \"%s\" in [%s]; sansim --keys lists all", name,
				    section);
	snprintf(full, sizeof(full), "%s.%s", section, name);
	return san_key_set(k, of_fault ? want_fault(conf, section, err, err_len) : conf, full,
			   value, err, err_len);
}

int
san_sim_conf_set(struct sim_conf *conf, const char *word, char *err, size_t err_len)
{
	char buf[TEXT_MAX];
	char *value = NULL, *name = NULL;

	if (snprintf(buf, sizeof(buf), "%s", word) < (int)sizeof(buf))
		value = strchr(buf, '=');
	if (value != NULL) {
		*value++ = '\0';
		name = strrchr(buf, '.');
	}
	if (name == NULL)
		return san_key_fail(err, err_len, "\"%s\" is not section.key=value", word);
	*name++ = '\0';
	return sim_conf_set_key(conf, buf, name, value, err, err_len);
}

int
san_sim_conf_file_load(struct sim_conf *conf, const char *path, char *err, size_t err_len)
{
	const struct ini ini = {.arg = conf, .enter = enter_section, .set = sim_conf_set_key};

	return san_ini_load(&ini, path, err, err_len);
}

/* ---- writing ---- */

void
san_sim_conf_print(const struct sim_conf *conf, FILE *out)
{
	char section[TEXT_MAX];
	uint32_t f;

	san_ini_write(out, keys, conf, NULL);
	for (f = 0; f < conf->nb_faults; f++) {
		snprintf(section, sizeof(section), FAULT_WORD "%s", conf->faults[f].name);
		san_ini_write(out, fault_keys, &conf->faults[f], section);
	}
}

void
san_sim_conf_help(FILE *out)
{
	struct sim_conf conf;

	san_sim_conf_default(&conf);
	san_ini_explain(out, keys, &conf);
	fprintf(out, "\n# as many as %d of these sections\n", SIM_FAULTS_MAX);
	san_ini_explain(out, fault_keys, &no_fault);
}

/* ---- rules for combinations of keys ---- */

#define MORE  "is more than"
#define LESS  "is less than a packet of"
#define POWER "is not a power of two"

/* A key with its value, as "load.size_min 1MiB". */
static void
conf_describe_key(const struct sim_conf *conf, const char *key, char *buf, size_t len)
{
	char section[TEXT_MAX], value[SAN_KEY_TEXT];
	const char *name = strchr(key, '.') + 1;

	snprintf(section, sizeof(section), "%.*s", (int)(name - key) - 1, key);
	san_key_value(san_key_find(keys, section, name), conf, value, sizeof(value));
	snprintf(buf, len, "%s %s", key, value);
}

static int
check_keys(const struct sim_conf *c, char *err, size_t err_len)
{
	const struct sim_topo_conf *topo = &c->topo;
	const struct sim_load_conf *load = &c->load;
	const struct sim_host_conf *host = &c->host;
	const struct san_pdl_conf *pdl = &host->core.pdl;
	uint32_t frame = host->mtu + (uint32_t)RTE_ETHER_HDR_LEN, weights = 0;
	char first[TEXT_MAX + SAN_KEY_TEXT], second[TEXT_MAX + SAN_KEY_TEXT] = "";
	size_t i;

	for (i = 0; i < SIM_KINDS; i++)
		weights |= load->weights[i];

	const struct {
		bool is_broken;
		const char *key, *how, *other; /* "load.size_min 2B is more than ..." */
	} rules[] = {
		{topo->type == SIM_TOPO_PAIR && topo->hosts != 2, "topology.hosts",
		 "is not the 2 of", "topology.type"},
		{topo->type == SIM_TOPO_LEAF_SPINE && topo->leaves > topo->hosts, "topology.leaves",
		 MORE, "topology.hosts"},
		{load->pattern == SIM_PATTERN_ACROSS && topo->hosts % 2 != 0, "load.pattern",
		 "wants an even number, not", "topology.hosts"},
		{load->size_min > load->size_max, "load.size_min", MORE, "load.size_max"},
		{c->run.warmup_ns >= c->run.duration_ns, "run.warmup", "is not less than",
		 "run.duration"},
		{weights == 0, "load.push", "leaves no kind of request with a weight"},
		{host->ipv6 && host->mtu < IPV6_MTU_MIN, "host.mtu", "is less than the 1280 of",
		 "host.ipv6"},
		/* each queue must have room for one packet */
		{host->nic_bytes < host->mtu, "host.nic_queue", LESS, "host.mtu"},
		{c->edge.buffer_bytes < frame, "link.buffer", LESS, "host.mtu"},
		{c->core.buffer_bytes < frame, "core.buffer", LESS, "host.mtu"},
		{!rte_is_power_of_2(host->conn.req_win), "host.req_window", POWER},
		{!rte_is_power_of_2(host->conn.data_win), "host.window", POWER},
		{pdl->rto_min_ns > pdl->rto_max_ns, "host.rto_min", MORE, "host.rto_max"},
		{pdl->rto_init_ns > pdl->rto_max_ns, "host.rto", MORE, "host.rto_max"},
		{host->cam != 0 && host->cam < CAM_MIN, "host.cam", "is not 0 or at least 8"},
	};

	for (i = 0; i < RTE_DIM(rules) && !rules[i].is_broken; i++)
		;
	if (i == RTE_DIM(rules))
		return 0;
	conf_describe_key(c, rules[i].key, first, sizeof(first));
	if (rules[i].other != NULL)
		conf_describe_key(c, rules[i].other, second, sizeof(second));
	return san_key_fail(err, err_len, "%s %s%s%s", first, rules[i].how,
			    second[0] != '\0' ? " " : "", second);
}

/* Refuse a fault without effect, unless that was set explicitly. */
static int
check_fault(struct sim_fault_conf *f, char *err, size_t err_len)
{
	const char *why = NULL;
	bool has_rate = (f->kind >= SIM_FAULT_LOSS && f->kind <= SIM_FAULT_CORRUPT) ||
		f->kind == SIM_FAULT_FORGE;

	if (f->rate_ppm == UINT32_MAX && !has_rate)
		f->rate_ppm = 0;
	if (f->kind == SIM_FAULT_MAX)
		why = "wants a kind";
	else if (f->rate_ppm == UINT32_MAX)
		why = "wants a rate";
	else if (f->kind == SIM_FAULT_REORDER && f->rate_ppm != 0 && f->arg_ns == 0)
		why = "wants an arg, by how much packets come later";
	else if (f->kind == SIM_FAULT_NARROW && f->mtu == 0)
		why = "wants an mtu, what is left of the path's";
	else if (f->kind == SIM_FAULT_LIE && f->lie == SIM_LIE_NONE)
		why = "wants a lie";
	if (why == NULL)
		return 0;
	return san_key_fail(err, err_len, "[fault.%s]%s%s %s", f->name,
			    f->kind == SIM_FAULT_MAX ? "" : " of kind ",
			    f->kind == SIM_FAULT_MAX ? "" : fault_words[f->kind], why);
}

int
san_sim_conf_rules_check(struct sim_conf *conf, char *err, size_t err_len)
{
	const struct sim_link_conf *edge = &conf->edge;
	struct sim_link_conf *core = &conf->core;
	uint32_t i;
	int rc;

	/* each key separately, because a delay or a mark of 0 is valid */
	if (core->rate_mbps == UINT32_MAX)
		core->rate_mbps = edge->rate_mbps;
	if (core->delay_ns == UINT64_MAX)
		core->delay_ns = edge->delay_ns;
	if (core->buffer_bytes == UINT32_MAX)
		core->buffer_bytes = edge->buffer_bytes;
	if (core->mark_bytes == UINT32_MAX)
		core->mark_bytes = edge->mark_bytes;
	if (core->mtu == UINT32_MAX)
		core->mtu = edge->mtu;
	rc = check_keys(conf, err, err_len);
	for (i = 0; i < conf->nb_faults && rc == 0; i++)
		rc = check_fault(&conf->faults[i], err, err_len);
	return rc;
}
