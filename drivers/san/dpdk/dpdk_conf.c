/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Port arguments: words "key=value", read by tables. The error for an invalid one has its key, its
 * value, and what is valid.
 */

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "dpdk_priv.h"
#include "san_log.h"

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
#define SLEEP_STAND_INS 8    /* answers that carry an ACK between two dedicated ones */
#define CONF(f)         offsetof(struct dpdk_conf, f), sizeof(((struct dpdk_conf *)0)->f)
#define CORE(f)         CONF(engine.core.f)
#define US              SAN_NS_PER_US
#define MS              SAN_NS_PER_MS

/** Numbers: their range, and the size of one unit in the field. */
static const struct number {
	const char *key;
	size_t offset, size;
	uint64_t min, max;
	uint64_t unit;
} numbers[] = {
	{"conns", CORE(pdl.max_conns), 1, SAN_CONNS_MAX, 1},
	{"wide", CORE(pdl.max_wide), 1, SAN_CONNS_MAX, 1},
	{"unordered", CORE(tl.max_unordered), 0, SAN_CONNS_MAX, 1},
	{"mtu", CORE(mtu), MTU_MIN, MTU_MAX, 1},
	{"pool", CONF(engine.pool_size), 64, 1u << 24, 1},
	{"rxd", CONF(engine.nb_rxd), 32, 32768, 1},
	{"txd", CONF(engine.nb_txd), 32, 32768, 1},
	{"queues", CONF(engine.nb_queues), 1, SAN_ENGINE_LCORES, 1},
	{"vlan", CONF(engine.vlan), 1, 4094, 1},
	{"sleep_us", CONF(engine.sleep_max_us), 1, 100000, 1},
	{"udp_port", CORE(udp_port), 1, 65535, 1},
	{"dscp", CORE(cm.path.dscp), 0, 63, 1},
	/* packet delivery */
	{"budget", CORE(pdl.budget_pkts), 1, 1u << 24, 1},
	{"retries", CORE(pdl.max_retries), 1, 255, 1},
	{"ooo", CORE(pdl.ooo_distance), 1, 255, 1},
	{"ackreq_window", CORE(pdl.ackreq_window), 0, 255, 1},
	{"ack_every", CORE(pdl.ack_every), 1, 65535, 1},
	{"ack_delay_us", CORE(pdl.ack_delay_ns), 0, 1000000, US},
	{"quantum", CORE(pdl.quantum), 1, 65535, 1},
	{"plb", CORE(pdl.plb_bad_rtts), 0, 255, 1},
	{"pmtu", CORE(pdl.pmtu_after), 0, UINT16_MAX, 1},
	{"rto_us", CORE(pdl.rto_init_ns), 1, 60000000, US},
	{"rto_min_us", CORE(pdl.rto_min_ns), 1, 60000000, US},
	{"rto_max_us", CORE(pdl.rto_max_ns), 1, 60000000, US},
	{"tlp_us", CORE(pdl.tlp_min_ns), 1, 60000000, US},
	{"target_us", CORE(pdl.cc_conf.target_ns), 1, 1000000, US},
	{"cwnd_min", CORE(pdl.cc_conf.window_min), 1, 100, SAN_CC_ONE / 100},
	{"cwnd", CORE(pdl.cc_conf.window_init), 1, 16384, SAN_CC_ONE},
	{"cwnd_max", CORE(pdl.cc_conf.window_max), 1, 16384, SAN_CC_ONE},
	/* transactions */
	{"txns", CORE(tl.max_txns), 1, 1u << 24, 1},
	{"rxns", CORE(tl.max_rxns), 1, 1u << 24, 1},
	{"incast", CORE(tl.budget_bytes), 1, UINT32_MAX, 1},
	{"paths", CORE(tl.path_bytes), 0, UINT32_MAX, 1},
	{"lapsed", CORE(tl.expired_bytes), 0, UINT32_MAX, 1},
	{"grant", CORE(tl.grant_bytes), 1, UINT32_MAX, 1},
	{"solicit", CORE(tl.solicit_len), 0, UINT32_MAX, 1},
	{"level", CORE(tl.solicit_level), 0, 255, 1},
	{"held", CORE(tl.max_held), 1, 1u << 24, 1},
	{"held_conn", CORE(tl.max_held_conn), 1, 1u << 24, 1},
	{"rnr_delay_us", CORE(tl.rnr_delay_us), 1, 1000000, 1},
	{"pull_piece", CORE(ulp.pull_piece), 1, SAN_WIRE_LENGTH_MAX, 1},
	{"regions", CORE(ulp.max_mrs), 1, 1u << 19, 1},
	{"cqs", CORE(ulp.max_cqs), 1, 1u << 20, 1},
	/* streams */
	{"stream_mem", CORE(stream_mem), 64u << 10, 1ull << 40, 1},
	{"stream_mem_user", CORE(stream_mem_user), 64u << 10, 1ull << 40, 1},
	{"stream_mrs", CORE(ulp.max_stream_mrs), 1, 1u << 19, 1},
	{"linger_ms", CORE(linger_ns), 1, 3600 * 1000, MS},
	/* carried sockets */
	{"sockets", CORE(max_socks), 0, 1u << 15, 1},
	/* connection management */
	{"cm_retry_ms", CORE(cm.retry_ns), 1, 60000, MS},
	{"cm_retries", CORE(cm.max_retries), 1, 20, 1},
	{"cm_drain_ms", CORE(cm.drain_ns), 1, 600000, MS},
	{"cm_rate", CORE(cm.rate_per_ms), 1, 1000000, 1},
	{"pack", CORE(cm.features), 0, 1, SAN_CM_FEAT_PACK},
	{"keepalive_probes", CORE(cm.keepalive_probes), 1, 255, 1},
	/* defaults of connections */
	{"window", CONF(param.window), SAN_WIN_MIN, SAN_WIN_DATA_MAX, 1},
	{"first_window", CONF(param.first_window), SAN_WIN_MIN, SAN_WIN_DATA_MAX, 1},
	{"max_txn", CONF(param.max_txn), 1, SAN_TL_N_MAX, 1},
	{"msg_limit", CONF(param.msg_limit), 1, 65535, 1},
	{"rnr_ms", CONF(param.rnr_ms), 1, 65535, 1},
	{"keepalive_ms", CONF(param.keepalive_ms), 1, 65535, 1},
	{"pkey", CONF(param.pkey), 1, 65535, 1},
	/* tests */
	{"seed", CONF(engine.secret_seed), 0, UINT64_MAX, 1},
	{"first_psn", CORE(pdl.first_psn), 0, UINT32_MAX, 1},
};

/* ---- values ---- */

/* Read 123, 0x7b, 64k, 1M, 1G. */
bool
san_dpdk_conf_number(const char *text, uint64_t *out)
{
	static const char suffixes[] = "KMG";
	const char *suffix;
	char *end;
	uint64_t v;

	if (text[0] < '0' || text[0] > '9') /* no sign, no blank */
		return false;
	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno != 0)
		return false;
	if (*end != '\0') {
		suffix = strchr(suffixes, *end & ~0x20); /* upper or lower case */
		if (suffix == NULL || end[1] != '\0')
			return false;
		for (; suffix >= suffixes; suffix--) {
			if (v > UINT64_MAX / 1024)
				return false;
			v *= 1024;
		}
	}
	*out = v;
	return true;
}

static void
dpdk_conf_store_text(void *to, size_t size, uint64_t v)
{
	switch (size) {
	case sizeof(uint8_t):
		*(uint8_t *)to = (uint8_t)v;
		break;
	case sizeof(uint16_t):
		*(uint16_t *)to = (uint16_t)v;
		break;
	case sizeof(uint32_t):
		*(uint32_t *)to = (uint32_t)v;
		break;
	default:
		*(uint64_t *)to = v;
		break;
	}
}

static int
dpdk_conf_set_number(struct dpdk_conf *conf, const struct number *num, const char *value,
		     const struct rtsan_host *host)
{
	uint64_t v;

	if (!san_dpdk_conf_number(value, &v))
		return host->fail(-EINVAL, "%s=%s: not a number", num->key, value);
	if (v < num->min || v > num->max)
		return host->fail(-EINVAL, "%s=%s: must be %" PRIu64 " to %" PRIu64, num->key,
				  value, num->min, num->max);
	dpdk_conf_store_text((uint8_t *)conf + num->offset, num->size, v * num->unit);
	return 0;
}

typedef int (*set_fn)(struct dpdk_conf *conf, const char *key, const char *value,
		      const struct rtsan_host *host);

static int
dpdk_conf_set_ip(struct dpdk_conf *conf, const char *key, const char *value,
		 const struct rtsan_host *host)
{
	struct san_inet_conf *inet = &conf->engine.core.inet;

	if (inet->nb_addrs == RTE_DIM(inet->addrs))
		return host->fail(-EINVAL, "%s=%s: at most %zu addresses", key, value,
				  RTE_DIM(inet->addrs));
	if (san_inet_addr_parse(value, &inet->addrs[inet->nb_addrs]) != 0)
		return host->fail(-EINVAL, "%s=%s: not an address", key, value);
	inet->nb_addrs++;
	return 0;
}

static int
add_route(struct dpdk_conf *conf, const char *text)
{
	struct san_inet_conf *inet = &conf->engine.core.inet;

	if (inet->nb_routes == RTE_DIM(inet->routes))
		return -ENOSPC;
	if (san_inet_addr_parse_route(text, &inet->routes[inet->nb_routes]) != 0)
		return -EINVAL;
	inet->nb_routes++;
	return 0;
}

static int
set_gw(struct dpdk_conf *conf, const char *key, const char *value, const struct rtsan_host *host)
{
	if (strchr(value, ',') != NULL || add_route(conf, value) != 0)
		return host->fail(-EINVAL, "%s=%s: not an address", key, value);
	return 0;
}

static int
set_route(struct dpdk_conf *conf, const char *key, const char *value, const struct rtsan_host *host)
{
	int rc = strchr(value, ',') != NULL ? add_route(conf, value) : -EINVAL;

	if (rc == -ENOSPC)
		return host->fail(-EINVAL, "%s=%s: at most %zu routes", key, value,
				  RTE_DIM(conf->engine.core.inet.routes));
	if (rc != 0)
		return host->fail(-EINVAL, "%s=%s: not a prefix and a router, as in "
					   "10.1.0.0/16,10.0.0.254",
				  key, value);
	return 0;
}

static int
dpdk_conf_set_text(char *to, size_t size, const char *key, const char *value,
		   const struct rtsan_host *host)
{
	if (value[0] == '\0' || strlen(value) >= size)
		return host->fail(-EINVAL, "%s=%s: 1 to %zu characters", key, value, size - 1);
	strcpy(to, value);
	return 0;
}

static int
dpdk_conf_set_port(struct dpdk_conf *conf, const char *key, const char *value,
		   const struct rtsan_host *host)
{
	return dpdk_conf_set_text(conf->port, sizeof(conf->port), key, value, host);
}

static int
set_capture(struct dpdk_conf *conf, const char *key, const char *value,
	    const struct rtsan_host *host)
{
	return dpdk_conf_set_text(conf->capture, sizeof(conf->capture), key, value, host);
}

/* Returns the index of *value* among *n* names, or -EINVAL with a text that lists them. */
static int
dpdk_conf_choose_word(const char *key, const char *value, const char *const *names, int n,
		      const struct rtsan_host *host)
{
	char all[128] = "";
	int i;

	for (i = 0; i < n; i++) {
		if (strcmp(value, names[i]) == 0)
			return i;
		strcat(all, i == 0 ? "" : ", ");
		strcat(all, names[i]);
	}
	return host->fail(-EINVAL, "%s=%s: one of %s", key, value, all);
}

static int
dpdk_conf_set_poll(struct dpdk_conf *conf, const char *key, const char *value,
		   const struct rtsan_host *host)
{
	static const char *const names[] = {"caller", "lcore"};
	int i = dpdk_conf_choose_word(key, value, names, RTE_DIM(names), host);

	conf->poll = i == 1 ? DPDK_POLL_LCORE : DPDK_POLL_CALLER;
	return i < 0 ? i : 0;
}

/* "1,2": worker lcores of EAL, each of which runs an engine. */
static int
set_lcores(struct dpdk_conf *conf, const char *key, const char *value,
	   const struct rtsan_host *host)
{
	struct san_engine_conf *engine = &conf->engine;
	char buf[DPDK_WORD_MAX], *save = NULL, *word;
	uint64_t lcore;
	uint32_t i;

	engine->nb_lcores = 0;
	snprintf(buf, sizeof(buf), "%s", value);
	for (word = strtok_r(buf, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
		if (!san_dpdk_conf_number(word, &lcore) || lcore >= RTE_MAX_LCORE)
			return host->fail(-EINVAL, "%s=%s: numbers of lcores, as in 1,2", key,
					  value);
		if (engine->nb_lcores == RTE_DIM(engine->lcores))
			return host->fail(-EINVAL, "%s=%s: at most %zu", key, value,
					  RTE_DIM(engine->lcores));
		for (i = 0; i < engine->nb_lcores; i++)
			if (engine->lcores[i] == lcore)
				return host->fail(-EINVAL, "%s=%s: each only once", key, value);
		engine->lcores[engine->nb_lcores++] = (uint32_t)lcore;
	}
	if (engine->nb_lcores == 0)
		return host->fail(-EINVAL, "%s=%s: numbers of lcores, as in 1,2", key, value);
	conf->has_lcores = true;
	return 0;
}

static int
set_idle(struct dpdk_conf *conf, const char *key, const char *value, const struct rtsan_host *host)
{
	static const char *const names[] = {
		[SAN_IDLE_AUTO] = "auto",
		[SAN_IDLE_POLL] = "poll",
		[SAN_IDLE_PAUSE] = "pause",
		[SAN_IDLE_YIELD] = "yield",
		[SAN_IDLE_SLEEP] = "sleep",
		[SAN_IDLE_INTERRUPT] = "interrupt",
	};
	int i = dpdk_conf_choose_word(key, value, names, RTE_DIM(names), host);

	conf->engine.idle = (uint8_t)i;
	return i < 0 ? i : 0;
}

static int
set_carry_tcp(struct dpdk_conf *conf, const char *key, const char *value,
	      const struct rtsan_host *host)
{
	static const char *const names[] = {
		[SAN_CARRY_TCP_AUTO] = "auto",
		[SAN_CARRY_TCP_ON] = "on",
		[SAN_CARRY_TCP_OFF] = "off",
	};
	int i = dpdk_conf_choose_word(key, value, names, RTE_DIM(names), host);

	conf->engine.carry_tcp = (uint8_t)i;
	return i < 0 ? i : 0;
}

static int
set_cc(struct dpdk_conf *conf, const char *key, const char *value, const struct rtsan_host *host)
{
	static const char *const names[] = {"swift", "dcqcn", "fixed"};
	int i = dpdk_conf_choose_word(key, value, names, RTE_DIM(names), host);

	if (i >= 0)
		conf->engine.core.pdl.cc = san_pdl_cc_find(value);
	return i < 0 ? i : 0;
}

static int
set_policy(struct dpdk_conf *conf, const char *key, const char *value,
	   const struct rtsan_host *host)
{
	static const char *const names[] = {[SAN_GRANT_RR] = "rr", [SAN_GRANT_SRPT] = "srpt"};
	int i = dpdk_conf_choose_word(key, value, names, RTE_DIM(names), host);

	conf->engine.core.tl.policy = (uint8_t)i;
	return i < 0 ? i : 0;
}

static int
dpdk_conf_set_impair(struct dpdk_conf *conf, const char *key, const char *value,
		     const struct rtsan_host *host)
{
	struct san_engine_impair_conf *engine;
	struct rtsan_dpdk_impair impair;
	const char *why;
	int rc = san_dpdk_conf_impair(value, &impair, &why);

	if (rc != 0)
		return host->fail(rc, "%s=%s: %s", key, value, why);
	engine = strcmp(key, "impair_tx") == 0 ? &conf->engine.impair_tx : &conf->engine.impair_rx;
	return san_dpdk_conf_impair_engine(&impair, engine);
}

static const struct word {
	const char *key;
	set_fn set;
} words_of[] = {
	{"ip", dpdk_conf_set_ip},
	{"ip6", dpdk_conf_set_ip},
	{"gw", set_gw},
	{"route", set_route},
	{"port", dpdk_conf_set_port},
	{"poll", dpdk_conf_set_poll},
	{"lcores", set_lcores},
	{"idle", set_idle},
	{"carry_tcp", set_carry_tcp},
	{"cc", set_cc},
	{"policy", set_policy},
	{"impair_tx", dpdk_conf_set_impair},
	{"impair_rx", dpdk_conf_set_impair},
	{"capture", set_capture},
};

/* ---- all arguments ---- */

int
san_dpdk_conf_word(struct dpdk_conf *conf, const char *word, const struct rtsan_host *host)
{
	const char *value = strchr(word, '=');
	char key[32];
	size_t i;

	if (value == NULL || value == word || (size_t)(value - word) >= sizeof(key))
		return host->fail(-EINVAL, "\"%s\": not key=value", word);
	memcpy(key, word, (size_t)(value - word));
	key[value - word] = '\0';
	value++;
	for (i = 0; i < RTE_DIM(numbers); i++)
		if (strcmp(key, numbers[i].key) == 0)
			return dpdk_conf_set_number(conf, &numbers[i], value, host);
	for (i = 0; i < RTE_DIM(words_of); i++)
		if (strcmp(key, words_of[i].key) == 0)
			return words_of[i].set(conf, key, value, host);
	return host->fail(-EINVAL, "%s: unknown argument", key);
}

static bool
is_given(const char *key, char *const *words, int nb_words)
{
	size_t len = strlen(key);
	int i;

	for (i = 0; i < nb_words; i++)
		if (strncmp(words[i], key, len) == 0 && words[i][len] == '=')
			return true;
	return false;
}

/*
 * An engine that sleeps adds its sleep to the delay at either end, which is no congestion. So the
 * delay target allows for sleeps of a busy engine. The window is never paced below a packet, which
 * would turn each sleep into hundreds. An ACK waits longer for the answer of a program, which comes
 * only after its thread has been woken, and a tail probe allows for that wait.
 */
static void
derive_sleep(struct dpdk_conf *conf, char *const *words, int nb_words)
{
	struct san_pdl_conf *pdl = &conf->engine.core.pdl;
	struct san_pdl_cc_conf *cc = &pdl->cc_conf;

	if (conf->engine.idle != SAN_IDLE_SLEEP && conf->engine.idle != SAN_IDLE_INTERRUPT)
		return;
	if (!is_given("target_us", words, nb_words))
		cc->target_ns += 4 * RTE_MIN(conf->engine.sleep_max_us, SLEEP_BUSY_US) * US;
	if (!is_given("cwnd_min", words, nb_words))
		cc->window_min = SAN_CC_ONE;
	if (!is_given("ack_delay_us", words, nb_words))
		pdl->ack_delay_ns = SLEEP_ACK_US * US;
	pdl->ack_hold_ns = RTE_MIN(pdl->ack_delay_ns, SLEEP_ACK_US * US);
	pdl->ack_stand_ins = SLEEP_STAND_INS;
	if (!is_given("tlp_us", words, nb_words))
		pdl->tlp_min_ns += pdl->ack_hold_ns;
}

static int
check_routes(const struct san_inet_conf *inet, const struct rtsan_host *host)
{
	char text[SAN_INET_TEXT];
	uint16_t i;

	for (i = 0; i < inet->nb_routes; i++)
		if (!san_inet_route_is_on_link(inet, &inet->routes[i].gateway))
			return host->fail(-EINVAL, "router %s: in no prefix of an address of ours",
					  san_inet_addr_text(&inet->routes[i].gateway, text));
	return 0;
}

static bool
has_v6(const struct san_inet_conf *conf)
{
	uint32_t i;

	for (i = 0; i < conf->nb_addrs; i++)
		if (!san_wire_ip_is_v4(&conf->addrs[i].ip))
			return true;
	return false;
}

/* Which threads run the engines. Each engine needs its range of queue pair numbers. */
static int
derive_lcores(struct dpdk_conf *conf, const struct rtsan_host *host)
{
	struct san_engine_conf *engine = &conf->engine;
	struct san_core_conf *core = &engine->core;
	uint32_t most = (1u << SAN_QPN_INDEX_BITS) / rte_align32pow2(engine->nb_lcores);

	if (conf->has_lcores && conf->poll == DPDK_POLL_CALLER)
		return host->fail(-EINVAL, "poll=caller: there are lcores=, which poll");
	engine->own_lcore = conf->has_lcores || conf->poll == DPDK_POLL_LCORE;
	core->ulp.max_qps = core->pdl.max_conns;
	if (engine->nb_lcores > 1)
		core->ulp.max_qps = rte_align32pow2(core->ulp.max_qps);
	if (core->ulp.max_qps > most)
		return host->fail(-EINVAL, "conns=%u: at most %u with %u lcores",
				  core->pdl.max_conns, most, engine->nb_lcores);
	return 0;
}

/* Memory of streams, and the share of it that one user may have. */
static int
derive_streams(struct san_core_conf *core, char *const *words, int nb_words,
	       const struct rtsan_host *host)
{
	core->ulp.max_stream_mrs = rte_align32pow2(core->ulp.max_stream_mrs);
	if (!is_given("stream_mem_user", words, nb_words))
		core->stream_mem_user = core->stream_mem / 4 * 3;
	if (core->stream_mem_user > core->stream_mem)
		return host->fail(-EINVAL, "stream_mem_user=%" PRIu64 ": more than stream_mem, "
					   "%" PRIu64,
				  core->stream_mem_user, core->stream_mem);
	return 0;
}

/* Derive values that were not given from others, and check them all. */
static int
dpdk_conf_derive(struct dpdk_conf *conf, char *const *words, int nb_words,
		 const struct rtsan_host *host)
{
	struct san_core_conf *core = &conf->engine.core;
	const struct san_pdl_conf *pdl = &core->pdl;
	uint32_t need;
	int rc;

	if (core->inet.nb_addrs == 0)
		return host->fail(-EINVAL, "ip= is missing: the port needs an address");
	conf->engine.mtu_min = has_v6(&core->inet) ? MTU_MIN_V6 : MTU_MIN;
	if (core->mtu != 0 && core->mtu < conf->engine.mtu_min)
		return host->fail(-EINVAL, "mtu=%u: at least %u with an IPv6 address", core->mtu,
				  MTU_MIN_V6);
	rc = check_routes(&core->inet, host);
	if (rc != 0)
		return rc;
	derive_sleep(conf, words, nb_words);
	core->ulp.max_mrs = rte_align32pow2(core->ulp.max_mrs);
	core->tl.max_wide = core->pdl.max_wide;
	rc = derive_lcores(conf, host);
	if (rc == 0)
		rc = derive_streams(core, words, nb_words, host);
	if (rc != 0)
		return rc;
	/* a connection reserves three; others must be left for packets that are out of order */
	if (!is_given("rxns", words, nb_words))
		core->tl.max_rxns = RTE_MAX(core->tl.max_rxns,
					    4 * RTE_MIN(core->pdl.max_wide, core->pdl.max_conns));
	if (!is_given("first_window", words, nb_words))
		conf->param.first_window = conf->param.window;
	if (!is_given("msg_limit", words, nb_words))
		conf->param.msg_limit = conf->param.max_txn;
	core->pdl.fixed_psn = is_given("first_psn", words, nb_words);
	if (pdl->rto_min_ns > pdl->rto_init_ns || pdl->rto_init_ns > pdl->rto_max_ns)
		return host->fail(-EINVAL, "rto_min_us <= rto_us <= rto_max_us does not hold");
	if (pdl->cc_conf.window_init > pdl->cc_conf.window_max)
		return host->fail(-EINVAL, "cwnd is above cwnd_max");
	if (core->tl.max_held_conn > core->tl.max_held)
		core->tl.max_held_conn = core->tl.max_held;
	need = san_engine_port_pool_min(&conf->engine);
	if (!is_given("pool", words, nb_words))
		conf->engine.pool_size = RTE_MAX(conf->engine.pool_size, need);
	if (conf->engine.pool_size < need)
		return host->fail(-EINVAL,
				  "pool=%u: at least %u for held=%u, rxd=%u, txd=%u, lcores: %u",
				  conf->engine.pool_size, need, core->tl.max_held,
				  conf->engine.nb_rxd, conf->engine.nb_txd, conf->engine.nb_lcores);
	return 0;
}

int
san_dpdk_conf_read(struct dpdk_conf *conf, char *const *words, int nb_words,
		   const struct rtsan_host *host)
{
	int i, rc;

	memset(conf, 0, sizeof(*conf));
	san_engine_conf_default(&conf->engine, CONNS_DEFAULT);
	strcpy(conf->port, "0");
	conf->param.window = WINDOW_DEFAULT;
	conf->param.max_txn = MAX_TXN_DEFAULT;
	conf->param.rnr_ms = RNR_MS_DEFAULT;
	conf->param.keepalive_ms = KEEPALIVE_MS;
	conf->param.pkey = PKEY_DEFAULT;
	for (i = 0; i < nb_words; i++) {
		rc = san_dpdk_conf_word(conf, words[i], host);
		if (rc != 0)
			return rc;
	}
	return dpdk_conf_derive(conf, words, nb_words, host);
}

/* ---- impairment ---- */

static bool
parse_probability(const char *text, double *out)
{
	char *end;
	double v = strtod(text, &end);

	*out = v;
	return end != text && *end == '\0' && v >= 0 && v <= 1; /* false for NaN, too */
}

static int
impair_word(const char *key, const char *value, struct rtsan_dpdk_impair *out, const char **why)
{
	const struct {
		const char *key;
		double *to;
	} rates[] = {
		{"drop", &out->drop},
		{"dup", &out->duplicate},
		{"reorder", &out->reorder},
		{"corrupt", &out->corrupt},
		{"ecn", &out->ecn},
	};
	uint64_t v;
	size_t i;

	for (i = 0; i < RTE_DIM(rates); i++) {
		if (strcmp(key, rates[i].key) != 0)
			continue;
		*why = "a probability is 0 to 1";
		return parse_probability(value, rates[i].to) ? 0 : -EINVAL;
	}
	*why = "known are drop, dup, reorder, corrupt, ecn, delay, seed";
	if (strcmp(key, "delay") != 0 && strcmp(key, "seed") != 0)
		return -EINVAL;
	*why = "delay is microseconds, at most 10 s; seed a number";
	if (!san_dpdk_conf_number(value, &v))
		return -EINVAL;
	if (key[0] == 's') {
		out->seed = v;
		return 0;
	}
	out->delay_us = (uint32_t)v;
	return v <= 10000000 ? 0 : -EINVAL;
}

int
san_dpdk_conf_impair(const char *text, struct rtsan_dpdk_impair *out, const char **why)
{
	char buf[DPDK_WORD_MAX], *save = NULL, *word, *value;
	int rc;

	memset(out, 0, sizeof(*out));
	out->seed = IMPAIR_SEED;
	*why = "too long";
	if (strlen(text) >= sizeof(buf))
		return -EINVAL;
	strcpy(buf, text);
	for (word = strtok_r(buf, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
		*why = "not key=value,key=value";
		value = strchr(word, '=');
		if (value == NULL)
			return -EINVAL;
		*value++ = '\0';
		rc = impair_word(word, value, out, why);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int
to_fixed(double p, uint64_t *out)
{
	if (!(p >= 0 && p <= 1))
		return -EINVAL;
	*out = (uint64_t)(p * (double)SAN_IMPAIR_ALWAYS);
	return 0;
}

int
san_dpdk_conf_impair_engine(const struct rtsan_dpdk_impair *in, struct san_engine_impair_conf *out)
{
	memset(out, 0, sizeof(*out));
	out->delay_ns = in->delay_us * SAN_NS_PER_US;
	out->seed = in->seed;
	if (to_fixed(in->drop, &out->drop) != 0 ||
	    to_fixed(in->duplicate, &out->duplicate) != 0 ||
	    to_fixed(in->reorder, &out->reorder) != 0 ||
	    to_fixed(in->corrupt, &out->corrupt) != 0 || to_fixed(in->ecn, &out->ecn) != 0)
		return -EINVAL;
	return 0;
}
