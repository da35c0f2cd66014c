/* SPDX-License-Identifier: BSD-3-Clause */

/* Port arguments: words "key=value", read by a table. */

#include <assert.h>
#include <inttypes.h>

#include <rte_common.h>

#include "core_keys.h"
#include "dpdk_priv.h"

#define CONNS_DEFAULT   1024
#define MTU_MIN         1024 /* RT-31 */
#define MTU_MIN_V6      1280 /* smallest MTU of an IPv6 link */
#define MTU_MAX         9000
#define WINDOW_DEFAULT  512
#define MAX_TXN_DEFAULT 256
#define RNR_MS_DEFAULT  10000
#define KEEPALIVE_MS    1000
#define PKEY_DEFAULT    0xffff
#define IMPAIR_SEED     1
#define SLEEP_BUSY_US   50u  /* longest sleep of an engine with work in progress */
#define SLEEP_ACK_US    100u /* a program that must be woken answers within this time */
#define ADDRESS         "an address of a host with its prefix, as in 10.0.0.1/24"
#define MANY_ADDRS      "one of at most 8 different addresses"
#define ROUTER          "an address of a router"
#define ROUTE           "a prefix and a router, as in 10.1.0.0/16,10.0.0.254"
#define MANY_ROUTES     "one of at most 16 routes"
#define LCORES          "numbers of at most 16 lcores, each once, as in 1,2"
#define IMPAIR          "drop=P,dup=P,reorder=P,corrupt=P,ecn=P,delay=TIME,seed=N"
#define US              SAN_NS_PER_US
#define MS              SAN_NS_PER_MS
#define SEC             SAN_NS_PER_S
#define NOT_FIXED       UINT64_MAX /* of first_psn */

static const char *const poll_words[] = {
	[DPDK_POLL_CALLER] = "caller",
	[DPDK_POLL_LCORE] = "lcore",
};

static const char *const carry_words[] = {
	[SAN_CARRY_TCP_AUTO] = "auto",
	[SAN_CARRY_TCP_ON] = "on",
	[SAN_CARRY_TCP_OFF] = "off",
};

/* ---- values that are no numbers ---- */

static const char *
dpdk_conf_set_ip(void *conf, const char *text)
{
	struct san_inet_conf *inet = &((struct dpdk_conf *)conf)->engine.core.inet;
	struct san_inet_addr addr;
	uint32_t i;

	if (san_inet_addr_parse_own(text, &addr) != 0)
		return ADDRESS;
	for (i = 0; i < inet->nb_addrs; i++)
		if (memcmp(&inet->addrs[i].ip, &addr.ip, sizeof(addr.ip)) == 0)
			return MANY_ADDRS;
	if (inet->nb_addrs == RTE_DIM(inet->addrs))
		return MANY_ADDRS;
	inet->addrs[inet->nb_addrs++] = addr;
	return NULL;
}

static const char *
add_route(struct dpdk_conf *conf, const char *text, const char *valid)
{
	struct san_inet_conf *inet = &conf->engine.core.inet;

	if (inet->nb_routes == RTE_DIM(inet->routes))
		return MANY_ROUTES;
	if (san_inet_addr_parse_route(text, &inet->routes[inet->nb_routes]) != 0)
		return valid;
	inet->nb_routes++;
	return NULL;
}

static const char *
set_gw(void *conf, const char *text)
{
	return strchr(text, ',') != NULL ? ROUTER : add_route(conf, text, ROUTER);
}

static const char *
set_route(void *conf, const char *text)
{
	return strchr(text, ',') == NULL ? ROUTE : add_route(conf, text, ROUTE);
}

/* Returns NULL, or what is wrong with *word*. */
static const char *
lcores_add(struct san_engine_conf *to, const char *word)
{
	uint64_t lcore;
	uint32_t i;

	if (!san_key_number(word, &lcore) || lcore >= RTE_MAX_LCORE)
		return "is not the number of an lcore";
	for (i = 0; i < to->nb_lcores; i++)
		if (to->lcores[i] == lcore)
			return "is there already";
	if (to->nb_lcores == RTE_DIM(to->lcores))
		return "is one lcore too many";
	to->lcores[to->nb_lcores++] = (uint32_t)lcore;
	return NULL;
}

/* Worker lcores of EAL, each of which runs an engine. */
static int
set_lcores(void *base, const char *text, char *err, size_t err_len)
{
	struct dpdk_conf *conf = base;
	char buf[DPDK_WORD_MAX], *save = NULL, *word;
	const char *wrong;

	conf->engine.nb_lcores = 0;
	snprintf(buf, sizeof(buf), "%s", text);
	for (word = strtok_r(buf, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
		wrong = lcores_add(&conf->engine, word);
		if (wrong != NULL)
			return san_key_fail(err, err_len, "\"%s\" in \"%s\" %s", word, text,
					    wrong);
	}
	conf->has_lcores = conf->engine.nb_lcores > 0;
	return conf->has_lcores ? 0 : san_key_fail(err, err_len, "\"%s\" is not " LCORES, text);
}

/* ---- the table ---- */

#define CORE(f)          engine.core.f
#define NUM(f, lo, hi)   SAN_KEY_NUM(dpdk_conf, f, lo, hi)
#define NS(f, lo, hi)    SAN_KEY_NS(dpdk_conf, f, lo, hi)
#define USEC(f, lo, hi)  SAN_KEY_US(dpdk_conf, f, lo, hi)
#define BYTES(f, lo, hi) SAN_KEY_BYTES(dpdk_conf, f, lo, hi)
#define WORD(f, w)       SAN_KEY_CHOICE(dpdk_conf, f, w)
#define FAULTS(f) \
	SAN_KEY_LIST(san_dpdk_conf_impair, IMPAIR), .offset = offsetof(struct dpdk_conf, f)

const struct san_key dpdk_conf_keys[] = {
	{"port", "ip", "an address of the port, up to eight",
	 SAN_KEY_READ(dpdk_conf_set_ip, ADDRESS), .repeats = true},
	{"port", "ip6", "the same as ip", SAN_KEY_READ(dpdk_conf_set_ip, ADDRESS), .repeats = true},
	{"port", "gw", "router for other destinations, one of each family",
	 SAN_KEY_READ(set_gw, ROUTER), .repeats = true},
	{"port", "route", "router for a prefix, up to 16", SAN_KEY_READ(set_route, ROUTE),
	 .repeats = true},
	{"port", "vlan", "VLAN of the port", NUM(engine.vlan, 1, 4094)},
	{"port", "port", "number or name of the DPDK port", SAN_KEY_CHARS(dpdk_conf, port)},
	{"port", "mtu", "bytes of IP packets; default: the port's, up to 9000",
	 NUM(CORE(mtu), MTU_MIN, MTU_MAX)},
	{"port", "rxd", "receive descriptors", NUM(engine.nb_rxd, 32, 32768)},
	{"port", "txd", "transmit descriptors", NUM(engine.nb_txd, 32, 32768)},
	{"port", "queues", "pairs of queues; default: one for each lcore if packets can be spread",
	 NUM(engine.nb_queues, 1, SAN_ENGINE_LCORES)},
	{"port", "pool", "packet buffers; the default grows if more are needed",
	 NUM(engine.pool_size, 64, 1u << 24)},
	{"port", "udp_port", "destination port of the transport", NUM(CORE(udp_port), 1, 65535)},
	{"port", "dscp", "code point of every packet", NUM(CORE(cm.path.dscp), 0, 63)},
	/* engine */
	{"port", "lcores", "workers of EAL that run an engine each",
	 SAN_KEY_LIST(set_lcores, LCORES)},
	{"port", "idle", "what an idle lcore does", WORD(engine.idle, san_engine_idle_words)},
	{"port", "sleep", "longest sleep of an idle lcore", USEC(engine.sleep_max_us, 1, 100000)},
	/* connections */
	{"port", "conns", "connections and queue pairs",
	 NUM(CORE(pdl.max_conns), 1, SAN_CONNS_MAX)},
	{"port", "unordered", "unordered connections",
	 NUM(CORE(tl.max_unordered), 0, SAN_CONNS_MAX)},
	{"port", "regions", "memory regions", NUM(CORE(ulp.max_mrs), 1, 1u << 19)},
	{"port", "cqs", "completion queues", NUM(CORE(ulp.max_cqs), 1, 1u << 20)},
	{"port", "stream_mem", "memory of all streams of an lcore",
	 BYTES(CORE(stream_mem), 64u << 10, 1ull << 40)},
	{"port", "stream_mem_user", "memory of streams of one user; default: 3/4 of stream_mem",
	 BYTES(CORE(stream_mem_user), 64u << 10, 1ull << 40)},
	{"port", "stream_mrs", "regions of streams; rounded up to a power of two",
	 NUM(CORE(ulp.max_stream_mrs), 1, 1u << 19)},
	{"port", "linger", "time of a lingering stream without its program",
	 NS(CORE(linger_ns), MS, 3600 * SEC)},
	{"port", "sockets", "carried sockets of unmodified programs",
	 NUM(CORE(max_socks), 0, 1u << 15)},
	{"port", "carry_tcp", "whether TCP sockets are carried; auto: not over af_packet",
	 WORD(engine.carry_tcp, carry_words)},
	{"port", "pkey", "partition of connections and listeners that name none, and of regions",
	 NUM(param.pkey, 1, 65535)},
	SAN_CONN_KEYS("port", dpdk_conf, param),
	SAN_CORE_KEYS("port", dpdk_conf, engine.core),
	/* tests */
	{"port", "impair_tx", "faults before transmission", FAULTS(engine.impair_tx)},
	{"port", "impair_rx", "faults after reception", FAULTS(engine.impair_rx)},
	{"port", "capture", "file for every packet of the port", SAN_KEY_CHARS(dpdk_conf, capture)},
	{"port", "seed", "seed of keys and tags, which makes them predictable; 0: none",
	 NUM(engine.secret_seed, 0, UINT64_MAX)},
	{"port", "first_psn", "first sequence number of connections",
	 NUM(first_psn, 0, UINT32_MAX)},
	/* of programs: the daemon polls */
	{"program", "poll", "the thread that runs the engine; default: the caller",
	 SAN_KEY_UINT(SAN_KEY_WORD, dpdk_conf, poll, DPDK_POLL_CALLER, DPDK_POLL_LCORE, 1, 1),
	 .words = poll_words},
	{0},
};
static_assert(RTE_DIM(dpdk_conf_keys) <= DPDK_KEYS_MAX, "one mark each");

/* ---- all arguments ---- */

static int
dpdk_conf_word(struct dpdk_conf *conf, const char *word, const struct rtsan_host *host)
{
	const char *value = strchr(word, '=');
	char key[32], err[SAN_KEY_TEXT * 2];
	const struct san_key *k;
	int rc;

	if (value == NULL || value == word || (size_t)(value - word) >= sizeof(key))
		return host->fail(-EINVAL, "\"%s\": not key=value", word);
	snprintf(key, sizeof(key), "%.*s", (int)(value - word), word);
	k = san_key_find(dpdk_conf_keys, NULL, key);
	if (k == NULL)
		return host->fail(-EINVAL, "%s: unknown argument", key);
	rc = san_key_set(k, conf, key, value + 1, err, sizeof(err));
	if (rc != 0)
		return host->fail(rc, "%s", err);
	conf->is_given[k - dpdk_conf_keys] = true;
	return 0;
}

static bool
is_given(const struct dpdk_conf *conf, const char *key)
{
	return conf->is_given[san_key_find(dpdk_conf_keys, NULL, key) - dpdk_conf_keys];
}

/*
 * An engine that sleeps adds its sleep to the delay at either end, which is no congestion. So the
 * delay target allows for sleeps of a busy engine. The congestion window stays at one packet or
 * more: with 1/100 a packet is sent each hundredth round trip, and each of these has the sleep.
 * An ACK waits longer for the answer of a program, whose thread must be woken first, and a
 * tail-loss probe allows for that wait.
 */
static void
derive_sleep(struct dpdk_conf *conf)
{
	struct san_pdl_conf *pdl = &conf->engine.core.pdl;
	struct san_pdl_cc_conf *cc = &pdl->cc_conf;

	if (conf->engine.idle != SAN_IDLE_SLEEP && conf->engine.idle != SAN_IDLE_INTERRUPT)
		return;
	if (!is_given(conf, "target"))
		cc->target_ns += 4 * RTE_MIN(conf->engine.sleep_max_us, SLEEP_BUSY_US) * US;
	if (!is_given(conf, "cwnd_min"))
		cc->window_min = SAN_CC_ONE;
	if (!is_given(conf, "ack_delay"))
		pdl->ack_delay_ns = SLEEP_ACK_US * US;
	if (!is_given(conf, "tlp"))
		pdl->tlp_min_ns += RTE_MIN(pdl->ack_delay_ns, SLEEP_ACK_US * US);
}

/* Which threads run the engines. Each engine needs its range of queue pair numbers. */
static int
derive_lcores(struct dpdk_conf *conf, const struct rtsan_host *host)
{
	struct san_engine_conf *engine = &conf->engine;
	struct san_core_conf *core = &engine->core;
	uint32_t most = (1u << SAN_QPN_INDEX_BITS) / rte_align32pow2(engine->nb_lcores);

	if (conf->has_lcores && conf->poll == DPDK_POLL_CALLER)
		return host->fail(-EINVAL, "poll=caller: not with lcores=, which poll");
	engine->own_lcore = conf->has_lcores || conf->poll == DPDK_POLL_LCORE;
	core->ulp.max_qps = core->pdl.max_conns;
	if (engine->nb_lcores > 1)
		core->ulp.max_qps = rte_align32pow2(core->ulp.max_qps);
	if (core->ulp.max_qps > most)
		return host->fail(-EINVAL, "conns=%u: at most %u with %u lcores",
				  core->pdl.max_conns, most, engine->nb_lcores);
	return 0;
}

int
san_dpdk_conf_derive(struct dpdk_conf *conf, const struct rtsan_host *host)
{
	struct san_core_conf *core = &conf->engine.core;
	const struct san_inet_conf *inet = &core->inet;
	const struct san_pdl_conf *pdl = &core->pdl;
	char text[SAN_INET_TEXT];
	uint32_t need, i;
	int rc;

	if (inet->nb_addrs == 0)
		return host->fail(-EINVAL, "ip= is missing: the port needs an address");
	conf->engine.mtu_min = MTU_MIN;
	for (i = 0; i < inet->nb_addrs; i++)
		if (!san_wire_ip_is_v4(&inet->addrs[i].ip))
			conf->engine.mtu_min = MTU_MIN_V6;
	if (core->mtu != 0 && core->mtu < conf->engine.mtu_min)
		return host->fail(-EINVAL, "mtu=%u: at least %u with an IPv6 address", core->mtu,
				  MTU_MIN_V6);
	for (i = 0; i < inet->nb_routes; i++)
		if (!san_inet_route_is_on_link(inet, &inet->routes[i].gateway))
			return host->fail(-EINVAL, "router %s: in no prefix of an address of ours",
					  san_inet_addr_text(&inet->routes[i].gateway, text));
	derive_sleep(conf);
	core->ulp.max_mrs = rte_align32pow2(core->ulp.max_mrs);
	core->tl.max_wide = core->pdl.max_wide;
	rc = derive_lcores(conf, host);
	if (rc != 0)
		return rc;
	core->ulp.max_stream_mrs = rte_align32pow2(core->ulp.max_stream_mrs);
	if (core->stream_mem_user == 0) /* the share that one user may have */
		core->stream_mem_user = core->stream_mem / 4 * 3;
	if (core->stream_mem_user > core->stream_mem)
		return host->fail(-EINVAL, "stream_mem_user=%" PRIu64 ": more than stream_mem, "
					   "%" PRIu64,
				  core->stream_mem_user, core->stream_mem);
	/* a connection reserves three; others must be left for packets that are out of order */
	if (!is_given(conf, "rxns"))
		core->tl.max_rxns = RTE_MAX(core->tl.max_rxns,
					    4 * RTE_MIN(core->pdl.max_wide, core->pdl.max_conns));
	if (conf->param.first_win == 0)
		conf->param.first_win = conf->param.data_win;
	if (conf->param.msg_limit == 0)
		conf->param.msg_limit = conf->param.max_txn;
	core->pdl.fixed_psn = conf->first_psn != NOT_FIXED;
	core->pdl.first_psn = (uint32_t)conf->first_psn;
	if (pdl->rto_min_ns > pdl->rto_init_ns || pdl->rto_init_ns > pdl->rto_max_ns)
		return host->fail(-EINVAL, "rto_min <= rto <= rto_max does not hold");
	if (pdl->cc_conf.window_init > pdl->cc_conf.window_max)
		return host->fail(-EINVAL, "cwnd is above cwnd_max");
	if (core->tl.max_held_conn > core->tl.max_held)
		core->tl.max_held_conn = core->tl.max_held;
	need = san_engine_port_pool_min(&conf->engine);
	if (!is_given(conf, "pool"))
		conf->engine.pool_size = RTE_MAX(conf->engine.pool_size, need);
	if (conf->engine.pool_size < need)
		return host->fail(-EINVAL,
				  "pool=%u: at least %u for held=%u, rxd=%u, txd=%u, lcores: %u",
				  conf->engine.pool_size, need, core->tl.max_held,
				  conf->engine.nb_rxd, conf->engine.nb_txd, conf->engine.nb_lcores);
	return 0;
}

void
san_dpdk_conf_default(struct dpdk_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	san_engine_conf_default(&conf->engine, CONNS_DEFAULT);
	conf->engine.core.stream_mem_user = 0; /* derived, as are other limits of 0 */
	strcpy(conf->port, "0");
	conf->first_psn = NOT_FIXED;
	conf->param.data_win = WINDOW_DEFAULT;
	conf->param.max_txn = MAX_TXN_DEFAULT;
	conf->param.rnr_ms = RNR_MS_DEFAULT;
	conf->param.keepalive_ms = KEEPALIVE_MS;
	conf->param.pkey = PKEY_DEFAULT;
}

int
san_dpdk_conf_read(struct dpdk_conf *conf, char *const *words, int nb_words,
		   const struct rtsan_host *host)
{
	int i, rc;

	san_dpdk_conf_default(conf);
	for (i = 0; i < nb_words; i++) {
		rc = dpdk_conf_word(conf, words[i], host);
		if (rc != 0)
			return rc;
	}
	return san_dpdk_conf_derive(conf, host);
}

/* ---- impairment ---- */

#define CHANCE(f) SAN_KEY_RATIO(san_engine_impair_conf, f, SAN_IMPAIR_ALWAYS)

static const struct san_key impair_keys[] = {
	{"", "drop", "", CHANCE(drop)},
	{"", "dup", "", CHANCE(duplicate)},
	{"", "reorder", "", CHANCE(reorder)},
	{"", "corrupt", "", CHANCE(corrupt)},
	{"", "ecn", "", CHANCE(ecn)},
	{"", "delay", "",
	 SAN_KEY_UINT(SAN_KEY_TIME, san_engine_impair_conf, delay_ns, 0, 10 * SEC, US, 1)},
	{"", "seed", "", SAN_KEY_NUM(san_engine_impair_conf, seed, 0, UINT64_MAX)},
	{0},
};

int
san_dpdk_conf_impair(void *out, const char *text, char *err, size_t err_len)
{
	char buf[DPDK_WORD_MAX], *save = NULL, *word, *value;
	struct san_engine_impair_conf *conf = out;
	const struct san_key *k;

	*conf = (struct san_engine_impair_conf){.seed = IMPAIR_SEED};
	if (strlen(text) >= sizeof(buf))
		return san_key_fail(err, err_len, "at most %zu characters", sizeof(buf) - 1);
	strcpy(buf, text);
	for (word = strtok_r(buf, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
		value = strchr(word, '=');
		k = NULL;
		if (value != NULL) {
			*value++ = '\0';
			k = san_key_find(impair_keys, NULL, word);
		}
		if (k == NULL)
			return san_key_fail(err, err_len, "\"%s\" is none of " IMPAIR, word);
		if (san_key_set(k, out, word, value, err, err_len) != 0)
			return -EINVAL;
	}
	return 0;
}
