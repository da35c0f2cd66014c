/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <assert.h>

#include "bench.h"
#include "ini.h"
#include "san_time.h"

#define DURATION_MAX (365ull * 86400 * 1000) /* ms */

static const char *const ways[] = {"one", "both", "send-recv", "recv-send"};
static const char *const manners[] = {"direct", "wait", "small", "mixed"};
static const char *const stream_modes[] = {"adaptive", "small", "large", "small-large"};
static const char *const stream_reads[] = {"auto", "never", "always"};
const char *const san_args_solicits[] = {"auto", "always", "never"};
const char *const san_args_orders[] = {"ordered", "unordered", "relaxed", "ending"};

#define ADDR   "an IPv4 or IPv6 address"
#define PREFIX "an address and /BITS; at most 8"
#define POLLER "caller or lcore"
#define MODES  "send, push, pull, atomic, incast, rpc, connect, idle or stream"
#define SIZES  "1 to 1G-64 bytes, or MIN-MAX"
#define PAIR   "KEY=VALUE without blanks; at most 2 KiB in all"
#define FAULTS "[rx:|tx:]drop=P,dup=P,reorder=P,corrupt=P,ecn=P,delay=TIME,seed=N, or off"
#define ATTACH "unix:PATH[,port=NAME] of sanstack-daemon, or verbs:DEVICE"

/* ---- values that are no numbers ---- */

static bool
args_to_text(char *to, size_t size, const char *v)
{
	return v[0] != '\0' && (size_t)snprintf(to, size, "%s", v) < size;
}

static bool
is_address(const char *v)
{
	struct in6_addr a;

	return inet_pton(strchr(v, ':') != NULL ? AF_INET6 : AF_INET, v, &a) == 1;
}

static const char *
set_connect(void *conf, const char *v)
{
	struct bench_conf *c = conf;

	return is_address(v) && args_to_text(c->peer, sizeof(c->peer), v) ? NULL : ADDR;
}

static const char *
args_set_mode(void *conf, const char *v)
{
	const struct bench_mode *m = san_mode_find(v);

	if (m == NULL)
		return MODES;
	((struct bench_conf *)conf)->mode = m;
	return NULL;
}

static bool
to_size(const char *v, uint64_t *out)
{
	return san_key_number(v, out) && *out >= 1 && *out <= RTSAN_LENGTH_MAX - 64;
}

static const char *
set_size(void *conf, const char *v)
{
	struct bench_conf *c = conf;
	const char *dash = strchr(v, '-');
	uint64_t min, max;
	char first[32];

	if (dash != NULL && (size_t)(dash - v) >= sizeof(first))
		return SIZES;
	snprintf(first, sizeof(first), "%.*s", dash != NULL ? (int)(dash - v) : 31, v);
	if (!to_size(first, &min) || !to_size(dash != NULL ? dash + 1 : v, &max) || max < min)
		return SIZES;
	c->hello.size_min = (uint32_t)min;
	c->hello.size_max = (uint32_t)max;
	return NULL;
}

/* Add an argument for the provider. */
static const char *
add_port_word(struct bench_conf *c, const char *key, const char *v, const char *valid)
{
	size_t n = strlen(c->port), room = sizeof(c->port) - n;

	if (strpbrk(v, " \t") != NULL || strlen(key) + strlen(v) + 2 > room)
		return valid;
	snprintf(&c->port[n], room, "%s%s ", key, v);
	return NULL;
}

static const char *
args_set_ip(void *conf, const char *v)
{
	bool is_v6 = strchr(v, ':') != NULL;
	size_t n = strcspn(v, "/");
	uint64_t bits = 0;
	char addr[64];

	snprintf(addr, sizeof(addr), "%.*s", (int)n, v);
	if (!is_address(addr) ||
	    (v[n] == '/' && (!san_key_number(&v[n + 1], &bits) || bits > (is_v6 ? 128 : 32))))
		return PREFIX;
	return add_port_word(conf, "ip=", v, PREFIX);
}

static const char *
set_poll(void *conf, const char *v)
{
	if (strcmp(v, "caller") != 0 && strcmp(v, "lcore") != 0)
		return POLLER;
	return add_port_word(conf, "poll=", v, POLLER);
}

static const char *
set_set(void *conf, const char *v)
{
	return strchr(v, '=') == NULL || v[0] == '=' ? PAIR : add_port_word(conf, "", v, PAIR);
}

static int
args_set_impair(void *conf, const char *v, char *error, size_t size)
{
	struct bench_conf *c = conf;
	int from = 0, to = 1, i;

	if (strncmp(v, "rx:", 3) == 0)
		to = 0;
	else if (strncmp(v, "tx:", 3) == 0)
		from = 1;
	if (from == to)
		v += 3;
	if (strcmp(v, "off") == 0)
		v = "";
	if (strlen(v) >= sizeof(c->impair[0]))
		return san_key_fail(error, size, "at most %zu characters",
				    sizeof(c->impair[0]) - 1);
	if (rtsan_dpdk_impair(NULL, false, v) < 0)
		return san_key_fail(error, size, "%s", rtsan_error());
	for (i = from; i <= to; i++)
		strcpy(c->impair[i], v);
	return 0;
}

static const char *
set_attach(void *conf, const char *v)
{
	struct bench_conf *c = conf;
	const char *colon = strchr(v, ':');

	if ((strncmp(v, "unix:", 5) != 0 && strncmp(v, "verbs:", 6) != 0) || colon[1] == '\0')
		return ATTACH;
	return args_to_text(c->attach, sizeof(c->attach), v) ? NULL : ATTACH;
}

/* ---- the table ---- */

#define NUM(f, lo, hi) SAN_KEY_NUM(bench_conf, f, lo, hi)
#define ON(f)          SAN_KEY_ON_OFF(bench_conf, f)
#define WORD(f, w)     SAN_KEY_CHOICE(bench_conf, f, w)
#define TEXT(f)        SAN_KEY_CHARS(bench_conf, f)
#define READ(fn, how)  SAN_KEY_READ(fn, how)
/* *one* is the field for a number without a unit */
#define MSEC(f, hi, one) SAN_KEY_UINT(SAN_KEY_TIME, bench_conf, f, 1, hi, one, SAN_NS_PER_MS)
#define MIB              (1 << 20)
#define SET              .is_live = true /* the prompt may set it */

/* All arguments; a setting of the prompt has the same name and value. */
static const struct san_key args[] = {
	{"sanbench", "connect", "be a client of the server at this address",
	 SAN_KEY_AT(bench_conf, peer), READ(set_connect, ADDR), SET},
	{"sanbench", "server", "listen, and serve clients", ON(server)},
	{"sanbench", "service", "service number of the server", NUM(service, 0, UINT64_MAX), SET},
	{"sanbench", "mode", "what the client does, see the modes; default: push",
	 READ(args_set_mode, MODES), SET},
	{"sanbench", "size", "bytes of a message; default: by mode", READ(set_size, SIZES), SET},
	{"sanbench", "depth", "messages in flight per connection; default: by mode",
	 NUM(hello.depth, 1, BENCH_DEPTH_MAX), SET},
	{"sanbench", "conns", "connections; default: by mode",
	 NUM(hello.nb_conns, 1, BENCH_CONNS_MAX), SET},
	{"sanbench", "batch", "messages posted together; default: up to 32, as there is room",
	 NUM(hello.batch, 1, BENCH_BATCH_MAX), SET},
	{"sanbench", "turns", "messages of a connection before it is the next one's turn",
	 NUM(turns, 1, BENCH_BATCH_MAX), SET},
	{"sanbench", "both", "mode rpc: the server asks, too", ON(both), SET},
	{"sanbench", "way", "streams: which ends send", WORD(hello.way, ways), SET},
	{"sanbench", "receive", "streams: how the ends receive", WORD(hello.manner, manners), SET},
	{"sanbench", "stream-mode", "streams: how this end sends large data",
	 WORD(stream.mode, stream_modes), SET},
	{"sanbench", "stream-read", "streams: remote reads of large data",
	 WORD(stream.read, stream_reads), SET},
	{"sanbench", "threshold", "streams: bytes from which data is large; default: 4096",
	 NUM(stream.threshold, 256, 65536), SET},
	{"sanbench", "message", "streams: first size of a message buffer; default: 1536",
	 NUM(stream.msg_size, 512, 65536), SET},
	{"sanbench", "buffers", "streams: posted message buffers; default: 32",
	 NUM(stream.nb_recv, 4, 1024), SET},
	{"sanbench", "duration", "time of traffic; a number is in seconds",
	 MSEC(duration_ms, DURATION_MAX, 1000), SET},
	{"sanbench", "count", "end after this number of messages, not after a time",
	 NUM(count, 1, UINT64_MAX), SET},
	{"sanbench", "verify", "check every byte at the other end", ON(verify), SET},
	{"sanbench", "order", "kind of connection", WORD(conn.order, san_args_orders), SET},
	{"sanbench", "solicit", "pushes and sends ask for grants; default: by mode",
	 WORD(solicit, san_args_solicits), SET},
	{"sanbench", "imm", "pushes carry an immediate and consume a receive", ON(imm), SET},
	{"sanbench", "seed", "seed of contents and sizes", NUM(hello.seed, 0, UINT64_MAX), SET},
	{"sanbench", "rq", "server: receives per connection; default: twice the client's depth",
	 NUM(rq, 1, BENCH_DEPTH_MAX), SET},
	{"sanbench", "window", "packets that this side can receive",
	 NUM(conn.window, 2, 1024), SET},
	{"sanbench", "first-window", "packets that the peer may send at first",
	 NUM(conn.first_window, 2, 1024), SET},
	{"sanbench", "max-txn", "transactions in flight per connection",
	 NUM(conn.max_txn, 1, 256), SET},
	{"sanbench", "msg-limit", "unacknowledged messages", NUM(conn.msg_limit, 1, 32768), SET},
	{"sanbench", "pkey", "partition", NUM(conn.pkey, 1, 0xffff), SET},
	{"sanbench", "rnr", "wait for a receiver that is not ready",
	 SAN_KEY_MS(bench_conf, conn.rnr_ms, 1, 65535), SET},
	{"sanbench", "keepalive", "silence after which a peer is probed",
	 SAN_KEY_MS(bench_conf, conn.keepalive_ms, 1, 65535), SET},
	{"sanbench", "timeout", "longest time to connect, to drain, to compare; a number is in ms",
	 MSEC(timeout_ms, 3600000, 1), SET},
	{"sanbench", "sessions", "server: end after this number of clients",
	 NUM(sessions, 1, UINT32_MAX)},
	{"sanbench", "memory", "server: memory that one client may use; a number is in MiB",
	 SAN_KEY_UINT(SAN_KEY_SIZE, bench_conf, memory_mib, 1, MIB, 1, MIB), SET},
	{"sanbench", "attach", "use a daemon or a device; must be the first argument",
	 SAN_KEY_AT(bench_conf, attach), READ(set_attach, ATTACH)},
	{"sanbench", "ip", "own address; may be repeated", READ(args_set_ip, PREFIX)},
	{"sanbench", "impair", "faults on the port; may be repeated",
	 SAN_KEY_LIST(args_set_impair, FAULTS), SET},
	{"sanbench", "capture", "write every packet to this pcapng file", TEXT(capture)},
	{"sanbench", "poll", "the thread that polls the engine", READ(set_poll, POLLER)},
	{"sanbench", "set", "argument of the provider, see rtsan-dpdk(7); may be repeated",
	 READ(set_set, PAIR)},
	{"sanbench", "wait", "sleep when there is nothing to do", ON(wait), SET},
	{"sanbench", "live", "print rates each second", ON(live), SET},
	{"sanbench", "json", "write results to this file as JSON; - is standard output",
	 TEXT(json), SET},
	{"sanbench", "interactive", "read commands from a prompt", ON(interactive)},
	{"sanbench", "cmdline-file", "run the commands in this file first", TEXT(cmdline_file)},
	{0},
};

#define NB_ARGS (sizeof(args) / sizeof(args[0]) - 1)
static_assert(NB_ARGS <= 64, "bits of struct bench_conf.given");

static const struct san_key *
arg_of(const char *word)
{
	char name[32];
	size_t n = strcspn(word, "=");

	if (n >= sizeof(name))
		return NULL;
	snprintf(name, sizeof(name), "%.*s", (int)n, word);
	return san_key_find(args, NULL, name);
}

static bool
is_given(const struct bench_conf *conf, const char *name)
{
	return conf->given >> (san_key_find(args, NULL, name) - args) & 1;
}

bool
san_args_is_ours(const char *word)
{
	return strncmp(word, "--", 2) == 0 && arg_of(word + 2) != NULL;
}

void
san_args_defaults(struct bench_conf *conf)
{
	*conf = (struct bench_conf){
		.service = BENCH_SERVICE,
		.duration_ms = 5000,
		.hello.seed = 1,
		.timeout_ms = 30000,
		.memory_mib = 4096,
	};
	conf->mode = &mode_push;
}

static char error[BENCH_TEXT * 2];

static const char *
args_refuse(const char *arg, const char *why)
{
	snprintf(error, sizeof(error), "%.100s: %s", arg, why);
	return error;
}

/* *name* is the argument as it was written. */
static const char *
args_take(struct bench_conf *conf, const struct san_key *a, const char *name, const char *value)
{
	if (san_key_set(a, conf, name, value, error, sizeof(error)) != 0)
		return error;
	conf->given |= 1ull << (a - args);
	if (strcmp(a->name, "duration") == 0)
		conf->count = 0;
	return NULL;
}

const char *
san_args_parse(struct bench_conf *conf, int argc, char **argv)
{
	const char *name, *value, *wrong = NULL;
	const struct san_key *a;
	char shown[64];
	int i;

	for (i = 0; i < argc && wrong == NULL; i++) {
		name = strcmp(argv[i], "-i") == 0 ? "--interactive" : argv[i];
		if (strncmp(name, "--", 2) != 0)
			return args_refuse(name, "what is this? see sanbench --help");
		a = arg_of(name + 2);
		if (a == NULL)
			return args_refuse(argv[i], "unknown, see sanbench --help");
		value = strchr(name, '=');
		snprintf(shown, sizeof(shown), "%.*s", (int)strcspn(name, "="), name);
		if (a->type == SAN_KEY_BOOL && value != NULL)
			return args_refuse(shown, "takes no value");
		if (value != NULL)
			value++;
		else
			value = a->type == SAN_KEY_BOOL ? "on" : argv[++i];
		if (i >= argc)
			return args_refuse(shown, "a value is missing");
		wrong = args_take(conf, a, shown, value);
	}
	return wrong != NULL ? wrong : san_args_finish(conf);
}

const char *
san_args_set(struct bench_conf *conf, const char *name, const char *value)
{
	const struct san_key *a = arg_of(name);

	if (a == NULL || !a->is_live)
		return args_refuse(name, "no such setting");
	return args_take(conf, a, name, value);
}

const char *
san_args_names(bool only_settings)
{
	static char all[1024], settings[1024];
	char *names = only_settings ? settings : all;
	size_t i, n = 0;

	for (i = 0; i < NB_ARGS; i++)
		if (args[i].is_live || !only_settings)
			n += (size_t)snprintf(names + n, sizeof(all) - n, "%s%s",
					      n > 0 ? "#" : "", args[i].name);
	return names;
}

const char *
san_args_word(const char *name, int i)
{
	static const char *const on_off[] = {"on", "off"};
	const struct san_key *a = arg_of(name);

	if (a == NULL)
		return NULL;
	if (a->set == args_set_mode)
		return mode_all[i] != NULL ? mode_all[i]->name : NULL;
	if (a->type == SAN_KEY_BOOL)
		return i < 2 ? on_off[i] : NULL;
	return a->words != NULL && a->min + (uint64_t)i <= a->max ? a->words[a->min + (uint64_t)i] :
								    NULL;
}

/* Settings that were not given get the defaults of the mode. */
static void
from_mode(struct bench_conf *conf)
{
	const struct bench_mode *m = conf->mode;

	if (!is_given(conf, "size"))
		conf->hello.size_min = conf->hello.size_max = m->defaults.size;
	if (!is_given(conf, "depth"))
		conf->hello.depth = m->defaults.depth;
	if (!is_given(conf, "conns"))
		conf->hello.nb_conns = m->defaults.conns;
	if (!is_given(conf, "solicit"))
		conf->solicit = m->defaults.solicit;
}

static const char *
settings_wrong(const struct bench_conf *conf)
{
	if (conf->hello.batch > conf->hello.depth)
		return "--batch: is more than --depth";
	if (conf->turns > conf->hello.depth)
		return "--turns: is more than --depth";
	if (conf->turns > 0 && (conf->hello.batch > 0 || conf->mode->fill == NULL))
		return "--turns: not with --batch, nor with modes that have turns of their own";
	if (conf->count > 0 && conf->mode == &mode_connect)
		return "--count: mode connect goes by time";
	if (conf->both && conf->mode != &mode_rpc)
		return "--both: only mode rpc has requests of the server";
	if (is_given(conf, "mode") && conf->peer[0] == '\0' && !conf->interactive &&
	    conf->cmdline_file[0] == '\0' && !conf->server)
		return "--mode: where is the server? --connect ADDR";
	if (conf->server && conf->peer[0] != '\0')
		return "--server: one process is either server or client";
	return NULL;
}

/* Settings that need a DPDK port of this process are errors with a daemon or an RDMA device. */
static const char *
attached_wrong(const struct bench_conf *conf)
{
	if (conf->attach[0] == '\0')
		return NULL;
	if (conf->port[0] != '\0')
		return "--attach: not with --ip, --set or --poll";
	if (conf->impair[0][0] != '\0' || conf->impair[1][0] != '\0' || conf->capture[0] != '\0')
		return "--attach: not with --impair or --capture";
	return NULL;
}

const char *
san_args_finish(struct bench_conf *conf)
{
	const char *wrong = attached_wrong(conf);
	struct hello hello;

	if (wrong != NULL)
		return args_refuse(wrong, san_port_attached(conf));
	from_mode(conf);
	san_client_hello(conf, &hello);
	if (conf->mode->check != NULL)
		wrong = conf->mode->check(&hello);
	return wrong != NULL ? wrong : settings_wrong(conf);
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
args_explain_one(const struct san_key *a, FILE *f)
{
	static const char *const forms[] = {
		[SAN_KEY_NUMBER] = "N",
		[SAN_KEY_TIME] = "TIME",
		[SAN_KEY_SIZE] = "SIZE",
		[SAN_KEY_BOOL] = "",
		[SAN_KEY_WORD] = "WORD",
		[SAN_KEY_STRING] = "FILE",
		[SAN_KEY_OWN] = "VALUE",
	};
	char head[48], valid[SAN_KEY_TEXT], value[SAN_KEY_TEXT];
	struct bench_conf conf;

	san_args_defaults(&conf);
	san_key_valid(a, valid, sizeof(valid));
	snprintf(head, sizeof(head), "--%s %s", a->name, forms[a->type]);
	fprintf(f, "  %-22s %s", head, a->help);
	if (a->type != SAN_KEY_BOOL && a->type != SAN_KEY_STRING)
		fprintf(f, " (%s)", valid);
	if (a->type != SAN_KEY_BOOL && san_key_value(a, &conf, value, sizeof(value)))
		fprintf(f, ": %s", value);
	fputc('\n', f);
}

bool
san_args_explain(const char *name, FILE *f)
{
	const struct san_key *a = arg_of(name);

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
	      "Without --server and --connect there is a prompt. Numbers may end in K, M, G,\n"
	      "times in us, ms, s, sizes in KiB, MiB, GiB.\n\n",
	      f);
	for (i = 0; i < NB_ARGS; i++)
		args_explain_one(&args[i], f);
	fputs("\nmodes:\n", f);
	explain_modes(f);
	fputs("\nFaults without rx: or tx: are in both directions. P is 0 to 1.\n", f);
}

void
san_args_keys(FILE *f)
{
	struct bench_conf conf;

	san_args_defaults(&conf);
	san_ini_explain(f, args, &conf);
}

void
san_args_show(struct bench_conf *conf, FILE *f)
{
	from_mode(conf);
	fprintf(f, "connect %s service %" PRIu64 "\n", conf->peer[0] != '\0' ? conf->peer : "-",
		conf->service);
	fprintf(f, "mode %s size %u-%u depth %u conns %u\n", conf->mode->name, conf->hello.size_min,
		conf->hello.size_max, conf->hello.depth, conf->hello.nb_conns);
	fprintf(f, "order %s solicit %s verify %s imm %s seed %" PRIu64 "\n",
		san_args_orders[conf->conn.order], san_args_solicits[conf->solicit],
		conf->verify ? "on" : "off", conf->imm ? "on" : "off", conf->hello.seed);
	if (conf->count > 0)
		fprintf(f, "count %" PRIu64 "\n", conf->count);
	else
		fprintf(f, "duration %.3f s\n", (double)conf->duration_ms / 1000);
	fprintf(f, "impair rx %s tx %s\n", conf->impair[0][0] != '\0' ? "on" : "off",
		conf->impair[1][0] != '\0' ? "on" : "off");
}
