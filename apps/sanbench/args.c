/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mode.h"

/* One argument: name, form of its value, effect, and whether the prompt may set it. */
struct arg {
	const char *name;
	const char *value; /* NULL: none */
	const char *help;
	bool is_setting;
	/* Returns NULL, or what was expected. */
	const char *(*set)(struct bench_conf *c, const char *v);
	const char *const *words; /* the allowed values, with a NULL at the end; NULL: any value */
};

static const char *const on_off[] = {"on", "off", NULL};
static const char *const ways[] = {"one", "both", "send-recv", "recv-send", NULL};
static const char *const manners[] = {"direct", "wait", "small", "mixed", NULL};
static const char *const stream_modes[] = {"adaptive", "small", "large", "small-large", NULL};
static const char *const stream_reads[] = {"auto", "never", "always", NULL};
static const char *const solicits[] = {"auto", "always", "never", NULL};
static const char *const orders[] = {"ordered", "unordered", "relaxed", "ending", NULL};
static const char *const pollers[] = {"caller", "lcore", NULL};

/* ---- values ---- */

/* A number with an optional K, M or G (powers of 1024). */
static bool
args_to_number(const char *v, uint64_t min, uint64_t max, uint64_t *out)
{
	static const char units[] = "KMG";
	const char *unit;
	uint64_t n;
	char *end;

	if (v[0] < '0' || v[0] > '9')
		return false;
	errno = 0;
	n = strtoull(v, &end, 0);
	if (errno != 0)
		return false;
	unit = isalpha((unsigned char)*end) ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit != NULL) {
		if (n > UINT64_MAX >> (10 * (unit - units + 1)))
			return false;
		n <<= 10 * (unit - units + 1);
		end++;
	}
	*out = n;
	return *end == '\0' && n >= min && n <= max;
}

static bool
args_to_text(char *to, size_t size, const char *v)
{
	return v[0] != '\0' && (size_t)snprintf(to, size, "%s", v) < size;
}

static int
args_to_choice(const char *v, const char *const *names)
{
	int i;

	for (i = 0; names[i] != NULL; i++)
		if (strcmp(names[i], v) == 0)
			return i;
	return -1;
}

#define SET_NUMBER(fn, field, min, max, expected)                  \
	static const char *fn(struct bench_conf *c, const char *v) \
	{                                                          \
		uint64_t n;                                        \
                                                                   \
		if (!args_to_number(v, min, max, &n))              \
			return expected;                           \
		c->field = n;                                      \
		return NULL;                                       \
	}

#define SET_FLAG(fn, field)                                        \
	static const char *fn(struct bench_conf *c, const char *v) \
	{                                                          \
		if (v == NULL || strcmp(v, "on") == 0)             \
			c->field = true;                           \
		else if (strcmp(v, "off") == 0)                    \
			c->field = false;                          \
		else                                               \
			return "on or off";                        \
		return NULL;                                       \
	}

#define SET_TEXT(fn, field)                                          \
	static const char *fn(struct bench_conf *c, const char *v)   \
	{                                                            \
		return args_to_text(c->field, sizeof(c->field), v) ? \
			NULL :                                       \
			"a text that is not longer";                 \
	}

SET_NUMBER(set_service, service, 0, UINT64_MAX, "a number")
SET_NUMBER(set_count, count, 1, UINT64_MAX, "a number of messages, 1 or more")
SET_NUMBER(set_seed, seed, 0, UINT64_MAX, "a number")
SET_NUMBER(set_batch, batch, 1, BENCH_BATCH_MAX, "1 to 256 messages")
SET_NUMBER(set_turns, turns, 1, BENCH_BATCH_MAX, "1 to 256 messages")
SET_NUMBER(set_rq, rq, 1, BENCH_DEPTH_MAX, "1 to 16384")
SET_NUMBER(set_timeout, timeout_ms, 1, 3600000, "milliseconds, 1 to 3600000")
SET_NUMBER(set_window, window, 2, 1024, "packets, 2 to 1024")
SET_NUMBER(set_first_window, first_window, 2, 1024, "packets, 2 to 1024")
SET_NUMBER(set_max_txn, max_txn, 1, 256, "transactions, 1 to 256")
SET_NUMBER(set_msg_limit, msg_limit, 1, 32768, "messages, 1 to 32768")
SET_NUMBER(set_pkey, pkey, 1, 0xffff, "1 to 0xffff")
SET_NUMBER(set_rnr, rnr_ms, 1, 65535, "milliseconds, 1 to 65535")
SET_NUMBER(set_keepalive, keepalive_ms, 1, 65535, "milliseconds, 1 to 65535")
SET_NUMBER(set_sessions, sessions, 1, UINT32_MAX, "a number of sessions, 1 or more")
SET_NUMBER(set_memory, memory_mib, 1, 1 << 20, "MiB, 1 to 1048576")
SET_FLAG(set_server, server)
SET_FLAG(set_interactive, interactive)
SET_FLAG(set_verify, verify)
SET_FLAG(set_imm, imm)
SET_FLAG(set_live, live)
SET_FLAG(set_both, both)
SET_FLAG(set_wait, wait)
SET_TEXT(set_tree, tree)
SET_TEXT(set_out, out)
SET_TEXT(set_capture, capture)
SET_TEXT(set_json, json)
SET_TEXT(set_cmdline_file, cmdline_file)

static const char *
set_connect(struct bench_conf *c, const char *v)
{
	struct in6_addr a;

	if (inet_pton(AF_INET, v, &a) != 1 && inet_pton(AF_INET6, v, &a) != 1)
		return "an IPv4 or IPv6 address";
	return args_to_text(c->peer, sizeof(c->peer), v) ? NULL : "an IPv4 or IPv6 address";
}

static const char *
args_set_mode(struct bench_conf *c, const char *v)
{
	const struct bench_mode *m = san_mode_by_name(v);

	if (m == NULL)
		return "send, push, pull, atomic, incast, rpc, connect, idle, stream, tree-send, "
		       "tree-push or tree-pull";
	c->mode = m;
	return NULL;
}

static const char *
set_solicit(struct bench_conf *c, const char *v)
{
	int i = args_to_choice(v, solicits);

	if (i < 0)
		return "auto, always or never";
	c->solicit = (uint8_t)i;
	c->has_solicit = true;
	return NULL;
}

/* Set a field to the index of a word in *names*. */
#define SET_WORD(fn, field, names, expected)                       \
	static const char *fn(struct bench_conf *c, const char *v) \
	{                                                          \
		int i = args_to_choice(v, names);                  \
                                                                   \
		if (i < 0)                                         \
			return expected;                           \
		c->field = (uint8_t)i;                             \
		return NULL;                                       \
	}

SET_WORD(set_way, way, ways, "one, both, send-recv or recv-send")
SET_WORD(set_manner, manner, manners, "direct, wait, small or mixed")
SET_WORD(set_stream_mode, stream.mode, stream_modes, "adaptive, small, large or small-large")
SET_WORD(set_stream_read, stream.read, stream_reads, "auto, never or always")
SET_NUMBER(set_stream_threshold, stream.threshold, 256, 65536, "bytes, 256 to 65536")
SET_NUMBER(set_stream_msg, stream.msg_size, 512, 65536, "bytes, 512 to 65536")
SET_NUMBER(set_stream_bufs, stream.nb_recv, 4, 1024, "4 to 1024 messages")

static const char *
set_order(struct bench_conf *c, const char *v)
{
	int i = args_to_choice(v, orders);

	if (i < 0)
		return "ordered, unordered, relaxed or ending";
	c->order = (uint8_t)i;
	return NULL;
}

static const char *
set_size(struct bench_conf *c, const char *v)
{
	static const char expected[] = "1 to 1G-64 bytes, or MIN-MAX";
	uint64_t min, max, limit = RTSAN_LENGTH_MAX - 64;
	const char *dash = strchr(v, '-');
	char first[32];

	if (dash == NULL) {
		if (!args_to_number(v, 1, limit, &min))
			return expected;
		max = min;
	} else {
		if ((size_t)(dash - v) >= sizeof(first))
			return expected;
		memcpy(first, v, (size_t)(dash - v));
		first[dash - v] = '\0';
		if (!args_to_number(first, 1, limit, &min) ||
		    !args_to_number(dash + 1, min, limit, &max))
			return expected;
	}
	c->size_min = (uint32_t)min;
	c->size_max = (uint32_t)max;
	c->has_size = true;
	return NULL;
}

static const char *
set_depth(struct bench_conf *c, const char *v)
{
	uint64_t n;

	if (!args_to_number(v, 1, BENCH_DEPTH_MAX, &n))
		return "1 to 16384 messages under way per connection";
	c->depth = (uint32_t)n;
	c->has_depth = true;
	return NULL;
}

static const char *
set_conns(struct bench_conf *c, const char *v)
{
	uint64_t n;

	if (!args_to_number(v, 1, BENCH_CONNS_MAX, &n))
		return "1 to 16384 connections";
	c->conns = (uint32_t)n;
	c->has_conns = true;
	return NULL;
}

static const char *
set_duration(struct bench_conf *c, const char *v)
{
	char *end;
	double s = strtod(v, &end);

	if (end == v || *end != '\0' || !(s >= 0.001 && s <= 86400 * 365))
		return "seconds, 0.001 or more";
	c->duration_ms = (uint64_t)(s * 1000);
	c->count = 0;
	return NULL;
}

static const char *
args_set_ip(struct bench_conf *c, const char *v)
{
	char addr[64];
	struct in6_addr a;
	bool is_v6 = strchr(v, ':') != NULL;
	const char *slash = strchr(v, '/');
	size_t n = slash != NULL ? (size_t)(slash - v) : strlen(v);
	uint64_t bits;

	if (c->nb_ips == BENCH_IPS_MAX)
		return "no more than 8 addresses";
	if (n >= sizeof(addr))
		return "an IPv4 or IPv6 address, and /PREFIX: what is on the link";
	memcpy(addr, v, n);
	addr[n] = '\0';
	if (inet_pton(is_v6 ? AF_INET6 : AF_INET, addr, &a) != 1 ||
	    (slash != NULL && !args_to_number(slash + 1, 0, is_v6 ? 128 : 32, &bits)))
		return "an IPv4 or IPv6 address, and /PREFIX: what is on the link";
	c->ips[c->nb_ips++] = v;
	return NULL;
}

static const char *
set_set(struct bench_conf *c, const char *v)
{
	if (strchr(v, '=') == NULL || v[0] == '=' || strpbrk(v, " \t") != NULL)
		return "KEY=VALUE without blanks";
	if (c->nb_sets == BENCH_SETS_MAX)
		return "no more than 64 of them";
	c->sets[c->nb_sets++] = v;
	return NULL;
}

static const char *
args_set_poll(struct bench_conf *c, const char *v)
{
	if (args_to_choice(v, pollers) < 0)
		return "caller or lcore";
	return args_to_text(c->poll, sizeof(c->poll), v) ? NULL : "caller or lcore";
}

static const char *
args_set_impair(struct bench_conf *c, const char *v)
{
	struct rtsan_dpdk_impair spec = {.drop = 0};
	int from = 0, to = 1, i;

	if (strncmp(v, "rx:", 3) == 0)
		to = 0;
	else if (strncmp(v, "tx:", 3) == 0)
		from = 1;
	if (from == to)
		v += 3;
	if (strcmp(v, "off") != 0 && rtsan_dpdk_impair_parse(v, &spec) < 0)
		return "[rx:|tx:]drop=P,dup=P,reorder=P,corrupt=P,ecn=P,delay=US,seed=N, or off";
	for (i = from; i <= to; i++) {
		c->impair[i] = spec;
		/*
		 * Different seeds: the two directions must not lose the same packets of a request
		 * and its answer.
		 */
		c->impair[i].seed += (uint64_t)i;
		c->has_impair[i] = strcmp(v, "off") != 0;
	}
	return NULL;
}

static const char *
set_attach(struct bench_conf *c, const char *v)
{
	static const char expected[] = "unix:PATH[,port=NAME], the socket of sanstack-daemon, or "
				       "verbs:DEVICE, an RDMA device";
	const char *colon = strchr(v, ':');

	if ((strncmp(v, "unix:", 5) != 0 && strncmp(v, "verbs:", 6) != 0) || colon[1] == '\0')
		return expected;
	return args_to_text(c->attach, sizeof(c->attach), v) ? NULL : expected;
}

/* ---- the table ---- */

static const struct arg args[] = {
	{"connect", "ADDR", "be a client of the server at ADDR", true, set_connect},
	{"server", NULL, "listen, and serve what clients want", false, set_server},
	{"service", "N", "service number of the server (4791)", true, set_service},
	{"mode", "MODE", "what the client does, see below", true, args_set_mode},
	{"size", "N|MIN-MAX", "bytes of a message", true, set_size},
	{"depth", "N", "messages under way per connection", true, set_depth},
	{"conns", "N", "connections", true, set_conns},
	{"batch", "N", "messages that are posted together", true, set_batch},
	{"turns", "N", "connections take turns, N messages each", true, set_turns},
	{"both", NULL, "mode rpc: the server asks, too", true, set_both, .words = on_off},
	{"way", "WAY", "streams: one, both, send-recv or recv-send", true, set_way, .words = ways},
	{"receive", "MANNER", "streams: direct, wait, small or mixed", true,
	 set_manner, .words = manners},
	{"stream-mode", "MODE", "adaptive, small, large or small-large", true,
	 set_stream_mode, .words = stream_modes},
	{"stream-read", "WHEN", "remote reads: auto, never or always", true,
	 set_stream_read, .words = stream_reads},
	{"threshold", "N", "streams: bytes that are large (4096)", true, set_stream_threshold},
	{"message", "N", "streams: bytes of a message (1536)", true, set_stream_msg},
	{"buffers", "N", "streams: messages that may come at once (32)", true, set_stream_bufs},
	{"duration", "S", "seconds of traffic (5)", true, set_duration},
	{"count", "N", "end after N messages instead", true, set_count},
	{"verify", NULL, "fill by position, check every byte at the other end", true,
	 set_verify, .words = on_off},
	{"order", "ORDER", "ordered, unordered, relaxed or ending connections", true,
	 set_order, .words = orders},
	{"solicit", "WHEN", "ask for grants: auto, always, never", true,
	 set_solicit, .words = solicits},
	{"imm", NULL, "pushes carry an immediate and consume a receive", true,
	 set_imm, .words = on_off},
	{"seed", "N", "of contents and sizes (1)", true, set_seed},
	{"rq", "N", "server: receives per connection (twice the client's depth)", true, set_rq},
	{"window", "N", "packets that may arrive at once", true, set_window},
	{"first-window", "N", "packets that the peer may send at first", true, set_first_window},
	{"max-txn", "N", "transactions under way per connection", true, set_max_txn},
	{"msg-limit", "N", "messages not acknowledged, at most", true, set_msg_limit},
	{"pkey", "N", "partition", true, set_pkey},
	{"rnr-ms", "MS", "patience with a receiver that is not ready", true, set_rnr},
	{"keepalive-ms", "MS", "silence after which a peer is probed", true, set_keepalive},
	{"timeout", "MS", "for connecting, draining, comparing (30000)", true, set_timeout},
	{"tree", "DIR", "tree modes: what to copy", true, set_tree},
	{"out", "DIR", "server: where trees are written", true, set_out},
	{"sessions", "N", "server: end after N clients", false, set_sessions},
	{"memory", "MIB", "server: memory per client, at most (4096)", true, set_memory},
	{"attach", "SPEC", "unix:PATH, a daemon, or verbs:DEVICE; comes first", false,
	 set_attach},
	{"ip", "ADDR[/BITS]", "our address; may be repeated", false, args_set_ip},
	{"impair", "SPEC", "faults on the port, see below", true, args_set_impair},
	{"capture", "FILE", "write every packet to a pcapng file", false, set_capture},
	{"poll", "WHO", "engine polled by the caller or its own lcore", false,
	 args_set_poll, .words = pollers},
	{"set", "KEY=VALUE", "for the provider, see rtsan-dpdk(7); repeatable", false, set_set},
	{"wait", NULL, "sleep when there is nothing to do", true, set_wait, .words = on_off},
	{"live", NULL, "rates each second", true, set_live, .words = on_off},
	{"json", "FILE", "write results as JSON; - is standard output", true, set_json},
	{"interactive", NULL, "prompt", false, set_interactive},
	{"cmdline-file", "FILE", "run the commands in FILE first", false, set_cmdline_file},
};

#define NB_ARGS (sizeof(args) / sizeof(args[0]))

static const struct arg *
arg_by_name(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < NB_ARGS; i++)
		if (strlen(args[i].name) == len && memcmp(args[i].name, name, len) == 0)
			return &args[i];
	return NULL;
}

bool
san_args_is_device(const struct bench_conf *conf)
{
	return strncmp(conf->attach, "verbs:", 6) == 0;
}

bool
san_args_is_ours(const char *word)
{
	return strncmp(word, "--", 2) == 0 && arg_by_name(word + 2, strcspn(word + 2, "=")) != NULL;
}

void
san_args_defaults(struct bench_conf *conf)
{
	*conf = (struct bench_conf){
		.service = BENCH_SERVICE,
		.duration_ms = 5000,
		.seed = 1,
		.timeout_ms = 30000,
		.memory_mib = 4096,
	};
	conf->mode = &mode_push;
}

static int
args_refuse(char *error, size_t size, const char *arg, const char *value, const char *expected)
{
	if (value != NULL)
		snprintf(error, size, "%s %.100s: expected %s", arg, value, expected);
	else
		snprintf(error, size, "%.100s: %s", arg, expected);
	return -1;
}

int
san_args_parse(struct bench_conf *conf, int argc, char **argv, char *error, size_t size)
{
	const char *name, *value, *expected;
	const struct arg *a;
	char shown[64];
	int i;

	for (i = 0; i < argc; i++) {
		name = strcmp(argv[i], "-i") == 0 ? "--interactive" : argv[i];
		if (strncmp(name, "--", 2) != 0)
			return args_refuse(error, size, name, NULL,
					   "what is this? see sanbench --help");
		name += 2;
		value = strchr(name, '=');
		a = arg_by_name(name, value != NULL ? (size_t)(value - name) : strlen(name));
		if (a == NULL)
			return args_refuse(error, size, argv[i], NULL,
					   "unknown, see sanbench --help");
		snprintf(shown, sizeof(shown), "--%s", a->name);
		if (value != NULL)
			value++;
		else if (a->value != NULL)
			value = argv[++i];
		if (a->value != NULL && (value == NULL || i >= argc))
			return args_refuse(error, size, shown, NULL, "a value is missing");
		if (a->value == NULL && value != NULL)
			return args_refuse(error, size, shown, NULL, "takes no value");
		expected = a->set(conf, value);
		if (expected != NULL)
			return args_refuse(error, size, shown, value, expected);
		if (strcmp(a->name, "mode") == 0)
			conf->has_mode = true;
	}
	return san_args_finish(conf, error, size);
}

int
san_args_set(struct bench_conf *conf, const char *name, const char *value, char *error, size_t size)
{
	const struct arg *a = arg_by_name(name, strlen(name));
	const char *expected;

	if (a == NULL || !a->is_setting)
		return args_refuse(error, size, name, NULL, "no such setting");
	expected = a->set(conf, value);
	if (expected != NULL)
		return args_refuse(error, size, name, value, expected);
	return 0;
}

const char *
san_args_names(bool only_settings)
{
	static char all[1024], settings[1024];
	char *names = only_settings ? settings : all;
	size_t i, n = 0;

	for (i = 0; i < NB_ARGS; i++)
		if (args[i].is_setting || !only_settings)
			n += (size_t)snprintf(names + n, sizeof(all) - n, "%s%s",
					      n > 0 ? "#" : "", args[i].name);
	return names;
}

const char *
san_args_word(const char *name, int i)
{
	const struct arg *a = arg_by_name(name, strlen(name));
	int n = 0;

	if (a == NULL)
		return NULL;
	if (a->set == args_set_mode) {
		while (mode_all[n] != NULL)
			n++;
		return i < n ? mode_all[i]->name : NULL;
	}
	while (a->words != NULL && a->words[n] != NULL)
		n++;
	return i < n ? a->words[i] : NULL;
}

/* Settings that were not given get the defaults of the mode. */
static void
from_mode(struct bench_conf *conf)
{
	const struct bench_mode *m = conf->mode;

	if (!conf->has_size)
		conf->size_min = conf->size_max = m->size;
	if (!conf->has_depth)
		conf->depth = m->depth;
	if (!conf->has_conns)
		conf->conns = m->conns;
	if (!conf->has_solicit)
		conf->solicit = m->solicit;
}

static const char *
batches_wrong(const struct bench_conf *conf)
{
	bool has_slots = conf->mode->fill != NULL && (conf->mode->flags & MODE_TREE) == 0;

	if (conf->batch > conf->depth)
		return "--batch: is more than --depth";
	if (conf->turns > conf->depth)
		return "--turns: is more than --depth";
	if (conf->turns > 0 && (conf->batch > 0 || !has_slots))
		return "--turns: not with --batch, nor with modes that have turns of their own";
	if (conf->both && conf->mode != &mode_rpc)
		return "--both: only mode rpc has requests of the server";
	return NULL;
}

/* Settings that need a DPDK port are errors with an RDMA device. */
static const char *
device_wrong(const struct bench_conf *conf)
{
	if (conf->nb_ips > 0 || conf->nb_sets > 0 || conf->poll[0] != '\0')
		return "--attach: not with --ip, --set or --poll: an RDMA device has its own "
		       "addresses and no engine, see rtsan-verbs(7)";
	if (conf->has_impair[0] || conf->has_impair[1] || conf->capture[0] != '\0')
		return "--attach: not with --impair or --capture: an RDMA device does not hand out "
		       "packets, see rtsan-verbs(7)";
	return NULL;
}

static const char *
attached_wrong(const struct bench_conf *conf)
{
	if (conf->attach[0] == '\0')
		return NULL;
	if (san_args_is_device(conf))
		return device_wrong(conf);
	if (conf->nb_ips > 0 || conf->nb_sets > 0 || conf->poll[0] != '\0')
		return "--attach: not with --ip, --set or --poll: the port is the daemon's, see "
		       "sanstack.conf(5)";
	if (conf->has_impair[0] || conf->has_impair[1] || conf->capture[0] != '\0')
		return "--attach: not with --impair or --capture: the port is the daemon's, see "
		       "sanstack.conf(5) and sanctl(1)";
	return NULL;
}

int
san_args_finish(struct bench_conf *conf, char *error, size_t size)
{
	const struct bench_mode *m = conf->mode;
	const char *wrong;

	from_mode(conf);
	wrong = m->check != NULL ? m->check(conf) : NULL;
	if (wrong == NULL)
		wrong = batches_wrong(conf);
	if (wrong == NULL)
		wrong = attached_wrong(conf);
	if (wrong == NULL && conf->peer[0] == '\0' && conf->has_mode && !conf->interactive &&
	    conf->cmdline_file[0] == '\0' && !conf->server)
		wrong = "--mode: where is the server? --connect ADDR";
	if (wrong == NULL && conf->server && conf->peer[0] != '\0')
		wrong = "--server: one process is either server or client";
	if (wrong == NULL)
		return 0;
	snprintf(error, size, "%s", wrong);
	return -1;
}

/* ---- help texts ---- */

static void
explain_modes(FILE *f)
{
	int i;

	for (i = 0; mode_all[i] != NULL; i++)
		fprintf(f, "  %-22s %s\n", mode_all[i]->name, mode_all[i]->help);
}

static void
args_explain_one(const struct arg *a, FILE *f)
{
	char head[48];

	snprintf(head, sizeof(head), "--%s %s", a->name, a->value != NULL ? a->value : "");
	fprintf(f, "  %-22s %s\n", head, a->help);
}

bool
san_args_explain(const char *name, FILE *f)
{
	const struct arg *a = arg_by_name(name, strlen(name));

	if (a == NULL)
		return false;
	args_explain_one(a, f);
	if (a->set == args_set_mode)
		explain_modes(f);
	return true;
}

void
san_args_usage(FILE *f)
{
	size_t i;

	fputs("usage: sanbench EAL-ARGUMENTS -- ARGUMENTS\n"
	      "       sanbench --attach unix:PATH[,port=NAME] ARGUMENTS\n"
	      "       sanbench --attach verbs:DEVICE[,...] ARGUMENTS\n\n"
	      "Without --server and --connect there is a prompt. Numbers may end in K, M, G.\n\n",
	      f);
	for (i = 0; i < NB_ARGS; i++)
		args_explain_one(&args[i], f);
	fputs("\nmodes:\n", f);
	explain_modes(f);
	fputs("\nfaults: [rx:|tx:]drop=P,dup=P,reorder=P,corrupt=P,ecn=P,delay=US,seed=N or off;\n"
	      "without rx: or tx: in both directions. P is 0 to 1. May be repeated.\n",
	      f);
}

void
san_args_show(struct bench_conf *conf, FILE *f)
{
	from_mode(conf);
	fprintf(f, "connect %s service %" PRIu64 "\n", conf->peer[0] != '\0' ? conf->peer : "-",
		conf->service);
	fprintf(f, "mode %s size %u-%u depth %u conns %u\n", conf->mode->name, conf->size_min,
		conf->size_max, conf->depth, conf->conns);
	fprintf(f, "order %s solicit %s verify %s imm %s seed %" PRIu64 "\n", orders[conf->order],
		solicits[conf->solicit], conf->verify ? "on" : "off", conf->imm ? "on" : "off",
		conf->seed);
	if (conf->count > 0)
		fprintf(f, "count %" PRIu64 "\n", conf->count);
	else
		fprintf(f, "duration %.3f s\n", (double)conf->duration_ms / 1000);
	fprintf(f, "impair rx %s tx %s\n", conf->has_impair[0] ? "on" : "off",
		conf->has_impair[1] ? "on" : "off");
}

int
san_args_port_conf(const struct bench_conf *conf, char *out, size_t size)
{
	size_t n = 0;
	uint32_t i;

	out[0] = '\0';
	for (i = 0; i < conf->nb_ips && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s=%s ",
				      strchr(conf->ips[i], ':') != NULL ? "ip6" : "ip",
				      conf->ips[i]);
	if (conf->poll[0] != '\0' && n < size)
		n += (size_t)snprintf(out + n, size - n, "poll=%s ", conf->poll);
	for (i = 0; i < conf->nb_sets && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s ", conf->sets[i]);
	return n < size ? 0 : -1;
}
